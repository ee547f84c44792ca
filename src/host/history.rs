//! Session history, which is loaded in the background. Older parts are loaded on demand.

use super::context::AppContext;
use super::session::{PIECE_RECORDS, Session};
use crate::agent;
use crate::ports::Record;
use crate::protocol::{ChangedFiles, Command, Event, EventKind, ExportForm, Problem, SessionCommand, SessionId, WorkspaceId};
use crate::session::SessionState;
use crate::store::{LoadedSession, SessionPart, Store, StoreError};
use crate::transfer::export;
use std::path::PathBuf;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Loads a session's complete history in the background.
pub(crate) fn load(session: &Session) -> JoinHandle<Result<LoadedSession, StoreError>> {
    let (store, id, is_new) = (session.store.clone(), session.id().clone(), session.is_new());
    tokio::task::spawn_blocking(move || if is_new { Ok(LoadedSession::default()) } else { store.load(&id) })
}

/// Session history for display.
#[derive(Clone)]
pub(crate) struct SessionHistory {
    store: Store,
    session: SessionId,
    workspace: WorkspaceId,
}

impl SessionHistory {
    pub(crate) fn new(store: &Store, session: &SessionId, app: &AppContext) -> Self {
        Self { store: store.clone(), session: session.clone(), workspace: app.workspace_id() }
    }

    /// Converts records to events.
    pub(crate) fn events(&self, records: &[Record]) -> Vec<Event> {
        agent::replay(records, &self.workspace, &self.session)
    }

    /// Computes the session's totals and emits them, for a screen that shows only the end of the session.
    pub(crate) fn emit_totals(self, events: mpsc::UnboundedSender<Event>) {
        tokio::task::spawn_blocking(move || match self.store.load(&self.session) {
            Ok(loaded) => self.emit(EventKind::HistorySummed(SessionState::from_records(&loaded.records).history_sum()), &events),
            Err(error) => self.emit(EventKind::notice(Problem::from(error).one_line()), &events),
        });
    }

    /// Emits an event. The event is dropped if the screen has closed.
    pub(crate) fn emit(&self, kind: EventKind, events: &mpsc::UnboundedSender<Event>) {
        let _ = events.send(Event {
            workspace_id: self.workspace.clone(),
            session_id: self.session.clone(),
            task_id: None,
            step_id: None,
            timestamp: jiff::Timestamp::now(),
            kind,
        });
    }

    /// Exports the history to a file with the given name or a default name. Never replaces an existing file.
    pub(crate) fn export(self, app: AppContext, form: ExportForm, path: Option<PathBuf>, events: mpsc::UnboundedSender<Event>) {
        tokio::task::spawn_blocking(move || {
            let name = |path: PathBuf| match path.strip_prefix("~") {
                Ok(rest) => app.home.join(rest),
                Err(_) => app.workspace.join(path),
            };
            let own = || {
                let id: String =
                    self.session.to_string().chars().filter(|letter| letter.is_ascii_alphanumeric()).take(8).collect();
                let ending = form.ending();
                let mut names =
                    (1_u32..).map(|nth| if nth == 1 { format!("aye-{id}.{ending}") } else { format!("aye-{id}-{nth}.{ending}") });
                names.find_map(|name| Some(app.workspace.join(name)).filter(|path| path.symlink_metadata().is_err()))
            };
            let path = path.map(name).or_else(own).unwrap_or_else(|| app.workspace.join("aye-session"));
            let told = export::to_new_file(&self.store, self.session.as_str(), form, &path);
            let message = told.unwrap_or_else(|error| Problem::from(error).one_line());
            self.emit(EventKind::notice(message), &events);
        });
    }

    /// Emits the events that precede a position in the journal.
    pub(crate) fn send_before(self, before: i64, events: mpsc::UnboundedSender<Event>) {
        tokio::task::spawn_blocking(move || {
            let SessionPart { records, before } = match self.store.page(&self.session, Some(before), PIECE_RECORDS) {
                Ok(piece) => piece,
                Err(error) => {
                    self.emit(EventKind::notice(Problem::from(error).one_line()), &events);
                    SessionPart { records: Vec::new(), before: Some(before) }
                }
            };
            self.emit(EventKind::HistoryLoaded { events: self.events(&records), before }, &events);
        });
    }
}

/// Handles a history that cannot be read. The session cannot continue, so the screen shows the error until the user
/// leaves.
pub(crate) async fn unreadable(
    past: SessionHistory,
    message: String,
    events: &mpsc::UnboundedSender<Event>,
    mut commands: mpsc::Receiver<SessionCommand>,
) -> ChangedFiles {
    past.emit(EventKind::notice(message), events);
    while let Some(command) = commands.recv().await {
        if command == Command::Quit.into() {
            break;
        }
    }
    ChangedFiles::default()
}
