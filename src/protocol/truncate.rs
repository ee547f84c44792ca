//! Truncation of text to a maximum number of bytes without splitting characters, and formatting of sizes and counts.

use std::borrow::Cow;

/// Percentage of the size limit used for the beginning of a truncated text. The rest is used for the end.
const HEAD_PERCENT: usize = 80;

/// Shortens a long text to about `max_bytes` by replacing its middle with a marker that gives the number of omitted
/// bytes.
pub fn truncate(text: &str, max_bytes: usize) -> Cow<'_, str> {
    truncate_with_gap(text, max_bytes).0
}

/// Shortens a text like `truncate`, and also returns the number of omitted bytes, if any.
pub fn truncate_with_gap(text: &str, max_bytes: usize) -> (Cow<'_, str>, Option<u64>) {
    if text.len() <= max_bytes {
        return (Cow::Borrowed(text), None);
    }
    let (start, end) = middle(text, max_bytes);
    let missing = (end - start) as u64;
    (Cow::Owned(format!("{}{}{}", &text[..start], gap(missing), &text[end..])), Some(missing))
}

/// Returns the byte range to omit from the middle of a text so that about `max_bytes` remain.
pub(super) fn middle(text: &str, max_bytes: usize) -> (usize, usize) {
    let head = max_bytes / 100 * HEAD_PERCENT + max_bytes % 100 * HEAD_PERCENT / 100;
    (cut_position_before(text, head), cut_position_after(text, text.len() - (max_bytes - head)))
}

/// Returns the marker that replaces this number of omitted bytes.
pub(super) fn gap(bytes: u64) -> String {
    format!("\n[... truncated {bytes} bytes ...]\n")
}

/// Formats a size, using units of 1024: `812 bytes`, `10.0 KB`, `2.3 MB`, `1.5 GB`.
pub fn size(bytes: u64) -> String {
    match bytes {
        0..1024 => format_count(bytes, "byte", "bytes"),
        1024..1_048_576 => format!("{:.1} KB", bytes as f64 / 1024.0),
        1_048_576..1_073_741_824 => format!("{:.1} MB", bytes as f64 / 1_048_576.0),
        _ => format!("{:.1} GB", bytes as f64 / 1_073_741_824.0),
    }
}

/// Formats a count with the singular or plural noun: `1 entry`, `3 entries`.
pub fn format_count(number: u64, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// Formats a number with its digits in groups of three: `30,000`.
pub fn group_digits(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// Formats a time limit, in minutes if it is a multiple of 60 seconds: `5 min`, `90 s`.
pub fn format_seconds(seconds: u64) -> String {
    match seconds {
        60.. if seconds.is_multiple_of(60) => format!("{} min", seconds / 60),
        _ => format!("{seconds} s"),
    }
}

/// Returns the last character boundary at or before `at`. `str::floor_char_boundary` would require a newer Rust
/// version.
pub fn cut_position_before(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// Returns the first character boundary at or after `at`.
pub fn cut_position_after(text: &str, at: usize) -> usize {
    (at..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_keeps_its_start_and_end() {
        for (length, cut) in [(999, None), (1000, None), (1001, Some("1")), (5000, Some("4000"))] {
            let text = "a".repeat(length);
            let expected = cut
                .map_or(text.clone(), |cut| format!("{}\n[... truncated {cut} bytes ...]\n{}", "a".repeat(800), "a".repeat(200)));
            assert_eq!(truncate(&text, 1000), expected, "{length}");
        }
        let letters = "ä".repeat(1000);
        let cut = truncate(&letters, 1001);
        assert!(
            cut.starts_with(&format!("{}\n[", "ä".repeat(400))) && cut.ends_with(&format!("]\n{}", "ä".repeat(100))),
            "{cut}"
        );
        assert_eq!(truncate("abc", 0), "\n[... truncated 3 bytes ...]\n");
    }

    #[test]
    fn sizes_are_formatted_in_the_largest_suitable_unit() {
        let told = [0, 1, 1023, 1024, 10_240, 1_048_576, 2_411_725, 1_610_612_736].map(size);
        assert_eq!(told, ["0 bytes", "1 byte", "1023 bytes", "1.0 KB", "10.0 KB", "1.0 MB", "2.3 MB", "1.5 GB"]);
    }

    #[test]
    fn cuts_never_split_a_character() {
        let text = "aé→";
        assert_eq!([0, 1, 2, 3, 4, 5, 6, 9].map(|at| cut_position_before(text, at)), [0, 1, 1, 3, 3, 3, 6, 6]);
        assert_eq!([0, 1, 2, 3, 4, 5, 6, 9].map(|at| cut_position_after(text, at)), [0, 1, 3, 3, 6, 6, 6, 6]);
    }
}
