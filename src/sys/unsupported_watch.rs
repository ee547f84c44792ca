//! Replacement for file watches on systems without inotify. Creating a watch fails, and callers do without it.

use std::io;

fn unsupported() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, "aye can watch files only on Linux")
}

pub mod tree_watch {
    use std::collections::BTreeSet;
    use std::io;
    use std::path::{Path, PathBuf};

    /// A watch, which can never be created on this system.
    pub enum TreeWatch {}

    /// Paths that have changed since the last read.
    #[derive(Debug, Default, PartialEq, Eq)]
    pub struct TouchedPaths {
        pub files: BTreeSet<PathBuf>,
        pub directories: BTreeSet<PathBuf>,
        pub incomplete: bool,
    }

    impl TreeWatch {
        pub fn new() -> io::Result<Self> {
            Err(super::unsupported())
        }

        pub fn add(&mut self, _directory: &Path) -> io::Result<()> {
            match *self {}
        }

        pub fn directories(&self) -> usize {
            match *self {}
        }

        pub fn take_touched(&mut self) -> TouchedPaths {
            match *self {}
        }
    }
}

pub mod watch {
    use std::io;
    use std::path::PathBuf;

    /// A watch, which can never be created on this system.
    pub enum Watch {}

    impl Watch {
        pub fn with_directories(_files: Vec<PathBuf>, _whole: Vec<PathBuf>) -> io::Result<Self> {
            Err(super::unsupported())
        }

        #[expect(clippy::unused_async, reason = "the Linux implementation is async")]
        pub async fn wait_for_change(&mut self) -> io::Result<()> {
            match *self {}
        }
    }
}
