//! The `/memory` list: proposals for instruction files.

use super::{LayerContext, LayerRequest, Reaction, ScreenLayer, ShownList};
use crate::protocol::{MemoryProposal, MemorySource};
use crate::text;
use crate::tui::format::format_count;
use crate::tui::picker::{Column, Picker, Row};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use std::fmt::Write as _;

const COLUMNS: &[Column] = &[
    Column { head: "proposal", is_number: false, rank: 0 },
    Column { head: "file", is_number: false, rank: 1 },
    Column { head: "instruction", is_number: false, rank: 0 },
];

/// Reason why a proposal cannot be applied: the user has not opened its change.
const UNREAD: &str = "enter shows the change; ctrl+a then applies it";

pub(crate) struct MemoryList {
    picker: Picker,
    /// ID of the proposal whose complete change was opened last.
    read: Option<String>,
}

impl MemoryList {
    pub(crate) fn new(proposals: &[MemoryProposal]) -> Self {
        let mut list = Self { picker: Picker::new("Memory proposals", COLUMNS).with_last_truncated(), read: None };
        list.set_rows(proposal_rows(proposals));
        list
    }

    /// Shows the highlighted proposal, even if it cannot be applied.
    fn show(&mut self) -> Reaction {
        self.read = self.picker.highlighted_as_drawn().map(|row| row.key.clone());
        self.read.clone().map_or(Reaction::Done, |id| Reaction::Request(LayerRequest::ShowProposal(id)))
    }

    /// Applies the highlighted proposal, if the user has opened its change.
    fn apply(&self, id: String) -> LayerRequest {
        if self.read.as_ref() == Some(&id) { LayerRequest::ApplyProposal(id) } else { LayerRequest::ShowToast(UNREAD.to_owned()) }
    }
}

impl ScreenLayer for MemoryList {
    fn list(&mut self) -> Option<&mut Picker> {
        Some(&mut self.picker)
    }

    fn choose(&mut self, _row: &str) -> Reaction {
        self.show()
    }

    fn refuse(&mut self, _why: String) -> Reaction {
        self.show()
    }

    fn on_other_key(&mut self, key: KeyEvent) -> Reaction {
        let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
        let row = self.picker.highlighted_as_drawn().filter(|_| ctrl);
        let Some(id) = row.map(|row| row.key.clone()) else { return Reaction::Pass };
        Reaction::Request(match key.code {
            KeyCode::Char('a') => self.apply(id),
            KeyCode::Char('e') => LayerRequest::EditProposal(id),
            KeyCode::Char('t') => LayerRequest::MoveProposal(id),
            KeyCode::Char('x') => LayerRequest::DropProposal(id),
            _ => return Reaction::Pass,
        })
    }

    fn shown_list(&self) -> Option<ShownList> {
        Some(ShownList::Proposals)
    }

    /// Updates the rows. A change that was opened may be another one now.
    fn set_rows(&mut self, rows: Vec<Row>) {
        self.picker.set_rows(rows);
        self.read = None;
    }

    fn hints(&self, _around: LayerContext) -> Vec<&'static str> {
        vec!["enter show", "ctrl+a apply", "ctrl+e edit", "ctrl+t file", "ctrl+x drop", "esc close"]
    }
}

/// Returns the rows of the proposals.
pub(crate) fn proposal_rows(proposals: &[MemoryProposal]) -> Vec<Row> {
    proposals.iter().map(row).collect()
}

fn row(proposal: &MemoryProposal) -> Row {
    Row {
        key: proposal.id.clone(),
        cells: vec![proposal.id.clone(), text::reveal_line(&proposal.file), proposal_heading(proposal)],
        mark: "",
        lacks: proposal.problem.as_deref().map(text::reveal_line),
        detail: proposal_details(proposal),
    }
}

/// Returns the instruction of a proposal on one line.
pub(crate) fn proposal_heading(proposal: &MemoryProposal) -> String {
    text::reveal_line(&proposal.text)
}

/// Returns the diff of a proposal, and its source.
pub(crate) fn proposal_details(proposal: &MemoryProposal) -> String {
    let mut all = text::reveal(&proposal.diff).into_owned();
    let origin = match proposal.source {
        MemorySource::Repeated => format!("{}, {}", proposal.source.describe(), format_count(proposal.said.len(), "time")),
        MemorySource::Model | MemorySource::User => proposal.source.describe().to_owned(),
    };
    let _ = writeln!(all, "\n{origin}");
    if let Some(reason) = &proposal.reason {
        let _ = writeln!(all, "reason: {}", text::reveal_line(reason));
    }
    for quote in &proposal.said {
        let _ = writeln!(all, "{}  {}", quote.time.strftime("%Y-%m-%d %H:%M"), text::reveal_line(&quote.text));
    }
    all
}
