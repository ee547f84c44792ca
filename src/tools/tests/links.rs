//! Tests of lines that a rule allows. Without a sandbox, they need approval if a symlink leads outside the workspace.

use super::{Bench, block_on, context};
use crate::policy::{Bundle, Context, Enforcer, Layer, Sandbox, Scope, Verdict};
use crate::ports::ToolRouter;
use crate::protocol::{ErrorCode, Mode};
use jiff::Timestamp;
use serde_json::json;
use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Arc;

const POLICY: &str = r#"schema_version = 1
[capabilities."File.Read"]
allowed_paths = ["${workspace}", "${workspace}/../shared"]
blocked_paths = ["**/.env"]
[capabilities."Shell.Exec"]
sandbox = "off"
requires_approval = true
[[capabilities."Shell.Exec".rules]]
command = [["ls", "cat", "head", "wc", "grep", "rg", "find", "test", "[", "echo", "du", "cp", "tar"]]
decision = "allow"
"#;

struct Tree {
    bench: Bench,
    enforcer: Enforcer,
}

impl Tree {
    fn new() -> Self {
        let mut bench = Bench::new();
        for (name, content) in [("a.txt", "a"), ("src/b.rs", "b"), ("plain/x", "x"), (".env", "secret"), ("names", "a.txt\0")] {
            bench.write(name, content);
        }
        for (directory, name) in [("elsewhere", "secret"), ("shared", "x")] {
            fs::create_dir(bench.root.join(directory)).unwrap();
            fs::write(bench.root.join(directory).join(name), "outside").unwrap();
        }
        fs::create_dir(bench.path("src/deep")).unwrap();
        for (link, target) in [
            ("in", "src"),
            ("plain/in", "../plain"),
            ("out", "../elsewhere"),
            ("src/deep/file", "../../../elsewhere/secret"),
            ("dangling", "../elsewhere/new"),
            ("loop", "loop"),
            ("notes", "../shared"),
            ("env", ".env"),
            ("process", "/proc/self/environ"),
        ] {
            symlink(target, bench.path(link)).unwrap();
        }
        let policy = POLICY.replace("${workspace}/../shared", bench.root.join("shared").to_str().unwrap());
        let own = Context {
            roots: vec![bench.settings.workspace.clone()],
            home: bench.root.join("home/user"),
            mode: Mode::Ask,
            sandbox: Sandbox::Absent,
            own: Vec::new(),
            skills: Vec::new(),
        };
        let layer = Layer::new(Scope::User, Bundle::parse(&policy, "policy.toml").unwrap());
        let enforcer = Enforcer::new(vec![layer], own);
        let followed = enforcer.clone();
        bench.settings.paths.may_follow = Arc::new(move |path| followed.can_follow_link(path));
        Self { bench, enforcer }
    }

    /// Returns the reason why a line needs approval, or `None` if it is allowed.
    fn asks(&self, line: &str) -> Option<String> {
        let plan = self.bench.plan("RunCommand", json!({"command": line})).unwrap();
        match plan.judge(&self.enforcer, Timestamp::UNIX_EPOCH) {
            Verdict::Allow(_) => None,
            Verdict::Ask(question) => Some(question.reason),
            Verdict::Deny(denial) => panic!("{line} is denied: {}", denial.reason),
        }
    }
}

#[test]
fn commands_whose_links_leave_the_workspace_need_approval_and_others_are_allowed() {
    let tree = Tree::new();
    for line in [
        "cat a.txt",
        "cat in/b.rs",
        "cat loop",
        "cat missing",
        "cat *.txt",
        "cat i*/b.rs",
        "cat pl*/x",
        "cat notes/x",
        "ls",
        "ls -R",
        "ls -L plain",
        "ls -LR plain",
        "grep -r outside .",
        "grep -R x plain in/b.rs",
        "find . -name secret",
        "find -L plain",
        "rg x",
        "rg -L x plain",
        "wc -l < a.txt",
        "test -f in/b.rs",
        "echo pl*",
        "du .",
        "du -L plain",
        "cp a.txt plain/y",
        "tar -czf o.tgz src",
        "cd in && cat b.rs",
        "cd plain && ls",
        "cd missing && cat out/secret",
    ] {
        assert_eq!(tree.asks(line), None, "{line}");
    }
    for line in [
        "cat out/secret",
        "cd out && ls",
        "cd ./out && pwd",
        "cd src && cat deep/file",
        "cat ./out/secret",
        "cat in/deep/file",
        "wc -l < out/secret",
        "cat a.txt && head -n 1 src/deep/file",
        "cat o*/secret",
        "cat o*",
        "cat ?ut/secret",
        "cat src/*/file",
        "cat [o]ut/secret",
        "cat src/**",
        "echo out/*",
        "ls out",
        "ls -L",
        "ls --dereference .",
        "ls -LR src",
        "cat dangling",
        "cat env",
        "cat process",
        "test -f out/secret",
        "[ -e out ]",
        "grep -R outside .",
        "grep -Rn outside",
        "grep --dereference-recursive outside src",
        "grep -R x plain in",
        "grep -f out/secret a.txt",
        "grep -R --exclude-from=names outside",
        "grep -R --exclude-from names outside",
        "rg -L --ignore-file=names outside",
        "find -L -newer a.txt",
        "find -L . -name secret",
        "find src -follow",
        "rg -L outside",
        "rg --follow outside src",
        "wc --files0-from=names",
        "du -L .",
        "du --dereference src",
        "cp a.txt out/x",
        "cp a.txt dangling",
        "cp -rL src plain/copy",
        "tar chf o.tar src",
    ] {
        assert!(tree.asks(line).is_some(), "{line} is allowed");
    }
    let why = tree.asks("cat out/secret").unwrap();
    assert!(why.contains("`out/secret` goes through a symlink to `") && why.contains("elsewhere/secret`"), "{why}");
}

#[test]
fn commands_that_follow_links_in_a_huge_tree_need_approval() {
    let tree = Tree::new();
    for directory in 0..26 {
        let directory = tree.bench.path(&format!("many/{directory}"));
        fs::create_dir_all(&directory).unwrap();
        (0..2_000).for_each(|name| drop(fs::File::create(directory.join(name.to_string())).unwrap()));
    }
    let why = tree.asks("grep -R x many").unwrap();
    assert!(why.contains("more than 50000 entries"), "{why}");
    assert_eq!(tree.asks("grep -r x many"), None);
}

#[test]
fn a_link_created_after_the_permit_prevents_the_run() {
    let tree = Tree::new();
    let arguments = json!({"command": "cat plain/x"});
    let plan = tree.bench.plan("RunCommand", arguments).unwrap();
    let Verdict::Allow(permit) = plan.judge(&tree.enforcer, Timestamp::UNIX_EPOCH) else { panic!("it is allowed") };
    fs::remove_file(tree.bench.path("plain/x")).unwrap();
    symlink("../../elsewhere/secret", tree.bench.path("plain/x")).unwrap();
    let result = block_on(tree.bench.router().run(plan, permit, context()));
    let error = result.error.expect("the command does not run");
    assert!(error.code == ErrorCode::Conflict && error.message.contains("plain/x"), "{error:?}");
    assert!(!result.output_text.contains("outside"));
}

#[test]
fn a_working_directory_behind_a_link_is_evaluated_by_its_real_path() {
    let tree = Tree::new();
    let judged = |cwd: &str| {
        let plan = tree.bench.plan("RunCommand", json!({"command": "cat secret", "cwd": cwd})).unwrap();
        plan.judge(&tree.enforcer, Timestamp::UNIX_EPOCH)
    };
    assert!(matches!(judged("in"), Verdict::Allow(_)));
    assert!(matches!(judged("out"), Verdict::Deny(_)));
}
