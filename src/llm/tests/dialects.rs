//! Tests that apply to all APIs: where reasoning is sent, the order of messages, and effort values.

use super::faulty_servers::*;
use super::samples::{self, message, text};
use super::*;
use crate::ports::{Model, ModelRequest};
use crate::protocol::{Effort, Message, Role};
use quirks::Quirks;
use serde_json::json;
use std::time::Duration;
use thread::ThreadCache;

const ALL: [Api; 4] = [Api::Anthropic, Api::OpenAiChat, Api::OpenAiResponses, Api::Gemini];

fn call(id: &str) -> Part {
    samples::call(id, "Grep", "{}")
}

fn found(id: &str) -> Part {
    samples::found(id, "found")
}

fn asking(messages: Vec<Arc<Message>>) -> ModelRequest {
    ModelRequest { messages, max_output_tokens: 9_000, ..request() }
}

fn body_of(api: Api, model: &str, base: &str, request: &ModelRequest, quirks: &Quirks) -> Value {
    let mut kept = ThreadCache::default();
    let bytes = match api {
        Api::Anthropic => anthropic::body(model, request, quirks, &mut kept),
        Api::OpenAiChat => chat::body(model, base, request, quirks, &mut kept),
        Api::OpenAiResponses => responses::body(model, &responses::MissingFeatures::default(), request, &mut kept),
        Api::Gemini => gemini::body(model, request, quirks, &mut kept),
    };
    serde_json::from_slice(&bytes).unwrap()
}

/// Returns a response that contains reasoning in the API's format, and the text in it that may only be sent back to its
/// own provider.
fn thoughtful(api: Api) -> String {
    let events: Vec<Value> = match api {
        Api::Anthropic => vec![
            json!({"type": "message_start", "message": {"id": "a"}}),
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": "hm", "signature": "sealed"}}),
            json!({"type": "content_block_stop", "index": 0}),
            json!({"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": "so"}}),
            json!({"type": "content_block_stop", "index": 1}),
            json!({"type": "message_stop"}),
        ],
        Api::OpenAiChat => vec![
            json!({"choices": [{"index": 0, "delta": {"reasoning_content": "sealed"}}]}),
            json!({"choices": [{"index": 0, "delta": {"content": "so"}, "finish_reason": "stop"}]}),
        ],
        Api::OpenAiResponses => {
            let output = json!([
                {"type": "reasoning", "id": "rs_1", "encrypted_content": "sealed", "summary": []},
                {"type": "message", "content": [{"type": "output_text", "text": "so"}]},
            ]);
            vec![json!({"type": "response.completed", "response": {"status": "completed", "output": output}})]
        }
        Api::Gemini => vec![json!({"candidates": [{"finishReason": "STOP", "content": {"parts": [
            {"text": "hm", "thought": true, "thoughtSignature": "sealed"}, {"text": "so"}]}}]})],
    };
    let written: Vec<String> = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    format!("{HEAD}connection: close\r\n\r\n{}", written.concat())
}

async fn completion_of(model: &dyn Model, messages: Vec<Arc<Message>>) -> Completion {
    match model.stream(asking(messages)).map(Result::unwrap).collect::<Vec<_>>().await.pop() {
        Some(Delta::Completed(completion)) => completion,
        other => panic!("no answer: {other:?}"),
    }
}

#[tokio::test]
async fn thinking_is_sent_back_only_to_the_provider_that_produced_it() {
    for api in ALL {
        let (home, own) = serve_all(vec![thoughtful(api), thoughtful(api)]).await;
        let model = connect(spec(api, home.clone(), LONG), "m").unwrap();
        let first = completion_of(&*model, vec![message("1", Role::User, vec![text("go")])]).await;
        assert!(first.content.iter().any(|part| matches!(part, Part::Reasoning { opaque: Some(_), .. })), "{api:?}");
        let thread = vec![
            message("1", Role::User, vec![text("go")]),
            message("2", Role::Assistant, first.content.clone()),
            message("3", Role::User, vec![text("on")]),
        ];
        completion_of(&*model, thread.clone()).await;
        let asked = own.await.unwrap();
        assert!(asked[1].contains("sealed"), "{api:?}: {}", asked[1]);
        let session: Vec<Message> =
            serde_json::from_value(serde_json::to_value(thread.iter().map(|message| &**message).collect::<Vec<_>>()).unwrap())
                .unwrap();
        let thread: Vec<Arc<Message>> = session.into_iter().map(Arc::new).collect();
        for other in ALL {
            // Test a compatible server at another address, and one with another name.
            let (elsewhere, asked) = serve_all(vec![thoughtful(other)]).await;
            let model = connect(spec(other, elsewhere, LONG), "m").unwrap();
            completion_of(&*model, thread.clone()).await;
            let asked = asked.await.unwrap();
            assert!(asked[0].contains("so") && !asked[0].contains("sealed"), "{api:?} to {other:?}: {}", asked[0]);
        }
    }
}

/// Returns the roles of the messages in a request, in order. Tool results are given a role of their own.
fn turns(api: Api, body: &Value) -> Vec<String> {
    let (list, parts) = match api {
        Api::Anthropic | Api::OpenAiChat => ("messages", "content"),
        Api::OpenAiResponses => ("input", "content"),
        Api::Gemini => ("contents", "parts"),
    };
    let name = |message: &Value| {
        let role = message["role"].as_str().or(message["type"].as_str()).unwrap();
        let is_result = |part: &&Value| part["functionResponse"].is_object() || part["type"] == "tool_result";
        let all = message[parts].as_array().map_or(0, Vec::len);
        match message[parts].as_array().map_or(0, |parts| parts.iter().filter(is_result).count()) {
            0 => role.to_owned(),
            results if results == all => format!("{role}: results"),
            _ => format!("{role}: results and words"),
        }
    };
    body[list].as_array().unwrap().iter().map(name).collect()
}

#[test]
fn consecutive_user_messages_are_merged_as_each_server_requires() {
    let request = asking(vec![
        message("1", Role::User, vec![text("the summary"), text("the task"), text("the rest")]),
        message("2", Role::User, vec![text("and now \"this\"")]),
        message("3", Role::Assistant, vec![call("c1"), call("c2")]),
        message("4", Role::Tool, vec![found("c1")]),
        message("5", Role::Tool, vec![found("c2")]),
        message("6", Role::User, vec![text("but quickly")]),
        message("7", Role::User, vec![text("and well")]),
    ]);
    let told = |api, base: &str, quirks: &Quirks| {
        let body = body_of(api, "m", base, &request, quirks);
        for said in ["the summary", "the task", "the rest", "and now \\\"this\\\"", "but quickly", "and well"] {
            assert!(body.to_string().contains(said), "{api:?} {said}: {body}");
        }
        turns(api, &body)
    };
    let (local, plain) = ("http://127.0.0.1/v1", Quirks::default());
    assert_eq!(told(Api::Anthropic, local, &plain), ["user", "assistant", "user: results and words"]);
    assert_eq!(told(Api::Gemini, local, &plain), ["user", "model", "user: results", "user"]);
    let chat = ["system", "user", "assistant", "tool", "tool", "user"];
    assert_eq!(told(Api::OpenAiChat, local, &plain), chat);
    let strict = ["system", "user", "assistant", "tool", "tool", "assistant", "user"];
    assert_eq!(told(Api::OpenAiChat, "https://api.mistral.ai/v1", &plain), strict);
    let mut learned = Quirks::default();
    learned.learn("Jinja Exception: conversation roles must alternate user and assistant roles", 9).unwrap();
    assert_eq!(told(Api::OpenAiChat, local, &learned), strict);
    let mut without_system = Quirks::default();
    without_system.learn("Unsupported value: 'messages[0].role' does not support 'system' with this model.", 9).unwrap();
    assert_eq!(told(Api::OpenAiChat, local, &without_system), chat[1..]);
    let output = "function_call_output";
    assert_eq!(told(Api::OpenAiResponses, local, &plain), ["user", "function_call", "function_call", output, output, "user"]);
    let first = &body_of(Api::OpenAiChat, "m", local, &request, &plain)["messages"][1]["content"];
    assert_eq!(first, "the summary\n\nthe task\n\nthe rest\n\nand now \"this\"");
}

#[test]
fn an_interrupted_response_is_sent_as_text_with_a_note_and_without_unsigned_thinking() {
    let thought = Part::Reasoning { text: "half a thought".to_owned(), opaque: None };
    let request = asking(vec![
        message("1", Role::User, vec![text("go")]),
        message("2", Role::Assistant, vec![thought.clone(), text("half an answer")]),
        message("4", Role::User, vec![text("[The user interrupted your response here.]")]),
        message("5", Role::User, vec![text("something else")]),
        message("6", Role::Assistant, vec![thought]),
        message("7", Role::User, vec![text("[The user interrupted your response here.]"), text("go on")]),
    ]);
    for api in ALL {
        let body = body_of(api, "m", "http://127.0.0.1/v1", &request, &Quirks::default());
        let told = body.to_string();
        assert!(told.contains("half an answer") && !told.contains("half a thought"), "{api:?}: {told}");
        let place = |words: &str| told.find(words).unwrap();
        assert!(
            place("half an answer") < place("interrupted") && place("interrupted") < place("something else"),
            "{api:?}: {told}"
        );
        let answer = if api == Api::Gemini { "model" } else { "assistant" };
        let turns: Vec<_> = turns(api, &body).into_iter().filter(|turn| turn != "system").collect();
        let alternate = ["user", answer, "user"];
        // The Responses API accepts adjacent items of the same role.
        if api == Api::OpenAiResponses {
            assert!(turns.iter().all(|turn| alternate.contains(&turn.as_str())), "{turns:?}");
            assert_eq!(turns.iter().filter(|turn| *turn == answer).count(), 1, "{turns:?}");
        } else {
            assert_eq!(turns, alternate, "{api:?}: {told}");
        }
    }
}

#[test]
fn text_and_images_of_consecutive_messages_are_merged_into_one() {
    let image = crate::protocol::Image {
        uri: "artifact:1".to_owned(),
        media_type: "image/png".to_owned(),
        width: 2,
        height: 3,
        bytes: 4,
    };
    let messages = vec![
        message("1", Role::User, vec![text("first")]),
        message("2", Role::User, vec![text("look"), Part::Image(image)]),
        message("3", Role::User, vec![text("last")]),
    ];
    let images = Some(Arc::new([("artifact:1".to_owned(), "AAAA".into())].into()));
    let request = ModelRequest { images, ..asking(messages) };
    let body = body_of(Api::OpenAiChat, "m", "http://127.0.0.1/v1", &request, &Quirks::default());
    let text = |text: &str| json!({"type": "text", "text": text});
    let shown = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}});
    assert_eq!(body["messages"][1]["content"], json!([text("first"), text("look"), shown, text("last")]));
    let body = body_of(Api::OpenAiResponses, "m", "", &request, &Quirks::default());
    let pieces = body["input"][0]["content"].as_array().unwrap();
    let kinds: Vec<&str> = pieces.iter().map(|piece| piece["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["input_text", "input_text", "input_image", "input_text"]);
    assert_eq!(body["input"].as_array().unwrap().len(), 1);
}

#[test]
fn effort_is_sent_in_the_format_of_each_api() {
    use Effort::*;
    let fields = ["thinking", "output_config", "reasoning_effort", "reasoning", "generationConfig"];
    let of = |api, model: &str, base: &str, effort| {
        let request = ModelRequest { effort, max_output_tokens: 65_536, ..request() };
        let mut body = body_of(api, model, base, &request, &Quirks::default());
        let mut told = body.as_object_mut().unwrap().clone();
        told.retain(|field, _| fields.contains(&field.as_str()));
        if let Some(config) = told.get_mut("generationConfig").and_then(Value::as_object_mut) {
            config.shift_remove("maxOutputTokens");
        }
        Value::Object(told)
    };
    let budget = |tokens: u64| json!({"thinking": {"type": "enabled", "budget_tokens": tokens}});
    let adaptive =
        |effort: &str| json!({"thinking": {"type": "adaptive", "display": "summarized"}, "output_config": {"effort": effort}});
    let off = || json!({"thinking": {"type": "disabled"}});
    let router = "https://openrouter.ai/api/v1";
    let (home, none) = ("http://127.0.0.1/v1", json!({}));
    let google = |config: Value| json!({"generationConfig": {"thinkingConfig": config}});
    let cases = [
        (Api::Anthropic, "claude-sonnet-4-5", home, Some(Low), budget(4_096)),
        (Api::Anthropic, "claude-sonnet-4-5", home, Some(High), budget(32_768)),
        (Api::Anthropic, "claude-sonnet-4-5", home, Some(Off), off()),
        (Api::Anthropic, "claude-opus-4-8", home, Some(Medium), adaptive("medium")),
        (Api::Anthropic, "claude-opus-4-8", home, Some(Off), off()),
        (Api::Anthropic, "claude-opus-4-8", home, None, none.clone()),
        (Api::Anthropic, "claude-opus-4-8", home, Some(Xhigh), adaptive("xhigh")),
        (Api::Anthropic, "claude-opus-5-5", home, Some(Max), adaptive("max")),
        (Api::Anthropic, "claude-opus-4-8", home, Some(Minimal), adaptive("low")),
        (Api::Anthropic, "claude-sonnet-5-5", home, Some(Off), json!({"thinking": {"type": "between_tools"}})),
        (Api::Anthropic, "some-model", home, Some(Minimal), budget(1_024)),
        (Api::Anthropic, "some-model", home, Some(Max), budget(49_152)),
        (Api::OpenAiChat, "m", home, Some(High), json!({"reasoning_effort": "high"})),
        (Api::OpenAiChat, "m", home, Some(Off), json!({"reasoning_effort": "none"})),
        (Api::OpenAiChat, "m", home, None, none.clone()),
        (Api::OpenAiChat, "m", home, Some(Xhigh), json!({"reasoning_effort": "xhigh"})),
        (Api::OpenAiChat, "m", router, Some(Minimal), json!({"reasoning": {"effort": "minimal"}})),
        (Api::OpenAiChat, "m", router, Some(Medium), json!({"reasoning": {"effort": "medium"}})),
        (Api::OpenAiChat, "m", router, Some(Off), json!({"reasoning": {"enabled": false}})),
        (Api::OpenAiResponses, "gpt-5.5", home, Some(Low), json!({"reasoning": {"effort": "low", "summary": "auto"}})),
        (Api::OpenAiResponses, "gpt-5.5", home, None, none),
        (Api::OpenAiResponses, "gpt-6.2-sol", home, Some(Max), json!({"reasoning": {"effort": "max", "summary": "auto"}})),
        (Api::Gemini, "gemini-2.5-pro", home, Some(Low), google(json!({"includeThoughts": true, "thinkingBudget": 2_048}))),
        (Api::Gemini, "gemini-3-flash", home, Some(High), google(json!({"includeThoughts": true, "thinkingLevel": "high"}))),
        (Api::Gemini, "gemini-3-flash", home, None, json!({"generationConfig": {}})),
        (
            Api::Gemini,
            "gemini-3-flash",
            home,
            Some(Minimal),
            google(json!({"includeThoughts": true, "thinkingLevel": "minimal"})),
        ),
        (Api::Gemini, "gemini-3-flash", home, Some(Max), google(json!({"includeThoughts": true, "thinkingLevel": "high"}))),
        (Api::Gemini, "gemini-2.5-pro", home, Some(Max), google(json!({"includeThoughts": true, "thinkingBudget": 32_768}))),
        (Api::Gemini, "gemini-2.5-flash", home, Some(Xhigh), google(json!({"includeThoughts": true, "thinkingBudget": 24_576}))),
    ];
    for (api, model, base, effort, expected) in cases {
        assert_eq!(of(api, model, base, effort), expected, "{api:?} {model} {base} {effort:?}");
    }
}

#[tokio::test]
async fn a_rejected_field_is_omitted_from_all_later_requests() {
    let refused = |text: &str| {
        let body = json!({"error": {"message": text, "type": "invalid_request_error"}}).to_string();
        format!("HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}", body.len())
    };
    let hello =
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let answer = format!("{HEAD}connection: close\r\n\r\n{hello}");
    let refusal = "Unrecognized request argument supplied: stream_options";
    let (address, server) = serve_all(vec![refused(refusal), answer.clone(), answer, refused(refusal)]).await;
    let model = connect(spec(Api::OpenAiChat, address, LONG), "m").unwrap();
    let error = model.stream(request()).next().await.unwrap().unwrap_err();
    assert!(error.failure.retryable && error.retry_after.is_none_or(|wait| wait == Duration::ZERO), "{error:?}");
    assert_eq!(error.failure.message, format!("{refusal} (retried without `stream_options`)"));
    for _ in 0..2 {
        assert_eq!(model.stream(request()).next().await.unwrap(), Ok(Delta::Text("hi".to_owned())));
    }
    // The feature is already omitted, so this is an ordinary error.
    let error = model.stream(request()).next().await.unwrap().unwrap_err();
    assert!(!error.failure.retryable && error.failure.message == refusal, "{error:?}");
    let sent: Vec<bool> = server.await.unwrap().iter().map(|request| request.contains("stream_options")).collect();
    assert_eq!(sent, [true, false, false, false]);
}

#[tokio::test]
async fn a_model_that_requires_the_responses_api_is_not_retried_without_tools() {
    let refusals = [
        "Function tools with reasoning_effort are not supported for m in /v1/chat/completions. Please use /v1/responses instead.",
        "This model is only supported in v1/responses and not in v1/chat/completions.",
    ];
    let hints =
        [("openai-chat", "choose the model `openai/m`"), ("gateway", "set `providers.gateway.api = \"openai-responses\"`")];
    for refusal in refusals {
        for (provider, hint) in hints {
            for status in ["400 Bad Request", "404 Not Found"] {
                let body = json!({"error": {"message": refusal, "type": "invalid_request_error"}}).to_string();
                let reply = format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}", body.len());
                let (address, _server) = serve_all(vec![reply]).await;
                let spec = ProviderSpec { name: provider.to_owned(), ..spec(Api::OpenAiChat, address, LONG) };
                let error = connect(spec, "m").unwrap().stream(request()).next().await.unwrap().unwrap_err();
                assert!(!error.failure.retryable && error.failure.hint.contains(hint), "{error:?}");
                assert_eq!(error.failure.message, refusal);
            }
        }
    }
}
