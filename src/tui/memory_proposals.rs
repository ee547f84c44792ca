//! Proposed changes to instruction files, and a record of which ones have been announced to the user.

use super::layers::{proposal_details, proposal_heading};
use crate::protocol::MemoryProposal;
use std::collections::HashSet;

/// Proposals for this workspace, as most recently reported.
#[derive(Debug, Default)]
pub(crate) struct MemoryProposals {
    proposals: Vec<MemoryProposal>,
    /// IDs of the proposals that have been announced to the user.
    told: HashSet<String>,
    /// Whether the user has requested the list. In that case, line mode prints it, and no notice is shown.
    pub requested: bool,
}

impl MemoryProposals {
    /// Returns the proposal whose ID starts with `id`, or `None` if there is not exactly one.
    pub(crate) fn find(&self, id: &str) -> Option<&MemoryProposal> {
        if let Some(exact) = self.proposals.iter().find(|proposal| proposal.id == id) {
            return Some(exact);
        }
        let mut found = self.proposals.iter().filter(|proposal| !id.is_empty() && proposal.id.starts_with(id));
        found.next().filter(|_| found.next().is_none())
    }

    pub(crate) fn all(&self) -> &[MemoryProposal] {
        &self.proposals
    }

    /// Replaces the proposals. Returns a notice if some are new, unless the user is viewing or has requested the list.
    pub(crate) fn set(&mut self, proposals: Vec<MemoryProposal>, is_list_open: bool) -> Option<String> {
        self.proposals = proposals;
        let new = self.proposals.iter().filter(|proposal| !self.told.contains(&proposal.id)).count();
        self.told.extend(self.proposals.iter().map(|proposal| proposal.id.clone()));
        let is_visible = is_list_open || self.requested;
        (new > 0 && !is_visible).then(|| match new {
            1 => "1 new proposal for your instructions; /memory shows it".to_owned(),
            new => format!("{new} new proposals for your instructions; /memory shows them"),
        })
    }

    /// Returns the proposals and their diffs as text, for line mode.
    pub(crate) fn text(&self) -> String {
        if self.proposals.is_empty() {
            return "no proposals".to_owned();
        }
        let one = |proposal: &MemoryProposal| {
            format!("{}  {}\n{}", proposal.id, proposal_heading(proposal), proposal_details(proposal).trim_end())
        };
        let all: Vec<String> = self.proposals.iter().map(one).collect();
        format!("{}\n\n/memory apply ID, /memory edit ID TEXT, /memory drop ID", all.join("\n\n"))
    }
}
