//! A session that this process owns, but whose servers and tools have not been connected yet.

use super::agent_service::AgentService;
use super::approval_service::ServiceDecisions;
use super::front_end::{ApprovalExpiry, FrontEnd, Pruning, ServerStart, SessionPurpose, TrustHandling};
use super::null_journal::NullJournal;
use super::prepared::PreparedSession;
use super::session_mode::SessionMode;
use super::{SessionBuilder, SessionNotices, local_model, plan_mode_notice, with_project};
use crate::agent::{self, Approver, SummaryModelSetup};
use crate::host::agent_authority::{AgentLinks, Authority};
use crate::host::agent_tree::AgentTree;
use crate::host::background_uploads::BackgroundUploads;
use crate::host::context::AppContext;
use crate::host::drift;
use crate::host::error::CliError;
use crate::host::history::SessionHistory;
use crate::host::language_servers::LanguageServerHandle;
use crate::host::local_models::ModelSelection;
use crate::host::mcp_servers::FIRST_WAIT;
use crate::host::models::key_reader;
use crate::host::nesting::Nesting;
use crate::host::options::Common;
use crate::host::policy_layers::Policy;
use crate::host::project::ProjectConfig;
use crate::host::registration;
use crate::host::reload::PolicyReloader;
use crate::host::retention;
use crate::host::sandbox_host::SandboxHost;
use crate::host::session::{self, Session, SessionOptions};
use crate::host::session_error::SessionError;
use crate::host::session_servers;
use crate::host::session_services::{redact_text, session_facts};
use crate::host::tool_name_lints::find_misnamed;
use crate::host::user_rules::UserRules;
use crate::llm::MissingModel;
use crate::mcp::Spec;
use crate::policy::{Approve, Enforcer};
use crate::protocol::Mode;
use crate::services::ApprovalService;
use crate::services::sessions::ServiceEndReason;
use crate::store::LoadedSession;
use crate::tools::{EditorConnection, SessionAgents};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// A session that this process owns. Dropping it releases the session.
pub(crate) struct ClaimedSession {
    front_end: FrontEnd,
    common: Common,
    app: AppContext,
    project: ProjectConfig,
    policy: Policy,
    model: ModelSelection,
    summary_model: SummaryModelSetup,
    may_choose_model: bool,
    session: Session,
    /// Title of a resumed session.
    title: Option<String>,
    /// JSON Schema for the final response.
    output_schema: Option<String>,
    /// MCP servers passed by the front end.
    servers: Vec<Spec>,
    /// Sandbox, set once the system has been probed.
    sandbox: Option<SandboxHost>,
    notices: SessionNotices,
}

/// Sets the mode in which the session continues, unless a problem restricts it to plan mode. Returns a notice if the
/// session last ran in another mode.
fn set_mode(app: &mut AppContext, common: &Common, session: &Session) -> Option<String> {
    let choice = SessionMode::choose(app, common, &session.state);
    let is_restricted = app.mode < app.session_mode(common.mode);
    app.chosen_mode = choice.chosen;
    if is_restricted {
        return None;
    }
    app.mode = choice.mode;
    choice.difference()
}

impl ClaimedSession {
    pub(super) fn new(builder: SessionBuilder, mut session: Session) -> Self {
        let SessionBuilder {
            front_end, common, mut app, chosen, project, policy, model, summary_model, may_choose_model, ..
        } = builder;
        let (output_schema, mut notices) = (builder.output_schema, builder.notices);
        if front_end.purpose == SessionPurpose::Tasks {
            session.mark_resumed();
            session.mark_continued_by_user();
            notices.add_all(set_mode(&mut app, &common, &session));
        }
        notices.add_all(std::mem::take(&mut session.notices));
        let title = chosen.and_then(|chosen| chosen.title);
        let (servers, sandbox) = (Vec::new(), None);
        Self {
            front_end,
            common,
            app,
            project,
            policy,
            model,
            summary_model,
            may_choose_model,
            session,
            title,
            output_schema,
            servers,
            sandbox,
            notices,
        }
    }

    pub(crate) fn session(&self) -> &Session {
        &self.session
    }

    /// Returns the title of the session if it is resumed.
    pub(crate) fn title(&self) -> Option<&str> {
        self.title.as_deref()
    }

    pub(crate) fn context(&self) -> &AppContext {
        &self.app
    }

    pub(crate) fn common(&self) -> &Common {
        &self.common
    }

    pub(crate) fn policy(&self) -> &Policy {
        &self.policy
    }

    pub(crate) fn project(&self) -> &ProjectConfig {
        &self.project
    }

    pub(crate) fn model(&self) -> &ModelSelection {
        &self.model
    }

    /// Returns the name of the model that writes summaries, if that model can be used.
    pub(crate) fn summary_model(&self) -> Option<String> {
        self.summary_model.model.as_ref().map(|model| model.name().to_owned())
    }

    /// Returns whether aye may choose the model, because neither the user nor the session has chosen one.
    pub(crate) fn may_choose_model(&self) -> bool {
        self.may_choose_model
    }

    /// Returns whether the user chose the mode for this session.
    pub(crate) fn is_mode_named(&self) -> bool {
        self.app.chosen_mode.is_some()
    }

    /// Returns the session's stored history for display.
    pub(crate) fn history(&self) -> SessionHistory {
        SessionHistory::new(&self.session.store, self.session.id(), &self.app)
    }

    /// Adds a notice from the front end.
    pub(crate) fn notify(&mut self, notice: String) {
        self.notices.add(notice);
    }

    /// Adds MCP servers passed by the front end. If a server in the settings has the same name, that server takes
    /// precedence.
    pub(crate) fn add_servers(&mut self, servers: Vec<Spec>) {
        self.servers.extend(servers);
    }

    /// Connects the session to an editor that shares its unsaved files.
    pub(crate) fn connect_editor(&mut self, editor: EditorConnection) {
        self.session.kept.connect_editor(editor);
    }

    /// If there is no model and aye may choose one, selects a local model.
    pub(crate) async fn find_local_model(&mut self) {
        let (model, notice) = local_model(&self.app, &self.policy, self.model.clone(), self.may_choose_model).await;
        self.model = model;
        self.notices.add_all(notice);
    }

    /// Returns a function that probes the system for a sandbox. It takes a few milliseconds and should be called on
    /// another thread.
    pub(crate) fn sandbox_probe(&self) -> impl FnOnce() -> SandboxHost + Send + 'static {
        let (app, trust) = (self.app.clone(), self.project.trust());
        move || SandboxHost::find(&app, trust)
    }

    /// Sets the result of `sandbox_probe`.
    pub(crate) fn set_sandbox(&mut self, sandbox: SandboxHost) {
        self.sandbox = Some(sandbox);
    }

    /// Returns the sandbox, probing the system on the first call.
    pub(crate) fn find_sandbox(&mut self) -> SandboxHost {
        let (app, project) = (&self.app, &self.project);
        self.sandbox.get_or_insert_with(|| SandboxHost::find(app, project.trust())).clone()
    }

    /// Returns the project if the user must decide whether to trust it, either because of its files or because commands
    /// would run in a copy of the workspace without approval. Otherwise adds a notice about ignored files.
    pub(crate) fn project_to_trust(&mut self) -> Option<&ProjectConfig> {
        if self.front_end.trust != TrustHandling::AskUser {
            return None;
        }
        let waits = self.project.needs_trust() || self.project.has_new_parts();
        let asks = waits || self.project.is_undecided() && self.approves_effects();
        if !asks {
            return None;
        }
        // A command that aye runs could imitate the user's keystrokes.
        if Nesting::detect() == Nesting::InsideAye {
            self.notices.add_all(self.project.ignored_files_notice());
            return None;
        }
        self.project.find_nested_instructions();
        Some(&self.project)
    }

    /// Returns whether, if the project is trusted, commands that no rule matches would run before they are approved.
    pub(crate) fn approves_effects(&mut self) -> bool {
        let sandbox = self.find_sandbox();
        let mode = self.app.mode;
        mode != Mode::Plan
            && sandbox.has_previews()
            && self.app.enforcer(&self.policy, sandbox.sandbox(), mode).approve() == Approve::Effects
    }

    /// Records that the user does not trust a project that contains no files to review.
    pub(crate) fn decline_trust(&mut self) {
        if let Err(error) = self.project.decline() {
            self.notices.add(error.to_string());
        }
    }

    /// Records that the user trusts the project, and applies its files.
    pub(crate) fn trust_project(&mut self) {
        if let Err(error) = self.project.record_trust() {
            self.notices.add(format!("{error}; the project is trusted for this run only"));
        }
        let (own, file, id) = (self.policy.clone(), self.common.policy.as_deref(), self.session.id());
        self.policy = with_project(&mut self.app, own, &self.project, Some(id), file, &mut self.notices);
        self.notices.add_all(find_misnamed(&self.app, &self.policy));
        if let Some(sandbox) = &mut self.sandbox {
            sandbox.trust(&self.app);
        }
    }

    /// Makes the session read-only by switching to plan mode.
    pub(crate) fn restrict_to_plan_mode(&mut self) {
        self.app.restrict_to_plan_mode();
    }

    /// Adds the history, which was loaded after the session was claimed.
    pub(crate) fn add_history(&mut self, loaded: LoadedSession) {
        self.session.add_history(loaded);
        self.notices.add_all(std::mem::take(&mut self.session.notices));
    }

    /// Returns a setup for previewing the effects of a command without saving anything. The session itself is not
    /// changed.
    pub(crate) fn dry_run(&mut self) -> agent::Setup {
        let (records, tails) = (self.session.records.clone(), self.session.tails.clone());
        let model_before = self.session.model_before.clone();
        let mut setup = self.setup(None);
        self.session.records = records;
        self.session.tails = tails;
        self.session.model_before = model_before;
        setup.journal = Arc::new(NullJournal);
        setup
    }

    /// Connects the servers and the tools, after which the session can be started.
    pub(crate) async fn prepare(mut self) -> Result<PreparedSession, SessionError> {
        self.session.mark_resumed();
        self.load_rest()?;
        self.register().await?;
        self.connect_approver();
        let (mut remote, mut uploads) = (None, None);
        if self.front_end.purpose == SessionPurpose::Tasks {
            self.read_keys().await;
            let layers = self.enforcer().layers();
            self.notices.add_all(drift::describe_changes(&self.session, &self.app, &layers).await);
            remote = self.connect_servers().await;
            self.connect_language_servers();
            uploads = self.connect_uploads();
            self.start_agents();
        }
        let sandbox = self.find_sandbox();
        let mut setup = self.setup(remote);
        let decisions = self.service_decisions(&setup);
        let Self { front_end, common, app, project, policy, mut session, mut notices, .. } = self;
        notices.add_all(std::mem::take(&mut session.notices));
        if front_end.pruning == Pruning::InBackground {
            retention::prune_in_background(&app, &session.store);
        }
        let unread = project.unread_reports();
        let reload = (front_end.purpose == SessionPurpose::Tasks).then(|| {
            let (reload, updates) = PolicyReloader::new(app.clone(), common.policy, project, &session, &policy, sandbox);
            setup.policy.updates = Some(updates);
            reload
        });
        if let (Some(uploads), Some(reload)) = (&mut uploads, &reload) {
            uploads.notices = Some(reload.notices());
        }
        let prepared = PreparedSession::new(front_end, (setup, reload), (app, session, policy), (unread, uploads), notices);
        Ok(prepared.deciding_by(decisions))
    }

    /// Loads the part of the journal that has not been loaded yet.
    fn load_rest(&mut self) -> Result<(), SessionError> {
        if !self.session.tail.records.is_empty() {
            let loaded = self.session.store.load(self.session.id())?;
            self.add_history(loaded);
        }
        Ok(())
    }

    /// Registers the session with the session service, if one is configured, and applies the policy it returns.
    async fn register(&mut self) -> Result<(), SessionError> {
        if self.front_end.purpose != SessionPurpose::Tasks || self.app.parent.is_some() {
            return Ok(());
        }
        let (registration, notices) = registration::open(&self.app, &self.session).await.map_err(SessionError::Failed)?;
        self.notices.add_all(notices);
        if let Some(registration) = registration {
            let facts = registration.facts();
            // Only this code sets the registration, once for each session.
            let _ = self.app.registration.set(registration);
            if let Err(error) = self.apply_registered_policy() {
                if let Some(services) = &self.app.services {
                    services.end_session(&self.session.store, &facts, ServiceEndReason::Cancelled).await;
                }
                return Err(SessionError::Policy(error));
            }
        }
        Ok(())
    }

    /// Applies the policy, including the layer from the session service. If the project's layer is invalid, the session
    /// becomes read-only, just as it would without the service.
    fn apply_registered_policy(&mut self) -> Result<(), CliError> {
        let (file, id) = (self.common.policy.as_deref(), self.session.id());
        let with = |project: Option<&ProjectConfig>| {
            let policy = self.app.policy(file, project)?;
            policy.validate_for_session(Some(id)).map(|()| policy)
        };
        let (policy, invalid) = match with(Some(&self.project)) {
            Ok(policy) => (policy, None),
            Err(error) => (with(None)?, Some(error)),
        };
        self.policy = policy;
        if let Some(error) = invalid {
            self.notices.add(plan_mode_notice(error));
            self.app.restrict_to_plan_mode();
        }
        Ok(())
    }

    /// Reads the models' keys from the keyring, so that they are redacted from the start.
    async fn read_keys(&self) {
        let models = self.model.iter().chain(&self.summary_model.model);
        for read in models.filter_map(|model| key_reader(&self.app, model.name())) {
            // The first request reports errors.
            let _ = tokio::task::spawn_blocking(read).await;
        }
    }

    /// Enables the session to start agents, unless it belongs to an agent on the deepest level.
    fn start_agents(&mut self) {
        let limits = self.app.settings.agents().within(self.policy.agent_limits());
        let tree = self.app.parent.as_ref().map(|parent| parent.tree.clone());
        let tree = tree.unwrap_or_else(|| AgentTree::new(limits.at_once));
        if tree.level() >= limits.depth {
            return;
        }
        let authority = Authority { policy: self.policy.clone(), enforcer: self.enforcer() };
        let (store, id) = (self.session.store.clone(), self.session.id().clone());
        let (authority, account) = (Arc::new(watch::Sender::new(authority)), Arc::default());
        let (session, tools) = ((self.front_end, self.common.clone()), self.session.kept.for_agents(&self.app));
        let service = AgentService::new(session, self.app.clone(), store, (id, tools), (limits, tree), (&authority, &account));
        let agents = SessionAgents::new(self.app.agents.set(), Arc::new(service));
        self.session.kept.start_agents(AgentLinks { agents, authority, account });
    }

    /// Prepares uploads to the object store, if one is configured, without sending any requests yet.
    fn connect_uploads(&mut self) -> Option<BackgroundUploads> {
        // A session that is not saved (`--ephemeral`, `--patch`), or that belongs to the copy of a task, stays on this
        // machine.
        let is_saved = self.app.directories.data == self.app.directories.shared;
        if self.app.parent.is_some() || !is_saved {
            return None;
        }
        let session = (self.session.id().clone(), self.session.kept.artifacts());
        let uploads = BackgroundUploads::new(&self.app, &self.session.store, session)?;
        self.session.kept.connect_outbox(uploads.outbox());
        if self.app.settings.uploads_artifacts() {
            self.session.kept.connect_uploads(uploads.artifacts());
        }
        Some(uploads)
    }

    /// Prepares the language servers of a trusted project, without starting them yet.
    fn connect_language_servers(&mut self) {
        if self.app.parent.is_none()
            && self.project.is_trusted()
            && let Some(servers) = LanguageServerHandle::new(&self.app)
        {
            self.session.kept.connect_language_servers(servers);
        }
    }

    async fn connect_servers(&mut self) -> Option<agent::ServerConnections> {
        if self.front_end.servers == ServerStart::Never {
            return None;
        }
        let sandbox = self.find_sandbox();
        let approver = if self.front_end.answers_servers { self.front_end.approver } else { Approver::Nobody };
        let passed = std::mem::take(&mut self.servers);
        let (app, policy, project) = (&self.app, &self.policy, &self.project);
        let remote = session_servers::connect(passed, &mut self.session, app, policy, project, &sandbox, approver);
        if self.front_end.servers == ServerStart::Wait
            && let Some(servers) = self.session.kept.servers()
        {
            self.notices.add_all(servers.connect_unknown(FIRST_WAIT).await);
        }
        remote
    }

    fn setup(&mut self, remote: Option<agent::ServerConnections>) -> agent::Setup {
        let (sandbox, approval_timeout) = (self.find_sandbox(), self.approval_timeout());
        // Without a model, the session waits for a choice: models can be listed, and a key can be added.
        let before = self.session.model_before.clone().unwrap_or_default();
        let model = self.model.clone().unwrap_or_else(|error| Arc::new(MissingModel::new(&before, error.to_string())));
        let file = self.common.policy.as_deref();
        let options = SessionOptions {
            approver: self.front_end.approver,
            unfinished: self.front_end.unfinished,
            max_steps: self.common.max_steps,
            approval_timeout,
            instructions: self.project.instructions(),
            output_schema: self.output_schema.clone(),
            guidance: self.project.guidance(),
            rules: Arc::new(UserRules::new(&self.app, file, model.name()).with_log(self.session.store.clone())),
            standing: sandbox,
            remote,
        };
        let models = (model, self.summary_model.clone());
        let mut setup = session::setup((&self.app, &self.policy), &mut self.session, models, options);
        setup.tell_changes = self.front_end.reports_changes;
        setup
    }

    /// Connects the approval service if there is no user to decide on approvals and the policy allows the service to do
    /// so.
    fn connect_approver(&mut self) {
        if self.front_end.approver == Approver::Nobody
            && self.asked_service().is_some()
            && let Some(max_risk) = self.enforcer().service_risk()
        {
            self.front_end.approver = Approver::Service { max_risk };
            self.front_end.approvals = ApprovalExpiry::AsSet;
        }
    }

    /// Returns the approval service for this session, if any. Inside a command that aye runs, no service is used,
    /// because the command could have configured a service of its own.
    fn asked_service(&self) -> Option<ApprovalService> {
        let service = self.app.services.as_ref()?.approvals()?;
        let may_ask = self.front_end.asks_service && self.app.parent.is_none() && Nesting::detect() == Nesting::Outermost;
        (may_ask && service.decides()).then(|| service.clone())
    }

    fn service_decisions(&mut self, setup: &agent::Setup) -> Option<ServiceDecisions> {
        let service = self.asked_service()?;
        let max_risk = self.enforcer().service_risk()?;
        Some(ServiceDecisions {
            service,
            facts: session_facts(&self.app, self.session.id()),
            redact: redact_text(&setup.redactor),
            max_risk,
            timeout: self.approval_timeout().unwrap_or(self.app.settings.approval.timeout),
        })
    }

    fn approval_timeout(&mut self) -> Option<Duration> {
        let set = self.app.settings.approval.timeout;
        match self.front_end.approvals {
            ApprovalExpiry::Never => None,
            ApprovalExpiry::AsSet => Some(self.enforcer().approval_timeout().map_or(set, |by_policy| by_policy.min(set))),
        }
    }

    fn enforcer(&mut self) -> Enforcer {
        let sandbox = self.find_sandbox();
        sandbox.enforcer(&self.app, &self.policy)
    }
}
