use super::*;
use tokio::io::AsyncWriteExt;

fn is_unreachable(state: &ServerState, with: &str) -> bool {
    matches!(state, ServerState::Unreachable { why } if why.contains(with))
}

#[tokio::test(start_paused = true)]
async fn a_server_that_hangs_during_initialization_is_retried_by_the_next_call() {
    let servers = servers(|mut pipes| async move {
        while pipes.before == 0 && pipes.next().await.is_some() {}
        if let Some(request) = pipes.until_call(&[tool("add")]).await {
            pipes.answer(&request, text("3")).await;
        }
    });
    assert!(is_unreachable(&looked(&servers).await, "not ready within 20 s"));
    let call =
        RemoteCall { server: "one".into(), tool: "add".into(), fingerprint: "?".into(), arguments: serde_json::Map::new() };
    assert!(matches!(servers.call(call, context().0).await, Err(RemoteError::Changed { .. })));
    assert_eq!(status(&servers).state, ServerState::Ready);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_hangs_times_out_and_the_server_is_notified() {
    let (told, mut heard) = mpsc::unbounded_channel();
    let servers = servers(move |mut pipes| {
        let told = told.clone();
        async move {
            let request = pipes.until_call(&[tool("add")]).await.unwrap();
            while let Some(next) = pipes.next().await {
                let _ = told.send((request["id"].clone(), next));
            }
        }
    });
    assert_eq!(call(&servers, "add").await, Err(RemoteError::TimedOut { seconds: 30 }));
    let (id, next) = heard.recv().await.unwrap();
    assert_eq!((&next["method"], &next["params"]["requestId"]), (&json!("notifications/cancelled"), &id));
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_call_ends_immediately_and_the_server_is_notified() {
    let (told, mut heard) = mpsc::unbounded_channel();
    let servers = servers(move |mut pipes| {
        let told = told.clone();
        async move {
            pipes.until_call(&[tool("add")]).await;
            let _ = told.send(Value::Null);
            while let Some(next) = pipes.next().await {
                let _ = told.send(next["method"].clone());
            }
        }
    });
    let tool = offered(&servers, "add").await;
    let (context, _said) = context();
    let cancel = context.cancel.clone();
    let (result, ()) = tokio::join!(servers.call(a_call(&tool), context), async {
        heard.recv().await;
        cancel.cancel();
    });
    assert_eq!(result, Err(RemoteError::Cancelled));
    assert_eq!(heard.recv().await.unwrap(), "notifications/cancelled");
}

#[tokio::test(start_paused = true)]
async fn if_a_server_dies_during_a_call_the_outcome_is_unknown_and_its_stderr_is_reported() {
    let servers = servers(|mut pipes| async move {
        pipes.until_call(&[tool("add")]).await;
        let _ = pipes.beside.write_all(b"out of\x1b[2J memory\n").await;
    });
    let error = call(&servers, "add").await.unwrap_err();
    let RemoteError::OutcomeUnknown { message } = &error else { panic!("{error:?}") };
    assert!(message.contains("out of [2J memory") && !message.contains('\u{1b}'), "{message}");
    let mut changed = servers.changed();
    while status(&servers).state == ServerState::Ready {
        changed.changed().await.unwrap();
    }
    assert!(is_unreachable(&status(&servers).state, "connection closed"));
}

#[tokio::test(start_paused = true)]
async fn the_reason_why_a_server_cannot_start_is_reported() {
    struct Broken;
    impl Launcher for Broken {
        fn launch(&self, _: ServerProgram) -> BoxFuture<'_, Result<LaunchedProgram, String>> {
            Box::pin(std::future::ready(Err("no such program: npx".to_owned())))
        }
    }
    let servers = Servers::new(vec![spec("one")], McpDeps { launcher: Some(Arc::new(Broken)), ..McpDeps::default() });
    assert!(is_unreachable(&looked(&servers).await, "no such program: npx"));
    let mut off = spec("two");
    off.off = Some("the policy keeps it off".to_owned());
    let servers = Servers::new(vec![off], McpDeps::default());
    servers.discover();
    assert!(matches!(status(&servers).state, ServerState::Off { .. }));
    assert!(matches!(servers.read_resource("two", "a").await, Err(RemoteError::Unreachable { .. })));
}

#[tokio::test(start_paused = true)]
async fn an_unterminated_line_disconnects_the_server() {
    let servers = servers(|mut pipes| async move {
        pipes.until_call(&[tool("add")]).await;
        let more = "x".repeat(1 << 16);
        while pipes.to.write_all(more.as_bytes()).await.is_ok() {}
    });
    let error = call(&servers, "add").await.unwrap_err();
    let RemoteError::OutcomeUnknown { message } = &error else { panic!("{error:?}") };
    assert!(message.contains("a line of more than 10 MB"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn lines_that_are_not_messages_are_ignored() {
    let servers = servers(|mut pipes| async move {
        pipes.raw(b"Server is ready!\n{\"jsonrpc\": \n\xff\xfe\n[]\n").await;
        let Some(request) = pipes.until_call(&[tool("add")]).await else { return };
        pipes.raw(b"{\"jsonrpc\":\"2.0\",\"id\":}\nnull\n").await;
        pipes.answer(&request, text("3")).await;
    });
    assert!(call(&servers, "add").await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn unusable_tools_are_ignored_and_reported() {
    let servers = servers(|mut pipes| async move {
        let deep = |levels: usize| format!("{}{}", "{\"a\":".repeat(levels), "1".to_owned() + &"}".repeat(levels));
        let schema = |text: &str| format!(r#"{{"name":"bomb","inputSchema":{text}}}"#);
        let wide = json!({"type": "object", "description": "x".repeat(300 * 1024)}).to_string();
        let odd =
            [json!({"name": "two\u{202e}\nlines", "inputSchema": {}}), tool("add"), tool("add")].map(|tool| tool.to_string());
        let mut tools = vec![schema(&deep(40)), schema(&deep(100_000)), schema(&wide)];
        tools.extend(odd);
        while let Some(request) = pipes.next().await {
            match request["method"].as_str().unwrap_or_default() {
                "server/discover" => pipes.refuse(&request, -32601).await,
                "initialize" => pipes.answer(&request, welcome(&request)).await,
                "tools/list" => {
                    let line =
                        format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"tools":[{}]}}}}"#, request["id"], tools.join(","));
                    pipes.raw(line.as_bytes()).await;
                    pipes.raw(b"\n").await;
                }
                _ => {}
            }
        }
    });
    assert_eq!(looked(&servers).await, ServerState::Ready);
    assert_eq!(servers.tools().iter().map(|tool| &*tool.name).collect::<Vec<_>>(), ["add"]);
    let notes = servers.notes("one");
    assert_eq!(notes.len(), 5, "{notes:?}");
    assert!(
        notes[0].contains("nested deeper") && notes[1].contains("nested deeper") && notes[2].contains("limit of 65536"),
        "{notes:?}"
    );
    assert!(notes[3].contains("printable ASCII") && notes[4].contains("twice"), "{notes:?}");
}

#[tokio::test(start_paused = true)]
async fn tool_lists_and_pages_are_limited() {
    let many = servers(|mut pipes| async move {
        let tools: Vec<_> = (0..10_000).map(|count| tool(&format!("tool{count}"))).collect();
        pipes.until_call(&tools).await;
    });
    looked(&many).await;
    assert_eq!((many.tools().len(), many.notes("one").len()), (2_000, 1));

    let endless = servers(|mut pipes| async move {
        let mut pages = 0;
        while let Some(request) = pipes.next().await {
            match request["method"].as_str().unwrap_or_default() {
                "server/discover" => pipes.refuse(&request, -32601).await,
                "initialize" => pipes.answer(&request, welcome(&request)).await,
                "tools/list" => {
                    pages += 1;
                    pipes.answer(&request, json!({"tools": [], "nextCursor": format!("page{pages}")})).await;
                }
                _ => {}
            }
        }
    });
    assert_eq!(looked(&endless).await, ServerState::Ready);
    assert!(endless.notes("one")[0].contains("too many pages"));
}

#[tokio::test(start_paused = true)]
async fn oversized_results_are_errors_but_do_not_end_the_connection() {
    let servers = servers(|mut pipes| async move {
        let request = pipes.until_call(&[tool("add")]).await.unwrap();
        let four = "x".repeat(4 << 20);
        pipes.answer(&request, json!({"content": [{"type": "text", "text": four}], "structuredContent": four})).await;
        let request = pipes.until_call(&[tool("add")]).await.unwrap();
        pipes.answer(&request, json!({"content": [], "structuredContent": "x".repeat(9 << 20), "isError": true})).await;
    });
    assert!(call(&servers, "add").await.is_ok());
    assert!(call(&servers, "add").await.unwrap().is_error);
}

#[tokio::test(start_paused = true)]
async fn shutdown_does_not_wait_for_servers() {
    let servers = servers(|mut pipes| async move {
        pipes.until_call(&[tool("add")]).await;
        std::future::pending::<()>().await;
    });
    let tool = offered(&servers, "add").await;
    let hanging = {
        let servers = servers.clone();
        tokio::spawn(async move { servers.call(a_call(&tool), context().0).await })
    };
    let before = tokio::time::Instant::now();
    servers.end().await;
    assert!(before.elapsed() <= Duration::from_secs(2));
    assert!(matches!(hanging.await.unwrap(), Err(RemoteError::OutcomeUnknown { .. } | RemoteError::Unreachable { .. })));
    let late =
        RemoteCall { server: "one".into(), tool: "add".into(), fingerprint: "?".into(), arguments: serde_json::Map::new() };
    assert!(matches!(servers.call(late, context().0).await, Err(RemoteError::Unreachable { .. })));
}

#[tokio::test(start_paused = true)]
async fn an_invalid_tool_is_ignored_and_reported_and_the_others_remain() {
    let broken = [
        (json!({"name": "lacks_schema"}), "`inputSchema` is missing"),
        (json!({"name": "no_object", "inputSchema": "x"}), "`inputSchema` is not an object"),
        (json!({"name": "of_text", "inputSchema": {"type": "string"}}), "does not describe an object"),
        (
            json!({"name": "no_type", "inputSchema": {"type": "object", "properties": {"a": {"type": "strng"}}}}),
            "is not a valid JSON Schema",
        ),
        (json!({"name": "answers", "inputSchema": {}, "outputSchema": {"type": "object", "required": 7}}), "`outputSchema`"),
    ];
    for newer in [false, true] {
        for (bad, why) in &broken {
            let bad = bad.clone();
            let name = bad["name"].as_str().unwrap().to_owned();
            let servers = servers(move |mut pipes| {
                let bad = bad.clone();
                async move {
                    while let Some(request) = pipes.next().await {
                        let mut listed = json!({"tools": [tool("first"), bad, tool("last")]});
                        match request["method"].as_str().unwrap_or_default() {
                            "server/discover" if newer => {
                                let found = json!({"resultType": "complete", "supportedVersions": ["2026-07-28"],
                                    "capabilities": {"tools": {}}, "ttlMs": 0, "cacheScope": "private"});
                                pipes.answer(&request, found).await;
                            }
                            "server/discover" => pipes.refuse(&request, -32601).await,
                            "initialize" => pipes.answer(&request, welcome(&request)).await,
                            "tools/list" => {
                                if newer {
                                    listed["resultType"] = "complete".into();
                                    listed["ttlMs"] = 0.into();
                                    listed["cacheScope"] = "private".into();
                                }
                                pipes.answer(&request, listed).await;
                            }
                            _ => {}
                        }
                    }
                }
            });
            assert_eq!(looked(&servers).await, ServerState::Ready, "{name} {newer}");
            let names: Vec<String> = servers.tools().iter().map(|tool| tool.name.clone()).collect();
            assert_eq!(names, ["first", "last"], "{name} {newer}");
            let notes = status(&servers).notes;
            assert!(
                notes.iter().any(|note| note.contains(&format!("`{name}`")) && note.contains(why)),
                "{name} {newer}: {notes:?}"
            );
        }
    }
}
