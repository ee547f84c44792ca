//! List of colour themes. The highlighted theme is immediately applied to the screen.

mod view;

use super::{Canvas, LayerContext, LayerRequest, Reaction, ScreenLayer};
use crate::text;
use crate::tui::interface::ThemeChoice;
use crate::tui::picker::{Column, Picker, Row};
use crate::tui::theme::{self, Theme};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use std::path::Path;

const COLUMNS: &[Column] =
    &[Column { head: "theme", is_number: false, rank: 0 }, Column { head: "kind", is_number: false, rank: 1 }];
/// Sample diff shown in the theme preview.
pub(crate) const SAMPLE: &str = "--- a/src/greet.rs\n+++ b/src/greet.rs\n@@ -1,4 +1,4 @@\n fn greet(name: &str) -> String {\n\
    -    format!(\"Hello, {name}\")\n+    format!(\"Hello, {name}!\")\n }\n";
/// Name of the choice that matches the theme to the terminal's background.
pub(crate) const AUTO: &str = "auto";

pub(crate) struct ThemeList {
    picker: Picker,
    /// Theme choice from before the list was opened, restored if the user closes the list without choosing.
    before: ThemeChoice,
}

impl ThemeList {
    /// Creates the list of built-in themes and the user themes in `folder`, with the current choice highlighted.
    pub(crate) fn new(before: ThemeChoice, folder: Option<&Path>) -> Self {
        let current = match &before {
            ThemeChoice::Auto => AUTO,
            ThemeChoice::Named(name) => name,
        };
        let mut rows = vec![row(AUTO, "follows the terminal's background", current)];
        rows.extend(Theme::names().map(|name| row(name, "built in", current)));
        rows.extend(theme::list(folder).iter().map(|name| own_row(name, folder, current)));
        let mut picker = Picker::new("Themes", COLUMNS);
        picker.set_rows(rows);
        picker.highlight(current);
        if let Some(folder) = folder {
            picker.set_notices(vec![format!("your themes: {}", text::reveal_line(&folder.display().to_string()))]);
        }
        Self { picker, before }
    }

    /// Returns the highlighted choice, or `None` if its theme cannot be used.
    fn choice(&self) -> Option<ThemeChoice> {
        let row = self.picker.highlighted().filter(|row| row.lacks.is_none())?;
        Some(if row.key == AUTO { ThemeChoice::Auto } else { ThemeChoice::Named(row.key.clone()) })
    }
}

impl ScreenLayer for ThemeList {
    fn list(&mut self) -> Option<&mut Picker> {
        Some(&mut self.picker)
    }

    fn choose(&mut self, row: &str) -> Reaction {
        Reaction::CloseWith(LayerRequest::UseTheme(row.to_owned()))
    }

    fn refuse(&mut self, why: String) -> Reaction {
        Reaction::Request(LayerRequest::ShowToast(why))
    }

    fn on_close(&mut self) -> Reaction {
        Reaction::CloseWith(LayerRequest::RestoreTheme(self.before.clone()))
    }

    fn on_highlight_moved(&mut self) -> Option<LayerRequest> {
        self.choice().map(LayerRequest::ShowTheme)
    }

    fn draw(&mut self, area: Rect, buffer: &mut Buffer, canvas: &Canvas<'_>) -> Option<Position> {
        Some(view::draw(self, area, buffer, canvas.theme, canvas.glyphs))
    }

    fn hints(&self, _around: LayerContext) -> Vec<&'static str> {
        vec!["enter save", "esc cancel", "up down preview", "type to filter"]
    }
}

fn row(name: &str, kind: &str, current: &str) -> Row {
    let mark = if name == current { "in use" } else { "" };
    Row { key: name.to_owned(), cells: vec![text::reveal_line(name), kind.to_owned()], mark, lacks: None, detail: String::new() }
}

fn own_row(name: &str, folder: Option<&Path>, current: &str) -> Row {
    match theme::find(folder, name) {
        Ok(theme) => {
            let ground = if theme.light { "custom, for a light background" } else { "yours" };
            row(name, ground, current)
        }
        Err(problem) => {
            let lacks = Some(text::reveal(&problem).into_owned());
            Row { lacks, ..row(name, "cannot be used", current) }
        }
    }
}
