//! What may be used up: tokens, steps and money, of the session and of a task.

use super::{Machine, Moment};
use crate::protocol::{BudgetLimit, EventKind, Usage};

impl Machine {
    /// Counts what a request used; what it cost, where the price is known.
    pub(super) fn spend(&mut self, usage: Usage) -> Option<f64> {
        let cost_usd = self.options.model.cost_usd(&usage);
        self.usage += usage;
        add(&mut self.cost_usd, cost_usd);
        if let Some(task) = &mut self.task {
            task.usage += usage;
            add(&mut task.cost_usd, cost_usd);
        }
        cost_usd
    }

    pub(super) fn show_budget(&mut self) {
        self.emit(EventKind::BudgetShown { budgets: Vec::new() });
    }

    pub(super) fn set_budget(&mut self, _limit: BudgetLimit, _at: Moment) {
        self.show_budget();
    }
}

pub(super) fn add(sum: &mut Option<f64>, more: Option<f64>) {
    if let Some(more) = more {
        *sum = Some(sum.unwrap_or(0.0) + more);
    }
}
