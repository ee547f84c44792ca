//! Shortens very long lines in a diff to the part that changed.

use crate::protocol::{DiffLine, DiffSide, cut_position_after, cut_position_before};

/// Line length in bytes above which a line is shortened.
const MAX_BYTES: usize = 4_000;
/// Number of bytes to show before and after the changed part of a line.
const AROUND_BYTES: usize = 200;
/// Maximum number of bytes to show of the changed part itself.
const CHANGED_BYTES: usize = 1_500;

/// Shortens the long lines in a hunk. A shortened line states how many bytes were omitted.
pub(super) fn shorten(lines: &mut [DiffLine]) {
    if !lines.iter().any(is_long) {
        return;
    }
    let mut at = 0;
    while at < lines.len() {
        let block = |from: usize, side: DiffSide| lines[from..].iter().take_while(|line| line.side == side).count();
        let removed = block(at, DiffSide::Removed);
        let added = block(at + removed, DiffSide::Added);
        let (old, new) = lines[at..at + removed + added].split_at_mut(removed);
        let cut_of = |lines: &[DiffLine], others: &[DiffLine]| -> Vec<Option<String>> {
            let other = |index: usize| others.get(index).map_or("", |other| &other.text);
            lines.iter().enumerate().map(|(index, line)| is_long(line).then(|| cut(&line.text, other(index)))).collect()
        };
        let cuts = (cut_of(old, new), cut_of(new, old));
        for (line, cut) in old.iter_mut().chain(new).zip(cuts.0.into_iter().chain(cuts.1)) {
            line.text = cut.unwrap_or_else(|| std::mem::take(&mut line.text));
        }
        at += removed + added;
        if removed + added == 0 {
            if is_long(&lines[at]) {
                lines[at].text = cut(&lines[at].text, "");
            }
            at += 1;
        }
    }
}

/// Returns whether a line, including its sign, exceeds the limit.
fn is_long(line: &DiffLine) -> bool {
    line.text.len() >= MAX_BYTES
}

/// Removes most of the text that a line has in common with its counterpart.
fn cut(text: &str, other: &str) -> String {
    let same = |left: &mut dyn Iterator<Item = u8>, right: &mut dyn Iterator<Item = u8>| {
        left.zip(right).take_while(|(left, right)| left == right).count()
    };
    let head = same(&mut text.bytes(), &mut other.bytes());
    let tail = same(&mut text.bytes().rev(), &mut other.bytes().rev()).min(text.len() - head);
    let from = cut_position_before(text, head.saturating_sub(AROUND_BYTES));
    let upto = (text.len() - tail).saturating_add(AROUND_BYTES).min(from + AROUND_BYTES * 2 + CHANGED_BYTES).min(text.len());
    let upto = cut_position_after(text, upto);
    let gap = |bytes: usize| if bytes > 0 { format!("[… {bytes} bytes …]") } else { String::new() };
    format!("{}{}{}", gap(from), &text[from..upto], gap(text.len() - upto))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::FileDiffs;

    fn shortened(rows: &str) -> String {
        let mut diff = FileDiffs::read(rows);
        diff.hunks_mut().for_each(|hunk| shorten(&mut hunk.lines));
        diff.to_string()
    }

    #[test]
    fn long_lines_are_shortened_to_their_changed_part() {
        let long = "é".repeat(3_000);
        let diff = format!("--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n-{long}old{long}\n+{long}new{long}\n short\n");
        let cut = shortened(&diff);
        assert!(cut.len() < 3_000, "{cut}");
        assert!(cut.contains("éold") && cut.contains("énew") && cut.ends_with(" short\n"), "{cut}");
        assert!(cut.lines().all(|line| line.len() < MAX_BYTES));
        let short = "@@ -1 +1 @@\n-a\n+b\n";
        assert_eq!(shortened(short), short);
        let whole = shortened(&format!("@@ -1,2 +1 @@\n {long}\n-{long}\n"));
        assert!(whole.len() < 2 * MAX_BYTES && whole.contains("bytes …]"), "{whole}");
    }
}
