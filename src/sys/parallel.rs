//! Processes many items in parallel on a few threads.

use std::sync::{Mutex, PoisonError};
use std::thread;

/// Number of small items to process on a thread at a time.
pub(crate) const CHUNK_ITEMS: usize = 256;
/// Maximum number of threads, including the calling one.
const MAX_THREADS: usize = 8;

/// Applies `work` to each item and returns the results in the same order. A single item is processed on the calling
/// thread.
pub(crate) fn map<T: Send, R: Send>(items: impl ExactSizeIterator<Item = T> + Send, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    let threads = thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS).min(items.len());
    let queue = Mutex::new(items.enumerate());
    let done = Mutex::new(Vec::new());
    let run = || {
        loop {
            // The queue must not stay locked during the work.
            let next = queue.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some((at, item)) = next else { break };
            let result = work(item);
            done.lock().unwrap_or_else(PoisonError::into_inner).push((at, result));
        }
    };
    thread::scope(|scope| {
        for _ in 1..threads {
            // If no other thread can be started, this one does all the work.
            if thread::Builder::new().spawn_scoped(scope, run).is_err() {
                break;
            }
        }
        run();
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_unstable_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_the_order_of_the_items() {
        for count in [0, 1, 2, 1_000] {
            assert_eq!(map(0..count, |item| item * 2), (0..count).map(|item| item * 2).collect::<Vec<_>>());
        }
    }

    #[test]
    fn panics_in_workers_are_propagated() {
        let panicked = std::panic::catch_unwind(|| map(0..100, |item| assert_ne!(item, 50)));
        assert!(panicked.is_err());
    }
}
