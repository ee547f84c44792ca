//! Approval records, which consist of a decision and the request that it answers.

use crate::protocol::{Approval, CallId, Decision, Denier, StepId, TaskId};
use crate::services::SessionFacts;
use crate::services::redaction::RedactText;
use crate::session::{CallChange, Change};
use crate::store::{LoggedDecision, OutboxEntry, OutboxFeed, OutboxSink};
use crate::text::rewrite_strings;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Kind of an outbox row that contains a decision. Also the type of the resulting message.
const DECIDED: &str = "approval.decided";
/// Member of a denial that says who denied the call. In records, `decidedBy` says so for all decisions.
const DENIED_BY: &str = "deniedBy";
/// Maximum size in bytes of the request in a record. Changes, effects and plans are removed from a larger request.
const MAX_REQUEST_BYTES: usize = 512 << 10;
/// Maximum number of calls to keep track of. A step never has that many.
const MAX_CALLS: usize = 1024;

/// Converts decisions to messages for the approval service.
pub(in super::super) struct ApprovalFeed {
    facts: SessionFacts,
    redact: RedactText,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    task_id: Option<TaskId>,
    step_id: Option<StepId>,
    calls: BTreeMap<CallId, Request>,
}

/// Approval request for a call, or just the call if its approval was not requested.
#[derive(Default)]
struct Request {
    tool_name: String,
    summary: String,
    approval: Option<Box<Approval>>,
    requested: Option<jiff::Timestamp>,
}

impl ApprovalFeed {
    pub(in super::super) fn new(facts: SessionFacts, redact: RedactText) -> Self {
        Self { facts, redact, state: Mutex::default() }
    }

    fn entry(&self, state: &State, call: &CallId, decision: &Decision, now: jiff::Timestamp) -> OutboxEntry {
        let request = state.calls.get(call);
        let approval = request.and_then(|request| request.approval.as_deref());
        let mut data = json!({
            "approvalId": approval.map(|approval| approval.approval_id.as_str()),
            "sessionId": self.facts.session_id,
            "workspaceId": self.facts.workspace_id,
            "workspace": self.facts.workspace,
            "agent": self.facts.agent,
            "taskId": state.task_id,
            "stepId": state.step_id,
            "toolCallId": call,
            "toolName": request.map(|request| request.tool_name.as_str()),
            "actionSummary": request.map(|request| request.summary.as_str()),
            "decidedBy": decider(decision),
            "requestedAt": request.and_then(|request| request.requested).map(|time| time.to_string()),
            "decidedAt": now.to_string(),
            "request": approval.map(shown_request),
        });
        if let (Value::Object(data), Ok(Value::Object(decided))) = (&mut data, serde_json::to_value(decision)) {
            data.extend(decided);
            data.remove(DENIED_BY);
            let outcome = outcome(decision);
            if let Some(variant) = data.insert("decision".to_owned(), outcome.into()).filter(|variant| variant != outcome) {
                data.insert("variant".to_owned(), variant);
            }
            data.retain(|_, value| !value.is_null());
        }
        rewrite_strings(&mut data, &*self.redact);
        let body = json!({"type": DECIDED, "timestamp": now.to_string(), "data": data}).to_string().into_bytes();
        OutboxEntry { sink: OutboxSink::Approvals, kind: DECIDED, body }
    }
}

/// Returns the request as front ends display it, without the fields that only front ends need.
pub(super) fn shown_request(approval: &Approval) -> Value {
    let mut request = serde_json::to_value(approval.clone().into_question()).unwrap_or_default();
    if request.to_string().len() > MAX_REQUEST_BYTES
        && let Value::Object(members) = &mut request
    {
        members.retain(|name, _| !["proposal", "effects", "plan"].contains(&name.as_str()));
        members.insert("isTruncated".to_owned(), true.into());
    }
    request
}

/// Returns what a decision means for the call. A previewed or renewed call is shown again, so it is undecided.
fn outcome(decision: &Decision) -> &'static str {
    match decision {
        Decision::Approved
        | Decision::ApprovedByService
        | Decision::ApprovedInCleanContext
        | Decision::ApprovedAlways { .. }
        | Decision::Amended { .. } => "approved",
        Decision::Denied(_) => "denied",
        Decision::Previewed | Decision::Renewed => "undecided",
    }
}

/// Returns who made a decision: the user, the approval service, or otherwise the reason why neither did.
fn decider(decision: &Decision) -> &'static str {
    match decision {
        Decision::ApprovedByService => Denier::Service.as_str(),
        Decision::Denied(denial) => denial.by.as_str(),
        Decision::Approved
        | Decision::ApprovedInCleanContext
        | Decision::ApprovedAlways { .. }
        | Decision::Previewed
        | Decision::Renewed
        | Decision::Amended { .. } => Denier::User.as_str(),
    }
}

impl OutboxFeed for ApprovalFeed {
    fn changes(&self, changes: &[Change<'_>], now: jiff::Timestamp) -> Vec<OutboxEntry> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let mut entries = Vec::new();
        for change in changes {
            match change {
                Change::TaskStarted { prompt, .. } => state.task_id = Some(prompt.task_id.clone()),
                Change::StepStarted { task_id, step_id, .. } => {
                    // The calls of earlier steps have ended.
                    state.calls.clear();
                    (state.task_id, state.step_id) = (Some((*task_id).clone()), Some((*step_id).clone()));
                }
                Change::Call { tool_call_id, change } => match change {
                    CallChange::Planned { call, summary, .. } if state.calls.len() < MAX_CALLS => {
                        let request = state.calls.entry((*tool_call_id).clone()).or_default();
                        request.tool_name.clone_from(&call.tool_name);
                        (*summary).clone_into(&mut request.summary);
                    }
                    CallChange::Asked { approval } if state.calls.len() < MAX_CALLS => {
                        let request = state.calls.entry((*tool_call_id).clone()).or_default();
                        request.tool_name.clone_from(&approval.tool_name);
                        request.summary.clone_from(&approval.action_summary);
                        request.approval = Some(Box::new((*approval).clone()));
                        request.requested = Some(now);
                    }
                    CallChange::Decided { decision } => entries.push(self.entry(&state, tool_call_id, decision, now)),
                    _ => {}
                },
                _ => {}
            }
        }
        entries
    }

    fn decision(&self, _: &LoggedDecision) -> Vec<OutboxEntry> {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{CallDenial, SessionId, WorkspaceId};
    use std::sync::Arc;

    #[test]
    fn a_receiver_that_knows_approved_and_denied_counts_every_decision() {
        let facts = SessionFacts {
            session_id: SessionId::new("s"),
            workspace_id: WorkspaceId::new("w"),
            workspace: "/w".to_owned(),
            agent: None,
            provider: None,
            service_session: None,
        };
        let feed = ApprovalFeed::new(facts, Arc::new(str::to_owned));
        for (decision, outcome, variant) in [
            (Decision::Approved, "approved", None),
            (Decision::ApprovedByService, "approved", Some("approved_by_service")),
            (Decision::ApprovedInCleanContext, "approved", Some("approved_in_clean_context")),
            (Decision::Previewed, "undecided", Some("previewed")),
            (Decision::denied(None), "denied", None),
        ] {
            let entry = feed.entry(&State::default(), &CallId::new("call_1"), &decision, jiff::Timestamp::UNIX_EPOCH);
            let sent: Value = serde_json::from_slice(&entry.body).unwrap();
            assert_eq!((&sent["data"]["decision"], sent["data"]["variant"].as_str()), (&json!(outcome), variant), "{sent}");
        }
    }

    #[test]
    fn a_record_names_the_user_for_every_reason_that_the_user_typed() {
        let typed = |reason: &str| decider(&Decision::denied(Some(reason.to_owned())));
        for reason in ["the task was cancelled", "no answer within a day", "denied by the approval service", "not now"] {
            assert_eq!(typed(reason), "user", "{reason}");
        }
        for (by, name) in [
            (Denier::Cancel, "cancel"),
            (Denier::Timeout, "timeout"),
            (Denier::Service, "service"),
            (Denier::Nobody, "nobody"),
            (Denier::Policy, "policy"),
        ] {
            assert_eq!(decider(&Decision::Denied(CallDenial { by, reason: Some("not now".to_owned()) })), name);
        }
    }
}
