//! The tools of a session under one policy, which are found by name.

use super::agents::{self, AGENT, AgentTool};
use super::arguments::object;
use super::custom::{BoundTool, CustomTool};
use super::mcp::{RemoteConfig, RemoteTools};
use super::on_demand::{FindTools, LoadedTools};
use super::patch_file::PatchFile;
use super::paths::Paths;
use super::registry::{built_in_names, enabled_built_in, find_built_in};
use super::settings::ToolSettings;
use super::skills::{self, SkillTool};
use super::tool::{AnyTool, SharedTool};
use super::write::apply_patch_file::ApplyPatchFile;
use crate::policy::NamedCommand;
use crate::protocol::{Action, CallArguments, ErrorCode, ToolError};
use std::sync::Arc;

/// Where tools that are not built in come from, and whether tools are loaded on demand.
#[derive(Clone, Default)]
pub(crate) struct ToolSources {
    /// Commands that the policy defines as tools.
    pub named: Vec<NamedCommand>,
    /// Custom tools that manifests define.
    pub custom: Vec<Arc<CustomTool>>,
    /// Patch file that the session applies. In other sessions, there is no tool for applying one.
    pub patch: Option<Arc<PatchFile>>,
    /// MCP servers, or `None` if none are configured.
    pub remote: Option<RemoteConfig>,
    /// Whether built-in tools that are rarely needed are loaded on demand.
    pub on_demand: bool,
    /// Tools that the session has loaded. Not affected by policy changes.
    pub loaded: LoadedTools,
}

/// A session's tools under one policy.
pub(crate) struct Toolset {
    settings: Arc<ToolSettings>,
    /// The tool for the patch file, followed by the commands that the policy defines as tools, and the custom tools. A
    /// tool whose name is already in use is omitted.
    own: Vec<SharedTool>,
    /// MCP tools, or `None` if no server is configured.
    remote: Option<RemoteTools>,
    /// The tool that loads other tools, or `None` if all tools are offered from the start.
    finder: Option<Arc<FindTools>>,
    /// The tool that loads skills, or `None` if there are no skills or another tool has its name.
    skills: Option<SharedTool>,
    /// The tool that starts agents, or `None` if the session cannot start any or another tool has its name.
    agents: Option<SharedTool>,
}

impl Toolset {
    /// Combines the built-in tools with those from the other sources. MCP servers contribute the tools that they offer
    /// at this moment.
    pub(crate) fn new(settings: ToolSettings, sources: ToolSources) -> Self {
        let ToolSources { named, custom, patch, remote, on_demand, loaded } = sources;
        let commands = named.iter().filter(|command| find_built_in(&command.name).is_none());
        let commands: Vec<SharedTool> = commands.map(|command| Arc::new(command.clone()) as SharedTool).collect();
        let is_free =
            |name: &str| find_built_in(name).is_none() && !named.iter().any(|named| named.name.eq_ignore_ascii_case(name));
        let own = |bound: &dyn Fn(&Arc<CustomTool>) -> BoundTool| {
            let custom = custom.iter().filter(|tool| is_free(&tool.name)).map(|tool| Arc::new(bound(tool)) as SharedTool);
            let patch = patch.iter().map(|patch| Arc::new(ApplyPatchFile::new(Arc::clone(patch))) as SharedTool);
            patch.chain(commands.iter().cloned()).chain(custom).collect()
        };
        let unbound: Vec<SharedTool> = own(&|tool| BoundTool::without_steps(Arc::clone(tool)));
        let is_taken = |tool: &SharedTool| tool.name().eq_ignore_ascii_case(skills::SKILL);
        let skills = SkillTool::new(settings.session.skills.skill_set()).filter(|_| !unbound.iter().any(is_taken));
        let skills = skills.map(|tool| Arc::new(tool) as SharedTool);
        let is_free = !unbound.iter().any(|tool| tool.name().eq_ignore_ascii_case(AGENT));
        let agents = settings.session.agents.clone().filter(|_| is_free).map(AgentTool::new);
        let is_seldom_used = agents.as_ref().is_some_and(AgentTool::is_seldom_used);
        let agents = agents.map(|tool| Arc::new(tool) as SharedTool);
        let mut toolset = Self { settings: Arc::new(settings), own: unbound, remote: None, finder: None, skills, agents };
        let names: Vec<String> = toolset.local().map(|tool| tool.name().to_owned()).collect();
        toolset.remote = remote.map(|remote| RemoteTools::new(&names, remote));
        let local = toolset.agents.iter().filter(|_| is_seldom_used);
        toolset.finder = FindTools::new(&toolset.settings, toolset.remote.as_ref(), local, on_demand, loaded).map(Arc::new);
        // A step may be any other tool, so all names must be known.
        let bound = own(&|tool| BoundTool::new(Arc::clone(tool), &custom, &toolset.settings, &|name| toolset.resolve(name)));
        Self { own: bound, ..toolset }
    }

    pub(crate) fn settings(&self) -> &Arc<ToolSettings> {
        &self.settings
    }

    /// Returns the MCP tools that were available when the toolset was created.
    pub(crate) fn remote(&self) -> Option<&RemoteTools> {
        self.remote.as_ref()
    }

    /// Returns the tool that loads other tools, or `None` if all tools are offered from the start.
    pub(super) fn finder(&self) -> Option<&FindTools> {
        self.finder.as_deref()
    }

    /// Returns the local tools: the built-in ones, then those that load skills and start agents, then the tool for the
    /// patch file, the commands that the policy defines as tools, and the custom tools.
    pub(super) fn local(&self) -> impl Iterator<Item = &SharedTool> {
        enabled_built_in(&self.settings).map(|tool| tool as &SharedTool).chain(&self.skills).chain(&self.agents).chain(&self.own)
    }

    /// Returns whether a local tool has this name, in which case the name does not refer to an MCP tool.
    pub(crate) fn is_local(&self, name: &str) -> bool {
        find_built_in(name).is_some()
            || self.skills.iter().chain(&self.agents).chain(&self.own).any(|tool| tool.name().eq_ignore_ascii_case(name))
    }

    /// Returns all tools that can be called: local tools whose names are not used by MCP tools, followed by the MCP
    /// tools.
    fn all_tools(&self) -> impl Iterator<Item = &dyn AnyTool> {
        let clear = |tool: &&dyn AnyTool| self.remote().is_none_or(|remote| !remote.is_remote_name(tool.name()));
        let local = self.local().map(|tool| &**tool).filter(clear);
        local.chain(self.remote().into_iter().flat_map(RemoteTools::listed_tools))
    }

    /// Returns the tools to include in the next request. Loaded tools come last, so the list before them does not
    /// change.
    pub(super) fn offered_tools(&self) -> Vec<&dyn AnyTool> {
        let Some(finder) = self.finder() else { return self.all_tools().collect() };
        let mut offered: Vec<&dyn AnyTool> = self.all_tools().filter(|tool| !finder.loads(*tool)).collect();
        offered.push(finder);
        offered.extend(finder.loaded_tools());
        offered
    }

    /// Returns the tools to show in user interfaces: those in the next request, and built-in tools that have not been
    /// loaded yet.
    pub(super) fn available(&self) -> Vec<&dyn AnyTool> {
        let Some(finder) = self.finder() else { return self.all_tools().collect() };
        let shown =
            |tool: &&dyn AnyTool| find_built_in(tool.name()).is_some() || tool.name() == AGENT || !finder.needs_loading(*tool);
        let mut shown: Vec<&dyn AnyTool> = self.all_tools().filter(shown).collect();
        shown.push(finder);
        shown
    }

    /// Finds a tool by its name or alias, ignoring case, or by the name of an MCP tool.
    ///
    /// # Errors
    ///
    /// Returns an error if the name is unknown or ambiguous.
    pub(super) fn resolve(&self, name: &str) -> Result<SharedTool, ToolError> {
        if let Some(finder) = self.finder.as_ref().filter(|_| FindTools::is_called(name)) {
            return Ok(Arc::clone(finder) as SharedTool);
        }
        let own = find_built_in(name).or_else(|| self.local().find(|tool| tool.name().eq_ignore_ascii_case(name)));
        let own = own.or_else(|| self.skills.as_ref().filter(|_| skills::is_called(name)));
        let own = own.or_else(|| self.agents.as_ref().filter(|_| agents::is_called(name)));
        let remote = self.remote().map(|remote| remote.find(name, own.is_some())).transpose()?.flatten();
        // Do not suggest tools that the policy does not grant.
        let settings = &self.settings;
        let granted = |tool: &&dyn AnyTool| (settings.grants)(tool.capability()) && (settings.may_use)(tool.name()).is_ok();
        let names = || self.available().into_iter().filter(granted).map(AnyTool::offered_name);
        remote.or_else(|| own.cloned()).ok_or_else(|| unknown_tool(name, names()))
    }

    /// Returns the actions of a call, derived from its text alone, without resolving symlinks.
    pub(crate) fn actions_for(&self, tool_name: &str, arguments: &CallArguments) -> Result<Vec<Action>, ToolError> {
        self.actions(tool_name, arguments, &Paths::lexical(&self.settings))
    }

    /// Returns the actions of a call with all symlinks resolved. Does not open any file.
    pub(crate) fn actions_now(&self, tool_name: &str, arguments: &CallArguments) -> Result<Vec<Action>, ToolError> {
        self.actions(tool_name, arguments, &Paths::on_disk(&self.settings))
    }

    fn actions(&self, tool_name: &str, arguments: &CallArguments, paths: &Paths<'_>) -> Result<Vec<Action>, ToolError> {
        self.resolve(tool_name)?.actions(tool_name, object(arguments)?, paths)
    }
}

/// Other agents' tools that have no counterpart in aye, with advice on what to do instead.
const ELSEWHERE: &[(&[&str], &str)] = &[
    (&["readmanyfiles", "readfiles", "readmultiplefiles"], "call ReadFile once for each file, all in one response"),
    (&["todowrite", "todoread", "updateplan", "writetodos"], "write the plan in your responses"),
    (
        &["notebookedit", "notebookread"],
        "read a notebook with ReadFile (`raw` returns its JSON), and edit that JSON with EditFile",
    ),
    (&["codebasesearch", "semanticsearch"], "search contents with Grep and names with Glob"),
    (&["taskcreate", "taskupdate", "tasklist", "taskget"], "set the whole list of steps with UpdateSteps"),
    (&["enterplanmode"], "only the user can change the mode; propose a plan with ProposePlan"),
    (&["task", "agent", "spawnagent"], "do the task yourself with your tools"),
    (&["skill", "activateskill", "loadskill", "useskill"], "no skills are available"),
];

/// Maximum number of names to list, limited because MCP servers may offer thousands.
const MAX_NAMED: usize = 100;

/// Builds the error for an unknown tool, suggesting a similar name from `names`.
fn unknown_tool<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> ToolError {
    let names: Vec<_> = names.collect();
    let lower = name.to_lowercase();
    let near = names.iter().map(|known| (strsim::damerau_levenshtein(&lower, &known.to_lowercase()), known)).min();
    let elsewhere = ELSEWHERE.iter().find(|(names, _)| names.contains(&lower.replace(['_', '-'], "").as_str()));
    let meant = match near {
        _ if elsewhere.is_some() => elsewhere.map(|(_, what)| (*what).to_owned()).unwrap_or_default(),
        Some((distance, known)) if distance <= 1 + known.len() / 4 => format!("did you mean `{known}`?"),
        _ => {
            let more = names.len().saturating_sub(MAX_NAMED);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            format!("available tools: {}{more}", names[..names.len().min(MAX_NAMED)].join(", "))
        }
    };
    ToolError::new(ErrorCode::ToolNotFound, format!("unknown tool `{name}`; {meant}"))
}

/// Checks that a built-in tool, or one of `named`, has this name or alias.
///
/// # Errors
///
/// Returns `TOOL_NOT_FOUND`, along with the list of available names, if there is no such tool.
pub(crate) fn check_known(tool_name: &str, named: &[NamedCommand]) -> Result<(), ToolError> {
    let mut names: Vec<&str> = built_in_names().collect();
    names.extend(named.iter().map(|command| command.name.as_str()));
    names.extend([skills::SKILL, AGENT]);
    if find_built_in(tool_name).is_some() || names.iter().any(|name| name.eq_ignore_ascii_case(tool_name)) {
        return Ok(());
    }
    Err(unknown_tool(tool_name, names.into_iter()))
}
