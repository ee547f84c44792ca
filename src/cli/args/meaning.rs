//! Meanings of words and options that exist only in other agents.

/// Test for a value, and what to do instead if the value passes it.
pub(super) type AlternativeForValue = (fn(&str) -> bool, &'static str);

/// Treatment of another agent's option, or of a word that is a subcommand there.
pub(super) enum Meaning {
    /// aye has an option or subcommand with this name. An option takes no value.
    Same(&'static str),
    /// aye has an option with this name that accepts the same values. The next word is the value, unless it begins with
    /// `-`.
    WithValue(&'static str),
    /// aye does this without an option.
    Omitted,
    /// aye has separate options for these values. Each pair consists of a value and the words that replace the option
    /// and the value.
    Values(&'static [(&'static str, &'static [&'static str])], &'static str),
    /// The alternative depends on the value: the first text whose test accepts the value applies, or else the last one.
    ByValue(&'static [AlternativeForValue], &'static str),
    /// aye does not need such an option or offers an alternative, which this text describes.
    Instead(&'static str),
}
