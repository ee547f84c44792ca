//! Conversion of messages in the thread to input items.

use super::calls::Special;
use super::names::function_name;
use super::passthrough::{is_of_call, item_of_part, item_type, text_field};
use crate::llm::ids::Ids;
use crate::llm::images;
use crate::llm::json::{separate, write_json};
use crate::ports::ModelRequest;
use crate::protocol::{CallArguments, Message, Part, Role, ToolCall, ToolResult};
use serde::Serialize;
use serde_json::{Map, Value};

/// Call ID format. The API rejects longer IDs.
pub(crate) const IDS: Ids = Ids::UpTo(64);

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Item<'a> {
    Message {
        role: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        phase: Option<&'a str>,
        content: Vec<HistoryPart<'a>>,
    },
    FunctionCall {
        call_id: &'a str,
        name: &'a str,
        arguments: String,
    },
    FunctionCallOutput {
        call_id: &'a str,
        output: Output<'a>,
    },
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum HistoryPart<'a> {
    InputText {
        text: &'a str,
    },
    OutputText {
        text: &'a str,
    },
    InputImage {
        /// Image data as a `data:` URL.
        image_url: String,
        detail: &'static str,
    },
}

#[derive(Serialize)]
#[serde(untagged)]
enum Output<'a> {
    Text(&'a str),
    Pieces(Vec<HistoryPart<'a>>),
}

/// Writes the messages of a request as input items.
pub(crate) struct HistoryWriter<'a> {
    pub request: &'a ModelRequest,
    /// Whether the server accepts encrypted items from its earlier responses when they are sent back.
    pub with_kept: bool,
    /// Whether the server accepts IDs of items that it has not stored.
    pub with_ids: bool,
}

impl HistoryWriter<'_> {
    /// Writes the items of a message, separated by commas. `answer` is the response to whose calls the results in the
    /// message belong.
    pub(crate) fn write(&self, message: &Message, answer: Option<&Message>, out: &mut Vec<u8>) {
        match message.role {
            Role::Assistant => self.write_answer(message, out),
            Role::User | Role::Tool => self.write_user_message(message, answer, out),
        }
    }

    fn write_answer(&self, message: &Message, out: &mut Vec<u8>) {
        let mut items: Vec<(bool, Vec<u8>)> = Vec::new();
        let mut before: Option<&Map<String, Value>> = None;
        for part in &message.content {
            let item = before.take();
            let mut json = Vec::new();
            let mut thought = false;
            match part {
                Part::Text { text } => write_text(text, item, &mut json),
                Part::ToolCall(call) => self.write_call(call, item.filter(|item| is_item_of(item, call)), &mut json),
                Part::Reasoning { opaque, .. } => {
                    let Some(opaque) = opaque else { continue };
                    let Some(item) = self.own_item(opaque) else { continue };
                    before = Some(item);
                    thought = item_type(item) == "reasoning";
                    // An item that belongs to the next part is written only together with that part.
                    let apart = !is_of_call(opaque) && item_type(item) != "message";
                    if apart && (!thought || is_self_contained(item)) {
                        self.write_own_item(item, &mut json);
                    }
                }
                Part::ToolResult(_) | Part::Image(_) => {}
            }
            if !json.is_empty() {
                items.push((thought, json));
            }
        }
        // The API rejects thinking without a following item.
        while items.last().is_some_and(|(thought, _)| *thought) {
            items.pop();
        }
        for (_, json) in items {
            separate(out);
            out.extend_from_slice(&json);
        }
    }

    fn own_item<'o>(&self, opaque: &'o Value) -> Option<&'o Map<String, Value>> {
        item_of_part(opaque).filter(|_| self.with_kept)
    }

    fn write_own_item(&self, item: &Map<String, Value>, out: &mut Vec<u8>) {
        if self.with_ids {
            write_json(out, item);
        } else {
            let mut item = item.clone();
            item.shift_remove("id");
            write_json(out, &item);
        }
    }

    fn write_call(&self, call: &ToolCall, item: Option<&Map<String, Value>>, out: &mut Vec<u8>) {
        let call_id = call.tool_call_id.as_str();
        // If text cannot answer a call, the call and its result are sent as a function call and its output.
        if let Some(item) = item.filter(|item| Special::from_type(item_type(item)) != Some(Special::Computer)) {
            let mut item = item.clone();
            item.insert("call_id".to_owned(), Value::from(call_id));
            return self.write_own_item(&item, out);
        }
        let arguments = match &call.arguments {
            CallArguments::Object(map) => serde_json::to_string(map).unwrap_or_default(),
            // Many servers parse the arguments. The result describes the error and the start of the
            // arguments.
            CallArguments::Malformed(_) => "{}".to_owned(),
        };
        let name = function_name(&call.tool_name);
        write_json(out, &Item::FunctionCall { call_id, name: &name, arguments });
    }

    /// Writes the tool results, one item each, followed by the user's text and images.
    fn write_user_message(&self, message: &Message, answer: Option<&Message>, out: &mut Vec<u8>) {
        let mut parts = Vec::new();
        for part in &message.content {
            match part {
                Part::ToolResult(result) => self.write_result(result, answer, out),
                Part::Text { text } if !text.is_empty() => parts.push(HistoryPart::InputText { text }),
                Part::Image(image) => parts.push(match images::content(image, self.request) {
                    Some(data) => picture((&image.media_type, data)),
                    None => HistoryPart::InputText { text: images::omitted_note(self.request) },
                }),
                Part::Text { .. } | Part::Reasoning { .. } | Part::ToolCall(_) => {}
            }
        }
        if !parts.is_empty() {
            separate(out);
            write_json(out, &Item::Message { role: "user", phase: None, content: parts });
        }
    }

    fn write_result(&self, result: &ToolResult, answer: Option<&Message>, out: &mut Vec<u8>) {
        let (text, images) = images::sent_content(result, self.request);
        let call_id = result.tool_call_id.as_str();
        separate(out);
        let special = answer.and_then(|answer| self.special_kind(answer, result));
        if let Some(item) = special.and_then(|special| special.answer(call_id, &text, result.status)) {
            return write_json(out, &item);
        }
        let output = if images.is_empty() {
            Output::Text(&text)
        } else {
            let text = (!text.is_empty()).then_some(HistoryPart::InputText { text: &text });
            Output::Pieces(text.into_iter().chain(images.into_iter().map(picture)).collect())
        };
        write_json(out, &Item::FunctionCallOutput { call_id, output });
    }

    /// Returns the special kind of the call that a result belongs to, or `None` if it is an ordinary call.
    fn special_kind(&self, answer: &Message, result: &ToolResult) -> Option<Special> {
        answer.content.windows(2).find_map(|pair| match pair {
            [Part::Reasoning { opaque: Some(opaque), .. }, Part::ToolCall(call)] if call.tool_call_id == result.tool_call_id => {
                let item = self.own_item(opaque).filter(|item| is_item_of(item, call))?;
                Special::from_type(item_type(item))
            }
            _ => None,
        })
    }
}

/// Returns whether a call was created from this item. If two calls had the same ID, the later one was given a new ID.
fn is_item_of(item: &Map<String, Value>, call: &ToolCall) -> bool {
    let own = text_field(item, "call_id");
    let fitted = IDS.fit(own);
    let rest = call.tool_call_id.as_str().strip_prefix(fitted.as_deref().unwrap_or(own));
    Special::from_type(item_type(item)).is_some_and(|special| special.tool(item) == call.tool_name)
        && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

/// Returns whether a reasoning item can be used without data stored on the server, because its content is included as
/// plain text or in encrypted form.
fn is_self_contained(item: &Map<String, Value>) -> bool {
    !text_field(item, "encrypted_content").is_empty()
        || item.get("content").and_then(Value::as_array).is_some_and(|content| !content.is_empty())
}

fn write_text(text: &str, item: Option<&Map<String, Value>>, out: &mut Vec<u8>) {
    if text.is_empty() {
        return;
    }
    let phase =
        item.filter(|item| item_type(item) == "message").map(|item| text_field(item, "phase")).filter(|phase| !phase.is_empty());
    write_json(out, &Item::Message { role: "assistant", phase, content: vec![HistoryPart::OutputText { text }] });
}

fn picture<'a>((media_type, data): (&str, &str)) -> HistoryPart<'a> {
    HistoryPart::InputImage { image_url: format!("data:{media_type};base64,{data}"), detail: "auto" }
}
