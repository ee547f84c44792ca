//! The proxy of a request, from `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY`, for messages; the HTTP client reads the same variables.

use hyper_util::client::proxy::matcher::Matcher;

/// Returns the host and port of the proxy for an address, without its credentials.
pub(super) fn proxy_for(address: &str) -> Option<String> {
    let proxy = Matcher::from_system().intercept(&address.parse().ok()?)?;
    let uri = proxy.uri();
    let port = uri.port_u16().map(|port| format!(":{port}")).unwrap_or_default();
    Some(format!("{}{port}", uri.host()?))
}
