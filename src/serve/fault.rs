//! What is wrong with a request, with a number a program can act on.

use serde::Serialize;
use serde_json::Value;

/// The numbers of JSON-RPC 2.0 and of this host. They do not change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum FaultCode {
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
}

impl FaultCode {
    #[cfg(test)]
    pub const ALL: [Self; 13] = [
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
    ];

    pub fn number(self) -> i32 {
        self as i32
    }

    /// For the page about the protocol.
    #[cfg(test)]
    pub fn meaning(self) -> &'static str {
        match self {
            Self::ParseError => "the line is no JSON",
            Self::InvalidRequest => "it is JSON and no request, or the line is too long",
            Self::MethodNotFound => "there is no such method",
            Self::InvalidParams => "the parameters are not those of the method; the message says which",
            Self::Internal => "it could not be done; the message says why",
            Self::NoSession => "there is no session: none was created, or none has this id",
            Self::SessionExists => "this process has a session; another one needs a process of its own",
            Self::TaskRunning => "a task runs; wait for its end or cancel it",
            Self::NoTask => "no such task runs",
            Self::PolicyInvalid => {
                "the policy cannot be read, has another schema version, is for another session, or has expired"
            }
            Self::IncompatibleClient => "the client wants a version of the protocol that this host does not speak",
            Self::ApprovalUnknown => "no approval with this id waits: it is unknown, or was decided already",
            Self::SessionHeld => "another process has this session open",
        }
    }
}

impl Serialize for FaultCode {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_i32(self.number())
    }
}

/// The `error` of an answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Fault {
    pub code: FaultCode,
    /// What is wrong and what to do.
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

impl Fault {
    pub fn new(code: FaultCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    pub fn with(self, data: Value) -> Self {
        Self { data: Some(data), ..self }
    }
}
