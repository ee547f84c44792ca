//! Runs command lines for all tools and builds their results.

use super::checkpoint::{self, WorkspaceState};
use super::command_sandbox::{CommandSandbox, ExtraAccess};
use super::executed_files::PinnedFiles;
use super::sandbox_denials::{BlockedAccess, CreatedPaths};
use super::unapproved_run::UnapprovedRun;
use super::{git_clean_backup, network};
use crate::ports::{CheckpointError, RunContext};
use crate::protocol::{CommandEnd, ErrorCode, LeftOut, SandboxAccess, Target, ToolError};
use crate::sys::process::{
    CommandSpec, End, FinishedRun, OutputCapture, ProcessError, Shell, command_environment, describe_environment, signal_name,
};
use crate::sys::sandbox::{Confinement, NetworkAccess};
use crate::tools::background::{
    After, BackgroundCommand, BackgroundKind, NewCommand, WaitOutcome, finish, in_background, new_output, run_in_foreground,
};
use crate::tools::blocking::off_thread;
use crate::tools::call_result::{CallResult, ToolFailure, ToolOutput};
use crate::tools::output::{OutputCollector, OutputCollectors};
use crate::tools::settings::ToolSettings;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Maximum time to wait for a background command's first output.
const FIRST_LOOK: Duration = Duration::from_secs(1);

/// A planned command line.
pub(in crate::tools) struct PlannedCommand {
    pub line: String,
    /// Shell that runs the command.
    pub shell: Shell,
    pub cwd: Target,
    pub timeout_seconds: u64,
    pub stdin: Option<String>,
    /// Files that were checked along with the call and must not change, or `None` if the policy fixes the program.
    pub pinned: Option<PinnedFiles>,
    /// Additional access granted for this run.
    pub opens: Vec<SandboxAccess>,
    /// Whether the command runs in the background.
    pub background: bool,
    /// Whether stderr is omitted from the result.
    pub without_stderr: bool,
    /// Function that builds a custom result in place of a command's usual one.
    pub answer: Option<Answer>,
    /// Restrictions on this command in addition to those on all commands.
    pub narrow: AccessRestrictions,
}

/// Function that builds the result of a finished run. Returns `None` to use a command's usual result.
pub(in crate::tools) type Answer = Arc<dyn Fn(&FinishedRun, usize) -> Option<CallResult> + Send + Sync>;

/// How a command's access differs from that of other commands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::tools) struct AccessRestrictions {
    pub read_only: bool,
    pub no_network: bool,
    /// Whether the command runs outside the sandbox, which is the opposite of a restriction.
    pub unsandboxed: bool,
    /// Paths of the command's own files, which must be visible to it even if other commands cannot see them.
    pub sees: Vec<PathBuf>,
}

impl PlannedCommand {
    /// Builds the result of a finished run.
    pub(in crate::tools) fn result(&self, finished: &FinishedRun, max_output_bytes: usize) -> CallResult {
        let own = self.answer.as_ref().and_then(|answer| answer(finished, max_output_bytes));
        let told = own.unwrap_or_else(|| answer(finished, self.timeout_seconds, max_output_bytes));
        if self.without_stderr { without_stderr(told, finished, max_output_bytes) } else { told }
    }
}

impl AccessRestrictions {
    /// Describes the command's sandbox if it differs from that of other commands.
    pub(in crate::tools) fn describe(&self, settings: &ToolSettings) -> Option<String> {
        if self.unsandboxed {
            return Some(OUTSIDE.to_owned());
        }
        let home = settings.home.clone().unwrap_or_else(|| "/".into());
        (self.read_only || self.no_network).then(|| self.apply_to(Arc::new(settings.clone())).command.sandbox.describe(&home))
    }

    /// Returns the settings with these restrictions applied.
    pub(in crate::tools) fn apply_to(&self, settings: Arc<ToolSettings>) -> Arc<ToolSettings> {
        if *self == Self::default() {
            return settings;
        }
        if self.unsandboxed {
            return Arc::new(settings.with_sandbox(settings.command.sandbox.outside()));
        }
        let mut narrowed = if self.read_only { settings.read_only() } else { (*settings).clone() };
        if self.no_network && narrowed.command.sandbox.tier.is_enforcing() {
            narrowed.command.sandbox.network = NetworkAccess::Proxied;
        }
        narrowed.command.sandbox.paths.shown.extend(self.sees.iter().cloned());
        Arc::new(narrowed)
    }
}

/// Builds a line that runs exactly these words. The shell passes them on unchanged and does not treat the first one as
/// a builtin.
pub(in crate::tools) fn exec_line(words: &[String]) -> String {
    let words: Vec<String> = words.iter().map(|word| format!("'{}'", word.replace('\'', r"'\''"))).collect();
    format!("exec -- {}", words.join(" "))
}

/// Text shown when a command is to be approved for running outside the sandbox.
const OUTSIDE: &str = "NONE for this run: the command has all your permissions, and aye's own directories are not protected";

/// Runs the command with real effects.
pub(in crate::tools) async fn run(mut work: PlannedCommand, settings: Arc<ToolSettings>, context: RunContext) -> CallResult {
    let settings = work.narrow.apply_to(settings);
    check_unchanged(&mut work, &settings).await?;
    let apart = unapproved_run(&work, &settings).await?;
    let (wanted, sandbox) = (ExtraAccess::for_line(&work.line, work.opens.clone()), Arc::clone(&settings));
    let (opened, mut hold) = off_thread(move || (CreatedPaths::make(&wanted.opens), sandbox.prepare_sandbox(&wanted))).await?;
    let kept = checkpoint::snapshot_before(&settings, &context.interrupt).await;
    if work.narrow.unsandboxed && !matches!(kept, Ok(Some(_))) {
        let why = kept.err().map_or_else(|| "this session does not store snapshots".to_owned(), |error| error.to_string());
        let message = format!("nothing was run: a run outside the sandbox needs a snapshot first, and there is none: {why}");
        return Err(ToolError::new(ErrorCode::ToolExecutionFailed, message).into());
    }
    hold.start(kept.as_ref().ok().and_then(|kept| kept.as_ref()?.mark()));
    let cleared = if work.background { None } else { git_clean_backup::keep(&work.line, &work.cwd, &settings).await };
    let spec = spec(&work, hold.confinement.clone(), &apart, &settings);
    let entry = BackgroundCommand::new(NewCommand {
        line: work.line.clone(),
        cwd: work.cwd.clone(),
        call: context.tool_call_id.clone(),
        kind: BackgroundKind::Background,
        writes: settings.command.sandbox.writes_in_workspace(),
        redactor: Arc::clone(&settings.redactor),
    });
    let rest = RunResources { work, hold, opened, settings: Arc::clone(&settings) };
    if rest.work.background {
        return begin_in_background(spec, &entry, rest).await;
    }
    let (to_keep, whole) = OutputCollector::begin(&rest.work.line, &settings);
    let outcome = run_in_foreground(spec, &entry, to_keep, &settings.session.commands, context).await;
    if let (Some(changes), Some(cleared)) = (&settings.session.changes, cleared) {
        changes.record_saved(cleared).await;
    }
    match outcome {
        Err(error) => {
            let (words, denied) = off_thread(move || rest.release(None)).await?;
            Err(ToolFailure { printed: words.join("\n"), denied, ..process_error(&error).into() })
        }
        Ok(WaitOutcome::Finished(finished)) => {
            let limit = settings.max_output_bytes;
            let wholes = match whole {
                Some(whole) => whole.finish().await,
                None => OutputCollectors::default(),
            };
            let told = off_thread(move || {
                let told = wholes.attach_to(rest.work.result(&finished, limit), &finished, limit);
                let (words, denied) = rest.release(Some(&finished));
                with_words(told, words.into_iter(), denied)
            });
            with_changes(told.await?, kept, &settings).await
        }
        Ok(WaitOutcome::Continues(running)) => {
            tokio::spawn(finish(Arc::clone(&entry), running, rest.into_cleanup()));
            Ok(started_result(&entry, "moved there by the user", &settings))
        }
    }
}

/// Resources that are in use while a command is running.
struct RunResources {
    work: PlannedCommand,
    hold: CommandSandbox,
    opened: CreatedPaths,
    settings: Arc<ToolSettings>,
}

impl RunResources {
    /// Releases the resources once the command has ended, even if the outcome is unknown. Returns notes from the
    /// sandbox and the access that it blocked.
    fn release(self, finished: Option<&FinishedRun>) -> (Vec<String>, Vec<SandboxAccess>) {
        let Self { work, hold, opened, settings } = self;
        drop(opened);
        let ended = finished.zip(hold.confinement.as_ref());
        let denied = ended.map(|(finished, confinement)| {
            let denied = sandbox_denials(finished, &work, confinement, &settings);
            // A command that succeeded has had its effects, so it is not run again.
            if finished.end == End::Exited(0) { denied.without_offers() } else { denied }
        });
        let denied = denied.unwrap_or_default();
        let words = [denied.note(), hold.over().map(|gone| format!("[sandbox: {gone}]"))];
        (words.into_iter().flatten().collect(), denied.outside)
    }

    fn into_cleanup(self) -> After {
        Box::new(move |finished| self.release(finished).0)
    }
}

/// Starts a command in the background.
async fn begin_in_background(spec: CommandSpec, entry: &Arc<BackgroundCommand>, rest: RunResources) -> CallResult {
    let settings = Arc::clone(&rest.settings);
    settings.session.commands.admit(entry)?;
    in_background(spec, entry, rest.into_cleanup());
    entry.wait_until_quiet(0, FIRST_LOOK).await;
    Ok(match entry.end_reason() {
        Some(_) => new_output(entry, settings.max_output_bytes),
        None => started_result(entry, "as requested", &settings),
    })
}

fn started_result(entry: &BackgroundCommand, why: &str, settings: &ToolSettings) -> ToolOutput {
    let id = entry.id();
    let told = new_output(entry, settings.max_output_bytes);
    let text = format!(
        "The command runs in the background as {id}, {why}, without a time limit, until it or aye ends. CliRead {id} returns \
         its new output, CliStop {id} ends it.\n{}",
        told.text
    );
    ToolOutput { text, ..told }
}

/// Checks that the working directory and the files to run have not changed since they were checked and shown.
pub(in crate::tools) async fn check_unchanged(work: &mut PlannedCommand, settings: &Arc<ToolSettings>) -> Result<(), ToolError> {
    let Some(pinned) = work.pinned.take() else { return Ok(()) };
    let (cwd, settings) = (work.cwd.clone(), Arc::clone(settings));
    off_thread(move || pinned.check_unchanged(&cwd, &settings)).await?
}

/// Describes which of aye's environment variables the command can see.
pub(in crate::tools) fn environment_note(settings: &ToolSettings) -> String {
    let words =
        describe_environment(std::env::vars_os(), &settings.command.environment, &settings.command.secret_names, &|value| {
            settings.redactor.holds_secret(value)
        });
    format!("environment {words}")
}

/// Determines the protections for a line that runs without approval.
pub(in crate::tools) async fn unapproved_run(
    work: &PlannedCommand,
    settings: &Arc<ToolSettings>,
) -> Result<UnapprovedRun, ToolError> {
    let (line, directory) = (with_input(&work.line, work.stdin.as_deref()), work.cwd.real.clone());
    let settings = Arc::clone(settings);
    off_thread(move || UnapprovedRun::find(&line, &directory, &settings)).await?
}

pub(in crate::tools) fn spec(
    work: &PlannedCommand,
    confinement: Option<Confinement>,
    apart: &UnapprovedRun,
    settings: &ToolSettings,
) -> CommandSpec {
    let mut environment =
        command_environment(std::env::vars_os(), &settings.command.environment, &settings.command.secret_names, &|value| {
            settings.redactor.holds_secret(value)
        });
    settings.adapt(&mut environment, confinement.as_ref());
    apart.apply(&mut environment);
    CommandSpec {
        line: work.line.clone(),
        shell: work.shell,
        directory: work.cwd.real.clone(),
        environment,
        stdin: work.stdin.clone(),
        terminal: None,
        confinement,
        proxy: Some(network::proxy(settings, &work.opens)),
        timeout: if work.background { Duration::MAX } else { Duration::from_secs(work.timeout_seconds) },
        max_output_bytes: settings.max_output_bytes,
        helper: settings.command.helper.clone(),
    }
}

/// Determines which access was blocked, from everything that is known once the command has ended. After a success, only
/// attempts to connect prove that access was blocked; the output does not.
pub(in crate::tools) fn sandbox_denials(
    finished: &FinishedRun,
    work: &PlannedCommand,
    confinement: &Confinement,
    settings: &ToolSettings,
) -> BlockedAccess {
    let [stdout, stderr] = [&finished.stdout, &finished.stderr].map(|captured| captured.text(settings.max_output_bytes));
    let hosts = network::blocked_hosts(finished, &work.opens);
    if finished.end == End::Exited(0) {
        return BlockedAccess::detect(&[], &work.cwd.real, hosts, confinement, settings);
    }
    let denied = BlockedAccess::detect(&[&stderr, &stdout], &work.cwd.real, hosts, confinement, settings);
    if settings.command.sandbox.narrowed { denied.detect_read_only(&stderr, &work.cwd.real, confinement) } else { denied }
}

/// Appends the sandbox's notes to a result.
pub(in crate::tools) fn with_words(
    told: CallResult,
    words: impl Iterator<Item = String>,
    denied: Vec<SandboxAccess>,
) -> CallResult {
    let after = |text: String| words.fold(text, |text, line| format!("{text}\n{line}"));
    match told {
        Ok(told) => Ok(ToolOutput { text: after(told.text), denied, ..told }),
        Err(failed) => Err(ToolFailure { printed: after(failed.printed), denied, ..failed }),
    }
}

/// Adds the changes that the command has made since the snapshot, or the reason why they are not known.
async fn with_changes(
    told: CallResult,
    kept: Result<Option<WorkspaceState>, CheckpointError>,
    settings: &Arc<ToolSettings>,
) -> CallResult {
    let kept = match kept {
        Ok(kept) => kept,
        Err(error) => {
            if let Some(changes) = &settings.session.changes {
                changes.note_gap(format!("a command ran without a snapshot: {error}")).await;
            }
            let denied = told.as_ref().map_or_else(|failed| &failed.denied, |told| &told.denied).clone();
            return with_words(told, std::iter::once(format!("[no snapshot was taken before the command: {error}]")), denied);
        }
    };
    let changed = match kept {
        Some(kept) => kept.into_proposal(settings).await.map(Box::new),
        None => None,
    };
    match told {
        Ok(told) => Ok(ToolOutput { changed, ..told }),
        Err(failed) => Err(ToolFailure { changed, ..failed }),
    }
}

pub(in crate::tools) fn process_error(error: &ProcessError) -> ToolError {
    let code = match error {
        ProcessError::LineTooLong => ErrorCode::InvalidRequest,
        ProcessError::HelperLost => ErrorCode::OutcomeUnknown,
        ProcessError::NoShell(_) | ProcessError::NotStarted(_) | ProcessError::Helper(_) => ErrorCode::ToolExecutionFailed,
    };
    ToolError::new(code, error.to_string())
}

/// Builds the result. A command that has run is a successful call whatever its exit code, which is for the model to
/// interpret.
pub(in crate::tools) fn answer(finished: &FinishedRun, timeout_seconds: u64, max_output_bytes: usize) -> CallResult {
    let (printed, gaps) = format_output(&finished.stdout, &finished.stderr, max_output_bytes);
    let left_out = LeftOut::from_gaps(gaps, None);
    let exited = |end: CommandEnd| {
        let text = format!("Exit code: {}\n{printed}", end.exit_text().unwrap_or_default());
        Ok(ToolOutput { text, ended: Some(end), left_out: left_out.clone(), ..ToolOutput::default() })
    };
    let failed = |code: ErrorCode, message: String| {
        Err(ToolFailure { printed: printed.clone(), left_out: left_out.clone(), ..ToolError::new(code, message).into() })
    };
    match finished.end {
        End::Exited(code) => exited(CommandEnd::Exited { code }),
        End::Signalled(signal) => {
            let name = signal_name(signal).unwrap_or("unknown").to_owned();
            exited(CommandEnd::Signalled { signal, name })
        }
        End::TimedOut => {
            let message = format!(
                "killed after {timeout_seconds} s with all its processes; the output so far follows. If the command \
                 needs longer, set `timeout` (at most {MAX_TIMEOUT_SECONDS}) or run part of it"
            );
            let ended = Some(CommandEnd::TimedOut { seconds: timeout_seconds });
            failed(ErrorCode::ToolExecutionTimeout, message).map_err(|failed| ToolFailure { ended, ..failed })
        }
        End::Killed => {
            let message = "the command was stopped with all its processes before it finished; the output so far follows";
            failed(ErrorCode::Cancelled, message.to_owned())
        }
        End::Interrupted => {
            let message = "the user interrupted the command before it finished; the output so far follows";
            failed(ErrorCode::Cancelled, message.to_owned())
        }
        End::MemoryFull => {
            let message = "the command was killed with all its processes: its shared memory exceeded the policy's limit \
                           (`memory_mb`); the output so far follows. Use less, or ask the user to raise the limit";
            failed(ErrorCode::ToolExecutionFailed, message.to_owned())
        }
        End::LayerFull => {
            let message = "the command was killed with all its processes: it wrote more to its copy of the workspace than the \
                           policy's limit (`layer_mb`); the output so far follows. Write less, or ask the user to raise the \
                           limit";
            failed(ErrorCode::ToolExecutionFailed, message.to_owned())
        }
        End::DiskFull => {
            let message = "the command was killed with all its processes: it nearly filled the disk; the output so far follows. \
                           Free some space, or write less";
            failed(ErrorCode::ToolExecutionFailed, message.to_owned())
        }
    }
}

/// Formats both outputs within a common limit. Also returns the number of bytes omitted at each gap.
fn format_output(stdout: &OutputCapture, stderr: &OutputCapture, limit: usize) -> (String, Vec<u64>) {
    let [(stdout, first), (stderr, second)] = sections(stdout, stderr, limit);
    let text = format!("--- stdout ---\n{stdout}{STDERR}{stderr}").trim_end_matches('\n').to_owned();
    (text, first.into_iter().chain(second).collect())
}

const STDERR: &str = "--- stderr ---\n";

/// Formats the outputs. Each of them may use half of the limit, plus whatever the other one does not need.
fn sections(stdout: &OutputCapture, stderr: &OutputCapture, limit: usize) -> [(String, Option<u64>); 2] {
    let need = |captured: &OutputCapture| usize::try_from(captured.total()).unwrap_or(usize::MAX);
    let half = limit / 2;
    let for_stdout = limit.saturating_sub(need(stderr)).max(half);
    let for_stderr = limit.saturating_sub(need(stdout).min(for_stdout));
    let section = |captured: &OutputCapture, budget| {
        let (mut text, gap) = captured.text_with_gap(budget);
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        (text, gap)
    };
    [section(stdout, for_stdout), section(stderr, for_stderr)]
}

/// Removes stderr from a result, and notes how much was removed.
pub(in crate::tools) fn without_stderr(told: CallResult, finished: &FinishedRun, limit: usize) -> CallResult {
    let [(_, gap), (stderr, _)] = sections(&finished.stdout, &finished.stderr, limit);
    let left_out = LeftOut::from_gaps(gap.into_iter().collect(), None);
    let section = format!("{STDERR}{stderr}");
    let section = section.trim_end_matches('\n');
    let without = |text: String| match (finished.stderr.total(), text.rfind(section)) {
        (1.., Some(at)) => {
            let note = format!("[{} bytes omitted: captureStderr is false]", finished.stderr.total());
            format!("{}{STDERR}{note}{}", &text[..at], &text[at + section.len()..])
        }
        _ => text,
    };
    match told {
        Ok(told) => Ok(ToolOutput { text: without(told.text), left_out, ..told }),
        Err(failed) => Err(ToolFailure { printed: without(failed.printed), left_out, ..failed }),
    }
}

/// Maximum timeout in seconds.
pub(in crate::tools) const MAX_TIMEOUT_SECONDS: u64 = 600;

/// Builds the line, including its input, in the form that the policy checks and the user sees.
pub(in crate::tools) fn with_input(command: &str, input: Option<&str>) -> String {
    let Some(input) = input.filter(|input| !input.is_empty()) else { return command.to_owned() };
    let mut end = "STDIN".to_owned();
    while input.lines().chain(command.lines()).any(|line| line == end) {
        end.push('_');
    }
    let gap = if input.ends_with('\n') { "" } else { "\n" };
    // Several commands are grouped, so that all of them read the same input.
    let simple = !command.contains(|letter: char| "\n;|&<>(){}#\\".contains(letter));
    let reader = if simple { command.to_owned() } else { format!("{{ {command}\n}}") };
    format!("{reader} <<'{end}'\n{input}{gap}{end}")
}
