//! Access to the operating system's keyring. It takes place on a separate thread, so an unresponsive keyring blocks aye
//! only for a limited time.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// Service name under which aye's entries are stored in the keyring.
const SERVICE: &str = "aye";

/// Why a keyring operation failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum KeyringError {
    #[error("no keyring is available on this system")]
    Absent,
    #[error("the keyring did not respond within {seconds} s; it may be locked")]
    Silent { seconds: u64 },
    #[error("keyring error: {0}")]
    Refused(String),
}

/// Returns the secret stored for `user`, or `None` if there is none. Fails if the keyring does not respond within
/// `patience`.
pub(crate) fn get(user: &str, patience: Duration) -> Result<Option<String>, KeyringError> {
    with_entry(user, patience, |entry| match entry.get_password() {
        Err(keyring::Error::NoEntry) => Ok(None),
        found => found.map(Some),
    })
}

/// Stores a secret for `user`, replacing any previous one.
pub(crate) fn set(user: &str, secret: &str, patience: Duration) -> Result<(), KeyringError> {
    let secret = secret.to_owned();
    with_entry(user, patience, move |entry| entry.set_password(&secret))
}

/// Deletes the secret of `user`. Returns whether there was one.
pub(crate) fn delete(user: &str, patience: Duration) -> Result<bool, KeyringError> {
    with_entry(user, patience, |entry| match entry.delete_credential() {
        Err(keyring::Error::NoEntry) => Ok(false),
        done => done.map(|()| true),
    })
}

fn with_entry<T: Send + 'static>(
    user: &str,
    patience: Duration,
    what: impl FnOnce(&keyring::Entry) -> keyring::Result<T> + Send + 'static,
) -> Result<T, KeyringError> {
    let (tell, told) = channel();
    let user = user.to_owned();
    let asked = move || {
        let answer = keyring::Entry::new(SERVICE, &user).and_then(|entry| what(&entry));
        // After a timeout, the receiver has been dropped.
        let _ = tell.send(answer);
    };
    let started = std::thread::Builder::new().name("keyring".to_owned()).spawn(asked);
    started.map_err(|error| KeyringError::Refused(error.to_string()))?;
    match told.recv_timeout(patience) {
        Ok(answer) => answer.map_err(|error| redacted_error(&error)),
        Err(RecvTimeoutError::Timeout) => Err(KeyringError::Silent { seconds: patience.as_secs() }),
        Err(RecvTimeoutError::Disconnected) => Err(KeyringError::Refused("the request failed".to_owned())),
    }
}

/// Converts a keyring library error without including the stored secret, which some of these errors contain.
fn redacted_error(error: &keyring::Error) -> KeyringError {
    match error {
        keyring::Error::NoDefaultStore => KeyringError::Absent,
        keyring::Error::PlatformFailure(_) | keyring::Error::NoStorageAccess(_) | keyring::Error::TooLong(..) => {
            KeyringError::Refused(error.to_string())
        }
        keyring::Error::BadEncoding(_) | keyring::Error::BadDataFormat(..) | keyring::Error::BadStoreFormat(_) => {
            KeyringError::Refused("the stored value is not text".to_owned())
        }
        keyring::Error::Ambiguous(_) => KeyringError::Refused("more than one entry has this name".to_owned()),
        _ => KeyringError::Refused("the operation is not supported".to_owned()),
    }
}
