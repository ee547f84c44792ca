//! Front matter: YAML between two `---` lines at the start of a file.

use super::fault::Fault;
use saphyr_parser::{Event, Parser, ScalarStyle, Span};
use std::iter::Peekable;

/// Maximum size of the front matter, in bytes.
const MAX_BYTES: usize = 64 << 10;
/// Maximum nesting depth of values.
const MAX_DEPTH: usize = 16;

/// Value of a front matter key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FrontMatterValue {
    Text(String),
    List(Vec<String>),
    /// Mapping, or a list that contains values other than text.
    Nested,
}

/// Front matter key and its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FrontMatterEntry {
    pub key: String,
    pub value: FrontMatterValue,
    /// Line of the file on which the key appears (1-based).
    pub line: usize,
}

/// Front matter entries and body of a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FrontMatterFile<'a> {
    pub entries: Vec<FrontMatterEntry>,
    /// Text after the front matter.
    pub body: &'a str,
}

type Events<'a> = Peekable<Parser<'a, saphyr_parser::StrInput<'a>>>;

/// Parses a file into its front matter entries and its body.
///
/// # Errors
/// Returns an error if the front matter is missing, unterminated, too long, or not a YAML mapping.
pub(crate) fn parse(text: &str) -> Result<FrontMatterFile<'_>, Fault> {
    let (header, body) = split_front_matter(text)?;
    Ok(FrontMatterFile { entries: entries(header)?, body })
}

/// Splits a file into its front matter and its body without parsing either.
///
/// # Errors
/// Returns an error if the front matter is missing, unterminated or too long.
pub(crate) fn split_front_matter(text: &str) -> Result<(&str, &str), Fault> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let first = text.split_inclusive('\n').next().unwrap_or_default();
    if first.trim_end() != "---" {
        return Err(Fault::at(
            1,
            "the file does not begin with front matter; begin it with a line `---`, then `name:` and `description:`",
        ));
    }
    let rest = &text[first.len()..];
    let mut end = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_end() == "---" {
            return Ok((&rest[..end], &rest[end + line.len()..]));
        }
        end += line.len();
        if end > MAX_BYTES {
            return Err(Fault::at(1, format!("the front matter is longer than {} KB", MAX_BYTES >> 10)));
        }
    }
    Err(Fault::at(1, "the front matter is not closed; end it with a line `---`"))
}

/// Converts a position in the front matter to a line number in the file. The front matter begins on line 2.
fn line_number(span: Span) -> usize {
    span.start.line() + 1
}

fn next<'a>(events: &mut Events<'a>) -> Result<Option<(Event<'a>, Span)>, Fault> {
    match events.next().transpose() {
        Ok(Some((Event::Alias(_), span))) => {
            Err(Fault::at(line_number(span), "aliases such as `*name` are not supported; write the value out"))
        }
        Ok(event) => Ok(event),
        Err(error) => {
            let hint = "put a value with `: ` or ` #` in quotes";
            Err(Fault::at(error.marker().line() + 1, format!("the front matter is not valid YAML: {}; {hint}", error.info())))
        }
    }
}

/// Parses a YAML mapping into entries.
fn entries(header: &str) -> Result<Vec<FrontMatterEntry>, Fault> {
    let mut events = Parser::new_from_str(header).peekable();
    let mut entries: Vec<FrontMatterEntry> = Vec::new();
    loop {
        match next(&mut events)? {
            None | Some((Event::StreamEnd, _)) => return Ok(entries),
            Some((Event::MappingStart(..), _)) if entries.is_empty() => break,
            Some((Event::StreamStart | Event::DocumentStart(_) | Event::DocumentEnd | Event::Nothing, _)) => {}
            Some((Event::Scalar(text, ..), _)) if text.is_empty() => {}
            Some((_, span)) => {
                return Err(Fault::at(line_number(span), "the front matter is not a list of keys in the form `key: value`"));
            }
        }
    }
    while let Some((event, span)) = next(&mut events)? {
        let line = line_number(span);
        match event {
            Event::MappingEnd => break,
            Event::Scalar(key, ..) => {
                if let Some(other) = entries.iter().find(|entry| entry.key == key) {
                    let message = format!("`{}` is already set on line {}", key.escape_debug(), other.line);
                    return Err(Fault::at(line, message));
                }
                let value = value(&mut events)?;
                entries.push(FrontMatterEntry { key: key.into_owned(), value, line });
            }
            _ => return Err(Fault::at(line, "a key must be text")),
        }
    }
    Ok(entries)
}

fn value(events: &mut Events<'_>) -> Result<FrontMatterValue, Fault> {
    match next(events)? {
        Some((Event::Scalar(text, style, ..), _)) => Ok(FrontMatterValue::Text(scalar(&text, style))),
        Some((Event::SequenceStart(..), _)) => list(events),
        Some((Event::MappingStart(..), _)) => skip(events).map(|()| FrontMatterValue::Nested),
        Some(_) | None => Ok(FrontMatterValue::Text(String::new())),
    }
}

/// Returns the text of a scalar. A plain `~`, which means null in YAML, becomes an empty string.
fn scalar(text: &str, style: ScalarStyle) -> String {
    if style == ScalarStyle::Plain && text == "~" { String::new() } else { text.to_owned() }
}

fn list(events: &mut Events<'_>) -> Result<FrontMatterValue, Fault> {
    let (mut items, mut is_nested) = (Vec::new(), false);
    while let Some((event, _)) = next(events)? {
        match event {
            Event::SequenceEnd => break,
            Event::Scalar(text, style, ..) => items.push(scalar(&text, style)),
            _ => {
                is_nested = true;
                skip(events)?;
            }
        }
    }
    Ok(if is_nested { FrontMatterValue::Nested } else { FrontMatterValue::List(items) })
}

/// Skips the rest of a nested value whose start event has already been consumed.
fn skip(events: &mut Events<'_>) -> Result<(), Fault> {
    let mut depth = 1;
    while let Some((event, span)) = next(events)? {
        match event {
            Event::MappingStart(..) | Event::SequenceStart(..) => depth += 1,
            Event::MappingEnd | Event::SequenceEnd => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            break;
        }
        if depth > MAX_DEPTH {
            return Err(Fault::at(line_number(span), format!("more than {MAX_DEPTH} nested values")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(header: &str) -> Vec<(String, FrontMatterValue, usize)> {
        let text = format!("---\n{header}\n---\nBody\n");
        let document = parse(&text).unwrap();
        assert_eq!(document.body, "Body\n");
        document.entries.into_iter().map(|entry| (entry.key, entry.value, entry.line)).collect()
    }

    fn text(value: &str) -> FrontMatterValue {
        FrontMatterValue::Text(value.to_owned())
    }

    #[test]
    fn every_value_syntax_is_parsed() {
        for (header, value) in [
            ("a: plain words", text("plain words")),
            ("a: \"quoted: \\\"x\\\" # y\"", text("quoted: \"x\" # y")),
            ("a: 'it''s'", text("it's")),
            ("a: words # a comment", text("words")),
            ("a: >\n  folded\n  text\n\n  more", text("folded text\nmore\n")),
            ("a: >-\n  folded\n  text", text("folded text")),
            ("a: |\n  two\n    lines\n", text("two\n  lines\n")),
            ("a: over\n  two lines", text("over two lines")),
            ("a:", text("")),
            ("a: ~", text("")),
            ("a: true", text("true")),
            ("a: [x, 'y, z']", FrontMatterValue::List(vec!["x".to_owned(), "y, z".to_owned()])),
            ("a:\n  - x\n  # comment\n  - Bash(git:*)\n", FrontMatterValue::List(vec!["x".to_owned(), "Bash(git:*)".to_owned()])),
            ("a:\n  b: c\n  d: [e, {f: g}]", FrontMatterValue::Nested),
            ("a: [x, {y: z}, w]", FrontMatterValue::Nested),
            ("a: größe", text("größe")),
        ] {
            assert_eq!(read(header), [("a".to_owned(), value, 2)], "{header}");
        }
        let several = read("# comment\nname: x\n\nmetadata:\n  a: b\nlast: 1");
        let lines: Vec<(&str, usize)> = several.iter().map(|(key, _, line)| (key.as_str(), *line)).collect();
        assert_eq!(lines, [("name", 3), ("metadata", 5), ("last", 7)]);
        assert!(read("").is_empty() && read("# only a comment").is_empty());
    }

    #[test]
    fn front_matter_errors_have_a_line_number() {
        for (content, line, part) in [
            ("no front matter", 1, "begin it with a line `---`"),
            ("", 1, "begin it with"),
            ("---\nname: x\n", 1, "not closed"),
            ("---\nname: x\ndescription: Use when: asked\n---\n", 3, "not valid YAML"),
            ("---\nname: x\nlist: [a, b\n---\n", 4, "not valid YAML"),
            ("---\nname: x\nname: y\n---\n", 3, "already set on line 2"),
            ("---\n- a\n- b\n---\n", 2, "not a list of keys"),
            ("---\njust words\n---\n", 2, "not a list of keys"),
            ("---\na: &x 1\nb: *x\n---\n", 3, "aliases"),
            ("---\n? [a, b]\n: c\n---\n", 2, "a key must be text"),
        ] {
            let fault = parse(content).unwrap_err();
            assert!(fault.message.contains(part), "{content}: {fault:?}");
            assert!(fault.line.unwrap().abs_diff(line) <= 1, "{content}: {fault:?}");
        }
        let deep = format!("---\na: {}{}\n---\n", "[".repeat(200), "]".repeat(200));
        assert!(parse(&deep).is_err());
        let long = format!("---\na: {}\n---\n", "x".repeat(MAX_BYTES));
        assert!(parse(&long).unwrap_err().message.contains("longer than 64 KB"));
    }

    #[test]
    fn windows_line_endings_and_a_byte_order_mark_are_accepted() {
        let document = parse("\u{feff}---\r\nname: x\r\n---\r\nBody\r\n").unwrap();
        assert_eq!((document.entries[0].value.clone(), document.body), (text("x"), "Body\r\n"));
    }

    proptest! {
        #[test]
        fn arbitrary_text_does_not_panic(content in "---\n[a-c:\\[\\]{}&*!|>'\"%@` \n#?,~-]{0,120}\n---\n") {
            let _ = parse(&content);
        }
    }
}
