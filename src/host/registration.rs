//! Registration of a session with the session service: before the session starts, and again before its policy expires.
//! The policy is a file, whose changes the session follows like those of the other policy files.

use super::context::AppContext;
use super::error::CliError;
use super::exit::Exit;
use super::registered_session::RegisteredSession;
use super::session::Session;
use crate::agent::PolicyUpdate;
use crate::ports::ServiceSession;
use crate::protocol::{Problem, SessionId};
use crate::services::sessions::{Handshake, HandshakeError, ServiceEndReason, SessionOpening, SessionService};
use crate::session::SessionState;
use crate::store::Store;
use jiff::{SignedDuration, Timestamp};
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
/// Maximum time between two readings of the wall clock, which keeps running while the machine is suspended.
const CLOCK_INTERVAL: Duration = Duration::from_secs(60);
/// Notice about a session that the service has ended.
const ENDED: &str = "the session service ended this session; start aye again to register it";

/// Registers a session, or resumes its registration. Returns notices. If the service cannot be reached and is not
/// required, the last policy of the session applies, or there is no registration.
pub(super) async fn open(place: &AppContext, session: &Session) -> Result<(Option<RegisteredSession>, Vec<String>), CliError> {
    let Some((services, service)) = place.services.as_ref().and_then(|services| Some((services, services.sessions()?))) else {
        return Ok((None, Vec::new()));
    };
    let (id, state) = (session.id(), &session.state);
    let mut opening = opening(place, id, state);
    let earlier = opening.earlier.clone();
    let own = earlier.as_ref().filter(|earlier| earlier.url == service.url());
    let is_ended = match own {
        Some(own) => services.has_queued_end(&session.store, own).await,
        None => false,
    };
    let replaced = if is_ended { opening.earlier.take() } else { None };
    let file = file(place, id);
    match service.open(&opening).await {
        Ok(mut handshake) => {
            if let Some(old) = replaced {
                let (old, new) = (old.session_id, &handshake.session.session_id);
                handshake.notices.push(format!(
                    "the session service has not received the end of session `{old}` yet; this session is registered as `{new}`"
                ));
            }
            let store = session.store.clone();
            let (written, text) = (file.clone(), handshake.policy.clone());
            let stored = tokio::task::spawn_blocking(move || {
                remove_unused(&written, &store);
                write(&written, &text)
            });
            if let Err(error) = stored.await.unwrap_or_else(|error| Err(error.into())) {
                services.end_session(&session.store, &handshake.session, ServiceEndReason::Cancelled).await;
                return Err(CliError::failed(cannot_store(&file, &error)));
            }
            let Handshake { session, expires_at, notices, .. } = handshake;
            Ok((Some(RegisteredSession { facts: Arc::new(session), file, expires_at: Some(expires_at) }), notices))
        }
        Err(HandshakeError::NoAnswer(why)) => without_answer(service, &why, file, earlier),
        Err(HandshakeError::Unauthorized(problem)) => Err(CliError::new(Exit::Authentication, problem)),
        Err(HandshakeError::Refused(problem)) => Err(CliError::failed(problem)),
    }
}

/// Renews the policy before it expires, until the session ends here or at the service. Each failure is reported once.
pub(super) async fn renew(
    session: RegisteredSession,
    place: AppContext,
    store: Store,
    id: SessionId,
    notices: mpsc::Sender<PolicyUpdate>,
) {
    let Some(service) = place.services.as_ref().and_then(|services| services.sessions()).cloned() else { return };
    let Some(mut expires_at) = session.expires_at else { return };
    let (file, mut facts) = (session.file, session.facts.as_ref().clone());
    let (mut reported, mut delay) = (None, FIRST_DELAY);
    let mut wait = until_renewal(expires_at);
    loop {
        tokio::select! {
            () = wait_on_clock(wait) => {}
            () = notices.closed() => return,
        }
        let message = match renew_once((&facts, file.as_path()), &service, (&place, &store, &id)).await {
            Ok(None) => {
                let _ = notices.send(PolicyUpdate::Notice { message: ENDED.to_owned() }).await;
                return;
            }
            Ok(Some(handshake)) => {
                // A service that does not extend the policy is not asked again and again.
                let is_later = handshake.expires_at > expires_at;
                expires_at = handshake.expires_at;
                facts = handshake.session;
                (reported, delay) = (None, if is_later { FIRST_DELAY } else { (delay * 2).min(MAX_DELAY) });
                wait = until_renewal(expires_at).max(delay);
                handshake.notices
            }
            Err(error) => {
                let why = error.one_line();
                wait = delay;
                delay = (delay * 2).min(MAX_DELAY);
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

/// Resumes the registration, and replaces the policy. Returns `None` if the service has ended the session.
async fn renew_once(
    (facts, file): (&ServiceSession, &Path),
    service: &SessionService,
    (place, store, id): (&AppContext, &Store, &SessionId),
) -> Result<Option<Handshake>, HandshakeError> {
    let (read, session) = (store.clone(), id.clone());
    let cursor = tokio::task::spawn_blocking(move || {
        let loaded = read.load(&session).ok()?;
        SessionState::from_records(&loaded.records).step_cursor().cloned()
    });
    let opening = SessionOpening {
        earlier: Some(facts.clone()),
        step_cursor: cursor.await.ok().flatten(),
        ..opening(place, id, &SessionState::default())
    };
    let Some(handshake) = service.resume(&opening).await? else { return Ok(None) };
    check_owner(facts, &handshake.session).map_err(HandshakeError::Refused)?;
    let (written, text) = (file.to_owned(), handshake.policy.clone());
    let stored = tokio::task::spawn_blocking(move || write(&written, &text)).await;
    let stored = stored.unwrap_or_else(|error| Err(error.into()));
    stored.map_err(|error| HandshakeError::Refused(cannot_store(file, &error)))?;
    Ok(Some(handshake))
}

/// Returns an error if a renewal names another tenant or another user.
fn check_owner(earlier: &ServiceSession, renewed: &ServiceSession) -> Result<(), Problem> {
    let members = [("tenantId", &earlier.tenant_id, &renewed.tenant_id), ("userId", &earlier.user_id, &renewed.user_id)];
    let Some((name, Some(old), new)) = members.into_iter().find(|(_, old, new)| old.is_some() && old != new) else {
        return Ok(());
    };
    let new = new.as_deref().unwrap_or_default();
    let problem = Problem::new(format!("the response changes `{name}` from `{old}` to `{new}`"));
    Err(problem.hint("ask the owner of the session service to correct it"))
}

/// Waits for a time of the wall clock, which keeps running while the machine is suspended.
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
        None => Ok((None, vec![format!("{reason}; this session is not registered, and uses only this machine's policies")])),
    }
}

fn file(place: &AppContext, id: &SessionId) -> PathBuf {
    place.directories.data.join(DIRECTORY).join(format!("{id}.toml"))
}

fn cannot_store(file: &Path, error: &std::io::Error) -> Problem {
    Problem::new(format!("cannot store the policy from the session service in `{}`", file.display())).because(error)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_renewal_cannot_change_the_tenant_or_the_user() {
        let earlier = ServiceSession {
            url: "https://s.example/v1".to_owned(),
            registered_id: SessionId::new("own"),
            session_id: "sess_1".to_owned(),
            workspace_id: None,
            tenant_id: Some("tenant_1".to_owned()),
            user_id: None,
            policy_bundle_version: None,
            feature_flags: std::collections::BTreeMap::new(),
        };
        let named = ServiceSession { user_id: Some("user_1".to_owned()), ..earlier.clone() };
        assert!(check_owner(&earlier, &earlier).is_ok());
        assert!(check_owner(&earlier, &named).is_ok(), "what was not known may be added");
        let other = ServiceSession { tenant_id: Some("tenant_2".to_owned()), ..earlier.clone() };
        assert!(check_owner(&earlier, &other).unwrap_err().to_string().contains("`tenantId` from `tenant_1` to `tenant_2`"));
        let other = ServiceSession { user_id: Some("user_2".to_owned()), ..earlier };
        assert!(check_owner(&named, &other).unwrap_err().to_string().contains("`userId`"));
    }
}
