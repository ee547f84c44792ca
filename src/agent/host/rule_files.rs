//! The user's rule files: determines which file a rule belongs to, and saves or removes rules. Only `Rules` accesses
//! the files themselves.

use crate::agent::turn::{Effect, Input, RuleFileResult};
use crate::ports::Rules;
use crate::protocol::{EventKind, RuleInfo};
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Number of recent commands examined to estimate what a rule would affect.
const RECENT: usize = 200;

/// The user's rule files and any pending changes to them.
pub(super) struct RuleFiles {
    port: Arc<dyn Rules>,
    /// Serializes changes so that they are reported in the order in which they were requested.
    in_turn: Arc<tokio::sync::Mutex<()>>,
    /// Cancelled once the most recent change is complete and its outcome has been sent as an input.
    saved: CancellationToken,
    inputs: mpsc::Sender<Input>,
}

impl RuleFiles {
    pub(crate) fn new(port: Arc<dyn Rules>, inputs: mpsc::Sender<Input>) -> Self {
        let saved = CancellationToken::new();
        saved.cancel();
        Self { port, in_turn: Arc::default(), saved, inputs }
    }

    /// Returns a token that is cancelled once all pending changes are complete.
    pub(crate) fn changes_done(&self) -> CancellationToken {
        self.saved.clone()
    }

    /// Adds to an approval the locations at which the offered rules would be saved. The turn machine cannot do this,
    /// because it does not access the files.
    pub(crate) fn with_places(&self, mut kind: EventKind) -> EventKind {
        match &mut kind {
            EventKind::ApprovalRequested(approval) => {
                for offer in &mut approval.always.offers {
                    offer.places = self.port.rule_places(offer);
                }
            }
            EventKind::RuleTold { told: RuleInfo::Offered { offer, .. }, .. } => offer.places = self.port.rule_places(offer),
            _ => {}
        }
        kind
    }

    /// Reads or changes the rule files in the background. The outcome becomes an input.
    pub(crate) fn start(&mut self, effect: Effect) {
        let saved = matches!(effect, Effect::Remember { .. } | Effect::Forget(_)).then(|| {
            self.saved = CancellationToken::new();
            self.saved.clone().drop_guard()
        });
        let (rules, inputs, in_turn) = (self.port.clone(), self.inputs.clone(), self.in_turn.clone());
        tokio::spawn(async move {
            let _turn = in_turn.lock().await;
            let kept = match effect {
                Effect::Remember { grant, until } => {
                    let saved = rules.save(grant.rules.clone(), grant.scope, until).await;
                    RuleFileResult::Saved(grant, saved)
                }
                Effect::Forget(grant) => {
                    let removed = rules.remove(grant.rules.clone(), grant.scope).await;
                    RuleFileResult::Removed(grant, removed)
                }
                Effect::Recent { approval_id, offer } => {
                    RuleFileResult::Recent { approval_id, offer, commands: rules.recent_commands(RECENT).await }
                }
                _ => RuleFileResult::Listed(rules.list().await),
            };
            let _ = inputs.send(Input::RuleFiles(kept)).await;
            drop(saved);
        });
    }
}
