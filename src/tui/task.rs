//! State of the task: its activity, cost and queued messages.

use crate::protocol::{CallId, FailureKind, GoalState, PlannedStep, QueuedMessage, Usage};

/// Time, in milliseconds after an interrupt, from which Escape kills the processes that are still running.
pub(crate) const KILL_MS: u64 = 3000;

/// Current activity of the task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Activity {
    Idle,
    Thinking,
    Answering,
    /// The model is writing the arguments of a tool call.
    Calling {
        tool: String,
        bytes: u64,
    },
    /// Calls are running. The most recent one comes last.
    Running {
        calls: Vec<(CallId, String)>,
    },
    Retrying(Box<Retry>),
    /// The conversation is being compacted.
    Compacting {
        messages: u64,
    },
    Stopping,
}

/// Failed request that will be retried after a delay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Retry {
    /// Time at which the request will be retried, in milliseconds.
    pub at: u64,
    pub attempt: u32,
    pub max_attempts: u32,
    pub kind: FailureKind,
    /// Error message, on one line and without control characters.
    pub message: String,
    /// Delay requested by the provider, in milliseconds.
    pub asked_ms: Option<u64>,
    /// Usage of the failed attempt as text, if known.
    pub wasted: Option<String>,
    /// ID that the provider gave to the request. `shows_id` is set if the user wants to see it.
    pub request_id: Option<String>,
    pub shows_id: bool,
    /// Time of day of the next attempt, if the delay is long.
    pub clock: Option<String>,
}

impl Retry {
    /// Returns the number of seconds left until the next attempt, rounded up.
    pub(crate) fn seconds_left(&self, now: u64) -> u64 {
        self.at.saturating_sub(now).div_ceil(1000)
    }

    /// Returns the time, in milliseconds, at which the displayed number of seconds changes next, or `None` once the
    /// attempt is due.
    pub(crate) fn next_second(&self, now: u64) -> Option<u64> {
        let left = self.seconds_left(now);
        (left > 0).then(|| self.at.saturating_sub((left - 1) * 1000))
    }
}

/// Queued message that the user moved back to the draft. Until the session confirms this, the message may already have
/// been sent to the model.
#[derive(Debug)]
pub(crate) struct RetractedMessage {
    pub id: u64,
    pub text: String,
    pub steer: bool,
    pub race: RetractState,
}

/// Whether a message that was moved back to the draft has been retracted from the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RetractState {
    /// The session has not responded yet.
    Open,
    /// The message is no longer in the queue, because it was either retracted or sent to the model.
    Gone,
    /// A message with the same text was sent to the model. It may have been this one or another one with the same text.
    Said,
    /// The session has confirmed that the message was retracted before it was sent.
    Won,
}

/// Reason why an earlier task is paused, and how the user can continue it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PauseNotice {
    /// Texts that describe the pause and how to continue, longest first. The shortest ones say only how to continue.
    pub ways: Vec<String>,
    /// Whether the provider rejected the API key. In that case, Enter in an empty draft lets the user replace it.
    pub wants_key: bool,
    /// Whether the task is paused because a budget requires the model's price, which is not known.
    pub wants_price: bool,
}

impl PauseNotice {
    pub(crate) fn new(words: impl Into<String>) -> Self {
        Self { ways: vec![words.into()], wants_key: false, wants_price: false }
    }
}

/// State of the running task, its cost so far, and the messages sent to it.
#[derive(Debug)]
pub(crate) struct TaskView {
    /// Whether a task has started and not ended yet.
    pub goes_on: bool,
    /// Number of messages that are being compacted, if any, regardless of the activity.
    pub summarized_messages: Option<u64>,
    pub activity: Activity,
    /// 1-based number of the step that was started last.
    pub step: u32,
    /// Time at which the activity started, in milliseconds.
    pub since: u64,
    pub usage: Usage,
    pub cost_usd: Option<f64>,
    /// Whether part of the usage is estimated because the provider did not report it.
    pub is_estimated: bool,
    /// Messages that are queued for the next step or for when the task has ended.
    pub waiting: Vec<QueuedMessage>,
    /// Texts of the messages that were removed from the queue when it last changed.
    pub left_queue: Vec<String>,
    /// Messages that the user has moved back to the draft.
    pub taken_back: Vec<RetractedMessage>,
    /// Notice about an earlier task, which continues only if the user requests it.
    pub paused: Option<PauseNotice>,
    /// Texts of messages that were sent but have not reached the session yet.
    pub sent: Vec<String>,
    /// Steps planned by the model, without control characters.
    pub planned_steps: Vec<PlannedStep>,
    /// Goal that is in effect, as most recently reported.
    pub goal: Option<GoalState>,
    /// Time of the last report on the goal, in milliseconds. `goal_session_cost` is the cost of the session at that
    /// time.
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

/// Shell command of the user that is currently running.
#[derive(Debug)]
pub(crate) struct RunningUserCommand {
    pub id: CallId,
    /// Label shown on the command's card.
    pub whose: &'static str,
    /// Notice about a paused task, to be restored once the command has ended.
    pub paused: Option<PauseNotice>,
}
