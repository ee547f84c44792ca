//! Obtains API keys from programs configured by the user (`api_key_command`). The programs run in the background, at
//! most once per key.

use super::context::AppContext;
use super::secret_programs::TIMEOUT;
use crate::config::{ApiKey, KeyCommand as Setting};
use crate::protocol::{Failure, FailureKind, Problem};
use crate::sys::key_command::{KeyCommandError, KeyProgram};

/// Returns the API key of a provider, running the configured program unless the key is already known. `rejected` is a
/// key that the provider rejected and that must be replaced.
pub(crate) fn provider_key(
    app: &AppContext,
    provider: &str,
    setting: &Setting,
    rejected: Option<&str>,
) -> Result<ApiKey, Problem> {
    let run = || {
        let withheld = app.key_variables();
        let (argv, home, roots) = (&setting.argv, &app.home, &app.roots);
        KeyProgram { argv, home, timeout: TIMEOUT, withheld: &withheld, roots }.print_key()
    };
    let name = app.settings.key_name(provider).unwrap_or(provider);
    app.credentials.program_key(name, setting, rejected, run).map_err(|error: KeyCommandError| {
        let problem = Problem::new(format!("cannot read the API key of `{provider}` with `api_key_command`")).because(error);
        problem.hint(format!(
            "run `{}` in a terminal to see what it prints; `providers.{name}.api_key_command` in config.toml sets it",
            setting.shell_line()
        ))
    })
}

/// Converts a problem with obtaining a key to the failure of the request that needs it.
pub(crate) fn failure(problem: &Problem) -> Failure {
    Failure::from_problem(FailureKind::Authentication, problem)
}
