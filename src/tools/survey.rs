//! What lies in the workspace and is kept from commands although nobody named its place: nested repositories, `.vscode`
//! further down, files that a glob of the policy means. One bounded walk finds it, and is made again beside the work.

use crate::policy::{Kept, Marks};
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

/// Entries that are looked at.
const MOST_ENTRIES: usize = 200_000;
/// Places that are kept one by one: each is a mount of every command.
const MOST_PLACES: usize = 1_000;
/// In these programs keep what others made, and far too much of it.
const SKIPPED: &[&str] = &["node_modules", "target"];
/// In a larger workspace nobody waits after a command for what appeared in it.
const LOOKED_AT_AGAIN: usize = 20_000;
/// What was found earlier than this is looked for again while a command runs.
const STALE: Duration = Duration::from_secs(2);

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Found {
    pub hidden: Vec<PathBuf>,
    pub read_only: Vec<PathBuf>,
    /// The `.git` of repositories.
    pub repositories: Vec<PathBuf>,
    /// Why this is not all.
    pub cut: Option<String>,
    /// How many entries were looked at.
    entries: usize,
}

/// Looks, and remembers.
#[derive(Debug)]
pub(super) struct Survey {
    roots: Vec<PathBuf>,
    marks: Marks,
    latest: RwLock<Option<(Instant, Arc<Found>)>>,
    /// Held by who walks.
    walking: Mutex<()>,
}

impl Survey {
    pub(super) fn new(roots: Vec<PathBuf>, marks: Marks) -> Arc<Self> {
        Arc::new(Self { roots, marks, latest: RwLock::default(), walking: Mutex::default() })
    }

    /// What is known; waits only where nothing is known yet. What is old is looked for again beside it.
    pub(super) fn now(self: &Arc<Self>) -> Arc<Found> {
        if let Some((at, found)) = self.known() {
            if at.elapsed() > STALE {
                self.look_again();
            }
            return found;
        }
        let _walking = self.walking.lock().unwrap_or_else(PoisonError::into_inner);
        self.known().map_or_else(|| self.walk_now(), |(_, found)| found)
    }

    /// Walks in a thread of its own, unless one does.
    pub(super) fn look_again(self: &Arc<Self>) {
        let survey = Arc::clone(self);
        let walks = move || {
            if let Ok(_walking) = survey.walking.try_lock() {
                survey.walk_now();
            }
        };
        if let Err(error) = std::thread::Builder::new().name("survey".to_owned()).spawn(walks) {
            tracing::warn!(%error, "the workspace is not looked through again");
        }
    }

    /// What is kept now and was not known of `before`; waits for the walk, but not in a large workspace.
    pub(super) fn appeared(self: &Arc<Self>, before: &Found) -> Vec<PathBuf> {
        if before.cut.is_some() || before.entries > LOOKED_AT_AGAIN {
            self.look_again();
            return Vec::new();
        }
        let _walking = self.walking.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.walk_now();
        now.read_only.iter().filter(|place| !before.read_only.contains(place)).cloned().collect()
    }

    fn known(&self) -> Option<(Instant, Arc<Found>)> {
        self.latest.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn walk_now(&self) -> Arc<Found> {
        let found = Arc::new(walk(&self.roots, &self.marks, MOST_ENTRIES));
        *self.latest.write().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), Arc::clone(&found)));
        found
    }
}

/// Directories near the top first, so that what is left out lies deep.
fn walk(roots: &[PathBuf], marks: &Marks, most: usize) -> Found {
    let mut found = Found::default();
    let mut open: VecDeque<PathBuf> = roots.iter().cloned().collect();
    let mut seen = 0;
    while let Some(directory) = open.pop_front() {
        // What cannot be listed cannot be written by a command either, but for what it may enter and not list.
        let Ok(entries) = std::fs::read_dir(&directory) else { continue };
        for entry in entries.flatten() {
            seen += 1;
            if seen > most || found.hidden.len() + found.read_only.len() >= MOST_PLACES {
                let below = directory.display();
                found.cut = Some(format!(
                    "the workspace is too large to be looked through: nested `.git`, `.vscode` and the like, and what globs of the policy \
                     mean, are kept from commands only as far as they were found (up to `{below}`)"
                ));
                return found;
            }
            let (path, name) = (entry.path(), entry.file_name());
            let name = name.to_string_lossy();
            let Ok(kind) = entry.file_type() else { continue };
            match marks.of(&path, &name) {
                Some(kept) => keep(&mut found, &path, kept, &name, kind.is_symlink()),
                None if kind.is_dir() && !SKIPPED.contains(&&*name) => open.push_back(path),
                None => {}
            }
        }
    }
    found.entries = seen;
    found
}

fn keep(found: &mut Found, path: &Path, kept: Kept, name: &str, is_link: bool) {
    // A mount stands at what a link leads to.
    let Some(real) = (if is_link { path.canonicalize().ok() } else { Some(path.to_owned()) }) else { return };
    if name == ".git" && !is_link {
        found.repositories.push(real.clone());
    }
    match kept {
        Kept::Hidden => found.hidden.push(real),
        Kept::ReadOnly => found.read_only.push(real),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{Bundle, Context, Enforcer, Layer, Sandbox, Scope};
    use crate::protocol::Mode;

    fn marks(root: &Path) -> Marks {
        let text =
            "schema_version = 1\n[capabilities.\"File.Read\"]\nblocked_paths = [\"**/.env\"]\n[capabilities.\"Shell.Exec\"]\n";
        let bundle = Bundle::parse(text, "policy.toml").expect("parses");
        let (roots, home) = (vec![root.to_owned()], PathBuf::from("/home/user"));
        let context = Context { roots, home, mode: Mode::Ask, sandbox: Sandbox::Present, own: Vec::new() };
        let enforcer = Enforcer::new(vec![Layer::new(Scope::User, bundle)], context);
        enforcer.held_by(&[], jiff::Timestamp::UNIX_EPOCH).marks
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
    fn what_is_kept_is_found_at_any_depth_and_nothing_is_looked_for_in_it() {
        let tree = tree();
        let root = tree.path().canonicalize().expect("real");
        let mut found = walk(&[root.clone()], &marks(&root), MOST_ENTRIES);
        found.read_only.sort();
        let at = |names: &[&str]| names.iter().map(|name| root.join(name)).collect::<Vec<_>>();
        assert_eq!(found.read_only, at(&[".git", "a/.git", "a/b/.mcp.json", "a/b/.vscode"]));
        assert_eq!(found.hidden, at(&["a/.env"]));
        assert_eq!(found.repositories.len(), 2);
        assert_eq!(found.cut, None);
    }

    #[test]
    fn a_walk_that_is_cut_says_so() {
        let tree = tree();
        let root = tree.path().canonicalize().expect("real");
        assert!(walk(&[root.clone()], &marks(&root), 3).cut.is_some());
    }

    #[test]
    fn what_appeared_since_is_known_by_its_place() {
        let tree = tree();
        let root = tree.path().canonicalize().expect("real");
        let survey = Survey::new(vec![root.clone()], marks(&root));
        let before = survey.now();
        assert_eq!(survey.appeared(&before), Vec::<PathBuf>::new());
        std::fs::create_dir_all(root.join("a/new/.git/hooks")).expect("made");
        assert_eq!(survey.appeared(&before), [root.join("a/new/.git")]);
        assert_eq!(survey.appeared(&survey.now()), Vec::<PathBuf>::new());
    }

    #[test]
    fn what_was_found_once_is_known_without_waiting() {
        let tree = tree();
        let root = tree.path().canonicalize().expect("real");
        let survey = Survey::new(vec![root.clone()], marks(&root));
        let first = survey.now();
        assert!(Arc::ptr_eq(&first, &survey.now()));
    }
}
