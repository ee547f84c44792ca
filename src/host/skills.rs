//! Skills that are available in a run: the user's, those of plugins, and those of a trusted project.

use super::plugins::PluginStore;
use super::project::ProjectConfig;
use crate::config::Directories;
use crate::skills::{Folder, HOME_FOLDERS, Origin, SkillFolders, SkillSet};
use crate::text::abbreviate_home;
use std::path::Path;
use std::sync::{Arc, OnceLock};

/// Skills available in a run, loaded on first use. Cheap to clone; clones share the loaded skills.
#[derive(Debug, Clone, Default)]
pub(crate) struct Skills {
    reach: SkillFolders,
    plugins: PluginStore,
    set: Arc<OnceLock<Arc<SkillSet>>>,
}

impl Skills {
    /// Returns the skills of the user and of plugins, without reading any files yet.
    pub(crate) fn for_user(directories: &Directories, home: &Path) -> Self {
        let reach = SkillFolders { own: own_folders(directories, home), ..SkillFolders::default() };
        Self { reach, plugins: PluginStore::for_user(directories), set: Arc::default() }
    }

    /// Adds the skills of a project to these skills, if the project is trusted. Does not read any files yet.
    pub(crate) fn with_project(&self, project: &ProjectConfig) -> Self {
        let (project, workspace) = (project.skills(), project.root().to_owned());
        let reach = SkillFolders { project, workspace, own: self.reach.own.clone() };
        Self { reach, plugins: self.plugins.clone(), set: Arc::default() }
    }

    /// Returns the skills, which are loaded on the first call.
    pub(crate) fn skill_set(&self) -> Arc<SkillSet> {
        Arc::clone(self.set.get_or_init(|| Arc::new(self.read())))
    }

    /// Reads the current skills. Project skills have the content that the user trusted.
    pub(crate) fn read(&self) -> SkillSet {
        let mut set = self.reach.read();
        for plugin in self.plugins.enabled().plugins {
            set.add_plugin(&plugin.skills());
        }
        set
    }

    /// Returns whether `self` and `other` contain the same skills with the same content, loading both if necessary.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        self.skill_set().print() == other.skill_set().print()
    }

    /// Returns messages about skills that are not used, shown when a session starts.
    pub(crate) fn notices(&self) -> Vec<String> {
        let set = self.skill_set();
        set.limits.iter().cloned().chain(set.notice()).collect()
    }

    /// Returns the names of the skills, for display.
    pub(crate) fn names(&self) -> String {
        let set = self.skill_set();
        let names: Vec<&str> = set.skills.iter().map(|skill| skill.name()).collect();
        if names.is_empty() { "no skills".to_owned() } else { names.join(", ") }
    }
}

/// Returns the folders that contain the user's skills, in order of precedence.
pub(crate) fn own_folders(directories: &Directories, home: &Path) -> Vec<Folder> {
    let in_home = HOME_FOLDERS.iter().map(|name| home.join(name));
    let paths = std::iter::once(directories.config.join("skills")).chain(in_home);
    let folder = |path: std::path::PathBuf| Folder {
        shown: abbreviate_home(&path, home),
        path,
        origin: Origin::User,
        boundary: None,
        kept_apart: vec![home.to_owned(), directories.config.clone(), directories.data.clone()],
    };
    paths.map(folder).collect()
}
