//! Verdicts on shell lines under one policy, for the targets that compare them.

use aye::fuzzing::policy::{Bundle, Context, Enforcer, Layer, Sandbox, Scope, guard};
use aye::fuzzing::protocol::{Action, Mode, Place, Target, VerdictKind};
use std::path::PathBuf;
use std::sync::LazyLock;

static ENFORCER: LazyLock<Enforcer> = LazyLock::new(|| {
    let text = include_str!("../../tests/cases/policy/reading.toml");
    let bundle = Bundle::parse(text, "reading.toml").expect("a bundle");
    let context = Context {
        roots: vec![PathBuf::from("/home/user/project")],
        home: PathBuf::from("/home/user"),
        mode: Mode::Ask,
        sandbox: Sandbox::Present,
        own: Vec::new(),
        skills: Vec::new(),
    };
    Enforcer::new(vec![Layer::new(Scope::User, bundle)], context)
});

/// Returns the verdict on a line that runs in the workspace. Fails if the evaluation panicked.
pub fn verdict(line: &str) -> VerdictKind {
    let cwd = Target { given: ".".into(), real: PathBuf::from("/home/user/project"), place: Place::Directory };
    let actions = [Action::Exec { command: line.to_owned(), cwd }];
    let explanation = ENFORCER.explain(&actions, jiff::Timestamp::UNIX_EPOCH);
    assert_ne!(explanation.reason, guard::FAILED);
    explanation.verdict
}
