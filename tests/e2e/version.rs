//! `aye --version`.

use crate::support::Project;
use std::path::Path;
use std::process::Command;

#[test]
fn the_version_names_the_commit_that_was_built() {
    let output = Project::empty().aye(&["--version"]).exits(0);
    let version = concat!("aye ", env!("CARGO_PKG_VERSION"));
    let rest = output.stdout.trim_end().strip_prefix(version).unwrap_or_else(|| panic!("{}", output.stdout));
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    if !root.join(".git").exists() && !root.join(".cargo_vcs_info.json").exists() {
        assert_eq!(rest, "", "nothing names the commit of this source tree");
        return;
    }
    let commit = rest.strip_prefix(" (").and_then(|rest| rest.strip_suffix(')'));
    let commit = commit.unwrap_or_else(|| panic!("{}", output.stdout));
    assert!(commit.len() == 12 && commit.bytes().all(|byte| byte.is_ascii_hexdigit()), "{commit}");
    // If git is available, it is checked to be a commit of this repository.
    let git = |arguments: &[&str]| Command::new("git").arg("-C").arg(root).args(arguments).output();
    if git(&["rev-parse", "HEAD"]).is_ok_and(|output| output.status.success()) {
        let known = git(&["cat-file", "-e", &format!("{commit}^{{commit}}")]).unwrap();
        assert!(known.status.success(), "{commit}: {}", String::from_utf8_lossy(&known.stderr));
    }
}
