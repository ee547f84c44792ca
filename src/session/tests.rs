//! Tests of the session state after individual records and after arbitrary sequences of records.

use super::{CallStage, Change, OpenCall, PromptRewind, SessionState, TallyCounter, TallyEntry, Totals};
use crate::ports::{Record, TaskEnd};
use crate::protocol::*;
use jiff::Timestamp;
use proptest::prelude::*;

fn message(id: u32, role: Role, content: Vec<Part>) -> Message {
    Message {
        message_id: MessageId::new(format!("msg_{id}")),
        role,
        content,
        token_count: 1,
        task_id: TaskId::new(format!("task_{id}")),
        step_id: None,
        timestamp: Timestamp::UNIX_EPOCH,
    }
}

fn text(text: &str) -> Part {
    Part::Text { text: text.to_owned() }
}

fn prompt(id: u32, words: &str) -> Record {
    Record::TaskStarted { prompt: message(id, Role::User, vec![text(words)]), max_steps: 9 }
}

fn call(id: &str) -> ToolCall {
    let arguments = CallArguments::Object(serde_json::Map::new());
    ToolCall { tool_call_id: CallId::new(id), tool_name: "RunCommand".to_owned(), arguments }
}

fn answer(id: u32, calls: &[&str]) -> Record {
    let calls = calls.iter().map(|id| Part::ToolCall(call(id)));
    Record::Answer {
        message: message(id, Role::Assistant, std::iter::once(text("done")).chain(calls).collect()),
        usage: usage(100),
        stop_reason: StopReason::EndTurn,
        latency_ms: 1,
        model: "acme/one".to_owned(),
        cost_usd: Some(0.5),
        estimated: false,
    }
}

fn usage(input_tokens: u64) -> Usage {
    Usage { input_tokens, output_tokens: 7, ..Usage::default() }
}

fn wasted(cost_usd: Option<f64>) -> Record {
    Record::Wasted { usage: usage(10), cost_usd, estimated: true, model: cost_usd.map(|_| "a/small".to_owned()) }
}

fn intent(id: &str) -> Record {
    Record::Intent {
        step_id: StepId::new("step_1"),
        call: call(id),
        summary: format!("$ {id}"),
        actions: Vec::new(),
        proposal: None,
        changes: true,
    }
}

fn started(id: &str) -> Record {
    Record::Started { tool_call_id: CallId::new(id), rule: String::new(), places: Vec::new(), told: None, edited: None }
}

fn finished(id: &str) -> Record {
    Record::Finished { result: ToolResult::success(CallId::new(id), "RunCommand", "ok"), latency_ms: 3 }
}

fn decided(id: &str, decision: Decision) -> Record {
    Record::Decided { approval_id: ApprovalId::new("approval_1"), tool_call_id: CallId::new(id), decision }
}

fn ended(end: TaskEnd) -> Record {
    Record::TaskEnded { task_id: TaskId::new("task_1"), step_count: 1, end }
}

fn step(count: u32) -> Record {
    let step_id = StepId::new(format!("step_{count}"));
    Record::StepStarted { task_id: TaskId::new("task_1"), step_id, step_count: count }
}

fn partial(words: &str) -> Record {
    Record::PartialAnswer { step_id: StepId::new("step_1"), text: words.to_owned() }
}

fn rewound(target: RewindTarget, from: Option<u32>) -> Record {
    let rewound = Rewound {
        target,
        scope: RewindScope::Both,
        restored: 0,
        kept: Vec::new(),
        messages: 1,
        message: String::new(),
        prompt: None,
    };
    let from = from.map(|id| MessageId::new(format!("msg_{id}")));
    Record::Rewound { rewind_id: "rewind_1".to_owned(), from, rewound }
}

fn state(records: &[Record]) -> SessionState {
    SessionState::from_records(records)
}

fn any_record() -> impl Strategy<Value = Record> {
    let call = || prop::sample::select(vec!["c1", "c2"]);
    prop_oneof![
        (0..6_u32, "[a-z\n ]{0,9}").prop_map(|(id, words)| prompt(id, &words)),
        (6..12_u32).prop_map(|id| Record::Steered { message: message(id, Role::User, vec![text("and that")]) }),
        (1..4_u32).prop_map(step),
        (12..30_u32, prop::bool::ANY).prop_map(|(id, calls)| answer(id, if calls { &["c1", "c2"][..] } else { &[] })),
        prop::option::of(0.0..2.0_f64).prop_map(wasted),
        prop::sample::select(vec!["docs", SAMPLED_BY_AGENT]).prop_map(|server| Record::Sampled {
            server: server.to_owned(),
            usage: usage(3),
            cost_usd: None,
            estimated: false
        }),
        Just(Record::MandateSet { digest: Some("d1".to_owned()), actions: Vec::new(), asks: Vec::new() }),
        Just(Record::Reviewed { usage: usage(4), cost_usd: None, estimated: false }),
        call().prop_map(intent),
        call().prop_map(started),
        call().prop_map(finished),
        call().prop_map(|id| decided(id, Decision::Approved)),
        call().prop_map(|id| decided(id, Decision::denied(None))),
        (30..40_u32, 1..4_u32).prop_map(|(id, step_count)| Record::StepCompleted {
            task_id: TaskId::new("task_1"),
            step_id: StepId::new("step_1"),
            step_count,
            message: message(id, Role::Tool, Vec::new()),
        }),
        Just(Record::Queue { prompts: vec![QueuedMessage { id: 1, text: "next".to_owned(), steer: false }] }),
        Just(Record::Queue { prompts: Vec::new() }),
        Just(partial("so ")),
        Just(Record::AnswerDiscarded { step_id: StepId::new("step_1"), reason: "cut".to_owned() }),
        Just(ended(TaskEnd::Completed)),
        Just(ended(TaskEnd::Cancelled)),
        Just(Record::Continued),
        (0..6_u32).prop_map(|id| rewound(RewindTarget::Last, Some(id))),
        Just(rewound(RewindTarget::Redo, None)),
        Just(Record::Unreadable),
    ]
}

proptest! {
    #[test]
    fn applying_records_one_by_one_gives_the_state_of_the_whole_journal(records in prop::collection::vec(any_record(), 0..40), cut in 0..40_usize) {
        let stored = records.iter().map(|record| serde_json::to_string(record).unwrap());
        let stored: Vec<Record> = stored.map(|json| serde_json::from_str(&json).unwrap()).collect();
        let (before, after) = records.split_at(cut.min(records.len()));
        let mut resumed = state(before);
        for record in after {
            resumed.apply(record);
        }
        prop_assert_eq!(format!("{resumed:?}"), format!("{:?}", state(&stored)));
    }

    #[test]
    fn tallies_from_partially_parsed_records_equal_those_of_the_full_state(records in prop::collection::vec(any_record(), 0..40)) {
        let mut counter = TallyCounter::default();
        for record in &records {
            let json = serde_json::to_vec(record).unwrap();
            let entry = TallyEntry::parse(&json).unwrap();
            prop_assert_eq!(&entry, &TallyEntry::from(record));
            counter.add(&entry);
        }
        let state = state(&records);
        prop_assert_eq!(counter.tally, state.tally());
        prop_assert_eq!(state.tally().queued, state.queue.len() as u64);
    }

    #[test]
    fn changes_include_every_cost_and_every_call_closed_by_a_step(records in prop::collection::vec(any_record(), 0..40)) {
        let (mut state, mut totals) = (SessionState::default(), Totals::default());
        for record in &records {
            let open: Vec<CallId> = state.calls().iter().map(|call| call.tool_call_id.clone()).collect();
            let applied = state.apply(record);
            if let Change::Answered { spent, .. } | Change::Spent { spent, .. } | Change::Compacted { spent, .. } = applied.change {
                totals.add(spent);
            }
            let closed: Vec<CallId> = applied.closed.into_iter().map(|call| call.tool_call_id).collect();
            prop_assert!(closed.is_empty() || closed == open, "{:?} of {:?}", closed, open);
        }
        prop_assert_eq!(totals, state.totals());
    }
}

#[test]
fn a_message_written_twice_counts_once() {
    let records = [prompt(1, "x"), answer(2, &[]), answer(2, &[]), prompt(1, "x")];
    let state = state(&records);
    assert_eq!((state.tally().tasks, state.totals().usage.input_tokens, state.records), (1, 100, 4));
}

#[test]
fn sampling_and_failed_requests_count_for_the_session_and_its_last_task() {
    let sampled = Record::Sampled { server: "docs".to_owned(), usage: usage(3), cost_usd: Some(0.25), estimated: true };
    let before = [prompt(1, "x"), answer(2, &[]), wasted(None), ended(TaskEnd::Completed)];
    let state = state(&[before.as_slice(), &[prompt(3, "y"), sampled]].concat());
    let sum = state.history_sum();
    assert_eq!((sum.usage.input_tokens, sum.cost_usd, sum.estimated), (113, Some(0.75), true));
    assert_eq!((sum.task_usage.input_tokens, sum.task_cost_usd), (3, Some(0.25)));
    assert_eq!(state.totals().whole_cost_usd(), None, "the failed request has no known price");
    assert_eq!(state.task_totals.whole_cost_usd(), Some(0.25));
}

#[test]
fn review_usage_counts_for_the_session_but_for_no_task() {
    let reviewed = Record::Reviewed { usage: usage(5), cost_usd: Some(0.25), estimated: false };
    let state = state(&[prompt(1, "x"), reviewed.clone(), ended(TaskEnd::Completed), reviewed]);
    let sum = state.history_sum();
    assert_eq!((sum.usage.input_tokens, sum.cost_usd), (10, Some(0.5)));
    assert_eq!((sum.task_usage.input_tokens, sum.task_cost_usd), (0, None));
}

#[test]
fn a_session_is_done_when_its_task_is_completed_and_the_queue_is_empty() {
    let queue =
        |count: usize| Record::Queue { prompts: vec![QueuedMessage { id: 1, text: "y".to_owned(), steer: false }; count] };
    for (records, done) in [
        (vec![], true),
        (vec![prompt(1, "x")], false),
        (vec![prompt(1, "x"), ended(TaskEnd::Cancelled)], false),
        (vec![prompt(1, "x"), ended(TaskEnd::Completed)], true),
        (vec![prompt(1, "x"), queue(1), ended(TaskEnd::Completed)], false),
        (vec![prompt(1, "x"), queue(1), queue(0), ended(TaskEnd::Completed)], true),
    ] {
        assert_eq!(state(&records).is_done(), done, "{records:?}");
    }
}

#[test]
fn calls_without_a_result_are_tracked_until_their_step_ends() {
    let mut records = vec![prompt(1, "x"), step(1), answer(2, &["c1", "c2"]), intent("c1"), started("c1"), finished("c1")];
    records.extend([intent("c2"), started("c2")]);
    let open = state(&records);
    let without = |state: &SessionState| {
        state.calls().iter().filter(|call| call.has_no_result()).map(|call| call.summary.clone()).collect::<Vec<_>>()
    };
    assert_eq!(without(&open), ["$ c2"]);
    assert!(open.call(&CallId::new("c2")).is_some_and(OpenCall::is_running));
    records.push(step(2));
    assert_eq!(without(&state(&records)), [""; 0], "what began before a step has an end, also where it cannot be read");
}

#[test]
fn denied_calls_are_done_and_other_calls_count_as_started_after_an_unreadable_record() {
    let mut records = vec![prompt(1, "x"), answer(2, &["c1", "c2"]), intent("c1"), intent("c2")];
    records.push(decided("c1", Decision::denied(Some("no".to_owned()))));
    records.push(Record::Unreadable);
    let state = state(&records);
    let stages: Vec<CallStage> = state.calls().iter().map(|call| call.stage).collect();
    assert_eq!(stages, [CallStage::Done, CallStage::Running]);
    assert_eq!(state.calls()[0].denied, Some(CallDenial { by: Denier::User, reason: Some("no".to_owned()) }));
}

#[test]
fn an_interrupted_response_is_reported_with_the_record_that_follows() {
    let mut state = state(&[prompt(1, "x"), step(1), partial("half "), partial("of it")]);
    assert_eq!((state.interrupted_answer().map(|(text, _)| text), state.uncounted_bytes()), (Some("half of it"), 10));
    let paid = wasted(None);
    assert_eq!((state.apply(&paid).interrupted, state.uncounted_bytes()), (None, 0), "paid for, and still shown");
    let next = step(1);
    assert_eq!(state.apply(&next).interrupted, Some(("half of it".to_owned(), "aye exited here")));
    assert_eq!(state.interrupted_answer(), None);
}

#[test]
fn a_rewind_removes_prompts_and_redo_restores_them() {
    let into = RewindTarget::Before { task_id: TaskId::new("task_1"), step_id: Some(StepId::new("step_2")) };
    let lines = |state: &SessionState| state.prompts().iter().map(|prompt| prompt.line.clone()).collect::<Vec<_>>();
    let records = [prompt(1, "one"), answer(2, &[]), prompt(3, "\n two\nlines")];
    for rewind in [rewound(RewindTarget::Last, Some(3)), rewound(into, Some(2))] {
        let mut state = state(&records);
        state.apply(&rewind);
        assert_eq!((lines(&state), state.task()), (vec!["one".to_owned()], None), "{rewind:?}");
        let redo = rewound(RewindTarget::Redo, None);
        assert!(matches!(state.apply(&redo).change, Change::Rewound { effect: PromptRewind::Redone { prompts: 1 }, .. }));
        assert_eq!(lines(&state), ["one", "two"]);
        assert!(matches!(state.apply(&redo).change, Change::Rewound { effect: PromptRewind::None, .. }), "only once");
    }
}

#[test]
fn the_title_is_the_first_line_of_the_first_prompt_or_command() {
    let own = Record::OwnStarted {
        task_id: TaskId::new("task_1"),
        step_id: StepId::new("step_1"),
        call: ToolCall { arguments: CallArguments::parse(r#"{"command": "ls -l"}"#), ..call("own_1") },
        shared: true,
        check: false,
    };
    assert_eq!(state(&[own, prompt(1, "x")]).title.as_deref(), Some("! ls -l"));
    let long = state(&[prompt(1, &format!("\n a\u{1b}{}", "b".repeat(99)))]).title.unwrap();
    assert!(long.starts_with("a b") && long.ends_with('…') && long.chars().count() == 80, "{long}");
    assert_eq!(state(&[prompt(1, "")]).title.as_deref(), Some("(no text)"));
}
