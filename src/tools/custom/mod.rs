//! Tools that the user or a trusted project describes in a manifest: a program with a JSON Schema, or a sequence of tools.

pub(in crate::tools) mod chain;
mod fill;
mod manifest;
mod print;
pub(in crate::tools) mod program;
mod schema;
#[cfg(test)]
mod tests;

pub(in crate::tools) use chain::is_chain;
pub use manifest::{CustomTool, ManifestError, Source};
pub(in crate::tools) use print::Print;
pub(in crate::tools) use schema::Schema;
pub use schema::manifest_schema;
