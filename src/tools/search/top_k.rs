//! Collection of results from several threads without locking: each thread has its own results, which are merged at the
//! end.

use std::collections::BinaryHeap;
use std::sync::{Mutex, PoisonError};

/// Results that can be merged.
pub(in crate::tools) trait Merge {
    /// Moves all results out of `other`.
    fn merge(&mut self, other: &mut Self);
}

/// The merged results of finished threads.
pub(in crate::tools) struct MergedResults<T>(Mutex<T>);

impl<T: Merge> MergedResults<T> {
    pub(in crate::tools) fn new(nothing: T) -> Self {
        Self(Mutex::new(nothing))
    }

    /// Returns the collector of one thread, initialized with `nothing`.
    pub(in crate::tools) fn thread_results(&self, nothing: T) -> ThreadResults<'_, T> {
        ThreadResults { whole: self, own: nothing }
    }

    pub(in crate::tools) fn into_inner(self) -> T {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Results of one thread, merged on drop.
pub(in crate::tools) struct ThreadResults<'a, T: Merge> {
    whole: &'a MergedResults<T>,
    pub own: T,
}

impl<T: Merge> Drop for ThreadResults<'_, T> {
    fn drop(&mut self) {
        self.whole.0.lock().unwrap_or_else(PoisonError::into_inner).merge(&mut self.own);
    }
}

/// The first `limit` items in order, and the total count.
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

    /// Counts an item. If there is no free slot, `item` gets the last item, and creates a new one only if that sorts
    /// before it.
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
