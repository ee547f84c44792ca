use super::export::{as_json, checkpoint};
use super::import::prepare;
use super::transcript::SessionTranscript;
use super::*;
use crate::ports::{Record, TaskEnd};
use crate::protocol::*;
use crate::store::{ImportedSession, NewSession, Parent, SessionSummary, Store, TimedRecord};
use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const ID: &str = "00112233445566778899aabbccddeeff";

fn store() -> (TempDir, Store) {
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path()).unwrap();
    (dir, store)
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_760_000_000 + second).unwrap()
}

fn message(number: u32, role: Role, content: Vec<Part>) -> Message {
    Message {
        message_id: MessageId::new(format!("msg_{number}")),
        role,
        content,
        token_count: 3,
        task_id: TaskId::new("task_1"),
        step_id: (role != Role::User).then(|| StepId::new("step_1")),
        timestamp: at(i64::from(number)),
    }
}

fn text(text: &str) -> Part {
    Part::Text { text: text.to_owned() }
}

fn prompt(words: &str) -> Record {
    Record::TaskStarted { prompt: message(1, Role::User, vec![text(words)]), max_steps: 40 }
}

fn answer(number: u32, content: Vec<Part>) -> Record {
    Record::Answer {
        message: message(number, Role::Assistant, content),
        usage: Usage { input_tokens: 100, output_tokens: 7, ..Usage::default() },
        stop_reason: StopReason::EndTurn,
        latency_ms: 12,
        model: "acme/one".to_owned(),
        cost_usd: Some(0.1 + f64::from(number) / 7.0),
        estimated: false,
    }
}

fn call(id: &str, arguments: Value) -> Part {
    let Value::Object(map) = arguments else { panic!("arguments are an object") };
    Part::ToolCall(ToolCall {
        tool_call_id: CallId::new(id),
        tool_name: "RunCommand".to_owned(),
        arguments: CallArguments::Object(map),
    })
}

fn foreign(id: &str, draft: &str, records: Vec<Record>) -> ImportedSession {
    let session = NewSession {
        id: SessionId::new(id),
        workspace_id: crate::workspace::identity::workspace_id(Path::new("/src/greeter")),
        workspace: PathBuf::from("/src/greeter"),
        model: "acme/one".to_owned(),
        started_by: None,
        is_of_command: false,
    };
    let records = (1..).zip(records).map(|(second, record)| TimedRecord { time: at(second), record }).collect();
    ImportedSession { session, created: at(0), title: Some("a title".to_owned()), draft: draft.to_owned(), parent: None, records }
}

fn exported(store: &Store, id: &str) -> String {
    as_json(&checkpoint(store, &store.find(id).unwrap(), None).unwrap()).unwrap()
}

/// Exports a session, imports it into another store and exports it again.
fn there_and_back(json: &str) -> (String, Vec<String>) {
    let (_dir, other) = store();
    let ready = prepare(Path::new("/src/greeter"), json).unwrap();
    let id = ready.foreign.session.id.to_string();
    assert!(other.import(ready.foreign).unwrap());
    (exported(&other, &id), ready.notices)
}

fn records_of(store: &Store, id: &str) -> Vec<Record> {
    store.load(&SessionId::new(id)).unwrap().records
}

fn any_record() -> impl Strategy<Value = Record> {
    let words = || "[a-zé\u{1b}\u{9b}\u{202e}<>\"\\\\\n\t ]{0,12}";
    let cost = prop::option::of(0.0..10.0_f64);
    let usage = (0..9_999_u64, 0..99_u64).prop_map(|(input, output)| Usage {
        input_tokens: input,
        output_tokens: output,
        ..Usage::default()
    });
    prop_oneof![
        words().prop_map(|words| prompt(&words)),
        (2..9_u32, words(), cost.clone(), usage.clone(), words()).prop_map(|(number, words, cost_usd, usage, sealed)| {
            Record::Answer {
                message: message(
                    number,
                    Role::Assistant,
                    vec![
                        Part::Reasoning { text: words.clone(), opaque: Some(json!({"signature": sealed, "n": [1, 2.5, null]})) },
                        text(&words),
                        call("call_1", json!({"command": words})),
                    ],
                ),
                usage,
                stop_reason: StopReason::ToolUse,
                latency_ms: 1,
                model: words,
                cost_usd,
                estimated: number % 2 == 0,
            }
        }),
        words().prop_map(|words| Record::Finished {
            result: ToolResult::success(CallId::new("call_1"), "RunCommand", words),
            latency_ms: 3
        }),
        (2..9_u32, words()).prop_map(|(number, words)| Record::StepCompleted {
            task_id: TaskId::new("task_1"),
            step_id: StepId::new(format!("step_{number}")),
            step_count: number,
            message: message(
                number,
                Role::Tool,
                vec![Part::ToolResult(ToolResult::success(CallId::new("call_1"), "RunCommand", words))]
            ),
        }),
        (cost, usage).prop_map(|(cost_usd, usage)| Record::Wasted { usage, cost_usd, estimated: true, model: None }),
        words().prop_map(|text| Record::Queue { prompts: vec![QueuedMessage { id: 1, text, steer: false }] }),
        words().prop_map(|text| Record::PartialAnswer { step_id: StepId::new("step_1"), text }),
        Just(Record::Decided {
            approval_id: ApprovalId::new("a1"),
            tool_call_id: CallId::new("call_1"),
            decision: Decision::ApprovedAlways { remember: GrantChoice::default() }
        }),
        Just(Record::MandateSet { digest: None, actions: Vec::new(), asks: Vec::new() }),
        Just(Record::BudgetSet { limit: BudgetLimit { scope: BudgetScope::Session, unit: BudgetUnit::CostUsd, limit: 1e6 } }),
        Just(Record::TaskEnded { task_id: TaskId::new("task_1"), step_count: 1, end: TaskEnd::Cancelled }),
        Just(Record::Unreadable),
        Just(Record::Continued),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_session_exports_identically_after_an_import(records in prop::collection::vec(any_record(), 1..24), draft in ".{0,20}") {
        let (_dir, store) = store();
        prop_assert!(store.import(foreign(ID, &draft, records.clone())).unwrap());
        let first = exported(&store, ID);
        prop_assume!(records.iter().any(|record| crate::session::without_authority(record.clone()).is_some()) || !draft.trim().is_empty());
        let (second, _) = there_and_back(&first);
        prop_assert_eq!(&first, &second);
        let obeyed = first.contains(['\u{1b}', '\u{9b}', '\u{202e}']);
        prop_assert!(!obeyed);
        let _ = (markdown_of(&records), html_of(&records));
    }

    #[test]
    fn a_streamed_export_is_equal_to_the_export(records in prop::collection::vec(any_record(), 0..24), draft in "\\PC{0,20}") {
        let (_dir, store) = store();
        store.import(foreign(ID, &format!("{draft}\u{202e}\u{9b}"), records)).unwrap();
        let (mut streamed, mut visited) = (Vec::new(), Vec::new());
        let summary = store.find(ID).unwrap();
        let last = export::write_json(&store, &summary, &str::to_owned, &mut streamed, &mut |time, record| {
            visited.push((time, record.clone()));
        });
        let whole = checkpoint(&store, &summary, None).unwrap();
        prop_assert_eq!(last.unwrap(), whole.checkpointed_at);
        prop_assert_eq!(String::from_utf8(streamed).unwrap(), exported(&store, ID));
        let listed: Vec<_> = whole.aye.records.into_iter().map(|record| (record.time, record.entry)).collect();
        prop_assert_eq!(visited, listed);
    }

    #[test]
    fn lists_exports_and_transcripts_have_the_totals_of_the_session_state(records in prop::collection::vec(any_record(), 1..24)) {
        let (_dir, store) = store();
        prop_assert!(store.import(foreign(ID, "", records.clone())).unwrap());
        let state = crate::session::SessionState::from_records(&records);
        prop_assert_eq!(store.tally(&SessionId::new(ID)).unwrap(), state.tally());
        let (exported, totals) = (checkpoint(&store, &store.find(ID).unwrap(), None).unwrap(), state.totals());
        let own = (exported.session_tokens_used, exported.aye.cost_usd, exported.aye.estimated);
        prop_assert_eq!(own, (totals.tokens(), totals.cost_usd, totals.estimated));
        let sums = transcript_of(&records).totals_line();
        let tokens = format!("{} tokens in, {} out", totals.usage.input_tokens, totals.usage.output_tokens);
        prop_assert!(sums.contains(&tokens), "{sums}");
        let replayed = crate::agent::replay(&records, &WorkspaceId::new("w"), &SessionId::new(ID));
        let usage = replayed.iter().fold(Usage::default(), |mut sum, event| {
            if let EventKind::LlmRequestCompleted { usage, .. } = &event.kind {
                sum += *usage;
            }
            sum
        });
        prop_assert_eq!(usage, totals.usage);
        let status = state.status.unwrap_or(crate::session::SessionActivity::Idle);
        prop_assert_eq!(store.find(ID).unwrap().status, status);
    }
}

fn summary() -> SessionSummary {
    let (_dir, store) = store();
    assert!(store.import(foreign(ID, "", vec![prompt("x")])).unwrap());
    store.find(ID).unwrap()
}

#[test]
fn a_session_without_messages_has_nothing_to_export() {
    let (dir, store) = store();
    let path = dir.path().join("export.md");
    let error = export::to_new_file(&store, ID, ExportForm::Markdown, &path).unwrap_err();
    assert_eq!(error.to_string(), "nothing to export: this session has no messages yet");
    assert!(!path.exists());
}

#[test]
fn exports_name_the_parent_session() {
    let (_dir, store) = store();
    let parent = Parent { id: SessionId::new("feedbeef"), records: 1 };
    assert!(store.import(ImportedSession { parent: Some(parent), ..foreign(ID, "", vec![prompt("x")]) }).unwrap());
    assert!(exported(&store, ID).contains("\"parent\": \"feedbeef\""));
    let transcript = SessionTranscript::new(&store.find(ID).unwrap());
    assert!(markdown::page(&transcript).contains("Forked from session feedbeef."));
    assert!(html::page(&transcript).contains("Forked from session feedbeef."));
    assert!(!markdown_of(&[]).contains("Forked from") && !html_of(&[]).contains("Forked from"));
}

fn transcript_of(records: &[Record]) -> SessionTranscript {
    let mut transcript = SessionTranscript::new(&summary());
    for record in records {
        transcript.add(record);
    }
    transcript.end("");
    transcript
}

fn markdown_of(records: &[Record]) -> String {
    markdown::page(&transcript_of(records))
}

fn html_of(records: &[Record]) -> String {
    html::page(&transcript_of(records))
}

#[test]
fn checkpoints_contain_the_required_keys_and_opaque_data() {
    let (_dir, store) = store();
    let sealed = json!({"type": "thinking", "signature": "c2lnbmVk+/=="});
    let records = vec![
        prompt("Refactor it"),
        Record::StepStarted { task_id: TaskId::new("task_1"), step_id: StepId::new("step_1"), step_count: 1 },
        answer(
            2,
            vec![Part::Reasoning { text: "hm".to_owned(), opaque: Some(sealed.clone()) }, call("c1", json!({"command": "ls"}))],
        ),
    ];
    assert!(store.import(foreign(ID, "half a sent", records)).unwrap());
    let json: Value = serde_json::from_str(&exported(&store, ID)).unwrap();
    assert_eq!((&json["checkpointVersion"], &json["sessionId"]), (&json!("1.0"), &json!(ID)));
    assert_eq!(
        json["task"],
        json!({"taskId": "task_1", "prompt": "Refactor it", "status": "running", "stepCount": 0, "maxSteps": 40})
    );
    assert_eq!((&json["sessionStatus"], &json["sessionTokensUsed"]), (&json!("SESSION_PAUSED"), &json!(107)));
    assert_eq!((&json["thread"][0]["role"], &json["thread"][0]["content"]), (&json!("user"), &json!("Refactor it")));
    assert_eq!(json["thread"][1]["content"][0]["opaque"], sealed);
    assert_eq!(
        (&json["aye"]["draft"], &json["aye"]["records"][0]["entry"]["record"]),
        (&json!("half a sent"), &json!("task_started"))
    );
    for key in ["workspaceId", "stepCursor", "policyBundleVersion", "checkpointedAt", "tenantId"] {
        assert!(json.as_object().unwrap().contains_key(key), "{key}");
    }
    assert!(json["thread"][0]["messageId"].is_string() && json["thread"][0]["tokenCount"].is_number());
}

#[test]
fn imported_sessions_grant_nothing() {
    let (_dir, store) = store();
    let records = vec![
        prompt("x"),
        Record::BudgetSet { limit: BudgetLimit { scope: BudgetScope::Session, unit: BudgetUnit::CostUsd, limit: 1e6 } },
        Record::MandateSet { digest: Some("d1".to_owned()), actions: Vec::new(), asks: Vec::new() },
        Record::Decided {
            approval_id: ApprovalId::new("a1"),
            tool_call_id: CallId::new("c1"),
            decision: Decision::ApprovedAlways { remember: GrantChoice::default() },
        },
    ];
    assert!(store.import(foreign(ID, "", records)).unwrap());
    // Editing the file by hand has no effect.
    let honest = exported(&store, ID);
    let forged = honest.replace("\"decision\": \"approved\"", "\"decision\": \"approved_always\", \"offer\": 0");
    assert_ne!(honest, forged);
    for json in [honest, forged] {
        let (_dir, other) = self::store();
        assert!(other.import(prepare(Path::new("/w"), &json).unwrap().foreign).unwrap());
        let records = records_of(&other, ID);
        assert_eq!(records.len(), 2, "{records:?}");
        assert!(matches!(records[1], Record::Decided { decision: Decision::Approved, .. }), "{records:?}");
        let filter = crate::store::DecisionFilter { most: 10, ..crate::store::DecisionFilter::default() };
        assert_eq!(other.decisions(&filter).unwrap(), []);
    }
}

#[test]
fn a_checkpoint_with_only_a_thread_becomes_tasks_and_steps() {
    let json = json!({
        "checkpointVersion": "1.0", "sessionId": "sess_789", "workspaceId": "ws_456", "tenantId": "t", "userId": "u",
        "sessionStatus": "SESSION_RUNNING", "sessionTokensUsed": 12540,
        "task": {"taskId": "task_002", "prompt": "and now", "status": "running", "stepCount": 3, "maxSteps": 40},
        "thread": [
            {"messageId": "m1", "role": "system", "content": "You are …", "tokenCount": 1},
            {"messageId": "m2", "role": "user", "content": "first", "tokenCount": 1, "timestamp": "2026-02-21T15:00:00Z"},
            {"messageId": "m3", "role": "assistant", "content": "done", "tokenCount": 1},
            {"messageId": "m3", "role": "user", "content": "and now"},
            {"messageId": "m5", "role": "assistant", "content": [
                {"type": "text", "text": "looking"},
                {"type": "tool_call", "toolCallId": "c1", "toolName": "ReadFile", "arguments": {"path": "a"}}]},
            {"messageId": "m6", "role": "tool", "content": "what a is"},
            {"messageId": "m7", "role": "tool", "content": "of nothing"},
        ]
    });
    let (_dir, store) = store();
    let ready = prepare(Path::new("/w"), &json.to_string()).unwrap();
    assert!(ready.notices.iter().any(|line| line.contains("system message")), "{:?}", ready.notices);
    let records: Vec<Record> = ready.foreign.records.iter().map(|written| written.record.clone()).collect();
    let kinds: Vec<String> =
        records.iter().map(|record| serde_json::to_value(record).unwrap()["record"].as_str().unwrap().to_owned()).collect();
    assert_eq!(
        kinds,
        [
            "task_started",
            "step_started",
            "answer",
            "task_ended",
            "task_started",
            "step_started",
            "answer",
            "finished",
            "step_completed",
            "steered",
            "imported",
            "wasted"
        ]
    );
    assert_eq!(ready.foreign.title.as_deref(), Some("first"));
    let foreign = ImportedSession { session: NewSession { id: SessionId::new(ID), ..ready.foreign.session }, ..ready.foreign };
    assert!(store.import(foreign).unwrap());
    let out: Value = serde_json::from_str(&exported(&store, ID)).unwrap();
    assert_eq!(
        (&out["task"]["taskId"], &out["task"]["status"], &out["sessionTokensUsed"]),
        (&json!("task_2"), &json!("running"), &json!(12540))
    );
    let said: Vec<_> = out["thread"].as_array().unwrap().iter().map(|one| one["role"].as_str().unwrap()).collect();
    assert_eq!(said, ["user", "assistant", "user", "assistant", "tool", "user"]);
    assert_eq!(out["thread"][4]["content"][0]["outputText"], "what a is");
    assert_ne!(out["thread"][1]["messageId"], out["thread"][2]["messageId"], "an id stands for one message");
}

#[test]
fn invalid_checkpoints_are_reported_with_the_location_and_the_expected_value() {
    for (text, words) in [
        ("", "line 1, column 0"),
        ("{\"checkpointVersion\": \"1.0\",\n  \"thread\": [}", "line 2, column 14: `thread`: expected value"),
        ("[1]", "line 1, column"),
        ("{\"thread\": []}", "missing checkpointVersion: expected \"1.0\""),
        (
            "{\"checkpointVersion\": \"2.0\", \"thread\": []}",
            "unsupported checkpointVersion \"2.0\": this version of aye reads \"1.0\"",
        ),
        (
            "{\"checkpointVersion\": \"1.0\", \"thread\": [], \"aye\": {\"format\": 9, \"records\": []}}",
            "unsupported format 9 of `aye`: this version of aye reads 1",
        ),
        ("{\"checkpointVersion\": \"1.0\"}", "missing field `thread`"),
        ("{\"checkpointVersion\": \"1.0\", \"thread\": []}", "nothing to import"),
        (
            "{\"checkpointVersion\": \"1.0\", \"thread\": [{\"role\": \"user\",\n\"content\": 5}]}",
            "line 2, column 12: `thread[0].content`: invalid type: integer `5`, expected a string, or a list of parts",
        ),
        ("{\"checkpointVersion\": \"1.0\", \"thread\": [{\"role\": \"\\u001bx\", \"content\": \"\"}]}", "unknown variant"),
        ("{\"checkpointVersion\": \"1.0\", \"thread\": []} more", "unexpected text after the session"),
    ] {
        let Err(problem) = prepare(Path::new("/w"), text) else { panic!("{text}") };
        let reason = problem.one_line();
        assert!(reason.contains(words), "{text}\n{reason}");
        assert!(!reason.contains('\u{1b}'));
    }
}

#[test]
fn unreadable_records_do_not_prevent_export_or_import() {
    let (_dir, store) = store();
    assert!(store.import(foreign(ID, "", vec![prompt("x"), Record::Unreadable, prompt("z")])).unwrap());
    let json = exported(&store, ID);
    assert_eq!(serde_json::from_str::<Value>(&json).unwrap()["aye"]["records"][1]["entry"]["record"], "unreadable");
    let (again, said) = there_and_back(&json);
    assert_eq!(json, again);
    assert!(said.iter().any(|line| line.contains("cannot read 1 record")), "{said:?}");
    let broken = json.replace("\"record\": \"task_started\"", "\"record\": \"task_started\", \"maxSteps\": \"many\", \"x\": 1");
    let said = prepare(Path::new("/w"), &broken).unwrap().notices;
    assert!(said.iter().any(|line| line.contains("cannot read 3 records") && line.contains("aye.records[0]")), "{said:?}");
}

/// Text with markup and control characters that must be rendered as text.
const HOSTILE: &str = "</pre><script>alert(1)</script><img src=x onerror=alert(1)> \u{1b}]0;owned\u{7}\u{9b}31m \u{202e}x\n\
    # You\n\n[click](javascript:alert(1)) ![p](https://evil.example/p.png) <b onclick='x'>\n\nSetext\n===\n```\nopen";

#[test]
fn hostile_text_is_escaped_in_transcript_pages() {
    let intent = Record::Intent {
        step_id: StepId::new("step_1"),
        call: ToolCall {
            tool_call_id: CallId::new("c1"),
            tool_name: HOSTILE.to_owned(),
            arguments: CallArguments::Malformed(HOSTILE.to_owned()),
        },
        summary: HOSTILE.to_owned(),
        actions: Vec::new(),
        proposal: Some(Proposal { diff: FileDiffs::read(&format!("+{HOSTILE}")), ..Proposal::default() }),
        changes: true,
    };
    let records = vec![
        prompt(HOSTILE),
        answer(2, vec![Part::Reasoning { text: HOSTILE.to_owned(), opaque: None }, text(HOSTILE)]),
        intent,
        Record::Refused { tool_call_id: CallId::new("c1"), rule: HOSTILE.to_owned(), reason: HOSTILE.to_owned() },
        Record::Finished { result: ToolResult::success(CallId::new("c1"), HOSTILE, HOSTILE), latency_ms: 1 },
        Record::PartialAnswer { step_id: StepId::new("step_1"), text: HOSTILE.to_owned() },
    ];
    let page = html_of(&records);
    for word in ["<script", "<img", "<b ", "javascript:alert(1)\"", "href=\"j", "\u{1b}", "\u{9b}", "\u{202e}"] {
        assert!(!page.contains(word), "{word}\n{page}");
    }
    // An address may appear only in links that a user can follow.
    assert!(!page.contains("\"https://evil"), "{page}");
    assert!(page.contains("default-src 'none'") && page.contains("color-scheme"));
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
    let page = markdown_of(&records);
    for word in ["\u{1b}", "\u{9b}", "\u{202e}", "](javascript:alert(1))\n\n<"] {
        assert!(!page.contains(word), "{word:?}\n{page}");
    }
    let shown = pulldown_cmark::Parser::new(&page);
    let markup = shown.filter(|event| {
        matches!(
            event,
            pulldown_cmark::Event::Html(_)
                | pulldown_cmark::Event::InlineHtml(_)
                | pulldown_cmark::Event::Start(pulldown_cmark::Tag::Image { .. })
        )
    });
    assert_eq!(markup.collect::<Vec<_>>(), [], "{page}");
    let heads = |level| {
        let is = |event: &pulldown_cmark::Event<'_>| matches!(event, pulldown_cmark::Event::Start(pulldown_cmark::Tag::Heading { level: found, .. }) if *found == level);
        pulldown_cmark::Parser::new(&page).filter(is).count()
    };
    assert_eq!((heads(pulldown_cmark::HeadingLevel::H1), heads(pulldown_cmark::HeadingLevel::H2)), (1, 1), "{page}");
}

#[test]
fn transcript_pages_contain_messages_calls_decisions_and_costs() {
    let long = (0..500).map(|line| format!("line {line}")).collect::<Vec<_>>().join("\n");
    let records = vec![
        prompt("Make it *so*"),
        Record::StepStarted { task_id: TaskId::new("task_1"), step_id: StepId::new("step_1"), step_count: 1 },
        answer(2, vec![text("I **will**."), call("c1", json!({"command": "cargo test"}))]),
        Record::Decided { approval_id: ApprovalId::new("a1"), tool_call_id: CallId::new("c1"), decision: Decision::Approved },
        Record::Finished { result: ToolResult::success(CallId::new("c1"), "RunCommand", long), latency_ms: 5 },
        Record::Steered { message: message(4, Role::User, vec![text("faster")]) },
    ];
    for (page, words) in [
        (markdown_of(&records), ["Make it \\*so\\*", "I **will**.", "faster"]),
        (html_of(&records), ["Make it *so*", "<strong>will</strong>", "faster"]),
    ] {
        let all =
            ["cargo test", "you approved it", "line 199", "more lines", "$0.39", "100 tokens in", "done in 5 ms", "acme/one"];
        for word in words.into_iter().chain(all) {
            assert!(page.contains(word), "{word}\n{page}");
        }
        assert!(!page.contains("line 200"), "{page}");
    }
}

#[test]
fn session_sizes_and_totals_are_reported() {
    let (_dir, store) = store();
    let records = vec![
        prompt("x"),
        Record::StepStarted { task_id: TaskId::new("task_1"), step_id: StepId::new("step_1"), step_count: 1 },
        answer(2, vec![text("y")]),
        Record::Wasted { usage: Usage { input_tokens: 5, ..Usage::default() }, cost_usd: None, estimated: true, model: None },
    ];
    assert!(store.import(foreign(ID, "", records)).unwrap());
    let tally = store.tally(&SessionId::new(ID)).unwrap();
    // A step whose response contains no calls is complete.
    assert_eq!((tally.tasks, tally.steps, tally.totals.usage.input_tokens, tally.totals.estimated), (1, 1, 105, true));
    let size = store.sizes().unwrap()[&SessionId::new(ID)];
    assert!(size.records == 4 && size.bytes > 200, "{size:?}");
    assert_eq!(crate::host::stored_sessions::open(&store.find(ID).unwrap()), Some("interrupted"));
}
