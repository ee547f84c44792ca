//! Preview of a rule before it is saved: whether the user's own rule is valid, and which commands it would have allowed.

use super::call_runner::CallRunner;
use super::{Call, CallState, Effect, InputTime, Pending, TurnMachine};
use crate::protocol::{Action, ApprovalId, EventKind, RuleAsked, RuleTold};

impl TurnMachine {
    /// Answers a question about a rule. A valid rule becomes another offer of the approval.
    pub(super) fn rule_asked(&mut self, approval_id: ApprovalId, asked: RuleAsked, at: InputTime) {
        let mut told = RuleTold::Refused { message: "this approval was already decided".to_owned() };
        let mut look = None;
        self.of_question(&approval_id, |runner, pending| match asked {
            RuleAsked::Written { rule } => told = runner.written(pending, &rule, at),
            RuleAsked::Reach { offer } if offer < pending.always.offers.len() => look = Some(offer),
            RuleAsked::Reach { .. } => told = RuleTold::Refused { message: "no such offer".to_owned() },
        });
        match look {
            Some(offer) => self.out.push(Effect::Recent { approval_id, offer }),
            None => self.emit(EventKind::RuleTold { approval_id, told }),
        }
    }

    /// Finds the recent commands that required approval, and would not have with this offer.
    pub(super) fn reach(&mut self, approval_id: ApprovalId, offer: usize, commands: Result<Vec<String>, String>, at: InputTime) {
        let mut told = None;
        self.of_question(&approval_id, |runner, pending| {
            let Some(offered) = pending.always.offers.get(offer) else { return };
            let cwd = pending.plan.actions.iter().find_map(|action| match action {
                Action::Exec { cwd, .. } => Some(cwd),
                _ => None,
            });
            told = Some(match (commands, cwd) {
                (Err(message), _) => RuleTold::Refused { message },
                (Ok(_), None) => RuleTold::Reaches { offer, of: 0, lines: Vec::new() },
                (Ok(commands), Some(cwd)) => {
                    let lines = runner.policy.lets_through(&offered.rules, &commands, cwd, at.now);
                    RuleTold::Reaches { offer, of: commands.len(), lines }
                }
            });
        });
        // The approval may have been decided in the meantime.
        if let Some(told) = told {
            self.emit(EventKind::RuleTold { approval_id, told });
        }
    }

    fn of_question(&mut self, approval_id: &ApprovalId, act: impl FnOnce(&mut CallRunner<'_>, &mut Pending)) {
        self.with_calls(|runner, calls| {
            let asking = calls.iter_mut().find_map(|call: &mut Call| match &mut call.state {
                CallState::Asking(pending) if pending.approval_id == *approval_id => Some(pending),
                _ => None,
            });
            if let Some(pending) = asking {
                act(runner, pending);
            }
        });
    }
}
