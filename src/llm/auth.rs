//! Authentication headers that contain a provider's API key.

use super::error::ErrorContext;
use super::{RenewKey, Secret, SecretValue};
use crate::ports::ModelError;
use crate::protocol::{Failure, FailureKind, Remedy};
use crate::sys::http::Headers;
use std::borrow::Cow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Function that creates authentication headers from an API key.
pub(super) type HeaderFactory = fn(Option<String>) -> Vec<(&'static str, String)>;

/// Minimum length in bytes of a key to be redacted. A shorter key would also match unrelated text.
const MIN_BYTES: usize = 8;

/// Creates headers with the API key, which may have to be looked up for the first request.
pub(super) struct AuthHeaders {
    secret: Option<Secret>,
    make: HeaderFactory,
    looked_up: Mutex<CachedKey>,
}

/// State of a key that is looked up when it is needed.
#[derive(Default)]
struct CachedKey {
    /// Most recently used key. The redactor's list of secrets may not include it.
    key: Option<String>,
    /// Key that the provider rejected. It is passed to the next look-up, which then returns a different key.
    rejected: Option<String>,
}

impl AuthHeaders {
    pub(crate) fn new(secret: Option<Secret>, make: HeaderFactory) -> Self {
        Self { secret, make, looked_up: Mutex::default() }
    }

    pub(crate) fn is_absent(&self) -> bool {
        match &self.secret {
            Some(Secret(SecretValue::Text(key))) => non_empty(key).is_none(),
            Some(Secret(SecretValue::Later(_) | SecretValue::Renewable(_))) => false,
            None => true,
        }
    }

    pub(crate) async fn headers(&self, speaker: &ErrorContext) -> Result<Headers, ModelError> {
        let key = match &self.secret {
            Some(Secret(SecretValue::Later(ask))) => {
                let known = self.lock_cache().key.clone();
                Some(match known {
                    Some(known) => known,
                    None => self.find_key(Arc::clone(ask), speaker).await?,
                })
            }
            Some(Secret(SecretValue::Renewable(ask))) => Some(self.renew(Arc::clone(ask)).await?),
            Some(Secret(SecretValue::Text(key))) => non_empty(key),
            None => None,
        };
        Ok((self.make)(key).into_iter().map(|(name, value)| (Cow::Borrowed(name), value)).collect())
    }

    /// Records that the provider rejected the key. Returns whether another look-up may return a different key, so that
    /// retrying makes sense.
    pub(crate) fn reject(&self) -> bool {
        let Some(Secret(SecretValue::Renewable(_))) = &self.secret else { return false };
        let mut looked_up = self.lock_cache();
        let key = looked_up.key.clone();
        looked_up.rejected = key;
        looked_up.rejected.is_some()
    }

    async fn find_key(
        &self,
        ask: Arc<dyn Fn() -> Result<String, String> + Send + Sync>,
        speaker: &ErrorContext,
    ) -> Result<String, ModelError> {
        let key = tokio::task::spawn_blocking(move || ask()).await;
        let key = key.unwrap_or_else(|_| Err("the API key cannot be looked up".to_owned()));
        let key = key.and_then(|key| non_empty(&key).ok_or_else(|| format!("no API key is saved for `{}`", speaker.provider)));
        let key = key.map_err(|message| {
            let hint =
                format!("run `aye auth login {}` to save a key; an environment variable takes precedence", speaker.provider);
            Failure::new(FailureKind::Authentication, message, hint).with_remedy(Remedy::SaveKey)
        })?;
        self.lock_cache().key = Some(key.clone());
        Ok(key)
    }

    async fn renew(&self, ask: RenewKey) -> Result<String, ModelError> {
        let rejected = self.lock_cache().rejected.take();
        let key = tokio::task::spawn_blocking(move || ask(rejected.as_deref())).await;
        let lost = || Failure::new(FailureKind::Authentication, "the API key cannot be looked up", "try again");
        let key = key.unwrap_or_else(|_| Err(lost()))?;
        self.lock_cache().key = Some(key.clone());
        Ok(key)
    }

    /// Removes the key from an error message, because a provider may quote parts of the request.
    pub(crate) fn redact(&self, mut error: ModelError) -> ModelError {
        if let Some(key) = self.lock_cache().key.as_ref().filter(|key| key.len() >= MIN_BYTES) {
            error.failure.message = error.failure.message.replace(key, "[key]");
        }
        error
    }

    fn lock_cache(&self) -> MutexGuard<'_, CachedKey> {
        self.looked_up.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn non_empty(key: &str) -> Option<String> {
    Some(key.trim()).filter(|key| !key.is_empty()).map(str::to_owned)
}
