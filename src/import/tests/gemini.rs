use super::*;

const SETTINGS: &str = r#"{
  // The newer form.
  "tools": {
    "allowed": ["run_shell_command(cargo clippy)", "run_shell_command(git)", "run_shell_command", "write_file", "github__search"],
    "exclude": ["run_shell_command(rm -rf)", "run_shell_command(git push && x)", "web_fetch", "google_web_search", "github__delete"],
    "core": ["read_file"],
  },
  "excludeTools": ["ShellTool(sudo)"],
  "general": {"defaultApprovalMode": "yolo"},
  "security": {"auth": {}},
  "mcp": {"excluded": ["old"]},
  "mcpServers": {
    "hub": {"httpUrl": "https://hub.example/mcp", "headers": {"Authorization": "Bearer $HUB", "X-Key": "hush-of-the-header"}, "timeout": 5500, "trust": true},
    "old": {"url": "https://old.example/sse"},
    "db": {"command": "db", "args": ["--port", "1"], "env": {"DB_PASSWORD": "value-of-the-password", "HOST": "$DB_HOST"}, "cwd": "./db", "includeTools": ["a"]}
  }
}"#;

#[test]
fn gemini_tool_settings_become_rules() {
    let user = User::with(&[("~/.gemini/settings.json", SETTINGS)]);
    let plan = user.import(Agent::Gemini);
    let policy = text(&plan, "policy.toml");
    let saved: Vec<String> = rules(policy).iter().map(ToString::to_string).collect();
    assert_eq!(saved, ["command = [\"cargo\", \"clippy\"]"]);
    for (command, expected) in [
        ("rm -rf x", VerdictKind::Deny),
        ("sudo ls", VerdictKind::Deny),
        ("rm x", VerdictKind::Ask),
        ("cargo clippy", VerdictKind::Allow),
    ] {
        assert_eq!(user.verdict(command), expected, "{command}");
    }
    assert!(policy.contains("disabled = [\"HttpRequest\", \"WebSearch\", \"Mcp.github/delete\"]"), "{policy}");
    for (entry, part) in [
        ("allow run_shell_command(git)", "every subcommand"),
        ("allow run_shell_command", "every command"),
        ("allow write_file", "auto-edit"),
        ("allow github__search", "aye mcp allow github"),
        ("deny run_shell_command(git push && x)", "more than one plain command"),
        ("core tools read_file", "tools.enabled"),
        ("defaultApprovalMode `yolo`", "no setting skips the policy"),
        ("`security`", "aye auth login gemini"),
        ("`trust` of `hub`", "needs approval"),
        ("`includeTools` of `db`", "[tools] disabled"),
    ] {
        assert!(reason(&plan, entry).contains(part), "{entry}: {}", reason(&plan, entry));
    }
}

#[test]
fn gemini_servers_commands_and_instructions_are_imported() {
    let user = User::with(&[
        ("~/.gemini/settings.json", SETTINGS),
        ("~/.gemini/GEMINI.md", "Use spaces.\n"),
        (
            "~/.gemini/commands/git/fix.toml",
            "description = \"Fix\"\nprompt = \"\"\"\nFix {{args}} as in @{docs/a.md}: !{git log}\n\"\"\"\n",
        ),
        ("~/.gemini/commands/bad.toml", "prompt = 3\n"),
        ("GEMINI.md", "x\n"),
        (".gemini/commands/here.toml", "prompt = \"Do it\"\n"),
    ]);
    let plan = user.import(Agent::Gemini);
    assert_eq!(
        text(&plan, "config.toml"),
        "[mcp.servers.hub]\nurl = \"https://hub.example/mcp\"\ntype = \"http\"\nheaders = { Authorization = \"Bearer ${HUB}\", \
         X-Key = \"${HUB_X_KEY}\" }\ntimeout_seconds = 6\n\n[mcp.servers.old]\nurl = \"https://old.example/sse\"\ntype = \"sse\"\nenabled = false\n\n\
         [mcp.servers.db]\ncommand = \"db\"\nargs = [\"--port\", \"1\"]\nenv = { DB_PASSWORD = \"${DB_PASSWORD}\", \
         HOST = \"${DB_HOST}\" }\ncwd = \"./db\"\n"
    );
    assert_without(&plan, &["hush-of-the-header", "value-of-the-password"]);
    assert_eq!(text(&plan, "git/fix.md"), "---\ndescription: Fix\n---\nFix $ARGUMENTS as in @docs/a.md: !{git log}\n");
    assert_eq!(std::fs::read_to_string(user.place(".aye/commands/here.md")).unwrap(), "Do it\n");
    assert!(text(&plan, "AGENTS.md").contains("Use spaces."));
    assert!(reason(&plan, "instructions").contains("`@GEMINI.md`"));
    let shell = plan.narrowed.iter().filter(|(entry, part)| entry.starts_with("shell commands (") && part.starts_with("as text"));
    assert_eq!(shell.count(), 1, "{plan:#?}");
    assert!(reason(&plan, "").contains("`prompt` must be a string"));
    assert!(user.plan(Agent::Gemini).files.is_empty());
}

#[test]
fn servers_that_are_not_allowed_are_imported_disabled() {
    let settings = r#"{"mcp": {"allowed": ["a"]}, "mcpServers": {"a": {"command": "a"}, "b": {"command": "b"}}}"#;
    let user = User::with(&[("~/.gemini/settings.json", settings)]);
    let plan = user.import(Agent::Gemini);
    assert_eq!(
        text(&plan, "config.toml"),
        "[mcp.servers.a]\ncommand = \"a\"\n\n[mcp.servers.b]\ncommand = \"b\"\nenabled = false\n"
    );
}
