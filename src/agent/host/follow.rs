//! Watches the files of pending approvals, so that the user learns about changes before deciding.

use super::Host;
use crate::agent::turn::Input;
use crate::ports::Followed;
use futures_util::StreamExt as _;
use tokio::sync::watch;

/// Watched proposals; `None` before the first approval.
pub(super) type Follows = Option<watch::Sender<Followed>>;

impl Host {
    /// Updates the watcher when the pending approvals change.
    pub(super) fn follow(&mut self) {
        let asked = self.machine.asked_about();
        let known = match &self.follows {
            Some(list) => asked.map(|(id, _)| id).eq(list.borrow().iter().map(|(id, _)| id)),
            None => asked.count() == 0,
        };
        if known {
            return;
        }
        let asked: Followed = self.machine.asked_about().map(|(id, places)| (id.clone(), places.to_vec())).collect();
        if let Some(list) = &self.follows {
            list.send_replace(asked);
            return;
        }
        let (list, plans) = watch::channel(asked);
        let (mut told, inputs) = (self.router.follow(plans), self.inputs.clone());
        self.follows = Some(list);
        tokio::spawn(async move {
            while let Some((approval_id, outdated)) = told.next().await {
                if inputs.send(Input::Outdated { approval_id, outdated }).await.is_err() {
                    return;
                }
            }
        });
    }
}
