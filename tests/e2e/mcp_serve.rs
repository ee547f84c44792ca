//! `aye mcp serve`: tools for another agent, called by a client that implements only the protocol.

use crate::support::{Project, Rpc, texts};
use serde_json::{Value, json};

/// Creates a project without a keyring.
fn project() -> Project {
    Project::empty().env("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nonexistent/bus")
}

fn serve(project: &Project, flags: &[&str]) -> Rpc {
    Rpc::start_with(project, &[&["mcp", "serve"], flags].concat())
}

/// Connects a client with these capabilities.
fn client(project: &Project, flags: &[&str], capabilities: Value) -> Rpc {
    let mut client = serve(project, flags);
    let hello =
        json!({"protocolVersion": "2025-06-18", "capabilities": capabilities, "clientInfo": {"name": "test", "version": "1"}});
    let told = client.call("initialize", hello);
    assert_eq!((&told["serverInfo"]["name"], &told["protocolVersion"]), (&json!("aye"), &json!("2025-06-18")), "{told}");
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    client
}

fn asks_its_person() -> Value {
    json!({"elicitation": {}})
}

#[track_caller]
fn call(client: &mut Rpc, tool: &str, arguments: Value) -> Value {
    client.call("tools/call", json!({"name": tool, "arguments": arguments}))
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_default()
}

#[track_caller]
fn refused(result: &Value, code: &str) -> String {
    assert_eq!(result["isError"], true, "{result}");
    assert!(text(result).starts_with(&format!("{code}: ")), "{result}");
    text(result).to_owned()
}

/// Reads the next approval request to the client. Returns its ID and its parameters.
#[track_caller]
fn question(client: &mut Rpc) -> (Value, Value) {
    let asked = client.until(|message| message["method"] == "elicitation/create");
    (asked["id"].clone(), asked["params"].clone())
}

fn edit() -> Value {
    json!({"path": "a.txt", "edits": [{"oldText": "two", "newText": "2"}]})
}

#[test]
fn clients_get_a_list_of_tools_with_their_annotations() {
    let project = project();
    let mut client = client(&project, &[], json!({}));
    assert_eq!(client.call("ping", json!({})), json!({}));
    let tools = client.call("tools/list", json!({}))["tools"].clone();
    let tool = |name: &str| tools.as_array().unwrap().iter().find(|tool| tool["name"] == name);
    for (name, reads, destructive) in [("ReadFile", true, false), ("WriteFile", false, true), ("AppendFile", false, false)] {
        let tool = tool(name).unwrap();
        assert_eq!(tool["inputSchema"]["type"], "object", "{tool}");
        assert!(tool["description"].as_str().is_some_and(|text| !text.is_empty()), "{tool}");
        let hints = &tool["annotations"];
        assert_eq!((&hints["readOnlyHint"], &hints["destructiveHint"]), (&json!(reads), &json!(destructive)), "{tool}");
    }
    assert_eq!(tool("RunCommand").unwrap()["annotations"]["openWorldHint"], true);
    for name in ["UploadArtifact", "FindTools"] {
        assert!(tool(name).is_none(), "{name} is for a session");
    }
    for name in ["LaunchRocket", "bash", "UploadArtifact"] {
        assert_eq!(client.fails("tools/call", json!({"name": name, "arguments": {}})), -32602, "{name}");
    }
    assert_eq!(client.fails("tools/call", json!({"arguments": {}})), -32602);
    assert_eq!(client.fails("tools/list", json!({"cursor": "2"})), -32602);
    assert_eq!(client.fails("tools/forget", json!({})), -32601);
    assert_eq!(client.leave(), 0);
}

#[test]
fn allowed_calls_run_denied_calls_name_their_rule_and_both_are_logged() {
    let project = project().file("a.txt", "alpha\nbeta\n").allowing_everything();
    let mut client = client(&project, &[], json!({}));
    let read = call(&mut client, "ReadFile", json!({"path": "a.txt"}));
    assert!(text(&read).contains("beta") && read["isError"] != true, "{read}");
    call(&mut client, "WriteFile", json!({"path": "b.txt", "content": "new\n"}));
    assert_eq!(project.read("b.txt"), "new\n");
    let outside = project.directory("home").join("out.txt").display().to_string();
    let denied = call(&mut client, "WriteFile", json!({"path": outside, "content": "x"}));
    assert!(refused(&denied, "POLICY_DENIED").contains("(rule: "), "{denied}");
    let wrong = call(&mut client, "ReadFile", json!({"path": 7, "pages": "x"}));
    refused(&wrong, "INVALID_REQUEST");
    refused(&call(&mut client, "ReadFile", json!({"path": "none.txt"})), "FILE_NOT_FOUND");
    assert_eq!(client.leave(), 0);
    let log = project.aye(&["policy", "log", "--json"]).exits(0).stdout;
    assert!(log.contains("\"allow\"") && log.contains("b.txt") && log.contains("\"deny\"") && log.contains("out.txt"), "{log}");
}

#[test]
fn tools_not_granted_by_the_policy_are_not_offered_and_denied_if_called() {
    let project = project().file("p.toml", "schema_version = 1\n[capabilities.\"File.Read\"]\n");
    let mut client = client(&project, &["--policy", "p.toml"], json!({}));
    let tools = client.call("tools/list", json!({}))["tools"].to_string();
    assert!(tools.contains("\"ReadFile\"") && !tools.contains("\"RunCommand\""), "{tools}");
    refused(&call(&mut client, "RunCommand", json!({"command": "touch hurt"})), "POLICY_DENIED");
    assert!(!project.exists("hurt"));
}

#[test]
fn without_an_approver_calls_are_denied_with_the_policy_that_would_allow_them() {
    let project = project().file("a.txt", "one\ntwo\n");
    // Without `--ask client`, a client that supports elicitation gets no approval request, because it might answer
    // without the user.
    for (flags, capabilities, said) in [
        (&[][..], asks_its_person(), "--ask client"),
        (&["--ask", "client"], json!({}), "elicitation"),
        (&["--ask", "client"], json!({"elicitation": {"url": {}}}), "elicitation"),
    ] {
        let mut client = client(&project, flags, capabilities);
        let denied = refused(&call(&mut client, "EditFile", edit()), "NO_APPROVER");
        assert!(denied.contains(said) && denied.contains("[capabilities.\"File.Write\"]"), "{denied}");
        assert_eq!(project.read("a.txt"), "one\ntwo\n");
        assert!(client.seen.iter().all(|message| message["method"] != "elicitation/create"));
    }
}

#[test]
fn only_an_accepted_yes_from_the_client_user_approves_a_call() {
    let project = project().file("a.txt", "one\ntwo\n");
    let mut client = client(&project, &["--ask", "client"], asks_its_person());
    for answer in [
        json!({"result": {"action": "decline"}}),
        json!({"result": {"action": "cancel"}}),
        json!({"result": {"action": "accept"}}),
        json!({"result": {"action": "accept", "content": {"allow": "no"}}}),
        json!({"result": {"action": "accept", "content": {"allow": "yes please"}}}),
        json!({"result": {"yes": true}}),
        json!({"error": {"code": -1, "message": "not here"}}),
    ] {
        let id = client.ask("tools/call", json!({"name": "EditFile", "arguments": edit()}));
        let (number, asked) = question(&mut client);
        let words = asked["message"].as_str().unwrap();
        assert!(words.contains("a.txt") && words.contains("-two") && words.contains("+2") && words.contains("rule: "), "{words}");
        assert_eq!(asked["requestedSchema"]["properties"]["allow"]["enum"], json!(["no", "yes"]), "{asked}");
        let mut message = json!({"jsonrpc": "2.0", "id": number});
        message.as_object_mut().unwrap().extend(answer.as_object().unwrap().clone());
        client.send(&message);
        refused(&client.answer(id)["result"], "USER_DENIED");
        assert_eq!(project.read("a.txt"), "one\ntwo\n", "{answer}");
    }
    let id = client.ask("tools/call", json!({"name": "EditFile", "arguments": edit()}));
    let (number, _) = question(&mut client);
    client.send(&json!({"jsonrpc": "2.0", "id": number, "result": {"action": "accept", "content": {"allow": "yes"}}}));
    assert_ne!(client.answer(id)["result"]["isError"], true);
    assert_eq!(project.read("a.txt"), "one\n2\n");
    assert_eq!(client.leave(), 0);
    let log = project.aye(&["policy", "log", "--json"]).exits(0).stdout;
    assert!(log.contains("the client's user"), "{log}");
}

#[test]
fn approving_an_outdated_edit_is_a_conflict_and_changes_nothing() {
    let project = project().file("a.txt", "one\ntwo\n");
    let mut client = client(&project, &["--ask", "client"], asks_its_person());
    let id = client.ask("tools/call", json!({"name": "EditFile", "arguments": edit()}));
    let (number, _) = question(&mut client);
    std::fs::write(project.path("a.txt"), "zero\ntwo\n").unwrap();
    client.send(&json!({"jsonrpc": "2.0", "id": number, "result": {"action": "accept", "content": {"allow": "yes"}}}));
    refused(&client.answer(id)["result"], "CONFLICT");
    assert_eq!(project.read("a.txt"), "zero\ntwo\n");
}

#[test]
fn without_a_handshake_the_approval_is_sent_with_a_repeated_call() {
    let project = project().file("a.txt", "one\ntwo\n");
    let mut client = serve(&project, &["--ask", "client"]);
    let with = |more: Value| {
        let mut params = json!({"_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
        }});
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        params
    };
    let found = client.call("server/discover", with(json!({})));
    assert!(found["supportedVersions"].to_string().contains("2026-07-28"), "{found}");
    let first = with(json!({"name": "EditFile", "arguments": edit()}));
    let asked = client.call("tools/call", first.clone());
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let form = &asked["inputRequests"]["approval"];
    assert!(form["params"]["message"].as_str().unwrap().contains("-two"), "{asked}");
    let answered = |edit: Value, allow: &str, state: &Value| {
        with(json!({
            "name": "EditFile", "arguments": edit, "requestState": state,
            "inputResponses": {"approval": {"action": "accept", "content": {"allow": allow}}},
        }))
    };
    let other = json!({"path": "a.txt", "edits": [{"oldText": "one", "newText": "1"}]});
    assert_eq!(client.fails("tools/call", answered(other, "yes", &asked["requestState"])), -32602, "another call");
    assert_eq!(client.fails("tools/call", answered(edit(), "yes", &json!("made-up"))), -32602);
    refused(&client.call("tools/call", answered(edit(), "no", &asked["requestState"])), "USER_DENIED");
    assert_eq!(client.fails("tools/call", answered(edit(), "yes", &asked["requestState"])), -32602, "it was answered");
    assert_eq!(project.read("a.txt"), "one\ntwo\n");
    let asked = client.call("tools/call", first);
    let done = client.call("tools/call", answered(edit(), "yes", &asked["requestState"]));
    assert_ne!(done["isError"], true, "{done}");
    assert_eq!(project.read("a.txt"), "one\n2\n");
    assert_eq!(client.leave(), 0);
}

#[test]
fn images_are_returned_as_content_and_json_output_as_structured_content() {
    let manifest = "name = \"weigh\"\ndescription = \"Weighs it.\"\ncommand = [\"./weigh.sh\"]\noutput = \"json\"\neffects = \"reads\"\n\
        [input_schema]\ntype = \"object\"\n[output_schema]\ntype = \"object\"\nrequired = [\"grams\"]\n\
        properties = { grams = { type = \"integer\" } }\n";
    let policy = "schema_version = 1\n[capabilities.\"File.Read\"]\n[capabilities.\"Shell.Exec\"]\nsandbox = \"workspace-write\"\n\
        [[capabilities.\"Tool.Custom\".rules]]\ntools = [\"weigh\"]\ndecision = \"allow\"\n";
    let project = project().policy(policy).bytes("a.png", include_bytes!("../../docs/demo.png"));
    let tools = project.directory("config").join("tools");
    std::fs::create_dir(&tools).unwrap();
    std::fs::write(tools.join("weigh.toml"), manifest).unwrap();
    std::fs::write(tools.join("weigh.sh"), "#!/bin/sh\necho '{\"grams\": 7}'\n").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(tools.join("weigh.sh"), mode).unwrap();
    let mut client = client(&project, &[], json!({}));
    let listed = client.call("tools/list", json!({}))["tools"].clone();
    let weigh = listed.as_array().unwrap().iter().find(|tool| tool["name"] == "weigh").unwrap();
    assert_eq!((&weigh["outputSchema"]["required"], &weigh["annotations"]["readOnlyHint"]), (&json!(["grams"]), &json!(true)));
    let weighed = call(&mut client, "weigh", json!({}));
    assert_eq!(weighed["structuredContent"], json!({"grams": 7}), "{weighed}");
    let seen = call(&mut client, "ReadFile", json!({"path": "a.png"}));
    let picture = seen["content"].as_array().unwrap().iter().find(|part| part["type"] == "image").unwrap();
    assert_eq!(picture["mimeType"], "image/png");
    assert!(picture["data"].as_str().unwrap().starts_with("iVBOR"), "PNG in base64");
}

#[test]
fn files_of_an_untrusted_project_are_ignored_with_a_notice() {
    let manifest = "name = \"evil\"\ndescription = \"x\"\ncommand = [\"sh\"]\n[input_schema]\ntype = \"object\"\n";
    let project = project().file(".aye/tools/evil.toml", manifest);
    let mut client = client(&project, &[], json!({}));
    let tools = client.call("tools/list", json!({}))["tools"].to_string();
    assert!(!tools.contains("evil"), "{tools}");
    client.hang_up();
    assert_eq!(client.next(), None);
    assert!(client.stderr().contains(texts::NOT_TRUSTED), "{}", client.stderr());
}

#[test]
fn nested_aye_processes_cannot_serve_tools() {
    let inside = project().env("AYE", "1");
    inside.aye(&["mcp", "serve"]).exits(2).says(&["aye mcp serve", "AYE=1"]);
    inside.aye(&["mcp", "serve", "--ask", "client"]).exits(2).says(&["AYE=1"]);
}

#[test]
fn aye_can_connect_to_its_own_server() {
    let project = project().allowing_everything();
    let program = env!("CARGO_BIN_EXE_aye");
    // `AYE=0` declares that the user, and not a command of a model, starts the server.
    project.aye(&["mcp", "add", "me", "--env", "AYE=0", "--", program, "mcp", "serve"]).exits(0);
    let tested = project.aye(&["mcp", "test", "me"]).exits(0).stdout;
    for words in ["is reachable and offers", "ReadFile  ", "next: run `aye mcp allow me`"] {
        assert!(tested.contains(words), "{words}: {tested}");
    }
    project.aye(&["mcp", "add", "bare", "--", program, "mcp", "serve"]).exits(0);
    project.aye(&["mcp", "test", "bare"]).exits(1);
}
