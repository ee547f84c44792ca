//! Session service: a stand-in that implements only the protocol registers, resumes and ends sessions, and fails in
//! every way.

use crate::support::service::{Call, Response, Service, closed_port};
use crate::support::{Answer, Output, Project, Rpc, Server, TIMEOUT, wait_until};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

const LATER: &str = "2099-01-01T00:00:00Z";
/// Setting that offers all tools in the first request.
const ALL_TOOLS: &str = "[tools]\non_demand = false";

/// Returns a policy bundle for a session that allows requests to a model, reading files, and these capabilities.
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

/// Returns the response to a handshake.
fn accepted(session: &str, capabilities: &Value) -> Value {
    json!({
        "sessionId": session, "workspaceId": "ws_456", "compatibilityStatus": "compatible",
        "policyBundle": bundle(session, capabilities), "featureFlags": {"betaPanel": true},
    })
}

fn ok(body: &Value) -> Response {
    Response { body: body.to_string().into_bytes(), ..Response::status(200) }
}

/// Returns a service that numbers the sessions and accepts each of them with these capabilities.
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

/// Returns a model that writes a file once for each prompt.
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
    // The user's policy still evaluates a capability that the bundle grants.
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

/// Returns a responder that makes one change to the response to a handshake.
fn changed(change: impl Fn(&mut Value) + Send + Sync + 'static) -> Box<dyn Fn(&Call) -> Response + Send + Sync> {
    Box::new(move |_| {
        let mut body = accepted("sess_1", &writing());
        change(&mut body);
        ok(&body)
    })
}

type Mind = Box<dyn Fn(&Call) -> Response + Send + Sync>;

/// Returns every complete response that does not permit the session, with the exit code and a part of the message.
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
    // The record of the session's end waits in the outbox.
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

/// Creates a program that runs `script` and counts its runs. Returns the settings that use the program.
fn token_program(project: &Project, script: &str) -> String {
    let home = project.directory("home");
    let (program, runs) = (home.join("print-token"), home.join("runs"));
    std::fs::write(&program, format!("#!/bin/sh\necho run >> {}\n{script}\n", runs.display())).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    format!("token_command = [\"{}\"]\n", program.display())
}

fn runs(project: &Project) -> usize {
    std::fs::read_to_string(project.directory("home").join("runs")).unwrap_or_default().lines().count()
}

/// Returns a project whose token comes from a program.
fn with_token_program(server: &Server, url: &str, script: &str) -> Project {
    let project = Project::with(server).allowing_everything();
    let command = token_program(&project, script);
    project.config(&format!("[services.sessions]\nurl = \"{url}/v1\"\n{command}"))
}

#[test]
fn a_program_prints_the_token_and_runs_again_when_the_service_rejects_it() {
    let service = Service::new(|call| match (call.header("authorization"), call.path.as_str()) {
        ("Bearer second-token-0815", "/v1/sessions") => ok(&accepted("sess_1", &writing())),
        ("Bearer second-token-0815", _) => ok(&json!({})),
        _ => Response::status(401),
    });
    let server = model();
    let script = "if [ $(wc -l < $HOME/runs) = 1 ]; then echo first-token-4711; else echo second-token-0815; fi";
    let project = with_token_program(&server, &service.url(), script);
    let output = writes(&project, true);
    assert_eq!(runs(&project), 2, "{output:?}");
    assert_eq!(paths(&service)[..2], ["/v1/sessions", "/v1/sessions"]);
    let calls = service.calls();
    assert_eq!(calls[0].header("idempotency-key"), calls[1].header("idempotency-key"));
    project.aye(&["sync"]).exits(0);
    assert!(paths(&service).contains(&"/v1/sessions/sess_1/cancel".to_owned()), "{:?}", paths(&service));
    let shown = format!("{}{}{}", output.stdout, output.stderr, server.request(0).body);
    assert!(!shown.contains("-token-"), "{shown}");
    // The service rejects the new token too, and no third attempt follows.
    let service = Service::new(|_| Response::status(401));
    let project = with_token_program(&server, &service.url(), "echo token-$(wc -l < $HOME/runs)");
    let refused = writes(&project, false);
    assert!(refused.code == 5 && refused.stderr.contains("services.sessions.token_command"), "{refused:?}");
    assert_eq!((runs(&project), service.calls().len()), (2, 2));
}

#[test]
fn no_session_starts_if_the_token_program_fails() {
    let (service, server) = (service(writing()), model());
    let project = with_token_program(&server, &service.url(), "echo 'the vault is locked' >&2; exit 3");
    let refused = writes(&project, false);
    assert_eq!(refused.code, 5, "{refused:?}");
    for part in ["the vault is locked", "exit code 3", "services.sessions.token_command"] {
        assert!(refused.stderr.contains(part), "{part}: {}", refused.stderr);
    }
    assert!(service.calls().is_empty() && server.requests().is_empty());
}

#[test]
fn a_project_cannot_set_the_program_that_prints_the_token() {
    let (service, server) = (service(writing()), model());
    let own = Project::with(&server).allowing_everything();
    let config = format!("[services.sessions]\nurl = \"{}/v1\"\n{}", service.url(), token_program(&own, "echo x"));
    let output = own.file(".aye/config.toml", &config).aye(&["exec", "--trust", "write it"]).exits(0);
    assert!(output.stderr.contains("`services.sessions.token_command` is ignored"), "{}", output.stderr);
    assert!(service.calls().is_empty());
}

/// Returns the time `seconds` seconds from now.
fn soon(seconds: i64) -> String {
    (jiff::Timestamp::now() + jiff::SignedDuration::from_secs(seconds)).to_string()
}

/// Returns a service whose first policy expires after 16 seconds. `first` and `renewed` are the feature flags of the
/// first response and of its renewal; later responses have none.
fn renewing(first: Value, renewed: Value) -> Arc<Service> {
    let resumed = Mutex::new(0);
    Arc::new(Service::new(move |call| {
        let mut body = accepted("sess_1", &json!([{"name": "File.Write"}, {"name": "Network.Http"}]));
        if call.path == "/v1/sessions" {
            body["policyBundle"]["expiresAt"] = json!(soon(16));
            body["featureFlags"] = first.clone();
        } else if call.path.ends_with("/resume") {
            let mut count = resumed.lock().unwrap();
            *count += 1;
            body["featureFlags"] = if *count == 1 { renewed.clone() } else { Value::Null };
            body["policyBundle"]["policyBundleVersion"] = json!("renewed");
        } else {
            return ok(&json!({}));
        }
        ok(&body)
    }))
}

/// Returns whether a directory contains the stored policy of a renewed session.
fn is_renewed(directory: &Path) -> bool {
    let files = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut facts = files.filter(|file| file.path().extension().is_some_and(|extension| extension == "json"));
    facts.any(|file| std::fs::read_to_string(file.path()).is_ok_and(|text| text.contains("renewed")))
}

#[test]
fn a_renewal_without_flags_enables_nothing() {
    let (on, off) = (json!({"agents": true}), json!({"agents": false}));
    // In the first case the tool is enabled throughout, so it is offered. The other cases differ only in their flags.
    let cases = [(on.clone(), Value::Null, true), (off.clone(), Value::Null, false), (on, off, false)];
    // The cases wait for their renewals at the same time.
    std::thread::scope(|scope| {
        for (first, renewed, is_offered) in cases {
            scope.spawn(move || assert_offered_after_renewal(first, renewed, is_offered));
        }
    });
}

/// Checks whether a tool is offered when a session that was renewed once continues.
fn assert_offered_after_renewal(first: Value, renewed: Value, is_offered: bool) {
    let name = format!("{first} {renewed}");
    let service = renewing(first, renewed);
    let stored = Arc::new(OnceLock::<PathBuf>::new());
    let directory = stored.clone();
    let server = Server::with_responder(move |_| {
        assert!(wait_until(TIMEOUT, || is_renewed(directory.get().unwrap())), "the policy was not renewed");
        Answer::text("Done.")
    });
    let project = project(&server, &service.url(), ALL_TOOLS);
    stored.set(project.directory("data").join("service-sessions")).unwrap();
    project.aye(&["exec", "wait for the renewal"]).exits(0);
    project.aye(&["exec", "-c", "go on"]).exits(0);
    assert_eq!(paths(&service).iter().filter(|path| path.ends_with("/resume")).count(), 2, "{name}");
    let tools = server.request(1).body["tools"].to_string();
    assert!(tools.contains("\"ReadFile\""), "{name}: {tools}");
    assert_eq!(tools.contains("\"name\":\"Agent\""), is_offered, "{name}: {tools}");
}

#[test]
fn a_policy_that_expires_during_a_task_stops_it_until_it_is_renewed() {
    let is_down = Arc::new(Mutex::new(true));
    let (down, expiry) = (is_down.clone(), Arc::new(Mutex::new(String::new())));
    let first = expiry.clone();
    let service = Service::new(move |call| match (call.path.as_str(), *down.lock().unwrap()) {
        ("/v1/sessions", _) => {
            let mut body = accepted("sess_1", &writing());
            *first.lock().unwrap() = soon(8);
            body["policyBundle"]["expiresAt"] = json!(*first.lock().unwrap());
            ok(&body)
        }
        (path, false) if path.ends_with("/resume") => ok(&accepted("sess_1", &writing())),
        (_, false) => ok(&json!({})),
        (_, true) => Response::status(503),
    });
    let server = Server::with_responder(move |request| {
        let expiry: jiff::Timestamp = expiry.lock().unwrap().parse().unwrap();
        wait_until(TIMEOUT, || jiff::Timestamp::now() > expiry);
        match request.tool_results().len() {
            0 => Answer::call("call_0", "WriteFile", json!({"path": "new.txt", "content": "new\n"})),
            _ => Answer::text("Done."),
        }
    });
    let project = project(&server, &service.url(), "");
    let paused = writes(&project, false);
    assert_ne!(paused.code, 0, "{paused:?}");
    assert!(paused.stderr.contains("expired on"), "{}", paused.stderr);
    assert!(!project.exists("new.txt"), "an expired policy allows nothing");
    *is_down.lock().unwrap() = false;
    let resumed = project.aye(&["exec", "-c"]).exits(0);
    assert!(resumed.stdout.contains("Done."), "{resumed:?}");
}

#[test]
fn no_session_starts_if_a_resume_names_another_tenant_or_user() {
    for (member, old) in [("tenantId", "tenant_abc"), ("userId", "user_123")] {
        let service = Service::new(move |call| match call.path.as_str() {
            "/v1/sessions" => ok(&accepted("sess_1", &writing())),
            path if path.ends_with("/resume") => {
                let mut body = accepted("sess_1", &writing());
                body["policyBundle"][member] = json!("somebody_else");
                ok(&body)
            }
            _ => ok(&json!({})),
        });
        let server = model();
        let project = project(&server, &service.url(), "");
        writes(&project, true);
        let requests = server.requests().len();
        let refused = project.aye(&["exec", "-c", "write it"]).exits(1);
        let why = format!("the response changes `{member}` from `{old}` to `somebody_else`");
        assert!(refused.stderr.contains(&why), "{}", refused.stderr);
        assert_eq!(server.requests().len(), requests, "nothing is sent to the model");
    }
}

#[test]
fn a_session_that_is_registered_again_keeps_its_tenant_and_user() {
    let count = Mutex::new(0);
    let service = Service::new(move |call| match call.path.as_str() {
        "/v1/sessions" => {
            let mut count = count.lock().unwrap();
            *count += 1;
            let mut body = accepted(&format!("sess_{count}"), &writing());
            if *count > 1 {
                body["policyBundle"]["tenantId"] = json!("somebody_else");
            }
            ok(&body)
        }
        path if path.ends_with("/resume") => Response::status(404),
        _ => ok(&json!({})),
    });
    let server = model();
    let project = project(&server, &service.url(), "");
    writes(&project, true);
    let requests = server.requests().len();
    let refused = project.aye(&["exec", "-c", "write it"]).exits(1);
    let why = "the response changes `tenantId` from `tenant_abc` to `somebody_else`";
    assert!(refused.stderr.contains(why), "{}", refused.stderr);
    assert_eq!(server.requests().len(), requests, "nothing is sent to the model");
}

#[test]
fn a_late_end_does_not_end_the_session_that_continues() {
    let (is_down, count) = (Arc::new(Mutex::new(true)), Mutex::new(0));
    let down = is_down.clone();
    let service = Arc::new(Service::new(move |call| match (call.path.as_str(), *down.lock().unwrap()) {
        ("/v1/sessions", _) => {
            let mut count = count.lock().unwrap();
            *count += 1;
            ok(&accepted(&format!("sess_{count}"), &writing()))
        }
        (_, true) => Response::status(503),
        (_, false) => ok(&json!({})),
    }));
    let ended =
        |service: &Service, id: &str| paths(service).iter().filter(|path| **path == format!("/v1/sessions/{id}/cancel")).count();
    let seen = service.clone();
    let server = Server::with_responder(move |request| {
        if request.messages().contains("and then?") {
            // The service recovers while the second session is running, and receives the end of the first session.
            let before = ended(&seen, "sess_1");
            *is_down.lock().unwrap() = false;
            assert!(wait_until(TIMEOUT, || ended(&seen, "sess_1") > before), "{:?}", paths(&seen));
            assert_eq!(ended(&seen, "sess_2"), 0, "{:?}", paths(&seen));
        }
        Answer::text("Done.")
    });
    let project = project(&server, &service.url(), "");
    project.aye(&["exec", "begin"]).exits(0);
    project.aye(&["exec", "-c", "and then?"]).exits(0);
    project.aye(&["sync"]).exits(0);
    assert_eq!(ended(&service, "sess_2"), 1, "{:?}", paths(&service));
    assert!(!paths(&service).iter().any(|path| path.ends_with("/resume")), "{:?}", paths(&service));
}

#[test]
fn known_flags_switch_tools_off_and_unknown_ones_do_nothing() {
    let service = Service::new(|call| {
        let mut body = accepted("sess_1", &json!([{"name": "Network.Http"}]));
        body["featureFlags"] = json!({"agents": false, "webSearch": true, "everythingAllowed": true});
        if call.path == "/v1/sessions" { ok(&body) } else { ok(&json!({})) }
    });
    let server = model();
    writes(&project(&server, &service.url(), ALL_TOOLS), false);
    let tools = server.request(0).body["tools"].to_string();
    assert!(tools.contains("\"ReadFile\"") && !tools.contains("\"name\":\"Agent\""), "{tools}");
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
