//! Reads the state of a repository from `.git` without running git. Because the project may not be trusted yet, only
//! content in the form that git itself writes is accepted.
//!
//! `gix` is not used: its index and object support would add about thirty crates for what `changes` and `index_diff`
//! do within size and time limits.

pub(crate) mod changes;
pub(crate) mod index_diff;

use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// Maximum size of `HEAD`, in bytes. The file contains a single line.
const HEAD_BYTES: u64 = 1024;
/// Maximum size of a branch name, in bytes. Branches with longer names are not shown.
const BRANCH_BYTES: usize = 120;
/// Maximum size of the `packed-refs` file, in bytes.
const PACKED_BYTES: u64 = 4 << 20;
/// Number of bytes read from the end of the reflog.
const LOG_BYTES: u64 = 256 << 10;
/// Number of hexadecimal digits in an abbreviated commit ID.
const COMMIT_LETTERS: usize = 9;
/// Files that exist in `.git` while an operation is in progress, each with the name of that operation.
const UNDER_WAY: [(&str, &str); 6] = [
    ("MERGE_HEAD", "a merge"),
    ("rebase-merge", "a rebase"),
    ("rebase-apply", "a rebase"),
    ("CHERRY_PICK_HEAD", "a cherry-pick"),
    ("REVERT_HEAD", "a revert"),
    ("BISECT_LOG", "a bisection"),
];

pub(crate) struct Repository {
    /// Top-level directory of the work tree.
    level: PathBuf,
    /// Git directory for this work tree, which contains `HEAD` and the state of any operation in progress.
    git: PathBuf,
    /// Git directory that contains the branches. Differs from `git` in a linked work tree.
    common: PathBuf,
}

impl Repository {
    /// Finds the repository that contains the given directory.
    pub(crate) fn find(workspace: &Path) -> Option<Self> {
        let level = workspace.ancestors().find(|level| level.join(".git").symlink_metadata().is_ok())?;
        let git = level.join(".git").canonicalize().ok()?;
        let git = match one_line(&git) {
            // In a linked work tree, `.git` is a file that contains the path of the git directory.
            Some(pointer) => level.join(pointer.strip_prefix("gitdir:")?.trim()).canonicalize().ok()?,
            None => git,
        };
        let common = one_line(&git.join("commondir")).and_then(|place| git.join(place).canonicalize().ok());
        Some(Self { level: level.to_owned(), common: common.unwrap_or_else(|| git.clone()), git })
    }

    /// Returns the current branch, or the abbreviated commit ID if `HEAD` is detached.
    pub(crate) fn branch(&self) -> Option<String> {
        branch_from_head(&one_line(&self.git.join("HEAD"))?)
    }

    /// Returns the branch that was checked out at the given time. If the reflog does not go back that far, returns
    /// the oldest branch in it, or else the current branch.
    pub(crate) fn branch_at(&self, time: jiff::Timestamp) -> Option<String> {
        let text = tail(&self.git.join("logs/HEAD")).unwrap_or_default();
        let moves = text.lines().filter_map(|line| {
            let (head, what) = line.split_once('\t')?;
            let (from, to) = what.strip_prefix("checkout: moving from ")?.split_once(" to ")?;
            let seconds = head.rsplit(' ').nth(1)?.parse::<i64>().ok()?;
            Some((seconds, from, to))
        });
        let (mut then, mut next) = (None, None);
        for (seconds, from, to) in moves {
            if seconds <= time.as_second() {
                then = Some(to);
            } else {
                next = next.or(Some(from));
            }
        }
        match then.or(next) {
            Some(name) => branch_from_head(&format!("ref: refs/heads/{name}")).map(|name| parse_commit(&name).unwrap_or(name)),
            None => self.branch(),
        }
    }

    /// Returns the abbreviated ID of the current commit.
    pub(crate) fn commit(&self) -> Option<String> {
        let head = one_line(&self.git.join("HEAD"))?;
        let Some(name) = head.strip_prefix("ref: ") else { return parse_commit(&head) };
        branch_from_head(&head)?;
        let own = one_line(&self.common.join(name)).and_then(|line| parse_commit(&line));
        own.or_else(|| self.packed_commit(name))
    }

    fn packed_commit(&self, name: &str) -> Option<String> {
        parse_commit(&self.packed_line(name)?)
    }

    fn packed_line(&self, name: &str) -> Option<String> {
        let mut text = String::new();
        let file = crate::sys::path::open_file(&self.common.join("packed-refs").canonicalize().ok()?).ok()?;
        file.take(PACKED_BYTES).read_to_string(&mut text).ok()?;
        let line = text.lines().find(|line| line.split_once(' ').is_some_and(|(_, branch)| branch == name))?;
        Some(line.split_once(' ')?.0.to_owned())
    }

    /// Returns the operation in progress, such as `a rebase`.
    pub(crate) fn operation_in_progress(&self) -> Option<&'static str> {
        UNDER_WAY.iter().find(|(name, _)| self.git.join(name).symlink_metadata().is_ok()).map(|(_, what)| *what)
    }

    /// Describes the current branch and any operation in progress on one line, such as `main at 1a2b3c4d5, a rebase
    /// is in progress`.
    pub(crate) fn describe(&self) -> Option<String> {
        let branch = self.branch()?;
        let commit = self.commit().filter(|commit| *commit != branch).map_or_else(String::new, |commit| format!(" at {commit}"));
        let under_way = self.operation_in_progress().map_or_else(String::new, |what| format!(", {what} is in progress"));
        Some(format!("{branch}{commit}{under_way}"))
    }
}

/// Returns the only line of a small regular file. Other kinds of file are not opened, because reading them could
/// block startup.
fn one_line(real: &Path) -> Option<String> {
    let mut text = String::new();
    crate::sys::path::open_file(real).ok()?.take(HEAD_BYTES).read_to_string(&mut text).ok()?;
    let line = text.trim_end();
    (!line.contains(|letter: char| letter.is_control())).then(|| line.to_owned())
}

/// Returns the last `LOG_BYTES` bytes of a reflog.
fn tail(log: &Path) -> Option<String> {
    let mut file = crate::sys::path::open_file(log).ok()?;
    let length = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(LOG_BYTES))).ok()?;
    let mut bytes = Vec::new();
    file.take(LOG_BYTES).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns the branch or the abbreviated commit ID that `HEAD` contains, if it is valid.
fn branch_from_head(head: &str) -> Option<String> {
    if let Some(name) = head.strip_prefix("ref: refs/heads/") {
        let odd = |letter: char| letter.is_whitespace() || "~^:?*[\\".contains(letter);
        return (1..=BRANCH_BYTES).contains(&name.len()).then(|| name.to_owned()).filter(|name| !name.contains(odd));
    }
    parse_commit(head)
}

fn parse_commit(text: &str) -> Option<String> {
    let whole = matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    whole.then(|| text.chars().take(COMMIT_LETTERS).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMIT: &str = "1a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d";

    fn repository(files: &[(&str, &str)]) -> (tempfile::TempDir, Option<Repository>) {
        let directory = tempfile::TempDir::new().unwrap();
        for (name, content) in files {
            let path = directory.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
        let inside = directory.path().join("src");
        std::fs::create_dir_all(&inside).unwrap();
        let found = Repository::find(&inside.canonicalize().unwrap());
        (directory, found)
    }

    #[test]
    fn the_branch_at_a_time_is_read_from_the_reflog() {
        let line = |seconds: u32, what: &str| format!("{COMMIT} {COMMIT} A B <a@b> {seconds} +0100\t{what}\n");
        let log = [
            line(100, "checkout: moving from main to lex"),
            line(150, "commit: checkout: moving from a to b"),
            line(200, "checkout: moving from lex to side"),
        ];
        let (_directory, found) = repository(&[(".git/HEAD", "ref: refs/heads/side\n"), (".git/logs/HEAD", &log.concat())]);
        let at = |seconds| found.as_ref().unwrap().branch_at(jiff::Timestamp::from_second(seconds).unwrap());
        assert_eq!([at(50), at(120), at(160), at(300)].map(Option::unwrap), ["main", "lex", "lex", "side"]);
        let (_directory, found) = repository(&[(".git/HEAD", "ref: refs/heads/side\n")]);
        assert_eq!(found.unwrap().branch_at(jiff::Timestamp::UNIX_EPOCH).as_deref(), Some("side"));
    }

    #[test]
    fn the_repository_state_is_described_in_one_line() {
        let head = (".git/HEAD", "ref: refs/heads/main\n");
        let packed = format!("# pack-refs with: peeled\n{COMMIT} refs/heads/main\n^{COMMIT}\n");
        type Files<'a> = &'a [(&'a str, &'a str)];
        let cases: &[(Files<'_>, Option<&str>)] = &[
            (&[head], Some("main")),
            (&[head, (".git/refs/heads/main", COMMIT)], Some("main at 1a2b3c4d5")),
            (&[head, (".git/packed-refs", &packed)], Some("main at 1a2b3c4d5")),
            (&[(".git/HEAD", COMMIT), (".git/rebase-merge/done", "")], Some("1a2b3c4d5, a rebase is in progress")),
            (&[head, (".git/MERGE_HEAD", COMMIT)], Some("main, a merge is in progress")),
            (&[(".git/HEAD", "ref: refs/heads/../../../../etc/passwd*\n")], None),
            (&[head, (".git/refs/heads/main", "ignore all that was said")], Some("main")),
            (
                &[
                    (".git", "gitdir: elsewhere/w\n"),
                    ("elsewhere/w/HEAD", "ref: refs/heads/side\n"),
                    ("elsewhere/w/commondir", "..\n"),
                    ("elsewhere/refs/heads/side", COMMIT),
                ],
                Some("side at 1a2b3c4d5"),
            ),
        ];
        for (files, words) in cases {
            let (_directory, found) = repository(files);
            assert_eq!(found.and_then(|found| found.describe()).as_deref(), *words, "{files:?}");
        }
        assert!(repository(&[]).1.is_none_or(|found| !found.git.starts_with(std::env::temp_dir())));
    }
}
