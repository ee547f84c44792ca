//! The tools that have been loaded in a session, in the order in which they were loaded.

use crate::protocol::{Action, ToolResult, ToolStatus};
use crate::tools::mcp::full_name;
use crate::tools::tool::AnyTool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// Name of the tool that loads other tools.
pub(crate) const FIND_TOOLS: &str = "FindTools";
/// Maximum time to wait for loaded tools to be offered. A tool can be called by name even before that.
const TIMEOUT: Duration = Duration::from_secs(2);

/// The tools loaded in one session. Cheap to clone, and all clones share one list.
#[derive(Clone)]
pub(crate) struct LoadedTools {
    /// Names of the loaded tools, without duplicates. Each is either the form used in policies or the one that the
    /// model sees.
    names: Arc<Mutex<Vec<String>>>,
    /// Number of loads requested so far. `offered` is the number of those whose tools are already offered.
    wanted: watch::Sender<u64>,
    offered: watch::Sender<u64>,
}

impl Default for LoadedTools {
    fn default() -> Self {
        Self { names: Arc::default(), wanted: watch::Sender::new(0), offered: watch::Sender::new(0) }
    }
}

impl LoadedTools {
    /// Returns a receiver that is notified whenever tools are loaded.
    pub(crate) fn watch(&self) -> watch::Receiver<u64> {
        self.wanted.subscribe()
    }

    /// Records that the tools of the first `up_to` loads are now being offered.
    pub(crate) fn mark_offered(&self, up_to: u64) {
        self.offered.send_replace(up_to);
    }

    /// Loads the tools that a planned call uses.
    pub(crate) fn note_plan(&self, actions: &[Action]) {
        self.insert(actions.iter().filter_map(|action| match action {
            Action::Invoke { server, tool, .. } => Some(full_name(server, tool)),
            _ => None,
        }));
    }

    /// Loads the tool that a successful call used or, for a `FindTools` call, the tools that it found.
    pub(crate) fn note_result(&self, result: &ToolResult) {
        if result.status != ToolStatus::Succeeded {
            return;
        }
        match result.tool_name.as_str() {
            FIND_TOOLS => self.insert(parse_names(&result.output_text).map(str::to_owned)),
            used => self.insert([used.to_owned()]),
        };
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn has(&self, tool: &dyn AnyTool) -> bool {
        let names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        names.iter().any(|name| has_name(tool, name))
    }

    /// Loads tools. If the list is being watched, waits until they are offered.
    pub(super) async fn add(&self, names: Vec<String>) {
        if !self.insert(names) {
            return;
        }
        let mut offered = self.offered.subscribe();
        let mut number = 0;
        self.wanted.send_modify(|count| {
            *count += 1;
            number = *count;
        });
        if self.wanted.receiver_count() > 0 {
            let _ = tokio::time::timeout(TIMEOUT, offered.wait_for(|offered| *offered >= number)).await;
        }
    }

    /// Adds names to the list. Returns whether any of them is new.
    fn insert(&self, more: impl IntoIterator<Item = String>) -> bool {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        let before = names.len();
        for name in more {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names.len() > before
    }
}

/// Returns whether a tool has this name, either in policies or for the model.
pub(super) fn has_name(tool: &dyn AnyTool, name: &str) -> bool {
    tool.name() == name || tool.offered_name() == name
}

/// Parses the tool names in the output of `FindTools`.
pub(super) fn parse_names(output: &str) -> impl Iterator<Item = &str> {
    output.lines().filter(|line| !line.starts_with('[')).filter_map(|line| line.split_once(": ")).map(|(name, _)| name)
}
