//! Questions of the policy, put to the person at the client: in the middle of a call, or by having it called again.

use crate::policy::Question;
use crate::ports::Plan;
use crate::protocol::truncated;
use crate::text::reveal;
use rmcp::model::{
    ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction, ErrorData, InputRequest, InputRequests,
    InputRequiredResult, JsonObject, ProtocolVersion,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// What a question shows of the change.
const DIFF_BYTES: usize = 8 << 10;
const LINE_BYTES: usize = 2 << 10;
/// Questions that wait for their call to come again; a plan is kept for each.
const MAX_WAITING: usize = 16;
/// The only field of a question, and its only answer that lets something happen.
const FIELD: &str = "allow";
const YES: &str = "yes";
/// What the client calls the only question of a call.
const APPROVAL: &str = "approval";

/// How the client can ask its person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Means {
    /// It has said of nothing that it can.
    None,
    /// It is sent a request while the call runs.
    Request,
    /// The call ends with the question, and comes again with the answer.
    NextCall,
}

impl Means {
    pub fn of(context: &RequestContext<RoleServer>) -> Self {
        let shows_forms = context
            .client_capabilities()
            .and_then(|capabilities| capabilities.elicitation)
            // Who says neither means the older form.
            .is_some_and(|elicitation| elicitation.form.is_some() || elicitation.url.is_none());
        let modern = context.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28);
        match (shows_forms, modern) {
            (false, _) => Self::None,
            (true, false) => Self::Request,
            (true, true) => Self::NextCall,
        }
    }
}

/// What came back. Nothing but this very yes is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    Yes,
    No,
}

impl Answer {
    fn of(result: &ElicitResult) -> Self {
        let said = result.content.as_ref().and_then(|content| content.get(FIELD)).and_then(Value::as_str);
        if result.action == ElicitationAction::Accept && said == Some(YES) { Self::Yes } else { Self::No }
    }

    /// Of the call that came again.
    pub fn among(answers: &rmcp::model::InputResponses) -> Self {
        let result = answers.get(APPROVAL).and_then(|answer| serde_json::from_value(answer.clone()).ok());
        result.map_or(Self::No, |result| Self::of(&result))
    }
}

/// Everything a person decides by. All of it comes from others: it is cut and shown without what a terminal would obey.
pub fn form(plan: &Plan, question: &Question) -> Result<ElicitRequestParams, ErrorData> {
    let proposal = plan.proposal.as_ref();
    let mut message = format!("aye: {}\n", truncated(&plan.summary, LINE_BYTES));
    let _ =
        writeln!(message, "{} · {} risk · {} (rule: {})", question.title, question.risk.as_str(), question.reason, question.rule);
    for note in proposal.into_iter().flat_map(|proposal| &proposal.notes) {
        let _ = writeln!(message, "- {}", truncated(note, LINE_BYTES));
    }
    if let Some(diff) = proposal.map(|proposal| &proposal.diff).filter(|diff| !diff.is_empty()) {
        let _ = write!(message, "\n{}", truncated(diff, DIFF_BYTES));
    }
    let schema = json!({
        "type": "object",
        "properties": {FIELD: {"type": "string", "title": "Allow this?", "enum": ["no", YES]}},
        "required": [FIELD],
    });
    let requested_schema = serde_json::from_value(schema).map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
    Ok(ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: reveal(&message).trim_end().to_owned(),
        requested_schema,
    })
}

/// Asks while the call runs. A client that cannot, or that does not answer in time, has said no.
pub async fn ask(context: &RequestContext<RoleServer>, form: ElicitRequestParams, patience: Duration) -> Answer {
    match context.peer.create_elicitation_with_timeout(form, Some(patience)).await {
        Ok(result) => Answer::of(&result),
        Err(error) => {
            tracing::debug!(%error, "the client did not answer an approval prompt");
            Answer::No
        }
    }
}

/// A call that ended with its question.
pub struct Waits {
    name: String,
    arguments: Option<JsonObject>,
    until: Instant,
    pub plan: Plan,
    pub question: Question,
}

/// The calls that are to come again.
#[derive(Default)]
pub struct Waiting(Mutex<HashMap<String, Waits>>);

impl Waiting {
    /// Keeps the plan as it was shown, under a name that nobody can guess.
    pub fn keep(
        &self,
        (name, arguments): (String, Option<JsonObject>),
        (plan, question): (Plan, Question),
        form: ElicitRequestParams,
        patience: Duration,
    ) -> Result<InputRequiredResult, Box<(Plan, Question)>> {
        let now = Instant::now();
        let state = uuid::Uuid::new_v4().simple().to_string();
        let gone = {
            let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let old: Vec<String> = waiting.iter().filter(|(_, waits)| waits.until <= now).map(|(id, _)| id.clone()).collect();
            let gone: Vec<Waits> = old.iter().filter_map(|id| waiting.remove(id)).collect();
            if waiting.len() >= MAX_WAITING {
                return Err(Box::new((plan, question)));
            }
            waiting.insert(state.clone(), Waits { name, arguments, until: now + patience, plan, question });
            gone
        };
        let_go(gone);
        let asked = InputRequests::from([(APPROVAL.to_owned(), InputRequest::Elicitation(ElicitRequest::new(form)))]);
        Ok(InputRequiredResult::new(Some(asked), Some(state)))
    }

    /// The question that this call was asked, once. Another call has no part in its answer.
    pub fn take(&self, state: &str, name: &str, arguments: Option<&JsonObject>) -> Option<Waits> {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = |waits: &Waits| waits.name == name && waits.arguments.as_ref() == arguments && waits.until > Instant::now();
        if waiting.get(state).is_some_and(fits) { waiting.remove(state) } else { None }
    }

    /// Nobody answers any more.
    pub fn end(&self) -> Vec<Waits> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).drain().map(|(_, waits)| waits).collect()
    }
}

/// What a preview left may take long to remove.
pub fn let_go<T: Send + 'static>(what: T) {
    drop(tokio::task::spawn_blocking(move || drop(what)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_but_an_accepted_yes_is_a_yes() {
        let cases = [
            (json!({"action": "accept", "content": {"allow": "yes"}}), Answer::Yes),
            (json!({"action": "accept", "content": {"allow": "no"}}), Answer::No),
            (json!({"action": "accept", "content": {"allow": true}}), Answer::No),
            (json!({"action": "accept", "content": {"allow": "YES"}}), Answer::No),
            (json!({"action": "accept", "content": "yes"}), Answer::No),
            (json!({"action": "accept"}), Answer::No),
            (json!({"action": "decline", "content": {"allow": "yes"}}), Answer::No),
            (json!({"action": "cancel", "content": {"allow": "yes"}}), Answer::No),
            (json!({"action": "sure"}), Answer::No),
            (json!("yes"), Answer::No),
        ];
        for (answer, meant) in cases {
            let answers = rmcp::model::InputResponses::from([(APPROVAL.to_owned(), answer.clone())]);
            assert_eq!(Answer::among(&answers), meant, "{answer}");
        }
        assert_eq!(Answer::among(&rmcp::model::InputResponses::new()), Answer::No);
    }
}
