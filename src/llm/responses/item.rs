//! One item of the output: what came of it in pieces, and what it is once it is whole.

use super::calls::{Special, is_run_by_provider};
use super::kept::{keep, keep_call, kind_of, text_in};
use crate::llm::deltas::Deltas;
use crate::protocol::{Arguments, CallId, Part, ToolCall};
use serde_json::{Map, Value, json};

/// What an item is for a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Message,
    Reasoning,
    Function,
    Special(Special),
    /// What the provider did itself, and what nobody here knows: it goes back as it came.
    Other,
}

impl Kind {
    pub fn of(item: &Map<String, Value>) -> Self {
        match kind_of(item) {
            "message" => Self::Message,
            "reasoning" => Self::Reasoning,
            "function_call" => Self::Function,
            kind => Special::named(kind).map_or(Self::Other, Self::Special),
        }
    }

    pub fn is_call(self) -> bool {
        matches!(self, Self::Function | Self::Special(_))
    }
}

/// Where in an item a piece belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Slot {
    /// Words of the answer, a refusal among them.
    Text(u64),
    Summary(u64),
    Thought(u64),
    /// Arguments of a function, or the text for a custom tool.
    Input,
    /// What a call of another kind would do, which only its whole item tells.
    Progress,
}

pub struct Item {
    pub index: u64,
    pub kind: Kind,
    /// As it began, or whole.
    map: Map<String, Value>,
    pub done: bool,
    /// In the order of arrival.
    pieces: Vec<(Slot, String)>,
}

impl Item {
    pub fn new(index: u64, map: Map<String, Value>) -> Self {
        Self { index, kind: Kind::of(&map), map, done: false, pieces: Vec::new() }
    }

    /// One that begins with a piece of it: its own beginning never came.
    pub fn unannounced(index: u64, slot: Slot) -> Self {
        let kind = match slot {
            Slot::Text(_) => "message",
            Slot::Summary(_) | Slot::Thought(_) => "reasoning",
            Slot::Input | Slot::Progress => "function_call",
        };
        Self::new(index, Map::from_iter([("type".to_owned(), Value::from(kind))]))
    }

    pub fn id(&self) -> &str {
        text_in(&self.map, "id")
    }

    pub fn call_id(&self) -> &str {
        text_in(&self.map, "call_id")
    }

    pub fn map(&self) -> &Map<String, Value> {
        &self.map
    }

    pub fn is_call(&self) -> bool {
        self.kind.is_call()
    }

    pub fn takes(&self, slot: Slot) -> bool {
        match slot {
            Slot::Text(_) => self.kind == Kind::Message,
            Slot::Summary(_) | Slot::Thought(_) => self.kind == Kind::Reasoning,
            Slot::Input | Slot::Progress => self.is_call(),
        }
    }

    /// Tells that a call began.
    pub fn announce(&self, deltas: &mut Deltas) {
        if self.takes(Slot::Progress) {
            deltas.call(self.tool(), 0);
        }
    }

    /// A piece, handed on at once.
    pub fn extend(&mut self, slot: Slot, piece: &str, said: &mut Said, deltas: &mut Deltas) {
        if self.done {
            return;
        }
        let at = self.pieces.iter().rposition(|(known, _)| *known == slot).unwrap_or_else(|| {
            self.pieces.push((slot, String::new()));
            self.pieces.len() - 1
        });
        let begins = self.pieces[at].1.is_empty();
        self.pieces[at].1.push_str(piece);
        match slot {
            Slot::Text(_) => deltas.text(piece),
            Slot::Summary(_) | Slot::Thought(_) if self.is_shown(slot) => said.think(piece, begins, deltas),
            Slot::Summary(_) | Slot::Thought(_) => {}
            Slot::Input | Slot::Progress => deltas.call(self.tool(), self.pieces[at].1.len()),
        }
    }

    /// The whole of what came in pieces. It counts where it differs, and what of it was not handed on yet is now.
    pub fn settle(&mut self, slot: Slot, whole: &str, said: &mut Said, deltas: &mut Deltas) {
        if self.done || whole.is_empty() {
            return;
        }
        let known = self.pieces.iter().rposition(|(known, _)| *known == slot);
        let so_far = known.map_or("", |at| self.pieces[at].1.as_str());
        if let Some(rest) = whole.strip_prefix(so_far) {
            if !rest.is_empty() {
                self.extend(slot, rest, said, deltas);
            }
        } else if let Some(at) = known {
            whole.clone_into(&mut self.pieces[at].1);
        }
    }

    /// The whole item.
    pub fn finish(&mut self, map: Map<String, Value>, said: &mut Said, deltas: &mut Deltas) {
        self.kind = Kind::of(&map);
        self.done = false;
        let mut told = parts_of(self.kind, &map);
        told.retain(|(_, whole)| !whole.is_empty());
        for (slot, whole) in &told {
            self.settle(*slot, whole, said, deltas);
        }
        if !told.is_empty() {
            self.pieces.retain(|(slot, _)| *slot == Slot::Progress || told.iter().any(|(known, _)| known == slot));
        }
        let had = std::mem::replace(&mut self.map, map);
        // A name that came at the start only is a name.
        for field in ["id", "call_id", "name"] {
            if text_in(&self.map, field).is_empty()
                && let Some(value) = had.get(field)
            {
                self.map.insert(field.to_owned(), value.clone());
            }
        }
        self.done = true;
    }

    /// Of an item that tells its thinking twice, in summaries and in full, what came first is what is shown.
    fn is_shown(&self, slot: Slot) -> bool {
        let first = self.pieces.iter().map(|(slot, _)| slot).find(|slot| matches!(slot, Slot::Summary(_) | Slot::Thought(_)));
        first.is_none_or(|first| matches!(first, Slot::Summary(_)) == matches!(slot, Slot::Summary(_)))
    }

    fn tool(&self) -> &str {
        match self.kind {
            Kind::Special(special) => special.tool(&self.map),
            Kind::Message | Kind::Reasoning | Kind::Function | Kind::Other => text_in(&self.map, "name"),
        }
    }

    /// What is shown of it, in order, without what is empty.
    fn texts(&self) -> Vec<&str> {
        let mut texts: Vec<_> = self.pieces.iter().filter(|(slot, text)| !text.is_empty() && self.is_shown(*slot)).collect();
        texts.sort_by_key(|(slot, _)| *slot);
        texts.into_iter().map(|(_, text)| text.as_str()).collect()
    }

    /// Its parts of the answer. `cut`: the answer was limited and this is where it stopped; `beside`: all items of the answer.
    pub fn parts(&self, cut: bool, beside: &[Self]) -> Vec<Part> {
        match self.kind {
            Kind::Message => self.words(),
            Kind::Reasoning => {
                let text = self.texts().join("\n\n");
                vec![Part::Reasoning { text, opaque: Some(keep(self.whole())) }]
            }
            Kind::Function => vec![self.call(self.arguments(cut))],
            Kind::Special(_) if self.call_id().is_empty() => vec![self.sealed()],
            Kind::Special(_) if is_run_by_provider(&self.map, beside.iter().map(Self::map)) => vec![self.sealed()],
            Kind::Special(special) => {
                let mut map = self.whole();
                let arguments = special.arguments(&mut map);
                // Right before the call that it is the item of.
                vec![Part::Reasoning { text: String::new(), opaque: Some(keep_call(map)) }, self.call(arguments)]
            }
            Kind::Other => vec![self.sealed()],
        }
    }

    fn words(&self) -> Vec<Part> {
        let text = self.texts().concat();
        if text.is_empty() {
            return Vec::new();
        }
        let mut parts = Vec::new();
        // Whether the words are a remark or the answer is to be told with them again.
        if let Some(phase @ Value::String(_)) = self.map.get("phase") {
            let item = json!({"type": "message", "phase": phase});
            let item = if let Value::Object(item) = item { item } else { Map::new() };
            parts.push(Part::Reasoning { text: String::new(), opaque: Some(keep(item)) });
        }
        parts.push(Part::Text { text });
        parts
    }

    fn sealed(&self) -> Part {
        Part::Reasoning { text: String::new(), opaque: Some(keep(self.map.clone())) }
    }

    fn call(&self, arguments: Arguments) -> Part {
        let id = if self.call_id().is_empty() { self.id() } else { self.call_id() };
        let id = if id.is_empty() { format!("call_{}", uuid::Uuid::new_v4().simple()) } else { id.to_owned() };
        Part::ToolCall(ToolCall { tool_call_id: CallId::new(id), tool_name: self.tool().to_owned(), arguments })
    }

    fn arguments(&self, cut: bool) -> Arguments {
        if let Some(Value::Object(map)) = self.map.get("arguments") {
            return Arguments::Object(map.clone());
        }
        let text = self.pieces.iter().find(|(slot, _)| *slot == Slot::Input).map_or("", |(_, text)| text.as_str());
        let half = cut || !self.done || text_in(&self.map, "status") == "incomplete";
        if half && text.trim().is_empty() { Arguments::Malformed(text.to_owned()) } else { Arguments::parse(text) }
    }

    /// The item with what came in pieces in its place, where it never came whole.
    fn whole(&self) -> Map<String, Value> {
        let mut map = self.map.clone();
        if self.done {
            return map;
        }
        let pieces = |kind: &str, wanted: fn(Slot) -> bool| -> Vec<Value> {
            let pieces = self.pieces.iter().filter(|(slot, _)| wanted(*slot));
            pieces.map(|(_, text)| json!({"type": kind, "text": text})).collect()
        };
        match self.kind {
            Kind::Reasoning => {
                let summary = pieces("summary_text", |slot| matches!(slot, Slot::Summary(_)));
                let content = pieces("reasoning_text", |slot| matches!(slot, Slot::Thought(_)));
                map.insert("summary".to_owned(), Value::Array(summary));
                if !content.is_empty() {
                    map.insert("content".to_owned(), Value::Array(content));
                }
            }
            Kind::Special(Special::Custom) => {
                let input: String =
                    self.pieces.iter().filter(|(slot, _)| *slot == Slot::Input).map(|(_, text)| text.as_str()).collect();
                map.insert("input".to_owned(), Value::String(input));
            }
            Kind::Message | Kind::Function | Kind::Special(_) | Kind::Other => {}
        }
        map
    }
}

/// What was thought until now, over all items.
#[derive(Default)]
pub struct Said {
    thought: bool,
}

impl Said {
    /// Parts stand apart by a blank line.
    fn think(&mut self, piece: &str, begins: bool, deltas: &mut Deltas) {
        if begins && self.thought && !piece.is_empty() {
            deltas.reasoning("\n\n");
        }
        self.thought |= !piece.is_empty();
        deltas.reasoning(piece);
    }
}

/// What a whole item says, by where it says it.
fn parts_of(kind: Kind, map: &Map<String, Value>) -> Vec<(Slot, String)> {
    let list = |field: &str| map.get(field).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let number = |at: usize| at as u64;
    let text = |part: &Value, field: &str| part.get(field).and_then(Value::as_str).map(str::to_owned);
    match kind {
        Kind::Message => {
            let said = |part: &Value| text(part, "text").or_else(|| text(part, "refusal"));
            let whole = map.get("content").and_then(Value::as_str).map(|text| (Slot::Text(0), text.to_owned()));
            let parts = list("content").iter().enumerate();
            whole.into_iter().chain(parts.filter_map(|(at, part)| Some((Slot::Text(number(at)), said(part)?)))).collect()
        }
        Kind::Reasoning => {
            let summaries = list("summary").iter().enumerate();
            let summaries = summaries.filter_map(|(at, part)| Some((Slot::Summary(number(at)), text(part, "text")?)));
            let thoughts = list("content").iter().enumerate();
            let thoughts = thoughts.filter_map(|(at, part)| Some((Slot::Thought(number(at)), text(part, "text")?)));
            summaries.chain(thoughts).collect()
        }
        Kind::Function => {
            let arguments = map.get("arguments").and_then(Value::as_str);
            arguments.map(|text| (Slot::Input, text.to_owned())).into_iter().collect()
        }
        Kind::Special(Special::Custom) => vec![(Slot::Input, text_in(map, "input").to_owned())],
        Kind::Special(_) | Kind::Other => Vec::new(),
    }
}
