//! Slash commands: their names, aliases and completion.

use super::menu::{EnterAction, Item};
use crate::protocol::{CustomCommand, Effort, Mode};
use crate::text;

/// Commands and their descriptions, as shown in the help and the completion menu.
pub(crate) const COMMANDS: &[(&str, &str)] = &[
    ("/help", "show keys and commands"),
    ("/model", "change the model: pick from a list, or /model NAME"),
    ("/new", "start a new session; this one can be resumed"),
    ("/resume", "resume a session: pick from a list, or /resume ID"),
    ("/continue", "resume a paused or interrupted task"),
    ("/compact", "summarize the conversation to free context; /compact FOCUS"),
    ("/compact undo", "undo the last compaction"),
    ("/diff", "show changes since the session began"),
    ("/undo", "undo the last prompt; asks first"),
    ("/rewind", "rewind to before a prompt: conversation, files or both"),
    ("/review", "look for defects in uncommitted changes; --staged, --base X, --commit X"),
    ("/review stop", "stop the running review"),
    ("/findings", "list the findings of the last review; /findings fix 2"),
    ("/init", "have the model write AGENTS.md for this project"),
    ("/mode", "set the mode: plan, ask, auto-edit or auto"),
    ("/plan", "switch to plan mode: no changes; /plan GOAL plans a task"),
    ("/approve", "set what aye asks about: command or effects"),
    ("/status", "show session, model, policy, sandbox and file locations"),
    ("/cost", "show tokens and cost of the session and the task"),
    ("/context", "show what fills the context window"),
    ("/goal", "work until a command passes; /goal TEXT --until \"cargo test\""),
    ("/steps", "show the steps that the model planned for the task"),
    ("/steer", "send a message to the running task for its next step: /steer TEXT"),
    ("/queue", "list queued messages; /queue edit 2, /queue drop 2"),
    ("/policy", "show the policy in effect and its files"),
    ("/policy reload", "reload the policy files"),
    ("/policy grants", "list saved rules"),
    ("/policy undo", "remove the last saved rule"),
    ("/ran", "list the commands that ran without approval"),
    ("/mcp", "show MCP servers and their state; /mcp NAME, /mcp reconnect NAME"),
    ("/lsp", "show language servers and their state"),
    ("/copy", "copy the last response; /copy code, /copy 2 for the one before"),
    ("/export", "export the session: /export md, json, html or FILE"),
    ("/fork", "fork this session and continue in the copy"),
    ("/tree", "show the forks and rewinds of this session as a tree"),
    ("/rename", "rename this session: /rename TITLE"),
    ("/editor", "edit the draft in your editor"),
    ("/paste", "attach the image in the clipboard"),
    ("/effort", "set the reasoning effort: a supported level, or auto"),
    ("/budget", "show or set a budget; /budget 10, /budget 2M tokens, /budget price 3,15"),
    ("/ps", "list background sessions and commands"),
    ("/stop", "stop a background session or command: /stop s1"),
    ("/task", "start a task in a copy of the workspace: /task PROMPT"),
    ("/tasks", "list the tasks: open, stop, show and apply their changes"),
    ("/memory", "review proposals for your instructions: apply, edit or drop them"),
    ("/agents", "list agents; /agents 2 opens one, /agents stop 2 stops it"),
    ("/stats", "show usage and run time of each tool"),
    ("/artifacts", "list stored artifacts; /artifacts 2 opens one"),
    ("/redo", "undo the last rewind"),
    ("/theme", "change the colour theme: a name, or auto"),
    ("/vim", "turn Vim keys for the draft on or off"),
    ("/setup", "choose model, approvals and theme again"),
    ("/quit", "save and quit"),
];

const THEME: &str = "/theme ";
const EFFORT: &str = "/effort ";
const MODE: &str = "/mode ";
const APPROVE: &str = "/approve ";
const WITH_NAMES: [&str; 4] = [THEME, EFFORT, MODE, APPROVE];
/// Commands that require an argument.
const WANT_WORDS: [&str; 7] = ["/steer", "/task", "/rename", "/theme", "/effort", "/mode", "/approve"];
/// Keys that have the same effect as a command.
pub(crate) const KEYS: &[(&str, &str)] = &[
    ("/help", "? f1"),
    ("/model", "ctrl+l"),
    ("/editor", "ctrl+g"),
    ("/paste", "ctrl+v"),
    ("/rewind", "esc esc"),
    ("/quit", "ctrl+d"),
    ("/steer", "ctrl+enter"),
];
/// Aliases known from other tools, each with the command that it runs.
const ALIASES: &[(&str, &str)] = &[
    ("clear", "new"),
    ("reset", "new"),
    ("sessions", "resume"),
    ("branch", "fork"),
    ("permissions", "policy"),
    ("approvals", "policy"),
    ("keys", "help"),
    ("keymap", "help"),
    ("keybindings", "help"),
    ("edit", "editor"),
    ("exit", "quit"),
    ("q", "quit"),
    ("changes", "diff"),
    ("bashes", "ps"),
    ("models", "model"),
    ("auth", "setup"),
    ("login", "setup"),
    ("summarize", "compact"),
    ("compress", "compact"),
    ("usage", "cost"),
    ("config", "status"),
    ("settings", "status"),
    ("image", "paste"),
    ("branches", "tree"),
    ("agent", "agents"),
    ("subagents", "agents"),
    ("memories", "memory"),
    ("checkpoint", "rewind"),
    ("restore", "rewind"),
    ("about", "status"),
    ("list-agents", "agents"),
    ("policies", "policy"),
    ("shells", "ps"),
    ("themes", "theme"),
    ("todo", "steps"),
    ("todos", "steps"),
];
/// Commands of other agents, each with a description of what to use in aye instead.
const ELSEWHERE: &[(&[&str], &str)] = &[
    (&["add-dir", "dir", "directory", "sandbox-add-read-dir"], "use `aye --add-dir DIR` to add a directory at startup"),
    (&["advisor"], "use an agent with another model: docs/SUBAGENTS.md shows how"),
    (&["apps", "connectors"], "use /mcp; `aye mcp add` adds a server"),
    (&["archive", "delete"], "use `aye sessions archive ID` or `aye sessions delete ID`"),
    (
        &["auto-mode-setup", "autoreview", "fewer-permission-prompts", "less-permission-prompts"],
        "`a` in an approval saves a rule; /policy shows the rules",
    ),
    (&["autocompact"], "use `[context] compact_at_percent` in config.toml, or /compact now"),
    (&["autofix-pr", "background", "batch", "bg", "subtask"], "use /task PROMPT to run a task in a copy of the workspace"),
    (&["btw", "side"], "use /fork to ask without changing this conversation"),
    (&["cd", "cwd"], "run `aye -C DIR` to work in another directory"),
    (&["chat", "save"], "sessions are saved: /resume lists them, /rename names this one"),
    (&["claude-api"], "ask for it in a prompt; docs/MODELS.md describes the providers of aye"),
    (&["clean"], "use /ps to list background commands, and /stop ID to stop one"),
    (&["collab"], "use /mode or /plan"),
    (&["color", "scroll-speed", "tui"], "use /theme; docs/SCREEN.md describes the screen and its settings"),
    (&["commands"], "type / to list all commands; docs/COMMANDS.md shows how to add your own"),
    (&["bug", "feedback", "report"], "aye sends no reports; run `aye doctor` and open an issue"),
    (&["connect", "provider", "providers"], "use /setup, or `aye auth login PROVIDER` to save an API key"),
    (&["details", "thinking", "verbose", "focus"], "press ctrl+o to fold or unfold outputs"),
    (&["docs"], "/help lists keys and commands; the manual is in docs/README.md"),
    (&["experimental", "debug-config"], "use `aye config show` for the settings in effect"),
    (&["doctor", "debug", "checkup"], "use `aye doctor` to check the installation"),
    (&["fast"], "use /model for a faster model, or /effort low"),
    (&["import"], "run `aye import claude`, `codex`, `gemini` or `opencode` in a shell"),
    (&["insights", "team-onboarding"], "use /stats for tools, `aye usage` for tokens and cost"),
    (&["install-github-app", "install-slack-app", "setup-github", "web-setup"], "docs/SCRIPTS.md shows how to run aye in CI"),
    (&["loop", "proactive"], "use /goal TEXT --until COMMAND to work until a command passes"),
    (&["heapdump"], "aye has no such report; `aye doctor` checks the installation"),
    (&["hooks"], "run `aye hooks list` to list the hooks; docs/HOOKS.md explains them"),
    (&["ide"], "use `aye acp` in an editor that supports the Agent Client Protocol"),
    (&["logout", "signout"], "use `aye auth logout PROVIDER` to delete a key"),
    (&["output-style", "personality", "rules"], "put permanent instructions in AGENTS.md; /init writes one"),
    (&["mention", "add", "attach"], "type `@` and a file name to attach a file"),
    (
        &["desktop", "mobile", "ios", "android", "app", "chrome", "remote-env"],
        "aye runs in the terminal and in editors: `aye acp`",
    ),
    (
        &["passes", "usage-credits", "rate-limits", "extra-usage"],
        "aye has no plan: /cost shows tokens and cost, /budget limits them",
    ),
    (&["plugin", "plugins", "extensions", "reload-plugins"], "run `aye plugin list` in a shell to list the plugins"),
    (&["powerup", "tutorial"], "run `aye demo` in a shell, or read docs/TOUR.md"),
    (&["privacy", "privacy-settings", "telemetry"], "aye sends no telemetry unless `services.telemetry.url` is set"),
    (&["realtime", "voice"], "aye has no voice input"),
    (&["raw"], "run `aye --plain` for plain lines; /copy copies a response"),
    (&["recap"], "use /compact to summarize the conversation, /diff for its changes"),
    (&["release-notes", "changelog"], "see CHANGELOG.md; `aye --version` prints the version"),
    (&["reload-skills"], "use /policy reload, which also reads changed skills and agents"),
    (&["rollout", "logs"], "/status shows the files of the session; /export writes a copy"),
    (&["run", "simplify", "verify"], "ask for it in a prompt, or write a skill for it: docs/SKILLS.md"),
    (&["sandbox", "yolo", "setup-default-sandbox"], "/status shows the sandbox, /mode sets what runs without asking"),
    (&["security-review", "code-review", "ultrareview", "pr-comments"], "use /review, for example /review --commit HEAD"),
    (&["schedule", "routines"], "run `aye exec PROMPT` from cron or CI: docs/SCRIPTS.md"),
    (&["setup-bedrock", "setup-vertex"], "set `[providers]` in config.toml: docs/MODELS.md shows the clouds"),
    (&["share", "rc", "remote-control", "teleport", "unshare"], "aye runs on this machine only; /export writes a file"),
    (&["skills", "skill"], "type a skill's name as a command; `aye skills list` lists them"),
    (&["shortcuts"], "use /help, which lists keys and commands"),
    (&["statusline", "footer", "title"], "set the items of the status row in `[status]` in config.toml"),
    (&["mcps"], "use /mcp, which lists the MCP servers and their state"),
    (&["timeline"], "use /tree to show forks and rewinds, /rewind to undo to an earlier prompt"),
    (&["variants"], "use /effort to set the reasoning effort, /model for another model"),
    (&["terminal-setup"], "not needed: aye detects what the terminal supports"),
    (&["tools", "allowed-tools"], "use `aye tool list` to list the tools, /policy for what may run"),
    (&["ultraplan"], "use /plan GOAL"),
    (&["update", "upgrade"], "run `aye update` in a shell: it shows the commands that update aye"),
    (&["workflow", "workflows", "deep-research"], "use /task for each part, or agents: docs/SUBAGENTS.md"),
    (&["worktree"], "run `aye task start -w PROMPT` to start a task in a worktree"),
];
/// Commands whose argument may span several lines.
const TAKE_TEXT: [&str; 7] = ["steer", "task", "plan", "goal", "compact", "summarize", "compress"];

/// Returns the command in a draft, without its slash. A path is not a command, nor is text with several lines unless
/// the command accepts it.
pub(crate) fn typed_command(draft: &str) -> Option<&str> {
    let typed = draft.trim().strip_prefix('/')?;
    let word = typed.split_whitespace().next().unwrap_or_default();
    let is_text = typed.contains('\n') && !TAKE_TEXT.contains(&word);
    (!word.contains('/') && !is_text).then_some(typed)
}

/// Returns the completions for the command in a draft, best first. `used` contains recently used commands. `themes` and
/// `efforts` provide the arguments of `/theme` and `/effort`.
pub(crate) fn candidates(
    draft: &str,
    own: &[CustomCommand],
    used: &[String],
    themes: &dyn Fn() -> Vec<String>,
    efforts: &[Effort],
) -> Vec<Item> {
    let item = |text: String, words: &str, then: EnterAction| {
        let name = text::reveal(&text).into_owned();
        let words = text::reveal_line(words);
        Item { text, name, words, tokens: None, then }
    };
    for command in WITH_NAMES {
        if let Some(start) = draft.strip_prefix(command) {
            let names = if command == THEME { themes() } else { arguments(command, efforts) };
            let names = names.into_iter().filter(|name| name.starts_with(start));
            return names.map(|name| item(format!("{command}{name}"), "", EnterAction::Run)).collect();
        }
    }
    let then = |name: &str| if needs_argument(name, own) { EnterAction::Complete } else { EnterAction::Run };
    let built_in = COMMANDS.iter().map(|(name, words)| item((*name).to_owned(), words, then(name)));
    let own_ones = own.iter().map(|command| {
        let name = format!("/{}", command.name);
        let hint = command.argument_hint.as_ref().map(|hint| format!("{hint}  ")).unwrap_or_default();
        let then = then(&name);
        item(name, &format!("{hint}{}", command.description), then)
    });
    let all: Vec<Item> = built_in.chain(own_ones).collect();
    let alias = |(alias, name): &(&str, &str)| {
        let (alias, name) = (format!("/{alias}"), format!("/{name}"));
        let words = all.iter().find(|item| item.text == name).map(|item| format!("{name}: {}", item.words)).unwrap_or_default();
        let then = then(&name);
        // Completing an alias that only extends the command's name, such as a plural, would be ambiguous.
        let is_needed = !alias.starts_with(&name) || draft.len() > name.len();
        (alias.starts_with(draft) && draft.len() > 1 && is_needed).then(|| item(alias, &words, then))
    };
    let (begin, others): (Vec<Item>, Vec<Item>) = all.iter().cloned().partition(|item| item.text.starts_with(draft));
    let mut found: Vec<Item> = begin;
    found.extend(ALIASES.iter().filter_map(alias));
    // An exact match comes first, even if longer commands begin with it. Recently used commands follow.
    let last = |item: &Item| used.iter().position(|name| *name == item.text).unwrap_or(usize::MAX);
    found.sort_by_key(|item| (item.text != draft, last(item)));
    let letters = draft.strip_prefix('/').unwrap_or(draft);
    // Enter on a complete command of another agent explains the command, instead of running one with similar letters.
    if !letters.contains(char::is_whitespace) && find_elsewhere(letters).is_some() {
        // These are commands of plugins and servers, such as `/server:import`.
        found.extend(others.into_iter().filter(|item| item.text[1..].split(':').any(|part| part == letters)));
    } else if !letters.contains(char::is_whitespace) {
        let mut fuzzy = text::Fuzzy::for_words(letters);
        // The first letter must match, so that a typo does not match parts of other names.
        let begins = |name: &str| name.split(':').any(|part| part.chars().next() == letters.chars().next());
        let alike = others.into_iter().filter(|item| !item.text.contains(' ') && begins(&item.text[1..]));
        let mut near: Vec<(u32, Item)> = alike.filter_map(|item| Some((fuzzy.score(&item.text[1..])?, item))).collect();
        near.sort_by_key(|(score, item)| (std::cmp::Reverse(*score), item.text.len()));
        found.extend(near.into_iter().map(|(_, item)| item));
    }
    found
}

/// Returns the valid arguments of a command whose arguments are fixed.
fn arguments(command: &str, efforts: &[Effort]) -> Vec<String> {
    let names: Vec<&str> = match command {
        EFFORT => efforts.iter().map(|effort| effort.as_str()).chain(["auto"]).collect(),
        APPROVE => vec!["command", "effects"],
        _ => Mode::ALL.map(Mode::as_str).to_vec(),
    };
    names.into_iter().map(str::to_owned).collect()
}

/// Returns whether the first word of the draft is the complete name of a command.
pub(crate) fn is_command(draft: &str, own: &[CustomCommand]) -> bool {
    let word = typed_command(draft).and_then(|typed| typed.split_whitespace().next()).unwrap_or_default();
    is_built_in(word) || own.iter().any(|command| command.is_named(word))
}

/// Returns whether a name is that of a built-in command or one of its aliases.
pub(crate) fn is_built_in(name: &str) -> bool {
    let first = |entry: &str| entry[1..].split(' ').next().is_some_and(|word| word == name);
    COMMANDS.iter().any(|(entry, _)| first(entry)) || ALIASES.iter().any(|(alias, _)| *alias == name)
}

/// Returns whether a command requires an argument.
pub(crate) fn needs_argument(name: &str, own: &[CustomCommand]) -> bool {
    let is_own = |command: &&CustomCommand| name.strip_prefix('/') == Some(command.name.as_str());
    WANT_WORDS.contains(&name) || own.iter().find(is_own).is_some_and(CustomCommand::needs_arguments)
}

/// Returns the name under which a command as typed is listed, such as `/policy undo`, or `/model` for `/model x`.
pub(crate) fn whole_name(typed: &str, own: &[CustomCommand]) -> String {
    let typed = typed.trim();
    let word = typed.split_whitespace().next().unwrap_or_default();
    let is_entry = |name: &str| COMMANDS.iter().any(|(entry, _)| *entry == name);
    if is_entry(typed) || own.iter().any(|command| format!("/{}", command.name) == word) {
        return if is_entry(typed) { typed } else { word }.to_owned();
    }
    let alias = ALIASES.iter().find(|(alias, _)| Some(*alias) == word.strip_prefix('/'));
    alias.map_or_else(|| word.to_owned(), |(_, name)| format!("/{name}"))
}

/// Returns the command that an alias runs, or the word itself if it is not an alias.
pub(crate) fn resolve_alias(word: &str) -> &str {
    ALIASES.iter().find(|(alias, _)| *alias == word).map_or(word, |(_, name)| name)
}

/// Returns what to use instead of a command of another agent, if the word is such a command.
fn find_elsewhere(word: &str) -> Option<&'static str> {
    ELSEWHERE.iter().find(|(names, _)| names.contains(&word)).map(|(_, here)| *here)
}

/// Returns the error message for an unknown command, or for a command that takes no arguments but was given some.
pub(crate) fn unknown_command(own: &[CustomCommand], word: &str, typed: &str) -> String {
    let shown = text::clean_line(typed);
    let shown = text::truncate(&shown, 24);
    if is_built_in(word) {
        return format!("`/{word}` takes no arguments, and `/{shown}` is not a command");
    }
    if let Some(here) = find_elsewhere(word) {
        return format!("unknown command `/{shown}`: {here}");
    }
    let own = own.iter().map(|command| command.name.as_str());
    let built_in = COMMANDS.iter().map(|(name, _)| name[1..].split(' ').next().unwrap_or_default());
    let known = built_in.chain(ALIASES.iter().map(|(alias, _)| *alias)).chain(own);
    // If two names have the same distance, the one with the same length is suggested, because users swap letters more
    // often than they drop them.
    let near = known.map(|name| (strsim::damerau_levenshtein(name, word), name.len().abs_diff(word.len()), name)).min();
    match near.filter(|(far, ..)| *far <= word.chars().count() / 3) {
        Some((.., name)) => format!("unknown command `/{shown}`; did you mean `/{}`? /help lists all", text::reveal(name)),
        None => format!("unknown command `/{shown}`; /help lists all"),
    }
}

#[cfg(test)]
mod tests {
    use super::{ALIASES, CustomCommand, ELSEWHERE, candidates, is_built_in, unknown_command};

    #[test]
    fn commands_of_other_agents_are_unique_and_not_commands_or_aliases_of_aye() {
        let mut seen = Vec::new();
        for name in ELSEWHERE.iter().flat_map(|(names, _)| names.iter()) {
            assert!(!seen.contains(name) && !is_built_in(name), "{name}");
            assert!(ALIASES.iter().all(|(alias, _)| alias != name), "{name}");
            seen.push(name);
        }
    }

    #[test]
    fn commands_of_other_agents_are_explained() {
        for (word, part) in [
            ("shortcuts", "/help"),
            ("extra-usage", "/cost"),
            ("less-permission-prompts", "/policy"),
            ("mcps", "/mcp"),
            ("variants", "/effort"),
            ("timeline", "/tree"),
            ("claude-api", "docs/MODELS.md"),
            ("heapdump", "`aye doctor`"),
        ] {
            let message = unknown_command(&[], word, word);
            assert!(message.starts_with(&format!("unknown command `/{word}`: ")) && message.contains(part), "{message}");
        }
    }

    #[test]
    fn a_command_of_another_agent_does_not_match_similar_commands() {
        let found = |draft: &str| -> Vec<String> {
            candidates(draft, &[], &[], &Vec::new, &[]).into_iter().map(|item| item.text).collect()
        };
        assert!(found("/bu").contains(&"/budget".to_owned()));
        for foreign in ["/bug", "/plugin", "/loop", "/rc"] {
            assert_eq!(found(foreign), [""; 0], "{foreign}");
        }
        let own = CustomCommand::parse("server:plugin".to_owned(), "server".to_owned(), "Do it").0;
        let found_own: Vec<String> =
            candidates("/plugin", &[own], &[], &Vec::new, &[]).into_iter().map(|item| item.text).collect();
        assert_eq!(found_own, ["/server:plugin"], "a command of a server with exactly this name");
        assert_eq!(found("/app").first().map(String::as_str), Some("/approve"), "an abbreviation of a command of aye");
    }
}
