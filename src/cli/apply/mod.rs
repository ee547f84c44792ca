//! `aye apply`: applies a patch file from `aye exec --patch`, in a separate session.
//!
//! The file is untrusted data, and the verdicts recorded in it have no effect. Every change is planned from the files
//! on disk, judged by the policy in effect, and applied with a permit. Because the journal records each change, it can
//! be undone.

pub(crate) mod args;
mod calls;
mod screen;

use crate::agent::{self, Approver};
use crate::host::console::{self, can_ask, print_text, warn};
use crate::host::context::AppContext;
use crate::host::error::CliError;
use crate::host::exit::Exit;
use crate::host::nesting::Nesting;
use crate::host::options::{Common, SessionChoice};
use crate::host::project::ProjectConfig;
use crate::host::session_builder::front_end::FrontEnd;
use crate::host::session_builder::{PreparedSession, SessionBuilder};
use crate::host::startup;
use crate::host::startup::start_log;
use crate::host::tool_runner::{Starts, ToolEnvironment, ToolRunner};
use crate::policy::Verdict;
use crate::ports::ToolRouter as _;
use crate::protocol::{
    Approval, Command, Decision, ErrorCode, EventKind, Problem, SessionCommand, ToolError, ToolStatus, VerdictKind, format_count,
};
use crate::store::Store;
use crate::text::clean;
use crate::tools::{MAX_PATCH_BYTES, PatchFile};
use calls::{ListedCalls, calls};
use std::fmt::Write as _;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::mpsc;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ApplyRequest {
    pub file: PathBuf,
    pub form: Form,
}

/// Mode in which the changes are approved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Only shows the planned changes.
    Check,
    /// Prompts on the terminal for each change that needs approval.
    Ask,
    /// Approves every change that needs approval, except changes with critical risk.
    Yes,
}

/// Description of the changes for messages, and the available ways to prompt the user.
pub(crate) struct Application {
    /// First prompt of the session.
    pub prompt: String,
    /// Name of the changes in messages, such as `the patch file`.
    pub subject: &'static str,
    /// Hint shown if files differ from the state on which the changes are based.
    pub conflict_hint: String,
    /// Whether aye can prompt the user on the terminal.
    pub has_terminal: bool,
    /// Whether approval prompts are shown in the full-screen UI, which lets the user leave out hunks.
    pub on_screen: bool,
}

/// Number of digits shown of a session ID.
const SHORT_DIGITS: usize = 8;

pub(crate) fn run(common: &Common, request: &ApplyRequest) -> Result<Exit, CliError> {
    let mut app = AppContext::find(common)?;
    // Errors in the user's own files are reported before anything is created.
    app.policy(common.policy.as_deref(), None)?;
    let patch = Arc::new(read(&request.file)?);
    app.mode = app.session_mode(common.mode);
    if patch.header().files.is_empty() {
        print_text("the patch file changes nothing\n");
        return Ok(Exit::Completed);
    }
    let project = ProjectConfig::inspect(&app.workspace, &app.directories.config, common.trust);
    let policy = app.policy(common.policy.as_deref(), Some(&project))?;
    let (then, now) = (&patch.header().policy, policy.stamp(app.mode));
    if then.hash != now.hash {
        warn(format!("the policy has changed since the patch file was written; the current policy ({}) applies", now.name));
    }
    let files = format_count(patch.header().files.len() as u64, "file", "files");
    let application = Application {
        prompt: format!("Apply a patch file: {files}, SHA-256 {}", patch.digest()),
        subject: "the patch file",
        conflict_hint: "run the task again, with `aye exec --patch`, to get a patch for the current files".to_owned(),
        has_terminal: request.file != Path::new("-"),
        on_screen: false,
    };
    apply_patch(common, app, patch, request.form, &application)
}

/// Judges and applies changes in a separate session.
///
/// # Errors
/// Returns an error if the policy denies a change, if an approval is missing, or if files differ from the state on
/// which the changes are based.
pub(crate) fn apply_patch(
    common: &Common,
    mut app: AppContext,
    patch: Arc<PatchFile>,
    form: Form,
    application: &Application,
) -> Result<Exit, CliError> {
    app.mode = app.session_mode(common.mode);
    app.patch = Some(Arc::clone(&patch));
    let project = ProjectConfig::inspect(&app.workspace, &app.directories.config, common.trust);
    let _log = start_log(&app, common.verbosity);
    let runtime = startup::runtime()?;
    let forecast = {
        let environment = ToolEnvironment::find(&app, common, &project, Starts::Nothing)?;
        let runner = ToolRunner::new(environment, None);
        runtime.block_on(Forecast::predict(&runner, &patch)).map_err(|error| planning_error(&error, application))?
    };
    let worst = forecast.worst();
    if form == Form::Check || worst == VerdictKind::Deny {
        print_text(&clean(&forecast.describe()));
    }
    if worst == VerdictKind::Deny {
        let message = format!("the policy denies changes in {}; nothing was changed", application.subject);
        return Err(CliError::new(Exit::Denied, message));
    }
    if form == Form::Check {
        return Ok(Exit::Completed);
    }
    let has_person = can_ask() && application.has_terminal;
    let is_reviewed = patch.review().is_some_and(|review| review.is_required);
    let on_screen = application.on_screen && (is_reviewed || form == Form::Ask && worst == VerdictKind::Ask);
    let approver = match form {
        _ if on_screen => Approver::User,
        Form::Yes => Approver::User,
        Form::Ask if has_person && Nesting::detect() == Nesting::Outermost => Approver::User,
        Form::Ask | Form::Check => Approver::Nobody,
    };
    if worst == VerdictKind::Ask && approver == Approver::Nobody {
        print_text(&clean(&forecast.describe()));
        return Err(CliError::new(Exit::Denied, "approval required; nothing was changed")
            .hint("pass `--yes` to approve, or `--check` to show the changes without applying them"));
    }
    let store = Store::open(&app.directories.data)?;
    let builder = SessionBuilder::find(FrontEnd::apply(approver), common.clone(), app, store, &SessionChoice::New)?;
    let prepared = runtime.block_on(builder.with_own_model(Arc::new(ListedCalls(calls(&patch)))).claim()?.prepare())?;
    let id: String = prepared.session().id().as_str().chars().take(SHORT_DIGITS).collect();
    let progress = if on_screen {
        runtime.block_on(screen::review(prepared, common, application))?
    } else {
        runtime.block_on(apply(prepared, form, application))
    };
    progress.end(application, &id)
}

/// Reads and parses a patch file.
fn read(file: &Path) -> Result<PatchFile, CliError> {
    let failed = |why: &dyn std::fmt::Display| {
        CliError::usage(Problem::new(format!("cannot read the patch file `{}`", file.display())).because(why))
    };
    let mut bytes = Vec::new();
    let read = if file == Path::new("-") {
        std::io::stdin().lock().take(MAX_PATCH_BYTES + 1).read_to_end(&mut bytes)
    } else {
        std::fs::File::open(file).and_then(|file| file.take(MAX_PATCH_BYTES + 1).read_to_end(&mut bytes))
    };
    read.map_err(|error| failed(&error))?;
    if bytes.len() as u64 > MAX_PATCH_BYTES {
        return Err(failed(&format!("the file is larger than {} MB", MAX_PATCH_BYTES >> 20)));
    }
    PatchFile::parse(&bytes).map_err(|why| {
        let problem = Problem::new(format!("`{}` is not a valid patch file", file.display())).because(why);
        CliError::usage(problem.hint("run `aye exec --patch FILE PROMPT` to write one"))
    })
}

/// Verdicts on the changes in a patch file, determined before any change is applied.
struct Forecast {
    /// For each change, its path, the verdict, and the reason including the rule.
    files: Vec<(String, VerdictKind, String)>,
}

impl Forecast {
    /// Plans all calls and judges each change, without changing any files.
    ///
    /// # Errors
    /// Returns an error if files differ from the state on which the patch file is based.
    async fn predict(runner: &ToolRunner, patch: &PatchFile) -> Result<Self, ToolError> {
        let mut files = Vec::new();
        let mut paths = patch.header().files.iter().map(|entry| entry.path.clone());
        for call in calls(patch) {
            // Changes are judged before they are planned. A denied change is therefore reported even if files differ.
            let actions = runner.router.scope(call.clone()).await;
            let now = jiff::Timestamp::now();
            for action in &actions {
                let verdict = runner.policy.judge_call(&call.tool_name, std::slice::from_ref(action), now);
                files.push((paths.next().unwrap_or_default(), kind(&verdict), reason(&verdict)));
            }
            if !files.iter().any(|(_, verdict, _)| *verdict == VerdictKind::Deny) {
                runner.plan(call).await?;
            }
        }
        Ok(Self { files })
    }

    fn worst(&self) -> VerdictKind {
        self.files.iter().map(|(_, verdict, _)| *verdict).max().unwrap_or(VerdictKind::Allow)
    }

    fn describe(&self) -> String {
        let mut text = String::new();
        for (path, verdict, reason) in &self.files {
            let _ = writeln!(text, "{:5} {path} ({reason})", verdict.as_str());
        }
        text
    }
}

fn kind(verdict: &Verdict) -> VerdictKind {
    match verdict {
        Verdict::Allow(_) => VerdictKind::Allow,
        Verdict::Ask(_) => VerdictKind::Ask,
        Verdict::Deny(_) => VerdictKind::Deny,
    }
}

fn reason(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Allow(permit) => format!("rule: {}", permit.rule()),
        Verdict::Ask(question) => format!("{}; rule: {}", question.reason, question.rule),
        Verdict::Deny(denial) => format!("{}; rule: {}", denial.reason, denial.rule),
    }
}

fn planning_error(error: &ToolError, application: &Application) -> CliError {
    let problem = CliError::failed(Problem::new(format!("cannot apply {}", application.subject)).because(&error.message));
    if error.code == ErrorCode::Conflict {
        return problem.hint(application.conflict_hint.clone());
    }
    problem
}

/// Results and errors of the session's calls so far.
#[derive(Default)]
struct Progress {
    errors: Vec<ToolError>,
    exit: Option<Exit>,
    /// Results of the successful calls.
    output: Vec<String>,
    is_cancelled: bool,
}

impl Progress {
    fn follow(&mut self, event: &EventKind) {
        match event {
            EventKind::ToolCompleted { status: ToolStatus::Succeeded, output_text, .. } => self.output.push(output_text.clone()),
            EventKind::ToolCompleted { status, error, .. } => {
                self.exit = Some(if *status == ToolStatus::Denied { Exit::Denied } else { Exit::Failed });
                self.errors.extend(error.clone());
            }
            EventKind::TaskFailed { failure, .. }
            | EventKind::PromptBlocked { failure, .. }
            | EventKind::SessionPaused { failure } => {
                self.exit = Some(Exit::Failed);
                self.errors.push(ToolError::new(ErrorCode::ToolExecutionFailed, failure.message.clone()));
            }
            EventKind::TaskCancelled { .. } => self.is_cancelled = true,
            _ => {}
        }
    }

    /// Prints the results. Returns an error unless all changes are applied. `session`: the short ID of the session that
    /// applied them.
    fn end(self, application: &Application, session: &str) -> Result<Exit, CliError> {
        for text in &self.output {
            print_text(&(clean(text).into_owned() + "\n"));
        }
        if self.is_cancelled {
            let done = if self.output.is_empty() { "nothing was changed" } else { "the remaining changes were not applied" };
            return Err(CliError::new(Exit::Denied, format!("cancelled; {done}")));
        }
        match (self.errors.into_iter().next(), self.exit) {
            (None, None) if self.output.is_empty() => Err(CliError::new(Exit::Denied, "cancelled; nothing was changed")),
            (None, None) => {
                warn(format!("run `aye rewind {session}` to undo it"));
                Ok(Exit::Completed)
            }
            (None, Some(exit)) => Err(CliError::new(exit, format!("cannot apply {} completely", application.subject))),
            (Some(error), exit) => Err(CliError { exit: exit.unwrap_or(Exit::Failed), ..planning_error(&error, application) }),
        }
    }
}

/// Runs the session that applies the changes until its task ends, prompting for approval on the terminal.
async fn apply(prepared: PreparedSession, form: Form, application: &Application) -> Progress {
    let (commands, receive_commands) = mpsc::channel::<SessionCommand>(agent::CHANNEL_DEPTH);
    let (events, mut receive_events) = mpsc::unbounded_channel();
    let mut session = prepared.start(receive_commands, events, None);
    let _ = commands.send(Command::Prompt { text: application.prompt.clone() }.into()).await;
    let mut progress = Progress::default();
    while let Some(event) = receive_events.recv().await {
        progress.follow(&event.kind);
        let is_over = event.kind.is_over();
        if let EventKind::ApprovalRequested(approval) = event.kind {
            let approval_id = approval.approval_id.clone();
            let decision = decide(approval, form).await;
            let _ = commands.send(Command::Decide { approval_id, decision }.into()).await;
        }
        if is_over {
            let _ = commands.send(Command::Quit.into()).await;
        }
    }
    session.wait_until_ended().await;
    session.close().await;
    progress
}

/// Decides whether to approve a call. With `--yes`, approves every call that does not have critical risk. Otherwise
/// prompts the user.
async fn decide(approval: Approval, form: Form) -> Decision {
    if form == Form::Yes {
        let reason = || Some("`--yes` does not approve critical risk".to_owned());
        return if approval.critical { Decision::denied(reason()) } else { Decision::Approved };
    }
    let asked = tokio::task::spawn_blocking(move || confirm(&approval)).await;
    if asked.unwrap_or(false) { Decision::Approved } else { Decision::denied(None) }
}

fn confirm(approval: &Approval) -> bool {
    let (diff, risk) = (approval.proposal.diff.to_string(), approval.risk_level.as_str());
    let notes: Vec<&str> = approval.proposal.notes.iter().flat_map(|note| [note.as_str(), "\n"]).collect();
    let notes = notes.concat();
    let text = format!("{diff}{notes}{}\n{risk} risk: {} (rule: {})", approval.action_summary, approval.reason, approval.rule);
    console::confirm(&format!("{text}\n"), "Apply?")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_that_ends_without_results_is_not_a_success() {
        let application = Application {
            prompt: String::new(),
            subject: "the patch file",
            conflict_hint: String::new(),
            has_terminal: false,
            on_screen: false,
        };
        let error = Progress::default().end(&application, "1a2b3c4d").unwrap_err();
        assert_eq!(error.exit, Exit::Denied);
        let done = Progress { output: vec!["Applied.".to_owned()], ..Progress::default() };
        assert_eq!(done.end(&application, "1a2b3c4d").unwrap(), Exit::Completed);
    }
}
