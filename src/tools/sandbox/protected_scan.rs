//! Scans the workspace for protected paths that the policy does not list: nested repositories, nested `.vscode`
//! directories, and matches of policy globs. The scan is limited in size, and is repeated in the background.

use crate::policy::{EntryProtection, ProtectionRules, is_secret_name};
use crate::sys::file::DirectoryStamp;
use std::collections::{HashMap, HashSet, VecDeque};
use std::ffi::OsString;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

/// Maximum number of entries to examine.
const MAX_ENTRIES: usize = 200_000;
/// Maximum number of protected paths, limited because each one adds a mount to every command.
const MAX_PLACES: usize = 1_000;
/// Directories of installed or generated files, which are too large to scan.
const SKIPPED: &[&str] = &["node_modules", "target"];
/// Maximum number of entries to examine in directories, such as the skipped ones, that are searched only for sockets.
const MAX_ENTRIES_ASIDE: usize = 20_000;
/// Depth to which a toolchain is searched for sockets. Programs put sockets near the top, and further down there are
/// thousands of package directories.
const TOOLCHAIN_DEPTH: usize = 2;
/// Maximum number of recorded paths that run code as soon as the folder is opened.
const MAX_WATCHED: usize = 10_000;
/// Maximum number of sockets to record.
const MAX_SOCKETS: usize = 256;
/// Number of entries above which commands do not wait for a new scan when they end.
const MAX_RESCANNED: usize = 20_000;
/// Age above which a scan's result is refreshed in the background.
const STALE: Duration = Duration::from_secs(2);

/// Result of a scan.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::tools) struct ScanResult {
    pub hidden: Vec<PathBuf>,
    /// Files whose names suggest secrets.
    pub secrets: Vec<PathBuf>,
    pub read_only: Vec<PathBuf>,
    /// Paths that are read-only, except for git commands that write.
    pub runs_code: Vec<PathBuf>,
    /// Unresolved paths of the previous two fields, and of writable files that run code as soon as the folder is
    /// opened.
    pub watched: Vec<PathBuf>,
    /// Path of every repository's `.git`.
    pub repositories: Vec<PathBuf>,
    /// Paths of sockets, whether or not a process is listening on them.
    pub sockets: Vec<PathBuf>,
    /// Reason why the result is incomplete.
    pub cut: Option<String>,
    /// Number of entries examined.
    entries: usize,
}

/// The scan, with its cache.
#[derive(Debug)]
pub(in crate::tools) struct ProtectedScan {
    roots: Vec<PathBuf>,
    marks: ProtectionRules,
    /// Directories outside the workspace that are also searched for sockets.
    outside: Vec<SocketSearch>,
    latest: RwLock<Option<(Instant, Arc<ScanResult>)>>,
    /// Listings of the last scan. Locked while a scan is running.
    walking: Mutex<DirectoryCache>,
}

/// A directory to search for sockets, and how deep to search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::tools) struct SocketSearch {
    directory: PathBuf,
    levels: usize,
}

impl SocketSearch {
    /// Creates a search of a whole directory, within the limit on entries.
    pub(in crate::tools) fn entire(directory: PathBuf) -> Self {
        Self { directory, levels: usize::MAX }
    }

    /// Creates a search that is limited to the top levels of a toolchain directory.
    pub(in crate::tools) fn toolchain(directory: PathBuf) -> Self {
        Self { directory, levels: TOOLCHAIN_DEPTH }
    }

    fn for_child(&self, name: &OsString) -> Self {
        Self { directory: self.directory.join(name), levels: self.levels - 1 }
    }
}

/// Listings of the directories in the last scan.
type DirectoryCache = HashMap<PathBuf, CachedListing>;

/// A cached directory listing. It is renewed if the directory has changed or was replaced.
#[derive(Debug, Default)]
struct CachedListing {
    stamp: DirectoryStamp,
    entries: usize,
    kept: Vec<ProtectedEntry>,
    sockets: Vec<OsString>,
    secrets: Vec<OsString>,
    /// Subdirectories to scan.
    below: Vec<OsString>,
    /// Subdirectories searched only for sockets.
    aside: Vec<OsString>,
}

#[derive(Debug, Clone)]
struct ProtectedEntry {
    name: OsString,
    kept: EntryProtection,
    is_link: bool,
}

impl ProtectedScan {
    pub(in crate::tools) fn new(roots: Vec<PathBuf>, marks: ProtectionRules, outside: Vec<SocketSearch>) -> Arc<Self> {
        Arc::new(Self { roots, marks, outside, latest: RwLock::default(), walking: Mutex::default() })
    }

    /// Returns the result of the last scan. Waits only if there has not been one yet. An old result is refreshed in the
    /// background.
    pub(in crate::tools) fn now(self: &Arc<Self>) -> Arc<ScanResult> {
        if let Some((at, found)) = self.cached() {
            if at.elapsed() > STALE {
                self.start_scan();
            }
            return found;
        }
        let mut seen = self.walking.lock().unwrap_or_else(PoisonError::into_inner);
        self.cached().map_or_else(|| self.walk_now(&mut seen), |(_, found)| found)
    }

    /// Performs a scan and returns its result, waiting for any scan that is already running.
    pub(in crate::tools) fn wait_for_scan(self: &Arc<Self>) -> Arc<ScanResult> {
        let mut seen = self.walking.lock().unwrap_or_else(PoisonError::into_inner);
        self.walk_now(&mut seen)
    }

    /// Starts a scan on another thread, unless one is already running.
    pub(in crate::tools) fn start_scan(self: &Arc<Self>) {
        let survey = Arc::clone(self);
        let walks = move || {
            if let Ok(mut seen) = survey.walking.try_lock() {
                survey.walk_now(&mut seen);
            }
        };
        if let Err(error) = std::thread::Builder::new().name("survey".to_owned()).spawn(walks) {
            tracing::warn!(%error, "cannot scan the workspace again");
        }
    }

    /// Returns the protected paths that are not in `before`. Waits for a scan unless the workspace is large, in which
    /// case it returns nothing.
    pub(in crate::tools) fn new_paths(self: &Arc<Self>, before: &ScanResult) -> Vec<PathBuf> {
        if before.cut.is_some() || before.entries > MAX_RESCANNED {
            self.start_scan();
            return Vec::new();
        }
        let now = self.wait_for_scan();
        let new = |now: &[PathBuf], before: &[PathBuf]| -> Vec<PathBuf> {
            now.iter().filter(|place| !before.contains(place)).cloned().collect()
        };
        [new(&now.read_only, &before.read_only), new(&now.runs_code, &before.runs_code)].concat()
    }

    /// Returns the unresolved paths that run code as soon as the folder is opened and that are not in `before`. Waits
    /// for a scan.
    pub(in crate::tools) fn new_unresolved_paths(self: &Arc<Self>, before: &ScanResult) -> Vec<PathBuf> {
        let known: HashSet<&PathBuf> = before.watched.iter().collect();
        self.wait_for_scan().watched.iter().filter(|place| !known.contains(place)).cloned().collect()
    }

    fn cached(&self) -> Option<(Instant, Arc<ScanResult>)> {
        self.latest.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn walk_now(&self, seen: &mut DirectoryCache) -> Arc<ScanResult> {
        let found = Arc::new(walk(&self.roots, &self.marks, &self.outside, MAX_ENTRIES, seen));
        *self.latest.write().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), Arc::clone(&found)));
        found
    }
}

/// Scans breadth-first, so that if the limit is exceeded, only deep entries are missing. `seen` contains the listings
/// of the last scan, which this scan replaces.
fn walk(
    roots: &[PathBuf],
    marks: &ProtectionRules,
    outside: &[SocketSearch],
    most: usize,
    seen: &mut DirectoryCache,
) -> ScanResult {
    let mut before = std::mem::take(seen);
    let mut aside: VecDeque<SocketSearch> = outside.iter().cloned().collect();
    let mut found = walk_roots(roots, marks, most, &mut before, seen, &mut aside);
    let nothing = ProtectionRules::default();
    let mut entries = 0;
    while let Some(search) = aside.pop_front().filter(|_| entries < MAX_ENTRIES_ASIDE) {
        let known = before.remove(&search.directory);
        let Some(listed) = list_directory(&search.directory, known, &nothing, MAX_ENTRIES_ASIDE - entries) else { continue };
        entries += listed.entries;
        keep_sockets(&mut found, &search.directory, &listed);
        if search.levels > 0 {
            aside.extend(listed.below.iter().chain(&listed.aside).map(|name| search.for_child(name)));
        }
        if listed.stamp.is_settled() {
            seen.insert(search.directory, listed);
        }
    }
    found
}

fn keep_sockets(found: &mut ScanResult, directory: &Path, listed: &CachedListing) {
    let room = MAX_SOCKETS.saturating_sub(found.sockets.len());
    found.sockets.extend(listed.sockets.iter().take(room).map(|name| directory.join(name)));
}

/// Scans the roots. Skipped directories are moved to `aside`.
fn walk_roots(
    roots: &[PathBuf],
    marks: &ProtectionRules,
    most: usize,
    before: &mut DirectoryCache,
    seen: &mut DirectoryCache,
    aside: &mut VecDeque<SocketSearch>,
) -> ScanResult {
    let mut found = ScanResult::default();
    let mut open: VecDeque<PathBuf> = roots.iter().cloned().collect();
    let mut entries = 0;
    while let Some(directory) = open.pop_front() {
        let known = before.remove(&directory);
        // A command cannot write to such a directory either, unless it can enter but not list the directory.
        let Some(listed) = list_directory(&directory, known, marks, most - entries) else { continue };
        entries += listed.entries;
        let room = MAX_PLACES.saturating_sub(found.hidden.len() + found.read_only.len() + found.runs_code.len());
        let (watched, kept): (Vec<&ProtectedEntry>, Vec<&ProtectedEntry>) =
            listed.kept.iter().partition(|mark| mark.kept == EntryProtection::Watched);
        let is_cut = entries >= most || kept.len() > room || found.secrets.len() + listed.secrets.len() > MAX_PLACES;
        // A mount applies to the target of a symlink.
        let secrets = listed.secrets.iter().filter_map(|name| directory.join(name).canonicalize().ok());
        found.secrets.extend(secrets.filter(|real| real.is_file()));
        kept.into_iter().take(room).chain(watched).for_each(|mark| keep(&mut found, &directory, mark));
        keep_sockets(&mut found, &directory, &listed);
        aside.extend(listed.aside.iter().map(|name| SocketSearch::entire(directory.join(name))));
        open.extend(listed.below.iter().map(|name| directory.join(name)));
        if is_cut {
            let below = directory.display();
            found.cut = Some(format!(
                "the workspace is too large to scan completely: nested `.git`, `.vscode` and similar directories, and matches \
                 of policy globs, are protected from commands only if the scan found them (it stopped at `{below}`)"
            ));
            return found;
        }
        if listed.stamp.is_settled() {
            seen.insert(directory, listed);
        }
    }
    found.entries = entries;
    found
}

/// Lists a directory up to the limit. Reuses the listing in `known` if the directory is unchanged.
fn list_directory(directory: &Path, known: Option<CachedListing>, marks: &ProtectionRules, most: usize) -> Option<CachedListing> {
    // Read the stamp before listing, so that a change in between is detected by the next scan.
    let stamp = DirectoryStamp::read(directory)?;
    if let Some(known) = known.filter(|known| known.stamp == stamp && known.entries < most) {
        return Some(known);
    }
    let mut listed = CachedListing { stamp, ..CachedListing::default() };
    for entry in std::fs::read_dir(directory).ok()?.flatten().take(most) {
        listed.entries += 1;
        let name = entry.file_name();
        let Ok(kind) = entry.file_type() else { continue };
        let text = name.to_string_lossy();
        if !kind.is_dir() && is_secret_name(&text) {
            listed.secrets.push(name.clone());
        }
        match marks.protection_of(&entry.path(), &text) {
            Some(kept) => {
                // Watched entries are writable: their directories are scanned, and a process may listen on a socket.
                if kept == EntryProtection::Watched && kind.is_dir() {
                    listed.below.push(name.clone());
                } else if kept == EntryProtection::Watched && kind.is_socket() {
                    listed.sockets.push(name.clone());
                }
                listed.kept.push(ProtectedEntry { kept, is_link: kind.is_symlink(), name });
            }
            None if kind.is_dir() && SKIPPED.contains(&&*text) => listed.aside.push(name),
            None if kind.is_dir() => listed.below.push(name),
            None if kind.is_socket() => listed.sockets.push(name),
            None => {}
        }
    }
    Some(listed)
}

fn keep(found: &mut ScanResult, directory: &Path, mark: &ProtectedEntry) {
    let path = directory.join(&mark.name);
    if mark.kept != EntryProtection::Hidden && found.watched.len() < MAX_WATCHED {
        found.watched.push(path.clone());
    }
    // A mount applies to the target of a symlink.
    let Some(real) = (if mark.is_link { path.canonicalize().ok() } else { Some(path) }) else { return };
    if mark.name == ".git" && !mark.is_link {
        found.repositories.push(real.clone());
    }
    match mark.kept {
        EntryProtection::Hidden => found.hidden.push(real),
        EntryProtection::ReadOnly => found.read_only.push(real),
        EntryProtection::RunsCode => found.runs_code.push(real),
        EntryProtection::Watched => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{Bundle, Context, Enforcer, Layer, Sandbox, Scope};
    use crate::protocol::Mode;

    fn marks(root: &Path) -> ProtectionRules {
        let text =
            "schema_version = 1\n[capabilities.\"File.Read\"]\nblocked_paths = [\"**/.env\"]\n[capabilities.\"Shell.Exec\"]\n";
        let bundle = Bundle::parse(text, "policy.toml").expect("parses");
        let (roots, home) = (vec![root.to_owned()], PathBuf::from("/home/user"));
        let context = Context { roots, home, mode: Mode::Ask, sandbox: Sandbox::Present, own: Vec::new(), skills: Vec::new() };
        let enforcer = Enforcer::new(vec![Layer::new(Scope::User, bundle)], context);
        enforcer.sandbox_requirements(&[], jiff::Timestamp::UNIX_EPOCH).marks
    }

    fn tree() -> tempfile::TempDir {
        let tree = tempfile::tempdir().expect("a directory");
        for directory in ["a/.git/hooks", "a/b/.vscode", "node_modules/x/.vscode", "target/.git", ".git/modules/x/.git"] {
            std::fs::create_dir_all(tree.path().join(directory)).expect("made");
        }
        for file in ["a/.env", "a/b/.mcp.json", "a/plain"] {
            std::fs::write(tree.path().join(file), "x").expect("written");
        }
        tree
    }

    #[test]
    fn protected_paths_are_found_at_any_depth_and_not_searched_further() {
        let tree = tree();
        let root = tree.path().canonicalize().expect("real");
        let mut found = walk(std::slice::from_ref(&root), &marks(&root), &[], MAX_ENTRIES, &mut DirectoryCache::new());
        found.read_only.sort();
        let at = |names: &[&str]| names.iter().map(|name| root.join(name)).collect::<Vec<_>>();
        assert_eq!(found.read_only, at(&[".git", "a/.git", "a/b/.mcp.json", "a/b/.vscode"]));
        assert_eq!(found.hidden, at(&["a/.env"]));
        assert_eq!(found.repositories.len(), 2);
        assert_eq!(found.cut, None);
    }

    #[test]
    fn writable_directories_that_run_code_are_listed_and_searched() {
        let tree = tempfile::tempdir().expect("a directory");
        let root = tree.path().canonicalize().expect("real");
        for directory in [".husky/.vscode", "a/.venv/bin", "a/.zed", "real"] {
            std::fs::create_dir_all(root.join(directory)).expect("made");
        }
        std::os::unix::fs::symlink("../real", root.join("a/.cargo")).expect("linked");
        let served = std::os::unix::net::UnixListener::bind(root.join("a/.bsp")).expect("bound");
        let mut found = walk(std::slice::from_ref(&root), &marks(&root), &[], MAX_ENTRIES, &mut DirectoryCache::new());
        found.watched.sort();
        let at = |names: &[&str]| names.iter().map(|name| root.join(name)).collect::<Vec<_>>();
        let watched = [".husky", ".husky/.vscode", "a/.bsp", "a/.cargo", "a/.venv/bin", "a/.zed"];
        assert_eq!(found.watched, at(&watched), "a link by its own name");
        assert_eq!((found.read_only, found.runs_code), (at(&[".husky/.vscode"]), at(&["a/.zed"])));
        assert_eq!(found.sockets, at(&["a/.bsp"]), "a socket is hidden whatever its name is");
        drop(served);
    }

    #[test]
    fn truncated_scans_are_reported() {
        let tree = tree();
        let root = tree.path().canonicalize().expect("real");
        assert!(walk(std::slice::from_ref(&root), &marks(&root), &[], 3, &mut DirectoryCache::new()).cut.is_some());
    }

    #[test]
    fn newly_created_protected_paths_are_reported() {
        let tree = tree();
        let root = tree.path().canonicalize().expect("real");
        let survey = ProtectedScan::new(vec![root.clone()], marks(&root), Vec::new());
        let before = survey.now();
        assert_eq!(survey.new_paths(&before), Vec::<PathBuf>::new());
        std::fs::create_dir_all(root.join("a/new/.git/hooks")).expect("made");
        assert_eq!(survey.new_paths(&before), [root.join("a/new/.git")]);
        assert_eq!(survey.new_paths(&survey.now()), Vec::<PathBuf>::new());
    }

    #[test]
    fn scan_results_are_cached() {
        let tree = tree();
        let root = tree.path().canonicalize().expect("real");
        let survey = ProtectedScan::new(vec![root.clone()], marks(&root), Vec::new());
        let first = survey.now();
        assert!(Arc::ptr_eq(&first, &survey.now()));
    }

    #[test]
    fn only_changed_directories_are_listed_again() {
        let tree = tree();
        let root = tree.path().canonicalize().expect("real");
        let (marks, mut seen) = (marks(&root), DirectoryCache::new());
        let first = walk(std::slice::from_ref(&root), &marks, &[], MAX_ENTRIES, &mut seen);
        // Directories not mentioned here are not found.
        let listed = |name: &str, kept: Vec<ProtectedEntry>, below: &[&str]| {
            let path = root.join(name);
            let stamp = DirectoryStamp::read(&path).expect("there");
            let below = below.iter().map(OsString::from).collect();
            (path, CachedListing { stamp, entries: 1, kept, below, ..CachedListing::default() })
        };
        let git = ProtectedEntry { name: ".git".into(), kept: EntryProtection::ReadOnly, is_link: false };
        seen = DirectoryCache::new();
        seen.extend([listed("", vec![git.clone()], &["a"]), listed("a", vec![git], &[])]);
        let again = walk(std::slice::from_ref(&root), &marks, &[], MAX_ENTRIES, &mut seen);
        assert_eq!(again.read_only, [root.join(".git"), root.join("a/.git")]);
        let (path, mut earlier) = listed("a", Vec::new(), &[]);
        earlier.stamp = earlier.stamp.earlier();
        seen = DirectoryCache::new();
        seen.insert(path, earlier);
        let mut changed = walk(std::slice::from_ref(&root), &marks, &[], MAX_ENTRIES, &mut seen);
        let mut all = first.read_only.clone();
        changed.read_only.sort();
        all.sort();
        assert_eq!((changed.read_only, changed.hidden), (all, first.hidden));
    }

    #[test]
    fn sockets_are_found_in_otherwise_unscanned_directories() {
        let tree = tree();
        let root = tree.path().canonicalize().expect("real");
        let aside = tempfile::tempdir().expect("a directory");
        let places = [root.join("a/s"), root.join("target/s"), root.join("node_modules/x/s"), aside.path().join("s")];
        let served = places.each_ref().map(|place| std::os::unix::net::UnixListener::bind(place).expect("bound"));
        let outside = [SocketSearch::entire(aside.path().to_owned())];
        let (marks, mut seen) = (marks(&root), DirectoryCache::new());
        for _ in 0..2 {
            let mut found = walk(std::slice::from_ref(&root), &marks, &outside, MAX_ENTRIES, &mut seen).sockets;
            found.sort();
            let mut wanted = places.to_vec();
            wanted.sort();
            assert_eq!(found, wanted);
        }
        drop(served);
    }

    #[test]
    fn toolchains_are_searched_for_sockets_only_near_the_top() {
        let toolchain = tempfile::tempdir().expect("a directory");
        std::fs::create_dir_all(toolchain.path().join("a/b/c")).expect("made");
        let [near, deep] = ["a/b/s", "a/b/c/s"].map(|name| toolchain.path().join(name));
        let served = [&near, &deep].map(|place| std::os::unix::net::UnixListener::bind(place).expect("bound"));
        let search = SocketSearch::toolchain(toolchain.path().to_owned());
        let found = walk(&[], &ProtectionRules::default(), &[search], MAX_ENTRIES, &mut DirectoryCache::new());
        assert_eq!(found.sockets, [near]);
        drop(served);
    }
}
