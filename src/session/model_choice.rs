//! The user's choice of a model.

use crate::protocol::Effort;

/// A model and its effort, as the user chose them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ModelChoice {
    pub model: String,
    pub effort: Option<Effort>,
}
