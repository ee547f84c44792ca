//! Collects results from several threads without locking. Each thread has results of its own, which are merged at the
//! end.

use std::collections::BinaryHeap;
use std::sync::{Mutex, PoisonError};

/// Results that can be merged.
pub(in crate::tools) trait Merge {
    /// Moves all results from `other` to `self`.
    fn merge(&mut self, other: &mut Self);
}

/// The merged results of the threads that have finished.
pub(in crate::tools) struct MergedResults<T>(Mutex<T>);

impl<T: Merge> MergedResults<T> {
    pub(in crate::tools) fn new(nothing: T) -> Self {
        Self(Mutex::new(nothing))
    }

    /// Returns a collector for one thread, which initially contains `nothing`.
    pub(in crate::tools) fn thread_results(&self, nothing: T) -> ThreadResults<'_, T> {
        ThreadResults { whole: self, own: nothing }
    }

    pub(in crate::tools) fn into_inner(self) -> T {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Results of one thread. They are merged when this is dropped.
pub(in crate::tools) struct ThreadResults<'a, T: Merge> {
    whole: &'a MergedResults<T>,
    pub own: T,
}

impl<T: Merge> Drop for ThreadResults<'_, T> {
    fn drop(&mut self) {
        self.whole.0.lock().unwrap_or_else(PoisonError::into_inner).merge(&mut self.own);
    }
}

/// The first `limit` items in order, and the number of items seen in total.
pub(in crate::tools) struct TopItems<T> {
    kept: BinaryHeap<T>,
    limit: usize,
    pub seen: u64,
}

impl<T: Ord> TopItems<T> {
    pub(in crate::tools) fn new(limit: usize) -> Self {
        Self { kept: BinaryHeap::new(), limit, seen: 0 }
    }

    pub(in crate::tools) fn push(&mut self, item: T) {
        self.push_if(|last| last.is_none_or(|last| item < *last).then_some(item));
    }

    /// Counts an item and adds it if it is among the first `limit`. Once all slots are occupied, the closure receives
    /// the last stored item, and returns a new item only if that sorts before it.
    pub(in crate::tools) fn push_if(&mut self, item: impl FnOnce(Option<&T>) -> Option<T>) {
        self.seen += 1;
        let last = self.kept.peek().filter(|_| self.kept.len() >= self.limit);
        let Some(item) = item(last) else { return };
        self.kept.push(item);
        if self.kept.len() > self.limit {
            self.kept.pop();
        }
    }

    pub(in crate::tools) fn into_sorted(self) -> Vec<T> {
        self.kept.into_sorted_vec()
    }
}

impl<T: Ord> Merge for TopItems<T> {
    fn merge(&mut self, other: &mut Self) {
        let seen = self.seen + other.seen;
        for item in std::mem::take(&mut other.kept) {
            self.push(item);
        }
        self.seen = seen;
        other.seen = 0;
    }
}
