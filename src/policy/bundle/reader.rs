//! Reads TOML tables and records the line of every value, so errors can refer to it.

use jiff::Timestamp;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Error that explains why a bundle was rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{}: {message}", name, line.map_or(String::new(), |line| format!(" line {line}")))]
pub struct BundleError {
    /// File name, as passed by the caller.
    pub name: String,
    pub line: Option<usize>,
    pub message: String,
}

/// Source text of a bundle.
pub struct Source<'a> {
    pub name: &'a str,
    /// Byte offsets of the line breaks.
    breaks: Vec<usize>,
}

impl<'a> Source<'a> {
    pub fn new(text: &str, name: &'a str) -> Self {
        Self { name, breaks: text.match_indices('\n').map(|(at, _)| at).collect() }
    }

    pub fn line(&self, span: &Range<usize>) -> usize {
        1 + self.breaks.partition_point(|at| *at < span.start)
    }

    pub fn error(&self, span: &Range<usize>, message: impl Into<String>) -> BundleError {
        BundleError { name: self.name.to_owned(), line: Some(self.line(span)), message: message.into() }
    }
}

/// A table and its header, such as `[capabilities."File.Read"]`.
#[derive(Clone)]
pub struct BundleTable<'a> {
    pub source: &'a Source<'a>,
    pub table: &'a DeTable<'a>,
    pub span: Range<usize>,
    pub title: String,
}

type Read<T> = Result<T, BundleError>;

/// A string and its position in the source.
pub struct SpannedText {
    pub text: String,
    pub span: Range<usize>,
}

impl<'a> BundleTable<'a> {
    pub fn line(&self) -> usize {
        self.source.line(&self.span)
    }

    /// Returns an error if the table contains a key that is not in `known`.
    pub fn only(&self, known: &[&str]) -> Read<()> {
        for key in self.table.keys() {
            let name = key.get_ref().as_ref();
            if !known.contains(&name) {
                let place = if self.title.is_empty() { String::new() } else { format!(" in {}", self.title) };
                return Err(self.source.error(&key.span(), format!("unknown key `{name}`{place}; {}", suggestion(name, known))));
            }
        }
        Ok(())
    }

    fn get(&self, key: &str) -> Option<&'a Spanned<DeValue<'a>>> {
        self.table.iter().find(|(name, _)| name.get_ref() == key).map(|(_, value)| value)
    }

    pub fn line_number(&self, key: &str) -> Option<usize> {
        self.get(key).map(|value| self.source.line(&value.span()))
    }

    pub fn type_error(&self, key: &str, value: &Spanned<DeValue<'_>>, expected: &str) -> BundleError {
        let found = kind(value.get_ref());
        self.source.error(&value.span(), format!("`{key}` is {found}; expected {expected}"))
    }

    pub fn text(&self, key: &str) -> Read<Option<SpannedText>> {
        let Some(value) = self.get(key) else { return Ok(None) };
        match value.get_ref().as_str() {
            Some(text) => Ok(Some(SpannedText { text: text.to_owned(), span: value.span() })),
            None => Err(self.type_error(key, value, "a string")),
        }
    }

    pub fn required_text(&self, key: &str) -> Read<SpannedText> {
        let missing = || self.source.error(&self.span, format!("{} has no `{key}`", self.title));
        self.text(key)?.ok_or_else(missing)
    }

    pub fn switch(&self, key: &str) -> Read<Option<bool>> {
        let Some(value) = self.get(key) else { return Ok(None) };
        value.get_ref().as_bool().map(Some).ok_or_else(|| self.type_error(key, value, "true or false"))
    }

    pub fn number(&self, key: &str) -> Read<Option<u64>> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let number = value.get_ref().as_integer().and_then(|number| u64::from_str_radix(number.as_str(), number.radix()).ok());
        number.map(Some).ok_or_else(|| self.type_error(key, value, "an integer of at least 0"))
    }

    /// Returns an error at the position of the key's value, or of the whole table if the key is missing.
    pub fn error_at(&self, key: &str, message: &str) -> BundleError {
        let span = self.get(key).map_or_else(|| self.span.clone(), Spanned::span);
        self.source.error(&span, message.to_owned())
    }

    pub fn amount(&self, key: &str) -> Read<Option<f64>> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let float = value.get_ref().as_float().and_then(|float| float.as_str().parse::<f64>().ok());
        let whole = value.get_ref().as_integer().and_then(|number| number.as_str().parse::<f64>().ok());
        let amount = float.or(whole).filter(|amount| amount.is_finite() && *amount >= 0.0);
        amount.map(Some).ok_or_else(|| self.type_error(key, value, "a number of at least 0"))
    }

    pub fn timestamp(&self, key: &str) -> Read<Option<Timestamp>> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let text = value.get_ref().as_datetime().map(ToString::to_string);
        let time = text.and_then(|text| text.parse::<Timestamp>().ok());
        time.map(Some).ok_or_else(|| self.type_error(key, value, "a time with an offset, such as 2027-06-30T00:00:00Z"))
    }

    pub fn texts(&self, key: &str) -> Read<Option<Vec<SpannedText>>> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let expected = "an array of strings";
        let Some(array) = value.get_ref().as_array() else { return Err(self.type_error(key, value, expected)) };
        let one = |item: &Spanned<DeValue<'_>>| match item.get_ref().as_str() {
            Some(text) => Ok(SpannedText { text: text.to_owned(), span: item.span() }),
            None => {
                Err(self.source.error(&item.span(), format!("`{key}` contains {}; expected {expected}", kind(item.get_ref()))))
            }
        };
        array.iter().map(one).collect::<Read<Vec<SpannedText>>>().map(Some)
    }

    /// Reads an array in which each item is a string or an array of strings.
    pub fn alternatives(&self, key: &str) -> Read<Option<Vec<Vec<SpannedText>>>> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let expected = "an array of words, each a string or an array of strings";
        let Some(array) = value.get_ref().as_array() else { return Err(self.type_error(key, value, expected)) };
        let text = |item: &Spanned<DeValue<'_>>| match item.get_ref().as_str() {
            Some(text) => Ok(SpannedText { text: text.to_owned(), span: item.span() }),
            None => {
                Err(self.source.error(&item.span(), format!("`{key}` contains {}; expected {expected}", kind(item.get_ref()))))
            }
        };
        let one = |item: &Spanned<DeValue<'_>>| match item.get_ref().as_array() {
            Some(inner) => inner.iter().map(text).collect::<Read<Vec<SpannedText>>>(),
            None => text(item).map(|text| vec![text]),
        };
        array.iter().map(one).collect::<Read<Vec<Vec<SpannedText>>>>().map(Some)
    }

    pub fn choice<T: Copy>(&self, key: &str, choices: &[(&str, T)]) -> Read<Option<T>> {
        let Some(found) = self.text(key)? else { return Ok(None) };
        let chosen = choices.iter().find(|(name, _)| *name == found.text).map(|(_, value)| *value);
        let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
        chosen.map(Some).ok_or_else(|| {
            self.source.error(&found.span, format!("unknown {key} `{}`; expected {}", found.text, join_alternatives(&names)))
        })
    }

    pub fn is_text(&self, key: &str) -> bool {
        self.get(key).is_some_and(|value| value.get_ref().is_str())
    }

    pub fn section(&self, key: &str) -> Read<Option<BundleTable<'a>>> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let Some(table) = value.get_ref().as_table() else { return Err(self.type_error(key, value, "a table")) };
        let key = if key.contains('.') { format!("\"{key}\"") } else { key.to_owned() };
        let title = self.title.trim_matches(['[', ']']);
        let title = if title.is_empty() { format!("[{key}]") } else { format!("[{title}.{key}]") };
        Ok(Some(BundleTable { source: self.source, table, span: value.span(), title }))
    }

    /// Returns all nested tables, each with its name and the position of that name.
    pub fn children(&self) -> Read<Vec<(SpannedText, BundleTable<'a>)>> {
        let mut children = Vec::new();
        for key in self.table.keys() {
            let name = SpannedText { text: key.get_ref().to_string(), span: key.span() };
            if let Some(section) = self.section(&name.text)? {
                children.push((name, section));
            }
        }
        Ok(children)
    }

    pub fn sections(&self, key: &str) -> Read<Vec<BundleTable<'a>>> {
        let Some(value) = self.get(key) else { return Ok(Vec::new()) };
        let expected = format!("tables with the header [[{key}]]");
        let Some(array) = value.get_ref().as_array() else { return Err(self.type_error(key, value, &expected)) };
        let one = |item: &'a Spanned<DeValue<'a>>| match item.get_ref().as_table() {
            Some(table) => Ok(BundleTable { source: self.source, table, span: item.span(), title: format!("[[{key}]]") }),
            None => Err(self.type_error(key, item, &expected)),
        };
        array.iter().map(one).collect()
    }
}

fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "an integer",
        DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "a boolean",
        DeValue::Datetime(_) => "a time",
        DeValue::Array(_) => "an array",
        DeValue::Table(_) => "a table",
    }
}

/// Joins names into a phrase such as "allow, ask or deny". Returns "nothing" for an empty list.
pub(crate) fn join_alternatives(names: &[&str]) -> String {
    match names {
        [] => "nothing".to_owned(),
        [only] => (*only).to_owned(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

/// Returns "did you mean …?" if a known name is similar to `name`, or a list of all known names otherwise.
pub(crate) fn suggestion(name: &str, known: &[&str]) -> String {
    let near = known.iter().map(|known| (strsim::damerau_levenshtein(name, known), *known)).min();
    match near {
        Some((distance, known)) if distance <= 1 + known.len() / 4 => format!("did you mean `{known}`?"),
        _ => format!("expected {}", join_alternatives(known)),
    }
}
