//! Opening of a session on a screen: the store, the chosen session, its model and its policy. All of it is read from
//! the disk, so it does not run on the thread that draws.

use super::PreviousSession;
use super::session_lock::{LockedSession, SessionStart};
use super::session_prompt;
use super::session_runner::SessionRunner;
use crate::cli::screen::current_workspace::CurrentWorkspace;
use crate::config::NoModel;
use crate::host::context::AppContext;
use crate::host::crash::Watch;
use crate::host::error::CliError;
use crate::host::models::ModelCatalog;
use crate::host::options::{Common, SessionChoice, Trust};
use crate::host::policy_layers::Policy;
use crate::host::project::ProjectConfig;
use crate::host::query::QueryHandler;
use crate::host::session;
use crate::host::session::LoadScope;
use crate::host::user_rules::UserRules;
use crate::host::{local_models, lock_takeover};
use crate::ports::Model;
use crate::protocol::Event;
use crate::store::{SessionSummary, Store};
use std::sync::Arc;
use tokio::sync::mpsc;

/// The request for a session.
pub struct SessionOpener {
    pub common: Common,
    pub place: AppContext,
    /// The user's policy, as already loaded.
    pub policy: Policy,
    pub choice: SessionChoice,
    /// The previous screen.
    pub before: Option<PreviousSession>,
    pub here: CurrentWorkspace,
    /// The sender for results of queries outside the session.
    pub events: mpsc::UnboundedSender<Event>,
    pub watch: Watch,
    /// True if first-time setup may start automatically.
    pub sets_up: bool,
}

/// The outcome of opening.
pub enum OpenOutcome {
    /// The user has to choose among several sessions; nothing else is open.
    Several(QueryHandler),
    One(Box<SessionRunner>),
}

impl SessionOpener {
    /// Claims the chosen session, or creates a new one. Waits while another process is asked to exit.
    pub fn open(self, store: Store) -> Result<OpenOutcome, CliError> {
        let Self { common, mut place, policy: own, choice, before, here, events, watch, sets_up } = self;
        let started_in = place.workspace.clone();
        if choice == SessionChoice::Pick && session_prompt::has_several(&store, &place)? {
            return Ok(OpenOutcome::Several(QueryHandler::new(store, &place, events)));
        }
        let chosen = session::choose(&store, &mut place, &choice)?;
        let same = before.as_ref().filter(|_| chosen.is_none()).and_then(|before| before.model.clone());
        let wanted = same.as_deref().or(common.model.as_deref());
        // With `--trust`, problems of the project are reported at once.
        let project = (common.trust == Trust::ForThisRun)
            .then(|| ProjectConfig::look(&place.workspace, &place.directories.config, common.trust));
        let moved = place.workspace != started_in;
        // A session has its own workspace, and the rules saved for that workspace.
        let policy = if project.is_none() && !moved { own } else { place.policy(common.policy.as_deref(), project.as_ref())? };
        let (model, notice) = choose_model(&ModelCatalog::new(&place).under(&policy), wanted, chosen.as_ref());
        let open = local_models::is_open(&place.settings, wanted, chosen.as_ref());
        let wanted = wanted.or(place.settings.default_model_name()).map(str::to_owned);
        if let Err(NoModel::Wrong(error)) = model {
            return Err(error.into());
        }
        let name = model.as_ref().map_or_else(|_| String::new(), |model| model.name().to_owned());
        if let Some(project) = &project {
            place.with_tools_of(project);
        }
        here.moves_to(&place, &policy);
        let desk = QueryHandler::new(store.clone(), &place, events);
        let rules = Arc::new(UserRules::new(&place, common.policy.as_deref(), &name).with_log(store.clone()));
        let mut session = begin(store, &place, &policy, chosen, (&name, common.take_over && before.is_none()))?;
        if let SessionStart::Ready(session) = &mut session {
            session.notices.extend(notice);
        }
        let (file, max_steps) = (common.policy, common.max_steps);
        let backstage = SessionRunner {
            place,
            moved,
            policy,
            project,
            session,
            model,
            wanted,
            open,
            rules,
            file,
            max_steps,
            desk,
            watch,
            sets_up,
        };
        Ok(OpenOutcome::One(Box::new(backstage)))
    }
}

/// Returns the model of the session. If the policy forbids `[model] default`, returns an allowed model, with a notice.
fn choose_model(
    models: &ModelCatalog,
    wanted: Option<&str>,
    chosen: Option<&SessionSummary>,
) -> (Result<Arc<dyn Model>, NoModel>, Option<String>) {
    match models.choose(wanted, chosen) {
        Err(NoModel::Forbidden { message }) => match models.without_forbidden_default() {
            Some(model) => {
                let notice = format!("{message}\nThis session uses `{}`.", model.name());
                (Ok(model), Some(notice))
            }
            None => (Err(NoModel::NoKey { message }), None),
        },
        other => (other, None),
    }
}

/// Returns the session, or the question about a session that is open in another process.
fn begin(
    store: Store,
    place: &AppContext,
    policy: &Policy,
    chosen: Option<SessionSummary>,
    (model, takes_over): (&str, bool),
) -> Result<SessionStart, CliError> {
    if let Some(chosen) = &chosen {
        if takes_over {
            lock_takeover::end_holder(&store, &chosen.session_id).map_err(CliError::usage)?;
        }
        if store.holder(&chosen.session_id)?.is_some() {
            return Ok(SessionStart::Held(Box::new(LockedSession { store, chosen: chosen.clone() })));
        }
    }
    let session = session::open(store, place, policy, chosen, model, LoadScope::Tail)?;
    Ok(SessionStart::Ready(Box::new(session)))
}
