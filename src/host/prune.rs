//! Deletes sessions that exceed the age and size limits, and data that belongs to no session.

use super::context::AppContext;
use super::disk_usage::database_bytes;
use super::error::CliError;
use super::logging;
use super::stored_sessions::{artifact_bytes, delete_outside_store, open};
use crate::protocol::{SessionId, WorkspaceId};
use crate::store::{ExternalContents, ReleaseMode, SessionSummary, Size, Store};
use crate::sys::sandbox::abandoned_bases;
use crate::tools;
use crate::transfer::format::format_count;
use jiff::Timestamp;
use serde::Serialize;
use std::collections::{HashMap, HashSet};
use std::time::Duration;

const DAY_SECONDS: u64 = 86_400;

/// Age that exceeds that of any session.
const NEVER: Duration = Duration::from_secs(u64::MAX / 4);

/// Limits that determine which sessions are deleted.
#[derive(Debug, Clone)]
pub(crate) struct PruneLimits {
    /// Number of days after which an unused session is deleted. `None` means no limit.
    pub days: Option<u64>,
    /// Maximum total size in bytes. `None` means no limit.
    pub budget_bytes: Option<u64>,
    /// Project whose sessions are pruned. `None` selects all projects.
    pub workspace: Option<WorkspaceId>,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PrunedSession {
    pub session_id: SessionId,
    pub title: Option<String>,
    pub updated: Timestamp,
    pub bytes: u64,
    /// Reason for deleting the session.
    pub reason: String,
}

#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PruneReport {
    pub dry_run: bool,
    pub sessions: Vec<PrunedSession>,
    pub session_bytes: u64,
    pub artifact_bytes: u64,
    pub snapshot_bytes: u64,
    pub cache_bytes: u64,
    pub layer_bytes: u64,
    pub log_bytes: u64,
    /// Total number of bytes freed.
    pub freed_bytes: u64,
    /// Size of the database on disk in bytes, before and after pruning.
    pub database_bytes_before: u64,
    pub database_bytes: u64,
}

/// Prunes according to the configured limits, without printing anything. Errors are logged, and pruning is retried on
/// another day.
pub(crate) fn prune_quietly(app: &AppContext, store: &Store) {
    let retention = app.settings.retention;
    let rules = PruneLimits { days: retention.session_days, budget_bytes: Some(retention.sessions_bytes), workspace: None };
    match prune(app, store, &rules, false, ReleaseMode::InSteps) {
        Ok(pruned) => tracing::info!(sessions = pruned.sessions.len(), bytes = pruned.freed_bytes, "pruned"),
        Err(trouble) => tracing::warn!(%trouble, "cannot prune sessions"),
    }
}

pub(crate) fn prune(
    app: &AppContext,
    store: &Store,
    rules: &PruneLimits,
    dry_run: bool,
    how: ReleaseMode,
) -> Result<PruneReport, CliError> {
    let (data, retention) = (&app.directories.data, &app.settings.retention);
    let sizes = store.sizes()?;
    let mut pruned = PruneReport { dry_run, database_bytes_before: database_bytes(data), ..PruneReport::default() };
    let (artifacts, snapshots) = (app.artifacts(None), app.snapshots());
    let before = (artifacts.usage().unwrap_or_default(), snapshots.usage().unwrap_or_default());
    for gone in select_sessions(&store.sessions(None)?, &sizes, rules, Timestamp::now()) {
        if dry_run {
            pruned.artifact_bytes += artifact_bytes(app, &gone.session_id);
        } else {
            if !store.forget_if_idle(&gone.session_id, gone.updated)? {
                // Another process has opened the session.
                continue;
            }
            delete_outside_store(app, &gone.session_id);
        }
        pruned.session_bytes += gone.bytes;
        pruned.sessions.push(gone);
    }
    // After a damaged database was moved aside, data without a session is kept, because the sessions may be restored.
    let living: Option<HashSet<SessionId>> = if is_complete(data) {
        Some(store.sessions(None)?.into_iter().map(|session| session.session_id).collect())
    } else {
        None
    };
    let age = rules.days.map_or(NEVER, |days| Duration::from_secs(days.saturating_mul(DAY_SECONDS)));
    if rules.workspace.is_none() && rules.budget_bytes.is_some() {
        let failed = |what: &str, error: &dyn std::fmt::Display| tracing::warn!(%error, "cannot prune {what}");
        let more = artifacts.prune(living.as_ref(), age, dry_run).unwrap_or_else(|error| {
            failed("artifacts", &error);
            ExternalContents::default()
        });
        pruned.artifact_bytes += more.bytes;
        let more = snapshots.prune(living.as_ref(), age, dry_run).unwrap_or_else(|error| {
            failed("snapshots", &error);
            ExternalContents::default()
        });
        pruned.snapshot_bytes = more.bytes;
        pruned.cache_bytes = tools::prune_caches(&abandoned_bases(data), retention.caches_bytes, dry_run).bytes;
        pruned.layer_bytes = tools::prune_undecided(&abandoned_bases(data), retention.layers_bytes, dry_run);
        pruned.log_bytes = logging::prune(data, retention.logs_bytes, dry_run);
    }
    if !dry_run {
        let after = (artifacts.usage().unwrap_or_default(), snapshots.usage().unwrap_or_default());
        pruned.artifact_bytes = before.0.bytes.saturating_sub(after.0.bytes);
        pruned.snapshot_bytes = before.1.bytes.saturating_sub(after.1.bytes);
        if let Err(error) = store.release_pages(how) {
            tracing::warn!(%error, "cannot shrink the session database; free space in it is reused");
        }
    }
    pruned.database_bytes = database_bytes(data);
    pruned.freed_bytes = pruned.session_bytes
        + pruned.artifact_bytes
        + pruned.snapshot_bytes
        + pruned.cache_bytes
        + pruned.layer_bytes
        + pruned.log_bytes;
    Ok(pruned)
}

/// Returns whether the database is complete, which is the case unless a damaged one was moved aside.
fn is_complete(data: &std::path::Path) -> bool {
    let mut entries = std::fs::read_dir(data).into_iter().flatten().flatten();
    !entries.any(|entry| entry.file_name().to_string_lossy().contains(".damaged"))
}

/// Selects the sessions that are too old, and then the oldest of the remaining sessions until the total size is within
/// the limit. Never selects a session that is open in a process, or one that is interrupted, paused or waiting and
/// younger than the age limit.
fn select_sessions(
    sessions: &[SessionSummary],
    sizes: &HashMap<SessionId, Size>,
    rules: &PruneLimits,
    now: Timestamp,
) -> Vec<PrunedSession> {
    let bytes = |session: &SessionSummary| sizes.get(&session.session_id).map_or(0, |size| size.bytes);
    let mut total: u64 = sessions.iter().map(bytes).sum();
    let mut oldest: Vec<&SessionSummary> = sessions.iter().collect();
    oldest.sort_by_key(|session| session.updated);
    let here = |session: &&&SessionSummary| rules.workspace.as_ref().is_none_or(|here| session.workspace_id == *here);
    let free = oldest.iter().filter(|session| session.held_by.is_none()).filter(here);
    let (mut gone, mut left) = (Vec::new(), Vec::new());
    for session in free {
        let age = u64::try_from(now.duration_since(session.updated).as_secs()).unwrap_or(0);
        match rules.days {
            Some(days) if age >= days.saturating_mul(DAY_SECONDS) => {
                total -= bytes(session);
                gone.push((session, format!("not used for {}", format_count(age / DAY_SECONDS, "day"))));
            }
            _ if open(session).is_none() => left.push(session),
            _ => {}
        }
    }
    for session in left {
        if rules.budget_bytes.is_none_or(|budget| total <= budget) {
            break;
        }
        if bytes(session) > 0 {
            total -= bytes(session);
            gone.push((session, "sessions use more than retention.sessions_mb".to_owned()));
        }
    }
    let gone = gone.into_iter().map(|(session, reason)| PrunedSession {
        session_id: session.session_id.clone(),
        title: session.title.clone(),
        updated: session.updated,
        bytes: bytes(session),
        reason,
    });
    gone.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::SessionActivity;

    fn session(name: &str, days: i64, status: SessionActivity, held_by: Option<u32>) -> SessionSummary {
        let updated = Timestamp::UNIX_EPOCH + jiff::SignedDuration::from_hours(24 * (1000 - days));
        SessionSummary {
            session_id: SessionId::new(name),
            workspace_id: WorkspaceId::new(if name.starts_with("other") { "w2" } else { "w1" }),
            workspace: "/w".to_owned(),
            title: Some(name.to_owned()),
            created: updated,
            updated,
            status,
            model: String::new(),
            held_by,
            archived: false,
            of_agent: false,
            of_command: false,
            parent: None,
        }
    }

    fn names(sessions: &[SessionSummary], bytes: u64, rules: &PruneLimits) -> Vec<String> {
        let sizes = sessions.iter().map(|one| (one.session_id.clone(), Size { records: 1, bytes })).collect();
        let now = Timestamp::UNIX_EPOCH + jiff::SignedDuration::from_hours(24 * 1000);
        select_sessions(sessions, &sizes, rules, now).into_iter().map(|gone| gone.session_id.to_string()).collect()
    }

    #[test]
    fn old_sessions_are_pruned_and_open_or_recently_interrupted_ones_are_kept() {
        let sessions = [
            session("today", 0, SessionActivity::Idle, None),
            session("future", -3, SessionActivity::Idle, None),
            session("young interrupted", 5, SessionActivity::Running, None),
            session("old", 20, SessionActivity::Idle, None),
            session("old waiting", 21, SessionActivity::Waiting, None),
            session("old held", 30, SessionActivity::Idle, Some(1)),
            session("other old", 40, SessionActivity::Paused, None),
        ];
        let rules = PruneLimits { days: Some(10), budget_bytes: None, workspace: None };
        assert_eq!(names(&sessions, 10, &rules), ["other old", "old waiting", "old"]);
        let here = PruneLimits { workspace: Some(WorkspaceId::new("w1")), ..rules.clone() };
        assert_eq!(names(&sessions, 10, &here), ["old waiting", "old"]);
        let never = PruneLimits { days: None, ..rules.clone() };
        assert_eq!(names(&sessions, 10, &never), [] as [&str; 0]);
        let all = PruneLimits { days: Some(0), ..rules.clone() };
        assert_eq!(names(&sessions, 10, &all).len(), 6);
        let small = PruneLimits { budget_bytes: Some(45), ..rules.clone() };
        assert_eq!(names(&sessions, 10, &small), ["other old", "old waiting", "old"]);
        let smaller = PruneLimits { budget_bytes: Some(25), ..rules.clone() };
        assert_eq!(names(&sessions, 10, &smaller), ["other old", "old waiting", "old", "today", "future"]);
        let size_alone = PruneLimits { days: None, budget_bytes: Some(65), workspace: None };
        assert_eq!(names(&sessions, 10, &size_alone), ["old"]);
    }
}
