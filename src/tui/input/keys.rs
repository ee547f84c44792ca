//! Decoding of complete escape sequences and characters.

use super::reports::{self, ParsedReport};
use super::{InputSequence, UiInput};
use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use termina::event as t;

pub(crate) fn decode(piece: InputSequence) -> Option<UiInput> {
    let bytes = match piece {
        InputSequence::Paste(bytes) => {
            return Some(UiInput::Paste(String::from_utf8_lossy(&bytes).replace("\r\n", "\n").replace('\r', "\n")));
        }
        InputSequence::Whole(bytes) => bytes,
    };
    match reports::read(&bytes) {
        ParsedReport::Known(input) => Some(input),
        ParsedReport::Unknown => None,
        ParsedReport::None => key_or_mouse(&to_kitty_form(bytes)),
    }
}

/// Converts a modified key from xterm's format to that of kitty: `CSI 27;5;106~` becomes `CSI 106;5u`.
fn to_kitty_form(bytes: Vec<u8>) -> Vec<u8> {
    let parts = bytes.strip_prefix(b"\x1b[27;").and_then(|rest| rest.strip_suffix(b"~"));
    let parts = parts.and_then(|parts| std::str::from_utf8(parts).ok()).and_then(|parts| parts.split_once(';'));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match parts {
        Some((modifiers, key)) if is_number(modifiers) && is_number(key) => format!("\x1b[{key};{modifiers}u").into_bytes(),
        Some(_) | None => bytes,
    }
}

/// Returns whether a sequence looks like a key or mouse report. Any other sequence must not reach the parser, which
/// would split it into characters.
fn may_be_key(bytes: &[u8]) -> bool {
    let is_number = |byte: &u8| matches!(byte, b'0'..=b'9' | b';' | b':');
    match bytes {
        [0x1b, b'[', b'M', ..] => bytes.len() == 6,
        [0x1b, b'[', b'[', _] | [0x1b, b'['] => true,
        [0x1b, b'[', b'<', body @ .., b'M' | b'm'] => body.iter().all(is_number),
        [0x1b, b'[', last] => last.is_ascii_alphabetic(),
        [0x1b, b'[', b'0'..=b'9', body @ .., last] => body.iter().all(is_number) && !last.is_ascii_digit(),
        [0x1b, b'[', ..] => false,
        _ => true,
    }
}

/// Converts keypad keys sent in application mode, and keys with modifiers in an older format: `ESC O 5 A` becomes `CSI
/// 1;5A`.
fn application_key(bytes: &[u8]) -> Option<Vec<u8>> {
    const KEYPAD: &[u8] = b"*+,-./0123456789";
    match bytes {
        [0x1b, b'O', b'M'] => Some(b"\r".to_vec()),
        [0x1b, b'O', b'X'] => Some(b"=".to_vec()),
        [0x1b, b'O', key @ b'j'..=b'y'] => Some(vec![KEYPAD[usize::from(key - b'j')]]),
        [0x1b, b'O', modifiers @ .., key] if !modifiers.is_empty() => Some([b"\x1b[1;", modifiers, &[*key]].concat()),
        _ => None,
    }
}

fn key_or_mouse(bytes: &[u8]) -> Option<UiInput> {
    let read = application_key(bytes);
    let bytes = read.as_deref().unwrap_or(bytes);
    if !may_be_key(bytes) {
        return None;
    }
    let mut parser = termina::Parser::default();
    parser.parse(bytes, false);
    match parser.pop()? {
        termina::Event::Key(key) => key_event(key).map(UiInput::Key),
        termina::Event::Mouse(mouse) => mouse_event(mouse).map(UiInput::Mouse),
        termina::Event::FocusIn => Some(UiInput::FocusIn),
        termina::Event::FocusOut => Some(UiInput::FocusOut),
        termina::Event::Paste(_)
        | termina::Event::Csi(_)
        | termina::Event::Osc(_)
        | termina::Event::Dcs(_)
        | termina::Event::WindowResized(_) => None,
    }
}

/// Converts a mouse event. Returns `None` for movement without a pressed button, and for horizontal scrolling.
fn mouse_event(mouse: t::MouseEvent) -> Option<MouseEvent> {
    let button = |button| match button {
        t::MouseButton::Left => MouseButton::Left,
        t::MouseButton::Right => MouseButton::Right,
        t::MouseButton::Middle => MouseButton::Middle,
    };
    let kind = match mouse.kind {
        t::MouseEventKind::Down(which) => MouseEventKind::Down(button(which)),
        t::MouseEventKind::Up(which) => MouseEventKind::Up(button(which)),
        t::MouseEventKind::Drag(which) => MouseEventKind::Drag(button(which)),
        t::MouseEventKind::ScrollUp => MouseEventKind::ScrollUp,
        t::MouseEventKind::ScrollDown => MouseEventKind::ScrollDown,
        t::MouseEventKind::ScrollLeft | t::MouseEventKind::ScrollRight | t::MouseEventKind::Moved => return None,
    };
    Some(MouseEvent { kind, column: mouse.column, row: mouse.row, modifiers: modifiers(mouse.modifiers) })
}

fn modifiers(held: t::Modifiers) -> KeyModifiers {
    let mut modifiers = KeyModifiers::empty();
    for (theirs, ours) in [
        (t::Modifiers::SHIFT, KeyModifiers::SHIFT),
        (t::Modifiers::ALT, KeyModifiers::ALT),
        (t::Modifiers::CONTROL, KeyModifiers::CONTROL),
    ] {
        if held.contains(theirs) {
            modifiers |= ours;
        }
    }
    modifiers
}

fn key_event(key: t::KeyEvent) -> Option<KeyEvent> {
    if key.kind == t::KeyEventKind::Release {
        return None;
    }
    // Key combinations for the window manager are not text.
    if key.modifiers.intersects(t::Modifiers::SUPER | t::Modifiers::HYPER | t::Modifiers::META) {
        return None;
    }
    let code = match key.code {
        t::KeyCode::Char('\u{8}') => KeyCode::Backspace,
        t::KeyCode::Char(c) if c.is_control() => return None,
        t::KeyCode::Char(c) => KeyCode::Char(c),
        t::KeyCode::Enter => KeyCode::Enter,
        t::KeyCode::Backspace => KeyCode::Backspace,
        t::KeyCode::Tab => KeyCode::Tab,
        t::KeyCode::BackTab => KeyCode::BackTab,
        t::KeyCode::Escape => KeyCode::Esc,
        t::KeyCode::Left => KeyCode::Left,
        t::KeyCode::Right => KeyCode::Right,
        t::KeyCode::Up => KeyCode::Up,
        t::KeyCode::Down => KeyCode::Down,
        t::KeyCode::Home => KeyCode::Home,
        t::KeyCode::End => KeyCode::End,
        t::KeyCode::PageUp => KeyCode::PageUp,
        t::KeyCode::PageDown => KeyCode::PageDown,
        t::KeyCode::Delete => KeyCode::Delete,
        t::KeyCode::Function(n) => KeyCode::F(n),
        _ => return None,
    };
    let modifiers = modifiers(key.modifiers);
    // Depending on the protocol, a shifted letter arrives in upper case, or as the base letter with a flag.
    let code = match code {
        KeyCode::Char(c) if modifiers.contains(KeyModifiers::SHIFT) && !modifiers.contains(KeyModifiers::CONTROL) => {
            KeyCode::Char(c.to_uppercase().next().unwrap_or(c))
        }
        code => code,
    };
    let mut event = KeyEvent::new(code, modifiers);
    if key.kind == t::KeyEventKind::Repeat {
        event.kind = KeyEventKind::Repeat;
    }
    Some(event)
}
