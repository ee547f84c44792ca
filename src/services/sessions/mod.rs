//! An organisation's session service, which registers each session and supplies its policy and feature flags.

mod client;
mod end;
mod flags;
mod policy;
mod response;

pub(crate) use client::{SessionOpening, SessionService};
pub(crate) use end::ServiceEndReason;
pub(super) use end::{end_entry, is_end_queued};
pub(crate) use response::{Handshake, HandshakeError};
