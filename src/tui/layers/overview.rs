//! Overviews of the session's state, cost, context window, policy, saved rules, tools, background commands, queued
//! messages, planned steps, artifacts and review findings. Each overview is a list with a preview.

use super::{LayerContext, LayerRequest, Reaction, ScreenLayer};
use crate::protocol::{ContextUse, RequestedList};
use crate::tui::picker::{Column, Picker, Row};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

const FACTS: &[Column] = &[Column { head: "", is_number: false, rank: 0 }, Column { head: "", is_number: false, rank: 1 }];
const COSTS: &[Column] = &[
    Column { head: "", is_number: false, rank: 0 },
    Column { head: "input", is_number: true, rank: 2 },
    Column { head: "cached", is_number: true, rank: 3 },
    Column { head: "output", is_number: true, rank: 2 },
    Column { head: "cost", is_number: true, rank: 0 },
];
const LAYERS: &[Column] = &[
    Column { head: "layer", is_number: false, rank: 0 },
    Column { head: "rules", is_number: true, rank: 1 },
    Column { head: "bundle", is_number: false, rank: 2 },
    Column { head: "valid until", is_number: false, rank: 1 },
];
const TOOLS: &[Column] = &[
    Column { head: "tool", is_number: false, rank: 0 },
    Column { head: "calls", is_number: true, rank: 0 },
    Column { head: "failed", is_number: true, rank: 1 },
    Column { head: "denied", is_number: true, rank: 3 },
    Column { head: "mean", is_number: true, rank: 2 },
    Column { head: "longest", is_number: true, rank: 4 },
];

const BACKGROUND: &[Column] = &[
    Column { head: "id", is_number: false, rank: 0 },
    Column { head: "state", is_number: false, rank: 0 },
    Column { head: "command", is_number: false, rank: 0 },
];
const QUEUE: &[Column] = &[
    Column { head: "", is_number: true, rank: 0 },
    Column { head: "sent", is_number: false, rank: 0 },
    Column { head: "message", is_number: false, rank: 0 },
];
const STEPS: &[Column] = &[
    Column { head: "", is_number: true, rank: 0 },
    Column { head: "status", is_number: false, rank: 0 },
    Column { head: "step", is_number: false, rank: 0 },
];
const ARTIFACTS: &[Column] = &[
    Column { head: "", is_number: true, rank: 0 },
    Column { head: "size", is_number: true, rank: 0 },
    Column { head: "name", is_number: false, rank: 0 },
];

const FINDINGS: &[Column] = &[
    Column { head: "severity", is_number: false, rank: 0 },
    Column { head: "confidence", is_number: false, rank: 2 },
    Column { head: "place", is_number: false, rank: 1 },
    Column { head: "finding", is_number: false, rank: 0 },
];

const CONTEXT: &[Column] = &[
    Column { head: "share", is_number: false, rank: 0 },
    Column { head: "tokens", is_number: true, rank: 0 },
    Column { head: "", is_number: true, rank: 1 },
    Column { head: "", is_number: false, rank: 2 },
];
const RUNS: &[Column] =
    &[Column { head: "command", is_number: false, rank: 0 }, Column { head: "outcome", is_number: false, rank: 0 }];
const LANGUAGE_SERVERS: &[Column] = &[
    Column { head: "language", is_number: false, rank: 0 },
    Column { head: "server", is_number: false, rank: 1 },
    Column { head: "state", is_number: false, rank: 0 },
];
const GRANTS: &[Column] =
    &[Column { head: "name", is_number: false, rank: 1 }, Column { head: "rule", is_number: false, rank: 0 }];

/// Subject of an overview, with the data that only the overview needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Topic {
    /// Session state. Contains the locations of aye's files, each with a label.
    Status(Vec<(String, String)>),
    Cost,
    Policy,
    Tools,
    /// Background commands. A row's key is the command's ID.
    Background,
    /// Queued messages. A row's key is the message's ID.
    Queue,
    /// Steps planned by the model.
    Steps,
    /// Artifacts. A row's key is the artifact's number.
    Artifacts,
    /// Findings of the last review. A row's key is the finding's index.
    Findings,
    /// Context window usage.
    Context(ContextUse),
    /// Commands that ran without approval, language servers, or saved rules.
    Requested(RequestedList),
}

impl Topic {
    fn title(&self) -> &'static str {
        match self {
            Self::Status(_) => "Status",
            Self::Cost => "Cost",
            Self::Policy => "Policy",
            Self::Tools => "Tool use",
            Self::Background => "Background commands",
            Self::Queue => "Queued messages",
            Self::Steps => "Steps",
            Self::Artifacts => "Artifacts",
            Self::Findings => "Findings",
            Self::Context(_) => "Context",
            Self::Requested(RequestedList::UnaskedRuns { .. }) => "Commands run without approval",
            Self::Requested(RequestedList::Grants { .. }) => "Saved rules",
            Self::Requested(RequestedList::LanguageServers { .. }) => "Language servers",
        }
    }

    fn columns(&self) -> &'static [Column] {
        match self {
            Self::Status(_) => FACTS,
            Self::Cost => COSTS,
            Self::Policy => LAYERS,
            Self::Tools => TOOLS,
            Self::Background => BACKGROUND,
            Self::Queue => QUEUE,
            Self::Steps => STEPS,
            Self::Artifacts => ARTIFACTS,
            Self::Findings => FINDINGS,
            Self::Context(_) => CONTEXT,
            Self::Requested(RequestedList::UnaskedRuns { .. }) => RUNS,
            Self::Requested(RequestedList::Grants { .. }) => GRANTS,
            Self::Requested(RequestedList::LanguageServers { .. }) => LANGUAGE_SERVERS,
        }
    }

    fn hints(&self) -> Vec<&'static str> {
        let first: &[&str] = match self {
            Self::Status(_) | Self::Cost | Self::Policy | Self::Tools | Self::Steps | Self::Context(_) | Self::Requested(_) => {
                &["enter details"]
            }
            Self::Background => &["enter details", "ctrl+x stop"],
            Self::Queue => &["enter edit", "ctrl+x remove"],
            Self::Artifacts => &["enter open"],
            Self::Findings => &["enter open", "ctrl+f draft fix"],
        };
        first.iter().copied().chain(["esc close", "up down move", "type to filter"]).collect()
    }
}

/// Overview that is open.
#[derive(Debug)]
pub(crate) struct Overview {
    pub topic: Topic,
    picker: Picker,
}

impl Overview {
    pub(crate) fn new(topic: Topic) -> Self {
        Self { picker: Picker::new(topic.title(), topic.columns()).with_last_truncated(), topic }
    }

    /// Replaces the rows and the notices below them. The highlighted row stays highlighted.
    pub(crate) fn fill(&mut self, rows: Vec<Row>, notices: Vec<String>) {
        self.picker.set_notices(notices);
        self.picker.set_rows(rows);
    }

    /// Sets the text shown after the list's title.
    pub(crate) fn set_aside(&mut self, aside: String) {
        self.picker.aside = aside;
    }

    /// Highlights the row with the given key.
    pub(crate) fn highlight(&mut self, key: &str) {
        self.picker.highlight(key);
    }

    /// Opens a text viewer with the full details of the highlighted row.
    fn show_details(&self) -> Reaction {
        let Some(row) = self.picker.highlighted() else { return Reaction::Done };
        let title = row.cells.first().cloned().unwrap_or_default();
        Reaction::Request(LayerRequest::OpenText { title, text: row.detail.clone() })
    }

    /// Returns the slash command that stops or removes the highlighted item, if there is one.
    fn removal(&self) -> Option<String> {
        let key = &self.picker.highlighted()?.key;
        match self.topic {
            Topic::Background => Some(format!("/stop {key}")),
            Topic::Queue => Some(format!("/queue drop {key}")),
            _ => None,
        }
    }

    /// Returns the index of the highlighted finding, or `None` if the overview does not list findings.
    fn finding(&self) -> Option<usize> {
        self.picker.highlighted().filter(|_| self.topic == Topic::Findings)?.key.parse().ok()
    }
}

impl ScreenLayer for Overview {
    fn list(&mut self) -> Option<&mut Picker> {
        Some(&mut self.picker)
    }

    fn choose(&mut self, row: &str) -> Reaction {
        let run = |command: &str| Reaction::CloseWith(LayerRequest::RunCommand(command.to_owned()));
        match (&self.topic, row) {
            (Topic::Status(_), "model") => run("/model"),
            (Topic::Status(_), "policy") => run("/policy"),
            (Topic::Status(_), "context") => run("/context"),
            (Topic::Status(_), "used") => run("/cost"),
            (Topic::Status(_), "tools") => run("/stats"),
            (Topic::Status(_), "servers") => run("/mcp"),
            (Topic::Queue, id) => {
                id.parse().map_or_else(|_| self.show_details(), |id| Reaction::CloseWith(LayerRequest::EditQueued(id)))
            }
            (Topic::Findings, at) => {
                at.parse().map_or_else(|_| self.show_details(), |at| Reaction::Request(LayerRequest::OpenFinding(at)))
            }
            (Topic::Artifacts, number) => run(&format!("/artifacts {number}")),
            _ => self.show_details(),
        }
    }

    fn on_other_key(&mut self, key: KeyEvent) -> Reaction {
        let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
        match (key.code, self.finding(), self.removal()) {
            (KeyCode::Char('f'), Some(at), _) if ctrl => Reaction::Request(LayerRequest::DraftFix(at)),
            (KeyCode::Char('x'), _, Some(command)) if ctrl => Reaction::Request(LayerRequest::RunCommand(command)),
            _ => Reaction::Pass,
        }
    }

    fn hints(&self, _around: LayerContext) -> Vec<&'static str> {
        self.topic.hints()
    }
}
