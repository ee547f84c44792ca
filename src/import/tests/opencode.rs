use super::*;

const CONFIG: &str = r#"{
  "$schema": "https://opencode.ai/config.json",
  "permission": {
    "*": "ask",
    "bash": {"*": "ask", "cargo clippy *": "allow", "npm *": "allow", "git *": "allow", "git push *": "deny", "rm *": "deny", "ls *": "maybe",},
    "edit": {"*": "deny", "docs/*": "allow"},
    "read": {"*.env": "deny", "secrets/*": "deny"},
    "webfetch": "deny",
    "websearch": "deny",
    "atlassian-rovo_*": "deny",
    "task": "allow"
  },
  "mcp": {
    "hub": {"type": "remote", "url": "https://hub.example/mcp", "headers": {"Authorization": "Bearer {env:HUB}"}},
    "db": {"type": "local", "command": ["db", "--port", "1"], "environment": {"DB_PASSWORD": "value-of-the-password"}, "enabled": false},
    "file": {"type": "local", "command": ["x"], "environment": {"A": "{file:~/.key}"}}
  },
  "command": {"test": {"template": "Run the tests for $ARGUMENTS", "description": "Run tests", "agent": "build"}},
  "model": "anthropic/x"
}"#;

#[test]
fn opencode_permissions_become_rules() {
    let user = User::with(&[("~/.config/opencode/opencode.jsonc", CONFIG)]);
    let plan = user.import(Agent::OpenCode);
    let policy = text(&plan, "policy.toml");
    let saved: Vec<String> = rules(policy).iter().map(ToString::to_string).collect();
    assert_eq!(saved, ["command = [\"cargo\", \"clippy\"]"]);
    for (command, expected) in [
        ("rm x", VerdictKind::Deny),
        ("git push origin", VerdictKind::Deny),
        ("cargo clippy", VerdictKind::Allow),
        ("make", VerdictKind::Ask),
    ] {
        assert_eq!(user.verdict(command), expected, "{command}");
    }
    assert_eq!(
        (user.reads("a.env"), user.reads("secrets/a/b"), user.reads("a")),
        (VerdictKind::Deny, VerdictKind::Deny, VerdictKind::Allow)
    );
    assert!(policy.contains("disabled = [\"HttpRequest\", \"WebSearch\", \"Mcp.atlassian-rovo/*\"]"), "{policy}");
    for (entry, part) in [
        ("ask *", "every tool"),
        ("ask bash", "cannot have exceptions"),
        ("deny edit", "cannot have exceptions"),
        ("allow edit `docs/*`", "absolute paths"),
        ("allow bash `npm *`", "any code"),
        ("allow bash `git *`", "every subcommand"),
        ("allow task", "agents do not need a rule"),
        ("`model`", "model.default"),
        ("MCP server `file`", "{file:"),
        ("", "`permission.bash`: `ls *` must be allow, ask or deny"),
    ] {
        assert!(reason(&plan, entry).contains(part), "{entry}: {}", reason(&plan, entry));
    }
}

#[test]
fn allow_entries_overridden_by_a_later_pattern_are_not_imported() {
    let config = r#"{"permission": {"bash": {"cargo clippy *": "allow", "*": "ask"}}}"#;
    let plan = User::with(&[("~/.config/opencode/opencode.json", config)]).plan(Agent::OpenCode);
    assert!(plan.files.is_empty() && reason(&plan, "allow bash `cargo clippy *`").contains("`*` overrides it"), "{plan:#?}");
}

#[test]
fn a_general_deny_without_exceptions_is_preserved() {
    let user = User::with(&[("~/.config/opencode/opencode.json", r#"{"permission": {"bash": "deny", "edit": "deny"}}"#)]);
    let plan = user.import(Agent::OpenCode);
    assert_eq!((user.verdict("ls"), user.verdict("make x")), (VerdictKind::Deny, VerdictKind::Deny));
    assert!(text(&plan, "policy.toml").contains("disabled = [\"WriteFile\", \"EditFile\""));
}

#[test]
fn opencode_servers_commands_and_instructions_are_imported() {
    let user = User::with(&[
        ("~/.config/opencode/opencode.json", CONFIG),
        ("~/.config/opencode/AGENTS.md", "Be kind.\n"),
        ("~/.config/opencode/command/fix.md", "---\ndescription: Fix\nagent: build\n---\nFix $1\n"),
        ("opencode.json", r#"{"mcp": {"theirs": {"type": "local", "command": ["x"]}}}"#),
    ]);
    let plan = user.import(Agent::OpenCode);
    assert_eq!(
        text(&plan, "config.toml"),
        "[mcp.servers.hub]\nurl = \"https://hub.example/mcp\"\nheaders = { Authorization = \"Bearer ${HUB}\" }\n\n\
         [mcp.servers.db]\ncommand = \"db\"\nargs = [\"--port\", \"1\"]\nenv = { DB_PASSWORD = \"${DB_PASSWORD}\" }\nenabled = false\n"
    );
    assert_without(&plan, &["value-of-the-password"]);
    assert_eq!(text(&plan, "test.md"), "---\ndescription: Run tests\n---\nRun the tests for $ARGUMENTS\n");
    assert_eq!(text(&plan, "fix.md"), "---\ndescription: Fix\n---\nFix $1\n");
    assert!(text(&plan, "AGENTS.md").contains("Be kind.") && reason(&plan, "MCP server `theirs`").contains(".mcp.json"));
    assert!(user.plan(Agent::OpenCode).files.is_empty());
}
