//! Detects words that follow an option as its value in another agent, but that aye would send as the prompt.

use super::definition::LATEST;
use crate::cli::session_ids::is_possible_id;
use crate::host::allowed_tools::is_tool_name;
use crate::protocol::Problem;
use std::ffi::OsString;
use std::path::Path;

/// Option with one value that accepts several in other agents, the test for another value, and what it takes here.
type OptionWithValues = (&'static str, fn(&str) -> bool, &'static str);

const SEVERAL: &[OptionWithValues] =
    &[("--add-dir", is_directory, "one directory"), ("--allowed-tools", is_tool_name, "one list of tools, separated by commas")];

/// Returns the error for the first such word before any `--`. `is_prompt` tells whether aye would use a word as the
/// prompt.
pub(super) fn find(typed: &[OsString], is_prompt: impl Fn(&str) -> bool) -> Option<Problem> {
    let end = typed.iter().position(|word| word == "--").unwrap_or(typed.len());
    let words: Vec<&str> = typed[..end].iter().map(|word| word.to_str().unwrap_or_default()).collect();
    let is_stray = |word: &str| !word.is_empty() && !word.starts_with('-') && is_prompt(word);
    (1..words.len()).filter(|at| is_stray(words[*at])).find_map(|at| {
        let word = words[at];
        if takes_session(words[at - 1]) && is_session_name(word) {
            return Some(no_session(word));
        }
        let before = |back: usize| at.checked_sub(back).map_or("", |before| words[before]);
        SEVERAL.iter().find_map(|(option, is_value, what)| {
            let has_value = before(1).strip_prefix(option).is_some_and(|rest| rest.starts_with('='));
            let follows = has_value || (before(2) == *option && !before(1).starts_with('-'));
            (follows && is_value(word)).then(|| {
                let problem = Problem::new(format!("unexpected argument `{word}`"));
                let problem = problem.because(format!("`{option}` takes {what}"));
                problem.hint(format!("repeat the option: {option} {word}")).hint("put a prompt after `--`")
            })
        })
    })
}

/// Returns whether a session ID may follow this option as the next word: `--resume`, or `-r` alone or in a group of
/// short options.
pub(super) fn takes_session(option: &str) -> bool {
    let group = option.strip_prefix('-').and_then(|group| group.strip_suffix('r'));
    option == "--resume" || group.is_some_and(|group| group.bytes().all(|letter| b"cpv".contains(&letter)))
}

/// Returns whether a word after `--resume` seems to name a session, although it is not an ID. A prompt has several
/// words, or begins with a slash command or an attachment. In some languages, a whole sentence has no spaces.
fn is_session_name(word: &str) -> bool {
    let is_name = word.is_ascii() && !word.contains(char::is_whitespace) && !word.starts_with(['/', '@']);
    is_name && word != LATEST && !is_possible_id(word)
}

fn no_session(word: &str) -> Problem {
    let problem = Problem::new(format!("no session `{word}`"));
    let problem = problem.because("expected at least 6 hex digits of a session ID, or `latest`");
    let problem = problem.hint("run `aye sessions list` to list the IDs");
    problem.hint("put a prompt after `--`, or in quotes if it has several words")
}

fn is_directory(word: &str) -> bool {
    Path::new(word).is_dir()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(line: &str) -> Option<String> {
        let typed: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        find(&typed, |_| true).map(|problem| problem.text())
    }

    #[test]
    fn values_of_other_agents_are_not_prompts() {
        for (line, parts) in [
            ("aye --add-dir . ..", &["unexpected argument `..`: `--add-dir` takes one directory", "--add-dir .."][..]),
            ("aye -p --add-dir=. .. fix", &["unexpected argument `..`"]),
            ("aye -p --allowed-tools Read Edit", &["unexpected argument `Edit`", "--allowed-tools Edit"]),
            ("aye -p --allowed-tools=Read Bash(git:*)", &["unexpected argument `Bash(git:*)`"]),
            ("aye -p --allowed-tools=Read mcp__docs__search", &["unexpected argument `mcp__docs__search`"]),
            ("aye -r auth-refactor", &["no session `auth-refactor`", "`aye sessions list`", "after `--`"]),
            ("aye -p --resume 5", &["no session `5`"]),
            ("aye -pr 5", &["no session `5`"]),
        ] {
            let text = found(line).unwrap_or_else(|| panic!("{line}"));
            for part in parts {
                assert!(text.contains(part), "{line}: {text}");
            }
        }
    }

    #[test]
    fn prompts_after_these_options_are_not_values() {
        for line in [
            "aye --add-dir . hello",
            "aye --add-dir . -- ..",
            "aye ..",
            "aye -p --allowed-tools=Read explain",
            "aye -p Edit",
            "aye -r /fix",
            "aye -r 修复这个错误",
            "aye -r latest",
            "aye -r 7f3a01",
            "aye -r --json continue",
            "aye -- -r 5",
        ] {
            assert_eq!(found(line), None, "{line}");
        }
    }
}
