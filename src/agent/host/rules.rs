//! The person's rule files, which only their port touches: where a rule would stand, and keeping or forgetting it.

use super::Host;
use crate::agent::turn::{Effect, Input, Kept};
use crate::protocol::{EventKind, RuleTold};
use tokio_util::sync::CancellationToken;

/// So many commands are looked at to say what a rule reaches.
const RECENT: usize = 200;

impl Host {
    /// A question with where its rules would stand, which only the files tell.
    pub(super) fn with_places(&self, mut kind: EventKind) -> EventKind {
        match &mut kind {
            EventKind::ApprovalRequested(approval) => {
                for offer in &mut approval.always.offers {
                    offer.places = self.rules.places(offer);
                }
            }
            EventKind::RuleTold { told: RuleTold::Offered { offer, .. }, .. } => offer.places = self.rules.places(offer),
            _ => {}
        }
        kind
    }

    pub(super) fn keep_rules(&mut self, effect: Effect) {
        let saved = matches!(effect, Effect::Remember { .. } | Effect::Forget(_)).then(|| {
            self.rules_saved = CancellationToken::new();
            self.rules_saved.clone().drop_guard()
        });
        let (rules, inputs, in_turn) = (self.rules.clone(), self.inputs.clone(), self.rules_in_turn.clone());
        tokio::spawn(async move {
            let _turn = in_turn.lock().await;
            let kept = match effect {
                Effect::Remember { grant, until } => {
                    let saved = rules.save(grant.rules.clone(), grant.scope, until).await;
                    Kept::Saved(grant, saved)
                }
                Effect::Forget(grant) => {
                    let removed = rules.remove(grant.rules.clone(), grant.scope).await;
                    Kept::Removed(grant, removed)
                }
                Effect::Recent { approval_id, offer } => {
                    Kept::Recent { approval_id, offer, commands: rules.recent_commands(RECENT).await }
                }
                _ => Kept::Listed(rules.list().await),
            };
            let _ = inputs.send(Input::Kept(kept)).await;
            drop(saved);
        });
    }
}
