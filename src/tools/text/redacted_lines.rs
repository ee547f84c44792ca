//! Redacts the lines of a text in such a way that they keep their numbers, even if a secret spans several lines.

use super::outline::{line_at, line_starts};
use crate::policy::redact::Redactor;

/// Returns one string per line, without line breaks. The first line of a multi-line secret contains its marker, and its
/// other lines are empty. Returns `None` if the redacted text cannot be mapped to lines.
pub(super) fn lines(text: &str, redactor: &Redactor) -> Option<Vec<String>> {
    let starts = line_starts(text);
    let shown = redactor.hide(text);
    let mut shown = shown.lines();
    let mut lines: Vec<String> = Vec::new();
    let mut rest = text.lines().count();
    for hidden in blocks(text, redactor, &starts) {
        while lines.len() < hidden.0 {
            lines.push(shown.next()?.to_owned());
            rest = rest.saturating_sub(1);
        }
        for _ in hidden.0..hidden.1 {
            lines.push(String::new());
            rest = rest.saturating_sub(1);
        }
    }
    for _ in 0..rest {
        lines.push(shown.next()?.to_owned());
    }
    shown.next().is_none().then_some(lines)
}

/// Joins the lines, each followed by a line break.
pub(super) fn join_lines(lines: &[String]) -> String {
    if lines.is_empty() { String::new() } else { lines.join("\n") + "\n" }
}

/// Returns the first and last line of each multi-line secret.
pub(super) fn blocks(text: &str, redactor: &Redactor, starts: &[usize]) -> Vec<(usize, usize)> {
    let lines = |range: std::ops::Range<usize>| {
        (line_at(starts, range.start), line_at(starts, range.end.saturating_sub(1).max(range.start)))
    };
    redactor.redacted_ranges(text).into_iter().map(lines).filter(|(first, last)| first < last).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redacted_multiline_keys_keep_their_line_count() {
        let redactor = Redactor::new(Vec::new(), [], || [7; 32]);
        let key = "-----BEGIN PRIVATE KEY-----\nCn9uq2kE2vmN3KkWPB6sZLneiwvs6bvNEcNTr7qSXyDCFN4IFPYAwF8ylQEFKHIX\n-----END PRIVATE KEY-----\n";
        let text = format!("one\n{key}five\ntoken = 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\n{key}end\n");
        let shown = lines(&text, &redactor).unwrap();
        assert_eq!(shown.len(), text.lines().count());
        assert!(shown[1].starts_with("[redacted:private-key:") && shown[2].is_empty() && shown[3].is_empty());
        assert_eq!((shown[0].as_str(), shown[4].as_str(), shown[9].as_str()), ("one", "five", "end"));
        assert!(shown[5].starts_with("token = [redacted:"));
        assert_eq!(lines("", &redactor), Some(Vec::new()));
        assert_eq!(lines("a\n\nb", &redactor).unwrap(), ["a", "", "b"]);
    }
}
