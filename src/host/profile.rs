//! Applies `--profile`, which takes options from a profile in `config.toml`.

use super::error::CliError;
use super::options::Common;
use crate::config::{Directories, Environment, Settings};
use std::path::PathBuf;

/// Fills in options from the profile. Options given explicitly take precedence.
pub(crate) fn with_profile(common: &Common) -> Result<Common, CliError> {
    let Some(name) = &common.profile else { return Ok(common.clone()) };
    let environment = Environment::from_process();
    let directories = Directories::find(&environment)?;
    let settings = Settings::load(&directories, Some(name), &[])?;
    let home = environment.get("HOME").map(PathBuf::from);
    let profile = settings.profile(name, &directories, home.as_deref());
    Ok(Common {
        model: common.model.clone().or(profile.model),
        mode: common.mode.or(profile.mode),
        policy: common.policy.clone().or(profile.policy),
        ..common.clone()
    })
}
