//! User interface settings.

use super::file::{Values, flag, list, text};

/// Settings in `[ui]` that apply to the full-screen UI.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ScreenSettings {
    /// Name of the theme, or `auto`.
    pub theme: String,
    /// Whether to use only ASCII symbols. If absent, this depends on the locale and the terminal.
    pub ascii: Option<bool>,
    pub reduce_motion: bool,
    /// Whether the composer uses Vim key bindings.
    pub vim: bool,
    pub notifications: NotificationSetting,
    /// Items in the status row, in order. Empty for the default items.
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
