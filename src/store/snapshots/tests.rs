mod baselines;

use super::*;
use crate::ports::StoredState;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use tempfile::TempDir;

struct Bench {
    data: TempDir,
    tree: TempDir,
    snapshots: Snapshots,
}

impl Bench {
    fn new() -> Self {
        Self::within(LIMITS)
    }

    fn within(limits: SnapshotLimits) -> Self {
        let data = tempfile::tempdir().unwrap();
        let snapshots = Snapshots::with_limits(data.path(), limits);
        Self { data, tree: tempfile::tempdir().unwrap(), snapshots }
    }

    fn root(&self) -> PathBuf {
        self.tree.path().canonicalize().unwrap()
    }

    fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        let path = self.root().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn files(&self) -> Vec<PathBuf> {
        fn below(directory: &Path, root: &Path, found: &mut Vec<PathBuf>) {
            for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
                if entry.file_type().unwrap().is_dir() {
                    below(&entry.path(), root, found);
                } else {
                    found.push(entry.path().strip_prefix(root).unwrap().to_owned());
                }
            }
        }
        let mut found = Vec::new();
        below(&self.root(), &self.root(), &mut found);
        found
    }

    fn take(&self) -> Checkpoint {
        block_on(self.snapshots.take(self.root(), self.files())).unwrap()
    }

    fn changes(&self, since: &Checkpoint) -> Vec<PathDifference> {
        block_on(self.snapshots.changes(since.clone(), self.files())).unwrap()
    }

    fn content(&self, stood: &StoredState) -> Vec<u8> {
        let StoredState::File { content, .. } = stood else { panic!("{stood:?} is no file") };
        block_on(self.snapshots.content(*content)).unwrap()
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

fn paths(changed: &[PathDifference]) -> Vec<&str> {
    changed.iter().map(|one| one.path.to_str().unwrap()).collect()
}

#[test]
fn changes_creations_and_deletions_are_reported_with_their_previous_content() {
    let bench = Bench::new();
    bench.write("src/a", "one");
    bench.write("b", "two");
    bench.write("same", "three");
    symlink("b", bench.root().join("link")).unwrap();
    let taken = bench.take();
    bench.write("src/a", "ONE");
    fs::remove_file(bench.root().join("b")).unwrap();
    bench.write("new", "four");
    fs::remove_file(bench.root().join("link")).unwrap();
    symlink("same", bench.root().join("link")).unwrap();
    let changed = bench.changes(&taken);
    assert_eq!(paths(&changed), ["b", "link", "new", "src/a"]);
    assert_eq!((bench.content(&changed[0].before), &changed[0].after), (b"two".to_vec(), &StoredState::Missing));
    assert_eq!(
        (&changed[1].before, &changed[1].after),
        (&StoredState::Link { to: "b".into() }, &StoredState::Link { to: "same".into() })
    );
    assert_eq!(changed[2].before, StoredState::Missing);
    assert_eq!(bench.content(&changed[3].before), b"one");
}

#[test]
fn mode_changes_count_and_time_changes_do_not() {
    let bench = Bench::new();
    bench.write("touched", "text");
    bench.write("script", "text");
    let taken = bench.take();
    let file = fs::File::open(bench.root().join("touched")).unwrap();
    file.set_modified(std::time::UNIX_EPOCH).unwrap();
    fs::set_permissions(bench.root().join("script"), fs::Permissions::from_mode(0o755)).unwrap();
    let changed = bench.changes(&taken);
    assert_eq!(paths(&changed), ["script"]);
    assert_eq!(bench.take().number, taken.number + 1);
}

#[test]
fn changes_that_keep_size_and_time_are_detected() {
    let bench = Bench::new();
    bench.write("a", "one");
    let path = bench.root().join("a");
    let time = fs::metadata(&path).unwrap().modified().unwrap();
    let taken = bench.take();
    fs::write(&path, "two").unwrap();
    fs::File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
    assert_eq!(paths(&bench.changes(&taken)), ["a"]);
}

#[test]
fn unchanged_files_make_no_snapshot_and_snapshots_are_shared_between_processes() {
    let bench = Bench::new();
    bench.write("a", "one");
    let first = bench.take();
    assert_eq!(bench.take().number, first.number);
    let other = Bench { snapshots: Snapshots::new(bench.data.path()), ..bench };
    assert_eq!(other.take().number, first.number);
    other.write("a", "two");
    assert_eq!(other.take().number, first.number + 1);
    assert_eq!(other.content(&other.changes(&first)[0].before), b"one");
}

#[test]
fn processes_that_take_snapshots_in_turn_do_not_use_stale_caches() {
    let bench = Bench::new();
    bench.write("a", "one");
    let first = bench.take();
    let other = Snapshots::new(bench.data.path());
    bench.write("a", "two");
    let second = block_on(other.take(bench.root(), bench.files())).unwrap();
    bench.write("a", "one");
    let third = bench.take();
    assert_eq!([second.number, third.number], [first.number + 1, first.number + 2]);
    assert_eq!(bench.content(&bench.changes(&second)[0].before), b"two");
    assert_eq!(bench.changes(&first), []);
}

#[test]
fn large_and_special_files_are_omitted_and_reported() {
    let bench = Bench::within(SnapshotLimits { file_bytes: 10, ..LIMITS });
    bench.write("large", "x".repeat(11));
    bench.write("small", "x");
    nix::unistd::mkfifo(&bench.root().join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let taken = bench.take();
    assert_eq!(taken.left_out_count, 2);
    let said: BTreeMap<_, _> = taken.left_out.iter().cloned().collect();
    assert_eq!(said[Path::new("large")], "11 bytes, over the limit of 10 per file");
    assert_eq!(said[Path::new("pipe")], "neither a file nor a symlink");
    bench.write("large", "y".repeat(12));
    assert_eq!(bench.changes(&taken), [], "of what was not kept nothing is claimed");
    bench.write("new", "y".repeat(11));
    assert_eq!(bench.changes(&taken)[0].after, StoredState::Unkept, "what is too large is not read");
    bench.write("large", "y");
    let fits = bench.take();
    bench.write("large", "z");
    assert_eq!(paths(&bench.changes(&fits)), ["large"]);
}

#[test]
fn the_oldest_snapshots_are_evicted_with_their_contents() {
    let bench = Bench::within(SnapshotLimits { all_bytes: 2500, ..LIMITS });
    let mut taken = Vec::new();
    for round in 0..4 {
        bench.write("a", vec![round; 1000]);
        taken.push(bench.take());
    }
    let error = block_on(bench.snapshots.changes(taken[0].clone(), bench.files())).unwrap_err();
    assert!(error.message.contains("was evicted for newer ones"), "{error}");
    assert_eq!(bench.content(&bench.changes(&taken[2])[0].before), vec![2; 1000]);
    let kept = fs::read_dir(bench.data.path().join("snapshots/contents")).unwrap();
    let files: usize = kept.map(|entry| fs::read_dir(entry.unwrap().path()).unwrap().count()).sum();
    assert_eq!(files, 2);
}

#[test]
fn damaged_content_is_an_error_and_a_damaged_index_is_moved_aside() {
    let bench = Bench::new();
    bench.write("a", "one");
    let taken = bench.take();
    bench.write("a", "two");
    let StoredState::File { content, .. } = bench.changes(&taken)[0].before.clone() else { panic!("not a file") };
    let object = objects::Objects::open(bench.data.path().join("snapshots/contents")).unwrap().path(content);
    fs::write(&object, "else").unwrap();
    let error = block_on(bench.snapshots.content(content)).unwrap_err();
    assert!(error.message.contains("damaged"), "{error}");
    let index = bench.data.path().join("snapshots/index.db");
    let bench = Bench { snapshots: Snapshots::new(bench.data.path()), ..bench };
    fs::write(&index, "this is no database, and it is long enough to be looked at as one ............................").unwrap();
    fs::remove_file(bench.data.path().join("snapshots/index.db-wal")).ok();
    fs::remove_file(bench.data.path().join("snapshots/index.db-shm")).ok();
    bench.take();
    let aside = fs::read_dir(bench.data.path().join("snapshots")).unwrap();
    assert!(aside.map(|entry| entry.unwrap().file_name()).any(|name| name.to_string_lossy().contains("damaged")));
}

#[test]
fn stored_files_are_accessible_only_to_their_owner() {
    let bench = Bench::new();
    bench.write("a", "one");
    bench.write("large", vec![1; 2 << 20]);
    bench.take();
    let mut looked = 0;
    let mut pending = vec![bench.data.path().join("snapshots")];
    while let Some(path) = pending.pop() {
        let metadata = fs::metadata(&path).unwrap();
        assert_eq!(metadata.permissions().mode() & 0o077, 0, "{}", path.display());
        looked += 1;
        if metadata.is_dir() {
            pending.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
    }
    assert!(looked > 4);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Earlier file states can always be reconstructed from the current files and the stored contents.
    #[test]
    fn earlier_states_can_be_reconstructed_from_current_files_and_changes(
        rounds in proptest::collection::vec(proptest::collection::vec((0..6u8, 0..4u8), 0..8), 1..5)
    ) {
        let bench = Bench::new();
        let mut history = Vec::new();
        for round in rounds {
            for (file, what) in round {
                let path = bench.root().join(format!("f{file}"));
                let _ = fs::remove_file(&path);
                match what {
                    0 => {}
                    1 => symlink("somewhere", &path).unwrap(),
                    text => fs::write(&path, [b'a' + text]).unwrap(),
                }
            }
            history.push((bench.take(), state(&bench)));
        }
        let present = state(&bench);
        for (checkpoint, past) in history {
            let mut told = present.clone();
            for one in bench.changes(&checkpoint) {
                match &one.before {
                    StoredState::Missing => told.remove(&one.path),
                    StoredState::Link { to } => told.insert(one.path.clone(), format!("link {}", to.display())),
                    StoredState::File { .. } => {
                        let text = bench.content(&one.before);
                        told.insert(one.path.clone(), String::from_utf8(text).unwrap())
                    }
                    StoredState::Unkept => panic!("all of it is kept"),
                };
            }
            prop_assert_eq!(told, past);
        }
    }
}

fn state(bench: &Bench) -> BTreeMap<PathBuf, String> {
    let read = |path: PathBuf| {
        let place = bench.root().join(&path);
        let text = match fs::read_link(&place) {
            Ok(to) => format!("link {}", to.display()),
            Err(_) => fs::read_to_string(&place).unwrap(),
        };
        (path, text)
    };
    bench.files().into_iter().map(read).collect()
}
