//! Facts that follow from a single record, regardless of earlier records.

use super::SessionActivity;
use crate::ports::Record;
use crate::protocol::{CallArguments, ToolCall};

/// Maximum length of a title in characters. A title is shown as a single line in a list.
const TITLE_CHARS: usize = 80;

/// Returns whether every call before this record has ended, even if the records of their results are unreadable.
pub(crate) fn closes_calls(record: &Record) -> bool {
    let changes_conversation = matches!(
        record,
        Record::Steered { .. }
            | Record::Compacted { .. }
            | Record::Truncated { .. }
            | Record::RewindStarted { .. }
            | Record::Rewound { .. }
            | Record::OwnStarted { .. }
            | Record::OwnEnded { .. }
    );
    starts_or_ends_step(record) || changes_conversation
}

fn starts_or_ends_step(record: &Record) -> bool {
    matches!(
        record,
        Record::Answer { .. }
            | Record::StepStarted { .. }
            | Record::StepCompleted { .. }
            | Record::TaskStarted { .. }
            | Record::TaskEnded { .. }
    )
}

/// Returns whether a stored record starts a step or a task, which means that it can be shown without the earlier
/// records.
pub(crate) fn starts_step(json: &[u8]) -> bool {
    is_named(json, "step_started") || is_named(json, "task_started")
}

/// Returns whether a stored record plans a call.
pub(crate) fn plans_call(json: &[u8]) -> bool {
    is_named(json, "intent")
}

/// Returns whether a record's JSON begins with the given record name.
fn is_named(json: &[u8], name: &str) -> bool {
    let rest = json.strip_prefix(br#"{"record":""#).and_then(|rest| rest.strip_prefix(name.as_bytes()));
    rest.is_some_and(|rest| rest.starts_with(b"\""))
}

/// Returns whether a compaction may still be in progress after this record. A record of the compaction's cost does
/// not end it, because the request may be retried.
pub(crate) fn may_follow_compaction(record: &Record) -> bool {
    matches!(
        record,
        Record::Wasted { .. }
            | Record::Sampled { .. }
            | Record::Reviewed { .. }
            | Record::Queue { .. }
            | Record::ModelChosen { .. }
            | Record::BudgetSet { .. }
            | Record::PriceAssumed { .. }
            | Record::PolicyInForce { .. }
            | Record::Registered { .. }
    )
}

/// Returns the session's status after a record, or `None` if the record does not change it.
pub(crate) fn status_after(record: &Record) -> Option<SessionActivity> {
    match record {
        Record::TaskStarted { .. } | Record::Decided { .. } | Record::Continued | Record::OwnStarted { .. } => {
            Some(SessionActivity::Running)
        }
        Record::TaskEnded { .. } | Record::OwnEnded { waits: false, .. } => Some(SessionActivity::Idle),
        Record::Paused { .. } | Record::OwnEnded { waits: true, .. } => Some(SessionActivity::Paused),
        Record::ApprovalRequested { .. } => Some(SessionActivity::Waiting),
        _ => None,
    }
}

/// Returns a title: the first non-blank line of the user's prompt or command, without control characters. Returns
/// `None` for other records.
pub(crate) fn title(record: &Record) -> Option<String> {
    let text = match record {
        Record::TaskStarted { prompt, .. } => prompt.typed_text().to_owned(),
        Record::OwnStarted { call, .. } => format!("! {}", command_line(call)),
        _ => return None,
    };
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("(no text)");
    let plain: String = line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if plain.chars().count() <= TITLE_CHARS {
        return Some(plain);
    }
    Some(plain.chars().take(TITLE_CHARS - 1).chain(['…']).collect())
}

pub(crate) fn command_line(call: &ToolCall) -> &str {
    match &call.arguments {
        CallArguments::Object(object) => object.get("command").and_then(|line| line.as_str()).unwrap_or_default(),
        CallArguments::Malformed(_) => "",
    }
}
