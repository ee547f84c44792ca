//! Public fields of structs: at most twenty, except in types with a fixed external format.

use crate::exceptions::{Exception, check};
use crate::modules::{module_path, tokens};
use crate::source::{Role, Source, products};

const MAX_FIELDS: usize = 20;

/// Types whose fields are prescribed by a wire or file format.
const WIRE_FORMATS: &[Exception] = &[
    // `Approval`: the event `approval_requested` of `aye serve`, also stored in the journal.
    Exception { modules: &["protocol::approval"], count: 1 },
];

/// Returns the structs with named fields, each with the number of its public fields.
///
/// # Errors
///
/// Names a struct whose body is not found or does not end.
fn structs<'a>(tokens: &[&'a str]) -> Result<Vec<(&'a str, usize)>, String> {
    let starts = tokens.iter().enumerate().filter(|(_, token)| **token == "struct");
    let counted = starts.filter_map(|(at, _)| {
        let (name, rest) = tokens[at + 1..].split_first()?;
        let body = match find_body(rest) {
            Ok(body) => body?,
            Err(fault) => return Some(Err(format!("`{name}`: {fault}"))),
        };
        Some(public_fields(body).map(|count| (*name, count)).ok_or_else(|| format!("`{name}`: the body does not end")))
    });
    counted.collect()
}

/// Returns the tokens from the brace before the named fields; `None` for a tuple struct or a unit struct. `tokens`
/// begin after the name.
fn find_body<'t, 'a>(tokens: &'t [&'a str]) -> Result<Option<&'t [&'a str]>, &'static str> {
    let (mut depth, mut has_bounds) = (0_usize, false);
    for (at, token) in tokens.iter().enumerate() {
        match *token {
            "{" if depth == 0 => return Ok(Some(&tokens[at..])),
            ";" if depth == 0 => return Ok(None),
            "(" if depth == 0 && !has_bounds => return Ok(None),
            "where" => has_bounds = true,
            "<" | "(" | "[" | "{" => depth += 1,
            ">" if at > 0 && tokens[at - 1] == "-" => {}
            ">" | ")" | "]" | "}" => depth = depth.checked_sub(1).ok_or("the body is not found")?,
            _ => {}
        }
    }
    Err("the body is not found")
}

/// Returns the number of public fields in a body; `None` if the body does not end.
fn public_fields(body: &[&str]) -> Option<usize> {
    let (mut depth, mut count) = (0_usize, 0);
    for token in body {
        match *token {
            "{" | "(" | "[" => depth += 1,
            "}" | ")" | "]" if depth == 1 => return Some(count),
            "}" | ")" | "]" => depth -= 1,
            "pub" if depth == 1 => count += 1,
            _ => {}
        }
    }
    None
}

#[test]
fn structs_do_not_exceed_the_maximum_number_of_public_fields() {
    let mut found = Vec::new();
    for source in products() {
        let module = module_path(&source).join("::");
        let code = source.code();
        let structs = structs(&tokens(&code)).unwrap_or_else(|fault| panic!("{}: {fault}", source.path));
        for (name, count) in structs.into_iter().filter(|(_, count)| *count > MAX_FIELDS) {
            found.push((module.clone(), format!("{module}::{name} has {count} public fields, at most {MAX_FIELDS}")));
        }
    }
    check("structs with too many public fields; group them or make them private", WIRE_FORMATS, &found);
}

#[test]
fn public_fields_are_counted_in_structs_with_named_fields() {
    let code = "pub struct A<T: B> where T: C { pub a: u8, b: (u8, u8), #[serde(default)] pub(crate) c: fn(pub_like) -> u8, \
                pub(in crate::d) e: [u8; 2] } struct F(pub u8, pub u8); struct G; struct H {} fn i() { let pub_x = 1; } \
                pub enum J { K { l: u8 } }";
    assert_eq!(structs(&tokens(code)), Ok(vec![("A", 3), ("H", 0)]));
}

#[test]
fn named_fields_are_found_after_bounds_and_defaults_of_parameters() {
    let code = "struct A<F> where F: Fn(u8) -> u8 { pub a: F } struct B<T = (u8,)> { pub b: T } \
                struct C<T = [u8; 2]> { pub c: T } struct D<F: Fn(u8) -> [u8; 2]> { pub d: F } \
                struct E<T>(pub T) where T: G<(u8,)>; struct H<T>(pub T, pub fn(T) -> T);";
    assert_eq!(structs(&tokens(code)), Ok(vec![("A", 1), ("B", 1), ("C", 1), ("D", 1)]));
}

#[test]
fn fields_for_unit_tests_do_not_hide_the_end_of_a_struct() {
    let first = "#[cfg(test)] pub a: u8, pub b: u8";
    for fields in [first, "pub b: u8, #[cfg(test)] pub a: u8", "pub b: u8, #[cfg(test)] pub a: C<D, E>,"] {
        let text = format!("struct A {{ {fields} }} pub fn c() {{}}");
        let source = Source { path: "src/a.rs".to_owned(), text, role: Role::Product };
        assert_eq!(structs(&tokens(&source.code())), Ok(vec![("A", 1)]), "{fields}");
    }
}

#[test]
fn structs_without_an_end_are_reported() {
    for code in ["struct A", "struct A<T>", "struct A { pub a: u8, ", "struct A; fn b() {} struct A { pub a: (u8, }"] {
        assert!(structs(&tokens(code)).is_err_and(|fault| fault.contains("`A`")), "{code}");
    }
}
