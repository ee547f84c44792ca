//! List of the prompts to which the session can be rewound (`/rewind`).

use super::{LayerRequest, Reaction, ScreenLayer};
use crate::protocol::{RewindPoint, TaskId};
use crate::text;
use crate::tui::format::format_count;
use crate::tui::picker::{Column, Picker, Row};

const COLUMNS: &[Column] = &[
    Column { head: "before this prompt", is_number: false, rank: 0 },
    Column { head: "files", is_number: true, rank: 1 },
    Column { head: "lines", is_number: true, rank: 2 },
    Column { head: "commands", is_number: false, rank: 3 },
];
/// Width, in cells, of the column that shows the first command run after the prompt.
const COMMAND: usize = 28;

pub(crate) struct RewindList {
    picker: Picker,
    points: Vec<RewindPoint>,
}

impl RewindList {
    pub(crate) fn new() -> Self {
        let mut picker = Picker::new("Rewind to before", COLUMNS);
        "loading".clone_into(&mut picker.aside);
        Self { picker, points: Vec::new() }
    }

    /// Sets the rewind points, which are given oldest first. The list shows them newest first.
    pub(crate) fn set_points(&mut self, points: Vec<RewindPoint>, can_redo: bool) {
        self.points = points;
        let redo = if can_redo { "/redo undoes the last rewind" } else { "" };
        redo.clone_into(&mut self.picker.aside);
        self.picker.set_rows(self.points.iter().rev().map(row).collect());
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.points.is_empty()
    }

    fn task(&self, key: &str) -> Option<&TaskId> {
        self.points.iter().map(|point| &point.task_id).find(|task| task.as_str() == key)
    }
}

impl ScreenLayer for RewindList {
    fn list(&mut self) -> Option<&mut Picker> {
        Some(&mut self.picker)
    }

    fn choose(&mut self, row: &str) -> Reaction {
        self.task(row).map_or(Reaction::Done, |task| Reaction::Request(LayerRequest::PlanRewind(task.clone())))
    }

    fn on_close(&mut self) -> Reaction {
        Reaction::CloseWith(LayerRequest::ForgetRewind)
    }
}

fn row(point: &RewindPoint) -> Row {
    let files = match point.files {
        0 => "none".to_owned(),
        count => count.to_string(),
    };
    let lines = if point.added + point.removed > 0 { format!("+{} −{}", point.added, point.removed) } else { String::new() };
    let commands: Vec<String> = point.commands.iter().map(|command| text::reveal_line(command)).collect();
    let first =
        commands.first().map(|first| text::truncate(&format!("$ {}", first.trim_start_matches("$ ")), COMMAND).into_owned());
    let others = commands.len().saturating_sub(1);
    let command = match (first, others) {
        (None, _) => String::new(),
        (Some(first), 0) => first,
        (Some(first), others) => format!("{first} +{others}"),
    };
    let steps = format_count(point.steps as usize, "step");
    let ran = if commands.is_empty() { String::new() } else { format!(", {} ran", format_count(commands.len(), "command")) };
    Row {
        key: point.task_id.to_string(),
        cells: vec![format!("#{} {}", point.number, text::reveal_line(&point.prompt)), files, lines, command],
        mark: "",
        lacks: None,
        detail: format!("#{} {}, {steps}{ran}", point.number, point.timestamp.strftime("%Y-%m-%d %H:%M UTC")),
    }
}
