//! Tests of the backup made of ignored files before a command removes them. Files up to the limit are saved, and the
//! rest are listed.

use super::*;
use crate::ports::{FileRewind, RewindStart};
use std::process::Command as Program;

/// Creates a workspace that contains a source file, one of the user's ignored files, and build output.
fn ignoring() -> Session {
    Session::new(&[(".gitignore", "target\n*.env\n"), ("a.rs", "fn a() {}\n"), ("own.env", "KEY=1\n"), ("target/built", "x\n")])
}

/// Creates a sparse file of this size.
fn large(session: &Session, name: &str, mib: u64) {
    session.bench.write(name, "");
    fs::File::options().write(true).open(session.bench.path(name)).unwrap().set_len(mib << 20).unwrap();
}

fn notes(session: &Session, line: &str) -> String {
    let plan = session.runtime.block_on(session.router.plan(call("RunCommand", json!({"command": line})))).unwrap();
    plan.proposal.unwrap().notes.join("\n")
}

#[test]
fn the_approval_lists_saved_and_lost_files() {
    let session = ignoring();
    for line in ["git clean -fdx", "git clean -xdf && ls", "git clean -fdX"] {
        let notes = notes(&session, line);
        assert!(notes.contains("removes ignored files; saved before it runs: 2 ignored files"), "{line}: {notes}");
    }
    for line in ["git clean -fd", "git status", "ls target"] {
        assert!(!notes(&session, line).contains("removes ignored"), "{line}");
    }
    large(&session, "target/debug/large", 65);
    let notes = notes(&session, "git clean -fdx");
    let words = "not saved, so lost for good: target/ (2 files, 66 MiB); saved before it runs: 1 ignored file";
    assert!(notes.contains(words), "{notes}");
}

#[test]
fn small_files_are_saved_first_and_only_some_lost_directories_are_named() {
    let session = Session::new(&[(".gitignore", "big*\nown\n"), ("own", "mine\n")]);
    for number in 0..9 {
        large(&session, &format!("big{number}/file"), 65 + number);
    }
    let notes = notes(&session, "git clean -fdx");
    assert!(notes.contains("lost for good: big0/ (1 file, 65 MiB), big1/ (1 file, 66 MiB)"), "{notes}");
    assert!(notes.contains("big5/ (1 file, 70 MiB) and 3 more; saved before it runs: 1 ignored file"), "{notes}");
}

#[test]
fn a_rewind_restores_ignored_files_and_reports_unsaved_ones() {
    if Program::new("git").arg("--version").output().is_err() {
        eprintln!("skipped: git is not installed");
        return;
    }
    let session = ignoring();
    large(&session, "target/debug/large", 65);
    let init = Program::new("git").args(["init", "-q"]).current_dir(&session.bench.settings.workspace).status().unwrap();
    assert!(init.success());
    session.router.step_started(1);
    session.does("RunCommand", json!({"command": "git clean -fdxq"}));
    assert!(!session.bench.path("own.env").exists() && !session.bench.path("target").exists());
    let plan = session.runtime.block_on(session.router.plan_rewind(RewindStart::Step(1))).unwrap();
    let told = plan.cannot.join("\n");
    assert!(told.contains("removed ignored files that were not saved: target/ (2 files, 66 MiB)"), "{told}");
    let rewind = FileRewind { number: 1, since: RewindStart::Step(1), step: 2, overwrite: Vec::new() };
    session.runtime.block_on(session.router.rewind(rewind)).unwrap();
    assert_eq!(session.bench.read("own.env"), b"KEY=1\n");
    assert_eq!(session.bench.read("a.rs"), b"fn a() {}\n");
    assert!(!session.bench.path("target").exists());
}
