//! `aye mcp allow`: allows a server's tools in the user's policy, leaving all existing rules unchanged.

use super::login::find_server;
use crate::config::{ConfigError, grants};
use crate::host::console::print_text;
use crate::host::context::AppContext;
use crate::host::error::CliError;
use crate::host::exit::Exit;
use crate::host::options::Common;
use crate::host::user_policy;
use crate::policy::Bundle;
use crate::text::clean;
use std::path::Path;

pub(crate) fn run(app: &AppContext, common: &Common, name: &str) -> Result<Exit, CliError> {
    if common.policy.is_some() {
        return Err(CliError::usage("`aye mcp allow` changes your policy.toml").hint("remove `--policy`"));
    }
    find_server(app, common, name)?;
    let file = grants::user_file(&app.directories.config);
    let change = allow(app, &file, name)?;
    let file = file.display();
    print_text(&clean(&match change {
        Change::None => format!("{file} already allows the tools of `{name}`\n"),
        Change::Added { is_first } => {
            // The policy may already have rules that allow calls.
            let asks = if is_first { "each call needs approval" } else { "each call needs approval, unless a rule allows it" };
            format!("added `{name}/*` to the allowed tools in {file}; {asks}\n")
        }
        Change::Created => format!(
            "created {file}, which extends the built-in policy and allows the tools of `{name}`; each call needs approval\n"
        ),
    }));
    Ok(Exit::Completed)
}

enum Change {
    None,
    Added { is_first: bool },
    Created,
}

fn allow(app: &AppContext, file: &Path, name: &str) -> Result<Change, ConfigError> {
    let _only_one = grants::lock(&app.directories.config)?;
    grants::change(file, |old| {
        let text = old.map_or_else(|| user_policy::new_file("`aye mcp allow`"), str::to_owned);
        let wrong = |why: String| ConfigError::single(format!("`{}`: {why}", file.display()));
        let Some(with) = grants::with_server(&text, name).map_err(wrong)? else { return Ok((text, Change::None)) };
        // The next start reads this file, so it must be valid.
        Bundle::parse(&with.text, &file.display().to_string()).map_err(|error| ConfigError::single(error.to_string()))?;
        let change = if old.is_some() { Change::Added { is_first: with.is_first } } else { Change::Created };
        Ok((with.text, change))
    })
}
