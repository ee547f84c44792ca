//! Protections for commands that run without approval or in an untrusted project: git must not start programs that the
//! repository configures, and all programs must come from outside the workspace.

use super::search_path::SearchPath;
use super::symlink_check;
use crate::policy::entered;
use crate::ports::Doubts;
use crate::protocol::{Action, ErrorCode, ToolError};
use crate::sys::path::resolve;
use crate::sys::process::command_environment;
use crate::tools::sandbox::{GitPurpose, GitWorkspace, Hardening, RepositoryTrust, Strictness, mentions_git};
use crate::tools::settings::ToolSettings;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

const PATH: &str = "PATH";

/// The protections that apply to a run.
#[derive(Debug, Default)]
pub(in crate::tools) struct UnapprovedRun {
    git: Hardening,
    path: Option<OsString>,
}

impl UnapprovedRun {
    /// Determines the protections. Performs blocking I/O.
    ///
    /// # Errors
    ///
    /// Returns an error if it turns out that the line needs approval.
    pub(in crate::tools) fn find(line: &str, cwd: &Path, settings: &ToolSettings) -> Result<Self, ToolError> {
        let sandbox = &settings.command.sandbox;
        let mut apart = Self::default();
        let directory = &run_directory(line, cwd, settings);
        if let Strictness::NoPrograms(purpose) = Strictness::for_line(line, sandbox.unasked, sandbox.trust) {
            apart.git = Hardening::find(line, directory, purpose, &git_workspace(settings));
            let trusts = sandbox.trust == RepositoryTrust::Trusted;
            let counts = sandbox.unasked.is_some_and(|unasked| unasked.as_reading || !trusts) && mentions_git(line);
            if let Some(why) = apart.git.doubt().filter(|_| counts) {
                let message = format!("{why}; nothing was run, because this needs approval");
                return Err(ToolError::new(ErrorCode::Conflict, message));
            }
        }
        if sandbox.unasked.is_some_and(|unasked| unasked.by_name)
            && let Some(why) = symlink_check::escaping_link_reason(line, cwd, settings)
        {
            let message = format!("{why}; nothing was run, because this needs approval");
            return Err(ToolError::new(ErrorCode::Conflict, message));
        }
        if sandbox.unasked.is_some_and(|unasked| unasked.as_reading || unasked.by_name) {
            apart.path = Some(search_path(settings).outside());
        }
        Ok(apart)
    }

    /// Adds the protections to a command's environment.
    pub(in crate::tools) fn apply(&self, environment: &mut Vec<(OsString, OsString)>) {
        self.git.apply(environment);
        if let Some(path) = &self.path {
            environment.retain(|(name, _)| name != PATH);
            environment.push((PATH.into(), path.clone()));
        }
    }
}

/// Returns the real directory in which the commands in a line run: `cwd` or, if the line first changes to another
/// directory, that one.
fn run_directory(line: &str, cwd: &Path, settings: &ToolSettings) -> PathBuf {
    let change = entered(line).map(|entered| resolve(&entered.path(), cwd, settings.home.as_deref()));
    match change {
        Some(Ok(found)) => found.real,
        Some(Err(_)) | None => cwd.to_owned(),
    }
}

fn git_workspace(settings: &ToolSettings) -> GitWorkspace<'_> {
    let sandbox = &settings.command.sandbox;
    GitWorkspace {
        roots: if sandbox.paths.roots.is_empty() { std::slice::from_ref(&settings.workspace) } else { &sandbox.paths.roots },
        home: settings.home.as_deref(),
        scan: sandbox.survey.as_ref(),
        repositories: sandbox.repositories.as_deref(),
    }
}

/// Returns whether any of these actions starts a program.
pub(in crate::tools) fn starts_programs(actions: &[Action]) -> bool {
    actions.iter().any(Action::is_command)
}

/// Returns the reasons why these actions need approval even if the policy allows them. Performs blocking I/O.
pub(in crate::tools) fn doubts(actions: &[Action], settings: &ToolSettings) -> Doubts {
    let (line, cwd) = match actions {
        [Action::Exec { command, cwd }] => (command.clone(), cwd),
        [Action::Named { argv, cwd, .. } | Action::Custom { argv, cwd, .. }] => (argv.join(" "), cwd),
        _ => return Doubts::default(),
    };
    let mut doubts = Doubts::default();
    if mentions_git(&line) {
        let directory = run_directory(&line, &cwd.real, settings);
        let doubt = |purpose| Hardening::find(&line, &directory, purpose, &git_workspace(settings)).doubt();
        doubts.as_reading = doubt(GitPurpose::Reads);
        if settings.command.sandbox.trust != RepositoryTrust::Trusted {
            doubts.unasked = doubt(GitPurpose::Writes);
        }
    }
    if matches!(actions, [Action::Exec { .. }])
        && let Some((name, place)) = search_path(settings).only_inside(&line, settings)
    {
        let place = place.display();
        doubts.by_name =
            Some(format!("`{name}` is a program in the workspace (`{place}`), and no rule allows such a program by name"));
    }
    doubts.through_links = link_escape_reason(actions, settings);
    doubts
}

/// Returns the reason why a line that a rule allows needs approval after all, if there is one: a symlink leads outside
/// the workspace. Performs blocking I/O.
pub(in crate::tools) fn link_escape_reason(actions: &[Action], settings: &ToolSettings) -> Option<String> {
    match actions {
        [Action::Exec { command, cwd }] => symlink_check::escaping_link_reason(command, &cwd.real, settings),
        _ => None,
    }
}

/// Returns the `PATH` that commands use, divided into trusted and untrusted entries.
fn search_path(settings: &ToolSettings) -> SearchPath {
    SearchPath::split(path_variable(settings).as_deref(), settings)
}

/// Returns the directories in the `PATH` that commands use.
pub(in crate::tools) fn path_directories(settings: &ToolSettings) -> Vec<PathBuf> {
    path_variable(settings).map_or_else(Vec::new, |path| std::env::split_paths(&path).collect())
}

fn path_variable(settings: &ToolSettings) -> Option<OsString> {
    let own = std::env::vars_os().filter(|(name, _)| name == PATH);
    let given = command_environment(own, &settings.command.environment, &settings.command.secret_names, &|_| false);
    given.into_iter().find(|(name, _)| name == PATH).map(|(_, value)| value)
}
