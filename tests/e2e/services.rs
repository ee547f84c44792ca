//! Records for services: audit and telemetry over OTLP, delivered through a crash-safe outbox.

use crate::support::service::{Call, Response, Service, closed_port};
use crate::support::{Answer, Project, Server};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Returns a model that writes one file and then ends its task.
fn writer() -> Server {
    Server::with_responder(|request| match request.tool_results().len() {
        0 => Answer::call("call_1", "WriteFile", json!({"path": "out.txt", "content": "secret plan\n"})),
        _ => Answer::text("Written as asked."),
    })
}

fn project(server: &Server, config: &str) -> Project {
    Project::with(server).allowing_everything().env("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json").config(config)
}

/// Returns the records of all requests to `path`, in order. `outer`, `middle` and `inner` are the nested keys of the
/// records.
fn records(calls: &[Call], path: &str, outer: &str, middle: &str, inner: &str) -> Vec<Value> {
    let mut found = Vec::new();
    for call in calls.iter().filter(|call| call.path == path) {
        for resource in call.json()[outer].as_array().unwrap() {
            for scope in resource[middle].as_array().unwrap() {
                assert_eq!(scope["schemaUrl"], "https://opentelemetry.io/schemas/1.37.0");
                found.extend(scope[inner].as_array().unwrap().iter().cloned());
            }
        }
    }
    found
}

fn logs(calls: &[Call]) -> Vec<Value> {
    records(calls, "/v1/logs", "resourceLogs", "scopeLogs", "logRecords")
}

fn attribute<'a>(record: &'a Value, key: &str) -> Option<&'a str> {
    let found = record["attributes"].as_array()?.iter().find(|attribute| attribute["key"] == key)?;
    let value = &found["value"];
    value["stringValue"].as_str().or_else(|| value["intValue"].as_str())
}

fn events(logs: &[Value]) -> Vec<&str> {
    logs.iter().map(|record| record["eventName"].as_str().unwrap()).collect()
}

#[test]
fn audit_records_describe_actions_without_content() {
    let service = Service::accepting();
    let server = writer();
    let project = project(&server, &format!("[services.audit]\nurl = \"{}\"\n", service.url()));
    project.aye(&["exec", "write the plan down"]).exits(0);
    project.aye(&["sync"]).exits(0);
    let calls = service.calls();
    let logs = logs(&calls);
    let expected = [
        "aye.task.started",
        "aye.model.response",
        "aye.call.planned",
        "aye.call.started",
        "aye.decision",
        "aye.call.finished",
        "aye.model.response",
        "aye.task.ended",
    ];
    let told: Vec<&str> = events(&logs).into_iter().filter(|event| expected.contains(event)).collect();
    assert_eq!(told, expected);
    let ids: BTreeSet<_> = logs.iter().map(|record| attribute(record, "aye.record.id").unwrap().to_owned()).collect();
    assert_eq!(ids.len(), logs.len(), "each record has its own key");
    let sessions: BTreeSet<_> = logs.iter().map(|record| attribute(record, "session.id").unwrap()).collect();
    assert_eq!(sessions.len(), 1);
    let decision = logs.iter().find(|record| record["eventName"] == "aye.decision").unwrap();
    assert_eq!([attribute(decision, "aye.verdict"), attribute(decision, "gen_ai.tool.name")], [Some("allow"), Some("WriteFile")]);
    let text = String::from_utf8(calls.iter().flat_map(|call| call.body.clone()).collect()).unwrap();
    for content in ["write the plan down", "secret plan", "Written as asked"] {
        assert!(!text.contains(content), "{content}: {text}");
    }
    let resource = &calls[0].json()["resourceLogs"][0]["resource"];
    assert_eq!(attribute(resource, "service.name"), Some("aye"));
}

#[test]
fn content_is_sent_only_if_configured_and_without_secrets() {
    let service = Service::accepting();
    let server = Server::new([
        Answer::call(
            "call_1",
            "WriteFile",
            json!({"path": "out.txt", "content": "token ghp_Zk3vQ9xT7bLm2RpW8sYc4NdH6fJg1KaE5uVi\n"}),
        ),
        Answer::text("Done, with hunter2-is-my-password."),
    ]);
    let url = service.url();
    let config =
        format!("[services.audit]\nurl = \"{url}\"\ncontent = true\n[services.telemetry]\nurl = \"{url}\"\ncontent = true\n");
    let project = project(&server, &config).env("MY_PASSWORD", "hunter2-is-my-password");
    project.aye(&["exec", "write it"]).exits(0);
    project.aye(&["sync"]).exits(0);
    let calls = service.calls();
    let text = String::from_utf8(calls.iter().flat_map(|call| call.body.clone()).collect()).unwrap();
    for content in ["write it", "Done, with", "gen_ai.tool.call.arguments", "gen_ai.output.messages"] {
        assert!(text.contains(content), "{content}: {text}");
    }
    for secret in ["ghp_Zk3vQ9xT", "hunter2-is-my-password", "sk-ant-scripted"] {
        assert!(!text.contains(secret), "{secret}: {text}");
    }
}

#[test]
fn telemetry_is_a_trace_for_each_task_with_metrics_of_its_requests() {
    let service = Service::accepting();
    let server = writer();
    let project = project(&server, &format!("[services.telemetry]\nurl = \"{}\"\n", service.url()))
        .env("OTEL_SERVICE_NAME", "my-agent")
        .env("OTEL_EXPORTER_OTLP_HEADERS", "api-key=k%201");
    project.aye(&["exec", "write"]).exits(0);
    project.aye(&["sync"]).exits(0);
    let calls = service.calls();
    assert!(calls.iter().all(|call| call.header("api-key") == "k 1"), "{calls:?}");
    let spans = records(&calls, "/v1/traces", "resourceSpans", "scopeSpans", "spans");
    let names: BTreeSet<&str> = spans.iter().map(|span| span["name"].as_str().unwrap()).collect();
    assert!(names.contains("invoke_agent aye") && names.contains("execute_tool WriteFile"), "{names:?}");
    let traces: BTreeSet<&str> = spans.iter().map(|span| span["traceId"].as_str().unwrap()).collect();
    assert_eq!(traces.len(), 1);
    let root = spans.iter().find(|span| span["parentSpanId"].is_null()).unwrap();
    let requests: Vec<&Value> = spans.iter().filter(|span| span["name"].as_str().unwrap().starts_with("chat ")).collect();
    assert_eq!(requests.len(), 2);
    for span in &requests {
        assert_eq!(span["parentSpanId"], root["spanId"]);
        assert_eq!(
            [attribute(span, "gen_ai.operation.name"), attribute(span, "gen_ai.provider.name")],
            [Some("chat"), Some("anthropic")]
        );
        assert!(attribute(span, "gen_ai.usage.input_tokens").is_some(), "{span}");
        assert!(span["startTimeUnixNano"].as_str() <= span["endTimeUnixNano"].as_str());
    }
    let metrics = records(&calls, "/v1/metrics", "resourceMetrics", "scopeMetrics", "metrics");
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for metric in &metrics {
        let points = metric["histogram"]["dataPoints"].as_array().unwrap().len();
        *counts.entry(metric["name"].as_str().unwrap()).or_default() += points as u64;
    }
    assert_eq!(counts, BTreeMap::from([("gen_ai.client.operation.duration", 2), ("gen_ai.client.token.usage", 4)]));
}

/// Returns the numbers and contents of the fields of a protobuf message.
fn fields(mut bytes: &[u8]) -> Vec<(u64, Vec<u8>)> {
    let varint = |bytes: &mut &[u8]| {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = bytes[0];
            *bytes = &bytes[1..];
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
        value
    };
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes);
        let content = match tag & 7 {
            0 => varint(&mut bytes).to_le_bytes().to_vec(),
            1 => {
                let (fixed, rest) = bytes.split_at(8);
                bytes = rest;
                fixed.to_vec()
            }
            2 => {
                let length = varint(&mut bytes) as usize;
                let (content, rest) = bytes.split_at(length);
                bytes = rest;
                content.to_vec()
            }
            other => panic!("wire type {other}"),
        };
        found.push((tag >> 3, content));
    }
    found
}

fn field(bytes: &[u8], number: u64) -> Vec<u8> {
    fields(bytes).into_iter().find(|(found, _)| *found == number).unwrap_or_else(|| panic!("no field {number}")).1
}

#[test]
fn the_default_encoding_is_protobuf_and_compression_is_honoured() {
    let service = Service::accepting();
    let server = writer();
    let project = Project::with(&server)
        .allowing_everything()
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", &service.url())
        .env("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
        .config("[services.audit]\nurl = \"env\"\n");
    project.aye(&["exec", "write"]).exits(0);
    project.aye(&["sync"]).exits(0);
    let calls = service.calls();
    assert_eq!([calls[0].header("content-type"), calls[0].header("content-encoding")], ["application/x-protobuf", "gzip"]);
    let mut body = Vec::new();
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&calls[0].body[..]), &mut body).unwrap();
    let scope_logs = field(&field(&body, 1), 2);
    let records: Vec<Vec<u8>> =
        fields(&scope_logs).into_iter().filter(|(number, _)| *number == 2).map(|(_, record)| record).collect();
    let names: Vec<String> = records.iter().map(|record| String::from_utf8(field(record, 12)).unwrap()).collect();
    assert!(names.iter().any(|name| name == "aye.task.started"), "{names:?}");
    let time = u64::from_le_bytes(field(&records[0], 1).try_into().unwrap());
    assert!(time > 1_600_000_000_000_000_000, "{time}");
}

#[test]
fn rejected_audit_records_wait_and_rejected_telemetry_is_dropped() {
    let server = writer();
    for (config, left) in [("audit", true), ("telemetry", false)] {
        let service = Service::new(|_| Response::status(400));
        let project = project(&server, &format!("[services.{config}]\nurl = \"{}\"\n", service.url()));
        project.aye(&["exec", "write"]).exits(0);
        let output = project.aye(&["sync"]);
        assert_eq!(output.code != 0, left, "{}", output.stdout);
        let doctor = project.aye(&["doctor"]).stdout;
        assert!(doctor.contains(if left { "records waiting" } else { "dropped so far" }), "{doctor}");
    }
    let port = closed_port();
    let project = project(&server, &format!("[services.audit]\nurl = \"http://127.0.0.1:{port}\"\n"));
    project.aye(&["exec", "write"]).exits(0);
    let _partial = Service::at(port, |_| Response {
        body: br#"{"partialSuccess": {"rejectedLogRecords": "2"}}"#.to_vec(),
        ..Response::status(200)
    });
    project.aye(&["sync"]).exits(0);
    let doctor = project.aye(&["doctor"]).stdout;
    assert!(doctor.contains("2 dropped so far"), "{doctor}");
}

#[test]
fn truncated_responses_and_oversized_requests_are_retried() {
    let server = writer();
    let port = closed_port();
    let audited = project(&server, &format!("[services.audit]\nurl = \"http://127.0.0.1:{port}\"\n"));
    audited.aye(&["exec", "write"]).exits(0);
    let service = Service::at(port, |call| {
        let count = call.json()["resourceLogs"][0]["scopeLogs"][0]["logRecords"].as_array().unwrap().len();
        if count > 3 { Response::status(413) } else { Response { body: b"{}".to_vec(), ..Response::status(200) } }
    });
    audited.aye(&["sync"]).exits(0);
    assert!(service.calls().iter().any(|call| call.body.len() > 4000), "a large request was tried first");
    let cut = Service::new(|_| Response { body: b"{\"partialSuccess\": {}}".to_vec(), is_cut: true, ..Response::status(200) });
    let port = cut.port();
    let audited = project(&server, &format!("[services.audit]\nurl = \"{}\"\n", cut.url()));
    audited.aye(&["exec", "write"]).exits(0);
    audited.aye(&["sync"]).exits(1);
    drop(cut);
    let service = Service::at(port, |_| Response::status(200));
    audited.aye(&["sync"]).exits(0);
    assert!(events(&logs(&service.calls())).contains(&"aye.task.ended"));
}

#[test]
fn at_the_outbox_limit_a_session_drops_records_or_pauses_if_they_are_required() {
    let server = writer();
    let port = closed_port();
    let config = |required: bool| {
        format!("[services.outbox]\nlimit = 9000\n[services.audit]\nurl = \"http://127.0.0.1:{port}\"\nrequired = {required}\n")
    };
    let continuing = project(&server, &config(false));
    for _ in 0..4 {
        continuing.aye(&["exec", "write"]).exits(0);
    }
    let output = continuing.aye(&["exec", "write"]).exits(0);
    assert!(output.stderr.contains("the outbox has reached its limit"), "{}", output.stderr);
    let doctor = continuing.aye(&["doctor"]).stdout;
    assert!(doctor.contains("records are missing"), "{doctor}");
    let pausing = project(&server, &config(true));
    let mut done = 0;
    let paused = loop {
        let _ = std::fs::remove_file(pausing.path("out.txt"));
        let output = pausing.aye(&["exec", "write"]);
        if output.code != 0 {
            break output;
        }
        done += 1;
        assert!(done < 20, "it never paused");
    };
    assert!(!pausing.exists("out.txt"), "no effect without its record");
    let shown = format!("{}{}", paused.stdout, paused.stderr);
    assert!(shown.contains("services.audit.required") && shown.contains("aye sync"), "{shown}");
    // The task continues once the records are delivered.
    let service = Service::at(port, |_| Response::status(200));
    pausing.aye(&["sync"]).exits(0);
    pausing.aye(&["exec", "-c"]).exits(0);
    assert!(pausing.exists("out.txt"));
    continuing.aye(&["sync"]).exits(0);
    let logs = logs(&service.calls());
    let gap = logs.iter().find(|record| record["eventName"] == "aye.gap").unwrap();
    assert!(attribute(gap, "aye.gap.records").unwrap().parse::<u64>().unwrap() > 0, "{gap}");
    let is_paused = |record: &&Value| attribute(record, "aye.workspace.path").is_some_and(|path| path.contains("aye-e2e"));
    assert!(logs.iter().any(|record| is_paused(&record)));
}

#[test]
fn repeated_kills_lose_no_records_and_invent_none() {
    let server = Server::with_responder(|request| {
        let results = request.tool_results().len();
        match results {
            0..12 => Answer::call(
                &format!("call_{results}"),
                "WriteFile",
                json!({"path": format!("out_{results}.txt"), "content": "x"}),
            ),
            _ => Answer::text("Done."),
        }
    });
    // The service fails about half of the requests after it has received their records, so these records are sent
    // again.
    let service = Service::new(|call| Response::status(if call.body.len() % 2 == 0 { 200 } else { 503 }));
    let project = project(&server, &format!("[services.audit]\nurl = \"{}\"\n", service.url()));
    for round in 0..8 {
        let mut command = project.command(&["exec", "write"]);
        command.stdin(std::process::Stdio::null()).stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
        let mut child = command.spawn().unwrap();
        let requests = server.requests().len();
        // The process is killed at some point during its task.
        crate::support::wait_until(Duration::from_secs(20), || server.requests().len() > requests + round);
        child.kill().unwrap();
        child.wait().unwrap();
    }
    crate::support::wait_until(Duration::from_secs(60), || project.aye(&["sync"]).code == 0);
    let logs = logs(&service.calls());
    let mut received: BTreeMap<&str, &Value> = BTreeMap::new();
    for record in &logs {
        let earlier = received.insert(attribute(record, "aye.record.id").unwrap(), record);
        assert!(earlier.is_none_or(|earlier| earlier == record), "a key has one record");
    }
    // The decision log is written in the same transactions, so it must match the records.
    let decisions = project.aye(&["policy", "log", "--json", "-n", "10000"]).exits(0);
    let logged = decisions.stdout.matches("\"verdict\"").count();
    let told = received.values().filter(|record| record["eventName"] == "aye.decision").count();
    assert!(logged > 0, "{}", decisions.stdout);
    assert_eq!(told, logged, "each logged decision arrives once");
}

#[test]
fn several_processes_deliver_each_record_once() {
    let server = writer();
    let service = Service::accepting();
    let project = project(&server, &format!("[services.audit]\nurl = \"{}\"\n", service.url()));
    let running: Vec<_> = (0..4).map(|_| project.start(&["exec", "write"])).collect();
    for process in running {
        process.finish().exits(0);
    }
    project.aye(&["sync"]).exits(0);
    let logs = logs(&service.calls());
    let ids: BTreeSet<&str> = logs.iter().map(|record| attribute(record, "aye.record.id").unwrap()).collect();
    assert_eq!(ids.len(), logs.len(), "no duplicates");
    assert_eq!(events(&logs).iter().filter(|event| **event == "aye.task.ended").count(), 4);
}

#[test]
fn records_of_a_removed_service_wait_without_blocking_others_until_they_are_dropped() {
    let server = writer();
    let audit = |port: u16| format!("[services.audit]\nurl = \"http://127.0.0.1:{port}\"\nrequired = true\n");
    let approvals = "[services.approvals]\nurl = \"http://127.0.0.1:9\"\nsecret = \"env:AYE_TEST_SECRET\"\n";
    let small = "[services.outbox]\nlimit = 9000\n";
    let project = project(&server, &format!("{small}{}", audit(closed_port()))).env("AYE_TEST_SECRET", "only-for-this-test");
    assert!((0..20).any(|_| project.aye(&["exec", "write"]).code != 0), "it never paused");
    // If the audit service is not configured, its records block nothing.
    let project = project.config(&format!("{small}{approvals}"));
    project.aye(&["exec", "write"]).exits(0);
    let doctor = project.aye(&["doctor"]).stdout;
    assert!(doctor.contains("the service is not configured") && doctor.contains("aye sync --drop audit"), "{doctor}");
    let left = project.aye(&["sync"]).exits(1).stdout;
    assert!(left.contains("audit: 0 records delivered") && left.contains("the service is not configured"), "{left}");
    let refused = project.aye(&["sync", "--drop", "approvals"]).exits(2).stderr;
    assert!(refused.contains("the service is configured"), "{refused}");
    project.aye(&["sync", "--drop", "everything"]).exits(2);
    let nested = project.command(&["sync", "--drop", "audit"]).env("AYE", "1").output().unwrap();
    assert_eq!(nested.status.code(), Some(2), "a command that aye runs deletes no records");
    let dropped = project.aye(&["sync", "--drop", "audit", "--json"]).exits(0).json();
    assert!(dropped["service"] == "audit" && dropped["dropped"].as_u64().unwrap() > 1, "{dropped}");
    assert!(!project.aye(&["doctor"]).stdout.contains("the service is not configured"));
    // A service that is configured again receives a record of the gap.
    let service = Service::accepting();
    let project = project.config(&format!("{small}{}", audit(service.port()))).env("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json");
    project.aye(&["exec", "write"]).exits(0);
    project.aye(&["sync"]).exits(0);
    let logs = logs(&service.calls());
    let gap = logs.iter().find(|record| record["eventName"] == "aye.gap").unwrap();
    assert_eq!(attribute(gap, "aye.gap.records").unwrap(), dropped["dropped"].to_string(), "{gap}");
}

#[test]
fn sync_without_services_prints_a_hint() {
    let project = Project::empty();
    let error = project.aye(&["sync"]).exits(2).stderr;
    assert!(error.contains("no service is configured") && error.contains("[services]"), "{error}");
}
