//! Import plans, which describe the changes to each file and the entries that will not be imported.

use super::instruction_block::with_block;
use super::permissions::{Judge, PolicyImport, is_valid};
use super::secrets::SecretFinder;
use super::settings::{AgentSettings, CommandFile, Permission, SettingsOwner, Unsupported};
use super::sources::Sources;
use crate::config::{ConfigError, Directories, check_settings, grants, servers};
use crate::host::other_agents::Agent;
use crate::host::user_policy;
use crate::policy::Enforcer;
use crate::protocol::{FileDiff, Problem};
use crate::text::{abbreviate_home, reveal_line};
use crate::tools::line_hunks;
use jiff::Timestamp;
use std::path::{Path, PathBuf};

/// Maximum number of permissions to import.
const MAX_PERMISSIONS: usize = 2_000;
/// Programs that download the server from the network when they start.
const LOADERS: [&str; 6] = ["npx", "uvx", "bunx", "pnpx", "pipx", "docker"];

/// Files that an import may change.
#[derive(Debug, Clone)]
pub(crate) struct Targets {
    pub policy: PathBuf,
    pub project_policy: PathBuf,
    pub config: PathBuf,
    pub instructions: PathBuf,
    pub commands: PathBuf,
    pub project_commands: PathBuf,
}

impl Targets {
    pub(crate) fn new(directories: &Directories, workspace: &Path) -> Self {
        let config = &directories.config;
        Self {
            policy: grants::user_file(config),
            project_policy: grants::project_file(config, workspace),
            config: directories.config_file(),
            instructions: config.join("AGENTS.md"),
            commands: config.join("commands"),
            project_commands: workspace.join(".aye").join("commands"),
        }
    }
}

/// Changes that an import would make, and the entries that it would skip.
#[derive(Debug, Default)]
pub(crate) struct ImportPlan {
    /// Files that were read, as shown to the user.
    pub sources: Vec<String>,
    pub files: Vec<FileRewrite>,
    pub not_imported: Vec<NotImported>,
    /// Entries that are already in effect, as written in the settings.
    pub in_force: Vec<String>,
    /// Entries that are imported only in part, each with a description of that part.
    pub narrowed: Vec<(String, String)>,
    /// Next steps for the user, one sentence each.
    pub notes: Vec<String>,
}

/// File to be written, with its old and new text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileRewrite {
    pub path: PathBuf,
    /// Path as shown to the user.
    pub shown: String,
    pub old: Option<String>,
    pub new: String,
    /// Whether the file belongs to the project, where other people can read it.
    pub is_in_project: bool,
}

/// Entry that will not be imported. Secrets have been removed from it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NotImported {
    pub file: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub entry: String,
    pub reason: String,
}

impl FileRewrite {
    pub(crate) fn diff(&self) -> FileDiff {
        let name = reveal_line(&self.shown);
        let name = name.trim_start_matches('/');
        let old = if self.old.is_some() { format!("a/{name}") } else { "/dev/null".to_owned() };
        FileDiff::new(&old, &format!("b/{name}"), line_hunks(self.old.as_deref().unwrap_or_default(), &self.new))
    }
}

/// Creates import plans.
pub(crate) struct Planner<'a> {
    pub agent: Agent,
    pub targets: &'a Targets,
    pub enforcer: &'a Enforcer,
    pub secrets: &'a SecretFinder,
    pub home: &'a Path,
    pub workspace: &'a Path,
    /// Workspace for which permissions are judged. It differs from `workspace` if that directory is so broad that all
    /// access to it requires approval.
    pub judged_in: &'a Path,
    pub now: Timestamp,
    /// Whether to import allow entries from files in the project.
    pub accepts_project: bool,
    /// Returns whether a slash command with this name is built in.
    pub is_built_in: fn(&str) -> bool,
}

impl Planner<'_> {
    /// Plans the import of an agent's settings.
    ///
    /// # Errors
    /// Returns an error if one of the user's files is invalid or cannot be read.
    pub(crate) fn plan(&self, settings: AgentSettings, sources: &Sources) -> Result<ImportPlan, ConfigError> {
        let AgentSettings { mut permissions, servers, instructions, commands, narrowed, unsupported } = settings;
        let mut plan = ImportPlan { sources: sources.read().to_vec(), narrowed, ..ImportPlan::default() };
        let mut left_out = unsupported;
        if permissions.len() > MAX_PERMISSIONS {
            let reason = format!("more than {MAX_PERMISSIONS} permissions; the others are not imported");
            left_out.push(Unsupported { place: permissions[0].place.clone(), entry: "permissions".to_owned(), reason });
            permissions.truncate(MAX_PERMISSIONS);
        }
        permissions.retain(|permission| {
            let has_secret = self.secrets.line_of_secret(&permission.text).is_some();
            if has_secret {
                let (place, entry) = (permission.place.clone(), permission.text.clone());
                left_out.push(Unsupported { place, entry, reason: "the entry contains a secret".to_owned() });
            }
            !has_secret
        });
        self.plan_policies(&permissions, &mut plan, &mut left_out)?;
        self.plan_servers(servers, &mut plan, &mut left_out)?;
        self.plan_instructions(instructions, &mut plan, &mut left_out)?;
        self.plan_commands(commands, &mut plan, &mut left_out)?;
        let malformed = sources.problems().iter().map(|(place, reason)| Unsupported {
            place: place.clone(),
            entry: String::new(),
            reason: reason.clone(),
        });
        plan.not_imported = malformed.chain(left_out).map(|entry| self.to_not_imported(&entry)).collect();
        plan.narrowed = plan.narrowed.iter().map(|(entry, part)| (self.secrets.redact(entry), part.clone())).collect();
        plan.files.retain(|file| file.old.as_deref() != Some(&file.new));
        Ok(plan)
    }

    fn to_not_imported(&self, entry: &Unsupported) -> NotImported {
        NotImported {
            file: entry.place.clone(),
            entry: self.secrets.redact(&entry.entry),
            reason: self.secrets.redact(&entry.reason),
        }
    }

    fn file(&self, path: &Path, old: Option<String>, new: String) -> FileRewrite {
        FileRewrite {
            path: path.to_owned(),
            shown: abbreviate_home(path, self.home),
            old,
            new,
            is_in_project: path.starts_with(&self.targets.project_commands),
        }
    }

    fn plan_policies(
        &self,
        permissions: &[Permission],
        plan: &mut ImportPlan,
        left_out: &mut Vec<Unsupported>,
    ) -> Result<(), ConfigError> {
        let judge = Judge {
            agent: self.agent,
            enforcer: self.enforcer,
            workspace: self.judged_in,
            now: self.now,
            accepts_project: self.accepts_project,
        };
        for (level, path) in [(SettingsOwner::User, &self.targets.policy), (SettingsOwner::Project, &self.targets.project_policy)]
        {
            let old = grants::read(path)?;
            let base = old.clone().unwrap_or_else(|| match level {
                SettingsOwner::User => user_policy::new_file("`aye import`"),
                SettingsOwner::Project => user_policy::new_project_file("`aye import`", self.workspace),
            });
            is_valid(&base, level).map_err(|why| {
                let problem = Problem::new(format!("`{}` is not valid", abbreviate_home(path, self.home))).because(why);
                ConfigError::single(problem.hint("run `aye policy validate`, and fix the file first"))
            })?;
            let PolicyImport { text, in_force, narrowed, left_out: not_imported } = judge.apply(&base, level, permissions);
            left_out.extend(not_imported);
            plan.in_force.extend(in_force);
            plan.narrowed.extend(narrowed);
            if text != base {
                plan.files.push(self.file(path, old, text));
            }
        }
        Ok(())
    }

    fn plan_servers(
        &self,
        found: Vec<super::settings::ServerEntry>,
        plan: &mut ImportPlan,
        left_out: &mut Vec<Unsupported>,
    ) -> Result<(), ConfigError> {
        let path = &self.targets.config;
        let old = grants::read(path)?;
        let mut text = old.clone().unwrap_or_default();
        for entry in found {
            let name = &entry.name;
            let label = format!("MCP server `{name}`");
            if servers::has_same_server(&text, name, &entry.server) {
                plan.in_force.push(label);
                continue;
            }
            let at_file = |error: ConfigError| error.with_location(format!("`{}`", abbreviate_home(path, self.home)));
            let Some(new) = servers::with_server(&text, name, &entry.server).map_err(at_file)? else {
                let reason = "your config.toml has another server with this name".to_owned();
                left_out.push(Unsupported { place: entry.place, entry: label, reason });
                continue;
            };
            if let Err(error) = check_settings(&new) {
                left_out.push(Unsupported { place: entry.place, entry: label, reason: error.to_string() });
                continue;
            }
            text = new;
            if !entry.variables.is_empty() {
                plan.notes.push(format!(
                    "set {} in your environment: `{name}` needs it, and its value is in {}",
                    entry.variables.join(" and "),
                    entry.place
                ));
            }
            let loads = entry.server.command.as_deref().is_some_and(|program| LOADERS.contains(&program));
            if loads {
                plan.notes.push(format!("`{name}` needs the network to start: set `network = true` under [mcp.servers.{name}]"));
            }
            plan.notes
                .push(format!("run `aye mcp allow {name}` to let the model use the tools of `{name}`; each call needs approval"));
        }
        if text != old.clone().unwrap_or_default() {
            plan.files.push(self.file(path, old, text));
        }
        Ok(())
    }

    fn plan_instructions(
        &self,
        found: Vec<super::settings::InstructionText>,
        plan: &mut ImportPlan,
        left_out: &mut Vec<Unsupported>,
    ) -> Result<(), ConfigError> {
        let path = &self.targets.instructions;
        let old = grants::read(path)?;
        let mut text = old.clone();
        for instructions in found {
            let added = match self.secrets.line_of_secret(&instructions.text) {
                Some(line) => Err(format!("line {line} contains a secret; remove it there, and import again")),
                None => with_block(text.as_deref(), &instructions.place, &instructions.text),
            };
            match added {
                Ok(new) if text.as_deref() == Some(&new) => plan.in_force.push(instructions.place),
                Ok(new) => text = Some(new),
                Err(reason) => {
                    left_out.push(Unsupported { place: instructions.place, entry: "instructions".to_owned(), reason });
                }
            }
        }
        if let Some(new) = text.filter(|text| old.as_ref() != Some(text)) {
            plan.files.push(self.file(path, old, new));
        }
        Ok(())
    }

    fn plan_commands(
        &self,
        found: Vec<CommandFile>,
        plan: &mut ImportPlan,
        left_out: &mut Vec<Unsupported>,
    ) -> Result<(), ConfigError> {
        for command in found {
            let slash = format!("/{}", command.name.replace('/', ":"));
            let directory = match command.level {
                SettingsOwner::User => &self.targets.commands,
                SettingsOwner::Project => &self.targets.project_commands,
            };
            let path = directory.join(format!("{}.md", command.name));
            let old = grants::read(&path)?;
            let planned = plan.files.iter().any(|file| file.path == path);
            let reason = if (self.is_built_in)(&slash[1..]) {
                Some(format!("aye has a built-in command {slash}"))
            } else if let Some(line) = self.secrets.line_of_secret(&command.text) {
                Some(format!("line {line} contains a secret; remove it there, and import again"))
            } else if planned || old.as_ref().is_some_and(|old| *old != command.text) {
                Some(format!("`{}` has different content", abbreviate_home(&path, self.home)))
            } else {
                None
            };
            match reason {
                Some(reason) => left_out.push(Unsupported { place: command.place, entry: format!("command {slash}"), reason }),
                None if old.is_some() => plan.in_force.push(slash),
                None => plan.files.push(self.file(&path, None, command.text)),
            }
        }
        Ok(())
    }
}
