//! Language server client, which obtains diagnostics for text that is not saved.
//!
//! It needs only a few kinds of messages, so they are read and written as JSON. The crate with all types of the
//! protocol would be larger than this module, and rejects a whole message if one of its positions is invalid.

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
