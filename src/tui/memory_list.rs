//! Proposals for instruction files: the list of them, and which ones the user was told about.

use super::format::format_count;
use super::picker::{Column, Picker, Row};
use crate::protocol::{MemoryProposal, MemorySource};
use crate::text;
use std::collections::HashSet;

const COLUMNS: &[Column] = &[
    Column { head: "proposal", is_number: false, rank: 0 },
    Column { head: "file", is_number: false, rank: 1 },
    Column { head: "instruction", is_number: false, rank: 0 },
];

/// The proposals of this workspace as last reported, and the list while it is open.
#[derive(Debug, Default)]
pub(crate) struct MemoryList {
    proposals: Vec<MemoryProposal>,
    /// IDs of the proposals that the user was told about.
    told: HashSet<String>,
    /// Whether the user asked for the list, so that it is printed in line mode and nothing is announced.
    pub requested: bool,
    /// The list, while it has the keyboard.
    pub list: Option<Picker>,
}

impl MemoryList {
    /// Returns the proposal with this ID, or the only one whose ID begins so.
    pub(crate) fn find(&self, id: &str) -> Option<&MemoryProposal> {
        let mut found = self.proposals.iter().filter(|proposal| !id.is_empty() && proposal.id.starts_with(id));
        found.next().filter(|_| found.next().is_none())
    }

    /// Opens the list.
    pub(crate) fn open(&mut self) {
        let mut picker = Picker::new("Memory proposals", COLUMNS).with_last_truncated();
        picker.set_rows(self.rows());
        self.list = Some(picker);
    }

    /// Sets the proposals. Returns the notice about new ones, unless the user is looking at them.
    pub(crate) fn set(&mut self, proposals: Vec<MemoryProposal>) -> Option<String> {
        self.proposals = proposals;
        let new = self.proposals.iter().filter(|proposal| !self.told.contains(&proposal.id)).count();
        self.told.extend(self.proposals.iter().map(|proposal| proposal.id.clone()));
        let rows = self.rows();
        let is_visible = self.list.is_some() || self.requested;
        if let Some(list) = &mut self.list {
            list.set_rows(rows);
        }
        (new > 0 && !is_visible).then(|| match new {
            1 => "1 new proposal for your instructions; /memory shows it".to_owned(),
            new => format!("{new} new proposals for your instructions; /memory shows them"),
        })
    }

    /// Returns the proposals with their diffs as text, for line mode.
    pub(crate) fn text(&self) -> String {
        if self.proposals.is_empty() {
            return "no proposals".to_owned();
        }
        let one = |proposal: &MemoryProposal| format!("{}  {}\n{}", proposal.id, heading(proposal), details(proposal).trim_end());
        let all: Vec<String> = self.proposals.iter().map(one).collect();
        format!("{}\n\n/memory apply ID, /memory edit ID TEXT, /memory drop ID", all.join("\n\n"))
    }

    fn rows(&self) -> Vec<Row> {
        let row = |proposal: &MemoryProposal| Row {
            key: proposal.id.clone(),
            cells: vec![proposal.id.clone(), text::reveal_line(&proposal.file), heading(proposal)],
            mark: "",
            lacks: proposal.problem.as_deref().map(text::reveal_line),
            detail: details(proposal),
        };
        self.proposals.iter().map(row).collect()
    }
}

fn heading(proposal: &MemoryProposal) -> String {
    text::reveal_line(&proposal.text)
}

/// Returns the diff of a proposal, and where it comes from.
pub(crate) fn details(proposal: &MemoryProposal) -> String {
    let mut all = text::reveal(&proposal.diff).into_owned();
    let origin = match proposal.source {
        MemorySource::Repeated => format!("{}, {}", proposal.source.describe(), format_count(proposal.said.len(), "time")),
        MemorySource::Model | MemorySource::User => proposal.source.describe().to_owned(),
    };
    all.push_str(&format!("\n{origin}\n"));
    if let Some(reason) = &proposal.reason {
        all.push_str(&format!("reason: {}\n", text::reveal_line(reason)));
    }
    for quote in &proposal.said {
        all.push_str(&format!("{}  {}\n", quote.time.strftime("%Y-%m-%d %H:%M"), text::reveal_line(&quote.text)));
    }
    all
}
