//! Prepares a session's store, lock, model and tools, without running the session yet.

use super::agent_authority::{AgentLinks, Authority, OfferServers, ParentTools};
use super::context::AppContext;
use super::error::CliError;
use super::interrupted_calls::recovered_states;
use super::language_servers::LanguageServerHandle;
use super::mcp_servers::McpServers;
use super::memory::Memory;
use super::models::ModelCatalog;
use super::offered_tools::{available, tools_for_model};
use super::policy_layers::Policy;
use super::sandbox_host::SandboxHost;
use super::session_error::SessionError;
use super::session_services::session_outbox;
use super::tool_name_lints::{find_misnamed, find_unmatched};
use super::user_rules::UserRules;
use super::web_search::session_search;
use crate::agent::{
    self, Account, AgentOptions, ApprovalOptions, Approver, Backoff, BudgetSetting, ModelSetup, OfferedTools, PolicySetup,
    PriceAssumption, PriceOptions, PromptFacts, RestoredSession, ResumePolicy, Setup, SummaryModelSetup,
};
use crate::config::{InstructionFile, Settings};
use crate::host::nesting::Nesting;
use crate::host::options::SessionChoice;
use crate::policy::redact::Redactor;
use crate::policy::{self, Enforcer};
use crate::ports::{
    ArtifactUploads, Artifacts, Checkpoints, InstructionSource, Journal, Model, Record, RecoveredCalls, SavedTail, UserQuestion,
    UserQuestions,
};
use crate::protocol::{
    Action, BudgetLimit, BudgetScope, BudgetUnit, CallId, ForkUntil, Mode, Problem, SessionId, Target, ToolResult,
};
use crate::services::join_outboxes;
use crate::session::{CallChange, Change, SessionState};
use crate::store::{Claim, LoadedSession, NewSession, SessionOutbox, SessionPart, SessionSummary, Store};
use crate::sys::http::fetch::Fetcher;
use crate::sys::process::{EnvironmentSelection, Helper, Shell};
use crate::sys::sandbox::abandoned_bases;
use crate::tools::{
    self, ChangeLog, CommandSettings, Commands, CommitTarget, EditorConnection, HttpAccess, LoadedTools, PathAccess, ReadState,
    RecoveryResult, Router, SandboxPolicy, SessionHooks, SessionSearch, SessionServices, SessionSkills, ToolSources, Toolset,
};
use crate::workspace::git::Repository;
use crate::workspace::toolchain;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::sync::{Notify, mpsc};

/// Default limit on the output of a response, in tokens.
const OUTPUT_TOKENS: u64 = 32_000;
/// Default limit on the saved output of a command, in bytes.
const OUTPUT_BYTES: usize = 100 << 10;

/// Approximate number of records shown at a time.
pub(crate) const PIECE_RECORDS: usize = 200;

/// A stored session that this process owns.
pub(crate) struct Session {
    pub store: Store,
    pub claim: Claim,
    pub records: Vec<Record>,
    /// State that results from these records.
    pub state: SessionState,
    pub draft: String,
    /// Last output of the commands that were running when the previous process exited.
    pub tails: HashMap<CallId, SavedTail>,
    /// End of the journal. Earlier records are loaded later.
    pub tail: SessionPart,
    /// Model that a resumed session last used.
    pub model_before: Option<String>,
    /// Notices that are shown before anything else.
    pub notices: Vec<String>,
    pub kept: SharedToolState,
    /// Notices about names that match no tool, as shown at startup.
    pub unmatched_names: Vec<String>,
    /// Whether the session is archived.
    is_archived: bool,
    /// True if a command of aye wrote the prompt of the session.
    is_of_command: bool,
}

/// State shared by the session's tools, whichever policy applies. Cheap to clone.
#[derive(Clone)]
pub(crate) struct SharedToolState {
    session: SessionId,
    since: SystemTime,
    /// Commands that run in the background.
    commands: Commands,
    /// Files that the model has seen in this process.
    seen: ReadState,
    /// Snapshots of the workspace, taken before each change.
    checkpoints: Arc<dyn Checkpoints>,
    /// Storage for outputs that are too long for the conversation.
    artifacts: Arc<dyn Artifacts>,
    /// Log of changes since the session began.
    changes: ChangeLog,
    /// Notification that a new key has become known.
    new_key: Arc<Notify>,
    /// MCP servers, if any are configured.
    servers: Option<McpServers>,
    /// Unsaved files in an editor.
    editor: Option<EditorConnection>,
    /// Tools that the model loaded on demand.
    loaded: LoadedTools,
    /// Web search, and the number of searches that remain.
    search: SessionSearch,
    /// Available skills, and those that the running task uses.
    skills: SessionSkills,
    /// Questions from the model to the user.
    questions: UserQuestions,
    /// Agents, or `None` if the session cannot start any.
    agents: Option<AgentLinks>,
    /// Language servers, or `None` if they are disabled or the project is not trusted.
    language_servers: Option<LanguageServerHandle>,
    /// Uploads of artifacts to the object store, or `None` if no store is configured.
    uploads: Option<Arc<dyn ArtifactUploads>>,
    /// Outbox of rows for services, which are committed together with the session's records.
    outbox: Option<SessionOutbox>,
}

impl SharedToolState {
    /// Starts accepting questions from the model. Returns their receiver.
    fn open_questions(&mut self) -> mpsc::Receiver<UserQuestion> {
        let (asks, questions) = UserQuestions::new();
        self.questions = asks;
        questions
    }

    fn new(app: &AppContext, session: &SessionId, resumed: bool) -> Self {
        let snapshots = Arc::new(app.snapshots());
        Self {
            session: session.clone(),
            since: SystemTime::now(),
            commands: Commands::default(),
            seen: ReadState::default(),
            artifacts: Arc::new(app.artifacts(Some(session))),
            changes: match &app.parent {
                Some(parent) => parent.tools.changes.for_agent(),
                None => ChangeLog::new(snapshots.clone(), snapshots.clone(), session.clone(), resumed),
            },
            checkpoints: snapshots,
            new_key: Arc::default(),
            servers: None,
            editor: None,
            loaded: LoadedTools::default(),
            search: session_search(app),
            skills: match &app.parent {
                Some(parent) => SessionSkills::for_agent(&parent.agent.name, parent.scope.clone(), parent.tools.skills.clone()),
                None => SessionSkills::default(),
            },
            questions: UserQuestions::without_user(),
            agents: None,
            language_servers: None,
            uploads: match &app.parent {
                Some(parent) => parent.tools.uploads.clone(),
                None => None,
            },
            outbox: None,
        }
    }

    /// Returns the tools that the model has loaded on demand in this session.
    pub(crate) fn loaded_tools(&self) -> &LoadedTools {
        &self.loaded
    }

    /// Restores state from the session's records: the tools that were loaded or used, in the same order, the number of
    /// web searches, and the active skills of an unfinished task. Also prepares the servers for the model.
    fn restore(&self, app: &AppContext, model: &dyn Model, records: &[Record]) {
        if let Some(servers) = self.servers() {
            servers.set_context_window(model.facts().context_window);
        }
        self.search.set_model(model.web_search());
        self.skills.replace(app.skills.skill_set());
        let mut state = SessionState::default();
        for record in records {
            match state.apply(record).change {
                Change::Call { change: CallChange::Planned { actions, .. }, .. } => self.loaded.note_plan(actions),
                Change::Call { change: CallChange::Finished { result, .. }, .. } => {
                    self.loaded.note_result(result);
                    self.search.note_result(result);
                    self.skills.note_result(result);
                }
                Change::TaskStarted { prompt, .. } => self.skills.begin_task(prompt.typed_text()),
                Change::Steered { message } => self.skills.note_prompt(message.typed_text()),
                Change::TaskEnded { .. } => self.skills.end_task(),
                _ => {}
            }
        }
    }

    /// Returns the web search of the session.
    pub(crate) fn search(&self) -> &SessionSearch {
        &self.search
    }

    /// Returns the MCP servers of the session, if any are configured.
    pub(crate) fn servers(&self) -> Option<&McpServers> {
        self.servers.as_ref()
    }

    /// Returns the state that the session shares with the agents it starts.
    pub(crate) fn for_agents(&self, app: &AppContext) -> ParentTools {
        let offer = |servers: McpServers| -> OfferServers {
            let app = app.clone();
            Arc::new(move |policy| servers.offer_to_agent(&app, policy))
        };
        // An agent has no servers of its own, and offers the servers of the session that started it.
        let outer = app.parent.as_ref().map(|parent| &parent.tools);
        ParentTools {
            changes: self.changes.clone(),
            skills: self.skills.clone(),
            servers: self.servers.clone().map(offer).or_else(|| outer.and_then(|tools| tools.servers.clone())),
            diagnostics: (self.language_servers.as_ref().map(LanguageServerHandle::port))
                .or_else(|| outer.and_then(|tools| tools.diagnostics.clone())),
            uploads: self.uploads.clone(),
        }
    }

    /// Enables the session to start agents.
    pub(crate) fn start_agents(&mut self, links: AgentLinks) {
        self.agents = Some(links);
    }

    /// Sets the account that pays for the agents.
    pub(crate) fn connect_account(&self, account: &Account) {
        if let Some(links) = &self.agents {
            // A session starts once.
            let _ = links.account.set(account.clone());
        }
    }

    /// Applies a new policy to the session's agents.
    pub(crate) fn set_authority(&self, policy: &Policy, enforcer: &Enforcer) {
        if let Some(links) = &self.agents {
            links.authority.send_replace(Authority { policy: policy.clone(), enforcer: enforcer.clone() });
        }
    }

    /// Connects the session's tools to these language servers.
    pub(super) fn connect_language_servers(&mut self, servers: LanguageServerHandle) {
        self.language_servers = Some(servers);
    }

    /// Enables uploads of artifacts to the object store.
    pub(super) fn connect_uploads(&mut self, uploads: Arc<dyn ArtifactUploads>) {
        self.uploads = Some(uploads);
    }

    /// Sets the outbox whose rows for services are committed together with the session's records.
    pub(super) fn connect_outbox(&mut self, outbox: SessionOutbox) {
        self.outbox = Some(outbox);
    }

    pub(crate) fn artifacts(&self) -> Arc<dyn Artifacts> {
        self.artifacts.clone()
    }

    /// Connects the session's tools to these MCP servers.
    pub(crate) fn connect_servers(&mut self, servers: McpServers) {
        self.servers = Some(servers);
    }

    /// Connects the session to an editor that shares its unsaved files.
    pub(crate) fn connect_editor(&mut self, editor: EditorConnection) {
        self.editor = Some(editor);
    }

    /// Waits until a new key has become known, which must then be redacted.
    pub(crate) async fn new_key(&self) {
        self.new_key.notified().await;
    }

    pub(crate) fn session(&self) -> &SessionId {
        &self.session
    }

    /// Returns the settings for the session's tools under a policy.
    pub(crate) fn tool_settings(&self, app: &AppContext, policy: &Enforcer, sandbox: SandboxPolicy) -> tools::ToolSettings {
        let base = tool_settings(app, policy, sandbox);
        let memory = Memory::for_session(app, &base.redactor);
        let session = SessionServices {
            id: Some(self.session.clone()),
            since: self.since,
            commands: self.commands.clone(),
            seen: self.seen.clone(),
            checkpoints: Some(self.checkpoints.clone()),
            artifacts: Some(self.artifacts.clone()),
            uploads: self.uploads.clone(),
            changes: Some(self.changes.clone()),
            editor: self.editor.clone(),
            search: self.search.clone(),
            skills: self.skills.clone(),
            questions: self.questions.clone(),
            memory,
            hooks: session_hooks(app),
            agents: self.agents.as_ref().map(|links| links.agents.clone()),
            diagnostics: match &app.parent {
                Some(parent) => parent.tools.diagnostics.clone(),
                None => self.language_servers.as_ref().map(LanguageServerHandle::port),
            },
        };
        tools::ToolSettings { session, ..base }
    }

    /// Returns the session's tools under a policy.
    pub(crate) fn toolset(&self, app: &AppContext, policy: &Enforcer, sandbox: SandboxPolicy) -> Toolset {
        self.skills.replace(app.skills.skill_set());
        if let Some(links) = &self.agents {
            links.agents.replace(app.agents.set());
        }
        let settings = self.tool_settings(app, policy, sandbox);
        if let Some(servers) = &self.language_servers {
            servers.set_settings(&settings);
        }
        let sources = ToolSources {
            remote: match &app.parent {
                Some(parent) => parent.tools.servers.as_ref().map(|offer| offer(policy)),
                None => self.servers.as_ref().map(|servers| servers.offer(app, policy, &settings)),
            },
            on_demand: app.settings.tools.on_demand,
            loaded: self.loaded.clone(),
            ..tool_sources(app, policy)
        };
        Toolset::new(settings, sources)
    }
}

impl Session {
    /// Returns whether the session does not contain any messages yet.
    pub(crate) fn is_new(&self) -> bool {
        self.tail.records.is_empty() && self.records.is_empty()
    }

    pub(crate) fn id(&self) -> &SessionId {
        self.claim.id()
    }

    /// Marks the session as resumed. If it is archived, unarchives it and adds a notice.
    pub(super) fn mark_resumed(&mut self) {
        if std::mem::take(&mut self.is_archived) {
            self.notices.push(match self.store.archive(self.claim.id(), false) {
                Ok(()) => "This session was archived. It is now unarchived.".to_owned(),
                Err(error) => format!("cannot unarchive this session: {error}"),
            });
        }
    }

    /// Makes the session of a command one of the user, who continues it.
    pub(super) fn mark_continued_by_user(&mut self) {
        if std::mem::take(&mut self.is_of_command)
            && let Err(error) = self.store.continue_by_user(self.claim.id())
        {
            tracing::warn!(%error, "cannot mark the session as continued");
        }
    }

    /// Stops the MCP servers and the language servers, and waits, for a limited time, until they have exited. Must be
    /// called for every session that was opened.
    pub(super) async fn end_servers(&self) {
        let servers = async {
            if let Some(servers) = self.kept.servers() {
                servers.end().await;
            }
        };
        let language_servers = async {
            if let Some(servers) = &self.kept.language_servers {
                servers.end().await;
            }
        };
        tokio::join!(servers, language_servers);
    }

    /// Adds the history, which was loaded after the screen became visible.
    pub(super) fn add_history(&mut self, loaded: LoadedSession) {
        self.tail = SessionPart::default();
        self.notices.extend(unreadable(&loaded));
        self.state = SessionState::from_records(&loaded.records);
        self.records = loaded.records;
        self.tails = loaded.tails;
    }
}

/// Returns the chosen session, or `None` for a new one. If a session is chosen by ID, its workspace is used.
pub(super) fn choose(
    store: &Store,
    app: &mut AppContext,
    choice: &SessionChoice,
) -> Result<Option<SessionSummary>, SessionError> {
    let found = match choice {
        SessionChoice::New => return Ok(None),
        SessionChoice::Latest | SessionChoice::Pick => store.latest(&app.workspace_id())?,
        SessionChoice::Id(id) => Some(store.find(id)?),
        SessionChoice::Fork(id) => {
            let parent = match id {
                Some(id) => Some(store.find(id)?),
                None => store.latest(&app.workspace_id())?,
            };
            let copied = parent
                .map(|parent| crate::host::stored_sessions::fork(store, app, &parent.session_id, &ForkUntil::End))
                .transpose()
                .map_err(SessionError::Failed)?;
            copied.map(|id| store.find(id.as_str())).transpose()?
        }
    };
    let Some(summary) = found else {
        let error = CliError::usage(format!("no session in `{}` yet", app.workspace.display()));
        return Err(SessionError::Failed(error.hint("run `aye` to start one")));
    };
    if summary.of_agent && app.parent.is_none() {
        let id = &summary.session_id;
        let problem = Problem::new(format!("cannot resume session `{id}`: it belongs to an agent"));
        let problem =
            problem.hint(format!("run `aye sessions show {id}` to read it, or `aye --fork={id}` to continue in a copy"));
        return Err(SessionError::Failed(CliError::usage(problem)));
    }
    if summary.workspace_id != app.workspace_id() {
        let workspace = std::path::Path::new(&summary.workspace).canonicalize().map_err(|error| {
            let what = format!("cannot use this session's directory, `{}`", summary.workspace);
            SessionError::Failed(CliError::failed(Problem::new(what).because(error)))
        })?;
        app.roots[0].clone_from(&workspace);
        app.hooks = app.hooks.in_workspace(&workspace);
        app.workspace = workspace;
    }
    Ok(Some(summary))
}

/// Returns the hooks for sessions in this environment, or `None` if there are none.
fn session_hooks(app: &AppContext) -> Option<SessionHooks> {
    let hooks = app.hooks.set().for_session()?;
    Some(match &app.parent {
        Some(parent) => hooks.for_agent(parent.agent.clone(), parent.session.clone()),
        None => hooks,
    })
}

/// Part of a journal to load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LoadScope {
    All,
    /// The end of the history, which is enough to fill a few screens. Earlier records are loaded in the background.
    Tail,
}

fn unreadable(loaded: &LoadedSession) -> Option<String> {
    let count = loaded.skipped;
    (count > 0).then(|| format!("this version cannot read {count} records in this session; they are kept but not shown"))
}

/// Facts about a session that is created if none is chosen.
pub(super) struct NewSessionTerms {
    pub model: String,
    /// True if a command of aye writes the prompt.
    pub is_of_command: bool,
}

/// Creates a session, which has no records yet.
fn create(store: Store, app: &AppContext, new: NewSessionTerms, notices: Vec<String>) -> Session {
    let new_id = || SessionId::new(uuid::Uuid::new_v4().simple().to_string());
    let claim = store.create(NewSession {
        id: app.parent.as_ref().map_or_else(new_id, |parent| parent.child().clone()),
        started_by: app.parent.as_ref().map(|parent| parent.session.clone()),
        workspace_id: app.workspace_id(),
        workspace: app.workspace.clone(),
        model: new.model,
        is_of_command: new.is_of_command,
    });
    let kept = SharedToolState::new(app, claim.id(), false);
    Session {
        store,
        claim,
        records: Vec::new(),
        state: SessionState::default(),
        draft: String::new(),
        tails: HashMap::new(),
        tail: SessionPart::default(),
        model_before: None,
        notices,
        kept,
        unmatched_names: Vec::new(),
        is_archived: false,
        is_of_command: false,
    }
}

/// Claims the chosen session for this process, or creates a new session.
pub(super) fn open(
    store: Store,
    app: &AppContext,
    policy: &Policy,
    chosen: Option<SessionSummary>,
    new: NewSessionTerms,
    extent: LoadScope,
) -> Result<Session, SessionError> {
    let mut notices = Vec::new();
    if app.is_too_wide() {
        let workspace = app.workspace_display();
        notices.push(format!(
            "`{workspace}` is too broad a workspace, so aye asks before every read, write and command. \
                Start aye in a project directory."
        ));
    }
    notices.extend(find_misnamed(app, policy));
    let Some(summary) = chosen else { return Ok(create(store, app, new, notices)) };
    let claim = store.claim(&summary.session_id)?;
    let (records, draft, tail, tails) = match extent {
        LoadScope::All => {
            let loaded = store.load(&summary.session_id)?;
            notices.extend(unreadable(&loaded));
            (loaded.records, loaded.draft, SessionPart::default(), loaded.tails)
        }
        LoadScope::Tail => {
            let tail = store.page(&summary.session_id, None, PIECE_RECORDS)?;
            (Vec::new(), store.draft(&summary.session_id)?, tail, HashMap::new())
        }
    };
    let kept = SharedToolState::new(app, claim.id(), true);
    // A session that started without a model has no previous model.
    let model_before = Some(summary.model).filter(|model| !model.is_empty());
    let is_archived = summary.archived && app.parent.is_none();
    let is_of_command = summary.of_command;
    let (state, unmatched_names) = (SessionState::from_records(&records), Vec::new());
    Ok(Session {
        store,
        claim,
        records,
        state,
        draft,
        tails,
        tail,
        model_before,
        notices,
        kept,
        unmatched_names,
        is_archived,
        is_of_command,
    })
}

/// Limits, approval settings and other options of a session.
pub(super) struct SessionOptions {
    pub approver: Approver,
    pub unfinished: ResumePolicy,
    pub max_steps: Option<u32>,
    /// Time after which an approval is denied if nobody has decided on it. `None` if a user is at the screen.
    pub approval_timeout: Option<Duration>,
    pub instructions: Vec<InstructionFile>,
    /// JSON Schema for the final response.
    pub output_schema: Option<String>,
    /// Source of instructions for directories below the workspace.
    pub guidance: Option<Arc<dyn InstructionSource>>,
    /// Files in which "always allow" saves rules.
    pub rules: Arc<UserRules>,
    /// Sandbox used in this run.
    pub standing: SandboxHost,
    /// MCP servers, if any are configured.
    pub remote: Option<agent::ServerConnections>,
}

/// Creates the router for a session's tools, and adds the notices about the tools. Also returns the known outcomes of
/// earlier calls, and recovery information about the remaining ones.
fn route(app: &AppContext, session: &mut Session, tools: Toolset) -> (Arc<Router>, Vec<ToolResult>, RecoveredCalls) {
    let router = Arc::new(Router::new(tools));
    let (settled, known) = recover(app, session, &router);
    note_tools(app, session, &router);
    (router, settled, known)
}

/// Completes the unfinished work of an earlier process, as far as the tools can. Returns the known outcomes of that
/// process's calls, and recovery information about the remaining ones.
fn recover(app: &AppContext, session: &mut Session, router: &Router) -> (Vec<ToolResult>, RecoveredCalls) {
    let state = &session.state;
    let has_no_result = |id: &CallId| state.calls().iter().any(|call| call.tool_call_id == *id && call.has_no_result());
    let undecided = |id: &CallId| state.calls().iter().any(|call| call.tool_call_id == *id && call.undecided_layer().is_some());
    let recovered = router.recover(&abandoned_bases(&app.directories.data), &has_no_result, &undecided);
    let RecoveryResult { settled, notices, .. } = recovered;
    let known = RecoveredCalls { found: recovered_states(state), tails: std::mem::take(&mut session.tails) };
    session.notices.extend(notices);
    (settled, known)
}

/// Returns everything the agent needs to run the session. The caller keeps the lock, which must outlive the session.
pub(super) fn setup(
    (app, policy): (&AppContext, &Policy),
    session: &mut Session,
    (model, summary_model): (Arc<dyn Model>, SummaryModelSetup),
    terms: SessionOptions,
) -> Setup {
    let (policy_name, policy) = (policy.name.clone(), terms.standing.enforcer(app, policy));
    let sandbox_policy = terms.standing.sandbox_policy(&policy);
    sandbox_policy.start_scan();
    let (sandbox, sandbox_status) = (terms.standing.describe(&sandbox_policy), terms.standing.status(&sandbox_policy, &policy));
    session.kept.restore(app, &*model, &session.records);
    let (questions, tools) = (session.kept.open_questions(), session.kept.toolset(app, &policy, sandbox_policy));
    let (redactor, artifacts) = (tools.settings().redactor.clone(), tools.settings().session.artifacts.clone());
    let (router, settled, known) = route(app, session, tools);
    let options = AgentOptions {
        model: model.facts(),
        effort: app.settings.effort.map(|set| set.effort),
        effort_for_this_run: app.settings.effort.is_some_and(|set| set.by_flag),
        prices: PriceOptions { general: assumed_price(&app.settings), of_parent: app.settings.price_of_parent.clone() },
        fallback_models: app.settings.fallback_models(),
        summary_model: summary_model.model.as_ref().map(|model| model.facts()),
        model_before: session.model_before.take(),
        max_output_tokens: OUTPUT_TOKENS,
        max_steps: terms.max_steps.or_else(|| app.settings.task_steps()).unwrap_or(agent::MAX_STEPS),
        limits: limits(&app.settings, terms.max_steps),
        approvals: ApprovalOptions {
            approver: terms.approver,
            agent: app.parent.as_ref().map(|parent| parent.agent.clone()),
            timeout: terms.approval_timeout,
        },
        backoff: backoff(&app.settings),
        system: redactor.redact(&system_prompt(app, terms.instructions, terms.output_schema)).text.into(),
        tools: OfferedTools { definitions: tools_for_model(&router, &policy).into(), names: available(&router, &policy) },
        sandbox,
        hooks: session_hooks(app).map(|hooks| hooks.events()).unwrap_or_default(),
        laxest: most_permissive_mode(app),
        chosen_mode: app.chosen_mode,
        compact_at_percent: app.settings.context.compact_at_percent,
        service_session: app.new_service_session(&session.state),
    };
    Setup {
        journal: session_journal(app, session, (model.name(), &redactor)),
        policy: PolicySetup { enforcer: policy, name: policy_name, updates: None },
        options,
        models: ModelSetup {
            current: model,
            all: Arc::new(ModelCatalog::new(app).with_key_notification(session.kept.new_key.clone())),
            summary: summary_model,
        },
        router,
        guidance: terms.guidance,
        artifacts,
        rules: terms.rules,
        workspace_id: app.workspace_id(),
        session_id: session.claim.id().clone(),
        workspace: app.workspace.display().to_string(),
        mode: app.mode,
        restored: RestoredSession { records: std::mem::take(&mut session.records), unfinished: terms.unfinished, settled, known },
        sandbox_status,
        running: Some(session.kept.commands.watch()),
        tell_changes: false,
        redactor,
        remote: terms.remote,
        questions: Some(questions).filter(|_| terms.approver == Approver::User),
        room: None,
    }
}

/// Returns the journal for a session, whose records are also sent to the configured services.
fn session_journal(app: &AppContext, session: &Session, (model, redactor): (&str, &Arc<Redactor>)) -> Arc<dyn Journal> {
    let services = session_outbox(app, (session.id(), model), &session.records, redactor);
    let outbox = join_outboxes(services, session.kept.outbox.clone());
    session.store.journal_with_outbox(session.id(), app.mode, outbox)
}

/// Adds the notices about a session's tools.
fn note_tools(app: &AppContext, session: &mut Session, router: &Router) {
    session.notices.extend(router.remote().map(tools::RemoteTools::notices).unwrap_or_default());
    session.unmatched_names = find_unmatched(&app.tool_limits(), router);
    let notices = app.skills.notices().into_iter().chain(app.agents.notices());
    session.notices.extend(session.unmatched_names.iter().cloned().chain(notices));
}

/// Returns the least strict mode that can be selected during a session.
fn most_permissive_mode(app: &AppContext) -> Mode {
    match Nesting::detect() {
        Nesting::Outermost => Mode::Auto,
        // A program that aye runs could request more permissions.
        Nesting::InsideAye => app.mode,
    }
}

fn assumed_price(settings: &Settings) -> Option<PriceAssumption> {
    settings.assumed_price.map(|set| PriceAssumption { price: set.price, for_this_run: set.by_flag })
}

/// Returns the budgets from the settings, taking `--max-steps` into account.
fn limits(settings: &Settings, max_steps: Option<u32>) -> Vec<BudgetSetting> {
    let by_flag = max_steps.map(|steps| BudgetSetting {
        limit: BudgetLimit { scope: BudgetScope::Task, unit: BudgetUnit::Steps, limit: f64::from(steps) },
        set_by: "--max-steps".to_owned(),
        for_this_run: true,
    });
    let set = settings.limits.iter().map(|set| BudgetSetting {
        limit: set.limit,
        set_by: set.set_by.clone(),
        for_this_run: set.by_flag,
    });
    by_flag.into_iter().chain(set).collect()
}

/// Returns the settings for tools, including the policy's limits and the secrets that must be hidden from commands.
pub(crate) fn tool_settings(app: &AppContext, policy: &Enforcer, sandbox: SandboxPolicy) -> tools::ToolSettings {
    let (offers, grants) = (policy.clone(), policy.clone());
    tools::ToolSettings {
        workspace: app.workspace.clone(),
        home: Some(app.home.clone()),
        max_file_size_bytes: policy.max_file_size_bytes(),
        max_output_bytes: policy
            .terms()
            .max_output_bytes
            .map_or(OUTPUT_BYTES, |bytes| usize::try_from(bytes).unwrap_or(usize::MAX)),
        paths: path_access(app, policy),
        http: http_access(policy),
        session: SessionServices {
            search: session_search(app),
            skills: SessionSkills::new(app.skills.skill_set()),
            ..SessionServices::detached()
        },
        command: command_settings(app, policy, sandbox),
        text: app.settings.tools.text.clone(),
        grants: Arc::new(move |capability| grants.grants(capability)),
        may_use: Arc::new(move |name| offers.offers(name).map_err(|denial| denial.to_error(""))),
        redactor: super::redaction::redactor(app, policy.redactions(), &[]),
    }
}

fn path_access(app: &AppContext, policy: &Enforcer) -> PathAccess {
    // Only a denial matters here; approval is requested for each call.
    let may = |action: fn(Target) -> Action| -> Arc<dyn Fn(&Path) -> bool + Send + Sync> {
        let judge = policy.clone();
        Arc::new(move |path| {
            let target = Target { given: String::new(), real: path.to_owned(), place: crate::protocol::Place::File { bytes: 0 } };
            !judge.denies_file(&action(target), jiff::Timestamp::UNIX_EPOCH)
        })
    };
    let (entries, opened, shown, followed) = (policy.clone(), policy.clone(), policy.clone(), policy.clone());
    PathAccess {
        may_read: may(|target| Action::Read { target }),
        may_read_entry: Some(Arc::new(move |path| entries.is_entry_readable(path, jiff::Timestamp::UNIX_EPOCH))),
        may_write: may(|target| Action::Write { target }),
        may_delete: may(|target| Action::Delete { target }),
        may_open: Arc::new(move |path| opened.can_open_for_write(path)),
        may_show: Arc::new(move |path| shown.can_open_for_read(path)),
        may_follow: Arc::new(move |path| followed.can_follow_link(path)),
        relative_paths: !app.settings.tools.absolute_paths_only,
        follow_links: app.settings.tools.follow_symlinks,
    }
}

fn http_access(policy: &Enforcer) -> HttpAccess {
    let (requests, connections) = (policy.clone(), policy.clone());
    HttpAccess {
        may_fetch: Arc::new(move |url, method| {
            requests.explain(&[Action::Fetch { url: url.to_owned(), method: method.to_owned() }], jiff::Timestamp::now())
        }),
        may_connect: Arc::new(move |url, address| connections.may_connect(url, address)),
        fetcher: Fetcher::default(),
    }
}

fn command_settings(app: &AppContext, policy: &Enforcer, sandbox: SandboxPolicy) -> CommandSettings {
    CommandSettings {
        shell: app.settings.tools.shell,
        environment: match policy.environment() {
            policy::EnvironmentTerms::Inherit => EnvironmentSelection::Inherit,
            policy::EnvironmentTerms::Core => EnvironmentSelection::Core,
            policy::EnvironmentTerms::Only(names) => EnvironmentSelection::Listed(names),
            policy::EnvironmentTerms::InheritOf(names) => EnvironmentSelection::InheritOf(names),
            policy::EnvironmentTerms::CoreOf(names) => EnvironmentSelection::CoreOf(names),
        },
        secret_names: app.key_variables(),
        helper: Helper::default(),
        sandbox,
        git_is_read_only: app.is_layer,
        commit_target: Some(commit_target),
    }
}

/// Returns the branch and the number of files of a commit in this directory.
fn commit_target(directory: &Path, all: bool) -> CommitTarget {
    Repository::find(directory).map_or_else(CommitTarget::default, |repository| CommitTarget {
        branch: repository.branch(),
        files: repository.files_to_commit(all),
    })
}

/// Returns the named commands defined by the policy, and the custom tools.
pub(crate) fn tool_sources(app: &AppContext, policy: &Enforcer) -> ToolSources {
    ToolSources {
        named: policy.named_commands().cloned().collect(),
        custom: app.tools.custom.clone(),
        patch: app.patch.clone(),
        ..ToolSources::default()
    }
}

fn backoff(settings: &Settings) -> Backoff {
    let base_ms = u64::try_from(settings.llm.retry_base.as_millis()).unwrap_or(u64::MAX);
    Backoff { max_retries: settings.llm.max_retries, base_ms, ..Backoff::default() }
}

fn system_prompt(app: &AppContext, project: Vec<InstructionFile>, output_schema: Option<String>) -> String {
    let toolchain = toolchain::detect(&app.workspace, app.environment.get("PATH").unwrap_or_default());
    let own = crate::config::instructions_of_person(&app.directories.config);
    let personal = crate::config::personal_instructions(&app.directories.project_dir(&app.workspace));
    let instructions =
        own.into_iter().chain(project).chain(personal).map(|file| (file.path.display().to_string(), file.text)).collect();
    agent::system_prompt(&PromptFacts {
        workspace: app.workspace.display().to_string(),
        system: std::env::consts::OS,
        date: jiff::Timestamp::now().strftime("%Y-%m-%d").to_string(),
        git: Repository::find(&app.workspace).and_then(|repository| repository.describe()),
        shell: Some(app.settings.tools.shell).filter(|shell| *shell != Shell::Bash).map(Shell::name),
        programs: toolchain.programs,
        missing: toolchain.missing,
        instructions,
        output_schema,
    })
}
