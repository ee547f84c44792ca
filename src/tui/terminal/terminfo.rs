//! Number of colours that a terminal supports according to the system's description of it (terminfo).
//!
//! This does not use a terminfo crate, because only one number is needed. A full parser would also have to handle
//! untrusted files, because an environment variable can specify the file.

use std::path::PathBuf;

/// Maximum size of a terminal description, in bytes.
const FILE_BYTES: u64 = 64 << 10;
/// Index of the number of colours among the numbers in a terminal description.
const MAX_COLOURS: usize = 13;

/// Returns the number of colours that a terminal supports, or `None` if the system has no description of it.
pub(crate) fn colours<'v>(term: &str, variable: impl Fn(&str) -> &'v str) -> Option<u32> {
    let first = term.chars().next()?;
    if term.contains('/') || term.starts_with('.') {
        return None;
    }
    let own = [variable("TERMINFO").to_owned(), format!("{}/.terminfo", variable("HOME"))];
    let system = ["/etc/terminfo", "/lib/terminfo", "/usr/share/terminfo", "/usr/lib/terminfo"].map(str::to_owned);
    let places = own.into_iter().chain(system).filter(|place| place.starts_with('/'));
    // Some systems name the directory after the character code.
    let files = places.flat_map(|place| {
        [format!("{first}"), format!("{:x}", u32::from(first))].map(|folder| PathBuf::from(&place).join(folder).join(term))
    });
    let mut found = files.filter(|file| file.metadata().is_ok_and(|file| file.is_file() && file.len() <= FILE_BYTES));
    max_colours(&std::fs::read(found.next()?).ok()?)
}

/// Parses the number of colours from a compiled terminal description, which consists of a header of six numbers
/// followed by names, flags and numbers.
fn max_colours(bytes: &[u8]) -> Option<u32> {
    let short = |at: usize| Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
    let is_long = match short(0)? {
        0o432 => false,
        0o1036 => true,
        _ => return None,
    };
    let (names, flags, numbers) = (usize::from(short(2)?), usize::from(short(4)?), usize::from(short(6)?));
    if numbers <= MAX_COLOURS {
        return None;
    }
    let start = (12 + names + flags).next_multiple_of(2);
    let count = if is_long {
        let at = start + MAX_COLOURS * 4;
        u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?)
    } else {
        u32::from(short(start + MAX_COLOURS * 2)?)
    };
    // A value with all bits set means that the number is undefined.
    let most = if is_long { 0x7fff_ffff } else { 0x7fff };
    (count <= most).then_some(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds a terminal description with the given number of colours, which is stored in 16 or 32 bits.
    fn description(colours: u32, is_long: bool) -> Vec<u8> {
        let names = b"mine|a terminal\0";
        let mut bytes = Vec::new();
        for number in [if is_long { 0o1036_u16 } else { 0o432 }, names.len() as u16, 3, 14, 0, 0] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend(names);
        bytes.extend([0, 1, 0]);
        bytes.push(0);
        for number in [u32::MAX; 13].into_iter().chain([colours]) {
            if is_long { bytes.extend(number.to_le_bytes()) } else { bytes.extend((number as u16).to_le_bytes()) }
        }
        bytes
    }

    #[test]
    fn the_number_of_colours_is_read_from_terminfo() {
        for (colours, is_long, expected) in [
            (8, false, Some(8)),
            (256, false, Some(256)),
            (0x100_0000, true, Some(0x100_0000)),
            (0xffff, false, None),
            (u32::MAX, true, None),
        ] {
            assert_eq!(max_colours(&description(colours, is_long)), expected, "{colours}");
        }
    }

    #[test]
    fn a_broken_terminfo_entry_yields_no_colour_count() {
        let whole = description(256, false);
        for end in 0..whole.len() {
            assert_eq!(max_colours(&whole[..end]), None, "{end}");
        }
        assert_eq!(max_colours(b"\x1f\x8b\x08 something else that is long enough for a header"), None);
    }
}
