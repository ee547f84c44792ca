//! Fatal signals: the terminal is restored before the process ends.

use libc::{c_int, c_void, siginfo_t};
use std::sync::OnceLock;

/// What nothing goes on after. Others are waited for where the loop runs.
const FATAL: [c_int; 6] = [libc::SIGABRT, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGQUIT, libc::SIGSEGV];

static CALL: OnceLock<fn()> = OnceLock::new();
/// How the lines of the terminal were before anything was set.
static LINES: OnceLock<libc::termios> = OnceLock::new();
/// What was done about each of them before.
static BEFORE: OnceLock<Vec<(c_int, libc::sigaction)>> = OnceLock::new();

/// Has this called, which may ask for no lock and no memory, and the lines of the terminal put back, before such a signal does what it does.
#[expect(unsafe_code, reason = "no safe call knows of signals that a fault raises")]
pub fn before_death(call: fn()) {
    if CALL.set(call).is_err() {
        return;
    }
    // SAFETY: both are plain data, and are looked at only where the call filled them.
    let mut lines: libc::termios = unsafe { std::mem::zeroed() };
    // SAFETY: it is as large as the call expects.
    if unsafe { libc::tcgetattr(libc::STDIN_FILENO, &raw mut lines) } == 0 {
        let _ = LINES.set(lines);
    }
    let mut all = Vec::new();
    for signal in FATAL {
        // SAFETY: the handler keeps to what may be called in one, and runs on the stack that was made for the case that the other is full.
        unsafe {
            let mut before: libc::sigaction = std::mem::zeroed();
            let mut action: libc::sigaction = std::mem::zeroed();
            let handler: extern "C" fn(c_int, *mut siginfo_t, *mut c_void) = ends;
            action.sa_sigaction = handler as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            libc::sigemptyset(&raw mut action.sa_mask);
            if libc::sigaction(signal, &raw const action, &raw mut before) == 0 {
                all.push((signal, before));
            }
        }
    }
    let _ = BEFORE.set(all);
}

#[expect(unsafe_code, reason = "no safe call puts a signal back")]
extern "C" fn ends(signal: c_int, info: *mut siginfo_t, _: *mut c_void) {
    if let Some(call) = CALL.get() {
        call();
    }
    let before = BEFORE.get().and_then(|all| all.iter().find(|(which, _)| *which == signal));
    // SAFETY: the system hands over what is known of the signal; all of these may be called in a handler.
    unsafe {
        if let Some(lines) = LINES.get() {
            libc::tcsetattr(libc::STDIN_FILENO, libc::TCSANOW, lines);
        }
        // A terminal sends its own as the kernel does; nothing of those runs once more.
        let is_of_fault = matches!(signal, libc::SIGBUS | libc::SIGFPE | libc::SIGILL | libc::SIGSEGV);
        let was_sent = (*info).si_code <= 0;
        match before {
            // What faulted runs once more, and is answered as before: a stack that is full is told of.
            Some((_, before)) if is_of_fault && !was_sent => {
                libc::sigaction(signal, before, std::ptr::null_mut());
            }
            _ => {
                libc::signal(signal, libc::SIG_DFL);
                libc::raise(signal);
            }
        }
    }
}
