//! Verdicts on URLs. A URL is judged by its text and parsed only once, into the form that is used to connect.

pub(super) mod host;
mod parse;
mod pattern;
pub(super) mod ports;
pub(super) mod ranges;
pub(super) mod sends;

pub use parse::{Destination, Host, parse};
pub use pattern::{HostPattern, PrivateHost};

/// Returns whether a host is given by a name that can be public, rather than by an address. Names of this machine, of
/// private networks and of cloud metadata services are not public.
pub fn is_public_name(host: &str) -> bool {
    let parsed = parse(&format!("https://{host}/"));
    parsed.is_ok_and(|to| matches!(to.host(), Host::Name(name) if host::local(name).is_none()))
}

/// Returns whether a request with this method only reads from the server.
pub fn is_read_method(method: &str) -> bool {
    matches!(method, "GET" | "HEAD" | "OPTIONS")
}

#[cfg(test)]
mod tests;
