//! Sampling requests from MCP servers to the session's model. Every request must be allowed by the policy, which may
//! also require the user's approval. Requests run one at a time, without tools and without the thread.

mod request;

use crate::agent::context::estimate;
use crate::agent::limits::{BYTES_PER_TOKEN, CHANNEL_DEPTH, MAX_ELICITATIONS};
use crate::agent::turn::SamplingUsage;
use crate::ports::{Completion, Delta, ModelRequest, ModelStream};
use crate::protocol::{Elicitation, ElicitationAnswer, ElicitationKind, ModelFacts, Part, StopReason, Usage};
use futures_util::StreamExt;
use request::{SamplingMessages, read};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

/// Sampling request from a server, with the channel for its response.
pub(crate) struct Sampling {
    pub server: String,
    /// Parameters of `sampling/createMessage`.
    pub request: Value,
    /// Whether a user is available to approve the request.
    pub person: bool,
    pub answer: oneshot::Sender<Result<Value, String>>,
}

/// Phase that a sampling request has entered.
pub(super) enum SamplingPhase {
    /// Approved, and waiting for earlier requests to finish.
    Approved(ApprovedSampling),
    /// Ended. Contains the usage, if any.
    Over(Option<SamplingUsage>),
}

pub(super) struct ApprovedSampling {
    server: String,
    conversation: SamplingMessages,
    answer: oneshot::Sender<Result<Value, String>>,
}

impl ApprovedSampling {
    pub(super) fn tokens(&self) -> u64 {
        self.conversation.tokens()
    }

    /// Returns the maximum number of output tokens requested by the server.
    pub(super) fn most_tokens(&self) -> u64 {
        self.conversation.most_tokens
    }

    pub(super) fn refuse(self, why: String) {
        refuse(self.answer, why);
    }
}

/// Queue of sampling requests. Requests are sent one at a time, because each estimate is checked against the budget
/// that remains after the previous request has been counted.
pub(super) struct SamplingQueue {
    waiting: VecDeque<ApprovedSampling>,
    busy: bool,
    phases: mpsc::Sender<SamplingPhase>,
}

impl SamplingQueue {
    /// Creates a queue and the receiver for the phases of its requests.
    pub(super) fn new() -> (Self, mpsc::Receiver<SamplingPhase>) {
        let (phases, receive) = mpsc::channel(CHANNEL_DEPTH);
        (Self { waiting: VecDeque::new(), busy: false, phases }, receive)
    }

    /// Queues or refuses a request. `asks` says whether the policy requires approval, or why it denies the request.
    /// If the user has to approve the request, returns the approval prompt and the channel for the user's answer.
    pub(super) fn add(
        &mut self,
        sampling: Sampling,
        asks: Result<bool, String>,
        facts: &ModelFacts,
    ) -> Option<(Elicitation, oneshot::Sender<ElicitationAnswer>)> {
        let Sampling { server, request, person, answer } = sampling;
        match Self::prepare(&server, &request, person, asks, facts) {
            Err(why) => refuse(answer, why),
            Ok((conversation, None)) => self.push(ApprovedSampling { server, conversation, answer }),
            Ok((conversation, Some(message))) => {
                let approved = ApprovedSampling { server: server.clone(), conversation, answer };
                let wanted = ElicitationKind::Form { fields: Vec::new() };
                let (send, answered) = oneshot::channel();
                tokio::spawn(wait(approved, answered, self.phases.clone()));
                return Some((Elicitation { elicitation_id: String::new(), server, message, wanted }, send));
            }
        }
        None
    }

    /// Parses a request. Returns its messages and, if approval is required, the text to show to the user. Returns an
    /// error with the reason if the request is refused.
    fn prepare(
        server: &str,
        request: &Value,
        person: bool,
        asks: Result<bool, String>,
        facts: &ModelFacts,
    ) -> Result<(SamplingMessages, Option<String>), String> {
        let asks = asks?;
        if asks && !person {
            return Err("the policy requires approval for each request, and no user can approve it".to_owned());
        }
        let conversation = read(request, facts.images)?;
        let shown = asks.then(|| conversation.to_review_text(server, &facts.name)).transpose()?;
        Ok((conversation, shown))
    }

    pub(super) fn push(&mut self, approved: ApprovedSampling) {
        if self.waiting.len() >= MAX_ELICITATIONS {
            return approved.refuse("too many requests are waiting for the model".to_owned());
        }
        self.waiting.push_back(approved);
    }

    /// Drops all waiting requests, which sends an error to their servers.
    pub(super) fn clear(&mut self) {
        self.waiting.clear();
    }

    /// Marks the request in progress as ended.
    pub(super) fn on_ended(&mut self) {
        self.busy = false;
    }

    /// Removes and returns the next request, or returns `None` if another one is still in progress.
    pub(super) fn take_next(&mut self) -> Option<ApprovedSampling> {
        if self.busy { None } else { self.waiting.pop_front() }
    }

    /// Sends a request with `stream` and forwards the response to the server, unless `kill` is cancelled first.
    /// `model` and `most_tokens` are the model and the maximum number of output tokens that the budgets permit.
    pub(super) fn start(
        &mut self,
        approved: ApprovedSampling,
        (model, most_tokens): (ModelFacts, u64),
        stream: impl FnOnce(ModelRequest) -> ModelStream,
        kill: CancellationToken,
    ) {
        let input_tokens = approved.tokens();
        let ApprovedSampling { server, conversation, answer } = approved;
        let request = ModelRequest {
            system: conversation.system,
            messages: conversation.messages,
            tools: Arc::default(),
            max_output_tokens: most_tokens,
            images: model.images.then_some(conversation.images),
            effort: None,
        };
        let stream = stream(request);
        self.busy = true;
        let phases = self.phases.clone();
        let running = RunningSampling { server, model, input_tokens, since: Instant::now() };
        tokio::spawn(async move {
            let sampled = tokio::select! {
                sampled = running.read_response(stream, answer) => sampled,
                () = kill.cancelled() => None,
            };
            let _ = phases.send(SamplingPhase::Over(sampled)).await;
        });
    }
}

fn refuse(answer: oneshot::Sender<Result<Value, String>>, why: String) {
    let _ = answer.send(Err(format!("the request was not sent to the model: {why}")));
}

/// Waits until the user decides or the server stops waiting.
async fn wait(mut allowed: ApprovedSampling, answered: oneshot::Receiver<ElicitationAnswer>, steps: mpsc::Sender<SamplingPhase>) {
    let said = tokio::select! {
        said = answered => said.unwrap_or(ElicitationAnswer::Cancel),
        () = allowed.answer.closed() => return,
    };
    match said {
        ElicitationAnswer::Accept { .. } => drop(steps.send(SamplingPhase::Approved(allowed)).await),
        ElicitationAnswer::Decline => refuse(allowed.answer, "the user declined".to_owned()),
        ElicitationAnswer::Cancel => refuse(allowed.answer, "the user did not answer".to_owned()),
    }
}

/// Sampling request in progress.
struct RunningSampling {
    server: String,
    model: ModelFacts,
    input_tokens: u64,
    since: Instant,
}

impl RunningSampling {
    /// Reads the response until it is complete or no longer needed. Returns its usage, if any.
    async fn read_response(
        self,
        mut stream: ModelStream,
        mut answer: oneshot::Sender<Result<Value, String>>,
    ) -> Option<SamplingUsage> {
        let mut received_bytes = 0;
        let failed = loop {
            let next = tokio::select! {
                next = stream.next() => next,
                () = answer.closed() => break (None, String::new(), StopReason::Cancelled),
            };
            match next {
                Some(Ok(Delta::Completed(completion))) => {
                    let sampled = self.estimate_usage(&completion);
                    let _ = answer.send(sampling_result(completion, &self.model.name));
                    return Some(sampled);
                }
                Some(Ok(Delta::Text(text) | Delta::Reasoning(text))) => received_bytes += text.len(),
                Some(Ok(Delta::ToolCallProgress { .. })) => received_bytes += 1,
                Some(Err(error)) => break (error.usage, error.failure.message, StopReason::Error),
                None => break (None, "the response was cut off before it ended".to_owned(), StopReason::Error),
            }
        };
        let (told, why, stop_reason) = failed;
        let _ = answer.send(Err(format!("the model did not respond: {why}")));
        let told = told.filter(|usage| *usage != Usage::default());
        let guessed = (received_bytes > 0).then(|| Usage {
            input_tokens: self.input_tokens,
            output_tokens: (received_bytes / BYTES_PER_TOKEN) as u64,
            ..Usage::default()
        });
        Some(self.to_sampled(told.or(guessed)?, told.is_none(), stop_reason))
    }

    /// Returns the usage, with estimates for anything that the provider did not report.
    fn estimate_usage(&self, completion: &Completion) -> SamplingUsage {
        let mut usage = completion.usage;
        if usage.input_tokens == 0 {
            usage.input_tokens = self.input_tokens;
        }
        if usage.output_tokens == 0 && !completion.content.is_empty() {
            usage.output_tokens = estimate(&completion.content);
        }
        self.to_sampled(usage, usage != completion.usage, completion.stop_reason)
    }

    fn to_sampled(&self, usage: Usage, estimated: bool, stop_reason: StopReason) -> SamplingUsage {
        let latency_ms = u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX);
        let (server, model) = (self.server.clone(), self.model.clone());
        let label = format!("{server} (MCP)");
        SamplingUsage { server, label, model, usage, fee_usd: 0.0, estimated, stop_reason, latency_ms }
    }
}

/// Converts the response to a `CreateMessageResult`.
fn sampling_result(completion: Completion, asked: &str) -> Result<Value, String> {
    let text: String = completion
        .content
        .iter()
        .filter_map(|part| match part {
            Part::Text { text } => Some(text.as_str()),
            Part::Reasoning { .. } | Part::ToolCall(_) | Part::ToolResult(_) | Part::Image(_) => None,
        })
        .collect();
    if text.is_empty() {
        return Err("the model's response contains no text".to_owned());
    }
    let stop_reason = match completion.stop_reason {
        StopReason::MaxTokens | StopReason::ContextWindowExceeded => "maxTokens",
        StopReason::StopSequence => "stopSequence",
        _ => "endTurn",
    };
    let model = completion.model.unwrap_or_else(|| asked.to_owned());
    Ok(json!({"role": "assistant", "content": {"type": "text", "text": text}, "model": model, "stopReason": stop_reason}))
}
