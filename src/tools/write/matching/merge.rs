//! Merges new text into the file, so that lines of the file that do not change are preserved.

use similar::{Algorithm, DiffOp, capture_diff_slices_deadline};
use std::time::{Duration, Instant};

/// Time limit for comparing lines. Once it is exceeded, the diff becomes coarser and reports more lines as new.
const COMPARISON_LIMIT: Duration = Duration::from_secs(1);

/// Merges `new` into `there`, which matches `old` line by line. Lines that occur in both `old` and `new` are copied
/// from the file, and all others are converted by `changed`. Returns `None` if `changed` fails for any line.
pub(super) fn merge(there: &str, old: &str, new: &str, changed: impl Fn(&str) -> Option<String>) -> Option<String> {
    let lines = |text| -> Vec<&str> { str::split_inclusive(text, '\n').collect() };
    let (there, old, new) = (lines(there), lines(old), lines(new));
    if there.len() != old.len() {
        return new.into_iter().map(changed).collect();
    }
    let mut result = String::new();
    let deadline = Some(Instant::now() + COMPARISON_LIMIT);
    for op in capture_diff_slices_deadline(Algorithm::Myers, &old, &new, deadline) {
        if let DiffOp::Equal { old_index, len, .. } = op {
            for (there, old) in there[old_index..old_index + len].iter().zip(&old[old_index..]) {
                result.push_str(there);
                if old.ends_with('\n') && !there.ends_with('\n') {
                    result.push('\n');
                }
            }
            continue;
        }
        for line in &new[op.new_range()] {
            result.push_str(&changed(line)?);
        }
    }
    Some(result)
}
