//! Parses the text of a URL into a destination, rejecting text that two programs could interpret differently.

use super::host;
use crate::policy::shell::is_deceptive_name;
use ::url::Url;
use core::net::{IpAddr, Ipv4Addr};

/// Maximum length of a URL in bytes. Longer URLs cannot be reviewed by users and are rejected by many servers.
const MAX_BYTES: usize = 8 * 1024;

/// Name or address of the server.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Host {
    /// Host name in lower-case ASCII, without a trailing dot.
    Name(String),
    Address(IpAddr),
}

impl std::fmt::Display for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(IpAddr::V4(address)) => write!(f, "{address}"),
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

/// A URL in the form that is used to connect. Only [`parse`] can create it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    url: Url,
    host: Host,
    port: u16,
    doubt: Option<String>,
}

impl Destination {
    /// Returns the normalized URL without its fragment, which is never sent.
    pub fn as_str(&self) -> &str {
        self.url.as_str()
    }

    pub fn host(&self) -> &Host {
        &self.host
    }

    /// Converts the host to the type used by the `url` crate.
    pub fn url_host(&self) -> ::url::Host<String> {
        match &self.host {
            Host::Name(name) => ::url::Host::Domain(name.clone()),
            Host::Address(IpAddr::V4(address)) => ::url::Host::Ipv4(*address),
            Host::Address(IpAddr::V6(address)) => ::url::Host::Ipv6(*address),
        }
    }

    /// Returns the port in the URL, or the default port of its scheme.
    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn is_encrypted(&self) -> bool {
        self.url.scheme() == "https"
    }

    /// Returns why the URL is deceptive, even though its meaning is unambiguous.
    pub fn doubt(&self) -> Option<&str> {
        self.doubt.as_deref()
    }

    /// Returns the path and the query, as they are sent.
    pub fn path_and_query(&self) -> (&str, Option<&str>) {
        (self.url.path(), self.url.query())
    }

    /// Returns the destination of a redirect. `location` is the value of the `Location` header.
    pub fn redirect_target(&self, location: &str) -> Result<Self, String> {
        let joined = self.url.join(location).map_err(|error| format!("`{location}` is not a URL: {error}"))?;
        parse(joined.as_str())
    }
}

/// Parses a URL. The error explains why no request may be sent to it.
pub fn parse(text: &str) -> Result<Destination, String> {
    if text.is_empty() {
        return Err("the URL is empty".to_owned());
    }
    if text.len() > MAX_BYTES {
        return Err(format!("the URL is {} bytes; at most {MAX_BYTES} are allowed", text.len()));
    }
    if is_deceptive_name(text) {
        return Err("the URL contains control or invisible characters; escape them with `%`".to_owned());
    }
    if text.contains(char::is_whitespace) {
        return Err("the URL contains a space; write it as `%20`".to_owned());
    }
    if text.contains('\\') {
        return Err("the URL contains a backslash, which programs interpret differently; write `/` or `%5C`".to_owned());
    }
    let rest = after_scheme(text)?;
    let authority = &rest[..rest.find(['/', '?', '#']).unwrap_or(rest.len())];
    if authority.contains('@') {
        return Err("the URL contains a user name or password; send credentials in a header".to_owned());
    }
    if authority.contains('%') {
        return Err("the URL's host is percent-encoded; write it without encoding".to_owned());
    }
    let mut url = Url::parse(text).map_err(|error| format!("invalid URL: {error}"))?;
    url.set_fragment(None);
    if url.port() == Some(0) {
        return Err("port 0 is not a valid port".to_owned());
    }
    let port = url.port_or_known_default().ok_or("the URL has no port")?;
    let raw = raw_host(authority);
    let (host, doubt) = match url.host() {
        Some(::url::Host::Ipv4(address)) => (Host::Address(address.into()), check_spelling(raw, address)?),
        Some(::url::Host::Ipv6(address)) => (Host::Address(address.into()), None),
        Some(::url::Host::Domain(name)) => {
            let name = name.strip_suffix('.').unwrap_or(name).to_owned();
            host::check_name(&name)?;
            let doubt = host::check_spelling(raw, &name)?;
            (Host::Name(name), doubt)
        }
        None => return Err("the URL has no host".to_owned()),
    };
    if let Host::Name(name) = &host {
        url.set_host(Some(name)).map_err(|error| format!("invalid URL: {error}"))?;
    }
    Ok(Destination { url, host, port, doubt })
}

/// Returns the text after `http://` or `https://`. Both slashes are required.
fn after_scheme(text: &str) -> Result<&str, String> {
    let (scheme, rest) = text.split_once(':').unwrap_or(("", text));
    let is_scheme = scheme.starts_with(|letter: char| letter.is_ascii_alphabetic())
        && scheme.chars().all(|letter| letter.is_ascii_alphanumeric() || "+-.".contains(letter));
    if !is_scheme {
        return Err("the URL has no scheme; start it with `https://`".to_owned());
    }
    if !scheme.eq_ignore_ascii_case("http") && !scheme.eq_ignore_ascii_case("https") {
        return Err(format!("the scheme `{scheme}:` is not supported; start the URL with `https://` or `http://`"));
    }
    match rest.strip_prefix("//") {
        Some(rest) if !rest.starts_with(['/', '?', '#']) && !rest.is_empty() => Ok(rest),
        Some(_) => Err(format!("the host is missing after `{scheme}://`")),
        None => Err(format!("`//` is missing after `{scheme}:`")),
    }
}

/// Returns the host as written, without the port and without a trailing dot.
fn raw_host(authority: &str) -> &str {
    let end = if authority.starts_with('[') { authority.rfind(']').map(|at| at + 1) } else { authority.rfind(':') };
    let host = &authority[..end.unwrap_or(authority.len())];
    host.strip_suffix('.').unwrap_or(host)
}

/// Checks that an IPv4 address is written in the usual form, because other forms conceal the target.
fn check_spelling(raw: &str, address: Ipv4Addr) -> Result<Option<String>, String> {
    if raw == address.to_string() {
        return Ok(None);
    }
    let octal = |part: &str| part.len() > 1 && part.starts_with('0') && part.bytes().all(|byte| byte.is_ascii_digit());
    if !raw.is_ascii() || raw.split('.').any(octal) {
        return Err(format!("some programs read `{raw}` as `{address}` and others do not; write the intended address"));
    }
    Ok(Some(format!("`{raw}` is another spelling of the address `{address}`")))
}
