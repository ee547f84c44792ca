//! Classification of single Markdown lines, regardless of their context.

/// Maximum indentation of a top-level line, in spaces.
const INDENT: usize = 3;

/// Opening fence of a code block, with its character and the number of times that character is repeated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct CodeFence {
    letter: char,
    len: usize,
}

/// List item marker.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Marker {
    /// Bullet character, or the character that follows the number.
    pub sign: char,
    pub number: Option<u64>,
    pub empty: bool,
}

pub(super) fn indent(line: &str) -> usize {
    line.bytes().take_while(|byte| *byte == b' ').count() + 4 * usize::from(line.starts_with('\t'))
}

pub(super) fn is_blank(line: &str) -> bool {
    line.trim().is_empty()
}

/// Returns the code fence that a line opens and its info string, or `None` if it opens none.
pub(super) fn opening_fence(line: &str) -> Option<(CodeFence, &str)> {
    let body = line.trim();
    let letter = body.chars().next().filter(|letter| matches!(letter, '`' | '~'))?;
    let info = body.trim_start_matches(letter);
    let len = body.len() - info.len();
    (len >= 3 && !(letter == '`' && info.contains('`'))).then_some((CodeFence { letter, len }, info.trim()))
}

impl CodeFence {
    pub(crate) fn is_closed_by(self, line: &str) -> bool {
        let body = line.trim();
        body.len() >= self.len && body.chars().all(|letter| letter == self.letter)
    }

    /// Returns whether a line that is not complete yet may turn out to be the closing fence.
    pub(crate) fn may_be_closed_by(self, line: &str) -> bool {
        indent(line) <= INDENT && !is_blank(line) && line.trim().chars().all(|letter| letter == self.letter)
    }
}

/// Returns whether a code fence on this line would be at the top level.
pub(super) fn is_outermost(line: &str) -> bool {
    indent(line) <= INDENT
}

/// Parses the list item marker at the start of a line, if there is one at the top level.
pub(super) fn marker(line: &str) -> Option<Marker> {
    if indent(line) > 1 || is_rule(line) {
        return None;
    }
    let body = line.trim_start_matches(' ');
    let digits = body.bytes().take_while(u8::is_ascii_digit).count();
    let sign = body[digits..].chars().next()?;
    let after = &body[digits + sign.len_utf8()..];
    let fits = match digits {
        0 => matches!(sign, '-' | '*' | '+'),
        1..=9 => matches!(sign, '.' | ')'),
        _ => false,
    };
    let ends = after.trim_end().is_empty() || after.starts_with([' ', '\t']);
    (fits && ends).then(|| Marker { sign, number: body[..digits].parse().ok(), empty: is_blank(after) })
}

/// Returns whether a line is a horizontal rule.
pub(super) fn is_rule(line: &str) -> bool {
    let mut letters = line.chars().filter(|letter| !letter.is_whitespace());
    let Some(first @ ('-' | '*' | '_')) = letters.next() else { return false };
    let mut count = 1;
    for letter in letters {
        if letter != first {
            return false;
        }
        count += 1;
    }
    count >= 3
}

/// Returns whether a line separates a table's head from its other rows.
pub(super) fn is_table_rule(line: &str) -> bool {
    line.contains('-') && line.contains('|') && line.trim().chars().all(|letter| matches!(letter, '-' | ':' | '|' | ' '))
}
