//! Searches a sequence for a shorter one.

/// Returns every position at which `wanted` starts, including overlapping matches. Takes linear time.
pub(super) fn occurrences<T: PartialEq>(all: &[T], wanted: &[T]) -> Vec<usize> {
    if wanted.is_empty() {
        return Vec::new();
    }
    // For each prefix of the searched sequence, the length of its longest border.
    let mut borders = vec![0; wanted.len()];
    let mut border = 0;
    for index in 1..wanted.len() {
        while border > 0 && wanted[index] != wanted[border] {
            border = borders[border - 1];
        }
        border += usize::from(wanted[index] == wanted[border]);
        borders[index] = border;
    }
    let mut found = Vec::new();
    let mut same = 0;
    for (index, one) in all.iter().enumerate() {
        while same > 0 && (same == wanted.len() || *one != wanted[same]) {
            same = borders[same - 1];
        }
        same += usize::from(*one == wanted[same]);
        if same == wanted.len() {
            found.push(index + 1 - same);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_occurrences_are_found() {
        let find = |all: &str, wanted: &str| occurrences(all.as_bytes(), wanted.as_bytes());
        assert_eq!(find("aaaa", "aa"), [0, 1, 2]);
        assert_eq!(find("abababc", "ababc"), [2]);
        assert_eq!(find("abc", "abcd"), [0; 0]);
        assert_eq!(find("abc", ""), [0; 0]);
        assert_eq!(find("a", "a"), [0]);
        for (all, wanted) in [("aabaabaaab", "aab"), ("abcabcab", "cab"), ("aaabaaab", "aaab"), ("zz", "z")] {
            let plain: Vec<usize> = (0..=all.len() - wanted.len()).filter(|at| all[*at..].starts_with(wanted)).collect();
            assert_eq!(find(all, wanted), plain, "{wanted} in {all}");
        }
    }
}
