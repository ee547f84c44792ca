//! Gemini API responses, which are assembled chunk by chunk.

use super::types::{Feedback, FunctionCall, GeminiCandidate, GeminiChunk, GeminiUsage, Part as WirePart};
use crate::llm::arguments::parse_complete;
use crate::llm::deltas::Deltas;
use crate::llm::error::{ErrorContext, body_excerpt};
use crate::llm::json::parse_text;
use crate::llm::sse::SseEvent;
use crate::llm::stream_reader::{Progress, ResponseAssembler};
use crate::ports::{Completion, ModelError};
use crate::protocol::{CallArguments, CallId, Failure, FailureKind, Part, StopReason, ToolCall, Usage};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

/// Prefix of the IDs that aye generates for calls to which the provider assigned none. They are never sent to the
/// provider.
pub(super) const GENERATED_ID_PREFIX: &str = "aye_";
/// Finish reasons that mean that a content filter blocked the response.
const BLOCKED: [&str; 9] = [
    "SAFETY",
    "RECITATION",
    "LANGUAGE",
    "BLOCKLIST",
    "PROHIBITED_CONTENT",
    "SPII",
    "IMAGE_SAFETY",
    "IMAGE_PROHIBITED_CONTENT",
    "IMAGE_RECITATION",
];
/// Finish reasons that mean that a call was malformed, in which case another attempt may produce a valid one.
const MALFORMED_CALL_REASONS: [&str; 4] =
    ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "MALFORMED_RESPONSE"];

pub(in crate::llm) struct GeminiAssembler {
    speaker: ErrorContext,
    content: Vec<Part>,
    /// Kind of part that is being written, which the next chunk may continue.
    open: Option<Kind>,
    calls: usize,
    made_up: Option<String>,
    finish: Option<String>,
    model: Option<String>,
    usage: GeminiUsage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Thought,
}

impl GeminiAssembler {
    pub(crate) fn new(speaker: ErrorContext) -> Self {
        Self {
            speaker,
            content: Vec::new(),
            open: None,
            calls: 0,
            made_up: None,
            finish: None,
            model: None,
            usage: GeminiUsage::default(),
        }
    }

    fn unreadable(&self, event: &SseEvent) -> ModelError {
        if event.unfinished {
            return self.speaker.missing_end();
        }
        self.speaker
            .unexpected_body(&format!("expected a chunk of the Gemini API, got `{}`", body_excerpt(event.data.as_bytes())))
    }

    fn candidate(&mut self, candidate: GeminiCandidate<'_>, deltas: &mut Deltas) -> Result<(), ModelError> {
        if candidate.index.unwrap_or(0) != 0 {
            return Ok(());
        }
        for raw in candidate.content.and_then(|content| content.parts).into_iter().flatten() {
            // Parts of an unknown format are ignored.
            if let Ok(part) = serde_json::from_str::<WirePart<'_>>(raw.get()) {
                self.part(&part, raw, deltas);
            }
        }
        let Some(reason) = candidate.finish_reason.filter(|reason| !reason.is_empty() && reason != "FINISH_REASON_UNSPECIFIED")
        else {
            return Ok(());
        };
        if MALFORMED_CALL_REASONS.contains(&&*reason) {
            let reason_text = candidate.finish_message.filter(|text| !text.trim().is_empty()).unwrap_or(reason);
            let hint = format!("continue the task to retry, or choose a model other than `{}`", self.speaker.model);
            let mut failure = Failure::new(FailureKind::InvalidRequest, reason_text, hint);
            failure.retryable = true;
            return Err(self.with_usage(failure));
        }
        self.finish = Some(reason.into_owned());
        Ok(())
    }

    fn part(&mut self, part: &WirePart<'_>, raw: &RawValue, deltas: &mut Deltas) {
        let signature = part.thought_signature.and_then(parse_text).filter(|signature| !signature.is_empty());
        if let Some(call) = &part.function_call {
            self.call(call, signature.as_deref(), deltas);
        } else if part.executable_code.is_some() || part.code_execution_result.is_some() {
            self.open = None;
            let opaque = serde_json::from_str(raw.get()).ok();
            self.content.push(Part::Reasoning { text: String::new(), opaque });
        } else if let Some(text) = part.text.and_then(parse_text) {
            let kind = if part.thought == Some(true) { Kind::Thought } else { Kind::Text };
            match kind {
                Kind::Text => deltas.text(&text),
                Kind::Thought => deltas.reasoning(&text),
            }
            match signature {
                None => self.append(kind, &text),
                Some(signature) => self.push_signed(kind, &text, &signature),
            }
        } else if let Some(signature) = signature {
            self.push_signed(Kind::Text, "", &signature);
        }
    }

    fn append(&mut self, kind: Kind, piece: &str) {
        if piece.is_empty() {
            return;
        }
        if self.open == Some(kind)
            && let Some(Part::Text { text } | Part::Reasoning { text, .. }) = self.content.last_mut()
        {
            text.push_str(piece);
            return;
        }
        let text = piece.to_owned();
        self.content.push(match kind {
            Kind::Text => Part::Text { text },
            Kind::Thought => Part::Reasoning { text, opaque: None },
        });
        self.open = Some(kind);
    }

    /// Adds a signed text or thought as a part of its own, because the signature applies to exactly its text.
    fn push_signed(&mut self, kind: Kind, text: &str, signature: &str) {
        self.open = None;
        match kind {
            Kind::Thought => {
                let opaque = Some(json!({"text": text, "thought": true, "thoughtSignature": signature}));
                self.content.push(Part::Reasoning { text: text.to_owned(), opaque });
            }
            Kind::Text if text.is_empty() => {
                let opaque = Some(json!({"text": "", "thoughtSignature": signature}));
                self.content.push(Part::Reasoning { text: String::new(), opaque });
            }
            Kind::Text => {
                self.content.push(signature_part("text", signature));
                self.content.push(Part::Text { text: text.to_owned() });
            }
        }
    }

    fn call(&mut self, call: &FunctionCall<'_>, signature: Option<&str>, deltas: &mut Deltas) {
        let name = call.name.and_then(parse_text).unwrap_or_default();
        if name.is_empty() && call.args.is_none() && call.partial_args.is_none() {
            // If the arguments arrive in parts, the last part is empty.
            return;
        }
        self.open = None;
        deltas.call(&name, call.args.map_or(0, |args| args.get().len()));
        if let Some(signature) = signature {
            self.content.push(signature_part("functionCall", signature));
        }
        let arguments = match call.args.map(RawValue::get) {
            None | Some("null") => CallArguments::Object(Map::new()),
            Some(json) => parse_complete(json, true),
        };
        // aye does not request arguments in parts, so they are not assembled here.
        let in_pieces = call.partial_args.is_some() || call.will_continue == Some(true);
        let arguments = if in_pieces { CallArguments::Malformed(String::new()) } else { arguments };
        let id = call.id.and_then(parse_text).filter(|id| !id.trim().is_empty());
        let id = id.map_or_else(|| self.generate_call_name(), std::borrow::Cow::into_owned);
        self.calls += 1;
        self.content.push(Part::ToolCall(ToolCall { tool_call_id: CallId::new(id), tool_name: name.into_owned(), arguments }));
    }

    fn generate_call_name(&mut self) -> String {
        let answer = self.made_up.get_or_insert_with(|| uuid::Uuid::new_v4().simple().to_string()[..16].to_owned());
        format!("{GENERATED_ID_PREFIX}{answer}_{}", self.calls)
    }

    fn blocked_error(&self, feedback: &Feedback<'_>, reason: &str) -> ModelError {
        let reason_text = feedback.block_reason_message.as_deref().filter(|text| !text.trim().is_empty());
        let reason_text = reason_text.map_or_else(String::new, |text| format!(": {text}"));
        let message = format!("LLM_GUARDRAIL_BLOCKED: the provider blocked the prompt ({reason}){reason_text}");
        self.with_usage(Failure::new(
            FailureKind::GuardrailBlocked,
            message,
            "rephrase the prompt, or choose another model with -m",
        ))
    }

    /// Creates an error that includes the usage reported so far.
    fn with_usage(&self, failure: Failure) -> ModelError {
        ModelError { usage: self.usage.usage_so_far(), ..failure.into() }
    }

    fn progress(&self) -> Progress {
        if self.finish.is_some() { Progress::Whole } else { Progress::More }
    }
}

impl ResponseAssembler for GeminiAssembler {
    fn event(&mut self, event: &SseEvent, deltas: &mut Deltas) -> Result<Progress, ModelError> {
        let data = event.data.trim();
        if data.is_empty() {
            return Ok(self.progress());
        }
        if data == "[DONE]" {
            return if self.finish.is_some() { Ok(Progress::End) } else { Err(self.speaker.missing_end()) };
        }
        let chunk: GeminiChunk<'_> = serde_json::from_str(data).map_err(|_| self.unreadable(event))?;
        if let Some(usage) = chunk.usage_metadata {
            self.usage.merge(usage);
        }
        if chunk.error.is_some_and(|error| error.get() != "null") {
            return Err(ModelError { usage: self.usage.usage_so_far(), ..self.speaker.error_event(data) });
        }
        if self.model.is_none() {
            self.model = chunk.model_version.filter(|model| !model.is_empty()).map(|model| model.to_owned());
        }
        for candidate in chunk.candidates.into_iter().flatten() {
            self.candidate(candidate, deltas)?;
        }
        if let Some(feedback) = chunk.prompt_feedback
            && let Some(reason) = feedback.block_reason.as_deref().filter(|reason| !reason.is_empty())
        {
            return Err(self.blocked_error(&feedback, reason));
        }
        Ok(self.progress())
    }

    /// Parses a body that is a list of all chunks, or just a single complete chunk.
    fn parse_whole_body(&mut self, body: &[u8], deltas: &mut Deltas) -> Option<Result<(), ModelError>> {
        let chunks: Vec<&RawValue> = match body.trim_ascii_start().first() {
            Some(b'[') => serde_json::from_slice(body).ok()?,
            _ => vec![serde_json::from_slice(body).ok()?],
        };
        let chunk_of = |raw: &&RawValue| {
            let chunk = serde_json::from_str::<GeminiChunk<'_>>(raw.get());
            chunk.is_ok_and(|chunk| chunk.candidates.is_some() || chunk.prompt_feedback.is_some())
        };
        if !chunks.iter().any(chunk_of) {
            return None;
        }
        for chunk in chunks {
            let data = chunk.get().to_owned();
            if let Err(error) = self.event(&SseEvent { name: None, data, unfinished: false }, deltas) {
                return Some(Err(error));
            }
        }
        Some(if self.finish.is_some() { Ok(()) } else { Err(self.speaker.missing_end()) })
    }

    fn part_count(&self) -> usize {
        self.content.len()
    }

    fn usage_so_far(&self) -> Option<Usage> {
        self.usage.usage_so_far()
    }

    fn complete(&mut self) -> Completion {
        let stop_reason = match self.finish.as_deref() {
            Some("MAX_TOKENS") => StopReason::MaxTokens,
            Some(reason) if BLOCKED.contains(&reason) => StopReason::ContentFilter,
            Some("STOP") | None if self.calls > 0 => StopReason::ToolUse,
            Some("STOP") | None => StopReason::EndTurn,
            // An unknown finish reason is accepted after content, and is an error without content.
            Some(reason) if reason == "OTHER" || self.content.is_empty() => StopReason::Error,
            Some(_) if self.calls > 0 => StopReason::ToolUse,
            Some(_) => StopReason::EndTurn,
        };
        let content = std::mem::take(&mut self.content);
        Completion { content, stop_reason, usage: self.usage.total(), model: self.model.take() }
    }
}

/// Creates a part that contains the signature of the part after it, because `Part` has no signature field.
fn signature_part(what: &str, signature: &str) -> Part {
    Part::Reasoning { text: String::new(), opaque: Some(json!({"signs": what, "thoughtSignature": signature})) }
}

/// Returns the signature in a signature part, and the kind of part that it signs. Returns `None` for any other part.
pub(super) fn parse_signature(opaque: &Value) -> Option<(&str, &str)> {
    Some((opaque.get("signs")?.as_str()?, opaque.get("thoughtSignature")?.as_str()?))
}
