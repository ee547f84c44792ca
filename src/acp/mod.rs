//! The Agent Client Protocol: aye sessions in an editor, over stdin and stdout.

mod blocks;
mod buffers;
mod calls;
mod capabilities;
mod client;
mod commands;
mod connection;
mod diffs;
mod host;
mod markdown;
mod options;
mod permission;
mod places;
mod rpc;
mod session;
mod slash;
mod told;
mod turn;
mod wire;

pub use buffers::Buffers;
pub use client::Looks;
pub use connection::{Ended, Front, serve};
pub use host::{Answer, Asked, Authentication, Files, Host, Listed, Opened, Refusal, Server, ServerReach, Which};
