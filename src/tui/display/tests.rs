use super::*;
use crate::tui::model::UiModel;
use crate::tui::tests::fixtures::{model, started, tell, text};
use crate::tui::view;
use std::cell::RefCell;
use std::rc::Rc;

/// Terminal emulator that counts the bytes it receives.
#[derive(Clone)]
struct Emulator(Rc<RefCell<(vt100::Parser, usize)>>);

impl Emulator {
    fn new(rows: u16, cols: u16) -> Self {
        Self(Rc::new(RefCell::new((vt100::Parser::new(rows.try_into().unwrap(), cols.try_into().unwrap(), 0), 0))))
    }

    fn row(&self, y: u16) -> String {
        let inner = self.0.borrow();
        let screen = inner.0.screen();
        screen.contents_between(y, 0, y, screen.size().1.get()).trim_end().to_owned()
    }
}

impl Write for Emulator {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut inner = self.0.borrow_mut();
        inner.0.process(bytes);
        inner.1 += bytes.len();
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Draws a frame and checks that the terminal shows the frame's cells.
#[track_caller]
fn frame(display: &mut Display<Emulator>, emulator: &Emulator, model: &mut UiModel, now: u64) {
    let mut rows = Vec::new();
    display
        .draw(|buffer| {
            let drawn = view::draw(model, buffer, now);
            rows = (0..buffer.area.height)
                .map(|y| (0..buffer.area.width).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned())
                .collect();
            drawn
        })
        .unwrap();
    for (y, row) in rows.iter().enumerate() {
        assert_eq!(emulator.row(y as u16), *row, "row {y} at {now}");
    }
}

fn setup(width: u16, height: u16) -> (Display<Emulator>, Emulator, UiModel) {
    let emulator = Emulator::new(height, width);
    (Display::new(emulator.clone(), Size::new(width, height)), emulator, model(width, height))
}

#[test]
fn scrolled_rows_are_moved_and_not_redrawn() {
    let (mut display, emulator, mut model) = setup(120, 40);
    tell(&mut model, started("tell me"), 0);
    frame(&mut display, &emulator, &mut model, 0);
    let before = emulator.0.borrow().1;
    let words = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta"];
    let mut sent = 0;
    for n in 0..4096_usize {
        let chunk: String =
            (0..5).map(|k| words[(n * 7 + k * 3) % 6]).collect::<Vec<_>>().join(" ") + if n % 12 == 11 { ".\n\n" } else { " " };
        sent += chunk.len();
        tell(&mut model, text(&chunk), n as u64 * 5);
        if n % 7 == 0 {
            frame(&mut display, &emulator, &mut model, n as u64 * 5);
        }
    }
    let bytes = emulator.0.borrow().1 - before;

    assert!(bytes < sent * 2, "{bytes} bytes for {sent} of text");
}

#[test]
fn scrolling_back_and_forth_shows_the_correct_rows() {
    let (mut display, emulator, mut model) = setup(80, 24);
    tell(&mut model, started("x"), 0);
    for n in 0..120 {
        tell(&mut model, text(&format!("line {n}\n\n")), 0);
    }
    frame(&mut display, &emulator, &mut model, 0);
    for (at, rows) in [(1, -5_isize), (2, -20), (3, 3), (4, 40), (5, -1), (6, 2), (7, -300), (8, 7), (9, 500)] {
        let (transcript, look) = model.transcript_look(at);
        if rows < 0 {
            transcript.scroll_up(rows.unsigned_abs(), look);
        } else {
            transcript.scroll_down(rows.unsigned_abs(), look);
        }
        frame(&mut display, &emulator, &mut model, at);
    }
}
