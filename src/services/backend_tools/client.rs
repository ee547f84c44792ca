//! Calls to back-end tools. Each call is a single POST request, which is never retried.

use crate::ports::{RemoteCall, RemoteContent, RemoteContext, RemoteError, RemoteResult};
use crate::protocol::Problem;
use crate::sys::http::{Headers, HttpError, HttpServer, Reply, Timeouts};
use serde::Deserialize;
use serde_json::json;
use std::time::Duration;

/// Maximum size of a response in bytes.
const RESPONSE_BYTES: usize = 8 << 20;
/// Maximum number of bytes of an error to show.
const ERROR_BYTES: usize = 2_000;
const CONNECT: Duration = Duration::from_secs(10);

/// Tool result as returned by the service.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Response {
    #[serde(default)]
    status: Option<String>,
    #[serde(default)]
    output_text: Option<String>,
    #[serde(default)]
    output: Option<serde_json::Value>,
    #[serde(default)]
    error: Option<ResponseError>,
}

#[derive(Deserialize)]
struct ResponseError {
    #[serde(default)]
    code: Option<String>,
    #[serde(default)]
    message: Option<String>,
}

/// Sends a call, and waits for its result until the timeout expires.
pub(super) async fn call(
    url: &str,
    token: Option<String>,
    timeout: Duration,
    call: RemoteCall,
    context: RemoteContext,
) -> Result<RemoteResult, RemoteError> {
    let timeout = timeout.min(context.timeout);
    let url = format!("{}/tools/{}/invoke", url.trim_end_matches('/'), call.tool);
    let server = HttpServer::new(&url, Timeouts { connect: CONNECT, idle: timeout })
        .map_err(|error| RemoteError::Refused { message: error.to_string() })?;
    let key = uuid::Uuid::new_v4().to_string();
    let mut headers: Headers = vec![("accept".into(), "application/json".to_owned()), ("idempotency-key".into(), key)];
    headers.extend(token.map(|token| ("authorization".into(), format!("Bearer {token}"))));
    let body = json!({"toolName": call.tool, "arguments": call.arguments}).to_string();
    let sent = async {
        let reply = server.post_as("application/json", &headers, body.into()).await.map_err(|error| to_error(&error))?;
        read(reply).await
    };
    tokio::select! {
        result = tokio::time::timeout(timeout, sent) => match result {
            Ok(result) => result,
            // The service may still be processing the call.
            Err(_) => Err(RemoteError::OutcomeUnknown {
                message: format!("no response within {} s; the service may have run the tool", timeout.as_secs()),
            }),
        },
        () = context.cancel.cancelled() => Err(RemoteError::OutcomeUnknown {
            message: "the call was stopped while the service was processing it; the tool may have run".to_owned(),
        }),
    }
}

/// Converts a request error. If no connection was made, nothing was sent. Otherwise, the tool may have run.
fn to_error(error: &HttpError) -> RemoteError {
    let message = error.to_string();
    match error {
        HttpError::Silent { .. } | HttpError::Cut { .. } | HttpError::Packed { .. } => RemoteError::OutcomeUnknown { message },
        HttpError::Unreachable { .. } | HttpError::ConnectTimeout { .. } => RemoteError::Unreachable { message },
        HttpError::Address { .. } | HttpError::Setup(_) | HttpError::Bundle { .. } | HttpError::Header(_) => {
            RemoteError::Refused { message }
        }
    }
}

async fn read(reply: Reply) -> Result<RemoteResult, RemoteError> {
    let (status, line, is_later) = (reply.status(), reply.status_line(), reply.header("retry-after").is_some());
    if !(200..300).contains(&status) {
        let head = reply.into_head(ERROR_BYTES).await;
        let message = format!("the service responded with {line}: {}", String::from_utf8_lossy(&head));
        return Err(match status {
            429 => RemoteError::Busy { message },
            503 if is_later => RemoteError::Busy { message },
            // The service may have failed while the tool was running, or a gateway may have forwarded the call.
            408 | 500 | 502..=599 => RemoteError::OutcomeUnknown { message },
            404 => RemoteError::Unknown { message },
            _ => RemoteError::Refused { message },
        });
    }
    let body = reply.into_body(RESPONSE_BYTES).await.map_err(|error| to_error(&error))?;
    let body = body.ok_or_else(|| {
        let message = format!("the response from the service is larger than {} MiB; the tool may have run", RESPONSE_BYTES >> 20);
        RemoteError::OutcomeUnknown { message }
    })?;
    let response: Response = serde_json::from_slice(&body).map_err(|error| {
        let problem = Problem::new("the tool ran, but the response from the service is invalid").because(error);
        RemoteError::OutcomeUnknown { message: problem.one_line() }
    })?;
    let is_error = response.error.is_some() || response.status.as_deref().is_some_and(|status| status != "succeeded");
    let error = response
        .error
        .map(|error| format!("{}: {}", error.code.unwrap_or_else(|| "error".to_owned()), error.message.unwrap_or_default()));
    let text = [error, response.output_text].into_iter().flatten().collect::<Vec<_>>().join("\n");
    let content = if text.is_empty() { Vec::new() } else { vec![RemoteContent::Text(text)] };
    Ok(RemoteResult { content, structured: response.output, is_error })
}
