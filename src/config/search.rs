//! Web search settings: the service, its address and its API key.

use super::file::{self, Value, Values};
use super::{ConfigError, address, schema};

/// A search service that is configured by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SearchService {
    Searxng,
    Brave,
    Tavily,
}

/// Web search settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Search {
    pub choice: SearchChoice,
    /// Maximum number of searches in a session.
    pub most: u64,
}

/// The configured web search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SearchChoice {
    /// The search of the model's provider; `by_name` if the settings ask for it.
    Model { by_name: bool },
    /// A service, with its base URL without a trailing slash.
    Endpoint { service: SearchService, base_url: String },
}

/// A service that aye knows.
struct ServiceDefaults {
    service: SearchService,
    /// Value of `search.provider`; keys are saved under this name.
    name: &'static str,
    base_url: &'static str,
    /// Environment variables with the key; messages name the first one. Empty if the service needs no key.
    key_variables: &'static [&'static str],
}

const KNOWN: &[ServiceDefaults] = &[
    ServiceDefaults { service: SearchService::Searxng, name: "searxng", base_url: "http://localhost:8080", key_variables: &[] },
    ServiceDefaults {
        service: SearchService::Brave,
        name: "brave",
        base_url: "https://api.search.brave.com",
        key_variables: &["BRAVE_API_KEY", "BRAVE_SEARCH_API_KEY"],
    },
    ServiceDefaults {
        service: SearchService::Tavily,
        name: "tavily",
        base_url: "https://api.tavily.com",
        key_variables: &["TAVILY_API_KEY"],
    },
];

const PROVIDER: [&str; 2] = ["search", "provider"];
const BASE_URL: [&str; 2] = ["search", "base_url"];

impl SearchService {
    /// Returns the name in the settings and of the saved key: `brave`.
    pub(crate) fn as_str(self) -> &'static str {
        KNOWN.iter().find(|known| known.service == self).map_or("", |known| known.name)
    }
}

/// Returns the names of the search services that need a key.
pub(crate) fn services_with_key() -> impl Iterator<Item = &'static str> {
    KNOWN.iter().filter(|known| !known.key_variables.is_empty()).map(|known| known.name)
}

/// Returns the environment variables with the key of a search service; empty for any other name.
pub(crate) fn search_key_variables(name: &str) -> &'static [&'static str] {
    KNOWN.iter().find(|known| known.name == name).map_or(&[], |known| known.key_variables)
}

/// Returns all environment variables with keys of search services.
pub(super) fn all_key_variables() -> impl Iterator<Item = &'static str> {
    KNOWN.iter().flat_map(|known| known.key_variables).copied()
}

impl Search {
    /// Reads the settings, and checks the address of the service without any request.
    pub(super) fn from_values(values: &Values) -> Result<Self, ConfigError> {
        let entry = file::entry(values, &BASE_URL);
        let base_url = entry.and_then(|entry| if let Value::Text(given) = &entry.value { Some((entry, given)) } else { None });
        let base_url = base_url.map(|(entry, given)| {
            address::check(given)
                .map_err(|problem| ConfigError::single(problem.with_location(format!("{}: `search.base_url`", entry.origin))))
        });
        let base_url = base_url.transpose()?;
        let named = file::text(values, &PROVIDER);
        let choice = match KNOWN.iter().find(|known| Some(known.name) == named) {
            Some(known) => {
                SearchChoice::Endpoint { service: known.service, base_url: base_url.unwrap_or_else(|| known.base_url.to_owned()) }
            }
            None => SearchChoice::Model { by_name: named.is_some() },
        };
        Ok(Self { choice, most: max_searches(values) })
    }
}

fn max_searches(values: &Values) -> u64 {
    let path = ["search", "max_per_session"].map(str::to_owned);
    match values.get(path.as_slice()).map(|entry| &entry.value) {
        Some(Value::Number(number)) => *number,
        _ => schema::find(&path).and_then(|key| key.default.parse().ok()).unwrap_or_default(),
    }
}
