//! Where a run happens: the workspace, the person's directories and what is set there.

use super::cli::Common;
use super::git::Repository;
use super::layers::{self, Policy, Sources};
use super::project::Brought;
use super::toolset::Toolset;
use super::trouble::Trouble;
use crate::config::{ConfigError, Credentials, Directories, Environment, Settings};
use crate::policy::{Approve, Context, Enforcer, Layer, Sandbox, ToolLimit, ToolNames, ToolPattern};
use crate::protocol::{Mode, WorkspaceId};
use crate::sys::process::Shell;
use crate::tools;
use std::path::{Path, PathBuf};

#[derive(Clone)]
pub struct Place {
    pub environment: Environment,
    pub directories: Directories,
    pub settings: Settings,
    /// The keys that `aye auth` keeps.
    pub credentials: Credentials,
    /// The real path of the directory aye works in.
    pub workspace: PathBuf,
    /// The workspace and what `--add-dir` added, as real paths.
    pub roots: Vec<PathBuf>,
    pub home: PathBuf,
    pub mode: Mode,
    /// Tools of manifests, and which of all may be used.
    pub tools: Toolset,
    /// `--set`.
    set: Vec<(String, String)>,
}

impl Place {
    pub fn find(common: &Common) -> Result<Self, Trouble> {
        let environment = Environment::of_process();
        let directories = Directories::find(&environment)?;
        let settings = Settings::load(&directories, &common.set)?;
        let workspace = real(common.directory.as_deref().unwrap_or(Path::new(".")), "-C")?;
        let mut roots = vec![workspace.clone()];
        for directory in &common.add_dirs {
            roots.push(real(directory, "--add-dir")?);
        }
        let home = environment.get("HOME").map_or_else(|| PathBuf::from("/"), PathBuf::from);
        let home = home.canonicalize().unwrap_or(home);
        let (mode, set) = (common.mode.unwrap_or_default(), common.set.clone());
        let tools = Toolset::read(&directories, &settings, None);
        let credentials = Credentials::at(&directories);
        Ok(Self { environment, directories, settings, credentials, workspace, roots, home, mode, tools, set })
    }

    /// The same as it is set now, with these on top, and with what is kept of keys read anew.
    pub fn anew(&self, set: &[(String, String)]) -> Result<Self, ConfigError> {
        let set: Vec<_> = self.set.iter().chain(set).cloned().collect();
        let settings = Settings::load(&self.directories, &set)?;
        Ok(Self { settings, credentials: Credentials::at(&self.directories), set, ..self.clone() })
    }

    /// The same without `[model] default`.
    pub fn without_default_model(&self) -> Self {
        Self { settings: self.settings.without_default_model(), ..self.clone() }
    }

    pub fn workspace_id(&self) -> WorkspaceId {
        workspace_id(&self.workspace)
    }

    /// The layers in force: the managed one, the person's or `--policy` in its place or the built-in one, and the
    /// project's where it is trusted.
    pub fn policy(&self, file: Option<&Path>, project: Option<&Brought>) -> Result<Policy, Trouble> {
        Policy::assemble(&self.sources(file), project)
    }

    /// The files that the policy is read from.
    pub fn sources(&self, file: Option<&Path>) -> Sources {
        Sources {
            own: self.directories.config.join("policy.toml"),
            given: file.map(Path::to_owned),
            managed: PathBuf::from(layers::MANAGED),
            mine: self.directories.of_project(&self.workspace).join("policy.toml"),
        }
    }

    pub fn enforcer(&self, policy: &Policy, sandbox: Sandbox, mode: Mode) -> Enforcer {
        let limits = self.tools.limits.iter().cloned().chain(aliases(&policy.layers)).collect();
        let by_effects = self.settings.approval.by_effects;
        let approve = by_effects.map(|effects| if effects { Approve::Effects } else { Approve::Command });
        let enforcer = Enforcer::new(policy.layers.clone(), self.context(sandbox, mode)).limited(limits).approving(approve);
        match self.settings.tools.shell {
            Shell::Bash => enforcer,
            other => enforcer.in_shell(other.name()),
        }
    }

    /// Takes in what a project brings of tools.
    pub fn with_tools_of(&mut self, project: &Brought) {
        self.tools = Toolset::read(&self.directories, &self.settings, Some(project));
        self.tighten(project);
    }

    /// Puts what the settings of a trusted project tighten on top of the user's. Settings that cannot be read are said by the tools.
    fn tighten(&mut self, project: &Brought) {
        if let Some(Ok((settings, _))) = project.tightened(&self.settings) {
            self.settings = settings;
        }
    }

    /// Looks at the settings and the manifests again; of the settings only those of tools are taken. Whether anything is different.
    pub fn look_again(&mut self, project: &Brought) -> Result<bool, ConfigError> {
        let settings = Settings::load(&self.directories, &self.set)?;
        let tools = Toolset::read(&self.directories, &settings, Some(project));
        let settings = match project.tightened(&settings) {
            Some(Ok((settings, _))) => settings,
            Some(Err(_)) | None => settings,
        };
        let same = tools.is_like(&self.tools) && settings.tools == self.settings.tools;
        self.settings.take_servers(&settings);
        self.settings.tools = settings.tools;
        self.tools = tools;
        Ok(!same)
    }

    /// Whether the workspace is so wide that everything asks, which the start has to say.
    pub fn is_too_wide(&self) -> bool {
        self.context(Sandbox::Absent, self.mode).is_too_wide()
    }

    fn context(&self, sandbox: Sandbox, mode: Mode) -> Context {
        let own = [&self.directories.config, &self.directories.data];
        Context {
            roots: self.roots.clone(),
            home: self.home.clone(),
            mode,
            sandbox,
            // Both spellings; a directory that is not there yet is resolved as far as it is.
            own: own.into_iter().flat_map(|path| [path.clone(), self.resolved(path)]).collect(),
        }
    }

    fn resolved(&self, path: &Path) -> PathBuf {
        let text = path.to_str().unwrap_or_default();
        crate::sys::path::resolve(text, &self.workspace, None).map_or_else(|_| path.to_owned(), |resolved| resolved.real)
    }

    /// `~/src/greeter`.
    pub fn workspace_for_people(&self) -> String {
        crate::text::abbreviate_home(&self.workspace, &self.home)
    }

    /// The branch that is checked out.
    pub fn branch(&self) -> Option<String> {
        Repository::of(&self.workspace)?.branch()
    }
}

/// What layers disable by an alias, for the tool that it means.
fn aliases(layers: &[Layer]) -> Vec<ToolLimit> {
    let limit = |layer: &Layer, pattern: &ToolPattern| {
        let name = tools::name_of(&pattern.text).filter(|name| *name != pattern.text)?;
        Some(ToolLimit { rule: layer.scope.rule(pattern.line), names: ToolNames::Disabled(vec![name.to_owned()]) })
    };
    layers.iter().flat_map(|layer| layer.bundle.disabled.iter().filter_map(move |pattern| limit(layer, pattern))).collect()
}

/// Sessions belong to a directory by the hash of its real path.
pub fn workspace_id(real: &Path) -> WorkspaceId {
    let hash = blake3::hash(real.as_os_str().as_encoded_bytes()).to_hex();
    WorkspaceId::new(format!("ws_{}", &hash[..16]))
}

fn real(directory: &Path, flag: &str) -> Result<PathBuf, Trouble> {
    let real = directory
        .canonicalize()
        .map_err(|error| Trouble::usage(format!("{flag}: cannot work in `{}`: {error}", directory.display())))?;
    if real.is_dir() { Ok(real) } else { Err(Trouble::usage(format!("{flag}: `{}` is not a directory", directory.display()))) }
}
