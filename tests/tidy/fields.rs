//! Public fields of structs: at most twenty, except in types with a fixed external format.

use crate::modules::tokens;
use crate::source::products;
use std::collections::BTreeSet;

const MAX_FIELDS: usize = 20;

/// Types whose fields are prescribed by a wire or file format, with the format.
const WIRE_FORMATS: &[(&str, &str)] =
    &[("src/protocol/approval.rs: `Approval`", "`approval_requested` event of `aye serve`, also stored in the journal")];

/// Returns the structs with named fields, each with the number of its public fields.
fn structs<'a>(tokens: &[&'a str]) -> Vec<(&'a str, usize)> {
    let starts = tokens.iter().enumerate().filter(|(_, token)| **token == "struct");
    starts.filter_map(|(at, _)| Some((*tokens.get(at + 1)?, public_fields(tokens.get(at + 2..)?)?))).collect()
}

/// Returns the number of public fields; `None` for a struct without named fields. `tokens` begin after the name.
fn public_fields(tokens: &[&str]) -> Option<usize> {
    let body = tokens.iter().position(|token| ["{", ";", "("].contains(token)).filter(|at| tokens[*at] == "{")?;
    let (mut depth, mut count) = (0_usize, 0);
    for token in &tokens[body..] {
        match *token {
            "{" | "(" | "[" => depth += 1,
            "}" | ")" | "]" if depth == 1 => break,
            "}" | ")" | "]" => depth -= 1,
            "pub" if depth == 1 => count += 1,
            _ => {}
        }
    }
    Some(count)
}

#[test]
fn structs_do_not_exceed_the_maximum_number_of_public_fields() {
    let mut found = BTreeSet::new();
    let mut faults = Vec::new();
    for source in products() {
        let code = source.code();
        for (name, count) in structs(&tokens(&code)).into_iter().filter(|(_, count)| *count > MAX_FIELDS) {
            let place = format!("{}: `{name}`", source.path);
            if !WIRE_FORMATS.iter().any(|(listed, _)| *listed == place) {
                faults.push(format!("{place} has {count} public fields, at most {MAX_FIELDS}"));
            }
            found.insert(place);
        }
    }
    let unused = WIRE_FORMATS.iter().filter(|(listed, _)| !found.contains(*listed));
    faults.extend(unused.map(|(listed, _)| format!("{listed}: the exception is no longer needed, remove it")));
    assert!(faults.is_empty(), "structs have too many public fields; group them or make them private:\n{}\n", faults.join("\n"));
}

#[test]
fn public_fields_are_counted_in_structs_with_named_fields() {
    let code = "pub struct A<T: B> where T: C { pub a: u8, b: (u8, u8), #[serde(default)] pub(crate) c: fn(pub_like) -> u8, \
                pub(in crate::d) e: [u8; 2] } struct F(pub u8, pub u8); struct G; struct H {} fn i() { let pub_x = 1; } \
                pub enum J { K { l: u8 } }";
    assert_eq!(structs(&tokens(code)), [("A", 3), ("H", 0)]);
}
