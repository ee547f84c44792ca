//! The state machine of the host: turns requests and events into actions and responses.

mod answers;
mod events;
mod live;
mod requests;

use super::PROTOCOL_VERSION;
use super::fault::{Fault, FaultCode};
use super::lines::{LINE_BYTES, Line};
use super::message::{Answer, Id, Incoming, Outgoing, Request, RequestError};
use super::methods::{CreateSession, Ended, ResumeSession, params};
use crate::protocol::{
    Command, Event, HostCommand, HostRequest, MemoryRequest, SessionId, SessionQuery, SessionStatus, StepId, TaskState,
    WorkspaceId,
};
use answers::{Batch, Slot, WaitCondition};
use live::LiveSession;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::path::PathBuf;

/// Maximum number of requests that wait for the session.
const MAX_WAITING: usize = 64;

/// Actions for the owner of the session and the connection, in order.
#[derive(Debug)]
pub(crate) enum ConnectionAction {
    Send(Outgoing),
    /// Opens a session; its outcome is passed to `ClientConnection::on_opened`.
    Open(Box<OpeningRequest>),
    Do(Command),
    DoInHost(HostCommand),
    Ask(SessionQuery),
    /// A query outside the session; its response is a `looked_up` event.
    LookUp(HostRequest),
    /// End the process after its session, because the client no longer needs it.
    End,
}

/// The requested session.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum OpeningRequest {
    New(CreateSession),
    Resume(ResumeSession),
}

/// A session that was opened and is running.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct OpenedSession {
    pub session_id: SessionId,
    pub workspace_id: WorkspaceId,
    pub policy_bundle_version: String,
    pub available_tools: Vec<String>,
    pub workspace: PathBuf,
    pub step_cursor: Option<StepId>,
    /// The last task of a resumed session.
    pub last_task: Option<TaskState>,
    /// Step limit of a task, unless the client sets one.
    pub max_steps: u32,
    /// True if the session existed before.
    pub resumed: bool,
    /// Notices about the opening, such as a damaged database; sent after the response.
    pub notices: Vec<Event>,
}

#[derive(Debug, Default)]
enum Stage {
    #[default]
    Empty,
    Opening {
        slot: Slot,
    },
    Live(Box<LiveSession>),
}

/// The state of the connection to the client.
#[derive(Debug, Default)]
pub(crate) struct ClientConnection {
    stage: Stage,
    waiting: Vec<(Slot, WaitCondition)>,
    batches: HashMap<u64, Batch>,
    count: u64,
    /// The pending response to `Shutdown`.
    leaving: Option<Slot>,
    acts: Vec<ConnectionAction>,
}

impl ClientConnection {
    /// Returns true if the next line may be handled; the number of pending responses is limited.
    pub(crate) fn can_take_line(&self) -> bool {
        !matches!(self.stage, Stage::Opening { .. }) && self.waiting.len() < MAX_WAITING && !self.is_getting_ready()
    }

    /// Returns true if a response must be sent first, because the next request of the client relies on the state after
    /// it.
    pub(crate) fn is_answer_due(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Returns true if a task is running.
    pub(crate) fn is_running(&self) -> bool {
        matches!(&self.stage, Stage::Live(live) if live.is_running())
    }

    fn is_getting_ready(&self) -> bool {
        matches!(&self.stage, Stage::Live(live) if live.ready.is_some())
    }

    pub(crate) fn line(&mut self, line: Line) -> Vec<ConnectionAction> {
        match line {
            Line::TooLong => {
                let message = format!("ignored a line longer than {} MiB; send shorter lines", LINE_BYTES >> 20);
                self.send(Outgoing::refusal(Fault::new(FaultCode::InvalidRequest, message)));
            }
            Line::Whole(bytes) => match Incoming::read(&bytes) {
                Incoming::One(request) => self.incoming(request, None),
                Incoming::Batch(requests) => {
                    self.count += 1;
                    let batch = self.count;
                    let answered =
                        |request: &Result<Request, RequestError>| request.as_ref().map_or(true, |request| request.id.is_some());
                    let left = requests.iter().filter(|request| answered(request)).count();
                    self.batches.insert(batch, Batch { left, answers: Vec::new() });
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

    fn incoming(&mut self, request: Result<Request, RequestError>, batch: Option<u64>) {
        let slot = |id: Option<Id>| match (id, batch) {
            (None, _) => Slot::Nobody,
            (Some(id), None) => Slot::One(id),
            (Some(id), Some(batch)) => Slot::Part { batch, id },
        };
        match request {
            Err(RequestError { id, fault }) => self.answer(slot(Some(id)), Err(fault)),
            Ok(Request { id, method, params }) => {
                let slot = slot(id);
                self.request(slot, &method, params);
            }
        }
    }

    fn request(&mut self, slot: Slot, method: &str, given: Map<String, Value>) {
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
                Err(Fault::new(FaultCode::MethodNotFound, message))
            }
        };
        match done {
            Ok(asked) => self.open(slot, asked),
            Err(fault) => self.answer(slot, Err(fault)),
        }
    }

    fn open(&mut self, slot: Slot, asked: OpeningRequest) {
        let exists = |message: String| Err(Fault::new(FaultCode::SessionExists, message));
        match &mut self.stage {
            Stage::Empty => {
                self.stage = Stage::Opening { slot };
                self.acts.push(ConnectionAction::Open(Box::new(asked)));
            }
            Stage::Opening { .. } => {
                self.answer(slot, exists("a session is already being opened; a process serves only one".to_owned()));
            }
            Stage::Live(live) => {
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

    /// Handles the outcome of `ConnectionAction::Open`.
    pub(crate) fn on_opened(&mut self, outcome: Result<OpenedSession, Fault>) -> Vec<ConnectionAction> {
        if let Stage::Opening { slot } = std::mem::take(&mut self.stage) {
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
                    self.stage = Stage::Live(Box::new(live));
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
    fn live_session(&mut self) -> Result<&mut LiveSession, Fault> {
        let leaves = self.leaving.is_some();
        self.live_session_until_end()
            .and_then(|live| if leaves { Err(Fault::new(FaultCode::NoSession, "the session is ending")) } else { Ok(live) })
    }

    fn live_session_until_end(&mut self) -> Result<&mut LiveSession, Fault> {
        match &mut self.stage {
            Stage::Live(live) => Ok(live),
            Stage::Empty | Stage::Opening { .. } => {
                Err(Fault::new(FaultCode::NoSession, "no session is open; call `CreateSession` or `ResumeSession` first"))
            }
        }
    }
    /// Sends all responses that wait for this condition.
    fn respond_waiting(&mut self, is: impl Fn(&WaitCondition) -> bool, outcome: impl Fn(&WaitCondition) -> Result<Value, Fault>) {
        let (settled, waiting) = std::mem::take(&mut self.waiting).into_iter().partition(|(_, wait)| is(wait));
        self.waiting = waiting;
        let settled: Vec<(Slot, WaitCondition)> = settled;
        for (slot, wait) in settled {
            self.answer(slot, outcome(&wait));
        }
    }

    /// Sends the oldest response that waits for this condition. Returns false if there is none.
    fn settle_first(&mut self, is: impl Fn(&WaitCondition) -> bool, outcome: Result<Value, Fault>) -> bool {
        let first = self.waiting.iter().position(|(_, wait)| is(wait));
        if let Some(at) = first {
            let (slot, _) = self.waiting.remove(at);
            self.answer(slot, outcome);
        }
        first.is_some()
    }

    fn answer(&mut self, slot: Slot, outcome: Result<Value, Fault>) {
        match slot {
            Slot::Nobody => {}
            Slot::One(id) => self.send(Outgoing::Answer(Answer { id, outcome })),
            Slot::Part { batch, id } => {
                let Some(open) = self.batches.get_mut(&batch) else { return };
                open.answers.push(Answer { id, outcome });
                open.left -= 1;
                if open.left == 0
                    && let Some(Batch { answers, .. }) = self.batches.remove(&batch)
                {
                    self.send(Outgoing::Batch(answers));
                }
            }
        }
    }

    fn send(&mut self, outgoing: Outgoing) {
        self.acts.push(ConnectionAction::Send(outgoing));
    }

    /// Ends the process if no session is open and `Shutdown` was called.
    fn exit_if_idle(&mut self) {
        if let Some(slot) = self.leaving.take() {
            self.answer(slot, Ok(value(&Ended { status: SessionStatus::Completed })));
        }
        self.acts.push(ConnectionAction::End);
    }
}

fn compatible(version: Option<&Value>) -> Result<(), Fault> {
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
    Err(Fault::new(FaultCode::IncompatibleClient, message).with_data(json!({"supported": [PROTOCOL_VERSION]})))
}

fn unknown_approval(id: &str) -> Fault {
    Fault::new(FaultCode::ApprovalUnknown, format!("no approval `{id}` is pending: the ID is unknown or already decided"))
}

fn value(result: &impl Serialize) -> Value {
    serde_json::to_value(result).unwrap_or_default()
}
