//! The editor as seen by a session: its capabilities, and the messages sent to it.

use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    ReadTextFileRequest, RequestPermissionRequest, RequestPermissionResponse, SessionNotification, SessionUpdate,
    WriteTextFileRequest,
};
use std::borrow::Cow;
use std::sync::Arc;
use tokio::sync::{Semaphore, TryAcquireError, watch};

/// Functions that sanitize external text, both for display and for text on which the user bases decisions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sanitizers {
    pub clean: fn(&str) -> Cow<'_, str>,
    pub reveal: fn(&str) -> Cow<'_, str>,
}

/// Optional capabilities that an editor may have.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct EditorCapabilities {
    /// Whether the editor provides the content of its files. `writes_files` is whether it also accepts new content.
    pub reads_files: bool,
    pub writes_files: bool,
    pub notices: bool,
    pub compactions: bool,
    /// Whether the editor has a terminal in which aye can be set up.
    pub terminal_sign_in: bool,
}

/// Editor in which a session is displayed.
#[derive(Clone)]
pub(crate) struct Client {
    connection: ConnectionTo<agent_client_protocol::Client>,
    /// Semaphore that limits the number of updates waiting to be written.
    room: Arc<Semaphore>,
    understands: EditorCapabilities,
    pub looks: Sanitizers,
    /// Tells the session whether the editor can currently accept more streamed text.
    pub flow: Option<Arc<watch::Sender<bool>>>,
}

impl Client {
    pub(crate) fn new(
        connection: ConnectionTo<agent_client_protocol::Client>,
        room: Arc<Semaphore>,
        understands: EditorCapabilities,
        looks: Sanitizers,
    ) -> Self {
        Self { connection, room, understands, looks, flow: None }
    }

    fn has_room(&self, more: bool) {
        if let Some(flow) = &self.flow {
            flow.send_replace(more);
        }
    }

    pub(crate) fn understands(&self) -> EditorCapabilities {
        self.understands
    }

    /// Sends an update, waiting if the editor cannot keep up.
    pub(crate) async fn update(&self, session: &crate::protocol::SessionId, update: SessionUpdate) {
        let room = match self.room.try_acquire() {
            Ok(room) => room,
            Err(TryAcquireError::Closed) => return,
            Err(TryAcquireError::NoPermits) => {
                self.has_room(false);
                let room = self.room.acquire().await;
                self.has_room(true);
                let Ok(room) = room else { return };
                room
            }
        };
        room.forget();
        let _ = self.connection.send_notification(SessionNotification::new(session.to_string(), update));
    }

    pub(crate) fn ask(
        &self,
        request: RequestPermissionRequest,
    ) -> impl Future<Output = Result<RequestPermissionResponse, String>> + Send + 'static {
        let sent = self.connection.send_request(request);
        async move { sent.block_task().await.map_err(|error| error.message) }
    }

    pub(crate) async fn read_file(&self, request: ReadTextFileRequest) -> Result<String, String> {
        let answer = self.connection.send_request(request).block_task().await;
        answer.map(|answer| answer.content).map_err(|error| error.message)
    }

    pub(crate) async fn write_file(&self, request: WriteTextFileRequest) -> Result<(), String> {
        self.connection.send_request(request).block_task().await.map(drop).map_err(|error| error.message)
    }
}
