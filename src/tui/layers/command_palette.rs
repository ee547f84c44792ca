//! Command palette, which lists all commands and their keys.

use super::{LayerRequest, Reaction, ScreenLayer};
use crate::protocol::CustomCommand;
use crate::text;
use crate::tui::picker::{Column, Picker, Row};

const COLUMNS: &[Column] = &[
    Column { head: "command", is_number: false, rank: 0 },
    Column { head: "keys", is_number: false, rank: 2 },
    Column { head: "description", is_number: false, rank: 1 },
];

pub(crate) struct CommandPalette(Picker);

impl CommandPalette {
    /// Creates the palette. `own` contains the custom commands. `last` contains the names of recently used commands,
    /// most recent first.
    pub(crate) fn new(commands: &[(&str, &str)], own: &[CustomCommand], keys: &[(&str, String)], last: &[String]) -> Self {
        let key = |name: &str| keys.iter().find(|(command, _)| *command == name).map_or("", |(_, key)| key.as_str());
        let row = |name: &str, words: &str| Row {
            key: name.to_owned(),
            cells: vec![text::reveal_line(name), key(name).to_owned(), text::reveal_line(words)],
            mark: "",
            lacks: None,
            detail: String::new(),
        };
        let mut rows: Vec<Row> = commands.iter().map(|(name, words)| row(name, words)).collect();
        rows.extend(own.iter().map(|command| row(&format!("/{}", command.name), &command.description)));
        // The sort is stable, so commands that were not used recently keep their order.
        rows.sort_by_key(|row| last.iter().position(|used| *used == row.key).unwrap_or(usize::MAX));
        let mut picker = Picker::new("Commands", COLUMNS).fuzzy();
        picker.set_rows(rows);
        Self(picker)
    }
}

impl ScreenLayer for CommandPalette {
    fn list(&mut self) -> Option<&mut Picker> {
        Some(&mut self.0)
    }

    fn choose(&mut self, row: &str) -> Reaction {
        Reaction::CloseWith(LayerRequest::ChooseCommand(row.to_owned()))
    }
}
