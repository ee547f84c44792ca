//! The `WebSearch` tool, which sends a query to the session's search service and returns the pages found.

use super::report;
use crate::policy::url::HostPattern;
use crate::ports::{BoxFuture, RunContext, SearchEngine, SearchRequest};
use crate::protocol::{Action, ErrorCode, Proposal, ToolError};
use crate::tools::alias::Alias;
use crate::tools::call_result::{CallResult, ToolOutput};
use crate::tools::draft::{CallDraft, CallEffect};
use crate::tools::error::invalid;
use crate::tools::paths::Paths;
use crate::tools::session_search::WEB_SEARCH;
use crate::tools::settings::ToolSettings;
use crate::tools::tool::Tool;
use futures_util::FutureExt;
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;

const DEFAULT_COUNT: usize = 8;
const MAX_COUNT: usize = 20;
/// Maximum number of characters in a query, which is what services accept.
const QUERY_CHARS: usize = 400;
const DOMAINS: usize = 10;
/// Timeout in seconds. The service's own time limit ends a search before that.
const TIMEOUT_SECONDS: u64 = 120;

pub(in crate::tools) struct WebSearch;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::tools) struct Arguments {
    query: String,
    /// Limits the results to these domains, such as `docs.rs`.
    #[serde(alias = "allowed_domains", alias = "include_domains")]
    domains: Option<Vec<String>>,
    /// Maximum number of results: 8 by default, at most 20.
    #[serde(alias = "max_results", alias = "num_results")]
    #[schemars(range(min = 1, max = 20))]
    count: Option<usize>,
}

pub(in crate::tools) struct Work {
    engine: Arc<dyn SearchEngine>,
    request: SearchRequest,
}

impl Tool for WebSearch {
    const NAME: &'static str = WEB_SEARCH;
    const ALIASES: &'static [Alias<Arguments>] = &[
        Alias::with_same_arguments("web_search"),
        Alias::with_same_arguments("search_web"),
        Alias::with_same_arguments("google_web_search"),
        Alias::with_same_arguments("internet_search"),
    ];
    const CAPABILITY: &'static str = "Network.Search";
    const DESCRIPTION: &'static str = include_str!("../../../assets/tools/WebSearch.md");
    type Arguments = Arguments;
    type Work = Work;

    fn actions(arguments: &Arguments, paths: &Paths<'_>) -> Result<Vec<Action>, ToolError> {
        Ok(vec![action(&request(arguments)?, paths.settings.session.search.engine().as_deref())])
    }

    fn draft(arguments: Arguments, settings: &ToolSettings) -> Result<CallDraft<Work>, ToolError> {
        let request = request(&arguments)?;
        let is_secret = |text: &str| settings.redactor.holds_secret(text);
        if is_secret(&request.query) || request.domains.iter().any(|domain| is_secret(domain)) {
            return Err(ToolError::new(
                ErrorCode::PolicyDenied,
                "the query contains a secret, so it was not sent; search without it",
            ));
        }
        let Some(engine) = settings.session.search.engine() else { return Err(no_service_error()) };
        settings.session.search.check()?;
        engine.check()?;
        let (name, host) = (engine.name(), engine.host());
        let within = match &request.domains[..] {
            [] => String::new(),
            domains => format!(" on {}", domains.join(", ")),
        };
        let summary = format!("Search the web for “{}”{within} with {name} ({host})", request.query);
        let mut notes = Vec::new();
        if engine.rewrites_query() {
            notes.push(format!("{name} may reword the query; the result lists the queries it used"));
        }
        Ok(CallDraft {
            summary: summary.clone(),
            actions: vec![action(&request, Some(&*engine))],
            proposal: Some(Proposal { summary, bytes: request.query.len() as u64, notes, ..Proposal::default() }),
            effect: CallEffect::Runs { timeout_seconds: TIMEOUT_SECONDS, files: Vec::new() },
            work: Work { engine, request },
        })
    }

    fn run(work: Work, settings: Arc<ToolSettings>, context: RunContext) -> BoxFuture<'static, CallResult> {
        async move {
            let Work { engine, request } = work;
            settings.session.search.count()?;
            let answer = tokio::select! {
                answer = engine.search(request.clone()) => answer?,
                () = context.interrupt.cancelled() => {
                    return Err(ToolError::new(ErrorCode::Cancelled, "stopped by the user").into());
                }
            };
            let max_bytes = settings.max_output_bytes.min(context.output_limit());
            let text = report::text(engine.name(), &request, &answer, max_bytes);
            Ok(ToolOutput { used: answer.used.map(Box::new), ..ToolOutput::from(text) })
        }
        .boxed()
    }
}

fn action(request: &SearchRequest, engine: Option<&dyn SearchEngine>) -> Action {
    let (service, host) = engine.map(|engine| (engine.name().to_owned(), engine.host().to_owned())).unwrap_or_default();
    Action::Search { query: request.query.clone(), domains: request.domains.clone(), service, host }
}

fn no_service_error() -> ToolError {
    ToolError::new(
        ErrorCode::ToolExecutionFailed,
        "no web search is set up, and the model's provider has none; the user can set `search.provider` in config.toml. \
         HttpRequest fetches a URL that you know",
    )
}

/// Returns the search request in the form in which it is checked, shown and sent.
fn request(arguments: &Arguments) -> Result<SearchRequest, ToolError> {
    let query = arguments.query.split_whitespace().collect::<Vec<_>>().join(" ");
    if query.is_empty() {
        return Err(invalid("`query` is empty; specify the words to search for"));
    }
    if query.chars().any(char::is_control) {
        return Err(invalid("`query` contains control characters; remove them"));
    }
    let length = query.chars().count();
    if length > QUERY_CHARS {
        return Err(invalid(format!("`query` has {length} characters; the limit is {QUERY_CHARS}")));
    }
    let count = arguments.count.unwrap_or(DEFAULT_COUNT);
    if !(1..=MAX_COUNT).contains(&count) {
        return Err(invalid(format!("`count` is {count}; it must be 1 to {MAX_COUNT}")));
    }
    let given = arguments.domains.as_deref().unwrap_or_default();
    if given.len() > DOMAINS {
        return Err(invalid(format!("`domains` has {} entries; the limit is {DOMAINS}", given.len())));
    }
    let domains = given.iter().map(|domain| parse_domain(domain)).collect::<Result<_, _>>()?;
    Ok(SearchRequest { query, domains, count })
}

fn parse_domain(given: &str) -> Result<String, ToolError> {
    let domain = given.trim().to_lowercase();
    if domain.contains('*') || domain.contains(':') {
        return Err(invalid(format!("`domains`: `{}` is not a domain; expected one such as `docs.rs`", domain.escape_debug())));
    }
    HostPattern::parse(&domain, 0).map_err(|reason| invalid(format!("`domains`: {reason}")))?;
    Ok(domain)
}
