//! Text for programs and the model: it contains no key names and no slash commands, which exist only on the screen.

use crate::source::{Source, products};

/// Modules with text that programs, the model or all front ends receive.
const SPEAKERS: &[&str] = &["agent", "tools", "serve", "acp", "headless", "protocol", "llm", "policy", "mcp", "ports", "store"];
/// Files that respond to slash commands from an editor.
const ANSWERS_SLASH_COMMANDS: &[&str] = &["src/acp/slash.rs", "src/acp/commands.rs", "src/acp/session.rs"];

const KEYS: &[&str] = &["ctrl+", "alt+", "shift+", " esc ", "esc stops", "press `", "press y"];
const COMMANDS: &[&str] = &[
    "artifacts",
    "budget",
    "clear",
    "compact",
    "context",
    "continue",
    "copy",
    "cost",
    "diff",
    "effort",
    "export",
    "fork",
    "help",
    "init",
    "key",
    "login",
    "mcp",
    "mode",
    "model",
    "new",
    "policy",
    "ps",
    "queue",
    "quit",
    "redo",
    "rename",
    "resume",
    "review",
    "rewind",
    "setup",
    "status",
    "steer",
    "stop",
    "theme",
    "tree",
    "undo",
];

/// Returns the numbered lines of a file outside comments and unit tests.
fn lines(source: &Source) -> impl Iterator<Item = (usize, &str)> {
    let end = source.text.lines().position(|line| line.trim() == "#[cfg(test)]").unwrap_or(usize::MAX);
    let numbered = source.text.lines().enumerate().take_while(move |(at, _)| *at < end);
    numbered.filter(|(_, line)| !line.trim_start().starts_with("//")).map(|(at, line)| (at + 1, line))
}

fn slash_command(line: &str) -> Option<&'static str> {
    COMMANDS.iter().copied().find(|command| {
        line.match_indices(&format!("/{command}")).any(|(at, found)| {
            let before = line[..at].chars().next_back();
            let after = line[at + found.len()..].chars().next();
            before.is_some_and(|one| " `\"(".contains(one))
                && after.is_none_or(|one| !(one.is_alphanumeric() || "-_/.".contains(one)))
        })
    })
}

#[test]
fn text_for_programs_and_the_model_contains_no_key_names_or_slash_commands() {
    let mut wrong = Vec::new();
    for source in &products() {
        if !source.module().is_some_and(|module| SPEAKERS.contains(&module)) {
            continue;
        }
        let answers = ANSWERS_SLASH_COMMANDS.contains(&source.path.as_str());
        for (number, line) in lines(source) {
            let key = KEYS.iter().copied().find(|key| line.contains(key));
            let command = slash_command(line).filter(|_| !answers);
            if let Some(found) = key.or(command) {
                wrong.push(format!("{}:{number}: `{found}` is of the screen: {}", source.path, line.trim()));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

/// File that formats errors with their labels.
const LAYS_OUT_ERRORS: &str = "src/protocol/problem.rs";

#[test]
fn error_and_hint_labels_are_written_in_one_place() {
    let mut wrong = Vec::new();
    for source in products().iter().filter(|source| source.path != LAYS_OUT_ERRORS) {
        for (number, line) in lines(source) {
            // The text for the model has no other lines, and other programs print these labels too.
            let is_other = line.contains("trim_start_matches(") || source.module() == Some("tools");
            if ["\"error: ", "\"hint: ", "\\nerror: ", "\\nhint: "].iter().any(|label| line.contains(label)) && !is_other {
                wrong.push(format!("{}:{number}: use `Problem`: {}", source.path, line.trim()));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

#[test]
fn slash_commands_are_distinguished_from_paths() {
    assert_eq!(slash_command("\"renew it, then /continue\""), Some("continue"));
    assert_eq!(slash_command("\"/budget {words} continues\""), Some("budget"));
    for line in ["\"/models\"", "\"/tmp/new\"", "\"src/policy\"", "\"/diff/a\"", "a / mode", "\"/.aye/policy.toml\""] {
        assert_eq!(slash_command(line), None, "{line}");
    }
}
