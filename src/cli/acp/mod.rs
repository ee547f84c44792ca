//! `aye acp`: serves sessions to an editor on stdin and stdout.

mod buffers;
mod servers;
mod session_files;

use crate::acp::{
    self, Answer, Authentication, ConnectionParts, EndReason, Listed, Refusal, RunningSession, Sanitizers, SessionOpening,
    SessionOrigin,
};
use crate::agent;
use crate::config::NoModel;
use crate::host::console::warn;
use crate::host::context::AppContext;
use crate::host::error::CliError;
use crate::host::exit::Exit;
use crate::host::local_models;
use crate::host::models::ModelCatalog;
use crate::host::options::{Common, SessionChoice};
use crate::host::query::QueryHandler;
use crate::host::query_service::{QueryService, QueryTask};
use crate::host::retention;
use crate::host::review::ReviewService;
use crate::host::session_builder::front_end::FrontEnd;
use crate::host::session_builder::{ClaimedSession, SessionBuilder, StartedSession};
use crate::host::session_error::SessionError;
use crate::host::startup;
use crate::host::startup::{open_store, start_log};
use crate::host::stored_sessions;
use crate::protocol::Problem;
use crate::store::{Store, StoreError};
use crate::sys::signals::is_hangup_ignored;
use crate::tools::EditorConnection;
use crate::{text, tui};
use buffers::EditorPaths;
use futures_util::future::FutureExt as _;
use session_files::SessionFiles;
use std::collections::HashSet;
use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, watch};

/// Maximum time to wait for remaining work at exit.
const LEFTOVERS: Duration = Duration::from_secs(2);
/// Maximum number of sessions returned in a list.
const MAX_LISTED: usize = 5_000;

pub(crate) fn run(common: &Common) -> Result<Exit, CliError> {
    let app = AppContext::find(common)?;
    // Errors in the user's own files are reported before the editor sends a request.
    app.policy(common.policy.as_deref(), None)?;
    let _log = start_log(&app, common.verbosity);
    if std::io::stdin().is_terminal() {
        warn("`aye acp` speaks the Agent Client Protocol on stdin and stdout; start it from an editor");
    }
    let store = open_store(&app)?;
    let runtime = startup::runtime()?;
    let host =
        Arc::new(Host { common: common.clone(), app: app.clone(), store: store.clone(), reported: ReportedPaths::default() });
    let front = ConnectionParts {
        host,
        looks: Sanitizers { clean: text::clean, reveal: text::reveal },
        version: env!("CARGO_PKG_VERSION"),
        registry: tui::COMMANDS,
    };
    let signalled = Arc::new(AtomicU8::new(0));
    let ended = runtime.block_on(acp::serve(front, std::io::stdin(), std::io::stdout(), signal(signalled.clone())));
    retention::prune_at_end(&app, &store);
    // The time limit prevents an unresponsive disk from delaying the exit.
    runtime.shutdown_timeout(LEFTOVERS);
    Ok(match (ended, signalled.load(Ordering::Relaxed)) {
        (EndReason::Stopped, INTERRUPTED) => Exit::Interrupted,
        (EndReason::Stopped, _) => Exit::Terminated,
        (EndReason::Closed, _) => Exit::Completed,
    })
}

const INTERRUPTED: u8 = 1;
const TERMINATED: u8 = 2;

/// Waits for a signal that terminates the process, and stores its kind in `which`.
async fn signal(which: Arc<AtomicU8>) {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut interrupt), Ok(mut terminate)) = (signal(SignalKind::interrupt()), signal(SignalKind::terminate())) else {
        return std::future::pending().await;
    };
    let mut hang_up = if is_hangup_ignored() { None } else { signal(SignalKind::hangup()).ok() };
    let hung_up = async {
        match &mut hang_up {
            Some(hang_up) => drop(hang_up.recv().await),
            None => std::future::pending().await,
        }
    };
    let came = tokio::select! {
        _ = interrupt.recv() => INTERRUPTED,
        _ = terminate.recv() => TERMINATED,
        () = hung_up => TERMINATED,
    };
    which.store(came, Ordering::Relaxed);
}

type ReportedPaths = Arc<Mutex<HashSet<PathBuf>>>;

struct Host {
    common: Common,
    /// Context in which aye was started. Every session has a context of its own.
    app: AppContext,
    store: Store,
    /// Workspaces whose untrusted configuration has already been reported.
    reported: ReportedPaths,
}

impl acp::Host for Host {
    fn open(&self, opening: SessionOpening) -> Answer<RunningSession> {
        let mut directories = self.common.add_dirs.clone();
        directories.extend(opening.more.iter().cloned());
        let common = Common { directory: Some(opening.directory.clone()), add_dirs: directories, ..self.common.clone() };
        let (store, reported) = (self.store.clone(), self.reported.clone());
        async move { open(store, common, opening, reported).await }.boxed()
    }

    fn list(&self, directory: Option<PathBuf>) -> Answer<Vec<Listed>> {
        let store = self.store.clone();
        let list = move || {
            let workspace = directory.map(|directory| directory.canonicalize().unwrap_or(directory));
            let all = store
                .sessions(workspace.as_deref().map(crate::workspace::identity::workspace_id).as_ref())
                .map_err(refusal_of_store)?;
            // A session without messages cannot be continued.
            let listed = all.into_iter().filter(|session| !session.archived && session.title.is_some()).take(MAX_LISTED);
            Ok(listed
                .map(|session| Listed {
                    id: session.session_id,
                    directory: session.workspace.into(),
                    title: session.title,
                    updated: session.updated,
                })
                .collect())
        };
        run_blocking(list).boxed()
    }

    fn delete(&self, id: String) -> Answer<()> {
        let (store, app) = (self.store.clone(), self.app.clone());
        let delete = move || {
            let found = store.find(&id).map_err(refusal_of_store)?;
            // A user may abbreviate an ID, but a program may not.
            if found.session_id.as_str() != id {
                return Err(refusal_of_store(StoreError::NoSession { given: id }));
            }
            stored_sessions::forget(&store, &app, &found.session_id).map_err(refusal)
        };
        run_blocking(delete).boxed()
    }

    fn auth_methods(&self) -> Vec<Authentication> {
        vec![
            Authentication {
                id: "setup",
                name: "aye setup",
                description: "Run `aye setup` in a terminal: it asks for a provider and an API key, and saves the key \
                    in the keyring"
                    .to_owned(),
                in_terminal: Some(&["setup"]),
            },
            Authentication {
                id: "environment",
                name: "An API key in the environment",
                description: "Set ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY where the editor starts aye, or run `aye \
                    auth login`"
                    .to_owned(),
                in_terminal: None,
            },
        ]
    }

    fn check_authentication(&self) -> Answer<()> {
        let app = self.app.reload(&[]).unwrap_or_else(|_| self.app.clone());
        let flag = self.common.model.clone();
        async move {
            let models = ModelCatalog::new(&app);
            let (open, chosen) =
                (local_models::is_open(&app.settings, flag.as_deref(), None), models.choose(flag.as_deref(), None));
            let (chosen, _) = local_models::fallback_local_model(&models, &app.settings, chosen, open).await;
            chosen.map(drop).map_err(no_model)
        }
        .boxed()
    }
}

/// Runs disk access on another thread, because the disk may be slow.
async fn run_blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T, Refusal> + Send + 'static) -> Result<T, Refusal> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(Refusal::Failed(error.to_string())))
}

fn refusal(trouble: CliError) -> Refusal {
    match trouble.exit {
        Exit::Usage => Refusal::Wrong(trouble.to_string()),
        Exit::Authentication => Refusal::NoKey(trouble.to_string()),
        _ => Refusal::Failed(trouble.to_string()),
    }
}

fn refusal_of_store(error: StoreError) -> Refusal {
    match error {
        StoreError::Held { id, pid } => {
            Refusal::Held(format!("session `{id}` is open in process {pid}; close it there, or start another session"))
        }
        StoreError::NoSession { given } => {
            Refusal::NoSession(format!("unknown session `{given}`; `session/list` lists the sessions"))
        }
        StoreError::NotAnId { given } => {
            Refusal::NoSession(format!("`{given}` is not a session ID; `session/list` lists the sessions"))
        }
        error => Refusal::Failed(Problem::from(error).one_line()),
    }
}

fn no_model(error: NoModel) -> Refusal {
    match error {
        NoModel::NoKey(problem) => Refusal::NoKey(problem.one_line()),
        NoModel::Forbidden(problem) => Refusal::Wrong(problem.one_line()),
        NoModel::Wrong(error) => Refusal::Wrong(error.to_string()),
    }
}

fn refusal_of_session(error: SessionError) -> Refusal {
    match error {
        SessionError::Store(error) => refusal_of_store(error),
        SessionError::Locked { id, pid } => refusal_of_store(StoreError::Held { id: id.to_string(), pid }),
        SessionError::Policy(trouble) => Refusal::Policy(trouble.to_string()),
        SessionError::Model(error) => no_model(error),
        SessionError::Failed(trouble) => refusal(trouble),
    }
}

async fn open(store: Store, common: Common, opening: SessionOpening, reported: ReportedPaths) -> Result<RunningSession, Refusal> {
    let which = opening.which.clone();
    let builder = run_blocking(move || find(store, common, &which)).await?;
    let builder = builder.with_model().await.map_err(refusal_of_session)?;
    let handle = tokio::runtime::Handle::current();
    run_blocking(move || {
        let _runtime = handle.enter();
        let claimed = claim(builder, &opening, &reported)?;
        start(claimed, opening, &handle)
    })
    .await
}

/// Finds the requested session, or prepares a new one.
fn find(store: Store, common: Common, which: &SessionOrigin) -> Result<SessionBuilder, Refusal> {
    let app = AppContext::find(&common).map_err(refusal)?;
    let choice = match which {
        SessionOrigin::New => SessionChoice::New,
        SessionOrigin::Stored { id, .. } => {
            // A user may abbreviate an ID, but a program may not.
            if store.find(id).map_err(refusal_of_store)?.session_id.as_str() != id {
                return Err(refusal_of_store(StoreError::NoSession { given: id.clone() }));
            }
            SessionChoice::Id(id.clone())
        }
    };
    SessionBuilder::find(FrontEnd::editor(), common, app, store, &choice).map_err(refusal_of_session)
}

/// Claims the session and connects it to the editor.
fn claim(builder: SessionBuilder, opening: &SessionOpening, reported: &ReportedPaths) -> Result<ClaimedSession, Refusal> {
    let mut claimed = builder.claim().map_err(refusal_of_session)?;
    // Ignored files are reported once for each workspace, in the log of the editor.
    if let Some(line) = claimed.project().ignored_files_notice()
        && reported.lock().unwrap_or_else(PoisonError::into_inner).insert(claimed.context().workspace.clone())
    {
        warn(&line);
    }
    if let Some(editor) = EditorPaths::for_opening(opening) {
        claimed.connect_editor(EditorConnection::new(Arc::new(editor)));
    }
    Ok(claimed)
}

/// Starts the session with the MCP servers that the editor passed. Includes the session history if the editor requested
/// it.
fn start(mut claimed: ClaimedSession, opening: SessionOpening, runtime: &Handle) -> Result<RunningSession, Refusal> {
    let (servers, problems) = servers::specs(opening.servers);
    for problem in problems {
        claimed.notify(problem);
    }
    claimed.add_servers(servers);
    let past = claimed.history();
    let history = match opening.which {
        SessionOrigin::Stored { history: true, .. } => past.events(&claimed.session().records),
        SessionOrigin::Stored { history: false, .. } | SessionOrigin::New => Vec::new(),
    };
    let title = claimed.title().map(str::to_owned);
    let (events, receive_events) = mpsc::unbounded_channel();
    let desk = QueryHandler::new(claimed.session().store.clone(), claimed.context(), events.clone());
    desk.trust(claimed.project());
    let reviews = ReviewService::new(claimed.common(), claimed.context());
    let mut prepared = runtime.block_on(claimed.prepare()).map_err(refusal_of_session)?;
    let notices = prepared.take_notices();
    let (send, receive) = mpsc::channel(agent::CHANNEL_DEPTH);
    let (ask, queries) = mpsc::channel(agent::CHANNEL_DEPTH);
    let (room, has_room) = watch::channel(true);
    let service = QueryService::new(desk);
    service.open_history(past, prepared.context().clone());
    let serving = service.serve(queries);
    let id = prepared.session().id().clone();
    let files = Arc::new(SessionFiles::new(prepared.context(), &id));
    let directory = prepared.context().workspace.clone();
    let (laxest, effort) = (prepared.setup().options.laxest, prepared.setup().options.effort);
    let session = prepared.start(receive, events, Some(has_room));
    service.open_session(session.queries().clone());
    service.open_reviews(reviews.clone(), session.account().clone());
    let ended = tokio::spawn(wait_for_end(session, serving, reviews));
    Ok(RunningSession {
        id,
        directory,
        laxest,
        title,
        effort,
        commands: send,
        queries: ask,
        events: receive_events,
        history,
        notices,
        files,
        room,
        ended: ended.map(drop).boxed(),
    })
}

/// Waits until the session has ended, and then releases it.
async fn wait_for_end(mut session: StartedSession, serving: QueryTask, reviews: ReviewService) {
    session.wait_until_ended().await;
    reviews.end().await;
    serving.end().await;
    session.close().await;
}
