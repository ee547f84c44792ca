//! `aye mcp`: manages MCP servers.

mod add;
mod allow;
pub(crate) mod args;
mod list;
mod login;
mod test_server;

use crate::host::context::AppContext;
use crate::host::error::CliError;
use crate::host::exit::Exit;
use crate::host::options::Common;
use args::McpAction;

pub(crate) fn run(app: &AppContext, common: &Common, asked: McpAction) -> Result<Exit, CliError> {
    match asked {
        McpAction::List { json } => list::run(app, common, json),
        McpAction::Add { name, server } => add::add(app, &name, server),
        McpAction::Remove { name } => add::remove(app, &name),
        McpAction::LogIn { name, no_browser } => login::log_in(app, common, &name, no_browser),
        McpAction::LogOut { name } => login::log_out(app, &name),
        McpAction::Test { name, json } => test_server::run(app, common, &name, json),
        McpAction::Allow { name } => allow::run(app, common, &name),
        McpAction::Serve { asks } => super::mcp_server::run(app, common, asks),
    }
}
