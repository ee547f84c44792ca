//! Failures of a sign-in or a token refresh.

use crate::protocol::truncated;
use rmcp::transport::auth::AuthError;

/// Of what a server says of itself.
const TOLD_BYTES: usize = 400;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// There is nothing to go on with: the person has to sign in.
    #[error("its tokens are no longer good")]
    Over,
    #[error("{0}")]
    Failed(String),
}

impl Failure {
    pub(super) fn failed(message: impl AsRef<str>) -> Self {
        Self::Failed(truncated(message.as_ref(), TOLD_BYTES).into_owned())
    }
}

impl From<AuthError> for Failure {
    fn from(error: AuthError) -> Self {
        match &error {
            AuthError::AuthorizationRequired | AuthError::TokenRefreshRejected(_) | AuthError::TokenExpired => Self::Over,
            AuthError::PkceUnsupported => {
                Self::failed("its authorization server knows no PKCE with S256, and without it nobody signs in safely")
            }
            AuthError::ProtectedResourceMetadataInvalid { .. } => {
                Self::failed(format!("what it says of itself is about another server, so nothing is signed in to: {error}"))
            }
            AuthError::AuthorizationServerMismatch { .. } | AuthError::AuthorizationServerMissingIssuer { .. } => {
                Self::failed(format!("its authorization server is not who it should be, so nothing is signed in to: {error}"))
            }
            _ => Self::failed(chain(&error)),
        }
    }
}

/// The error and what is behind it.
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
