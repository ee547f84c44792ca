//! Language server client: diagnostics of text that is not saved.
//!
//! The messages that it needs are few, so they are read and written as JSON: the crate of all types of the protocol would be larger
//! than this module, and it rejects a whole message if one of its positions is invalid.

mod connection;
mod documents;
mod findings;
mod framing;
mod languages;
mod limits;
mod server;
mod servers;
mod session;
#[cfg(test)]
mod tests;
mod uri;

pub(crate) use languages::{LANGUAGES, Language};
pub(crate) use server::{FindCommand, ServerCommand};
pub(crate) use servers::LanguageServers;
