//! Applies `--profile`, which takes options from a profile in `config.toml`.

use super::error::CliError;
use super::options::Common;
use crate::config::{Directories, Environment, Settings};
use crate::protocol::Problem;
use std::path::PathBuf;

/// Rejects a prompt that is the name of a profile. In Codex, `-p NAME` chooses a profile, whereas in aye it prints the
/// response to a prompt.
pub(crate) fn refuse_name_as_prompt(common: &Common, prompt: &str) -> Result<(), CliError> {
    if common.profile.is_some() || prompt.contains(char::is_whitespace) {
        return Ok(());
    }
    let directories = Directories::find(&Environment::from_process())?;
    // An error in the settings is reported later.
    if Settings::load(&directories, Some(prompt), &[]).is_err() {
        return Ok(());
    }
    let problem = Problem::new(format!("`{prompt}` was not sent as a prompt: it is the name of a profile"));
    let problem = problem.hint(format!("use `--profile {prompt}` to choose the profile"));
    Err(CliError::usage(problem.hint(format!("run `aye exec -- {prompt}` to send it as a prompt"))))
}

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
