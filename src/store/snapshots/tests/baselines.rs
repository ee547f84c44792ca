use super::*;
use crate::ports::{Attribution, Differences};
use crate::protocol::{ChangedBy, SessionId};

fn owner() -> Attribution {
    Attribution { session: SessionId::new("s"), task: None, step: 0 }
}

impl Bench {
    /// Changes a file the way a tool does: stores the baseline, writes the file, and records the result.
    fn changes_file(&self, path: &str, text: impl AsRef<[u8]>) {
        let place = vec![self.root().join(path)];
        block_on(self.snapshots.keep(owner(), place.clone())).unwrap();
        self.write(path, text);
        block_on(self.snapshots.record_tool_change(owner(), place)).unwrap();
    }

    fn differences(&self) -> Differences {
        block_on(self.snapshots.differences(owner().session, None)).unwrap()
    }
}

#[test]
fn baselines_keep_the_first_content_despite_later_changes() {
    let bench = Bench::new();
    bench.write("a", "one");
    for text in ["two", "three", "one", "four"] {
        bench.changes_file("a", text);
    }
    let found = bench.differences();
    assert_eq!((found.files.len(), found.left_out), (1, 0));
    assert_eq!(bench.content(&found.files[0].before), b"one");
    assert_eq!(found.files[0].by, [ChangedBy::Tool]);
    bench.changes_file("a", "one");
    assert_eq!(bench.differences().files, []);
}

#[test]
fn files_beyond_the_limits_are_reported_with_the_reason() {
    let bench = Bench::within(SnapshotLimits { session_files: 2, file_bytes: 10, session_bytes: 8, ..LIMITS });
    bench.write("large", "x".repeat(11));
    bench.write("a", "12345678");
    bench.write("b", "87654321");
    bench.changes_file("large", "y".repeat(12));
    bench.changes_file("a", "1");
    bench.changes_file("b", "2");
    let found = bench.differences();
    assert_eq!(found.left_out, 1);
    let why: Vec<_> = found.files.iter().map(|one| one.why.as_deref()).collect();
    assert_eq!(why, [None, Some("11 bytes, over the limit of 10 per file")]);
    let bench = Bench::within(SnapshotLimits { session_bytes: 8, ..LIMITS });
    bench.write("a", "12345678");
    bench.write("b", "87654321");
    bench.changes_file("a", "1");
    bench.changes_file("b", "2");
    let found = bench.differences();
    assert_eq!(found.files[1].why.as_deref(), Some("over the limit of 8 new bytes per snapshot"));
}

#[test]
fn baselines_outlive_snapshots_and_are_deleted_with_their_session() {
    let bench = Bench::within(SnapshotLimits { all_bytes: 2500, ..LIMITS });
    bench.write("a", "the first");
    bench.take();
    bench.changes_file("a", "x");
    for round in 0..5 {
        bench.write("b", vec![round; 1000]);
        bench.take();
    }
    assert_eq!(bench.content(&bench.differences().files[0].before), b"the first");
    bench.snapshots.forget(&owner().session).unwrap();
    assert_eq!(bench.differences(), Differences::default());
    let gone = ContentId(*blake3::hash(b"the first").as_bytes());
    block_on(bench.snapshots.content(gone)).unwrap_err();
}

#[test]
fn an_older_index_is_migrated_without_loss() {
    let bench = Bench::new();
    bench.write("a", "one");
    let taken = bench.take();
    let Bench { data, tree, .. } = bench;
    let index = rusqlite::Connection::open(data.path().join("snapshots/index.db")).unwrap();
    index.execute_batch("DROP TABLE baselines; DROP TABLE spans; DROP TABLE tracked; DROP TABLE directories; DROP TABLE gaps; PRAGMA user_version = 1").unwrap();
    drop(index);
    let snapshots = Snapshots::new(data.path());
    let bench = Bench { data, tree, snapshots };
    bench.changes_file("a", "two");
    assert_eq!(bench.content(&bench.changes(&taken)[0].before), b"one");
    assert_eq!(bench.differences().files.len(), 1);
}
