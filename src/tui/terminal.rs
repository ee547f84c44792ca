//! Terminal modes, and how they are restored however aye exits.

mod capabilities;
mod emulator;
mod terminfo;
#[cfg(test)]
mod tests;

pub(crate) use capabilities::{CapabilityEffect, TerminalCapabilities};
pub(crate) use emulator::{Emulator, Notice};

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Once, OnceLock};
use tokio::sync::Notify;

/// Sequences that enable the modes aye always uses: the alternate screen, no auto-wrap (so wide characters stay in
/// their row), bracketed paste and focus reports.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[?7l\x1b[?2004h\x1b[?1004h";
/// Sequences that enable reports of mouse buttons, drags and the wheel, in SGR format.
pub(crate) const MOUSE: &[u8] = b"\x1b[?1000h\x1b[?1002h\x1b[?1006h";
pub(crate) const NO_MOUSE: &[u8] = b"\x1b[?1006l\x1b[?1002l\x1b[?1000l";
pub(crate) const FENCE: &[u8] = b"\x1b[5n";
pub(crate) const ASK_GROUND: &[u8] = b"\x1b]11;?\x1b\\";
const LEAVE: &[u8] =
    b"\x1b[?2026l\x1b[r\x1b[0m\x1b[?1006l\x1b[?1002l\x1b[?1000l\x1b[?1004l\x1b[?2004l\x1b[?7h\x1b[?1049l\x1b[?25h";

/// Mode that is enabled only on terminals that support it, because other terminals may print its sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TerminalMode {
    /// Window title, which the terminal saves and restores.
    Title,
    /// Kitty's keyboard protocol, which makes keys with modifiers unambiguous.
    Kitty,
    /// Reports of keys with modifiers, in xterm's format.
    ModifiedKeys,
    /// Support for grapheme clusters, with the widths that Unicode defines.
    Clusters,
    /// Reports of changes between a light and a dark colour scheme.
    Schemes,
    /// Reports of the terminal size within the input stream, in order with the keys.
    Sizes,
    /// Progress indicator.
    Progress,
    /// Use of the main screen on terminals without an alternate screen. The main screen is cleared at exit.
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

    /// Returns whether the mode is enabled only after a reply from the terminal. Such a mode must be enabled again
    /// whenever the process is resumed.
    pub(crate) fn is_of_terminal(self) -> bool {
        matches!(self, Self::Kitty | Self::ModifiedKeys | Self::Clusters | Self::Schemes | Self::Sizes)
    }

    const fn bit(self) -> u8 {
        1 << self as u8
    }

    const fn enable_sequence(self) -> &'static [u8] {
        match self {
            Self::Title => b"\x1b[22;2t",
            Self::Kitty => b"\x1b[>1u",
            // Some terminals interpret this sequence as underlined and bold, so the style is reset.
            Self::ModifiedKeys => b"\x1b[>4;1m\x1b[m",
            Self::Clusters => b"\x1b[?2027h",
            Self::Schemes => b"\x1b[?2031h",
            Self::Sizes => b"\x1b[?2048h",
            Self::Progress | Self::OnlyScreen => b"",
        }
    }

    const fn disable_sequence(self) -> &'static [u8] {
        match self {
            // The title is cleared first, for terminals that cannot restore it.
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

/// Sets the function that returns whether a panic will be caught. The screen is not restored for a panic that will be.
pub(crate) fn set_contained_check(contained: fn() -> bool) {
    // The first function remains in effect. A process needs only one.
    let _ = CONTAINED.set(contained);
}

/// Guard that enables the terminal modes. Dropping it restores the terminal.
#[derive(Debug)]
pub(crate) struct RawModeGuard(());

impl RawModeGuard {
    pub(crate) fn enter(output: &mut impl Write, emulator: &Emulator) -> io::Result<Self> {
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

/// Writer for frames. It discards output once the terminal has been restored, for example because of a panic while
/// drawing. The rest of the frame would otherwise hide the cursor again.
#[derive(Debug)]
pub(crate) struct TerminalWriter;

impl Write for TerminalWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // The lock is held until the end of the write, because `restore` waits for it.
        let mut output = io::stdout().lock();
        if owns_terminal() { output.write(bytes) } else { Ok(bytes.len()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stdout().flush()
    }
}

/// Returns the sequence that enables a mode, and records that the mode must be disabled later.
pub(crate) fn push(what: TerminalMode) -> &'static [u8] {
    PUSHED.fetch_or(what.bit(), Ordering::SeqCst);
    what.enable_sequence()
}

/// Returns the modes that are enabled.
pub(crate) fn enabled_modes() -> impl Iterator<Item = TerminalMode> {
    let bits = PUSHED.load(Ordering::SeqCst);
    TerminalMode::ALL.into_iter().filter(move |what| bits & what.bit() != 0)
}

/// Returns whether aye's terminal modes are in effect. They no longer are once a panic has restored the terminal.
pub(crate) fn owns_terminal() -> bool {
    ENTERED.load(Ordering::SeqCst)
}

/// Waits until the terminal has been restored because of a panic.
pub(crate) async fn wait_for_panic_restore() {
    PANICKED.notified().await;
}

/// Returns the width of the terminal in cells, or `None` if there is no terminal.
pub(crate) fn columns() -> Option<u16> {
    crossterm::terminal::size().ok().map(|(width, _)| width)
}

/// Returns the sequences that disable all enabled modes, in the right order, and marks the modes as disabled.
fn disable_sequences() -> impl Iterator<Item = &'static [u8]> {
    let bits = PUSHED.swap(0, Ordering::SeqCst);
    let pushed = TerminalMode::ALL.into_iter().rev().filter(move |what| bits & what.bit() != 0);
    pushed.map(TerminalMode::disable_sequence).chain(std::iter::once(LEAVE))
}

/// Restores the terminal from within the handler of a fatal signal, without using locks or allocating memory. The
/// caller must restore the line settings.
pub(crate) fn restore_from_signal() {
    if !ENTERED.swap(false, Ordering::SeqCst) {
        return;
    }
    for bytes in disable_sequences() {
        // The process ends even if the write fails.
        let _ = nix::unistd::write(io::stdout(), bytes);
    }
}

/// Restores the terminal unless that has already been done, then calls `then`. Concurrent callers wait for both to
/// complete, because the process may exit right afterwards.
fn restore(then: impl FnOnce()) {
    // Without the terminal, there is no writer to wait for.
    let output = owns_terminal().then(|| io::stdout().lock());
    let Some(mut output) = output.filter(|_| owns_terminal()) else { return then() };
    let bytes: Vec<u8> = disable_sequences().flatten().copied().collect();
    // A terminal that no longer exists cannot be restored.
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
