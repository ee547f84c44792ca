//! Program arguments: the expanded text of a word, in which unknown parts are marked.

/// Placeholder for text that cannot be determined before the line runs.
pub(crate) const UNKNOWN: char = '\0';

/// An argument of a program.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Arg {
    pub text: String,
    /// Whether the word contains an unquoted `*`, `?` or `[`.
    pub glob: bool,
    /// Whether the word starts with an unquoted `~`.
    pub tilde: bool,
    pub quoted: bool,
}

impl Arg {
    pub fn plain(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// Returns whether the complete word can be determined before the line runs.
    pub fn is_known(&self) -> bool {
        !self.text.contains(UNKNOWN)
    }
}

/// Joins arguments with spaces, as `echo` does.
pub(crate) fn join(args: &[Arg]) -> String {
    args.iter().map(|arg| arg.text.as_str()).collect::<Vec<_>>().join(" ")
}
