//! Stored token, which is bound to a server URL and an issuer.

use rmcp::transport::auth::StoredCredentials;
use serde::{Deserialize, Serialize};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How long before its expiry a token is refreshed.
const BEFORE_ITS_END: Duration = Duration::from_secs(60);

/// Stored token. It contains secrets and is never displayed.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(super) struct StoredToken {
    /// URL of the server for which the token was issued. It is never sent to any other server.
    pub url: String,
    pub credentials: Option<StoredCredentials>,
    /// Client secret, if the authorization server issued one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub redirect: String,
    /// Scopes that the server has reported as missing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wanted: Vec<String>,
}

impl std::fmt::Debug for StoredToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StoredToken").field("url", &self.url).finish_non_exhaustive()
    }
}

/// Whether a token can still be used.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Validity {
    Good,
    /// Expires soon, or has expired already.
    Ending,
    Over,
}

impl StoredToken {
    /// Parses a stored token. Returns `None` if it was issued for a different URL.
    pub(crate) fn read(text: &str, url: &str) -> Option<Self> {
        serde_json::from_str::<Self>(text).ok().filter(|kept| kept.url == url)
    }

    pub(crate) fn to_json(&self) -> Result<String, String> {
        serde_json::to_string(self).map_err(|error| format!("cannot serialize the tokens: {error}"))
    }

    /// Returns the access token to send to the server, if there is one.
    pub(crate) fn token(&self) -> Option<String> {
        let value = serde_json::to_value(self.credentials.as_ref()?.token_response.as_ref()?).ok()?;
        value.get("access_token")?.as_str().map(str::to_owned)
    }

    pub(crate) fn is_renewable(&self) -> bool {
        let response = self.credentials.as_ref().and_then(|kept| kept.token_response.as_ref());
        response
            .and_then(|response| serde_json::to_value(response).ok())
            .is_some_and(|value| value.get("refresh_token").is_some())
    }

    pub(crate) fn granted_scopes(&self) -> &[String] {
        self.credentials.as_ref().map_or(&[], |kept| kept.granted_scopes.as_slice())
    }

    pub(crate) fn validity(&self, now: SystemTime) -> Validity {
        let Some(credentials) = &self.credentials else { return Validity::Over };
        let lifetime = credentials.token_response.as_ref().and_then(|response| serde_json::to_value(response).ok());
        let lifetime = lifetime.and_then(|value| value.get("expires_in")?.as_u64());
        let (Some(lifetime), Some(since)) = (lifetime, credentials.token_received_at) else { return Validity::Good };
        let now = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let left = since.saturating_add(lifetime).saturating_sub(now);
        match left {
            0 => Validity::Over,
            left if left <= BEFORE_ITS_END.as_secs().min(lifetime / 2) => Validity::Ending,
            _ => Validity::Good,
        }
    }
}
