//! `aye agents`: lists, shows and checks agents.

pub(crate) mod args;

use super::definition_files::{nearest_name, print_reports, warn_unused};
use crate::host::agent_definitions::own_folders;
use crate::host::console::{print_json, print_text, warn};
use crate::host::context::AppContext;
use crate::host::error::CliError;
use crate::host::exit::Exit;
use crate::host::options::Common;
use crate::host::project::ProjectConfig;
use crate::protocol::{Effort, Problem};
use crate::skills::SkillReport;
use crate::subagents::{AgentDefinition, AgentFolder, AgentFormat, AgentOrigin, AgentSet, PROJECT_FOLDERS, check};
use crate::text::{clean, clean_line, reveal_line, truncate, width};
use crate::tools::AgentTools;
use args::AgentsAction;
use serde::Serialize;
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

/// Maximum width of a description in the list, in terminal cells.
const DESCRIPTION_CELLS: usize = 100;

pub(crate) fn run(app: &AppContext, common: &Common, action: AgentsAction) -> Result<Exit, CliError> {
    match action {
        AgentsAction::List { json } => Ok(list(&usable(app, common), json)),
        AgentsAction::Show { name } => show(&usable(app, common), &name),
        AgentsAction::Check { path, json } => check_all(app, path.as_deref(), json),
    }
}

/// Returns the agents that are available to a session in this directory.
fn usable(app: &AppContext, common: &Common) -> Arc<AgentSet> {
    let project = ProjectConfig::inspect(&app.workspace, &app.directories.config, common.trust);
    project.ignored_files_notice().iter().for_each(|notice| warn(notice.clone()));
    app.agents.with_project(&project).set()
}

/// An agent in the JSON output of `aye agents list`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ListedAgent<'a> {
    name: &'a str,
    description: &'a str,
    file: &'a str,
    origin: AgentOrigin,
    reads_only: bool,
    tools: Vec<String>,
    left_out: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    effort: Option<Effort>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_steps: Option<u32>,
}

fn list(set: &AgentSet, json: bool) -> Exit {
    if json {
        let agents: Vec<_> = set.agents.iter().map(listed).collect();
        print_json(&serde_json::json!({ "agents": agents, "hidden": set.hidden, "broken": set.broken, "limits": set.limits }));
        return Exit::Completed;
    }
    let longest = set.agents.iter().map(|agent| width(&agent.name)).max().unwrap_or_default();
    let mut text = String::new();
    for agent in &set.agents {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{:longest$}  {}", agent.name, truncate(&agent.description, DESCRIPTION_CELLS));
        let _ = writeln!(text, "{:longest$}  {}", "", clean_line(&agent.file));
    }
    print_text(&text);
    warn_unused("agent", &set.hidden, &set.broken, &set.limits);
    Exit::Completed
}

fn listed(agent: &AgentDefinition) -> ListedAgent<'_> {
    let tools = AgentTools::new(agent);
    ListedAgent {
        name: &agent.name,
        description: &agent.description,
        file: &agent.file,
        origin: agent.origin,
        reads_only: tools.reads_only,
        tools: tools.given,
        left_out: tools.left_out.into_iter().map(|(entry, _)| entry).collect(),
        model: agent.model.as_deref(),
        effort: agent.effort,
        max_steps: agent.max_steps,
    }
}

fn show(set: &AgentSet, name: &str) -> Result<Exit, CliError> {
    let name = name.trim_start_matches('@');
    let Some(agent) = set.find(name) else { return Err(unknown(set, name)) };
    let mut text = String::new();
    let mut line = |key: &str, value: &str| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{key:12} {}", clean_line(value));
    };
    line("name", &agent.name);
    line("description", &agent.description);
    line("file", &agent.file);
    let tools = AgentTools::new(agent);
    let given = if tools.given.is_empty() { "none".to_owned() } else { tools.given.join(", ") };
    line("tools", &given);
    line("access", if tools.reads_only { "reads only" } else { "can change files, within the session's permissions" });
    for (entry, why) in &tools.left_out {
        line("left out", &format!("{entry} ({why})"));
    }
    line("model", agent.model.as_deref().unwrap_or("the session's model"));
    if let Some(effort) = agent.effort {
        line("effort", effort.as_str());
    }
    if let Some(steps) = agent.max_steps {
        line("steps", &format!("at most {steps}"));
    }
    for hidden in set.hidden.iter().filter(|hidden| agent.is_named(&hidden.name)) {
        line("not used", &hidden.file);
    }
    print_text(&format!("{text}\n{}\n", clean(&agent.prompt)));
    Ok(Exit::Completed)
}

fn unknown(set: &AgentSet, name: &str) -> CliError {
    let mut problem = Problem::new(format!("unknown agent `{}`", name.escape_debug()));
    let is_it = |file: &str| Path::new(file).file_stem().is_some_and(|stem| stem == name);
    if let Some(broken) = set.broken.iter().find(|broken| is_it(&broken.file)) {
        let fault = broken.faults.first().map(|fault| fault.with_file(&reveal_line(&broken.file))).unwrap_or_default();
        return CliError::usage(problem.because(fault));
    }
    if let Some(near) = nearest_name(set.agents.iter().map(|agent| agent.name.as_str()), name) {
        problem = problem.hint(format!("did you mean `{near}`?"));
    }
    CliError::usage(problem.hint("run `aye agents list` to list the agents"))
}

/// Checks the agents at a path or, if no path is given, those of the project and the user. The files are only parsed,
/// so the project need not be trusted.
fn check_all(app: &AppContext, path: Option<&Path>, json: bool) -> Result<Exit, CliError> {
    let reports: Vec<SkillReport> = if let Some(path) = path {
        check_path(app, path)?
    } else {
        let folder = |(name, format): &(&str, AgentFormat)| folder(app, &app.workspace.join(name), *format);
        let own = own_folders(&app.directories, &app.home);
        PROJECT_FOLDERS.iter().map(folder).chain(own).flat_map(|folder| check_folder(&folder)).collect()
    };
    Ok(print_reports("agent", &reports, json))
}

/// Returns a report for each file in a folder, and one for the folder itself if it exceeds a limit.
fn check_folder(folder: &AgentFolder) -> Vec<SkillReport> {
    let (files, limit) = folder.read();
    let mut reports: Vec<SkillReport> = files.iter().map(check).collect();
    reports.extend(limit.map(|limit| SkillReport {
        file: folder.shown.clone(),
        errors: vec![crate::skills::Fault::general(limit)],
        warnings: Vec::new(),
    }));
    reports
}

/// Returns reports for a path, which may be an agent file or a folder of agents.
fn check_path(app: &AppContext, path: &Path) -> Result<Vec<SkillReport>, CliError> {
    let given = path.display().to_string();
    let failed = |why: String| CliError::usage(Problem::new(format!("cannot check `{given}`")).because(why));
    let full = app.workspace.join(path);
    let real = full.canonicalize().map_err(|error| failed(error.to_string()))?;
    if real.is_file() {
        let parent = real.parent().unwrap_or(&real);
        let name = real.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let Some(format) = AgentFormat::of_file(&name) else {
            return Err(failed("the file is not a Markdown or TOML file".to_owned()));
        };
        return Ok(vec![check(&folder(app, parent, format).file(&name))]);
    }
    let formats = [AgentFormat::Markdown, AgentFormat::Toml];
    let reports: Vec<SkillReport> = formats.iter().flat_map(|format| check_folder(&folder(app, &real, *format))).collect();
    let hint = "an agent is a Markdown file with front matter, or a TOML file";
    if reports.is_empty() { Err(failed("no agent found".to_owned()).hint(hint)) } else { Ok(reports) }
}

fn folder(app: &AppContext, path: &Path, format: AgentFormat) -> AgentFolder {
    AgentFolder {
        path: path.to_owned(),
        shown: path.strip_prefix(&app.workspace).unwrap_or(path).display().to_string(),
        format,
        origin: AgentOrigin::Project,
    }
}
