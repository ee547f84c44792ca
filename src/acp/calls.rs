//! Tool calls as an editor displays them: their kinds, locations and content.

use super::markdown::fence;
use super::places;
use crate::protocol::{CallArguments, CallId, FileDiff, ToolError, ToolStatus, cut_position_after, cut_position_before};
use agent_client_protocol::v1::schema::{Content, ToolCallContent, ToolCallLocation, ToolCallStatus, ToolKind};
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Maximum number of bytes of a call's text to send to the editor. The model still receives the full text.
pub(crate) const SHOWN_BYTES: usize = 48 << 10;
/// Maximum number of bytes of a running command's most recent output to send to the editor.
pub(crate) const TAIL_BYTES: usize = 12 << 10;
/// Maximum size in bytes of the raw arguments to send to the editor.
const RAW_BYTES: usize = 64 << 10;
const TITLE_BYTES: usize = 240;
const MAX_LOCATIONS: usize = 50;

/// Returns the kind of a call, judging by its tool or, if the tool is unknown, by its policy capability.
pub(crate) fn kind(tool: &str, capability: Option<&str>) -> ToolKind {
    match tool {
        "ReadFile" | "Stat" | "TextInspect" | "HashFile" | "DiskUsage" | "CliRead" | "CliEnv" | "CliGetPlatform" => {
            ToolKind::Read
        }
        "ListDirectory" | "Glob" | "Grep" | "FindTools" => ToolKind::Search,
        "Move" => ToolKind::Move,
        "Delete" => ToolKind::Delete,
        _ => match capability {
            Some("File.Read") => ToolKind::Read,
            Some("File.Write") => ToolKind::Edit,
            Some("File.Delete") => ToolKind::Delete,
            Some("Shell.Exec" | "Tool.Custom") => ToolKind::Execute,
            Some("Network.Http") => ToolKind::Fetch,
            Some("Network.Search") => ToolKind::Search,
            _ => ToolKind::Other,
        },
    }
}

/// Returns the file locations that a call's arguments refer to.
pub(crate) fn locations(arguments: &CallArguments, directory: &Path) -> Vec<ToolCallLocation> {
    let CallArguments::Object(arguments) = arguments else { return Vec::new() };
    let text = |name: &str| arguments.get(name).and_then(Value::as_str).filter(|path| !path.is_empty() && !path.contains('\0'));
    let line = arguments.get("offset").and_then(Value::as_u64).and_then(|line| u32::try_from(line).ok()).filter(|line| *line > 0);
    let named = ["path", "source", "destination"].into_iter().filter_map(text);
    named.map(|path| ToolCallLocation::new(places::absolute(path, directory)).line(line)).collect()
}

/// Returns the file locations that a change affects.
pub(crate) fn change_locations(paths: &[PathBuf], diffs: &[FileDiff], directory: &Path) -> Vec<ToolCallLocation> {
    let starts = diffs.iter().flat_map(|file| &file.hunks).map(|hunk| u32::try_from(hunk.new_start));
    let line = starts.flatten().find(|line| *line > 0);
    let path = |(at, path): (usize, &PathBuf)| {
        let path = places::absolute(&path.to_string_lossy(), directory);
        ToolCallLocation::new(path).line(line.filter(|_| at == 0))
    };
    paths.iter().take(MAX_LOCATIONS).enumerate().map(path).collect()
}

pub(crate) fn raw_input(arguments: &CallArguments) -> Option<Value> {
    match arguments {
        CallArguments::Object(object) => {
            let size: usize = object.values().map(|value| value.as_str().map_or(64, str::len)).sum();
            if size <= RAW_BYTES {
                return Some(Value::Object(object.clone()));
            }
            let short = |(name, value): (&String, &Value)| {
                let value = value.as_str().map_or_else(|| value.clone(), |text| Value::String(excerpt(text, RAW_BYTES / 8)));
                (name.clone(), value)
            };
            Some(Value::Object(object.iter().map(short).collect::<Map<_, _>>()))
        }
        CallArguments::Malformed(text) => Some(Value::String(excerpt(text, RAW_BYTES))),
    }
}

pub(crate) fn raw_output(output: &str, error: Option<&ToolError>, artifacts: &[String]) -> Value {
    let mut raw = json!({"output": excerpt(output, SHOWN_BYTES)});
    if let Some(error) = error {
        raw["error"] = json!({"code": error.code.as_str(), "message": error.message});
    }
    if !artifacts.is_empty() {
        raw["artifactUris"] = json!(artifacts);
    }
    raw
}

pub(crate) fn status(status: ToolStatus) -> ToolCallStatus {
    match status {
        ToolStatus::Succeeded => ToolCallStatus::Completed,
        ToolStatus::Failed | ToolStatus::Denied => ToolCallStatus::Failed,
    }
}

/// Formats a summary as a single line.
pub(crate) fn title(summary: &str) -> String {
    let line: String = summary.split_whitespace().collect::<Vec<_>>().join(" ");
    let end = cut_position_before(&line, TITLE_BYTES);
    if end < line.len() { format!("{}…", &line[..end]) } else { line }
}

/// Returns the text. If it is longer than `most` bytes, its middle is left out.
pub(crate) fn excerpt(text: &str, most: usize) -> String {
    crate::protocol::truncate(text, most).into_owned()
}

/// Shortens the text to its last `most` bytes.
pub(crate) fn tail(text: &mut String, most: usize) {
    if text.len() > 2 * most {
        let start = cut_position_after(text, text.len() - most);
        text.drain(..start);
    }
}

/// Wraps text in a code fence so that none of it is interpreted as Markdown.
pub(crate) fn code(text: &str, language: &str) -> ToolCallContent {
    let fence = fence(text);
    let end = if text.ends_with('\n') { "" } else { "\n" };
    text_content(format!("{fence}{language}\n{text}{end}{fence}"))
}

pub(crate) fn text_content(text: String) -> ToolCallContent {
    ToolCallContent::Content(Content::new(text))
}

/// Names for tool calls that are unique within a session. They are needed because providers may number calls from
/// the start again in each response.
#[derive(Default)]
pub(crate) struct Names {
    seen: HashMap<CallId, u32>,
}

impl Names {
    /// Assigns a name to a call that has just been requested, and returns it.
    pub(crate) fn assign_name(&mut self, id: &CallId) -> String {
        *self.seen.entry(id.clone()).or_default() += 1;
        self.tool_call_id(id)
    }

    pub(crate) fn tool_call_id(&self, id: &CallId) -> String {
        match self.seen.get(id) {
            None | Some(0 | 1) => id.to_string(),
            Some(number) => format!("{id}~{number}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::FileDiffs;

    #[test]
    fn calls_report_file_locations_with_lines() {
        let arguments = CallArguments::parse(r#"{"path": "src/a.rs", "offset": 12, "limit": 3}"#);
        let found = locations(&arguments, Path::new("/w"));
        assert_eq!((found[0].path.as_path(), found[0].line), (Path::new("/w/src/a.rs"), Some(12)));
        let found = change_locations(&["src/a.rs".into(), "/x/b".into()], &FileDiffs::read("@@ -3,2 +7,3 @@\n"), Path::new("/w"));
        assert_eq!((found[0].line, found[1].line, found[1].path.as_path()), (Some(7), None, Path::new("/x/b")));
    }

    #[test]
    fn large_arguments_are_truncated_and_repeated_call_ids_are_made_unique() {
        let raw = raw_input(&CallArguments::parse(&json!({"path": "a", "content": "x".repeat(200_000)}).to_string())).unwrap();
        assert!(raw["path"] == "a" && raw["content"].as_str().unwrap().len() < 20_000);
        let (mut names, id) = (Names::default(), CallId::new("call_1"));
        assert_eq!(
            [names.assign_name(&id), names.tool_call_id(&id), names.assign_name(&id), names.tool_call_id(&id)],
            ["call_1", "call_1", "call_1~2", "call_1~2"]
        );
    }

    #[test]
    fn program_output_cannot_close_its_code_block() {
        let ToolCallContent::Content(content) = code("```\n# a heading\n", "") else { panic!("words") };
        let agent_client_protocol::v1::schema::ContentBlock::Text(text) = content.content else { panic!("text") };
        assert_eq!(text.text, "````\n```\n# a heading\n````");
    }
}
