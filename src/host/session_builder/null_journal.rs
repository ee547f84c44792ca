//! A journal that discards everything, for a run that is not saved.

use crate::ports::{BoxFuture, Durability, Journal, JournalError, Record};

/// A journal that discards everything.
pub(crate) struct NullJournal;

impl Journal for NullJournal {
    fn append(&self, _: Vec<Record>, _: Durability) -> BoxFuture<'_, Result<(), JournalError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn save_draft(&self, _: String) -> BoxFuture<'_, Result<(), JournalError>> {
        Box::pin(std::future::ready(Ok(())))
    }
}
