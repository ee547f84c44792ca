//! Errors that requests return, with numeric codes.

use serde::Serialize;
use serde_json::Value;

/// Error codes, both those defined by JSON-RPC 2.0 and those specific to this host. They do not change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub(crate) enum FaultCode {
    ParseError = -32700,
    InvalidRequest = -32600,
    MethodNotFound = -32601,
    InvalidParams = -32602,
    Internal = -32603,
    NoSession = -32001,
    SessionExists = -32002,
    TaskRunning = -32003,
    NoTask = -32004,
    PolicyInvalid = -32005,
    IncompatibleClient = -32006,
    ApprovalUnknown = -32007,
    SessionHeld = -32008,
    PromptBlocked = -32009,
}

impl FaultCode {
    #[cfg(test)]
    pub(crate) const ALL: [Self; 14] = [
        Self::ParseError,
        Self::InvalidRequest,
        Self::MethodNotFound,
        Self::InvalidParams,
        Self::Internal,
        Self::NoSession,
        Self::SessionExists,
        Self::TaskRunning,
        Self::NoTask,
        Self::PolicyInvalid,
        Self::IncompatibleClient,
        Self::ApprovalUnknown,
        Self::SessionHeld,
        Self::PromptBlocked,
    ];

    pub(crate) fn number(self) -> i32 {
        self as i32
    }

    /// Returns a description for use in the protocol documentation.
    #[cfg(test)]
    pub(crate) fn meaning(self) -> &'static str {
        match self {
            Self::ParseError => "the line is not JSON",
            Self::InvalidRequest => "the line is JSON but not a request, or it is too long",
            Self::MethodNotFound => "the method does not exist",
            Self::InvalidParams => "invalid parameters for the method; the message says which",
            Self::Internal => "the request failed; the message says why",
            Self::NoSession => "no session has been created, or none has this ID",
            Self::SessionExists => "this process already serves a session; start another process for a second one",
            Self::TaskRunning => "a task is running; wait for it to end or cancel it",
            Self::NoTask => "this task is not running",
            Self::PolicyInvalid => {
                "the policy is invalid, has an unsupported schema version, applies to another session, or has expired"
            }
            Self::IncompatibleClient => "the client requires a protocol version that this host does not support",
            Self::ApprovalUnknown => "no approval with this ID is pending: the ID is unknown or already decided",
            Self::SessionHeld => "another process has this session open",
            Self::PromptBlocked => "a hook blocked the prompt, so no task began; the message says which hook, and why",
        }
    }
}

impl Serialize for FaultCode {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_i32(self.number())
    }
}

/// The `error` member of a response.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct RpcError {
    pub code: FaultCode,
    /// Describes the problem and how to solve it.
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

impl RpcError {
    pub(crate) fn new(code: FaultCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    pub(crate) fn with_data(self, data: Value) -> Self {
        Self { data: Some(data), ..self }
    }
}
