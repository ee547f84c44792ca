//! Connection to the server of a provider: its address, and the headers of every request.

use super::auth::Key;
use super::error::ErrorContext;
use super::{ProviderSpec, headers_of};
use crate::ports::ModelError;
use crate::protocol::Failure;
use crate::sys::http::{Headers, Reply, Server, Timeouts};
use bytes::Bytes;
use std::borrow::Cow;

/// Status of a rejected key.
const UNAUTHORIZED: u16 = 401;

pub(super) struct Connection {
    server: Server,
    key: Key,
    /// Headers of the user.
    headers: Headers,
    speaker: ErrorContext,
}

impl Connection {
    /// Creates a connection for a model, or for none. Nothing is sent yet.
    pub(crate) fn new(spec: &ProviderSpec, model: &str) -> Result<Self, Failure> {
        let mut speaker = ErrorContext {
            provider: spec.name.clone(),
            model: model.to_owned(),
            key_variable: spec.key_variable.clone(),
            base_url: spec.base_url.clone(),
        };
        let server = Server::new(&spec.base_url, spec.timeouts).map_err(|error| speaker.transport(&error).failure)?;
        server.address().clone_into(&mut speaker.base_url);
        let headers = spec.headers.0.iter().map(|(name, value)| (Cow::Owned(name.clone()), value.clone())).collect();
        Ok(Self { server, key: Key::new(spec.key.clone(), headers_of(spec.api)), headers, speaker })
    }

    pub(crate) fn speaker(&self) -> &ErrorContext {
        &self.speaker
    }

    /// Returns the address of the server, without a final slash.
    pub(crate) fn address(&self) -> &str {
        self.server.address()
    }

    pub(crate) fn timeouts(&self) -> Timeouts {
        self.server.timeouts()
    }

    /// Returns whether requests are sent without a key.
    pub(crate) fn lacks_key(&self) -> bool {
        self.key.is_absent()
    }

    /// Hides the key in an error.
    pub(crate) fn hidden_in(&self, error: ModelError) -> ModelError {
        self.key.hidden_in(error)
    }

    /// Sends `body` and waits for the head of the response. If the server rejects a key that can be renewed, the request is sent
    /// once more with a new one.
    pub(crate) async fn post(&self, path: &str, more: &Headers, body: Bytes) -> Result<Reply, ModelError> {
        let reply = self.post_once(path, more, body.clone()).await?;
        if reply.status() == UNAUTHORIZED && self.key.reject() {
            return self.post_once(path, more, body).await;
        }
        Ok(reply)
    }

    /// Requests `path`, like [`Connection::post`].
    pub(crate) async fn get(&self, path: &str) -> Result<Reply, ModelError> {
        let reply = self.get_once(path).await?;
        if reply.status() == UNAUTHORIZED && self.key.reject() {
            return self.get_once(path).await;
        }
        Ok(reply)
    }

    async fn post_once(&self, path: &str, more: &Headers, body: Bytes) -> Result<Reply, ModelError> {
        let mut headers = self.headers().await?;
        headers.extend_from_slice(more);
        self.server.post(path, &headers, body).await.map_err(|error| self.speaker.transport(&error))
    }

    async fn get_once(&self, path: &str) -> Result<Reply, ModelError> {
        let headers = self.headers().await?;
        self.server.get(path, &headers).await.map_err(|error| self.speaker.transport(&error))
    }

    async fn headers(&self) -> Result<Headers, ModelError> {
        let mut headers = self.headers.clone();
        headers.extend(self.key.headers(&self.speaker).await?);
        Ok(headers)
    }
}
