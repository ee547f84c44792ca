//! HTTP transport of protocol version 2024-11-05, in which the server sends a single event stream and names an endpoint
//! to which the client posts its messages.

use super::http::header_map;
use super::{Http, prune};
use crate::mcp::limits::{MESSAGE_BYTES, MESSAGE_DEPTH};
use crate::mcp::{AuthRefusal, Header};
use bytes::Bytes;
use futures_util::stream::{BoxStream, StreamExt};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, WWW_AUTHENTICATE};
use reqwest::{RequestBuilder, Response, StatusCode, Url};
use rmcp::RoleClient;
use rmcp::model::ServerJsonRpcMessage;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use sse_stream::SseStream;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Maximum number of received messages to queue.
const QUEUE: usize = 64;

#[derive(Debug, thiserror::Error)]
pub(in crate::mcp) enum SseTransportError {
    #[error("sign-in required")]
    NeedsLogin,
    #[error("HTTP {0}")]
    Status(StatusCode),
    #[error("{0}")]
    Request(#[from] reqwest::Error),
    #[error("the response is not an event stream")]
    NoStream,
    #[error("the event stream ended before it named an endpoint")]
    NoEndpoint,
    #[error("the endpoint has a different origin from the server")]
    OtherOrigin,
    #[error("{0}")]
    Setup(String),
    #[error("cannot serialize the message: {0}")]
    Message(#[from] serde_json::Error),
}

pub(in crate::mcp) struct Sse {
    sender: Sender,
    messages: mpsc::Receiver<ServerJsonRpcMessage>,
    reader: JoinHandle<()>,
}

#[derive(Clone)]
struct Sender {
    http: Http,
    headers: HeaderMap,
    endpoint: Url,
}

impl Sse {
    pub(in crate::mcp) async fn connect(http: Http, url: &str, headers: &[Header]) -> Result<Self, SseTransportError> {
        let base = Url::parse(url).map_err(|error| SseTransportError::Setup(error.to_string()))?;
        let headers: HeaderMap = header_map(headers).map_err(SseTransportError::Setup)?.into_iter().collect();
        let response = send_authorized(&http, || {
            http.client().get(base.clone()).headers(headers.clone()).header(ACCEPT, "text/event-stream")
        })
        .await?;
        let is_stream = response
            .headers()
            .get(CONTENT_TYPE)
            .is_some_and(|kind| kind.as_bytes().to_ascii_lowercase().starts_with(b"text/event-stream"));
        if !is_stream {
            return Err(SseTransportError::NoStream);
        }
        let mut events = SseStream::from_bytes_stream(limit_event_size(response.bytes_stream().boxed(), MESSAGE_BYTES));
        let endpoint = loop {
            let Some(Ok(event)) = events.next().await else { return Err(SseTransportError::NoEndpoint) };
            if event.event.as_deref() == Some("endpoint")
                && let Some(address) = event.data
            {
                break base.join(address.trim()).map_err(|_| SseTransportError::NoEndpoint)?;
            }
        };
        if endpoint.origin() != base.origin() {
            return Err(SseTransportError::OtherOrigin);
        }
        let (into, messages) = mpsc::channel(QUEUE);
        let reader = tokio::spawn(async move {
            while let Some(Ok(event)) = events.next().await {
                if !matches!(event.event.as_deref(), None | Some("" | "message")) {
                    continue;
                }
                let data = event.data.unwrap_or_default();
                match serde_json::from_slice(&prune(data.as_bytes(), MESSAGE_DEPTH)) {
                    Ok(message) => {
                        if into.send(message).await.is_err() {
                            break;
                        }
                    }
                    Err(error) => tracing::debug!(%error, "ignored an event that is not a message"),
                }
            }
        });
        Ok(Self { sender: Sender { http, headers, endpoint }, messages, reader })
    }
}

impl Drop for Sse {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

impl Transport<RoleClient> for Sse {
    type Error = SseTransportError;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), SseTransportError>> + Send + 'static {
        let Sender { http, headers, endpoint } = self.sender.clone();
        async move {
            let body = Bytes::from(serde_json::to_vec(&message)?);
            send_authorized(&http, || {
                let request = http.client().post(endpoint.clone()).headers(headers.clone());
                request.header(CONTENT_TYPE, "application/json").body(body.clone())
            })
            .await?;
            Ok(())
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        self.messages.recv().await
    }

    async fn close(&mut self) -> Result<(), SseTransportError> {
        self.reader.abort();
        self.messages.close();
        Ok(())
    }
}

/// Sends a request. If it is rejected and a new token is available, it is sent once more.
async fn send_authorized(http: &Http, request: impl Fn() -> RequestBuilder) -> Result<Response, SseTransportError> {
    let mut token = http.token().await.map_err(SseTransportError::Setup)?;
    let mut renewed = false;
    loop {
        let response = match &token {
            Some(token) => request().bearer_auth(token),
            None => request(),
        }
        .send()
        .await?;
        if response.status().is_success() {
            return Ok(response);
        }
        if response.status() != StatusCode::UNAUTHORIZED {
            return Err(SseTransportError::Status(response.status()));
        }
        let challenge = response.headers().get(WWW_AUTHENTICATE).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let refusal = AuthRefusal::Unauthorized { challenge, used: token };
        match http.renew_token(refusal).await.map_err(SseTransportError::Setup)? {
            Some(another) if !renewed => token = Some(another),
            _ => return Err(SseTransportError::NeedsLogin),
        }
        renewed = true;
    }
}

#[derive(Debug, thiserror::Error)]
enum StreamError {
    #[error("{0}")]
    Source(#[from] reqwest::Error),
    #[error("an event exceeds {0} bytes")]
    TooLarge(usize),
}

/// Limits the size of events, which are terminated by an empty line.
fn limit_event_size(
    stream: BoxStream<'static, reqwest::Result<Bytes>>,
    limit: usize,
) -> BoxStream<'static, Result<Bytes, StreamError>> {
    let mut since_event = 0;
    let mut line = 0;
    stream
        .map(move |chunk| {
            let chunk = chunk?;
            for byte in &chunk {
                match byte {
                    b'\n' if line == 0 => since_event = 0,
                    b'\n' => line = 0,
                    b'\r' => {}
                    _ => line += 1,
                }
                since_event += 1;
            }
            if since_event > limit { Err(StreamError::TooLarge(limit)) } else { Ok(chunk) }
        })
        .boxed()
}
