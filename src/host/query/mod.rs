//! Handles queries from the screen that need no session, concerning for example files to mention, custom commands and
//! other sessions. They can be answered before a session is open.

pub(crate) mod attachments;
pub(crate) mod branches;
pub(crate) mod commands;
pub(crate) mod keymap_watch;
mod memory;
pub(crate) mod sessions;
mod tasks;

pub(crate) use attachments::store_image;

use super::context::AppContext;
use super::error::CliError;
use super::project::ProjectConfig;
use super::session_services::service_rows;
use super::setup::handler;
use super::stored_sessions;
use crate::protocol::{Event, EventKind, HostRequest, HostResponse, SessionId, SetupRequest};
use crate::store::Store;
use crate::transfer;
use crate::workspace::files::Files;
use crate::workspace::symbols::Symbols;
use crate::workspace::worktree::Worktree;
use commands::CustomCommands;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tokio::sync::mpsc;

/// Handles queries from the screen. Cheap to clone.
#[derive(Clone)]
pub(crate) struct QueryHandler {
    inner: Arc<Inner>,
    events: mpsc::UnboundedSender<Event>,
}

struct Inner {
    store: Store,
    app: AppContext,
    files: Files,
    symbols: Symbols,
    commands: CustomCommands,
    worktree: Arc<Worktree>,
    /// Number of the most recent search. Any older search stops.
    searches: AtomicU64,
    /// Whether the tasks are being watched.
    follows_tasks: AtomicBool,
}

impl QueryHandler {
    pub(crate) fn new(store: Store, app: &AppContext, events: mpsc::UnboundedSender<Event>) -> Self {
        let files = Files::new(app.workspace.clone());
        let symbols = Symbols::new(app.workspace.clone());
        let commands = CustomCommands::new(app.directories.config.join("commands"), app.skills.clone(), app.plugins());
        let status_command = app.settings.status_command().map(str::to_owned);
        let (worktree, searches) =
            (Arc::new(Worktree::new(app.workspace.clone(), app.environment.clone(), status_command)), AtomicU64::new(0));
        let (app, follows_tasks) = (app.clone(), AtomicBool::new(false));
        let inner = Inner { store, app, files, symbols, commands, worktree, searches, follows_tasks };
        Self { inner: Arc::new(inner), events }
    }

    /// Returns the sender through which results are sent.
    pub(crate) fn events(&self) -> mpsc::UnboundedSender<Event> {
        self.events.clone()
    }

    /// Performs a step of first-time setup. The result is sent as an event.
    pub(crate) fn set_up(&self, asked: SetupRequest) {
        let desk = self.clone();
        tokio::spawn(async move {
            let answer = Box::pin(handler::answer(&desk.inner.app, asked)).await;
            desk.emit(HostResponse::Setup(answer));
        });
    }

    /// Adds the slash commands and skills of a trusted project.
    pub(crate) fn trust(&self, project: &ProjectConfig) {
        self.inner.commands.trust(project);
        self.run(HostRequest::Commands);
    }

    /// Runs a query on another thread, because the disk may be slow. The result is sent as an event.
    pub(crate) fn run(&self, what: HostRequest) {
        let desk = self.clone();
        if what == HostRequest::Worktree {
            let worktree = Arc::clone(&self.inner.worktree);
            return worktree.request_update(move |told| desk.emit(told));
        }
        // The first request about tasks starts the watch, which also answers that request.
        if tasks::is_about_tasks(&what) && !self.inner.follows_tasks.swap(true, Ordering::Relaxed) {
            desk.follow_tasks();
        }
        let number = match &what {
            HostRequest::Sessions { .. } => desk.inner.searches.fetch_add(1, Ordering::Relaxed) + 1,
            HostRequest::Files { words } => desk.inner.files.want(words),
            HostRequest::Symbols { words } => desk.inner.symbols.want(words),
            _ => 0,
        };
        tokio::task::spawn_blocking(move || desk.find(what, number));
    }

    fn find(&self, what: HostRequest, number: u64) {
        let inner = &*self.inner;
        let (store, app) = (&inner.store, &inner.app);
        let told =
            match what {
                HostRequest::Files { words } => {
                    let tell = |words: &str, files| self.emit(HostResponse::Files { words: words.to_owned(), files });
                    return inner.files.find(&words, number, &tell);
                }
                HostRequest::Symbols { words } => {
                    let tell = |symbols| self.emit(HostResponse::Symbols { words: words.clone(), symbols });
                    return inner.symbols.find(&words, number, &inner.files, &tell);
                }
                HostRequest::Dropped { pasted, readings } => {
                    HostResponse::Dropped { files: attachments::resolve_dropped(app, &readings), pasted }
                }
                HostRequest::Clipboard => HostResponse::Clipboard(attachments::clipboard(app)),
                HostRequest::Commands => {
                    let (commands, notices) = inner.commands.now();
                    HostResponse::Commands { commands, notices }
                }
                HostRequest::Sessions { words, all, archived } => {
                    let is_last = || inner.searches.load(Ordering::Relaxed) == number;
                    match sessions::list(store, app, (&words, all, archived), &is_last, &|told| self.emit(told)) {
                        Ok(()) => return,
                        Err(error) => HostResponse::Failed { problem: error.into() },
                    }
                }
                HostRequest::Session { session_id } => {
                    let preview = sessions::preview(store, app, &session_id);
                    HostResponse::Session(preview.unwrap_or_else(|error| sessions::failed_preview(session_id, error)))
                }
                HostRequest::Transcript { session_id } => response_or_failure(
                    transfer::export::to_read(store, &session_id)
                        .map_err(Into::into)
                        .map(|(title, text)| HostResponse::Transcript { session_id, title, text }),
                ),
                HostRequest::Rename { session_id, title } => response_or_failure(
                    sessions::rename(store, &session_id, &title).map(|title| HostResponse::Renamed { session_id, title }),
                ),
                HostRequest::Delete { session_id } => {
                    response_or_failure(sessions::delete(store, app, &session_id).map(|()| HostResponse::Deleted { session_id }))
                }
                HostRequest::Archive { session_id, archived } => response_or_failure(
                    store
                        .archive(&session_id, archived)
                        .map(|()| HostResponse::Archived { session_id, archived })
                        .map_err(Into::into),
                ),
                HostRequest::Branches { session_id } => response_or_failure(
                    branches::list_branches(store, &session_id)
                        .map(|branches| HostResponse::Branches { branches })
                        .map_err(Into::into),
                ),
                HostRequest::Fork { session_id, until } => response_or_failure(
                    stored_sessions::fork(store, app, &session_id, &until).map(|session_id| HostResponse::Forked { session_id }),
                ),
                HostRequest::Places => {
                    HostResponse::Places { rows: file_locations(app).into_iter().chain(service_rows(app)).collect() }
                }
                HostRequest::KeepTheme { name } => {
                    let kept = super::theme::keep(app, &name).map_err(|error| error.to_string());
                    HostResponse::ThemeKept { name, kept }
                }
                HostRequest::Memory(request) => response_or_failure(memory::respond(app, store, &request)),
                // The other requests are about tasks; `run` has handled the status row.
                tasks => return self.answer_tasks(&tasks),
            };
        self.emit(told);
    }

    /// Sends a result to the front end.
    pub(crate) fn emit(&self, told: HostResponse) {
        // The result is dropped if the screen has closed.
        let _ = self.events.send(Event {
            workspace_id: self.inner.app.workspace_id(),
            session_id: SessionId::new(String::new()),
            task_id: None,
            step_id: None,
            timestamp: jiff::Timestamp::now(),
            kind: EventKind::LookedUp(told),
        });
    }
}

fn response_or_failure(found: Result<HostResponse, CliError>) -> HostResponse {
    found.unwrap_or_else(|error| HostResponse::Failed { problem: error.into_problem() })
}

/// Returns the paths of the user's files, marking optional files that do not exist.
fn file_locations(app: &AppContext) -> Vec<(String, String)> {
    let home = |path: &PathBuf| crate::text::abbreviate_home(path, &app.home);
    let file = |path: PathBuf| if path.exists() { home(&path) } else { format!("{} (missing)", home(&path)) };
    let (config, data) = (&app.directories.config, &app.directories.data);
    [
        ("settings", file(config.join("config.toml"))),
        ("your policy", file(config.join("policy.toml"))),
        ("saved rules", file(app.directories.project_dir(&app.workspace).join("policy.toml"))),
        ("project's", file(app.workspace.join(".aye"))),
        ("data", home(data)),
        ("log", home(&data.join("logs"))),
    ]
    .map(|(name, words)| (name.to_owned(), words))
    .to_vec()
}
