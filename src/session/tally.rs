//! Session totals: tasks, steps, tokens and cost. The session state shares this code with the session list, which
//! parses only those fields of each record that are counted.

use super::task::ends_step;
use crate::ports::Record;
use crate::protocol::{MessageId, SAMPLED_BY_AGENT, StopReason, Usage};
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::borrow::Cow;
use std::collections::VecDeque;

/// Number of most recent messages against which a new message is compared to detect repetitions.
const RECENT_MESSAGES: usize = 3;

/// Token usage and cost of a request.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Expense {
    pub usage: Usage,
    /// Cost in US dollars; `None` if the price is unknown.
    pub cost_usd: Option<f64>,
    /// Whether the provider reported only part of the usage.
    pub estimated: bool,
}

/// Usage and cost summed over several requests.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Totals {
    pub usage: Usage,
    /// Cost in US dollars of all requests with a known price; `None` if there are none.
    pub cost_usd: Option<f64>,
    /// Whether any part of the sum is estimated.
    pub estimated: bool,
    /// Whether the price of any request is unknown.
    unpriced: bool,
}

impl Totals {
    pub(crate) fn add(&mut self, spent: Expense) {
        let Expense { usage, cost_usd, estimated } = spent;
        self.usage += usage;
        self.estimated |= estimated;
        self.unpriced |= cost_usd.is_none() && usage != Usage::default();
        if let Some(cost) = cost_usd {
            self.cost_usd = Some(self.cost_usd.unwrap_or_default() + cost);
        }
    }

    /// Returns the sum as a single expense.
    pub(crate) fn as_expense(&self) -> Expense {
        Expense { usage: self.usage, cost_usd: self.cost_usd, estimated: self.estimated }
    }

    /// Adds another sum to this one.
    pub(crate) fn add_all(&mut self, other: &Self) {
        self.usage += other.usage;
        self.estimated |= other.estimated;
        self.unpriced |= other.unpriced;
        if let Some(cost) = other.cost_usd {
            self.cost_usd = Some(self.cost_usd.unwrap_or_default() + cost);
        }
    }

    pub(crate) fn tokens(&self) -> u64 {
        self.usage.input_tokens + self.usage.output_tokens
    }

    /// Returns the total cost in US dollars, or `None` if the price of any request is unknown.
    pub(crate) fn whole_cost_usd(&self) -> Option<f64> {
        self.cost_usd.filter(|_| !self.unpriced)
    }
}

/// Session totals.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Tally {
    pub tasks: u64,
    /// Number of completed steps in all tasks.
    pub steps: u64,
    pub totals: Totals,
    /// Number of queued messages.
    pub queued: u64,
}

/// Counted fields of a record.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TallyEntry<'a> {
    step: Step,
    spent: Option<Expense>,
    /// ID of the message that the record adds to the conversation.
    message_id: Option<Cow<'a, str>>,
    model: Option<Cow<'a, str>>,
    is_answer: bool,
    is_of_agent: bool,
}

impl TallyEntry<'_> {
    pub(crate) fn starts_task(&self) -> bool {
        self.step == Step::TaskStarted
    }

    /// Returns the usage and cost of a request, or `None` for other records.
    pub(crate) fn expense(&self) -> Option<Expense> {
        self.spent
    }

    /// Returns the request's model, if the record contains it.
    pub(crate) fn model(&self) -> Option<&str> {
        self.model.as_deref()
    }

    /// Returns the model that wrote a response in the conversation, or `None` for other records.
    pub(crate) fn answering_model(&self) -> Option<&str> {
        self.model().filter(|_| self.is_answer)
    }

    /// Returns whether an agent sent the request, which the session of the agent counts too.
    pub(crate) fn is_of_agent(&self) -> bool {
        self.is_of_agent
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    TaskStarted,
    Started(u32),
    /// The current step received a response without calls.
    Answered,
    Completed(u32),
    TaskEnded(u32),
    Queued(u64),
    Other,
}

/// Counts the records of a session. Records must be added in journal order.
#[derive(Debug, Clone, Default)]
pub(crate) struct TallyCounter {
    pub tally: Tally,
    /// Number of steps already counted for the last task.
    last_task: u64,
    /// Number of the current step within its task; 0 if no step is open.
    started: u32,
    recent: VecDeque<String>,
}

impl TallyCounter {
    /// Counts a record. Returns `false` without counting it if the journal already contains its message.
    pub(crate) fn add(&mut self, entry: &TallyEntry<'_>) -> bool {
        if let Some(id) = &entry.message_id {
            if self.recent.iter().any(|recent| recent == id) {
                return false;
            }
            self.recent.push_back(id.clone().into_owned());
            if self.recent.len() > RECENT_MESSAGES {
                self.recent.pop_front();
            }
        }
        if let Some(spent) = entry.spent {
            self.tally.totals.add(spent);
        }
        match entry.step {
            Step::TaskStarted => {
                self.tally.tasks += 1;
                (self.last_task, self.started) = (0, 0);
            }
            // A restarted step counts only once, and an incomplete step does not count.
            Step::Started(number) => {
                self.complete(number.saturating_sub(1));
                self.started = number;
            }
            Step::Answered if self.started > 0 => self.complete(self.started),
            // If a task continues after it has ended, its count continues too.
            Step::Completed(steps) | Step::TaskEnded(steps) => {
                self.complete(steps);
                self.started = 0;
            }
            Step::Queued(count) => self.tally.queued = count,
            Step::Answered | Step::Other => {}
        }
        true
    }

    fn complete(&mut self, steps: u32) {
        let steps = u64::from(steps);
        self.tally.steps = self.tally.steps - self.last_task + steps;
        self.last_task = steps;
    }
}

impl<'a> From<&'a Record> for TallyEntry<'a> {
    fn from(record: &'a Record) -> Self {
        let message = match record {
            Record::TaskStarted { prompt: message, .. }
            | Record::Answer { message, .. }
            | Record::Steered { message }
            | Record::StepCompleted { message, .. } => Some(message),
            _ => None,
        };
        let spent = match record {
            Record::Answer { usage, cost_usd, estimated, .. }
            | Record::Wasted { usage, cost_usd, estimated, .. }
            | Record::Sampled { usage, cost_usd, estimated, .. }
            | Record::Reviewed { usage, cost_usd, estimated }
            | Record::Compacted { usage, cost_usd, estimated, .. } => {
                Some(Expense { usage: *usage, cost_usd: *cost_usd, estimated: *estimated })
            }
            _ => None,
        };
        let step = match record {
            Record::TaskStarted { .. } => Step::TaskStarted,
            Record::StepStarted { step_count, .. } => Step::Started(*step_count),
            Record::Answer { message, stop_reason, .. } if ends_step(message, *stop_reason) => Step::Answered,
            Record::StepCompleted { step_count, .. } | Record::Imported { step_count, .. } => Step::Completed(*step_count),
            Record::TaskEnded { step_count, .. } => Step::TaskEnded(*step_count),
            Record::Queue { prompts } => Step::Queued(prompts.len() as u64),
            _ => Step::Other,
        };
        let model = match record {
            Record::Answer { model, .. } => Some(model),
            Record::Wasted { model, .. } => model.as_ref(),
            Record::Compacted { compaction, .. } => compaction.model.as_ref(),
            _ => None,
        };
        let message_id = message.map(|message| Cow::Borrowed(message.message_id.as_str()));
        let is_answer = matches!(record, Record::Answer { .. });
        let is_of_agent = matches!(record, Record::Sampled { server, .. } if server == SAMPLED_BY_AGENT);
        Self { step, spent, message_id, model: model.map(|model| Cow::Borrowed(model.as_str())), is_answer, is_of_agent }
    }
}

/// Record fields that are counted. All other fields are skipped.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Fields<'a> {
    #[serde(borrow)]
    record: Cow<'a, str>,
    #[serde(default)]
    step_count: u32,
    #[serde(default)]
    usage: Option<Usage>,
    #[serde(default)]
    cost_usd: Option<f64>,
    #[serde(default)]
    estimated: bool,
    #[serde(default)]
    prompts: Vec<IgnoredAny>,
    #[serde(default)]
    stop_reason: Option<StopReason>,
    #[serde(default, alias = "prompt")]
    message: Option<MessageFields>,
    #[serde(borrow, default)]
    model: Option<Cow<'a, str>>,
    #[serde(default)]
    compaction: Option<CompactionFields>,
    #[serde(borrow, default)]
    server: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct CompactionFields {
    #[serde(default)]
    model: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct MessageFields {
    message_id: MessageId,
    #[serde(default)]
    content: Vec<PartKind>,
}

#[derive(Deserialize)]
struct PartKind {
    #[serde(rename = "type", default)]
    name: String,
}

impl MessageFields {
    /// Returns whether the message ends the step. Equivalent to the function `ends_step`, but for a stored record.
    fn ends_step(&self, stop_reason: Option<StopReason>) -> bool {
        !self.content.is_empty()
            && self.content.iter().all(|part| part.name != "tool_call")
            && stop_reason != Some(StopReason::Cancelled)
    }
}

impl<'a> TallyEntry<'a> {
    /// Parses the counted fields of a stored record. Returns `None` if the record cannot be parsed.
    pub(crate) fn parse(json: &'a [u8]) -> Option<Self> {
        let Fields { record, step_count, usage, cost_usd, estimated, prompts, stop_reason, message, model, compaction, server } =
            serde_json::from_slice(json).ok()?;
        let (step, adds_message) = match record.as_ref() {
            "task_started" => (Step::TaskStarted, true),
            "step_started" => (Step::Started(step_count), false),
            "step_completed" => (Step::Completed(step_count), true),
            "imported" => (Step::Completed(step_count), false),
            "task_ended" => (Step::TaskEnded(step_count), false),
            "queue" => (Step::Queued(prompts.len() as u64), false),
            "answer" if message.as_ref().is_some_and(|message| message.ends_step(stop_reason)) => (Step::Answered, true),
            "answer" | "steered" => (Step::Other, true),
            _ => (Step::Other, false),
        };
        let spent = usage.map(|usage| Expense { usage, cost_usd, estimated });
        let message_id = message.filter(|_| adds_message).map(|message| Cow::Owned(message.message_id.to_string()));
        let is_answer = record == "answer";
        let model = match record.as_ref() {
            "answer" | "wasted" => model,
            _ => compaction.and_then(|compaction| compaction.model).map(Cow::Owned),
        };
        let is_of_agent = record == "sampled" && server.as_deref() == Some(SAMPLED_BY_AGENT);
        Some(Self { step, spent, message_id, model, is_answer, is_of_agent })
    }
}
