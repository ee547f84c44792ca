//! Keyring of the operating system. It is accessed in a separate thread, so that a hanging keyring does not block for
//! long.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// Service name of aye's entries in the keyring.
const SERVICE: &str = "aye";

/// Reason why a keyring operation failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum KeyringError {
    #[error("no keyring is available on this system")]
    Absent,
    #[error("the keyring did not respond within {seconds} s; it may be locked")]
    Silent { seconds: u64 },
    #[error("keyring error: {0}")]
    Refused(String),
}

/// Returns the secret that the service stores for a user; `None` if there is none.
pub(crate) fn get(user: &str, patience: Duration) -> Result<Option<String>, KeyringError> {
    with_entry(user, patience, |entry| match entry.get_password() {
        Err(keyring::Error::NoEntry) => Ok(None),
        found => found.map(Some),
    })
}

/// Stores a secret, replacing the previous one.
pub(crate) fn set(user: &str, secret: &str, patience: Duration) -> Result<(), KeyringError> {
    let secret = secret.to_owned();
    with_entry(user, patience, move |entry| entry.set_password(&secret))
}

/// Deletes a secret. Returns whether there was one.
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
        // After a timeout, nobody is listening any more.
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

/// Returns an error with any stored secret removed, which some errors of the library contain.
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
