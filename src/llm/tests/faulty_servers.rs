//! Tests of servers that misbehave, using real local connections.

use super::samples::{self, message};
use super::*;
use crate::ports::ModelRequest;
use crate::protocol::{CallId, Message, Role, ToolResult};
use serde_json::json;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

pub(super) const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n";
pub(super) const HELLO: &str = "data: {\"type\":\"message_start\",\"message\":{\"id\":\"a\",\"usage\":{\"input_tokens\":3}}}\n\n\
    data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n\
    data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"hel\"}}\n\n\
    data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"lo\"}}\n\n";
pub(super) const END: &str = "data: {\"type\":\"content_block_stop\",\"index\":0}\n\n\
    data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":2}}\n\n\
    data: {\"type\":\"message_stop\"}\n\n";

/// What a server does after it has sent all of its data.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Then {
    Close,
    Stall,
}

pub(super) fn spec(api: Api, base_url: String, idle: Duration) -> ProviderSpec {
    ProviderSpec {
        name: "p".to_owned(),
        api,
        base_url,
        key: Some(Secret::new("sekret")),
        key_variable: "P_KEY".to_owned(),
        headers: crate::llm::ExtraHeaders::default(),
        service: crate::llm::Service::Direct,
        account: None,
        timeouts: Timeouts { connect: Duration::from_secs(5), idle },
    }
}

pub(super) fn request() -> ModelRequest {
    ModelRequest {
        system: "be brief".into(),
        messages: Vec::new(),
        tools: Arc::new([]),
        max_output_tokens: 10,
        images: None,
        effort: None,
    }
}

/// Reads a request. Returns `None` if the connection has ended.
pub(super) async fn read_request(socket: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length =
                head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse::<usize>().ok());
            if body.len() >= length.unwrap_or(0) {
                return Some(text);
            }
        }
        if socket.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
}

pub(super) async fn serve(reply: Vec<u8>, then: Then) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        read_request(&mut socket).await.unwrap();
        socket.write_all(&reply).await.unwrap();
        match then {
            Then::Close => {}
            Then::Stall => {
                let _ = socket.read(&mut [0; 1]).await;
            }
        }
    });
    address
}

pub(super) async fn ask(api: Api, base_url: String, idle: Duration) -> (String, Result<Completion, ModelError>) {
    let model = connect(spec(api, base_url, idle), "m").unwrap();
    let mut stream = model.stream(request());
    let mut said = String::new();
    while let Some(item) = stream.next().await {
        match item {
            Ok(Delta::Text(text)) => said.push_str(&text),
            Ok(Delta::Completed(completion)) => return (said, Ok(completion)),
            Ok(Delta::Reasoning(_) | Delta::ToolCallProgress { .. }) => {}
            Err(error) => return (said, Err(error)),
        }
    }
    panic!("the stream ended without a word");
}

pub(super) const LONG: Duration = Duration::from_secs(30);

async fn fail(reply: String, then: Then, idle: Duration) -> (String, ModelError) {
    let address = serve(reply.into_bytes(), then).await;
    let (said, end) = ask(Api::Anthropic, address, idle).await;
    (said, end.unwrap_err())
}

#[tokio::test]
async fn a_complete_response_has_text_and_usage() {
    let address = serve(format!("{HEAD}\r\n{HELLO}{END}").into_bytes(), Then::Stall).await;
    let (said, end) = ask(Api::Anthropic, address, LONG).await;
    let completion = end.unwrap();
    assert_eq!(said, "hello");
    assert_eq!((completion.usage.input_tokens, completion.usage.output_tokens), (3, 2));
}

#[tokio::test]
async fn a_refused_connection_is_a_network_failure_that_names_the_server() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let error = ask(Api::Anthropic, address.clone(), LONG).await.1.unwrap_err();
    assert_eq!(error.failure.kind, FailureKind::Network);
    assert!(error.failure.message.contains(address.trim_start_matches("http://")), "{error}");
    assert!(error.failure.retryable);
}

#[tokio::test]
async fn a_cut_stream_keeps_the_text_so_far_and_is_a_failure() {
    for reply in [
        format!("{HEAD}\r\n{HELLO}"),
        format!("{HEAD}\r\n{HELLO}data: {{\"type\":\"mess"),
        format!("{HEAD}content-length: 100000\r\n\r\n{HELLO}"),
        format!("{HEAD}transfer-encoding: chunked\r\n\r\n{:x}\r\n{HELLO}\r\n", HELLO.len()),
    ] {
        let (said, error) = fail(reply.clone(), Then::Close, LONG).await;
        assert_eq!((said.as_str(), error.failure.kind), ("hello", FailureKind::CutStream), "{reply}");
    }
}

#[tokio::test]
async fn a_failed_response_reports_the_usage_received_before_the_failure() {
    let counted = |error: &ModelError| error.usage.map(|usage| (usage.input_tokens, usage.output_tokens));
    let late = "data: {\"type\":\"message_delta\",\"delta\":{},\"usage\":{\"output_tokens\":9}}\n\n";
    let overloaded = "data: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n";
    for (rest, usage) in [("", Some((3, 0))), (late, Some((3, 9))), (overloaded, Some((3, 0)))] {
        let (_, error) = fail(format!("{HEAD}\r\n{HELLO}{rest}"), Then::Close, LONG).await;
        assert_eq!(counted(&error), usage, "{rest}");
    }
    let (_, error) = fail(format!("{HEAD}\r\n: hm\n\n"), Then::Close, LONG).await;
    assert_eq!(counted(&error), None);
    let chunk = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hi\"}}],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":1}}\n\n";
    let address = serve(format!("{HEAD}\r\n{chunk}").into_bytes(), Then::Close).await;
    let error = ask(Api::OpenAiChat, address, LONG).await.1.unwrap_err();
    assert_eq!(counted(&error), Some((5, 1)));
}

#[tokio::test]
async fn a_silent_server_causes_a_timeout() {
    let idle = Duration::from_millis(150);
    let (said, error) = fail(format!("{HEAD}\r\n{HELLO}"), Then::Stall, idle).await;
    assert_eq!((said.as_str(), error.failure.kind), ("hello", FailureKind::Timeout));
    let (said, error) = fail(String::new(), Then::Stall, idle).await;
    assert_eq!((said.as_str(), error.failure.kind), ("", FailureKind::Timeout));
}

#[tokio::test]
async fn a_body_that_is_not_an_event_stream_is_shown_in_the_error() {
    for body in ["<!doctype html><p>Log in first", "Internal trouble", "{\"hello\": 1}"] {
        let reply = format!("HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        let (_, error) = fail(reply, Then::Stall, LONG).await;
        assert_eq!(error.failure.kind, FailureKind::Protocol);
        assert!(error.failure.message.contains(body), "{error}");
    }
}

#[tokio::test]
async fn an_error_with_status_200_is_an_error() {
    let body = r#"{"error":{"message":"Incorrect API key provided","code":"invalid_api_key"}}"#;
    let reply = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    let (_, error) = fail(reply, Then::Stall, LONG).await;
    assert_eq!((error.failure.kind, error.failure.message.as_str()), (FailureKind::Authentication, "Incorrect API key provided"));
}

#[tokio::test]
async fn garbage_between_events_is_a_protocol_failure_after_the_text_so_far() {
    for garbage in ["data: {not json}\n\n", "data: \u{1}\u{2}\n\n", "data: [1,2]\n\n"] {
        let (said, error) = fail(format!("{HEAD}\r\n{HELLO}{garbage}{END}"), Then::Stall, LONG).await;
        assert_eq!((said.as_str(), error.failure.kind), ("hello", FailureKind::Protocol), "{garbage}");
    }
}

#[tokio::test]
async fn the_delay_of_a_rate_limit_is_read_from_the_headers() {
    let body = r#"{"error":{"type":"rate_limit_error","message":"slow down"}}"#;
    for (header, wait) in [
        ("retry-after: 7", Some(Duration::from_secs(7))),
        ("retry-after: 1\r\nretry-after-ms: 1500", Some(Duration::from_millis(1500))),
        ("retry-after: 1\r\nretry-after-ms: 0", Some(Duration::from_secs(1))),
        ("x-none: 1", None),
    ] {
        let reply = format!("HTTP/1.1 429 Too Many Requests\r\n{header}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        let (_, error) = fail(reply, Then::Stall, LONG).await;
        assert_eq!((error.failure.kind, error.retry_after), (FailureKind::RateLimited, wait), "{header}");
        assert_eq!(error.failure.message, "slow down");
    }
}

#[tokio::test]
async fn redirects_are_not_followed_and_the_error_names_their_target() {
    let reply = "HTTP/1.1 302 Found\r\nlocation: https://login.example/\r\ncontent-length: 0\r\n\r\n".to_owned();
    let (_, error) = fail(reply, Then::Stall, LONG).await;
    assert_eq!(error.failure.kind, FailureKind::InvalidRequest);
    assert!(error.failure.message.contains("https://login.example/") && !error.failure.retryable, "{error}");
}

#[tokio::test]
async fn a_chat_response_without_done_is_complete_after_its_finish_reason() {
    let reply = format!(
        "{HEAD}\r\ndata: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"hi\"}},\"finish_reason\":\"stop\"}}]}}\n\n"
    );
    let address = serve(reply.into_bytes(), Then::Close).await;
    let (said, end) = ask(Api::OpenAiChat, address, LONG).await;
    assert_eq!((said.as_str(), end.unwrap().stop_reason), ("hi", StopReason::EndTurn));
}

#[tokio::test]
async fn a_key_that_is_not_a_valid_header_value_is_not_sent() {
    let mut spec = spec(Api::OpenAiChat, "http://127.0.0.1:9/v1".to_owned(), LONG);
    spec.key = Some(Secret::new("two\nlines"));
    let model = connect(spec, "m").unwrap();
    let error = model.stream(request()).next().await.unwrap().unwrap_err();
    assert_eq!(error.failure.kind, FailureKind::Authentication);
    assert!(error.failure.hint.contains("`P_KEY`") && !format!("{error:?}").contains("lines\""), "{error:?}");
}

#[tokio::test]
async fn consecutive_requests_reuse_one_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let body = format!("{HELLO}{END}");
    let server = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        let mut requests = Vec::new();
        while requests.len() < 2 {
            requests.push(read_request(&mut socket).await.unwrap());
            let reply = format!("{HEAD}content-length: {}\r\n\r\n{body}", body.len());
            socket.write_all(reply.as_bytes()).await.unwrap();
        }
        requests
    });
    let model = connect(spec(Api::Anthropic, address, LONG), "m").unwrap();
    for _ in 0..2 {
        let last = model.stream(request()).map(Result::unwrap).collect::<Vec<_>>().await.pop();
        assert!(matches!(last, Some(Delta::Completed(_))));
    }
    let requests = server.await.unwrap();
    assert!(requests[0].starts_with("POST /v1/messages HTTP/1.1\r\n"), "{}", requests[0]);
    assert!(requests[0].contains("x-api-key: sekret\r\n") && requests[0].contains("anthropic-version: 2023-06-01\r\n"));
    assert!(requests[0].ends_with('}') && requests[0].contains("be brief"));
}

#[tokio::test]
async fn fragments_received_together_are_merged_into_one_delta() {
    let address = serve(format!("{HEAD}\r\n{HELLO}{END}").into_bytes(), Then::Stall).await;
    let model = connect(spec(Api::Anthropic, address, LONG), "m").unwrap();
    let deltas: Vec<_> = model.stream(request()).map(Result::unwrap).collect().await;
    assert_eq!(deltas[0], Delta::Text("hello".to_owned()));
    assert_eq!(deltas.len(), 2);
}

/// Returns the stream with which a Responses API server would send these items.
pub(super) fn items(items: &[Value]) -> String {
    let done = |(index, item): (usize, &Value)| json!({"type": "response.output_item.done", "output_index": index, "item": item});
    let end = json!({"type": "response.completed", "response": {"status": "completed", "output": items,
        "usage": {"input_tokens": 3, "output_tokens": 2}}});
    let events: Vec<Value> = items.iter().enumerate().map(done).chain([end]).collect();
    let written = events.iter().map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap()));
    written.collect::<Vec<_>>().concat()
}

/// Serves these replies one after another, each on a connection of its own. Returns the server's address and a task
/// that returns the requests it received.
pub(super) async fn serve_all(replies: Vec<String>) -> (String, tokio::task::JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let server = tokio::spawn(async move {
        let mut requests = Vec::new();
        for reply in replies {
            let (mut socket, _) = listener.accept().await.unwrap();
            requests.push(read_request(&mut socket).await.unwrap());
            socket.write_all(reply.as_bytes()).await.unwrap();
        }
        requests
    });
    (address, server)
}

#[tokio::test]
async fn the_responses_api_receives_its_thinking_and_call_back_with_the_result() {
    let thinking = json!({"type": "reasoning", "id": "rs_1", "encrypted_content": "sealed", "summary": []});
    let call =
        json!({"type": "function_call", "id": "fc_1", "call_id": "call_abcdefghijkl", "name": "Grep", "arguments": "{\"a\":1}"});
    let words =
        json!({"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": "hello"}]});
    let head = format!("{HEAD}connection: close\r\n\r\n");
    let (address, server) = serve_all(vec![head.clone() + &items(&[thinking.clone(), call]), head + &items(&[words])]).await;
    let model = connect(spec(Api::OpenAiResponses, format!("{address}/v1"), LONG), "m").unwrap();
    let ask = async |messages: Vec<Arc<Message>>| {
        let mut asked = request();
        asked.messages = messages;
        match model.stream(asked).map(Result::unwrap).collect::<Vec<_>>().await.pop() {
            Some(Delta::Completed(completion)) => completion,
            other => panic!("no answer: {other:?}"),
        }
    };
    let mut thread = vec![message("1", Role::User, vec![samples::text("find it")])];
    let first = ask(thread.clone()).await;
    assert_eq!((first.stop_reason, first.usage.input_tokens), (StopReason::ToolUse, 3));
    thread.push(message("2", Role::Assistant, first.content));
    let result = ToolResult::success(CallId::new("call_abcdefghijkl"), "Grep", "found");
    thread.push(message("3", Role::Tool, vec![Part::ToolResult(result)]));
    let second = ask(thread).await;
    assert_eq!((text(&second.content).as_str(), second.stop_reason), ("hello", StopReason::EndTurn));
    let requests = server.await.unwrap();
    assert!(requests[1].starts_with("POST /v1/responses HTTP/1.1\r\n"), "{}", requests[1]);
    assert!(requests[1].contains("authorization: Bearer sekret\r\n"), "{}", requests[1]);
    let body: Value = serde_json::from_str(requests[1].split_once("\r\n\r\n").unwrap().1).unwrap();
    let expected = json!([
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "find it"}]},
        thinking,
        {"type": "function_call", "call_id": "call_abcdefghijkl", "name": "Grep", "arguments": "{\"a\":1}"},
        {"type": "function_call_output", "call_id": "call_abcdefghijkl", "output": "found"},
    ]);
    assert_eq!((&body["input"], &body["store"]), (&expected, &json!(false)));
}

#[tokio::test]
async fn a_server_that_rejects_encrypted_reasoning_gets_a_retry_without_the_field() {
    let refusal = r#"{"error":{"message":"Encrypted content is not supported with this model.","type":"invalid_request_error"}}"#;
    let words = json!({"type": "message", "content": [{"type": "output_text", "text": "hello"}]});
    let refused = format!("HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{refusal}", refusal.len());
    let (address, server) = serve_all(vec![refused, format!("{HEAD}connection: close\r\n\r\n{}", items(&[words]))]).await;
    let model = connect(spec(Api::OpenAiResponses, address, LONG), "m").unwrap();
    let error = model.stream(request()).next().await.unwrap().unwrap_err();
    assert!(error.failure.retryable && error.failure.message.contains("Encrypted content"), "{error:?}");
    assert_eq!(model.stream(request()).next().await.unwrap(), Ok(Delta::Text("hello".to_owned())));
    let requests = server.await.unwrap();
    assert!(requests[0].contains("reasoning.encrypted_content") && !requests[1].contains("reasoning.encrypted_content"));
}

#[tokio::test]
async fn the_error_of_a_gateway_without_the_responses_api_names_the_setting() {
    let reply = "HTTP/1.1 404 Not Found\r\ncontent-length: 18\r\n\r\n404 page not found".to_owned();
    let address = serve(reply.into_bytes(), Then::Stall).await;
    let error = ask(Api::OpenAiResponses, address, LONG).await.1.unwrap_err();
    assert_eq!(error.failure.kind, FailureKind::NotFound);
    assert!(error.failure.hint.contains("set `providers.p.api = \"openai-chat\"`"), "{error:?}");
}
