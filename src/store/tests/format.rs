//! Tests of opening stores with older formats.

use super::damage::bytes;
use super::*;

/// Creates a format 2 store as an older aye wrote it, containing a session and two decisions.
pub(super) fn of_format_2(dir: &Path) -> PathBuf {
    let path = dir.join("aye.db");
    let old = Connection::open(&path).unwrap();
    for step in &schema::MIGRATIONS[..2] {
        old.execute_batch(step).unwrap();
    }
    let json = serde_json::to_string(&prompt("kept")).unwrap();
    old.execute_batch(&format!(
        "PRAGMA application_id = {}; PRAGMA user_version = 2; PRAGMA journal_mode = wal;
         INSERT INTO sessions (id, workspace_id, workspace, title, created, updated, status, model) VALUES ('{ID}', 'w1', '/src/greeter', 'kept', 5, 6, 'idle', 'm');
         INSERT INTO records (session, seq, json, time) VALUES (1, 1, '{json}', 6);
         INSERT INTO decisions (time, session, workspace, tool, summary, verdict, decider, reason, mode) VALUES
             (7, '{ID}', '/src/greeter', 'ReadFile', 'Read a', 'allow', 'you', '', 'ask'), (8, NULL, '/w', 'ReadFile', 'Read b', 'deny', 'you', '', 'ask');",
        schema::APPLICATION_ID
    ))
    .unwrap();
    path
}

/// Returns the file name of the backup.
pub(super) fn kept() -> String {
    format!("aye.db.before-v{}", schema::MIGRATIONS.len())
}

fn decided(store: &Store) -> Vec<(Option<String>, String, String)> {
    let all = store.decisions(&DecisionFilter { most: 10, ..DecisionFilter::default() }).unwrap();
    all.into_iter().map(|one| (one.session_id, one.workspace, one.summary)).collect()
}

#[test]
fn a_store_in_an_older_format_is_backed_up_before_its_migration() {
    let dir = TempDir::new().unwrap();
    of_format_2(dir.path());
    let store = Store::open(dir.path()).unwrap();
    let copy = dir.path().join(kept());
    assert!(store.notices()[0].contains(&copy.display().to_string()), "{:?}", store.notices());
    let id = SessionId::new(ID);
    assert_eq!(store.load(&id).unwrap().records, [prompt("kept")]);
    let owned =
        |session: Option<&str>, place: &str, summary: &str| (session.map(str::to_owned), place.to_owned(), summary.to_owned());
    let both = [owned(Some(ID), "/src/greeter", "Read a"), owned(None, "/w", "Read b")];
    assert_eq!(decided(&store), both);
    // The decisions outlive the session.
    store.delete(&id).unwrap();
    assert_eq!(decided(&store), both);
    drop(store);
    assert_eq!(Store::open(dir.path()).unwrap().notices(), [""; 0]);

    let copy = Connection::open(&copy).unwrap();
    let version: i64 = copy.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
    let said: String = copy.query_row("SELECT json FROM records", [], |row| row.get(0)).unwrap();
    assert_eq!((version, serde_json::from_str::<Record>(&said).unwrap()), (2, prompt("kept")));
}

#[test]
fn a_second_backup_does_not_overwrite_the_first() {
    let dir = TempDir::new().unwrap();
    of_format_2(dir.path());
    fs::write(dir.path().join(kept()), "an earlier one").unwrap();
    let store = Store::open(dir.path()).unwrap();
    assert!(store.notices()[0].contains(&format!("{}-2", kept())), "{:?}", store.notices());
    assert_eq!(fs::read(dir.path().join(kept())).unwrap(), b"an earlier one");
}

#[test]
fn a_store_that_cannot_be_backed_up_is_not_migrated() {
    let dir = TempDir::new().unwrap();
    let path = of_format_2(dir.path());
    // The temporary name of the backup is taken by a directory, which cannot be removed as a file.
    fs::create_dir(dir.path().join(format!("{}.new", kept()))).unwrap();
    let before = fs::read(&path).unwrap();
    let error = Store::open(dir.path()).err().unwrap().to_string();
    assert!(error.contains("older format") && error.contains("nothing was changed"), "{error}");
    assert!(fs::read(&path).unwrap() == before);
    fs::remove_dir(dir.path().join(format!("{}.new", kept()))).unwrap();
    assert_eq!(Store::open(dir.path()).unwrap().load(&SessionId::new(ID)).unwrap().records, [prompt("kept")]);
}

#[test]
fn a_failed_migration_leaves_the_store_unchanged() {
    let dir = TempDir::new().unwrap();
    let path = of_format_2(dir.path());
    // An existing table of this name blocks the migration.
    Connection::open(&path).unwrap().execute_batch("CREATE TABLE packed (other)").unwrap();
    let before = fs::read(&path).unwrap();
    let store = Store::open(dir.path()).unwrap();
    assert!(store.notices()[0].contains("damaged"), "tables that are not as expected: {:?}", store.notices());
    assert_eq!(store.load(&SessionId::new(ID)).unwrap().records, [prompt("kept")]);
    assert!(bytes(dir.path()).values().any(|kept| *kept == before), "the old one is kept as it was");
    assert!(!dir.path().join(kept()).exists());
}

#[test]
fn a_damaged_store_in_an_older_format_is_salvaged() {
    let dir = TempDir::new().unwrap();
    let path = of_format_2(dir.path());
    let mut content = fs::read(&path).unwrap();
    content[..16].fill(b'x');
    fs::write(&path, content).unwrap();
    let store = Store::open(dir.path()).unwrap();
    assert!(store.notices()[0].contains("1 of 1 sessions recovered"), "{:?}", store.notices());
    assert_eq!(store.load(&SessionId::new(ID)).unwrap().records, [prompt("kept")]);
    assert_eq!(decided(&store).len(), 2);
}
