//! Failures during sign-in or token refresh.

use crate::protocol::{Problem, truncate};
use rmcp::transport::auth::AuthError;

/// Maximum number of bytes to quote from an authorization server's error description.
const MAX_MESSAGE_BYTES: usize = 400;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AuthFailure {
    /// The tokens can no longer be refreshed, so the user must sign in again.
    #[error("the stored tokens are no longer valid")]
    Over,
    /// The authorization server does not let clients register, and no client is configured.
    #[error("{who} does not support dynamic client registration")]
    NotRegistered { who: String },
    #[error("{0}")]
    Failed(String),
}

impl AuthFailure {
    pub(super) fn from_message(message: impl AsRef<str>) -> Self {
        Self::Failed(truncate(message.as_ref(), MAX_MESSAGE_BYTES).into_owned())
    }
}

impl From<AuthFailure> for Problem {
    fn from(failure: AuthFailure) -> Self {
        let problem = Self::new(failure.to_string());
        match failure {
            AuthFailure::NotRegistered { .. } => problem
                .hint("register a client there with the redirect URI http://127.0.0.1, and set its ID as `oauth.client_id`"),
            AuthFailure::Over | AuthFailure::Failed(_) => problem,
        }
    }
}

impl From<AuthError> for AuthFailure {
    fn from(error: AuthError) -> Self {
        match &error {
            AuthError::AuthorizationRequired | AuthError::TokenRefreshRejected(_) | AuthError::TokenExpired => Self::Over,
            AuthError::PkceUnsupported => {
                Self::from_message("the authorization server does not support PKCE with S256, which a safe sign-in requires")
            }
            AuthError::ProtectedResourceMetadataInvalid { .. } => {
                Self::from_message(format!("sign-in refused: the server's metadata describes another server: {error}"))
            }
            AuthError::AuthorizationServerMismatch { .. } | AuthError::AuthorizationServerMissingIssuer { .. } => {
                Self::from_message(format!("sign-in refused: the authorization server is not the expected one: {error}"))
            }
            _ => Self::from_message(chain(&error)),
        }
    }
}

/// Formats an error together with its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(deeper) = next {
        let more = deeper.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        next = deeper.source();
    }
    text
}
