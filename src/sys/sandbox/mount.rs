//! Mounts as descriptors: they are created or cloned, then restricted, and finally attached, so that no path is looked
//! up twice.

use super::Persistence;
use nix::errno::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags, fsconfig_create, fsconfig_set_flag,
    fsconfig_set_string, fsmount, fsopen, move_mount, open_tree,
};
use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

/// Restrictions of a mount, with the kernel's numbers.
pub(super) const READ_ONLY: u64 = 1;
pub(super) const NO_SETUID: u64 = 2;
pub(super) const NO_DEVICES: u64 = 4;
pub(super) const NO_PROGRAMS: u64 = 8;

/// Reach of a restriction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MountScope {
    This,
    /// Also applies to mounts below.
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

/// Clones the mount at `place` with all mounts below it, without attaching it.
pub(super) fn clone(place: &impl AsFd) -> io::Result<OwnedFd> {
    clone_entry(place, c"")
}

/// Clones an entry of the directory `place`. A symlink there is not followed.
pub(super) fn clone_entry(place: &impl AsFd, name: &CStr) -> io::Result<OwnedFd> {
    let how = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_RECURSIVE
        | OpenTreeFlags::AT_EMPTY_PATH
        | OpenTreeFlags::AT_SYMLINK_NOFOLLOW;
    Ok(open_tree(place, name, how)?)
}

/// Attaches a mount over `place`.
pub(super) fn attach(mount: &impl AsFd, place: &impl AsFd) -> io::Result<()> {
    attach_entry(mount, place, c"")
}

/// Attaches a mount over an entry of the directory `place`.
pub(super) fn attach_entry(mount: &impl AsFd, place: &impl AsFd, name: &CStr) -> io::Result<()> {
    let how = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    Ok(move_mount(mount, c"", place, name, how)?)
}

/// Restricts a mount further.
pub(super) fn limit(mount: &impl AsFd, limits: u64, reach: MountScope) -> io::Result<()> {
    change(mount, &MountAttributes { set: limits, clear: 0, propagation: 0, user_namespace: 0 }, reach)
}

/// Makes a mount private: mounts made elsewhere later do not appear in it, and mounts made in it do not appear
/// elsewhere.
pub(super) fn keep_apart(mount: &impl AsFd) -> io::Result<()> {
    change(mount, &MountAttributes { set: 0, clear: 0, propagation: libc::MS_PRIVATE, user_namespace: 0 }, MountScope::Below)
}

#[expect(unsafe_code, reason = "no crate has a safe call for it")]
fn change(mount: &impl AsFd, attributes: &MountAttributes, reach: MountScope) -> io::Result<()> {
    let reach = if reach == MountScope::Below { libc::AT_RECURSIVE } else { 0 };
    // SAFETY: the path is NUL-terminated, and the structure is the kernel's with its size; both outlive the call.
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

/// Creates a new file system. An option without a value is a flag.
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

/// Mounts `lower` so that all writes go to `upper`. The descriptors are looked up in the currently mounted `/proc`.
///
/// With `Persistence::Process`, the mount never syncs to disk, neither when the command requests it nor at its end,
/// when the whole file system of `upper` would be written. The kernel leaves a mark in `work` for this, and mounts the
/// pair again only without the mark.
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
