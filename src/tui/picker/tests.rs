use super::*;
use crate::tui::glyphs::UNICODE;

const COLUMNS: &[Column] = &[
    Column { head: "name", is_number: false, rank: 0 },
    Column { head: "kind", is_number: false, rank: 2 },
    Column { head: "size", is_number: true, rank: 1 },
];

fn row(name: &str, kind: &str, size: &str) -> Row {
    let cells = [name, kind, size].map(str::to_owned).to_vec();
    Row { key: name.to_owned(), cells, mark: "", lacks: None, detail: format!("all of {name}") }
}

fn picker(names: &[&str]) -> Picker {
    let mut picker = Picker::new("Things", COLUMNS);
    picker.set_rows(names.iter().map(|name| row(name, "a kind", "12k")).collect());
    picker
}

fn draw(picker: &mut Picker, width: u16, height: u16) -> String {
    let mut buffer = Buffer::empty(Rect::new(0, 0, width, height));
    picker.draw(buffer.area, &mut buffer, &Theme::dark(), &UNICODE);
    let rows = (0..height).map(|y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned() + "\n");
    rows.collect()
}

fn press(picker: &mut Picker, code: KeyCode) -> PickerResult {
    picker.key(KeyEvent::new(code, KeyModifiers::NONE))
}

#[test]
fn only_a_row_drawn_as_highlighted_can_be_chosen() {
    let mut picker = picker(&["one", "two", "three"]);
    assert_eq!(press(&mut picker, KeyCode::Enter), PickerResult::Nothing, "nobody has seen it");
    draw(&mut picker, 60, 12);
    press(&mut picker, KeyCode::Char('t'));
    assert_eq!(press(&mut picker, KeyCode::Enter), PickerResult::Nothing, "another one was highlighted by then");
    draw(&mut picker, 60, 12);
    assert_eq!(press(&mut picker, KeyCode::Enter), PickerResult::Chosen("two".to_owned()));
}

#[test]
fn typed_words_filter_the_list_in_any_order() {
    let mut picker = picker(&["claude opus", "claude sonnet", "gpt"]);
    picker.insert("SON clau");
    assert_eq!(picker.highlighted().map(|row| row.key.as_str()), Some("claude sonnet"));
    assert!(draw(&mut picker, 60, 12).contains("1 of 3"));
    for _ in 0..8 {
        press(&mut picker, KeyCode::Backspace);
    }
    assert_eq!(picker.highlighted().map(|row| row.key.as_str()), Some("claude opus"));
    picker.insert("zzz");
    assert_eq!(picker.highlighted(), None);
    draw(&mut picker, 60, 12);
    assert_eq!(press(&mut picker, KeyCode::Enter), PickerResult::Nothing);
}

#[test]
fn an_empty_column_leaves_its_space_to_the_names() {
    let mut bare = Picker::new("Things", COLUMNS);
    bare.set_rows(vec![row("a name that is longer than most", "", "12k")]);
    let shown = draw(&mut bare, 40, 12);
    assert!(shown.contains("a name that is longer than most") && !shown.contains("kind"), "{shown}");
    assert!(draw(&mut picker(&[]), 40, 12).contains("kind"), "what is still to come has its heads");
}

#[test]
fn columns_are_dropped_and_names_truncated_when_space_is_short() {
    let mut picker = picker(&["a name that is long enough to be cut somewhere", "short"]);
    let wide = draw(&mut picker, 80, 12);
    assert!(wide.contains("kind") && wide.contains("cut somewhere  a kind   12k"), "{wide}");
    let narrow = draw(&mut picker, 30, 12);
    assert!(narrow.contains("12k") && narrow.contains("…"), "{narrow}");
    for (width, height) in [(4, 3), (1, 1), (40, 2)] {
        draw(&mut picker, width, height);
    }
}

#[test]
fn a_long_list_scrolls_with_its_highlight() {
    let names: Vec<String> = (0..100).map(|n| format!("thing {n}.")).collect();
    let mut picker = picker(&names.iter().map(String::as_str).collect::<Vec<_>>());
    draw(&mut picker, 40, 12);
    press(&mut picker, KeyCode::End);
    assert!(draw(&mut picker, 40, 12).contains("❯ thing 99."));
    press(&mut picker, KeyCode::PageUp);
    press(&mut picker, KeyCode::Up);
    assert!(draw(&mut picker, 40, 12).contains("❯ thing 90."), "{}", draw(&mut picker, 40, 12));
    press(&mut picker, KeyCode::Home);
    assert!(draw(&mut picker, 40, 12).contains("❯ thing 0."));
    assert_eq!(press(&mut picker, KeyCode::F(5)), PickerResult::Other);
    assert_eq!(press(&mut picker, KeyCode::Esc), PickerResult::Closed);
}

#[test]
fn a_list_with_more_rows_shows_an_arrow_and_marks_are_not_truncated() {
    let names: Vec<String> = (0..20).map(|n| format!("a thing with a name of some length {n}")).collect();
    let mut picker = picker(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let shown = draw(&mut picker, 40, 12);
    assert_eq!(shown.lines().filter(|row| row.ends_with(" ▼")).count(), 1, "{shown}");
    press(&mut picker, KeyCode::End);
    assert!(!draw(&mut picker, 40, 12).contains('▼'));
    let marked = |name: &str| Row { mark: "open here", ..row(name, "a kind", "12k") };
    picker.set_rows(vec![marked("a name that is long enough to be cut somewhere")]);
    let shown = draw(&mut picker, 70, 12);
    assert!(shown.contains("…  a kind   12k  open here"), "{shown}");
}

#[test]
fn the_list_keeps_half_of_the_screen_and_details_are_truncated_before_they_are_dropped() {
    const FACTS: &[Column] = &[Column { head: "", is_number: false, rank: 0 }, Column { head: "", is_number: false, rank: 1 }];
    let fact = |name: &str, value: &str| Row {
        key: name.to_owned(),
        cells: vec![name.to_owned(), value.to_owned()],
        mark: "",
        lacks: None,
        detail: value.to_owned(),
    };
    let long = "/a/place/that/is/much/longer/than/the/list/is/wide/".repeat(3);
    let mut picker = Picker::new("Facts", FACTS).with_last_truncated();
    picker.set_rows(vec![fact("short", "a value"), fact("place", &long), fact("other", "b"), fact("last", "c")]);
    let wide = draw(&mut picker, 120, 12);
    assert!(wide.contains("short  a value") && wide.contains("place  /a/place/that"), "{wide}");
    assert_eq!(wide.matches("a value").count(), 1, "the preview repeats nothing\n{wide}");
    picker.highlight("place");
    let low = draw(&mut picker, 40, 9);
    assert!(low.contains("short") && low.contains("❯ place") && low.contains("last"), "{low}");
}
