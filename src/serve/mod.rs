//! The protocol of `aye serve`: JSON-RPC 2.0, one message per line, without any I/O.

mod connection;
mod fault;
mod lines;
mod message;
mod methods;
mod patches;
#[cfg(test)]
mod tests;

pub(crate) use connection::{ClientConnection, ConnectionAction, OpenedSession, OpeningRequest};
pub(crate) use fault::{FaultCode, RpcError};
pub(crate) use lines::{BoundedLine, LINE_BYTES, Lines};
pub(crate) use message::Outgoing;
pub(crate) use methods::{CreateSession, ResumeSession};

/// The protocol version, which a client can require with `protocolVersion`.
pub(crate) const PROTOCOL_VERSION: &str = "1";
