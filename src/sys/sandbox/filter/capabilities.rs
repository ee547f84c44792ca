//! Capabilities of a command that runs as root. It retains those over files and its own processes, and loses those over
//! the machine.

use super::Backend;
use nix::errno::Errno;
use nix::unistd::geteuid;
use std::io;

/// Capabilities needed to install and unpack software and to switch users. `SYS_ADMIN` is not among them, because a
/// command could use it to unmount the sandbox.
const KEPT_BY_ROOT: [u32; 8] = [CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL, SETGID, SETUID, NET_BIND_SERVICE];
const CHOWN: u32 = 0;
const DAC_OVERRIDE: u32 = 1;
const FOWNER: u32 = 3;
const FSETID: u32 = 4;
const KILL: u32 = 5;
const SETGID: u32 = 6;
const SETUID: u32 = 7;
const NET_BIND_SERVICE: u32 = 10;

/// The kernel's `struct __user_cap_header_struct`.
#[repr(C)]
struct CapabilityHeader {
    version: u32,
    pid: i32,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Half {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

const VERSION_3: u32 = 0x2008_0522;

/// Removes all capabilities from the bounding set and from this process, except those that root needs to work with
/// files.
pub(super) fn keep_only_file_capabilities(strength: Backend) -> io::Result<()> {
    let kept: &[u32] = if geteuid().is_root() { &KEPT_BY_ROOT } else { &[] };
    clear_ambient();
    match cut_bounding_set(kept) {
        // Without namespaces, an ordinary user may not do this, but cannot gain capabilities anyway.
        Err(Errno::EPERM) if strength == Backend::Landlock && kept.is_empty() => {}
        other => other?,
    }
    let permitted = permitted_now()? & kept.iter().fold(0, |set, capability| set | 1 << capability);
    set(permitted)?;
    Ok(())
}

#[expect(unsafe_code, reason = "no safe call changes the ambient set")]
fn clear_ambient() {
    // SAFETY: the call takes no pointers. A kernel without the ambient set has nothing to clear.
    unsafe { libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) };
}

#[expect(unsafe_code, reason = "no safe call changes the bounding set")]
fn cut_bounding_set(kept: &[u32]) -> Result<(), Errno> {
    for capability in (0..64).filter(|capability| !kept.contains(capability)) {
        // SAFETY: the call takes no pointers.
        match unsafe { libc::prctl(libc::PR_CAPBSET_READ, libc::c_ulong::from(capability), 0, 0, 0) } {
            0 => {}
            1 => {
                // SAFETY: the call takes no pointers.
                Errno::result(unsafe { libc::prctl(libc::PR_CAPBSET_DROP, libc::c_ulong::from(capability), 0, 0, 0) })?;
            }
            // This number is beyond the last capability of the kernel.
            _ => return Ok(()),
        }
    }
    Ok(())
}

#[expect(unsafe_code, reason = "no safe call reads the sets")]
fn permitted_now() -> Result<u32, Errno> {
    let header = CapabilityHeader { version: VERSION_3, pid: 0 };
    let mut halves = [Half::default(); 2];
    // SAFETY: both pointers refer to the structures that the kernel expects for this version, and outlive the call.
    Errno::result(unsafe { libc::syscall(libc::SYS_capget, &raw const header, halves.as_mut_ptr()) })?;
    Ok(halves[0].permitted)
}

/// Sets the capabilities of this process. All retained ones are in the lower half of the set.
#[expect(unsafe_code, reason = "no safe call changes the sets")]
fn set(permitted: u32) -> Result<(), Errno> {
    let header = CapabilityHeader { version: VERSION_3, pid: 0 };
    let halves = [Half { effective: permitted, permitted, inheritable: 0 }, Half::default()];
    // SAFETY: as above.
    Errno::result(unsafe { libc::syscall(libc::SYS_capset, &raw const header, halves.as_ptr()) })?;
    Ok(())
}
