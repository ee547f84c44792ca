//! Agents that are available in a run: the user's, a trusted project's, those of plugins, and built-in ones.

use crate::config::Directories;
use crate::host::plugins::PluginStore;
use crate::host::project::ProjectConfig;
use crate::subagents::{AgentFile, AgentFolder, AgentOrigin, AgentSet, HOME_FOLDERS};
use crate::text::abbreviate_home;
use std::path::Path;
use std::sync::{Arc, OnceLock};

/// Agents available in a run, loaded on first use. Cheap to clone; clones share the loaded agents.
#[derive(Debug, Clone, Default)]
pub(crate) struct Agents {
    own: Vec<AgentFolder>,
    plugins: PluginStore,
    /// Project files, as they were when the user trusted the project.
    project: Vec<AgentFile>,
    /// Messages about project files that are not read because of limits.
    limits: Vec<String>,
    set: Arc<OnceLock<Arc<AgentSet>>>,
}

impl Agents {
    /// Returns the agents of the user and of plugins, without reading any files yet.
    pub(crate) fn of_user(directories: &Directories, home: &Path) -> Self {
        Self { own: own_folders(directories, home), plugins: PluginStore::for_user(directories), ..Self::default() }
    }

    /// Adds the agents of a project to these agents, if the project is trusted.
    pub(crate) fn with_project(&self, project: &ProjectConfig) -> Self {
        let root = project.root();
        let file = |(path, bytes): (std::path::PathBuf, &[u8])| AgentFile {
            shown: path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned(),
            content: Ok(bytes.to_vec()),
            origin: AgentOrigin::Project,
        };
        let files = project.agents().into_iter().map(file).collect();
        let (own, plugins) = (self.own.clone(), self.plugins.clone());
        Self { own, plugins, project: files, limits: project.agent_limits(), set: Arc::default() }
    }

    /// Returns the agents, which are loaded on the first call.
    pub(crate) fn set(&self) -> Arc<AgentSet> {
        Arc::clone(self.set.get_or_init(|| Arc::new(self.read())))
    }

    /// Returns whether `self` and `other` contain the same agents, loading both if necessary.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        self.set() == other.set()
    }

    /// Returns messages about agents that are not used, shown when a session starts.
    pub(crate) fn notices(&self) -> Vec<String> {
        let set = self.set();
        set.limits.iter().cloned().chain(set.notice()).collect()
    }

    /// Returns the names of the agents, for display.
    pub(crate) fn names(&self) -> String {
        let set = self.set();
        let names: Vec<&str> = set.agents.iter().map(|agent| agent.name.as_str()).collect();
        names.join(", ")
    }

    fn read(&self) -> AgentSet {
        let (mut files, mut limits) = (self.project.clone(), self.limits.clone());
        for folder in &self.own {
            let (found, limit) = folder.read();
            files.extend(found);
            limits.extend(limit);
        }
        let mut set = AgentSet::new(&files, limits);
        for plugin in self.plugins.enabled().plugins {
            set.add_plugin(plugin.name(), &plugin.agents());
        }
        set
    }
}

/// Returns the folders that contain the user's agents, in order of precedence.
pub(crate) fn own_folders(directories: &Directories, home: &Path) -> Vec<AgentFolder> {
    let own = std::iter::once((directories.config.join("agents"), crate::subagents::AgentFormat::Markdown));
    let in_home = HOME_FOLDERS.iter().map(|(name, format)| (home.join(name), *format));
    let folder = |(path, format): (std::path::PathBuf, _)| AgentFolder {
        shown: abbreviate_home(&path, home),
        path,
        format,
        origin: AgentOrigin::User,
    };
    own.chain(in_home).map(folder).collect()
}
