//! Tests that the visible text stays in place when the window is resized while the session continues.

use super::*;

/// Returns a long session that has been scrolled up by several pages.
fn long() -> UiModel {
    let mut model = model(120, 36);
    for nth in 0..200 {
        tell(&mut model, started(&format!("prompt {nth}")), nth);
        let words = format!("Answer {nth} has so many words that they do not fit on one narrow row, but on a wide one.\n");
        tell(&mut model, text(&words), nth);
        let done = EventKind::TaskCompleted { text: String::new(), usage: Usage::default(), cost_usd: None, step_count: 1 };
        tell(&mut model, done, nth);
    }
    draw(&mut model, 300);
    play(&mut model, 400, "<pgup><pgup><pgup>");
    model
}

/// Returns the number in the first prompt or response that is visible.
fn top(model: &mut UiModel, at: u64) -> u64 {
    let screen = draw(model, at);
    let number = |row: &str| {
        let (_, rest) = row.split_once("prompt ").or_else(|| row.split_once("Answer "))?;
        rest.split(|letter: char| !letter.is_ascii_digit()).next()?.parse().ok()
    };
    screen.lines().find_map(number).unwrap_or_else(|| panic!("{screen}"))
}

#[test]
fn the_top_entry_stays_on_resize_while_streaming_and_with_an_open_approval() {
    for asks in [false, true] {
        let mut model = long();
        let before = top(&mut model, 900);
        tell(&mut model, started("more"), 1000);
        if asks {
            tell(&mut model, EventKind::ApprovalRequested(edit_approval("a")), 1100);
            play(&mut model, 3000, "<tab>");
            assert!(model.dialogs.is_open());
        }
        let begun = top(&mut model, 3500);
        assert!(begun >= before, "what is below makes room");
        for (nth, width) in [(1, 60), (2, 160), (3, 45), (4, 120)] {
            let at = 4000 + nth * 100;
            tell(&mut model, text(&"streams on and on ".repeat(40)), at);
            update(&mut model, Msg::Resize(Size::new(width, 36)), at + 10);
            let now = top(&mut model, at + 20);
            assert!(now.abs_diff(begun) <= 1, "at {width}: {now} in the place of {begun}, asks {asks}");
        }
        assert_eq!(top(&mut model, 9000), begun, "and as it was at the width it had");
        assert_eq!(model.dialogs.is_open(), asks);
    }
}
