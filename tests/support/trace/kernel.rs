//! Requests to the ptrace interface of the kernel, one function per request.

use std::io;
use std::ptr::null_mut;

/// Reason why a thread stopped.
pub(super) enum Stop {
    /// End of the thread, with its exit code or 128 plus the number of the signal.
    Ended(i32),
    Signal(i32),
    /// Event to which the tracer subscribed.
    Event,
    Syscall,
}

pub(super) enum Syscall {
    Begins { number: i64, arguments: [u64; 6] },
    Ended,
}

/// Makes the parent thread the tracer. Called in the new process before exec.
pub(super) fn ask_to_be_traced() -> io::Result<()> {
    // SAFETY: the kernel ignores the pointers and the other arguments of this request.
    checked(unsafe { libc::ptrace(libc::PTRACE_TRACEME, 0, null_mut::<libc::c_void>(), null_mut::<libc::c_void>()) })
}

/// Follows the new threads, but not the child processes, of a thread. The process is killed when the tracer exits.
pub(super) fn follow_threads(thread: i32) -> io::Result<()> {
    let options = libc::PTRACE_O_TRACESYSGOOD | libc::PTRACE_O_TRACECLONE | libc::PTRACE_O_EXITKILL;
    // SAFETY: the options are passed as a number.
    checked(unsafe { libc::ptrace(libc::PTRACE_SETOPTIONS, thread, 0, libc::c_long::from(options)) })
}

/// Attaches to all threads of a running process, including the threads that it creates later.
pub(super) fn seize(process: i32) -> io::Result<()> {
    let options = libc::PTRACE_O_TRACESYSGOOD | libc::PTRACE_O_TRACECLONE;
    let mut known = std::collections::HashSet::new();
    // A thread created in the meantime is already followed or is found in the next pass.
    loop {
        let listed = std::fs::read_dir(format!("/proc/{process}/task"))?.flatten();
        let threads: Vec<i32> = listed.filter_map(|entry| entry.file_name().to_string_lossy().parse().ok()).collect();
        let new: Vec<i32> = threads.into_iter().filter(|thread| known.insert(*thread)).collect();
        if new.is_empty() {
            return Ok(());
        }
        for thread in new {
            // SAFETY: the options are passed as a number.
            let seized = checked(unsafe { libc::ptrace(libc::PTRACE_SEIZE, thread, 0, libc::c_long::from(options)) });
            if thread == process {
                seized?;
            }
            // SAFETY: no pointers are passed. The thread stops and then continues from call to call.
            unsafe { libc::ptrace(libc::PTRACE_INTERRUPT, thread, 0, 0) };
        }
    }
}

/// Continues a thread to its next system call or signal. Does nothing if the thread is dead; its end is reported next.
pub(super) fn go_on(thread: i32, signal: i32) {
    // SAFETY: the signal is passed as a number.
    unsafe { libc::ptrace(libc::PTRACE_SYSCALL, thread, 0, libc::c_long::from(signal)) };
}

pub(super) fn kill(process: i32) {
    // SAFETY: no pointers are passed.
    unsafe { libc::kill(process, libc::SIGKILL) };
}

/// Waits for a thread that the calling thread traces. Returns the stopped thread and the reason, or `None` if none is
/// left.
pub(super) fn wait() -> Option<(i32, Stop)> {
    loop {
        let mut status = 0;
        // SAFETY: the status is written to a local variable. `__WNOTHREAD` excludes the processes of other tests.
        let thread = unsafe { libc::waitpid(-1, &raw mut status, libc::__WALL | libc::__WNOTHREAD) };
        if thread < 0 {
            if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted {
                continue;
            }
            return None;
        }
        let stop = if libc::WIFEXITED(status) {
            Stop::Ended(libc::WEXITSTATUS(status))
        } else if libc::WIFSIGNALED(status) {
            Stop::Ended(128 + libc::WTERMSIG(status))
        } else if libc::WSTOPSIG(status) == libc::SIGTRAP | 0x80 {
            Stop::Syscall
        } else if status >> 16 != 0 {
            Stop::Event
        } else {
            Stop::Signal(libc::WSTOPSIG(status))
        };
        return Some((thread, stop));
    }
}

/// Common part of `struct ptrace_syscall_info` at entry and exit.
#[repr(C)]
#[derive(Default)]
struct Info {
    op: u8,
    pad: [u8; 3],
    arch: u32,
    instruction_pointer: u64,
    stack_pointer: u64,
    number: u64,
    arguments: [u64; 6],
    more: [u64; 2],
}

const GET_SYSCALL_INFO: libc::c_uint = 0x420e;

pub(super) fn syscall(thread: i32) -> Option<Syscall> {
    let mut info = Info::default();
    // SAFETY: the kernel writes at most the given size of the structure.
    let written = unsafe { libc::ptrace(GET_SYSCALL_INFO, thread, size_of::<Info>(), &raw mut info) };
    match (written > 0).then_some(info.op)? {
        1 => Some(Syscall::Begins { number: info.number as i64, arguments: info.arguments }),
        2 => Some(Syscall::Ended),
        _ => None,
    }
}

/// Suppresses the system call that the thread is entering.
pub(super) fn call_off(thread: i32) {
    registers::set_number(thread, -1);
}

/// Makes the system call that has ended return this error.
pub(super) fn fail(thread: i32, error: i32) {
    registers::set_result(thread, -i64::from(error));
}

fn checked(result: libc::c_long) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(target_arch = "x86_64")]
mod registers {
    use std::mem::offset_of;

    pub fn set_number(thread: i32, number: i64) {
        poke(thread, offset_of!(libc::user_regs_struct, orig_rax), number);
    }

    pub fn set_result(thread: i32, result: i64) {
        poke(thread, offset_of!(libc::user_regs_struct, rax), result);
    }

    fn poke(thread: i32, at: usize, value: i64) {
        // SAFETY: the address and the value are passed as numbers. The registers are at the start of the user area.
        unsafe { libc::ptrace(libc::PTRACE_POKEUSER, thread, at, value) };
    }
}

#[cfg(target_arch = "aarch64")]
mod registers {
    use std::ptr::addr_of_mut;

    const SYSTEM_CALL: usize = 0x404;
    const GENERAL: usize = 1;

    pub fn set_number(thread: i32, number: i64) {
        let mut number = number as i32;
        set(thread, SYSTEM_CALL, addr_of_mut!(number).cast(), size_of::<i32>());
    }

    pub fn set_result(thread: i32, result: i64) {
        // SAFETY: all fields are numbers, for which zero is a valid value.
        let mut all: libc::user_regs_struct = unsafe { std::mem::zeroed() };
        let size = size_of::<libc::user_regs_struct>();
        let mut part = libc::iovec { iov_base: addr_of_mut!(all).cast(), iov_len: size };
        // SAFETY: the kernel writes at most the length of `all`.
        unsafe { libc::ptrace(libc::PTRACE_GETREGSET, thread, GENERAL, addr_of_mut!(part)) };
        all.regs[0] = result as u64;
        set(thread, GENERAL, addr_of_mut!(all).cast(), size);
    }

    fn set(thread: i32, what: usize, from: *mut libc::c_void, length: usize) {
        let mut part = libc::iovec { iov_base: from, iov_len: length };
        // SAFETY: `from` points to a variable of the caller with this length.
        unsafe { libc::ptrace(libc::PTRACE_SETREGSET, thread, what, addr_of_mut!(part)) };
    }
}
