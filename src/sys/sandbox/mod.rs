//! Sandbox of a command: writable and hidden paths, the network, limits.

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
#[cfg(target_os = "linux")]
mod process_layer;
#[cfg(any(test, target_os = "macos"))]
pub(in crate::sys) mod seatbelt;
#[cfg(target_os = "linux")]
mod sockets;
#[cfg(test)]
mod tests;
#[cfg(not(target_os = "linux"))]
mod unsupported;

#[cfg(target_os = "linux")]
pub(in crate::sys) use disk_quota::{Excess, LOOK_EVERY, LayerDirectories};
pub(crate) use kernel::{Kernel, UserNamespaces};
#[cfg(target_os = "linux")]
pub(in crate::sys) use namespaces::{ForkSide, enter, fork_into, map_own};
#[cfg(target_os = "linux")]
pub(in crate::sys) use probe::{PROBE, answer_probe};
#[cfg(target_os = "linux")]
pub(crate) use probe::{abandoned_bases, probe};
#[cfg(target_os = "linux")]
pub(crate) use process_layer::{ProcessLayer, layer_path, read_layer};
#[cfg(target_os = "linux")]
pub(crate) use sockets::is_served;
#[cfg(not(target_os = "linux"))]
pub(in crate::sys) use unsupported::{Excess, ForkSide, LOOK_EVERY, LayerDirectories, PROBE, answer_probe, enter, filter};
#[cfg(not(target_os = "linux"))]
pub use unsupported::{ProcessLayer, abandoned_bases, is_served, probe};
#[cfg(not(target_os = "linux"))]
pub(crate) use unsupported::{layer_path, read_layer};

use super::overlay::LayeredDirectory;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Required lifetime of the changes in a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Persistence {
    /// As long as the process that mounted the layer: data is never synced to disk.
    Process,
    /// Beyond a crash of the system: data is synced like that of other files.
    Disk,
}

/// Sandbox support of this system for certain directories.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Probe {
    pub tier: Tier,
    /// Reasons why support is limited, with remedies.
    pub missing: Vec<String>,
    /// Existing private directory for the writes of layers; present with `Tier::Layers`.
    pub upper_base: Option<PathBuf>,
}

/// Levels of support, from none to a copy-on-write view.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Tier {
    Bare,
    /// Path rules only: Landlock, or the sandbox of macOS.
    Rules,
    Namespaces,
    /// Namespaces, and layers over the workspace.
    Layers,
}

/// Confinement of one command. All paths are absolute and real; no path is resolved again.
///
/// A command can read the whole file system except `hidden`, but including `shown`. It can write only to the listed
/// paths. It has its own `/tmp` and `/dev`, and sees only its own processes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Confinement {
    pub strength: Backend,
    /// The workspace and its additional roots.
    pub roots: Vec<PathBuf>,
    pub view: View,
    /// Additional writable paths. Those that do not exist are ignored.
    pub writable: Vec<PathBuf>,
    /// Read-only paths inside writable ones. Paths that do not exist cannot be created.
    pub read_only: Vec<PathBuf>,
    /// Writable paths inside read-only ones. Also in a copy, these are the real paths.
    pub reopened: Vec<PathBuf>,
    /// Files and directories that appear empty.
    pub hidden: Vec<PathBuf>,
    /// Visible files and directories inside hidden ones, and inside the command's own `/tmp`.
    pub shown: Vec<PathBuf>,
    /// Visible symlinks inside hidden directories, with their targets.
    pub links: Vec<(PathBuf, PathBuf)>,
    /// Cache directories of package managers. Reads use the real directory, writes go to a copy.
    pub caches: Vec<LayeredDirectory>,
    /// Directories inside hidden ones that show another directory's content, and write to it.
    pub substitutes: Vec<Substitute>,
    pub network: NetworkAccess,
    pub limits: ResourceLimits,
}

impl Confinement {
    /// Creates a confinement with these writable paths, in which no other path is writable, hidden or limited.
    pub(crate) fn new(strength: Backend, roots: Vec<PathBuf>) -> Self {
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

/// Mechanism of the confinement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Backend {
    /// Landlock and seccomp, for kernels that allow this user no namespaces.
    Landlock,
    /// Namespaces, plus Landlock and seccomp if the kernel supports them.
    Namespaces,
}

/// Effect of writes in the workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum View {
    /// Writes fail.
    ReadOnly,
    /// Writes change the real files.
    Real,
    /// Writes go to a copy, one for each root in order.
    CopyOnWrite(Vec<LayeredDirectory>),
}

/// Private directory that a command sees, and writes to, at another path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Substitute {
    /// Path at which the command sees the directory.
    pub directory: PathBuf,
    /// Directory with the content. It contains a directory for each cache that is mounted below it.
    pub content: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum NetworkAccess {
    /// A separate loopback interface. Programs that use a proxy find aye's proxy there, if it is running.
    Proxied,
    /// The user's network.
    Open,
}

/// Limits per process, except `processes` and `layer_bytes`, which apply to all processes together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct ResourceLimits {
    pub processes: Option<u64>,
    pub memory_bytes: Option<u64>,
    pub file_bytes: Option<u64>,
    pub cpu_seconds: Option<u64>,
    /// Total size of the data written to new layers, in bytes.
    pub layer_bytes: Option<u64>,
}
