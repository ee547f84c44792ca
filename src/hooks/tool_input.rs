//! Translates tools and their arguments to Claude Code's equivalents, because most hooks are written for Claude Code.

use serde_json::{Map, Value};

/// Argument whose name differs in Claude Code.
struct Argument {
    own: &'static str,
    other: &'static str,
    /// Factor by which a numeric value is multiplied, for example to convert seconds to milliseconds.
    factor: u64,
}

const fn named(own: &'static str, other: &'static str) -> Argument {
    Argument { own, other, factor: 1 }
}

/// Tool as presented to hooks.
pub(crate) struct ToolShape {
    tool: &'static str,
    /// Names by which a matcher can refer to the tool, most specific first.
    pub names: &'static [&'static str],
    arguments: &'static [Argument],
}

/// Name under which hooks receive a file path.
pub(crate) const FILE_PATH: &str = "file_path";
/// Name under which `EditFile` receives its list of edits.
const EDITS: &str = "edits";
/// Arguments of a single edit.
const EDIT: [Argument; 3] = [named("oldText", "old_string"), named("newText", "new_string"), named("replaceAll", "replace_all")];

/// Tools whose names or arguments differ. Every tool that changes files can be matched by the names of all such
/// tools, so a hook that protects a file sees every change to it.
const SHAPES: &[ToolShape] = &[
    ToolShape {
        tool: "RunCommand",
        names: &["Bash"],
        arguments: &[Argument { own: "timeout", other: "timeout", factor: 1000 }, named("background", "run_in_background")],
    },
    ToolShape { tool: "CliSession", names: &["Bash"], arguments: &[] },
    ToolShape { tool: "CliWrite", names: &["Bash"], arguments: &[named("text", "command")] },
    ToolShape { tool: "CliRead", names: &["BashOutput"], arguments: &[named("id", "bash_id")] },
    ToolShape { tool: "CliStop", names: &["KillShell"], arguments: &[named("id", "shell_id")] },
    ToolShape { tool: "ReadFile", names: &["Read"], arguments: &[named("path", FILE_PATH)] },
    ToolShape { tool: "ListDirectory", names: &["LS"], arguments: &[] },
    ToolShape {
        tool: "Grep",
        names: &[],
        arguments: &[
            named("ignoreCase", "-i"),
            named("after", "-A"),
            named("before", "-B"),
            named("context", "-C"),
            named("output", "output_mode"),
            named("maxResults", "head_limit"),
        ],
    },
    ToolShape { tool: "WriteFile", names: &["Write"], arguments: &[named("path", FILE_PATH)] },
    ToolShape { tool: "AppendFile", names: &["Write", "Edit"], arguments: &[named("path", FILE_PATH)] },
    ToolShape { tool: "EditFile", names: &["Edit", "MultiEdit"], arguments: &[named("path", FILE_PATH)] },
    ToolShape { tool: "ApplyPatch", names: &["Edit", "MultiEdit", "Write"], arguments: &[] },
    ToolShape { tool: "TextPatch", names: &["Edit", "MultiEdit"], arguments: &[named("filePath", FILE_PATH)] },
    ToolShape { tool: "CreateDirectory", names: &["Write"], arguments: &[] },
    ToolShape { tool: "Copy", names: &["Write"], arguments: &[] },
    ToolShape { tool: "Move", names: &["Write", "Edit"], arguments: &[] },
    ToolShape { tool: "Delete", names: &["Write", "Edit"], arguments: &[] },
    ToolShape { tool: "HttpRequest", names: &["WebFetch"], arguments: &[] },
];

/// Shape of a tool whose name and arguments are the same in Claude Code.
static SAME: ToolShape = ToolShape { tool: "", names: &[], arguments: &[] };

/// Returns the shape of the given aye tool.
pub(crate) fn shape_of(tool: &str) -> &'static ToolShape {
    SHAPES.iter().find(|shape| shape.tool == tool).unwrap_or(&SAME)
}

impl ToolShape {
    /// Returns a call's arguments in the form that hooks expect.
    pub(crate) fn input(&self, arguments: &Map<String, Value>) -> Map<String, Value> {
        let mut input = renamed(arguments, self.arguments);
        if self.tool != "EditFile" {
            return input;
        }
        if let Some(Value::Array(edits)) = input.get_mut(EDITS) {
            for edit in edits.iter_mut() {
                if let Value::Object(one) = edit {
                    *one = renamed(one, &EDIT);
                }
            }
            // A call with a single edit is presented as a call to `Edit`.
            if let [Value::Object(only)] = edits.as_slice() {
                let only = only.clone();
                input.shift_remove(EDITS);
                input.extend(only);
            }
        }
        input
    }

    /// Returns a call's arguments after a hook has changed its input. Arguments that the hook left unchanged remain
    /// exactly as the model wrote them.
    pub(crate) fn rewritten(
        &self,
        arguments: &Map<String, Value>,
        told: &Map<String, Value>,
        updated: &Map<String, Value>,
    ) -> Map<String, Value> {
        let is_single = self.tool == "EditFile" && !told.contains_key(EDITS);
        let mut result = arguments.clone();
        let edit_key = |key: &str| EDIT.iter().find(|argument| is_single && argument.other == key);
        let keys = told.keys().chain(updated.keys().filter(|key| !told.contains_key(*key)));
        for key in keys {
            let value = updated.get(key);
            if value == told.get(key) {
                continue;
            }
            if let Some(argument) = edit_key(key) {
                if let Some(Value::Object(edit)) = result.get_mut(EDITS).and_then(|edits| edits.get_mut(0)) {
                    set(edit, argument.own, value.cloned());
                }
                continue;
            }
            let argument = self.arguments.iter().find(|argument| argument.other == key);
            let value = value.map(|value| own_value(key, value, argument));
            set(&mut result, argument.map_or(key.as_str(), |argument| argument.own), value);
        }
        result
    }
}

fn set(object: &mut Map<String, Value>, key: &str, value: Option<Value>) {
    match value {
        Some(value) => drop(object.insert(key.to_owned(), value)),
        None => drop(object.shift_remove(key)),
    }
}

/// Converts a value written by a hook to the form that the tool expects.
fn own_value(key: &str, value: &Value, argument: Option<&Argument>) -> Value {
    let factor = argument.map_or(1, |argument| argument.factor);
    if let Some(number) = value.as_u64().filter(|_| factor > 1) {
        return number.div_ceil(factor).into();
    }
    let Value::Array(edits) = value else { return value.clone() };
    if key != EDITS {
        return value.clone();
    }
    let own = |edit: &Value| match edit {
        Value::Object(edit) => {
            Value::Object(edit.iter().map(|(key, value)| (edit_argument(key).to_owned(), value.clone())).collect())
        }
        other => other.clone(),
    };
    Value::Array(edits.iter().map(own).collect())
}

/// Returns aye's name for an argument of an edit.
fn edit_argument(key: &str) -> &str {
    EDIT.iter().find(|argument| argument.other == key).map_or(key, |argument| argument.own)
}

/// Renames arguments to their Claude Code names and converts their values.
fn renamed(arguments: &Map<String, Value>, names: &[Argument]) -> Map<String, Value> {
    let rename = |(key, value): (&String, &Value)| match names.iter().find(|argument| argument.own == key) {
        Some(argument) => {
            let number = value.as_u64().filter(|_| argument.factor > 1);
            let value = number.map_or_else(|| value.clone(), |number| number.saturating_mul(argument.factor).into());
            (argument.other.to_owned(), value)
        }
        None => (key.clone(), value.clone()),
    };
    arguments.iter().map(rename).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn object(value: Value) -> Map<String, Value> {
        match value {
            Value::Object(object) => object,
            other => panic!("{other}"),
        }
    }

    /// Returns the input that the hook receives, and the call's arguments after the hook has changed that input.
    fn rewrite(tool: &str, arguments: Value, change: impl FnOnce(&mut Map<String, Value>)) -> (Value, Value) {
        let (shape, arguments) = (shape_of(tool), object(arguments));
        let told = shape.input(&arguments);
        let mut updated = told.clone();
        change(&mut updated);
        (Value::Object(told.clone()), Value::Object(shape.rewritten(&arguments, &told, &updated)))
    }

    #[test]
    fn commands_edits_and_files_are_passed_to_hooks_under_their_usual_names() {
        let (told, own) = rewrite("RunCommand", json!({"command": "a", "timeout": 5, "cwd": "x"}), |input| {
            input.insert("command".to_owned(), "b".into());
            input.insert("timeout".to_owned(), 1500.into());
            input.shift_remove("cwd");
        });
        assert_eq!(told, json!({"command": "a", "timeout": 5000, "cwd": "x"}));
        assert_eq!(own, json!({"command": "b", "timeout": 2}));
        let one = json!({"path": "f", "edits": [{"oldText": "a", "newText": "b", "replaceAll": true}]});
        let (told, own) = rewrite("EditFile", one, |input| drop(input.insert("new_string".to_owned(), "c".into())));
        assert_eq!(told, json!({"file_path": "f", "old_string": "a", "new_string": "b", "replace_all": true}));
        assert_eq!(own, json!({"path": "f", "edits": [{"oldText": "a", "newText": "c", "replaceAll": true}]}));
        let two = json!({"path": "f", "edits": [{"oldText": "a", "newText": "b"}, {"oldText": "c", "newText": "d"}]});
        let (told, own) = rewrite("EditFile", two, |input| {
            input.insert("edits".to_owned(), json!([{"old_string": "a", "new_string": "z"}]));
        });
        assert_eq!(told["edits"][1], json!({"old_string": "c", "new_string": "d"}));
        assert_eq!(own, json!({"path": "f", "edits": [{"oldText": "a", "newText": "z"}]}));
        let (told, own) = rewrite("WriteFile", json!({"path": "f", "content": "x"}), |input| {
            input.insert("file_path".to_owned(), "g".into());
            input.insert("new".to_owned(), 1.into());
        });
        assert_eq!((told, own), (json!({"file_path": "f", "content": "x"}), json!({"path": "g", "content": "x", "new": 1})));
    }

    #[test]
    fn every_tool_that_changes_files_is_matched_as_edit_or_write() {
        for tool in
            ["WriteFile", "AppendFile", "EditFile", "ApplyPatch", "TextPatch", "CreateDirectory", "Copy", "Move", "Delete"]
        {
            assert!(shape_of(tool).names.iter().any(|name| ["Edit", "Write"].contains(name)), "{tool}");
        }
        assert_eq!(shape_of("CliWrite").names, ["Bash"], "typing into a terminal runs commands");
    }

    proptest! {
        #[test]
        fn a_hook_that_changes_nothing_leaves_the_call_unchanged(
            tool in 0..SHAPES.len(),
            arguments in prop::collection::hash_map("(path|command|timeout|edits|text|[a-z]{1,4})", 0_u64..9, 0..5),
        ) {
            let arguments: Map<String, Value> = arguments.into_iter().map(|(key, value)| (key, value.into())).collect();
            let shape = &SHAPES[tool];
            let told = shape.input(&arguments);
            prop_assert_eq!(shape.rewritten(&arguments, &told, &told), arguments);
        }
    }
}
