//! `aye policy pull`: loads the policy from its URL.

use crate::host::console::{print_text, warn_all};
use crate::host::context::AppContext;
use crate::host::error::CliError;
use crate::host::exit::Exit;
use crate::host::nesting::Nesting;
use crate::host::startup::runtime;

pub(crate) fn run(app: &AppContext) -> Result<Exit, CliError> {
    if Nesting::detect() == Nesting::InsideAye {
        return Err(CliError::usage("a command that aye runs (AYE=1) cannot load a policy"));
    }
    let service = app
        .service_policy()
        .ok_or_else(|| CliError::usage("no policy from a URL is configured").hint("set `services.policy.url` in config.toml"))?;
    runtime()?.block_on(service.refresh()).map_err(CliError::failed)?;
    let notices = service.take_notices();
    if notices.is_empty() {
        print_text("the policy is up to date\n");
    }
    warn_all(&notices);
    Ok(Exit::Completed)
}
