//! Normalizes text for comparison, and maps positions in it back to the original text.

use icu_normalizer::ComposingNormalizerBorrowed;
use icu_normalizer::properties::CanonicalCombiningClassMapBorrowed;
use std::ops::Range;

/// Which differences are ignored. Each level includes the ones before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum FoldLevel {
    Exact,
    /// Spaces and tabs at the ends of lines.
    Trailing,
    /// Typographic quotes, dashes and spaces, and different compositions of accented characters.
    Characters,
    /// The number of spaces within a line, and spaces next to punctuation.
    Spaces,
}

/// A normalized text.
pub(super) struct FoldedText {
    pub(super) text: String,
    /// Ranges in which the text differs from the original, in order.
    pieces: Vec<FoldedRange>,
}

struct FoldedRange {
    folded: Range<usize>,
    original: Range<usize>,
}

impl FoldedText {
    /// Normalizes text. Line breaks are preserved, so line numbers do not change.
    pub(super) fn fold(text: &str, level: FoldLevel) -> Self {
        let mut folded = Self { text: String::with_capacity(text.len()), pieces: Vec::new() };
        let mut at = 0;
        for line in text.split_inclusive('\n') {
            let body = line.strip_suffix('\n').unwrap_or(line);
            let kept = match level {
                FoldLevel::Exact => body,
                FoldLevel::Trailing => body.trim_end_matches([' ', '\t']),
                FoldLevel::Characters | FoldLevel::Spaces => body.trim_end_matches(blank),
            };
            if level < FoldLevel::Characters || (level == FoldLevel::Characters && kept.is_ascii()) {
                folded.text.push_str(kept);
            } else {
                folded.push_text(kept, at, level);
            }
            folded.push_replacement(at + kept.len()..at + body.len(), "");
            if body.len() < line.len() {
                folded.text.push('\n');
            }
            at += line.len();
        }
        folded
    }

    fn push_text(&mut self, body: &str, at: usize, level: FoldLevel) {
        let spaces = level == FoldLevel::Spaces;
        let indent = body.len() - body.trim_start_matches(blank).len();
        let marks = CanonicalCombiningClassMapBorrowed::new();
        let mut letters = body.char_indices().peekable();
        let mut last = None;
        while let Some((start, letter)) = letters.next() {
            let mut end = start + letter.len_utf8();
            if spaces && start >= indent && blank(letter) {
                while let Some((next, letter)) = letters.next_if(|(_, letter)| blank(*letter)) {
                    end = next + letter.len_utf8();
                }
                let needed = letters.peek().is_some_and(|(_, next)| last.is_some_and(|last| is_space_significant(last, *next)));
                self.push_replacement(at + start..at + end, if needed { " " } else { "" });
                last = Some(' ');
                continue;
            }
            while let Some((next, mark)) = letters.next_if(|(_, next)| marks.get_u8(*next) != 0) {
                end = next + mark.len_utf8();
            }
            let original = &body[start..end];
            let composed =
                if original.is_ascii() { original.into() } else { ComposingNormalizerBorrowed::new_nfc().normalize(original) };
            let plain: String = composed
                .chars()
                .map(|letter| typed_equivalent(letter).map_or_else(|| letter.to_string(), str::to_owned))
                .collect();
            last = plain.chars().last().or(last);
            if plain == original {
                self.text.push_str(original);
            } else {
                self.push_replacement(at + start..at + end, &plain);
            }
        }
    }

    fn push_replacement(&mut self, original: Range<usize>, by: &str) {
        if original.is_empty() {
            return;
        }
        let start = self.text.len();
        self.text.push_str(by);
        self.pieces.push(FoldedRange { folded: start..self.text.len(), original });
    }

    /// Maps a range back to the original text. `with_rest` says whether to include text that was dropped at the end of
    /// the range. Returns `None` if either end is inside a replacement.
    pub(super) fn original(&self, range: Range<usize>, with_rest: bool) -> Option<Range<usize>> {
        let (_, start) = self.dropped_span(range.start)?;
        let (near, far) = self.dropped_span(range.end)?;
        Some(start..if with_rest { far } else { near }.max(start))
    }

    /// Returns the positions in the original text before and after the text that was dropped at this position. Returns
    /// `None` if the position is inside a replacement.
    fn dropped_span(&self, at: usize) -> Option<(usize, usize)> {
        let index = self.pieces.partition_point(|piece| piece.folded.end < at);
        let shift = |index: usize| match index.checked_sub(1).map(|before| &self.pieces[before]) {
            Some(piece) => at - piece.folded.end + piece.original.end,
            None => at,
        };
        let mut low = None;
        let mut high = None;
        for piece in self.pieces[index..].iter().take_while(|piece| piece.folded.start <= at) {
            if piece.folded.start < at && at < piece.folded.end {
                return None;
            }
            if piece.folded.end == at {
                let left_out = piece.folded.is_empty();
                low = low.or(Some(if left_out { piece.original.start } else { piece.original.end }));
                high = Some(piece.original.end);
            }
        }
        let low = low.unwrap_or_else(|| shift(index));
        Some((low, high.unwrap_or(low)))
    }
}

fn blank(letter: char) -> bool {
    matches!(letter, ' ' | '\t') || typed_equivalent(letter).is_some_and(|plain| plain.trim().is_empty())
}

/// Returns the keyboard equivalent of a typographic character, which is an empty string for a zero-width character.
pub(in crate::tools::write) fn typed_equivalent(letter: char) -> Option<&'static str> {
    Some(match letter {
        '\u{2018}'..='\u{201B}' | '\u{2032}' | '\u{FF07}' => "'",
        '\u{201C}'..='\u{201F}' | '\u{2033}' | '\u{FF02}' => "\"",
        '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{FE58}' | '\u{FE63}' | '\u{FF0D}' => "-",
        '\u{2026}' => "...",
        '\u{A0}' | '\u{2000}'..='\u{200A}' | '\u{202F}' | '\u{205F}' | '\u{3000}' => " ",
        '\u{200B}' | '\u{2060}' | '\u{FEFF}' => "",
        _ => return None,
    })
}

/// Returns whether a space between two characters is significant, because it separates words or symbols that would
/// otherwise merge.
fn is_space_significant(left: char, right: char) -> bool {
    let word = |letter: char| letter.is_alphanumeric() || letter == '_';
    let sign = |letter: char| "+-*/<>=&|!~^%?:.@#$\\'\"`".contains(letter);
    (word(left) && word(right)) || (sign(left) && sign(right))
}
