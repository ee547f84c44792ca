//! Drives the session of a task: its prompt, its check, approvals that need the user, and signals.

use crate::agent;
use crate::headless::{self, Format, Output};
use crate::host::end_signals::EndSignals;
use crate::host::exit::Exit;
use crate::host::session_builder::PreparedSession;
use crate::host::tasks::CheckResult;
use crate::protocol::{CallId, Command, Event, EventKind, SessionCommand, exit_code_in};
use std::collections::HashSet;
use std::io::{IsTerminal, Read, Write};
use std::time::Duration;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until};

/// Maximum time that running tools have to finish after a signal.
const GRACE: Duration = Duration::from_secs(8);

/// Destination of a task's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OutputTarget {
    /// The response is written to stdout, and progress to stderr.
    Terminal,
    /// Everything is written to stderr, which is the task's log. The process that started this one reads stdout until
    /// the session has started.
    Log,
}

pub(super) struct DriveRequest {
    /// First command to send. `None` if the session continues its unfinished task.
    pub first: Option<SessionCommand>,
    /// Command that is run once the model has finished.
    pub check: Option<String>,
    pub target: OutputTarget,
    /// Whether a layer covers the workspace, whose path is then that of a copy.
    pub is_layer: bool,
    /// Whether the task stops when standard input is closed.
    pub is_attached: bool,
}

/// How a run of the task ended.
pub(super) struct TaskEnding {
    pub exit: Exit,
    /// Whether the task is waiting for the user, because a decision is pending or the session paused.
    pub needs_user: bool,
    pub check: Option<CheckResult>,
}

/// Runs the session until its task ends, needs the user, or is stopped.
pub(super) async fn drive(prepared: PreparedSession, request: DriveRequest) -> TaskEnding {
    let DriveRequest { first, check, target, is_layer, is_attached } = request;
    let (commands, receive_commands) = mpsc::channel(agent::CHANNEL_DEPTH);
    let (events, receive_events) = mpsc::unbounded_channel();
    let (tell, told) = mpsc::unbounded_channel();
    let mut session = prepared.start(receive_commands, events, None);
    if let Some(first) = first {
        let _ = commands.send(first).await;
    }
    let watch = TaskWatch { commands, tell, check: check.map(PendingCheck::new), is_layer, ..TaskWatch::new(is_attached) };
    let watch = tokio::spawn(watch.run(receive_events));
    let outcome = print(told, target).await;
    let watched = watch.await.unwrap_or_default();
    if watched.signal.is_none() {
        session.wait_until_ended().await;
    }
    session.close().await;
    let needs_user = watched.signal.is_none() && (watched.waits || watched.is_paused);
    TaskEnding { exit: watched.signal.unwrap_or_else(|| outcome.into()), needs_user, check: watched.check }
}

/// Prints events until their sender is dropped.
async fn print(told: UnboundedReceiver<Event>, target: OutputTarget) -> headless::Outcome {
    let (mut err, mut out): (_, Box<dyn Write + Send>) = match target {
        OutputTarget::Terminal => (std::io::stderr(), Box::new(std::io::stdout())),
        OutputTarget::Log => (std::io::stderr(), Box::new(std::io::stderr())),
    };
    let out_is_terminal = target == OutputTarget::Terminal && std::io::stdout().is_terminal();
    let (clean, version) = (crate::text::clean, crate::host::version::version());
    let output = Output { out: &mut *out, err: &mut err, out_is_terminal, clean, version, is_saved: true, check: None };
    headless::run(told, Format::Text, output).await
}

/// A command to run as a check, and its tool call once it has started.
struct PendingCheck {
    line: String,
    call: Option<CallId>,
    is_started: bool,
}

impl PendingCheck {
    fn new(line: String) -> Self {
        Self { line, call: None, is_started: false }
    }
}

/// Results of watching a task.
#[derive(Default)]
struct Watched {
    signal: Option<Exit>,
    /// Whether an approval is pending, or a call whose outcome is unknown.
    waits: bool,
    /// Whether the session paused because a limit was reached or the provider failed.
    is_paused: bool,
    check: Option<CheckResult>,
}

/// Forwards a session's events, and ends the session after its task, when the user must make a decision, or when a
/// signal arrives.
struct TaskWatch {
    commands: mpsc::Sender<SessionCommand>,
    tell: UnboundedSender<Event>,
    check: Option<PendingCheck>,
    /// IDs of pending approvals, and of interrupted calls on which the user must decide.
    pending: HashSet<String>,
    /// IDs of pending questions from the model and from servers. The calls that asked them are still running.
    questions: HashSet<String>,
    running: HashSet<CallId>,
    /// Whether the session has been asked to exit.
    is_ending: bool,
    is_layer: bool,
    is_attached: bool,
    result: Watched,
}

impl TaskWatch {
    fn new(is_attached: bool) -> Self {
        Self {
            commands: mpsc::channel(1).0,
            tell: mpsc::unbounded_channel().0,
            check: None,
            pending: HashSet::new(),
            questions: HashSet::new(),
            running: HashSet::new(),
            is_ending: false,
            is_layer: false,
            is_attached,
            result: Watched::default(),
        }
    }

    async fn run(mut self, mut events: UnboundedReceiver<Event>) -> Watched {
        let Ok(mut signals) = EndSignals::new() else { return self.result };
        let mut closed = self.is_attached.then(watch_stdin);
        let mut last_call = None;
        loop {
            let input_closed = async {
                match &mut closed {
                    Some(closed) => {
                        let _ = closed.await;
                    }
                    None => std::future::pending().await,
                }
            };
            let event: Option<Event> = tokio::select! {
                event = events.recv() => event,
                exit = signals.next(), if self.result.signal.is_none() => { self.result.signal = Some(exit); None }
                () = input_closed, if self.result.signal.is_none() => { self.result.signal = Some(Exit::Terminated); None }
                () = sleep_until(last_call.unwrap_or_else(Instant::now)), if last_call.is_some() => return self.result,
            };
            match event {
                Some(mut event) => {
                    // A pause that this run requested is not an error.
                    let is_own_end = self.is_ending && matches!(event.kind, EventKind::SessionPaused { .. });
                    self.learn(&event.kind).await;
                    if !is_own_end {
                        self.name_copy(&mut event.kind);
                        let _ = self.tell.send(event);
                    }
                    // Other calls of the same step may still be running or send events.
                    if self.waits_for_user() && events.is_empty() {
                        self.result.waits = true;
                        self.end().await;
                    }
                }
                None if last_call.is_none() && self.result.signal.is_some() => {
                    last_call = Some(Instant::now() + GRACE);
                    // The task remains unfinished, so that it can be resumed.
                    self.end().await;
                }
                None => return self.result,
            }
        }
    }

    /// Names the copy as such, because a layer has the same path as the workspace.
    fn name_copy(&self, kind: &mut EventKind) {
        if let EventKind::SessionStarted { workspace, .. } = kind
            && self.is_layer
        {
            *workspace = format!("a copy of {workspace}");
        }
    }

    async fn end(&mut self) {
        if !std::mem::replace(&mut self.is_ending, true) {
            let _ = self.commands.send(Command::Quit.into()).await;
        }
    }

    async fn learn(&mut self, kind: &EventKind) {
        match kind {
            EventKind::ApprovalRequested(approval) => self.wait_for(approval.approval_id.as_str()),
            EventKind::ElicitationRequested(asked) => {
                self.questions.insert(asked.elicitation_id.clone());
            }
            EventKind::ToolInterrupted { tool_call_id, .. } => self.wait_for(tool_call_id.as_str()),
            EventKind::ApprovalResolved { approval_id, .. } => {
                self.pending.remove(approval_id.as_str());
            }
            EventKind::ElicitationEnded { elicitation_id, .. } => {
                self.questions.remove(elicitation_id);
            }
            EventKind::ToolStarted { tool_call_id, .. } => {
                self.running.insert(tool_call_id.clone());
            }
            EventKind::OwnCommandStarted { tool_call_id, .. } => {
                if let Some(check) = &mut self.check {
                    check.call = Some(tool_call_id.clone());
                }
            }
            EventKind::ToolCompleted { tool_call_id, output_text, ended, .. } => {
                self.running.remove(tool_call_id);
                self.pending.remove(tool_call_id.as_str());
                let check = self.check.as_ref().filter(|check| check.call.as_ref() == Some(tool_call_id));
                if let Some(check) = check {
                    let exit_code = match ended {
                        Some(ended) => ended.exit_code(),
                        None => exit_code_in(output_text).and_then(|code| code.parse().ok()),
                    };
                    self.result.check = Some(CheckResult { command: check.line.clone(), exit_code });
                }
            }
            EventKind::OwnCommandEnded { .. } => self.end().await,
            EventKind::TaskCompleted { .. } => self.after_completion().await,
            EventKind::SessionPaused { .. } => {
                self.result.is_paused = !self.is_ending;
                self.end().await;
            }
            EventKind::TaskFailed { .. } | EventKind::PromptBlocked { .. } | EventKind::TaskCancelled { .. } => self.end().await,
            _ => {}
        }
    }

    /// Returns whether the task cannot continue until the user makes a decision or answers a question.
    fn waits_for_user(&self) -> bool {
        let has_decision = !self.pending.is_empty() || !self.questions.is_empty();
        has_decision && self.running.len() <= self.questions.len()
    }

    /// Records that an approval or a call needs the user's decision.
    fn wait_for(&mut self, id: &str) {
        self.pending.insert(id.to_owned());
    }

    /// Starts the check. Ends the session if there is no check or if it has already been started.
    async fn after_completion(&mut self) {
        match self.check.as_mut().filter(|check| !check.is_started) {
            Some(check) if !self.is_ending => {
                check.is_started = true;
                let line = check.line.clone();
                let _ = self.commands.send(Command::Shell { line, shared: false }.into()).await;
            }
            _ => self.end().await,
        }
    }
}

/// Returns a receiver that completes when standard input is closed.
fn watch_stdin() -> oneshot::Receiver<()> {
    let (sender, receiver) = oneshot::channel();
    std::thread::spawn(move || {
        let mut buffer = [0; 256];
        while std::io::stdin().lock().read(&mut buffer).is_ok_and(|count| count > 0) {}
        drop(sender);
    });
    receiver
}
