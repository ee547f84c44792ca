//! The records of a session one after the other, however many there are, and what can be said of a session without
//! understanding each of them.

use super::records::{self, Place};
use super::{Store, StoreError};
use crate::ports::Record;
use crate::protocol::{SessionId, Usage};
use rusqlite::OptionalExtension;
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::ControlFlow;

/// So many places are looked at before it is asked whether they are enough.
const STRETCH: i64 = 5_000;

/// A record, and when it was written.
#[derive(Debug, Clone, PartialEq)]
pub struct Written {
    pub time: jiff::Timestamp,
    /// `Unreadable` where another version wrote it, or half of it is missing.
    pub record: Record,
}

/// How much the store holds of a session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Size {
    pub records: u64,
    pub bytes: u64,
}

/// What a session came to.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Tally {
    pub tasks: u64,
    /// Steps of all tasks that were completed, as `stepCount` of a task has them.
    pub steps: u64,
    /// Of these, those of the last task.
    last_task: u64,
    pub usage: Usage,
    /// Absent where no price was known.
    pub cost_usd: Option<f64>,
    /// Something was not counted by its provider.
    pub estimated: bool,
    /// Messages that wait.
    pub queued: u64,
}

/// Of a record what a tally is made of; all else in it is passed over unread.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Glance<'a> {
    #[serde(borrow)]
    record: Cow<'a, str>,
    #[serde(default)]
    step_count: u64,
    #[serde(default)]
    usage: Option<Usage>,
    #[serde(default)]
    cost_usd: Option<f64>,
    #[serde(default)]
    estimated: bool,
    #[serde(default)]
    prompts: Vec<IgnoredAny>,
}

impl Store {
    /// Hands out the records of a session in their order, one at a time, until `visit` has seen enough. It must not ask this store
    /// for anything else meanwhile.
    pub fn for_each_record(&self, id: &SessionId, mut visit: impl FnMut(Written) -> ControlFlow<()>) -> Result<(), StoreError> {
        self.for_each_text(id, |time, text| {
            let record = text.and_then(|json| serde_json::from_slice(json).ok()).unwrap_or(Record::Unreadable);
            visit(Written { time, record })
        })
    }

    pub fn tally(&self, id: &SessionId) -> Result<Tally, StoreError> {
        let mut tally = Tally::default();
        self.for_each_text(id, |_, text| {
            if let Some(glance) = text.and_then(|json| serde_json::from_slice::<Glance<'_>>(json).ok()) {
                tally.add(&glance);
            }
            ControlFlow::Continue(())
        })?;
        Ok(tally)
    }

    /// How much is held of each session.
    pub fn sizes(&self) -> Result<HashMap<SessionId, Size>, StoreError> {
        const SQL: &str = "SELECT s.id,
                (SELECT count(*) FROM records r WHERE r.session = s.key)
                    + (SELECT coalesce(sum(p.last - p.first + 1), 0) FROM packed p WHERE p.session = s.key),
                (SELECT coalesce(sum(octet_length(r.json)), 0) FROM records r WHERE r.session = s.key)
                    + (SELECT coalesce(sum(octet_length(p.data)), 0) FROM packed p WHERE p.session = s.key)
                    + octet_length(s.draft)
             FROM sessions s";
        self.read(|reader| {
            let mut statement = reader.prepare_cached(SQL)?;
            let rows = statement.query_map([], |row| {
                let number = |column| row.get::<_, i64>(column).map(i64::unsigned_abs);
                Ok((SessionId::new(row.get::<_, String>(0)?), Size { records: number(1)?, bytes: number(2)? }))
            })?;
            rows.collect()
        })
    }

    /// The text of each record as it was written; none where it cannot be read at all.
    fn for_each_text(
        &self,
        id: &SessionId,
        mut visit: impl FnMut(jiff::Timestamp, Option<&[u8]>) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        let found = self.read(|reader| {
            let key: Option<i64> = reader
                .prepare_cached("SELECT key FROM sessions WHERE id = ?1")?
                .query_row([id.as_str()], |row| row.get(0))
                .optional()?;
            let Some(key) = key else { return Ok(false) };
            // Nothing is packed between two looks.
            let _steady = reader.unchecked_transaction()?;
            let last = records::last(reader, key)?;
            let mut enough = false;
            let (mut from, mut until) = (1, STRETCH.min(last));
            while from <= last && !enough {
                records::visit(reader, key, from, until, |place| {
                    if enough {
                        return;
                    }
                    let (time, text) = match place {
                        Place::Record { time, json, .. } => {
                            (jiff::Timestamp::from_millisecond(time).unwrap_or_default(), Some(json))
                        }
                        Place::Lost { .. } => (jiff::Timestamp::default(), None),
                    };
                    enough = visit(time, text).is_break();
                })?;
                (from, until) = (until + 1, (until + STRETCH).min(last));
            }
            Ok(true)
        })?;
        if found { Ok(()) } else { Err(StoreError::NoSession { given: id.to_string() }) }
    }
}

impl Tally {
    fn completed(&mut self, steps: u64) {
        self.steps = self.steps - self.last_task + steps;
        self.last_task = steps;
    }

    fn add(&mut self, glance: &Glance<'_>) {
        match glance.record.as_ref() {
            "task_started" => {
                self.tasks += 1;
                self.last_task = 0;
            }
            // A step that is begun anew counts once, and one that is not completed does not.
            "step_started" => self.completed(glance.step_count.saturating_sub(1)),
            "step_completed" | "imported" => self.completed(glance.step_count),
            "task_ended" => {
                self.completed(glance.step_count);
                // One that is taken up again counts from 1.
                self.last_task = 0;
            }
            "queue" => self.queued = glance.prompts.len() as u64,
            "answer" | "wasted" | "compacted" => {
                self.usage += glance.usage.unwrap_or_default();
                self.estimated |= glance.estimated;
                if let Some(cost) = glance.cost_usd {
                    self.cost_usd = Some(self.cost_usd.unwrap_or_default() + cost);
                }
            }
            _ => {}
        }
    }
}
