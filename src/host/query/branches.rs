//! Builds the tree of a session, which contains its ancestors, its forks and the parts that were undone.

use super::sessions::age;
use crate::protocol::{Branch, SessionId};
use crate::session::{Change, PromptRewind, SessionState};
use crate::store::{SessionSummary, Store, StoreError};
use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

/// Maximum number of branches in the tree.
const MAX: usize = 500;

/// Returns all branches in chronological order, with each branch following its parent.
pub(crate) fn list_branches(store: &Store, id: &SessionId) -> Result<Vec<Branch>, StoreError> {
    let mut all = store.sessions(None)?;
    all.retain(|session| !session.of_agent);
    let sessions: HashMap<&SessionId, &SessionSummary> = all.iter().map(|session| (&session.session_id, session)).collect();
    let Some(mut root) = sessions.get(id).copied() else { return Err(StoreError::NoSession { given: id.to_string() }) };
    let mut seen = HashSet::from([&root.session_id]);
    while let Some(parent) = root.parent.as_ref().and_then(|parent| sessions.get(parent)) {
        // In a damaged store, a session could be its own ancestor.
        if !seen.insert(&parent.session_id) {
            break;
        }
        root = parent;
    }
    let mut family = Family { store, all: &all, seen: HashSet::new(), branches: Vec::new() };
    family.add(root, 0, None)?;
    Ok(family.branches)
}

struct Family<'a> {
    store: &'a Store,
    all: &'a [SessionSummary],
    seen: HashSet<SessionId>,
    branches: Vec<Branch>,
}

/// Starting point of a branch, and the number of records and prompts that precede it.
enum BranchPoint<'a> {
    /// A part that was undone, with its first prompt.
    Undone {
        title: Option<String>,
        prompts: u64,
        at: jiff::Timestamp,
    },
    Copy(&'a SessionSummary),
}

impl<'a> Family<'a> {
    fn add(&mut self, session: &'a SessionSummary, depth: u32, after: Option<u64>) -> Result<(), StoreError> {
        if self.branches.len() >= MAX || !self.seen.insert(session.session_id.clone()) {
            return Ok(());
        }
        let past = BranchScan::scan(self.store, &session.session_id)?;
        self.branches.push(Branch {
            session_id: session.session_id.clone(),
            records: None,
            depth,
            title: session.title.clone(),
            prompts: past.prompts,
            after,
            age: format_since(session.updated),
            archived: session.archived,
        });
        let mut off: Vec<(u64, u64, BranchPoint<'a>)> = past
            .undone
            .into_iter()
            .map(|undone| {
                let RewoundRange { records, title, before, prompts, at } = undone;
                (records, before, BranchPoint::Undone { title, prompts, at })
            })
            .collect();
        for copy in self.all.iter().filter(|other| other.parent.as_ref() == Some(&session.session_id)) {
            let records = self.store.parent_records(&copy.session_id)?;
            off.push((records, past.starts.iter().filter(|start| **start <= records).count() as u64, BranchPoint::Copy(copy)));
        }
        off.sort_by_key(|(records, ..)| *records);
        for (records, after, what) in off {
            match what {
                BranchPoint::Copy(copy) => self.add(copy, depth + 1, Some(after))?,
                BranchPoint::Undone { title, prompts, at } => self.branches.push(Branch {
                    session_id: session.session_id.clone(),
                    records: Some(records),
                    depth: depth + 1,
                    title,
                    prompts,
                    after: Some(after),
                    age: format_since(at),
                    archived: false,
                }),
            }
        }
        Ok(())
    }
}

fn format_since(then: jiff::Timestamp) -> String {
    age(jiff::Timestamp::now().as_second().saturating_sub(then.as_second()))
}

struct RewoundRange {
    /// Number of records before the rewind.
    records: u64,
    title: Option<String>,
    /// Number of prompts before the rewind that were kept, and of those that were undone.
    before: u64,
    prompts: u64,
    at: jiff::Timestamp,
}

/// Finds the branches while reading a session's records.
#[derive(Default)]
struct BranchScan {
    /// Number of prompts in the conversation, and the position of each prompt.
    prompts: u64,
    starts: Vec<u64>,
    undone: Vec<RewoundRange>,
}

impl BranchScan {
    fn scan(store: &Store, id: &SessionId) -> Result<Self, StoreError> {
        let (mut past, mut state, mut begun) = (Self::default(), SessionState::default(), 0);
        store.for_each_record(id, |written| {
            match state.apply(&written.record).change {
                Change::TaskStarted { .. } => past.starts.push(state.records),
                Change::RewindStarted { .. } => begun = state.records - 1,
                Change::Rewound { effect: PromptRewind::Redone { prompts }, .. } if prompts > 0 => drop(past.undone.pop()),
                Change::Rewound { effect: PromptRewind::Cut { prompts: gone, .. }, .. } if !gone.is_empty() => {
                    past.undone.push(RewoundRange {
                        records: begun,
                        title: gone.first().map(|prompt| prompt.line.clone()),
                        before: state.prompts().len() as u64,
                        prompts: gone.len() as u64,
                        at: written.time,
                    });
                }
                _ => {}
            }
            ControlFlow::Continue(())
        })?;
        past.prompts = state.prompts().len() as u64;
        Ok(past)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::Record;
    use crate::protocol::{Message, MessageId, Part, RewindScope, RewindTarget, Rewound, Role, TaskId, WorkspaceId};
    use crate::store::{ImportedSession, NewSession, Parent, TimedRecord};

    fn prompt(number: u32, words: &str) -> Record {
        let prompt = Message {
            message_id: MessageId::new(format!("msg_{number}")),
            role: Role::User,
            content: vec![Part::Text { text: words.to_owned() }],
            token_count: 1,
            task_id: TaskId::new(format!("task_{number}")),
            step_id: None,
            timestamp: jiff::Timestamp::UNIX_EPOCH,
        };
        Record::TaskStarted { prompt, max_steps: 9 }
    }

    fn back(target: RewindTarget, from: Option<u32>) -> [Record; 2] {
        let (scope, rewind_id) = (RewindScope::Both, "r".to_owned());
        let rewound = Rewound {
            target: target.clone(),
            scope,
            restored: 0,
            kept: Vec::new(),
            messages: 1,
            message: String::new(),
            prompt: None,
        };
        let started = Record::RewindStarted { rewind_id: rewind_id.clone(), target, scope, overwrite: Vec::new() };
        [started, Record::Rewound { rewind_id, from: from.map(|from| MessageId::new(format!("msg_{from}"))), rewound }]
    }

    fn id(digit: &str) -> SessionId {
        SessionId::new(digit.repeat(32))
    }

    fn add(store: &Store, digit: &str, records: Vec<Record>, parent: Option<(&str, u64)>) {
        let session = NewSession {
            id: id(digit),
            workspace_id: WorkspaceId::new("w"),
            workspace: "/w".into(),
            model: "m".to_owned(),
            started_by: None,
            is_of_command: false,
        };
        let time = jiff::Timestamp::UNIX_EPOCH;
        let records = records.into_iter().map(|record| TimedRecord { time, record }).collect();
        let parent = parent.map(|(digit, records)| Parent { id: id(digit), records });
        let foreign =
            ImportedSession { session, created: time, title: Some(digit.to_owned()), draft: String::new(), records, parent };
        assert!(store.import(foreign).unwrap());
    }

    /// Describes each branch by its depth, its title, its prompts and the prompt after which it branches off.
    fn tree(store: &Store, digit: &str) -> Vec<String> {
        let told = list_branches(store, &id(digit)).unwrap();
        let row = |branch: &Branch| {
            let (title, after) = (branch.title.clone().unwrap_or_default(), branch.after.unwrap_or_default());
            let records = branch.records.map(|records| format!(" @{records}")).unwrap_or_default();
            format!("{} {title} {} {after}{records}", branch.depth, branch.prompts)
        };
        told.iter().map(row).collect()
    }

    #[test]
    fn forks_and_rewound_branches_are_listed_below_their_parent() {
        let directory = tempfile::TempDir::new().unwrap();
        let store = Store::open(directory.path()).unwrap();
        let mut records = vec![prompt(1, "one"), prompt(2, "two\nlines")];
        records.extend(back(RewindTarget::Last, Some(2)));
        records.push(prompt(3, "three"));
        add(&store, "a", records, None);
        add(&store, "b", vec![prompt(1, "one")], Some(("a", 1)));
        add(&store, "c", vec![prompt(1, "one")], Some(("b", 1)));
        add(&store, "d", vec![prompt(1, "alone")], Some(("e", 1)));
        let expected = ["0 a 2 0", "1 b 1 1", "2 c 1 1", "1 two 1 1 @2"];
        for digit in ["a", "b", "c"] {
            assert_eq!(tree(&store, digit), expected, "the whole family, whoever asks");
        }
        assert_eq!(tree(&store, "d"), ["0 d 1 0"], "what it was copied from is gone");
        assert!(list_branches(&store, &id("f")).is_err());
    }

    #[test]
    fn an_undone_rewind_is_not_a_branch() {
        let directory = tempfile::TempDir::new().unwrap();
        let store = Store::open(directory.path()).unwrap();
        let mut records = vec![prompt(1, "one"), prompt(2, "two")];
        records.extend(back(RewindTarget::Last, Some(2)));
        records.extend(back(RewindTarget::Redo, None));
        add(&store, "a", records, None);
        assert_eq!(tree(&store, "a"), ["0 a 2 0"]);
    }
}
