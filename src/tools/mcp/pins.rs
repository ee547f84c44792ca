//! Approved definitions of MCP tools. If a definition changes, it must be approved again, and the approval prompt shows
//! the diff.

use crate::ports::RemoteTool;
use crate::sys::file::private::{PrivateError, read, update};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use similar::TextDiff;
use std::path::PathBuf;

/// Maximum size of a definition file in bytes. No valid definition is that large.
const MAX_BYTES: u64 = 1 << 20;
const HASH_LETTERS: usize = 32;
/// Number of context lines to show around each change in a diff.
const AROUND: usize = 1;
/// Maximum number of diff lines to show.
const MAX_SHOWN_LINES: usize = 400;

/// Stored definitions, in one file per tool that only the user can read.
#[derive(Debug, Clone)]
pub(crate) struct Pins {
    directory: PathBuf,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Pin {
    server: String,
    tool: String,
    fingerprint: String,
    #[serde(default)]
    title: Option<String>,
    description: String,
    input_schema: Value,
    #[serde(default)]
    output_schema: Option<Value>,
    says_read_only: bool,
}

/// State of a tool compared with its stored definition.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PinState {
    /// No definition has been stored.
    New,
    Same,
    /// The definition has changed since it was approved. Contains the diff.
    Changed(String),
}

impl Pins {
    /// Creates a store in this directory, which need not exist yet.
    pub(crate) fn in_directory(directory: PathBuf) -> Self {
        Self { directory }
    }

    fn file(&self, server: &str, tool: &str) -> PathBuf {
        let mut hasher = blake3::Hasher::new();
        hasher.update(server.as_bytes()).update(b"\0").update(tool.as_bytes());
        self.directory.join(format!("{}.json", &hasher.finalize().to_hex()[..HASH_LETTERS]))
    }

    /// Compares a tool with its stored definition. If the definition cannot be read, it is considered changed.
    pub(super) fn compare(&self, tool: &RemoteTool) -> PinState {
        let file = self.file(&tool.server, &tool.name);
        let unreadable = |why: String| {
            PinState::Changed(format!(
                "the approved definition cannot be read: `{}`: {why}; approve the call to save the current one",
                file.display()
            ))
        };
        let content = match read(&file, MAX_BYTES) {
            Ok(Some(content)) => content,
            Ok(None) => return PinState::New,
            Err(error) => return unreadable(error.to_string()),
        };
        match serde_json::from_slice::<Pin>(&content) {
            Ok(pin) if (pin.server.as_str(), pin.tool.as_str()) != (tool.server.as_str(), tool.name.as_str()) => {
                unreadable("the file belongs to another tool".to_owned())
            }
            Ok(pin) if pin.fingerprint == tool.fingerprint => PinState::Same,
            Ok(pin) => PinState::Changed(difference(&pin, &Pin::for_tool(tool))),
            Err(error) => unreadable(error.to_string()),
        }
    }

    /// Returns whether the tool's definition has changed since it was last approved.
    pub(crate) fn is_changed(&self, tool: &RemoteTool) -> bool {
        matches!(self.compare(tool), PinState::Changed(_))
    }

    /// Stores the tool's current definition as the approved one.
    pub(super) fn keep(&self, tool: &RemoteTool) -> Result<(), PrivateError> {
        let content = serde_json::to_vec(&Pin::for_tool(tool)).map_err(|error| PrivateError::Io(error.into()))?;
        let file = self.file(&tool.server, &tool.name);
        if matches!(read(&file, MAX_BYTES), Err(error) if !matches!(error, PrivateError::Io(_))) {
            // Something other than a private file of aye exists at the path.
            std::fs::remove_file(&file)?;
        }
        update(&file, MAX_BYTES, |_| Ok(Some(content)))
    }
}

impl Pin {
    fn for_tool(tool: &RemoteTool) -> Self {
        Self {
            server: tool.server.clone(),
            tool: tool.name.clone(),
            fingerprint: tool.fingerprint.clone(),
            title: tool.title.clone(),
            description: tool.description.clone(),
            input_schema: tool.input_schema.clone(),
            output_schema: tool.output_schema.clone(),
            says_read_only: tool.says_read_only,
        }
    }

    /// Formats the definition line by line for review.
    fn text(&self) -> String {
        let pretty = |value: &Value| serde_json::to_string_pretty(value).unwrap_or_default();
        let mut text = String::new();
        let mut line = |name: &str, value: &str| text.extend([name, ": ", value, "\n"]);
        if let Some(title) = &self.title {
            line("title", title);
        }
        line("description", &self.description);
        line("claims to be read-only", if self.says_read_only { "yes" } else { "no" });
        line("arguments", &pretty(&self.input_schema));
        if let Some(schema) = &self.output_schema {
            line("output", &pretty(schema));
        }
        text
    }
}

/// Returns the lines that were added and removed, with context.
fn difference(before: &Pin, now: &Pin) -> String {
    let (before, now) = (before.text(), now.text());
    if before == now {
        return "metadata other than the description and the arguments".to_owned();
    }
    let diff = TextDiff::from_lines(&before, &now);
    let mut lines = Vec::new();
    for hunk in diff.unified_diff().context_radius(AROUND).iter_hunks() {
        lines.extend(hunk.iter_changes().map(|line| format!("{}{}", line.tag(), line.value().trim_end_matches(['\r', '\n']))));
    }
    let more = lines.len().saturating_sub(MAX_SHOWN_LINES);
    lines.truncate(MAX_SHOWN_LINES);
    let more =
        if more > 0 { format!("\n… {more} more lines; `aye tool schema` shows the current definition") } else { String::new() };
    format!("{}{more}", lines.join("\n"))
}
