//! Hook files in TOML format: a project's `.aye/hooks.toml` and the user's `hooks.toml`.

use super::hook::{HookAction, HookFile, HookOrigin, MAX_FILE_BYTES, command};
use super::matcher::Matcher;
use crate::protocol::HookEvent;
use toml::{Table, Value};

/// Keys supported in a hook table.
const KEYS: [&str; 4] = ["matcher", "command", "timeout", "sandbox"];

/// Reads the hooks from a TOML file, which contains an array of tables for each event, such as `[[PreToolUse]]`. Any
/// part that cannot be read becomes an unusable hook.
pub(crate) fn read_toml_file(bytes: &[u8], file: &str, origin: HookOrigin) -> HookFile {
    if bytes.len() > MAX_FILE_BYTES {
        return HookFile::unreadable(file, origin, format!("the file is {} bytes; the limit is {MAX_FILE_BYTES}", bytes.len()));
    }
    let Ok(text) = std::str::from_utf8(bytes) else {
        return HookFile::unreadable(file, origin, "the file is not UTF-8");
    };
    let events: Table = match text.parse() {
        Ok(events) => events,
        Err(error) => {
            let error: toml::de::Error = error;
            let line = error.span().map_or(1, |span| 1 + text[..span.start.min(text.len())].matches('\n').count());
            return HookFile::unreadable(file, origin, format!("line {line}: {}", error.message()));
        }
    };
    let mut found = HookFile::default();
    for (name, hooks) in &events {
        let Some(event) = HookEvent::from_name(name) else {
            let why = format!("`{}` is not an event; the events are {}", name.escape_debug(), names());
            found.hooks.extend(HookFile::unreadable(file, origin, why).hooks);
            continue;
        };
        let Value::Array(hooks) = hooks else {
            let why = format!("write `[[{name}]]` with two brackets for each hook");
            found.add(event, Matcher::All, HookAction::Unusable(why), (file, origin));
            continue;
        };
        for hook in hooks {
            let (matcher, action) = match hook {
                Value::Table(hook) => read_hook(hook, origin),
                _ => (Matcher::All, HookAction::Unusable("a hook is not a table".to_owned())),
            };
            found.add(event, matcher, action, (file, origin));
        }
    }
    found
}

fn names() -> String {
    HookEvent::ALL.map(|event| format!("`{}`", event.as_str())).join(", ")
}

/// Returns the matcher and action described by a hook table.
fn read_hook(hook: &Table, origin: HookOrigin) -> (Matcher, HookAction) {
    let matcher = match hook.get("matcher") {
        None => Ok(Matcher::All),
        Some(Value::String(text)) => Matcher::read(Some(text)),
        Some(_) => Err("`matcher` is not a string".to_owned()),
    };
    let matcher = match matcher {
        Ok(matcher) => matcher,
        Err(why) => return (Matcher::All, HookAction::Unusable(why)),
    };
    let action = read_action(hook, origin).unwrap_or_else(HookAction::Unusable);
    (matcher, action)
}

fn read_action(hook: &Table, origin: HookOrigin) -> Result<HookAction, String> {
    if let Some(key) = hook.keys().find(|key| !KEYS.contains(&key.as_str())) {
        return Err(format!("unknown key `{}`; the keys are `{}`", key.escape_debug(), KEYS.join("`, `")));
    }
    let Some(Value::String(line)) = hook.get("command") else {
        return Err("`command` is missing, or not a string".to_owned());
    };
    let timeout = match hook.get("timeout") {
        None => None,
        Some(Value::Integer(seconds)) => Some(*seconds as f64),
        Some(Value::Float(seconds)) => Some(*seconds),
        Some(_) => return Err("`timeout` is not a number of seconds".to_owned()),
    };
    let unsandboxed = match (hook.get("sandbox"), origin) {
        (None | Some(Value::Boolean(true)), _) => false,
        (Some(Value::Boolean(false)), HookOrigin::User) => true,
        (Some(Value::Boolean(false)), HookOrigin::Project | HookOrigin::Plugin) => {
            return Err("`sandbox = false` is possible only in your own hooks; remove it".to_owned());
        }
        (Some(_), _) => return Err("`sandbox` is not `true` or `false`".to_owned()),
    };
    Ok(command(line, timeout, unsandboxed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str, origin: HookOrigin) -> HookFile {
        read_toml_file(text.as_bytes(), "hooks.toml", origin)
    }

    #[test]
    fn each_event_has_an_array_of_hooks() {
        let text = "[[PreToolUse]]\nmatcher = \"Bash\"\ncommand = \"./guard\"\ntimeout = 5\n[[PreToolUse]]\ncommand = \"all\"\n\
                    [[Notification]]\ncommand = \"notify-send aye\"\nsandbox = false\n";
        let file = read(text, HookOrigin::User);
        assert_eq!(
            file.hooks.iter().map(|hook| hook.name()).collect::<Vec<_>>(),
            ["hooks.toml Notification 1", "hooks.toml PreToolUse 1", "hooks.toml PreToolUse 2"]
        );
        let action = HookAction::Command { line: "./guard".to_owned(), timeout_seconds: 5, unsandboxed: false };
        assert_eq!(file.hooks[1].action, action);
        let action = HookAction::Command { line: "notify-send aye".to_owned(), timeout_seconds: 60, unsandboxed: true };
        assert_eq!(file.hooks[0].action, action);
    }

    #[test]
    fn a_project_hook_cannot_run_outside_the_sandbox() {
        let file = read("[[Stop]]\ncommand = \"x\"\nsandbox = false\n", HookOrigin::Project);
        assert!(matches!(&file.hooks[0].action, HookAction::Unusable(why) if why.contains("only in your own hooks")));
    }

    #[test]
    fn an_invalid_part_becomes_an_unusable_hook() {
        for (text, why) in [
            ("[[PreToolUse]\n", "line 1"),
            ("x = 1\n[[PreToolUse]]\ny = \n", "line 3"),
            ("[[PreTool]]\ncommand = \"x\"\n", "not an event"),
            ("[PreToolUse]\ncommand = \"x\"\n", "two brackets"),
            ("PreToolUse = [1]\n", "not a table"),
            ("[[PreToolUse]]\nmatcher = \"a(\"\ncommand = \"x\"\n", "regular expression"),
            ("[[PreToolUse]]\n", "`command` is missing"),
            ("[[PreToolUse]]\ncommand = \"x\"\ncmd = \"y\"\n", "unknown key `cmd`"),
            ("[[PreToolUse]]\ncommand = \"x\"\ntimeout = -1\n", "above 0"),
            ("[[PreToolUse]]\ncommand = \"x\"\nsandbox = 1\n", "`true` or `false`"),
        ] {
            let file = read(text, HookOrigin::User);
            assert_eq!(file.hooks[0].event, HookEvent::PreToolUse, "{text}");
            assert!(matches!(&file.hooks[0].action, HookAction::Unusable(reason) if reason.contains(why)), "{text}: {file:?}");
        }
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_yield_at_most_the_maximum_number_of_hooks(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            prop_assert!(read_toml_file(&bytes, "f", HookOrigin::User).hooks.len() <= 101);
        }
    }
}
