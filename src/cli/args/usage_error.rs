//! Text of usage errors: `error: what failed: why`, followed by one `hint:` line for each
//! suggestion.

use super::definition::Cli;
use super::single_word;
use crate::protocol::{HINT, Problem};
use clap::CommandFactory;
use clap::error::ErrorKind;
use std::ffi::OsString;
use std::fmt::Write as _;

/// Formats one of aye's own errors. An error without a hint gets a hint about the help of the command.
pub(super) fn format_problem(problem: Problem, line: &[OsString]) -> String {
    let problem = if problem.hints.is_empty() { problem.hint(help_hint(line)) } else { problem };
    problem.text() + "\n"
}

/// Formats a clap error in the same way. For a group without a subcommand, returns the help of the group.
pub(super) fn format_clap_error(error: &clap::Error, line: &[OsString]) -> String {
    let text = error.render().to_string();
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return text;
    }
    let (mut said, mut hints, mut usage) = (String::new(), String::new(), false);
    for row in text.lines().map(str::trim_end) {
        let start = row.trim_start();
        if let Some(tip) = start.strip_prefix("tip: ") {
            let _ = writeln!(hints, "{HINT}{tip}");
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
    // The error of a value parser, which clap wraps.
    let own = std::error::Error::source(error).and_then(|error| error.downcast_ref::<Problem>());
    let own = own.map(|problem| problem.hints.clone()).filter(|hints| !hints.is_empty());
    for hint in own.unwrap_or_else(|| vec![help_hint(line)]) {
        let _ = writeln!(hints, "{HINT}{hint}");
    }
    format!("{said}{hints}")
}

/// Returns a hint with the usage of a command, for errors about missing arguments.
fn usage_hint(error: &clap::Error, form: &str) -> String {
    if error.kind() == ErrorKind::MissingRequiredArgument { format!("{HINT}usage: {form}\n") } else { String::new() }
}

fn help_hint(line: &[OsString]) -> String {
    format!("run `{} --help` for usage", named_command(line))
}

/// Returns the command in a line, such as `aye policy explain`.
fn named_command(line: &[OsString]) -> String {
    let root = Cli::command();
    let (mut command, mut path) = (&root, vec!["aye"]);
    for word in line.iter().skip(1).filter_map(|word| word.to_str()).take_while(|word| *word != "--") {
        match command.find_subcommand(word) {
            Some(found) => {
                command = found;
                path.push(found.get_name());
            }
            None if word.starts_with('-') || path.len() == 1 => {}
            None => break,
        }
    }
    path.join(" ")
}

/// Returns the error for `aye help` with an unknown command.
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
