//! Messages API responses, which are assembled block by block.

use super::types::{BlockDelta, BlockStart, BlockStop, DeltaContent, EventHead, MessageDelta, MessageStart, MessagesUsage};
use crate::llm::arguments::{self, ArgumentBuffer};
use crate::llm::deltas::Deltas;
use crate::llm::error::{ErrorContext, body_excerpt};
use crate::llm::json::parse_text;
use crate::llm::sse::SseEvent;
use crate::llm::stream_reader::{Progress, ResponseAssembler};
use crate::ports::{Completion, ModelError};
use crate::protocol::{CallArguments, CallId, Part, StopReason, ToolCall, Usage};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// Name of the event that carries a delta for a block.
const PIECE: &str = "content_block_delta";

pub(in crate::llm) struct MessagesAssembler {
    speaker: ErrorContext,
    id: Option<String>,
    started: bool,
    model: Option<String>,
    blocks: Vec<StreamedBlock>,
    stop_reason: Option<String>,
    usage: MessagesUsage,
}

struct StreamedBlock {
    index: u64,
    kind: Kind,
    /// Fields that the block had when it started, before any deltas.
    start: Map<String, Value>,
    /// Text or thinking deltas received so far.
    pieces: String,
    /// Tool input deltas received so far.
    input: ArgumentBuffer,
    ended: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Thinking,
    Call,
    /// Block that is sent back unchanged, such as redacted reasoning or results of the provider's own tools.
    Opaque,
}

impl MessagesAssembler {
    pub(crate) fn new(speaker: ErrorContext) -> Self {
        Self {
            speaker,
            id: None,
            started: false,
            model: None,
            blocks: Vec::new(),
            stop_reason: None,
            usage: MessagesUsage::default(),
        }
    }

    fn parse<'a, T: Deserialize<'a>>(&self, event: &'a SseEvent) -> Result<T, ModelError> {
        serde_json::from_str(&event.data).map_err(|_| self.unreadable(event))
    }

    fn unreadable(&self, event: &SseEvent) -> ModelError {
        if event.unfinished {
            return self.speaker.missing_end();
        }
        self.speaker
            .unexpected_body(&format!("expected an event of the Messages API, got `{}`", body_excerpt(event.data.as_bytes())))
    }

    fn start(&mut self, event: &SseEvent, deltas: &mut Deltas) -> Result<(), ModelError> {
        let MessageStart { message } = self.parse(event)?;
        if self.started {
            if self.id == message.id {
                return Ok(());
            }
            return Err(self.speaker.unexpected_body("a second message started inside the response"));
        }
        self.started = true;
        self.id = message.id;
        self.model = message.model;
        self.stop_reason = message.stop_reason;
        self.usage.merge(&message.usage);
        for (index, content) in message.content.into_iter().flatten().enumerate() {
            // The stream numbers its blocks from 0 again. These blocks are complete and receive no deltas.
            self.open(u64::MAX - index as u64, content, deltas);
            if let Some(block) = self.blocks.last_mut() {
                block.ended = true;
            }
        }
        Ok(())
    }

    fn open(&mut self, index: u64, mut start: Map<String, Value>, deltas: &mut Deltas) {
        let kind = match start.get("type").and_then(Value::as_str) {
            Some("text") => Kind::Text,
            Some("thinking") => Kind::Thinking,
            Some("tool_use") => Kind::Call,
            Some(_) | None => Kind::Opaque,
        };
        let field = match kind {
            Kind::Text => "text",
            Kind::Thinking => "thinking",
            Kind::Call | Kind::Opaque => "",
        };
        let mut pieces = String::new();
        if let Some(Value::String(text)) = start.get_mut(field) {
            pieces = std::mem::take(text);
        }
        match kind {
            Kind::Text => deltas.text(&pieces),
            Kind::Thinking => deltas.reasoning(&pieces),
            Kind::Call => deltas.call(tool_name(&start), 0),
            Kind::Opaque => {}
        }
        self.blocks.push(StreamedBlock { index, kind, start, pieces, input: ArgumentBuffer::default(), ended: false });
    }

    fn extend(&mut self, piece: BlockDelta<'_>, deltas: &mut Deltas) -> Result<(), ModelError> {
        let BlockDelta { index, delta, .. } = piece;
        let Some(block) = self.blocks.iter_mut().rev().find(|block| index.is_none_or(|index| block.index == index)) else {
            return Err(self.speaker.unexpected_body("a block delta arrived before its block"));
        };
        block.extend(&delta, deltas);
        Ok(())
    }

    fn parts(&mut self) -> Vec<Part> {
        let limited = self.stop_reason.as_deref() == Some("max_tokens");
        let blocks = std::mem::take(&mut self.blocks);
        let last = blocks.len().saturating_sub(1);
        blocks.into_iter().enumerate().filter_map(|(at, block)| block.into_part(limited && at == last)).collect()
    }
}

impl StreamedBlock {
    fn extend(&mut self, delta: &DeltaContent<'_>, deltas: &mut Deltas) {
        let text = |raw: Option<&RawValue>| raw.and_then(|raw| parse_text(raw).map(|text| text.into_owned()));
        match (&*delta.kind, self.kind) {
            ("text_delta", Kind::Text) => {
                if let Some(piece) = delta.text.and_then(parse_text) {
                    self.pieces.push_str(&piece);
                    deltas.text(&piece);
                }
            }
            ("thinking_delta", Kind::Thinking) => {
                if let Some(piece) = delta.thinking.and_then(parse_text) {
                    self.pieces.push_str(&piece);
                    deltas.reasoning(&piece);
                }
            }
            ("signature_delta", Kind::Thinking) => {
                if let Some(signature) = text(delta.signature) {
                    self.start.insert("signature".to_owned(), Value::String(signature));
                }
            }
            ("input_json_delta", Kind::Call | Kind::Opaque) => {
                if let Some(piece) = delta.partial_json.and_then(parse_text) {
                    self.input.push(&piece);
                    if self.kind == Kind::Call {
                        deltas.call(tool_name(&self.start), self.input.bytes());
                    }
                }
            }
            ("compaction_delta", Kind::Opaque) => {
                if let Some(Ok(content)) = delta.content.map(|raw| serde_json::from_str::<Value>(raw.get())) {
                    self.start.insert("content".to_owned(), content);
                }
            }
            _ => {}
        }
    }

    /// Converts the block to a message part. `cut` is whether the response was cut off inside this block.
    fn into_part(mut self, cut: bool) -> Option<Part> {
        match self.kind {
            Kind::Text if self.pieces.is_empty() => None,
            Kind::Text => Some(Part::Text { text: self.pieces }),
            Kind::Thinking => {
                self.start.insert("thinking".to_owned(), Value::String(self.pieces.clone()));
                Some(Part::Reasoning { text: self.pieces, opaque: Some(Value::Object(self.start)) })
            }
            Kind::Call => {
                let arguments = self.arguments(cut);
                let id = self.start.get("id").and_then(Value::as_str).unwrap_or_default();
                let name = tool_name(&self.start);
                Some(Part::ToolCall(ToolCall { tool_call_id: CallId::new(id), tool_name: name.to_owned(), arguments }))
            }
            Kind::Opaque => {
                if let Ok(input) = serde_json::from_str::<Value>(self.input.text()) {
                    self.start.insert("input".to_owned(), input);
                }
                Some(Part::Reasoning { text: String::new(), opaque: Some(Value::Object(self.start)) })
            }
        }
    }

    fn arguments(&mut self, cut: bool) -> CallArguments {
        if !self.input.is_empty() {
            return self.input.arguments(self.ended);
        }
        match self.start.remove("input") {
            Some(Value::Object(map)) if !map.is_empty() || (self.ended && !cut) => arguments::from_map(map, self.ended),
            Some(Value::Null) | None if self.ended && !cut => CallArguments::Object(Map::new()),
            Some(Value::Object(_) | Value::Null) | None => CallArguments::Malformed(String::new()),
            Some(other) => CallArguments::Malformed(other.to_string()),
        }
    }
}

impl ResponseAssembler for MessagesAssembler {
    fn event(&mut self, event: &SseEvent, deltas: &mut Deltas) -> Result<Progress, ModelError> {
        if event.data.trim().is_empty() || event.data == "[DONE]" {
            return Ok(Progress::More);
        }
        // Nearly all events are block deltas, which are parsed only once. For all other events, the type is parsed
        // first.
        if event.name.as_deref() == Some(PIECE)
            && let Ok(piece) = serde_json::from_str::<BlockDelta<'_>>(&event.data)
            && piece.kind.as_deref() == Some(PIECE)
        {
            self.extend(piece, deltas)?;
            return Ok(Progress::More);
        }
        let head: EventHead<'_> = self.parse(event)?;
        let kind = head.kind.as_deref().or(event.name.as_deref()).unwrap_or_default();
        if kind == "error" || (head.kind.is_none() && head.error.is_some()) {
            return Err(self.speaker.error_event(&event.data));
        }
        match kind {
            "message_start" => self.start(event, deltas)?,
            "content_block_start" => {
                let BlockStart { index, content_block } = self.parse(event)?;
                self.open(index.unwrap_or(self.blocks.len() as u64), content_block, deltas);
            }
            PIECE => self.extend(self.parse(event)?, deltas)?,
            "content_block_stop" => {
                let BlockStop { index } = self.parse(event)?;
                if let Some(block) = self.blocks.iter_mut().rev().find(|block| index.is_none_or(|index| block.index == index)) {
                    block.ended = true;
                }
            }
            "message_delta" => {
                let MessageDelta { delta, usage } = self.parse(event)?;
                self.stop_reason = delta.and_then(|delta| delta.stop_reason).or(self.stop_reason.take());
                self.usage.merge(&usage);
            }
            "message_stop" if self.started => return Ok(Progress::End),
            _ => {}
        }
        Ok(Progress::More)
    }

    fn parse_whole_body(&mut self, body: &[u8], deltas: &mut Deltas) -> Option<Result<(), ModelError>> {
        let message: Value = serde_json::from_slice(body).ok()?;
        if !message.get("content").is_some_and(Value::is_array) {
            return None;
        }
        let data = serde_json::json!({"type": "message_start", "message": message}).to_string();
        Some(self.event(&SseEvent { name: None, data, unfinished: false }, deltas).map(|_| ()))
    }

    fn part_count(&self) -> usize {
        self.blocks.len()
    }

    fn usage_so_far(&self) -> Option<Usage> {
        self.usage.total()
    }

    fn complete(&mut self) -> Completion {
        let content = self.parts();
        let calls = content.iter().any(|part| matches!(part, Part::ToolCall(_)));
        let stop_reason = match self.stop_reason.as_deref() {
            Some("max_tokens") => StopReason::MaxTokens,
            Some("stop_sequence") => StopReason::StopSequence,
            Some("refusal") => StopReason::Refusal,
            Some("pause_turn") => StopReason::PauseTurn,
            Some("model_context_window_exceeded") => StopReason::ContextWindowExceeded,
            Some("tool_use") => StopReason::ToolUse,
            Some(_) | None if calls => StopReason::ToolUse,
            Some(_) | None => StopReason::EndTurn,
        };
        Completion { content, stop_reason, usage: self.usage.total().unwrap_or_default(), model: self.model.take() }
    }
}

fn tool_name(start: &Map<String, Value>) -> &str {
    start.get("name").and_then(Value::as_str).unwrap_or_default()
}
