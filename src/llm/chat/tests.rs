use super::*;
use crate::llm::quirks::Quirks;
use crate::llm::tests::samples::{call, message, picture, request, text};
use crate::llm::tests::{play, speaker};
use crate::llm::thread::ThreadCache;
use crate::ports::Completion;
use crate::protocol::*;
use bytes::Bytes;
use serde_json::{Value, json};
use std::sync::Arc;

#[test]
fn a_thread_is_converted_to_a_chat_completions_request() {
    let failed = ToolError::new(ErrorCode::InvalidRequest, "not an object");
    let thread = vec![
        message("1", Role::User, vec![text("find it")]),
        message(
            "2",
            Role::Assistant,
            vec![
                Part::Reasoning { text: "hm".to_owned(), opaque: Some(json!({"reasoning_content": "hm"})) },
                Part::Reasoning { text: "foreign".to_owned(), opaque: Some(json!({"type": "thinking", "thinking": "x"})) },
                call("c/1", "Grep", r#"{"pattern":"a"}"#),
                call("c/2", "Grep", "{bro"),
            ],
        ),
        message(
            "3",
            Role::Tool,
            vec![
                Part::ToolResult(ToolResult::success(CallId::new("c/1"), "Grep", "found")),
                Part::ToolResult(ToolResult::from_error(CallId::new("c/2"), "Grep", failed)),
            ],
        ),
        message("4", Role::Assistant, vec![text("done")]),
    ];
    let mut kept = ThreadCache::default();
    let body: Value =
        serde_json::from_slice(&body("m", "http://127.0.0.1/v1", &request(thread), &Quirks::default(), &mut kept)).unwrap();
    let function = |name: &str, arguments: &str| json!({"name": name, "arguments": arguments});
    let expected = json!({
        "model": "m",
        "stream": true,
        "stream_options": {"include_usage": true},
        "max_tokens": 99,
        "tools": [{"type": "function", "function": {"name": "Grep", "description": "searches", "parameters": {"type": "object"}}}],
        "messages": [
            {"role": "system", "content": "be brief"},
            {"role": "user", "content": "find it"},
            {"role": "assistant", "content": null, "reasoning_content": "hm", "tool_calls": [
                {"id": "c/1", "type": "function", "function": function("Grep", "{\"pattern\":\"a\"}")},
                {"id": "c/2", "type": "function", "function": function("Grep", "{bro")},
            ]},
            {"role": "tool", "tool_call_id": "c/1", "content": "found"},
            {"role": "tool", "tool_call_id": "c/2", "content": "INVALID_REQUEST: not an object"},
            {"role": "assistant", "content": "done"},
            {"role": "user", "content": "Continue."},
        ],
    });
    assert_eq!(body, expected);
}

#[test]
fn images_follow_all_tool_results_of_a_response() {
    let results = vec![
        Part::ToolResult(picture("c/1", "artifact:1")),
        Part::ToolResult(ToolResult::success(CallId::new("c/2"), "Grep", "found")),
        Part::ToolResult(picture("c/3", "artifact:gone")),
    ];
    let calls = ["c/1", "c/2", "c/3"].map(|id| call(id, "ReadFile", "{}")).to_vec();
    let mut request = request(vec![message("0", Role::Assistant, calls), message("1", Role::Tool, results)]);
    request.images = Some(Arc::new([("artifact:1".to_owned(), "AAAA".into())].into()));
    let body: Value =
        serde_json::from_slice(&body("m", "http://127.0.0.1/v1", &request, &Quirks::default(), &mut ThreadCache::default()))
            .unwrap();
    let gone = "Image, 2x3 png, 4 bytes\n[no longer shown: only the newest images are sent; read it again to see it]";
    let expected = json!([
        {"role": "system", "content": "be brief"},
        {"role": "tool", "tool_call_id": "c/1", "content": "Image, 2x3 png, 4 bytes"},
        {"role": "tool", "tool_call_id": "c/2", "content": "found"},
        {"role": "tool", "tool_call_id": "c/3", "content": gone},
        {"role": "user", "content": [
            {"type": "text", "text": "[the images of the results above, in order]"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
        ]},
    ]);
    let mut sent = body["messages"].clone();
    // Note about the removed start, and the response.
    sent.as_array_mut().unwrap().drain(1..3);
    assert_eq!(sent, expected);
}

#[test]
fn the_output_limit_field_is_named_as_the_server_expects() {
    for (base, name) in [
        ("https://api.openai.com/v1", "max_completion_tokens"),
        ("https://eu.api.openai.com/v1", "max_completion_tokens"),
        ("https://x.openai.azure.com/openai/v1", "max_completion_tokens"),
        ("https://openai.com.example/v1", "max_tokens"),
        ("http://localhost:11434/v1", "max_tokens"),
    ] {
        let body: Value =
            serde_json::from_slice(&body("m", base, &request(Vec::new()), &Quirks::default(), &mut ThreadCache::default()))
                .unwrap();
        assert_eq!(body[name], 99, "{base}");
    }
}

async fn read(choices: &[Value]) -> Completion {
    let stream: Vec<String> = choices.iter().map(|choice| format!("data: {}\n\n", json!({"choices": [choice]}))).collect();
    play(ChatAssembler::new(speaker()), vec![Bytes::from(format!("{}data: [DONE]\n\n", stream.concat()))]).await.1.unwrap()
}

fn piece(call: Value) -> Value {
    json!({"index": 0, "delta": {"tool_calls": [call]}})
}

fn finish(reason: &str) -> Value {
    json!({"index": 0, "delta": {}, "finish_reason": reason})
}

/// Returns the ID, name and arguments of each call.
fn calls(completion: &Completion) -> Vec<(String, String, String)> {
    completion
        .content
        .iter()
        .filter_map(|part| if let Part::ToolCall(call) = part { Some(call) } else { None })
        .map(|call| {
            let arguments = match &call.arguments {
                CallArguments::Object(map) => serde_json::to_string(map).unwrap(),
                CallArguments::Malformed(text) => format!("malformed: {text}"),
            };
            (call.tool_call_id.to_string(), call.tool_name.clone(), arguments)
        })
        .collect()
}

#[tokio::test]
async fn call_fragments_are_assigned_to_their_call_with_any_numbering() {
    let cases = [
        (
            "by index, interleaved",
            vec![
                json!({"index": 0, "id": "a", "function": {"name": "x", "arguments": ""}}),
                json!({"index": 1, "id": "b", "function": {"name": "y", "arguments": "{\"k\""}}),
                json!({"index": 0, "function": {"arguments": "{\"k\":1}"}}),
                json!({"index": 1, "function": {"arguments": ":2}"}}),
            ],
        ),
        (
            "in one piece, no index",
            vec![
                json!({"id": "a", "function": {"name": "x", "arguments": "{\"k\":1}"}}),
                json!({"id": "b", "function": {"name": "y", "arguments": "{\"k\":2}"}}),
            ],
        ),
        (
            "no index, id only at the start",
            vec![
                json!({"id": "a", "function": {"name": "x", "arguments": "{\"k\""}}),
                json!({"function": {"arguments": ":1}"}}),
                json!({"id": "b", "function": {"name": "y", "arguments": "{\"k\""}}),
                json!({"function": {"arguments": ":2}"}}),
            ],
        ),
        (
            "no index, id in every piece",
            vec![
                json!({"id": "a", "function": {"name": "x", "arguments": "{\"k\""}}),
                json!({"id": "a", "function": {"name": "x", "arguments": ":1}"}}),
                json!({"id": "b", "function": {"name": "y", "arguments": "{\"k\":2}"}}),
            ],
        ),
        (
            "all numbered 0",
            vec![
                json!({"index": 0, "id": "a", "function": {"name": "x", "arguments": "{\"k\":1}"}}),
                json!({"index": 0, "id": "b", "function": {"name": "y", "arguments": "{\"k\":2}"}}),
            ],
        ),
        (
            "from 1, with arguments as an object",
            vec![
                json!({"index": 1, "id": "a", "function": {"name": "x", "arguments": {"k": 1}}}),
                json!({"index": 2, "id": "b", "function": {"name": "y", "arguments": {"k": 2}}}),
            ],
        ),
        (
            "another id in every piece",
            vec![
                json!({"index": 0, "id": "a", "function": {"name": "x", "arguments": "{\"k\""}}),
                json!({"index": 0, "id": "q", "function": {"arguments": ":1}"}}),
                json!({"index": 1, "id": "b", "function": {"name": "y", "arguments": "{\"k\":2}"}}),
            ],
        ),
    ];
    let expected = [("a", "x", "{\"k\":1}"), ("b", "y", "{\"k\":2}")]
        .map(|(id, name, arguments)| (id.into(), name.into(), arguments.into()));
    for (label, pieces) in cases {
        let mut choices: Vec<Value> = pieces.into_iter().map(piece).collect();
        choices.push(finish("tool_calls"));
        let completion = read(&choices).await;
        assert_eq!(calls(&completion), expected, "{label}");
        assert_eq!(completion.stop_reason, StopReason::ToolUse, "{label}");
    }
}

#[tokio::test]
async fn calls_without_ids_get_ids_that_are_unique_across_responses() {
    let choices = [
        piece(json!({"function": {"name": "x", "arguments": "{}"}})),
        piece(json!({"function": {"name": "x", "arguments": "{}"}})),
        finish("stop"),
    ];
    let mut ids: Vec<String> = Vec::new();
    for _ in 0..2 {
        let completion = read(&choices).await;
        assert_eq!(completion.stop_reason, StopReason::ToolUse);
        ids.extend(calls(&completion).into_iter().map(|(id, ..)| id));
    }
    assert_eq!(ids.len(), 4);
    assert!(ids.iter().all(|id| id.starts_with("call_")));
    assert_eq!(ids.iter().collect::<std::collections::BTreeSet<_>>().len(), 4);
}

#[tokio::test]
async fn calls_truncated_by_the_output_limit_are_malformed() {
    for (arguments, expected) in [("{\"a\":1", "malformed: {\"a\":1"), ("", "malformed: "), ("{\"a\":1}", "malformed: {\"a\":1}")]
    {
        let completion =
            read(&[piece(json!({"index": 0, "id": "a", "function": {"name": "x", "arguments": arguments}})), finish("length")])
                .await;
        assert_eq!(calls(&completion), [("a".into(), "x".into(), expected.to_owned())]);
        assert_eq!(completion.stop_reason, StopReason::MaxTokens);
    }
}

#[tokio::test]
async fn thinking_is_sent_back_in_the_field_it_was_received_in() {
    let signed = json!([{"type": "reasoning.text", "text": "let me", "index": 0, "signature": "sig"}]);
    let cases = [
        (vec![json!({"reasoning": "let "}), json!({"reasoning": "me"})], json!({"reasoning": "let me"})),
        (vec![json!({"reasoning_content": "let me", "reasoning": "let me"})], json!({"reasoning_content": "let me"})),
        (
            vec![
                json!({"reasoning": "let ", "reasoning_details": [{"type": "reasoning.text", "text": "let ", "index": 0}]}),
                json!({"reasoning": "me", "reasoning_details": [{"type": "reasoning.text", "text": "me", "index": 0, "signature": "sig"}]}),
            ],
            json!({"reasoning_details": signed}),
        ),
    ];
    for (deltas, opaque) in cases {
        let mut choices: Vec<Value> = deltas.into_iter().map(|delta| json!({"index": 0, "delta": delta})).collect();
        choices.push(finish("stop"));
        let completion = read(&choices).await;
        assert_eq!(completion.content, [Part::Reasoning { text: "let me".to_owned(), opaque: Some(opaque) }]);
    }
}
