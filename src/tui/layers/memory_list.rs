//! List of proposed changes to instruction files (`/memory`).

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

/// Reason why a proposal cannot be applied yet, which is that the user has not opened its diff.
const UNREAD: &str = "enter shows the change; ctrl+a then applies it";

pub(crate) struct MemoryList {
    picker: Picker,
    /// ID of the proposal whose diff the user last opened.
    read: Option<String>,
}

impl MemoryList {
    pub(crate) fn new(proposals: &[MemoryProposal]) -> Self {
        let picker = Picker::new("Memory proposals", COLUMNS).with_last_truncated().with_rows_requested();
        let mut list = Self { picker, read: None };
        list.set_rows(proposal_rows(proposals));
        list
    }

    /// Requests the diff of the highlighted proposal, even if that proposal cannot be applied.
    fn show(&mut self) -> Reaction {
        self.read = self.picker.highlighted_as_drawn().map(|row| row.key.clone());
        self.read.clone().map_or(Reaction::Done, |id| Reaction::Request(LayerRequest::ShowProposal(id)))
    }

    /// Returns a request to apply the proposal or, if the user has not opened its diff, to show why it cannot be
    /// applied yet.
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

    /// Replaces the rows. Because the diffs may have changed, the user has to open a proposal's diff again before
    /// applying it.
    fn set_rows(&mut self, rows: Vec<Row>) {
        self.picker.set_rows(rows);
        self.read = None;
    }

    fn hints(&self, _around: LayerContext) -> Vec<&'static str> {
        vec!["enter show", "ctrl+a apply", "ctrl+e edit", "ctrl+t file", "ctrl+x drop", "esc close"]
    }
}

/// Returns one list row per proposal.
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

/// Returns the text of a proposed instruction, on one line.
pub(crate) fn proposal_heading(proposal: &MemoryProposal) -> String {
    text::reveal_line(&proposal.text)
}

/// Returns a proposal's diff, followed by a description of where the proposal comes from.
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
