//! `[providers.NAME] api_key_command`: the user's program that prints the API key of a provider.

use super::file::ConfigValue;
use super::{Settings, settings};
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
    pub(super) fn for_provider(settings: &Settings, provider: &str) -> Option<Self> {
        let ConfigValue::List(argv) = &settings.entry(&["providers", provider, "api_key_command"])?.value else { return None };
        let seconds = settings::number(&settings.values, &["providers", provider, "api_key_lifetime_seconds"]);
        Some(Self { argv: argv.clone(), lifetime: (seconds > 0).then(|| Duration::from_secs(seconds)) })
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
