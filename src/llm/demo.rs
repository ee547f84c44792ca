//! Demo model, which plays a recorded conversation that branches depending on the outcomes of its calls.

use crate::ports::{Completion, Delta, Model, ModelError, ModelRequest, ModelStream};
use crate::protocol::{
    CallArguments, CallId, Failure, FailureKind, Message, ModelFacts, Part, Price, Role, StopReason, ToolCall, ToolDefinition,
    ToolResult, ToolStatus, Usage,
};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::Duration;

const CONVERSATION: &str = include_str!("../../assets/demo/conversation.toml");
/// Turn that is played in response to a request for which nothing was recorded.
const OVER: &str = "over";
const CALL_PREFIX: &str = "demo_";
const WINDOW: u64 = 200_000;
const BYTES_PER_TOKEN: u64 = 4;

macro_rules! project_file {
    ($path:literal, $mode:literal) => {
        ($path, include_bytes!(concat!("../../assets/demo/project/", $path)).as_slice(), $mode)
    };
}

/// Files of the sample project, with path, content and mode.
const PROJECT: [(&str, &[u8], u32); 4] = [
    project_file!("README.md", 0o644),
    project_file!("check.sh", 0o755),
    project_file!("greet.sh", 0o755),
    project_file!("lib/names.sh", 0o644),
];

/// Returns the path, content and mode of each file in the sample project.
pub(crate) fn project() -> &'static [(&'static str, &'static [u8], u32)] {
    &PROJECT
}

/// Speed at which the recording is played.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pace {
    /// Roughly the speed of a real model.
    Recorded,
    /// Without any delays.
    #[cfg(test)]
    Instant,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct DemoRecording {
    model: String,
    pace_ms: u64,
    first_prompt: String,
    turns: Vec<RecordedTurn>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct RecordedTurn {
    name: String,
    #[serde(default)]
    thinking: String,
    text: String,
    #[serde(default)]
    calls: Vec<Call>,
    #[serde(default)]
    next: Option<NextTurn>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Call {
    tool: String,
    arguments: Map<String, Value>,
}

/// Next turn for each possible outcome of the last call.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct NextTurn {
    succeeded: String,
    denied: Option<String>,
    failed: Option<String>,
}

/// Model that plays a recorded conversation.
#[derive(Debug)]
pub(crate) struct Demo {
    conversation: Arc<DemoRecording>,
    pace: Duration,
}

impl Demo {
    pub(crate) fn new(pace: Pace) -> Result<Self, Failure> {
        let conversation: DemoRecording = toml::from_str(CONVERSATION).map_err(|error| {
            Failure::new(FailureKind::Internal, format!("the recorded conversation cannot be read: {error}"), "report this")
        })?;
        let pace = match pace {
            Pace::Recorded => Duration::from_millis(conversation.pace_ms),
            #[cfg(test)]
            Pace::Instant => Duration::ZERO,
        };
        Ok(Self { conversation: Arc::new(conversation), pace })
    }

    /// Returns the prompt with which the recorded conversation starts.
    pub(crate) fn first_prompt(&self) -> &str {
        &self.conversation.first_prompt
    }
}

impl DemoRecording {
    fn turn(&self, name: &str) -> Option<&RecordedTurn> {
        self.turns.iter().find(|turn| turn.name == name)
    }

    /// Chooses the next turn. The choice depends only on the thread, so resumed sessions continue correctly.
    fn choose(&self, messages: &[Arc<Message>]) -> Option<&RecordedTurn> {
        let Some(last) = messages.iter().rfind(|message| message.role == Role::Assistant) else { return self.turns.first() };
        let called = last.tool_calls().last().map(|call| &call.tool_call_id);
        let recorded = self.turns.iter().find(|turn| called.is_some() && turn.last_call_id().as_ref() == called);
        let Some((next, id)) = recorded.and_then(|turn| Some((turn.next.as_ref()?, turn.last_call_id()?))) else {
            return self.turn(OVER);
        };
        let name = match outcome(messages, &id) {
            Some(ToolStatus::Succeeded) => &next.succeeded,
            Some(ToolStatus::Denied) => next.denied.as_ref().unwrap_or(&next.succeeded),
            Some(ToolStatus::Failed) | None => next.failed.as_ref().unwrap_or(&next.succeeded),
        };
        self.turn(name)
    }
}

fn outcome(messages: &[Arc<Message>], id: &CallId) -> Option<ToolStatus> {
    messages.iter().flat_map(|message| &message.content).find_map(|part| match part {
        Part::ToolResult(ToolResult { tool_call_id, status, .. }) if tool_call_id == id => Some(*status),
        Part::ToolResult(_) | Part::Text { .. } | Part::Reasoning { .. } | Part::ToolCall(_) | Part::Image(_) => None,
    })
}

impl RecordedTurn {
    fn call_id(&self, at: usize) -> CallId {
        CallId::new(format!("{CALL_PREFIX}{}_{at}", self.name))
    }

    fn last_call_id(&self) -> Option<CallId> {
        Some(self.call_id(self.calls.len().checked_sub(1)?))
    }

    fn completion(&self, usage: Usage, model: &str) -> Completion {
        let mut content = Vec::new();
        if !self.thinking.is_empty() {
            content.push(Part::Reasoning { text: self.thinking.clone(), opaque: None });
        }
        content.push(Part::Text { text: self.text.trim().to_owned() });
        content.extend(self.calls.iter().enumerate().map(|(at, call)| {
            Part::ToolCall(ToolCall {
                tool_call_id: self.call_id(at),
                tool_name: call.tool.clone(),
                arguments: CallArguments::Object(call.arguments.clone()),
            })
        }));
        let stop_reason = if self.calls.is_empty() { StopReason::EndTurn } else { StopReason::ToolUse };
        Completion { content, stop_reason, usage, model: Some(model.to_owned()) }
    }
}

impl Model for Demo {
    fn name(&self) -> &'static str {
        "demo/recording"
    }

    fn facts(&self) -> ModelFacts {
        let free = Price { input: 0.0, output: 0.0, cache_read: 0.0, cache_write: 0.0 };
        ModelFacts {
            name: self.name().to_owned(),
            context_window: WINDOW,
            max_output_tokens: None,
            price: Some(free),
            images: false,
            reasoning: false,
            price_is_assumed: false,
            price_elsewhere: None,
            tools: None,
            efforts: Vec::new(),
        }
    }

    fn stream(&self, request: ModelRequest) -> ModelStream {
        let conversation = Arc::clone(&self.conversation);
        let pace = self.pace;
        Box::pin(async_stream::try_stream! {
            let turn = conversation.choose(&request.messages).cloned();
            let turn = turn.ok_or_else(|| ModelError::from(unrecorded_failure()))?;
            for word in turn.thinking.split_inclusive(' ') {
                wait(pace).await;
                yield Delta::Reasoning(word.to_owned());
            }
            for word in turn.text.trim().split_inclusive([' ', '\n']) {
                wait(pace).await;
                yield Delta::Text(word.to_owned());
            }
            for call in &turn.calls {
                wait(pace).await;
                yield Delta::ToolCallProgress { tool_name: call.tool.clone(), bytes: size(call) };
            }
            let usage = usage(&request, &turn);
            yield Delta::Completed(turn.completion(usage, &conversation.model));
        })
    }
}

async fn wait(pace: Duration) {
    if !pace.is_zero() {
        tokio::time::sleep(pace).await;
    }
}

fn size(call: &Call) -> u64 {
    Value::Object(call.arguments.clone()).to_string().len() as u64
}

/// Estimates the usage that a real model would have reported.
fn usage(request: &ModelRequest, turn: &RecordedTurn) -> Usage {
    let thread: u64 = request.messages.iter().map(|message| message.token_count).sum();
    let tools = request.tools.iter().map(|tool| {
        let ToolDefinition { tool_name, description, input_schema } = tool;
        (tool_name.len() + description.len() + input_schema.to_string().len()) as u64
    });
    let fixed = request.system.len() as u64 + tools.sum::<u64>();
    let answer = turn.text.len() as u64 + turn.calls.iter().map(size).sum::<u64>();
    let reasoning_tokens = turn.thinking.len() as u64 / BYTES_PER_TOKEN;
    Usage {
        input_tokens: thread + fixed / BYTES_PER_TOKEN,
        output_tokens: answer / BYTES_PER_TOKEN + reasoning_tokens,
        reasoning_tokens,
        ..Usage::default()
    }
}

fn unrecorded_failure() -> Failure {
    Failure::new(FailureKind::Internal, "the recording has no response for this request", "start `aye demo` again")
}

#[cfg(test)]
mod tests;
