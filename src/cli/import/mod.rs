//! `aye import`: imports another agent's settings, after showing a plan of all changes.

pub(crate) mod args;

use crate::cli::list_section::list_section;
use crate::host::console::{can_ask, confirm, print_json, print_text};
use crate::host::context::AppContext;
use crate::host::error::CliError;
use crate::host::exit::Exit;
use crate::host::options::{Common, Trust};
use crate::host::other_agents::Agent;
use crate::host::project::ProjectConfig;
use crate::host::sandbox_host::SandboxHost;
use crate::import::{ImportPlan, NotImported, Planner, SecretFinder, Sources, Targets, WrittenFile};
use crate::policy::redact::{Key, Redactor};
use crate::policy::{Approve, Enforcer};
use crate::protocol::{Mode, VerdictKind};
use crate::text::{abbreviate_home, clean, reveal_line};
use crate::tools::RepositoryTrust;
use crate::tui::is_built_in_command;
use args::{Form, ImportRequest};
use serde_json::json;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

/// Maximum number of entries listed on a line; any further entries are only counted.
const NAMES: usize = 8;

pub(crate) fn run(common: &Common, request: &ImportRequest) -> Result<Exit, CliError> {
    if common.policy.is_some() {
        return Err(CliError::usage("`aye import` changes your policy.toml").hint("remove `--policy`"));
    }
    let app = AppContext::find(common)?;
    let targets = Targets::new(&app.directories, &app.workspace);
    let plan = plan(&app, common, request, &targets)?;
    if request.form == Form::Plan || plan.files.is_empty() {
        return Ok(show(request, &plan));
    }
    if request.form == Form::Ask && !can_ask() {
        show(request, &plan);
        return Err(CliError::usage("nothing was imported: cannot prompt without a terminal")
            .hint("pass `--yes` to import, or `--plan` to see only the plan"));
    }
    if request.form == Form::Ask && !confirm(&format!("{}\n", describe(request.agent, &plan)), "Import?") {
        return Err(CliError::usage("nothing was imported"));
    }
    if request.form == Form::Yes && !request.json {
        print_text(&describe(request.agent, &plan));
    }
    import(&app, request, &plan, &targets)
}

fn plan(app: &AppContext, common: &Common, request: &ImportRequest, targets: &Targets) -> Result<ImportPlan, CliError> {
    let secrets = SecretFinder::new(Arc::new(redactor(app)));
    let mut sources = Sources::new(request.agent, &app.home, &app.workspace, &app.environment);
    let settings = crate::import::read(request.agent, &mut sources, &secrets);
    let is_trusted = common.trust == Trust::ForThisRun
        || ProjectConfig::inspect(&app.workspace, &app.directories.config, common.trust).is_trusted();
    let judged = judging_context(app);
    let planner = Planner {
        agent: request.agent,
        targets,
        enforcer: &enforcer(app, &judged)?,
        secrets: &secrets,
        home: &app.home,
        workspace: &app.workspace,
        judged_in: &judged.workspace,
        now: jiff::Timestamp::now(),
        accepts_project: request.form != Form::Yes || is_trusted,
        is_built_in: is_built_in_command,
    };
    Ok(planner.plan(settings, &sources)?)
}

/// Returns the context in which imported permissions are judged. In a directory such as the home directory, every
/// command needs approval and no rule can be saved, so permissions are judged as in a project below the home directory.
fn judging_context(app: &AppContext) -> AppContext {
    if !app.is_too_wide() {
        return app.clone();
    }
    let workspace = app.home.join("a-project");
    let mut judged = app.clone();
    judged.roots = vec![workspace.clone()];
    judged.workspace = workspace;
    judged
}

/// Returns the enforcer that "always allow" would use in the directory of `judged` if commands are approved before they
/// run.
fn enforcer(app: &AppContext, judged: &AppContext) -> Result<Enforcer, CliError> {
    let policy = app.policy(None, None)?;
    let sandbox = SandboxHost::find(app, RepositoryTrust::Untrusted).sandbox();
    Ok(judged.enforcer(&policy, sandbox, Mode::Ask).approving(Some(Approve::Command)))
}

/// Returns a redactor whose markers are valid only in this run, which is sufficient because the plan is not written to
/// a file.
fn redactor(app: &AppContext) -> Redactor {
    let known = app.credentials.known_values();
    let key = || -> Key {
        let halves = [uuid::Uuid::new_v4(), uuid::Uuid::new_v4()];
        *blake3::hash(&halves.map(|half| *half.as_bytes()).concat()).as_bytes()
    };
    Redactor::new(Vec::new(), known.iter().map(String::as_str), key)
}

fn import(app: &AppContext, request: &ImportRequest, plan: &ImportPlan, targets: &Targets) -> Result<Exit, CliError> {
    let mut written = Vec::new();
    let outcome = crate::import::write(plan, targets, &app.directories.config, &app.workspace, |file| written.push(file));
    if request.json {
        print_json(&as_json(request.agent, plan, Some(&written)));
    } else {
        let receipts: String = written.iter().map(|file| receipt(file, &app.home)).collect();
        print_text(&clean(&format!("\n{receipts}")));
        if outcome.is_ok() {
            print_text(&clean(&list_section("Next", &plan.notes)));
        }
    }
    let interrupted = |error: CliError| {
        if written.is_empty() {
            return error;
        }
        error.hint("the files above were written; run the import again to complete it")
    };
    outcome.map(|()| Exit::Completed).map_err(interrupted)
}

fn show(request: &ImportRequest, plan: &ImportPlan) -> Exit {
    if request.json {
        print_json(&as_json(request.agent, plan, None));
    } else {
        print_text(&describe(request.agent, plan));
    }
    Exit::Completed
}

/// Formats the plan as text.
fn describe(agent: Agent, plan: &ImportPlan) -> String {
    let mut text = String::new();
    if plan.sources.is_empty() && plan.not_imported.is_empty() {
        let _ = writeln!(text, "nothing to import: found no settings for {}", agent.title());
        return text;
    }
    let _ = writeln!(text, "Read {}", join_names(&plan.sources));
    if plan.files.is_empty() {
        text.push_str("nothing to import\n");
    }
    for file in &plan.files {
        let verb = if file.old.is_some() { "change" } else { "create" };
        let _ = write!(text, "\n{verb} {}\n{}", file.shown, file.diff());
    }
    if !plan.in_force.is_empty() {
        let _ = writeln!(text, "\nAlready in effect: {}", join_names(&plan.in_force));
    }
    let narrowed: Vec<String> = plan.narrowed.iter().map(|(entry, part)| format!("{entry}: {part}")).collect();
    text.push_str(&list_section("Imported in part", &narrowed));
    text.push_str(&list_section("Not imported", &describe_not_imported(&plan.not_imported)));
    clean(&text).into_owned()
}

/// Returns a line for each combination of file and reason, listing the affected entries.
fn describe_not_imported(not_imported: &[NotImported]) -> Vec<String> {
    let mut groups: Vec<(&NotImported, Vec<&str>)> = Vec::new();
    for one in not_imported {
        match groups.iter_mut().find(|(first, _)| (&first.file, &first.reason) == (&one.file, &one.reason)) {
            Some((_, entries)) => entries.push(&one.entry),
            None => groups.push((one, vec![&one.entry])),
        }
    }
    let line = |(first, entries): (&NotImported, Vec<&str>)| match join_entries(&entries).as_str() {
        "" => format!("{}: {}", first.file, first.reason),
        what => format!("{what} ({}): {}", first.file, first.reason),
    };
    groups.into_iter().map(line).collect()
}

/// Joins entries into a line. If consecutive entries begin with the same decision, such as `allow`, it is written only
/// once.
fn join_entries(entries: &[&str]) -> String {
    let mut joined = String::new();
    let mut before = None;
    for entry in entries {
        let decisions = [VerdictKind::Allow, VerdictKind::Ask, VerdictKind::Deny].map(VerdictKind::as_str);
        let decision = decisions.into_iter().find(|name| entry.starts_with(&format!("{name} ")));
        let rest = match decision {
            Some(name) if before == decision => entry[name.len()..].trim_start(),
            _ => entry,
        };
        let separator = if joined.is_empty() { "" } else { ", " };
        let _ = write!(joined, "{separator}{rest}");
        before = decision;
    }
    joined
}

fn join_names(names: &[String]) -> String {
    let shown = names.iter().take(NAMES).map(|name| reveal_line(name)).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(NAMES) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// Describes a file that was written, and how to undo the change.
fn receipt(file: &WrittenFile, home: &Path) -> String {
    let shown = reveal_line(&file.shown);
    match &file.backup {
        Some(backup) => format!("wrote {shown}; undo: mv {} {shown}\n", abbreviate_home(backup, home)),
        None => format!("created {shown}; undo: rm {shown}\n"),
    }
}

fn as_json(agent: Agent, plan: &ImportPlan, written: Option<&[WrittenFile]>) -> serde_json::Value {
    let file = |file: &crate::import::FileRewrite| {
        let kind = if file.old.is_some() { "changed" } else { "created" };
        json!({"path": file.path, "kind": kind, "diff": file.diff().to_string()})
    };
    let narrowed = |(entry, part): &(String, String)| json!({"entry": entry, "imported": part});
    let mut whole = json!({
        "agent": agent.name(),
        "sources": plan.sources,
        "files": plan.files.iter().map(file).collect::<Vec<_>>(),
        "inForce": plan.in_force,
        "importedInPart": plan.narrowed.iter().map(narrowed).collect::<Vec<_>>(),
        "notImported": plan.not_imported,
        "next": plan.notes,
    });
    if let (Some(written), Some(entries)) = (written, whole.as_object_mut()) {
        let one = |file: &WrittenFile| json!({"path": file.path, "backup": file.backup});
        entries.insert("written".to_owned(), written.iter().map(one).collect::<Vec<_>>().into());
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_with_the_same_file_and_reason_share_a_line() {
        let entry = |file: &str, entry: &str, reason: &str| NotImported {
            file: file.to_owned(),
            entry: entry.to_owned(),
            reason: reason.to_owned(),
        };
        let all = [
            entry("a.json", "allow Read(x)", "not needed"),
            entry("a.json", "`model`", "set it"),
            entry("a.json", "allow Read(y)", "not needed"),
            entry("a.json", "ask Read(z)", "not needed"),
            entry("b.json", "allow Read(x)", "not needed"),
            entry("b.json", "", "line 3: not JSON"),
        ];
        assert_eq!(
            describe_not_imported(&all),
            [
                "allow Read(x), Read(y), ask Read(z) (a.json): not needed",
                "`model` (a.json): set it",
                "allow Read(x) (b.json): not needed",
                "b.json: line 3: not JSON",
            ]
        );
    }
}
