//! List of colour themes. The highlighted theme applies immediately to the whole screen.

use super::interface::ThemeChoice;
use super::picker::{Column, Picker, Row};
use super::theme::{self, Theme};
use crate::text;
use std::path::Path;

const COLUMNS: &[Column] =
    &[Column { head: "theme", is_number: false, rank: 0 }, Column { head: "kind", is_number: false, rank: 1 }];
/// Sample diff that previews the theme.
pub(crate) const SAMPLE: &str = "--- a/src/greet.rs\n+++ b/src/greet.rs\n@@ -1,4 +1,4 @@\n fn greet(name: &str) -> String {\n\
    -    format!(\"Hello, {name}\")\n+    format!(\"Hello, {name}!\")\n }\n";
/// Name of the choice that follows the terminal's background.
pub(crate) const AUTO: &str = "auto";

#[derive(Debug)]
pub(crate) struct ThemeList {
    pub picker: Picker,
    /// Choice before the list was opened, restored if it is closed.
    pub before: ThemeChoice,
}

impl ThemeList {
    /// Lists the themes, with the current choice highlighted.
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

    /// Returns the highlighted choice, if that theme can be used.
    pub(crate) fn choice(&self) -> Option<ThemeChoice> {
        let row = self.picker.highlighted().filter(|row| row.lacks.is_none())?;
        Some(if row.key == AUTO { ThemeChoice::Auto } else { ThemeChoice::Named(row.key.clone()) })
    }
}

fn row(name: &str, kind: &str, current: &str) -> Row {
    let mark = if name == current { "in use" } else { "" };
    Row { key: name.to_owned(), cells: vec![text::reveal_line(name), kind.to_owned()], mark, lacks: None, detail: String::new() }
}

fn own_row(name: &str, folder: Option<&Path>, current: &str) -> Row {
    match theme::find(folder, name) {
        Ok(theme) => {
            let ground = if theme.light { "yours, for a light background" } else { "yours" };
            row(name, ground, current)
        }
        Err(problem) => {
            let lacks = Some(text::reveal(&problem).into_owned());
            Row { lacks, ..row(name, "cannot be used", current) }
        }
    }
}
