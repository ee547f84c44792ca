//! Background review: its progress, and the findings of the last one.

use crate::protocol::{Review, Usage};

/// Reviews started from this screen.
#[derive(Debug, Default)]
pub(crate) struct Reviews {
    pub running: Option<RunningReview>,
    /// Latest review that produced findings.
    pub last: Option<Review>,
}

/// Review that was started and has not ended.
#[derive(Debug)]
pub(crate) struct RunningReview {
    /// Summary of the reviewed changes, once they are known.
    pub changes: Option<String>,
    /// The model's current step, on one line.
    pub step: Option<String>,
    pub usage: Usage,
    pub cost_usd: Option<f64>,
    pub is_estimated: bool,
    /// Start time in milliseconds.
    pub since: u64,
    /// Whether a stop was requested.
    pub is_stopping: bool,
}

impl RunningReview {
    pub(crate) fn new(now: u64) -> Self {
        Self {
            changes: None,
            step: None,
            usage: Usage::default(),
            cost_usd: None,
            is_estimated: false,
            since: now,
            is_stopping: false,
        }
    }
}
