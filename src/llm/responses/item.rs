//! Output items, which collect deltas until their complete content arrives.

use super::calls::{Special, is_run_by_provider};
use super::passthrough::{item_type, keep, keep_call, text_field};
use crate::llm::arguments::{ArgumentBuffer, from_map};
use crate::llm::deltas::Deltas;
use crate::protocol::{CallArguments, CallId, Part, ToolCall};
use serde_json::{Map, Value, json};

/// Kind of output item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ItemKind {
    Message,
    Reasoning,
    Function,
    Special(Special),
    /// Result of one of the provider's own tools, or an unknown item. Such items are sent back unchanged.
    Other,
}

impl ItemKind {
    pub(crate) fn from_item(item: &Map<String, Value>) -> Self {
        match item_type(item) {
            "message" => Self::Message,
            "reasoning" => Self::Reasoning,
            "function_call" => Self::Function,
            kind => Special::from_type(kind).map_or(Self::Other, Self::Special),
        }
    }

    pub(crate) fn is_call(self) -> bool {
        matches!(self, Self::Function | Self::Special(_))
    }
}

/// Part of an item to which a delta belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ItemPosition {
    /// Text of the response, or of a refusal to respond.
    Text(u64),
    Summary(u64),
    Thought(u64),
    /// Arguments of a function call, or the input of a custom tool.
    Input,
    /// Progress of a special call. Its content is complete only when the final item arrives.
    Progress,
}

impl ItemPosition {
    /// Returns whether both positions are for the same kind of text, even if they have different numbers.
    fn is_like(self, other: Self) -> bool {
        std::mem::discriminant(&self) == std::mem::discriminant(&other)
    }
}

/// Logs that a complete text differs from its deltas. Only the lengths of the texts are logged.
fn log_replaced(pieces: &str, whole: &str) {
    tracing::warn!(
        pieces = pieces.len(),
        whole = whole.len(),
        "the provider's final item differs from the streamed text; the final item replaces it"
    );
}

pub(crate) struct Item {
    pub index: u64,
    pub kind: ItemKind,
    /// Fields that the item had when it started or, once it is complete, its final fields.
    map: Map<String, Value>,
    pub done: bool,
    /// Text received so far for each position, in order of arrival.
    pieces: Vec<(ItemPosition, String)>,
    /// Positions for which the complete text has arrived.
    settled: Vec<ItemPosition>,
    /// Tool input received so far.
    input: ArgumentBuffer,
    input_ended: bool,
    /// Number of bytes received so far for the content of a special call.
    progress: usize,
}

impl Item {
    pub(crate) fn new(index: u64, map: Map<String, Value>) -> Self {
        Self {
            index,
            kind: ItemKind::from_item(&map),
            map,
            done: false,
            pieces: Vec::new(),
            settled: Vec::new(),
            input: ArgumentBuffer::default(),
            input_ended: false,
            progress: 0,
        }
    }

    /// Creates an item for a delta that arrived without the item having been started.
    pub(crate) fn from_delta(index: u64, slot: ItemPosition) -> Self {
        let kind = match slot {
            ItemPosition::Text(_) => "message",
            ItemPosition::Summary(_) | ItemPosition::Thought(_) => "reasoning",
            ItemPosition::Input | ItemPosition::Progress => "function_call",
        };
        Self::new(index, Map::from_iter([("type".to_owned(), Value::from(kind))]))
    }

    pub(crate) fn id(&self) -> &str {
        text_field(&self.map, "id")
    }

    pub(crate) fn call_id(&self) -> &str {
        text_field(&self.map, "call_id")
    }

    pub(crate) fn map(&self) -> &Map<String, Value> {
        &self.map
    }

    pub(crate) fn is_call(&self) -> bool {
        self.kind.is_call()
    }

    pub(crate) fn accepts(&self, slot: ItemPosition) -> bool {
        match slot {
            ItemPosition::Text(_) => self.kind == ItemKind::Message,
            ItemPosition::Summary(_) | ItemPosition::Thought(_) => self.kind == ItemKind::Reasoning,
            ItemPosition::Input | ItemPosition::Progress => self.is_call(),
        }
    }

    /// Reports that a call has started.
    pub(crate) fn announce(&self, deltas: &mut Deltas) {
        if self.accepts(ItemPosition::Progress) {
            deltas.call(self.tool(), 0);
        }
    }

    /// Adds a delta and immediately forwards it.
    pub(crate) fn extend(&mut self, slot: ItemPosition, piece: &str, thinking: &mut ThinkingText, deltas: &mut Deltas) {
        if self.done {
            return;
        }
        match slot {
            ItemPosition::Input => {
                self.input.push(piece);
                return deltas.call(self.tool(), self.input.bytes());
            }
            ItemPosition::Progress => {
                self.progress += piece.len();
                return deltas.call(self.tool(), self.progress);
            }
            ItemPosition::Text(_) | ItemPosition::Summary(_) | ItemPosition::Thought(_) => {}
        }
        let at = self.pieces.iter().rposition(|(known, _)| *known == slot).unwrap_or_else(|| {
            self.pieces.push((slot, String::new()));
            self.pieces.len() - 1
        });
        let begins = self.pieces[at].1.is_empty();
        self.pieces[at].1.push_str(piece);
        self.emit_delta(slot, piece, begins, thinking, deltas);
    }

    /// Handles the complete text of a part. Any of it that has not been forwarded yet is forwarded now. If it differs
    /// from the deltas, it replaces them. The part may be numbered differently than in its deltas.
    pub(crate) fn complete_part(&mut self, slot: ItemPosition, whole: &str, thinking: &mut ThinkingText, deltas: &mut Deltas) {
        if slot == ItemPosition::Input && !self.done {
            return self.settle_input(whole, deltas);
        }
        if self.done || whole.is_empty() {
            return;
        }
        let known = self.pieces.iter().rposition(|(known, _)| *known == slot);
        let begins_whole = |at: &usize| whole.starts_with(&self.pieces[*at].1);
        let is_open = |known: ItemPosition| known.is_like(slot) && !self.settled.contains(&known);
        let at = known.filter(begins_whole).or_else(|| {
            let renumbered = self
                .pieces
                .iter()
                .rposition(|(known, text)| is_open(*known) && !text.is_empty() && whole.starts_with(text.as_str()));
            renumbered.or(known)
        });
        let like = self.pieces.iter().filter(|(known, _)| known.is_like(slot)).count();
        if like > 1 && whole.starts_with(&self.text_like(slot)) {
            // One text may cover several parts.
            let rest = whole[self.text_like(slot).len()..].to_owned();
            let last = self.pieces.iter().rposition(|(known, _)| known.is_like(slot));
            let last = last.map_or(slot, |at| self.pieces[at].0);
            self.settled.push(slot);
            return self.extend(last, &rest, thinking, deltas);
        }
        let Some(at) = at else {
            self.settled.push(slot);
            return self.extend(slot, whole, thinking, deltas);
        };
        let (slot, so_far) = &self.pieces[at];
        let slot = *slot;
        self.settled.push(slot);
        if let Some(rest) = whole.strip_prefix(so_far.as_str()) {
            let rest = rest.to_owned();
            self.extend(slot, &rest, thinking, deltas);
        } else {
            log_replaced(so_far, whole);
            whole.clone_into(&mut self.pieces[at].1);
        }
    }

    /// Handles the complete input of a tool call.
    fn settle_input(&mut self, whole: &str, deltas: &mut Deltas) {
        self.input_ended = true;
        let differs = self.input.bytes() != whole.len() || !whole.starts_with(self.input.text());
        if differs && !whole.is_empty() {
            self.input.set(whole);
            deltas.call(self.tool(), self.input.bytes());
        }
    }

    /// Returns the joined text of all parts of the same kind, in order.
    fn text_like(&self, slot: ItemPosition) -> String {
        let mut like: Vec<_> = self.pieces.iter().filter(|(known, _)| known.is_like(slot)).collect();
        like.sort_by_key(|(slot, _)| *slot);
        like.into_iter().map(|(_, text)| text.as_str()).collect()
    }

    /// Returns whether deltas have provided any text for the item.
    pub(crate) fn has_text(&self) -> bool {
        !self.input.is_empty() || self.pieces.iter().any(|(_, text)| !text.is_empty())
    }

    /// Returns whether the text of a complete item begins with the text of this item's deltas.
    pub(crate) fn starts_with_deltas(&self, whole: &Map<String, Value>) -> bool {
        let texts = text_parts_of(ItemKind::from_item(whole), whole);
        let input = texts.iter().find(|(slot, _)| *slot == ItemPosition::Input).map_or("", |(_, text)| text.as_str());
        // Only the start of overlong arguments is stored.
        let pieces = self.pieces.iter().filter(|(_, text)| !text.is_empty());
        input.starts_with(self.input.text())
            && pieces.map(|(slot, _)| *slot).all(|slot| {
                let whole: String = texts.iter().filter(|(part, _)| part.is_like(slot)).map(|(_, text)| text.as_str()).collect();
                whole.starts_with(&self.text_like(slot))
            })
    }

    /// Handles the complete item. Because its parts may be numbered and divided differently than in the deltas, the
    /// joined texts are compared.
    pub(crate) fn finish(&mut self, map: Map<String, Value>, thinking: &mut ThinkingText, deltas: &mut Deltas) {
        self.kind = ItemKind::from_item(&map);
        self.done = false;
        let had_input_ended = self.input_ended;
        let mut texts = text_parts_of(self.kind, &map);
        texts.retain(|(_, whole)| !whole.is_empty());
        let (input, texts): (Vec<_>, Vec<_>) = texts.into_iter().partition(|(slot, _)| *slot == ItemPosition::Input);
        for (slot, whole) in &input {
            self.complete_part(*slot, whole, thinking, deltas);
        }
        if !texts.is_empty() {
            self.replace(texts, thinking, deltas);
        }
        let had = std::mem::replace(&mut self.map, map);
        // Keep fields that only the start of the item contains.
        for field in ["id", "call_id", "name"] {
            if text_field(&self.map, field).is_empty()
                && let Some(value) = had.get(field)
            {
                self.map.insert(field.to_owned(), value.clone());
            }
        }
        self.done = true;
        // An item that is still in progress does not mark its input as complete.
        self.input_ended = had_input_ended;
    }

    /// Replaces the deltas with the parts of the complete item, and forwards the parts that are missing.
    fn replace(&mut self, texts: Vec<(ItemPosition, String)>, thinking: &mut ThinkingText, deltas: &mut Deltas) {
        let mut order: Vec<ItemPosition> = Vec::new();
        for slot in self.pieces.iter().chain(&texts).map(|(slot, _)| *slot) {
            if !order.iter().any(|known| known.is_like(slot)) {
                order.push(slot);
            }
        }
        // As with deltas, the kind of thinking that arrived first is shown.
        let thinks = |slot: &ItemPosition| matches!(slot, ItemPosition::Summary(_) | ItemPosition::Thought(_));
        if !self.pieces.iter().any(|(slot, _)| thinks(slot)) {
            self.pieces.extend(order.iter().find(|slot| thinks(slot)).map(|first| (*first, String::new())));
        }
        for like in &order {
            let parts: Vec<_> = texts.iter().filter(|(slot, _)| slot.is_like(*like)).collect();
            let whole: String = parts.iter().map(|(_, text)| text.as_str()).collect();
            let so_far = self.text_like(*like);
            if whole.starts_with(&so_far) {
                let mut known = so_far.len();
                for (slot, text) in parts {
                    let start = known.min(text.len());
                    known -= start;
                    self.emit_delta(*slot, &text[start..], start == 0, thinking, deltas);
                }
            } else if !whole.is_empty() {
                log_replaced(&so_far, &whole);
            }
        }
        let mut pieces = Vec::new();
        for like in order {
            pieces.extend(texts.iter().filter(|(slot, _)| slot.is_like(like)).cloned());
        }
        self.pieces = pieces;
    }

    /// Forwards a delta of text or of reasoning that is shown.
    fn emit_delta(&self, slot: ItemPosition, piece: &str, begins: bool, thinking: &mut ThinkingText, deltas: &mut Deltas) {
        if piece.is_empty() {
            return;
        }
        match slot {
            ItemPosition::Text(_) => deltas.text(piece),
            ItemPosition::Summary(_) | ItemPosition::Thought(_) if self.is_shown(slot) => thinking.think(piece, begins, deltas),
            ItemPosition::Summary(_) | ItemPosition::Thought(_) | ItemPosition::Input | ItemPosition::Progress => {}
        }
    }

    /// Returns whether reasoning at this position is shown. If an item contains its reasoning both as summaries and in
    /// full, only the kind that arrived first is shown.
    fn is_shown(&self, slot: ItemPosition) -> bool {
        let first = self
            .pieces
            .iter()
            .map(|(slot, _)| slot)
            .find(|slot| matches!(slot, ItemPosition::Summary(_) | ItemPosition::Thought(_)));
        first.is_none_or(|first| matches!(first, ItemPosition::Summary(_)) == matches!(slot, ItemPosition::Summary(_)))
    }

    fn tool(&self) -> &str {
        match self.kind {
            ItemKind::Special(special) => special.tool(&self.map),
            ItemKind::Message | ItemKind::Reasoning | ItemKind::Function | ItemKind::Other => text_field(&self.map, "name"),
        }
    }

    /// Returns the texts that are shown and not empty, in order.
    fn texts(&self) -> Vec<&str> {
        let mut texts: Vec<_> = self.pieces.iter().filter(|(slot, text)| !text.is_empty() && self.is_shown(*slot)).collect();
        texts.sort_by_key(|(slot, _)| *slot);
        texts.into_iter().map(|(_, text)| text.as_str()).collect()
    }

    /// Converts the item to message parts. `cut` is whether the response was cut off, and `items` contains all items in
    /// the response.
    pub(crate) fn parts(&self, cut: bool, items: &[Self]) -> Vec<Part> {
        match self.kind {
            ItemKind::Message => self.text_parts(),
            ItemKind::Reasoning => {
                let text = self.texts().join("\n\n");
                vec![Part::Reasoning { text, opaque: Some(keep(self.to_complete_item())) }]
            }
            ItemKind::Function => vec![self.call(self.arguments(cut))],
            ItemKind::Special(_) if self.call_id().is_empty() => vec![self.opaque_part()],
            ItemKind::Special(_) if is_run_by_provider(&self.map, items.iter().map(Self::map)) => vec![self.opaque_part()],
            ItemKind::Special(special) => {
                let mut map = self.to_complete_item();
                let arguments = match special.arguments(&mut map) {
                    CallArguments::Object(map) => from_map(map, self.is_ended()),
                    malformed @ CallArguments::Malformed(_) => malformed,
                };
                // The reasoning part must directly precede its call.
                vec![Part::Reasoning { text: String::new(), opaque: Some(keep_call(map)) }, self.call(arguments)]
            }
            ItemKind::Other => vec![self.opaque_part()],
        }
    }

    fn text_parts(&self) -> Vec<Part> {
        let text = self.texts().concat();
        if text.is_empty() {
            return Vec::new();
        }
        let mut parts = Vec::new();
        // The phase of a message (remark or answer) must be sent back together with its text.
        if let Some(phase @ Value::String(_)) = self.map.get("phase") {
            let item = json!({"type": "message", "phase": phase});
            let item = if let Value::Object(item) = item { item } else { Map::new() };
            parts.push(Part::Reasoning { text: String::new(), opaque: Some(keep(item)) });
        }
        parts.push(Part::Text { text });
        parts
    }

    fn opaque_part(&self) -> Part {
        Part::Reasoning { text: String::new(), opaque: Some(keep(self.map.clone())) }
    }

    fn call(&self, arguments: CallArguments) -> Part {
        let id = if self.call_id().is_empty() { self.id() } else { self.call_id() };
        let id = if id.is_empty() { format!("call_{}", uuid::Uuid::new_v4().simple()) } else { id.to_owned() };
        Part::ToolCall(ToolCall { tool_call_id: CallId::new(id), tool_name: self.tool().to_owned(), arguments })
    }

    fn arguments(&self, cut: bool) -> CallArguments {
        if let Some(Value::Object(map)) = self.map.get("arguments") {
            return from_map(map.clone(), self.is_ended());
        }
        let half = cut && self.input.text().trim().is_empty();
        self.input.arguments(self.is_ended() && !half)
    }

    /// Returns whether the server has marked the call as complete.
    fn is_ended(&self) -> bool {
        match text_field(&self.map, "status") {
            "incomplete" => false,
            "in_progress" => self.input_ended,
            _ => self.done || self.input_ended,
        }
    }

    /// Returns the complete item. If it never arrived, it is reconstructed from its deltas.
    fn to_complete_item(&self) -> Map<String, Value> {
        let mut map = self.map.clone();
        if self.done {
            return map;
        }
        let pieces = |kind: &str, wanted: fn(ItemPosition) -> bool| -> Vec<Value> {
            let pieces = self.pieces.iter().filter(|(slot, _)| wanted(*slot));
            pieces.map(|(_, text)| json!({"type": kind, "text": text})).collect()
        };
        match self.kind {
            ItemKind::Reasoning => {
                let summary = pieces("summary_text", |slot| matches!(slot, ItemPosition::Summary(_)));
                let content = pieces("reasoning_text", |slot| matches!(slot, ItemPosition::Thought(_)));
                map.insert("summary".to_owned(), Value::Array(summary));
                if !content.is_empty() {
                    map.insert("content".to_owned(), Value::Array(content));
                }
            }
            ItemKind::Special(Special::Custom) => {
                map.insert("input".to_owned(), Value::String(self.input.text().to_owned()));
            }
            ItemKind::Message | ItemKind::Function | ItemKind::Special(_) | ItemKind::Other => {}
        }
        map
    }
}

/// State of the reasoning shown so far, across all items.
#[derive(Default)]
pub(crate) struct ThinkingText {
    thought: bool,
}

impl ThinkingText {
    /// Forwards reasoning, inserting a blank line between parts.
    fn think(&mut self, piece: &str, begins: bool, deltas: &mut Deltas) {
        if begins && self.thought && !piece.is_empty() {
            deltas.reasoning("\n\n");
        }
        self.thought |= !piece.is_empty();
        deltas.reasoning(piece);
    }
}

/// Returns each text in a complete item, together with its position.
fn text_parts_of(kind: ItemKind, map: &Map<String, Value>) -> Vec<(ItemPosition, String)> {
    let list = |field: &str| map.get(field).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let number = |at: usize| at as u64;
    let text = |part: &Value, field: &str| part.get(field).and_then(Value::as_str).map(str::to_owned);
    match kind {
        ItemKind::Message => {
            let text_of = |part: &Value| text(part, "text").or_else(|| text(part, "refusal"));
            let whole = map.get("content").and_then(Value::as_str).map(|text| (ItemPosition::Text(0), text.to_owned()));
            let parts = list("content").iter().enumerate();
            whole
                .into_iter()
                .chain(parts.filter_map(|(at, part)| Some((ItemPosition::Text(number(at)), text_of(part)?))))
                .collect()
        }
        ItemKind::Reasoning => {
            let summaries = list("summary").iter().enumerate();
            let summaries = summaries.filter_map(|(at, part)| Some((ItemPosition::Summary(number(at)), text(part, "text")?)));
            let thoughts = list("content").iter().enumerate();
            let thoughts = thoughts.filter_map(|(at, part)| Some((ItemPosition::Thought(number(at)), text(part, "text")?)));
            summaries.chain(thoughts).collect()
        }
        ItemKind::Function => {
            let arguments = map.get("arguments").and_then(Value::as_str);
            arguments.map(|text| (ItemPosition::Input, text.to_owned())).into_iter().collect()
        }
        ItemKind::Special(Special::Custom) => vec![(ItemPosition::Input, text_field(map, "input").to_owned())],
        ItemKind::Special(_) | ItemKind::Other => Vec::new(),
    }
}
