//! What a single line of markdown opens or closes, seen without its neighbours.

/// Longest indent before which a line still belongs to the outermost level.
const INDENT: usize = 3;

/// A fence around code.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Fence {
    letter: char,
    len: usize,
}

/// The marker of a list item.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Marker {
    /// The bullet, or what stands after the number.
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

/// A fence that this line opens, and the words after it.
pub(super) fn opening_fence(line: &str) -> Option<(Fence, &str)> {
    let body = line.trim();
    let letter = body.chars().next().filter(|letter| matches!(letter, '`' | '~'))?;
    let info = body.trim_start_matches(letter);
    let len = body.len() - info.len();
    (len >= 3 && !(letter == '`' && info.contains('`'))).then_some((Fence { letter, len }, info.trim()))
}

impl Fence {
    pub fn is_closed_by(self, line: &str) -> bool {
        let body = line.trim();
        body.len() >= self.len && body.chars().all(|letter| letter == self.letter)
    }

    /// Whether a line that has not ended yet could become the closing fence.
    pub fn may_be_closed_by(self, line: &str) -> bool {
        indent(line) <= INDENT && !is_blank(line) && line.trim().chars().all(|letter| letter == self.letter)
    }
}

/// Whether a fence on this line stands on the outermost level.
pub(super) fn is_outermost(line: &str) -> bool {
    indent(line) <= INDENT
}

/// A list item of the outermost level.
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

/// A line across the page.
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

/// The line under the head of a table.
pub(super) fn is_table_rule(line: &str) -> bool {
    line.contains('-') && line.contains('|') && line.trim().chars().all(|letter| matches!(letter, '-' | ':' | '|' | ' '))
}
