//! Environment of a run: the workspace, the user's directories and the settings.

use super::agent_authority::ParentSession;
use super::agent_definitions::Agents;
use super::configured_tools::ConfiguredTools;
use super::ephemeral::{self, EphemeralData};
use super::error::CliError;
use super::hooks::RunHooks;
use super::nesting::Nesting;
use super::plugins::PluginStore;
use super::policy_layers;
use super::policy_layers::{LayerSources, Policy, ServiceSource};
use super::project::ProjectConfig;
use super::registered_session::RegisteredSession;
use super::secret_programs::secret_program;
use super::service_policy::ServicePolicy;
use super::skills::Skills;
use crate::config::{ConfigError, Credentials, Directories, Environment, Settings};
use crate::host::options::Common;
use crate::policy::{
    Approve, Context, EXCLUDED_LIST, Enforcer, ExcludedPaths, Layer, Sandbox, ToolLimit, ToolNames, ToolPattern,
};
use crate::ports::ServiceSession;
use crate::protocol::{Mode, WorkspaceId};
use crate::services::backend_tools::BackendManifest;
use crate::services::{SecretSources, Services};
use crate::session::SessionState;
use crate::sys::http::{Timeouts, trust_also};
use crate::sys::ignore_files::own_list;
use crate::sys::process::Shell;
use crate::tools::{self, PatchFile};
use crate::workspace::git::Repository;
use crate::workspace::identity::workspace_id;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

#[derive(Clone)]
pub(crate) struct AppContext {
    pub environment: Environment,
    pub directories: Directories,
    pub settings: Settings,
    /// Saved API keys.
    pub credentials: Credentials,
    /// Canonical path of the working directory.
    pub workspace: PathBuf,
    /// Canonical paths of the workspace and of directories added with `--add-dir`.
    pub roots: Vec<PathBuf>,
    pub home: PathBuf,
    pub mode: Mode,
    /// Mode that the user chose for this session instead of that in the settings. `mode` can be stricter.
    pub chosen_mode: Option<Mode>,
    /// Custom tools, and which tools are enabled.
    pub tools: ConfiguredTools,
    pub skills: Skills,
    pub hooks: RunHooks,
    pub agents: Agents,
    /// Parent session, if this session belongs to an agent.
    pub parent: Option<ParentSession>,
    /// Limits on the tools of this run, set on the command line or by an agent definition.
    pub run_limits: Vec<ToolLimit>,
    /// Patch file that this run applies.
    pub patch: Option<Arc<PatchFile>>,
    /// Whether a copy-on-write layer covers the workspace, in which case the repository is not part of the copy.
    pub is_layer: bool,
    /// Services configured in the settings, or `None` if there are none.
    pub services: Option<Services>,
    /// The session as registered with the session service, set once it is registered.
    pub registration: Arc<OnceLock<RegisteredSession>>,
    /// Name of the profile given with `--profile`.
    profile: Option<String>,
    /// Configuration keys and values given with `--set`.
    set: Vec<(String, String)>,
}

impl AppContext {
    pub(crate) fn find(common: &Common) -> Result<Self, CliError> {
        let environment = Environment::from_process();
        let mut directories = Directories::find(&environment)?;
        if let Some(copy) = &common.copy {
            directories.data.clone_from(&copy.data);
        }
        ephemeral::remove_abandoned(&directories.shared);
        let settings = Settings::load(&directories, common.profile.as_deref(), &common.set)?;
        let workspace = resolve_directory(common.directory.as_deref().unwrap_or(Path::new(".")), "-C")?;
        let mut roots = vec![workspace.clone()];
        for directory in &common.add_dirs {
            roots.push(resolve_directory(directory, "--add-dir")?);
        }
        let home = environment.get("HOME").map_or_else(|| PathBuf::from("/"), PathBuf::from);
        let home = home.canonicalize().unwrap_or(home);
        if let Some(bundle) = settings.ca_bundle(&directories, &home) {
            trust_also(bundle);
        }
        let (mode, profile, set) = (common.mode.unwrap_or_default(), common.profile.clone(), common.set.clone());
        let tools = ConfiguredTools::read(&directories, &settings, None);
        let credentials = Credentials::in_directories(&directories);
        let services = Services::new(&settings.services, settings.workspace_store.is_some(), || SecretSources {
            environment: environment.clone(),
            credentials: credentials.clone(),
            program: secret_program(&credentials, (&home, &roots), key_variables(&settings, &directories, &home)),
        });
        let skills = Skills::for_user(&directories, &home);
        let hooks = RunHooks::of_user(&directories, &home, &workspace);
        let agents = Agents::of_user(&directories, &home);
        Ok(Self {
            environment,
            directories,
            settings,
            credentials,
            workspace,
            roots,
            home,
            mode,
            chosen_mode: common.mode,
            tools,
            skills,
            hooks,
            agents,
            parent: None,
            run_limits: Vec::new(),
            patch: None,
            is_layer: common.copy.as_ref().is_some_and(|copy| copy.is_layer),
            services,
            registration: Arc::default(),
            profile,
            set,
        })
    }

    /// Returns the mode in which a session starts, which is the one given with `--mode` or else the one in the
    /// settings. Inside a command started by aye, the settings cannot select a mode less strict than the default,
    /// because the command could have written them.
    pub(crate) fn session_mode(&self, flag: Option<Mode>) -> Mode {
        let set = self.settings.approval.mode;
        flag.unwrap_or_else(|| match Nesting::detect() {
            Nesting::Outermost => set,
            Nesting::InsideAye => set.min(Mode::default()),
        })
    }

    /// Makes the session read-only, for a reason other than the user's choice of a mode.
    pub(crate) fn restrict_to_plan_mode(&mut self) {
        self.mode = Mode::Plan;
    }

    /// Reloads the saved keys and the settings, and overrides the settings with `set`.
    pub(crate) fn reload(&self, set: &[(String, String)]) -> Result<Self, ConfigError> {
        let set: Vec<_> = self.set.iter().chain(set).cloned().collect();
        let settings = Settings::load(&self.directories, self.profile.as_deref(), &set)?;
        Ok(Self { settings, credentials: Credentials::in_directories(&self.directories), set, ..self.clone() })
    }

    /// Returns the user's plugins, without reading any files yet.
    pub(crate) fn plugins(&self) -> PluginStore {
        PluginStore::for_user(&self.directories)
    }

    /// Redirects all of the session's data to a directory that is deleted at the end of the run.
    pub(crate) fn save_nothing(&mut self) -> Result<EphemeralData, CliError> {
        let run = EphemeralData::create(&self.directories.shared)?;
        run.path().clone_into(&mut self.directories.data);
        Ok(run)
    }

    /// Returns the context as if `[model] default` were not set.
    pub(crate) fn without_default_model(&self) -> Self {
        Self { settings: self.settings.without_default_model(), ..self.clone() }
    }

    /// Returns command-line options that make another process use the same settings.
    pub(crate) fn arguments(&self) -> Vec<String> {
        let profile = self.profile.iter().flat_map(|name| ["--profile".to_owned(), name.clone()]);
        let set = self.set.iter().flat_map(|(key, value)| ["--set".to_owned(), format!("{key}={value}")]);
        profile.chain(set).collect()
    }

    /// Returns the timeouts for downloads.
    pub(crate) fn download_timeouts(&self) -> Timeouts {
        Timeouts { connect: self.settings.llm.connect_timeout, idle: self.settings.llm.idle_timeout }
    }

    pub(crate) fn workspace_id(&self) -> WorkspaceId {
        workspace_id(&self.workspace)
    }

    /// Returns the policy layers in effect. These are the managed layer; the user's layer, the file given with
    /// `--policy`, or the built-in layer; and the project's layer if the project is trusted.
    pub(crate) fn policy(&self, file: Option<&Path>, project: Option<&ProjectConfig>) -> Result<Policy, CliError> {
        // An agent has the policy of the session that started it, with the layer of the project that this session
        // trusts.
        if let Some(parent) = &self.parent {
            return Ok(parent.policy());
        }
        if let Some(service) = self.service_policy() {
            service.ensure_loaded()?;
        }
        Policy::assemble(&self.sources(file), project)
    }

    /// Returns the names of all environment variables that may contain a key. They are withheld from commands.
    pub(crate) fn key_variables(&self) -> Vec<String> {
        key_variables(&self.settings, &self.directories, &self.home)
    }

    /// Returns the policy from a URL, if one is configured.
    pub(crate) fn service_policy(&self) -> Option<ServicePolicy> {
        ServicePolicy::find(&self.settings, &self.environment, &self.directories, &self.home)
    }

    /// Returns the session as registered with the session service, unless this session's journal already records it.
    pub(crate) fn new_service_session(&self, state: &SessionState) -> Option<Box<ServiceSession>> {
        let session = self.registration.get().filter(|_| self.parent.is_none())?;
        let facts = session.facts();
        (state.service_session.as_ref() != Some(&*facts)).then(|| Box::new(facts.as_ref().clone()))
    }

    /// Returns the files from which the policy is read.
    pub(crate) fn sources(&self, file: Option<&Path>) -> LayerSources {
        LayerSources {
            own: self.directories.config.join("policy.toml"),
            given: file.map(Path::to_owned),
            managed: PathBuf::from(policy_layers::MANAGED),
            mine: self.directories.project_dir(&self.workspace).join("policy.toml"),
            service: self.service_policy().map(|service| ServiceSource { url: service.url().to_owned(), file: service.file() }),
            session: self.registration.get().map(RegisteredSession::policy),
        }
    }

    pub(crate) fn enforcer(&self, policy: &Policy, sandbox: Sandbox, mode: Mode) -> Enforcer {
        let limits = self.tool_limits().into_iter().chain(aliases(&policy.layers)).collect();
        let approve = if self.settings.approval.by_effects { Approve::Effects } else { Approve::Command };
        let context = Context { skills: self.skills.skill_set().own_directories(), ..self.context(sandbox, mode) };
        let enforcer = Enforcer::new(policy.layers.clone(), context).with_limits(limits).approving(Some(approve));
        let enforcer = enforcer.excluding(self.excluded_paths());
        let enforcer = match self.settings.tools.shell {
            Shell::Bash => enforcer,
            other => enforcer.with_shell(other.name()),
        };
        match &self.parent {
            Some(parent) => parent.narrow(enforcer),
            None => enforcer,
        }
    }

    /// Returns the files that the workspace excludes from all tools. The project need not be trusted, because
    /// exclusions only restrict access.
    fn excluded_paths(&self) -> Vec<ExcludedPaths> {
        let list = |root: &PathBuf| match own_list(root) {
            Ok(text) => Some(ExcludedPaths::parse(root, &text?)),
            Err(why) => {
                let file = root.join(EXCLUDED_LIST);
                tracing::warn!(file = %file.display(), why, "ignored a list of excluded files");
                None
            }
        };
        self.roots.iter().filter_map(list).collect()
    }

    /// Returns the limits on tools that are set outside the policy.
    pub(crate) fn tool_limits(&self) -> Vec<ToolLimit> {
        self.tools.limits.iter().chain(&self.run_limits).cloned().collect()
    }

    /// Adds the tools, skills, hooks and agents of a project.
    pub(crate) fn with_tools_of(&mut self, project: &ProjectConfig) {
        self.tools = ConfiguredTools::read(&self.directories, &self.settings, Some(project));
        self.skills = self.skills.with_project(project);
        self.hooks = self.hooks.with_project(project);
        self.agents = self.agents.with_project(project);
        self.tighten(project);
    }

    /// Applies the settings of a trusted project, which can only tighten the user's settings. Errors in them are
    /// reported together with the tools' problems.
    fn tighten(&mut self, project: &ProjectConfig) {
        if let Some(Ok((settings, _))) = project.tighten_settings(&self.settings) {
            self.settings = settings;
        }
    }

    /// Reloads the manifests, the skills, and the settings for tools and approvals. Returns a description of any
    /// changes.
    pub(crate) fn reload_project_parts(&mut self, project: &ProjectConfig) -> Result<Option<String>, ConfigError> {
        let settings = Settings::load(&self.directories, self.profile.as_deref(), &self.set)?;
        let tools = ConfiguredTools::read(&self.directories, &settings, Some(project));
        let settings = match project.tighten_settings(&settings) {
            Some(Ok((settings, _))) => settings,
            Some(Err(_)) | None => settings,
        };
        let same_tools = tools.is_like(&self.tools) && settings.tools == self.settings.tools;
        let same_approvals = settings.approval.by_effects == self.settings.approval.by_effects;
        let skills = self.skills.with_project(project);
        let same_skills = skills.is_like(&self.skills);
        if !same_skills {
            self.skills = skills;
        }
        let agents = self.agents.with_project(project);
        let same_agents = agents.is_like(&self.agents);
        if !same_agents {
            self.agents = agents;
        }
        self.settings.take_servers(&settings);
        self.settings.tools = settings.tools;
        self.settings.approval = settings.approval;
        self.tools = tools;
        let changed = [
            (same_tools, format!("tools reloaded ({})", self.tools.names())),
            (same_skills, format!("skills reloaded ({})", self.skills.names())),
            (same_agents, format!("agents reloaded ({})", self.agents.names())),
            (same_approvals, "approvals reloaded".to_owned()),
        ];
        let changed: Vec<String> = changed.into_iter().filter(|(same, _)| !same).map(|(_, words)| words).collect();
        Ok(Some(changed.join(", ")).filter(|changed| !changed.is_empty()))
    }

    /// Returns whether the workspace is so broad that every action needs approval, which must be reported at startup.
    pub(crate) fn is_too_wide(&self) -> bool {
        self.context(Sandbox::Absent, self.mode).is_too_wide()
    }

    fn context(&self, sandbox: Sandbox, mode: Mode) -> Context {
        // The data directory of an ephemeral run is inside the shared directory.
        let own = [&self.directories.config, &self.directories.shared];
        Context {
            roots: self.roots.clone(),
            home: self.home.clone(),
            mode,
            sandbox,
            // Each path as given and as resolved. If a directory is missing, the existing part of its path is resolved.
            own: own.into_iter().flat_map(|path| [path.clone(), self.resolve(path)]).collect(),
            // The skills are added where commands and calls are judged.
            skills: Vec::new(),
        }
    }

    fn resolve(&self, path: &Path) -> PathBuf {
        let text = path.to_str().unwrap_or_default();
        crate::sys::path::resolve(text, &self.workspace, None).map_or_else(|_| path.to_owned(), |resolved| resolved.real)
    }

    /// Returns the workspace path for display, as in `~/src/greeter`.
    pub(crate) fn workspace_display(&self) -> String {
        crate::text::abbreviate_home(&self.workspace, &self.home)
    }

    /// Returns the current git branch, or `None` if there is none.
    pub(crate) fn branch(&self) -> Option<String> {
        Repository::find(&self.workspace)?.branch()
    }
}

/// For each tool that a policy layer disables under an alias, returns a limit that uses its canonical name.
fn aliases(layers: &[Layer]) -> Vec<ToolLimit> {
    let limit = |layer: &Layer, pattern: &ToolPattern| {
        let name = tools::canonical_name(&pattern.text).filter(|name| *name != pattern.text)?;
        Some(ToolLimit { rule: layer.scope.rule(pattern.line), names: ToolNames::Disabled(vec![name.to_owned()]) })
    };
    layers.iter().flat_map(|layer| layer.bundle.disabled.iter().filter_map(move |pattern| limit(layer, pattern))).collect()
}

fn key_variables(settings: &Settings, directories: &Directories, home: &Path) -> Vec<String> {
    let manifest = settings.backend_manifest(directories, home);
    let token = manifest.and_then(|path| BackendManifest::read(&path).ok()?.token_variable().map(str::to_owned));
    settings.key_variables().into_iter().chain(token).collect()
}

fn resolve_directory(directory: &Path, flag: &str) -> Result<PathBuf, CliError> {
    let real = directory
        .canonicalize()
        .map_err(|error| CliError::usage(format!("{flag}: cannot work in `{}`: {error}", directory.display())))?;
    if real.is_dir() { Ok(real) } else { Err(CliError::usage(format!("{flag}: `{}` is not a directory", directory.display()))) }
}
