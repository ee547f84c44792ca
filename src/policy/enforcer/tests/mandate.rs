//! Tests which actions an approved plan allows, and which it never allows.

use super::*;
use crate::protocol::Coverage;
use proptest::prelude::*;

const RULES: &str = "schema_version = 1\n[capabilities.\"File.Read\"]\n[capabilities.\"File.Write\"]\nrequires_approval = true\n\
    [[capabilities.\"File.Write\".rules]]\npaths = [\"denied\"]\ndecision = \"deny\"\n\
    [[capabilities.\"File.Write\".rules]]\npaths = [\"free\"]\ndecision = \"allow\"\n\
    [capabilities.\"File.Delete\"]\nrequires_approval = true\n\
    [capabilities.\"Shell.Exec\"]\nrequires_approval = true\nblocked_commands = [\"curl\"]\n\
    [capabilities.\"Network.Http\"]\nrequires_approval = true\nblocked_domains = [\"evil.example\"]\n";

fn enforcer(mode: Mode) -> Enforcer {
    Enforcer::new(vec![Layer::new(Scope::User, parsed(RULES))], Context { mode, ..context() })
}

fn write(path: &str) -> Action {
    Action::Write { target: target(path) }
}

fn run(line: &str) -> Action {
    exec(line).remove(0)
}

fn get(url: &str) -> Action {
    Action::Fetch { url: url.to_owned(), method: "GET".to_owned() }
}

fn verdict(enforcer: &Enforcer, action: &Action) -> VerdictKind {
    enforcer.explain(std::slice::from_ref(action), now()).verdict
}

/// Returns a write to a path at which a directory exists.
fn directory(path: &str) -> Action {
    let Action::Write { target } = write(path) else { unreachable!() };
    Action::Write { target: Target { place: Place::Directory, ..target } }
}

/// Returns actions that no mandate may allow.
fn never() -> Vec<Action> {
    let mut all = vec![
        write("denied"),
        write(".git/config"),
        write(".envrc"),
        directory("/"),
        directory("."),
        directory("src"),
        Action::Delete { target: target("src/a.rs") },
        Action::Read { target: target("/etc/passwd") },
        get("https://evil.example/"),
        get("http://169.254.169.254/"),
        get("http://localhost/"),
        get("https://user@docs.example/"),
        Action::Fetch { url: "https://docs.example/".to_owned(), method: "POST".to_owned() },
        get("https://docs.example/?data=aGVsbG8gd29ybGQgaGVsbG8gd29ybGQgaGVsbG8gd29ybGQgaGVsbG8gd29ybGQ"),
    ];
    let lines = [
        "rm -rf /",
        "rm -rf target",
        "sudo make",
        "curl https://docs.example",
        "python3 build.py",
        "python3 -c 'print(1)'",
        "node script.js",
        "npm test",
        "make",
        "bash -c ls",
        "sh build.sh",
        "git push",
        "git reset --hard",
        "echo x > src/a.rs",
        "cargo test; rm -rf src",
        "cargo test $(cat x)",
        "cargo test && cargo build",
        "eval ls",
        "xargs rm",
    ];
    all.extend(lines.map(run));
    all
}

#[test]
fn an_approved_plan_allows_exactly_its_lines_until_it_ends() {
    let mut policy = enforcer(Mode::Ask);
    let planned = [write("src/a.rs"), run("cargo test"), get("https://docs.example/")];
    for action in &planned {
        assert_eq!(verdict(&policy, action), VerdictKind::Ask, "before: {action:?}");
    }
    assert_eq!(policy.coverage(&planned, now()), [Coverage::Covered, Coverage::Covered, Coverage::Covered]);
    policy.set_mandate(&planned, now());
    for action in &planned {
        let told = policy.explain(std::slice::from_ref(action), now());
        assert_eq!((told.verdict, told.rule.as_str()), (VerdictKind::Allow, "plan"), "{action:?}");
    }
    assert_eq!(verdict(&policy, &get("https://docs.example/page")), VerdictKind::Allow, "the host, not the URL, is named");
    for other in [
        write("src/b.rs"),
        write("src/a.rs.bak"),
        run("cargo test --release"),
        run("cargo build"),
        get("https://www.docs.example/"),
        get("http://docs.example/"),
        Action::Delete { target: target("src/a.rs") },
    ] {
        assert_eq!(verdict(&policy, &other), VerdictKind::Ask, "{other:?}");
    }
    policy.end_mandate();
    for action in &planned {
        assert_eq!(verdict(&policy, action), VerdictKind::Ask, "after: {action:?}");
    }
}

#[test]
fn a_plan_never_covers_actions_that_need_separate_approval() {
    let mut policy = enforcer(Mode::Ask);
    let all = never();
    for (action, coverage) in all.iter().zip(policy.coverage(&all, now())) {
        assert!(matches!(coverage, Coverage::Asks { .. } | Coverage::Denied { .. }), "{action:?}: {coverage:?}");
    }
    let before: Vec<VerdictKind> = all.iter().map(|action| verdict(&policy, action)).collect();
    policy.set_mandate(&all, now());
    assert!(!policy.has_mandate());
    assert_eq!(all.iter().map(|action| verdict(&policy, action)).collect::<Vec<_>>(), before);
}

#[test]
fn plan_lines_already_allowed_name_their_rule() {
    let policy = enforcer(Mode::Ask);
    let told = policy.coverage(&[write("free")], now());
    assert!(matches!(&told[..], [Coverage::Allowed { rule }] if rule.starts_with("user:")), "{told:?}");
}

#[test]
fn a_plan_cannot_lift_approvals_required_by_a_managed_policy() {
    let managed = "schema_version = 1\n[capabilities.\"File.Write\"]\nrequires_approval = true\n[capabilities.\"Shell.Exec\"]\n\
        requires_approval = true\n[capabilities.\"Network.Http\"]\nrequires_approval = true\n";
    let layers = vec![Layer::new(Scope::User, parsed(RULES)), Layer::new(Scope::Managed, parsed(managed))];
    let mut policy = Enforcer::new(layers, context());
    let planned = [write("src/a.rs"), run("cargo test"), get("https://docs.example/")];
    for coverage in policy.coverage(&planned, now()) {
        assert!(matches!(coverage, Coverage::Asks { .. }), "{coverage:?}");
    }
    policy.set_mandate(&planned, now());
    for action in &planned {
        assert_eq!(verdict(&policy, action), VerdictKind::Ask);
    }
}

#[test]
fn a_stricter_policy_revokes_permissions_of_a_plan() {
    let mut policy = enforcer(Mode::Ask);
    policy.set_mandate(&[write("src/a.rs"), run("cargo test")], now());
    let stricter = format!("{RULES}[[capabilities.\"File.Write\".rules]]\npaths = [\"src\"]\ndecision = \"deny\"\n");
    let stricter = stricter.replace("[\"curl\"]", "[\"curl\", \"cargo\"]");
    policy.replace(Enforcer::new(vec![Layer::new(Scope::User, parsed(&stricter))], context()));
    assert_eq!(verdict(&policy, &write("src/a.rs")), VerdictKind::Deny);
    assert_eq!(verdict(&policy, &run("cargo test")), VerdictKind::Deny);
}

#[test]
fn a_plan_overrides_neither_plan_mode_nor_a_missing_sandbox() {
    let planned = [write("src/a.rs"), run("cargo test")];
    let mut policy = enforcer(Mode::Plan);
    assert_eq!(policy.coverage(&planned, now()), [Coverage::Covered, Coverage::Covered], "it holds once plan mode is left");
    policy.set_mandate(&planned, now());
    for action in &planned {
        assert_eq!(verdict(&policy, action), VerdictKind::Deny);
    }
    policy.set_mode(Mode::Ask);
    assert_eq!(verdict(&policy, &planned[0]), VerdictKind::Allow);
    let bare = Context { sandbox: Sandbox::Absent, ..context() };
    let mut bare = Enforcer::new(vec![Layer::new(Scope::User, parsed(RULES))], bare);
    assert!(matches!(&bare.coverage(&planned, now())[1], Coverage::Asks { .. }));
    bare.set_mandate(&planned, now());
    assert_eq!(verdict(&bare, &planned[1]), VerdictKind::Ask);
}

/// Generates actions of all kinds, some of which a mandate can allow.
fn actions() -> BoxedStrategy<Action> {
    let words =
        prop::sample::select(vec!["cargo", "test", "ls", "git", "status", "python3", "make", "rm", "-rf", "src", "a;b", "npm"]);
    let line = prop::collection::vec(words, 1..4).prop_map(|words| run(&words.join(" ")));
    let path = prop::sample::select(vec!["src/a.rs", "src/b.rs", "denied", ".git/config", "free", "docs/x.md", "/etc/passwd"]);
    let host = prop::sample::select(vec!["docs.example", "evil.example", "localhost", "a.docs.example", "docs.example:8443"]);
    prop_oneof![
        line,
        path.prop_map(write),
        host.prop_map(|host| get(&format!("https://{host}/"))),
        prop::sample::select(never()),
    ]
    .boxed()
}

proptest! {
    #[test]
    fn a_mandate_allows_only_covered_actions_and_nothing_after_its_end(
        planned in prop::collection::vec(actions(), 0..6),
        asked in prop::collection::vec(actions(), 1..6),
        mode in prop::sample::select(vec![Mode::Plan, Mode::Ask, Mode::AutoEdit, Mode::Auto]),
    ) {
        let plain = enforcer(mode);
        let mut policy = plain.clone();
        policy.set_mandate(&planned, now());
        let covered: Vec<&Action> = planned
            .iter()
            .zip(policy.coverage(&planned, now()))
            .filter(|(_, coverage)| *coverage == Coverage::Covered)
            .map(|(action, _)| action)
            .collect();
        for action in asked.iter().chain(&planned) {
            let (before, told) = (verdict(&plain, action), policy.explain(std::slice::from_ref(action), now()));
            if told.verdict != before {
                prop_assert_eq!(told.verdict, VerdictKind::Allow);
                prop_assert_eq!(before, VerdictKind::Ask, "a denial is never lifted");
                prop_assert_eq!(told.rule.as_str(), "plan");
                prop_assert!(told.risk <= Risk::Medium && !told.critical, "{:?}", action);
                prop_assert!(covered.contains(&action), "{:?} is not in the plan", action);
            }
        }
        policy.end_mandate();
        for action in asked.iter().chain(&planned) {
            prop_assert_eq!(verdict(&policy, action), verdict(&plain, action));
        }
    }
}
