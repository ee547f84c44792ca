//! `aye serve`: JSON-RPC 2.0, one message a line. What a message means and what is answered, without a byte read or written here.

mod desk;
mod fault;
mod lines;
mod message;
mod methods;
mod patches;
#[cfg(test)]
mod tests;

pub use desk::{Act, Asked, Desk, Opened};
pub use fault::{Fault, FaultCode};
pub use lines::{LINE_BYTES, Line, Lines};
pub use message::Outgoing;
pub use methods::{CreateSession, ResumeSession};

/// What this host calls its protocol, where a client asks for one by `protocolVersion`.
pub const PROTOCOL_VERSION: &str = "1";
