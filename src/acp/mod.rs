//! The Agent Client Protocol: aye sessions in an editor, over stdin and stdout.

mod blocks;
mod buffers;
mod calls;
mod commands;
mod connection;
mod diffs;
mod host;
mod options;
mod permission;
mod places;
mod session;
mod slash;
mod told;
mod turn;
mod wire;

pub use buffers::Buffers;
pub use connection::{Ended, Front, Looks, serve};
pub use host::{Answer, Asked, Authentication, Files, Host, Listed, Opened, Refusal, Server, ServerReach, Which};
