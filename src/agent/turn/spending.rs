//! Tracks usage and cost of the session and its task, and checks them against the budgets.

use super::super::limits::BYTES_PER_TOKEN;
use super::budget::{BudgetCheck, Budgets};
use super::completed_request::CompletedRequest;
use super::io::InputTime;
use super::turn_context::TurnContext;
use super::usage::{TaskUsage, UsageLedger};
use crate::ports::{Delta, ModelError, Record};
use crate::protocol::{
    AgentEvent, Budget, BudgetLimit, BudgetScope, BudgetUnit, EventKind, Failure, ModelFacts, Part, SAMPLED_BY_AGENT, Usage,
};
use crate::session::{Expense, Totals};

/// Input to the spending sub-machine.
#[derive(Debug)]
pub(super) enum SpendingInput<'a> {
    /// A request was sent to this model, with an estimate of its input tokens.
    RequestSent {
        model: ModelFacts,
        tokens: u64,
    },
    /// Part of a response arrived.
    Received(&'a Delta),
    /// A response is complete. Values that the provider did not report are estimated and marked as such.
    Responded {
        usage: Usage,
        content: &'a [Part],
        at: InputTime,
    },
    /// The user interrupted a response.
    Interrupted,
    /// A request ended without a response, possibly with an error.
    Wasted {
        error: Option<&'a ModelError>,
    },
    /// A response was interrupted by the end of the previous process. It was billed but never counted.
    Lost {
        bytes: usize,
        input_tokens: u64,
    },
    /// A server or a tool used the model, or the journal contains such usage.
    Counted(Expense),
    /// A review used a model. Its usage does not count towards a task.
    Reviewed(Expense),
    /// The journal contains a review's usage.
    ReviewRestored(Expense),
    /// An agent used a model.
    AgentSpent(Expense),
    /// A request was counted, and its result and cost are to be reported.
    Completed(CompletedRequest),
    /// Usage was counted without being reported.
    UsageChanged,
    /// The session was restored. The user was already warned by the previous process about budgets that are nearly
    /// exhausted.
    Restored,
    TaskBegun,
    TaskEnded,
    /// The user set a budget.
    BudgetSet(BudgetLimit),
    /// The user had set a budget before the session was resumed.
    BudgetRestored(BudgetLimit),
    /// The user requested the budgets.
    BudgetsRequested,
    /// The task was paused. Set to `true` if the reason is an exhausted budget.
    Paused(bool),
}

/// Output of the spending sub-machine.
#[derive(Debug)]
pub(super) enum SpendingOutput {
    /// This usage must be charged to the current task.
    Spent(Expense),
    /// A budget is in effect, together with this step limit, if any.
    BudgetSet { max_steps: Option<u32> },
}

/// Usage and budgets of the session.
#[derive(Debug, Default)]
pub(super) struct Spending {
    usage: UsageLedger,
    budgets: Budgets,
}

/// Input handling.
impl Spending {
    /// Handles an input. `task` is the usage of the current task, or of the last task that ended early.
    pub(crate) fn handle(
        &mut self,
        input: SpendingInput<'_>,
        task: Option<TaskUsage>,
        cx: &mut TurnContext,
    ) -> Option<SpendingOutput> {
        match input {
            SpendingInput::RequestSent { model, tokens } => self.usage.begin_request(model, tokens),
            SpendingInput::Received(delta) => self.usage.on_delta(delta),
            SpendingInput::Responded { usage, content, at } => {
                let spent = self.usage.end_with_answer(usage, content, &cx.options.model, at);
                return Some(self.count(spent));
            }
            SpendingInput::Interrupted => {
                let spent = self.usage.end_without_answer(None, &cx.options.model)?;
                return Some(self.count(spent));
            }
            SpendingInput::Wasted { error } => return self.waste(error, cx),
            SpendingInput::Lost { bytes, input_tokens } => return Some(self.count_lost(bytes, input_tokens, cx)),
            SpendingInput::Counted(spent) => return Some(self.count(spent)),
            SpendingInput::Reviewed(spent) => self.count_review(spent, task, cx),
            SpendingInput::ReviewRestored(spent) => self.usage.add(spent),
            SpendingInput::AgentSpent(spent) => return Some(self.count_agent(spent, cx)),
            SpendingInput::Completed(request) => self.report(request, task, cx),
            SpendingInput::UsageChanged => self.warn(task, cx),
            SpendingInput::Restored => {
                self.nearly_exhausted(task, cx);
            }
            SpendingInput::TaskBegun => {
                self.usage.begin_task();
                self.budgets.begin_task();
            }
            SpendingInput::TaskEnded => self.usage.end_task(self.task_usage(task)),
            SpendingInput::BudgetSet(limit) => return self.set_budget(limit, task, cx),
            SpendingInput::BudgetRestored(limit) => return self.restore_budget(limit, cx),
            SpendingInput::BudgetsRequested => self.show_budgets(task, cx),
            SpendingInput::Paused(is_for_budget) => self.budgets.set_paused(is_for_budget),
        }
        None
    }
}

/// Requests and their usage.
impl Spending {
    pub(crate) fn totals(&self) -> Totals {
        self.usage.totals()
    }

    /// Returns the name of the model that received the current request or, if there is none, of the current model.
    pub(crate) fn request_model(&self, cx: &TurnContext) -> String {
        self.usage.request_model().unwrap_or(cx.model_name()).to_owned()
    }

    /// Estimates the usage of the next request.
    pub(crate) fn next_request(&self, input_tokens: u64, cx: &TurnContext, at: InputTime) -> Usage {
        self.usage.next_request(input_tokens, &cx.options.model, cx.options.max_output_tokens, at)
    }

    /// Adds usage to the session totals. The returned output charges it to the task as well.
    fn count(&mut self, spent: Expense) -> SpendingOutput {
        self.usage.add(Expense { estimated: false, ..spent });
        SpendingOutput::Spent(spent)
    }

    /// Counts and records a request that ended without a response.
    fn waste(&mut self, error: Option<&ModelError>, cx: &mut TurnContext) -> Option<SpendingOutput> {
        let model = self.usage.request_model().filter(|model| *model != cx.model_name()).map(str::to_owned);
        let spent = self.usage.end_without_answer(error, &cx.options.model)?;
        let Expense { usage, cost_usd, estimated } = spent;
        cx.out.record(Record::Wasted { usage, cost_usd, estimated, model });
        Some(self.count(spent))
    }

    /// Counts a response that was interrupted by the end of the previous process.
    fn count_lost(&mut self, bytes: usize, input_tokens: u64, cx: &mut TurnContext) -> SpendingOutput {
        let output_tokens = (bytes / BYTES_PER_TOKEN) as u64;
        let usage = Usage { input_tokens, output_tokens, ..Usage::default() };
        let cost_usd = self.usage.charge(usage, &cx.options.model);
        cx.out.record(Record::Wasted { usage, cost_usd, estimated: true, model: None });
        let tokens = input_tokens + output_tokens;
        cx.out.notice(format!("aye exited during a response, which is lost; it counts as about {tokens} tokens"));
        self.count(Expense { usage, cost_usd, estimated: true })
    }

    /// Reports the result and cost of a request, and issues any budget warnings that are due.
    fn report(&mut self, request: CompletedRequest, task: Option<TaskUsage>, cx: &mut TurnContext) {
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
        self.warn(task, cx);
    }

    /// Counts, records and reports a request made by a review. The request does not belong to a task.
    fn count_review(&mut self, spent: Expense, task: Option<TaskUsage>, cx: &mut TurnContext) {
        let Expense { usage, cost_usd, estimated } = spent;
        self.usage.add(spent);
        cx.record_expense(Record::Reviewed { usage, cost_usd, estimated });
        let session_cost_usd = self.usage.totals().whole_cost_usd();
        cx.out.event(EventKind::ReviewSpent { usage, cost_usd, session_cost_usd, estimated });
        self.warn(task, cx);
    }

    /// Counts, records and reports a request made by an agent. The request counts towards the running task.
    fn count_agent(&mut self, spent: Expense, cx: &mut TurnContext) -> SpendingOutput {
        let Expense { usage, cost_usd, estimated } = spent;
        let output = self.count(spent);
        cx.record_expense(Record::Sampled { server: SAMPLED_BY_AGENT.to_owned(), usage, cost_usd, estimated });
        let session_cost_usd = self.usage.totals().whole_cost_usd();
        cx.out.event(EventKind::Agent(AgentEvent::Spent { usage, cost_usd, session_cost_usd, estimated }));
        output
    }

    /// Returns the usage of the current task, or else of the last one.
    fn task_usage(&self, task: Option<TaskUsage>) -> Option<TaskUsage> {
        task.or(self.usage.last_task())
    }
}

/// Budgets.
impl Spending {
    fn check<'a>(&'a self, task: Option<TaskUsage>, cx: &'a TurnContext) -> BudgetCheck<'a> {
        BudgetCheck { budgets: &self.budgets, cx, session: self.usage.totals(), task: self.task_usage(task) }
    }

    /// Returns the session's budgets for a front end that connects.
    pub(crate) fn budgets(&self, task: Option<TaskUsage>, cx: &TurnContext) -> Vec<Budget> {
        self.check(task, cx).list()
    }

    /// Returns the budgets of the session and the task, including the task's step limit.
    pub(crate) fn budgets_with_steps(&self, task: Option<TaskUsage>, cx: &TurnContext) -> Vec<Budget> {
        self.check(task, cx).list_with_steps()
    }

    fn show_budgets(&self, task: Option<TaskUsage>, cx: &mut TurnContext) {
        let budgets = self.check(task, cx).list_with_steps();
        cx.out.event(EventKind::BudgetShown { budgets });
    }

    /// Warns once about each budget that is nearly exhausted.
    fn warn(&mut self, task: Option<TaskUsage>, cx: &mut TurnContext) {
        for budget in self.nearly_exhausted(task, cx) {
            cx.out.event(EventKind::BudgetApproaching { budget });
        }
    }

    /// Returns budgets that are nearly exhausted. Each budget is returned only once.
    fn nearly_exhausted(&mut self, task: Option<TaskUsage>, cx: &TurnContext) -> Vec<Budget> {
        let budgets = self.check(task, cx).nearly_exhausted();
        self.budgets.mark_warned(&budgets);
        budgets
    }

    /// Sets a budget, or reports why it was rejected.
    fn set_budget(&mut self, limit: BudgetLimit, task: Option<TaskUsage>, cx: &mut TurnContext) -> Option<SpendingOutput> {
        if let Err(why) = self.check(task, cx).validate(limit) {
            cx.out.notice(why);
            return None;
        }
        let max_steps = self.apply_limit(limit, cx);
        cx.record_setting(Record::BudgetSet { limit });
        let task = task.map(|task| TaskUsage { max_steps: max_steps.unwrap_or(task.max_steps), ..task });
        self.show_budgets(task, cx);
        Some(SpendingOutput::BudgetSet { max_steps })
    }

    /// Restores a budget that the user set in the session.
    fn restore_budget(&mut self, limit: BudgetLimit, cx: &mut TurnContext) -> Option<SpendingOutput> {
        let is_for_this_run = cx
            .options
            .limits
            .iter()
            .find(|one| one.limit.scope == limit.scope && one.limit.unit == limit.unit)
            .is_some_and(|one| one.for_this_run);
        (!is_for_this_run).then(|| SpendingOutput::BudgetSet { max_steps: self.apply_limit(limit, cx) })
    }

    /// Applies a limit. If it is the step limit of tasks, returns the limit as a number of steps.
    fn apply_limit(&mut self, limit: BudgetLimit, cx: &mut TurnContext) -> Option<u32> {
        self.budgets.set(limit);
        if (limit.scope, limit.unit) != (BudgetScope::Task, BudgetUnit::Steps) {
            return None;
        }
        // The value was validated to be at least 1. Values larger than `u32::MAX` are capped.
        cx.options.max_steps = limit.limit.min(f64::from(u32::MAX)) as u32;
        Some(cx.options.max_steps)
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.budgets.is_paused()
    }

    /// Returns the reason why no further step may start, or `None` if one may.
    pub(crate) fn step_failure(&self, task: Option<TaskUsage>, cx: &TurnContext) -> Option<Failure> {
        self.check(task, cx).step_failure()
    }

    /// Returns the reason why a request with this estimated usage may not be sent, or `None` if it may.
    pub(crate) fn request_failure(&self, next: &Usage, task: Option<TaskUsage>, cx: &TurnContext) -> Option<Failure> {
        self.check(task, cx).request_failure(next, &cx.options.model)
    }

    /// Returns the reason why a request of this size may not be sent to a model other than the current one, or `None`
    /// if it may.
    pub(crate) fn other_request_failure(
        &self,
        model: &ModelFacts,
        (input_tokens, max_output_tokens): (u64, u64),
        task: Option<TaskUsage>,
        cx: &TurnContext,
        at: InputTime,
    ) -> Option<Failure> {
        let next = self.usage.next_request(input_tokens, model, max_output_tokens, at);
        self.check(task, cx).request_failure(&next, model)
    }
}
