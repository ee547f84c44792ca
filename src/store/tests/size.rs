//! Tests that a journal takes little more disk space than its text.

use super::*;
use crate::store::bench_support::Measure;

/// Returns the ratio of the database size to the size of the text.
fn ratio(steps: u32, result_bytes: usize) -> f64 {
    let dir = TempDir::new().unwrap();
    let mut measure = Measure::new(dir.path(), Path::new("/src/greeter"), "w1", result_bytes).unwrap();
    measure.steps(steps).unwrap();
    let said = measure.end().unwrap();
    let files = fs::read_dir(dir.path()).unwrap().flatten();
    let bytes: u64 = files.filter(|file| file.file_name() != "aye.lock").map(|file| file.metadata().unwrap().len()).sum();
    let ratio = bytes as f64 / said as f64;
    println!("{steps} steps with results of {result_bytes} bytes: {bytes} bytes for {said} of text, {ratio:.2}");
    ratio
}

#[test]
fn the_database_is_at_most_a_third_larger_than_its_records() {
    let steps = std::env::var("AYE_STEPS").ok().and_then(|steps| steps.parse().ok());
    for (few, result_bytes) in [(2_500, 200), (300, 4_000), (60, 50_000)] {
        let ratio = ratio(steps.unwrap_or(few), result_bytes);
        assert!(ratio <= 1.3, "results of {result_bytes} bytes: {ratio:.2}");
    }
}

#[test]
fn packed_records_are_read_unchanged_even_while_the_session_continues() {
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let mut expected = Vec::new();
    let mut write = |store: &Store, numbers: std::ops::Range<usize>| {
        for number in numbers {
            let records = vec![queue(&format!("{number} {}", "long and the same ".repeat(400))), prompt(&number.to_string())];
            expected.extend(records.clone());
            append(store, ID, records, Durability::Process);
        }
        assert_eq!(store.load(&SessionId::new(ID)).unwrap().records, expected);
    };
    let claim = store.create(session(ID));
    write(&store, 0..400);
    let count = |store: &Store, table: &str| -> i64 {
        store.database.read(|reader| reader.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0))).unwrap()
    };
    assert!(count(&store, "packed") > 0, "packed while it goes on");
    drop(claim);
    drop(store);
    let store = Store::open(dir.path()).unwrap();
    assert_eq!(count(&store, "records"), 0, "all of it is packed when the session is given back");
    let _claim = store.claim(&SessionId::new(ID)).unwrap();
    write(&store, 400..410);
}

#[test]
fn the_decision_log_describes_calls_whose_records_are_packed() {
    let dir = TempDir::new().unwrap();
    let id = crate::protocol::CallId::new("c1");
    {
        let store = Store::open(dir.path()).unwrap();
        let _claim = store.create(session(ID));
        let call = crate::protocol::ToolCall {
            tool_call_id: id.clone(),
            tool_name: "EditFile".to_owned(),
            arguments: crate::protocol::CallArguments::Object(serde_json::Map::new()),
        };
        let step_id = crate::protocol::StepId::new("s");
        let summary = "Edit a".to_owned();
        let intent = Record::Intent { step_id, call, summary, actions: Vec::new(), proposal: None, changes: true };
        append(&store, ID, vec![prompt("x"), intent], Durability::Process);
    }
    let store = Store::open(dir.path()).unwrap();
    let _claim = store.claim(&SessionId::new(ID)).unwrap();
    append(
        &store,
        ID,
        vec![Record::Started { tool_call_id: id, rule: "user:1".to_owned(), places: Vec::new(), told: None, edited: None }],
        Durability::Process,
    );
    let logged = store.decisions(&DecisionFilter { most: 10, ..DecisionFilter::default() }).unwrap();
    assert_eq!((logged[0].tool_name.as_str(), logged[0].summary.as_str()), ("EditFile", "Edit a"));
}

#[test]
fn pages_of_a_session_consist_of_whole_steps_and_cover_the_session() {
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let id = SessionId::new(ID);
    let started = |number: u32| Record::StepStarted {
        task_id: TaskId::new("t1"),
        step_id: crate::protocol::StepId::new(format!("step_{number}")),
        step_count: number,
    };
    {
        let _claim = store.create(session(ID));
        for number in 0..300 {
            let more = (0..number % 5).map(|n| queue(&format!("{number} {n} {}", "said ".repeat(200))));
            append(&store, ID, std::iter::once(started(number)).chain(more).collect(), Durability::Process);
        }
    }
    let all = store.load(&id).unwrap().records;
    for about in [1, 7, 100, 10_000] {
        let (mut pieces, mut before) = (Vec::new(), None);
        loop {
            let piece = store.page(&id, before, about).unwrap();
            assert!(matches!(piece.records[0], Record::StepStarted { .. }), "{about}: {:?}", piece.records[0]);
            pieces.splice(0..0, piece.records);
            before = piece.before;
            if before.is_none() {
                break;
            }
        }
        assert_eq!(pieces, all, "{about}");
    }
    assert!(matches!(store.page(&SessionId::new(OTHER), None, 5), Err(StoreError::NoSession { .. })));
}
