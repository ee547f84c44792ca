//! Parses program output to find paths and network access that the sandbox blocked.

use crate::protocol::cut_position_after;

/// Messages printed when a write fails because the file system is read-only.
const READ_ONLY: &[&str] = &[
    "read-only file system",
    "read only file system",
    "read-only filesystem",
    "readonlyfilesystem",
    "erofs",
    "os error 30",
    "errno 30",
];
/// Messages printed when permission is denied.
const NO_ACCESS: &[&str] = &[
    "permission denied",
    "eacces",
    "os error 13",
    "errno 13",
    "accessdeniedexception",
    "administrative privileges",
    "is not writable",
    "isn't writable",
    "don't have write permissions",
    "no write permission",
    "is denied",
];
/// Messages printed when a path does not exist, which is how hidden paths appear to a command.
const MISSING: &[&str] = &[
    "no such file or directory",
    "enoent",
    "(os error 2)",
    "[errno 2]",
    "directory nonexistent",
    "nosuchfileexception",
    "filenotfoundexception",
    "does not exist",
    "doesn't exist",
    "cannot find",
    "could not find",
    "not found",
];
/// Words that indicate a write.
const WRITES: &[&str] = &["creat", "touch", "mkdir", "write", "writing", "directory nonexistent"];
/// Prefix of the shell's messages about redirections, which are nearly always writes.
const SHELL_LINE: &str = "bash: line ";
/// Messages printed when the network is unavailable.
const NO_NETWORK: &[&str] = &[
    "could not resolve host",
    "couldn't resolve host",
    "unable to resolve host address",
    "temporary failure in name resolution",
    "temporary failure resolving",
    "name or service not known",
    "nodename nor servname provided",
    "failed to lookup address information",
    "network is unreachable",
    "network unreachable",
    "enetunreach",
    "eai_again",
    "getaddrinfo enotfound",
    "unknownhostexception",
    "no such host",
    "server misbehaving",
];
/// Words that indicate the removal of a path, for which its directory must be writable.
const TAKES_AWAY: &[&str] = &["remove", "unlink", "rename", "move", "delete", "rmdir", "replace"];
const MAKES_DIRECTORY: &[&str] = &["mkdir", "directory", "folder"];
/// Prefixes of earlier lines that say which operation failed.
const WHAT_FAILED: &[&str] = &["error", "failed", "fail", "could not", "couldn't", "cannot", "can't", "unable"];
/// Number of earlier lines to examine.
const LINES_BACK: usize = 6;
const QUOTES: [(char, char); 6] = [('\'', '\''), ('"', '"'), ('`', '`'), ('‘', '’'), ('“', '”'), ('`', '\'')];
/// Number of bytes to examine at the end of an output.
const MAX_BYTES: usize = 64 * 1024;
const MAX_PLACES: usize = 64;

/// A path to which a program was denied access.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DeniedPath {
    /// Path as it was printed: absolute, below `~`, or relative to the program's working directory.
    pub given: String,
    pub why: DenialReason,
    pub wanted: WantedAccess,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DenialReason {
    ReadOnly,
    NoAccess,
    /// The path does not exist in the command's view. `written` says whether the command tried to write to it.
    Missing {
        written: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WantedAccess {
    /// Writing a file.
    Write,
    /// Creating a directory.
    Directory,
    /// Removing the path.
    Away,
}

/// Returns the paths to which programs were denied access, in the order in which they were printed.
pub(super) fn denied_paths(text: &str) -> Vec<DeniedPath> {
    let lines: Vec<&str> = output_tail(text).lines().collect();
    let mut places: Vec<DeniedPath> = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let small = line.to_lowercase();
        let Some((why, mark)) = reason(&small) else { continue };
        let mut given = paths_in_line(line, &small, Some(mark));
        let mut told = small;
        if given.is_empty() {
            let above = lines[at.saturating_sub(LINES_BACK)..at].iter().rev();
            let found = above
                .map(|line| (line, line.to_lowercase()))
                .filter(|(_, small)| WHAT_FAILED.iter().any(|word| small.contains(word)))
                .map(|(line, small)| (paths_in_line(line, &small, None), small))
                .find(|(given, _)| !given.is_empty());
            (given, told) = found.unwrap_or_default();
        }
        let wanted = wanted_access(&told);
        for given in given {
            if places.len() < MAX_PLACES && !places.iter().any(|place| place.given == given) {
                places.push(DeniedPath { given, why, wanted });
            }
        }
    }
    places
}

/// Returns whether the output reports that a file system is read-only.
pub(super) fn reports_read_only(text: &str) -> bool {
    let text = output_tail(text).to_lowercase();
    READ_ONLY.iter().any(|mark| text.contains(mark))
}

/// Returns whether the output reports a network failure.
pub(super) fn reports_network_failure(text: &str) -> bool {
    let text = output_tail(text).to_lowercase();
    NO_NETWORK.iter().any(|mark| text.contains(mark))
}

fn output_tail(text: &str) -> &str {
    &text[cut_position_after(text, text.len().saturating_sub(MAX_BYTES))..]
}

fn reason(small: &str) -> Option<(DenialReason, &'static str)> {
    let said = |marks: &'static [&'static str]| marks.iter().copied().find(|mark| small.contains(mark));
    let missing = || {
        let written = small.contains(SHELL_LINE) || WRITES.iter().any(|word| small.contains(word));
        said(MISSING).map(|mark| (DenialReason::Missing { written }, mark))
    };
    said(READ_ONLY)
        .map(|mark| (DenialReason::ReadOnly, mark))
        .or_else(|| said(NO_ACCESS).map(|mark| (DenialReason::NoAccess, mark)))
        .or_else(missing)
}

fn wanted_access(small: &str) -> WantedAccess {
    if TAKES_AWAY.iter().any(|word| small.contains(word)) {
        WantedAccess::Away
    } else if MAKES_DIRECTORY.iter().any(|word| small.contains(word)) {
        WantedAccess::Directory
    } else {
        WantedAccess::Write
    }
}

/// Returns the paths that occur in a line. `mark` is the error message in lower case.
fn paths_in_line(line: &str, small: &str, mark: Option<&str>) -> Vec<String> {
    let quoted: Vec<String> = quoted_strings(line).into_iter().filter(|text| looks_like_path(text, mark)).collect();
    if !quoted.is_empty() {
        // The source of a copy is not written.
        let copied = quoted.len() == 2 && small.contains(" to ") && small.contains("copy");
        return quoted.into_iter().skip(usize::from(copied)).collect();
    }
    let mut words: Vec<String> = line
        .split(|letter: char| letter.is_whitespace() || matches!(letter, '(' | '[' | '=' | '>'))
        .map(|word| word.trim_end_matches([':', ',', ';', ')', ']', '.', '"', '\'', '`']))
        .filter(|word| (word.starts_with('/') && word.len() > 1) || word.starts_with("~/") || word.starts_with("../"))
        .map(str::to_owned)
        .collect();
    let field = mark.and_then(|mark| field_before(line, small, mark)).filter(|field| looks_like_path(field, mark));
    if let Some(field) = field {
        // The field may contain spaces, so the words above may be parts of it.
        words.retain(|word| !field.contains(word.as_str()));
        words.push(field);
    }
    // Drop the name of the reporting program, as in `/usr/bin/ld: cannot open …`.
    if words.len() > 1 && line.trim_start().strip_prefix(words[0].as_str()).is_some_and(|rest| rest.starts_with(':')) {
        words.remove(0);
    }
    words
}

fn looks_like_path(text: &str, mark: Option<&str>) -> bool {
    let small = text.to_lowercase();
    !text.trim().is_empty()
        && text.len() < 4096
        && !text.contains(['\n', '\0'])
        && !text.contains(": ")
        && mark.is_none_or(|mark| !small.contains(mark))
}

/// Returns the strings in quotation marks of every kind. An apostrophe inside a word is not a quotation mark.
fn quoted_strings(line: &str) -> Vec<String> {
    let mut found: Vec<(usize, String)> = Vec::new();
    for (open, close) in QUOTES {
        let mut from = 0;
        while let Some(at) = line[from..].find(open).map(|at| from + at) {
            let start = at + open.len_utf8();
            from = start;
            let inside_word = line[..at].chars().next_back().is_some_and(char::is_alphanumeric);
            let Some(length) = line[start..].find(close).filter(|_| !inside_word) else { continue };
            let text = &line[start..start + length];
            from = start + length + close.len_utf8();
            // The same text in two kinds of quotes is reported once.
            if !found.iter().any(|(_, known)| known == text || known.contains(text)) {
                found.push((at, text.to_owned()));
            }
        }
    }
    found.sort_by_key(|(at, _)| *at);
    found.into_iter().map(|(_, text)| text).collect()
}

/// Returns the last field before the error, such as `some place` in `bash: line 1: some place: Read-only file system`.
/// Returns `None` if the field is a sentence.
fn field_before(line: &str, small: &str, mark: &str) -> Option<String> {
    // Conversion to lower case may change the length, and then the position is wrong.
    let at = small.find(mark).filter(|_| small.len() == line.len())?;
    let before = line.get(..at)?.strip_suffix(": ")?;
    let field = before.rsplit(": ").next()?.trim();
    let is_path = field.starts_with(['/', '.', '~']);
    (is_path || !field.contains(' ')).then(|| field.to_owned()).filter(|_| before.contains(": "))
}
