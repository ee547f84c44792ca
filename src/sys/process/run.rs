//! Runs a command: starts the helper, captures the output, and ends the command after a timeout.

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
use std::net::SocketAddr;
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
/// Time between `SIGTERM` and `SIGKILL` after the user stops the command.
const KILL_GRACE: Duration = Duration::from_millis(500);
/// Time between `SIGINT` and `SIGKILL` after the user interrupts the command.
pub(super) const INTERRUPT_GRACE: Duration = Duration::from_secs(2);
/// Time to wait for further output after the last process has ended. It elapses in full only if an unrelated process
/// still has the output open.
pub(super) const DRAIN_LIMIT: Duration = Duration::from_millis(200);
/// Maximum number of bytes to read once the command has ended. No pipe contains more.
const DRAIN_BYTES: usize = 1024 * 1024;
/// Time limit within which the helper must end a killed process tree.
const REPORT_LIMIT: Duration = Duration::from_secs(5);
/// Time limit within which the helper must prepare the command.
const READY_LIMIT: Duration = Duration::from_secs(10);
/// Maximum length in bytes of a single argument in the kernel, including the final NUL.
const MAX_LINE_BYTES: usize = 128 * 1024;
/// Time limit within which the helper must exit after its report.
pub(super) const HELPER_END_LIMIT: Duration = Duration::from_secs(1);
const CHUNK_BYTES: usize = 64 * 1024;

/// Program to start as the helper.
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
    /// Uses the running program itself as the helper, even if another file has replaced it on disk.
    fn default() -> Self {
        let program = if cfg!(target_os = "linux") { Ok(PathBuf::from("/proc/self/exe")) } else { std::env::current_exe() };
        Self { program: program.unwrap_or_else(|_| PathBuf::from("aye")), namespaces: Namespaces::default() }
    }
}

/// A shell line to run, and how to run it.
#[derive(Debug, Clone)]
pub(crate) struct CommandSpec {
    pub line: String,
    /// Shell that runs the line.
    pub shell: Shell,
    /// Absolute path of the working directory, with symlinks resolved.
    pub directory: PathBuf,
    /// The command's complete environment. No other variables are passed.
    pub environment: Vec<(OsString, OsString)>,
    pub stdin: Option<String>,
    /// Size of the terminal that takes the place of input and output, or `None` to run without a terminal.
    pub terminal: Option<TerminalSize>,
    /// Sandbox for the command, or `None` if the policy sets `off`.
    pub confinement: Option<Confinement>,
    /// Proxy for a command that has a network namespace of its own. Without a proxy, such a command cannot connect to
    /// any server.
    pub proxy: Option<Proxy>,
    pub timeout: Duration,
    /// Maximum number of bytes to store of each of stdout and stderr.
    pub max_output_bytes: usize,
    pub helper: Helper,
}

/// Why a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Exited(i32),
    Signalled(i32),
    TimedOut,
    Killed,
    /// The user interrupted the command.
    Interrupted,
    /// The helper killed the command before its layers filled the disk.
    DiskFull,
    /// The helper killed the command because it wrote more to its layers than allowed.
    LayerFull,
    /// The helper killed the command because its shared memory exceeded the memory limit.
    MemoryFull,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FinishedRun {
    pub end: End,
    pub stdout: OutputCapture,
    pub stderr: OutputCapture,
    /// Hosts to which aye's proxy denied access.
    pub denied_hosts: Vec<DeniedHost>,
    /// Addresses to which the command tried to connect without aye's proxy, although it has no network access.
    pub bypasses: Vec<SocketAddr>,
}

/// How a command ended, as reported by the helper.
#[derive(Debug)]
pub(super) struct ReportedEnd {
    pub end: End,
    pub bypasses: Vec<SocketAddr>,
}

/// A command that the helper is starting or has started.
pub(super) struct StartedCommand {
    pub child: Child,
    pub control: UnixStream,
    pub pieces: HostDescriptors,
    pub way_out: ProxyHandle,
}

/// A command's proxy, together with the hosts to which it denied access.
pub(super) struct ProxyHandle {
    served: Option<(Proxy, TcpListener)>,
    pub denied: DeniedHosts,
}

impl ProxyHandle {
    /// Runs the proxy until this future is dropped.
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

/// Callback that receives a command's output.
type OutputCallback = Box<dyn Fn(&[u8]) + Send + Sync>;

/// Stream to which a command wrote output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Printed {
    Stdout,
    Stderr,
}

/// An unmodified chunk of output.
#[derive(Debug)]
pub(crate) struct OutputChunk {
    pub on: Printed,
    pub bytes: Vec<u8>,
}

/// Receivers of a command's output, which remain active after the caller has stopped waiting.
pub(crate) struct OutputReceivers {
    /// Callback for the full output, in chunks that do not split characters.
    pub tap: OutputCallback,
    /// Channel for the full output. If the receiver is slow, the command has to wait.
    pub whole: Option<mpsc::Sender<OutputChunk>>,
    /// Token that is cancelled once the time limit no longer applies.
    pub unhurried: CancellationToken,
    /// Token that is cancelled when the user interrupts the command. The command then receives `SIGINT`, and is killed
    /// if it has not ended within 2 s.
    pub interrupt: CancellationToken,
}

impl Default for OutputReceivers {
    /// Returns receivers that ignore all output.
    fn default() -> Self {
        Self { tap: Box::new(|_| ()), whole: None, unhurried: CancellationToken::new(), interrupt: CancellationToken::new() }
    }
}

/// Runs the line until it ends. Sends live output to `live` as long as there is space. Dropping this future kills all
/// of the command's processes.
#[cfg(test)]
pub(crate) async fn run(
    spec: CommandSpec,
    live: mpsc::Sender<String>,
    kill: CancellationToken,
) -> Result<FinishedRun, ProcessError> {
    run_with_receivers(spec, live, kill, OutputReceivers::default()).await
}

/// Runs the line until it ends, with receivers that remain active after the caller has stopped waiting.
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
            bypasses: Vec::new(),
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
    // If the helper takes longer, the runtime reaps it later.
    let _ = tokio::time::timeout(HELPER_END_LIMIT, child.wait()).await;
    let ReportedEnd { end, bypasses } = end?;
    Ok(FinishedRun { end, stdout, stderr, denied_hosts: way_out.denied.list(), bypasses })
}

/// Which of a command's streams aye reads and writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StdioMode {
    /// aye reads the output.
    Read,
    /// aye reads the output and writes the input.
    Both,
    Terminal(TerminalSize),
}

/// Starts the helper, which starts the command. Returns `None` if `kill` is cancelled first.
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
        Ok(Err(report)) => return Err(parse_end(report).err().unwrap_or(ProcessError::HelperLost)),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            return Err(ProcessError::NotStarted("the helper process ended before the command started".to_owned()));
        }
        Err(error) => return Err(ProcessError::NotStarted(error.to_string())),
    };
    let served = spec.proxy.clone().zip(pieces.listener.take());
    Ok(Some(StartedCommand { child, control, pieces, way_out: ProxyHandle { served, denied: DeniedHosts::default() } }))
}

/// Returns the absolute path of the shell, or `None` if it is not installed. Relative directories in `PATH` are
/// skipped, because they could be in the workspace.
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

/// Tokens that end a command early.
pub(super) struct StopConditions<'a> {
    pub kill: &'a CancellationToken,
    pub interrupt: &'a CancellationToken,
}

pub(super) async fn wait_for_end(
    control: &mut UnixStream,
    late: impl Future<Output = ()>,
    StopConditions { kill, interrupt }: StopConditions<'_>,
) -> Result<ReportedEnd, ProcessError> {
    let (from_helper, mut to_helper) = control.split();
    let report = receive_end(from_helper.as_ref());
    tokio::pin!(report);
    let (end, order, grace) = tokio::select! {
        biased;
        report = &mut report => return report,
        () = kill.cancelled() => (End::Killed, TERMINATE, KILL_GRACE),
        () = interrupt.cancelled() => (End::Interrupted, INTERRUPT, INTERRUPT_GRACE),
        () = late => (End::TimedOut, TERMINATE, TIMEOUT_GRACE),
    };
    // A helper that has ended cannot receive the order, but its report shows that.
    let _ = to_helper.write_all(&[order]).await;
    tokio::select! {
        report = &mut report => return report.map(|reported| ReportedEnd { end, ..reported }),
        () = tokio::time::sleep(grace) => {}
        // A kill does not wait for the rest of the grace period. Neither does an interrupt of a command that has timed
        // out.
        () = kill.cancelled(), if end != End::Killed => {}
        () = interrupt.cancelled(), if end == End::TimedOut => {}
    }
    let _ = to_helper.write_all(&[KILL]).await;
    match tokio::time::timeout(REPORT_LIMIT, report).await {
        Ok(report) => report.map(|reported| ReportedEnd { end, ..reported }),
        Err(_) => Err(ProcessError::HelperLost),
    }
}

/// Returns the name of a signal, such as `SIGKILL`.
pub(crate) fn signal_name(number: i32) -> Option<&'static str> {
    Signal::try_from(number).ok().map(Signal::as_str)
}

/// Receives the helper's reports until the command has ended.
async fn receive_end(control: &UnixStream) -> Result<ReportedEnd, ProcessError> {
    let receive = async || handshake::receive(control).await.map_err(|_| ProcessError::HelperLost);
    let (report, bypasses) = match receive().await? {
        HelperReport::Bypasses(bypasses) => (receive().await?, bypasses),
        report => (report, Vec::new()),
    };
    parse_end(report).map(|end| ReportedEnd { end, bypasses })
}

fn parse_end(report: HelperReport) -> Result<End, ProcessError> {
    match report {
        HelperReport::Exited(code) => Ok(End::Exited(code)),
        HelperReport::Signalled(signal) => Ok(End::Signalled(signal)),
        HelperReport::DiskFull => Ok(End::DiskFull),
        HelperReport::LayerFull => Ok(End::LayerFull),
        HelperReport::MemoryFull => Ok(End::MemoryFull),
        HelperReport::NotStarted(message) => Err(ProcessError::NotStarted(message)),
        HelperReport::Ready { .. } | HelperReport::Bypasses(_) => Err(ProcessError::HelperLost),
    }
}

/// Where the output of one stream is sent, and how much of it is stored.
struct OutputSink<'a> {
    on: Printed,
    limit: usize,
    live: mpsc::Sender<String>,
    tap: &'a (dyn Fn(&[u8]) + Send + Sync),
    whole: Option<mpsc::Sender<OutputChunk>>,
}

/// Reads an output stream until it ends, or until `stop` is cancelled if another process still has the other end open.
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

/// Sends complete characters to `live`. If the chunk ends within a character, that character is sent with the next
/// chunk.
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
