//! Usage report: tokens, cost, tasks and approvals of the stored sessions by model, project or day.

use super::console::warn;
use super::context::AppContext;
use super::error::CliError;
use super::models::DEMO;
use super::startup::open_store;
use super::tasks::TaskDirectory;
use crate::protocol::WorkspaceId;
use crate::session::Totals;
use crate::store::{DecisionFilter, LoggedDecision, SessionSummary, Store, StoreError};
use crate::workspace::identity::workspace_id;
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

/// Name of the user as the decider in the decision log.
const USER: &str = "you";
/// Name of the row for decisions whose session was deleted.
const DELETED: &str = "deleted sessions";

/// Name of the row for decisions in sessions that called no model, such as those of `aye apply`.
const NO_MODEL: &str = "no model";

/// Grouping of the rows in a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UsageGroup {
    Model,
    /// Directory of the sessions.
    Project,
    /// Day in UTC.
    Day,
}

impl UsageGroup {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Project => "project",
            Self::Day => "day",
        }
    }

    fn name(self, time: jiff::Timestamp, model: &str, project: &str) -> String {
        match self {
            Self::Model => model.to_owned(),
            Self::Project => project.to_owned(),
            Self::Day => time.strftime("%Y-%m-%d").to_string(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UsageFilter {
    /// Start of the period; `None` for all time.
    pub since: Option<jiff::Timestamp>,
    /// Workspace to count; `None` for all.
    pub workspace: Option<WorkspaceId>,
    pub by: UsageGroup,
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct UsageRow {
    /// Number of started tasks.
    pub tasks: u64,
    /// Number of model requests with reported or estimated usage.
    pub requests: u64,
    pub totals: Totals,
    /// Number of actions that the user approved.
    pub approved: u64,
    /// Number of actions that the user denied.
    pub denied: u64,
}

#[derive(Debug, Default, PartialEq)]
pub(crate) struct UsageReport {
    /// Rows by name. Days are in order; models and projects are sorted by descending cost and tokens.
    pub rows: Vec<(String, UsageRow)>,
    /// IDs of sessions that are not counted.
    pub unreadable_sessions: Vec<String>,
}

impl UsageReport {
    /// Returns the sum of all rows.
    pub(crate) fn total(&self) -> UsageRow {
        self.rows.iter().fold(UsageRow::default(), |mut sum, (_, row)| {
            sum.tasks += row.tasks;
            sum.requests += row.requests;
            sum.totals.add_all(&row.totals);
            sum.approved += row.approved;
            sum.denied += row.denied;
            sum
        })
    }
}

/// Store whose sessions are counted.
pub(crate) struct UsageSource {
    pub store: Store,
    /// Workspace to which the sessions of a task in a copy are attributed; `None` if each session is attributed to its
    /// own.
    pub workspace: Option<PathBuf>,
}

/// Returns the stores of all sessions: the user's store, and the stores of tasks in copies.
///
/// # Errors
///
/// Returns an error if the user's store cannot be opened. A task whose store cannot be opened is only reported.
pub(crate) fn sources(place: &AppContext) -> Result<Vec<UsageSource>, CliError> {
    let mut sources = vec![UsageSource { store: open_store(place)?, workspace: None }];
    for task in TaskDirectory::all(&place.directories.shared) {
        if task.data() == place.directories.data || !task.data().join("aye.db").exists() {
            continue;
        }
        let opened = task.description().and_then(|description| Ok((Store::open(&task.data())?, description.workspace)));
        match opened {
            Ok((store, workspace)) => sources.push(UsageSource { store, workspace: Some(workspace) }),
            Err(error) => warn(error.into_problem()),
        }
    }
    Ok(sources)
}

/// Reads the usage of the stored sessions. Sessions of the demo and tasks that called no model are not counted. Deleted sessions are not counted, and records that a fork shares with its
/// parent are counted once.
///
/// # Errors
///
/// Returns an error if a store cannot be read. A session that cannot be read is only listed.
pub(crate) fn read(sources: &[UsageSource], filter: &UsageFilter) -> Result<UsageReport, StoreError> {
    let mut rows = BTreeMap::new();
    let mut unreadable_sessions = Vec::new();
    for UsageSource { store, workspace } in sources {
        let is_elsewhere = |path: &PathBuf| filter.workspace.as_ref().is_some_and(|wanted| *wanted != workspace_id(path));
        if workspace.as_ref().is_some_and(is_elsewhere) {
            continue;
        }
        let mut sessions = store.sessions(filter.workspace.as_ref().filter(|_| workspace.is_none()))?;
        let mut decisions = store.decisions(&DecisionFilter { most: usize::MAX, ..DecisionFilter::default() })?;
        if let Some(workspace) = workspace {
            let project = workspace.to_string_lossy();
            for session in &mut sessions {
                session.workspace = project.clone().into_owned();
            }
            for decision in &mut decisions {
                decision.workspace = project.clone().into_owned();
            }
        }
        for session in &sessions {
            // The session that started an agent counts its requests.
            if session.of_agent || filter.since.is_some_and(|since| session.updated < since) {
                continue;
            }
            if let Err(error) = add_session(store, session, filter, &mut rows) {
                tracing::warn!(%error, session = %session.session_id, "cannot count the usage of a session");
                unreadable_sessions.push(session.session_id.to_string());
            }
        }
        add_decisions(&decisions, &sessions, filter, &mut rows);
    }
    let mut rows: Vec<(String, UsageRow)> = rows.into_iter().collect();
    if filter.by != UsageGroup::Day {
        let weight = |row: &UsageRow| (row.totals.as_expense().cost_usd.unwrap_or_default(), row.totals.tokens());
        rows.sort_by(|(_, left), (_, right)| {
            let (left, right) = (weight(left), weight(right));
            right.0.total_cmp(&left.0).then(right.1.cmp(&left.1))
        });
    }
    Ok(UsageReport { rows, unreadable_sessions })
}

fn add_session(
    store: &Store,
    session: &SessionSummary,
    filter: &UsageFilter,
    rows: &mut BTreeMap<String, UsageRow>,
) -> Result<(), StoreError> {
    // Some records do not name their model; it is that of the last response.
    let mut last_model: Option<String> = None;
    let counts_model = |model: &str| !model.is_empty() && !is_demo(model);
    store.for_each_tally_entry(&session.session_id, |time, entry| {
        if let Some(model) = entry.answering_model() {
            last_model = Some(full_name(model, &session.model));
        }
        let counts = entry.starts_task() || entry.expense().is_some();
        if !counts || filter.since.is_some_and(|since| time < since) {
            return;
        }
        let model =
            entry.model().filter(|_| entry.answering_model().is_none()).or(last_model.as_deref()).unwrap_or(&session.model);
        if !counts_model(model) {
            return;
        }
        let row = rows.entry(filter.by.name(time, model, &session.workspace)).or_default();
        row.tasks += u64::from(entry.starts_task());
        if let Some(spent) = entry.expense() {
            row.requests += 1;
            row.totals.add(spent);
        }
    })
}

/// Returns whether a model is the recording of `aye demo`, which sends no requests.
fn is_demo(model: &str) -> bool {
    model.split_once('/').is_some_and(|(provider, _)| provider == DEMO)
}

/// Returns the name of a model with its provider. A response only names the model; the session has the provider of its
/// current model.
fn full_name(model: &str, current: &str) -> String {
    let is_current = current.strip_suffix(model).is_some_and(|provider| provider.ends_with('/'));
    if is_current { current.to_owned() } else { model.to_owned() }
}

fn add_decisions(
    decisions: &[LoggedDecision],
    sessions: &[SessionSummary],
    filter: &UsageFilter,
    rows: &mut BTreeMap<String, UsageRow>,
) {
    let models: HashMap<&str, &str> =
        sessions.iter().map(|session| (session.session_id.as_str(), session.model.as_str())).collect();
    let by_user = decisions.iter().filter(|decision| decision.by == USER);
    for decision in by_user.filter(|decision| filter.since.is_none_or(|since| decision.time >= since)) {
        let model = decision.session_id.as_deref().and_then(|id| models.get(id)).copied();
        if filter.workspace.is_some() && model.is_none() {
            continue;
        }
        if model.is_some_and(is_demo) {
            continue;
        }
        let model = match model {
            Some("") => NO_MODEL,
            Some(model) => model,
            None => DELETED,
        };
        let row = rows.entry(filter.by.name(decision.time, model, &decision.workspace)).or_default();
        if decision.verdict == "allow" {
            row.approved += 1;
        } else {
            row.denied += 1;
        }
    }
}
