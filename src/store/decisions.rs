//! Decision log, which records each decision and the rule or user behind it. It is stored next to the journal for a
//! limited time.

use super::StoreError;
use super::database::Database;
use super::logged_decision::LoggedDecision;
use super::outbox::{self, OutboxEntry, OutboxFeed, SessionOutbox};
use super::records::{self, Place};
use crate::ports::{Durability, Record};
use crate::protocol::{APPROVED_BY_YOU, CallDenial, CallId, Decision, Denier, Mode, NO_USER};
use crate::session::{CallChange, Change, SessionState, plans_call};
use rusqlite::{Transaction, params};
use std::collections::{HashMap, HashSet};

/// Maximum age in days of a logged decision.
const KEPT_DAYS: i64 = 90;
/// Maximum number of logged decisions.
const KEPT_ROWS: i64 = 50_000;
/// Maximum number of rows deleted at a time, to avoid delaying a step. Any rows beyond it are deleted by later
/// cleanups.
const MAX_SWEPT_ROWS: i64 = 2 * SWEEP_EVERY;
/// Number of recent records to search for a call whose approval was requested by an earlier process.
const CALL_LOOKBACK_RECORDS: i64 = 512;
/// Number of rows inserted between cleanups.
const SWEEP_EVERY: i64 = 256;
const DAY_MS: i64 = 86_400_000;
/// Maximum length of a summary in characters. Each summary is displayed as one line in a list.
const SUMMARY_CHARS: usize = 400;
/// Value of `by` if the user made the decision.
const YOU: &str = "you";
/// Value of `by` if the approval service denied the call.
const SERVICE: &str = "approval service";

/// Selection of entries from the decision log.
#[derive(Debug, Clone, Default)]
pub(crate) struct DecisionFilter {
    /// Prefix of the session ID. If absent, decisions of all sessions are selected.
    pub session: Option<String>,
    pub denied_only: bool,
    /// Maximum number of decisions to return. The most recent ones are chosen.
    pub most: usize,
}

/// Logged decision, without its time and session.
#[derive(Debug, Clone)]
pub(super) struct Row {
    /// ID of a call whose details are found only in the journal.
    pub unknown: Option<CallId>,
    pub tool_name: String,
    pub summary: String,
    pub verdict: &'static str,
    pub by: String,
    pub reason: String,
    pub mode: Option<&'static str>,
}

/// Unfinished calls and the approval mode of a session, collected from its records.
#[derive(Debug, Default)]
pub(super) struct Calls {
    calls: HashMap<CallId, (String, String)>,
    /// Changes that hooks made to unfinished calls.
    hooked: HashMap<CallId, String>,
    mode: Option<Mode>,
}

impl Calls {
    /// Returns the decisions contained in these changes.
    pub(super) fn decisions(&mut self, changes: &[Change<'_>]) -> Vec<Row> {
        let refused: HashSet<&CallId> = changes
            .iter()
            .filter_map(|change| match change {
                Change::Call { tool_call_id, change: CallChange::Refused { .. } } => Some(*tool_call_id),
                _ => None,
            })
            .collect();
        changes.iter().filter_map(|change| self.decision(change, &refused)).collect()
    }

    fn decision(&mut self, change: &Change<'_>, refused: &HashSet<&CallId>) -> Option<Row> {
        match change {
            Change::PolicyChanged { mode } => {
                self.mode = mode.or(self.mode);
                None
            }
            Change::Call { tool_call_id, change } => self.decision_on_call(tool_call_id, change, refused),
            _ => None,
        }
    }

    fn decision_on_call(&mut self, id: &CallId, change: &CallChange<'_>, refused: &HashSet<&CallId>) -> Option<Row> {
        match change {
            CallChange::Hooked { hooks } => {
                let words: Vec<String> = hooks.rewriting().into_iter().chain(hooks.question()).chain(hooks.changes()).collect();
                if !words.is_empty() {
                    self.hooked.insert(id.clone(), words.join("; "));
                }
                None
            }
            CallChange::Planned { call, summary, .. } => {
                self.calls.insert(id.clone(), (call.tool_name.clone(), (*summary).to_owned()));
                None
            }
            // A later answer belongs to the latest question.
            CallChange::Asked { approval } => {
                self.calls.insert(id.clone(), (approval.tool_name.clone(), approval.action_summary.clone()));
                None
            }
            CallChange::Started { rule, edited } => {
                let by = if *rule == APPROVED_BY_YOU { YOU } else { rule };
                let reason = self.hooked.get(id).cloned().unwrap_or_default();
                let row = self.row(id, "allow", by, &reason);
                let summary = edited.map_or_else(|| row.summary.clone(), |edited| edited.summary.clone());
                Some(Row { summary, ..row })
            }
            CallChange::Refused { rule, reason } => Some(self.row(id, "deny", rule, reason)),
            // A question withdrawn by the policy has no answer. The refusal is logged separately.
            CallChange::Decided { decision: Decision::Denied(_) } if refused.contains(id) => None,
            CallChange::Decided { decision: Decision::Denied(CallDenial { by, reason }) } => {
                let reason = reason.as_deref().unwrap_or_default();
                let (by, reason) = match by {
                    Denier::User => (YOU, reason),
                    Denier::Service => (SERVICE, reason),
                    Denier::Nobody => (NO_USER, ""),
                    Denier::Timeout | Denier::Cancel | Denier::Policy | Denier::AgentEnd => (by.as_str(), reason),
                };
                Some(self.row(id, "deny", by, reason))
            }
            CallChange::Finished { .. } => {
                self.calls.remove(id);
                self.hooked.remove(id);
                None
            }
            _ => None,
        }
    }

    fn row(&self, id: &CallId, verdict: &'static str, by: &str, reason: &str) -> Row {
        let known = self.calls.get(id).cloned();
        let unknown = known.is_none().then(|| id.clone());
        let (tool_name, summary) = known.unwrap_or_default();
        let mode = self.mode.map(Mode::as_str);
        Row { unknown, tool_name, summary, verdict, by: by.to_owned(), reason: reason.to_owned(), mode }
    }
}

/// Finds a call in the session's journal. Returns its tool name and summary.
fn find_call(transaction: &Transaction<'_>, session: i64, id: &CallId) -> rusqlite::Result<Option<(String, String)>> {
    let last = records::last(transaction, session)?;
    let mut found = None;
    records::visit(transaction, session, last - CALL_LOOKBACK_RECORDS, last, |place| {
        if let Place::Record { json, .. } = place
            && plans_call(json)
            && let Ok(record) = serde_json::from_slice::<Record>(json)
            && let Some(call) = SessionState::from_records([&record]).call(id)
        {
            found = Some((call.tool_name.clone(), call.summary.clone()));
        }
    })?;
    Ok(found)
}

/// Inserts decisions in the same transaction as their records, and occasionally deletes the oldest decisions. Returns
/// the outbox entries that `feed` creates from the decisions.
pub(super) fn insert(
    transaction: &Transaction<'_>,
    rows: &[Row],
    (session, workspace, mode): (Option<i64>, Option<&str>, &str),
    now: i64,
    feed: Option<&dyn OutboxFeed>,
) -> rusqlite::Result<Vec<OutboxEntry>> {
    let mut entries = Vec::new();
    for row in rows {
        let found = match (session, &row.unknown) {
            (Some(session), Some(id)) => find_call(transaction, session, id)?,
            (None, _) | (_, None) => None,
        };
        let (tool_name, summary) = found.as_ref().map_or((&row.tool_name, &row.summary), |(name, summary)| (name, summary));
        // Log the command that actually runs instead of the original one.
        let summary = if row.summary.is_empty() { summary } else { &row.summary };
        transaction
            .prepare_cached(
                "INSERT INTO decisions (time, session, workspace, tool, summary, verdict, decider, reason, mode)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            )?
            .execute(params![
                now,
                session,
                workspace,
                tool_name,
                one_line(summary),
                row.verdict,
                row.by,
                one_line(&row.reason),
                row.mode.unwrap_or(mode)
            ])?;
        let key = transaction.last_insert_rowid();
        if let Some(feed) = feed {
            entries.extend(feed.decision(&LoggedDecision {
                time: jiff::Timestamp::from_millisecond(now).unwrap_or_default(),
                session_id: None,
                workspace: workspace.unwrap_or_default().to_owned(),
                tool_name: tool_name.clone(),
                summary: one_line(summary),
                verdict: row.verdict.to_owned(),
                by: row.by.clone(),
                reason: one_line(&row.reason),
                mode: row.mode.unwrap_or(mode).to_owned(),
            }));
        }
        if key % SWEEP_EVERY == 0 {
            transaction
                .prepare_cached(
                    "DELETE FROM decisions WHERE key IN
                     (SELECT key FROM (SELECT key, time FROM decisions ORDER BY key LIMIT ?3) WHERE key <= ?1 OR time < ?2)",
                )?
                .execute(params![key - KEPT_ROWS, now - KEPT_DAYS * DAY_MS, MAX_SWEPT_ROWS])?;
        }
    }
    Ok(entries)
}

fn one_line(text: &str) -> String {
    let plain = text.chars().map(|letter| if letter.is_control() { ' ' } else { letter });
    plain.take(SUMMARY_CHARS).collect()
}

/// Logs a decision that was made outside a session.
pub(super) fn log_decision(
    database: &Database,
    decision: LoggedDecision,
    outbox: Option<SessionOutbox>,
) -> Result<(), StoreError> {
    let verdict = if decision.verdict == "allow" { "allow" } else { "deny" };
    let row = Row {
        unknown: None,
        tool_name: decision.tool_name,
        summary: decision.summary,
        verdict,
        by: decision.by,
        reason: decision.reason,
        mode: None,
    };
    let now = decision.time.as_millisecond();
    database.write(move |desk| {
        desk.transact(Durability::Process, row.summary.len(), |transaction| {
            let feed = outbox.as_ref().map(|outbox| outbox.feed.as_ref());
            let entries = insert(transaction, &[row], (None, Some(&decision.workspace), &decision.mode), now, feed)?;
            match &outbox {
                Some(outbox) => outbox::insert(transaction, &entries, outbox.limit, now).map(drop),
                None => Ok(()),
            }
        })
    })
}

/// Returns the most recent decisions that match the filter, oldest first.
pub(super) fn decisions(database: &Database, filter: &DecisionFilter) -> Result<Vec<LoggedDecision>, StoreError> {
    const SQL: &str = "SELECT time, id, place, tool, summary, verdict, decider, reason, mode FROM
        (SELECT d.*, coalesce(s.id, d.session) AS id, coalesce(d.workspace, s.workspace, '') AS place
         FROM decisions d LEFT JOIN sessions s ON s.key = d.session)
        WHERE (?1 IS NULL OR (id >= ?1 AND id < ?1 || 'g')) AND (NOT ?2 OR verdict = 'deny')
        ORDER BY key DESC LIMIT ?3";
    let most = i64::try_from(filter.most).unwrap_or(i64::MAX);
    let mut found: Vec<LoggedDecision> = database.read(|reader| {
        let mut statement = reader.prepare_cached(SQL)?;
        let rows = statement.query_map(params![filter.session, filter.denied_only, most], |row| {
            Ok(LoggedDecision {
                time: jiff::Timestamp::from_millisecond(row.get(0)?).unwrap_or_default(),
                session_id: row.get(1)?,
                workspace: row.get(2)?,
                tool_name: row.get(3)?,
                summary: row.get(4)?,
                verdict: row.get(5)?,
                by: row.get(6)?,
                reason: row.get(7)?,
                mode: row.get(8)?,
            })
        })?;
        rows.collect()
    })?;
    found.reverse();
    Ok(found)
}
