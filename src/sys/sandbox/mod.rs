//! Sandbox of a command: writable places, hidden places, the network, limits.

#[cfg(target_os = "linux")]
mod devices;
#[cfg(target_os = "linux")]
mod diagnostics;
#[cfg(target_os = "linux")]
mod disk_quota;
#[cfg(target_os = "linux")]
pub(in crate::sys) mod filter;
mod kernel;
#[cfg(target_os = "linux")]
mod layout;
#[cfg(target_os = "linux")]
mod mount;
#[cfg(target_os = "linux")]
mod mount_plan;
#[cfg(target_os = "linux")]
mod namespaces;
#[cfg(target_os = "linux")]
mod network;
#[cfg(target_os = "linux")]
mod placeholders;
mod places;
#[cfg(target_os = "linux")]
mod probe;
#[cfg(any(test, target_os = "macos"))]
pub(in crate::sys) mod seatbelt;
#[cfg(target_os = "linux")]
mod sockets;
#[cfg(test)]
mod tests;
#[cfg(not(target_os = "linux"))]
mod unsupported;

#[cfg(target_os = "linux")]
pub(in crate::sys) use disk_quota::{LOOK_EVERY, Room};
pub use kernel::{Kernel, UserNamespaces};
#[cfg(target_os = "linux")]
pub(in crate::sys) use namespaces::{Side, enter, fork_into, map_own};
#[cfg(target_os = "linux")]
pub(in crate::sys) use probe::{PROBE, answer_probe};
#[cfg(target_os = "linux")]
pub use probe::{left_bases, probe};
#[cfg(target_os = "linux")]
pub use sockets::is_served;
#[cfg(not(target_os = "linux"))]
pub(in crate::sys) use unsupported::{LOOK_EVERY, PROBE, Room, Side, answer_probe, enter, filter};
#[cfg(not(target_os = "linux"))]
pub use unsupported::{is_served, left_bases, probe};

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// What this system can do for commands in some places.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probe {
    pub tier: Tier,
    /// What lacks for more, why, and how to get it.
    pub missing: Vec<String>,
    /// An existing private directory for what layers take; there with `Tier::Layers`.
    pub upper_base: Option<PathBuf>,
}

/// From nothing to a view in which a command may do as it likes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Tier {
    Bare,
    /// Rules on paths alone: Landlock, or what macOS has.
    Rules,
    Namespaces,
    /// And layers over the workspace.
    Layers,
}

/// How one command is held. All paths are absolute and real; nothing here is looked up again.
///
/// A command reads the file system but what is `hidden`, and of that what is `shown`. It writes only what is named. It has
/// its own `/tmp` and `/dev`, and sees only its own processes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confinement {
    pub strength: Strength,
    /// The workspace and what was added to it.
    pub roots: Vec<PathBuf>,
    pub view: View,
    /// More places that may be written. What does not exist is left out.
    pub writable: Vec<PathBuf>,
    /// Places in what may be written that may not; a missing one cannot be made.
    pub read_only: Vec<PathBuf>,
    /// Places in those that may be written all the same.
    pub reopened: Vec<PathBuf>,
    /// Files and directories that are seen empty.
    pub hidden: Vec<PathBuf>,
    /// Files and directories in those, and in a `/tmp` of the command's own, that are seen as they are.
    pub shown: Vec<PathBuf>,
    /// Symlinks in hidden places that are seen all the same, and their targets.
    pub links: Vec<(PathBuf, PathBuf)>,
    /// Directories of package managers: read as they are, written to a copy.
    pub caches: Vec<Layered>,
    /// Directories in hidden places that show the content of another directory, and write it.
    pub substitutes: Vec<Substitute>,
    pub network: NetworkAccess,
    pub limits: ResourceLimits,
}

impl Confinement {
    /// Only these places are written, for real, and nothing outside of them is opened, hidden or limited.
    pub fn of(strength: Strength, roots: Vec<PathBuf>) -> Self {
        Self {
            strength,
            roots,
            view: View::Real,
            writable: Vec::new(),
            read_only: Vec::new(),
            reopened: Vec::new(),
            hidden: Vec::new(),
            shown: Vec::new(),
            links: Vec::new(),
            caches: Vec::new(),
            substitutes: Vec::new(),
            network: NetworkAccess::Proxied,
            limits: ResourceLimits::default(),
        }
    }
}

/// With what it is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Strength {
    /// Landlock and seccomp, where the kernel makes no namespaces for this user.
    Landlock,
    /// Namespaces, and the others on top where the kernel has them.
    Namespaces,
}

/// What becomes of what it writes in the workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum View {
    /// Nothing can be written there.
    ReadOnly,
    /// It is real.
    Real,
    /// It goes to a copy, one for each root in their order.
    CopyOnWrite(Vec<Layered>),
}

/// A directory under a layer that takes the writes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layered {
    /// The directory, and where it is seen.
    pub directory: PathBuf,
    /// Existing and private directories on one file system, outside of every place that the command may see.
    pub upper: PathBuf,
    pub work: PathBuf,
}

/// A private directory that a command sees, and writes, at another path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Substitute {
    /// Where it is seen.
    pub directory: PathBuf,
    /// What is seen there. It holds a directory for each cache that is mounted below.
    pub content: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum NetworkAccess {
    /// Loopback of its own. What is told to use a proxy finds aye's there, which lets through what it is told to, or nothing.
    Proxied,
    /// Whatever the person can reach.
    Open,
}

/// For one process each, but `processes`, which is for all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ResourceLimits {
    pub processes: Option<u64>,
    pub memory_bytes: Option<u64>,
    pub file_bytes: Option<u64>,
    pub cpu_seconds: Option<u64>,
}
