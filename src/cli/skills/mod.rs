//! `aye skills`: lists, shows and checks skills.

pub(crate) mod args;

use super::definition_files::{nearest_name, print_reports, warn_unused};
use crate::config::trust::project_folder;
use crate::host::console::{print_json, print_text, warn};
use crate::host::context::AppContext;
use crate::host::error::CliError;
use crate::host::exit::Exit;
use crate::host::options::Common;
use crate::host::project::ProjectConfig;
use crate::host::skills::own_folders;
use crate::protocol::{Problem, size};
use crate::skills::{Folder, Origin, PROJECT_FOLDERS, SKILL_FILE, Skill, SkillReport, SkillSet, check, check_one};
use crate::text::{clean, clean_line, reveal_line, truncate, width};
use args::SkillsAction;
use serde::Serialize;
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

/// Maximum width of a description in the list, in terminal cells.
const DESCRIPTION_CELLS: usize = 100;

pub(crate) fn run(app: &AppContext, common: &Common, action: SkillsAction) -> Result<Exit, CliError> {
    match action {
        SkillsAction::List { json } => Ok(list(&usable(app, common), json)),
        SkillsAction::Show { name } => show(&usable(app, common), &name),
        SkillsAction::Check { path, json } => check_all(app, path.as_deref(), json),
    }
}

/// Returns the skills that are available to a session in this directory.
fn usable(app: &AppContext, common: &Common) -> Arc<SkillSet> {
    let project = ProjectConfig::inspect(&app.workspace, &app.directories.config, common.trust);
    project.ignored_files_notice().iter().for_each(|notice| warn(notice.clone()));
    app.skills.with_project(&project).skill_set()
}

/// A skill in the JSON output of `aye skills list`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ListedSkill<'a> {
    name: &'a str,
    description: &'a str,
    file: String,
    origin: Origin,
    for_model: bool,
    for_user: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    allowed_tools: Option<&'a [String]>,
}

fn list(set: &SkillSet, json: bool) -> Exit {
    if json {
        let skills: Vec<_> = set.skills.iter().map(to_listed_skill).collect();
        print_json(&serde_json::json!({ "skills": skills, "hidden": set.hidden, "broken": set.broken, "limits": set.limits }));
        return Exit::Completed;
    }
    if set.skills.is_empty() {
        let folders = PROJECT_FOLDERS.map(|folder| format!("`{folder}`")).join(", ");
        print_text(&format!("no skills; aye looks in {folders} in a trusted project, and in your own folders\n"));
    }
    let longest = set.skills.iter().map(|skill| width(skill.name())).max().unwrap_or_default();
    let mut text = String::new();
    for skill in &set.skills {
        let description = clean_line(&skill.manifest.description);
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{:longest$}  {}", skill.name(), truncate(&description, DESCRIPTION_CELLS));
        let _ = writeln!(text, "{:longest$}  {}{}", "", clean_line(&skill.file()), users(skill));
    }
    print_text(&text);
    warn_unused("skill", &set.hidden, &set.broken, &set.limits);
    Exit::Completed
}

fn to_listed_skill(skill: &Skill) -> ListedSkill<'_> {
    ListedSkill {
        name: skill.name(),
        description: &skill.manifest.description,
        file: skill.file(),
        origin: skill.origin,
        for_model: skill.manifest.for_model,
        for_user: skill.manifest.for_user,
        allowed_tools: skill.manifest.allowed_tools.as_deref(),
    }
}

/// Returns a note in parentheses on who can use the skill, or an empty string if both the user and the model can.
fn users(skill: &Skill) -> &'static str {
    match (skill.manifest.for_model, skill.manifest.for_user) {
        (true, true) => "",
        (false, true) => " (only you can use it)",
        (true, false) => " (only the model can use it)",
        (false, false) => " (neither you nor the model can use it)",
    }
}

fn show(set: &SkillSet, name: &str) -> Result<Exit, CliError> {
    let name = name.trim_start_matches('/');
    let Some(skill) = set.find(name) else { return Err(unknown_skill(set, name)) };
    let manifest = &skill.manifest;
    let mut text = String::new();
    let mut line = |key: &str, value: &str| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{key:14} {}", clean_line(value));
    };
    line("name", skill.name());
    line("description", &manifest.description);
    line("file", &format!("{}{}", skill.file(), users(skill)));
    if let Some(hint) = &manifest.argument_hint {
        line("arguments", hint);
    }
    if let Some(tools) = &manifest.allowed_tools {
        let tools = if tools.is_empty() { "none".to_owned() } else { tools.join(", ") };
        line("allowed tools", &format!("{tools}; while the skill is in use, other tools need approval"));
    }
    for hidden in set.hidden.iter().filter(|hidden| hidden.name == name) {
        line("not used", &hidden.file);
    }
    for file in skill.files().iter().filter(|file| file.path != SKILL_FILE) {
        line("part", &format!("{} ({})", file.path, size(file.bytes)));
    }
    print_text(&format!("{text}\n{}\n", clean(&manifest.body)));
    Ok(Exit::Completed)
}

fn unknown_skill(set: &SkillSet, name: &str) -> CliError {
    let mut problem = Problem::new(format!("unknown skill `{}`", name.escape_debug()));
    if let Some(broken) = set.broken.iter().find(|broken| broken.file.ends_with(&format!("/{name}/{SKILL_FILE}"))) {
        let fault = broken.faults.first().map(|fault| fault.with_file(&reveal_line(&broken.file))).unwrap_or_default();
        return CliError::usage(problem.because(fault));
    }
    if let Some(near) = nearest_name(set.skills.iter().map(|skill| skill.name()), name) {
        problem = problem.hint(format!("did you mean `{near}`?"));
    }
    CliError::usage(problem.hint("run `aye skills list` to list the skills"))
}

/// Checks the skills at a path or, if no path is given, those of the project and the user. The files are only parsed,
/// so the project need not be trusted.
fn check_all(app: &AppContext, path: Option<&Path>, json: bool) -> Result<Exit, CliError> {
    let reports: Vec<SkillReport> = if let Some(path) = path {
        check_path(app, path)?
    } else {
        let of_project = PROJECT_FOLDERS.iter().map(|name| project_folder(&app.workspace, name));
        let own = own_folders(&app.directories, &app.home);
        of_project.chain(own).flat_map(|folder| check(&folder)).collect()
    };
    Ok(print_reports("skill", &reports, json))
}

/// Returns reports for a path, which may be a skill or a folder of skills.
fn check_path(app: &AppContext, path: &Path) -> Result<Vec<SkillReport>, CliError> {
    let given = path.display().to_string();
    let failed = |why: String| CliError::usage(Problem::new(format!("cannot check `{given}`")).because(why));
    let full = app.workspace.join(path);
    let real = full.canonicalize().map_err(|error| failed(error.to_string()))?;
    let real = if real.is_file() { real.parent().unwrap_or(&real).to_owned() } else { real };
    let folder = |path: &Path| Folder {
        path: path.to_owned(),
        shown: path.strip_prefix(&app.workspace).unwrap_or(path).display().to_string(),
        origin: Origin::Project,
        boundary: None,
        kept_apart: Vec::new(),
    };
    let is_skill = real.join(SKILL_FILE).symlink_metadata().is_ok();
    if !is_skill {
        let reports = check(&folder(&real));
        let hint = format!("a skill is a directory with a file `{SKILL_FILE}`");
        return if reports.is_empty() { Err(failed("no skill found".to_owned()).hint(hint)) } else { Ok(reports) };
    }
    let parent = real.parent().ok_or_else(|| failed("the path is the root directory".to_owned()))?;
    let name = real.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    Ok(check_one(&folder(parent), &name).into_iter().collect())
}
