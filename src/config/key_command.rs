//! Programs set by the user to print keys: `[providers.NAME] api_key_command` and `[services.sessions] token_command`.

use super::file::{self, ConfigValue, Values};
use crate::policy::line;
use crate::protocol::Problem;
use std::time::Duration;

/// Program that prints a key, and how long the key is valid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeyCommand {
    /// The program and its arguments. Never empty.
    pub argv: Vec<String>,
    /// Time after which the program is run again. If absent, it is run again only when the provider rejects the key.
    pub lifetime: Option<Duration>,
}

impl KeyCommand {
    /// Returns the command that prints a provider's key, if one is set.
    pub(super) fn for_provider(values: &Values, provider: &str) -> Option<Self> {
        Self::read(values, &["providers", provider, "api_key_command"], &["providers", provider, "api_key_lifetime_seconds"])
    }

    /// Returns the command set at the path `command` in the settings, if there is one. `lifetime` is the path of its
    /// key's lifetime in seconds.
    pub(super) fn read(values: &Values, command: &[&str], lifetime: &[&str]) -> Option<Self> {
        let ConfigValue::List(argv) = &file::entry(values, command)?.value else { return None };
        let lifetime = match file::entry(values, lifetime).map(|entry| &entry.value) {
            Some(ConfigValue::Number(seconds)) => Some(Duration::from_secs(*seconds)),
            _ => None,
        };
        Some(Self { argv: argv.clone(), lifetime })
    }

    /// Formats the command as a shell line that can be copied.
    pub(crate) fn shell_line(&self) -> String {
        line(&self.argv)
    }
}

/// Validates a command and its arguments.
pub(super) fn check(argv: &[String]) -> Result<(), Problem> {
    let expected = "use an array such as [\"pass\", \"show\", \"anthropic\"]";
    let Some(program) = argv.first().filter(|program| !program.trim().is_empty()) else {
        return Err(Problem::new("the program is missing").hint(expected));
    };
    if argv.len() == 1 && program.contains(char::is_whitespace) {
        let problem = Problem::new(format!("`{program}` is a single word that contains spaces"))
            .because("aye runs the command without a shell");
        return Err(problem.hint(expected));
    }
    if argv.iter().any(|word| word.contains('\0')) {
        return Err(Problem::new("an argument contains a NUL character"));
    }
    if program.contains('/') && !program.starts_with('/') && !program.starts_with("~/") {
        let problem = Problem::new(format!("`{program}` is a relative path"));
        return Err(problem.hint("use an absolute path, a path that starts with `~/`, or a name in PATH"));
    }
    Ok(())
}
