//! Contains a panic while something is judged: that judgement fails, and the program goes on.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Why a call is denied whose judgement panicked.
pub const FAILED: &str = "aye could not evaluate this call because of an internal error; see the log for details. Report the error, and try a different call";

thread_local! {
    /// Judgements under way on this thread; one may contain another.
    static OPEN: Cell<usize> = const { Cell::new(0) };
}

/// Counts one judgement for as long as it lives, also while a panic unwinds.
struct Open;

impl Open {
    fn begin() -> Self {
        OPEN.with(|open| open.set(open.get() + 1));
        Self
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        OPEN.with(|open| open.set(open.get().saturating_sub(1)));
    }
}

/// What `judge` returns, or `None` where it panicked.
pub fn contained<T>(judge: impl FnOnce() -> T) -> Option<T> {
    let open = Open::begin();
    let result = catch_unwind(AssertUnwindSafe(judge)).ok();
    drop(open);
    result
}

/// Whether a panic on this thread would be contained. Panic hooks ask this: such a panic ends nothing.
pub fn contains_panics() -> bool {
    OPEN.with(|open| open.get() > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_contained_and_the_state_is_as_before() {
        assert!(!contains_panics());
        let outer = contained(|| {
            assert!(contains_panics());
            let inner: Option<()> = contained(|| std::panic::panic_any("broken"));
            (inner, contains_panics())
        });
        assert_eq!(outer, Some((None, true)));
        assert!(!contains_panics());
        assert_eq!(contained(|| 7), Some(7));
    }
}
