//! Which of many tools were looked for and found: those are offered from then on.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// How long it may take until what was found is offered; called by its name it is all the same.
const PATIENCE: Duration = Duration::from_secs(2);

/// Of one session; whoever has a copy sees the same.
#[derive(Clone)]
pub struct Found {
    tools: Arc<Mutex<BTreeSet<(String, String)>>>,
    /// How often something was found, and how much of that is offered.
    wanted: watch::Sender<u64>,
    offered: watch::Sender<u64>,
}

impl Default for Found {
    fn default() -> Self {
        Self { tools: Arc::default(), wanted: watch::Sender::new(0), offered: watch::Sender::new(0) }
    }
}

impl Found {
    /// Changes whenever there is more to be offered.
    pub fn wanted(&self) -> watch::Receiver<u64> {
        self.wanted.subscribe()
    }

    /// What was found up to here is offered.
    pub fn is_offered(&self, up_to: u64) {
        self.offered.send_replace(up_to);
    }

    /// Offered without being looked for: they were used before.
    pub fn know(&self, tools: impl IntoIterator<Item = (String, String)>) {
        self.tools.lock().unwrap_or_else(PoisonError::into_inner).extend(tools);
    }

    pub(super) fn has(&self, server: &str, tool: &str) -> bool {
        let tools = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
        tools.contains(&(server.to_owned(), tool.to_owned()))
    }

    /// Ready once they are offered, where anybody sees to that.
    pub(super) async fn add(&self, more: Vec<(String, String)>) {
        let is_new = {
            let mut tools = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
            more.into_iter().filter(|one| tools.insert(one.clone())).count() > 0
        };
        if !is_new {
            return;
        }
        let mut offered = self.offered.subscribe();
        let mut number = 0;
        self.wanted.send_modify(|count| {
            *count += 1;
            number = *count;
        });
        if self.wanted.receiver_count() > 0 {
            let _ = tokio::time::timeout(PATIENCE, offered.wait_for(|offered| *offered >= number)).await;
        }
    }
}
