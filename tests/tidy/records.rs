//! Interpretation of journal records, which is restricted to one module.

use crate::modules::tokens;
use crate::source::{Role, sources};

/// The only module that may read the fields of a record.
const INTERPRETER: &str = "src/session/";

/// Returns the variants of `Record` that code matches on. Constructing a record is not a match.
fn matched<'a>(tokens: &[&'a str]) -> Vec<&'a str> {
    let variants = tokens.windows(3).enumerate().filter(|(_, window)| window[0] == "Record" && window[1] == "::");
    let matched = variants.filter(|(at, window)| {
        window[2].starts_with(char::is_uppercase) && {
            let (fields, after) = fields(&tokens[at + 3..]);
            fields.ends_with(&[".", "."]) || is_pattern(after)
        }
    });
    matched.map(|(_, window)| window[2]).collect()
}

/// Returns the tokens in the braces after a variant, and the tokens after the closing brace.
fn fields<'s, 'a>(tokens: &'s [&'a str]) -> (&'s [&'a str], &'s [&'a str]) {
    if tokens.first() != Some(&"{") {
        return (&[], tokens);
    }
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate() {
        match *token {
            "{" => depth += 1,
            "}" if depth == 1 => return (&tokens[1..at], &tokens[at + 1..]),
            "}" => depth -= 1,
            _ => {}
        }
    }
    (&[], tokens)
}

/// Returns whether the token after a variant shows that the variant is a pattern: `=>`, `|`, `if` or a single `=`.
fn is_pattern(after: &[&str]) -> bool {
    match after {
        ["=", ">", ..] | ["if", ..] => true,
        ["|", next, ..] => *next != "|",
        ["=", next, ..] => *next != "=",
        _ => false,
    }
}

#[test]
fn records_are_interpreted_in_one_module() {
    let mut found = Vec::new();
    for source in sources("src").iter().filter(|source| source.role == Role::Product && !source.path.starts_with(INTERPRETER)) {
        let code = source.code();
        found.extend(matched(&tokens(&code)).into_iter().map(|name| format!("{} matches `Record::{name}`", source.path)));
    }
    assert!(
        found.is_empty(),
        "only {INTERPRETER} knows what a record means; consume its changes instead:\n{}\n",
        found.join("\n")
    );
}

#[test]
fn matches_on_records_are_distinguished_from_constructors() {
    let code = "match r { Record::A { x, .. } => 1, Record::B | Record::C if x => 2 } if let Record::D { x } = r {}
                matches!(r, Record::E { .. }); let e = Record::F { x: G { ..G::new() } }; r == Record::H; vec![Record::I]";
    assert_eq!(matched(&tokens(code)), ["A", "B", "C", "D", "E"]);
}
