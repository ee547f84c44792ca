//! Addresses that a key may be sent to, and the headers of such a request.

use crate::sys::http::is_loopback;

/// A base URL without its last slash, or what is wrong with it.
pub(super) fn check(given: &str) -> Result<String, String> {
    let expected = "expected an address like https://host/v1";
    let url = reqwest::Url::parse(given).map_err(|error| format!("`{given}` is no address ({error}); {expected}"))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(format!("the address at `{}` holds a password; {expected}, and the key in its variable", host(&url)));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(format!("`{given}` has a `?` or `#` part; {expected}"));
    }
    match url.scheme() {
        "https" => {}
        "http" if is_this_machine(&url) => {}
        "http" => {
            return Err(format!(
                "`{given}` would send the key and all you say unencrypted; expected https://, or http:// only to this machine (localhost, 127.0.0.1)"
            ));
        }
        other => return Err(format!("`{given}` starts with `{other}:`; {expected}")),
    }
    Ok(given.trim_end_matches('/').to_owned())
}

/// Whether a server of tools may have this address, or what is wrong with it. It may end in a query, which is not repeated.
pub(super) fn check_server(given: &str) -> Result<(), String> {
    let expected = "expected an address like https://host/mcp";
    let url = reqwest::Url::parse(given).map_err(|error| format!("its `url` is no address ({error}); {expected}"))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(format!("the address at `{}` holds a password; {expected}, and what is secret in a header", host(&url)));
    }
    if url.fragment().is_some() {
        return Err(format!("the address at `{}` has a `#` part; {expected}", host(&url)));
    }
    match url.scheme() {
        "https" => Ok(()),
        "http" if is_this_machine(&url) => Ok(()),
        "http" => Err(format!(
            "http to `{}` would send everything unencrypted; expected https://, or http:// only to this machine (localhost, 127.0.0.1)",
            host(&url)
        )),
        other => Err(format!("its address starts with `{other}:`; {expected}")),
    }
}

/// Checks one header; nothing of its value is repeated.
pub(super) fn check_header(name: &str, value: &str) -> Result<(), String> {
    let header = reqwest::header::HeaderName::from_bytes(name.as_bytes());
    let header = header.map_err(|_| format!("`{}` is no name of a header", name.escape_debug()))?;
    if ["host", "content-length", "content-type", "accept", "transfer-encoding", "connection", "mcp-session-id"]
        .contains(&header.as_str())
    {
        return Err(format!("the header `{name}` is set by aye; leave it out"));
    }
    reqwest::header::HeaderValue::from_str(value)
        .map(drop)
        .map_err(|_| format!("the value of the header `{name}` has characters that no header can carry"))
}

/// Whether an address that passed `check` is on this machine.
pub(super) fn is_local(address: &str) -> bool {
    reqwest::Url::parse(address).is_ok_and(|url| is_this_machine(&url))
}

/// Whether an address is OpenAI's own, in any region.
pub(super) fn is_openai(address: &str) -> bool {
    let is_own = |host: &str| host == "api.openai.com" || host.ends_with(".api.openai.com");
    reqwest::Url::parse(address).is_ok_and(|url| is_own(host(&url)))
}

fn is_this_machine(url: &reqwest::Url) -> bool {
    is_loopback(host(url))
}

fn host(url: &reqwest::Url) -> &str {
    url.host_str().unwrap_or_default()
}
