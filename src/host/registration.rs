//! Registration of a session with the session service: before the session starts, and again before its policy expires. The policy is
//! a file, whose changes the session follows like those of the other policy files.

use super::context::AppContext;
use super::error::CliError;
use super::exit::Exit;
use super::registered_session::RegisteredSession;
use super::session::Session;
use crate::agent::PolicyUpdate;
use crate::ports::ServiceSession;
use crate::protocol::{Problem, SessionId};
use crate::services::sessions::{Handshake, HandshakeError, SessionOpening, SessionService};
use crate::session::SessionState;
use crate::store::Store;
use jiff::Timestamp;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::sync::mpsc;

/// Directory of the policies, in the data directory.
const DIRECTORY: &str = "service-sessions";
/// Age after which the policy of a session that no longer exists is deleted.
const UNUSED: Duration = Duration::from_secs(24 * 60 * 60);
/// Time before the policy expires at which it is renewed, unless it is valid for less than four times as long.
const RENEWAL: Duration = Duration::from_secs(30);
/// Delays between two attempts to renew it.
const FIRST_DELAY: Duration = Duration::from_secs(2);
const MAX_DELAY: Duration = Duration::from_secs(300);

/// Registers a session, or resumes its registration. Returns notices. If the service cannot be reached and is not required, the
/// last policy of the session applies, or there is no registration.
pub(super) async fn open(place: &AppContext, session: &Session) -> Result<(Option<RegisteredSession>, Vec<String>), CliError> {
    let Some(service) = place.services.as_ref().and_then(|services| services.sessions()) else {
        return Ok((None, Vec::new()));
    };
    let (id, state) = (session.id(), &session.state);
    let opening = opening(place, id, state);
    let file = file(place, id);
    match service.open(&opening).await {
        Ok(handshake) => {
            let store = session.store.clone();
            let (written, text) = (file.clone(), handshake.policy.clone());
            let stored = tokio::task::spawn_blocking(move || {
                remove_unused(&written, &store);
                write(&written, &text)
            });
            let failed = |error: std::io::Error| CliError::failed(cannot_store(&file, &error));
            stored.await.map_err(|error| failed(error.into()))?.map_err(failed)?;
            let Handshake { session, expires_at, notices, .. } = handshake;
            Ok((Some(RegisteredSession { facts: Arc::new(session), file, expires_at: Some(expires_at) }), notices))
        }
        Err(HandshakeError::NoAnswer(why)) => without_answer(service, &why, file, opening.earlier),
        Err(HandshakeError::Unauthorized(problem)) => Err(CliError::new(Exit::Authentication, problem)),
        Err(HandshakeError::Refused(problem)) => Err(CliError::failed(problem)),
    }
}

/// Renews the policy before it expires, until the session ends. Each failure is reported once.
pub(super) async fn renew(
    session: RegisteredSession,
    place: AppContext,
    store: Store,
    id: SessionId,
    notices: mpsc::Sender<PolicyUpdate>,
) {
    let Some(service) = place.services.as_ref().and_then(|services| services.sessions()).cloned() else { return };
    let Some(mut expires_at) = session.expires_at else { return };
    let (mut reported, mut delay) = (None, FIRST_DELAY);
    let mut wait = until_renewal(expires_at);
    loop {
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = notices.closed() => return,
        }
        let message = match renew_once(&session, &service, (&place, &store, &id)).await {
            Ok(handshake) => {
                // A service that does not extend the policy is not asked again and again.
                let is_later = handshake.expires_at > expires_at;
                expires_at = handshake.expires_at;
                (reported, delay) = (None, if is_later { FIRST_DELAY } else { (delay * 2).min(MAX_DELAY) });
                wait = until_renewal(expires_at).max(delay);
                handshake.notices
            }
            Err(error) => {
                let why = error.one_line();
                wait = delay;
                delay = (delay * 2).min(MAX_DELAY);
                let is_known = reported.replace(why.clone()).as_ref() == Some(&why);
                let line = format!("cannot renew the policy of the session service: {why}");
                if is_known { Vec::new() } else { vec![line] }
            }
        };
        for message in message {
            let _ = notices.send(PolicyUpdate::Notice { message }).await;
        }
    }
}

/// Resumes the registration, and replaces the policy.
async fn renew_once(
    registered: &RegisteredSession,
    service: &SessionService,
    (place, store, id): (&AppContext, &Store, &SessionId),
) -> Result<Handshake, HandshakeError> {
    let (read, session) = (store.clone(), id.clone());
    let cursor = tokio::task::spawn_blocking(move || {
        let loaded = read.load(&session).ok()?;
        SessionState::from_records(&loaded.records).step_cursor().cloned()
    });
    let opening = SessionOpening {
        earlier: Some(registered.facts.as_ref().clone()),
        step_cursor: cursor.await.ok().flatten(),
        ..opening(place, id, &SessionState::default())
    };
    let handshake = service.resume(&opening).await?;
    let (file, text) = (registered.file.clone(), handshake.policy.clone());
    let written = tokio::task::spawn_blocking(move || write(&file, &text)).await;
    let written = written.unwrap_or_else(|error| Err(error.into()));
    written.map_err(|error| HandshakeError::Refused(cannot_store(&registered.file, &error)))?;
    Ok(handshake)
}

fn opening(place: &AppContext, id: &SessionId, state: &SessionState) -> SessionOpening {
    let earlier = state.service_session.clone().filter(|earlier| earlier.registered_id == *id);
    let workspace = place.workspace.display().to_string();
    SessionOpening { session_id: id.clone(), workspace, earlier, step_cursor: state.step_cursor().cloned() }
}

/// Returns the registration with which a session continues although the service sent no answer.
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
            Ok((Some(RegisteredSession { facts: Arc::new(earlier), file, expires_at: Some(Timestamp::now()) }), vec![notice]))
        }
        None => Ok((None, vec![format!("{reason}; this session is not registered, and uses only the policies of this machine")])),
    }
}

fn file(place: &AppContext, id: &SessionId) -> PathBuf {
    place.directories.data.join(DIRECTORY).join(format!("{id}.toml"))
}

fn cannot_store(file: &Path, error: &std::io::Error) -> Problem {
    Problem::new(format!("cannot store the policy of the session service in `{}`", file.display())).because(error)
}

fn until_renewal(expires_at: Timestamp) -> Duration {
    let left = Duration::try_from(expires_at.duration_since(Timestamp::now())).unwrap_or_default();
    left.saturating_sub(RENEWAL.min(left / 4))
}

fn write(path: &Path, text: &str) -> std::io::Result<()> {
    let directory = path.parent().unwrap_or(path);
    std::fs::create_dir_all(directory)?;
    let mut file = tempfile::NamedTempFile::new_in(directory)?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist(path).map(drop).map_err(|error| error.error)
}

/// Deletes old policies of sessions that no longer exist. One that cannot be deleted stays until the next time.
fn remove_unused(path: &Path, store: &Store) {
    let Some(entries) = path.parent().and_then(|directory| std::fs::read_dir(directory).ok()) else { return };
    let Ok(sessions) = store.sessions(None) else { return };
    for entry in entries.flatten().filter(|entry| entry.path() != path) {
        let name = entry.file_name();
        let Some(id) = name.to_str().and_then(|name| name.strip_suffix(".toml")) else { continue };
        let age = entry.metadata().and_then(|metadata| metadata.modified()).ok();
        let is_old = age.and_then(|time| SystemTime::now().duration_since(time).ok()).is_some_and(|age| age > UNUSED);
        if is_old && !sessions.iter().any(|session| session.session_id.as_str() == id) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}
