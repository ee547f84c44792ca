//! Turn machine, which passes each input to the sub-machines that it concerns and connects their outputs.

use super::call_batch::CallBatch;
use super::calls::{ApprovalInput, CallsInput, CallsOutput, TurnCalls};
use super::compaction::CompactionInput;
use super::completed_request::CompletedRequest;
use super::context_window::{ContextInput, ContextOutput};
use super::goals::{GoalInput, GoalOutput, Goals};
use super::grants::GrantInput;
use super::guardrail::GuardrailNote;
use super::io::{Effect, Input, InputTime};
use super::loop_guard::RepeatCount;
use super::models::{ModelInput, ModelOutput};
use super::options::{AgentOptions, ResumePolicy};
use super::policy::{PolicyChange, denial_for};
use super::policy_in_force::{replace_policy, set_approve, set_mode};
use super::prompts::{PromptInput, PromptOutput, Prompts};
use super::requests::{RequestEnd, Requests};
use super::response::{StreamInput, StreamOutput};
use super::rewind::{RewindEffect, RewindInput, RewindOutput, Rewinds};
use super::rule_files::RuleFileResult;
use super::sampling::SamplingUsage;
use super::spending::{SpendingInput, SpendingOutput};
use super::state::left_behind_failure;
use super::stop_hooks::{StopHookInput, StopHooks};
use super::tasks::{Phase, TaskInput, TaskOutput, Tasks};
use super::turn_context::TurnContext;
use super::user_command::UserCommandOutputs;
use super::work_queue::{WorkItem, WorkQueue};
use crate::agent::thread::INTERRUPTED;
use crate::policy::Enforcer;
use crate::policy::permit::Denial;
use crate::ports::{Durability, FileRewindResult, Plan, Record, RecoveredCalls, TaskEnd};
use crate::protocol::{
    ApprovalId, AssumedPrice, Budget, BudgetLimit, Command, Decision, Effort, EventKind, Failure, FailureKind, Goal, Message,
    Mode, ModelFacts, Part, PlaceChange, RewindScope, RewindTarget, Role, SessionSnapshot, SessionStatus, StopReason, TaskStatus,
    ToolCall, Usage,
};
use crate::session::Expense;
use std::path::PathBuf;

/// Turn machine for a single session.
pub(crate) struct TurnMachine {
    pub(super) cx: TurnContext,
    pub(super) requests: Requests,
    pub(super) prompts: Prompts,
    pub(super) guardrail: GuardrailNote,
    pub(super) command_outputs: UserCommandOutputs,
    pub(super) tasks: Tasks,
    pub(super) rewinds: Rewinds,
    pub(super) stop_hooks: StopHooks,
    pub(super) goals: Goals,
    pub(super) calls: TurnCalls,
    /// Recovery information, available until the session is restored.
    pub(super) known: RecoveredCalls,
    /// Whether the user ended the session. Running calls finish, and no new work is started.
    pub(super) quitting: bool,
    /// Work that remains to be done for the current input.
    pub(super) work: WorkQueue,
}

/// Input handling.
impl TurnMachine {
    pub(crate) fn new(policy: Enforcer, options: AgentOptions) -> Self {
        let mut machine = Self {
            requests: Requests::new(&options),
            cx: TurnContext::new(policy, options),
            prompts: Prompts::default(),
            guardrail: GuardrailNote::default(),
            command_outputs: UserCommandOutputs::default(),
            tasks: Tasks::default(),
            rewinds: Rewinds::default(),
            stop_hooks: StopHooks::default(),
            goals: Goals::default(),
            calls: TurnCalls::default(),
            known: RecoveredCalls::default(),
            quitting: false,
            work: WorkQueue::default(),
        };
        machine.requests.apply_options(&mut machine.cx);
        machine
    }

    pub(crate) fn handle(&mut self, input: Input, at: InputTime) -> Vec<Effect> {
        self.goals.set_time(at.now);
        match input {
            input if self.quitting => self.wind_down(input, at),
            Input::Command(command) => self.command(command, at),
            Input::Delta(delta) if self.requests.is_compacting() => self.on_summary_delta(delta, at),
            Input::Delta(delta) => self.on_delta(delta, at),
            Input::ModelFailed(error) if self.requests.is_compacting() => self.on_summary_error(error, at),
            Input::ModelFailed(error) => self.on_model_error(error, at),
            Input::Planned(plans) => self.on_planned(CallsInput::Planned(plans), at),
            Input::CallsHooked(hooked) => self.on_planned(CallsInput::Hooked(hooked), at),
            Input::Hooked { ticket, outcome } => self.hooked(ticket, outcome, at),
            Input::Previewed { index, ticket, outcome } => {
                self.advance_after(CallsInput::Previewed { index, ticket, outcome }, at);
                self.work.add(WorkItem::Commit);
            }
            Input::ToolOutput { index, text } => self.report_calls(CallsInput::Printed { index, text }, at),
            Input::EffectsProgress { tool_call_id, progress } => {
                self.report_calls(CallsInput::Progressed { tool_call_id, progress }, at);
            }
            Input::ToolFinished { index, result, latency_ms } => {
                self.advance_after(CallsInput::Finished { index, result, latency_ms }, at);
            }
            Input::Outdated { approval_id, outdated } => {
                self.report_calls(CallsInput::Approval(ApprovalInput::Outdated { approval_id, outdated }), at);
            }
            Input::PolicyChanged(change) => self.on_policy_change(*change, at),
            Input::RuleFiles(RuleFileResult::Recent { approval_id, offer, commands }) => {
                self.report_calls(CallsInput::Approval(ApprovalInput::RecentFound { approval_id, offer, commands }), at);
            }
            Input::RuleFiles(kept) => self.calls.handle_grant(GrantInput::FilesChanged(kept), &mut self.cx),
            Input::Woken { ticket } => {
                if !self.time_out_goal(ticket, at) {
                    self.on_timer(ticket, at);
                    self.time_out(ticket, at);
                }
            }
            Input::ModelOpened(opened) => self.on_model_opened(opened, at),
            Input::SummaryModelKnown(facts) => self.pass_to_models(ModelInput::SummaryModelKnown(facts), at),
            Input::MentionsPlanned { ticket, plans } => self.pass_to_prompts(PromptInput::MentionsPlanned { ticket, plans }, at),
            Input::MentionsRead { ticket, results } => self.pass_to_prompts(PromptInput::MentionsRead { ticket, results }, at),
            Input::Sampled(sampled) => self.on_sampled(sampled),
            Input::Reviewed(spent) => self.report_spending(SpendingInput::Reviewed(spent)),
            Input::AgentSpent(spent) => self.count_agent(spent),
            Input::FilesRewound { number, outcome } => self.on_files_rewound(number, outcome, at),
            Input::ChangesListed { ticket, changes, scripts } => self.on_changes_listed(ticket, changes.as_ref(), scripts, at),
        }
        self.finish_work(at);
        self.cx.out.take()
    }

    /// Does the work that follows from an input until none remains.
    pub(super) fn finish_work(&mut self, at: InputTime) {
        while let Some(item) = self.work.take_next() {
            match item {
                WorkItem::Task { text, attached } => self.start(text, attached, at),
                WorkItem::NextPrompt => self.start_next(at),
                WorkItem::PromptAfterRewind => self.start_next_after_rewind(at),
                WorkItem::GoalRound => self.advance_goal(at),
                WorkItem::Continue => self.continue_on_request(at),
                WorkItem::Request { attempt } => self.request_if_allowed(attempt, at),
                WorkItem::SummaryBegun => self.allow_summary(at),
                WorkItem::SummaryDue => self.request_summary_if_allowed(at),
                WorkItem::SummaryRequest(call) => self.send_summary_request(*call),
                WorkItem::SummaryFallback(failure) => self.fall_back_for_summary(failure, at),
                WorkItem::Commit => self.cx.out.commit(Durability::Process),
                WorkItem::End => self.cx.out.effect(Effect::End),
            }
        }
    }

    fn command(&mut self, command: Command, at: InputTime) {
        match command {
            Command::Prompt { text } => self.prompt(text, at),
            Command::Steer { text } => self.steer(text, at),
            Command::EditWaiting { id, text } => self.pass_to_prompts(PromptInput::Edited { id, text }, at),
            Command::Decide { approval_id, decision } => self.on_decision(approval_id, decision, at),
            Command::Resolve { tool_call_id, resolution } => {
                self.advance_after(CallsInput::Resolved { tool_call_id, resolution }, at);
            }
            Command::Shell { line, shared } => self.run_user_command(&line, shared, at),
            Command::Preview { approval_id } => self.on_decision(approval_id, Decision::Previewed, at),
            Command::ShowProposed { approval_id, file } => {
                self.report_calls(CallsInput::Approval(ApprovalInput::ProposalRequested { approval_id, file }), at);
            }
            Command::Background { tool_call_id } => self.report_calls(CallsInput::BackgroundRequested { tool_call_id }, at),
            Command::Stop { id } => self.cx.out.effect(Effect::StopCommand { id }),
            Command::AskRule { approval_id, asked } => {
                self.report_calls(CallsInput::Approval(ApprovalInput::RuleQueried { approval_id, query: asked }), at);
            }
            Command::UndoGrant => self.calls.handle_grant(GrantInput::Undone, &mut self.cx),
            Command::ListGrants => self.cx.out.effect(Effect::ListGrants),
            Command::ListRewindPoints => self.report_rewind(RewindInput::PointsRequested),
            Command::PlanRewind { target, scope } => {
                self.report_rewind(RewindInput::PlanRequested { target: &target, scope });
            }
            Command::Rewind { target, scope, overwrite } => self.rewind(&target, scope, overwrite, at),
            Command::Cancel => self.interrupt(at),
            Command::Kill => self.kill(at),
            Command::Finish => self.cancel(at),
            Command::Continue => self.continue_on_request(at),
            Command::RetryNow => self.retry_now(at),
            Command::Compact { focus } => self.compact(focus, at),
            Command::UndoCompaction => self.undo_compaction(),
            Command::ShowContext => {
                let shown = self.requests.window().breakdown(self.tasks.continuable_id().as_ref(), &self.cx);
                self.cx.out.event(EventKind::ContextShown(shown));
            }
            Command::ShowBudget => self.report_spending(SpendingInput::BudgetsRequested),
            Command::SetBudget { limit } => self.set_budget(limit, at),
            Command::SetGoal { goal } => self.set_goal(goal, at),
            Command::SetGoalCheck { check } => self.set_goal_check(&check, at),
            Command::StopGoal => self.stop_goal(at),
            Command::AssumePrice { price } => self.pass_to_models(ModelInput::PriceAssumed(price), at),
            Command::SetModel { name } => self.pass_to_models(ModelInput::Chosen { name, key: None }, at),
            Command::AddKey { name, key } => self.pass_to_models(ModelInput::Chosen { name, key: Some(key) }, at),
            Command::SetEffort { effort } => self.pass_to_models(ModelInput::EffortChosen(effort), at),
            Command::ListModels { ask } => self.cx.out.effect(Effect::ListModels { ask }),
            Command::SetMode { mode } => self.set_mode(mode, at),
            Command::SetApprove { approve } => set_approve(approve, &mut self.cx),
            Command::ListUnasked => self.cx.out.event(EventKind::ListShown(self.calls.unasked_runs())),
            Command::ReloadPolicy => self.cx.out.effect(Effect::ReloadPolicy),
            Command::SaveDraft { text } => self.cx.out.effect(Effect::SaveDraft(text)),
            Command::Quit => self.quit(at),
        }
    }

    /// Handles those inputs that are still relevant while the session is ending.
    fn wind_down(&mut self, input: Input, at: InputTime) {
        match input {
            Input::ToolFinished { index, result, latency_ms } => {
                self.report_calls(CallsInput::Finished { index, result, latency_ms }, at);
                // A step whose calls all have results is complete, even if no other step follows.
                if self.tasks.calls().is_none_or(CallBatch::is_done) {
                    self.close_step(at);
                    self.cx.out.commit(Durability::Process);
                    // The end of the session pauses the task and records the pause.
                    self.report_task(TaskInput::Phase(Phase::Working(CallBatch::default())));
                }
                self.end_if_nothing_runs();
            }
            Input::ToolOutput { index, text } => self.report_calls(CallsInput::Printed { index, text }, at),
            Input::EffectsProgress { tool_call_id, progress } => {
                self.report_calls(CallsInput::Progressed { tool_call_id, progress }, at);
            }
            Input::Command(Command::SaveDraft { text }) => self.cx.out.effect(Effect::SaveDraft(text)),
            // It is too late to start a prompt, so new prompts remain in the queue.
            Input::Command(Command::Prompt { text }) => self.pass_to_prompts(PromptInput::Queued { text, steer: false }, at),
            Input::Command(Command::Steer { text }) => self.pass_to_prompts(PromptInput::Queued { text, steer: true }, at),
            Input::Command(Command::EditWaiting { id, text }) => self.pass_to_prompts(PromptInput::Edited { id, text }, at),
            Input::Command(Command::Quit) => self.cx.out.effect(Effect::End),
            Input::RuleFiles(kept) => {
                self.calls.handle_grant(GrantInput::FilesChanged(kept), &mut self.cx);
                self.end_if_nothing_runs();
            }
            Input::Sampled(sampled) => self.on_sampled(sampled),
            Input::Reviewed(spent) => self.report_spending(SpendingInput::Reviewed(spent)),
            Input::AgentSpent(spent) => self.count_agent(spent),
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

/// Session state, and queries by the host.
impl TurnMachine {
    /// Starts the session. Must be called exactly once, before any input.
    pub(crate) fn begin_session(&mut self) -> Vec<Effect> {
        self.report_task(TaskInput::SessionStatus(SessionStatus::Running));
        self.cx.out.take()
    }

    /// Ends the session. A session with an unfinished task is paused, and the task continues when the session is
    /// resumed. `saved` says whether everything was saved.
    pub(crate) fn end_session(&mut self, saved: bool) -> Vec<Effect> {
        let is_done = (self.tasks.current().is_none() || self.tasks.is_user_command()) && !self.tasks.has_task_set_aside();
        if !saved {
            self.report_task(TaskInput::SessionStatus(SessionStatus::Failed));
        } else if is_done {
            self.report_task(TaskInput::SessionStatus(SessionStatus::Completed));
        } else if !self.is_paused() {
            let failure = left_behind_failure();
            // A session with a pending approval is listed as waiting for the user.
            if !self.tasks.calls().is_some_and(CallBatch::is_asking) {
                self.cx.out.record(Record::Paused { failure: failure.clone() });
                self.cx.out.commit(Durability::Power);
            }
            self.cx.out.event(EventKind::SessionPaused { failure });
            self.report_task(TaskInput::SessionStatus(SessionStatus::Paused));
        }
        self.cx.out.take()
    }

    /// Returns whether the session is paused.
    pub(crate) fn is_paused(&self) -> bool {
        self.tasks.session_status() == SessionStatus::Paused
    }

    /// Sets whether saving is currently impossible. While decisions cannot be saved, the session is paused.
    pub(crate) fn set_stalled(&mut self, stalled: bool) -> Option<EventKind> {
        match self.pass_to_tasks(TaskInput::Stalled(stalled)) {
            Some(TaskOutput::StateChanged(SessionSnapshot { session_status, task })) => {
                Some(EventKind::StateChanged { session_status, task })
            }
            _ => None,
        }
    }

    /// Returns the number of tasks, the number of tokens used, and the cost in US dollars if all prices are known.
    pub(crate) fn totals(&self) -> (u32, u64, Option<f64>) {
        let totals = self.requests.spending().totals();
        (self.cx.numbers.tasks(), totals.tokens(), totals.whole_cost_usd())
    }

    /// Returns the session's budgets for a front end that connects.
    pub(crate) fn budgets(&self) -> Vec<Budget> {
        self.requests.spending().budgets(self.tasks.usage(), &self.cx)
    }

    /// Sets the recovery information. Must be called once before the session is restored.
    pub(crate) fn set_recovery_info(&mut self, known: RecoveredCalls) {
        self.known = known;
    }

    /// Sets the servers whose resources prompts may mention.
    pub(crate) fn set_servers(&mut self, names: Vec<String>) {
        self.prompts.set_servers(names);
    }

    /// Returns the pending approvals, each with the path states recorded in its plan.
    pub(crate) fn pending_changes(&self) -> impl Iterator<Item = (&ApprovalId, &[PlaceChange])> {
        self.tasks.calls().into_iter().flat_map(CallBatch::approvals)
    }

    /// Returns the reason why the current policy would deny a call that was allowed earlier, if it would.
    pub(in crate::agent) fn current_denial(&self, plan: &Plan, at: InputTime) -> Option<Denial> {
        denial_for(&self.cx.policy, &plan.tool_name, &plan.actions, at.now)
    }

    /// Returns whether an approved plan is in effect.
    pub(crate) fn has_mandate(&self) -> bool {
        self.cx.policy.has_mandate()
    }

    /// Returns whether a server needs the user's approval to use the model. Returns an error with the reason if the
    /// server must not use it at all.
    pub(crate) fn may_sample(&self, server: &str) -> Result<bool, String> {
        self.cx.policy.may_sample(server).map_err(|denial| format!("{} (rule: {})", denial.reason, denial.rule))
    }

    /// Returns the model and the maximum number of output tokens for a sampling request. Returns an error if the
    /// request must not be sent.
    pub(crate) fn sampling(&self, input_tokens: u64, wanted: u64, at: InputTime) -> Result<(ModelFacts, u64), Failure> {
        let output_tokens = self.requests.sampling_limit(input_tokens, wanted, self.tasks.usage(), &self.cx, at)?;
        Ok((self.cx.options.model.clone(), output_tokens))
    }

    /// Returns the current model, its effort and the budgets, for use by an agent.
    pub(crate) fn account(&self) -> (String, Option<Effort>, Vec<Budget>) {
        let budgets = self.requests.spending().budgets_with_steps(self.tasks.usage(), &self.cx);
        (self.cx.options.model.name.clone(), self.cx.options.effort, budgets)
    }

    /// Returns the price assumed for the current model, if any.
    pub(crate) fn assumed_price(&self) -> Option<AssumedPrice> {
        self.requests.assumed_price(&self.cx)
    }

    /// Returns the reason why not even the smallest request may be sent, or `None` if it may.
    pub(crate) fn request_obstacle(&self, at: InputTime) -> Option<Failure> {
        self.sampling(1, 1, at).err()
    }

    /// Counts and reports model usage by a server or a tool.
    fn on_sampled(&mut self, sampled: SamplingUsage) {
        let SamplingUsage { server, label, model, usage, fee_usd, estimated, stop_reason, latency_ms } = sampled;
        let cost_usd = model.cost_usd(&usage).map(|cost| cost + fee_usd);
        let spent = Expense { usage, cost_usd, estimated };
        self.spend(SpendingInput::Counted(spent));
        self.cx.record_expense(Record::Sampled { server, usage, cost_usd, estimated });
        let (input, output) = (usage.input_tokens, usage.output_tokens);
        self.cx.out.notice(format!("{label} used {}: {input} tokens in, {output} out", model.name));
        let request = CompletedRequest { spent, stop_reason, latency_ms, model: model.name };
        self.report_spending(SpendingInput::Completed(request));
    }

    /// Counts a request made by an agent.
    fn count_agent(&mut self, spent: Expense) {
        self.spend(SpendingInput::AgentSpent(spent));
        self.report_spending(SpendingInput::UsageChanged);
    }

    /// Passes an input to the spending sub-machine and charges the task's share of the usage to the task. Returns the
    /// usage that was counted.
    pub(super) fn spend(&mut self, input: SpendingInput<'_>) -> Option<Expense> {
        match self.requests.handle_spending(input, self.tasks.usage(), &mut self.cx)? {
            SpendingOutput::Spent(spent) => {
                self.charge(spent);
                Some(spent)
            }
            SpendingOutput::BudgetSet { max_steps } => {
                if let Some(max_steps) = max_steps {
                    self.report_task(TaskInput::StepLimit(max_steps));
                }
                None
            }
        }
    }

    /// Charges usage to the task.
    fn charge(&mut self, spent: Expense) {
        self.report_task(TaskInput::Spent(Expense { estimated: false, ..spent }));
    }

    /// Counts the usage of a request that has ended, and charges it to the task.
    pub(super) fn complete_request(
        &mut self,
        input: SpendingInput<'_>,
        end: RequestEnd,
        at: InputTime,
    ) -> Option<CompletedRequest> {
        let request = self.requests.complete(input, end, self.tasks.usage(), &mut self.cx, at)?;
        self.charge(request.spent);
        Some(request)
    }

    /// Passes on an input that concerns only the spending sub-machine.
    pub(super) fn report_spending(&mut self, input: SpendingInput<'_>) {
        let output = self.requests.handle_spending(input, self.tasks.usage(), &mut self.cx);
        debug_assert!(output.is_none(), "a report changes no task");
    }
}

/// Tasks and the calls of the current step.
impl TurnMachine {
    /// Passes an input to the tasks.
    pub(super) fn pass_to_tasks(&mut self, input: TaskInput<'_>) -> Option<TaskOutput> {
        self.tasks.handle(input, &mut self.cx)
    }

    /// Passes on an input that concerns only the tasks.
    pub(super) fn report_task(&mut self, input: TaskInput<'_>) {
        let output = self.pass_to_tasks(input);
        debug_assert!(output.is_none(), "nothing follows a report");
    }

    /// Counts the calls in a response and returns each call's repetition count.
    pub(super) fn count_repeats(&mut self, calls: &[ToolCall]) -> Vec<RepeatCount> {
        match self.pass_to_tasks(TaskInput::CallsRequested(calls)) {
            Some(TaskOutput::Repeated(rows)) => rows,
            _ => Vec::new(),
        }
    }

    /// Passes an input to the calls of the current step, and passes the resulting side effects to the rewind points.
    pub(super) fn pass_to_calls(&mut self, input: CallsInput, at: InputTime) -> CallsOutput {
        let mut output = self.calls.handle(input, self.tasks.calls_mut(), self.quitting, &mut self.cx, at);
        for started in output.started.drain(..) {
            self.report_rewind(RewindInput::CallStarted(started));
        }
        output
    }

    /// Passes an input to the calls without continuing any of them.
    pub(super) fn report_calls(&mut self, input: CallsInput, at: InputTime) {
        self.pass_to_calls(input, at);
    }

    /// Passes an input to the calls and continues those that were waiting for it.
    fn advance_after(&mut self, input: CallsInput, at: InputTime) {
        self.pass_to_calls(input, at);
        self.advance(at);
    }

    /// Handles planned calls, or the outcome of the hooks that run before planning.
    pub(super) fn on_planned(&mut self, input: CallsInput, at: InputTime) {
        self.cx.record_policy();
        let is_planned = matches!(input, CallsInput::Planned(_));
        let follows = self.pass_to_calls(input, at).is_known;
        if is_planned || !follows {
            self.report_to_goal(GoalInput::CallStarted);
            self.advance(at);
        }
    }

    fn on_decision(&mut self, approval_id: ApprovalId, decision: Decision, at: InputTime) {
        self.report_to_goal(GoalInput::CallStarted);
        self.advance_after(CallsInput::Approval(ApprovalInput::Decided { approval_id, decision }), at);
        // A denial is committed like an approval, even if other approvals are still pending.
        self.work.add(WorkItem::Commit);
    }

    /// Denies an approval that has timed out.
    fn time_out(&mut self, ticket: u64, at: InputTime) {
        if self.pass_to_calls(CallsInput::Approval(ApprovalInput::Woken { ticket }), at).is_known {
            self.advance(at);
            self.work.add(WorkItem::Commit);
        }
    }
}

/// Policy, mode, model and budgets.
impl TurnMachine {
    fn on_policy_change(&mut self, change: PolicyChange, at: InputTime) {
        replace_policy(change, &mut self.cx);
        self.pass_to_window(ContextInput::ToolsChanged);
        self.judge_again(at);
    }

    fn set_mode(&mut self, mode: Mode, at: InputTime) {
        if set_mode(mode, &mut self.cx) {
            self.judge_again(at);
        }
    }

    fn judge_again(&mut self, at: InputTime) {
        self.report_calls(CallsInput::PolicyChanged, at);
        self.cx.out.commit(Durability::Process);
        self.advance(at);
    }

    /// Passes an input to the models and handles their output.
    pub(super) fn pass_to_models(&mut self, input: ModelInput<'_>, at: InputTime) {
        match self.requests.handle_models(input, &mut self.cx) {
            Some(ModelOutput::Changed) => self.on_window_change(at),
            Some(ModelOutput::ChoiceReady) => {
                self.on_window_change(at);
                // A user who switches models during a retry delay does not want to wait for the delay.
                if self.requests.compactor().ticket().is_some() {
                    self.compaction(CompactionInput::RetryDue, at);
                } else if self.is_retrying() {
                    self.work.add(WorkItem::Request { attempt: 0 });
                }
            }
            Some(ModelOutput::FallbackReady) => {
                self.on_window_change(at);
                if self.requests.compactor().waits_for_model() {
                    self.compaction(CompactionInput::ModelReplaced, at);
                } else {
                    self.work.add(WorkItem::Request { attempt: 0 });
                }
            }
            // The user may have stopped the task in the meantime.
            Some(ModelOutput::FallbackUnusable(failure)) if self.requests.compactor().waits_for_model() => {
                self.work.add(WorkItem::SummaryFallback(failure));
            }
            Some(ModelOutput::FallbackUnusable(failure)) if self.is_retrying() => self.fall_back_or_pause(failure),
            Some(ModelOutput::Priced) => self.resume_within_budget(at),
            Some(ModelOutput::FallbackUnusable(_) | ModelOutput::FallbackFound(_)) | None => {}
        }
    }

    fn is_retrying(&self) -> bool {
        matches!(self.tasks.phase(), Some(Phase::Retrying { .. }))
    }

    fn on_model_opened(&mut self, opened: Result<ModelFacts, Failure>, at: InputTime) {
        let request = self.requests.state(self.tasks.stream().is_some(), self.is_retrying(), &self.cx);
        self.pass_to_models(ModelInput::Opened { opened, request }, at);
    }

    /// Opens the next fallback model for a request whose retries are exhausted, or pauses the task if there is none.
    pub(super) fn fall_back_or_pause(&mut self, failure: Failure) {
        let Some(name) = self.requests.next_fallback(&failure, &mut self.cx) else { return self.pause(failure) };
        let ticket = self.cx.numbers.next_ticket();
        self.report_task(TaskInput::Phase(Phase::Retrying { attempt: 0, ticket }));
        self.cx.out.effect(Effect::OpenModel { key: None, name });
    }

    /// Passes an input to the context window.
    pub(super) fn pass_to_window(&mut self, input: ContextInput<'_>) -> Option<ContextOutput> {
        self.requests.handle_context(input, &mut self.cx)
    }

    /// Handles a change to the model or to its known context window.
    fn on_window_change(&mut self, at: InputTime) {
        self.requests.on_model_change(self.tasks.continuable_id(), &mut self.cx, at);
    }

    /// Sets a budget. A task that is paused because of a budget then continues, unless a limit is still exceeded.
    fn set_budget(&mut self, limit: BudgetLimit, at: InputTime) {
        let output = self.requests.handle_spending(SpendingInput::BudgetSet(limit), self.tasks.usage(), &mut self.cx);
        let Some(SpendingOutput::BudgetSet { max_steps }) = output else { return };
        if let Some(max_steps) = max_steps {
            self.report_task(TaskInput::StepLimit(max_steps));
        }
        self.resume_within_budget(at);
    }

    /// Continues a task that is paused because of a budget, provided no limit is exceeded any longer.
    fn resume_within_budget(&mut self, at: InputTime) {
        if self.tasks.is_paused() && self.requests.spending().is_paused() {
            match self.requests.budget_failure(self.tasks.usage(), &self.cx, at) {
                None => self.work.add(WorkItem::Continue),
                Some(failure) => self.cx.out.notice(format!("the budget is still too low: {}", failure.message)),
            }
        }
    }
}

/// Goals: user commands, ends of tasks, and limits.
impl TurnMachine {
    /// Passes an input to the goal.
    pub(super) fn pass_to_goal(&mut self, input: GoalInput<'_>) -> Option<GoalOutput> {
        self.goals.handle(input, self.requests.spending().totals().cost_usd, &mut self.cx)
    }

    /// Passes on an input that concerns only the goal.
    pub(super) fn report_to_goal(&mut self, input: GoalInput<'_>) {
        let output = self.pass_to_goal(input);
        debug_assert!(output.is_none(), "nothing follows a report");
    }

    /// Reports a change to the goal that was waiting to be committed.
    pub(super) fn poll_goal_report(&mut self) {
        self.goals.poll_report(self.requests.spending().totals().cost_usd, &mut self.cx);
    }

    /// Sets a goal and starts its first task.
    pub(super) fn set_goal(&mut self, goal: Goal, at: InputTime) {
        let obstacle = self.goals.obstacle(&goal, self.is_busy() && !self.tasks.is_paused(), &self.cx);
        if obstacle.is_none() {
            if self.tasks.is_paused() {
                self.cx.out.notice("session resumed: the paused task has ended, and the goal starts a new task");
                self.end_task(TaskEnd::Cancelled);
            }
            self.pass_to_prompts(PromptInput::SteeringEnded, at);
        }
        let text = goal.text.clone();
        if self.pass_to_goal(GoalInput::Set { goal, obstacle }) == Some(GoalOutput::Begun) {
            // The goal is committed with the records that follow, which are those of a queued prompt or the first
            // step.
            self.begin_task(text, at);
        }
    }

    /// Replaces the goal's check. If the goal is paused, it then continues.
    pub(super) fn set_goal_check(&mut self, check: &str, at: InputTime) {
        let input = GoalInput::CheckReplaced { check, is_checking: self.tasks.is_check() };
        if self.pass_to_goal(input) == Some(GoalOutput::Due) && !self.is_busy() {
            self.continue_goal(at);
        }
    }

    /// Ends the goal and interrupts any work in progress for it.
    pub(super) fn stop_goal(&mut self, at: InputTime) {
        if self.pass_to_goal(GoalInput::Stopped) == Some(GoalOutput::WorkStopped) && self.tasks.current().is_some() {
            self.interrupt(at);
        }
    }

    /// Continues an active goal. Returns whether there is one.
    pub(super) fn continue_goal(&mut self, at: InputTime) -> bool {
        let is_active = self.goals.is_active();
        if is_active {
            self.report_to_goal(GoalInput::Continued);
            self.cx.out.commit(Durability::Process);
            self.advance_goal(at);
        }
        is_active
    }

    /// Pauses the goal after the user interrupted work that precedes or follows its task.
    pub(super) fn interrupt_goal(&mut self) {
        self.report_to_goal(GoalInput::Interrupted);
        self.cx.out.commit(Durability::Process);
        self.poll_goal_report();
    }

    /// Ends the goal if its time or budget is exhausted. `next` is the estimated usage of the next request, if there
    /// is one. Returns whether the goal ended.
    pub(super) fn end_goal_at_limit(&mut self, next: Option<Usage>) -> bool {
        self.pass_to_goal(GoalInput::WorkDue { next }) == Some(GoalOutput::LimitReached)
    }

    /// Ends a task whose next request would exceed one of the goal's limits. Returns whether the task ended.
    pub(super) fn end_task_at_goal_limit(&mut self, at: InputTime) -> bool {
        if !self.goals.is_running() || !self.end_goal_at_limit(Some(self.requests.next_request(&self.cx, at))) {
            return false;
        }
        self.compaction(CompactionInput::TaskEnded, at);
        self.fail(Failure::new(
            FailureKind::BudgetExceeded,
            "the task ended because its goal reached a limit",
            "continue the task without the goal, or set another goal",
        ));
        true
    }

    /// If the ticket belongs to the goal's timer, ends the goal and interrupts its task. Returns whether the ticket
    /// belongs to that timer.
    pub(super) fn time_out_goal(&mut self, ticket: u64, at: InputTime) -> bool {
        let is_timer = self.goals.is_timer(ticket);
        if is_timer && self.end_goal_at_limit(None) && self.is_busy() {
            self.interrupt(at);
        }
        is_timer
    }
}

/// Rewinds.
impl TurnMachine {
    /// Passes an input to the rewinds.
    pub(super) fn pass_to_rewinds(&mut self, input: RewindInput<'_>) -> Option<RewindOutput> {
        self.rewinds.handle(input, self.requests.thread(), &mut self.cx.out)
    }

    /// Passes on an input that concerns only the rewinds.
    pub(super) fn report_rewind(&mut self, input: RewindInput<'_>) {
        let output = self.pass_to_rewinds(input);
        debug_assert!(output.is_none(), "nothing was rewound");
    }

    fn rewind(&mut self, target: &RewindTarget, scope: RewindScope, overwrite: Vec<PathBuf>, at: InputTime) {
        if self.rewinds.is_running() {
            return self.cx.out.notice("a rewind is already restoring files");
        }
        let aim = match self.rewinds.resolve(target, scope, self.requests.thread()) {
            Ok(aim) => aim,
            Err(why) => return self.cx.out.notice(why),
        };
        if !self.end_waiting_task(at) {
            return self.cx.out.notice("a task is running; stop it first, then rewind");
        }
        // Open calls have received results by now, so resolve the target again.
        let aim = self.rewinds.resolve(target, scope, self.requests.thread()).unwrap_or(aim);
        let (target, begins_next, step) = (Box::new(aim), self.prompts.queue().is_empty(), self.rewind_step());
        let output = self.pass_to_rewinds(RewindInput::Started { target, overwrite, begins_next, step });
        if let Some(RewindOutput::Ready(number)) = output {
            self.on_files_rewound(number, Ok(FileRewindResult::default()), at);
        }
    }

    fn rewind_step(&self) -> u64 {
        u64::from(self.cx.numbers.steps()).max(1)
    }

    /// Ends a task that is merely waiting for the user. Returns whether nothing is running afterwards.
    fn end_waiting_task(&mut self, at: InputTime) -> bool {
        if self.prompts.is_preparing() || self.requests.is_compacting() {
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
                self.report_task(TaskInput::Status(TaskStatus::ExecutingTools));
                self.report_task(TaskInput::Status(TaskStatus::TaskRunning));
            }
            self.end_task(TaskEnd::Cancelled);
        }
        waits
    }

    fn on_files_rewound(&mut self, number: u32, outcome: Result<FileRewindResult, String>, at: InputTime) {
        let Some((begins_next, then)) = self.on_rewound(number, outcome) else { return };
        match then {
            Some(unfinished) => self.resume_without_task(unfinished, at),
            None if begins_next && !self.prompts.queue().is_empty() => self.start_next(at),
            None => {}
        }
        // A prompt may have been queued while the files were being restored.
        if begins_next && then.is_some() {
            self.work.add(WorkItem::PromptAfterRewind);
        }
    }

    fn start_next_after_rewind(&mut self, at: InputTime) {
        if !self.is_busy() && !self.prompts.queue().is_empty() {
            self.start_next(at);
        }
    }

    /// Finishes a rewind. Returns whether to start the next queued message, and how to continue if the rewind was
    /// started by an earlier process.
    fn on_rewound(&mut self, number: u32, outcome: Result<FileRewindResult, String>) -> Option<(bool, Option<ResumePolicy>)> {
        let output = self.pass_to_rewinds(RewindInput::FilesRewound { number, outcome });
        let Some(RewindOutput::Finished(after)) = output else { return None };
        self.adopt_rewind(after.effect);
        Some((after.begins_next, after.then))
    }

    /// Applies a rewind's effect to the rest of the session state.
    pub(super) fn adopt_rewind(&mut self, effect: RewindEffect) {
        if effect.forgets_task {
            self.report_task(TaskInput::EndedForgotten);
            self.guardrail.forget();
        }
        if let Some(change) = effect.thread {
            self.pass_to_window(ContextInput::Rewound(change));
            self.cx.set_planned_steps(Vec::new());
            self.calls.handle_grant(GrantInput::TaskEnded, &mut self.cx);
        }
    }

    /// Completes a rewind that an earlier process started. Returns whether there was one.
    pub(super) fn finish_rewind(&mut self, unfinished: ResumePolicy) -> bool {
        let (begins_next, step) = (self.prompts.queue().is_empty(), self.rewind_step());
        if !self.rewinds.is_running() {
            return false;
        }
        if !begins_next {
            self.cx.out.event(self.prompts.queue().event());
        }
        self.report_rewind(RewindInput::Resumed { begins_next, then: unfinished, step });
        true
    }
}

/// Interruption by the user, and the end of the session.
impl TurnMachine {
    /// Interrupts the task: the model stops, commands are interrupted, and file changes run to completion.
    pub(super) fn interrupt(&mut self, at: InputTime) {
        if self.tasks.calls().is_some() {
            self.cx.out.effect(Effect::InterruptTools);
        }
        self.cancel(at);
    }

    /// Cancels the task and kills running commands. The host abandons calls that do not end within their grace
    /// period, which guarantees that the task ends.
    fn kill(&mut self, at: InputTime) {
        self.cx.out.effect(Effect::KillTools);
        self.cancel(at);
    }

    /// Stops the model and starts no new calls. The task ends once the running calls have ended.
    fn cancel(&mut self, at: InputTime) {
        if self.stop_compaction(at) || self.cancel_preparation(at) {
            self.interrupt_goal();
            return self.pass_to_prompts(PromptInput::AllReturned, at);
        }
        if self.stop_hooks.handle(StopHookInput::Cancelled, &mut self.cx).is_some() {
            // The response is complete; only its hooks are stopped.
            self.interrupt_goal();
            self.pass_to_prompts(PromptInput::AllReturned, at);
            return self.complete(at);
        }
        if !self.keep_response(at) {
            self.waste_current_request(at);
        }
        let Some(TaskOutput::Cancelling { first }) = self.pass_to_tasks(TaskInput::Cancelled) else { return };
        // Messages sent after a stop are started once the task has ended, so a second stop must not return them to
        // the draft.
        if first {
            self.pass_to_prompts(PromptInput::AllReturned, at);
        }
        match self.tasks.phase() {
            Some(Phase::Requesting(_)) => {
                self.cx.out.effect(Effect::StopModel);
                self.end_task(TaskEnd::Cancelled);
            }
            Some(Phase::Retrying { .. } | Phase::Compacting | Phase::Paused) => self.end_task(TaskEnd::Cancelled),
            Some(Phase::Working(_)) => {
                let first = self.tasks.current().map(|task| task.id().clone()).filter(|_| first);
                self.advance_after(CallsInput::Stopped { first }, at);
            }
            None => {}
        }
    }

    /// Stops the preparation of a prompt. Returns whether a prompt was being prepared.
    fn cancel_preparation(&mut self, at: InputTime) -> bool {
        matches!(self.prompts.handle(PromptInput::Cancelled, &mut self.cx, at), Some(PromptOutput::Cancelled))
    }

    /// Saves the part of a response that had been streamed when the user interrupted it, and marks the interruption
    /// for the model. Incomplete calls are dropped. Returns whether any part of a response had been received.
    fn keep_response(&mut self, at: InputTime) -> bool {
        let output = self.pass_to_tasks(TaskInput::Stream(StreamInput::Interrupted));
        let Some(TaskOutput::Stream(StreamOutput::Interrupted { content, since })) = output else { return false };
        let end = RequestEnd { model: None, stop_reason: StopReason::Cancelled, since };
        let Some(request) = self.complete_request(SpendingInput::Interrupted, end, at) else { return false };
        let is_empty = content.is_empty();
        let Some(message) = self.message(Role::Assistant, content, at) else { return true };
        self.cx.out.record(request.record(message.clone()));
        if !is_empty {
            self.pass_to_window(ContextInput::Added(message));
        }
        self.report_spending(SpendingInput::Completed(request));
        self.mark_interruption(at);
        true
    }

    /// Ends the step with a message that marks the interruption.
    fn mark_interruption(&mut self, at: InputTime) {
        let Some(message) = self.message(Role::User, vec![Part::Text { text: INTERRUPTED.to_owned() }], at) else { return };
        self.pass_to_window(ContextInput::Added(message.clone()));
        self.record_completed_step(message);
    }

    /// Ends the session while preserving the state of its task. Running calls that make changes are stopped, and
    /// their outcomes are saved.
    fn quit(&mut self, at: InputTime) {
        self.quitting = true;
        if self.stop_hooks.handle(StopHookInput::Cancelled, &mut self.cx).is_some() {
            self.end_completed();
        }
        if self.pass_to_tasks(TaskInput::Stream(StreamInput::SessionEnding)).is_some() {
            self.cx.out.effect(Effect::StopModel);
        }
        // The saved part of the response is counted too.
        self.waste_current_request(at);
        self.cx.out.commit(Durability::Process);
        self.report_calls(CallsInput::SessionEnding, at);
        self.end_if_nothing_runs();
    }

    /// Ends the session once all changing calls have outcomes and all pending rules have been saved or reported as
    /// failed.
    fn end_if_nothing_runs(&mut self) {
        let changes_run = self.tasks.calls().is_some_and(CallBatch::is_changing);
        if !changes_run && !self.calls.is_saving() && !self.rewinds.is_running() {
            self.cx.out.effect(Effect::End);
        }
    }

    /// Returns a new message for the current task, or `None` if there is no task.
    pub(super) fn message(&mut self, role: Role, content: Vec<Part>, at: InputTime) -> Option<Message> {
        let scope = self.tasks.message_scope()?;
        Some(self.cx.message(role, content, scope, at.now))
    }
}

#[cfg(test)]
impl TurnMachine {
    pub(super) fn is_compacting(&self) -> bool {
        self.requests.is_compacting()
    }
}
