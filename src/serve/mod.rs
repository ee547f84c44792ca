//! The protocol of `aye serve`: JSON-RPC 2.0, one message per line, without any I/O.

mod connection;
mod fault;
mod lines;
mod message;
mod methods;
mod patches;
#[cfg(test)]
mod tests;

pub use connection::{Act, ClientConnection, OpenedSession, OpeningRequest};
pub use fault::{Fault, FaultCode};
pub use lines::{LINE_BYTES, Line, Lines};
pub use message::Outgoing;
pub use methods::{CreateSession, ResumeSession};

/// The version of the protocol, which a client can require by `protocolVersion`.
pub const PROTOCOL_VERSION: &str = "1";
