//! Verdict on the options of a command: whether they keep it read-only.

/// Result of checking a command against the option tables.
pub(crate) enum OptionVerdict<'a> {
    /// There is no table for the program.
    NoTable,
    /// The command only reads; these words are the paths.
    Reads { paths: Vec<&'a str> },
    /// This word lets the command write or run something.
    MayDoMore { word: &'a str },
}
