//! Words and options of other agents' subcommands that aye's subcommand of the same name does not have.

use super::meaning::Meaning;
use super::usage_error::named_command;
use Meaning::{Instead, Omitted, Same, Values, WithValue};
use std::ffi::OsString;

const SCOPE: Meaning = Values(
    &[("user", &[])],
    "aye saves servers in your config.toml; put a server for one project into its `.mcp.json`, which other agents also read",
);
const TRANSPORT: Meaning = Values(
    &[("http", &["--type", "http"]), ("sse", &["--type", "sse"]), ("stdio", &[])],
    "use `--type http` or `--type sse`, or put the command of the server after `--`",
);
const MCP_SWITCH: Meaning =
    Instead("set `enabled` of the server in config.toml: `aye config path` prints its path, `aye mcp list` the states");
const CONFIG_EDIT: Meaning =
    Instead("edit config.toml: `aye config path` prints its path, `aye config keys` lists the keys; `--set` changes one run");
const MARKETPLACE: Meaning = Instead("use `aye plugin add SOURCE` with a folder, archive or repository; aye has no marketplaces");
const SKILL_FILES: Meaning =
    Instead("put the skill's folder into `.aye/skills` or `.claude/skills`, or use `aye plugin add SOURCE`");
const KEY_ONLY: Meaning = Instead("`aye auth login PROVIDER` saves an API key; with `--key-stdin`, it reads the key from stdin");
const REVIEW_TEXT: Meaning = Instead("`/review` and `aye review` take no instructions; put them into a prompt for `aye exec`");

/// Commands with their words or options in other agents.
const ENTRIES: &[(&str, &[&str], Meaning)] = &[
    ("mcp", &["ls"], Same("list")),
    ("mcp", &["rm"], Same("remove")),
    ("mcp", &["get", "debug"], Instead("use `aye mcp test NAME`, which connects to the server and shows its tools")),
    ("mcp", &["auth"], Instead("use `aye mcp login NAME` to sign in to a server")),
    (
        "mcp",
        &["add-json"],
        Instead("use `aye mcp add NAME URL`, `aye mcp add NAME -- COMMAND...`, or put the JSON into the project's `.mcp.json`"),
    ),
    ("mcp", &["add-from-claude-desktop"], Instead("use `aye import claude`, or add each server with `aye mcp add`")),
    ("mcp", &["enable", "disable"], MCP_SWITCH),
    (
        "mcp",
        &["reset-project-choices"],
        Instead("aye asks for trust again when the project's files change; `--trust` trusts them for one run"),
    ),
    ("mcp add", &["--transport", "-t"], TRANSPORT),
    ("mcp add", &["--scope", "-s"], SCOPE),
    ("mcp add", &["-e"], WithValue("--env")),
    ("mcp add", &["-H"], WithValue("--header")),
    ("mcp add", &["--url"], Instead("put the URL after the name: `aye mcp add NAME URL`")),
    ("mcp add", &["--bearer-token-env-var"], WithValue("--bearer-token-env")),
    ("mcp add", &["--timeout"], Instead("set `timeout_seconds` of the server in config.toml")),
    ("mcp add", &["--include-tools", "--exclude-tools"], Instead("list the tools in the policy: docs/MCP.md shows how")),
    ("mcp add", &["--client-id", "--client-secret", "--callback-port"], Instead("use `aye mcp login NAME` to sign in")),
    ("mcp remove", &["--scope", "-s"], SCOPE),
    ("config", &["list", "ls"], Same("show")),
    ("config", &["get"], Instead("use `aye config show`, which prints every key with its value")),
    ("config", &["set", "add", "remove", "unset", "edit"], CONFIG_EDIT),
    ("plugin", &["install", "i", "link", "new", "marketplace"], MARKETPLACE),
    ("plugin", &["ls"], Same("list")),
    ("plugin", &["uninstall", "rm"], Same("remove")),
    ("plugin", &["validate"], Same("check")),
    ("skills", &["install", "link", "add"], SKILL_FILES),
    ("skills", &["uninstall", "remove", "enable", "disable"], SKILL_FILES),
    ("skills", &["ls"], Same("list")),
    (
        "agents",
        &["create", "add"],
        Instead("put agents in `.aye/agents` or `.claude/agents`; docs/SUBAGENTS.md shows the format"),
    ),
    ("agents", &["ls"], Same("list")),
    ("auth", &["list", "ls"], Same("status")),
    ("auth login", &["--device-auth", "--console", "--claudeai", "--sso", "--email"], KEY_ONLY),
    ("auth login", &["--with-api-key", "--api-key"], KEY_ONLY),
    ("models", &["--refresh"], Instead("use `aye models update` to update the list")),
    ("review", &["--uncommitted"], Omitted),
    ("review", &["--title"], REVIEW_TEXT),
    ("sessions", &["ls"], Same("list")),
    ("sessions", &["rm"], Same("delete")),
    ("sessions list", &["--max-count", "-n"], Instead("use `aye sessions list | head` for the latest sessions")),
    ("usage", &["--days"], Instead("use `--since 30d` for the last 30 days")),
    ("usage", &["--models", "--tools"], Instead("use `--by model`; `/stats` shows the tools of a session")),
];

/// Returns the meaning of a word or option in the subcommand of this line.
pub(super) fn find(line: &[OsString], word: &str) -> Option<&'static Meaning> {
    let command = named_command(line);
    let path = command.strip_prefix("aye ")?;
    let entry = ENTRIES.iter().find(|(known, names, _)| *known == path && names.contains(&word));
    entry.map(|(.., meaning)| meaning)
}

#[cfg(test)]
mod tests {
    use super::super::definition::Cli;
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn entries_are_unique_unknown_to_aye_and_have_existing_equivalents() {
        let root = Cli::command();
        let mut seen = Vec::new();
        for (path, names, meaning) in ENTRIES {
            let command = path.split(' ').fold(&root, |command, name| command.find_subcommand(name).expect(path));
            let has = |word: &str| {
                let is_option = |arg: &clap::Arg| {
                    let long = arg.get_long().is_some_and(|long| word.strip_prefix("--") == Some(long));
                    long || arg.get_short().is_some_and(|short| word == format!("-{short}"))
                };
                command.find_subcommand(word).is_some() || command.get_arguments().any(is_option)
            };
            for name in *names {
                assert!(!seen.contains(&(path, name)) && !has(name), "{path} {name}");
                seen.push((path, name));
            }
            let counterparts = match meaning {
                Same(name) | WithValue(name) => vec![*name],
                Values(values, _) => values.iter().filter_map(|(_, words)| words.first().copied()).collect(),
                Instead(_) | Meaning::ByValue(..) | Omitted => Vec::new(),
            };
            for name in counterparts {
                assert!(has(name), "{path} {names:?}: {name}");
            }
        }
        assert!(seen.len() > 50, "{}", seen.len());
    }
}
