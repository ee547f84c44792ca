//! Opens the store and the chosen session for a screen, with its model and policy. This reads from the disk and must
//! not be done on the UI thread.

use super::PreviousSession;
use super::session_lock::{LockedSession, SessionStart};
use super::session_prompt;
use super::session_runner::SessionRunner;
use crate::cli::screen::current_workspace::CurrentWorkspace;
use crate::host::context::AppContext;
use crate::host::crash::CrashHandler;
use crate::host::error::CliError;
use crate::host::options::{Common, SessionChoice};
use crate::host::query::QueryHandler;
use crate::host::session_builder::SessionBuilder;
use crate::host::session_builder::front_end::FrontEnd;
use crate::host::session_error::SessionError;
use crate::protocol::Event;
use crate::store::Store;
use tokio::sync::mpsc;

/// Request to open a session.
pub(crate) struct SessionOpener {
    pub common: Common,
    pub app: AppContext,
    pub choice: SessionChoice,
    /// Session that was open on the previous screen.
    pub before: Option<PreviousSession>,
    pub here: CurrentWorkspace,
    /// Sender for the results of queries that do not go through the session.
    pub events: mpsc::UnboundedSender<Event>,
    pub watch: CrashHandler,
    /// Whether first-time setup may start automatically.
    pub sets_up: bool,
}

/// Result of opening a session.
pub(crate) enum OpenOutcome {
    /// The user must choose from a list of sessions; none has been opened.
    Several(QueryHandler),
    One(Box<SessionRunner>),
}

impl SessionOpener {
    /// Claims the chosen session or creates a new one. May have to wait for another process to exit.
    pub(crate) fn open(self, store: Store) -> Result<OpenOutcome, CliError> {
        let Self { common, app, choice, before, here, events, watch, sets_up } = self;
        let started_in = app.workspace.clone();
        if choice == SessionChoice::Pick && session_prompt::needs_list(&store, &app)? {
            return Ok(OpenOutcome::Several(QueryHandler::new(store, &app, events)));
        }
        // A new session continues with the model of the previous session.
        let is_new = choice == SessionChoice::New;
        let model = before.as_ref().filter(|_| is_new).and_then(|before| before.model.clone()).or_else(|| common.model.clone());
        let common = match &before {
            // The options of the command line are those of the first session.
            Some(before) => Common { take_over: false, ..common_after(before, is_new, &app, common) },
            None => common,
        };
        let common = Common { model, ..common };
        let flag = common.model.clone();
        let builder = SessionBuilder::find(FrontEnd::interactive(), common, app, store.clone(), &choice)?;
        let app = builder.context();
        let moved = app.workspace != started_in;
        let wanted = flag.or_else(|| app.settings.default_model_name().map(str::to_owned));
        here.set(app, builder.policy());
        let desk = QueryHandler::new(store, app, events);
        let session = match builder.try_claim() {
            Ok(session) => SessionStart::Ready(Box::new(builder.with_claimed(session))),
            Err(SessionError::Locked { id, .. }) => SessionStart::Held(Box::new(LockedSession { id, builder })),
            Err(error) => return Err(error.into()),
        };
        Ok(OpenOutcome::One(Box::new(SessionRunner { session, moved, wanted, desk, watch, sets_up })))
    }
}

/// Returns the options of a session that follows another one. A new session continues in the mode of the previous one;
/// any other session has its own.
fn common_after(before: &PreviousSession, is_new: bool, app: &AppContext, common: Common) -> Common {
    let usual = app.session_mode(common.mode);
    let mode = Some(before.mode).filter(|mode| is_new && *mode != usual);
    Common { mode, fallback_mode: common.mode.or(common.fallback_mode), ..common }
}
