//! Overviews of the session: its state, cost, policy and use of tools, each a list with a preview.

use super::picker::{Column, Picker, Row};

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

/// Subject of an overview.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Topic {
    /// State of the session, with the locations of aye's files.
    Status(Vec<(String, String)>),
    Cost,
    Policy,
    Tools,
}

impl Topic {
    fn title(&self) -> &'static str {
        match self {
            Self::Status(_) => "Status",
            Self::Cost => "Cost",
            Self::Policy => "Policy",
            Self::Tools => "Tool use",
        }
    }

    fn columns(&self) -> &'static [Column] {
        match self {
            Self::Status(_) => FACTS,
            Self::Cost => COSTS,
            Self::Policy => LAYERS,
            Self::Tools => TOOLS,
        }
    }
}

/// Open overview.
#[derive(Debug)]
pub(crate) struct Overview {
    pub topic: Topic,
    pub picker: Picker,
}

impl Overview {
    pub(crate) fn new(topic: Topic) -> Self {
        Self { picker: Picker::new(topic.title(), topic.columns()).cutting_last(), topic }
    }

    /// Sets the rows and the notices below them, and keeps the highlight.
    pub(crate) fn fill(&mut self, rows: Vec<Row>, notices: Vec<String>) {
        self.picker.set_notices(notices);
        self.picker.set_rows(rows);
    }

    /// Returns the command that shows more about the highlighted row.
    pub(crate) fn command(&self) -> Option<&'static str> {
        let row = self.picker.at()?;
        match (&self.topic, row.key.as_str()) {
            (Topic::Status(_), "model") => Some("/model"),
            (Topic::Status(_), "policy") => Some("/policy"),
            (Topic::Status(_), "context") => Some("/context"),
            (Topic::Status(_), "used") => Some("/cost"),
            (Topic::Status(_), "tools") => Some("/stats"),
            (Topic::Status(_), "servers") => Some("/mcp"),
            _ => None,
        }
    }
}
