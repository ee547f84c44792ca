//! Checks API keys and saves them where only the user can read them.

use super::context::AppContext;
use super::error::CliError;
use crate::config::{ApiKey, KeyringFailure};
use crate::protocol::Problem;
use crate::sys::keyring::KeyringError;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Text of the notice that a key in the environment takes precedence over the saved key.
pub(crate) const PRECEDENCE_NOTICE: &str = "takes precedence";

/// Text of the same notice if the key is entered while aye is running.
pub(crate) const LATER_PRECEDENCE_NOTICE: &str = "takes precedence the next time aye starts";

/// Maximum size of a key in bytes. Longer text is rejected.
pub(crate) const KEY_BYTES: u64 = 8 << 10;

/// Saves a key under this name, either in the keyring or, if there is none, in a file. Returns lines that state where
/// the key was saved. `goes_before` is the notice added if an environment variable is also set.
pub(crate) fn keep(app: &AppContext, name: &str, key: &str, goes_before: &str) -> Result<String, CliError> {
    let key = ApiKey::new(check_key(key)?);
    let in_keyring = if app.settings.uses_keyring() { Some(app.credentials.keep_in_keyring(name, &key)) } else { None };
    let mut text = match in_keyring {
        Some(Ok(())) => format!("saved the key for {name} in the keyring\n"),
        Some(Err(KeyringFailure::File(error))) => return Err(error.into()),
        Some(Err(KeyringFailure::Keyring(error))) if error != KeyringError::Absent => {
            let error = CliError::failed(Problem::new("the key was not saved").because(error));
            return Err(error.hint("pass `--set auth.keyring=false` to save it in a file that only you can read"));
        }
        without => {
            check_file_location(app)?;
            app.credentials.keep_in_file(name, &key)?;
            let why = if without.is_some() { " because the system keyring is not available" } else { "" };
            let file = app.credentials.file().unwrap_or(Path::new("")).display();
            format!("saved the key for {name} in {file}{why}; only you can read it (mode 600)\n")
        }
    };
    if let Some(variable) = app.settings.key_variable(name, &app.environment)
        && app.environment.get(&variable).is_some()
    {
        let _ = writeln!(text, "{variable} is also set and {goes_before}");
    } else if app.settings.key_command(name).is_some() {
        let _ = writeln!(text, "`providers.{name}.api_key_command` is also set and {goes_before}");
    }
    Ok(text)
}

/// Returns the key without surrounding white space. Returns an error unless the key is a single line that is valid in
/// an HTTP header.
fn check_key(key: &str) -> Result<&str, CliError> {
    let key = key.trim();
    if key.is_empty() {
        return Err(CliError::usage("no key was given; nothing was saved"));
    }
    if key.len() as u64 > KEY_BYTES || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
        let problem = Problem::new("not an API key; nothing was saved");
        return Err(CliError::usage(problem.hint("a key is one line of letters, digits and symbols without spaces")));
    }
    Ok(key)
}

/// Returns an error if the credentials file would be stored in a directory that is shared with others.
pub(crate) fn check_file_location(app: &AppContext) -> Result<(), CliError> {
    sharing_problem(app).map_or(Ok(()), |problem| Err(CliError::usage(problem)))
}

/// If the configuration directory is shared with others through a repository, returns a description of the problem.
fn sharing_problem(app: &AppContext) -> Option<Problem> {
    let config = &app.directories.config;
    let real = config.ancestors().find_map(|level| level.canonicalize().ok())?;
    let home = &app.home;
    let above_home = |level: &Path| home.starts_with(level);
    let repository = real.ancestors().take_while(|level| !above_home(level)).find(|level| level.join(".git").exists());
    let workspace = app.roots.iter().find(|root| real.starts_with(root) && !above_home(root));
    let shared: PathBuf = repository.map(Path::to_owned).or_else(|| workspace.cloned())?;
    let (config, shared) = (config.display(), shared.display());
    let what = format!("your configuration directory `{config}` is inside the project `{shared}`");
    let problem = Problem::new(what).because("a file with keys could be shared with the project");
    Some(problem.hint("set AYE_CONFIG_DIR to another directory"))
}
