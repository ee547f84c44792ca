//! The session service: a stand-in that knows only the protocol registers, resumes and ends sessions, and fails in
//! every way.

use crate::support::service::{Call, Response, Service, closed_port};
use crate::support::{Answer, Output, Project, Rpc, Server, TIMEOUT, wait_until};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

const LATER: &str = "2099-01-01T00:00:00Z";

/// A policy bundle for a session with these capabilities besides requests to a model.
fn bundle(session: &str, capabilities: &Value) -> Value {
    let mut all = json!([{"name": "LLM.Call"}, {"name": "File.Read"}]);
    all.as_array_mut().unwrap().extend(capabilities.as_array().unwrap().iter().cloned());
    json!({
        "schemaVersion": "1.0", "policyBundleVersion": "2026-02-21.1", "sessionId": session, "tenantId": "tenant_abc",
        "userId": "user_123", "expiresAt": LATER, "capabilities": all, "llmPolicy": {"allowedModels": ["*"]}, "approvalRules": [],
    })
}

fn writing() -> Value {
    json!([{"name": "File.Write", "requiresApproval": false}])
}

/// The response to a handshake.
fn accepted(session: &str, capabilities: &Value) -> Value {
    json!({
        "sessionId": session, "workspaceId": "ws_456", "compatibilityStatus": "compatible",
        "policyBundle": bundle(session, capabilities), "featureFlags": {"betaPanel": true},
    })
}

fn ok(body: &Value) -> Response {
    Response { body: body.to_string().into_bytes(), ..Response::status(200) }
}

/// A service that accepts every session with these capabilities, and numbers them.
fn service(capabilities: Value) -> Service {
    let count = Mutex::new(0);
    Service::new(move |call| match call.path.as_str() {
        "/v1/sessions" => {
            let mut count = count.lock().unwrap();
            *count += 1;
            ok(&accepted(&format!("sess_{count}"), &capabilities))
        }
        path if path.ends_with("/resume") => ok(&accepted(path.split('/').nth(3).unwrap(), &capabilities)),
        path if path.ends_with("/cancel") => ok(&json!({})),
        _ => Response::status(400),
    })
}

/// A model that writes a file, once for each prompt.
fn model() -> Server {
    Server::with_responder(|request| {
        let (prompts, calls) = (request.messages().matches("write it").count(), request.tool_results().len());
        if calls < prompts {
            Answer::call(&format!("call_{calls}"), "WriteFile", json!({"path": "new.txt", "content": "new\n"}))
        } else {
            Answer::text("Done.")
        }
    })
}

fn project(server: &Server, url: &str, more: &str) -> Project {
    let config = format!("[services.sessions]\nurl = \"{url}/v1\"\ntoken = \"env:AYE_TEST_TOKEN\"\n{more}\n");
    Project::with(server).env("AYE_TEST_TOKEN", "token-of-the-user").config(&config).allowing_everything()
}

/// Runs a task that writes a file, and checks whether the file was written.
#[track_caller]
fn writes(project: &Project, expected: bool) -> Output {
    let _ = std::fs::remove_file(project.path("new.txt"));
    let output = project.aye(&["exec", "write it"]);
    assert_eq!(project.exists("new.txt"), expected, "{output:?}");
    output
}

fn paths(service: &Service) -> Vec<String> {
    service.calls().into_iter().map(|call| call.path).collect()
}

#[test]
fn a_session_is_registered_before_its_first_request_and_ended_after_its_last() {
    let (service, server) = (service(writing()), model());
    let project = project(&server, &service.url(), "");
    writes(&project, true);
    project.aye(&["sync"]).exits(0);
    let calls = service.calls();
    assert_eq!(paths(&service), ["/v1/sessions", "/v1/sessions/sess_1/cancel"]);
    let body = calls[0].json();
    assert_eq!(calls[0].header("authorization"), "Bearer token-of-the-user");
    assert_eq!(
        [&body["clientInfo"]["name"], &body["workspaceHint"]],
        ["aye", project.path("").to_str().unwrap().trim_end_matches('/')]
    );
    assert!(body["clientInfo"]["version"].is_string(), "{body}");
    let capabilities = body["supportedCapabilities"].as_array().unwrap();
    assert!(["File.Read", "Shell.Exec", "LLM.Call"].iter().all(|name| capabilities.contains(&json!(name))), "{body}");
    assert_eq!(calls[1].json(), json!({"reason": "session_completed"}));
    assert!(!server.request(0).body.to_string().contains("token-of-the-user"));
    let doctor = project.aye(&["doctor"]).stdout;
    assert!(doctor.contains("session service") && doctor.contains("all records are delivered"), "{doctor}");
}

#[test]
fn a_policy_from_the_service_tightens_and_never_loosens_permissions() {
    let server = model();
    // A capability that the bundle does not list is not granted.
    let strict = service(json!([]));
    let denied = writes(&project(&server, &strict.url(), ""), false);
    assert_eq!(denied.code, 3, "{denied:?}");
    // One that it grants is still judged by the policy of the user.
    let loose = service(writing());
    let own = project(&server, &loose.url(), "").policy("schema_version = 1\n[capabilities.\"File.Read\"]\n");
    writes(&own, false);
    let shell = json!([{"name": "File.Write"}, {"name": "Shell.Exec", "sandbox": "off"}]);
    let told = writes(&project(&server, &service(shell).url(), ""), true);
    assert!(told.stderr.contains("can only add restrictions; ignored `sandbox"), "{}", told.stderr);
}

#[test]
fn an_earlier_session_is_resumed_with_its_last_step_and_registered_again_if_it_has_ended() {
    let (service, server) = (service(writing()), model());
    let project = project(&server, &service.url(), "");
    writes(&project, true);
    project.aye(&["exec", "-c", "and then?"]).exits(0);
    let calls = service.calls();
    let resumed = calls.iter().find(|call| call.path == "/v1/sessions/sess_1/resume").expect("a resume");
    let body = resumed.json();
    assert!(body["checkpointCursor"].as_str().is_some_and(|cursor| !cursor.is_empty()), "{body}");
    assert_eq!(body["policyBundleVersion"], "2026-02-21.1");
    for status in [404, 409, 410] {
        let ended = Response { body: json!({"message": "gone"}).to_string().into(), ..Response::status(status) };
        let gone = Service::new(move |call| match call.path.as_str() {
            "/v1/sessions" => ok(&accepted("sess_again", &writing())),
            path if path.ends_with("/resume") => ended.clone(),
            _ => ok(&json!({})),
        });
        let config = format!("[services.sessions]\nurl = \"{}/v1\"\n", gone.url());
        let project = Project::with(&server).config(&config).allowing_everything();
        writes(&project, true);
        let output = project.aye(&["exec", "-c", "and then?"]).exits(0);
        assert!(output.stderr.contains("ended session `sess_again`"), "{status}: {}", output.stderr);
        let asked = paths(&gone);
        assert_eq!(asked.iter().filter(|path| *path == "/v1/sessions").count(), 2, "{status}: {asked:?}");
    }
}

#[test]
fn a_killed_session_is_not_ended_and_resumes() {
    let service = service(writing());
    let server = Server::new([Answer::text("Working.").then_stalled(), Answer::text("Done.")]);
    let project = project(&server, &service.url(), "");
    let running = project.start(&["exec", "wait"]);
    assert!(wait_until(TIMEOUT, || !server.requests().is_empty()));
    running.kill();
    assert_eq!(paths(&service), ["/v1/sessions"]);
    project.aye(&["exec", "-c", "go on"]).exits(0);
    assert_eq!(paths(&service)[1], "/v1/sessions/sess_1/resume");
}

/// A response to a handshake, with one change.
fn changed(change: impl Fn(&mut Value) + Send + Sync + 'static) -> Box<dyn Fn(&Call) -> Response + Send + Sync> {
    Box::new(move |_| {
        let mut body = accepted("sess_1", &writing());
        change(&mut body);
        ok(&body)
    })
}

type Mind = Box<dyn Fn(&Call) -> Response + Send + Sync>;

/// Every complete response that does not permit the session, with its exit code and part of its message.
fn refusals() -> Vec<(&'static str, Mind, i32, &'static str)> {
    let status = |status: u16, body: &'static str| -> Mind {
        Box::new(move |_| Response { body: body.as_bytes().to_vec(), ..Response::status(status) })
    };
    vec![
        (
            "incompatible",
            changed(|body| body["compatibilityStatus"] = json!("incompatible")),
            1,
            "is incompatible with the service",
        ),
        (
            "expired",
            changed(|body| body["policyBundle"]["expiresAt"] = json!("2020-01-01T00:00:00Z")),
            1,
            "expired at 2020-01-01",
        ),
        ("another session", changed(|body| body["policyBundle"]["sessionId"] = json!("sess_2")), 1, "is for session `sess_2`"),
        ("another schema", changed(|body| body["policyBundle"]["schemaVersion"] = json!("9.0")), 1, "schemaVersion `9.0`"),
        ("an unknown limit", changed(|body| body["policyBundle"]["onlyAtNight"] = json!(true)), 1, "does not know `onlyAtNight`"),
        ("no bundle", changed(|body| drop(body.as_object_mut().unwrap().remove("policyBundle"))), 1, "no `policyBundle`"),
        ("no ID", changed(|body| drop(body.as_object_mut().unwrap().remove("sessionId"))), 1, "no `sessionId`"),
        ("a wrong type", changed(|body| body["sessionId"] = json!({"id": 1})), 1, "`sessionId` is not a string"),
        ("a path as ID", changed(|body| body["sessionId"] = json!("../../admin")), 1, "not a session ID"),
        ("flags as text", changed(|body| body["featureFlags"] = json!("all")), 1, "`featureFlags` is not an object"),
        ("a web page", status(200, "<html>"), 1, "not JSON"),
        ("a refused tenant", status(403, "{\"message\": \"tenant \\u001b[31m abc is suspended\"}"), 1, "abc is suspended"),
        ("a rejected token", status(401, "{}"), 5, "services.sessions.token"),
        ("a redirect", status(307, ""), 1, "307"),
        ("an unknown request", status(400, "{\"error\": {\"message\": \"bad workspaceHint\"}}"), 1, "bad workspaceHint"),
    ]
}

#[test]
fn no_session_starts_if_the_service_refuses_it() {
    for (name, mind, code, why) in refusals() {
        let (service, server) = (Service::new(mind), model());
        let output = writes(&project(&server, &service.url(), ""), false);
        assert_eq!(output.code, code, "{name}: {output:?}");
        assert!(output.stderr.contains(why) && output.stderr.contains("hint:"), "{name}: {}", output.stderr);
        assert!(!output.stderr.contains("token-of-the-user") && !output.stderr.contains('\u{1b}'), "{name}");
        assert_eq!(server.requests().len(), 0, "{name}: nothing is sent to the model");
        assert_eq!(paths(&service), ["/v1/sessions"], "{name}: asked once");
    }
    let server = model();
    let config = "[services.sessions]\nurl = \"http://127.0.0.1:9\"\ntoken = \"env:AYE_TEST_UNSET\"\n";
    let unset = Project::with(&server).config(config).allowing_everything().aye(&["exec", "write it"]).exits(5);
    assert!(unset.stderr.contains("`AYE_TEST_UNSET`, which must contain the secret, is not set"), "{}", unset.stderr);
}

#[test]
fn without_a_complete_response_a_session_is_not_registered_and_starts_unless_required() {
    let down: Vec<(&str, Mind, &str)> = vec![
        ("an error", Box::new(|_| Response::status(503)), "503"),
        ("too many", Box::new(|_| Response::status(429)), "429"),
        ("half a response", Box::new(|_| Response { is_cut: true, ..ok(&accepted("sess_1", &writing())) }), ""),
    ];
    for (name, mind, why) in down {
        let (service, server) = (Service::new(mind), model());
        let alone = writes(&project(&server, &service.url(), ""), true);
        assert!(alone.stderr.contains("not registered") && alone.stderr.contains(why), "{name}: {}", alone.stderr);
        assert_eq!(service.calls().len(), 3, "{name}: a few attempts");
        let keys: Vec<String> = service.calls().iter().map(|call| call.header("idempotency-key").to_owned()).collect();
        assert!(!keys[0].is_empty() && keys.iter().all(|key| *key == keys[0]), "{name}: {keys:?}");
        let required = writes(&project(&server, &service.url(), "required = true"), false);
        assert!(required.code == 1 && required.stderr.contains("services.sessions.required"), "{name}: {required:?}");
    }
    let server = model();
    let url = format!("http://127.0.0.1:{}", closed_port());
    let alone = writes(&project(&server, &url, ""), true);
    assert!(alone.stderr.contains("Connection refused"), "{}", alone.stderr);
    assert_eq!(writes(&project(&server, &url, "required = true"), false).code, 1);
}

#[test]
fn a_slow_service_delays_the_start_by_only_a_few_seconds() {
    let held = std::net::TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0)).unwrap();
    let url = format!("http://{}", held.local_addr().unwrap());
    let server = model();
    let alone = writes(&project(&server, &url, ""), true);
    assert!(alone.stderr.contains("not registered"), "{}", alone.stderr);
}

#[test]
fn a_session_that_the_service_knows_keeps_its_policy_while_the_service_is_down() {
    let is_down = Arc::new(Mutex::new(false));
    let down = is_down.clone();
    let service = Service::new(move |call| match (*down.lock().unwrap(), call.path.as_str()) {
        (true, _) => Response::status(500),
        (false, "/v1/sessions") => ok(&accepted("sess_1", &json!([]))),
        _ => ok(&json!({})),
    });
    let server = model();
    let project = project(&server, &service.url(), "");
    writes(&project, false);
    *is_down.lock().unwrap() = true;
    let output = project.aye(&["exec", "-c", "write it"]);
    assert!(!project.exists("new.txt"), "the last policy still denies it: {output:?}");
    assert!(output.stderr.contains("its last policy for this session stays in effect"), "{}", output.stderr);
    // The end of the session waits in the outbox.
    let waiting = project.aye(&["sync"]).exits(1).stdout;
    assert!(waiting.contains("sessions: 0 records delivered") && waiting.contains("500"), "{waiting}");
    *is_down.lock().unwrap() = false;
    project.aye(&["sync"]).exits(0);
    assert!(paths(&service).iter().filter(|path| path.ends_with("/cancel")).count() >= 2, "{:?}", paths(&service));
}

#[test]
fn an_excessive_delay_ends_the_attempts() {
    let (service, server) = (Service::new(|_| Response::status(429).header("retry-after", &u64::MAX.to_string())), model());
    let alone = writes(&project(&server, &service.url(), ""), true);
    assert!(alone.stderr.contains("not registered") && alone.stderr.contains("429"), "{}", alone.stderr);
    assert_eq!(service.calls().len(), 1);
}

#[test]
fn a_session_whose_end_is_still_in_the_outbox_is_registered_again() {
    let count = Mutex::new(0);
    let service = Service::new(move |call| match call.path.as_str() {
        "/v1/sessions" => {
            let mut count = count.lock().unwrap();
            *count += 1;
            ok(&accepted(&format!("sess_{count}"), &writing()))
        }
        path if path.ends_with("/resume") => ok(&accepted(path.split('/').nth(3).unwrap(), &writing())),
        _ => Response::status(503),
    });
    let server = model();
    let project = project(&server, &service.url(), "");
    writes(&project, true);
    let output = project.aye(&["exec", "-c", "and then?"]).exits(0);
    assert!(output.stderr.contains("end of session `sess_1` yet; this session is registered as `sess_2`"), "{}", output.stderr);
    let asked = paths(&service);
    assert!(!asked.iter().any(|path| path.ends_with("/resume")), "{asked:?}");
    assert_eq!(asked.iter().filter(|path| *path == "/v1/sessions").count(), 2, "{asked:?}");
}

#[test]
fn an_end_that_the_service_rejects_is_not_sent_again() {
    let service = Service::new(|call| match call.path.as_str() {
        "/v1/sessions" => ok(&accepted("sess_1", &writing())),
        _ => Response::status(403),
    });
    let server = model();
    let project = project(&server, &service.url(), "");
    writes(&project, true);
    project.aye(&["sync"]).exits(0);
    let sent = paths(&service);
    assert!(sent.iter().any(|path| path.ends_with("/cancel")), "{sent:?}");
    project.aye(&["sync"]).exits(0);
    assert_eq!(paths(&service), sent);
}

#[test]
fn known_flags_switch_tools_off_and_unknown_ones_do_nothing() {
    let service = Service::new(|call| {
        let mut body = accepted("sess_1", &json!([{"name": "Network.Http"}]));
        body["featureFlags"] = json!({"httpRequests": false, "agents": true, "everythingAllowed": true});
        if call.path == "/v1/sessions" { ok(&body) } else { ok(&json!({})) }
    });
    let server = model();
    writes(&project(&server, &service.url(), ""), false);
    let tools = server.request(0).body["tools"].to_string();
    assert!(tools.contains("\"ReadFile\"") && !tools.contains("\"HttpRequest\""), "{tools}");
}

#[test]
fn audit_records_name_the_tenant_and_the_user() {
    let (service, server, collector) = (service(writing()), model(), Service::accepting());
    let project = project(&server, &service.url(), &format!("[services.audit]\nurl = \"{}\"\n", collector.url()))
        .env("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json");
    writes(&project, true);
    project.aye(&["sync"]).exits(0);
    let records: String = collector.calls().iter().map(|call| call.json().to_string()).collect();
    for part in ["aye.session.registered", "\"user.id\"", "user_123", "\"aye.tenant.id\"", "tenant_abc", "betaPanel"] {
        assert!(records.contains(part), "{part}: {records}");
    }
}

#[test]
fn serve_registers_each_session_and_reports_a_refusal() {
    let (service, server) = (service(writing()), model());
    let project = project(&server, &service.url(), "");
    let mut client = Rpc::start(&project, &[]);
    client.create(&project);
    client.call("StartTask", json!({"prompt": "write it"}));
    client.event("task_completed");
    assert!(project.exists("new.txt"));
    assert_eq!(client.leave(), 0);
    project.aye(&["sync"]);
    assert_eq!(paths(&service), ["/v1/sessions", "/v1/sessions/sess_1/cancel"]);
    let refusing = Service::new(|_| Response { body: b"{\"message\": \"no seat left\"}".to_vec(), ..Response::status(403) });
    let project = self::project(&server, &refusing.url(), "");
    let mut client = Rpc::start(&project, &[]);
    let id = client.ask("CreateSession", Rpc::hello(&project));
    let answer = client.answer(id);
    assert_eq!(answer["error"]["code"], -32603, "{answer}");
    assert!(answer["error"]["message"].as_str().unwrap().contains("no seat left"), "{answer}");
}

#[test]
fn a_project_cannot_name_the_service() {
    let (service, server) = (service(json!([])), model());
    let config = format!("[services.sessions]\nurl = \"{}\"\n", service.url());
    let project = Project::with(&server).allowing_everything().file(".aye/config.toml", &config);
    let output = project.aye(&["exec", "--trust", "write it"]).exits(0);
    assert!(output.stderr.contains("`services.sessions.url` is ignored"), "{}", output.stderr);
    assert!(service.calls().is_empty() && project.exists("new.txt"));
}
