//! Fatal signals: the terminal is restored before the process ends.

use libc::{c_int, c_void, siginfo_t};
use std::sync::OnceLock;

/// Signals that end the process. The main loop handles other signals.
const FATAL: [c_int; 6] = [libc::SIGABRT, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGQUIT, libc::SIGSEGV];

static CALL: OnceLock<fn()> = OnceLock::new();
/// Settings of the terminal before aye changed them.
static LINES: OnceLock<libc::termios> = OnceLock::new();
/// Signal handlers that were set before aye's own.
static BEFORE: OnceLock<Vec<(c_int, libc::sigaction)>> = OnceLock::new();

/// Restores the terminal and runs `call` before a fatal signal takes effect. `call` must not lock or allocate.
#[expect(unsafe_code, reason = "no safe call handles signals that a fault raises")]
pub(crate) fn install(call: fn()) {
    if CALL.set(call).is_err() {
        return;
    }
    // SAFETY: both are plain data, and are read only after the call filled them.
    let mut lines: libc::termios = unsafe { std::mem::zeroed() };
    // SAFETY: the value has the size that the call expects.
    if unsafe { libc::tcgetattr(libc::STDIN_FILENO, &raw mut lines) } == 0 {
        let _ = LINES.set(lines);
    }
    let mut all = Vec::new();
    for signal in FATAL {
        // SAFETY: the handler calls only async-signal-safe functions, and runs on the alternate stack in case of a stack
        // overflow.
        unsafe {
            let mut before: libc::sigaction = std::mem::zeroed();
            let mut action: libc::sigaction = std::mem::zeroed();
            let handler: extern "C" fn(c_int, *mut siginfo_t, *mut c_void) = on_fatal_signal;
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

#[expect(unsafe_code, reason = "no safe call restores a signal handler")]
extern "C" fn on_fatal_signal(signal: c_int, info: *mut siginfo_t, _: *mut c_void) {
    if let Some(call) = CALL.get() {
        call();
    }
    let before = BEFORE.get().and_then(|all| all.iter().find(|(which, _)| *which == signal));
    // SAFETY: the system passes the signal information; all these functions may be called in a handler.
    unsafe {
        if let Some(lines) = LINES.get() {
            libc::tcsetattr(libc::STDIN_FILENO, libc::TCSANOW, lines);
        }
        // The kernel also sends the signals of the terminal; the instruction that was interrupted by those does not run again.
        let is_of_fault = matches!(signal, libc::SIGBUS | libc::SIGFPE | libc::SIGILL | libc::SIGSEGV);
        let was_sent = (*info).si_code <= 0;
        match before {
            // The faulting instruction runs again and reaches the previous handler, which reports a stack overflow.
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
