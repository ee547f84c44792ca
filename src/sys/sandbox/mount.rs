//! Mounts as file descriptors. A mount is created or cloned, then restricted, and finally attached, so no path is
//! looked up twice.

use super::Persistence;
use nix::errno::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags, fsconfig_create, fsconfig_set_flag,
    fsconfig_set_string, fsmount, fsopen, move_mount, open_tree,
};
use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

/// Mount restriction flag, with the kernel's value: no writes.
pub(super) const READ_ONLY: u64 = 1;
pub(super) const NO_SETUID: u64 = 2;
pub(super) const NO_DEVICES: u64 = 4;
pub(super) const NO_PROGRAMS: u64 = 8;

/// Which mounts a restriction applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MountScope {
    This,
    /// The mount and all mounts below it.
    Below,
}

/// The kernel's `struct mount_attr`.
#[repr(C)]
struct MountAttributes {
    set: u64,
    clear: u64,
    propagation: u64,
    user_namespace: u64,
}

/// Clones the mount at `place`, including all mounts below it, without attaching the clone.
pub(super) fn clone(place: &impl AsFd) -> io::Result<OwnedFd> {
    clone_entry(place, c"")
}

/// Clones an entry of the directory `place`. If the entry is a symlink, it is not followed.
pub(super) fn clone_entry(place: &impl AsFd, name: &CStr) -> io::Result<OwnedFd> {
    let how = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_RECURSIVE
        | OpenTreeFlags::AT_EMPTY_PATH
        | OpenTreeFlags::AT_SYMLINK_NOFOLLOW;
    Ok(open_tree(place, name, how)?)
}

/// Attaches a mount on top of `place`.
pub(super) fn attach(mount: &impl AsFd, place: &impl AsFd) -> io::Result<()> {
    attach_entry(mount, place, c"")
}

/// Attaches a mount on top of an entry of the directory `place`.
pub(super) fn attach_entry(mount: &impl AsFd, place: &impl AsFd, name: &CStr) -> io::Result<()> {
    let how = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    Ok(move_mount(mount, c"", place, name, how)?)
}

/// Adds restrictions to a mount.
pub(super) fn limit(mount: &impl AsFd, limits: u64, reach: MountScope) -> io::Result<()> {
    change(mount, &MountAttributes { set: limits, clear: 0, propagation: 0, user_namespace: 0 }, reach)
}

/// Makes a mount private: later mounts made elsewhere do not appear in it, and mounts made in it do not appear
/// elsewhere.
pub(super) fn keep_apart(mount: &impl AsFd) -> io::Result<()> {
    change(mount, &MountAttributes { set: 0, clear: 0, propagation: libc::MS_PRIVATE, user_namespace: 0 }, MountScope::Below)
}

#[expect(unsafe_code, reason = "no crate has a safe call for it")]
fn change(mount: &impl AsFd, attributes: &MountAttributes, reach: MountScope) -> io::Result<()> {
    let reach = if reach == MountScope::Below { libc::AT_RECURSIVE } else { 0 };
    // SAFETY: the path is NUL-terminated, and the structure and its size are those of the kernel. Both outlive the
    // call.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_fd().as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH | reach,
            std::ptr::from_ref(attributes),
            size_of::<MountAttributes>(),
        )
    };
    if result == 0 { Ok(()) } else { Err(Errno::last().into()) }
}

/// Creates a new file system. Options with an empty value are flags.
pub(super) fn make(kind: &CStr, options: &[(&str, &str)], limits: u64) -> io::Result<OwnedFd> {
    let system = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (name, value) in options {
        if value.is_empty() {
            fsconfig_set_flag(&system, *name)?;
        } else {
            fsconfig_set_string(&system, *name, *value)?;
        }
    }
    fsconfig_create(&system)?;
    let flags = [
        (READ_ONLY, MountAttrFlags::MOUNT_ATTR_RDONLY),
        (NO_SETUID, MountAttrFlags::MOUNT_ATTR_NOSUID),
        (NO_DEVICES, MountAttrFlags::MOUNT_ATTR_NODEV),
        (NO_PROGRAMS, MountAttrFlags::MOUNT_ATTR_NOEXEC),
    ];
    let flags = flags.into_iter().filter(|(limit, _)| limits & limit != 0).map(|(_, flag)| flag).collect();
    Ok(fsmount(&system, FsMountFlags::FSMOUNT_CLOEXEC, flags)?)
}

/// Mounts `lower` in such a way that all writes go to `upper`. The descriptors are looked up in the `/proc` that is
/// currently mounted.
///
/// With `Persistence::Process`, the mount never syncs to disk: neither at the command's request, nor when it is
/// unmounted, which would write out the whole file system that contains `upper`. For this purpose, the kernel leaves a
/// mark in `work`, and it refuses to mount the same directories again until the mark is removed.
pub(super) fn layer(lower: &impl AsFd, upper: &impl AsFd, work: &impl AsFd, persistence: Persistence) -> io::Result<OwnedFd> {
    let [lower, upper, work] =
        [lower.as_fd(), upper.as_fd(), work.as_fd()].map(|place| format!("/proc/self/fd/{}", place.as_raw_fd()));
    let mut options =
        vec![("lowerdir", lower.as_str()), ("upperdir", &upper), ("workdir", &work), ("userxattr", ""), ("index", "off")];
    if persistence == Persistence::Process {
        options.push(("volatile", ""));
    }
    make(c"overlay", &options, NO_SETUID | NO_DEVICES)
}
