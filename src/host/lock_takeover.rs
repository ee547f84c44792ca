//! Takes over a session that another process owns. Asks that process to save the session and exit, but never kills it.

use crate::host::nesting::Nesting;
use crate::protocol::{Problem, SessionId};
use crate::store::Store;
use crate::sys::instance::Instance;
use std::time::{Duration, Instant};

/// Maximum time to wait until the other process has saved the session and exited.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Interval at which the other process is polled.
const INTERVAL: Duration = Duration::from_millis(20);

/// Returns why this process may not take over a session, or `None` if it may.
pub(crate) fn obstacle() -> Option<Problem> {
    (Nesting::detect() == Nesting::InsideAye)
        .then(|| Problem::new("a command that aye runs (AYE=1) cannot take over a session").hint("run aye in your own terminal"))
}

/// Asks the process that owns a session to exit, and waits until it has done so. Returns the reason if the process
/// still owns the session.
pub(crate) fn ask_holder_to_exit(store: &Store, id: &SessionId) -> Result<(), Problem> {
    let Some(holder) = store.holder(id)? else { return Ok(()) };
    if let Some(reason) = obstacle() {
        return Err(reason);
    }
    let pid = holder.instance.pid;
    if holder.instance == Instance::current() {
        return Err("this process already has the session open".into());
    }
    let asked = holder
        .instance
        .terminate()
        .map_err(|error| Problem::new(format!("cannot ask process {pid} to exit")).because(error).hint("quit aye there"))?;
    let until = Instant::now() + TIMEOUT;
    while asked && holder.instance.is_alive() && store.holder(id).is_ok_and(|now| now.as_ref() == Some(&holder)) {
        if Instant::now() >= until {
            let seconds = TIMEOUT.as_secs();
            let problem = Problem::new(format!("process {pid} did not exit within {seconds} s"));
            return Err(problem.because("aye did not kill it, because it may be busy").hint("quit aye there, or try again"));
        }
        std::thread::sleep(INTERVAL);
    }
    Ok(())
}
