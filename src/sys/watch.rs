//! Watches a few files for changes. Reading the files causes no events.

use nix::errno::Errno;
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify, InotifyEvent, WatchDescriptor};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Time without events after which a change is considered complete, since editors write a file in several steps.
const DEBOUNCE: Duration = Duration::from_millis(60);
/// Maximum number of further events to wait for, in case a program never stops writing. Also the maximum number of
/// attempts to set up the watches while files are changing.
const TIMEOUT: usize = 20;
/// Number of symlinks that may be followed before a path is considered a loop.
const MAX_LINKS: usize = 40;
/// Directory events that may indicate that a file has changed.
const CHANGES: AddWatchFlags = AddWatchFlags::IN_CREATE
    .union(AddWatchFlags::IN_CLOSE_WRITE)
    .union(AddWatchFlags::IN_DELETE)
    .union(AddWatchFlags::IN_MOVED_FROM)
    .union(AddWatchFlags::IN_MOVED_TO)
    .union(AddWatchFlags::IN_DELETE_SELF)
    .union(AddWatchFlags::IN_MOVE_SELF)
    .union(AddWatchFlags::IN_ONLYDIR);

pub(crate) struct Watch {
    queue: AsyncFd<Queue>,
    files: Vec<PathBuf>,
    /// Directories whose entries are all watched.
    whole: Vec<PathBuf>,
    /// The files themselves, along with the symlinks on their paths and the targets of those symlinks.
    names: BTreeSet<PathBuf>,
    directories: BTreeMap<WatchDescriptor, PathBuf>,
}

struct Queue(Inotify);

impl AsRawFd for Queue {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }
}

impl Watch {
    /// Watches files by watching their directories, because editors write a new file and then rename it.
    #[cfg(test)]
    pub(crate) fn new(files: Vec<PathBuf>) -> io::Result<Self> {
        Self::with_directories(files, Vec::new())
    }

    /// Watches files, as well as every entry of the directories `whole`.
    pub(crate) fn with_directories(files: Vec<PathBuf>, whole: Vec<PathBuf>) -> io::Result<Self> {
        let queue = Inotify::init(InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK)?;
        let queue = register_queue(Queue(queue))?;
        let mut watch = Self { queue, files, whole, names: BTreeSet::new(), directories: BTreeMap::new() };
        watch.arm();
        Ok(watch)
    }

    /// Waits for a change, and then until no further events arrive.
    pub(crate) async fn wait_for_change(&mut self) -> io::Result<()> {
        self.event().await?;
        for _ in 0..TIMEOUT {
            match tokio::time::timeout(DEBOUNCE, self.event()).await {
                Ok(event) => event?,
                Err(_quiet) => break,
            }
        }
        // A missing directory may exist now, and a symlink may have a new target.
        self.arm();
        Ok(())
    }

    /// Waits for the next event that affects one of the watched files.
    async fn event(&self) -> io::Result<()> {
        loop {
            let mut ready = self.queue.readable().await?;
            match ready.try_io(|queue| queue.get_ref().0.read_events().map_err(io::Error::from)) {
                Ok(events) => {
                    if events?.iter().any(|event| self.concerns(event)) {
                        return Ok(());
                    }
                }
                Err(_nothing_there) => {}
            }
        }
    }

    fn concerns(&self, event: &InotifyEvent) -> bool {
        if event.mask.contains(AddWatchFlags::IN_Q_OVERFLOW) {
            return true;
        }
        let Some(directory) = self.directories.get(&event.wd) else { return false };
        if self.names.contains(directory) && self.whole.iter().any(|whole| links_on_path(whole).contains(directory)) {
            return true;
        }
        let path = event.name.as_ref().map_or_else(|| directory.clone(), |name| directory.join(name));
        self.names.iter().any(|name| name.starts_with(&path))
    }

    fn arm(&mut self) {
        // If anything changes while the watches are set up, they are set up again.
        for _ in 0..TIMEOUT {
            let before = std::mem::take(&mut self.names);
            let directories = self.directories.len();
            self.arm_once();
            if self.names == before && self.directories.len() == directories {
                return;
            }
        }
    }

    fn arm_once(&mut self) {
        self.names = self.files.iter().chain(&self.whole).flat_map(|file| links_on_path(file)).collect();
        // If a directory is missing, the closest existing directory above it reports its creation.
        let there = |file: &PathBuf| file.ancestors().skip(1).find(|directory| directory.is_dir()).map(Path::to_owned);
        let mut wanted: BTreeSet<PathBuf> = self.names.iter().filter_map(there).collect();
        wanted.extend(self.whole.iter().filter_map(|whole| whole.canonicalize().ok()).filter(|whole| whole.is_dir()));
        let queue = &self.queue.get_ref().0;
        let mut directories = BTreeMap::new();
        for directory in wanted {
            match queue.add_watch(&directory, CHANGES) {
                Ok(watch) => drop(directories.insert(watch, directory)),
                Err(error) => tracing::warn!(%error, directory = %directory.display(), "cannot watch the directory"),
            }
        }
        for old in self.directories.keys().filter(|old| !directories.contains_key(*old)) {
            // For a deleted directory, the kernel has already removed the watch.
            if let Err(error) = queue.rm_watch(*old)
                && error != Errno::EINVAL
            {
                tracing::warn!(%error, "cannot stop watching a directory");
            }
        }
        self.directories = directories;
    }
}

/// Returns the file, its real path, and every symlink on its path. If any of these changes, the file has changed.
fn links_on_path(file: &Path) -> BTreeSet<PathBuf> {
    let parts = |path: &Path| path.components().map(|part| part.as_os_str().to_owned()).collect::<Vec<_>>();
    let mut found = BTreeSet::from([file.to_owned()]);
    let mut left = parts(file);
    left.reverse();
    let mut real = PathBuf::new();
    let mut links = 0;
    while let Some(part) = left.pop() {
        if part == ".." {
            real.pop();
            continue;
        }
        let path = real.join(part);
        match std::fs::read_link(&path) {
            Ok(target) if links < MAX_LINKS => {
                links += 1;
                left.extend(parts(&target).into_iter().rev());
                found.insert(path);
            }
            // For an absolute part, `join` replaces everything before it.
            Ok(_) | Err(_) => real = path,
        }
    }
    found.insert(real);
    found
}

#[expect(unsafe_code, reason = "the safe function requires a type that owns its descriptor")]
fn register_queue(queue: Queue) -> io::Result<AsyncFd<Queue>> {
    // SAFETY: the queue owns its descriptor, always returns the same one, and closes it only when it is dropped.
    Ok(unsafe { AsyncFd::register_with_interest(queue, Interest::READABLE)? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use tempfile::TempDir;

    /// Returns whether a change is reported in time.
    async fn is_reported(watch: &mut Watch) -> bool {
        tokio::time::timeout(Duration::from_secs(20), watch.wait_for_change()).await.is_ok_and(|told| told.is_ok())
    }

    #[tokio::test]
    async fn every_kind_of_file_change_is_reported() {
        let dir = TempDir::new().unwrap();
        let (root, other) = (dir.path().canonicalize().unwrap(), TempDir::new().unwrap());
        let file = root.join("later/policy.toml");
        let mut watch = Watch::new(vec![file.clone()]).unwrap();
        fs::create_dir(root.join("later")).unwrap();
        assert!(is_reported(&mut watch).await, "its directory was created");
        fs::write(&file, "one").unwrap();
        assert!(is_reported(&mut watch).await, "written");
        fs::write(root.join("later/new"), "two").unwrap();
        fs::rename(root.join("later/new"), &file).unwrap();
        assert!(is_reported(&mut watch).await, "renamed over");
        fs::write(other.path().join("real"), "three").unwrap();
        fs::remove_file(&file).unwrap();
        std::os::unix::fs::symlink(other.path().join("real"), &file).unwrap();
        assert!(is_reported(&mut watch).await, "replaced by a symlink");
        fs::write(other.path().join("real"), "four").unwrap();
        assert!(is_reported(&mut watch).await, "the target of the symlink changed");
        fs::remove_dir_all(root.join("later")).unwrap();
        assert!(is_reported(&mut watch).await, "gone");
        fs::create_dir(root.join("later")).unwrap();
        fs::write(&file, "five").unwrap();
        assert!(is_reported(&mut watch).await, "there again");
    }

    #[tokio::test]
    async fn a_new_target_of_any_link_in_the_path_is_reported() {
        let dir = TempDir::new().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for (name, text) in [("one", "1"), ("two", "2")] {
            fs::create_dir_all(root.join(name)).unwrap();
            fs::write(root.join(name).join("policy.toml"), text).unwrap();
        }
        let link = |to: &str, name: &str| std::os::unix::fs::symlink(to, root.join(name)).unwrap();
        fs::create_dir(root.join("config")).unwrap();
        link("one", "now");
        link("../now/policy.toml", "config/policy.toml");
        let mut watch = Watch::new(vec![root.join("config/policy.toml")]).unwrap();
        link("two", "next");
        fs::rename(root.join("next"), root.join("now")).unwrap();
        assert!(is_reported(&mut watch).await, "a symlink in the middle of the path");
        assert_eq!(fs::read_to_string(root.join("config/policy.toml")).unwrap(), "2");
        fs::write(root.join("two/policy.toml"), "3").unwrap();
        assert!(is_reported(&mut watch).await, "the new target of the symlink");
        link("circle", "circle");
        assert!(!links_on_path(&root.join("circle/x")).is_empty());
    }

    #[tokio::test]
    async fn after_many_changes_the_last_one_is_reported() {
        let dir = TempDir::new().unwrap();
        let file = dir.path().canonicalize().unwrap().join("policy.toml");
        let mut watch = Watch::new(vec![file.clone()]).unwrap();
        let writer = {
            let file = file.clone();
            std::thread::spawn(move || {
                for number in 0..500 {
                    fs::write(&file, number.to_string()).unwrap();
                }
            })
        };
        let mut seen = String::new();
        let mut looks = 0;
        while seen != "499" {
            assert!(is_reported(&mut watch).await, "the last change was lost; changes seen: {seen}");
            seen = fs::read_to_string(&file).unwrap();
            looks += 1;
        }
        writer.join().unwrap();
        assert!(looks < 250, "{looks} looks");
    }

    #[tokio::test]
    async fn reads_and_changes_to_sibling_files_are_not_reported() {
        let dir = TempDir::new().unwrap();
        let file = dir.path().canonicalize().unwrap().join("policy.toml");
        fs::write(&file, "one").unwrap();
        let mut watch = Watch::new(vec![file.clone()]).unwrap();
        fs::read(&file).unwrap();
        fs::write(dir.path().join("beside"), "x").unwrap();
        let events = watch.queue.get_ref().0.read_events().unwrap();
        assert!(events.iter().all(|event| !watch.concerns(event)), "{events:?}");
        fs::write(&file, "two").unwrap();
        assert!(is_reported(&mut watch).await);
    }
}
