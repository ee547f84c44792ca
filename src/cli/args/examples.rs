//! Examples of each command, shown by `--help` and in the manual pages.

/// An example's description and command line.
pub(super) type Example = (&'static str, &'static str);

/// Examples by command, in the order of `aye --help`. A command is identified by the words after `aye`.
const EXAMPLES: &[(&str, &[Example])] = &[
    (
        "",
        &[
            ("Start a session in this directory", "aye"),
            ("Start a session with a prompt", "aye \"explain how this project is built\""),
            ("Continue the latest session", "aye -c"),
            ("Run one task and exit", "aye -p \"fix the failing test\""),
            ("Use a profile from config.toml", "aye --profile fast"),
        ],
    ),
    (
        "exec",
        &[
            ("Run one task and print the response", "aye exec \"summarize the last commit\""),
            ("Attach a file to the prompt", "aye exec \"why does the build fail?\" < build.log"),
            (
                "Let the model edit files, for at most 2 US dollars",
                "aye exec --mode auto-edit --max-budget-usd 2 \"fix the typos\"",
            ),
            (
                "Offer the model only read-only tools",
                "aye exec --allowed-tools ReadFile,Grep,Glob \"where is the config parsed?\"",
            ),
            (
                "Continue until the tests pass, for at most 30 minutes",
                "aye exec --mode auto-edit --until \"cargo test\" --for 30m \"fix the failing tests\"",
            ),
            ("Do not save the session", "aye exec --ephemeral \"summarize the last commit\""),
            ("Write the changes to a patch file", "aye exec --patch changes.patch \"fix the failing test\""),
            ("Run one of your slash commands", "aye exec \"/fix 12\""),
            ("Print JSON that matches a schema", "aye exec --output-schema schema.json \"list the TODO comments\""),
            ("Continue the latest session and print events as JSON", "aye exec -c --json \"now add a test\""),
        ],
    ),
    (
        "resume",
        &[
            ("Choose a session from a list", "aye resume"),
            ("Resume the latest session of this project", "aye resume --last"),
            ("Resume a session with a prompt", "aye resume 7f3a01 \"now add a test\""),
        ],
    ),
    (
        "serve",
        &[
            ("Serve on stdin and stdout", "aye serve --stdio"),
            ("Serve on a Unix socket", "aye serve --socket \"$XDG_RUNTIME_DIR/aye.sock\""),
        ],
    ),
    ("demo", &[("Answer the approval prompts yourself", "aye demo"), ("Approve everything", "aye demo --yes")]),
    (
        "tool",
        &[("List the tools", "aye tool list"), ("Call a tool", "aye tool call ReadFile --args '{\"path\": \"README.md\"}'")],
    ),
    ("tool list", &[("List the tools", "aye tool list"), ("List the tools as JSON", "aye tool list --json")]),
    (
        "tool schema",
        &[
            ("Print the definition of a tool", "aye tool schema ReadFile"),
            ("Save the JSON Schema of custom tool manifests", "aye tool schema --manifest > manifest.schema.json"),
        ],
    ),
    (
        "tool call",
        &[
            ("Call a tool", "aye tool call ReadFile --args '{\"path\": \"README.md\"}'"),
            ("Show what a call would do", "aye tool call WriteFile --args @arguments.json --plan"),
            ("Read the arguments from stdin", "aye tool call Grep --args - --json < arguments.json"),
        ],
    ),
    ("hooks", &[("List the hooks", "aye hooks list"), ("Pin your own hooks after a change", "aye hooks pin")]),
    ("hooks list", &[("List the hooks", "aye hooks list"), ("List the hooks as JSON", "aye hooks list --json")]),
    (
        "hooks test",
        &[
            ("Test the hooks before a command", "aye hooks test PreToolUse --args '{\"command\": \"rm -r build\"}'"),
            (
                "Test the hooks before an edit",
                "aye hooks test PreToolUse --tool Write --args '{\"path\": \".env\", \"content\": \"x\"}'",
            ),
        ],
    ),
    ("hooks pin", &[("Pin your own hooks", "aye hooks pin")]),
    ("agents", &[("List the agents", "aye agents list"), ("Check agents for errors", "aye agents check")]),
    ("agents list", &[("List the agents", "aye agents list"), ("List the agents as JSON", "aye agents list --json")]),
    ("agents show", &[("Show an agent and its instructions", "aye agents show explore")]),
    (
        "agents check",
        &[
            ("Check the agents of this project and your own", "aye agents check"),
            ("Check one agent", "aye agents check .claude/agents/reviewer.md"),
        ],
    ),
    ("skills", &[("List the skills", "aye skills list"), ("Check skills for errors", "aye skills check")]),
    ("skills list", &[("List the skills", "aye skills list"), ("List the skills as JSON", "aye skills list --json")]),
    ("skills show", &[("Show a skill and its files", "aye skills show pdf")]),
    (
        "skills check",
        &[
            ("Check the skills of this project and your own", "aye skills check"),
            ("Check one skill", "aye skills check .claude/skills/pdf"),
        ],
    ),
    (
        "policy",
        &[
            ("Explain the verdict for a command", "aye policy explain -- git push"),
            ("Show the policy in effect", "aye policy show"),
            ("Write a starter policy", "aye policy init --preset strict"),
        ],
    ),
    (
        "policy explain",
        &[
            ("Explain the verdict for a program and its arguments", "aye policy explain -- git push"),
            ("Explain the verdict for a shell line", "aye policy explain -- 'git status && rm -rf build'"),
            ("Explain the verdict for a tool call", "aye policy explain --tool ReadFile --args '{\"path\": \".env\"}'"),
        ],
    ),
    (
        "policy show",
        &[
            ("Show the policy in effect", "aye policy show"),
            ("Show the policy with another file instead of your own", "aye policy show --policy strict.toml --toml"),
        ],
    ),
    (
        "policy test",
        &[
            ("Run the tests of the policy in effect", "aye policy test"),
            ("Run the tests of one file", "aye policy test .aye/policy.toml"),
        ],
    ),
    (
        "policy validate",
        &[
            ("Validate the policy in effect", "aye policy validate"),
            ("Validate one file and print JSON", "aye policy validate .aye/policy.toml --json"),
        ],
    ),
    ("policy pull", &[("Load your organisation's policy", "aye policy pull")]),
    (
        "policy init",
        &[
            ("Write your own policy", "aye policy init --preset relaxed"),
            ("Print a policy without writing it", "aye policy init --preset strict --stdout"),
            ("Write a policy for this project", "aye policy init --project"),
        ],
    ),
    (
        "policy grants",
        &[
            ("List the saved rules", "aye policy grants list"),
            ("Revoke the rules that have expired", "aye policy grants revoke --expired"),
        ],
    ),
    (
        "policy grants list",
        &[("List the saved rules", "aye policy grants list"), ("List the saved rules as JSON", "aye policy grants list --json")],
    ),
    (
        "policy grants revoke",
        &[
            ("Revoke one rule", "aye policy grants revoke mine-here:14"),
            ("Revoke all rules that apply in this project", "aye policy grants revoke --all"),
        ],
    ),
    (
        "policy log",
        &[
            ("Show the latest 10 decisions", "aye policy log -n 10"),
            ("Show the denials of one session as JSON", "aye policy log --denied --session 7f3a9c --json"),
        ],
    ),
    ("policy schema", &[("Save the schema for your editor", "aye policy schema > policy.schema.json")]),
    ("policy check", &[("Evaluate the tool calls in a file", "aye policy check --jsonl < calls.jsonl")]),
    (
        "policy redact",
        &[
            ("Redact the secrets in a file", "aye policy redact < .env"),
            ("Redact the text in a JSON Lines file", "aye policy redact --jsonl < texts.jsonl"),
        ],
    ),
    (
        "sessions",
        &[
            ("List the sessions of this project", "aye sessions list"),
            ("Search the sessions of this project", "aye sessions search \"rate limit\""),
            ("Export a session as Markdown", "aye sessions export 7f3a9c --format md -o session.md"),
        ],
    ),
    (
        "sessions list",
        &[
            ("List the sessions of this project", "aye sessions list"),
            ("List the sessions of all projects as JSON", "aye sessions list --all --json"),
            ("List the archived sessions", "aye sessions list --archived"),
        ],
    ),
    (
        "sessions show",
        &[
            ("Print a conversation", "aye sessions show 7f3a9c"),
            ("Print the events of a session", "aye sessions show 7f3a9c --json"),
        ],
    ),
    (
        "sessions search",
        &[
            ("Search for text", "aye sessions search \"rate limit\""),
            ("Search all projects for a regular expression", "aye sessions search '/time.?out/' --all"),
        ],
    ),
    (
        "sessions push",
        &[
            ("Push the sessions of this project to the object store", "aye sessions push"),
            ("Push a session that another machine continued", "aye sessions push 7f3a9c --take-over"),
        ],
    ),
    (
        "sessions pull",
        &[
            ("List the sessions in the object store", "aye sessions pull"),
            ("Continue a session on this machine", "aye sessions pull 7f3a9c"),
        ],
    ),
    (
        "sessions export",
        &[
            ("Export a session with its artifacts", "aye sessions export 7f3a9c --with-artifacts -o session.json"),
            ("Export a session as an HTML page", "aye sessions export 7f3a9c --format html -o session.html"),
        ],
    ),
    (
        "sessions import",
        &[
            ("Import a session from a file", "aye sessions import session.json"),
            ("Import a session from stdin", "aye sessions import - < session.json"),
        ],
    ),
    ("sessions fork", &[("Fork a session", "aye sessions fork 7f3a9c")]),
    ("sessions rename", &[("Rename a session", "aye sessions rename 7f3a9c \"Parser rewrite\"")]),
    ("sessions archive", &[("Archive a session", "aye sessions archive 7f3a9c")]),
    ("sessions unarchive", &[("Unarchive a session", "aye sessions unarchive 7f3a9c")]),
    ("sessions delete", &[("Delete a session", "aye sessions delete 7f3a9c")]),
    (
        "sessions prune",
        &[
            ("Show what would be deleted", "aye sessions prune --dry-run"),
            ("Delete sessions of this project not used for 30 days", "aye sessions prune --older-than 30"),
        ],
    ),
    (
        "usage",
        &[
            ("Show what each model cost in the last 30 days", "aye usage"),
            ("Show what each day of the last week cost", "aye usage --since 7d --by day"),
            ("Print this project's usage as JSON", "aye usage --since all --project --json"),
        ],
    ),
    (
        "review",
        &[("Review the uncommitted changes", "aye review"), ("Review a branch, for a script", "aye review --base main --json")],
    ),
    (
        "apply",
        &[
            ("Show what a patch file would change", "aye apply --check changes.patch"),
            ("Apply a patch file", "aye apply changes.patch"),
        ],
    ),
    (
        "task",
        &[
            ("Start a task in a copy of the workspace", "aye task start --detach \"fix the failing test\""),
            ("Show its changes", "aye task diff 7f3a01"),
            ("Apply its changes to the workspace", "aye task keep 7f3a01"),
        ],
    ),
    (
        "task start",
        &[
            ("Start a task in the background", "aye task start --detach \"fix the failing test\""),
            ("Run the tests when the model has finished", "aye task start --check \"cargo test\" \"fix the failing test\""),
            ("Let the task commit, on a new branch", "aye task start -w \"fix the failing test and commit\""),
            (
                "Let the model edit files, for at most 2 US dollars",
                "aye task start --mode auto-edit --max-budget-usd 2 \"fix the typos\"",
            ),
        ],
    ),
    ("task open", &[("Open a task and answer its approval prompts", "aye task open 7f3a01")]),
    (
        "task resume",
        &[
            ("Continue a stopped task in the background", "aye task resume --detach 7f3a01"),
            ("Continue a task that is done", "aye task resume 7f3a01 \"now add a test\""),
        ],
    ),
    ("task stop", &[("Stop a running task", "aye task stop 7f3a01")]),
    (
        "task diff",
        &[
            ("Show a task's changes", "aye task diff 7f3a01"),
            ("Show the changes to one file", "aye task diff 7f3a01 src/main.rs"),
        ],
    ),
    (
        "task keep",
        &[
            ("Apply all of a task's changes", "aye task keep 7f3a01"),
            ("Apply the changes in one directory", "aye task keep 7f3a01 src"),
            ("Choose the files and hunks to apply", "aye task keep -p 7f3a01"),
            ("Apply all files except one", "aye task keep 7f3a01 --except Cargo.lock"),
        ],
    ),
    ("task drop", &[("Delete a task with changes that are not applied", "aye task drop --force 7f3a01")]),
    ("tasks", &[("List the tasks of this project", "aye tasks"), ("List the tasks of all projects", "aye tasks --all")]),
    ("memory", &[("List the proposals for instruction files", "aye memory list")]),
    ("memory list", &[("List the proposals for instruction files", "aye memory list")]),
    ("memory show", &[("Show the diff of a proposal", "aye memory show 7f3a01")]),
    (
        "memory apply",
        &[
            ("Show the diff of a proposal, and apply it", "aye memory apply 7f3a01"),
            ("Apply a proposal in a script", "aye memory apply --yes 7f3a01"),
        ],
    ),
    ("memory edit", &[("Apply a proposal to all projects instead", "aye memory edit 7f3a01 --target global")]),
    ("memory drop", &[("Drop a proposal permanently", "aye memory drop 7f3a01")]),
    ("memory add", &[("Propose an instruction yourself", "aye memory add \"Run tests with cargo nextest\"")]),
    ("memory undo", &[("Undo an applied proposal", "aye memory undo 7f3a01")]),
    (
        "rewind",
        &[
            ("Show what rewinding the last prompt would do", "aye rewind --plan"),
            ("Restore the files from before the third prompt", "aye rewind --to 3 --files"),
            ("Undo the last rewind", "aye rewind --redo"),
        ],
    ),
    ("auth", &[("Save an API key", "aye auth login anthropic"), ("Show where the keys come from", "aye auth status")]),
    (
        "auth login",
        &[
            ("Type the key in the terminal", "aye auth login anthropic"),
            ("Read the key from a file", "aye auth login openai --key-stdin < key.txt"),
        ],
    ),
    ("auth logout", &[("Delete one key", "aye auth logout openai"), ("Delete all keys", "aye auth logout --all")]),
    (
        "auth status",
        &[
            ("Show where the keys come from", "aye auth status"),
            ("Check that the providers accept the keys", "aye auth status --check"),
        ],
    ),
    (
        "mcp",
        &[
            ("Add a server by its address", "aye mcp add docs https://docs.example.org/mcp"),
            ("Show a server's tools", "aye mcp test docs"),
        ],
    ),
    ("mcp list", &[("List the servers", "aye mcp list"), ("List the servers as JSON", "aye mcp list --json")]),
    (
        "mcp add",
        &[
            ("Add a server by its address", "aye mcp add docs https://docs.example.org/mcp"),
            (
                "Send a token from an environment variable",
                "aye mcp add docs https://docs.example.org/mcp --bearer-token-env DOCS_TOKEN",
            ),
            ("Add a program", "aye mcp add files --network -- npx -y @modelcontextprotocol/server-filesystem ."),
        ],
    ),
    ("mcp remove", &[("Remove a server", "aye mcp remove docs")]),
    (
        "mcp login",
        &[("Sign in", "aye mcp login docs"), ("Sign in from a machine without a browser", "aye mcp login docs --no-browser")],
    ),
    ("mcp logout", &[("Delete a server's tokens", "aye mcp logout docs")]),
    ("mcp test", &[("Show a server's tools", "aye mcp test docs"), ("Show the tools as JSON", "aye mcp test docs --json")]),
    ("mcp allow", &[("Allow a server's tools; each call needs approval", "aye mcp allow docs")]),
    (
        "mcp serve",
        &[
            ("Deny calls that need approval", "aye mcp serve"),
            ("Let the client's user approve calls", "aye mcp serve --ask client"),
        ],
    ),
    (
        "plugin",
        &[("Show the contents of a plugin, and add it", "aye plugin add ./team-tools"), ("List the plugins", "aye plugin list")],
    ),
    (
        "plugin add",
        &[
            ("Add a plugin after confirming the plan", "aye plugin add ./team-tools"),
            ("Add a plugin in a script", "aye plugin add ./team-tools --yes"),
        ],
    ),
    ("plugin list", &[("List the plugins", "aye plugin list"), ("List the plugins as JSON", "aye plugin list --json")]),
    ("plugin show", &[("Show the contents of a plugin", "aye plugin show team-tools")]),
    ("plugin check", &[("Check a plugin before you publish it", "aye plugin check ./team-tools")]),
    ("plugin update", &[("Show what changed in its source, and update", "aye plugin update team-tools")]),
    ("plugin remove", &[("Remove a plugin", "aye plugin remove team-tools")]),
    ("plugin enable", &[("Enable a disabled plugin", "aye plugin enable team-tools")]),
    ("plugin disable", &[("Disable a plugin", "aye plugin disable team-tools")]),
    (
        "import",
        &[
            ("Show what would be imported from Claude Code", "aye import claude --plan"),
            ("Import settings from Codex after confirming the plan", "aye import codex"),
        ],
    ),
    (
        "models",
        &[
            ("List the models that aye knows", "aye models"),
            ("Query the providers for models with this text in their name", "aye models --ask claude"),
        ],
    ),
    (
        "models update",
        &[
            ("Show what the public models.dev list would change", "aye models update https://models.dev/api.json --check"),
            ("Apply your own list after an approval prompt", "aye models update ./models.toml"),
        ],
    ),
    (
        "config",
        &[("Print the file locations", "aye config path"), ("Print the settings and where each was set", "aye config show")],
    ),
    ("config path", &[("Print the file locations", "aye config path")]),
    (
        "config show",
        &[
            ("Print the settings", "aye config show"),
            ("Print the settings with one key overridden", "aye config show --set ui.ascii=true"),
        ],
    ),
    ("config keys", &[("Print all keys", "aye config keys")]),
    ("config schema", &[("Save the schema for your editor", "aye config schema > config.schema.json")]),
    (
        "sync",
        &[
            ("Deliver waiting records, for example at the end of a job", "aye sync"),
            ("Delete the records of a service that you no longer use", "aye sync --drop telemetry"),
        ],
    ),
    ("doctor", &[("Check the installation", "aye doctor"), ("Check the installation in a script", "aye doctor --json")]),
    ("update", &[("Show the commands that update aye", "aye update"), ("Check for a newer version", "aye update --check")]),
    ("acp", &[("Set this as the agent command in your editor", "aye acp")]),
    (
        "setup",
        &[
            ("Choose the model and the policy", "aye setup"),
            ("Set the model and the policy without prompts", "aye setup --yes --policy strict -m anthropic/claude-sonnet-5"),
        ],
    ),
    (
        "completions",
        &[
            ("Install completions for bash", "aye completions bash > ~/.local/share/bash-completion/completions/aye"),
            ("Install completions for fish", "aye completions fish > ~/.config/fish/completions/aye.fish"),
        ],
    ),
    ("man", &[("Read the manual page", "aye man | man -l -"), ("Install all pages", "aye man --dir ~/.local/share/man/man1")]),
];

/// Returns the examples of the command identified by these words after `aye`.
pub(super) fn examples(path: &str) -> &'static [Example] {
    EXAMPLES.iter().find(|(known, _)| *known == path).map_or(&[], |(_, examples)| examples)
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::EXAMPLES;
    use crate::host::nesting::Nesting;
    use std::ffi::OsString;

    /// Splits a command line at spaces outside quotes, up to the first pipe or redirection.
    fn split_words(line: &str) -> Vec<OsString> {
        let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
        for letter in line.chars() {
            match (quote, letter) {
                (None, '|' | '<' | '>') => break,
                (None, '\'' | '"') => quote = Some(letter),
                (Some(open), _) if open == letter => quote = None,
                (None, ' ') => {
                    if !word.is_empty() {
                        words.push(std::mem::take(&mut word).into());
                    }
                }
                _ => word.push(letter),
            }
        }
        if !word.is_empty() {
            words.push(word.into());
        }
        words
    }

    #[test]
    fn every_example_is_a_valid_command_line_of_its_command() {
        for (path, examples) in EXAMPLES {
            for (comment, line) in *examples {
                assert!(line.starts_with(format!("aye {path}").trim_end()), "{path}: {line}");
                assert!(!comment.is_empty() && !comment.ends_with('.'), "{path}: {comment}");
                if let Err(stop) = parse(split_words(line), Nesting::Outermost) {
                    panic!("{line}: {stop:?}");
                }
            }
        }
    }

    #[test]
    fn each_command_has_only_one_list_of_examples() {
        let mut seen = Vec::new();
        for (path, _) in EXAMPLES {
            assert!(!seen.contains(path), "{path} has two lists");
            seen.push(path);
        }
    }
}
