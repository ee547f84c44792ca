use super::*;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

type Tree = BTreeMap<PathBuf, (u32, u64, Vec<u8>)>;

/// Returns the name, mode, inode and content of every entry, including directories.
fn tree(root: &Path) -> Tree {
    let mut found = Tree::new();
    let mut open = vec![root.to_owned()];
    while let Some(path) = open.pop() {
        let stat = path.symlink_metadata().unwrap();
        if stat.is_dir() {
            open.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
        let content = if stat.is_symlink() { Vec::new() } else { fs::read(&path).unwrap_or_default() };
        found.insert(path, (stat.mode(), stat.ino(), content));
    }
    found
}

fn write(path: PathBuf, before: Option<&str>, content: &str) -> Step {
    let before = before.map_or(PreImage::Absent, |text| PreImage::hash(text.as_bytes()));
    Step { real: path, what: PathOperation::Write { content: content.into(), before, like: None, executable: None } }
}

fn remove(path: PathBuf) -> Step {
    let planned = survey(&path, &mut |_, _| {}).unwrap();
    Step { real: path, what: PathOperation::Remove { before: ExpectedEntry::Entry(Box::new(planned)) } }
}

/// Returns a tree and one step of every kind: a new file, a replaced file, a file moved over another, a removed file,
/// and a removed symlink.
fn work() -> (tempfile::TempDir, PathBuf, Vec<Step>) {
    let (directory, root) = work_place();
    let steps = steps_of(&root);
    (directory, root, steps)
}

fn work_place() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().canonicalize().unwrap();
    fs::create_dir(root.join("d")).unwrap();
    for name in ["a", "b", "d/c", "gone", "over"] {
        fs::write(root.join(name), format!("old {name}")).unwrap();
    }
    fs::set_permissions(root.join("b"), fs::Permissions::from_mode(0o750)).unwrap();
    symlink("a", root.join("link")).unwrap();
    (directory, root)
}

fn steps_of(root: &Path) -> Vec<Step> {
    vec![
        write(root.join("a"), Some("old a"), "new a"),
        write(root.join("new/deep/er"), None, "er"),
        write(root.join("new/deep/two"), None, "two"),
        Step {
            real: root.join("over"),
            what: PathOperation::Write {
                content: b"moved".to_vec(),
                before: PreImage::hash(b"old over"),
                like: Some(root.join("b")),
                executable: None,
            },
        },
        Step { real: root.join("b"), what: PathOperation::Remove { before: ExpectedEntry::Content(PreImage::hash(b"old b")) } },
        remove(root.join("gone")),
        remove(root.join("link")),
        write(root.join("d/c"), Some("old d/c"), "new c"),
    ]
}

#[test]
fn all_steps_of_a_transaction_are_applied() {
    let (_directory, root, steps) = work();
    commit(&steps).unwrap();
    let after: Vec<_> = tree(&root).into_keys().map(|path| path.strip_prefix(&root).unwrap().display().to_string()).collect();
    assert_eq!(after, ["", "a", "d", "d/c", "new", "new/deep", "new/deep/er", "new/deep/two", "over"]);
    assert_eq!(fs::read(root.join("a")).unwrap(), b"new a");
    assert_eq!(fs::read(root.join("over")).unwrap(), b"moved");
    assert_eq!(fs::metadata(root.join("over")).unwrap().mode() & 0o777, 0o750);
}

#[test]
fn a_failure_at_any_step_restores_everything() {
    for fails_at in 0..8 {
        let (_directory, root, steps) = work();
        let before = tree(&root);
        let failure = commit_with_hook(&steps, &mut |step| {
            if step == fails_at { Err(WriteError::Io(std::io::Error::other("no more"))) } else { Ok(()) }
        });
        let failure = failure.unwrap_err();
        assert_eq!((failure.step, failure.left.len()), (fails_at, 0));
        assert_eq!(tree(&root), before, "{fails_at}");
    }
}

#[test]
fn a_file_changed_since_the_check_aborts_the_whole_commit() {
    type Change = fn(&Path);
    let changes: [(usize, Change); 6] = [
        (0, |root| fs::write(root.join("a"), "theirs").unwrap()),
        (1, |root| {
            fs::create_dir_all(root.join("new/deep")).unwrap();
            fs::write(root.join("new/deep/er"), "theirs").unwrap();
        }),
        (4, |root| fs::write(root.join("b"), "theirs").unwrap()),
        (5, |root| fs::write(root.join("gone"), "theirs, longer").unwrap()),
        (7, |root| fs::remove_file(root.join("d/c")).unwrap()),
        (7, |root| {
            fs::rename(root.join("d"), root.join("real")).unwrap();
            symlink("real", root.join("d")).unwrap();
        }),
    ];
    for (step, change) in changes {
        let (_directory, root, steps) = work();
        change(&root);
        let before = tree(&root);
        let failure = commit(&steps).unwrap_err();
        assert!(failure.step == step && matches!(failure.why, WriteError::Changed), "{failure:?}");
        assert_eq!(tree(&root), before, "{step}");
    }
}

#[test]
fn a_change_at_the_last_moment_is_restored_too() {
    for (late, name) in [(0, "a"), (4, "b"), (5, "gone")] {
        let (_directory, root, steps) = work();
        let before = tree(&root);
        let failure = commit_with_hook(&steps, &mut |step| {
            if step == late {
                fs::write(root.join(name), "theirs and longer").unwrap();
            }
            Ok(())
        });
        assert!(matches!(failure.unwrap_err().why, WriteError::Changed));
        let mut after = tree(&root);
        assert_eq!(after.get(&root.join(name)).unwrap().2, b"theirs and longer", "changes by others are not lost");
        after.insert(root.join(name), before[&root.join(name)].clone());
        assert_eq!(after, before, "{late}");
    }
}

#[test]
fn a_read_only_directory_aborts_the_whole_commit() {
    if nix::unistd::geteuid().is_root() {
        eprintln!("skipped: root may write everywhere");
        return;
    }
    let (_directory, root, steps) = work();
    fs::set_permissions(root.join("d"), fs::Permissions::from_mode(0o555)).unwrap();
    let before = tree(&root);
    let failure = commit(&steps).unwrap_err();
    assert_eq!(failure.step, 7);
    assert_eq!(tree(&root), before);
    fs::set_permissions(root.join("d"), fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_rollback_keeps_files_changed_by_others_and_names_the_saved_originals() {
    for (name, aside) in [("a", Some("old a")), ("new/deep/er", None)] {
        let (_directory, root) = work_place();
        let steps = steps_of(&root);
        let failure = commit_with_hook(&steps, &mut |step| {
            if step < 4 {
                return Ok(());
            }
            fs::write(root.join(name), "theirs, saved meanwhile").unwrap();
            Err(WriteError::Io(std::io::Error::other("no more")))
        });
        assert_eq!(failure.unwrap_err().left, [root.join(name)]);
        assert_eq!(fs::read(root.join(name)).unwrap(), b"theirs, saved meanwhile");
        let left: Vec<_> = tree(&root).into_iter().filter(|(path, _)| path.to_string_lossy().contains(".aye-")).collect();
        let contents: Vec<_> = left.iter().map(|(_, (_, _, content))| content.as_slice()).collect();
        assert_eq!(contents, aside.map(str::as_bytes).into_iter().collect::<Vec<_>>());
    }
}

#[test]
fn data_written_to_a_file_being_replaced_is_kept_next_to_the_file() {
    use std::io::Write;
    let (_directory, root) = work_place();
    let steps = steps_of(&root);
    let mut opened = fs::File::options().append(true).open(root.join("a")).unwrap();
    commit_with_hook(&steps, &mut |step| {
        if step == 7 {
            opened.write_all(b" and theirs").unwrap();
        }
        Ok(())
    })
    .unwrap();
    assert_eq!(fs::read(root.join("a")).unwrap(), b"new a");
    assert!(tree(&root).into_values().any(|(_, _, content)| content == b"old a and theirs"));
}

/// Runs a commit and stops it before the rename of step `at`, as if the process had been killed there.
fn killed_before(steps: Vec<Step>, at: usize) {
    let (reached, wait) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let _ = commit_with_hook(&steps, &mut |step| {
            if step == at {
                let _ = reached.send(());
                loop {
                    std::thread::park();
                }
            }
            Ok(())
        });
    });
    wait.recv().unwrap();
}

#[test]
fn after_a_kill_each_file_is_old_or_new_and_no_old_content_is_lost() {
    let old = ["a", "b", "gone", "over", "d/c"];
    for at in 0..8 {
        let (_directory, root) = work_place();
        killed_before(steps_of(&root), at);
        let after = tree(&root);
        let new: [(&str, Option<&str>); 5] =
            [("a", Some("new a")), ("b", None), ("gone", None), ("over", Some("moved")), ("d/c", Some("new c"))];
        for (name, new) in new {
            let now = fs::read_to_string(root.join(name)).ok();
            let was = format!("old {name}");
            assert!(now.as_deref() == Some(was.as_str()) || now.as_deref() == new, "{at} {name}: {now:?}");
        }
        for name in old {
            let was = format!("old {name}").into_bytes();
            assert_eq!(after.values().filter(|(_, _, content)| *content == was).count(), 1, "{at} {name}");
        }
        let known = ["a", "b", "gone", "over", "link", "d", "d/c", "new", "new/deep", "new/deep/er", "new/deep/two", ""];
        for path in after.keys() {
            let name = path.strip_prefix(&root).unwrap();
            let is_aside = name.file_name().is_some_and(|name| name.to_string_lossy().starts_with(".aye-"));
            assert!(is_aside || known.iter().any(|known| name == Path::new(known)), "{at}: {}", path.display());
        }
    }
}
