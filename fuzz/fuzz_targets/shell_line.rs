//! Any text as a shell line: no panic, the same verdict twice, and never milder with more text behind it.

#![no_main]

use libfuzzer_sys::fuzz_target;
use aye::fuzzing::policy::{Bundle, Context, Enforcer, Layer, Sandbox, Scope};
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
    };
    Enforcer::new(vec![Layer::new(Scope::User, bundle)], context)
});

fn verdict(line: &str) -> VerdictKind {
    let cwd = Target { given: ".".into(), real: PathBuf::from("/home/user/project"), place: Place::Directory };
    let actions = [Action::Exec { command: line.to_owned(), cwd }];
    let told = ENFORCER.explain(&actions, jiff::Timestamp::UNIX_EPOCH);
    assert_ne!(told.reason, aye::fuzzing::policy::guard::FAILED);
    told.verdict
}

fuzz_target!(|line: &str| {
    let alone = verdict(line);
    assert_eq!(alone, verdict(line));
    assert!(alone == VerdictKind::Deny || verdict(&format!("{line}\ntouch x")) != VerdictKind::Allow);
});
