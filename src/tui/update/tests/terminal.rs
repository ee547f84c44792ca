use super::*;
use crate::tui::input::{ModeState, TerminalReply};
use crate::tui::interface::Notices;
use crate::tui::terminal::Emulator;
use crate::tui::tests::fixtures::{edit_approval, event, text};
use crate::tui::theme::ColourDepth;

/// Returns the bytes that are written to the terminal apart from cells, with `^` in place of Escape.
fn written(effects: &[UiEffect]) -> String {
    let bytes = effects.iter().filter_map(|effect| match effect {
        UiEffect::Write(bytes) => Some(String::from_utf8(bytes.clone()).unwrap()),
        _ => None,
    });
    bytes.collect::<String>().replace('\u{1b}', "^")
}

fn say(model: &mut UiModel, answer: TerminalReply) -> Vec<UiEffect> {
    update(model, Msg::Input(UiInput::Answer(answer)), 10)
}

#[test]
fn the_auto_theme_follows_the_colour_scheme_of_the_terminal() {
    let mut model = model(80, 24);
    let effects = say(&mut model, TerminalReply::Scheme { light: true });
    assert_eq!((model.screen.theme.name.as_str(), written(&effects).as_str()), ("light", "^]11;?^\\"));
    update(&mut model, Msg::Input(UiInput::Background(20, 22, 27)), 20);
    assert_eq!(model.screen.theme.name, "dark");
    play(&mut model, 1000, "/theme light<enter>");
    say(&mut model, TerminalReply::Scheme { light: false });
    assert_eq!(model.screen.theme.name, "light");
}

#[test]
fn true_colours_are_used_once_the_terminal_reports_support() {
    for (before, after) in [
        (ColourDepth::Sixteen, ColourDepth::True),
        (ColourDepth::Indexed256, ColourDepth::True),
        (ColourDepth::None, ColourDepth::None),
    ] {
        let mut model = model(80, 24);
        model.options.terminal.colours = before;
        say(&mut model, TerminalReply::TrueColour);
        assert_eq!(model.options.terminal.colours, after);
    }
}

#[test]
fn the_hints_name_keys_that_the_terminal_can_distinguish() {
    let mut model = model(100, 24);
    assert!(draw(&mut model, 5).contains("ctrl+j new line"));
    assert!(say(&mut model, TerminalReply::Mode(2027, ModeState::Unknown)).is_empty());
    let pushed: Vec<_> = say(&mut model, TerminalReply::Kitty).iter().filter_map(words).collect();
    assert_eq!(pushed, ["kitty"]);
    assert!(draw(&mut model, 20).contains("shift+enter new line"));
}

fn unfocused(notices: Notices, term: &'static str) -> UiModel {
    let mut model = model(80, 24);
    model.options.notices = notices;
    model.screen.terminal.emulator = Emulator::detect(|name| if name == "TERM" { term } else { "" });
    update(&mut model, Msg::Input(UiInput::FocusOut), 100);
    model
}

/// Returns the bytes that are written when an approval is requested, and those written when the task ends.
fn told(model: &mut UiModel) -> (String, String) {
    let tell = |model: &mut UiModel, kind| written(&update(model, Msg::Event(Box::new(event(kind))), 1000));
    assert_eq!(tell(model, started("go")), "");
    assert_eq!(tell(model, text("words")), "");
    let asked = tell(model, EventKind::ApprovalRequested(edit_approval("a")));
    let resolved = tell(
        model,
        EventKind::ApprovalTimeout {
            approval_id: ApprovalId::new("a"),
            tool_call_id: crate::tui::tests::fixtures::call("call-a"),
        },
    );
    let completed = EventKind::TaskCompleted { text: "done".to_owned(), usage: Usage::default(), cost_usd: None, step_count: 1 };
    (asked, resolved + &tell(model, completed))
}

#[test]
fn an_unfocused_terminal_is_notified_once_of_approvals_and_the_end_of_a_task() {
    let mut kitty = unfocused(Notices::Auto, "xterm-kitty");
    let (asked, ended) = told(&mut kitty);
    assert_eq!(asked, "^]9;aye in greeter: 1 approval or question is waiting for you^\\^]9;4;4;100^\\");
    assert!(ended.ends_with("^]9;aye in greeter: the task has ended^\\^]9;4;1;100^\\"), "{ended}");
    assert_eq!(written(&update(&mut kitty, Msg::Input(UiInput::FocusIn), 3000)), "^]9;4;0^\\");

    assert_eq!(told(&mut unfocused(Notices::Bell, "xterm-kitty")), ("\u{7}".to_owned(), "\u{7}".to_owned()));
    assert_eq!(told(&mut unfocused(Notices::Off, "xterm-kitty")), (String::new(), String::new()));
    assert_eq!(told(&mut unfocused(Notices::Auto, "linux")), (String::new(), String::new()));
    let (asked, _) = told(&mut unfocused(Notices::Auto, "rxvt-unicode-256color"));
    assert_eq!(asked, "^]777;notify;aye in greeter;1 approval or question is waiting for you^\\");
}

#[test]
fn a_focused_terminal_gets_no_notifications() {
    let mut model = unfocused(Notices::Auto, "xterm-kitty");
    update(&mut model, Msg::Input(UiInput::FocusIn), 200);
    assert_eq!(told(&mut model), (String::new(), String::new()));
}

#[test]
fn with_reduced_motion_streamed_text_appears_in_whole_rows() {
    let mut model = model(60, 24);
    model.options.reduce_motion = true;
    tell(&mut model, started("go"), 0);
    tell(&mut model, text("the first row is as long as the window is, and goes on in the nex"), 0);
    let screen = draw(&mut model, 10);
    assert!(screen.contains("the first row is") && !screen.contains("nex"), "{screen}");
    tell(
        &mut model,
        EventKind::TaskCompleted { text: String::new(), usage: Usage::default(), cost_usd: None, step_count: 1 },
        20,
    );
    assert!(draw(&mut model, 30).contains("nex"));
}

#[test]
fn themes_are_listed_with_their_errors() {
    let place = tempfile::tempdir().unwrap();
    std::fs::write(place.path().join("mine.toml"), "light = true\nfaint = \"CCCCCC\"\n").unwrap();
    std::fs::write(place.path().join("broken.toml"), "light = true\nfant = \"CCCCCC\"\n").unwrap();
    let mut model = model(120, 40);
    model.options.themes = Some(place.path().to_owned());
    play(&mut model, 1000, "/theme<enter>");
    let screen = draw(&mut model, 3000);
    assert!(screen.contains("Themes · 9") && screen.contains("Edit src/greet.rs"), "{screen}");
    play(&mut model, 3100, "mine");
    assert_eq!(model.screen.theme.name, "mine", "the highlighted theme applies at once");
    assert!(draw(&mut model, 3200).contains("custom, for a light background"));
    play(&mut model, 3300, "<ctrl+u>broken");
    let screen = draw(&mut model, 3400);
    assert!(screen.contains("cannot be used") && screen.contains("broken.toml:2"), "{screen}");
    assert_eq!(play(&mut model, 3500, "<enter>"), [""; 0], "it cannot be chosen");
    play(&mut model, 3600, "<esc>");
    assert_eq!(model.screen.theme.name, "dark", "closing the list restores the theme");
    assert_eq!(play(&mut model, 3700, "/theme<enter>light<enter>"), ["lookup(keeptheme { name: \"light\" })"]);
    assert_eq!(model.screen.theme.name, "light");
    play(&mut model, 4000, "/theme mine<enter>");
    assert_eq!(model.screen.theme.name, "mine");
    let screen = draw(&mut model, 5500);
    assert!(screen.contains("theme mine"), "{screen}");
    assert!(screen.contains("faint has a contrast of 1.6") || model.options.terminal.colours == ColourDepth::None, "{screen}");
    play(&mut model, 8000, "/theme broken<enter>");
    assert!(draw(&mut model, 9900).contains("unknown field `fant`"));
    assert_eq!(model.screen.theme.name, "mine");
}
