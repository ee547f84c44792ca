//! Responses API responses, which are assembled item by item.

use super::item::{Item, ItemKind, ItemPosition, ThinkingText};
use super::types::{Response, StreamEvent, number, parse_usage, reason};
use crate::llm::deltas::Deltas;
use crate::llm::error::{ErrorContext, body_excerpt};
use crate::llm::json::parse_text;
use crate::llm::sse::SseEvent;
use crate::llm::stream_reader::{Progress, ResponseAssembler};
use crate::ports::{Completion, ModelError};
use crate::protocol::{StopReason, Usage};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// Error used if the provider reports a failure without giving a reason.
const UNSPECIFIED_ERROR: &str = r#"{"message":"the provider ended its response with an unspecified error"}"#;

pub(in crate::llm) struct ResponsesAssembler {
    speaker: ErrorContext,
    items: Vec<Item>,
    thinking: ThinkingText,
    end: Option<End>,
    usage: Usage,
    model: Option<String>,
}

/// How a response ended, according to the provider.
enum End {
    Completed,
    Incomplete(Option<String>),
    Cancelled,
}

impl ResponsesAssembler {
    pub(crate) fn new(speaker: ErrorContext) -> Self {
        Self { speaker, items: Vec::new(), thinking: ThinkingText::default(), end: None, usage: Usage::default(), model: None }
    }

    fn unreadable(&self, event: &SseEvent) -> ModelError {
        if event.unfinished {
            return self.speaker.missing_end();
        }
        self.speaker
            .unexpected_body(&format!("expected an event of the Responses API, got `{}`", body_excerpt(event.data.as_bytes())))
    }

    /// Handles an event that announces the start of an item.
    fn start_item(&mut self, told: &StreamEvent<'_>, deltas: &mut Deltas) {
        let Some(map) = told.item.and_then(parse_map) else { return };
        let index = number(told.output_index).unwrap_or_else(|| self.next_index());
        let known = self.items.iter().rfind(|item| item.index == index);
        // A second start refers to the same item, unless that item is complete: some servers assign the same number to
        // all items.
        if known.is_some_and(|item| !item.done && item.kind == ItemKind::from_item(&map)) {
            return;
        }
        let item = Item::new(index, map);
        item.announce(deltas);
        self.items.push(item);
    }

    /// Handles a delta for an item, or the complete text that earlier deltas added up to.
    fn on_delta(&mut self, told: &StreamEvent<'_>, slot: ItemPosition, raw: Option<&RawValue>, whole: bool, deltas: &mut Deltas) {
        let Some(text) = raw.and_then(parse_text) else { return };
        let at = self.find(told, slot).unwrap_or_else(|| {
            let index = number(told.output_index).unwrap_or_else(|| self.next_index());
            self.items.push(Item::from_delta(index, slot));
            self.items.len() - 1
        });
        let item = &mut self.items[at];
        if whole {
            item.complete_part(slot, &text, &mut self.thinking, deltas);
        } else {
            item.extend(slot, &text, &mut self.thinking, deltas);
        }
    }

    /// Finds the item to which a delta belongs. IDs may change between events. If a server changes the indexes, the
    /// item is found by its ID or, failing that, because it is the only one without content.
    fn find(&self, told: &StreamEvent<'_>, slot: ItemPosition) -> Option<usize> {
        let id = told.item_id.and_then(parse_text).unwrap_or_default();
        let named = |item: &Item| !id.is_empty() && item.id() == id && item.accepts(slot);
        if let Some(index) = number(told.output_index) {
            let numbered = self.items.iter().rposition(|item| item.index == index && item.accepts(slot));
            return numbered.or_else(|| self.items.iter().rposition(|item| !item.done && named(item))).or_else(|| {
                let mut empty = (0..self.items.len()).filter(|&at| {
                    let item = &self.items[at];
                    !item.done && item.accepts(slot) && !item.has_text()
                });
                empty.next().filter(|_| empty.next().is_none())
            });
        }
        let named = self.items.iter().rposition(named);
        named.or_else(|| self.items.iter().rposition(|item| !item.done && item.accepts(slot)))
    }

    /// Reports progress on calls that the client runs, but not on the provider's own calls.
    fn progress(&mut self, told: &StreamEvent<'_>, deltas: &mut Deltas) {
        let special = |item: &Item| matches!(item.kind, ItemKind::Special(_)) && !item.done;
        if let Some(at) = self.find(told, ItemPosition::Progress).filter(|&at| special(&self.items[at]))
            && let Some(piece) = told.delta.and_then(parse_text)
        {
            self.items[at].extend(ItemPosition::Progress, &piece, &mut self.thinking, deltas);
        }
    }

    /// Handles an event that contains a completed item.
    fn finish(&mut self, told: &StreamEvent<'_>, deltas: &mut Deltas) {
        let Some(map) = told.item.and_then(parse_map) else { return };
        let index = number(told.output_index);
        let at = self.find_item(&map, index).unwrap_or_else(|| {
            self.items.push(Item::new(index.unwrap_or_else(|| self.next_index()), Map::new()));
            self.items.len() - 1
        });
        self.items[at].finish(map, &mut self.thinking, deltas);
    }

    /// Finds the item that has been completed. Its index, ID, call ID and text may each have changed, but not all at
    /// once.
    fn find_item(&self, whole: &Map<String, Value>, index: Option<u64>) -> Option<usize> {
        let last = |wanted: &dyn Fn(&Item) -> bool| self.items.iter().rposition(wanted);
        let kind = ItemKind::from_item(whole);
        let told_as = |field: &str| whole.get(field).and_then(Value::as_str).unwrap_or_default();
        let (id, call_id) = (told_as("id"), told_as("call_id"));
        let alike = |item: &Item| item.kind == kind || (!item.done && item.is_call() && kind.is_call());
        // A call ID may change until the call is complete. Afterwards, a different ID means a different call.
        let same = |item: &Item| {
            let ids = [item.call_id(), call_id];
            alike(item) && (!item.done || ids[0] == ids[1] || ids.contains(&""))
        };
        let numbered = |item: &Item| index == Some(item.index) && same(item);
        let named = |item: &Item| {
            let is_id = |known: &str, told: &str| !told.is_empty() && known == told;
            same(item) && if call_id.is_empty() { is_id(item.id(), id) } else { is_id(item.call_id(), call_id) }
        };
        let open = |item: &Item| !item.done && alike(item);
        let repeats =
            |item: &Item| item.done && item.kind == kind && kind == ItemKind::Message && !id.is_empty() && item.id() == id;
        last(&|item| numbered(item) && named(item) && (!item.done || item.starts_with_deltas(whole)))
            .or_else(|| last(&|item| named(item) && (!item.done || index.is_none())))
            .or_else(|| last(&|item| repeats(item) && item.has_text() && item.starts_with_deltas(whole)))
            .or_else(|| last(&|item| numbered(item) && item.starts_with_deltas(whole)))
            .or_else(|| last(&|item| open(item) && item.has_text() && item.starts_with_deltas(whole)))
            .or_else(|| last(&numbered))
            .or_else(|| self.items.iter().position(|item| open(item) && (index.is_none() || !item.has_text())))
    }

    fn next_index(&self) -> u64 {
        self.items.iter().map(|item| item.index + 1).max().unwrap_or(0)
    }

    /// Handles the event that ends the stream, which contains the result and repeats all items.
    fn end_stream(&mut self, kind: &str, told: &StreamEvent<'_>, deltas: &mut Deltas) -> Result<(), ModelError> {
        let response: Option<Response<'_>> = told.response.and_then(|raw| serde_json::from_str(raw.get()).ok());
        let Some(response) = response else {
            // The event contains only its name.
            self.end = Some(self.finish_response(kind.trim_start_matches("response."), None)?);
            return Ok(());
        };
        self.count(response.usage);
        if let Some(model) = response.model.and_then(parse_text).filter(|model| !model.is_empty()) {
            self.model = Some(model.into_owned());
        }
        let named = kind.trim_start_matches("response.");
        let status = response.status.and_then(parse_text).unwrap_or_default();
        // If the event name denotes an end, it is the result. For `done`, the object contains the result.
        let ended = if named == "done" || matches!(&*status, "failed" | "incomplete" | "cancelled") { &*status } else { named };
        let end = if ended == "incomplete" {
            End::Incomplete(reason(response.incomplete_details))
        } else {
            self.finish_response(ended, response.error)?
        };
        self.end = Some(end);
        let output = response.output.and_then(|raw| serde_json::from_str::<Vec<&RawValue>>(raw.get()).ok());
        self.complete_items(&output.unwrap_or_default(), deltas);
        Ok(())
    }

    fn count(&mut self, usage: Option<&RawValue>) {
        if let Some(usage) = usage.and_then(parse_usage) {
            self.usage = usage;
        }
    }

    fn finish_response(&self, ended: &str, error: Option<&RawValue>) -> Result<End, ModelError> {
        match ended {
            "failed" => {
                let body = error.map(RawValue::get).filter(|error| *error != "null").unwrap_or(UNSPECIFIED_ERROR);
                let mut error = self.speaker.error_event(body);
                error.usage = self.usage_so_far();
                Err(error)
            }
            "incomplete" => Ok(End::Incomplete(None)),
            "cancelled" => Ok(End::Cancelled),
            _ => Ok(End::Completed),
        }
    }

    /// Takes items that never arrived or were never completed from the final list. Items that are already complete are
    /// not changed.
    fn complete_items(&mut self, output: &[&RawValue], deltas: &mut Deltas) {
        let more = output.len() > self.items.len();
        let mut taken = vec![false; self.items.len()];
        for (index, raw) in (0..).zip(output) {
            let Some(map) = parse_map(raw) else { continue };
            let at = self.find_listed_item(&map, index, &taken);
            if let Some(at) = at {
                taken[at] = true;
                if !self.items[at].done {
                    self.items[at].finish(map, &mut self.thinking, deltas);
                }
            } else if more {
                let mut item = Item::new(index, Map::new());
                item.finish(map, &mut self.thinking, deltas);
                self.items.push(item);
                taken.push(true);
            }
        }
    }

    /// Finds the item that corresponds to an entry in the final list by ID, position or text, any of which a server may
    /// change.
    fn find_listed_item(&self, whole: &Map<String, Value>, index: u64, taken: &[bool]) -> Option<usize> {
        let kind = ItemKind::from_item(whole);
        let first = |wanted: &dyn Fn(&Item) -> bool| (0..self.items.len()).find(|&at| !taken[at] && wanted(&self.items[at]));
        let told_as = |field: &str| whole.get(field).and_then(Value::as_str).filter(|told| !told.is_empty());
        let (id, call_id) = (told_as("id"), told_as("call_id"));
        let alike = |item: &Item| item.kind == kind || (item.is_call() && kind.is_call());
        let named = |item: &Item| if call_id.is_some() { call_id == Some(item.call_id()) } else { id == Some(item.id()) };
        let numbered = |item: &Item| item.index == index && alike(item);
        first(&|item| numbered(item) && named(item))
            .or_else(|| first(&|item| alike(item) && named(item)))
            .or_else(|| first(&|item| numbered(item) && item.starts_with_deltas(whole)))
            .or_else(|| first(&|item| alike(item) && item.has_text() && item.starts_with_deltas(whole)))
            .or_else(|| first(&numbered))
    }
}

impl ResponseAssembler for ResponsesAssembler {
    fn event(&mut self, event: &SseEvent, deltas: &mut Deltas) -> Result<Progress, ModelError> {
        let data = event.data.trim();
        if data.is_empty() {
            return Ok(Progress::More);
        }
        if data == "[DONE]" {
            // The end of a response arrives before this event, or never.
            return Err(self.speaker.missing_end());
        }
        let told: StreamEvent<'_> = serde_json::from_str(data).map_err(|_| self.unreadable(event))?;
        let kind = told.kind.and_then(parse_text);
        let kind = kind.as_deref().or(event.name.as_deref()).unwrap_or_default();
        let failed = told.error.is_some_and(|error| error.get() != "null");
        let is_error = matches!(kind, "error" | "response.error") || told.object.and_then(parse_text).as_deref() == Some("error");
        if is_error || (failed && told.kind.is_none()) {
            return Err(self.speaker.error_event(data));
        }
        let content = number(told.content_index).unwrap_or(0);
        let summary = number(told.summary_index).unwrap_or(0);
        match kind {
            "response.created" | "response.queued" | "response.in_progress" => {
                if let Some(response) = told.response.and_then(|raw| serde_json::from_str::<Response<'_>>(raw.get()).ok()) {
                    self.count(response.usage);
                }
            }
            "response.output_item.added" => self.start_item(&told, deltas),
            "response.output_item.done" => self.finish(&told, deltas),
            "response.output_text.delta" | "response.refusal.delta" => {
                self.on_delta(&told, ItemPosition::Text(content), told.delta, false, deltas);
            }
            "response.output_text.done" => self.on_delta(&told, ItemPosition::Text(content), told.text, true, deltas),
            "response.refusal.done" => self.on_delta(&told, ItemPosition::Text(content), told.refusal, true, deltas),
            "response.reasoning_summary_text.delta" => {
                self.on_delta(&told, ItemPosition::Summary(summary), told.delta, false, deltas);
            }
            "response.reasoning_summary_text.done" => {
                self.on_delta(&told, ItemPosition::Summary(summary), told.text, true, deltas);
            }
            "response.reasoning_text.delta" => self.on_delta(&told, ItemPosition::Thought(content), told.delta, false, deltas),
            "response.reasoning_text.done" => self.on_delta(&told, ItemPosition::Thought(content), told.text, true, deltas),
            "response.function_call_arguments.delta" | "response.custom_tool_call_input.delta" => {
                self.on_delta(&told, ItemPosition::Input, told.delta, false, deltas);
            }
            "response.function_call_arguments.done" => self.on_delta(&told, ItemPosition::Input, told.arguments, true, deltas),
            "response.custom_tool_call_input.done" => self.on_delta(&told, ItemPosition::Input, told.input, true, deltas),
            "response.completed" | "response.incomplete" | "response.failed" | "response.cancelled" | "response.done" => {
                self.end_stream(kind, &told, deltas)?;
                return Ok(Progress::End);
            }
            _ if kind.rsplit('.').next() == Some("delta") => self.progress(&told, deltas),
            _ => {}
        }
        Ok(Progress::More)
    }

    fn parse_whole_body(&mut self, body: &[u8], deltas: &mut Deltas) -> Option<Result<(), ModelError>> {
        let body = std::str::from_utf8(body).ok()?;
        serde_json::from_str::<Response<'_>>(body).ok()?.output.filter(|output| output.get().starts_with('['))?;
        let data = format!(r#"{{"type":"response.done","response":{body}}}"#);
        Some(self.event(&SseEvent { name: None, data, unfinished: false }, deltas).map(|_| ()))
    }

    fn part_count(&self) -> usize {
        self.items.len()
    }

    fn usage_so_far(&self) -> Option<Usage> {
        (self.usage != Usage::default()).then_some(self.usage)
    }

    fn complete(&mut self) -> Completion {
        let mut items = std::mem::take(&mut self.items);
        items.sort_by_key(|item| item.index);
        let end = self.end.take().unwrap_or(End::Completed);
        let stopped = match &end {
            End::Completed => None,
            End::Cancelled => Some(StopReason::Cancelled),
            End::Incomplete(reason) => match reason.as_deref() {
                Some("content_filter") => Some(StopReason::ContentFilter),
                Some("max_output_tokens" | "max_tokens" | "length") | None => Some(StopReason::MaxTokens),
                Some(_) => None,
            },
        };
        let cut = stopped == Some(StopReason::MaxTokens);
        let last = items.len().saturating_sub(1);
        let parts = items.iter().enumerate().map(|(at, item)| item.parts(cut && at == last, &items));
        let content: Vec<_> = parts.flatten().collect();
        let calls = content.iter().any(|part| matches!(part, crate::protocol::Part::ToolCall(_)));
        let stop_reason = stopped.unwrap_or(if calls { StopReason::ToolUse } else { StopReason::EndTurn });
        Completion { content, stop_reason, usage: self.usage, model: self.model.take() }
    }
}

fn parse_map(raw: &RawValue) -> Option<Map<String, Value>> {
    serde_json::from_str(raw.get()).ok()
}
