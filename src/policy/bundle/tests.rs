use super::*;

fn error(text: &str) -> String {
    Bundle::parse(text, "policy.toml").map(|_| String::new()).unwrap_or_else(|error| error.to_string())
}

const FULL: &str = r#"
schema_version = 1
bundle_version = "2026-11-20.1"
expires_at = 2027-06-30T00:00:00Z
session_id = "0123"

[llm]
allowed_models = ["anthropic/*"]
max_input_tokens = 180_000
max_output_tokens = 32_000
max_session_tokens = 20_000_000
max_session_cost_usd = 50.0

[capabilities."File.Read"]
allowed_paths = ["${workspace}"]
blocked_paths = ["~/.ssh", "~/.aws", "**/.env"]
max_file_size_bytes = 10_485_760

[capabilities."File.Write"]
allowed_paths = ["${workspace}"]
blocked_paths = ["**/.git/**", "**/.aye/**"]
requires_approval = true
approval_rule = "edit"

[capabilities."File.Delete"]
allowed_paths = ["${workspace}"]
requires_approval = true

[capabilities."Shell.Exec"]
requires_approval = true
approval_rule = "command"
blocked_commands = ["sudo", "mkfs.*", "rm -rf"]
allowed_commands = ["git", "cargo"]
sandbox = "workspace-write"
network = "deny"
preview = "offer"
writable_paths = []
cache = "private"
limits = { processes = 512, memory_mb = 8192, file_mb = 4096, cpu_seconds = 3600 }
max_output_bytes = 102_400
environment = ["PATH"]

[[capabilities."Shell.Exec".rules]]
command = ["git", ["status", "diff", "log", "show"]]
decision = "allow"
reason = "reads only"
match = ["git status --short", "git log --oneline | head"]
not_match = ["git -c core.pager=x log", "git diff --output=f"]

[[capabilities."Shell.Exec".rules]]
command = ["cargo", "test"]
exact = true
decision = "allow"
expires_at = 2027-01-01T00:00:00Z

[[capabilities."File.Write".rules]]
paths = ["docs/**"]
decision = "allow"
reason = "prose"
expires_at = 2027-01-01T00:00:00Z
match = ["docs/a.md"]
not_match = ["src/a.rs"]

[capabilities."Network.Http"]
allowed_domains = ["example.com", "*.example.org"]
requires_approval = true

[capabilities."Mcp.Invoke"]
allowed_tools = ["docs/*"]
requires_approval = true

[[capabilities."Mcp.Invoke".rules]]
tools = ["docs/search"]
decision = "allow"
reason = "reads only"
fingerprint = "5f2c"

[capabilities."Workspace.Upload"]
max_file_size_bytes = 10

[tools]
disabled = ["HttpRequest", "Mcp.web/*"]

[approval_rules.edit]
title = "File change"
description = "Writes inside the workspace"

[approval]
timeout_seconds = 300

[[named_commands]]
name = "convert"
command = ["IfcConvert", "{input}", "{output}"]
arguments = { input = "path", output = "path" }

[[tests]]
tool = "RunCommand"
arguments = { command = "git push" }
verdict = "ask"

[[redaction]]
name = "company token"
pattern = "acme_[a-z0-9]{32}"
"#;

#[test]
fn the_built_in_bundle_parses() {
    let bundle = Bundle::built_in().expect("parses");
    assert_eq!(
        bundle.capabilities.granted,
        ["File.Delete", "File.Read", "File.Write", "Network.Http", "Network.Search", "Shell.Exec", "Workspace.Upload"]
    );
}

#[test]
fn every_documented_key_is_accepted() {
    let bundle = Bundle::parse(FULL, "policy.toml").unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(bundle.llm.max_session_cost_usd, Some(50.0));
    assert!(bundle.llm.allows("anthropic/x") && !bundle.llm.allows("openai/x"));
    assert_eq!(bundle.approval_rules["edit"].title, "File change");
    let shell = bundle.capabilities.shell.expect("a shell table");
    assert_eq!(shell.terms.environment, Some(EnvironmentTerms::Only(vec!["PATH".to_owned()])));
    assert_eq!(shell.rules[0].line, 43);
    assert!(shell.rules[1].exact && bundle.capabilities.write.is_some_and(|files| files.rules.len() == 1));
    assert!(bundle.capabilities.mcp.is_some_and(|mcp| mcp.rules[0].fingerprint.as_deref() == Some("5f2c")));
    assert!(bundle.disabled[1].hits("mcp.WEB/get") && !bundle.disabled[1].hits("Mcp.docs/get"));
}

#[test]
fn errors_name_their_line() {
    let shell = "schema_version = 1\n[capabilities.\"Shell.Exec\"]\n";
    let rule = "schema_version = 1\n[[capabilities.\"Shell.Exec\".rules]]\ncommand = [\"git\"]\n";
    for (text, expected) in [
        (String::new(), "policy.toml: the file is empty; expected at least `schema_version = 1`"),
        ("bundle_version = \"1\"".into(), "policy.toml line 1: `schema_version` is missing; expected `schema_version = 1`"),
        ("\nschema_version = 2".into(), "policy.toml line 2: schema_version 2 is not supported; this version of aye supports 1"),
        ("schema_version = 1\nllmm = 1".into(), "policy.toml line 2: unknown key `llmm`; did you mean `llm`?"),
        (format!("{rule}decision = \"permit\""), "policy.toml line 4: unknown decision `permit`; expected allow, ask or deny"),
        (
            "schema_version = 1\n[agents]\nmax_steps = 0".into(),
            "policy.toml line 3: `max_steps` is 0; expected an integer of at least 1. `depth = 0` turns agents off",
        ),
        (
            "schema_version = 1\n[approval]\ntimeout_seconds = 0".into(),
            "policy.toml line 3: `timeout_seconds` is 0; expected an integer of at least 1: the number of seconds an approval waits for an answer",
        ),
        (rule.to_owned(), "policy.toml line 2: the rule has no `decision`; expected allow, ask or deny"),
        (
            format!("{shell}requires_aproval = true"),
            "policy.toml line 3: unknown key `requires_aproval` in [capabilities.\"Shell.Exec\"]; did you mean `requires_approval`?",
        ),
        (
            format!("{shell}requires_approval = \"yes\""),
            "policy.toml line 3: `requires_approval` is a string; expected true or false",
        ),
        (
            format!("{shell}blocked_commands = \"sudo\""),
            "policy.toml line 3: `blocked_commands` is a string; expected an array of strings",
        ),
        (
            format!("{shell}blocked_commands = [\n\"sudo\",\n7]"),
            "policy.toml line 5: `blocked_commands` contains an integer; expected an array of strings",
        ),
        (
            format!("{shell}sandbox = \"none\""),
            "policy.toml line 3: unknown sandbox `none`; expected read-only, workspace-write or off",
        ),
        (
            format!("{shell}max_output_bytes = -1"),
            "policy.toml line 3: `max_output_bytes` is an integer; expected an integer of at least 0",
        ),
        (
            "schema_version = 1\n[capabilities.\"File.Reed\"]".into(),
            "policy.toml line 2: unknown capability `File.Reed`; did you mean `File.Read`?",
        ),
        (
            "schema_version = 1\nexpires_at = 2027-06-30".into(),
            "policy.toml line 2: `expires_at` is a time; expected a time with an offset, such as 2027-06-30T00:00:00Z",
        ),
        (
            "schema_version = 1\n[capabilities.\"File.Read\"]\nallowed_paths = [\"a[\"]".into(),
            "policy.toml line 3: `a[` is not a valid glob: unclosed character class; missing ']'",
        ),
        (
            format!("{rule}decision = \"allow\"\nmatch = [\n\"git push --output=x >y\"]"),
            "policy.toml line 6: the rule does not match its `match` example `git push --output=x >y`",
        ),
        (
            format!("{rule}decision = \"deny\"\nnot_match = [\"env git push\"]"),
            "policy.toml line 5: the rule matches its `not_match` example `env git push`",
        ),
        (
            "schema_version = 1\n[tools]\ndisable = []".into(),
            "policy.toml line 3: unknown key `disable` in [tools]; did you mean `disabled`?",
        ),
        (
            "schema_version = 1\n[tools]\ndisabled = [\n\" \"]".into(),
            "policy.toml line 4: `disabled` contains an empty name; expected a tool or a pattern",
        ),
        (
            format!("{shell}limits = {{ process = 1 }}"),
            "policy.toml line 3: unknown key `process` in [capabilities.\"Shell.Exec\".limits]; did you mean `processes`?",
        ),
        (
            "schema_version = 1\n[capabilities.\"Mcp.Invoke\"]\nalowed_tools = []".into(),
            "policy.toml line 3: unknown key `alowed_tools` in [capabilities.\"Mcp.Invoke\"]; did you mean `allowed_tools`?",
        ),
        (
            "schema_version = 1\n[[capabilities.\"Mcp.Invoke\".rules]]\ndecision = \"deny\"".into(),
            "policy.toml line 2: the rule has no `tools`; expected an array such as [\"docs/*\"]",
        ),
        (
            "schema_version = 1\n[[capabilities.\"Mcp.Invoke\".rules]]\ntools = [\"a\"]\ndecision = \"ask\"\nfingerprint = \"f\""
                .into(),
            "policy.toml line 5: `fingerprint` is allowed only in an allow rule, and must be the one aye shows for the tool",
        ),
        ("schema_version = 1\ncapabilities = 1".into(), "policy.toml line 2: `capabilities` is an integer; expected a table"),
    ] {
        assert_eq!(error(&text), expected);
    }
}

#[test]
fn invalid_toml_is_rejected_with_its_line() {
    for (text, line) in [("schema_version = 1\nx = ", 2), ("schema_version = 1\nschema_version = 1", 2), ("a\n", 1)] {
        let error = Bundle::parse(text, "p").expect_err("refused");
        assert_eq!(error.line, Some(line), "{error}");
    }
    let error = Bundle::parse_bytes(b"schema_version = 1\nx = \"\xff\"", "p").expect_err("refused");
    assert_eq!(error.to_string(), "p line 2: byte 0xff is not valid UTF-8; expected a TOML file");
    assert!(Bundle::parse_bytes("\u{feff}schema_version = 1".as_bytes(), "p").is_ok());
    assert!(Bundle::parse(&"#".repeat(MAX_BYTES + 1), "p").is_err());
    assert!(Bundle::parse(&format!("schema_version = 1\nx = {}", "[".repeat(100_000)), "p").is_err());
}

#[test]
fn a_bundle_with_any_line_changed_is_rejected_or_parsed_as_a_whole() {
    for (index, line) in FULL.lines().enumerate() {
        for broken in [line.replace(" = ", "x = "), line.replace(" = ", " = [[]], "), format!("{line} x"), line.replace(']', "")]
        {
            let lines: Vec<&str> =
                FULL.lines().enumerate().map(|(at, old)| if at == index { broken.as_str() } else { old }).collect();
            if let Err(error) = Bundle::parse(&lines.join("\n"), "policy.toml") {
                assert!(error.line.is_some() && !error.message.is_empty(), "{error}");
            }
        }
    }
}
