//! UI settings.

use super::file::{Values, flag, list, text};

/// Settings in `[ui]` for the full-screen UI.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ScreenSettings {
    /// Name of a theme, or `auto`.
    pub theme: String,
    /// True for ASCII symbols only. If absent, depends on the locale and the terminal.
    pub ascii: Option<bool>,
    pub reduce_motion: bool,
    /// Whether the draft uses Vim keys.
    pub vim: bool,
    pub notifications: NotificationSetting,
    /// Items of the status row, in order; empty for the default.
    pub status: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotificationSetting {
    Auto,
    Off,
    Bell,
}

impl ScreenSettings {
    pub(super) fn from_values(values: &Values) -> Self {
        let flag = |key: &str| flag(values, &["ui", key]);
        Self {
            theme: text(values, &["ui", "theme"]).unwrap_or("auto").to_owned(),
            ascii: flag("ascii"),
            reduce_motion: flag("reduce_motion").unwrap_or(false),
            vim: flag("vim").unwrap_or(false),
            notifications: match text(values, &["ui", "notifications"]) {
                Some("off") => NotificationSetting::Off,
                Some("bell") => NotificationSetting::Bell,
                Some(_) | None => NotificationSetting::Auto,
            },
            status: list(values, &["status", "items"]).unwrap_or_default().to_vec(),
        }
    }
}
