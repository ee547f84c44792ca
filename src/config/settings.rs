//! What is set for this run, after every layer had its say.

use super::document::{self, Entry, Origin, Value, Values};
use super::keys::KEYS;
use super::{ConfigError, Directories};
use crate::sys::process::Shell;
use std::fmt::Write;
use std::time::Duration;

#[derive(Debug, Clone)]
pub struct Settings {
    pub llm: Llm,
    pub tools: Tools,
    pub(super) values: Values,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Llm {
    pub idle_timeout: Duration,
    pub connect_timeout: Duration,
    pub max_retries: u32,
    pub retry_base: Duration,
}

/// What the tools take for a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tools {
    pub absolute_paths_only: bool,
    pub follow_symlinks: bool,
    pub shell: Shell,
}

impl Settings {
    /// The person's file, then the flags on top of it.
    pub fn load(directories: &Directories, set: &[(String, String)]) -> Result<Self, ConfigError> {
        Self::from_values(document::read(&directories.config_file())?, set)
    }

    pub(super) fn from_values(mut values: Values, set: &[(String, String)]) -> Result<Self, ConfigError> {
        for (name, given) in set {
            document::assign(&mut values, name, given)?;
        }
        let llm = Llm {
            idle_timeout: Duration::from_secs(number(&values, &["llm", "idle_timeout_seconds"])),
            connect_timeout: Duration::from_secs(number(&values, &["llm", "connect_timeout_seconds"])),
            max_retries: u32::try_from(number(&values, &["llm", "max_retries"])).unwrap_or(u32::MAX),
            retry_base: Duration::from_millis(number(&values, &["llm", "retry_base_ms"])),
        };
        let tools = Tools {
            absolute_paths_only: flag(&values, &["tools", "absolute_paths_only"]),
            follow_symlinks: flag(&values, &["tools", "follow_symlinks"]),
            shell: shell(&values),
        };
        let settings = Self { llm, tools, values };
        settings.check_providers()?;
        Ok(settings)
    }

    pub(super) fn entry(&self, path: &[&str]) -> Option<&Entry> {
        let path: Vec<String> = path.iter().map(|&part| part.to_owned()).collect();
        self.values.get(&path)
    }

    pub(super) fn text(&self, path: &[&str]) -> Option<&str> {
        match &self.entry(path)?.value {
            Value::Text(text) => Some(text),
            Value::Flag(_) | Value::Number(_) | Value::List(_) | Value::Table(_) => None,
        }
    }

    /// Every key with its value and where that comes from, for `aye config show`.
    pub fn show(&self) -> String {
        let mut shown = String::new();
        for key in KEYS {
            let mut set =
                self.values.iter().filter(|(path, _)| key.pattern.len() == path.len() && key.starts_with(path)).peekable();
            if set.peek().is_none() && !key.default.is_empty() && !key.pattern.contains(&"*") {
                let _ = writeln!(shown, "{} = {}  # default", key.dotted(), key.default);
            }
            for (path, entry) in set {
                let origin = match &entry.origin {
                    Origin::File { .. } => entry.origin.to_string().replace('`', ""),
                    Origin::Flag => "--set".to_owned(),
                };
                let _ = writeln!(shown, "{} = {}  # {origin}", path.join("."), entry.value.as_toml());
            }
        }
        shown
    }
}

impl Value {
    fn as_toml(&self) -> String {
        let text = |text: &String| toml::Value::String(text.clone()).to_string();
        match self {
            Self::Text(value) => text(value),
            Self::Flag(value) => value.to_string(),
            Self::Number(value) => value.to_string(),
            Self::List(values) => format!("[{}]", values.iter().map(text).collect::<Vec<_>>().join(", ")),
            // Values of an environment may be secrets; their names are enough.
            Self::Table(values) => {
                format!("{{ {} }}", values.keys().map(|name| format!("{name} = \"…\"")).collect::<Vec<_>>().join(", "))
            }
        }
    }
}

fn number(values: &Values, path: &[&str]) -> u64 {
    let path: Vec<String> = path.iter().map(|&part| part.to_owned()).collect();
    let default = || super::keys::find(&path).and_then(|key| key.default.parse().ok()).unwrap_or_default();
    match values.get(&path).map(|entry| &entry.value) {
        Some(Value::Number(number)) => *number,
        Some(Value::Text(_) | Value::Flag(_) | Value::List(_) | Value::Table(_)) | None => default(),
    }
}

/// `auto` is the one that rules are about.
fn shell(values: &Values) -> Shell {
    let path = ["tools", "shell"].map(str::to_owned);
    match values.get(path.as_slice()).map(|entry| &entry.value) {
        Some(Value::Text(name)) => Shell::by_name(name).unwrap_or_default(),
        Some(Value::Flag(_) | Value::Number(_) | Value::List(_) | Value::Table(_)) | None => Shell::default(),
    }
}

fn flag(values: &Values, path: &[&str]) -> bool {
    let path: Vec<String> = path.iter().map(|&part| part.to_owned()).collect();
    let default = || super::keys::find(&path).is_some_and(|key| key.default == "true");
    match values.get(&path).map(|entry| &entry.value) {
        Some(Value::Flag(flag)) => *flag,
        Some(Value::Text(_) | Value::Number(_) | Value::List(_) | Value::Table(_)) | None => default(),
    }
}
