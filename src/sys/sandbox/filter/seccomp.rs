//! Seccomp filter. System calls that no build needs fail with an error, and all others are allowed.

use super::{Backend, Confinement};
use crate::sys::sandbox::NetworkAccess;
use libc::c_long;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule, TargetArch,
};
use std::collections::BTreeMap;
use std::io;

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// System calls that fail with `EPERM` whatever their arguments.
pub(super) const FORBIDDEN: &[c_long] = &[
    // Mounts determine which paths are visible and writable.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_tree,
    OPEN_TREE_ATTR,
    libc::SYS_move_mount,
    libc::SYS_mount_setattr,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    // Other namespaces.
    libc::SYS_setns,
    // Keys belong to the user, and are not separated by namespaces.
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    // Large parts of the kernel that have been used for sandbox escapes.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    // These calls open files by number instead of by path.
    libc::SYS_open_by_handle_at,
    // System calls that affect the machine.
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_reboot,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_lookup_dcookie,
    libc::SYS_nfsservctl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
];
/// Number of a system call that `libc` does not define yet. It is the same on every architecture.
const OPEN_TREE_ATTR: c_long = 467;

/// System calls that fail with `ENOSYS`, as they would on an older kernel, so programs fall back to alternatives. A
/// filter can inspect neither the flags of `clone3`, nor the mode passed to `openat2`, nor operations submitted through
/// a ring.
pub(super) const UNKNOWN: &[c_long] =
    &[libc::SYS_clone3, libc::SYS_io_uring_setup, libc::SYS_io_uring_enter, libc::SYS_io_uring_register, libc::SYS_openat2];

/// System calls that are also blocked if nothing but this filter and Landlock separates the command from the user's
/// other processes.
pub(super) const FORBIDDEN_AMONG_OTHERS: &[c_long] =
    &[libc::SYS_ptrace, libc::SYS_process_vm_readv, libc::SYS_process_vm_writev, libc::SYS_pidfd_getfd, libc::SYS_kcmp];

const NEW_NAMESPACES: [libc::c_int; 8] = [
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    CLONE_NEWTIME,
];
/// Flag that only `unshare` accepts. In the flags of `clone`, these bits contain the exit signal.
const CLONE_NEWTIME: libc::c_int = 0x80;

/// Terminal requests that inject input or load a line discipline.
const TERMINAL_REQUESTS: [u64; 3] = [0x5412, 0x541C, 0x5423];

/// System calls that set a file's mode, with the index of the mode argument.
const MODES: &[(c_long, u8)] = &[
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, 1),
    (libc::SYS_fchmod, 1),
    (libc::SYS_fchmodat, 2),
    (FCHMODAT2, 2),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_creat, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mknod, 1),
    (libc::SYS_mknodat, 2),
];
/// System calls that set a mode if their flags cause a file to be created, with the index of the flags argument.
const MODES_OF_NEW: &[(c_long, u8)] = &[
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, 1),
    (libc::SYS_openat, 2),
];
const FCHMODAT2: c_long = 452;
/// `O_TMPFILE` without the directory flag that it includes.
const NAMELESS: libc::c_int = libc::O_TMPFILE & !libc::O_DIRECTORY;

/// Filter programs for the kernel, which are installed one after the other.
#[derive(Debug)]
pub(super) struct Filters(Vec<BpfProgram>);

pub(super) fn prepare(confinement: &Confinement) -> io::Result<Filters> {
    let mut forbidden: Rules = FORBIDDEN.iter().map(|call| (*call, Vec::new())).collect();
    if confinement.strength == Backend::Landlock {
        forbidden.extend(FORBIDDEN_AMONG_OTHERS.iter().map(|call| (*call, Vec::new())));
    }
    forbidden.insert(libc::SYS_ioctl, any_of(TERMINAL_REQUESTS.map(|request| vec![(1, SeccompCmpOp::Eq, request)]))?);
    forbidden.insert(libc::SYS_unshare, new_namespaces(&NEW_NAMESPACES)?);
    forbidden.insert(libc::SYS_clone, new_namespaces(&NEW_NAMESPACES[..7])?);
    forbidden.extend(other_users()?);
    forbidden.extend(large_shared_memory(confinement)?);
    let unknown = UNKNOWN.iter().map(|call| (*call, Vec::new())).collect();
    let families = BTreeMap::from([(libc::SYS_socket, any_of(refused_sockets(confinement))?)]);
    let programs = [compile(forbidden, libc::EPERM)?, compile(unknown, libc::ENOSYS)?, compile(families, libc::EAFNOSUPPORT)?];
    Ok(Filters(foreign_numbers().into_iter().chain(programs).collect()))
}

impl Filters {
    pub(super) fn enforce(self) -> io::Result<()> {
        for program in &self.0 {
            seccompiler::apply_filter(program).map_err(|error| match error {
                seccompiler::Error::Prctl(error) | seccompiler::Error::Seccomp(error) => error,
                other => io::Error::other(other),
            })?;
        }
        Ok(())
    }
}

/// Returns whether this kernel supports seccomp filters.
#[expect(unsafe_code, reason = "no safe call queries the filters")]
pub(crate) fn available() -> bool {
    let action = libc::SECCOMP_RET_ERRNO;
    // SAFETY: the pointer refers to a number that outlives the call.
    unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_GET_ACTION_AVAIL, 0, &raw const action) == 0 }
}

/// Conditions on arguments that together form one rule: (index, comparison, value).
type Conditions = Vec<(u8, SeccompCmpOp, u64)>;

fn any_of(rules: impl IntoIterator<Item = Conditions>) -> io::Result<Vec<SeccompRule>> {
    // The kernel reads all of these arguments as 32 bits.
    let condition = |(argument, comparison, value)| SeccompCondition::new(argument, SeccompCmpArgLen::Dword, comparison, value);
    rules
        .into_iter()
        .map(|rule| SeccompRule::new(rule.into_iter().map(condition).collect::<Result<_, _>>()?))
        .collect::<Result<_, _>>()
        .map_err(io::Error::other)
}

fn new_namespaces(flags: &[libc::c_int]) -> io::Result<Vec<SeccompRule>> {
    any_of(flags.iter().map(|flag| {
        let flag = u64::from(flag.cast_unsigned());
        vec![(0, SeccompCmpOp::MaskedEq(flag), flag)]
    }))
}

/// Returns rules that prevent the creation of set-ID programs. Outside the sandbox, another user could run such a
/// program with rights that the command itself has only inside the sandbox. Because a filter cannot tell whether a path
/// is a directory, the bits are blocked for directories too.
fn other_users() -> io::Result<Rules> {
    let bits = [libc::S_ISUID, libc::S_ISGID].map(u64::from);
    let set = |argument, bit| (argument, SeccompCmpOp::MaskedEq(bit), bit);
    let mut rules = Rules::new();
    for (call, mode) in MODES {
        rules.insert(*call, any_of(bits.map(|bit| vec![set(*mode, bit)]))?);
    }
    for (call, flags) in MODES_OF_NEW {
        let making = [libc::O_CREAT, NAMELESS].map(|flag| u64::from(flag.cast_unsigned()));
        let rule = |flag, bit| vec![(*flags, SeccompCmpOp::MaskedEq(flag), flag), set(flags + 1, bit)];
        rules.insert(*call, any_of(making.into_iter().flat_map(|flag| bits.map(|bit| rule(flag, bit))))?);
    }
    Ok(rules)
}

/// Returns rules that limit the size of a System V shared memory segment, so that even the maximum number of segments
/// uses at most a quarter of the memory limit. If aye runs as root, the namespace's own limit, which other users cannot
/// set, applies instead.
fn large_shared_memory(confinement: &Confinement) -> io::Result<Rules> {
    const MAX_SEGMENTS: u64 = 4096;
    let Some(bytes) = confinement.limits.memory_bytes.filter(|_| !nix::unistd::geteuid().is_root()) else {
        return Ok(Rules::new());
    };
    let most = bytes / 4 / MAX_SEGMENTS;
    let larger = SeccompCondition::new(1, SeccompCmpArgLen::Qword, SeccompCmpOp::Gt, most).map_err(io::Error::other)?;
    Ok(Rules::from([(libc::SYS_shmget, vec![SeccompRule::new(vec![larger]).map_err(io::Error::other)?])]))
}

/// Returns rules that block socket families. Netlink remains available, so routes and addresses can be read.
fn refused_sockets(confinement: &Confinement) -> Vec<Conditions> {
    let family = |family: libc::c_int| u64::from(family.cast_unsigned());
    let allowed: &[libc::c_int] = match (confinement.strength, confinement.network) {
        (Backend::Namespaces, _) => &[libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK],
        // Without mounts, nothing covers the sockets of agents and daemons. Socket pairs use another system call.
        (Backend::Landlock, NetworkAccess::Open) => &[libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK],
        (Backend::Landlock, NetworkAccess::Proxied) => &[libc::AF_NETLINK],
    };
    vec![
        allowed.iter().map(|allowed| (0, SeccompCmpOp::Ne, family(*allowed))).collect(),
        vec![(0, SeccompCmpOp::Eq, family(libc::AF_NETLINK)), (2, SeccompCmpOp::Ne, family(libc::NETLINK_ROUTE))],
    ]
}

/// Compiles rules by which the listed calls fail with `errno`. A system call for another architecture kills the
/// process.
fn compile(rules: Rules, errno: libc::c_int) -> io::Result<BpfProgram> {
    let architecture = TargetArch::try_from(std::env::consts::ARCH).map_err(io::Error::other)?;
    let refused = SeccompAction::Errno(errno.cast_unsigned());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refused, architecture).map_err(io::Error::other)?;
    filter.try_into().map_err(io::Error::other)
}

/// Returns a filter for x32, the second set of system call numbers on x86-64. All of its calls fail, because it is not
/// used in practice.
#[cfg(target_arch = "x86_64")]
fn foreign_numbers() -> Option<BpfProgram> {
    use seccompiler::sock_filter;
    const X32: u32 = 0x4000_0000;
    /// System call number that a debugger sets in order to skip a call.
    const SKIPPED: u32 = u32::MAX;
    const ALLOW: u32 = 0x7fff_0000;
    const ENOSYS: u32 = 0x0005_0000 | libc::ENOSYS.cast_unsigned();
    const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    const AT_LEAST: u16 = (libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K) as u16;
    const EQUALS: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    Some(vec![
        // The system call number is the first field of the filter's input.
        sock_filter { code: LOAD, jt: 0, jf: 0, k: 0 },
        sock_filter { code: AT_LEAST, jt: 0, jf: 2, k: X32 },
        sock_filter { code: EQUALS, jt: 1, jf: 0, k: SKIPPED },
        sock_filter { code: RETURN, jt: 0, jf: 0, k: ENOSYS },
        sock_filter { code: RETURN, jt: 0, jf: 0, k: ALLOW },
    ])
}

#[cfg(not(target_arch = "x86_64"))]
fn foreign_numbers() -> Option<BpfProgram> {
    None
}
