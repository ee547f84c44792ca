//! `aye policy log`: shows past decisions, and the rule or user responsible for each.

use crate::host::console::print_text;
use crate::host::context::AppContext;
use crate::host::error::CliError;
use crate::host::exit::Exit;
use crate::host::startup::open_store;
use crate::store::DecisionFilter;
use std::fmt::Write as _;

pub(crate) fn run(app: &AppContext, filter: &DecisionFilter, json: bool) -> Result<Exit, CliError> {
    let decisions = open_store(app)?.decisions(filter)?;
    if json {
        decisions.iter().for_each(crate::host::console::print_json);
        return Ok(Exit::Completed);
    }
    let mut text = String::new();
    for one in &decisions {
        let session = one.session_id.as_deref().map_or("tool call", |id| id.get(..8).unwrap_or(id));
        let time = one.time.strftime("%Y-%m-%d %H:%M:%S");
        let _ = write!(text, "{time}  {session:9}  {:5}  {:14}  {:9}  {}", one.verdict, one.by, one.mode, one.summary);
        if !one.reason.is_empty() {
            let _ = write!(text, "  ({})", one.reason);
        }
        text.push('\n');
    }
    if decisions.is_empty() {
        text.push_str("no decisions yet\n");
    }
    print_text(&crate::text::reveal(&text));
    Ok(Exit::Completed)
}
