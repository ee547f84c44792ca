//! The `RunCommand` tool, which runs a line in `bash` and returns its output.

use super::command_run::{self, AccessRestrictions, PlannedCommand};
use super::executed_files::PinnedFiles;
use super::{delete_estimate, git_clean_backup, network};
use crate::ports::{BoxFuture, RunContext};
use crate::protocol::{Action, IN_BACKGROUND, Place, Proposal, Target, ToolError};
use crate::text;
use crate::tools::alias::Alias;
use crate::tools::background::first_line;
use crate::tools::call_result::CallResult;
use crate::tools::draft::{CallDraft, CallEffect};
use crate::tools::error::invalid;
use crate::tools::paths::{ExpectedKind, Paths};
use crate::tools::settings::ToolSettings;
use crate::tools::shell::command_run::{MAX_TIMEOUT_SECONDS, with_input};
use crate::tools::shell::git_notes::{check_read_only_git, commit_summary, git_notes, git_settings_note};
use crate::tools::tool::Tool;
use futures_util::FutureExt;
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;

const DEFAULT_TIMEOUT_SECONDS: u64 = 300;

pub(in crate::tools) struct RunCommand;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::tools) struct Arguments {
    command: String,
    cwd: Option<String>,
    /// Seconds, 300 by default, at most 600.
    #[schemars(range(min = 1, max = 600))]
    timeout: Option<u64>,
    stdin: Option<String>,
    background: Option<bool>,
    /// Omit stderr from the result.
    #[serde(skip)]
    without_stderr: bool,
}

/// Arguments of `CliRun`.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct CliRun {
    command: String,
    working_directory: Option<String>,
    /// Seconds: 30 by default, at most 600.
    #[schemars(range(min = 1, max = 600))]
    timeout: Option<u64>,
    /// True by default.
    capture_stderr: Option<bool>,
    stdin: Option<String>,
    background: Option<bool>,
}

impl From<CliRun> for Arguments {
    fn from(run: CliRun) -> Self {
        Self {
            command: run.command,
            cwd: run.working_directory,
            timeout: timeout_or(30, run.timeout, run.background),
            stdin: run.stdin,
            background: run.background,
            without_stderr: run.capture_stderr == Some(false),
        }
    }
}

/// Arguments of `shell`.
#[derive(Deserialize, JsonSchema)]
struct ShellArguments {
    command: String,
    working_directory: Option<String>,
    /// Seconds: 60 by default, at most 600.
    #[schemars(range(min = 1, max = 600))]
    timeout: Option<u64>,
    stdin: Option<String>,
    background: Option<bool>,
}

impl From<ShellArguments> for Arguments {
    fn from(run: ShellArguments) -> Self {
        Self {
            command: run.command,
            cwd: run.working_directory,
            timeout: timeout_or(60, run.timeout, run.background),
            stdin: run.stdin,
            background: run.background,
            without_stderr: false,
        }
    }
}

/// Returns the timeout. A background command has no default timeout, so returns `None` for it unless a timeout was
/// given.
fn timeout_or(seconds: u64, given: Option<u64>, background: Option<bool>) -> Option<u64> {
    given.or_else(|| (background != Some(true)).then_some(seconds))
}

impl Tool for RunCommand {
    const NAME: &'static str = "RunCommand";
    const ALIASES: &'static [Alias<Arguments>] = &[
        Alias::with_same_arguments("run_command"),
        Alias::new::<ShellArguments>("shell"),
        Alias::new::<CliRun>("CliRun"),
        Alias::with_same_arguments("bash"),
        Alias::with_same_arguments("execute_command"),
        Alias::with_same_arguments("run_shell_command"),
        Alias::with_same_arguments("local_shell"),
        Alias::with_same_arguments("run_in_terminal"),
        Alias::with_same_arguments("exec"),
        Alias::with_same_arguments("exec_command"),
        Alias::with_same_arguments("terminal"),
        Alias::with_same_arguments("run"),
    ];
    const CAPABILITY: &'static str = "Shell.Exec";
    const DESCRIPTION: &'static str = include_str!("../../../assets/tools/RunCommand.md");
    type Arguments = Arguments;
    type Work = PlannedCommand;

    fn actions(arguments: &Arguments, paths: &Paths<'_>) -> Result<Vec<Action>, ToolError> {
        let cwd = paths.target("cwd", arguments.cwd.as_deref().unwrap_or("."), ExpectedKind::Directory)?;
        Ok(vec![Action::Exec { command: with_input(&arguments.command, arguments.stdin.as_deref()), cwd }])
    }

    fn draft(arguments: Arguments, settings: &ToolSettings) -> Result<CallDraft<PlannedCommand>, ToolError> {
        let command = &arguments.command;
        if command.trim().is_empty() {
            return Err(invalid("`command` is empty; specify the line to run"));
        }
        if command.contains('\0') {
            return Err(invalid("`command` contains a NUL byte; remove it"));
        }
        let timeout_seconds = arguments.timeout.unwrap_or(DEFAULT_TIMEOUT_SECONDS);
        if !(1..=MAX_TIMEOUT_SECONDS).contains(&timeout_seconds) {
            return Err(invalid(format!("`timeout` is {timeout_seconds}; it must be 1 to {MAX_TIMEOUT_SECONDS} seconds")));
        }
        let cwd = directory(arguments.cwd.as_deref(), settings)?;
        let background = arguments.background.unwrap_or(false);
        if background && arguments.timeout.is_some() {
            return Err(invalid("a background command has no time limit; omit `timeout`, and stop the command with CliStop"));
        }
        let line = with_input(command, arguments.stdin.as_deref());
        check_read_only_git(&line, settings)?;
        let pinned = PinnedFiles::for_line(&line, &cwd, settings);
        let estimate = delete_estimate::delete_note(&line, &cwd, settings);
        let mut usual = vec![format!("shell {}", settings.command.shell.description()), command_run::environment_note(settings)];
        usual.extend(git_notes(&line, settings));
        let commit = if background { None } else { commit_summary(&line, &cwd.real, settings) };
        Ok(CallDraft {
            summary: format!("$ {}{}", first_line(command), if background { IN_BACKGROUND } else { "" }),
            proposal: Some(Proposal {
                summary: commit.unwrap_or_else(|| format!("Run: {}", first_line(command))),
                usual_notes: usual.len(),
                notes: usual
                    .into_iter()
                    .chain(custom_directory(arguments.cwd.as_deref(), &cwd, settings))
                    .chain(custom_limit(&arguments))
                    .chain(mixed_script_warning(&line))
                    .chain(network::network_note(&line, settings))
                    .chain(git_settings_note(&line, settings))
                    .chain(git_clean_backup::backup_note(&line, &cwd, settings))
                    .chain(estimate.clone())
                    .collect(),
                estimate,
                background,
                ..Proposal::default()
            }),
            actions: vec![Action::Exec { command: line, cwd: cwd.clone() }],
            effect: CallEffect::Runs { timeout_seconds: if background { 0 } else { timeout_seconds }, files: pinned.files() },
            work: PlannedCommand {
                line: arguments.command,
                shell: settings.command.shell,
                cwd,
                timeout_seconds,
                stdin: arguments.stdin,
                pinned: Some(pinned),
                opens: Vec::new(),
                background,
                without_stderr: arguments.without_stderr,
                answer: None,
                narrow: AccessRestrictions::default(),
            },
        })
    }

    fn run(work: PlannedCommand, settings: Arc<ToolSettings>, context: RunContext) -> BoxFuture<'static, CallResult> {
        command_run::run(work, settings, context).boxed()
    }
}

/// Describes a command's working directory. Returns `None` if it is the workspace.
fn custom_directory(given: Option<&str>, cwd: &Target, settings: &ToolSettings) -> Option<String> {
    given.filter(|_| cwd.real != settings.workspace).map(|given| format!("in {given}"))
}

/// Describes a command's time limit. Returns `None` if it is the default.
fn custom_limit(arguments: &Arguments) -> Option<String> {
    if arguments.background.unwrap_or(false) {
        return Some("in the background, without a time limit".to_owned());
    }
    arguments.timeout.filter(|seconds| *seconds != DEFAULT_TIMEOUT_SECONDS).map(|seconds| format!("time limit {seconds} s"))
}

/// Drafts the same call with a different line.
pub(in crate::tools) fn redraft(
    work: &PlannedCommand,
    line: &str,
    settings: &ToolSettings,
) -> Result<CallDraft<PlannedCommand>, ToolError> {
    RunCommand::draft(
        Arguments {
            command: line.to_owned(),
            cwd: Some(work.cwd.given.clone()),
            timeout: (!work.background).then_some(work.timeout_seconds),
            stdin: work.stdin.clone(),
            background: Some(work.background),
            without_stderr: work.without_stderr,
        },
        settings,
    )
}

/// Returns a warning about a word that mixes characters which look alike, if there is one.
fn mixed_script_warning(line: &str) -> Option<String> {
    let (word, [first, other]) = text::find_mixed_word(line)?;
    Some(format!("⚠ `{word}` mixes {first} and {other} characters: it may not be what it looks like"))
}

/// Returns the working directory for a call, which is the workspace by default.
pub(in crate::tools) fn directory(given: Option<&str>, settings: &ToolSettings) -> Result<Target, ToolError> {
    let cwd = Paths::on_disk(settings).target("cwd", given.unwrap_or("."), ExpectedKind::Directory)?;
    match cwd.place {
        Place::Directory => Ok(cwd),
        Place::Missing => {
            Err(invalid(format!("`cwd`: `{}` does not exist; create it with CreateDirectory, or omit `cwd`", cwd.given)))
        }
        Place::File { .. } | Place::Special => {
            Err(invalid(format!("`cwd`: `{}` is not a directory; specify a directory, or omit `cwd`", cwd.given)))
        }
    }
}
