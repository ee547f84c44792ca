use super::*;

const GO_ON: fn() -> bool = || false;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use tempfile::TempDir;

/// Creates a tree `ws/t` that contains every kind of entry, next to a directory that must not change.
fn place() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().canonicalize().unwrap();
    for name in ["ws/t/a/b", "ws/t/empty", "outside"] {
        fs::create_dir_all(root.join(name)).unwrap();
    }
    fs::write(root.join("ws/t/a/b/f"), "text").unwrap();
    fs::write(root.join("ws/t/run"), "#!").unwrap();
    fs::set_permissions(root.join("ws/t/run"), fs::Permissions::from_mode(0o4750)).unwrap();
    fs::write(root.join("outside/secret"), "secret").unwrap();
    symlink("../../outside", root.join("ws/t/out")).unwrap();
    symlink("nowhere", root.join("ws/t/dangling")).unwrap();
    (directory, root)
}

fn planned(real: &Path) -> Survey {
    survey(real, &mut |_, _| {}).unwrap()
}

/// Returns the names of a directory's entries, including aye's temporary names.
fn listed(real: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(real).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_tree_survey_does_not_follow_links() {
    let (_directory, root) = place();
    let mut met = Vec::new();
    let survey = survey(&root.join("ws/t"), &mut |path, _| met.push(path.to_owned())).unwrap();
    assert_eq!((survey.files, survey.directories, survey.links, survey.bytes), (2, 4, 2, 6));
    assert_eq!(survey.entries(), 7);
    assert!(met.contains(&root.join("ws/t/out")) && !met.iter().any(|path| path.ends_with("secret")));
}

#[test]
fn removing_a_tree_does_not_remove_link_targets() {
    let (_directory, root) = place();
    for name in ["ws/t/out", "ws/t/run", "ws/t"] {
        let real = root.join(name);
        remove(&real, &planned(&real)).unwrap();
        assert!(real.symlink_metadata().is_err());
    }
    assert_eq!(listed(&root.join("ws")), [""; 0]);
    assert_eq!(listed(&root.join("outside")), ["secret"]);
}

#[test]
fn any_change_since_the_plan_aborts_tree_operations() {
    let changes: [fn(&Path); 6] = [
        |tree| fs::write(tree.join("a/b/f"), "other").unwrap(),
        |tree| fs::write(tree.join("a/new"), "").unwrap(),
        |tree| fs::remove_file(tree.join("run")).unwrap(),
        |tree| fs::set_permissions(tree.join("run"), fs::Permissions::from_mode(0o600)).unwrap(),
        |tree| {
            fs::remove_file(tree.join("dangling")).unwrap();
            symlink("elsewhere", tree.join("dangling")).unwrap();
        },
        |tree| {
            fs::rename(tree, tree.with_file_name("away")).unwrap();
            symlink("../outside", tree).unwrap();
        },
    ];
    for change in changes {
        let (_directory, root) = place();
        let (tree, to) = (root.join("ws/t"), root.join("ws/new"));
        let planned = planned(&tree);
        change(&tree);
        let before = listed(&root.join("ws"));
        assert!(matches!(remove(&tree, &planned), Err(TreeError::Changed)));
        assert!(matches!(relocate(&tree, &to, &planned, &GO_ON), Err(TreeError::Changed)));
        assert!(matches!(duplicate(&tree, &to, &planned, &GO_ON), Err(TreeError::Changed)));
        assert_eq!(listed(&root.join("ws")), before);
        assert_eq!(listed(&root.join("outside")), ["secret"]);
    }
}

#[test]
fn a_copy_preserves_content_modes_and_links() {
    let (_directory, root) = place();
    let (from, to) = (root.join("ws/t"), root.join("ws/deep/er/copy"));
    duplicate(&from, &to, &planned(&from), &GO_ON).unwrap();
    assert_eq!(listed(&to), listed(&from));
    assert_eq!(fs::read(to.join("a/b/f")).unwrap(), b"text");
    assert_eq!(fs::read_link(to.join("out")).unwrap(), Path::new("../../outside"));
    // Set-ID bits are not copied.
    assert_eq!(fs::metadata(to.join("run")).unwrap().permissions().mode() & 0o7777, 0o750);
    assert_eq!(listed(&root.join("ws/deep/er")), ["copy"]);
}

#[test]
fn tree_operations_never_replace_existing_files() {
    let (_directory, root) = place();
    let from = root.join("ws/t");
    fs::create_dir(root.join("ws/empty")).unwrap();
    fs::write(root.join("ws/file"), "mine").unwrap();
    symlink("nowhere", root.join("ws/link")).unwrap();
    for name in ["ws/empty", "ws/file", "ws/link"] {
        let to = root.join(name);
        assert!(matches!(relocate(&from, &to, &planned(&from), &GO_ON), Err(TreeError::Exists)), "{name}");
        assert!(matches!(duplicate(&from, &to, &planned(&from), &GO_ON), Err(TreeError::Exists)), "{name}");
    }
    assert_eq!(fs::read(root.join("ws/file")).unwrap(), b"mine");
    assert_eq!(listed(&root.join("ws")), ["empty", "file", "link", "t"]);
}

#[test]
fn a_move_keeps_the_identity_of_the_files() {
    let (_directory, root) = place();
    let (from, to) = (root.join("ws/t"), root.join("ws/new/name"));
    let before = planned(&from);
    relocate(&from, &to, &before, &GO_ON).unwrap();
    assert!(from.symlink_metadata().is_err());
    assert_eq!(planned(&to).identity, before.identity);
    assert_eq!(fs::read(to.join("a/b/f")).unwrap(), b"text");
}

#[test]
fn a_move_to_another_file_system_copies_the_tree_and_removes_its_source() {
    let (_directory, root) = place();
    let Ok(other) = tempfile::tempdir_in("/dev/shm") else {
        eprintln!("skipped: no second file system to write to");
        return;
    };
    let (from, to) = (root.join("ws/t"), other.path().canonicalize().unwrap().join("sub/t"));
    relocate(&from, &to, &planned(&from), &GO_ON).unwrap();
    assert!(from.symlink_metadata().is_err());
    assert_eq!(fs::read(to.join("a/b/f")).unwrap(), b"text");
    assert_eq!(fs::read_link(to.join("dangling")).unwrap(), Path::new("nowhere"));
    assert_eq!(listed(to.parent().unwrap()), ["t"]);
    assert_eq!(listed(&root.join("ws")), [""; 0]);
}

#[test]
fn a_failed_copy_leaves_nothing_behind() {
    let (_directory, root) = place();
    let from = root.join("ws/t");
    fs::set_permissions(from.join("a/b"), fs::Permissions::from_mode(0o500)).unwrap();
    fs::set_permissions(from.join("a"), fs::Permissions::from_mode(0o500)).unwrap();
    let copy = super::duplicate::copy_to_temporary_name(&from, &root.join("ws/c"), &planned(&from), &GO_ON).unwrap();
    assert_eq!(listed(&root.join("ws")).len(), 2);
    drop(copy);
    fs::set_permissions(from.join("a"), fs::Permissions::from_mode(0o700)).unwrap();
    fs::set_permissions(from.join("a/b"), fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(listed(&root.join("ws")), ["t"]);
}

#[test]
fn a_move_that_cannot_remove_its_source_reports_the_copy() {
    let (_directory, root) = place();
    let Ok(other) = tempfile::tempdir_in("/dev/shm") else {
        eprintln!("skipped: no second file system to write to");
        return;
    };
    let (from, to) = (root.join("ws/t"), other.path().canonicalize().unwrap().join("t"));
    if nix::unistd::geteuid().is_root() {
        eprintln!("skipped: root may write everywhere");
        return;
    }
    let planned = planned(&from);
    fs::set_permissions(root.join("ws"), fs::Permissions::from_mode(0o500)).unwrap();
    let error = relocate(&from, &to, &planned, &GO_ON);
    fs::set_permissions(root.join("ws"), fs::Permissions::from_mode(0o700)).unwrap();
    assert!(matches!(error, Err(TreeError::StillThere(_))), "{error:?}");
    assert_eq!((listed(&to), listed(&root.join("ws"))), (listed(&from), vec!["t".to_owned()]));
}

#[test]
fn a_tree_with_an_unwritable_directory_is_not_removed_at_all() {
    let (_directory, root) = place();
    let tree = root.join("ws/t");
    fs::set_permissions(tree.join("a/b"), fs::Permissions::from_mode(0o500)).unwrap();
    let planned = planned(&tree);
    let result = remove(&tree, &planned);
    fs::set_permissions(tree.join("a/b"), fs::Permissions::from_mode(0o700)).unwrap_or_default();
    if nix::unistd::geteuid().is_root() {
        return;
    }
    assert!(matches!(result, Err(TreeError::Sealed(path)) if path == tree.join("a/b")));
    assert_eq!(listed(&tree), ["a", "dangling", "empty", "out", "run"]);
}

#[test]
fn trees_that_are_too_deep_or_contain_special_files_are_errors() {
    let (_directory, root) = place();
    let pipe = root.join("ws/t/pipe");
    nix::unistd::mkfifo(&pipe, Mode::from_bits_truncate(0o600)).unwrap();
    let from = root.join("ws/t");
    assert!(
        matches!(duplicate(&from, &root.join("ws/c"), &planned(&from), &GO_ON), Err(TreeError::Special(path)) if path == pipe)
    );
    let deep = root.join("ws/deep").join("d/".repeat(MAX_DEPTH + 1));
    fs::create_dir_all(deep).unwrap();
    assert!(matches!(survey(&root.join("ws/deep"), &mut |_, _| {}), Err(TreeError::TooDeep)));
}

#[test]
fn a_cancelled_copy_or_move_changes_nothing() {
    let root = tempfile::tempdir().unwrap();
    let from = root.path().join("from");
    std::fs::create_dir_all(from.join("deep/deeper")).unwrap();
    for name in ["a", "deep/b", "deep/deeper/c"] {
        std::fs::write(from.join(name), name).unwrap();
    }
    let to = root.path().join("to");
    for most in 0..6 {
        let asked = std::cell::Cell::new(0);
        let stop = || asked.replace(asked.get() + 1) >= most;
        assert!(matches!(duplicate(&from, &to, &planned(&from), &stop), Err(TreeError::Stopped)), "{most}");
        let names: Vec<_> = std::fs::read_dir(root.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["from"], "{most}");
    }
}
