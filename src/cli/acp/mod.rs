//! `aye acp`: serves sessions to an editor on stdin and stdout.

mod buffers;
mod servers;
mod session_files;

use crate::acp::{
    self, Answer, Authentication, Ended, Front, Listed, Refusal, RunningSession, Sanitizers, SessionOpening, SessionOrigin,
};
use crate::agent::{self, Approver, Unfinished};
use crate::config::NoModel;
use crate::host::console::warn;
use crate::host::context::AppContext;
use crate::host::error::CliError;
use crate::host::exit::Exit;
use crate::host::history::SessionHistory;
use crate::host::local_models;
use crate::host::models::ModelCatalog;
use crate::host::nesting::Nesting;
use crate::host::options::{Common, SessionChoice};
use crate::host::policy_layers::Policy;
use crate::host::project::ProjectConfig;
use crate::host::query::QueryHandler;
use crate::host::query_service::{QueryService, Serving};
use crate::host::reload::Reload;
use crate::host::retention;
use crate::host::sandbox_host::SandboxHost;
use crate::host::session;
use crate::host::session::{Session, SessionOptions};
use crate::host::startup::{open_store, start_log};
use crate::host::stored_sessions;
use crate::host::user_rules::UserRules;
use crate::host::{session_servers, startup};
use crate::ports::Model;
use crate::protocol::{Command, Mode};
use crate::store::{SessionSummary, Store, StoreError};
use crate::sys::instance::Instance;
use crate::sys::signals::hang_up_is_ignored;
use crate::tools::InEditor;
use crate::{text, tui};
use buffers::OfEditor;
use futures_util::future::FutureExt as _;
use session_files::SessionFiles;
use std::collections::HashSet;
use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

/// Time for remaining work to end.
const LEFTOVERS: Duration = Duration::from_secs(2);
/// Maximum number of sessions in a list.
const MAX_LISTED: usize = 5_000;

pub fn run(common: &Common) -> Result<Exit, CliError> {
    let place = AppContext::find(common)?;
    // Errors in the user's own files are reported before the editor sends a request.
    place.policy(common.policy.as_deref(), None)?;
    let _log = start_log(&place, common.verbosity);
    if std::io::stdin().is_terminal() {
        warn("`aye acp` speaks the Agent Client Protocol on stdin and stdout; it is meant to be started by an editor");
    }
    let store = open_store(&place)?;
    let runtime = startup::runtime()?;
    let host = Arc::new(Host { common: common.clone(), place: place.clone(), store: store.clone(), told: Told::default() });
    let front = Front {
        host,
        looks: Sanitizers { clean: text::clean, reveal: text::reveal },
        version: env!("CARGO_PKG_VERSION"),
        registry: tui::COMMANDS,
    };
    let signalled = Arc::new(AtomicU8::new(0));
    let ended = runtime.block_on(acp::serve(front, std::io::stdin(), std::io::stdout(), signal(signalled.clone())));
    retention::before_the_end(&place, &store);
    // The process does not wait for a disk that does not respond.
    runtime.shutdown_timeout(LEFTOVERS);
    Ok(match (ended, signalled.load(Ordering::Relaxed)) {
        (Ended::Stopped, INTERRUPTED) => Exit::Interrupted,
        (Ended::Stopped, _) => Exit::Terminated,
        (Ended::Closed, _) => Exit::Completed,
    })
}

const INTERRUPTED: u8 = 1;
const TERMINATED: u8 = 2;

/// Resolves when a signal ends the process.
async fn signal(which: Arc<AtomicU8>) {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut interrupt), Ok(mut terminate)) = (signal(SignalKind::interrupt()), signal(SignalKind::terminate())) else {
        return std::future::pending().await;
    };
    let mut hang_up = if hang_up_is_ignored() { None } else { signal(SignalKind::hangup()).ok() };
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

type Told = Arc<Mutex<HashSet<PathBuf>>>;

struct Host {
    common: Common,
    /// The place where aye was started; each session has its own.
    place: AppContext,
    store: Store,
    /// The projects that were reported as untrusted.
    told: Told,
}

/// A session whose model has not been chosen yet.
struct Ready {
    common: Common,
    place: AppContext,
    project: ProjectConfig,
    policy: Policy,
    chosen: Option<SessionSummary>,
    model: Result<Arc<dyn Model>, NoModel>,
    open: bool,
}

impl acp::Host for Host {
    fn open(&self, asked: SessionOpening) -> Answer<RunningSession> {
        let mut directories = self.common.add_dirs.clone();
        directories.extend(asked.more.iter().cloned());
        let common = Common { directory: Some(asked.directory.clone()), add_dirs: directories, ..self.common.clone() };
        let (store, told) = (self.store.clone(), self.told.clone());
        async move { open(store, common, asked, told).await }.boxed()
    }

    fn list(&self, directory: Option<PathBuf>) -> Answer<Vec<Listed>> {
        let store = self.store.clone();
        let list = move || {
            let workspace = directory.map(|directory| directory.canonicalize().unwrap_or(directory));
            let all = store
                .sessions(workspace.as_deref().map(crate::workspace::identity::workspace_id).as_ref())
                .map_err(refusal_of_store)?;
            // A session without any message cannot be continued.
            let said = all.into_iter().filter(|session| !session.archived && session.title.is_some()).take(MAX_LISTED);
            Ok(said
                .map(|session| Listed {
                    id: session.session_id,
                    directory: session.workspace.into(),
                    title: session.title,
                    updated: session.updated,
                })
                .collect())
        };
        beside(list).boxed()
    }

    fn delete(&self, id: String) -> Answer<()> {
        let (store, place) = (self.store.clone(), self.place.clone());
        let delete = move || {
            let found = store.find(&id).map_err(refusal_of_store)?;
            // A user may abbreviate an ID, a program may not.
            if found.session_id.as_str() != id {
                return Err(refusal_of_store(StoreError::NoSession { given: id }));
            }
            stored_sessions::forget(&store, &place, &found.session_id).map_err(refusal)
        };
        beside(delete).boxed()
    }

    fn ways_in(&self) -> Vec<Authentication> {
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

    fn authenticated(&self) -> Answer<()> {
        let place = self.place.anew(&[]).unwrap_or_else(|_| self.place.clone());
        let flag = self.common.model.clone();
        async move {
            let models = ModelCatalog::new(&place);
            let (open, chosen) =
                (local_models::is_open(&place.settings, flag.as_deref(), None), models.choose(flag.as_deref(), None));
            let (chosen, _) = local_models::instead(&models, &place.settings, chosen, open).await;
            chosen.map(drop).map_err(no_model)
        }
        .boxed()
    }
}

/// Runs work on another thread, because a disk may be slow.
async fn beside<T: Send + 'static>(work: impl FnOnce() -> Result<T, Refusal> + Send + 'static) -> Result<T, Refusal> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(Refusal::Failed(error.to_string())))
}

fn refusal(trouble: CliError) -> Refusal {
    match trouble.exit {
        Exit::Usage => Refusal::Wrong(trouble.message),
        Exit::Authentication => Refusal::NoKey(trouble.message),
        _ => Refusal::Failed(trouble.message),
    }
}

fn refusal_of_store(error: StoreError) -> Refusal {
    match error {
        StoreError::Held { id, pid } => {
            Refusal::Held(format!("session `{id}` is open in process {pid}; close it there, or start another session"))
        }
        StoreError::NoSession { given } => {
            Refusal::NoSession(format!("there is no session `{given}`; `session/list` lists the sessions"))
        }
        StoreError::NotAnId { given } => {
            Refusal::NoSession(format!("`{given}` is not a session ID; `session/list` lists the sessions"))
        }
        error => Refusal::Failed(error.to_string()),
    }
}

fn no_model(error: NoModel) -> Refusal {
    match error {
        NoModel::NoKey { message } => Refusal::NoKey(message),
        NoModel::Forbidden { message } => Refusal::Wrong(message),
        NoModel::Wrong(error) => Refusal::Wrong(error.to_string()),
    }
}

async fn open(store: Store, common: Common, asked: SessionOpening, told: Told) -> Result<RunningSession, Refusal> {
    let which = asked.which.clone();
    let found = store.clone();
    let ready = beside(move || find(&found, common, &which)).await?;
    let Ready { common, place, project, policy, chosen, model, open } = ready;
    let models = ModelCatalog::new(&place).under(&policy);
    let (model, said) = local_models::instead(&models, &place.settings, model, open).await;
    let model = model.map_err(no_model)?;
    let handle = tokio::runtime::Handle::current();
    beside(move || {
        let _runtime = handle.enter();
        begin(store, &common, (place, project, policy), (chosen, model), (said, &told), asked)
    })
    .await
}

/// Finds the place, the requested session and its model.
fn find(store: &Store, common: Common, which: &SessionOrigin) -> Result<Ready, Refusal> {
    let mut place = AppContext::find(&common).map_err(refusal)?;
    let choice = match which {
        SessionOrigin::New => SessionChoice::New,
        SessionOrigin::Stored { id, .. } => {
            let known = store.find(id).map_err(refusal_of_store)?;
            if known.session_id.as_str() != id {
                return Err(refusal_of_store(StoreError::NoSession { given: id.clone() }));
            }
            // A session that this process is closing becomes free in turn.
            let holder = store.holder(&known.session_id).map_err(refusal_of_store)?;
            if let Some(holder) = holder.filter(|holder| holder.instance != Instance::current()) {
                return Err(refusal_of_store(StoreError::Held { id: id.clone(), pid: holder.instance.pid }));
            }
            SessionChoice::Id(id.clone())
        }
    };
    let chosen = session::choose(store, &mut place, &choice).map_err(refusal)?;
    let flag = common.model.as_deref();
    let open = local_models::is_open(&place.settings, flag, chosen.as_ref());
    let project = ProjectConfig::look(&place.workspace, &place.directories.config, common.trust);
    let policy = place.policy(common.policy.as_deref(), Some(&project));
    let policy = policy.map_err(|trouble| Refusal::Policy(trouble.message))?;
    let model = ModelCatalog::new(&place).under(&policy).choose(flag, chosen.as_ref());
    if let Ok(model) = &model
        && let Some(ask) = crate::host::models::key_to_ask_for(&place, model.name())
    {
        ask();
    }
    Ok(Ready { common, place, project, policy, chosen, model, open })
}

/// Starts the session.
fn begin(
    store: Store,
    common: &Common,
    (mut place, project, policy): (AppContext, ProjectConfig, Policy),
    (chosen, model): (Option<SessionSummary>, Arc<dyn Model>),
    (said, told): (Option<String>, &Told),
    asked: SessionOpening,
) -> Result<RunningSession, Refusal> {
    let file = common.policy.clone();
    place.with_tools_of(&project);
    let effort = place.settings.effort.map(|set| set.effort);
    let title = chosen.as_ref().and_then(|chosen| chosen.title.clone());
    let mut session =
        session::open(store.clone(), &place, &policy, chosen, model.name(), session::LoadScope::All).map_err(refusal)?;
    session.goes_on();
    let mut notices: Vec<String> = said.into_iter().chain(ignored(&project, &place, told)).collect();
    if let Some(editor) = OfEditor::of(&asked) {
        session.kept.edited_in(InEditor::new(Arc::new(editor)));
    }
    let (servers, problems) = servers::specs(asked.servers);
    notices.extend(problems);
    let past = SessionHistory::new(&store, session.id(), &place);
    let history = match asked.which {
        SessionOrigin::Stored { told: true, .. } => past.events(&session.records),
        SessionOrigin::Stored { told: false, .. } | SessionOrigin::New => Vec::new(),
    };
    let standing = SandboxHost::find(&place, project.trust());
    let laxest = session::laxest(&place);
    let remote = session_servers::connect(servers, &mut session, &place, &policy, &project, &standing, approver());
    let terms = SessionOptions { remote, ..terms(common, &place, &policy, &project, &standing, model.name(), &store) };
    let mut setup = session::setup(&place, &policy, &mut session, model, terms);
    notices.append(&mut session.notices);
    let (send, receive) = mpsc::channel::<Command>(agent::CHANNEL_DEPTH);
    let (ask, queries) = mpsc::channel(agent::CHANNEL_DEPTH);
    let (room, has_room) = watch::channel(true);
    setup.room = Some(has_room);
    let (events, receive_events) = mpsc::unbounded_channel();
    let desk = QueryHandler::new(store, &place, events.clone());
    desk.trust(&project);
    let service = QueryService::new(desk);
    service.open_history(past, place.clone());
    let serving = service.serve(queries);
    let id = session.id().clone();
    let files = Arc::new(SessionFiles::new(&place, &id));
    let directory = place.workspace.clone();
    let (reload, updates) = Reload::new(place, file, project, &session, &policy, standing);
    setup.policy_updates = Some(updates);
    let running = agent::spawn(setup, receive, events);
    service.open_session(running.queries);
    tokio::spawn(reload.run());
    if let Some(servers) = session.kept.servers() {
        servers.look();
    }
    let ended = tokio::spawn(wait_for_the_end(running.ended, serving, session));
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

/// Returns the notice about ignored files of the project, once per workspace, for the log of the editor.
fn ignored(project: &ProjectConfig, place: &AppContext, told: &Told) -> Option<String> {
    let line = project.ignored()?;
    if told.lock().unwrap_or_else(PoisonError::into_inner).insert(place.workspace.clone()) {
        warn(&line);
    }
    Some(line)
}

/// Releases the lock of the session once it has ended.
async fn wait_for_the_end(ended: JoinHandle<()>, serving: Serving, session: Session) {
    let _ = ended.await;
    serving.end().await;
    session.end_servers().await;
    drop(session);
}

/// Returns the approver: a program that aye runs must not approve its own actions.
fn approver() -> Approver {
    match Nesting::of_process() {
        Nesting::Outermost => Approver::Person,
        Nesting::InsideAye => Approver::Nobody,
    }
}

fn terms(
    common: &Common,
    place: &AppContext,
    policy: &Policy,
    project: &ProjectConfig,
    standing: &SandboxHost,
    model: &str,
    store: &Store,
) -> SessionOptions {
    let set = place.settings.approval.timeout;
    let enforcer = place.enforcer(policy, standing.sandbox(), Mode::Ask);
    let timeout = enforcer.approval_timeout().map_or(set, |said| said.min(set));
    SessionOptions {
        approver: approver(),
        // A user who continues does so with a prompt.
        unfinished: Unfinished::Replace,
        max_steps: common.max_steps,
        approval_timeout: Some(timeout),
        instructions: project.instructions(),
        guidance: project.guidance(),
        rules: Arc::new(UserRules::new(place, common.policy.as_deref(), model).with_log(store.clone())),
        standing: standing.clone(),
        remote: None,
    }
}
