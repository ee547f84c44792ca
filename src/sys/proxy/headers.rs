//! Headers of proxied requests: which of them are meant for the server, and which only for the proxy.

use hyper::header::{CONNECTION, HOST, HeaderMap, HeaderName};
use hyper::http::uri::Authority;

/// Hop-by-hop headers (RFC 9110, section 7.6.1) and headers intended for a proxy.
const OF_THE_CONNECTION: &[&str] = &[
    "connection",
    "expect",
    "http2-settings",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authentication-info",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Removes headers that must not be forwarded. The body's length has already been parsed and is written again.
pub(super) fn strip(headers: &mut HeaderMap) {
    let listed: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| HeaderName::from_bytes(name.trim().as_bytes()).ok())
        // Without its length, the body could be interpreted differently.
        .filter(|name| name != "content-length" && name != "host")
        .collect();
    for name in listed {
        headers.remove(name);
    }
    for name in OF_THE_CONNECTION {
        headers.remove(*name);
    }
}

/// Returns whether the `Host` header, if there is one, matches the host in the request URL.
pub(super) fn host_matches(headers: &HeaderMap, authority: &Authority) -> bool {
    let mut given = headers.get_all(HOST).iter();
    let (first, second) = (given.next(), given.next());
    let Some(host) = first.filter(|_| second.is_none()) else {
        // HTTP/1.0 has no `Host` header.
        return first.is_none();
    };
    let plain = |text: &str| text.strip_suffix(":80").unwrap_or(text).to_ascii_lowercase();
    host.to_str().is_ok_and(|host| plain(host) == plain(authority.as_str()))
}
