//! State of the background review: its progress, and the findings of the last review.

use crate::protocol::{Review, Usage};

/// Reviews that were started from this screen.
#[derive(Debug, Default)]
pub(crate) struct Reviews {
    pub running: Option<RunningReview>,
    /// Last review that ended with findings.
    pub last: Option<Review>,
}

/// Review that has been started and has not ended yet.
#[derive(Debug)]
pub(crate) struct RunningReview {
    /// Summary of the changes under review, once it is known.
    pub changes: Option<String>,
    /// Current step of the model, on one line.
    pub step: Option<String>,
    pub usage: Usage,
    pub cost_usd: Option<f64>,
    pub is_estimated: bool,
    /// Time at which the review was started, in milliseconds.
    pub since: u64,
    /// Whether the user has asked to stop the review.
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
