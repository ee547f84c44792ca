//! Opens a session for a client in the same way as for a screen, except that errors have codes.

use crate::config::NoModel;
use crate::host::context::AppContext;
use crate::host::error::CliError;
use crate::host::nesting::Nesting;
use crate::host::options::{Common, SessionChoice};
use crate::host::policy_layers::Policy;
use crate::host::session_builder::front_end::FrontEnd;
use crate::host::session_builder::{PreparedSession, SessionBuilder};
use crate::host::session_error::SessionError;
use crate::protocol::{Event, EventKind, Mode, Problem, StepId, TaskState, TaskStatus};
use crate::serve::{CreateSession, FaultCode, OpenedSession, OpeningRequest, ResumeSession, RpcError};
use crate::session::SessionState;
use crate::store::{Store, StoreError};
use serde_json::json;
use std::path::{Path, PathBuf};
use tokio::runtime::Handle;

/// Opens sessions as requested by the command line and the client.
#[derive(Clone)]
pub(crate) struct SessionFactory {
    common: Common,
}

/// A session that is ready to start, and the response to the client.
pub(crate) struct OpenSession {
    pub prepared: PreparedSession,
    pub opened: OpenedSession,
}

/// Request for a new or resumed session.
struct SessionRequest {
    directory: Option<PathBuf>,
    model: Option<String>,
    mode: Option<Mode>,
    session: Option<String>,
}

impl From<OpeningRequest> for SessionRequest {
    fn from(request: OpeningRequest) -> Self {
        match request {
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
    pub(crate) fn new(common: &Common) -> Self {
        Self { common: common.clone() }
    }

    /// Opens a session. Must be called on a thread that may block, because it reads from the disk and may query local
    /// servers.
    pub(crate) fn open(&self, request: OpeningRequest, runtime: &Handle) -> Result<Box<OpenSession>, RpcError> {
        let wanted = SessionRequest::from(request);
        let mode = self.mode(wanted.mode)?.or(self.common.mode);
        if let Some(directory) = &wanted.directory {
            is_directory(directory)?;
        }
        let model = wanted.model.as_deref();
        if let Some(name) =
            model.filter(|name| name.split_once('/').is_none_or(|(provider, name)| provider.is_empty() || name.is_empty()))
        {
            let message = format!("`model` is `{name}`; expected PROVIDER/NAME, for example `anthropic/claude-sonnet-5`");
            return Err(RpcError::new(FaultCode::InvalidParams, message));
        }
        let directory = wanted.directory.or_else(|| self.common.directory.clone());
        let model = wanted.model.or_else(|| self.common.model.clone());
        let is_named = model.is_some();
        let fault = |error| fault(error, is_named);
        let common = Common { directory, model, mode, ..self.common.clone() };
        let app = AppContext::find(&common).map_err(|trouble| internal(&trouble))?;
        // Errors in the user's own files are reported before anything is created.
        app.policy(common.policy.as_deref(), None).map_err(|trouble| policy(&trouble))?;
        let store = Store::open(&app.directories.data).map_err(|error| internal(&error.into()))?;
        let choice = wanted.session.map_or(SessionChoice::New, SessionChoice::Id);
        let builder = SessionBuilder::find(FrontEnd::serve(), common, app, store, &choice).map_err(fault)?;
        let builder = runtime.block_on(builder.with_model()).map_err(fault)?;
        if let Some(message) = builder.expired_policy() {
            return Err(expired(message));
        }
        let resumed = builder.resumed_session().is_some();
        let claimed = builder.claim().map_err(fault)?;
        let (step_cursor, last_task) = last_state(&claimed.session().state);
        let mut prepared = runtime.block_on(claimed.prepare()).map_err(fault)?;
        // The session service may have added a policy.
        if let Some(message) = prepared.setup().policy.enforcer.expiry_reason(jiff::Timestamp::now()) {
            runtime.block_on(prepared.close());
            return Err(expired(message));
        }
        let notices = prepared.take_notices();
        let options = &prepared.setup().options;
        let mut opened = OpenedSession {
            session_id: prepared.session().id().clone(),
            workspace_id: prepared.context().workspace_id(),
            policy_bundle_version: policy_version(prepared.policy()),
            available_tools: options.tools.names.clone(),
            workspace: prepared.context().workspace.clone(),
            step_cursor,
            last_task,
            max_steps: options.max_steps,
            resumed,
            notices: Vec::new(),
        };
        opened.notices = notices.into_iter().map(|message| notice(&opened, message)).collect();
        Ok(Box::new(OpenSession { prepared, opened }))
    }

    /// Returns the mode that the client requested. Returns an error if the mode is more permissive than the process's
    /// own mode or, if this process was started by a command that aye runs, than the default.
    fn mode(&self, wanted: Option<Mode>) -> Result<Option<Mode>, RpcError> {
        let laxest = match (self.common.mode, Nesting::detect()) {
            (Some(mode), _) => mode,
            (None, Nesting::Outermost) => Mode::Auto,
            (None, Nesting::InsideAye) => Mode::default(),
        };
        match wanted {
            Some(mode) if mode > laxest => {
                let (mode, laxest) = (mode.as_str(), laxest.as_str());
                let message = format!("`mode` is `{mode}`, but the most permissive mode that this process allows is `{laxest}`");
                Err(RpcError::new(FaultCode::InvalidParams, message))
            }
            wanted => Ok(wanted),
        }
    }
}

fn notice(opened: &OpenedSession, message: String) -> Event {
    Event {
        workspace_id: opened.workspace_id.clone(),
        session_id: opened.session_id.clone(),
        task_id: None,
        step_id: None,
        timestamp: jiff::Timestamp::now(),
        kind: EventKind::notice(message),
    }
}

fn is_directory(directory: &Path) -> Result<(), RpcError> {
    let found = directory.metadata();
    let why = match &found {
        Ok(found) if found.is_dir() => return Ok(()),
        Ok(_) => "not a directory".to_owned(),
        Err(error) => error.to_string(),
    };
    let message = format!("cannot use `workspaceHint` `{}` as the workspace: {why}", directory.display());
    Err(RpcError::new(FaultCode::InvalidParams, message))
}

/// Returns the error for a session that cannot be opened. `is_named` specifies whether the model was chosen by the
/// client or on the command line.
fn fault(error: SessionError, is_named: bool) -> RpcError {
    match error {
        SessionError::Store(
            error @ (StoreError::NotAnId { .. } | StoreError::NoSession { .. } | StoreError::Ambiguous { .. }),
        ) => RpcError::new(FaultCode::NoSession, Problem::from(error).one_line()),
        SessionError::Locked { id, pid } => {
            let message = format!("session `{id}` is open in process {pid}; it becomes available when that process exits");
            RpcError::new(FaultCode::SessionHeld, message).with_data(json!({"pid": pid}))
        }
        SessionError::Policy(trouble) => policy(&trouble),
        SessionError::Model(NoModel::NoKey(problem)) => {
            RpcError::new(FaultCode::Internal, problem.one_line()).with_data(json!({"kind": "authentication"}))
        }
        SessionError::Model(NoModel::Forbidden(problem)) => {
            RpcError::new(FaultCode::Internal, problem.one_line()).with_data(json!({"kind": "permission"}))
        }
        SessionError::Model(NoModel::Wrong(error)) if is_named => RpcError::new(FaultCode::InvalidParams, error.to_string()),
        error => internal(&error.into()),
    }
}

/// Returns the last completed step and the state of the last task, in the form used by exports.
fn last_state(state: &SessionState) -> (Option<StepId>, Option<TaskState>) {
    let task = state.task().map(|task| TaskState {
        task_id: task.task_id.clone(),
        status: TaskStatus::Idle,
        step_count: task.step_count,
        max_steps: task.max_steps,
    });
    (state.step_cursor().cloned(), task)
}

/// Returns the version set by the author of the policy, or the policy's name if there is none.
fn policy_version(policy: &Policy) -> String {
    let version = policy.layers.iter().find_map(|layer| layer.bundle.version.clone());
    version.unwrap_or_else(|| policy.name.clone())
}

fn internal(trouble: &CliError) -> RpcError {
    RpcError::new(FaultCode::Internal, trouble.to_string())
}

fn expired(message: String) -> RpcError {
    RpcError::new(FaultCode::PolicyInvalid, message).with_data(json!({"reason": "expired"}))
}

fn policy(trouble: &CliError) -> RpcError {
    RpcError::new(FaultCode::PolicyInvalid, trouble.to_string())
}
