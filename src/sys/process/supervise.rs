//! The helper that runs a command. It runs between aye and the command, and ends the whole process tree as soon as
//! either of them ends.

use super::handshake::{CommandDescriptors, HelperDescriptors};
use super::landlock_only::{self, SandboxResources};
use super::messages::{self, HelperReport, INTERRUPT, Job, KILL, TERMINATE};
use super::shared_memory::SharedMemory;
use super::signal_queue::SignalQueue;
use super::tree::{self, NO_NAMESPACES, NamespaceRole, TreeMethod};
use crate::sys::sandbox::filter::ConnectionRecorder;
use crate::sys::sandbox::{self, Backend, Confinement, Excess, LOOK_EVERY, LayerDirectories};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, setsid};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Stdio, exit};
use std::time::{Duration, Instant};

/// Command-line argument that disables namespaces.
pub(super) const WITHOUT_NAMESPACES: &str = "without-namespaces";

/// Initial interval between checks on a process tree that is being killed, since its processes may fork between two
/// checks.
const SWEEP: Duration = Duration::from_millis(5);
/// Maximum interval between those checks, which is reached if there are processes that this user cannot kill.
const SLOWEST_SWEEP: Duration = Duration::from_secs(1);

/// Runs one command on behalf of the aye process at the other end of stdin, then exits. Must be the first call in
/// `main`, before any thread is started.
pub(crate) fn supervise_main() -> ! {
    close_inherited();
    let _ = setsid();
    if std::env::args().nth(2).as_deref() == Some(sandbox::PROBE) {
        exit(i32::from(sandbox::answer_probe().is_err()))
    }
    exit(i32::from(supervise().is_err()))
}

fn supervise() -> io::Result<()> {
    let mut control = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let signals = SignalQueue::open();
    let job: Job = messages::receive(&mut control)?;
    let signals = match signals {
        Ok(signals) => signals,
        Err(error) => return messages::send(&mut control, &HelperReport::NotStarted(error.to_string())),
    };
    if let Some(confinement) = job.confinement.as_ref().filter(|confinement| confinement.strength == Backend::Namespaces) {
        return match confine(confinement) {
            Ok(Some(room)) => serve(control, &signals, TreeMethod::Namespace, &job, room),
            Ok(None) => Ok(()),
            Err(message) => messages::send(&mut control, &HelperReport::NotStarted(confinement_error(&message))),
        };
    }
    if std::env::args().nth(2).as_deref() != Some(WITHOUT_NAMESPACES) {
        match tree::enter_namespaces() {
            NamespaceRole::Inside if tree::settle_namespaces().is_ok() => {
                return serve(control, &signals, TreeMethod::Namespace, &job, LayerDirectories::default());
            }
            NamespaceRole::Inside => exit(NO_NAMESPACES),
            NamespaceRole::Outside(first) if wait_for(first) != NO_NAMESPACES => return Ok(()),
            NamespaceRole::Outside(_) | NamespaceRole::Refused => {}
        }
    }
    tree::adopt_orphans()?;
    serve(control, &signals, TreeMethod::Descendants, &job, LayerDirectories::default())
}

/// Enters the sandbox. Returns `None` in the outer process once the inner one, for which it only waits, has ended.
fn confine(confinement: &Confinement) -> Result<Option<LayerDirectories>, String> {
    match sandbox::enter(confinement)? {
        sandbox::ForkSide::Inside(inside) => inside.set_up(confinement).map(Some),
        sandbox::ForkSide::Outside(outside) => {
            wait_for(outside.first);
            outside.clean_up();
            Ok(None)
        }
    }
}

fn confinement_error(message: &str) -> String {
    format!("cannot set up the sandbox: {message}")
}

fn wait_for(child: Pid) -> i32 {
    loop {
        match waitpid(child, None) {
            Ok(WaitStatus::Exited(_, code)) => return code,
            Ok(WaitStatus::Signaled(..)) => return 1,
            Err(Errno::EINTR) | Ok(_) => {}
            Err(_) => return 1,
        }
    }
}

fn serve(
    mut control: UnixStream,
    signals: &SignalQueue,
    tree: TreeMethod,
    job: &Job,
    mut room: LayerDirectories,
) -> io::Result<()> {
    let made = match room.excess() {
        Ok(None) => HelperDescriptors::make(job),
        Ok(Some(_)) => Err("the disk is nearly full; free some space and try again".to_owned()),
        Err(error) => Err(confinement_error(&format!("checking free disk space failed: {error}"))),
    };
    let made = match made {
        Ok(made) => made,
        Err(message) => return messages::send(&mut control, &HelperReport::NotStarted(message)),
    };
    let left = made.send(&mut control)?;
    let StartedProcess { main, connections, _fence } = match start(job, left) {
        Ok(started) => started,
        Err(message) => return messages::send(&mut control, &HelperReport::NotStarted(message)),
    };
    let memory = SharedMemory::new(job.confinement.as_ref().and_then(|confinement| confinement.limits.memory_bytes));
    let (state, report, sweep) = (State::Running, None, SWEEP);
    let mut watch = Watch { control, signals, tree, main, room, memory, connections, state, report, sweep };
    while watch.state != State::Done {
        watch.step()?;
    }
    let bypasses = watch.connections.addresses();
    if !bypasses.is_empty() {
        messages::send(&mut watch.control, &HelperReport::Bypasses(bypasses))?;
    }
    let report = watch.report.unwrap_or(HelperReport::Signalled(libc::SIGKILL));
    messages::send(&mut watch.control, &report)
}

/// The command's main process, and what must exist while it runs.
struct StartedProcess {
    main: Pid,
    connections: ConnectionRecorder,
    _fence: Option<SandboxResources>,
}

fn start(job: &Job, left: CommandDescriptors) -> Result<StartedProcess, String> {
    let directory = Path::new(OsStr::from_bytes(&job.directory));
    let opened = crate::sys::path::open_directory(directory).map_err(|error| format!("`{}`: {error}", directory.display()))?;
    nix::unistd::fchdir(&opened).map_err(|error| format!("`{}`: {error}", directory.display()))?;
    let stdin = match &job.stdin {
        None => Stdio::null(),
        Some(text) => {
            // In a sandbox, the temporary directory may not be writable for the helper.
            let kept = if job.confinement.is_some() { memory_file(text) } else { text_file(text) };
            Stdio::from(kept.map_err(|error| format!("cannot set up the command's input: {error}"))?)
        }
    };
    let held = |error: io::Error| confinement_error(&error.to_string());
    let (mut command, fence) = landlock_only::shell(job).map_err(held)?;
    let mut connections = ConnectionRecorder::default();
    command.env("PWD", directory).env_remove("OLDPWD").stdin(stdin);
    tree::detach(&mut command);
    left.attach_to(&mut command).map_err(|error| format!("cannot set up the command's terminal: {error}"))?;
    if let Some(confinement) = job.confinement.as_ref().filter(|confinement| confinement.strength == Backend::Namespaces) {
        // This is the command's own temporary directory.
        for name in ["TMPDIR", "TMP", "TEMP"].into_iter().filter(|name| std::env::var_os(name).is_some()) {
            command.env(name, "/tmp");
        }
        connections = sandbox::filter::apply(confinement).map_err(held)?;
    }
    let child = command.spawn().map_err(|error| format!("`{}`: {error}", job.shell))?;
    Ok(StartedProcess { main: Pid::from_raw(child.id().cast_signed()), connections, _fence: fence })
}

/// Returns an unnamed file that contains `text`, positioned at its start.
fn text_file(text: &str) -> io::Result<File> {
    let mut file = tempfile::tempfile()?;
    file.write_all(text.as_bytes())?;
    file.rewind()?;
    Ok(file)
}

#[cfg(target_os = "linux")]
fn memory_file(text: &str) -> io::Result<File> {
    use nix::sys::memfd::{MFdFlags, memfd_create};
    let mut file = File::from(memfd_create(c"input", MFdFlags::MFD_CLOEXEC)?);
    file.write_all(text.as_bytes())?;
    file.rewind()?;
    Ok(file)
}

#[cfg(not(target_os = "linux"))]
fn memory_file(text: &str) -> io::Result<File> {
    text_file(text)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Running,
    /// Every process has received `SIGTERM` and is in its grace period.
    Terminating,
    /// Every process receives `SIGKILL` repeatedly until none is left.
    Killing,
    Done,
}

/// A command that the helper is watching.
struct Watch<'a> {
    control: UnixStream,
    signals: &'a SignalQueue,
    tree: TreeMethod,
    main: Pid,
    room: LayerDirectories,
    memory: SharedMemory,
    connections: ConnectionRecorder,
    state: State,
    report: Option<HelperReport>,
    sweep: Duration,
}

impl Watch<'_> {
    fn step(&mut self) -> io::Result<()> {
        if self.wait()? {
            self.handle_order();
        }
        self.handle_signals();
        self.reap();
        if matches!(self.state, State::Running | State::Terminating)
            && let Some(excess) = self.room.excess().unwrap_or(Some(Excess::Disk))
        {
            self.report = Some(match excess {
                Excess::Disk => HelperReport::DiskFull,
                Excess::Layer => HelperReport::LayerFull,
            });
            self.state = State::Killing;
        }
        if matches!(self.state, State::Running | State::Terminating) && self.memory.is_over(self.tree, LOOK_EVERY) {
            self.report = Some(HelperReport::MemoryFull);
            self.state = State::Killing;
        }
        if self.state == State::Killing {
            self.tree.signal(Signal::SIGKILL);
            self.sweep = (self.sweep * 9 / 8).min(SLOWEST_SWEEP);
            self.reap();
        }
        Ok(())
    }

    /// Waits for a signal, an order or the next check. Attempts to connect are handled while waiting. Returns whether there
    /// is an order.
    fn wait(&mut self) -> io::Result<bool> {
        let limit = match self.state {
            State::Killing => Some(self.sweep),
            State::Running | State::Terminating => (self.room.is_watched() || self.memory.is_watched()).then_some(LOOK_EVERY),
            State::Done => None,
        };
        let end = limit.map(|limit| Instant::now() + limit);
        loop {
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            let wait = left.map_or(PollTimeout::NONE, |left| PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX));
            let mut sources = vec![PollFd::new(self.signals.as_fd(), PollFlags::POLLIN)];
            // While the tree is being killed, orders do not matter, and a closed socket would wake every poll
            // immediately. Processes that wait for a connection are killed, too.
            if self.state != State::Killing {
                sources.push(PollFd::new(self.control.as_fd(), PollFlags::POLLIN));
                sources.extend(self.connections.descriptor().map(|listener| PollFd::new(listener, PollFlags::POLLIN)));
            }
            match poll(&mut sources, wait) {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(errno) => return Err(errno.into()),
            }
            let is_ready = |number: usize| sources.get(number).is_some_and(|source| source.any().unwrap_or(false));
            let (signal, order, attempt) = (is_ready(0), is_ready(1), is_ready(2));
            if attempt {
                self.connections.handle_attempt();
            }
            if !attempt || signal || order || left == Some(Duration::ZERO) {
                return Ok(order);
            }
        }
    }

    /// Handles an order from aye. A closed socket means that aye has ended, so no process may remain.
    fn handle_order(&mut self) {
        let mut order = [0; 1];
        match self.control.read(&mut order) {
            Ok(1) if order[0] == TERMINATE => {
                self.state = State::Terminating;
                self.tree.signal(Signal::SIGTERM);
                self.tree.signal(Signal::SIGCONT);
            }
            // If the command ends, its remaining processes are killed, as they are without an interrupt.
            Ok(1) if order[0] == INTERRUPT && self.report.is_none() => {
                tree::signal_group(self.main, Signal::SIGINT);
                tree::signal_group(self.main, Signal::SIGCONT);
            }
            Ok(1) if order[0] != KILL => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Ok(_) | Err(_) => self.state = State::Killing,
        }
    }

    fn handle_signals(&mut self) {
        // A signal that would end only the helper ends the command instead.
        while let Some(signal) = self.signals.next() {
            if signal != Signal::SIGCHLD {
                self.state = State::Killing;
            }
        }
    }

    /// Reaps every process that has ended. Once the main process ends, all others are killed, unless a grace period is
    /// in progress.
    fn reap(&mut self) {
        loop {
            match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::Exited(pid, code)) if pid == self.main => self.on_main_ended(HelperReport::Exited(code)),
                Ok(WaitStatus::Signaled(pid, signal, _)) if pid == self.main => {
                    self.on_main_ended(HelperReport::Signalled(signal as i32));
                }
                Ok(WaitStatus::StillAlive) => return,
                Err(Errno::ECHILD) => {
                    self.state = State::Done;
                    return;
                }
                Ok(_) | Err(Errno::EINTR) => {}
                Err(_) => return,
            }
        }
    }

    fn on_main_ended(&mut self, report: HelperReport) {
        self.report.get_or_insert(report);
        if self.state == State::Running {
            self.state = State::Killing;
            self.tree.signal(Signal::SIGKILL);
        }
    }
}

/// Closes descriptors that other threads of aye happened to have open when they started the helper.
#[expect(unsafe_code, reason = "no safe call closes descriptors that nobody owns")]
fn close_inherited() {
    // SAFETY: this is the first thing that the process does, and nothing in it owns a descriptor above 2.
    #[cfg(target_os = "linux")]
    let closed = unsafe { libc::syscall(libc::SYS_close_range, 3u32, u32::MAX, 0u32) } == 0;
    #[cfg(not(target_os = "linux"))]
    let closed = false;
    if !closed {
        for descriptor in 3..descriptor_limit() {
            // SAFETY: as above.
            unsafe { libc::close(descriptor) };
        }
    }
}

fn descriptor_limit() -> i32 {
    nix::unistd::sysconf(nix::unistd::SysconfVar::OPEN_MAX)
        .ok()
        .flatten()
        .and_then(|limit| i32::try_from(limit).ok())
        .unwrap_or(1024)
}
