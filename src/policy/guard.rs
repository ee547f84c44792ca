//! Catches panics during an evaluation, so only the evaluation fails and the program continues.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Reason for the denial after a panic during evaluation.
pub const FAILED: &str =
    "aye could not evaluate this call because of an internal error (see the log); please report it, and try a different call";

thread_local! {
    /// Number of evaluations in progress on this thread. Evaluations can be nested.
    static OPEN: Cell<usize> = const { Cell::new(0) };
}

/// Counts an evaluation as in progress until the guard is dropped, even during unwinding.
struct OpenGuard;

impl OpenGuard {
    fn begin() -> Self {
        OPEN.with(|open| open.set(open.get() + 1));
        Self
    }
}

impl Drop for OpenGuard {
    fn drop(&mut self) {
        OPEN.with(|open| open.set(open.get().saturating_sub(1)));
    }
}

/// Returns the result of `judge`, or `None` if it panics.
pub fn catch_panic<T>(judge: impl FnOnce() -> T) -> Option<T> {
    let open = OpenGuard::begin();
    let result = catch_unwind(AssertUnwindSafe(judge)).ok();
    drop(open);
    result
}

/// Returns whether a panic on this thread would be caught. Panic hooks check this, because a caught panic does not
/// terminate aye.
pub fn contains_panics() -> bool {
    OPEN.with(|open| open.get() > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_contained_and_the_state_is_restored() {
        assert!(!contains_panics());
        let outer = catch_panic(|| {
            assert!(contains_panics());
            let inner: Option<()> = catch_panic(|| std::panic::panic_any("broken"));
            (inner, contains_panics())
        });
        assert_eq!(outer, Some((None, true)));
        assert!(!contains_panics());
        assert_eq!(catch_panic(|| 7), Some(7));
    }
}
