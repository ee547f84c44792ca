//! Plugins: folders with skills, agents, slash commands and tools that the user adds. Their files are pinned by hash: a file
//! that changes later is not used.

mod contents;
mod copy;
mod installed;
mod manifest;
mod store;

pub(crate) use contents::{Contents, Part, is_remote};
pub(crate) use installed::{Plugin, Plugins};
pub(crate) use manifest::Manifest;
pub(crate) use store::{PluginStore, StagedPlugin, StoreLock, copy_for_check};
