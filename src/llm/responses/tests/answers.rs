//! Tests of responses that do not occur in any recording, with missing, repeated and unusual events.

use super::*;

pub(super) async fn hear(events: &[Value]) -> (Vec<Delta>, Result<Completion, ModelError>) {
    let stream: Vec<String> = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    play(ResponsesAssembler::new(speaker()), vec![Bytes::from(stream.concat())]).await
}

pub(super) async fn read(events: &[Value]) -> Completion {
    hear(events).await.1.unwrap()
}

pub(super) fn added(index: u64, item: Value) -> Value {
    json!({"type": "response.output_item.added", "output_index": index, "item": item})
}

pub(super) fn done(index: u64, item: Value) -> Value {
    json!({"type": "response.output_item.done", "output_index": index, "item": item})
}

pub(super) fn delta(kind: &str, index: u64, delta: &str) -> Value {
    json!({"type": format!("response.{kind}.delta"), "output_index": index, "content_index": 0, "delta": delta})
}

pub(super) fn completed(output: Value) -> Value {
    json!({"type": "response.completed", "response": {"status": "completed", "output": output}})
}

pub(super) fn words(text: &str) -> Value {
    json!({"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": text}]})
}

pub(super) fn function(id: &str, arguments: &str) -> Value {
    json!({"type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": "Grep", "arguments": arguments})
}

pub(super) fn calls(completion: &Completion) -> Vec<&ToolCall> {
    completion.content.iter().filter_map(|part| if let Part::ToolCall(call) = part { Some(call) } else { None }).collect()
}

#[tokio::test]
async fn responses_are_complete_even_if_the_server_omits_events() {
    let cases = [
        ("only the end", vec![completed(json!([words("hello")]))]),
        ("no deltas", vec![added(0, json!({"type": "message", "content": []})), done(0, words("hello")), completed(json!([]))]),
        ("no whole items", vec![added(0, json!({"type": "message"})), delta("output_text", 0, "hello"), completed(Value::Null)]),
        ("nothing but deltas", vec![delta("output_text", 0, "hel"), delta("output_text", 0, "lo"), completed(json!([]))]),
        (
            "a whole item without words",
            vec![
                delta("output_text", 0, "hello"),
                done(0, json!({"type": "message", "content": []})),
                json!({"type": "response.completed"}),
            ],
        ),
        (
            "no indexes",
            vec![
                json!({"type": "response.output_item.added", "item": {"type": "message", "id": "a"}}),
                json!({"type": "response.output_text.delta", "item_id": "a", "delta": "hello"}),
                json!({"type": "response.output_item.done", "item": words("hello")}),
                completed(json!([words("hello")])),
            ],
        ),
        (
            "told twice",
            vec![
                added(0, json!({"type": "message"})),
                added(0, json!({"type": "message"})),
                delta("output_text", 0, "hello"),
                done(0, words("hello")),
                done(0, words("hello")),
                completed(json!([words("hello")])),
            ],
        ),
        (
            "other ids in every event",
            vec![
                added(0, json!({"type": "message", "id": "a"})),
                json!({"type": "response.output_text.delta", "output_index": 0, "item_id": "b", "delta": "hello"}),
                done(0, words("hello")),
                completed(json!([{"type": "message", "id": "c", "content": [{"type": "output_text", "text": "hello"}]}])),
            ],
        ),
        (
            "fewer deltas than words",
            vec![delta("output_text", 0, "he"), done(0, words("hello")), completed(json!([words("hello")]))],
        ),
        (
            "indexes from 1",
            vec![delta("output_text", 1, "hel"), delta("output_text", 1, "lo"), completed(json!([words("hello")]))],
        ),
        (
            "fields of other types",
            vec![
                json!({"type": "response.output_item.added", "output_index": "0", "item": 7}),
                json!({"type": "response.output_text.delta", "output_index": 0, "content_index": null, "delta": {"text": "x"}}),
                json!({"type": "response.output_text.delta", "output_index": 0, "content_index": -1, "delta": "hello"}),
                json!({"type": "response.completed", "response": {"status": 1, "output": {}, "usage": [], "model": null}}),
            ],
        ),
    ];
    for (label, events) in cases {
        let (deltas, end) = hear(&events).await;
        let completion = end.unwrap();
        assert_eq!(completion.content, [text("hello")], "{label}");
        assert_eq!(completion.stop_reason, StopReason::EndTurn, "{label}");
        let streamed: String =
            deltas.iter().filter_map(|delta| if let Delta::Text(text) = delta { Some(text.as_str()) } else { None }).collect();
        assert_eq!(streamed, "hello", "{label}");
    }
}

#[tokio::test]
async fn items_with_the_same_index_are_distinguished() {
    let thought = json!({"type": "reasoning", "content": [{"type": "reasoning_text", "text": "hm"}]});
    let completion = read(&[
        added(0, json!({"type": "reasoning"})),
        delta("reasoning_text", 0, "hm"),
        done(0, thought),
        added(0, json!({"type": "message"})),
        delta("output_text", 0, "hello"),
        done(0, words("hello")),
        added(0, function("a", "")),
        done(0, function("a", "{}")),
        added(0, function("b", "")),
        done(0, function("b", "{}")),
        completed(json!([])),
    ])
    .await;
    let kinds: Vec<_> = completion
        .content
        .iter()
        .map(|part| match part {
            Part::Reasoning { text, .. } | Part::Text { text } => text.as_str(),
            Part::ToolCall(call) => call.tool_call_id.as_str(),
            Part::ToolResult(_) | Part::Image(_) => "",
        })
        .collect();
    assert_eq!(kinds, ["hm", "hello", "a", "b"]);
    assert_eq!(completion.stop_reason, StopReason::ToolUse);
}

#[tokio::test]
async fn arguments_are_read_in_pieces_or_whole_and_truncated_ones_are_malformed() {
    let pieces = |pieces: &[&str]| {
        let mut events = vec![added(0, function("a", ""))];
        events.extend(pieces.iter().map(|piece| delta("function_call_arguments", 0, piece)));
        events
    };
    let limited = json!({"type": "response.incomplete", "response": {"status": "incomplete",
        "incomplete_details": {"reason": "max_output_tokens"}, "output": []}});
    let object = |text: &str| CallArguments::parse(text);
    let malformed = |text: &str| CallArguments::Malformed(text.to_owned());
    let told_whole =
        |arguments: &str| json!({"type": "response.function_call_arguments.done", "output_index": 0, "arguments": arguments});
    let whole = |arguments: Value| done(0, json!({"type": "function_call", "call_id": "a", "arguments": arguments}));
    let cases = [
        // The end event is missing, although the arguments happen to be complete.
        (pieces(&["{\"k\"", ":1}"]), completed(json!([])), malformed("{\"k\":1}")),
        ([pieces(&["{\"k\""]), vec![told_whole("{\"k\":1}")]].concat(), completed(json!([])), object("{\"k\":1}")),
        ([pieces(&["{\"k\":1}"]), vec![told_whole("{\"k\":1}")]].concat(), limited.clone(), object("{\"k\":1}")),
        ([pieces(&["{\"k\""]), vec![whole(json!("{\"k\":1}"))]].concat(), completed(json!([])), object("{\"k\":1}")),
        ([pieces(&[]), vec![whole(json!({"k": 1}))]].concat(), completed(json!([])), object("{\"k\":1}")),
        ([pieces(&[]), vec![whole(json!(""))]].concat(), completed(json!([])), object("{}")),
        ([pieces(&["{\"k\":1}"]), vec![whole(json!(""))]].concat(), completed(json!([])), object("{\"k\":1}")),
        (pieces(&["{\"k\":"]), limited.clone(), malformed("{\"k\":")),
        (pieces(&[]), limited.clone(), malformed("")),
        (pieces(&["{\"k\":1}"]), limited.clone(), malformed("{\"k\":1}")),
    ];
    for (at, (mut events, end, arguments)) in cases.into_iter().enumerate() {
        let stop_reason = if end == limited { StopReason::MaxTokens } else { StopReason::ToolUse };
        events.push(end);
        let completion = read(&events).await;
        assert_eq!(calls(&completion).iter().map(|call| &call.arguments).collect::<Vec<_>>(), [&arguments], "{at}");
        assert_eq!(calls(&completion)[0].tool_name, "Grep", "{at}");
        assert_eq!(completion.stop_reason, stop_reason, "{at}");
    }
}

#[tokio::test]
async fn the_stop_reason_is_read_from_the_final_event() {
    let end = |kind: &str, response: Value| json!({"type": format!("response.{kind}"), "response": response});
    let incomplete = |reason: &str| json!({"status": "incomplete", "incomplete_details": {"reason": reason}});
    let cases = [
        (end("completed", json!({"status": "completed"})), StopReason::EndTurn),
        (end("done", json!({"status": "completed"})), StopReason::EndTurn),
        (end("incomplete", incomplete("max_output_tokens")), StopReason::MaxTokens),
        (end("done", incomplete("max_output_tokens")), StopReason::MaxTokens),
        (end("completed", incomplete("max_output_tokens")), StopReason::MaxTokens),
        (end("incomplete", incomplete("content_filter")), StopReason::ContentFilter),
        (end("incomplete", json!({"incomplete_details": null})), StopReason::MaxTokens),
        (end("cancelled", json!({"status": "cancelled"})), StopReason::Cancelled),
    ];
    for (event, stop_reason) in cases {
        let completion = read(&[delta("output_text", 0, "hello"), event.clone()]).await;
        assert_eq!(completion.stop_reason, stop_reason, "{event}");
    }
}

#[tokio::test]
async fn refusals_are_read_as_text() {
    let refusal = json!({"type": "message", "content": [{"type": "refusal", "refusal": "I will not."}]});
    let (deltas, end) = hear(&[delta("refusal", 0, "I will"), done(0, refusal), completed(json!([]))]).await;
    assert_eq!(deltas[0], Delta::Text("I will not.".to_owned()));
    assert_eq!(end.unwrap().content, [text("I will not.")]);
}

#[tokio::test]
async fn thinking_parts_are_separated_and_repeated_text_is_shown_once() {
    let summary = |index: u64, text: &str| json!({"type": "response.reasoning_summary_text.delta", "output_index": 0, "summary_index": index, "delta": text});
    let (deltas, end) = hear(&[
        summary(0, "one"),
        summary(1, "two"),
        delta("reasoning_text", 0, "in full"),
        delta("reasoning_text", 1, "three"),
        completed(json!([])),
    ])
    .await;
    assert_eq!(deltas, [Delta::Reasoning("one\n\ntwo\n\nthree".to_owned())]);
    let texts: Vec<String> = end
        .unwrap()
        .content
        .into_iter()
        .map(|part| if let Part::Reasoning { text, .. } = part { text } else { String::new() })
        .collect();
    assert_eq!(texts, ["one\n\ntwo", "three"]);
}

#[tokio::test]
async fn usage_includes_cached_and_reasoning_tokens() {
    let usage = json!({"input_tokens": 100, "input_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 5},
        "output_tokens": 30, "output_tokens_details": {"reasoning_tokens": 20}});
    let end = json!({"type": "response.completed", "response": {"model": "gpt-5.5-2026", "usage": usage}});
    let completion = read(&[delta("output_text", 0, "hello"), end]).await;
    let counted =
        Usage { input_tokens: 100, cache_read_tokens: 60, cache_write_tokens: 5, output_tokens: 30, reasoning_tokens: 20 };
    assert_eq!((completion.usage, completion.model.as_deref()), (counted, Some("gpt-5.5-2026")));
}

#[tokio::test]
async fn errors_inside_the_stream_are_classified_and_report_usage() {
    use FailureKind::*;
    let failed = |error: Value| json!({"type": "response.failed", "response": {"status": "failed", "error": error}});
    let cases = [
        (failed(json!({"code": "server_error", "message": "trouble"})), Overloaded, "trouble"),
        (failed(json!({"code": "rate_limit_exceeded", "message": "slow"})), RateLimited, "slow"),
        (failed(json!({"code": "context_length_exceeded", "message": "long"})), ContextTooLong, "long"),
        (failed(json!({"code": "invalid_prompt", "message": "bad"})), InvalidRequest, "bad"),
        (failed(json!({"code": "insufficient_quota", "message": "poor"})), Billing, "poor"),
        (json!({"type": "error", "code": "server_error", "message": "flat", "param": null}), Overloaded, "flat"),
        (json!({"type": "error", "error": {"type": "invalid_request_error", "message": "nested"}}), InvalidRequest, "nested"),
        (json!({"error": {"code": 429, "message": "gateway"}}), RateLimited, "gateway"),
        (failed(Value::Null), Overloaded, "the provider ended its response with an unspecified error"),
    ];
    for (event, kind, message) in cases {
        let (deltas, end) = hear(&[delta("output_text", 0, "hello"), event.clone()]).await;
        let failure = end.unwrap_err().failure;
        assert_eq!((failure.kind, failure.message.as_str()), (kind, message), "{event}");
        assert_eq!(deltas, [Delta::Text("hello".to_owned())], "{event}");
    }
    let usage = json!({"input_tokens": 7, "output_tokens": 1});
    let response = json!({"status": "failed", "error": {"code": "server_error", "message": "trouble"}, "usage": usage});
    let error = hear(&[json!({"type": "response.failed", "response": response})]).await.1.unwrap_err();
    assert_eq!(error.usage.map(|usage| (usage.input_tokens, usage.output_tokens)), Some((7, 1)));
}

#[tokio::test]
async fn a_stream_without_a_final_event_is_cut_even_after_done() {
    let body = format!("data: {}\n\ndata: [DONE]\n\n", done(0, words("hello")));
    let error = play(ResponsesAssembler::new(speaker()), vec![Bytes::from(body)]).await.1.unwrap_err();
    assert_eq!(error.failure.kind, FailureKind::CutStream);
}

#[tokio::test]
async fn non_function_calls_get_results_of_their_own_type() {
    let special = |kind: &str, fields: Value| {
        let mut item = json!({"type": kind, "id": "i", "call_id": format!("call_of_{kind}"), "status": "completed"});
        item.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        item
    };
    let items = [
        special("custom_tool_call", json!({"name": "sql", "input": "{\"a\": 1}"})),
        special("local_shell_call", json!({"action": {"type": "exec", "command": ["ls"]}})),
        special("shell_call", json!({"action": {"commands": ["ls"]}})),
        special("apply_patch_call", json!({"operation": {"type": "delete_file", "path": "a"}})),
        special("tool_search_call", json!({"execution": "client", "arguments": {"q": "x"}})),
        special("computer_call", json!({"action": {"type": "screenshot"}})),
    ];
    let mut events: Vec<Value> = (0..).zip(&items).map(|(index, item)| done(index, item.clone())).collect();
    events.push(completed(json!([])));
    let completion = read(&events).await;
    assert_eq!(completion.stop_reason, StopReason::ToolUse);
    let named: Vec<_> = calls(&completion).iter().map(|call| call.tool_name.as_str()).collect();
    assert_eq!(named, ["sql", "local_shell", "shell", "apply_patch", "tool_search", "computer"]);
    assert_eq!(calls(&completion)[0].arguments, CallArguments::Malformed("{\"a\": 1}".to_owned()));
    let failed = || ToolError::new(ErrorCode::InvalidRequest, "no such tool");
    let results = calls(&completion)
        .iter()
        .map(|call| Part::ToolResult(ToolResult::from_error(call.tool_call_id.clone(), call.tool_name.clone(), failed())))
        .collect();
    let input = input(vec![message("1", Role::Assistant, completion.content), message("2", Role::Tool, results)]);
    let input = input.as_array().unwrap();
    assert_eq!(input[..5], items[..5]);
    let function = json!({"type": "function_call", "call_id": "call_of_computer_call", "name": "computer",
        "arguments": "{\"type\":\"screenshot\"}"});
    assert_eq!(input[5], function);
    let told = "INVALID_REQUEST: no such tool";
    let output = json!([{"stdout": "", "stderr": told, "outcome": {"type": "exit", "exit_code": 1}}]);
    let expected = json!([
        {"type": "custom_tool_call_output", "call_id": "call_of_custom_tool_call", "output": told},
        {"type": "local_shell_call_output", "call_id": "call_of_local_shell_call", "output": told},
        {"type": "shell_call_output", "call_id": "call_of_shell_call", "output": output},
        {"type": "apply_patch_call_output", "call_id": "call_of_apply_patch_call", "status": "failed", "output": told},
        {"type": "tool_search_output", "call_id": "call_of_tool_search_call", "execution": "client", "status": "completed", "tools": []},
        {"type": "function_call_output", "call_id": "call_of_computer_call", "output": told},
    ]);
    assert_eq!(json!(input[6..]), expected);
}

#[tokio::test]
async fn calls_run_by_the_provider_are_sent_back_unchanged_and_not_run() {
    let items = [
        json!({"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "q"}}),
        json!({"type": "shell_call", "id": "sh_1", "call_id": "c1", "action": {"commands": ["ls"]}}),
        json!({"type": "shell_call_output", "id": "sho_1", "call_id": "c1", "output": []}),
        json!({"type": "shell_call", "id": "sh_2", "call_id": "c2", "environment": {"type": "container_reference"}, "action": {}}),
        json!({"type": "tool_search_call", "id": "ts_1", "call_id": null, "execution": "server", "arguments": {}}),
        json!({"type": "of_another_year", "id": "x_1", "call_id": "c3"}),
    ];
    let mut events: Vec<Value> = (0..).zip(&items).map(|(index, item)| done(index, item.clone())).collect();
    events.push(done(6, words("done")));
    events.push(completed(json!([])));
    let completion = read(&events).await;
    assert_eq!((calls(&completion).len(), completion.stop_reason), (0, StopReason::EndTurn));
    let mut expected = items.to_vec();
    expected.push(said("done"));
    assert_eq!(input_of(completion.content), json!(expected));
}

#[tokio::test]
async fn renamed_calls_are_sent_back_under_their_new_id() {
    let custom = json!({"type": "custom_tool_call", "id": "i", "call_id": "call_1", "name": "sql", "input": "x"});
    let mut completion = read(&[done(0, custom.clone()), done(1, custom), completed(json!([]))]).await;
    if let Some(Part::ToolCall(call)) = completion.content.last_mut() {
        call.tool_call_id = CallId::new("call_1-2");
    }
    let once = input_of(completion.content[..3].to_vec());
    let kinds: Vec<_> = once.as_array().unwrap().iter().map(|item| &item["type"]).collect();
    assert_eq!(kinds, ["custom_tool_call", "custom_tool_call_output"], "a call that was taken out takes its item along: {once}");
    let input = input(vec![
        message("1", Role::Assistant, completion.content),
        message("2", Role::Tool, vec![found("call_1-2", "b"), found("call_1", "a")]),
    ]);
    let ids: Vec<_> = input.as_array().unwrap().iter().map(|item| (&item["type"], &item["call_id"])).collect();
    let (call, output) = (json!("custom_tool_call"), json!("custom_tool_call_output"));
    let (first, second) = (json!("call_1"), json!("call_1-2"));
    assert_eq!(ids, [(&call, &first), (&call, &second), (&output, &second), (&output, &first)]);
}

#[tokio::test]
async fn thousands_of_parallel_calls_are_read_in_order() {
    let mut events = Vec::new();
    for index in 0..2_000 {
        events.push(added(index, function(&format!("call_number_{index}"), "")));
    }
    for index in (0..2_000).rev() {
        events.push(done(index, function(&format!("call_number_{index}"), "{}")));
    }
    events.push(completed(json!([])));
    let completion = read(&events).await;
    let ids: Vec<_> = calls(&completion).iter().map(|call| call.tool_call_id.to_string()).collect();
    assert_eq!(ids, (0..2_000).map(|index| format!("call_number_{index}")).collect::<Vec<_>>());
}
