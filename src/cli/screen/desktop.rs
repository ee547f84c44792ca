//! Desktop integration: the clipboard, and the user's editor.

use crate::cli::screen::current_workspace::CurrentWorkspace;
use crate::cli::screen::editor;
use crate::host::context::AppContext;
use crate::sys::clipboard;
use crate::sys::file::{Existing, write_whole};
use crate::tui::{Clipboard, EditorTarget, OpenInEditor, OuterMultiplexer};
use std::sync::Arc;

/// File in the data directory that receives copied text if no clipboard is available.
const COPIED: &str = "copied.txt";

pub(crate) fn clipboard(app: &AppContext) -> Clipboard {
    let own = app.clone();
    let offer = move |text: &str| {
        let program = clipboard::find(|name| own.environment.get(name).map(str::to_owned))?;
        Some(program.take(text).map(|()| program.name.to_owned()))
    };
    let own = app.clone();
    let keep = move |text: &str| {
        let path = own.directories.data.join(COPIED);
        let write = || {
            std::fs::create_dir_all(&own.directories.data)?;
            write_whole(&path, text.as_bytes(), Existing::Replace)
        };
        match write() {
            Ok(()) => Ok(crate::text::abbreviate_home(&path, &own.home)),
            Err(error) => Err(format!("cannot write `{}`: {error}", path.display())),
        }
    };
    let variable = |name: &str| app.environment.get(name).unwrap_or_default();
    let between = if !variable("TMUX").is_empty() {
        OuterMultiplexer::Tmux
    } else if variable("TERM").starts_with("screen") && !variable("STY").is_empty() {
        OuterMultiplexer::Screen
    } else {
        OuterMultiplexer::Nothing
    };
    Clipboard { between, offer: Arc::new(offer), keep: Arc::new(keep) }
}

/// Returns a function that opens files and text in the user's editor.
pub(crate) fn editor_opener(here: &CurrentWorkspace) -> OpenInEditor {
    let here = here.clone();
    OpenInEditor(Arc::new(move |shown| match shown {
        EditorTarget::File(path) => {
            let workspace = here.workspace();
            let path = workspace.join(path);
            if !path.exists() {
                return Err(format!("`{}` no longer exists", path.display()));
            }
            editor::open(&path, &workspace)
        }
        // The file is a copy, so changes to it have no effect.
        EditorTarget::Text(text) => editor::edit("answer.md", text).map(drop),
    }))
}
