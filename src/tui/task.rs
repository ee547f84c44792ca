//! State of the task on the screen: activity, cost and queued messages.

use crate::protocol::{CallId, FailureKind, GoalState, PlannedStep, QueuedMessage, Usage};

/// Time in milliseconds after an interrupt from which Escape kills all remaining processes.
pub(crate) const KILL_MS: u64 = 3000;

/// Activity of the running task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Activity {
    Idle,
    Thinking,
    Answering,
    /// The model writes the arguments of a call.
    Calling {
        tool: String,
        bytes: u64,
    },
    /// Calls are running, the newest last.
    Running {
        calls: Vec<(CallId, String)>,
    },
    Retrying(Box<Retry>),
    /// The conversation is being summarized.
    Compacting {
        messages: u64,
    },
    Stopping,
}

/// Failed request that is retried after a delay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Retry {
    /// Time of the retry.
    pub at: u64,
    pub attempt: u32,
    pub max_attempts: u32,
    pub kind: FailureKind,
    /// Error message on one line, without control characters.
    pub message: String,
    /// Delay requested by the provider, in milliseconds.
    pub asked_ms: Option<u64>,
    /// Usage of the failed attempt, if known.
    pub wasted: Option<String>,
    /// Request ID of the provider, and whether the user wants to see it.
    pub request_id: Option<String>,
    pub shows_id: bool,
    /// Time of day of the retry, if the delay is long.
    pub clock: Option<String>,
}

impl Retry {
    /// Returns the remaining seconds, rounded up.
    pub(crate) fn seconds_left(&self, now: u64) -> u64 {
        self.at.saturating_sub(now).div_ceil(1000)
    }

    /// Returns the time at which the displayed number of seconds changes; `None` once the retry is
    /// due.
    pub(crate) fn next_second(&self, now: u64) -> Option<u64> {
        let left = self.seconds_left(now);
        (left > 0).then(|| self.at.saturating_sub((left - 1) * 1000))
    }
}

/// Queued message that the user moved back to the draft. Until the session confirms, the model may have received it.
#[derive(Debug)]
pub(crate) struct RetractedMessage {
    pub id: u64,
    pub text: String,
    pub steer: bool,
    pub race: RetractState,
}

/// Events since the message was moved back to the draft.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RetractState {
    /// None yet.
    Open,
    /// The message is no longer queued: it was moved back to the draft, or sent.
    Gone,
    /// A message with the same text was sent to the model: either this one or an identical one.
    Said,
    /// The message was moved back to the draft.
    Won,
}

/// Reason why an earlier task is paused, and how to continue it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PauseNotice {
    /// Descriptions of the pause, longest first. The shortest ones contain only the hint.
    pub ways: Vec<String>,
    /// Whether the provider rejected the API key, so that Enter in the empty draft replaces it.
    pub wants_key: bool,
    /// Whether a budget needs the model's price, which is unknown.
    pub wants_price: bool,
}

impl PauseNotice {
    pub(crate) fn new(words: impl Into<String>) -> Self {
        Self { ways: vec![words.into()], wants_key: false, wants_price: false }
    }
}

/// The task and its cost so far.
#[derive(Debug)]
pub(crate) struct TaskView {
    /// Whether a task has started and has not ended.
    pub goes_on: bool,
    /// Number of messages that are being summarized, regardless of the state of the request.
    pub summarized_messages: Option<u64>,
    pub activity: Activity,
    /// Number of the last started step, from 1.
    pub step: u32,
    /// Start time of the activity.
    pub since: u64,
    pub usage: Usage,
    pub cost_usd: Option<f64>,
    /// Whether the provider did not report part of the usage.
    pub is_estimated: bool,
    /// Messages queued for the next step and for after the task.
    pub waiting: Vec<QueuedMessage>,
    /// Messages removed from the queue at its last change.
    pub left_queue: Vec<String>,
    /// Messages that were moved back to the draft.
    pub taken_back: Vec<RetractedMessage>,
    /// Earlier task, which continues only at the user's request.
    pub paused: Option<PauseNotice>,
    /// Messages that were sent but have not reached the session yet.
    pub sent: Vec<String>,
    /// Steps that the model planned, without control characters.
    pub planned_steps: Vec<PlannedStep>,
    /// Active goal, as last reported.
    pub goal: Option<GoalState>,
    /// Time of the report, and the session cost at that time.
    pub goal_at: u64,
    pub goal_session_cost: Option<f64>,
}

impl Default for TaskView {
    fn default() -> Self {
        Self {
            goes_on: false,
            summarized_messages: None,
            activity: Activity::Idle,
            step: 0,
            since: 0,
            usage: Usage::default(),
            cost_usd: None,
            is_estimated: false,
            waiting: Vec::new(),
            left_queue: Vec::new(),
            taken_back: Vec::new(),
            paused: None,
            sent: Vec::new(),
            planned_steps: Vec::new(),
            goal: None,
            goal_at: 0,
            goal_session_cost: None,
        }
    }
}

/// The user's running command.
#[derive(Debug)]
pub(crate) struct RunningUserCommand {
    pub id: CallId,
    /// Label on its card.
    pub whose: &'static str,
    /// Message of the task that is paused while the command runs.
    pub paused: Option<PauseNotice>,
}
