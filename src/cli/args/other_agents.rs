//! Options of other agents. If aye has an equivalent option, it is used; otherwise an error explains the alternative.

use super::meaning::Meaning;
use super::other_subcommands;
use Meaning::{ByValue, Instead, Omitted, Same, Values, WithValue};
use std::ffi::{OsStr, OsString};

const MODES: &str = "use `--mode plan`, `ask`, `auto-edit` or `auto`";
const NO_BYPASS: &str = "no option skips the policy; `--mode auto` asks only about high-risk actions";
const TOOLS: &str = "the policy decides what tools may do: `aye policy show` prints it, `aye policy init` writes one";
const SANDBOX: &str = "the policy sets the sandbox; `--mode plan` is read-only, `aye doctor` shows what the sandbox can do";
const INSTRUCTIONS: &str = "put instructions in AGENTS.md; `/init` creates the file";
const STRUCTURED: &str =
    "use `--output-format json` for one object at the end, `stream-json` for messages, `events` for every event";
const ATTACH: &str = "name the file in the prompt as `@FILE` to attach it";
const WITH_PROMPT: &str = "use `aye PROMPT`: it starts a session with that prompt";
const RESUME: &str = "use `-r ID` to resume a session; `aye sessions list` lists the IDs";
const LOGS: &str = "use `--verbose` for details of what aye does; `aye config path` prints the directory with the logs";
const SUBAGENTS: &str = "put agents in `.aye/agents` or `.claude/agents`; `aye agents list` lists them";

/// Options that aye does not have, by their names in other agents.
const OPTIONS: &[(&[&str], Meaning)] = &[
    (&["--cd", "--cwd", "--workdir", "--working-dir", "--dir", "--project-dir"], WithValue("--directory")),
    (&["--max-turns", "--max-session-turns", "--max-iterations"], WithValue("--max-steps")),
    (&["--session", "--conversation"], WithValue("--resume")),
    (
        &["--session-id"],
        Instead("aye chooses the ID of a new session, which `aye exec --json` prints; `--resume ID` continues a session"),
    ),
    (&["--fork-session"], Same("--fork")),
    (&["--prompt", "--non-interactive", "--headless"], Same("--print")),
    (&["--screen-reader", "--ax-screen-reader", "--no-tui"], Same("--plain")),
    (&["--log"], Same("--verbose")),
    (&["--debug", "--debug-file", "--log-level", "--print-logs"], Instead(LOGS)),
    (&["--reasoning-effort", "--variant"], WithValue("--effort")),
    (&["--thinking"], Instead("`--effort LEVEL` sets how long the model reasons")),
    (&["--yes-trust", "--trust-workspace", "--skip-trust"], Same("--trust")),
    (
        &["--permission-mode"],
        Values(
            &[
                ("plan", &["--mode", "plan"]),
                ("default", &["--mode", "ask"]),
                ("manual", &["--mode", "ask"]),
                ("acceptEdits", &["--mode", "auto-edit"]),
                ("auto", &["--mode", "auto"]),
            ],
            MODES,
        ),
    ),
    (
        &["--approval-mode"],
        Values(
            &[
                ("plan", &["--mode", "plan"]),
                ("default", &["--mode", "ask"]),
                ("auto_edit", &["--mode", "auto-edit"]),
                ("auto-edit", &["--mode", "auto-edit"]),
            ],
            MODES,
        ),
    ),
    (
        &[
            "--yolo",
            "-y",
            "--dangerously-skip-permissions",
            "--allow-dangerously-skip-permissions",
            "--dangerously-bypass-approvals-and-sandbox",
            "--allow-all",
            "--allow-all-tools",
            "--yes-always",
            "--auto-approve",
        ],
        Instead(NO_BYPASS),
    ),
    (
        &["--full-auto", "--approve-for-me", "--not-so-yolo", "--enable-auto-mode"],
        Instead("use `--mode auto`, which asks only about high-risk actions"),
    ),
    (&["--ask-for-approval", "-a", "--approval-policy"], Instead(MODES)),
    (&["--sandbox", "--no-sandbox"], Instead(SANDBOX)),
    (&["-s"], ByValue(&[(is_session, RESUME)], SANDBOX)),
    (&["--allowedTools", "--tools", "--available-tools"], WithValue("--allowed-tools")),
    (&["--allow-tool"], Instead(TOOLS)),
    (
        &["--disallowedTools", "--disallowed-tools", "--deny-tool", "--exclude-tools"],
        Instead("use `--set 'tools.disabled=[\"RunCommand\"]'` to remove tools, or `--allowed-tools` to name the others"),
    ),
    (
        &[
            "--append-system-prompt",
            "--system-prompt",
            "--system-prompt-file",
            "--append-system-prompt-file",
            "--append-subagent-system-prompt",
            "--rules",
        ],
        Instead(INSTRUCTIONS),
    ),
    (
        &["--mcp-config", "--strict-mcp-config", "--allowed-mcp-server-names", "--additional-mcp-config"],
        Instead("use `aye mcp add` to add an MCP server, or a `.mcp.json` in the project"),
    ),
    (
        &["--settings", "--config", "--setting-sources", "--config-file", "--enable", "--disable"],
        Instead("use `--set KEY=VALUE` to override a setting; `aye config keys` lists the keys"),
    ),
    (&["--include-directories"], Instead("use `--add-dir DIR`, once for each directory")),
    (&["--image", "--file", "-f", "--attach"], Instead(ATTACH)),
    (&["-i"], ByValue(&[(is_text, WITH_PROMPT)], ATTACH)),
    (&["--prompt-interactive", "--interactive"], Instead(WITH_PROMPT)),
    (&["--search", "--web-search"], Instead("web search needs no option; `search.provider` in config.toml chooses the service")),
    (
        &["--oss", "--local-provider", "--base-url", "--api-base"],
        Instead("set OPENAI_BASE_URL, for example to http://localhost:11434/v1, for a local model server"),
    ),
    (&["--provider"], Instead("use `-m PROVIDER/NAME`; `aye models` lists the models")),
    (&["--api-key"], Instead("use `aye auth login PROVIDER` to save an API key, or set its environment variable")),
    (&["--fallback-model"], Instead("list the models under `[model] fallback` in config.toml")),
    (&["--small-model", "--weak-model"], Instead("set `[model] summary` in config.toml: it writes the summaries")),
    (&["--list-models"], Instead("use `aye models`")),
    (
        &["--list-sessions", "--all", "--include-non-interactive"],
        Instead("use `aye sessions list`, with `--all` for all projects"),
    ),
    (&["--delete-session"], Instead("use `aye sessions delete ID`")),
    (
        &["--list-extensions", "-l", "--extensions", "-e", "--plugin-dir", "--plugin-url", "--channels"],
        Instead("use `aye plugin add SOURCE` to add a plugin, `aye plugin list` to list the plugins"),
    ),
    (&["--last"], Instead("use `aye -c` to continue the latest session")),
    (&["--output-last-message", "-o", "--output"], Instead("redirect stdout, for example `aye exec PROMPT > FILE`")),
    (&["--format", "--raw-output"], Instead(STRUCTURED)),
    (&["--experimental-json"], Same("--json")),
    (
        &["--include-hook-events", "--forward-subagent-text"],
        Instead("use `--output-format events`, which has the events of hooks and agents"),
    ),
    (&["--color"], Values(&[("never", &["--no-color"])], "aye uses colours only in a terminal; `--no-color` turns them off")),
    (&["--no-alt-screen"], Instead("use `aye --plain`, which prints lines and leaves the scrollback to the terminal")),
    (&["--name", "-n"], Instead("use `/rename TITLE` in the session, or `aye sessions rename ID TITLE`")),
    (
        &["--background", "--bg", "--tmux", "--exec"],
        Instead("use `aye task start --detach PROMPT`, which runs a task in a copy of the workspace"),
    ),
    (&["--from-pr"], Instead("check out the branch first, then run `aye`; `aye review --base BRANCH` reviews it")),
    (&["--acp", "--experimental-acp"], Instead("use `aye acp`")),
    (&["--session-file"], Instead("use `aye sessions import FILE`, then `aye resume`")),
    (&["--admin-policy"], Instead("use `--policy FILE`; docs/POLICY.md describes policies for an organisation")),
    (
        &["--bare", "--safe-mode", "--ignore-user-config", "--ignore-rules"],
        Instead("set AYE_CONFIG_DIR to an empty directory to run without your settings; your policy and keys are there too"),
    ),
    (&["--permission-prompt-tool"], Instead("use `aye serve --stdio`, in which another program answers approvals")),
    (&["--dangerously-bypass-hook-trust"], Instead("`aye hooks list` lists the hooks; `--trust` trusts those of the project")),
    (&["-d"], Instead("use `--verbose` for details of what aye does, `-C DIR` for another directory")),
    (&["--betas"], Instead("set `headers` of a provider in config.toml; docs/MODELS.md shows how")),
    (&["--strict-config"], Instead("not needed: aye reports unknown keys in config.toml; `aye doctor` lists them")),
    (&["--include-partial-messages", "--stream"], Instead("use `--output-format events`, which has partial messages")),
    (&["--input-format", "--replay-user-messages"], Instead("use `aye serve --stdio` to send messages from another program")),
    (&["--json-schema"], Instead("use `--output-schema FILE` with the schema in a file")),
    (&["--no-session-persistence", "--no-session"], Same("--ephemeral")),
    (&["--skip-git-repo-check", "--allow-no-git"], Instead("not needed: aye also runs outside git repositories")),
    (&["--checkpointing"], Instead("not needed: aye always saves checkpoints; `aye rewind` restores one")),
    (&["--all-files"], Instead("not needed: the model reads the files it needs")),
    (&["--worktree", "-w"], Instead("use `aye task start -w PROMPT` to run a task in a git worktree")),
    (&["--agent", "--agents", "--advisor", "--teammate-mode"], Instead(SUBAGENTS)),
    (&["--ide", "--chrome", "--no-chrome"], Instead("use `aye acp` in an editor that supports the Agent Client Protocol")),
    (
        &["--remote", "--remote-control", "--rc", "--cloud", "--share", "--teleport"],
        Instead("aye runs on this machine only; `aye sessions export ID` writes a session to a file"),
    ),
    (&["--init"], Instead("start `aye` and run `/init` to write an AGENTS.md")),
    (
        &["--init-only", "--maintenance"],
        Instead("a hook for `SessionStart` runs at the start of every session; docs/HOOKS.md explains hooks"),
    ),
    (&["--disable-slash-commands"], Instead("put a prompt that begins with `/` after `--` to send it unchanged")),
    (&["--telemetry"], Instead("aye sends no telemetry unless `services.telemetry.url` is set in config.toml")),
    (&["--proxy"], Instead("set the environment variable HTTPS_PROXY; docs/MODELS.md describes proxies")),
    (&["--port", "--hostname", "--host"], Instead("use `aye serve --socket PATH`: aye listens on no network port")),
    (&["--quiet", "-q"], Instead("use `aye exec`: stdout contains only the response")),
    (&["--version-check", "--update"], Instead("use `aye update --check`")),
];

/// Result of translating an option of another agent.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Translation {
    /// Command line in which the option is replaced with aye's equivalent.
    Line(Vec<OsString>),
    /// Sentence that describes the alternative.
    Hint(&'static str),
}

/// Returns the `KEY=VALUE` word that follows `-c`. In Codex, this option overrides a setting, whereas in aye it
/// continues a session.
pub(super) fn find_override(words: &[OsString]) -> Option<&str> {
    let is_end = |word: &OsString| word.as_os_str() == OsStr::new("--");
    let end = words.iter().position(is_end).unwrap_or(words.len());
    let pair = words[..end].windows(2).find(|pair| pair[0] == "-c" && pair[1].to_str().is_some_and(is_setting))?;
    pair[1].to_str()
}

/// Returns the word that follows `-p` if it could be the name of a profile. In Codex, this option chooses a profile,
/// whereas in aye it prints the response.
pub(super) fn find_profile(words: &[OsString]) -> Option<&str> {
    let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
    let pair = words[..end].windows(2).find(|pair| pair[0] == "-p")?;
    let is_name =
        |name: &&str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
    pair[1].to_str().filter(is_name).filter(|name| !name.starts_with('-'))
}

fn is_setting(word: &str) -> bool {
    let is_key = |key: &str| !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte));
    word.split_once('=').is_some_and(|(key, value)| is_key(key) && !value.contains(char::is_whitespace))
}

/// Translates an option that aye does not have, or a word that is a subcommand in another agent. `words` is the command
/// line as typed, and `option` has the form `--name`, `-n` or `word`.
pub(super) fn translate(words: &[OsString], option: &str) -> Option<Translation> {
    let in_general = || OPTIONS.iter().find(|(names, _)| names.contains(&option)).map(|(_, meaning)| meaning);
    let meaning = other_subcommands::find(words, option).or_else(in_general)?;
    let Some((at, value)) = find(words, option) else {
        // The option is part of a group of short options.
        return if let Instead(hint) | ByValue(_, hint) = meaning { Some(Translation::Hint(hint)) } else { None };
    };
    let next = words.get(at + 1).and_then(|word| word.to_str());
    let with = |replacement: &[&str], taken: usize| {
        let mut line = words[..at].to_vec();
        line.extend(replacement.iter().map(OsString::from));
        line.extend_from_slice(&words[at + taken..]);
        Translation::Line(line)
    };
    Some(match (meaning, value) {
        (Instead(hint), _) => Translation::Hint(hint),
        (Omitted, _) => with(&[], 1),
        // The prompt is a separate argument in aye.
        (Same("--print"), Some(value)) => with(&["--print", value], 1),
        (Same(name) | WithValue(name), Some(value)) => with(&[&format!("{name}={value}")], 1),
        (Same(name), None) => with(&[name], 1),
        (WithValue(name), None) => match next.filter(|next| !next.starts_with('-')) {
            // Otherwise, an option whose value is optional would leave the value as the prompt.
            Some(next) => with(&[&format!("{name}={next}")], 2),
            None => with(&[name], 1),
        },
        (ByValue(cases, other), given) => {
            let given = given.or(next).unwrap_or_default();
            let case = cases.iter().find(|(accepts, _)| accepts(given));
            Translation::Hint(case.map_or(*other, |(_, hint)| *hint))
        }
        (Values(values, hint), given) => {
            let taken = if given.is_some() { 1 } else { 2 };
            let given = given.or(next);
            let known = values.iter().find(|(value, _)| given == Some(value));
            known.map_or(Translation::Hint(hint), |(_, replacement)| with(replacement, taken))
        }
    })
}

/// Returns whether a value is the ID of an opencode session.
fn is_session(value: &str) -> bool {
    value.starts_with("ses_")
}

/// Returns whether a value is text of several words, not a file name.
fn is_text(value: &str) -> bool {
    value.contains(char::is_whitespace)
}

/// Returns the position of an option before any `--`, and the option's value if both are in one word.
fn find<'a>(words: &'a [OsString], option: &str) -> Option<(usize, Option<&'a str>)> {
    let is_end = |word: &&OsString| word.as_os_str() == OsStr::new("--");
    for (at, word) in words.iter().take_while(|word| !is_end(word)).enumerate().skip(1) {
        let Some(rest) = word.to_str().and_then(|word| word.strip_prefix(option)) else { continue };
        if rest.is_empty() {
            return Some((at, None));
        }
        if let Some(value) = rest.strip_prefix('=') {
            return Some((at, Some(value)));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::definition::Cli;
    use super::*;
    use clap::CommandFactory;

    fn line(text: &str) -> Vec<OsString> {
        text.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn options_of_other_agents_are_translated_to_equivalent_options() {
        for (given, option, expected) in [
            ("aye --cd /tmp hi", "--cd", "aye --directory=/tmp hi"),
            ("aye --cd=/tmp hi", "--cd", "aye --directory=/tmp hi"),
            ("aye exec --max-turns 3 hi", "--max-turns", "aye exec --max-steps=3 hi"),
            ("aye --permission-mode plan hi", "--permission-mode", "aye --mode plan hi"),
            ("aye --permission-mode=acceptEdits hi", "--permission-mode", "aye --mode auto-edit hi"),
            ("aye --approval-mode auto_edit", "--approval-mode", "aye --mode auto-edit"),
            ("aye --prompt hi", "--prompt", "aye --print hi"),
            ("aye --prompt=hi", "--prompt", "aye --print hi"),
            ("aye --session auth hi", "--session", "aye --resume=auth hi"),
            ("aye --session -p hi", "--session", "aye --resume -p hi"),
            ("aye run --variant high hi", "--variant", "aye run --effort=high hi"),
            ("aye -p --allowedTools Read hi", "--allowedTools", "aye -p --allowed-tools=Read hi"),
            ("aye review --uncommitted --json", "--uncommitted", "aye review --json"),
            ("aye mcp add --transport http docs URL", "--transport", "aye mcp add --type http docs URL"),
            ("aye mcp add -t stdio docs -- npx", "-t", "aye mcp add docs -- npx"),
            ("aye mcp add docs -s user -- npx", "-s", "aye mcp add docs -- npx"),
            ("aye mcp add docs -e A=b -- npx", "-e", "aye mcp add docs --env=A=b -- npx"),
            ("aye auth ls", "ls", "aye auth status"),
        ] {
            assert_eq!(translate(&line(given), option), Some(Translation::Line(line(expected))), "{given}");
        }
    }

    #[test]
    fn options_without_an_equivalent_are_explained() {
        for (given, option, part) in [
            ("aye --yolo", "--yolo", "no option skips the policy"),
            ("aye --permission-mode bypassPermissions", "--permission-mode", "`--mode plan`"),
            ("aye --permission-mode", "--permission-mode", "`--mode plan`"),
            ("aye -a never", "-a", "`--mode plan`"),
            ("aye --disallowedTools Bash", "--disallowedTools", "tools.disabled"),
            ("aye --allow-tool Read", "--allow-tool", "policy"),
            ("aye -s read-only", "-s", "sandbox"),
            ("aye -s ses_123", "-s", "`-r ID`"),
            ("aye -i shot.png", "-i", "`@FILE`"),
            ("aye --session-id 0-1 hi", "--session-id", "`--resume ID`"),
            ("aye --thinking hi", "--thinking", "`--effort LEVEL`"),
            ("aye --debug api,mcp hi", "--debug", "`--verbose`"),
            ("aye mcp add -s project docs", "-s", "`.mcp.json`"),
            ("aye serve --port 80", "--port", "`aye serve --socket PATH`"),
            ("aye config get model", "get", "`aye config show`"),
        ] {
            let Some(Translation::Hint(hint)) = translate(&line(given), option) else { panic!("{given}") };
            assert!(hint.contains(part), "{given}: {hint}");
        }
        let text = ["aye", "-i", "explain this"].map(OsString::from);
        assert_eq!(translate(&text, "-i"), Some(Translation::Hint(WITH_PROMPT)));
        assert_eq!(translate(&line("aye --frobnicate"), "--frobnicate"), None);
        assert_eq!(translate(&line("aye -- --cd x"), "--cd"), None, "a word of the prompt");
    }

    #[test]
    fn a_setting_after_the_short_option_of_codex_is_recognized() {
        assert_eq!(find_override(&line("aye exec -c model=x hi")), Some("model=x"));
        assert_eq!(find_override(&line("aye -c model_providers.a.name=x")), Some("model_providers.a.name=x"));
        for other in ["aye -c", "aye -c hello", "aye -c why?a=b", "aye -c =", "aye -- -c a=b", "aye --set a=b -c"] {
            assert_eq!(find_override(&line(other)), None, "{other}");
        }
        let prompt = ["aye", "-c", "RUST_LOG=debug shows nothing, why?"].map(OsString::from);
        assert_eq!(find_override(&prompt), None, "a prompt");
    }

    #[test]
    fn options_of_other_agents_are_unique_unknown_to_aye_and_have_existing_equivalents() {
        let command = Cli::command();
        let own: Vec<String> = command.get_arguments().flat_map(names_of).collect();
        let mut seen = Vec::new();
        for (names, meaning) in OPTIONS {
            for name in *names {
                assert!(!seen.contains(name) && !own.iter().any(|own| own == name), "{name}");
                seen.push(name);
            }
            let counterparts = match meaning {
                Same(name) | WithValue(name) => vec![*name],
                Values(values, _) => values.iter().map(|(_, words)| words[0]).collect(),
                Instead(_) | ByValue(..) | Omitted => Vec::new(),
            };
            for name in counterparts {
                assert!(own.iter().any(|own| own == name), "{names:?}: {name}");
            }
        }
        assert!(seen.len() > 60, "{}", seen.len());
    }

    fn names_of(argument: &clap::Arg) -> Vec<String> {
        let long = argument.get_long().map(|long| format!("--{long}"));
        long.into_iter().chain(argument.get_short().map(|short| format!("-{short}"))).collect()
    }
}
