//! Opens sessions for all front ends. `front_end.rs` describes how the front ends differ.
//!
//! `SessionBuilder` finds the session, its project, its policy and its model. `ClaimedSession` owns the session,
//! `PreparedSession` adds its servers and tools, and `StartedSession` runs until it is closed.

mod agent_approvals;
mod agent_error;
mod agent_run;
mod agent_service;
mod approval_service;
mod claimed;
pub(crate) mod front_end;
mod notices;
mod null_journal;
mod prepared;
mod session_mode;

pub(crate) use claimed::ClaimedSession;
pub(crate) use notices::SessionNotices;
pub(crate) use prepared::{PreparedSession, StartedSession};

use super::allowed_tools::{self, KnownNames};
use super::context::AppContext;
use super::local_models::{self, ModelSelection};
use super::lock_takeover;
use super::mcp_servers::specs::specs;
use super::models::ModelCatalog;
use super::options::{Common, SessionChoice, Trust};
use super::policy_layers::Policy;
use super::project::ProjectConfig;
use super::prompt_commands::PromptCommands;
use super::session::{self, Session};
use super::session_error::SessionError;
use super::summary_model;
use crate::agent::{ResumePolicy, SummaryModelSetup};
use crate::config::NoModel;
use crate::host::error::CliError;
use crate::llm::MissingModel;
use crate::policy::Sandbox;
use crate::ports::Model;
use crate::protocol::{Problem, SessionId};
use crate::store::{SessionSummary, Store};
use crate::sys::instance::Instance;
use front_end::{FrontEnd, LockHandling, ModelNeed, SessionPurpose, TrustHandling};
use std::path::Path;
use std::sync::Arc;

/// A session that is to be opened but that this process does not own yet. Nothing has been created or changed so far.
pub(crate) struct SessionBuilder {
    front_end: FrontEnd,
    common: Common,
    app: AppContext,
    store: Store,
    chosen: Option<SessionSummary>,
    project: ProjectConfig,
    policy: Policy,
    model: ModelSelection,
    summary_model: SummaryModelSetup,
    /// Whether aye may choose the model, because neither the user nor the session has chosen one.
    may_choose_model: bool,
    /// JSON Schema for the final response.
    output_schema: Option<String>,
    notices: SessionNotices,
}

impl SessionBuilder {
    /// Finds the chosen session, its project, its policy and its model. Reads from the disk, and may wait for another
    /// process to exit. The workspace in `app` is set to that of the session.
    pub(crate) fn find(
        front_end: FrontEnd,
        common: Common,
        mut app: AppContext,
        store: Store,
        choice: &SessionChoice,
    ) -> Result<Self, SessionError> {
        let mut notices = SessionNotices::new(front_end.notices);
        notices.add_all(store.notices().iter().cloned());
        let chosen = session::choose(&store, &mut app, choice)?;
        if let Some(chosen) = &chosen {
            check_lock(&store, &chosen.session_id, front_end.lock, common.take_over)?;
        }
        if front_end.purpose == SessionPurpose::Tasks {
            app.mode = app.session_mode(common.mode);
        }
        load_service_policy(&mut app, &mut notices)?;
        let mut project = ProjectConfig::inspect(&app.workspace, &app.directories.config, common.trust);
        let file = common.policy.as_deref();
        // With `--trust`, problems of the project are reported immediately.
        let policy = if front_end.trust == TrustHandling::AskUser && common.trust == Trust::AsRecorded {
            let own = app.policy(file, None).map_err(SessionError::Policy)?;
            project.withdraw_trust_if_invalid();
            let id = chosen.as_ref().map(|chosen| &chosen.session_id);
            with_project(&mut app, own, &project, id, file, &mut notices)
        } else {
            let policy = app.policy(file, Some(&project)).map_err(SessionError::Policy)?;
            app.with_tools_of(&project);
            notices.add_all(project.ignored_files_notice());
            policy
        };
        policy.validate_for_session(chosen.as_ref().map(|chosen| &chosen.session_id)).map_err(SessionError::Policy)?;
        let flag = common.model.as_deref();
        let may_choose_model = local_models::is_open(&app.settings, flag, chosen.as_ref());
        let models = ModelCatalog::new(&app).with_policy(&policy);
        let model = match (front_end.purpose, front_end.model) {
            (SessionPurpose::Tasks, ModelNeed::Required) => models.choose(flag, chosen.as_ref()),
            (SessionPurpose::Tasks, ModelNeed::Optional) => {
                allowed_model(&models, models.choose(flag, chosen.as_ref()), &mut notices)?
            }
            (SessionPurpose::Command, _) => {
                let name = chosen.as_ref().map_or("", |chosen| &chosen.model);
                Ok(Arc::new(MissingModel::new(name, "this command does not call a model".to_owned())) as Arc<dyn Model>)
            }
        };
        let mut summary_model = SummaryModelSetup::default();
        if front_end.purpose == SessionPurpose::Tasks {
            let name = model.as_ref().ok().map(|model| model.name());
            let opened = summary_model::open(&models, name, front_end.model == ModelNeed::Required);
            let (opened, notice) = opened.map_err(SessionError::Model)?;
            summary_model = opened;
            notices.add_all(notice);
        }
        Ok(Self {
            front_end,
            common,
            app,
            store,
            chosen,
            project,
            policy,
            model,
            summary_model,
            may_choose_model,
            output_schema: None,
            notices,
        })
    }

    /// Completes the choice of the model if one is needed. If no model was chosen and there is no key, selects a local
    /// model.
    pub(crate) async fn with_model(mut self) -> Result<Self, SessionError> {
        let (model, notice) = local_model(&self.app, &self.policy, self.model.clone(), self.may_choose_model).await;
        self.notices.add_all(notice);
        Ok(Self { model: Ok(model.map_err(SessionError::Model)?), ..self })
    }

    /// Restricts the session to the tools that these entries match.
    ///
    /// # Errors
    /// Returns an error if an entry is not the name of a tool.
    pub(crate) fn with_allowed_tools(mut self, entries: &[String]) -> Result<Self, Problem> {
        let named = self.policy.layers.iter().flat_map(|layer| layer.bundle.named.iter().map(|command| command.name.clone()));
        let own = named.chain(self.app.tools.custom.iter().map(|tool| tool.name.clone())).collect();
        let (servers, _) = specs(&self.app, Some(&self.project));
        let known = KnownNames { own, servers: servers.into_iter().map(|server| server.name).collect() };
        self.app.run_limits = vec![allowed_tools::limit(entries, &known)?];
        Ok(self)
    }

    /// Sets a model that the front end provides and that sends no requests to a provider.
    pub(crate) fn with_own_model(self, model: Arc<dyn Model>) -> Self {
        Self { model: Ok(model), summary_model: SummaryModelSetup::default(), ..self }
    }

    /// Requires the final response to conform to this JSON Schema.
    pub(crate) fn with_output_schema(self, schema: String) -> Self {
        Self { output_schema: Some(schema), ..self }
    }

    /// Sets what to do with a task that an earlier process did not finish.
    pub(crate) fn with_unfinished(mut self, unfinished: ResumePolicy) -> Self {
        self.front_end.unfinished = unfinished;
        self
    }

    /// Claims the session for this process, or creates a new one. If the session is archived, it is unarchived.
    pub(crate) fn claim(self) -> Result<ClaimedSession, SessionError> {
        let session = self.try_claim()?;
        Ok(self.with_claimed(session))
    }

    /// Claims the session without consuming the builder, so another attempt is possible.
    pub(crate) fn try_claim(&self) -> Result<Session, SessionError> {
        self.claim_attempt()()
    }

    /// Returns a function that tries to claim the session. The function can be called on another thread.
    pub(crate) fn claim_attempt(&self) -> impl FnOnce() -> Result<Session, SessionError> + Send + 'static {
        let model = self.model.as_ref().map(|model| model.name().to_owned()).unwrap_or_default();
        let (store, app, policy) = (self.store.clone(), self.app.clone(), self.policy.clone());
        let (chosen, scope) = (self.chosen.clone(), self.front_end.history);
        let new = session::NewSessionTerms { model, is_of_command: self.front_end.writes_prompt };
        move || session::open(store, &app, &policy, chosen, new, scope)
    }

    /// Continues with a session that was claimed by `try_claim`.
    pub(crate) fn with_claimed(self, session: Session) -> ClaimedSession {
        ClaimedSession::new(self, session)
    }

    pub(crate) fn context(&self) -> &AppContext {
        &self.app
    }

    /// Returns the slash commands that can be used in a prompt.
    pub(crate) fn prompt_commands(&self) -> PromptCommands {
        PromptCommands::find(&self.app, &self.project)
    }

    pub(crate) fn policy(&self) -> &Policy {
        &self.policy
    }

    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// Returns the session to resume, or `None` for a new session.
    pub(crate) fn resumed_session(&self) -> Option<&SessionSummary> {
        self.chosen.as_ref()
    }

    pub(crate) fn model(&self) -> &ModelSelection {
        &self.model
    }

    /// If the policy has expired, returns the reason to deny every action.
    pub(crate) fn expired_policy(&self) -> Option<String> {
        self.app.enforcer(&self.policy, Sandbox::Absent, self.app.mode).expiry_reason(jiff::Timestamp::now())
    }
}

/// Returns an error if another process owns the session. If `takes_over` is set, first asks that process to exit.
fn check_lock(store: &Store, id: &SessionId, handling: LockHandling, takes_over: bool) -> Result<(), SessionError> {
    if takes_over {
        lock_takeover::ask_holder_to_exit(store, id).map_err(|problem| SessionError::Failed(CliError::usage(problem)))?;
    }
    // A session that this process is closing becomes free without a takeover.
    let other = store.holder(id)?.filter(|holder| holder.instance != Instance::current());
    match other {
        Some(holder) if handling == LockHandling::Refuse => {
            Err(SessionError::Locked { id: id.clone(), pid: holder.instance.pid })
        }
        _ => Ok(()),
    }
}

/// Loads the policy from its URL, if one is configured and was not loaded recently. Each session gets its own
/// registration, but an agent shares that of the session that started it.
fn load_service_policy(app: &mut AppContext, notices: &mut SessionNotices) -> Result<(), SessionError> {
    if app.parent.is_none() {
        app.registration = Arc::default();
    }
    if let Some(service) = app.service_policy().filter(|_| app.parent.is_none()) {
        notices.add_all(service.ensure().map_err(SessionError::Policy)?);
    }
    Ok(())
}

/// Returns the chosen model or, if there is none, a local model and a notice.
async fn local_model(
    app: &AppContext,
    policy: &Policy,
    model: ModelSelection,
    may_choose: bool,
) -> (ModelSelection, Option<String>) {
    let models = ModelCatalog::new(app).with_policy(policy);
    local_models::fallback_local_model(&models, &app.settings, model, may_choose).await
}

/// If the policy forbids the default model, replaces it with an allowed one and adds a notice.
fn allowed_model(
    models: &ModelCatalog,
    chosen: ModelSelection,
    notices: &mut SessionNotices,
) -> Result<ModelSelection, SessionError> {
    match chosen {
        Err(NoModel::Wrong(error)) => Err(SessionError::Model(NoModel::Wrong(error))),
        Err(NoModel::Forbidden(problem)) => Ok(match models.without_forbidden_default() {
            Some(model) => {
                notices.add(format!("{problem}\nThis session uses `{}`.", model.name()));
                Ok(model)
            }
            None => Err(NoModel::NoKey(problem)),
        }),
        other => Ok(other),
    }
}

/// Returns the policy including a trusted project's layer, and adds the project's tools and settings to the
/// environment. If the layer is invalid, the session becomes read-only, because the layer may have forbidden changes.
fn with_project(
    app: &mut AppContext,
    own: Policy,
    project: &ProjectConfig,
    session: Option<&SessionId>,
    file: Option<&Path>,
    notices: &mut SessionNotices,
) -> Policy {
    if !project.is_trusted() {
        return own;
    }
    let policy = app.policy(file, Some(project)).and_then(|policy| policy.validate_for_session(session).map(|()| policy));
    app.with_tools_of(project);
    policy.unwrap_or_else(|trouble| {
        notices.add(plan_mode_notice(trouble));
        app.restrict_to_plan_mode();
        own
    })
}

/// Returns the notice that explains the effect of a project's invalid policy.
fn plan_mode_notice(trouble: CliError) -> String {
    format!("{}\nthis session is in plan mode until the policy is fixed", trouble.into_problem().detailed_message())
}
