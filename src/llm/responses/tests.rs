use super::unsupported::Extra;
use super::*;
use crate::llm::tests::samples::{call, found, message, request, text};
use crate::llm::tests::{play, speaker};
use crate::llm::thread::ThreadCache;
use crate::ports::{Completion, Delta, ModelError, ModelRequest};
use crate::protocol::*;
use bytes::Bytes;
use serde_json::{Map, Value, json};
use std::sync::Arc;

mod answers;
mod numbering;
mod servers;

/// Returns an item as a message part, in the form in which it would be stored.
fn item(item: Value) -> Part {
    let Value::Object(item) = item else { panic!("no object") };
    Part::Reasoning { text: String::new(), opaque: Some(passthrough::keep(item)) }
}

fn sealed(id: &str) -> Value {
    json!({"id": id, "type": "reasoning", "encrypted_content": "gAAA", "summary": []})
}

fn written(model: &str, lacks: &MissingFeatures, request: &ModelRequest, thread: &mut ThreadCache) -> Vec<u8> {
    body(model, lacks, request, thread)
}

fn parsed(request: &ModelRequest) -> Value {
    serde_json::from_slice(&written("gpt-5.5", &MissingFeatures::default(), request, &mut ThreadCache::default())).unwrap()
}

/// Returns the input of a request that contains these messages.
fn input(messages: Vec<Arc<Message>>) -> Value {
    parsed(&request(messages))["input"].clone()
}

/// Returns the input of a request that contains a single response.
fn input_of(content: Vec<Part>) -> Value {
    input(vec![message("1", Role::Assistant, content)])
}

fn said(text: &str) -> Value {
    json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]})
}

fn thread() -> Vec<Arc<Message>> {
    let failed = ToolError::new(ErrorCode::InvalidRequest, "not an object");
    let phase = json!({"type": "message", "phase": "commentary"});
    vec![
        message("1", Role::User, vec![text("find it")]),
        message(
            "2",
            Role::Assistant,
            vec![
                Part::Reasoning { text: "foreign".to_owned(), opaque: Some(json!({"type": "thinking", "thinking": "x"})) },
                Part::Reasoning { text: "foreign".to_owned(), opaque: Some(json!({"reasoning_content": "x"})) },
                item(sealed("rs_1")),
                item(phase),
                text("I look."),
                call("call_one_and_only", "Grep", r#"{"pattern":"a"}"#),
                call("call_two_and_last", "Grep", "{bro"),
            ],
        ),
        message(
            "3",
            Role::Tool,
            vec![
                found("call_one_and_only", "found"),
                Part::ToolResult(ToolResult::from_error(CallId::new("call_two_and_last"), "Grep", failed)),
            ],
        ),
        message("4", Role::Assistant, vec![text("done")]),
    ]
}

#[test]
fn a_thread_is_converted_to_the_request_format_of_the_provider() {
    let mut body = parsed(&request(thread()));
    let key = body.as_object_mut().unwrap().remove("prompt_cache_key").unwrap();
    assert!(key.as_str().unwrap().starts_with("aye-") && key.as_str().unwrap().len() <= 64);
    let expected = json!({
        "model": "gpt-5.5",
        "stream": true,
        "store": false,
        "include": ["reasoning.encrypted_content"],
        "max_output_tokens": 99,
        "parallel_tool_calls": true,
        "tools": [
            {"type": "function", "name": "Grep", "description": "searches", "parameters": {"type": "object"}, "strict": false},
        ],
        "instructions": "be brief",
        "input": [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "find it"}]},
            {"id": "rs_1", "type": "reasoning", "encrypted_content": "gAAA", "summary": []},
            {"type": "message", "role": "assistant", "phase": "commentary", "content": [{"type": "output_text", "text": "I look."}]},
            {"type": "function_call", "call_id": "call_one_and_only", "name": "Grep", "arguments": "{\"pattern\":\"a\"}"},
            {"type": "function_call", "call_id": "call_two_and_last", "name": "Grep", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "call_one_and_only", "output": "found"},
            {"type": "function_call_output", "call_id": "call_two_and_last", "output": "INVALID_REQUEST: not an object"},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "done"}]},
        ],
    });
    assert_eq!(body, expected);
}

#[test]
fn empty_fields_are_omitted_and_the_output_limit_is_raised_to_the_minimum() {
    let mut request = request(Vec::new());
    request.system = " ".into();
    request.tools = Arc::new([]);
    request.max_output_tokens = 1;
    let expected = json!({"model": "gpt-5.5", "stream": true, "store": false, "include": ["reasoning.encrypted_content"],
        "max_output_tokens": 16, "input": []});
    assert_eq!(parsed(&request), expected);
}

#[test]
fn images_are_part_of_their_result_or_message() {
    let image = |uri: &str| Image { uri: uri.to_owned(), media_type: "image/png".to_owned(), width: 2, height: 3, bytes: 4 };
    let picture = ToolResult {
        images: vec![image("artifact:1")],
        ..ToolResult::success(CallId::new("call_one_and_only"), "ReadFile", "Image, 2x3 png, 4 bytes")
    };
    let mut request = request(vec![
        message("1", Role::User, vec![text("this"), Part::Image(image("artifact:1")), Part::Image(image("artifact:gone"))]),
        message("2", Role::Assistant, vec![call("call_one_and_only", "ReadFile", "{}")]),
        message("3", Role::Tool, vec![Part::ToolResult(picture)]),
    ]);
    request.images = Some(Arc::new([("artifact:1".to_owned(), "AAAA".into())].into()));
    let shown = json!({"type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": "auto"});
    let gone = "[no longer shown: only the newest images are sent; read it again to see it]";
    let input = parsed(&request)["input"].clone();
    assert_eq!(input[0]["content"], json!([{"type": "input_text", "text": "this"}, shown, {"type": "input_text", "text": gone}]));
    assert_eq!(input[2]["output"], json!([{"type": "input_text", "text": "Image, 2x3 png, 4 bytes"}, shown]));
    request.images = None;
    let note = "Image, 2x3 png, 4 bytes\n[not shown: this model does not support images]";
    assert_eq!(parsed(&request)["input"][2]["output"], note);
}

#[test]
fn thinking_is_sent_back_only_if_readable_and_followed_by_an_item() {
    let plain = json!({"id": "1", "type": "reasoning", "content": [{"type": "reasoning_text", "text": "hm"}], "summary": []});
    let bare = json!({"id": "rs_0", "type": "reasoning", "encrypted_content": null, "content": [],
        "summary": [{"type": "summary_text", "text": "hm"}]});
    assert_eq!(input_of(vec![item(sealed("rs_1")), item(plain.clone()), text("so")]), json!([sealed("rs_1"), plain, said("so")]));
    assert_eq!(input_of(vec![item(bare), text("so")]), json!([said("so")]));
    assert_eq!(input_of(vec![text("so"), item(sealed("rs_1")), item(sealed("rs_2"))]), json!([said("so")]));
    assert_eq!(input_of(vec![item(sealed("rs_1")), text("")]), json!([]));
}

#[test]
fn cached_messages_do_not_change_requests_and_each_request_extends_the_previous_one() {
    let mut kept = ThreadCache::default();
    let messages = thread();
    let fresh = |request: &ModelRequest| written("m", &MissingFeatures::default(), request, &mut ThreadCache::default());
    for count in [1, 2, 4, 3, 4, 0, 4] {
        let request = request(messages[..count].to_vec());
        assert_eq!(written("m", &MissingFeatures::default(), &request, &mut kept), fresh(&request), "{count}");
    }
    // A response is always sent with its results.
    for (count, next) in [(1, 3), (3, 4)] {
        let before = fresh(&request(messages[..count].to_vec()));
        let after = fresh(&request(messages[..next].to_vec()));
        assert_eq!(before[..before.len() - 2], after[..before.len() - 2], "{count}");
    }
}

#[test]
fn ids_and_names_are_sanitized_alike_in_calls_and_results() {
    let long = "x".repeat(65);
    let messages = vec![
        message("m1", Role::Assistant, vec![call("call_0", "Grep", "{}"), call(&long, "no such/tool", "{}")]),
        message("m2", Role::Tool, vec![found("call_0", "one"), found(&long, "two")]),
        message("m3", Role::Assistant, vec![call("call_0", "", "{}")]),
        message("m4", Role::Tool, vec![found("call_0", "three")]),
    ];
    let input = input(messages);
    let ids: Vec<&str> = input.as_array().unwrap().iter().map(|item| item["call_id"].as_str().unwrap()).collect();
    assert_eq!((ids[0], ids[2], ids[4], ids[5]), ("call_0", "call_0", "call_0-2", "call_0-2"));
    assert!(ids[1] == ids[3] && ids[1].len() <= 64, "{ids:?}");
    let names: Vec<&Value> = [0, 1, 4].map(|at| &input[at]["name"]).into();
    assert_eq!(names, ["Grep", "no_such_tool", "unnamed"]);
}

#[test]
fn effort_is_sent_in_the_format_that_the_model_expects() {
    let cases = [
        ("gpt-5.5", Some(Effort::High), json!({"effort": "high", "summary": "auto"})),
        ("gpt-5.5", Some(Effort::Off), json!({"effort": "none", "summary": "auto"})),
        ("openai/gpt-5-mini", Some(Effort::Off), json!({"effort": "minimal", "summary": "auto"})),
        ("o4-mini", Some(Effort::Off), json!({"effort": "low", "summary": "auto"})),
        ("gpt-5.1-codex", Some(Effort::Off), json!({"effort": "low", "summary": "auto"})),
        ("gpt-5.5", None, Value::Null),
    ];
    for (model, effort, reasoning) in cases {
        let request = ModelRequest { effort, ..request(Vec::new()) };
        let body: Value =
            serde_json::from_slice(&written(model, &MissingFeatures::default(), &request, &mut ThreadCache::default())).unwrap();
        assert_eq!(body["reasoning"], reasoning, "{model}");
    }
}

#[test]
fn encrypted_reasoning_is_requested_only_from_reasoning_models() {
    for (model, asked) in
        [("gpt-4.1", false), ("openai/gpt-4o-mini", false), ("gpt-5-chat-latest", false), ("o3", true), ("grok-4", true)]
    {
        let body = written(model, &MissingFeatures::default(), &request(Vec::new()), &mut ThreadCache::default());
        let body: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(body.get("include").is_some(), asked, "{model}");
    }
}

/// Returns an item in the form in which it is sent back: text and function calls with only their own fields, and
/// anything else unchanged.
fn plain(item: &Value) -> Option<Value> {
    let arguments = |item: &Value| serde_json::from_str::<Value>(item["arguments"].as_str().unwrap()).unwrap_or(json!({}));
    match item["type"].as_str().unwrap() {
        "message" => {
            let content = item["content"].as_array().unwrap().iter();
            let text: String =
                content.map(|part| part["text"].as_str().or(part["refusal"].as_str()).unwrap_or_default()).collect();
            (!text.is_empty()).then(|| json!({"phase": item.get("phase"), "text": text}))
        }
        "function_call" => Some(json!({"id": item["call_id"], "name": item["name"], "arguments": arguments(item)})),
        "reasoning" => {
            let full = item["content"].as_array().is_some_and(|content| !content.is_empty());
            (full || item["encrypted_content"].is_string()).then(|| item.clone())
        }
        _ => Some(item.clone()),
    }
}

/// Returns the items of a recorded stream. If no item was completed, these are the items in the final response.
fn recorded_items(stream: &[u8], expected: &Value) -> Vec<Value> {
    let mut items = expected["content"].as_array().unwrap().clone();
    let stream = String::from_utf8_lossy(stream);
    let events = stream.lines().filter_map(|line| serde_json::from_str::<Value>(line.strip_prefix("data:")?).ok());
    let events: Vec<Value> = events.collect();
    let output = events.last().map(|event| event["response"]["output"].clone()).unwrap_or_default();
    for (index, item) in items.iter_mut().enumerate() {
        let done = |event: &Value| event["type"] == "response.output_item.done" && event["output_index"] == index;
        if !events.iter().any(done) && !output[index].is_null() {
            *item = output[index].clone();
        }
    }
    items
}

#[tokio::test]
#[cfg_attr(not(aye_shared), ignore = "needs the shared test material: set AYE_SHARED")]
async fn recorded_responses_are_sent_back_unchanged_item_by_item() {
    let root = shared!("fixtures/llm/openai_responses");
    for entry in std::fs::read_dir(root).unwrap() {
        let directory = entry.unwrap().path();
        let expected: Value = serde_json::from_slice(&std::fs::read(directory.join("expected.json")).unwrap()).unwrap();
        if expected["complete"] == false || expected["stop_reason"] == "error" {
            continue;
        }
        let stream = std::fs::read(directory.join("stream.sse")).unwrap();
        let mut items: Vec<Value> = recorded_items(&stream, &expected).iter().filter_map(plain).collect();
        while items.last().is_some_and(|item| item["type"] == "reasoning") {
            items.pop();
        }
        let completion = play(ResponsesAssembler::new(speaker()), vec![Bytes::from(stream)]).await.1.unwrap();
        let sent = input_of(completion.content);
        let sent: Vec<Value> = sent.as_array().unwrap().iter().filter_map(plain).collect();
        // Generated results follow.
        let (back, results) = sent.split_at(items.len().min(sent.len()));
        assert_eq!(back, items, "{}", directory.display());
        let is_result = |item: &Value| item["type"].as_str().is_some_and(|kind| kind.ends_with("_output"));
        assert!(results.iter().all(is_result), "{}: {results:?}", directory.display());
    }
}
