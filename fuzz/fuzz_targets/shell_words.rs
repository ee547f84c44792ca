//! Any words as a command, in two ways of quoting that bash reads as the same words: the same verdict for both.

#![no_main]

use aye::fuzzing::policy::{Bundle, Context, Enforcer, Layer, Sandbox, Scope};
use aye::fuzzing::protocol::{Action, Mode, Place, Target, VerdictKind};
use libfuzzer_sys::fuzz_target;
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

/// Programs whose options decide whether a line only reads.
const PROGRAMS: &[&str] =
    &["ls", "cat", "find", "grep", "rg", "git", "sort", "sed", "head", "tail", "fd", "wc", "env", "tree", "diff"];

fn verdict(line: &str) -> VerdictKind {
    let cwd = Target { given: ".".into(), real: PathBuf::from("/home/user/project"), place: Place::Directory };
    let actions = [Action::Exec { command: line.to_owned(), cwd }];
    ENFORCER.explain(&actions, jiff::Timestamp::UNIX_EPOCH).verdict
}

fn single(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

fn double(word: &str) -> String {
    let mut quoted = String::from('"');
    for letter in word.chars() {
        if matches!(letter, '\\' | '"' | '$' | '`') {
            quoted.push('\\');
        }
        quoted.push(letter);
    }
    quoted + "\""
}

fuzz_target!(|given: (u8, Vec<&str>)| {
    let (program, words) = given;
    // No word of a command has a NUL byte.
    if words.len() > 6 || words.iter().any(|word| word.contains('\0')) {
        return;
    }
    let program = PROGRAMS[usize::from(program) % PROGRAMS.len()];
    let line = |quote: fn(&str) -> String| {
        words.iter().fold(program.to_owned(), |line, word| format!("{line} {}", quote(word)))
    };
    let (single, double) = (line(single), line(double));
    assert_eq!(verdict(&single), verdict(&double), "{single}\n{double}");
});
