use super::*;
use crate::llm::error::RetryHints;
use crate::llm::quirks::Quirks;
use crate::llm::tests::samples::{self, found, message, text};
use crate::llm::tests::{play, speaker};
use crate::llm::thread::ThreadCache;
use crate::ports::{Completion, ModelError, ModelRequest};
use crate::protocol::*;
use bytes::Bytes;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;

mod schema;

fn opaque(value: Value) -> Part {
    Part::Reasoning { text: String::new(), opaque: Some(value) }
}

fn call(id: &str, arguments: &str) -> Part {
    samples::call(id, "Grep", arguments)
}

fn request(messages: &[Arc<Message>]) -> ModelRequest {
    let request = samples::request(messages);
    let schema = json!({"type": "object", "$schema": "x", "properties": {"pattern": {"type": "string"}}});
    let tool = ToolDefinition { input_schema: schema, ..request.tools[0].clone() };
    ModelRequest { tools: Arc::new([tool]), max_output_tokens: 9_000, ..request }
}

fn parsed(model: &str, request: &ModelRequest) -> Value {
    serde_json::from_slice(&body(model, request, &Quirks::default(), &mut ThreadCache::default())).unwrap()
}

fn contents(model: &str, messages: &[Arc<Message>]) -> Value {
    let mut contents = parsed(model, &request(messages))["contents"].clone();
    // A response at the start follows the note about the removed messages.
    if contents[0]["role"] == "user" && messages.first().is_some_and(|first| first.role == Role::Assistant) {
        contents.as_array_mut().unwrap().remove(0);
    }
    contents
}

fn thread() -> Vec<Arc<Message>> {
    let failed = ToolError::new(ErrorCode::InvalidRequest, "not an object");
    vec![
        message("1", Role::User, vec![text("find it")]),
        message(
            "2",
            Role::Assistant,
            vec![
                Part::Reasoning { text: "a summary".to_owned(), opaque: None },
                Part::Reasoning { text: "foreign".to_owned(), opaque: Some(json!({"type": "thinking", "signature": "x"})) },
                Part::Reasoning { text: "foreign".to_owned(), opaque: Some(json!({"reasoning_content": "x"})) },
                text(""),
                text("I look."),
                opaque(json!({"signs": "functionCall", "thoughtSignature": "s1g"})),
                call("k1", r#"{"pattern":"a"}"#),
                call("aye_0123_1", "{bro"),
            ],
        ),
        message("3", Role::Tool, vec![found("k1", "found")]),
        message("4", Role::Tool, vec![Part::ToolResult(ToolResult::from_error(CallId::new("aye_0123_1"), "Grep", failed))]),
        message("5", Role::User, vec![text("and then stop")]),
    ]
}

#[test]
fn a_thread_is_converted_to_the_request_format_of_the_provider() {
    let expected = json!({
        "systemInstruction": {"parts": [{"text": "be brief"}]},
        "tools": [{"functionDeclarations": [{"name": "Grep", "description": "searches",
            "parametersJsonSchema": {"type": "object", "properties": {"pattern": {"type": "string"}}}}]}],
        "generationConfig": {"maxOutputTokens": 9_000},
        "contents": [
            {"role": "user", "parts": [{"text": "find it"}]},
            {"role": "model", "parts": [
                {"text": "I look."},
                {"functionCall": {"id": "k1", "name": "Grep", "args": {"pattern": "a"}}, "thoughtSignature": "s1g"},
                {"functionCall": {"name": "Grep", "args": {}}},
            ]},
            {"role": "user", "parts": [
                {"functionResponse": {"id": "k1", "name": "Grep", "response": {"output": "found"}}},
                {"functionResponse": {"name": "Grep", "response": {"error": "INVALID_REQUEST: not an object"}}},
            ]},
            {"role": "user", "parts": [{"text": "and then stop"}]},
        ],
    });
    for model in ["gemini-2.5-pro", "gemini-3-pro-preview"] {
        assert_eq!(parsed(model, &request(&thread())), expected, "{model}");
    }
    let mut bare = request(&[]);
    (bare.system, bare.tools) = (" ".into(), Arc::new([]));
    assert_eq!(parsed("m", &bare), json!({"generationConfig": {"maxOutputTokens": 9_000}, "contents": []}));
}

#[test]
fn calls_of_other_models_are_marked_unsigned_for_models_that_check_signatures() {
    let messages = [message("1", Role::Assistant, vec![call("toolu_1", "{}"), call("toolu_2", "{}")])];
    let signatures = |model: &str| {
        let parts = contents(model, &messages)[0]["parts"].clone();
        [parts[0]["thoughtSignature"].clone(), parts[1]["thoughtSignature"].clone()]
    };
    assert_eq!(signatures("gemini-2.5-flash"), [Value::Null, Value::Null]);
    for model in ["gemini-3-pro-preview", "models/gemini-3.5-flash", "gemini-10.1-pro"] {
        assert_eq!(signatures(model), [json!("skip_thought_signature_validator"), Value::Null], "{model}");
    }
}

#[test]
fn a_signature_applies_only_to_the_part_that_follows() {
    let sign = |what: &str| opaque(json!({"signs": what, "thoughtSignature": "s"}));
    let messages = [message(
        "1",
        Role::Assistant,
        vec![sign("functionCall"), text("a"), sign("text"), text("b"), sign("text"), call("c", "{}"), sign("text")],
    )];
    let expected = json!([
        {"text": "a"},
        {"text": "b", "thoughtSignature": "s"},
        {"functionCall": {"id": "c", "name": "Grep", "args": {}}},
    ]);
    assert_eq!(contents("gemini-2.5-pro", &messages)[0]["parts"], expected);
}

#[test]
fn invalid_function_names_are_sanitized() {
    let of = |name: &str| {
        let call = ToolCall { tool_call_id: CallId::new("c"), tool_name: name.to_owned(), arguments: CallArguments::parse("{}") };
        let parts = contents("m", &[message("1", Role::Assistant, vec![Part::ToolCall(call)])])[0]["parts"].clone();
        parts[0]["functionCall"]["name"].as_str().unwrap().to_owned()
    };
    assert_eq!(of("mcp:a.b-c_d"), "mcp:a.b-c_d");
    assert_eq!(of("read file/ü"), "read_file__");
    assert_eq!((of(""), of("1st")), ("_".to_owned(), "_1st".to_owned()));
    assert_eq!(of(&"x".repeat(99)).len(), 64);
}

#[test]
fn images_are_part_of_their_result_or_follow_all_results() {
    let image = |uri: &str| Image { uri: uri.to_owned(), media_type: "image/png".to_owned(), width: 2, height: 3, bytes: 4 };
    let result = ToolResult { images: vec![image("artifact:1")], ..ToolResult::success(CallId::new("c"), "ReadFile", "2x3") };
    let messages = [
        message("0", Role::User, vec![text("look")]),
        message("1", Role::Assistant, vec![call("c", "{}")]),
        message("2", Role::Tool, vec![Part::ToolResult(result)]),
        message("3", Role::User, vec![text("and this"), Part::Image(image("artifact:2")), Part::Image(image("artifact:gone"))]),
    ];
    let mut request = request(&messages);
    request.images = Some(Arc::new([("artifact:1".to_owned(), "AAAA".into()), ("artifact:2".to_owned(), "BBBB".into())].into()));
    let data = |data: &str| json!({"inlineData": {"mimeType": "image/png", "data": data}});
    let answer = json!({"id": "c", "name": "ReadFile", "response": {"output": "2x3"}});
    let mut answer_with_it = answer.clone();
    answer_with_it["parts"] = json!([data("AAAA")]);
    let gone = "[no longer shown: only the newest images are sent; read it again to see it]";
    let second = json!([{"text": "and this"}, data("BBBB"), {"text": gone}]);
    let of = |model: &str| parsed(model, &request)["contents"].clone();
    let old = of("gemini-2.5-flash");
    assert_eq!(old[2]["parts"], json!([{"functionResponse": answer}]));
    assert_eq!(old[3]["parts"], json!([data("AAAA"), second[0], second[1], second[2]]));
    let new = of("gemini-3-flash");
    assert_eq!(new[2]["parts"], json!([{"functionResponse": answer_with_it}]));
    assert_eq!(new[3]["parts"], second);
}

#[test]
fn effort_is_sent_in_the_format_of_the_model_generation() {
    use Effort::*;
    let of = |model: &str, effort: Effort, most: u64| {
        let mut request = request(&[]);
        (request.effort, request.max_output_tokens) = (Some(effort), most);
        parsed(model, &request)["generationConfig"]["thinkingConfig"].clone()
    };
    let budget = |tokens: u64, shown: bool| json!({"includeThoughts": shown, "thinkingBudget": tokens});
    let level = |level: &str, shown: bool| json!({"includeThoughts": shown, "thinkingLevel": level});
    for (model, effort, most, expected) in [
        ("gemini-2.5-flash", Off, 65_536, budget(0, false)),
        ("gemini-2.5-pro", Off, 65_536, budget(512, false)),
        ("gemini-2.5-pro", Low, 65_536, budget(2_048, true)),
        ("gemini-2.5-flash", High, 65_536, budget(24_576, true)),
        ("gemini-2.5-flash", High, 8_000, budget(4_000, true)),
        ("gemini-flash-latest", Medium, 65_536, budget(8_192, true)),
        ("gemini-3-pro-preview", Medium, 65_536, level("high", true)),
        ("gemini-3-pro-preview", Off, 65_536, level("low", false)),
        ("gemini-3.1-pro-preview", Medium, 65_536, level("medium", true)),
        ("gemini-3-flash-preview", Off, 65_536, level("minimal", false)),
    ] {
        assert_eq!(of(model, effort, most), expected, "{model} {effort:?} {most}");
    }
}

#[test]
fn cached_messages_do_not_change_requests() {
    let mut kept = ThreadCache::default();
    let messages = thread();
    for count in [1, 2, 4, 3, 5, 0, 5] {
        let request = request(&messages[..count]);
        assert_eq!(
            body("m", &request, &Quirks::default(), &mut kept),
            body("m", &request, &Quirks::default(), &mut ThreadCache::default()),
            "{count}"
        );
    }
}

#[test]
fn requests_begin_and_end_with_a_user_turn() {
    let contents = parsed("m", &request(&[message("1", Role::Assistant, vec![text("so")])]))["contents"].clone();
    let user = |text: &str| json!({"role": "user", "parts": [{"text": text}]});
    let gone = user("[the beginning of the conversation was removed]");
    assert_eq!(contents, json!([gone, {"role": "model", "parts": [{"text": "so"}]}, user("Continue.")]));
}

#[test]
fn the_retry_delay_is_read_from_the_error_details() {
    let details = json!([
        {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaId": "x", "quotaValue": "15"}]},
        {"@type": "type.googleapis.com/google.rpc.Help", "links": [{"url": "https://ai.google.dev"}]},
        {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "38.5s"},
    ]);
    let error = json!({"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "quota", "details": details}});
    for body in [error.clone(), json!([error])] {
        let refused = speaker().status_error(429, "status", body.to_string().as_bytes(), RetryHints::default());
        assert_eq!(refused.retry_after, Some(std::time::Duration::from_millis(38_500)), "{body}");
        let asked = RetryHints { wait: Some(std::time::Duration::from_secs(2)), ..RetryHints::default() };
        let refused = speaker().status_error(429, "status", body.to_string().as_bytes(), asked);
        assert_eq!(refused.retry_after, Some(std::time::Duration::from_secs(2)), "a header goes before it");
    }
    assert_eq!(speaker().error_event(&error.to_string()).retry_after, Some(std::time::Duration::from_millis(38_500)));
}

#[test]
fn parameters_that_a_model_rejects_are_omitted() {
    let mut asked = request(&[message("1", Role::User, vec![text("go")])]);
    asked.effort = Some(Effort::High);
    let cases = [
        ("thinking_level is not supported by this model", "/generationConfig/thinkingConfig"),
        ("Budget 0 is invalid. This model only works in thinking mode.", "/generationConfig/thinkingConfig"),
        ("Function calling is not supported for this model", "/tools"),
    ];
    for (refusal, place) in cases {
        let mut quirks = Quirks::default();
        let sent = |quirks: &Quirks| -> Value {
            serde_json::from_slice(&body("gemini-9-x", &asked, quirks, &mut ThreadCache::default())).unwrap()
        };
        assert!(sent(&quirks).pointer(place).is_some(), "{refusal}");
        assert!(quirks.learn(refusal, asked.max_output_tokens).is_some(), "{refusal}");
        assert!(sent(&quirks).pointer(place).is_none(), "{refusal}");
    }
}

#[test]
fn the_url_contains_the_model_and_the_version_once() {
    let home = "https://generativelanguage.googleapis.com";
    let end = ":streamGenerateContent?alt=sse";
    for (base, model, expected) in [
        (home, "gemini-2.5-pro", "/v1beta/models/gemini-2.5-pro"),
        ("http://127.0.0.1:1/v1beta", "models/gemini-2.5-pro", "/models/gemini-2.5-pro"),
        (home, "tunedModels/mine-1", "/v1beta/tunedModels/mine-1"),
        (home, "a b?c#d%e/ü", "/v1beta/models/a%20b%3Fc%23d%25e/%C3%BC"),
    ] {
        assert_eq!(path(base, model), format!("{expected}{end}"), "{base} {model}");
    }
}

async fn read(chunks: &[Value]) -> Result<Completion, ModelError> {
    let stream: Vec<String> = chunks.iter().map(|chunk| format!("data: {chunk}\r\n\r\n")).collect();
    play(GeminiAssembler::new(speaker()), vec![Bytes::from(stream.concat())]).await.1
}

fn candidate(parts: Value, finish: &str) -> Value {
    json!({"candidates": [{"content": {"parts": parts, "role": "model"}, "finishReason": finish, "index": 0}],
        "usageMetadata": {"promptTokenCount": 5, "candidatesTokenCount": 2, "thoughtsTokenCount": 3}})
}

/// Returns parts in the form in which they are sent back, without summaries and fields that only the provider adds, and
/// with adjacent parts of the same kind merged.
fn goes_back(parts: &[Value]) -> Vec<Value> {
    let mut back: Vec<Value> = Vec::new();
    for part in parts {
        let signed = part["thoughtSignature"].is_string();
        if (part["thought"] == true || part["text"] == "") && !signed {
            continue;
        }
        match back.last_mut() {
            Some(last)
                if part["text"].is_string() && last["text"].is_string() && !signed && last["thoughtSignature"].is_null() =>
            {
                last["text"] = json!(format!("{}{}", last["text"].as_str().unwrap(), part["text"].as_str().unwrap()));
            }
            _ if ["text", "functionCall", "executableCode", "codeExecutionResult"].iter().any(|kind| !part[kind].is_null()) => {
                let mut part = part.clone();
                if !part["functionCall"].is_null() && part["functionCall"]["args"].is_null() {
                    part["functionCall"]["args"] = json!({});
                }
                back.push(part);
            }
            _ => {}
        }
    }
    back
}

#[tokio::test]
async fn responses_are_sent_back_unchanged_part_by_part() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/llm/gemini");
    let mut seen = 0;
    for entry in std::fs::read_dir(root).unwrap() {
        let directory = entry.unwrap().path();
        let stream = std::fs::read_to_string(directory.join("stream.sse")).unwrap();
        let Ok(completion) = play(GeminiAssembler::new(speaker()), vec![Bytes::from(stream.clone())]).await.1 else { continue };
        let chunks = stream.lines().filter_map(|line| serde_json::from_str::<Value>(line.strip_prefix("data: ")?).ok());
        let first = |chunk: Value| chunk["candidates"].as_array()?.iter().find(|candidate| candidate["index"] == 0).cloned();
        let parts: Vec<Value> = chunks
            .filter_map(first)
            .flat_map(|candidate| candidate["content"]["parts"].as_array().cloned().unwrap_or_default())
            .collect();
        let sent = contents("gemini-2.5-pro", &[message("1", Role::Assistant, completion.content)]);
        let sent = sent[0]["parts"].as_array().cloned().unwrap_or_default();
        assert_eq!(sent, goes_back(&parts), "{}", directory.display());
        seen += 1;
    }
    assert!(seen >= 8);
}

#[tokio::test]
async fn signed_thoughts_are_sent_back_with_text_and_signature() {
    let parts =
        json!([{"text": "hm", "thought": true, "thoughtSignature": "a"}, {"text": "x", "thoughtSignature": "b"}, {"text": "y"}]);
    let completion = read(&[candidate(parts.clone(), "STOP")]).await.unwrap();
    assert_eq!(contents("gemini-3-pro", &[message("1", Role::Assistant, completion.content)])[0]["parts"], parts);
}

#[tokio::test]
async fn calls_without_ids_get_ids_that_are_unique_across_responses() {
    let mut ids = std::collections::BTreeSet::new();
    for _ in 0..2 {
        let parts = json!([{"functionCall": {"name": "x", "args": {}}}, {"functionCall": {"name": "x", "id": " "}}]);
        let completion = read(&[candidate(parts, "STOP")]).await.unwrap();
        assert_eq!(completion.stop_reason, StopReason::ToolUse);
        for part in completion.content {
            let Part::ToolCall(call) = part else { panic!("{part:?}") };
            assert_eq!(call.arguments, CallArguments::parse("{}"));
            ids.insert(call.tool_call_id.to_string());
        }
    }
    assert_eq!(ids.len(), 4);
}

#[tokio::test]
async fn non_object_arguments_are_malformed_and_partial_calls_do_not_run() {
    let parts = json!([
        {"functionCall": {"name": "x", "args": [1]}},
        {"functionCall": {"name": "y", "args": null, "partialArgs": [{"jsonPath": "$.a", "stringValue": "b"}], "willContinue": true}},
        {"functionCall": {}},
    ]);
    let content = read(&[candidate(parts, "STOP")]).await.unwrap().content;
    let arguments: Vec<_> =
        content.iter().filter_map(|part| if let Part::ToolCall(call) = part { Some(&call.arguments) } else { None }).collect();
    assert_eq!(arguments, [&CallArguments::Malformed("[1]".to_owned()), &CallArguments::Malformed(String::new())]);
}

#[tokio::test]
async fn finish_reasons_map_to_stop_reasons_or_errors() {
    use StopReason::*;
    for (reason, expected) in [
        ("STOP", EndTurn),
        ("MAX_TOKENS", MaxTokens),
        ("SAFETY", ContentFilter),
        ("RECITATION", ContentFilter),
        ("LANGUAGE", ContentFilter),
        ("BLOCKLIST", ContentFilter),
        ("PROHIBITED_CONTENT", ContentFilter),
        ("SPII", ContentFilter),
        ("IMAGE_SAFETY", ContentFilter),
        ("OTHER", Error),
        ("A_REASON_OF_TOMORROW", EndTurn),
    ] {
        let completion = read(&[candidate(json!([{"text": "a"}]), reason)]).await.unwrap();
        assert_eq!(completion.stop_reason, expected, "{reason}");
    }
    let nothing = read(&[candidate(json!([]), "A_REASON_OF_TOMORROW")]).await.unwrap();
    assert_eq!(nothing.stop_reason, Error);
    let cut = read(&[candidate(json!([{"text": "a"}]), "FINISH_REASON_UNSPECIFIED")]).await.unwrap_err();
    assert_eq!(cut.failure.kind, FailureKind::CutStream);
}

#[tokio::test]
async fn malformed_call_finish_reasons_are_retryable_and_report_usage() {
    for reason in ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "MALFORMED_RESPONSE"] {
        let error = read(&[candidate(json!([{"text": "a"}]), reason)]).await.unwrap_err();
        assert!(error.failure.retryable && error.failure.message == reason, "{error:?}");
        assert_eq!(error.usage.map(|usage| (usage.input_tokens, usage.output_tokens, usage.reasoning_tokens)), Some((5, 5, 3)));
    }
}

#[tokio::test]
async fn a_blocked_prompt_is_a_guardrail_failure_and_is_not_retried() {
    let feedback = json!({"promptFeedback": {"blockReason": "SAFETY", "blockReasonMessage": "no"}, "usageMetadata": {"promptTokenCount": 4}});
    let error = read(&[feedback]).await.unwrap_err();
    assert_eq!(error.failure.kind, FailureKind::GuardrailBlocked);
    assert!(error.failure.message.ends_with("(SAFETY): no") && !error.failure.retryable, "{error:?}");
    assert_eq!(error.usage.map(|usage| usage.input_tokens), Some(4));
}

#[test]
fn api_errors_are_classified_by_status_and_message() {
    use FailureKind::*;
    let error = |code: u16, status: &str, message: &str| json!({"error": {"code": code, "message": message, "status": status}});
    let mut no_key = error(400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.");
    no_key["error"]["details"] = json!([{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}]);
    let too_long = "The input token count (1234567) exceeds the maximum number of tokens allowed (1048576).";
    for (status, body, kind) in [
        (400, no_key, Authentication),
        (
            403,
            error(403, "PERMISSION_DENIED", "Method doesn't allow unregistered callers (callers without established identity)."),
            Authentication,
        ),
        (
            403,
            error(403, "PERMISSION_DENIED", "Generative Language API has not been used in project 1 before or it is disabled."),
            Permission,
        ),
        (404, error(404, "NOT_FOUND", "models/gemini-0 is not found for API version v1beta"), NotFound),
        (400, error(400, "INVALID_ARGUMENT", too_long), ContextTooLong),
        (400, error(400, "INVALID_ARGUMENT", "Unknown name \"const\""), InvalidRequest),
        (429, json!([error(429, "RESOURCE_EXHAUSTED", "Resource has been exhausted (e.g. check quota).")]), RateLimited),
        (500, error(500, "INTERNAL", "An internal error has occurred."), Overloaded),
        (503, json!([error(503, "UNAVAILABLE", "The model is overloaded. Please try again later.")]), Overloaded),
        (504, error(504, "DEADLINE_EXCEEDED", "Deadline expired before operation could complete."), Timeout),
    ] {
        let said = body.get("error").or(body.get(0).map(|first| &first["error"])).unwrap()["message"].clone();
        let failure = speaker().status_error(status, "status", body.to_string().as_bytes(), RetryHints::default()).failure;
        assert_eq!((failure.kind, json!(failure.message)), (kind, said), "{status} {body}");
    }
}
