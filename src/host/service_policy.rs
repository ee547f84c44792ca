//! Loads a policy from a URL before a session opens, and again while the session runs. The last valid policy is stored
//! in a file, and the session reacts to changes of this file as it does for other policy files.

use super::error::CliError;
use crate::agent::PolicyUpdate;
use crate::config::{Directories, Environment, PolicyService, Settings};
use crate::protocol::Problem;
use crate::services::policy_bundles::{PolicyCache, VerificationKey, refresh};
use jiff::{SignedDuration, Timestamp};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::sync::mpsc;

/// Maximum size of a public key file, in bytes.
const KEY_BYTES: u64 = 64 << 10;
/// Maximum time that the start of a session waits for the policy.
const FIRST_WAIT: Duration = Duration::from_secs(8);

/// A configured policy that is loaded from a URL.
#[derive(Clone)]
pub(crate) struct ServicePolicy {
    service: PolicyService,
    key_file: Option<PathBuf>,
    token: Option<String>,
    secret: Option<String>,
    cache: PolicyCache,
}

impl ServicePolicy {
    /// Returns the configured policy, or `None` if no policy URL is configured.
    pub(crate) fn find(settings: &Settings, environment: &Environment, directories: &Directories, home: &Path) -> Option<Self> {
        let service = settings.policy_service.clone()?;
        let key_file = service.public_key_file(&directories.config, home);
        let token = service.token_env.as_ref().and_then(|name| environment.get(name)).map(str::to_owned);
        let secret = service.secret_env.as_ref().and_then(|name| environment.get(name)).map(str::to_owned);
        Some(Self { service, key_file, token, secret, cache: PolicyCache::new(&directories.shared) })
    }

    /// Returns the file that contains the last valid policy, or `None` if there is none yet.
    pub(crate) fn file(&self) -> Option<PathBuf> {
        self.cache.is_there(&self.source()).then(|| self.cache.file())
    }

    /// Returns an ID for the source of the last valid policy. The ID depends on the verification key, so changing the
    /// key invalidates a policy that was signed with the previous one.
    fn source(&self) -> String {
        let key = self.key_file.as_ref().and_then(|path| crate::sys::file::read(path, KEY_BYTES).ok());
        self.service.identity(key.as_deref().or(self.secret.as_deref().map(str::as_bytes)))
    }

    pub(crate) fn url(&self) -> &str {
        &self.service.url
    }

    /// Requests the policy from the URL.
    pub(crate) async fn refresh(&self) -> Result<(), Problem> {
        if let Some(name) = self.service.token_env.as_ref().filter(|_| self.token.is_none()) {
            let problem = Problem::new(format!("the environment variable `{name}` is not set"));
            return Err(problem.because("`services.policy.token_env` names it"));
        }
        let (key, bytes) = self.read_key()?.unzip();
        let source = self.service.identity(bytes.as_deref());
        refresh((&self.service, source), key.as_ref(), self.token.as_deref(), &self.cache).await
    }

    /// Returns the key that verifies signatures, together with its bytes. Returns `None` if signatures are not checked.
    fn read_key(&self) -> Result<Option<(VerificationKey, Vec<u8>)>, Problem> {
        if let Some(path) = &self.key_file {
            let failed = |why: String| {
                let problem = Problem::new(format!("cannot use the public key `{}`", path.display())).because(why);
                problem.hint("correct `services.policy.public_key` in config.toml")
            };
            let pem = crate::sys::file::read(path, KEY_BYTES).map_err(|error| failed(error.to_string()))?;
            return Ok(Some((VerificationKey::parse(&pem).map_err(failed)?, pem)));
        }
        let Some(name) = &self.service.secret_env else { return Ok(None) };
        let problem = |why: String| Problem::new(why).because("`services.policy.secret_env` names it");
        let secret = self.secret.as_ref().ok_or_else(|| problem(format!("the environment variable `{name}` is not set")))?;
        let key = VerificationKey::from_secret(secret)
            .map_err(|why| problem(format!("cannot use the environment variable `{name}`: {why}")))?;
        Ok(Some((key, secret.as_bytes().to_vec())))
    }

    /// Returns the notices about the last change, omitting those that have already been shown.
    pub(crate) fn take_notices(&self) -> Vec<String> {
        self.cache.take_notices(&self.source())
    }

    /// Loads the policy if none has been loaded yet.
    pub(crate) fn ensure_loaded(&self) -> Result<(), CliError> {
        if self.file().is_some() {
            return Ok(());
        }
        let hint = "no session starts without the policy; to stop using it, remove `services.policy.url` from config.toml";
        self.refresh_now().map_err(|problem| CliError::failed(problem.hint(hint)))
    }

    /// Loads the policy unless it was checked recently, and returns notices. A failure is an error only if no valid
    /// policy has been loaded before.
    pub(crate) fn ensure(&self) -> Result<Vec<String>, CliError> {
        self.ensure_loaded()?;
        let poll = SignedDuration::try_from(self.service.poll).unwrap_or(SignedDuration::MAX);
        let earliest = Timestamp::now().checked_sub(poll).unwrap_or(Timestamp::MIN);
        let mut notices = Vec::new();
        if !self.cache.is_current(&self.source(), earliest)
            && let Err(problem) = self.refresh_now()
        {
            notices.push(format!("{}; the last good policy stays in effect", problem.one_line()));
        }
        notices.extend(self.take_notices());
        Ok(notices)
    }

    /// Loads the policy from synchronous code, which may already be running inside an async runtime.
    fn refresh_now(&self) -> Result<(), Problem> {
        let own = self.clone();
        let failed = |why: String| Problem::new(format!("cannot load the policy from `{}`", self.service.url)).because(why);
        let thread = std::thread::Builder::new().name("aye-policy".to_owned()).spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| error.to_string())?;
            let refreshed = runtime.block_on(async { tokio::time::timeout(FIRST_WAIT, own.refresh()).await });
            Ok::<_, String>(refreshed.unwrap_or_else(|_| {
                Err(Problem::new(format!("cannot load the policy from `{}`", own.service.url)).because("the request timed out"))
            }))
        });
        let thread = thread.map_err(|error| failed(error.to_string()))?;
        thread.join().map_err(|_| failed("the request ended unexpectedly".to_owned()))?.map_err(failed)?
    }

    /// Loads the policy at regular intervals until the session ends. Repeated failures are reported only once.
    pub(crate) async fn poll(self, notices: mpsc::Sender<PolicyUpdate>) {
        let mut failure = None;
        loop {
            tokio::select! {
                () = tokio::time::sleep(self.service.poll) => {}
                () = notices.closed() => return,
            }
            let new = match self.refresh().await {
                Ok(()) => {
                    failure = None;
                    self.take_notices()
                }
                Err(problem) if failure.as_ref() == Some(&problem) => Vec::new(),
                Err(problem) => {
                    let line = format!("{}; the last good policy stays in effect", problem.one_line());
                    failure = Some(problem);
                    vec![line]
                }
            };
            for message in new {
                let _ = notices.send(PolicyUpdate::Notice { message }).await;
            }
        }
    }
}
