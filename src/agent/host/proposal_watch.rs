//! Watches the files affected by pending approvals, so the user learns about changes before deciding.

use super::call_context::CallContext;
use crate::agent::turn::Input;
use crate::ports::PendingPlans;
use crate::protocol::ApprovalId;
use futures_util::StreamExt as _;
use tokio::sync::watch;

/// List of watched proposals; `None` until the first approval.
#[derive(Default)]
pub(super) struct ProposalWatch(Option<watch::Sender<PendingPlans>>);

impl ProposalWatch {
    /// Returns whether exactly these proposals are being watched.
    pub(crate) fn is_on<'a>(&self, pending: impl Iterator<Item = &'a ApprovalId>) -> bool {
        match &self.0 {
            Some(list) => pending.eq(list.borrow().iter().map(|(id, _)| id)),
            None => pending.count() == 0,
        }
    }

    /// Watches these proposals instead of the previous ones.
    pub(crate) fn set(&mut self, context: &CallContext, pending: PendingPlans) {
        if let Some(list) = &self.0 {
            list.send_replace(pending);
            return;
        }
        let (list, plans) = watch::channel(pending);
        let (mut differences, inputs) = (context.router().watch_plans(plans), context.inputs());
        self.0 = Some(list);
        tokio::spawn(async move {
            while let Some((approval_id, outdated)) = differences.next().await {
                if inputs.send(Input::Outdated { approval_id, outdated }).await.is_err() {
                    return;
                }
            }
        });
    }
}
