//! Parses the command line and returns a validated invocation.

pub(crate) mod definition;
mod examples;
mod help;
pub(crate) mod invocation;
mod meaning;
mod other_agents;
mod other_subcommands;
mod pages;
mod single_word;
mod stray_values;
mod usage_error;

use crate::cli::session_ids::is_possible_id;
pub(crate) use invocation::{CliAction, CliInvocation, ExecPrompt, OutputFormat, ReviewRequest};
pub(crate) use pages::{completions, manual, write_manual};

use crate::host::nesting::Nesting;
use crate::protocol::Problem;
use crate::text::quoted_line;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, FromArgMatches};
use definition::{Cli, LATEST};
use invocation::PromptPosition;
use other_agents::Translation;
use std::ffi::{OsStr, OsString};
use stray_values::takes_session;

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
    let (typed, words, line) = read_any(words.into_iter().collect());
    let usage = |problem: Problem| ParseExit::Usage(usage_error::format_problem(problem, &words));
    let line = line.map_err(|error| exit_of(error, &typed, &words))?;
    if let Some(word) = other_agents::find_override(&words).filter(|word| line.given_prompt() == Some(word)) {
        return Err(usage(override_problem(word)));
    }
    let stray = stray_values::find(&typed, |word| line.given_prompt() == Some(word));
    let is_literal = words.iter().any(|word| word == "--");
    let written = if is_literal { PromptPosition::Literally } else { PromptPosition::Plainly };
    let invocation = line.check(written, &words).map_err(usage)?;
    if let Some(problem) = stray {
        return Err(usage(problem));
    }
    if nesting == Nesting::InsideAye {
        invocation.refuse_widening().map_err(usage)?;
    }
    Ok(invocation)
}

/// Converts a clap error to the text to print. `typed`: the words of the line before `words` was made from them.
fn exit_of(error: clap::Error, typed: &[OsString], words: &[OsString]) -> ParseExit {
    if !error.use_stderr() {
        return ParseExit::Told(error);
    }
    let usage = |problem: Problem| ParseExit::Usage(usage_error::format_problem(problem, words));
    let asks_for_help =
        words.iter().skip(1).find(|word| !word.as_encoded_bytes().starts_with(b"-")).is_some_and(|word| word == "help");
    if let Some(word) = second_word(&error).filter(|_| !asks_for_help) {
        return usage(second_word_problem(&error, word, typed, words));
    }
    let elsewhere = unknown_option(&error).and_then(|_| foreign_command(usage_error::first_operand(words)?));
    if let Some(problem) = elsewhere.or_else(|| foreign_word(&error, words)) {
        return usage(problem);
    }
    let of_help = usage_error::unknown_help(words).filter(|_| asks_for_help && error.kind() == ErrorKind::InvalidSubcommand);
    of_help.map_or_else(|| ParseExit::Usage(usage_error::format_clap_error(&error, words)), usage)
}

/// Returns the usage error for an unexpected word that is not an option.
fn second_word_problem(error: &clap::Error, word: &str, typed: &[OsString], words: &[OsString]) -> Problem {
    if usage_has(error, "policy explain") {
        return unexpected_argument(word).hint(format!("put the command after `--`: aye policy explain -- {word} …"));
    }
    if usage_has(error, "mcp add") {
        return unexpected_argument(word).hint(format!("put the command after `--`: `{}`", mcp_add_line(words)));
    }
    // Only the commands that take a prompt accept `-c`.
    if let Some(setting) = other_agents::find_override(words) {
        return override_problem(setting);
    }
    let takes_prompt = usage_has(error, "[PROMPT]");
    let root = Cli::command();
    let stray = || stray_values::find(typed, |word| root.find_subcommand(word).is_none());
    if let Some(problem) = takes_prompt.then(stray).flatten() {
        return problem;
    }
    let is_literal = words.iter().any(|word| word == "--");
    let at = words.iter().rposition(|known| known == word).and_then(|at| at.checked_sub(1));
    let before = at.and_then(|at| words.get(at)?.to_str());
    let first = usage_error::first_operand(words);
    let elsewhere = [first, before].into_iter().flatten().find_map(foreign_command).filter(|_| takes_prompt && !is_literal);
    let in_quotes = "put a prompt of several words in quotes";
    if let Some(problem) = elsewhere {
        return problem.hint(in_quotes);
    }
    if !takes_prompt {
        return unexpected_argument(word);
    }
    let problem = match usage_error::misspelt_command(words) {
        Some(name) if !is_literal => unexpected_argument(word).hint(format!("did you mean `aye {name}`?")),
        _ => unexpected_argument(word),
    };
    let problem = problem.hint(in_quotes);
    match other_agents::find_profile(typed) {
        Some(name) => problem.hint(format!("use `--profile {name}` to choose a profile: `-p` prints the response and exits")),
        None => problem,
    }
}

/// Parses a command line, replacing options of other agents with the equivalent aye options. Returns the words with
/// these replacements, the command line that was finally parsed, and the result.
fn read_any(mut typed: Vec<OsString>) -> (Vec<OsString>, Vec<OsString>, Result<Cli, clap::Error>) {
    loop {
        let words = gather_repeatable(mark_session_ids(typed.iter().cloned()));
        let line = read(&words);
        let unknown = line.as_ref().err().and_then(|error| unknown_option(error).or_else(|| unknown_subcommand(error)));
        match unknown.and_then(|word| other_agents::translate(&typed, &word)) {
            // Every replacement removes an unknown option or subcommand, so the loop ends.
            Some(Translation::Line(translated)) => typed = translated,
            Some(Translation::Hint(_)) | None => return (typed, words, line),
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

/// Returns the unknown subcommand of a group of commands that caused a clap error.
fn unknown_subcommand(error: &clap::Error) -> Option<String> {
    match (error.kind(), error.get(ContextKind::InvalidSubcommand)) {
        (ErrorKind::InvalidSubcommand, Some(ContextValue::String(word))) if !usage_has(error, "[PROMPT]") => Some(word.clone()),
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

/// Returns the usage error for an option or a subcommand that exists only in other agents.
fn foreign_word(error: &clap::Error, words: &[OsString]) -> Option<Problem> {
    let (word, problem, what) = match (unknown_option(error), unknown_subcommand(error)) {
        (Some(option), _) => (option.clone(), unexpected_argument(&option), "option"),
        (None, Some(name)) => (name.clone(), Problem::new(format!("unrecognized subcommand `{name}`")), "command"),
        (None, None) => return None,
    };
    match other_agents::translate(words, &word)? {
        Translation::Hint(hint) => Some(problem.because(format!("the {what} belongs to another agent")).hint(hint)),
        Translation::Line(_) => None,
    }
}

/// Returns the usage error for a command that exists only in other agents.
fn foreign_command(name: &str) -> Option<Problem> {
    let instead = single_word::find_equivalent(name)?;
    Some(Problem::new(format!("`{name}` is not an aye command")).hint(instead))
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

/// Rewrites `--resume ID` and `--fork ID` as `--resume=ID` and `--fork=ID` if `ID` looks like a session ID or is
/// `latest`. Any other word that follows these options is the prompt.
fn mark_session_ids(words: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut marked: Vec<OsString> = Vec::new();
    let mut only_operands = false;
    for word in words {
        let id = word.to_str().filter(|word| !only_operands && (*word == LATEST || is_possible_id(word)));
        let takes_id = |option: &OsStr| option.to_str().is_some_and(|option| option == "--fork" || takes_session(option));
        match (id, marked.last_mut()) {
            (Some(id), Some(last)) if takes_id(last.as_os_str()) => last.push(format!("={id}")),
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
