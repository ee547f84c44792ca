//! Approval service, which is sent each decision as a signed webhook and, if so configured, makes decisions itself.

mod client;
mod question;
mod record;
mod signature;

pub(crate) use client::ApprovalService;
pub(crate) use question::ApprovalAnswer;
pub(super) use record::ApprovalFeed;
