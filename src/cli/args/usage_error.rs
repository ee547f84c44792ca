//! Formats usage errors as `error: what failed: why`, followed by a `hint:` line for each suggestion.

use super::definition::Cli;
use super::single_word;
use crate::protocol::{HINT, Problem};
use clap::CommandFactory;
use clap::builder::PossibleValue;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::ffi::OsString;
use std::fmt::Write as _;

/// Formats one of aye's own errors. If the error has no hint, adds one that refers to the command's help.
pub(super) fn format_problem(problem: Problem, line: &[OsString]) -> String {
    let problem = if problem.hints.is_empty() { problem.hint(help_hint(line)) } else { problem };
    problem.text() + "\n"
}

/// Formats a clap error in the style of aye's own errors. For a command group without a subcommand, returns the group's
/// help.
pub(super) fn format_clap_error(error: &clap::Error, line: &[OsString]) -> String {
    let text = error.render().to_string();
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return text;
    }
    let text = with_backticks(error, text);
    let (mut said, mut hints, mut usage) = (String::new(), String::new(), false);
    for row in text.lines().map(str::trim_end) {
        let start = row.trim_start();
        if start.starts_with("tip: ") {
            // clap's suggestions are often far from the given word.
        } else if row.is_empty() || row.starts_with("For more information") {
            usage = false;
        } else if let Some(form) = start.strip_prefix("Usage: ") {
            usage = true;
            hints.push_str(&usage_hint(error, form));
        } else if usage {
            hints.push_str(&usage_hint(error, start));
        } else {
            let _ = writeln!(said, "{row}");
        }
    }
    // Clap wraps the error of a value parser.
    let own = std::error::Error::source(error).and_then(|error| error.downcast_ref::<Problem>());
    let own = own.map(|problem| problem.hints.clone()).filter(|hints| !hints.is_empty());
    let near = did_you_mean(error, line).into_iter().chain(possible_values(error, line));
    for hint in near.chain(own.unwrap_or_else(|| vec![help_hint(line)])) {
        let _ = writeln!(hints, "{HINT}{hint}");
    }
    // clap ends the message for an unknown argument with this word.
    let said = if error.kind() == ErrorKind::UnknownArgument { said.replace("` found\n", "`\n") } else { said };
    format!("{said}{hints}")
}

/// Returns clap's message with the given words and the names of arguments in backticks instead of single quotes.
fn with_backticks(error: &clap::Error, mut text: String) -> String {
    for (_, value) in error.context() {
        let words: Vec<String> = match value {
            ContextValue::String(word) => vec![word.clone()],
            ContextValue::Strings(words) => words.clone(),
            _ => Vec::new(),
        };
        for word in words {
            text = text.replace(&format!("'{word}'"), &format!("`{word}`"));
        }
    }
    text
}

/// Returns a suggestion for an unknown option or value, if a known one is similar enough.
fn did_you_mean(error: &clap::Error, line: &[OsString]) -> Option<String> {
    let near = match (error.kind(), error.get(ContextKind::InvalidArg), error.get(ContextKind::InvalidValue)) {
        (ErrorKind::UnknownArgument, Some(ContextValue::String(given)), _) => {
            let given = given.strip_prefix("--")?;
            let (root, own) = (Cli::command(), find_command(line));
            let names = own.get_arguments().chain(root.get_arguments().filter(|arg| arg.is_global_set()));
            let names: Vec<&str> = names.filter(|arg| !arg.is_hide_set()).filter_map(clap::Arg::get_long).collect();
            format!("--{}", single_word::near(given, names.into_iter())?)
        }
        (ErrorKind::InvalidValue, _, Some(ContextValue::String(given))) => {
            let Some(ContextValue::Strings(values)) = error.get(ContextKind::ValidValue) else { return None };
            single_word::near(given, values.iter().map(String::as_str))?.to_owned()
        }
        (ErrorKind::InvalidSubcommand, ..) => {
            let Some(ContextValue::String(given)) = error.get(ContextKind::InvalidSubcommand) else { return None };
            let command = find_command(line);
            let names = command.get_subcommands().filter(|sub| !sub.is_hide_set()).map(clap::Command::get_name);
            format!("{} {}", named_command(line), single_word::near(given, names)?)
        }
        _ => return None,
    };
    Some(format!("did you mean `{near}`?"))
}

/// Returns the values of missing arguments that accept only some.
fn possible_values(error: &clap::Error, line: &[OsString]) -> Vec<String> {
    let (ErrorKind::MissingRequiredArgument, Some(ContextValue::Strings(missing))) =
        (error.kind(), error.get(ContextKind::InvalidArg))
    else {
        return Vec::new();
    };
    let command = find_command(line);
    let positionals = command.get_positionals().filter_map(|arg| {
        let name = arg.get_value_names()?.first()?.to_string();
        let values = arg.get_possible_values();
        let is_missing = missing.iter().any(|given| given.trim_matches(['<', '>', '[', ']', '.']) == name);
        let values: Vec<&str> = values.iter().filter(|value| !value.is_hide_set()).map(PossibleValue::get_name).collect();
        (is_missing && !values.is_empty()).then(|| format!("{name} is one of: {}", values.join(", ")))
    });
    positionals.collect()
}

/// Returns the command that the first word of the line misspells.
pub(super) fn misspelt_command(line: &[OsString]) -> Option<String> {
    let root = Cli::command();
    let names = root.get_subcommands().filter(|sub| !sub.is_hide_set()).map(clap::Command::get_name);
    let given = line.get(1)?.to_str()?;
    single_word::near(given, names).filter(|name| *name != given).map(str::to_owned)
}

/// Returns a hint that shows the command's usage if arguments are missing, or an empty string otherwise.
fn usage_hint(error: &clap::Error, form: &str) -> String {
    if error.kind() == ErrorKind::MissingRequiredArgument { format!("{HINT}usage: {form}\n") } else { String::new() }
}

fn help_hint(line: &[OsString]) -> String {
    format!("run `{} --help` for usage", named_command(line))
}

/// Returns the command within a command line, such as `aye policy explain`.
pub(super) fn named_command(line: &[OsString]) -> String {
    let root = Cli::command();
    command_path(&root, line).iter().map(|command| command.get_name()).collect::<Vec<_>>().join(" ")
}

/// Returns the first word of a line that is neither an option nor the value of one.
pub(super) fn first_operand(line: &[OsString]) -> Option<&str> {
    let root = Cli::command();
    let takes_value = |option: &str| {
        let named = |arg: &&clap::Arg| {
            let long = arg.get_long().is_some_and(|long| option.strip_prefix("--") == Some(long));
            long || arg.get_short().is_some_and(|short| option == format!("-{short}"))
        };
        let arg = root.get_arguments().find(named);
        arg.is_some_and(|arg| arg.get_action().takes_values() && !arg.is_require_equals_set())
    };
    let mut words = line.iter().skip(1).map_while(|word| word.to_str()).take_while(|word| *word != "--");
    while let Some(word) = words.next() {
        if !word.starts_with('-') {
            return Some(word);
        }
        if takes_value(word) {
            words.next();
        }
    }
    None
}

/// Returns the definition of the command in a line.
fn find_command(line: &[OsString]) -> clap::Command {
    let root = Cli::command();
    let found = command_path(&root, line).last().map(|command| (*command).clone());
    found.unwrap_or(root)
}

/// Returns the command in a line with all its parents, the root first.
fn command_path<'a>(root: &'a clap::Command, line: &[OsString]) -> Vec<&'a clap::Command> {
    let (mut command, mut path) = (root, vec![root]);
    for word in line.iter().skip(1).filter_map(|word| word.to_str()).take_while(|word| *word != "--") {
        match command.find_subcommand(word) {
            Some(found) => {
                command = found;
                path.push(found);
            }
            None if word.starts_with('-') || path.len() == 1 => {}
            None => break,
        }
    }
    path
}

/// Returns the error for `aye help` followed by an unknown command.
pub(super) fn unknown_help(line: &[OsString]) -> Option<Problem> {
    let root = Cli::command();
    let (mut command, mut path) = (&root, "aye help".to_owned());
    let asked = line.iter().filter_map(|word| word.to_str()).skip_while(|word| *word != "help").skip(1);
    for word in asked.filter(|word| !word.starts_with('-')) {
        if let Some(found) = command.find_subcommand(word) {
            command = found;
            path = format!("{path} {}", found.get_name());
            continue;
        }
        let names = command.get_subcommands().filter(|sub| !sub.is_hide_set()).map(clap::Command::get_name);
        let hint = match (single_word::near(word, names), single_word::find_equivalent(word)) {
            (Some(name), _) => format!("did you mean `{path} {name}`?"),
            (None, Some(instead)) if path == "aye help" => instead.to_owned(),
            (None, _) => format!("run `{path}` to list the commands"),
        };
        return Some(Problem::new(format!("unrecognized subcommand `{word}`")).hint(hint));
    }
    None
}
