//! MCP servers: their settings, and `aye mcp`.

mod add;
mod list;
mod login;
mod serve;
mod specs;
mod try_out;
mod vault;

pub use specs::{Again, secrets, specs, specs_again};
pub use vault::vault;

use super::cli::{Common, McpAction};
use super::exit::Exit;
use super::place::Place;
use super::trouble::Trouble;

pub fn run(place: &Place, common: &Common, asked: McpAction) -> Result<Exit, Trouble> {
    match asked {
        McpAction::List { json } => list::run(place, common, json),
        McpAction::Add { name, server } => add::add(place, &name, server),
        McpAction::Remove { name } => add::remove(place, &name),
        McpAction::LogIn { name, no_browser } => login::log_in(place, common, &name, no_browser),
        McpAction::LogOut { name } => login::log_out(place, &name),
        McpAction::Test { name, json } => try_out::run(place, common, &name, json),
        McpAction::Serve { asks } => serve::run(place, common, asks),
    }
}
