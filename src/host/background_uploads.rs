//! Uploads of a running session: its history after each task, and artifacts before their results. Nothing waits for them,
//! except a result for its artifacts, for a limited time.

use super::context::AppContext;
use super::session_uploads::SessionUploads;
use crate::agent::PolicyUpdate;
use crate::ports::{ArtifactUploads, Artifacts, BoxFuture, Durability, Journal, JournalError, Record, SavedTail};
use crate::protocol::{CallId, Problem, SessionId};
use crate::services::workspace::{PushOptions, WorkspaceError, WorkspaceProblem, mark_busy, push, upload_artifact};
use crate::session::{TaskBoundary, task_boundary};
use crate::store::Store;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{OnceCell, Semaphore, mpsc, watch};
use tokio::time::Instant;

/// Maximum time that a result waits for its artifacts.
const ARTIFACT_WAIT: Duration = Duration::from_secs(2);
/// Time after a failed upload in which no result waits.
const ARTIFACT_PAUSE: Duration = Duration::from_secs(60);
/// Maximum number of artifacts that are uploaded at the same time.
const ARTIFACTS_AT_ONCE: usize = 2;
/// Delay before the first retry; doubled for each further one.
const FIRST_RETRY: Duration = Duration::from_secs(2);
const MAX_RETRY: Duration = Duration::from_secs(300);
/// Notices that wait to be shown; more are dropped.
const NOTICES: usize = 8;

/// The object store of a session, opened by the first upload.
struct Target {
    place: AppContext,
    store: Store,
    session: SessionId,
    opened: OnceCell<SessionUploads>,
}

impl Target {
    async fn uploads(&self) -> Result<&SessionUploads, Problem> {
        let open = || async {
            let (place, store) = (self.place.clone(), self.store.clone());
            // A directory on a network file system may block.
            let opened = tokio::task::spawn_blocking(move || SessionUploads::open(&place, &store)).await;
            let opened = opened.map_err(|error| Problem::new("cannot open the object store").because(error))??;
            opened.ok_or_else(|| Problem::new("no object store is configured"))
        };
        self.opened.get_or_try_init(open).await
    }
}

/// Uploads of a session, in the background.
pub(crate) struct BackgroundUploads {
    target: Arc<Target>,
    artifacts: Arc<ArtifactCopies>,
    reported: mpsc::Receiver<String>,
    boundaries: watch::Sender<Option<TaskBoundary>>,
    /// The session, for notices.
    pub notices: Option<mpsc::Sender<PolicyUpdate>>,
    /// The last notice, which is not repeated.
    last: Option<String>,
}

impl BackgroundUploads {
    /// Prepares the uploads; `None` if no store is configured. Nothing is opened yet.
    pub(crate) fn new(place: &AppContext, store: &Store, (session, artifacts): (SessionId, Arc<dyn Artifacts>)) -> Option<Self> {
        place.settings.workspace_store.as_ref()?;
        let target = Arc::new(Target { place: place.clone(), store: store.clone(), session, opened: OnceCell::new() });
        let (report, reported) = mpsc::channel(NOTICES);
        let artifacts = Arc::new(ArtifactCopies {
            target: target.clone(),
            artifacts,
            report,
            paused_until: Mutex::default(),
            slots: Arc::new(Semaphore::new(ARTIFACTS_AT_ONCE)),
        });
        let boundaries = watch::Sender::new(None);
        Some(Self { target, artifacts, reported, boundaries, notices: None, last: None })
    }

    pub(crate) fn artifacts(&self) -> Arc<dyn ArtifactUploads> {
        self.artifacts.clone()
    }

    /// Returns the journal, so that the end of a task starts an upload.
    pub(crate) fn journal(&self, inner: Arc<dyn Journal>) -> Arc<dyn Journal> {
        Arc::new(UploadingJournal { inner, boundaries: self.boundaries.clone() })
    }

    /// Uploads until the session ends.
    pub(crate) async fn run(mut self) {
        let mut boundaries = self.boundaries.subscribe();
        // The journal has the other sender: when it is dropped, the session has ended.
        drop(std::mem::replace(&mut self.boundaries, watch::Sender::new(None)));
        loop {
            tokio::select! {
                changed = boundaries.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    let boundary = *boundaries.borrow_and_update();
                    if let Some(boundary) = boundary {
                        self.follow(boundary, &mut boundaries).await;
                    }
                }
                Some(notice) = self.reported.recv() => self.notify(notice).await,
            }
        }
    }

    /// Uploads, and retries until it succeeds, something else happens in the session, or retrying is pointless.
    async fn follow(&mut self, boundary: TaskBoundary, boundaries: &mut watch::Receiver<Option<TaskBoundary>>) {
        let mut delay = FIRST_RETRY;
        loop {
            let Err(error) = self.target.upload(boundary).await else {
                self.last = None;
                return;
            };
            tracing::warn!(error = %error.problem.one_line(), "cannot upload the session");
            let retries = matches!(error.kind, WorkspaceProblem::Temporary | WorkspaceProblem::Local);
            self.notify(error.problem.one_line()).await;
            if !retries || boundary == TaskBoundary::Started {
                return;
            }
            let jitter = Duration::from_millis(u64::from(uuid::Uuid::new_v4().as_bytes()[0]) * 4);
            tokio::select! {
                () = tokio::time::sleep(delay + jitter) => delay = (delay * 2).min(MAX_RETRY),
                changed = boundaries.changed() => {
                    if changed.is_ok() {
                        boundaries.mark_changed();
                    }
                    return;
                }
            }
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

impl Target {
    async fn upload(&self, boundary: TaskBoundary) -> Result<(), WorkspaceError> {
        let settings = |problem| WorkspaceError { kind: WorkspaceProblem::Settings, problem };
        let SessionUploads { bucket, local, machine } = self.uploads().await.map_err(settings)?;
        match boundary {
            TaskBoundary::Started => mark_busy(bucket, &self.session, machine).await,
            TaskBoundary::Ended => push(bucket, local, &self.session, machine, PushOptions::default()).await.map(drop),
        }
    }
}

/// A journal that reports the start and the end of tasks, once they are committed.
struct UploadingJournal {
    inner: Arc<dyn Journal>,
    boundaries: watch::Sender<Option<TaskBoundary>>,
}

impl Journal for UploadingJournal {
    fn append(&self, records: Vec<Record>, durability: Durability) -> BoxFuture<'_, Result<(), JournalError>> {
        let boundary = task_boundary(&records);
        Box::pin(async move {
            self.inner.append(records, durability).await?;
            if boundary.is_some() {
                self.boundaries.send_replace(boundary);
            }
            Ok(())
        })
    }

    fn save_tail(&self, call: CallId, tail: SavedTail) -> BoxFuture<'_, Result<(), JournalError>> {
        self.inner.save_tail(call, tail)
    }

    fn save_draft(&self, text: String) -> BoxFuture<'_, Result<(), JournalError>> {
        self.inner.save_draft(text)
    }
}

/// Copies of the artifacts of a session and its agents.
struct ArtifactCopies {
    target: Arc<Target>,
    artifacts: Arc<dyn Artifacts>,
    report: mpsc::Sender<String>,
    /// Until then, no result waits for the store.
    paused_until: Mutex<Option<Instant>>,
    slots: Arc<Semaphore>,
}

impl ArtifactCopies {
    fn is_paused(&self) -> bool {
        let until = *self.paused_until.lock().unwrap_or_else(PoisonError::into_inner);
        until.is_some_and(|until| Instant::now() < until)
    }

    /// Lets no result wait for a while, and reports why.
    fn pause(&self, why: &str) {
        *self.paused_until.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now() + ARTIFACT_PAUSE);
        // A full channel means that enough is reported.
        let _ = self.report.try_send(format!("artifacts are uploaded later, after the task: {why}"));
    }

    /// Starts an upload, which continues if nothing waits for it any more.
    fn start(&self, uri: String) -> tokio::task::JoinHandle<Result<String, WorkspaceError>> {
        let (target, artifacts, slots) = (self.target.clone(), self.artifacts.clone(), self.slots.clone());
        tokio::spawn(async move {
            let _slot = slots.acquire_owned().await;
            let settings = |problem| WorkspaceError { kind: WorkspaceProblem::Settings, problem };
            let uploads = target.uploads().await.map_err(settings)?;
            upload_artifact(&uploads.bucket, artifacts, uri).await
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
                    Ok(Ok(Err(error))) => self.pause(&error.problem.one_line()),
                    Ok(Err(error)) => self.pause(&error.to_string()),
                    Err(_) => self.pause("the object store takes more than 2 s"),
                }
            }
            copies
        })
    }
}
