use super::*;
use crate::ports::{Durability, Record, TaskEnd};
use crate::protocol::{Message, MessageId, Part, Role, TaskId, WorkspaceId};
use crate::sys::instance::Instance;
use futures_util::FutureExt;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::fs;
use std::future::Future;
use tempfile::TempDir;

fn wait<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

fn session(id: &str) -> NewSession {
    NewSession {
        id: SessionId::new(id),
        workspace_id: WorkspaceId::new("w1"),
        workspace: PathBuf::from("/src/greeter"),
        model: "demo/recorded".to_owned(),
    }
}

fn prompt(text: &str) -> Record {
    let prompt = Message {
        message_id: MessageId::new("m1"),
        role: Role::User,
        content: vec![Part::Text { text: text.to_owned() }],
        token_count: 3,
        task_id: TaskId::new("t1"),
        step_id: None,
        timestamp: jiff::Timestamp::UNIX_EPOCH,
    };
    Record::TaskStarted { prompt, max_steps: 50 }
}

fn ended() -> Record {
    Record::TaskEnded { task_id: TaskId::new("t1"), step_count: 1, end: TaskEnd::Completed }
}

fn queue(text: &str) -> Record {
    Record::Queue { prompts: vec![text.to_owned()] }
}

const ID: &str = "00112233445566778899aabbccddeeff";
const OTHER: &str = "001122334455667788990000000000ff";

fn append(store: &Store, id: &str, records: Vec<Record>, durability: Durability) {
    wait(store.journal(&SessionId::new(id)).append(records, durability)).unwrap();
}

#[test]
fn records_come_back_in_order_after_the_store_is_opened_again() {
    let dir = TempDir::new().unwrap();
    {
        let store = Store::open(dir.path()).unwrap();
        let _claim = store.create(session(ID));
        append(&store, ID, vec![prompt("Explain\nthe parser"), queue("a")], Durability::Power);
        append(&store, ID, vec![queue("b")], Durability::Process);
        append(&store, ID, vec![ended()], Durability::Power);
        wait(store.journal(&SessionId::new(ID)).save_draft("half a sent".to_owned())).unwrap();
    }
    let store = Store::open(dir.path()).unwrap();
    let loaded = store.load(&SessionId::new(ID)).unwrap();
    assert_eq!(loaded.records, [prompt("Explain\nthe parser"), queue("a"), queue("b"), ended()]);
    assert_eq!((loaded.skipped, loaded.draft.as_str()), (0, "half a sent"));
    assert_eq!(loaded.summary.title.as_deref(), Some("Explain"));
    assert_eq!(loaded.summary.status, SessionStatus::Idle);
    assert_eq!(loaded.summary.held_by, None);
    assert!(store.notices().is_empty());
}

#[test]
fn what_was_committed_is_there_when_the_process_dies_without_closing() {
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let claim = store.create(session(ID));
    append(&store, ID, vec![prompt("hello")], Durability::Process);
    // What a dead process leaves is what is on the disk at this moment, log and all.
    let copy = TempDir::new().unwrap();
    for file in ["aye.db", "aye.db-wal"] {
        fs::copy(dir.path().join(file), copy.path().join(file)).unwrap();
    }
    let reopened = Store::open(copy.path()).unwrap();
    assert!(reopened.notices().is_empty());
    assert_eq!(reopened.load(claim.id()).unwrap().records, [prompt("hello")]);
}

const CHILD_DIRECTORY: &str = "AYE_TEST_STORE_DIRECTORY";

/// Run by the test below in a process of its own: says aloud each record that was committed, until it is killed.
#[test]
#[ignore = "is killed by the test that starts it"]
fn a_process_that_never_stops_writing() {
    use std::io::Write;
    let Some(directory) = std::env::var_os(CHILD_DIRECTORY) else {
        eprintln!("skipped: only another test starts this");
        return;
    };
    let store = Store::open(Path::new(&directory)).unwrap();
    let _claim = store.create(session(ID));
    append(&store, ID, vec![prompt("start")], Durability::Process);
    for number in 0.. {
        append(&store, ID, vec![queue(&number.to_string()), queue("pair")], Durability::Process);
        writeln!(std::io::stdout(), "committed {number}").unwrap();
    }
}

#[cfg(unix)]
#[test]
fn nothing_that_was_acknowledged_is_lost_by_a_kill() {
    use std::io::{BufRead, BufReader};
    for stop_at in [0, 1, 40] {
        let dir = TempDir::new().unwrap();
        let mut child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["store::tests::a_process_that_never_stops_writing", "--exact", "--ignored", "--nocapture"])
            .env(CHILD_DIRECTORY, dir.path())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let mut numbers =
            lines.filter_map(|line| line.split_once("committed ").map(|(_, number)| number.parse::<usize>().unwrap()));
        numbers.find(|number| *number == stop_at).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        let acknowledged = numbers.last().unwrap_or(stop_at);

        let store = Store::open(dir.path()).unwrap();
        assert_eq!(store.notices(), [""; 0]);
        let loaded = store.load(&SessionId::new(ID)).unwrap();
        let pairs = (loaded.records.len() - 1) / 2;
        assert!(pairs > acknowledged, "{pairs} pairs, {acknowledged} acknowledged");
        let expected = (0..pairs).flat_map(|number| [queue(&number.to_string()), queue("pair")]);
        assert_eq!(loaded.records, std::iter::once(prompt("start")).chain(expected).collect::<Vec<_>>());
        assert_eq!(loaded.summary.held_by, None);
        store.claim(&SessionId::new(ID)).unwrap();
    }
}

#[test]
fn a_session_in_which_nothing_was_said_leaves_no_row() {
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path()).unwrap();
    drop(store.create(session(ID)));
    let claim = store.create(session(OTHER));
    let journal = store.journal(claim.id());
    wait(journal.append(Vec::new(), Durability::Power)).unwrap();
    wait(journal.save_draft(String::new())).unwrap();
    assert_eq!(store.sessions(None).unwrap(), []);
    wait(journal.save_draft("typed".to_owned())).unwrap();
    assert_eq!(store.load(claim.id()).unwrap().draft, "typed");
    assert_eq!(store.latest(&WorkspaceId::new("w1")).unwrap(), None, "a draft is not a conversation to go on with");
    wait(journal.save_draft(String::new())).unwrap();
    assert_eq!(store.sessions(None).unwrap(), []);
}

#[test]
fn sessions_are_listed_by_workspace_the_latest_first() {
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let elsewhere = "ffff0000000000000000000000000000";
    let _claims = [
        store.create(session(ID)),
        store.create(session(OTHER)),
        store.create(NewSession { workspace_id: WorkspaceId::new("w2"), ..session(elsewhere) }),
    ];
    for id in [ID, OTHER, elsewhere] {
        append(&store, id, vec![prompt(id)], Durability::Process);
    }
    let ids = |workspace: Option<&str>| {
        let workspace = workspace.map(WorkspaceId::new);
        let listed = store.sessions(workspace.as_ref()).unwrap();
        listed.into_iter().map(|session| session.session_id.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(ids(Some("w1")), [OTHER, ID]);
    assert_eq!(ids(Some("w2")), [elsewhere]);
    assert_eq!(ids(None), [elsewhere, OTHER, ID]);
    assert_eq!(store.latest(&WorkspaceId::new("w1")).unwrap().unwrap().session_id.as_str(), OTHER);
    assert_eq!(store.latest(&WorkspaceId::new("w3")).unwrap(), None);
}

#[test]
fn a_prefix_finds_one_session_or_says_why_not() {
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let _claims = [store.create(session(ID)), store.create(session(OTHER))];
    for id in [ID, OTHER] {
        append(&store, id, vec![prompt("hi")], Durability::Process);
    }
    for (given, expected) in [
        (ID, Ok(ID)),
        ("00112233445566778899AA", Ok(ID)),
        ("0011223344556677889900", Ok(OTHER)),
        ("00112", Err("`00112` is no session id")),
        ("notahex", Err("`notahex` is no session id")),
        ("001122'; DROP", Err("is no session id")),
        ("ffffff", Err("there is no session `ffffff`")),
        (
            "001122",
            Err("`001122` is the start of 2 sessions: 001122334455667788990000000000ff, 00112233445566778899aabbccddeeff"),
        ),
    ] {
        let found = store.find(given).map(|session| session.session_id.to_string()).map_err(|error| error.to_string());
        match (&found, expected) {
            (Ok(id), Ok(expected)) => assert_eq!(id, expected),
            (Err(message), Err(expected)) => assert!(message.contains(expected), "{message}"),
            _ => panic!("{given}: {found:?}, expected {expected:?}"),
        }
    }
}

#[test]
fn a_session_has_one_living_holder() {
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let first = store.create(session(ID));
    append(&store, ID, vec![prompt("hi")], Durability::Process);
    let id = SessionId::new(ID);
    let me = std::process::id();
    let another = Store::open(dir.path()).unwrap();
    assert!(matches!(another.claim(&id), Err(StoreError::Held { pid, .. }) if pid == me));
    assert!(matches!(another.delete(&id), Err(StoreError::Held { .. })));
    assert_eq!(another.load(&id).unwrap().summary.held_by, Some(me));
    drop(first);
    let second = store.claim(&id).unwrap();
    assert!(matches!(store.claim(&id), Err(StoreError::Held { .. })));
    drop(second);
    store.delete(&id).unwrap();
    assert!(matches!(store.load(&id), Err(StoreError::NoSession { .. })));
    assert!(matches!(store.claim(&id), Err(StoreError::NoSession { .. })));
    let left: i64 = store.inner.reader().query_row("SELECT count(*) FROM records", [], |row| row.get(0)).unwrap();
    assert_eq!(left, 0);
}

#[cfg(target_os = "linux")]
#[test]
fn a_session_of_a_dead_process_is_free_at_once() {
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let claim = store.create(session(ID));
    append(&store, ID, vec![prompt("hi")], Durability::Process);
    let now = Instance::current();
    for dead in [
        serde_json::to_string(&Instance { start_time: now.start_time + 1, ..now.clone() }).unwrap(),
        serde_json::to_string(&Instance { boot_id: "before".to_owned(), ..now }).unwrap(),
        "not a note".to_owned(),
    ] {
        store.inner.reader().execute("UPDATE sessions SET owner = ?1", [&dead]).unwrap();
        drop(store.claim(claim.id()).unwrap());
    }
}

#[test]
fn a_record_that_cannot_be_read_is_skipped_and_counted() {
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let claim = store.create(session(ID));
    append(&store, ID, vec![prompt("hi"), queue("a"), queue("b"), ended()], Durability::Process);
    let reader = store.inner.reader();
    reader.execute(r#"UPDATE records SET json = '{"record":"from_the_future"}' WHERE seq = 2"#, []).unwrap();
    reader.execute("UPDATE records SET json = CAST(x'ff00fe' AS TEXT) WHERE seq = 3", []).unwrap();
    drop(reader);
    let loaded = store.load(claim.id()).unwrap();
    assert_eq!((loaded.records, loaded.skipped), (vec![prompt("hi"), ended()], 2));
}

/// All files of a directory with their bytes.
fn bytes(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let files = fs::read_dir(dir).unwrap().map(Result::unwrap).filter(|entry| entry.path().is_file());
    files.map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap())).collect()
}

#[test]
fn a_damaged_store_is_moved_aside_byte_for_byte() {
    let sound = TempDir::new().unwrap();
    {
        let store = Store::open(sound.path()).unwrap();
        let _claim = store.create(session(ID));
        append(&store, ID, (0..200).map(|n| queue(&n.to_string().repeat(200))).collect(), Durability::Power);
    }
    let whole = fs::read(sound.path().join("aye.db")).unwrap();
    let mut scrambled = whole.clone();
    let middle = whole.len() / 2;
    scrambled[middle - 3000..middle + 3000].fill(0x5a);
    let foreign = {
        let path = sound.path().join("foreign.db");
        Connection::open(&path).unwrap().execute_batch("CREATE TABLE notes (text)").unwrap();
        fs::read(path).unwrap()
    };
    let tables_gone = {
        let path = sound.path().join("gone.db");
        fs::write(&path, &whole).unwrap();
        Connection::open(&path).unwrap().execute_batch("DROP TABLE records").unwrap();
        fs::read(path).unwrap()
    };
    for (name, content, wal) in [
        ("empty", Vec::new(), None),
        ("a byte", vec![b'S'], None),
        ("text", b"this is no database, it is a text of some length\n".repeat(50), None),
        ("cut in the header", whole[..60].to_vec(), None),
        ("cut in a page", whole[..5000].to_vec(), None),
        ("cut in half", whole[..middle].to_vec(), Some(b"a log".to_vec())),
        ("scrambled", scrambled, Some(Vec::new())),
        ("zeros", vec![0; 8192], None),
        ("foreign", foreign, None),
        ("without its tables", tables_gone, None),
    ] {
        let dir = TempDir::new().unwrap();
        fs::write(dir.path().join("aye.db"), &content).unwrap();
        if let Some(wal) = &wal {
            fs::write(dir.path().join("aye.db-wal"), wal).unwrap();
        }
        let store = Store::open(dir.path()).unwrap();
        let notice = store.notices().join("\n");
        assert!(notice.contains("damaged"), "{name}: {notice}");
        let (_, moved) = notice.split_once("moved to `").unwrap();
        let moved = PathBuf::from(moved.split('`').next().unwrap());
        assert_eq!(moved.parent(), Some(dir.path()), "{name}");
        assert!(fs::read(&moved).unwrap() == content, "{name}: the bytes changed");
        if let Some(wal) = wal {
            assert!(fs::read(aside::beside(&moved, "-wal")).unwrap() == wal, "{name}: the log changed");
        }
        let _claim = store.create(session(ID));
        append(&store, ID, vec![prompt("hi")], Durability::Power);
        drop(store);
        assert!(Store::open(dir.path()).unwrap().notices().is_empty(), "{name}: the new store is sound");
    }
}

#[test]
fn a_directory_or_a_lonely_log_in_the_place_of_the_store_is_moved_aside() {
    let dir = TempDir::new().unwrap();
    fs::create_dir(dir.path().join("aye.db")).unwrap();
    fs::write(dir.path().join("aye.db/kept"), "kept").unwrap();
    let store = Store::open(dir.path()).unwrap();
    assert!(store.notices()[0].contains("damaged"));
    let moved = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path().join("kept")).find(|path| path.exists());
    assert_eq!(fs::read_to_string(moved.unwrap()).unwrap(), "kept");

    let dir = TempDir::new().unwrap();
    fs::write(dir.path().join("aye.db-wal"), "records of a store that is gone").unwrap();
    let store = Store::open(dir.path()).unwrap();
    assert!(store.notices()[0].contains("damaged"));
    assert!(bytes(dir.path()).values().any(|content| content == b"records of a store that is gone"));
}

#[test]
fn two_damaged_stores_in_one_second_do_not_overwrite_each_other() {
    let dir = TempDir::new().unwrap();
    for content in ["first", "second", "third"] {
        fs::write(dir.path().join("aye.db"), content).unwrap();
        drop(Store::open(dir.path()).unwrap());
    }
    let kept = bytes(dir.path());
    for content in ["first", "second", "third"] {
        assert!(kept.values().any(|bytes| bytes == content.as_bytes()), "{content}");
    }
}

#[test]
fn of_many_starts_at_once_one_makes_the_store_and_one_moves_what_is_damaged() {
    let dir = TempDir::new().unwrap();
    let starts = || {
        std::thread::scope(|scope| {
            let starts: Vec<_> = (0..8).map(|_| scope.spawn(|| Store::open(dir.path()).unwrap().notices().len())).collect();
            starts.into_iter().map(|start| start.join().unwrap()).sum::<usize>()
        })
    };
    assert_eq!(starts(), 0);
    fs::write(dir.path().join("aye.db"), "damaged").unwrap();
    assert_eq!(starts(), 1);
}

#[test]
fn the_log_goes_into_the_database_before_it_grows_large() {
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let _claim = store.create(session(ID));
    for _ in 0..60 {
        append(&store, ID, vec![queue(&"x".repeat(1 << 20))], Durability::Process);
    }
    let log = fs::metadata(dir.path().join("aye.db-wal")).unwrap().len();
    assert!(log < 32 << 20, "{log} bytes");
}

#[test]
fn a_newer_store_is_refused_and_left_as_it_is() {
    let dir = TempDir::new().unwrap();
    drop(Store::open(dir.path()).unwrap());
    let path = dir.path().join("aye.db");
    Connection::open(&path).unwrap().pragma_update(None, "user_version", 99).unwrap();
    let before = fs::read(&path).unwrap();
    let error = Store::open(dir.path()).err().unwrap();
    assert!(matches!(error, StoreError::Newer { found: 99, .. }));
    assert!(error.to_string().contains("written by a newer aye"), "{error}");
    assert!(fs::read(&path).unwrap() == before);
}

#[test]
fn an_unusable_data_directory_is_named_with_what_to_do() {
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    for place in [file.clone(), file.join("below")] {
        let message = Store::open(&place).err().unwrap().to_string();
        assert!(message.contains(&format!("`{}`", place.display())), "{message}");
        assert!(message.contains("it is not a directory") && message.contains("AYE_DATA_DIR"), "{message}");
    }
}

#[cfg(unix)]
#[test]
fn a_data_directory_without_rights_is_named_with_what_to_do() {
    use std::os::unix::fs::PermissionsExt;
    let dir = TempDir::new().unwrap();
    drop(Store::open(dir.path()).unwrap());
    fs::set_permissions(dir.path().join("aye.db"), fs::Permissions::from_mode(0o400)).unwrap();
    let opened = Store::open(dir.path());
    if nix::unistd::geteuid().is_root() {
        eprintln!("skipped: nothing is forbidden to root");
        return;
    }
    let message = opened.err().unwrap().to_string();
    assert!(message.contains("permission denied") && message.contains("aye.db"), "{message}");
}

#[cfg(unix)]
#[test]
fn nobody_else_can_read_the_store() {
    use std::os::unix::fs::PermissionsExt;
    let dir = TempDir::new().unwrap();
    let data = dir.path().join("a/b");
    let store = Store::open(&data).unwrap();
    let _claim = store.create(session(ID));
    append(&store, ID, vec![prompt("hi")], Durability::Process);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&dir.path().join("a")), mode(&data)), (0o700, 0o700));
    for file in ["aye.db", "aye.db-wal", "aye.db-shm", "aye.lock"] {
        assert_eq!(mode(&data.join(file)), 0o600, "{file}");
    }
}

#[test]
fn a_store_that_cannot_be_written_says_so_and_is_used_again_when_it_can() {
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let claim = store.create(session(ID));
    let away = dir.path().join("away");
    fs::rename(dir.path().join("aye.db"), &away).unwrap();
    let error = wait(store.journal(claim.id()).append(vec![prompt("hi")], Durability::Power)).unwrap_err();
    assert!(error.to_string().contains("cannot save this session") && error.message.contains("aye.db"), "{error}");
    fs::rename(&away, dir.path().join("aye.db")).unwrap();
    append(&store, ID, vec![prompt("hi")], Durability::Power);
    assert_eq!(store.load(claim.id()).unwrap().records, [prompt("hi")]);
}

#[test]
fn an_append_whose_caller_went_away_is_written_all_the_same() {
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let claim = store.create(session(ID));
    assert!(store.journal(claim.id()).append(vec![prompt("hi")], Durability::Power).now_or_never().is_none());
    append(&store, ID, vec![ended()], Durability::Power);
    assert_eq!(store.load(claim.id()).unwrap().records, [prompt("hi"), ended()]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn any_text_comes_back_as_it_was(batches in prop::collection::vec(prop::collection::vec(".*", 0..4), 1..5), draft in ".*") {
        let dir = TempDir::new().unwrap();
        let batches: Vec<Vec<Record>> = batches
            .into_iter()
            .map(|texts| texts.iter().flat_map(|text| [prompt(text), queue(text)]).collect())
            .collect();
        {
            let store = Store::open(dir.path()).unwrap();
            let claim = store.create(session(ID));
            append(&store, ID, vec![prompt("first")], Durability::Process);
            for batch in &batches {
                append(&store, ID, batch.clone(), Durability::Process);
            }
            wait(store.journal(claim.id()).save_draft(draft.clone())).unwrap();
        }
        let loaded = Store::open(dir.path()).unwrap().load(&SessionId::new(ID)).unwrap();
        let expected: Vec<Record> = std::iter::once(prompt("first")).chain(batches.into_iter().flatten()).collect();
        prop_assert_eq!(loaded.records, expected);
        prop_assert_eq!(loaded.draft, draft);
        prop_assert_eq!(loaded.skipped, 0);
    }
}

#[test]
fn no_flipped_byte_makes_the_opening_fail_or_changes_what_is_moved_aside() {
    let sound = TempDir::new().unwrap();
    {
        let store = Store::open(sound.path()).unwrap();
        let _claim = store.create(session(ID));
        append(&store, ID, (0..100).map(|n| queue(&n.to_string().repeat(100))).collect(), Durability::Process);
    }
    let whole = fs::read(sound.path().join("aye.db")).unwrap();
    // The whole header, then places all over the file.
    for at in (0..100).chain((0..100).map(|step| 100 + step * 7919 % (whole.len() - 100))) {
        let mut flipped = whole.clone();
        flipped[at] ^= 0xff;
        let dir = TempDir::new().unwrap();
        fs::write(dir.path().join("aye.db"), &flipped).unwrap();
        match Store::open(dir.path()) {
            Ok(store) if store.notices().is_empty() => {}
            Ok(_) => assert!(bytes(dir.path()).values().any(|kept| *kept == flipped), "byte {at}: what was moved aside changed"),
            Err(StoreError::Newer { .. }) => {
                assert!(fs::read(dir.path().join("aye.db")).unwrap() == flipped, "byte {at}: a refused store changed");
            }
            Err(error) => panic!("byte {at}: {error}"),
        }
    }
}
