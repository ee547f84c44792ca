//! Requests to servers that a model specified. Every redirect is checked against the rules, and connections use only
//! addresses that have been checked.

use super::roots::with_authorities;
use super::{no_certificates, root_cause};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Url};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

/// Maximum number of redirects to follow.
const MAX_REDIRECTS: usize = 5;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum number of a host's addresses to try in turn.
const MAX_ADDRESSES: usize = 4;

/// Headers that may still be sent after a redirect to another origin.
const CROSS_ORIGIN_HEADERS: &[&str] = &["accept", "accept-language", "cache-control", "content-type", "range", "user-agent"];
/// Headers that control the connection. If callers could set them, two programs along the way might interpret a request
/// differently.
const OWN: &[&str] = &[
    "accept-encoding",
    "connection",
    "content-length",
    "expect",
    "host",
    "http2-settings",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FetchError {
    #[error("{0}")]
    Invalid(String),
    /// The request was denied for the contained reason.
    #[error("{0}")]
    Refused(String),
    /// A redirect was denied by a policy rule.
    #[error("{reason} (rule: {rule})")]
    RedirectDenied { reason: String, rule: String },
    #[error("cannot prepare a connection: {0}")]
    Setup(String),
    #[error("cannot resolve `{name}`: {reason}")]
    NoAddress { name: String, reason: String },
    #[error("cannot reach `{server}`: {reason}")]
    Unreachable { server: String, reason: String },
    #[error("lost the connection to `{server}`: {reason}")]
    Cut { server: String, reason: String },
    #[error("the response is larger than {max_bytes} bytes")]
    TooLarge { max_bytes: usize },
    #[error("more than {MAX_REDIRECTS} redirects, the last to `{0}`")]
    TooManyRedirects(String),
    #[error("no complete response within {0} s")]
    TimedOut(u64),
    #[error("stopped by the user")]
    Cancelled,
}

/// Resolves host names to addresses.
pub(crate) trait Resolver: Send + Sync {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, std::io::Result<Vec<IpAddr>>>;
}

/// The operating system's resolver.
struct SystemResolver;

impl Resolver for SystemResolver {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, std::io::Result<Vec<IpAddr>>> {
        let name = name.to_owned();
        let (send, receive) = tokio::sync::oneshot::channel();
        // The lookup runs on a detached thread: the system's resolver cannot be stopped, and must not delay aye's exit.
        let started = std::thread::Builder::new().name("resolve".to_owned()).spawn(move || {
            let found = (name.as_str(), 0).to_socket_addrs();
            let _ = send.send(found.map(|found| found.map(|address| address.ip()).collect()));
        });
        async move {
            started?;
            receive.await.unwrap_or_else(|_| Err(std::io::Error::other("the resolver gave no response")))
        }
        .boxed()
    }
}

/// Decision on how to handle a redirect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RedirectVerdict {
    /// Follow the redirect to this URL.
    Follow(String),
    /// Return the redirect itself as the response.
    Stay,
    /// Fail, because the target is not valid.
    Refuse(String),
    /// Fail, because a policy rule denies the target.
    Deny { reason: String, rule: String },
}

/// Rules that apply to one request and are checked before each connection.
pub(crate) trait FetchRules: Send + Sync {
    fn may_connect(&self, url: &str, address: IpAddr) -> Result<(), String>;
    /// Decides whether to follow a redirect. `method` is the method that the next request would use.
    fn redirect(&self, from: &str, location: &str, method: &str) -> RedirectVerdict;
}

#[derive(Debug, Clone)]
pub(crate) struct FetchRequest {
    pub url: String,
    pub method: String,
    pub headers: Vec<(String, String)>,
    pub body: String,
    /// Maximum total time, from the first name lookup to the last byte.
    pub timeout: Duration,
    pub max_bytes: usize,
}

#[derive(Debug, Clone)]
pub(crate) struct FetchResponse {
    /// URL of the last request in the redirect chain.
    pub url: String,
    /// Status line, such as `404 Not Found`.
    pub status_line: String,
    /// Headers whose values are text. Their names are in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    pub redirects: usize,
}

impl FetchResponse {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// Maps a checked address to the address to connect to. Tests use it to substitute servers that they can reach.
type Route = Arc<dyn Fn(IpAddr) -> SocketAddr + Send + Sync>;

/// Stateless HTTP client. It has no cookies, reuses no connections, and uses no proxy, because a proxy would resolve
/// names itself and bypass the address check.
#[derive(Clone)]
pub(crate) struct Fetcher {
    resolver: Arc<dyn Resolver>,
    route: Route,
}

impl Default for Fetcher {
    fn default() -> Self {
        // Port 0 means the port in the URL.
        Self { resolver: Arc::new(SystemResolver), route: Arc::new(|address| SocketAddr::new(address, 0)) }
    }
}

/// One request in a redirect chain.
struct Hop {
    url: Url,
    method: Method,
    headers: HeaderMap,
    body: Option<String>,
}

impl Fetcher {
    /// Creates a fetcher that uses another resolver and route, for tests.
    #[cfg(test)]
    pub(crate) fn for_test(resolver: Arc<dyn Resolver>, route: Route) -> Self {
        Self { resolver, route }
    }

    pub(crate) async fn fetch(
        &self,
        request: FetchRequest,
        guard: &dyn FetchRules,
        kill: &CancellationToken,
    ) -> Result<FetchResponse, FetchError> {
        let seconds = request.timeout.as_secs();
        let timeout = request.timeout;
        tokio::select! {
            biased;
            () = kill.cancelled() => Err(FetchError::Cancelled),
            done = tokio::time::timeout(timeout, self.hops(request, guard)) => done.unwrap_or(Err(FetchError::TimedOut(seconds))),
        }
    }

    async fn hops(&self, request: FetchRequest, guard: &dyn FetchRules) -> Result<FetchResponse, FetchError> {
        let mut hop = Hop {
            url: Url::parse(&request.url).map_err(|error| FetchError::Invalid(format!("`{}`: {error}", request.url)))?,
            method: Method::from_bytes(request.method.as_bytes())
                .map_err(|_| FetchError::Invalid(format!("`{}` is not a valid method", request.method)))?,
            headers: headers(&request.headers)?,
            body: Some(request.body).filter(|body| !body.is_empty()),
        };
        let mut redirects = 0;
        loop {
            let response = self.send(&hop, guard).await?;
            let Some((location, next)) = redirect_of(&response, &hop) else {
                return read(response, &hop, redirects, request.max_bytes).await;
            };
            match guard.redirect(hop.url.as_str(), &location, next.as_str()) {
                RedirectVerdict::Refuse(reason) => return Err(FetchError::Refused(reason)),
                RedirectVerdict::Deny { reason, rule } => return Err(FetchError::RedirectDenied { reason, rule }),
                RedirectVerdict::Stay => return read(response, &hop, redirects, request.max_bytes).await,
                RedirectVerdict::Follow(_) if redirects == MAX_REDIRECTS => return Err(FetchError::TooManyRedirects(location)),
                RedirectVerdict::Follow(url) => {
                    redirects += 1;
                    let url = Url::parse(&url).map_err(|error| FetchError::Invalid(format!("`{url}`: {error}")))?;
                    hop = next_request(hop, url, next);
                }
            }
        }
    }

    /// Sends one request and returns the response head.
    async fn send(&self, hop: &Hop, guard: &dyn FetchRules) -> Result<reqwest::Response, FetchError> {
        let server = server(&hop.url);
        let mut builder = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .no_proxy()
            .referer(false)
            .connect_timeout(CONNECT_TIMEOUT)
            .user_agent(concat!("aye/", env!("CARGO_PKG_VERSION")))
            .dns_resolver(Arc::new(EmptyResolver));
        let allowed = |address| guard.may_connect(hop.url.as_str(), address).map_err(FetchError::Refused);
        match hop.url.host() {
            Some(url::Host::Domain(name)) => {
                let addresses = self.addresses(name, &allowed).await?;
                builder = builder.resolve_to_addrs(name, &addresses);
            }
            Some(url::Host::Ipv4(address)) => allowed(address.into())?,
            Some(url::Host::Ipv6(address)) => allowed(address.into())?,
            None => return Err(FetchError::Invalid(format!("`{}` has no host", hop.url))),
        }
        builder = if hop.url.scheme() == "https" {
            // An error means that a provider is already installed, which is just as good.
            let _ = rustls::crypto::ring::default_provider().install_default();
            with_authorities(builder).map_err(|error| FetchError::Setup(error.to_string()))?
        } else {
            builder.tls_backend_preconfigured(no_certificates().map_err(|error| FetchError::Setup(error.to_string()))?)
        };
        let client = builder.build().map_err(|error| FetchError::Setup(root_cause(&error)))?;
        let mut request = client.request(hop.method.clone(), hop.url.clone()).headers(hop.headers.clone());
        if let Some(body) = &hop.body {
            request = request.body(body.clone());
        }
        request.send().await.map_err(|error| {
            let reason = root_cause(&error);
            if error.is_timeout() {
                let reason = format!("no connection within {} s", CONNECT_TIMEOUT.as_secs());
                FetchError::Unreachable { server, reason }
            } else if error.is_connect() {
                FetchError::Unreachable { server, reason }
            } else {
                FetchError::Cut { server, reason }
            }
        })
    }

    /// Connects to one of a host's addresses. `allowed` must accept every address of the host.
    pub(crate) async fn connect(
        &self,
        host: &url::Host<String>,
        port: u16,
        allowed: &AddressCheck<'_>,
    ) -> Result<TcpStream, FetchError> {
        let allowed = |address| allowed(address).map_err(FetchError::Refused);
        let unreachable = |reason: String| FetchError::Unreachable { server: format!("{host}:{port}"), reason };
        let slow = || unreachable(format!("no connection within {} s", CONNECT_TIMEOUT.as_secs()));
        let address = match host {
            url::Host::Domain(name) => {
                let found = tokio::time::timeout(CONNECT_TIMEOUT, self.addresses(name, &allowed)).await.map_err(|_| slow())??;
                return self.connect_first(&found, port).await.ok_or_else(slow)?.map_err(|error| unreachable(error.to_string()));
            }
            url::Host::Ipv4(address) => IpAddr::V4(*address),
            url::Host::Ipv6(address) => IpAddr::V6(*address),
        };
        allowed(address)?;
        let to = [(self.route)(address)];
        self.connect_first(&to, port).await.ok_or_else(slow)?.map_err(|error| unreachable(error.to_string()))
    }

    /// Tries the addresses in order and returns the first connection, or else the last error. Returns `None` if no
    /// address responds in time.
    async fn connect_first(&self, addresses: &[SocketAddr], port: u16) -> Option<std::io::Result<TcpStream>> {
        let mut last = None;
        for address in addresses.iter().take(MAX_ADDRESSES) {
            let address = if address.port() == 0 { SocketAddr::new(address.ip(), port) } else { *address };
            match tokio::time::timeout(CONNECT_TIMEOUT / 2, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => return Some(Ok(stream)),
                Ok(Err(error)) => last = Some(Err(error)),
                Err(_) => {}
            }
        }
        last
    }

    /// Resolves a host name. A single forbidden address rules out all of them, because the name may be a trap.
    async fn addresses(&self, name: &str, allowed: &ConnectCheck<'_>) -> Result<Vec<SocketAddr>, FetchError> {
        let no_address = |reason: String| FetchError::NoAddress { name: name.to_owned(), reason };
        let found = self.resolver.resolve(name).await.map_err(|error| no_address(error.to_string()))?;
        if found.is_empty() {
            return Err(no_address("the name does not resolve to an address".to_owned()));
        }
        found.iter().try_for_each(|address| allowed(*address))?;
        Ok(found.into_iter().map(|address| (self.route)(address)).collect())
    }
}

/// Check applied to each address before a connection.
type AddressCheck<'a> = dyn Fn(IpAddr) -> Result<(), String> + Send + Sync + 'a;
type ConnectCheck<'a> = dyn Fn(IpAddr) -> Result<(), FetchError> + Send + Sync + 'a;

/// Resolver that returns no results, so no name can be resolved again without being checked.
struct EmptyResolver;

impl reqwest::dns::Resolve for EmptyResolver {
    fn resolve(&self, name: reqwest::dns::Name) -> reqwest::dns::Resolving {
        let message = format!("`{}` has not been checked", name.as_str());
        Box::pin(std::future::ready(Err(message.into())))
    }
}

/// Returns the target of a redirect and the method to use for it, or `None` if the response is not a redirect.
fn redirect_of(response: &reqwest::Response, hop: &Hop) -> Option<(String, Method)> {
    let location = response.headers().get("location")?;
    let location = std::str::from_utf8(location.as_bytes()).ok()?.to_owned();
    let method = match response.status().as_u16() {
        303 if hop.method != Method::HEAD => Method::GET,
        301 | 302 if hop.method == Method::POST => Method::GET,
        301 | 302 | 303 | 307 | 308 => hop.method.clone(),
        _ => return None,
    };
    Some((location, method))
}

/// Returns the next request, without the headers that were intended only for the first server.
fn next_request(hop: Hop, url: Url, method: Method) -> Hop {
    let Hop { url: from, method: before, mut headers, mut body } = hop;
    if url.origin() != from.origin() {
        let personal: Vec<_> = headers.keys().filter(|name| !CROSS_ORIGIN_HEADERS.contains(&name.as_str())).cloned().collect();
        for name in personal {
            headers.remove(name);
        }
    }
    if method != before {
        body = None;
        headers.remove("content-type");
    }
    Hop { url, method, headers, body }
}

fn headers(given: &[(String, String)]) -> Result<HeaderMap, FetchError> {
    let mut headers = HeaderMap::new();
    for (name, value) in given {
        let known = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| FetchError::Invalid(format!("`{}` is not a valid header name", name.escape_debug())))?;
        if OWN.contains(&known.as_str()) {
            return Err(FetchError::Invalid(format!("the header `{name}` is set by aye; remove it")));
        }
        let value = HeaderValue::from_str(value).map_err(|_| {
            FetchError::Invalid(format!(
                "the value of the header `{name}` contains characters that are not allowed in a header, such as line breaks"
            ))
        })?;
        headers.append(known, value);
    }
    Ok(headers)
}

/// Checks that the headers can be sent, so invalid headers are rejected before an approval is requested.
pub(crate) fn check_headers(given: &[(String, String)]) -> Result<(), FetchError> {
    headers(given).map(|_| ())
}

async fn read(
    mut response: reqwest::Response,
    hop: &Hop,
    redirects: usize,
    max_bytes: usize,
) -> Result<FetchResponse, FetchError> {
    let too_large = || FetchError::TooLarge { max_bytes };
    let announced = response.content_length().and_then(|length| usize::try_from(length).ok());
    if hop.method != Method::HEAD && announced.is_some_and(|length| length > max_bytes) {
        return Err(too_large());
    }
    let text = |(name, value): (&HeaderName, &HeaderValue)| Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned()));
    let headers = response.headers().iter().filter_map(text).collect();
    let status = response.status();
    let mut body = Vec::new();
    let cut = |error: reqwest::Error| FetchError::Cut { server: server(&hop.url), reason: root_cause(&error) };
    while let Some(bytes) = response.chunk().await.map_err(cut)? {
        if body.len() + bytes.len() > max_bytes {
            return Err(too_large());
        }
        body.extend_from_slice(&bytes);
    }
    let status_line = format!("{} {}", status.as_u16(), status.canonical_reason().unwrap_or_default()).trim_end().to_owned();
    Ok(FetchResponse { url: hop.url.to_string(), status_line, headers, body, redirects })
}

fn server(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

#[cfg(test)]
mod tests;
