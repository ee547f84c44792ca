//! The loop that connects terminal, events and commands to the model.

use super::display::Display;
use super::front::{Ended, Front, Outcome, Start};
use super::highlight;
use super::input::{Input, Reader};
use super::model::{Effect, Model};
use super::status;
use super::terminal::{self, Modes};
use super::update::{Msg, update};
use super::view;
use crate::protocol::{Command, Event};
use ratatui::layout::Size;
use std::collections::VecDeque;
use std::io::{self, Stdout};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{Notify, mpsc, oneshot};

/// Between frames that only show new text.
const STREAM_FRAME: Duration = Duration::from_millis(33);
/// Between frames that show keys.
const KEY_FRAME: Duration = Duration::from_millis(4);
/// Events taken in before a frame is drawn.
const EVENTS_A_FRAME: usize = 8192;
/// For the last commands to be taken.
const LAST_COMMANDS: Duration = Duration::from_secs(1);
/// When a stop was not delivered, the screen comes back after this.
const STOP_GRACE: Duration = Duration::from_millis(200);

/// Shows the screen until the person leaves or a signal ends it; the terminal is as before when it returns.
pub async fn run(front: Front) -> io::Result<Outcome> {
    let mut stdout = io::stdout();
    let size = terminal_size();
    let modes = Modes::enter(&mut stdout)?;
    let mut host = Host::new(front, modes, stdout, size)?;
    let ended = host.run().await;
    let Host { model, modes, reader, .. } = host;
    drop(reader);
    drop(modes);
    let resume_hint = model.session.as_ref().map(|id| format!("aye --resume {id}"));
    Ok(Outcome { ended: ended?, last_answer: model.last_answer, resume_hint })
}

/// The terminal's size, or the usual one where it has none.
fn terminal_size() -> Size {
    crossterm::terminal::size().map_or(Size::new(80, 24), |(width, height)| Size::new(width.max(1), height.max(1)))
}

struct Host {
    model: Model,
    display: Display<io::BufWriter<Stdout>>,
    modes: Option<Modes>,
    reader: Option<Reader>,
    inputs: mpsc::UnboundedReceiver<(Instant, Input)>,
    events: mpsc::UnboundedReceiver<Event>,
    events_open: bool,
    commands: mpsc::Sender<Command>,
    outbox: VecDeque<Command>,
    start: Option<oneshot::Receiver<Start>>,
    signals: Signals,
    began: Instant,
    last_frame: Option<Instant>,
    urgent: bool,
    batch: Vec<Event>,
    title: String,
    /// Rung by the thread that finds syntax colours.
    colours: Arc<Notify>,
}

struct Signals {
    resize: Signal,
    resumed: Signal,
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

enum Happened {
    Input(Instant, Input),
    Events,
    Start(Option<Start>),
    Resize,
    Resumed,
    Signal(i32),
    Time,
    SessionGone,
    CommandSent,
    Colours,
}

impl Host {
    fn new(front: Front, modes: Modes, stdout: Stdout, size: Size) -> io::Result<Self> {
        let (reader, inputs) = Reader::start(io::stdin().as_fd().try_clone_to_owned()?)?;
        let colours = Arc::new(Notify::new());
        let bell = Arc::clone(&colours);
        highlight::on_progress(move || bell.notify_one());
        Ok(Self {
            model: Model::new(front.options, front.prompt, size),
            display: Display::new(io::BufWriter::with_capacity(64 << 10, stdout), size),
            modes: Some(modes),
            reader: Some(reader),
            inputs,
            events: front.events,
            events_open: true,
            commands: front.commands,
            outbox: VecDeque::new(),
            start: Some(front.start),
            signals: Signals {
                resize: signal(SignalKind::window_change())?,
                resumed: signal(SignalKind::from_raw(nix::libc::SIGCONT))?,
                interrupt: signal(SignalKind::interrupt())?,
                terminate: signal(SignalKind::terminate())?,
                hang_up: signal(SignalKind::hangup())?,
            },
            began: Instant::now(),
            last_frame: None,
            urgent: true,
            batch: Vec::new(),
            title: String::new(),
            colours,
        })
    }

    async fn run(&mut self) -> io::Result<Ended> {
        self.frame(Instant::now())?;
        self.display.write(terminal::QUESTIONS)?;
        loop {
            let (at, msgs) = match self.next().await {
                Happened::Input(at, input) => {
                    self.urgent = true;
                    (at, vec![Msg::Input(input)])
                }
                Happened::Events => {
                    let batch = std::mem::take(&mut self.batch);
                    (Instant::now(), batch.into_iter().map(|event| Msg::Event(Box::new(event))).collect())
                }
                Happened::Start(start) => {
                    self.start = None;
                    (Instant::now(), vec![start.map_or(Msg::NoStart, |start| Msg::Start(Box::new(start)))])
                }
                Happened::Resize => {
                    let size = terminal_size();
                    self.display.resize(size);
                    (Instant::now(), vec![Msg::Resize(size)])
                }
                Happened::Resumed => {
                    self.come_back()?;
                    (Instant::now(), vec![Msg::Resumed])
                }
                Happened::Signal(number) => (Instant::now(), vec![Msg::Signal(number)]),
                Happened::SessionGone => (Instant::now(), vec![Msg::SessionGone]),
                Happened::Time => (Instant::now(), vec![Msg::Time]),
                Happened::Colours => {
                    self.model.dirty = true;
                    (Instant::now(), Vec::new())
                }
                Happened::CommandSent => continue,
            };
            let at = self.since_start(at);
            for msg in msgs {
                let effects = update(&mut self.model, msg, at);
                if let Some(ended) = self.perform(effects).await? {
                    return Ok(ended);
                }
            }
            self.draw_if_due()?;
        }
    }

    fn since_start(&self, at: Instant) -> u64 {
        at.saturating_duration_since(self.began).as_millis() as u64
    }

    /// When the next frame or the next deadline of the model is due.
    fn wake_at(&self) -> Option<Instant> {
        let now = self.since_start(Instant::now());
        let deadline = self.model.deadline(now).map(|at| self.began + Duration::from_millis(at));
        let frame = self.model.dirty.then(|| self.frame_due());
        [deadline, frame].into_iter().flatten().min()
    }

    fn frame_due(&self) -> Instant {
        let gap = if self.urgent { KEY_FRAME } else { STREAM_FRAME };
        self.last_frame.map_or_else(Instant::now, |last| last + gap)
    }

    async fn next(&mut self) -> Happened {
        let wake = self.wake_at();
        let sleep = async {
            match wake {
                Some(at) => tokio::time::sleep_until(at.into()).await,
                None => std::future::pending().await,
            }
        };
        let started = async {
            match &mut self.start {
                Some(start) => start.await.ok(),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            Some((at, input)) = self.inputs.recv() => Happened::Input(at, input),
            _ = self.signals.interrupt.recv() => Happened::Signal(nix::libc::SIGINT),
            _ = self.signals.terminate.recv() => Happened::Signal(nix::libc::SIGTERM),
            _ = self.signals.hang_up.recv() => Happened::Signal(nix::libc::SIGHUP),
            _ = self.signals.resize.recv() => Happened::Resize,
            _ = self.signals.resumed.recv() => Happened::Resumed,
            start = started => Happened::Start(start),
            Ok(permit) = self.commands.reserve(), if !self.outbox.is_empty() => {
                if let Some(command) = self.outbox.pop_front() {
                    permit.send(command);
                }
                Happened::CommandSent
            }
            () = self.colours.notified() => Happened::Colours,
            () = sleep => Happened::Time,
            count = self.events.recv_many(&mut self.batch, EVENTS_A_FRAME), if self.events_open => {
                self.events_open = count > 0;
                if count > 0 { Happened::Events } else { Happened::SessionGone }
            }
        }
    }

    async fn perform(&mut self, effects: Vec<Effect>) -> io::Result<Option<Ended>> {
        for effect in effects {
            match effect {
                Effect::Send(command) => self.outbox.push_back(command),
                Effect::Trust(trust, answer) => {
                    // Nobody waits for the answer any more when the session is ending.
                    let _ = trust.answer.send(answer);
                }
                Effect::PushKitty => {
                    terminal::kitty_pushed();
                    self.display.write(terminal::PUSH_KITTY)?;
                }
                Effect::Suspend => self.suspend().await?,
                Effect::Exit(ended) => {
                    // Whoever takes commands may be gone or stuck: leaving does not wait for it.
                    let _ = tokio::time::timeout(LAST_COMMANDS, self.send_all()).await;
                    return Ok(Some(ended));
                }
            }
        }
        Ok(None)
    }

    async fn send_all(&mut self) {
        while let Some(command) = self.outbox.pop_front() {
            if self.commands.send(command).await.is_err() {
                return;
            }
        }
    }

    fn draw_if_due(&mut self) -> io::Result<()> {
        let now = Instant::now();
        if self.model.dirty && now >= self.frame_due() { self.frame(now) } else { Ok(()) }
    }

    fn frame(&mut self, now: Instant) -> io::Result<()> {
        if !terminal::is_ours() {
            return Err(io::Error::other(
                "something in aye panicked and the screen was given up; the session is saved up to there",
            ));
        }
        let at = self.since_start(now);
        let model = &mut self.model;
        self.display.draw(|buffer| view::draw(model, buffer, at))?;
        if self.model.panels.take_fence(at) {
            self.display.write(terminal::FENCE)?;
        }
        let title = status::title(&self.model);
        if title != self.title {
            self.display.write(format!("\x1b]2;{title}\x1b\\").as_bytes())?;
            self.title = title;
        }
        self.model.dirty = false;
        self.urgent = false;
        self.last_frame = Some(now);
        Ok(())
    }

    /// Gives the terminal back and stops, as the shell's ctrl+z does.
    async fn suspend(&mut self) -> io::Result<()> {
        self.modes = None;
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(0), nix::sys::signal::Signal::SIGTSTP)?;
        // A process group that nobody could wake is not stopped; then this goes on by time.
        let _ = tokio::time::timeout(STOP_GRACE, self.signals.resumed.recv()).await;
        self.come_back()?;
        let at = self.since_start(Instant::now());
        let _ = update(&mut self.model, Msg::Resumed, at);
        Ok(())
    }

    fn come_back(&mut self) -> io::Result<()> {
        self.modes = None;
        self.modes = Some(Modes::enter(&mut io::stdout())?);
        if self.model.keys.kitty {
            terminal::kitty_pushed();
            self.display.write(terminal::PUSH_KITTY)?;
        }
        let size = terminal_size();
        self.display.resize(size);
        let at = self.since_start(Instant::now());
        let _ = update(&mut self.model, Msg::Resize(size), at);
        Ok(())
    }
}
