//! The same call again and again: the person is asked whether it goes on.

use super::super::limits::SAME_CALLS;
use super::{Call, Machine};
use crate::policy::Question;
use crate::protocol::{Arguments, ToolCall};

/// The calls of a task, as far as the last of them repeat one.
#[derive(Debug, Default)]
pub(super) struct LoopGuard {
    last: Option<(String, Arguments)>,
    row: Row,
}

/// A call among those before it that were the same.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Row {
    /// Which row; another call begins the next.
    number: u64,
    /// How many there are in it until now.
    times: u32,
    /// So many are let through; a yes lets more.
    free: u32,
}

impl LoopGuard {
    /// For each call of an answer, the row it stands in. Arguments are the same where their JSON is, in whatever order.
    pub(super) fn count(&mut self, calls: &[ToolCall]) -> Vec<Row> {
        let mut rows = Vec::with_capacity(calls.len());
        for (index, call) in calls.iter().enumerate() {
            let before = match index.checked_sub(1) {
                Some(before) => calls.get(before).map(|before| (before.tool_name.as_str(), &before.arguments)),
                None => self.last.as_ref().map(|(name, arguments)| (name.as_str(), arguments)),
            };
            if before == Some((call.tool_name.as_str(), &call.arguments)) {
                self.row.times = self.row.times.saturating_add(1);
            } else {
                self.row = Row { number: self.row.number + 1, times: 1, free: SAME_CALLS - 1 };
            }
            rows.push(self.row);
        }
        if let Some(call) = calls.last() {
            self.last = Some((call.tool_name.clone(), call.arguments.clone()));
        }
        rows
    }

    /// How many times in a row, where that is too often.
    fn too_often(&self, row: Row) -> Option<u32> {
        let free = if row.number == self.row.number { self.row.free } else { row.free };
        (row.times > free).then_some(row.times)
    }

    /// It runs. Where it was too often, that was a yes, which lets as many through as there were without a question.
    pub(super) fn allow(&mut self, row: Row) {
        if row.number == self.row.number && row.times > self.row.free {
            self.row.free = row.times.saturating_add(SAME_CALLS - 1);
        }
    }
}

impl Machine {
    /// Why a call that may run is asked about all the same.
    pub(super) fn goes_in_circles(&self, call: &Call) -> Option<String> {
        let times = self.task.as_ref()?.guard.too_often(call.row)?;
        Some(format!("the same call for the {} time in a row, with the same arguments", ordinal(times)))
    }

    /// A question that a rule asks, with that reason besides its own.
    pub(super) fn asking_why(&self, call: &Call, mut question: Question) -> Question {
        if let Some(why) = self.goes_in_circles(call) {
            question.reason = format!("{why}; {}", question.reason);
        }
        question
    }

    pub(super) fn let_pass(&mut self, row: Row) {
        if let Some(task) = &mut self.task {
            task.guard.allow(row);
        }
    }
}

fn ordinal(number: u32) -> String {
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
        ToolCall { tool_call_id: CallId::new("c"), tool_name: name.to_owned(), arguments: Arguments::parse(arguments) }
    }

    fn times(guard: &mut LoopGuard, calls: &[ToolCall]) -> Vec<u32> {
        guard.count(calls).iter().map(|row| row.times).collect()
    }

    #[test]
    fn calls_are_the_same_by_their_tool_and_their_json_in_whatever_order() {
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
    fn a_yes_lets_as_many_through_and_another_call_begins_anew() {
        let mut guard = LoopGuard::default();
        let mut asked = Vec::new();
        for _ in 0..30 {
            let row = guard.count(&[call("ReadFile", "{}")])[0];
            asked.extend(guard.too_often(row));
            guard.allow(row);
        }
        assert_eq!(asked, [8, 16, 24]);
        let late = guard.count(&[call("ReadFile", "{}"), call("Stat", "{}"), call("ReadFile", "{}")]);
        assert!(late.iter().all(|row| guard.too_often(*row).is_none()));
        guard.allow(Row { times: 40, ..late[0] });
        assert_eq!(guard.row, Row { number: 3, times: 1, free: 7 });
    }

    #[test]
    fn a_no_leaves_the_next_to_be_asked_about_too() {
        let mut guard = LoopGuard::default();
        let rows = guard.count(&vec![call("ReadFile", "{}"); 10]);
        let asked: Vec<_> = rows.iter().filter_map(|row| guard.too_often(*row)).collect();
        assert_eq!(asked, [8, 9, 10]);
        guard.allow(rows[7]);
        assert!(rows.iter().all(|row| guard.too_often(*row).is_none()));
    }

    #[test]
    fn numbers_have_their_endings() {
        let words: Vec<_> = [1, 2, 3, 8, 11, 12, 13, 16, 22, 24, 111, 121].into_iter().map(ordinal).collect();
        assert_eq!(words, ["1st", "2nd", "3rd", "8th", "11th", "12th", "13th", "16th", "22nd", "24th", "111th", "121st"]);
    }
}
