//! Requests to authorization servers. They require TLS except on loopback, do not follow redirects, and are limited in
//! size and time. Local addresses are allowed only if the MCP server itself is local.

use crate::sys::http::fetch::{FetchRequest, FetchResponse, FetchRules, Fetcher, RedirectVerdict};
use crate::sys::http::is_loopback;
use hyper::Response;
use reqwest::Url;
use rmcp::transport::auth::{OAuthHttpClient, OAuthHttpClientError, OAuthHttpClientFuture, OAuthHttpRequest};
use std::net::IpAddr;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Maximum size of a response in bytes. Metadata, registrations and tokens are all small.
const MAX_BYTES: usize = 1 << 20;
const TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Clone)]
pub(super) struct AuthClient {
    fetcher: Fetcher,
    /// Whether the MCP server runs on this machine, in which case its authorization server may be local too.
    is_local: bool,
}

impl AuthClient {
    /// Creates a client for authorizing with the MCP server at `url`.
    pub(super) fn for_server(url: &Url) -> Self {
        Self { fetcher: Fetcher::default(), is_local: url.host_str().is_some_and(is_loopback) }
    }

    /// Checks whether requests to a URL are allowed. If not, returns the reason.
    pub(super) fn check(&self, url: &str) -> Result<(), String> {
        let url = Url::parse(url).map_err(|error| format!("invalid URL: {error}"))?;
        let host = url.host_str().unwrap_or_default();
        match url.scheme() {
            "https" => Ok(()),
            "http" if is_loopback(host) && self.is_local => Ok(()),
            _ => Err(format!("`{}://{host}` is neither https nor on this machine", url.scheme())),
        }
    }

    pub(super) async fn send(
        &self,
        method: &str,
        url: &str,
        headers: Vec<(String, String)>,
        body: String,
        timeout: Duration,
    ) -> Result<FetchResponse, String> {
        self.check(url)?;
        let request =
            FetchRequest { url: url.to_owned(), method: method.to_owned(), headers, body, timeout, max_bytes: MAX_BYTES };
        let guard = Places { is_local: self.is_local };
        self.fetcher.fetch(request, &guard, &CancellationToken::new()).await.map_err(|error| error.to_string())
    }
}

impl OAuthHttpClient for AuthClient {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        Box::pin(async move {
            let (parts, body) = request.request.into_parts();
            let text = |value: &hyper::header::HeaderValue| value.to_str().map(str::to_owned);
            let headers = parts.headers.iter().map(|(name, value)| Ok((name.as_str().to_owned(), text(value)?)));
            let headers = headers.collect::<Result<_, hyper::header::ToStrError>>()?;
            let body = String::from_utf8(body)?;
            let answer = self.send(parts.method.as_str(), &parts.uri.to_string(), headers, body, TIMEOUT).await;
            let answer = answer.map_err(OAuthHttpClientError::from)?;
            let mut response = Response::builder().status(status(&answer));
            for (name, value) in &answer.headers {
                response = response.header(name, value);
            }
            Ok(response.body(answer.body)?)
        })
    }
}

pub(super) fn status(answer: &FetchResponse) -> u16 {
    answer.status_line.get(..3).and_then(|code| code.parse().ok()).unwrap_or(0)
}

struct Places {
    is_local: bool,
}

impl FetchRules for Places {
    fn may_connect(&self, url: &str, address: IpAddr) -> Result<(), String> {
        let host = Url::parse(url).ok().and_then(|url| url.host_str().map(str::to_owned)).unwrap_or_default();
        match classify(address) {
            Place::Here if !self.is_local => Err(format!("`{host}` resolves to this machine, but the MCP server is remote")),
            Place::Nowhere => Err(format!("`{host}` resolves to {address}, which cannot be an authorization server")),
            Place::Here | Place::There => Ok(()),
        }
    }

    fn redirect(&self, _from: &str, _location: &str, _method: &str) -> RedirectVerdict {
        RedirectVerdict::Stay
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Place {
    Here,
    There,
    /// Link-local address, at which cloud platforms expose machine credentials, or an address that does not belong to a
    /// single host.
    Nowhere,
}

/// Classifies an IP address. Private addresses are allowed, because TLS is required for them.
pub(super) fn classify(address: IpAddr) -> Place {
    match address {
        IpAddr::V4(v4) if v4.is_loopback() => Place::Here,
        IpAddr::V4(v4) if v4.is_link_local() || v4.is_broadcast() || v4.is_multicast() || v4.octets()[0] == 0 => Place::Nowhere,
        IpAddr::V4(_) => Place::There,
        IpAddr::V6(v6) => match v6.to_ipv4_mapped() {
            Some(v4) => classify(IpAddr::V4(v4)),
            None if v6.is_loopback() => Place::Here,
            None if v6.is_unspecified() || v6.is_multicast() || v6.is_unicast_link_local() => Place::Nowhere,
            None => Place::There,
        },
    }
}
