//! Agent Client Protocol, which provides aye sessions in an editor over standard input and output.

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
mod transport;
mod turn;
mod update_mapper;

pub(crate) use buffers::EditorBuffers;
pub(crate) use client::Sanitizers;
pub(crate) use connection::{ConnectionParts, EndReason, serve};
pub(crate) use host::{
    Answer, Authentication, EditorServer, FileProvider, Host, Listed, Refusal, RunningSession, ServerReach, SessionOpening,
    SessionOrigin,
};
