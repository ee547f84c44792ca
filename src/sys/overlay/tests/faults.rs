use super::*;
use std::os::unix::net::UnixListener;

/// A change to the real files of which the view does not know: the command's line, the change, and the conflicting
/// paths.
type Meddling = (&'static str, fn(&Path), &'static [&'static str]);

const MEDDLING: &[Meddling] = &[
    ("echo x >> a", |ws| fs::write(ws.join("a"), "mine").unwrap(), &["a"]),
    ("rm a", |ws| fs::write(ws.join("a"), "mine").unwrap(), &["a"]),
    ("rm a", |ws| fs::remove_file(ws.join("a")).unwrap(), &["a"]),
    ("echo x > n", |ws| fs::write(ws.join("n"), "mine").unwrap(), &["n"]),
    ("mkdir n", |ws| symlink("d", ws.join("n")).unwrap(), &["n"]),
    ("chmod 700 a", |ws| fs::write(ws.join("a"), "mine").unwrap(), &["a"]),
    ("rm -r d", |ws| fs::write(ws.join("d/mine"), "mine").unwrap(), &["d"]),
    ("rm -r d", |ws| fs::write(ws.join("d/e/g"), "mine").unwrap(), &["d/e/g"]),
    ("rm -r d; mkdir d; echo x > d/f", |ws| fs::write(ws.join("d/f"), "mine").unwrap(), &["d/f"]),
    (
        "echo x > d/f",
        |ws| {
            fs::rename(ws.join("d"), ws.join("away")).unwrap();
            symlink("away", ws.join("d")).unwrap();
        },
        &["d"],
    ),
    (
        "echo x > d/f",
        |ws| {
            fs::rename(ws.join("d"), ws.join("away")).unwrap();
            fs::create_dir(ws.join("d")).unwrap();
        },
        &["d"],
    ),
    ("rm l; ln -s c l", |ws| fs::write(ws.join("l"), "through the link").unwrap(), &[]),
    ("echo x > d/f", |ws| fs::write(ws.join("d/other"), "mine").unwrap(), &[]),
];

#[test]
fn concurrent_changes_abort_the_whole_commit() {
    for (line, meddle, expected) in MEDDLING {
        let place = Place::new(fill);
        let Some(_) = place.view(line) else { return };
        let changes = place.changes();
        meddle(&place.lower);
        let before = place.tree();
        match commit(&place.preview, &[changes]) {
            Err(CommitError::Conflict(paths)) => {
                let expected: Vec<_> = expected.iter().map(|path| place.lower.join(path)).collect();
                assert_eq!(paths, expected, "{line}");
                assert_eq!(place.tree(), before, "{line}");
            }
            other => assert!(expected.is_empty() && other.is_ok(), "{line}: {other:?}"),
        }
        assert_eq!(recover(&place.preview).unwrap().is_some(), expected.is_empty(), "{line}");
    }
}

/// Replaces a file with a copy of itself, which has a different inode and different times.
fn copied_over(path: &Path) {
    let (copy, mode) = (path.with_extension("copy"), fs::metadata(path).unwrap().permissions());
    fs::write(&copy, fs::read(path).unwrap()).unwrap();
    fs::set_permissions(&copy, mode).unwrap();
    fs::rename(copy, path).unwrap();
}

fn touched(path: &Path) {
    fs::File::options().append(true).open(path).unwrap().set_modified(std::time::SystemTime::now()).unwrap();
}

/// A change that another program makes to the real files while a view is waiting: the command's line and the change.
type Touching = (&'static str, fn(&Path));

/// Cases in which the real files' content stays the same.
const TOUCHING: &[Touching] = &[
    ("echo x >> a", |ws| touched(&ws.join("a"))),
    ("echo x >> a", |ws| copied_over(&ws.join("a"))),
    ("rm a; mkdir a; echo x > a/f", |ws| copied_over(&ws.join("a"))),
    ("rm -r d", |ws| copied_over(&ws.join("d/e/g"))),
    ("rm -r d; echo file > d", |ws| copied_over(&ws.join("d/f"))),
    ("mv a moved; chmod 700 b", |ws| {
        touched(&ws.join("a"));
        touched(&ws.join("b"));
    }),
    ("rm l; ln -s c l", |ws| {
        fs::remove_file(ws.join("l")).unwrap();
        symlink("a", ws.join("l")).unwrap();
    }),
    ("echo x > c; rm b", |ws| {
        fs::hard_link(ws.join("c"), ws.join("d/c")).unwrap();
        fs::remove_file(ws.join("d/c")).unwrap();
    }),
];

#[test]
fn a_touched_or_identically_replaced_file_is_not_a_conflict() {
    for (number, (line, touch)) in TOUCHING.iter().enumerate() {
        for stop in 0.. {
            let place = Place::new(fill);
            let Some(seen) = place.view(line) else { return };
            let changes = place.changes();
            let before = place.tree();
            touch(&place.lower);
            let mut steps = 0;
            let mut pace = || {
                steps += 1;
                if steps > stop { Err(io::Error::other("stopped")) } else { Ok(()) }
            };
            let done = commit_at_pace(&place.preview, &[changes], &mut pace);
            let outcome = recover(&place.preview).unwrap();
            assert!(outcome.as_ref().is_none_or(|outcome| outcome.is_whole()), "{number} {line} stopped at {stop}: {outcome:?}");
            let expected = if outcome.is_some() { &seen } else { &before };
            assert_eq!(place.tree().untimed(), expected.untimed(), "{number} {line} stopped at {stop}");
            if done.is_ok() {
                break;
            }
        }
    }
}

#[test]
fn a_changed_mode_or_content_of_the_same_size_is_a_conflict() {
    let meddling: [Touching; 3] = [
        ("echo x >> a", |ws| fs::set_permissions(ws.join("a"), fs::Permissions::from_mode(0o600)).unwrap()),
        ("echo x >> a", |ws| fs::write(ws.join("a"), "eno").unwrap()),
        ("rm -r d", |ws| fs::write(ws.join("d/e/g"), "evif").unwrap()),
    ];
    for (line, meddle) in meddling {
        let place = Place::new(fill);
        let Some(_) = place.view(line) else { return };
        let changes = place.changes();
        meddle(&place.lower);
        let before = place.tree();
        assert!(matches!(commit(&place.preview, &[changes]), Err(CommitError::Conflict(_))), "{line}");
        assert_eq!(place.tree(), before, "{line}");
    }
}

#[test]
fn changes_made_while_the_command_ran_are_conflicts() {
    let place = Place::new(fill);
    // The time of a new file shows that the clock of file times has advanced.
    let later = || mark(&place.preview).unwrap();
    while later() == place.began {}
    fs::write(place.lower.join("a"), "mine").unwrap();
    let Some(_) = place.view("echo x >> a; rm b") else { return };
    let result = commit(&place.preview, &[place.changes()]);
    assert!(matches!(&result, Err(CommitError::Conflict(paths)) if paths == &[place.lower.join("a")]), "{result:?}");
    assert_eq!(fs::read(place.lower.join("a")).unwrap(), b"mine");
    assert!(place.lower.join("b").exists());
}

#[test]
fn a_layer_on_another_file_system_is_committed() {
    for line in LINES {
        let Ok(other) = tempfile::tempdir_in("/dev/shm") else {
            eprintln!("skipped: no second file system to write to");
            return;
        };
        let place = Place::within(tempfile::tempdir().unwrap(), Some(&other.path().join("preview")), fill);
        let Some(seen) = place.view(line) else { return };
        let outcome = commit(&place.preview, &[place.changes()]).unwrap();
        assert!(outcome.is_whole(), "{line}: {outcome:?}");
        assert_eq!(place.tree(), seen, "{line}");
        assert_eq!(own_names(&place.lower), [""; 0], "{line}");
        if let Ok(hole) = fs::metadata(place.lower.join("hole")) {
            assert!(hole.blocks() * 512 < hole.len() / 2, "{hole:?}");
        }
    }
}

#[test]
fn an_interrupted_copy_across_file_systems_leaves_no_temporary_files() {
    for stop in 0..40 {
        let Ok(other) = tempfile::tempdir_in("/dev/shm") else { return };
        let place = Place::within(tempfile::tempdir().unwrap(), Some(&other.path().join("preview")), fill);
        let Some(seen) = place.view("echo x >> a; mkdir n; echo y > n/y; rm b; mv c t; rm -r d") else { return };
        let before = place.tree();
        let mut steps = 0;
        let mut pace = || {
            steps += 1;
            if steps > stop { Err(io::Error::other("stopped")) } else { Ok(()) }
        };
        let _ = commit_at_pace(&place.preview, &[place.changes()], &mut pace);
        let recovered = recover(&place.preview).unwrap();
        assert_eq!(&place.tree(), if recovered.is_some() { &seen } else { &before }, "stopped at {stop}");
        assert_eq!(own_names(&place.lower), [""; 0]);
    }
}

/// Returns a hook that simulates a disk on which a range of changes fails.
fn failing(from: usize, to: usize, errno: nix::errno::Errno) -> impl FnMut() -> io::Result<()> {
    let mut steps = 0;
    move || {
        steps += 1;
        if (from..to).contains(&steps) { Err(errno.into()) } else { Ok(()) }
    }
}

#[test]
fn disk_errors_during_a_commit_are_reported_and_retried_later() {
    for line in LINES {
        for from in (1..).step_by(3) {
            let place = Place::new(fill);
            let Some(seen) = place.view(line) else { return };
            let before = place.tree();
            let mut pace = failing(from, usize::MAX, nix::errno::Errno::ENOSPC);
            let (over, whole) = match commit_at_pace(&place.preview, &[place.changes()], &mut pace) {
                // The failure occurred before the commit started.
                Err(CommitError::Io { .. }) => {
                    assert_eq!((place.tree(), has_begun(&place.preview)), (before, false), "{line} from {from}");
                    continue;
                }
                Err(error) => panic!("{line} from {from}: {error}"),
                Ok(outcome) => (outcome.is_over(), outcome.is_whole()),
            };
            assert_eq!(over, whole, "{line} from {from}");
            let outcome = recover(&place.preview).unwrap().unwrap();
            assert!(outcome.is_whole(), "{line} from {from}: {outcome:?}");
            assert_eq!(place.tree(), seen, "{line} from {from}");
            if over {
                break;
            }
        }
    }
}

#[test]
fn temporary_errors_are_retried_immediately() {
    let place = Place::new(fill);
    let Some(seen) = place.view("echo x >> a; mkdir n; echo y > n/y; rm b") else { return };
    let mut pace = failing(4, 5, nix::errno::Errno::EIO);
    assert!(commit_at_pace(&place.preview, &[place.changes()], &mut pace).unwrap().is_whole());
    assert_eq!(place.tree(), seen);
}

#[test]
fn changes_by_others_before_a_retry_are_kept() {
    let place = Place::new(fill);
    let Some(_) = place.view("echo x >> a; echo x >> b; mkdir n; echo y > n/y") else { return };
    let mut pace = failing(3, usize::MAX, nix::errno::Errno::EROFS);
    let outcome = commit_at_pace(&place.preview, &[place.changes()], &mut pace).unwrap();
    assert!(!outcome.is_over() && outcome.left.iter().all(|left| left.later), "{outcome:?}");
    fs::write(place.lower.join("b"), "mine").unwrap();
    let outcome = recover(&place.preview).unwrap().unwrap();
    assert!(outcome.is_over() && !outcome.is_whole(), "{outcome:?}");
    assert_eq!(fs::read(place.lower.join("b")).unwrap(), b"mine");
    assert_eq!(fs::read(place.lower.join("n/y")).unwrap(), b"y\n");
    assert_eq!(recover(&place.preview).unwrap(), Some(outcome));
}

#[test]
fn a_directory_replaced_while_the_command_ran_is_a_conflict() {
    let place = Place::new(fill);
    while mark(&place.preview).unwrap() == place.began {}
    fs::rename(place.lower.join("d"), place.lower.join("away")).unwrap();
    fs::create_dir_all(place.lower.join("d/e")).unwrap();
    let Some(_) = place.view("echo x > d/new; echo x >> a") else { return };
    let result = commit(&place.preview, &[place.changes()]);
    assert!(matches!(&result, Err(CommitError::Conflict(paths)) if paths == &[place.lower.join("d")]), "{result:?}");
    assert!(!place.lower.join("d/new").exists());
    // Entries that other programs add to the directory do not matter.
    let place = Place::new(fill);
    while mark(&place.preview).unwrap() == place.began {}
    fs::write(place.lower.join("d/beside"), "mine").unwrap();
    let Some(_) = place.view("echo x > d/new") else { return };
    assert!(commit(&place.preview, &[place.changes()]).unwrap().is_whole());
    assert!(place.lower.join("d/new").exists() && place.lower.join("d/beside").exists());
}

#[test]
fn large_directories_are_committed_completely() {
    let large = |lower: &Path| {
        fs::create_dir(lower.join("large")).unwrap();
        for number in 0..4_000 {
            fs::write(lower.join(format!("large/a name of some length, so that the directory grows {number}")), "").unwrap();
        }
    };
    for line in
        ["cd large; for n in *[02468]; do echo x > \"$n\"; done; rm *[13579]", "rm -r large; mkdir large; touch large/one"]
    {
        let place = Place::new(large);
        let Some(seen) = place.view(line) else { return };
        assert!(commit(&place.preview, &[place.changes()]).unwrap().is_whole());
        assert_eq!(place.tree(), seen);
    }
}

#[test]
fn changes_made_after_a_crash_are_kept_and_reported() {
    let place = Place::new(fill);
    let Some(_) = place.view("echo x >> a; echo x >> b; echo x >> c; rm d/f") else { return };
    let mut steps = 0;
    let mut pace = || {
        steps += 1;
        if steps > 3 { Err(io::Error::other("stopped")) } else { Ok(()) }
    };
    commit_at_pace(&place.preview, &[place.changes()], &mut pace).unwrap_err();
    assert!(has_begun(&place.preview));
    fs::write(place.lower.join("b"), "mine").unwrap();
    let outcome = recover(&place.preview).unwrap().unwrap();
    let left: Vec<_> = outcome.left.iter().map(|left| left.path.clone()).collect();
    assert_eq!(left, [place.lower.join("b")], "{outcome:?}");
    assert_eq!(fs::read(place.lower.join("b")).unwrap(), b"mine");
    assert_eq!(fs::read(place.lower.join("c")).unwrap(), b"threex\n");
    assert!(!place.lower.join("d/f").exists());
    // The commit is finished, so another recovery does not touch later changes.
    fs::write(place.lower.join("c"), "mine").unwrap();
    assert_eq!(recover(&place.preview).unwrap(), Some(outcome));
    assert_eq!(fs::read(place.lower.join("c")).unwrap(), b"mine");
}

#[test]
fn sockets_pipes_and_set_id_bits_are_not_committed() {
    let place = Place::new(fill);
    let line = "mkfifo p; rm b; mkfifo b; mkdir n; mkfifo n/p; echo x > n/x; echo s > s; chmod 4755 s; chmod 6711 a";
    let Some(_) = place.view(line) else { return };
    let _socket = UnixListener::bind(place.preview.join("upper/socket")).unwrap();
    let changes = place.changes();
    assert_eq!(paths(&changes), ["a", "n", "n/x", "s"]);
    assert!(changes.entries()[3].lost_set_id && changes.entries()[0].lost_set_id);
    let unkept: Vec<_> = changes.unkept().iter().map(|unkept| unkept.path.display().to_string()).collect();
    assert_eq!(unkept, ["b", "n/p", "p", "socket"]);
    assert!(commit(&place.preview, &[changes]).unwrap().is_whole());
    let mode = |name: &str| fs::symlink_metadata(place.lower.join(name)).unwrap().mode() & 0o7777;
    assert_eq!((mode("s"), mode("a")), (0o755, 0o711));
    assert_eq!(fs::read(place.lower.join("b")).unwrap(), b"two");
    assert!(!place.lower.join("p").exists() && !place.lower.join("n/p").exists() && !place.lower.join("socket").exists());
}

#[test]
fn hard_links_are_preserved_and_broken_ones_are_reported() {
    let place = Place::new(|lower| {
        fill(lower);
        fs::hard_link(lower.join("b"), lower.join("b2")).unwrap();
    });
    let Some(_) = place.view("ln a again; echo x > p; ln p q; ln p d/r; echo y >> b") else { return };
    let changes = place.changes();
    let find = |name: &str| changes.entries().iter().find(|change| change.path == Path::new(name)).unwrap();
    assert_eq!(find("b").other_link_count(), 1);
    assert_eq!(find("again").link_of.as_deref(), Some(Path::new("a")));
    commit(&place.preview, std::slice::from_ref(&changes)).unwrap();
    let inode = |name: &str| fs::metadata(place.lower.join(name)).unwrap().ino();
    assert_eq!(inode("a"), inode("again"));
    assert!(inode("p") == inode("q") && inode("p") == inode("d/r"));
    assert_eq!(fs::read(place.lower.join("b2")).unwrap(), b"two");
}

#[test]
fn moves_are_detected_by_content() {
    let place = Place::new(fill);
    let Some(_) = place.view("mv a A; mv d moved; mv l ll") else { return };
    let changes = place.changes();
    let moved: Vec<_> =
        changes.entries().iter().filter_map(|change| Some((change.moved_from.clone()?, change.path.clone()))).collect();
    let pair = |from: &str, to: &str| (PathBuf::from(from), PathBuf::from(to));
    assert_eq!(moved, [pair("a", "A"), pair("l", "ll"), pair("d/e/g", "moved/e/g"), pair("d/f", "moved/f")]);
    assert_eq!(changes.moved_directories(), [pair("d", "moved")]);
}

#[test]
fn excluding_a_change_also_excludes_dependent_changes() {
    let cases: &[(&str, &str, &[&str])] = &[
        ("mkdir n; echo x > n/x; echo y > y", "n", &["y"]),
        ("rm -r d", "d/f", &["d/e", "d/e/g"]),
        ("rm -r d; echo x > d", "d/e/g", &["d/f"]),
        ("mv a t; echo x > y", "t", &["y"]),
        ("mv a t; echo x > y", "a", &["y"]),
        ("rm a; mkdir a; echo x > a/x; rm b", "a", &["b"]),
        ("echo x > p; ln p q; ln p r", "p", &["q", "r"]),
    ];
    for (line, out, kept) in cases {
        let place = Place::new(fill);
        let Some(_) = place.view(line) else { return };
        let mut changes = place.changes();
        changes.refuse(&BTreeSet::from([PathBuf::from(out)]));
        assert_eq!(paths(&changes), *kept, "{line} without {out}");
        let there = place.lower.join(out).symlink_metadata().is_ok();
        assert!(commit(&place.preview, &[changes]).unwrap().is_whole(), "{line} without {out}");
        assert_eq!(place.lower.join(out).symlink_metadata().is_ok(), there, "{line} without {out}");
    }
}

#[test]
fn trees_with_overlong_paths_are_not_committed_and_can_be_removed() {
    let place = Place::new(fill);
    let script = "echo x > y; name=$(printf 'd%.0s' {1..40}); for n in {1..120}; do mkdir $name; cd $name; done";
    assert!(Command::new("bash").args(["-c", script]).current_dir(place.preview.join("upper")).status().unwrap().success());
    let changes = place.changes();
    assert!(changes.unkept().iter().any(|unkept| unkept.why == RefusalReason::TooDeep));
    assert!(paths(&changes).len() < 120 && changes.entries().iter().any(|change| change.path == Path::new("y")));
    discard(&place.preview).unwrap();
    assert!(!place.preview.exists());
    assert_eq!(own_names(place.lower.parent().unwrap()), [""; 0]);
}

const FULL: &str = "AYE_TEST_LAYER_FULL";

/// Must run on a small file system of its own.
#[test]
fn changes_are_committed_to_a_full_disk() {
    let Some(root) = std::env::var_os(FULL).map(PathBuf::from) else { return };
    let (ws, preview) = (root.join("ws"), root.join("preview"));
    fs::write(ws.join("a"), "one").unwrap();
    let began = mark(&preview).unwrap();
    fs::write(preview.join("upper/a"), "new").unwrap();
    fs::write(preview.join("upper/large"), vec![7; 4 << 20]).unwrap();
    fs::create_dir(preview.join("upper/n")).unwrap();
    let before = tree(&ws);
    let layered = LayeredDirectory { directory: ws.clone(), upper: preview.join("upper"), work: preview.join("work") };
    let changes = || [changes(&layered, began).unwrap()];
    match commit(&preview, &changes()) {
        Err(CommitError::Io { path, error }) => {
            assert_eq!((path, error.kind()), (ws.clone(), io::ErrorKind::StorageFull));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(tree(&ws), before);
    assert_eq!(own_names(&ws), [""; 0]);
    assert!(!has_begun(&preview));
    // The same changes can be committed once space is available.
    fs::write(preview.join("upper/large"), "small").unwrap();
    assert!(commit(&preview, &changes()).unwrap().is_whole());
    assert_eq!(fs::read(ws.join("a")).unwrap(), b"new");
}

#[test]
fn a_full_disk_aborts_a_commit_before_anything_is_written() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().canonicalize().unwrap();
    for name in ["ws", "preview/upper", "preview/work"] {
        fs::create_dir_all(root.join(name)).unwrap();
    }
    let script = format!(
        "mount -t tmpfs -o size=1m tmpfs {0}/ws || exit 77; \
         {1} --exact sys::overlay::tests::faults::changes_are_committed_to_a_full_disk",
        root.display(),
        std::env::current_exe().unwrap().display()
    );
    let ran = Command::new("unshare").args(["-Urm", "bash", "-c", &script]).env(FULL, &root).output().unwrap();
    if ran.status.code() == Some(77) {
        eprintln!("skipped: no tmpfs can be mounted here");
        return;
    }
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stdout));
}

/// Environment variable through which the next test passes the path of the small disk to its child process.
const SMALL_DISK: &str = "AYE_TEST_SMALL_DISK";

/// Commits to a workspace on a disk that runs full, and commits again once space has been freed.
#[test]
#[ignore = "child process of another test"]
fn changes_are_committed_to_a_small_disk() {
    let Some(disk) = std::env::var_os(SMALL_DISK).map(PathBuf::from) else { return };
    let (lower, preview) = (disk.join("small"), disk.join("preview"));
    fill(&lower);
    fs::write(lower.join("filler"), vec![1; 1 << 20]).unwrap();
    let began = mark(&preview).unwrap();
    let layered = LayeredDirectory { directory: lower.clone(), upper: preview.join("upper"), work: preview.join("work") };
    for (name, bytes) in [("a", 600 << 10), ("d/f", 600 << 10), ("n", 600 << 10)] {
        fs::create_dir_all(layered.upper.join(name).parent().unwrap()).unwrap();
        fs::write(layered.upper.join(name), vec![2; bytes]).unwrap();
    }
    let (before, all) = (tree(&lower), [changes(&layered, began).unwrap()]);
    let error = commit(&preview, &all).unwrap_err();
    assert!(error.is_full(), "{error}");
    assert_eq!((tree(&lower), has_begun(&preview), own_names(&lower)), (before, false, Vec::new()));
    fs::remove_file(lower.join("filler")).unwrap();
    assert!(commit(&preview, &all).unwrap().is_whole());
    assert_eq!(["a", "d/f", "n"].map(|name| fs::metadata(lower.join(name)).unwrap().len()), [600 << 10; 3]);
    println!("the small disk was full");
}

#[test]
fn a_commit_to_a_full_disk_leaves_no_partial_files_and_a_retry_completes() {
    let directory = tempfile::tempdir().unwrap();
    let disk = directory.path().canonicalize().unwrap();
    for name in ["small", "preview/upper", "preview/work"] {
        fs::create_dir_all(disk.join(name)).unwrap();
    }
    let test = "sys::overlay::tests::faults::changes_are_committed_to_a_small_disk";
    let script = "mount -t tmpfs -o size=2600k tmpfs \"$1/small\" && AYE_TEST_SMALL_DISK=$1 exec \"$2\" --exact --ignored --nocapture \"$3\"";
    let own = std::env::current_exe().unwrap();
    let ran = Command::new("unshare").args(["-Urm", "bash", "-c", script, "bash"]).arg(&disk).arg(own).arg(test).output();
    let Some(ran) = ran.ok().filter(|ran| !ran.stderr.starts_with(b"mount") && !ran.stderr.starts_with(b"unshare")) else {
        return eprintln!("skipped: no small disk can be mounted here");
    };
    let printed = String::from_utf8_lossy(&ran.stdout);
    assert!(
        ran.status.success() && printed.contains("the small disk was full"),
        "{printed}\n{}",
        String::from_utf8_lossy(&ran.stderr)
    );
}
