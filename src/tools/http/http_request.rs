//! The `HttpRequest` tool, which sends one request and returns the response.

use super::answer::format_response;
use super::readable::Form;
use crate::policy::url::{Destination, is_read_method, parse};
use crate::ports::{BoxFuture, RunContext};
use crate::protocol::{Action, Proposal, ToolError, VerdictKind};
use crate::sys::http::fetch::{FetchRequest, FetchRules, RedirectVerdict, check_headers};
use crate::tools::alias::Alias;
use crate::tools::arguments::{parse as parse_arguments, schema};
use crate::tools::call_result::{CallResult, blocking};
use crate::tools::draft::{CallDraft, CallEffect};
use crate::tools::error::invalid;
use crate::tools::http::answer::{ANSWER_BYTES, MAX_TIMEOUT_SECONDS, fetch_failure};
use crate::tools::paths::Paths;
use crate::tools::settings::ToolSettings;
use crate::tools::tool::Tool;
use futures_util::FutureExt;
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

const DEFAULT_TIMEOUT_SECONDS: u64 = 30;

/// Maximum size of a request body in bytes, limited because the user has to review it.
const BODY_BYTES: usize = 256 * 1024;
const HEADERS: usize = 64;
const METHODS: &[&str] = &["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"];
pub(in crate::tools) struct HttpRequest;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::tools) struct Arguments {
    url: String,
    /// GET by default.
    method: Option<String>,
    headers: Option<BTreeMap<String, String>>,
    /// Not allowed with GET, HEAD or OPTIONS.
    body: Option<String>,
    /// Seconds: 30 by default, at most 300.
    #[schemars(range(min = 1, max = 300))]
    timeout: Option<u64>,
    /// Format for an HTML page; `raw` by default.
    format: Option<BodyFormat>,
    /// Set by the aliases for reading pages: markdown if no `format` is given.
    #[serde(skip)]
    for_reading: bool,
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum BodyFormat {
    #[serde(alias = "html")]
    Raw,
    Text,
    Markdown,
}

/// Creates an alias under which other agents offer a tool for reading pages.
const fn for_reading(name: &'static str) -> Alias<Arguments> {
    Alias {
        name,
        parse: |given| parse_arguments::<Arguments>(given).map(|arguments| Arguments { for_reading: true, ..arguments }),
        schema: schema::<Arguments>,
    }
}

pub(in crate::tools) struct Work {
    to: Destination,
    request: FetchRequest,
    timeout_seconds: u64,
    /// Format to which a page is converted, or `None` to leave it unchanged.
    form: Option<Form>,
}

impl Tool for HttpRequest {
    const NAME: &'static str = "HttpRequest";
    const ALIASES: &'static [Alias<Arguments>] = &[
        Alias::with_same_arguments("http_request"),
        Alias::with_same_arguments("http"),
        for_reading("fetch"),
        for_reading("fetch_url"),
        for_reading("web_fetch"),
        for_reading("webfetch"),
    ];
    const CAPABILITY: &'static str = "Network.Http";
    const DESCRIPTION: &'static str = include_str!("../../../assets/tools/HttpRequest.md");
    type Arguments = Arguments;
    type Work = Work;

    fn actions(arguments: &Arguments, _: &Paths<'_>) -> Result<Vec<Action>, ToolError> {
        Ok(vec![Action::Fetch { url: arguments.url.clone(), method: method(arguments.method.as_deref())? }])
    }

    fn draft(arguments: Arguments, _: &ToolSettings) -> Result<CallDraft<Work>, ToolError> {
        let method = method(arguments.method.as_deref())?;
        let to = parse(&arguments.url).map_err(|reason| invalid(format!("`url`: {reason}")))?;
        let body = arguments.body.unwrap_or_default();
        if !body.is_empty() && is_read_method(&method) {
            return Err(invalid(format!("a {method} request has no `body`; remove it, or use POST")));
        }
        if body.len() > BODY_BYTES {
            return Err(invalid(format!("`body` is {} bytes; the limit is {BODY_BYTES}", body.len())));
        }
        let headers: Vec<_> = arguments.headers.unwrap_or_default().into_iter().collect();
        if headers.len() > HEADERS {
            return Err(invalid(format!("`headers` has {} entries; the limit is {HEADERS}", headers.len())));
        }
        check_headers(&headers).map_err(|error| invalid(format!("`headers`: {error}")))?;
        let timeout_seconds = arguments.timeout.unwrap_or(DEFAULT_TIMEOUT_SECONDS);
        if !(1..=MAX_TIMEOUT_SECONDS).contains(&timeout_seconds) {
            return Err(invalid(format!("`timeout` is {timeout_seconds}; it must be 1 to {MAX_TIMEOUT_SECONDS} seconds")));
        }
        let form = match (arguments.format, arguments.for_reading) {
            (Some(BodyFormat::Raw), _) | (None, false) => None,
            (Some(BodyFormat::Text), _) => Some(Form::Text),
            (Some(BodyFormat::Markdown), _) | (None, true) => Some(Form::Markdown),
        };
        let summary = format!("{method} {}", to.as_str());
        let mut notes: Vec<_> = headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
        if !body.is_empty() {
            notes.push(format!("body of {} bytes:", body.len()));
            notes.push(body.clone());
        }
        let bytes = body.len() as u64;
        let request = FetchRequest {
            url: to.as_str().to_owned(),
            method: method.clone(),
            headers,
            body,
            timeout: Duration::from_secs(timeout_seconds),
            max_bytes: ANSWER_BYTES,
        };
        Ok(CallDraft {
            summary: summary.clone(),
            actions: vec![Action::Fetch { url: arguments.url, method }],
            proposal: Some(Proposal { summary, bytes, notes, ..Proposal::default() }),
            effect: CallEffect::Runs { timeout_seconds, files: Vec::new() },
            work: Work { to, request, timeout_seconds, form },
        })
    }

    fn run(work: Work, settings: Arc<ToolSettings>, context: RunContext) -> BoxFuture<'static, CallResult> {
        async move {
            let rules = Arc::clone(&settings);
            let guard = RedirectRules { settings: &rules, approved: &work.to };
            let answer = settings.http.fetcher.fetch(work.request, &guard, &context.interrupt).await;
            let answer = answer.map_err(|error| fetch_failure(&error, work.timeout_seconds))?;
            blocking(move || format_response(answer, &work.to, work.form, &settings)).await
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

/// Rules for redirects of an allowed request. Each redirect is checked against the policy.
struct RedirectRules<'a> {
    settings: &'a ToolSettings,
    approved: &'a Destination,
}

impl FetchRules for RedirectRules<'_> {
    fn may_connect(&self, url: &str, address: IpAddr) -> Result<(), String> {
        (self.settings.http.may_connect)(url, address)
    }

    fn redirect(&self, from: &str, location: &str, method: &str) -> RedirectVerdict {
        let to = match parse(from).and_then(|from| from.redirect_target(location)) {
            Ok(to) => to,
            Err(reason) => return RedirectVerdict::Refuse(format!("the redirect target is not valid: {reason}")),
        };
        let told = (self.settings.http.may_fetch)(to.as_str(), method);
        match told.verdict {
            VerdictKind::Allow => RedirectVerdict::Follow(to.as_str().to_owned()),
            // The approval covers one server. Another server needs its own approval.
            VerdictKind::Ask if same_server(self.approved, &to) => RedirectVerdict::Follow(to.as_str().to_owned()),
            VerdictKind::Ask => RedirectVerdict::Stay,
            VerdictKind::Deny => RedirectVerdict::Deny {
                reason: format!("the redirect to `{}` is denied: {}", to.as_str(), told.reason),
                rule: told.rule,
            },
        }
    }
}

/// Returns whether the host and port are the same, or differ only by an upgrade from HTTP to HTTPS. A downgrade does
/// not match.
fn same_server(approved: &Destination, to: &Destination) -> bool {
    let same = (approved.port(), approved.is_encrypted()) == (to.port(), to.is_encrypted());
    let upgraded = (approved.port(), approved.is_encrypted()) == (80, false) && (to.port(), to.is_encrypted()) == (443, true);
    approved.host() == to.host() && (same || upgraded)
}
