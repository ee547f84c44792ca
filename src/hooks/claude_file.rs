//! Hook files in Claude Code's format: the `hooks` key of `.claude/settings.json`.

use super::condition::HookCondition;
use super::hook::{Hook, HookAction, HookFile, HookOrigin, MAX_FILE_BYTES, command};
use super::matcher::Matcher;
use crate::protocol::HookEvent;
use serde_json::{Map, Value};

/// Keys of a hook entry that have an effect, or whose effect aye does not need.
const KEYS: [&str; 8] = ["type", "shell", "command", "args", "timeout", "if", "statusMessage", "description"];

/// Reads the hooks from a settings file, which maps each event to a list of `{matcher, hooks: [{type, command,
/// timeout}]}`. Everything else in the file is ignored. Any part that cannot be read becomes an unusable hook.
pub(crate) fn read_claude_file(bytes: &[u8], file: &str, origin: HookOrigin) -> HookFile {
    if bytes.len() > MAX_FILE_BYTES {
        return HookFile::unreadable(file, origin, format!("the file is {} bytes; the limit is {MAX_FILE_BYTES}", bytes.len()));
    }
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return HookFile::default();
    }
    let settings: Value = match serde_json::from_slice(bytes) {
        Ok(settings) => settings,
        Err(error) => return HookFile::unreadable(file, origin, format!("the file is not valid JSON ({error})")),
    };
    let Value::Object(settings) = settings else {
        return HookFile::unreadable(file, origin, "the file is not a JSON object");
    };
    let hooks = match settings.get("hooks") {
        None | Some(Value::Null) => return HookFile::default(),
        Some(Value::Object(hooks)) => hooks,
        Some(_) => return HookFile::unreadable(file, origin, "`hooks` is not an object"),
    };
    let mut found = HookFile::default();
    if settings.get("disableAllHooks") == Some(&Value::Bool(true)) {
        found.notes.push(format!("{file}: `disableAllHooks` is set, so none of its hooks run"));
        return found;
    }
    for (name, groups) in hooks {
        match HookEvent::from_name(name) {
            Some(event) => groups_of(event, groups, &mut found, (file, origin)),
            None => found.notes.push(format!("{file}: ignored `{}`: aye has no such event", name.escape_debug())),
        }
    }
    found
}

/// Adds the hooks for an event.
fn groups_of(event: HookEvent, groups: &Value, found: &mut HookFile, from: (&str, HookOrigin)) {
    let unusable = |why: &str| HookAction::Unusable(why.to_owned());
    let Value::Array(groups) = groups else {
        return found.add(event, Matcher::All, unusable("the value of the event is not a list"), from);
    };
    for group in groups {
        let Value::Object(group) = group else {
            found.add(event, Matcher::All, unusable("an entry of the event is not an object"), from);
            continue;
        };
        let matcher = match group.get("matcher") {
            None | Some(Value::Null) => Ok(Matcher::All),
            Some(Value::String(text)) => Matcher::read(Some(text)),
            Some(_) => Err("`matcher` is not a string".to_owned()),
        };
        let matcher = match matcher {
            Ok(matcher) => matcher,
            Err(why) => {
                found.add(event, Matcher::All, HookAction::Unusable(why), from);
                continue;
            }
        };
        match group.get("hooks") {
            Some(Value::Array(hooks)) => {
                for hook in hooks {
                    hook_of(event, &matcher, hook, found, from);
                }
            }
            Some(_) => found.add(event, matcher, unusable("`hooks` of an entry is not a list"), from),
            None => found.add(event, matcher, unusable("an entry has no `hooks`"), from),
        }
    }
}

/// Adds a hook entry, and a note about each of its keys that has no effect.
fn hook_of(event: HookEvent, matcher: &Matcher, hook: &Value, found: &mut HookFile, from: (&str, HookOrigin)) {
    let Value::Object(hook) = hook else {
        return found.add(event, matcher.clone(), HookAction::Unusable("a hook is not an object".to_owned()), from);
    };
    let (condition, action) = match condition(event, hook) {
        Ok(condition) => (condition, action(hook)),
        Err(why) => (None, HookAction::Unusable(why)),
    };
    found.add_with_condition(event, (matcher.clone(), condition), action, from);
    let Some(name) = found.hooks.last().filter(|added| added.number != 0).map(Hook::name) else { return };
    let ignored = hook.keys().filter(|key| !KEYS.contains(&key.as_str()));
    found.notes.extend(ignored.map(|key| format!("{name}: ignored `{}`: it has no effect in aye", key.escape_debug())));
}

/// Returns the condition of a hook entry (`if`), which only hooks for calls can have.
fn condition(event: HookEvent, hook: &Map<String, Value>) -> Result<Option<HookCondition>, String> {
    let condition = match hook.get("if") {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(text)) => HookCondition::read(text)?,
        Some(_) => return Err("`if` is not a string".to_owned()),
    };
    if matches!(event, HookEvent::PreToolUse | HookEvent::PostToolUse) {
        Ok(Some(condition))
    } else {
        Err("`if` selects calls, but this event is not a call; remove it".to_owned())
    }
}

/// Returns the action described by a hook entry.
fn action(hook: &Map<String, Value>) -> HookAction {
    match hook.get("type") {
        None => {}
        Some(Value::String(kind)) if kind == "command" => {}
        Some(kind) => return HookAction::Unusable(format!("`type` is {kind}; aye runs only hooks of type \"command\"")),
    }
    match hook.get("shell") {
        None | Some(Value::Null) => {}
        Some(Value::String(shell)) if shell == "bash" => {}
        Some(shell) => return HookAction::Unusable(format!("`shell` is {shell}; aye runs hooks with bash")),
    }
    let Some(Value::String(line)) = hook.get("command") else {
        return HookAction::Unusable("`command` is missing, or not a string".to_owned());
    };
    let timeout = match hook.get("timeout") {
        None | Some(Value::Null) => None,
        Some(Value::Number(seconds)) => seconds.as_f64(),
        Some(other) => return HookAction::Unusable(format!("`timeout` is {other}; it must be a number of seconds")),
    };
    match hook.get("args") {
        None | Some(Value::Null) => command(line, timeout, false),
        Some(Value::Array(words)) => {
            let words: Option<Vec<&str>> = words.iter().map(Value::as_str).collect();
            let Some(words) = words else { return HookAction::Unusable("`args` is not a list of strings".to_owned()) };
            let quoted = std::iter::once(line.as_str()).chain(words).map(|word| format!("'{}'", word.replace('\'', r"'\''")));
            command(&quoted.collect::<Vec<_>>().join(" "), timeout, false)
        }
        Some(_) => HookAction::Unusable("`args` is not a list of strings".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> HookFile {
        read_claude_file(text.as_bytes(), ".claude/settings.json", HookOrigin::Project)
    }

    /// Hooks that are common in repositories: a command guard, a formatter, and context for the session.
    const USUAL: &str = r#"{
      "permissions": {"allow": ["Bash(npm test)"]},
      "hooks": {
        "PreToolUse": [
          {"matcher": "Bash", "hooks": [{"type": "command", "command": "jq -r .tool_input.command | ./guard.sh"}]},
          {"matcher": "Edit|Write", "hooks": [
            {"type": "command", "command": "python3 \"$CLAUDE_PROJECT_DIR\"/.claude/hooks/check.py", "timeout": 5}]}
        ],
        "PostToolUse": [{"matcher": "Write", "hooks": [{"type": "command", "command": "npx prettier --check .", "timeout": 0.5}]}],
        "SessionStart": [{"hooks": [{"type": "command", "command": "git log -3", "timeout": 9000}]}],
        "SessionEnd": [{"hooks": [{"type": "command", "command": "true"}]}]
      }
    }"#;

    #[test]
    fn typical_hooks_are_parsed_with_their_matchers_and_timeouts() {
        let file = read(USUAL);
        let told: Vec<String> = file
            .hooks
            .iter()
            .map(|hook| match &hook.action {
                HookAction::Command { timeout_seconds, unsandboxed: false, .. } => {
                    format!("{} [{}] {timeout_seconds}", hook.name(), hook.matcher.text())
                }
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(
            told,
            [
                ".claude/settings.json PreToolUse 1 [Bash] 60",
                ".claude/settings.json PreToolUse 2 [Edit|Write] 5",
                ".claude/settings.json PostToolUse 1 [Write] 1",
                ".claude/settings.json SessionStart 1 [*] 600",
            ]
        );
        assert_eq!(file.notes, [".claude/settings.json: ignored `SessionEnd`: aye has no such event"]);
    }

    #[test]
    fn settings_without_hooks_define_no_hook() {
        for text in
            ["", "  \n", "{}", r#"{"permissions": {}}"#, r#"{"hooks": {}}"#, r#"{"hooks": null}"#, r#"{"hooks": {"Stop": []}}"#]
        {
            let file = read(text);
            assert!(file.hooks.is_empty() && file.notes.is_empty(), "{text}");
        }
        let off = read(r#"{"disableAllHooks": true, "hooks": {"Stop": [{"hooks": [{"command": "x"}]}]}}"#);
        assert!(off.hooks.is_empty() && off.notes[0].contains("disableAllHooks"));
    }

    #[test]
    fn an_invalid_part_becomes_an_unusable_hook_and_is_not_dropped() {
        let of_call = |inner: &str| format!(r#"{{"hooks": {{"PreToolUse": {inner}}}}}"#);
        for (text, why, matcher) in [
            ("[1, 2".to_owned(), "not valid JSON", "*"),
            ("[]".to_owned(), "not a JSON object", "*"),
            (r#"{"hooks": []}"#.to_owned(), "`hooks` is not an object", "*"),
            (of_call("{}"), "not a list", "*"),
            (of_call("[1]"), "not an object", "*"),
            (of_call(r#"[{"matcher": "Edit(", "hooks": []}]"#), "not a valid regular expression", "*"),
            (of_call(r#"[{"matcher": 1, "hooks": []}]"#), "`matcher` is not a string", "*"),
            (of_call(r#"[{"matcher": "Bash"}]"#), "no `hooks`", "Bash"),
            (of_call(r#"[{"matcher": "Bash", "hooks": ["x"]}]"#), "not an object", "Bash"),
            (of_call(r#"[{"matcher": "Bash", "hooks": [{"type": "prompt", "prompt": "ok?"}]}]"#), "only hooks of type", "Bash"),
            (of_call(r#"[{"matcher": "Bash", "hooks": [{"type": "command"}]}]"#), "`command` is missing", "Bash"),
            (of_call(r#"[{"matcher": "Bash", "hooks": [{"command": " "}]}]"#), "is empty", "Bash"),
            (of_call(r#"[{"matcher": "Bash", "hooks": [{"command": "x", "timeout": 0}]}]"#), "above 0", "Bash"),
            (of_call(r#"[{"matcher": "Bash", "hooks": [{"command": "x", "timeout": "5"}]}]"#), "number of seconds", "Bash"),
            (of_call(r#"[{"matcher": "Bash", "hooks": [{"command": "x", "shell": "powershell"}]}]"#), "with bash", "Bash"),
        ] {
            let file = read(&text);
            let hook = file.hooks.first().unwrap_or_else(|| panic!("{text}"));
            assert_eq!((hook.event, hook.matcher.text().as_str()), (HookEvent::PreToolUse, matcher), "{text}");
            assert!(matches!(&hook.action, HookAction::Unusable(reason) if reason.contains(why)), "{text}: {hook:?}");
        }
    }

    #[test]
    fn hooks_beyond_the_limit_become_one_unusable_hook() {
        let hook = r#"{"type": "command", "command": "true"}"#;
        let text = format!(r#"{{"hooks": {{"Stop": [{{"hooks": [{}]}}]}}}}"#, vec![hook; 300].join(","));
        let file = read(&text);
        assert_eq!(file.hooks.len(), 101);
        assert!(matches!(&file.hooks[100].action, HookAction::Unusable(why) if why.contains("more than 100 hooks")));
    }

    #[test]
    fn the_condition_of_a_hook_is_read_and_keys_without_effect_are_noted() {
        let file = read(
            r#"{"hooks": {"PostToolUse": [{"matcher": "Bash", "hooks": [
                {"command": "a", "if": "Bash(git commit:*)", "asyncRewake": true, "statusMessage": "m"},
                {"command": "b"}, {"command": "c", "if": 1}, {"command": "d", "if": "Bash(x"}]}],
              "Stop": [{"hooks": [{"command": "e", "if": "Bash"}]}]}}"#,
        );
        let shown: Vec<String> = file.hooks.iter().map(Hook::selection).collect();
        assert_eq!(shown, ["[Bash] if Bash(git commit:*)", "[Bash]", "[Bash]", "[Bash]", "[*]"]);
        let unusable = |hook: &Hook| matches!(&hook.action, HookAction::Unusable(why) if why.contains("`if`"));
        assert_eq!(file.hooks.iter().map(unusable).collect::<Vec<_>>(), [false, false, true, true, true]);
        assert_eq!(file.notes, [".claude/settings.json PostToolUse 1: ignored `asyncRewake`: it has no effect in aye"]);
    }

    #[test]
    fn words_of_an_argument_list_are_quoted() {
        let file = read(r#"{"hooks": {"Stop": [{"hooks": [{"command": "./a b", "args": ["it's", "$X"]}]}]}}"#);
        assert!(matches!(&file.hooks[0].action, HookAction::Command { line, .. } if line == r"'./a b' 'it'\''s' '$X'"));
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_yield_at_most_the_maximum_number_of_hooks(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            let file = read_claude_file(&bytes, "f", HookOrigin::Project);
            prop_assert!(file.hooks.len() <= 101);
        }

        #[test]
        fn a_changed_character_never_removes_a_hook_silently(at in 0_usize..700, letter in any::<char>()) {
            let mut letters: Vec<char> = USUAL.chars().collect();
            let at = at % letters.len();
            letters[at] = letter;
            let text: String = letters.into_iter().collect();
            let file = read(&text);
            let guards = file.hooks.iter().filter(|hook| hook.event == HookEvent::PreToolUse).count();
            // A hook may be missing only if the name of its event or the `hooks` key was changed.
            let named = text.contains("\"PreToolUse\"") && text.contains("\"hooks\": {\n");
            prop_assert!(guards >= 1 || !named, "{}", text);
        }
    }
}
