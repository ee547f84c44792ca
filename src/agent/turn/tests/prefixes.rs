//! Tests of crashes after every record of every case: calls that need approval never run without it, and the results
//! of blocked runs always reach the model.

use super::*;
use crate::protocol::StepId;
use crate::session::{SessionState, TallyCounter, TallyEntry};
use std::collections::HashMap;

/// Returns the records that a case commits.
fn records_of(path: &Path) -> (Sim, Vec<Record>) {
    let mut sim = sim_of(&std::fs::read_to_string(path).unwrap());
    let mut all = Vec::new();
    for input in std::fs::read_to_string(path).unwrap().lines().filter_map(|line| line.strip_prefix("> ")) {
        // Records written by later versions are covered by another test.
        if input.starts_with("unreadable") {
            break;
        }
        let effects = sim.play(input);
        sim.perform(effects);
        all.clone_from(&sim.records);
    }
    (sim, all)
}

/// Returns how to resume after a crash that leaves `length` records, as arguments of `Sim::crash`: one of the three
/// ways, chosen by `length`, or all of them if `AYE_ALL_PREFIXES` is set.
fn ways_to_go_on(length: usize) -> impl Iterator<Item = &'static str> {
    let all = std::env::var_os("AYE_ALL_PREFIXES").is_some();
    let is_tried = move |(index, _): &(usize, &str)| all || *index == length % 3;
    ["", "go-on", "replace"].into_iter().enumerate().filter(is_tried).map(|(_, how)| how)
}

/// Returns the effects of a restart in which every planned call turns out to be a command that requires approval.
fn begun(sim: &mut Sim, how: &str) -> Vec<Effect> {
    let mut effects = sim.crash(how);
    let mut begun = Vec::new();
    while !effects.is_empty() {
        let mut planned = Vec::new();
        for effect in effects {
            match effect {
                Effect::Plan(calls) | Effect::HookCalls(calls) => {
                    planned.extend(calls.into_iter().map(|(index, call)| (index, call, "make")));
                }
                Effect::PlanOpened { index, call, .. } => planned.push((index, call, "+example.com make")),
                other => begun.push(other),
            }
        }
        for (index, call, _) in &planned {
            sim.calls.resize(sim.calls.len().max(index + 1), call.clone());
            sim.calls[*index].clone_from(call);
        }
        let plans = planned.iter().map(|(index, _, line)| sim.planned(&format!("{index}=exec {line}"))).collect::<Vec<_>>();
        let at = sim.at();
        effects = if plans.is_empty() { Vec::new() } else { sim.machine.handle(Input::Planned(plans), at) };
    }
    begun
}

/// Returns the results in the journal's last step that no later run has replaced.
fn kept_back(records: &[Record]) -> Vec<&ToolResult> {
    let mut kept: Vec<&ToolResult> = Vec::new();
    for record in records {
        match record {
            Record::KeptFrom { result, .. } => kept.push(result),
            // A run with more access, in the workspace or in a layer, replaces the result.
            Record::Started { tool_call_id, .. } | Record::PreviewStarted { tool_call_id, .. } => {
                kept.retain(|result| result.tool_call_id != *tool_call_id);
            }
            Record::Finished { result, .. } => kept.retain(|kept| kept.tool_call_id != result.tool_call_id),
            Record::StepCompleted { .. } | Record::TaskEnded { .. } => kept.clear(),
            _ => {}
        }
    }
    kept
}

fn is_result_of(part: &Part, kept: &ToolResult) -> bool {
    matches!(part, Part::ToolResult(result)
        if result.tool_call_id == kept.tool_call_id && result.output_text.starts_with(&kept.output_text))
}

#[test]
fn after_a_crash_at_any_record_nothing_runs_without_approval_and_no_result_is_lost() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/turn");
    let mut looked_at = 0;
    for file in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let (mut sim, all) = records_of(&file);
        for length in 1..=all.len() {
            for how in ways_to_go_on(length) {
                sim.records = all[..length].to_vec();
                let effects = begun(&mut sim, how);
                let place = format!("{} after {length} records, {how}", file.display());
                let acts = |effect: &Effect| matches!(effect, Effect::Run { .. } | Effect::Preview { .. });
                assert!(!effects.iter().any(acts), "{place}: it acts unasked");
                for kept in kept_back(&all[..length]) {
                    let asked = |effect: &Effect| {
                        matches!(effect, Effect::Emit { kind: EventKind::ApprovalRequested(approval), .. }
                            if approval.tool_call_id == kept.tool_call_id && !approval.opens.is_empty())
                    };
                    let told = |effect: &Effect| {
                        matches!(effect, Effect::Emit { kind: EventKind::ToolCompleted { output_text, .. }, .. }
                            if output_text.starts_with(&kept.output_text))
                    };
                    // If the response was saved but the result was not, the response is still part of the step.
                    let in_the_step = |effect: &Effect| {
                        let Effect::Commit(records, _) = effect else { return false };
                        records.iter().any(|record| {
                            matches!(record, Record::StepCompleted { message, .. }
                                if message.content.iter().any(|part| is_result_of(part, kept)))
                        })
                    };
                    let kept_there = |effect: &Effect| asked(effect) || told(effect) || in_the_step(effect);
                    assert!(effects.iter().any(kept_there), "{place}: a result is lost");
                    looked_at += 1;
                }
            }
        }
    }
    assert!(looked_at > 7, "only {looked_at} results were kept back");
}

#[test]
fn a_restored_machine_agrees_with_the_state_of_its_journal() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/turn");
    let mut compared = 0;
    for file in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let (mut sim, all) = records_of(&file);
        for length in 1..=all.len() {
            sim.records = all[..length].to_vec();
            let state = crate::session::SessionState::from_records(&sim.records);
            // The cost of a lost response is counted by the machine that continues the journal.
            if state.uncounted_bytes() > 0 {
                continue;
            }
            sim.crash("");
            let place = format!("{} after {length} records", file.display());
            let (machine, totals) = (sim.machine.requests.spending().totals(), state.totals());
            assert_eq!((machine.usage, machine.cost_usd), (totals.usage, totals.cost_usd), "{place}");
            assert_eq!(
                sim.machine.prompts.queue().iter().map(|waiting| &waiting.text).collect::<Vec<_>>(),
                state.queue.iter().map(|waiting| &waiting.text).collect::<Vec<_>>(),
                "{place}"
            );
            let running = sim.machine.tasks.current().filter(|task| task.user_command().is_none()).map(|task| task.id().clone());
            if let Some(id) = running {
                assert_eq!(Some(&id), state.task().map(|task| &task.task_id), "{place}");
            }
            compared += 1;
        }
    }
    assert!(compared > 500, "only {compared} journals were compared");
}

/// Step counts in a journal, as determined by three views.
#[derive(Debug, PartialEq)]
struct Steps {
    /// Count in an export and in an opened session.
    last_task: Option<(TaskId, u32)>,
    cursor: Option<StepId>,
    /// Count in the session list.
    listed: u64,
    /// Count over all tasks.
    counted: u64,
}

fn steps_of(records: &[Record]) -> Steps {
    let (mut state, mut list, mut tasks) = (SessionState::default(), TallyCounter::default(), HashMap::new());
    for record in records {
        state.apply(record);
        let json = serde_json::to_vec(record).unwrap();
        list.add(&TallyEntry::parse(&json).unwrap());
        if let Some(task) = state.task() {
            tasks.insert(task.task_id.clone(), u64::from(task.step_count));
        }
    }
    Steps {
        last_task: state.task().map(|task| (task.task_id.clone(), task.step_count)),
        cursor: state.step_cursor().cloned(),
        listed: list.tally.steps,
        counted: tasks.values().sum(),
    }
}

#[test]
fn after_a_crash_at_any_record_all_views_count_the_same_steps() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/turn");
    let (mut compared, mut answered) = (0, 0);
    for file in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let (mut sim, all) = records_of(&file);
        for length in 1..=all.len() {
            for how in ways_to_go_on(length) {
                sim.records = all[..length].to_vec();
                let place = format!("{} after {length} records, {how}", file.display());
                let before = steps_of(&sim.records);
                assert_eq!(before.listed, before.counted, "{place}: list and export");
                let effects = sim.crash(how);
                // A client learns the last step from the response to its first request, and afterwards from events.
                let completed = effects.iter().rev().find_map(|effect| match effect {
                    Effect::Emit { kind: EventKind::StepCompleted { .. }, step_id, .. } => step_id.clone(),
                    _ => None,
                });
                sim.perform(effects);
                let after = steps_of(&sim.records);
                assert_eq!(after.listed, after.counted, "{place}: list and export after it");
                assert_eq!(completed.or(before.cursor), after.cursor, "{place}: the last step");
                let tasks = &sim.machine.tasks;
                let task = tasks.current().filter(|task| task.user_command().is_none()).or(tasks.last_ended());
                let known = task.map(|task| (task.id().clone(), task.step_count()));
                if known.as_ref().map(|(id, _)| id) == after.last_task.as_ref().map(|(id, _)| id) {
                    assert_eq!(known, after.last_task, "{place}: the running session");
                }
                let ends_with_words = |record: &Record| match record {
                    Record::Answer { message, stop_reason, .. } => {
                        !message.content.is_empty()
                            && message.tool_calls().next().is_none()
                            && *stop_reason != StopReason::Cancelled
                    }
                    _ => false,
                };
                if all[..length].last().is_some_and(ends_with_words) && how.is_empty() {
                    assert_eq!(before.last_task, after.last_task, "{place}: before and after");
                    answered += 1;
                }
                compared += 1;
            }
        }
    }
    assert!(compared > 500 && answered > 10, "only {compared} journals were compared, {answered} of them end with a response");
}
