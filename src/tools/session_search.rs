//! Web search of a session: its service, and the number of remaining searches.

use crate::ports::SearchEngine;
use crate::protocol::{ErrorCode, ToolError, ToolResult, ToolStatus};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::watch;

/// Name of the tool that searches.
pub(super) const WEB_SEARCH: &str = "WebSearch";

/// The web search of a session. Cheap to clone; all clones share the service and the count.
#[derive(Clone)]
pub(crate) struct SessionSearch(Arc<Shared>);

struct Shared {
    source: SearchSource,
    /// Search engine of the current model's provider.
    of_model: Mutex<Option<Arc<dyn SearchEngine>>>,
    most: u64,
    sent: AtomicU64,
    /// Number of times that the service was changed.
    changes: watch::Sender<u64>,
}

/// Source of the service.
enum SearchSource {
    Nothing,
    Endpoint(Arc<dyn SearchEngine>),
    /// The provider of the model. `anywhere`: whether it may also be used at an address that is not its own.
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

    /// Creates the search with a configured service.
    pub(crate) fn with_engine(engine: Arc<dyn SearchEngine>, most: u64) -> Self {
        Self::new(SearchSource::Endpoint(engine), most)
    }

    /// Creates the search of the model's provider. `anywhere`: whether it is also used at an address that is not the
    /// provider's own, where the server may have no search.
    pub(crate) fn for_model(anywhere: bool, most: u64) -> Self {
        Self::new(SearchSource::Model { anywhere }, most)
    }

    /// Returns the service that a search would use now.
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

    /// Replaces the search after a model change; `None` if the provider has no search.
    pub(crate) fn set_model(&self, engine: Option<Arc<dyn SearchEngine>>) {
        let before = self.is_available();
        *self.0.of_model.lock().unwrap_or_else(PoisonError::into_inner) = engine;
        if self.is_available() != before {
            self.0.changes.send_modify(|count| *count += 1);
        }
    }

    /// Returns a receiver that changes whenever the tool becomes available or unavailable.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.0.changes.subscribe()
    }

    /// Counts a search that an earlier process of the session made.
    pub(crate) fn note_result(&self, result: &ToolResult) {
        if result.tool_name == WEB_SEARCH && result.status == ToolStatus::Succeeded {
            self.0.sent.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Checks that another search is allowed.
    pub(super) fn check(&self) -> Result<(), ToolError> {
        if self.0.sent.load(Ordering::Relaxed) < self.0.most { Ok(()) } else { Err(self.limit_error()) }
    }

    /// Counts a search that is about to be sent.
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
