//! Tests of connections that fail, stall, or deliver invalid or endless data.

use super::faulty_servers::*;
use super::*;
use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};
use futures_util::FutureExt;
use serde_json::json;
use std::io::Write;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Starts a server that reads one request and then runs `deed`. Returns its address.
async fn serve_with<F, D>(deed: F) -> String
where
    F: FnOnce(TcpStream) -> D + Send + 'static,
    D: Future<Output = ()> + Send,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        read_request(&mut socket).await.unwrap();
        deed(socket).await;
    });
    address
}

async fn answer(api: Api, reply: Vec<u8>) -> (String, Result<Completion, ModelError>) {
    ask(api, serve(reply, Then::Close).await, LONG).await
}

fn of_length(head: &str, body: &[u8]) -> Vec<u8> {
    [format!("HTTP/1.1 200 OK\r\n{head}content-length: {}\r\n\r\n", body.len()).as_bytes(), body].concat()
}

#[tokio::test]
async fn a_connection_reset_inside_a_character_is_a_cut_stream() {
    let address = serve_with(|mut socket| async move {
        let half = [HEAD.as_bytes(), b"\r\n", HELLO.as_bytes(), b"data: {\"type\":\"\xc3"].concat();
        socket.write_all(&half).await.unwrap();
        // Waits until the client has read everything.
        let _ = socket.read(&mut [0; 1]).now_or_never();
        for _ in 0..50 {
            tokio::task::yield_now().await;
        }
        socket2::set_no_linger(&socket);
    })
    .await;
    let (_, end) = ask(Api::Anthropic, address, LONG).await;
    let error = end.unwrap_err();
    assert_eq!((error.failure.kind, error.failure.retryable), (FailureKind::CutStream, true));
}

/// Sockets that, when closed, discard unsent data and reset the connection (`SO_LINGER` set to 0).
mod socket2 {
    pub(crate) fn set_no_linger(socket: &tokio::net::TcpStream) {
        let linger = nix::libc::linger { l_onoff: 1, l_linger: 0 };
        nix::sys::socket::setsockopt(socket, nix::sys::socket::sockopt::Linger, &linger).unwrap();
    }
}

#[tokio::test]
async fn a_response_sent_byte_by_byte_is_read_correctly() {
    let address = serve_with(|mut socket| async move {
        socket.set_nodelay(true).unwrap();
        for byte in format!("{HEAD}\r\n{HELLO}{END}").replace("hel", "hél").into_bytes() {
            socket.write_all(&[byte]).await.unwrap();
        }
    })
    .await;
    let (said, end) = ask(Api::Anthropic, address, LONG).await;
    assert_eq!((said.as_str(), end.unwrap().stop_reason), ("héllo", StopReason::EndTurn));
}

#[tokio::test]
async fn keep_alive_events_do_not_extend_the_response_timeout() {
    for sign in [
        "event: ping\ndata: {\"type\": \"ping\"}\n\n",
        "data: {\"type\":\"ping\"}\n\n",
        ": still here\n\n",
        "data: {\"same\":1}\n\n",
    ] {
        let address = serve_with(move |mut socket| async move {
            let mut pace = tokio::time::interval(Duration::from_millis(4));
            socket.write_all(format!("{HEAD}\r\n{HELLO}").as_bytes()).await.unwrap();
            while socket.write_all(sign.as_bytes()).await.is_ok() {
                pace.tick().await;
            }
        })
        .await;
        let (said, end) = ask(Api::Anthropic, address, Duration::from_millis(300)).await;
        let failure = end.unwrap_err().failure;
        assert_eq!((said.as_str(), failure.kind), ("hello", FailureKind::Timeout), "{sign}");
        assert!(failure.message.contains("without a response"), "{}", failure.message);
    }
}

#[tokio::test]
async fn headers_sent_too_slowly_are_a_timeout() {
    let address = serve_with(|mut socket| async move {
        let mut pace = tokio::time::interval(Duration::from_millis(5));
        let _ = socket.write_all(b"HTTP/1.1 200 OK\r\nx-slow: ").await;
        while socket.write_all(b"a").await.is_ok() {
            pace.tick().await;
        }
    })
    .await;
    let failure = ask(Api::Anthropic, address, Duration::from_millis(150)).await.1.unwrap_err().failure;
    assert_eq!(failure.kind, FailureKind::Timeout);
}

#[tokio::test]
async fn keep_alive_events_after_a_complete_response_do_not_delay_its_end() {
    let address = serve_with(|mut socket| async move {
        let chunk = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hi\"},\"finish_reason\":\"stop\"}]}\n\n";
        socket.write_all(format!("{HEAD}\r\n{chunk}").as_bytes()).await.unwrap();
        let mut pace = tokio::time::interval(Duration::from_millis(50));
        while socket.write_all(b"data: {\"choices\":[]}\n\n").await.is_ok() {
            pace.tick().await;
        }
    })
    .await;
    let (said, end) = ask(Api::OpenAiChat, address, LONG).await;
    assert_eq!((said.as_str(), end.is_ok()), ("hi", true));
}

#[tokio::test]
async fn unrequested_compression_is_decoded() {
    let body = format!("{HELLO}{END}");
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(body.as_bytes()).unwrap();
    let mut zlib = ZlibEncoder::new(Vec::new(), Compression::default());
    zlib.write_all(body.as_bytes()).unwrap();
    for (encoding, packed) in [("gzip", gzip.finish().unwrap()), ("deflate", zlib.finish().unwrap())] {
        let (said, end) = answer(Api::Anthropic, of_length(&format!("content-encoding: {encoding}\r\n"), &packed)).await;
        assert_eq!((said.as_str(), end.is_ok()), ("hello", true), "{encoding}");
    }
    let failure = answer(Api::Anthropic, of_length("content-encoding: zstd\r\n", b"x")).await.1.unwrap_err().failure;
    assert!(failure.message.contains("`zstd`") && failure.hint.contains("uncompressed"), "{failure:?}");
}

#[tokio::test]
async fn chunked_bodies_may_have_trailers() {
    let body = format!("{HELLO}{END}");
    let reply = format!("{HEAD}transfer-encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\nx-sum: 1\r\n\r\n", body.len());
    assert_eq!(answer(Api::Anthropic, reply.into_bytes()).await.0, "hello");
}

#[tokio::test]
async fn a_content_length_that_is_too_short_is_a_cut_stream() {
    let reply = format!("{HEAD}content-length: {}\r\n\r\n{HELLO}{END}", HELLO.len() + 20);
    let (said, end) = answer(Api::Anthropic, reply.into_bytes()).await;
    assert_eq!((said.as_str(), end.unwrap_err().failure.kind), ("hello", FailureKind::CutStream));
}

#[tokio::test]
async fn non_streaming_responses_are_accepted() {
    let chat = json!({"id": "x", "object": "chat.completion", "model": "m", "error": null, "choices": [{"index": 0, "finish_reason": "stop",
        "message": {"role": "assistant", "content": "hello", "reasoning_content": "hm"}}], "usage": {"prompt_tokens": 3, "completion_tokens": 2}});
    let messages = json!({"type": "message", "id": "x", "role": "assistant", "model": "m", "stop_reason": "end_turn",
        "content": [{"type": "text", "text": "hello"}], "usage": {"input_tokens": 3, "output_tokens": 2}});
    let responses = json!({"object": "response", "status": "completed", "error": null, "output": [{"type": "message", "id": "x",
        "content": [{"type": "output_text", "text": "hello"}]}], "usage": {"input_tokens": 3, "output_tokens": 2}});
    let usage = json!({"promptTokenCount": 3, "candidatesTokenCount": 2});
    let chunk = |text: &str, rest: Value| {
        let mut candidate = json!({"index": 0, "content": {"role": "model", "parts": [{"text": text}]}});
        candidate.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        json!({"candidates": [candidate], "usageMetadata": usage})
    };
    let gemini = chunk("hello", json!({"finishReason": "STOP"}));
    let chunks = json!([chunk("hel", json!({})), chunk("lo", json!({"finishReason": "STOP"}))]);
    let bodies = [
        (Api::OpenAiChat, chat),
        (Api::Anthropic, messages),
        (Api::OpenAiResponses, responses),
        (Api::Gemini, gemini),
        (Api::Gemini, chunks),
    ];
    for (api, body) in bodies {
        for text in [body.to_string(), serde_json::to_string_pretty(&body).unwrap()] {
            let (said, end) = answer(api, of_length("content-type: application/json\r\n", text.as_bytes())).await;
            let completion = end.unwrap();
            assert_eq!((said.as_str(), completion.usage.input_tokens, completion.usage.output_tokens), ("hello", 3, 2));
            assert_eq!(completion.stop_reason, StopReason::EndTurn);
            let cut = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{}", text.len(), &text[..text.len() - 5]);
            let failure = answer(api, cut.into_bytes()).await.1.unwrap_err().failure;
            assert_eq!(failure.kind, FailureKind::CutStream);
        }
    }
}

#[tokio::test]
async fn non_streaming_errors_and_unknown_bodies_are_classified() {
    let error = json!({"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "slow down"}});
    for body in [error.clone(), json!([error])] {
        for api in [Api::Anthropic, Api::OpenAiChat, Api::OpenAiResponses, Api::Gemini] {
            let failure = answer(api, of_length("", body.to_string().as_bytes())).await.1.unwrap_err().failure;
            assert_eq!((failure.kind, failure.message.as_str()), (FailureKind::RateLimited, "slow down"), "{api:?} {body}");
        }
    }
    for (api, body, kind) in [
        (Api::Gemini, json!([{"candidates": [{"content": {"parts": [{"text": "hel"}]}}]}]), FailureKind::CutStream),
        (Api::Gemini, json!([1]), FailureKind::Protocol),
        (Api::Gemini, json!({"models": []}), FailureKind::Protocol),
        (Api::OpenAiResponses, json!({"object": "list", "data": []}), FailureKind::Protocol),
        (Api::OpenAiResponses, json!([]), FailureKind::Protocol),
    ] {
        let failure = answer(api, of_length("", body.to_string().as_bytes())).await.1.unwrap_err().failure;
        assert_eq!(failure.kind, kind, "{api:?} {body}");
    }
}

#[tokio::test]
async fn usage_of_a_cut_response_is_reported_if_the_api_streams_usage() {
    let gemini = "data: {\"candidates\":[],\"usageMetadata\":{\"promptTokenCount\":5,\"candidatesTokenCount\":1}}\n\n";
    let responses =
        "data: {\"type\":\"response.in_progress\",\"response\":{\"usage\":{\"input_tokens\":5,\"output_tokens\":1}}}\n\n";
    for (api, event) in [(Api::Gemini, gemini), (Api::OpenAiResponses, responses)] {
        let error = answer(api, format!("{HEAD}\r\n{event}").into_bytes()).await.1.unwrap_err();
        let usage = error.usage.map(|usage| (usage.input_tokens, usage.output_tokens));
        assert_eq!((error.failure.kind, usage), (FailureKind::CutStream, Some((5, 1))), "{api:?}");
    }
}

#[tokio::test]
async fn an_empty_response_is_reported_as_such() {
    for head in ["content-length: 0\r\n", "transfer-encoding: chunked\r\n"] {
        let end = if head.starts_with('t') { "0\r\n\r\n" } else { "" };
        let failure = answer(Api::Anthropic, format!("{HEAD}{head}\r\n{end}").into_bytes()).await.1.unwrap_err().failure;
        assert_eq!((failure.kind, failure.message.as_str()), (FailureKind::CutStream, "`p` sent an empty response"));
    }
}

#[tokio::test]
async fn an_oversized_event_ends_the_response() {
    let reply = format!("{HEAD}\r\n{HELLO}data: \"{}\"\n\n", "x".repeat(65 << 20));
    let (said, end) = answer(Api::Anthropic, reply.into_bytes()).await;
    assert_eq!((said.as_str(), end.unwrap_err().failure.kind), ("hello", FailureKind::Protocol));
}

#[tokio::test]
async fn chat_finish_reasons_and_errors_are_read_in_every_notation() {
    let chunk =
        |rest: &str| format!("data: {{\"id\":\"a\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"hi\"}}{rest}}}]}}\n\n");
    let done = "data: [DONE]\n\n";
    for finish in [r#","finish_reason":{"type":"stop"}"#, r#","finish_reason":{}"#, r#","finish_reason":1"#] {
        let (said, end) = answer(Api::OpenAiChat, format!("{HEAD}\r\n{}", chunk(finish)).into_bytes()).await;
        assert_eq!((said.as_str(), end.unwrap().stop_reason), ("hi", StopReason::EndTurn), "{finish}");
    }
    for usage in ["null", "-1", "{\"prompt_tokens\":-4,\"completion_tokens\":1.0,\"prompt_tokens_details\":[]}", "[]", "\"\""] {
        let last = format!("data: {{\"id\":\"b\",\"choices\":[],\"usage\":{usage}}}\n\n");
        let reply = format!("{HEAD}\r\n{}{last}{done}", chunk(r#","finish_reason":"stop""#));
        let (said, end) = answer(Api::OpenAiChat, reply.into_bytes()).await;
        assert_eq!((said.as_str(), end.unwrap().usage.input_tokens), ("hi", 0), "{usage}");
    }
    let spliced = chunk("").replace("\"a\"", "\"b\"").replace("hi", "twice");
    let (said, _) =
        answer(Api::OpenAiChat, format!("{HEAD}\r\n{}{spliced}{done}", chunk(r#","finish_reason":"stop""#)).into_bytes()).await;
    assert_eq!(said, "hi");
    for (error, kind) in [
        ("data: {\"error\":{\"message\":\"m\",\"code\":429}}\n\n", FailureKind::RateLimited),
        ("data: {\"error\":\"m\"}\n\n", FailureKind::Overloaded),
        ("data: {\"object\":\"error\",\"message\":\"m\",\"code\":400}\n\n", FailureKind::InvalidRequest),
        ("event: error\ndata: m\n\n", FailureKind::Overloaded),
        ("event: error\ndata: {\"message\":\"m\"}\n\n", FailureKind::Overloaded),
        (
            "data: {\"choices\":[{\"index\":0,\"delta\":{},\"error\":{\"code\":502,\"message\":\"m\"},\"finish_reason\":\"error\"}]}\n\n",
            FailureKind::Overloaded,
        ),
    ] {
        let (said, end) = answer(Api::OpenAiChat, format!("{HEAD}\r\n{}{error}", chunk("")).into_bytes()).await;
        let failure = end.unwrap_err().failure;
        assert_eq!((said.as_str(), failure.kind, failure.message.as_str()), ("hi", kind, "m"), "{error}");
    }
}

#[tokio::test]
async fn events_out_of_order_never_produce_a_different_response() {
    let call = |index: u64, id: &str| {
        let start = json!({"type": "content_block_start", "index": index, "content_block": {"type": "tool_use", "id": id, "name": "Grep", "input": {}}});
        format!("data: {start}\n\n")
    };
    let piece = |index: u64, json: &str| {
        let delta =
            json!({"type": "content_block_delta", "index": index, "delta": {"type": "input_json_delta", "partial_json": json}});
        format!("data: {delta}\n\n")
    };
    let end = |index: u64| format!("data: {}\n\n", json!({"type": "content_block_stop", "index": index}));
    let start = "data: {\"type\":\"message_start\",\"message\":{\"id\":\"a\"}}\n\n";
    let other = "data: {\"type\":\"message_start\",\"message\":{\"id\":\"b\"}}\n\n";
    let stop = "data: {\"type\":\"message_stop\"}\n\n";
    let of = |events: String| async move {
        let (_, end) = answer(Api::Anthropic, format!("{HEAD}\r\n{events}").into_bytes()).await;
        end.map(|completion| {
            let calls =
                completion.content.into_iter().filter_map(|part| if let Part::ToolCall(call) = part { Some(call) } else { None });
            calls
                .map(|call| format!("{} {}", call.tool_call_id, serde_json::to_string(&call.arguments).unwrap()))
                .collect::<Vec<_>>()
        })
    };
    // Deltas of two calls are interleaved, with a gap in the numbers.
    let mixed = [
        start.into(),
        call(3, "x"),
        call(9, "y"),
        piece(3, "{\"a\""),
        piece(9, "{\"b\":2"),
        piece(3, ":1}"),
        piece(9, "}"),
        end(9),
        end(3),
        stop.into(),
    ];
    assert_eq!(of(mixed.concat()).await.unwrap(), ["x {\"a\":1}", "y {\"b\":2}"]);
    // The response ends before the block does, so the call is incomplete and not run.
    assert_eq!(of([start.into(), call(0, "x"), piece(0, "{\"a\""), stop.into()].concat()).await.unwrap(), ["x \"{\\\"a\\\"\""]);
    // A repeated call counts once.
    let twice = [start.into(), call(0, "x"), piece(0, "{}"), end(0), call(1, "x"), piece(1, "{}"), end(1), stop.into()];
    assert_eq!(of(twice.concat()).await.unwrap(), ["x {}"]);
    let namesakes =
        [start.into(), call(0, "x"), piece(0, "{}"), end(0), call(1, "x"), piece(1, "{\"a\":1}"), end(1), stop.into()];
    assert_eq!(of(namesakes.concat()).await.unwrap().len(), 2);
    assert_eq!(
        of([start.into(), start.into(), call(0, "x"), piece(0, "{}"), end(0), stop.into()].concat()).await.unwrap().len(),
        1
    );
    assert!(!of([start.into(), call(0, ""), piece(0, "{}"), end(0), stop.into()].concat()).await.unwrap()[0].starts_with(' '));
    for broken in [
        [start.to_owned(), piece(0, "{}"), stop.to_owned()],
        [start.to_owned(), other.to_owned(), stop.to_owned()],
        [stop.to_owned(), String::new(), String::new()],
    ] {
        assert!(of(broken.concat()).await.unwrap_err().failure.retryable);
    }
}

#[tokio::test]
async fn large_arguments_and_many_calls_are_read_completely() {
    let text = "x".repeat(crate::protocol::ARGUMENT_BYTES - 64);
    let arguments = json!({"content": text}).to_string();
    let events = |size: usize| {
        let mut body = String::from(HEAD) + "\r\n";
        for (at, piece) in arguments.as_bytes().chunks(size).enumerate() {
            let piece = std::str::from_utf8(piece).unwrap();
            let mut function = json!({"arguments": piece});
            if at == 0 {
                function["name"] = json!("WriteFile");
            }
            let chunk =
                json!({"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "id": "c", "function": function}]}}]});
            body += "data: ";
            body += &chunk.to_string();
            body += "\n\n";
        }
        body + "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\ndata: [DONE]\n\n"
    };
    for size in [4 << 10, 2 << 20] {
        let completion = answer(Api::OpenAiChat, events(size).into_bytes()).await.1.unwrap();
        let Part::ToolCall(call) = &completion.content[0] else { panic!("{:?}", completion.content.len()) };
        let CallArguments::Object(map) = &call.arguments else { panic!("not whole") };
        assert_eq!(map["content"].as_str().unwrap().len(), text.len());
    }
    let call = |at: usize| json!({"index": at, "id": format!("c{at}"), "function": {"name": "Grep", "arguments": "{}"}});
    let chunks =
        (0..2000).map(|at| format!("data: {}\n\n", json!({"choices": [{"index": 0, "delta": {"tool_calls": [call(at)]}}]})));
    let reply = format!(
        "{HEAD}\r\n{}data: {}\n\n",
        chunks.collect::<String>(),
        json!({"choices": [{"index": 0, "finish_reason": "tool_calls"}]})
    );
    assert_eq!(answer(Api::OpenAiChat, reply.into_bytes()).await.1.unwrap().content.len(), 2000);
}

#[tokio::test]
async fn arguments_repeated_with_double_escapes_at_the_end_are_read_completely() {
    let arguments = json!({"content": "\"".repeat((crate::protocol::ARGUMENT_BYTES - 64) / 2)}).to_string();
    let call = json!({"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "WriteFile", "arguments": arguments});
    let events = items(&[call]);
    assert!(events.len() > 4 << 20);
    let completion = answer(Api::OpenAiResponses, format!("{HEAD}\r\n{events}").into_bytes()).await.1.unwrap();
    let Part::ToolCall(call) = &completion.content[0] else { panic!("{:?}", completion.content.len()) };
    assert_eq!(call.arguments, CallArguments::parse(&arguments));
}

/// Serves complete responses on a single connection, and then runs `last` on it.
async fn kept_alive<F, D>(last: F) -> (Vec<Result<(), FailureKind>>, usize)
where
    F: FnOnce(TcpStream) -> D + Send + 'static,
    D: Future<Output = ()> + Send,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let seen = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let count = Arc::clone(&seen);
    let reply = of_length("content-type: text/event-stream\r\n", format!("{HELLO}{END}").as_bytes());
    tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        read_request(&mut socket).await.unwrap();
        count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        socket.write_all(&reply).await.unwrap();
        last(socket).await;
        loop {
            let (mut socket, _) = listener.accept().await.unwrap();
            if read_request(&mut socket).await.is_some() {
                count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                let _ = socket.write_all(&reply).await;
            }
        }
    });
    let model = connect(spec(Api::Anthropic, address, LONG), "m").unwrap();
    let mut ends = Vec::new();
    for _ in 0..2 {
        let items: Vec<_> = model.stream(request()).collect().await;
        ends.push(items.last().unwrap().as_ref().map(|_| ()).map_err(|error| error.failure.kind));
        for _ in 0..200 {
            tokio::task::yield_now().await;
        }
    }
    (ends, seen.load(std::sync::atomic::Ordering::Relaxed))
}

#[tokio::test]
async fn a_dead_keep_alive_connection_is_replaced_silently() {
    let (ends, seen) = kept_alive(|socket| async move { drop(socket) }).await;
    assert_eq!((ends, seen), (vec![Ok(()), Ok(())], 2));
}

#[tokio::test]
async fn a_request_that_may_have_been_received_is_never_resent_silently() {
    let (ends, seen) = kept_alive(|mut socket| async move {
        read_request(&mut socket).await.unwrap();
    })
    .await;
    assert_eq!((ends, seen), (vec![Ok(()), Err(FailureKind::CutStream)], 1));
}

#[tokio::test]
async fn an_endless_response_is_cut_off_and_not_retried() {
    let address = serve_with(|mut socket| async move {
        let words = "y".repeat(1 << 20);
        let delta = format!(
            "data: {{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{{\"type\":\"text_delta\",\"text\":\"{words}\"}}}}\n\n"
        );
        socket.write_all(format!("{HEAD}\r\n{HELLO}").as_bytes()).await.unwrap();
        while socket.write_all(delta.as_bytes()).await.is_ok() {}
    })
    .await;
    let (said, end) = ask(Api::Anthropic, address, LONG).await;
    let error = end.unwrap_err();
    assert_eq!((error.failure.kind, error.failure.retryable), (FailureKind::Protocol, false));
    assert!(
        error.failure.message.contains("was too long") && error.failure.message.contains("16 MiB of text"),
        "{}",
        error.failure.message
    );
    assert_eq!(error.usage.map(|usage| usage.input_tokens), Some(3), "what it said of its cost counts");
    assert!(said.len() < 64 << 20, "{} bytes", said.len());
}

#[tokio::test]
async fn cached_tokens_counted_separately_are_added_to_the_input() {
    for (counts, input) in [
        (json!({"prompt_tokens": 10, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 5000}}), 5010),
        (json!({"prompt_tokens": 5010, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 5000}}), 5010),
    ] {
        let body = json!({"id": "x", "choices": [{"index": 0, "finish_reason": "stop",
            "message": {"role": "assistant", "content": "hello"}}], "usage": counts});
        let reply = of_length("content-type: application/json\r\n", body.to_string().as_bytes());
        let usage = answer(Api::OpenAiChat, reply).await.1.unwrap().usage;
        assert_eq!((usage.input_tokens, usage.cache_read_tokens), (input, 5000));
    }
}

/// Repeats a single event endlessly, for each API.
#[tokio::test]
async fn endless_streams_of_any_event_are_cut_off() {
    let chat = |delta: &str| format!("data: {{\"id\":\"a\",\"choices\":[{{\"index\":0,\"delta\":{delta}}}]}}\n\n");
    let arguments = |text: &str| {
        format!(r#"{{"tool_calls":[{{"index":0,"id":"c","function":{{"name":"WriteFile","arguments":"{text}"}}}}]}}"#)
    };
    let (megabyte, counted) = ("y".repeat(1 << 20), |count: usize| format!("{count:09}"));
    type Chunk = Box<dyn Fn(usize) -> String + Send>;
    let cases: [(&str, Chunk, &str); 4] = [
        ("arguments", Box::new(move |_| chat(&arguments(&megabyte))), "MiB of events"),
        ("one chunk", Box::new(move |_| chat(r#"{"content":"ha"}"#)), "the same event 10000 times"),
        (
            "calls",
            Box::new(move |at| {
                chat(&format!(
                    r#"{{"tool_calls":[{{"index":{at},"id":"c{at}","function":{{"name":"Grep","arguments":"{{}}"}}}}]}}"#
                ))
            }),
            "4096 calls",
        ),
        (
            "sealed thoughts",
            Box::new(move |at| {
                chat(&format!(r#"{{"reasoning_details":[{{"type":"sealed","id":"{}","data":"x"}}]}}"#, counted(at)))
            }),
            "4096 calls and other parts",
        ),
    ];
    for (name, event, limit) in cases {
        let address = serve_with(move |mut socket| async move {
            socket.write_all(format!("{HEAD}\r\n").as_bytes()).await.unwrap();
            let mut at = 0;
            while socket.write_all(event(at).as_bytes()).await.is_ok() {
                at += 1;
            }
        })
        .await;
        let error = ask(Api::OpenAiChat, address, LONG).await.1.unwrap_err();
        assert_eq!((error.failure.kind, error.failure.retryable), (FailureKind::Protocol, false), "{name}");
        assert!(error.failure.message.contains(limit), "{name}: {}", error.failure.message);
    }
}

#[tokio::test]
async fn arguments_over_the_limit_are_dropped_and_the_call_does_not_run() {
    let piece = "z".repeat(64 << 10);
    let chunk = |arguments: &str, finish: &str| {
        format!(
            "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"tool_calls\":[{{\"index\":0,\"id\":\"c\",\"function\":{{\"name\":\"WriteFile\",\"arguments\":\"{arguments}\"}}}}]}}{finish}}}]}}\n\n"
        )
    };
    let mut body = format!("{HEAD}\r\n{}", chunk("{\\\"content\\\":\\\"", ""));
    (0..40).for_each(|_| body += &chunk(&piece, ""));
    body += &chunk("\\\"}", ",\"finish_reason\":\"tool_calls\"");
    let completion = answer(Api::OpenAiChat, body.into_bytes()).await.1.unwrap();
    let Part::ToolCall(call) = &completion.content[0] else { panic!("{:?}", completion.content.len()) };
    let CallArguments::Malformed(text) = &call.arguments else { panic!("it would be run") };
    assert!(text.len() < 4 << 10 && text.contains("over a limit"), "{text}");
}
