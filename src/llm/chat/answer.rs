//! Chat Completions responses, which are assembled chunk by chunk.

use super::calls::CallAssembler;
use super::types::{ChatChoice, ChatChunk, ChatDelta, ContentPart, groq_usage, parse_finish_reason, parse_usage};
use crate::llm::deltas::Deltas;
use crate::llm::error::{ErrorContext, body_excerpt, is_refusal};
use crate::llm::json::parse_text;
use crate::llm::sse::SseEvent;
use crate::llm::stream_reader::{Progress, ResponseAssembler};
use crate::ports::{Completion, ModelError};
use crate::protocol::{Part, StopReason, Usage};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

pub(in crate::llm) struct ChatAssembler {
    speaker: ErrorContext,
    started: bool,
    /// ID given by the most recent chunk.
    id: Option<String>,
    model: Option<String>,
    text: String,
    reasoning: String,
    /// Name of the field in which the reasoning arrived, if there is any.
    thinking_field: Option<&'static str>,
    details: Vec<Value>,
    calls: CallAssembler,
    finish: Option<String>,
    usage: Option<Usage>,
}

impl ChatAssembler {
    pub(crate) fn new(speaker: ErrorContext) -> Self {
        Self {
            speaker,
            started: false,
            id: None,
            model: None,
            text: String::new(),
            reasoning: String::new(),
            thinking_field: None,
            details: Vec::new(),
            calls: CallAssembler::default(),
            finish: None,
            usage: None,
        }
    }

    fn choice(&mut self, choice: ChatChoice<'_>, deltas: &mut Deltas) {
        if choice.index.unwrap_or(0) != 0 {
            return;
        }
        self.count(choice.usage);
        // If a chunk has both, the message repeats all earlier deltas.
        let silent = self.text.is_empty() && self.reasoning.is_empty() && self.calls.is_empty();
        if let Some(delta) = choice.delta.or(choice.message.filter(|_| silent)) {
            self.delta(delta, deltas);
        }
        if let Some(reason) = choice.finish_reason.and_then(parse_finish_reason) {
            self.finish = Some(reason);
        }
    }

    fn delta(&mut self, delta: ChatDelta<'_>, deltas: &mut Deltas) {
        for (field, raw) in [("reasoning_content", delta.reasoning_content), ("reasoning", delta.reasoning)] {
            // Some servers send the same reasoning in two fields.
            if self.thinking_field.is_none_or(|known| known == field)
                && let Some(piece) = raw.and_then(parse_text).filter(|piece| !piece.is_empty())
            {
                self.thinking_field = Some(field);
                self.think(&piece, deltas);
            }
        }
        if let Some(raw) = delta.reasoning_details {
            self.detail(raw);
        }
        if let Some(raw) = delta.content {
            self.content(raw, deltas);
        }
        if let Some(words) = delta.refusal.and_then(parse_text) {
            self.push_text(&words, deltas);
        }
        let pieces = delta.tool_calls.unwrap_or_default();
        for piece in &pieces {
            self.calls.add(piece, deltas);
        }
        if let Some(function) = delta.function_call
            && pieces.is_empty()
            && (self.calls.is_empty() || self.calls.is_legacy())
        {
            self.calls.add_legacy(function, deltas);
        }
    }

    fn content(&mut self, raw: &RawValue, deltas: &mut Deltas) {
        if let Some(piece) = parse_text(raw) {
            self.push_text(&piece, deltas);
            return;
        }
        let Ok(parts) = serde_json::from_str::<Vec<ContentPart<'_>>>(raw.get()) else { return };
        for part in parts {
            if let Some(thought) = part.thinking {
                self.on_reasoning(thought, deltas);
            }
            for words in [part.text, part.refusal].into_iter().flatten().filter_map(parse_text) {
                self.push_text(&words, deltas);
            }
        }
    }

    /// Handles reasoning, which is either a string or a list of text parts.
    fn on_reasoning(&mut self, raw: &RawValue, deltas: &mut Deltas) {
        if let Some(piece) = parse_text(raw) {
            self.think(&piece, deltas);
        } else if let Ok(parts) = serde_json::from_str::<Vec<ContentPart<'_>>>(raw.get()) {
            for piece in parts.iter().filter_map(|part| part.text.and_then(parse_text)) {
                self.think(&piece, deltas);
            }
        }
    }

    fn push_text(&mut self, piece: &str, deltas: &mut Deltas) {
        self.text.push_str(piece);
        deltas.text(piece);
    }

    fn think(&mut self, piece: &str, deltas: &mut Deltas) {
        self.reasoning.push_str(piece);
        deltas.reasoning(piece);
    }

    /// Adds structured reasoning details, merging adjacent parts of the same text. Signed or encrypted parts are left
    /// unchanged.
    fn detail(&mut self, raw: &RawValue) {
        let Ok(details) = serde_json::from_str::<Vec<Value>>(raw.get()) else { return };
        for detail in details {
            if let Some(last) = self.details.last_mut()
                && continues(last, &detail)
            {
                join(last, detail);
            } else {
                self.details.push(detail);
            }
        }
    }

    fn count(&mut self, usage: Option<&RawValue>) {
        if let Some(usage) = usage.and_then(parse_usage) {
            self.usage = Some(usage);
        }
    }

    fn unreadable(&self, event: &SseEvent) -> ModelError {
        if event.unfinished {
            return self.speaker.missing_end();
        }
        self.speaker
            .unexpected_body(&format!("expected a chunk of Chat Completions, got `{}`", body_excerpt(event.data.as_bytes())))
    }

    fn progress(&self) -> Progress {
        if self.finish.is_some() { Progress::Whole } else { Progress::More }
    }

    fn opaque(&mut self) -> Option<Value> {
        let mut fields = Map::new();
        if !self.details.is_empty() {
            fields.insert("reasoning_details".to_owned(), Value::Array(std::mem::take(&mut self.details)));
        } else if let Some(field) = self.thinking_field {
            fields.insert(field.to_owned(), Value::String(self.reasoning.clone()));
        }
        (!fields.is_empty()).then_some(Value::Object(fields))
    }
}

impl ResponseAssembler for ChatAssembler {
    fn event(&mut self, event: &SseEvent, deltas: &mut Deltas) -> Result<Progress, ModelError> {
        let data = event.data.trim();
        if data.is_empty() {
            return Ok(self.progress());
        }
        if data == "[DONE]" {
            return if self.started { Ok(Progress::End) } else { Err(self.speaker.missing_end()) };
        }
        let chunk: ChatChunk<'_> = match serde_json::from_str(data) {
            Ok(chunk) => chunk,
            Err(_) if event.name.as_deref() == Some("error") => return Err(self.speaker.error_event(data)),
            Err(_) => return Err(self.unreadable(event)),
        };
        let failed = chunk.error.is_some_and(|error| error.get() != "null") || chunk.object.as_deref() == Some("error");
        let failed = failed || (chunk.choices.is_none() && !self.started && is_refusal(data.as_bytes()));
        if failed || event.name.as_deref() == Some("error") {
            return Err(self.speaker.error_event(data));
        }
        self.started |= chunk.choices.is_some();
        if self.model.is_none() {
            self.model = chunk.model.filter(|model| !model.is_empty()).map(|model| model.to_owned());
        }
        let id = chunk.id.and_then(parse_text).filter(|id| !id.is_empty());
        // Chunks of another response after the end of this one are ignored.
        let spliced = self.finish.is_some() && id.is_some() && self.id.as_deref() != id.as_deref();
        for choice in chunk.choices.into_iter().flatten().filter(|_| !spliced) {
            if let Some(error) = choice.error.filter(|error| error.get() != "null") {
                return Err(self.speaker.error_event(&format!("{{\"error\":{}}}", error.get())));
            }
            self.choice(choice, deltas);
        }
        if let Some(id) = id.filter(|_| !spliced) {
            self.id = Some(id.into_owned());
        }
        self.count(chunk.usage.or(chunk.x_groq.and_then(groq_usage)));
        if self.finish.as_deref() == Some("insufficient_system_resource") {
            return Err(self
                .speaker
                .error_event(r#"{"code":"insufficient_system_resource","message":"insufficient_system_resource"}"#));
        }
        Ok(self.progress())
    }

    fn parse_whole_body(&mut self, body: &[u8], deltas: &mut Deltas) -> Option<Result<(), ModelError>> {
        let data = String::from_utf8(body.to_vec()).ok()?;
        let chunk: ChatChunk<'_> = serde_json::from_str(&data).ok()?;
        if !chunk.choices.is_some_and(|choices| choices.iter().any(|choice| choice.message.is_some())) {
            return None;
        }
        Some(self.event(&SseEvent { name: None, data, unfinished: false }, deltas).map(|_| ()))
    }

    fn part_count(&self) -> usize {
        self.calls.len() + self.details.len()
    }

    fn usage_so_far(&self) -> Option<Usage> {
        self.usage
    }

    fn complete(&mut self) -> Completion {
        let stop_reason = match self.finish.as_deref() {
            Some("length" | "max_tokens" | "model_length") => StopReason::MaxTokens,
            Some("content_filter") => StopReason::ContentFilter,
            Some("refusal") => StopReason::Refusal,
            Some("error") => StopReason::Error,
            Some(_) | None if !self.calls.is_empty() => StopReason::ToolUse,
            Some(_) | None => StopReason::EndTurn,
        };
        let mut content = Vec::new();
        let opaque = self.opaque();
        if !self.reasoning.is_empty() || opaque.is_some() {
            content.push(Part::Reasoning { text: std::mem::take(&mut self.reasoning), opaque });
        }
        if !self.text.is_empty() {
            content.push(Part::Text { text: std::mem::take(&mut self.text) });
        }
        let calls = std::mem::take(&mut self.calls);
        let ended = self.finish.is_some();
        content.extend(calls.finish(stop_reason == StopReason::MaxTokens, ended).map(Part::ToolCall));
        Completion { content, stop_reason, usage: self.usage.unwrap_or_default(), model: self.model.take() }
    }
}

fn continues(last: &Value, next: &Value) -> bool {
    ["type", "index", "id"].iter().all(|field| last.get(field) == next.get(field) || next.get(field).is_none())
        && ["text", "summary"].iter().any(|field| last.get(field).is_some_and(Value::is_string) && next.get(field).is_some())
}

fn join(last: &mut Value, next: Value) {
    let (Value::Object(last), Value::Object(next)) = (last, next) else { return };
    for (field, value) in next {
        match (last.get_mut(&field), value) {
            (Some(Value::String(text)), Value::String(piece)) if field == "text" || field == "summary" => text.push_str(&piece),
            (_, Value::Null) => {}
            (_, value) => {
                last.insert(field, value);
            }
        }
    }
}
