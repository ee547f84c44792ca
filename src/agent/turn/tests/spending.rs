//! Tests of usage and cost, and of the note that tells the model about a guardrail.

use super::*;

/// Returns the requests among the effects of an input.
fn requests(effects: &[Effect]) -> Vec<&ModelRequest> {
    let mut found = Vec::new();
    for effect in effects {
        if let Effect::Request(request) = effect {
            found.push(request);
        }
    }
    found
}

/// Plays these inputs and saves what they commit. Returns the effects of the last input.
fn played(sim: &mut Sim, lines: &[&str]) -> Vec<Effect> {
    let mut last = Vec::new();
    for line in lines {
        last = sim.play(line);
        let records = last.iter().filter_map(|effect| match effect {
            Effect::Commit(records, _) => Some(records.clone()),
            _ => None,
        });
        sim.records.extend(records.flatten());
    }
    last
}

fn cost_after(lines: &[&str]) -> (Option<f64>, Option<f64>) {
    let mut sim = Sim::new(Approver::User, 50);
    played(&mut sim, lines);
    let before = sim.machine.totals();
    sim.crash("");
    assert_eq!(sim.machine.totals(), before, "another process counts the same");
    (sim.machine.totals().2, sim.machine.requests.spending().totals().cost_usd)
}

fn is_near(cost: Option<f64>, expected: f64) -> bool {
    cost.is_some_and(|cost| (cost - expected).abs() < 1e-12)
}

#[test]
fn each_request_is_priced_by_its_own_model_even_after_a_restart() {
    // A million tokens cost one dollar, and each response uses 100 tokens.
    let (cost, _) = cost_after(&["prompt one", "answer end_turn | One", "prompt two", "answer end_turn | Two"]);
    assert!(is_near(cost, 0.0002), "{cost:?}");
    // A request that was sent before the switch is charged at its own model's price.
    let (cost, _) = cost_after(&[
        "prompt one",
        "model other/model",
        "opened other/model 50",
        "answer end_turn | One",
        "prompt two",
        "answer end_turn | Two",
    ]);
    assert!(is_near(cost, 0.0051), "{cost:?}");
}

#[test]
fn failed_requests_are_counted_and_an_unknown_price_makes_the_total_unknown() {
    let (cost, _) = cost_after(&["prompt one", "wasted overloaded busy", "woken 1", "answer end_turn | One"]);
    assert!(is_near(cost, 0.00015), "{cost:?}");
    let (cost, known) = cost_after(&[
        "prompt one",
        "answer end_turn | One",
        "model other/model",
        "opened other/model",
        "prompt two",
        "answer end_turn | Two",
    ]);
    assert!(cost.is_none() && is_near(known, 0.0001), "{cost:?} {known:?}");
}

#[test]
fn partial_output_of_a_stopped_response_is_counted() {
    let words = "words ".repeat(20);
    let mut sim = Sim::new(Approver::User, 50);
    let last = played(&mut sim, &["prompt one", &format!("text {words}"), "cancel"]);
    let told = last.iter().position(|effect| {
        matches!(effect, Effect::Emit { kind: EventKind::LlmRequestCompleted { stop_reason: StopReason::Cancelled, cost_usd, .. }, .. }
            if cost_usd.is_some())
    });
    let ends = last.iter().position(|effect| matches!(effect, Effect::Emit { kind: EventKind::TaskCancelled { .. }, .. }));
    assert!(told.is_some() && told < ends, "what it cost is said at once");
    let counts = |record: &Record| matches!(record, Record::Answer { usage, estimated: true, .. } if usage.output_tokens > 20);
    assert!(sim.records.iter().any(counts));
    let mut sim = Sim::new(Approver::User, 50);
    let last = played(&mut sim, &["prompt one", &format!("text {words}"), "fail invalid_request no"]);
    let told = |effect: &Effect| {
        matches!(effect, Effect::Emit { kind: EventKind::LlmRequestCompleted { stop_reason: StopReason::Error, .. }, .. })
    };
    assert_eq!(last.iter().filter(|effect| told(effect)).count(), 1);
    let mut sim = Sim::new(Approver::User, 50);
    played(&mut sim, &["prompt one", "cancel"]);
    assert_eq!(sim.machine.totals().1, 0, "nothing came, so nothing is known to be used");
}

#[test]
fn the_estimate_of_the_next_request_follows_the_token_count_of_the_last_one() {
    let mut sim = Sim::new(Approver::User, 50);
    played(&mut sim, &["prompt one"]);
    let at = sim.at();
    let before = sim.machine.requests.next_request(&sim.machine.cx, at);
    played(&mut sim, &["answer end_turn@12 | One"]);
    let after = sim.machine.requests.next_request(&sim.machine.cx, at);
    assert!(after.input_tokens > 3 * before.input_tokens, "{before:?} {after:?}");
    assert_eq!(after.output_tokens, 500);
}

#[test]
fn cached_input_is_estimated_as_cheap_only_until_the_cache_expires() {
    let mut sim = Sim::new(Approver::User, 50);
    played(&mut sim, &["prompt one"]);
    let usage = Usage { input_tokens: 100, cache_read_tokens: 40, cache_write_tokens: 20, output_tokens: 1, ..Usage::default() };
    let content = vec![Part::Text { text: "words".repeat(400) }];
    let completion = Completion { content, stop_reason: StopReason::EndTurn, usage, model: None };
    let at = sim.at();
    sim.machine.handle(Input::Delta(Delta::Completed(completion)), at);
    let warm = sim.machine.requests.next_request(&sim.machine.cx, at);
    assert_eq!(warm.cache_read_tokens, 60);
    let later = InputTime { now: at.now + jiff::SignedDuration::from_secs(301), ..at };
    let cold = sim.machine.requests.next_request(&sim.machine.cx, later);
    assert_eq!((cold.cache_read_tokens, cold.cache_write_tokens), (0, cold.input_tokens));
}

#[test]
fn the_model_gets_the_guardrail_note_once_even_after_a_restart() {
    let blocked = "LLM_GUARDRAIL_BLOCKED: the last attempt was blocked";
    for restart in [false, true] {
        // The next prompt contains the note after its own text.
        let mut sim = Sim::new(Approver::User, 50);
        played(&mut sim, &["prompt one", "fail guardrail_blocked your request was flagged as unsafe"]);
        if restart {
            sim.crash("");
        }
        let effects = played(&mut sim, &["prompt two"]);
        let last = requests(&effects)[0].messages.last().unwrap().clone();
        assert!(
            last.typed_text() == "two" && last.text().contains(blocked) && last.text().contains("flagged as unsafe"),
            "{last:?}"
        );
        played(&mut sim, &["answer end_turn | Two"]);
        if restart {
            sim.crash("");
        }
        let effects = played(&mut sim, &["prompt three"]);
        let all = &requests(&effects)[0].messages;
        assert_eq!(all.iter().filter(|message| message.text().contains(blocked)).count(), 1);
        assert!(!all.last().unwrap().text().contains(blocked));
        assert!(sim.records.iter().all(|record| !serde_json::to_string(record).unwrap().contains("Do not repeat")));
    }
}

#[test]
fn a_task_continued_after_a_guardrail_gets_the_note_with_its_last_results() {
    for restart in [false, true] {
        let mut sim = Sim::new(Approver::User, 50);
        played(
            &mut sim,
            &[
                "prompt one",
                "answer tool_use | #c1 ReadFile {}",
                "planned 0=read a",
                "finished 0 text of a",
                "answer refusal | No",
            ],
        );
        if restart {
            sim.crash("");
        }
        let effects = played(&mut sim, &["continue"]);
        let last = requests(&effects)[0].messages.last().unwrap().clone();
        let Some(Part::ToolResult(result)) = last.content.last() else { panic!("{last:?}") };
        assert!(result.output_text.starts_with("text of a\n\n[LLM_GUARDRAIL_BLOCKED"), "{}", result.output_text);
    }
}

#[test]
fn command_line_options_override_the_recorded_effort_and_a_model_change_is_recorded() {
    let mut sim = Sim::new(Approver::User, 50);
    played(&mut sim, &["prompt one", "answer end_turn | One", "effort high"]);
    let begun = |model_before: &str, this_run: bool, effort: Option<Effort>| {
        let mut machine = machine(Approver::User, 50);
        machine.cx.options.model_before = Some(model_before.to_owned());
        (machine.cx.options.effort, machine.cx.options.effort_for_this_run) = (effort, this_run);
        let effects = machine.restore(sim.records.clone(), Vec::new(), ResumePolicy::Pause, sim.at());
        let told = effects.iter().any(|effect| matches!(effect, Effect::Emit { kind: EventKind::ModelChanged { .. }, .. }));
        (machine.cx.options.effort, told)
    };
    assert_eq!(begun("test/model", false, Some(Effort::Low)), (Some(Effort::High), false), "said in the session, not only set");
    assert_eq!(begun("test/model", true, Some(Effort::Low)), (Some(Effort::Low), true));
    let without: Vec<Record> = sim.records.drain(..).filter(|record| !matches!(record, Record::ModelChosen { .. })).collect();
    let mut machine = machine(Approver::User, 50);
    machine.cx.options.model_before = Some("old/model".to_owned());
    machine.restore(without, Vec::new(), ResumePolicy::Pause, sim.at());
    assert!(
        machine
            .cx
            .out
            .pending()
            .iter()
            .any(|record| matches!(record, Record::ModelChosen { model, .. } if model == "test/model"))
    );
}

#[test]
fn a_response_lost_in_a_crash_is_counted_and_reported_once() {
    let words = "words ".repeat(200);
    let mut sim = Sim::new(Approver::User, 50);
    played(&mut sim, &["prompt one", &format!("text {words}"), "wait 1500", &format!("text {words}")]);
    assert_eq!(sim.machine.totals().1, 0);
    let effects = sim.crash("");
    let said = |effect: &Effect| matches!(effect, Effect::Emit { kind: EventKind::Notice { message, .. }, .. } if message.contains("which is lost; it counts"));
    assert_eq!(effects.iter().filter(|effect| said(effect)).count(), 1);
    let total = sim.machine.totals().1;
    assert!(total > 500, "{total}");
    let committed = effects.into_iter().filter_map(|effect| match effect {
        Effect::Commit(records, _) => Some(records),
        _ => None,
    });
    sim.records.extend(committed.flatten());
    let effects = sim.crash("go-on");
    assert!(!effects.iter().any(said), "it was counted by the process before");
    assert_eq!(sim.machine.totals().1, total);
}

#[test]
fn a_response_counted_at_exit_is_not_counted_again() {
    let words = "words ".repeat(200);
    let mut sim = Sim::new(Approver::User, 50);
    played(&mut sim, &["prompt one", &format!("text {words}"), "wait 1500", &format!("text {words}"), "quit"]);
    let total = sim.machine.totals().1;
    assert!(total > 500, "{total}");
    sim.crash("go-on");
    assert_eq!(sim.machine.totals().1, total);
}

#[test]
fn a_summary_is_priced_by_the_model_that_received_its_request() {
    let fills = ["prompt first", "answer end_turn@100 | ~5000~", "prompt second", "answer end_turn@100 | ~4000~", "prompt third"];
    let done = ["answer end_turn@9000 | Summed up.", "answer end_turn@100 | done"];
    // The conversation has 300 tokens at $1 per million. The summary requests cost either $0.10 or $1 per million.
    for (failed, expected, models) in [
        (&[][..], 300.0 + 900.0, ["compacted small/model"].as_slice()),
        (
            &["wasted overloaded busy", "woken 1", "wasted invalid_request no"],
            300.0 + 5.0 + 5.0 + 9_000.0,
            &["wasted small/model", "wasted small/model"],
        ),
        (&["answer refusal@9000 | No."], 300.0 + 900.0 + 9_000.0, &["wasted small/model"]),
    ] {
        let mut sim = sim_of("# window=10000 summary=50000");
        played(&mut sim, &[&fills, failed, &done[..]].concat());
        let cost = sim.machine.totals().2;
        assert!(is_near(cost, expected / 1e6), "{failed:?}: {cost:?}");
        let named = sim.records.iter().filter_map(|record| match record {
            Record::Compacted { compaction, .. } => Some(format!("compacted {}", compaction.model.as_ref()?)),
            Record::Wasted { model, .. } => Some(format!("wasted {}", model.as_ref()?)),
            _ => None,
        });
        assert_eq!(named.collect::<Vec<_>>(), models, "{failed:?}");
        sim.crash("");
        assert_eq!(sim.machine.totals().2, cost, "another process counts the same");
    }
}
