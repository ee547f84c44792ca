//! Records which directories in a tree have changed since the last read. No process is woken, because the kernel stores
//! the changes.

use nix::errno::Errno;
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify, WatchDescriptor};
use std::collections::{BTreeSet, HashMap};
use std::io;
use std::path::{Path, PathBuf};

const CHANGES: AddWatchFlags = AddWatchFlags::IN_CREATE
    .union(AddWatchFlags::IN_CLOSE_WRITE)
    .union(AddWatchFlags::IN_DELETE)
    .union(AddWatchFlags::IN_MOVED_FROM)
    .union(AddWatchFlags::IN_MOVED_TO)
    .union(AddWatchFlags::IN_ONLYDIR)
    .union(AddWatchFlags::IN_DONT_FOLLOW);
/// Maximum number of reads. Each one returns part of the kernel's queue, which is itself limited to fewer entries.
const MAX_READS: usize = 10_000;

pub(crate) struct TreeWatch {
    queue: Inotify,
    directories: HashMap<WatchDescriptor, PathBuf>,
}

/// Paths that have changed since the last read.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct TouchedPaths {
    pub files: BTreeSet<PathBuf>,
    /// New directories, which are not being watched yet.
    pub directories: BTreeSet<PathBuf>,
    /// Whether changes were lost, in which case all files must be checked.
    pub incomplete: bool,
}

impl TreeWatch {
    pub(crate) fn new() -> io::Result<Self> {
        let queue = Inotify::init(InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK)?;
        Ok(Self { queue, directories: HashMap::new() })
    }

    /// Watches one directory without its subdirectories. It is not an error if the directory does not exist.
    pub(crate) fn add(&mut self, directory: &Path) -> io::Result<()> {
        match self.queue.add_watch(directory, CHANGES) {
            Ok(watch) => drop(self.directories.insert(watch, directory.to_owned())),
            Err(Errno::ENOENT | Errno::ENOTDIR | Errno::ELOOP) => {}
            Err(errno) => return Err(errno.into()),
        }
        Ok(())
    }

    pub(crate) fn directories(&self) -> usize {
        self.directories.len()
    }

    /// Returns the recorded changes without blocking.
    pub(crate) fn take_touched(&mut self) -> TouchedPaths {
        let mut touched = TouchedPaths::default();
        for _ in 0..MAX_READS {
            let events = match self.queue.read_events() {
                Ok(events) => events,
                Err(Errno::EINTR) => continue,
                Err(Errno::EAGAIN) => return touched,
                Err(_) => break,
            };
            for event in events {
                if event.mask.contains(AddWatchFlags::IN_Q_OVERFLOW) {
                    touched.incomplete = true;
                } else if event.mask.contains(AddWatchFlags::IN_IGNORED) {
                    self.directories.remove(&event.wd);
                } else if let (Some(directory), Some(name)) = (self.directories.get(&event.wd), &event.name) {
                    let path = directory.join(name);
                    if event.mask.contains(AddWatchFlags::IN_ISDIR) {
                        // A directory that was moved away is still watched under its old name.
                        touched.incomplete |= event.mask.contains(AddWatchFlags::IN_MOVED_FROM);
                        if event.mask.intersects(AddWatchFlags::IN_CREATE | AddWatchFlags::IN_MOVED_TO) {
                            touched.directories.insert(path);
                        }
                    } else {
                        touched.files.insert(path);
                    }
                }
            }
        }
        touched.incomplete = true;
        touched
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn writes_creations_moves_and_deletions_are_reported_once_and_on_request() {
        let tree = tempfile::tempdir().unwrap();
        let root = tree.path().canonicalize().unwrap();
        fs::write(root.join("old"), "one").unwrap();
        fs::write(root.join("gone"), "one").unwrap();
        let mut watch = TreeWatch::new().unwrap();
        watch.add(&root).unwrap();
        watch.add(&root.join("never")).unwrap();
        assert_eq!((watch.directories(), watch.take_touched()), (1, TouchedPaths::default()));
        fs::read(root.join("old")).unwrap();
        assert_eq!(watch.take_touched(), TouchedPaths::default(), "reading is not a change");
        fs::write(root.join("old"), "two").unwrap();
        fs::write(root.join("new"), "").unwrap();
        fs::rename(root.join("new"), root.join("newer")).unwrap();
        fs::remove_file(root.join("gone")).unwrap();
        fs::create_dir(root.join("directory")).unwrap();
        let touched = watch.take_touched();
        let files = ["gone", "new", "newer", "old"].map(|name| root.join(name));
        assert_eq!(touched.files, BTreeSet::from(files));
        assert_eq!(touched.directories, BTreeSet::from([root.join("directory")]));
        assert!(!touched.incomplete);
        assert_eq!(watch.take_touched(), TouchedPaths::default());
    }
}
