//! Conversion of other agents' command files to Markdown files for aye.

use super::settings::{AgentSettings, CommandFile, SettingsOwner};

/// Front matter keys that aye supports.
const KNOWN: [&str; 3] = ["description", "argument-hint", "argument_hint"];

/// Adds a Markdown command file. Front matter keys that have no effect in aye are removed and reported.
pub(super) fn add_markdown(settings: &mut AgentSettings, place: &str, level: SettingsOwner, name: &str, text: &str) {
    let (text, left_out) = without_unknown_keys(text);
    if !left_out.is_empty() {
        let keys = left_out.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", ");
        settings.leave_out(place, keys, "has no effect in the front matter of an aye slash command; the rest is imported");
    }
    add(settings, place, level, name, text);
}

/// Adds a command whose description and prompt are given separately.
pub(super) fn add_prompt(
    settings: &mut AgentSettings,
    place: &str,
    level: SettingsOwner,
    name: &str,
    description: Option<&str>,
    prompt: &str,
) {
    let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let prompt = prompt.trim_end();
    let text = match description.map(one_line).filter(|description| !description.is_empty()) {
        Some(description) => format!("---\ndescription: {description}\n---\n{prompt}\n"),
        None => format!("{prompt}\n"),
    };
    add(settings, place, level, name, text);
}

/// Reports a command file whose text contains shell commands, which begin with the characters in `start`.
pub(super) fn report_shell_commands(settings: &mut AgentSettings, place: &str, text: &str, start: &str) {
    if text.contains(start) {
        let part = "as text, because aye does not run them; the model can ask to run them".to_owned();
        settings.narrowed.push((format!("shell commands ({place})"), part));
    }
}

fn add(settings: &mut AgentSettings, place: &str, level: SettingsOwner, name: &str, text: String) {
    let is_name = |part: &str| {
        !part.is_empty()
            && part != ".."
            && !part.contains(|letter: char| letter.is_whitespace() || letter.is_control() || letter == '\\')
    };
    if !name.split('/').all(is_name) {
        return settings.leave_out(place, format!("command `{name}`"), "the name cannot be typed after `/`");
    }
    if text.trim().is_empty() {
        return settings.leave_out(place, format!("command `{name}`"), "the file has no text");
    }
    settings.commands.push(CommandFile { place: place.to_owned(), level, name: name.to_owned(), text });
}

/// Removes unknown keys from the front matter. Returns the remaining text and the names of the removed keys.
fn without_unknown_keys(text: &str) -> (String, Vec<String>) {
    let Some((header, rest)) = text.strip_prefix("---\n").and_then(|rest| rest.split_once("\n---\n")) else {
        return (text.to_owned(), Vec::new());
    };
    let (mut kept, mut left_out) = (Vec::new(), Vec::new());
    let mut is_known = true;
    for line in header.lines() {
        let is_key = !line.starts_with([' ', '\t', '-', '#']) && line.contains(':');
        if is_key {
            let key = line.split(':').next().unwrap_or_default().trim();
            is_known = KNOWN.contains(&key);
            if !is_known {
                left_out.push(key.to_owned());
            }
        }
        if is_known {
            kept.push(line);
        }
    }
    let text = if kept.is_empty() { rest.to_owned() } else { format!("---\n{}\n---\n{rest}", kept.join("\n")) };
    (text, left_out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn supported_header_keys_are_kept_and_others_are_removed() {
        let text = "---\ndescription: Fix it\nallowed-tools:\n  - Bash\nmodel: x\nargument-hint: <n>\n---\nFix $1\n";
        let (kept, left_out) = without_unknown_keys(text);
        assert_eq!(kept, "---\ndescription: Fix it\nargument-hint: <n>\n---\nFix $1\n");
        assert_eq!(left_out, ["allowed-tools", "model"]);
        assert_eq!(without_unknown_keys("---\nmodel: x\n---\nFix\n"), ("Fix\n".to_owned(), vec!["model".to_owned()]));
        assert_eq!(without_unknown_keys("Fix\n---\n"), ("Fix\n---\n".to_owned(), Vec::new()));
    }

    #[test]
    fn names_that_cannot_be_typed_are_reported() {
        let mut settings = AgentSettings::default();
        for name in ["fix", "git/commit", "a b", "../x", "a//b"] {
            add_prompt(&mut settings, "place", SettingsOwner::User, name, Some("Two\nlines"), "Do it\n\n");
        }
        let names: Vec<&str> = settings.commands.iter().map(|command| command.name.as_str()).collect();
        assert_eq!(names, ["fix", "git/commit"]);
        assert_eq!(settings.commands[0].text, "---\ndescription: Two lines\n---\nDo it\n");
        assert_eq!(settings.unsupported.len(), 3);
    }
}
