//! Cloud platform services that offer models from other vendors: their URLs, request bodies and authentication.

mod azure;
mod bedrock;
mod vertex;

use super::auth::HeaderFactory;
use super::sse::{self, Events};
use super::{Api, anthropic, auth_headers, chat, event_stream, gemini, responses};
use crate::sys::http::Reply;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Service through which a model is accessed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Service {
    /// The API of the model's vendor, or a compatible server.
    #[default]
    Direct,
    /// Azure OpenAI. The model name is the name of a deployment. `version` is the `api-version` and is absent for the
    /// v1 API.
    Azure { version: Option<String> },
    /// Vertex AI on Google Cloud.
    Vertex { project: String, location: String },
    /// Amazon Bedrock.
    Bedrock,
}

impl Service {
    /// Returns the path to which requests for `model` are sent, relative to the server's base URL.
    pub(super) fn path(&self, api: Api, base: &str, model: &str) -> Cow<'static, str> {
        match (self, api) {
            (Self::Azure { version }, _) => Cow::Owned(azure::path(api, base, model, version.as_deref())),
            (Self::Vertex { project, location }, _) => Cow::Owned(vertex::path(api, project, location, model)),
            (Self::Bedrock, _) => Cow::Owned(bedrock::path(model)),
            (Self::Direct, Api::Anthropic) => Cow::Borrowed(anthropic::PATH),
            (Self::Direct, Api::OpenAiChat) => Cow::Borrowed(chat::PATH),
            (Self::Direct, Api::OpenAiResponses) => Cow::Borrowed(responses::PATH),
            (Self::Direct, Api::Gemini) => Cow::Owned(gemini::path(base, model)),
        }
    }

    /// Returns the path of the model list. Returns `None` if the list does not show which models can be used.
    pub(super) fn list_path(&self, base: &str) -> Option<String> {
        match self {
            Self::Azure { version } => Some(azure::list_path(base, version.as_deref())),
            Self::Direct | Self::Vertex { .. } | Self::Bedrock => None,
        }
    }

    /// Returns whether the server's model list contains the models that can actually be used.
    pub(crate) fn lists_models(&self) -> bool {
        *self == Self::Direct
    }

    /// Returns the function that creates authentication headers from an API key.
    pub(super) fn auth_headers(&self, api: Api) -> HeaderFactory {
        match self {
            Self::Direct => auth_headers(api),
            Self::Azure { .. } => azure::headers,
            Self::Vertex { .. } | Self::Bedrock => chat::headers,
        }
    }

    /// Converts a request body to the format of this service. `beta` is a Messages API header that some services expect
    /// in the body instead.
    pub(super) fn body(&self, api: Api, body: Vec<u8>, beta: Option<&str>) -> Vec<u8> {
        match (self, api) {
            (Self::Vertex { .. }, Api::Anthropic) => {
                rewritten(&body, &["model"], &[("anthropic_version", vertex::VERSION)], None)
            }
            (Self::Bedrock, Api::Anthropic) => {
                rewritten(&body, &["model", "stream"], &[("anthropic_version", bedrock::VERSION)], beta)
            }
            _ => body,
        }
    }

    /// Returns whether the service expects the header for beta features in the body.
    pub(super) fn sends_beta_in_body(&self) -> bool {
        *self == Self::Bedrock
    }

    /// Decodes the events in a response.
    pub(super) fn events(&self, reply: Reply) -> Events {
        match self {
            Self::Bedrock => event_stream::events(reply.into_stream()),
            Self::Direct | Self::Azure { .. } | Self::Vertex { .. } => sse::events(reply.into_stream()),
        }
    }
}

/// Returns a JSON object with the members in `without` removed and those in `with` added. `beta` is added as the list
/// `anthropic_beta`. A body that is not an object is returned unchanged.
fn rewritten(body: &[u8], without: &[&str], with: &[(&str, &str)], beta: Option<&str>) -> Vec<u8> {
    let Ok(mut members) = serde_json::from_slice::<BTreeMap<String, Box<RawValue>>>(body) else { return body.to_vec() };
    members.retain(|name, _| !without.contains(&name.as_str()));
    let raw = |value: serde_json::Value| RawValue::from_string(value.to_string()).ok();
    for (name, value) in with {
        members.extend(raw((*value).into()).map(|value| ((*name).to_owned(), value)));
    }
    let beta = beta.map(|beta| beta.split(',').map(str::trim).collect::<Vec<_>>());
    members.extend(beta.and_then(|beta| raw(beta.into())).map(|value| ("anthropic_beta".to_owned(), value)));
    serde_json::to_vec(&members).unwrap_or_else(|_| body.to_vec())
}

/// Escapes a path segment of a URL.
fn segment(text: &str) -> String {
    use std::fmt::Write;
    text.bytes().fold(String::new(), |mut out, byte| {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(char::from(byte)),
            other => {
                let _ = write!(out, "%{other:02X}");
            }
        }
        out
    })
}

#[cfg(test)]
mod tests;
