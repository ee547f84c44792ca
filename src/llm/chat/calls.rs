//! Assembly of tool calls from chunks. Chunks are matched to calls even for servers that omit indexes, names or both.

use super::types::{CallPiece, FunctionPiece};
use crate::llm::arguments::ArgumentBuffer;
use crate::llm::deltas::Deltas;
use crate::llm::json::parse_text;
use crate::protocol::{CallId, ToolCall};
use serde_json::value::RawValue;

#[derive(Debug, Default)]
pub(crate) struct CallAssembler {
    open: Vec<Call>,
    legacy: bool,
}

#[derive(Debug)]
struct Call {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: ArgumentBuffer,
    balance: Balance,
}

/// Tracks open brackets in a JSON text, reading each byte only once.
#[derive(Debug, Default)]
struct Balance {
    read: usize,
    depth: usize,
    in_text: bool,
    escaped: bool,
}

impl Balance {
    fn is_whole(&mut self, json: &str) -> bool {
        for byte in json.as_bytes().get(self.read..).unwrap_or_default() {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' if self.in_text => self.escaped = true,
                b'"' => self.in_text = !self.in_text,
                _ if self.in_text => {}
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
        }
        self.read = json.len();
        self.depth == 0 && !self.in_text && json.trim_end().ends_with(['}', '"'])
    }
}

impl CallAssembler {
    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Returns whether the calls arrived in a `function_call` field.
    pub(crate) fn is_legacy(&self) -> bool {
        self.legacy
    }

    pub(crate) fn add(&mut self, piece: &CallPiece<'_>, deltas: &mut Deltas) {
        let id = piece.id.and_then(parse_text).unwrap_or_default();
        let name = piece.function.as_ref().and_then(|function| function.name).and_then(parse_text).unwrap_or_default();
        let at = self.find(piece.index, &id, &name).unwrap_or_else(|| {
            self.open.push(Call {
                index: piece.index,
                id: String::new(),
                name: String::new(),
                arguments: ArgumentBuffer::default(),
                balance: Balance::default(),
            });
            self.open.len() - 1
        });
        let call = &mut self.open[at];
        if call.id.is_empty() {
            call.id.push_str(&id);
        }
        if call.name.is_empty() {
            call.name.push_str(&name);
        }
        call.extend(piece.function.as_ref().and_then(|function| function.arguments));
        deltas.call(&call.name, call.arguments.bytes());
    }

    /// Adds a call in the single-call format that was used before `tool_calls`.
    pub(crate) fn add_legacy(&mut self, function: FunctionPiece<'_>, deltas: &mut Deltas) {
        self.legacy = true;
        self.add(&CallPiece { index: Some(0), id: None, function: Some(function) }, deltas);
    }

    fn find(&mut self, index: Option<u64>, id: &str, name: &str) -> Option<usize> {
        let same = |call: &Call| !id.is_empty() && call.id == id;
        if let Some(index) = index {
            let at = self.open.iter().rposition(|call| call.index == Some(index))?;
            // Some servers assign the number 0 to every call. A new ID and name after complete arguments start another
            // call.
            let call = &mut self.open[at];
            let other = !id.is_empty() && !call.id.is_empty() && call.id != id && !name.is_empty() && call.is_whole();
            return if other { self.open.iter().rposition(same) } else { Some(at) };
        }
        if !id.is_empty() {
            if let Some(at) = self.open.iter().rposition(same) {
                return Some(at);
            }
            let last = self.open.last()?;
            return (last.id.is_empty() && name.is_empty()).then(|| self.open.len() - 1);
        }
        let last = self.open.last_mut()?;
        let begins_another = !name.is_empty() && (name != last.name || last.is_whole());
        (!begins_another).then(|| self.open.len() - 1)
    }

    pub(crate) fn len(&self) -> usize {
        self.open.len()
    }

    /// Returns the calls in order. `cut` is whether the response was cut off, which may leave the last call incomplete.
    /// `ended` is whether the server reported the end of the response, because its calls have no end marker of their
    /// own.
    pub(crate) fn finish(self, cut: bool, ended: bool) -> impl Iterator<Item = ToolCall> {
        let last = self.open.len().saturating_sub(1);
        let made_up = uuid::Uuid::new_v4().simple().to_string();
        self.open.into_iter().enumerate().map(move |(at, call)| {
            let id = if call.id.is_empty() { format!("call_{}_{at}", &made_up[..16]) } else { call.id };
            let half = cut && at == last;
            let arguments = call.arguments.arguments(ended && !half);
            ToolCall { tool_call_id: CallId::new(id), tool_name: call.name, arguments }
        })
    }
}

impl Call {
    /// Adds arguments. A string contains one part of the arguments, whereas an object contains all of them.
    fn extend(&mut self, arguments: Option<&RawValue>) {
        let Some(raw) = arguments else { return };
        match parse_text(raw) {
            Some(piece) => self.arguments.push(&piece),
            None if raw.get() == "null" => {}
            None => {
                self.arguments.set(raw.get());
                self.balance = Balance::default();
            }
        }
    }

    fn is_whole(&mut self) -> bool {
        self.balance.is_whole(self.arguments.text())
    }
}
