//! Runs the user's editor on a private temporary file or on an existing file.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::process::Command;

/// Environment variables that specify an editor, in order of precedence.
const VARIABLES: [&str; 2] = ["VISUAL", "EDITOR"];
/// Editor used if no environment variable is set.
const USUAL: &str = "vi";

/// Opens text in the editor, and returns the edited text when the editor has exited.
pub(crate) fn edit(name: &str, text: &str) -> Result<String, String> {
    edit_with(&find_editor(), name, text)
}

/// Opens an existing file in the editor, whose working directory is `directory`.
pub(crate) fn open(path: &Path, directory: &Path) -> Result<(), String> {
    run(&find_editor(), path, Some(directory))
}

/// An editor command, and the environment variable it was taken from, if any.
struct EditorCommand {
    line: OsString,
    from: &'static str,
}

fn find_editor() -> EditorCommand {
    let named = |from: &'static str| {
        let line = env::var_os(from).filter(|line| !line.is_empty())?;
        Some(EditorCommand { line, from })
    };
    VARIABLES.into_iter().find_map(named).unwrap_or_else(|| EditorCommand { line: OsString::from(USUAL), from: "" })
}

fn edit_with(editor: &EditorCommand, name: &str, text: &str) -> Result<String, String> {
    let cannot = |what: &str, error: &dyn std::fmt::Display| format!("cannot {what} the draft for the editor: {error}");
    let directory = tempfile::Builder::new().prefix("aye-edit-").permissions(fs::Permissions::from_mode(0o700)).tempdir();
    let directory = directory.map_err(|error| cannot("create", &error))?;
    // Editors detect the file type by its name. The directory does not matter.
    let name = Path::new(name).file_name().map_or_else(|| OsString::from("draft"), OsString::from);
    let draft = directory.path().join(name);
    let made = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft);
    made.and_then(|mut file| file.write_all(text.as_bytes())).map_err(|error| cannot("write", &error))?;
    run(editor, &draft, None)?;
    fs::read_to_string(&draft).map_err(|error| cannot("read", &error))
}

/// Runs the editor in the terminal, and waits until it exits.
fn run(EditorCommand { line, from }: &EditorCommand, path: &Path, directory: Option<&Path>) -> Result<(), String> {
    // A shell is used, because the variables may contain options.
    let mut command = Command::new("sh");
    command.arg("-c").arg("eval \"$AYE_EDITOR\" '\"$1\"'").arg("sh").arg(path).env("AYE_EDITOR", line);
    if let Some(directory) = directory {
        command.current_dir(directory);
    }
    let said = if from.is_empty() { "set $VISUAL or $EDITOR to an installed editor" } else { "see its output" };
    let shown = line.to_string_lossy();
    let from = if from.is_empty() { String::new() } else { format!(" (${from})") };
    match command.status() {
        Err(error) => Err(format!("cannot start the editor `{shown}`{from}: {error}")),
        Ok(status) if status.code() == Some(127) => {
            Err(format!("cannot find the editor `{shown}`{from}; set $VISUAL or $EDITOR to an installed editor"))
        }
        Ok(status) if !status.success() => Err(format!("the editor `{shown}`{from} failed ({status}); {said}")),
        Ok(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use crate::cli::screen::editor::*;

    fn editor(line: &str, from: &'static str) -> EditorCommand {
        EditorCommand { line: OsString::from(line), from }
    }

    #[test]
    fn the_draft_file_is_private_returns_edits_and_is_removed_afterwards() {
        let seen = tempfile::TempDir::new().unwrap();
        let note = seen.path().join("note");
        let script = format!(
            "f() {{ stat -c %a \"$(dirname \"$1\")\" \"$1\" > {0}; echo \"$1\" >> {0}; echo more >> \"$1\"; }}; f",
            note.display()
        );
        let text = edit_with(&editor(&script, "EDITOR"), "src/it's $x.rs", "one\n").unwrap();
        assert_eq!(text, "one\nmore\n");
        let said = fs::read_to_string(note).unwrap();
        let mut lines = said.lines();
        assert_eq!((lines.next(), lines.next()), (Some("700"), Some("600")));
        let path = lines.next().unwrap();
        assert!(path.ends_with("/it's $x.rs") && !Path::new(path).exists(), "{path}");
    }

    #[test]
    fn a_failing_or_missing_editor_is_reported() {
        let failed = edit_with(&editor("false", "VISUAL"), "f", "x").unwrap_err();
        assert!(failed.contains("`false` ($VISUAL) failed"), "{failed}");
        let missing = edit_with(&editor("no-such-editor --wait", "EDITOR"), "f", "x").unwrap_err();
        assert!(missing.contains("cannot find the editor `no-such-editor --wait` ($EDITOR)"), "{missing}");
    }
}
