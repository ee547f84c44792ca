//! Session transcript, as items in reading order.

use crate::ports::{Record, TaskEnd};
use crate::protocol::{
    CallArguments, CallDenial, CallId, Decision, Denier, Message, Part, Proposal, Resolution, ToolCall, ToolResult, ToolStatus,
};
use crate::session::{CallChange, Change, Expense, ModelChoice, Payer, SessionState};
use crate::store::SessionSummary;
use crate::transfer::format::{dollars, format_count};
use jiff::Timestamp;
use std::collections::HashMap;
use std::fmt::Write as _;

/// Maximum number of lines shown of an output or diff. The JSON export contains the full text.
const SHOWN_LINES: usize = 200;
const SHOWN_BYTES: usize = 16 << 10;

pub(crate) struct SessionTranscript {
    pub title: String,
    pub session_id: String,
    /// Parent session.
    pub parent: Option<String>,
    pub workspace: String,
    pub model: String,
    pub created: Timestamp,
    pub pieces: Vec<TranscriptItem>,
    pub calls: Vec<TranscriptCall>,
    state: SessionState,
    /// Number of steps started so far.
    steps: u64,
    /// Index of the most recent card for each call ID.
    cards: HashMap<CallId, usize>,
    unreadable: u64,
    at: Timestamp,
}

pub(crate) enum TranscriptItem {
    /// Message from the user.
    Said {
        words: String,
        text: String,
        at: Timestamp,
    },
    Answer {
        text: String,
        thinking: String,
        says: String,
        at: Timestamp,
    },
    /// Response that was cut off or discarded.
    Broken {
        text: String,
        reason: String,
    },
    /// Index of a call in `calls`.
    Call(usize),
    /// Summary that replaces earlier messages in requests.
    Summary {
        text: String,
    },
    Note(String),
}

/// Call with the decisions about it and its outcome.
pub(crate) struct TranscriptCall {
    pub summary: String,
    pub tool: String,
    /// Arguments as JSON.
    pub arguments: String,
    pub decided: Vec<String>,
    pub diff: String,
    pub output: String,
    /// Outcome: `done`, `failed: …` or `unknown outcome`.
    pub end: String,
    pub artifacts: Vec<String>,
}

impl SessionTranscript {
    pub(crate) fn new(summary: &SessionSummary) -> Self {
        Self {
            title: summary.title.clone().unwrap_or_else(|| "(no prompt)".to_owned()),
            session_id: summary.session_id.to_string(),
            parent: summary.parent.as_ref().map(ToString::to_string),
            workspace: summary.workspace.clone(),
            model: summary.model.clone(),
            created: summary.created,
            pieces: Vec::new(),
            calls: Vec::new(),
            state: SessionState::default(),
            steps: 0,
            cards: HashMap::new(),
            unreadable: 0,
            at: summary.created,
        }
    }

    /// Formats the totals, such as `3 prompts, 12 steps, 45000 tokens in, 2100 out, $0.42`.
    pub(crate) fn totals_line(&self) -> String {
        let (tasks, steps) = (self.state.tally().tasks, self.steps);
        format!(
            "{}, {}, {}",
            format_count(tasks, "prompt"),
            format_count(steps, "step"),
            format_expense(self.state.totals().as_expense())
        )
    }

    pub(crate) fn add(&mut self, record: &Record) {
        let applied = self.state.apply(record);
        if let Some((text, reason)) = applied.interrupted {
            self.pieces.push(TranscriptItem::Broken { text, reason: reason.to_owned() });
        }
        match applied.change {
            Change::TaskStarted { prompt, .. } => self.push_message("You", prompt),
            Change::Steered { message } => self.push_message("You, during the task", message),
            Change::StepStarted { .. } => self.steps += 1,
            Change::Answered { message, model, spent: cost, .. } => {
                self.answer(message, &format!("{}{}", model_prefix(model), format_expense(cost)));
            }
            Change::Spent { spent: cost, payer: Payer::FailedRequest } => {
                self.note(format!("a request without a response: {}", format_expense(cost)));
            }
            Change::Spent { spent: cost, payer: Payer::Server(server) } => {
                self.note(format!("a model request by the MCP server {server}: {}", format_expense(cost)));
            }
            Change::Spent { spent: cost, payer: Payer::Review } => {
                self.note(format!("a review request: {}", format_expense(cost)));
            }
            Change::Compacted { compaction, .. } => {
                self.pieces.push(TranscriptItem::Summary { text: compaction.summary.clone() });
            }
            Change::CompactionUndone { .. } => self.note("summary undone"),
            Change::ModelChosen { choice: ModelChoice { model, effort }, .. } => {
                let effort = effort.map_or_else(String::new, |effort| format!(", effort {}", effort.as_str()));
                self.note(format!("model {model}{effort}"));
            }
            Change::Call { tool_call_id, change } => self.call(tool_call_id, change),
            Change::TaskEnded { end: TaskEnd::Failed { failure }, .. } => self.note(format!("failed: {}", failure.message)),
            Change::TaskEnded { end: TaskEnd::Cancelled, .. } => self.note("interrupted"),
            Change::Paused { failure } => self.note(format!("paused: {}", failure.message)),
            Change::Rewound { rewound, .. } => self.note(rewound.message.clone()),
            Change::Continued => self.note("resumed"),
            Change::Unreadable => self.unreadable += 1,
            _ => {}
        }
    }

    fn call(&mut self, id: &CallId, change: CallChange<'_>) {
        match change {
            CallChange::Planned { call, summary, proposal, changes, .. } => {
                let card = self.card(id, |card| card.on_call(call));
                summary.clone_into(&mut card.summary);
                if let (true, Some(proposal)) = (changes, proposal) {
                    card.changes(proposal);
                }
            }
            CallChange::Asked { approval } => {
                let card = self.card(id, |card| card.tool.clone_from(&approval.tool_name));
                card.decided.push(format!("approval requested: {} ({})", approval.reason, approval.rule));
                card.changes(&approval.proposal);
            }
            CallChange::Decided { decision } => self.card(id, |_| {}).decided.push(describe_decision(decision)),
            CallChange::Refused { rule, reason } => self.card(id, |_| {}).decided.push(format!("refused: {reason} ({rule})")),
            CallChange::Started { rule, edited } => {
                let card = self.card(id, |_| {});
                if let Some(edited) = edited.filter(|edited| edited.summary != card.summary) {
                    card.decided.push(format!("originally: {}", card.summary));
                    card.summary.clone_from(&edited.summary);
                }
                if card.decided.is_empty() {
                    card.decided.push(format!("allowed ({rule})"));
                }
            }
            CallChange::Previewed { proposal: Some(proposal) } => self.card(id, |_| {}).changes(proposal),
            CallChange::Finished { result, latency_ms, .. } => {
                self.card(id, |card| card.tool.clone_from(&result.tool_name)).on_result(result, latency_ms);
            }
            CallChange::Resolved { resolution } => {
                let words = match resolution {
                    Resolution::Rerun => "the outcome was unknown: you chose to run it again",
                    Resolution::Skip => "the outcome was unknown: you skipped it",
                    Resolution::TellModel => "the outcome was unknown: you chose to report this to the model",
                };
                self.card(id, |_| {}).decided.push(words.to_owned());
            }
            CallChange::Hooked { hooks } => {
                let words = hooks.rewriting().into_iter().chain(hooks.question());
                self.card(id, |_| {}).decided.extend(words);
            }
            CallChange::Conflicted => {
                self.card(id, |_| {}).decided.push("files had changed since the command ran; nothing was written".to_owned());
            }
            CallChange::Previewed { proposal: None }
            | CallChange::PreviewStarted
            | CallChange::LayerEnded
            | CallChange::PreviewDropped
            | CallChange::Renewed
            | CallChange::Blocked => {}
        }
    }

    /// Completes the transcript after the last record. Adds a response that was cut off, a note about unreadable
    /// records, and the unsent draft.
    pub(crate) fn end(&mut self, draft: &str) {
        if let Some((text, reason)) = self.state.interrupted_answer() {
            self.pieces.push(TranscriptItem::Broken { text: text.to_owned(), reason: reason.to_owned() });
        }
        if self.unreadable > 0 {
            let records = format_count(self.unreadable, "record");
            self.note(format!("this version cannot read {records} in this session; they are omitted"));
        }
        if !draft.trim().is_empty() {
            let (text, at) = (draft.to_owned(), self.at);
            self.pieces.push(TranscriptItem::Said { words: "Draft (not sent)".to_owned(), text, at });
        }
    }

    fn push_message(&mut self, words: &str, message: &Message) {
        self.at = message.timestamp;
        let mut text = message.text();
        for image in message.images() {
            let _ = write!(text, "\n[{} of {} × {}: {}]", image.media_type, image.width, image.height, image.uri);
        }
        self.pieces.push(TranscriptItem::Said { words: words.to_owned(), text, at: message.timestamp });
    }

    fn answer(&mut self, message: &Message, says: &str) {
        self.at = message.timestamp;
        let (mut text, mut thinking, mut calls) = (String::new(), String::new(), Vec::new());
        for part in &message.content {
            match part {
                Part::Text { text: more } => text.push_str(more),
                Part::Reasoning { text: more, .. } => thinking.push_str(more),
                Part::ToolCall(call) => calls.push(call),
                Part::ToolResult(_) | Part::Image(_) => {}
            }
        }
        self.pieces.push(TranscriptItem::Answer { text, thinking, says: says.to_owned(), at: message.timestamp });
        // An ID may occur several times in a session. Each response contains new calls.
        for call in calls {
            self.cards.remove(&call.tool_call_id);
            self.card(&call.tool_call_id, |card| card.on_call(call));
        }
    }

    fn note(&mut self, text: impl Into<String>) {
        self.pieces.push(TranscriptItem::Note(text.into()));
    }

    /// Returns the card for a call, creating it if necessary.
    fn card(&mut self, id: &CallId, make: impl FnOnce(&mut TranscriptCall)) -> &mut TranscriptCall {
        let at = *self.cards.entry(id.clone()).or_insert_with(|| {
            let mut card = TranscriptCall::new(id);
            make(&mut card);
            self.calls.push(card);
            self.pieces.push(TranscriptItem::Call(self.calls.len() - 1));
            self.calls.len() - 1
        });
        &mut self.calls[at]
    }
}

impl TranscriptCall {
    fn new(id: &CallId) -> Self {
        Self {
            summary: String::new(),
            tool: id.to_string(),
            arguments: String::new(),
            decided: Vec::new(),
            diff: String::new(),
            output: String::new(),
            end: "unknown outcome".to_owned(),
            artifacts: Vec::new(),
        }
    }

    /// Returns the card's heading: the summary, or the tool name if there is none.
    pub(crate) fn heading(&self) -> &str {
        if self.summary.is_empty() { &self.tool } else { &self.summary }
    }

    fn on_call(&mut self, call: &ToolCall) {
        self.tool.clone_from(&call.tool_name);
        self.arguments = match &call.arguments {
            CallArguments::Object(map) => serde_json::to_string_pretty(map).unwrap_or_default(),
            CallArguments::Malformed(text) => text.clone(),
        };
    }

    fn changes(&mut self, proposal: &Proposal) {
        if !proposal.diff.is_empty() {
            self.diff = proposal.diff.to_string();
        }
    }

    fn on_result(&mut self, result: &ToolResult, latency_ms: u64) {
        self.end = match (&result.status, &result.error) {
            (ToolStatus::Succeeded, _) => format!("done in {latency_ms} ms"),
            (_, Some(error)) => error.to_string(),
            (ToolStatus::Denied, None) => "denied".to_owned(),
            (ToolStatus::Failed, None) => "failed".to_owned(),
        };
        if let Some(changed) = &result.changed {
            self.changes(changed);
        }
        self.output.clone_from(&result.output_text);
        self.artifacts.clone_from(&result.artifact_uris);
    }
}

/// Returns a prefix such as `anthropic/claude-sonnet-5, `, or an empty string if the model is unknown.
fn model_prefix(model: &str) -> String {
    if model.is_empty() { String::new() } else { format!("{model}, ") }
}

/// Formats usage and cost, such as `1200 tokens in, 80 out, $0.01`.
fn format_expense(spent: Expense) -> String {
    let Expense { usage, cost_usd, estimated } = spent;
    let cost = cost_usd.map_or_else(String::new, |cost| format!(", {}", dollars(cost, estimated)));
    format!("{} tokens in, {} out{cost}", usage.input_tokens, usage.output_tokens)
}

/// Describes a decision in a sentence addressed to the user.
fn describe_decision(decision: &Decision) -> String {
    match decision {
        Decision::Approved => "you approved it".to_owned(),
        Decision::ApprovedByService => "the approval service approved it".to_owned(),
        Decision::ApprovedInCleanContext => "you approved it, to be carried out in a clean context".to_owned(),
        Decision::ApprovedAlways { .. } => "you approved it and saved a rule to always allow it".to_owned(),
        Decision::Denied(CallDenial { by: Denier::User, reason: Some(reason) }) => format!("you denied it: {reason}"),
        Decision::Denied(CallDenial { by: Denier::User, reason: None }) => "you denied it".to_owned(),
        Decision::Denied(CallDenial { by: Denier::Service, reason: Some(reason) }) => reason.clone(),
        Decision::Denied(CallDenial { reason: Some(reason), .. }) => format!("denied: {reason}"),
        Decision::Denied(CallDenial { reason: None, .. }) => "denied".to_owned(),
        Decision::Amended { .. } => "you edited it".to_owned(),
        Decision::Renewed => "the file had changed, and you asked for an updated diff".to_owned(),
        Decision::Previewed => "you asked for a preview".to_owned(),
    }
}

/// Truncates long text. Returns its beginning, and a note about the omitted part if text was omitted.
pub(crate) fn truncate(text: &str) -> (&str, Option<String>) {
    let by_lines = text.match_indices('\n').nth(SHOWN_LINES - 1).map_or(text.len(), |(at, _)| at + 1);
    let mut end = by_lines.min(text.len());
    if end > SHOWN_BYTES {
        end = (0..=SHOWN_BYTES).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    }
    if end == text.len() {
        return (text, None);
    }
    let left = &text[end..];
    let lines = left.lines().count();
    (&text[..end], Some(format!("[{lines} more lines, {} bytes; the JSON export contains all of it]", left.len())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_denials_by_the_user_are_described_as_such() {
        let typed = Decision::denied(Some("the task was cancelled".to_owned()));
        assert_eq!(describe_decision(&typed), "you denied it: the task was cancelled");
        let service = Decision::denied_by(Denier::Service, "denied by the approval service: not today");
        assert_eq!(describe_decision(&service), "denied by the approval service: not today");
        let timeout = Decision::denied_by(Denier::Timeout, "no answer within 5 min");
        assert_eq!(describe_decision(&timeout), "denied: no answer within 5 min");
    }
}
