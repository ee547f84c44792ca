//! Tests that requests are valid for their provider whatever the thread contains.

use super::*;
use crate::llm::quirks::Quirks;
use crate::llm::thread::ThreadCache;
use crate::ports::ModelRequest;
use crate::protocol::{CallId, Effort, Message, MessageId, Role, TaskId, ToolCall, ToolResult};
use proptest::prelude::*;
use serde_json::json;
use std::collections::BTreeSet;

fn part() -> impl Strategy<Value = Part> {
    let id = || {
        let long = "call_whose_name_is_much_longer_than_forty_characters_of_any_kind";
        proptest::sample::select(vec!["", "a", "b", "c/1", "ü x", "aaaaaaaaa", "a-2", long]).prop_map(CallId::new)
    };
    let opaque = vec![
        json!({"type": "thinking", "thinking": "hm", "signature": "s"}),
        json!({"type": "thinking", "thinking": "hm", "signature": ""}),
        json!({"type": "thinking", "thinking": "hm"}),
        json!({"type": "reasoning", "id": "rs_1", "summary": []}),
        json!({"reasoning_content": "hm"}),
        json!(7),
    ];
    let thought =
        proptest::sample::select(opaque).prop_map(|opaque| Part::Reasoning { text: "hm".to_owned(), opaque: Some(opaque) });
    let text = proptest::sample::select(vec!["", " \n", "hello ", "good"]).prop_map(|text| Part::Text { text: text.to_owned() });
    let call = id().prop_map(|tool_call_id| {
        Part::ToolCall(ToolCall { tool_call_id, tool_name: "Grep".to_owned(), arguments: CallArguments::parse("{}") })
    });
    let result = id().prop_map(|id| Part::ToolResult(ToolResult::success(id, "Grep", "found")));
    prop_oneof![2 => text, 3 => call, 3 => result, 1 => thought]
}

fn thread() -> impl Strategy<Value = Vec<Arc<Message>>> {
    let role = proptest::sample::select(vec![Role::User, Role::Assistant, Role::Assistant, Role::Tool]);
    let messages = proptest::collection::vec((role, proptest::collection::vec(part(), 0..5)), 0..10);
    messages.prop_map(|messages| {
        let message = |(at, (role, content)): (usize, (Role, Vec<Part>))| {
            Arc::new(Message {
                message_id: MessageId::new(format!("m{at}")),
                role,
                content,
                token_count: 1,
                task_id: TaskId::new("t"),
                step_id: None,
                timestamp: jiff::Timestamp::UNIX_EPOCH,
            })
        };
        messages.into_iter().enumerate().map(message).collect()
    })
}

fn request(messages: &[Arc<Message>]) -> ModelRequest {
    ModelRequest {
        system: "be brief".into(),
        messages: messages.to_vec(),
        tools: Arc::new([]),
        max_output_tokens: 9000,
        images: None,
        effort: Some(Effort::High),
    }
}

fn ids(blocks: &[Value], kind: &str, field: &str) -> Vec<String> {
    blocks.iter().filter(|block| block["type"] == kind).map(|block| block[field].as_str().unwrap().to_owned()).collect()
}

fn check_messages(body: &Value) -> Result<(), String> {
    let messages = body["messages"].as_array().ok_or("no messages")?;
    let mut used = BTreeSet::new();
    let mut open: Vec<String> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let user = message["role"] == "user";
        if user != (at % 2 == 0) {
            return Err(format!("{at}: the speakers do not take turns"));
        }
        let blocks = message["content"].as_array().filter(|blocks| !blocks.is_empty()).ok_or(format!("{at}: empty"))?;
        if blocks.iter().any(|block| block["type"] == "text" && block["text"].as_str().unwrap().trim().is_empty()) {
            return Err(format!("{at}: a blank text"));
        }
        if blocks.iter().any(|block| block["type"] == "reasoning" || (block["type"] == "thinking" && block["signature"] != "s")) {
            return Err(format!("{at}: another's thinking"));
        }
        let mut answered = ids(blocks, "tool_result", "tool_use_id");
        if answered.len() != blocks.iter().take_while(|block| block["type"] == "tool_result").count() {
            return Err(format!("{at}: results after something else"));
        }
        answered.sort();
        open.sort();
        if answered != open {
            return Err(format!("{at}: results {answered:?} of calls {open:?}"));
        }
        open = ids(blocks, "tool_use", "id");
        for id in &open {
            let word = id.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
            if id.is_empty() || !word || user || !used.insert(id.clone()) {
                return Err(format!("{at}: the id `{id}`"));
            }
        }
    }
    let ends = messages.last().is_some_and(|message| message["role"] == "user");
    if ends { Ok(()) } else { Err("the person has not the last word".to_owned()) }
}

fn check_chat(body: &Value, fit: impl Fn(&str) -> bool) -> Result<(), String> {
    let mut used = BTreeSet::new();
    let mut open: Vec<String> = Vec::new();
    let messages = body["messages"].as_array().ok_or("no messages")?;
    if messages.windows(2).any(|pair| pair[0]["role"] == "user" && pair[1]["role"] == "user") {
        return Err("a person speaks twice".to_owned());
    }
    for (at, message) in messages.iter().enumerate() {
        match message["role"].as_str() {
            Some("tool") => {
                let id = message["tool_call_id"].as_str().unwrap();
                let Some(found) = open.iter().position(|open| open == id) else {
                    return Err(format!("{at}: a result of nothing"));
                };
                open.swap_remove(found);
            }
            Some("assistant") => {
                let calls = message["tool_calls"].as_array().cloned().unwrap_or_default();
                if !open.is_empty() || (calls.is_empty() && !message["content"].is_string()) {
                    return Err(format!("{at}: calls without results, or nothing said"));
                }
                open = calls.iter().map(|call| call["id"].as_str().unwrap().to_owned()).collect();
                if let Some(id) = open.iter().find(|id| !fit(id) || !used.insert((*id).clone())) {
                    return Err(format!("{at}: the id `{id}`"));
                }
            }
            _ if !open.is_empty() => return Err(format!("{at}: calls without results")),
            _ => {}
        }
    }
    let last = messages.last().is_none_or(|message| message["role"] != "assistant");
    if last && open.is_empty() { Ok(()) } else { Err("the person has not the last word".to_owned()) }
}

fn check_gemini(body: &Value) -> Result<(), String> {
    let mut open = 0;
    let mut before = "";
    for (at, content) in body["contents"].as_array().ok_or("no contents")?.iter().enumerate() {
        let parts = content["parts"].as_array().filter(|parts| !parts.is_empty()).ok_or(format!("{at}: empty"))?;
        let count = |kind: &str| parts.iter().filter(|part| part[kind].is_object()).count();
        let (calls, results) = (count("functionCall"), count("functionResponse"));
        let kind = match content["role"].as_str() {
            Some("model") => "model",
            _ if results > 0 => "results",
            _ => "words",
        };
        let fits = match kind {
            "model" => matches!(before, "words" | "results") && open == 0 && results == 0,
            "results" => before == "model" && results == open && parts.len() == results,
            _ => open == 0 && before != "words" && calls == 0,
        };
        if !fits {
            return Err(format!("{at}: {kind} after {before}, {open} calls are open"));
        }
        (open, before) = (calls, kind);
    }
    if open == 0 && before != "model" { Ok(()) } else { Err("the person has not the last word".to_owned()) }
}

fn check_responses(body: &Value) -> Result<(), String> {
    let mut used = BTreeSet::new();
    let mut open = BTreeSet::new();
    let mut person = false;
    for (at, item) in body["input"].as_array().ok_or("no input")?.iter().enumerate() {
        let id = item["call_id"].as_str().unwrap_or_default();
        let said = item["role"] == "user";
        let fits = match item["type"].as_str() {
            Some("function_call") => !id.is_empty() && id.len() <= 64 && used.insert(id) && open.insert(id),
            Some("function_call_output") => open.remove(id),
            Some("message") if said => open.is_empty() && !person,
            Some("message") => true,
            _ => false,
        };
        if !fits {
            return Err(format!("{at}: {item} while {open:?} are open"));
        }
        person = said;
    }
    if open.is_empty() { Ok(()) } else { Err("calls without results".to_owned()) }
}

/// Builds the body message by message, as in a session, and checks that it equals a body built in one go.
fn grown(messages: &[Arc<Message>], body: impl Fn(&ModelRequest, &mut ThreadCache) -> Vec<u8>) -> Result<Value, String> {
    let mut kept = ThreadCache::default();
    let mut last = Vec::new();
    for count in 0..=messages.len() {
        let request = request(&messages[..count]);
        last = body(&request, &mut kept);
        if last != body(&request, &mut ThreadCache::default()) {
            return Err(format!("another body after {count} messages"));
        }
    }
    serde_json::from_slice(&last).map_err(|error| error.to_string())
}

proptest! {
    #[test]
    fn every_thread_is_valid_for_the_messages_api(messages in thread()) {
        let body = grown(&messages, |request, kept| anthropic::body("claude-sonnet-4-5", request, &Quirks::anthropic(), kept));
        prop_assert_eq!(body.and_then(|body| check_messages(&body).map_err(|wrong| format!("{wrong} in {body}"))), Ok(()));
    }

    #[test]
    fn every_thread_is_valid_for_chat_servers(messages in thread()) {
        let printable = |id: &str| !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_graphic());
        for (base, most) in [("http://127.0.0.1/v1", 1024), ("https://api.openai.com/v1", 40), ("https://api.mistral.ai/v1", 9)] {
            let body = grown(&messages, |request, kept| chat::body("m", base, request, &Quirks::default(), kept));
            let fit = |id: &str| printable(id) && id.len() <= most && (most != 9 || id.len() == 9);
            prop_assert_eq!(body.and_then(|body| check_chat(&body, fit).map_err(|wrong| format!("{wrong} in {body}"))), Ok(()));
        }
    }

    #[test]
    fn every_thread_is_valid_for_gemini(messages in thread()) {
        for model in ["gemini-2.5-pro", "gemini-3-pro-preview"] {
            let body = grown(&messages, |request, kept| gemini::body(model, request, &Quirks::default(), kept));
            prop_assert_eq!(body.and_then(|body| check_gemini(&body).map_err(|wrong| format!("{wrong} in {body}"))), Ok(()));
        }
    }

    #[test]
    fn every_thread_is_valid_for_the_responses_api(messages in thread()) {
        let lacks = responses::MissingFeatures::default();
        let body = grown(&messages, |request, kept| responses::body("m", &lacks, request, kept));
        prop_assert_eq!(body.and_then(|body| check_responses(&body).map_err(|wrong| format!("{wrong} in {body}"))), Ok(()));
    }
}
