//! Process under a tracer: its effects on files are counted, and at one of them the process is killed or the effect
//! fails.
#![expect(unsafe_code, reason = "the kernel's tracer has no safe face; each call below says why it is sound")]

#[path = "trace/calls.rs"]
mod calls;
#[path = "trace/kernel.rs"]
mod kernel;

use calls::Effect;
use kernel::{Stop, Syscall};
use std::collections::{HashMap, HashSet};
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Maximum running time of a traced process. A process that runs longer is considered stuck and is killed.
const STUCK: Duration = Duration::from_secs(180);

/// Kind of fault at an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Kill of the process before the effect.
    KilledBefore,
    /// Kill of the process after the effect.
    KilledAfter,
    /// Failure of this effect only, with this error number.
    Fails(i32),
    /// Failure of this effect and all later ones, as on a full or removed disk.
    FailsFromHereOn(i32),
    /// Failure of this effect and all later ones of the same kind on the same file.
    FailsAlways(i32),
}

/// Fault and the number of its effect, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Point {
    pub effect: usize,
    pub fault: Fault,
}

/// Result of a traced process.
#[derive(Debug)]
pub struct Traced {
    /// Exit code, or 128 plus the number of the signal.
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
    /// Descriptions of all effects.
    pub effects: Vec<String>,
    /// Effect at which the fault occurred.
    pub hit: Option<String>,
    pub stuck: bool,
}

impl Traced {
    /// Returns whether the process told the user or the client the reason for a failure.
    pub fn says_why(&self) -> bool {
        let tells = |line: &str| ["\"session_paused\"", "\"task_failed\""].iter().any(|event| line.contains(event));
        !self.stderr.trim().is_empty() || self.stdout.lines().any(tells)
    }
}

/// Runs a command to its end. Counts system calls of any of its threads that change something below one of the `roots`,
/// but not those of its child processes. The error explains why processes cannot be traced here.
pub fn trace(mut command: Command, roots: &[PathBuf], point: Option<Point>) -> Result<Traced, String> {
    // The tracer runs in a thread of its own, which starts this process and waits for nothing else.
    let roots: Vec<PathBuf> = roots.iter().map(|root| root.canonicalize().unwrap_or_else(|_| root.clone())).collect();
    thread::scope(|scope| scope.spawn(|| follow(&mut command, &roots, point)).join().unwrap())
}

/// Follows a running process to its end in a new thread, which returns the effects from this moment on. Another part of
/// the test starts the process and waits for it, but must not wait before the thread has finished: the wait would take
/// the status that the tracer needs.
pub fn follow_running(process: u32, roots: &[PathBuf], point: Point) -> Result<thread::JoinHandle<Vec<String>>, String> {
    let roots: Vec<PathBuf> = roots.iter().map(|root| root.canonicalize().unwrap_or_else(|_| root.clone())).collect();
    let (began, begun) = std::sync::mpsc::channel();
    let thread = thread::spawn(move || {
        let leader = process as i32;
        let mut tracer = Tracer::new(leader, &roots, Some(point));
        let seized = kernel::seize(leader);
        let goes_on = seized.is_ok();
        drop(began.send(seized));
        if goes_on {
            tracer.run_seized();
        }
        tracer.effects
    });
    let seized = begun.recv().map_err(|error| error.to_string())?;
    seized.map(|()| thread).map_err(|error| format!("nobody can be traced here: {error}"))
}

fn follow(command: &mut Command, roots: &[PathBuf], point: Option<Point>) -> Result<Traced, String> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // SAFETY: between fork and exec, the closure makes a single system call, takes no lock and allocates no memory.
    unsafe { command.pre_exec(kernel::ask_to_be_traced) };
    let mut child = command.spawn().map_err(|error| format!("nobody can be traced here: {error}"))?;
    let leader = child.id() as i32;
    let (stdout, stderr) = (collect(child.stdout.take().unwrap()), collect(child.stderr.take().unwrap()));
    let over = Arc::new(AtomicBool::new(false));
    let watch = watch(leader, &over);
    let mut tracer = Tracer::new(leader, roots, point);
    let code = tracer.run();
    over.store(true, Ordering::Release);
    let stuck = watch.join().unwrap();
    let (stdout, stderr) = (stdout.join().unwrap(), stderr.join().unwrap());
    Ok(Traced { code: code?, stdout, stderr, effects: tracer.effects, hit: tracer.hit, stuck })
}

fn collect(mut from: impl Read + Send + 'static) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        drop(from.read_to_end(&mut bytes));
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// Kills a process that does not end in time. The thread returns whether that was necessary.
fn watch(leader: i32, over: &Arc<AtomicBool>) -> thread::JoinHandle<bool> {
    let (over, deadline) = (Arc::clone(over), Instant::now() + STUCK);
    thread::spawn(move || {
        while !over.load(Ordering::Acquire) {
            if Instant::now() > deadline {
                kernel::kill(leader);
                return true;
            }
            thread::sleep(Duration::from_millis(2));
        }
        false
    })
}

/// System call between its entry and its exit.
struct Pending {
    number: usize,
    error: Option<i32>,
}

struct Tracer<'a> {
    leader: i32,
    roots: &'a [PathBuf],
    point: Option<Point>,
    threads: HashSet<i32>,
    pending: HashMap<i32, Pending>,
    effects: Vec<String>,
    hit: Option<String>,
    dying: bool,
}

impl<'a> Tracer<'a> {
    fn new(leader: i32, roots: &'a [PathBuf], point: Option<Point>) -> Self {
        let (threads, pending) = (HashSet::new(), HashMap::new());
        Self { leader, roots, point, threads, pending, effects: Vec::new(), hit: None, dying: false }
    }

    /// Follows the process until none of its threads is left. Returns the exit code, or 128 plus the number of the
    /// signal.
    fn run(&mut self) -> Result<i32, String> {
        let mut code = None;
        while let Some((thread, stop)) = kernel::wait() {
            match stop {
                Stop::Ended(ended) => {
                    self.threads.remove(&thread);
                    if thread == self.leader {
                        code = Some(ended);
                    }
                }
                // The first stop follows exec or the start of a thread, so its signal is not passed on.
                Stop::Signal(signal) if self.threads.insert(thread) => {
                    let first = thread == self.leader && signal == libc::SIGTRAP;
                    if first && let Err(error) = kernel::follow_threads(thread) {
                        kernel::kill(self.leader);
                        return Err(format!("nobody can be traced here: {error}"));
                    }
                    kernel::go_on(thread, 0);
                }
                Stop::Signal(signal) => kernel::go_on(thread, signal),
                Stop::Event => kernel::go_on(thread, 0),
                Stop::Syscall => {
                    self.syscall(thread);
                    if !self.dying {
                        kernel::go_on(thread, 0);
                    }
                }
            }
        }
        code.ok_or_else(|| "it was lost".to_owned())
    }

    /// Does the same as `run` for a process whose threads have no first stop.
    fn run_seized(&mut self) {
        while let Some((thread, stop)) = kernel::wait() {
            match stop {
                Stop::Ended(_) => {}
                Stop::Signal(signal) => kernel::go_on(thread, signal),
                Stop::Event => kernel::go_on(thread, 0),
                Stop::Syscall => {
                    self.syscall(thread);
                    if !self.dying {
                        kernel::go_on(thread, 0);
                    }
                }
            }
        }
    }

    fn syscall(&mut self, thread: i32) {
        match kernel::syscall(thread) {
            Some(Syscall::Begins { number, arguments }) => {
                if let Some(effect) = Effect::of(thread, number, &arguments, self.roots) {
                    self.begins(thread, &effect);
                }
            }
            Some(Syscall::Ended) => self.ended(thread),
            None => {}
        }
    }

    fn begins(&mut self, thread: i32, effect: &Effect) {
        self.effects.push(effect.words.clone());
        let number = self.effects.len();
        let Some(point) = self.point else { return };
        let here = point.effect == number;
        if here {
            self.hit = Some(effect.words.clone());
        }
        let error = match point.fault {
            Fault::KilledBefore if here => return self.kill(),
            Fault::Fails(error) if here => Some(error),
            // Calls that free space also succeed on a full disk.
            Fault::FailsFromHereOn(error) if number >= point.effect && (error != libc::ENOSPC || effect.takes_room) => {
                Some(error)
            }
            Fault::FailsAlways(error) if number >= point.effect && self.hit.as_ref() == Some(&effect.words) => Some(error),
            _ => None,
        };
        if error.is_some() {
            kernel::call_off(thread);
        }
        self.pending.insert(thread, Pending { number, error });
    }

    fn ended(&mut self, thread: i32) {
        let Some(pending) = self.pending.remove(&thread) else { return };
        if let Some(error) = pending.error {
            kernel::fail(thread, error);
        }
        if self.point == Some(Point { effect: pending.number, fault: Fault::KilledAfter }) {
            self.kill();
        }
    }

    fn kill(&mut self) {
        self.dying = true;
        kernel::kill(self.leader);
    }
}
