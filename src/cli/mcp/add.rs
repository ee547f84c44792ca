//! `aye mcp add` and `aye mcp remove`: add or remove a server in the user's settings, leaving all other settings
//! unchanged.

use super::args::NewServerWords;
use crate::config::servers::{NewServer, check_name, check_url, with_server, without_server};
use crate::config::{ConfigError, grants};
use crate::host::console::print_text;
use crate::host::context::AppContext;
use crate::host::error::CliError;
use crate::host::exit::Exit;
use crate::policy::redact::names_a_secret;
use crate::text::{clean, quoted_line};
use std::fmt::Write as _;

pub(crate) fn add(app: &AppContext, name: &str, given: NewServerWords) -> Result<Exit, CliError> {
    check_name(name).map_err(CliError::usage)?;
    if let Some(url) = &given.url {
        check_url(url).map_err(|problem| {
            let problem = CliError::usage(problem);
            if url.contains("://") {
                return problem;
            }
            let line = quoted_line(&["aye", "mcp", "add", name, "--", url.as_str()].map(str::to_owned));
            problem.hint(format!("put the command of a program after `--`: `{line}`"))
        })?;
    }
    let mut words = given.command.into_iter();
    let (command, args) = (words.next(), words.collect());
    if command.as_ref().is_some_and(|command| command.trim().is_empty()) {
        return Err(CliError::usage("the command is empty").hint("run `aye mcp add NAME -- COMMAND ARGS…`"));
    }
    let literal: Vec<&str> = given
        .headers
        .iter()
        .chain(&given.env)
        .filter(|(name, value)| (names_a_secret(name) || name.eq_ignore_ascii_case("authorization")) && !value.contains("${"))
        .map(|(name, _)| name.as_str())
        .collect();
    let mut text = String::new();
    for name in literal {
        let _ = writeln!(
            text,
            "the value of {name} is saved in plain text; use `${{VARIABLE}}` as the value of `{name}` \
                to read it from the environment"
        );
    }
    let server = NewServer {
        command,
        args,
        env: given.env,
        url: given.url,
        kind: given.kind,
        headers: given.headers,
        network: given.network,
        bearer_token_env: given.bearer_token_env,
        ..NewServer::default()
    };
    let file = app.directories.config_file();
    let added = change(app, |old| with_server(old, name, &server))?;
    if !added {
        return Err(CliError::usage(format!("`{}` already has a server `{name}`", file.display()))
            .hint(format!("run `aye mcp remove {name}` first")));
    }
    let _ = writeln!(text, "added `{name}` to {}", file.display());
    let _ = writeln!(
        text,
        "next: run `aye mcp test {name}` to see its tools, and `aye mcp allow {name}` to let the model use them; each call \
        needs approval"
    );
    print_text(&clean(&text));
    Ok(Exit::Completed)
}

pub(crate) fn remove(app: &AppContext, name: &str) -> Result<Exit, CliError> {
    let file = app.directories.config_file();
    if !change(app, |old| without_server(old, name))? {
        return Err(CliError::usage(format!("`{}` has no server `{name}`", file.display()))
            .hint("run `aye mcp list` to list the servers"));
    }
    let forgotten = super::login::forget(app, name)?;
    let tokens = if forgotten { ", and deleted its tokens" } else { "" };
    print_text(&clean(&format!("removed `{name}` from {}{tokens}\n", file.display())));
    Ok(Exit::Completed)
}

/// Edits the configuration file. Returns `false` if it did not need to be changed.
fn change(app: &AppContext, edit: impl Fn(&str) -> Result<Option<String>, ConfigError>) -> Result<bool, CliError> {
    let file = app.directories.config_file();
    let _only_one = grants::lock(&app.directories.config)?;
    let changed = grants::change(&file, |old| {
        let old = old.unwrap_or_default();
        let new = edit(old).map_err(|error| error.with_location(format!("`{}`", file.display())))?;
        Ok(match new {
            Some(new) => (new, true),
            None => (old.to_owned(), false),
        })
    });
    Ok(changed?)
}
