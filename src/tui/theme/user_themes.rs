//! User themes, each of which has its own file.

use super::{TOKENS, Theme, Token};
use std::path::Path;

/// Maximum size of a theme file, in bytes.
const FILE_BYTES: u64 = 64 << 10;

/// Returns the built-in or user theme with this name. On failure, the error is a complete message for the user.
pub(crate) fn find(directory: Option<&Path>, name: &str) -> Result<Theme, String> {
    if let Some(theme) = Theme::by_name(name) {
        return Ok(theme);
    }
    let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'));
    let path =
        directory.filter(|_| is_name).map(|directory| directory.join(format!("{name}.toml"))).filter(|path| path.is_file());
    let Some(path) = path else {
        let name = crate::text::reveal(name).into_owned();
        let name = crate::text::truncate(&name, 24);
        return Err(format!("unknown theme `{name}`; /theme lists all themes"));
    };
    let shown = path.display();
    if path.metadata().is_ok_and(|file| file.len() > FILE_BYTES) {
        return Err(format!("{shown}: too large for a theme file (limit: {} KiB)", FILE_BYTES >> 10));
    }
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{shown}: {error}"))?;
    Theme::parse_user_theme(name, &text).map_err(|error| format!("{shown}:{}: {}", error.line, error.message.replace('\n', " ")))
}

/// Returns the sorted names of the user themes. A user theme with the name of a built-in one is omitted.
pub(crate) fn list(directory: Option<&Path>) -> Vec<String> {
    let entries = directory.and_then(|directory| std::fs::read_dir(directory).ok()).into_iter().flatten();
    let names = entries.filter_map(|entry| Some(entry.ok()?.file_name().to_str()?.strip_suffix(".toml")?.to_owned()));
    let mut names: Vec<String> = names.filter(|name| Theme::by_name(name).is_none()).collect();
    names.sort();
    names
}

impl Theme {
    /// Returns the role with the lowest contrast and that contrast, if any role is below the minimum.
    pub(crate) fn lowest_contrast(&self) -> Option<(String, f64)> {
        let pairs = TOKENS.iter().filter_map(|token| {
            let least = if *token == Token::Text { 7.0 } else { 4.5 };
            let contrast = self.contrast(*token)?;
            (contrast < least).then(|| (format!("{token:?}").to_lowercase(), contrast))
        });
        pairs.min_by(|one, two| one.1.total_cmp(&two.1))
    }
}
