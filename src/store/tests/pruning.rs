//! Tests for pruning, partial reads and imports.

use super::*;
use crate::store::prune::free_space;
use std::ops::ControlFlow;

fn told(text: &str) -> ImportedSession {
    let written = |record| TimedRecord { time: jiff::Timestamp::UNIX_EPOCH, record };
    ImportedSession {
        session: session(ID),
        created: jiff::Timestamp::UNIX_EPOCH,
        title: Some("from elsewhere".to_owned()),
        draft: "not sent".to_owned(),
        parent: None,
        records: vec![written(prompt(text)), written(ended())],
    }
}

#[test]
fn a_session_is_imported_completely_unless_its_id_exists() {
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path()).unwrap();
    assert!(store.import(told("first")).unwrap());
    assert!(!store.import(told("second")).unwrap());
    let loaded = store.load(&SessionId::new(ID)).unwrap();
    assert_eq!((loaded.records, loaded.draft.as_str()), (vec![prompt("first"), ended()], "not sent"));
    let summary = store.find(ID).unwrap();
    assert_eq!((summary.title.as_deref(), summary.created), (Some("from elsewhere"), jiff::Timestamp::UNIX_EPOCH));
    assert!(summary.updated > summary.created, "what is new here is not old");
    assert_eq!(summary.held_by, None);
    let _claim = store.claim(&SessionId::new(ID)).unwrap();
    append(&store, ID, vec![queue("more")], Durability::Power);
    assert_eq!(store.load(&SessionId::new(ID)).unwrap().records.len(), 3);
}

#[test]
fn records_are_visited_one_at_a_time_until_the_callback_stops() {
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let _claim = store.create(session(ID));
    append(&store, ID, vec![prompt("a"), queue("b"), ended()], Durability::Process);
    let mut seen = Vec::new();
    store
        .for_each_record(&SessionId::new(ID), |written| {
            seen.push(written.record);
            if seen.len() == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
        .unwrap();
    assert_eq!(seen, [prompt("a"), queue("b")]);
    let half = "UPDATE records SET json = substr(json, 1, length(json) / 2) WHERE seq = 1";
    rusqlite::Connection::open(dir.path().join("aye.db")).unwrap().execute(half, []).unwrap();
    let mut all = Vec::new();
    let visit = |written: TimedRecord| {
        all.push(written.record);
        ControlFlow::Continue(())
    };
    store.for_each_record(&SessionId::new(ID), visit).unwrap();
    assert_eq!(all, [Record::Unreadable, queue("b"), ended()], "half a record stops nothing");
    let missing = store.for_each_record(&SessionId::new("none"), |_| ControlFlow::Continue(()));
    assert!(matches!(missing, Err(StoreError::NoSession { .. })));
}

#[test]
fn only_unclaimed_and_unchanged_sessions_are_deleted() {
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let claim = store.create(session(ID));
    append(&store, ID, vec![prompt("a")], Durability::Process);
    let updated = store.find(ID).unwrap().updated;
    let id = SessionId::new(ID);
    // This process holds the lock.
    assert!(!store.forget_if_idle(&id, updated).unwrap());
    drop(claim);
    let earlier = updated - std::time::Duration::from_secs(1);
    assert!(!store.forget_if_idle(&id, earlier).unwrap(), "something was said since");
    assert!(store.forget_if_idle(&id, updated).unwrap());
    assert!(!store.forget_if_idle(&id, updated).unwrap());
    assert_eq!(store.sessions(None).unwrap(), []);
}

fn length(dir: &TempDir) -> u64 {
    dir.path().join("aye.db").metadata().unwrap().len()
}

#[test]
fn space_of_deleted_sessions_is_returned_to_the_file_system() {
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path()).unwrap();
    drop(store.create(session(ID)));
    // Incompressible data.
    let noise = |seed: u64| {
        let mut text = String::new();
        let mut hash = blake3::hash(&seed.to_le_bytes());
        while text.len() < 200_000 {
            text.push_str(&hash.to_hex());
            hash = blake3::hash(hash.as_bytes());
        }
        text
    };
    let claim = store.create(session(ID));
    (0..20).for_each(|seed| append(&store, ID, vec![prompt(&noise(seed))], Durability::Process));
    drop(claim);
    store.release_pages(ReleaseMode::InSteps).unwrap();
    let before = length(&dir);
    assert!(before > 1_000_000, "{before}");
    assert!(store.forget_if_idle(&SessionId::new(ID), store.find(ID).unwrap().updated).unwrap());
    store.release_pages(ReleaseMode::InSteps).unwrap();
    assert!(length(&dir) < before / 4, "{} of {before}", length(&dir));
    assert_eq!(free_space(&store.database).unwrap().free_bytes, 0);
}

#[test]
fn an_older_store_can_return_space_after_it_was_rewritten() {
    let dir = TempDir::new().unwrap();
    {
        let store = Store::open(dir.path()).unwrap();
        let _claim = store.create(session(ID));
        append(&store, ID, vec![prompt("kept")], Durability::Power);
    }
    // A store created by an older aye, with many free pages.
    let old = rusqlite::Connection::open(dir.path().join("aye.db")).unwrap();
    old.execute_batch(
        "PRAGMA auto_vacuum = NONE; VACUUM; CREATE TABLE filler (blob BLOB);
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200)
         INSERT INTO filler SELECT randomblob(200000) FROM n; DROP TABLE filler;",
    )
    .unwrap();
    drop(old);
    let store = Store::open(dir.path()).unwrap();
    let before = free_space(&store.database).unwrap();
    assert!(before.free_bytes > 16 << 20, "{before:?}");
    store.release_pages(ReleaseMode::InSteps).unwrap();
    assert_eq!(free_space(&store.database).unwrap().free_bytes, before.free_bytes, "page by page it cannot");
    let claim = store.claim(&SessionId::new(ID)).unwrap();
    store.release_pages(ReleaseMode::Whole).unwrap();
    assert_eq!(free_space(&store.database).unwrap().free_bytes, before.free_bytes, "somebody works");
    drop(claim);
    store.release_pages(ReleaseMode::Whole).unwrap();
    let after = free_space(&store.database).unwrap();
    assert!(after.bytes < 1 << 20, "{after:?}");
    assert_eq!(store.load(&SessionId::new(ID)).unwrap().records, [prompt("kept")]);
}
