//! Handles MCP requests that list or call tools.

use super::calls::CallService;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CustomRequest, CustomResult, ErrorCode, ErrorData, Implementation, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler};
use std::sync::Arc;

/// Supported methods. If a request for one of these methods cannot be parsed, its parameters must be invalid.
const METHODS: &[&str] = &["initialize", "server/discover", "ping", "tools/list", "tools/call"];

#[derive(Clone)]
pub(crate) struct Handler {
    pub calls: Arc<CallService>,
    /// Instructions for the client's model.
    pub instructions: Arc<str>,
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("aye", env!("CARGO_PKG_VERSION")))
            .with_instructions(&*self.instructions)
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        if request.is_some_and(|request| request.cursor.is_some()) {
            return Err(ErrorData::invalid_params("there is only one page of tools; call `tools/list` without `cursor`", None));
        }
        Ok(ListToolsResult::with_all_items(self.calls.tools()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        Box::pin(self.calls.call(request, context)).await
    }

    async fn on_custom_request(&self, request: CustomRequest, _: RequestContext<RoleServer>) -> Result<CustomResult, ErrorData> {
        let method: String = request.method.chars().take(100).collect();
        if METHODS.contains(&request.method.as_str()) {
            return Err(ErrorData::invalid_params(format!("invalid parameters for `{method}`"), None));
        }
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, format!("unknown method `{method}`"), None))
    }
}
