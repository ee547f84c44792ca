//! What one whole sequence means.

use super::{Input, Piece};
use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use termina::escape::csi::{Csi, Keyboard};
use termina::escape::osc::{ColorOrQuery, DynamicColorNumber, Osc};
use termina::event as t;

pub fn decode(piece: Piece) -> Option<Input> {
    match piece {
        Piece::Paste(bytes) => Some(Input::Paste(String::from_utf8_lossy(&bytes).replace("\r\n", "\n").replace('\r', "\n"))),
        // The parser below drops this one; it is the answer the guard waits for.
        Piece::Whole(bytes) if bytes == b"\x1b[0n" || bytes == b"\x1b[3n" => Some(Input::Fence),
        Piece::Whole(bytes) => {
            let mut parser = termina::Parser::default();
            parser.parse(&bytes, false);
            parser.pop().and_then(translate)
        }
    }
}

fn translate(event: termina::Event) -> Option<Input> {
    match event {
        termina::Event::Key(key) => key_event(key).map(Input::Key),
        termina::Event::Paste(text) => Some(Input::Paste(text)),
        termina::Event::Mouse(mouse) => match mouse.kind {
            t::MouseEventKind::ScrollUp => Some(Input::Wheel { up: true }),
            t::MouseEventKind::ScrollDown => Some(Input::Wheel { up: false }),
            _ => None,
        },
        termina::Event::FocusIn => Some(Input::FocusIn),
        termina::Event::FocusOut => Some(Input::FocusOut),
        termina::Event::Csi(Csi::Keyboard(Keyboard::ReportFlags(_))) => Some(Input::KittyKeyboard),
        termina::Event::Osc(Osc::ChangeDynamicColors(DynamicColorNumber::TextBackgroundColor, colours)) => {
            colours.iter().find_map(|colour| match colour {
                ColorOrQuery::Color(rgb) => Some(Input::Background(rgb.red, rgb.green, rgb.blue)),
                ColorOrQuery::Query => None,
            })
        }
        termina::Event::Csi(_) | termina::Event::Osc(_) | termina::Event::Dcs(_) | termina::Event::WindowResized(_) => None,
    }
}

fn key_event(key: t::KeyEvent) -> Option<KeyEvent> {
    if key.kind == t::KeyEventKind::Release {
        return None;
    }
    let code = match key.code {
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
    let mut modifiers = KeyModifiers::empty();
    for (theirs, ours) in [
        (t::Modifiers::SHIFT, KeyModifiers::SHIFT),
        (t::Modifiers::ALT, KeyModifiers::ALT),
        (t::Modifiers::CONTROL, KeyModifiers::CONTROL),
    ] {
        if key.modifiers.contains(theirs) {
            modifiers |= ours;
        }
    }
    // A shifted letter arrives as itself or as its base letter and a flag, by protocol; it is one key.
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
