//! Tests of background work in a session: previews and background commands, and how they end with the session.

use super::*;
use crate::policy::PreviewPermit;
use crate::protocol::{Approval, Decision, Effects, RunningCommand, RunningState};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

const ASKS: &str = "schema_version = 1\n[capabilities.\"Shell.Exec\"]\nrequires_approval = true\n";

/// Tools whose commands print a word and then run until they are stopped.
#[derive(Default)]
struct Views {
    /// Log of what happened, in order.
    log: Arc<Mutex<Vec<String>>>,
    /// Token that allows previews and runs to finish.
    go_on: CancellationToken,
}

/// Layer of a preview. Adds an entry to the log when it is dropped together with its plan.
struct View(Arc<Mutex<Vec<String>>>);

impl Drop for View {
    fn drop(&mut self) {
        self.0.lock().unwrap().push("view removed".to_owned());
    }
}

impl Views {
    fn log(&self, what: impl Into<String>) {
        self.log.lock().unwrap().push(what.into());
    }
}

impl ToolRouter for Views {
    fn definitions(&self) -> Vec<crate::protocol::ToolDefinition> {
        Vec::new()
    }
    fn capability(&self, _: &str) -> Option<&'static str> {
        Some("Shell.Exec")
    }
    fn plan(&self, call: ToolCall) -> BoxFuture<'_, Result<Plan, ToolError>> {
        let mut plan = make(call);
        plan.preview = PreviewOffer::Possible;
        plan.timeout_seconds = 60;
        plan.sandbox = Some("on: writes /w".to_owned());
        Box::pin(async move { Ok(plan) })
    }
    fn preview(&self, plan: Plan, permit: PreviewPermit, context: RunContext) -> BoxFuture<'_, Result<Plan, ToolError>> {
        assert!(permit.covers(&plan.actions));
        Box::pin(async move {
            let view = View(self.log.clone());
            let _ = context.output.send("compiling\n".to_owned()).await;
            tokio::select! {
                () = self.go_on.cancelled() => {}
                () = context.kill.cancelled() => {
                    self.log("preview killed");
                    return Err(ToolError::new(ErrorCode::Cancelled, "stopped"));
                }
            }
            let effects = Some(Box::new(Effects { ended: "exit 0".to_owned(), ..Effects::default() }));
            Ok(Plan { effects, preview: PreviewOffer::None, payload: Box::new(view), ..plan })
        })
    }
    fn run(&self, plan: Plan, _: Permit, context: RunContext) -> BoxFuture<'_, ToolResult> {
        Box::pin(async move {
            let id = plan.call.tool_call_id.clone();
            let words = if plan.payload.is::<View>() {
                "kept"
            } else {
                self.log(format!("{id} runs"));
                tokio::select! {
                    () = context.background.cancelled() => "goes on as s1",
                    () = self.go_on.cancelled() => "made",
                }
            };
            ToolResult::success(id, "RunCommand", words)
        })
    }
    fn stop_command(&self, id: &str) {
        self.log(format!("{id} stopped"));
    }
    fn end_commands(&self) -> BoxFuture<'_, ()> {
        Box::pin(async { self.log("commands ended") })
    }
}

struct Beside {
    session: Session,
    views: Arc<Views>,
    running: watch::Sender<Vec<RunningCommand>>,
}

/// Returns a session whose model has called a command.
async fn beside() -> Beside {
    beside_with(None).await
}

/// Returns a session whose model has called a command, with the given approval timeout.
async fn beside_with(approval_timeout: Option<Duration>) -> Beside {
    let views = Arc::new(Views::default());
    let disk = Arc::new(Disk::default());
    let script = Arc::new(Script(Mutex::new([said("I make it.", StopReason::ToolUse, Some("c1"))].into())));
    let (running, list) = watch::channel(Vec::new());
    let mut setup = setup(ASKS, views.clone(), disk.clone(), script.clone());
    setup.running = Some(list);
    setup.options.approvals.timeout = approval_timeout;
    setup.sandbox_status.words = "sandbox on · net off".to_owned();
    let (commands, receive_commands) = mpsc::channel(8);
    let (events, receive_events) = mpsc::unbounded_channel();
    let ended = spawn(setup, receive_commands, events).ended;
    let tools = Arc::new(Tools { disk: disk.clone(), fills: AtomicBool::new(false), ran: Mutex::default() });
    let session = Session { commands, events: receive_events, disk, tools, script, ended, status: SessionStatus::Created };
    session.say("go").await;
    Beside { session, views, running }
}

impl Beside {
    async fn asked(&mut self) -> Approval {
        self.session
            .until(|kind| match kind {
                EventKind::ApprovalRequested(approval) => Some(approval.clone()),
                _ => None,
            })
            .await
    }

    async fn completed(&mut self) -> (String, Option<ErrorCode>) {
        self.session
            .until(|kind| match kind {
                EventKind::ToolCompleted { output_text, error, .. } => {
                    Some((output_text.clone(), error.as_ref().map(|error| error.code)))
                }
                _ => None,
            })
            .await
    }

    async fn decide(&self, approval: Approval, decision: Decision) {
        self.session.send(Command::Decide { approval_id: approval.approval_id, decision }).await;
    }

    /// Waits for an approval request, starts a preview, and waits for its output.
    async fn previewing(&mut self) {
        let approval = self.asked().await;
        self.session.send(Command::Preview { approval_id: approval.approval_id }).await;
        let printed = |kind: &EventKind| matches!(kind, EventKind::ToolOutputChunk { text, .. } if text == "compiling\n");
        self.session.until(|kind| printed(kind).then_some(())).await;
    }

    /// Ends the session and returns its log.
    async fn quit(self) -> Vec<String> {
        self.session.send(Command::Quit).await;
        self.session.ended.await.unwrap();
        let log = self.views.log.lock().unwrap();
        log.clone()
    }
}

#[tokio::test]
async fn a_preview_streams_output_and_approving_its_effects_applies_them() {
    let mut beside = beside().await;
    beside.previewing().await;
    beside.views.go_on.cancel();
    let approval = beside.asked().await;
    assert_eq!(approval.effects.as_ref().map(|effects| effects.ended.as_str()), Some("exit 0"));
    assert_eq!(approval.command.as_ref().map(|command| command.sandbox.as_str()), Some("on: writes /w"));
    beside.decide(approval, Decision::Approved).await;
    assert_eq!(beside.completed().await, ("kept".to_owned(), None));
    beside.session.until_completed().await;
    let begun = |record: &&Record| matches!(record, Record::PreviewStarted { .. });
    assert_eq!(beside.session.saved().iter().filter(begun).count(), 1);
    assert_eq!(beside.quit().await, ["view removed", "commands ended"]);
}

#[tokio::test]
async fn denying_the_effects_removes_the_preview() {
    let mut beside = beside().await;
    beside.previewing().await;
    beside.views.go_on.cancel();
    let approval = beside.asked().await;
    beside.decide(approval, Decision::denied(None)).await;
    assert_eq!(beside.completed().await.1, Some(ErrorCode::UserDenied));
    assert_eq!(beside.quit().await, ["view removed", "commands ended"]);
}

#[tokio::test]
async fn stopping_a_task_kills_its_preview_and_the_session_continues() {
    for stop in [Command::Cancel, Command::Kill] {
        let mut beside = beside().await;
        beside.previewing().await;
        beside.session.send(stop).await;
        assert_eq!(beside.completed().await.1, Some(ErrorCode::Cancelled));
        beside.session.say("again").await;
        beside.session.until_completed().await;
        assert_eq!(beside.quit().await, ["preview killed", "view removed", "commands ended"]);
    }
}

#[tokio::test(start_paused = true)]
async fn an_interrupted_task_ends_even_if_its_command_keeps_running() {
    let mut beside = beside().await;
    let approval = beside.asked().await;
    beside.decide(approval, Decision::Approved).await;
    beside.session.until(|kind| matches!(kind, EventKind::ToolStarted { .. }).then_some(())).await;
    // Commands have a grace period of their own, and this one ignores the interrupt.
    beside.session.send(Command::Cancel).await;
    assert_eq!(beside.completed().await.1, Some(ErrorCode::OutcomeUnknown));
    beside.session.until(|kind| matches!(kind, EventKind::TaskCancelled { .. }).then_some(())).await;
    // A result that arrives after the call has ended is ignored.
    beside.session.script.0.lock().unwrap().push_back(said("Once more.", StopReason::ToolUse, Some("c2")));
    beside.session.say("again").await;
    let approval = beside.asked().await;
    beside.decide(approval, Decision::Approved).await;
    beside.session.until(|kind| matches!(kind, EventKind::ToolStarted { .. }).then_some(())).await;
    beside.views.go_on.cancel();
    assert_eq!(beside.completed().await, ("made".to_owned(), None));
    beside.session.until_completed().await;
}

#[tokio::test(start_paused = true)]
async fn an_approval_that_times_out_is_a_denial_and_the_task_continues() {
    let mut beside = beside_with(Some(Duration::from_secs(300))).await;
    let approval = beside.asked().await;
    let begun = tokio::time::Instant::now();
    let timed_out = |kind: &EventKind| match kind {
        EventKind::ApprovalTimeout { approval_id, .. } => Some(approval_id.clone()),
        _ => None,
    };
    assert_eq!(beside.session.until(timed_out).await, approval.approval_id);
    assert!(begun.elapsed() >= Duration::from_secs(300));
    assert_eq!(beside.completed().await.1, Some(ErrorCode::ApprovalTimeout));
    beside.session.until_completed().await;
    beside.decide(approval, Decision::Approved).await;
    let late = |kind: &EventKind| matches!(kind, EventKind::Notice { message, .. } if message.contains("already decided"));
    beside.session.until(|kind| late(kind).then_some(())).await;
    assert_eq!(beside.quit().await, ["commands ended"]);
}

#[tokio::test]
async fn the_session_ends_after_its_previews_are_killed_and_removed() {
    let mut beside = beside().await;
    beside.previewing().await;
    let mut log = beside.quit().await;
    log.sort();
    assert_eq!(log, ["commands ended", "preview killed", "view removed"]);
}

#[tokio::test]
async fn a_running_command_moves_to_the_background_on_request() {
    for id in [None, Some(CallId::new("c1"))] {
        let mut beside = beside().await;
        let approval = beside.asked().await;
        // No command is running yet.
        for id in [None, Some(CallId::new("c1"))] {
            beside.session.send(Command::Background { tool_call_id: id }).await;
            let told =
                |kind: &EventKind| matches!(kind, EventKind::Notice { message, .. } if message.contains("no running command"));
            beside.session.until(|kind| told(kind).then_some(())).await;
        }
        beside.decide(approval, Decision::Approved).await;
        beside.session.until(|kind| matches!(kind, EventKind::ToolStarted { .. }).then_some(())).await;
        beside.session.send(Command::Background { tool_call_id: id }).await;
        assert_eq!(beside.completed().await, ("goes on as s1".to_owned(), None));
        beside.session.until_completed().await;
        beside.session.send(Command::Stop { id: "s1".to_owned() }).await;
        assert_eq!(beside.quit().await, ["c1 runs", "s1 stopped", "commands ended"]);
    }
}

#[tokio::test]
async fn the_front_end_receives_the_sandbox_state_and_the_running_commands() {
    let mut beside = beside().await;
    let words = |kind: &EventKind| match kind {
        EventKind::SandboxInForce { words, .. } => Some(words.clone()),
        _ => None,
    };
    assert_eq!(beside.session.until(words).await, "sandbox on · net off");
    beside.asked().await;
    let command = RunningCommand {
        id: "s1".to_owned(),
        line: "make serve".to_owned(),
        tool_call_id: None,
        state: RunningState::Running,
        since: Timestamp::UNIX_EPOCH,
        last_line: String::new(),
    };
    beside.running.send(vec![command]).unwrap();
    let listed = |kind: &EventKind| match kind {
        EventKind::CommandsRunning { commands } => Some(commands.len()),
        _ => None,
    };
    assert_eq!(beside.session.until(listed).await, 1);
    // The session does not end when the list of running commands is closed.
    beside.running = watch::channel(Vec::new()).0;
    beside.session.say("again").await;
    beside.session.until(|kind| matches!(kind, EventKind::QueueChanged { .. }).then_some(())).await;
}
