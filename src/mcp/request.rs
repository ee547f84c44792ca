//! Requests to a server, during which it may ask for input several times. The timeout is paused while the user is being
//! asked. A request that ends early is cancelled at the server.

use super::Spec;
use super::failure::{one_line, request_error};
use super::limits::{QUESTIONS, ROUNDS, SHUTDOWN_TIMEOUT};
use super::server_requests::{ActivityState, ServerRequests};
use crate::ports::RemoteError;
use rmcp::RoleClient;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientRequest, ElicitRequestParams, ElicitationAction, ErrorCode, GetPromptRequest,
    GetPromptRequestParams, InputRequest, InputRequiredResult, InputResponses, ReadResourceRequest, ReadResourceRequestParams,
    ServerResult,
};
use rmcp::service::{Peer, PeerRequestOptions, ServiceError};
use serde_json::Value;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Error code which means that the user must visit a URL before the request can succeed.
const URL_ELICITATION_REQUIRED: ErrorCode = ErrorCode(-32042);

/// Request to which the server may respond by asking for input.
pub(super) enum Question {
    Call(CallToolRequestParams),
    Read(ReadResourceRequestParams),
    Prompt(GetPromptRequestParams),
}

impl Question {
    fn request(&self) -> ClientRequest {
        match self {
            Self::Call(params) => ClientRequest::CallToolRequest(CallToolRequest::new(params.clone())),
            Self::Read(params) => ClientRequest::ReadResourceRequest(ReadResourceRequest::new(params.clone())),
            Self::Prompt(params) => ClientRequest::GetPromptRequest(GetPromptRequest::new(params.clone())),
        }
    }

    fn add_responses(&mut self, responses: Option<InputResponses>, state: Option<String>) {
        let (input_responses, request_state) = match self {
            Self::Call(params) => (&mut params.input_responses, &mut params.request_state),
            Self::Read(params) => (&mut params.input_responses, &mut params.request_state),
            Self::Prompt(params) => (&mut params.input_responses, &mut params.request_state),
        };
        *input_responses = responses;
        *request_state = state;
    }
}

/// Timeout and cancellation of a request, and the receiver of its progress.
pub(super) struct RequestTimeout {
    pub timeout: Duration,
    pub cancel: CancellationToken,
    pub output: Option<mpsc::Sender<String>>,
}

impl RequestTimeout {
    pub(super) fn with_timeout(timeout: Duration) -> Self {
        Self { timeout, cancel: CancellationToken::new(), output: None }
    }
}

pub(super) async fn ask(
    spec: &Spec,
    peer: &Peer<RoleClient>,
    talk: &ServerRequests,
    mut question: Question,
    waiting: &RequestTimeout,
) -> Result<ServerResult, RemoteError> {
    let mut underway = talk.underway();
    let mut clock = RequestTimer::new(waiting.timeout, talk.subscribe_activity());
    let mut silent_rounds = 0;
    let mut visited = false;
    for _ in 0..ROUNDS {
        let mut handle = peer
            .send_request_with_option(question.request(), PeerRequestOptions::no_options())
            .await
            .map_err(|error| request_error(spec, &error))?;
        if let Some(output) = &waiting.output {
            underway.forward_progress(handle.progress_token.0.clone(), output.clone());
        }
        let over = tokio::select! {
            answer = &mut handle.rx => Ok(answer.unwrap_or(Err(ServiceError::TransportClosed))),
            () = waiting.cancel.cancelled() => Err((RemoteError::Cancelled, "the user cancelled the request")),
            () = clock.expire() => Err((RemoteError::TimedOut { seconds: waiting.timeout.as_secs() }, "the request timed out")),
        };
        let answer = match over {
            Ok(Err(ServiceError::McpError(error))) if error.code == URL_ELICITATION_REQUIRED && !visited => {
                tokio::select! {
                    done = visits(spec, talk, error.data) => done?,
                    () = waiting.cancel.cancelled() => return Err(RemoteError::Cancelled),
                    () = clock.expire() => return Err(RemoteError::TimedOut { seconds: waiting.timeout.as_secs() }),
                }
                visited = true;
                continue;
            }
            Ok(answer) => answer.map_err(|error| request_error(spec, &error))?,
            Err((error, reason)) => {
                let _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, handle.cancel(Some(reason.to_owned()))).await;
                return Err(error);
            }
        };
        let ServerResult::InputRequiredResult(InputRequiredResult { input_requests, request_state, .. }) = answer else {
            return Ok(answer);
        };
        let requests = input_requests.unwrap_or_default();
        if requests.is_empty() {
            // The server only requests a retry, so the delay increases each time.
            tokio::time::sleep(Duration::from_millis(50 << silent_rounds)).await;
            silent_rounds += 1;
        }
        let mut responses = InputResponses::new();
        for (key, request) in requests {
            let response = tokio::select! {
                response = respond(talk, request) => response,
                () = waiting.cancel.cancelled() => return Err(RemoteError::Cancelled),
                () = clock.expire() => return Err(RemoteError::TimedOut { seconds: waiting.timeout.as_secs() }),
            };
            responses.insert(key, response.map_err(|message| RemoteError::Refused { message })?);
        }
        question.add_responses((!responses.is_empty()).then_some(responses), request_state);
    }
    Err(RemoteError::Refused { message: format!("the server `{}` requested input more than {ROUNDS} times", spec.name) })
}

/// Asks the user to visit the URLs that a request requires. If the user confirms, the caller sends the request again.
async fn visits(spec: &Spec, talk: &ServerRequests, data: Option<Value>) -> Result<(), RemoteError> {
    let asked = data.as_ref().and_then(|data| data["elicitations"].as_array()).map(Vec::as_slice).unwrap_or_default();
    let text = |asked: &Value, key: &str| asked[key].as_str().unwrap_or_default().to_owned();
    let asked: Vec<(String, String)> = asked.iter().map(|one| (text(one, "message"), text(one, "url"))).take(QUESTIONS).collect();
    if asked.is_empty() {
        let message = format!("the server `{}` requires the user to visit a URL first, but does not name it", spec.name);
        return Err(RemoteError::Refused { message });
    }
    for (message, url) in &asked {
        let (message, url, meta, elicitation_id) = (message.clone(), url.clone(), None, String::new());
        let answer = talk.elicit(ElicitRequestParams::UrlElicitationParams { meta, message, url, elicitation_id }).await;
        if answer.action != ElicitationAction::Accept {
            let urls: Vec<String> = asked.iter().map(|(_, url)| one_line(url)).collect();
            let (name, urls) = (&spec.name, urls.join(" "));
            let message =
                format!("the server `{name}` continues only after the user opens {urls} in a browser; call again after that");
            return Err(RemoteError::Refused { message });
        }
    }
    Ok(())
}

async fn respond(talk: &ServerRequests, request: InputRequest) -> Result<Value, String> {
    let written = match request {
        InputRequest::Elicitation(request) => serde_json::to_value(talk.elicit(request.params).await),
        InputRequest::ListRoots(_) => serde_json::to_value(talk.roots()),
        InputRequest::CreateMessage(request) => {
            serde_json::to_value(talk.sample(request.params).await.map_err(|error| error.message.into_owned())?)
        }
        _ => return Err("the server sent an unknown kind of request".to_owned()),
    };
    written.map_err(|error| error.to_string())
}

/// Timer that is paused while the user is being asked on behalf of this server.
struct RequestTimer {
    left: Duration,
    busy: watch::Receiver<ActivityState>,
}

impl RequestTimer {
    fn new(timeout: Duration, busy: watch::Receiver<ActivityState>) -> Self {
        Self { left: timeout, busy }
    }

    async fn expire(&mut self) {
        loop {
            let stands = self.busy.borrow_and_update().questions > 0;
            let since = Instant::now();
            tokio::select! {
                () = tokio::time::sleep(self.left), if !stands => return,
                changed = self.busy.changed() => {
                    if !stands {
                        self.left = self.left.saturating_sub(since.elapsed());
                    }
                    if changed.is_err() {
                        return;
                    }
                }
            }
        }
    }
}
