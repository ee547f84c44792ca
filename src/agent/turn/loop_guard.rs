//! Loop guard: requires approval for consecutive identical calls that have identical outcomes.
//!
//! A different outcome counts as progress and resets the count, so polling for a result or repeating a check after
//! each change is not a loop. Times of day and durations within outcomes are ignored.

use super::super::limits::SAME_CALLS;
use crate::protocol::{CallArguments, ErrorCode, ToolCall, ToolResult};
use regex::Regex;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::LazyLock;

/// Times and durations to ignore in outcomes, such as `12:04:33`, `0.34s`, `12 ms` and `1m 03s`.
static TIMES: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"\d{1,2}:\d\d(:\d\d([.,]\d+)?)?|\d+([.,]\d+)?\s?(ns|us|µs|ms|s|secs?|seconds?|m|min|mins|minutes?)\b").ok()
});

/// Identical calls at the end of the calls made so far in a task.
#[derive(Debug, Default)]
pub(super) struct LoopGuard {
    last: Option<(String, CallArguments)>,
    /// Outcome of the most recent call.
    outcome: Option<u64>,
    row: RepeatCount,
}

/// Position of a call within a series of identical calls.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct RepeatCount {
    /// Number of the series. A different call starts the next series.
    number: u64,
    /// Number of calls in the series so far.
    times: u32,
    /// Number of calls allowed without approval. Each approval raises it.
    free: u32,
}

impl LoopGuard {
    /// Returns the position of each call in a response within its series of identical calls. Arguments are equal if
    /// their JSON values are equal, regardless of key order.
    pub(super) fn count(&mut self, calls: &[ToolCall]) -> Vec<RepeatCount> {
        let mut rows = Vec::with_capacity(calls.len());
        for (index, call) in calls.iter().enumerate() {
            let before = match index.checked_sub(1) {
                Some(before) => calls.get(before).map(|before| (before.tool_name.as_str(), &before.arguments)),
                None => self.last.as_ref().map(|(name, arguments)| (name.as_str(), arguments)),
            };
            if before == Some((call.tool_name.as_str(), &call.arguments)) {
                self.row.times = self.row.times.saturating_add(1);
            } else {
                self.row = RepeatCount { number: self.row.number + 1, times: 1, free: SAME_CALLS - 1 };
            }
            rows.push(self.row);
        }
        if let Some(call) = calls.last() {
            self.last = Some((call.tool_name.clone(), call.arguments.clone()));
        }
        rows
    }

    /// Records the outcomes of a step's calls, in order. A denied call has no outcome and does not change anything.
    pub(super) fn on_results<'a>(&mut self, results: impl Iterator<Item = &'a ToolResult>) {
        let outcomes: Vec<Option<u64>> = results.map(outcome).collect();
        // Number of calls at the end that repeat the last call.
        let times = usize::try_from(self.row.times).unwrap_or(usize::MAX);
        let repeated = outcomes.len().min(times);
        if repeated == times {
            self.outcome = None;
        }
        let of_row = &outcomes[outcomes.len() - repeated..];
        for (place, outcome) in of_row.iter().enumerate() {
            let Some(outcome) = outcome else { continue };
            if self.outcome.is_some_and(|before| before != *outcome) {
                let times = u32::try_from(of_row.len() - place).unwrap_or(u32::MAX);
                self.row = RepeatCount { number: self.row.number + 1, times, free: SAME_CALLS - 1 };
            }
            self.outcome = Some(*outcome);
        }
    }

    /// Returns the number of calls in the series if that number requires approval.
    pub(super) fn excessive_repeats(&self, row: RepeatCount) -> Option<u32> {
        let free = if row.number == self.row.number { self.row.free } else { row.free };
        (row.times > free).then_some(row.times)
    }

    /// Records that a call runs. If it is a repeated call that was approved, this raises the limit.
    pub(super) fn allow(&mut self, row: RepeatCount) {
        if row.number == self.row.number && row.times > self.row.free {
            self.row.free = row.times.saturating_add(SAME_CALLS - 1);
        }
    }
}

/// Returns a hash of a result that ignores times and durations, or `None` if the call was denied or cancelled.
fn outcome(result: &ToolResult) -> Option<u64> {
    let code = result.error.as_ref().map(|error| error.code);
    if code.is_some_and(|code| code.is_denial() || code == ErrorCode::Cancelled) {
        return None;
    }
    let mut hasher = DefaultHasher::new();
    for text in [Some(&result.output_text), result.error.as_ref().map(|error| &error.message)].into_iter().flatten() {
        match &*TIMES {
            Some(times) => times.replace_all(text, "").hash(&mut hasher),
            None => text.hash(&mut hasher),
        }
    }
    result.images.len().hash(&mut hasher);
    Some(hasher.finish())
}

pub(super) fn ordinal(number: u32) -> String {
    let ending = match (number % 100, number % 10) {
        (11..=13, _) => "th",
        (_, 1) => "st",
        (_, 2) => "nd",
        (_, 3) => "rd",
        _ => "th",
    };
    format!("{number}{ending}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::CallId;

    fn call(name: &str, arguments: &str) -> ToolCall {
        ToolCall { tool_call_id: CallId::new("c"), tool_name: name.to_owned(), arguments: CallArguments::parse(arguments) }
    }

    fn times(guard: &mut LoopGuard, calls: &[ToolCall]) -> Vec<u32> {
        guard.count(calls).iter().map(|row| row.times).collect()
    }

    #[test]
    fn calls_with_the_same_tool_and_json_are_repeats_regardless_of_key_order() {
        let mut guard = LoopGuard::default();
        let one = call("Grep", r#"{"pattern": "a", "path": "b"}"#);
        let same = call("Grep", r#"{ "path":"b", "pattern":"a" }"#);
        assert_eq!(times(&mut guard, &[one.clone(), same.clone()]), [1, 2]);
        assert_eq!(times(&mut guard, std::slice::from_ref(&one)), [3]);
        assert_eq!(times(&mut guard, &[call("Glob", r#"{"pattern": "a", "path": "b"}"#), one]), [1, 1]);
        assert_eq!(times(&mut guard, &[]), [0; 0]);
        assert_eq!(times(&mut guard, &[same, call("Grep", r#"{"path": "c", "pattern": "a"}"#)]), [2, 1]);
    }

    #[test]
    fn approval_allows_the_same_number_of_repeats_again_and_a_different_call_resets_the_count() {
        let mut guard = LoopGuard::default();
        let mut asked = Vec::new();
        for _ in 0..30 {
            let row = guard.count(&[call("ReadFile", "{}")])[0];
            asked.extend(guard.excessive_repeats(row));
            guard.allow(row);
        }
        assert_eq!(asked, [8, 16, 24]);
        let late = guard.count(&[call("ReadFile", "{}"), call("Stat", "{}"), call("ReadFile", "{}")]);
        assert!(late.iter().all(|row| guard.excessive_repeats(*row).is_none()));
        guard.allow(RepeatCount { times: 40, ..late[0] });
        assert_eq!(guard.row, RepeatCount { number: 3, times: 1, free: 7 });
    }

    #[test]
    fn after_a_denial_the_next_repeat_needs_approval_too() {
        let mut guard = LoopGuard::default();
        let rows = guard.count(&vec![call("ReadFile", "{}"); 10]);
        let asked: Vec<_> = rows.iter().filter_map(|row| guard.excessive_repeats(*row)).collect();
        assert_eq!(asked, [8, 9, 10]);
        guard.allow(rows[7]);
        assert!(rows.iter().all(|row| guard.excessive_repeats(*row).is_none()));
    }

    fn results(outputs: &[&str]) -> Vec<ToolResult> {
        outputs
            .iter()
            .map(|output| match output.strip_prefix("denied") {
                Some(why) => {
                    ToolResult::from_error(CallId::new("c"), "T", crate::protocol::ToolError::new(ErrorCode::UserDenied, why))
                }
                None => ToolResult::success(CallId::new("c"), "T", *output),
            })
            .collect()
    }

    /// Returns the length of the current series after each of these steps.
    fn rows(steps: &[(&[ToolCall], &[&str])]) -> Vec<u32> {
        let mut guard = LoopGuard::default();
        let after = |(calls, outputs): &(&[ToolCall], &[&str])| {
            guard.count(calls);
            guard.on_results(results(outputs).iter());
            guard.row.times
        };
        steps.iter().map(after).collect()
    }

    #[test]
    fn a_different_result_resets_the_repeat_count() {
        let poll = [call("CliRead", "{}")];
        let poll: &[ToolCall] = &poll;
        let thrice = vec![poll[0].clone(); 3];
        assert_eq!(rows(&[(poll, &["10 %"]), (poll, &["20 %"]), (poll, &["20 %"]), (poll, &["30 %"])]), [1, 1, 2, 1]);
        assert_eq!(rows(&[(&thrice, &["a", "a", "b"]), (&thrice, &["b", "b", "b"])]), [1, 4]);
        // A different call in between resets the count, regardless of its result.
        let other = [call("Stat", "{}"), poll[0].clone()];
        assert_eq!(rows(&[(poll, &["a"]), (&other, &["x", "a"]), (poll, &["a"])]), [1, 1, 2]);
        // A denial is not an outcome.
        assert_eq!(rows(&[(poll, &["a"]), (poll, &["denied"]), (poll, &["a"]), (poll, &["denied"])]), [1, 2, 3, 4]);
    }

    #[test]
    fn results_that_differ_only_in_times_and_durations_are_treated_as_equal() {
        let test = [call("RunCommand", "{}")];
        let test: &[ToolCall] = &test;
        let same = ["1 failed in 0.02s at 12:04:33", "1 failed in 0.41s at 12:05:01", "1 failed in 1s at 12:05:01.100"];
        assert_eq!(rows(&same.map(|output| (test, std::slice::from_ref(Box::leak(Box::new(output)))))), [1, 2, 3]);
        assert_eq!(rows(&[(test, &["2 failed in 1 s"]), (test, &["1 failed in 1 s"])]), [1, 1]);
    }

    #[test]
    fn ordinals_have_the_correct_suffix() {
        let words: Vec<_> = [1, 2, 3, 8, 11, 12, 13, 16, 22, 24, 111, 121].into_iter().map(ordinal).collect();
        assert_eq!(words, ["1st", "2nd", "3rd", "8th", "11th", "12th", "13th", "16th", "22nd", "24th", "111th", "121st"]);
    }
}
