//! Decisions of the approval service: each approval of a session is also sent to the service, whose answer becomes a
//! command.

use crate::agent::CHANNEL_DEPTH;
use crate::protocol::{Approval, ApprovalId, Command, Decision, Event, EventKind, NO_USER, Risk, SessionCommand};
use crate::services::{ApprovalAnswer, ApprovalService, RedactText, SessionFacts};
use std::collections::HashMap;
use std::time::Duration;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::task::{AbortHandle, JoinSet};

/// Use of the approval service by one session.
pub(super) struct ServiceDecisions {
    pub service: ApprovalService,
    pub facts: SessionFacts,
    pub redact: RedactText,
    /// Highest risk that the service may approve.
    pub max_risk: Risk,
    /// Time after which an unanswered approval is denied.
    pub timeout: Duration,
}

/// Outcome of a request to the service about one approval.
enum QuestionEnd {
    Answered(ApprovalAnswer),
    /// No valid answer arrived in time. The session notices this itself.
    Late,
    /// The time limit has passed by the wall clock, but not by the clock of the session, which stops while the machine
    /// is suspended. `limit`: the time limit, if the approval has one.
    Expired {
        limit: Option<Duration>,
    },
    /// The service cannot be queried, for this reason.
    Impossible(String),
}

impl QuestionEnd {
    /// Returns the notice that the service gave no answer.
    fn notice(&self) -> EventKind {
        let reason = if let Self::Impossible(reason) = self { reason } else { "no valid answer in time" };
        EventKind::Notice { message: format!("cannot ask the approval service: {reason}") }
    }
}

/// Answer of the service, with the event and the ID of its approval.
type Answer = (Box<Event>, ApprovalId, QuestionEnd);

impl ServiceDecisions {
    /// Returns the channels of a session with the service in between: the commands that it receives and the events that
    /// it sends. Without a user, approvals that cannot be sent to the service are denied immediately.
    pub(super) fn connect(
        self,
        commands: mpsc::Receiver<SessionCommand>,
        events: UnboundedSender<Event>,
        has_user: bool,
    ) -> (mpsc::Receiver<SessionCommand>, UnboundedSender<Event>) {
        let (decide, decided) = mpsc::channel(CHANNEL_DEPTH);
        let (to_session, session_commands) = mpsc::channel(CHANNEL_DEPTH);
        let (from_session, session_events) = mpsc::unbounded_channel();
        tokio::spawn(pass_commands(commands, decided, to_session));
        tokio::spawn(self.watch(session_events, events, decide, has_user));
        (session_commands, from_session)
    }

    /// Forwards all events, and asks the service about each approval until the approval is resolved.
    async fn watch(
        self,
        mut from_session: UnboundedReceiver<Event>,
        to_front_end: UnboundedSender<Event>,
        decide: mpsc::Sender<Command>,
        has_user: bool,
    ) {
        let mut asking: JoinSet<Answer> = JoinSet::new();
        let mut open: HashMap<ApprovalId, AbortHandle> = HashMap::new();
        loop {
            tokio::select! {
                event = from_session.recv() => {
                    let Some(event) = event else { return };
                    match &event.kind {
                        EventKind::ApprovalRequested(approval) if self.may_approve(approval) => {
                            let task = asking.spawn(self.question(&event, approval));
                            if let Some(earlier) = open.insert(approval.approval_id.clone(), task) {
                                earlier.abort();
                            }
                        }
                        EventKind::ApprovalResolved { approval_id, .. } => {
                            if let Some(task) = open.remove(approval_id) {
                                task.abort();
                            }
                        }
                        _ => {}
                    }
                    let _ = to_front_end.send(event);
                }
                Some(Ok((event, approval_id, answer))) = asking.join_next() => {
                    open.remove(&approval_id);
                    let decision = match answer {
                        QuestionEnd::Answered(ApprovalAnswer::Approved) => Decision::ApprovedByService,
                        QuestionEnd::Answered(ApprovalAnswer::Denied { reason }) => Decision::Denied { reason: Some(reason) },
                        QuestionEnd::Expired { limit: Some(limit) } => {
                            Decision::Denied { reason: Some(format!("no answer within {} s", limit.as_secs())) }
                        }
                        unanswered => {
                            let _ = to_front_end.send(Event { kind: unanswered.notice(), ..*event });
                            if has_user || matches!(unanswered, QuestionEnd::Late) {
                                continue;
                            }
                            Decision::Denied { reason: Some(NO_USER.to_owned()) }
                        }
                    };
                    let _ = decide.send(Command::Decide { approval_id, decision }).await;
                }
            }
        }
    }

    /// Returns whether aye asks the service about an approval. Only the user decides on plans and on access outside the
    /// sandbox.
    fn may_approve(&self, approval: &Approval) -> bool {
        let is_for_user = approval.plan.is_some() || !approval.opens.is_empty();
        !is_for_user && approval.risk_level <= self.max_risk && !approval.critical
    }

    fn question(&self, event: &Event, approval: &Approval) -> impl Future<Output = Answer> + Send + use<> {
        let (service, facts, redact) = (self.service.clone(), self.facts.clone(), self.redact.clone());
        let time = approval.timeout_ms.map_or(self.timeout, Duration::from_millis);
        let (event, approval) = (Box::new(event.clone()), approval.clone());
        async move {
            let answer = match tokio::time::timeout(time, service.decide(&facts, &approval, time, &redact)).await {
                Ok(Ok(Some(answer))) => QuestionEnd::Answered(answer),
                Ok(Ok(None)) => QuestionEnd::Expired { limit: approval.timeout_ms.map(Duration::from_millis) },
                Ok(Err(reason)) => QuestionEnd::Impossible(reason),
                Err(_) => QuestionEnd::Late,
            };
            (event, approval.approval_id, answer)
        }
    }
}

/// Forwards the commands of the front end and of the service, until the front end closes its channel.
async fn pass_commands(
    mut commands: mpsc::Receiver<SessionCommand>,
    mut decided: mpsc::Receiver<Command>,
    to_session: mpsc::Sender<SessionCommand>,
) {
    loop {
        let command = tokio::select! {
            command = commands.recv() => match command {
                Some(command) => command,
                None => return,
            },
            Some(command) = decided.recv() => command.into(),
        };
        if to_session.send(command).await.is_err() {
            return;
        }
    }
}
