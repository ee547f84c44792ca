//! Arguments of the editor commands on which some models are trained. Edits are supported. For any other command, the
//! error says which tool to use.

use crate::protocol::ToolError;
use crate::tools::alias::Alias;
use crate::tools::arguments;
use crate::tools::error::invalid;
use crate::tools::write::edit_arguments::{Edit, EditArguments};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
struct EditorArguments {
    /// `str_replace`, or `create` for a file that does not exist.
    command: String,
    path: String,
    /// The text to replace.
    old_str: Option<String>,
    /// The replacement; empty by default.
    new_str: Option<String>,
    /// The content of a new file.
    file_text: Option<String>,
    /// Not supported: edit with the line before it as `old_str`.
    insert_line: Option<u64>,
    /// Not supported: use `new_str`.
    insert_text: Option<String>,
    /// Not supported: use ReadFile.
    view_range: Option<Vec<i64>>,
}

pub(super) const fn alias(name: &'static str) -> Alias<EditArguments> {
    Alias { name, parse, schema: arguments::schema::<EditorArguments> }
}

fn parse(given: Map<String, Value>) -> Result<EditArguments, ToolError> {
    // Other agents use this name with the arguments of an edit.
    if !given.contains_key("command") {
        return arguments::parse::<EditArguments>(given);
    }
    let EditorArguments { command, path, old_str, new_str, file_text, insert_line, insert_text, view_range } =
        arguments::parse::<EditorArguments>(given)?;
    let other = |tool: &str| Err(invalid(format!("`command`: `{command}` is not an edit; {tool}")));
    let (old_text, new_text) = match (command.as_str(), old_str, file_text) {
        ("str_replace", Some(old), None) => (old, new_str.unwrap_or_default()),
        ("create", None, Some(text)) if new_str.is_none() => (String::new(), text),
        ("str_replace", _, _) => return Err(invalid("`str_replace` takes `old_str` and `new_str`, but not `file_text`")),
        ("create", _, _) => return Err(invalid("`create` takes `file_text`, but neither `old_str` nor `new_str`")),
        ("view", _, _) => return other("read the file with ReadFile (`path`, `offset`, `limit`)"),
        ("insert", _, _) => {
            return other("insert with `str_replace`: the line before as `old_str`, that line and the new ones as `new_str`");
        }
        ("undo_edit", _, _) => return other("edit it back with `str_replace`"),
        _ => return Err(invalid(format!("`command`: unknown command `{command}`; expected `str_replace` or `create`"))),
    };
    if insert_line.is_some() || insert_text.is_some() || view_range.is_some() {
        return Err(invalid(format!("`{command}` does not accept `insert_line`, `insert_text` or `view_range`")));
    }
    Ok(EditArguments { path, edits: vec![Edit { old_text, new_text, replace_all: None }] })
}
