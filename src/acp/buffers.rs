//! Unsaved content of files that are open in the editor. If the editor does not respond in time, it is not asked again
//! until the next prompt.

use super::client::Client;
use crate::protocol::SessionId;
use agent_client_protocol::v1::schema::{ReadTextFileRequest, WriteTextFileRequest};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::time::timeout;

/// Time within which the editor must respond to a request.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Files that are open in a session's editor. All clones share the same state.
#[derive(Clone)]
pub(crate) struct EditorBuffers(Arc<Inner>);

struct Inner {
    client: Client,
    /// Session ID, which is set once the session is open.
    session: OnceLock<String>,
    /// Whether the editor has failed to respond in time, in which case it is not asked again until the next prompt.
    hangs: AtomicBool,
}

impl std::fmt::Debug for EditorBuffers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Buffers").field("session", &self.0.session).finish_non_exhaustive()
    }
}

impl EditorBuffers {
    /// Returns the buffers for a client, or `None` if the editor does not give access to its files.
    pub(crate) fn for_client(client: &Client) -> Option<Self> {
        let inner = Inner { client: client.clone(), session: OnceLock::new(), hangs: AtomicBool::new(false) };
        client.understands().reads_files.then(|| Self(Arc::new(inner)))
    }

    pub(crate) fn set_session(&self, session: &SessionId) {
        let _ = self.0.session.set(session.to_string());
    }

    /// Records that a new prompt is starting, after which an editor that failed to respond is asked again.
    pub(crate) fn start_prompt(&self) {
        self.0.hangs.store(false, Ordering::Relaxed);
    }

    /// Returns the editor's content of a file, including unsaved changes. Returns `None` if the editor does not provide
    /// it.
    pub(crate) async fn text(&self, path: PathBuf) -> Option<String> {
        let session = self.session()?;
        self.with_timeout(self.0.client.read_file(ReadTextFileRequest::new(session, path))).await
    }

    /// Sends new file content to the editor. Returns whether the editor accepted it.
    pub(crate) async fn send_text(&self, path: PathBuf, text: String) -> bool {
        let Some(session) = self.session().filter(|_| self.0.client.understands().writes_files) else { return false };
        self.with_timeout(self.0.client.write_file(WriteTextFileRequest::new(session, path, text))).await.is_some()
    }

    fn session(&self) -> Option<String> {
        self.0.session.get().filter(|_| !self.0.hangs.load(Ordering::Relaxed)).cloned()
    }

    async fn with_timeout<T>(&self, answer: impl Future<Output = Result<T, String>>) -> Option<T> {
        match timeout(TIMEOUT, answer).await {
            Ok(Ok(answer)) => Some(answer),
            Ok(Err(error)) => {
                tracing::info!(?error, "the editor refused to return the text of an open file");
                None
            }
            Err(_) => {
                tracing::warn!(
                    "the editor did not return the text of an open file in time; aye requests it again with the next prompt"
                );
                self.0.hangs.store(true, Ordering::Relaxed);
                None
            }
        }
    }
}
