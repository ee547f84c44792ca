//! List of a session's branches (`/tree`), which are forks and parts that a rewind has undone.

use super::{LayerRequest, Reaction, ScreenLayer};
use crate::protocol::{Branch, SessionId};
use crate::text;
use crate::tui::format::format_count;
use crate::tui::glyphs::Glyphs;
use crate::tui::picker::{Column, Picker, Row};

const COLUMNS: &[Column] = &[
    Column { head: "branch", is_number: false, rank: 0 },
    Column { head: "from", is_number: false, rank: 1 },
    Column { head: "prompts", is_number: true, rank: 2 },
    Column { head: "age", is_number: true, rank: 3 },
];
/// Maximum indentation level. Branches nested more deeply are indented no further.
const DEEPEST: u32 = 8;

pub(crate) struct BranchList {
    picker: Picker,
    branches: Vec<Branch>,
}

impl BranchList {
    pub(crate) fn new() -> Self {
        let mut picker = Picker::new("Branches", COLUMNS);
        "loading".clone_into(&mut picker.aside);
        Self { picker, branches: Vec::new() }
    }

    pub(crate) fn set_branches(&mut self, branches: Vec<Branch>, here: Option<&SessionId>, signs: &Glyphs) {
        let rows = branches.iter().map(|branch| row(branch, here, signs)).collect();
        self.picker.set_rows(rows);
        "enter continue there".clone_into(&mut self.picker.aside);
        if let Some(at) = branches.iter().find(|branch| Some(&branch.session_id) == here && branch.records.is_none()) {
            self.picker.highlight(&key(at));
        }
        self.branches = branches;
    }

    pub(crate) fn branches(&self) -> &[Branch] {
        &self.branches
    }

    fn find_branch(&self, chosen: &str) -> Option<&Branch> {
        self.branches.iter().find(|branch| key(branch) == chosen)
    }
}

impl ScreenLayer for BranchList {
    fn list(&mut self) -> Option<&mut Picker> {
        Some(&mut self.picker)
    }

    fn choose(&mut self, row: &str) -> Reaction {
        self.find_branch(row).map_or(Reaction::Done, |branch| Reaction::Request(LayerRequest::OpenBranch(branch.clone())))
    }
}

fn key(branch: &Branch) -> String {
    match branch.records {
        Some(records) => format!("{}@{records}", branch.session_id),
        None => branch.session_id.to_string(),
    }
}

fn row(branch: &Branch, here: Option<&SessionId>, signs: &Glyphs) -> Row {
    let id: String = branch.session_id.as_str().chars().take(8).collect();
    let (undone, is_here) = (branch.records.is_some(), Some(&branch.session_id) == here);
    let indent = "  ".repeat(branch.depth.min(DEEPEST) as usize);
    let sign = if undone { signs.state.denied } else { signs.state.note };
    let title = branch.title.as_deref().map_or_else(|| "(no prompt)".to_owned(), text::reveal_line);
    let from = match branch.after {
        None => String::new(),
        Some(0) => "before the first prompt".to_owned(),
        Some(count) => format!("after prompt {count}"),
    };
    let prompts = usize::try_from(branch.prompts).unwrap_or(usize::MAX);
    let detail = if undone {
        format!("{} undone in {}; press enter to fork from there", format_count(prompts, "prompt"), text::reveal_line(&id))
    } else {
        text::reveal_line(&id)
    };
    Row {
        key: key(branch),
        cells: vec![format!("{indent}{sign} {title}"), from, prompts.to_string(), text::reveal_line(&branch.age)],
        mark: match (is_here && !undone, undone, branch.archived) {
            (true, ..) => "open here",
            (_, true, _) => "undone",
            (_, _, true) => "archived",
            _ => "",
        },
        lacks: None,
        detail,
    }
}
