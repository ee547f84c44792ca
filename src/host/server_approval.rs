//! Checks whether the MCP servers of a project or a plugin are approved, immediately before each one is started.

use super::plugins::Plugin;
use crate::config::PluginPin;
use crate::config::trust::{Project, program_files};
use crate::mcp::{PluginFiles, Reach, ServerVerifier, Spec};
use crate::ports::BoxFuture;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

/// File that defines a project's servers.
pub(crate) const SERVERS: &str = ".mcp.json";

/// Message for a server that is disabled because its entry differs from the one that the user trusted.
pub(crate) const CHANGED: &str = "changed since you trusted it; run `aye` in this project in another terminal and trust it again";

/// The user's approval of a project, which consists of file names and hashes.
#[derive(Clone)]
pub(crate) struct ServerApproval {
    root: PathBuf,
    known: Arc<RwLock<Arc<BTreeMap<String, String>>>>,
    /// Directory in which later approvals are saved.
    config: PathBuf,
}

impl ServerVerifier for ServerApproval {
    fn verify(&self, spec: &Spec) -> BoxFuture<'_, Result<(), String>> {
        let (argv, directory) = match &spec.reach {
            Reach::Program { argv, directory, .. } => (argv.clone(), directory.clone()),
            Reach::Http { .. } => (Vec::new(), None),
        };
        let (approved, name, plugin) = (self.clone(), spec.name.clone(), spec.plugin.clone());
        Box::pin(async move {
            let looked = tokio::task::spawn_blocking(move || match plugin {
                Some(files) => {
                    let root = files.root.clone();
                    approved.check_plugin(files)?;
                    approved.check_plugin_programs(&argv, directory.as_deref(), &root)
                }
                None => approved.check(&name, &argv, directory.as_deref()),
            });
            looked.await.unwrap_or_else(|_| Err("cannot inspect the project".to_owned()))
        })
    }
}

impl ServerApproval {
    pub(crate) fn new(root: PathBuf, known: Arc<BTreeMap<String, String>>, config: PathBuf) -> Self {
        Self { root, known: Arc::new(RwLock::new(known)), config }
    }

    /// Replaces the approval when the user has trusted the project again.
    pub(crate) fn update(&self, known: Arc<BTreeMap<String, String>>) {
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = known;
    }

    /// Checks that a plugin is installed and enabled, and that its files are exactly those that the user added.
    fn check_plugin(&self, files: PluginFiles) -> Result<(), String> {
        let PluginFiles { name, root } = files;
        let pin = PluginPin::read(&self.config, &name)?;
        let is_used = |pin: &PluginPin| pin.enabled && root.ends_with(&pin.folder);
        let Some(pin) = pin.filter(is_used) else {
            return Err(format!("the plugin {name} was updated, disabled or removed; start a new session to use its servers"));
        };
        match (Plugin { pin, root }).change() {
            None => Ok(()),
            Some(change) => {
                Err(format!("the plugin {name} changed since you added it: {change}; run `aye plugin update {name}`"))
            }
        }
    }

    /// Checks that a plugin's server runs only those project files that the user trusts.
    fn check_plugin_programs(&self, argv: &[String], directory: Option<&Path>, plugin: &Path) -> Result<(), String> {
        let mut programs = plugin_programs(argv, directory, &self.root);
        // The installed plugin can be below the workspace; its files were already compared.
        programs.retain(|name| !self.root.join(name).canonicalize().is_ok_and(|real| real.starts_with(plugin)));
        if programs.is_empty() {
            return Ok(());
        }
        let project = Project::examine(&self.root);
        let known = Arc::clone(&self.known.read().unwrap_or_else(PoisonError::into_inner));
        let later = project.trusted_hashes(&self.config);
        first_changed(&project.now(), &[&*known, &later], programs.into_iter()).map_or(Ok(()), |name| {
            Err(format!(
                "the server runs `{name}` from the project, which is allowed for a plugin's server only after you trust this \
                version of the file; start `aye` in this project to review and trust it"
            ))
        })
    }

    fn check(&self, server: &str, argv: &[String], directory: Option<&Path>) -> Result<(), String> {
        let project = Project::examine(&self.root);
        let (now, later) = (project.now(), project.trusted_hashes(&self.config));
        // This is the server that was approved first; a later approval may have been for another program.
        let known = Arc::clone(&self.known.read().unwrap_or_else(PoisonError::into_inner));
        let (first, both) = ([&*known], [&*known, &later]);
        if let Some(name) = first_changed(&now, &first, std::iter::once(SERVERS.to_owned())) {
            return Err(format!("`{name}` {CHANGED}"));
        }
        let programs = project_programs(argv, directory, &self.root);
        first_changed(&now, &both, programs.into_iter()).map_or(Ok(()), |name| {
            Err(format!(
                "`{name}` changed since you approved it; trust the project again in another aye process, or restore the \
                file, then run `/mcp reconnect {server}`"
            ))
        })
    }
}

/// Returns the project files that a server runs.
pub(crate) fn project_programs(argv: &[String], directory: Option<&Path>, root: &Path) -> Vec<String> {
    let directory = directory.and_then(|directory| directory.strip_prefix(root).ok()).and_then(Path::to_str);
    program_files(argv, directory.filter(|directory| !directory.is_empty()), root)
}

/// Returns the project files that a plugin's server runs. The server's working directory may be outside the project.
fn plugin_programs(argv: &[String], directory: Option<&Path>, root: &Path) -> Vec<String> {
    let directory = directory.unwrap_or(root);
    let programs = |resolve: &dyn Fn(PathBuf) -> PathBuf| {
        let absolute = |word: &str| resolve(directory.join(word)).to_string_lossy().into_owned();
        let word = |(at, word): (usize, &String)| match word.split_once('=') {
            // A first word without a slash is looked up in PATH.
            _ if at == 0 && !word.contains('/') => word.clone(),
            Some((option, value)) if word.starts_with('-') => format!("{option}={}", absolute(value)),
            _ if word.starts_with('-') => word.clone(),
            _ => absolute(word),
        };
        let words: Vec<String> = argv.iter().enumerate().map(word).collect();
        program_files(&words, None, root)
    };
    // The paths as given, and after resolving symlinks.
    let mut found = programs(&|path| path);
    found.extend(programs(&|path| path.canonicalize().unwrap_or(path)));
    found
}

/// Returns the first of these files that has changed since it was approved, or that was never approved.
pub(crate) fn first_changed(
    now: &BTreeMap<String, String>,
    known: &[&BTreeMap<String, String>],
    mut names: impl Iterator<Item = String>,
) -> Option<String> {
    names.find(|name| {
        let hash = now.get(name);
        hash.is_none() || !known.iter().any(|known| known.get(name) == hash)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use tempfile::TempDir;

    #[test]
    fn a_server_approval_is_valid_until_its_files_change() {
        let (config, dir) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        let root = dir.path().canonicalize().unwrap();
        let put = |name: &str, text: &str| fs::write(root.join(name), text).unwrap();
        put(".mcp.json", r#"{"mcpServers": {"x": {"command": "sh", "args": ["./run.sh", "more.sh"]}}}"#);
        put("run.sh", "echo one\n");
        let known = Arc::new(Project::examine(&root).now());
        let approved = ServerApproval::new(root.clone(), known, config.path().to_owned());
        let argv = ["sh", "./run.sh", "more.sh"].map(str::to_owned);
        let look = || approved.check("x", &argv, None);
        assert_eq!(look(), Ok(()));
        put("run.sh", "echo two\n");
        let why = look().unwrap_err();
        assert!(why.contains("`run.sh` changed since you approved it") && why.contains("/mcp reconnect x"), "{why}");
        Project::examine(&root).record(config.path()).unwrap();
        assert_eq!(look(), Ok(()), "a later yes is one too");
        put("run.sh", "echo one\n");
        assert_eq!(look(), Ok(()), "what the first yes was to is back");
        put("more.sh", "read by it\n");
        assert!(look().unwrap_err().contains("`more.sh` changed"), "a file that was not there");
        fs::remove_file(root.join("more.sh")).unwrap();
        put(".mcp.json", "{}");
        Project::examine(&root).record(config.path()).unwrap();
        let why = look().unwrap_err();
        assert!(why.contains("`.mcp.json` changed") && why.contains("trust it again"), "another server needs a look: {why}");
        approved.update(Arc::new(Project::examine(&root).now()));
        let why = look().unwrap_err();
        assert!(!why.contains("`.mcp.json`"), "the new file is the one that is known: {why}");
    }

    #[test]
    fn a_plugin_server_runs_only_trusted_project_files() {
        let (config, dir, plugin) = (TempDir::new().unwrap(), TempDir::new().unwrap(), TempDir::new().unwrap());
        let (root, outside) = (dir.path().canonicalize().unwrap(), plugin.path().canonicalize().unwrap());
        fs::write(root.join("server.js"), "evil()\n").unwrap();
        fs::write(outside.join("server.js"), "good()\n").unwrap();
        std::os::unix::fs::symlink(&root, outside.join("way")).unwrap();
        let approval = |known| ServerApproval::new(root.clone(), Arc::new(known), config.path().to_owned());
        let new = approval(BTreeMap::new());
        let absolute = root.join("server.js").to_string_lossy().into_owned();
        for (words, directory, is_allowed) in [
            (["node", "./server.js"], Some(&outside), true),
            (["node", "server.js"], Some(&outside), true),
            (["node", absolute.as_str()], Some(&outside), false),
            (["node", "way/server.js"], Some(&outside), false),
            (["node", "--require=way/server.js"], Some(&outside), false),
            (["node", "./server.js"], Some(&root), false),
            (["node", "./server.js"], None, false),
            ([absolute.as_str(), "--all"], None, false),
        ] {
            let argv = words.map(str::to_owned);
            let checked = new.check_plugin_programs(&argv, directory.map(PathBuf::as_path), &outside);
            assert_eq!(checked.is_ok(), is_allowed, "{words:?} in {directory:?}: {checked:?}");
            let why = checked.err().unwrap_or_default();
            assert!(is_allowed || why.contains("runs `server.js` from the project"), "{why}");
        }
        let argv = ["node", "./server.js"].map(str::to_owned);
        fs::write(root.join(".mcp.json"), r#"{"mcpServers": {"x": {"command": "node", "args": ["./server.js"]}}}"#).unwrap();
        let trusted = approval(Project::examine(&root).now());
        assert_eq!(trusted.check_plugin_programs(&argv, None, &outside), Ok(()));
        fs::write(root.join("server.js"), "worse()\n").unwrap();
        assert!(trusted.check_plugin_programs(&argv, None, &outside).is_err(), "another version than the trusted one");
    }
}
