use super::*;

const SETTINGS: &str = r#"{
  "permissions": {
    "allow": [
      "Bash(npm run test:*)", "Bash(cargo clippy:*)", "Bash(git status:*)", "Bash(*)", "Bash", "Bash(python:*)", "Bash(npm:*)",
      "Bash(rm -rf:*)", "Bash(git * main)", "Read(~/notes/**)", "Edit(src/**)", "WebFetch(domain:docs.rs)", "WebSearch",
      "mcp__github__create_issue", "Bash(curl -H \"Authorization: Bearer ghp_9fK2mQ7xZ4vB1nL8kW3tR6yU0pS5dG2hJ7c\" https://x)", 7
    ],
    "ask": ["Bash(git push:*)"],
    "deny": ["Bash(rm:*)", "Bash(/usr/bin/sudo *)", "Read(.env)", "Edit(/infra/**)", "WebFetch(domain:evil.example)",
             "mcp__github__delete_repo", "Bash(git * --force)"],
    "defaultMode": "bypassPermissions",
    "additionalDirectories": ["../other"]
  },
  "env": {"GITHUB_TOKEN": "ghp_9fK2mQ7xZ4vB1nL8kW3tR6yU0pS5dG2hJ7c"},
  "hooks": {}
}"#;

#[test]
fn allow_entries_become_rules_that_could_be_saved_and_deny_entries_remain_denials() {
    let user = User::with(&[("~/.claude/settings.json", SETTINGS)]);
    let plan = user.import(Agent::Claude);
    let policy = text(&plan, "policy.toml");
    assert!(policy.starts_with("# Created by `aye import`.") && policy.contains("extends = \"built-in\"\n"), "{policy}");
    let saved: Vec<String> = rules(policy).iter().map(ToString::to_string).collect();
    assert_eq!(
        saved,
        ["command = [\"npm\", \"run\", \"test\"], exact = true, sandboxed = true", "command = [\"cargo\", \"clippy\"]"]
    );
    assert!(
        policy.contains(
            "command = [\"npm\", \"run\", \"test\"]\nexact = true\nsandboxed = true\ndecision = \"allow\"\n\
             reason = \"allowed by you on 2026-11-21, imported from Claude Code\"\nmatch = [\"npm run test\"]\n\
             not_match = [\"npm run test x\"]\n"
        ),
        "{policy}"
    );
    assert!(
        policy.contains("command = [\"rm\"]\ndecision = \"deny\"\nreason = \"imported from Claude Code\"\nmatch = [\"rm\"]\n"),
        "{policy}"
    );
    for (command, expected) in [
        ("cargo clippy --all", VerdictKind::Allow),
        ("git status", VerdictKind::Allow),
        ("cargo build", VerdictKind::Ask),
        ("git push origin main", VerdictKind::Ask),
        ("rm x", VerdictKind::Deny),
        ("/bin/rm x", VerdictKind::Deny),
        ("env rm x", VerdictKind::Deny),
        ("sudo ls", VerdictKind::Deny),
        ("python x.py", VerdictKind::Ask),
    ] {
        assert_eq!(user.verdict(command), expected, "{command}");
    }
    assert_eq!(
        (user.reads(".env"), user.reads("sub/.env"), user.reads("a.rs")),
        (VerdictKind::Deny, VerdictKind::Deny, VerdictKind::Allow)
    );
    assert_eq!((user.writes("infra/x"), user.writes("a.rs")), (VerdictKind::Deny, VerdictKind::Ask));
    assert!(policy.contains("blocked_domains = [\"evil.example\"]") && policy.contains("\"Mcp.github/delete_repo\""), "{policy}");
}

#[test]
fn entries_that_cannot_be_imported_are_listed_with_a_reason() {
    let plan = User::with(&[("~/.claude/settings.json", SETTINGS)]).plan(Agent::Claude);
    for (entry, part) in [
        ("allow Bash(*)", "every command"),
        ("allow Bash", "every command"),
        ("allow Bash(python:*)", "can run any code"),
        ("allow Bash(npm:*)", "can run any code"),
        ("allow Bash(rm -rf:*)", "delete"),
        ("allow Bash(git * main)", "wildcard inside the command"),
        ("allow Read(~/notes/**)", "allowed_paths"),
        ("allow Edit(src/**)", "absolute paths"),
        ("allow WebFetch(domain:docs.rs)", "its own approval"),
        ("allow WebSearch", "each web search needs its own approval"),
        ("allow mcp__github__create_issue", "aye mcp allow github"),
        ("deny Bash(git * --force)", "wildcard inside the command"),
        ("defaultMode `bypassPermissions`", "no setting skips the policy"),
        ("additional directory `../other`", "--add-dir"),
        ("environment variables GITHUB_TOKEN", "in your shell"),
        ("`hooks`", "aye reads a project's hooks directly"),
        ("", "`permissions.allow[15]` must be a string"),
    ] {
        assert!(reason(&plan, entry).contains(part), "{entry}: {}", reason(&plan, entry));
    }
    assert_eq!(plan.in_force, ["Bash(git status:*)"]);
    assert_eq!(
        plan.narrowed,
        [("Bash(npm run test:*)".to_owned(), "exactly `npm run test`, in a copy of the workspace".to_owned())]
    );
    assert_without(&plan, &["ghp_9fK2mQ7xZ4vB1nL8kW3tR6yU0pS5dG2hJ7c"]);
    assert!(
        plan.not_imported.iter().any(|one| one.reason == "the entry contains a secret" && one.entry.contains("[redacted:")),
        "{plan:#?}"
    );
}

#[test]
fn a_second_import_changes_nothing() {
    let user = User::with(&[
        ("~/.claude/settings.json", SETTINGS),
        ("~/.claude/CLAUDE.md", "Be brief.\n"),
        ("~/.claude/commands/git/commit.md", "---\ndescription: Commit\nmodel: opus\n---\nCommit $ARGUMENTS\n"),
        ("~/.claude.json", r#"{"mcpServers": {"docs": {"type": "http", "url": "https://docs.example.org/mcp"}}}"#),
        (
            ".claude/settings.json",
            r#"{"permissions": {"allow": ["Bash(make lint)", "Edit(src/**)"], "deny": ["Bash(make release:*)"]}}"#,
        ),
        (".claude/commands/fix.md", "Fix $1\n"),
    ]);
    let first = user.import(Agent::Claude);
    assert_eq!(first.files.len(), 6, "{:#?}", first.files.iter().map(|file| &file.shown).collect::<Vec<_>>());
    let second = user.plan(Agent::Claude);
    assert!(second.files.is_empty(), "{:#?}", second.files.iter().map(|file| file.diff().to_string()).collect::<Vec<_>>());
    assert_eq!(first.not_imported, second.not_imported);
}

#[test]
fn project_entries_are_imported_only_if_trusted_and_only_for_that_project() {
    let files = [
        (
            ".claude/settings.json",
            r#"{"permissions": {"allow": ["Bash(cargo clippy:*)", "Edit(src/**)", "Edit(**)"], "deny": ["Bash(make:*)", "WebFetch"]}}"#,
        ),
        (".claude/settings.local.json", "{\n  \"permissions\": {\n    \"allow\": [\"Bash(cargo doc:*)\"\n  }\n}\n"),
    ];
    let user = User::with(&files);
    let untrusted = user.try_plan(Agent::Claude, false).unwrap();
    assert!(reason(&untrusted, "allow Bash(cargo clippy:*)").contains("not trusted"));
    assert!(rules(text(&untrusted, "policy.toml")).is_empty(), "denies are imported");
    let plan = user.import(Agent::Claude);
    let shown: Vec<&str> = plan.files.iter().map(|file| file.shown.as_str()).collect();
    assert_eq!(shown.len(), 1, "{shown:?}");
    assert!(shown[0].contains("/projects/work-"), "{shown:?}");
    let saved: Vec<String> = rules(text(&plan, "policy.toml")).iter().map(ToString::to_string).collect();
    assert_eq!(saved, ["command = [\"cargo\", \"clippy\"]", "paths = [\"${workspace}/src\"]"]);
    assert_eq!((user.verdict("make x"), user.verdict("cargo clippy --all")), (VerdictKind::Deny, VerdictKind::Allow));
    assert_eq!((user.writes("src/a/b.rs"), user.writes("a.rs")), (VerdictKind::Allow, VerdictKind::Ask));
    assert!(
        reason(&plan, "deny WebFetch").contains("all projects") && reason(&plan, "allow Edit(**)").contains("edit"),
        "{plan:#?}"
    );
    let broken = plan.not_imported.iter().find(|one| one.file.ends_with("settings.local.json")).unwrap();
    assert!(broken.reason.starts_with("line 4: invalid JSON") || broken.reason.starts_with("line 5: invalid JSON"), "{broken:?}");
}

#[test]
fn servers_are_imported_without_their_secrets() {
    let state = r#"{"mcpServers": {
        "files": {"command": "npx", "args": ["-y", "@x/files", "."], "env": {"LEVEL": "debug", "API_TOKEN": "tok-123", "REF": "${REF:-x}"}},
        "hub": {"type": "http", "url": "https://hub.example/mcp", "headers": {"Authorization": "Bearer hush-hush", "X-Team": "ours"}},
        "args": {"command": "server", "args": ["--api-key", "sk-ant-api03-aaaabbbbccccdddd"]},
        "url": {"url": "https://h.example/mcp?token=abc"},
        "both": {"command": "x", "url": "https://h"},
        "bad": 3},
      "projects": {"WORKSPACE": {"mcpServers": {"local": {"command": "./run.sh"}}}}}"#;
    let user = User::with(&[(".mcp.json", "{}")]);
    user.write("~/.claude.json", &state.replace("WORKSPACE", user.path("work").to_str().unwrap()));
    let plan = user.plan(Agent::Claude);
    let config = text(&plan, "config.toml");
    assert_eq!(
        config,
        "[mcp.servers.files]\ncommand = \"npx\"\nargs = [\"-y\", \"@x/files\", \".\"]\n\
         env = { LEVEL = \"debug\", API_TOKEN = \"${API_TOKEN}\", REF = \"${REF:-x}\" }\n\n\
         [mcp.servers.hub]\nurl = \"https://hub.example/mcp\"\ntype = \"http\"\nheaders = { X-Team = \"ours\" }\n\
         bearer_token_env = \"HUB_TOKEN\"\n\n[mcp.servers.local]\ncommand = \"./run.sh\"\n"
    );
    assert_without(&plan, &["tok-123", "hush-hush", "sk-ant-api03", "token=abc"]);
    for (entry, part) in [
        ("MCP server `args`", "arguments contain a secret"),
        ("MCP server `url`", "address contains a secret"),
        ("MCP server `both`", "both a command and an address"),
        ("MCP servers", "reads this file directly"),
        ("", "`mcpServers.bad` must be an object"),
    ] {
        assert!(reason(&plan, entry).contains(part), "{entry}: {}", reason(&plan, entry));
    }
    let notes = plan.notes.join("\n");
    assert!(
        notes.contains("set API_TOKEN in your environment")
            && notes.contains("set HUB_TOKEN")
            && notes.contains("network = true"),
        "{notes}"
    );
}

#[test]
fn existing_servers_and_commands_of_the_same_name_are_unchanged() {
    let user = User::with(&[
        ("~/.claude.json", r#"{"mcpServers": {"docs": {"url": "https://new.example/mcp"}}}"#),
        ("config/config.toml", "[mcp.servers.docs]\nurl = \"https://old.example/mcp\"\n"),
        ("~/.claude/commands/fix.md", "New\n"),
        ("~/.claude/commands/review.md", "Review\n"),
        ("~/.claude/commands/key.md", "Use ghp_9fK2mQ7xZ4vB1nL8kW3tR6yU0pS5dG2hJ7c\n"),
        ("config/commands/fix.md", "Old\n"),
    ]);
    let plan = user.plan(Agent::Claude);
    assert!(plan.files.is_empty(), "{:?}", plan.files);
    for (entry, part) in [
        ("MCP server `docs`", "another server with this name"),
        ("command /fix", "has different content"),
        ("command /review", "built-in command"),
        ("command /key", "line 1 contains a secret"),
    ] {
        assert!(reason(&plan, entry).contains(part), "{entry}: {}", reason(&plan, entry));
    }
}

#[test]
fn instructions_are_added_in_a_block_unless_they_contain_a_secret() {
    let user = User::with(&[("~/.claude/CLAUDE.md", "Be brief.\n"), ("config/AGENTS.md", "# Mine\n")]);
    let plan = user.import(Agent::Claude);
    assert_eq!(
        text(&plan, "AGENTS.md"),
        "# Mine\n\n<!-- aye import: ~/.claude/CLAUDE.md -->\nBe brief.\n<!-- aye import: end -->\n"
    );
    assert_eq!(std::fs::read_to_string(user.place("config/AGENTS.md.1")).unwrap(), "# Mine\n");
    user.write("~/.claude/CLAUDE.md", "Be brief. See @~/notes.md and ask @ada.\n");
    assert_eq!(user.plan(Agent::Claude).not_imported.len(), 1);
    user.write("~/.claude/CLAUDE.md", "Be brief.\nToken: ghp_9fK2mQ7xZ4vB1nL8kW3tR6yU0pS5dG2hJ7c\n");
    let plan = user.plan(Agent::Claude);
    assert!(plan.files.is_empty() && reason(&plan, "instructions").contains("line 2 contains a secret"), "{plan:#?}");
}

#[test]
fn a_restrictive_policy_is_not_widened() {
    let policy = "schema_version = 1\n[capabilities.\"File.Read\"]\nallowed_paths = [\"${workspace}\"]\n";
    let user = User::with(&[("~/.claude/settings.json", SETTINGS), ("config/policy.toml", policy)]);
    let plan = user.import(Agent::Claude);
    assert!(!text(&plan, "policy.toml").contains("Shell.Exec"), "{}", text(&plan, "policy.toml"));
    assert_eq!((user.verdict("cargo clippy"), user.reads(".env")), (VerdictKind::Deny, VerdictKind::Deny));
}

#[test]
fn an_interrupted_import_is_completed_by_the_next_one() {
    let user = User::with(&[
        ("~/.claude/settings.json", r#"{"permissions": {"deny": ["Bash(rm:*)"]}}"#),
        ("~/.claude/CLAUDE.md", "Be brief.\n"),
        ("~/.claude/commands/fix.md", "Fix\n"),
    ]);
    let whole = user.plan(Agent::Claude);
    let part = ImportPlan { files: whole.files[..1].to_vec(), ..ImportPlan::default() };
    super::super::write(&part, &user.targets(), &user.path("config"), &user.path("work"), |_| ()).unwrap();
    let rest = user.import(Agent::Claude);
    assert_eq!(rest.files, whole.files[1..]);
    assert!(user.plan(Agent::Claude).files.is_empty());
}

#[test]
fn a_file_changed_after_the_plan_is_not_overwritten() {
    let user = User::with(&[("~/.claude/CLAUDE.md", "Be brief.\n"), ("config/AGENTS.md", "# Mine\n")]);
    let plan = user.plan(Agent::Claude);
    user.write("config/AGENTS.md", "# Changed\n");
    let error = super::super::write(&plan, &user.targets(), &user.path("config"), &user.path("work"), |_| ()).unwrap_err();
    assert!(error.to_string().contains("changed after the plan was made"), "{error}");
    assert_eq!(std::fs::read_to_string(user.place("config/AGENTS.md")).unwrap(), "# Changed\n");
}

#[test]
fn web_searches_that_are_denied_or_need_approval_remain_so() {
    let settings = |list: &str| format!("{{\"permissions\": {{\"{list}\": [\"WebSearch\"]}}}}");
    let of = |list| User::with(&[("~/.claude/settings.json", &settings(list))]);
    let plan = of("deny").plan(Agent::Claude);
    assert!(text(&plan, "policy.toml").contains("disabled = [\"WebSearch\"]"), "{plan:#?}");
    assert_eq!(of("ask").plan(Agent::Claude).in_force, ["WebSearch"]);
    let allows = "schema_version = 1\nextends = \"built-in\"\n[capabilities.\"Network.Search\"]\nrequires_approval = false\n";
    let user = User::with(&[("~/.claude/settings.json", &settings("ask")), ("config/policy.toml", allows)]);
    let plan = user.plan(Agent::Claude);
    assert!(reason(&plan, "ask WebSearch").contains("allows web searches without approval"), "{plan:#?}");
    let project = User::with(&[(".claude/settings.json", &settings("deny"))]);
    assert!(reason(&project.plan(Agent::Claude), "deny WebSearch").contains("only a policy for all projects"));
}

#[test]
fn programs_of_a_directory_shell_commands_and_many_paths_are_imported_or_explained() {
    let settings = r#"{"permissions": {
        "allow": ["Bash(scripts/*)", "Bash(./scripts/*)"],
        "deny": ["Read(//**/*.pem)", "Read(~/.ssh/**)", "Edit(//**/*.pem)", "Edit(~/.ssh/**)"]}}"#;
    let user = User::with(&[
        ("~/.claude/settings.json", settings),
        ("~/.claude/commands/state.md", "State: !`git status`\n"),
        ("~/.claude/commands/if.md", "Write `if !{x}`\n"),
    ]);
    let plan = user.import(Agent::Claude);
    for entry in ["allow Bash(scripts/*)", "allow Bash(./scripts/*)"] {
        assert!(reason(&plan, entry).contains("every program in a directory"), "{}", reason(&plan, entry));
    }
    let shell = plan.narrowed.iter().filter(|(entry, part)| entry.starts_with("shell commands (") && part.starts_with("as text"));
    assert_eq!(shell.count(), 1, "a text with `!{{` has none: {plan:#?}");
    let policy = text(&plan, "policy.toml");
    assert_eq!(policy.matches("imported from Claude Code").count(), 3, "one rule for each capability: {policy}");
    assert_eq!((user.reads("a/key.pem"), user.reads("a/key")), (VerdictKind::Deny, VerdictKind::Allow));
    assert!(user.plan(Agent::Claude).files.is_empty(), "another import changes nothing");
}
