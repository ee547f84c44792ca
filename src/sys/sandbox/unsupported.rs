//! Replacement for systems without namespaces, on which no namespace is entered and no layer is mounted.

use super::{Confinement, Probe, Tier};
use nix::unistd::Pid;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub(in crate::sys) const PROBE: &str = "probe";
pub(in crate::sys) const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Reports that sandboxing is not supported.
pub fn probe(_program: &Path, _roots: &[PathBuf], _data_directory: &Path) -> Probe {
    let missing = vec!["aye can run commands only on Linux; run it there, or in a container".to_owned()];
    Probe { tier: Tier::Bare, missing, upper_base: None }
}

/// Returns no directories, because there are no views on this system.
pub fn abandoned_bases(_data_directory: &Path) -> Vec<PathBuf> {
    Vec::new()
}

/// Returns `true`, because the path rules block all sockets.
pub fn is_served(_path: &Path) -> bool {
    true
}

/// Returns an error, because there is no helper that could probe this system.
pub(in crate::sys) fn answer_probe() -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// A layer over a directory. It can never exist on this system.
#[derive(Debug)]
pub struct ProcessLayer(std::convert::Infallible);

impl ProcessLayer {
    /// Returns an error, because layers are not supported on this system.
    pub(crate) fn mount_over(_directory: &Path, _base: &Path, _persistence: super::Persistence) -> Result<Self, String> {
        Err("copy-on-write views need Linux".to_owned())
    }

    pub(crate) fn unmount(self) -> io::Result<crate::sys::overlay::Changes> {
        match self.0 {}
    }
}

/// Returns an error, because layers are not supported on this system.
pub(crate) fn read_layer(_directory: &Path, _base: &Path) -> io::Result<crate::sys::overlay::Changes> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Returns the path that a layer would have.
pub(crate) fn layer_path(base: &Path, relative: &Path) -> PathBuf {
    base.join("upper").join(relative)
}

pub(in crate::sys) enum ForkSide {
    Outside(Outside),
    Inside(Inside),
}

pub(in crate::sys) struct Outside {
    pub(in crate::sys) first: Pid,
}

impl Outside {
    pub(in crate::sys) fn clean_up(self) {}
}

pub(in crate::sys) struct Inside;

impl Inside {
    pub(in crate::sys) fn set_up(self, _confinement: &Confinement) -> Result<LayerDirectories, String> {
        Err(NO_NAMESPACES.to_owned())
    }
}

const NO_NAMESPACES: &str = "this system has no namespaces";

pub(in crate::sys) fn enter(_confinement: &Confinement) -> Result<ForkSide, String> {
    Err(NO_NAMESPACES.to_owned())
}

/// Why a command must not write any more data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::sys) enum Excess {
    Disk,
    Layer,
}

/// Empty type, because there are no layers.
#[derive(Default)]
pub(in crate::sys) struct LayerDirectories;

impl LayerDirectories {
    pub(in crate::sys) fn is_watched(&self) -> bool {
        false
    }

    pub(in crate::sys) fn excess(&mut self) -> io::Result<Option<Excess>> {
        Ok(None)
    }
}

pub(in crate::sys) mod filter {
    use crate::sys::sandbox::Confinement;
    use std::io;
    use std::net::SocketAddr;
    use std::os::fd::BorrowedFd;

    /// Empty type, because no connections are recorded.
    #[derive(Debug, Default)]
    pub(in crate::sys) struct ConnectionRecorder;

    impl ConnectionRecorder {
        pub(in crate::sys) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
            None
        }

        pub(in crate::sys) fn handle_attempt(&mut self) {}

        pub(in crate::sys) fn addresses(&self) -> Vec<SocketAddr> {
            Vec::new()
        }
    }

    pub(in crate::sys) fn apply(_confinement: &Confinement) -> io::Result<ConnectionRecorder> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
