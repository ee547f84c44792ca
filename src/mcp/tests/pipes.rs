use super::*;
use crate::mcp::{ServerChange, ServerVerifier};
use crate::ports::RemoteContent;

#[tokio::test(start_paused = true)]
async fn a_tool_is_listed_and_called_and_reports_progress() {
    let servers = servers(|mut pipes| async move {
        while let Some(request) = pipes.until_call(&[tool("add")]).await {
            let token = &request["params"]["_meta"]["progressToken"];
            pipes
                .say(json!({"jsonrpc": "2.0", "method": "notifications/progress",
                    "params": {"progressToken": token, "progress": 1, "total": 2, "message": "half"}}))
                .await;
            pipes
                .say(json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "a line"}}))
                .await;
            let arguments = request["params"]["arguments"].to_string();
            pipes.answer(&request, text(&arguments)).await;
        }
    });
    assert_eq!(status(&servers).state, ServerState::Asleep);
    let tool = offered(&servers, "add").await;
    let (context, mut said) = context();
    let result = servers.call(a_call(&tool), context).await.unwrap();
    assert_eq!(result.content, [RemoteContent::Text(r#"{"a":1}"#.to_owned())]);
    assert_eq!(said.recv().await.unwrap(), "1 of 2: half");
    assert_eq!(said.recv().await.unwrap(), "a line");
    servers.end().await;
}

#[tokio::test(start_paused = true)]
async fn cached_tools_are_offered_before_the_server_runs_and_a_call_starts_the_server() {
    let directory = tempfile::tempdir().unwrap();
    let launcher = scripted(|mut pipes: Pipes| async move {
        while let Some(request) = pipes.until_call(&[tool("add")]).await {
            pipes.answer(&request, text("3")).await;
        }
    });
    let wires = || McpDeps {
        launcher: Some(Arc::clone(&launcher) as Arc<dyn Launcher>),
        known: Some(directory.path().join("mcp")),
        ..McpDeps::default()
    };
    let first = Servers::new(vec![spec("one")], wires());
    looked(&first).await;
    first.end().await;
    let kept = std::fs::read_dir(directory.path().join("mcp")).unwrap();
    assert_eq!(kept.filter(|file| file.as_ref().unwrap().path().extension() == Some("json".as_ref())).count(), 1);

    let second = Servers::new(vec![spec("one")], wires());
    second.discover();
    assert_eq!((status(&second).state, status(&second).offered), (ServerState::Asleep, 1));
    assert_eq!(launcher.started.load(Ordering::SeqCst), 1);
    let tool = second.tools()[0].clone();
    assert!(second.call(a_call(&tool), context().0).await.is_ok());
    assert_eq!(status(&second).state, ServerState::Ready);
    second.end().await;

    let mut other_way = spec("one");
    other_way.reach =
        Reach::Program { argv: vec!["another".to_owned()], environment: Vec::new(), directory: None, network: false };
    assert!(Servers::new(vec![other_way], wires()).tools().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_tool_whose_description_changed_is_not_called() {
    let servers = servers(|mut pipes| async move {
        pipes.until_call(&[tool("add")]).await;
    });
    let mut tool = offered(&servers, "add").await;
    tool.fingerprint = "of another".to_owned();
    assert!(matches!(servers.call(a_call(&tool), context().0).await, Err(RemoteError::Changed { .. })));
    tool.name = "other".to_owned();
    assert!(matches!(servers.call(a_call(&tool), context().0).await, Err(RemoteError::Unknown { .. })));
    tool.server = "two".to_owned();
    assert!(matches!(servers.call(a_call(&tool), context().0).await, Err(RemoteError::Unknown { .. })));
}

#[tokio::test(start_paused = true)]
async fn the_tool_list_is_updated_on_a_list_changed_notification() {
    let servers = servers(|mut pipes| async move {
        let mut listed = 0;
        loop {
            let Some(request) = pipes.next().await else { return };
            match request["method"].as_str().unwrap_or_default() {
                "server/discover" => pipes.refuse(&request, -32601).await,
                "initialize" => pipes.answer(&request, welcome(&request)).await,
                "tools/list" => {
                    listed += 1;
                    pipes.answer(&request, json!({"tools": [tool(&format!("tool{listed}"))]})).await;
                    if listed == 1 {
                        pipes.say(json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})).await;
                    }
                }
                _ => {}
            }
        }
    });
    looked(&servers).await;
    let mut changed = servers.changed();
    while servers.tools()[0].name != "tool2" {
        changed.changed().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_with_the_newer_lifecycle_is_discovered_and_can_send_requests_in_a_call() {
    let servers = servers(|mut pipes| async move {
        while let Some(request) = pipes.next().await {
            let meta = &request["params"]["_meta"];
            match request["method"].as_str().unwrap_or_default() {
                "server/discover" => {
                    let found = json!({"resultType": "complete", "supportedVersions": ["2026-07-28"],
                        "capabilities": {"tools": {}}, "ttlMs": 0, "cacheScope": "private"});
                    pipes.answer(&request, found).await;
                }
                "tools/list" => {
                    assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
                    let listed = json!({"resultType": "complete", "tools": [tool("ask")], "ttlMs": 0, "cacheScope": "private"});
                    pipes.answer(&request, listed).await;
                }
                "tools/call" if request["params"]["requestState"].is_null() => {
                    let asked = json!({"resultType": "input_required", "requestState": "s1",
                        "inputRequests": {"roots": {"method": "roots/list"}}});
                    pipes.answer(&request, asked).await;
                }
                "tools/call" => {
                    let said = format!("{} {}", request["params"]["requestState"], request["params"]["inputResponses"]["roots"]);
                    pipes.answer(&request, text(&said)).await;
                }
                other => panic!("{other}"),
            }
        }
    });
    let result = call(&servers, "ask").await.unwrap();
    assert_eq!(result.content, [RemoteContent::Text(r#""s1" {"roots":[]}"#.to_owned())]);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_exits_on_an_unknown_request_is_initialized_the_older_way() {
    let servers = servers(|mut pipes| async move {
        if pipes.before == 0 {
            return;
        }
        if let Some(request) = pipes.until_call(&[tool("add")]).await {
            pipes.answer(&request, text("3")).await;
        }
    });
    assert!(call(&servers, "add").await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn resources_and_prompts_are_listed_and_read() {
    let servers = servers(|mut pipes| async move {
        while let Some(request) = pipes.next().await {
            match request["method"].as_str().unwrap_or_default() {
                "server/discover" => pipes.refuse(&request, -32601).await,
                "initialize" => pipes.answer(&request, welcome(&request)).await,
                "tools/list" => pipes.answer(&request, json!({"tools": []})).await,
                "resources/list" if request["params"]["cursor"].is_null() => {
                    let page = json!({"resources": [{"uri": "a:1", "name": "one"}], "nextCursor": "more"});
                    pipes.answer(&request, page).await;
                }
                "resources/list" => pipes.answer(&request, json!({"resources": [{"uri": "a:2", "name": "two"}]})).await,
                "resources/templates/list" => pipes.refuse(&request, -32601).await,
                "resources/read" => {
                    let uri = &request["params"]["uri"];
                    pipes.answer(&request, json!({"contents": [{"uri": uri, "text": "content"}]})).await;
                }
                "prompts/list" => {
                    let listed = json!({"prompts": [{"name": "p", "arguments": [{"name": "x", "required": true}]}]});
                    pipes.answer(&request, listed).await;
                }
                "prompts/get" => {
                    let said = format!("say {}", request["params"]["arguments"]["x"]);
                    pipes
                        .answer(&request, json!({"messages": [{"role": "user", "content": {"type": "text", "text": said}}]}))
                        .await;
                }
                _ => {}
            }
        }
    });
    assert_eq!(servers.resources(None).await.unwrap(), []);
    let found = servers.resources(Some("one")).await.unwrap();
    assert_eq!(found.iter().map(|resource| &*resource.uri).collect::<Vec<_>>(), ["a:1", "a:2"]);
    let read = servers.read_resource("one", "a:2").await.unwrap();
    assert_eq!(read.content, [RemoteContent::Resource { uri: "a:2".to_owned(), media_type: None, text: "content".to_owned() }]);
    assert_eq!(servers.prompts().await[0].arguments, [("x".to_owned(), true)]);
    let arguments = json!({"x": "this"}).as_object().unwrap().clone();
    assert_eq!(servers.prompt("one", "p", arguments).await.unwrap(), "say \"this\"");
}

#[tokio::test(start_paused = true)]
async fn disabling_a_server_lets_running_calls_finish_and_enabling_one_lists_its_tools() {
    let (asked, mut heard) = mpsc::unbounded_channel();
    let (go, gone_on) = tokio::sync::watch::channel(false);
    let servers = servers(move |mut pipes| {
        let (asked, mut gone_on) = (asked.clone(), gone_on.clone());
        async move {
            let Some(request) = pipes.until_call(&[tool("add")]).await else { return };
            let _ = asked.send(());
            let _ = gone_on.wait_for(|goes_on| *goes_on).await;
            pipes.answer(&request, text("3")).await;
            while pipes.next().await.is_some() {}
            let _ = asked.send(());
        }
    });
    let off = |_: &str| Some("the policy lists none of its tools".to_owned());
    servers.disable_unlisted(&off);
    servers.discover();
    assert!(matches!(status(&servers).state, ServerState::Off { .. }), "nobody starts it");
    servers.disable_unlisted(&|_| None);
    let tool = offered(&servers, "add").await;
    let running = {
        let (servers, call) = (servers.clone(), a_call(&tool));
        tokio::spawn(async move { servers.call(call, context().0).await })
    };
    heard.recv().await.unwrap();
    servers.disable_unlisted(&off);
    assert!(servers.tools().is_empty() && matches!(status(&servers).state, ServerState::Off { .. }));
    let refused = servers.call(a_call(&tool), context().0).await.unwrap_err();
    assert!(refused.to_string().contains("is off: the policy lists none"), "{refused}");
    go.send_replace(true);
    assert_eq!(running.await.unwrap().unwrap().content, [RemoteContent::Text("3".to_owned())]);
    heard.recv().await.unwrap();
    // The tools are known, so the server need not be queried again.
    servers.disable_unlisted(&|_| None);
    assert_eq!(servers.tools().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_project_server_that_changed_since_its_approval_is_off_and_does_not_start() {
    struct Yes(std::sync::Mutex<bool>);
    impl ServerVerifier for Yes {
        fn verify(&self, _: &Spec) -> BoxFuture<'_, Result<(), String>> {
            let holds = *self.0.lock().unwrap();
            Box::pin(std::future::ready(if holds { Ok(()) } else { Err("`run.sh` changed since your yes".to_owned()) }))
        }
    }
    let launcher = scripted(|mut pipes: Pipes| async move {
        while let Some(request) = pipes.until_call(&[tool("add")]).await {
            pipes.answer(&request, text("3")).await;
        }
    });
    let yes = Arc::new(Yes(std::sync::Mutex::new(true)));
    let wires = McpDeps {
        launcher: Some(Arc::clone(&launcher) as Arc<dyn Launcher>),
        approval: Some(Arc::clone(&yes) as Arc<dyn ServerVerifier>),
        ..McpDeps::default()
    };
    let servers = Servers::new(vec![Spec { of_project: true, ..spec("one") }], wires);
    let tool = offered(&servers, "add").await;
    *yes.0.lock().unwrap() = false;
    let mut changed = servers.changed();
    servers.reconnect("one");
    while !matches!(status(&servers).state, ServerState::Off { .. }) {
        changed.changed().await.unwrap();
    }
    let refused = servers.call(a_call(&tool), context().0).await.unwrap_err();
    assert!(refused.to_string().contains("is off: `run.sh` changed since your yes"), "{refused}");
    assert_eq!((launcher.started.load(Ordering::SeqCst), servers.tools().len()), (1, 0));
    *yes.0.lock().unwrap() = true;
    servers.reconnect("one");
    while status(&servers).state != ServerState::Ready {
        changed.changed().await.unwrap();
    }
    assert!(servers.call(a_call(&tool), context().0).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_changed_entry_is_a_new_server_and_the_others_are_kept() {
    let launcher = scripted(|mut pipes: Pipes| async move {
        while let Some(request) = pipes.until_call(&[tool("add")]).await {
            pipes.answer(&request, text("3")).await;
        }
    });
    let wires = McpDeps { launcher: Some(Arc::clone(&launcher) as Arc<dyn Launcher>), ..McpDeps::default() };
    let servers = Servers::new(vec![spec("one"), spec("two")], wires);
    let is_ready = |servers: &Servers| servers.statuses().iter().all(|status| status.state == ServerState::Ready);
    let mut bell = servers.changed();
    servers.discover();
    while !is_ready(&servers) {
        bell.changed().await.unwrap();
    }
    assert_eq!(launcher.started.load(Ordering::SeqCst), 2);
    assert_eq!(servers.replace(vec![spec("one"), spec("two")]), []);
    let tool = servers.tools()[0].clone();
    let other = Spec { call_timeout: Duration::from_secs(7), ..spec("two") };
    let changes = servers.replace(vec![spec("one"), other, spec("three")]);
    assert_eq!(changes, [("two".to_owned(), ServerChange::Changed), ("three".to_owned(), ServerChange::Added)]);
    let states: Vec<_> = servers.statuses().into_iter().map(|status| (status.name, status.state)).collect();
    let asleep = |name: &str| (name.to_owned(), ServerState::Asleep);
    assert_eq!(states, [("one".to_owned(), ServerState::Ready), asleep("two"), asleep("three")]);
    assert!(servers.call(a_call(&tool), context().0).await.is_ok());
    assert_eq!(launcher.started.load(Ordering::SeqCst), 2, "the one that stayed was not started again");
    assert_eq!(servers.replace(vec![spec("three")]).len(), 2);
    assert!(matches!(servers.call(a_call(&tool), context().0).await, Err(RemoteError::Unknown { .. })));
    let off = Spec { off: Some("not trusted".to_owned()), ..spec("three") };
    servers.replace(vec![off]);
    servers.discover();
    assert_eq!(status(&servers).state, ServerState::Off { why: "not trusted".to_owned() });
    assert_eq!(launcher.started.load(Ordering::SeqCst), 2, "what is off is not started");
}
