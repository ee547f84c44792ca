//! Package manager caches: finds the existing directories, and provides a layer over each for writes by commands.

use crate::sys::overlay;
use crate::sys::overlay::LayeredDirectory;
use crate::sys::sandbox::Substitute;
use crate::tools::blocking::run_in_background;
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};

/// Known cache directories: the environment variable, the relevant subdirectory, and the default path in the home
/// directory.
const KNOWN: &[(&str, &str, &str)] = &[
    ("CARGO_HOME", "registry", ".cargo/registry"),
    ("CARGO_HOME", "git", ".cargo/git"),
    ("npm_config_cache", "", ".npm"),
    ("GOMODCACHE", "", "go/pkg/mod"),
    ("GOCACHE", "", ""),
    ("PIP_CACHE_DIR", "", ""),
    ("UV_CACHE_DIR", "", ""),
    ("YARN_CACHE_FOLDER", "", ""),
    ("GRADLE_USER_HOME", "", ".gradle"),
    ("", "", ".m2/repository"),
    ("", "", ".ivy2/cache"),
    ("NUGET_PACKAGES", "", ".nuget/packages"),
    ("", "", ".local/share/pnpm/store"),
    ("BUN_INSTALL_CACHE_DIR", "", ".bun/install/cache"),
    ("DENO_DIR", "", ""),
    ("", "", ".composer/cache"),
    ("PUB_CACHE", "", ".pub-cache"),
    ("", "", ".cabal/packages"),
];
/// Cache directory shared by all programs. Commands see a directory of their own in its place, which contains only the
/// build caches, so the caches of browsers and mail programs remain hidden.
const CACHE_HOME: (&str, &str) = ("XDG_CACHE_HOME", ".cache");
/// Subdirectories of the shared cache directory that belong to build tools. Commands can see them.
const IN_CACHE_HOME: &[&str] = &[
    "Cypress",
    "Homebrew",
    "JuliaLang",
    "R",
    "act",
    "bazel",
    "bazelisk",
    "black",
    "bun",
    "cabal",
    "ccache",
    "clangd",
    "composer",
    "conan",
    "coursier",
    "deno",
    "dotnet",
    "electron",
    "electron-builder",
    "esbuild",
    "fontconfig",
    "go-build",
    "golangci-lint",
    "gopls",
    "hatch",
    "hex",
    "huggingface",
    "matplotlib",
    "mesa_shader_cache",
    "meson",
    "mise",
    "ms-playwright",
    "mypy",
    "nim",
    "nix",
    "node",
    "node-gyp",
    "nvim-treesitter",
    "org.swift.swiftpm",
    "pdm",
    "phpstan",
    "pip",
    "pip-tools",
    "pnpm",
    "pre-commit",
    "prisma",
    "puppeteer",
    "pylint",
    "pypoetry",
    "pytype",
    "rattler",
    "rebar3",
    "ruff",
    "sccache",
    "selenium",
    "staticcheck",
    "swift-package-manager",
    "torch",
    "trunk",
    "turbo",
    "typescript",
    "uv",
    "vcpkg",
    "virtualenv",
    "yarn",
    "zig",
];
/// Cargo's lock files, which contain no data.
const LOCKS: &[(&str, &str, &str)] = &[
    ("CARGO_HOME", ".package-cache", ".cargo/.package-cache"),
    ("CARGO_HOME", ".package-cache-mutate", ".cargo/.package-cache-mutate"),
];
/// Alternative locations for caches over which no layer can be created.
pub(in crate::tools) const ELSEWHERE: &[(&str, &str)] = &[
    ("XDG_CACHE_HOME", "/tmp/.cache"),
    ("GOCACHE", "/tmp/.cache/go-build"),
    ("PIP_CACHE_DIR", "/tmp/.cache/pip"),
    ("UV_CACHE_DIR", "/tmp/.cache/uv"),
    ("YARN_CACHE_FOLDER", "/tmp/.cache/yarn"),
    ("npm_config_cache", "/tmp/.cache/npm"),
];
pub(super) const LAYERS: &str = "caches";
/// Name prefix of temporary layers.
pub(super) const ONCE: &str = "once-";

/// One user's caches.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Caches {
    pub(in crate::tools) directories: Vec<PathBuf>,
    pub(in crate::tools) locks: Vec<PathBuf>,
    /// Cache directory shared by all programs, whether or not it exists.
    pub(in crate::tools) home: Option<PathBuf>,
}

impl Caches {
    /// Finds the existing caches. Excludes any cache that contains one of the `never` directories, such as the
    /// workspace or the home directory.
    pub(crate) fn find(home: &Path, variable: impl Fn(&str) -> Option<String>, never: &[&Path]) -> Self {
        let place = |(name, below, at_home): &(&str, &str, &str)| {
            let named = variable(name).map(PathBuf::from).filter(|named| named.is_absolute());
            let named = named.map(|named| if below.is_empty() { named } else { named.join(below) });
            let at_home = (!at_home.is_empty()).then(|| home.join(at_home));
            named.or(at_home)?.canonicalize().ok()
        };
        let fits = |place: &PathBuf| place.parent().is_some() && !never.iter().any(|never| never.starts_with(place));
        let (name, at_home) = CACHE_HOME;
        let cache_home =
            variable(name).map(PathBuf::from).filter(|named| named.is_absolute()).unwrap_or_else(|| home.join(at_home));
        let cache_home = cache_home.canonicalize().unwrap_or(cache_home);
        let shared = IN_CACHE_HOME.iter().filter_map(|name| cache_home.join(name).canonicalize().ok());
        let known = KNOWN.iter().filter_map(place).chain(shared);
        let mut found: Vec<PathBuf> = known.filter(|place| place.is_dir()).filter(fits).collect();
        found.sort();
        found.dedup();
        let all = found.clone();
        found.retain(|place| !all.iter().any(|other| other != place && place.starts_with(other)));
        let locks = LOCKS.iter().filter_map(place).filter(|lock| lock.is_file()).collect();
        // A cache directory inside another cache is part of that cache.
        let cache_home = Some(cache_home).filter(fits).filter(|home| !found.iter().any(|cache| home.starts_with(cache)));
        Self { directories: found, locks, home: cache_home }
    }

    /// Prepares `content` as the shared cache directory that commands see, with mount points for the visible caches.
    /// Removes any files that a command has put at these paths. Returns `Ok(None)` if there is no shared cache
    /// directory.
    pub(in crate::tools) fn substitute(&self, content: PathBuf) -> io::Result<Option<Substitute>> {
        let Some(home) = &self.home else { return Ok(None) };
        private(&content)?;
        for below in self.directories.iter().filter_map(|cache| cache.strip_prefix(home).ok()) {
            let mut point = content.clone();
            for name in below {
                point.push(name);
                if point.symlink_metadata().is_ok_and(|data| !data.is_dir()) {
                    std::fs::remove_file(&point)?;
                }
                private(&point)?;
            }
        }
        Ok(Some(Substitute { directory: home.clone(), content }))
    }
}

/// The layers that a command uses. They are released when the command ends.
#[derive(Debug, Default)]
pub(in crate::tools) struct Leases {
    pub layers: Vec<LayeredDirectory>,
    pub substitutes: Vec<Substitute>,
    held: Vec<Lease>,
}

#[derive(Debug)]
struct Lease {
    /// Exclusive lock on the layer, or `None` once the layer has been discarded.
    lock: Option<File>,
    thrown_away: Option<PathBuf>,
}

impl Drop for Lease {
    fn drop(&mut self) {
        let lock = self.lock.take();
        if let Some(directory) = self.thrown_away.take() {
            run_in_background(move || {
                remove(&directory);
                drop(lock);
            });
        }
    }
}

impl Leases {
    /// Acquires a layer below `base` for each cache. This is the workspace's persistent layer or, if another command is
    /// using that one, a temporary one. A cache without a layer is read-only. Files that the commands of one workspace
    /// have stored are never visible in another workspace, which might run them. `layered` is `false` if the caches are
    /// written directly.
    pub(in crate::tools) fn acquire(base: &Path, caches: &Caches, layered: bool, roots: &[PathBuf]) -> Self {
        static SWEPT: Once = Once::new();
        let layers = base.join(LAYERS);
        let mut leases = Self::default();
        if let Err(error) = private(&layers) {
            tracing::warn!(%error, directory = %layers.display(), "caches are read-only");
            return leases;
        }
        SWEPT.call_once(|| sweep(&layers));
        let substitute = |home: &PathBuf| -> io::Result<(Option<Substitute>, Lease)> {
            let (directory, lease) = lease(&layers, home, roots)?;
            Ok((caches.substitute(directory.join("upper"))?, lease))
        };
        match caches.home.as_ref().map(substitute).transpose() {
            Ok(Some((substitute, lease))) => {
                leases.substitutes.extend(substitute);
                leases.held.push(lease);
            }
            Ok(None) => {}
            Err(error) => tracing::warn!(%error, "commands have no separate cache directory"),
        }
        for cache in caches.directories.iter().filter(|_| layered) {
            match lease(&layers, cache, roots).and_then(|(directory, lease)| Ok((create_layer(&directory, cache)?, lease))) {
                Ok((layer, lease)) => {
                    leases.layers.push(layer);
                    leases.held.push(lease);
                }
                Err(error) => tracing::warn!(%error, cache = %cache.display(), "the cache is read-only"),
            }
        }
        leases
    }
}

/// Locks a private directory for use as a cache's layer.
fn lease(layers: &Path, cache: &Path, roots: &[PathBuf]) -> io::Result<(PathBuf, Lease)> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let mut name = blake3::Hasher::new();
    // Separated by NUL, which no path contains.
    for path in std::iter::once(cache).chain(roots.first().map(PathBuf::as_path)) {
        name.update(path.as_os_str().as_encoded_bytes()).update(b"\0");
    }
    let name = name.finalize().to_hex();
    let directory = layers.join(&name[..16]);
    private(&directory)?;
    if let Some(lock) = try_lock(&directory)? {
        // The time of last use decides which layer is removed first.
        let _ = lock.set_modified(std::time::SystemTime::now());
        return Ok((directory, Lease { lock: Some(lock), thrown_away: None }));
    }
    let directory = layers.join(format!("{ONCE}{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed)));
    private(&directory)?;
    let lock = try_lock(&directory)?.ok_or_else(|| io::Error::other("another process has locked the layer"))?;
    Ok((directory.clone(), Lease { lock: Some(lock), thrown_away: Some(directory) }))
}

fn create_layer(directory: &Path, cache: &Path) -> io::Result<LayeredDirectory> {
    let (upper, work) = (directory.join("upper"), directory.join("work"));
    private(&upper)?;
    private(&work)?;
    // The upper directory appears as the cache, so it needs the same permissions.
    std::fs::set_permissions(&upper, cache.metadata()?.permissions())?;
    Ok(LayeredDirectory { directory: cache.to_owned(), upper, work })
}

/// Locks a directory. Returns `Ok(None)` if another command is using it, or if it is being removed.
pub(super) fn try_lock(directory: &Path) -> io::Result<Option<File>> {
    let lock = OpenOptions::new().create(true).truncate(false).write(true).open(directory.join("lock"))?;
    match lock.try_lock() {
        Ok(()) => Ok(Some(lock).filter(|lock| lock.metadata().is_ok_and(|metadata| metadata.nlink() > 0))),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

fn private(directory: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(directory)
}

/// Removes layers of processes that exited without releasing them.
fn sweep(layers: &Path) {
    for entry in std::fs::read_dir(layers).into_iter().flatten().flatten() {
        let left = entry.file_name().to_string_lossy().starts_with(ONCE);
        if left && matches!(try_lock(&entry.path()), Ok(Some(_)) | Err(_)) {
            remove(&entry.path());
        }
    }
}

/// Removes a layer, including any directories that their owner cannot enter, as overlayfs and Go create them.
pub(super) fn remove(directory: &Path) {
    if let Err(error) = overlay::discard(directory) {
        tracing::warn!(%error, directory = %directory.display(), "cannot remove a cache layer");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn home() -> (tempfile::TempDir, PathBuf) {
        let tree = tempfile::tempdir().expect("a directory");
        let home = tree.path().canonicalize().expect("real");
        let caches = [".cargo/registry", ".cache/pip", ".cache/mozilla", ".npm", "own/cargo/registry", "own/go-build", "work"];
        for directory in caches {
            std::fs::create_dir_all(home.join(directory)).expect("made");
        }
        std::fs::write(home.join(".cargo/.package-cache"), "").expect("written");
        (tree, home)
    }

    #[test]
    fn only_existing_caches_are_found_at_the_paths_that_programs_use() {
        let (_tree, home) = home();
        let work = home.join("work");
        let found = Caches::find(&home, |_| None, &[&home, &work]);
        assert_eq!(found.directories, [".cache/pip", ".cargo/registry", ".npm"].map(|name| home.join(name)));
        assert_eq!(found.home, Some(home.join(".cache")));
        assert_eq!(found.locks, [home.join(".cargo/.package-cache")]);
        let named = |name: &str| match name {
            "CARGO_HOME" => Some(home.join("own/cargo").display().to_string()),
            "GOCACHE" => Some(home.join("own/go-build").display().to_string()),
            // Nothing above the workspace is a cache, and a relative path could be anywhere.
            "XDG_CACHE_HOME" => Some(home.display().to_string()),
            "npm_config_cache" => Some("cache".to_owned()),
            _ => None,
        };
        let found = Caches::find(&home, named, &[&home, &work]);
        assert_eq!(found.directories, [".npm", "own/cargo/registry", "own/go-build"].map(|name| home.join(name)));
        assert_eq!(found.home, None);
    }

    #[test]
    fn concurrent_commands_never_share_a_cache_layer() {
        let (tree, home) = home();
        let (base, cache) = (tree.path().join("data"), Caches { directories: vec![home.join(".npm")], ..Caches::default() });
        let roots = [home.join("work")];
        let first = Leases::acquire(&base, &cache, true, &roots);
        let second = Leases::acquire(&base, &cache, true, &roots);
        assert_ne!(first.layers[0].upper, second.layers[0].upper);
        let (kept, thrown_away) = (first.layers[0].upper.clone(), second.layers[0].upper.clone());
        std::fs::create_dir_all(thrown_away.join("a/b")).expect("made");
        std::fs::set_permissions(thrown_away.join("a"), std::fs::Permissions::from_mode(0o500)).expect("set");
        drop((first, second));
        assert!(kept.is_dir() && !thrown_away.exists());
        assert_eq!(Leases::acquire(&base, &cache, true, &roots).layers[0].upper, kept);
    }

    #[test]
    fn cache_directories_replaced_by_a_command_are_recreated() {
        let (tree, home) = home();
        let (base, caches) = (tree.path().join("data"), Caches::find(&home, |_| None, &[&home]));
        let take = || Leases::acquire(&base, &caches, true, &[home.join("work")]);
        let content = take().substitutes[0].content.clone();
        assert!(content.join("pip").is_dir() && !content.join("mozilla").exists());
        std::fs::remove_dir(content.join("pip")).expect("removed");
        std::os::unix::fs::symlink("/etc", content.join("pip")).expect("linked");
        let again = take();
        assert_eq!((&again.substitutes[0].content, &again.substitutes[0].directory), (&content, &home.join(".cache")));
        assert!(content.join("pip").symlink_metadata().expect("there").is_dir());
    }

    #[test]
    fn workspaces_do_not_share_cache_layers() {
        let (tree, home) = home();
        let (base, cache) = (tree.path().join("data"), Caches { directories: vec![home.join(".npm")], ..Caches::default() });
        let layer = |root: &str| Leases::acquire(&base, &cache, true, &[home.join(root)]).layers[0].upper.clone();
        assert_eq!(layer("work"), layer("work"));
        assert_ne!(layer("work"), layer("own"));
    }
}
