//! State machine of the host, which converts requests and session events to actions and responses.

mod answers;
mod events;
mod live;
mod requests;

use super::PROTOCOL_VERSION;
use super::fault::{FaultCode, RpcError};
use super::lines::{BoundedLine, LINE_BYTES};
use super::message::{Id, IncomingLine, Outgoing, RequestError, RpcRequest, RpcResponse};
use super::methods::{CreateSession, ResumeSession, ShutdownResult, params};
use crate::protocol::{
    Command, Event, HostCommand, HostRequest, MemoryRequest, SessionId, SessionQuery, SessionStatus, StepId, TaskState,
    WorkspaceId,
};
use answers::{Recipient, ResponseBatch, WaitCondition};
use live::LiveSession;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;

/// Maximum number of requests that can be waiting for the session.
const MAX_WAITING: usize = 64;

/// Action to be performed, in order, by the owner of the session and the connection.
#[derive(Debug)]
pub(crate) enum ConnectionAction {
    Send(Outgoing),
    /// Open a session. The outcome must be passed to `ClientConnection::on_opened`.
    Open(Box<OpeningRequest>),
    Do(Command),
    DoInHost(HostCommand),
    Ask(SessionQuery),
    /// Look up data outside the session. The result arrives as a `looked_up` event.
    LookUp(HostRequest),
    /// End the process once the session has ended, because the client no longer needs it.
    End,
}

/// Session that the client wants to open.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum OpeningRequest {
    New(CreateSession),
    Resume(ResumeSession),
}

/// Session that has been opened and is now running.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct OpenedSession {
    pub session_id: SessionId,
    pub workspace_id: WorkspaceId,
    pub policy_bundle_version: String,
    pub available_tools: Vec<String>,
    pub workspace: PathBuf,
    pub step_cursor: Option<StepId>,
    /// Most recent task of a resumed session.
    pub last_task: Option<TaskState>,
    /// Step limit of tasks for which the client sets none.
    pub max_steps: u32,
    /// Whether the session already existed.
    pub resumed: bool,
    /// Notices that arose when the session was opened, such as about a damaged database. They are sent after the
    /// response.
    pub notices: Vec<Event>,
}

#[derive(Debug, Default)]
enum ConnectionStage {
    #[default]
    Empty,
    Opening {
        slot: Recipient,
    },
    Live(Box<LiveSession>),
}

/// State of the connection to the client.
#[derive(Debug, Default)]
pub(crate) struct ClientConnection {
    stage: ConnectionStage,
    waiting: Vec<(Recipient, WaitCondition)>,
    /// Memory requests that are waiting until the previous one has been answered.
    look_ups: VecDeque<HostRequest>,
    batches: HashMap<u64, ResponseBatch>,
    count: u64,
    /// Recipient of the response to `Shutdown`, if it was called.
    leaving: Option<Recipient>,
    acts: Vec<ConnectionAction>,
}

impl ClientConnection {
    /// Returns whether the next line of input can be handled now. The number of pending responses is limited.
    pub(crate) fn can_take_line(&self) -> bool {
        !matches!(self.stage, ConnectionStage::Opening { .. }) && self.waiting.len() < MAX_WAITING && !self.is_getting_ready()
    }

    /// Returns whether there are pending responses. They should be sent before another request is handled, because that
    /// request may depend on the state that they lead to.
    pub(crate) fn is_answer_due(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Returns whether a task is running.
    pub(crate) fn is_running(&self) -> bool {
        matches!(&self.stage, ConnectionStage::Live(live) if live.is_running())
    }

    fn is_getting_ready(&self) -> bool {
        matches!(&self.stage, ConnectionStage::Live(live) if live.ready.is_some())
    }

    pub(crate) fn line(&mut self, line: BoundedLine) -> Vec<ConnectionAction> {
        match line {
            BoundedLine::TooLong => {
                let message = format!("ignored a line longer than {} MiB; send shorter lines", LINE_BYTES >> 20);
                self.send(Outgoing::refusal(RpcError::new(FaultCode::InvalidRequest, message)));
            }
            BoundedLine::Whole(bytes) => match IncomingLine::read(&bytes) {
                IncomingLine::One(request) => self.incoming(request, None),
                IncomingLine::Batch(requests) => {
                    self.count += 1;
                    let batch = self.count;
                    let answered = |request: &Result<RpcRequest, RequestError>| {
                        request.as_ref().map_or(true, |request| request.id.is_some())
                    };
                    let left = requests.iter().filter(|request| answered(request)).count();
                    self.batches.insert(batch, ResponseBatch { left, answers: Vec::new() });
                    for request in requests {
                        self.incoming(request, Some(batch));
                    }
                    if left == 0 {
                        self.batches.remove(&batch);
                    }
                }
            },
        }
        std::mem::take(&mut self.acts)
    }

    fn incoming(&mut self, request: Result<RpcRequest, RequestError>, batch: Option<u64>) {
        let slot = |id: Option<Id>| match (id, batch) {
            (None, _) => Recipient::Nobody,
            (Some(id), None) => Recipient::One(id),
            (Some(id), Some(batch)) => Recipient::Part { batch, id },
        };
        match request {
            Err(RequestError { id, fault }) => self.answer(slot(Some(id)), Err(fault)),
            Ok(RpcRequest { id, method, params }) => {
                let slot = slot(id);
                self.request(slot, &method, params);
            }
        }
    }

    fn request(&mut self, slot: Recipient, method: &str, given: Map<String, Value>) {
        let done = match method {
            "CreateSession" => params::<CreateSession>(method, given).and_then(|asked| {
                compatible(asked.protocol_version.as_ref())?;
                Ok(OpeningRequest::New(asked))
            }),
            "ResumeSession" => params::<ResumeSession>(method, given).and_then(|asked| {
                compatible(asked.protocol_version.as_ref())?;
                Ok(OpeningRequest::Resume(asked))
            }),
            "StartTask" => return self.start(slot, method, given),
            "CancelTask" => return self.cancel(slot, method, given),
            "GetSessionState" => return self.state(slot),
            "GetPatchPreview" => return self.preview(slot, method, given),
            "ApproveAction" => return self.approve(slot, method, given),
            "AnswerQuestion" => return self.answer_question(slot, method, given),
            "StopAgent" => return self.stop_agent(slot, method, given),
            "DecideGoal" => return self.decide_goal(slot, method, given),
            "ListMemory" => return self.ask_memory(slot, Ok(MemoryRequest::List)),
            "DecideMemory" => return self.decide_memory(slot, method, given),
            "Shutdown" => return self.shutdown(slot, method, given),
            _ => {
                let message = format!("unknown method `{method}`; docs/PROTOCOL.md lists the methods");
                Err(RpcError::new(FaultCode::MethodNotFound, message))
            }
        };
        match done {
            Ok(asked) => self.open(slot, asked),
            Err(fault) => self.answer(slot, Err(fault)),
        }
    }

    fn open(&mut self, slot: Recipient, asked: OpeningRequest) {
        let exists = |message: String| Err(RpcError::new(FaultCode::SessionExists, message));
        match &mut self.stage {
            ConnectionStage::Empty => {
                self.stage = ConnectionStage::Opening { slot };
                self.acts.push(ConnectionAction::Open(Box::new(asked)));
            }
            ConnectionStage::Opening { .. } => {
                self.answer(slot, exists("a session is already being opened; a process serves only one".to_owned()));
            }
            ConnectionStage::Live(live) => {
                let same =
                    |asked: &ResumeSession| live.opened.session_id.as_str().starts_with(&asked.session_id.to_ascii_lowercase());
                match asked {
                    OpeningRequest::Resume(asked) if same(&asked) && live.cancels_task => {
                        let message = "the task is being cancelled; wait for `task_cancelled`, then call `StartTask`";
                        self.answer(slot, exists(message.to_owned()));
                    }
                    OpeningRequest::Resume(asked)
                        if same(&asked) && live.status == SessionStatus::Paused && live.ready.is_none() =>
                    {
                        live.resume(slot, &mut self.acts);
                    }
                    _ => {
                        let id = &live.opened.session_id;
                        let message = format!(
                            "this process already serves the session `{id}`; start another `aye \
                            serve` for a second one"
                        );
                        self.answer(slot, exists(message));
                    }
                }
            }
        }
    }

    /// Handles the outcome of `ConnectionAction::Open`. Returns the actions to be performed.
    pub(crate) fn on_opened(&mut self, outcome: Result<OpenedSession, RpcError>) -> Vec<ConnectionAction> {
        if let ConnectionStage::Opening { slot } = std::mem::take(&mut self.stage) {
            match outcome {
                Ok(opened) => {
                    let mut live = LiveSession {
                        // The journal may contain another limit.
                        steps: if opened.resumed { 0 } else { opened.max_steps },
                        task: opened.last_task.clone(),
                        opened,
                        status: SessionStatus::Created,
                        paused_for: None,
                        approvals: Vec::new(),
                        questions: Vec::new(),
                        planned_steps: Vec::new(),
                        agents: Vec::new(),
                        goal: None,
                        interrupted: Vec::new(),
                        ready: Some(slot),
                        marks: 0,
                        went_on: false,
                        failed_by: None,
                        cancelled: false,
                        cancels_task: false,
                        quits: false,
                    };
                    live.mark(&mut self.acts);
                    if self.leaving.is_some() {
                        live.quit(&mut self.acts);
                    }
                    self.stage = ConnectionStage::Live(Box::new(live));
                }
                Err(fault) => {
                    self.answer(slot, Err(fault));
                    if self.leaving.is_some() {
                        self.exit_if_idle();
                    }
                }
            }
        }
        std::mem::take(&mut self.acts)
    }
    fn live_session(&mut self) -> Result<&mut LiveSession, RpcError> {
        let leaves = self.leaving.is_some();
        self.live_session_until_end()
            .and_then(|live| if leaves { Err(RpcError::new(FaultCode::NoSession, "the session is ending")) } else { Ok(live) })
    }

    fn live_session_until_end(&mut self) -> Result<&mut LiveSession, RpcError> {
        match &mut self.stage {
            ConnectionStage::Live(live) => Ok(live),
            ConnectionStage::Empty | ConnectionStage::Opening { .. } => {
                Err(RpcError::new(FaultCode::NoSession, "no session is open; call `CreateSession` or `ResumeSession` first"))
            }
        }
    }
    /// Sends all responses whose wait condition `is` accepts.
    fn respond_waiting(
        &mut self,
        is: impl Fn(&WaitCondition) -> bool,
        outcome: impl Fn(&WaitCondition) -> Result<Value, RpcError>,
    ) {
        let (settled, waiting) = std::mem::take(&mut self.waiting).into_iter().partition(|(_, wait)| is(wait));
        self.waiting = waiting;
        let settled: Vec<(Recipient, WaitCondition)> = settled;
        for (slot, wait) in settled {
            self.answer(slot, outcome(&wait));
        }
    }

    /// Sends the oldest response whose wait condition `is` accepts. Returns whether there was one.
    fn settle_first(&mut self, is: impl Fn(&WaitCondition) -> bool, outcome: Result<Value, RpcError>) -> bool {
        let first = self.waiting.iter().position(|(_, wait)| is(wait));
        if let Some(at) = first {
            let (slot, _) = self.waiting.remove(at);
            self.answer(slot, outcome);
        }
        first.is_some()
    }

    /// Sends the response to the memory request in progress, and starts the next one. Returns whether a memory request
    /// was in progress.
    fn settle_memory(&mut self, outcome: Result<Value, RpcError>) -> bool {
        let is_settled = self.settle_first(|wait| matches!(wait, WaitCondition::Memory), outcome);
        if is_settled && let Some(next) = self.look_ups.pop_front() {
            self.acts.push(ConnectionAction::LookUp(next));
        }
        is_settled
    }

    fn answer(&mut self, slot: Recipient, outcome: Result<Value, RpcError>) {
        match slot {
            Recipient::Nobody => {}
            Recipient::One(id) => self.send(Outgoing::Answer(RpcResponse { id, outcome })),
            Recipient::Part { batch, id } => {
                let Some(open) = self.batches.get_mut(&batch) else { return };
                open.answers.push(RpcResponse { id, outcome });
                open.left -= 1;
                if open.left == 0
                    && let Some(ResponseBatch { answers, .. }) = self.batches.remove(&batch)
                {
                    self.send(Outgoing::Batch(answers));
                }
            }
        }
    }

    fn send(&mut self, outgoing: Outgoing) {
        self.acts.push(ConnectionAction::Send(outgoing));
    }

    /// Ends the process. If `Shutdown` was called, its response is sent first.
    fn exit_if_idle(&mut self) {
        if let Some(slot) = self.leaving.take() {
            self.answer(slot, Ok(value(&ShutdownResult { status: SessionStatus::Completed })));
        }
        self.acts.push(ConnectionAction::End);
    }
}

fn compatible(version: Option<&Value>) -> Result<(), RpcError> {
    let same = version.is_none_or(|version| match version {
        Value::String(text) => {
            text == PROTOCOL_VERSION || text.split_once('.').is_some_and(|(major, _)| major == PROTOCOL_VERSION)
        }
        Value::Number(number) => number.as_f64().is_some_and(|number| number.trunc().to_string() == PROTOCOL_VERSION),
        _ => false,
    });
    if same {
        return Ok(());
    }
    let message = format!(
        "unsupported protocol version {}: this host supports version {PROTOCOL_VERSION}",
        version.unwrap_or(&Value::Null)
    );
    Err(RpcError::new(FaultCode::IncompatibleClient, message).with_data(json!({"supported": [PROTOCOL_VERSION]})))
}

fn unknown_approval(id: &str) -> RpcError {
    RpcError::new(FaultCode::ApprovalUnknown, format!("no approval `{id}` is pending: the ID is unknown or already decided"))
}

fn value(result: &impl Serialize) -> Value {
    serde_json::to_value(result).unwrap_or_default()
}
