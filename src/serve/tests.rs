//! Tests of the host's state machine, which do not need a session.

mod page;

use super::lines::LINE_BYTES;
use super::{BoundedLine, ClientConnection, ConnectionAction, FaultCode, Lines, OpenedSession, RpcError};
use crate::protocol::{
    Command, Elicitation, ElicitationAnswer, ElicitationKind, Event, EventKind, Failure, FailureKind, HostCommand, PlannedStep,
    PolicyLayer, QuestionOption, SessionId, SessionStatus, StepId, StepStatus, TaskId, TaskState, TaskStatus, WorkspaceId,
};
use serde_json::{Value, json};

const HELLO: &str = r#"{"jsonrpc":"2.0","id":1,"method":"CreateSession","params":{"clientInfo":{"name":"t","version":"1"}}}"#;

fn line(text: &str) -> BoundedLine {
    BoundedLine::Whole(text.as_bytes().to_vec())
}

/// Returns the messages that the client would receive.
fn sent(acts: &[ConnectionAction]) -> Vec<Value> {
    let message = |act: &ConnectionAction| match act {
        ConnectionAction::Send(message) => Some(serde_json::from_str(&serde_json::to_string(message).unwrap()).unwrap()),
        ConnectionAction::Open(_)
        | ConnectionAction::Do(_)
        | ConnectionAction::DoInHost(_)
        | ConnectionAction::Ask(_)
        | ConnectionAction::LookUp(_)
        | ConnectionAction::End => None,
    };
    acts.iter().filter_map(message).collect()
}

fn done_in_host(acts: &[ConnectionAction]) -> Vec<&HostCommand> {
    acts.iter().filter_map(|act| if let ConnectionAction::DoInHost(command) = act { Some(command) } else { None }).collect()
}

fn done(acts: &[ConnectionAction]) -> Vec<&Command> {
    acts.iter().filter_map(|act| if let ConnectionAction::Do(command) = act { Some(command) } else { None }).collect()
}

#[track_caller]
fn answer(desk: &mut ClientConnection, text: &str) -> Value {
    let mut sent = sent(&desk.line(line(text)));
    assert_eq!(sent.len(), 1, "{text}: {sent:?}");
    sent.remove(0)
}

fn event(kind: EventKind) -> Event {
    Event {
        workspace_id: WorkspaceId::new("ws"),
        session_id: SessionId::new("s"),
        task_id: Some(TaskId::new("task_001")),
        step_id: None,
        timestamp: jiff::Timestamp::UNIX_EPOCH,
        kind,
    }
}

fn state(session_status: SessionStatus, status: TaskStatus) -> Event {
    let task = TaskState { task_id: TaskId::new("task_001"), status, step_count: 1, max_steps: 9 };
    event(EventKind::StateChanged { session_status, task: Some(task) })
}

fn mark() -> Event {
    event(EventKind::BudgetShown { budgets: Vec::new() })
}

/// Returns a connection to a running session.
fn live() -> ClientConnection {
    let mut desk = ClientConnection::default();
    assert!(matches!(&desk.line(line(HELLO))[..], [ConnectionAction::Open(_)]));
    assert!(!desk.can_take_line(), "one after the other");
    let opened = OpenedSession {
        session_id: SessionId::new("s"),
        workspace_id: WorkspaceId::new("ws"),
        policy_bundle_version: "1".to_owned(),
        available_tools: vec!["ReadFile".to_owned()],
        workspace: "/w".into(),
        step_cursor: Some(StepId::new("step_0001")),
        last_task: None,
        max_steps: 9,
        resumed: false,
        notices: Vec::new(),
    };
    desk.on_opened(Ok(opened));
    desk.event(event(EventKind::StateChanged { session_status: SessionStatus::Running, task: None }));
    let answered = sent(&desk.event(mark()));
    assert_eq!(
        answered,
        [json!({"jsonrpc": "2.0", "id": 1, "result": {"sessionId": "s", "workspaceId": "ws",
        "sessionStatus": "SESSION_RUNNING", "policyBundleVersion": "1", "availableTools": ["ReadFile"]}})]
    );
    desk
}

#[test]
fn lines_do_not_depend_on_chunk_boundaries_and_overlong_lines_are_skipped() {
    let text = b"{\"a\":1}\n\r\n  \n{\"b\":2}\r\n{\"c\"";
    for cut in 0..text.len() {
        let mut lines = Lines::default();
        let mut found = lines.push(&text[..cut]);
        found.extend(lines.push(&text[cut..]));
        assert_eq!(found, [line("{\"a\":1}"), line("{\"b\":2}\r")], "cut at {cut}");
        assert_eq!(lines.end(), Some(line("{\"c\"")));
        assert_eq!(lines.end(), None);
    }
    let mut lines = Lines::default();
    let piece = vec![b'x'; 1 << 20];
    for _ in 0..100 {
        assert!(lines.push(&piece).is_empty());
    }
    assert_eq!(lines.push(b"\n{}\n"), [BoundedLine::TooLong, line("{}")], "what comes after a long line is heard");
    let mut lines = Lines::default();
    assert!(lines.push(&vec![b' '; LINE_BYTES]).is_empty());
    assert_eq!(lines.end(), None);
}

#[test]
fn request_ids_are_returned_verbatim() {
    let mut desk = ClientConnection::default();
    for id in ["1", "-0.50", "\"a\\u00e9\"", "null", "true", "[1, 2]", "{\"a\": 1}", "123456789012345678901234567890"] {
        let request = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"GetSessionState"}}"#);
        let [ConnectionAction::Send(message)] = &desk.line(line(&request))[..] else { panic!("{id}") };
        let text = serde_json::to_string(message).unwrap();
        assert!(text.starts_with(&format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32001,"#)), "{text}");
    }
}

#[test]
fn invalid_requests_are_rejected_with_the_right_error_code() {
    let deep =
        format!(r#"{{"jsonrpc":"2.0","id":7,"method":"StartTask","params":{}{}}}"#, "[".repeat(100_000), "]".repeat(100_000));
    let cases = [
        ("{", -32700, Value::Null),
        ("{\"jsonrpc\": \"2.0\", \"method\": \"StartTa", -32700, Value::Null),
        ("nonsense", -32700, Value::Null),
        ("[", -32700, Value::Null),
        ("[]", -32600, Value::Null),
        ("1", -32600, Value::Null),
        ("\"CreateSession\"", -32600, Value::Null),
        (r#"{"id":5,"method":"GetSessionState"}"#, -32600, json!(5)),
        (r#"{"jsonrpc":"1.0","id":5,"method":"GetSessionState"}"#, -32600, json!(5)),
        (r#"{"jsonrpc":"2.0","id":5,"method":1}"#, -32600, json!(5)),
        (r#"{"jsonrpc":"2.0","id":5}"#, -32600, json!(5)),
        (r#"{"jsonrpc":"2.0","id":5,"result":{}}"#, -32600, json!(5)),
        (r#"{"jsonrpc":"2.0","id":5,"method":"GetSessionState","params":3}"#, -32600, json!(5)),
        (r#"{"jsonrpc":"2.0","id":5,"method":"GetSessionState","params":[3]}"#, -32602, json!(5)),
        (r#"{"jsonrpc":"2.0","id":5,"method":"getsessionstate"}"#, -32601, json!(5)),
        (deep.as_str(), -32602, json!(7)),
    ];
    for (text, code, id) in cases {
        let answer = answer(&mut ClientConnection::default(), text);
        let short = &text[..text.len().min(80)];
        assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(code), &id), "{short}: {answer}");
    }
    for (line, code) in [(BoundedLine::Whole(vec![b'{', 0xff, b'}']), -32700), (BoundedLine::TooLong, -32600)] {
        let told = sent(&ClientConnection::default().line(line));
        assert_eq!((&told[0]["error"]["code"], &told[0]["id"]), (&json!(code), &Value::Null));
    }
}

#[test]
fn notifications_get_no_response_and_a_batch_is_answered_when_complete() {
    let mut desk = live();
    let notification = r#"{"jsonrpc":"2.0","method":"GetSessionState"}"#;
    assert!(desk.line(line(notification)).is_empty());
    assert!(desk.line(line(&format!("[{notification},{notification}]"))).is_empty());
    let ask = |id: u32, method: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{"prompt":"go"}}}}"#);
    let batch = format!("[{},{notification},7,{}]", ask(1, "StartTask"), ask(2, "GetSessionState"));
    let acts = desk.line(line(&batch));
    assert!(sent(&acts).is_empty(), "the task has not begun");
    assert!(matches!(done(&acts)[..], [Command::Prompt { .. }]));
    let told = sent(&desk.event(event(EventKind::TaskStarted { prompt: "go".to_owned(), max_steps: 9 })));
    assert_eq!(told[0]["method"], "SessionEvent");
    let answers = told[1].as_array().unwrap();
    let of = |id: Value| answers.iter().find(|answer| answer["id"] == id).unwrap();
    assert_eq!(answers.len(), 3);
    assert_eq!(of(json!(1))["result"]["taskId"], "task_001");
    assert_eq!(of(json!(2))["result"]["sessionStatus"], "SESSION_RUNNING");
    assert_eq!(of(Value::Null)["error"]["code"], -32600);
    let many = format!("[{}]", vec!["1"; 1_001].join(","));
    assert_eq!(answer(&mut desk, &many)["error"]["code"], -32600, "a batch is bounded");
}

#[test]
fn shutdown_cancels_the_running_task_and_quits_once() {
    let mut desk = live();
    desk.line(line(r#"{"jsonrpc":"2.0","id":2,"method":"StartTask","params":{"prompt":"go"}}"#));
    desk.event(event(EventKind::TaskStarted { prompt: "go".to_owned(), max_steps: 9 }));
    desk.event(state(SessionStatus::Running, TaskStatus::ExecutingTools));
    let acts = desk.line(line(r#"{"jsonrpc":"2.0","id":3,"method":"Shutdown"}"#));
    assert!(matches!(done(&acts)[..], [Command::Finish]));
    let refused = answer(&mut desk, r#"{"jsonrpc":"2.0","id":4,"method":"StartTask","params":{"prompt":"go"}}"#);
    assert_eq!(refused["error"]["code"], -32001);
    let mut quits = 0;
    for status in [TaskStatus::TaskRunning, TaskStatus::TaskCancelled, TaskStatus::Idle] {
        let acts = desk.event(state(SessionStatus::Running, status));
        quits += done(&acts).iter().filter(|command| matches!(command, Command::Quit)).count();
    }
    assert_eq!(quits, 1);
    let told = sent(&desk.event(state(SessionStatus::Completed, TaskStatus::Idle)));
    assert_eq!(told[0]["params"]["payload"]["sessionStatus"], "SESSION_CANCELLED");
    let acts = desk.on_session_end();
    assert_eq!(sent(&acts)[0], json!({"jsonrpc": "2.0", "id": 3, "result": {"status": "SESSION_CANCELLED"}}));
    assert!(matches!(acts.last(), Some(ConnectionAction::End)));
}

#[test]
fn only_the_paused_session_can_be_resumed_in_place() {
    let mut desk = live();
    let resume = |id: &str| format!(r#"{{"jsonrpc":"2.0","id":5,"method":"ResumeSession","params":{{"sessionId":"{id}"}}}}"#);
    assert_eq!(answer(&mut desk, &resume("s"))["error"]["code"], -32002);
    desk.event(state(SessionStatus::Paused, TaskStatus::TaskRunning));
    assert_eq!(answer(&mut desk, &resume("t"))["error"]["code"], -32002);
    let acts = desk.line(line(&resume("s")));
    assert!(
        matches!(acts[..], [.., ConnectionAction::DoInHost(HostCommand::Resume), ConnectionAction::Do(Command::ShowBudget)]),
        "{acts:?}"
    );
    desk.event(state(SessionStatus::Running, TaskStatus::WaitingForLlm));
    let answered = sent(&desk.event(mark()));
    assert_eq!(answered[0]["result"]["sessionStatus"], "SESSION_RUNNING");
    assert_eq!(answered[0]["result"]["stepCursor"], "step_0001");
}

#[test]
fn a_task_being_cancelled_cannot_be_resumed() {
    let mut desk = live();
    desk.event(state(SessionStatus::Paused, TaskStatus::WaitingForLlm));
    let cancel = r#"{"jsonrpc":"2.0","id":4,"method":"CancelTask","params":{"taskId":"task_001"}}"#;
    assert!(matches!(done(&desk.line(line(cancel)))[..], [Command::Cancel]));
    let resume = r#"{"jsonrpc":"2.0","id":5,"method":"ResumeSession","params":{"sessionId":"s"}}"#;
    let refused = answer(&mut desk, resume);
    assert_eq!(refused["error"]["code"], -32002, "{refused}");
    assert!(refused["error"]["message"].as_str().is_some_and(|message| message.contains("task_cancelled")), "{refused}");
    desk.event(event(EventKind::TaskCancelled { step_count: 1 }));
    desk.event(state(SessionStatus::Running, TaskStatus::TaskCancelled));
    let start = r#"{"jsonrpc":"2.0","id":6,"method":"StartTask","params":{"prompt":"go"}}"#;
    assert!(matches!(done(&desk.line(line(start)))[..], [Command::Prompt { .. }]));
}

#[test]
fn resuming_in_place_returns_the_last_step() {
    let mut desk = live();
    let step = Event { step_id: Some(StepId::new("step_0007")), ..event(EventKind::StepCompleted { step_count: 7 }) };
    desk.event(step);
    desk.event(state(SessionStatus::Paused, TaskStatus::WaitingForLlm));
    desk.line(line(r#"{"jsonrpc":"2.0","id":5,"method":"ResumeSession","params":{"sessionId":"s"}}"#));
    desk.event(state(SessionStatus::Running, TaskStatus::WaitingForLlm));
    assert_eq!(sent(&desk.event(mark()))[0]["result"]["stepCursor"], "step_0007");
}

#[test]
fn starting_a_task_in_a_paused_session_is_an_error_with_a_hint() {
    let start = r#"{"jsonrpc":"2.0","id":2,"method":"StartTask","params":{"prompt":"go"}}"#;
    for (kind, code, reason) in [(FailureKind::Network, -32003, "paused"), (FailureKind::PolicyExpired, -32005, "expired")] {
        let mut desk = live();
        desk.event(state(SessionStatus::Paused, TaskStatus::WaitingForLlm));
        desk.event(event(EventKind::SessionPaused { failure: Failure::new(kind, "why", "hint") }));
        let refused = answer(&mut desk, start);
        assert_eq!((&refused["error"]["code"], &refused["error"]["data"]["reason"]), (&json!(code), &json!(reason)), "{refused}");
        let message = refused["error"]["message"].as_str().unwrap();
        assert!(message.contains("ResumeSession") && message.contains("task_001") && message.contains("CancelTask"), "{message}");
        let state = answer(&mut desk, r#"{"jsonrpc":"2.0","id":3,"method":"GetSessionState"}"#);
        assert_eq!(state["result"]["sessionStatus"], "SESSION_PAUSED");
    }
}

#[test]
fn a_task_that_cannot_start_fails_when_the_session_is_paused() {
    let mut desk = live();
    let start = r#"{"jsonrpc":"2.0","id":2,"method":"StartTask","params":{"prompt":"go"}}"#;
    assert!(matches!(done(&desk.line(line(start)))[..], [Command::Prompt { .. }]));
    desk.event(state(SessionStatus::Paused, TaskStatus::WaitingForLlm));
    let failure = Failure::new(FailureKind::Internal, "Cannot save this session (the disk is full).", "hint");
    let told = sent(&desk.event(event(EventKind::SessionPaused { failure })));
    let [paused, refused] = &told[..] else { panic!("{told:?}") };
    assert_eq!(paused["params"]["eventType"], "session_paused");
    assert_eq!((&refused["id"], &refused["error"]["data"]["reason"]), (&json!(2), &json!("paused")), "{refused}");
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.contains("the disk is full") && message.contains("ResumeSession"), "{message}");
    // No request is answered twice.
    let begun = desk.event(event(EventKind::TaskStarted { prompt: "go".to_owned(), max_steps: 9 }));
    assert!(sent(&begun).iter().all(|message| message.get("id").is_none()));
}

#[test]
fn a_resumed_session_reports_the_current_policy_and_tools() {
    let mut desk = live();
    desk.event(state(SessionStatus::Paused, TaskStatus::WaitingForLlm));
    desk.line(line(r#"{"jsonrpc":"2.0","id":5,"method":"ResumeSession","params":{"sessionId":"s"}}"#));
    let layer = |version: Option<&str>| PolicyLayer {
        scope: "user".to_owned(),
        bundle_version: version.map(str::to_owned),
        expires_at: None,
        max_input_tokens: None,
        file: None,
        rules: Vec::new(),
    };
    let (layers, tools) = (vec![layer(None), layer(Some("2"))], vec!["Grep".to_owned()]);
    desk.event(event(EventKind::PolicyInForce { layers, name: "user".to_owned(), tools, message: Some("reloaded".to_owned()) }));
    desk.event(state(SessionStatus::Running, TaskStatus::WaitingForLlm));
    let answered = sent(&desk.event(mark()));
    assert_eq!(answered[0]["result"]["policyBundleVersion"], "2", "{answered:?}");
    assert_eq!(answered[0]["result"]["availableTools"], json!(["Grep"]));
}

#[test]
fn a_new_task_can_start_as_soon_as_the_last_one_is_cancelled() {
    let mut desk = live();
    let start = r#"{"jsonrpc":"2.0","id":2,"method":"StartTask","params":{"prompt":"go"}}"#;
    desk.line(line(start));
    desk.event(event(EventKind::TaskStarted { prompt: "go".to_owned(), max_steps: 9 }));
    desk.event(state(SessionStatus::Running, TaskStatus::WaitingForLlm));
    assert_eq!(answer(&mut desk, start)["error"]["code"], -32003);
    desk.event(event(EventKind::TaskCancelled { step_count: 1 }));
    assert!(matches!(done(&desk.line(line(start)))[..], [Command::Prompt { .. }]));
}

#[test]
fn server_elicitations_are_declined() {
    let mut desk = live();
    let asked = Elicitation {
        elicitation_id: "elicitation_1".to_owned(),
        server: "s".to_owned(),
        message: "who?".to_owned(),
        wanted: ElicitationKind::Form { fields: Vec::new() },
    };
    let acts = desk.event(event(EventKind::ElicitationRequested(asked)));
    assert!(
        matches!(done_in_host(&acts)[..], [HostCommand::AnswerElicitation { answer: ElicitationAnswer::Decline, .. }]),
        "{acts:?}"
    );
    assert_eq!(sent(&acts)[0]["params"]["eventType"], "elicitation_requested");
}

#[test]
fn questions_from_the_model_wait_for_the_client_and_are_answered_once() {
    let mut desk = live();
    let option = |label: &str| QuestionOption { label: label.to_owned(), description: None, preview: None };
    let wanted = ElicitationKind::Question { options: vec![option("a"), option("b")], number: 1, count: 1 };
    let (elicitation_id, server, message) = ("elicitation_1".to_owned(), String::new(), "which?".to_owned());
    let acts = desk.event(event(EventKind::ElicitationRequested(Elicitation { elicitation_id, server, message, wanted })));
    assert_eq!(sent(&acts)[0]["params"]["payload"]["wanted"]["options"][1]["label"], "b");
    assert!(done_in_host(&acts).is_empty(), "{acts:?}");
    let steps = vec![PlannedStep { text: "Test".to_owned(), status: StepStatus::Done }];
    desk.event(event(EventKind::PlannedStepsChanged { steps }));
    let state = answer(&mut desk, r#"{"jsonrpc":"2.0","id":2,"method":"GetSessionState"}"#);
    assert_eq!(state["result"]["pendingQuestions"][0]["elicitationId"], "elicitation_1");
    assert_eq!(state["result"]["plannedSteps"], json!([{"text": "Test", "status": "done"}]));
    let give = |id: &str, answer: &str| {
        let params = format!(r#"{{"elicitationId":"{id}"{answer}}}"#);
        format!(r#"{{"jsonrpc":"2.0","id":3,"method":"AnswerQuestion","params":{params}}}"#)
    };
    for wrong in [give("elicitation_2", ""), give("elicitation_1", r#","answer":" ""#)] {
        assert_eq!(answer(&mut desk, &wrong)["error"]["code"], -32602, "{wrong}");
    }
    let acts = desk.line(line(&give("elicitation_1", r#","answer":"b""#)));
    assert_eq!(sent(&acts)[0]["result"]["status"], "answered");
    let [HostCommand::AnswerElicitation { answer: given, .. }] = done_in_host(&acts)[..] else { panic!("{acts:?}") };
    assert_eq!(*given, ElicitationAnswer::to_question("b".to_owned()));
    assert_eq!(answer(&mut desk, &give("elicitation_1", ""))["error"]["code"], -32602, "it is answered");
}

#[test]
fn a_session_can_be_opened_after_a_failed_attempt() {
    let mut desk = ClientConnection::default();
    desk.line(line(HELLO));
    let acts = desk.on_opened(Err(RpcError::new(FaultCode::PolicyInvalid, "expired")));
    assert_eq!(sent(&acts)[0]["error"]["code"], -32005);
    assert!(desk.can_take_line());
    assert!(matches!(&desk.line(line(HELLO))[..], [ConnectionAction::Open(_)]));
}

#[test]
fn fault_codes_keep_their_published_numbers() {
    let numbers = FaultCode::ALL.map(FaultCode::number);
    assert_eq!(
        numbers,
        [-32700, -32600, -32601, -32602, -32603, -32001, -32002, -32003, -32004, -32005, -32006, -32007, -32008, -32009]
    );
}

#[test]
fn a_session_whose_end_cannot_be_saved_fails_with_the_reason() {
    let ended = || {
        event(EventKind::SessionCompleted { task_count: 1, total_tokens: 7, cost_usd: None, duration_ms: 3, tools: Vec::new() })
    };
    let named = |acts: &[ConnectionAction]| {
        let told = sent(acts).remove(0);
        (told["method"].as_str().unwrap_or_default().to_owned(), told["params"].clone())
    };
    let unsaved = |saved| event(EventKind::SavingChanged { saved, message: "the disk is full".to_owned() });
    let failed = || event(EventKind::StateChanged { session_status: SessionStatus::Failed, task: None });
    let mut desk = live();
    desk.event(unsaved(false));
    desk.event(failed());
    let (name, params) = named(&desk.event(ended()));
    assert!(name.contains("session_failed") || params.to_string().contains("session_failed"), "{name} {params}");
    assert!(params.to_string().contains("the disk is full") && params.to_string().contains('7'), "{params}");
    // The reason does not mention an earlier failure that was resolved.
    let mut desk = live();
    desk.event(unsaved(false));
    desk.event(unsaved(true));
    desk.event(failed());
    let (_, params) = named(&desk.event(ended()));
    assert!(params.to_string().contains("cannot save the end of the session"), "{params}");
    let mut desk = live();
    desk.event(event(EventKind::StateChanged { session_status: SessionStatus::Completed, task: None }));
    let (name, params) = named(&desk.event(ended()));
    assert!(!format!("{name}{params}").contains("session_failed"), "{name} {params}");
}
