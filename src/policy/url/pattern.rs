//! Host patterns in a bundle, such as `docs.rs`, `*.rust-lang.org` and `localhost:3000`.

use super::host::check_name;
use super::parse::{Destination, Host};
use core::net::IpAddr;

/// An entry in `allowed_domains` or `blocked_domains`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPattern {
    pub line: usize,
    reach: HostMatch,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum HostMatch {
    /// `*`, which matches every host.
    Any,
    Exact(Host),
    /// `*.example.com`, which matches every name that ends with `.example.com`, but not `example.com` itself.
    Below(String),
}

/// An entry in `allowed_private_hosts`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrivateHost {
    pub line: usize,
    host: Host,
    /// Allowed port. `None` allows every port, although ports not used for the web need approval.
    port: Option<u16>,
}

impl HostPattern {
    pub fn parse(text: &str, line: usize) -> Result<Self, String> {
        let reach = if text == "*" {
            HostMatch::Any
        } else if let Some(rest) = text.strip_prefix("*.") {
            match host(rest)? {
                Host::Name(name) => HostMatch::Below(name),
                Host::Address(_) => return Err(format!("`{text}` is not a valid pattern: an address has no subdomains")),
            }
        } else {
            HostMatch::Exact(host(text)?)
        };
        Ok(Self { line, reach })
    }

    /// Returns whether the pattern matches this host.
    pub fn names(&self, host: &Host) -> bool {
        match &self.reach {
            HostMatch::Any => true,
            HostMatch::Exact(exact) => exact == host,
            HostMatch::Below(end) => is_below(host, end),
        }
    }

    /// Returns whether the pattern matches this host in particular rather than every host.
    pub fn is_specific_to(&self, host: &Host) -> bool {
        self.reach != HostMatch::Any && self.names(host)
    }

    /// Returns whether the pattern blocks this host. A blocked name also blocks its subdomains.
    pub fn blocks(&self, host: &Host) -> bool {
        let below = match &self.reach {
            HostMatch::Exact(Host::Name(name)) => is_below(host, name),
            HostMatch::Exact(Host::Address(_)) | HostMatch::Any | HostMatch::Below(_) => false,
        };
        below || self.names(host)
    }
}

fn is_below(host: &Host, end: &str) -> bool {
    match host {
        // The text before the suffix must end with a dot, so `xdocs.rs` is not below `docs.rs`.
        Host::Name(name) => {
            name.strip_suffix(end).and_then(|front| front.strip_suffix('.')).is_some_and(|front| !front.is_empty())
        }
        Host::Address(_) => false,
    }
}

impl PrivateHost {
    pub fn parse(text: &str, line: usize) -> Result<Self, String> {
        let bare = text.parse::<IpAddr>().is_ok();
        let (name, port) = match text.rsplit_once(':') {
            Some((name, port)) if !bare && !port.ends_with(']') => {
                let port = port.parse::<u16>().ok().filter(|port| *port > 0);
                (
                    name,
                    Some(port.ok_or_else(|| {
                        format!("`{text}` has an invalid port; expected a number from 1 to 65535 after the `:`")
                    })?),
                )
            }
            Some(_) | None => (text, None),
        };
        Ok(Self { line, host: host(name)?, port })
    }

    /// If the entry matches this destination, returns whether the entry specifies the port. Otherwise returns `None`.
    pub fn names(&self, destination: &Destination) -> Option<bool> {
        let port = self.port.is_none_or(|port| port == destination.port());
        (port && self.host == *destination.host()).then_some(self.port.is_some())
    }
}

/// Parses a host written by a user, and returns it in the form in which URLs are compared.
fn host(text: &str) -> Result<Host, String> {
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    if let Ok(address) = bare.parse::<IpAddr>() {
        return Ok(Host::Address(address));
    }
    let expected = "expected a host, such as `docs.rs` or `*.rust-lang.org`, or an IP address";
    if text.contains("://") || text.contains('/') {
        return Err(format!("`{text}` is a URL; {expected}"));
    }
    if text.contains('*') {
        return Err(format!("`{text}` is not a valid pattern: `*` must be alone or the first label, as in `*.rust-lang.org`"));
    }
    let name = idna::domain_to_ascii(text).map_err(|_| format!("`{text}` is not a valid host; {expected}"))?;
    let name = name.strip_suffix('.').unwrap_or(&name).to_owned();
    check_name(&name).map_err(|reason| format!("`{text}` is not a valid host ({reason}); {expected}"))?;
    let numeric = name.rsplit('.').next().is_some_and(|last| last.bytes().all(|byte| byte.is_ascii_digit()));
    if numeric {
        return Err(format!("`{text}` is not a canonical IP address; {expected}"));
    }
    Ok(Host::Name(name))
}
