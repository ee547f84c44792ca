//! Call runner, which carries out the calls of a step, from planning to results.
//!
//! The runner borrows the state of the calls while it handles a single input.

use super::super::limits::SAME_POLLS;
use super::amend::AppliedAmendments;
use super::call::{Call, CallState};
use super::grants::Grants;
use super::io::{Effect, InputTime, PlanResult};
use super::loop_guard::{LoopGuard, RepeatCount, ordinal};
use super::options::Approver;
use super::policy::denial_for;
use super::preview::{ActivePreview, PreviewRequest, is_quiet};
use super::sandbox_escalation::BlockedRun;
use super::side_effects::{self, SideEffects};
use super::turn_context::TurnContext;
use super::unasked_runs::UnaskedRuns;
use crate::policy::permit::Denial;
use crate::policy::{Permit, Preview, PreviewPermit, Question, Verdict};
use crate::ports::{CallOrder, Durability, EditedCommand, LayerRun, Plan, Record, writes};
use crate::protocol::{
    Action, Amendment, Approval, CallHooks, ErrorCode, EventKind, HookEvent, Mode, PlannedStep, PreviewOffer, StepId, ToolError,
    ToolResult,
};

/// Rule name for denials in plan mode, and the alternative suggested to the model.
const PLAN_MODE: &str = "plan mode";
const PLAN_FIRST: &str = "; propose a plan with ProposePlan, and make changes once the user approves it";

/// Reason to ask about a command that already started in a copy, if the reason why the copy was discarded is unknown.
const COPY_DISCARDED: &str = "the command started in a copy of the workspace, and the copy was discarded";

/// Actions to perform for a batch of plans once their records are committed.
#[derive(Default)]
pub(super) struct FollowUpActions {
    pub asks: Vec<Approval>,
    pub previews: Vec<(u64, PreviewRequest)>,
    pub runs: Vec<(usize, Plan, Permit)>,
}

/// Notices about layers that have already been shown. Each is shown only once.
#[derive(Debug, Default)]
pub(super) struct LayerNotices {
    /// Whether the user has been told that commands run in a layer first.
    pub explained_layers: bool,
    /// Whether the user has been told why commands do not run in a layer first.
    pub explained_no_layers: bool,
    /// Whether the user has been told why a goal's check does not run in a layer.
    pub explained_check: bool,
    /// Commands that ran without approval.
    pub unasked: UnaskedRuns,
}

/// Parts of the session that are needed to carry out a step's calls.
pub(super) struct CallRunner<'a> {
    pub cx: &'a mut TurnContext,
    pub grants: &'a mut Grants,
    /// Side effects of the calls that are started.
    pub started: &'a mut Vec<SideEffects>,
    pub guard: &'a mut LoopGuard,
    pub step_id: Option<StepId>,
    /// Whether the running command was typed by the user.
    pub typed: bool,
    /// Whether the running command is the goal's check.
    pub check: bool,
    /// Whether the task is being stopped.
    pub cancelling: bool,
    /// Whether the session is ending.
    pub quitting: bool,
    pub layers: &'a mut LayerNotices,
}

/// Planned calls.
impl CallRunner<'_> {
    /// Decides how to proceed with a planned call.
    pub(super) fn settle_plan(
        &mut self,
        before: &[Call],
        call: &mut Call,
        index: usize,
        planned: Option<PlanResult>,
        batch: &mut FollowUpActions,
        at: InputTime,
    ) {
        let cancelling = self.cancelling;
        let plan = planned.map(|planned| {
            if !planned.scope.is_empty() {
                call.scope = planned.scope;
            }
            planned.plan
        });
        match plan {
            None => {
                if call.is_done() && call.announced.is_none() {
                    self.announce(call, &[]);
                    self.report(call, 0);
                }
            }
            Some(_) if !matches!(call.state, CallState::Planning) => {}
            Some(Err(error)) if self.on_amend_error(call, index, &error) => {}
            Some(Err(error)) => {
                call.order = CallOrder::for_failed(&call.scope);
                if !cancelling && call.waits_for_earlier(before) {
                    return call.defer();
                }
                self.announce_scope(call);
                call.refuse_with(error);
                self.report(call, 0);
            }
            Some(Ok(mut plan)) => {
                plan.doubts.hook = call.hook_question();
                let verdict = plan.judge(&self.cx.policy, at.now);
                call.order = CallOrder::for_plan(&plan, &call.scope).with_turn(self.turn_kind(&verdict));
                let waits = !cancelling && call.waits_for_earlier(before);
                if waits && !plan.changes && call.scope.iter().any(writes) {
                    // The call finds nothing to change yet. It is recorded once its effect is known.
                    return call.defer();
                }
                self.narrow_offer(call, &mut plan);
                call.summary.clone_from(&plan.summary);
                call.touches = plan.touches();
                call.changes = plan.changes;
                call.polls = !plan.changes && plan.actions.is_empty();
                self.record_hooks_after(call, &plan);
                // The proposal of a denied call is not recorded, because it may contain protected content.
                call.proposal = plan.proposal.clone().filter(|_| !matches!(verdict, Verdict::Deny(_)));
                self.announce(call, &plan.actions);
                if cancelling {
                    call.refuse(ErrorCode::Cancelled, "the task was stopped before this call ran");
                    self.report(call, 0);
                } else if waits {
                    call.defer();
                } else {
                    self.apply_verdict(verdict, call, index, plan, batch, at);
                }
            }
        }
    }

    /// Announces a call that could not be fully planned, using only its arguments.
    pub(super) fn announce_scope(&mut self, call: &mut Call) {
        let scope = std::mem::take(&mut call.scope);
        self.announce(call, &scope);
        call.scope = scope;
    }

    pub(super) fn announce(&mut self, call: &mut Call, actions: &[Action]) {
        if call.announced.is_some() {
            return;
        }
        call.announced = Some(EditedCommand { summary: call.summary.clone(), actions: actions.to_vec() });
        call.ran = side_effects::side_effects_of(actions, &call.summary, call.changes);
        if let Some(step_id) = self.step_id.clone() {
            self.cx.out.record(Record::Intent {
                step_id,
                call: call.call.clone(),
                summary: call.summary.clone(),
                actions: actions.to_vec(),
                proposal: call.proposal.clone(),
                changes: call.changes,
            });
        }
        self.cx.out.event(EventKind::ToolRequested {
            tool_call_id: call.call.tool_call_id.clone(),
            tool_name: call.call.tool_name.clone(),
            capability: actions.first().map(|action| action.capability().to_owned()),
            arguments: call.call.arguments.clone(),
            summary: call.summary.clone(),
        });
    }

    pub(super) fn apply_verdict(
        &mut self,
        verdict: Verdict,
        call: &mut Call,
        index: usize,
        plan: Plan,
        batch: &mut FollowUpActions,
        at: InputTime,
    ) {
        if plan.task_plan.is_some() {
            return self.ask_about_plan(verdict, call, index, plan, batch, at);
        }
        if call.amended.by.contains(&Amendment::Unsandboxed) {
            return self.ask_unsandboxed(call, index, plan, batch, at);
        }
        if call.preview.conflict.is_some() {
            return self.ask_to_run_again(verdict, call, index, plan, batch, at);
        }
        if Self::is_answered(call, &plan) {
            return self.on_run_approved(verdict, call, index, plan, batch);
        }
        if let Some(permit) = self.layer_permit(&verdict, call, &plan) {
            let request = PreviewRequest { index, plan, permit, approval_id: None, unasked: true };
            return self.begin_preview(call, request, batch);
        }
        if matches!(plan.layer, LayerRun::Ended(_)) {
            return self.settle_layer(verdict, call, index, plan, batch, at);
        }
        if let Some(permit) = self.required_preview(&verdict, &plan) {
            let request = PreviewRequest { index, plan, permit, approval_id: None, unasked: false };
            return self.begin_preview(call, request, batch);
        }
        match verdict {
            Verdict::Deny(denial) => self.refuse_by_policy(call, &denial),
            _ if call.held.is_some() => self.ask_to_open(call, index, plan, batch, at),
            Verdict::Ask(question) if self.is_typed_by_user(&plan, &question) => {
                self.permit(call, index, plan, question.approve(), batch);
            }
            Verdict::Ask(question) => {
                let question = self.with_layer_reason(call, &plan, self.with_repetition_reason(call, question));
                self.ask(call, index, plan, question, batch, at);
            }
            Verdict::Allow(permit) => match self.approval_reason(call, &permit, &plan) {
                None => self.permit(call, index, plan, permit, batch),
                Some(reason) => self.ask_anyway(call, index, plan, reason, batch, at),
            },
        }
    }

    /// Withdraws the offer of a preview if the policy or an earlier attempt rules it out.
    pub(super) fn narrow_offer(&self, call: &Call, plan: &mut Plan) {
        if plan.preview != PreviewOffer::Possible {
            return;
        }
        if let Some(reason) = call.preview.failure.clone() {
            plan.preview = PreviewOffer::Impossible { reason };
        } else if self.cx.policy.preview() == Preview::Never {
            plan.preview = PreviewOffer::Impossible { reason: "the policy offers no preview".to_owned() };
        }
    }

    /// Returns the permit for a preview that the policy requires before approval, if any.
    pub(super) fn required_preview(&self, verdict: &Verdict, plan: &Plan) -> Option<PreviewPermit> {
        let wanted =
            self.cx.policy.preview() == Preview::Always && plan.preview == PreviewOffer::Possible && plan.effects.is_none();
        match verdict {
            // A call that cannot write has no effects to preview.
            Verdict::Allow(permit) if wanted && !permit.reads_only() => Some(permit.preview()),
            // Without an approver, nobody can review the effects.
            Verdict::Ask(question) if wanted && self.cx.options.approvals.approver != Approver::Nobody => {
                Some(question.preview())
            }
            Verdict::Allow(_) | Verdict::Ask(_) | Verdict::Deny(_) => None,
        }
    }

    /// Returns the reason why a call requires approval even though a rule allows it, if there is one.
    fn approval_reason(&self, call: &Call, permit: &Permit, plan: &Plan) -> Option<String> {
        self.repetition_warning(call)
            .or_else(|| self.must_ask(call, permit, plan))
            .or_else(|| Self::edit_warning(call))
            .or_else(|| self.needs_copy(permit, plan))
    }

    fn must_ask(&self, call: &Call, permit: &Permit, plan: &Plan) -> Option<String> {
        // A command that the mode or the approved plan allows in a copy must not run in the workspace because its copy
        // failed or was discarded, even if nobody can approve it. Amendments are made by the user.
        let lost_copy = permit.layer().is_some() && call.layer.has_started && call.amended.by.is_empty();
        if self.cx.options.approvals.approver == Approver::Nobody && !lost_copy && !permit.is_by_plan() {
            return None;
        }
        if let Some(reason) = &call.preview.failure {
            return Some(format!("no preview: {reason}"));
        }
        if let Some(reason) = call.layer.discard_reason.as_ref().filter(|_| call.layer.has_started) {
            return Some(reason.clone());
        }
        let Some(effects) = &plan.effects else { return lost_copy.then(|| COPY_DISCARDED.to_owned()) };
        (call.asked || !is_quiet(effects)).then(|| "the command's changes are applied only with your approval".to_owned())
    }

    /// Returns the reason why a command that the approved plan covers requires approval because it cannot run in a copy.
    fn needs_copy(&self, permit: &Permit, plan: &Plan) -> Option<String> {
        if !permit.is_by_plan() || self.typed || self.check || plan.effects.is_some() {
            return None;
        }
        let why = match &plan.layer {
            LayerRun::Impossible { reason } => format!(", because {reason}"),
            LayerRun::None | LayerRun::Possible | LayerRun::Ended(_) => String::new(),
        };
        Some(format!("the plan covers this command only in a copy of the workspace, and it cannot run in one{why}"))
    }

    /// Returns the reason why an edited call requires approval even though a rule allows it, if it does.
    pub(super) fn edit_warning(call: &Call) -> Option<String> {
        let asks = call.amended.by.last().is_some_and(Amendment::needs_approval);
        asks.then(|| "you edited the call".to_owned())
    }

    /// Returns the reason why repetition makes an allowed call require approval, if it does.
    pub(super) fn repetition_warning(&self, call: &Call) -> Option<String> {
        let times = self.guard.excessive_repeats(call.row)?;
        if call.polls && times < SAME_POLLS {
            return None;
        }
        Some(format!("the same call for the {} time in a row, with the same arguments", ordinal(times)))
    }

    /// Adds the repetition to the reason given in an approval request.
    pub(super) fn with_repetition_reason(&self, call: &Call, mut question: Question) -> Question {
        if let Some(why) = self.repetition_warning(call) {
            question.reason = format!("{why}; {}", question.reason);
        }
        question
    }

    /// Plans a call again with the access that was requested for it.
    pub(super) fn plan_again(&mut self, call: &mut Call, index: usize) {
        call.state = CallState::Planning;
        let effect = match &call.held {
            None if call.amended.by.is_empty() => self.plan_effect(call, index),
            held => {
                let opens = held.as_ref().map_or_else(Vec::new, |held| held.requested_access().to_vec());
                Effect::PlanOpened { index, call: call.call.clone(), opens, amendments: call.amended.by.clone() }
            }
        };
        self.cx.out.effect(effect);
    }

    /// Handles an amendment that could not be planned. Returns whether approval of the original proposal will be
    /// requested again.
    pub(super) fn on_amend_error(&mut self, call: &mut Call, index: usize, error: &ToolError) -> bool {
        if call.amended.by.is_empty() {
            return false;
        }
        call.amended.by.clear();
        call.amended.yes = None;
        self.cx.out.notice(format!("your edit was not applied: {}; aye asks again about the original proposal", error.message));
        self.plan_again(call, index);
        true
    }
}

/// Hooks for calls.
impl CallRunner<'_> {
    /// Returns the effect that plans a call or, if its pre-call hooks have not run yet, the effect that runs them
    /// first.
    pub(super) fn plan_effect(&self, call: &Call, index: usize) -> Effect {
        let planned = vec![(index, call.call.clone())];
        if self.hooks_run_before(call) { Effect::HookCalls(planned) } else { Effect::Plan(planned) }
    }

    /// Returns whether hooks have to run before the call is planned. Hooks do not apply to user commands.
    pub(super) fn hooks_run_before(&self, call: &Call) -> bool {
        call.hooked.is_none() && !self.typed && self.cx.options.hooks.contains(HookEvent::PreToolUse)
    }

    /// Records how the post-call hooks changed the call's proposal.
    pub(super) fn record_hooks_after(&mut self, call: &mut Call, plan: &Plan) {
        let Some(runs) = plan.hook_runs.clone().filter(|runs| !runs.is_empty() && !self.cancelling) else { return };
        let hooks = call.add_hook_runs(runs);
        self.cx.out.record(Record::Hooked { tool_call_id: call.call.tool_call_id.clone(), hooks });
    }

    /// Discards the runs of the hooks that followed a command in a layer, and records this for a process that later
    /// resumes the session.
    pub(super) fn forget_hooks_after(&mut self, call: &mut Call) {
        if let Some(hooks) = call.forget_hook_runs_after() {
            self.cx.out.record(Record::Hooked { tool_call_id: call.call.tool_call_id.clone(), hooks });
        }
    }

    /// Applies the outcome of a call's pre-call hooks. Returns whether the call can be planned now.
    pub(super) fn settle_hooks(&mut self, call: &mut Call, hooks: CallHooks) -> bool {
        if !matches!(call.state, CallState::Planning) {
            return false;
        }
        // If hooks run again, their new outcome replaces the earlier one.
        if !self.cancelling && (!hooks.runs.is_empty() || call.announced.is_some()) {
            let tool_call_id = call.call.tool_call_id.clone();
            self.cx.out.record(Record::Hooked { tool_call_id, hooks: hooks.clone() });
        }
        call.use_hooks(hooks);
        let Some((hook, reason)) = call.hooked.as_ref().filter(|_| !self.cancelling).and_then(|hooked| hooked.hooks.denial())
        else {
            return true;
        };
        let denial = Denial { rule: format!("hook {hook}"), reason: reason.to_owned(), parts: Vec::new() };
        self.announce(call, &[]);
        self.refuse_by_policy(call, &denial);
        false
    }
}

/// Runs and previews, and their results.
impl CallRunner<'_> {
    pub(super) fn permit(&mut self, call: &mut Call, index: usize, plan: Plan, permit: Permit, batch: &mut FollowUpActions) {
        if self.check
            && let Some(permit) = self.check_permit(&plan, &permit)
        {
            return self.begin_preview(call, PreviewRequest { index, plan, permit, approval_id: None, unasked: false }, batch);
        }
        if call.runs_again_in_layer(&plan) {
            let permit = permit.with_access();
            return self.begin_preview(call, PreviewRequest { index, plan, permit, approval_id: None, unasked: false }, batch);
        }
        let edited = call.edited_command(&plan);
        if let Some(edited) = &edited {
            call.set_edited_command(edited);
        }
        call.mark_running();
        call.note = call.note.take().or_else(|| call.rewriting().filter(|_| !call.asked));
        self.started.push(call.ran.clone());
        self.allow_repetition(call.row);
        let rule = permit.rule().to_owned();
        if !call.asked && !self.typed && plan.actions.iter().any(Action::is_command) {
            self.layers.unasked.start(
                &call.call.tool_call_id,
                &call.summary,
                &rule,
                plan.effects.as_deref().map(|effects| (effects, call.layer.hosts.as_slice())),
            );
        }
        let (tool_call_id, places) = (call.call.tool_call_id.clone(), plan.places.clone());
        let told = plan.amends.told.clone().filter(|_| edited.is_some() || !call.is_line_again());
        call.amended.told.clone_from(&told);
        self.cx.out.record(Record::Started { tool_call_id, rule, places, told, edited });
        batch.runs.push((index, plan, permit));
    }

    pub(super) fn allow_repetition(&mut self, row: RepeatCount) {
        self.guard.allow(row);
    }

    pub(super) fn begin_preview(&mut self, call: &mut Call, looked: PreviewRequest, batch: &mut FollowUpActions) {
        let ticket = self.cx.numbers.next_ticket();
        call.preview.has_started = true;
        call.preview.conflict = None;
        call.layer.has_started |= looked.unasked;
        call.layer.hosts = looked.permit.hosts().to_vec();
        if let Some(held) = &mut call.held {
            held.mark_rerun();
        }
        let tool_call_id = call.call.tool_call_id.clone();
        self.cx.out.record(Record::PreviewStarted { tool_call_id, unasked: looked.unasked, hosts: call.layer.hosts.clone() });
        let (tool_name, actions) = (looked.plan.tool_name.clone(), looked.plan.actions.clone());
        call.state = CallState::Previewing(Box::new(ActivePreview { ticket, tool_name, actions }));
        batch.previews.push((ticket, looked));
    }

    /// Stops a preview that is no longer needed.
    pub(super) fn stop_preview(&mut self, call: &Call) {
        if let CallState::Previewing(viewing) = &call.state {
            self.cx.out.effect(Effect::StopPreview { ticket: viewing.ticket });
        }
    }

    /// Drops a call's preview, after which its effects can no longer be applied.
    pub(super) fn drop_preview(&mut self, call: &mut Call) {
        self.forget_hooks_after(call);
        call.preview.has_started = false;
        call.proposal = None;
        self.cx.out.record(Record::PreviewDropped { tool_call_id: call.call.tool_call_id.clone() });
    }

    /// Commits the batch's intents and then performs its actions.
    pub(super) fn commit_and_dispatch(&mut self, calls: &[Call], batch: FollowUpActions) {
        // A question from the model may stay open for a long time, so it must survive a restart of the process.
        let waits_for_user = batch.runs.iter().any(|(_, plan, _)| plan.waits_for_user);
        if batch.runs.iter().any(|(_, plan, _)| plan.changes) {
            self.cx.out.commit(Durability::Power);
        } else if waits_for_user || !(batch.asks.is_empty() && batch.previews.is_empty()) {
            self.cx.out.commit(Durability::Process);
        }
        for approval in batch.asks {
            let wait = self.end_of_wait(calls, &approval.approval_id);
            self.cx.out.event(EventKind::ApprovalRequested(approval));
            if let Some(wait) = wait {
                self.cx.out.effect(wait);
            }
        }
        for (ticket, PreviewRequest { index, mut plan, permit, approval_id, unasked: _ }) in batch.previews {
            // Hooks apply only to calls made by the model.
            plan.hook_runs = plan.hook_runs.or_else(|| self.check.then(Vec::new));
            let tool_call_id = calls[index].call.tool_call_id.clone();
            self.cx.out.event(EventKind::PreviewStarted { approval_id, tool_call_id });
            self.cx.out.effect(Effect::Preview { index, plan, permit, ticket });
        }
        for (index, plan, permit) in batch.runs {
            let tool_call_id = calls[index].call.tool_call_id.clone();
            let call = &calls[index];
            let summary = call.edited_command(&plan).map(|edited| edited.summary);
            let (effects, note) = (call.unasked_effects(&plan).map(Box::new), call.note.clone());
            self.cx.out.event(EventKind::ToolStarted { tool_call_id, rule: permit.rule().to_owned(), summary, effects, note });
            self.cx.out.effect(Effect::Run { index, plan, permit, max_bytes: self.cx.options.result_bytes(calls.len()) });
        }
    }

    /// Handles the result of a running call.
    pub(super) fn settle_run(&mut self, call: &mut Call, index: usize, result: ToolResult, latency_ms: u64) {
        if call.held.is_none() && self.can_escalate(call, &result) {
            return self.defer_result(call, index, result, latency_ms);
        }
        if self.conflicts(call, index, &result) || self.replan_if_stale(call, index, &result) {
            return;
        }
        if result.error.as_ref().is_some_and(|error| error.code == ErrorCode::Conflict) {
            // Nothing was applied, including the changes made by hooks.
            self.forget_hooks_after(call);
        }
        call.set_result(result);
        self.report(call, latency_ms);
        if call.changes {
            self.cx.out.commit(Durability::Process);
        }
    }

    /// Returns whether the user is asked to allow the blocked access before this result is sent to the model.
    pub(super) fn can_escalate(&self, call: &Call, result: &ToolResult) -> bool {
        let stopping = self.quitting || self.cancelling;
        let person = self.cx.options.approvals.approver == Approver::User && self.cx.policy.mode() != Mode::Plan;
        let offline = call.amended.by.contains(&Amendment::Offline);
        person && !stopping && !offline && !result.denied.is_empty()
    }

    /// Records a result and withholds it from the model until the user has decided.
    pub(super) fn defer_result(&mut self, call: &mut Call, index: usize, result: ToolResult, latency_ms: u64) {
        let mut result = ToolResult { tool_call_id: call.call.tool_call_id.clone(), ..result };
        // If the command runs again, it also needs the access that the last run had.
        let had = call.held.as_ref().map_or_else(|| call.layer.hosts.clone(), |held| held.requested_access().to_vec());
        result.denied.retain(|denied| !had.contains(denied));
        result.denied.splice(0..0, had);
        self.cx.out.record(Record::KeptFrom { result: result.clone(), latency_ms });
        self.cx.out.commit(Durability::Process);
        call.held = Some(BlockedRun::new(result, latency_ms));
        // The preview's effects have been applied.
        call.preview.has_started = false;
        call.preview.failure = None;
        self.plan_again(call, index);
    }

    /// Plans a change again if its files no longer match those that the user reviewed. This happens at most once.
    /// Nothing was written, and the new change requires approval. Returns whether the change is being planned again.
    pub(super) fn replan_if_stale(&mut self, call: &mut Call, index: usize, result: &ToolResult) -> bool {
        let conflict = result.error.as_ref().is_some_and(|error| error.code == ErrorCode::Conflict);
        let stopping = self.quitting || self.cancelling;
        if !conflict || stopping || !call.asked || call.amended.renewed || !call.proposes_files() {
            return false;
        }
        self.replan(call, index);
        true
    }

    /// Plans a call again based on the current files. It then requires a new approval.
    pub(super) fn replan(&mut self, call: &mut Call, index: usize) {
        call.amended = AppliedAmendments { renewed: true, ..AppliedAmendments::default() };
        let tool_call_id = call.call.tool_call_id.clone();
        self.cx.out.record(Record::Renewed { tool_call_id });
        self.cx.out.commit(Durability::Process);
        self.plan_again(call, index);
    }

    pub(super) fn refuse_by_policy(&mut self, call: &mut Call, denial: &Denial) {
        self.cx.out.record(Record::Refused {
            tool_call_id: call.call.tool_call_id.clone(),
            rule: denial.rule.clone(),
            reason: denial.reason.clone(),
        });
        let next = if self.cx.policy.mode() == Mode::Plan && denial.rule == PLAN_MODE { PLAN_FIRST } else { "" };
        call.refuse_with(denial.to_error(next));
        self.report(call, 0);
    }

    /// Returns the reason why the current policy would deny a call that was allowed earlier, if it would.
    pub(super) fn current_denial(&self, plan: &Plan, at: InputTime) -> Option<Denial> {
        denial_for(&self.cx.policy, &plan.tool_name, &plan.actions, at.now)
    }

    pub(super) fn mark_interrupted(&mut self, call: &mut Call) {
        self.announce(call, &[]);
        if self.cx.options.approvals.approver == Approver::User {
            call.state = CallState::Unknown;
            self.cx.out.event(EventKind::ToolInterrupted {
                tool_call_id: call.call.tool_call_id.clone(),
                tool_name: call.call.tool_name.clone(),
                summary: call.summary.clone(),
                known: match &call.interrupted.partly {
                    Some(words) => format!("interrupted: partly done; {words}"),
                    None => {
                        format!("interrupted: outcome unknown; it was running when aye exited{}", call.leftovers())
                    }
                },
                last_output: call.interrupted.tail.as_ref().map(|tail| tail.text.clone()).filter(|text| !text.is_empty()),
                ran_ms: call.interrupted.tail.as_ref().map(|tail| tail.ran_ms),
            });
        } else {
            call.outcome_unknown();
            self.report(call, 0);
        }
    }

    /// Records and reports a call's result.
    pub(super) fn report(&mut self, call: &Call, latency_ms: u64) {
        let CallState::Done(result) = &call.state else { return };
        let latency_ms = call.held.as_ref().and_then(BlockedRun::latency_ms).unwrap_or(latency_ms);
        self.layers.unasked.end(result);
        self.cx.out.record(Record::Finished { result: result.clone(), latency_ms });
        let applied = result.error.is_none() && call.changes;
        self.cx.out.event(EventKind::ToolCompleted {
            tool_call_id: result.tool_call_id.clone(),
            tool_name: result.tool_name.clone(),
            status: result.status,
            latency_ms,
            output_text: result.output_text.clone(),
            error: result.error.clone(),
            proposal: result.changed.as_deref().cloned().or_else(|| call.proposal.clone().filter(|_| applied)),
            redactions: result.redactions.clone(),
            artifact_uris: result.artifact_uris.clone(),
            ended: result.ended.clone(),
        });
        if let Some(steps) = PlannedStep::list_in(result) {
            self.cx.set_planned_steps(steps);
        }
    }
}
