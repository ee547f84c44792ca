//! Records the servers to which a command without network access tries to connect directly. The kernel notifies the
//! helper of each attempt, and then proceeds as it would have without the notification: in a network namespace with
//! only a loopback interface, the attempt fails. The records therefore serve only for reports. Nothing is allowed or
//! denied because of them, so it does not matter if a program changes an address after it was read.

use super::{Backend, Confinement};
use crate::sys::sandbox::NetworkAccess;
use nix::errno::Errno;
use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::unistd::Pid;
use seccompiler::sock_filter;
use std::collections::BTreeSet;
use std::io::IoSliceMut;
use std::mem::{offset_of, size_of};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

/// Maximum number of addresses to record. More of them would add no useful information.
const MAX_ADDRESSES: usize = 64;
/// Maximum number of messages of one `sendmmsg` call whose addresses are read.
const MAX_MESSAGES: u64 = 16;
/// Port of name servers. A lookup through a local resolver leaves the machine, although its address is local.
const NAME_SERVER_PORT: u16 = 53;

/// Addresses to which a command tried to connect, and the kernel's notifications of further attempts.
#[derive(Debug, Default)]
pub(in crate::sys) struct ConnectionRecorder {
    /// Source of the notifications, or `None` if the command's connections are not recorded.
    listener: Option<OwnedFd>,
    addresses: BTreeSet<SocketAddr>,
}

impl ConnectionRecorder {
    /// Makes the kernel notify this process of the attempts of its descendants, if the command has no network access.
    /// Records nothing if the kernel cannot notify, or already notifies another program.
    ///
    /// From now on, this process itself must not make the calls that cause a notification.
    pub(super) fn install(confinement: &Confinement) -> Self {
        let is_offline = confinement.strength == Backend::Namespaces && confinement.network == NetworkAccess::Proxied;
        let listener = if is_offline && are_sizes_known() { install_filter() } else { None };
        Self { listener, addresses: BTreeSet::new() }
    }

    /// Returns the descriptor that becomes readable when a process tries to connect and waits for
    /// [`Self::handle_attempt`].
    pub(in crate::sys) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.listener.as_ref().map(AsFd::as_fd)
    }

    /// Records the next attempt and lets the process that made it continue. Must be called only if there is one.
    #[expect(unsafe_code, reason = "no safe call reads notifications")]
    pub(in crate::sys) fn handle_attempt(&mut self) {
        let Some(listener) = self.listener.as_ref().map(AsRawFd::as_raw_fd) else { return };
        // SAFETY: an all-zero value is valid, and the kernel requires it.
        let mut attempt: libc::seccomp_notif = unsafe { std::mem::zeroed() };
        // SAFETY: the pointer refers to a structure of the size that the kernel expects, which outlives the call.
        if unsafe { libc::ioctl(listener, libc::SECCOMP_IOCTL_NOTIF_RECV, &raw mut attempt) } != 0 {
            // The process was killed in the meantime.
            return;
        }
        if self.addresses.len() < MAX_ADDRESSES {
            let found = destinations(&attempt);
            // Otherwise, the process has ended, and its number may belong to another process.
            if is_waiting(listener, attempt.id) {
                self.addresses.extend(found.into_iter().filter(leaves_machine).take(MAX_ADDRESSES - self.addresses.len()));
            }
        }
        let flags = libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32;
        let mut answer = libc::seccomp_notif_resp { id: attempt.id, val: 0, error: 0, flags };
        // SAFETY: as above. The call fails if the process has been killed.
        unsafe { libc::ioctl(listener, libc::SECCOMP_IOCTL_NOTIF_SEND, &raw mut answer) };
    }

    /// Returns all recorded addresses.
    pub(in crate::sys) fn addresses(&self) -> Vec<SocketAddr> {
        self.addresses.iter().copied().collect()
    }
}

/// Returns whether the kernel's structures have the sizes that this program was built for.
#[expect(unsafe_code, reason = "no safe call queries the sizes")]
fn are_sizes_known() -> bool {
    let mut sizes = libc::seccomp_notif_sizes { seccomp_notif: 0, seccomp_notif_resp: 0, seccomp_data: 0 };
    // SAFETY: the pointer refers to a structure that outlives the call.
    let answered = unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_GET_NOTIF_SIZES, 0, &raw mut sizes) } == 0;
    answered
        && usize::from(sizes.seccomp_notif) == size_of::<libc::seccomp_notif>()
        && usize::from(sizes.seccomp_notif_resp) == size_of::<libc::seccomp_notif_resp>()
}

/// Installs the filter for this process and its descendants. Returns the source of the notifications.
#[expect(unsafe_code, reason = "no safe call installs a filter with notifications")]
fn install_filter() -> Option<OwnedFd> {
    let mut program = program();
    let filter = program.as_mut_ptr().cast();
    let program = libc::sock_fprog { len: u16::try_from(program.len()).ok()?, filter };
    // With the second flag, a signal does not interrupt a call that has been read. Older kernels do not support it.
    for also in [libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, 0] {
        let flags = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | also;
        // SAFETY: the pointer refers to a filter program that outlives the call.
        let made = unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const program) };
        match RawFd::try_from(made) {
            // SAFETY: the kernel has just created this descriptor, and nothing else owns it.
            Ok(made) if made >= 0 => return Some(unsafe { OwnedFd::from_raw_fd(made) }),
            _ if Errno::last() == Errno::EINVAL => {}
            _ => return None,
        }
    }
    None
}

/// Returns the filter program. It causes a notification for the calls that name an address. The other filters handle
/// system calls for other architectures.
fn program() -> Vec<sock_filter> {
    const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    const EQUALS: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    /// Offset of the address that is passed to `sendto`, in the filter's input. Its order of bytes does not matter.
    const ADDRESS: u32 = (offset_of!(libc::seccomp_data, args) + 4 * size_of::<u64>()) as u32;
    let number = |call: libc::c_long| call as u32;
    vec![
        // The system call number is the first field of the filter's input.
        sock_filter { code: LOAD, jt: 0, jf: 0, k: 0 },
        sock_filter { code: EQUALS, jt: 7, jf: 0, k: number(libc::SYS_connect) },
        sock_filter { code: EQUALS, jt: 6, jf: 0, k: number(libc::SYS_sendmsg) },
        sock_filter { code: EQUALS, jt: 5, jf: 0, k: number(libc::SYS_sendmmsg) },
        sock_filter { code: EQUALS, jt: 0, jf: 5, k: number(libc::SYS_sendto) },
        // Without an address, the socket is already connected. Programs do this often, and so does the helper.
        sock_filter { code: LOAD, jt: 0, jf: 0, k: ADDRESS },
        sock_filter { code: EQUALS, jt: 0, jf: 2, k: 0 },
        sock_filter { code: LOAD, jt: 0, jf: 0, k: ADDRESS + 4 },
        sock_filter { code: EQUALS, jt: 1, jf: 0, k: 0 },
        sock_filter { code: RETURN, jt: 0, jf: 0, k: libc::SECCOMP_RET_USER_NOTIF },
        sock_filter { code: RETURN, jt: 0, jf: 0, k: libc::SECCOMP_RET_ALLOW },
    ]
}

/// Returns whether the process that made this attempt still waits.
#[expect(unsafe_code, reason = "no safe call checks a notification")]
fn is_waiting(listener: RawFd, id: u64) -> bool {
    // SAFETY: the pointer refers to a number that outlives the call.
    unsafe { libc::ioctl(listener, libc::SECCOMP_IOCTL_NOTIF_ID_VALID, &raw const id) == 0 }
}

/// Returns the internet addresses that an attempt names. Returns none if the process does not let this user read its
/// memory.
fn destinations(attempt: &libc::seccomp_notif) -> Vec<SocketAddr> {
    let Ok(pid) = i32::try_from(attempt.pid).map(Pid::from_raw) else { return Vec::new() };
    let arguments = attempt.data.args;
    let named = |header: u64| {
        let name = read_number(pid, header.checked_add(offset_of!(libc::msghdr, msg_name) as u64)?)?;
        let length = read_number(pid, header.checked_add(offset_of!(libc::msghdr, msg_namelen) as u64)?)?;
        // The length has 32 bits. The other bits are padding.
        address(pid, name, u64::from(length as u32))
    };
    match libc::c_long::from(attempt.data.nr) {
        libc::SYS_connect => address(pid, arguments[1], arguments[2]).into_iter().collect(),
        libc::SYS_sendto => address(pid, arguments[4], arguments[5]).into_iter().collect(),
        libc::SYS_sendmsg => named(arguments[1]).into_iter().collect(),
        libc::SYS_sendmmsg => {
            let headers = (0..arguments[2].min(MAX_MESSAGES))
                .filter_map(|number| arguments[1].checked_add(number * size_of::<libc::mmsghdr>() as u64));
            headers.filter_map(named).collect()
        }
        _ => Vec::new(),
    }
}

/// Reads an internet address from the memory of a process.
fn address(pid: Pid, at: u64, length: u64) -> Option<SocketAddr> {
    let mut bytes = [0; size_of::<libc::sockaddr_in6>()];
    let length = usize::try_from(length).ok()?.min(bytes.len());
    read_memory(pid, at, &mut bytes[..length])?;
    parse_address(&bytes[..length])
}

/// Parses a `sockaddr`. Returns `None` if it is not an internet address.
fn parse_address(bytes: &[u8]) -> Option<SocketAddr> {
    let family = u16::from_ne_bytes(*bytes.first_chunk()?);
    let port = u16::from_be_bytes(*bytes.get(2..)?.first_chunk()?);
    let ip = match libc::c_int::from(family) {
        libc::AF_INET => IpAddr::V4(Ipv4Addr::from(*bytes.get(4..)?.first_chunk::<4>()?)),
        libc::AF_INET6 => IpAddr::V6(Ipv6Addr::from(*bytes.get(8..)?.first_chunk::<16>()?)).to_canonical(),
        _ => return None,
    };
    Some(SocketAddr::new(ip, port))
}

/// Returns whether the address is that of another machine or of a name server. For the kernel, the unspecified address
/// means this machine. Programs use port 0 to find out their own address, and search for neighbours by multicast.
fn leaves_machine(address: &SocketAddr) -> bool {
    let ip = address.ip();
    let is_near = match ip {
        IpAddr::V4(ip) => ip.is_multicast() || ip.is_link_local() || ip.is_broadcast(),
        IpAddr::V6(ip) => ip.is_multicast() || ip.is_unicast_link_local(),
    };
    // A command may run a name server of its own at these addresses.
    let is_own = ip == Ipv4Addr::LOCALHOST || ip == Ipv6Addr::LOCALHOST;
    let is_here = ip.is_loopback() || ip.is_unspecified();
    address.port() != 0 && !is_near && !is_own && (!is_here || address.port() == NAME_SERVER_PORT)
}

fn read_number(pid: Pid, at: u64) -> Option<u64> {
    let mut bytes = [0; size_of::<u64>()];
    read_memory(pid, at, &mut bytes)?;
    Some(u64::from_ne_bytes(bytes))
}

/// Fills `into` with the memory of a process from the address `at`.
fn read_memory(pid: Pid, at: u64, into: &mut [u8]) -> Option<()> {
    let from = RemoteIoVec { base: usize::try_from(at).ok().filter(|base| *base != 0)?, len: into.len() };
    let length = into.len();
    let read = process_vm_readv(pid, &mut [IoSliceMut::new(into)], &[from]).ok()?;
    (read == length).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn socket_address(family: libc::c_int, rest: &[u8]) -> Vec<u8> {
        (family as u16).to_ne_bytes().iter().chain(rest).copied().collect()
    }

    #[test]
    fn internet_addresses_are_parsed_and_others_are_ignored() {
        let v4 = socket_address(libc::AF_INET, &[1, 187, 192, 0, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(parse_address(&v4), Some("192.0.2.1:443".parse().unwrap()));
        assert_eq!(parse_address(&v4[..7]), None, "a short address");
        let mut v6 = vec![0, 53, 0, 0, 0, 0];
        v6.extend("2001:db8::1".parse::<Ipv6Addr>().unwrap().octets());
        assert_eq!(parse_address(&socket_address(libc::AF_INET6, &v6)), Some("[2001:db8::1]:53".parse().unwrap()));
        v6.truncate(6);
        v6.extend(Ipv4Addr::new(192, 0, 2, 1).to_ipv6_mapped().octets());
        assert_eq!(parse_address(&socket_address(libc::AF_INET6, &v6)), Some("192.0.2.1:53".parse().unwrap()));
        for family in [libc::AF_UNIX, libc::AF_NETLINK, libc::AF_UNSPEC] {
            assert_eq!(parse_address(&socket_address(family, &v4[2..])), None, "{family}");
        }
        assert_eq!(parse_address(&[]), None);
    }

    #[test]
    fn a_second_recorder_among_the_same_processes_records_nothing() {
        // A filter applies to the thread that installs it.
        let both = std::thread::spawn(|| {
            nix::sys::prctl::set_no_new_privs().unwrap();
            [install_filter(), install_filter()].map(|listener| listener.is_some())
        });
        match both.join().unwrap() {
            [false, false] => println!("skipped: another program already records the connections of this one"),
            both => assert_eq!(both, [true, false]),
        }
    }

    #[test]
    fn only_addresses_of_other_machines_and_of_name_servers_are_recorded() {
        for (address, recorded) in [
            ("192.0.2.1:443", true),
            ("10.0.0.1:5432", true),
            ("[2001:db8::1]:80", true),
            ("127.0.0.1:8080", false),
            ("127.0.0.53:53", true),
            ("[::1]:8080", false),
            ("0.0.0.0:8080", false),
            ("127.0.0.1:53", false),
            ("192.0.2.1:0", false),
            ("224.0.0.251:5353", false),
            ("169.254.169.254:80", false),
            ("[fe80::1]:443", false),
        ] {
            assert_eq!(leaves_machine(&address.parse().unwrap()), recorded, "{address}");
        }
    }
}
