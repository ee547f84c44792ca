//! UI settings.

use super::Settings;
use super::file::Value;

/// The part of `[ui]` that concerns the full-screen UI.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Screen {
    /// The name of a theme, or `auto`.
    pub theme: String,
    /// True for ASCII symbols only; absent: depends on the locale and the terminal.
    pub ascii: Option<bool>,
    pub reduce_motion: bool,
    /// Vim keys in the draft.
    pub vim: bool,
    pub notifications: Notifications,
    /// Items of the status row, in order; empty for the default.
    pub status: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notifications {
    Auto,
    Off,
    Bell,
}

pub(super) const NOTIFICATIONS: [&str; 3] = ["auto", "off", "bell"];

impl Settings {
    pub fn screen(&self) -> Screen {
        let flag = |key: &str| match self.entry(&["ui", key]).map(|entry| &entry.value) {
            Some(Value::Flag(flag)) => Some(*flag),
            Some(Value::Text(_) | Value::Number(_) | Value::Dollars(_) | Value::List(_) | Value::Table(_)) | None => None,
        };
        Screen {
            theme: self.text(&["ui", "theme"]).unwrap_or("auto").to_owned(),
            ascii: flag("ascii"),
            reduce_motion: flag("reduce_motion").unwrap_or(false),
            vim: flag("vim").unwrap_or(false),
            notifications: match self.text(&["ui", "notifications"]) {
                Some("off") => Notifications::Off,
                Some("bell") => Notifications::Bell,
                Some(_) | None => Notifications::Auto,
            },
            status: match self.entry(&["status", "items"]).map(|entry| &entry.value) {
                Some(Value::List(names)) => names.clone(),
                Some(Value::Text(_) | Value::Flag(_) | Value::Number(_) | Value::Dollars(_) | Value::Table(_)) | None => {
                    Vec::new()
                }
            },
        }
    }

    /// Returns the shell command whose output is shown in the status row.
    pub fn status_command(&self) -> Option<&str> {
        self.text(&["status", "command"]).filter(|line| !line.trim().is_empty())
    }
}
