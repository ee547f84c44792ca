//! Search services that can be configured: their names, URLs and response formats.

use super::service_request::ServiceRequest;
use super::{brave, searxng, tavily};
use crate::ports::{SearchRequest, SearchResult};

/// A search service that has an API of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ServiceKind {
    Searxng,
    Brave,
    Tavily,
}

impl ServiceKind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Searxng => "SearXNG",
            Self::Brave => "Brave",
            Self::Tavily => "Tavily",
        }
    }

    pub(super) fn needs_key(self) -> bool {
        match self {
            Self::Searxng => false,
            Self::Brave | Self::Tavily => true,
        }
    }

    pub(super) fn request(self, request: &SearchRequest, key: Option<&str>) -> ServiceRequest {
        match self {
            Self::Searxng => searxng::request(request),
            Self::Brave => brave::request(request, key.unwrap_or_default()),
            Self::Tavily => tavily::request(request, key.unwrap_or_default()),
        }
    }

    /// Parses the pages listed in a response.
    pub(super) fn pages(self, body: &[u8]) -> Result<Vec<SearchResult>, serde_json::Error> {
        match self {
            Self::Searxng => searxng::pages(body),
            Self::Brave => brave::pages(body),
            Self::Tavily => tavily::pages(body),
        }
    }

    /// Returns the likely cause of an error status, if it has a known meaning for this service.
    pub(super) fn cause(self, status: u16) -> Option<&'static str> {
        match (self, status) {
            (Self::Searxng, 403) => Some("add `json` to `search.formats` in the SearXNG settings"),
            _ => None,
        }
    }
}
