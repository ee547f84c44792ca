//! Line endings in text: LF and CRLF, and also lone CR in files that use it.

use super::replacement::{line_ending, with_lf};

/// Which characters end a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::tools) enum Breaks {
    /// LF and CRLF. A lone CR is an ordinary character.
    Lf,
    /// LF, CRLF and lone CR.
    Cr,
}

impl Breaks {
    /// Splits text into lines that include their endings.
    pub(in crate::tools) fn lines(self, text: &str) -> Vec<&str> {
        if self == Self::Lf || !text.contains('\r') {
            return text.split_inclusive('\n').collect();
        }
        let bytes = text.as_bytes();
        let (mut lines, mut start) = (Vec::new(), 0);
        for at in memchr::memchr2_iter(b'\r', b'\n', bytes) {
            if bytes[at] == b'\r' && bytes.get(at + 1) == Some(&b'\n') {
                continue;
            }
            lines.push(&text[start..=at]);
            start = at + 1;
        }
        if start < text.len() {
            lines.push(&text[start..]);
        }
        lines
    }

    /// Returns the ending of a line, which is empty for a last line without one.
    pub(in crate::tools) fn ending(self, line: &str) -> &'static str {
        match line_ending(line) {
            Some(ending) => ending,
            None if self == Self::Cr && line.ends_with('\r') => "\r",
            None => "",
        }
    }

    /// Returns a line without its ending.
    pub(in crate::tools) fn body(self, line: &str) -> &str {
        &line[..line.len() - self.ending(line).len()]
    }
}

/// Returns whether the text contains a CR that is not followed by LF.
pub(in crate::tools) fn has_lone_cr(text: &str) -> bool {
    let bytes = text.as_bytes();
    memchr::memchr_iter(b'\r', bytes).any(|at| bytes.get(at + 1) != Some(&b'\n'))
}

/// Returns whether the text contains CR but no LF, in which case lone CRs end its lines.
pub(in crate::tools) fn only_cr(text: &str) -> bool {
    text.contains('\r') && !text.contains('\n')
}

/// Converts the line endings to LF for display. A lone CR in text that also contains LF is an ordinary character.
pub(in crate::tools) fn display_lines(text: &str) -> String {
    if only_cr(text) { text.replace('\r', "\n") } else { with_lf(text) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn joined_lines_equal_the_text(text in "[ab\r\n]{0,12}") {
            for breaks in [Breaks::Lf, Breaks::Cr] {
                let lines = breaks.lines(&text);
                prop_assert_eq!(lines.concat(), text.clone());
                let count = lines.len();
                for (index, line) in lines.into_iter().enumerate() {
                    let (body, ending) = (breaks.body(line), breaks.ending(line));
                    prop_assert_eq!(format!("{body}{ending}"), line);
                    prop_assert!(!body.contains('\n') && (breaks == Breaks::Lf || !body.contains('\r')), "{:?}", line);
                    prop_assert!(!ending.is_empty() || index + 1 == count);
                }
            }
        }
    }
}
