use super::open::open_step_by_step;
use super::*;
use nix::fcntl::OFlag;
use std::fs;
use std::os::unix::fs::symlink;
use tempfile::TempDir;

/// Returns a workspace next to a directory that no path in the workspace may lead to.
fn tree() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().canonicalize().unwrap();
    for name in ["ws/src", "outside/sub"] {
        fs::create_dir_all(root.join(name)).unwrap();
    }
    fs::write(root.join("ws/src/a.txt"), "text").unwrap();
    fs::write(root.join("outside/secret"), "secret").unwrap();
    symlink("../outside", root.join("ws/out")).unwrap();
    symlink("src/a.txt", root.join("ws/good")).unwrap();
    symlink("../outside/new", root.join("ws/dangling")).unwrap();
    symlink("loop", root.join("ws/loop")).unwrap();
    (directory, root)
}

#[test]
fn links_are_resolved_as_by_the_kernel() {
    let (_directory, root) = tree();
    let cases: &[(&str, &str, PathKind)] = &[
        ("src/a.txt", "ws/src/a.txt", PathKind::File { bytes: 4 }),
        ("./src//./a.txt", "ws/src/a.txt", PathKind::File { bytes: 4 }),
        ("good", "ws/src/a.txt", PathKind::File { bytes: 4 }),
        ("out", "outside", PathKind::Directory),
        ("out/secret", "outside/secret", PathKind::File { bytes: 6 }),
        ("out/../secret", "secret", PathKind::Missing),
        ("out/../ws/src/a.txt", "ws/src/a.txt", PathKind::File { bytes: 4 }),
        ("dangling", "outside/new", PathKind::Missing),
        ("out/deep/new", "outside/deep/new", PathKind::Missing),
        ("new/deep/../x", "ws/new/x", PathKind::Missing),
        ("src/", "ws/src", PathKind::Directory),
        ("..", "", PathKind::Directory),
        ("~/x", "home/x", PathKind::Missing),
        ("...", "ws/...", PathKind::Missing),
    ];
    for (given, real, kind) in cases {
        let found = resolve(given, &root.join("ws"), Some(&root.join("home"))).unwrap();
        let real = if real.is_empty() { root.clone() } else { root.join(real) };
        assert_eq!((found.real, found.kind), (real, *kind), "{given}");
    }
}

#[test]
fn invalid_paths_are_rejected() {
    let (_directory, root) = tree();
    let workspace = root.join("ws");
    let error = |given: &str| resolve(given, &workspace, None).unwrap_err();
    assert_eq!(error(""), PathError::Empty);
    assert_eq!(error("a\0b"), PathError::Nul);
    assert_eq!(error(&"n".repeat(300)), PathError::TooLong);
    assert_eq!(error(&"d/".repeat(3000)), PathError::TooLong);
    assert_eq!(error("~/x"), PathError::NoHome);
    assert_eq!(error("~root/x"), PathError::OtherHome("~root".into()));
    assert_eq!(error("loop"), PathError::Loop(workspace.join("loop")));
    assert_eq!(error("src/a.txt/"), PathError::NotADirectory(workspace.join("src/a.txt")));
    assert_eq!(error("src/a.txt/.."), PathError::NotADirectory(workspace.join("src/a.txt")));
}

#[test]
fn special_files_are_detected_and_never_block() {
    let (_directory, root) = tree();
    nix::unistd::mkfifo(&root.join("ws/pipe"), nix::sys::stat::Mode::from_bits_truncate(0o600)).unwrap();
    assert_eq!(resolve("pipe", &root.join("ws"), None).unwrap().kind, PathKind::Special);
    assert_eq!(resolve("/dev/zero", &root, None).unwrap().kind, PathKind::Special);
    assert!(open_file(&root.join("ws/pipe")).is_err());
    assert!(open_file(Path::new("/dev/zero")).is_err());
}

#[test]
fn links_are_not_followed_when_opening_resolved_paths() {
    let (_directory, root) = tree();
    for path in ["ws/out/secret", "ws/good", "ws/loop"] {
        assert!(open_file(&root.join(path)).is_err(), "{path}");
        assert!(open_step_by_step(&root.join(path), OFlag::O_RDONLY).is_err(), "{path}");
    }
    assert!(open_file(&root.join("ws/src/a.txt")).is_ok());
    assert!(open_step_by_step(&root.join("ws/src/a.txt"), OFlag::O_RDONLY).is_ok());
    assert!(open_parent(&root.join("ws/out/new")).is_err());
    assert!(entries(&root.join("ws/out")).is_err());
    let names: Vec<_> = entries(&root.join("ws/src")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["a.txt"]);
}

#[test]
fn lexical_resolution_ignores_links() {
    let lexical = |given: &str| lexical(given, Path::new("/ws"), Some(Path::new("/home/me"))).unwrap();
    assert_eq!(lexical("a/./b/../c"), Path::new("/ws/a/c"));
    assert_eq!(lexical("../../../x"), Path::new("/x"));
    assert_eq!(lexical("~/x"), Path::new("/home/me/x"));
    assert_eq!(lexical("~"), Path::new("/home/me"));
}
