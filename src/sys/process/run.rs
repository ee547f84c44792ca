//! Execution of a command by aye: starts the helper, captures the output, and ends the command after its timeout.

use super::capture::{OutputCapture, whole_start};
use super::handshake::{self, HostDescriptors};
use super::messages::{self, HelperReport, INTERRUPT, Job, KILL, TERMINATE, TerminalSize};
use super::shell::Shell;
use super::supervise::WITHOUT_NAMESPACES;
use crate::sys::proxy::{DeniedHost, DeniedHosts, Proxy};
use crate::sys::sandbox::Confinement;
use crate::sys::supervisor::SUPERVISE;
use nix::sys::signal::Signal;
use std::convert::Infallible;
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, UnixStream};
use tokio::process::{Child, Command};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Time between `SIGTERM` and `SIGKILL` after a timeout.
const TIMEOUT_GRACE: Duration = Duration::from_secs(5);
/// Time between `SIGTERM` and `SIGKILL` after a cancellation by the user.
const KILL_GRACE: Duration = Duration::from_millis(500);
/// Time between `SIGINT` and `SIGKILL` after an interrupt by the user.
pub(super) const INTERRUPT_GRACE: Duration = Duration::from_secs(2);
/// Time to wait for output after the last process has ended. Only a descriptor that was passed to an unrelated process
/// takes that long.
pub(super) const DRAIN_LIMIT: Duration = Duration::from_millis(200);
/// Maximum number of bytes read after the end. No pipe holds more.
const DRAIN_BYTES: usize = 1024 * 1024;
/// Time for the helper to end a killed process tree.
const REPORT_LIMIT: Duration = Duration::from_secs(5);
/// Time for the helper until the command can start.
const READY_LIMIT: Duration = Duration::from_secs(10);
/// Maximum length of one argument in the kernel, including the final NUL.
const MAX_LINE_BYTES: usize = 128 * 1024;
/// Time for the helper itself to exit after its report.
pub(super) const HELPER_END_LIMIT: Duration = Duration::from_secs(1);
const CHUNK_BYTES: usize = 64 * 1024;

/// Program that is started as the helper.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Helper {
    pub program: PathBuf,
    pub namespaces: Namespaces,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Namespaces {
    #[default]
    WherePossible,
    Never,
}

impl Default for Helper {
    /// Returns this program itself, even if a different file has replaced it on disk.
    fn default() -> Self {
        let program = if cfg!(target_os = "linux") { Ok(PathBuf::from("/proc/self/exe")) } else { std::env::current_exe() };
        Self { program: program.unwrap_or_else(|_| PathBuf::from("aye")), namespaces: Namespaces::default() }
    }
}

/// A line to run.
#[derive(Debug, Clone)]
pub(crate) struct CommandSpec {
    pub line: String,
    /// Shell that runs the line.
    pub shell: Shell,
    /// Absolute path with symlinks resolved.
    pub directory: PathBuf,
    /// Complete environment. No other variables are passed.
    pub environment: Vec<(OsString, OsString)>,
    pub stdin: Option<String>,
    /// Size of the terminal that replaces input and output; `None` without a terminal.
    pub terminal: Option<TerminalSize>,
    /// Sandbox of the command; `None` if the policy sets `off`.
    pub confinement: Option<Confinement>,
    /// Proxy for the command in a separate network. Without one, no server is reachable.
    pub proxy: Option<Proxy>,
    pub timeout: Duration,
    /// Maximum number of stored bytes of stdout, and of stderr.
    pub max_output_bytes: usize,
    pub helper: Helper,
}

/// Reason why a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Exited(i32),
    Signalled(i32),
    TimedOut,
    Killed,
    /// Interrupted by the user.
    Interrupted,
    /// The helper process ended the command before its layers filled the disk.
    DiskFull,
    /// The helper process ended the command because it wrote more to its layers than the limit allows.
    LayerFull,
    /// The helper process ended the command because its shared memory exceeded the memory limit.
    MemoryFull,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FinishedRun {
    pub end: End,
    pub stdout: OutputCapture,
    pub stderr: OutputCapture,
    /// Hosts that aye's proxy refused.
    pub denied_hosts: Vec<DeniedHost>,
}

/// A command that the helper is about to start, or has started.
pub(super) struct StartedCommand {
    pub child: Child,
    pub control: UnixStream,
    pub pieces: HostDescriptors,
    pub way_out: ProxyHandle,
}

/// The command's proxy and its refused hosts.
pub(super) struct ProxyHandle {
    served: Option<(Proxy, TcpListener)>,
    pub denied: DeniedHosts,
}

impl ProxyHandle {
    /// Runs the proxy until it is dropped.
    pub(super) async fn serve(&mut self) -> Infallible {
        match self.served.take() {
            Some((proxy, listener)) => proxy.serve(listener, self.denied.clone()).await,
            None => std::future::pending().await,
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum ProcessError {
    #[error("the command is longer than {} bytes; write it to a script and run that", MAX_LINE_BYTES - 1)]
    LineTooLong,
    #[error("no `{0}` found in /bin, /usr/bin, /usr/local/bin or PATH; install it")]
    NoShell(Shell),
    #[error("cannot start the command: {0}")]
    NotStarted(String),
    #[error("the helper process ended before the command; it is unknown whether the command finished")]
    HelperLost,
    #[error("cannot start the helper process: {0}")]
    Helper(#[from] io::Error),
}

/// Callback that receives the output of a command.
type OutputCallback = Box<dyn Fn(&[u8]) + Send + Sync>;

/// Output stream of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Printed {
    Stdout,
    Stderr,
}

/// A piece of output, unchanged.
#[derive(Debug)]
pub(crate) struct OutputChunk {
    pub on: Printed,
    pub bytes: Vec<u8>,
}

/// Receivers of a command's output that stay active after the caller stops waiting.
pub(crate) struct OutputReceivers {
    /// Receives the full output in pieces that do not split characters.
    pub tap: OutputCallback,
    /// Also receives the full output. If this receiver is slow, the command waits.
    pub whole: Option<mpsc::Sender<OutputChunk>>,
    /// Signals that the time limit no longer applies.
    pub unhurried: CancellationToken,
    /// Cancelled when the user interrupts the command. The command gets `SIGINT`, and is killed if it has not ended
    /// after 2 s.
    pub interrupt: CancellationToken,
}

impl Default for OutputReceivers {
    /// Returns no receivers.
    fn default() -> Self {
        Self { tap: Box::new(|_| ()), whole: None, unhurried: CancellationToken::new(), interrupt: CancellationToken::new() }
    }
}

/// Runs the line to its end. Live output is sent to `live` if there is space. Dropping this future kills all processes.
#[cfg(test)]
pub(crate) async fn run(
    spec: CommandSpec,
    live: mpsc::Sender<String>,
    kill: CancellationToken,
) -> Result<FinishedRun, ProcessError> {
    run_with_receivers(spec, live, kill, OutputReceivers::default()).await
}

/// Runs the line to its end, with receivers that stay active after the caller stops waiting.
pub(crate) async fn run_with_receivers(
    spec: CommandSpec,
    live: mpsc::Sender<String>,
    kill: CancellationToken,
    receivers: OutputReceivers,
) -> Result<FinishedRun, ProcessError> {
    let OutputReceivers { tap, whole, unhurried, interrupt } = receivers;
    let started = tokio::select! {
        biased;
        () = interrupt.cancelled() => None,
        started = start(&spec, StdioMode::Read, &kill) => started?,
    };
    let Some(StartedCommand { mut child, mut control, pieces: _, mut way_out }) = started else {
        return Ok(FinishedRun {
            end: if kill.is_cancelled() { End::Killed } else { End::Interrupted },
            stdout: OutputCapture::default(),
            stderr: OutputCapture::default(),
            denied_hosts: Vec::new(),
        });
    };
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let stop = CancellationToken::new();
    let taker = |on| OutputSink { on, limit: spec.max_output_bytes, live: live.clone(), tap: &*tap, whole: whole.clone() };
    let outputs = async {
        tokio::join!(keep(stdout, taker(Printed::Stdout), stop.clone()), keep(stderr, taker(Printed::Stderr), stop.clone()))
    };
    let end = async {
        let late = async {
            tokio::select! {
                () = tokio::time::sleep(spec.timeout) => {}
                () = unhurried.cancelled() => std::future::pending().await,
            }
        };
        let end = wait_for_end(&mut control, late, StopConditions { kill: &kill, interrupt: &interrupt }).await;
        let drained = stop.clone();
        tokio::spawn(async move {
            tokio::time::sleep(DRAIN_LIMIT).await;
            drained.cancel();
        });
        end
    };
    let ((stdout, stderr), end) = tokio::select! {
        done = async { tokio::join!(outputs, end) } => done,
        never = way_out.serve() => match never {},
    };
    drop(control);
    // If it takes longer, the runtime reaps it later.
    let _ = tokio::time::timeout(HELPER_END_LIMIT, child.wait()).await;
    Ok(FinishedRun { end: end?, stdout, stderr, denied_hosts: way_out.denied.list() })
}

/// aye's ends of a command's streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StdioMode {
    /// The output of the command.
    Read,
    /// The output and the input of the command.
    Both,
    Terminal(TerminalSize),
}

/// Starts the helper with the command; `None` if `kill` was cancelled first.
pub(super) async fn start(
    spec: &CommandSpec,
    ends: StdioMode,
    kill: &CancellationToken,
) -> Result<Option<StartedCommand>, ProcessError> {
    if spec.line.len() >= MAX_LINE_BYTES {
        return Err(ProcessError::LineTooLong);
    }
    let terminal = match ends {
        StdioMode::Terminal(size) => Some(size),
        StdioMode::Read | StdioMode::Both => None,
    };
    let job = Job {
        shell: find_shell(spec.shell, &spec.environment).ok_or(ProcessError::NoShell(spec.shell))?,
        words: spec.shell.options().iter().map(|&word| word.to_owned()).chain([spec.line.clone()]).collect(),
        directory: spec.directory.as_os_str().as_bytes().to_vec(),
        stdin: spec.stdin.clone(),
        is_fed: ends == StdioMode::Both,
        terminal,
        confinement: spec.confinement.clone(),
    };
    let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
    ours.set_nonblocking(true)?;
    let mut control = UnixStream::from_std(ours)?;
    let (stdout, stderr) = if terminal.is_some() { (Stdio::null(), Stdio::null()) } else { (Stdio::piped(), Stdio::piped()) };
    let child = Command::new(&spec.helper.program)
        .arg(SUPERVISE)
        .args((spec.helper.namespaces == Namespaces::Never).then_some(WITHOUT_NAMESPACES))
        .env_clear()
        .envs(spec.environment.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(stdout)
        .stderr(stderr)
        .spawn()?;
    control.write_all(&messages::encode(&job)?).await?;
    let ready = tokio::select! {
        ready = handshake::ready(&control) => ready,
        () = kill.cancelled() => return Ok(None),
        () = tokio::time::sleep(READY_LIMIT) => {
            return Err(ProcessError::NotStarted(format!("the helper process was not ready within {} s", READY_LIMIT.as_secs())));
        }
    };
    let mut pieces = match ready {
        Ok(Ok(pieces)) => pieces,
        Ok(Err(report)) => return Err(parse_end(Ok(report)).err().unwrap_or(ProcessError::HelperLost)),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            return Err(ProcessError::NotStarted("the helper process ended before the command started".to_owned()));
        }
        Err(error) => return Err(ProcessError::NotStarted(error.to_string())),
    };
    let served = spec.proxy.clone().zip(pieces.listener.take());
    Ok(Some(StartedCommand { child, control, pieces, way_out: ProxyHandle { served, denied: DeniedHosts::default() } }))
}

/// Returns the absolute path of the shell. Relative directories in `PATH` are skipped, because they could be in the
/// workspace.
fn find_shell(shell: Shell, environment: &[(OsString, OsString)]) -> Option<String> {
    let path = environment.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value.clone()).unwrap_or_default();
    let fixed = ["/bin", "/usr/bin", "/usr/local/bin"].into_iter().map(PathBuf::from);
    fixed
        .chain(std::env::split_paths(&path).filter(|directory| directory.is_absolute()))
        .map(|directory| directory.join(shell.name()))
        .find(|shell| is_executable(shell))
        .and_then(|shell| shell.to_str().map(str::to_owned))
}

fn is_executable(path: &Path) -> bool {
    path.is_file() && nix::unistd::access(path, nix::unistd::AccessFlags::X_OK).is_ok()
}

/// Conditions that end a command early.
pub(super) struct StopConditions<'a> {
    pub kill: &'a CancellationToken,
    pub interrupt: &'a CancellationToken,
}

pub(super) async fn wait_for_end(
    control: &mut UnixStream,
    late: impl Future<Output = ()>,
    StopConditions { kill, interrupt }: StopConditions<'_>,
) -> Result<End, ProcessError> {
    let (from_helper, mut to_helper) = control.split();
    let report = handshake::receive(from_helper.as_ref());
    tokio::pin!(report);
    let (end, order, grace) = tokio::select! {
        biased;
        report = &mut report => return parse_end(report),
        () = kill.cancelled() => (End::Killed, TERMINATE, KILL_GRACE),
        () = interrupt.cancelled() => (End::Interrupted, INTERRUPT, INTERRUPT_GRACE),
        () = late => (End::TimedOut, TERMINATE, TIMEOUT_GRACE),
    };
    // A helper that has ended cannot receive the order; its report says so.
    let _ = to_helper.write_all(&[order]).await;
    tokio::select! {
        report = &mut report => return parse_end(report).map(|_| end),
        () = tokio::time::sleep(grace) => {}
        // A kill does not wait for the rest of the grace period, nor does an interrupt of a command that has timed out.
        () = kill.cancelled(), if end != End::Killed => {}
        () = interrupt.cancelled(), if end == End::TimedOut => {}
    }
    let _ = to_helper.write_all(&[KILL]).await;
    match tokio::time::timeout(REPORT_LIMIT, report).await {
        Ok(report) => parse_end(report).map(|_| end),
        Err(_) => Err(ProcessError::HelperLost),
    }
}

/// Returns the name of a signal, such as `SIGKILL`.
pub(crate) fn signal_name(number: i32) -> Option<&'static str> {
    Signal::try_from(number).ok().map(Signal::as_str)
}

fn parse_end(report: io::Result<HelperReport>) -> Result<End, ProcessError> {
    match report {
        Ok(HelperReport::Exited(code)) => Ok(End::Exited(code)),
        Ok(HelperReport::Signalled(signal)) => Ok(End::Signalled(signal)),
        Ok(HelperReport::DiskFull) => Ok(End::DiskFull),
        Ok(HelperReport::LayerFull) => Ok(End::LayerFull),
        Ok(HelperReport::MemoryFull) => Ok(End::MemoryFull),
        Ok(HelperReport::NotStarted(message)) => Err(ProcessError::NotStarted(message)),
        Ok(HelperReport::Ready { .. }) | Err(_) => Err(ProcessError::HelperLost),
    }
}

/// Receivers of one output.
struct OutputSink<'a> {
    on: Printed,
    limit: usize,
    live: mpsc::Sender<String>,
    tap: &'a (dyn Fn(&[u8]) + Send + Sync),
    whole: Option<mpsc::Sender<OutputChunk>>,
}

/// Reads to the end, or until `stop` if another process still has the other end open.
async fn keep(from: Option<impl AsyncRead + Unpin>, taker: OutputSink<'_>, stop: CancellationToken) -> OutputCapture {
    let OutputSink { on, limit, live, tap, whole } = taker;
    let mut captured = OutputCapture::new(limit);
    let Some(mut from) = from else { return captured };
    let mut buffer = vec![0; CHUNK_BYTES];
    let (mut carried, mut cut) = (Vec::new(), Vec::new());
    let mut late = 0;
    while late < DRAIN_BYTES {
        let count = tokio::select! {
            biased;
            count = from.read(&mut buffer) => count.unwrap_or(0),
            () = stop.cancelled() => 0,
        };
        if count == 0 {
            break;
        }
        late += if stop.is_cancelled() { count } else { 0 };
        captured.push(&buffer[..count]);
        show(&buffer[..count], &mut carried, &live);
        cut.extend_from_slice(&buffer[..count]);
        let at = whole_start(&cut).len();
        tap(&cut[..at]);
        cut.drain(..at);
        if let Some(to) = &whole {
            // A dropped receiver needs no further output.
            let _ = to.send(OutputChunk { on, bytes: buffer[..count].to_vec() }).await;
        }
    }
    if !cut.is_empty() {
        tap(&cut);
    }
    if !carried.is_empty() {
        let _ = live.try_send(String::from_utf8_lossy(&carried).into_owned());
    }
    captured
}

/// Sends whole characters. A character that is cut at the end of the chunk waits for its rest.
fn show(chunk: &[u8], carried: &mut Vec<u8>, live: &mpsc::Sender<String>) {
    if live.capacity() == 0 {
        carried.clear();
        return;
    }
    carried.extend_from_slice(chunk);
    let whole = whole_start(carried).len();
    let text = String::from_utf8_lossy(&carried[..whole]).into_owned();
    carried.drain(..whole);
    if !text.is_empty() {
        let _ = live.try_send(text);
    }
}
