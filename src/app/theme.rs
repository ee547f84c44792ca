//! The theme of the screen, kept for the next time.

use super::place::Place;
use super::trouble::Trouble;
use crate::config::{ConfigError, grants, with_theme};

/// Writes it into the person's settings; the name of the file for people.
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
