//! `aye models update`: replaces the downloaded model catalogue, after showing what would change.

use crate::cli::args::definition::ModelsUpdate;
use crate::host::allowed_models::AllowedModels;
use crate::host::catalogue_file;
use crate::host::catalogue_update::{self, ListSource, PUBLIC_LIST};
use crate::host::console::{can_ask, confirm, print_text, warn};
use crate::host::context::AppContext;
use crate::host::error::CliError;
use crate::host::exit::Exit;
use crate::host::models::ModelCatalog;
use crate::host::nesting::Nesting;
use crate::host::startup::runtime;
use crate::llm::CatalogueUpdate;
use crate::protocol::{Problem, format_count};
use crate::text::reveal_line;
use std::fmt::Write as _;

/// Maximum number of changes shown; any further changes are only counted.
const SHOWN: usize = 200;

pub(crate) fn run(app: &AppContext, args: &ModelsUpdate) -> Result<Exit, CliError> {
    if Nesting::detect() == Nesting::InsideAye && !args.check {
        return Err(CliError::usage("a command that aye runs (AYE=1) cannot change the model catalogue"));
    }
    let catalogue = ModelCatalog::new(app).catalogue()?;
    let source = source(app, args)?;
    let update = runtime()?.block_on(catalogue_update::read(&source, app, &catalogue)).map_err(CliError::failed)?;
    let allowed = app.policy(None, None).map(|policy| AllowedModels::from_policy(&policy)).unwrap_or_default();
    print_text(&describe_changes(&update, &allowed));
    if args.check || update.changes.is_empty() {
        return Ok(Exit::Completed);
    }
    if !args.yes {
        if !can_ask() {
            return Err(CliError::usage("nothing was changed: cannot prompt without a terminal")
                .hint("pass `--yes` to update, or `--check` to see only the changes"));
        }
        if !confirm("", "Update the catalogue?") {
            return Err(CliError::usage("nothing was changed"));
        }
    }
    let text = update.document().map_err(|error| CliError::failed(format!("the list cannot be stored: {error}")))?;
    let path = catalogue_file::write(&app.directories, &text).map_err(|error| {
        CliError::failed(format!("cannot write `{}`: {error}", catalogue_file::path(&app.directories).display()))
    })?;
    print_text(&format!("wrote {}\n", path.display()));
    if app.directories.config.join("models.toml").exists() {
        warn(Problem::new("your own entries in models.toml still override the catalogue"));
    }
    Ok(Exit::Completed)
}

fn source(app: &AppContext, args: &ModelsUpdate) -> Result<ListSource, CliError> {
    let set = app.settings.model_list().catalogue_url;
    let Some(given) = args.source.clone().or(set) else {
        return Err(CliError::usage("no list of models to update from")
            .hint(format!("run `aye models update {PUBLIC_LIST}` to use the public models.dev list"))
            .hint("name another URL or a file, or set `models.catalogue_url` in config.toml"));
    };
    ListSource::parse(&given).map_err(CliError::usage)
}

/// Describes the changes as text.
fn describe_changes(update: &CatalogueUpdate, allowed: &AllowedModels) -> String {
    let date = update.date().map(|date| format!(" dated {date}")).unwrap_or_default();
    if update.changes.is_empty() {
        return format!("no changes: the catalogue in use matches the list{date}\n");
    }
    let mut text = String::new();
    let mut forbidden = 0;
    for (number, (name, words)) in update.changes.iter().enumerate() {
        let note = if allowed.forbidding_rule(name).is_some() {
            forbidden += 1;
            " (not allowed by the policy)"
        } else {
            ""
        };
        if number < SHOWN {
            let _ = writeln!(text, "{}{note}", reveal_line(&format!("{name}: {words}")));
        }
    }
    if update.changes.len() > SHOWN {
        let _ = writeln!(text, "and {} more", update.changes.len() - SHOWN);
    }
    let count = format_count(update.changes.len() as u64, "change", "changes");
    let _ = writeln!(text, "\n{count} in the list{date}");
    if forbidden > 0 {
        let _ =
            writeln!(text, "{} not allowed by the policy (`allowed_models`)", format_count(forbidden, "model is", "models are"));
    }
    text
}
