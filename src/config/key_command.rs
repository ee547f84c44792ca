//! `[providers.NAME] api_key_command` and `[services.sessions] token_command`: the user's programs that print keys.

use super::file::{self, ConfigValue, Values};
use crate::policy::line;
use crate::protocol::Problem;
use std::time::Duration;

/// Program that prints a key, and the lifetime of that key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeyCommand {
    /// Program and its arguments; never empty.
    pub argv: Vec<String>,
    /// Time after which the program runs again. If absent, it runs again only when the provider
    /// rejects the key.
    pub lifetime: Option<Duration>,
}

impl KeyCommand {
    /// Returns the command of a provider, if one is set.
    pub(super) fn for_provider(values: &Values, provider: &str) -> Option<Self> {
        Self::read(values, &["providers", provider, "api_key_command"], &["providers", provider, "api_key_lifetime_seconds"])
    }

    /// Returns the command at a path of the settings, if one is set. Another path has the lifetime in seconds.
    pub(super) fn read(values: &Values, command: &[&str], lifetime: &[&str]) -> Option<Self> {
        let ConfigValue::List(argv) = &file::entry(values, command)?.value else { return None };
        let lifetime = match file::entry(values, lifetime).map(|entry| &entry.value) {
            Some(ConfigValue::Number(seconds)) => Some(Duration::from_secs(*seconds)),
            _ => None,
        };
        Some(Self { argv: argv.clone(), lifetime })
    }

    /// Returns the command as a shell line, for copying.
    pub(crate) fn shell_line(&self) -> String {
        line(&self.argv)
    }
}

/// Validates the words of a command.
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
