//! Saves the theme of the screen in the settings.

use super::context::AppContext;
use super::error::CliError;
use super::exit::Exit;
use crate::config::{ConfigError, grants, with_theme};

/// Writes the theme to the user's settings file. Returns the file's name for display.
pub(crate) fn keep(app: &AppContext, name: &str) -> Result<String, CliError> {
    let file = app.directories.config_file();
    let shown = crate::text::abbreviate_home(&file, &app.home);
    let keep = || {
        let _only_one = grants::lock(&app.directories.config)?;
        grants::change(&file, |old| {
            let named = |error: ConfigError| error.with_location(format!("`{shown}`"));
            with_theme(old.unwrap_or_default(), name).map(|text| (text, ())).map_err(named)
        })
    };
    keep().map(|()| shown.clone()).map_err(|error: ConfigError| CliError { exit: Exit::Failed, ..error.into() })
}
