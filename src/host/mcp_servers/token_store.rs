//! Stores MCP tokens in the system keyring or, if there is none, in the credentials file.

use crate::config::{ApiKey, Credentials, KeyringFailure, server_key};
use crate::host::context::AppContext;
use crate::mcp::auth::Vault;
use crate::sys::keyring::KeyringError;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Maximum time to wait for the lock, which is much longer than another process needs to renew a token.
const TIMEOUT: Duration = Duration::from_secs(40);
const STEP: Duration = Duration::from_millis(50);

struct TokenStore {
    credentials: Credentials,
    uses_keyring: bool,
    lock: PathBuf,
}

pub(crate) fn vault(app: &AppContext) -> Arc<dyn Vault> {
    Arc::new(TokenStore {
        credentials: app.credentials.clone(),
        uses_keyring: app.settings.uses_keyring(),
        lock: app.directories.shared.join("tokens.lock"),
    })
}

impl Vault for TokenStore {
    fn load(&self, server: &str, url: &str) -> Result<Option<String>, String> {
        let kept = self.credentials.secret_uncached(&server_key(server, url));
        let why = |why: String| format!("cannot read the tokens of `{server}`: {why}");
        Ok(kept.map_err(why)?.map(|secret| secret.reveal().to_owned()))
    }

    fn save(&self, server: &str, url: &str, tokens: &str) -> Result<(), String> {
        let (name, secret) = (server_key(server, url), ApiKey::new(tokens));
        if self.uses_keyring {
            match self.credentials.keep_in_keyring(&name, &secret) {
                Ok(()) => return Ok(()),
                Err(KeyringFailure::File(error)) => return Err(error.to_string()),
                Err(KeyringFailure::Keyring(KeyringError::Absent)) => {}
                Err(KeyringFailure::Keyring(error)) => {
                    return Err(format!(
                        "{error}; pass `--set auth.keyring=false` to save tokens in a file that only \
                        you can read"
                    ));
                }
            }
        }
        self.credentials.keep_in_file(&name, &secret).map_err(|error| error.to_string())
    }

    fn lock_renewal(&self) -> Result<Box<dyn Send>, String> {
        let start = Instant::now();
        let cannot = |error: std::io::Error| format!("cannot lock `{}`: {error}", self.lock.display());
        if let Some(directory) = self.lock.parent() {
            std::fs::create_dir_all(directory).map_err(cannot)?;
        }
        loop {
            match crate::sys::file::lock(&self.lock) {
                Ok(held) => return Ok(Box::new(held)),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock && start.elapsed() < TIMEOUT => {
                    std::thread::sleep(STEP);
                }
                Err(error) => return Err(cannot(error)),
            }
        }
    }
}
