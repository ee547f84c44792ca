//! What was said and done, in the order and the pieces in which people read it.

use super::{counted, dollars};
use crate::ports::{Record, TaskEnd};
use crate::protocol::{
    Arguments, CallId, Decision, Message, Part, Proposal, Resolution, ToolCall, ToolResult, ToolStatus, Usage,
};
use crate::store::SessionSummary;
use jiff::Timestamp;
use std::collections::HashMap;
use std::fmt::Write as _;

/// Of a long output or diff so much is shown; all of it is in the JSON.
const SHOWN_LINES: usize = 200;
const SHOWN_BYTES: usize = 16 << 10;

pub struct Transcript {
    pub title: String,
    pub session_id: String,
    /// The session it was copied from.
    pub parent: Option<String>,
    pub workspace: String,
    pub model: String,
    pub created: Timestamp,
    pub pieces: Vec<Piece>,
    pub calls: Vec<Card>,
    pub usage: Usage,
    cost_usd: Option<f64>,
    estimated: bool,
    tasks: u64,
    steps: u64,
    /// The newest card of each id.
    cards: HashMap<CallId, usize>,
    /// An answer whose end did not come yet.
    partial: String,
    unreadable: u64,
    at: Timestamp,
}

pub enum Piece {
    /// The person's words.
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
    /// An answer that does not count.
    Broken {
        text: String,
        reason: String,
    },
    /// Which of the calls.
    Call(usize),
    /// A summary that stands for what was said before.
    Summary {
        text: String,
    },
    Note(String),
}

/// A call, what was decided and what came of it.
pub struct Card {
    pub summary: String,
    pub tool: String,
    /// As JSON.
    pub arguments: String,
    pub decided: Vec<String>,
    pub diff: String,
    pub output: String,
    /// `done`, `failed: …`, `no outcome is known`.
    pub end: String,
    pub artifacts: Vec<String>,
}

impl Transcript {
    pub fn of(summary: &SessionSummary) -> Self {
        Self {
            title: summary.title.clone().unwrap_or_else(|| "(only a draft)".to_owned()),
            session_id: summary.session_id.to_string(),
            parent: summary.parent.as_ref().map(ToString::to_string),
            workspace: summary.workspace.clone(),
            model: summary.model.clone(),
            created: summary.created,
            pieces: Vec::new(),
            calls: Vec::new(),
            usage: Usage::default(),
            cost_usd: None,
            estimated: false,
            tasks: 0,
            steps: 0,
            cards: HashMap::new(),
            partial: String::new(),
            unreadable: 0,
            at: summary.created,
        }
    }

    /// `3 prompts, 12 steps, 45000 tokens in, 2100 out, $0.42`.
    pub fn sums(&self) -> String {
        let (input, output) = (self.usage.input_tokens, self.usage.output_tokens);
        let mut sums =
            format!("{}, {}, {input} tokens in, {output} out", counted(self.tasks, "prompt"), counted(self.steps, "step"));
        if let Some(cost) = self.cost_usd {
            let _ = write!(sums, ", {}", dollars(cost, self.estimated));
        }
        sums
    }

    pub fn add(&mut self, record: Record) {
        match record {
            Record::TaskStarted { prompt, .. } => {
                self.break_off("aye ended here");
                self.tasks += 1;
                self.said("You", &prompt);
            }
            Record::Steered { message } => self.said("You, while it worked", &message),
            Record::StepStarted { .. } => {
                self.break_off("aye ended here");
                self.steps += 1;
            }
            Record::PartialAnswer { text, .. } => self.partial.push_str(&text),
            Record::AnswerDiscarded { reason, .. } => self.break_off(&reason),
            Record::Answer { message, usage, model, cost_usd, estimated, .. } => {
                self.partial.clear();
                self.count(usage, cost_usd, estimated);
                self.answer(message, &says(&model, usage, cost_usd, estimated));
            }
            Record::Wasted { usage, cost_usd, estimated } => {
                self.count(usage, cost_usd, estimated);
                self.note(format!("a request without an answer: {}", says("", usage, cost_usd, estimated)));
            }
            Record::Sampled { server, usage, cost_usd, estimated } => {
                self.count(usage, cost_usd, estimated);
                self.note(format!("the MCP server {server} asked the model: {}", says("", usage, cost_usd, estimated)));
            }
            Record::Compacted { compaction, usage, cost_usd, estimated, .. } => {
                self.count(usage, cost_usd, estimated);
                self.pieces.push(Piece::Summary { text: compaction.summary });
            }
            Record::CompactionUndone => self.note("the summary was taken back"),
            Record::ModelChosen { model, effort } => {
                let effort = effort.map_or_else(String::new, |effort| format!(", effort {}", effort.as_str()));
                self.note(format!("model {model}{effort}"));
            }
            Record::Intent { call, summary, proposal, changes, .. } => {
                let card = self.card(&call.tool_call_id.clone(), |card| card.called(&call));
                card.summary = summary;
                if let (true, Some(proposal)) = (changes, proposal) {
                    card.changes(&proposal);
                }
            }
            Record::ApprovalRequested { approval } => {
                let card = self.card(&approval.tool_call_id, |card| card.tool.clone_from(&approval.tool_name));
                card.decided.push(format!("asked: {} ({})", approval.reason, approval.rule));
                card.changes(&approval.proposal);
            }
            Record::Decided { tool_call_id, decision, .. } => {
                let words = match decision {
                    Decision::Approved => "you said yes".to_owned(),
                    Decision::ApprovedAlways { .. } => "you said yes, from then on without a question".to_owned(),
                    Decision::Denied { reason: Some(reason) } => format!("you said no: {reason}"),
                    Decision::Denied { reason: None } => "you said no".to_owned(),
                    Decision::Amended { .. } => "you changed it".to_owned(),
                    Decision::Renewed => "the file had changed, and you wanted to see it made anew".to_owned(),
                    Decision::Previewed => "you wanted to see first what it would do".to_owned(),
                };
                self.card(&tool_call_id, |_| {}).decided.push(words);
            }
            Record::Refused { tool_call_id, rule, reason } => {
                self.card(&tool_call_id, |_| {}).decided.push(format!("refused: {reason} ({rule})"));
            }
            Record::Started { tool_call_id, rule, edited, .. } => {
                let card = self.card(&tool_call_id, |_| {});
                if let Some(edited) = edited.filter(|edited| edited.summary != card.summary) {
                    card.decided.push(format!("it was asked for as: {}", card.summary));
                    card.summary = edited.summary;
                }
                if card.decided.is_empty() {
                    card.decided.push(format!("allowed ({rule})"));
                }
            }
            Record::Previewed { tool_call_id, proposal: Some(proposal) } => {
                self.card(&tool_call_id, |_| {}).changes(&proposal);
            }
            Record::Finished { result, latency_ms } => {
                let id = result.tool_call_id.clone();
                self.card(&id, |card| card.tool.clone_from(&result.tool_name)).finished(result, latency_ms);
            }
            Record::Resolved { tool_call_id, resolution } => {
                let words = match resolution {
                    Resolution::Rerun => "its outcome was unknown: you had it asked again",
                    Resolution::Skip => "its outcome was unknown: you skipped it",
                    Resolution::TellModel => "its outcome was unknown: you had the model told so",
                };
                self.card(&tool_call_id, |_| {}).decided.push(words.to_owned());
            }
            Record::TaskEnded { end, .. } => {
                self.break_off("aye ended here");
                match end {
                    TaskEnd::Completed => {}
                    TaskEnd::Failed { failure } => self.note(format!("failed: {}", failure.message)),
                    TaskEnd::Cancelled => self.note("stopped"),
                }
            }
            Record::Paused { failure } => self.note(format!("paused: {}", failure.message)),
            Record::Rewound { rewound, .. } => self.note(rewound.message),
            Record::Continued => self.note("taken up again"),
            Record::Unreadable => self.unreadable += 1,
            _ => {}
        }
    }

    /// What the end of the records leaves open.
    pub fn end(&mut self, draft: &str) {
        self.break_off("aye ended here");
        if self.unreadable > 0 {
            let records = counted(self.unreadable, "record");
            self.note(format!("{records} of this session cannot be read by this version and are left out"));
        }
        if !draft.trim().is_empty() {
            let (text, at) = (draft.to_owned(), self.at);
            self.pieces.push(Piece::Said { words: "You, not sent".to_owned(), text, at });
        }
    }

    fn said(&mut self, words: &str, message: &Message) {
        self.at = message.timestamp;
        let mut text = message.text();
        for image in message.images() {
            let _ = write!(text, "\n[{} of {} × {}: {}]", image.media_type, image.width, image.height, image.uri);
        }
        self.pieces.push(Piece::Said { words: words.to_owned(), text, at: message.timestamp });
    }

    fn answer(&mut self, message: Message, says: &str) {
        self.at = message.timestamp;
        let (mut text, mut thinking, mut calls) = (String::new(), String::new(), Vec::new());
        for part in message.content {
            match part {
                Part::Text { text: more } => text.push_str(&more),
                Part::Reasoning { text: more, .. } => thinking.push_str(&more),
                Part::ToolCall(call) => calls.push(call),
                Part::ToolResult(_) | Part::Image(_) => {}
            }
        }
        self.pieces.push(Piece::Answer { text, thinking, says: says.to_owned(), at: message.timestamp });
        // An id may come twice in a session; each answer's calls are new ones.
        for call in calls {
            self.cards.remove(&call.tool_call_id);
            self.card(&call.tool_call_id.clone(), |card| card.called(&call));
        }
    }

    fn break_off(&mut self, reason: &str) {
        if !self.partial.is_empty() {
            let text = std::mem::take(&mut self.partial);
            self.pieces.push(Piece::Broken { text, reason: reason.to_owned() });
        }
    }

    fn note(&mut self, text: impl Into<String>) {
        self.pieces.push(Piece::Note(text.into()));
    }

    fn count(&mut self, usage: Usage, cost_usd: Option<f64>, estimated: bool) {
        self.usage += usage;
        self.estimated |= estimated;
        if let Some(cost) = cost_usd {
            self.cost_usd = Some(self.cost_usd.unwrap_or_default() + cost);
        }
    }

    /// The card of a call, made where there is none yet.
    fn card(&mut self, id: &CallId, make: impl FnOnce(&mut Card)) -> &mut Card {
        let at = *self.cards.entry(id.clone()).or_insert_with(|| {
            let mut card = Card::new(id);
            make(&mut card);
            self.calls.push(card);
            self.pieces.push(Piece::Call(self.calls.len() - 1));
            self.calls.len() - 1
        });
        &mut self.calls[at]
    }
}

impl Card {
    fn new(id: &CallId) -> Self {
        Self {
            summary: String::new(),
            tool: id.to_string(),
            arguments: String::new(),
            decided: Vec::new(),
            diff: String::new(),
            output: String::new(),
            end: "no outcome is known".to_owned(),
            artifacts: Vec::new(),
        }
    }

    /// What stands above it.
    pub fn heading(&self) -> &str {
        if self.summary.is_empty() { &self.tool } else { &self.summary }
    }

    fn called(&mut self, call: &ToolCall) {
        self.tool.clone_from(&call.tool_name);
        self.arguments = match &call.arguments {
            Arguments::Object(map) => serde_json::to_string_pretty(map).unwrap_or_default(),
            Arguments::Malformed(text) => text.clone(),
        };
    }

    fn changes(&mut self, proposal: &Proposal) {
        if !proposal.diff.is_empty() {
            self.diff.clone_from(&proposal.diff);
        }
    }

    fn finished(&mut self, result: ToolResult, latency_ms: u64) {
        self.end = match (&result.status, &result.error) {
            (ToolStatus::Succeeded, _) => format!("done in {latency_ms} ms"),
            (_, Some(error)) => error.to_string(),
            (ToolStatus::Denied, None) => "denied".to_owned(),
            (ToolStatus::Failed, None) => "failed".to_owned(),
        };
        if let Some(changed) = &result.changed {
            self.changes(changed);
        }
        self.output = result.output_text;
        self.artifacts = result.artifact_uris;
    }
}

/// `anthropic/claude-sonnet-5, 1200 tokens in, 80 out, $0.01`.
fn says(model: &str, usage: Usage, cost_usd: Option<f64>, estimated: bool) -> String {
    let mut text = String::new();
    if !model.is_empty() {
        let _ = write!(text, "{model}, ");
    }
    let _ = write!(text, "{} tokens in, {} out", usage.input_tokens, usage.output_tokens);
    if let Some(cost) = cost_usd {
        let _ = write!(text, ", {}", dollars(cost, estimated));
    }
    text
}

/// The start of a long text, and what is said of the rest.
pub fn cut(text: &str) -> (&str, Option<String>) {
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
    (&text[..end], Some(format!("[{lines} more lines, {} bytes; the JSON export has all of it]", left.len())))
}
