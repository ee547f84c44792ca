//! API keys printed by the user's programs (`api_key_command`). They run in the background, at most once per key.

use super::context::AppContext;
use super::secret_programs::TIMEOUT;
use crate::config::{ApiKey, KeyCommand as Setting};
use crate::protocol::{Failure, FailureKind, Problem};
use crate::sys::key_command::{KeyCommandError, KeyProgram};

/// Returns the key of a provider. Runs the program unless the key is already known. `rejected`: a key that the provider
/// rejected and that must be replaced.
pub(crate) fn provider_key(
    place: &AppContext,
    provider: &str,
    setting: &Setting,
    rejected: Option<&str>,
) -> Result<ApiKey, Problem> {
    let run = || {
        let withheld = place.key_variables();
        let (argv, home, roots) = (&setting.argv, &place.home, &place.roots);
        KeyProgram { argv, home, timeout: TIMEOUT, withheld: &withheld, roots }.print_key()
    };
    let name = place.settings.key_name(provider).unwrap_or(provider);
    place.credentials.program_key(name, setting, rejected, run).map_err(|error: KeyCommandError| {
        let problem = Problem::new(format!("cannot read the API key of `{provider}` with `api_key_command`")).because(error);
        problem.hint(format!(
            "run `{}` in a terminal to see what it prints; `providers.{name}.api_key_command` in config.toml sets it",
            setting.shell_line()
        ))
    })
}

/// Returns the error for a request that needs a key from a program.
pub(crate) fn failure(problem: &Problem) -> Failure {
    Failure::from_problem(FailureKind::Authentication, problem)
}
