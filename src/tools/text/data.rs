//! Outlines data files by keys, tables, columns or paragraphs.

use super::outline::{Outline, Part, close, line_at, line_count, line_starts};
use crate::protocol::format_count;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::collections::HashSet;
use std::fmt;
use toml::de::{DeTable, DeValue};

/// Maximum number of keys to list at each level of a JSON file.
const MAX_KEYS: usize = 1_000;

/// One level of a JSON value, in the form in which it is written in the text.
enum Level<'a> {
    Object(Vec<(String, &'a RawValue)>),
    Array(Vec<&'a RawValue>),
    Other,
}

impl<'de> Deserialize<'de> for Level<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Level<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object or an array")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Level<'de>, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Level::Object(entries))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<Level<'de>, A::Error> {
                let mut items = Vec::new();
                while let Some(item) = values.next_element()? {
                    items.push(item);
                }
                Ok(Level::Array(items))
            }
        }
        deserializer.deserialize_any(Reader)
    }
}

fn level(raw: &str) -> Level<'_> {
    if raw.trim_start().starts_with(['{', '[']) { serde_json::from_str(raw).unwrap_or(Level::Other) } else { Level::Other }
}

pub(super) fn json(text: &str) -> Outline {
    let facts = |fact: String| Outline { kind: "JSON", facts: vec![fact], word: "key", ..Outline::default() };
    if let Err(error) = serde_json::from_str::<IgnoredAny>(text) {
        return facts(format!("invalid: {error}"));
    }
    let starts = line_starts(text);
    let mut parts = Vec::new();
    let fact = match level(text) {
        Level::Object(entries) => {
            for (name, raw) in &entries {
                parts.push(value(text, &starts, 1, name, raw));
                if let Level::Object(inner) = level(raw.get()) {
                    parts.extend(inner.iter().map(|(name, raw)| value(text, &starts, 2, name, raw)));
                }
                if parts.len() > MAX_KEYS {
                    break;
                }
            }
            format_count(entries.len() as u64, "key", "keys")
        }
        Level::Array(items) => {
            let first = items.first().map(|first| level(first.get()));
            match first {
                Some(Level::Object(entries)) => {
                    let names: Vec<_> = entries.iter().take(20).map(|(name, _)| format!("`{name}`")).collect();
                    format!(
                        "an array of {}, the first with {}",
                        format_count(items.len() as u64, "item", "items"),
                        names.join(", ")
                    )
                }
                _ => format!("an array of {}", format_count(items.len() as u64, "item", "items")),
            }
        }
        Level::Other => "a single value".to_owned(),
    };
    Outline { parts, ..facts(fact) }
}

/// Returns the outline entry for a key, including the position and type of its value.
fn value(text: &str, starts: &[usize], depth: usize, name: &str, raw: &RawValue) -> Part {
    let (start, length) = ((raw.get().as_ptr() as usize).saturating_sub(text.as_ptr() as usize), raw.get().len());
    let what = match level(raw.get()) {
        Level::Object(entries) => format!("object, {}", format_count(entries.len() as u64, "key", "keys")),
        Level::Array(items) => format!("array, {}", format_count(items.len() as u64, "item", "items")),
        Level::Other => match raw.get().as_bytes().first() {
            Some(b'"') => "string".to_owned(),
            Some(b't' | b'f') => "boolean".to_owned(),
            Some(b'n') => "null".to_owned(),
            _ => "number".to_owned(),
        },
    };
    let (first, last) = (line_at(starts, start), line_at(starts, start + length.saturating_sub(1)));
    Part { level: depth, title: format!("{name} ({what})"), first, heading: first, last }
}

pub(super) fn json_lines(text: &str) -> Outline {
    let mut outline = plain_outline(text);
    outline.kind = "JSON Lines";
    let first = text.lines().find(|line| !line.trim().is_empty()).map(level);
    if let Some(Level::Object(entries)) = first {
        let names: Vec<_> = entries.iter().take(20).map(|(name, _)| format!("`{name}`")).collect();
        outline.facts = vec![format!("the first line has {}", names.join(", "))];
    }
    outline
}

pub(super) fn toml(text: &str) -> Outline {
    let starts = line_starts(text);
    let mut facts = Vec::new();
    let mut parts: Vec<Part> = Vec::new();
    match DeTable::parse(text) {
        Ok(table) => {
            let mut keys = HashSet::new();
            key_lines(table.get_ref(), &starts, &mut keys);
            // A line inside an array or a string may look like a header but has no key.
            let headers = headers(text, |line| keys.contains(&line));
            let before = headers.first().map_or(usize::MAX, |part| part.first);
            for (name, value) in table.get_ref() {
                let first = line_at(&starts, name.span().start);
                if first < before {
                    let last = line_at(&starts, value.span().end.saturating_sub(1)).max(first);
                    parts.push(Part { level: 1, title: name.get_ref().to_string(), first, heading: first, last });
                }
            }
            parts.sort_by_key(|part| part.first);
            parts.extend(headers);
        }
        Err(error) => {
            facts.push(format!("invalid: {}", error.message()));
            parts = headers(text, |_| true);
        }
    }
    Outline { kind: "TOML", facts, parts, word: "table", is_patchable: true }
}

/// Collects the lines on which keys start, including those in arrays of tables.
fn key_lines(table: &DeTable<'_>, starts: &[usize], lines: &mut HashSet<usize>) {
    for (name, value) in table {
        lines.insert(line_at(starts, name.span().start));
        collect_lines(value.get_ref(), starts, lines);
    }
}

fn collect_lines(value: &DeValue<'_>, starts: &[usize], lines: &mut HashSet<usize>) {
    match value {
        DeValue::Table(table) => key_lines(table, starts, lines),
        // In an array of tables, only the first has a header position; the line scan finds the others.
        DeValue::Array(items) => items.iter().for_each(|item| {
            lines.insert(line_at(starts, item.span().start));
            collect_lines(item.get_ref(), starts, lines);
        }),
        _ => {}
    }
}

pub(super) fn ini(text: &str) -> Outline {
    let parts = headers(text, |_| true);
    Outline { kind: "INI", facts: Vec::new(), parts, word: "section", is_patchable: true }
}

/// Finds lines of the form `[name]` or `[[name]]`. Each section extends to the next such line.
fn headers(text: &str, is_one: impl Fn(usize) -> bool) -> Vec<Part> {
    let mut parts: Vec<Part> = text
        .lines()
        .enumerate()
        .filter_map(|(index, line)| {
            let line = line.trim();
            let header = line.split_once(['#', ';']).map_or(line, |(before, _)| before.trim_end());
            let name = header.strip_prefix('[')?.strip_suffix(']')?;
            let plain = !name.is_empty() && !name.contains(',') && is_one(index + 1);
            let (title, first) = (header.to_owned(), index + 1);
            plain.then_some(Part { level: 1, title, first, heading: first, last: first })
        })
        .collect();
    close(&mut parts, line_count(text));
    parts
}

/// Outlines YAML by its indentation. The outline contains the outermost keys and those one level below.
pub(super) fn yaml(text: &str) -> Outline {
    let mut parts: Vec<Part> = Vec::new();
    // Indentation of the keys below the current one; none if its value is text.
    let mut inner: Option<Option<usize>> = None;
    for (index, line) in text.lines().enumerate() {
        let indent = line.len() - line.trim_start_matches(' ').len();
        let Some((name, value)) = key(line.trim_start_matches(' ')) else { continue };
        let first = index + 1;
        let part = |level| Part { level, title: name.to_owned(), first, heading: first, last: first };
        if indent == 0 {
            parts.push(part(1));
            let is_text = value.starts_with(['|', '>']);
            inner = (!is_text).then_some(None);
        } else if let Some(depth) = &mut inner
            && *depth.get_or_insert(indent) == indent
        {
            parts.push(part(2));
        }
    }
    close(&mut parts, line_count(text));
    let documents = text.lines().filter(|line| *line == "---").count();
    let facts = if documents > 1 { vec![format!("{documents} documents")] } else { Vec::new() };
    Outline { kind: "YAML", facts, parts, word: "key", is_patchable: false }
}

/// Parses a line of the form `name: value`.
fn key(line: &str) -> Option<(&str, &str)> {
    if line.starts_with(['#', '-', '[', '{', '!', '&', '*', '|', '>', '%', '@']) {
        return None;
    }
    let (name, value) = line.split_once(':')?;
    (value.is_empty() || value.starts_with(' ')).then(|| (name.trim_matches(['"', '\'']), value.trim()))
}

pub(super) fn columns(text: &str, separator: char) -> Outline {
    let kind = if separator == ',' { "CSV" } else { "TSV" };
    let names: Vec<_> =
        text.lines().next().unwrap_or_default().split(separator).map(|name| name.trim().trim_matches('"')).collect();
    let shown: Vec<_> = names.iter().take(50).map(|name| format!("`{name}`")).collect();
    let rows = line_count(text).saturating_sub(1);
    let facts = vec![
        format!("{}: {}", format_count(names.len() as u64, "column", "columns"), shown.join(", ")),
        format!("{} below the first", format_count(rows as u64, "line", "lines")),
    ];
    Outline { kind, facts, ..Outline::default() }
}

pub(super) fn plain_outline(text: &str) -> Outline {
    let (mut paragraphs, mut blank, mut within) = (0_usize, 0_usize, false);
    for line in text.lines() {
        let empty = line.trim().is_empty();
        blank += usize::from(empty);
        paragraphs += usize::from(!empty && !within);
        within = !empty;
    }
    let longest = text.lines().map(str::len).max().unwrap_or(0);
    let facts = vec![format!(
        "{}, {}, longest line {longest} bytes",
        format_count(paragraphs as u64, "paragraph", "paragraphs"),
        format_count(blank as u64, "empty line", "empty lines")
    )];
    Outline { kind: "text", facts, ..Outline::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn describe_outline(outline: Outline) -> Vec<(usize, String, usize, usize)> {
        outline.parts.into_iter().map(|part| (part.level, part.title, part.first, part.last)).collect()
    }

    #[test]
    fn json_outlines_list_keys_with_line_ranges() {
        let text = "{\n  \"name\": \"x\",\n  \"scripts\": {\n    \"a\": 1,\n    \"b\": [1,\n 2]\n  }\n}\n";
        let keys = [
            (1, "name (string)", 2, 2),
            (1, "scripts (object, 2 keys)", 3, 7),
            (2, "a (number)", 4, 4),
            (2, "b (array, 2 items)", 5, 6),
        ];
        assert_eq!(describe_outline(json(text)), keys.map(|(level, title, first, last)| (level, title.to_owned(), first, last)));
        assert!(json("{\"a\":").facts[0].starts_with("invalid: EOF"));
        assert_eq!(json("[{\"a\": 1}, 2]").facts, ["an array of 2 items, the first with `a`"]);
        assert_eq!(json("7").facts, ["a single value"]);
    }

    #[test]
    fn toml_outlines_list_tables_and_no_lookalikes() {
        let text =
            "top = 1\nlist = [\n  [\"x\"],\n]\ntext = \"\"\"\n[no]\n\"\"\"\n[a]\nx = 1\n[[b]]\ny = 1\n[[b]]\n[c.d] # why\n";
        let titles: Vec<_> =
            describe_outline(toml(text)).into_iter().map(|(_, title, first, last)| (title, first, last)).collect();
        let expected = [
            ("top", 1, 1),
            ("list", 2, 4),
            ("text", 5, 7),
            ("[a]", 8, 9),
            ("[[b]]", 10, 11),
            ("[[b]]", 12, 12),
            ("[c.d]", 13, 13),
        ];
        assert_eq!(titles, expected.map(|(title, first, last)| (title.to_owned(), first, last)));
    }

    #[test]
    fn yaml_outlines_list_two_levels_of_keys() {
        let text = "# c\na: 1\nb:\n  c: 2\n  d:\n    e: 3\ntext: |\n  not: a key\n'q': [x]\n";
        let expected = [(1, "a", 2, 2), (1, "b", 3, 6), (2, "c", 4, 4), (2, "d", 5, 6), (1, "text", 7, 8), (1, "q", 9, 9)];
        assert_eq!(
            describe_outline(yaml(text)),
            expected.map(|(level, title, first, last)| (level, title.to_owned(), first, last))
        );
    }

    #[test]
    fn delimited_text_outlines_list_columns() {
        assert_eq!(columns("a,\"b\",c\n1,2,3\n", ',').facts, ["3 columns: `a`, `b`, `c`", "1 line below the first"]);
        assert_eq!(plain_outline("one\ntwo\n\nthree\n").facts, ["2 paragraphs, 1 empty line, longest line 5 bytes"]);
    }
}
