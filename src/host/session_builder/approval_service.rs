//! Lets the approval service decide on approvals. Each approval of a session is also sent to the service, whose
//! decision is converted to a command.

use crate::agent::CHANNEL_DEPTH;
use crate::protocol::{
    Approval, ApprovalId, Command, Decision, Denier, Event, EventKind, NO_ANSWER, NO_USER, Risk, SessionCommand,
};
use crate::services::{ApprovalAnswer, ApprovalService, RedactText, SessionFacts};
use std::collections::HashMap;
use std::time::Duration;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::task::{AbortHandle, JoinSet};

/// A session's use of the approval service.
pub(super) struct ServiceDecisions {
    pub service: ApprovalService,
    pub facts: SessionFacts,
    pub redact: RedactText,
    /// Highest risk that the service may approve.
    pub max_risk: Risk,
    /// Time after which an approval is denied if no decision has been made.
    pub timeout: Duration,
}

/// Outcome of a request to the service about one approval.
enum QuestionEnd {
    Answered(ApprovalAnswer),
    /// No valid decision arrived in time, which the session detects itself.
    Late,
    /// The time limit has passed according to the wall clock, but not according to the session's clock, which stops
    /// while the machine is suspended. `limit` is the time limit, if the approval has one.
    Expired {
        limit: Option<Duration>,
    },
    /// The service cannot be queried, for the given reason.
    Impossible(String),
}

impl QuestionEnd {
    /// Returns a notice that the service made no decision.
    fn notice(&self) -> EventKind {
        let reason = if let Self::Impossible(reason) = self { reason } else { "no valid answer in time" };
        EventKind::notice(format!("cannot ask the approval service: {reason}"))
    }
}

/// Outcome of a request to the service, with the event and the ID of the approval.
type Answer = (Box<Event>, ApprovalId, QuestionEnd);

impl ServiceDecisions {
    /// Inserts the service between a session and its front end. Returns the channels for the session: one for the
    /// commands it receives and one for the events it sends. If there is no user, approvals that cannot be sent to the
    /// service are denied immediately.
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

    /// Forwards all events. Sends the approvals that the service may decide to it, and stops waiting for its decision
    /// once an approval is resolved.
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
                        QuestionEnd::Answered(ApprovalAnswer::Denied { reason }) => Decision::denied_by(Denier::Service, reason),
                        QuestionEnd::Expired { limit: Some(limit) } => {
                            Decision::denied_by(Denier::Timeout, format!("{NO_ANSWER} {} s", limit.as_secs()))
                        }
                        unanswered => {
                            let _ = to_front_end.send(Event { kind: unanswered.notice(), ..*event });
                            if has_user || matches!(unanswered, QuestionEnd::Late) {
                                continue;
                            }
                            Decision::denied_by(Denier::Nobody, NO_USER)
                        }
                    };
                    let _ = decide.send(Command::Decide { approval_id, decision }).await;
                }
            }
        }
    }

    /// Returns whether aye may send an approval to the service. Plans and access outside the sandbox can be decided
    /// only by the user.
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

/// Forwards commands from the front end and the service until the front end closes its channel.
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
