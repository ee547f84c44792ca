//! HTTP client for model providers: requests with streamed responses and timeouts.

mod decompress;
pub(crate) mod fetch;
mod object_connector;
mod proxies;
pub(crate) mod retry_after;
mod roots;
mod same_origin;

pub(crate) use object_connector::ObjectConnector;
pub(crate) use roots::{count_authorities, trust_also};
pub(crate) use same_origin::same_origin_client;

use bytes::Bytes;
use decompress::Unpacker;
pub(crate) use decompress::{UnpackError, unpack_body};
use futures_util::stream::{self, BoxStream, StreamExt};
use reqwest::Url;
use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Total time limit for reading the body of an error response.
const HEAD_TIME: Duration = Duration::from_secs(20);
/// Metadata servers of AWS, AWS containers and Google Cloud.
const METADATA_HOSTS: &[&str] =
    &["169.254.169.254", "[fd00:ec2::254]", "169.254.170.2", "169.254.170.23", "[fd00:ec2::23]", "metadata.google.internal"];

/// Request headers as names and values.
pub(crate) type Headers = Vec<(Cow<'static, str>, String)>;

/// Timeouts for an unresponsive server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Timeouts {
    pub connect: Duration,
    /// Maximum time without receiving a byte, both before and during the response.
    pub idle: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { connect: Duration::from_secs(10), idle: Duration::from_secs(120) }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum HttpError {
    #[error("invalid address `{address}`: {reason}")]
    Address { address: String, reason: String },
    /// The system's certificates or a proxy variable are invalid.
    #[error("cannot prepare a connection: {0}")]
    Setup(String),
    /// The certificate authority file cannot be used.
    #[error("cannot use the certificates in `{path}` (`http.ca_bundle`): {reason}")]
    Bundle { path: String, reason: String },
    #[error("`{0}` contains characters that are not allowed in a header")]
    Header(String),
    #[error("cannot reach `{server}`: {reason}")]
    Unreachable { server: String, reason: String },
    #[error("cannot reach `{server}`: no connection within {seconds} s")]
    ConnectTimeout { server: String, seconds: u64 },
    #[error("`{server}` sent no data for {seconds} s")]
    Silent { server: String, seconds: u64 },
    #[error("lost the connection to `{server}`: {reason}")]
    Cut { server: String, reason: String },
    #[error("`{server}` encoded its response as `{encoding}`, which aye did not request and does not support")]
    Packed { server: String, encoding: String },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Transport {
    /// Plain HTTP to this machine, without certificates or a proxy.
    Loopback,
    /// Plain HTTP to a cloud platform's metadata server, which is on the same network link.
    LinkLocal,
    Tls,
}

/// An HTTP server to which requests are sent. The client is created on the first request.
#[derive(Debug)]
pub(crate) struct HttpServer {
    base: String,
    /// Host name, with the port if it is not the default.
    name: String,
    transport: Transport,
    timeouts: Timeouts,
    client: OnceLock<reqwest::Client>,
}

impl HttpServer {
    /// Creates a server. `base` is the part of the URL that precedes the paths passed to [`HttpServer::post`].
    pub(crate) fn new(base: &str, timeouts: Timeouts) -> Result<Self, HttpError> {
        let refuse = |reason: &str| HttpError::Address { address: base.to_owned(), reason: reason.to_owned() };
        let url = Url::parse(base).map_err(|error| refuse(&error.to_string()))?;
        let host = url.host_str().filter(|host| !host.is_empty()).ok_or_else(|| refuse("the host is missing"))?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(HttpError::Address {
                address: format!("{host}/…"),
                reason: "the address contains a password; configure the API key separately".to_owned(),
            });
        }
        let transport = match url.scheme() {
            "https" => Transport::Tls,
            "http" if is_loopback(host) => Transport::Loopback,
            "http" => return Err(refuse("plain http is allowed only for this machine (`localhost`, `127.0.0.1`); use https")),
            other => return Err(refuse(&format!("expected https, or http on this machine; found `{other}`"))),
        };
        if url.query().is_some() || url.fragment().is_some() {
            return Err(refuse("the address contains a query (`?`) or fragment (`#`); remove it"));
        }
        let name = url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
        let base = base.trim().trim_end_matches('/').to_owned();
        Ok(Self { base, name, transport, timeouts, client: OnceLock::new() })
    }

    /// Creates a server that provides the machine's credentials. Plain HTTP is allowed only for this machine and for
    /// the known addresses of such servers.
    pub(crate) fn link_local(base: &str, timeouts: Timeouts) -> Result<Self, HttpError> {
        let refuse = |reason: &str| HttpError::Address { address: base.to_owned(), reason: reason.to_owned() };
        let url = Url::parse(base).map_err(|error| refuse(&error.to_string()))?;
        let host = url.host_str().unwrap_or_default();
        if url.scheme() != "http" || !METADATA_HOSTS.contains(&host) {
            return Self::new(base, timeouts);
        }
        let base = base.trim().trim_end_matches('/').to_owned();
        Ok(Self { base, name: host.to_owned(), transport: Transport::LinkLocal, timeouts, client: OnceLock::new() })
    }

    /// Returns the server's host name, followed by the port if it is not the default.
    pub(crate) fn host(&self) -> &str {
        &self.name
    }

    /// Returns the path in the address, without a trailing slash.
    pub(crate) fn base_path(&self) -> String {
        Url::parse(&self.base).map(|url| url.path().trim_end_matches('/').to_owned()).unwrap_or_default()
    }

    /// Returns the address as passed by the caller, without a trailing slash.
    pub(crate) fn address(&self) -> &str {
        &self.base
    }

    /// Sends a POST request with `body` as JSON and waits for the response head. Does not follow redirects.
    pub(crate) async fn post(&self, path: &str, headers: &Headers, body: Bytes) -> Result<Reply, HttpError> {
        let request = self
            .client()?
            .post(format!("{}{path}", self.base))
            .header("content-type", "application/json")
            .header("accept", "text/event-stream");
        self.send(request.body(body), headers).await
    }

    /// Sends a POST request with `body` and this content type to the base address, and waits for the response head.
    /// Does not follow redirects.
    pub(crate) async fn post_as(&self, content_type: &str, headers: &Headers, body: Bytes) -> Result<Reply, HttpError> {
        let request = self.client()?.post(&self.base).header("content-type", content_type);
        self.send(request.body(body), headers).await
    }

    /// Sends a POST request with URL-encoded form fields and waits for the response head. Does not follow redirects.
    pub(crate) async fn submit(&self, path: &str, headers: &Headers, form: &[(&str, String)]) -> Result<Reply, HttpError> {
        let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
        let request = self
            .client()?
            .post(format!("{}{path}", self.base))
            .header("content-type", "application/x-www-form-urlencoded")
            .header("accept", "application/json");
        self.send(request.body(body), headers).await
    }

    /// Sends a PUT request without a body and waits for the response head. Does not follow redirects.
    pub(crate) async fn put(&self, path: &str, headers: &Headers) -> Result<Reply, HttpError> {
        let request = self.client()?.put(format!("{}{path}", self.base)).header("content-length", "0");
        self.send(request, headers).await
    }

    /// Sends a GET request for `path` and waits for the response head. Does not follow redirects.
    pub(crate) async fn get(&self, path: &str, headers: &Headers) -> Result<Reply, HttpError> {
        let request = self.client()?.get(format!("{}{path}", self.base)).header("accept", "application/json");
        self.send(request, headers).await
    }

    async fn send(&self, request: reqwest::RequestBuilder, headers: &Headers) -> Result<Reply, HttpError> {
        let mut request = request.header("accept-encoding", "identity");
        for (name, value) in headers {
            let wrong = || HttpError::Header(name.to_string());
            let mut value = reqwest::header::HeaderValue::from_str(value).map_err(|_| wrong())?;
            value.set_sensitive(true);
            let name = reqwest::header::HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong())?;
            request = request.header(name, value);
        }
        let response = match tokio::time::timeout(self.timeouts.idle, request.send()).await {
            Ok(sent) => sent.map_err(|error| self.send_error(&error))?,
            Err(_) => return Err(self.timeout_error()),
        };
        let encoding = response.headers().get("content-encoding").and_then(|encoding| encoding.to_str().ok());
        let unpacker = Unpacker::for_encoding(encoding.unwrap_or_default())
            .map_err(|encoding| HttpError::Packed { server: self.name.clone(), encoding })?;
        Ok(Reply { response, unpacker, server: self.name.clone(), idle: self.timeouts.idle })
    }

    pub(crate) fn timeouts(&self) -> Timeouts {
        self.timeouts
    }

    fn timeout_error(&self) -> HttpError {
        HttpError::Silent { server: self.name.clone(), seconds: self.timeouts.idle.as_secs() }
    }

    fn send_error(&self, error: &reqwest::Error) -> HttpError {
        let server = self.name.clone();
        // A timeout of an established connection means that the server went silent after the request was sent.
        if error.is_connect() && error.is_timeout() {
            HttpError::ConnectTimeout { server: self.with_proxy(server), seconds: self.timeouts.connect.as_secs() }
        } else if error.is_connect() {
            HttpError::Unreachable { server: self.with_proxy(server), reason: root_cause(error) }
        } else if error.is_builder() {
            HttpError::Setup(root_cause(error))
        } else {
            HttpError::Cut { server, reason: root_cause(error) }
        }
    }

    /// Appends the name of the proxy to that of the server if a proxy is used.
    fn with_proxy(&self, server: String) -> String {
        let proxy = (self.transport == Transport::Tls).then(|| proxies::proxy_for(&self.base)).flatten();
        proxy.map_or_else(|| server.clone(), |proxy| format!("{server}` through the proxy `{proxy}"))
    }

    fn client(&self) -> Result<&reqwest::Client, HttpError> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let builder = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .connect_timeout(self.timeouts.connect)
            .user_agent(concat!("aye/", env!("CARGO_PKG_VERSION")));
        let builder = match self.transport {
            // An empty set of root certificates costs nothing. Loading the system's certificates is the slowest part of
            // the start.
            Transport::Loopback | Transport::LinkLocal => builder.no_proxy().tls_backend_preconfigured(no_certificates()?),
            Transport::Tls => {
                // An error means that a provider is already installed, which is just as good.
                let _ = rustls::crypto::ring::default_provider().install_default();
                roots::with_authorities(builder)?
            }
        };
        let client = builder.build().map_err(|error| HttpError::Setup(root_cause(&error)))?;
        Ok(self.client.get_or_init(|| client))
    }
}

fn no_certificates() -> Result<rustls::ClientConfig, HttpError> {
    let config = rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| HttpError::Setup(error.to_string()))?;
    Ok(config.with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth())
}

/// Returns whether the host in a URL is this machine. Does no DNS lookup.
pub(crate) fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    bare.eq_ignore_ascii_case("localhost") || bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Returns the innermost error, which is the most specific one (`Connection refused`, `certificate has expired`),
/// prefixed with the layer in which it occurred (DNS or TLS) if that is known.
fn root_cause(error: &(dyn std::error::Error + 'static)) -> String {
    let (mut cause, mut place) = (error, "");
    while let Some(deeper) = cause.source() {
        if cause.to_string().starts_with("dns error") {
            place = "DNS: ";
        }
        cause = deeper;
    }
    // An I/O error may contain another error that is not its source.
    let mut inside = Some(cause);
    while let Some(held) = inside {
        if held.is::<rustls::Error>() {
            place = "TLS: ";
        }
        let io = held.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        inside = io.map(|held| held as &(dyn std::error::Error + 'static));
    }
    let words = cause.to_string();
    let words = words.strip_prefix("failed to lookup address information: ").unwrap_or(&words);
    // The server speaks another protocol, most likely plain http.
    let words = if words.ends_with("of type InvalidContentType") { "the server does not speak TLS" } else { words };
    // The error number is specific to the system. The text before it is sufficient.
    let words = words.split_once(" (os error ").map_or(words, |(name, _)| name);
    format!("{place}{words}")
}

/// Response whose head has been received and whose body has not been read yet.
#[derive(Debug)]
pub(crate) struct Reply {
    response: reqwest::Response,
    unpacker: Option<Unpacker>,
    server: String,
    idle: Duration,
}

impl Reply {
    pub(crate) fn status(&self) -> u16 {
        self.response.status().as_u16()
    }

    /// Returns the status line, such as `404 Not Found`.
    pub(crate) fn status_line(&self) -> String {
        self.response.status().to_string()
    }

    /// Returns the delay that the server requests with `Retry-After`.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        let now = self.header("date").and_then(retry_after::date).unwrap_or_else(jiff::Timestamp::now);
        retry_after::span_or_date(self.header("retry-after")?, now)
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.response.headers().get(name)?.to_str().ok()
    }

    /// Returns the body chunks as they arrive. The stream ends with an error if the connection fails or times out.
    pub(crate) fn into_stream(self) -> BoxStream<'static, Result<Bytes, HttpError>> {
        stream::unfold(Some(self), |state| async move {
            let mut reply = state?;
            match reply.chunk().await {
                Ok(Some(bytes)) => Some((Ok(bytes), Some(reply))),
                Ok(None) => None,
                Err(error) => Some((Err(error), None)),
            }
        })
        .boxed()
    }

    /// Returns the whole body, or `None` if it is larger than `limit` bytes.
    pub(crate) async fn into_body(mut self, limit: usize) -> Result<Option<Vec<u8>>, HttpError> {
        let mut body = Vec::new();
        while let Some(bytes) = self.chunk().await? {
            if body.len() + bytes.len() > limit {
                return Ok(None);
            }
            body.extend_from_slice(&bytes);
        }
        Ok(Some(body))
    }

    /// Returns the beginning of the body, limited in size and time, including any data received before an error.
    pub(crate) async fn into_head(mut self, limit: usize) -> Vec<u8> {
        let mut head = Vec::new();
        let read = async {
            while let Ok(Some(bytes)) = self.chunk().await {
                let room = limit - head.len();
                head.extend_from_slice(&bytes[..bytes.len().min(room)]);
                if head.len() >= limit {
                    break;
                }
            }
        };
        let _ = tokio::time::timeout(HEAD_TIME, read).await;
        head
    }

    async fn chunk(&mut self) -> Result<Option<Bytes>, HttpError> {
        loop {
            let Some(bytes) = self.packed_chunk().await? else { return Ok(None) };
            let Some(unpacker) = &mut self.unpacker else { return Ok(Some(bytes)) };
            let unpacked = unpacker.push(&bytes).map_err(|error| HttpError::Cut {
                server: self.server.clone(),
                reason: format!("cannot decompress the response: {error}"),
            })?;
            if !unpacked.is_empty() {
                return Ok(Some(unpacked.into()));
            }
        }
    }

    async fn packed_chunk(&mut self) -> Result<Option<Bytes>, HttpError> {
        match tokio::time::timeout(self.idle, self.response.chunk()).await {
            Ok(Ok(bytes)) => Ok(bytes),
            Ok(Err(error)) => Err(HttpError::Cut { server: self.server.clone(), reason: root_cause(&error) }),
            Err(_) => Err(HttpError::Silent { server: self.server.clone(), seconds: self.idle.as_secs() }),
        }
    }
}

#[cfg(test)]
mod tests;
