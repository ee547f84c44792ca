//! Requests and notifications sent by a server.
#![expect(deprecated, reason = "protocol versions before 2026-07-28 use these forms of roots, sampling and logging")]

use super::failure::truncate;
use super::form;
use super::limits::{MAX_QUOTED_CHARS, QUESTIONS};
use crate::ports::RemoteAsks;
use crate::protocol::{Elicitation, ElicitationAnswer, ElicitationKind};
use rmcp::model::{
    ClientCapabilities, ClientConfig, CreateMessageRequestParams, CreateMessageResult, ElicitRequestParams, ElicitResult,
    ElicitationAction, ElicitationCapability, ErrorCode, ErrorData, FormElicitationCapability, Implementation, ListRootsResult,
    LoggingMessageNotificationParam, NumberOrString, ProgressNotificationParam, ProtocolVersion, Root, RootsCapabilities,
    SamplingCapability, UrlElicitationCapability,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{ClientHandler, RoleClient};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{Notify, Semaphore, mpsc, watch};

/// Handles the requests that a server sends over one connection.
pub(super) struct ServerRequests {
    server: String,
    asks: Option<Arc<dyn RemoteAsks>>,
    /// Receivers of progress notifications, by the request's progress token.
    listeners: Mutex<HashMap<NumberOrString, mpsc::Sender<String>>>,
    /// Number of requests in progress, and number of requests that are waiting for the user.
    busy: watch::Sender<ActivityState>,
    questions: Semaphore,
    pub tools_changed: Notify,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ActivityState {
    pub requests: usize,
    pub questions: usize,
}

/// Guard for a request in progress, which is dropped when the request ends.
pub(super) struct RunningRequest<'a> {
    talk: &'a ServerRequests,
    token: Option<NumberOrString>,
}

impl Drop for RunningRequest<'_> {
    fn drop(&mut self) {
        if let Some(token) = self.token.take() {
            self.talk.listeners.lock().unwrap_or_else(PoisonError::into_inner).remove(&token);
        }
        self.talk.busy.send_modify(|busy| busy.requests -= 1);
    }
}

impl RunningRequest<'_> {
    pub(super) fn forward_progress(&mut self, token: NumberOrString, output: mpsc::Sender<String>) {
        let mut listeners = self.talk.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(before) = self.token.replace(token.clone()) {
            listeners.remove(&before);
        }
        listeners.insert(token, output);
    }
}

struct OpenQuestion<'a>(&'a ServerRequests);

impl<'a> OpenQuestion<'a> {
    fn count(talk: &'a ServerRequests) -> Self {
        talk.busy.send_modify(|busy| busy.questions += 1);
        Self(talk)
    }
}

impl Drop for OpenQuestion<'_> {
    fn drop(&mut self) {
        self.0.busy.send_modify(|busy| busy.questions -= 1);
    }
}

impl ServerRequests {
    pub(super) fn new(server: &str, asks: Option<Arc<dyn RemoteAsks>>) -> Self {
        Self {
            server: server.to_owned(),
            asks,
            listeners: Mutex::default(),
            busy: watch::Sender::default(),
            questions: Semaphore::new(1),
            tools_changed: Notify::new(),
        }
    }

    pub(super) fn underway(&self) -> RunningRequest<'_> {
        self.busy.send_modify(|busy| busy.requests += 1);
        RunningRequest { talk: self, token: None }
    }

    pub(super) fn subscribe_activity(&self) -> watch::Receiver<ActivityState> {
        self.busy.subscribe()
    }

    /// Asks the user, one request at a time. A request is declined if there is no user, or if no call in progress could
    /// have caused it.
    pub(super) async fn elicit(&self, request: ElicitRequestParams) -> ElicitResult {
        let declined = || ElicitResult::new(ElicitationAction::Decline);
        let Some(asks) = &self.asks else { return declined() };
        let busy = *self.busy.borrow();
        if busy.requests == 0 || busy.questions >= QUESTIONS {
            return ElicitResult::new(ElicitationAction::Cancel);
        }
        let (message, wanted) = match request {
            ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } => {
                let order = requested_schema.property_order.clone();
                let schema = serde_json::to_value(&requested_schema).unwrap_or_default();
                match form::fields(&schema, order.as_deref()) {
                    Ok(fields) => (message, ElicitationKind::Form { fields }),
                    Err(reason) => {
                        tracing::warn!(server = %self.server, %reason, "cannot show the form that the server asks for");
                        return declined();
                    }
                }
            }
            ElicitRequestParams::UrlElicitationParams { message, url, .. } => match visitable(&url) {
                Some(url) => (message, ElicitationKind::Visit { url }),
                None => return declined(),
            },
            _ => return declined(),
        };
        let _asked = OpenQuestion::count(self);
        let Ok(_turn) = self.questions.acquire().await else { return declined() };
        let elicitation = Elicitation {
            elicitation_id: uuid::Uuid::new_v4().to_string(),
            server: self.server.clone(),
            message: truncate(&message, 4 * MAX_QUOTED_CHARS).into_owned(),
            wanted: wanted.clone(),
        };
        match (asks.elicit(elicitation).await, wanted) {
            (ElicitationAnswer::Accept { content }, ElicitationKind::Form { fields }) => match form::answer(&fields, content) {
                Ok(content) => ElicitResult::new(ElicitationAction::Accept).with_content(Value::Object(content)),
                Err(reason) => {
                    tracing::warn!(server = %self.server, %reason, "the answer does not match the form");
                    ElicitResult::new(ElicitationAction::Cancel)
                }
            },
            (ElicitationAnswer::Accept { .. }, ElicitationKind::Visit { .. }) => ElicitResult::new(ElicitationAction::Accept),
            // Servers do not send questions of this kind.
            (ElicitationAnswer::Accept { .. }, ElicitationKind::Question { .. }) => declined(),
            (ElicitationAnswer::Decline, _) => declined(),
            (ElicitationAnswer::Cancel, _) => ElicitResult::new(ElicitationAction::Cancel),
        }
    }

    pub(super) fn roots(&self) -> ListRootsResult {
        let roots = self.asks.as_ref().map(|asks| asks.roots()).unwrap_or_default();
        ListRootsResult::new(roots.into_iter().map(|(uri, name)| Root::new(uri).with_name(name)).collect())
    }

    pub(super) async fn sample(&self, request: CreateMessageRequestParams) -> Result<CreateMessageResult, ErrorData> {
        let refused = |reason: String| ErrorData::new(ErrorCode(-1), reason, None);
        let Some(asks) = &self.asks else { return Err(refused("sampling is not allowed here".to_owned())) };
        let busy = *self.busy.borrow();
        if busy.requests == 0 || busy.questions >= QUESTIONS {
            return Err(refused("sampling is only allowed during a call, with a limited number of requests at once".to_owned()));
        }
        // The timer of the call is paused until the response.
        let _asked = OpenQuestion::count(self);
        let request = serde_json::to_value(request).map_err(|error| refused(error.to_string()))?;
        let answer = asks.sample(&self.server, request).await.map_err(refused)?;
        serde_json::from_value(answer).map_err(|error| refused(error.to_string()))
    }

    fn emit_progress(&self, token: Option<&NumberOrString>, line: &str) {
        let listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        let line = truncate(line, 4 * MAX_QUOTED_CHARS);
        for (_, output) in listeners.iter().filter(|(of, _)| token.is_none_or(|token| token == *of)) {
            let _ = output.try_send(line.clone().into_owned());
        }
    }
}

/// Returns a URL that is safe to show to the user, which means that it is a web page address without a password.
/// Returns `None` for any other URL.
fn visitable(address: &str) -> Option<String> {
    let url = url::Url::parse(address).ok()?;
    let host = url.host_str()?;
    let is_safe = url.scheme() == "https" || (url.scheme() == "http" && crate::sys::http::is_loopback(host));
    (is_safe && url.username().is_empty() && url.password().is_none()).then(|| url.to_string())
}

impl ClientHandler for ServerRequests {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        if let Some(asks) = &self.asks {
            if asks.samples(&self.server) {
                capabilities.sampling = Some(SamplingCapability::default());
            }
            capabilities.roots = Some(RootsCapabilities::default());
            capabilities.elicitation = Some(
                ElicitationCapability::new()
                    .with_form(FormElicitationCapability::new().with_schema_validation(true))
                    .with_url(UrlElicitationCapability::default()),
            );
        }
        let mut info = ClientConfig::new(capabilities, Implementation::new("aye", env!("CARGO_PKG_VERSION")));
        info.protocol_version = ProtocolVersion::LATEST_WITH_INITIALIZE;
        info
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        tokio::select! {
            answer = self.elicit(request) => Ok(answer),
            () = context.ct.cancelled() => Ok(ElicitResult::new(ElicitationAction::Cancel)),
        }
    }

    async fn list_roots(&self, _: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        Ok(self.roots())
    }

    async fn create_message(
        &self,
        request: CreateMessageRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        tokio::select! {
            answer = self.sample(request) => answer,
            () = context.ct.cancelled() => Err(ErrorData::new(ErrorCode(-1), "cancelled", None)),
        }
    }

    async fn on_progress(&self, progress: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        let of = progress.total.map(|total| format!(" of {total}")).unwrap_or_default();
        let message = progress.message.map(|message| format!(": {message}")).unwrap_or_default();
        self.emit_progress(Some(&progress.progress_token.0), &format!("{}{of}{message}", progress.progress));
    }

    async fn on_logging_message(&self, log: LoggingMessageNotificationParam, _: NotificationContext<RoleClient>) {
        let line = log.data.as_str().map_or_else(|| log.data.to_string(), str::to_owned);
        self.emit_progress(None, &line);
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.tools_changed.notify_one();
    }
}
