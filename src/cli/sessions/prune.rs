//! `aye sessions prune`: deletes sessions that exceed the age and size limits, and data that belongs to no session.

use super::args::PruneRun;
use crate::cli::sessions::args::SessionScope;
use crate::host::console::{print_json, print_text};
use crate::host::context::AppContext;
use crate::host::error::CliError;
use crate::host::exit::Exit;
use crate::host::prune::{PruneLimits, PruneReport, prune};
use crate::host::startup::open_store;
use crate::store::ReleaseMode;
use crate::transfer::format::{format_count, format_size, one_line};
use std::fmt::Write as _;

pub(crate) fn run(
    app: &AppContext,
    run: PruneRun,
    older_than: Option<u32>,
    scope: SessionScope,
    json: bool,
) -> Result<Exit, CliError> {
    let store = open_store(app)?;
    let retention = app.settings.retention;
    let rules = match older_than {
        // `--older-than` applies to sessions, by default those of this project.
        Some(days) => PruneLimits {
            days: Some(u64::from(days)),
            budget_bytes: None,
            workspace: (scope == SessionScope::Project).then(|| app.workspace_id()),
        },
        None => PruneLimits { days: retention.session_days, budget_bytes: Some(retention.sessions_bytes), workspace: None },
    };
    let pruned = prune(app, &store, &rules, run == PruneRun::Say, ReleaseMode::Whole)?;
    if json {
        print_json(&pruned);
    } else {
        print_text(&as_text(&pruned));
    }
    Ok(Exit::Completed)
}

fn as_text(pruned: &PruneReport) -> String {
    let mut text = String::new();
    for gone in &pruned.sessions {
        let id: String = gone.session_id.as_str().chars().take(8).collect();
        let title = gone.title.as_deref().map_or_else(|| "(no prompt)".to_owned(), one_line);
        let _ = writeln!(
            text,
            "{}  {}  {}  {title}  ({})",
            one_line(&id),
            gone.updated.strftime("%Y-%m-%d"),
            format_size(gone.bytes),
            gone.reason
        );
    }
    let would = if pruned.dry_run { "would be" } else { "were" };
    let _ = writeln!(
        text,
        "{} {would} deleted: {}",
        format_count(pruned.sessions.len() as u64, "session"),
        format_size(pruned.session_bytes)
    );
    let beside = [
        ("artifacts", pruned.artifact_bytes),
        ("snapshots", pruned.snapshot_bytes),
        ("caches", pruned.cache_bytes),
        ("layers", pruned.layer_bytes),
        ("logs", pruned.log_bytes),
    ];
    for (what, bytes) in beside.into_iter().filter(|(_, bytes)| *bytes > 0) {
        let _ = writeln!(text, "{what}: {}", format_size(bytes));
    }
    let back = pruned.database_bytes_before.saturating_sub(pruned.database_bytes);
    if !pruned.dry_run && pruned.session_bytes > 0 {
        let _ = writeln!(text, "the session database shrank by {}; the rest of the free space is reused", format_size(back));
    }
    text
}
