//! HttpRequest: one request, and what the server answered.

use crate::policy::url::{Destination, only_asks, parse};
use crate::ports::{BoxFuture, RunContext};
use crate::protocol::{Action, ErrorCode, Proposal, ToolError, VerdictKind, cut_before};
use crate::sys::http::fetch::{Answer, FetchError, Guard, Next, Request, check_headers};
use crate::tools::alias::Alias;
use crate::tools::paths::Paths;
use crate::tools::tool::{Draft, Effect, Failed, Output, Settings, Tool, invalid};
use encoding_rs::{Encoding, UTF_8};
use futures_util::FutureExt;
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

const DEFAULT_TIMEOUT_SECONDS: u64 = 30;
const MAX_TIMEOUT_SECONDS: u64 = 300;
/// Of an answer, before any of it is shown.
const ANSWER_BYTES: usize = 10 * 1024 * 1024;
/// Of what is sent; a person has to look at it.
const BODY_BYTES: usize = 256 * 1024;
const HEADERS: usize = 64;
const METHODS: &[&str] = &["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"];
/// Headers of an answer that a model can act on.
const SHOWN: &[&str] = &[
    "Content-Type",
    "Content-Length",
    "Content-Encoding",
    "Content-Range",
    "Location",
    "Retry-After",
    "Link",
    "Allow",
    "WWW-Authenticate",
    "ETag",
    "Last-Modified",
];
const HEADER_CHARACTERS: usize = 1000;

pub(in crate::tools) struct HttpRequest;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::tools) struct Arguments {
    /// The address, with `http://` or `https://`.
    url: String,
    /// GET when absent.
    method: Option<String>,
    /// Names of headers and their values.
    headers: Option<BTreeMap<String, String>>,
    /// What is sent; not with GET, HEAD or OPTIONS.
    body: Option<String>,
    /// Seconds until it is given up; 30 when absent.
    #[schemars(range(min = 1, max = 300))]
    timeout: Option<u64>,
}

pub(in crate::tools) struct Work {
    to: Destination,
    request: Request,
    timeout_seconds: u64,
}

impl Tool for HttpRequest {
    const NAME: &'static str = "HttpRequest";
    const ALIASES: &'static [Alias<Arguments>] = &[
        Alias::same("http_request"),
        Alias::same("http"),
        Alias::same("fetch"),
        Alias::same("fetch_url"),
        Alias::same("web_fetch"),
        Alias::same("webfetch"),
    ];
    const CAPABILITY: &'static str = "Network.Http";
    const DESCRIPTION: &'static str = include_str!("../../../assets/tools/HttpRequest.md");
    type Arguments = Arguments;
    type Work = Work;

    fn actions(arguments: &Arguments, _: &Paths<'_>) -> Result<Vec<Action>, ToolError> {
        Ok(vec![Action::Fetch { url: arguments.url.clone(), method: method(arguments.method.as_deref())? }])
    }

    fn draft(arguments: Arguments, _: &Settings) -> Result<Draft<Work>, ToolError> {
        let method = method(arguments.method.as_deref())?;
        let to = parse(&arguments.url).map_err(|reason| invalid(format!("`url`: {reason}")))?;
        let body = arguments.body.unwrap_or_default();
        if !body.is_empty() && only_asks(&method) {
            return Err(invalid(format!("a {method} sends no `body`; leave it out, or use POST")));
        }
        if body.len() > BODY_BYTES {
            return Err(invalid(format!("`body` has {} bytes, at most {BODY_BYTES} are sent", body.len())));
        }
        let headers: Vec<_> = arguments.headers.unwrap_or_default().into_iter().collect();
        if headers.len() > HEADERS {
            return Err(invalid(format!("`headers` has {} entries, at most {HEADERS} are sent", headers.len())));
        }
        check_headers(&headers).map_err(|error| invalid(format!("`headers`: {error}")))?;
        let timeout_seconds = arguments.timeout.unwrap_or(DEFAULT_TIMEOUT_SECONDS);
        if !(1..=MAX_TIMEOUT_SECONDS).contains(&timeout_seconds) {
            return Err(invalid(format!("`timeout` is {timeout_seconds}; it is in seconds, from 1 to {MAX_TIMEOUT_SECONDS}")));
        }
        let summary = format!("{method} {}", to.as_str());
        let mut notes: Vec<_> = headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
        if !body.is_empty() {
            notes.push(format!("body of {} bytes:", body.len()));
            notes.push(body.clone());
        }
        let bytes = body.len() as u64;
        let request = Request {
            url: to.as_str().to_owned(),
            method: method.clone(),
            headers,
            body,
            timeout: Duration::from_secs(timeout_seconds),
            most_bytes: ANSWER_BYTES,
        };
        Ok(Draft {
            summary: summary.clone(),
            actions: vec![Action::Fetch { url: arguments.url, method }],
            proposal: Some(Proposal { summary, bytes, notes, ..Proposal::default() }),
            effect: Effect::Runs { timeout_seconds, files: Vec::new() },
            work: Work { to, request, timeout_seconds },
        })
    }

    fn run(work: Work, settings: Arc<Settings>, context: RunContext) -> BoxFuture<'static, Output> {
        async move {
            let guard = Rules { settings: &settings, approved: &work.to };
            let answer = settings.fetcher.fetch(work.request, &guard, &context.kill).await;
            answer
                .map(|answer| told(&answer, &work.to, settings.max_output_bytes).into())
                .map_err(|error| failed(&error, work.timeout_seconds))
        }
        .boxed()
    }
}

fn method(given: Option<&str>) -> Result<String, ToolError> {
    let method = given.unwrap_or("GET").trim().to_ascii_uppercase();
    if METHODS.contains(&method.as_str()) {
        return Ok(method);
    }
    let shown: String = method.chars().take(20).collect();
    Err(invalid(format!("`method` is `{}`, expected one of {}", shown.escape_debug(), METHODS.join(", "))))
}

/// The policy's say on each hop of a request that was allowed.
struct Rules<'a> {
    settings: &'a Settings,
    approved: &'a Destination,
}

impl Guard for Rules<'_> {
    fn may_connect(&self, url: &str, address: IpAddr) -> Result<(), String> {
        (self.settings.may_connect)(url, address)
    }

    fn redirect(&self, from: &str, location: &str, method: &str) -> Next {
        let to = match parse(from).and_then(|from| from.follow(location)) {
            Ok(to) => to,
            Err(reason) => return Next::Refuse(format!("it redirects to a place that is not asked: {reason}")),
        };
        let told = (self.settings.may_fetch)(to.as_str(), method);
        match told.verdict {
            VerdictKind::Allow => Next::Follow(to.as_str().to_owned()),
            // The yes was for this server; another one needs its own.
            VerdictKind::Ask if same_server(self.approved, &to) => Next::Follow(to.as_str().to_owned()),
            VerdictKind::Ask => Next::Stay,
            VerdictKind::Deny => {
                Next::Refuse(format!("it redirects to `{}`, and {} (rule: {})", to.as_str(), told.reason, told.rule))
            }
        }
    }
}

/// The same host on the same port, or the step from http to https; never the step back.
fn same_server(approved: &Destination, to: &Destination) -> bool {
    let same = (approved.port(), approved.is_encrypted()) == (to.port(), to.is_encrypted());
    let upgraded = (approved.port(), approved.is_encrypted()) == (80, false) && (to.port(), to.is_encrypted()) == (443, true);
    approved.host() == to.host() && (same || upgraded)
}

fn failed(error: &FetchError, timeout_seconds: u64) -> Failed {
    let (code, hint) = match error {
        FetchError::Invalid(_) => (ErrorCode::InvalidRequest, String::new()),
        FetchError::Refused(_) => (ErrorCode::PolicyDenied, String::new()),
        FetchError::Setup(_) => {
            (ErrorCode::ToolExecutionFailed, "; the person has to look at the certificates of this system".to_owned())
        }
        FetchError::NoAddress { .. } => (ErrorCode::ToolExecutionFailed, "; check how the host is written".to_owned()),
        FetchError::Unreachable { .. } => (
            ErrorCode::ToolExecutionFailed,
            "; aye connects directly and through no proxy; check the address, or try later".to_owned(),
        ),
        FetchError::Cut { .. } => {
            (ErrorCode::ToolExecutionFailed, "; it may have been done all the same; try again if that does no harm".to_owned())
        }
        FetchError::TooLarge { .. } => {
            (ErrorCode::ToolExecutionFailed, "; ask for a part of it, with a `Range` header or another URL".to_owned())
        }
        FetchError::TooManyRedirects(_) => {
            (ErrorCode::ToolExecutionFailed, "; ask for that URL itself if it is the right one".to_owned())
        }
        FetchError::TimedOut(_) => {
            let hint = if timeout_seconds < MAX_TIMEOUT_SECONDS {
                format!("; where it needs longer, set `timeout` (at most {MAX_TIMEOUT_SECONDS})")
            } else {
                String::new()
            };
            (ErrorCode::ToolExecutionTimeout, hint)
        }
        FetchError::Cancelled => (ErrorCode::Cancelled, String::new()),
    };
    ToolError::new(code, format!("{error}{hint}")).into()
}

/// Status, headers and body, as a model reads them.
fn told(answer: &Answer, asked: &Destination, limit: usize) -> String {
    let mut text = format!("HTTP {}\n", answer.status_line);
    for name in SHOWN {
        if let Some(value) = answer.header(&name.to_ascii_lowercase()) {
            let value: String = value.chars().take(HEADER_CHARACTERS).collect();
            let _ = writeln!(text, "{name}: {value}");
        }
    }
    if answer.redirects > 0 {
        let _ = writeln!(text, "[redirected to {}]", answer.url);
    }
    let redirects = answer.status_line.starts_with('3');
    if let Some(location) = answer.header("location").filter(|_| redirects) {
        let from = if answer.redirects == 0 { asked.as_str() } else { answer.url.as_str() };
        let to =
            parse(from).and_then(|from| from.follow(location)).map_or_else(|_| location.to_owned(), |to| to.as_str().to_owned());
        let _ =
            writeln!(text, "[not followed: it leads to another server, which needs its own leave; request {to} if you want it]");
    }
    text.push('\n');
    text.push_str(&body(answer, limit));
    text.trim_end_matches('\n').to_owned()
}

fn body(answer: &Answer, limit: usize) -> String {
    let bytes = &answer.body;
    let kind = answer.header("content-type").unwrap_or("no type given");
    let packed = answer.header("content-encoding").filter(|coding| !coding.eq_ignore_ascii_case("identity"));
    if let Some(coding) = packed.filter(|_| !bytes.is_empty()) {
        return format!("Packed body ({coding}), {} bytes, {kind}; it is not unpacked", bytes.len());
    }
    let Some(decoded) = decode(bytes, kind) else { return format!("Binary body, {} bytes, {kind}", bytes.len()) };
    if decoded.len() <= limit {
        return decoded;
    }
    let end = cut_before(&decoded, limit);
    format!("{}\n[Output truncated — {} bytes, showing first {end} bytes]", &decoded[..end], decoded.len())
}

/// The text of a body in its own encoding; `None` where it is no text.
fn decode(bytes: &[u8], kind: &str) -> Option<String> {
    let mut parts = kind.split(';');
    let essence = parts.next().unwrap_or_default().trim().to_ascii_lowercase();
    let charset = parts.find_map(|part| {
        let (name, value) = part.split_once('=')?;
        name.trim().eq_ignore_ascii_case("charset").then(|| value.trim().trim_matches('"'))
    });
    let named = Encoding::for_bom(bytes).map(|(encoding, _)| encoding).or_else(|| Encoding::for_label(charset?.as_bytes()));
    let declared = named.is_some()
        || essence.starts_with("text/")
        || ["json", "xml", "javascript", "yaml", "toml", "x-www-form-urlencoded"].iter().any(|end| essence.ends_with(end));
    let (text, _, malformed) = named.unwrap_or(UTF_8).decode(bytes);
    (!text.contains('\0') && (declared || !malformed)).then(|| text.into_owned())
}
