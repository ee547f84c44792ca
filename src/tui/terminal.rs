//! The modes the terminal is put into, and back, whatever ends the process.

mod capabilities;
mod emulator;
mod terminfo;
#[cfg(test)]
mod tests;

pub use capabilities::{CapabilityEffect, TerminalCapabilities};
pub use emulator::{Emulator, Notice};

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Once, OnceLock};
use tokio::sync::Notify;

/// Alternate screen, bracketed paste, focus reports. What a terminal takes for wider than it is
/// stays in its row.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[?7l\x1b[?2004h\x1b[?1004h";
/// Buttons, what moves while one is held, and the wheel, in the modern form.
pub const MOUSE: &[u8] = b"\x1b[?1000h\x1b[?1002h\x1b[?1006h";
pub const NO_MOUSE: &[u8] = b"\x1b[?1006l\x1b[?1002l\x1b[?1000l";
pub const FENCE: &[u8] = b"\x1b[5n";
pub const ASK_GROUND: &[u8] = b"\x1b]11;?\x1b\\";
const LEAVE: &[u8] =
    b"\x1b[?2026l\x1b[r\x1b[0m\x1b[?1006l\x1b[?1002l\x1b[?1000l\x1b[?1004l\x1b[?2004l\x1b[?7h\x1b[?1049l\x1b[?25h";

/// What is switched on only where the terminal knows it, and is to be taken back: others may show the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TerminalMode {
    /// The title, kept by the terminal.
    Title,
    /// Kitty's keyboard protocol: keys with modifiers are not mistaken for others.
    Kitty,
    /// The same in xterm's way.
    ModifiedKeys,
    /// Graphemes take the cells that Unicode says.
    Clusters,
    /// A change between a light and a dark ground is told.
    Schemes,
    /// A change of the size is told among the keys, in their order.
    Sizes,
    /// How far something is.
    Progress,
    /// There is no other screen to leave: this one is cleared.
    OnlyScreen,
}

impl TerminalMode {
    const ALL: [Self; 8] = [
        Self::Title,
        Self::Kitty,
        Self::ModifiedKeys,
        Self::Clusters,
        Self::Schemes,
        Self::Sizes,
        Self::Progress,
        Self::OnlyScreen,
    ];

    /// Whether it was switched on because the terminal said that it knows it: again after every stop.
    pub fn is_of_terminal(self) -> bool {
        matches!(self, Self::Kitty | Self::ModifiedKeys | Self::Clusters | Self::Schemes | Self::Sizes)
    }

    const fn bit(self) -> u8 {
        1 << self as u8
    }

    const fn on(self) -> &'static [u8] {
        match self {
            Self::Title => b"\x1b[22;2t",
            Self::Kitty => b"\x1b[>1u",
            // Some read it as underlined and bold.
            Self::ModifiedKeys => b"\x1b[>4;1m\x1b[m",
            Self::Clusters => b"\x1b[?2027h",
            Self::Schemes => b"\x1b[?2031h",
            Self::Sizes => b"\x1b[?2048h",
            Self::Progress | Self::OnlyScreen => b"",
        }
    }

    const fn off(self) -> &'static [u8] {
        match self {
            // Empty first, for terminals that keep none.
            Self::Title => b"\x1b]2;\x1b\\\x1b[23;2t",
            Self::Kitty => b"\x1b[<u",
            Self::ModifiedKeys => b"\x1b[>4m\x1b[m",
            Self::Clusters => b"\x1b[?2027l",
            Self::Schemes => b"\x1b[?2031l",
            Self::Sizes => b"\x1b[?2048l",
            Self::Progress => b"\x1b]9;4;0\x1b\\",
            Self::OnlyScreen => b"\x1b[0m\x1b[2J\x1b[H",
        }
    }
}

static ENTERED: AtomicBool = AtomicBool::new(false);
static PUSHED: AtomicU8 = AtomicU8::new(0);
static HOOK: Once = Once::new();
static PANICKED: Notify = Notify::const_new();
static CONTAINED: OnceLock<fn() -> bool> = OnceLock::new();

/// Panics of which this says that somebody contains them leave the screen as it is.
pub fn spare_contained(contained: fn() -> bool) {
    // The first one stays: there is one program.
    let _ = CONTAINED.set(contained);
}

/// While it lives the terminal is ours.
#[derive(Debug)]
pub struct RawModeGuard(());

impl RawModeGuard {
    pub fn enter(output: &mut impl Write, emulator: &Emulator) -> io::Result<Self> {
        restore_on_panic();
        crossterm::terminal::enable_raw_mode()?;
        ENTERED.store(true, Ordering::SeqCst);
        let modes = Self(());
        output.write_all(ENTER)?;
        output.write_all(push(if emulator.has_title() { TerminalMode::Title } else { TerminalMode::OnlyScreen }))?;
        output.flush()?;
        Ok(modes)
    }
}

impl Drop for RawModeGuard {
    fn drop(&mut self) {
        restore(|| ());
    }
}

/// Where frames are written: nothing, once the terminal was given back. A panic elsewhere may do that in the middle of one, whose rest
/// would hide the cursor again.
#[derive(Debug)]
pub struct TerminalWriter;

impl Write for TerminalWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Held while it is looked at and written: `restore` waits for it.
        let mut output = io::stdout().lock();
        if is_ours() { output.write(bytes) } else { Ok(bytes.len()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stdout().flush()
    }
}

/// What switches it on; from now on it is taken back with all else.
pub fn push(what: TerminalMode) -> &'static [u8] {
    PUSHED.fetch_or(what.bit(), Ordering::SeqCst);
    what.on()
}

/// What of it is on.
pub fn pushed() -> impl Iterator<Item = TerminalMode> {
    let bits = PUSHED.load(Ordering::SeqCst);
    TerminalMode::ALL.into_iter().filter(move |what| bits & what.bit() != 0)
}

/// Whether the terminal is still in our modes: a panic anywhere has given it back.
pub fn is_ours() -> bool {
    ENTERED.load(Ordering::SeqCst)
}

/// Waits until a panic anywhere has given it back.
pub async fn panicked() {
    PANICKED.notified().await;
}

/// How wide the terminal is, if there is one.
pub fn columns() -> Option<u16> {
    crossterm::terminal::size().ok().map(|(width, _)| width)
}

/// What switches all of it off, in its order.
fn off() -> impl Iterator<Item = &'static [u8]> {
    let bits = PUSHED.swap(0, Ordering::SeqCst);
    let pushed = TerminalMode::ALL.into_iter().rev().filter(move |what| bits & what.bit() != 0);
    pushed.map(TerminalMode::off).chain(std::iter::once(LEAVE))
}

/// Gives the terminal back from a handler of a signal that ends the process: no lock and no memory is asked for. What the lines of the
/// terminal do is put back by whoever calls.
pub fn give_back_at_once() {
    if !ENTERED.swap(false, Ordering::SeqCst) {
        return;
    }
    for bytes in off() {
        // It ends, whatever comes of this.
        let _ = nix::unistd::write(io::stdout(), bytes);
    }
}

/// Gives the terminal back once, however often it is called, and does this then. Whoever else gives it back meanwhile waits until both
/// are done: the process may end right after.
fn restore(then: impl FnOnce()) {
    // Where it was never taken, nobody waits for whoever writes.
    let output = is_ours().then(|| io::stdout().lock());
    let Some(mut output) = output.filter(|_| is_ours()) else { return then() };
    let bytes: Vec<u8> = off().flatten().copied().collect();
    // A terminal that is gone cannot be given back.
    let _ = output.write_all(&bytes);
    let _ = output.flush();
    let _ = crossterm::terminal::disable_raw_mode();
    then();
    ENTERED.store(false, Ordering::SeqCst);
}

fn restore_on_panic() {
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if CONTAINED.get().is_some_and(|contained| contained()) {
                return before(info);
            }
            restore(|| before(info));
            PANICKED.notify_one();
        }));
    });
}
