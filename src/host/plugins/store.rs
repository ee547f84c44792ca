//! Stores installed plugins. A plugin's pin file determines which folder contains the plugin. The pin file is replaced
//! atomically once the folder is complete, so if the process is killed, either the old or the new plugin remains.
//! Folders without pins are deleted by the next command that changes plugins.

use super::copy::{CopiedFiles, copy_files};
use super::installed::{Plugin, Plugins};
use super::manifest::{PluginManifest, find_manifest};
use super::source::{FetchedPlugin, PluginSource};
use crate::config::{Directories, PluginPin, plugin_digest, remove_incomplete_pins};
use crate::protocol::Problem;
use crate::sys::file::create_private_directory;
use crate::sys::http::Timeouts;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Folder for plugins, inside the data directory.
const FOLDER: &str = "plugins";
/// Prefix of the names of incomplete folders.
const STAGING: &str = ".staging-";
/// Suffix of the name of a second folder with the same files.
const SECOND: &str = "-2";
/// Maximum number of omitted symlinks to list.
const MAX_LINKS: usize = 20;
/// Number of hash digits in a folder name.
const DIGITS: usize = 16;

/// Plugins of a user. Cheap to clone; files are read only when a method is called.
#[derive(Debug, Clone, Default)]
pub(crate) struct PluginStore {
    config: PathBuf,
    /// Folder that contains the plugins, or `None` for a user without plugins.
    folder: Option<PathBuf>,
}

/// Exclusive lock that is required for changing plugins.
pub(crate) struct StoreLock {
    _directory: File,
}

/// A copy of a plugin that has not been installed yet. Dropping it deletes the copy.
pub(crate) struct StagedPlugin {
    pub manifest: PluginManifest,
    /// The plugin, in a temporary folder.
    pub plugin: Plugin,
    directory: TempDir,
}

/// Options for fetching a plugin's files.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FetchOptions {
    /// Whether git may use the user's credential helpers and keys.
    pub has_credentials: bool,
    pub timeouts: Timeouts,
}

impl PluginStore {
    pub(crate) fn for_user(directories: &Directories) -> Self {
        // A run whose session is not saved uses the same plugins.
        Self { config: directories.config.clone(), folder: Some(directories.shared.join(FOLDER)) }
    }

    /// Returns the enabled plugins.
    pub(crate) fn enabled(&self) -> Plugins {
        let mut all = self.all();
        all.plugins.retain(|plugin| plugin.pin.enabled);
        all
    }

    /// Returns all plugins, including disabled ones.
    pub(crate) fn all(&self) -> Plugins {
        let Some(folder) = &self.folder else { return Plugins::default() };
        let (pins, problems) = PluginPin::read_all(&self.config);
        if pins.is_empty() {
            return Plugins { plugins: Vec::new(), problems };
        }
        let folder = folder.canonicalize().unwrap_or_else(|_| folder.clone());
        let plugins = pins.into_iter().map(|pin| Plugin { root: folder.join(&pin.folder), pin }).collect();
        Plugins { plugins, problems }
    }

    /// Returns the plugin with this name, or `None` if it is not installed.
    ///
    /// # Errors
    /// Returns an error if the plugin's pins cannot be read.
    pub(crate) fn find(&self, name: &str) -> Result<Option<Plugin>, Problem> {
        let pin = PluginPin::read(&self.config, name).map_err(Problem::new)?;
        let Some(folder) = &self.folder else { return Ok(None) };
        let folder = folder.canonicalize().unwrap_or_else(|_| folder.clone());
        Ok(pin.map(|pin| Plugin { root: folder.join(&pin.folder), pin }))
    }

    /// Acquires the lock for changing plugins, and deletes what interrupted changes left behind.
    ///
    /// # Errors
    /// Returns an error if another process is changing plugins, or if the data directory cannot be used.
    pub(crate) fn lock(&self) -> Result<StoreLock, Problem> {
        let failed = |error: std::io::Error| Problem::new("cannot change plugins").because(error);
        let folder = self.folder()?;
        let data = folder.parent().unwrap_or(folder);
        create_private_directory(data).map_err(failed)?;
        let directory = File::open(data).map_err(failed)?;
        match directory.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let problem = Problem::new("another aye process is changing plugins");
                return Err(problem.hint("wait until it ends, then run the command again"));
            }
            // The file system does not support locks.
            Err(TryLockError::Error(error)) if error.kind() == std::io::ErrorKind::Unsupported => {}
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        remove_incomplete_pins(&self.config);
        self.remove_unused();
        Ok(StoreLock { _directory: directory })
    }

    /// Fetches a plugin, copies it to a temporary folder and reads its manifest.
    ///
    /// # Errors
    /// Returns an error if the source is not a plugin, or if it cannot be fetched or copied.
    pub(crate) fn stage(&self, _: &StoreLock, source: &PluginSource, options: FetchOptions) -> Result<StagedPlugin, Problem> {
        let failed = |error: std::io::Error| Problem::new("cannot copy the plugin").because(error);
        if let Some(directory) = source.directory() {
            // Check this before copying: a folder that is not a plugin may be large.
            find_manifest(directory)?;
            if self.folder()?.starts_with(directory) {
                return Err(Problem::new("the folder contains aye's data directory"));
            }
        }
        let folder = self.folder()?;
        create_private_directory(folder).map_err(failed)?;
        let directory = || tempfile::Builder::new().prefix(STAGING).tempdir_in(folder).map_err(failed);
        let scratch = source.needs_scratch().then(directory).transpose()?;
        let mut staged = copy_to(directory()?, scratch.as_ref(), source, options)?;
        staged.plugin.pin.folder.push_str(&self.owner());
        Ok(staged)
    }

    /// Installs a staged plugin, replacing any installed plugin with the same name.
    ///
    /// # Errors
    /// Returns an error if a file cannot be written, in which case the installed plugins are unchanged.
    pub(crate) fn install(&self, lock: &StoreLock, staged: StagedPlugin, enabled: bool) -> Result<Plugin, Problem> {
        let StagedPlugin { plugin: Plugin { mut pin, root: staging }, directory, .. } = staged;
        pin.enabled = enabled;
        let folder = self.folder()?;
        let failed = |error: std::io::Error| Problem::new("cannot install the plugin").because(error);
        // The installed plugin may have the same files, some of which may have changed.
        if folder.join(&pin.folder).symlink_metadata().is_ok() {
            pin.folder.push_str(SECOND);
        }
        let root = folder.join(&pin.folder);
        let make_durable = |path: &String| File::open(staging.join(path)).and_then(|file| file.sync_all());
        pin.files.keys().try_for_each(make_durable).map_err(failed)?;
        std::fs::rename(&staging, &root).map_err(failed)?;
        // The directory no longer exists under its temporary name.
        let _ = directory.keep();
        sync(folder);
        if let Err(why) = pin.save(&self.config) {
            let is_saved = PluginPin::read(&self.config, &pin.name).is_ok_and(|saved| saved.as_ref() == Some(&pin));
            if !is_saved {
                // Remove the folder here: if the pins cannot be read, `finish` preserves it.
                let _ = std::fs::remove_dir_all(&root);
            }
            self.finish(lock);
            return Err(Problem::new("cannot install the plugin").because(why));
        }
        self.finish(lock);
        Ok(Plugin { pin, root })
    }

    /// Enables or disables a plugin.
    ///
    /// # Errors
    /// Returns an error if the pin file cannot be written.
    pub(crate) fn set_enabled(&self, _: &StoreLock, plugin: &Plugin, enabled: bool) -> Result<(), Problem> {
        PluginPin { enabled, ..plugin.pin.clone() }.save(&self.config).map_err(Problem::new)
    }

    /// Removes a plugin and all of its files.
    ///
    /// # Errors
    /// Returns an error if the pin file cannot be deleted, in which case the plugin is unchanged.
    pub(crate) fn remove(&self, lock: &StoreLock, name: &str) -> Result<(), Problem> {
        PluginPin::remove(&self.config, name).map_err(Problem::new)?;
        self.finish(lock);
        Ok(())
    }

    /// Deletes files that are no longer needed after a change. Also deletes the plugin folder if it is empty.
    pub(crate) fn finish(&self, _: &StoreLock) {
        self.remove_unused();
        if let Some(folder) = &self.folder {
            // Fails if the folder still contains plugins.
            let _ = std::fs::remove_dir(folder);
        }
    }

    /// Returns the suffix used in the names of this user's folders. It identifies the configuration directory, because
    /// runs with different configuration directories can share a data directory.
    fn owner(&self) -> String {
        let config = std::path::absolute(&self.config).unwrap_or_else(|_| self.config.clone());
        let hash = blake3::hash(config.as_os_str().as_encoded_bytes()).to_hex();
        format!("-{}", hash.get(..DIGITS).unwrap_or_default())
    }

    /// Deletes folders that belong to this configuration directory but not to a plugin. If some pins cannot be read,
    /// preserves all complete folders.
    fn remove_unused(&self) {
        let Some(folder) = &self.folder else { return };
        let Ok(entries) = std::fs::read_dir(folder) else { return };
        let (pins, problems) = PluginPin::read_all(&self.config);
        let owner = self.owner();
        for entry in entries.filter_map(Result::ok) {
            let name = entry.file_name().to_string_lossy().into_owned();
            let is_staging = name.starts_with(STAGING);
            let is_used = pins.iter().any(|pin| pin.folder == name);
            let is_own = name.strip_suffix(SECOND).unwrap_or(&name).ends_with(&owner);
            if !is_staging && (is_used || !is_own || !problems.is_empty()) {
                continue;
            }
            if let Err(error) = std::fs::remove_dir_all(entry.path()) {
                tracing::warn!(%error, folder = %entry.path().display(), "cannot remove a plugin folder");
            }
        }
    }

    fn folder(&self) -> Result<&Path, Problem> {
        self.folder.as_deref().ok_or_else(|| Problem::new("there is no data directory"))
    }
}

/// Fetches a plugin to a temporary folder that is separate from the installed plugins.
///
/// # Errors
/// Returns an error if the source is not a plugin, or if it cannot be fetched or copied.
pub(crate) fn copy_for_check(source: &PluginSource, options: FetchOptions) -> Result<StagedPlugin, Problem> {
    source.directory().map(find_manifest).transpose()?;
    let directory = || TempDir::new().map_err(|error| Problem::new("cannot copy the plugin").because(error));
    let scratch = source.needs_scratch().then(directory).transpose()?;
    copy_to(directory()?, scratch.as_ref(), source, options)
}

fn copy_to(
    directory: TempDir,
    scratch: Option<&TempDir>,
    source: &PluginSource,
    options: FetchOptions,
) -> Result<StagedPlugin, Problem> {
    let real = |directory: &TempDir| {
        directory.path().canonicalize().map_err(|error| Problem::new("cannot copy the plugin").because(error))
    };
    let root = real(&directory)?;
    let scratch = scratch.map(real).transpose()?.unwrap_or_default();
    let FetchedPlugin { root: from, commit, archive_hash, left_out } =
        source.fetch(&scratch, options.has_credentials, options.timeouts)?;
    find_manifest(&from)?;
    let CopiedFiles { files, left_out: others } = copy_files(&from, &root, &mut |_| {})?;
    let mut manifest = find_manifest(&root)?;
    let links = left_out.iter().chain(&others).take(MAX_LINKS);
    manifest.notes.extend(links.map(|path| format!("`{path}` is a symlink, which aye leaves out")));
    let digest = plugin_digest(&files);
    let pin = PluginPin {
        name: manifest.name.clone(),
        version: manifest.version.clone(),
        description: manifest.description.clone(),
        source: source.text(),
        path: source.folder().map(str::to_owned),
        commit,
        archive_hash,
        enabled: true,
        folder: format!("{}-{}", manifest.name, digest.get(..DIGITS).unwrap_or_default()),
        files,
    };
    Ok(StagedPlugin { manifest, plugin: Plugin { pin, root }, directory })
}

/// Flushes a folder's directory entries to disk.
fn sync(folder: &Path) {
    if let Err(error) = File::open(folder).and_then(|folder| folder.sync_all()) {
        tracing::warn!(%error, folder = %folder.display(), "cannot sync a folder");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// Creates a store and a plugin that is not installed in it.
    fn store() -> (TempDir, PluginStore, PathBuf) {
        let root = TempDir::new().unwrap();
        let real = root.path().canonicalize().unwrap();
        let source = real.join("demo");
        fs::create_dir_all(source.join("commands")).unwrap();
        fs::write(source.join("plugin.json"), r#"{"name": "demo"}"#).unwrap();
        fs::write(source.join("commands/fix.md"), "Fix it.").unwrap();
        let store = PluginStore::for_user(&Directories::new(real.join("config"), real.join("data")));
        (root, store, source)
    }

    fn stage(store: &PluginStore, lock: &StoreLock, source: &Path) -> StagedPlugin {
        let source = PluginSource::parse(source.to_str().unwrap(), None, Path::new("/")).unwrap();
        let time = std::time::Duration::from_secs(1);
        let options = FetchOptions { has_credentials: false, timeouts: Timeouts { connect: time, idle: time } };
        store.stage(lock, &source, options).unwrap()
    }

    fn install(store: &PluginStore, source: &Path) -> Plugin {
        let lock = store.lock().unwrap();
        let staged = stage(store, &lock, source);
        store.install(&lock, staged, true).unwrap()
    }

    fn entries(folder: &Path) -> Vec<String> {
        let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn an_interrupted_change_leaves_the_old_plugin_or_the_new_one_and_no_other_files() {
        let (root, store, source) = store();
        let old = install(&store, &source);
        let folder = root.path().join("data/plugins");
        fs::write(source.join("commands/fix.md"), "Fix it better.").unwrap();
        // Killed after the copy: the temporary folder was not removed.
        let lock = store.lock().unwrap();
        let staged = stage(&store, &lock, &source);
        let new = staged.plugin.pin.clone();
        let _ = staged.directory.keep();
        drop(lock);
        assert_eq!(store.all().plugins[0].pin, old.pin);
        assert_eq!(entries(&folder).len(), 2);
        drop(store.lock().unwrap());
        assert_eq!(entries(&folder), [old.pin.folder.as_str()]);
        // Killed after the folder was renamed, before the pins were written.
        let lock = store.lock().unwrap();
        let staged = stage(&store, &lock, &source);
        fs::rename(&staged.plugin.root, folder.join(&new.folder)).unwrap();
        let _ = staged.directory.keep();
        drop(lock);
        assert_eq!(store.all().plugins[0].pin, old.pin);
        drop(store.lock().unwrap());
        assert_eq!(entries(&folder), [old.pin.folder.as_str()]);
        // Killed after the pins were written, before the old folder was removed.
        let installed = install(&store, &source);
        fs::create_dir(folder.join(&old.pin.folder)).unwrap();
        drop(store.lock().unwrap());
        assert_eq!(entries(&folder), [installed.pin.folder.as_str()]);
        assert_eq!(store.all().plugins[0].change(), None);
        // Killed after the pins were removed.
        PluginPin::remove(&root.path().join("config"), "demo").unwrap();
        store.finish(&store.lock().unwrap());
        assert!(!folder.exists() && !root.path().join("config/plugins").exists());
    }

    #[test]
    fn plugins_of_another_config_directory_are_preserved() {
        let (root, store, source) = store();
        let plugin = install(&store, &source);
        let other = Directories::new(root.path().join("other"), root.path().canonicalize().unwrap().join("data"));
        let other = PluginStore::for_user(&other);
        drop(other.lock().unwrap());
        assert_eq!(store.all().plugins[0].change(), None);
        let second = install(&other, &source);
        assert_ne!(second.root, plugin.root);
        other.remove(&other.lock().unwrap(), "demo").unwrap();
        assert!(!second.root.exists());
        assert_eq!(store.all().plugins[0].change(), None);
        store.remove(&store.lock().unwrap(), "demo").unwrap();
        assert!(!root.path().join("data/plugins").exists());
    }

    #[test]
    fn nothing_is_removed_if_the_folder_of_pins_cannot_be_read() {
        let (root, store, source) = store();
        let plugin = install(&store, &source);
        let (pins, aside) = (root.path().join("config/plugins"), root.path().join("config/aside"));
        fs::rename(&pins, &aside).unwrap();
        fs::write(&pins, "a file").unwrap();
        let all = store.all();
        assert!(all.plugins.is_empty() && all.problems[0].contains("ignored all plugins"), "{:?}", all.problems);
        store.finish(&store.lock().unwrap());
        assert!(plugin.root.exists());
        fs::remove_file(&pins).unwrap();
        fs::rename(&aside, &pins).unwrap();
        assert_eq!(store.all().plugins[0].change(), None);
    }

    #[test]
    fn only_one_process_changes_plugins_at_a_time() {
        let (_root, store, _) = store();
        let lock = store.lock().unwrap();
        let told = store.lock().map(drop).unwrap_err();
        assert!(told.text().contains("another aye process is changing plugins"), "{}", told.text());
        drop(lock);
        store.lock().unwrap();
    }

    #[test]
    fn a_plugin_that_cannot_be_installed_changes_nothing() {
        let (root, store, source) = store();
        fs::write(root.path().join("config"), "a file").unwrap();
        let lock = store.lock().unwrap();
        let staged = stage(&store, &lock, &source);
        assert!(store.install(&lock, staged, true).map(drop).unwrap_err().text().contains("cannot install the plugin"));
        drop(lock);
        assert!(!root.path().join("data/plugins").exists());
        let (root, store, _) = self::store();
        fs::write(root.path().join("data"), "a file").unwrap();
        assert!(store.lock().map(drop).unwrap_err().text().contains("cannot change plugins"));
    }

    #[test]
    fn plugins_with_unreadable_pins_are_ignored_and_can_be_removed() {
        let (root, store, source) = store();
        install(&store, &source);
        let pins = root.path().join("config/plugins/demo.toml");
        let good = fs::read_to_string(&pins).unwrap();
        for (text, why) in [
            ("name = ".to_owned(), "cannot read"),
            (good.replace("name = \"demo\"", "name = \"other\""), "does not describe this plugin"),
            (good.replace("folder = \"demo", "folder = \"../demo"), "does not describe this plugin"),
            (good.replace("commands/fix.md", "../../fix.md"), "does not describe this plugin"),
        ] {
            fs::write(&pins, text).unwrap();
            let all = store.all();
            assert!(all.plugins.is_empty() && all.problems[0].contains(why), "{:?}", all.problems);
            assert!(all.problems[0].contains("aye plugin remove demo"));
        }
        store.remove(&store.lock().unwrap(), "demo").unwrap();
        assert!(!root.path().join("data/plugins").exists());
    }
}
