//! Opening of a session for a client: like for a screen, with error codes.

use crate::agent::{self, Approver, Unfinished};
use crate::config::NoModel;
use crate::host::console::warn;
use crate::host::context::AppContext;
use crate::host::error::CliError;
use crate::host::local_models;
use crate::host::mcp_servers::FIRST_WAIT;
use crate::host::models;
use crate::host::models::ModelCatalog;
use crate::host::nesting::Nesting;
use crate::host::options::{Common, SessionChoice};
use crate::host::policy_layers::Policy;
use crate::host::project::ProjectConfig;
use crate::host::reload::Reload;
use crate::host::retention;
use crate::host::sandbox_host::SandboxHost;
use crate::host::session;
use crate::host::session::{LoadScope, Session, SessionOptions};
use crate::host::session_servers;
use crate::host::user_rules::UserRules;
use crate::ports::Model;
use crate::protocol::{Event, EventKind, Mode, SessionId, StepId, TaskState, TaskStatus};
use crate::serve::{CreateSession, Fault, FaultCode, OpenedSession, OpeningRequest, ResumeSession};
use crate::session::SessionState;
use crate::store::{SessionSummary, Store, StoreError};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::runtime::Handle;

/// Opens sessions according to the command line and the client.
#[derive(Clone)]
pub struct SessionFactory {
    common: Common,
}

/// A session that is ready to run.
pub struct OpenSession {
    pub setup: agent::Setup,
    pub reload: Reload,
    pub told: OpenedSession,
    pub held: LockedSession,
    /// Notices that were printed on stderr.
    notices: Vec<String>,
}

/// Resources that must outlive the run of a session.
pub struct LockedSession {
    place: AppContext,
    session: Session,
}

impl LockedSession {
    /// Releases the session for other processes.
    pub async fn let_go(self) {
        self.session.end_servers().await;
        // Reads the disk.
        let done = tokio::task::spawn_blocking(move || {
            retention::before_the_end(&self.place, &self.session.store);
            drop(self.session);
        });
        let _ = done.await;
    }
}

/// The requested session, new or resumed.
struct SessionRequest {
    directory: Option<PathBuf>,
    model: Option<String>,
    mode: Option<Mode>,
    session: Option<String>,
}

impl From<OpeningRequest> for SessionRequest {
    fn from(asked: OpeningRequest) -> Self {
        match asked {
            OpeningRequest::New(CreateSession { workspace_hint: directory, model, mode, .. }) => {
                Self { directory, model, mode, session: None }
            }
            OpeningRequest::Resume(ResumeSession { session_id, model, mode, .. }) => {
                Self { directory: None, model, mode, session: Some(session_id) }
            }
        }
    }
}

impl SessionFactory {
    pub fn new(common: &Common) -> Self {
        Self { common: common.clone() }
    }

    /// Opens a session. Reads the disk and may query local servers, so it must not run on a thread that others need.
    pub fn open(&self, asked: OpeningRequest, runtime: &Handle) -> Result<Box<OpenSession>, Fault> {
        let wanted = SessionRequest::from(asked);
        let mode = self.mode(wanted.mode)?;
        if let Some(directory) = &wanted.directory {
            is_directory(directory)?;
        }
        let model = wanted.model.as_deref();
        if let Some(name) =
            model.filter(|name| name.split_once('/').is_none_or(|(provider, name)| provider.is_empty() || name.is_empty()))
        {
            let message = format!("`model` is `{name}`, expected PROVIDER/NAME, for example `anthropic/claude-sonnet-5`");
            return Err(Fault::new(FaultCode::InvalidParams, message));
        }
        let directory = wanted.directory.or_else(|| self.common.directory.clone());
        let common = Common { directory, mode: Some(mode), ..self.common.clone() };
        let mut place = AppContext::find(&common).map_err(|trouble| internal(&trouble))?;
        place.policy(common.policy.as_deref(), None).map_err(|trouble| policy(&trouble))?;
        let store = Store::open(&place.directories.data).map_err(|error| internal(&error.into()))?;
        let mut notices = store.notices().to_vec();
        for notice in &notices {
            warn(notice);
        }
        let chosen = chosen(&store, &mut place, wanted.session.as_deref())?;
        let flag = model.or(common.model.as_deref());
        let project = ProjectConfig::look(&place.workspace, &place.directories.config, common.trust);
        let rules = place.policy(common.policy.as_deref(), Some(&project)).map_err(|trouble| policy(&trouble))?;
        let model = choose_model(&place, &rules, (flag, chosen.as_ref()), runtime)?;
        let mut ready = Self::make_ready(&common, (place, project, rules), store, (chosen, model), runtime)?;
        notices.append(&mut ready.notices);
        let told = &mut ready.told;
        told.notices = notices.into_iter().map(|message| notice(told, message)).collect();
        Ok(ready)
    }

    fn make_ready(
        common: &Common,
        (mut place, project, rules): (AppContext, ProjectConfig, Policy),
        store: Store,
        (chosen, model): (Option<SessionSummary>, Arc<dyn Model>),
        runtime: &Handle,
    ) -> Result<Box<OpenSession>, Fault> {
        let file = common.policy.clone();
        if let Some(ask) = models::key_to_ask_for(&place, model.name()) {
            ask();
        }
        rules.holds_for(chosen.as_ref().map(|chosen| &chosen.session_id)).map_err(|trouble| policy(&trouble))?;
        place.with_tools_of(&project);
        let standing = SandboxHost::find(&place, project.trust());
        let enforcer = place.enforcer(&rules, standing.sandbox(), place.mode);
        if let Some(message) = enforcer.expired(jiff::Timestamp::now()) {
            return Err(Fault::new(FaultCode::PolicyInvalid, message).with(json!({"reason": "expired"})));
        }
        let resumed = chosen.as_ref().map(|chosen| chosen.session_id.clone());
        let opened = session::open(store.clone(), &place, &rules, chosen, model.name(), LoadScope::All);
        let mut session = opened.map_err(|trouble| match resumed.as_ref().map(|id| is_free(&store, id)) {
            Some(Err(fault)) => fault,
            _ => internal(&trouble),
        })?;
        session.goes_on();
        project.ignored().iter().for_each(|line| warn(line));
        let (step_cursor, last_task) = stands(&session.state);
        // No method of the protocol answers requests of MCP servers, so they are declined.
        let remote = session_servers::connect(Vec::new(), &mut session, &place, &rules, &project, &standing, Approver::Nobody);
        if let Some(servers) = session.kept.servers() {
            runtime.block_on(servers.settle(FIRST_WAIT)).iter().for_each(|line| warn(line));
        }
        let set = place.settings.approval.timeout;
        let terms = SessionOptions {
            approver: approver(),
            unfinished: Unfinished::Wait,
            max_steps: common.max_steps,
            approval_timeout: Some(enforcer.approval_timeout().map_or(set, |bundle| bundle.min(set))),
            instructions: project.instructions(),
            guidance: project.guidance(),
            rules: Arc::new(UserRules::new(&place, file.as_deref(), model.name()).with_log(store)),
            standing: standing.clone(),
            remote,
        };
        let mut setup = session::setup(&place, &rules, &mut session, model, terms);
        let notices = std::mem::take(&mut session.notices);
        for notice in &notices {
            warn(notice);
        }
        let held_place = place.clone();
        let workspace_id = place.workspace_id();
        let (reload, updates) = Reload::new(place, file, project, &session, &rules, standing);
        setup.policy_updates = Some(updates);
        let told = OpenedSession {
            session_id: session.id().clone(),
            workspace_id,
            policy_bundle_version: version_of(&rules),
            available_tools: setup.options.tool_names.clone(),
            workspace: held_place.workspace.clone(),
            step_cursor,
            last_task,
            max_steps: setup.options.max_steps,
            resumed: resumed.is_some(),
            notices: Vec::new(),
        };
        Ok(Box::new(OpenSession { setup, reload, told, held: LockedSession { place: held_place, session }, notices }))
    }

    /// Returns the mode: never laxer than that of the process, and in a command that aye runs never laxer than the
    /// default.
    fn mode(&self, wanted: Option<Mode>) -> Result<Mode, Fault> {
        let set = self.common.mode.unwrap_or_default();
        let laxest = match (self.common.mode, Nesting::of_process()) {
            (Some(mode), _) => mode,
            (None, Nesting::Outermost) => Mode::Auto,
            (None, Nesting::InsideAye) => Mode::default(),
        };
        match wanted {
            Some(mode) if mode > laxest => {
                let (mode, laxest) = (mode.as_str(), laxest.as_str());
                let message = format!("`mode` is `{mode}`, but the laxest mode this process allows is `{laxest}`");
                Err(Fault::new(FaultCode::InvalidParams, message))
            }
            wanted => Ok(wanted.unwrap_or(set)),
        }
    }
}

/// Returns the approver: a program that aye runs must not approve its own actions.
fn approver() -> Approver {
    match Nesting::of_process() {
        Nesting::Outermost => Approver::Person,
        Nesting::InsideAye => Approver::Nobody,
    }
}

fn notice(opened: &OpenedSession, message: String) -> Event {
    Event {
        workspace_id: opened.workspace_id.clone(),
        session_id: opened.session_id.clone(),
        task_id: None,
        step_id: None,
        timestamp: jiff::Timestamp::now(),
        kind: EventKind::Notice { message },
    }
}

fn is_directory(directory: &Path) -> Result<(), Fault> {
    let found = directory.metadata();
    let why = match &found {
        Ok(found) if found.is_dir() => return Ok(()),
        Ok(_) => "not a directory".to_owned(),
        Err(error) => error.to_string(),
    };
    let message = format!("cannot use `workspaceHint` `{}` as the workspace: {why}", directory.display());
    Err(Fault::new(FaultCode::InvalidParams, message))
}

/// Returns the session to resume, if any. No other process may own it.
fn chosen(store: &Store, place: &mut AppContext, id: Option<&str>) -> Result<Option<SessionSummary>, Fault> {
    let Some(id) = id else { return Ok(None) };
    let found = store.find(id).map_err(|error| match error {
        StoreError::NotAnId { .. } | StoreError::NoSession { .. } | StoreError::Ambiguous { .. } => {
            Fault::new(FaultCode::NoSession, error.to_string())
        }
        error => internal(&error.into()),
    })?;
    is_free(store, &found.session_id)?;
    session::choose(store, place, &SessionChoice::Id(found.session_id.to_string())).map_err(|trouble| internal(&trouble))
}

fn is_free(store: &Store, id: &SessionId) -> Result<(), Fault> {
    match store.holder(id) {
        Ok(None) => Ok(()),
        Ok(Some(holder)) => {
            let pid = holder.instance.pid;
            let message = format!("session `{id}` is open in process {pid}; it becomes available when that process exits");
            Err(Fault::new(FaultCode::SessionHeld, message).with(json!({"pid": pid})))
        }
        Err(error) => Err(internal(&error.into())),
    }
}

fn choose_model(
    place: &AppContext,
    rules: &Policy,
    (flag, chosen): (Option<&str>, Option<&SessionSummary>),
    runtime: &Handle,
) -> Result<Arc<dyn Model>, Fault> {
    let here = ModelCatalog::new(place).under(rules);
    let open = local_models::is_open(&place.settings, flag, chosen);
    let (model, said) = runtime.block_on(local_models::instead(&here, &place.settings, here.choose(flag, chosen), open));
    if let Some(line) = &said {
        warn(line);
    }
    model.map_err(|error| match error {
        NoModel::NoKey { message } => Fault::new(FaultCode::Internal, message).with(json!({"kind": "authentication"})),
        NoModel::Forbidden { message } => Fault::new(FaultCode::Internal, message).with(json!({"kind": "permission"})),
        NoModel::Wrong(error) if flag.is_some() => Fault::new(FaultCode::InvalidParams, error.to_string()),
        NoModel::Wrong(error) => Fault::new(FaultCode::Internal, error.to_string()),
    })
}

/// Returns the last completed step and the last task, as in an export.
fn stands(state: &SessionState) -> (Option<StepId>, Option<TaskState>) {
    let task = state.task().map(|task| TaskState {
        task_id: task.task_id.clone(),
        status: TaskStatus::Idle,
        step_count: task.step_count,
        max_steps: task.max_steps,
    });
    (state.step_cursor().cloned(), task)
}

/// Returns the version of the policy, as its author names it.
fn version_of(policy: &Policy) -> String {
    let version = policy.layers.iter().find_map(|layer| layer.bundle.version.clone());
    version.unwrap_or_else(|| policy.name.clone())
}

fn internal(trouble: &CliError) -> Fault {
    Fault::new(FaultCode::Internal, trouble.message.clone())
}

fn policy(trouble: &CliError) -> Fault {
    Fault::new(FaultCode::PolicyInvalid, trouble.message.clone())
}
