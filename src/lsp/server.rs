//! Language server of a session. It is started by the first query, is restarted after a crash, and never delays a query
//! for long.

use super::connection::shorten;
use super::findings::Findings;
use super::languages::Language;
use super::limits::{MISSES, QUERIES, QUERY_TIME, RESTART_PAUSES};
use super::session::{Compared, LspSession, Purpose};
use crate::ports::{Launcher, ProposedText, ServerProgram};
use crate::protocol::{FileDiagnostics, LanguageServerStatus};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{Semaphore, oneshot};
use tokio::time::{Instant, timeout_at};

/// Function that finds the command for starting a language's server, including the path of the program. The error says
/// why there is none.
pub(crate) type FindCommand = Arc<dyn Fn(&Language) -> Result<ServerCommand, String> + Send + Sync>;

/// How to start a language server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerCommand {
    pub argv: Vec<String>,
    pub environment: Vec<(String, String)>,
}

/// Data that is shared by all language servers of a session.
pub(super) struct ServerContext {
    pub workspace: PathBuf,
    pub launcher: Arc<dyn Launcher>,
    pub find: FindCommand,
}

/// Handle to a language server. All clones refer to the same server.
#[derive(Clone)]
pub(super) struct LanguageServer {
    language: &'static Language,
    environment: Arc<ServerContext>,
    session: Arc<tokio::sync::Mutex<Option<LspSession>>>,
    queries: Arc<Semaphore>,
    /// Number of consecutive queries for which the server did not respond in time.
    misses: Arc<AtomicU32>,
    state: Arc<Mutex<State>>,
    failures: Arc<Mutex<usize>>,
}

#[derive(Debug, Clone)]
enum State {
    NotStarted,
    Starting,
    Ready,
    /// The server crashed or stopped responding. The first query after `since` starts it again.
    Failed {
        reason: String,
        since: Instant,
    },
    Off {
        reason: String,
    },
}

impl LanguageServer {
    pub(super) fn new(language: &'static Language, environment: Arc<ServerContext>) -> Self {
        Self {
            language,
            environment,
            session: Arc::default(),
            queries: Arc::new(Semaphore::new(QUERIES)),
            misses: Arc::default(),
            state: Arc::new(Mutex::new(State::NotStarted)),
            failures: Arc::default(),
        }
    }

    /// Returns whether this server supports the language of a file.
    pub(super) fn covers(&self, path: &Path) -> bool {
        self.language.id_of(path).is_some()
    }

    /// Returns the file name of the server program.
    pub(super) fn name(&self) -> &'static str {
        self.language.command.first().copied().unwrap_or_default()
    }

    pub(super) fn status(&self) -> LanguageServerStatus {
        let state = match self.state() {
            State::NotStarted => "not started; starts with the first change to a file in its language".to_owned(),
            State::Starting => "starting".to_owned(),
            State::Ready if self.misses.load(Ordering::Relaxed) >= MISSES => {
                "slow; changes are shown without its diagnostics".to_owned()
            }
            State::Ready => "ready".to_owned(),
            State::Failed { reason, .. } => format!("failed: {reason}; restarts with the next change"),
            State::Off { reason } => format!("off: {reason}"),
        };
        LanguageServerStatus { language: self.language.name.to_owned(), server: self.name().to_owned(), state }
    }

    fn state(&self) -> State {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_state(&self, state: State) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = state;
    }

    /// Returns the diagnostics of a change if they arrive in time. Otherwise, the work continues in the background, so
    /// that the server has the correct text and is ready for the next query.
    pub(super) async fn check(
        &self,
        texts: Vec<ProposedText>,
        purpose: Purpose,
        name: impl Fn(&Path) -> String,
    ) -> Vec<FileDiagnostics> {
        if matches!(self.state(), State::Off { .. }) {
            return Vec::new();
        }
        let Ok(permit) = Arc::clone(&self.queries).try_acquire_owned() else { return Vec::new() };
        let asked = Instant::now();
        let deadline = asked + QUERY_TIME;
        let (tell, told) = oneshot::channel();
        let (server, paths) = (self.clone(), texts.iter().map(|text| text.path.clone()).collect::<Vec<_>>());
        tokio::spawn(async move {
            let mut session = server.session.lock().await;
            let started = Instant::now();
            let result = server.run(&mut session, &texts, purpose, deadline).await;
            drop(session);
            drop(permit);
            if result.is_some() && started.elapsed() < QUERY_TIME {
                server.misses.store(0, Ordering::Relaxed);
            }
            // After the deadline, nobody waits for the result.
            let _ = tell.send(result);
        });
        let waits_until = if self.misses.load(Ordering::Relaxed) >= MISSES { asked } else { deadline };
        let Ok(Ok(compared)) = timeout_at(waits_until, told).await else {
            self.misses.fetch_add(1, Ordering::Relaxed);
            return Vec::new();
        };
        let files = compared.unwrap_or_default().into_iter().zip(paths);
        let told = files.filter_map(|(compared, path)| {
            let (before, after) = compared?;
            Some(Findings::compare(&before, &after, name(&path), self.name()))
        });
        told.collect()
    }

    /// Starts the server if necessary, and checks the texts with it. If the server fails, it is shut down.
    async fn run(
        &self,
        session: &mut Option<LspSession>,
        texts: &[ProposedText],
        purpose: Purpose,
        deadline: Instant,
    ) -> Option<Compared> {
        if let Some(reason) = session.as_ref().and_then(LspSession::end_reason) {
            *session = None;
            self.on_failure(reason);
        }
        if session.is_none() {
            if !self.may_start() {
                return None;
            }
            self.set_state(State::Starting);
            match self.start().await {
                Ok(started) => *session = Some(started),
                Err(StartError::Off(reason)) => {
                    self.set_state(State::Off { reason });
                    return None;
                }
                Err(StartError::Failed(reason)) => {
                    self.on_failure(reason);
                    return None;
                }
            }
            self.set_state(State::Ready);
        }
        match session.as_mut()?.check(texts, purpose, deadline).await {
            Ok(compared) => Some(compared),
            Err(reason) => {
                if let Some(session) = session.take() {
                    session.end().await;
                }
                self.on_failure(reason);
                None
            }
        }
    }

    fn may_start(&self) -> bool {
        match self.state() {
            State::NotStarted | State::Starting | State::Ready => true,
            State::Failed { since, .. } => since <= Instant::now(),
            State::Off { .. } => false,
        }
    }

    async fn start(&self) -> Result<LspSession, StartError> {
        let (language, find) = (self.language, Arc::clone(&self.environment.find));
        let found = tokio::task::spawn_blocking(move || find(language)).await;
        let command = match found {
            Ok(Ok(command)) => command,
            Ok(Err(reason)) => return Err(StartError::Off(reason)),
            Err(_) => return Err(StartError::Off("the search for the program failed".to_owned())),
        };
        let program = ServerProgram {
            server: self.name().to_owned(),
            argv: command.argv,
            environment: command.environment,
            directory: None,
            network: false,
            sees: Vec::new(),
        };
        let launched = self.environment.launcher.launch(program).await;
        let launched = launched.map_err(|reason| StartError::Off(shorten(&reason)))?;
        LspSession::start(launched, self.language, &self.environment.workspace).await.map_err(StartError::Failed)
    }

    /// Records a failure. If the server has been restarted too often, it is turned off.
    fn on_failure(&self, reason: String) {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        let pause = RESTART_PAUSES.get(*failures);
        *failures += 1;
        tracing::warn!(server = self.name(), reason, "a language server failed");
        self.set_state(match pause {
            Some(pause) => State::Failed { reason, since: Instant::now() + *pause },
            None => State::Off { reason: format!("the server failed {failures} times; last: {reason}") },
        });
    }

    pub(super) async fn end(&self) {
        self.set_state(State::Off { reason: "the session ended".to_owned() });
        let session = tokio::time::timeout(QUERY_TIME, self.session.lock()).await;
        // The end of the runtime aborts a query that is still running, which ends its process.
        if let Ok(Some(session)) = session.map(|mut session| session.take()) {
            session.end().await;
        }
    }
}

enum StartError {
    /// The server cannot be started during this session.
    Off(String),
    /// Starting the server may succeed later.
    Failed(String),
}
