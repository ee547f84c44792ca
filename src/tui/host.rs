//! Main loop, which connects the model to the terminal and the session.

use super::channels::{CommandQueue, EventReceiver, StartupChannels, StartupEvent};
use super::clipboard;
use super::display::Display;
use super::frame_timer::FrameTimer;
use super::highlight;
use super::input::{InputReader, TerminalReply, UiInput, is_text};
use super::interface::{Editor, ExitReason, Start, StartupQuestion, TuiHandles, TuiOutcome};
use super::model::{EditorText, UiEffect, UiModel};
use super::status;
use super::terminal::{self, RawModeGuard, TerminalMode, TerminalWriter};
use super::update::{Msg, initial_effects, update};
use super::view;
use crate::protocol::{Query, SessionCommand};
use crate::text;
use nix::sys::signal::Signal::SIGSTOP;
use nix::sys::signal::kill;
use nix::unistd::{Pid, getpgrp, getppid, getsid};
use ratatui::layout::Size;
use std::collections::VecDeque;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{Notify, mpsc};

/// Maximum number of events that are processed between two frames.
const EVENTS_A_FRAME: usize = 8192;
/// Time to wait for pending terminal replies at exit, so that they are not read by the next program.
const LAST_ANSWERS: Duration = Duration::from_millis(100);
/// Time after which a reply that the terminal has not sent yet is no longer expected.
const ANSWERED_BY: Duration = Duration::from_secs(1);
/// Maximum time between the stop signal and its delivery.
const STOP_GRACE: Duration = Duration::from_millis(200);
/// All processes of aye's process group.
const PROCESS_GROUP: Pid = Pid::from_raw(0);

/// Runs the full-screen UI until the user quits, the session ends or a signal is received. Restores the terminal before
/// returning.
pub(crate) async fn run(front: TuiHandles) -> io::Result<TuiOutcome> {
    let size = terminal_size();
    let modes = RawModeGuard::enter(&mut io::stdout(), &front.options.terminal.emulator)?;
    let mut host = Host::new(front, modes, size)?;
    let ended = host.run().await;
    host.drain_replies().await;
    let Host { model, modes, reader, inputs, .. } = host;
    drop(reader);
    drop(modes);
    let typed = format!("{}{}", model.unkept(), unread_text(inputs));
    let resume_hint = model.info.session.as_ref().map(|id| format!("aye --resume={id}"));
    let mode = model.info.model_access.as_ref().map(|_| model.info.header.mode);
    let (session, name) = (model.info.session, model.info.header.model);
    let (last_answer, unsent) = (model.info.last_answer, model.startup.waiting_prompt);
    Ok(TuiOutcome { ended: ended?, last_answer, typed, unsent, model: name, mode, resume_hint, session })
}

/// Returns the text contained in input that has not been processed.
fn unread_text(mut inputs: mpsc::UnboundedReceiver<(Instant, UiInput)>) -> String {
    let mut words = String::new();
    while let Ok((_, input)) = inputs.try_recv() {
        match input {
            UiInput::Key(key) => words.extend(is_text(&key)),
            UiInput::Paste(pasted) => words.push_str(&text::clean(&pasted)),
            _ => {}
        }
    }
    words
}

/// Returns whether a shell can continue aye after it stopped: a process in the same session, whose job is another one.
fn has_job_control() -> bool {
    let session = getsid(None);
    session.is_ok() && getsid(Some(getppid())) == session && session != Ok(getpgrp())
}

/// Returns the terminal size in cells, or 80×24 if it is unknown.
fn terminal_size() -> Size {
    crossterm::terminal::size().map_or(Size::new(80, 24), |(width, height)| Size::new(width.max(1), height.max(1)))
}

struct Host {
    model: UiModel,
    display: Display<io::BufWriter<TerminalWriter>>,
    modes: Option<RawModeGuard>,
    reader: Option<InputReader>,
    inputs: mpsc::UnboundedReceiver<(Instant, UiInput)>,
    inlet: EventReceiver,
    commands: CommandQueue<SessionCommand>,
    queries: CommandQueue<Query>,
    beginning: StartupChannels,
    editor: Editor,
    signals: TerminalSignals,
    pace: FrameTimer,
    title: String,
    /// Terminal modes that were enabled when the terminal was released.
    pushed: Vec<TerminalMode>,
    asked: Option<Instant>,
    /// Notification by the highlighter thread that new colours are available.
    colours: Arc<Notify>,
    /// Channel for the results of work done outside the main loop.
    told: (mpsc::UnboundedSender<Msg>, mpsc::UnboundedReceiver<Msg>),
}

struct TerminalSignals {
    resize: Signal,
    stop: Signal,
    resumed: Signal,
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

enum HostEvent {
    Input(Instant, UiInput),
    Events,
    Start(Option<Start>),
    Ahead(StartupQuestion),
    Resize,
    Resumed,
    /// Another program asked aye to stop.
    Stop,
    Signal(i32),
    Time,
    SessionGone,
    CommandSent,
    Colours,
    Told(Msg),
    Panicked,
}

impl Host {
    fn new(front: TuiHandles, modes: RawModeGuard, size: Size) -> io::Result<Self> {
        let (reader, inputs) = InputReader::start(io::stdin().as_fd().try_clone_to_owned()?)?;
        let colours = Arc::new(Notify::new());
        let bell = Arc::clone(&colours);
        highlight::on_progress(move || bell.notify_one());
        let mut model = UiModel::new(front.options, front.prompt, size);
        model.composer.insert(&front.typed);
        Ok(Self {
            model,
            display: Display::new(io::BufWriter::with_capacity(64 << 10, TerminalWriter), size),
            modes: Some(modes),
            reader: Some(reader),
            inputs,
            inlet: EventReceiver::new(front.events, EVENTS_A_FRAME),
            commands: CommandQueue::new(front.commands),
            queries: CommandQueue::new(front.queries),
            beginning: StartupChannels::new(front.start, front.ahead),
            editor: front.editor,
            signals: TerminalSignals {
                resize: signal(SignalKind::window_change())?,
                stop: signal(SignalKind::from_raw(nix::libc::SIGTSTP))?,
                resumed: signal(SignalKind::from_raw(nix::libc::SIGCONT))?,
                interrupt: signal(SignalKind::interrupt())?,
                terminate: signal(SignalKind::terminate())?,
                hang_up: signal(SignalKind::hangup())?,
            },
            pace: FrameTimer::new(Instant::now()),
            title: String::new(),
            pushed: Vec::new(),
            asked: None,
            colours,
            told: mpsc::unbounded_channel(),
        })
    }

    async fn run(&mut self) -> io::Result<ExitReason> {
        self.query_terminal()?;
        let effects = initial_effects(&mut self.model);
        self.perform(effects).await?;
        self.frame(Instant::now())?;
        self.mouse(self.model.screen.pointer.is_captured)?;
        loop {
            let (at, msgs) = match self.next().await {
                // Size reports arrive in order with the keys. A report of the current size is not a change.
                HostEvent::Input(at, UiInput::Size(width, height)) => {
                    let size = Size::new(width, height);
                    if size == self.model.screen.size {
                        continue;
                    }
                    self.display.resize(size);
                    (at, vec![Msg::Resize(size)])
                }
                HostEvent::Input(at, input) => {
                    self.pace.on_key();
                    (at, vec![Msg::Input(input)])
                }
                HostEvent::Events => {
                    let batch = self.inlet.take();
                    (Instant::now(), batch.into_iter().map(|event| Msg::Event(Box::new(event))).collect())
                }
                HostEvent::Start(start) => {
                    (Instant::now(), vec![start.map_or(Msg::NoStart, |start| Msg::Start(Box::new(start)))])
                }
                HostEvent::Ahead(ahead) => (Instant::now(), vec![Msg::Ahead(Box::new(ahead))]),
                HostEvent::Resize => {
                    let size = terminal_size();
                    self.display.resize(size);
                    (Instant::now(), vec![Msg::Resize(size)])
                }
                HostEvent::Stop => (Instant::now(), self.on_stop_signal().await?),
                HostEvent::Resumed => {
                    self.resume_terminal()?;
                    (Instant::now(), vec![Msg::Resumed])
                }
                HostEvent::Signal(number) => (Instant::now(), vec![Msg::Signal(number)]),
                HostEvent::SessionGone => (Instant::now(), vec![Msg::SessionGone]),
                HostEvent::Time => {
                    let now = Instant::now();
                    self.pace.on_model_update(now);
                    (now, vec![Msg::Time])
                }
                HostEvent::Colours => {
                    self.model.screen.dirty = true;
                    (Instant::now(), Vec::new())
                }
                HostEvent::Told(msg) => (Instant::now(), vec![msg]),
                // Drawing a frame reports the panic.
                HostEvent::Panicked => {
                    self.model.screen.dirty = true;
                    (Instant::now(), Vec::new())
                }
                HostEvent::CommandSent => continue,
            };
            let at = self.pace.since_start(at);
            for msg in msgs {
                let effects = update(&mut self.model, msg, at);
                if let Some(ended) = self.perform(effects).await? {
                    return Ok(ended);
                }
            }
            self.draw_if_due()?;
        }
    }

    fn query_terminal(&mut self) -> io::Result<()> {
        let questions = self.model.screen.terminal.emulator.questions(self.model.options.terminal.colours);
        self.asked = (!questions.is_empty()).then(Instant::now);
        self.display.write(&questions)
    }

    /// Reads the terminal's pending replies, which a shell would otherwise treat as input.
    async fn drain_replies(&mut self) {
        let is_over = self.asked.is_none_or(|asked| asked.elapsed() > ANSWERED_BY);
        if is_over || self.model.screen.terminal.has_answered || !terminal::owns_terminal() {
            return;
        }
        let last = async {
            while let Some((_, input)) = self.inputs.recv().await {
                if matches!(input, UiInput::Answer(TerminalReply::Attributes) | UiInput::Closed) {
                    return;
                }
            }
        };
        // The timeout ends the wait for a terminal that does not reply.
        let _ = tokio::time::timeout(LAST_ANSWERS, last).await;
    }

    async fn next(&mut self) -> HostEvent {
        let wake = self.pace.wake_at(Instant::now(), self.model.screen.dirty, |told| self.model.deadline(told));
        let sleep = async {
            match wake {
                Some(at) => tokio::time::sleep_until(at.into()).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            some = self.inputs.recv() => {
                // The reader thread has ended.
                let (at, input) = some.unwrap_or_else(|| (Instant::now(), UiInput::Closed));
                HostEvent::Input(at, input)
            }
            () = terminal::wait_for_panic_restore() => HostEvent::Panicked,
            _ = self.signals.interrupt.recv() => HostEvent::Signal(nix::libc::SIGINT),
            _ = self.signals.terminate.recv() => HostEvent::Signal(nix::libc::SIGTERM),
            _ = self.signals.hang_up.recv() => HostEvent::Signal(nix::libc::SIGHUP),
            _ = self.signals.resize.recv() => HostEvent::Resize,
            _ = self.signals.stop.recv() => HostEvent::Stop,
            _ = self.signals.resumed.recv() => HostEvent::Resumed,
            began = self.beginning.next() => match began {
                StartupEvent::Start(start) => HostEvent::Start(start),
                StartupEvent::Ahead(ahead) => HostEvent::Ahead(ahead),
            },
            () = self.queries.send_one() => HostEvent::CommandSent,
            () = self.commands.send_one() => HostEvent::CommandSent,
            Some(msg) = self.told.1.recv() => HostEvent::Told(msg),
            () = self.colours.notified() => HostEvent::Colours,
            () = sleep => HostEvent::Time,
            some = self.inlet.next() => if some { HostEvent::Events } else { HostEvent::SessionGone },
        }
    }

    async fn perform(&mut self, effects: Vec<UiEffect>) -> io::Result<Option<ExitReason>> {
        let mut effects = VecDeque::from(effects);
        while let Some(effect) = effects.pop_front() {
            match effect {
                UiEffect::Send(command) => self.commands.push(command.into()),
                UiEffect::SendToHost(command) => self.commands.push(command.into()),
                UiEffect::Ask(query) => self.queries.push(query),
                UiEffect::Trust(trust, answer) => {
                    // If the session is ending, nothing receives the answer.
                    let _ = trust.answer.send(answer);
                }
                UiEffect::Held(held, answer) => {
                    let _ = held.answer.send(answer);
                }
                UiEffect::Push(what) => self.display.write(terminal::push(what))?,
                UiEffect::Synchronise(synchronised) => self.display.synchronise(synchronised),
                UiEffect::Write(bytes) => self.display.write(&bytes)?,
                UiEffect::Copy(clip) => self.copy(clip)?,
                UiEffect::Show(shown) => effects.extend(self.show(shown).await?),
                UiEffect::Mouse(on) => self.mouse(on)?,
                UiEffect::Suspend => effects.extend(self.suspend(PROCESS_GROUP).await?),
                UiEffect::RunTask(id, program) => effects.extend(self.run_task(id, program).await?),
                UiEffect::EditFile(edit) => effects.extend(self.edit(edit).await?),
                UiEffect::Exit(ended) => {
                    // Pending commands are delivered before the session ends.
                    self.queries.send_all().await;
                    self.commands.send_all().await;
                    return Ok(Some(ended));
                }
            }
        }
        Ok(None)
    }

    fn draw_if_due(&mut self) -> io::Result<()> {
        let now = Instant::now();
        if self.model.screen.dirty && self.pace.is_frame_due(now) { self.frame(now) } else { Ok(()) }
    }

    fn frame(&mut self, now: Instant) -> io::Result<()> {
        if !terminal::owns_terminal() {
            return Err(io::Error::other("aye panicked and released the terminal; the session is saved up to that point"));
        }
        let at = self.pace.since_start(now);
        let model = &mut self.model;
        self.display.draw(|buffer| view::draw(model, buffer, at))?;
        if self.model.dialogs.take_fence(at) {
            self.display.write(terminal::FENCE)?;
        }
        let title = status::title(&self.model);
        if title != self.title && self.model.screen.terminal.emulator.has_title() {
            self.display.write(format!("\x1b]2;{title}\x1b\\").as_bytes())?;
            self.title = title;
        }
        self.model.screen.dirty = false;
        self.pace.on_frame(now);
        Ok(())
    }

    /// Restores the terminal and stops these processes until the shell continues them. Without a shell that can do so,
    /// nothing is stopped.
    async fn suspend(&mut self, processes: Pid) -> io::Result<Vec<UiEffect>> {
        if !has_job_control() {
            let at = self.pace.since_start(Instant::now());
            self.model.show_toast("cannot suspend: aye was not started by a shell with job control", at);
            return Ok(Vec::new());
        }
        self.release_terminal();
        kill(processes, SIGSTOP)?;
        // The signal may stop the process only a moment later.
        let _ = tokio::time::timeout(STOP_GRACE, self.signals.resumed.recv()).await;
        self.resume_terminal()?;
        Ok(self.dispatch(Msg::Resumed))
    }

    /// Stops aye as another program requested; ctrl+z is a key.
    async fn on_stop_signal(&mut self) -> io::Result<Vec<Msg>> {
        let effects = self.suspend(Pid::this()).await?;
        Box::pin(self.perform(effects)).await?;
        Ok(Vec::new())
    }

    fn dispatch(&mut self, msg: Msg) -> Vec<UiEffect> {
        let at = self.pace.since_start(Instant::now());
        update(&mut self.model, msg, at)
    }

    /// Releases the terminal and keyboard while `editor` runs, then processes its result. Text that was typed before is
    /// added to the draft and never answers a dialog.
    async fn run_with_terminal_released<T: Send + 'static>(
        &mut self,
        editor: impl FnOnce() -> Result<T, String> + Send + 'static,
        heard: impl FnOnce(Result<T, String>) -> Option<Msg>,
    ) -> io::Result<Vec<UiEffect>> {
        // The editor must be the only reader of the terminal.
        self.reader = None;
        self.release_terminal();
        let mut running = tokio::task::spawn_blocking(editor);
        let left = loop {
            tokio::select! {
                left = &mut running => break left,
                // ctrl+z in the editor stops it, and aye must stop too.
                _ = self.signals.stop.recv() => if has_job_control() { kill(Pid::this(), SIGSTOP)? },
            }
        };
        let (reader, inputs) = InputReader::start(io::stdin().as_fd().try_clone_to_owned()?)?;
        self.reader = Some(reader);
        let typed = unread_text(std::mem::replace(&mut self.inputs, inputs));
        // Ctrl+c that was meant for the editor is ignored.
        self.signals.interrupt = signal(SignalKind::interrupt())?;
        self.resume_terminal()?;
        let left = left.unwrap_or_else(|_| Err("could not run the editor".to_owned()));
        let told = [Some(Msg::Resumed), heard(left), Some(Msg::TypedBefore(typed))];
        Ok(told.into_iter().flatten().flat_map(|msg| self.dispatch(msg)).collect())
    }

    async fn edit(&mut self, edit: EditorText) -> io::Result<Vec<UiEffect>> {
        let (editor, name, text) = (self.editor.clone(), edit.name.clone(), edit.text.clone());
        self.run_with_terminal_released(move || (editor.0)(&name, &text), |outcome| Some(Msg::Edited(Box::new(edit), outcome)))
            .await
    }

    async fn show(&mut self, shown: super::interface::EditorTarget) -> io::Result<Vec<UiEffect>> {
        let shows = self.model.options.shows.clone();
        self.run_with_terminal_released(move || (shows.0)(&shown), |outcome| outcome.err().map(Msg::Done)).await
    }

    /// Releases the terminal and runs a command for a task until the command exits.
    async fn run_task(&mut self, id: String, program: super::interface::TaskProgram) -> io::Result<Vec<UiEffect>> {
        let tasks = self.model.options.tasks.clone();
        self.run_with_terminal_released(move || (tasks.0)(&id, program), |outcome| outcome.err().map(Msg::Done)).await
    }

    /// Copies text through the terminal immediately, and with a clipboard program in the background, because a slow
    /// program must not block the UI.
    fn copy(&mut self, clip: super::clipboard::Clip) -> io::Result<()> {
        let clipboard = self.model.options.clipboard.clone();
        let sequence = clipboard::sequence(&clip.text, clipboard.between);
        if let Some(bytes) = &sequence {
            self.display.write(bytes)?;
        }
        let (told, is_told) = (self.told.0.clone(), sequence.is_some());
        tokio::task::spawn_blocking(move || {
            let _ = told.send(Msg::Done(clipboard::copy_with_program(&clip, is_told, &clipboard)));
        });
        Ok(())
    }

    fn mouse(&mut self, on: bool) -> io::Result<()> {
        self.display.write(if on { terminal::MOUSE } else { terminal::NO_MOUSE })
    }

    /// Restores the terminal, remembering which modes were enabled.
    fn release_terminal(&mut self) {
        self.pushed.extend(terminal::enabled_modes().filter(|what| what.is_of_terminal()));
        self.modes = None;
    }

    fn resume_terminal(&mut self) -> io::Result<()> {
        self.release_terminal();
        let pushed = std::mem::take(&mut self.pushed);
        self.modes = Some(RawModeGuard::enter(&mut io::stdout(), &self.model.screen.terminal.emulator)?);
        self.mouse(self.model.screen.pointer.is_captured)?;
        for what in pushed {
            self.display.write(terminal::push(what))?;
        }
        // A shell may have changed the title.
        self.title.clear();
        let size = terminal_size();
        self.display.resize(size);
        let at = self.pace.since_start(Instant::now());
        let _ = update(&mut self.model, Msg::Resize(size), at);
        Ok(())
    }
}
