//! A session that is open in another process, on the screen: the user views it, takes it over, or chooses another one.

use crate::host::context::AppContext;
use crate::host::error::CliError;
use crate::host::lock_takeover;
use crate::host::policy_layers::Policy;
use crate::host::session;
use crate::host::session::{LoadScope, PIECE_RECORDS, Session};
use crate::protocol::SessionId;
use crate::store::{Holder, SessionPart, SessionSummary, Store};
use crate::tui::{LockAnswer, LockQuestion, StartupQuestion};
use tokio::sync::{mpsc, oneshot};

/// The session of a screen: ready, or owned by another process.
pub enum SessionStart {
    Ready(Box<Session>),
    Held(Box<LockedSession>),
}

/// A session that another process owns.
pub struct LockedSession {
    pub store: Store,
    pub chosen: SessionSummary,
}

/// The outcome of the question.
pub enum LockOutcome {
    Ours(Box<Session>),
    /// The session is shown read-only; it is not claimed and nothing runs.
    ReadOnly(ReadOnlySession),
    Left,
}

/// The end of a session as another process has written it.
pub struct ReadOnlySession {
    pub store: Store,
    pub id: SessionId,
    pub tail: SessionPart,
    /// The other process: `open in process 4711`.
    pub holder: String,
}

/// The outcome of an attempt to claim the session.
enum LockAttempt {
    Ours(Box<Session>),
    By(Holder),
    Failed(String),
}

impl LockedSession {
    /// Asks until an answer leads to a session.
    pub async fn ask(
        self,
        place: &AppContext,
        policy: &Policy,
        model: &str,
        ahead: &mpsc::UnboundedSender<StartupQuestion>,
    ) -> LockOutcome {
        let Self { store, chosen } = self;
        let id = chosen.session_id.clone();
        let mut problem = None;
        loop {
            let (pid, since) = match try_again(&store, place, policy, &chosen, model).await {
                LockAttempt::Ours(session) => return LockOutcome::Ours(session),
                LockAttempt::By(holder) => (holder.instance.pid, holder.since.map(clock)),
                LockAttempt::Failed(message) => {
                    problem = Some(message);
                    (0, None)
                }
            };
            let (answer, answered) = oneshot::channel();
            let stays = lock_takeover::forbidden();
            let question = LockQuestion { session: id.clone(), pid, since, problem: problem.take(), stays, answer };
            if ahead.send(StartupQuestion::Held(question)).is_err() {
                return LockOutcome::Left;
            }
            match answered.await {
                Ok(LockAnswer::ReadOnly) => {
                    let (from, session) = (store.clone(), id.clone());
                    match beside(move || from.piece(&session, None, PIECE_RECORDS).map_err(|error| error.to_string())).await {
                        Ok(tail) => {
                            return LockOutcome::ReadOnly(ReadOnlySession {
                                store,
                                id,
                                tail,
                                holder: format!("open in process {pid}"),
                            });
                        }
                        Err(message) => problem = Some(message),
                    }
                }
                Ok(LockAnswer::TakeOver) => {
                    let (store, id) = (store.clone(), id.clone());
                    problem = beside(move || lock_takeover::end_holder(&store, &id)).await.err();
                }
                Ok(LockAnswer::Another | LockAnswer::Quit) | Err(_) => return LockOutcome::Left,
            }
        }
    }
}

/// Tries to claim the session, because another process may be quicker.
async fn try_again(store: &Store, place: &AppContext, policy: &Policy, chosen: &SessionSummary, model: &str) -> LockAttempt {
    let (store, place, policy, chosen, model) = (store.clone(), place.clone(), policy.clone(), chosen.clone(), model.to_owned());
    let tried = beside(move || {
        if let Some(holder) = store.holder(&chosen.session_id).map_err(|error| error.to_string())? {
            return Ok(LockAttempt::By(holder));
        }
        let session = session::open(store, &place, &policy, Some(chosen), &model, LoadScope::Tail);
        session.map(|session| LockAttempt::Ours(Box::new(session))).map_err(|trouble: CliError| trouble.message)
    });
    tried.await.unwrap_or_else(LockAttempt::Failed)
}

/// Runs work on another thread, because a disk or another process may be slow.
async fn beside<T: Send + 'static>(work: impl FnOnce() -> Result<T, String> + Send + 'static) -> Result<T, String> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(error.to_string()))
}

/// Returns `14:02 UTC`, with the date if it is another day.
fn clock(since: jiff::Timestamp) -> String {
    let day = |time: jiff::Timestamp| time.strftime("%Y-%m-%d").to_string();
    let form = if day(since) == day(jiff::Timestamp::now()) { "%H:%M UTC" } else { "%Y-%m-%d %H:%M UTC" };
    since.strftime(form).to_string()
}
