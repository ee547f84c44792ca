//! Settings that apply to this run, after all layers have been merged.

use super::Retention;
use super::agents::AgentSettings;
use super::file::{self, ConfigEntry, ConfigValue, ValueOrigin, Values};
use super::model_roles;
use super::policy_service::PolicyService;
use super::profile::{self, Profile};
use super::schema::{self, KEYS};
use super::screen::ScreenSettings;
use super::search::SearchSettings;
use super::services::ServiceSettings;
use super::spending::{self, SetEffort, SetLimit, SetPrice};
use super::workspace_store::{self, WorkspaceStore};
use super::{ConfigError, Directories};
use crate::protocol::{AssumedPrice, Mode, TextTools};
use crate::sys::process::Shell;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub llm: Llm,
    pub context: ContextSettings,
    pub tools: Tools,
    /// Session and task budgets.
    pub limits: Vec<SetLimit>,
    pub effort: Option<SetEffort>,
    pub assumed_price: Option<SetPrice>,
    /// For an agent's session, the parent session's model, and the price that the parent session assumes for it.
    pub price_of_parent: Option<(String, AssumedPrice)>,
    pub retention: Retention,
    pub search: SearchSettings,
    pub approval: ApprovalSettings,
    /// Object store for sessions, if configured.
    pub workspace_store: Option<WorkspaceStore>,
    /// Source of a policy that is loaded from a URL, if configured.
    pub policy_service: Option<PolicyService>,
    pub services: ServiceSettings,
    /// Whether to collect proposals for instruction files.
    pub memory: bool,
    pub(super) values: Values,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Llm {
    pub idle_timeout: Duration,
    pub connect_timeout: Duration,
    pub max_retries: u32,
    pub retry_base: Duration,
}

/// Context window settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ContextSettings {
    /// Percentage of the context window at which older messages are summarized. If absent, usage does not trigger
    /// compaction.
    pub compact_at_percent: Option<u64>,
}

/// Model list settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ModelList {
    pub catalogue_url: Option<String>,
    pub check_daily: bool,
}

/// Approval settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ApprovalSettings {
    /// Whether every answer must be confirmed with its key and Enter, no matter when it is given.
    pub strict: bool,
    /// Whether commands that no rule matches first run in a copy of the workspace, so the user approves their effects
    /// instead.
    pub by_effects: bool,
    /// Approval mode in which sessions start, unless `--mode` overrides it.
    pub mode: Mode,
    pub arming_ms: u64,
    /// Time after which a pending approval of a remote client is denied.
    pub timeout: Duration,
}

/// Tool settings: which paths are accepted, and restrictions on the text tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tools {
    pub absolute_paths_only: bool,
    pub follow_symlinks: bool,
    pub shell: Shell,
    pub text: TextTools,
    /// Precedence if a built-in tool and an MCP tool share an unqualified name: `local-first`, `mcp-first` or `error`.
    pub conflict: String,
    /// Whether to load rarely used built-in tools only on demand.
    pub on_demand: bool,
    /// Percentage of the context window. If the MCP tools would take up more, they are loaded on demand.
    pub defer_over_percent: u64,
}

/// Lists of enabled and disabled tools, each with the location where it is set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ToolLists {
    pub disabled: Option<(String, Vec<String>)>,
    pub enabled: Option<(String, Vec<String>)>,
}

impl ToolLists {
    fn from_values(values: &Values) -> Self {
        let list = |key: &str| match values.get(&vec!["tools".to_owned(), key.to_owned()]) {
            Some(ConfigEntry { value: ConfigValue::List(names), origin }) => {
                let place = match origin {
                    ValueOrigin::File { path, line } | ValueOrigin::Profile { path, line, .. } => {
                        format!("{}:{line}", path.display())
                    }
                    ValueOrigin::Flag => format!("--set tools.{key}"),
                };
                Some((place, names.clone()))
            }
            _ => None,
        };
        Self { disabled: list("disabled"), enabled: list("enabled") }
    }

    /// Reads the tool lists of a project's `config.toml`, which can only disable tools. All other keys are read by
    /// `ProjectLayer`.
    pub(crate) fn from_project(bytes: &[u8], path: &std::path::Path) -> Result<Self, ConfigError> {
        let text = std::str::from_utf8(bytes).map_err(|_| ConfigError::single(file::not_utf8(path)))?;
        file::parse_lenient(text, path).map(|(values, _)| Self::from_values(&values))
    }
}

impl Settings {
    /// Loads the user's `config.toml`, then applies the profile and the `--set` options.
    pub(crate) fn load(directories: &Directories, profile: Option<&str>, set: &[(String, String)]) -> Result<Self, ConfigError> {
        let file = directories.config_file();
        let mut values = file::read(&file)?;
        model_roles::merge_main(&mut values)?;
        if let Some(name) = profile {
            profile::apply(&mut values, name, &file)?;
        }
        Self::from_values(values, set)
    }

    /// Returns the settings of a profile that have the same effect as command line options.
    pub(crate) fn profile(&self, name: &str, directories: &Directories, home: Option<&Path>) -> Profile {
        Profile::read(&self.values, name, &directories.config, home)
    }

    pub(super) fn from_values(mut values: Values, set: &[(String, String)]) -> Result<Self, ConfigError> {
        for (name, given) in set {
            file::assign(&mut values, name, given)?;
        }
        model_roles::merge_main(&mut values)?;
        let llm = Llm {
            idle_timeout: Duration::from_secs(number(&values, &["llm", "idle_timeout_seconds"])),
            connect_timeout: Duration::from_secs(number(&values, &["llm", "connect_timeout_seconds"])),
            max_retries: u32::try_from(number(&values, &["llm", "max_retries"])).unwrap_or(u32::MAX),
            retry_base: Duration::from_millis(number(&values, &["llm", "retry_base_ms"])),
        };
        let context = ContextSettings {
            compact_at_percent: Some(number(&values, &["context", "compact_at_percent"])).filter(|percent| *percent > 0),
        };
        let tools = Tools {
            absolute_paths_only: flag(&values, &["tools", "absolute_paths_only"]),
            follow_symlinks: flag(&values, &["tools", "follow_symlinks"]),
            text: TextTools {
                enabled: flag(&values, &["tools", "text", "enabled"]),
                allowed_extensions: extensions(&values, &["tools", "text", "allowed_extensions"]),
                max_file_size: file::number(&values, &["tools", "text", "max_file_size"])
                    .or_else(|| file::bytes(schema::default_value(&["tools", "text", "max_file_size"])?.as_str()?)),
                allow_create: flag(&values, &["tools", "text", "allow_create"]),
                allow_delete: flag(&values, &["tools", "text", "allow_delete"]),
            },
            shell: shell(&values),
            conflict: file::text(&values, &["tools", "conflict"]).unwrap_or_default().to_owned(),
            on_demand: flag(&values, &["tools", "on_demand"]),
            defer_over_percent: number(&values, &["mcp", "defer_over"]),
        };
        let (limits, effort) = (spending::limits(&values), spending::effort(&values));
        let assumed_price = spending::assumed_price(&values);
        let retention = Retention::from_values(&values);
        let search = SearchSettings::from_values(&values)?;
        let approval = ApprovalSettings {
            strict: file::text(&values, &["approval", "guard"]) == Some("strict"),
            by_effects: file::text(&values, &["approval", "approve"]) != Some("command"),
            mode: file::text(&values, &["approval", "mode"]).and_then(Mode::from_name).unwrap_or_default(),
            arming_ms: number(&values, &["approval", "arming_ms"]),
            timeout: Duration::from_secs(number(&values, &["approval", "timeout_seconds"])),
        };
        let (workspace_store, policy_service) = (WorkspaceStore::from_values(&values)?, PolicyService::from_values(&values)?);
        let services = ServiceSettings::from_values(&values)?;
        let memory = flag(&values, &["memory", "enabled"]);
        let settings = Self {
            llm,
            context,
            tools,
            limits,
            effort,
            assumed_price,
            price_of_parent: None,
            retention,
            search,
            approval,
            workspace_store,
            policy_service,
            services,
            memory,
            values,
        };
        settings.check_providers()?;
        Ok(settings)
    }

    pub(crate) fn model_list(&self) -> ModelList {
        ModelList {
            catalogue_url: self.text(&["models", "catalogue_url"]).map(str::to_owned),
            check_daily: flag(&self.values, &["models", "check_daily"]),
        }
    }

    /// Returns the path of the back-end tool manifest, if one is configured. A relative path is resolved against the
    /// directory of `config.toml`.
    pub(crate) fn backend_manifest(&self, directories: &Directories, home: &Path) -> Option<PathBuf> {
        let path = self.text(&["services", "backend_tools", "manifest"])?;
        Some(path.strip_prefix("~/").map_or_else(|| directories.config.join(path), |below| home.join(below)))
    }

    /// Returns whether artifacts are uploaded before the results that refer to them are added to the conversation.
    pub(crate) fn uploads_artifacts(&self) -> bool {
        self.workspace_store.is_some() && workspace_store::uploads_artifacts(&self.values)
    }

    /// Returns the URL of the release index, if one is set.
    pub(crate) fn update_url(&self) -> Option<&str> {
        self.text(&["update", "url"])
    }

    /// Returns the model that writes summaries, preceded by the key that sets it. Returns `None` if summaries are
    /// written by the current model.
    pub(crate) fn summary_model(&self) -> Option<(&'static str, &str)> {
        model_roles::summary(&self.values)
    }

    /// Returns the models with which a task continues if the provider of the current model is overloaded.
    pub(crate) fn fallback_models(&self) -> Vec<String> {
        model_roles::fallbacks(&self.values)
    }

    pub(super) fn entry(&self, path: &[&str]) -> Option<&ConfigEntry> {
        file::entry(&self.values, path)
    }

    pub(super) fn text(&self, path: &[&str]) -> Option<&str> {
        file::text(&self.values, path)
    }

    /// Returns the agent limits.
    pub(crate) fn agents(&self) -> AgentSettings {
        AgentSettings::new(|key| number(&self.values, &["agents", key]))
    }

    /// Returns the step limit for a task, if one is set.
    pub(crate) fn task_steps(&self) -> Option<u32> {
        let steps = file::number(&self.values, &["budget", "task_steps"])?;
        Some(u32::try_from(steps).unwrap_or(u32::MAX))
    }

    /// Returns the settings for the full-screen UI.
    pub(crate) fn screen(&self) -> ScreenSettings {
        ScreenSettings::from_values(&self.values)
    }

    /// Returns the shell command whose output is displayed in the status row, if one is set.
    pub(crate) fn status_command(&self) -> Option<&str> {
        self.text(&["status", "command"]).filter(|line| !line.trim().is_empty())
    }

    /// Returns whether the line-based UI is configured.
    pub(crate) fn is_line_based(&self) -> bool {
        flag(&self.values, &["ui", "plain"])
    }

    /// Returns the path of the file with additional certificate authorities, if one is set. A relative path is resolved
    /// against the directory of `config.toml`, and `~/` refers to the home directory.
    pub(crate) fn ca_bundle(&self, directories: &Directories, home: &Path) -> Option<PathBuf> {
        let path = self.text(&["http", "ca_bundle"])?;
        Some(path.strip_prefix("~/").map_or_else(|| directories.config.join(path), |below| home.join(below)))
    }

    /// Returns whether a language server may be used for this language.
    pub(crate) fn uses_language_server(&self, language: &str) -> bool {
        flag(&self.values, &["lsp", "enabled"]) && flag(&self.values, &["lsp", language, "enabled"])
    }

    /// Returns the program and arguments of the language server for this language, if they are set.
    pub(crate) fn language_server(&self, language: &str) -> Option<&[String]> {
        self.entry(&["lsp", language, "command"])?.value.as_list()
    }

    /// Returns whether keys may be saved in the keyring.
    pub(crate) fn uses_keyring(&self) -> bool {
        flag(&self.values, &["auth", "keyring"])
    }

    /// Returns whether aye handles mouse events.
    pub(crate) fn mouse(&self) -> bool {
        flag(&self.values, &["ui", "mouse"])
    }

    /// Returns the lists of enabled and disabled tools.
    pub(crate) fn tool_lists(&self) -> ToolLists {
        ToolLists::from_values(&self.values)
    }

    /// Returns whether the key with this dotted name is set.
    pub(crate) fn sets(&self, name: &str) -> bool {
        self.entry(&name.split('.').collect::<Vec<_>>()).is_some()
    }

    /// Replaces the MCP server entries with those from other settings.
    pub(crate) fn take_servers(&mut self, other: &Self) {
        let is_of_server = |path: &Vec<String>| path.starts_with(&["mcp".to_owned(), "servers".to_owned()]);
        self.values.retain(|path, _| !is_of_server(path));
        let theirs = other.values.iter().filter(|(path, _)| is_of_server(path));
        self.values.extend(theirs.map(|(path, entry)| (path.clone(), entry.clone())));
    }

    /// Formats all keys with their values and origins for `aye config show`.
    pub(crate) fn show(&self) -> String {
        let mut shown = String::new();
        for key in KEYS {
            let mut set =
                self.values.iter().filter(|(path, _)| key.pattern.len() == path.len() && key.starts_with(path)).peekable();
            if set.peek().is_none() && !key.default.is_empty() && !key.pattern.contains(&"*") {
                let _ = writeln!(shown, "{} = {}  # default", key.dotted_name(), key.default);
            }
            for (path, entry) in set {
                let origin = match &entry.origin {
                    ValueOrigin::File { .. } | ValueOrigin::Profile { .. } => entry.origin.to_string().replace('`', ""),
                    ValueOrigin::Flag => "--set".to_owned(),
                };
                let _ = writeln!(shown, "{} = {}  # {origin}", path.join("."), entry.value.as_toml());
            }
        }
        shown
    }
}

impl ConfigValue {
    pub(super) fn as_toml(&self) -> String {
        let text = |text: &String| toml::Value::String(text.clone()).to_string();
        match self {
            Self::Text(value) => text(value),
            Self::Flag(value) => value.to_string(),
            Self::Number(value) => value.to_string(),
            Self::Dollars(value) => (*value as f64 / file::MILLIONTHS).to_string(),
            Self::List(values) => format!("[{}]", values.iter().map(text).collect::<Vec<_>>().join(", ")),
            // Values of environment variables may be secrets, so only the names are shown.
            Self::Table(values) => {
                format!("{{ {} }}", values.keys().map(|name| format!("{name} = \"…\"")).collect::<Vec<_>>().join(", "))
            }
        }
    }
}

pub(super) fn number(values: &Values, path: &[&str]) -> u64 {
    file::number(values, path).unwrap_or_else(|| schema::default_number(path))
}

/// Returns a list of file extensions in normalized form, in which `.md`, `md` and `*.md` are the same.
fn extensions(values: &Values, path: &[&str]) -> Vec<String> {
    if let Some(entry) = file::entry(values, path) {
        return entry.value.as_list().unwrap_or_default().iter().map(|text| extension(text)).collect();
    }
    let texts = schema::default_value(path).and_then(|default| default.as_array().cloned()).unwrap_or_default();
    texts.iter().filter_map(toml::Value::as_str).map(extension).collect()
}

fn extension(text: &str) -> String {
    text.trim().trim_start_matches('*').trim_start_matches('.').to_ascii_lowercase()
}

/// Returns the shell to use. `auto` means the shell for which the policy's rules are written.
fn shell(values: &Values) -> Shell {
    file::text(values, &["tools", "shell"]).and_then(Shell::by_name).unwrap_or_default()
}

pub(super) fn flag(values: &Values, path: &[&str]) -> bool {
    file::flag(values, path).unwrap_or_else(|| schema::default_flag(path))
}
