//! Shortening of very long lines in a diff to their changed part.

use crate::protocol::{cut_after, cut_before};

/// Line length in bytes above which a line is cut.
const MAX_BYTES: usize = 4_000;
/// Number of bytes shown before and after the changed part of a line.
const AROUND_BYTES: usize = 200;
/// Maximum number of bytes shown of the changed part of a line.
const CHANGED_BYTES: usize = 1_500;

/// Shortens all long lines of a diff; a cut line shows how many bytes are omitted.
pub(super) fn shortened(diff: String) -> String {
    if diff.lines().all(|line| line.len() <= MAX_BYTES) {
        return diff;
    }
    let lines: Vec<&str> = diff.split_inclusive('\n').collect();
    let mut result = String::new();
    let mut at = 0;
    while at < lines.len() {
        // The note about a missing final newline is a line of its own.
        let block = |from: usize, sign: char| match lines.get(from) {
            Some(first) if first.starts_with(sign) => {
                lines[from..].iter().take_while(|line| line.starts_with([sign, '\\'])).count()
            }
            _ => 0,
        };
        let removed = block(at, '-');
        let added = block(at + removed, '+');
        let (old, new) = (&lines[at..at + removed], &lines[at + removed..at + removed + added]);
        for (index, line) in old.iter().enumerate() {
            result.push_str(&cut(line, new.get(index).copied()));
        }
        for (index, line) in new.iter().enumerate() {
            result.push_str(&cut(line, old.get(index).copied()));
        }
        at += removed + added;
        if removed + added == 0 {
            result.push_str(&cut(lines[at], None));
            at += 1;
        }
    }
    result
}

/// Cuts most of the text that a line shares with its counterpart.
fn cut(line: &str, other: Option<&str>) -> String {
    if line.len() <= MAX_BYTES {
        return line.to_owned();
    }
    let (sign, body) = line.split_at(1);
    let (body, end) = body.strip_suffix('\n').map_or((body, ""), |body| (body, "\n"));
    let other = other.and_then(|other| other.get(1..)).map_or("", |other| other.strip_suffix('\n').unwrap_or(other));
    let same = |left: &mut dyn Iterator<Item = u8>, right: &mut dyn Iterator<Item = u8>| {
        left.zip(right).take_while(|(left, right)| left == right).count()
    };
    let head = same(&mut body.bytes(), &mut other.bytes());
    let tail = same(&mut body.bytes().rev(), &mut other.bytes().rev()).min(body.len() - head);
    let from = cut_before(body, head.saturating_sub(AROUND_BYTES));
    let upto = (body.len() - tail).saturating_add(AROUND_BYTES).min(from + AROUND_BYTES * 2 + CHANGED_BYTES).min(body.len());
    let upto = cut_after(body, upto);
    let gap = |bytes: usize| if bytes > 0 { format!("[… {bytes} bytes …]") } else { String::new() };
    format!("{sign}{}{}{}{end}", gap(from), &body[from..upto], gap(body.len() - upto))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_is_cut_to_what_changes_in_it() {
        let long = "é".repeat(3_000);
        let diff = format!("--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n-{long}old{long}\n+{long}new{long}\n short\n");
        let cut = shortened(diff);
        assert!(cut.len() < 3_000, "{cut}");
        assert!(cut.contains("éold") && cut.contains("énew") && cut.ends_with(" short\n"), "{cut}");
        assert!(cut.lines().all(|line| line.len() < MAX_BYTES));
        let short = "-a\n+b\n".to_owned();
        assert_eq!(shortened(short.clone()), short);
        let whole = shortened(format!(" {long}\n-{long}\n"));
        assert!(whole.len() < 2 * MAX_BYTES && whole.contains("bytes …]"), "{whole}");
    }
}
