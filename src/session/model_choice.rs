//! Model choices made by the user.

use crate::protocol::Effort;

/// Model and reasoning effort chosen by the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ModelChoice {
    pub model: String,
    pub effort: Option<Effort>,
}
