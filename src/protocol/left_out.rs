//! Records of what was omitted from tool output. The counts stay correct when the output is shortened again.

use super::truncate::{cut_position_before, gap, middle, truncate_with_gap};
use serde::{Deserialize, Serialize};

/// Prefix of redaction markers. Text is never cut inside a marker.
const MARKER: &str = "[redacted:";

/// Part of an output that was omitted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LeftOut {
    /// Number of omitted bytes for each `[... truncated N bytes ...]` marker in the output, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gaps: Vec<u64>,
    /// How another call can continue the output, if the output is a sequence of items.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<Run>,
}

/// Sequence of items, such as file lines or matches, that another call can continue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Run {
    /// Length in bytes of the output up to the end of the last item.
    pub body_bytes: usize,
    /// Length in bytes of the note after the items, which is replaced when the output is cut.
    pub note_bytes: usize,
    /// Number of the first item, counted in the same way as in the argument that continues the output.
    pub first: u64,
    pub items: Items,
    /// Note to insert after a cut. `{last}` is replaced with the last item shown, `{next}` with the item after it, and
    /// `{missing}` with the number of omitted bytes.
    pub note: String,
    /// How to continue if the output is cut inside its first line. Absent if no call can continue from there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<Within>,
    /// Number of item bytes that earlier cuts omitted.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub missing: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// How to continue a line that was cut.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Within {
    /// Column of the first character shown.
    pub column: u64,
    /// Note to insert after the cut. `{last}` is replaced with the last column shown, `{next}` with the column after
    /// it, and `{missing}` with the number of omitted bytes.
    pub note: String,
}

/// Positions of items in an output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "kind")]
pub enum Items {
    /// Each line is an item. `folded` lists output lines that represent several items: the line number, and the number
    /// of items beyond the first.
    Lines { folded: Vec<(u64, u64)> },
    /// Output lines at which items start, numbered from 0.
    Starts { lines: Vec<u64> },
}

impl LeftOut {
    /// Creates a record of omissions. Returns `None` if nothing was omitted and no call can continue the output.
    pub fn from_gaps(gaps: Vec<u64>, run: Option<Run>) -> Option<Box<Self>> {
        (!gaps.is_empty() || run.is_some()).then(|| Box::new(Self { gaps, run }))
    }

    /// Adjusts the recorded positions after `hidden`, ranges of `before`, were replaced with text that contains no line
    /// breaks.
    pub fn after_hiding(mut self, before: &str, after: &str, hidden: &[std::ops::Range<usize>]) -> Option<Box<Self>> {
        self.run = self.run.and_then(|run| run.after_hiding(before, after, hidden));
        Self::from_gaps(self.gaps, self.run)
    }
}

impl Run {
    fn after_hiding(mut self, before: &str, after: &str, hidden: &[std::ops::Range<usize>]) -> Option<Self> {
        if hidden.iter().any(|range| range.end > self.body_bytes) {
            return None;
        }
        self.body_bytes = (self.body_bytes + after.len()).checked_sub(before.len())?;
        let mut gone = 0;
        let (mut line, mut at) = (0, 0);
        for range in hidden {
            line += breaks(&before[at..range.start]);
            let more = breaks(&before[range.clone()]);
            at = range.end;
            if more == 0 {
                continue;
            }
            match &mut self.items {
                Items::Lines { folded } => {
                    for (other, _) in folded.iter_mut().filter(|(other, _)| *other > line - gone) {
                        *other = other.saturating_sub(more);
                    }
                    folded.push((line - gone, more));
                }
                // Which items the remaining lines belong to can no longer be determined.
                Items::Starts { .. } => return None,
            }
            line += more;
            gone += more;
        }
        Some(self)
    }

    /// Shortens the items to about `max_bytes`, keeping the text that follows them, and returns the output with its
    /// omissions. Returns `None` if the output is short enough already.
    pub fn truncate(&self, output: &str, max_bytes: usize) -> Option<(String, LeftOut)> {
        let (body, rest) = (output.get(..self.body_bytes)?, output.get(self.body_bytes..)?);
        let (note, tail) = (rest.get(..self.note_bytes)?, rest.get(self.note_bytes..)?);
        if output.len() <= max_bytes {
            return None;
        }
        let (tail, gap_of_tail) = truncate_with_gap(tail, max_bytes);
        if body.len() <= max_bytes {
            let left_out = LeftOut { gaps: gap_of_tail.into_iter().collect(), run: Some(self.clone()) };
            return Some((format!("{body}{note}{tail}"), left_out));
        }
        let (kept, note, gap_of_item) = self.head(body, max_bytes);
        let gap = if kept.ends_with('\n') { "" } else { "\n" };
        let run = gap_of_item.is_none().then(|| self.shortened(&kept, gap.len() + note.len(), body.len() - kept.len()));
        let left_out = LeftOut { gaps: gap_of_item.into_iter().chain(gap_of_tail).collect(), run };
        Some((format!("{kept}{gap}{note}{tail}"), left_out))
    }

    /// Returns the description of an output that has been cut after the items in `kept`.
    fn shortened(&self, kept: &str, note_bytes: usize, missing: usize) -> Self {
        let lines = breaks(kept);
        let items = match &self.items {
            Items::Lines { folded } => {
                Items::Lines { folded: folded.iter().filter(|(line, _)| *line < lines).copied().collect() }
            }
            Items::Starts { lines: starts } => {
                Items::Starts { lines: starts.iter().filter(|line| **line < lines).copied().collect() }
            }
        };
        Self { body_bytes: kept.len(), note_bytes, items, missing: self.missing + missing as u64, ..self.clone() }
    }

    /// Returns as many leading items as fit, the note to put after them, and the number of bytes omitted inside the
    /// first item if it had to be cut in the middle.
    fn head(&self, body: &str, max_bytes: usize) -> (String, String, Option<u64>) {
        let filled = |note: &str, last: u64, next: u64, kept: usize| {
            let missing = (self.missing + (body.len() - kept) as u64).to_string();
            note.replace("{last}", &last.to_string()).replace("{next}", &next.to_string()).replace("{missing}", &missing)
        };
        let (end, items) = self.whole_items(body, max_bytes);
        if items > 0 {
            let next = self.first + items;
            return (body[..end].to_owned(), filled(&self.note, next - 1, next, end), None);
        }
        if let (Some(within), Items::Lines { .. }) = (&self.within, &self.items) {
            let end = cut_position_before(body, max_bytes);
            let end = body[..end].rfind(MARKER).filter(|at| !body[*at..end].contains(']')).unwrap_or(end);
            // Columns of the output differ from columns of the file after redacted text.
            let end = body[..end].find(MARKER).unwrap_or(end);
            if end > 0 {
                let next = within.column + body[..end].chars().count() as u64;
                return (body[..end].to_owned(), filled(&within.note, next - 1, next, end), None);
            }
        }
        let (first, next) = self.first_item(body);
        let (kept, gap) = truncate_with_gap(first, max_bytes);
        let kept = kept.into_owned();
        if first.len() == body.len() && self.note_bytes == 0 {
            // There is no note after the items, so no call can continue them.
            return (kept, String::new(), gap);
        }
        (kept, filled(&self.note, next - 1, next, first.len()), gap)
    }

    /// Returns the position of the last item end at or before `max_bytes`, and the number of items before that
    /// position.
    fn whole_items(&self, body: &str, max_bytes: usize) -> (usize, u64) {
        let within = &body.as_bytes()[..max_bytes.min(body.len())];
        match &self.items {
            Items::Lines { folded } => {
                let end = within.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
                let lines = breaks(&body[..end]);
                let more: u64 = folded.iter().filter(|(line, _)| *line < lines).map(|(_, more)| more).sum();
                (end, lines + more)
            }
            Items::Starts { lines } => {
                let (mut end, mut items) = (0, 0);
                let (mut at, mut line) = (0, 0);
                for (index, start) in lines.iter().enumerate().skip(1) {
                    while line < *start {
                        let Some(found) = within.get(at..).and_then(|rest| rest.iter().position(|byte| *byte == b'\n')) else {
                            return (end, items);
                        };
                        at += found + 1;
                        line += 1;
                    }
                    (end, items) = (at, index as u64);
                }
                (end, items)
            }
        }
    }

    /// Returns the first item, and the number of the item that follows it.
    fn first_item<'a>(&self, body: &'a str) -> (&'a str, u64) {
        let (lines, more): (u64, u64) = match &self.items {
            Items::Lines { folded } => (1, folded.iter().filter(|(line, _)| *line == 0).map(|(_, more)| more).sum()),
            Items::Starts { lines } => (lines.get(1).copied().unwrap_or(u64::MAX), 0),
        };
        let end =
            body.match_indices('\n').nth(usize::try_from(lines - 1).unwrap_or(usize::MAX)).map_or(body.len(), |(at, _)| at + 1);
        (&body[..end], self.first + 1 + more)
    }
}

fn breaks(text: &str) -> u64 {
    text.bytes().filter(|byte| *byte == b'\n').count() as u64
}

/// Shortens an output from which `gaps` bytes were already omitted to about `max_bytes`. Returns the shortened output
/// with its new gaps, which include the earlier ones, or `None` if it is short enough already.
pub fn truncate_again(text: &str, max_bytes: usize, gaps: &[u64]) -> Option<(String, Vec<u64>)> {
    if text.len() <= max_bytes {
        return None;
    }
    let (mut start, mut end) = middle(text, max_bytes);
    let (mut from, mut more, mut marks) = (0, 0, 0);
    let (mut before, mut after) = (Vec::new(), Vec::new());
    for bytes in gaps {
        let mark = gap(*bytes);
        let Some(at) = text[from..].find(&mark).map(|at| from + at) else { break };
        from = at + mark.len();
        if at < end && start < from {
            (start, end) = (start.min(at), end.max(from));
            more += bytes;
            marks += mark.len() as u64;
        } else if from <= start {
            before.push(*bytes);
        } else {
            after.push(*bytes);
        }
    }
    let missing = (end - start) as u64 - marks + more;
    before.push(missing);
    before.append(&mut after);
    Some((format!("{}{}{}", &text[..start], gap(missing), &text[end..]), before))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn repeatedly_truncated_output_reports_the_number_of_missing_bytes(
            text in "[a-zä\n]{0,400}",
            cuts in prop::collection::vec(1..200_usize, 1..4),
        ) {
            let (mut shown, mut gaps) = (text.clone(), Vec::new());
            for most in cuts {
                if let Some((cut, left)) = truncate_again(&shown, most, &gaps) {
                    shown = cut;
                    gaps = left;
                    prop_assert_eq!(&gaps, &missing(&shown));
                }
            }
            let marks: usize = gaps.iter().map(|bytes| gap(*bytes).len()).sum();
            prop_assert_eq!(shown.len() - marks + usize::try_from(gaps.iter().sum::<u64>()).unwrap(), text.len());
        }

        #[test]
        fn notes_of_repeatedly_truncated_output_state_the_continuation_and_the_missing_part(
            lines in prop::collection::vec("[a-z]{0,12}", 1..40),
            cuts in prop::collection::vec(1..200_usize, 1..4),
        ) {
            let text = lines.iter().map(|line| format!("{line}\n")).collect::<Vec<_>>().concat();
            let within = Some(Within { column: 1, note: "[c {next} {missing}]".to_owned() });
            let (items, note) = (Items::Lines { folded: Vec::new() }, "[l {next} {missing}]".to_owned());
            let (mut shown, mut run) = (text.clone(), Run { body_bytes: text.len(), note_bytes: 0, first: 1, items, note, within, missing: 0 });
            for most in cuts {
                let Some((cut, left_out)) = run.truncate(&shown, most) else { continue };
                (shown, run) = (cut, left_out.run.expect("lines are cut between characters"));
                let (kept, note) = shown.rsplit_once("\n[").unwrap();
                let words: Vec<&str> = note.trim_end_matches(']').split(' ').collect();
                // A whole line includes its line ending.
                let kept = if words[0] == "l" { format!("{kept}\n") } else { kept.to_owned() };
                let next = if words[0] == "l" { breaks(&kept) } else { kept.len() as u64 } + 1;
                prop_assert!(text.starts_with(&kept), "{shown}");
                prop_assert_eq!(words[1..].join(" "), format!("{next} {}", text.len() - kept.len()));
            }
        }

        #[test]
        fn following_the_hints_in_truncated_lines_reads_the_whole_text(
            lines in prop::collection::vec("[a-zä]{0,30}", 1..30),
            most in 4..80_usize,
        ) {
            let text = lines.iter().map(|line| format!("{line}\n")).collect::<Vec<_>>().concat();
            let (mut first, mut column, mut seen) = (1, 1, String::new());
            while first <= lines.len() as u64 {
                let from = usize::try_from(first).unwrap() - 1;
                let rest = lines[from..].iter().map(|line| format!("{line}\n")).collect::<Vec<_>>().concat();
                let rest: String = rest.chars().skip(usize::try_from(column).unwrap() - 1).collect();
                let within = Some(Within { column, note: "[c {next} {missing}]".to_owned() });
                let run = Run { body_bytes: rest.len(), note_bytes: 0, first, items: Items::Lines { folded: Vec::new() }, note: "[l {next} {missing}]".to_owned(), within, missing: 0 };
                let Some((cut, _)) = run.truncate(&rest, most) else {
                    seen.push_str(&rest);
                    break;
                };
                let (kept, note) = cut.rsplit_once("\n[").unwrap();
                let words: Vec<&str> = note.trim_end_matches(']').split(' ').collect();
                let next: u64 = words[1].parse().unwrap();
                if words[0] == "c" {
                    seen.push_str(kept);
                    column = next;
                    prop_assert_eq!(rest.len() - kept.len(), words[2].parse::<usize>().unwrap());
                } else {
                    seen.push_str(kept);
                    seen.push('\n');
                    (first, column) = (next, 1);
                    prop_assert_eq!(rest.len() - kept.len() - 1, words[2].parse::<usize>().unwrap());
                }
            }
            prop_assert_eq!(seen, text);
        }
    }

    fn missing(text: &str) -> Vec<u64> {
        let marks = text.match_indices("[... truncated ").map(|(at, mark)| &text[at + mark.len()..]);
        marks.filter_map(|rest| rest.split_once(' ')?.0.parse().ok()).collect()
    }

    #[test]
    fn lines_redacted_into_one_still_count_separately() {
        let before = "one\nKEY\nKEY\nKEY\nfive\nsix\n";
        let run = Run {
            body_bytes: before.len(),
            note_bytes: 0,
            first: 11,
            items: Items::Lines { folded: Vec::new() },
            note: "[next {next}]".to_owned(),
            within: None,
            missing: 0,
        };
        let after = before.replace("KEY\nKEY\nKEY", "[redacted:key]");
        let left =
            LeftOut { gaps: Vec::new(), run: Some(run) }.after_hiding(before, &after, std::slice::from_ref(&(4..15))).unwrap();
        let run = left.run.unwrap();
        assert_eq!(run.truncate(&after, 21).unwrap().0, "one\n[redacted:key]\n[next 15]");
        assert_eq!(run.truncate(&after, 5).unwrap().0, "one\n[next 12]");
        assert_eq!(run.truncate(&after, 24).unwrap().0, "one\n[redacted:key]\nfive\n[next 16]");
    }

    #[test]
    fn lists_are_truncated_between_items() {
        let text = "a:1:x\na-2-y\n--\na:9:z\nb:1:x\n[note]\n\ntail";
        let body_bytes = text.find("[note]").unwrap();
        let items = Items::Starts { lines: vec![0, 2, 4] };
        let note = "[{last} shown, {missing} missing, `offset` {next}]".to_owned();
        let run = Run { body_bytes, note_bytes: 6, first: 5, items, note, within: None, missing: 0 };
        assert_eq!(run.truncate(text, 22).unwrap().0, "a:1:x\na-2-y\n--\na:9:z\n[6 shown, 6 missing, `offset` 7]\n\ntail");
        assert_eq!(run.truncate(text, 20).unwrap().0, "a:1:x\na-2-y\n[5 shown, 15 missing, `offset` 6]\n\ntail");
        assert_eq!(run.truncate(text, body_bytes).unwrap().0, text);
        assert_eq!(run.truncate(text, text.len()), None);
        let short = run.truncate(text, 6).unwrap().0;
        assert!(short.starts_with("a:1:") && short.contains("truncated") && short.contains("`offset` 6"), "{short}");
    }
}
