//! Outbox tests: rows written with their records, claims, acknowledgements and limits.

use super::*;
use crate::ports::EditedCommand;
use std::sync::atomic::{AtomicUsize, Ordering};

const NO_LIMIT: OutboxLimit = OutboxLimit { bytes: 1 << 30, sinks: SinkSet::ALL, pauses: false };

/// Feed that creates a row for each of its sinks per change. `bytes` is the size of the row body.
struct Feed {
    sinks: Vec<OutboxSink>,
    bytes: usize,
}

impl OutboxFeed for Feed {
    fn changes(&self, changes: &[crate::session::Change<'_>], _: jiff::Timestamp) -> Vec<OutboxEntry> {
        let entry = |sink: &OutboxSink| OutboxEntry { sink: *sink, kind: "change", body: vec![b'x'; self.bytes] };
        changes.iter().flat_map(|_| self.sinks.iter().map(entry)).collect()
    }

    fn decision(&self, decision: &LoggedDecision) -> Vec<OutboxEntry> {
        let body = format!("{} {} {}", decision.verdict, decision.by, decision.reason).into_bytes();
        vec![OutboxEntry { sink: OutboxSink::Audit, kind: "decision", body }]
    }
}

fn outbox(sinks: &[OutboxSink], bytes: usize, limit: OutboxLimit) -> (SessionOutbox, Arc<AtomicUsize>) {
    let commits = Arc::new(AtomicUsize::new(0));
    let counted = commits.clone();
    let committed = Arc::new(move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
    });
    (SessionOutbox { feed: Arc::new(Feed { sinks: sinks.to_vec(), bytes }), limit, committed }, commits)
}

fn taken(store: &Store, sink: OutboxSink) -> OutboxClaim {
    match store.claim_sink(sink, false).unwrap() {
        ClaimResult::Taken(claim) => claim,
        ClaimResult::Empty => panic!("no rows"),
        ClaimResult::HeldBy(pid) => panic!("held by {pid}"),
        ClaimResult::NotBefore(time) => panic!("not before {time}"),
    }
}

fn kinds(store: &Store, sink: OutboxSink) -> Vec<String> {
    match store.claim_sink(sink, true).unwrap() {
        ClaimResult::Taken(claim) => claim.rows(0, 1000, 1 << 20).unwrap().into_iter().map(|row| row.kind).collect(),
        _ => Vec::new(),
    }
}

fn status(store: &Store, sink: OutboxSink) -> SinkStatus {
    store.sinks().unwrap().into_iter().find(|status| status.sink == sink).unwrap()
}

#[test]
fn rows_are_committed_with_their_records_or_not_at_all() {
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let claim = store.create(session(ID));
    let (outbox, commits) = outbox(&[OutboxSink::Approvals], 10, NO_LIMIT);
    let journal = store.journal_with_outbox(claim.id(), Mode::Ask, Some(outbox));
    let call = CallId::new("c1");
    let refused = Record::Refused { tool_call_id: call, rule: "user:3".to_owned(), reason: "no".to_owned() };
    wait(journal.append(vec![prompt("hi"), refused], Durability::Process)).unwrap();
    assert_eq!(commits.load(Ordering::SeqCst), 1);
    let rows = taken(&store, OutboxSink::Approvals).rows(0, 10, 1 << 20).unwrap();
    assert_eq!(rows.iter().map(|row| row.kind.as_str()).collect::<Vec<_>>(), ["change", "change"]);
    assert!(rows[0].id != rows[1].id && rows[0].key < rows[1].key, "{rows:?}");
    let decided = taken(&store, OutboxSink::Audit).rows(0, 10, 1 << 20).unwrap();
    assert_eq!(String::from_utf8_lossy(&decided[0].body), "deny user:3 no");

    store.database.reader().execute("UPDATE sessions SET owner = NULL", []).unwrap();
    assert!(wait(journal.append(vec![ended()], Durability::Process)).is_err());
    assert_eq!(status(&store, OutboxSink::Approvals).pending, 2, "the record was not written, so the row was not");
    assert_eq!(commits.load(Ordering::SeqCst), 1);
    wait(store.journal(&SessionId::new(OTHER), Mode::Ask).save_draft(String::new())).unwrap_err();
}

#[test]
fn sessions_without_services_write_no_rows() {
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let _claim = store.create(session(ID));
    append(&store, ID, vec![prompt("hi"), ended()], Durability::Process);
    assert_eq!(store.sinks().unwrap(), []);
    assert!(matches!(store.claim_sink(OutboxSink::Audit, true).unwrap(), ClaimResult::Empty));
}

fn entries(sink: OutboxSink, bodies: &[&str]) -> Vec<OutboxEntry> {
    bodies.iter().map(|body| OutboxEntry { sink, kind: "test", body: body.as_bytes().to_vec() }).collect()
}

#[test]
fn rows_are_read_in_order_up_to_a_size_and_deleted_when_acknowledged() {
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let audit = OutboxSink::Audit;
    assert!(store.enqueue(entries(audit, &["one", "two", "three", "four"]), NO_LIMIT).unwrap());
    store.enqueue(entries(OutboxSink::Telemetry, &["other"]), NO_LIMIT).unwrap();
    let claim = taken(&store, audit);
    let bodies = |rows: &[OutboxRow]| rows.iter().map(|row| String::from_utf8_lossy(&row.body).into_owned()).collect::<Vec<_>>();
    assert_eq!(bodies(&claim.rows(0, 10, 8).unwrap()), ["one", "two"]);
    assert_eq!(bodies(&claim.rows(0, 10, 1).unwrap()), ["one"], "a larger row is returned alone");
    let rows = claim.rows(0, 3, 1000).unwrap();
    assert_eq!(bodies(&rows), ["one", "two", "three"]);
    claim.acknowledge(rows[1].key, 0).unwrap();
    assert_eq!(bodies(&claim.rows(0, 10, 1000).unwrap()), ["three", "four"]);
    // The rows are the same after a restart, including their keys.
    let key = rows[2].id.clone();
    drop(claim);
    drop(store);
    let store = Store::open(dir.path()).unwrap();
    let claim = taken(&store, audit);
    assert_eq!(claim.rows(0, 1, 1000).unwrap()[0].id, key);
    claim.acknowledge(i64::MAX, 0).unwrap();
    let status = status(&store, audit);
    assert_eq!((status.pending, status.bytes, status.dropped), (0, 0, 0));
    assert!(status.delivered.is_some());
    assert_eq!(kinds(&store, OutboxSink::Telemetry), ["test"], "another sink is not affected");
}

#[test]
fn a_sink_has_at_most_one_owner() {
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let audit = OutboxSink::Audit;
    store.enqueue(entries(audit, &["one"]), NO_LIMIT).unwrap();
    let claim = taken(&store, audit);
    let held =
        |store: &Store| matches!(store.claim_sink(audit, true).unwrap(), ClaimResult::HeldBy(pid) if pid == std::process::id());
    assert!(held(&store), "also within one process");
    let claim = claim.release_if_idle().unwrap().expect("a row is due, so the claim stays");
    store.enqueue(entries(audit, &["two"]), NO_LIMIT).unwrap();
    claim.fail("the service is down\n", jiff::Timestamp::now() + jiff::SignedDuration::from_secs(60)).unwrap();
    assert_eq!(claim.attempts().unwrap(), 1);
    assert!(claim.release_if_idle().unwrap().is_none(), "no row is due");
    let shown = status(&store, audit);
    assert_eq!((shown.error.as_deref(), shown.attempts, shown.pending), (Some("the service is down "), 1, 2));
    assert!(matches!(store.claim_sink(audit, false).unwrap(), ClaimResult::NotBefore(_)));
    let ClaimResult::Taken(claim) = store.claim_sink(audit, true).unwrap() else { panic!("the user may retry at once") };
    drop(claim);
    // The claim of a killed process has no effect.
    let dead = Instance { start_time: Instance::current().start_time + 1, ..Instance::current() };
    let mut owner = serde_json::to_value(&dead).unwrap();
    owner["claim"] = "x".into();
    drop(store.sinks());
    store
        .database
        .write(move |state| {
            state.transact(Durability::Process, 0, |transaction| {
                transaction.execute("UPDATE outbox_sinks SET owner = ?1, next_attempt = 0", [owner.to_string()])
            })
        })
        .unwrap();
    drop(taken(&store, audit));
}

#[test]
fn a_full_outbox_drops_telemetry_first_and_counts_missing_records() {
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let limit = OutboxLimit { bytes: 10 * (1000 + 128), ..NO_LIMIT };
    let body = "x".repeat(1000);
    let some = |sink, count| entries(sink, &vec![body.as_str(); count]);
    assert!(store.enqueue(some(OutboxSink::Telemetry, 10), limit).unwrap());
    assert!(store.enqueue(some(OutboxSink::Telemetry, 1), limit).unwrap(), "newer telemetry replaces older");
    assert!(status(&store, OutboxSink::Telemetry).dropped > 0);
    assert!(store.enqueue(some(OutboxSink::Audit, 10), limit).unwrap());
    assert_eq!(kinds(&store, OutboxSink::Telemetry), [""; 0]);
    assert_eq!(status(&store, OutboxSink::Telemetry).dropped, 11);
    assert!(store.enqueue(some(OutboxSink::Telemetry, 1), limit).unwrap(), "telemetry may be dropped");
    assert!(!store.enqueue(some(OutboxSink::Audit, 3), limit).unwrap());
    assert!(!store.enqueue(some(OutboxSink::Approvals, 1), limit).unwrap());
    assert_eq!(status(&store, OutboxSink::Audit).missing, 3);
    assert_eq!(kinds(&store, OutboxSink::Audit).len(), 10, "what is stored is never dropped");
    let claim = taken(&store, OutboxSink::Audit);
    let rows = claim.rows(0, 5, 1 << 20).unwrap();
    claim.acknowledge(rows[4].key, 0).unwrap();
    drop(claim);
    // There is space again, so the gap becomes a row.
    assert_eq!(kinds(&store, OutboxSink::Audit)[5..], ["gap"]);
    assert!(store.enqueue(some(OutboxSink::Approvals, 1), limit).unwrap());
    assert_eq!(kinds(&store, OutboxSink::Approvals), ["gap", "test"], "the gap comes before the next record");
    let claim = taken(&store, OutboxSink::Audit);
    let gap = claim.rows(0, 10, 1 << 20).unwrap().pop().unwrap();
    let gap: serde_json::Value = serde_json::from_slice(&gap.body).unwrap();
    assert_eq!(gap["missing"], 3);
    assert_eq!(status(&store, OutboxSink::Audit).missing, 3, "the number stays visible");
}

#[test]
fn rows_of_sinks_that_are_not_configured_stay_and_do_not_count() {
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let body = "x".repeat(1000);
    let some = |sink, count| entries(sink, &vec![body.as_str(); count]);
    let limit = |sinks: &[OutboxSink]| OutboxLimit { bytes: 4 * (1000 + 128), sinks: SinkSet::new(sinks), pauses: false };
    let both = limit(&[OutboxSink::Approvals, OutboxSink::Audit, OutboxSink::Telemetry]);
    assert!(store.enqueue(some(OutboxSink::Approvals, 3), both).unwrap());
    assert!(store.enqueue(some(OutboxSink::Telemetry, 1), both).unwrap());
    assert!(!store.enqueue(some(OutboxSink::Audit, 2), both).unwrap(), "only one row fits after the telemetry was dropped");
    taken(&store, OutboxSink::Audit).acknowledge(i64::MAX, 0).unwrap();
    let audit = limit(&[OutboxSink::Audit]);
    assert!(store.enqueue(some(OutboxSink::Audit, 3), audit).unwrap(), "the approvals are not configured any more");
    assert!(!store.enqueue(some(OutboxSink::Audit, 4), audit).unwrap(), "the own rows still count");
    assert_eq!(kinds(&store, OutboxSink::Approvals).len(), 3, "nothing was dropped");
}

#[test]
fn removed_rows_are_reported_as_missing_if_their_sink_is_configured_again() {
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let limit = OutboxLimit { bytes: 2 * (10 + 128), ..NO_LIMIT };
    let ten = "x".repeat(10);
    assert!(!store.enqueue(entries(OutboxSink::Audit, &[ten.as_str(); 5]), limit).unwrap());
    // Two rows are stored and three records are missing. Then there is space for the gap row.
    taken(&store, OutboxSink::Audit).acknowledge(1, 0).unwrap();
    assert_eq!(kinds(&store, OutboxSink::Audit), ["test", "gap"]);
    let claim = taken(&store, OutboxSink::Audit);
    assert!(matches!(store.remove_outbox_rows(OutboxSink::Audit).unwrap(), Removal::HeldBy(_)));
    drop(claim);
    assert!(matches!(store.remove_outbox_rows(OutboxSink::Audit).unwrap(), Removal::Done { rows: 2, .. }));
    assert_eq!(store.remove_outbox_rows(OutboxSink::Audit).unwrap(), Removal::Done { rows: 0, bytes: 0 });
    let state = status(&store, OutboxSink::Audit);
    assert_eq!((state.pending, state.bytes, state.missing), (0, 0, 4));
    assert!(store.enqueue(entries(OutboxSink::Audit, &["new"]), NO_LIMIT).unwrap());
    assert_eq!(kinds(&store, OutboxSink::Audit), ["gap", "test"]);
    let gap = taken(&store, OutboxSink::Audit).rows(0, 1, 1 << 20).unwrap().remove(0);
    assert_eq!(serde_json::from_slice::<serde_json::Value>(&gap.body).unwrap()["missing"], 4);
    assert!(store.enqueue(entries(OutboxSink::Telemetry, &["a", "b"]), NO_LIMIT).unwrap());
    assert!(matches!(store.remove_outbox_rows(OutboxSink::Telemetry).unwrap(), Removal::Done { rows: 2, .. }));
    assert_eq!(status(&store, OutboxSink::Telemetry).dropped, 2);
    assert!(store.enqueue(entries(OutboxSink::Sessions, &["a"]), NO_LIMIT).unwrap());
    assert!(matches!(store.remove_outbox_rows(OutboxSink::Sessions).unwrap(), Removal::Done { rows: 1, .. }));
    let sessions = status(&store, OutboxSink::Sessions);
    assert_eq!((sessions.dropped, sessions.missing), (1, 0), "this service receives no gaps");
}

#[test]
fn the_gap_of_removed_rows_begins_with_the_gap_among_them() {
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let earlier = r#"{"missing":3,"from":"2020-01-01T00:00:00Z","until":"2020-01-02T00:00:00Z"}"#;
    let gap = OutboxEntry { sink: OutboxSink::Audit, kind: GAP, body: earlier.into() };
    assert!(store.enqueue(vec![gap], NO_LIMIT).unwrap());
    assert!(store.enqueue(entries(OutboxSink::Audit, &["a"]), NO_LIMIT).unwrap());
    assert!(matches!(store.remove_outbox_rows(OutboxSink::Audit).unwrap(), Removal::Done { rows: 2, .. }));
    assert!(store.enqueue(entries(OutboxSink::Audit, &["new"]), NO_LIMIT).unwrap());
    let gap = taken(&store, OutboxSink::Audit).rows(0, 1, 1 << 20).unwrap().remove(0);
    let body: serde_json::Value = serde_json::from_slice(&gap.body).unwrap();
    assert_eq!(body["missing"], 4);
    assert_eq!(body["from"], "2020-01-01T00:00:00Z");
}

#[test]
fn a_full_required_outbox_blocks_effects_but_no_other_records() {
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let claim = store.create(session(ID));
    let (outbox, _) = outbox(&[OutboxSink::Audit], 2000, OutboxLimit { bytes: 3000, pauses: true, ..NO_LIMIT });
    let journal = store.journal_with_outbox(claim.id(), Mode::Ask, Some(outbox));
    assert!(journal.must_save());
    wait(journal.append(vec![prompt("hi")], Durability::Process)).unwrap();
    let started = || Record::Started {
        tool_call_id: CallId::new("c1"),
        rule: "user:1".to_owned(),
        places: Vec::new(),
        told: None,
        edited: None::<EditedCommand>,
    };
    wait(journal.append(vec![queue("a")], Durability::Process)).unwrap();
    let error = wait(journal.append(vec![started()], Durability::Process)).unwrap_err();
    assert!(!error.lost && error.message.contains("aye sync") && error.message.contains("limit"), "{error}");
    assert_eq!(store.load(claim.id()).unwrap().records, [prompt("hi"), queue("a")], "the effect was not recorded, so it waits");
    assert_eq!(status(&store, OutboxSink::Audit).pending, 2);
    taken(&store, OutboxSink::Audit).acknowledge(i64::MAX, 0).unwrap();
    wait(journal.append(vec![started()], Durability::Process)).unwrap();
    assert_eq!(status(&store, OutboxSink::Audit).missing, 0);
}

#[test]
fn a_damaged_store_keeps_its_outbox() {
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let claim = store.create(session(ID));
    append(&store, ID, vec![prompt("kept")], Durability::Power);
    store.enqueue(entries(OutboxSink::Audit, &["one", "two"]), NO_LIMIT).unwrap();
    let claimed = taken(&store, OutboxSink::Audit);
    let before = claimed.rows(0, 10, 1 << 20).unwrap();
    drop((claimed, claim, store));
    let path = dir.path().join("aye.db");
    let mut content = fs::read(&path).unwrap();
    content[..16].fill(b'x');
    fs::write(&path, content).unwrap();
    let store = Store::open(dir.path()).unwrap();
    assert!(store.notices()[0].contains("damaged"), "{:?}", store.notices());
    assert_eq!(taken(&store, OutboxSink::Audit).rows(0, 10, 1 << 20).unwrap(), before);
    assert_eq!(status(&store, OutboxSink::Audit).pending, 2);
}

#[test]
fn rows_move_to_another_store_with_their_keys() {
    let (dir, other) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let (store, shared) = (Store::open(dir.path()).unwrap(), Store::open(other.path()).unwrap());
    let bodies: Vec<String> = (0..600).map(|number| number.to_string()).collect();
    let bodies: Vec<&str> = bodies.iter().map(String::as_str).collect();
    store.enqueue(entries(OutboxSink::Audit, &bodies), NO_LIMIT).unwrap();
    let before = taken(&store, OutboxSink::Audit).rows(0, 1000, 1 << 20).unwrap();
    store.move_outbox(&shared).unwrap();
    let after = taken(&shared, OutboxSink::Audit).rows(0, 1000, 1 << 20).unwrap();
    let ids = |rows: &[OutboxRow]| rows.iter().map(|row| (row.id.clone(), row.body.clone())).collect::<Vec<_>>();
    assert_eq!(ids(&before), ids(&after));
    assert_eq!((status(&store, OutboxSink::Audit).pending, status(&shared, OutboxSink::Audit).pending), (0, 600));
}

#[test]
fn missing_records_are_reported_by_the_store_that_receives_the_rows() {
    let (dir, other) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let (store, shared) = (Store::open(dir.path()).unwrap(), Store::open(other.path()).unwrap());
    let full = OutboxLimit { bytes: 0, ..NO_LIMIT };
    assert!(!store.enqueue(entries(OutboxSink::Audit, &["a", "b"]), full).unwrap());
    assert!(store.enqueue(entries(OutboxSink::Telemetry, &["t"]), full).unwrap(), "telemetry may be dropped");
    assert!(!shared.enqueue(entries(OutboxSink::Audit, &["c"]), full).unwrap());
    store.move_outbox(&shared).unwrap();
    store.move_outbox(&shared).unwrap();
    assert_eq!((status(&store, OutboxSink::Audit).missing, status(&store, OutboxSink::Telemetry).dropped), (0, 0));
    assert_eq!((status(&shared, OutboxSink::Audit).missing, status(&shared, OutboxSink::Telemetry).dropped), (3, 1));
    let rows = taken(&shared, OutboxSink::Audit).rows(0, 10, 1 << 20).unwrap();
    let gap: serde_json::Value = serde_json::from_slice(&rows[0].body).unwrap();
    assert_eq!((rows.len(), rows[0].kind.as_str(), &gap["missing"]), (1, "gap", &serde_json::json!(3)));
}

#[test]
fn numbers_without_missing_records_leave_the_time_of_a_gap_unchanged() {
    let (dir, other) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let (store, shared) = (Store::open(dir.path()).unwrap(), Store::open(other.path()).unwrap());
    let full = OutboxLimit { bytes: 0, ..NO_LIMIT };
    store.enqueue(entries(OutboxSink::Audit, &["rejected"]), NO_LIMIT).unwrap();
    let claim = taken(&store, OutboxSink::Audit);
    claim.acknowledge(i64::MAX, 1).unwrap();
    drop(claim);
    assert!(!shared.enqueue(entries(OutboxSink::Audit, &["a"]), full).unwrap());
    store.move_outbox(&shared).unwrap();
    assert_eq!((status(&store, OutboxSink::Audit).dropped, status(&shared, OutboxSink::Audit).dropped), (0, 1));
    let rows = taken(&shared, OutboxSink::Audit).rows(0, 10, 1 << 20).unwrap();
    let gap: serde_json::Value = serde_json::from_slice(&rows[0].body).unwrap();
    assert_eq!((rows[0].kind.as_str(), &gap["from"]), ("gap", &gap["until"]), "{gap}");
}

#[test]
fn a_store_without_an_outbox_gains_an_empty_one() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("aye.db");
    let old = Connection::open(&path).unwrap();
    for step in &schema::MIGRATIONS[..5] {
        old.execute_batch(step).unwrap();
    }
    old.execute_batch(&format!(
        "PRAGMA application_id = {}; PRAGMA user_version = 5; PRAGMA journal_mode = wal;",
        schema::APPLICATION_ID
    ))
    .unwrap();
    drop(old);
    let store = Store::open(dir.path()).unwrap();
    assert!(store.notices()[0].contains("upgraded from format 5 to 6"), "{:?}", store.notices());
    assert_eq!(store.sinks().unwrap(), []);
    store.enqueue(entries(OutboxSink::Audit, &["one"]), NO_LIMIT).unwrap();
    assert_eq!(kinds(&store, OutboxSink::Audit), ["test"]);
}
