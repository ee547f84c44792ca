//! Dialog for a session that is open in another process. The user can view the session, take it over, or choose another
//! one.

use crate::host::error::CliError;
use crate::host::lock_takeover;
use crate::host::session::{PIECE_RECORDS, Session};
use crate::host::session_builder::{ClaimedSession, SessionBuilder};
use crate::protocol::{Problem, SessionId};
use crate::store::{Holder, SessionPart};
use crate::tui::{LockAnswer, LockQuestion, StartupQuestion};
use tokio::sync::{mpsc, oneshot};

/// Session for a screen, which is either ready or owned by another process.
pub(crate) enum SessionStart {
    Ready(Box<ClaimedSession>),
    Held(Box<LockedSession>),
}

/// A session that is owned by another process.
pub(crate) struct LockedSession {
    pub id: SessionId,
    pub builder: SessionBuilder,
}

/// The user's choice for a locked session.
pub(crate) enum LockOutcome {
    Locked(Box<ClaimedSession>),
    /// The session is viewed read-only. It is not claimed, and no task runs.
    ReadOnly(Box<ReadOnlySession>),
    Left,
}

/// The most recent part of a session that another process is writing.
pub(crate) struct ReadOnlySession {
    pub builder: SessionBuilder,
    pub id: SessionId,
    pub tail: SessionPart,
    /// Describes the owner, as in `open in process 4711`.
    pub holder: String,
}

/// Result of trying to claim the session.
enum LockAttempt {
    Locked(Box<Session>),
    By(Holder),
    Failed(String),
}

impl LockedSession {
    /// Prompts the user until the session has been claimed or is shown read-only, or until the user leaves.
    pub(crate) async fn ask(self, ahead: &mpsc::UnboundedSender<StartupQuestion>) -> LockOutcome {
        let Self { id, builder } = self;
        let store = builder.store().clone();
        let mut problem = None;
        loop {
            let (pid, since) = match try_again(&builder, &id).await {
                LockAttempt::Locked(session) => return LockOutcome::Locked(Box::new(builder.with_claimed(*session))),
                LockAttempt::By(holder) => (holder.instance.pid, holder.since.map(clock)),
                LockAttempt::Failed(message) => {
                    problem = Some(message);
                    (0, None)
                }
            };
            let (answer, answered) = oneshot::channel();
            let stays = lock_takeover::obstacle().map(|problem| problem.one_line());
            let question = LockQuestion { session: id.clone(), pid, since, problem: problem.take(), stays, answer };
            if ahead.send(StartupQuestion::Held(question)).is_err() {
                return LockOutcome::Left;
            }
            match answered.await {
                Ok(LockAnswer::ReadOnly) => {
                    let (from, session) = (store.clone(), id.clone());
                    match run_blocking(move || from.page(&session, None, PIECE_RECORDS).map_err(|error| error.to_string())).await
                    {
                        Ok(tail) => {
                            let holder = format!("open in process {pid}");
                            return LockOutcome::ReadOnly(Box::new(ReadOnlySession { builder, id, tail, holder }));
                        }
                        Err(message) => problem = Some(message),
                    }
                }
                Ok(LockAnswer::TakeOver) => {
                    let (store, id) = (store.clone(), id.clone());
                    problem = run_blocking(move || {
                        lock_takeover::ask_holder_to_exit(&store, &id).map_err(|problem| problem.one_line())
                    })
                    .await
                    .err();
                }
                Ok(LockAnswer::Another | LockAnswer::Quit) | Err(_) => return LockOutcome::Left,
            }
        }
    }
}

/// Tries to claim the session, which another process may claim first.
async fn try_again(builder: &SessionBuilder, id: &SessionId) -> LockAttempt {
    let (store, id, attempt) = (builder.store().clone(), id.clone(), builder.claim_attempt());
    let tried = run_blocking(move || {
        if let Some(holder) = store.holder(&id).map_err(|error| Problem::from(error).one_line())? {
            return Ok(LockAttempt::By(holder));
        }
        attempt().map(|session| LockAttempt::Locked(Box::new(session))).map_err(|error| CliError::from(error).to_string())
    });
    tried.await.unwrap_or_else(LockAttempt::Failed)
}

/// Runs blocking work on another thread, because a disk or another process may be slow.
async fn run_blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T, String> + Send + 'static) -> Result<T, String> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(error.to_string()))
}

/// Formats a time, as in `14:02 UTC`. Includes the date if it is not today.
fn clock(since: jiff::Timestamp) -> String {
    let day = |time: jiff::Timestamp| time.strftime("%Y-%m-%d").to_string();
    let form = if day(since) == day(jiff::Timestamp::now()) { "%H:%M UTC" } else { "%Y-%m-%d %H:%M UTC" };
    since.strftime(form).to_string()
}
