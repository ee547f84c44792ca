//! Requests to the models of a session: their content, their permission and their usage, and the compaction that makes
//! space for them.

use super::compaction::{AfterSummary, CompactionFacts, CompactionInput, CompactionOutput, Compactor, SummaryCall};
use super::completed_request::CompletedRequest;
use super::context_window::{ContextInput, ContextOutput, ContextWindow};
use super::io::{Effect, InputTime};
use super::models::{ModelInput, ModelOutput, RequestState, TurnModels};
use super::options::AgentOptions;
use super::spending::{Spending, SpendingInput, SpendingOutput};
use super::turn_context::TurnContext;
use super::usage::TaskUsage;
use crate::agent::thread::Thread;
use crate::ports::ModelRequest;
use crate::protocol::{AssumedPrice, EventKind, Failure, FailureKind, ModelFacts, Remedy, StopReason, TaskId, Usage};
use jiff::Timestamp;

/// State of all requests: the thread that they send, the summaries that shorten it, the models, and the usage.
#[derive(Debug)]
pub(super) struct Requests {
    window: ContextWindow,
    compactor: Compactor,
    spending: Spending,
    models: TurnModels,
}

/// Part of the output of a compaction that concerns the task or the work queue.
#[derive(Debug)]
pub(super) enum CompactionStep {
    /// A compaction has begun, and its request may be sent. `precedes_request`: whether the request of the task waits
    /// for it.
    Begun { precedes_request: bool },
    /// The summary request may be retried, unless that is forbidden.
    Ready,
    /// The summary request can be sent.
    Send(Box<SummaryCall>),
    /// After this failure, a fallback model has to write the summary.
    FallbackNeeded(Failure),
    /// The task cannot continue without the summary and waits for the user.
    TaskPaused(Failure),
    /// The task cannot continue without the summary, and the summary request is forbidden.
    TaskForbidden(Failure),
    /// The compaction has ended.
    Ended(AfterSummary),
}

/// End of a request, as the provider or the user caused it.
#[derive(Debug)]
pub(super) struct RequestEnd {
    /// Model that the provider named; `None` for the model of the request.
    pub model: Option<String>,
    pub stop_reason: StopReason,
    /// Time at which the request was sent.
    pub since: Timestamp,
}

/// State.
impl Requests {
    pub(crate) fn new(options: &AgentOptions) -> Self {
        Self {
            window: ContextWindow::default(),
            compactor: Compactor::default(),
            spending: Spending::default(),
            models: TurnModels::new(options),
        }
    }

    /// Applies the options to the model in use, and counts the tokens of the system prompt and the tools.
    pub(crate) fn apply_options(&mut self, cx: &mut TurnContext) {
        self.models.apply(cx);
        self.window.handle(ContextInput::ToolsChanged, cx);
    }

    pub(crate) fn window(&self) -> &ContextWindow {
        &self.window
    }

    pub(crate) fn thread(&self) -> &Thread {
        self.window.thread()
    }

    pub(crate) fn thread_mut(&mut self) -> &mut Thread {
        self.window.thread_mut()
    }

    pub(crate) fn compactor(&self) -> &Compactor {
        &self.compactor
    }

    pub(crate) fn is_compacting(&self) -> bool {
        self.compactor.is_running()
    }

    pub(crate) fn spending(&self) -> &Spending {
        &self.spending
    }

    /// Returns the price assumed for the model in use.
    pub(crate) fn assumed_price(&self, cx: &TurnContext) -> Option<AssumedPrice> {
        self.models.assumed_price(cx)
    }
}

/// Inputs.
impl Requests {
    /// Passes an input to the context window.
    pub(crate) fn handle_context(&mut self, input: ContextInput<'_>, cx: &mut TurnContext) -> Option<ContextOutput> {
        self.window.handle(input, cx)
    }

    /// Passes an input to the spending. `task`: the usage of the current task, or of one that ended early.
    pub(crate) fn handle_spending(
        &mut self,
        input: SpendingInput<'_>,
        task: Option<TaskUsage>,
        cx: &mut TurnContext,
    ) -> Option<SpendingOutput> {
        self.spending.handle(input, task, cx)
    }

    /// Passes an input to the models.
    pub(crate) fn handle_models(&mut self, input: ModelInput<'_>, cx: &mut TurnContext) -> Option<ModelOutput> {
        self.models.handle(input, cx)
    }

    /// Passes an input to the compaction, and its changes of the thread to the context window. `task`: the task that is
    /// running or may be continued.
    pub(crate) fn handle_compaction(
        &mut self,
        input: CompactionInput,
        task: Option<TaskId>,
        cx: &mut TurnContext,
        at: InputTime,
    ) -> Vec<CompactionStep> {
        let facts = CompactionFacts { window: &self.window, task, model: self.models.summary_model(cx) };
        let outputs = self.compactor.handle(input, &facts, cx, at);
        outputs.into_iter().filter_map(|output| self.apply_compaction(output, cx)).collect()
    }

    /// Applies an output of the compaction. Returns the part that concerns the task.
    fn apply_compaction(&mut self, output: CompactionOutput, cx: &mut TurnContext) -> Option<CompactionStep> {
        match output {
            CompactionOutput::Summarized { until, verbatim, message } => {
                self.window.handle(ContextInput::Summarized { until: &until, verbatim: &verbatim, message }, cx);
            }
            CompactionOutput::AutomaticPaused => {
                self.window.handle(ContextInput::AutomaticPaused, cx);
            }
            CompactionOutput::HalfDropped => {
                self.window.handle(ContextInput::HalfDropped, cx);
            }
            CompactionOutput::Begun => {
                return Some(CompactionStep::Begun { precedes_request: self.compactor.precedes_request() });
            }
            CompactionOutput::Ready => return Some(CompactionStep::Ready),
            CompactionOutput::Send(call) => return Some(CompactionStep::Send(call)),
            CompactionOutput::FallbackNeeded(failure) => return Some(CompactionStep::FallbackNeeded(failure)),
            CompactionOutput::TaskPaused(failure) => return Some(CompactionStep::TaskPaused(failure)),
            CompactionOutput::TaskForbidden(failure) => return Some(CompactionStep::TaskForbidden(failure)),
            CompactionOutput::Ended(then) => return Some(CompactionStep::Ended(then)),
        }
        None
    }
}

/// Permission.
impl Requests {
    /// Returns the estimated usage of the next request.
    pub(crate) fn next_request(&self, cx: &TurnContext, at: InputTime) -> Usage {
        self.spending.next_request(self.window.next_input_tokens(cx), cx, at)
    }

    /// Returns the reason why no request may be sent: an expired policy, a model that is not allowed, a limit that no
    /// request can meet, or an exhausted budget.
    pub(crate) fn preflight(&self, task: Option<TaskUsage>, cx: &TurnContext, at: InputTime) -> Option<Failure> {
        cx.request_failure(at.now).or_else(|| self.window.window_failure(cx)).or_else(|| self.budget_failure(task, cx, at))
    }

    /// Returns the reason why the next request may not be sent, if its estimate would exceed a budget.
    pub(crate) fn budget_failure(&self, task: Option<TaskUsage>, cx: &TurnContext, at: InputTime) -> Option<Failure> {
        self.spending.request_failure(&self.next_request(cx, at), task, cx)
    }

    /// Returns the maximum number of tokens of the response to a request from a server or a tool. The error is the
    /// reason why such a request may not be sent.
    pub(crate) fn sampling_limit(
        &self,
        input_tokens: u64,
        wanted: u64,
        task: Option<TaskUsage>,
        cx: &TurnContext,
        at: InputTime,
    ) -> Result<u64, Failure> {
        if let Some(failure) = cx.request_failure(at.now) {
            return Err(failure);
        }
        let output_tokens = self.window.output_limit(cx).min(wanted);
        let window = cx.options.model.context_window;
        if window > 0 && input_tokens + output_tokens > window {
            let message = format!("about {input_tokens} input tokens do not fit the model's context window ({window})");
            return Err(Failure::new(FailureKind::ContextTooLong, message, "send a shorter request"));
        }
        // The full output limit counts, because the actual usage is not known yet.
        let next = Usage { input_tokens, output_tokens, ..Usage::default() };
        self.spending.request_failure(&next, task, cx).map_or(Ok(output_tokens), Err)
    }

    /// Returns the reason why the summary model cannot write the current summary.
    pub(crate) fn summary_obstacle(&self, task: Option<TaskUsage>, cx: &TurnContext, at: InputTime) -> Option<String> {
        let model = self.compactor.model()?;
        if let Err(denial) = cx.policy.check_model(&model.name) {
            return Some(format!("{} (rule: {})", denial.reason, denial.rule));
        }
        let messages = self.compactor.message_tokens(&self.window);
        let Some(tokens) = self.window.summary_input(model, messages, cx) else {
            return Some("the messages do not fit its context window".to_owned());
        };
        let over_budget = self.spending.other_request_failure(model, tokens, task, cx, at)?;
        Some(match over_budget.remedy {
            Some(Remedy::AssumePrice) => "its price is unknown, and there is a budget in dollars".to_owned(),
            _ => over_budget.text().to_owned(),
        })
    }
}

/// Sending, and the ends of requests.
impl Requests {
    /// Returns the next request of the task.
    ///
    /// # Errors
    ///
    /// Returns the reason if the thread cannot be made to fit the context window.
    pub(crate) fn prepare(&mut self, cx: &mut TurnContext) -> Result<ModelRequest, Failure> {
        if let Some(ContextOutput::Failed(failure)) = self.window.handle(ContextInput::RequestDue, cx) {
            return Err(failure);
        }
        let output = self.models.handle(ModelInput::RequestDue, cx);
        debug_assert!(output.is_none(), "a request changes no model");
        Ok(ModelRequest {
            system: cx.options.system.clone(),
            messages: self.window.thread().window(),
            tools: cx.options.tools.definitions.clone(),
            max_output_tokens: self.window.output_limit(cx),
            images: None,
            effort: cx.options.effort,
        })
    }

    /// Sends a request of the task.
    pub(crate) fn send(&mut self, request: ModelRequest, task: Option<TaskUsage>, cx: &mut TurnContext) {
        self.window.handle(ContextInput::RequestSent, cx);
        self.announce(cx.options.model.clone(), self.window.next_input_tokens(cx), task, cx);
        cx.out.effect(Effect::Request(request));
    }

    /// Sends a request for a summary.
    pub(crate) fn send_summary(&mut self, call: SummaryCall, task: Option<TaskUsage>, cx: &mut TurnContext) {
        let SummaryCall { request, model, estimated_input_tokens } = call;
        let is_other = model.is_some();
        self.announce(model.unwrap_or_else(|| cx.options.model.clone()), estimated_input_tokens, task, cx);
        cx.out.effect(if is_other { Effect::RequestSummary(request) } else { Effect::Request(request) });
    }

    /// Records and reports a request before it is sent.
    fn announce(&mut self, model: ModelFacts, estimated_input_tokens: u64, task: Option<TaskUsage>, cx: &mut TurnContext) {
        let output = self.models.handle(ModelInput::RequestSent(&model), cx);
        debug_assert!(output.is_none(), "a request changes no model");
        let name = model.name.clone();
        let output = self.spending.handle(SpendingInput::RequestSent { model, tokens: estimated_input_tokens }, task, cx);
        debug_assert!(output.is_none(), "usage is known when a request ends");
        cx.out.event(EventKind::LlmRequestStarted { model: name, estimated_input_tokens });
    }

    /// Counts the usage of the request in progress, which has ended; `None` if there is none. The caller charges it to
    /// the task.
    pub(crate) fn complete(
        &mut self,
        input: SpendingInput<'_>,
        end: RequestEnd,
        task: Option<TaskUsage>,
        cx: &mut TurnContext,
        at: InputTime,
    ) -> Option<CompletedRequest> {
        let RequestEnd { model, stop_reason, since } = end;
        let model = model.unwrap_or_else(|| self.spending.request_model(cx));
        let Some(SpendingOutput::Spent(spent)) = self.spending.handle(input, task, cx) else { return None };
        Some(CompletedRequest { spent, stop_reason, latency_ms: at.millis_since(since), model })
    }
}

/// Models.
impl Requests {
    /// Handles a change of the model or of its known context window.
    pub(crate) fn on_model_change(&mut self, task: Option<TaskId>, cx: &mut TurnContext, at: InputTime) {
        self.window.handle(ContextInput::ModelChanged, cx);
        let budget = self.window.message_budget(cx);
        let outputs = self.handle_compaction(CompactionInput::BudgetChanged(budget), task, cx, at);
        debug_assert!(outputs.is_empty(), "another budget continues no task");
    }

    /// Returns the next fallback model for a request whose retries are used up.
    pub(crate) fn next_fallback(&mut self, failure: &Failure, cx: &mut TurnContext) -> Option<String> {
        match self.models.handle(ModelInput::Overloaded(failure), cx) {
            Some(ModelOutput::FallbackFound(name)) => Some(name),
            _ => None,
        }
    }

    /// Returns the state of the requests while a model is opened. `is_responding`: whether the task receives a response;
    /// `is_retrying`: whether its request waits to be retried.
    pub(crate) fn state(&self, is_responding: bool, is_retrying: bool, cx: &TurnContext) -> RequestState {
        let what = if self.compactor.requested_at().is_some() { Some("summary") } else { is_responding.then_some("response") };
        let is_for_summary = self.compactor.waits_for_model();
        let waits_to = if is_for_summary && !self.compactor.precedes_request() {
            Some("writing the summary")
        } else {
            (is_for_summary || is_retrying).then_some("continuing")
        };
        RequestState { current: what.map(|what| (what, self.spending.request_model(cx))), waits_to }
    }
}

#[cfg(test)]
impl Requests {
    /// Uses the fallback models and the summary model of these options.
    pub(super) fn reload_models(&mut self, options: &AgentOptions) {
        self.models.reload(options);
    }
}
