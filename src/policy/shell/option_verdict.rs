//! Verdict on the arguments of a command, which states whether the command can do more than read.

/// Result of checking a command against the option tables.
pub(crate) enum OptionVerdict<'a> {
    /// The program has no option table.
    NoTable,
    /// The command only reads. `paths` contains those arguments that are paths.
    Reads { paths: Vec<&'a str> },
    /// `word` may make the command write or run code.
    MayDoMore { word: &'a str },
}
