//! `aye demo`: runs the real agent on a sample project, with a recorded model.

use super::args::{ExecPrompt, OutputFormat};
use super::{exec, interactive};
use crate::agent::Approver;
use crate::host::console::{print_text, warn};
use crate::host::error::CliError;
use crate::host::exit::Exit;
use crate::host::options::{Common, RunOptions, SessionChoice, Trust};
use crate::llm::demo;
use crate::protocol::Mode;
use std::io::IsTerminal;
use std::path::Path;

/// Name of the recorded model, as shown to the user.
const MODEL: &str = "demo/recorded";

/// Mode of the session. The recording explains approvals, so they must not depend on the settings.
const MODE: Mode = Mode::Ask;

/// Copies the sample project to a new directory and starts a session there. Runs without the full-screen UI if `yes` is
/// set or there is no terminal.
pub(crate) fn run(common: &Common, yes: bool) -> Result<Exit, CliError> {
    if let Some(mode) = common.mode.filter(|mode| *mode != MODE) {
        warn(format!("mode {} is ignored: the demo always runs in mode {}", mode.as_str(), MODE.as_str()));
    }
    let directory = tempfile::Builder::new()
        .prefix("aye-demo-")
        .tempdir()
        .map_err(|error| CliError::failed(format!("cannot create a directory for the sample project: {error}")))?;
    copy_project(directory.path()).map_err(|error| CliError::failed(format!("cannot copy the sample project: {error}")))?;
    // Keep the project after the run, so that the session can be resumed and the changes reviewed.
    let project = directory.keep();
    // aye created this directory, so the user need not trust it.
    let (directory, model) = (Some(project.clone()), Some(MODEL.to_owned()));
    let common = Common { directory, model, mode: Some(MODE), trust: Trust::ForThisRun, ..common.clone() };
    let prompt =
        demo::Demo::new(demo::Pace::Recorded).map_err(|failure| CliError::failed(failure.message))?.first_prompt().to_owned();
    let has_person = std::io::stdin().is_terminal() && std::io::stdout().is_terminal() || common.plain;
    let exit = if !yes && has_person {
        let request = interactive::ScreenRequest::new(Some(prompt), SessionChoice::New);
        interactive::run(&common, request)?
    } else {
        let approver = if yes { Approver::Everyone } else { Approver::Nobody };
        let request = exec::ExecRequest {
            prompt: ExecPrompt::Text(prompt),
            takes_input: false,
            session: SessionChoice::New,
            format: OutputFormat::Text,
            options: RunOptions::default(),
            approver,
        };
        exec::run(&common, request)?
    };
    print_text(&format!("The sample project is in {}\n", project.display()));
    Ok(exit)
}

fn copy_project(directory: &Path) -> std::io::Result<()> {
    for (path, bytes, mode) in demo::project() {
        let path = directory.join(path);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        std::fs::write(&path, bytes)?;
        #[cfg(unix)]
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(*mode))?;
    }
    Ok(())
}
