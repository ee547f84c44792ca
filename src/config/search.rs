//! Web search settings: the service, its address, and its API key.

use super::file::{self, ConfigValue, Values};
use super::{ConfigError, address, schema};

/// Search service that can be selected by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SearchService {
    Searxng,
    Brave,
    Tavily,
}

/// Web search settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SearchSettings {
    pub choice: SearchChoice,
    /// Maximum number of searches per session.
    pub most: u64,
}

/// Search service to use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SearchChoice {
    /// The model's provider. `by_name` is whether the settings select it by name.
    Model { by_name: bool },
    /// A search service at this base URL, which has no trailing slash.
    Endpoint { service: SearchService, base_url: String },
}

/// Properties of a supported search service.
struct ServiceDefaults {
    service: SearchService,
    /// Value of `search.provider` that selects the service. Its key is saved under the same name.
    name: &'static str,
    base_url: &'static str,
    /// Environment variables that may contain the key. Empty if the service needs no key. Messages mention only the
    /// first one.
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
    /// Returns the service's name in the settings, under which its key is also saved: `brave`.
    pub(crate) fn as_str(self) -> &'static str {
        KNOWN.iter().find(|known| known.service == self).map_or("", |known| known.name)
    }
}

/// Returns the names of the search services that require a key.
pub(crate) fn services_with_key() -> impl Iterator<Item = &'static str> {
    KNOWN.iter().filter(|known| !known.key_variables.is_empty()).map(|known| known.name)
}

/// Returns the environment variables that may contain a search service's key. Empty for any other name.
pub(crate) fn search_key_variables(name: &str) -> &'static [&'static str] {
    KNOWN.iter().find(|known| known.name == name).map_or(&[], |known| known.key_variables)
}

/// Returns all environment variables that may contain a search service's key.
pub(super) fn all_key_variables() -> impl Iterator<Item = &'static str> {
    KNOWN.iter().flat_map(|known| known.key_variables).copied()
}

impl SearchSettings {
    /// Reads the settings. The service's address is validated without sending any requests.
    pub(super) fn from_values(values: &Values) -> Result<Self, ConfigError> {
        let entry = file::entry(values, &BASE_URL);
        let base_url =
            entry.and_then(|entry| if let ConfigValue::Text(given) = &entry.value { Some((entry, given)) } else { None });
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
    let path = ["search", "max_per_session"];
    file::number(values, &path).unwrap_or_else(|| schema::default_number(&path))
}
