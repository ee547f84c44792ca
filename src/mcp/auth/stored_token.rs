//! Stored token: bound to the address it was issued for, and to its issuer.

use rmcp::transport::auth::StoredCredentials;
use serde::{Deserialize, Serialize};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A token is renewed so long before it ends.
const BEFORE_ITS_END: Duration = Duration::from_secs(60);

/// It holds secrets: nothing prints it.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(super) struct Kept {
    /// The server it was made for; no other is sent it.
    pub url: String,
    pub credentials: Option<StoredCredentials>,
    /// Of the client, where the authorization server gave it one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub redirect: String,
    /// What the server said is missing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wanted: Vec<String>,
}

impl std::fmt::Debug for Kept {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kept").field("url", &self.url).finish_non_exhaustive()
    }
}

/// How a token stands.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Age {
    Good,
    /// It ends soon, or is over.
    Ending,
    Over,
}

impl Kept {
    /// What was written, where it is for this address.
    pub fn read(text: &str, url: &str) -> Option<Self> {
        serde_json::from_str::<Self>(text).ok().filter(|kept| kept.url == url)
    }

    pub fn written(&self) -> Result<String, String> {
        serde_json::to_string(self).map_err(|error| format!("cannot serialize the tokens: {error}"))
    }

    /// As the server is sent it.
    pub fn token(&self) -> Option<String> {
        let value = serde_json::to_value(self.credentials.as_ref()?.token_response.as_ref()?).ok()?;
        value.get("access_token")?.as_str().map(str::to_owned)
    }

    pub fn may_be_renewed(&self) -> bool {
        let response = self.credentials.as_ref().and_then(|kept| kept.token_response.as_ref());
        response
            .and_then(|response| serde_json::to_value(response).ok())
            .is_some_and(|value| value.get("refresh_token").is_some())
    }

    pub fn granted(&self) -> &[String] {
        self.credentials.as_ref().map_or(&[], |kept| kept.granted_scopes.as_slice())
    }

    pub fn age(&self, now: SystemTime) -> Age {
        let Some(credentials) = &self.credentials else { return Age::Over };
        let lifetime = credentials.token_response.as_ref().and_then(|response| serde_json::to_value(response).ok());
        let lifetime = lifetime.and_then(|value| value.get("expires_in")?.as_u64());
        let (Some(lifetime), Some(since)) = (lifetime, credentials.token_received_at) else { return Age::Good };
        let now = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let left = since.saturating_add(lifetime).saturating_sub(now);
        match left {
            0 => Age::Over,
            left if left <= BEFORE_ITS_END.as_secs().min(lifetime / 2) => Age::Ending,
            _ => Age::Good,
        }
    }
}
