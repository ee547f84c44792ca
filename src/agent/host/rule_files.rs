//! The user's rule files: finds the file for a rule, and saves or removes rules. Only `Rules` accesses the files.

use crate::agent::turn::{Effect, Input, RuleFileResult};
use crate::ports::Rules;
use crate::protocol::{EventKind, RuleInfo};
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Number of recent commands that are checked to estimate the effect of a rule.
const RECENT: usize = 200;

/// User's rule files, and their pending changes.
pub(super) struct RuleFiles {
    port: Arc<dyn Rules>,
    /// Serializes changes, so that they are reported in the order of the requests.
    in_turn: Arc<tokio::sync::Mutex<()>>,
    /// Cancelled once the last change is done and its outcome has been sent as an input.
    saved: CancellationToken,
    inputs: mpsc::Sender<Input>,
}

impl RuleFiles {
    pub(crate) fn new(port: Arc<dyn Rules>, inputs: mpsc::Sender<Input>) -> Self {
        let saved = CancellationToken::new();
        saved.cancel();
        Self { port, in_turn: Arc::default(), saved, inputs }
    }

    /// Returns a token that is cancelled once the pending changes are done.
    pub(crate) fn changes_done(&self) -> CancellationToken {
        self.saved.clone()
    }

    /// Adds the file locations of the offered rules to an approval. Only the files can determine them.
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

    /// Reads or changes the files in the background; the outcome becomes an input.
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
