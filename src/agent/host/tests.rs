//! Tests of sessions whose store cannot be written: nothing happens unsaved, no message is lost, and the session can
//! continue.

use super::*;
use crate::agent::turn::{AgentOptions, ApprovalOptions, Approver, OfferedTools, PriceOptions, SandboxStatus};
use crate::agent::{Backoff, ResumePolicy};
use crate::policy::redact::Redactor;
use crate::policy::{Bundle, Context, Enforcer, Layer, Permit, Sandbox, Scope};
use crate::ports::{
    BoxFuture, Completion, Delta, Durability, Journal, JournalError, Model, ModelRequest, ModelStream, Models, Plan,
    PlanAmendments, Record, RecoveredCalls, Rules, RunContext,
};
use crate::protocol::{
    Action, CallArguments, CallId, Command, ErrorCode, Failure, FailureKind, HookEvents, ListedModel, Mode, ModelFacts, Part,
    Place, PreviewOffer, SandboxTier, SecretString, SessionCommand, SessionId, SessionStatus, StopReason, Target, ToolCall,
    ToolError, ToolResult, Usage, WorkspaceId,
};
use futures_util::StreamExt;
use jiff::Timestamp;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

mod background;
mod model_client;
mod sampling;
mod servers;
mod session_journal;

const POLICY: &str = "schema_version = 1\n[capabilities.\"Shell.Exec\"]\nrequires_approval = false\n";

/// Journal whose writes fail on demand.
#[derive(Default)]
struct Disk {
    full: AtomicBool,
    /// Whether another process also owns the session.
    taken: AtomicBool,
    batches: Mutex<Vec<Vec<Record>>>,
    refused: Mutex<Vec<Vec<Record>>>,
}

impl Journal for Disk {
    fn append(&self, records: Vec<Record>, _: Durability) -> BoxFuture<'_, Result<(), JournalError>> {
        let full = self.full.load(Ordering::SeqCst);
        let to = if full { &self.refused } else { &self.batches };
        to.lock().unwrap().push(records);
        let answer = if full {
            Err(JournalError { message: "the disk is full".to_owned(), lost: self.taken.load(Ordering::SeqCst), hint: None })
        } else {
            Ok(())
        };
        Box::pin(async move { answer })
    }

    fn save_draft(&self, _: String) -> BoxFuture<'_, Result<(), JournalError>> {
        Box::pin(async { Ok(()) })
    }
}

/// Model that first calls a command and then returns one word per request.
struct Script(Mutex<VecDeque<Completion>>);

impl Model for Script {
    fn name(&self) -> &'static str {
        "test/model"
    }
    fn facts(&self) -> ModelFacts {
        ModelFacts::for_test(self.name(), 100_000, None)
    }
    fn stream(&self, _: ModelRequest) -> ModelStream {
        let next = self.0.lock().unwrap().pop_front().unwrap_or_else(|| said("Done.", StopReason::EndTurn, None));
        futures_util::stream::iter([Ok(Delta::Completed(next))]).boxed()
    }
}

fn said(text: &str, stop_reason: StopReason, call: Option<&str>) -> Completion {
    let mut content = vec![Part::Text { text: text.to_owned() }];
    content.extend(call.map(|id| {
        Part::ToolCall(ToolCall {
            tool_call_id: CallId::new(id),
            tool_name: "RunCommand".to_owned(),
            arguments: CallArguments::parse("{}"),
        })
    }));
    Completion { content, stop_reason, usage: Usage::default(), model: None }
}

/// Tools that fill the disk when a call is planned, and record the calls that ran.
struct Tools {
    disk: Arc<Disk>,
    fills: AtomicBool,
    ran: Mutex<Vec<CallId>>,
}

impl ToolRouter for Tools {
    fn definitions(&self) -> Vec<crate::protocol::ToolDefinition> {
        Vec::new()
    }
    fn capability(&self, _: &str) -> Option<&'static str> {
        Some("Shell.Exec")
    }
    fn plan(&self, call: ToolCall) -> BoxFuture<'_, Result<Plan, ToolError>> {
        if self.fills.swap(false, Ordering::SeqCst) {
            self.disk.full.store(true, Ordering::SeqCst);
        }
        let plan = make(call);
        Box::pin(async move { Ok(plan) })
    }
    fn run(&self, plan: Plan, _: Permit, context: RunContext) -> BoxFuture<'_, ToolResult> {
        let id = plan.call.tool_call_id;
        self.ran.lock().unwrap().push(id.clone());
        let killed = context.kill.is_cancelled();
        Box::pin(async move { ToolResult::success(id, "RunCommand", if killed { "killed" } else { "made" }) })
    }
}

/// Returns the plan of a call that runs `make`.
fn make(call: ToolCall) -> Plan {
    let cwd = Target { given: String::new(), real: PathBuf::from("/w"), place: Place::Directory };
    Plan {
        tool_name: call.tool_name.clone(),
        call,
        summary: "$ make".to_owned(),
        actions: vec![Action::Exec { command: "make".to_owned(), cwd }],
        proposal: None,
        changes: true,
        waits_for_user: false,
        places: Vec::new(),
        runs: Vec::new(),
        preview: PreviewOffer::None,
        effects: None,
        layer: crate::ports::LayerRun::None,
        opens: Vec::new(),
        timeout_seconds: 1,
        sandbox: None,
        task_plan: None,
        doubts: crate::ports::Doubts::default(),
        amends: PlanAmendments::default(),
        hook_runs: None,
        payload: Box::new(()),
    }
}

#[test]
fn only_file_changes_finish_after_an_interrupt() {
    let arguments = crate::protocol::CallArguments::parse("{}");
    let call = || ToolCall { tool_call_id: CallId::new("c"), tool_name: "T".to_owned(), arguments: arguments.clone() };
    let target = || Target { given: "a".to_owned(), real: PathBuf::from("/w/a"), place: Place::Missing };
    let finishes = super::tool_runs::must_finish;
    assert!(!finishes(&make(call())), "a command");
    assert!(!finishes(&Plan { timeout_seconds: 0, ..make(call()) }), "a terminal session");
    let read = Plan { changes: false, timeout_seconds: 0, actions: vec![Action::Read { target: target() }], ..make(call()) };
    assert!(!finishes(&read));
    let write = Plan { timeout_seconds: 0, actions: vec![Action::Write { target: target() }], ..make(call()) };
    assert!(finishes(&write));
    let effects = Some(Box::new(crate::protocol::Effects::default()));
    assert!(finishes(&Plan { effects, ..make(call()) }), "effects that are kept");
}

/// Rule storage that does not save anything.
struct NoRules;

impl Rules for NoRules {
    fn rule_places(&self, _: &crate::protocol::GrantOption) -> Vec<crate::protocol::RulePlace> {
        Vec::new()
    }
    fn save(
        &self,
        _: Vec<crate::protocol::GrantRule>,
        _: crate::protocol::GrantScope,
        _: Option<Timestamp>,
    ) -> BoxFuture<'_, Result<crate::ports::SavedRules, String>> {
        Box::pin(async { Err("the disk is full".to_owned()) })
    }
    fn remove(
        &self,
        _: Vec<crate::protocol::GrantRule>,
        _: crate::protocol::GrantScope,
    ) -> BoxFuture<'_, Result<crate::ports::SavedRules, String>> {
        Box::pin(async { Err("the disk is full".to_owned()) })
    }
    fn list(&self) -> BoxFuture<'_, Result<Vec<crate::protocol::ListedGrant>, String>> {
        Box::pin(async { Ok(Vec::new()) })
    }
    fn recent_commands(&self, _: usize) -> BoxFuture<'_, Result<Vec<String>, String>> {
        Box::pin(async { Ok(Vec::new()) })
    }
}

struct Session {
    commands: mpsc::Sender<SessionCommand>,
    events: mpsc::UnboundedReceiver<Event>,
    disk: Arc<Disk>,
    tools: Arc<Tools>,
    script: Arc<Script>,
    ended: JoinHandle<()>,
    /// Last reported status.
    status: SessionStatus,
}

/// Model list that contains no other models.
struct NoModels;

impl Models for NoModels {
    fn open(&self, name: &str) -> Result<Arc<dyn Model>, Failure> {
        Err(Failure::new(FailureKind::NotFound, format!("there is no model `{name}`"), "still using as it is"))
    }
    fn keep_key(&self, name: &str, _: &SecretString) -> Result<String, Failure> {
        Ok(format!("the key of {name} is kept"))
    }
    fn list(&self, _: bool) -> BoxFuture<'static, (Vec<ListedModel>, Vec<String>)> {
        Box::pin(std::future::ready(Default::default()))
    }
}

fn setup(policy: &str, router: Arc<dyn ToolRouter>, journal: Arc<Disk>, model: Arc<Script>) -> Setup {
    let options = AgentOptions {
        model: model.facts(),
        effort: None,
        max_output_tokens: 1_000,
        max_steps: 10,
        limits: Vec::new(),
        prices: PriceOptions::default(),
        fallback_models: Vec::new(),
        summary_model: None,
        model_before: None,
        effort_for_this_run: false,
        approvals: ApprovalOptions { approver: Approver::User, agent: None, timeout: None },
        backoff: Backoff::default(),
        system: "be good".into(),
        tools: OfferedTools { definitions: Vec::new().into(), names: Vec::new() },
        sandbox: "NONE".to_owned(),
        laxest: Mode::Auto,
        chosen_mode: None,
        hooks: HookEvents::default(),
        compact_at_percent: Some(80),
        service_session: None,
    };
    let context = Context {
        roots: vec![PathBuf::from("/w")],
        home: PathBuf::from("/home/me"),
        mode: Mode::Ask,
        sandbox: Sandbox::Present,
        own: Vec::new(),
        skills: Vec::new(),
    };
    let layers = vec![Layer::new(Scope::User, Bundle::parse(policy, "test").unwrap())];
    Setup {
        policy: PolicySetup { enforcer: Enforcer::new(layers, context), name: "test".to_owned(), updates: None },
        options,
        models: ModelSetup { current: model, all: Arc::new(NoModels), summary: SummaryModelSetup::default() },
        router,
        guidance: None,
        artifacts: None,
        journal,
        rules: Arc::new(NoRules),
        workspace_id: WorkspaceId::new("w"),
        session_id: SessionId::new("s"),
        workspace: "/w".to_owned(),
        mode: Mode::Ask,
        restored: RestoredSession {
            records: Vec::new(),
            unfinished: ResumePolicy::Pause,
            settled: Vec::new(),
            known: RecoveredCalls::default(),
        },
        sandbox_status: SandboxStatus { tier: SandboxTier::Bare, words: String::new(), missing: None },
        running: None,
        tell_changes: false,
        redactor: Arc::new(Redactor::new(Vec::new(), [], || [7; 32])),
        room: None,
        remote: None,
        questions: None,
    }
}

/// Returns a session that received the prompt `go`, with a command call whose start could not be saved.
async fn stalled() -> Session {
    let disk = Arc::new(Disk::default());
    let tools = Arc::new(Tools { disk: disk.clone(), fills: AtomicBool::new(true), ran: Mutex::default() });
    let script = Arc::new(Script(Mutex::new([said("I make it.", StopReason::ToolUse, Some("c1"))].into())));
    let setup = setup(POLICY, tools.clone(), disk.clone(), script.clone());
    let (commands, receive_commands) = mpsc::channel(8);
    let (events, receive_events) = mpsc::unbounded_channel();
    let ended = spawn(setup, receive_commands, events).ended;
    let mut session = Session { commands, events: receive_events, disk, tools, script, ended, status: SessionStatus::Created };
    session.say("go").await;
    let failure = session.until_paused().await;
    assert_eq!(failure.message, "Cannot save this session (the disk is full). Paused before the next step.");
    assert!(session.ran().is_empty(), "it ran unsaved");
    session
}

impl Session {
    async fn send(&self, command: impl Into<SessionCommand>) {
        self.commands.send(command.into()).await.unwrap();
    }

    async fn say(&self, text: &str) {
        self.send(Command::Prompt { text: text.to_owned() }).await;
    }

    fn ran(&self) -> Vec<CallId> {
        self.tools.ran.lock().unwrap().clone()
    }

    async fn until<T>(&mut self, pick: impl Fn(&EventKind) -> Option<T>) -> T {
        loop {
            let event = self.events.recv().await.expect("it ended before that");
            if let EventKind::StateChanged { session_status, .. } = &event.kind {
                self.status = *session_status;
            }
            if let Some(found) = pick(&event.kind) {
                return found;
            }
        }
    }

    async fn until_paused(&mut self) -> Failure {
        let paused = |kind: &EventKind| match kind {
            EventKind::SessionPaused { failure } => Some(failure.clone()),
            _ => None,
        };
        let failure = self.until(paused).await;
        assert_eq!(self.status, SessionStatus::Paused, "the state is in effect before the event");
        failure
    }

    async fn until_completed(&mut self) {
        self.until(|kind| matches!(kind, EventKind::TaskCompleted { .. }).then_some(())).await;
    }

    fn saved(&self) -> Vec<Record> {
        self.disk.batches.lock().unwrap().concat()
    }
}

#[tokio::test]
async fn calls_run_only_after_the_identical_batch_is_saved_by_a_retry() {
    let mut session = stalled().await;
    session.send(Command::Continue).await;
    session.until_paused().await;
    assert!(session.ran().is_empty(), "it ran unsaved");
    session.disk.full.store(false, Ordering::SeqCst);
    session.send(Command::Continue).await;
    session.until_completed().await;
    assert_eq!(session.ran(), [CallId::new("c1")]);
    let refused = session.disk.refused.lock().unwrap().clone();
    assert_eq!(refused.len(), 2);
    assert_eq!(refused[0], refused[1]);
    assert!(session.disk.batches.lock().unwrap().contains(&refused[0]), "the saved batch is not the refused one");
}

#[tokio::test]
async fn prompts_sent_while_saving_fails_run_later() {
    let mut session = stalled().await;
    session.say("and then this").await;
    session
        .until(|kind| matches!(kind, EventKind::Notice { message, .. } if message.contains("queued until")).then_some(()))
        .await;
    session.disk.full.store(false, Ordering::SeqCst);
    session.send(Command::Continue).await;
    session.until_completed().await;
    session.until_completed().await;
    let prompts: Vec<_> = session
        .saved()
        .iter()
        .filter_map(|record| match record {
            Record::TaskStarted { prompt, .. } => Some(prompt.text()),
            _ => None,
        })
        .collect();
    assert_eq!(prompts, ["go", "and then this"]);
}

#[tokio::test]
async fn steering_sent_while_saving_fails_joins_the_step_and_can_still_be_edited() {
    let mut session = stalled().await;
    for command in [
        Command::Steer { text: "in blue".to_owned() },
        Command::Prompt { text: "and then this".to_owned() },
        Command::EditWaiting { id: 1, text: "in red".to_owned() },
    ] {
        session.send(command).await;
        session
            .until(|kind| matches!(kind, EventKind::Notice { message, .. } if message.contains("queued until")).then_some(()))
            .await;
    }
    session.disk.full.store(false, Ordering::SeqCst);
    session.send(Command::Continue).await;
    let steered = session
        .until(|kind| match kind {
            EventKind::Steered { text } => Some(text.clone()),
            _ => None,
        })
        .await;
    assert_eq!(steered, "in red");
    session.until_completed().await;
    session.until_completed().await;
    let records = session.saved();
    let said: Vec<_> = records
        .iter()
        .filter_map(|record| match record {
            Record::TaskStarted { prompt: message, .. } | Record::Steered { message } => Some(message.text()),
            _ => None,
        })
        .collect();
    assert_eq!(said, ["go", "in red", "and then this"]);
}

#[tokio::test]
async fn a_session_that_cannot_be_saved_is_paused_until_continued() {
    let mut session = stalled().await;
    let next = |kind: &EventKind| match kind {
        EventKind::StateChanged { session_status, .. } => Some(*session_status),
        _ => None,
    };
    assert_eq!(session.status, SessionStatus::Paused);
    session.disk.full.store(false, Ordering::SeqCst);
    session.send(Command::Continue).await;
    session.until(|kind| next(kind).filter(|status| *status == SessionStatus::Running)).await;
    session.until_completed().await;
    session.send(Command::Quit).await;
    session.until(|kind| next(kind).filter(|status| *status == SessionStatus::Completed)).await;
    session.until(|kind| matches!(kind, EventKind::SessionCompleted { .. }).then_some(())).await;
}

#[tokio::test]
async fn a_session_whose_messages_cannot_be_saved_ends_as_failed() {
    let mut session = stalled().await;
    session.send(Command::Quit).await;
    let failed = |kind: &EventKind| match kind {
        EventKind::StateChanged { session_status: SessionStatus::Failed, task } => Some(task.is_some()),
        _ => None,
    };
    assert!(session.until(failed).await);
}

#[tokio::test]
async fn a_new_prompt_retries_a_failed_save() {
    let mut session = stalled().await;
    session.disk.full.store(false, Ordering::SeqCst);
    session.say("and then this").await;
    session.until_completed().await;
    session.until_completed().await;
    assert_eq!(session.ran().len(), 1);
}

#[tokio::test]
async fn stopping_while_saving_fails_cancels_the_pending_call_but_not_later_calls() {
    for stop in [Command::Cancel, Command::Kill, Command::Finish] {
        let mut session = stalled().await;
        session.send(stop).await;
        session.until_paused().await;
        session.disk.full.store(false, Ordering::SeqCst);
        session.send(Command::Continue).await;
        session.until(|kind| matches!(kind, EventKind::TaskCancelled { .. }).then_some(())).await;
        assert!(session.ran().is_empty(), "it ran after it was stopped");
        session.script.0.lock().unwrap().push_back(said("Again.", StopReason::ToolUse, Some("c2")));
        session.say("again").await;
        let output = session
            .until(|kind| match kind {
                EventKind::ToolCompleted { output_text, .. } => Some(output_text.clone()),
                _ => None,
            })
            .await;
        assert_eq!(output, "made");
    }
}

#[tokio::test]
async fn quitting_saves_pending_records_and_starts_no_calls() {
    let session = stalled().await;
    session.disk.full.store(false, Ordering::SeqCst);
    session.send(Command::Quit).await;
    let Session { commands, disk, tools, ended, .. } = session;
    drop(commands);
    ended.await.unwrap();
    assert!(tools.ran.lock().unwrap().is_empty(), "it ran while the person went");
    let saved = disk.batches.lock().unwrap().concat();
    assert!(saved.iter().any(|record| matches!(record, Record::Answer { .. })), "the answer is lost");
    let finished = saved.iter().find_map(|record| match record {
        Record::Finished { result, .. } => result.error.clone(),
        _ => None,
    });
    assert_eq!(finished.map(|error| error.code), Some(ErrorCode::Cancelled));
}

#[tokio::test]
async fn calls_denied_by_a_mode_set_while_saving_fails_do_not_run_afterwards() {
    let mut session = stalled().await;
    session.send(Command::SetMode { mode: Mode::Plan }).await;
    session.disk.full.store(false, Ordering::SeqCst);
    session.send(Command::Continue).await;
    let error = session
        .until(|kind| match kind {
            EventKind::ToolCompleted { error, .. } => Some(error.clone()),
            _ => None,
        })
        .await;
    assert_eq!(error.map(|error| error.code), Some(ErrorCode::PolicyDenied));
    session.until_completed().await;
    assert!(session.ran().is_empty(), "it ran in the mode plan");
}
