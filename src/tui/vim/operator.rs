//! Operators, applied to the range of a motion or text object.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    Delete,
    Change,
    Yank,
    Upper,
    Lower,
    TurnCase,
    /// Indents by one step, or outdents.
    Indent,
    Outdent,
    /// Useless in a draft: consumes its motion and does nothing.
    Nothing,
}

impl Operator {
    /// Returns the operator of a key in normal mode.
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

    /// Returns the operator of a key after `g`.
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
