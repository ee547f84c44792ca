//! Slash commands that are available in an editor, and how they are recognized in prompts.

use crate::protocol::CustomCommand;
use agent_client_protocol::v1::schema::{AvailableCommand, AvailableCommandInput, UnstructuredCommandInput};

/// Built-in commands that can be used in editors, each with a hint for its arguments. Their descriptions are taken from
/// the list of all commands.
pub(crate) const HANDLED: &[(&str, Option<&str>)] = &[
    ("/help", None),
    ("/status", None),
    ("/context", None),
    ("/compact", Some("what to preserve, or `undo`")),
    ("/cost", None),
    ("/budget", None),
    ("/goal", Some("TEXT --until \"COMMAND\" [--budget 2usd] [--for 30m], or stop, continue, check COMMAND")),
    ("/diff", None),
    ("/review", Some("--staged, --base BRANCH or --commit SHA; without one, the uncommitted changes")),
    ("/undo", None),
    ("/redo", None),
    ("/continue", None),
    ("/mode", Some("plan, ask, auto-edit or auto")),
    ("/approve", Some("command or effects")),
    ("/ran", None),
    ("/model", Some("PROVIDER/NAME")),
    ("/effort", Some("a level such as off, low, high or max, or auto")),
    ("/policy", Some("reload, grants or undo; without one, show the policy in effect")),
    ("/ps", None),
    ("/stop", Some("ID of a background command")),
    ("/lsp", None),
    ("/artifacts", None),
    ("/export", Some("md, json or html, and a file name")),
];

/// List of all slash commands, each with its description.
pub(crate) type Registry = &'static [(&'static str, &'static str)];

/// Request in a prompt.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ParsedPrompt {
    Prompt(String),
    /// Built-in command, named without its slash, and its arguments.
    BuiltIn(&'static str, String),
    /// Command that cannot be run, for the given reason.
    Invalid(String),
}

pub(crate) fn available_commands(registry: Registry, own: &[CustomCommand]) -> Vec<AvailableCommand> {
    let words = |name: &str| registry.iter().find(|(entry, _)| *entry == name).map_or("", |(_, words)| words);
    let handled = HANDLED.iter().map(|(name, hint)| available(&name[1..], words(name), *hint));
    let prompts = CustomCommand::BUILT_IN_NAMES.into_iter().map(|name| available(name, words(&format!("/{name}")), None));
    let free = own.iter().filter(|command| !is_taken(registry, &command.name));
    let own = free.map(|command| available(&command.name, &command.description, command.argument_hint.as_deref()));
    handled.chain(prompts).chain(own).collect()
}

/// Returns a slash command in the form in which it is announced to the editor.
fn available(name: &str, description: &str, hint: Option<&str>) -> AvailableCommand {
    let input = hint.map(|hint| AvailableCommandInput::Unstructured(UnstructuredCommandInput::new(hint)));
    AvailableCommand::new(name, description).input(input)
}

fn is_taken(registry: Registry, name: &str) -> bool {
    registry.iter().any(|(entry, _)| entry[1..].split(' ').next() == Some(name))
}

/// Determines what a prompt asks for. Neither a path nor a slash in the middle of text is taken for a command.
pub(crate) fn parse_prompt(text: String, registry: Registry, own: &[CustomCommand]) -> ParsedPrompt {
    let Some(typed) = text.trim().strip_prefix('/') else { return ParsedPrompt::Prompt(text) };
    let (word, behind) = typed.split_once(char::is_whitespace).unwrap_or((typed, ""));
    let behind = behind.trim();
    if word.is_empty() || word.contains(['/', '.']) {
        return ParsedPrompt::Prompt(text);
    }
    if let Some((name, _)) = HANDLED.iter().find(|(name, _)| &name[1..] == word) {
        return ParsedPrompt::BuiltIn(&name[1..], behind.to_owned());
    }
    let free = || own.iter().find(|command| command.is_named(word) && !is_taken(registry, word)).cloned();
    if let Some(command) = CustomCommand::built_in(word).or_else(free) {
        if command.text.is_empty() {
            return ParsedPrompt::Invalid(format!("`{}` is empty; write a prompt for the model in it", command.source));
        }
        if command.needs_arguments() && behind.is_empty() {
            return ParsedPrompt::Invalid(format!("missing argument: `/{word} {}`", command.argument_hint.unwrap_or_default()));
        }
        return ParsedPrompt::Prompt(command.expand(behind));
    }
    if is_taken(registry, word) {
        return ParsedPrompt::Invalid(format!(
            "`/{word}` is only available in aye's full-screen UI; use the editor's own command, or run `aye` in \
            a terminal"
        ));
    }
    ParsedPrompt::Invalid(format!("unknown command `/{word}`; `/help` lists the commands"))
}

pub(crate) fn help(registry: Registry, own: &[CustomCommand]) -> String {
    let lines =
        available_commands(registry, own).into_iter().map(|command| format!("- `/{}`: {}", command.name, command.description));
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Registry = &[("/help", "keys and commands"), ("/theme", "other colours"), ("/policy undo", "x")];

    fn own(name: &str, text: &str) -> CustomCommand {
        CustomCommand::parse(name.to_owned(), format!("commands/{name}.md"), text).0
    }

    #[test]
    fn built_in_commands_precede_user_commands_and_paths_are_prompts() {
        let commands = [own("fix", "Fix $ARGUMENTS"), own("theme", "Mine"), own("due", "---\nargument-hint: <day>\n---\nOn $1")];
        let meant = |text: &str| parse_prompt(text.to_owned(), ALL, &commands);
        assert_eq!(meant("/compact the parser"), ParsedPrompt::BuiltIn("compact", "the parser".to_owned()));
        assert_eq!(meant("/fix it"), ParsedPrompt::Prompt("Fix it".to_owned()));
        assert_eq!(meant("/usr/bin/env is what?"), ParsedPrompt::Prompt("/usr/bin/env is what?".to_owned()));
        assert!(matches!(meant("/init"), ParsedPrompt::Prompt(text) if text.len() > 20));
        assert_eq!(meant("/review --staged"), ParsedPrompt::BuiltIn("review", "--staged".to_owned()));
        assert!(matches!(meant("/theme dark"), ParsedPrompt::Invalid(why) if why.contains("screen")));
        assert!(matches!(meant("/due"), ParsedPrompt::Invalid(why) if why.contains("<day>")));
        assert!(matches!(meant("/nothing"), ParsedPrompt::Invalid(why) if why.contains("/help")));
    }

    #[test]
    fn advertised_commands_use_the_common_descriptions_and_have_unique_names() {
        let told = available_commands(ALL, &[own("fix", "Fix it"), own("theme", "Mine")]);
        let mut names: Vec<&str> = told.iter().map(|command| command.name.as_str()).collect();
        assert_eq!(told[0].description, "keys and commands");
        assert!(names.contains(&"fix") && !names.contains(&"theme"));
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
