//! `aye plugin`: adds, lists, checks and removes plugins.

pub(crate) mod args;
mod plan;

use super::definition_files::nearest_name;
use crate::host::console::{self, can_ask, print_json, print_text, warn_all};
use crate::host::context::AppContext;
use crate::host::error::CliError;
use crate::host::exit::Exit;
use crate::host::plugins::{Contents, FetchOptions, Plugin, PluginSource, PluginStore, StagedPlugin, StoreLock, copy_for_check};
use crate::protocol::Problem;
use crate::text::{clean_line, reveal_line, truncate, width};
use args::{PluginAction, SourceArgs};
use serde_json::json;
use std::fmt::Write as _;

/// Maximum width of a description in the list, in terminal cells.
const DESCRIPTION_CELLS: usize = 100;

pub(crate) fn run(app: &AppContext, action: PluginAction) -> Result<Exit, CliError> {
    let store = app.plugins();
    match action {
        PluginAction::Add { source, yes } => add(app, &store, &source, None, yes),
        PluginAction::List { json } => Ok(list(&store, json)),
        PluginAction::Show { name, json } => show(&store, &name, json),
        PluginAction::Check { source, json } => check(app, &source, json),
        PluginAction::Update { name, credentials, yes } => {
            let pin = installed(&store, &name)?.pin;
            let source = SourceArgs { source: pin.source, path: pin.path, credentials };
            add(app, &store, &source, Some(&name), yes)
        }
        PluginAction::Remove { name } => remove(&store, &name),
        PluginAction::SetEnabled { name, enabled } => set_enabled(&store, &name, enabled),
    }
}

/// Adds the plugin from a source. If `expected` is set, the plugin must have this name.
fn add(app: &AppContext, store: &PluginStore, given: &SourceArgs, expected: Option<&str>, yes: bool) -> Result<Exit, CliError> {
    let source = source(app, given)?;
    let lock = store.lock().map_err(CliError::failed)?;
    let staged = store.stage(&lock, &source, options(app, given)).map_err(|problem| refused(&source.text(), problem));
    let outcome = staged.and_then(|staged| add_staged((store, &lock), staged, expected, yes));
    store.finish(&lock);
    outcome
}

fn add_staged(
    (store, lock): (&PluginStore, &StoreLock),
    staged: StagedPlugin,
    expected: Option<&str>,
    yes: bool,
) -> Result<Exit, CliError> {
    let shown = staged.plugin.pin.source.clone();
    let name = staged.plugin.name().to_owned();
    if let Some(expected) = expected.filter(|expected| *expected != name) {
        let problem = Problem::new(format!("`{shown}` is now the plugin `{name}` instead of `{expected}`"));
        return Err(CliError::failed(problem.hint(format!("run `aye plugin add {shown}` to add it under this name"))));
    }
    let contents = Contents::read(&staged.plugin);
    if contents.is_empty() {
        let problem = Problem::new(format!("the plugin `{name}` contains nothing that aye can use"));
        return Err(CliError::failed(problem.hint(format!("run `aye plugin check {shown}` to see why"))));
    }
    // An installed plugin whose pins cannot be read is replaced.
    let old = store.find(&name).unwrap_or_default();
    if let Some(old) = old.as_ref().filter(|old| old.pin.files == staged.plugin.pin.files && old.change().is_none()) {
        print_text(&format!("the plugin {} is already installed with the same files\n", old.name()));
        return Ok(Exit::Completed);
    }
    let text = plan_text(old.as_ref(), &staged, &contents);
    confirm(&text, if old.is_some() { "Update" } else { "Add" }, yes)?;
    let receipt = match &old {
        Some(_) => format!("updated the plugin {name}\n"),
        None => format!("added the plugin {name}; undo: aye plugin remove {name}\n"),
    };
    store.install(lock, staged, old.is_none_or(|old| old.pin.enabled)).map_err(CliError::failed)?;
    print_text(&receipt);
    Ok(Exit::Completed)
}

/// Parses the source that the user specified.
fn source(app: &AppContext, given: &SourceArgs) -> Result<PluginSource, CliError> {
    let source = PluginSource::parse(&given.source, given.path.as_deref(), &app.workspace);
    source.map_err(|problem| CliError::usage(problem.with_location(location(&given.source))))
}

fn options(app: &AppContext, given: &SourceArgs) -> FetchOptions {
    FetchOptions { has_credentials: given.credentials, timeouts: app.download_timeouts() }
}

fn location(source: &str) -> String {
    format!("cannot add a plugin from `{}`", reveal_line(&without_credentials(source)))
}

/// Removes the credentials from the URL of a source.
fn without_credentials(source: &str) -> String {
    let Some((scheme, rest)) = source.split_once("://") else { return source.to_owned() };
    let host = rest.find('/').unwrap_or(rest.len());
    rest[..host].rfind('@').map_or_else(|| source.to_owned(), |at| format!("{scheme}://…{}", &rest[at..]))
}

/// Returns the error that explains why a plugin cannot be added from a source.
fn refused(source: &str, problem: Problem) -> CliError {
    CliError::failed(problem.with_location(location(source)))
}

fn plan_text(old: Option<&Plugin>, staged: &StagedPlugin, contents: &Contents) -> String {
    let mut text = plan::describe(&staged.plugin, Some(&staged.manifest), contents);
    if let Some(old) = old {
        let version = old.pin.version.as_deref().map(|version| format!(" {}", reveal_line(version))).unwrap_or_default();
        let _ = write!(text, "\nDifferences from the installed version{version}:\n");
        text.push_str(&plan::differences(old, &staged.plugin));
        if let Some(change) = old.change() {
            let _ = writeln!(text, "\nThe installed files changed since you added them: {}", reveal_line(&change));
        }
    }
    if !contents.hooks.is_empty() {
        text.push_str("\nThe hooks run in the sandbox, in all your projects. They can deny calls but not allow them.\n");
    }
    if !contents.servers.is_empty() {
        text.push_str("\nThe MCP servers are off until your policy lists their tools: aye mcp allow PLUGIN:SERVER\n");
    }
    text.push_str("\nA plugin does not grant permissions: the policy, approvals and the sandbox apply as usual.\n");
    text
}

/// Prints a plan. Unless `yes` is set, prompts the user to approve it.
fn confirm(text: &str, verb: &str, yes: bool) -> Result<(), CliError> {
    if yes {
        print_text(text);
        return Ok(());
    }
    if !can_ask() {
        print_text(text);
        return Err(
            CliError::usage("nothing was changed: cannot prompt without a terminal").hint("pass `--yes` to approve the plan")
        );
    }
    let is_approved = console::confirm(&format!("{text}\n"), &format!("{verb} this plugin?"));
    if is_approved { Ok(()) } else { Err(CliError::usage("nothing was changed")) }
}

fn list(store: &PluginStore, json: bool) -> Exit {
    let all = store.all();
    if json {
        let plugins: Vec<_> = all.plugins.iter().map(to_json).collect();
        print_json(&json!({ "plugins": plugins, "problems": all.problems }));
        return Exit::Completed;
    }
    if all.plugins.is_empty() {
        print_text("no plugins; `aye plugin add SOURCE` adds one\n");
    }
    let longest = all.plugins.iter().map(|plugin| width(plugin.name())).max().unwrap_or_default();
    let mut text = String::new();
    for plugin in &all.plugins {
        let description = clean_line(&plugin.pin.description);
        let version = plugin.pin.version.as_deref().map(|version| format!("{} ", clean_line(version))).unwrap_or_default();
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{:longest$}  {version}{}", plugin.name(), truncate(&description, DESCRIPTION_CELLS));
        let state = if plugin.pin.enabled { "" } else { " (disabled)" };
        let _ = writeln!(text, "{:longest$}  {}{state}", "", reveal_line(&plugin.pin.source));
        if let Some(change) = plugin.change() {
            let _ = writeln!(text, "{:longest$}  changed since it was added: {}", "", reveal_line(&change));
        }
    }
    print_text(&text);
    warn_all(&all.problems);
    Exit::Completed
}

fn to_json(plugin: &Plugin) -> serde_json::Value {
    let pin = &plugin.pin;
    json!({
        "name": pin.name,
        "version": pin.version,
        "description": pin.description,
        "source": pin.source,
        "path": pin.path,
        "commit": pin.commit,
        "archive_hash": pin.archive_hash,
        "enabled": pin.enabled,
        "files": pin.files.len(),
        "hash": pin.digest(),
        "change": plugin.change(),
    })
}

fn show(store: &PluginStore, name: &str, json: bool) -> Result<Exit, CliError> {
    let plugin = installed(store, name)?;
    let contents = Contents::read(&plugin);
    if json {
        let mut whole = to_json(&plugin);
        if let Some(fields) = whole.as_object_mut() {
            fields.insert("contents".to_owned(), json!(contents));
        }
        print_json(&whole);
        return Ok(Exit::Completed);
    }
    let mut text = plan::describe(&plugin, None, &contents);
    if let Some(change) = plugin.change() {
        let _ = writeln!(text, "\nchanged since it was added: {}", reveal_line(&change));
    }
    print_text(&text);
    Ok(Exit::Completed)
}

/// Checks a plugin. No approval is needed, because the plugin is only parsed.
fn check(app: &AppContext, given: &SourceArgs, json: bool) -> Result<Exit, CliError> {
    let at = || format!("cannot check `{}`", reveal_line(&without_credentials(&given.source)));
    let source = PluginSource::parse(&given.source, given.path.as_deref(), &app.workspace);
    let source = source.map_err(|problem| CliError::usage(problem.with_location(at())))?;
    let staged = copy_for_check(&source, options(app, given));
    let staged = staged.map_err(|problem| CliError::failed(problem.with_location(at())))?;
    let contents = Contents::read(&staged.plugin);
    if json {
        print_json(&contents);
    } else {
        let mut text = plan::describe(&staged.plugin, Some(&staged.manifest), &contents);
        for warning in &contents.warnings {
            let _ = writeln!(text, "warning: {}", reveal_line(warning));
        }
        print_text(&text);
    }
    Ok(if contents.errors.is_empty() { Exit::Completed } else { Exit::Failed })
}

fn remove(store: &PluginStore, name: &str) -> Result<Exit, CliError> {
    let lock = store.lock().map_err(CliError::failed)?;
    // Also remove pins that cannot be read.
    if store.find(name).is_ok_and(|plugin| plugin.is_none()) {
        return Err(unknown(store, name));
    }
    store.remove(&lock, name).map_err(CliError::failed)?;
    print_text(&format!("removed the plugin {}\n", reveal_line(name)));
    Ok(Exit::Completed)
}

fn set_enabled(store: &PluginStore, name: &str, enabled: bool) -> Result<Exit, CliError> {
    let lock = store.lock().map_err(CliError::failed)?;
    let plugin = installed(store, name)?;
    store.set_enabled(&lock, &plugin, enabled).map_err(CliError::failed)?;
    let verb = if enabled { "enabled" } else { "disabled" };
    print_text(&format!("{verb} the plugin {}\n", plugin.name()));
    Ok(Exit::Completed)
}

/// Finds an installed plugin by name. Returns an error if there is none.
fn installed(store: &PluginStore, name: &str) -> Result<Plugin, CliError> {
    store.find(name).map_err(CliError::failed)?.ok_or_else(|| unknown(store, name))
}

fn unknown(store: &PluginStore, name: &str) -> CliError {
    let mut problem = Problem::new(format!("unknown plugin `{}`", name.escape_debug()));
    let all = store.all();
    if let Some(near) = nearest_name(all.plugins.iter().map(Plugin::name), name) {
        problem = problem.hint(format!("did you mean `{near}`?"));
    }
    CliError::usage(problem.hint("run `aye plugin list` to list the plugins"))
}
