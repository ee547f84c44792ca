use super::*;

const CONFIG: &str = r#"model = "gpt-5.5"
approval_policy = "never"
sandbox_mode = "danger-full-access"
notify = ["x"]

[sandbox_workspace_write]
network_access = true

[mcp_servers.docs]
url = "https://docs.example.org/mcp"
bearer_token_env_var = "DOCS_TOKEN"
http_headers = { X-Team = "ours", X-Api-Key = "hush-of-the-header" }
env_http_headers = { X-Org = "ORG" }
tool_timeout_sec = 90
enabled_tools = ["search"]

[mcp_servers.files]
command = "npx"
args = ["-y", "@x/files"]
env = { LEVEL = "debug", SECRET_KEY = "9fK2mQ7xZ4vB1nL8kW3t" }
env_vars = ["HOME_OF_FILES"]
cwd = "~/files"
enabled = false
startup_timeout_sec = 20

[mcp_servers.bad]
command = 3
"#;

const RULES: &str = r#"prefix_rule(pattern = ["cargo", ["clippy", "doc"]], decision = "allow")
prefix_rule(pattern = ["npm", "run", "lint"], decision = "allow")
prefix_rule(pattern = ["python3"], decision = "allow")
prefix_rule(pattern = ["bash", "-lc"])
prefix_rule(pattern = ["git", ["push", "fetch"]], decision = "prompt", justification = "network")
prefix_rule(pattern = ["terraform", "apply"], decision = "forbidden")
prefix_rule(pattern = ["x"], decision = "maybe")
prefix_rule(pattern = )
"#;

#[test]
fn codex_rules_become_rules_that_could_be_saved() {
    let user = User::with(&[("~/.codex/rules/default.rules", RULES)]);
    let plan = user.import(Agent::Codex);
    let saved: Vec<String> = rules(text(&plan, "policy.toml")).iter().map(ToString::to_string).collect();
    assert_eq!(
        saved,
        [
            "command = [\"cargo\", \"clippy\"]",
            "command = [\"cargo\", \"doc\"]",
            "command = [\"npm\", \"run\", \"lint\"], exact = true, sandboxed = true"
        ]
    );
    assert_eq!(user.verdict("terraform apply -auto-approve"), VerdictKind::Deny);
    assert_eq!(user.verdict("cargo clippy --all"), VerdictKind::Allow);
    assert!(text(&plan, "policy.toml").contains("command = [\"git\", [\"push\", \"fetch\"]]\ndecision = \"ask\""));
    assert!(reason(&plan, "allow python3").contains("any code"));
    assert!(!reason(&plan, "allow bash -lc").is_empty());
    let problems: Vec<&str> =
        plan.not_imported.iter().filter(|one| one.entry.is_empty()).map(|one| one.reason.as_str()).collect();
    assert!(problems[0].starts_with("line 8: ") && problems[1].starts_with("line 7: unknown decision `maybe`"), "{problems:?}");
}

#[test]
fn codex_servers_prompts_and_instructions_are_imported() {
    let user = User::with(&[
        ("~/.codex/config.toml", CONFIG),
        ("~/.codex/AGENTS.md", "Use tabs.\n"),
        ("~/.codex/prompts/fix.md", "---\ndescription: Fix\n---\nFix $1 in $FILE\n"),
        (".codex/config.toml", "[mcp_servers.theirs]\ncommand = \"x\"\n"),
    ]);
    let plan = user.import(Agent::Codex);
    assert_eq!(
        text(&plan, "config.toml"),
        "[mcp.servers.docs]\nurl = \"https://docs.example.org/mcp\"\nheaders = { X-Api-Key = \"${DOCS_X_API_KEY}\", X-Team = \"ours\", \
         X-Org = \"${ORG}\" }\nbearer_token_env = \"DOCS_TOKEN\"\ntimeout_seconds = 90\n\n\
         [mcp.servers.files]\ncommand = \"npx\"\nargs = [\"-y\", \"@x/files\"]\nenv = { LEVEL = \"debug\", \
         SECRET_KEY = \"${SECRET_KEY}\", HOME_OF_FILES = \"${HOME_OF_FILES}\" }\ncwd = \"~/files\"\nenabled = false\n\
         start_timeout_seconds = 20\n"
    );
    assert_without(&plan, &["hush-of-the-header", "9fK2mQ7xZ4vB1nL8kW3t"]);
    assert!(text(&plan, "AGENTS.md").contains("Use tabs.") && text(&plan, "fix.md").contains("Fix $1 in $FILE"));
    for (entry, part) in [
        ("approval_policy `never`", "no setting skips the policy"),
        ("sandbox_mode `danger-full-access`", "does not turn its sandbox off"),
        ("sandbox_workspace_write `network_access`", "under Shell.Exec"),
        ("model `gpt-5.5`", "openai/gpt-5.5"),
        ("`notify`", "ui.notifications"),
        ("`mcp_servers.docs.enabled_tools`", "[tools] disabled"),
        ("placeholder `$FILE`", "only `$1`"),
        ("MCP server `theirs`", ".mcp.json"),
        ("MCP server `bad`", "neither a command nor an address"),
        ("", "`mcp_servers.bad.command` must be a string"),
    ] {
        assert!(reason(&plan, entry).contains(part), "{entry}: {}", reason(&plan, entry));
    }
    assert!(user.plan(Agent::Codex).files.is_empty());
}

#[test]
fn a_malformed_file_is_reported_with_its_line_and_the_rest_is_imported() {
    let user =
        User::with(&[("~/.codex/config.toml", "model = \"x\"\n[mcp_servers\n"), ("~/.codex/AGENTS.override.md", "Mine.\n")]);
    let plan = user.plan(Agent::Codex);
    assert!(reason(&plan, "").starts_with("line 2: invalid TOML"), "{plan:#?}");
    assert!(text(&plan, "AGENTS.md").contains("Mine."));
}

#[test]
fn disabled_web_search_of_codex_remains_disabled() {
    for (config, disabled) in [
        ("web_search = \"disabled\"\n", true),
        ("[tools]\nweb_search = false\n", true),
        ("web_search = \"live\"\n", false),
        ("[tools]\nweb_search = true\n", false),
    ] {
        let user = User::with(&[("~/.codex/config.toml", config)]);
        let plan = user.plan(Agent::Codex);
        let is_disabled = plan.files.iter().any(|file| file.new.contains("disabled = [\"WebSearch\"]"));
        assert_eq!(is_disabled, disabled, "{config}: {plan:#?}");
        assert_eq!(plan.not_imported.iter().any(|one| one.entry == "allow web_search"), !disabled, "{config}: {plan:#?}");
    }
}

#[test]
fn servers_of_a_project_belong_in_the_file_that_aye_reads() {
    let config = "[mcp_servers.one]\ncommand = \"a\"\n[mcp_servers.two]\ncommand = \"b\"\n";
    let listed = r#"{"mcpServers": {"one": {"command": "a"}}}"#;
    let user = User::with(&[(".codex/config.toml", config), (".mcp.json", listed)]);
    let plan = user.plan(Agent::Codex);
    assert!(reason(&plan, "MCP server `one`").contains("has a server with this name"), "{plan:?}");
    assert!(reason(&plan, "MCP server `two`").contains("`aye mcp add two`"), "{plan:?}");
}
