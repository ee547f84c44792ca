//! Turn machine: passes each input to the sub-machines concerned, and connects their outputs.

use super::assumed_prices::AssumedPrices;
use super::call_batch::CallBatch;
use super::call_runner::{CallRunner, LayerNotices};
use super::compaction::Compactor;
use super::completed_request::CompletedRequest;
use super::context_window::ContextWindow;
use super::fallback::{FallbackModels, OpenedFallback};
use super::goals::Goals;
use super::grants::Grants;
use super::guardrail::GuardrailNote;
use super::io::{Effect, Input, InputTime, Planned};
use super::mentions::MentionReader;
use super::model::{ModelChoice, ModelUpdate};
use super::options::{Options, ResumePolicy};
use super::policy::{PolicyChange, denial_for};
use super::policy_in_force::{replace_policy, set_approve, set_mode};
use super::prompt_hooks::PromptHooks;
use super::prompt_queue::PromptQueue;
use super::rewind::{RewindEffect, Rewinds};
use super::rule_files::RuleFileResult;
use super::sampling::SamplingUsage;
use super::spending::Spending;
use super::state::left_behind_failure;
use super::stop_hooks::StopHooks;
use super::summary_model::SummaryModel;
use super::tasks::{CurrentCalls, Phase, Tasks};
use super::turn_context::TurnContext;
use super::user_command::UserCommandOutputs;
use crate::agent::thread::INTERRUPTED;
use crate::policy::Enforcer;
use crate::policy::permit::Denial;
use crate::ports::{Durability, FileRewindResult, Plan, Record, RecoveredCalls, TaskEnd};
use crate::protocol::{
    ApprovalId, AssumedPrice, Budget, BudgetLimit, CallHooks, CallId, ChangedFiles, Command, Decision, Effort, EventKind,
    Failure, FailureKind, Goal, GoalReason, Message, Mode, ModelFacts, Part, PlaceChange, Resolution, RewindScope, RewindTarget,
    Role, RuleQuery, SessionStatus, StopReason, TaskStatus, ToolError, Usage, validate_check,
};
use crate::session::{Expense, GoalProgress};
use std::path::PathBuf;

/// Turn machine of one session.
pub(crate) struct TurnMachine {
    pub(super) cx: TurnContext,
    pub(super) window: ContextWindow,
    pub(super) compactor: Compactor,
    pub(super) queue: PromptQueue,
    pub(super) spending: Spending,
    pub(super) choice: ModelChoice,
    pub(super) prices: AssumedPrices,
    pub(super) fallbacks: FallbackModels,
    pub(super) summaries: SummaryModel,
    pub(super) guardrail: GuardrailNote,
    pub(super) command_outputs: UserCommandOutputs,
    pub(super) tasks: Tasks,
    pub(super) rewinds: Rewinds,
    pub(super) mentions: MentionReader,
    pub(super) prompt_hooks: PromptHooks,
    pub(super) stop_hooks: StopHooks,
    pub(super) goals: Goals,
    pub(super) grants: Grants,
    layers: LayerNotices,
    /// Recovery information, available until the session is restored.
    pub(super) known: RecoveredCalls,
    /// Whether the user ended the session. Running calls finish, and no new work starts.
    pub(super) quitting: bool,
}

/// Inputs.
impl TurnMachine {
    pub(crate) fn new(policy: Enforcer, options: Options) -> Self {
        let mut machine = Self {
            choice: ModelChoice::new(&options),
            prices: AssumedPrices::new(&options),
            fallbacks: FallbackModels::new(&options),
            summaries: SummaryModel::new(&options),
            cx: TurnContext::new(policy, options),
            window: ContextWindow::default(),
            compactor: Compactor::default(),
            queue: PromptQueue::default(),
            spending: Spending::default(),
            guardrail: GuardrailNote::default(),
            command_outputs: UserCommandOutputs::default(),
            tasks: Tasks::default(),
            rewinds: Rewinds::default(),
            mentions: MentionReader::default(),
            prompt_hooks: PromptHooks::default(),
            stop_hooks: StopHooks::default(),
            goals: Goals::default(),
            grants: Grants::default(),
            layers: LayerNotices::default(),
            known: RecoveredCalls::default(),
            quitting: false,
        };
        machine.choice.limit_output(&mut machine.cx);
        machine.prices.apply(&mut machine.cx);
        machine.window.count_fixed(&machine.cx);
        machine
    }

    pub(crate) fn handle(&mut self, input: Input, at: InputTime) -> Vec<Effect> {
        self.goals.set_time(at.now);
        match input {
            input if self.quitting => self.wind_down(input, at),
            Input::Command(command) => self.command(command, at),
            Input::Delta(delta) if self.compactor.is_running() => self.on_summary_delta(delta, at),
            Input::Delta(delta) => self.on_delta(delta, at),
            Input::ModelFailed(error) if self.compactor.is_running() => self.on_summary_error(error, at),
            Input::ModelFailed(error) => self.on_model_error(error, at),
            Input::Planned(plans) => self.on_planned(plans, at),
            Input::CallsHooked(hooked) => self.calls_hooked(hooked, at),
            Input::Hooked { ticket, outcome } => self.hooked(ticket, outcome, at),
            Input::Previewed { index, ticket, outcome } => self.on_previewed(index, ticket, outcome, at),
            Input::ToolOutput { index, text } => self.on_tool_output(index, text),
            Input::ToolFinished { index, result, latency_ms } => {
                self.with_calls(|batch, runner| batch.on_result(index, result, latency_ms, runner));
                self.advance(at);
            }
            Input::Outdated { approval_id, outdated } => self.set_outdated(approval_id, outdated),
            Input::PolicyChanged(change) => self.on_policy_change(*change, at),
            Input::RuleFiles(RuleFileResult::Recent { approval_id, offer, commands }) => {
                self.reach(approval_id, offer, commands, at);
            }
            Input::RuleFiles(kept) => self.grants.on_outcome(kept, &mut self.cx),
            Input::Woken { ticket } => {
                if !self.time_out_goal(ticket, at) {
                    self.on_timer(ticket, at);
                    self.time_out(ticket, at);
                }
            }
            Input::ModelOpened(opened) => self.on_model_opened(opened, at),
            Input::SummaryModelKnown(facts) => self.summaries.learn(facts),
            Input::MentionsPlanned { ticket, plans } => self.on_mentions_planned(ticket, plans, at),
            Input::MentionsRead { ticket, results } => self.on_mentions_read(ticket, results, at),
            Input::Sampled(sampled) => self.on_sampled(sampled),
            Input::Reviewed(spent) => self.spending.count_review(spent, &self.tasks, &mut self.cx),
            Input::AgentSpent(spent) => self.spending.count_agent(spent, &mut self.tasks, &mut self.cx),
            Input::FilesRewound { number, outcome } => self.on_files_rewound(number, outcome, at),
            Input::ChangesListed { ticket, changes } => self.on_changes_listed(ticket, changes.as_ref(), at),
        }
        self.cx.out.take()
    }

    fn command(&mut self, command: Command, at: InputTime) {
        match command {
            Command::Prompt { text } => self.prompt(text, at),
            Command::Steer { text } => self.steer(text, at),
            Command::EditWaiting { id, text } => self.queue.edit(id, text, &mut self.cx.out),
            Command::Decide { approval_id, decision } => self.on_decision(&approval_id, decision, at),
            Command::Resolve { tool_call_id, resolution } => self.on_resolution(&tool_call_id, resolution, at),
            Command::Shell { line, shared } => self.run_user_command(&line, shared),
            Command::Preview { approval_id } => self.on_decision(&approval_id, Decision::Previewed, at),
            Command::ShowProposed { approval_id, file } => self.show_proposed(approval_id, file),
            Command::Background { tool_call_id } => self.move_to_background(tool_call_id),
            Command::Stop { id } => self.cx.out.effect(Effect::StopCommand { id }),
            Command::AskRule { approval_id, asked } => self.answer_rule_question(approval_id, asked, at),
            Command::UndoGrant => self.grants.undo(&mut self.cx),
            Command::ListGrants => self.cx.out.effect(Effect::ListGrants),
            Command::ListRewindPoints => self.cx.out.effect(self.rewinds.list_points()),
            Command::PlanRewind { target, scope } => self.plan_rewind(&target, scope),
            Command::Rewind { target, scope, overwrite } => self.rewind(&target, scope, overwrite, at),
            Command::Cancel => self.interrupt(at),
            Command::Kill => self.kill(at),
            Command::Finish => self.cancel(at),
            Command::Continue => self.continue_on_request(at),
            Command::RetryNow => self.retry_now(at),
            Command::Compact { focus } => self.compact(focus, at),
            Command::UndoCompaction => self.undo_compaction(),
            Command::ShowContext => {
                let shown = self.window.breakdown(self.tasks.continuable_id().as_ref(), &self.cx);
                self.cx.out.event(EventKind::ContextShown(shown));
            }
            Command::ShowBudget => self.spending.show_budgets(&self.tasks, &mut self.cx),
            Command::SetBudget { limit } => self.set_budget(limit, at),
            Command::SetGoal { goal } => self.set_goal(goal, at),
            Command::SetGoalCheck { check } => self.set_goal_check(&check, at),
            Command::StopGoal => self.stop_goal(at),
            Command::AssumePrice { price } => self.assume_price(price, at),
            Command::SetModel { name } => self.choice.open(name, None, &mut self.cx),
            Command::AddKey { name, key } => self.choice.open(name, Some(key), &mut self.cx),
            Command::SetEffort { effort } => self.choice.set_effort(effort, &mut self.cx),
            Command::ListModels { ask } => self.cx.out.effect(Effect::ListModels { ask }),
            Command::SetMode { mode } => self.set_mode(mode, at),
            Command::SetApprove { approve } => set_approve(approve, &mut self.cx),
            Command::ListUnasked => self.cx.out.notice(self.layers.unasked.list()),
            Command::ReloadPolicy => self.cx.out.effect(Effect::ReloadPolicy),
            Command::SaveDraft { text } => self.cx.out.effect(Effect::SaveDraft(text)),
            Command::Quit => self.quit(at),
        }
    }

    /// Handles the inputs that are still relevant while the session ends.
    fn wind_down(&mut self, input: Input, at: InputTime) {
        match input {
            Input::ToolFinished { index, result, latency_ms } => {
                self.with_calls(|batch, runner| batch.on_result(index, result, latency_ms, runner));
                // A step whose calls all have results is completed, even if no other step follows.
                if self.tasks.calls().is_none_or(CallBatch::is_done) {
                    self.close_step(at);
                    self.cx.out.commit(Durability::Process);
                    // The end of the session pauses the task, and records that.
                    self.tasks.set_phase(Phase::Working(CallBatch::default()));
                }
                self.end_if_nothing_runs();
            }
            Input::ToolOutput { index, text } => self.on_tool_output(index, text),
            Input::Command(Command::SaveDraft { text }) => self.cx.out.effect(Effect::SaveDraft(text)),
            // Too late to start, but kept.
            Input::Command(Command::Prompt { text }) => self.queue.add(text, false, &mut self.cx.out),
            Input::Command(Command::Steer { text }) => self.queue.add(text, true, &mut self.cx.out),
            Input::Command(Command::EditWaiting { id, text }) => self.queue.edit(id, text, &mut self.cx.out),
            Input::Command(Command::Quit) => self.cx.out.effect(Effect::End),
            Input::RuleFiles(kept) => {
                self.grants.on_outcome(kept, &mut self.cx);
                self.end_if_nothing_runs();
            }
            Input::Sampled(sampled) => self.on_sampled(sampled),
            Input::Reviewed(spent) => self.spending.count_review(spent, &self.tasks, &mut self.cx),
            Input::AgentSpent(spent) => self.spending.count_agent(spent, &mut self.tasks, &mut self.cx),
            Input::FilesRewound { number, outcome } => {
                self.on_rewound(number, outcome);
                self.end_if_nothing_runs();
            }
            Input::Command(_)
            | Input::Delta(_)
            | Input::ModelFailed(_)
            | Input::Planned(_)
            | Input::CallsHooked(_)
            | Input::Hooked { .. }
            | Input::Previewed { .. }
            | Input::Outdated { .. }
            | Input::PolicyChanged(_)
            | Input::ModelOpened(_)
            | Input::SummaryModelKnown(_)
            | Input::MentionsPlanned { .. }
            | Input::MentionsRead { .. }
            | Input::ChangesListed { .. }
            | Input::Woken { .. } => {}
        }
    }
}

/// Session state, and queries of its host.
impl TurnMachine {
    /// Starts the session; call this once, before any input.
    pub(crate) fn begin_session(&mut self) -> Vec<Effect> {
        self.tasks.set_session_status(SessionStatus::Running, &mut self.cx.out);
        self.cx.out.take()
    }

    /// Ends the session. A session with an unfinished task is paused: the task continues when the session is resumed.
    /// `saved`: whether everything was saved.
    pub(crate) fn end_session(&mut self, saved: bool) -> Vec<Effect> {
        let is_done = (self.tasks.current().is_none() || self.tasks.is_user_command()) && !self.tasks.has_aside();
        if !saved {
            self.tasks.set_session_status(SessionStatus::Failed, &mut self.cx.out);
        } else if is_done {
            self.tasks.set_session_status(SessionStatus::Completed, &mut self.cx.out);
        } else if !self.is_paused() {
            let failure = left_behind_failure();
            // A session with a pending approval is listed as waiting for the user.
            if !self.tasks.calls().is_some_and(CallBatch::is_asking) {
                self.cx.out.record(Record::Paused { failure: failure.clone() });
                self.cx.out.commit(Durability::Power);
            }
            self.cx.out.event(EventKind::SessionPaused { failure });
            self.tasks.set_session_status(SessionStatus::Paused, &mut self.cx.out);
        }
        self.cx.out.take()
    }

    /// Returns whether the session has ended or is paused with an unfinished task.
    pub(crate) fn is_paused(&self) -> bool {
        self.tasks.session_status() == SessionStatus::Paused
    }

    /// Sets whether decisions can be saved. While they cannot, the session is paused.
    pub(crate) fn set_stalled(&mut self, stalled: bool) -> Option<EventKind> {
        self.tasks.set_stalled(stalled)
    }

    /// Returns the number of tasks, the number of used tokens, and the cost in US dollars if all prices are known.
    pub(crate) fn totals(&self) -> (u32, u64, Option<f64>) {
        let totals = self.spending.totals();
        (self.cx.numbers.tasks(), totals.tokens(), totals.whole_cost_usd())
    }

    /// Returns the session budgets, for a front end that connects.
    pub(crate) fn budgets(&self) -> Vec<Budget> {
        self.spending.budgets(&self.tasks, &self.cx)
    }

    /// Sets the recovery information. Call this once, before the session is restored.
    pub(crate) fn set_recovery_info(&mut self, known: RecoveredCalls) {
        self.known = known;
    }

    /// Sets the servers whose resources a prompt may mention.
    pub(crate) fn set_servers(&mut self, names: Vec<String>) {
        self.mentions.set_servers(names);
    }

    /// Returns the pending approvals, each with the path states recorded by its plan.
    pub(crate) fn pending_changes(&self) -> impl Iterator<Item = (&ApprovalId, &[PlaceChange])> {
        self.tasks.calls().into_iter().flat_map(CallBatch::approvals)
    }

    /// Returns the reason why the current policy would deny an allowed call.
    pub(in crate::agent) fn current_denial(&self, plan: &Plan, at: InputTime) -> Option<Denial> {
        denial_for(&self.cx.policy, &plan.tool_name, &plan.actions, at.now)
    }

    /// Returns whether the server needs the user's approval to use the model. The error is the reason why it must not
    /// use it.
    pub(crate) fn may_sample(&self, server: &str) -> Result<bool, String> {
        self.cx.policy.may_sample(server).map_err(|denial| format!("{} (rule: {})", denial.reason, denial.rule))
    }

    /// Returns the model and the maximum number of tokens of its response. The error is the reason why such a request
    /// may not be sent.
    pub(crate) fn sampling(&mut self, input_tokens: u64, wanted: u64, at: InputTime) -> Result<(ModelFacts, u64), Failure> {
        if let Some(failure) = self.cx.request_failure(at.now) {
            return Err(failure);
        }
        let output_tokens = self.window.output_limit(&self.cx).min(wanted);
        let window = self.cx.options.model.context_window;
        if window > 0 && input_tokens + output_tokens > window {
            let message = format!("about {input_tokens} input tokens do not fit the model's context window ({window})");
            return Err(Failure::new(FailureKind::ContextTooLong, message, "send a shorter request"));
        }
        // The full output limit counts, because the actual usage is unknown.
        let next = Usage { input_tokens, output_tokens, ..Usage::default() };
        let forbidden = self.spending.request_failure(&next, &self.tasks, &self.cx);
        forbidden.map_or_else(|| Ok((self.cx.options.model.clone(), output_tokens)), Err)
    }

    /// Returns the model in use, its effort and the budgets, for an agent.
    pub(crate) fn account(&self) -> (String, Option<Effort>, Vec<Budget>) {
        let budgets = self.spending.budgets_with_steps(&self.tasks, &self.cx);
        (self.cx.options.model.name.clone(), self.cx.options.effort, budgets)
    }

    /// Returns the reason why even the smallest request may not be sent.
    pub(crate) fn request_obstacle(&mut self, at: InputTime) -> Option<Failure> {
        self.sampling(1, 1, at).err()
    }

    /// Counts and reports the usage of a server or a tool.
    fn on_sampled(&mut self, sampled: SamplingUsage) {
        let SamplingUsage { server, label, model, usage, fee_usd, estimated, stop_reason, latency_ms } = sampled;
        let cost_usd = model.cost_usd(&usage).map(|cost| cost + fee_usd);
        self.spending.count(usage, cost_usd, &mut self.tasks);
        self.cx.record_setting(Record::Sampled { server, usage, cost_usd, estimated });
        let spent = Expense { usage, cost_usd, estimated };
        let (input, output) = (usage.input_tokens, usage.output_tokens);
        self.cx.out.notice(format!("{label} used {}: {input} tokens in, {output} out", model.name));
        let request = CompletedRequest { spent, stop_reason, latency_ms, model: model.name };
        self.spending.report(request, &self.tasks, &mut self.cx);
    }
}

/// Calls of the current step.
impl TurnMachine {
    /// Processes the calls of the current step; `None` if there are none.
    pub(super) fn with_calls<R>(&mut self, act: impl FnOnce(&mut CallBatch, &mut CallRunner<'_>) -> R) -> Option<R> {
        let CurrentCalls { batch, guard, step_id, typed, check, cancelling } = self.tasks.calls_mut()?;
        let mut runner = CallRunner {
            cx: &mut self.cx,
            grants: &mut self.grants,
            rewinds: &mut self.rewinds,
            guard,
            layers: &mut self.layers,
            step_id,
            typed,
            check,
            cancelling,
            quitting: self.quitting,
        };
        Some(act(batch, &mut runner))
    }

    pub(super) fn on_planned(&mut self, plans: Vec<Planned>, at: InputTime) {
        self.cx.record_policy();
        self.goals.restart_check_time();
        self.with_calls(|batch, runner| batch.on_plans(plans, runner, at));
        self.advance(at);
    }

    pub(super) fn calls_hooked(&mut self, hooked: Vec<(usize, CallHooks)>, at: InputTime) {
        self.cx.record_policy();
        let to_plan = self.with_calls(|batch, runner| batch.on_hooks(hooked, runner)).unwrap_or_default();
        if to_plan.is_empty() {
            // Reports the calls that need no plan.
            self.on_planned(Vec::new(), at);
        } else {
            self.cx.out.effect(Effect::Plan(to_plan));
        }
    }

    /// Moves a running command to the background. A command in a layer is started again in the background after the
    /// user approves it.
    fn move_to_background(&mut self, tool_call_id: Option<CallId>) {
        if self.tasks.is_check() {
            return self.cx.out.notice("the check of a goal cannot run in the background");
        }
        let is_in_layer = self.with_calls(|batch, runner| batch.leave_layer(tool_call_id.as_ref(), runner)).unwrap_or(false);
        if is_in_layer {
            self.cx.out.commit(Durability::Process);
        } else {
            self.cx.out.effect(Effect::Background { tool_call_id });
        }
    }

    fn on_previewed(&mut self, index: usize, ticket: u64, outcome: Result<Plan, ToolError>, at: InputTime) {
        self.with_calls(|batch, runner| batch.on_preview(index, ticket, outcome, runner, at));
        self.advance(at);
        self.cx.out.commit(Durability::Process);
    }

    fn on_tool_output(&mut self, index: usize, text: String) {
        let call = self.tasks.calls().and_then(|batch| batch.calls().get(index));
        if let Some(tool_call_id) = call.map(|call| call.call.tool_call_id.clone()) {
            self.cx.out.event(EventKind::ToolOutputChunk { tool_call_id, text });
        }
    }

    fn on_decision(&mut self, approval_id: &ApprovalId, decision: Decision, at: InputTime) {
        self.goals.restart_check_time();
        let known = self.with_calls(|batch, runner| batch.decide(approval_id, decision, runner, at));
        if known != Some(true) {
            self.cx.out.notice(format!("approval `{approval_id}` is unknown or already decided"));
        }
        self.advance(at);
        // A denial is committed like an approval, even while other approvals are open.
        self.cx.out.commit(Durability::Process);
    }

    /// Denies an approval that has timed out.
    fn time_out(&mut self, ticket: u64, at: InputTime) {
        if self.with_calls(|batch, runner| batch.time_out(ticket, runner, at)) == Some(true) {
            self.advance(at);
            self.cx.out.commit(Durability::Process);
        }
    }

    /// Carries out the user's decision about a call with an unknown outcome.
    fn on_resolution(&mut self, id: &CallId, resolution: Resolution, at: InputTime) {
        if self.with_calls(|batch, runner| batch.resolve(id, resolution, runner)) != Some(true) {
            self.cx.out.notice(format!("no call `{id}` is waiting for a decision"));
        }
        self.advance(at);
    }

    fn answer_rule_question(&mut self, approval_id: ApprovalId, asked: RuleQuery, at: InputTime) {
        let answer = self.with_calls(|batch, runner| batch.ask_rule(&approval_id, asked, runner, at));
        match answer.unwrap_or_else(|| Ok(CallBatch::already_decided())) {
            Ok(told) => self.cx.out.event(EventKind::RuleTold { approval_id, told }),
            Err(offer) => self.cx.out.effect(Effect::Recent { approval_id, offer }),
        }
    }

    fn reach(&mut self, approval_id: ApprovalId, offer: usize, commands: Result<Vec<String>, String>, at: InputTime) {
        let told = self.with_calls(|batch, runner| batch.reach(&approval_id, offer, commands, runner, at)).flatten();
        if let Some(told) = told {
            self.cx.out.event(EventKind::RuleTold { approval_id, told });
        }
    }

    /// Marks the proposal of a pending approval as outdated or current.
    fn set_outdated(&mut self, approval_id: ApprovalId, outdated: bool) {
        if let Some(tool_call_id) = self.tasks.calls().and_then(|batch| batch.call_awaiting(&approval_id)).cloned() {
            self.cx.out.event(EventKind::ApprovalOutdated { approval_id, tool_call_id, outdated });
        }
    }

    /// Emits the proposed text of a file.
    fn show_proposed(&mut self, approval_id: ApprovalId, file: usize) {
        match self.tasks.calls().and_then(|batch| batch.proposed_text(&approval_id, file)) {
            Some(text) => self.cx.out.event(EventKind::ProposedShown { approval_id, file, text }),
            None => self.cx.out.notice("this proposal has no text to show"),
        }
    }
}

/// Policy, mode, model and budgets.
impl TurnMachine {
    fn on_policy_change(&mut self, change: PolicyChange, at: InputTime) {
        replace_policy(change, &mut self.cx);
        self.window.count_fixed(&self.cx);
        self.judge_again(at);
    }

    fn set_mode(&mut self, mode: Mode, at: InputTime) {
        if set_mode(mode, &mut self.cx) {
            self.judge_again(at);
        }
    }

    fn judge_again(&mut self, at: InputTime) {
        self.with_calls(|batch, runner| batch.judge_again(runner, at));
        self.cx.out.commit(Durability::Process);
        self.advance(at);
    }

    fn on_model_opened(&mut self, opened: Result<ModelFacts, Failure>, at: InputTime) {
        let opened = match self.fallbacks.on_opened(opened.map(|facts| self.prices.apply_to(facts))) {
            OpenedFallback::Other(opened) => opened,
            OpenedFallback::Ready(facts, failure) => return self.use_fallback(facts, &failure, at),
            OpenedFallback::Unusable(why, failure) => {
                self.cx.out.notice(why);
                // The user may have stopped the task in the meantime.
                if self.compactor.waits_for_model() {
                    self.fall_back_or_end_summary(failure, at);
                } else if matches!(self.tasks.phase(), Some(Phase::Retrying { .. })) {
                    self.fall_back_or_pause(failure);
                }
                return;
            }
        };
        match self.choice.on_opened(opened, &mut self.cx) {
            ModelUpdate::None => {}
            ModelUpdate::Learned => self.on_window_change(),
            ModelUpdate::Chosen(facts) => self.adopt_model(facts, at),
        }
    }

    fn adopt_model(&mut self, facts: ModelFacts, at: InputTime) {
        let what =
            if self.compactor.requested_at().is_some() { Some("summary") } else { self.tasks.stream().map(|_| "response") };
        let current = what.map(|what| (what, self.spending.request_model(&self.cx)));
        if !self.choice.adopt(facts, current, &mut self.cx) {
            return;
        }
        // The user's choice replaces the earlier one for good.
        drop(self.fallbacks.take_chosen());
        self.on_window_change();
        // A user who switches the model during a retry delay does not want to wait.
        if let Some(ticket) = self.compactor.ticket() {
            self.on_summary_timer(ticket, at);
        } else if matches!(self.tasks.phase(), Some(Phase::Retrying { .. })) {
            self.request_if_allowed(0, at);
        }
    }

    /// Continues the task or the compaction with a fallback model, unless it has ended in the meantime.
    fn use_fallback(&mut self, facts: ModelFacts, failure: &Failure, at: InputTime) {
        let is_for_summary = self.compactor.waits_for_model();
        if !is_for_summary && !matches!(self.tasks.phase(), Some(Phase::Retrying { .. })) {
            return;
        }
        let chosen = self.cx.options.model.clone();
        let does = if is_for_summary && !self.compactor.precedes_request() { "writing the summary" } else { "continuing" };
        let why = format!("{} is not responding ({}); {does} with this model", chosen.name, failure.message);
        self.fallbacks.replace(chosen);
        self.choice.switch(facts, &why, &mut self.cx);
        self.on_window_change();
        if is_for_summary {
            self.compactor.write_with(None);
            self.request_summary_if_allowed(at);
        } else {
            self.request_if_allowed(0, at);
        }
    }

    /// Opens the next fallback model for a request whose retries are exhausted. Pauses the task if there is none.
    pub(super) fn fall_back_or_pause(&mut self, failure: Failure) {
        let Some(name) = self.fallbacks.next(&failure, &self.cx) else { return self.pause(failure) };
        let ticket = self.cx.numbers.next_ticket();
        self.tasks.set_phase(Phase::Retrying { attempt: 0, ticket });
        self.cx.out.effect(Effect::OpenModel { key: None, name });
    }

    /// Switches back to the chosen model when a task begins or continues.
    pub(super) fn use_chosen_model(&mut self) {
        let Some(facts) = self.fallbacks.take_chosen() else { return };
        if self.cx.policy.check_model(&facts.name).is_err() {
            return;
        }
        self.choice.switch(facts, "switching back to the chosen model", &mut self.cx);
        self.on_window_change();
    }

    /// Handles a change of the model or of its known context window.
    fn on_window_change(&mut self) {
        self.window.on_model_change();
        self.compactor.limit_budget(self.window.message_budget(&self.cx));
    }

    /// Sets a budget. A task that is paused because of it continues.
    fn set_budget(&mut self, limit: BudgetLimit, at: InputTime) {
        if let Err(why) = self.spending.set_budget(limit, &mut self.tasks, &mut self.cx) {
            return self.cx.out.notice(why);
        }
        self.resume_within_budget(at);
    }

    /// Assumes a price for the model in use. A task that is paused because of the unknown price continues.
    fn assume_price(&mut self, price: AssumedPrice, at: InputTime) {
        if let Err(why) = self.prices.assume(price, &mut self.cx) {
            return self.cx.out.notice(why);
        }
        self.resume_within_budget(at);
    }

    /// Continues a task that is paused because of a budget, once no limit is exceeded.
    fn resume_within_budget(&mut self, at: InputTime) {
        if self.tasks.is_paused() && self.spending.is_paused() {
            match self.budget_failure(at) {
                None => self.continue_on_request(at),
                Some(failure) => self.cx.out.notice(format!("the budget is still too low: {}", failure.message)),
            }
        }
    }
}

/// Goals: commands of the user, ends of tasks, and limits.
impl TurnMachine {
    /// Sets a goal and starts its first task.
    pub(super) fn set_goal(&mut self, goal: Goal, at: InputTime) {
        if let Some(why) = self.goal_obstacle(&goal) {
            let message = Some(format!("the goal was not set: {why}"));
            let rejected = GoalProgress { ended: Some(GoalReason::Rejected), ..GoalProgress::new(goal, None) };
            self.cx.out.event(EventKind::GoalChanged(rejected.state(None, 0, message)));
            return self.report_goal(None);
        }
        if self.tasks.is_paused() {
            self.cx.out.notice("session resumed: the paused task has ended, and the goal starts a new task");
            self.end_task(TaskEnd::Cancelled);
        }
        self.queue.stop_steering(&mut self.cx.out);
        let text = goal.text.clone();
        self.goals.set(goal, self.spending.totals().cost_usd, &mut self.cx);
        self.report_goal(None);
        // The goal is committed with what follows: a queued prompt, or the first step.
        self.begin_task(text, at);
    }

    /// Returns the reason why a goal cannot be set now.
    fn goal_obstacle(&self, goal: &Goal) -> Option<String> {
        if let Err(why) = goal.validate() {
            return Some(why);
        }
        if self.goals.is_running() {
            return Some("another goal is active; end it first".to_owned());
        }
        if self.is_busy() && !self.tasks.is_paused() {
            return Some("a task is running; stop it, or wait until it has ended".to_owned());
        }
        let is_priced = self.cx.options.model.cost_usd(&Usage::default()).is_some();
        (goal.budget_usd.is_some() && !is_priced).then(|| {
            let name = self.cx.model_name();
            format!("the goal has a budget, but the price of `{name}` is unknown; assume a price, or omit the budget")
        })
    }

    /// Replaces the check. A paused goal then continues.
    pub(super) fn set_goal_check(&mut self, check: &str, at: InputTime) {
        if !self.goals.is_active() {
            return self.cx.out.notice("no goal is active");
        }
        if let Err(why) = validate_check(check) {
            return self.cx.out.notice(format!("the check is unchanged: {why}"));
        }
        if self.tasks.is_check() {
            return self.cx.out.notice("the check is running; change it when it has ended, or stop it with esc");
        }
        self.goals.replace_check(check.trim().to_owned(), &mut self.cx);
        self.cx.out.commit(Durability::Process);
        self.report_goal(None);
        if !self.is_busy() {
            self.continue_goal(at);
        }
    }

    /// Ends the goal, and interrupts its running work.
    pub(super) fn stop_goal(&mut self, at: InputTime) {
        if !self.goals.is_active() {
            return self.cx.out.notice("no goal is active");
        }
        let was_running = self.goals.is_running();
        self.end_goal(GoalReason::Stopped, "goal stopped".to_owned(), None);
        self.cx.out.commit(Durability::Process);
        if was_running && self.tasks.current().is_some() {
            self.interrupt(at);
        }
    }

    /// Continues a paused goal. Returns whether there is one.
    pub(super) fn continue_goal(&mut self, at: InputTime) -> bool {
        if !self.goals.is_active() {
            return false;
        }
        self.resume_goal();
        self.cx.out.commit(Durability::Process);
        self.advance_goal(at);
        true
    }

    /// Lets a paused goal continue with its next action.
    pub(super) fn resume_goal(&mut self) {
        if self.goals.resume(&mut self.cx) {
            self.report_goal(None);
        }
    }

    /// Records the end of a task for the goal. Returns the message for the user if the goal now waits for the user.
    pub(super) fn end_task_of_goal(&mut self, end: &TaskEnd) -> Option<String> {
        self.goals.on_task_end();
        match end {
            TaskEnd::Completed => None,
            TaskEnd::Failed { .. } => self.pause_goal(GoalReason::TaskFailed, "goal paused: its task failed"),
            TaskEnd::Cancelled => self.pause_goal(GoalReason::Interrupted, "goal paused: you interrupted it"),
        }
    }

    /// Pauses the goal if it is running. Returns the message for the user.
    pub(super) fn pause_goal(&mut self, reason: GoalReason, why: &str) -> Option<String> {
        if !self.goals.is_running() {
            return None;
        }
        self.goals.pause(reason, why.to_owned(), &mut self.cx);
        Some(why.to_owned())
    }

    /// Pauses the goal after the user interrupted work that precedes or follows its task.
    pub(super) fn interrupt_goal(&mut self) {
        let message = self.pause_goal(GoalReason::Interrupted, "goal paused: you interrupted it");
        self.cx.out.commit(Durability::Process);
        if message.is_some() {
            self.report_goal(message);
        }
    }

    fn end_goal(&mut self, reason: GoalReason, why: String, files: Option<&ChangedFiles>) {
        let message = self.goals.end(reason, why, files, &mut self.cx);
        self.report_goal(message);
    }

    /// Ends the goal if its time or its budget is used up. `next`: estimated usage of the next request. Returns whether
    /// the goal ended.
    pub(super) fn end_goal_at_limit(&mut self, next: Option<Usage>) -> bool {
        let cost = self.spending.totals().cost_usd;
        let Some((reason, why)) = self.goals.limit_reached(cost, next, &self.cx) else { return false };
        self.end_goal(reason, why, None);
        self.cx.out.commit(Durability::Process);
        true
    }

    /// Ends a task whose next request would exceed a limit of the goal. Returns whether the task ended.
    pub(super) fn end_task_at_goal_limit(&mut self, at: InputTime) -> bool {
        if !self.goals.is_running() || !self.end_goal_at_limit(Some(self.next_request(at))) {
            return false;
        }
        self.compactor.finish();
        self.fail(Failure::new(
            FailureKind::BudgetExceeded,
            "the task ended because its goal reached a limit",
            "continue the task without the goal, or set another goal",
        ));
        true
    }

    /// Ends the goal and interrupts its task when its time is used up. Returns whether the ticket belongs to the timer
    /// of the goal.
    pub(super) fn time_out_goal(&mut self, ticket: u64, at: InputTime) -> bool {
        if !self.goals.is_timer(ticket) {
            return false;
        }
        if self.end_goal_at_limit(None) && self.is_busy() {
            self.interrupt(at);
        }
        true
    }

    /// Pauses and reports the goal of an earlier process, unless it continues immediately.
    pub(super) fn restore_goal(&mut self, continues: bool) {
        if !self.goals.is_active() {
            return;
        }
        let message = if continues {
            None
        } else {
            self.pause_goal(GoalReason::SessionEnded, "goal paused: aye exited while it was active")
        };
        self.cx.out.commit(Durability::Process);
        self.report_goal(message);
    }
}

/// Rewinds.
impl TurnMachine {
    fn plan_rewind(&mut self, target: &RewindTarget, scope: RewindScope) {
        match self.rewinds.plan(target, scope, self.window.thread()) {
            Ok(effect) => self.cx.out.effect(effect),
            Err(why) => self.cx.out.notice(why),
        }
    }

    fn rewind(&mut self, target: &RewindTarget, scope: RewindScope, overwrite: Vec<PathBuf>, at: InputTime) {
        if self.rewinds.is_running() {
            return self.cx.out.notice("a rewind is already restoring files");
        }
        let aim = match self.rewinds.resolve(target, scope, self.window.thread()) {
            Ok(aim) => aim,
            Err(why) => return self.cx.out.notice(why),
        };
        if !self.end_waiting_task(at) {
            return self.cx.out.notice("a task is running; stop it first, then rewind");
        }
        // Open calls have results by now.
        let aim = self.rewinds.resolve(target, scope, self.window.thread()).unwrap_or(aim);
        let start = (self.queue.is_empty(), self.rewind_step());
        if let Some(number) = self.rewinds.begin(aim, overwrite, start, &mut self.cx.out) {
            self.on_files_rewound(number, Ok(FileRewindResult::default()), at);
        }
    }

    fn rewind_step(&self) -> u64 {
        u64::from(self.cx.numbers.steps()).max(1)
    }

    /// Ends a task that only waits for the user. Returns whether nothing is running afterwards.
    fn end_waiting_task(&mut self, at: InputTime) -> bool {
        if self.mentions.is_reading() || self.prompt_hooks.is_running() || self.compactor.is_running() {
            return false;
        }
        let (waits, works) = match self.tasks.phase() {
            None => return true,
            Some(Phase::Paused) => (true, false),
            Some(Phase::Working(batch)) => (batch.only_waits_for_user(), true),
            Some(Phase::Requesting(_) | Phase::Retrying { .. } | Phase::Compacting) => (false, false),
        };
        if waits {
            if works {
                self.close_calls(at);
                self.tasks.set_task_status(TaskStatus::ExecutingTools, &mut self.cx.out);
                self.tasks.set_task_status(TaskStatus::TaskRunning, &mut self.cx.out);
            }
            self.end_task(TaskEnd::Cancelled);
        }
        waits
    }

    fn on_files_rewound(&mut self, number: u32, outcome: Result<FileRewindResult, String>, at: InputTime) {
        let Some((begins_next, then)) = self.on_rewound(number, outcome) else { return };
        match then {
            Some(unfinished) => self.resume_without_task(unfinished, at),
            None if begins_next && !self.queue.is_empty() => self.start_next(at),
            None => {}
        }
        // A prompt may have been queued while files were restored.
        if begins_next && then.is_some() && !self.is_busy() && !self.queue.is_empty() {
            self.start_next(at);
        }
    }

    /// Finishes a rewind. Returns whether to start the next queued message, and how to continue if an earlier process
    /// started the rewind.
    fn on_rewound(&mut self, number: u32, outcome: Result<FileRewindResult, String>) -> Option<(bool, Option<ResumePolicy>)> {
        let after = self.rewinds.finish(number, outcome, self.window.thread_mut(), &mut self.cx.out)?;
        self.adopt_rewind(after.effect);
        Some((after.begins_next, after.then))
    }

    /// Applies a rewind to the rest of the session state.
    pub(super) fn adopt_rewind(&mut self, effect: RewindEffect) {
        if effect.forgets_task {
            self.tasks.forget_ended_task();
            self.guardrail.forget();
        }
        if effect.changes_thread {
            self.window.on_rewind();
            self.cx.set_planned_steps(Vec::new());
            self.grants.drop_mandate(&mut self.cx);
        }
    }

    /// Completes a rewind that an earlier process started. Returns whether there was one.
    pub(super) fn finish_rewind(&mut self, unfinished: ResumePolicy) -> bool {
        let (begins_next, step) = (self.queue.is_empty(), self.rewind_step());
        let Some(effect) = self.rewinds.resume(begins_next, unfinished, step) else { return false };
        if !begins_next {
            self.cx.out.event(self.queue.event());
        }
        self.cx.out.effect(effect);
        true
    }
}

/// Interrupts by the user, and the end of the session.
impl TurnMachine {
    /// Interrupts the task: the model stops, commands are interrupted, and file changes finish.
    pub(super) fn interrupt(&mut self, at: InputTime) {
        if self.tasks.calls().is_some() {
            self.cx.out.effect(Effect::InterruptTools);
        }
        self.cancel(at);
    }

    /// Cancels the task and kills running commands. The host abandons calls that do not end within their grace period,
    /// so the task always ends.
    fn kill(&mut self, at: InputTime) {
        self.cx.out.effect(Effect::KillTools);
        self.cancel(at);
    }

    /// Stops the model and starts no new calls. The task ends once the running calls have ended.
    fn cancel(&mut self, at: InputTime) {
        if self.stop_compaction(at) || self.prompt_hooks.cancel(&mut self.cx) || self.mentions.cancel() {
            self.interrupt_goal();
            return self.queue.return_all_to_draft(&mut self.cx.out);
        }
        if self.stop_hooks.cancel(&mut self.cx) {
            // The response is complete; only its hooks are stopped.
            self.interrupt_goal();
            self.queue.return_all_to_draft(&mut self.cx.out);
            return self.complete(at);
        }
        if !self.keep_response(at) {
            self.waste_current_request(at);
        }
        let Some(first) = self.tasks.cancel() else { return };
        // Messages sent after a stop start once the task has ended, so a second stop does not return them to the draft.
        if first {
            self.queue.return_all_to_draft(&mut self.cx.out);
        }
        match self.tasks.phase() {
            Some(Phase::Requesting(_)) => {
                self.cx.out.effect(Effect::StopModel);
                self.end_task(TaskEnd::Cancelled);
            }
            Some(Phase::Retrying { .. } | Phase::Compacting | Phase::Paused) => self.end_task(TaskEnd::Cancelled),
            Some(Phase::Working(_)) => {
                let first = self.tasks.current().map(|task| task.id().clone()).filter(|_| first);
                self.with_calls(|batch, runner| batch.stop(first, runner, at));
                self.advance(at);
            }
            None => {}
        }
    }

    /// Keeps the part of a response that streamed before the user interrupted it, and marks the interruption for the
    /// model. Incomplete calls are dropped. Returns whether any content had streamed.
    fn keep_response(&mut self, at: InputTime) -> bool {
        let Some((stream, _)) = self.tasks.stream_mut() else { return false };
        let (content, since) = (stream.take_content(), stream.requested_at());
        let model = self.spending.request_model(&self.cx);
        let Some(spent) = self.spending.interrupt_request(&mut self.tasks, &self.cx) else { return false };
        let request = CompletedRequest { spent, stop_reason: StopReason::Cancelled, latency_ms: at.millis_since(since), model };
        let is_empty = content.is_empty();
        let Some(message) = self.message(Role::Assistant, content, at) else { return true };
        self.cx.out.record(request.record(message.clone()));
        if !is_empty {
            self.window.push(message);
        }
        self.spending.report(request, &self.tasks, &mut self.cx);
        self.mark_interruption(at);
        true
    }

    /// Ends the step with a message that marks the interruption.
    fn mark_interruption(&mut self, at: InputTime) {
        let Some(message) = self.message(Role::User, vec![Part::Text { text: INTERRUPTED.to_owned() }], at) else { return };
        self.window.push(message.clone());
        self.record_completed_step(message);
    }

    /// Ends the session and preserves the state of its task. Running calls that make changes are stopped, and their
    /// outcomes are saved.
    fn quit(&mut self, at: InputTime) {
        self.quitting = true;
        if self.stop_hooks.cancel(&mut self.cx) {
            self.end_completed();
        }
        if let Some((stream, Some(step_id))) = self.tasks.stream_mut()
            && stream.save(&step_id, &mut self.cx.out)
        {
            self.cx.out.effect(Effect::StopModel);
        }
        // What was saved of the response is counted too.
        self.waste_current_request(at);
        self.cx.out.commit(Durability::Process);
        self.with_calls(|batch, runner| batch.stop_previews(runner));
        if self.tasks.calls().is_some_and(CallBatch::is_changing) {
            self.cx.out.effect(Effect::KillTools);
        }
        self.end_if_nothing_runs();
    }

    /// Ends the session once all changing calls have outcomes and all pending rules are saved or reported as failed.
    fn end_if_nothing_runs(&mut self) {
        let changes_run = self.tasks.calls().is_some_and(CallBatch::is_changing);
        if !changes_run && !self.grants.is_saving() && !self.rewinds.is_running() {
            self.cx.out.effect(Effect::End);
        }
    }

    /// Returns a new message of the current task.
    pub(super) fn message(&mut self, role: Role, content: Vec<Part>, at: InputTime) -> Option<Message> {
        let scope = self.tasks.message_scope()?;
        Some(self.cx.message(role, content, scope, at.now))
    }
}

#[cfg(test)]
impl TurnMachine {
    pub(super) fn is_compacting(&self) -> bool {
        self.compactor.is_running()
    }
}
