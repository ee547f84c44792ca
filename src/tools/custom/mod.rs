//! Custom tools. A manifest, which belongs to the user, a trusted project or a plugin, defines a tool as either a
//! program with a JSON Schema or a sequence of other tools.

mod manifest;
pub(in crate::tools) mod pipeline;
pub(in crate::tools) mod program;
mod program_files;
mod schema;
mod template;
#[cfg(test)]
mod tests;

pub(crate) use manifest::{CustomTool, ManifestError, Source, ToolOwner};
pub(in crate::tools) use pipeline::is_chain;
pub(in crate::tools) use program::BoundTool;
pub(crate) use schema::{ToolSchema, manifest_schema};
