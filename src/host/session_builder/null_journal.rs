//! A journal for runs that are not saved.

use crate::ports::{BoxFuture, Durability, Journal, JournalError, Record};

/// Journal that discards all records.
pub(crate) struct NullJournal;

impl Journal for NullJournal {
    fn append(&self, _: Vec<Record>, _: Durability) -> BoxFuture<'_, Result<(), JournalError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn save_draft(&self, _: String) -> BoxFuture<'_, Result<(), JournalError>> {
        Box::pin(std::future::ready(Ok(())))
    }
}
