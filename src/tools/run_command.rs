//! RunCommand: a line in `bash`, and what it printed.

use super::cli_read::told;
use super::commands::{Entry, Kind, New, Outcome, in_background, in_front};
use super::confine::Wanted;
use super::paths::{Meant, Paths};
use super::run_files::Pinned;
use super::tool::{Draft, Effect, Failed, Output, Settings, Tool, invalid};
use crate::ports::{BoxFuture, RunContext};
use crate::protocol::{Action, CallId, ErrorCode, Place, Proposal, Target, ToolError};
use crate::sys::process::{
    Captured, End, Finished, ProcessError, Spec, command_environment, environment_words, signal_name,
};
use futures_util::FutureExt;
use schemars::JsonSchema;
use serde::Deserialize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

const DEFAULT_TIMEOUT_SECONDS: u64 = 300;
const MAX_TIMEOUT_SECONDS: u64 = 600;
/// How long the first output of a command in the background is waited for.
const FIRST_LOOK: Duration = Duration::from_secs(1);
/// Exit code that shells give for a signal: this much above its number.
const SIGNAL_BASE: i32 = 128;

pub(super) struct RunCommand;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Arguments {
    /// The line, for `bash -c`.
    command: String,
    /// The directory it runs in; the workspace when absent.
    cwd: Option<String>,
    /// Seconds until it is killed; 300 when absent.
    #[schemars(range(min = 1, max = 600))]
    timeout: Option<u64>,
    /// Text for its standard input, which is empty when absent.
    stdin: Option<String>,
    /// True for what runs long or for ever, such as a server: it goes on while you work, and CliRead reads what it prints.
    background: Option<bool>,
}

pub(super) struct Work {
    command: String,
    cwd: Target,
    timeout_seconds: u64,
    stdin: Option<String>,
    background: bool,
    pinned: Pinned,
}

impl Tool for RunCommand {
    const NAME: &'static str = "RunCommand";
    const ALIASES: &'static [&'static str] =
        &["run_command", "shell", "bash", "execute_command", "run_shell_command", "exec", "exec_command", "terminal", "run"];
    const CAPABILITY: &'static str = "Shell.Exec";
    const DESCRIPTION: &'static str = include_str!("../../assets/tools/RunCommand.md");
    type Arguments = Arguments;
    type Work = Work;

    fn actions(arguments: &Arguments, paths: &Paths<'_>) -> Result<Vec<Action>, ToolError> {
        let cwd = paths.target("cwd", arguments.cwd.as_deref().unwrap_or("."), Meant::Directory)?;
        Ok(vec![Action::Exec { command: with_input(&arguments.command, arguments.stdin.as_deref()), cwd }])
    }

    fn draft(arguments: Arguments, settings: &Settings) -> Result<Draft<Work>, ToolError> {
        let command = &arguments.command;
        if command.trim().is_empty() {
            return Err(invalid("`command` is empty; give the line to run"));
        }
        if command.contains('\0') {
            return Err(invalid("`command` has a NUL byte, which no command can have"));
        }
        let timeout_seconds = arguments.timeout.unwrap_or(DEFAULT_TIMEOUT_SECONDS);
        if !(1..=MAX_TIMEOUT_SECONDS).contains(&timeout_seconds) {
            return Err(invalid(format!("`timeout` is {timeout_seconds}; it is in seconds, from 1 to {MAX_TIMEOUT_SECONDS}")));
        }
        let cwd = directory(arguments.cwd.as_deref(), settings)?;
        let background = arguments.background.unwrap_or(false);
        if background && arguments.timeout.is_some() {
            return Err(invalid("a command in the background has no time limit; leave `timeout` out, and end it with CliStop"));
        }
        let line = with_input(command, arguments.stdin.as_deref());
        let pinned = Pinned::of(&line, &cwd, settings);
        Ok(Draft {
            summary: format!("$ {}{}", first_line(command), if background { " (in the background)" } else { "" }),
            actions: vec![Action::Exec { command: line, cwd: cwd.clone() }],
            proposal: Some(Proposal {
                summary: format!("Run: {}", first_line(command)),
                notes: vec![environment_note(settings)],
                ..Proposal::default()
            }),
            effect: Effect::Runs { timeout_seconds: if background { 0 } else { timeout_seconds }, files: pinned.files() },
            work: Work { command: arguments.command, cwd, timeout_seconds, stdin: arguments.stdin, background, pinned },
        })
    }

    fn run(work: Work, settings: Arc<Settings>, context: RunContext) -> BoxFuture<'static, Output> {
        async move {
            let Work { command, cwd, timeout_seconds, stdin, background, pinned } = work;
            unchanged(pinned, &cwd, &settings).await?;
            let shown = Shown::new(command, cwd, context.tool_call_id.clone(), &settings);
            let directory = shown.entry.cwd.real.clone();
            if background {
                return begin_in_background(spec(shown.line, directory, stdin, None, &settings), shown.entry, &settings).await;
            }
            answer_of(shown, directory, stdin, timeout_seconds, &settings, context).await
        }
        .boxed()
    }
}

/// The directory that a call names, or the workspace.
pub(super) fn directory(given: Option<&str>, settings: &Settings) -> Result<Target, ToolError> {
    let cwd = Paths::on_disk(settings).target("cwd", given.unwrap_or("."), Meant::Directory)?;
    match cwd.place {
        Place::Directory => Ok(cwd),
        Place::Missing => Err(invalid(format!("`cwd`: `{}` does not exist", cwd.given))),
        Place::File { .. } | Place::Special => Err(invalid(format!("`cwd`: `{}` is not a directory", cwd.given))),
    }
}

/// A line, and what goes on with it should it end up in the background.
pub(super) struct Shown {
    pub line: String,
    pub entry: Arc<Entry>,
}

impl Shown {
    pub fn new(line: String, cwd: Target, call: Option<CallId>, settings: &Settings) -> Self {
        let redactor = Arc::clone(&settings.redactor);
        let entry = Entry::new(New { line: line.clone(), cwd, call, kind: Kind::Background, redactor });
        Self { line, entry }
    }
}

/// What was judged and shown is what runs: the directory and the files that the line names to be run.
pub(super) async fn unchanged(pinned: Pinned, cwd: &Target, settings: &Arc<Settings>) -> Result<(), ToolError> {
    let (cwd, settings) = (cwd.clone(), Arc::clone(settings));
    let looked = tokio::task::spawn_blocking(move || pinned.still_holds(&cwd, &settings)).await;
    looked.unwrap_or_else(|error| {
        Err(ToolError::new(ErrorCode::ToolExecutionFailed, format!("the files of the command could not be looked at: {error}")))
    })
}

/// What of aye's own environment the command would see.
pub(super) fn environment_note(settings: &Settings) -> String {
    let words = environment_words(std::env::vars_os(), &settings.environment, &settings.secret_names, &|value| {
        settings.redactor.holds_secret(value)
    });
    format!("environment {words}")
}

/// What a line is run with. It ends by itself, by its time where it has one, or when it is killed.
pub(super) fn spec(
    line: String,
    directory: PathBuf,
    stdin: Option<String>,
    timeout_seconds: Option<u64>,
    settings: &Settings,
) -> Spec {
    Spec {
        line,
        directory,
        environment: command_environment(std::env::vars_os(), &settings.environment, &settings.secret_names, &|value| {
            settings.redactor.holds_secret(value)
        }),
        stdin,
        terminal: None,
        confinement: settings.confine(&Wanted::default()),
        proxy: None,
        timeout: timeout_seconds.map_or(Duration::MAX, Duration::from_secs),
        max_output_bytes: settings.max_output_bytes,
        helper: settings.helper.clone(),
    }
}

/// Runs a line and says what came of it.
pub(super) async fn answer_of(
    line: Shown,
    directory: PathBuf,
    stdin: Option<String>,
    timeout_seconds: u64,
    settings: &Settings,
    context: RunContext,
) -> Output {
    let spec = spec(line.line, directory, stdin, Some(timeout_seconds), settings);
    match in_front(spec, line.entry, &settings.commands, context).await {
        Ok(Outcome::Finished(finished)) => answer(&finished, timeout_seconds, settings.max_output_bytes),
        Ok(Outcome::GoesOn(entry)) => {
            Ok(format!("{}\n{}", on_its_way(&entry, "put there by the person"), told(&entry, settings)))
        }
        Err(error) => Err(failed(&error).into()),
    }
}

/// Starts a line that nobody waits for.
async fn begin_in_background(spec: Spec, entry: Arc<Entry>, settings: &Settings) -> Output {
    settings.commands.admit(&entry)?;
    in_background(spec, &entry);
    entry.quiet(0, FIRST_LOOK).await;
    match entry.ended() {
        Some(_) => Ok(told(&entry, settings)),
        None => Ok(format!("{}\n{}", on_its_way(&entry, "as it was asked to"), told(&entry, settings))),
    }
}

fn on_its_way(entry: &Entry, why: &str) -> String {
    let id = entry.id();
    format!(
        "It goes on in the background as {id}, {why}, without a time limit, until it is done or aye ends. CliRead {id} gives what \
         it prints from now on, CliStop {id} ends it."
    )
}

/// The line as it is judged and shown: what it is given to read is as much a part of it as its words.
pub(super) fn with_input(command: &str, input: Option<&str>) -> String {
    let Some(input) = input.filter(|input| !input.is_empty()) else { return command.to_owned() };
    let mut end = "STDIN".to_owned();
    while input.lines().chain(command.lines()).any(|line| line == end) {
        end.push('_');
    }
    let gap = if input.ends_with('\n') { "" } else { "\n" };
    // A line of several commands is one group, so that all of it reads the same input.
    let simple = !command.contains(|letter: char| "\n;|&<>(){}#\\".contains(letter));
    let reader = if simple { command.to_owned() } else { format!("{{ {command}\n}}") };
    format!("{reader} <<'{end}'\n{input}{gap}{end}")
}

/// Of a command of several lines the first, and a mark that there are more; the approval shows it whole.
pub(super) fn first_line(command: &str) -> String {
    match command.trim().split_once('\n') {
        Some((first, _)) => format!("{} …", first.trim_end()),
        None => command.trim().to_owned(),
    }
}

pub(super) fn failed(error: &ProcessError) -> ToolError {
    let code = match error {
        ProcessError::LineTooLong => ErrorCode::InvalidRequest,
        ProcessError::HelperLost => ErrorCode::OutcomeUnknown,
        ProcessError::NoShell | ProcessError::NotStarted(_) | ProcessError::Helper(_) => ErrorCode::ToolExecutionFailed,
    };
    ToolError::new(code, error.to_string())
}

/// A command that ran is a call that succeeded, whatever its exit code: the model judges that.
fn answer(finished: &Finished, timeout_seconds: u64, max_output_bytes: usize) -> Output {
    let printed = printed(&finished.stdout, &finished.stderr, max_output_bytes);
    match finished.end {
        End::Exited(code) => Ok(format!("Exit code: {code}\n{printed}")),
        End::Signalled(signal) => {
            let name = signal_name(signal).unwrap_or("unknown");
            Ok(format!("Exit code: {} (killed by signal {signal}, {name})\n{printed}", SIGNAL_BASE + signal))
        }
        End::TimedOut => {
            let message = format!(
                "killed after {timeout_seconds} s with all it had started; what it printed until then follows. where it needs longer, set \
                 `timeout` (at most {MAX_TIMEOUT_SECONDS}) or run a part of it"
            );
            Err(Failed { error: ToolError::new(ErrorCode::ToolExecutionTimeout, message), printed })
        }
        End::Killed => {
            let message = "stopped by the person with all it had started; what it printed until then follows";
            Err(Failed { error: ToolError::new(ErrorCode::Cancelled, message), printed })
        }
    }
}

/// Both outputs within one limit: each has half of it, and what one does not need is the other's.
fn printed(stdout: &Captured, stderr: &Captured, limit: usize) -> String {
    let need = |captured: &Captured| usize::try_from(captured.total()).unwrap_or(usize::MAX);
    let half = limit / 2;
    let for_stdout = limit.saturating_sub(need(stderr)).max(half);
    let for_stderr = limit.saturating_sub(need(stdout).min(for_stdout));
    let section = |captured: &Captured, budget| {
        let mut text = captured.text(budget);
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text
    };
    let text = format!("--- stdout ---\n{}--- stderr ---\n{}", section(stdout, for_stdout), section(stderr, for_stderr));
    text.trim_end_matches('\n').to_owned()
}
