//! Approval prompts for the user of an MCP client. They are sent either as a request during the call, or as a result
//! after which the client repeats the call.

use crate::policy::Question;
use crate::ports::Plan;
use crate::protocol::{CreatedFiles, EffectKind, Effects, FileEffect, RefusedEffect, format_count, truncate};
use crate::text::{reveal, reveal_name};
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

/// Maximum size, in bytes, of the diff shown in an approval prompt.
const DIFF_BYTES: usize = 8 << 10;
const LINE_BYTES: usize = 2 << 10;
/// Maximum number of changed paths listed in an approval prompt.
const MAX_LISTED: usize = 500;
/// Maximum number of pending approvals for calls that the client must repeat, limited because each one stores a plan.
const MAX_WAITING: usize = 16;
/// Name of the only field in the form.
const FIELD: &str = "allow";
/// Field value that approves the call.
const YES: &str = "yes";
/// Name of the input request within a result.
const APPROVAL: &str = "approval";

/// The client's means of prompting its user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ElicitationSupport {
    /// The client does not support forms.
    None,
    /// The client can be sent a request during the call.
    Request,
    /// The client can be sent a result that contains the form. It then repeats the call with the user's answer.
    NextCall,
}

impl ElicitationSupport {
    pub(crate) fn from_context(context: &RequestContext<RoleServer>) -> Self {
        let shows_forms = context
            .client_capabilities()
            .and_then(|capabilities| capabilities.elicitation)
            // A client that lists neither kind supports forms, as in the older protocol.
            .is_some_and(|elicitation| elicitation.form.is_some() || elicitation.url.is_none());
        let modern = context.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28);
        match (shows_forms, modern) {
            (false, _) => Self::None,
            (true, false) => Self::Request,
            (true, true) => Self::NextCall,
        }
    }
}

/// The user's answer. Only the exact value approves the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClientAnswer {
    Yes,
    No,
}

impl ClientAnswer {
    fn from_result(result: &ElicitResult) -> Self {
        let said = result.content.as_ref().and_then(|content| content.get(FIELD)).and_then(Value::as_str);
        if result.action == ElicitationAction::Accept && said == Some(YES) { Self::Yes } else { Self::No }
    }

    /// Extracts the user's answer from a repeated call.
    pub(crate) fn from_responses(answers: &rmcp::model::InputResponses) -> Self {
        let result = answers.get(APPROVAL).and_then(|answer| serde_json::from_value(answer.clone()).ok());
        result.map_or(Self::No, |result| Self::from_result(&result))
    }
}

/// Returns the form, with everything the user needs for the decision. Long values are shortened, and control characters
/// are made visible. Returns `None` if a command changes too many files to list them all.
pub(crate) fn form(plan: &Plan, question: &Question) -> Result<Option<ElicitRequestParams>, ErrorData> {
    let effects = plan.effects.as_deref();
    if effects.is_some_and(|effects| effects.listed_paths().count() > MAX_LISTED || effects.unlisted_reason().is_some()) {
        return Ok(None);
    }
    let proposal = plan.proposal.as_ref();
    let mut message = format!("aye: {}\n", truncate(&plan.summary, LINE_BYTES));
    let _ =
        writeln!(message, "{} · {} risk · {} (rule: {})", question.title, question.risk.as_str(), question.reason, question.rule);
    for note in proposal.into_iter().flat_map(|proposal| &proposal.notes) {
        let _ = writeln!(message, "- {}", truncate(note, LINE_BYTES));
    }
    for effect in effects.into_iter().flat_map(effect_lines) {
        // A line break in the name of a file must not begin another item.
        let _ = writeln!(message, "- {}", truncate(&reveal_name(&effect), LINE_BYTES));
    }
    if let Some(diff) = proposal.map(|proposal| &proposal.diff).filter(|diff| !diff.is_empty()) {
        let _ = write!(message, "\n{}", truncate(&diff.to_string(), DIFF_BYTES));
    }
    let schema = json!({
        "type": "object",
        "properties": {FIELD: {"type": "string", "title": "Allow this?", "enum": ["no", YES]}},
        "required": [FIELD],
    });
    let requested_schema = serde_json::from_value(schema).map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
    Ok(Some(ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: reveal(&message).trim_end().to_owned(),
        requested_schema,
    }))
}

/// Describes each change that approval would apply, and each change that is never applied.
fn effect_lines(effects: &Effects) -> impl Iterator<Item = String> {
    let file = |file: &FileEffect| {
        let effect = match &file.kind {
            EffectKind::Renamed { from, .. } => format!("renamed {from} to {}", file.path),
            EffectKind::Linked { to } => format!("linked {} to {to}", file.path),
            EffectKind::ModeChanged { from, to } if from != to => {
                format!("changed the mode of {} from {from:o} to {to:o}", file.path)
            }
            kind => format!("{} {}", kind.verb(), file.path),
        };
        if file.notes.is_empty() { effect } else { format!("{effect} ({})", file.notes.join("; ")) }
    };
    let group =
        |group: &CreatedFiles| format!("created {} in {}", format_count(group.files.len() as u64, "file", "files"), group.folder);
    let refused = |refused: &RefusedEffect| format!("not applied: {} ({})", refused.path, refused.reason);
    let applied = effects.files.iter().map(file).chain(effects.groups.iter().map(group));
    applied.chain(effects.refused.iter().map(refused))
}

/// Prompts the user during the call. Returns `No` if the client does not support prompts, or if the user does not
/// answer in time.
pub(crate) async fn ask(context: &RequestContext<RoleServer>, form: ElicitRequestParams, patience: Duration) -> ClientAnswer {
    match context.peer.create_elicitation_with_timeout(form, Some(patience)).await {
        Ok(result) => ClientAnswer::from_result(&result),
        Err(error) => {
            tracing::debug!(%error, "the client did not answer an approval prompt");
            ClientAnswer::No
        }
    }
}

/// A call that ended with a form and is now waiting for the user's answer.
pub(crate) struct PendingQuestion {
    name: String,
    arguments: Option<JsonObject>,
    until: Instant,
    pub plan: Plan,
    pub question: Question,
}

/// Pending approvals for calls that the client must repeat with the user's answer.
#[derive(Default)]
pub(crate) struct PendingApprovals(Mutex<HashMap<String, PendingQuestion>>);

impl PendingApprovals {
    /// Stores the plan under an unguessable ID and returns the result that contains the form. If too many approvals are
    /// pending, returns the plan and the request for approval as an error.
    pub(crate) fn keep(
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
            let gone: Vec<PendingQuestion> = old.iter().filter_map(|id| waiting.remove(id)).collect();
            if waiting.len() >= MAX_WAITING {
                return Err(Box::new((plan, question)));
            }
            waiting.insert(state.clone(), PendingQuestion { name, arguments, until: now + patience, plan, question });
            gone
        };
        drop_in_background(gone);
        let asked = InputRequests::from([(APPROVAL.to_owned(), InputRequest::Elicitation(ElicitRequest::new(form)))]);
        Ok(InputRequiredResult::new(Some(asked), Some(state)))
    }

    /// Removes and returns the pending approval for this call. Each approval can be answered only once, before it
    /// expires, and only by a call with the same name and arguments.
    pub(crate) fn take(&self, state: &str, name: &str, arguments: Option<&JsonObject>) -> Option<PendingQuestion> {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let fits =
            |waits: &PendingQuestion| waits.name == name && waits.arguments.as_ref() == arguments && waits.until > Instant::now();
        if waiting.get(state).is_some_and(fits) { waiting.remove(state) } else { None }
    }

    /// Removes and returns all pending approvals.
    pub(crate) fn end(&self) -> Vec<PendingQuestion> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).drain().map(|(_, waits)| waits).collect()
    }
}

/// Drops a value on another thread, because removing the files of a preview may take a long time.
pub(crate) fn drop_in_background<T: Send + 'static>(what: T) {
    drop(tokio::task::spawn_blocking(move || drop(what)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_accepted_form_with_yes_counts_as_approval() {
        let cases = [
            (json!({"action": "accept", "content": {"allow": "yes"}}), ClientAnswer::Yes),
            (json!({"action": "accept", "content": {"allow": "no"}}), ClientAnswer::No),
            (json!({"action": "accept", "content": {"allow": true}}), ClientAnswer::No),
            (json!({"action": "accept", "content": {"allow": "YES"}}), ClientAnswer::No),
            (json!({"action": "accept", "content": "yes"}), ClientAnswer::No),
            (json!({"action": "accept"}), ClientAnswer::No),
            (json!({"action": "decline", "content": {"allow": "yes"}}), ClientAnswer::No),
            (json!({"action": "cancel", "content": {"allow": "yes"}}), ClientAnswer::No),
            (json!({"action": "sure"}), ClientAnswer::No),
            (json!("yes"), ClientAnswer::No),
        ];
        for (answer, meant) in cases {
            let answers = rmcp::model::InputResponses::from([(APPROVAL.to_owned(), answer.clone())]);
            assert_eq!(ClientAnswer::from_responses(&answers), meant, "{answer}");
        }
        assert_eq!(ClientAnswer::from_responses(&rmcp::model::InputResponses::new()), ClientAnswer::No);
    }

    #[test]
    fn each_effect_is_described_with_its_notes() {
        let mode = |path: &str, from, notes: &[&str]| FileEffect {
            path: path.to_owned(),
            kind: EffectKind::ModeChanged { from, to: 0o644 },
            notes: notes.iter().map(|note| (*note).to_owned()).collect(),
        };
        let files = vec![mode("x", 0o755, &["set-uid bit dropped"]), mode("y", 0o644, &[])];
        let lines: Vec<String> = effect_lines(&Effects { files, ..Effects::default() }).collect();
        assert_eq!(lines, ["changed the mode of x from 755 to 644 (set-uid bit dropped)", "touched y"]);
    }
}
