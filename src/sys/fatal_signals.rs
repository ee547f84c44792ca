//! Restores the terminal before a fatal signal ends the process.

use libc::{c_int, c_void, siginfo_t};
use std::sync::OnceLock;

/// Signals that end the process. The main loop handles other signals.
const FATAL: [c_int; 6] = [libc::SIGABRT, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGQUIT, libc::SIGSEGV];

static CALL: OnceLock<fn()> = OnceLock::new();
/// Terminal settings as they were before aye changed them.
static LINES: OnceLock<libc::termios> = OnceLock::new();
/// Signal handlers that aye's own handlers replaced.
static BEFORE: OnceLock<Vec<(c_int, libc::sigaction)>> = OnceLock::new();

/// Arranges for the terminal to be restored and `call` to run before a fatal signal takes effect. `call` must not lock
/// or allocate.
#[expect(unsafe_code, reason = "no safe call handles signals that a fault raises")]
pub(crate) fn install(call: fn()) {
    if CALL.set(call).is_err() {
        return;
    }
    // SAFETY: the type is plain data, and the value is read only if the call has filled it.
    let mut lines: libc::termios = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer refers to a value of the type that the call expects.
    if unsafe { libc::tcgetattr(libc::STDIN_FILENO, &raw mut lines) } == 0 {
        let _ = LINES.set(lines);
    }
    let mut all = Vec::new();
    for signal in FATAL {
        // SAFETY: the handler calls only async-signal-safe functions. It runs on the alternate stack, because the stack
        // may have overflowed.
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
    // SAFETY: the system passes the signal information, and all these functions are allowed in a signal handler.
    unsafe {
        if let Some(lines) = LINES.get() {
            libc::tcsetattr(libc::STDIN_FILENO, libc::TCSANOW, lines);
        }
        // Signals for terminal access come from the kernel too, but the instruction that they interrupt does not run
        // again.
        let is_of_fault = matches!(signal, libc::SIGBUS | libc::SIGFPE | libc::SIGILL | libc::SIGSEGV);
        let was_sent = (*info).si_code <= 0;
        match before {
            // The faulting instruction runs again, which invokes the previous handler. That handler reports a stack
            // overflow.
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
