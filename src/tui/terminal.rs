//! The modes the terminal is put into, and back, whatever ends the process.

use std::io::{self, Write};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

/// The title is kept; alternate screen, bracketed paste, focus reports, wheel reports in the modern form.
const ENTER: &[u8] = b"\x1b[22;2t\x1b[?1049h\x1b[?2004h\x1b[?1004h\x1b[?1000h\x1b[?1006h";
/// What is asked once; nothing waits for the answers.
pub const QUESTIONS: &[u8] = b"\x1b[?u\x1b]11;?\x1b\\";
pub const PUSH_KITTY: &[u8] = b"\x1b[>1u";
pub const FENCE: &[u8] = b"\x1b[5n";
const LEAVE: &[u8] = b"\x1b[?2026l\x1b[r\x1b[0m\x1b[?1006l\x1b[?1000l\x1b[?1004l\x1b[?2004l\x1b[?1049l\x1b[23;2t\x1b[?25h";
/// Only where they were pushed: a terminal without the protocol may show the bytes.
const POP_KITTY: &[u8] = b"\x1b[<u";

static ENTERED: AtomicBool = AtomicBool::new(false);
static KITTY: AtomicBool = AtomicBool::new(false);
static HOOK: Once = Once::new();

/// While it lives the terminal is ours.
#[derive(Debug)]
pub struct Modes(());

impl Modes {
    pub fn enter(output: &mut impl Write) -> io::Result<Self> {
        restore_on_panic();
        crossterm::terminal::enable_raw_mode()?;
        ENTERED.store(true, Ordering::SeqCst);
        let modes = Self(());
        output.write_all(ENTER)?;
        output.flush()?;
        Ok(modes)
    }
}

impl Drop for Modes {
    fn drop(&mut self) {
        restore();
    }
}

/// Kitty's keyboard flags were pushed and are to be taken back.
pub fn kitty_pushed() {
    KITTY.store(true, Ordering::SeqCst);
}

/// Whether the terminal is still in our modes: a panic anywhere has given it back.
pub fn is_ours() -> bool {
    ENTERED.load(Ordering::SeqCst)
}

/// Gives the terminal back once, however often it is called.
fn restore() {
    if !ENTERED.swap(false, Ordering::SeqCst) {
        return;
    }
    let mut output = io::stdout().lock();
    if KITTY.swap(false, Ordering::SeqCst) {
        let _ = output.write_all(POP_KITTY);
    }
    // A terminal that is gone cannot be given back.
    let _ = output.write_all(LEAVE);
    let _ = output.flush();
    let _ = crossterm::terminal::disable_raw_mode();
}

fn restore_on_panic() {
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            restore();
            before(info);
        }));
    });
}
