//! Tests of sessions that continue while saving fails.

use super::*;

impl Session {
    async fn until_saving(&mut self, now: bool) -> String {
        self.until(|kind| match kind {
            EventKind::SavingChanged { saved, message } => (*saved == now).then(|| message.clone()),
            _ => None,
        })
        .await
    }

    async fn until_noticed(&mut self, words: &str) {
        self.until(|kind| matches!(kind, EventKind::Notice { message, .. } if message.contains(words)).then_some(())).await;
    }

    fn refused(&self) -> usize {
        self.disk.refused.lock().unwrap().len()
    }
}

/// Returns the kinds of the saved records.
fn kinds(records: &[Record]) -> Vec<String> {
    let kind = |record: &Record| serde_json::to_value(record).unwrap()["record"].as_str().unwrap().to_owned();
    records.iter().map(kind).collect()
}

#[tokio::test]
async fn an_unsaved_session_continues_on_request_and_later_saves_all_records_in_order() {
    let mut with_room = {
        let session = stalled().await;
        session.disk.full.store(false, Ordering::SeqCst);
        session
    };
    with_room.send(Command::Continue).await;
    with_room.until_completed().await;
    with_room.say("and now").await;
    with_room.until_completed().await;

    let mut session = stalled().await;
    session.send(HostCommand::GoOnUnsaved).await;
    assert!(session.until_saving(false).await.contains("a crash loses"));
    session.until_completed().await;
    assert_eq!(session.ran(), [CallId::new("c1")]);
    let (saved, tried) = (session.saved().len(), session.refused());
    assert!(tried > 2, "it was not tried again with what came later");
    session.disk.full.store(false, Ordering::SeqCst);
    session.say("and now").await;
    session.until_saving(true).await;
    session.until_completed().await;
    assert!(session.saved().len() > saved);
    assert_eq!(kinds(&session.saved()), kinds(&with_room.saved()));
}

#[tokio::test]
async fn continuing_unsaved_is_rejected_while_the_session_is_being_saved() {
    let mut session = stalled().await;
    session.disk.full.store(false, Ordering::SeqCst);
    session.send(Command::Continue).await;
    session.until_completed().await;
    session.send(HostCommand::GoOnUnsaved).await;
    session.until_noticed("is being saved").await;
}

#[tokio::test]
async fn continue_retries_saving_an_unsaved_session_and_reports_failure() {
    let mut session = stalled().await;
    session.send(HostCommand::GoOnUnsaved).await;
    session.until_completed().await;
    session.send(Command::Continue).await;
    session.until_noticed("cannot save this session (the disk is full); the session is still unsaved").await;
    session.disk.full.store(false, Ordering::SeqCst);
    session.send(Command::Continue).await;
    session.until_saving(true).await;
}

#[tokio::test]
async fn exceeding_the_unsaved_limit_pauses_the_session_again_without_losing_records() {
    let mut session = stalled().await;
    session.send(HostCommand::GoOnUnsaved).await;
    session.until_completed().await;
    let long = "long ".repeat(crate::agent::limits::UNSAVED_BYTES / 5);
    session.say(&long).await;
    let failure = session.until_paused().await;
    assert_eq!(failure.kind, FailureKind::NotSaved);
    assert!(failure.message.contains("buffered in memory"), "{}", failure.message);
    session.send(HostCommand::GoOnUnsaved).await;
    session.until_paused().await;
    session.disk.full.store(false, Ordering::SeqCst);
    session.send(Command::Continue).await;
    session.until_saving(true).await;
    session.until_completed().await;
    let prompts = session.saved();
    let prompts = prompts.iter().filter_map(|record| match record {
        Record::TaskStarted { prompt, .. } => Some(prompt.text()),
        _ => None,
    });
    assert_eq!(prompts.collect::<Vec<_>>(), ["go", long.as_str()]);
}

#[tokio::test]
async fn pending_records_are_saved_at_exit_or_the_session_fails() {
    for room in [true, false] {
        let mut session = stalled().await;
        session.send(HostCommand::GoOnUnsaved).await;
        session.until_completed().await;
        session.disk.full.store(!room, Ordering::SeqCst);
        session.send(Command::Quit).await;
        let status = session
            .until(|kind| match kind {
                EventKind::StateChanged { session_status, .. } if *session_status != SessionStatus::Running => {
                    Some(*session_status)
                }
                _ => None,
            })
            .await;
        assert_eq!(status, if room { SessionStatus::Completed } else { SessionStatus::Failed });
        let finished = session.saved().iter().filter(|record| matches!(record, Record::Finished { .. })).count();
        assert_eq!(finished, usize::from(room));
    }
}

#[tokio::test]
async fn a_session_owned_by_another_process_cannot_continue_unsaved() {
    let mut session = stalled().await;
    session.disk.taken.store(true, Ordering::SeqCst);
    session.send(Command::Continue).await;
    let failure = session.until_paused().await;
    assert_eq!(failure.kind, FailureKind::NotHeld);
    assert!(failure.message.ends_with("The session stops here."), "{}", failure.message);
    session.send(HostCommand::GoOnUnsaved).await;
    session.until_noticed("cannot continue unsaved").await;
    assert!(session.ran().is_empty());
}

#[tokio::test]
async fn an_unsaved_session_stops_when_another_process_takes_over() {
    let mut session = stalled().await;
    session.send(HostCommand::GoOnUnsaved).await;
    session.until_completed().await;
    session.disk.taken.store(true, Ordering::SeqCst);
    session.say("and now").await;
    assert_eq!(session.until_paused().await.kind, FailureKind::NotHeld);
}
