//! Authentication headers: the API key of a provider in its requests.

use super::error::ErrorContext;
use super::{Secret, SecretValue};
use crate::ports::ModelError;
use crate::protocol::{Failure, FailureKind, Remedy};
use std::sync::OnceLock;

pub(super) type Headers = Vec<(&'static str, String)>;
/// Function that creates headers from an API key.
type Make = fn(Option<String>) -> Headers;

/// Minimum length for redaction; a shorter key would match by chance.
const MIN_BYTES: usize = 8;

/// Headers with the API key. A key that is looked up later is available with the first request.
pub(super) struct Key {
    secret: Option<Secret>,
    make: Make,
    made: OnceLock<Headers>,
    /// Key that was looked up later, which the redactor may not know.
    asked: OnceLock<String>,
}

impl Key {
    pub(crate) fn new(secret: Option<Secret>, make: Make) -> Self {
        let made = OnceLock::new();
        match &secret {
            Some(Secret(SecretValue::Later(_))) => {}
            Some(Secret(SecretValue::Text(key))) => drop(made.set(make(filled(key)))),
            None => drop(made.set(make(None))),
        }
        Self { secret, make, made, asked: OnceLock::new() }
    }

    pub(crate) fn is_absent(&self) -> bool {
        match &self.secret {
            Some(Secret(SecretValue::Text(key))) => filled(key).is_none(),
            Some(Secret(SecretValue::Later(_))) => false,
            None => true,
        }
    }

    pub(crate) async fn headers(&self, speaker: &ErrorContext) -> Result<&Headers, ModelError> {
        if let Some(made) = self.made.get() {
            return Ok(made);
        }
        let key = match &self.secret {
            Some(Secret(SecretValue::Later(ask))) => {
                let ask = std::sync::Arc::clone(ask);
                let asked = tokio::task::spawn_blocking(move || ask()).await;
                asked.unwrap_or_else(|_| Err("the API key cannot be looked up".to_owned()))
            }
            Some(Secret(SecretValue::Text(key))) => Ok(key.clone()),
            None => Ok(String::new()),
        };
        let key = key.and_then(|key| filled(&key).ok_or_else(|| format!("no API key is saved for `{}`", speaker.provider)));
        let key = key.map_err(|message| {
            let hint =
                format!("run `aye auth login {}` to save a key; an environment variable takes precedence", speaker.provider);
            Failure::new(FailureKind::Authentication, message, hint).with_remedy(Remedy::SaveKey)
        })?;
        let _ = self.asked.set(key.clone());
        Ok(self.made.get_or_init(|| (self.make)(Some(key))))
    }

    /// Hides the key in an error, because a provider may repeat what it was sent.
    pub(crate) fn hidden_in(&self, mut error: ModelError) -> ModelError {
        if let Some(key) = self.asked.get().filter(|key| key.len() >= MIN_BYTES) {
            error.failure.message = error.failure.message.replace(key, "[key]");
        }
        error
    }
}

fn filled(key: &str) -> Option<String> {
    Some(key.trim()).filter(|key| !key.is_empty()).map(str::to_owned)
}
