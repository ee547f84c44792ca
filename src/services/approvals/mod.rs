//! Approval service, which receives each decision as a signed webhook and can be asked for
//! decisions.

mod client;
mod question;
mod record;
mod signature;

pub(crate) use client::ApprovalService;
pub(crate) use question::ApprovalAnswer;
pub(super) use record::ApprovalFeed;
