//! Terminal modes, and their restoration at any kind of exit.

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

/// Mode sequences for the alternate screen, no auto-wrap (so that wide characters stay in their row), bracketed paste
/// and focus reports.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[?7l\x1b[?2004h\x1b[?1004h";
/// Mode sequences for mouse reports: buttons, drags and the wheel, in the SGR format.
pub(crate) const MOUSE: &[u8] = b"\x1b[?1000h\x1b[?1002h\x1b[?1006h";
pub(crate) const NO_MOUSE: &[u8] = b"\x1b[?1006l\x1b[?1002l\x1b[?1000l";
pub(crate) const FENCE: &[u8] = b"\x1b[5n";
pub(crate) const ASK_GROUND: &[u8] = b"\x1b]11;?\x1b\\";
const LEAVE: &[u8] =
    b"\x1b[?2026l\x1b[r\x1b[0m\x1b[?1006l\x1b[?1002l\x1b[?1000l\x1b[?1004l\x1b[?2004l\x1b[?7h\x1b[?1049l\x1b[?25h";

/// Modes that are enabled only on terminals that support them, because others may print the sequences.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TerminalMode {
    /// Window title, saved and restored by the terminal.
    Title,
    /// Kitty's keyboard protocol, which reports keys with modifiers unambiguously.
    Kitty,
    /// Key reports with modifiers, in xterm's format.
    ModifiedKeys,
    /// Grapheme clusters, with widths as defined by Unicode.
    Clusters,
    /// Reports of changes between light and dark colour schemes.
    Schemes,
    /// Size reports in the input stream, in order with the keys.
    Sizes,
    /// Progress indicator of the terminal.
    Progress,
    /// Main screen only, which is cleared at the end.
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

    /// Returns whether the mode was enabled because the terminal supports it, and must be enabled again after every
    /// stop.
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
            // Some terminals interpret this as underlined and bold, so reset the style.
            Self::ModifiedKeys => b"\x1b[>4;1m\x1b[m",
            Self::Clusters => b"\x1b[?2027h",
            Self::Schemes => b"\x1b[?2031h",
            Self::Sizes => b"\x1b[?2048h",
            Self::Progress | Self::OnlyScreen => b"",
        }
    }

    const fn disable_sequence(self) -> &'static [u8] {
        match self {
            // Clear the title first, for terminals that cannot restore it.
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

/// Sets the function that detects caught panics, which leave the screen unchanged.
pub(crate) fn set_contained_check(contained: fn() -> bool) {
    // The first function remains; a process needs only one.
    let _ = CONTAINED.set(contained);
}

/// Guard of the terminal modes; dropping it restores the terminal.
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

/// Writer for frames. It discards output after the terminal was restored, for example by a panic within a frame,
/// because the rest of the frame would hide the cursor again.
#[derive(Debug)]
pub(crate) struct TerminalWriter;

impl Write for TerminalWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Hold the lock from the check to the end of the write; `restore` waits for it.
        let mut output = io::stdout().lock();
        if owns_terminal() { output.write(bytes) } else { Ok(bytes.len()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stdout().flush()
    }
}

/// Returns the sequence that enables a mode, and records it for restoration.
pub(crate) fn push(what: TerminalMode) -> &'static [u8] {
    PUSHED.fetch_or(what.bit(), Ordering::SeqCst);
    what.enable_sequence()
}

/// Returns the modes that are enabled.
pub(crate) fn enabled_modes() -> impl Iterator<Item = TerminalMode> {
    let bits = PUSHED.load(Ordering::SeqCst);
    TerminalMode::ALL.into_iter().filter(move |what| bits & what.bit() != 0)
}

/// Returns whether the terminal is still in aye's modes. A panic restores it.
pub(crate) fn owns_terminal() -> bool {
    ENTERED.load(Ordering::SeqCst)
}

/// Waits until a panic has restored the terminal.
pub(crate) async fn wait_for_panic_restore() {
    PANICKED.notified().await;
}

/// Returns the terminal width, if there is a terminal.
pub(crate) fn columns() -> Option<u16> {
    crossterm::terminal::size().ok().map(|(width, _)| width)
}

/// Returns the sequences that disable all modes, in order.
fn disable_sequences() -> impl Iterator<Item = &'static [u8]> {
    let bits = PUSHED.swap(0, Ordering::SeqCst);
    let pushed = TerminalMode::ALL.into_iter().rev().filter(move |what| bits & what.bit() != 0);
    pushed.map(TerminalMode::disable_sequence).chain(std::iter::once(LEAVE))
}

/// Restores the terminal from the handler of a fatal signal, without locks or memory allocation. The caller restores
/// the line settings.
pub(crate) fn restore_from_signal() {
    if !ENTERED.swap(false, Ordering::SeqCst) {
        return;
    }
    for bytes in disable_sequences() {
        // The process ends, regardless of the result.
        let _ = nix::unistd::write(io::stdout(), bytes);
    }
}

/// Restores the terminal once, then calls `then`. Concurrent callers wait for both, because the process may end right
/// afterwards.
fn restore(then: impl FnOnce()) {
    // If the terminal was never taken, do not wait for a writer.
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
