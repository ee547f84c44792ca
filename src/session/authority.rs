//! Removes authority from the records of exported, imported or forked sessions.

use crate::ports::Record;
use crate::protocol::Decision;

/// Converts a record for use outside its store. The record keeps its facts but loses all authority. Returns `None`
/// for rules, budgets, goals and price assumptions, which belong to the original user and machine, and for unfinished
/// rewinds and session service registrations.
pub(crate) fn without_authority(record: Record) -> Option<Record> {
    match record {
        Record::RuleSaved { .. }
        | Record::RuleRemoved { .. }
        | Record::MandateSet { .. }
        | Record::BudgetSet { .. }
        | Record::PriceAssumed { .. }
        // A goal would run its command for the new owner.
        | Record::GoalChanged { .. } => None,
        // The session's new owner would complete an unfinished rewind. A completed rewind has a record of its own.
        Record::RewindStarted { .. } => None,
        // The record could name another of the user's sessions, which aye would then end.
        Record::Registered { .. } => None,
        Record::Decided { approval_id, tool_call_id, decision: Decision::ApprovedAlways { .. } } => {
            Some(Record::Decided { approval_id, tool_call_id, decision: Decision::Approved })
        }
        // Facts. A record that grants something must not be listed here.
        record @ (Record::TaskStarted { .. }
        | Record::Queue { .. }
        | Record::Steered { .. }
        | Record::StepStarted { .. }
        | Record::PartialAnswer { .. }
        | Record::AnswerDiscarded { .. }
        | Record::Answer { .. }
        | Record::Wasted { .. }
        | Record::Compacted { .. }
        | Record::CompactionUndone
        | Record::CompactionStarted { .. }
        | Record::CompactionGivenUp
        | Record::Truncated { .. }
        | Record::ModelChosen { .. }
        | Record::Hooked { .. }
        | Record::Intent { .. }
        | Record::ApprovalRequested { .. }
        | Record::Decided { .. }
        | Record::Renewed { .. }
        | Record::Conflicted { .. }
        | Record::Refused { .. }
        | Record::PreviewStarted { .. }
        | Record::LayerEnded { .. }
        | Record::Previewed { .. }
        | Record::Sampled { .. }
        | Record::Reviewed { .. }
        | Record::PreviewDropped { .. }
        | Record::Started { .. }
        | Record::Finished { .. }
        | Record::KeptFrom { .. }
        | Record::Resolved { .. }
        | Record::StepCompleted { .. }
        | Record::TaskEnded { .. }
        | Record::Stopping { .. }
        | Record::Paused { .. }
        | Record::Continued
        | Record::Imported { .. }
        | Record::Rewound { .. }
        | Record::OwnStarted { .. }
        | Record::OwnEnded { .. }
        | Record::PolicyInForce { .. }
        | Record::Unreadable) => Some(record),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{MessageId, RewindScope, RewindTarget, Rewound};

    #[test]
    fn sessions_that_leave_their_store_keep_completed_rewinds_but_not_started_ones() {
        let begun = Record::RewindStarted {
            rewind_id: "rewind_1".to_owned(),
            target: RewindTarget::Last,
            scope: RewindScope::Both,
            overwrite: vec!["/etc/passwd".into()],
        };
        assert_eq!(without_authority(begun), None);
        let done = Record::Rewound {
            rewind_id: "rewind_1".to_owned(),
            from: Some(MessageId::new("msg_1")),
            rewound: Rewound {
                target: RewindTarget::Last,
                scope: RewindScope::Both,
                restored: 2,
                kept: Vec::new(),
                messages: 3,
                message: "back before prompt 1".to_owned(),
                prompt: Some("do it".to_owned()),
            },
        };
        assert_eq!(without_authority(done.clone()), Some(done), "what was said then stays undone");
    }
}
