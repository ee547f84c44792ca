//! Special calls, whose results must be sent as an item of a matching kind.

use super::passthrough::{item_type, text_field};
use crate::protocol::{CallArguments, ToolStatus};
use serde_json::{Map, Value, json};

/// Kind of a special call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Special {
    Custom,
    LocalShell,
    Shell,
    ApplyPatch,
    ToolSearch,
    Computer,
}

impl Special {
    pub(crate) fn from_type(kind: &str) -> Option<Self> {
        Some(match kind {
            "custom_tool_call" => Self::Custom,
            "local_shell_call" => Self::LocalShell,
            "shell_call" => Self::Shell,
            "apply_patch_call" => Self::ApplyPatch,
            "tool_search_call" => Self::ToolSearch,
            "computer_call" => Self::Computer,
            _ => return None,
        })
    }

    /// Returns the name of the tool that handles calls of this kind.
    pub(crate) fn tool(self, item: &Map<String, Value>) -> &str {
        match self {
            Self::Custom => text_field(item, "name"),
            Self::LocalShell => "local_shell",
            Self::Shell => "shell",
            Self::ApplyPatch => "apply_patch",
            Self::ToolSearch => "tool_search",
            Self::Computer => "computer",
        }
    }

    pub(crate) fn arguments(self, item: &mut Map<String, Value>) -> CallArguments {
        let field = match self {
            // The input is free text, even if it looks like JSON.
            Self::Custom => return CallArguments::Malformed(text_field(item, "input").to_owned()),
            Self::LocalShell | Self::Shell | Self::Computer => "action",
            Self::ApplyPatch => "operation",
            Self::ToolSearch => "arguments",
        };
        match item.get(field) {
            Some(Value::Object(map)) => CallArguments::Object(map.clone()),
            Some(Value::String(text)) => CallArguments::parse(text),
            Some(_) | None => match item.get("actions") {
                Some(actions) => CallArguments::Object(Map::from_iter([("actions".to_owned(), actions.clone())])),
                None => CallArguments::Malformed(String::new()),
            },
        }
    }

    /// Returns the item that contains the result of a call. Returns `None` if the result cannot be expressed as text,
    /// in which case the call and its result are sent as a function call and its output.
    pub(crate) fn answer(self, call_id: &str, text: &str, status: ToolStatus) -> Option<Value> {
        let done = status == ToolStatus::Succeeded;
        Some(match self {
            Self::Custom => json!({"type": "custom_tool_call_output", "call_id": call_id, "output": text}),
            Self::LocalShell => json!({"type": "local_shell_call_output", "call_id": call_id, "output": text}),
            Self::Shell => {
                let (stdout, stderr) = if done { (text, "") } else { ("", text) };
                let outcome = json!({"type": "exit", "exit_code": i32::from(!done)});
                let output = json!([{"stdout": stdout, "stderr": stderr, "outcome": outcome}]);
                json!({"type": "shell_call_output", "call_id": call_id, "output": output})
            }
            Self::ApplyPatch => {
                let status = if done { "completed" } else { "failed" };
                json!({"type": "apply_patch_call_output", "call_id": call_id, "status": status, "output": text})
            }
            Self::ToolSearch => {
                let status = "completed";
                json!({"type": "tool_search_output", "call_id": call_id, "execution": "client", "status": status, "tools": []})
            }
            Self::Computer => return None,
        })
    }
}

/// Returns whether the provider runs this call itself. This is the case if the call says so, if it uses the provider's
/// container, or if the response includes its output.
pub(crate) fn is_run_by_provider<'a>(item: &Map<String, Value>, all: impl IntoIterator<Item = &'a Map<String, Value>>) -> bool {
    let container = item.get("environment").and_then(|environment| environment.get("type")).and_then(Value::as_str);
    if text_field(item, "execution") == "server" || container.is_some_and(|kind| kind.starts_with("container")) {
        return true;
    }
    let (output, call_id) = (output_type(item_type(item)), text_field(item, "call_id"));
    !call_id.is_empty() && all.into_iter().any(|other| item_type(other) == output && text_field(other, "call_id") == call_id)
}

fn output_type(kind: &str) -> String {
    if kind == "tool_search_call" { "tool_search_output".to_owned() } else { format!("{kind}_output") }
}
