//! Finds the language servers of a session, and prepares the sandbox in which they run.

use super::context::AppContext;
use crate::lsp::{self, FindCommand, LANGUAGES, Language, ServerCommand};
use crate::ports::Diagnostics;
use crate::sys::programs::is_program;
use crate::tools::{self, ReadOnlyLauncher};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// Cache directory of the servers, inside the private `/tmp` of their sandbox.
const CACHE: &str = "/tmp/cache";
/// Program that, when started under another program's name, runs that program from the selected toolchain.
const RUSTUP: &str = "rustup";

/// Handle to the language servers. Cheap to clone; all clones share the same servers.
#[derive(Clone)]
pub(super) struct LanguageServerHandle {
    servers: Arc<lsp::LanguageServers>,
    launcher: Arc<LazyLauncher>,
}

/// Launcher for the servers, set once the tool settings are known.
#[derive(Default)]
struct LazyLauncher(OnceLock<ReadOnlyLauncher>);

impl crate::ports::Launcher for LazyLauncher {
    fn launch(
        &self,
        program: crate::ports::ServerProgram,
    ) -> crate::ports::BoxFuture<'_, Result<crate::ports::LaunchedProgram, String>> {
        match self.0.get() {
            Some(launcher) => launcher.launch(program),
            None => Box::pin(std::future::ready(Err("the session has not started".to_owned()))),
        }
    }
}

impl LanguageServerHandle {
    /// Returns the servers for the enabled languages, or `None` if there are none. Does not search for or start any
    /// program yet.
    pub(super) fn new(app: &AppContext) -> Option<Self> {
        let uses = |language: &Language| app.settings.uses_language_server(language.name);
        if !LANGUAGES.iter().any(uses) {
            return None;
        }
        let launcher = Arc::<LazyLauncher>::default();
        let port = Arc::clone(&launcher) as Arc<dyn crate::ports::Launcher>;
        let servers = lsp::LanguageServers::new((&app.workspace, &app.roots), uses, port, command_finder(app));
        Some(Self { servers: Arc::new(servers), launcher })
    }

    /// Returns the interface through which tools obtain diagnostics.
    pub(super) fn port(&self) -> Arc<dyn Diagnostics> {
        Arc::clone(&self.servers) as Arc<dyn Diagnostics>
    }

    /// Sets the tool settings used for servers that are started later.
    pub(super) fn set_settings(&self, settings: &tools::ToolSettings) {
        // The servers contain the settings, so the settings must not contain the servers.
        let mut settings = settings.clone();
        settings.session.diagnostics = None;
        let launcher = self.launcher.0.get_or_init(|| ReadOnlyLauncher::new(settings.clone()));
        launcher.set_settings(settings);
    }

    pub(super) async fn end(&self) {
        self.servers.end().await;
    }
}

/// End of the reason if a program is simply not installed.
pub(crate) const NOT_IN_PATH: &str = "was not found in PATH";

/// The program of a language server, or the reason why it was not found.
pub(crate) struct FoundServer {
    /// Language name, as in `[lsp.rust]`.
    pub language: &'static str,
    pub program: Result<PathBuf, String>,
}

/// Finds the programs of the enabled servers without starting them.
pub(crate) fn find_servers(app: &AppContext) -> Vec<FoundServer> {
    let find = command_finder(app);
    let enabled = LANGUAGES.iter().filter(|language| app.settings.uses_language_server(language.name));
    let one = |language: &Language| FoundServer {
        language: language.name,
        program: find(language).map(|command| command.argv.first().map(PathBuf::from).unwrap_or_default()),
    };
    enabled.map(one).collect()
}

/// Returns a function that finds the command for a language. The command is either configured or the language's default
/// program in `PATH`.
fn command_finder(app: &AppContext) -> FindCommand {
    let path = app.environment.get("PATH").map(str::to_owned).unwrap_or_default();
    let rustup_home = app.environment.get("RUSTUP_HOME").map_or_else(|| app.home.join(".rustup"), PathBuf::from);
    let has_toolchain = app.environment.get("RUSTUP_TOOLCHAIN").is_some();
    let (settings, roots, home) = (app.settings.clone(), app.roots.clone(), app.home.clone());
    Arc::new(move |language: &Language| {
        let own = settings.language_server(language.name);
        let usual = || language.command.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let mut argv = own.map_or_else(usual, <[String]>::to_vec);
        let Some(name) = argv.first().cloned().filter(|name| !name.is_empty()) else {
            return Err(format!("`lsp.{}.command` is empty", language.name));
        };
        let search = ProgramSearch { path: &path, roots: &roots, home: &home };
        let program = search.find(&name)?;
        let mut environment = vec![("PATH".to_owned(), search.path_outside()), ("XDG_CACHE_HOME".to_owned(), CACHE.to_owned())];
        environment.extend(language.environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        // Otherwise a file of the project would choose the toolchain, and with it the program.
        let is_rustup = program.canonicalize().is_ok_and(|real| real.file_name().is_some_and(|name| name == RUSTUP));
        if is_rustup && !has_toolchain {
            environment.push(("RUSTUP_TOOLCHAIN".to_owned(), default_toolchain(&rustup_home)?));
        }
        argv[0] = program.to_string_lossy().into_owned();
        Ok(ServerCommand { argv, environment })
    })
}

/// Searches for programs outside the project.
struct ProgramSearch<'a> {
    path: &'a str,
    roots: &'a [PathBuf],
    home: &'a Path,
}

impl ProgramSearch<'_> {
    fn find(&self, name: &str) -> Result<PathBuf, String> {
        let below_home = name.strip_prefix("~/").map(|rest| self.home.join(rest));
        let path = below_home.unwrap_or_else(|| PathBuf::from(name));
        if path.is_absolute() {
            return if self.is_inside(&path) {
                Err(format!("`{name}` is inside the workspace, so the project could replace it"))
            } else if is_program(&path) {
                Ok(path)
            } else {
                Err(format!("`{name}` is not a program"))
            };
        }
        if name.contains('/') {
            return Err(format!("`{name}` must be a name, or an absolute path"));
        }
        let found = self.entries().map(|entry| entry.join(name)).find(|path| is_program(path) && !self.is_inside(path));
        found.ok_or_else(|| format!("`{name}` {NOT_IN_PATH}"))
    }

    /// Returns the entries in `PATH` that are outside the project.
    fn entries(&self) -> impl Iterator<Item = PathBuf> {
        self.path.split(':').map(PathBuf::from).filter(|entry| entry.is_absolute() && !self.is_inside(entry))
    }

    fn path_outside(&self) -> String {
        self.entries().map(|entry| entry.to_string_lossy().into_owned()).collect::<Vec<_>>().join(":")
    }

    fn is_inside(&self, path: &Path) -> bool {
        let within = |path: &Path| self.roots.iter().any(|root| path.starts_with(root));
        within(path) || path.canonicalize().is_ok_and(|real| within(&real))
    }
}

/// Returns the user's default Rust toolchain.
fn default_toolchain(rustup_home: &Path) -> Result<String, String> {
    let file = rustup_home.join("settings.toml");
    let table = std::fs::read_to_string(&file).ok().and_then(|text| toml::from_str::<toml::Table>(&text).ok());
    let toolchain = table.as_ref().and_then(|table| table.get("default_toolchain")?.as_str());
    toolchain.map(str::to_owned).ok_or_else(|| {
        "rustup has no default toolchain, and the project is not allowed to choose one; run `rustup default stable`".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn program(path: &Path) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "#!/bin/sh\n").unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn a_project_cannot_choose_the_language_server_program() {
        let directory = tempfile::tempdir().unwrap();
        let base = directory.path().canonicalize().unwrap();
        let (workspace, outside) = (base.join("workspace"), base.join("bin"));
        program(&workspace.join("bin/gopls"));
        program(&workspace.join("bin/clangd"));
        program(&outside.join("gopls"));
        symlink(workspace.join("bin/clangd"), outside.join("clangd")).unwrap();
        symlink(workspace.join("bin"), base.join("linked")).unwrap();
        fs::write(outside.join("notes"), "text").unwrap();
        let path = format!("bin:.:{}:{}:{}", workspace.join("bin").display(), base.join("linked").display(), outside.display());
        let roots = [workspace.clone()];
        let search = ProgramSearch { path: &path, roots: &roots, home: &base };
        assert_eq!(search.find("gopls"), Ok(outside.join("gopls")));
        assert_eq!(search.path_outside(), outside.to_string_lossy());
        assert_eq!(search.find("~/bin/gopls"), Ok(outside.join("gopls")));
        for (name, said) in [
            ("clangd".to_owned(), "not found in PATH"),
            ("rust-analyzer".to_owned(), "not found in PATH"),
            ("bin/gopls".to_owned(), "absolute path"),
            (workspace.join("bin/gopls").to_string_lossy().into_owned(), "inside the workspace"),
            (outside.join("clangd").to_string_lossy().into_owned(), "inside the workspace"),
            (outside.join("notes").to_string_lossy().into_owned(), "not a program"),
        ] {
            assert!(search.find(&name).is_err_and(|error| error.contains(said)), "{name}");
        }
    }

    #[test]
    fn rustup_uses_the_users_default_toolchain() {
        let directory = tempfile::tempdir().unwrap();
        assert!(default_toolchain(directory.path()).is_err_and(|error| error.contains("rustup default")));
        fs::write(directory.path().join("settings.toml"), "default_toolchain = \"stable-x\"\nversion = \"12\"\n").unwrap();
        assert_eq!(default_toolchain(directory.path()).as_deref(), Ok("stable-x"));
    }
}
