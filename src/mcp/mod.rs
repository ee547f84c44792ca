//! The MCP client: servers of tools, by whatever way they are reached.

mod ask;
pub mod auth;
mod bounds;
mod connect;
mod connection;
mod content;
mod failure;
mod form;
mod known;
mod reading;
mod server;
mod servers;
mod spec;
mod talk;
#[cfg(test)]
mod tests;
mod tools;
mod transport;
mod wires;

pub use connection::Identity;
pub use servers::Servers;
pub use spec::{Header, HttpKind, Reach, SignIn, Spec};
pub use wires::{Approval, Refusal, Tokens, Wires};
