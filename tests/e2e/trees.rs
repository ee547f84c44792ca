//! Directory trees, copied and moved while the disk fills up or the process is killed: the target name never has a
//! partial tree.
#![cfg(target_os = "linux")]

use crate::support::{Project, TIMEOUT, wait_until};
use std::process::Command;

const FILES: usize = 400;

/// Creates a project with a tree of many files.
fn project() -> Project {
    let project = Project::empty();
    for number in 0..FILES {
        let path = project.path(&format!("tree/{}/{number}.txt", number % 7));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "x".repeat(16 << 10)).unwrap();
    }
    project
}

fn files(project: &Project, directory: &str) -> usize {
    let count = |entry: std::io::Result<std::fs::DirEntry>| std::fs::read_dir(entry.unwrap().path()).map_or(0, Iterator::count);
    std::fs::read_dir(project.path(directory)).map_or(0, |entries| entries.map(count).sum())
}

fn unfinished(project: &Project) -> bool {
    let mut entries = std::fs::read_dir(project.path("")).unwrap();
    entries.any(|entry| entry.unwrap().file_name().to_string_lossy().starts_with(".aye-"))
}

#[test]
fn a_killed_copy_is_either_complete_or_absent() {
    let project = project();
    for _ in 0..6 {
        let running = project.start(&["tool", "call", "Copy", "--yes", "--args", r#"{"source":"tree","destination":"copy"}"#]);
        assert!(wait_until(TIMEOUT, || unfinished(&project) || project.exists("copy")), "it never began");
        running.kill();
        assert!([0, FILES].contains(&files(&project, "copy")), "half a copy");
        assert_eq!(files(&project, "tree"), FILES);
        for entry in std::fs::read_dir(project.path("")).unwrap().map(Result::unwrap) {
            if entry.file_name() != "tree" {
                std::fs::remove_dir_all(entry.path()).unwrap();
            }
        }
    }
}

#[test]
fn a_killed_removal_leaves_no_file_under_the_name() {
    let project = project();
    let running = project.start(&["tool", "call", "Delete", "--yes", "--args", r#"{"path":"tree","recursive":true}"#]);
    assert!(wait_until(TIMEOUT, || !project.exists("tree")), "it never began");
    running.kill();
    assert!(!project.exists("tree"));
}

#[test]
fn a_full_disk_leaves_no_partial_copy_and_keeps_the_source_of_a_move() {
    let possible = Command::new("unshare").args(["-Urm", "true"]).status().is_ok_and(|status| status.success());
    if !possible {
        println!("skipped: this system lets nobody mount a disk of his own");
        return;
    }
    let project = project();
    std::fs::create_dir(project.path("small")).unwrap();
    let script = format!(
        "mount -t tmpfs -o size=1m none small; \
         for tool in Copy Move; do '{0}' tool call $tool --yes --args '{{\"source\":\"tree\",\"destination\":\"small/new\"}}' >>said 2>&1; \
         echo \"code $?\" >>said; ls -A small >>left; done",
        env!("CARGO_BIN_EXE_aye")
    );
    let mut shell = Command::new("unshare");
    shell.args(["-Urm", "bash", "-c", &script]).current_dir(project.path("")).env_clear().envs(project.environment());
    assert!(shell.status().unwrap().success());
    let said = project.read("said");
    assert_eq!(said.matches("code 1").count(), 2, "{said}");
    assert_eq!(said.to_lowercase().matches("no space").count(), 2, "{said}");
    assert_eq!(project.read("left"), "", "something is left on the full disk\n{said}");
    assert_eq!(files(&project, "tree"), FILES);
}
