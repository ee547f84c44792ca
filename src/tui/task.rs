//! The task as the screen sees it: what it does, what it cost, what waits for it.

use crate::protocol::{CallId, FailureKind, Usage, Waiting};

/// What the running task is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Activity {
    Idle,
    Thinking,
    Answering,
    /// The model writes the arguments of a call.
    Calling {
        tool: String,
        bytes: u64,
    },
    /// Calls run, the newest last.
    Running {
        calls: Vec<(CallId, String)>,
    },
    Retrying(Box<Retry>),
    /// A summary is made of what was said before.
    Compacting {
        messages: u64,
    },
    Stopping,
}

/// A request that failed and is sent again after a wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retry {
    /// When it is sent.
    pub at: u64,
    pub attempt: u32,
    pub max_attempts: u32,
    pub kind: FailureKind,
    /// Made harmless, in one line.
    pub message: String,
    /// How long the provider asks to wait, where it does.
    pub asked_ms: Option<u64>,
    /// What the attempt used that failed, where that is known.
    pub wasted: Option<String>,
    /// What the provider calls the request that failed, and whether the person wants to see it.
    pub request_id: Option<String>,
    pub shows_id: bool,
    /// The time of day it is sent at, where that is far.
    pub clock: Option<String>,
}

impl Retry {
    /// In seconds, the one that has begun counted whole.
    pub fn left(&self, now: u64) -> u64 {
        self.at.saturating_sub(now).div_ceil(1000)
    }

    /// When that is one less; never once it has come.
    pub fn next_second(&self, now: u64) -> Option<u64> {
        let left = self.left(now);
        (left > 0).then(|| self.at.saturating_sub((left - 1) * 1000))
    }
}

/// A message that waited, taken back to be changed. Until the session has said so it may have been taken by the model.
#[derive(Debug)]
pub struct RetractedMessage {
    pub id: u64,
    pub text: String,
    pub steer: bool,
    pub race: RetractState,
}

/// What was heard since it was taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetractState {
    /// Nothing yet.
    Open,
    /// It waits no longer: taken back, or taken.
    Gone,
    /// The same words were said to the model: these, or others like them.
    Said,
    /// It is the person's.
    Won,
}

/// Why a task of before does not go on, and what makes it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Paused {
    /// In the words that say so, the longest first; the last ones are of what to do alone.
    pub ways: Vec<String>,
    /// Its provider refused the key: enter in the empty draft gives another.
    pub wants_key: bool,
}

impl Paused {
    pub fn new(words: impl Into<String>) -> Self {
        Self { ways: vec![words.into()], wants_key: false }
    }
}

/// The task and what it cost so far.
#[derive(Debug)]
pub struct Task {
    /// Whether one has begun and not ended.
    pub goes_on: bool,
    /// So many messages are being summed up, whatever the request for it does at the moment.
    pub summing_up: Option<u64>,
    pub activity: Activity,
    /// The one that began last, from 1.
    pub step: u32,
    /// When the activity began.
    pub since: u64,
    pub usage: Usage,
    pub cost_usd: Option<f64>,
    /// Of some of it the provider said nothing.
    pub is_estimated: bool,
    /// Messages for the next step and for after the task, as the session has them.
    pub waiting: Vec<Waiting>,
    /// What left them when they changed last.
    pub left_queue: Vec<String>,
    /// What of them stands in the draft now.
    pub taken_back: Vec<RetractedMessage>,
    /// A task of before that goes on only when the person says so.
    pub paused: Option<Paused>,
    /// Sent, and the session has not taken it up yet.
    pub sent: Vec<String>,
}

impl Default for Task {
    fn default() -> Self {
        Self {
            goes_on: false,
            summing_up: None,
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
        }
    }
}
