//! A command's sandbox: writable and hidden paths, the network, and limits.

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

/// How long the changes in a layer must survive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Persistence {
    /// Until the process that mounted the layer ends. Data is never synced to disk.
    Process,
    /// Beyond a system crash. Data is synced like that of other files.
    Disk,
}

/// Degree to which this system supports sandboxing the probed directories.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Probe {
    pub tier: Tier,
    /// Reasons why support is limited, each with a remedy.
    pub missing: Vec<String>,
    /// Existing private directory to which layers write. Set for `Tier::Layers`.
    pub upper_base: Option<PathBuf>,
}

/// Levels of sandbox support, from none to a copy-on-write view.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Tier {
    Bare,
    /// Path rules only: Landlock, or the macOS sandbox.
    Rules,
    Namespaces,
    /// Namespaces, and layers over the workspace.
    Layers,
}

/// Confinement of one command. All paths are absolute with symlinks resolved, and they are not resolved again.
///
/// The command can read the whole file system except `hidden`, although `shown` remains readable. It can write only to
/// the listed paths. It has its own `/tmp` and `/dev`, and sees only its own processes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Confinement {
    pub strength: Backend,
    /// The workspace and its additional roots.
    #[serde(with = "crate::sys::overlay::name::list")]
    pub roots: Vec<PathBuf>,
    pub view: View,
    /// Additional writable paths. Paths that do not exist are ignored.
    #[serde(with = "crate::sys::overlay::name::list")]
    pub writable: Vec<PathBuf>,
    /// Read-only paths inside writable ones. If such a path does not exist, it cannot be created.
    #[serde(with = "crate::sys::overlay::name::list")]
    pub read_only: Vec<PathBuf>,
    /// Writable paths inside read-only ones. Writes to them change the real files even if the command sees a copy of
    /// the workspace.
    #[serde(with = "crate::sys::overlay::name::list")]
    pub reopened: Vec<PathBuf>,
    /// Files and directories that appear empty.
    #[serde(with = "crate::sys::overlay::name::list")]
    pub hidden: Vec<PathBuf>,
    /// Files and directories that are visible although they are inside hidden ones or inside the command's own `/tmp`.
    #[serde(with = "crate::sys::overlay::name::list")]
    pub shown: Vec<PathBuf>,
    /// Symlinks that are visible inside hidden directories, with their targets.
    #[serde(with = "crate::sys::overlay::name::pairs")]
    pub links: Vec<(PathBuf, PathBuf)>,
    /// Package managers' cache directories. They are read directly, but writes go to a copy.
    pub caches: Vec<LayeredDirectory>,
    /// Directories inside hidden ones that show the content of another directory, which also receives the writes.
    pub substitutes: Vec<Substitute>,
    pub network: NetworkAccess,
    pub limits: ResourceLimits,
}

impl Confinement {
    /// Creates a confinement in which the roots are writable, no other path is writable or hidden, and nothing is
    /// limited.
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

/// Mechanism that enforces the confinement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Backend {
    /// Landlock and seccomp, for kernels that do not let this user create namespaces.
    Landlock,
    /// Namespaces, plus Landlock and seccomp if the kernel supports them.
    Namespaces,
}

/// Effect that writes in the workspace have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum View {
    /// Writes fail.
    ReadOnly,
    /// Writes change the real files.
    Real,
    /// Writes go to copies: one for each root, in the same order.
    CopyOnWrite(Vec<LayeredDirectory>),
}

/// A private directory that the command sees, and writes to, at another path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Substitute {
    /// Path at which the command sees the directory.
    #[serde(with = "crate::sys::overlay::name")]
    pub directory: PathBuf,
    /// Directory that contains the content. It includes a directory for each cache that is mounted inside it.
    #[serde(with = "crate::sys::overlay::name")]
    pub content: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum NetworkAccess {
    /// A separate loopback interface, on which only aye's proxy, if it is running, can be contacted.
    Proxied,
    /// The same network that the user's own programs use.
    Open,
}

/// Limits for each process, except `processes` and `layer_bytes`, which apply to all of the command's processes
/// together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct ResourceLimits {
    pub processes: Option<u64>,
    pub memory_bytes: Option<u64>,
    pub file_bytes: Option<u64>,
    pub cpu_seconds: Option<u64>,
    /// Total size in bytes of the data that may be written to new layers.
    pub layer_bytes: Option<u64>,
}
