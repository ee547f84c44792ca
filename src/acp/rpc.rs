//! JSON-RPC responses and errors for an editor's requests.

use super::host::Refusal;
use agent_client_protocol::Error;
use agent_client_protocol::v1::Responder;

pub(crate) type Reply = Responder<serde_json::Value>;

pub(crate) const INVALID_REQUEST: i32 = -32600;
pub(crate) const INVALID_PARAMS: i32 = -32602;
pub(crate) const INTERNAL: i32 = -32603;
pub(crate) const AUTH_REQUIRED: i32 = -32000;
pub(crate) const NOT_FOUND: i32 = -32002;
pub(crate) const POLICY: i32 = -32005;
pub(crate) const HELD: i32 = -32008;
pub(crate) const TASK_RUNNING: i32 = -32003;

pub(crate) fn reply<T: serde::Serialize>(to: Reply, result: Result<T, Error>) {
    let result =
        result.and_then(|answer| serde_json::to_value(answer).map_err(|error| error_with_code(INTERNAL, error.to_string())));
    let _ = to.respond_with_result(result);
}

pub(crate) fn refuse(to: Reply, code: i32, message: impl Into<String>) {
    let _ = to.respond_with_error(error_with_code(code, message));
}

/// Creates an invalid-parameters error with this message.
pub(crate) fn invalid_params(message: impl Into<String>) -> Error {
    error_with_code(INVALID_PARAMS, message)
}

fn error_with_code(code: i32, message: impl Into<String>) -> Error {
    Error::new(code, message)
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        let (code, message) = match refusal {
            Refusal::NoKey(message) => (AUTH_REQUIRED, message),
            Refusal::NoSession(message) => (NOT_FOUND, message),
            Refusal::Held(message) => (HELD, message),
            Refusal::Wrong(message) => (INVALID_PARAMS, message),
            Refusal::Policy(message) => (POLICY, message),
            Refusal::Failed(message) => (INTERNAL, message),
        };
        Self::new(code, message)
    }
}
