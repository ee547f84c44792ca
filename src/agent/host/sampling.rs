//! Sampling requests of MCP servers to the model of the session: allowed by the policy, approved by the user if it says so, one at a time,
//! without tools and without the thread.

mod request;

use super::Host;
use super::arrivals::moment;
use crate::agent::context::estimate;
use crate::agent::limits::{BYTES_PER_TOKEN, MAX_ELICITATIONS};
use crate::agent::turn::{Input, Sampled};
use crate::ports::{Completion, Delta, ModelRequest, ModelStream};
use crate::protocol::{Elicitation, ElicitationAnswer, ModelFacts, Part, StopReason, Usage, Wanted};
use futures_util::{StreamExt, TryStreamExt};
use request::{Conversation, read};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::{mpsc, oneshot};

/// Sampling request of a server, with the channel for its response.
pub struct Sampling {
    pub server: String,
    /// Parameters of `sampling/createMessage`.
    pub request: Value,
    /// Whether there is a user to ask.
    pub person: bool,
    pub answer: oneshot::Sender<Result<Value, String>>,
}

/// Phase of a sampling request.
pub(super) enum SamplingPhase {
    /// Approved; waits only for the requests before it.
    ApprovedSampling(ApprovedSampling),
    /// Ended, with what it used, if anything.
    Over(Option<Sampled>),
}

pub(super) struct ApprovedSampling {
    server: String,
    conversation: Conversation,
    answer: oneshot::Sender<Result<Value, String>>,
}

/// Queue of sampling requests.
#[derive(Default)]
pub(super) struct SamplingQueue {
    waiting: VecDeque<ApprovedSampling>,
    busy: bool,
}

impl Host {
    /// Handles a sampling request. Its result, or the refusal, is returned to the server.
    pub(super) fn sample_for_server(&mut self, sampling: Sampling) {
        let Sampling { server, request, person, answer } = sampling;
        let asks = match self.machine.may_sample(&server) {
            Ok(asks) => asks,
            Err(why) => return refuse(answer, why),
        };
        if asks && !person {
            return refuse(answer, "the policy requires approval for each request, and there is no one to ask".to_owned());
        }
        let facts = self.model.facts();
        let conversation = match read(&request, facts.images) {
            Ok(conversation) => conversation,
            Err(why) => return refuse(answer, why),
        };
        let Some(steps) = self.servers.as_ref().map(|servers| servers.steps.clone()) else { return };
        let shown = asks.then(|| conversation.shown(&server, &facts.name));
        let allowed = ApprovedSampling { server: server.clone(), conversation, answer };
        let message = match shown {
            None => return self.line_up(allowed),
            Some(Err(why)) => return refuse(allowed.answer, why),
            Some(Ok(message)) => message,
        };
        let wanted = Wanted::Form { fields: Vec::new() };
        let (send, answered) = oneshot::channel();
        self.ask_for_server(Elicitation { elicitation_id: String::new(), server, message, wanted }, send);
        tokio::spawn(wait(allowed, answered, steps));
    }

    pub(super) async fn sampling_goes_on(&mut self, step: SamplingPhase) {
        match step {
            SamplingPhase::ApprovedSampling(allowed) => self.line_up(allowed),
            SamplingPhase::Over(sampled) => {
                if let Some(servers) = &mut self.servers {
                    servers.line.busy = false;
                }
                if let Some(sampled) = sampled {
                    self.take(Input::Sampled(sampled)).await;
                }
                self.next_in_line();
            }
        }
    }

    fn line_up(&mut self, allowed: ApprovedSampling) {
        let Some(servers) = &mut self.servers else { return };
        if servers.line.waiting.len() >= MAX_ELICITATIONS {
            return refuse(allowed.answer, "too many requests are waiting for the model".to_owned());
        }
        servers.line.waiting.push_back(allowed);
        self.next_in_line();
    }

    /// Starts the next request, one at a time: its estimate is checked against what is left after the previous one is counted.
    fn next_in_line(&mut self) {
        loop {
            let Some(servers) = self.servers.as_mut().filter(|servers| !servers.line.busy) else { return };
            let steps = servers.steps.clone();
            let Some(ApprovedSampling { server, conversation, answer }) = servers.line.waiting.pop_front() else { return };
            let (input_tokens, wanted) = (conversation.tokens(), conversation.most_tokens);
            let (model, most) = match self.machine.sampling(input_tokens, wanted, moment()) {
                Ok(allowed) => allowed,
                Err(failure) => {
                    refuse(answer, failure.message);
                    continue;
                }
            };
            let request = ModelRequest {
                system: conversation.system,
                messages: conversation.messages,
                tools: Arc::default(),
                max_output_tokens: most,
                images: None,
                effort: None,
            };
            // It has its own redaction cache, because the thread's cache would forget its messages.
            let mut request = crate::agent::secrets::LastNet::default().hide_in_request(&self.redactor, request);
            request.images = model.images.then_some(conversation.images);
            let redactor = self.redactor.clone();
            let hide = move |error| crate::agent::secrets::hide_in_failure(&redactor, error);
            let stream = self.model.stream(request).map_err(hide).boxed();
            if let Some(servers) = &mut self.servers {
                servers.line.busy = true;
            }
            let kill = self.kill.clone();
            let asked = Running { server, model, input_tokens, since: Instant::now() };
            tokio::spawn(async move {
                let sampled = tokio::select! {
                    sampled = asked.hear(stream, answer) => sampled,
                    () = kill.cancelled() => None,
                };
                let _ = steps.send(SamplingPhase::Over(sampled)).await;
            });
            return;
        }
    }
}

fn refuse(answer: oneshot::Sender<Result<Value, String>>, why: String) {
    let _ = answer.send(Err(format!("the request was not sent to the model: {why}")));
}

/// Waits until the user decides, or until the server no longer waits.
async fn wait(mut allowed: ApprovedSampling, answered: oneshot::Receiver<ElicitationAnswer>, steps: mpsc::Sender<SamplingPhase>) {
    let said = tokio::select! {
        said = answered => said.unwrap_or(ElicitationAnswer::Cancel),
        () = allowed.answer.closed() => return,
    };
    match said {
        ElicitationAnswer::Accept { .. } => drop(steps.send(SamplingPhase::ApprovedSampling(allowed)).await),
        ElicitationAnswer::Decline => refuse(allowed.answer, "the user declined".to_owned()),
        ElicitationAnswer::Cancel => refuse(allowed.answer, "the user did not answer".to_owned()),
    }
}

/// Running sampling request.
struct Running {
    server: String,
    model: ModelFacts,
    input_tokens: u64,
    since: Instant,
}

impl Running {
    /// Reads the response until it is complete or no longer wanted, and returns what it used.
    async fn hear(self, mut stream: ModelStream, mut answer: oneshot::Sender<Result<Value, String>>) -> Option<Sampled> {
        let mut heard_bytes = 0;
        let failed = loop {
            let next = tokio::select! {
                next = stream.next() => next,
                () = answer.closed() => break (None, String::new(), StopReason::Cancelled),
            };
            match next {
                Some(Ok(Delta::Completed(completion))) => {
                    let sampled = self.counted(&completion);
                    let _ = answer.send(told(completion, &self.model.name));
                    return Some(sampled);
                }
                Some(Ok(Delta::Text(text) | Delta::Reasoning(text))) => heard_bytes += text.len(),
                Some(Ok(Delta::ToolCallProgress { .. })) => heard_bytes += 1,
                Some(Err(error)) => break (error.usage, error.failure.message, StopReason::Error),
                None => break (None, "the response was cut off before it ended".to_owned(), StopReason::Error),
            }
        };
        let (told, why, stop_reason) = failed;
        let _ = answer.send(Err(format!("the model did not respond: {why}")));
        let told = told.filter(|usage| *usage != Usage::default());
        let guessed = (heard_bytes > 0).then(|| Usage {
            input_tokens: self.input_tokens,
            output_tokens: (heard_bytes / BYTES_PER_TOKEN) as u64,
            ..Usage::default()
        });
        Some(self.sampled(told.or(guessed)?, told.is_none(), stop_reason))
    }

    /// Returns the usage, estimated where the provider did not report it.
    fn counted(&self, completion: &Completion) -> Sampled {
        let mut usage = completion.usage;
        if usage.input_tokens == 0 {
            usage.input_tokens = self.input_tokens;
        }
        if usage.output_tokens == 0 && !completion.content.is_empty() {
            usage.output_tokens = estimate(&completion.content);
        }
        self.sampled(usage, usage != completion.usage, completion.stop_reason)
    }

    fn sampled(&self, usage: Usage, estimated: bool, stop_reason: StopReason) -> Sampled {
        let latency_ms = u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX);
        let (server, model) = (self.server.clone(), self.model.clone());
        Sampled { server, model, usage, estimated, stop_reason, latency_ms }
    }
}

/// Returns the response as `CreateMessageResult`.
fn told(completion: Completion, asked: &str) -> Result<Value, String> {
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
