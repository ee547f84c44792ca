//! Plugins, which are folders of skills, agents, slash commands, tools, hooks and MCP servers that the user adds. Their
//! files are pinned by hash, and a file that has changed since then is not used.

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
