//! Protocol of `aye serve`, which is JSON-RPC 2.0 with one message per line. This module performs no I/O.

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

/// Protocol version, which clients can require by sending `protocolVersion`.
pub(crate) const PROTOCOL_VERSION: &str = "1";
