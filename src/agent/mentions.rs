//! `@src/main.rs` in a prompt: which files a person names, and where in them.

use super::limits::MAX_MENTIONS;
use crate::protocol::{Arguments, CallId, ToolCall};
use serde_json::{Map, Value};

/// A file or a directory that a prompt names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mention {
    pub path: String,
    /// The first line and the last, counted from 1.
    pub lines: Option<(u64, u64)>,
}

impl Mention {
    /// The call that reads it.
    pub fn call(&self, number: usize) -> ToolCall {
        let mut arguments = Map::new();
        arguments.insert("path".to_owned(), Value::String(self.path.clone()));
        if let Some((first, last)) = self.lines {
            arguments.insert("offset".to_owned(), first.into());
            arguments.insert("limit".to_owned(), (last - first + 1).into());
        }
        let tool_name = if self.path.ends_with('/') { "ListDirectory" } else { "ReadFile" };
        ToolCall {
            tool_call_id: CallId::new(format!("mention_{number}")),
            tool_name: tool_name.to_owned(),
            arguments: Arguments::Object(arguments),
        }
    }

    /// Whether it can only mean a file: `@name` alone may be a person or a decorator.
    pub fn is_a_path(&self) -> bool {
        self.path.contains(['/', '.'])
    }
}

/// The files that a prompt names, each once, in their order; the first ones of very many.
pub fn mentions(text: &str) -> Vec<Mention> {
    let mut found: Vec<Mention> = Vec::new();
    let mut before = None;
    for (at, letter) in text.char_indices() {
        let begins = letter == '@' && before.is_none_or(|one: char| one.is_whitespace() || "([{<\"'`,;".contains(one));
        before = Some(letter);
        if begins
            && let Some(mention) = mention(&text[at + 1..])
            && !found.contains(&mention)
        {
            found.push(mention);
            if found.len() == MAX_MENTIONS {
                break;
            }
        }
    }
    found
}

fn mention(rest: &str) -> Option<Mention> {
    if let Some(quoted) = rest.strip_prefix('"') {
        let (path, after) = quoted.split_once('"').filter(|(path, _)| !path.is_empty() && !path.contains('\n'))?;
        return Some(Mention { path: path.to_owned(), lines: after.strip_prefix('#').and_then(lines) });
    }
    let end = rest.find(|one: char| one.is_whitespace() || "\"'`<>()[]{}|,;".contains(one)).unwrap_or(rest.len());
    let word = rest[..end].trim_end_matches(['.', ':', '!', '?']);
    let (path, lines) = match word.rsplit_once('#') {
        Some((path, range)) if lines(range).is_some() => (path, lines(range)),
        _ => (word, None),
    };
    (!path.is_empty() && !path.starts_with('@')).then(|| Mention { path: path.to_owned(), lines })
}

/// `L10`, `10`, `L10-20`, `10-20`, `L10-L20`.
fn lines(range: &str) -> Option<(u64, u64)> {
    let number = |text: &str| {
        let digits = text.strip_prefix(['L', 'l']).unwrap_or(text);
        let digits = digits.find(|one: char| !one.is_ascii_digit()).map_or(digits, |end| &digits[..end]);
        digits.parse::<u64>().ok().filter(|line| *line > 0)
    };
    let (first, last) = range.split_once('-').unwrap_or((range, range));
    let (first, last) = (number(first)?, number(last)?);
    Some((first.min(last), first.max(last)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn files_are_named_by_words_that_begin_with_an_at_sign() {
        type Named = (&'static str, Option<(u64, u64)>);
        let cases: &[(&str, &[Named])] = &[
            ("look at @src/main.rs, and (@Cargo.toml).", &[("src/main.rs", None), ("Cargo.toml", None)]),
            ("@src/main.rs:", &[("src/main.rs", None)]),
            (
                "@a.rs#L10-20 @b.rs#7 @c.rs#L3-L1 @d.rs#top",
                &[("a.rs", Some((10, 20))), ("b.rs", Some((7, 7))), ("c.rs", Some((1, 3))), ("d.rs#top", None)],
            ),
            ("@\"my notes/to do.md\" and @\"x y\"#L2", &[("my notes/to do.md", None), ("x y", Some((2, 2)))]),
            ("all of @src/ and again @src/", &[("src/", None)]),
            ("`@types/node` is\n@~/x", &[("types/node", None), ("~/x", None)]),
            ("write to me@example.org @ home, @@ and @", &[]),
            ("@a.rs#L0 @\"", &[("a.rs#L0", None)]),
        ];
        for (text, expected) in cases {
            let found: Vec<_> = mentions(text).into_iter().map(|one| (one.path, one.lines)).collect();
            let expected: Vec<_> = expected.iter().map(|(path, lines)| ((*path).to_owned(), *lines)).collect();
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn a_range_of_lines_is_read_and_a_directory_is_listed() {
        let call = |text: &str| mentions(text)[0].call(1);
        let read = call("@a.rs#L10-12");
        assert_eq!(read.tool_name, "ReadFile");
        assert_eq!(serde_json::to_string(&read.arguments).unwrap(), r#"{"path":"a.rs","offset":10,"limit":3}"#);
        assert_eq!(call("@src/").tool_name, "ListDirectory");
    }

    proptest! {
        #[test]
        fn whatever_is_typed_names_a_bounded_number_of_files(text in "[@a/.#L0-9\" \\n(é]{0,200}") {
            let found = mentions(&text);
            prop_assert!(found.len() <= MAX_MENTIONS);
            for mention in found {
                prop_assert!(!mention.path.is_empty() && text.contains(&mention.path));
                prop_assert!(mention.lines.is_none_or(|(first, last)| first > 0 && first <= last));
            }
        }
    }
}
