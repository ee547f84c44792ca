//! Argument of a program: the text of a word after expansion, with its unknown parts.

/// Placeholder for a part of the text that is unknown before the line runs.
pub(crate) const UNKNOWN: char = '\0';

/// One argument of a program.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Arg {
    pub text: String,
    /// Whether the word has an unquoted `*`, `?` or `[`.
    pub glob: bool,
    /// Whether the word starts with an unquoted `~`.
    pub tilde: bool,
    pub quoted: bool,
}

impl Arg {
    pub fn plain(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// Returns whether the whole word is known before the line runs.
    pub fn is_known(&self) -> bool {
        !self.text.contains(UNKNOWN)
    }
}

/// Joins arguments with spaces, like `echo`.
pub(crate) fn join(args: &[Arg]) -> String {
    args.iter().map(|arg| arg.text.as_str()).collect::<Vec<_>>().join(" ")
}
