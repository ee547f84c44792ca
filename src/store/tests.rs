use super::*;
use crate::ports::{Durability, Record, SavedTail, TaskEnd};
use crate::protocol::{CallId, Message, MessageId, Part, QueuedMessage, Role, TaskId, ToolResult, WorkspaceId};
use crate::sys::instance::Instance;
use futures_util::FutureExt;
use proptest::prelude::*;
use rusqlite::Connection;
use std::fs;
use std::future::Future;
use std::path::PathBuf;
use tempfile::TempDir;

mod damage;
mod decisions;
mod format;
mod outbox;
mod pruning;
mod salvage;
mod size;

fn wait<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

fn session(id: &str) -> NewSession {
    NewSession {
        id: SessionId::new(id),
        workspace_id: WorkspaceId::new("w1"),
        workspace: PathBuf::from("/src/greeter"),
        model: "demo/recorded".to_owned(),
        started_by: None,
        is_of_command: false,
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
    Record::Queue { prompts: vec![QueuedMessage { id: 1, text: text.to_owned(), steer: false }] }
}

const ID: &str = "00112233445566778899aabbccddeeff";
const OTHER: &str = "001122334455667788990000000000ff";

fn append(store: &Store, id: &str, records: Vec<Record>, durability: Durability) {
    wait(store.journal(&SessionId::new(id), Mode::Ask).append(records, durability)).unwrap();
}

#[test]
fn the_session_of_a_command_is_listed_but_is_the_latest_one_only_after_the_user_continues_it() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let made = store.create(NewSession { is_of_command: true, ..session(ID) });
    append(&store, ID, vec![prompt("Review these changes")], Durability::Process);
    let latest = || store.latest(&WorkspaceId::new("w1")).unwrap().map(|session| session.session_id);
    assert_eq!(latest(), None);
    let listed = store.sessions(None).unwrap();
    assert_eq!(listed.iter().map(|session| (session.of_command, session.archived)).collect::<Vec<_>>(), [(true, false)]);
    store.continue_by_user(made.id()).unwrap();
    assert_eq!(latest().as_ref(), Some(made.id()));
    assert!(!store.find(ID).unwrap().of_command);
}

#[test]
fn archiving_and_unarchiving_keeps_what_started_a_session() {
    for is_of_command in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).unwrap();
        let made = store.create(NewSession { is_of_command, ..session(ID) });
        append(&store, ID, vec![prompt("Review these changes")], Durability::Process);
        let state = || {
            let found = store.find(ID).unwrap();
            (found.archived, found.of_command, found.of_agent)
        };
        for archived in [false, true, true, false, false, true] {
            store.archive(made.id(), archived).unwrap();
            assert_eq!(state(), (archived, is_of_command, false));
            assert_eq!(store.latest(&WorkspaceId::new("w1")).unwrap().is_some(), !archived && !is_of_command);
        }
        store.continue_by_user(made.id()).unwrap();
        assert_eq!(state(), (true, false, false), "it stays archived");
        store.archive(made.id(), false).unwrap();
        store.continue_by_user(made.id()).unwrap();
        assert_eq!(state(), (false, false, false));
    }
}

#[test]
fn decisions_are_stored_with_their_records() {
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let _claim = store.create(session(ID));
    let id = crate::protocol::CallId::new("c1");
    let refused = |rule: &str| Record::Refused { tool_call_id: id.clone(), rule: rule.to_owned(), reason: "no\nway".to_owned() };
    append(&store, ID, vec![prompt("x"), refused("user:3")], Durability::Process);
    let decision = |verdict: &str| LoggedDecision {
        time: jiff::Timestamp::now(),
        session_id: None,
        workspace: "/w".to_owned(),
        tool_name: "ReadFile".to_owned(),
        summary: "Read a".to_owned(),
        verdict: verdict.to_owned(),
        by: "you".to_owned(),
        reason: String::new(),
        mode: "ask".to_owned(),
    };
    store.log_decision(decision("allow"), None).unwrap();
    let all = |denied_only, session: Option<&str>| {
        let filter = DecisionFilter { session: session.map(str::to_owned), denied_only, most: 10 };
        store.decisions(&filter).unwrap().into_iter().map(|one| (one.verdict, one.by, one.reason)).collect::<Vec<_>>()
    };
    let (no, yes) = (("deny", "user:3", "no way"), ("allow", "you", ""));
    let owned = |(one, two, three): (&str, &str, &str)| (one.to_owned(), two.to_owned(), three.to_owned());
    assert_eq!(all(false, None), [owned(no), owned(yes)]);
    assert_eq!(all(true, None), [owned(no)]);
    assert_eq!(all(false, Some("001122")), [owned(no)]);
    // The oldest rows are deleted, at most a few rows late.
    let old = LoggedDecision { time: jiff::Timestamp::UNIX_EPOCH, ..decision("deny") };
    store.log_decision(old, None).unwrap();
    assert_eq!(all(true, None).len(), 2);
    (0..256).for_each(|_| store.log_decision(decision("allow"), None).unwrap());
    assert_eq!(all(true, None), [owned(no)]);
}

#[test]
fn sessions_of_agents_cannot_be_archived_or_unarchived() {
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let _claims =
        [store.create(session(ID)), store.create(NewSession { started_by: Some(SessionId::new(ID)), ..session(OTHER) })];
    for id in [ID, OTHER] {
        append(&store, id, vec![prompt("hi")], Durability::Process);
    }
    for archived in [true, false] {
        assert!(matches!(store.archive(&SessionId::new(OTHER), archived), Err(StoreError::OfAgent { .. })));
        assert!(store.find(OTHER).unwrap().of_agent);
        store.archive(&SessionId::new(ID), archived).unwrap();
        assert_eq!(store.find(ID).unwrap().archived, archived);
    }
    assert!(matches!(store.archive(&SessionId::new("00ffee"), true), Err(StoreError::NoSession { .. })));
}

#[test]
fn output_tails_are_replaced_and_removed_with_the_outcome() {
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let claim = store.create(session(ID));
    let journal = store.journal(claim.id(), Mode::Ask);
    let (one, two) = (CallId::new("c1"), CallId::new("c2"));
    let tail = |text: &str, ran_ms| SavedTail { text: text.to_owned(), ran_ms };
    wait(journal.append(vec![prompt("hi")], Durability::Power)).unwrap();
    drop(journal.save_tail(one.clone(), tail("half", 1)));
    drop(journal.save_tail(two.clone(), tail("other", 2)));
    wait(journal.save_tail(one.clone(), tail("all of it", 3))).unwrap();
    let tails = || store.load(claim.id()).unwrap().tails;
    assert_eq!(tails(), [(one.clone(), tail("all of it", 3)), (two.clone(), tail("other", 2))].into());
    let result = ToolResult::success(one, "RunCommand", "done");
    wait(journal.append(vec![Record::Finished { result, latency_ms: 1 }], Durability::Process)).unwrap();
    assert_eq!(tails(), [(two, tail("other", 2))].into());
    wait(journal.append(vec![ended()], Durability::Power)).unwrap();
    assert_eq!(tails(), HashMap::new());
}

#[test]
fn records_keep_their_order_after_reopening() {
    let dir = TempDir::new().unwrap();
    {
        let store = Store::open(dir.path()).unwrap();
        let _claim = store.create(session(ID));
        append(&store, ID, vec![prompt("Explain\nthe parser"), queue("a")], Durability::Power);
        append(&store, ID, vec![queue("b")], Durability::Process);
        append(&store, ID, vec![ended()], Durability::Power);
        wait(store.journal(&SessionId::new(ID), Mode::Ask).save_draft("half a sent".to_owned())).unwrap();
    }
    let store = Store::open(dir.path()).unwrap();
    let loaded = store.load(&SessionId::new(ID)).unwrap();
    assert_eq!(loaded.records, [prompt("Explain\nthe parser"), queue("a"), queue("b"), ended()]);
    assert_eq!((loaded.skipped, loaded.draft.as_str()), (0, "half a sent"));
    let summary = store.find(ID).unwrap();
    assert_eq!(summary.title.as_deref(), Some("Explain"));
    assert_eq!(summary.status.as_str(), "idle");
    assert_eq!(summary.held_by, None);
    assert!(store.notices().is_empty());
}

#[test]
fn the_last_written_session_is_the_latest_even_if_the_clock_was_set_back() {
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let another = "0123456789abcdef0123456789abcdef";
    let (_one, _two) = (store.create(session(ID)), store.create(session(another)));
    let latest = || store.latest(&WorkspaceId::new("w1")).unwrap().unwrap().session_id;
    append(&store, ID, vec![prompt("one")], Durability::Power);
    store.database.reader().execute("UPDATE sessions SET updated = updated + 3600000", []).unwrap();
    append(&store, another, vec![prompt("two")], Durability::Power);
    assert_eq!(latest(), SessionId::new(another));
    append(&store, ID, vec![prompt("three")], Durability::Power);
    assert_eq!(latest(), SessionId::new(ID));
    let said = store.load(&SessionId::new(ID)).unwrap().records;
    assert_eq!(said, [prompt("one"), prompt("three")]);
}

#[test]
fn committed_records_survive_a_process_that_dies_without_closing() {
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let claim = store.create(session(ID));
    append(&store, ID, vec![prompt("hello")], Durability::Process);
    // A process that dies leaves the files on disk as they are now, including the log.
    let copy = TempDir::new().unwrap();
    for file in ["aye.db", "aye.db-wal"] {
        fs::copy(dir.path().join(file), copy.path().join(file)).unwrap();
    }
    let reopened = Store::open(copy.path()).unwrap();
    assert!(reopened.notices().is_empty());
    assert_eq!(reopened.load(claim.id()).unwrap().records, [prompt("hello")]);
}

const CHILD_DIRECTORY: &str = "AYE_TEST_STORE_DIRECTORY";

/// Runs in the process started by the next test. Prints each record once it is committed, until the process is killed.
#[test]
#[ignore = "child process of another test"]
fn records_are_written_until_the_process_is_killed() {
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
fn acknowledged_records_survive_a_kill() {
    use std::io::{BufRead, BufReader};
    for stop_at in [0, 1, 40] {
        let dir = TempDir::new().unwrap();
        let mut child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["store::tests::records_are_written_until_the_process_is_killed", "--exact", "--ignored", "--nocapture"])
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
        assert_eq!(store.find(ID).unwrap().held_by, None);
        store.claim(&SessionId::new(ID)).unwrap();
    }
}

#[test]
fn empty_sessions_leave_no_row() {
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path()).unwrap();
    drop(store.create(session(ID)));
    let claim = store.create(session(OTHER));
    let journal = store.journal(claim.id(), Mode::Ask);
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
fn sessions_are_listed_by_workspace_latest_first() {
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
fn a_prefix_finds_one_session_or_the_error_explains_why_not() {
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
        ("00112", Err("invalid session ID `00112`")),
        ("notahex", Err("invalid session ID `notahex`")),
        ("001122'; DROP", Err("invalid session ID")),
        ("ffffff", Err("unknown session `ffffff`")),
        ("001122", Err("`001122` matches 2 sessions: 001122334455667788990000000000ff, 00112233445566778899aabbccddeeff")),
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
fn only_one_live_process_can_claim_a_session() {
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let first = store.create(session(ID));
    append(&store, ID, vec![prompt("hi")], Durability::Process);
    let id = SessionId::new(ID);
    let me = std::process::id();
    let another = Store::open(dir.path()).unwrap();
    assert!(matches!(another.claim(&id), Err(StoreError::Held { pid, .. }) if pid == me));
    assert!(matches!(another.delete(&id), Err(StoreError::Held { .. })));
    assert_eq!(another.find(ID).unwrap().held_by, Some(me));
    drop(first);
    let second = store.claim(&id).unwrap();
    assert!(matches!(store.claim(&id), Err(StoreError::Held { .. })));
    drop(second);
    store.delete(&id).unwrap();
    assert!(matches!(store.load(&id), Err(StoreError::NoSession { .. })));
    assert!(matches!(store.claim(&id), Err(StoreError::NoSession { .. })));
    let left: i64 = store.database.reader().query_row("SELECT count(*) FROM records", [], |row| row.get(0)).unwrap();
    assert_eq!(left, 0);
}

#[cfg(unix)]
#[test]
fn a_session_claimed_by_another_process_is_not_written() {
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let claim = store.create(session(ID));
    append(&store, ID, vec![prompt("hi")], Durability::Process);
    let journal = store.journal(claim.id(), Mode::Ask);
    let own = |owner: Option<String>| store.database.reader().execute("UPDATE sessions SET owner = ?1", [owner]).unwrap();
    let mut other = std::process::Command::new("sleep").arg("60").spawn().unwrap();
    let holder = Instance::from_pid(other.id()).unwrap();
    let other_id = other.id();
    own(serde_json::to_string(&holder).ok());
    let error = wait(journal.append(vec![ended()], Durability::Power)).unwrap_err();
    assert!(error.message.contains(&format!("was taken over by process {other_id}")) && error.lost, "{error}");
    assert!(wait(journal.save_draft("typed".to_owned())).is_err());
    other.kill().unwrap();
    other.wait().unwrap();
    own(None);
    let error = wait(journal.append(vec![ended()], Durability::Power)).unwrap_err();
    assert!(error.message.contains("no longer locked by this process"), "{error}");
    let loaded = store.load(claim.id()).unwrap();
    assert_eq!((loaded.records, loaded.draft.as_str()), (vec![prompt("hi")], ""));
    own(serde_json::to_string(&Instance::current()).ok());
    append(&store, ID, vec![ended()], Durability::Process);
    store.database.reader().execute("DELETE FROM sessions", []).unwrap();
}

#[cfg(target_os = "linux")]
#[test]
fn sessions_of_dead_processes_can_be_claimed_immediately() {
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
        store.database.reader().execute("UPDATE sessions SET owner = ?1", [&dead]).unwrap();
        drop(store.claim(claim.id()).unwrap());
    }
}

#[test]
fn unreadable_records_keep_their_position_and_are_counted() {
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let claim = store.create(session(ID));
    append(&store, ID, vec![prompt("hi"), queue("a"), queue("b"), ended()], Durability::Process);
    let reader = store.database.reader();
    reader.execute(r#"UPDATE records SET json = '{"record":"from_the_future"}' WHERE seq = 2"#, []).unwrap();
    reader.execute("UPDATE records SET json = CAST(x'ff00fe' AS TEXT) WHERE seq = 3", []).unwrap();
    drop(reader);
    let loaded = store.load(claim.id()).unwrap();
    let expected = vec![prompt("hi"), Record::Unreadable, Record::Unreadable, ended()];
    assert_eq!((loaded.records, loaded.skipped), (expected, 2));
}

#[test]
fn an_unwritable_store_is_an_error_and_is_used_again_once_writable() {
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let claim = store.create(session(ID));
    let away = dir.path().join("away");
    fs::rename(dir.path().join("aye.db"), &away).unwrap();
    let error = wait(store.journal(claim.id(), Mode::Ask).append(vec![prompt("hi")], Durability::Power)).unwrap_err();
    assert!(error.to_string().contains("cannot save this session") && error.message.contains("aye.db"), "{error}");
    fs::rename(&away, dir.path().join("aye.db")).unwrap();
    append(&store, ID, vec![prompt("hi")], Durability::Power);
    assert_eq!(store.load(claim.id()).unwrap().records, [prompt("hi")]);
}

#[test]
fn an_append_is_written_even_if_its_future_is_dropped() {
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let claim = store.create(session(ID));
    assert!(store.journal(claim.id(), Mode::Ask).append(vec![prompt("hi")], Durability::Power).now_or_never().is_none());
    append(&store, ID, vec![ended()], Durability::Power);
    assert_eq!(store.load(claim.id()).unwrap().records, [prompt("hi"), ended()]);
}

#[test]
fn the_wal_is_checkpointed_before_it_grows_large() {
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let _claim = store.create(session(ID));
    for _ in 0..60 {
        append(&store, ID, vec![queue(&"x".repeat(1 << 20))], Durability::Process);
    }
    let log = fs::metadata(dir.path().join("aye.db-wal")).unwrap().len();
    assert!(log < 32 << 20, "{log} bytes");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn arbitrary_text_round_trips(batches in prop::collection::vec(prop::collection::vec(".*", 0..4), 1..5), draft in ".*") {
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
            wait(store.journal(claim.id(), Mode::Ask).save_draft(draft.clone())).unwrap();
        }
        let loaded = Store::open(dir.path()).unwrap().load(&SessionId::new(ID)).unwrap();
        let expected: Vec<Record> = std::iter::once(prompt("first")).chain(batches.into_iter().flatten()).collect();
        prop_assert_eq!(loaded.records, expected);
        prop_assert_eq!(loaded.draft, draft);
        prop_assert_eq!(loaded.skipped, 0);
    }
}

#[test]
fn the_owner_of_a_session_is_reported_with_the_time_if_known() {
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let claim = store.create(session(ID));
    let id = claim.id().clone();
    append(&store, ID, vec![prompt("hi")], Durability::Process);
    let began = store.holder(&id).unwrap().unwrap();
    assert_eq!(began.instance, Instance::current());
    drop(claim);
    let claim = store.claim(&id).unwrap();
    let taken = store.holder(&id).unwrap().unwrap();
    assert!(began.since.is_some() && taken.since >= began.since, "{began:?} {taken:?}");
    let note = serde_json::to_string(&Instance::current()).unwrap();
    store.database.reader().execute("UPDATE sessions SET owner = ?1", [note]).unwrap();
    assert_eq!(store.holder(&id).unwrap().unwrap().since, None);
    append(&store, ID, vec![ended()], Durability::Process);
    drop(claim);
    drop(store.claim(&id).unwrap());
}
