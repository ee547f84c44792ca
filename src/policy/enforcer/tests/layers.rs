//! Tests how policy layers and rules interact, both in single cases and with random bundles.

use super::*;
use proptest::prelude::*;

fn layer(scope: Scope, text: &str) -> Layer {
    Layer::new(scope, parsed(&format!("schema_version = 1\n{text}")))
}

fn layered(layers: &[(Scope, &str)]) -> Enforcer {
    Enforcer::new(layers.iter().map(|(scope, text)| layer(*scope, text)).collect(), context())
}

fn read(path: &str) -> Action {
    Action::Read { target: target(path) }
}

fn write(path: &str) -> Action {
    Action::Write { target: target(path) }
}

fn delete(path: &str) -> Action {
    Action::Delete { target: target(path) }
}

fn invoke(server: &str, tool: &str, fingerprint: &str) -> Action {
    Action::Invoke { server: server.to_owned(), tool: tool.to_owned(), fingerprint: fingerprint.to_owned(), changed: false }
}

fn told(enforcer: &Enforcer, action: Action) -> (VerdictKind, String) {
    let told = enforcer.explain(&[action], now());
    (told.verdict, told.rule)
}

/// One case: the layers, the action and the expected verdict.
struct Case {
    layers: &'static [(Scope, &'static str)],
    action: Action,
    verdict: VerdictKind,
    rule: &'static str,
}

fn run(action: &str) -> Action {
    exec(action).remove(0)
}

const SHELL: &str = "[capabilities.\"Shell.Exec\"]\nrequires_approval = true\n";
const MAKE: &str = "[[capabilities.\"Shell.Exec\".rules]]\ncommand = [\"make\"]\ndecision = \"allow\"";
const WRITES: &str = "[capabilities.\"File.Write\"]\nallowed_paths = [\"${workspace}\"]\nrequires_approval = true\n\
    [[capabilities.\"File.Write\".rules]]\npaths = [\"docs\", \"/etc\", \".git\", \".envrc\"]\ndecision = \"allow\"\n\
    [[capabilities.\"File.Write\".rules]]\npaths = [\"docs/legal\"]\ndecision = \"ask\"\nreason = \"the lawyers read it\"\n\
    [[capabilities.\"File.Write\".rules]]\npaths = [\"docs/generated/**\"]\ndecision = \"deny\"\n\
    [[capabilities.\"File.Write\".rules]]\npaths = [\"old\"]\ndecision = \"allow\"\nexpires_at = 2026-01-01T00:00:00Z";
const TOOLS: &str = "[capabilities.\"Mcp.Invoke\"]\nallowed_tools = [\"docs/*\", \"git/log\"]\nrequires_approval = true\n\
    [[capabilities.\"Mcp.Invoke\".rules]]\ntools = [\"docs/search\"]\ndecision = \"allow\"\nfingerprint = \"f1\"\n\
    [[capabilities.\"Mcp.Invoke\".rules]]\ntools = [\"docs/delete*\"]\ndecision = \"deny\"\n\
    [[capabilities.\"Mcp.Invoke\".rules]]\ntools = [\"web/*\"]\ndecision = \"allow\"";

/// Returns a layer that extends the built-in policy with the entries in `rest`.
fn extending(scope: Scope, rest: &str) -> Layer {
    layer(scope, &format!("extends = \"built-in\"\n{rest}"))
}

#[test]
fn an_extending_file_overrides_its_keys_and_inherits_all_others() {
    use VerdictKind::{Allow, Ask, Deny};
    let user = extending(Scope::User, "[capabilities.\"Mcp.Invoke\"]\nallowed_tools = [\"docs/*\"]\nrequires_approval = true\n");
    let enforcer = Enforcer::new(vec![user], context());
    let is = |action: Action, verdict: VerdictKind, rule: &str| assert_eq!(told(&enforcer, action), (verdict, rule.to_owned()));
    is(invoke("docs", "search", "f1"), Ask, "user:5");
    is(read("src/a"), Allow, "built-in");
    is(write("src/a"), Ask, "built-in");
    is(run("git status"), Allow, "built-in");
    is(run("make"), Ask, "built-in");

    // A capability that the file names comes only from the file: the built-in rules for commands no longer apply.
    let user = extending(Scope::User, &format!("{SHELL}{MAKE}"));
    let enforcer = Enforcer::new(vec![user], context());
    let is = |action: Action, verdict: VerdictKind, rule: &str| assert_eq!(told(&enforcer, action), (verdict, rule.to_owned()));
    is(run("make"), Allow, "user:5");
    is(run("git status"), Ask, "user:4");
    is(write("src/a"), Ask, "built-in");
    // A capability that neither file names is not granted.
    is(invoke("docs", "search", "f1"), Deny, "user:1");
    assert!(enforcer.grants("File.Read") && enforcer.grants("Shell.Exec") && !enforcer.grants("Mcp.Invoke"));
}

#[test]
fn a_file_without_extends_inherits_nothing() {
    let enforcer = layered(&[(Scope::User, SHELL)]);
    assert_eq!(told(&enforcer, read("src/a")), (VerdictKind::Deny, "user:1".to_owned()));
    assert!(!enforcer.grants("File.Read"));
}

#[test]
fn saved_rules_join_an_inherited_capability() {
    let user = extending(Scope::User, "");
    let enforcer = Enforcer::new(vec![user, layer(Scope::Mine, MAKE)], context());
    assert_eq!(told(&enforcer, run("make")), (VerdictKind::Allow, "mine-here:2".to_owned()));
    assert_eq!(told(&enforcer, run("make install && ls")).0, VerdictKind::Allow);
    assert_eq!(told(&enforcer, run("cargo build")), (VerdictKind::Ask, "built-in".to_owned()));
}

#[test]
fn rules_inherited_by_a_managed_bundle_cannot_be_lifted() {
    let managed = extending(Scope::Managed, "");
    let lax = layer(Scope::User, "[capabilities.\"File.Write\"]\n[capabilities.\"File.Read\"]\n");
    let mut enforcer = Enforcer::new(vec![managed, lax], context());
    assert_eq!(told(&enforcer, write("src/a")), (VerdictKind::Ask, "built-in".to_owned()));
    enforcer.context.mode = Mode::AutoEdit;
    assert_eq!(told(&enforcer, write("src/a")).0, VerdictKind::Ask, "as if the text stood in the managed bundle");
    assert_eq!(told(&enforcer, read("src/a")).0, VerdictKind::Allow);
    // The user's own file does not list commands, so they remain denied.
    assert_eq!(told(&enforcer, run("ls")).0, VerdictKind::Deny);
}

#[test]
fn a_project_policy_cannot_extend() {
    let user = layer(Scope::User, "[capabilities.\"File.Read\"]\n");
    let project = extending(Scope::Project, "");
    assert_eq!(project.bundle.widens(), [(2, "`extends`".to_owned())]);
    let enforcer = Enforcer::new(vec![user, project], context());
    assert_eq!(told(&enforcer, write("src/a")).0, VerdictKind::Deny);
}

#[test]
fn every_verdict_names_the_deciding_line() {
    use Scope::{File, Managed, Mine, Project, Service, User};
    use VerdictKind::{Allow, Ask, Deny};
    let case = |layers, action, verdict, rule| Case { layers, action, verdict, rule };
    let cases = [
        // Order for files: blocked and deny, `allowed_paths`, ask, allow, approval.
        case(&[(User, WRITES)], write("src/a"), Ask, "user:4"),
        case(&[(User, WRITES)], write("docs/a"), Allow, "user:5"),
        case(&[(User, WRITES)], write("docs/legal/a"), Ask, "user:8"),
        case(&[(User, WRITES)], write("docs/generated/a"), Deny, "user:12"),
        case(&[(User, WRITES)], write("old/a"), Ask, "user:4"),
        case(&[(User, WRITES)], write("/etc/hosts"), Deny, "user:3"),
        case(&[(User, WRITES)], write(".git/config"), Deny, "built-in"),
        case(&[(User, WRITES)], write(".envrc"), Deny, "built-in"),
        case(&[(User, WRITES)], write("docs/a\u{202e}b"), Ask, "built-in"),
        case(
            &[(
                User,
                "[capabilities.\"File.Read\"]\nallowed_paths = [\n\"${workspace}\",\n\"/data\",\n]\nblocked_paths = [\n\"a\",\n\"b\"]",
            )],
            read("b"),
            Deny,
            "user:9",
        ),
        case(
            &[(User, "[capabilities.\"File.Read\"]\nallowed_paths = [\n\"${workspace}\",\n\"/data\"]")],
            read("/data/x"),
            Allow,
            "user:5",
        ),
        case(&[(User, "[capabilities.\"File.Read\"]\nallowed_paths = []")], read("a"), Deny, "user:3"),
        // Without `allowed_paths`, an allow rule covers only the workspace.
        case(
            &[(
                User,
                "[capabilities.\"File.Write\"]\nrequires_approval = true\n[[capabilities.\"File.Write\".rules]]\npaths = [\"/\"]\ndecision = \"allow\"",
            )],
            write("/srv/x"),
            Ask,
            "user:3",
        ),
        // Rules saved for this project count as the user's own rules.
        case(&[(User, SHELL), (Mine, MAKE)], run("make all"), Allow, "mine-here:2"),
        case(
            &[(User, "[capabilities.\"Shell.Exec\"]\nblocked_commands = [\"make\"]"), (Mine, MAKE)],
            run("make all"),
            Deny,
            "user:3",
        ),
        case(&[(User, "[capabilities.\"File.Read\"]"), (Mine, MAKE)], run("make all"), Deny, "user:1"),
        // `--policy` also replaces saved rules.
        case(&[(File, SHELL), (Mine, MAKE)], run("make all"), Ask, "policy:3"),
        case(&[(User, SHELL), (Mine, "[capabilities.\"File.Write\"]\nallowed_paths = [\"/\"]")], write("a"), Deny, "user:1"),
        // A managed layer takes precedence over all others.
        case(&[(User, "[capabilities.\"Shell.Exec\"]"), (Managed, SHELL)], run("make"), Ask, "managed:3"),
        case(&[(User, SHELL), (Managed, "")], run("make"), Ask, "user:3"),
        case(&[(User, SHELL), (Managed, "[capabilities.\"File.Read\"]")], run("make"), Deny, "managed:1"),
        // A project tightens the capabilities that it lists and leaves the others unchanged.
        case(&[(User, "[capabilities.\"Shell.Exec\"]"), (Project, SHELL)], run("make"), Ask, "project:3"),
        case(&[(User, WRITES), (Project, SHELL)], write("docs/a"), Allow, "user:5"),
        case(
            &[(User, WRITES), (Project, "[capabilities.\"File.Write\"]\nallowed_paths = [\"src\"]")],
            write("docs/a"),
            Deny,
            "project:3",
        ),
        // With `unlisted = "deny"`, a service also denies the capabilities that it does not list.
        case(&[(User, WRITES), (Service, "[capabilities.\"File.Read\"]")], write("docs/a"), Allow, "user:5"),
        case(
            &[(User, WRITES), (Service, "unlisted = \"deny\"\n[capabilities.\"File.Read\"]")],
            write("docs/a"),
            Deny,
            "service:1",
        ),
        // Tools of MCP servers.
        case(&[(User, TOOLS)], invoke("docs", "search", "f1"), Allow, "user:5"),
        case(&[(User, TOOLS)], invoke("docs", "search", "f2"), Ask, "user:5"),
        case(&[(User, TOOLS)], invoke("docs", "read", "x"), Ask, "user:4"),
        case(&[(User, TOOLS)], invoke("docs", "delete_all", "x"), Deny, "user:9"),
        case(&[(User, TOOLS)], invoke("web", "get", "x"), Deny, "user:3"),
        case(&[(User, SHELL)], invoke("docs", "search", "f1"), Deny, "user:1"),
        case(&[(User, "[capabilities.\"Mcp.Invoke\"]")], invoke("docs", "search", "f1"), Deny, "user:2"),
        case(&[(User, "[capabilities.\"Mcp.Invoke\"]\nallowed_tools = []")], invoke("docs", "search", "f1"), Deny, "user:3"),
        case(&[(User, "[capabilities.\"Mcp.Invoke\"]\nallowed_tools = [\"git/*\"]")], invoke("git", "log", ""), Allow, "user:3"),
        case(
            &[(User, TOOLS), (Project, "[tools]\ndisabled = [\"mcp.docs/*\"]")],
            invoke("docs", "search", "f1"),
            Deny,
            "project:3",
        ),
        case(
            &[(User, TOOLS), (Project, "[capabilities.\"Mcp.Invoke\"]\nrequires_approval = true")],
            invoke("docs", "search", "f1"),
            Ask,
            "project:3",
        ),
    ];
    for Case { layers, action, verdict, rule } in cases {
        assert_eq!(told(&layered(layers), action.clone()), (verdict, rule.to_owned()), "{action:?} under {layers:?}");
    }
}

#[test]
fn exact_rules_match_only_exactly_the_same_words() {
    let allow = shell(
        "requires_approval = true\n[[capabilities.\"Shell.Exec\".rules]]\ncommand = [\"find\", \".\", \"-name\", \"*.rs\"]\nexact = true\ndecision = \"allow\"",
    );
    for (line, expected) in [
        ("find . -name '*.rs'", VerdictKind::Allow),
        ("find . -name '*.rs' -delete", VerdictKind::Ask),
        ("find . -name 'a.rs'", VerdictKind::Ask),
        ("find . -name *.rs", VerdictKind::Ask),
        ("find .", VerdictKind::Ask),
        ("/usr/bin/find . -name '*.rs'", VerdictKind::Ask),
    ] {
        assert_eq!(verdict(&allow, line), expected, "{line}");
    }
    let deny = shell("[[capabilities.\"Shell.Exec\".rules]]\ncommand = [\"git\", \"push\"]\nexact = true\ndecision = \"deny\"");
    assert_eq!(verdict(&deny, "git push"), VerdictKind::Deny);
    assert_eq!(verdict(&deny, "git push --force"), VerdictKind::Allow);
}

#[test]
fn commands_that_name_a_blocked_path_need_approval() {
    let open = "[capabilities.\"Shell.Exec\"]\n[capabilities.\"File.Read\"]\nblocked_paths = [\"keys\"]\n\
        [[capabilities.\"File.Read\".rules]]\npaths = [\"secret\"]\ndecision = \"deny\"\n\
        [capabilities.\"File.Write\"]\nblocked_paths = [\"gen\"]";
    let mut enforcer = layered(&[(Scope::User, open)]);
    enforcer.context.mode = Mode::Auto;
    for (line, expected, rule) in [
        ("cat a", VerdictKind::Allow, "user:2"),
        ("cat keys/a", VerdictKind::Ask, "user:4"),
        ("grep -f secret/x a", VerdictKind::Ask, "user:5"),
        ("cat gen/a", VerdictKind::Allow, "user:2"),
        ("cat a > gen/a", VerdictKind::Ask, "user:9"),
        ("make > out", VerdictKind::Allow, "user:2"),
    ] {
        assert_eq!(told(&enforcer, run(line)), (expected, rule.to_owned()), "{line}");
    }
}

#[test]
fn no_rule_or_mode_lifts_an_approval_required_by_a_managed_layer() {
    let managed = "[capabilities.\"Shell.Exec\"]\n[[capabilities.\"Shell.Exec\".rules]]\ncommand = [\"make\"]\ndecision = \"ask\"\n\
        [capabilities.\"File.Write\"]\nrequires_approval = true";
    let user = "[capabilities.\"Shell.Exec\"]\n[[capabilities.\"Shell.Exec\".rules]]\ncommand = [\"make\"]\ndecision = \"allow\"\n\
        [capabilities.\"File.Write\"]";
    for mode in [Mode::Ask, Mode::AutoEdit, Mode::Auto] {
        let mut enforcer = layered(&[(Scope::User, user), (Scope::Managed, managed)]);
        enforcer.context.mode = mode;
        enforcer.grant(Grant::Command { words: vec!["make".into()], directory: PathBuf::from(ROOT) });
        enforcer.grant(Grant::Write { path: Path::new(ROOT).join("a") });
        for (action, rule) in [(run("make"), "managed:3"), (write("a"), "managed:7")] {
            let action = [action];
            let Verdict::Ask(question) = enforcer.judge(&action, now()) else { panic!("{mode:?} asks") };
            assert_eq!((question.rule.as_str(), enforcer.always(&action, now()).offers), (rule, Vec::new()), "{mode:?}");
        }
    }
}

#[test]
fn a_project_rule_that_asks_offers_nothing_that_a_managed_permission_did_not() {
    let managed = "[capabilities.\"Network.Http\"]\nrequires_approval = false\n\
        [capabilities.\"File.Write\"]\nallowed_paths = [\"${workspace}\"]\nrequires_approval = false\n";
    let project = "[capabilities.\"Network.Http\"]\nrequires_approval = true\n\
        [capabilities.\"File.Write\"]\nallowed_paths = [\"${workspace}\"]\nrequires_approval = true\n";
    let request = Action::Fetch { url: "https://docs.rs/x".to_owned(), method: "GET".to_owned() };
    for action in [request, write("src/a.rs")] {
        let without = layered(&[(Scope::Managed, managed)]).explain(std::slice::from_ref(&action), now());
        let with = layered(&[(Scope::Managed, managed), (Scope::Project, project)]).explain(std::slice::from_ref(&action), now());
        assert_eq!((without.verdict, with.verdict), (VerdictKind::Allow, VerdictKind::Ask), "{action:?}");
        assert_eq!(with.remember, without.remember, "{action:?}");
    }
}

#[test]
fn disabled_tools_are_not_offered_and_are_denied_when_called() {
    let enforcer = layered(&[(Scope::User, WRITES), (Scope::Project, "[tools]\ndisabled = [\n\"HttpRequest\",\n\"write*\"]")]);
    assert!(enforcer.offers("ReadFile").is_ok());
    let denial = enforcer.offers("WriteFile").expect_err("it is disabled");
    assert_eq!((denial.rule.as_str(), denial.reason.as_str()), ("project:5", "the tool `WriteFile` is disabled"));
    assert!(matches!(enforcer.judge_call("WriteFile", &[write("docs/a")], now()), Verdict::Deny(_)));
    assert!(matches!(enforcer.judge_call("EditFile", &[write("docs/a")], now()), Verdict::Allow(_)));
}

#[test]
fn models_are_allowed_unless_a_layer_forbids_them() {
    let enforcer = layered(&[
        (Scope::User, "[llm]\nallowed_models = [\"anthropic/*\", \"openai/gpt-*\"]"),
        (Scope::Project, "[llm]\nmax_output_tokens = 5\nallowed_models = [\"*/gpt-5\"]"),
    ]);
    let rule = |model: &str| enforcer.check_model(model).err().map(|denial| denial.rule);
    assert_eq!(rule("openai/gpt-5"), None);
    assert_eq!(rule("anthropic/x").as_deref(), Some("project:4"));
    assert_eq!(rule("other/x").as_deref(), Some("user:3"));
    assert!(layered(&[(Scope::User, "[llm]\nallowed_models = []")]).check_model("anthropic/x").is_err());
    assert!(layered(&[(Scope::User, "[llm]\nmax_output_tokens = 5")]).check_model("anthropic/x").is_ok());
}

const GREEDY: &str = r#"session_id = "x"
[capabilities."File.Write"]
unprotected_paths = [".vscode"]
requires_approval = false
[capabilities."Shell.Exec"]
sandbox = "off"
network = "allow"
preview = "never"
cache = "inherit"
environment = "inherit"
writable_paths = ["/opt"]
limits = { processes = 99999 }
[[capabilities."Shell.Exec".rules]]
command = ["make"]
decision = "allow"
args = "any"
[capabilities."Network.Http"]
allowed_private_hosts = ["10.0.0.1"]"#;

#[test]
fn widening_keys_in_a_project_policy_are_listed_by_line_and_have_no_effect() {
    let greedy = layer(Scope::Project, GREEDY);
    let lines: Vec<usize> = greedy.bundle.widens().iter().map(|(line, _)| *line).collect();
    assert_eq!(lines, [2, 4, 5, 7, 8, 9, 10, 11, 12, 14, 19], "{:?}", greedy.bundle.widens());
    assert_eq!(greedy.session_id(), None);
    let base = layer(Scope::BuiltIn, "[capabilities.\"Shell.Exec\"]");
    let (with, without) = (Enforcer::new(vec![base.clone(), greedy], context()), Enforcer::new(vec![base], context()));
    assert_eq!(with.terms(), without.terms());
    let ignored =
        with.entries().into_iter().filter(|entry| entry.note.as_deref() == Some("ignored: would widen the policy")).count();
    assert_eq!(ignored, 11);
}

#[test]
fn the_effective_view_lists_the_origin_and_state_of_each_key() {
    let texts = [
        (
            Scope::User,
            "[capabilities.\"Shell.Exec\"]\nsandbox = \"off\"\nblocked_commands = [\n  'a', # why\n  \"b\\\\\"]\nmax_output_bytes = 0x10",
        ),
        (Scope::Managed, "[capabilities.\"Shell.Exec\"]\nsandbox = \"read-only\""),
        (Scope::Project, "[capabilities.\"Shell.Exec\"]\nlimits = { processes = 4 }"),
    ];
    let mut layers: Vec<_> = texts.iter().map(|(scope, text)| layer(*scope, text)).collect();
    layers[0].file = Some(PathBuf::from("/u.toml"));
    let enforcer = Enforcer::new(layers, context());
    let shown: Vec<String> = enforcer
        .entries()
        .iter()
        .filter(|entry| entry.key != "schema_version")
        .map(|entry| format!("{} {} = {} {} {:?}", entry.section, entry.key, entry.value, entry.origin, entry.note))
        .collect();
    let section = "capabilities.\"Shell.Exec\"";
    assert_eq!(
        shown,
        [
            format!("{section} blocked_commands = [\"a\", 'b\\'] user:4 None"),
            format!("{section} limits = {{ processes = 4 }} project:3 Some(\"tightens\")"),
            format!("{section} max_output_bytes = 16 user:7 None"),
            format!("{section} sandbox = \"read-only\" managed:3 None"),
            format!("{section} sandbox = \"off\" user:3 Some(\"overridden by managed:3\")"),
        ]
    );
}

#[test]
fn examples_of_file_rules_are_checked_on_load() {
    let rule = "schema_version = 1\n[capabilities.\"File.Write\"]\nallowed_paths = [\"${workspace}\"]\n[[capabilities.\"File.Write\".rules]]\n";
    for (text, expected) in [
        ("paths = [\"docs/**\"]\ndecision = \"allow\"\nmatch = [\"docs/a\"]\nnot_match = [\"src/a\", \"/docs/a\"]", ""),
        (
            "paths = [\"docs\"]\ndecision = \"allow\"\nmatch = [\"src/a\"]",
            "p line 7: the rule does not match its `match` example `src/a`",
        ),
        (
            "paths = [\"/etc\"]\ndecision = \"allow\"\nmatch = [\"/etc/a\"]",
            "p line 7: the rule does not match its `match` example `/etc/a`",
        ),
        (
            "paths = [\"/\"]\ndecision = \"deny\"\nnot_match = [\"~/a\"]",
            "p line 7: the rule matches its `not_match` example `~/a`",
        ),
        ("decision = \"deny\"", "p line 4: the rule has no `paths`; expected an array such as [\"${workspace}/docs\"]"),
        ("paths = [\"a\"]", "p line 4: the rule has no `decision`; expected allow, ask or deny"),
        ("paths = [\"a\"]\ndecison = \"deny\"", "p line 6: unknown key `decison` in [[rules]]; did you mean `decision`?"),
    ] {
        let found = Bundle::parse(&format!("{rule}{text}"), "p").err().map(|error| error.to_string()).unwrap_or_default();
        assert_eq!(found, expected);
    }
}

/// Generates an optional key with one of these values.
fn key(name: &'static str, values: &'static [&'static str]) -> BoxedStrategy<String> {
    prop::option::of(prop::sample::select(values))
        .prop_map(move |value| value.map_or_else(String::new, |value| format!("{name} = {value}\n")))
        .boxed()
}

/// Generates an optional table with these keys and rules.
fn table(name: &'static str, keys: Vec<BoxedStrategy<String>>, rules: BoxedStrategy<String>) -> BoxedStrategy<String> {
    let whole = (keys, prop::collection::vec(rules, 0..3)).prop_map(move |(keys, rules)| {
        let rules: Vec<_> = rules.into_iter().map(|rule| format!("[[{name}.rules]]\n{rule}")).collect();
        format!("[{name}]\n{}{}", keys.concat(), rules.concat())
    });
    prop::option::of(whole).prop_map(Option::unwrap_or_default).boxed()
}

const DECISIONS: &[&str] = &["decision = \"allow\"\n", "decision = \"ask\"\n", "decision = \"deny\"\n"];
const SWITCH: &[&str] = &["true", "false"];
const PATHS: &[&str] =
    &["[]", "[\"${workspace}\"]", "[\"src\"]", "[\"**/.env\"]", "[\"/\"]", "[\"~/notes\", \"docs\"]", "[\".vscode\", \".git\"]"];
const COMMANDS: &[&str] = &["[]", "[\"make\"]", "[\"git\", \"ls\"]", "[\"*\"]", "[\"rm -rf\"]"];

fn chosen(lines: &'static [&'static str]) -> BoxedStrategy<String> {
    prop::sample::select(lines).prop_map(str::to_owned).boxed()
}

fn joined(parts: Vec<BoxedStrategy<String>>) -> BoxedStrategy<String> {
    parts.prop_map(|parts| parts.concat()).boxed()
}

fn file_rule() -> BoxedStrategy<String> {
    let paths =
        chosen(&["paths = [\"src\"]\n", "paths = [\"/\"]\n", "paths = [\"**/.env\", \"docs\"]\n", "paths = [\".vscode\"]\n"]);
    joined(vec![paths, chosen(DECISIONS), key("expires_at", &["2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z"])])
}

fn shell_rule() -> BoxedStrategy<String> {
    let command = chosen(&[
        "command = [\"make\"]\n",
        "command = [\"git\", [\"status\", \"push\"]]\n",
        "command = [\"*\"]\n",
        "command = [\"ls\"]\n",
        "command = [\"find\"]\n",
    ]);
    joined(vec![command, chosen(DECISIONS), key("args", &["\"any\""]), key("exact", SWITCH)])
}

fn tool_rule() -> BoxedStrategy<String> {
    joined(vec![chosen(&["tools = [\"docs/*\"]\n", "tools = [\"*\"]\n", "tools = [\"git/log\"]\n"]), chosen(DECISIONS)])
}

fn files(name: &'static str) -> BoxedStrategy<String> {
    let mut keys = vec![key("allowed_paths", PATHS), key("blocked_paths", PATHS), key("requires_approval", SWITCH)];
    keys.push(key("max_file_size_bytes", &["0", "1000", "99_999_999_999"]));
    keys.push(key("approval_rule", &["\"x\""]));
    if !name.contains("Read") {
        keys.push(key("unprotected_paths", PATHS));
    }
    table(name, keys, file_rule())
}

/// Generates bundles with the keys that these tests need.
fn bundles() -> BoxedStrategy<String> {
    let shell_keys = vec![
        key("requires_approval", SWITCH),
        key("blocked_commands", COMMANDS),
        key("allowed_commands", COMMANDS),
        key("sandbox", &["\"off\"", "\"read-only\"", "\"workspace-write\""]),
        key("network", &["\"allow\"", "\"deny\""]),
        key("preview", &["\"never\"", "\"always\"", "\"offer\""]),
        key("approve", &["\"effects\"", "\"command\""]),
        key("cache", &["\"inherit\"", "\"private\""]),
        key("environment", &["\"inherit\"", "\"core\"", "[\"PATH\", \"X_TOKEN\"]", "[]"]),
        key("limits", &["{ processes = 1 }", "{ processes = 99_999, cpu_seconds = 99_999, layer_mb = 99_999 }"]),
        key("max_output_bytes", &["1", "99_999_999"]),
        key("writable_paths", &["[\"/opt\"]", "[]"]),
    ];
    let tool_keys = vec![key("allowed_tools", &["[]", "[\"*\"]", "[\"docs/*\"]"]), key("requires_approval", SWITCH)];
    let network = vec![
        key("allowed_domains", &["[]", "[\"docs.rs\", \"*.example.com\"]", "[\"10.0.0.7\"]"]),
        key("blocked_domains", &["[]", "[\"docs.rs\"]"]),
        key("allowed_private_hosts", &["[\"10.0.0.7\"]", "[\"127.0.0.1:8080\"]"]),
        key("requires_approval", SWITCH),
    ];
    let llm = vec![
        key("allowed_models", &["[]", "[\"*\"]", "[\"a/*\"]"]),
        key("max_output_tokens", &["1", "99_999_999"]),
        key("max_session_cost_usd", &["0.5", "1000"]),
    ];
    joined(vec![
        key("session_id", &["\"x\""]),
        key("expires_at", &["2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z", "2028-01-01T00:00:00Z"]),
        prop::option::of(llm.prop_map(|keys| format!("[llm]\n{}", keys.concat()))).prop_map(Option::unwrap_or_default).boxed(),
        chosen(&["", "", "[tools]\ndisabled = [\"Read*\", \"Mcp.docs/*\"]\n"]),
        files("capabilities.\"File.Read\""),
        files("capabilities.\"File.Write\""),
        files("capabilities.\"File.Delete\""),
        table("capabilities.\"Shell.Exec\"", shell_keys, shell_rule()),
        table("capabilities.\"Mcp.Invoke\"", tool_keys, tool_rule()),
        prop::option::of(network.prop_map(|keys| format!("[capabilities.\"Network.Http\"]\n{}", keys.concat())))
            .prop_map(Option::unwrap_or_default)
            .boxed(),
    ])
}

fn actions() -> BoxedStrategy<Vec<Action>> {
    let paths = ["a", "src/a.rs", "docs/x", ".env", ".vscode/t", ".git/config", "/etc/x", "/home/user/notes/n", "a\u{202e}b"];
    let lines = [
        "ls",
        "ls -la src",
        "make",
        "make all",
        "git status",
        "git push",
        "rm -rf x",
        "cat .env",
        "ls && make",
        "ls > out",
        "curl x.org",
        "$x",
        "find . -delete",
        "cat src/a && ls docs",
        "sudo id",
        "git status; cat docs/x",
    ];
    let path = prop::sample::select(paths.to_vec());
    let one = prop_oneof![
        path.clone().prop_map(read),
        path.clone().prop_map(write),
        path.prop_map(delete),
        prop::sample::select(lines.to_vec()).prop_map(run),
        (prop::sample::select(vec!["docs", "git"]), prop::sample::select(vec!["search", "log"]))
            .prop_map(|(server, tool)| invoke(server, tool, "f")),
        prop::sample::select(vec!["https://docs.rs/x", "https://a.example.com", "http://10.0.0.7/", "http://127.0.0.1:8080"])
            .prop_map(|url| Action::Fetch { url: url.to_owned(), method: "GET".to_owned() }),
    ];
    prop::collection::vec(one, 1..3).boxed()
}

/// Generates the settings of a run other than its policy layers: mode, sandbox and grants.
fn surroundings() -> BoxedStrategy<(Mode, Sandbox, bool)> {
    let modes = prop::sample::select(vec![Mode::Plan, Mode::Ask, Mode::AutoEdit, Mode::Auto]);
    (modes, prop::sample::select(vec![Sandbox::Present, Sandbox::Absent]), any::<bool>()).boxed()
}

fn placed(layers: Vec<Layer>, (mode, sandbox, granted): (Mode, Sandbox, bool)) -> Enforcer {
    let mut enforcer = Enforcer::new(layers, Context { mode, sandbox, ..context() });
    if granted {
        for line in [&["ls"][..], &["make"], &["git", "status"], &["make", "all"], &["cat", ".env"], &["ls", "-la", "src"]] {
            let words = line.iter().map(|word| (*word).to_owned()).collect();
            enforcer.grant(Grant::Command { words, directory: PathBuf::from(ROOT) });
        }
        for path in ["a", "src/a.rs", "docs/x", ".env"] {
            enforcer.grant(Grant::Write { path: Path::new(ROOT).join(path) });
        }
    }
    enforcer
}

/// Generates every kind of bundle except a project's: the built-in one, a user's and a managed one.
fn bases() -> BoxedStrategy<Vec<(Scope, String)>> {
    prop_oneof![
        Just(Vec::new()),
        bundles().prop_map(|text| vec![(Scope::User, text)]),
        (bundles(), bundles()).prop_map(|(user, managed)| vec![(Scope::User, user), (Scope::Managed, managed)]),
        (bundles(), bundles()).prop_map(|(user, mine)| vec![(Scope::User, user), (Scope::Mine, mine)]),
    ]
    .boxed()
}

fn made(base: &[(Scope, String)]) -> Vec<Layer> {
    if base.is_empty() {
        return vec![Layer::new(Scope::BuiltIn, Bundle::built_in().expect("parses"))];
    }
    base.iter().map(|(scope, text)| layer(*scope, text)).collect()
}

fn gives(environment: &EnvironmentTerms, name: &str) -> bool {
    let (core, secret) = (name == "PATH", name.contains("TOKEN"));
    match environment {
        EnvironmentTerms::Inherit => !secret,
        EnvironmentTerms::Core => core,
        EnvironmentTerms::Only(names) => names.iter().any(|listed| listed == name),
        EnvironmentTerms::InheritOf(names) => !secret && names.iter().any(|listed| listed == name),
        EnvironmentTerms::CoreOf(names) => core && names.iter().any(|listed| listed == name),
    }
}

/// Returns a bundle with one capability and no allow list, so only rules and approval determine the verdict.
fn ruled(rules: &[String], capability: &str) -> String {
    let rules: Vec<_> = rules.iter().map(|rule| format!("[[capabilities.\"{capability}\".rules]]\n{rule}")).collect();
    format!("[capabilities.\"{capability}\"]\nrequires_approval = true\n{}", rules.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn a_project_policy_never_widens_permissions(base in bases(), project in bundles(), actions in actions(), around in surroundings()) {
        let without = placed(made(&base), around);
        let with = placed(made(&base).into_iter().chain([layer(Scope::Project, &project)]).collect(), around);
        let (before, after) = (without.explain(&actions, now()), with.explain(&actions, now()));
        prop_assert!(after.verdict >= before.verdict, "{:?} became {:?} by {}", before, after, after.rule);
        let offered = after.remember.as_ref().filter(|_| after.verdict == VerdictKind::Ask);
        prop_assert!(offered.is_none() || offered == before.remember.as_ref());
        for name in ["ReadFile", "RunCommand", "Mcp.docs/search"] {
            prop_assert!(with.offers(name).is_err() || without.offers(name).is_ok());
        }
        for capability in ["File.Read", "File.Write", "File.Delete", "Shell.Exec", "Mcp.Invoke"] {
            prop_assert!(!with.grants(capability) || without.grants(capability));
        }
        prop_assert!(with.check_model("a/b").is_err() || without.check_model("a/b").is_ok());
        prop_assert!(with.expiry_reason(now()).is_some() || without.expiry_reason(now()).is_none());
        prop_assert!(with.max_file_size_bytes() <= without.max_file_size_bytes());
        let least = |enforcer: &Enforcer| enforcer.llm().filter_map(|llm| llm.max_output_tokens).min().unwrap_or(u64::MAX);
        prop_assert!(least(&with) <= least(&without));
        let (loose, tight) = (without.terms(), with.terms());
        prop_assert!(tight.sandbox <= loose.sandbox && tight.network <= loose.network);
        prop_assert!(tight.preview <= loose.preview && tight.cache <= loose.cache);
        prop_assert!(tight.max_output_bytes <= loose.max_output_bytes);
        prop_assert!(tight.limits.processes <= loose.limits.processes && tight.limits.cpu_seconds <= loose.limits.cpu_seconds);
        prop_assert!(tight.limits.layer_mb <= loose.limits.layer_mb);
        prop_assert_eq!(&tight.writable_paths, &loose.writable_paths);
        for name in ["PATH", "X_TOKEN", "OTHER"] {
            prop_assert!(!gives(&with.environment(), name) || gives(&without.environment(), name), "{}", name);
        }
    }

    #[test]
    fn remembered_project_rules_widen_permissions_only_by_allow_rules(
        user in bundles(), mine in bundles(), actions in actions(), around in surroundings()
    ) {
        let mine = mine.replace("decision = \"allow\"", "decision = \"ask\"");
        // Ask rules precede `allowed_commands`, so the user's lists are removed.
        let user: String = user.split_inclusive('\n').filter(|line| !line.starts_with("allowed_commands")).collect();
        let without = placed(vec![layer(Scope::User, &user)], around).explain(&actions, now());
        let with = placed(vec![layer(Scope::User, &user), layer(Scope::Mine, &mine)], around).explain(&actions, now());
        prop_assert!(with.verdict >= without.verdict, "{:?} became {:?}", without, with);
    }

    #[test]
    fn an_additional_deny_or_ask_rule_never_widens_permissions(
        rules in prop::collection::vec(shell_rule(), 0..4), more in shell_rule(),
        paths in prop::collection::vec(file_rule(), 0..4), path in file_rule(),
        actions in actions(), around in surroundings()
    ) {
        let tight = |rule: String| rule.replace("decision = \"allow\"", "decision = \"ask\"");
        let bundle = |rules: &[String], paths: &[String]| {
            format!("{}{}", ruled(rules, "Shell.Exec"), ruled(paths, "File.Write"))
        };
        let without = placed(vec![layer(Scope::User, &bundle(&rules, &paths))], around).explain(&actions, now());
        let (mut rules, mut paths) = (rules, paths);
        rules.push(tight(more));
        paths.push(tight(path));
        let with = placed(vec![layer(Scope::User, &bundle(&rules, &paths))], around).explain(&actions, now());
        prop_assert!(with.verdict >= without.verdict, "{:?} became {:?}", without, with);
    }

    #[test]
    fn the_order_of_rules_in_a_file_does_not_matter(
        rules in prop::collection::vec(shell_rule(), 0..5), paths in prop::collection::vec(file_rule(), 0..5),
        tools in prop::collection::vec(tool_rule(), 0..4), actions in actions(), around in surroundings()
    ) {
        let bundle = |rules: &[String], paths: &[String], tools: &[String]| {
            let tools = ruled(tools, "Mcp.Invoke").replace("requires", "allowed_tools = [\"*\"]\nrequires");
            format!("{}{}{tools}", ruled(rules, "Shell.Exec"), ruled(paths, "File.Write"))
        };
        let one = placed(vec![layer(Scope::User, &bundle(&rules, &paths, &tools))], around).explain(&actions, now());
        let turned = |list: &[String]| list.iter().rev().cloned().collect::<Vec<_>>();
        let other = bundle(&turned(&rules), &turned(&paths), &turned(&tools));
        let other = placed(vec![layer(Scope::User, &other)], around).explain(&actions, now());
        prop_assert_eq!(one.verdict, other.verdict);
        prop_assert_eq!(one.remember, other.remember);
    }

    #[test]
    fn the_order_of_layers_does_not_matter(
        mut base in bases(), project in bundles(), actions in actions(), around in surroundings()
    ) {
        base.push((Scope::Project, project));
        let one = placed(made(&base), around).explain(&actions, now());
        base.reverse();
        let other = placed(made(&base), around).explain(&actions, now());
        prop_assert_eq!(
            (one.verdict, one.rule, one.reason, one.remember),
            (other.verdict, other.rule, other.reason, other.remember)
        );
    }
}

#[test]
fn a_layer_describes_what_it_allows_asks_about_and_denies() {
    let rules = |enforcer: &Enforcer| enforcer.layers().remove(0).rules;
    let told = rules(&built_in());
    for expected in [
        "allow  git status|diff|log|show (reads only)",
        "allow  file reads: ${workspace}",
        "ask    file changes: ${workspace}",
        "ask    other commands",
        "ask    web searches",
    ] {
        assert!(told.iter().any(|rule| rule == expected), "{expected}: {told:#?}");
    }
    let table = |asks: bool| {
        format!(
            "schema_version = 1\n[capabilities.\"Shell.Exec\"]\nblocked_commands = [\"sudo\"]\n{}\
             [[capabilities.\"Shell.Exec\".rules]]\ncommand = [\"git\", \"push\"]\ndecision = \"deny\"\n\
             [[capabilities.\"Shell.Exec\".rules]]\ncommand = [\"ls\"]\ndecision = \"allow\"\n",
            if asks { "requires_approval = true\n" } else { "" }
        )
    };
    let told = rules(&enforcer(parsed(&table(true))));
    assert_eq!(told, ["allow  ls", "ask    other commands", "deny   commands: sudo", "deny   git push"]);
    // A project cannot allow anything.
    let layers = vec![Layer::new(Scope::User, parsed(&table(true))), Layer::new(Scope::Project, parsed(&table(false)))];
    let layers = Enforcer::new(layers, context()).layers();
    let project = layers.iter().find(|layer| layer.scope == "project").unwrap();
    assert_eq!(project.rules, ["deny   commands: sudo", "deny   git push"]);
}
