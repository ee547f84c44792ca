mod faults;
mod figures;
mod kills;
mod random;

use super::apply::{CommitHooks, FaultHook};
use super::commit::commit_with_hooks;
use super::*;
use std::collections::BTreeSet;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::process::Command;
use std::{fs, io};
use tempfile::TempDir;

/// A real directory that contains some files, and a directory for a view of it.
struct Place {
    _directory: TempDir,
    lower: PathBuf,
    preview: PathBuf,
    began: Time,
}

impl Place {
    fn new(fill: impl FnOnce(&Path)) -> Self {
        Self::within(tempfile::tempdir().unwrap(), None, fill)
    }

    fn within(directory: TempDir, upper: Option<&Path>, fill: impl FnOnce(&Path)) -> Self {
        let root = directory.path().canonicalize().unwrap();
        let (lower, preview) = (root.join("ws"), upper.map_or_else(|| root.join("preview"), Path::to_owned));
        for path in [&lower, &preview.join("upper"), &preview.join("work")] {
            fs::create_dir_all(path).unwrap();
        }
        fill(&lower);
        let began = mark(&preview).unwrap();
        Self { _directory: directory, lower, preview, began }
    }

    fn layered(&self) -> LayeredDirectory {
        LayeredDirectory { directory: self.lower.clone(), upper: self.preview.join("upper"), work: self.preview.join("work") }
    }

    /// Runs a shell line in a view of the directory. Returns the tree visible once it has ended, or `None` if views are
    /// not supported.
    fn view(&self, line: &str) -> Option<Tree> {
        self.view_and(line, LIST)
    }

    /// Runs a shell line in a view without reading the whole tree.
    fn view_only(&self, line: &str) -> Option<Tree> {
        self.view_and(line, "true")
    }

    fn view_and(&self, line: &str, then: &str) -> Option<Tree> {
        let LayeredDirectory { directory, upper, work } = self.layered();
        let (directory, upper, work) = (directory.display(), upper.display(), work.display());
        let script = format!(
            "mount -t overlay overlay -o userxattr,lowerdir={directory},upperdir={upper},workdir={work} {directory} && cd {directory} \
             && ( {line}\n) >&2; {then}"
        );
        let ran = Command::new("unshare").args(["-Urm", "bash", "-c", &script]).output();
        let ran = ran.ok().filter(|ran| ran.status.success() && !ran.stderr.starts_with(b"mount"));
        let Some(ran) = ran else {
            eprintln!("skipped: no overlay can be mounted here");
            return None;
        };
        Some(Tree::read(&ran.stdout))
    }

    /// Returns the real directory's tree.
    fn tree(&self) -> Tree {
        tree(&self.lower)
    }

    fn changes(&self) -> Changes {
        changes(&self.layered(), self.began).unwrap()
    }
}

fn commit(preview: &Path, all: &[Changes]) -> Result<CommitOutcome, CommitError> {
    super::commit(preview, all, &|_| {})
}

/// Applies changes with a hook before each of them.
fn commit_at_pace(preview: &Path, all: &[Changes], pace: FaultHook<'_>) -> Result<CommitOutcome, CommitError> {
    commit_with_hooks(preview, all, CommitHooks { pace, progress: &|_| {} })
}

/// Returns the tree as seen by a user who can access every directory in it.
fn tree(directory: &Path) -> Tree {
    Tree::read(&Command::new("unshare").args(["-Ur", "bash", "-c", LIST]).current_dir(directory).output().unwrap().stdout)
}

const LIST: &str =
    "find . -mindepth 1 -printf '%P\\t%y\\t%m\\t%s\\t%l\\t%T@\\n'; find . -type f -printf '%P\\0' | xargs -r -0 cksum";

/// Every entry with its kind, mode, size, link target and time, and a checksum if it is a file.
#[derive(Debug, PartialEq, Eq, Clone)]
struct Tree(BTreeSet<String>);

impl Tree {
    fn read(listing: &[u8]) -> Self {
        Self(String::from_utf8_lossy(listing).lines().map(tree_line).collect())
    }

    /// Returns the entries without their times.
    fn untimed(&self) -> BTreeSet<String> {
        self.0.iter().map(|line| line.rsplit_once('\t').map_or(line.as_str(), |(start, _)| start).to_owned()).collect()
    }
}

/// Removes what may differ between systems: the sizes and times of directories, and the modes of symlinks.
fn tree_line(line: &str) -> String {
    let fields: Vec<&str> = line.split('\t').collect();
    match fields.as_slice() {
        [path, "d", mode, ..] => format!("{path} d {mode}"),
        [path, "l", _, _, to, _] => format!("{path} l {to}"),
        _ => line.to_owned(),
    }
}

fn paths(changes: &Changes) -> Vec<String> {
    changes.entries().iter().map(|change| change.path.display().to_string()).collect()
}

/// Returns the names of any temporary files that aye has left behind.
fn own_names(directory: &Path) -> Vec<String> {
    let names = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with(".aye")).collect()
}

fn fill(lower: &Path) {
    fs::create_dir_all(lower.join("d/e")).unwrap();
    for (name, text) in [("a", "one"), ("b", "two"), ("c", "three"), ("d/f", "four"), ("d/e/g", "five"), ("ro", "locked")] {
        fs::write(lower.join(name), text).unwrap();
    }
    symlink("a", lower.join("l")).unwrap();
    fs::set_permissions(lower.join("ro"), fs::Permissions::from_mode(0o444)).unwrap();
}

/// Shell lines that together exercise nearly every file operation.
const LINES: &[&str] = &[
    "echo new > n; echo more >> a; rm b",
    "rm -r d; mkdir d; echo x > d/x",
    "rm -r d; echo file > d",
    "rm a; mkdir a; echo in > a/in",
    "ln -s b s; rm l; ln -s c l; rm c; ln -s a c",
    "mv a moved; mv d/e/g d/g; rmdir d/e",
    "cp -a d D; rm -r d",
    "chmod 700 a; chmod 700 d; touch -d 2001-01-01 b",
    "ln a again; echo x > p; ln p q",
    "chmod u+w ro; echo y > ro; chmod 400 ro; mkdir -p x/y/z; chmod 555 x/y; chmod 500 x",
    "truncate -s 1M hole; echo end >> hole; : > empty",
    "mv a t; mv b a; mv t b",
    "touch $'\\xff\\xfe' $'two\\nlines'; mv a $'\\xc3'",
    "mkdir k; echo 1 > k/f; chmod 000 k; chmod 000 b; echo x > w; chmod 200 w",
    "mkdir o; echo 1 > o/f; chmod 500 o; chmod 555 d/e; chmod 000 c",
    "cp -a d D; rm -r d; echo x >> D/f; ln D/e/g D/h; ln D/h both; rm b; ln a b",
    "truncate -s 3M sparse; printf end | dd of=sparse bs=1M seek=2 conv=notrunc 2>&1; cp --sparse=always sparse again",
    "chmod 444 a; mkdir r; echo 1 > r/f; chmod 444 r/f; chmod 555 r; rm -f ro; echo again > ro; chmod 444 ro",
    "rm -rf ./*",
];

#[test]
fn a_commit_reproduces_the_tree_that_the_command_saw() {
    for line in LINES {
        let place = Place::new(fill);
        let Some(seen) = place.view(line) else { return };
        let before = place.tree();
        let changes = place.changes();
        assert_eq!(place.tree(), before, "{line}");
        let outcome = commit(&place.preview, &[changes]).unwrap();
        assert!(outcome.is_whole(), "{line}: {outcome:?}");
        assert_eq!(place.tree(), seen, "{line}");
        assert_eq!(recover(&place.preview).unwrap(), Some(outcome));
        discard(&place.preview).unwrap();
        assert!(!place.preview.exists());
    }
}

#[test]
fn a_commit_interrupted_at_any_step_is_finished_on_recovery() {
    for line in LINES {
        for stop in 0.. {
            let place = Place::new(fill);
            let Some(seen) = place.view(line) else { return };
            let before = place.tree();
            let mut steps = 0;
            let mut pace = || {
                steps += 1;
                if steps > stop { Err(io::Error::other("stopped")) } else { Ok(()) }
            };
            let done = commit_at_pace(&place.preview, &[place.changes()], &mut pace);
            let recovered = recover(&place.preview).unwrap();
            let expected = if recovered.is_some() { &seen } else { &before };
            assert_eq!(&place.tree(), expected, "{line} stopped at {stop}");
            assert!(recovered.is_none_or(|outcome| outcome.is_whole()), "{line} stopped at {stop}");
            if done.is_ok() {
                break;
            }
        }
    }
}

#[test]
fn an_interrupted_partial_commit_is_finished_with_the_same_changes() {
    for line in LINES {
        let mut whole: Option<Tree> = None;
        for stop in std::iter::once(usize::MAX).chain(0..) {
            let place = Place::new(fill);
            let Some(_) = place.view(line) else { return };
            let before = place.tree();
            let mut changes = place.changes();
            let middle = changes.entries()[changes.entries().len() / 2].path.clone();
            changes.without(&BTreeSet::from([middle]));
            let mut steps = 0;
            let mut pace = || {
                steps += 1;
                if steps > stop { Err(io::Error::other("stopped")) } else { Ok(()) }
            };
            let done = commit_at_pace(&place.preview, &[changes], &mut pace);
            let recovered = recover(&place.preview).unwrap();
            let tree = place.tree();
            let whole = whole.get_or_insert_with(|| tree.clone());
            let expected = if recovered.is_some() || stop == usize::MAX { &*whole } else { &before };
            assert_eq!(tree.untimed(), expected.untimed(), "{line} stopped at {stop}");
            if done.is_ok() && stop != usize::MAX {
                break;
            }
        }
    }
}

/// Returns those attributes of a path that a command can set.
fn attributes(path: &Path) -> Vec<(String, Vec<u8>)> {
    let mut list = vec![0; 1024];
    let length = rustix::fs::listxattr(path, &mut list[..]).unwrap();
    let names = list[..length].split(|byte| *byte == 0).filter(|name| !name.is_empty());
    let value = |name: &str| {
        let mut value = vec![0; 1024];
        let length = rustix::fs::getxattr(path, name, &mut value[..]).unwrap();
        value[..length].to_vec()
    };
    names.map(|name| String::from_utf8_lossy(name).into_owned()).map(|name| (name.clone(), value(&name))).collect()
}

#[test]
fn commits_preserve_existing_access_lists_and_attributes_and_add_none() {
    let set =
        |path: &Path, name: &str, value: &[u8]| rustix::fs::setxattr(path, name, value, rustix::fs::XattrFlags::empty()).is_ok();
    let place = Place::new(|lower| {
        for name in ["same", "changed", "moved"] {
            fs::write(lower.join(name), "text\n").unwrap();
            let _ = set(&lower.join(name), "user.origin", b"here");
        }
        fs::write(lower.join("plain"), "text\n").unwrap();
        fs::create_dir(lower.join("directory")).unwrap();
    });
    if attributes(&place.lower.join("same")).is_empty() {
        return eprintln!("skipped: no extended attributes here");
    }
    let script = "import os\n\
                  for name in ('same', 'plain', 'directory'): os.setxattr(name, 'user.new', b'x')\n\
                  open('changed', 'a').write('more')\nos.setxattr('changed', 'user.new', b'x')\n\
                  open('made', 'w').write('made')\nos.setxattr('made', 'user.new', b'x')\nos.rename('moved', 'there')\n";
    let Some(_) = place.view_only(&format!("python3 -c \"{script}\"")) else { return };
    let changes = changes(&place.layered(), place.began).unwrap();
    let unkept: Vec<_> = changes.unkept().iter().map(|unkept| (unkept.path.to_str().unwrap(), unkept.why.clone())).collect();
    assert_eq!(
        unkept,
        [("directory", RefusalReason::Attributes), ("plain", RefusalReason::Attributes), ("same", RefusalReason::Attributes)]
    );
    let lost: Vec<_> =
        changes.entries().iter().filter(|change| change.lost_attributes).map(|change| change.path.clone()).collect();
    assert_eq!(lost, [PathBuf::from("changed"), PathBuf::from("made")]);
    assert!(commit(&place.preview, &[changes]).unwrap().is_whole());
    let here = vec![("user.origin".to_owned(), b"here".to_vec())];
    for (name, expected) in [("same", &here), ("changed", &here), ("there", &here), ("made", &vec![]), ("plain", &vec![])] {
        assert_eq!(attributes(&place.lower.join(name)), *expected, "{name}");
    }
    assert_eq!(attributes(&place.lower.join("directory")), []);
}

#[test]
fn a_second_survey_keeps_the_modes_that_the_first_one_found() {
    let place = Place::new(|_| {});
    let made = place.preview.join("upper/made");
    fs::create_dir(&made).unwrap();
    fs::set_permissions(&made, fs::Permissions::from_mode(0o050)).unwrap();
    let first = changes(&place.layered(), place.began).unwrap();
    // The first survey has made the directory readable, unless the user may read everything.
    fs::set_permissions(&made, fs::Permissions::from_mode(0o700)).unwrap();
    let mut second = changes(&place.layered(), place.began).unwrap();
    second.restore_modes_from(&first);
    let modes = |changes: &Changes| changes.entries().iter().map(|change| change.after.unwrap().mode).collect::<Vec<_>>();
    assert_eq!((modes(&first), modes(&second)), (vec![0o050], vec![0o050]));
    // A mode that is set after the first survey is a change.
    fs::set_permissions(&made, fs::Permissions::from_mode(0o750)).unwrap();
    let mut third = changes(&place.layered(), place.began).unwrap();
    third.restore_modes_from(&first);
    assert_eq!(modes(&third), [0o750]);
}
