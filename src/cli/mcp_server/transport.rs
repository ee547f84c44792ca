//! Line-based transport for an MCP client. Limits the size of messages, and responds to invalid messages with errors.

use super::scheduler::Scheduler;
use crate::cli::serve::transport::{Outbox, ServeClient};
use crate::serve::{BoundedLine, LINE_BYTES};
use rmcp::RoleServer;
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorCode, ErrorData, GetExtensions as _, JsonRpcMessage, RequestId,
    ServerJsonRpcMessage,
};
use rmcp::transport::Transport;
use serde_json::Value;
use std::convert::Infallible;
use std::sync::Arc;
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

/// Maximum number of open requests. Any further request is rejected immediately.
const MAX_REQUESTS: usize = 64;
/// Error code returned when there are too many open requests.
const BUSY: ErrorCode = ErrorCode(-32000);

/// Connection to the client. Clones are cheap, but only one of them may receive at a time.
#[derive(Clone)]
pub(crate) struct ClientTransport {
    lines: Arc<Mutex<mpsc::Receiver<BoundedLine>>>,
    out: Arc<Outbox>,
    requests: Arc<Semaphore>,
    /// Determines the order of calls. Each call is added when its request arrives.
    scheduler: Arc<Scheduler>,
    /// Token that is cancelled when the input ends.
    deaf: CancellationToken,
}

/// Permit for an open request, which is released when the request is dropped.
#[derive(Clone)]
struct RequestPermit(#[expect(dead_code, reason = "dropping it releases its permit")] Arc<OwnedSemaphorePermit>);

impl ClientTransport {
    pub(crate) fn new(client: ServeClient, scheduler: Arc<Scheduler>) -> Self {
        Self {
            lines: Arc::new(Mutex::new(client.lines)),
            out: Arc::new(client.out),
            requests: Arc::new(Semaphore::new(MAX_REQUESTS)),
            scheduler,
            deaf: CancellationToken::new(),
        }
    }

    pub(crate) fn disconnected(&self) -> CancellationToken {
        self.deaf.clone()
    }

    /// Waits, for a limited time, until the last lines have been written.
    pub(crate) async fn close(self) {
        if let Some(out) = Arc::into_inner(self.out) {
            out.close().await;
        }
    }

    /// Returns the next line. Waits first if the client has not read enough of its responses.
    async fn line(&self) -> Option<BoundedLine> {
        let mut lines = self.lines.lock().await;
        if !self.out.has_room() {
            tokio::select! {
                () = self.out.wait_for_room_change(false) => {}
                () = self.out.wait_for_disconnect() => return None,
            }
        }
        tokio::select! {
            line = lines.recv() => line,
            () = self.out.wait_for_disconnect() => None,
        }
    }

    /// Parses a message. Returns `None` for a rejected message; unless it is a notification, the client is sent an
    /// error.
    fn message(&self, line: BoundedLine) -> Option<ClientJsonRpcMessage> {
        let mut message = match read(line) {
            Ok(message) => message?,
            Err(wrong) => {
                let (error, id) = *wrong;
                self.out.send(&ServerJsonRpcMessage::error(error, id));
                return None;
            }
        };
        if let JsonRpcMessage::Request(request) = &mut message {
            let Ok(permit) = Arc::clone(&self.requests).try_acquire_owned() else {
                let words = format!("{MAX_REQUESTS} requests are still unanswered; wait for a response");
                self.out.send(&ServerJsonRpcMessage::error(ErrorData::new(BUSY, words, None), Some(request.id.clone())));
                return None;
            };
            request.request.extensions_mut().insert(RequestPermit(Arc::new(permit)));
            // Requests are handled concurrently, so this is the last point at which their order is known.
            if matches!(request.request, ClientRequest::CallToolRequest(_)) {
                request.request.extensions_mut().insert(self.scheduler.arrive());
            }
        }
        Some(message)
    }
}

/// Parses a line. Returns `None` for an invalid notification. Errors include the request ID if it could be read.
fn read(line: BoundedLine) -> Result<Option<ClientJsonRpcMessage>, Box<(ErrorData, Option<RequestId>)>> {
    let bytes = match line {
        BoundedLine::Whole(bytes) => bytes,
        BoundedLine::TooLong => {
            let words = format!("the line is longer than {LINE_BYTES} bytes and was discarded");
            return Err(Box::new((ErrorData::invalid_request(words, None), None)));
        }
    };
    let error = match serde_json::from_slice(&bytes) {
        Ok(message) => return Ok(Some(message)),
        Err(error) => error,
    };
    let Ok(value) = serde_json::from_slice::<Value>(&bytes) else {
        let words = format!("the line is not JSON: {error}; send one message per line");
        return Err(Box::new((ErrorData::parse_error(words, None), None)));
    };
    // A notification gets no response.
    if value.get("method").is_some() && value.get("id").is_none() {
        tracing::debug!(%error, "ignored an invalid notification");
        return Ok(None);
    }
    let id = value.get("id").and_then(|id| serde_json::from_value(id.clone()).ok());
    let words = "not a JSON-RPC 2.0 request, notification or response; send one per line, without batches";
    Err(Box::new((ErrorData::invalid_request(words, None), id)))
}

impl Transport<RoleServer> for ClientTransport {
    type Error = Infallible;

    fn send(&mut self, item: ServerJsonRpcMessage) -> impl Future<Output = Result<(), Infallible>> + Send + 'static {
        self.out.send(&item);
        std::future::ready(Ok(()))
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        // This future may be dropped while it waits, so a received line is handled before the next await.
        while let Some(line) = self.line().await {
            if let Some(message) = self.message(line) {
                return Some(message);
            }
        }
        self.deaf.cancel();
        None
    }

    async fn close(&mut self) -> Result<(), Infallible> {
        Ok(())
    }
}
