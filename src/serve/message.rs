//! JSON-RPC 2.0 requests and responses.

use super::fault::{FaultCode, RpcError};
use crate::protocol::Event;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// Maximum number of requests in a batch.
const BATCH_MAX: usize = 1_000;

/// Request ID, exactly as the client wrote it.
#[derive(Debug, Clone)]
pub(crate) struct Id(Box<RawValue>);

impl Id {
    fn from_raw(raw: &RawValue) -> Self {
        Self(raw.to_owned())
    }

    /// Returns the ID to use in a response to a message whose ID could not be read.
    pub(crate) fn null() -> Self {
        Self(RawValue::NULL.to_owned())
    }
}

impl Serialize for Id {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

/// Request, or a notification if it has no ID. Notifications receive no response.
#[derive(Debug)]
pub(crate) struct RpcRequest {
    pub id: Option<Id>,
    pub method: String,
    pub params: Map<String, Value>,
}

/// Error in a request, with the ID of that request.
#[derive(Debug)]
pub(crate) struct RequestError {
    pub id: Id,
    pub fault: RpcError,
}

/// Content of a line of input.
#[derive(Debug)]
pub(crate) enum IncomingLine {
    One(Result<RpcRequest, RequestError>),
    Batch(Vec<Result<RpcRequest, RequestError>>),
}

impl IncomingLine {
    pub(crate) fn read(line: &[u8]) -> Self {
        let refused =
            |code, message: String| Self::One(Err(RequestError { id: Id::null(), fault: RpcError::new(code, message) }));
        let text = match std::str::from_utf8(line) {
            Ok(text) => text,
            Err(error) => {
                let at = error.valid_up_to();
                return refused(
                    FaultCode::ParseError,
                    format!("the line is not UTF-8 (byte {at}); send JSON in UTF-8, one message per line"),
                );
            }
        };
        if !text.trim_start().starts_with('[') {
            return match serde_json::from_str::<&RawValue>(text) {
                Ok(message) => Self::One(RpcRequest::read(message)),
                Err(error) => refused(FaultCode::ParseError, format!("the line is not JSON: {error}")),
            };
        }
        match serde_json::from_str::<Vec<&RawValue>>(text) {
            Ok(messages) if messages.is_empty() => refused(FaultCode::InvalidRequest, "the batch is empty".to_owned()),
            Ok(messages) if messages.len() > BATCH_MAX => refused(
                FaultCode::InvalidRequest,
                format!("the batch has {} requests, but the limit is {BATCH_MAX}; send several batches", messages.len()),
            ),
            Ok(messages) => Self::Batch(messages.into_iter().map(RpcRequest::read).collect()),
            Err(error) => refused(FaultCode::ParseError, format!("the line is not JSON: {error}")),
        }
    }
}

/// Members of a request that have not been parsed yet.
#[derive(Deserialize)]
struct RequestMembers<'a> {
    #[serde(borrow, default, deserialize_with = "read_optional")]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "read_optional")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "read_optional")]
    method: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "read_optional")]
    params: Option<&'a RawValue>,
}

/// Deserializes an optional member. Unlike for an ordinary `Option`, `null` is treated as present.
fn read_optional<'de: 'a, 'a, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

impl RpcRequest {
    fn read(message: &RawValue) -> Result<Self, RequestError> {
        let invalid = |id: Option<&RawValue>, message: String| RequestError {
            id: id.map_or_else(Id::null, Id::from_raw),
            fault: RpcError::new(FaultCode::InvalidRequest, message),
        };
        if !message.get().starts_with('{') {
            return Err(invalid(None, "a request must be an object with `jsonrpc`, `id`, `method` and `params`".to_owned()));
        }
        let members: RequestMembers<'_> =
            serde_json::from_str(message.get()).map_err(|error| invalid(None, format!("invalid request: {error}")))?;
        let RequestMembers { jsonrpc, id, method, params } = members;
        if jsonrpc.is_none_or(|version| version.get() != "\"2.0\"") {
            return Err(invalid(id, "`jsonrpc` must be \"2.0\"".to_owned()));
        }
        let method = method.and_then(|method| serde_json::from_str::<String>(method.get()).ok());
        let Some(method) = method else {
            return Err(invalid(id, "`method` must be the name of a method, as a string".to_owned()));
        };
        let params = match params.map(|params| serde_json::from_str::<Value>(params.get())) {
            None | Some(Ok(Value::Null)) => Map::new(),
            Some(Ok(Value::Object(params))) => params,
            Some(Ok(Value::Array(list))) if list.is_empty() => Map::new(),
            Some(Ok(Value::Array(_))) => {
                let fault =
                    RpcError::new(FaultCode::InvalidParams, format!("the parameters of `{method}` are named; send an object"));
                return Err(RequestError { id: id.map_or_else(Id::null, Id::from_raw), fault });
            }
            Some(Ok(_)) => return Err(invalid(id, "`params` must be an object".to_owned())),
            Some(Err(error)) => {
                let fault = RpcError::new(FaultCode::InvalidParams, format!("invalid parameters for `{method}`: {error}"));
                return Err(RequestError { id: id.map_or_else(Id::null, Id::from_raw), fault });
            }
        };
        Ok(Self { id: id.map(Id::from_raw), method, params })
    }
}

/// Response to a request.
#[derive(Debug)]
pub(crate) struct RpcResponse {
    pub id: Id,
    pub outcome: Result<Value, RpcError>,
}

impl Serialize for RpcResponse {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Members<'a> {
            jsonrpc: &'static str,
            id: &'a Id,
            #[serde(skip_serializing_if = "Option::is_none")]
            result: Option<&'a Value>,
            #[serde(skip_serializing_if = "Option::is_none")]
            error: Option<&'a RpcError>,
        }
        let (result, error) = (self.outcome.as_ref().ok(), self.outcome.as_ref().err());
        Members { jsonrpc: "2.0", id: &self.id, result, error }.serialize(serializer)
    }
}

/// Line to be sent to the client.
#[derive(Debug)]
pub(crate) enum Outgoing {
    Answer(RpcResponse),
    Batch(Vec<RpcResponse>),
    /// `SessionEvent` notification.
    Event(Box<Event>),
    /// Event sent under a different name, which only this host uses.
    Named {
        name: &'static str,
        /// Additional member of the event's payload, if any.
        reason: Option<String>,
        event: Box<Event>,
    },
}

impl Outgoing {
    /// Creates the response to a message that does not contain a readable request.
    pub(crate) fn refusal(fault: RpcError) -> Self {
        Self::Answer(RpcResponse { id: Id::null(), outcome: Err(fault) })
    }
}

impl Serialize for Outgoing {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Notification<P> {
            jsonrpc: &'static str,
            method: &'static str,
            params: P,
        }
        let (jsonrpc, method) = ("2.0", "SessionEvent");
        match self {
            Self::Answer(answer) => answer.serialize(serializer),
            Self::Batch(answers) => answers.serialize(serializer),
            Self::Event(event) => Notification { jsonrpc, method, params: event }.serialize(serializer),
            Self::Named { name, reason, event } => {
                let mut params = serde_json::to_value(event).map_err(serde::ser::Error::custom)?;
                params["eventType"] = Value::from(*name);
                if let Some(reason) = reason {
                    params["payload"]["reason"] = Value::from(reason.as_str());
                }
                Notification { jsonrpc, method, params }.serialize(serializer)
            }
        }
    }
}
