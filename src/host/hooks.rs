//! Hooks of a run: the user's pinned hooks, plugin hooks, and the hooks of a trusted project.

use super::plugins::{Plugin, PluginStore};
use super::project::ProjectConfig;
use crate::config::trust::hook_programs;
use crate::config::{Directories, HookPins};
use crate::hooks::{Hook, HookAction, HookFile, HookOrigin, MAX_FILE_BYTES, USER_FILE, read_toml_file, simple_commands};
use crate::text::abbreviate_home;
use crate::tools::{CheckHook, HookFiles, SessionHooks};
use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// Maximum size, in bytes, of a program run by a hook. The program is hashed before each run.
const PROGRAM_BYTES: u64 = 64 << 20;

/// Folder in the configuration directory that contains the pins for plugin hooks.
const PLUGIN_PINS: &str = "plugins";

/// Hooks of a run, loaded on first use. Cheap to clone; clones share the loaded hooks.
#[derive(Clone, Default)]
pub(crate) struct RunHooks {
    config: PathBuf,
    home: PathBuf,
    plugins: PluginStore,
    project: Option<Arc<ProjectHooks>>,
    workspace: PathBuf,
    set: Arc<OnceLock<Arc<HookSet>>>,
}

/// Hooks of a trusted project, as they were when the project was examined.
struct ProjectHooks {
    files: Vec<HookFile>,
    /// Hashes of the project's files, by file name.
    hashes: BTreeMap<String, String>,
}

/// All hooks of a run, once loaded.
pub(crate) struct HookSet {
    pub hooks: Vec<Hook>,
    /// Messages about parts of the files that are ignored, with the reasons.
    pub notes: Vec<String>,
    check: CheckHook,
    /// Working directory for user and plugin hooks.
    directory: PathBuf,
}

impl HookSet {
    /// Returns the hooks for a session, or `None` if there are none.
    pub(crate) fn for_session(&self) -> Option<SessionHooks> {
        SessionHooks::new(self.hooks.clone(), Arc::clone(&self.check), self.directory.clone())
    }

    /// Returns why a hook would not run, or `None` if it would.
    pub(crate) fn obstacle(&self, hook: &Hook) -> Option<String> {
        match &hook.action {
            HookAction::Unusable(why) => Some(why.clone()),
            HookAction::Command { .. } => (self.check)(hook).err(),
        }
    }
}

impl RunHooks {
    /// Returns the hooks of the user and of plugins, without reading any files yet.
    pub(crate) fn of_user(directories: &Directories, home: &Path, workspace: &Path) -> Self {
        let (config, home, workspace) = (directories.config.clone(), home.to_owned(), workspace.to_owned());
        Self { config, home, workspace, plugins: PluginStore::for_user(directories), ..Self::default() }
    }

    /// Returns the user's hooks for another workspace.
    pub(crate) fn in_workspace(&self, workspace: &Path) -> Self {
        Self { workspace: workspace.to_owned(), project: None, set: Arc::default(), ..self.clone() }
    }

    /// Adds the hooks of a project to these hooks, if the project is trusted. Does not read any files yet.
    pub(crate) fn with_project(&self, project: &ProjectConfig) -> Self {
        let of_project = || Arc::new(ProjectHooks { files: project.hooks(), hashes: project.hashes() });
        Self {
            project: project.is_trusted().then(of_project),
            workspace: project.root().to_owned(),
            set: Arc::default(),
            ..self.clone()
        }
    }

    /// Returns the hooks, which are loaded on the first call.
    pub(crate) fn set(&self) -> Arc<HookSet> {
        Arc::clone(self.set.get_or_init(|| Arc::new(self.read())))
    }

    fn read(&self) -> HookSet {
        let (own, text) = self.own();
        let plugins = self.plugins.enabled();
        let pins = abbreviate_home(&self.config.join(PLUGIN_PINS), &self.home);
        // If the pins of a plugin cannot be read, its hooks are unknown; one of them may deny the call.
        let unknown = plugins.problems.iter().map(|why| HookFile::unreadable(&pins, HookOrigin::Plugin, why.as_str()));
        let of_plugins = plugins.plugins.iter().flat_map(Plugin::hooks).chain(unknown);
        let of_project = self.project.iter().flat_map(|project| project.files.iter().cloned());
        let (mut hooks, mut notes) = (own.hooks, own.notes);
        for file in of_plugins.chain(of_project) {
            hooks.extend(file.hooks);
            notes.extend(file.notes);
        }
        let directory = if self.project.is_some() { self.workspace.clone() } else { PathBuf::from("/") };
        let this = Self { set: Arc::default(), ..self.clone() };
        let hash = blake3::hash(&text).to_hex().to_string();
        let plugins = plugins.plugins;
        let check: CheckHook = Arc::new(move |hook| this.check(hook, &hash, &plugins));
        HookSet { hooks, notes, check, directory }
    }

    /// Returns the user's hooks, and the content of the file that defines them.
    fn own(&self) -> (HookFile, Vec<u8>) {
        let path = self.config.join(USER_FILE);
        let mut text = Vec::new();
        let shown = abbreviate_home(&path, &self.home);
        let read = std::fs::File::open(&path).and_then(|file| file.take(MAX_FILE_BYTES as u64 + 1).read_to_end(&mut text));
        match read {
            Ok(_) => (read_toml_file(&text, &shown, HookOrigin::User), text),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => (HookFile::default(), Vec::new()),
            Err(error) => (HookFile::unreadable(&shown, HookOrigin::User, error.to_string()), Vec::new()),
        }
    }

    /// Returns the files that a hook runs. Returns an error if they differ from the content that the user pinned, added
    /// with a plugin, or trusted in the project.
    fn check(&self, hook: &Hook, own_hash: &str, plugins: &[Plugin]) -> Result<HookFiles, String> {
        let of_project = hook_programs(hook, &self.workspace);
        let programs = |programs| HookFiles { programs, plugin: None };
        match hook.origin {
            HookOrigin::Project => self.check_project(&of_project).map(programs),
            HookOrigin::Plugin => self.check_plugin(hook, &of_project, plugins),
            HookOrigin::User => {
                let leaves_sandbox = matches!(hook.action, HookAction::Command { unsandboxed: true, .. });
                if let Some(name) = of_project.first().filter(|_| leaves_sandbox || self.project.is_none()) {
                    return Err(format!(
                        "the hook runs `{name}` from the project, which your own hooks may do only in the sandbox and after you \
                        trust the project"
                    ));
                }
                self.check_own(hook, own_hash).map(programs)
            }
        }
    }

    /// Returns the files that a plugin's hook runs. The hook may run programs in the project only if the project is
    /// trusted.
    fn check_plugin(&self, hook: &Hook, of_project: &[String], plugins: &[Plugin]) -> Result<HookFiles, String> {
        let plugin = plugins.iter().find(|plugin| plugin.owns(&hook.file)).ok_or("its plugin is not installed")?;
        if let Some(change) = plugin.change() {
            return Err(format!(
                "the plugin {} changed since you added it: {change}; run `aye plugin update {}`",
                plugin.name(),
                plugin.name()
            ));
        }
        let programs = if of_project.is_empty() { Vec::new() } else { self.check_project(of_project)? };
        Ok(HookFiles { programs, plugin: Some(plugin.root.clone()) })
    }

    fn check_project(&self, programs: &[String]) -> Result<Vec<PathBuf>, String> {
        let Some(project) = &self.project else { return Err("the project is not trusted".to_owned()) };
        let mut files = Vec::new();
        for name in programs {
            let path = self.workspace.join(name);
            if project.hashes.get(name) != hash(&path).as_ref() {
                return Err(format!("`{name}` changed since you trusted the project; restart aye to review it"));
            }
            files.push(path);
        }
        Ok(files)
    }

    fn check_own(&self, hook: &Hook, own_hash: &str) -> Result<Vec<PathBuf>, String> {
        let pins = HookPins::read(&self.config)?;
        let advice = "run `aye hooks pin` to review and pin it";
        match pins.hash_of(USER_FILE) {
            None => return Err(format!("you have not pinned your hooks; {advice}")),
            Some(pinned) if pinned != own_hash => return Err(format!("{} changed since you pinned it; {advice}", hook.file)),
            Some(_) => {}
        }
        let files = self.own_programs(hook);
        for path in &files {
            let name = path.to_string_lossy();
            let now = hash(path);
            if now.is_none() || pins.hash_of(&name) != now.as_deref() {
                return Err(format!("`{}` changed since you pinned it; {advice}", abbreviate_home(path, &self.home)));
            }
        }
        Ok(files)
    }

    /// Returns the files outside the project that one of the user's hooks runs by path.
    fn own_programs(&self, hook: &Hook) -> Vec<PathBuf> {
        let HookAction::Command { line, .. } = &hook.action else { return Vec::new() };
        let words = simple_commands(line).into_iter().flatten();
        let mut files: Vec<PathBuf> = words
            .filter_map(|word| {
                let below_home = ["~/", "$HOME/", "${HOME}/"].iter().find_map(|start| word.strip_prefix(start));
                let path = below_home.map_or_else(|| PathBuf::from(&word), |rest| self.home.join(rest));
                let real = path.is_absolute().then(|| path.canonicalize().ok()).flatten()?;
                // System programs change with system updates, so they are not pinned.
                let is_own =
                    !["/usr", "/bin", "/sbin", "/lib", "/dev", "/proc", "/sys"].iter().any(|part| real.starts_with(part));
                (is_own && real.is_file()).then_some(real)
            })
            .collect();
        files.sort();
        files.dedup();
        files
    }

    /// Pins the current content of the user's hooks, and returns the pinned files.
    ///
    /// # Errors
    /// Returns an error if a file cannot be read, or if the pins cannot be saved.
    pub(crate) fn pin(&self) -> Result<Vec<PathBuf>, String> {
        let (own, text) = self.own();
        let path = self.config.join(USER_FILE);
        if text.is_empty() {
            return Err(format!("there are no hooks in `{}`", path.display()));
        }
        let mut pins = HookPins::default();
        pins.pin(USER_FILE, blake3::hash(&text).to_hex().to_string());
        let mut files = vec![path];
        for program in own.hooks.iter().flat_map(|hook| self.own_programs(hook)) {
            let hash = hash(&program).ok_or_else(|| format!("cannot read `{}`", program.display()))?;
            pins.pin(&program.to_string_lossy(), hash);
            files.push(program);
        }
        files.dedup();
        pins.save(&self.config)?;
        Ok(files)
    }
}

/// Returns the hash of a file, or `None` if the file cannot be read or is too large.
fn hash(path: &Path) -> Option<String> {
    let real = path.canonicalize().ok()?;
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(crate::sys::path::open_file(&real).ok()?.take(PROGRAM_BYTES + 1)).ok()?;
    (hasher.count() <= PROGRAM_BYTES).then(|| hasher.finalize().to_hex().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::HookEvent;
    use std::fs;
    use tempfile::TempDir;

    #[test]
    fn with_unreadable_plugin_pins_every_call_needs_approval() {
        let root = TempDir::new().unwrap();
        let config = root.path().join("config");
        let directories = Directories::new(config.clone(), root.path().join("data"));
        let set = || RunHooks::of_user(&directories, root.path(), root.path()).set();
        assert!(set().hooks.is_empty());
        fs::create_dir_all(config.join("plugins")).unwrap();
        fs::write(config.join("plugins/guard.toml"), "name = ").unwrap();
        let is_unknown = |set: &HookSet| {
            let [hook] = &set.hooks[..] else { return false };
            let obstacle = set.obstacle(hook).unwrap_or_default();
            hook.event == HookEvent::PreToolUse && hook.origin == HookOrigin::Plugin && obstacle.contains("cannot read the hooks")
        };
        assert!(is_unknown(&set()), "the pins of a plugin");
        fs::remove_dir_all(config.join("plugins")).unwrap();
        fs::write(config.join("plugins"), "a file").unwrap();
        assert!(is_unknown(&set()), "the folder of all pins");
    }
}
