//! Verdict on the options of a command: whether they allow more than reading.

/// Result of checking a command against the option tables.
pub(crate) enum OptionVerdict<'a> {
    /// There is no table for the program.
    NoTable,
    /// The command only reads; these words are the paths.
    Reads { paths: Vec<&'a str> },
    /// With this word, the command can write or run code.
    MayDoMore { word: &'a str },
}
