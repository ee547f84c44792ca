//! A session's web search: the service that performs it, and the number of searches that remain.

use crate::ports::SearchEngine;
use crate::protocol::{ErrorCode, ToolError, ToolResult, ToolStatus};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::watch;

/// Name of the tool that searches the web.
pub(super) const WEB_SEARCH: &str = "WebSearch";

/// A session's web search. Cheap to clone, and all clones share the service and the count.
#[derive(Clone)]
pub(crate) struct SessionSearch(Arc<Shared>);

struct Shared {
    source: SearchSource,
    /// Search engine of the current model's provider.
    of_model: Mutex<Option<Arc<dyn SearchEngine>>>,
    most: u64,
    sent: AtomicU64,
    /// Number of times that the search became available or unavailable.
    changes: watch::Sender<u64>,
}

/// Where the search service comes from.
enum SearchSource {
    Nothing,
    Endpoint(Arc<dyn SearchEngine>),
    /// The model's provider. `anywhere` says whether an address other than the provider's own is acceptable.
    Model {
        anywhere: bool,
    },
}

impl Default for SessionSearch {
    fn default() -> Self {
        Self::new(SearchSource::Nothing, 0)
    }
}

impl SessionSearch {
    fn new(source: SearchSource, most: u64) -> Self {
        let (of_model, sent) = (Mutex::default(), AtomicU64::new(0));
        Self(Arc::new(Shared { source, of_model, most, sent, changes: watch::Sender::new(0) }))
    }

    /// Creates a search that uses a configured service.
    pub(crate) fn with_engine(engine: Arc<dyn SearchEngine>, most: u64) -> Self {
        Self::new(SearchSource::Endpoint(engine), most)
    }

    /// Creates a search that uses the model's provider. `anywhere` says whether an address other than the provider's
    /// own, at which the server may not offer a search, is acceptable.
    pub(crate) fn for_model(anywhere: bool, most: u64) -> Self {
        Self::new(SearchSource::Model { anywhere }, most)
    }

    /// Returns the service that a search would use at this moment.
    pub(super) fn engine(&self) -> Option<Arc<dyn SearchEngine>> {
        match &self.0.source {
            SearchSource::Nothing => None,
            SearchSource::Endpoint(engine) => Some(Arc::clone(engine)),
            SearchSource::Model { anywhere } => {
                let of_model = self.0.of_model.lock().unwrap_or_else(PoisonError::into_inner);
                of_model.clone().filter(|engine| *anywhere || engine.is_certain())
            }
        }
    }

    pub(super) fn is_available(&self) -> bool {
        self.engine().is_some()
    }

    /// Replaces the search engine after a model change. `engine` is `None` if the provider has no search.
    pub(crate) fn set_model(&self, engine: Option<Arc<dyn SearchEngine>>) {
        let before = self.is_available();
        *self.0.of_model.lock().unwrap_or_else(PoisonError::into_inner) = engine;
        if self.is_available() != before {
            self.0.changes.send_modify(|count| *count += 1);
        }
    }

    /// Returns a receiver that is notified whenever the tool becomes available or unavailable.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.0.changes.subscribe()
    }

    /// Counts a search that an earlier process of this session made.
    pub(crate) fn note_result(&self, result: &ToolResult) {
        if result.tool_name == WEB_SEARCH && result.status == ToolStatus::Succeeded {
            self.0.sent.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Checks that another search is allowed.
    pub(super) fn check(&self) -> Result<(), ToolError> {
        if self.0.sent.load(Ordering::Relaxed) < self.0.most { Ok(()) } else { Err(self.limit_error()) }
    }

    /// Counts a search that is about to be sent. Fails if the limit has been reached.
    pub(super) fn count(&self) -> Result<(), ToolError> {
        let next = |sent: u64| (sent < self.0.most).then_some(sent + 1);
        let counted = self.0.sent.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
        counted.map(drop).map_err(|_| self.limit_error())
    }

    fn limit_error(&self) -> ToolError {
        let most = self.0.most;
        let message = format!(
            "the limit of {most} web searches for this session has been reached (`search.max_per_session`); \
             continue with what you have, or fetch a URL that you know"
        );
        ToolError::new(ErrorCode::PolicyDenied, message)
    }
}
