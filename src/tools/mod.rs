//! The tools: planning and execution, one file per tool.

mod alias;
mod amendment;
mod annotations;
mod argument_names;
mod argument_shapes;
mod arguments;
mod background;
mod blocking;
mod call_result;
mod change_log;
mod changes;
mod crash_outcome;
mod custom;
mod deferred_error;
mod definition;
mod diff;
mod document;
mod draft;
mod editor_buffers;
mod editor_check;
mod error;
mod executable_files;
mod http;
mod mcp;
#[cfg(feature = "fuzzing")]
pub mod measure;
mod naming;
mod on_demand;
mod open;
mod output;
mod paths;
mod preimage_watch;
mod read;
mod read_state;
mod redaction;
mod registry;
mod router;
mod sandbox;
mod search;
mod sessions;
mod settings;
mod shell;
#[cfg(test)]
pub(crate) mod tests;
mod text;
mod text_tools;
mod tool;
mod toolset;
mod write;

pub use annotations::{Served, ToolHints};
pub use background::Commands;
pub use change_log::ChangeLog;
pub use crash_outcome::found;
pub use custom::{CustomTool, ManifestError, Source, manifest_schema};
pub use diff::line_hunks;
pub use editor_buffers::InEditor;
pub use mcp::{Pins, Remote, RemoteTools};
pub use naming::Conflict;
pub use on_demand::{FIND_TOOLS, LoadedTools};
pub use read_state::ReadState;
pub use registry::{built_in_names, name_of, starts_nothing};
pub use router::Router;
pub use sandbox::{
    Caches, GitOutside, GlobalConfig, HostCapabilities, Machine, RepositoryTrust, SandboxPolicy, Sources, Visible, cache_use,
    prune_caches,
};
pub use settings::Settings;
pub use shell::launch::ServerLauncher;
pub use shell::preview::Recovered;
pub use text_tools::TextTools;
pub use toolset::{ToolSources, Toolset, known};
#[cfg(feature = "fuzzing")]
pub use write::apply_patch::patched;
#[cfg(feature = "fuzzing")]
pub use write::edited;
