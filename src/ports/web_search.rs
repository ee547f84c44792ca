//! Web search interface for sending a query to a search service and receiving the pages found.

use super::BoxFuture;
use crate::protocol::{ModelUse, ToolError};

/// Search request, as approved by the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SearchRequest {
    pub query: String,
    /// Domains to restrict the results to; empty to search the whole web.
    pub domains: Vec<String>,
    /// Maximum number of pages to return.
    pub count: usize,
}

/// Page found by the service. Its text is untrusted and can be of any length.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SearchResult {
    pub title: String,
    pub url: String,
    pub excerpt: String,
    /// Date or age, as formatted by the service.
    pub date: Option<String>,
}

/// Search service's response.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct SearchAnswer {
    pub pages: Vec<SearchResult>,
    /// Summary written by the provider's model, if any.
    pub summary: Option<String>,
    /// Queries that were actually sent, if the service chooses its own queries and reports them.
    pub queries: Vec<String>,
    /// Model usage, if the search runs as a request to a model.
    pub used: Option<ModelUse>,
}

/// Search service: either a dedicated search endpoint or the model's provider.
pub(crate) trait SearchEngine: Send + Sync {
    /// Returns the service name shown to the user, such as `Brave`.
    fn name(&self) -> &str;
    /// Returns the host that receives the query, including the port unless it is the default.
    fn host(&self) -> &str;
    /// Returns whether the address is known to be a search service, because it was configured as one or is a
    /// provider's own address.
    fn is_certain(&self) -> bool;
    /// Returns whether the service may reword the query before searching.
    fn rewrites_query(&self) -> bool;
    /// Checks whether a request could be sent, without sending one.
    ///
    /// # Errors
    ///
    /// Returns an error that names what is missing, such as an API key, and says how to add it.
    fn check(&self) -> Result<(), ToolError>;
    /// Sends a query. Dropping the future cancels the request.
    fn search(&self, request: SearchRequest) -> BoxFuture<'static, Result<SearchAnswer, ToolError>>;
}
