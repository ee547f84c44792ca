//! Sign-in to MCP servers using OAuth 2.1 with PKCE, and the resulting tokens.

#[cfg(feature = "conformance")]
mod conformance_login;
mod failure;
mod flow;
mod http;
mod login;
mod session_tokens;
mod stored_token;
#[cfg(test)]
mod tests;

#[cfg(feature = "conformance")]
pub use conformance_login::{RegisteredClient, UnattendedLogin};
pub(crate) use login::{LogIn, sign_in};
pub(crate) use session_tokens::{TokenCache, Vault};
