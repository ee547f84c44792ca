//! Version of the program, including its commit and target.

use std::sync::OnceLock;

/// Number of digits of a commit ID that are shown.
const DIGITS: usize = 12;
/// Minimum number of digits of a commit ID in git's files.
const WHOLE: usize = 40;

/// Abbreviated commit ID.
pub type Commit = [u8; DIGITS];

static VERSION: OnceLock<String> = OnceLock::new();

/// Extracts the commit from the content of a git file. The file contains either a single hash or a reflog, whose last
/// line contains the commits before and after the change. Returns `None` for any other content.
pub const fn parse_commit(record: &[u8]) -> Option<Commit> {
    let mut end = record.len();
    while end > 0 && record[end - 1].is_ascii_whitespace() {
        end -= 1;
    }
    let mut start = end;
    while start > 0 && record[start - 1] != b'\n' {
        start -= 1;
    }
    let mut digits = count_hex_digits(record, start, end);
    if digits >= WHOLE && start + digits < end {
        // The line begins with the previous commit; the new commit has the same length.
        let after = start + digits + 1;
        if record[after - 1] != b' ' || count_hex_digits(record, after, end) != digits {
            return None;
        }
        start = after;
        digits = WHOLE;
    }
    if digits < WHOLE {
        return None;
    }
    let mut commit = [0; DIGITS];
    let mut at = 0;
    while at < DIGITS {
        commit[at] = record[start + at].to_ascii_lowercase();
        at += 1;
    }
    Some(commit)
}

const fn count_hex_digits(record: &[u8], start: usize, end: usize) -> usize {
    let mut at = start;
    while at < end && record[at].is_ascii_hexdigit() {
        at += 1;
    }
    at - start
}

/// Sets the commit. Must be called at most once, before anything is printed.
pub(crate) fn set_commit(commit: Option<Commit>) {
    let commit = commit.as_ref().and_then(|commit| str::from_utf8(commit).ok());
    let commit = commit.map(|commit| format!("{commit}, ")).unwrap_or_default();
    // Fails only for a second call, which does not happen.
    let _ = VERSION.set(format!("{} ({commit}{})", env!("CARGO_PKG_VERSION"), env!("AYE_TARGET")));
}

/// Returns the version, as in `0.1.0 (7aad5069da06, x86_64-unknown-linux-gnu)`. The commit is omitted if it is unknown.
pub(crate) fn version() -> &'static str {
    VERSION.get().map_or(env!("CARGO_PKG_VERSION"), String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commit_is_parsed_from_refs_and_reflogs() {
        let (old, new) = ("0".repeat(40), "7AAD5069da0605e0b7230c19e217fe321c835f80");
        let longer = format!("{new}{}", "1".repeat(24));
        let line = |old: &str, new: &str| format!("{old} {new} A Name <a@example.org> 1700000000 +0000\tcommit: words\n");
        for record in [
            new.to_owned(),
            format!("{new}\n"),
            longer.clone(),
            line(&old, new),
            line(&old, &old) + &line(&old, new),
            line(&"0".repeat(64), &longer),
            format!("{old} {new}\n"),
        ] {
            assert_eq!(parse_commit(record.as_bytes()), Some(*b"7aad5069da06"), "{record}");
        }
        for record in [
            "",
            "\n",
            "ref: refs/heads/main\n",
            "7aad5069da06\n",
            "no digits at all",
            &format!("{old} ref\n"),
            &format!("{old}x"),
        ] {
            assert_eq!(parse_commit(record.as_bytes()), None, "{record}");
        }
    }
}
