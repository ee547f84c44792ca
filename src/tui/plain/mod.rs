//! Line mode for screen readers, dumb terminals and pipes. It only appends output and uses neither cursor movement nor
//! colours.
//!
//! Lines are edited by the terminal, which works with screen readers and in editors that contain a shell.

mod app;
mod entries;
mod event_printer;
mod lines;
mod question;
#[cfg(test)]
mod tests;
mod writer;

use super::channels::{CommandQueue, EventReceiver, StartupChannels, StartupEvent};
use super::clipboard;
use super::interface::{ExitReason, TuiHandles, TuiOutcome};
use super::model::{UiEffect, UiModel};
use super::update::Msg;
use crate::protocol::{HostRequest, Query, SessionCommand};
use app::LineApp;
use lines::{LineInput, Lines};
use ratatui::layout::Size;
use std::io::{self, IsTerminal, Stdout};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use writer::LineWriter;

/// Interval between progress lines while an operation is running.
const PROGRESS: Duration = Duration::from_secs(10);
/// Maximum number of events that are processed before other input is polled.
const EVENTS_A_TURN: usize = 1024;
/// Nominal screen size. Line mode has no layout, but dialogs require a size.
const SIZE: Size = Size::new(120, 40);

/// Runs line mode until the user quits, the session ends or a signal is received.
pub(crate) async fn run(front: TuiHandles) -> io::Result<TuiOutcome> {
    let mut host = Host::new(front)?;
    let ended = host.run().await;
    let Host { mut desk, lines, .. } = host;
    drop(lines);
    desk.paper.finish()?;
    let resume_hint = desk.model.info.session.as_ref().map(|id| format!("aye --resume={id}"));
    let mode = desk.model.info.model_access.as_ref().map(|_| desk.model.info.header.mode);
    // The response has already been printed.
    let (typed, unsent) = (desk.model.unkept(), desk.model.startup.waiting_prompt);
    let (session, model) = (desk.model.info.session, desk.model.info.header.model);
    Ok(TuiOutcome { ended: ended?, last_answer: None, typed, unsent, model, mode, resume_hint, session })
}

struct Host {
    desk: LineApp<io::BufWriter<Stdout>>,
    lines: Lines,
    heard: mpsc::UnboundedReceiver<LineInput>,
    /// Whether the input is a terminal. If so, the end of the input means that the user wants to quit.
    is_terminal: bool,
    inlet: EventReceiver,
    commands: CommandQueue<SessionCommand>,
    queries: CommandQueue<Query>,
    beginning: StartupChannels,
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
    began: Instant,
    /// Number of lines printed by the time of the last check, and the time of that check.
    quiet_since: (u64, Instant),
}

enum PlainEvent {
    Heard(LineInput),
    Msg(Msg),
    Events,
    Interrupt,
    CommandSent,
    Quiet,
}

impl Host {
    fn new(front: TuiHandles) -> io::Result<Self> {
        let (stdin, stdout) = (io::stdin(), io::stdout());
        let (is_terminal, echoes) = (stdin.is_terminal(), stdin.is_terminal() && stdout.is_terminal());
        let shown = if stdout.is_terminal() { Some(stdout.as_fd().try_clone_to_owned()?) } else { None };
        let (lines, heard) = Lines::start(stdin.as_fd().try_clone_to_owned()?, shown)?;
        let paper = LineWriter::new(io::BufWriter::new(stdout), front.options.terminal.ascii, echoes);
        let mut desk = LineApp::new(UiModel::new(front.options, front.prompt, SIZE), paper);
        desk.is_piped = !is_terminal;
        Ok(Self {
            desk,
            lines,
            heard,
            is_terminal,
            inlet: EventReceiver::new(front.events, EVENTS_A_TURN),
            commands: CommandQueue::new(front.commands),
            queries: CommandQueue::new(front.queries),
            beginning: StartupChannels::new(front.start, front.ahead),
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
            began: Instant::now(),
            quiet_since: (0, Instant::now()),
        })
    }

    async fn run(&mut self) -> io::Result<ExitReason> {
        loop {
            let happened = self.next().await;
            let now = self.now();
            let mut effects = match happened {
                PlainEvent::Heard(heard) => {
                    let ends = matches!(heard, LineInput::Closed(_)) && self.is_terminal;
                    let mut effects = self.desk.on_line(heard, now)?;
                    if ends {
                        self.desk.leave(&mut effects);
                    }
                    effects
                }
                PlainEvent::Msg(msg) => self.desk.on_message(msg, now)?,
                PlainEvent::Events => {
                    let mut effects = Vec::new();
                    for event in self.inlet.take() {
                        effects.extend(self.desk.on_message(Msg::Event(Box::new(event)), now)?);
                    }
                    effects
                }
                PlainEvent::Interrupt => self.desk.interrupt(now)?,
                PlainEvent::CommandSent => Vec::new(),
                PlainEvent::Quiet => {
                    self.desk.print_progress(now)?;
                    Vec::new()
                }
            };
            if self.desk.take_fence() {
                self.lines.fence();
            }
            let done = !self.inlet.is_open()
                || self.commands.is_empty() && self.queries.is_empty() && effects.is_empty() && self.desk.is_done();
            if !self.is_terminal && done {
                self.desk.leave(&mut effects);
            }
            let lines = self.desk.paper.lines();
            if lines != self.quiet_since.0 || !self.desk.is_working() {
                self.quiet_since = (lines, Instant::now());
            }
            if let Some(ended) = self.perform(effects).await {
                return Ok(ended);
            }
        }
    }

    fn now(&self) -> u64 {
        self.began.elapsed().as_millis() as u64
    }

    async fn next(&mut self) -> PlainEvent {
        // Piped input waits until a session exists. On a terminal, the user sees that aye is still starting.
        let listens = self.is_terminal || self.desk.model.info.model_access.is_some() || !self.desk.model.dialogs.is_empty();
        let quiet = self.desk.is_working().then(|| self.quiet_since.1 + PROGRESS);
        let quiet = async {
            match quiet {
                Some(at) => tokio::time::sleep_until(at.into()).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            Some(heard) = self.heard.recv(), if listens => PlainEvent::Heard(heard),
            _ = self.interrupt.recv() => PlainEvent::Interrupt,
            _ = self.terminate.recv() => PlainEvent::Msg(Msg::Signal(nix::libc::SIGTERM)),
            _ = self.hang_up.recv() => PlainEvent::Msg(Msg::Signal(nix::libc::SIGHUP)),
            began = self.beginning.next() => PlainEvent::Msg(match began {
                StartupEvent::Start(start) => start.map_or(Msg::NoStart, |start| Msg::Start(Box::new(start))),
                StartupEvent::Ahead(ahead) => Msg::Ahead(Box::new(ahead)),
            }),
            () = self.queries.send_one() => PlainEvent::CommandSent,
            () = self.commands.send_one() => PlainEvent::CommandSent,
            () = quiet => PlainEvent::Quiet,
            some = self.inlet.next() => if some { PlainEvent::Events } else { PlainEvent::Msg(Msg::SessionGone) },
        }
    }

    async fn perform(&mut self, effects: Vec<UiEffect>) -> Option<ExitReason> {
        for effect in effects {
            match effect {
                // Line mode has no status row for the state of the git worktree.
                UiEffect::Ask(Query::LookUp(HostRequest::Worktree)) => {}
                UiEffect::Send(command) => self.commands.push(command.into()),
                UiEffect::SendToHost(command) => self.commands.push(command.into()),
                UiEffect::Ask(query) => self.queries.push(query),
                // If the session is ending, nothing receives the answer.
                UiEffect::Trust(trust, answer) => drop(trust.answer.send(answer)),
                UiEffect::Held(held, answer) => drop(held.answer.send(answer)),
                // Only a clipboard program is used, because the terminal might display the copy sequence.
                UiEffect::Copy(clip) => {
                    let clipboard = self.desk.model.options.clipboard.clone();
                    let handed =
                        tokio::task::spawn_blocking(move || clipboard::copy_with_program(&clip, false, &clipboard)).await;
                    drop(self.desk.paper.write_text(&handed.unwrap_or_else(|_| "could not copy to the clipboard".to_owned())));
                }
                UiEffect::Show(_) | UiEffect::EditFile(_) => drop(self.desk.paper.write_text("Line mode cannot open an editor.")),
                UiEffect::RunTask(..) => drop(self.desk.paper.write_text("Line mode cannot open a task here.")),
                UiEffect::Push(_) | UiEffect::Synchronise(_) | UiEffect::Write(_) | UiEffect::Mouse(_) | UiEffect::Suspend => {}
                UiEffect::Exit(ended) => {
                    // Pending commands are delivered before the session ends.
                    self.queries.send_all().await;
                    self.commands.send_all().await;
                    return Some(ended);
                }
            }
        }
        None
    }
}
