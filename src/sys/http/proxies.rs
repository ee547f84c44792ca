//! Determines the proxy used for a request, so that messages can name it. As in the HTTP client, it depends on
//! `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY`.

use hyper_util::client::proxy::matcher::Matcher;

/// Returns the host and port of the proxy for an address, without the proxy's credentials, or `None` if no proxy is
/// used.
pub(super) fn proxy_for(address: &str) -> Option<String> {
    let proxy = Matcher::from_system().intercept(&address.parse().ok()?)?;
    let uri = proxy.uri();
    let port = uri.port_u16().map(|port| format!(":{port}")).unwrap_or_default();
    Some(format!("{}{port}", uri.host()?))
}
