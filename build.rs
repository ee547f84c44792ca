//! Build script: determines how to link, the commit, and the shared test material.
//!
//! * If the C library of this machine reads packed relocations, they are packed. Otherwise, relocations are a tenth of
//!   the program, and all of them are read and remain in memory at every start.
//! * `AYE_COMMIT_FILE` is a file that names the commit for `aye --version`, or is empty. Only the small binary reads
//!   the file, so the library is not built again for a new commit.
//! * `AYE_TARGET` is the target of the build, for `aye --version`.
//! * `cfg(aye_shared)` is set if the shared test material exists: in `$AYE_SHARED`, or else in `../shared`. Otherwise,
//!   the tests that need the material are ignored. `AYE_SHARED_DIR` is the directory of the material.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// First version of glibc that reads packed relocations.
const SINCE: (u32, u32) = (2, 36);

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    link();
    println!("cargo::rustc-env=AYE_COMMIT_FILE={}", commit_file(&root).display());
    println!("cargo::rustc-env=AYE_TARGET={}", env::var("TARGET").unwrap_or_default());
    find_shared(&root);
}

fn link() {
    let is_native = env::var_os("TARGET").is_some_and(|target| env::var_os("HOST").is_some_and(|host| host == target));
    let is_gnu = env::var_os("CARGO_CFG_TARGET_ENV").is_some_and(|libc| libc == "gnu");
    if is_native && is_gnu && glibc().is_some_and(|version| version >= SINCE) {
        // A linker that does not support this option prints a warning and ignores it.
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

fn glibc() -> Option<(u32, u32)> {
    let said = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?.stdout;
    let (major, minor) = str::from_utf8(&said).ok()?.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.split('.').next()?.parse().ok()?))
}

/// Returns a file that names the commit of the source tree. This is git's log of HEAD, which grows with every commit
/// and which cargo watches because the program includes it. If the log is missing, returns a file with the commit of
/// the package or of the current branch, or an empty file if no commit is known. Does not run git, which may be missing
/// and rejects repositories of other users.
fn commit_file(root: &Path) -> PathBuf {
    if let Some(record) = git_directory(root).map(|git| git.join("logs/HEAD")).filter(|record| record.is_file()) {
        return record;
    }
    let copy = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default()).join("commit");
    let commit = packaged_commit(root).or_else(|| branch_commit(root));
    if let Err(error) = fs::write(&copy, commit.unwrap_or_default()) {
        println!("cargo::error=cannot write {}: {error}", copy.display());
    }
    copy
}

/// Returns the commit that `cargo package` recorded.
fn packaged_commit(root: &Path) -> Option<String> {
    let record = root.join(".cargo_vcs_info.json");
    watch_existing(&record);
    let text = fs::read_to_string(&record).ok()?;
    let (_, rest) = text.split_once("\"sha1\"")?;
    Some(rest.split('"').nth(1)?.to_owned())
}

/// Returns the commit of the current branch, for a repository without a log of HEAD.
fn branch_commit(root: &Path) -> Option<String> {
    let git = git_directory(root)?;
    let head = git.join("HEAD");
    watch_existing(&head);
    let text = fs::read_to_string(&head).ok()?;
    let Some(name) = text.trim().strip_prefix("ref: ") else { return Some(text.trim().to_owned()) };
    // A linked worktree has its own HEAD, but the branches are in the main repository.
    let common = fs::read_to_string(git.join("commondir")).map_or_else(|_| git.clone(), |path| git.join(path.trim()));
    let (loose, packed) = (common.join(name), common.join("packed-refs"));
    watch_existing(&loose);
    watch_existing(&packed);
    if let Ok(text) = fs::read_to_string(&loose) {
        return Some(text.trim().to_owned());
    }
    let text = fs::read_to_string(&packed).ok()?;
    text.lines().find_map(|line| line.strip_suffix(name)?.strip_suffix(' ').map(str::to_owned))
}

/// Returns `.git`, or the directory to which a file of this name refers.
fn git_directory(root: &Path) -> Option<PathBuf> {
    let git = root.join(".git");
    if git.is_dir() {
        return Some(git);
    }
    watch_existing(&git);
    let text = fs::read_to_string(&git).ok()?;
    Some(root.join(text.trim().strip_prefix("gitdir: ")?))
}

fn find_shared(root: &Path) {
    println!("cargo::rustc-check-cfg=cfg(aye_shared)");
    println!("cargo::rerun-if-env-changed=AYE_SHARED");
    let named = env::var_os("AYE_SHARED").filter(|path| !path.is_empty());
    let shared = root.join(named.as_ref().map_or(Path::new("../shared"), Path::new));
    // Both files must exist, because another directory may have the same name. Only these files are watched, and not
    // the whole directory.
    let is_there = ["corpora/terminal.jsonl", "fixtures/acp/schema.v1.json"].iter().all(|path| {
        let path = shared.join(path);
        watch_existing(&path);
        path.is_file()
    });
    println!("cargo::rustc-env=AYE_SHARED_DIR={}", shared.display());
    if is_there {
        println!("cargo::rustc-cfg=aye_shared");
    } else if named.is_some() {
        println!(
            "cargo::warning=AYE_SHARED is {}, which has no test material: the tests that need it are ignored",
            shared.display()
        );
    }
}

fn watch(path: &Path) {
    println!("cargo::rerun-if-changed={}", path.display());
}

/// Watches a path if it exists. A missing path would make cargo run this script at every build.
fn watch_existing(path: &Path) {
    if path.exists() {
        watch(path);
    }
}
