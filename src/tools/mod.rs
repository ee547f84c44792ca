//! The tools: planning and execution, one file per tool.

mod alias;
mod amend;
mod arguments;
mod call_result;
mod changes;
mod charset;
mod custom;
mod definition;
mod diff;
mod draft;
mod error;
mod follow;
mod habits;
mod hints;
mod http;
mod in_editor;
mod late;
mod markers;
#[cfg(feature = "fuzzing")]
pub mod measure;
mod naming;
mod on_demand;
mod open;
mod outcome;
mod output;
mod paths;
mod read;
mod registry;
mod remote;
mod router;
mod runs_code;
mod search;
mod seen;
mod sessions;
mod settings;
mod shapes;
mod shell;
#[cfg(test)]
pub(crate) mod tests;
mod text;
mod tool;
mod write;

pub use changes::Changes;
pub use custom::{CustomTool, ManifestError, Source, manifest_schema};
pub use hints::{Hints, Served};
pub use in_editor::InEditor;
pub use naming::Conflict;
pub use on_demand::{FIND_TOOLS, LoadedTools};
pub use outcome::found;
pub use registry::built_in_names;
pub use registry::{known, name_of, starts_nothing};
pub use remote::{Pins, Remote, RemoteTools};
pub use router::{Router, actions_for, actions_now};
pub use seen::Seen;
pub use settings::Settings;
pub use shell::cache_budget::{cache_use, prune_caches};
pub use shell::caches::Caches;
pub use shell::commands::Commands;
pub use shell::confine::{Ground, Holding};
pub use shell::git::{GlobalConfig, RepositoryTrust, Sources};
pub use shell::git_places::GitOutside;
pub use shell::launch::ServerLauncher;
pub use shell::preview::Recovered;
pub use shell::visible::{Machine, Visible};
pub use text::TextTools;
#[cfg(feature = "fuzzing")]
pub use write::apply_patch::patched;
#[cfg(feature = "fuzzing")]
pub use write::edited;
