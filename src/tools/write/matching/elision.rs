//! Edits in which lines of dots stand for unchanged lines.

use super::{Match, MatchFailure, Passage, Place};
use crate::tools::document::replacement::Occurrences;

/// Finds the text before, between and after the dots. Each of these passages must occur exactly once, in this order.
/// Returns `None` if the old text contains no dots, or if the dots may be literal.
pub(super) fn find(wanted: &Passage<'_>, old: &str, new: &str) -> Option<Result<Match, MatchFailure>> {
    let (old, old_dots) = pieces(old);
    if old_dots.is_empty() || wanted.which == Occurrences::All {
        return None;
    }
    let (new, new_dots) = pieces(new);
    if wanted.text.lines().any(|line| line.trim() == "..." || old_dots.contains(&line.trim())) {
        return None;
    }
    if old_dots != new_dots {
        return Some(Err(MatchFailure::Elided));
    }
    let mut places = Vec::new();
    let mut from = 0;
    for (old, new) in old.iter().zip(new) {
        if old.is_empty() {
            // With dots at an end, their extent is unknown, but nothing changes there.
            if new.is_empty() {
                continue;
            }
            return Some(Err(MatchFailure::Elided));
        }
        if !old.chars().any(char::is_alphanumeric) {
            return None;
        }
        let exact = wanted.find_exact(old);
        let [range] = exact.as_slice() else { return None };
        let at_line = range.start == 0 || wanted.text[..range.start].ends_with('\n');
        if !at_line || range.start < from {
            return None;
        }
        from = range.end;
        places.push(Place { range: range.clone(), new });
    }
    let how = Some("keeping the lines that `...` replaces".to_owned());
    (!places.is_empty()).then_some(Ok(Match { places, how }))
}

/// Splits text at lines of dots. Also returns those lines.
fn pieces(text: &str) -> (Vec<String>, Vec<&str>) {
    let mut pieces = vec![String::new()];
    let mut dots = Vec::new();
    for line in text.split_inclusive('\n') {
        if is_dots(line.trim()) {
            dots.push(line.trim());
            pieces.push(String::new());
        } else if let Some(piece) = pieces.last_mut() {
            piece.push_str(line);
        }
    }
    (pieces, dots)
}

/// Returns whether a line consists of `...`, possibly in a comment and with other text, as in `// ... existing code
/// ...`.
fn is_dots(line: &str) -> bool {
    let bare = line.trim_start_matches(['#', '/', '-', '*', ';', '%', '<', '!', '(', '{']).trim();
    let bare = bare.trim_end_matches(['*', '/', '-', '>', ')', '}']).trim();
    let dots = |text: &str| matches!(text, "..." | "…");
    let starts = bare.starts_with("...") || bare.starts_with('…');
    let ends = bare.ends_with("...") || bare.ends_with('…');
    dots(bare) || (starts && ends)
}
