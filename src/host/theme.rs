//! Saves the theme of the screen.

use super::context::Place;
use super::error::Trouble;
use crate::config::{ConfigError, grants, with_theme};

/// Writes the theme to the user's settings. Returns the name of the file.
pub fn keep(place: &Place, name: &str) -> Result<String, Trouble> {
    let file = place.directories.config_file();
    let shown = crate::text::abbreviate_home(&file, &place.home);
    let keep = || {
        let _only_one = grants::lock(&place.directories.config)?;
        grants::change(&file, |old| {
            let named = |error: ConfigError| ConfigError::one(format!("`{shown}`: {error}"));
            with_theme(old.unwrap_or_default(), name).map(|text| (text, ())).map_err(named)
        })
    };
    keep().map(|()| shown.clone()).map_err(|error: ConfigError| Trouble::failed(error.to_string()))
}
