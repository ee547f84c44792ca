//! What a command was kept from: the person may have it run once more with exactly that opened.

use super::calls::Batch;
use super::{Approver, Call, Machine, Moment};
use crate::ports::{Durability, Plan, Record};
use crate::protocol::{Amendment, ErrorCode, Mode, Outside, Risk, ToolResult};

/// What a call came to when it ran and was kept from something.
#[derive(Debug)]
pub(super) struct Held {
    first: ToolResult,
    latency_ms: u64,
    /// It runs, or ran, once more.
    again: bool,
}

impl Held {
    pub(super) fn new(first: ToolResult, latency_ms: u64) -> Self {
        Self { first, latency_ms, again: false }
    }

    pub(super) fn opens(&self) -> &[Outside] {
        &self.first.denied
    }

    pub(super) fn runs_again(&mut self) {
        self.again = true;
    }

    pub(super) fn waits(&self) -> bool {
        !self.again
    }

    /// How long the first run took, where its result is the one that counts.
    pub(super) fn latency_ms(&self) -> Option<u64> {
        (!self.again).then_some(self.latency_ms)
    }

    /// The result of the call: the second run's, if there was one; what the first came to is not lost where that says nothing.
    pub(super) fn or(&self, result: ToolResult) -> ToolResult {
        let names = names(&self.first.denied);
        if !self.again {
            let why = result.error.map_or_else(String::new, |error| match error.code {
                ErrorCode::Cancelled => ": the task was stopped".to_owned(),
                _ => format!(": {}", error.message),
            });
            let said = format!("[It was kept from {names}, and was not run again with that opened{why}]");
            return ToolResult { output_text: joined(&self.first.output_text, &said), ..self.first.clone() };
        }
        if result.error.is_none() || !result.output_text.is_empty() {
            return result;
        }
        let said = format!("[Before that it ran once, kept from {names}. Then it said:]");
        ToolResult { output_text: joined(&said, &self.first.output_text), ..result }
    }
}

impl Machine {
    /// Whether the person is asked before the model is told of this result.
    pub(super) fn may_be_opened(&self, call: &Call, result: &ToolResult) -> bool {
        let stopping = self.quitting || self.task.as_ref().is_none_or(|task| task.cancelling);
        let person = self.options.approver == Approver::Person && self.policy.mode() != Mode::Plan;
        let offline = call.amended.by.contains(&Amendment::Offline);
        person && !stopping && !offline && call.held.is_none() && !result.denied.is_empty()
    }

    /// Keeps a result back, saved, while the person is asked.
    pub(super) fn hold(&mut self, call: &mut Call, index: usize, result: ToolResult, latency_ms: u64) {
        let result = ToolResult { tool_call_id: call.call.tool_call_id.clone(), ..result };
        self.note(Record::KeptFrom { result: result.clone(), latency_ms });
        self.commit(Durability::Process);
        call.held = Some(Held::new(result, latency_ms));
        // Whatever was previewed has been kept.
        call.previewed = false;
        call.no_preview = None;
        self.plan_again(call, index);
    }

    /// No rule opens anything: the person does, for one run.
    pub(super) fn ask_to_open(&mut self, call: &mut Call, index: usize, plan: Plan, batch: &mut Batch, at: Moment) {
        if plan.opens.is_empty() {
            call.refuse(ErrorCode::PolicyDenied, "it cannot be opened for one run");
            return self.report(call, 0);
        }
        let names = names(&plan.opens);
        let reason = format!("it ran and was kept from {names}; a yes runs it once more with that opened");
        match self.policy.ask_call(&plan.tool_name, &plan.actions, at.now, reason) {
            Ok(mut question) => {
                if plan.opens.contains(&Outside::Network) {
                    question.risk = Risk::High;
                }
                self.ask(call, index, plan, question, batch, at);
            }
            Err(denial) => self.refuse_by_policy(call, &denial),
        }
    }
}

/// `example.com:443 and writing `/opt``.
fn names(places: &[Outside]) -> String {
    let names: Vec<String> = places.iter().map(ToString::to_string).collect();
    match names.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => names.concat(),
    }
}

fn joined(one: &str, other: &str) -> String {
    let line = if one.is_empty() || one.ends_with('\n') || other.is_empty() { "" } else { "\n" };
    format!("{one}{line}{other}")
}
