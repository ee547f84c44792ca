//! A session's skills: usable and unusable skills, and the precedence among skills with the same name.

use super::candidate::{Candidate, CandidateContents, Folder, FolderContents, MAX_SKILLS};
use super::fault::Fault;
use super::manifest::{Manifest, ParsedManifest};
use super::origin::Origin;
use super::skill::{HashedFiles, Skill};
use super::unused::{BrokenFile, HiddenFile, broken_notice};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// All skills found for a session, usable or not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SkillSet {
    /// Usable skills, sorted by name.
    pub skills: Vec<Skill>,
    pub broken: Vec<BrokenFile>,
    pub hidden: Vec<HiddenFile>,
    /// Messages about folders that were only partly read.
    pub limits: Vec<String>,
}

/// Locations of a session's skills.
#[derive(Debug, Clone, Default)]
pub(crate) struct SkillFolders {
    /// Skill folders of a trusted project, with the content that the user trusted.
    pub project: Vec<FolderContents>,
    /// Workspace, which must contain the targets of symlinks in project skills.
    pub workspace: PathBuf,
    /// The user's own skill folders.
    pub own: Vec<Folder>,
}

/// Skills provided by a plugin, with the content that was present when the user added it.
#[derive(Debug, Clone)]
pub(crate) struct PluginSkills {
    /// Plugin name.
    pub plugin: String,
    /// Plugin directory, which must contain the targets of all symlinks.
    pub root: PathBuf,
    pub candidates: Vec<Candidate>,
}

impl SkillFolders {
    /// Reads the user's skills from disk and combines them with the project's skills.
    pub(crate) fn read(&self) -> SkillSet {
        let mut set = SkillSet::default();
        let mut seen = HashSet::new();
        for contents in &self.project {
            seen.extend(contents.candidates.iter().map(|candidate| candidate.real.clone()));
            set.add(contents, "the project", &self.workspace);
        }
        for folder in &self.own {
            set.add(&folder.contents(&mut seen), &folder.shown, &self.workspace);
        }
        set.skills.sort_by(|one, other| one.name().cmp(other.name()));
        set
    }
}

impl SkillSet {
    /// Adds a plugin's skills. A skill whose name is already in use is added as `PLUGIN:NAME`.
    pub(crate) fn add_plugin(&mut self, skills: &PluginSkills) {
        for candidate in &skills.candidates {
            self.add_candidate(candidate, &skills.root, Some(&skills.plugin));
        }
        self.skills.sort_by(|one, other| one.name().cmp(other.name()));
    }

    /// Returns the usable skill with the given name. A skill of a plugin can also be named `PLUGIN:NAME`.
    pub(crate) fn find(&self, name: &str) -> Option<&Skill> {
        let of_plugin = || {
            let (plugin, name) = name.split_once(':')?;
            let folder = format!("plugin:{plugin}/");
            self.skills.iter().find(|skill| skill.shown.starts_with(&folder) && skill.name() == name)
        };
        self.skills.iter().find(|skill| skill.name() == name).or_else(of_plugin)
    }

    /// Returns the skills that the model is allowed to load.
    pub(crate) fn for_model(&self) -> impl Iterator<Item = &Skill> {
        self.skills.iter().filter(|skill| skill.manifest.for_model)
    }

    /// Returns the directories of skills from the user and from plugins, with symlinks resolved.
    pub(crate) fn own_directories(&self) -> Vec<PathBuf> {
        let own = self.skills.iter().filter(|skill| skill.origin != Origin::Project);
        own.map(|skill| skill.real.clone()).collect()
    }

    /// Returns the pinned skill that contains this file, if the file's content differs from the content that the user
    /// trusted.
    pub(crate) fn changed_owner(&self, real: &Path) -> Option<&Skill> {
        self.skills.iter().find(|skill| skill.has_changed(real))
    }

    /// Describes how the plugin skill that contains a file differs from the version that the user added. Returns
    /// `None` if the skill is unchanged or no plugin skill contains the file.
    pub(crate) fn changed_plugin_skill(&self, real: &Path) -> Option<String> {
        let skill = self.skills.iter().find(|skill| skill.origin == Origin::Plugin && real.starts_with(&skill.real))?;
        Some(format!("the skill `{}`: {} {}", skill.name(), skill.change()?, skill.reviewed_when()))
    }

    /// Returns a message about unusable skills to show when a session starts.
    pub(crate) fn notice(&self) -> Option<String> {
        broken_notice(&self.broken, "skill")
    }

    /// Returns a hash over all files that were read.
    pub(crate) fn print(&self) -> blake3::Hash {
        let mut print = blake3::Hasher::new();
        for skill in &self.skills {
            print.update(skill.file().as_bytes()).update(b"\0").update(skill.digest.as_bytes());
        }
        for broken in &self.broken {
            print.update(broken.file.as_bytes()).update(b"\0");
        }
        print.finalize()
    }

    fn add(&mut self, contents: &FolderContents, folder: &str, workspace: &Path) {
        if let Some(problem) = &contents.problem {
            self.limits.push(format!("the skills in `{folder}` are ignored: the folder {problem}"));
        }
        if contents.rest > 0 {
            let rest = contents.rest;
            self.limits.push(format!("{rest} skills in `{folder}` are ignored: the limit is {MAX_SKILLS}"));
        }
        for candidate in &contents.candidates {
            self.add_candidate(candidate, workspace, None);
        }
    }

    fn add_candidate(&mut self, candidate: &Candidate, boundary: &Path, plugin: Option<&str>) {
        let file = candidate.file();
        let broken = |faults: Vec<Fault>| BrokenFile { file: file.clone(), faults };
        let (text, files) = match &candidate.contents {
            CandidateContents::Read { text, files, .. } => (text, files),
            CandidateContents::Outside { to } => {
                let message = format!("a symlink to `{}`, outside the project", to.display());
                return self.broken.push(broken(vec![Fault::general(message)]));
            }
            CandidateContents::Closed { why } => return self.broken.push(broken(vec![Fault::general(why.clone())])),
        };
        let ParsedManifest { manifest, errors, .. } = Manifest::read(&candidate.name, text);
        let Some(mut manifest) = manifest else { return self.broken.push(broken(errors)) };
        if let Some(used) = self.find(&manifest.name) {
            let Some(plugin) = plugin else {
                let used_file = used.file();
                return self.hidden.push(HiddenFile { name: manifest.name, file, used_file });
            };
            manifest.name = format!("{plugin}:{}", manifest.name);
        }
        let pinned = files.clone().map(|files| HashedFiles { files, boundary: boundary.to_owned() });
        self.skills.push(Skill {
            manifest,
            real: candidate.real.clone(),
            shown: candidate.shown.clone(),
            origin: candidate.origin,
            digest: blake3::hash(text).to_hex().to_string(),
            pinned,
        });
    }
}

#[cfg(test)]
mod tests;
