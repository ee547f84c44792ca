//! Web search of a session, as configured in the settings.

use super::context::AppContext;
use crate::config::{Credentials, Environment, SearchChoice, SearchService, SearchSettings, search_key_variables};
use crate::tools::{Endpoint, SearchKey, ServiceKind, SessionSearch};
use std::sync::Arc;

/// Creates the configured web search without sending a request.
pub(crate) fn session_search(app: &AppContext) -> SessionSearch {
    let SearchSettings { choice, most } = app.settings.search.clone();
    let (service, base_url) = match choice {
        SearchChoice::Model { by_name } => return SessionSearch::for_model(by_name, most),
        SearchChoice::Endpoint { service, base_url } => (service, base_url),
    };
    let kind = match service {
        SearchService::Searxng => ServiceKind::Searxng,
        SearchService::Brave => ServiceKind::Brave,
        SearchService::Tavily => ServiceKind::Tavily,
    };
    let name = service.as_str();
    let key = ServiceKey { name, environment: app.environment.clone(), credentials: app.credentials.clone() };
    match Endpoint::new(kind, &base_url, Arc::new(key)) {
        Ok(endpoint) => SessionSearch::with_engine(Arc::new(endpoint), most),
        Err(error) => {
            // The settings were checked, so only the client can reject this address.
            tracing::warn!(%error, "the web search is not available");
            SessionSearch::default()
        }
    }
}

/// API key for a search service, from the environment or saved with `aye auth login`.
struct ServiceKey {
    name: &'static str,
    environment: Environment,
    credentials: Credentials,
}

impl ServiceKey {
    fn in_environment(&self) -> Option<&str> {
        search_key_variables(self.name).iter().find_map(|name| self.environment.get(name))
    }
}

impl SearchKey for ServiceKey {
    fn missing_hint(&self) -> Option<String> {
        if self.in_environment().is_some() {
            return None;
        }
        // The key may have been saved since the session began.
        self.credentials.reload();
        match self.credentials.storage_of(self.name) {
            Ok(Some(_)) => None,
            Ok(None) => {
                let variable = search_key_variables(self.name).first().copied().unwrap_or_default();
                Some(format!("run `aye auth login {}`, or set {variable}", self.name))
            }
            Err(error) => Some(error.to_string()),
        }
    }

    fn reveal(&self) -> Result<Option<String>, String> {
        if let Some(key) = self.in_environment() {
            return Ok(Some(key.to_owned()));
        }
        Ok(self.credentials.secret(self.name)?.map(|key| key.reveal().to_owned()))
    }
}
