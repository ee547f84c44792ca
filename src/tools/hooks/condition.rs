//! Decides whether a call meets the condition of a hook (`if`).

use crate::hooks::{FILE_PATH, HookCondition};
use crate::policy::{from_other_agent, may_run_matching, names_tool};
use globset::GlobBuilder;
use serde_json::{Map, Value};
use std::path::Path;

/// Returns whether a call may meet a condition. `names` are the tool's names, and `told` is the hook's input. A pattern
/// that cannot be compared with the call is met, because the hook may be the one that denies it.
pub(super) fn may_meet(condition: &HookCondition, names: &[String], told: &Map<String, Value>, workspace: &Path) -> bool {
    let server = from_other_agent(&condition.tool);
    let is_tool = |name: &String| *name == condition.tool || server.as_ref().is_some_and(|entry| names_tool(entry, name));
    if !names.iter().any(is_tool) {
        return false;
    }
    let Some(pattern) = condition.pattern.as_deref() else { return true };
    let text = |key: &str| told.get(key).and_then(Value::as_str);
    if names.iter().any(|name| name == "Bash") {
        return text("command").is_none_or(|line| may_run_matching(line, pattern));
    }
    text(FILE_PATH).is_none_or(|path| may_match(Path::new(path), pattern, workspace))
}

/// Returns whether a path may match a pattern such as `src/**`, `*.rs` (in any folder) or `//etc/**` (an absolute path).
fn may_match(path: &Path, pattern: &str, workspace: &Path) -> bool {
    let real = workspace.join(path);
    let is_plain = real.components().all(|part| !matches!(part, std::path::Component::ParentDir));
    let (pattern, path) = match pattern.strip_prefix('/') {
        Some(absolute) if absolute.starts_with('/') => (absolute.to_owned(), real.as_path()),
        Some(relative) => (relative.to_owned(), real.strip_prefix(workspace).unwrap_or(&real)),
        None => {
            let relative = pattern.strip_prefix("./").unwrap_or(pattern);
            let anywhere = if relative.contains('/') { "" } else { "**/" };
            (format!("{anywhere}{relative}"), real.strip_prefix(workspace).unwrap_or(&real))
        }
    };
    let glob = GlobBuilder::new(&pattern).literal_separator(true).build();
    let Ok(glob) = glob.map(|glob| glob.compile_matcher()) else { return true };
    !is_plain || pattern.starts_with('~') || glob.is_match(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn meets(condition: &str, names: &[&str], told: &Value) -> bool {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        may_meet(&HookCondition::read(condition).unwrap(), &names, told.as_object().unwrap(), Path::new("/w"))
    }

    #[test]
    fn a_hook_with_a_condition_runs_only_for_matching_commands() {
        let bash = ["Bash", "RunCommand"];
        assert!(meets("Bash(git commit:*)", &bash, &json!({"command": "make && git commit -m x"})));
        assert!(!meets("Bash(git commit:*)", &bash, &json!({"command": "git status"})));
        assert!(meets("Bash", &bash, &json!({"command": "git status"})));
        assert!(!meets("Write", &bash, &json!({"command": "git commit"})));
        assert!(meets("mcp__docs", &["mcp__docs__search", "Mcp.docs/search"], &json!({})));
    }

    #[test]
    fn a_hook_with_a_condition_runs_only_for_matching_files() {
        let edit = ["Edit", "EditFile"];
        for (pattern, path, is_met) in [
            ("Edit(*.rs)", "src/a/b.rs", true),
            ("Edit(*.rs)", "/w/b.rs", true),
            ("Edit(*.rs)", "b.py", false),
            ("Edit(src/**)", "src/a/b", true),
            ("Edit(/src/*)", "src/a/b", false),
            ("Edit(./src/*)", "src/a", true),
            ("Edit(//etc/**)", "/etc/x", true),
            ("Edit(//etc/**)", "etc/x", false),
            ("Edit(src/**)", "a/../src/b", true),
            ("Edit([)", "a", true),
        ] {
            assert_eq!(meets(pattern, &edit, &json!({"file_path": path})), is_met, "{pattern} {path}");
        }
        assert!(meets("WebFetch(domain:example.org)", &["WebFetch"], &json!({"url": "https://example.com"})));
    }
}
