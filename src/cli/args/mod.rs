//! Parses the command line and returns a validated invocation.

pub(crate) mod definition;
mod examples;
mod help;
pub(crate) mod invocation;
mod other_agents;
mod pages;
mod single_word;
mod usage_error;

use crate::cli::session_ids::is_possible_id;
pub(crate) use invocation::{CliAction, CliInvocation, ExecPrompt, OutputFormat, ReviewRequest};
pub(crate) use pages::{completions, manual, write_manual};

use crate::host::nesting::Nesting;
use crate::protocol::Problem;
use crate::text::quoted_line;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, FromArgMatches};
use definition::Cli;
use invocation::PromptPosition;
use other_agents::Translation;
use std::ffi::OsString;

/// Options that take one value and may be repeated.
const REPEATABLE: [&str; 2] = ["--add-dir", "--set"];

/// Text printed in place of running a command.
#[derive(Debug)]
pub(crate) enum ParseExit {
    /// Text of `--help` or `--version`, printed to stdout with exit code 0.
    Told(clap::Error),
    /// Usage error, printed to stderr with exit code 2.
    Usage(String),
}

/// Parses the command-line arguments, which include the program name.
pub(crate) fn parse(words: impl IntoIterator<Item = OsString>, nesting: Nesting) -> Result<CliInvocation, ParseExit> {
    let (words, line) = read_any(words.into_iter().collect());
    let is_literal = words.iter().any(|word| word == "--");
    let asks_for_help =
        words.iter().skip(1).find(|word| !word.as_encoded_bytes().starts_with(b"-")).is_some_and(|word| word == "help");
    let before = |word: &str| {
        let at = words.iter().rposition(|known| known == word)?;
        words.get(at.checked_sub(1)?)?.to_str()
    };
    let usage = |problem: Problem| ParseExit::Usage(usage_error::format_problem(problem, &words));
    let overriding = other_agents::find_override(&words);
    let line = line.map_err(|error| match second_word(&error).filter(|_| !asks_for_help) {
        Some(word) if usage_has(&error, "policy explain") => {
            usage(unexpected_argument(word).hint(format!("put the command after `--`: aye policy explain -- {word} …")))
        }
        Some(word) if usage_has(&error, "mcp add") => {
            usage(unexpected_argument(word).hint(format!("put the command after `--`: `{}`", mcp_add_line(&words))))
        }
        // Only the commands that take a prompt accept `-c`.
        Some(_) if overriding.is_some() => usage(override_problem(overriding.unwrap_or_default())),
        Some(word) => match before(word).and_then(|first| Some((first, single_word::find_equivalent(first)?))) {
            Some((first, instead)) if !is_literal => {
                usage(Problem::new(format!("`{first}` is not an aye command")).hint(instead))
            }
            _ if !usage_has(&error, "[PROMPT]") => usage(unexpected_argument(word)),
            _ => usage(match usage_error::misspelt_command(&words) {
                Some(name) if !is_literal => {
                    let problem = unexpected_argument(word).hint(format!("did you mean `aye {name}`?"));
                    problem.hint("put a prompt of several words in quotes")
                }
                _ => unexpected_argument(word).hint("put a prompt of several words in quotes"),
            }),
        },
        None if error.use_stderr() => {
            if let Some(problem) = foreign_option(&error, &words) {
                return usage(problem);
            }
            let of_help =
                usage_error::unknown_help(&words).filter(|_| asks_for_help && error.kind() == ErrorKind::InvalidSubcommand);
            of_help.map_or_else(|| ParseExit::Usage(usage_error::format_clap_error(&error, &words)), usage)
        }
        None => ParseExit::Told(error),
    })?;
    if let Some(word) = overriding.filter(|word| line.given_prompt() == Some(word)) {
        return Err(usage(override_problem(word)));
    }
    let written = if is_literal { PromptPosition::Literally } else { PromptPosition::Plainly };
    let invocation = line.check(written, &words).map_err(usage)?;
    if nesting == Nesting::InsideAye {
        invocation.refuse_widening().map_err(usage)?;
    }
    Ok(invocation)
}

/// Parses a command line, replacing options of other agents with the equivalent aye options. Also returns the command
/// line that was finally parsed.
fn read_any(mut typed: Vec<OsString>) -> (Vec<OsString>, Result<Cli, clap::Error>) {
    loop {
        let words = gather_repeatable(mark_session_ids(typed.iter().cloned()));
        let line = read(&words);
        let unknown = line.as_ref().err().and_then(unknown_option);
        match unknown.and_then(|option| other_agents::translate(&typed, &option)) {
            // Every replacement removes an unknown option, so the loop ends.
            Some(Translation::Line(translated)) => typed = translated,
            Some(Translation::Hint(_)) | None => return (words, line),
        }
    }
}

/// Returns the line with the options before the subcommand moved behind it, if that line is valid.
fn with_options_after_subcommand(words: &[OsString]) -> Option<String> {
    let root = Cli::command();
    let is_subcommand = |word: &OsString| root.find_subcommand(word).is_some();
    let at = words.iter().skip(1).position(is_subcommand)? + 1;
    let mut line = vec![words.first()?.clone(), words[at].clone()];
    line.extend_from_slice(&words[1..at]);
    line.extend_from_slice(&words[at + 1..]);
    read(&line).ok()?;
    let given: Vec<String> = line.iter().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    Some(format!("aye {}", quoted_line(&given)))
}

/// Returns the unknown option that caused a clap error.
fn unknown_option(error: &clap::Error) -> Option<String> {
    match (error.kind(), error.get(ContextKind::InvalidArg)) {
        (ErrorKind::UnknownArgument, Some(ContextValue::String(word))) if word.starts_with('-') => Some(word.clone()),
        _ => None,
    }
}

fn unexpected_argument(word: &str) -> Problem {
    Problem::new(format!("unexpected argument `{word}`"))
}

/// Returns the usage error for `-c KEY=VALUE`.
fn override_problem(word: &str) -> Problem {
    let problem = unexpected_argument(word).because("`-c` continues the latest session");
    let problem = problem.hint("use `--set KEY=VALUE` to override a setting; `aye config keys` lists the keys");
    problem.hint("put a prompt after `--`: aye -c -- …")
}

/// Returns the usage error for an option that exists only in other agents.
fn foreign_option(error: &clap::Error, words: &[OsString]) -> Option<Problem> {
    let option = unknown_option(error)?;
    match other_agents::translate(words, &option)? {
        Translation::Hint(hint) => Some(unexpected_argument(&option).because("the option belongs to another agent").hint(hint)),
        Translation::Line(_) => None,
    }
}

fn read(words: &[OsString]) -> Result<Cli, clap::Error> {
    let mut command = help::command();
    let mut matches = command.try_get_matches_from_mut(words)?;
    Cli::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))
}

/// Returns the unexpected word that caused a clap error, unless it is an option.
fn second_word(error: &clap::Error) -> Option<&str> {
    match (error.kind(), error.get(ContextKind::InvalidArg), error.get(ContextKind::InvalidSubcommand)) {
        (ErrorKind::UnknownArgument, Some(ContextValue::String(word)), _) if !word.starts_with('-') => Some(word),
        // A second word after a prompt counts as an invalid subcommand.
        (ErrorKind::InvalidSubcommand, _, Some(ContextValue::String(word))) if usage_has(error, "[PROMPT]") => Some(word),
        _ => None,
    }
}

/// Returns the line for a server that is a program: `aye mcp add NAME -- COMMAND...`, with the given words if none of
/// them is an option.
fn mcp_add_line(words: &[OsString]) -> String {
    let given: Vec<String> =
        words.iter().skip_while(|word| *word != "add").skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    match given.split_first() {
        Some((name, command)) if !command.is_empty() && !given.iter().any(|word| word.starts_with('-')) => {
            let before = ["aye", "mcp", "add", name.as_str(), "--"].map(str::to_owned);
            quoted_line(&[&before[..], command].concat())
        }
        _ => "aye mcp add NAME -- COMMAND...".to_owned(),
    }
}

fn usage_has(error: &clap::Error, words: &str) -> bool {
    match error.get(ContextKind::Usage) {
        Some(ContextValue::StyledStr(usage)) => usage.to_string().contains(words),
        _ => false,
    }
}

/// Rewrites `--resume ID` and `--fork ID` as `--resume=ID` and `--fork=ID` if `ID` looks like a session ID. Any other
/// word that follows these options is the prompt.
fn mark_session_ids(words: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut marked: Vec<OsString> = Vec::new();
    let mut only_operands = false;
    for word in words {
        let id = word.to_str().filter(|word| !only_operands && is_possible_id(word));
        match (id, marked.last_mut()) {
            (Some(id), Some(last)) if ["--resume", "-r", "--fork"].iter().any(|option| last == *option) => {
                last.push(format!("={id}"));
            }
            _ => {
                only_operands |= word == "--";
                marked.push(word);
            }
        }
    }
    marked
}

/// Moves all occurrences of each repeatable option to one position. If an option occurs both before and after a
/// subcommand, clap would otherwise ignore those before it.
fn gather_repeatable(words: Vec<OsString>) -> Vec<OsString> {
    let (mut gathered, mut others) = (Vec::new(), Vec::new());
    let mut words = words.into_iter().peekable();
    others.extend(words.next());
    while let Some(word) = words.next() {
        let text = word.to_str().unwrap_or_default();
        if text == "--" {
            others.push(word);
            others.extend(words);
            break;
        }
        let bare = REPEATABLE.contains(&text);
        let with_value = REPEATABLE.iter().any(|flag| text.strip_prefix(flag).is_some_and(|rest| rest.starts_with('=')));
        let value = words.next_if(|value| bare && !value.as_encoded_bytes().starts_with(b"-"));
        let place = if with_value || value.is_some() { &mut gathered } else { &mut others };
        place.push(word);
        place.extend(value);
    }
    let rest = others.split_off(others.len().min(1));
    others.extend(gathered);
    others.extend(rest);
    others
}

#[cfg(test)]
mod tests;
