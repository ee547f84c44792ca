//! Commands that are approved by their effects. Each runs in a layer first, and the resulting changes require
//! approval.

use super::call::{Call, CallState};
use super::call_runner::{CallRunner, FollowUpActions};
use super::effects_approval::{
    EffectsDecision, blocked_reason, build_output_clause, decide_effects, is_by_mode, killed_error, layer_permit,
};
use super::io::{Effect, InputTime};
use super::options::Approver;
use super::preview::ActivePreview;
use super::sandbox_escalation::format_access;
use crate::policy::{Approve, Permit, PreviewPermit, Question, Verdict};
use crate::ports::{Durability, LayerEnd, LayerRun, Plan, Record, TurnKind};
use crate::protocol::{Amendment, CommandEnd, Effects, ErrorCode, PreviewOffer, ToolError, ToolResult};

const CHECK_STOPPED: &str = "the check was stopped; its changes were discarded";
const INTERRUPTED: &str = "interrupted by the user; the command ran in a copy of the workspace, and its changes there were \
                           discarded; the output so far follows";

impl CallRunner<'_> {
    /// Returns the permit to run a command in a layer before it is approved, if this is possible.
    pub(super) fn layer_permit(&self, verdict: &Verdict, call: &Call, plan: &Plan) -> Option<PreviewPermit> {
        let is_first = !call.layer.has_started && call.held.is_none() && call.amended.by.is_empty() && plan.effects.is_none();
        let is_asked =
            self.cx.options.approvals.approver != Approver::Everyone && !self.typed && self.repetition_warning(call).is_none();
        layer_permit(verdict, plan, &self.cx.policy).filter(|_| is_first && is_asked)
    }

    /// Records the effects that a command had in its layer before they are used.
    pub(super) fn note_layer(&mut self, call: &mut Call, plan: &Plan) {
        let is_recorded = call.layer.digest.take().is_some();
        let (LayerRun::Ended(end), Some(effects), false) = (&plan.layer, &plan.effects, is_recorded) else { return };
        self.cx.out.record(Record::LayerEnded {
            tool_call_id: call.call.tool_call_id.clone(),
            ended: effects.ended.clone(),
            output: effects.output.clone(),
            paths: effects.paths(),
            digest: end.digest.clone(),
        });
    }

    /// Decides how to handle the effects: apply them, request approval for them, or discard them and request approval
    /// for the command instead.
    pub(super) fn settle_layer(
        &mut self,
        verdict: Verdict,
        call: &mut Call,
        index: usize,
        plan: Plan,
        batch: &mut FollowUpActions,
        at: InputTime,
    ) {
        let (LayerRun::Ended(end), Some(effects)) = (&plan.layer, plan.effects.as_deref()) else {
            return self.ask_before(call, index);
        };
        if let Verdict::Deny(denial) = &verdict {
            return self.refuse_by_policy(call, denial);
        }
        if end.stopped {
            return self.end_killed(call, end, effects);
        }
        // A run that was already given access and is blocked again is complete, unless further access can be allowed.
        let is_blocked = call.held.as_ref().map_or(!effects.denied.is_empty(), |held| held.is_extended_by(&effects.denied));
        // If nobody can allow further access, a command that the mode allows is complete.
        if is_blocked && (!is_by_mode(&verdict) || self.can_escalate(call, &blocked_result(call, effects))) {
            call.layer.discard_reason = Some(blocked_reason(&call.layer.hosts, effects));
            let blocked = blocked_result(call, effects);
            return if self.can_escalate(call, &blocked) {
                self.defer_result(call, index, blocked, 0);
            } else {
                self.ask_before(call, index);
            };
        }
        match decide_effects(verdict, &self.cx.policy, effects, end, at.now) {
            EffectsDecision::Apply(permit) => self.keep_effects(call, index, plan, permit, batch),
            EffectsDecision::Allowed(permit) => self.permit(call, index, plan, permit, batch),
            EffectsDecision::Ask(question) => self.ask(call, index, plan, question, batch, at),
            EffectsDecision::AskAnyway(reason) => self.ask_anyway(call, index, plan, reason, batch, at),
            EffectsDecision::Deny(denial) => self.refuse_by_policy(call, &denial),
        }
    }

    fn keep_effects(&mut self, call: &mut Call, index: usize, plan: Plan, permit: Permit, batch: &mut FollowUpActions) {
        if let Some(effects) = plan.effects.as_deref() {
            let applied =
                if permit.is_by_plan() { "the approved plan covers its changes" } else { "its changes are applied in mode auto" };
            self.report_layers(call, effects, applied);
        }
        self.permit(call, index, plan, permit, batch);
    }

    /// If a command's approved effects could not be applied, asks whether to run the command again. Nothing was
    /// written. Returns whether the user is asked.
    pub(super) fn conflicts(&mut self, call: &mut Call, index: usize, result: &ToolResult) -> bool {
        let error = result.error.as_ref().filter(|error| error.code == ErrorCode::Conflict);
        let stopping = self.quitting || self.cancelling;
        let (Some(error), true, true, false) = (error, call.asked, call.preview.has_started, stopping) else { return false };
        self.forget_hooks_after(call);
        call.preview.has_started = false;
        call.proposal = None;
        call.preview.conflict = Some(error.message.clone());
        let tool_call_id = call.call.tool_call_id.clone();
        self.cx.out.record(Record::Conflicted { tool_call_id, reason: error.message.clone() });
        self.cx.out.commit(Durability::Process);
        self.plan_again(call, index);
        true
    }

    /// Asks for approval to run a command in a layer again. Its effects then require a separate decision.
    pub(super) fn ask_to_run_again(
        &mut self,
        verdict: Verdict,
        call: &mut Call,
        index: usize,
        mut plan: Plan,
        batch: &mut FollowUpActions,
        at: InputTime,
    ) {
        let conflict = call.preview.conflict.clone().unwrap_or_default();
        let asked = match verdict {
            Verdict::Ask(question) => Ok(question),
            Verdict::Deny(denial) => Err(denial),
            Verdict::Allow(_) => self.cx.policy.ask_call(&plan.tool_name, &plan.actions, at.now, conflict.clone()),
        };
        let mut question = match asked {
            Ok(question) => question,
            Err(denial) => return self.refuse_by_policy(call, &denial),
        };
        if plan.preview != PreviewOffer::Possible || self.cx.options.approvals.approver == Approver::Everyone {
            call.refuse(ErrorCode::Conflict, conflict);
            return self.report(call, 0);
        }
        question.reason.clone_from(&conflict);
        plan.effects = Some(Box::new(Effects { conflict: Some(conflict), ..Effects::default() }));
        self.ask(call, index, plan, question, batch, at);
    }

    /// Discards the layer and asks for approval before the command runs without one.
    pub(super) fn ask_before(&mut self, call: &mut Call, index: usize) {
        call.held = None;
        self.drop_preview(call);
        self.plan_again(call, index);
    }

    /// Discards the layer of a command that was killed. The model receives the output produced so far.
    fn end_killed(&mut self, call: &mut Call, end: &LayerEnd, effects: &Effects) {
        self.drop_preview(call);
        let error = killed_error(end, effects);
        let result = ToolResult::from_error(call.call.tool_call_id.clone(), call.call.tool_name.clone(), error);
        call.set_result(ToolResult { output_text: effects.output.clone(), ended: end.ended.clone(), ..result });
        self.report(call, 0);
    }

    /// Discards a running command's layer and plans the command to run in the background.
    pub(super) fn ask_for_background(&mut self, call: &mut Call, index: usize) {
        self.stop_preview(call);
        call.held = None;
        self.drop_preview(call);
        call.layer.discard_reason = Some(
            "the run in a copy was stopped and discarded, so that the command could start again in the background".to_owned(),
        );
        call.amended.by = vec![Amendment::Background];
        self.plan_again(call, index);
    }

    /// Discards the layer of a command that the user interrupted. The model receives the output produced so far.
    pub(super) fn interrupt_layer(&mut self, call: &mut Call, outcome: Result<Plan, ToolError>) {
        let (output_text, rest) = match outcome {
            Ok(plan) => {
                self.note_layer(call, &plan);
                plan.effects.map(|effects| (effects.output.clone(), build_output_clause(&effects))).unwrap_or_default()
            }
            Err(_) => (String::new(), String::new()),
        };
        self.drop_preview(call);
        let error = ToolError::new(ErrorCode::Cancelled, format!("{INTERRUPTED}{rest}"));
        let result = ToolResult::from_error(call.call.tool_call_id.clone(), call.call.tool_name.clone(), error);
        call.set_result(ToolResult { output_text, ..result });
        self.report(call, 0);
    }

    /// Reopens the layer in which a call of an earlier process left effects, so that they can be approved if they are
    /// unchanged.
    pub(super) fn reopen_layer(&mut self, call: &mut Call, index: usize, digest: String) {
        let ticket = self.cx.numbers.next_ticket();
        let (tool_name, actions) = (call.call.tool_name.clone(), call.announced.as_ref().map(|planned| planned.actions.clone()));
        let active = ActivePreview { ticket, tool_name, actions: actions.unwrap_or_default() };
        call.state = CallState::Previewing(Box::new(active));
        self.cx.out.effect(Effect::ReopenLayer { index, call: call.call.clone(), digest, ticket });
    }

    /// Discards a layer that was open when aye exited, and informs the model. The command does not run again. `why`
    /// is the reason why effects that were waiting for approval cannot be shown again, if any.
    pub(super) fn discard_layer(&mut self, call: &mut Call, why: Option<&str>) {
        let waited = call.layer.digest.is_some();
        self.drop_preview(call);
        self.announce(call, &[]);
        let because = why.map(|why| format!(": {why}")).unwrap_or_default();
        let told = if waited {
            "aye exited while the changes waited for approval, and they were discarded"
        } else {
            "aye exited while the command ran in a copy"
        };
        let access = call
            .held
            .as_ref()
            .map(|held| format!(", with access to {}", format_access(held.requested_access())))
            .unwrap_or_default();
        call.refuse(ErrorCode::Cancelled, format!("{told}{access}{because}; nothing was applied"));
        self.report(call, 0);
    }

    /// Adds the reason why the command did not run in a layer first to the approval request.
    pub(super) fn with_layer_reason(&mut self, call: &Call, plan: &Plan, mut question: Question) -> Question {
        if question.layer().is_none() {
            return question;
        }
        if let Some(why) = &call.layer.discard_reason {
            question.reason = format!("{why}; {}", question.reason);
        } else if let LayerRun::Impossible { reason } = &plan.layer
            && !std::mem::replace(&mut self.layers.explained_no_layers, true)
        {
            question.reason = format!("{}; the command cannot run in a copy first, because {reason}", question.reason);
        }
        question
    }

    /// Adds a note that the command ran without approval. `applied` says why its changes are applied. The note is added
    /// only once.
    fn report_layers(&mut self, call: &mut Call, effects: &Effects, applied: &str) {
        if call.asked || std::mem::replace(&mut self.layers.explained_layers, true) {
            return;
        }
        let what = match (effects.is_empty(), effects.is_build_output()) {
            (true, _) => "changed no file",
            (false, true) => "changed only build output",
            (false, false) if effects.changes_no_content() => "changed only modification times",
            (false, false) => applied,
        };
        let access = match call.layer.hosts.as_slice() {
            [] => "without network".to_owned(),
            hosts => format!("with access to {}", format_access(hosts)),
        };
        // The note fits into one row of a narrow terminal.
        call.note = Some(format!("ran in a copy {access}; {what}"));
    }

    /// Returns the kind that determines a call's order relative to other calls, or `None` if commands are approved
    /// before they run.
    pub(super) fn turn_kind(&self, verdict: &Verdict) -> Option<TurnKind> {
        let reads = matches!(verdict, Verdict::Allow(permit) if permit.reads_only());
        let in_a_copy = is_by_mode(verdict) || matches!(verdict, Verdict::Ask(question) if question.layer().is_some());
        (in_a_copy || self.cx.policy.approve() == Approve::Effects).then_some(if reads {
            TurnKind::Reads
        } else {
            TurnKind::Writes
        })
    }
}

/// A goal's check, which runs in a layer that is always discarded.
impl CallRunner<'_> {
    /// Returns the permit to run the check in a layer. If that is not possible, informs the user of the reason.
    pub(super) fn check_permit(&mut self, plan: &Plan, permit: &Permit) -> Option<PreviewPermit> {
        if permit.reads_only() || permit.is_unsandboxed() || plan.effects.is_some() {
            return None;
        }
        match &plan.preview {
            PreviewOffer::Possible => Some(permit.preview()),
            PreviewOffer::Impossible { reason } => {
                if !std::mem::replace(&mut self.layers.explained_check, true) {
                    self.cx.out.notice(format!("the check runs in the workspace itself, not in a copy: {reason}"));
                }
                None
            }
            PreviewOffer::None => None,
        }
    }

    /// Ends the check with the output of its run in a layer, which is discarded. Returns `false` if the check has to
    /// run again without a layer.
    pub(super) fn settle_check_run(&mut self, call: &mut Call, outcome: &Result<Plan, ToolError>) -> bool {
        let (id, name) = (call.call.tool_call_id.clone(), call.call.tool_name.clone());
        let result = match outcome {
            _ if self.cancelling => ToolResult::from_error(id, name, ToolError::new(ErrorCode::Cancelled, CHECK_STOPPED)),
            Err(error) if error.code == ErrorCode::Cancelled => ToolResult::from_error(id, name, error.clone()),
            Err(_) => return false,
            Ok(plan) => {
                let Some(effects) = plan.effects.as_deref() else { return false };
                let blocked = match effects.denied.as_slice() {
                    [] => String::new(),
                    denied => format!("\n[sandbox: blocked {}]", format_access(denied)),
                };
                let output = format!("{}{blocked}", effects.output);
                let ended = match &plan.layer {
                    LayerRun::Ended(end) => end.ended.clone(),
                    LayerRun::None | LayerRun::Possible | LayerRun::Impossible { .. } => None,
                };
                if CommandEnd::exit_text_of(ended.as_ref(), &output).is_some() {
                    ToolResult { ended, ..ToolResult::success(id, name, output) }
                } else {
                    let error = ToolError::new(ErrorCode::ToolExecutionFailed, effects.ended.clone());
                    ToolResult { output_text: output, ended, ..ToolResult::from_error(id, name, error) }
                }
            }
        };
        debug_assert!(!matches!(call.state, CallState::Done(_)), "a check ends once");
        self.drop_preview(call);
        call.set_result(result);
        self.report(call, 0);
        self.cx.out.commit(Durability::Process);
        true
    }
}

/// Returns the result of a command that was blocked while it ran in its layer.
fn blocked_result(call: &Call, effects: &Effects) -> ToolResult {
    let output = if effects.is_build_output() { effects.output.as_str() } else { "[its output is withheld too]" };
    let access = match &call.held {
        None if call.layer.hosts.is_empty() => "without network".to_owned(),
        None => format!("with access to {}", format_access(&call.layer.hosts)),
        Some(held) => format!("with access to {}", format_access(held.requested_access())),
    };
    let text = format!(
        "[The command ran in a copy of the workspace, {access}. Its changes were discarded{}.]\n{}\n{output}",
        build_output_clause(effects),
        effects.ended
    );
    let result = ToolResult::success(call.call.tool_call_id.clone(), call.call.tool_name.clone(), text);
    ToolResult { denied: effects.denied.clone(), ..result }
}
