//! Uploads the data of a running session. The history is uploaded after each task, and artifacts are uploaded before
//! the results that refer to them. Only such a result waits for an upload, and only for a limited time.

use super::context::AppContext;
use super::session_uploads::SessionUploads;
use crate::agent::PolicyUpdate;
use crate::ports::{ArtifactUploads, Artifacts, BoxFuture};
use crate::protocol::{Problem, SessionId};
use crate::services::workspace::{BATCH, TaskFeed, TaskSignal, mark_busy, push_rows, upload_artifact};
use crate::services::{Backoff, push_limit};
use crate::store::{ClaimResult, OutboxClaim, OutboxSink, SessionOutbox, Store, StoreError};
use jiff::{SignedDuration, Timestamp};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{OnceCell, Semaphore, mpsc, watch};
use tokio::time::Instant;

/// Maximum time that a result waits for its artifacts to be uploaded.
const ARTIFACT_WAIT: Duration = Duration::from_secs(2);
/// Time after a failed upload during which results do not wait.
const ARTIFACT_PAUSE: Duration = Duration::from_secs(60);
/// Maximum number of artifacts uploaded concurrently.
const ARTIFACTS_AT_ONCE: usize = 2;
/// Delays before retries.
const RETRIES: Backoff = Backoff { first: Duration::from_secs(4), max: Duration::from_secs(300) };
/// Time after which to check again whether another process is still delivering rows.
const OTHER_OWNER: Duration = Duration::from_secs(30);
/// Maximum number of pending notices. Any further notices are dropped.
const NOTICES: usize = 8;

/// The session's object store, which is opened by the first upload.
struct UploadTarget {
    app: AppContext,
    store: Store,
    session: SessionId,
    opened: OnceCell<SessionUploads>,
}

impl UploadTarget {
    async fn uploads(&self) -> Result<&SessionUploads, Problem> {
        let open = || async {
            let (app, store) = (self.app.clone(), self.store.clone());
            // A directory on a network file system may block.
            let opened = tokio::task::spawn_blocking(move || SessionUploads::open(&app, &store)).await;
            let opened = opened.map_err(|error| Problem::new("cannot open the object store").because(error))??;
            opened.ok_or_else(|| Problem::new("no object store is configured"))
        };
        self.opened.get_or_try_init(open).await
    }
}

/// Background uploads of a session.
pub(crate) struct BackgroundUploads {
    target: Arc<UploadTarget>,
    artifacts: Arc<ArtifactCopies>,
    reported: mpsc::Receiver<String>,
    signals: watch::Sender<Option<TaskSignal>>,
    /// Channel through which notices are sent to the session.
    pub notices: Option<mpsc::Sender<PolicyUpdate>>,
    /// The most recent notice, which is not repeated.
    last: Option<String>,
}

impl BackgroundUploads {
    /// Prepares the uploads without opening anything yet. Returns `None` if no object store is configured.
    pub(crate) fn new(app: &AppContext, store: &Store, (session, artifacts): (SessionId, Arc<dyn Artifacts>)) -> Option<Self> {
        app.settings.workspace_store.as_ref()?;
        let target = Arc::new(UploadTarget { app: app.clone(), store: store.clone(), session, opened: OnceCell::new() });
        let (report, reported) = mpsc::channel(NOTICES);
        let artifacts = Arc::new(ArtifactCopies {
            target: target.clone(),
            artifacts,
            report,
            paused_until: Mutex::default(),
            slots: Arc::new(Semaphore::new(ARTIFACTS_AT_ONCE)),
        });
        let signals = watch::Sender::new(None);
        Some(Self { target, artifacts, reported, signals, notices: None, last: None })
    }

    pub(crate) fn artifacts(&self) -> Arc<dyn ArtifactUploads> {
        self.artifacts.clone()
    }

    /// Returns the outbox for the session's journal. The outbox commits the end of a task together with the row that
    /// requests its upload.
    pub(crate) fn outbox(&self) -> SessionOutbox {
        let feed = TaskFeed::new(self.target.session.clone(), self.signals.clone());
        let committed = feed.clone();
        SessionOutbox {
            feed,
            limit: push_limit(&self.target.app.settings.services),
            committed: Arc::new(move |_| committed.on_commit()),
        }
    }

    /// Uploads data until the session ends, starting with rows left by earlier processes.
    pub(crate) async fn run(mut self) {
        let mut signals = self.signals.subscribe();
        // The journal owns the other sender; when that sender is dropped, the session has ended.
        drop(std::mem::replace(&mut self.signals, watch::Sender::new(None)));
        let mut due = self.deliver(false).await;
        loop {
            tokio::select! {
                changed = signals.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    let signal = *signals.borrow_and_update();
                    match signal {
                        Some(TaskSignal::Started(_)) => {
                            self.mark_busy().await;
                            // This signal may have replaced the signal of the previous task.
                            due = self.deliver(false).await;
                        }
                        Some(TaskSignal::Queued(_)) => due = self.deliver(true).await,
                        None => {}
                    }
                }
                () = until(due) => due = self.deliver(false).await,
                Some(notice) = self.reported.recv() => self.notify(notice).await,
            }
        }
    }

    /// Pushes the sessions listed in the outbox. Returns when to try again, if necessary.
    async fn deliver(&mut self, at_once: bool) -> Option<Timestamp> {
        match self.try_deliver(at_once).await {
            Ok(due) => due,
            Err(error) => {
                tracing::warn!(%error, "cannot read the outbox");
                Some(Timestamp::now() + SignedDuration::try_from(RETRIES.max).unwrap_or_default())
            }
        }
    }

    async fn try_deliver(&mut self, at_once: bool) -> Result<Option<Timestamp>, StoreError> {
        let store = self.target.store.clone();
        let mut claim = match blocking(move || store.claim_sink(OutboxSink::Workspace, at_once)).await? {
            ClaimResult::Taken(claim) => Arc::new(claim),
            ClaimResult::Empty => return Ok(None),
            ClaimResult::HeldBy(_) => return Ok(Some(after(OTHER_OWNER))),
            ClaimResult::NotBefore(time) => return Ok(Some(time)),
        };
        loop {
            let reader = claim.clone();
            let rows = blocking(move || reader.rows(0, BATCH.0, BATCH.1)).await?;
            if rows.is_empty() {
                match release(claim).await? {
                    Some(again) => claim = Arc::new(again),
                    None => return Ok(None),
                }
                continue;
            }
            let target = self.target.clone();
            let (done, failure) = match target.uploads().await {
                Ok(SessionUploads { bucket, local, machine }) => {
                    let result = push_rows(bucket, local, machine, &rows).await;
                    for conflict in &result.conflicts {
                        self.notify(conflict.one_line()).await;
                    }
                    (result.done, result.failure)
                }
                Err(problem) => (0, Some(problem)),
            };
            if let Some(row) = done.checked_sub(1).and_then(|last| rows.get(last)) {
                let (writer, key) = (claim.clone(), row.key);
                blocking(move || writer.acknowledge(key, 0)).await?;
            }
            match failure {
                Some(problem) => return self.fail(claim, problem).await.map(Some),
                None => self.last = None,
            }
        }
    }

    /// Records and reports a failed attempt. Returns when to try again.
    async fn fail(&mut self, claim: Arc<OutboxClaim>, problem: Problem) -> Result<Timestamp, StoreError> {
        let message = problem.one_line();
        tracing::warn!(message, "cannot push sessions");
        self.notify(message.clone()).await;
        blocking(move || {
            let next = after(RETRIES.delay(claim.attempts()?.saturating_add(1), None));
            claim.fail(&message, next)?;
            Ok(next)
        })
        .await
    }

    /// Marks the session in the object store as busy with a task on this machine. A failure is not retried, because the
    /// mark is corrected when the task ends.
    async fn mark_busy(&mut self) {
        let target = self.target.clone();
        let marked = match target.uploads().await {
            Ok(uploads) => mark_busy(&uploads.bucket, &target.session, &uploads.machine).await.map_err(|error| error.problem),
            Err(problem) => Err(problem),
        };
        if let Err(problem) = marked {
            self.notify(problem.one_line()).await;
        }
    }

    async fn notify(&mut self, notice: String) {
        if self.last.as_ref() == Some(&notice) {
            return;
        }
        self.last = Some(notice.clone());
        if let Some(notices) = &self.notices {
            let _ = notices.send(PolicyUpdate::Notice { message: notice }).await;
        }
    }
}

fn after(delay: Duration) -> Timestamp {
    Timestamp::now() + SignedDuration::try_from(delay).unwrap_or_default()
}

/// Waits until the given time. Never completes if the time is `None`.
async fn until(due: Option<Timestamp>) {
    match due {
        Some(due) => tokio::time::sleep(Duration::try_from(due.duration_since(Timestamp::now())).unwrap_or_default()).await,
        None => std::future::pending().await,
    }
}

/// Releases a claim on outbox rows. If more rows are due, returns the claim instead.
async fn release(claim: Arc<OutboxClaim>) -> Result<Option<OutboxClaim>, StoreError> {
    match Arc::try_unwrap(claim) {
        Ok(claim) => blocking(move || claim.release_if_idle()).await,
        // The claim is still in use. Its last drop releases it.
        Err(_) => Ok(None),
    }
}

/// Runs a store operation on a thread that may block.
async fn blocking<T: Send + 'static>(call: impl FnOnce() -> Result<T, StoreError> + Send + 'static) -> Result<T, StoreError> {
    match tokio::task::spawn_blocking(call).await {
        Ok(result) => result,
        // The runtime is shutting down, so this task ends too.
        Err(_) => std::future::pending().await,
    }
}

/// Uploads of artifacts that belong to a session and its agents.
struct ArtifactCopies {
    target: Arc<UploadTarget>,
    artifacts: Arc<dyn Artifacts>,
    report: mpsc::Sender<String>,
    /// Time until which results do not wait for uploads.
    paused_until: Mutex<Option<Instant>>,
    slots: Arc<Semaphore>,
}

impl ArtifactCopies {
    fn is_paused(&self) -> bool {
        let until = *self.paused_until.lock().unwrap_or_else(PoisonError::into_inner);
        until.is_some_and(|until| Instant::now() < until)
    }

    /// Stops results from waiting for uploads during `ARTIFACT_PAUSE`, and reports the reason.
    fn pause(&self, why: &str) {
        *self.paused_until.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now() + ARTIFACT_PAUSE);
        // If the channel is full, enough has been reported.
        let _ = self.report.try_send(format!("artifacts will be uploaded after the task: {why}"));
    }

    /// Starts an upload. It continues even when no result is waiting for it any more.
    fn start(&self, uri: String) -> tokio::task::JoinHandle<Result<String, Problem>> {
        let (target, artifacts, slots) = (self.target.clone(), self.artifacts.clone(), self.slots.clone());
        tokio::spawn(async move {
            let _slot = slots.acquire_owned().await;
            let uploads = target.uploads().await?;
            Ok(upload_artifact(&uploads.bucket, artifacts, uri).await?)
        })
    }
}

impl ArtifactUploads for ArtifactCopies {
    fn upload(&self, uris: Vec<String>) -> BoxFuture<'_, Vec<String>> {
        Box::pin(async move {
            if self.is_paused() {
                return Vec::new();
            }
            let started: Vec<_> = uris.into_iter().map(|uri| self.start(uri)).collect();
            let deadline = Instant::now() + ARTIFACT_WAIT;
            let mut copies = Vec::new();
            for upload in started {
                match tokio::time::timeout_at(deadline, upload).await {
                    Ok(Ok(Ok(url))) => copies.push(url),
                    Ok(Ok(Err(problem))) => self.pause(&problem.one_line()),
                    Ok(Err(error)) => self.pause(&error.to_string()),
                    Err(_) => self.pause("the upload took more than 2 s"),
                }
            }
            copies
        })
    }
}
