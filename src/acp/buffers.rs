//! The files that an editor has open: what it has of them, and what it is told of them. It says so in time, or is not asked any more.

use super::connection::Client;
use crate::protocol::SessionId;
use agent_client_protocol::v1::schema::{ReadTextFileRequest, WriteTextFileRequest};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::time::timeout;

/// How long an editor may take to answer.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Those of one session. All clones are the same.
#[derive(Clone)]
pub struct Buffers(Arc<Inner>);

struct Inner {
    client: Client,
    /// Known once it is open.
    session: OnceLock<String>,
    /// It did not answer in time: nothing more is asked before the next prompt.
    hangs: AtomicBool,
}

impl std::fmt::Debug for Buffers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Buffers").field("session", &self.0.session).finish_non_exhaustive()
    }
}

impl Buffers {
    /// None where the editor does not say what it has.
    pub fn of(client: &Client) -> Option<Self> {
        let inner = Inner { client: client.clone(), session: OnceLock::new(), hangs: AtomicBool::new(false) };
        client.understands().reads_files.then(|| Self(Arc::new(inner)))
    }

    pub fn belong_to(&self, session: &SessionId) {
        let _ = self.0.session.set(session.to_string());
    }

    /// A prompt begins: an editor that hung is asked again.
    pub fn prompted(&self) {
        self.0.hangs.store(false, Ordering::Relaxed);
    }

    /// What the editor has of this file.
    pub async fn text(&self, path: PathBuf) -> Option<String> {
        let session = self.session()?;
        self.in_time(self.0.client.read_file(ReadTextFileRequest::new(session, path))).await
    }

    /// Tells it what the file holds; whether it took that.
    pub async fn follow(&self, path: PathBuf, text: String) -> bool {
        let Some(session) = self.session().filter(|_| self.0.client.understands().writes_files) else { return false };
        self.in_time(self.0.client.write_file(WriteTextFileRequest::new(session, path, text))).await.is_some()
    }

    fn session(&self) -> Option<String> {
        self.0.session.get().filter(|_| !self.0.hangs.load(Ordering::Relaxed)).cloned()
    }

    async fn in_time<T>(&self, answer: impl Future<Output = Result<T, String>>) -> Option<T> {
        match timeout(TIMEOUT, answer).await {
            Ok(Ok(answer)) => Some(answer),
            Ok(Err(error)) => {
                tracing::info!(?error, "the editor rejected a request for its version of a file");
                None
            }
            Err(_) => {
                tracing::warn!("the editor did not return its version of a file in time; aye asks again with the next prompt");
                self.0.hangs.store(true, Ordering::Relaxed);
                None
            }
        }
    }
}
