//! UI settings.

use super::file::{Value, Values, entry, text};

/// Settings in `[ui]` for the full-screen UI.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Screen {
    /// Name of a theme, or `auto`.
    pub theme: String,
    /// True for ASCII symbols only. If absent, depends on the locale and the terminal.
    pub ascii: Option<bool>,
    pub reduce_motion: bool,
    /// Whether the draft uses Vim keys.
    pub vim: bool,
    pub notifications: Notifications,
    /// Items of the status row, in order; empty for the default.
    pub status: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Notifications {
    Auto,
    Off,
    Bell,
}

impl Screen {
    pub(super) fn from_values(values: &Values) -> Self {
        let flag = |key: &str| match entry(values, &["ui", key]).map(|entry| &entry.value) {
            Some(Value::Flag(flag)) => Some(*flag),
            Some(Value::Text(_) | Value::Number(_) | Value::Dollars(_) | Value::List(_) | Value::Table(_)) | None => None,
        };
        Self {
            theme: text(values, &["ui", "theme"]).unwrap_or("auto").to_owned(),
            ascii: flag("ascii"),
            reduce_motion: flag("reduce_motion").unwrap_or(false),
            vim: flag("vim").unwrap_or(false),
            notifications: match text(values, &["ui", "notifications"]) {
                Some("off") => Notifications::Off,
                Some("bell") => Notifications::Bell,
                Some(_) | None => Notifications::Auto,
            },
            status: match entry(values, &["status", "items"]).map(|entry| &entry.value) {
                Some(Value::List(names)) => names.clone(),
                Some(Value::Text(_) | Value::Flag(_) | Value::Number(_) | Value::Dollars(_) | Value::Table(_)) | None => {
                    Vec::new()
                }
            },
        }
    }
}
