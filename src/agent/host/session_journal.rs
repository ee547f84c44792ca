//! Session journal: commits records, and buffers them in order for a session that continues while saving fails.

use super::event_sender::EventSender;
use crate::agent::limits::UNSAVED_BYTES;
use crate::ports::{Durability, Journal, JournalError, Record, SavedTail};
use crate::protocol::{CallId, EventKind, Failure, FailureKind, Remedy, size};
use std::collections::VecDeque;
use std::sync::Arc;

/// Records that would be lost in a crash.
#[derive(Default)]
struct UnsavedRecords {
    batches: VecDeque<UnsavedBatch>,
    bytes: usize,
}

struct UnsavedBatch {
    records: Vec<Record>,
    bytes: usize,
}

impl UnsavedRecords {
    fn push(&mut self, records: Vec<Record>) {
        let bytes = records.iter().map(length).sum();
        self.bytes += bytes;
        self.batches.push_back(UnsavedBatch { records, bytes });
    }

    fn drop_last(&mut self) {
        self.bytes -= self.batches.pop_back().map_or(0, |batch| batch.bytes);
    }

    fn drop_first(&mut self) {
        self.bytes -= self.batches.pop_front().map_or(0, |batch| batch.bytes);
    }

    fn into_records(self) -> Vec<Record> {
        self.batches.into_iter().flat_map(|batch| batch.records).collect()
    }
}

/// Returns the approximate size of a record in the journal, in bytes.
fn length(record: &Record) -> usize {
    serde_json::to_string(record).map_or(0, |json| json.len())
}

/// Returns the failure that pauses a session which cannot be saved. `also` continues the failure's first sentence.
fn save_failure(error: &JournalError, also: &str) -> Failure {
    tracing::error!(%error, "cannot write the journal");
    if error.lost {
        let message = format!("Cannot save this session ({}). The session stops here.", error.message);
        return Failure::new(
            FailureKind::NotHeld,
            message,
            "quit, and run `aye --resume` once no other process owns the session",
        );
    }
    let message = format!("Cannot save this session ({}){also}. Paused before the next step.", error.message);
    let hint = error.hint.unwrap_or("free some space or fix the data directory");
    Failure::new(FailureKind::NotSaved, message, hint).with_remedy(Remedy::Continue)
}

/// The session's journal, with the buffer used while the user continues without saving.
pub(super) struct SessionJournal {
    port: Arc<dyn Journal>,
    unsaved: Option<UnsavedRecords>,
    /// Whether another process owns the session, in which case nothing continues in this process.
    lost: bool,
    sender: EventSender,
}

impl SessionJournal {
    pub(crate) fn new(port: Arc<dyn Journal>, sender: EventSender) -> Self {
        Self { port, unsaved: None, lost: false, sender }
    }

    /// Returns whether the session currently continues without being saved.
    pub(crate) fn is_unsaved(&self) -> bool {
        self.unsaved.is_some()
    }

    pub(crate) async fn commit(&mut self, records: &[Record], durability: Durability) -> Result<(), Failure> {
        if records.is_empty() {
            return Ok(());
        }
        if self.unsaved.is_some() {
            return self.commit_in_memory(records).await;
        }
        let saved = self.port.append(records.to_vec(), durability).await;
        self.lost = saved.as_ref().is_err_and(|error| error.lost);
        saved.map_err(|error| save_failure(&error, ""))
    }

    pub(crate) async fn save_draft(&self, text: String) {
        if let Err(error) = self.port.save_draft(text).await {
            tracing::warn!(%error, "cannot save the draft");
        }
    }

    /// Queues a save of a command's latest output without waiting for it.
    pub(crate) fn save_tail(&self, id: CallId, tail: SavedTail) {
        // The write is queued before the call's outcome is recorded, so nothing has to wait for it.
        drop(self.port.save_tail(id, tail));
    }

    /// Continues the session without saving it. A crash loses everything recorded until saving works again. `stalled`
    /// says whether records are waiting to be saved. Returns whether the save should be retried.
    pub(crate) fn continue_unsaved(&mut self, stalled: bool) -> bool {
        if self.lost {
            let message = "cannot continue unsaved: another process owns this session now";
            self.emit(EventKind::notice(message));
            return false;
        }
        if self.port.must_save() {
            let message = "cannot continue unsaved: `services.audit.required` is set, so every record must be saved";
            self.emit(EventKind::notice(message));
            return false;
        }
        if !stalled {
            let message = match self.unsaved {
                None => "this session is being saved; there is no need to continue unsaved",
                Some(_) => "already continuing unsaved; continue to try saving again",
            };
            self.emit(EventKind::notice(message));
            return false;
        }
        if self.unsaved.is_none() {
            self.unsaved = Some(UnsavedRecords::default());
            let message =
                "continuing unsaved: a crash loses everything from here on; aye saves again as soon as it can".to_owned();
            self.emit(EventKind::SavingChanged { saved: false, message });
        }
        true
    }

    /// Saves the records after all buffered records. If that fails, buffers them as well. Returns an error if the
    /// buffer is full or another process owns the session.
    async fn commit_in_memory(&mut self, records: &[Record]) -> Result<(), Failure> {
        let Some(unsaved) = &mut self.unsaved else { return Ok(()) };
        unsaved.push(records.to_vec());
        let Err(error) = self.save_in_order().await else {
            self.lost = false;
            return Ok(());
        };
        self.lost = error.lost;
        let Some(unsaved) = &mut self.unsaved else { return Ok(()) };
        if unsaved.bytes <= UNSAVED_BYTES && !error.lost {
            return Ok(());
        }
        unsaved.drop_last();
        Err(save_failure(&error, &format!(", and the {} buffered in memory have reached the limit", size(unsaved.bytes as u64))))
    }

    /// Retries the save at the user's request and reports a failure.
    pub(crate) async fn retry_save(&mut self) {
        if let Err(error) = self.save_in_order().await {
            let message = format!("{error}; the session is still unsaved, and a crash would lose it");
            self.emit(EventKind::notice(message));
        }
    }

    /// Removes and returns all buffered records.
    pub(crate) fn take_unsaved(&mut self) -> Vec<Record> {
        self.unsaved.take().map(UnsavedRecords::into_records).unwrap_or_default()
    }

    async fn save_in_order(&mut self) -> Result<(), JournalError> {
        let Some(unsaved) = &mut self.unsaved else { return Ok(()) };
        while let Some(batch) = unsaved.batches.front() {
            // Syncing the last batch also syncs all earlier batches.
            let last = unsaved.batches.len() == 1;
            let durability = if last { Durability::Power } else { Durability::Process };
            self.port.append(batch.records.clone(), durability).await?;
            unsaved.drop_first();
        }
        self.unsaved = None;
        let message = "saving works again: the whole session is on disk".to_owned();
        self.emit(EventKind::SavingChanged { saved: true, message });
        Ok(())
    }

    fn emit(&self, kind: EventKind) {
        self.sender.send(None, None, kind);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_failures_that_may_be_due_to_the_disk_suggest_freeing_space() {
        let hint = |hint| save_failure(&JournalError { message: "cause".to_owned(), lost: false, hint }, "").hint;
        assert!(hint(None).contains("free some space"));
        assert_eq!(hint(Some("report this")), "report this");
    }
}
