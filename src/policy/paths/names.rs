//! Compares names like the most lenient file system, which ignores case, invisible characters, stream names, and
//! trailing dots and spaces.

/// Returns whether Unicode classifies a character as ignorable. HFS+ ignores many of these characters in names.
fn is_ignorable(letter: char) -> bool {
    matches!(u32::from(letter),
        0x00AD | 0x034F | 0x061C | 0x115F | 0x1160 | 0x17B4 | 0x17B5 | 0x180B..=0x180F | 0x200B..=0x200F | 0x202A..=0x202E
        | 0x2060..=0x206F | 0x3164 | 0xFE00..=0xFE0F | 0xFEFF | 0xFFA0 | 0xFFF0..=0xFFF8 | 0x1_BCA0..=0x1_BCA3
        | 0x1_D173..=0x1_D17A | 0xE_0000..=0xE_0FFF)
}

/// Converts a full-width character to its ordinary form.
fn to_half_width(letter: char) -> char {
    match u32::from(letter) {
        code @ 0xFF01..=0xFF5E => char::from_u32(code - 0xFEE0).unwrap_or(letter),
        _ => letter,
    }
}

/// Folds case via upper case, because some letters, such as the long s, are equal only in upper case.
pub(super) fn without_case(text: &str) -> String {
    text.chars().flat_map(char::to_uppercase).flat_map(char::to_lowercase).collect()
}

/// Returns the form of an entry's name that is compared with protected names.
pub(super) fn fold_name(name: &str) -> String {
    if name.is_ascii() {
        // Text after a `:` names a stream of the same entry.
        let entry = name.split(':').next().unwrap_or(name);
        return entry.trim_end_matches([' ', '.']).to_ascii_lowercase();
    }
    let visible: String = name.chars().filter(|letter| !is_ignorable(*letter)).map(to_half_width).collect();
    // In `name:stream`, the entry is `name`.
    let entry = visible.split(':').next().unwrap_or(&visible);
    without_case(entry).trim_end_matches([' ', '.']).to_owned()
}

/// Returns whether a folded name could be the short name that Windows creates for `long`, such as `gitmod~1` for
/// `.gitmodules`.
pub(super) fn is_short_for(folded: &str, long: &str) -> bool {
    let (name, extension) = folded.split_once('.').map_or((folded, ""), |(name, extension)| (name, extension));
    let Some((start, number)) = name.split_once('~') else { return false };
    if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return false;
    }
    let long = long.trim_start_matches('.');
    let (stem, long_extension) = long.rsplit_once('.').unwrap_or((long, ""));
    let first = |text: &str, count: usize| text.chars().filter(|letter| *letter != '.').take(count).collect::<String>();
    start == first(stem, 6).as_str() && extension == first(long_extension, 3)
}
