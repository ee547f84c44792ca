//! Usage report, which shows the tokens, cost, tasks and approvals of stored sessions by model, project or day.

use super::console::warn;
use super::context::AppContext;
use super::error::CliError;
use super::models::DEMO;
use super::startup::open_store;
use super::tasks::TaskDirectory;
use crate::llm::is_same_model;
use crate::protocol::{SessionId, WorkspaceId};
use crate::session::Totals;
use crate::store::{DecisionFilter, LoggedDecision, SessionSummary, Store, StoreError};
use crate::workspace::identity::workspace_id;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;

/// Name of the user in the decision log.
const USER: &str = "you";
/// Name of the row for decisions whose sessions have been deleted.
const DELETED: &str = "deleted sessions";

/// Name of the row for decisions in sessions that called no model, such as those of `aye apply`.
const NO_MODEL: &str = "no model";

/// Grouping of a report's rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UsageGroup {
    Model,
    /// By workspace directory.
    Project,
    /// By day, in UTC.
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
    /// Start of the reported period. `None` includes all sessions.
    pub since: Option<jiff::Timestamp>,
    /// Workspace to which the report is restricted. `None` includes all workspaces.
    pub workspace: Option<WorkspaceId>,
    pub by: UsageGroup,
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct UsageRow {
    /// Number of tasks that were started.
    pub tasks: u64,
    /// Number of model requests whose usage was reported or estimated.
    pub requests: u64,
    pub totals: Totals,
    /// Number of actions that the user approved.
    pub approved: u64,
    /// Number of actions that the user denied.
    pub denied: u64,
}

#[derive(Debug, Default, PartialEq)]
pub(crate) struct UsageReport {
    /// Rows with their names. Days are in chronological order; models and projects are sorted by cost and then by
    /// tokens, highest first.
    pub rows: Vec<(String, UsageRow)>,
    /// IDs of the sessions that could not be read and are not included.
    pub unreadable_sessions: Vec<String>,
}

impl UsageRow {
    fn add(&mut self, other: &Self) {
        self.tasks += other.tasks;
        self.requests += other.requests;
        self.totals.add_all(&other.totals);
        self.approved += other.approved;
        self.denied += other.denied;
    }
}

impl UsageReport {
    /// Returns the sum of all rows.
    pub(crate) fn total(&self) -> UsageRow {
        sum(self.rows.iter().map(|(_, row)| row))
    }
}

fn sum<'a>(rows: impl Iterator<Item = &'a UsageRow>) -> UsageRow {
    rows.fold(UsageRow::default(), |mut sum, row| {
        sum.add(row);
        sum
    })
}

/// Rows by name.
type UsageRows = BTreeMap<String, UsageRow>;

/// Usage that the journal of one session contains.
#[derive(Default)]
struct SessionUsage {
    own: UsageRows,
    /// Requests of the agents that the session started, as far as it was running when they ended.
    of_agents: UsageRows,
}

/// Usage of the sessions of one store.
#[derive(Default)]
struct StoreUsage {
    sessions: HashMap<SessionId, SessionUsage>,
    /// Sessions of agents, by the session that started them.
    agents: HashMap<SessionId, Vec<SessionId>>,
}

impl StoreUsage {
    /// Removes and returns the usage of a session and of the agents below it.
    ///
    /// The requests of agents are in the journals of two sessions. Those of the agents are complete and name the models,
    /// but they can be missing, for example after a cleanup or an import.
    fn take(&mut self, id: &SessionId) -> UsageRows {
        let SessionUsage { mut own, of_agents } = self.sessions.remove(id).unwrap_or_default();
        let mut below = UsageRows::new();
        for agent in self.agents.remove(id).unwrap_or_default() {
            add_rows(&mut below, &self.take(&agent));
        }
        let (found, known) = (sum(below.values()), sum(of_agents.values()));
        let is_complete = found.totals.tokens() >= known.totals.tokens() && found.requests >= known.requests;
        add_rows(&mut own, if is_complete { &below } else { &of_agents });
        own
    }
}

fn add_rows(rows: &mut UsageRows, more: &UsageRows) {
    for (name, row) in more {
        rows.entry(name.clone()).or_default().add(row);
    }
}

/// A store whose sessions are included in the report.
pub(crate) struct UsageSource {
    pub store: Store,
    /// Workspace to which all sessions in this store are attributed, used for a task that runs in a copy. If `None`,
    /// each session is attributed to its own workspace.
    pub workspace: Option<PathBuf>,
}

/// Opens the stores that contain sessions: the user's store, and the stores of tasks that run in copies.
///
/// # Errors
///
/// Returns an error if the user's store cannot be opened. If a task's store cannot be opened, this is only reported.
pub(crate) fn sources(app: &AppContext) -> Result<Vec<UsageSource>, CliError> {
    let mut sources = vec![UsageSource { store: open_store(app)?, workspace: None }];
    for task in TaskDirectory::all(&app.directories.shared) {
        if task.data() == app.directories.data || !task.data().join("aye.db").exists() {
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

/// Reads the usage of stored sessions. Deleted sessions, sessions of the demo and tasks that called no model are not
/// included, and records that a fork shares with its parent are counted only once.
///
/// # Errors
///
/// Returns an error if a store cannot be read. A session that cannot be read is only listed.
pub(crate) fn read(sources: &[UsageSource], filter: &UsageFilter) -> Result<UsageReport, StoreError> {
    let mut rows = UsageRows::new();
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
        let mut usage = StoreUsage::default();
        for session in &sessions {
            if let Some(parent) = session.parent.as_ref().filter(|_| session.of_agent) {
                usage.agents.entry(parent.clone()).or_default().push(session.session_id.clone());
            }
            if filter.since.is_some_and(|since| session.updated < since) {
                continue;
            }
            match read_session(store, session, filter) {
                Ok(read) => drop(usage.sessions.insert(session.session_id.clone(), read)),
                Err(error) => {
                    tracing::warn!(%error, session = %session.session_id, "cannot count the usage of a session");
                    unreadable_sessions.push(session.session_id.to_string());
                }
            }
        }
        let ids: HashSet<&SessionId> = sessions.iter().map(|session| &session.session_id).collect();
        // An agent whose parent was deleted is counted by itself.
        let has_parent = |session: &SessionSummary| session.parent.as_ref().is_some_and(|parent| ids.contains(parent));
        for session in sessions.iter().filter(|session| !session.of_agent || !has_parent(session)) {
            add_rows(&mut rows, &usage.take(&session.session_id));
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

fn read_session(store: &Store, session: &SessionSummary, filter: &UsageFilter) -> Result<SessionUsage, StoreError> {
    let mut usage = SessionUsage::default();
    // Records that do not name a model belong to the model of the last response.
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
        let rows = if entry.is_of_agent() { &mut usage.of_agents } else { &mut usage.own };
        let row = rows.entry(filter.by.name(time, model, &session.workspace)).or_default();
        // The task of an agent is a part of the task that started it.
        row.tasks += u64::from(entry.starts_task() && !session.of_agent);
        if let Some(spent) = entry.expense() {
            row.requests += 1;
            row.totals.add(spent);
        }
    })?;
    Ok(usage)
}

/// Returns whether a model is the recording of `aye demo`, which sends no requests.
fn is_demo(model: &str) -> bool {
    model.split_once('/').is_some_and(|(provider, _)| provider == DEMO)
}

/// Returns the name of a model, including its provider. A response contains only the name of the model, so the provider
/// is taken from `current`, the session's current model, if the names match. A provider may respond with the version of
/// the model, as in `claude-sonnet-5-20260901` for `claude-sonnet-5`.
fn full_name(model: &str, current: &str) -> String {
    let answered = current.split_once('/').map(|(provider, _)| format!("{provider}/{model}"));
    if answered.is_some_and(|answered| is_same_model(current, &answered)) { current.to_owned() } else { model.to_owned() }
}

fn add_decisions(decisions: &[LoggedDecision], sessions: &[SessionSummary], filter: &UsageFilter, rows: &mut UsageRows) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_of_the_current_model_counts_as_the_current_model() {
        let current = "anthropic/claude-sonnet-5";
        for model in ["claude-sonnet-5", "claude-sonnet-5-20260901", "claude-sonnet-5-2026-09-01"] {
            assert_eq!(full_name(model, current), current, "{model}");
        }
        for model in ["claude-sonnet-5-mini", "claude-sonnet", "sonnet-5"] {
            assert_eq!(full_name(model, current), model);
        }
        assert_eq!(full_name("gpt-5-2026-09-01", "openai-chat/gpt-5"), "openai-chat/gpt-5");
    }

    use crate::ports::{Durability, Record};
    use crate::protocol::{Mode, SAMPLED_BY_AGENT, Usage};
    use crate::store::NewSession;

    const TOKENS: u64 = 100;

    fn id(number: u32) -> SessionId {
        SessionId::new(format!("{number:032x}"))
    }

    /// Adds a session with these records.
    fn add(store: &Store, number: u32, started_by: Option<u32>, records: Vec<Record>) {
        let workspace = PathBuf::from("/work");
        let claim = store.create(NewSession {
            id: id(number),
            workspace_id: workspace_id(&workspace),
            workspace,
            model: format!("acme/model-{number}"),
            started_by: started_by.map(id),
            is_of_command: false,
        });
        let journal = store.journal(claim.id(), Mode::Ask);
        let appended = journal.append(records, Durability::Process);
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(appended).unwrap();
    }

    fn usage() -> Usage {
        Usage { input_tokens: TOKENS, ..Usage::default() }
    }

    /// Returns the record of a request that a session sent itself.
    fn own() -> Record {
        Record::Wasted { usage: usage(), cost_usd: Some(0.5), estimated: false, model: None }
    }

    /// Returns the record of a request of an agent in the session that started it.
    fn of_agent() -> Record {
        Record::Sampled { server: SAMPLED_BY_AGENT.to_owned(), usage: usage(), cost_usd: Some(0.5), estimated: false }
    }

    /// Returns the requests of each model.
    fn requests(store: Store) -> Vec<(String, u64)> {
        let filter = UsageFilter { since: None, workspace: None, by: UsageGroup::Model };
        let report = read(&[UsageSource { store, workspace: None }], &filter).unwrap();
        let total = report.total();
        assert_eq!(total.totals.usage.input_tokens, total.requests * TOKENS);
        assert_eq!(total.totals.as_expense().cost_usd, Some(total.requests as f64 * 0.5));
        let mut rows: Vec<_> = report.rows.into_iter().map(|(name, row)| (name, row.requests)).collect();
        rows.sort();
        rows
    }

    fn rows(expected: &[(&str, u64)]) -> Vec<(String, u64)> {
        expected.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
    }

    #[test]
    fn requests_that_agents_complete_after_their_session_ended_are_counted() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path()).unwrap();
        // The session ended before the last request of its agent and before both requests of the agent below it.
        add(&store, 1, None, vec![own(), of_agent()]);
        add(&store, 2, Some(1), vec![own(), own()]);
        add(&store, 3, Some(2), vec![own(), own()]);
        assert_eq!(requests(store), rows(&[("acme/model-1", 1), ("acme/model-2", 2), ("acme/model-3", 2)]));
    }

    #[test]
    fn requests_of_agents_count_once_and_without_their_sessions_as_those_of_the_parent() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path()).unwrap();
        add(&store, 1, None, vec![own(), of_agent(), of_agent()]);
        add(&store, 2, Some(1), vec![own(), of_agent()]);
        add(&store, 3, Some(2), vec![own()]);
        // The sessions of the agents of this session were removed, one of them or both.
        add(&store, 4, None, vec![of_agent(), of_agent()]);
        add(&store, 5, Some(4), vec![own()]);
        add(&store, 6, None, vec![of_agent()]);
        let expected = [("acme/model-1", 1), ("acme/model-2", 1), ("acme/model-3", 1), ("acme/model-4", 2), ("acme/model-6", 1)];
        assert_eq!(requests(store), rows(&expected));
    }

    #[test]
    fn agents_whose_parent_session_was_deleted_are_counted() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path()).unwrap();
        add(&store, 1, None, vec![own()]);
        add(&store, 2, Some(1), vec![own(), of_agent()]);
        add(&store, 3, Some(2), vec![own()]);
        store.delete(&id(1)).unwrap();
        assert_eq!(requests(store), rows(&[("acme/model-2", 1), ("acme/model-3", 1)]));
    }

    #[test]
    fn requests_of_removed_agents_are_counted_even_without_tokens() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path()).unwrap();
        let usage = Usage::default();
        let free = Record::Sampled { server: SAMPLED_BY_AGENT.to_owned(), usage, cost_usd: None, estimated: false };
        add(&store, 1, None, vec![own(), free.clone(), free]);
        let filter = UsageFilter { since: None, workspace: None, by: UsageGroup::Model };
        let report = read(&[UsageSource { store, workspace: None }], &filter).unwrap();
        assert_eq!(report.total().requests, 3);
    }
}
