//! Detects whether this process was started by a command that aye itself runs.

/// Whether this process was started by a command that aye runs (`AYE=1`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Nesting {
    Outermost,
    InsideAye,
}

impl Nesting {
    pub(crate) fn detect() -> Self {
        if std::env::var_os("AYE").is_some_and(|value| value == "1") { Self::InsideAye } else { Self::Outermost }
    }
}
