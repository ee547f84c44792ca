//! Tests that calls are run only if the server marked them as complete. Each API's stream is cut off after every event,
//! and ended in every possible way.

use super::*;
use serde_json::json;

struct Stream {
    dialect: &'static str,
    events: Vec<Value>,
    /// Index of the event that marks the call as complete.
    end: usize,
    /// Ways in which a response can end early, other than by closing the connection.
    closings: Vec<Vec<Value>>,
}

/// Placeholder for a `[DONE]` event.
const DONE: Value = Value::Null;

fn streams() -> Vec<Stream> {
    let piece = |json: &str| json!({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": json}});
    let stopped = |why: &str| json!({"type": "message_delta", "delta": {"stop_reason": why}, "usage": {"output_tokens": 5}});
    let stop = json!({"type": "message_stop"});
    let anthropic = Stream {
        dialect: "anthropic_messages",
        events: vec![
            json!({"type": "message_start", "message": {"id": "m", "content": [], "usage": {"input_tokens": 3}}}),
            json!({"type": "content_block_start", "index": 0,
                "content_block": {"type": "tool_use", "id": "c", "name": "Delete", "input": {}}}),
            piece(r#"{"path":"#),
            piece(r#""a"}"#),
            json!({"type": "content_block_stop", "index": 0}),
            stopped("tool_use"),
            stop.clone(),
        ],
        end: 4,
        closings: vec![vec![stop.clone()], vec![stopped("tool_use"), stop.clone()], vec![stopped("max_tokens"), stop]],
    };
    let chunk = |delta: Value, finish: Option<&str>| json!({"id": "x", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]});
    let arguments = |json: &str| json!({"tool_calls": [{"index": 0, "function": {"arguments": json}}]});
    let chat = Stream {
        dialect: "openai_chat",
        events: vec![
            chunk(json!({"tool_calls": [{"index": 0, "id": "c", "function": {"name": "Delete", "arguments": ""}}]}), None),
            chunk(arguments(r#"{"path":"#), None),
            chunk(arguments(r#""a"}"#), None),
            chunk(json!({}), Some("tool_calls")),
            DONE,
        ],
        end: 3,
        closings: vec![vec![DONE]],
    };
    let item = |status: &str, arguments: &str| {
        json!({"type": "function_call", "id": "fc", "call_id": "c", "name": "Delete",
        "status": status, "arguments": arguments})
    };
    let delta = |piece: &str| json!({"type": "response.function_call_arguments.delta", "output_index": 0, "delta": piece});
    let ended = |kind: &str, output: Value| {
        json!({"type": kind, "response": {"output": output,
        "incomplete_details": {"reason": "max_output_tokens"}}})
    };
    let whole = r#"{"path":"a"}"#;
    let responses = Stream {
        dialect: "openai_responses",
        events: vec![
            json!({"type": "response.created", "response": {"id": "r"}}),
            json!({"type": "response.output_item.added", "output_index": 0, "item": item("in_progress", "")}),
            delta(r#"{"path":"#),
            delta(r#""a"}"#),
            json!({"type": "response.function_call_arguments.done", "output_index": 0, "arguments": whole}),
            json!({"type": "response.output_item.done", "output_index": 0, "item": item("completed", whole)}),
            ended("response.completed", json!([item("completed", whole)])),
        ],
        end: 4,
        closings: vec![
            vec![ended("response.completed", json!([]))],
            vec![ended("response.incomplete", json!([]))],
            vec![ended("response.incomplete", json!([item("incomplete", whole)]))],
            vec![ended("response.incomplete", json!([item("in_progress", whole)]))],
            vec![ended("response.completed", json!([item("in_progress", whole)]))],
            vec![
                json!({"type": "response.output_item.done", "output_index": 0, "item": item("in_progress", whole)}),
                ended("response.completed", json!([])),
            ],
            vec![json!({"type": "response.done"})],
            vec![DONE],
        ],
    };
    let call = json!({"functionCall": {"name": "Delete", "args": {"path": "a"}}});
    let gemini = Stream {
        dialect: "gemini",
        events: vec![
            json!({"candidates": [{"content": {"parts": [{"text": "I delete it."}]}}]}),
            json!({"candidates": [{"content": {"parts": [call]}}]}),
            json!({"candidates": [{"content": {"parts": []}, "finishReason": "STOP"}]}),
        ],
        end: 2,
        closings: vec![vec![DONE]],
    };
    vec![anthropic, chat, responses, gemini]
}

fn bytes(event: &Value) -> Bytes {
    let data = if *event == DONE { "[DONE]".to_owned() } else { event.to_string() };
    Bytes::from(format!("data: {data}\n\n"))
}

async fn run(dialect: &str, events: &[Value]) -> (Vec<CallArguments>, Option<StopReason>) {
    let Ok(completion) = play(reader(dialect), events.iter().map(bytes).collect()).await.1 else { return (Vec::new(), None) };
    let arguments = completion.content.into_iter().filter_map(|part| match part {
        Part::ToolCall(call) => Some(call.arguments),
        _ => None,
    });
    (arguments.collect(), Some(completion.stop_reason))
}

fn can_run(arguments: &[CallArguments]) -> usize {
    arguments.iter().filter(|arguments| matches!(arguments, CallArguments::Object(_))).count()
}

#[tokio::test]
async fn a_call_without_an_end_event_does_not_run_wherever_the_stream_is_cut() {
    for Stream { dialect, events, end, closings } in streams() {
        let (whole, _) = run(dialect, &events).await;
        assert_eq!(can_run(&whole), 1, "{dialect}: a whole call is run");
        for length in 0..events.len() {
            for closing in closings.iter().chain([&Vec::new()]) {
                let cut = [&events[..length], closing].concat();
                let (arguments, stop) = run(dialect, &cut).await;
                if length <= end {
                    assert_eq!(
                        can_run(&arguments),
                        0,
                        "{dialect} after {length} events, then {closing:?}: {arguments:?} {stop:?}"
                    );
                }
            }
        }
    }
}

#[tokio::test]
async fn a_finished_call_runs_even_if_the_output_limit_ended_the_response() {
    for Stream { dialect, events, end, closings } in streams().into_iter().filter(|stream| stream.end == 4) {
        for closing in &closings {
            let cut = [&events[..=end], closing].concat();
            let (arguments, stop) = run(dialect, &cut).await;
            let repeats_it = closing.iter().any(|event| event.to_string().contains(r#""status":"incomplete""#));
            if stop.is_some() && !repeats_it {
                assert_eq!(can_run(&arguments), 1, "{dialect}, then {closing:?}: {stop:?}");
            }
        }
    }
}

#[tokio::test]
async fn unrequested_partial_arguments_do_not_become_a_call_without_arguments() {
    let part = json!({"functionCall": {"name": "Delete", "willContinue": true,
        "partialArgs": [{"jsonPath": "$.path", "stringValue": "a"}]}});
    let events = [
        json!({"candidates": [{"content": {"parts": [part]}}]}),
        json!({"candidates": [{"content": {"parts": []}, "finishReason": "STOP"}]}),
    ];
    let (arguments, _) = run("gemini", &events).await;
    assert_eq!((arguments.len(), can_run(&arguments)), (1, 0), "{arguments:?}");
}
