//! A session's MCP servers: their reported states, their pending requests to the user, and their resources.

use super::event_sender::EventSender;
use super::server_queries::{ResourceCache, ServerQueries, timeout_message, with_timeout};
use crate::agent::limits::{MAX_ELICITATIONS, MAX_FORM_BYTES, MAX_FORM_CHOICES, MAX_FORM_FIELDS, RESOURCE_BYTES};
use crate::agent::turn::Resource;
use crate::policy::redact::Redactor;
use crate::ports::{RemoteContent, RemoteServers};
use crate::protocol::{
    CallId, Elicitation, ElicitationAnswer, ElicitationKind, ElicitationOutcome, ErrorCode, EventKind, FieldKind, ServerStatus,
    ToolError, ToolResult, cut_position_before,
};
use futures_util::future::join_all;
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// Tool name under which resource reads are recorded.
const RESOURCE: &str = "ReadResource";

/// A session's servers.
pub(super) struct ServerStates {
    remote: Option<Arc<dyn RemoteServers>>,
    /// States included in the last report.
    reported: Vec<ServerStatus>,
    /// Pending requests to the user.
    open: HashMap<String, oneshot::Sender<ElicitationAnswer>>,
    /// Number of requests sent to the user so far.
    asked: u64,
    /// Whether the session is ending, in which case no further requests are shown to the user.
    has_ended: bool,
    offers: ResourceCache,
    sender: EventSender,
}

impl ServerStates {
    pub(crate) fn new(remote: Option<Arc<dyn RemoteServers>>, sender: EventSender) -> Self {
        Self {
            remote,
            reported: Vec::new(),
            open: HashMap::new(),
            asked: 0,
            has_ended: false,
            offers: ResourceCache::default(),
            sender,
        }
    }

    /// Informs the servers of the context window, so they can offer tools that fit the model.
    pub(crate) fn set_window(&self, tokens: u64) {
        if let Some(remote) = &self.remote {
            remote.set_context_window(tokens);
        }
    }

    pub(crate) fn queries(&self) -> Option<ServerQueries> {
        self.remote.as_ref().map(|remote| ServerQueries::new(Arc::clone(remote), self.offers.clone()))
    }

    /// Returns the servers' states if they have changed since the last report.
    pub(crate) fn take_changed(&mut self) -> Option<Vec<ServerStatus>> {
        let now = self.remote.as_ref()?.statuses();
        // The offered resources may change together with the states.
        self.offers.forget();
        if now == self.reported {
            return None;
        }
        self.reported.clone_from(&now);
        Some(now)
    }

    /// Asks the user on behalf of a server. If the request is too large or too many requests are already open, it is
    /// cancelled and the reason is reported to the user.
    pub(crate) fn ask(&mut self, mut elicitation: Elicitation, answer: oneshot::Sender<ElicitationAnswer>) {
        if self.has_ended {
            return;
        }
        self.open.retain(|_, open| !open.is_closed());
        let refused = if self.open.len() >= MAX_ELICITATIONS {
            Some("input while too many of its requests were already open".to_owned())
        } else {
            oversized_part(&elicitation)
        };
        if let Some(what) = refused {
            let _ = answer.send(ElicitationAnswer::Cancel);
            let who =
                if elicitation.server.is_empty() { "the model".to_owned() } else { format!("{} (MCP)", elicitation.server) };
            let message = format!("{who} requested {what}; aye cancelled the request");
            return self.notify(message);
        }
        self.asked += 1;
        // aye assigns the IDs, because several servers may choose the same one.
        elicitation.elicitation_id = format!("elicitation_{}", self.asked);
        let (send, answered) = oneshot::channel();
        self.open.insert(elicitation.elicitation_id.clone(), send);
        let id = elicitation.elicitation_id.clone();
        self.sender.send(None, None, EventKind::ElicitationRequested(elicitation));
        tokio::spawn(wait(id, answer, answered, self.sender.clone()));
    }

    /// Passes the user's answer on to the waiting server.
    pub(crate) fn answer(&mut self, elicitation_id: &str, answer: ElicitationAnswer) {
        if self.open.remove(elicitation_id).is_none_or(|open| open.send(answer).is_err()) {
            self.notify("aye is no longer waiting for this answer".to_owned());
        }
    }

    pub(crate) fn reconnect(&self, name: &str) {
        match &self.remote {
            Some(remote) if self.reported.iter().any(|status| status.name == name) => remote.reconnect(name),
            _ => self.notify(format!("unknown MCP server `{name}`")),
        }
    }

    /// Reads the resources mentioned in a prompt, in order. The content is truncated text with secrets redacted. If
    /// the policy requires approval, the user is asked first. `kill` is cancelled when the session no longer needs
    /// the content.
    pub(crate) fn read_resources(
        &mut self,
        resources: Vec<Resource>,
        redactor: Arc<Redactor>,
        kill: CancellationToken,
    ) -> impl Future<Output = Vec<ToolResult>> + Send + use<> {
        let asked = resources.into_iter().map(|one| (self.ask_first(&one), one)).collect::<Vec<_>>();
        let remote = self.remote.clone();
        async move {
            let read = asked.into_iter().enumerate().map(|(at, (asked, Resource { server, uri, .. }))| {
                let (remote, redactor, kill) = (remote.clone(), Arc::clone(&redactor), kill.clone());
                async move {
                    let id = CallId::new(format!("resource_{at}"));
                    let text = tokio::select! {
                        text = resource_text(remote.as_deref(), &server, &uri, asked) => text,
                        () = kill.cancelled() => Err("the session is ending".to_owned()),
                    };
                    match text {
                        Ok(text) => ToolResult::success(id, RESOURCE, redactor.redact(&text).text),
                        Err(why) => ToolResult::from_error(id, RESOURCE, ToolError::new(ErrorCode::ToolExecutionFailed, why)),
                    }
                }
            });
            join_all(read.collect::<Vec<_>>()).await
        }
    }

    /// Asks the user to approve reading a resource, if required, and returns the receiver for the answer.
    fn ask_first(&mut self, resource: &Resource) -> Option<oneshot::Receiver<ElicitationAnswer>> {
        let why = resource.asks.as_deref()?;
        let message = format!(
            "Your prompt mentions `{}` from this server. aye reads the resource and sends its content to the model. {why}",
            resource.uri
        );
        let (send, answer) = oneshot::channel();
        let (elicitation_id, server, wanted) =
            (String::new(), resource.server.clone(), ElicitationKind::Form { fields: Vec::new() });
        self.ask(Elicitation { elicitation_id, server, message, wanted }, send);
        Some(answer)
    }

    /// Cancels all pending server requests and ends the server processes.
    pub(crate) async fn end(&mut self) {
        self.has_ended = true;
        self.open.clear();
        if let Some(remote) = self.remote.take() {
            remote.end().await;
        }
    }

    fn notify(&self, message: String) {
        self.sender.send(None, None, EventKind::notice(message));
    }
}

/// Waits until the user answers or the server stops waiting.
async fn wait(
    id: String,
    mut answer: oneshot::Sender<ElicitationAnswer>,
    answered: oneshot::Receiver<ElicitationAnswer>,
    sender: EventSender,
) {
    let outcome = tokio::select! {
        given = answered => {
            let given = given.unwrap_or(ElicitationAnswer::Cancel);
            let outcome = given.outcome();
            if answer.send(given).is_ok() { outcome } else { ElicitationOutcome::Withdrawn }
        }
        () = answer.closed() => ElicitationOutcome::Withdrawn,
    };
    sender.send(None, None, EventKind::ElicitationEnded { elicitation_id: id, outcome });
}

/// Describes the part of a request that is too large for the user to review. Returns `None` if every part is small
/// enough.
fn oversized_part(elicitation: &Elicitation) -> Option<String> {
    let fields = match &elicitation.wanted {
        ElicitationKind::Form { fields } => fields,
        ElicitationKind::Visit { .. } => {
            return (size(elicitation) > MAX_FORM_BYTES).then(|| "a visit to an overlong URL".to_owned());
        }
        ElicitationKind::Question { .. } => {
            return (size(elicitation) > MAX_FORM_BYTES).then(|| "an answer to an overlong question".to_owned());
        }
    };
    let choices = |field: &crate::protocol::FormField| match &field.takes {
        FieldKind::Choice { choices } | FieldKind::Choices { choices, .. } => choices.len(),
        FieldKind::Text { .. } | FieldKind::Number { .. } | FieldKind::Flag => 0,
    };
    if fields.len() > MAX_FORM_FIELDS {
        return Some(format!("a form with {} fields (the limit is {MAX_FORM_FIELDS})", fields.len()));
    }
    if let Some(most) = fields.iter().map(choices).max().filter(|most| *most > MAX_FORM_CHOICES) {
        return Some(format!("a field with {most} choices (the limit is {MAX_FORM_CHOICES})"));
    }
    (size(elicitation) > MAX_FORM_BYTES).then(|| "a form that is too long to review".to_owned())
}

fn size(elicitation: &Elicitation) -> usize {
    serde_json::to_string(elicitation).map_or(usize::MAX, |json| json.len())
}

/// Returns all of a resource's text, with placeholders for any other content.
async fn resource_text(
    remote: Option<&dyn RemoteServers>,
    server: &str,
    uri: &str,
    asked: Option<oneshot::Receiver<ElicitationAnswer>>,
) -> Result<String, String> {
    let remote = remote.ok_or_else(|| format!("unknown MCP server `{server}`"))?;
    if let Some(asked) = asked
        && !matches!(asked.await, Ok(ElicitationAnswer::Accept { .. }))
    {
        return Err("you did not approve it".to_owned());
    }
    let read = with_timeout(remote.read_resource(server, uri)).await;
    let read = read.ok_or_else(timeout_message)?.map_err(|error| error.to_string())?;
    let piece = |content: RemoteContent| match content {
        RemoteContent::Text(text) | RemoteContent::Resource { text, .. } => text,
        RemoteContent::Bytes { media_type, bytes, .. } => format!("[{media_type}, {} bytes: not shown]", bytes.len()),
        RemoteContent::Link { uri, .. } => format!("[more at {uri}]"),
    };
    let mut text = String::new();
    for piece in read.content.into_iter().map(piece) {
        if !text.is_empty() {
            text.push('\n');
        }
        text.extend(piece.chars().filter(|one| !one.is_control() || matches!(one, '\n' | '\t')));
        if text.len() > RESOURCE_BYTES {
            text.truncate(cut_position_before(&text, RESOURCE_BYTES));
            text.push_str("\n[truncated]");
            break;
        }
    }
    if text.trim().is_empty() { Err("the server returned no content".to_owned()) } else { Ok(text) }
}
