//! Records since the start of the last task, for code that needs only that task's state.

use crate::ports::Record;
use crate::protocol::ToolStatus;

/// Returns the records since the start of the last task, preceded by the last model choice made before the task. If
/// there is no task, returns all records.
pub(crate) fn last_task_records(records: &[Record]) -> impl Iterator<Item = &Record> {
    let start = records.iter().rposition(|record| matches!(record, Record::TaskStarted { .. })).unwrap_or_default();
    let (before, task) = records.split_at(start);
    before.iter().rfind(|record| matches!(record, Record::ModelChosen { .. })).into_iter().chain(task)
}

/// Returns the number of calls of the last task that were denied.
pub(crate) fn denied_calls(records: &[Record]) -> u64 {
    let is_denial = |record: &&Record| matches!(record, Record::Finished { result, .. } if result.status == ToolStatus::Denied);
    last_task_records(records).filter(is_denial).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::TaskEnd;
    use crate::protocol::{Message, MessageId, Part, Role, TaskId};

    fn started(task: &str) -> Record {
        let prompt = Message {
            message_id: MessageId::new(task),
            role: Role::User,
            content: vec![Part::Text { text: "hi".to_owned() }],
            token_count: 1,
            task_id: TaskId::new(task),
            step_id: None,
            timestamp: jiff::Timestamp::UNIX_EPOCH,
        };
        Record::TaskStarted { prompt, max_steps: 1 }
    }

    #[test]
    fn the_records_of_the_last_task_begin_with_the_last_choice_of_a_model() {
        let chosen = |model: &str| Record::ModelChosen { model: model.to_owned(), effort: None };
        let ended = Record::TaskEnded { task_id: TaskId::new("t1"), step_count: 1, end: TaskEnd::Completed };
        let first = [chosen("a/one"), started("t1"), chosen("a/two"), ended];
        let second = [started("t2"), Record::Stopping { task_id: TaskId::new("t2") }];
        let all: Vec<Record> = first.iter().chain(&second).cloned().collect();
        let replayed: Vec<&Record> = last_task_records(&all).collect();
        assert_eq!(replayed, [&first[2], &second[0], &second[1]]);
        assert_eq!(last_task_records(&first[..1]).count(), 1, "without a task, all records are returned");
        assert_eq!(last_task_records(&[]).count(), 0);
    }
}
