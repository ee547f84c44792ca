//! Detection of regular expressions in schemas that are not valid in any dialect.

use serde_json::{Map, Value};

/// Keywords whose values are data rather than schemas.
const DATA: [&str; 5] = ["const", "default", "enum", "example", "examples"];
/// Keywords whose values map names to schemas.
const TABLES: [&str; 6] = ["$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"];

/// Returns a description of the first invalid regular expression in a schema, or `None` if there is none.
pub(super) fn unreadable(schema: &Value) -> Option<String> {
    match schema {
        Value::Object(members) => unsupported_in_object(members),
        Value::Array(elements) => elements.iter().find_map(unreadable),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

fn unsupported_in_object(members: &Map<String, Value>) -> Option<String> {
    let told = |pattern: &str| fault(pattern).map(|why| format!("the pattern `{pattern}` is invalid: {why}"));
    members.iter().find_map(|(keyword, value)| match (keyword.as_str(), value) {
        ("pattern", Value::String(pattern)) => told(pattern),
        (keyword, _) if DATA.contains(&keyword) => None,
        (keyword, Value::Object(table)) if TABLES.contains(&keyword) => {
            let of_names = (keyword == "patternProperties").then(|| table.keys().find_map(|name| told(name))).flatten();
            of_names.or_else(|| table.values().find_map(unreadable))
        }
        _ => unreadable(value),
    })
}

/// Returns the reason why a pattern is invalid in every dialect, or `None` if it is valid in at least one. Servers use
/// ECMAScript, Python and PCRE patterns.
fn fault(pattern: &str) -> Option<&'static str> {
    let mut characters = pattern.chars().peekable();
    let (mut open, mut can_repeat) = (0_usize, false);
    while let Some(character) = characters.next() {
        match character {
            '\\' => {
                if characters.next().is_none() {
                    return Some("trailing backslash");
                }
                can_repeat = true;
            }
            '[' => {
                // In some dialects, a bracket at the start is a literal, and another bracket must follow.
                let _ = characters.next_if_eq(&'^');
                let mut is_closed = characters.next_if_eq(&']').is_some();
                while let Some(member) = characters.next() {
                    match member {
                        '\\' => drop(characters.next()),
                        ']' => {
                            is_closed = true;
                            break;
                        }
                        _ => {}
                    }
                }
                if !is_closed {
                    return Some("unclosed character class");
                }
                can_repeat = true;
            }
            '(' => {
                open += 1;
                // In `(?:`, `(?=`, `(?<name>` and similar, the question mark is not a repetition.
                let _ = characters.next_if_eq(&'?');
                can_repeat = false;
            }
            ')' => {
                open = match open.checked_sub(1) {
                    Some(open) => open,
                    None => return Some("unmatched `)`"),
                };
                can_repeat = true;
            }
            '*' | '+' | '?' => {
                if !can_repeat {
                    return Some("nothing to repeat");
                }
                // A second quantifier makes the first quantifier lazy or possessive.
                let _ = characters.next_if(|next| matches!(next, '?' | '+'));
                can_repeat = false;
            }
            '|' | '^' => can_repeat = false,
            _ => can_repeat = true,
        }
    }
    (open > 0).then_some("unclosed group")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn patterns_that_are_valid_in_any_dialect_are_accepted() {
        for pattern in [
            "",
            "^[a-z]+$",
            "(?=x)y",
            "(?<year>\\d{4})-\\1",
            "(?i)abc",
            "a{",
            "a{2,3}?",
            "a++b",
            "a*?b+?",
            "[]a]",
            "[^]]",
            "[[]",
            "[]",
            "\\(",
            "[(]",
            "(a|b)*",
            "(|a)",
            "^(?!-)[A-Za-z0-9-]{1,63}(?<!-)$",
            "\\u{1F600}?",
            "\\p{L}+",
            "$*",
            "(?P<n>a)(?P=n)",
        ] {
            assert_eq!(fault(pattern), None, "{pattern}");
        }
    }

    #[test]
    fn patterns_that_are_invalid_in_every_dialect_are_reported_anywhere_in_a_schema() {
        for (pattern, why) in [
            ("(", "unclosed"),
            ("a)", "unmatched"),
            ("[a-z", "class"),
            ("[a\\]", "class"),
            ("a\\", "backslash"),
            ("*a", "repeat"),
            ("a|+", "repeat"),
            ("(*)", "repeat"),
            ("a**", "repeat"),
        ] {
            assert!(fault(pattern).is_some_and(|told| told.contains(why)), "{pattern}: {:?}", fault(pattern));
            for schema in [
                json!({"properties": {"x": {"type": "string", "pattern": pattern}}}),
                json!({"properties": {"pattern": {"pattern": pattern}}}),
                json!({"patternProperties": {pattern: {}}}),
                json!({"$defs": {"default": {"items": {"anyOf": [{}, {"pattern": pattern}]}}}}),
                json!({"items": [{"pattern": pattern}]}),
            ] {
                assert!(unreadable(&schema).is_some_and(|told| told.contains(pattern)), "{schema}");
            }
        }
    }

    #[test]
    fn data_and_property_names_are_not_treated_as_patterns() {
        for schema in [
            json!({"properties": {"pattern": {"type": "string", "default": "(", "enum": ["("], "examples": [{"pattern": "("}]}}}),
            json!({"default": {"pattern": "("}}),
            json!({"properties": {"(": {"title": "("}}, "const": {"pattern": "("}}),
        ] {
            assert_eq!(unreadable(&schema), None, "{schema}");
        }
    }
}
