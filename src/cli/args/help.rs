//! Command-line help. Long help includes examples, and only `aye --help` lists the global options.

use super::definition::Cli;
use super::examples::examples;
use clap::builder::styling::Styles;
use clap::{Command, CommandFactory};
use std::fmt::Write as _;

const MORE: &str = "Run `aye help COMMAND` for details and examples.";
const GLOBAL: &str = "Global options, such as -C, -m and --mode, are listed by `aye --help`.";

/// Returns the command-line definition with examples. Global options are hidden in subcommands but can still be used
/// there.
pub(super) fn command() -> Command {
    with_examples(Cli::command(), "")
}

/// Adds the examples to a command. `path` consists of the words that follow `aye`.
fn with_examples(command: Command, path: &str) -> Command {
    let end = if path.is_empty() { MORE } else { GLOBAL };
    let header = Styles::default().get_header().to_owned();
    let mut long = String::new();
    if !examples(path).is_empty() {
        let _ = write!(long, "{header}Examples:{header:#}");
        for (comment, line) in examples(path) {
            let _ = write!(long, "\n  # {comment}\n  {line}");
        }
        long.push_str("\n\n");
    }
    long.push_str(end);
    let command = command.after_help(end).after_long_help(long);
    let command = if path.is_empty() { command } else { command.defer(hide_global_options) };
    command.mut_subcommands(|sub| {
        let path = format!("{path} {}", sub.get_name());
        with_examples(sub, path.trim_start())
    })
}

/// Hides the global options of a subcommand. Must run after clap has copied them from the parent command.
fn hide_global_options(command: Command) -> Command {
    command.mut_args(|arg| {
        let is_hidden = arg.is_hide_set() || arg.is_global_set();
        arg.hide(is_hidden)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Arg;

    /// Words and phrases that the style guide replaces with standard terms.
    const BANNED: &[&str] = &[
        "the person",
        "somebody",
        "held",
        "kept",
        "keep",
        "put away",
        "put back",
        "take back",
        "taken back",
        "go on",
        "gone",
        "forget",
        "forth",
        "what was said",
        "anew",
        "beside",
        "in the place of",
        "in place of",
        "meanwhile",
        "so many",
        "so much",
        "so long",
        "stands",
        "stand",
        "whoever",
        "which there are",
        "what is",
        "where to",
        "read along",
        "blank",
        "letters",
        "servers of tools",
        "question",
        "say yes",
        "with yes",
    ];

    /// Calls `check` for every visible command, passing the command and its path.
    fn for_each(command: &Command, path: &str, check: &mut dyn FnMut(&Command, &str)) {
        check(command, path);
        for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help") {
            for_each(sub, &format!("{path} {}", sub.get_name()), check);
        }
    }

    fn built() -> Command {
        let mut command = command();
        command.build();
        command
    }

    /// Returns a description of the style violation in a summary, if there is one.
    fn wrong(summary: &str) -> Option<String> {
        let first = summary.split([' ', ':']).next().unwrap_or_default();
        let lower = summary.to_lowercase();
        let banned = BANNED.iter().find(|banned| {
            lower.match_indices(**banned).any(|(at, found)| {
                let borders = |one: Option<char>| one.is_none_or(|one| !one.is_alphanumeric());
                borders(lower[..at].chars().next_back()) && borders(lower[at + found.len()..].chars().next())
            })
        });
        if let Some(banned) = banned {
            return Some(format!("`{banned}` is banned"));
        }
        if !first.starts_with(char::is_uppercase) {
            return Some("no capital".to_owned());
        }
        if first.ends_with('s') || first.ends_with("ing") || ["What", "Which", "How", "Those", "The", "A", "An"].contains(&first)
        {
            return Some(format!("`{first}` is not an imperative"));
        }
        let width = summary.chars().count();
        (width > 72 || summary.ends_with('.')).then(|| format!("{width} characters, at most 72, without a full stop"))
    }

    fn help_of(arg: &Arg) -> String {
        arg.get_help().map(ToString::to_string).unwrap_or_default()
    }

    #[test]
    fn help_summaries_are_plain_imperatives() {
        let mut found = Vec::new();
        for_each(&built(), "aye", &mut |command, path| {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            found.extend(wrong(&about).map(|why| format!("{path}: {about:?}: {why}")));
            for arg in command.get_arguments().filter(|arg| !arg.is_positional()) {
                let help = help_of(arg);
                found.extend(wrong(&help).map(|why| format!("{path} {}: {help:?}: {why}", arg.get_id())));
            }
        });
        assert!(found.is_empty(), "\n{}\n", found.join("\n"));
    }

    #[test]
    fn every_argument_and_value_has_help() {
        let mut found = Vec::new();
        for_each(&built(), "aye", &mut |command, path| {
            for arg in command.get_arguments() {
                if help_of(arg).is_empty() || help_of(arg).chars().count() > 72 {
                    found.push(format!("{path} {}: {:?}", arg.get_id(), help_of(arg)));
                }
                // Names of shells need no help.
                let values =
                    arg.get_possible_values().into_iter().filter(|_| arg.get_num_args().is_some_and(|n| n.takes_values()));
                for value in values.filter(|value| value.get_help().is_none() && arg.get_id() != "shell") {
                    found.push(format!("{path} {} {}: no help", arg.get_id(), value.get_name()));
                }
            }
        });
        assert!(found.is_empty(), "\n{}\n", found.join("\n"));
    }

    #[test]
    fn every_command_has_an_example_in_its_long_help() {
        for_each(&built(), "aye", &mut |command, path| {
            let long = command.clone().render_long_help().to_string();
            let has = long.contains("Examples:\n  # ") && long.contains(&format!("\n  {path}"));
            assert!(has || command.is_hide_set(), "{path}: {long}");
            assert!(!command.clone().render_help().to_string().contains("Examples"), "{path}: short help is short");
        });
    }

    #[test]
    fn global_options_are_listed_once_and_work_everywhere() {
        for_each(&built(), "aye", &mut |command, path| {
            let long = command.clone().render_long_help().to_string();
            assert_eq!(long.contains("--no-color"), path == "aye", "{path}: {long}");
            assert!(path == "aye" || !long.contains("--print"), "{path}: a hidden option stays hidden: {long}");
            assert_eq!(long.contains(GLOBAL), path != "aye", "{path}: {long}");
        });
        let words = ["aye", "policy", "grants", "list", "--max-steps", "3"];
        assert!(command().try_get_matches_from(words).is_ok());
    }
}
