//! Comparison of drawn rows with stored text snapshots. Setting `UPDATE=1` rewrites the snapshots.

use std::path::Path;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::text::Line;
use ratatui::widgets::Paragraph;

/// Returns the rows as a terminal would show them, without trailing spaces.
pub(crate) fn picture(lines: Vec<Line<'static>>, width: u16) -> String {
    let height = u16::try_from(lines.len()).expect("a screen of rows").max(1);
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal");
    terminal.draw(|frame| frame.render_widget(Paragraph::new(lines), frame.area())).expect("a frame");
    let buffer = terminal.backend().buffer();
    let mut out = String::new();
    for y in 0..height {
        let mut row = String::new();
        let mut x = 0;
        while x < width {
            let symbol = buffer[(x, y)].symbol();
            row.push_str(symbol);
            x += u16::try_from(crate::text::width(symbol)).expect("a few cells").max(1);
        }
        out.push_str(row.trim_end());
        out.push('\n');
    }
    out
}

#[track_caller]
pub(crate) fn check(name: &str, picture: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/screen").join(format!("{name}.txt"));
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, picture).expect("a picture written");
        return;
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(expected == picture, "{} differs (`UPDATE=1` keeps what is drawn now):\n{picture}", path.display());
}
