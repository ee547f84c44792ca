//! Plugins: folders with skills, agents, slash commands and tools that the user adds. Their files are pinned by hash; a
//! file that changes later is not used.

mod archive;
mod contents;
mod copy;
mod git;
mod installed;
mod manifest;
mod source;
mod store;
mod unpacked;

pub(crate) use contents::{Contents, Part};
pub(crate) use installed::{Plugin, Plugins};
pub(crate) use manifest::PluginManifest;
pub(crate) use source::PluginSource;
pub(crate) use store::{FetchOptions, PluginStore, StagedPlugin, StoreLock, copy_for_check};
