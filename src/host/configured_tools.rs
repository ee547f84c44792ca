//! Custom tools and the selection of enabled tools, as defined by manifests and settings.

use super::plugins::{PluginStore, Plugins};
use super::project::ProjectConfig;
use crate::config::{Directories, Settings, ToolLists};
use crate::policy::{ToolLimit, ToolNames};
use crate::tools::{self, CustomTool, ManifestError, Source, ToolOwner};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Maximum number of tool manifests in a directory.
const MAX_MANIFESTS: usize = 100;
const MANIFEST_BYTES: u64 = 256 << 10;
const ENDING: &str = "toml";

/// Tools defined by manifests, and limits set by settings.
#[derive(Debug, Clone, Default)]
pub(crate) struct ConfiguredTools {
    pub custom: Vec<Arc<CustomTool>>,
    pub limits: Vec<ToolLimit>,
    /// Messages about invalid manifests and settings.
    pub problems: Vec<String>,
    /// Messages about project settings that are ignored.
    pub ignored: Vec<String>,
    /// Hash of all files that were read. It is equal for sets that were read from equal files.
    print: blake3::Hasher,
}

/// Returns the enabled tools, including the tool that loads other tools on demand.
fn enabled_names(mut names: Vec<String>) -> ToolNames {
    names.push(tools::FIND_TOOLS.to_owned());
    ToolNames::Enabled(names)
}

/// Returns the directory that contains the user's tool manifests.
pub(crate) fn own_directory(directories: &Directories) -> PathBuf {
    directories.config.join("tools")
}

impl ConfiguredTools {
    /// Reads the manifests of the user, of plugins and, if the project is trusted, of the project.
    pub(crate) fn read(directories: &Directories, settings: &Settings, project: Option<&ProjectConfig>) -> Self {
        let mut set = Self::default();
        set.limit(&settings.tool_lists());
        set.add_user_tools(&own_directory(directories));
        if let Some(project) = project {
            set.add_project_tools(settings, project);
        }
        set.add_plugin_tools(PluginStore::for_user(directories).enabled());
        set
    }

    /// Returns the notices to show when a session starts.
    pub(crate) fn notices(&self) -> Vec<String> {
        self.problems.iter().chain(&self.ignored).cloned().collect()
    }

    /// Returns whether `self` and `other` were read from the same content.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        self.print.finalize() == other.print.finalize()
    }

    /// Returns the names of the custom tools, for display.
    pub(crate) fn names(&self) -> String {
        let names: Vec<&str> = self.custom.iter().map(|tool| tool.name.as_str()).collect();
        if names.is_empty() { "no custom tools".to_owned() } else { names.join(", ") }
    }

    fn limit(&mut self, lists: &ToolLists) {
        let limit = |(rule, names): &(String, Vec<String>), list: fn(Vec<String>) -> ToolNames| {
            // Resolve aliases to the names of tools.
            let own = names.iter().map(|name| tools::canonical_name(name).map_or_else(|| name.clone(), str::to_owned));
            ToolLimit { rule: rule.clone(), names: list(own.collect()) }
        };
        self.limits.extend(lists.disabled.iter().map(|list| limit(list, ToolNames::Disabled)));
        self.limits.extend(lists.enabled.iter().map(|list| limit(list, enabled_names)));
        self.print.update(format!("{lists:?}").as_bytes());
    }

    fn add_user_tools(&mut self, directory: &Path) {
        let entries = match std::fs::read_dir(directory) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return,
            Err(error) => {
                self.problems.push(format!("cannot read `{}`, so its tools are ignored: {error}", directory.display()));
                return;
            }
        };
        let is_manifest = |path: &PathBuf| path.extension().is_some_and(|ending| ending == ENDING);
        let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(is_manifest).collect();
        files.sort();
        if files.len() > MAX_MANIFESTS {
            let more = files.len() - MAX_MANIFESTS;
            self.problems.push(format!("ignored {more} manifests in `{}`: the limit is {MAX_MANIFESTS}", directory.display()));
            files.truncate(MAX_MANIFESTS);
        }
        for file in files {
            // The user may create symlinks; the target must be a regular file.
            let read = file
                .canonicalize()
                .map_err(|error| error.to_string())
                .and_then(|real| crate::sys::file::read(&real, MANIFEST_BYTES).map_err(|error| error.to_string()));
            match read {
                Ok(bytes) => self.add(&bytes, Source { file, owner: ToolOwner::User }),
                Err(why) => self.problems.push(format!("cannot read `{}`, so its tool is ignored: {why}", file.display())),
            }
        }
    }

    fn add_project_tools(&mut self, settings: &Settings, project: &ProjectConfig) {
        if let Some(lists) = project.tool_lists() {
            match lists {
                Ok(lists) => self.limit(&lists),
                Err(error) => self.problems.push(format!("{error}\nthe project's tool settings are ignored")),
            }
        }
        // An error here was already reported for the lists above.
        if let Some(Ok((_, layer))) = project.tighten_settings(settings) {
            self.ignored.extend(truncate_list(layer.ignored));
        }
        let brought = project.manifests();
        self.problems.extend(brought.changes);
        for (file, bytes) in brought.files {
            let owner = ToolOwner::Project { root: project.root().to_owned(), hashes: project.trusted_hashes() };
            self.add(bytes, Source { file, owner });
        }
    }

    fn add_plugin_tools(&mut self, plugins: Plugins) {
        self.problems.extend(plugins.problems);
        for plugin in plugins.plugins {
            for (file, read) in plugin.tools() {
                let (name, root, hashes) = (plugin.name().to_owned(), plugin.root.clone(), plugin.hashes());
                match read {
                    Ok(bytes) => self.add(&bytes, Source { file, owner: ToolOwner::Plugin { name, root, hashes } }),
                    Err(why) => {
                        self.problems.push(format!("ignored a tool from the plugin `{name}` (`{}`): {why}", file.display()));
                    }
                }
            }
        }
    }

    fn add(&mut self, bytes: &[u8], source: Source) {
        self.print.update(source.file.as_os_str().as_encoded_bytes()).update(b"\0").update(blake3::hash(bytes).as_bytes());
        match CustomTool::parse(bytes, source) {
            Ok(tool) => match self.custom.iter().find(|known| known.name.eq_ignore_ascii_case(&tool.name)) {
                // The tools of the user take precedence over the tools of the project, and those over the tools of
                // plugins.
                Some(known) => self.problems.push(format!(
                    "ignored `{}`: `{}` in `{}` has the same name; rename one of them",
                    tool.source.file.display(),
                    known.name,
                    known.source.file.display()
                )),
                None => self.custom.push(Arc::new(tool)),
            },
            Err(error) => self.problem(&error),
        }
    }

    fn problem(&mut self, error: &ManifestError) {
        self.problems.push(error.to_string());
    }
}

/// Truncates a list of lines, adding a line that counts the omitted ones.
fn truncate_list(mut lines: Vec<String>) -> Vec<String> {
    const MAX: usize = 10;
    let more = lines.len().saturating_sub(MAX);
    lines.truncate(MAX);
    if more > 0 {
        lines.push(format!("{more} more project settings are ignored; `aye config show` lists them"));
    }
    lines
}
