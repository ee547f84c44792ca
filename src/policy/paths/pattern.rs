//! Path patterns in a policy, in text form.

/// A path pattern, as written in the policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    pub text: String,
    pub line: usize,
}
