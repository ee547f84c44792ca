//! `aye rewind`: rewinds a session to before a prompt, or redoes a rewind, without a screen or a model.

pub(crate) mod args;

use crate::agent;
use crate::host::console::{can_ask, confirm, print_json, print_text};
use crate::host::context::AppContext;
use crate::host::error::CliError;
use crate::host::exit::Exit;
use crate::host::options::{Common, SessionChoice};
use crate::host::session_builder::front_end::FrontEnd;
use crate::host::session_builder::{PreparedSession, SessionBuilder};
use crate::host::startup;
use crate::host::startup::start_log;
use crate::protocol::{
    Command, Event, EventKind, RewindChange, RewindFile, RewindPlan, RewindPoint, RewindScope, RewindTarget, Rewound,
    SessionCommand, TaskId,
};
use crate::store::Store;
use crate::text::{clean, reveal};
use std::fmt::Write as _;
use std::path::PathBuf;
use tokio::sync::mpsc;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RewindRequest {
    pub session: Option<String>,
    /// Number of a prompt, or ID of the task it started.
    pub to: Option<String>,
    pub scope: RewindScope,
    pub redo: bool,
    pub form: Form,
    /// Whether files that were edited outside aye are also restored.
    pub overwrite: bool,
    pub json: bool,
}

/// Mode of the rewind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Only shows the plan.
    Plan,
    /// Rewinds if the user confirms the plan.
    Ask,
    /// Rewinds without confirmation.
    Yes,
}

const SEE_LOG: &str = "see the log in the data directory";

pub(crate) fn run(common: &Common, request: &RewindRequest) -> Result<Exit, CliError> {
    let app = AppContext::find(common)?;
    // Errors in the user's own files are reported before anything is created.
    app.policy(common.policy.as_deref(), None)?;
    let _log = start_log(&app, common.verbosity);
    let store = Store::open(&app.directories.data)?;
    let choice = request.session.clone().map_or(SessionChoice::Latest, SessionChoice::Id);
    let mut claimed = SessionBuilder::find(FrontEnd::rewind(), common.clone(), app, store, &choice)?.claim()?;
    let runtime = startup::runtime()?;
    // A plan must not write to the journal.
    let plan = runtime.block_on(plan(claimed.dry_run(), request))?;
    let asks = request.form == Form::Ask;
    if request.form == Form::Plan {
        if request.json {
            print_json(&plan);
        } else {
            print_text(&describe_plan(&plan));
        }
        return Ok(Exit::Completed);
    }
    if asks && !can_ask() {
        if request.json {
            print_json(&plan);
        } else {
            print_text(&describe_plan(&plan));
        }
        return Err(CliError::usage("nothing was rewound: cannot prompt without a terminal")
            .hint("pass `--yes` to rewind, or `--plan` to see what it would do"));
    }
    if asks && !confirm(&format!("{}\n", describe_plan(&plan)), "Rewind?") {
        return Err(CliError::usage("nothing was rewound"));
    }
    let conflicts = plan.files.iter().filter(|file| request.overwrite && file.conflict.is_some());
    let overwrite: Vec<PathBuf> = conflicts.map(|file| file.path.clone()).collect();
    let done = runtime.block_on(async { apply_plan(Box::pin(claimed.prepare()).await?, &plan, overwrite).await })?;
    if request.json {
        print_json(&done);
    } else {
        print_text(&describe_result(&done));
    }
    Ok(Exit::Completed)
}

/// Connection to a session that executes only rewind commands.
struct RewindSession {
    commands: mpsc::Sender<SessionCommand>,
    events: mpsc::UnboundedReceiver<Event>,
}

impl RewindSession {
    /// Creates a connection, and returns it together with the session's ends of the channels.
    fn connect() -> (Self, mpsc::Receiver<SessionCommand>, mpsc::UnboundedSender<Event>) {
        let (commands, receive_commands) = mpsc::channel(agent::CHANNEL_DEPTH);
        let (events, receive_events) = mpsc::unbounded_channel();
        (Self { commands, events: receive_events }, receive_commands, events)
    }

    /// Sends a command and waits for the response. If the session emits a notice or pauses instead, returns an error.
    async fn ask<T>(&mut self, command: Command, answer: impl Fn(EventKind) -> Option<T>) -> Result<T, CliError> {
        let gone = || CliError::failed("the session ended unexpectedly").hint(SEE_LOG);
        self.commands.send(command.into()).await.map_err(|_| gone())?;
        while let Some(event) = self.events.recv().await {
            match event.kind {
                EventKind::SessionPaused { failure } => return Err(CliError::failed(failure.problem())),
                EventKind::Notice { message, .. } => return Err(CliError::failed(message)),
                kind => {
                    if let Some(answer) = answer(kind) {
                        return Ok(answer);
                    }
                }
            }
        }
        Err(gone())
    }

    /// Returns the prompts of the session, skipping earlier events. An interrupted rewind is completed before the
    /// prompts are listed.
    async fn points(&mut self) -> Result<Vec<RewindPoint>, CliError> {
        let gone = || CliError::failed("the session ended unexpectedly").hint(SEE_LOG);
        self.commands.send(Command::ListRewindPoints.into()).await.map_err(|_| gone())?;
        while let Some(event) = self.events.recv().await {
            match event.kind {
                EventKind::RewindPointsListed { points, .. } => return Ok(points),
                EventKind::SessionPaused { failure } => return Err(CliError::failed(failure.problem())),
                _ => {}
            }
        }
        Err(gone())
    }

    async fn quit(self) {
        let _ = self.commands.send(Command::Quit.into()).await;
    }
}

async fn plan(setup: agent::Setup, request: &RewindRequest) -> Result<RewindPlan, CliError> {
    let (mut asked, commands, events) = RewindSession::connect();
    let ended = agent::spawn(setup, commands, events).ended;
    let points = asked.points().await?;
    let target = target(request, &points)?;
    let command = Command::PlanRewind { target, scope: request.scope };
    let planned = asked
        .ask(command, |kind| match kind {
            EventKind::RewindPlanned(plan) => Some(plan),
            _ => None,
        })
        .await;
    asked.quit().await;
    let _ = ended.await;
    planned
}

async fn apply_plan(prepared: PreparedSession, plan: &RewindPlan, overwrite: Vec<PathBuf>) -> Result<Rewound, CliError> {
    let (mut asked, commands, events) = RewindSession::connect();
    let mut session = prepared.start(commands, events, None);
    asked.points().await?;
    let command = Command::Rewind { target: plan.target.clone(), scope: plan.scope, overwrite };
    let done = asked
        .ask(command, |kind| match kind {
            EventKind::Rewound(done) => Some(done),
            _ => None,
        })
        .await;
    asked.quit().await;
    session.wait_until_ended().await;
    session.close().await;
    done
}

fn target(request: &RewindRequest, points: &[RewindPoint]) -> Result<RewindTarget, CliError> {
    let Some(to) = &request.to else {
        return Ok(if request.redo { RewindTarget::Redo } else { RewindTarget::Last });
    };
    let number: Option<u32> = to.parse().ok();
    let found = points.iter().find(|point| Some(point.number) == number || point.task_id.as_str() == to);
    match found {
        Some(point) => Ok(RewindTarget::Before { task_id: point.task_id.clone(), step_id: None }),
        // The session reports the reason why it cannot rewind to a task that is not listed.
        None if to.starts_with("task_") => Ok(RewindTarget::Before { task_id: TaskId::new(to), step_id: None }),
        None => {
            let known: Vec<_> = points.iter().map(|point| point.number.to_string()).collect();
            let problem = CliError::usage(format!("unknown prompt `{to}`"));
            Err(problem.hint(if known.is_empty() {
                "this session has no prompts yet".to_owned()
            } else {
                format!("this session's prompts are {}", known.join(", "))
            }))
        }
    }
}

/// Describes what a rewind would do.
fn describe_plan(plan: &RewindPlan) -> String {
    let mut text = String::new();
    match &plan.point {
        Some(point) => {
            let prompt = point.prompt.split_whitespace().collect::<Vec<_>>().join(" ");
            let _ = writeln!(text, "Rewind to before prompt {}: {}", point.number, clean(&prompt));
            for command in &point.commands {
                let _ = writeln!(text, "  ran {}", clean(command));
            }
        }
        None => text.push_str("Redo: restore the state before the last rewind\n"),
    }
    text.push_str(&files(&plan.files));
    if plan.scope.files() && plan.files.is_empty() {
        text.push_str("  no files to restore\n");
    }
    if plan.scope.conversation() {
        let verb = if plan.point.is_some() { "undone" } else { "restored" };
        let _ = writeln!(text, "  {} messages {verb}", plan.messages);
    }
    for cannot in &plan.cannot {
        let _ = writeln!(text, "  cannot undo: {}", clean(cannot));
    }
    if !plan.diff.is_empty() {
        let _ = write!(text, "\n{}", clean(&plan.diff.to_string()));
    }
    text
}

fn files(files: &[RewindFile]) -> String {
    let mut text = String::new();
    for file in files {
        let name = reveal(&file.path.to_string_lossy()).replace(['\n', '\r'], " ");
        let lines = if file.added + file.removed > 0 { format!("  +{} −{}", file.added, file.removed) } else { String::new() };
        let letter = match file.change {
            RewindChange::Restored => 'M',
            RewindChange::Deleted => 'D',
            RewindChange::BroughtBack => 'A',
        };
        let stays = file.conflict.as_ref().map(|why| format!("  left as is: {} (--overwrite restores it too)", clean(why)));
        let stays = if file.kept { file.conflict.as_ref().map(|why| format!("  left as is: {}", clean(why))) } else { stays };
        let _ = writeln!(text, "  {letter} {name}  {}{lines}{}", file.change.verb(), stays.unwrap_or_default());
    }
    text
}

/// Describes what a rewind did.
fn describe_result(done: &Rewound) -> String {
    let mut text = format!("{}\n", clean(&done.message));
    text.push_str(&files(&done.kept));
    if let Some(prompt) = &done.prompt {
        let _ = writeln!(text, "the prompt was: {}", clean(prompt.trim()));
    }
    text
}
