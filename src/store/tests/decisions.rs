//! Decision log tests.

use super::*;
use crate::protocol::{CallId, ToolCall};

#[test]
fn a_process_that_dies_during_a_migration_leaves_the_old_store() {
    let (dir, copy) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let path = super::format::of_format_2(dir.path());
    let mut old = rusqlite::Connection::open(&path).unwrap();
    old.execute_batch("DROP TABLE decisions; PRAGMA user_version = 1; PRAGMA cache_spill = 1; PRAGMA cache_size = 1").unwrap();
    // Half of the migration is in the log when the process is killed. Another process opens the files on disk at that
    // moment.
    let half = old.transaction().unwrap();
    half.execute_batch("CREATE TABLE decisions (key INTEGER); CREATE TABLE more AS SELECT json FROM records").unwrap();
    for entry in std::fs::read_dir(dir.path()).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), copy.path().join(entry.file_name())).unwrap();
    }
    drop(half);
    let store = Store::open(copy.path()).unwrap();
    assert!(store.notices()[0].contains(&super::format::kept()), "{:?}", store.notices());
    assert_eq!(store.load(&SessionId::new(ID)).unwrap().records, [prompt("kept")]);
    let _claim = store.claim(&SessionId::new(ID)).unwrap();
    append(&store, ID, vec![refused("c1")], Durability::Process);
    assert_eq!(logged(&store).len(), 1);
}

fn refused(id: &str) -> Record {
    Record::Refused { tool_call_id: CallId::new(id), rule: "user:3".to_owned(), reason: "no".to_owned() }
}

fn intent(id: &str, summary: &str) -> Record {
    let call = ToolCall {
        tool_call_id: CallId::new(id),
        tool_name: "RunCommand".to_owned(),
        arguments: crate::protocol::CallArguments::parse("{}"),
    };
    Record::Intent {
        step_id: crate::protocol::StepId::new("s"),
        call,
        summary: summary.to_owned(),
        actions: Vec::new(),
        proposal: None,
        changes: true,
    }
}

/// Returns the tool, summary, verdict, decider and mode of each decision.
fn logged(store: &Store) -> Vec<String> {
    let filter = DecisionFilter { most: 10_000, ..DecisionFilter::default() };
    let all = store.decisions(&filter).unwrap().into_iter();
    all.map(|one| format!("{} {} {} {} {}", one.tool_name, one.summary, one.verdict, one.by, one.mode)).collect()
}

#[test]
fn the_log_names_calls_that_an_earlier_process_requested_approval_for() {
    let dir = TempDir::new().unwrap();
    let started = |edited| Record::Started {
        tool_call_id: CallId::new("c1"),
        rule: "approved by you".to_owned(),
        places: Vec::new(),
        told: None,
        edited,
    };
    {
        let store = Store::open(dir.path()).unwrap();
        let _claim = store.create(session(ID));
        append(
            &store,
            ID,
            vec![prompt("x"), intent("c1", "$ older"), intent("c1", "$ make"), intent("c2", "$ other")],
            Durability::Power,
        );
    }
    let store = Store::open(dir.path()).unwrap();
    let _claim = store.claim(&SessionId::new(ID)).unwrap();
    append(&store, ID, vec![started(None)], Durability::Power);
    let edited = crate::ports::EditedCommand { summary: "$ make check".to_owned(), actions: Vec::new() };
    append(&store, ID, vec![started(Some(edited))], Durability::Power);
    assert_eq!(logged(&store), ["RunCommand $ make allow you ask", "RunCommand $ make check allow you ask"]);
}

#[test]
fn the_log_names_the_last_requested_command() {
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let claim = store.create(session(ID));
    let asked = |summary: &str, edited| {
        let approval = crate::tui::tests::fixtures::command_approval("a");
        let amendable = crate::protocol::Amendable { edited, ..Default::default() };
        let (tool_call_id, action_summary) = (CallId::new("c1"), summary.to_owned());
        Record::ApprovalRequested { approval: crate::protocol::Approval { tool_call_id, action_summary, amendable, ..approval } }
    };
    let denied = Record::Decided {
        approval_id: crate::protocol::ApprovalId::new("a"),
        tool_call_id: CallId::new("c1"),
        decision: crate::protocol::Decision::denied(None),
    };
    let first = vec![prompt("x"), intent("c1", "$ make"), asked("$ make", false), asked("$ make install", true)];
    append(&store, ID, [first, vec![asked("$ make", false), denied.clone()]].concat(), Durability::Power);
    drop((claim, store));
    // The next process asks again about a command line that only the approval request contains.
    let store = Store::open(dir.path()).unwrap();
    let _claim = store.claim(&SessionId::new(ID)).unwrap();
    append(&store, ID, vec![asked("$ make install", true), denied], Durability::Power);
    assert_eq!(logged(&store), ["RunCommand $ make deny you ask", "RunCommand $ make install deny you ask"]);
}

#[test]
fn the_log_records_the_decider_and_the_mode_at_that_time() {
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let _claim = store.create(session(ID));
    let decided = |reason: &str| Record::Decided {
        approval_id: crate::protocol::ApprovalId::new("a"),
        tool_call_id: CallId::new("c1"),
        decision: crate::protocol::Decision::denied(Some(reason.to_owned())),
    };
    let plan = Record::PolicyInForce { layers: Vec::new(), mode: Some(Mode::Plan), chosen_mode: None };
    // A question withdrawn by the policy is not a decision by the user.
    let taken_back = vec![prompt("x"), intent("c1", "$ make"), plan, decided("the policy says no"), refused("c1")];
    let journal = store.journal(&SessionId::new(ID), Mode::Ask);
    wait(journal.append(taken_back, Durability::Process)).unwrap();
    wait(journal.append(vec![decided("not now")], Durability::Process)).unwrap();
    assert_eq!(logged(&store), ["RunCommand $ make deny user:3 plan", "RunCommand $ make deny you plan"]);
}

#[test]
fn the_log_names_the_user_for_every_reason_that_the_user_typed() {
    use crate::protocol::{CallDenial, Decision, Denier};
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let _claim = store.create(session(ID));
    let denied = |by, reason: &str| Record::Decided {
        approval_id: crate::protocol::ApprovalId::new("a"),
        tool_call_id: CallId::new("c1"),
        decision: Decision::Denied(CallDenial { by, reason: Some(reason.to_owned()) }),
    };
    let reasons =
        ["the task was cancelled", "no answer within a day", "denied by the approval service", "no user can approve this call"];
    append(&store, ID, vec![prompt("x"), intent("c1", "$ make")], Durability::Power);
    append(&store, ID, reasons.map(|reason| denied(Denier::User, reason)).to_vec(), Durability::Power);
    assert_eq!(logged(&store), ["RunCommand $ make deny you ask"; 4]);
    let others = [Denier::Cancel, Denier::Timeout, Denier::Service, Denier::Nobody];
    append(&store, ID, others.map(|by| denied(by, "because")).to_vec(), Durability::Power);
    let by: Vec<String> = logged(&store)[4..].iter().map(|row| row.replace("RunCommand $ make deny ", "")).collect();
    assert_eq!(by, ["cancel ask", "timeout ask", "approval service ask", "no user can approve this call ask"]);
}

#[test]
fn old_decisions_are_pruned_in_small_batches() {
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let old = rusqlite::Connection::open(dir.path().join("aye.db")).unwrap();
    old.execute_batch(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2047)
         INSERT INTO decisions (time, workspace, tool, summary, verdict, decider, reason, mode)
         SELECT 0, '/w', 't', 's', 'deny', 'you', '', 'ask' FROM n",
    )
    .unwrap();
    let _claim = store.create(session(ID));
    append(&store, ID, vec![prompt("x"), refused("c1")], Durability::Process);
    assert_eq!(logged(&store).len(), 2048 - 512);
    append(&store, ID, (0..1024).map(|_| refused("c1")).collect(), Durability::Process);
    assert_eq!(logged(&store).len(), 1025);
}
