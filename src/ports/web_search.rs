//! Web search interface: sends one query and returns the pages that a service found.

use super::BoxFuture;
use crate::protocol::{ModelUse, ToolError};

/// Search request as the user approved it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SearchRequest {
    pub query: String,
    /// Domains that the results are limited to; empty for the whole web.
    pub domains: Vec<String>,
    /// Maximum number of pages.
    pub count: usize,
}

/// Page that a service found. Its text is untrusted and of any length.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SearchResult {
    pub title: String,
    pub url: String,
    pub excerpt: String,
    /// Date or age, as formatted by the service.
    pub date: Option<String>,
}

/// Response of a service.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct SearchAnswer {
    pub pages: Vec<SearchResult>,
    /// Summary written by the provider's model.
    pub summary: Option<String>,
    /// Queries that were sent, if the service chooses and reports them.
    pub queries: Vec<String>,
    /// Model usage, if the search is a request to a model.
    pub used: Option<ModelUse>,
}

/// Search service: a search endpoint, or the model's provider.
pub(crate) trait SearchEngine: Send + Sync {
    /// Returns the name for the user: `Brave`.
    fn name(&self) -> &str;
    /// Returns the host that receives the query, with its port if it is not the default.
    fn host(&self) -> &str;
    /// Returns whether the address is known to be a search service: a configured one, or a provider at its own address.
    fn is_certain(&self) -> bool;
    /// Returns whether the service may reword the query.
    fn rewrites_query(&self) -> bool;
    /// Checks whether a request can be sent, without sending it.
    ///
    /// # Errors
    ///
    /// Returns an error that names the missing part, such as an API key, and how to add it.
    fn check(&self) -> Result<(), ToolError>;
    /// Sends one query. Dropping the future cancels the request.
    fn search(&self, request: SearchRequest) -> BoxFuture<'static, Result<SearchAnswer, ToolError>>;
}
