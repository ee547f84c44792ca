//! Signing in to servers: OAuth 2.1 with PKCE, and the tokens that come of it.

mod failure;
mod flow;
mod http;
mod keeper;
mod kept;
mod login;
#[cfg(test)]
mod tests;
#[cfg(feature = "conformance")]
mod unattended;

pub use keeper::{Keeper, Vault};
pub use login::{LogIn, sign_in};
#[cfg(feature = "conformance")]
pub use unattended::{Registered, Unattended};
