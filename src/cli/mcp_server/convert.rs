//! Converts tools and results to their Model Context Protocol form.

use crate::host::offered_tools;
use crate::host::tool_runner::ToolRunner;
use crate::ports::Artifacts;
use crate::protocol::{ErrorCode, ToolDefinition, ToolError, ToolResult, ToolStatus};
use crate::tools::{ToolDetails, ToolHints};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::{CallToolResult, ContentBlock, Tool, ToolAnnotations};
use serde_json::Value;
use std::sync::Arc;

/// Maximum size, in bytes, of the text in a result. Some tools have lower limits.
pub(crate) const TEXT_BYTES: usize = 256 << 10;
/// Maximum size of an image in bytes. Larger images are replaced with their names.
const IMAGE_BYTES: u64 = 5 << 20;
const MAX_IMAGES: usize = 8;

/// A tool that is offered to other agents.
pub(crate) struct OfferedTool {
    pub tool: Tool,
    /// Whether the tool's results also include structured content.
    pub structured: bool,
}

/// Returns the tools that the policy offers, excluding those that need a session.
pub(crate) fn offers(bench: &ToolRunner) -> Vec<OfferedTool> {
    let served = |definition: ToolDefinition| {
        bench.router.details_for_client(&definition.tool_name).map(|served| offer(definition, served))
    };
    offered_tools::tools_for_model(&bench.router, &bench.policy).into_iter().filter_map(served).collect()
}

fn offer(definition: ToolDefinition, served: ToolDetails) -> OfferedTool {
    let ToolDefinition { tool_name, description, input_schema } = definition;
    let ToolHints { reads_only, destructive, idempotent, open_world } = served.hints;
    let annotations =
        ToolAnnotations::new().read_only(reads_only).destructive(destructive).idempotent(idempotent).open_world(open_world);
    let input = match input_schema {
        Value::Object(schema) => schema,
        _ => serde_json::Map::new(),
    };
    let tool = Tool::new(tool_name, description, Arc::new(input)).with_annotations(annotations);
    match served.output_schema {
        // Only objects are sent as structured content, because some protocol versions support nothing else.
        Some(Value::Object(schema)) if schema.get("type").is_some_and(|kind| kind == "object") => {
            OfferedTool { tool: tool.with_raw_output_schema(Arc::new(schema)), structured: true }
        }
        _ => OfferedTool { tool, structured: false },
    }
}

/// Converts a call's result for the client.
pub(crate) async fn call_result(result: ToolResult, structured: bool, artifacts: Arc<dyn Artifacts>) -> CallToolResult {
    let result = result.truncate_to(TEXT_BYTES);
    if result.status != ToolStatus::Succeeded {
        return CallToolResult::error(vec![ContentBlock::text(result.text_for_model())]);
    }
    let structured = match structured.then(|| serde_json::from_str::<Value>(&result.output_text)) {
        Some(Ok(Value::Object(object))) => Some(Value::Object(object)),
        Some(_) => {
            let message = "the result does not match its schema after redaction and truncation";
            let error = ToolError::new(ErrorCode::ToolExecutionFailed, message);
            let failed = ToolResult { error: Some(error), status: ToolStatus::Failed, ..result };
            return CallToolResult::error(vec![ContentBlock::text(failed.text_for_model())]);
        }
        None => None,
    };
    let mut content = vec![ContentBlock::text(result.text_for_model())];
    let images = result.images;
    // Reading the images from the disk may take long.
    let shown = tokio::task::spawn_blocking(move || pictures(&images, &*artifacts)).await;
    content.extend(shown.unwrap_or_default());
    let mut told = CallToolResult::success(content);
    told.structured_content = structured;
    told
}

fn pictures(images: &[crate::protocol::Image], artifacts: &dyn Artifacts) -> Vec<ContentBlock> {
    let shown = images.iter().take(MAX_IMAGES).map(|image| match artifacts.content(&image.uri, IMAGE_BYTES) {
        Ok(bytes) => ContentBlock::image(STANDARD.encode(bytes), image.media_type.clone()),
        Err(error) => ContentBlock::text(format!("[image not shown: {error}]")),
    });
    let more = images.len().saturating_sub(MAX_IMAGES);
    let more = (more > 0).then(|| ContentBlock::text(format!("[{more} more images not shown]")));
    shown.chain(more).collect()
}
