//! Tests that the key map and the key handlers agree, and that custom keys work and never decide anything.

use super::*;
use crate::tui::browse::Browse;
use crate::tui::interface::KeymapFile;
use crate::tui::keymap::{Chord, Focus, Keymap, Row};
use crate::tui::layers::{CommandPalette, Help, ModelPicker};
use crate::tui::model::UiModel;
use crate::tui::tests::fixtures::{completed, listed_models, listed_sessions, options, rewind_points, start};
use crate::tui::update::focus::focus;
use ratatui::layout::Size;
use std::collections::BTreeSet;

const NOW: u64 = 30_000;

/// Situation in which keys are pressed. `all` says whether all keys are pressed, or only those in the key map.
struct Scene {
    name: &'static str,
    focus: Focus,
    all: bool,
    make: fn() -> UiModel,
}

fn scene(name: &'static str, focus: Focus, make: fn() -> UiModel) -> Scene {
    Scene { name, focus, all: false, make }
}

fn whole(name: &'static str, focus: Focus, make: fn() -> UiModel) -> Scene {
    Scene { name, focus, all: true, make }
}

fn past(model: &mut UiModel) {
    let output = (1..=12).map(|n| format!("output line {n}\n")).collect::<Vec<_>>().concat();
    for n in 0..3 {
        tell(model, started(&format!("prompt {n}")), 10);
        tell(model, text("A line of words.\n\n```rust\nlet line = 17;\n```\n"), 20);
        let id = n.to_string();
        tell(model, requested(&id, "RunCommand", "$ cargo test"), 30);
        tell(model, completed(&id, ToolStatus::Succeeded, &output, None), 40);
        let usage = Usage::default();
        tell(model, EventKind::TaskCompleted { text: String::new(), usage, cost_usd: None, step_count: 1 }, 50);
    }
    draw(model, 60);
}

fn idle() -> UiModel {
    let mut model = model(80, 20);
    past(&mut model);
    model
}

fn drafting(draft: &str) -> UiModel {
    let mut model = idle();
    model.composer.set(draft);
    model
}

fn in_the_middle() -> UiModel {
    let mut model = drafting("one two\n\nthree four five\n\nsix seven");
    play(&mut model, 100, "<up><up><end><left><left><left><left>");
    model
}

fn running() -> UiModel {
    let mut model = idle();
    tell(&mut model, started("x"), 100);
    tell(&mut model, requested("r", "RunCommand", "$ make"), 100);
    tell(
        &mut model,
        EventKind::ToolStarted { tool_call_id: call("r"), rule: String::new(), summary: None, effects: None, note: None },
        100,
    );
    let waiting = vec![crate::protocol::QueuedMessage { id: 1, text: "and then".to_owned(), steer: false }];
    tell(&mut model, EventKind::QueueChanged { waiting }, 100);
    model
}

fn waiting() -> UiModel {
    let mut model = drafting("x");
    model.keys.last_key = Some(900);
    for id in ["a", "b"] {
        tell(&mut model, EventKind::ApprovalRequested(edit_approval(id)), 1000);
    }
    model
}

fn question() -> UiModel {
    let mut model = model(80, 15);
    past(&mut model);
    for id in ["a", "b"] {
        tell(&mut model, EventKind::ApprovalRequested(edit_approval(id)), 5000);
    }
    draw(&mut model, 5000);
    draw(&mut model, 5600);
    model
}

fn scrolled_question() -> UiModel {
    let mut model = question();
    play(&mut model, 6000, "<pgdn>");
    model
}

fn inbox() -> UiModel {
    let mut model = question();
    play(&mut model, 6000, "<ctrl+q>");
    draw(&mut model, 7000);
    model
}

fn far_in_inbox() -> UiModel {
    let mut model = inbox();
    play(&mut model, 8000, "<down>");
    model
}

fn browsing(script: &str) -> UiModel {
    let mut model = idle();
    play(&mut model, 1000, "<ctrl+t>");
    play(&mut model, 2000, script);
    model
}

fn models() -> UiModel {
    let mut model = idle();
    play(&mut model, 1000, "<ctrl+l>");
    tell(&mut model, EventKind::ModelsListed { models: listed_models(), notices: Vec::new() }, 2000);
    draw(&mut model, 2000);
    play(&mut model, 3000, "on<down><right><right>");
    model
}

fn sessions() -> UiModel {
    let mut model = UiModel::new(options(), None, Size::new(80, 20));
    let _ = update(&mut model, Msg::Ahead(Box::new(crate::tui::interface::StartupQuestion::Choose)), 1000);
    let told = HostResponse::Sessions {
        words: String::new(),
        all: false,
        archived: false,
        sessions: listed_sessions(),
        here: 3,
        everywhere: 57,
        looks_on: false,
    };
    let _ = update(&mut model, Msg::Event(Box::new(event(EventKind::LookedUp(told)))), 2000);
    draw(&mut model, 2000);
    play(&mut model, 3000, "<down>");
    model
}

fn points() -> UiModel {
    let mut model = idle();
    play(&mut model, 8000, "/rewind<enter>");
    tell(&mut model, EventKind::RewindPointsListed { points: rewind_points(), can_redo: false }, 9000);
    draw(&mut model, 9001);
    model
}

fn changes() -> UiModel {
    let mut model = idle();
    play(&mut model, 1000, "/diff<enter>");
    let file = |name: &str| ChangedFile {
        path: name.to_owned(),
        status: ChangeStatus::Modified,
        diff: FileDiffs::read(&format!("--- a/{name}\n+++ b/{name}\n@@ -1,40 +1,40 @@\n{}", "-a\n+b\n".repeat(40))),
        added: 40,
        removed: 40,
        by: vec![ChangedBy::Tool],
        note: None,
    };
    let files = ["a.rs", "b.rs", "c.rs"].map(file).to_vec();
    tell(&mut model, EventKind::ChangedFiles(ChangedFiles { files, added: 120, removed: 120, ..ChangedFiles::default() }), 2000);
    draw(&mut model, 2000);
    play(&mut model, 3000, "n<down><down><down>");
    model
}

fn scenes() -> Vec<Scene> {
    vec![
        scene("idle", Focus::Composer, idle),
        scene("scrolled", Focus::Composer, || {
            let mut model = idle();
            play(&mut model, 100, "<pgup>");
            model
        }),
        whole("middle of a draft", Focus::Composer, in_the_middle),
        scene("deleted", Focus::Composer, || {
            let mut model = in_the_middle();
            play(&mut model, 900, "<ctrl+w>");
            model
        }),
        scene("selected", Focus::Composer, || {
            let mut model = in_the_middle();
            for _ in 0..3 {
                let _ = update(&mut model, press(KeyCode::Left, KeyModifiers::SHIFT), 900);
            }
            model
        }),
        scene("sent before", Focus::Composer, || {
            let mut model = idle();
            play(&mut model, 100, "alpha one<enter>alpha two<enter><up><up>");
            model
        }),
        whole("running", Focus::Composer, running),
        scene("running with a draft", Focus::Composer, || {
            let mut model = running();
            model.composer.set("x");
            model
        }),
        scene("questions wait", Focus::Composer, waiting),
        scene("menu", Focus::Menu, || {
            let mut model = idle();
            play(&mut model, 1000, "/re<down>");
            model
        }),
        scene("search", Focus::Search, || {
            let mut model = idle();
            play(&mut model, 100, "alpha one<enter>alpha two<enter><ctrl+r>al");
            model
        }),
        whole("question", Focus::Question, question),
        scene("scrolled question", Focus::Question, scrolled_question),
        scene("question with a choice marked", Focus::Question, || {
            let mut model = question();
            play(&mut model, NOW - 1000, "<down>");
            model
        }),
        whole("inbox", Focus::Inbox, inbox),
        scene("far in the inbox", Focus::Inbox, far_in_inbox),
        whole("browse", Focus::Browse, || browsing("kkk")),
        scene("browse, first", Focus::Browse, || browsing("g")),
        scene("browse with words", Focus::Browse, || browsing("/line<enter>kk")),
        scene("browse lines", Focus::Browse, || browsing("gjvj")),
        scene("browse columns", Focus::Browse, || browsing("gj<ctrl+v>jl")),
        scene("browse while one waits", Focus::Browse, || {
            let mut model = browsing("k");
            tell(&mut model, EventKind::ApprovalRequested(edit_approval("a")), 9000);
            model
        }),
        scene("models", Focus::List, models),
        whole("sessions", Focus::List, sessions),
        scene("prompts", Focus::List, points),
        scene("servers", Focus::List, || {
            let mut model = idle();
            tell(&mut model, EventKind::ServersChanged { servers: crate::tui::tests::fixtures::servers() }, 1000);
            play(&mut model, 2000, "/mcp<enter>");
            model
        }),
        scene("tasks", Focus::List, || {
            let mut model = idle();
            let told = HostResponse::Tasks { tasks: crate::tui::tests::fixtures::listed_tasks() };
            let _ = update(&mut model, Msg::Event(Box::new(event(EventKind::LookedUp(told)))), 1000);
            play(&mut model, 2000, "/tasks<enter>");
            model
        }),
        scene("memory", Focus::List, || {
            let mut model = idle();
            model.options.memory = true;
            let proposals = crate::tui::tests::fixtures::memory_proposals();
            let told = HostResponse::Memory { proposals, notice: None, failed: None };
            let _ = update(&mut model, Msg::Event(Box::new(event(EventKind::LookedUp(told)))), 1000);
            play(&mut model, 2000, "/memory<enter>");
            model
        }),
        scene("overview", Focus::List, || {
            let mut model = idle();
            play(&mut model, 2000, "/policy<enter>");
            model
        }),
        scene("themes", Focus::List, || {
            let mut model = idle();
            play(&mut model, 2000, "/theme<enter>");
            model
        }),
        whole("changes", Focus::Reader, changes),
        scene("a finding", Focus::Reader, super::review::finding),
        scene("help", Focus::List, || {
            let mut model = idle();
            play(&mut model, 1000, "?<pgdn>x");
            model
        }),
    ]
}

/// Returns everything that a key visibly changes, and the commands that it sends.
fn come_to(mut model: UiModel, key: KeyEvent) -> String {
    let effects = update(&mut model, Msg::Input(UiInput::Key(key)), NOW);
    let mut said: Vec<String> = effects.iter().filter_map(words).collect();
    model.toast = model.toast.take().filter(|(words, _)| !words.contains("does nothing while you browse"));
    let mut buffer = Buffer::empty(Rect::from(model.screen.size));
    let drawn = view::draw(&mut model, &mut buffer, NOW);
    let rows =
        (0..model.screen.size.height).map(|y| (0..model.screen.size.width).map(|x| buffer[(x, y)].symbol()).collect::<String>());
    said.extend(rows);
    said.push(format!("{:?} {:?} {:?}", drawn.cursor, focus(&model), model.transcript.marks.selection));
    said.retain(|row| !row.trim().is_empty());
    said.join("\n")
}

/// Returns the keys that a terminal can send, excluding text keys where the user can type text.
fn pressed(at: Focus) -> Vec<Chord> {
    let named =
        ["enter", "esc", "tab", "backspace", "delete", "up", "down", "left", "right", "home", "end", "pgup", "pgdn", "f1", "f2"];
    let mut names: Vec<String> = Vec::new();
    let held = if at == Focus::Composer { &["", "ctrl+", "alt+", "shift+"][..] } else { &["", "ctrl+"] };
    for held in held {
        names.extend(named.iter().map(|name| format!("{held}{name}")));
    }
    for held in ["ctrl+", "alt+", "ctrl+alt+", "ctrl+shift+"] {
        names.extend(('a'..='z').map(|letter| format!("{held}{letter}")));
    }
    let others = ["alt+<", "alt+>", "alt+[", "alt+]", "ctrl+alt+left", "ctrl+alt+enter", "ctrl+alt+tab", "ctrl+alt+pgup"];
    names.extend(others.map(str::to_owned));
    if !at.takes_text() {
        names.extend(('!'..='~').map(String::from).chain(["space".to_owned()]));
    }
    names.iter().filter_map(|name| Chord::parse(name).ok()).collect()
}

/// Returns the keys that the key map lists for a part of the UI.
fn listed(map: &Keymap, focus: Focus) -> BTreeSet<String> {
    let rows = map.rows().iter().filter(|row| row.focus == focus);
    rows.flat_map(|row| row.keys.split(' ').map(str::to_owned).collect::<Vec<_>>()).collect()
}

/// Returns whether the key map lists a key, possibly without one of its modifiers. A key with two additional modifiers
/// always counts as a different key.
fn is_listed(known: &BTreeSet<String>, shown: &str) -> bool {
    let plain = shown.split_once('+').filter(|(_, rest)| !rest.is_empty()).map(|(_, rest)| rest);
    let much = Chord::parse(shown).is_ok_and(|chord| chord.has_extra_modifiers());
    known.contains(shown) || !much && plain.is_some_and(|plain| is_listed(known, plain))
}

#[test]
fn every_working_key_is_in_the_keymap_and_every_key_in_the_keymap_works() {
    let (map, _) = Keymap::new(None);
    let unknown = KeyEvent::new(KeyCode::F(20), KeyModifiers::NONE);
    let mut worked: BTreeSet<(Focus, String)> = BTreeSet::new();
    let mut not_listed = Vec::new();
    for Scene { name, focus: at, all, make } in scenes() {
        let model = make();
        assert_eq!(focus(&model), at, "{name}");
        let nothing = come_to(model, unknown);
        let known: BTreeSet<String> = at.layers().iter().flat_map(|focus| listed(&map, *focus)).collect();
        let own = known.iter().filter_map(|name| Chord::parse(name).ok());
        let mut chords: Vec<Chord> = own.filter(|chord| !chord.is_text() || !at.takes_text()).collect();
        if all {
            chords.extend(pressed(at));
        }
        for chord in chords {
            if come_to(make(), chord.event()) == nothing {
                continue;
            }
            let shown = chord.to_string();
            if !is_listed(&known, &shown) {
                not_listed.push(format!("{shown} in {name} [{}]", at.name()));
            }
            worked.extend(at.layers().iter().map(|focus| (*focus, shown.clone())));
        }
    }
    let mut idle = Vec::new();
    // Keys of fields are tested in their fields, and any key accepts a search result.
    let is_tried = |row: &&Row| row.focus != Focus::Field && (row.focus, row.action.as_str()) != (Focus::Search, "take");
    for row in map.rows().iter().filter(is_tried) {
        let typed = row.is_typed();
        for key in row.keys.split(' ').filter(|_| !typed) {
            if !worked.contains(&(row.focus, key.to_owned())) {
                idle.push(format!("{key} of {} [{}]", row.action, row.focus.name()));
            }
        }
    }
    let (not_listed, idle) = (not_listed.join("\n"), idle.join("\n"));
    assert!(not_listed.is_empty() && idle.is_empty(), "the map does not list:\n{not_listed}\nnothing answers to:\n{idle}");
}

fn with_keys(file: &str) -> UiModel {
    let keys = KeymapFile { path: "/home/me/.config/aye/keymap.toml".to_owned(), text: Some(Ok(file.to_owned())) };
    let mut model = UiModel::new(crate::tui::interface::UiOptions { keys, ..options() }, None, Size::new(100, 40));
    let _ = update(&mut model, Msg::Start(Box::new(start())), 0);
    draw(&mut model, 0);
    model
}

fn strike(model: &mut UiModel, name: &str, at: u64) -> Vec<String> {
    let key = Chord::parse(name).unwrap().event();
    let said = update(model, Msg::Input(UiInput::Key(key)), at).iter().filter_map(words).collect();
    draw(model, at);
    said
}

#[test]
fn custom_keys_trigger_their_action_and_are_shown_in_hints() {
    let mut model =
        with_keys("[composer]\nsend = \"f5\"\nnew-line = \"enter\"\npalette = \"ctrl+e\"\nmodel = []\nline-end = []\n");
    let screen = draw(&mut model, 100);
    assert!(screen.contains("f5 send · enter new line") && screen.contains("ctrl+e palette"), "{screen}");
    assert!(!screen.contains("keymap.toml"), "{screen}");
    play(&mut model, 1000, "one<enter>two");
    assert_eq!(model.composer.text(), "one\ntwo");
    assert_eq!(strike(&mut model, "ctrl+l", 2000), [""; 0]);
    assert!(!model.layers.is_open::<ModelPicker>());
    assert_eq!(strike(&mut model, "f5", 2000), ["prompt \"one\\ntwo\""]);
    strike(&mut model, "ctrl+e", 3000);
    assert!(model.layers.is_open::<CommandPalette>());
}

#[test]
fn enter_selects_in_a_menu_even_if_bound_to_new_line_in_the_draft() {
    let mut model = with_keys("[composer]\nsend = \"f5\"\nnew-line = \"enter\"\n");
    play(&mut model, 1000, "/hel");
    draw(&mut model, 2000);
    strike(&mut model, "enter", 3000);
    assert!(model.layers.is_open::<Help>(), "{}", draw(&mut model, 3000));
}

#[test]
fn errors_in_a_keymap_file_name_the_line_and_the_rest_applies() {
    let mut model =
        with_keys("[composer]\npallete = \"f5\"\nmodel = \"f6\"\n[question]\nnext = \"y\"\nprevious = \"\u{1b}[2J\"\n");
    let screen = draw(&mut model, 100);
    for words in [
        "keymap.toml: some entries are invalid; the others apply",
        "line 2: `[composer]` has no action `pallete`; did you mean `palette`?",
        "line 5: `y` types text",
    ] {
        assert!(screen.contains(words), "{words}\n{screen}");
    }
    assert!(!screen.contains('\u{1b}'), "{screen}");
    strike(&mut model, "f6", 1000);
    assert!(model.layers.is_open::<ModelPicker>());
}

#[test]
fn an_unreadable_keymap_file_is_reported_and_the_built_in_keys_apply() {
    let keys = KeymapFile { path: "keymap.toml".to_owned(), text: Some(Err("stream did not contain valid UTF-8".to_owned())) };
    let mut model = UiModel::new(crate::tui::interface::UiOptions { keys, ..options() }, None, Size::new(100, 30));
    let _ = update(&mut model, Msg::Start(Box::new(start())), 0);
    assert!(draw(&mut model, 10).contains("cannot be read: stream did not contain valid UTF-8; using the built-in keys"));
}

fn keys_read(model: &mut UiModel, text: Option<Result<&str, &str>>, at: u64) -> String {
    let text = text.map(|text| text.map(str::to_owned).map_err(str::to_owned));
    let told = HostResponse::Keys { path: "/home/me/.config/aye/keymap.toml".to_owned(), text };
    let _ = update(model, Msg::Event(Box::new(event(EventKind::LookedUp(told)))), at);
    draw(model, at)
}

#[test]
fn a_changed_keymap_file_applies_immediately_and_its_errors_are_reported() {
    let first = "[composer]\npalette = \"f5\"\n";
    let mut model = with_keys(first);
    let screen = keys_read(&mut model, Some(Ok(first)), 500);
    assert!(!screen.contains("reloaded"), "the same file is no news\n{screen}");
    let screen = keys_read(&mut model, Some(Ok("[composer]\npalette = \"f6\"\nmodle = \"f7\"\n")), 1000);
    for words in
        ["custom keys reloaded", "some entries are invalid; the others apply", "line 3: `[composer]` has no action `modle`"]
    {
        assert!(screen.contains(words), "{words}\n{screen}");
    }
    strike(&mut model, "f5", 1500);
    assert!(!model.layers.is_open::<CommandPalette>(), "the key of before does nothing");
    let screen = keys_read(&mut model, Some(Err("Permission denied")), 2000);
    assert!(screen.contains("cannot be read: Permission denied; keys unchanged"), "{screen}");
    strike(&mut model, "f6", 2500);
    assert!(model.layers.is_open::<CommandPalette>());
    strike(&mut model, "esc", 3000);
    let screen = keys_read(&mut model, None, 7000);
    assert!(screen.contains("custom key file removed; the built-in keys apply"), "{screen}");
    strike(&mut model, "ctrl+p", 7500);
    assert!(model.layers.is_open::<CommandPalette>());
}

/// Tests that a removed key, like any key that is not an answer, cancels a pending letter.
#[test]
fn custom_keys_decide_nothing_and_cancel_a_letter_being_confirmed() {
    let file = "[question]\nfull-screen = \"f5\"\npage-down = \"tab\"\nnext = \"f6\"\n";
    for key in ["f5", "ctrl+f", "tab", "f6", "pgdn"] {
        let mut model = with_keys(file);
        tell(&mut model, EventKind::ApprovalRequested(edit_approval("a")), 5000);
        draw(&mut model, 5000);
        draw(&mut model, 5600);
        assert_eq!(play(&mut model, 7000, "y"), [""; 0]);
        assert_eq!(strike(&mut model, key, 7100), [""; 0]);
        assert_eq!(wait(&mut model, 7500), [""; 0], "{key}");
        assert!(model.dialogs.is_open());
        play(&mut model, 9000, "y");
        assert_eq!(wait(&mut model, 9350), ["a Approved"], "{key}");
    }
}

/// Tests that a letter that opens a dialog from browse mode counts as typing for that dialog.
#[test]
fn a_letter_that_opens_an_approval_counts_as_typing() {
    let mut model = with_keys("[browse]\nreview = [\"tab\", \"r\"]\n");
    past(&mut model);
    play(&mut model, 1000, "<ctrl+t>");
    tell(&mut model, EventKind::ApprovalRequested(edit_approval("a")), 5000);
    strike(&mut model, "r", 6000);
    assert!(model.dialogs.is_open());
    assert_eq!(model.keys.last_text, Some(6000));
    assert_eq!(play(&mut model, 6050, "y"), [""; 0]);
    assert_eq!(wait(&mut model, 6900), ["draft \"y\""], "it went to the draft");
    assert!(model.browse.as_ref().map(|Browse { selects, .. }| *selects).is_none());
}

#[test]
fn the_keymap_file_does_not_change_vim_keys() {
    let keys = KeymapFile { path: String::new(), text: Some(Ok("[composer]\nhistory = \"f5\"\n".to_owned())) };
    let mut model = UiModel::new(crate::tui::interface::UiOptions { keys, vim: true, ..options() }, None, Size::new(100, 30));
    let _ = update(&mut model, Msg::Start(Box::new(start())), 0);
    play(&mut model, 1000, "ab<esc>xu");
    assert_eq!(model.composer.text(), "ab");
    play(&mut model, 3000, "<ctrl+r>");
    assert_eq!(model.composer.text(), "a");
    assert!(model.draft.search.is_none());
}
