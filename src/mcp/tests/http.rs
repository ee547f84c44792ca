use super::web::{Answer, Request, Web};
use super::*;
use crate::mcp::{AuthRefusal, Header, HttpKind, SignIn, Tokens};
use crate::ports::RemoteContent;
use std::sync::Mutex;

fn at(url: &str, kind: HttpKind) -> Spec {
    let headers = vec![Header { name: "X-Key".to_owned(), value: "k1".to_owned() }];
    let reach = Reach::Http { url: url.to_owned(), headers, sign_in: SignIn::None, kind };
    Spec { reach, retry_attempts: 0, ..spec("one") }
}

fn over(web: &Web, kind: HttpKind) -> Servers {
    Servers::new(vec![at(&web.url, kind)], McpDeps::default())
}

fn rpc(request: &Request, result: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": request.body["id"], "result": result})
}

/// Returns the usual response of an older server, or `None` if the request is a tool call.
fn usual(request: &Request) -> Option<Answer> {
    Some(match request.method() {
        "server/discover" => Answer::new(400, "content-type: text/plain\r\n", "no session"),
        "initialize" => {
            let mut answer = Answer::json(&rpc(request, welcome(&request.body)));
            answer.head.push_str("mcp-session-id: s1\r\n");
            answer
        }
        "tools/list" => Answer::json(&rpc(request, json!({"tools": [tool("add")]}))),
        "tools/call" => return None,
        _ if request.is_get() => Answer::new(405, "", ""),
        _ => Answer::new(202, "", ""),
    })
}

#[tokio::test]
async fn http_calls_use_the_headers_from_the_configuration() {
    let web = Web::start(|request| async move {
        assert!(request.head.contains("x-key: k1"), "{}", request.head);
        usual(&request).unwrap_or_else(|| {
            assert!(request.head.contains("mcp-session-id: s1") && request.head.contains("mcp-protocol-version: 2025-11-25"));
            Answer::events(&format!(": ping\r\n\r\nevent: message\r\ndata: {}\r\n\r\n", rpc(&request, text("3"))))
        })
    })
    .await;
    let servers = over(&web, HttpKind::Streamable);
    assert_eq!(call(&servers, "add").await.unwrap().content, [RemoteContent::Text("3".to_owned())]);
    servers.end().await;
    assert!(web.lines.lock().unwrap().iter().any(|line| line.starts_with("DELETE")));
}

#[tokio::test]
async fn a_broken_stream_is_resumed_after_the_last_event() {
    let call_id = Arc::new(Mutex::new(Value::Null));
    let web = Web::start(move |request| {
        let call_id = Arc::clone(&call_id);
        async move {
            if request.is_get() && request.head.contains("last-event-id: e1") {
                let id = call_id.lock().unwrap().clone();
                return Answer::events(&format!(
                    "id: e2\ndata: {}\n\n",
                    json!({"jsonrpc": "2.0", "id": id, "result": text("late")})
                ));
            }
            usual(&request).unwrap_or_else(|| {
                *call_id.lock().unwrap() = request.body["id"].clone();
                Answer::events("id: e1\nretry: 1\ndata: \n\n")
            })
        }
    })
    .await;
    assert_eq!(call(&over(&web, HttpKind::Auto), "add").await.unwrap().content, [RemoteContent::Text("late".to_owned())]);
}

#[tokio::test]
async fn a_stream_that_ends_without_a_result_leaves_the_outcome_unknown() {
    let web = Web::start(|request| async move { usual(&request).unwrap_or_else(|| Answer::events(": nothing\n\n")) }).await;
    let error = call(&over(&web, HttpKind::Streamable), "add").await.unwrap_err();
    assert!(matches!(error, RemoteError::OutcomeUnknown { .. }), "{error:?}");
}

#[tokio::test]
async fn an_unterminated_event_is_cut_off() {
    let web = Web::start(|request| async move {
        usual(&request).unwrap_or_else(|| {
            let (send, more) = mpsc::channel(1);
            tokio::spawn(async move { while send.send("x".repeat(1 << 20)).await.is_ok() {} });
            Answer { more: Some(more), ..Answer::events("data: ") }
        })
    })
    .await;
    assert!(call(&over(&web, HttpKind::Streamable), "add").await.is_err());
    let web = Web::start(|request| async move {
        usual(&request).unwrap_or_else(|| {
            let (send, more) = mpsc::channel(1);
            tokio::spawn(async move { while send.send(" ".repeat(1 << 20)).await.is_ok() {} });
            Answer { more: Some(more), ..Answer::new(200, "content-type: application/json\r\n", "{") }
        })
    })
    .await;
    let error = call(&over(&web, HttpKind::Streamable), "add").await.unwrap_err();
    assert!(matches!(error, RemoteError::TooLarge { .. }), "{error:?}");
}

#[tokio::test]
async fn only_redirects_to_the_same_origin_are_followed() {
    let other = Web::start(|request| async move { usual(&request).unwrap() }).await;
    let target = other.url.clone();
    for status in [301, 302, 307, 308] {
        let target = target.clone();
        let web = Web::start(move |_| {
            let head = format!("location: {target}\r\n");
            async move { Answer::new(status, &head, "") }
        })
        .await;
        let state = looked(&over(&web, HttpKind::Auto)).await;
        assert!(matches!(state, ServerState::Unreachable { .. }), "{status}: {state:?}");
    }
    assert_eq!(other.lines.lock().unwrap().len(), 0);
    let web = Web::start(|request| async move {
        if request.line.contains("/mcp") {
            return Answer::new(307, "location: /moved\r\n", "");
        }
        usual(&request).unwrap()
    })
    .await;
    assert_eq!(looked(&over(&web, HttpKind::Streamable)).await, ServerState::Ready);
}

#[tokio::test]
async fn plain_http_is_allowed_only_for_this_machine() {
    let servers = Servers::new(vec![at("http://192.0.2.1/mcp", HttpKind::Auto)], McpDeps::default());
    let state = looked(&servers).await;
    assert!(matches!(&state, ServerState::Unreachable { why } if why.contains("only for this machine")), "{state:?}");
}

#[tokio::test]
async fn an_unauthorized_response_requires_a_sign_in() {
    for head in ["", "www-authenticate: Bearer resource_metadata=\"https://example.org\"\r\n"] {
        let web = Web::start(move |_| async move { Answer::new(401, head, "who?") }).await;
        for kind in [HttpKind::Auto, HttpKind::Sse] {
            let servers = over(&web, kind);
            assert_eq!(looked(&servers).await, ServerState::NeedsLogin);
            let read = servers.read_resource("one", "a").await;
            assert_eq!(read, Err(RemoteError::NeedsLogin { server: "one".to_owned() }));
        }
    }
}

struct Two {
    refused: Mutex<Vec<AuthRefusal>>,
}

impl Tokens for Two {
    fn token<'a>(&'a self, _: &'a Spec) -> BoxFuture<'a, Result<Option<String>, String>> {
        Box::pin(std::future::ready(Ok(Some("t1".to_owned()))))
    }

    fn on_rejected<'a>(&'a self, _: &'a Spec, refusal: AuthRefusal) -> BoxFuture<'a, Result<Option<String>, String>> {
        self.refused.lock().unwrap().push(refusal);
        Box::pin(std::future::ready(Ok(Some("t2".to_owned()))))
    }
}

#[tokio::test]
async fn an_expired_token_is_renewed_during_the_call() {
    let web = Web::start(|request| async move {
        match usual(&request) {
            Some(answer) => answer,
            None if request.head.contains("bearer t2") => Answer::json(&rpc(&request, text("3"))),
            None => Answer::new(401, "www-authenticate: Bearer error=\"invalid_token\"\r\n", ""),
        }
    })
    .await;
    let tokens = Arc::new(Two { refused: Mutex::default() });
    let wires = McpDeps { tokens: Some(Arc::clone(&tokens) as Arc<dyn Tokens>), ..McpDeps::default() };
    let servers = Servers::new(vec![at(&web.url, HttpKind::Streamable)], wires);
    assert!(call(&servers, "add").await.is_ok());
    let challenge = Some("Bearer error=\"invalid_token\"".to_owned());
    assert_eq!(*tokens.refused.lock().unwrap(), [AuthRefusal::Unauthorized { challenge, used: Some("t1".to_owned()) }]);
}

/// Starts a server that implements protocol version 2024-11-05 and sends all responses in a single stream.
async fn older(endpoint: &'static str) -> Web {
    let (send, more) = mpsc::channel(8);
    let more = Arc::new(Mutex::new(Some(more)));
    Web::start(move |request| {
        let (send, more) = (send.clone(), Arc::clone(&more));
        async move {
            if request.is_get() {
                let more = more.lock().unwrap().take();
                return Answer { more, ..Answer::events(&format!("event: endpoint\r\ndata: {endpoint}\r\n\r\n")) };
            }
            if request.line.contains("/mcp") {
                return Answer::new(405, "", "");
            }
            assert!(request.head.contains("x-key: k1"));
            let answer = match request.method() {
                "initialize" => Some(welcome(&request.body)),
                "tools/list" => Some(json!({"tools": [tool("add")]})),
                "tools/call" => Some(text("3")),
                _ => None,
            };
            if let Some(answer) = answer {
                let _ = send.send(format!("event: message\ndata: {}\n\n", rpc(&request, answer))).await;
            }
            Answer::new(202, "", "Accepted")
        }
    })
    .await
}

#[tokio::test]
async fn a_server_that_supports_only_sse_is_reached_over_sse() {
    for kind in [HttpKind::Auto, HttpKind::Sse] {
        let web = older("/messages?session=1").await;
        let servers = over(&web, kind);
        assert_eq!(call(&servers, "add").await.unwrap().content, [RemoteContent::Text("3".to_owned())]);
        let identity = servers.identity("one").unwrap();
        assert_eq!((identity.name.as_deref(), identity.version.as_deref()), (Some("test"), Some("1")));
        servers.end().await;
    }
}

#[tokio::test]
async fn an_event_stream_cannot_redirect_the_client_to_another_origin() {
    let web = older("http://127.0.0.2:1/messages").await;
    let state = looked(&over(&web, HttpKind::Sse)).await;
    assert!(matches!(&state, ServerState::Unreachable { why } if why.contains("different origin")), "{state:?}");
}

#[tokio::test]
#[cfg_attr(not(aye_shared), ignore = "needs the shared test material: set AYE_SHARED")]
async fn recorded_exchanges_are_read() {
    let directory = std::fs::read_dir(shared!("fixtures/mcp_http")).unwrap();
    for file in directory.map(|entry| entry.unwrap().path()).filter(|path| path.extension() == Some("jsonl".as_ref())) {
        let lines = std::fs::read_to_string(file).unwrap();
        let recorded: Arc<Vec<Value>> = Arc::new(lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect());
        let said: Vec<_> = recorded.iter().filter(|pair| pair["request"]["body"]["method"] == "tools/call").cloned().collect();
        let replayed = Arc::clone(&recorded);
        let web = Web::start(move |request| {
            let recorded = Arc::clone(&replayed);
            async move {
                let same = |pair: &&Value| {
                    let body = &pair["request"]["body"];
                    body["method"] == request.body["method"]
                        && (request.method() != "tools/call"
                            || body["params"]["arguments"] == request.body["params"]["arguments"])
                };
                let Some(pair) = recorded.iter().find(same) else { return Answer::new(404, "", "not recorded") };
                let response = &pair["response"];
                let kind = response["headers"]["content-type"].as_str().unwrap_or("text/plain");
                let (was, is) = (format!("\"id\":{}", pair["request"]["body"]["id"]), format!("\"id\":{}", request.body["id"]));
                let body = response["body"].as_str().unwrap_or_default().replace(&was, &is);
                Answer::new(response["status"].as_u64().unwrap() as u16, &format!("content-type: {kind}\r\n"), &body)
            }
        })
        .await;
        let servers = over(&web, HttpKind::Auto);
        assert_eq!(looked(&servers).await, ServerState::Ready);
        assert!(!servers.tools().is_empty());
        for pair in said {
            let params = &pair["request"]["body"]["params"];
            let tool = offered(&servers, params["name"].as_str().unwrap()).await;
            let arguments = params["arguments"].as_object().cloned().unwrap_or_default();
            let result = servers.call(RemoteCall { arguments, ..a_call(&tool) }, context().0).await.unwrap();
            assert!(!result.content.is_empty());
        }
    }
}

#[tokio::test]
async fn a_note_is_shown_only_for_servers_with_the_oldest_protocol_version() {
    for (revision, notes) in [("2024-11-05", 1), ("2025-06-18", 0)] {
        let web = Web::start(move |request| async move {
            match request.method() {
                "initialize" => {
                    let mut hello = welcome(&request.body);
                    hello["protocolVersion"] = json!(revision);
                    Answer::json(&rpc(&request, hello))
                }
                _ => usual(&request).unwrap(),
            }
        })
        .await;
        let servers = over(&web, HttpKind::Streamable);
        assert_eq!(looked(&servers).await, ServerState::Ready);
        assert_eq!(servers.identity("one").unwrap().revision, revision);
        assert_eq!((status(&servers).notes.len(), servers.notes("one").len()), (notes, notes), "{revision}");
        assert!(status(&servers).notes.iter().all(|note| note.contains("version 2024-11-05")));
    }
}

#[tokio::test]
async fn deeply_nested_bodies_are_errors_and_do_not_crash_the_client() {
    let deep = |levels: usize| format!("{}1{}", "{\"a\":".repeat(levels), "}".repeat(levels));
    let bomb = move |request: &Request, result: &str| {
        let body = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, request.body["id"]);
        Answer::new(200, "content-type: application/json\r\n", &body)
    };
    let result = format!(r#"{{"content":[],"structuredContent":{}}}"#, deep(100_000));
    let web = Web::start(move |request| {
        let result = result.clone();
        async move { usual(&request).unwrap_or_else(|| bomb(&request, &result)) }
    })
    .await;
    let servers = over(&web, HttpKind::Streamable);
    assert!(call(&servers, "add").await.is_err());
    assert!(call(&servers, "add").await.is_err(), "and it can be called again");
    let listed = format!(r#"{{"tools":[{{"name":"bomb","inputSchema":{}}}]}}"#, deep(100_000));
    let web = Web::start(move |request| {
        let listed = listed.clone();
        async move { if request.method() == "tools/list" { bomb(&request, &listed) } else { usual(&request).unwrap() } }
    })
    .await;
    let state = looked(&over(&web, HttpKind::Streamable)).await;
    assert!(matches!(state, ServerState::Unreachable { .. }), "{state:?}");
}

#[tokio::test]
async fn a_list_with_an_invalid_tool_is_parsed_tool_by_tool_over_http() {
    for (newer, as_events) in [(false, false), (false, true), (true, false), (true, true)] {
        let web = Web::start(move |request: Request| async move {
            let answer = |result: Value| {
                let body = rpc(&request, result);
                if as_events { Answer::events(&format!("data: {body}\n\n")) } else { Answer::json(&body) }
            };
            match request.method() {
                "server/discover" if newer => answer(json!({"resultType": "complete", "supportedVersions": ["2026-07-28"],
                    "capabilities": {"tools": {}}, "ttlMs": 0, "cacheScope": "private"})),
                "tools/list" => {
                    let mut listed = json!({"tools": [tool("first"), {"name": "broken"}, tool("last")]});
                    if newer {
                        listed["resultType"] = "complete".into();
                    }
                    answer(listed)
                }
                _ => usual(&request).unwrap_or_else(|| Answer::new(404, "", "")),
            }
        })
        .await;
        let servers = over(&web, HttpKind::Streamable);
        assert_eq!(looked(&servers).await, ServerState::Ready, "{newer} {as_events}");
        let names: Vec<String> = servers.tools().iter().map(|tool| tool.name.clone()).collect();
        assert_eq!(names, ["first", "last"], "{newer} {as_events}");
        let notes = status(&servers).notes;
        assert!(notes.iter().any(|note| note.contains("`broken`") && note.contains("`inputSchema` is missing")), "{notes:?}");
    }
}

#[tokio::test]
async fn a_call_to_an_unreachable_server_is_retried_and_the_server_is_not_reported_ready() {
    let answers = |calls: Arc<AtomicUsize>| {
        move |request: Request| {
            let calls = Arc::clone(&calls);
            async move {
                if request.method() == "tools/call" {
                    calls.fetch_add(1, Ordering::SeqCst);
                    return Answer::json(&rpc(&request, text("3")));
                }
                usual(&request).unwrap_or_else(|| Answer::new(404, "", ""))
            }
        }
    };
    let calls = Arc::new(AtomicUsize::new(0));
    let first = Web::start(answers(Arc::clone(&calls))).await;
    let mut spec = at(&first.url, HttpKind::Streamable);
    (spec.retry_attempts, spec.retry_delay) = (2, Duration::from_millis(20));
    let servers = Servers::new(vec![spec], McpDeps::default());
    let tool = offered(&servers, "add").await;
    assert!(servers.call(a_call(&tool), context().0).await.is_ok());
    let address = first.stop().await;
    let down = servers.call(a_call(&tool), context().0).await;
    assert!(matches!(down, Err(RemoteError::Unreachable { .. })), "{down:?}");
    assert!(matches!(status(&servers).state, ServerState::Unreachable { .. }), "{:?}", status(&servers));
    assert_eq!(calls.load(Ordering::SeqCst), 1);
    // The server starts again while the call waits.
    let (result, _second) = tokio::join!(servers.call(a_call(&tool), context().0), async {
        tokio::time::sleep(Duration::from_millis(30)).await;
        Web::at(&address, answers(Arc::clone(&calls))).await
    });
    assert!(result.is_ok(), "{result:?}");
    assert_eq!((calls.load(Ordering::SeqCst), status(&servers).state), (2, ServerState::Ready));
}

#[tokio::test]
async fn calls_rejected_by_a_busy_server_are_retried() {
    for (refusals, succeeds) in [(2, true), (3, false)] {
        let calls = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&calls);
        let web = Web::start(move |request: Request| {
            let count = Arc::clone(&count);
            async move {
                if request.method() == "tools/call" {
                    return match count.fetch_add(1, Ordering::SeqCst) {
                        call if call < refusals => Answer::new(503, "", ""),
                        _ => Answer::json(&rpc(&request, text("3"))),
                    };
                }
                usual(&request).unwrap_or_else(|| Answer::new(404, "", ""))
            }
        })
        .await;
        let mut spec = at(&web.url, HttpKind::Streamable);
        (spec.retry_attempts, spec.retry_delay) = (2, Duration::from_millis(1));
        let servers = Servers::new(vec![spec], McpDeps::default());
        let tool = offered(&servers, "add").await;
        let result = servers.call(a_call(&tool), context().0).await;
        assert_eq!(result.is_ok(), succeeds, "{result:?}");
        assert!(succeeds || matches!(result, Err(RemoteError::Busy { .. })), "{result:?}");
        assert_eq!((calls.load(Ordering::SeqCst), status(&servers).state), (3, ServerState::Ready));
    }
}
