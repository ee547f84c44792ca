//! Going on where nothing can be saved, because the person says so: what was to be saved waits in memory, in order.

use super::Host;
use crate::agent::limits::UNSAVED_BYTES;
use crate::ports::{Durability, JournalError, Record};
use crate::protocol::{EventKind, Failure, FailureKind, size};
use std::collections::VecDeque;

/// What a crash would lose.
#[derive(Default)]
pub(super) struct Unsaved {
    batches: VecDeque<Batch>,
    bytes: usize,
}

struct Batch {
    records: Vec<Record>,
    bytes: usize,
}

impl Unsaved {
    fn push(&mut self, records: Vec<Record>) {
        let bytes = records.iter().map(length).sum();
        self.bytes += bytes;
        self.batches.push_back(Batch { records, bytes });
    }

    fn drop_last(&mut self) {
        self.bytes -= self.batches.pop_back().map_or(0, |batch| batch.bytes);
    }

    fn drop_first(&mut self) {
        self.bytes -= self.batches.pop_front().map_or(0, |batch| batch.bytes);
    }

    pub(super) fn into_records(self) -> Vec<Record> {
        self.batches.into_iter().flat_map(|batch| batch.records).collect()
    }
}

/// Bytes of the record in the journal, about.
fn length(record: &Record) -> usize {
    serde_json::to_string(record).map_or(0, |json| json.len())
}

/// The pause of a session that cannot be saved; `also` goes on in the first sentence.
pub(super) fn not_saved(error: &JournalError, also: &str) -> Failure {
    tracing::error!(%error, "journal");
    if error.lost {
        let message = format!("Cannot save this session ({}). Nothing goes on here.", error.message);
        return Failure::new(FailureKind::NotHeld, message, "leave here, and `aye --resume` has it again once it is free");
    }
    let message = format!("Cannot save this session ({}){also}. Paused before the next step.", error.message);
    Failure::new(FailureKind::NotSaved, message, "make room or mend the data directory, then continue")
}

impl Host {
    /// From here on a crash loses what is said and done, until it can be saved again.
    pub(super) async fn go_on_unsaved(&mut self) {
        if self.lost {
            let message = "it cannot go on unsaved: the session is not held here any more, and two would go different ways";
            return self.emit(None, None, EventKind::Notice { message: message.to_owned() });
        }
        if self.stalled.is_empty() {
            let message = match self.unsaved {
                None => "this session is saved, there is nothing to go on without",
                Some(_) => "it goes on unsaved already; continuing it tries to save it",
            };
            return self.emit(None, None, EventKind::Notice { message: message.to_owned() });
        }
        if self.unsaved.is_none() {
            self.unsaved = Some(Unsaved::default());
            let message = "going on unsaved: a crash loses all from here on; it is saved as soon as it can be".to_owned();
            self.emit(None, None, EventKind::SavingChanged { saved: false, message });
        }
        self.retry().await;
    }

    /// Saves the records behind all that wait, or lets them wait as well; an error where too many do.
    pub(super) async fn commit_in_memory(&mut self, records: &[Record]) -> Result<(), Failure> {
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
        Err(not_saved(&error, &format!(", and {} wait in memory, which is all that may", size(unsaved.bytes as u64))))
    }

    /// What the person says to it is an attempt too, and what comes of it is told.
    pub(super) async fn save_what_waits_in_memory(&mut self) {
        if let Err(error) = self.save_in_order().await {
            let message = format!("{error}; it goes on unsaved, a crash would lose it");
            self.emit(None, None, EventKind::Notice { message });
        }
    }

    async fn save_in_order(&mut self) -> Result<(), JournalError> {
        let Some(unsaved) = &mut self.unsaved else { return Ok(()) };
        while let Some(batch) = unsaved.batches.front() {
            // The last one syncs all that stands before it.
            let last = unsaved.batches.len() == 1;
            let durability = if last { Durability::Power } else { Durability::Process };
            self.journal.append(batch.records.clone(), durability).await?;
            unsaved.drop_first();
        }
        self.unsaved = None;
        let message = "saved again: all of this session is in the store".to_owned();
        self.emit(None, None, EventKind::SavingChanged { saved: true, message });
        Ok(())
    }
}
