//! Control of the session: actions that concern several sub-machines, such as rewinds, usage and budgets.

use super::super::limits::BYTES_PER_TOKEN;
use super::approval::waited;
use super::budget::BudgetCheck;
use super::response::CompletedRequest;
use super::rewind::RewindEffect;
use super::usage::TaskUsage;
use super::{Allowance, Call, CallState, InputTime, Options, Phase, TurnMachine, Unfinished};
use crate::ports::{FilesRewound, ModelError, Record, TaskEnd};
use crate::protocol::{
    Budget, BudgetLimit, BudgetScope, BudgetUnit, EventKind, Failure, Part, RewindScope, RewindTarget, StopReason, TaskStatus,
    Usage,
};
use crate::session::Spent;
use jiff::Timestamp;
use std::path::PathBuf;

impl TurnMachine {
    pub(super) fn plan_rewind(&mut self, target: &RewindTarget, scope: RewindScope) {
        match self.rewinds.plan(target, scope, &self.thread) {
            Ok(effect) => self.out.push(effect),
            Err(why) => self.notice(why),
        }
    }

    pub(super) fn rewind(&mut self, target: &RewindTarget, scope: RewindScope, overwrite: Vec<PathBuf>, at: InputTime) {
        if self.rewinds.is_running() {
            return self.notice("a rewind is already restoring files");
        }
        let aim = match self.rewinds.resolve(target, scope, &self.thread) {
            Ok(aim) => aim,
            Err(why) => return self.notice(why),
        };
        if !self.stand_still(at) {
            return self.notice("a task is running; stop it first, then rewind");
        }
        // Open calls have results by now.
        let aim = self.rewinds.resolve(target, scope, &self.thread).unwrap_or(aim);
        let (begins_next, step) = (self.queue.is_empty(), self.rewind_step());
        let mut done = None;
        self.with_outputs(|machine, out| done = machine.rewinds.begin(aim, overwrite, (begins_next, step), out));
        if let Some(number) = done {
            self.files_rewound(number, Ok(FilesRewound::default()), at);
        }
    }

    fn rewind_step(&self) -> u64 {
        u64::from(self.counters.steps).max(1)
    }

    /// Ends a task that only waits for the user. Returns whether nothing is running now.
    fn stand_still(&mut self, at: InputTime) -> bool {
        if self.opening.is_some() || self.is_compacting() {
            return false;
        }
        let Some(task) = &self.task else { return true };
        let waits = match &task.phase {
            Phase::Paused => true,
            Phase::Working(calls) => {
                // An approval, or a call that a crash left open, only waits for the user.
                let waits = |call: &Call| matches!(call.state, CallState::Unknown | CallState::Asking(_));
                let still = |call: &Call| waits(call) || matches!(call.state, CallState::Deferred | CallState::Done(_));
                calls.iter().any(waits) && calls.iter().all(still)
            }
            Phase::Requesting(_) | Phase::Retrying { .. } | Phase::Compacting => false,
        };
        if waits {
            if matches!(task.phase, Phase::Working(_)) {
                self.close_calls(at);
                self.enter(TaskStatus::ExecutingTools);
                self.enter(TaskStatus::TaskRunning);
            }
            self.end(TaskEnd::Cancelled);
        }
        waits
    }

    pub(super) fn files_rewound(&mut self, number: u32, outcome: Result<FilesRewound, String>, at: InputTime) {
        let Some((begins_next, then)) = self.rewound(number, outcome) else { return };
        match then {
            Some(unfinished) => self.take_up_nothing(unfinished, at),
            None if begins_next && !self.queue.is_empty() => self.start_next(at),
            None => {}
        }
        // A prompt may have been queued while files were restored.
        if begins_next && then.is_some() && !self.is_busy() && !self.queue.is_empty() {
            self.start_next(at);
        }
    }

    /// Finishes a rewind. Returns whether the next queued message starts, and how to continue if the previous process started the rewind.
    pub(super) fn rewound(&mut self, number: u32, outcome: Result<FilesRewound, String>) -> Option<(bool, Option<Unfinished>)> {
        let mut after = None;
        self.with_outputs(|machine, out| after = machine.rewinds.finish(number, outcome, &mut machine.thread, out));
        let after = after?;
        self.adopt_rewind(after.effect);
        Some((after.begins_next, after.then))
    }

    /// Applies a rewind to the rest of the session.
    pub(super) fn adopt_rewind(&mut self, effect: RewindEffect) {
        if effect.forgets_task {
            (self.ended, self.blocked) = (None, None);
        }
        if effect.changes_thread {
            self.room.counting.counted = 0;
        }
    }

    /// Completes a rewind that the previous process started. Returns whether there was one.
    pub(super) fn finish_rewind(&mut self, unfinished: Unfinished) -> bool {
        let (begins_next, step) = (self.queue.is_empty(), self.rewind_step());
        let Some(effect) = self.rewinds.resume(begins_next, unfinished, step) else { return false };
        if !begins_next {
            self.emit(self.queue.event());
        }
        self.out.push(effect);
        true
    }

    /// Returns the model of the current request.
    pub(super) fn asked_model(&self) -> &str {
        self.usage.request_model().unwrap_or(&self.options.model.name)
    }

    /// Counts the usage of a response; what its provider did not report is estimated and marked so.
    pub(super) fn spend_on_answer(&mut self, usage: Usage, content: &[Part], at: InputTime) -> Spent {
        let spent = self.usage.end_with_answer(usage, content, &self.options.model, at);
        self.count(spent.usage, spent.cost_usd);
        spent
    }

    /// Counts a request without a response.
    pub(super) fn waste(&mut self, error: Option<&ModelError>) -> Option<Spent> {
        let spent = self.usage.end_without_answer(error, &self.options.model)?;
        let Spent { usage, cost_usd, estimated } = spent;
        self.count(usage, cost_usd);
        self.note(Record::Wasted { usage, cost_usd, estimated });
        Some(spent)
    }

    /// Reports the usage of a failed request that is not retried; for a retried one, the retry event does.
    pub(super) fn tell_of_waste(
        &mut self,
        wasted: Option<Spent>,
        model: String,
        stop_reason: StopReason,
        since: Timestamp,
        at: InputTime,
    ) {
        let Some(spent) = wasted else { return };
        self.tell_of_request(CompletedRequest { spent, stop_reason, latency_ms: waited(since, at), model });
    }

    /// Counts the current request, if there is one, before it is stopped.
    pub(super) fn waste_what_streams(&mut self, at: InputTime) {
        let of_task = self.task.as_ref().and_then(|task| match &task.phase {
            Phase::Requesting(stream) => Some(stream.since),
            Phase::Retrying { .. } | Phase::Compacting | Phase::Working(_) | Phase::Paused => None,
        });
        if let Some(since) = self.summary_asked_at().or(of_task) {
            let model = self.asked_model().to_owned();
            let wasted = self.waste(None);
            self.tell_of_waste(wasted, model, StopReason::Cancelled, since, at);
        }
    }

    /// Counts a response that was interrupted by the end of the previous process, because it was billed but never counted.
    pub(super) fn count_what_was_lost(&mut self, bytes: usize) {
        if bytes == 0 || self.task.is_none() {
            return;
        }
        let (input_tokens, output_tokens) = (self.next_input_tokens(), (bytes / BYTES_PER_TOKEN) as u64);
        let usage = Usage { input_tokens, output_tokens, ..Usage::default() };
        let cost_usd = self.usage.charge(usage, &self.options.model);
        self.count(usage, cost_usd);
        self.note(Record::Wasted { usage, cost_usd, estimated: true });
        let tokens = input_tokens + output_tokens;
        self.notice(format!("aye exited during a response, which is lost; it counts as about {tokens} tokens"));
    }

    /// Adds usage to the totals of the session and the task; also used when restoring a journal.
    pub(super) fn count(&mut self, usage: Usage, cost_usd: Option<f64>) {
        let spent = Spent { usage, cost_usd, estimated: false };
        self.usage.add(spent);
        if let Some(task) = &mut self.task {
            task.totals.add(spent);
        }
    }

    /// Resets the warnings and counts of the task when one begins.
    pub(super) fn count_anew(&mut self) {
        self.usage.begin_task();
        self.budgets.begin_task();
    }

    /// Notes the usage of the finished task, so that it can still be shown.
    pub(super) fn note_done(&mut self) {
        self.usage.end_task(self.last_task());
    }

    /// Returns the usage of the current or last task.
    pub(super) fn last_task(&self) -> Option<TaskUsage> {
        let of = |task: &super::Task| TaskUsage { totals: task.totals, step_count: task.step_count, max_steps: task.max_steps };
        self.task.as_ref().or(self.ended.as_ref()).map(of).or(self.usage.last_task())
    }

    /// Returns the cost of the session; `None` if a part of it is unknown.
    pub(super) fn session_cost(&self) -> Option<f64> {
        self.usage.totals().whole_cost_usd()
    }

    pub(super) fn task_cost(&self) -> Option<f64> {
        self.task.as_ref()?.totals.whole_cost_usd()
    }

    /// Returns the estimated usage of the next request.
    pub(super) fn next_request(&self, at: InputTime) -> Usage {
        let Options { model, max_output_tokens, .. } = &self.options;
        self.usage.next_request(self.next_input_tokens(), model, *max_output_tokens, at)
    }

    /// Returns the budgets with the usage counted against them.
    pub(super) fn budget_check(&self) -> BudgetCheck<'_> {
        BudgetCheck {
            budgets: &self.budgets,
            policy: &self.policy,
            options: &self.options,
            session: self.usage.totals(),
            steps: self.counters.steps,
            task: self.last_task(),
        }
    }

    /// Returns the session budgets, for a front end that connects.
    pub fn budgets(&self) -> Vec<Budget> {
        self.budget_check().list()
    }

    pub(super) fn show_budget(&mut self) {
        let budgets = self.budget_check().list_with_steps();
        self.emit(EventKind::BudgetShown { budgets });
    }

    /// Sets a budget. A task that is paused for it continues.
    pub(super) fn set_budget(&mut self, limit: BudgetLimit, at: InputTime) {
        if let Err(why) = self.budget_check().validate(limit) {
            return self.notice(why);
        }
        self.take_limit(limit);
        self.keep(Record::BudgetSet { limit });
        self.show_budget();
        let waits = self.task.as_ref().is_some_and(|task| matches!(task.phase, Phase::Paused));
        if waits && self.budgets.paused {
            match self.over_budget(at) {
                None => self.go_on(at),
                Some(failure) => self.notice(format!("the budget is still too low: {}", failure.message)),
            }
        }
    }

    /// Restores a budget that the user set in the session.
    pub(super) fn fold_budget(&mut self, limit: BudgetLimit) {
        let same = |one: &&Allowance| one.limit.scope == limit.scope && one.limit.unit == limit.unit;
        if !self.options.limits.iter().find(same).is_some_and(|one| one.for_this_run) {
            self.take_limit(limit);
        }
    }

    fn take_limit(&mut self, limit: BudgetLimit) {
        self.budgets.set(limit);
        if (limit.scope, limit.unit) == (BudgetScope::Task, BudgetUnit::Steps) {
            // The value was checked to be at least 1; the maximum stands for anything larger.
            self.options.max_steps = limit.limit.min(f64::from(u32::MAX)) as u32;
            for task in [&mut self.task, &mut self.ended].into_iter().flatten() {
                task.max_steps = self.options.max_steps;
            }
        }
    }

    /// Returns why the next request may not be sent, if its estimate would exceed a budget.
    pub(super) fn over_budget(&self, at: InputTime) -> Option<Failure> {
        self.budget_check().forbids(&self.next_request(at))
    }

    /// Warns once about each budget that is nearly used up.
    pub(super) fn warn_of_budgets(&mut self) {
        for budget in self.nearly_used() {
            self.emit(EventKind::BudgetApproaching { budget });
        }
    }

    /// Returns budgets that are nearly used up, each only once.
    pub(super) fn nearly_used(&mut self) -> Vec<Budget> {
        let budgets = self.budget_check().nearly_used();
        self.budgets.mark_warned(&budgets);
        budgets
    }
}
