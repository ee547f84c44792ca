//! `aye policy grants`: lists and revokes the rules saved by "always allow".

use super::args::GrantsAction;
use crate::config::{ConfigError, grants};
use crate::host::console::{print_json, print_text};
use crate::host::context::AppContext;
use crate::host::error::CliError;
use crate::host::exit::Exit;
use crate::host::user_rules::{NamedRule, in_file};
use crate::policy::Bundle;
use crate::protocol::GrantScope;
use jiff::Timestamp;
use serde::Serialize;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

pub(crate) fn run(app: &AppContext, action: GrantsAction) -> Result<Exit, CliError> {
    match action {
        GrantsAction::List { json } => list(app, json),
        GrantsAction::Revoke { names, all, expired } => revoke(app, &names, all, expired),
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Entry<'a> {
    rule: &'a str,
    /// Scope of the rule: `project` or `everywhere`.
    scope: &'static str,
    file: &'a Path,
    line: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    directory: Option<&'a str>,
    here: bool,
    grant: &'a crate::protocol::GrantRule,
    toml: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<Timestamp>,
    expired: bool,
}

fn list(app: &AppContext, json: bool) -> Result<Exit, CliError> {
    let all = saved_rules(app)?;
    let now = Timestamp::now();
    if json {
        for named in &all {
            print_json(&Entry {
                rule: &named.name,
                scope: if named.name.starts_with("user") { "everywhere" } else { "project" },
                file: &named.file,
                line: named.kept.line,
                directory: named.directory.as_deref(),
                here: is_here(named, app),
                grant: &named.kept.rule,
                toml: named.kept.rule.to_string(),
                since: named.kept.saved_on(),
                expires_at: named.kept.expires_at,
                expired: named.kept.is_expired(now),
            });
        }
        return Ok(Exit::Completed);
    }
    let mut text = String::new();
    let mut file: Option<&Path> = None;
    for named in &all {
        if file != Some(&named.file) {
            let of = match (&named.directory, named.name.starts_with("user")) {
                (Some(directory), _) if is_here(named, app) => format!("in this project, {directory}"),
                (Some(directory), _) => format!("in {directory}"),
                (None, true) => "everywhere".to_owned(),
                (None, false) => "in a project with an unknown directory".to_owned(),
            };
            let _ = writeln!(text, "{of}  ({})", named.file.display());
            file = Some(&named.file);
        }
        let _ = writeln!(text, "  {:14} {}  {}", named.name, named.kept.rule, named.times(now));
    }
    if all.is_empty() {
        text.push_str("no saved rules; press `a` on an approval prompt to save one\n");
    }
    print_text(&crate::text::reveal(&text));
    Ok(Exit::Completed)
}

/// Returns all saved rules, starting with those for this project.
fn saved_rules(app: &AppContext) -> Result<Vec<NamedRule>, ConfigError> {
    let config = &app.directories.config;
    let own = grants::project_file(config, &app.workspace);
    let mut all = in_file(&own, GrantScope::Project, Some(app.workspace.display().to_string()))?;
    all.extend(in_file(&grants::user_file(config), GrantScope::Everywhere, None)?);
    for (file, directory) in grants::project_files(config) {
        if file != own {
            all.extend(in_file(&file, GrantScope::Project, directory)?);
        }
    }
    Ok(all)
}

fn is_here(named: &NamedRule, app: &AppContext) -> bool {
    named.file == grants::project_file(&app.directories.config, &app.workspace)
}

fn revoke(app: &AppContext, names: &[String], all: bool, expired: bool) -> Result<Exit, CliError> {
    let now = Timestamp::now();
    let saved = saved_rules(app)?;
    let reachable = |named: &&NamedRule| is_here(named, app) || named.name.starts_with("user");
    let mut gone: Vec<&NamedRule> = Vec::new();
    if all || expired {
        gone.extend(saved.iter().filter(reachable).filter(|named| all || named.kept.is_expired(now)));
    }
    for name in names {
        // Several rules may be on the same line, for example for several directories.
        let before = gone.len();
        gone.extend(saved.iter().filter(reachable).filter(|named| named.name == *name));
        if gone.len() == before {
            return Err(CliError::usage(format!("this project has no saved rule `{name}`"))
                .hint("run `aye policy grants list` to list the rules; for another project, pass `-C DIR`"));
        }
    }
    let mut files: Vec<&PathBuf> = gone.iter().map(|named| &named.file).collect();
    files.dedup();
    let _only_one = grants::lock(&app.directories.config)?;
    let mut text = String::new();
    for file in files {
        let of_file: Vec<&&NamedRule> = gone.iter().filter(|named| named.file == *file).collect();
        grants::change(file, |old| {
            let old = old.unwrap_or_default();
            // Compare by content, because line numbers may have changed since the rules were listed.
            let same = |kept: &grants::SavedRule| of_file.iter().any(|named| named.kept.rule == kept.rule);
            let (new, _) = grants::remove_rules(old, same).map_err(ConfigError::single)?;
            Bundle::parse(&new, &file.display().to_string()).map_err(|error| ConfigError::single(error.to_string()))?;
            Ok((new, ()))
        })?;
        for named in of_file {
            let _ = writeln!(text, "removed {}  {}  from {}", named.name, named.kept.rule, file.display());
        }
    }
    if gone.is_empty() {
        text.push_str(if expired { "no saved rule has expired\n" } else { "no saved rules\n" });
    }
    print_text(&crate::text::reveal(&text));
    Ok(Exit::Completed)
}
