//! Recovery of a damaged store into a new one. The damaged files are only ever read, page by page. An unreadable page
//! costs only the rows on that page. Indexes are not needed.

mod pages;
mod rows;

use super::packed;
use crate::session::SessionActivity;
use pages::{Pages, USUAL_SIZE};
use rows::{CellValue, Row, RowHead, StoreTable};
use rusqlite::types::{ToSql, ToSqlOutput, ValueRef};
use rusqlite::{Transaction, params};
use std::collections::BTreeMap;
use std::path::Path;

/// Record that is appended to an unfinished task whose last records may have been lost.
const MAY_BE_CUT: &str = r#"{"record":"damaged"}"#;

/// Name of the table that contains the sessions.
const SESSIONS: &str = "sessions";

/// Maximum plausible number of records in a packed row.
const MAX_IN_A_ROW: i64 = 10_000_000;

/// Outcome of recovering a damaged store.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Salvage {
    /// Number of sessions that were found.
    pub sessions: usize,
    pub saved: usize,
    /// Number of recovered sessions that are missing some of their entries.
    pub in_part: usize,
    /// Number of recovered sessions that are missing all of their entries.
    pub empty: usize,
    /// Number of journal entries that were recovered.
    pub entries: i64,
    /// Number of entries known to be lost: gaps in sessions, and all entries of lost sessions.
    pub lost_entries: i64,
    /// Whether even more entries may be missing, because entries lost from the end of a session leave no trace.
    pub may_miss_more: bool,
    /// Whether entire sessions may be missing, because they left no trace.
    pub may_miss_sessions: bool,
}

impl Salvage {
    pub(crate) fn describe(self) -> String {
        let Self { sessions, saved, in_part, empty, entries, lost_entries, may_miss_more, may_miss_sessions } = self;
        if sessions == 0 {
            return "no session could be recovered".to_owned();
        }
        let counted = |count: usize, words: &str| if count > 0 { format!(", {count} {words}") } else { String::new() };
        let of_sessions = [
            counted(in_part, "of them partially"),
            counted(empty, "of them without entries"),
            counted(sessions.saturating_sub(saved), "lost"),
        ]
        .concat();
        let of_entries = match (lost_entries, may_miss_more) {
            (lost, false) => {
                let gone = if lost > 0 { format!(", {lost} lost") } else { String::new() };
                format!("{entries} of {} entries (messages, results, steps) recovered{gone}", entries.saturating_add(lost))
            }
            (0, true) if empty == 0 => {
                format!("{entries} entries (messages, results, steps) recovered, an unknown number may be lost")
            }
            (0, true) => format!("{entries} entries (messages, results, steps) recovered, an unknown number lost"),
            (lost, true) => {
                format!(
                    "{entries} entries (messages, results, steps) recovered, {lost} lost, and possibly an unknown number more"
                )
            }
        };
        let least = if may_miss_sessions { "at least " } else { "" };
        format!("{saved} of {least}{sessions} sessions recovered{of_sessions}; {of_entries}")
    }
}

/// Copies all readable data from the files at `path` into a new database with empty tables.
pub(super) fn salvage(path: &Path, transaction: &Transaction<'_>) -> rusqlite::Result<Salvage> {
    // The page size in the header may be damaged, so it is tried last.
    let mut saved = Salvage::default();
    for size in [Some(USUAL_SIZE), None] {
        if let Some(pages) =
            Pages::open(path, size).filter(|pages| saved.saved == 0 && (size.is_some() || pages.size != USUAL_SIZE))
        {
            saved = Source::new(pages).into_new(transaction)?;
        }
    }
    Ok(saved)
}

struct Source {
    pages: Pages,
    leaves: Vec<u32>,
    /// Whether all B-trees are intact, in which case all leaf pages in use are known.
    is_whole: bool,
    /// Whether the B-tree of the session table is intact.
    has_all_sessions: bool,
    /// Number of rows in `leaves` that could not be read.
    unread: i64,
}

/// Facts about a session from its row and its records.
#[derive(Default)]
struct SalvagedSession {
    has_row: bool,
    is_open: bool,
    last: i64,
    records: i64,
    is_cut: bool,
    /// Whether the session surely had records. Otherwise, it may be only a draft, because it has a draft and no title,
    /// which the first prompt sets. Records without a prompt, such as those of usage, are then not known to be missing.
    had_records: bool,
    /// Number of entries that were found although the session's own row was lost.
    orphans: i64,
    /// Position ranges covered by packed rows.
    packed: Vec<(i64, i64)>,
}

impl SalvagedSession {
    /// Returns the number of entries known to be lost.
    fn missing_count(&self) -> i64 {
        if self.has_row { self.last.saturating_sub(self.records).max(0) } else { self.orphans }
    }

    /// Returns whether all of the session's entries were lost and their number is unknown.
    fn is_empty(&self) -> bool {
        self.had_records && self.records == 0
    }

    fn is_whole(&self) -> bool {
        !self.is_cut && self.records == self.last && !self.is_empty()
    }
}

impl Source {
    fn new(mut pages: Pages) -> Self {
        let roots = roots(&mut pages);
        let of_sessions: Vec<u32> = roots.iter().filter(|(name, _)| name == SESSIONS).map(|(_, root)| *root).collect();
        let has_all_sessions = pages.leaves(&of_sessions).1;
        let (leaves, is_whole) = pages.leaves(&roots.into_iter().map(|(_, root)| root).collect::<Vec<_>>());
        Self { pages, leaves, is_whole, has_all_sessions, unread: 0 }
    }

    /// Visits all readable rows of the given tables.
    fn each(&mut self, tables: &[StoreTable], mut see: impl FnMut(Row) -> rusqlite::Result<()>) -> rusqlite::Result<()> {
        for number in &self.leaves {
            let Some(page) = self.pages.read(*number) else { continue };
            for at in pages::rows(&page, *number) {
                let Some(head) = RowHead::read(&page, at).filter(|head| tables.contains(&head.table)) else { continue };
                match head.row(&page, &mut self.pages) {
                    Some(row) => see(row)?,
                    None => self.unread += 1,
                }
            }
        }
        Ok(())
    }

    fn into_new(mut self, transaction: &Transaction<'_>) -> rusqlite::Result<Salvage> {
        let mut known: BTreeMap<i64, SalvagedSession> = BTreeMap::new();
        self.each(&[StoreTable::Sessions], |row| session(transaction, &row, &mut known))?;
        let may_miss_sessions = !self.has_all_sessions || self.unread > 0;
        self.each(&[StoreTable::Packed], |row| salvage_packed_row(transaction, &row, &mut known))?;
        self.each(&[StoreTable::Records], |row| record(transaction, &row, &mut known))?;
        self.each(&[StoreTable::Decisions], |row| decision(transaction, &row, &known))?;
        self.each(&[StoreTable::Outbox], |row| outbox_row(transaction, &row))?;
        // If the trees are intact, an unreadable row may have been the last row of its session.
        let may_miss_more = !self.is_whole || self.unread > 0;
        let mut saved = Salvage { may_miss_more, may_miss_sessions, ..Salvage::default() };
        for (key, session) in known {
            saved.sessions += 1;
            saved.lost_entries = saved.lost_entries.saturating_add(session.missing_count());
            if !session.has_row {
                continue;
            }
            saved.saved += 1;
            saved.entries = saved.entries.saturating_add(session.records);
            saved.empty += usize::from(session.is_empty());
            saved.in_part += usize::from(!session.is_whole() && !session.is_empty());
            saved.may_miss_more |= session.is_empty();
            if session.is_open || session.is_empty() {
                transaction
                    .prepare_cached("INSERT OR IGNORE INTO records (session, seq, json, time) VALUES (?1, ?2, ?3, 0)")?
                    .execute(params![key, session.last + 1, MAY_BE_CUT])?;
            }
        }
        Ok(saved)
    }
}

/// Returns the name and root page of each table, read from the schema on the first page.
fn roots(pages: &mut Pages) -> Vec<(String, u32)> {
    let (leaves, true) = pages.leaves(&[1]) else { return Vec::new() };
    let mut roots = Vec::new();
    for number in leaves {
        let Some(page) = pages.read(number) else { return Vec::new() };
        for at in pages::rows(&page, number) {
            let Some((name, root)) = rows::parse_schema_row(&page, at) else { return Vec::new() };
            if [SESSIONS, "records", "packed", "decisions", "outbox"].contains(&name.as_str()) {
                roots.push((name, root));
            }
        }
    }
    // Every version had more tables than this, so the schema tree is not trustworthy.
    if roots.len() < 2 { Vec::new() } else { roots }
}

fn session(transaction: &Transaction<'_>, row: &Row, known: &mut BTreeMap<i64, SalvagedSession>) -> rusqlite::Result<()> {
    let values = &row.values;
    let (Some(id), Some(status)) = (values[1].text(), values[7].text()) else { return Ok(()) };
    if row.is_cut || !(1..=64).contains(&id.len()) || !id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
        return Ok(());
    }
    let added = transaction
        .prepare_cached(
            "INSERT OR IGNORE INTO sessions (key, id, workspace_id, workspace, title, created, updated, status, model, draft)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
        )?
        .execute(params![
            row.key, values[1], values[2], values[3], values[4], values[5], values[6], values[7], values[8], values[9]
        ])?;
    if added > 0 {
        let session = known.entry(row.key).or_default();
        session.has_row = true;
        session.is_open = status != SessionActivity::Idle.as_str();
        let has = |value: &CellValue| value.text().is_some_and(|text| !text.is_empty());
        session.had_records = has(&values[4]) || !has(&values[9]);
    }
    Ok(())
}

fn salvage_packed_row(
    transaction: &Transaction<'_>,
    row: &Row,
    known: &mut BTreeMap<i64, SalvagedSession>,
) -> rusqlite::Result<()> {
    let [_, CellValue::Int(key), CellValue::Int(first), CellValue::Int(last), CellValue::Blob(data)] = &row.values[..] else {
        return Ok(());
    };
    let (records, whole) = packed::unpack(data);
    let count = last.checked_sub(*first).and_then(|more| more.checked_add(1));
    if *first < 1 || count.is_none_or(|count| !(records.len().max(1) as i64..=MAX_IN_A_ROW).contains(&count)) {
        return Ok(());
    }
    let session = known.entry(*key).or_default();
    if !session.has_row {
        session.orphans = session.orphans.saturating_add(count.unwrap_or(0));
    }
    if !session.has_row || session.packed.iter().any(|(one, two)| *one <= *last && *first <= *two) {
        return Ok(());
    }
    transaction
        .prepare_cached("INSERT OR IGNORE INTO packed (session, first, last, data) VALUES (?1, ?2, ?3, ?4)")?
        .execute(params![key, first, last, data])?;
    session.packed.push((*first, *last));
    session.last = session.last.max(*last);
    session.records += records.len() as i64;
    session.is_cut |= !whole;
    Ok(())
}

fn record(transaction: &Transaction<'_>, row: &Row, known: &mut BTreeMap<i64, SalvagedSession>) -> rusqlite::Result<()> {
    let [_, CellValue::Int(key), CellValue::Int(seq), json, time] = &row.values[..] else { return Ok(()) };
    let session = known.entry(*key).or_default();
    session.orphans = session.orphans.saturating_add(i64::from(!session.has_row && *seq > 0));
    if *seq < 1 || !session.has_row || session.packed.iter().any(|(first, last)| (first..=last).contains(&seq)) {
        return Ok(());
    }
    let added = transaction
        .prepare_cached("INSERT OR IGNORE INTO records (session, seq, json, time) VALUES (?1, ?2, ?3, ?4)")?
        .execute(params![key, seq, json, if row.is_cut { &CellValue::Int(0) } else { time }])?;
    if added > 0 {
        session.last = session.last.max(*seq);
        let is_damaged = row.is_cut || !json.is_json();
        session.records += i64::from(!is_damaged);
        session.is_cut |= is_damaged;
    }
    Ok(())
}

/// Restores a logged decision. If its session has been deleted, the decision is stored with only the session's ID.
fn decision(transaction: &Transaction<'_>, row: &Row, known: &BTreeMap<i64, SalvagedSession>) -> rusqlite::Result<()> {
    let values = &row.values;
    let lost = matches!(values[2], CellValue::Int(key) if known.get(&key).is_none_or(|session| !session.has_row));
    let (session, workspace) = if lost { (&CellValue::Null, &CellValue::Text(Vec::new())) } else { (&values[2], &values[3]) };
    if row.is_cut {
        return Ok(());
    }
    transaction
        .prepare_cached(
            "INSERT OR IGNORE INTO decisions (key, time, session, workspace, tool, summary, verdict, decider, reason, mode)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
        )?
        .execute(params![
            row.key, values[1], session, workspace, values[4], values[5], values[6], values[7], values[8], values[9]
        ])?;
    Ok(())
}

/// Restores an outbox row. If the row had already been acknowledged, it may be sent again, with the same idempotency
/// key.
fn outbox_row(transaction: &Transaction<'_>, row: &Row) -> rusqlite::Result<()> {
    let [_, sink, id, time, kind, body @ CellValue::Blob(bytes)] = &row.values[..] else { return Ok(()) };
    let is_name = |value: &CellValue| value.text().is_some_and(|text| !text.is_empty() && text.len() <= 64);
    if row.is_cut || ![sink, id, kind].into_iter().all(is_name) {
        return Ok(());
    }
    let added = transaction
        .prepare_cached("INSERT OR IGNORE INTO outbox (key, sink, id, time, kind, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?
        .execute(params![row.key, sink, id, time, kind, body])?;
    if added > 0 {
        transaction
            .prepare_cached(
                "INSERT INTO outbox_sinks (sink, pending, bytes) VALUES (?1, 1, ?2)
                 ON CONFLICT (sink) DO UPDATE SET pending = pending + 1, bytes = bytes + ?2",
            )?
            .execute(params![sink, i64::try_from(bytes.len()).unwrap_or(i64::MAX)])?;
    }
    Ok(())
}

impl CellValue {
    fn text(&self) -> Option<&str> {
        match self {
            Self::Text(bytes) => std::str::from_utf8(bytes).ok(),
            Self::Null | Self::Int(_) | Self::Blob(_) => None,
        }
    }

    fn is_json(&self) -> bool {
        match self {
            Self::Text(bytes) | Self::Blob(bytes) => serde_json::from_slice::<serde::de::IgnoredAny>(bytes).is_ok(),
            Self::Null | Self::Int(_) => false,
        }
    }
}

impl ToSql for CellValue {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Int(number) => ValueRef::Integer(*number),
            Self::Text(bytes) => ValueRef::Text(bytes),
            Self::Blob(bytes) => ValueRef::Blob(bytes),
        }))
    }
}
