//! Tools, with one file per tool, and the code that plans and runs them.

mod agents;
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
mod check_scripts;
mod crash_outcome;
mod custom;
mod deferred_error;
mod definition;
mod described_list;
mod diagnostics;
mod diff;
mod document;
mod draft;
mod editor_buffers;
mod editor_check;
mod error;
mod executable_files;
mod hooks;
mod http;
mod ignored;
mod mcp;
#[cfg(feature = "fuzzing")]
pub(crate) mod measure;
mod naming;
mod on_demand;
mod open;
mod output;
mod patch_file;
mod paths;
mod planning;
mod preimage_watch;
mod read;
mod read_state;
mod redaction;
mod registry;
mod router;
mod sandbox;
mod search;
mod session_agents;
mod session_hooks;
mod session_search;
mod session_skills;
mod sessions;
mod settings;
mod shell;
mod skills;
mod suggest_memory;
#[cfg(test)]
pub(crate) mod tests;
mod text;
mod text_tools;
mod tool;
mod toolset;
mod web_search;
mod write;

pub(crate) use agents::{AgentTools, is_called as is_agent_call};
pub(crate) use annotations::{ToolDetails, ToolHints};
pub(crate) use background::Commands;
pub(crate) use change_log::ChangeLog;
pub(crate) use crash_outcome::assess_outcome;
pub(crate) use custom::{CustomTool, ManifestError, Source, ToolOwner, ToolSchema, manifest_schema};
pub(crate) use diff::line_hunks;
pub(crate) use editor_buffers::EditorConnection;
pub(crate) use mcp::{Pins, RemoteConfig, RemoteTools};
pub(crate) use naming::Conflict;
pub(crate) use on_demand::{FIND_TOOLS, LoadedTools};
pub(crate) use patch_file::{
    CollectedChanges, FileState, LoggedVerdict, MAX_BYTES as MAX_PATCH_BYTES, OmittedPath, PatchFile, PatchHeader, PatchReview,
    PolicyStamp, is_older,
};
pub(crate) use read_state::ReadState;
pub(crate) use registry::{all_names, built_in_names, canonical_name, spawns_no_process};
pub(crate) use router::Router;
pub(crate) use sandbox::{
    Caches, GitConfigPaths, GitOutside, GlobalConfig, HostCapabilities, RepositoryTrust, SandboxPolicy, SystemFacts, Visible,
    cache_use, prune_caches,
};
pub(crate) use session_agents::{AGENT, SessionAgents};
pub(crate) use session_hooks::{CheckHook, HookFiles, SessionHooks};
pub(crate) use session_search::SessionSearch;
pub(crate) use session_skills::{SKILL, SessionSkills};
pub(crate) use settings::{CommandSettings, CommitTarget, HttpAccess, PathAccess, SessionServices, ToolSettings};
pub(crate) use shell::launch::{ReadOnlyLauncher, ServerLauncher};
pub(crate) use shell::preview::{RecoveryResult, finish_commits, forget_undecided, prune_undecided, undecided_use};
pub(crate) use toolset::{ToolSources, Toolset, check_known};
pub(crate) use web_search::{Endpoint, SearchKey, ServiceKind};
#[cfg(feature = "fuzzing")]
pub use write::apply_patch::apply_to_text;
pub(crate) use write::apply_patch_file::{APPLY_PATCH_FILE, FILES_PER_CALL};
#[cfg(feature = "fuzzing")]
pub use write::edit_text;
