//! Registers a session with the session service, once before the session starts and again whenever its policy is about
//! to expire. The policy is stored in a file, and the session reacts to changes of this file as it does for other
//! policy files.

use super::context::AppContext;
use super::error::CliError;
use super::exit::Exit;
use super::registered_session::RegisteredSession;
use super::session::Session;
use crate::agent::PolicyUpdate;
use crate::ports::ServiceSession;
use crate::protocol::{Problem, SessionId, StepId};
use crate::services::Backoff;
use crate::services::sessions::{Handshake, HandshakeError, ServiceEndReason, SessionOpening, SessionService};
use crate::session::SessionState;
use crate::store::Store;
use crate::sys::file::private::{self, PrivateError};
use jiff::{SignedDuration, Timestamp};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use tokio::sync::mpsc;

/// Directory for the policies, inside the data directory.
const DIRECTORY: &str = "service-sessions";
/// Age at which a policy is deleted if its session no longer exists.
const UNUSED: Duration = Duration::from_secs(24 * 60 * 60);
/// Remaining validity at which the policy is renewed, unless it was valid for less than four times this period to begin
/// with.
const RENEWAL: Duration = Duration::from_secs(30);
/// Delays between attempts to renew the policy.
const DELAYS: Backoff = Backoff { first: Duration::from_secs(2), max: Duration::from_secs(300) };
/// Number of records at the end of a journal that are read at first to find the last step.
const TAIL_RECORDS: usize = 64;
/// Maximum size of a stored policy, in bytes.
const POLICY_BYTES: u64 = 16 << 20;
/// Maximum interval between two checks of the wall clock, which continues to run while the machine is suspended.
const CLOCK_INTERVAL: Duration = Duration::from_secs(60);
/// Notice shown when the service has ended the session.
const ENDED: &str = "the session service ended this session; start aye again to register it";

/// Registers a session or resumes its registration. Also returns notices. If the service cannot be reached and is not
/// required, the session's last policy applies or, if there is none, the session is not registered.
pub(super) async fn open(app: &AppContext, session: &Session) -> Result<(Option<RegisteredSession>, Vec<String>), CliError> {
    let Some((services, service)) = app.services.as_ref().and_then(|services| Some((services, services.sessions()?))) else {
        return Ok((None, Vec::new()));
    };
    let (id, state) = (session.id(), &session.state);
    let mut opening = opening(app, id, state);
    opening.earlier = latest_facts(file(app, id), opening.earlier).await;
    let earlier = opening.earlier.clone();
    let is_ended = match service.earlier(&opening) {
        Some(own) => services.has_queued_end(&session.store, own).await,
        None => false,
    };
    if is_ended {
        opening.replaced = opening.earlier.take();
    }
    let file = file(app, id);
    match service.open(&opening).await {
        Ok(mut handshake) => {
            if let Some(old) = opening.replaced {
                let (old, new) = (old.session_id, &handshake.session.session_id);
                handshake.notices.push(format!(
                    "the session service has not received the end of session `{old}` yet; this session is registered as `{new}`"
                ));
            }
            let store = session.store.clone();
            let (written, text, facts) = (file.clone(), handshake.policy.clone(), handshake.session.clone());
            let stored = tokio::task::spawn_blocking(move || {
                remove_unused(&written, &store);
                write(&written, &text, &facts)
            });
            if let Err(problem) = stored.await.unwrap_or_else(|error| Err(interrupted(&file, error))) {
                services.end_session(&session.store, &handshake.session, ServiceEndReason::Cancelled).await;
                return Err(CliError::failed(problem));
            }
            let Handshake { session, expires_at, notices, .. } = handshake;
            Ok((Some(RegisteredSession::new(session, file, Some(expires_at), None)), notices))
        }
        Err(HandshakeError::NoAnswer(why)) => without_answer(service, &why, file, earlier),
        Err(HandshakeError::Unauthorized(problem)) => Err(CliError::new(Exit::Authentication, problem)),
        Err(HandshakeError::Refused(problem)) => Err(CliError::failed(problem)),
    }
}

/// Renews the policy before it expires, until the session ends or the service ends it. Repeated failures are reported
/// only once.
pub(super) async fn renew(
    session: RegisteredSession,
    app: AppContext,
    store: Store,
    id: SessionId,
    notices: mpsc::Sender<PolicyUpdate>,
) {
    let Some(service) = app.services.as_ref().and_then(|services| services.sessions()).cloned() else { return };
    // Attempts since the policy was last extended.
    let (mut reported, mut attempts) = (None, 0);
    let mut wait = session.expires_at().map_or(Duration::ZERO, until_renewal);
    loop {
        tokio::select! {
            () = wait_on_clock(wait) => {}
            () = notices.closed() => return,
        }
        let message = match renew_once(&session, &service, (&app, &store, &id)).await {
            Ok(None) => {
                session.failed("the session service ended this session");
                let _ = notices.send(PolicyUpdate::Notice { message: ENDED.to_owned() }).await;
                return;
            }
            Ok(Some(handshake)) => {
                // A service that does not extend the policy must not receive requests without a pause.
                let is_later = session.expires_at().is_none_or(|known| handshake.expires_at > known);
                session.renewed(handshake.session, handshake.expires_at);
                (reported, attempts) = (None, if is_later { 1 } else { attempts + 1 });
                wait = until_renewal(handshake.expires_at).max(DELAYS.delay(attempts, None));
                handshake.notices
            }
            Err(error) => {
                let why = error.one_line();
                session.failed(&why);
                attempts += 1;
                wait = DELAYS.delay(attempts, None);
                let is_known = reported.replace(why.clone()).as_ref() == Some(&why);
                let line = format!("cannot renew the policy from the session service: {why}");
                if is_known { Vec::new() } else { vec![line] }
            }
        };
        for message in message {
            let _ = notices.send(PolicyUpdate::Notice { message }).await;
        }
    }
}

/// Resumes the registration and replaces the policy. Returns `None` if the service has ended the session.
async fn renew_once(
    session: &RegisteredSession,
    service: &SessionService,
    (app, store, id): (&AppContext, &Store, &SessionId),
) -> Result<Option<Handshake>, HandshakeError> {
    let (read, own) = (store.clone(), id.clone());
    let cursor = tokio::task::spawn_blocking(move || last_step(&read, &own));
    let opening = SessionOpening {
        earlier: Some(session.facts().as_ref().clone()),
        step_cursor: cursor.await.ok().flatten(),
        ..opening(app, id, &SessionState::default())
    };
    let Some(handshake) = service.resume(&opening).await? else { return Ok(None) };
    let (written, text, facts) = (session.file.clone(), handshake.policy.clone(), handshake.session.clone());
    let stored = tokio::task::spawn_blocking(move || write(&written, &text, &facts)).await;
    let stored = stored.unwrap_or_else(|error| Err(interrupted(&session.file, error)));
    stored.map_err(HandshakeError::Refused)?;
    Ok(Some(handshake))
}

/// Returns the last completed step of a session. Only as much of the end of the journal is read as necessary.
fn last_step(store: &Store, id: &SessionId) -> Option<StepId> {
    let mut about = TAIL_RECORDS;
    loop {
        let tail = store.page(id, None, about).ok()?;
        let state = SessionState::from_records(&tail.records);
        if state.step_cursor().is_some() || tail.before.is_none() {
            return state.step_cursor().cloned();
        }
        about = about.saturating_mul(4);
    }
}

/// Waits for a period measured by the wall clock, which continues to run while the machine is suspended.
async fn wait_on_clock(wait: Duration) {
    let wait = SignedDuration::try_from(wait).unwrap_or(SignedDuration::MAX);
    let end = Timestamp::now().checked_add(wait).unwrap_or(Timestamp::MAX);
    loop {
        let left = Duration::try_from(end.duration_since(Timestamp::now())).unwrap_or_default();
        if left.is_zero() {
            return;
        }
        tokio::time::sleep(left.min(CLOCK_INTERVAL)).await;
    }
}

fn opening(app: &AppContext, id: &SessionId, state: &SessionState) -> SessionOpening {
    let earlier = state.service_session.clone().filter(|earlier| earlier.registered_id == *id);
    let workspace = app.workspace.display().to_string();
    SessionOpening { session_id: id.clone(), workspace, earlier, replaced: None, step_cursor: state.step_cursor().cloned() }
}

/// Returns the registration with which a session continues if the service did not respond.
fn without_answer(
    service: &SessionService,
    why: &str,
    file: PathBuf,
    earlier: Option<ServiceSession>,
) -> Result<(Option<RegisteredSession>, Vec<String>), CliError> {
    let url = service.url();
    if service.is_required() {
        let problem = Problem::new(format!("cannot open a session with the session service `{url}`")).because(why);
        let problem = problem.hint("try again when the service can be reached");
        return Err(CliError::failed(problem.hint("set `services.sessions.required` to false to start without the service")));
    }
    let reason = format!("cannot open a session with the session service `{url}`: {why}");
    match earlier.filter(|earlier| earlier.url == url && file.is_file()) {
        Some(earlier) => {
            let notice = format!("{reason}; its last policy for this session stays in effect");
            Ok((Some(RegisteredSession::new(earlier, file, None, Some(why.to_owned()))), vec![notice]))
        }
        None => Ok((None, vec![format!("{reason}; this session is not registered, and uses only this machine's policies")])),
    }
}

fn file(app: &AppContext, id: &SessionId) -> PathBuf {
    app.directories.data.join(DIRECTORY).join(format!("{id}.toml"))
}

fn cannot_store(file: &Path, error: &PrivateError) -> Problem {
    let failed = format!("cannot store the policy of the session service in `{}`", file.display());
    let problem = Problem::new(failed).because(error);
    match error.remedy() {
        Some(remedy) => problem.hint(remedy),
        None => problem,
    }
}

/// Returns the error for a thread that ended before it stored the policy.
fn interrupted(file: &Path, error: tokio::task::JoinError) -> Problem {
    cannot_store(file, &PrivateError::Io(error.into()))
}

fn until_renewal(expires_at: Timestamp) -> Duration {
    let left = Duration::try_from(expires_at.duration_since(Timestamp::now())).unwrap_or_default();
    left.saturating_sub(RENEWAL.min(left / 4))
}

/// Replaces the session's data and then its policy. If the process crashes in between, the older policy remains in
/// effect, and the next renewal is based on the newer data.
fn write(path: &Path, text: &str, facts: &ServiceSession) -> Result<(), Problem> {
    let own = facts_file(path);
    let facts = serde_json::to_vec(facts).map_err(|error| cannot_store(&own, &PrivateError::Io(error.into())))?;
    for (file, content) in [(own.as_path(), facts), (path, text.into())] {
        private::update::<PrivateError>(file, POLICY_BYTES, |_| Ok(Some(content))).map_err(|error| cannot_store(file, &error))?;
    }
    Ok(())
}

fn facts_file(policy: &Path) -> PathBuf {
    policy.with_extension("json")
}

/// Returns the session's data from the last renewal or, if there was none, from the journal.
async fn latest_facts(policy: PathBuf, journaled: Option<ServiceSession>) -> Option<ServiceSession> {
    let journaled = journaled?;
    let known = journaled.clone();
    let renewed = tokio::task::spawn_blocking(move || renewed_facts(&policy, &known)).await;
    Some(renewed.ok().flatten().unwrap_or(journaled))
}

/// Returns the session's data from the last renewal, which is newer than the data in the journal. Returns `None` if it
/// belongs to a different registration.
fn renewed_facts(policy: &Path, journaled: &ServiceSession) -> Option<ServiceSession> {
    let facts = private::read(&facts_file(policy), POLICY_BYTES).ok()??;
    let facts: ServiceSession = serde_json::from_slice(&facts).ok()?;
    let registration = |facts: &ServiceSession| (facts.url.clone(), facts.session_id.clone(), facts.registered_id.clone());
    (registration(&facts) == registration(journaled)).then_some(facts)
}

/// Deletes old policies of sessions that no longer exist. If a deletion fails, the next call tries again.
fn remove_unused(path: &Path, store: &Store) {
    let Some(entries) = path.parent().and_then(|directory| std::fs::read_dir(directory).ok()) else { return };
    let Ok(sessions) = store.sessions(None) else { return };
    for entry in entries.flatten().filter(|entry| entry.path().file_stem() != path.file_stem()) {
        let name = entry.file_name();
        let Some((id, "toml" | "json" | "lock")) = name.to_str().and_then(|name| name.split_once('.')) else { continue };
        let age = entry.metadata().and_then(|metadata| metadata.modified()).ok();
        let is_old = age.and_then(|time| SystemTime::now().duration_since(time).ok()).is_some_and(|age| age > UNUSED);
        if is_old && !sessions.iter().any(|session| session.session_id.as_str() == id) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}
