//! Detects prompts that consist of a command name, either of aye or of another agent. Such prompts are not sent to a
//! model.

use super::definition::Cli;
use crate::protocol::Problem;
use crate::tui::is_built_in_command;
use clap::CommandFactory;
use strsim::osa_distance;

/// Commands of other agents and their equivalents in aye.
const ELSEWHERE: &[(&[&str], &str)] = &[
    (&["login", "log-in", "signin", "sign-in", "setup-token", "console"], "`aye auth login` saves an API key"),
    (&["logout", "log-out", "signout", "sign-out"], "`aye auth logout` removes an API key"),
    (&["whoami"], "`aye auth status` shows the saved API keys"),
    (&["status", "info", "about", "debug", "diagnostics"], "`aye doctor` checks this system, `aye auth status` the API keys"),
    (&["continue"], "`aye -c` continues the latest session, `aye resume` opens a list of sessions"),
    (&["fork", "branch"], "`aye --fork` continues in a copy of the latest session"),
    (&["session", "threads", "history", "project", "projects", "ls", "list", "db"], "`aye sessions list` lists the sessions"),
    (&["export"], "`aye sessions export ID` writes a session to a file"),
    (&["archive"], "`aye sessions archive ID` archives a session"),
    (&["delete", "prune", "rm"], "`aye sessions delete ID` deletes a session, `aye sessions prune` deletes old ones"),
    (&["stats", "cost", "tokens"], "`aye usage` shows tokens and cost"),
    (&["upgrade", "self-update", "install"], "`aye update` shows the commands that update aye"),
    (&["uninstall"], "uninstall aye the way you installed it; docs/INSTALL.md lists the commands"),
    (&["version"], "`aye --version` prints the version"),
    (&["init"], "start `aye` and run `/init` to write an AGENTS.md"),
    (
        &["run", "execute", "chat", "ask", "print", "prompt", "start", "new"],
        "`aye` starts a session, `aye exec PROMPT` runs one task",
    ),
    (&["undo", "redo", "restore", "checkpoint"], "`aye rewind` undoes and redoes changes"),
    (&["diff"], "start `aye` and run `/diff` to show the changes; `aye review` reviews them"),
    (&["mcp-server"], "`aye mcp serve` runs aye as an MCP server"),
    (
        &["app-server", "server", "daemon", "attach", "web", "exec-server", "proto", "gateway", "generate"],
        "`aye serve --stdio` serves a session to another program",
    ),
    (&["app", "remote-control"], "aye runs in the terminal and, with `aye acp`, in editors; `aye serve` is for programs"),
    (&["stop", "kill", "respawn"], "`aye tasks` lists the running tasks, `aye task stop ID` stops one"),
    (&["providers"], "`aye models` lists the models of each provider, `aye auth status` the API keys"),
    (&["ultrareview"], "`aye review` looks for defects in changes"),
    (&["auto-mode"], "`--mode auto` asks only about high-risk actions; `aye policy show` shows what is allowed"),
    (&["completion"], "`aye completions SHELL` generates shell completions"),
    (&["sandbox", "permissions", "rules", "trust"], "`aye policy show` shows what is allowed"),
    (
        &["configure", "settings", "features", "onboard"],
        "`aye config show` shows the settings, `aye setup` runs first-time setup again",
    ),
    (&["plugins", "extension", "extensions"], "`aye plugin list` lists the plugins"),
    (&["agent", "cloud", "github", "pr", "schedule", "recipe"], "aye has no such command; `aye --help` lists its commands"),
    (&["logs", "log"], "`aye config path` prints the data directory, which contains the logs"),
];

/// Maximum length, in bytes, of a short name. Because short words are easily confused, only swapped or repeated
/// characters are recognized as typos of such a name.
const SHORT_NAME: usize = 3;
/// Minimum length, in bytes, of a name for which two typos are tolerated.
const LONG_NAME: usize = 7;

/// If the prompt is a single word that is, or resembles, a command, returns an error with hints. `start` is the command
/// that would send the prompt, such as `aye exec`.
pub(super) fn refuse(prompt: &str, start: &str) -> Option<Problem> {
    let given = prompt.trim();
    let word = given.to_ascii_lowercase();
    if word.is_empty() || !word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-' || byte == b'_') {
        return None;
    }
    let (what, instead) = find_meaning(&word)?;
    let problem = Problem::new(format!("`{given}` was not sent as a prompt: it {what}")).hint(instead);
    Some(problem.hint(format!("run `{start} -- {given}` to send it as a prompt")))
}

/// Returns a description of the word and the equivalent in aye.
fn find_meaning(word: &str) -> Option<(&'static str, String)> {
    let line = Cli::command();
    let names = || line.get_subcommands().filter(|command| !command.is_hide_set()).map(clap::Command::get_name);
    let run = |name: &str| format!("run `aye {name}`");
    if names().chain(["help"]).any(|name| name == word) {
        return Some(("is an aye command", run(word)));
    }
    if let Some(use_instead) = find_equivalent(word) {
        return Some((foreign_kind(word), use_instead.to_owned()));
    }
    if let Some(name) = near(word, names().chain(["help"])) {
        return Some(("looks like an aye command", format!("did you mean `aye {name}`?")));
    }
    let known = ELSEWHERE.iter().flat_map(|(names, _)| names.iter());
    let near = known.copied().find(|name| name.len() > SHORT_NAME + 1 && is_typo(word, name))?;
    Some(("looks like a command of another agent", find_equivalent(near)?.to_owned()))
}

/// Returns what a word is that aye has no command for.
fn foreign_kind(word: &str) -> &'static str {
    if is_built_in_command(word) { "is a slash command of aye" } else { "is a command of another agent" }
}

/// Returns the name of which `word` is probably a misspelling.
pub(super) fn near<'a>(word: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // Swapped letters are more common than a missing one.
    names.filter(|name| is_typo(word, name)).min_by_key(|name| (osa_distance(word, name), !same_letters(word, name)))
}

/// Returns the aye equivalent of a command of another agent.
pub(super) fn find_equivalent(word: &str) -> Option<&'static str> {
    ELSEWHERE.iter().find(|(names, _)| names.contains(&word)).map(|(_, instead)| *instead)
}

fn is_typo(word: &str, name: &str) -> bool {
    let distance = osa_distance(word, name);
    match name.len() {
        0..=SHORT_NAME => distance == 1 && (same_letters(word, name) || has_repeated_letters(word, name)),
        length if length < LONG_NAME => distance <= 1,
        _ => distance <= 2,
    }
}

fn same_letters(one: &str, other: &str) -> bool {
    let sorted = |text: &str| {
        let mut bytes = text.as_bytes().to_vec();
        bytes.sort_unstable();
        bytes
    };
    sorted(one) == sorted(other)
}

/// Returns whether the word differs from the name only in repeated letters.
fn has_repeated_letters(word: &str, name: &str) -> bool {
    let mut letters = word.as_bytes().to_vec();
    letters.dedup();
    letters == name.as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_names_their_typos_and_commands_of_other_agents_are_not_prompts() {
        for (word, hint) in [
            ("login", "`aye auth login`"),
            ("Logout", "`aye auth logout`"),
            ("continue", "`aye -c`"),
            ("resume", "`aye resume`"),
            ("update", "run `aye update`"),
            ("updat", "`aye update`"),
            ("upgrade", "`aye update`"),
            ("uninstall", "the way you installed it"),
            ("version", "`aye --version`"),
            ("init", "`/init`"),
            ("run", "`aye exec PROMPT`"),
            ("review", "run `aye review`"),
            ("apply", "run `aye apply`"),
            ("doctor", "run `aye doctor`"),
            ("mcp", "run `aye mcp`"),
            ("config", "run `aye config`"),
            ("models", "run `aye models`"),
            ("help", "run `aye help`"),
            ("docter", "`aye doctor`"),
            ("mpc", "`aye mcp`"),
            ("session", "`aye sessions list`"),
            ("sesions", "`aye sessions`"),
            ("exe", "`aye exec`"),
            ("modles", "`aye models`"),
            ("confg", "`aye config`"),
            ("hepl", "`aye help`"),
            ("resum", "`aye resume`"),
            ("lgoin", "`aye auth login`"),
            ("mcpp", "`aye mcp`"),
            ("acpp", "`aye acp`"),
            ("mpc", "`aye mcp`"),
            (" login ", "`aye auth login`"),
            ("diff", "`/diff`"),
            ("fork", "it is a slash command of aye\nhint: `aye --fork`"),
            ("logout", "it is a command of another agent"),
            ("sandbox", "it is a command of another agent"),
            ("remote-control", "`aye acp`"),
            ("ultrareview", "`aye review`"),
            ("providers", "`aye auth status`"),
            ("gateway", "`aye serve --stdio`"),
            ("app", "`aye acp`"),
            ("kill", "`aye task stop ID`"),
            ("stop", "`aye task stop ID`"),
            ("rm", "`aye sessions delete ID`"),
            ("auto-mode", "`--mode auto`"),
            ("exec-server", "`aye serve --stdio`"),
            ("proto", "`aye serve --stdio`"),
            ("db", "`aye sessions list`"),
            ("generate", "`aye serve --stdio`"),
            ("project", "`aye sessions list`"),
            ("console", "`aye auth login`"),
        ] {
            let message = refuse(word, "aye").unwrap_or_else(|| panic!("{word}")).text();
            assert!(message.contains(hint), "{word}: {message}");
            assert!(message.contains(&format!("`aye -- {}`", word.trim())), "{word}: {message}");
        }
    }

    #[test]
    fn other_words_and_sentences_are_prompts() {
        for prompt in [
            "hello",
            "hi",
            "hey",
            "thanks",
            "test",
            "tests",
            "fix",
            "refactor",
            "explain",
            "summarize",
            "commit",
            "why",
            "build",
            "lint",
            "format",
            "clean",
            "document",
            "login please",
            "resume.txt",
            "update!",
            "7f3a",
            "",
            "größe",
            "yes",
            "go",
            "map",
            "can",
            "main",
            "bench",
            "deploy",
            "readme",
        ] {
            assert_eq!(refuse(prompt, "aye"), None, "{prompt}");
        }
    }

    #[test]
    fn foreign_command_words_are_unique_and_are_not_aye_commands() {
        let mut seen = Vec::new();
        let line = Cli::command();
        for name in ELSEWHERE.iter().flat_map(|(names, _)| names.iter()) {
            assert!(!seen.contains(name), "{name}");
            assert!(line.get_subcommands().all(|command| command.get_name() != *name), "{name}");
            seen.push(name);
        }
    }
}
