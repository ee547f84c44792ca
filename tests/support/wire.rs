//! Wire formats of the protocols Anthropic Messages, Chat Completions, Responses and Gemini, all of them streamed.

use serde_json::{Value, json};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Protocol {
    Anthropic,
    Chat,
    Gemini,
    Responses,
}

impl Protocol {
    pub fn of(path: &str) -> Option<Self> {
        match path {
            path if path.ends_with("/v1/messages") => Some(Self::Anthropic),
            path if path.ends_with("/chat/completions") => Some(Self::Chat),
            path if path.ends_with(":streamGenerateContent") => Some(Self::Gemini),
            path if path.ends_with("/responses") => Some(Self::Responses),
            _ => None,
        }
    }
}

/// Writer for the events of one response.
pub(super) struct Emitter {
    protocol: Protocol,
    model: String,
    /// Number of content blocks (Anthropic), calls (Chat Completions, Gemini) or items (Responses) so far.
    count: usize,
}

impl Emitter {
    pub fn new(protocol: Protocol, model: &str) -> Self {
        Self { protocol, model: model.to_owned(), count: 0 }
    }

    pub fn start(&self) -> String {
        match self.protocol {
            Protocol::Anthropic => event(&json!({"type": "message_start", "message": {
                "id": "msg_scripted", "type": "message", "role": "assistant", "model": self.model, "content": [],
                "stop_reason": null, "stop_sequence": null,
                "usage": {"input_tokens": 1200, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 1}}})),
            Protocol::Chat => self.chunk(&json!({"role": "assistant", "content": ""}), &Value::Null),
            Protocol::Gemini => String::new(),
            Protocol::Responses => {
                let response = json!({"id": "resp_scripted", "model": self.model, "status": "in_progress", "output": []});
                event(&json!({"type": "response.created", "response": response}))
            }
        }
    }

    pub fn text(&mut self, text: &str) -> String {
        match self.protocol {
            Protocol::Anthropic => {
                let delta = json!({"type": "text_delta", "text": text});
                self.block(&json!({"type": "text", "text": ""}), &[delta])
            }
            Protocol::Chat => self.chunk(&json!({"content": text}), &Value::Null),
            Protocol::Gemini => self.parts(&json!([{"text": text}]), None),
            Protocol::Responses => {
                let item = |content: Value| json!({"type": "message", "role": "assistant", "content": content});
                let delta = json!({"type": "response.output_text.delta", "content_index": 0, "delta": text});
                self.item(&item(json!([])), vec![delta], &item(json!([{"type": "output_text", "text": text}])))
            }
        }
    }

    /// Returns the events of a call. The arguments arrive in two chunks, if the protocol streams them.
    pub fn call(&mut self, id: &str, name: &str, arguments: &str) -> String {
        let middle = arguments.char_indices().map(|(at, _)| at).find(|&at| at * 2 >= arguments.len());
        let (first, second) = arguments.split_at(middle.unwrap_or(0));
        match self.protocol {
            Protocol::Anthropic => {
                let deltas = [first, second].map(|half| json!({"type": "input_json_delta", "partial_json": half}));
                self.block(&json!({"type": "tool_use", "id": id, "name": name, "input": {}}), &deltas)
            }
            Protocol::Chat => {
                let index = self.count;
                self.count += 1;
                let head = json!({"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": ""}});
                let mut out = self.chunk(&json!({"tool_calls": [head]}), &Value::Null);
                for half in [first, second] {
                    let call = json!({"index": index, "function": {"arguments": half}});
                    out.push_str(&self.chunk(&json!({"tool_calls": [call]}), &Value::Null));
                }
                out
            }
            Protocol::Gemini => {
                self.count += 1;
                let args: Value = serde_json::from_str(arguments).unwrap_or_else(|_| json!(arguments));
                let call =
                    json!({"functionCall": {"id": id, "name": name, "args": args}, "thoughtSignature": format!("signed {id}")});
                self.parts(&json!([call]), None)
            }
            Protocol::Responses => {
                let item =
                    |arguments: &str| json!({"type": "function_call", "call_id": id, "name": name, "arguments": arguments});
                let delta = |half| json!({"type": "response.function_call_arguments.delta", "delta": half});
                self.item(&item(""), [first, second].map(delta).into(), &item(arguments))
            }
        }
    }

    /// Returns the events of one item of a Responses stream.
    fn item(&mut self, start: &Value, deltas: Vec<Value>, whole: &Value) -> String {
        let index = self.count;
        self.count += 1;
        let mut out = event(&json!({"type": "response.output_item.added", "output_index": index, "item": start}));
        for mut delta in deltas {
            delta["output_index"] = json!(index);
            out.push_str(&event(&delta));
        }
        out + &event(&json!({"type": "response.output_item.done", "output_index": index, "item": whole}))
    }

    /// Returns the events that end a response. `reason` is a stop reason of Anthropic.
    pub fn finish(&self, reason: &str) -> String {
        match self.protocol {
            Protocol::Anthropic => {
                let delta = json!({"stop_reason": reason, "stop_sequence": null});
                event(&json!({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 20}}))
                    + &event(&json!({"type": "message_stop"}))
            }
            Protocol::Chat => {
                let reason = match reason {
                    "max_tokens" => "length",
                    "tool_use" => "tool_calls",
                    _ => "stop",
                };
                let usage = json!({"prompt_tokens": 1200, "completion_tokens": 20, "total_tokens": 1220});
                let last = json!({"id": "chatcmpl-scripted", "object": "chat.completion.chunk", "created": 1, "model": self.model,
                    "choices": [], "usage": usage});
                format!("{}data: {last}\n\ndata: [DONE]\n\n", self.chunk(&json!({}), &json!(reason)))
            }
            Protocol::Gemini => {
                self.parts(&json!([{"text": ""}]), Some(if reason == "max_tokens" { "MAX_TOKENS" } else { "STOP" }))
            }
            Protocol::Responses => {
                let status = if reason == "max_tokens" { "incomplete" } else { "completed" };
                let details = if reason == "max_tokens" { json!({"reason": "max_output_tokens"}) } else { Value::Null };
                let response = json!({"id": "resp_scripted", "model": self.model, "status": status, "incomplete_details": details,
                    "usage": {"input_tokens": 1200, "output_tokens": 20, "total_tokens": 1220}});
                event(&json!({"type": format!("response.{status}"), "response": response}))
            }
        }
    }

    fn block(&mut self, start: &Value, deltas: &[Value]) -> String {
        let index = self.count;
        self.count += 1;
        let mut out = event(&json!({"type": "content_block_start", "index": index, "content_block": start}));
        for delta in deltas {
            out.push_str(&event(&json!({"type": "content_block_delta", "index": index, "delta": delta})));
        }
        out + &event(&json!({"type": "content_block_stop", "index": index}))
    }

    fn parts(&self, parts: &Value, finish_reason: Option<&str>) -> String {
        let mut candidate = json!({"content": {"parts": parts, "role": "model"}, "index": 0});
        if let Some(reason) = finish_reason {
            candidate["finishReason"] = json!(reason);
        }
        let usage = json!({"promptTokenCount": 1200, "candidatesTokenCount": 20, "totalTokenCount": 1220});
        let chunk =
            json!({"candidates": [candidate], "usageMetadata": usage, "modelVersion": self.model, "responseId": "scripted"});
        format!("data: {chunk}\r\n\r\n")
    }

    fn chunk(&self, delta: &Value, finish_reason: &Value) -> String {
        let chunk = json!({"id": "chatcmpl-scripted", "object": "chat.completion.chunk", "created": 1, "model": self.model,
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]});
        format!("data: {chunk}\n\n")
    }
}

fn gemini_result(part: &Value) -> Option<(String, String)> {
    let result = part.get("functionResponse")?;
    let said = &result["response"];
    Some((plain(&result["id"]), plain(said.get("output").unwrap_or(&said["error"]))))
}

fn event(data: &Value) -> String {
    format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap_or_default())
}

/// Returns the `(id, text)` of each tool result in a request, in order.
pub(super) fn tool_results(body: &Value) -> Vec<(String, String)> {
    let mut results = Vec::new();
    for item in body["input"].as_array().into_iter().flatten().filter(|item| item["type"] == "function_call_output") {
        results.push((plain(&item["call_id"]), plain(&item["output"])));
    }
    for message in body["messages"].as_array().into_iter().flatten() {
        if message["role"] == "tool" {
            results.push((plain(&message["tool_call_id"]), plain(&message["content"])));
        }
        for block in message["content"].as_array().into_iter().flatten().filter(|block| block["type"] == "tool_result") {
            results.push((plain(&block["tool_use_id"]), plain(&block["content"])));
        }
    }
    for content in body["contents"].as_array().into_iter().flatten() {
        results.extend(content["parts"].as_array().into_iter().flatten().filter_map(gemini_result));
    }
    results
}

/// Returns the text of message content: a string, a list of text blocks, or any other value as JSON.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => blocks.iter().map(|block| plain(&block["text"])).collect(),
        other => other.to_string(),
    }
}
