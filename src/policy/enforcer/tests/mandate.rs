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
    all.extend(RUN_OTHER_CODE.iter().chain(REACH_FURTHER).map(|line| run(line)));
    all
}

/// Command lines that run code which the plan does not show.
const RUN_OTHER_CODE: &[&str] = &[
    "./run.sh",
    "bin/tool",
    "ghc -e main",
    "runghc x.hs",
    "erl -eval 'halt().'",
    "escript x",
    "elixir x.exs",
    "scala x.scala",
    "groovy x.groovy",
    "jshell x",
    "java X.java",
    "java -jar x.jar",
    "swift x.swift",
    "guile x.scm",
    "racket x.rkt",
    "R -f x.R",
    "octave x.m",
    "expect x.exp",
    "wish x.tcl",
    "ipython x.py",
    "micropython x.py",
    "dart run",
    "kotlin x.kts",
    "nim r x.nim",
    "crystal run x.cr",
    "clojure x.clj",
    "bb x.clj",
    "dotnet fsi x.fsx",
    "nix-shell",
    "sqlite3 x.db '.shell touch evil'",
    "cmake -P x.cmake",
    "m4 x.m4",
    "sed -i s/a/b/ a.txt",
    "ninja",
    "scons",
    "doit",
    "invoke build",
    "gulp",
    "grunt",
    "ant",
    "mise run build",
    "nx run build",
    "turbo run build",
    "lein test",
    "sbt test",
    "bazel run //:x",
    "cargo run",
    "go generate",
    "unknown-program",
    "cargo --config build.rustc-wrapper='./x' build",
    "cargo build --config build.rustc-wrapper='./x'",
    "CARGO_BUILD_RUSTC_WRAPPER=./x cargo build",
    "go vet -vettool=./x",
    "gcc -fplugin=./x.so a.c",
    "tar xf a.tar --checkpoint-action=exec=id",
    "sort --compress-program=./x a.txt",
    "git -c core.fsmonitor='echo x>evil2' status",
    "git -c alias.x='!touch evil' x",
    "git -c core.sshCommand=./x fetch",
];
/// Command lines that change files which the plan does not name.
const REACH_FURTHER: &[&str] = &[
    "git rm -r .",
    "git add .",
    "git commit -m x",
    "git log --output=keep.txt",
    "sort -o keep.txt a.txt",
    "mv * /tmp",
    "mv src /tmp/gone",
    "touch *",
    "touch ~/x",
    "touch .",
    "touch ./",
    "touch ../x",
    "touch denied",
    "mkdir /tmp/x",
    "chmod +x run.sh",
    "chmod -R 777 .",
    "chown -R root .",
    "cp -r . /tmp/all",
    "cp a.txt .git/hooks/pre-commit",
    "cp a.txt .envrc",
    "install -m 755 a.txt .git/hooks/post-commit",
    "gofmt -w .",
    "truncate -s 0 keep.txt",
    "rsync -a --delete /tmp/empty/ ./",
    "patch -p1",
    "unzip -o x.zip",
    "tar xf x.tar",
    "ln -s /tmp link",
    "kill 1",
];

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
fn a_command_in_a_plan_runs_in_a_copy_and_may_change_only_named_files() {
    let mut policy = enforcer(Mode::Ask);
    let format = run("rustfmt src/b.rs");
    policy.set_mandate(&[write("src/a.rs"), format.clone()], now());
    let Verdict::Allow(permit) = policy.judge(std::slice::from_ref(&format), now()) else { panic!("it needs approval") };
    assert!(permit.is_by_plan() && permit.layer().is_some());
    let names = |change: &Action| policy.plan_names(&permit, change, now());
    for path in ["src/a.rs", "src/b.rs", "free"] {
        assert!(names(&write(path)), "{path}");
    }
    for change in [write("src/c.rs"), write("denied"), write(".envrc"), Action::Delete { target: target("src/a.rs") }] {
        assert!(!names(&change), "{change:?}");
    }
    // Such a command needs approval where it cannot run in a copy.
    let open = RULES.replace("blocked_commands = [\"curl\"]", "blocked_commands = [\"curl\"]\nnetwork = \"allow\"");
    policy.replace(Enforcer::new(vec![Layer::new(Scope::User, parsed(&open))], context()));
    assert_eq!(verdict(&policy, &format), VerdictKind::Ask);
    assert!(matches!(&policy.coverage(&[format], now())[..], [Coverage::Asks { reason }] if reason.contains("in a copy")));
}

#[test]
fn a_quoted_word_in_a_grant_does_not_match_a_word_that_the_shell_expands() {
    for (literal, expanded) in [("touch 'q*'", "touch q*"), ("touch 'a[b]'", "touch a[b]")] {
        let mut planned = enforcer(Mode::Ask);
        planned.set_mandate(&[run(literal), run(expanded)], now());
        assert_eq!(verdict(&planned, &run(literal)), VerdictKind::Allow, "{literal}");
        assert_eq!(verdict(&planned, &run(expanded)), VerdictKind::Ask, "{expanded}");
        let mut kept = enforcer(Mode::Ask);
        let always = kept.always(&[run(literal)], now());
        kept.keep(&always.offers[0].rules, Some(PathBuf::from(ROOT))).expect("a rule");
        assert_eq!(verdict(&kept, &run(literal)), VerdictKind::Allow, "{literal}");
        assert_eq!(verdict(&kept, &run(expanded)), VerdictKind::Ask, "{expanded}");
        let always = kept.always(&[run(expanded)], now());
        assert!(always.offers.is_empty(), "no rule matches {expanded}: {always:?}");
    }
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
