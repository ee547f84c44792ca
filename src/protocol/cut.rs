//! Cutting a text at a number of bytes, between two letters.

/// The last place up to `at` where the text can be cut. (`str::floor_char_boundary` needs a newer Rust than aye does.)
pub fn cut_before(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// The first place from `at` on where the text can be cut.
pub fn cut_after(text: &str, at: usize) -> usize {
    (at..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_letter_is_cut_in_two() {
        let text = "aé→";
        assert_eq!([0, 1, 2, 3, 4, 5, 6, 9].map(|at| cut_before(text, at)), [0, 1, 1, 3, 3, 3, 6, 6]);
        assert_eq!([0, 1, 2, 3, 4, 5, 6, 9].map(|at| cut_after(text, at)), [0, 1, 3, 3, 6, 6, 6, 6]);
    }
}
