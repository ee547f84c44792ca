//! `aye import`: the plan, the written files, and content that is never imported.

use crate::support::{Output, Project};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// Secrets in the settings of other agents.
const SECRETS: [&str; 3] = ["ghp_9fK2mQ7xZ4vB1nL8kW3tR6yU0pS5dG2hJ7c", "hush-of-the-header", "value-of-the-password"];

const CLAUDE: &[(&str, &str)] = &[
    (
        ".claude/settings.json",
        r#"{"permissions": {"allow": ["Bash(npm run test:*)", "Bash(cargo clippy:*)", "Bash(*)"], "deny": ["Bash(rm:*)"],
            "defaultMode": "bypassPermissions"}, "env": {"GITHUB_TOKEN": "ghp_9fK2mQ7xZ4vB1nL8kW3tR6yU0pS5dG2hJ7c"}}"#,
    ),
    (
        ".claude.json",
        r#"{"mcpServers": {"hub": {"url": "https://hub.example/mcp", "headers": {"Authorization": "Bearer hush-of-the-header"}},
            "db": {"command": "db-server", "env": {"DB_PASSWORD": "value-of-the-password"}}}}"#,
    ),
    (".claude/CLAUDE.md", "Be brief.\n"),
    (".claude/commands/fix.md", "---\ndescription: Fix it\n---\nFix $1\n"),
];

fn home(files: &[(&str, &str)]) -> Project {
    let project = Project::empty();
    for (name, text) in files {
        let path = project.directory("home").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    project
}

/// Returns all files below a directory with their contents.
fn files_below(directory: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.path().is_dir() {
            found.extend(files_below(&entry.path()));
        } else {
            found.push((entry.path(), String::from_utf8_lossy(&fs::read(entry.path()).unwrap_or_default()).into_owned()));
        }
    }
    found.sort();
    found
}

fn config(project: &Project) -> Vec<(PathBuf, String)> {
    files_below(&project.directory("config"))
}

#[track_caller]
fn assert_no_secrets(project: &Project, output: &Output) {
    let written = config(project).into_iter().chain(files_below(&project.directory("data")));
    for secret in SECRETS {
        for (path, text) in written.clone() {
            assert!(!text.contains(secret), "{} contains {secret}", path.display());
        }
        assert!(!output.stdout.contains(secret) && !output.stderr.contains(secret), "{secret} is on the screen");
    }
}

#[test]
fn a_plan_writes_no_files_and_the_import_writes_the_planned_ones() {
    let project = home(CLAUDE);
    let plan = project.aye(&["import", "claude", "--plan"]).exits(0);
    assert!(config(&project).is_empty(), "{:?}", config(&project));
    for part in [
        "+++ b/",
        "+command = [\"npm\", \"run\", \"test\"]",
        "Not imported:",
        "allow Bash(*) (~/.claude/settings.json): the rule would allow every command",
        "defaultMode `bypassPermissions`",
        "Imported in part:\n  Bash(npm run test:*): exactly `npm run test`, in a copy of the workspace",
        "+bearer_token_env = \"HUB_TOKEN\"",
        "+env = { DB_PASSWORD = \"${DB_PASSWORD}\" }",
    ] {
        assert!(plan.stdout.contains(part), "{part}\n{}", plan.stdout);
    }
    assert_no_secrets(&project, &plan);
    let asked = project.aye(&["import", "claude"]).exits(2);
    assert!(asked.stderr.contains("cannot prompt without a terminal") && asked.stderr.contains("--yes"), "{}", asked.stderr);
    assert!(config(&project).is_empty());
    let done = project.aye(&["import", "claude", "--yes"]).exits(0);
    for part in ["created ", "undo: rm ", "set HUB_TOKEN in your environment", "aye mcp allow hub"] {
        assert!(done.stdout.contains(part), "{part}\n{}", done.stdout);
    }
    assert_no_secrets(&project, &done);
    let names: Vec<String> =
        config(&project).iter().map(|(path, _)| path.file_name().unwrap().to_string_lossy().into_owned()).collect();
    for name in ["AGENTS.md", "config.toml", "policy.toml", "fix.md"] {
        assert!(names.contains(&name.to_owned()), "{names:?}");
    }
    project.aye(&["policy", "validate"]).exits(0);
    let verdict = |command: &str| {
        let told = project.aye(&["policy", "explain", "--json", "--", command]).exits(0).json();
        told["verdict"].as_str().unwrap_or_else(|| panic!("{told}")).to_owned()
    };
    assert_eq!((verdict("cargo clippy --all"), verdict("rm x"), verdict("make")), ("allow".into(), "deny".into(), "ask".into()));
    let grants = project.aye(&["policy", "grants", "list"]).exits(0);
    assert!(grants.stdout.contains("imported from Claude Code"), "{}", grants.stdout);
    let servers = project.aye(&["mcp", "list"]).exits(0);
    assert!(servers.stdout.contains("hub") && servers.stdout.contains("HUB_TOKEN"), "{}", servers.stdout);
}

#[test]
fn user_settings_are_imported_in_the_home_directory() {
    let project = home(CLAUDE);
    let directory = project.directory("home");
    project.aye(&["-C", directory.to_str().unwrap(), "import", "claude", "--yes"]).exits(0);
    let policy = fs::read_to_string(project.directory("config").join("policy.toml")).unwrap();
    assert!(policy.contains("command = [\"cargo\", \"clippy\"]") && policy.contains("command = [\"rm\"]"), "{policy}");
    assert!(!directory.join(".aye").exists());
}

#[test]
fn a_second_import_makes_no_changes() {
    let project = home(CLAUDE);
    project.aye(&["import", "claude", "--yes"]).exits(0);
    let before = config(&project);
    let again = project.aye(&["import", "claude", "--yes"]).exits(0);
    assert!(again.stdout.contains("nothing to import") && again.stdout.contains("Already in effect"), "{}", again.stdout);
    assert_eq!(config(&project), before);
    let none = Project::empty().aye(&["import", "codex"]).exits(0);
    assert!(none.stdout.contains("found no settings for Codex"), "{}", none.stdout);
}

#[test]
fn a_json_plan_contains_files_reasons_and_next_steps() {
    let project = home(CLAUDE);
    let plan = project.aye(&["import", "claude", "--plan", "--json"]).exits(0).json();
    assert_eq!(plan["agent"], "claude");
    let files = plan["files"].as_array().unwrap();
    assert_eq!(files.len(), 4, "{plan}");
    assert!(
        files
            .iter()
            .all(|file| file["kind"] == "created" && file["diff"].as_str().is_some_and(|diff| diff.starts_with("--- /dev/null")))
    );
    let reasons: Vec<&Value> = plan["notImported"].as_array().unwrap().iter().collect();
    assert!(reasons.iter().any(|one| one["entry"] == "allow Bash(*)" && one["file"] == "~/.claude/settings.json"), "{plan}");
    assert!(plan["written"].is_null());
    let done = project.aye(&["import", "claude", "--yes", "--json"]).exits(0).json();
    assert_eq!(done["written"].as_array().map(Vec::len), Some(4), "{done}");
}

#[test]
fn import_prompts_on_a_terminal_and_proceeds_only_on_y() {
    let project = home(&[(".claude/CLAUDE.md", "Be \u{1b}[31mbrief.\n")]).file("x", "");
    for (answer, is_written) in [("n\r", false), ("y\r", true)] {
        let mut terminal = project.open_program(env!("CARGO_BIN_EXE_aye"), &["import", "claude"]);
        terminal.wait_for("Import? [y/N]");
        assert!(terminal.screen().contains("+Be brief."), "{}", terminal.screen());
        terminal.send(answer);
        let status = terminal.finish();
        assert_eq!(status.success(), is_written, "{}", terminal.screen());
        assert_eq!(project.directory("config").join("AGENTS.md").exists(), is_written);
    }
}

#[test]
fn changed_files_are_backed_up_and_malformed_ones_are_reported() {
    let project = home(CLAUDE).policy("schema_version = 1\nextends = \"built-in\"\n# mine\n");
    let path = project.directory("home").join(".claude/settings.local.json");
    fs::write(&path, "").unwrap();
    fs::write(project.directory("home").join(".claude.json"), "{\n  \"mcpServers\": {\n  nope\n").unwrap();
    let done = project.aye(&["import", "claude", "--yes"]).exits(0);
    assert!(done.stdout.contains("~/.claude.json: line 3: invalid JSON"), "{}", done.stdout);
    assert!(done.stdout.contains("undo: mv "), "{}", done.stdout);
    let backup = fs::read_to_string(project.directory("config").join("policy.toml.1")).unwrap();
    assert_eq!(backup, "schema_version = 1\nextends = \"built-in\"\n# mine\n");
    let policy = fs::read_to_string(project.directory("config").join("policy.toml")).unwrap();
    assert!(policy.contains("# mine") && policy.contains("command = [\"rm\"]"), "{policy}");
}

#[test]
fn an_invalid_policy_or_a_nested_aye_process_stops_the_import() {
    let project = home(CLAUDE).policy("schema_version = 1\nnonsense = 1\n");
    let told = project.aye(&["import", "claude", "--yes"]).exits(2);
    assert!(told.stderr.contains("nonsense"), "{}", told.stderr);
    assert_eq!(config(&project).len(), 1);
    let told = home(CLAUDE).env("AYE", "1").aye(&["import", "claude", "--yes"]).exits(2);
    assert!(told.stderr.contains("cannot extend its own permissions"), "{}", told.stderr);
}

/// Name of an agent, its files in the home directory, and expected parts of the imported files.
type Other = (&'static str, &'static [(&'static str, &'static str)], &'static [&'static str]);

/// Files of other agents in the home directory, with expected parts of the imported files.
const OTHERS: &[Other] = &[
    (
        "codex",
        &[
            (
                ".codex/config.toml",
                "approval_policy = \"never\"\n[mcp_servers.hub]\nurl = \"https://hub.example/mcp\"\nhttp_headers = { Authorization = \
                 \"Bearer hush-of-the-header\" }\n[mcp_servers.db]\ncommand = \"db-server\"\nenv = { DB_PASSWORD = \
                 \"value-of-the-password\" }\n",
            ),
            (
                ".codex/rules/default.rules",
                "prefix_rule(pattern = [\"cargo\", \"clippy\"], decision = \"allow\")\nprefix_rule(pattern = [\"curl\", \"-H\", \
                 \"X-Token: ghp_9fK2mQ7xZ4vB1nL8kW3tR6yU0pS5dG2hJ7c\"])\nprefix_rule(pattern = [\"rm\"], decision = \"forbidden\")\n",
            ),
            (".codex/AGENTS.md", "Be brief.\n"),
            (".codex/prompts/fix.md", "Fix $1\n"),
        ],
        &["bearer_token_env = \"HUB_TOKEN\"", "command = [\"cargo\", \"clippy\"]", "Be brief.", "Fix $1"],
    ),
    (
        "gemini",
        &[
            (
                ".gemini/settings.json",
                r#"{"tools": {"allowed": ["run_shell_command(cargo clippy)"], "exclude": ["run_shell_command(rm)"]},
                    "mcpServers": {"hub": {"httpUrl": "https://hub.example/mcp", "headers": {"Authorization": "Bearer hush-of-the-header"}},
                    "db": {"command": "db-server", "env": {"DB_PASSWORD": "value-of-the-password"}},
                    "args": {"command": "x", "args": ["--token", "ghp_9fK2mQ7xZ4vB1nL8kW3tR6yU0pS5dG2hJ7c"]}}}"#,
            ),
            (".gemini/GEMINI.md", "Be brief.\n"),
            (".gemini/commands/fix.toml", "prompt = \"Fix {{args}}\"\n"),
        ],
        &["bearer_token_env = \"HUB_TOKEN\"", "command = [\"cargo\", \"clippy\"]", "Be brief.", "Fix $ARGUMENTS"],
    ),
    (
        "opencode",
        &[
            (
                ".config/opencode/opencode.jsonc",
                r#"{ // mine
                    "permission": {"bash": {"cargo clippy *": "allow", "rm *": "deny"}},
                    "mcp": {"hub": {"type": "remote", "url": "https://hub.example/mcp", "headers": {"Authorization": "Bearer hush-of-the-header"}},
                    "db": {"type": "local", "command": ["db-server"], "environment": {"DB_PASSWORD": "value-of-the-password"}}},
                    "command": {"fix": {"template": "Fix $1"}, "key": {"template": "ghp_9fK2mQ7xZ4vB1nL8kW3tR6yU0pS5dG2hJ7c"}},
                }"#,
            ),
            (".config/opencode/AGENTS.md", "Be brief.\n"),
        ],
        &["bearer_token_env = \"HUB_TOKEN\"", "command = [\"cargo\", \"clippy\"]", "Be brief.", "Fix $1"],
    ),
];

#[test]
fn settings_of_every_agent_are_imported_without_their_secrets() {
    for (agent, files, parts) in OTHERS {
        let project = home(files);
        let plan = project.aye(&["import", agent, "--plan"]).exits(0);
        assert!(config(&project).is_empty(), "{agent}");
        assert_no_secrets(&project, &plan);
        let done = project.aye(&["import", agent, "--yes"]).exits(0);
        assert_no_secrets(&project, &done);
        let written: String = config(&project).into_iter().map(|(_, text)| text).collect();
        for part in *parts {
            assert!(written.contains(part), "{agent}: {part}\n{written}");
        }
        assert!(written.contains("env = { DB_PASSWORD = \"${DB_PASSWORD}\" }"), "{agent}\n{written}");
        project.aye(&["policy", "validate"]).exits(0);
        for (command, verdict) in [("rm x", "deny"), ("cargo clippy --all", "allow")] {
            let told = project.aye(&["policy", "explain", "--json", "--", command]).exits(0).json();
            assert_eq!(told["verdict"], verdict, "{agent}: {command}");
        }
        let again = project.aye(&["import", agent, "--yes"]).exits(0);
        assert!(again.stdout.contains("nothing to import"), "{agent}: {}", again.stdout);
    }
}
