//! Session service: it registers each session of an organisation, and sends its policy and its feature flags.

mod client;
mod end;
mod flags;
mod policy;
mod response;

pub(crate) use client::{Opening, SessionService};
pub(crate) use end::EndReason;
pub(super) use end::end_entry;
pub(crate) use response::{Handshake, HandshakeError};
