//! Spending: usage and cost of the session and its task, checked against the budgets.

use super::super::limits::BYTES_PER_TOKEN;
use super::budget::{BudgetCheck, Budgets};
use super::completed_request::CompletedRequest;
use super::io::InputTime;
use super::tasks::Tasks;
use super::turn_context::TurnContext;
use super::usage::{TaskUsage, UsageLedger};
use crate::ports::{Delta, ModelError, Record};
use crate::protocol::{AgentEvent, Budget, BudgetLimit, BudgetScope, BudgetUnit, EventKind, Failure, ModelFacts, Part, Usage};
use crate::session::{Expense, Totals};

/// Name under which the journal counts the requests of agents.
const AGENT: &str = "Agent";

/// Usage of the session, and its budgets.
#[derive(Debug, Default)]
pub(super) struct Spending {
    usage: UsageLedger,
    budgets: Budgets,
}

/// Requests and their usage.
impl Spending {
    pub(crate) fn totals(&self) -> Totals {
        self.usage.totals()
    }

    pub(crate) fn begin_request(&mut self, model: ModelFacts, tokens: u64) {
        self.usage.begin_request(model, tokens);
    }

    pub(crate) fn on_delta(&mut self, delta: &Delta) {
        self.usage.on_delta(delta);
    }

    /// Returns the model of the current request.
    pub(crate) fn request_model(&self, cx: &TurnContext) -> String {
        self.usage.request_model().unwrap_or(cx.model_name()).to_owned()
    }

    /// Adds usage to the totals of the session and the task; also used when restoring a journal.
    pub(crate) fn count(&mut self, usage: Usage, cost_usd: Option<f64>, tasks: &mut Tasks) {
        let spent = Expense { usage, cost_usd, estimated: false };
        self.usage.add(spent);
        tasks.add_usage(spent);
    }

    /// Counts the usage of a response; values that the provider did not report are estimated and marked as estimates.
    pub(crate) fn end_request(
        &mut self,
        usage: Usage,
        content: &[Part],
        tasks: &mut Tasks,
        cx: &TurnContext,
        at: InputTime,
    ) -> Expense {
        let spent = self.usage.end_with_answer(usage, content, &cx.options.model, at);
        self.count(spent.usage, spent.cost_usd, tasks);
        spent
    }

    /// Counts a request whose response the user interrupted; `None` if nothing of it arrived.
    pub(crate) fn interrupt_request(&mut self, tasks: &mut Tasks, cx: &TurnContext) -> Option<Expense> {
        let spent = self.usage.end_without_answer(None, &cx.options.model)?;
        self.count(spent.usage, spent.cost_usd, tasks);
        Some(spent)
    }

    /// Counts and records a request without a response.
    pub(crate) fn waste(&mut self, error: Option<&ModelError>, tasks: &mut Tasks, cx: &mut TurnContext) -> Option<Expense> {
        let model = self.usage.request_model().filter(|model| *model != cx.model_name()).map(str::to_owned);
        let spent = self.usage.end_without_answer(error, &cx.options.model)?;
        let Expense { usage, cost_usd, estimated } = spent;
        self.count(usage, cost_usd, tasks);
        cx.out.record(Record::Wasted { usage, cost_usd, estimated, model });
        Some(spent)
    }

    /// Counts a response that was interrupted when the previous process exited. It was billed but not counted yet.
    pub(crate) fn count_lost(&mut self, bytes: usize, input_tokens: u64, tasks: &mut Tasks, cx: &mut TurnContext) {
        let output_tokens = (bytes / BYTES_PER_TOKEN) as u64;
        let usage = Usage { input_tokens, output_tokens, ..Usage::default() };
        let cost_usd = self.usage.charge(usage, &cx.options.model);
        self.count(usage, cost_usd, tasks);
        cx.out.record(Record::Wasted { usage, cost_usd, estimated: true, model: None });
        let tokens = input_tokens + output_tokens;
        cx.out.notice(format!("aye exited during a response, which is lost; it counts as about {tokens} tokens"));
    }

    /// Reports the result and cost of any request, and warns once about each budget that is nearly used up.
    pub(crate) fn report(&mut self, request: CompletedRequest, tasks: &Tasks, cx: &mut TurnContext) {
        let CompletedRequest { spent, stop_reason, latency_ms, model } = request;
        cx.out.event(EventKind::LlmRequestCompleted {
            model,
            usage: spent.usage,
            latency_ms,
            stop_reason,
            cost_usd: spent.cost_usd,
            session_cost_usd: self.usage.totals().whole_cost_usd(),
            estimated: spent.estimated,
        });
        self.warn(tasks, cx);
    }

    /// Counts, records and reports a request of a review. It belongs to no task.
    pub(crate) fn count_review(&mut self, spent: Expense, tasks: &Tasks, cx: &mut TurnContext) {
        let Expense { usage, cost_usd, estimated } = spent;
        self.usage.add(spent);
        cx.record_setting(Record::Reviewed { usage, cost_usd, estimated });
        let session_cost_usd = self.usage.totals().whole_cost_usd();
        cx.out.event(EventKind::ReviewSpent { usage, cost_usd, session_cost_usd, estimated });
        self.warn(tasks, cx);
    }

    /// Counts, records and reports a request of an agent. It counts toward the running task.
    pub(crate) fn count_agent(&mut self, spent: Expense, tasks: &mut Tasks, cx: &mut TurnContext) {
        let Expense { usage, cost_usd, estimated } = spent;
        self.count(usage, cost_usd, tasks);
        cx.record_setting(Record::Sampled { server: AGENT.to_owned(), usage, cost_usd, estimated });
        let session_cost_usd = self.usage.totals().whole_cost_usd();
        cx.out.event(EventKind::Agent(AgentEvent::Spent { usage, cost_usd, session_cost_usd, estimated }));
        self.warn(tasks, cx);
    }

    /// Adds a request of a review from the journal.
    pub(crate) fn restore_review(&mut self, spent: Expense) {
        self.usage.add(spent);
    }

    /// Estimates the usage of the next request.
    pub(crate) fn next_request(&self, input_tokens: u64, cx: &TurnContext, at: InputTime) -> Usage {
        self.usage.next_request(input_tokens, &cx.options.model, cx.options.max_output_tokens, at)
    }

    /// Resets the warnings and counts of the task when a task begins.
    pub(crate) fn begin_task(&mut self) {
        self.usage.begin_task();
        self.budgets.begin_task();
    }

    /// Stores the usage of the finished task, so that it can still be shown.
    pub(crate) fn end_task(&mut self, tasks: &Tasks) {
        self.usage.end_task(self.task_usage(tasks));
    }

    /// Returns the usage of the current or last task.
    fn task_usage(&self, tasks: &Tasks) -> Option<TaskUsage> {
        tasks.usage().or(self.usage.last_task())
    }
}

/// Budgets.
impl Spending {
    fn check<'a>(&'a self, tasks: &Tasks, cx: &'a TurnContext) -> BudgetCheck<'a> {
        BudgetCheck { budgets: &self.budgets, cx, session: self.usage.totals(), task: self.task_usage(tasks) }
    }

    /// Returns the session budgets, for a front end that connects.
    pub(crate) fn budgets(&self, tasks: &Tasks, cx: &TurnContext) -> Vec<Budget> {
        self.check(tasks, cx).list()
    }

    /// Returns the budgets of the session and the task, including the steps of the task.
    pub(crate) fn budgets_with_steps(&self, tasks: &Tasks, cx: &TurnContext) -> Vec<Budget> {
        self.check(tasks, cx).list_with_steps()
    }

    pub(crate) fn show_budgets(&self, tasks: &Tasks, cx: &mut TurnContext) {
        let budgets = self.check(tasks, cx).list_with_steps();
        cx.out.event(EventKind::BudgetShown { budgets });
    }

    /// Warns once about each budget that is nearly used up.
    pub(crate) fn warn(&mut self, tasks: &Tasks, cx: &mut TurnContext) {
        for budget in self.nearly_used(tasks, cx) {
            cx.out.event(EventKind::BudgetApproaching { budget });
        }
    }

    /// Returns budgets that are nearly used up, each only once.
    pub(crate) fn nearly_used(&mut self, tasks: &Tasks, cx: &TurnContext) -> Vec<Budget> {
        let budgets = self.check(tasks, cx).nearly_used();
        self.budgets.mark_warned(&budgets);
        budgets
    }

    /// Sets a budget. The error is the reason for the rejection.
    pub(crate) fn set_budget(&mut self, limit: BudgetLimit, tasks: &mut Tasks, cx: &mut TurnContext) -> Result<(), String> {
        self.check(tasks, cx).validate(limit)?;
        self.apply_limit(limit, tasks, cx);
        cx.record_setting(Record::BudgetSet { limit });
        self.show_budgets(tasks, cx);
        Ok(())
    }

    /// Restores a budget that the user set in the session.
    pub(crate) fn restore_budget(&mut self, limit: BudgetLimit, tasks: &mut Tasks, cx: &mut TurnContext) {
        let is_for_this_run = cx
            .options
            .limits
            .iter()
            .find(|one| one.limit.scope == limit.scope && one.limit.unit == limit.unit)
            .is_some_and(|one| one.for_this_run);
        if !is_for_this_run {
            self.apply_limit(limit, tasks, cx);
        }
    }

    fn apply_limit(&mut self, limit: BudgetLimit, tasks: &mut Tasks, cx: &mut TurnContext) {
        self.budgets.set(limit);
        if (limit.scope, limit.unit) == (BudgetScope::Task, BudgetUnit::Steps) {
            // The value was checked to be at least 1; the maximum stands for anything larger.
            cx.options.max_steps = limit.limit.min(f64::from(u32::MAX)) as u32;
            tasks.set_max_steps(cx.options.max_steps);
        }
    }

    /// Records whether the task is paused because a budget is used up.
    pub(crate) fn set_paused(&mut self, is_paused: bool) {
        self.budgets.set_paused(is_paused);
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.budgets.is_paused()
    }

    /// Returns the reason why no further step may start.
    pub(crate) fn step_failure(&self, tasks: &Tasks, cx: &TurnContext) -> Option<Failure> {
        self.check(tasks, cx).step_failure()
    }

    /// Returns the reason why a request with this estimated usage may not be sent.
    pub(crate) fn request_failure(&self, next: &Usage, tasks: &Tasks, cx: &TurnContext) -> Option<Failure> {
        self.check(tasks, cx).request_failure(next, &cx.options.model)
    }

    /// Returns the reason why a request with this many tokens may not be sent to a model other than the current one.
    pub(crate) fn other_request_failure(
        &self,
        model: &ModelFacts,
        (input_tokens, max_output_tokens): (u64, u64),
        tasks: &Tasks,
        cx: &TurnContext,
        at: InputTime,
    ) -> Option<Failure> {
        let next = self.usage.next_request(input_tokens, model, max_output_tokens, at);
        self.check(tasks, cx).request_failure(&next, model)
    }
}
