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

pub(crate) fn run(place: &AppContext, common: &Common, asked: McpAction) -> Result<Exit, CliError> {
    match asked {
        McpAction::List { json } => list::run(place, common, json),
        McpAction::Add { name, server } => add::add(place, &name, server),
        McpAction::Remove { name } => add::remove(place, &name),
        McpAction::LogIn { name, no_browser } => login::log_in(place, common, &name, no_browser),
        McpAction::LogOut { name } => login::log_out(place, &name),
        McpAction::Test { name, json } => test_server::run(place, common, &name, json),
        McpAction::Allow { name } => allow::run(place, common, &name),
        McpAction::Serve { asks } => super::mcp_server::run(place, common, asks),
    }
}
