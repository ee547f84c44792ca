//! Connection to a provider's server: its address and the headers of every request.

use super::auth::AuthHeaders;
use super::error::ErrorContext;
use super::{CloudAccount, ProviderSpec};
use crate::cloud::aws::UnsignedRequest;
use crate::ports::ModelError;
use crate::protocol::{Failure, FailureKind, Problem};
use crate::sys::http::{Headers, HttpServer, Reply, Timeouts};
use bytes::Bytes;
use std::borrow::Cow;

/// HTTP status with which a server rejects the key.
const UNAUTHORIZED: u16 = 401;

pub(super) struct ProviderConnection {
    server: HttpServer,
    key: AuthHeaders,
    account: Option<CloudAccount>,
    /// Additional headers from the user's configuration.
    headers: Headers,
    speaker: ErrorContext,
}

impl ProviderConnection {
    /// Creates a connection for a model without sending anything. The model name may be empty.
    pub(crate) fn new(spec: &ProviderSpec, model: &str) -> Result<Self, Failure> {
        let mut speaker = ErrorContext {
            provider: spec.name.clone(),
            model: model.to_owned(),
            key_variable: spec.key_variable.clone(),
            base_url: spec.base_url.clone(),
            remedy: spec.account.as_ref().map(CloudAccount::remedy),
        };
        let server = HttpServer::new(&spec.base_url, spec.timeouts).map_err(|error| speaker.transport(&error).failure)?;
        server.address().clone_into(&mut speaker.base_url);
        let headers = spec.headers.0.iter().map(|(name, value)| (Cow::Owned(name.clone()), value.clone())).collect();
        let key = AuthHeaders::new(spec.key.clone(), spec.service.auth_headers(spec.api));
        Ok(Self { server, key, account: spec.account.clone(), headers, speaker })
    }

    pub(crate) fn speaker(&self) -> &ErrorContext {
        &self.speaker
    }

    /// Returns the server's base URL, without a trailing slash.
    pub(crate) fn address(&self) -> &str {
        self.server.address()
    }

    /// Returns the server's host name, followed by the port if it is not the default.
    pub(crate) fn host(&self) -> &str {
        self.server.host()
    }

    pub(crate) fn timeouts(&self) -> Timeouts {
        self.server.timeouts()
    }

    /// Returns whether requests are sent without an API key.
    pub(crate) fn lacks_key(&self) -> bool {
        self.key.is_absent() && self.account.is_none()
    }

    /// Removes the key from an error message.
    pub(crate) fn redact(&self, error: ModelError) -> ModelError {
        self.key.redact(error)
    }

    /// Sends a POST request and waits for the response headers. If the server rejects credentials that can be renewed,
    /// the request is repeated once with new ones.
    pub(crate) async fn post(&self, path: &str, more: &Headers, body: Bytes) -> Result<Reply, ModelError> {
        let reply = self.post_once(path, more, body.clone()).await?;
        if self.has_renewed(&reply).await {
            return self.post_once(path, more, body).await;
        }
        Ok(reply)
    }

    /// Checks that the account credentials are available, without contacting the provider.
    pub(crate) async fn check_account(&self) -> Result<(), Failure> {
        match &self.account {
            Some(account) => {
                account.check().await.map_err(|problem| Failure::from_problem(FailureKind::Authentication, &problem))
            }
            None => Ok(()),
        }
    }

    /// Sends a GET request, renewing rejected credentials like [`ProviderConnection::post`].
    pub(crate) async fn get(&self, path: &str) -> Result<Reply, ModelError> {
        let reply = self.get_once(path).await?;
        if self.has_renewed(&reply).await {
            return self.get_once(path).await;
        }
        Ok(reply)
    }

    async fn post_once(&self, path: &str, more: &Headers, body: Bytes) -> Result<Reply, ModelError> {
        let mut headers = self.headers("POST", path, &body).await?;
        headers.extend_from_slice(more);
        self.server.post(path, &headers, body).await.map_err(|error| self.speaker.transport(&error))
    }

    async fn get_once(&self, path: &str) -> Result<Reply, ModelError> {
        let headers = self.headers("GET", path, &[]).await?;
        self.server.get(path, &headers).await.map_err(|error| self.speaker.transport(&error))
    }

    async fn headers(&self, method: &str, path: &str, body: &[u8]) -> Result<Headers, ModelError> {
        let mut headers = self.headers.clone();
        let Some(account) = &self.account else {
            headers.extend(self.key.headers(&self.speaker).await?);
            return Ok(headers);
        };
        let path = format!("{}{path}", self.server.base_path());
        let request = UnsignedRequest { method, host: self.server.host(), path: &path, body };
        let own = account.headers(request).await;
        headers.extend(own.map_err(|problem| Failure::from_problem(FailureKind::Authentication, &problem))?);
        Ok(headers)
    }

    /// Returns whether the response rejected the credentials and they could be renewed, so that retrying makes sense.
    async fn has_renewed(&self, reply: &Reply) -> bool {
        let is_unauthorized = reply.status() == UNAUTHORIZED;
        match &self.account {
            Some(CloudAccount::Google(account)) if is_unauthorized => account.forget().await,
            Some(CloudAccount::Aws(account)) if is_unauthorized || is_expired(reply) => account.forget().await,
            Some(_) => return false,
            None => return is_unauthorized && self.key.reject(),
        }
        true
    }
}

/// AWS response header that contains the error type.
pub(super) const ERROR_TYPE: &str = "x-amzn-errortype";

/// Returns whether a response from AWS means that the credentials have expired.
fn is_expired(reply: &Reply) -> bool {
    reply.header(ERROR_TYPE).is_some_and(|kind| kind.contains("ExpiredToken") || kind.contains("UnrecognizedClient"))
}

impl CloudAccount {
    async fn headers(&self, request: UnsignedRequest<'_>) -> Result<Headers, Problem> {
        match self {
            Self::Google(account) => account.headers().await,
            Self::Aws(account) => account.headers(request).await,
        }
    }

    async fn check(&self) -> Result<(), Problem> {
        match self {
            Self::Google(account) => account.headers().await.map(drop),
            Self::Aws(account) => account.check().await,
        }
    }

    /// Returns advice on what to do about rejected credentials.
    fn remedy(&self) -> String {
        match self {
            Self::Google(_) => "run `gcloud auth application-default login`".to_owned(),
            Self::Aws(account) => account.remedy(),
        }
    }
}
