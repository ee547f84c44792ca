use super::*;
use crossterm::event::KeyEventKind;

fn key(name: &str) -> KeyEvent {
    Chord::parse(name).unwrap().event()
}

fn keymap(file: &str) -> Keymap {
    let (map, problems) = Keymap::new(Some(file));
    assert_eq!(problems, [""; 0], "{file}");
    map
}

/// Returns the name of the key that the handlers receive when the key `name` is pressed.
fn sees(map: &Keymap, focus: Focus, name: &str) -> String {
    let key = map.key(focus, key(name));
    if key.code == KeyCode::Null { "nothing".to_owned() } else { Chord::from_event(key).to_string() }
}

fn keys(map: &Keymap, focus: Focus, action: &str) -> String {
    map.rows().iter().find(|row| row.focus == focus && row.action == action).unwrap().keys.clone()
}

/// Returns all keys that may appear in a key file.
fn all() -> Vec<Chord> {
    let named = [
        "enter",
        "tab",
        "backspace",
        "delete",
        "up",
        "down",
        "left",
        "right",
        "home",
        "end",
        "pgup",
        "pgdn",
        "esc",
        "f1",
        "f2",
        "f12",
    ];
    let letters: Vec<String> =
        (' '..='~').map(|letter| if letter == ' ' { "space".to_owned() } else { letter.to_string() }).collect();
    let mut chords = Vec::new();
    for held in ["", "ctrl+", "alt+", "ctrl+alt+", "shift+"] {
        for name in named.iter().copied().chain(letters.iter().map(String::as_str)) {
            chords.extend(Chord::parse(&format!("{held}{name}")));
        }
    }
    chords.extend(Chord::parse("ü"));
    chords
}

#[test]
fn the_built_in_keymap_is_complete() {
    let table: BTreeMap<Focus, Vec<KeyBinding>> = toml::from_str(BUILT_IN).unwrap();
    assert_eq!(table.keys().copied().collect::<Vec<_>>(), Focus::ALL);
    for (focus, entries) in table {
        let mut seen = HashMap::new();
        let mut actions = HashSet::new();
        for entry in &entries {
            assert!(actions.insert(&entry.action), "[{}] has two `{}`", focus.name(), entry.action);
            assert_eq!(entry.keys.is_empty(), entry.typed.is_some(), "{} is either typed or pressed", entry.action);
            for name in &entry.keys {
                let chord = Chord::parse(name).unwrap();
                assert_eq!(chord.to_string(), *name);
                let is_letter = chord.is_text() && focus.takes_text();
                assert!(!is_letter, "`{name}` of [{}] is text", focus.name());
                let other = seen.insert(chord, &entry.action);
                assert_eq!(other, None, "`{name}` of [{}] is {:?} and {}", focus.name(), other, entry.action);
            }
        }
        // Every part of the screen can be closed with a fixed key.
        let way_out = |name: &str| entries.iter().any(|entry| entry.fixed && entry.keys.iter().any(|key| key == name));
        assert!(way_out("esc"), "[{}]", focus.name());
        assert!(way_out("ctrl+c") || focus == Focus::Menu, "[{}]", focus.name());
    }
}

#[test]
fn keys_are_parsed_in_common_notations() {
    for (text, shown) in [
        ("ctrl+G", "ctrl+g"),
        ("Control+Alt+Delete", "ctrl+alt+delete"),
        ("shift+tab", "shift+tab"),
        ("PageUp", "pgup"),
        ("shift+a", "A"),
        ("alt+shift+a", "alt+A"),
        ("F12", "f12"),
        ("ctrl++", "ctrl++"),
        ("+", "+"),
        ("space", "space"),
        ("f", "f"),
        ("ü", "ü"),
    ] {
        assert_eq!(Chord::parse(text).map(|chord| chord.to_string()), Ok(shown.to_owned()));
    }
    for (text, why) in [
        ("ctrl+i", "the same key as `tab`"),
        ("hyper+a", "use ctrl, alt or shift"),
        ("ctrl+foo", "unknown key"),
        ("f25", "unknown key"),
        ("f0", "unknown key"),
        ("ctrl+", "use ctrl, alt or shift"),
        ("", "unknown key"),
        ("  ", "unknown key"),
    ] {
        let read = Chord::parse(text);
        assert!(read.as_ref().is_err_and(|error| error.contains(why) || text == "ctrl+"), "{text}: {read:?}");
    }
}

#[test]
fn chords_round_trip_through_events_and_text() {
    for chord in all() {
        assert_eq!(Chord::from_event(chord.event()), chord, "{chord}");
        assert_eq!(Chord::parse(&chord.to_string()), Ok(chord));
    }
    let shifted = KeyEvent::new(KeyCode::BackTab, KeyModifiers::SHIFT);
    assert_eq!(Chord::from_event(shifted).to_string(), "shift+tab");
}

#[test]
fn without_a_file_every_key_keeps_its_meaning() {
    let (map, problems) = Keymap::new(None);
    assert!(problems.is_empty());
    let (empty, _) = Keymap::new(Some(""));
    for focus in Focus::ALL {
        for chord in all().into_iter().filter(|chord| !chord.has_extra_modifiers()) {
            assert_eq!(map.key(focus, chord.event()), chord.event());
            assert_eq!(empty.key(focus, chord.event()), chord.event());
        }
    }
    assert_eq!(map.rows(), empty.rows());
    assert_eq!(map.translate_keys(Focus::Composer, "press ctrl+l"), "press ctrl+l");
}

#[test]
fn keys_with_extra_modifiers_are_ignored() {
    let (map, _) = Keymap::new(None);
    let own = keymap("[composer]\nbrowse = \"ctrl+alt+t\"\nmodel = \"ctrl+shift+l\"\n");
    for (name, is, is_with_file) in [
        ("ctrl+t", "ctrl+t", "nothing"),
        ("ctrl+alt+t", "nothing", "ctrl+t"),
        ("ctrl+shift+l", "nothing", "ctrl+l"),
        ("ctrl+shift+c", "nothing", "nothing"),
        ("ctrl+alt+c", "nothing", "nothing"),
        ("ctrl+alt+enter", "nothing", "nothing"),
        ("ctrl+alt+left", "ctrl+alt+left", "ctrl+alt+left"),
        ("ctrl+shift+_", "ctrl+shift+_", "ctrl+shift+_"),
    ] {
        assert_eq!(
            (sees(&map, Focus::Composer, name).as_str(), sees(&own, Focus::Composer, name).as_str()),
            (is, is_with_file),
            "{name}"
        );
    }
    assert_eq!(sees(&map, Focus::Question, "ctrl+alt+left"), "nothing", "a key of the draft is none of a question");
}

#[test]
fn an_action_has_only_the_keys_assigned_in_the_file() {
    let map = keymap("[composer]\nsend = \"ctrl+s\"\nmouse = \"\"\nnew-line = [\"enter\", \"ctrl+j\"]\n");
    let sees = |name: &str| sees(&map, Focus::Composer, name);
    assert_eq!((sees("ctrl+s"), sees("enter"), sees("ctrl+j")), ("enter".into(), "ctrl+j".into(), "ctrl+j".into()));
    assert_eq!((sees("alt+enter"), sees("x")), ("nothing".into(), "x".into()));
    assert_eq!(map.key(Focus::Question, key("enter")), key("enter"), "elsewhere nothing changes");
    assert_eq!(keys(&map, Focus::Composer, "send"), "ctrl+s");
    assert_eq!(keys(&map, Focus::Composer, "mouse"), "(no key)");
    let repeated = KeyEvent { kind: KeyEventKind::Repeat, ..key("ctrl+s") };
    assert_eq!(map.key(Focus::Composer, repeated).kind, KeyEventKind::Repeat);
}

#[test]
fn menu_and_search_keys_take_precedence_over_composer_keys() {
    let map = keymap(
        "[composer]\nsend = \"ctrl+s\"\nmouse = []\nnew-line = [\"enter\"]\npalette = \"f3\"\n[menu]\ndown = [\"down\", \"ctrl+n\"]\n",
    );
    assert_eq!(sees(&map, Focus::Menu, "enter"), "enter");
    assert_eq!(sees(&map, Focus::Search, "enter"), "enter");
    assert_eq!(sees(&map, Focus::Composer, "enter"), "ctrl+j");
    assert_eq!(sees(&map, Focus::Menu, "ctrl+n"), "down");
    assert_eq!(sees(&map, Focus::Composer, "ctrl+n"), "ctrl+n");
    assert_eq!(sees(&map, Focus::Menu, "f3"), "ctrl+p");
    assert_eq!(sees(&map, Focus::Menu, "ctrl+p"), "nothing");
}

#[test]
fn invalid_entries_are_reported_with_their_line_and_the_rest_applies() {
    for (text, why) in [
        ("[composer\n", "line 1:"),
        ("\n[composr]\nsend = \"f5\"", "line 2: unknown section `[composr]`; did you mean `composer`?"),
        ("[everything]\n", "line 1: unknown section `[everything]`; expected one of composer, menu,"),
        ("composer = 3\n", "line 1: `composer` must be a table"),
        ("editor = \"ctrl+e\"\n", "line 1: unknown section `[editor]`"),
        ("\n[composer]\nsned = \"f2\"\n", "line 3: `[composer]` has no action `sned`; did you mean `send`?"),
        ("[composer]\nmake-coffee = \"f2\"\n", "line 2: `[composer]` has no action `make-coffee`; /keys"),
        ("[composer]\nsend = \"x\"\n", "line 2: `x` types text in `[composer]`"),
        ("[composer]\nsend = \"shift+x\"\n", "`X` types text"),
        ("[question]\nnext = \"y\"\n", "`y` types text in `[question]`"),
        ("[question]\nnext = \"enter\"\n", "`enter` in `[question]` is reserved for `confirm`"),
        ("[question]\nyes = \"f5\"\n", "line 2: `yes` in `[question]` cannot be changed: y"),
        ("[question]\nconfirm = []\n", "cannot be changed: enter"),
        ("[question]\nlater = \"q\"\n", "cannot be changed"),
        ("[inbox]\nleave = \"space\"\n", "`space` types text"),
        ("[composer]\nstop = \"f5\"\n", "`stop` in `[composer]` cannot be changed: esc"),
        ("[composer]\nsend = [\"f5\", \"ctrl+c\"]\n", "`ctrl+c` in `[composer]` is reserved for `clear`"),
        ("[browse]\nnext = \"esc\"\n", "`esc` in `[browse]` is reserved"),
        ("[field]\ntake = \"f5\"\n", "cannot be changed"),
        ("[composer]\nsend = \"ctrl+m\"\n", "the same key as `enter`"),
        ("[composer]\nsend = \"super+x\"\n", "use ctrl, alt or shift"),
        ("[composer]\nsend = \"ctrl+\"\n", "line 2:"),
        ("[composer]\nsend = 3\n", "line 2: invalid value for `send`; expected a key as a string"),
        ("[composer]\nsend = [3]\n", "line 2: a key of `send` is not a string"),
        ("[composer]\nsend = \"f5\"\nsend = \"f6\"\n", "line 3:"),
        ("[composer]\nsend = \n", "line 2:"),
        ("\u{feff}[composer]\nsned = []", "line 2:"),
        ("[composer]\nfold = \"ctrl+t\"\n", "line 2: `browse` no longer has a key, because `ctrl+t` was reassigned"),
    ] {
        let text = format!("{text}\n[reader]\nnext = \"f9\"\n");
        let (map, problems) = Keymap::new(Some(&text));
        assert!(problems.iter().any(|problem| problem.contains(why)), "{text:?}: {problems:?}");
        assert_eq!(
            sees(&map, Focus::Composer, "enter"),
            if text.contains("send = [\"f5") || text.contains("send = \"f5\"\nsend") { "nothing" } else { "enter" },
            "{text:?}"
        );
        assert_eq!(sees(&map, Focus::Reader, "f9"), "n", "{text:?}: {problems:?}");
    }
}

#[test]
fn long_lists_of_problems_are_cut_with_a_count() {
    let text = (0..30).fold("[composer]\n".to_owned(), |text, n| format!("{text}x{n} = \"f2\"\n"));
    let (_, problems) = Keymap::new(Some(&text));
    assert_eq!((problems.len(), problems.last().map(String::as_str)), (9, Some("and 22 more")));
}

#[test]
fn a_key_assigned_twice_is_reported_and_goes_to_the_first_action() {
    let (map, problems) = Keymap::new(Some("[composer]\nsend = \"f2\"\nsteer = \"f2\"\n"));
    assert_eq!(problems, ["line 3: `f2` is already assigned to `send` on line 2; not assigned to `steer`"]);
    assert_eq!(sees(&map, Focus::Composer, "f2"), "enter");
    assert_eq!((keys(&map, Focus::Composer, "send"), keys(&map, Focus::Composer, "steer")), ("f2".into(), "ctrl+enter".into()));
}

#[test]
fn two_actions_can_swap_their_keys() {
    let map = keymap("[composer]\nbrowse = \"ctrl+o\"\nfold = \"ctrl+t\"\n");
    assert_eq!(sees(&map, Focus::Composer, "ctrl+o"), "ctrl+t");
    assert_eq!(sees(&map, Focus::Composer, "ctrl+t"), "ctrl+o");
    assert_eq!(map.hint(Focus::Composer, "ctrl+o fold").as_deref(), Some("ctrl+t fold"));
}

/// Checks that no key file can make another key decide a dialog.
#[test]
fn no_keymap_file_can_make_another_key_decide_a_dialog() {
    let decides = |chord: Chord| chord.is_text() || chord.code == KeyCode::Enter && chord.modifiers.is_empty();
    let words: Vec<String> = all()
        .iter()
        .map(|chord| format!("\"\"\"{}\"\"\"", chord.to_string().replace('\\', "\\\\").replace('"', "\\\"")))
        .collect();
    for focus in [Focus::Question, Focus::Inbox, Focus::Field] {
        for action in built_in_actions().iter().filter(|action| action.focus == focus) {
            let file = format!("[{}]\n{} = [{}]\n", focus.name(), action.entry.action, words.join(", "));
            let (map, problems) = Keymap::new(Some(&file));
            assert!(!problems.is_empty(), "{}", action.entry.action);
            for chord in all() {
                let seen = Chord::from_event(map.key(focus, chord.event()));
                let name = &action.entry.action;
                assert!(seen == chord || !decides(seen) && !decides(chord), "{chord} becomes {seen} by {name}");
                let marks = |chord: Chord| focus == Focus::Question && matches!(chord.code, KeyCode::Up | KeyCode::Down);
                assert!(seen == chord || !marks(seen), "{chord} becomes {seen} by {name}");
            }
        }
    }
}

#[test]
fn hints_name_the_current_keys() {
    let map =
        keymap("[composer]\nmodel = \"f4\"\nbrowse = []\nreview = \"ctrl+n\"\n\"line-down\" = []\n[browse]\nnext = [\"down\"]\n");
    for (focus, hint, said) in [
        (Focus::Composer, "ctrl+l change model", Some("f4 change model")),
        (Focus::Composer, "tab review", Some("ctrl+n review")),
        (Focus::Composer, "ctrl+t browse", None),
        (Focus::Composer, "enter send", Some("enter send")),
        (Focus::Composer, "any other key cancel", Some("any other key cancel")),
        (Focus::Question, "tab next", Some("tab next")),
        (Focus::Browse, "j k move", Some("down k move")),
        (Focus::Browse, "j down entry", Some("down entry")),
        (Focus::Menu, "ctrl+l change model", Some("f4 change model")),
    ] {
        let hint = map.hint(focus, hint);
        assert_eq!(hint.as_deref(), said);
    }
    let said = map.translate_keys(Focus::Composer, "press ctrl+l, (ctrl+t) or tab; 1+1, C++ and ctrl+lx stay");
    assert_eq!(said, "press f4, ((no key)) or tab; 1+1, C++ and ctrl+lx stay");
}

#[test]
fn the_keymap_example_in_the_docs_works() {
    let docs = include_str!("../../../docs/SCREEN.md");
    let (_, section) = docs.split_once("## Custom keys").unwrap();
    let example = section.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
    let map = keymap(example);
    assert_eq!(sees(&map, Focus::Composer, "ctrl+e"), "ctrl+g");
}
