//! Approval requests for calls, and the decisions about them.

use super::amend::no_amendment;
use super::call::{Call, CallState, Pending};
use super::call_runner::{CallRunner, FollowUpActions};
use super::denial::{denial_error, new_errors_note};
use super::effects_approval::build_output_clause;
use super::io::{Effect, InputTime};
use super::options::Approver;
use super::plan_approval::{REASON, UNREVIEWED, approved, plan_denial, proposed, split};
use super::policy_in_force::set_mode;
use super::preview::{PreviewRequest, no_preview};
use super::sandbox_escalation::format_access;
use crate::policy::url::is_public_name;
use crate::policy::{Question, Verdict, first_commands, is_secret_name};
use crate::ports::{Durability, LayerRun, Plan, Record, TaskPlanProposal};
use crate::protocol::approval::CommandLine;
use crate::protocol::{
    Action, Amendment, Approval, ApprovalId, CallDenial, CommandPart, Decision, Denier, Details, ErrorCode, EventKind,
    FirstParts, GrantOptions, Mode, NO_ANSWER, NO_USER, Risk, RuleInfo, SandboxAccess, TASK_CANCELLED, Target, format_seconds,
};
use std::path::Path;
use std::time::Duration;

const DISCARDED: &str = "; the command ran in a copy, its changes there were discarded, and its output is withheld";
/// Method with which a plan requests access to a host for a command.
const CONNECT: &str = "CONNECT";
/// Maximum number of rules that the user may write for a single approval.
const OFFERS: usize = 32;

impl CallRunner<'_> {
    /// Returns the notes to show with a call's approval: changes and approval requests made by hooks, and any
    /// conflict with the approved task plan.
    fn call_notes(&self, call: &Call, plan: &Plan) -> impl Iterator<Item = String> {
        let outside = self.grants.outside_mandate(plan, &self.cx.policy).map(str::to_owned);
        call.rewriting().into_iter().chain(call.hook_question()).chain(outside)
    }

    /// Returns advice for the model after a call that requires approval in a session without a user.
    fn advice_without_user(&self, call: &Call) -> &'static str {
        match self.repetition_warning(call) {
            Some(_) => "the result is already in your context: do something else, or say what you cannot do",
            None => "continue without it, or tell the user what to allow",
        }
    }

    pub(super) fn ask(
        &mut self,
        call: &mut Call,
        index: usize,
        mut plan: Plan,
        question: Question,
        batch: &mut FollowUpActions,
        at: InputTime,
    ) {
        if self.cx.options.approvals.approver == Approver::Everyone {
            return self.permit(call, index, plan, question.approve(), batch);
        }
        let approval_id = self.cx.numbers.next_approval();
        call.marks(&mut plan);
        offer_first(&mut plan, &question);
        plan.amends.offer.unsandboxed = plan.amends.offer.unsandboxed && self.may_run_unsandboxed(&plan, at);
        let mut approval = describe(&plan, &question, approval_id.clone(), &self.cx.options.sandbox);
        approval.opens_in_copy = call.runs_again_in_layer(&plan);
        approval.agent.clone_from(&self.cx.options.approvals.agent);
        approval.proposal.notes.extend(self.call_notes(call, &plan));
        let approver = self.cx.options.approvals.approver;
        let is_excluded = matches!(approver, Approver::Service { .. }) && !self.may_service_approve(&plan, &question);
        if is_excluded || !approver.may_decide(approval.risk_level, approval.critical) {
            let decision = Decision::denied_by(Denier::Nobody, NO_USER);
            let rule = question.rule.clone();
            self.cx.out.event(EventKind::ApprovalRequested(approval));
            self.resolve_approval(call, &approval_id, decision, 0);
            let instead = self.advice_without_user(call);
            let message = format!(
                "denied: {NO_USER} ({}; rule: {rule}){}; {instead}{}",
                question.reason,
                discarded_note(&plan),
                new_errors_note(plan.proposal.as_ref())
            );
            call.refuse(ErrorCode::NoApprover, message);
            return self.report(call, 0);
        }
        approval.timeout_ms = self.cx.options.approvals.timeout.map(|after| u64::try_from(after.as_millis()).unwrap_or(u64::MAX));
        approval.origins = self.cx.policy.origins(&approval.rule, &approval.parts);
        approval.always = self.always(call, &plan, &question, at);
        self.cx.out.record(Record::ApprovalRequested { approval: approval.clone() });
        let always = approval.always.clone();
        call.asked = true;
        let ticket = self.cx.options.approvals.timeout.map(|_| self.cx.numbers.next_ticket());
        call.state = CallState::Asking(Box::new(Pending { plan, question, always, approval_id, since: at.now, ticket }));
        batch.asks.push(approval);
    }

    /// Returns whether the approval service may approve a call under the current policy. Only the user can approve
    /// access outside the sandbox, and task plans, which allow further actions.
    fn may_service_approve(&self, plan: &Plan, question: &Question) -> bool {
        let is_for_user = plan.task_plan.is_some() || !plan.opens.is_empty();
        !is_for_user && !question.critical && self.cx.policy.service_risk().is_some_and(|most| question.risk <= most)
    }

    /// Returns the rules that "always allow" offers for a call.
    fn always(&self, call: &Call, plan: &Plan, question: &Question, at: InputTime) -> GrantOptions {
        let never = |reason: String| GrantOptions { never: vec![reason], ..GrantOptions::default() };
        let mut always = if plan.task_plan.is_some() {
            never("each plan needs its own approval".to_owned())
        } else if call.amended.by.contains(&Amendment::Unsandboxed) {
            never("each run outside the sandbox needs its own approval".to_owned())
        } else if !plan.opens.is_empty() {
            self.always_open(call, plan, at)
        } else if self.is_doubted(plan, at) {
            never(format!("a rule already allows this; aye asks because {}", question.reason))
        } else if self.repetition_warning(call).is_some() && self.is_allowed_by_rule(plan, at) {
            never("a rule already allows this; aye asks because the call repeats".to_owned())
        } else {
            self.cx.policy.always(&plan.actions, at.now)
        };
        if let LayerRun::Impossible { reason } = &plan.layer {
            always = always.without_copies(reason);
        }
        if self.cx.options.approvals.agent.is_some() { always.only_in_files() } else { always }
    }

    /// Asks for approval even if a rule allows the call.
    pub(super) fn ask_anyway(
        &mut self,
        call: &mut Call,
        index: usize,
        plan: Plan,
        reason: String,
        batch: &mut FollowUpActions,
        at: InputTime,
    ) {
        match self.cx.policy.ask_call(&plan.tool_name, &plan.actions, at.now, reason) {
            Ok(question) => self.ask(call, index, plan, question, batch, at),
            Err(denial) => self.refuse_by_policy(call, &denial),
        }
    }

    /// Asks the user to approve a task plan. This ends the mandate of any earlier plan, because the model no longer
    /// follows it.
    pub(super) fn ask_about_plan(
        &mut self,
        verdict: Verdict,
        call: &mut Call,
        index: usize,
        mut plan: Plan,
        batch: &mut FollowUpActions,
        at: InputTime,
    ) {
        if let Verdict::Deny(denial) = verdict {
            return self.refuse_by_policy(call, &denial);
        }
        self.grants.end_mandate(self.cx);
        let leaves = self.leaves_plan_mode();
        if let Some(proposal) = &mut plan.task_plan {
            proposal.shown = Some(Box::new(proposed(&proposal.plan, &self.cx.policy, leaves, at.now)));
        }
        match self.cx.policy.ask_call(&plan.tool_name, &plan.actions, at.now, REASON.to_owned()) {
            Ok(mut question) => {
                "Plan".clone_into(&mut question.title);
                if self.cx.options.approvals.approver == Approver::Everyone {
                    plan.amends.told = Some(UNREVIEWED.to_owned());
                }
                self.ask(call, index, plan, question, batch, at);
            }
            Err(denial) => self.refuse_by_policy(call, &denial),
        }
    }

    fn leaves_plan_mode(&self) -> bool {
        self.cx.policy.mode() == Mode::Plan && self.cx.options.laxest >= Mode::Ask
    }

    /// Starts the mandate of the approved task plan and leaves plan mode, if it is on.
    fn approve_plan(&mut self, plan: &mut Plan, at: InputTime) {
        let Some(TaskPlanProposal { plan: task_plan, shown: Some(shown) }) = plan.task_plan.take().map(|proposal| *proposal)
        else {
            return;
        };
        self.grants.begin_mandate(&shown, split(&task_plan, &shown), self.cx, at);
        if self.leaves_plan_mode() {
            set_mode(Mode::Ask, self.cx);
        }
        let stays = self.cx.policy.mode() == Mode::Plan;
        plan.amends.told = Some(approved(&shown, stays, plan.amends.told.take()));
    }

    /// Asks to run a command once outside the sandbox. Only the user can allow this, never a rule.
    pub(super) fn ask_unsandboxed(
        &mut self,
        call: &mut Call,
        index: usize,
        plan: Plan,
        batch: &mut FollowUpActions,
        at: InputTime,
    ) {
        let asked = match self.cx.options.approvals.approver {
            Approver::User => self.cx.policy.ask_unsandboxed(&plan.tool_name, &plan.actions, at.now),
            Approver::Service { .. } | Approver::Everyone | Approver::Nobody => {
                Err("no user is available to approve it".to_owned())
            }
        };
        match asked {
            Ok(question) => self.ask(call, index, plan, question, batch, at),
            Err(why) => {
                call.refuse(ErrorCode::PolicyDenied, format!("this call cannot run outside the sandbox: {why}"));
                self.report(call, 0);
            }
        }
    }

    /// Returns whether the user may be offered to run the command outside the sandbox.
    fn may_run_unsandboxed(&self, plan: &Plan, at: InputTime) -> bool {
        let person = self.cx.options.approvals.approver == Approver::User;
        let commands: Vec<Action> = plan.actions.iter().filter(|action| matches!(action, Action::Exec { .. })).cloned().collect();
        person && plan.effects.is_none() && self.cx.policy.ask_unsandboxed(&plan.tool_name, &commands, at.now).is_ok()
    }

    /// Asks to allow additional access for a single run. Only the user can allow this, never a rule.
    pub(super) fn ask_to_open(&mut self, call: &mut Call, index: usize, plan: Plan, batch: &mut FollowUpActions, at: InputTime) {
        if plan.opens.is_empty() && call.layer.has_started {
            return self.ask_before(call, index);
        }
        if plan.opens.is_empty() {
            call.refuse(ErrorCode::PolicyDenied, "this access cannot be allowed for a single run");
            return self.report(call, 0);
        }
        let names = format_access(&plan.opens);
        let place = if call.runs_again_in_layer(&plan) { " in a fresh copy" } else { "" };
        let told =
            if plan.opens.iter().any(is_secret) { "; its output, which can contain secrets, goes to the model" } else { "" };
        let reason =
            format!("the sandbox blocked {names}; if you approve, the command runs once more{place} with that access{told}");
        match self.cx.policy.ask_call(&plan.tool_name, &plan.actions, at.now, reason) {
            Ok(mut question) => {
                question.risk = self.opening_risk(&plan, question.risk, at);
                self.ask(call, index, plan, question, batch, at);
            }
            Err(denial) => self.refuse_by_policy(call, &denial),
        }
    }

    /// Returns the risk of running a command again with more access. Access to one public host is as risky as reading
    /// from it; sending data counts only if the command itself does so. Other hosts are high risk, and secrets, whose
    /// content goes to the model, are at least medium risk.
    fn opening_risk(&self, plan: &Plan, risk: Risk, at: InputTime) -> Risk {
        let is_high = |opened: &SandboxAccess| match opened {
            SandboxAccess::Network => true,
            SandboxAccess::Host { host, .. } => !is_public_name(host),
            SandboxAccess::Read { .. } | SandboxAccess::Write { .. } => false,
        };
        if plan.opens.iter().any(is_high) {
            return Risk::High;
        }
        let least = if plan.opens.iter().any(is_secret) { Risk::Medium } else { Risk::Low };
        let reads = |action: &Action| match action {
            Action::Fetch { url, method } if method == CONNECT => Action::Fetch { url: url.clone(), method: "GET".to_owned() },
            other => other.clone(),
        };
        let actions: Vec<Action> = plan.actions.iter().map(reads).collect();
        let question = self.cx.policy.ask_call(&plan.tool_name, &actions, at.now, String::new());
        question.map_or(risk, |question| question.risk).max(least)
    }

    /// Returns the rules that can be saved for blocked access: directories that commands may read, and hosts that
    /// this command may connect to in a layer.
    fn always_open(&self, call: &Call, plan: &Plan, at: InputTime) -> GrantOptions {
        if plan.opens.iter().all(SandboxAccess::is_network) && call.runs_again_in_layer(plan) && plan.doubts.by_name.is_none() {
            return self.cx.policy.always_hosts(&plan.actions, &plan.opens, at.now);
        }
        let paths = plan.opens.iter().map(|open| match open {
            SandboxAccess::Read { path, .. } => Some(Path::new(path)),
            SandboxAccess::Write { .. } | SandboxAccess::Host { .. } | SandboxAccess::Network => None,
        });
        match paths.collect::<Option<Vec<_>>>() {
            Some(paths) => self.cx.policy.always_readable(&paths, at.now),
            None => GrantOptions {
                never: vec!["access outside the sandbox is allowed for one run only".to_owned()],
                ..GrantOptions::default()
            },
        }
    }

    /// Returns the directory in which a command would run.
    fn directory(&self, plan: &Plan) -> Option<std::path::PathBuf> {
        plan.actions.iter().find_map(|action| match action {
            Action::Exec { command, cwd } => Some(self.cx.policy.command_directory(command, cwd)),
            Action::Named { cwd, .. } | Action::Custom { cwd, .. } => Some(cwd.real.clone()),
            Action::Read { .. }
            | Action::Write { .. }
            | Action::Delete { .. }
            | Action::Open { .. }
            | Action::Upload { .. }
            | Action::Fetch { .. }
            | Action::Search { .. }
            | Action::Invoke { .. } => None,
        })
    }

    /// Returns whether the policy itself allows the call and approval is required only because of facts on disk.
    fn is_doubted(&self, plan: &Plan, at: InputTime) -> bool {
        let allowed = matches!(self.cx.policy.judge_call(&plan.tool_name, &plan.actions, at.now), Verdict::Allow(_));
        allowed && !self.is_allowed_by_rule(plan, at)
    }

    /// Returns whether the policy allows the call, in which case only repetition can make it require approval.
    pub(super) fn is_allowed_by_rule(&self, plan: &Plan, at: InputTime) -> bool {
        matches!(plan.judge(&self.cx.policy, at.now), Verdict::Allow(_))
    }

    /// Returns whether the user has already approved the command by typing it.
    pub(super) fn is_typed_by_user(&self, plan: &Plan, question: &Question) -> bool {
        self.typed && plan.effects.is_none() && question.risk < Risk::High && !question.critical
    }

    /// Returns the effect that starts the timeout of an approval, or `None` if approvals do not time out or this one is
    /// not pending.
    pub(super) fn end_of_wait(&self, calls: &[Call], approval_id: &ApprovalId) -> Option<Effect> {
        let after = self.cx.options.approvals.timeout?;
        let ticket = calls.iter().find_map(|call| match &call.state {
            CallState::Asking(pending) if pending.approval_id == *approval_id => pending.ticket,
            _ => None,
        })?;
        Some(Effect::Wake { after_ms: u64::try_from(after.as_millis()).unwrap_or(u64::MAX), ticket })
    }

    pub(super) fn parse_written_rule(&self, pending: &mut Pending, rule: &str, at: InputTime) -> RuleInfo {
        let offers = &mut pending.always.offers;
        let found = match offers.len() {
            0 => Err("no rule can be saved for this approval".to_owned()),
            OFFERS.. => Err(format!("{OFFERS} rules have been tried; choose one of them")),
            _ => self.cx.policy.offer_written(&pending.plan.actions, offers, rule, at.now),
        };
        match found {
            Err(message) => RuleInfo::Refused { message },
            Ok(offer) => {
                offers.push(offer.clone());
                RuleInfo::Offered { offer, at: offers.len() - 1 }
            }
        }
    }

    pub(super) fn settle_decision(&mut self, calls: &mut [Call], index: usize, decision: Decision, at: InputTime) {
        let call = &mut calls[index];
        let CallState::Asking(pending) = &call.state else { return };
        if decision == Decision::ApprovedByService && !self.may_service_approve(&pending.plan, &pending.question) {
            return self.cx.out.notice("the approval service may not approve this call; its answer is ignored");
        }
        if let Some(why) = no_such_decision(call, &pending.plan, &decision) {
            return self.cx.out.notice(why);
        }
        let CallState::Asking(pending) = std::mem::replace(&mut call.state, CallState::Running) else { return };
        let Pending { mut plan, question, always, approval_id, since, ticket: _ } = *pending;
        self.resolve_approval(call, &approval_id, decision.clone(), at.millis_since(since));
        let no = matches!(decision, Decision::Denied(_));
        // The policy may have changed since approval was requested.
        if !no && let Some(denial) = self.current_denial(&plan, at) {
            return self.refuse_by_policy(call, &denial);
        }
        let mut batch = FollowUpActions::default();
        match decision {
            Decision::Denied(CallDenial { by: Denier::User, reason }) if plan.task_plan.is_some() => {
                call.refuse(ErrorCode::UserDenied, plan_denial(reason.as_deref()));
                self.report(call, 0);
            }
            Decision::Denied(denial) => {
                let (code, message) = denial_error(&denial);
                call.refuse(
                    code,
                    format!("{message}{}{}{}", discarded_note(&plan), earlier_run(call), new_errors_note(plan.proposal.as_ref())),
                );
                self.report(call, 0);
            }
            Decision::Approved | Decision::ApprovedInCleanContext | Decision::ApprovedAlways { .. }
                if plan.task_plan.is_some() =>
            {
                self.cx.wants_clean_context = decision == Decision::ApprovedInCleanContext;
                self.approve_plan(&mut plan, at);
                self.permit(call, index, plan, question.approve(), &mut batch);
            }
            Decision::Approved | Decision::ApprovedInCleanContext => {
                self.permit(call, index, plan, question.approve(), &mut batch);
            }
            Decision::ApprovedByService => self.permit(call, index, plan, question.approve_by_service(), &mut batch),
            Decision::ApprovedAlways { remember } => {
                let choice = (remember, self.directory(&plan));
                self.grants.remember(&always, choice, self.cx);
                self.permit(call, index, plan, question.approve(), &mut batch);
            }
            Decision::Amended { amendment: Amendment::Effects { discarded, .. } } => {
                plan.amends.discarded = discarded;
                self.permit(call, index, plan, question.approve(), &mut batch);
            }
            Decision::Amended { amendment } => self.amend(call, index, plan, amendment),
            Decision::Renewed => self.replan(call, index),
            Decision::Previewed => {
                // After a conflict, the command runs in the same kind of layer as before.
                let layer = question.layer().filter(|_| call.preview.conflict.is_some() && call.layer.has_started);
                let unasked = layer.is_some();
                let permit = layer.unwrap_or_else(|| question.preview());
                plan.effects = None;
                let request = PreviewRequest { index, plan, permit, approval_id: Some(approval_id), unasked };
                self.begin_preview(call, request, &mut batch);
            }
        }
        self.commit_and_dispatch(calls, batch);
    }

    /// Denies an approval that has timed out. Starting a preview counts as an answer, and the approval that follows
    /// it has a timer of its own.
    pub(super) fn time_out(&mut self, call: &mut Call, timeout: Duration, at: InputTime) {
        let CallState::Asking(pending) = std::mem::replace(&mut call.state, CallState::Running) else { return };
        let Pending { approval_id, since, plan, .. } = *pending;
        let reason = format!("{NO_ANSWER} {}", format_seconds(timeout.as_secs()));
        self.cx
            .out
            .event(EventKind::ApprovalTimeout { approval_id: approval_id.clone(), tool_call_id: call.call.tool_call_id.clone() });
        let denial = CallDenial { by: Denier::Timeout, reason: Some(reason) };
        let (code, message) = denial_error(&denial);
        self.resolve_approval(call, &approval_id, Decision::Denied(denial), at.millis_since(since));
        call.refuse(code, format!("{message}{}{}", discarded_note(&plan), earlier_run(call)));
        self.report(call, 0);
    }

    /// Ends a call's approval without a decision by the user.
    pub(super) fn withdraw_question(&mut self, call: &Call, at: InputTime) {
        if let CallState::Asking(pending) = &call.state {
            let decision = Decision::denied_by(Denier::Cancel, TASK_CANCELLED);
            self.resolve_approval(call, &pending.approval_id, decision, at.millis_since(pending.since));
        }
    }

    pub(super) fn resolve_approval(&mut self, call: &Call, approval_id: &ApprovalId, decision: Decision, latency_ms: u64) {
        let tool_call_id = call.call.tool_call_id.clone();
        self.cx.out.record(Record::Decided {
            approval_id: approval_id.clone(),
            tool_call_id: tool_call_id.clone(),
            decision: decision.clone(),
        });
        self.cx.out.event(EventKind::ApprovalResolved { approval_id: approval_id.clone(), tool_call_id, decision, latency_ms });
    }

    /// Records the amendment in the journal and then plans the call with it.
    pub(super) fn amend(&mut self, call: &mut Call, index: usize, plan: Plan, amendment: Amendment) {
        call.amended.yes = amendment.is_yes().then(|| plan.actions.clone());
        call.amended.by.push(amendment.clone());
        call.state = CallState::Planning;
        self.cx.out.commit(Durability::Process);
        self.cx.out.effect(Effect::Amend { index, plan, amendment });
    }

    /// Returns whether the user approved exactly this call while amending it. If so, only the policy can still deny
    /// it.
    pub(super) fn is_answered(call: &mut Call, plan: &Plan) -> bool {
        let yes = call.amended.yes.take();
        yes.is_some_and(|asked| plan.actions.iter().all(|action| asked.contains(action)))
    }

    pub(super) fn on_run_approved(
        &mut self,
        verdict: Verdict,
        call: &mut Call,
        index: usize,
        plan: Plan,
        batch: &mut FollowUpActions,
    ) {
        let permit = match verdict {
            Verdict::Deny(denial) => return self.refuse_by_policy(call, &denial),
            Verdict::Ask(question) => question.approve(),
            Verdict::Allow(permit) => permit,
        };
        let (tool_call_id, proposal) = (call.call.tool_call_id.clone(), plan.proposal.clone());
        self.cx.out.record(Record::Previewed { tool_call_id, proposal });
        self.permit(call, index, plan, permit, batch);
    }
}

/// Returns the reason why a decision is not possible for a call, or `None` if it is possible.
fn no_such_decision(call: &Call, plan: &Plan, decision: &Decision) -> Option<String> {
    match decision {
        Decision::Previewed => no_preview(plan).map(|why| format!("no preview: {why}")),
        Decision::Renewed => (!call.proposes_files()).then(|| "this change does not depend on any file on disk".to_owned()),
        Decision::Amended { amendment } => {
            no_amendment(plan, amendment).map(|why| format!("cannot apply this change to the proposal: {why}"))
        }
        Decision::Approved | Decision::ApprovedInCleanContext | Decision::ApprovedByService | Decision::ApprovedAlways { .. } => {
            plan.effects.as_ref().and_then(|effects| effects.approval_obstacle())
        }
        Decision::Denied(_) => None,
    }
}

/// Returns a note that tells the model about a plan's discarded effects. Empty if the plan did not run.
fn discarded_note(plan: &Plan) -> String {
    let is_conflict = plan.effects.as_ref().is_some_and(|effects| effects.conflict.is_some());
    if !is_conflict && !matches!(plan.layer, LayerRun::Ended(_)) {
        return String::new();
    }
    let rest = plan.effects.as_ref().map(|effects| build_output_clause(effects)).unwrap_or_default();
    format!("{DISCARDED}{rest}")
}

/// Returns a note that tells the model about an earlier run in a layer whose changes were discarded. Empty if there
/// was no such run.
fn earlier_run(call: &Call) -> String {
    let why = call.layer.discard_reason.as_ref().filter(|_| call.layer.has_started && call.held.is_none());
    why.map(|why| format!("; {why}")).unwrap_or_default()
}

/// Offers to run only the first commands of a line if they are less risky than the whole line.
fn offer_first(plan: &mut Plan, question: &Question) {
    let Some(line) = plan.amends.offer.command.as_ref().filter(|_| plan.effects.is_none()) else { return };
    let worst = |parts: &[CommandPart]| parts.iter().map(|part| (part.critical, part.risk)).max();
    let all = worst(&question.parts);
    let first = first_commands(line).into_iter().rev().find(|(first, count)| {
        *count < question.parts.len() && !first.trim().is_empty() && worst(&question.parts[..*count]) < all
    });
    plan.amends.offer.first = first.map(|(line, count)| FirstParts { count, line: line.to_owned() });
}

/// Describes what the call would do, based on its actions.
fn details(plan: &Plan, command: Option<&CommandLine>) -> Details {
    let path = |target: &Target| target.real.display().to_string();
    let mut details = Details {
        tool_name: plan.actions.first().map_or_else(String::new, |action| action.capability().to_owned()),
        command: command.map(|command| command.line.clone()),
        cwd: command.map(|command| command.cwd.clone()),
        ..Details::default()
    };
    for action in &plan.actions {
        match action {
            Action::Read { target } | Action::Write { target } | Action::Delete { target } => {
                // A move both reads and deletes its source.
                let path = path(target);
                if !details.paths.contains(&path) {
                    details.paths.push(path);
                }
            }
            Action::Fetch { url, method } => (details.url, details.method) = (Some(url.clone()), Some(method.clone())),
            Action::Search { query, .. } => details.query = Some(query.clone()),
            _ => {}
        }
    }
    details
}

/// Returns whether this is access to a file whose name suggests secrets.
fn is_secret(opened: &SandboxAccess) -> bool {
    match opened {
        SandboxAccess::Read { path, removes: false } => {
            Path::new(path).file_name().is_some_and(|name| is_secret_name(&name.to_string_lossy()))
        }
        SandboxAccess::Read { .. } | SandboxAccess::Write { .. } | SandboxAccess::Host { .. } | SandboxAccess::Network => false,
    }
}

/// Returns the approval request as presented to the user.
fn describe(plan: &Plan, question: &Question, approval_id: ApprovalId, sandbox: &str) -> Approval {
    let sandbox = plan.sandbox.as_deref().unwrap_or(sandbox);
    let command = plan.actions.iter().find_map(|action| {
        let (line, cwd) = match action {
            Action::Exec { command, cwd } => (command.clone(), cwd),
            Action::Named { argv, cwd, .. } => (crate::policy::line(argv), cwd),
            Action::Custom { argv, cwd, input, .. } => (crate::policy::to_shell_line(argv, input.as_deref()), cwd),
            Action::Read { .. }
            | Action::Write { .. }
            | Action::Delete { .. }
            | Action::Open { .. }
            | Action::Upload { .. }
            | Action::Fetch { .. }
            | Action::Search { .. }
            | Action::Invoke { .. } => return None,
        };
        let (sandbox, has_own_sandbox) = (sandbox.to_owned(), plan.sandbox.is_some());
        Some(CommandLine {
            line,
            cwd: cwd.real.display().to_string(),
            timeout_seconds: plan.timeout_seconds,
            sandbox,
            has_own_sandbox,
        })
    });
    Approval {
        approval_id,
        tool_call_id: plan.call.tool_call_id.clone(),
        tool_name: plan.tool_name.clone(),
        title: question.title.clone(),
        description: question.description.clone(),
        action_summary: plan.summary.clone(),
        risk_level: question.risk,
        critical: question.critical,
        rule: question.rule.clone(),
        reason: question.reason.clone(),
        agent: None,
        is_uncovered: question.is_uncovered,
        details: details(plan, command.as_ref()),
        proposal: plan.proposal.clone().unwrap_or_default(),
        command,
        parts: question.parts.clone(),
        origins: Vec::new(),
        always: GrantOptions::default(),
        preview: plan.preview.clone(),
        effects: plan.effects.clone(),
        opens: plan.opens.clone(),
        opens_in_copy: false,
        plan: plan.task_plan.as_ref().and_then(|proposal| proposal.shown.clone()),
        timeout_ms: None,
        amendable: plan.amends.offer.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{CallArguments, CallId, Place, ToolCall};

    #[test]
    fn reading_a_hidden_file_counts_as_access_to_secrets() {
        let read = |path: &str, removes| SandboxAccess::Read { path: path.to_owned(), removes };
        assert!(is_secret(&read("/w/certs/server.key", false)));
        for opened in [read("/w/server.key", true), read("/w/notes", false), SandboxAccess::Network] {
            assert!(!is_secret(&opened), "{opened}");
        }
    }

    #[test]
    fn a_path_that_is_read_and_deleted_is_listed_once() {
        let target = |path: &str| Target { given: path.to_owned(), real: path.into(), place: Place::Missing };
        let call = ToolCall {
            tool_call_id: CallId::new("c1"),
            tool_name: "Move".to_owned(),
            arguments: CallArguments::Object(serde_json::Map::new()),
        };
        let actions = vec![
            Action::Read { target: target("/w/a") },
            Action::Delete { target: target("/w/a") },
            Action::Write { target: target("/w/b") },
        ];
        let plan = Plan { actions, ..Plan::empty(call, "Move".to_owned(), Box::new(())) };
        assert_eq!(details(&plan, None).paths, ["/w/a", "/w/b"]);
    }
}
