//! Proxy of a request, for messages. It comes from `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY`, which the HTTP client
//! reads too.

use hyper_util::client::proxy::matcher::Matcher;

/// Returns the host and port of the proxy for an address, without its credentials.
pub(super) fn proxy_for(address: &str) -> Option<String> {
    let proxy = Matcher::from_system().intercept(&address.parse().ok()?)?;
    let uri = proxy.uri();
    let port = uri.port_u16().map(|port| format!(":{port}")).unwrap_or_default();
    Some(format!("{}{port}", uri.host()?))
}
