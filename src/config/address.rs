//! Validation of URLs to which a key may be sent, and of the headers of such requests.

use crate::protocol::Problem;
use crate::sys::http::is_loopback;

/// Advice shown for a URL to which secrets would be sent unencrypted.
const ENCRYPTED: &str = "use https://, or http:// only for this machine (localhost, 127.0.0.1)";

/// Validates a base URL. Returns it without a trailing slash, or the reason why it is invalid.
pub(super) fn check(given: &str) -> Result<String, Problem> {
    let expected = "use a URL such as https://host/v1";
    let url = reqwest::Url::parse(given)
        .map_err(|error| Problem::new(format!("invalid URL `{given}`")).because(error).hint(expected))?;
    if !url.username().is_empty() || url.password().is_some() {
        let problem = Problem::new(format!("the URL for `{}` contains a password", host(&url)));
        return Err(problem.hint(format!("{expected}, and set the key in its environment variable")));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(Problem::new(format!("`{given}` contains a query (`?`) or fragment (`#`)")).hint(expected));
    }
    match url.scheme() {
        "https" => {}
        "http" if is_this_machine(&url) => {}
        "http" => {
            let problem = Problem::new(format!("`{given}` would send the key and your prompts unencrypted"));
            return Err(problem.hint(ENCRYPTED));
        }
        other => return Err(Problem::new(format!("`{given}` has the scheme `{other}:`")).hint(expected)),
    }
    Ok(given.trim_end_matches('/').to_owned())
}

/// Validates the base URL of a back-end tool service.
pub(crate) fn check_tool_service_url(given: &str) -> Result<String, Problem> {
    check(given.trim())
}

/// Validates the URL of an MCP server. The URL may contain a query, which errors never repeat.
pub(super) fn check_server(given: &str) -> Result<(), String> {
    let expected = "expected a URL such as https://host/mcp";
    let url = reqwest::Url::parse(given).map_err(|error| format!("invalid `url` ({error}); {expected}"))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(format!("the URL for `{}` contains a password; {expected}, and secrets in a header", host(&url)));
    }
    if url.fragment().is_some() {
        return Err(format!("the URL for `{}` contains a fragment (`#`); {expected}", host(&url)));
    }
    match url.scheme() {
        "https" => Ok(()),
        "http" if is_this_machine(&url) => Ok(()),
        "http" => Err(format!("http to `{}` would send everything unencrypted; {ENCRYPTED}", host(&url))),
        other => Err(format!("the URL has the scheme `{other}:`; {expected}")),
    }
}

/// Validates the URL of a public model list, which may contain a query.
pub(crate) fn check_list_url(given: &str) -> Result<(), Problem> {
    let expected = "use a URL such as https://host/models.toml, or a file name";
    let url = reqwest::Url::parse(given)
        .map_err(|error| Problem::new(format!("invalid URL `{given}`")).because(error).hint(expected))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(Problem::new(format!("the URL for `{}` contains a password", host(&url))).hint(expected));
    }
    match url.scheme() {
        "https" => Ok(()),
        "http" if is_this_machine(&url) => Ok(()),
        "http" => Err(Problem::new(format!("`{given}` is not encrypted")).hint(ENCRYPTED)),
        other => Err(Problem::new(format!("`{given}` has the scheme `{other}:`")).hint(expected)),
    }
}

/// Validates a header. Errors never repeat the header's value.
pub(super) fn check_header(name: &str, value: &str) -> Result<(), String> {
    let header = reqwest::header::HeaderName::from_bytes(name.as_bytes());
    let header = header.map_err(|_| format!("invalid header name `{}`", name.escape_debug()))?;
    if ["host", "content-length", "content-type", "accept", "transfer-encoding", "connection", "mcp-session-id"]
        .contains(&header.as_str())
    {
        return Err(format!("the header `{name}` is set by aye; remove it"));
    }
    reqwest::header::HeaderValue::from_str(value)
        .map(drop)
        .map_err(|_| format!("the value of the header `{name}` contains characters that are not allowed in a header"))
}

/// Returns whether a URL accepted by `check` refers to this machine.
pub(super) fn is_local(address: &str) -> bool {
    reqwest::Url::parse(address).is_ok_and(|url| is_this_machine(&url))
}

/// Returns whether a URL belongs to OpenAI, in any region.
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
