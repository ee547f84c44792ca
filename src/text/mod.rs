//! Stand-in until the `view` branch is merged.
use std::borrow::Cow;
use std::ops::Range;
use unicode_width::UnicodeWidthStr;

pub fn width(text: &str) -> usize {
    UnicodeWidthStr::width(text)
}
pub fn truncate(text: &str, cells: usize) -> Cow<'_, str> {
    if width(text) <= cells {
        return Cow::Borrowed(text);
    }
    let mut out = String::new();
    for c in text.chars() {
        if width(&out) + 2 > cells {
            break;
        }
        out.push(c);
    }
    out.push('…');
    Cow::Owned(out)
}
pub fn clean(text: &str) -> Cow<'_, str> {
    Cow::Owned(text.chars().filter(|c| *c == '\n' || !c.is_control()).collect())
}
pub fn wrap(text: &str, cells: usize) -> Vec<Range<usize>> {
    let mut out = Vec::new();
    let (mut start, mut used) = (0, 0);
    for (at, c) in text.char_indices() {
        let w = width(c.encode_utf8(&mut [0; 4]));
        if used + w > cells.max(1) {
            out.push(start..at);
            start = at;
            used = 0;
        }
        used += w;
    }
    out.push(start..text.len());
    out
}
#[derive(Debug, Default)]
pub struct Cleaner;
impl Cleaner {
    pub fn push(&mut self, text: &str, out: &mut String) {
        out.push_str(&clean(text));
    }
    pub fn finish(&mut self, _out: &mut String) {}
}
