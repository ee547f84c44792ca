use super::*;
use crate::protocol::ErrorCode;
use crate::protocol::{
    Approval, Budget, BudgetScope, BudgetUnit, CallArguments, CallId, Compaction, CompactionTrigger, FailedRequest, Failure,
    Mode, ModelFacts, Proposal, Remedy, SessionId, StopReason, ToolError, ToolStatus, Usage, WorkspaceId,
};
use tokio::sync::mpsc::unbounded_channel;

fn event(kind: EventKind) -> Event {
    Event {
        workspace_id: WorkspaceId::new("w"),
        session_id: SessionId::new("s"),
        task_id: None,
        step_id: None,
        timestamp: jiff::Timestamp::UNIX_EPOCH,
        kind,
    }
}

fn started() -> EventKind {
    EventKind::SessionStarted {
        model: "demo/m".to_owned(),
        mode: Mode::Ask,
        workspace: "/src".to_owned(),
        resumed: false,
        facts: None,
    }
}

fn completed(text: &str) -> EventKind {
    EventKind::TaskCompleted { text: text.to_owned(), usage: Usage::default(), cost_usd: None, step_count: 1 }
}

fn failed_with(kind: FailureKind) -> EventKind {
    EventKind::TaskFailed { failure: Failure::new(kind, "it said no", "try later"), step_count: 1 }
}

fn requested(summary: &str) -> EventKind {
    EventKind::ToolRequested {
        tool_call_id: CallId::new("c1"),
        tool_name: "RunCommand".to_owned(),
        capability: None,
        arguments: CallArguments::parse("{}"),
        summary: summary.to_owned(),
    }
}

fn refused(code: ErrorCode) -> EventKind {
    EventKind::ToolCompleted {
        tool_call_id: CallId::new("c1"),
        tool_name: "RunCommand".to_owned(),
        status: ToolStatus::Denied,
        latency_ms: 0,
        output_text: String::new(),
        error: Some(ToolError::new(code, "no user can approve this call")),
        proposal: None,
        redactions: Vec::new(),
        artifact_uris: Vec::new(),
        ended: None,
    }
}

fn ended() -> EventKind {
    EventKind::SessionCompleted { task_count: 1, total_tokens: 0, cost_usd: None, duration_ms: 0, tools: Vec::new() }
}

/// Sanitizer that replaces escape characters with a visible mark.
fn clean(text: &str) -> Cow<'_, str> {
    text.replace('\x1b', "␛").into()
}

struct Told {
    outcome: Outcome,
    out: String,
    err: String,
}

fn told(kinds: Vec<EventKind>, format: Format, out_is_terminal: bool) -> Told {
    let (sender, events) = unbounded_channel();
    for kind in kinds {
        sender.send(event(kind)).unwrap();
    }
    drop(sender);
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let output = Output { out: &mut out, err: &mut err, out_is_terminal, clean, version: "1.2.3", is_saved: true, check: None };
    let outcome = tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(run(events, format, output));
    Told { outcome, out: String::from_utf8(out).unwrap(), err: String::from_utf8(err).unwrap() }
}

#[test]
fn the_outcome_of_a_run_is_the_same_in_every_format() {
    let paused = |kind| EventKind::SessionPaused { failure: Failure::new(kind, "", "") };
    for (kinds, expected) in [
        (vec![completed("x")], Outcome::Completed),
        (vec![completed("x"), ended()], Outcome::Completed),
        (vec![refused(ErrorCode::NoApprover), completed("x")], Outcome::CompletedWithDenials),
        (vec![refused(ErrorCode::PolicyDenied), completed("x")], Outcome::CompletedWithDenials),
        (vec![refused(ErrorCode::FileNotFound), completed("x")], Outcome::Completed),
        (vec![refused(ErrorCode::PolicyDenied), failed_with(FailureKind::Network)], Outcome::Failed),
        (vec![failed_with(FailureKind::Authentication)], Outcome::AuthenticationFailed),
        (vec![failed_with(FailureKind::MaxStepsExceeded)], Outcome::LimitReached),
        (vec![failed_with(FailureKind::BudgetExceeded)], Outcome::LimitReached),
        (vec![failed_with(FailureKind::Billing)], Outcome::Failed),
        (vec![failed_with(FailureKind::Overloaded), completed("x")], Outcome::Completed),
        (vec![paused(FailureKind::Network)], Outcome::Failed),
        (vec![paused(FailureKind::PolicyExpired)], Outcome::Failed),
        (vec![EventKind::TaskCancelled { step_count: 1 }, ended()], Outcome::Cancelled),
        (vec![started()], Outcome::Failed),
        (vec![], Outcome::Failed),
    ] {
        for format in [Format::Text, Format::Json, Format::Events, Format::StreamJson] {
            assert_eq!(told(kinds.clone(), format, false).outcome, expected, "{kinds:?}");
        }
    }
}

#[test]
fn the_event_stream_is_one_parsable_event_per_line() {
    let kinds = vec![started(), EventKind::TextChunk { text: "a\nb\u{1b}[31m".to_owned() }, completed("done"), ended()];
    let told = told(kinds.clone(), Format::Events, false);
    let read: Vec<Event> = told.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(read, kinds.into_iter().map(event).collect::<Vec<_>>());
    assert_eq!(told.err, "");
}

#[test]
fn json_output_is_the_event_that_ended_the_task() {
    for (kinds, expected) in [
        (vec![started(), completed("done"), ended()], completed("done")),
        (vec![started(), failed_with(FailureKind::Network), ended()], failed_with(FailureKind::Network)),
        (vec![started(), ended()], ended()),
    ] {
        let told = told(kinds, Format::Json, false);
        assert_eq!(serde_json::from_str::<Event>(&told.out).unwrap(), event(expected));
        assert_eq!(told.out.lines().count(), 1);
    }
}

#[test]
fn text_output_is_the_answer_and_progress_is_written_to_stderr() {
    let told = told(
        vec![
            started(),
            EventKind::TextChunk { text: "do".to_owned() },
            requested("$ cargo test"),
            EventKind::ToolStarted {
                tool_call_id: CallId::new("c1"),
                rule: "built-in".to_owned(),
                summary: None,
                effects: None,
                note: None,
            },
            refused(ErrorCode::NoApprover),
            EventKind::LlmRetry(FailedRequest {
                attempt: 1,
                max_attempts: 3,
                delay_ms: 1500,
                asked_ms: None,
                kind: FailureKind::Overloaded,
                message: "overloaded".to_owned(),
                usage: None,
                cost_usd: None,
                estimated: false,
                request_id: None,
            }),
            completed("done"),
        ],
        Format::Text,
        false,
    );
    assert_eq!(told.out, "done\n");
    assert_eq!(
        told.err,
        "working in /src with demo/m, mode ask\n→ $ cargo test\n✗ $ cargo test: denied: no user can approve this call\nretry 1 of 3 in 1.5 s: overloaded\nhint: 1 action was denied; to allow such actions, add a rule to your policy (`aye policy explain -- COMMAND` shows the rule that decides)\n"
    );
}

#[test]
fn denials_are_whole_lines_for_the_user_and_one_hint_follows_the_run() {
    let reason = format!("no rule matches this command; {}", "it is long ".repeat(30).trim_end());
    let approval: Approval = serde_json::from_value(serde_json::json!({
        "approvalId": "appr_001", "toolCallId": "c1", "toolName": "RunCommand", "title": "Command", "actionSummary": "make",
        "riskLevel": "medium", "rule": "built-in", "reason": reason, "proposal": Proposal::default(),
    }))
    .unwrap();
    let denied = |error: ToolError| {
        let EventKind::ToolCompleted { tool_call_id, tool_name, status, .. } = refused(error.code) else { unreachable!() };
        EventKind::ToolCompleted {
            tool_call_id,
            tool_name,
            status,
            latency_ms: 0,
            output_text: String::new(),
            error: Some(error),
            proposal: None,
            redactions: Vec::new(),
            artifact_uris: Vec::new(),
            ended: None,
        }
    };
    let told = told(
        vec![
            requested("$ make"),
            EventKind::ApprovalRequested(approval),
            denied(ToolError::new(
                ErrorCode::NoApprover,
                "denied: no user can approve this call (x; rule: y); continue without it",
            )),
            requested("Write .git/config"),
            denied(ToolError::from_rule("`.git` is protected", "built-in", "; present a plan first")),
            completed("done"),
        ],
        Format::Text,
        false,
    );
    let lines: Vec<&str> = told.err.lines().collect();
    assert_eq!(
        lines,
        [
            format!("✗ $ make: denied: needs approval ({reason})").as_str(),
            "✗ Write .git/config: denied: `.git` is protected (rule: built-in)",
            "hint: 2 actions were denied; to allow such actions, add a rule to your policy (`aye policy explain -- COMMAND` shows \
             the rule that decides)",
        ]
    );
}

#[test]
fn session_changes_and_usage_are_written_to_stderr() {
    let facts = ModelFacts::for_test("acme/other", 1000, None);
    let budget = Budget {
        scope: BudgetScope::Session,
        unit: BudgetUnit::CostUsd,
        limit: 5.0,
        used: 4.1,
        set_by: "you".to_owned(),
        most: None,
    };
    let compaction = Compaction {
        trigger: CompactionTrigger::Threshold,
        focus: None,
        summary: "what was said".to_owned(),
        model: Some("acme/small".to_owned()),
        summarised: 61,
        kept: 12,
        tokens_before: 160_000,
        tokens_after: 21_000,
    };
    let usage = |input_tokens, output_tokens| Usage { input_tokens, output_tokens, ..Usage::default() };
    let told = told(
        vec![
            EventKind::ModelChanged { facts, effort: None, message: "acme/other answers from now on".to_owned() },
            EventKind::CompactionStarted { trigger: CompactionTrigger::Threshold, messages: 61, tokens: 160_000 },
            EventKind::ContextCompacted(compaction),
            EventKind::ContextTruncated { removed: 3 },
            EventKind::BudgetApproaching { budget },
            EventKind::Steered { text: "use\nthe other one".to_owned() },
            EventKind::LlmRetry(FailedRequest {
                estimated: false,
                request_id: None,
                attempt: 1,
                max_attempts: 3,
                delay_ms: 1500,
                asked_ms: None,
                kind: FailureKind::CutStream,
                message: "cut".to_owned(),
                usage: Some(usage(2_000, 78)),
                cost_usd: Some(0.0021),
            }),
            EventKind::LlmRequestCompleted {
                estimated: false,
                model: "m".to_owned(),
                usage: usage(10_345, 600),
                latency_ms: 1,
                stop_reason: StopReason::EndTurn,
                cost_usd: Some(0.0102),
                session_cost_usd: Some(0.0123),
            },
            completed("done"),
        ],
        Format::Text,
        false,
    );
    assert_eq!(told.out, "done\n");
    let lines: Vec<&str> = told.err.lines().collect();
    assert_eq!(
        lines,
        [
            "acme/other answers from now on",
            "compacting 61 messages into a summary",
            "compacted 61 messages into a summary by acme/small: 160,000 → 21,000 tokens, 12 messages unchanged",
            "the 3 oldest messages are no longer sent to the model",
            "session: $4.10 of $5.00 used, 82 %",
            "sent to the model: use the other one",
            "retry 1 of 3 in 1.5 s (the attempt cost $0.0021): cut",
            "$0.0123 · 12,345 tokens in, 678 out",
        ]
    );
}

#[test]
fn failures_are_printed_with_a_cause_and_a_hint() {
    let told = told(vec![failed_with(FailureKind::Network)], Format::Text, false);
    assert_eq!((told.out.as_str(), told.err.as_str()), ("", "error: it said no\nhint: try later\n"));
    let raise = Remedy::RaiseBudget { scope: BudgetScope::Task, unit: BudgetUnit::Steps, limit: 40.0 };
    for (remedy, command) in [(Remedy::Continue, "aye exec -c"), (raise, "aye exec -c --set budget.task_steps=40")] {
        let failure = Failure::new(FailureKind::BudgetExceeded, "LLM_BUDGET_EXCEEDED: used up", "").with_remedy(remedy);
        let told = self::told(vec![EventKind::SessionPaused { failure }], Format::Text, false);
        assert_eq!(told.err, format!("error: used up\nhint: run `{command}` to continue\n"));
    }
}

#[test]
fn escape_sequences_never_reach_a_terminal_and_summaries_stay_on_one_line() {
    let kinds = || {
        vec![
            requested("$ echo \u{1b}]0;x\u{7}\nfailed: nothing"),
            EventKind::ToolStarted {
                tool_call_id: CallId::new("c1"),
                rule: String::new(),
                summary: None,
                effects: None,
                note: None,
            },
            completed("\u{1b}[31mred\n"),
        ]
    };
    let terminal = told(kinds(), Format::Text, true);
    assert_eq!(terminal.out, "␛[31mred\n");
    assert_eq!(terminal.err, "→ $ echo ␛]0;x\u{7} failed: nothing\n");
    assert_eq!(told(kinds(), Format::Text, false).out, "\u{1b}[31mred\n", "a program gets what the model wrote");
}

struct Closed;

impl Write for Closed {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::BrokenPipe.into())
    }
    fn flush(&mut self) -> io::Result<()> {
        Err(io::ErrorKind::BrokenPipe.into())
    }
}

#[test]
fn a_closed_output_ends_the_run_without_a_message() {
    for format in [Format::Text, Format::Json, Format::Events, Format::StreamJson] {
        let (sender, events) = unbounded_channel();
        sender.send(event(completed("x"))).unwrap();
        drop(sender);
        let mut err = Vec::new();
        let output = Output {
            out: &mut Closed,
            err: &mut err,
            out_is_terminal: false,
            clean,
            version: "1.2.3",
            is_saved: true,
            check: None,
        };
        let outcome = tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(run(events, format, output));
        assert_eq!(outcome, Outcome::OutputClosed);
        assert_eq!(err, b"");
    }
}

/// Returns the output lines of a run in the message format.
fn messages(kinds: Vec<EventKind>) -> Vec<serde_json::Value> {
    told(kinds, Format::StreamJson, false).out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn responded(usage: Usage, stop_reason: StopReason) -> EventKind {
    EventKind::LlmRequestCompleted {
        estimated: false,
        model: "m".to_owned(),
        usage,
        latency_ms: 7,
        stop_reason,
        cost_usd: Some(0.01),
        session_cost_usd: Some(0.01),
    }
}

fn in_force(tools: &[&str]) -> EventKind {
    EventKind::PolicyInForce {
        layers: Vec::new(),
        name: "built-in".to_owned(),
        tools: tools.iter().map(|&tool| tool.to_owned()).collect(),
        message: None,
    }
}

fn task(prompt: &str) -> EventKind {
    EventKind::TaskStarted { prompt: prompt.to_owned(), max_steps: 9 }
}

#[test]
fn stream_json_begins_with_the_session_and_ends_with_the_result() {
    let usage = Usage { input_tokens: 100, cache_read_tokens: 60, cache_write_tokens: 10, output_tokens: 5, ..Usage::default() };
    let read = messages(vec![
        started(),
        in_force(&["ReadFile", "Grep"]),
        task("look"),
        EventKind::StepStarted { step_count: 1 },
        EventKind::TextChunk { text: "Look".to_owned() },
        EventKind::TextChunk { text: "ing.".to_owned() },
        responded(usage, StopReason::ToolUse),
        requested("$ cargo test"),
        refused(ErrorCode::NoApprover),
        EventKind::TextChunk { text: "Done.".to_owned() },
        responded(usage, StopReason::EndTurn),
        EventKind::TaskCompleted { text: "Done.".to_owned(), usage, cost_usd: None, step_count: 2 },
        ended(),
    ]);
    let kinds: Vec<_> = read.iter().map(|line| line["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["system", "assistant", "assistant", "user", "assistant", "result"]);
    assert!(read.iter().all(|line| line["session_id"] == "s"), "{read:?}");
    let expected = serde_json::json!({
        "type": "system", "subtype": "init", "session_id": "s", "version": 1, "aye_version": "1.2.3", "cwd": "/src",
        "tools": ["ReadFile", "Grep"], "mcp_servers": [], "model": "demo/m", "permissionMode": "default",
    });
    assert_eq!(read[0], expected);
    let content = |line: usize| &read[line]["message"]["content"][0];
    assert_eq!(content(1), &serde_json::json!({"type": "text", "text": "Looking."}));
    assert_eq!(content(2), &serde_json::json!({"type": "tool_use", "id": "c1", "name": "RunCommand", "input": {}}));
    let result = serde_json::json!({
        "type": "tool_result", "tool_use_id": "c1", "content": "NO_APPROVER: no user can approve this call", "is_error": true,
    });
    assert_eq!(content(3), &result);
    let id = |line: usize| &read[line]["message"]["id"];
    assert_eq!(id(1), id(2), "parts of one response");
    assert_ne!(id(2), id(4));
    assert_eq!(read[1]["message"]["usage"]["input_tokens"], 30, "without the cached part");
    let expected = serde_json::json!({
        "type": "result", "subtype": "success", "is_error": false, "duration_ms": 0, "duration_api_ms": 14, "num_turns": 2,
        "result": "Done.", "session_id": "s", "total_cost_usd": 0.02,
        "usage": {
            "input_tokens": 60, "cache_creation_input_tokens": 20, "cache_read_input_tokens": 120, "output_tokens": 10,
        },
        "permission_denials": [{"tool_name": "RunCommand", "tool_use_id": "c1", "tool_input": {}}],
    });
    assert_eq!(read[5], expected);
}

#[test]
fn discarded_partial_responses_appear_in_no_message() {
    let read = messages(vec![
        started(),
        task("say it"),
        EventKind::TextChunk { text: "half".to_owned() },
        EventKind::AnswerDiscarded { reason: "cut".to_owned() },
        EventKind::TextChunk { text: "whole".to_owned() },
        responded(Usage::default(), StopReason::EndTurn),
        completed("whole"),
    ]);
    let texts: Vec<_> = read.iter().filter_map(|line| line["message"]["content"][0]["text"].as_str()).collect();
    assert_eq!(texts, ["whole"]);
}

#[test]
fn the_result_names_the_reason_the_task_ended() {
    let budget = |unit| {
        let remedy = Remedy::RaiseBudget { scope: BudgetScope::Task, unit, limit: 4.0 };
        let failure = Failure::new(FailureKind::BudgetExceeded, "LLM_BUDGET_EXCEEDED: used up", "").with_remedy(remedy);
        EventKind::SessionPaused { failure }
    };
    for (kinds, subtype, message) in [
        (vec![failed_with(FailureKind::MaxStepsExceeded)], "error_max_turns", "it said no; try later"),
        (vec![budget(BudgetUnit::Steps)], "error_max_turns", "used up"),
        (vec![budget(BudgetUnit::CostUsd)], "error_max_budget_usd", "used up"),
        (vec![failed_with(FailureKind::Network)], "error_during_execution", "it said no; try later"),
        (vec![EventKind::TaskCancelled { step_count: 1 }], "error_during_execution", "the task was interrupted"),
        (vec![], "error_during_execution", "the session ended before the task was completed"),
    ] {
        let read = messages([vec![started()], kinds, vec![ended()]].concat());
        let result = read.last().unwrap();
        assert_eq!((&result["subtype"], &result["is_error"]), (&subtype.into(), &true.into()), "{result}");
        assert_eq!((&result["result"], &result["errors"]), (&message.into(), &serde_json::json!([message])), "{result}");
        assert_eq!(read.len(), 2, "{read:?}");
    }
}

#[test]
fn unannounced_calls_get_a_request_before_their_result() {
    let read = messages(vec![started(), refused(ErrorCode::PolicyDenied), completed("x")]);
    let kinds: Vec<_> = read.iter().filter_map(|line| line["message"]["content"][0]["type"].as_str()).collect();
    assert_eq!(kinds, ["tool_use", "tool_result"]);
}

#[test]
fn further_prompts_are_messages_and_the_last_task_is_the_result() {
    let read = messages(vec![started(), task("first"), completed("one"), task("again, please"), completed("two")]);
    assert_eq!(read[1]["type"], "user");
    assert_eq!(read[1]["message"]["content"][0]["text"], "again, please");
    assert_eq!(read[2]["result"], "two");
}

#[test]
fn only_the_rule_of_the_error_ends_the_reason_of_a_denial() {
    let denied = |error: ToolError| {
        let mut event = refused(error.code);
        if let EventKind::ToolCompleted { error: found, .. } = &mut event {
            *found = Some(error);
        }
        told(vec![requested("$ make"), event, completed("x")], Format::Text, false).err
    };
    let by_rule = denied(ToolError::from_rule("no `x (rule: y)` here", "hook a (b)", "; do it later"));
    assert!(by_rule.starts_with("✗ $ make: denied: no `x (rule: y)` here (rule: hook a (b))\nhint: 1 action"), "{by_rule}");
    let without_rule = denied(ToolError::new(ErrorCode::PolicyDenied, "a secret (rule: y); search without it"));
    assert_eq!(without_rule, "✗ $ make: denied: a secret (rule: y); search without it\n");
}
