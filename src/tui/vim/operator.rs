//! What is done to the text that a motion or an object leads over.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    Delete,
    Change,
    Yank,
    Upper,
    Lower,
    TurnCase,
    /// By a step to the right, or to the left.
    Indent,
    Outdent,
    /// What a draft has no use for: its motion is taken, and nothing is done.
    Nothing,
}

impl Operator {
    /// What begins it in normal mode.
    pub(super) fn of(letter: char) -> Option<Self> {
        Some(match letter {
            'd' => Self::Delete,
            'c' => Self::Change,
            'y' => Self::Yank,
            '>' => Self::Indent,
            '<' => Self::Outdent,
            '=' | '!' => Self::Nothing,
            _ => return None,
        })
    }

    /// The same behind `g`.
    pub(super) fn behind_go(letter: char) -> Option<Self> {
        Some(match letter {
            'U' => Self::Upper,
            'u' => Self::Lower,
            '~' => Self::TurnCase,
            'q' | 'w' | '?' => Self::Nothing,
            _ => return None,
        })
    }
}
