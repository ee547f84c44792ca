//! If the tests are run by root, repeats some of them as an ordinary user, in a copy of this program.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

/// ID of a user who owns no files.
const ORDINARY: u32 = 65_534;
/// Tests whose outcome depends on the user's rights.
const TESTS: [&str; 3] = ["sys::sandbox::", "sys::process::", "sys::overlay::"];
/// Slow tests among them, which check many inputs or interruptions. They are skipped, because the user's rights affect
/// all these checks in the same way and shorter tests check that too.
const SKIPPED: [&str; 6] = [
    "::kills::",
    "::random::",
    "a_commit_interrupted_at_any_step_is_finished_on_recovery",
    "an_interrupted_partial_commit_is_finished_with_the_same_changes",
    "disk_errors_during_a_commit_are_reported_and_retried_later",
    "thousands_of_paths_can_be_hidden",
];

#[test]
fn the_sandbox_tests_pass_for_an_unprivileged_user() {
    if !nix::unistd::geteuid().is_root() {
        println!("skipped: only root can switch users; root tests both");
        return;
    }
    let bases = ["/opt", "/var/lib", "/srv"].map(PathBuf::from);
    let made = bases.into_iter().find_map(|base| tempfile::Builder::new().prefix("aye-ordinary-").tempdir_in(base).ok());
    let Some(directory) = made else {
        println!("skipped: no directory outside /tmp is accessible to every user");
        return;
    };
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let program = directory.path().join("tests");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let home = directory.path().join("home");
    fs::create_dir(&home).unwrap();
    for path in [&program, &home] {
        chown(path, Some(ORDINARY), Some(ORDINARY)).unwrap();
    }
    let run = Command::new(&program)
        .args(TESTS)
        .args(["--test-threads", "2"])
        .args(SKIPPED.iter().flat_map(|name| ["--skip", name]))
        .uid(ORDINARY)
        .gid(ORDINARY)
        .current_dir(&home)
        .env("HOME", &home)
        .env("CARGO_TARGET_TMPDIR", &home)
        .env_remove("XDG_RUNTIME_DIR")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success(), "{said}\n{}", String::from_utf8_lossy(&run.stderr));
    assert!(said.contains("test result: ok"), "{said}");
}
