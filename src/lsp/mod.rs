//! Language server client, which obtains diagnostics for text that has not been saved.
//!
//! The client needs only a few kinds of messages, so it reads and writes them as plain JSON. A crate with all types in
//! the protocol would be larger than this module, and would reject an entire message if it contained a single invalid
//! position.

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
