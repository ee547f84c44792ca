//! `aye --version`.

use crate::support::Project;
use std::path::Path;
use std::process::Command;

#[test]
fn the_version_contains_the_commit_and_target_of_the_build() {
    let output = Project::empty().aye(&["--version"]).exits(0);
    let version = concat!("aye ", env!("CARGO_PKG_VERSION"));
    let rest = output.stdout.trim_end().strip_prefix(version).unwrap_or_else(|| panic!("{}", output.stdout));
    let built = rest.strip_prefix(" (").and_then(|rest| rest.strip_suffix(')'));
    let built = built.unwrap_or_else(|| panic!("{}", output.stdout));
    let (commit, target) = built.split_once(", ").map_or((None, built), |(commit, target)| (Some(commit), target));
    let is_of_this_machine = target.contains(std::env::consts::ARCH) && target.contains(std::env::consts::OS);
    assert!(is_of_this_machine || cfg!(target_os = "macos"), "{target}");
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    if !root.join(".git").exists() && !root.join(".cargo_vcs_info.json").exists() {
        assert_eq!(commit, None, "nothing names the commit of this source tree");
        return;
    }
    let commit = commit.unwrap_or_else(|| panic!("{}", output.stdout));
    assert!(commit.len() == 12 && commit.bytes().all(|byte| byte.is_ascii_hexdigit()), "{commit}");
    // If git is available, the commit must exist in this repository.
    let git = |arguments: &[&str]| Command::new("git").arg("-C").arg(root).args(arguments).output();
    if git(&["rev-parse", "HEAD"]).is_ok_and(|output| output.status.success()) {
        let known = git(&["cat-file", "-e", &format!("{commit}^{{commit}}")]).unwrap();
        assert!(known.status.success(), "{commit}: {}", String::from_utf8_lossy(&known.stderr));
    }
}
