//! Previews: a command runs in a view of its own, and what it did there is asked about before any of it is kept.

use super::calls::Batch;
use super::{Approver, Call, CallState, Effect, Machine, Moment};
use crate::policy::{Preview, PreviewPermit, Verdict};
use crate::ports::{Durability, Plan, Record};
use crate::protocol::{Action, ApprovalId, Decision, Effects, PreviewOffer, ToolError, ToolResult};

/// A call that runs in its view. The plan is with the router; this is what can still be judged.
#[derive(Debug)]
pub(super) struct Viewing {
    pub ticket: u64,
    pub tool_name: String,
    pub actions: Vec<Action>,
}

/// What a preview is begun with.
pub(super) struct Looked {
    pub index: usize,
    pub plan: Plan,
    pub permit: PreviewPermit,
    /// The question it was asked for in.
    pub approval_id: Option<ApprovalId>,
}

impl Machine {
    /// The person wants to see what would happen before they answer.
    pub(super) fn preview(&mut self, approval_id: &ApprovalId, at: Moment) {
        self.decided(approval_id, Decision::Previewed, at);
    }

    /// Of what the tool offers, what the policy and an earlier attempt leave.
    pub(super) fn narrow_offer(&self, call: &Call, plan: &mut Plan) {
        if plan.preview != PreviewOffer::Possible {
            return;
        }
        if let Some(reason) = call.no_preview.clone() {
            plan.preview = PreviewOffer::Impossible { reason };
        } else if self.policy.preview() == Preview::Never {
            plan.preview = PreviewOffer::Impossible { reason: "the policy offers no preview".to_owned() };
        }
    }

    /// Leave to preview what the policy wants previewed before any question.
    pub(super) fn first_look(&self, verdict: &Verdict, plan: &Plan) -> Option<PreviewPermit> {
        let wanted = self.policy.preview() == Preview::Always && plan.preview == PreviewOffer::Possible && plan.effects.is_none();
        match verdict {
            // What can write nothing has no effects to look at.
            Verdict::Allow(permit) if wanted && !permit.reads_only() => Some(permit.preview()),
            // Where nobody answers there is nobody to look.
            Verdict::Ask(question) if wanted && self.options.approver != Approver::Nobody => Some(question.preview()),
            Verdict::Allow(_) | Verdict::Ask(_) | Verdict::Deny(_) => None,
        }
    }

    /// Why a call that a rule lets pass is asked about all the same.
    pub(super) fn why_ask(&self, call: &Call, plan: &Plan) -> Option<String> {
        self.goes_in_circles(call).or_else(|| self.must_ask(call, plan)).or_else(|| Self::asks_as_edited(call))
    }

    fn must_ask(&self, call: &Call, plan: &Plan) -> Option<String> {
        if self.options.approver == Approver::Nobody {
            return None;
        }
        if let Some(reason) = &call.no_preview {
            return Some(format!("what it would do cannot be shown first: {reason}"));
        }
        let effects = plan.effects.as_ref()?;
        (call.asked || !is_quiet(effects)).then(|| "what it did in its view is kept only with your yes".to_owned())
    }

    pub(super) fn begin_preview(&mut self, call: &mut Call, looked: Looked, batch: &mut Batch) {
        self.counters.tickets += 1;
        let ticket = self.counters.tickets;
        call.previewed = true;
        self.note(Record::PreviewStarted { tool_call_id: call.call.tool_call_id.clone() });
        let (tool_name, actions) = (looked.plan.tool_name.clone(), looked.plan.actions.clone());
        call.state = CallState::Previewing(Box::new(Viewing { ticket, tool_name, actions }));
        batch.previews.push((ticket, looked));
    }

    /// Takes what a command did in its view. What nobody waits for any more is dropped, and its view with it.
    pub(super) fn previewed(&mut self, index: usize, ticket: u64, outcome: Result<Plan, ToolError>, at: Moment) {
        self.with_calls(|machine, calls| {
            let waits = |call: &Call| matches!(&call.state, CallState::Previewing(viewing) if viewing.ticket == ticket);
            let Some(call) = calls.get_mut(index).filter(|call| waits(call)) else { return };
            let mut batch = Batch::default();
            match outcome {
                Ok(plan) => {
                    let verdict = plan.judged(&machine.policy, at.now);
                    call.proposal.clone_from(&plan.proposal);
                    machine.obey(verdict, call, index, plan, &mut batch, at);
                    if matches!(call.state, CallState::Running) {
                        let (tool_call_id, proposal) = (call.call.tool_call_id.clone(), call.proposal.clone());
                        machine.note(Record::Previewed { tool_call_id, proposal });
                    }
                }
                Err(error) => {
                    machine.drop_preview(call);
                    call.no_preview = Some(error.message);
                    machine.plan_again(call, index);
                }
            }
            machine.carry_out(calls, batch);
        });
        self.advance(at);
        self.commit(Durability::Process);
    }

    /// Stops a preview that nobody waits for any more.
    pub(super) fn stop_preview(&mut self, call: &Call) {
        if let CallState::Previewing(viewing) = &call.state {
            self.out.push(Effect::StopPreview { ticket: viewing.ticket });
        }
    }

    /// The view of the call is gone, so nothing in it can be kept.
    pub(super) fn drop_preview(&mut self, call: &mut Call) {
        call.previewed = false;
        call.proposal = None;
        self.note(Record::PreviewDropped { tool_call_id: call.call.tool_call_id.clone() });
    }

    /// What recovery found out about effects that were being kept when the process ended.
    pub(super) fn settle_commits(&mut self, settled: Vec<ToolResult>) {
        self.with_calls(|machine, calls| {
            for result in settled {
                let under_way = |call: &&mut Call| {
                    call.previewed && matches!(call.state, CallState::Running) && call.call.tool_call_id == result.tool_call_id
                };
                let Some(call) = calls.iter_mut().find(under_way) else { continue };
                machine.announce(call, &[]);
                call.settle(result);
                machine.report(call, 0);
            }
        });
    }

    /// Plans a call anew, with what it is to be asked to open.
    pub(super) fn plan_again(&mut self, call: &mut Call, index: usize) {
        call.state = CallState::Planning;
        let planned = call.call.clone();
        self.out.push(match &call.held {
            None if call.amended.by.is_empty() => Effect::Plan(vec![(index, planned)]),
            held => {
                let opens = held.as_ref().map_or_else(Vec::new, |held| held.opens().to_vec());
                Effect::PlanOpened { index, call: planned, opens, amendments: call.amended.by.clone() }
            }
        });
    }
}

/// Why a plan cannot be previewed.
pub(super) fn no_preview(plan: &Plan) -> Option<String> {
    if plan.effects.is_some() {
        return Some("that was done already".to_owned());
    }
    match &plan.preview {
        PreviewOffer::Possible => None,
        PreviewOffer::None => Some("it is no command".to_owned()),
        PreviewOffer::Impossible { reason } => Some(reason.clone()),
    }
}

/// Whether it changed nothing and tried nothing that it may not.
fn is_quiet(effects: &Effects) -> bool {
    effects.is_empty() && effects.refused.is_empty() && effects.denied.is_empty()
}
