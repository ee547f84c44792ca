//! Progress of a running call.

use crate::protocol::EffectsProgress;
use std::fmt;
use std::sync::Arc;

/// Sender of a call's progress. Without a receiver, the progress is discarded.
#[derive(Clone, Default)]
pub(crate) struct ProgressSender(Option<Arc<dyn Fn(EffectsProgress) + Send + Sync>>);

impl ProgressSender {
    /// Returns a sender that passes progress to `receive`, which must not block.
    pub(crate) fn new(receive: impl Fn(EffectsProgress) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(receive)))
    }

    pub(crate) fn send(&self, progress: EffectsProgress) {
        if let Some(receive) = &self.0 {
            receive(progress);
        }
    }
}

impl fmt::Debug for ProgressSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ProgressSender").field(&self.0.is_some()).finish()
    }
}
