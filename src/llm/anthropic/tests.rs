use super::*;
use crate::llm::quirks::Quirks;
use crate::llm::tests::samples::{call, found, message, picture, request, text};
use crate::llm::tests::{play, speaker};
use crate::llm::thread::ThreadCache;
use crate::ports::{Completion, ModelRequest};
use crate::protocol::*;
use bytes::Bytes;
use serde_json::{Value, json};
use std::sync::Arc;

#[test]
fn images_are_part_of_their_tool_result() {
    let mut kept = ThreadCache::default();
    let mut request = request([
        message("1", Role::User, vec![text("look")]),
        message("2", Role::Assistant, vec![call("c1", "Grep", "{}")]),
        message("3", Role::Tool, vec![Part::ToolResult(picture("c1", "artifact:1"))]),
    ]);
    let content = |request: &ModelRequest, kept: &mut ThreadCache| {
        let body: Value = serde_json::from_slice(&body("m", request, &Quirks::default(), kept)).unwrap();
        body["messages"][2]["content"][0]["content"].clone()
    };
    let note = "Image, 2x3 png, 4 bytes\n[not shown: this model does not support images]";
    assert_eq!(content(&request, &mut kept), note);
    request.images = Some(Arc::new([("artifact:1".to_owned(), "AAAA".into())].into()));
    let shown = json!([
        {"type": "text", "text": "Image, 2x3 png, 4 bytes"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}},
    ]);
    assert_eq!(content(&request, &mut kept), shown);
    assert_eq!(content(&request, &mut kept), shown, "kept as it was");
    request.images = Some(Arc::default());
    assert!(content(&request, &mut kept).as_str().unwrap().contains("only the newest images"));
}

fn parsed(request: &ModelRequest) -> Value {
    serde_json::from_slice(&body("m", request, &Quirks::default(), &mut ThreadCache::default())).unwrap()
}

fn thread() -> Vec<Arc<Message>> {
    let thinking = json!({"type": "thinking", "thinking": "hm", "signature": "s1g"});
    vec![
        message("1", Role::User, vec![text("find it")]),
        message(
            "2",
            Role::Assistant,
            vec![
                Part::Reasoning { text: "hm".to_owned(), opaque: Some(thinking) },
                Part::Reasoning { text: "foreign".to_owned(), opaque: Some(json!({"reasoning_content": "x"})) },
                text(" \n"),
                call("c1", "Grep", r#"{"pattern":"a"}"#),
                call("c2", "Grep", "{bro"),
            ],
        ),
        message("3", Role::Tool, vec![found("c1", "found")]),
        message(
            "4",
            Role::Tool,
            vec![Part::ToolResult(ToolResult::from_error(
                CallId::new("c2"),
                "Grep",
                ToolError::new(ErrorCode::InvalidRequest, "not an object"),
            ))],
        ),
    ]
}

#[test]
fn a_thread_is_converted_to_the_request_format_of_the_provider() {
    let mark = json!({"type": "ephemeral"});
    let expected = json!({
        "model": "m",
        "max_tokens": 99,
        "stream": true,
        "tools": [{"name": "Grep", "description": "searches", "input_schema": {"type": "object"}}],
        "system": [{"type": "text", "text": "be brief", "cache_control": mark}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "find it", "cache_control": mark}]},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "hm", "signature": "s1g"},
                {"type": "tool_use", "id": "c1", "name": "Grep", "input": {"pattern": "a"}},
                {"type": "tool_use", "id": "c2", "name": "Grep", "input": {}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": "found"},
                {"type": "tool_result", "tool_use_id": "c2", "content": "INVALID_REQUEST: not an object", "is_error": true, "cache_control": mark},
            ]},
        ],
    });
    assert_eq!(parsed(&request(thread())), expected);
}

#[test]
fn without_a_system_prompt_the_tools_end_the_cached_prefix() {
    let mut request = request(thread());
    request.system = " ".into();
    let body = parsed(&request);
    assert_eq!(body["system"], Value::Null);
    assert_eq!(body["tools"][0]["cache_control"], json!({"type": "ephemeral"}));
}

#[test]
fn cached_messages_do_not_change_requests() {
    let mut kept = ThreadCache::default();
    let messages = thread();
    for count in [1, 2, 4, 3, 4, 0, 4] {
        let request = request(&messages[..count]);
        assert_eq!(
            body("m", &request, &Quirks::default(), &mut kept),
            body("m", &request, &Quirks::default(), &mut ThreadCache::default()),
            "{count}"
        );
    }
    let mut changed = messages.clone();
    changed[0] = message("1", Role::User, vec![text("find something else")]);
    let request = request(changed.as_slice());
    assert_eq!(
        body("m", &request, &Quirks::default(), &mut kept),
        body("m", &request, &Quirks::default(), &mut ThreadCache::default())
    );
}

async fn read(events: &[Value]) -> Completion {
    let stream: Vec<String> = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    play(MessagesAssembler::new(speaker()), vec![Bytes::from(stream.concat())]).await.1.unwrap()
}

fn tool_answer(pieces: &[&str], stop: bool, reason: &str) -> Vec<Value> {
    let mut events = vec![
        json!({"type": "message_start", "message": {"id": "a"}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "c", "name": "Grep", "input": {}}}),
    ];
    for piece in pieces {
        events.push(
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": piece}}),
        );
    }
    if stop {
        events.push(json!({"type": "content_block_stop", "index": 0}));
    }
    events.push(json!({"type": "message_delta", "delta": {"stop_reason": reason}}));
    events.push(json!({"type": "message_stop"}));
    events
}

#[tokio::test]
async fn calls_truncated_by_the_output_limit_are_malformed_and_complete_calls_are_kept() {
    let whole = || CallArguments::parse(r#"{"a":1}"#);
    let malformed = |text: &str| CallArguments::Malformed(text.to_owned());
    let cases: [(&[&str], bool, &str, CallArguments); 7] = [
        (&["{\"a\"", ":1}"], true, "max_tokens", whole()),
        (&["{\"a\"", ":1"], true, "max_tokens", malformed("{\"a\":1")),
        (&["{\"a\"", ":1"], false, "max_tokens", malformed("{\"a\":1")),
        (&[], true, "max_tokens", malformed("")),
        (&[], false, "tool_use", malformed("")),
        (&[], true, "tool_use", CallArguments::parse("{}")),
        (&["[1]"], true, "tool_use", malformed("[1]")),
    ];
    for (pieces, stop, reason, arguments) in cases {
        let completion = read(&tool_answer(pieces, stop, reason)).await;
        let told = ToolCall { tool_call_id: CallId::new("c"), tool_name: "Grep".to_owned(), arguments };
        assert_eq!(completion.content, [Part::ToolCall(told)], "{pieces:?} {stop} {reason}");
    }
}

#[tokio::test]
async fn thinking_is_sent_back_with_its_signature_and_redacted_blocks_unchanged() {
    let sealed = json!({"type": "redacted_thinking", "data": "xyz"});
    let completion = read(&[
        json!({"type": "message_start", "message": {"id": "a"}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": "", "signature": ""}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "let me "}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "see"}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "sig"}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "content_block_start", "index": 1, "content_block": sealed}),
        json!({"type": "content_block_stop", "index": 1}),
        json!({"type": "message_stop"}),
    ])
    .await;
    let thinking = json!({"type": "thinking", "thinking": "let me see", "signature": "sig"});
    assert_eq!(
        completion.content,
        [
            Part::Reasoning { text: "let me see".to_owned(), opaque: Some(thinking.clone()) },
            Part::Reasoning { text: String::new(), opaque: Some(sealed.clone()) },
        ]
    );
    let back = parsed(&request([message("1", Role::Assistant, completion.content)]));
    assert_eq!(back["messages"][1]["content"], json!([thinking, sealed]));
}

/// Returns a block in the form in which it is sent back, without fields that only the provider adds to text and calls.
fn plain(block: &Value) -> Value {
    match block["type"].as_str() {
        Some("text") => json!({"type": "text", "text": block["text"]}),
        Some("tool_use") => json!({"type": "tool_use", "id": block["id"], "name": block["name"], "input": block["input"]}),
        _ => block.clone(),
    }
}

#[tokio::test]
#[cfg_attr(not(aye_shared), ignore = "needs the shared test material: set AYE_SHARED")]
async fn recorded_responses_are_sent_back_unchanged_block_by_block() {
    let root = shared!("fixtures/llm/anthropic_messages");
    for entry in std::fs::read_dir(root).unwrap() {
        let directory = entry.unwrap().path();
        let expected: Value = serde_json::from_slice(&std::fs::read(directory.join("expected.json")).unwrap()).unwrap();
        if expected["complete"] == false {
            continue;
        }
        let stream = Bytes::from(std::fs::read(directory.join("stream.sse")).unwrap());
        let completion = play(MessagesAssembler::new(speaker()), vec![stream]).await.1.unwrap();
        let visible = |block: &&Value| block["type"] != "text" || !block["text"].as_str().unwrap().trim().is_empty();
        let blocks: Vec<Value> = expected["content"].as_array().unwrap().iter().filter(visible).map(plain).collect();
        let sent = parsed(&request([message("1", Role::Assistant, completion.content)]));
        let sent = sent["messages"][1]["content"].as_array().cloned().unwrap_or_default();
        assert_eq!(sent, blocks, "{}", directory.display());
    }
}
