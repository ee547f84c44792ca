//! Operators, each of which applies to the range of a motion or text object.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    Delete,
    Change,
    Yank,
}

impl Operator {
    /// Returns the operator that a key starts in normal mode, if any.
    pub(super) fn from_key(letter: char) -> Option<Self> {
        Some(match letter {
            'd' => Self::Delete,
            'c' => Self::Change,
            'y' => Self::Yank,
            _ => return None,
        })
    }
}
