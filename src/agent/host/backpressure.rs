//! Backpressure for slow front ends. Only streamed output waits for the front end.

use tokio::sync::watch;

/// Signals whether the front end currently accepts streamed data.
#[derive(Clone, Default)]
pub(super) struct Backpressure(Option<watch::Receiver<bool>>);

impl Backpressure {
    pub(super) fn new(room: Option<watch::Receiver<bool>>) -> Self {
        Self(room)
    }

    /// Returns whether the front end accepts more streamed data. A closed front end never delays output.
    pub(super) fn is_there(&self) -> bool {
        self.0.as_ref().is_none_or(|room| *room.borrow() || room.has_changed().is_err())
    }

    pub(super) async fn wait(&mut self) {
        if let Some(room) = &mut self.0
            && room.wait_for(|room| *room).await.is_err()
        {
            self.0 = None;
        }
    }
}
