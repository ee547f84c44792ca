//! Calls in a response: planning, judgement, approval and execution. Results are in the same order as the calls.

use super::call::{Call, CallState, Pending};
use super::call_runner::{CallRunner, FollowUpActions};
use super::io::{InputTime, PlanResult};
use super::loop_guard::RepeatCount;
use super::options::AgentOptions;
use super::policy::denial_for;
use crate::policy::permit::Denial;
use crate::ports::{Durability, Plan, Record};
use crate::protocol::TaskStatus::{self, CheckingPolicy, ExecutingTools, WaitingForApproval};
use crate::protocol::{
    Action, ApprovalId, ArgumentFault, CallArguments, CallHooks, CallId, Decision, Denier, ErrorCode, POLICY_DENIES, Part,
    PlaceChange, Resolution, RuleInfo, RuleQuery, TaskId, ToolCall, ToolError, ToolResult,
};

/// Calls of a step, from the response to their results.
#[derive(Debug, Default)]
pub(super) struct CallBatch {
    calls: Vec<Call>,
}

/// Construction and queries.
impl CallBatch {
    /// Creates a batch from the calls in a response. `rows` contains each call's repetition count, and `cut` says
    /// whether the response reached its output limit.
    pub(crate) fn from_response(calls: Vec<ToolCall>, rows: Vec<RepeatCount>, cut: bool) -> Self {
        let call = |(call, row): (ToolCall, RepeatCount)| {
            let state = match &call.arguments {
                CallArguments::Object(_) => CallState::Planning,
                CallArguments::Malformed(text) => CallState::Done(malformed_result(&call, text, cut)),
            };
            Call { row, ..Call::new(call, state) }
        };
        Self { calls: calls.into_iter().zip(rows).map(call).collect() }
    }

    /// Creates a batch with the call for a command typed by the user.
    pub(crate) fn from_user_command(call: ToolCall) -> Self {
        Self { calls: vec![Call::new(call, CallState::Planning)] }
    }

    pub(crate) fn from_restored(calls: Vec<Call>) -> Self {
        Self { calls }
    }

    pub(crate) fn calls(&self) -> &[Call] {
        &self.calls
    }

    pub(super) fn calls_mut(&mut self) -> &mut Vec<Call> {
        &mut self.calls
    }

    /// Returns whether the call with this ID is running, in a preview or otherwise.
    pub(crate) fn is_active(&self, id: &CallId) -> bool {
        let is_active = |call: &Call| matches!(call.state, CallState::Running | CallState::Previewing(_));
        self.calls.iter().any(|call| call.call.tool_call_id == *id && is_active(call))
    }

    /// Returns the calls that have not been planned yet, with their indexes.
    pub(crate) fn to_plan(&self) -> Vec<(usize, ToolCall)> {
        let open = self.calls.iter().enumerate().filter(|(_, call)| matches!(call.state, CallState::Planning));
        open.map(|(index, call)| (index, call.call.clone())).collect()
    }

    pub(crate) fn is_done(&self) -> bool {
        self.calls.iter().all(Call::is_done)
    }

    /// Returns whether a call that changes something is running.
    pub(crate) fn is_changing(&self) -> bool {
        self.calls.iter().any(|call| call.changes && matches!(call.state, CallState::Running))
    }

    /// Returns whether an approval is pending.
    pub(crate) fn is_asking(&self) -> bool {
        self.calls.iter().any(|call| matches!(call.state, CallState::Asking(_)))
    }

    /// Returns whether the user has to decide about an approval or about a call interrupted by a crash.
    pub(crate) fn waits_for_user(&self) -> bool {
        self.calls.iter().any(|call| matches!(call.state, CallState::Asking(_) | CallState::Unknown))
    }

    /// Returns whether nothing can proceed without a decision by the user.
    pub(crate) fn only_waits_for_user(&self) -> bool {
        let still = |call: &Call| {
            matches!(call.state, CallState::Unknown | CallState::Asking(_) | CallState::Deferred | CallState::Done(_))
        };
        self.waits_for_user() && self.calls.iter().all(still)
    }

    /// Returns the task status that describes the calls. A pending approval takes precedence.
    pub(crate) fn status(&self) -> TaskStatus {
        let any = |is: fn(&Call) -> bool| self.calls.iter().any(is);
        let works = |call: &Call| matches!(call.state, CallState::Running | CallState::Previewing(_));
        if self.waits_for_user() {
            WaitingForApproval
        } else if any(|call| matches!(call.state, CallState::Planning)) && !any(works) {
            CheckingPolicy
        } else {
            ExecutingTools
        }
    }

    /// Returns the pending approvals, each with the path states recorded in its plan.
    pub(crate) fn approvals(&self) -> impl Iterator<Item = (&ApprovalId, &[PlaceChange])> {
        self.calls.iter().filter_map(|call| match &call.state {
            CallState::Asking(pending) if !pending.plan.places.is_empty() => {
                Some((&pending.approval_id, pending.plan.places.as_slice()))
            }
            _ => None,
        })
    }

    /// Returns the ID of the call that is waiting for the given approval.
    pub(crate) fn call_awaiting(&self, approval_id: &ApprovalId) -> Option<&CallId> {
        self.calls.iter().find(|call| waits_for(call, approval_id)).map(|call| &call.call.tool_call_id)
    }

    /// Returns the proposed text of the file with the given index, or `None` if the approval or the text does not
    /// exist.
    pub(crate) fn proposed_text(&self, approval_id: &ApprovalId, file: usize) -> Option<String> {
        self.calls.iter().find_map(|call| match &call.state {
            CallState::Asking(pending) if pending.approval_id == *approval_id => pending.plan.amends.texts.get(file).cloned(),
            _ => None,
        })
    }

    /// Returns the results in order, or `None` if any call is still unfinished or there are no calls.
    fn finished_results(&self, options: &AgentOptions) -> Option<Vec<Part>> {
        let max_bytes = options.result_bytes(self.calls.len());
        let fitted = |call: &Call| call.result().map(|result| Part::ToolResult(result.truncate_to(max_bytes)));
        self.calls.iter().map(fitted).collect::<Option<Vec<_>>>().filter(|all| !all.is_empty())
    }

    /// Returns the results in order. Any call without a result is given one that says that its outcome is unknown.
    pub(crate) fn results(&mut self, options: &AgentOptions) -> Vec<Part> {
        let max_bytes = options.result_bytes(self.calls.len());
        let result = |call: &mut Call| {
            if !call.is_done() {
                call.outcome_unknown();
            }
            call.result().map(|result| Part::ToolResult(result.truncate_to(max_bytes)))
        };
        self.calls.iter_mut().filter_map(result).collect()
    }
}

/// Plans, runs and previews.
impl CallBatch {
    pub(crate) fn on_plans(&mut self, plans: Vec<PlanResult>, runner: &mut CallRunner<'_>, at: InputTime) {
        let mut batch = FollowUpActions::default();
        for (index, plan) in sort_by_index(plans, self.calls.len()).into_iter().enumerate() {
            let (before, from) = self.calls.split_at_mut(index);
            runner.settle_plan(before, &mut from[0], index, plan, &mut batch, at);
        }
        runner.commit_and_dispatch(&self.calls, batch);
    }

    /// Applies the outcome of these calls' pre-call hooks. Returns the calls to plan next.
    pub(crate) fn on_hooks(&mut self, hooked: Vec<(usize, CallHooks)>, runner: &mut CallRunner<'_>) -> Vec<(usize, ToolCall)> {
        let mut to_plan = Vec::new();
        for (index, hooks) in hooked {
            if let Some(call) = self.calls_mut().get_mut(index)
                && runner.settle_hooks(call, hooks)
            {
                to_plan.push((index, call.call.clone()));
            }
        }
        runner.cx.out.commit(Durability::Process);
        to_plan
    }

    /// Handles the result of a run. A result for a call that is not running is ignored.
    pub(crate) fn on_result(&mut self, index: usize, result: ToolResult, latency_ms: u64, runner: &mut CallRunner<'_>) {
        if let Some(call) = self.calls.get_mut(index).filter(|call| matches!(call.state, CallState::Running)) {
            runner.settle_run(call, index, result, latency_ms);
        }
    }

    /// Handles the result of a preview. If the preview is no longer needed, it is dropped.
    pub(crate) fn on_preview(
        &mut self,
        index: usize,
        ticket: u64,
        outcome: Result<Plan, ToolError>,
        runner: &mut CallRunner<'_>,
        at: InputTime,
    ) {
        let waits = |call: &Call| matches!(&call.state, CallState::Previewing(viewing) if viewing.ticket == ticket);
        let Some(call) = self.calls.get_mut(index).filter(|call| waits(call)) else { return };
        if runner.check && runner.settle_check_run(call, &outcome) {
            return;
        }
        if runner.cancelling {
            return runner.interrupt_layer(call, outcome);
        }
        let mut batch = FollowUpActions::default();
        match outcome {
            Ok(mut plan) => {
                plan.doubts.hook = call.hook_question();
                let is_reopened = call.layer.digest.is_some();
                runner.note_layer(call, &plan);
                runner.record_hooks_after(call, &plan);
                // Hooks that ran in an earlier process's layer do not run again.
                plan.hook_runs = plan.hook_runs.or_else(|| (is_reopened && call.has_hook_runs_after()).then(Vec::new));
                let verdict = plan.judge(&runner.cx.policy, at.now);
                call.proposal.clone_from(&plan.proposal);
                runner.apply_verdict(verdict, call, index, plan, &mut batch, at);
                if matches!(call.state, CallState::Running) {
                    let (tool_call_id, proposal) = (call.call.tool_call_id.clone(), call.proposal.clone());
                    runner.cx.out.record(Record::Previewed { tool_call_id, proposal });
                }
            }
            Err(error) if call.layer.digest.is_some() => {
                runner.discard_layer(call, Some(&error.message));
                runner.cx.out.commit(Durability::Process);
            }
            Err(error) => {
                runner.drop_preview(call);
                call.layer.discard_reason = call.layer.has_started.then(|| error.message.clone());
                call.preview.failure = Some(error.message);
                runner.plan_again(call, index);
            }
        }
        runner.commit_and_dispatch(&self.calls, batch);
    }

    /// Plans calls that were waiting for an earlier call. Returns the results once all calls are done.
    pub(crate) fn advance(&mut self, runner: &mut CallRunner<'_>) -> Option<Vec<Part>> {
        // A response may contain thousands of calls, and this function runs whenever one of them ends.
        let Some(open) = self.calls.iter().position(|call| !call.is_done()) else {
            return self.finished_results(&runner.cx.options);
        };
        for index in open..self.calls.len() {
            if !matches!(self.calls[index].state, CallState::Deferred) {
                continue;
            }
            let (before, from) = self.calls.split_at_mut(index);
            if !from[0].waits_for_earlier(&before[open..]) {
                from[0].forget_hooks();
                runner.plan_again(&mut from[0], index);
            }
        }
        None
    }

    /// Withdraws calls that are waiting for the user or for another call. `first` is the task, or `None` if it was
    /// already being stopped.
    pub(crate) fn stop(&mut self, first: Option<TaskId>, runner: &mut CallRunner<'_>, at: InputTime) {
        for call in &mut self.calls {
            match call.state {
                // The call is not withdrawn, so the model still receives the output produced so far.
                CallState::Previewing(_) if call.layer.has_started => {}
                CallState::Deferred | CallState::Asking(_) | CallState::Previewing(_) => {
                    runner.stop_preview(call);
                    runner.announce_scope(call);
                    runner.withdraw_question(call, at);
                    call.refuse(ErrorCode::Cancelled, "the task was stopped before this call ran");
                    runner.report(call, 0);
                }
                CallState::Unknown => {
                    call.outcome_unknown();
                    runner.report(call, 0);
                }
                CallState::Planning | CallState::Running | CallState::Done(_) => {}
            }
        }
        if let Some(task_id) = first.filter(|_| !self.is_done()) {
            runner.cx.out.record(Record::Stopping { task_id });
        }
        runner.cx.out.commit(Durability::Process);
    }

    /// Discards a running command's layer and asks whether to run the command in the background instead. Without an
    /// ID, this applies to the first command running in a layer, unless another call is running. Returns whether
    /// there was such a layer.
    pub(crate) fn leave_layer(&mut self, id: Option<&CallId>, runner: &mut CallRunner<'_>) -> bool {
        let is_in_front = |call: &Call| matches!(call.state, CallState::Running);
        if runner.cancelling || (id.is_none() && self.calls.iter().any(is_in_front)) {
            return false;
        }
        let is_meant = |call: &Call| {
            let is_in_layer =
                matches!(call.state, CallState::Previewing(_)) && call.layer.has_started && call.layer.digest.is_none();
            is_in_layer && id.is_none_or(|id| call.call.tool_call_id == *id)
        };
        let Some(index) = self.calls.iter().position(is_meant) else { return false };
        runner.ask_for_background(&mut self.calls[index], index);
        true
    }

    /// Stops all previews. Their effects are not applied, and their approvals are requested again.
    pub(crate) fn stop_previews(&self, runner: &mut CallRunner<'_>) {
        self.calls.iter().for_each(|call| runner.stop_preview(call));
    }
}

/// Decisions made by the user or the policy.
impl CallBatch {
    /// Carries out the user's decision about an approval. Returns whether a call was waiting for this approval.
    pub(crate) fn decide(
        &mut self,
        approval_id: &ApprovalId,
        decision: Decision,
        runner: &mut CallRunner<'_>,
        at: InputTime,
    ) -> bool {
        let Some(index) = self.calls.iter().position(|call| waits_for(call, approval_id)) else { return false };
        runner.settle_decision(&mut self.calls, index, decision, at);
        true
    }

    /// Denies the approval whose timer has the given ticket. Returns whether there was such an approval. Each
    /// approval has a timer of its own, which starts when the approval is shown.
    pub(crate) fn time_out(&mut self, ticket: u64, runner: &mut CallRunner<'_>, at: InputTime) -> bool {
        let Some(timeout) = runner.cx.options.approvals.timeout else { return false };
        let waits = |call: &&mut Call| matches!(&call.state, CallState::Asking(pending) if pending.ticket == Some(ticket));
        let Some(call) = self.calls.iter_mut().find(waits) else { return false };
        runner.time_out(call, timeout, at);
        true
    }

    /// Carries out the user's decision about a call whose outcome is unknown. Returns whether there was such a call.
    pub(crate) fn resolve(&mut self, id: &CallId, resolution: Resolution, runner: &mut CallRunner<'_>) -> bool {
        let waits = |call: &Call| call.call.tool_call_id == *id && matches!(call.state, CallState::Unknown);
        let Some(index) = self.calls.iter().position(waits) else { return false };
        let call = &mut self.calls[index];
        runner.cx.out.record(Record::Resolved { tool_call_id: id.clone(), resolution });
        match resolution {
            Resolution::Rerun => {
                call.preview.has_started = false;
                runner.plan_again(call, index);
            }
            Resolution::Skip => {
                call.refuse(ErrorCode::Cancelled, "aye exited while this call ran; the user chose not to run it again");
                runner.report(call, 0);
            }
            Resolution::TellModel => {
                call.outcome_unknown();
                runner.report(call, 0);
            }
        }
        runner.cx.out.commit(Durability::Process);
        true
    }

    /// Denies pending approvals that the new policy denies. Approvals that it no longer requires remain pending,
    /// because the user has already been asked.
    pub(crate) fn judge_again(&mut self, runner: &mut CallRunner<'_>, at: InputTime) {
        for call in &mut self.calls {
            let Some(denial) = current_denial(call, runner, at) else { continue };
            if let CallState::Asking(pending) = &call.state {
                let approval_id = pending.approval_id.clone();
                let reason = format!("{POLICY_DENIES}: {}", denial.reason);
                runner.resolve_approval(call, &approval_id, Decision::denied_by(Denier::Policy, reason), 0);
            }
            runner.stop_preview(call);
            runner.refuse_by_policy(call, &denial);
        }
    }

    /// Handles a request about a rule. A valid rule becomes an additional option of the approval. Returns `Err` with
    /// the index of an offer if recent commands must be read first to estimate the rule's effect.
    pub(crate) fn ask_rule(
        &mut self,
        approval_id: &ApprovalId,
        asked: RuleQuery,
        runner: &CallRunner<'_>,
        at: InputTime,
    ) -> Result<RuleInfo, usize> {
        let Some(pending) = self.pending(approval_id) else { return Ok(Self::already_decided()) };
        match asked {
            RuleQuery::Written { rule } => Ok(runner.parse_written_rule(pending, &rule, at)),
            RuleQuery::Reach { offer } if offer < pending.always.offers.len() => Err(offer),
            RuleQuery::Reach { .. } => Ok(refuse_rule("this rule was not offered")),
        }
    }

    /// Returns the recent commands that required approval but would no longer require it under this rule. Returns
    /// `None` if the approval has been decided in the meantime.
    pub(crate) fn reach(
        &mut self,
        approval_id: &ApprovalId,
        offer: usize,
        commands: Result<Vec<String>, String>,
        runner: &CallRunner<'_>,
        at: InputTime,
    ) -> Option<RuleInfo> {
        let pending = self.pending(approval_id)?;
        let offered = pending.always.offers.get(offer)?;
        let cwd = pending.plan.actions.iter().find_map(|action| match action {
            Action::Exec { cwd, .. } => Some(cwd),
            _ => None,
        });
        Some(match (commands, cwd) {
            (Err(message), _) => RuleInfo::Refused { message },
            (Ok(_), None) => RuleInfo::Reaches { offer, of: 0, lines: Vec::new() },
            (Ok(commands), Some(cwd)) => {
                let lines = runner.cx.policy.newly_allowed_lines(&offered.rules, &commands, cwd, at.now);
                RuleInfo::Reaches { offer, of: commands.len(), lines }
            }
        })
    }

    /// Returns the reply to a rule request whose approval has been decided in the meantime.
    pub(crate) fn already_decided() -> RuleInfo {
        refuse_rule("this approval was already decided")
    }

    fn pending(&mut self, approval_id: &ApprovalId) -> Option<&mut Pending> {
        self.calls.iter_mut().find_map(|call| match &mut call.state {
            CallState::Asking(pending) if pending.approval_id == *approval_id => Some(&mut **pending),
            _ => None,
        })
    }
}

fn refuse_rule(message: &str) -> RuleInfo {
    RuleInfo::Refused { message: message.to_owned() }
}

fn waits_for(call: &Call, approval_id: &ApprovalId) -> bool {
    matches!(&call.state, CallState::Asking(pending) if pending.approval_id == *approval_id)
}

/// Returns the reason why the policy now denies a call that is waiting for the user or running in a preview, if it
/// does.
fn current_denial(call: &Call, runner: &CallRunner<'_>, at: InputTime) -> Option<Denial> {
    match &call.state {
        CallState::Asking(pending) => runner.current_denial(&pending.plan, at),
        CallState::Previewing(viewing) => denial_for(&runner.cx.policy, &viewing.tool_name, &viewing.actions, at.now),
        CallState::Deferred | CallState::Planning | CallState::Running | CallState::Unknown | CallState::Done(_) => None,
    }
}

fn sort_by_index(plans: Vec<PlanResult>, count: usize) -> Vec<Option<PlanResult>> {
    let mut slots: Vec<_> = (0..count).map(|_| None).collect();
    for planned in plans {
        if let Some(slot) = slots.get_mut(planned.index) {
            *slot = Some(planned);
        }
    }
    slots
}

/// Returns the result of a call whose arguments cannot be parsed.
fn malformed_result(call: &ToolCall, text: &str, cut: bool) -> ToolResult {
    let name = &call.tool_name;
    let start: String = text.chars().take(200).collect();
    let message = match call.arguments.fault() {
        Some(ArgumentFault::OverLimit(limit)) => {
            format!(
                "the arguments of `{name}` exceed a limit ({limit}), so nothing was run; use several smaller calls; they begin: {start}"
            )
        }
        Some(ArgumentFault::Unfinished) if !cut => {
            format!("the call to `{name}` is incomplete, so nothing was run; call it again; its arguments begin: {start}")
        }
        _ => {
            let why = if cut { "cut off by the output limit" } else { "not a JSON object" };
            format!("the arguments of `{name}` are {why}, so nothing was run; they begin: {start}")
        }
    };
    ToolResult::from_error(call.tool_call_id.clone(), call.tool_name.clone(), ToolError::new(ErrorCode::InvalidRequest, message))
}
