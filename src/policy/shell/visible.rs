//! Characters that a person reading a line would not see, or would take for others.

const CONTROL: &str = "the line has control characters, so what is shown is not what would run";
const INVISIBLE: &str = "the line has invisible or misleading characters";

pub fn oddities(line: &str) -> Vec<&'static str> {
    let mut found = Vec::new();
    if line.is_ascii() && !line.bytes().any(|byte| (byte < 0x20 && byte != b'\n' && byte != b'\t') || byte == 0x7f) {
        return found;
    }
    if line.chars().any(|c| c.is_control() && c != '\n' && c != '\t') {
        found.push(CONTROL);
    }
    if line.chars().any(is_invisible) {
        found.push(INVISIBLE);
    }
    found
}

/// Blanks that are not ASCII, joiners, direction marks, variation selectors, fillers, tags, and letters in full width.
fn is_invisible(c: char) -> bool {
    (!c.is_ascii() && c.is_whitespace())
        || matches!(u32::from(c),
            0x00AD | 0x034F | 0x061C | 0x115F | 0x1160 | 0x17B4 | 0x17B5 | 0x180B..=0x180F | 0x200B..=0x200F | 0x202A..=0x202E
            | 0x2060..=0x206F | 0x2800 | 0x3164 | 0xFE00..=0xFE0F | 0xFEFF | 0xFF01..=0xFF5E | 0xFFA0 | 0xFFF0..=0xFFFB
            | 0xFFFD | 0x1BCA0..=0x1BCA3 | 0x1D173..=0x1D17A | 0xE000..=0xF8FF | 0xE0000..=0xE0FFF | 0xF0000..=0x0010_FFFF)
}

/// Whether a file's name shows as another one. What writing systems and emoji need in names is no reason.
pub fn hides(name: &str) -> bool {
    let hidden = |c: char| {
        matches!(u32::from(c),
            0x00AD | 0x061C | 0x115F | 0x1160 | 0x200B | 0x200E | 0x200F | 0x2028..=0x202E | 0x2060..=0x206F | 0x2800 | 0x3164
            | 0xFEFF | 0xFFA0 | 0xFFF0..=0xFFFB | 0xE0000..=0xE0FFF)
    };
    name.chars().any(|c| c.is_control() || hidden(c))
}
