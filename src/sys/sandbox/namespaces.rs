//! Creates the sandbox's namespaces and mounts the visible paths in them.

use super::disk_quota::LayerDirectories;
use super::layout::{Layout, PrivatePaths, build_layout};
use super::mount_plan::{cover, during};
use super::placeholders::{ReservedPlaceholders, reserve};
use super::{Confinement, NetworkAccess, devices, diagnostics, network, sockets};
use nix::errno::Errno;
use nix::sys::prctl;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::waitpid;
use nix::unistd::{Pid, getegid, geteuid, pipe2};
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// Role of this process after it has forked.
pub(in crate::sys) enum ForkSide {
    /// The outer process, which waits for the inner one and cleans up.
    Outside(Outside),
    /// The first process in the namespaces, which still sees the whole file system.
    Inside(Inside),
}

pub(in crate::sys) struct Outside {
    pub(in crate::sys) first: Pid,
    reserved: ReservedPlaceholders,
}

impl Outside {
    /// Removes the placeholders. Must be called once the first process and all others in the namespaces have ended.
    pub(in crate::sys) fn clean_up(self) {
        self.reserved.release();
    }
}

pub(in crate::sys) struct Inside {
    layout: Layout,
    links: Vec<(PathBuf, PathBuf)>,
    /// Whether mapping the user succeeded.
    mapped: io::Result<()>,
}

/// Forks into the namespaces that `confinement` requires. The calling process must be single-threaded.
pub(in crate::sys) fn enter(confinement: &Confinement) -> Result<ForkSide, String> {
    let (built_in, mut links) = built_in_paths();
    links.extend(confinement.links.iter().cloned());
    let mut layout = build_layout(confinement, &built_in)?;
    let reserved = reserve(&mut layout)?;
    let (uid, gid) = (geteuid().as_raw(), getegid().as_raw());
    let ids = IdMap::current();
    let (wait, go) = pipe2(nix::fcntl::OFlag::O_CLOEXEC).map_err(|errno| during("creating a pipe")(errno.into()))?;
    let forked = match fork_into(namespaces(confinement)) {
        Ok(forked) => forked,
        Err(error) => {
            reserved.release();
            return Err(diagnostics::no_namespaces(&error));
        }
    };
    let Some(first) = forked else {
        drop((go, reserved));
        // If the outer process ends, this process and all others are killed.
        let tied = prctl::set_pdeathsig(Signal::SIGKILL).is_ok();
        if !tied || File::from(wait).read_exact(&mut [0]).is_err() {
            std::process::exit(1);
        }
        let mapped = if ids.by_outside { Ok(()) } else { map_own(uid, gid) };
        return Ok(ForkSide::Inside(Inside { layout, links, mapped }));
    };
    drop(wait);
    let mapped = ids.write(first).map_err(during("mapping users"));
    if mapped.is_ok() && File::from(go).write_all(&[1]).is_ok() {
        return Ok(ForkSide::Outside(Outside { first, reserved }));
    }
    let _ = kill(first, Signal::SIGKILL);
    let _ = waitpid(first, None);
    reserved.release();
    Err(mapped.err().unwrap_or_else(|| "the first process ended early".to_owned()))
}

impl Inside {
    /// Restricts the file system to what the command may see. Returns the layer directories.
    pub(in crate::sys) fn set_up(self, confinement: &Confinement) -> Result<LayerDirectories, String> {
        self.mapped.map_err(during("mapping users"))?;
        let layers = cover(confinement, &self.layout, &self.links)?;
        let room = LayerDirectories::new(layers, confinement).map_err(during("checking free disk space"))?;
        if confinement.network == NetworkAccess::Proxied {
            network::bring_up_loopback().map_err(during("bringing up the loopback interface"))?;
        }
        Ok(room)
    }
}

fn namespaces(confinement: &Confinement) -> libc::c_int {
    let network = if confinement.network == NetworkAccess::Proxied { libc::CLONE_NEWNET } else { 0 };
    libc::CLONE_NEWUSER | libc::CLONE_NEWPID | libc::CLONE_NEWNS | libc::CLONE_NEWIPC | libc::CLONE_NEWUTS | network
}

/// Forks into new namespaces. Returns the child's process ID in the parent, and `None` in the child. The calling
/// process must be single-threaded.
#[expect(unsafe_code, reason = "no safe call forks into namespaces")]
pub(in crate::sys) fn fork_into(namespaces: libc::c_int) -> io::Result<Option<Pid>> {
    let flags = libc::c_long::from(namespaces | libc::SIGCHLD);
    // SAFETY: this process has one thread, so the child may continue as after a plain `fork`: no other thread holds a
    // lock.
    match unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) } {
        -1 => Err(Errno::last().into()),
        0 => Ok(None),
        pid => Ok(Some(Pid::from_raw(pid as i32))),
    }
}

/// User and group mappings. Every ID that this user is allowed to map is mapped to itself.
struct IdMap {
    users: String,
    groups: String,
    /// Whether a process outside the namespaces must write the mappings, which is necessary to map more than the
    /// current user.
    by_outside: bool,
}

impl IdMap {
    fn current() -> Self {
        let same = |file| {
            let map = std::fs::read_to_string(file).unwrap_or_default();
            let rows = map.lines().filter_map(|row| {
                let mut fields = row.split_ascii_whitespace();
                let (first, count) = (fields.next()?, fields.nth(1)?);
                Some(format!("{first} {first} {count}\n"))
            });
            rows.collect::<String>()
        };
        Self { users: same("/proc/self/uid_map"), groups: same("/proc/self/gid_map"), by_outside: geteuid().is_root() }
    }

    fn write(&self, first: Pid) -> io::Result<()> {
        if self.by_outside {
            std::fs::write(format!("/proc/{first}/uid_map"), &self.users)?;
            std::fs::write(format!("/proc/{first}/gid_map"), &self.groups)?;
        }
        Ok(())
    }
}

/// Maps only the current user and group, each of them to itself.
pub(in crate::sys) fn map_own(uid: u32, gid: u32) -> io::Result<()> {
    std::fs::write("/proc/self/setgroups", "deny")?;
    std::fs::write("/proc/self/uid_map", format!("{uid} {uid} 1"))?;
    std::fs::write("/proc/self/gid_map", format!("{gid} {gid} 1"))
}

/// Returns the paths that are private to each command, along with the symlinks that these paths contain.
fn built_in_paths() -> (PrivatePaths, Vec<(PathBuf, PathBuf)>) {
    let real = |path: &str| std::fs::canonicalize(path).ok().filter(|path| path.is_dir());
    let mut own: Vec<_> = ["/tmp", "/var/tmp", "/dev/shm"].into_iter().filter_map(real).collect();
    own.extend(std::env::var("XDG_RUNTIME_DIR").ok().and_then(|path| real(&path)));
    own.push(PathBuf::from(format!("/run/user/{}", geteuid())));
    let mut empty: Vec<_> = ["/dev", "/run", "/var/run"].into_iter().filter_map(real).collect();
    empty.extend(devices::hidden_sysfs_paths());
    let resolver = std::fs::canonicalize("/etc/resolv.conf").ok();
    let built_in = PrivatePaths {
        own,
        empty,
        sockets: sockets::served_sockets(),
        shown: resolver.into_iter().collect(),
        devices: devices::NODES.iter().map(|name| Path::new("/dev").join(name)).collect(),
        terminals: vec![PathBuf::from("/dev/pts")],
    };
    let mut links: Vec<_> = devices::LINKS.iter().map(|(name, to)| (Path::new("/dev").join(name), PathBuf::from(to))).collect();
    // On some systems, a symlink in this directory leads to all programs.
    let entries = std::fs::read_dir("/run").into_iter().flatten().flatten();
    links.extend(entries.filter_map(|entry| Some((entry.path(), std::fs::read_link(entry.path()).ok()?))));
    (built_in, links)
}
