//! The keys, in place of the transcript.

use crate::tui::model::Model;
use crate::tui::theme::Token;
use crate::tui::update::COMMANDS;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

const KEYS: &[(&str, &str)] = &[
    ("enter", "send; queue while a task runs"),
    ("ctrl+j", "new line (also alt+enter, shift+enter, \\ then enter)"),
    ("up down", "line, then prompts sent before"),
    ("esc", "stop the task; again within 3 s: kill what it runs"),
    ("ctrl+c", "clear the draft; empty: stop, then quit"),
    ("ctrl+d", "quit (empty draft)"),
    ("tab", "review what waits for you"),
    ("ctrl+o", "outputs: folded, head and tail, all"),
    ("pgup pgdn", "scroll; home end; ctrl+u ctrl+d half a page"),
    ("ctrl+z", "suspend"),
];

pub fn draw(model: &Model, area: Rect, buffer: &mut Buffer) {
    let rows = KEYS.iter().chain(COMMANDS).take(area.height.into());
    for (y, (key, words)) in (area.y..).zip(rows) {
        let line = Line::from(vec![
            Span::styled(format!(" {key:<11}"), model.theme.style(Token::Accent)),
            Span::styled(*words, model.theme.style(Token::Text)),
        ]);
        buffer.set_line(area.x, y, &line, area.width);
    }
}
