//! Tool definitions: complete when requested by name, and concise in model requests.

use super::arguments::without_bounds;
use super::on_demand::FIND_TOOLS;
use super::registry::find_built_in;
use super::tool::AnyTool;
use crate::protocol::ToolDefinition;

/// Returns a tool's complete definition under one of its names.
pub(super) fn definition(tool: &dyn AnyTool, called: &str) -> ToolDefinition {
    ToolDefinition { tool_name: called.to_owned(), description: tool.description().to_owned(), input_schema: tool.schema(called) }
}

/// Returns the definition to include in model requests. Because it is part of every request, its schema is kept short.
pub(super) fn concise(tool: &dyn AnyTool) -> ToolDefinition {
    let mut definition = definition(tool, tool.offered_name());
    if tool.name() == FIND_TOOLS || find_built_in(tool.name()).is_some() {
        without_bounds(&mut definition.input_schema);
    }
    definition
}
