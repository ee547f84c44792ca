//! Path pattern of a policy, as text.

/// A path pattern as written in the policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    pub text: String,
    pub line: usize,
}
