//! Parsing of a configuration file or a `--set` option into validated values.

use super::ConfigError;
use super::schema::{self, KEYS, ValueType};
use crate::protocol::{AssumedPrice, Problem};
use std::collections::BTreeMap;
use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

/// Maximum size of a configuration file in bytes.
const FILE_BYTES: u64 = 1 << 20;

/// Number of millionths in a US dollar.
pub(super) const MILLIONTHS: f64 = 1e6;
const MAX_DOLLARS: f64 = 1e9;

/// Keys that are set, by path, with their values.
pub(super) type Values = BTreeMap<Vec<String>, ConfigEntry>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ConfigEntry {
    pub value: ConfigValue,
    pub origin: ValueOrigin,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ConfigValue {
    Text(String),
    Flag(bool),
    Number(u64),
    /// Amount in millionths of a US dollar.
    Dollars(u64),
    List(Vec<String>),
    Table(BTreeMap<String, String>),
}

impl ConfigValue {
    /// Returns the value as text, or `None` if it is not text.
    pub(super) fn as_text(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    /// Returns the value as a flag, or `None` if it is not a flag.
    pub(super) fn as_flag(&self) -> Option<bool> {
        if let Self::Flag(flag) = self { Some(*flag) } else { None }
    }

    /// Returns the value as a number, or `None` if it is not a number.
    pub(super) fn as_number(&self) -> Option<u64> {
        if let Self::Number(number) = self { Some(*number) } else { None }
    }

    /// Returns the value as a list, or `None` if it is not a list.
    pub(super) fn as_list(&self) -> Option<&[String]> {
        if let Self::List(texts) = self { Some(texts) } else { None }
    }
}

/// Where a value was set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ValueOrigin {
    File {
        path: PathBuf,
        line: usize,
    },
    /// In a profile that was selected for this run.
    Profile {
        name: String,
        path: PathBuf,
        line: usize,
    },
    Flag,
}

impl fmt::Display for ValueOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, line } => write!(f, "`{}` line {line}", path.display()),
            Self::Profile { name, path, line } => write!(f, "profile `{name}`, `{}` line {line}", path.display()),
            Self::Flag => f.write_str("--set"),
        }
    }
}

/// Returns the value of a key together with its origin, or `None` if the key is not set.
pub(super) fn entry<'a>(values: &'a Values, path: &[&str]) -> Option<&'a ConfigEntry> {
    let path: Vec<String> = path.iter().map(|&part| part.to_owned()).collect();
    values.get(&path)
}

/// Returns the string value of a key, if it is set.
pub(super) fn text<'a>(values: &'a Values, path: &[&str]) -> Option<&'a str> {
    entry(values, path)?.value.as_text()
}

/// Returns the value of a number or size key, if it is set.
pub(super) fn number(values: &Values, path: &[&str]) -> Option<u64> {
    entry(values, path)?.value.as_number()
}

/// Returns the flag value of a key, if it is set.
pub(super) fn flag(values: &Values, path: &[&str]) -> Option<bool> {
    entry(values, path)?.value.as_flag()
}

/// Returns the list value of a key, if it is set.
pub(super) fn list<'a>(values: &'a Values, path: &[&str]) -> Option<&'a [String]> {
    entry(values, path)?.value.as_list()
}

/// Returns the error for a file that is not valid UTF-8.
pub(super) fn not_utf8(path: &Path) -> Problem {
    Problem::new(format!("`{}` is not UTF-8 text", path.display())).because("expected a TOML file")
}

/// Reads a configuration file. A missing file is treated as empty.
pub(super) fn read(path: &Path) -> Result<Values, ConfigError> {
    let wrong = |reason: &dyn fmt::Display| ConfigError::single(Problem::new(format!("`{}`", path.display())).because(reason));
    match path.metadata() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Values::new()),
        Err(error) => return Err(wrong(&error)),
        Ok(metadata) if !metadata.is_file() => return Err(wrong(&"not a regular file; expected a TOML file")),
        Ok(metadata) if metadata.len() > FILE_BYTES => return Err(wrong(&"larger than 1 MiB")),
        Ok(_) => {}
    }
    let mut bytes = Vec::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(FILE_BYTES).read_to_end(&mut bytes));
    read.map_err(|error| wrong(&error))?;
    match std::str::from_utf8(&bytes) {
        Ok(text) => parse(text.strip_prefix('\u{feff}').unwrap_or(text), path),
        Err(error) => {
            let line = line_number(bytes.get(..error.valid_up_to()).unwrap_or_default(), usize::MAX);
            Err(ConfigError::single(format!("`{}` line {line}: not UTF-8 text", path.display())))
        }
    }
}

pub(super) fn parse(text: &str, path: &Path) -> Result<Values, ConfigError> {
    let (values, problems) = parse_lenient(text, path)?;
    ConfigError::unless_empty(problems)?;
    Ok(values)
}

/// Parses the text, skipping invalid keys. Returns the valid keys and an error for each invalid one.
pub(super) fn parse_lenient(text: &str, path: &Path) -> Result<(Values, Vec<Problem>), ConfigError> {
    let document = DeTable::parse(text).map_err(|error| {
        let line = error.span().map_or(1, |span| line_number(text.as_bytes(), span.start));
        ConfigError::single(format!("`{}` line {line}: invalid TOML: {}", path.display(), error.message()))
    })?;
    let mut walk = TableWalk { text, path, values: Values::new(), problems: Vec::new() };
    walk.table(&mut Vec::new(), document.get_ref());
    Ok((walk.values, walk.problems))
}

/// Applies `--set KEY=VALUE`. String values need not be quoted.
pub(super) fn assign(values: &mut Values, name: &str, given: &str) -> Result<(), ConfigError> {
    let path: Vec<String> = name.split('.').map(|part| part.trim().to_owned()).collect();
    let Some(key) = schema::find(&path) else {
        return Err(ConfigError::single(Problem::new(format!("--set: unknown key `{name}`")).hint(schema::suggest(&path))));
    };
    let parsed = DeValue::parse(given).ok();
    let value = parsed.and_then(|value| convert(key.kind, value.get_ref())).or_else(|| from_word(key.kind, given));
    let Some(value) = value else {
        let problem = Problem::new(format!("--set: invalid value `{given}` for `{name}`"));
        return Err(ConfigError::single(problem.because(format!("expected {}", key.kind.describe()))));
    };
    values.insert(path, ConfigEntry { value, origin: ValueOrigin::Flag });
    Ok(())
}

fn from_word(kind: ValueType, given: &str) -> Option<ConfigValue> {
    match kind {
        ValueType::Text | ValueType::ModelName | ValueType::Choice(_) | ValueType::Size | ValueType::Price => {
            convert(kind, &DeValue::String(given.into()))
        }
        ValueType::Flag
        | ValueType::Number { .. }
        | ValueType::Dollars
        | ValueType::ModelNames
        | ValueType::TextList
        | ValueType::PortList
        | ValueType::TextTable
        | ValueType::NumberTable { .. } => None,
    }
}

struct TableWalk<'a> {
    text: &'a str,
    path: &'a Path,
    values: Values,
    problems: Vec<Problem>,
}

impl TableWalk<'_> {
    fn table(&mut self, at: &mut Vec<String>, table: &DeTable<'_>) {
        for (name, value) in table {
            at.push(name.get_ref().to_string());
            self.entry(at, line_number(self.text.as_bytes(), name.span().start), value);
            at.pop();
        }
    }

    fn entry(&mut self, at: &mut Vec<String>, line: usize, value: &Spanned<DeValue<'_>>) {
        let named = at.join(".");
        let place = format!("`{}` line {line}", self.path.display());
        if let Some(key) = schema::find(at) {
            if let Some(value) = convert(key.kind, value.get_ref()) {
                let origin = ValueOrigin::File { path: self.path.to_owned(), line };
                self.values.insert(at.clone(), ConfigEntry { value, origin });
            } else {
                let found = describe(self.text, value);
                self.problems.push(format!("{place}: `{named}` is {found}, expected {}", key.kind.describe()).into());
            }
        } else if KEYS.iter().any(|key| key.starts_with(at)) {
            if let Some(table) = value.get_ref().as_table() {
                self.table(at, table);
            } else {
                let found = describe(self.text, value);
                self.problems.push(format!("{place}: `{named}` is {found}, expected a table").into());
            }
        } else {
            self.problems.push(Problem::new(format!("{place}: unknown key `{named}`")).hint(schema::suggest(at)));
        }
    }
}

/// Returns the value as it is written in the file, provided that it is short.
fn describe(text: &str, value: &Spanned<DeValue<'_>>) -> String {
    match text.get(value.span()) {
        Some(written) if written.len() <= 60 && !written.contains('\n') && !value.get_ref().is_table() => format!("`{written}`"),
        _ => format!("a {}", value.get_ref().type_str()),
    }
}

fn convert(kind: ValueType, value: &DeValue<'_>) -> Option<ConfigValue> {
    match kind {
        ValueType::Text => value.as_str().map(|text| ConfigValue::Text(text.to_owned())),
        ValueType::ModelName => value.as_str().filter(|text| is_model_name(text)).map(|text| ConfigValue::Text(text.to_owned())),
        ValueType::ModelNames => {
            let names = value.as_array().and_then(texts)?;
            names.iter().all(|name| is_model_name(name)).then_some(ConfigValue::List(names))
        }
        ValueType::Choice(choices) => {
            value.as_str().filter(|text| choices.contains(text)).map(|text| ConfigValue::Text(text.to_owned()))
        }
        ValueType::Flag => value.as_bool().map(ConfigValue::Flag),
        ValueType::Number { min, max } => {
            let number = value.as_integer()?;
            let number = u64::from_str_radix(number.as_str(), number.radix()).ok()?;
            (min..=max).contains(&number).then_some(ConfigValue::Number(number))
        }
        ValueType::Dollars => {
            let float = value.as_float().and_then(|float| float.as_str().parse::<f64>().ok());
            let whole = value.as_integer().and_then(|number| number.as_str().parse::<f64>().ok());
            let dollars = float.or(whole).filter(|dollars| (0.0..=MAX_DOLLARS).contains(dollars))?;
            Some(ConfigValue::Dollars((dollars * MILLIONTHS).round() as u64))
        }
        ValueType::Price => {
            let is_price = |text: &&str| AssumedPrice::parse(text).is_some();
            value.as_str().filter(is_price).map(|text| ConfigValue::Text(text.to_owned()))
        }
        ValueType::Size => match value.as_str() {
            Some(text) => bytes(text).map(ConfigValue::Number),
            None => convert(ValueType::Number { min: 0, max: u64::MAX }, value),
        },
        ValueType::TextList => value.as_array().and_then(texts).map(ConfigValue::List),
        ValueType::PortList => {
            let port = |item: &DeValue<'_>| match convert(ValueType::Number { min: 1, max: 65_535 }, item)? {
                ConfigValue::Number(port) => Some(port.to_string()),
                _ => None,
            };
            let ports: Option<_> = value.as_array()?.iter().map(|item| port(item.get_ref())).collect();
            ports.map(ConfigValue::List)
        }
        ValueType::NumberTable { min, max } => {
            let number = |item: &DeValue<'_>| match convert(ValueType::Number { min, max }, item)? {
                ConfigValue::Number(number) => Some(number.to_string()),
                _ => None,
            };
            let entries = value.as_table()?.iter();
            let entries = entries.map(|(name, value)| Some((name.get_ref().to_string(), number(value.get_ref())?)));
            entries.collect::<Option<_>>().map(ConfigValue::Table)
        }
        ValueType::TextTable => {
            let entries = value.as_table()?.iter();
            let entries = entries.map(|(name, value)| Some((name.get_ref().to_string(), value.get_ref().as_str()?.to_owned())));
            entries.collect::<Option<_>>().map(ConfigValue::Table)
        }
    }
}

/// Returns whether the text is a model name in the form `provider/name`.
fn is_model_name(text: &str) -> bool {
    text.split_once('/').is_some_and(|(provider, name)| !provider.is_empty() && !name.is_empty())
}

/// Parses a size such as `10MB`, `512 KiB` or `4096`. All units are powers of 1024.
pub(super) fn bytes(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.len() - text.trim_start_matches(|letter: char| letter.is_ascii_digit()).len();
    let unit: u64 = match text[digits..].trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" | "kib" => 1 << 10,
        "m" | "mb" | "mib" => 1 << 20,
        "g" | "gb" | "gib" => 1 << 30,
        _ => return None,
    };
    text[..digits].parse::<u64>().ok()?.checked_mul(unit)
}

fn texts(array: &DeArray<'_>) -> Option<Vec<String>> {
    array.iter().map(|item| item.get_ref().as_str().map(str::to_owned)).collect()
}

/// Returns the number of the line that contains a byte offset, starting at 1.
fn line_number(text: &[u8], byte: usize) -> usize {
    1 + text.iter().take(byte).filter(|byte| **byte == b'\n').count()
}
