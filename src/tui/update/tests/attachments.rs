use super::*;
use crate::tui::tests::fixtures::listed_models;

fn told(model: &mut UiModel, told: HostResponse, at: u64) -> Vec<String> {
    let effects = update(model, Msg::Event(Box::new(event(EventKind::LookedUp(told)))), at);
    effects.iter().filter_map(words).collect()
}

/// Pastes text and returns the queries that were sent.
fn paste(model: &mut UiModel, text: &str, at: u64) -> Vec<String> {
    let effects = update(model, Msg::Input(UiInput::Paste(text.to_owned())), at);
    effects.iter().filter_map(words).filter(|sent| sent.starts_with("lookup")).collect()
}

fn file(path: &str, outside: bool, image: bool) -> DroppedFile {
    DroppedFile { path: path.to_owned(), outside, image, tokens: Some(1200) }
}

fn dropped(model: &mut UiModel, pasted: &str, files: Vec<DroppedFile>, at: u64) {
    told(model, HostResponse::Dropped { pasted: pasted.to_owned(), files }, at);
}

fn image() -> ClipboardData {
    let image = Image {
        uri: "artifact:0123456789abcdef01234567".to_owned(),
        media_type: "image/png".to_owned(),
        width: 640,
        height: 480,
        bytes: 4711,
    };
    ClipboardData::Image { image, by: "wl-paste".to_owned() }
}

fn said(model: &UiModel) -> &str {
    model.toast.as_ref().map_or("", |(words, _)| words)
}

#[test]
fn a_dropped_path_is_text_at_first_and_becomes_a_mention_once_the_file_is_found() {
    let mut model = model(80, 24);
    play(&mut model, 1000, "look at");
    let pasted = "'/src/greeter/my notes.md' ";
    assert_eq!(paste(&mut model, pasted, 2000).len(), 1);
    assert_eq!(model.composer.text(), "look at'/src/greeter/my notes.md' ");
    play(&mut model, 2100, "!");
    dropped(&mut model, pasted, vec![file("my notes.md", false, false)], 2500);
    assert_eq!(model.composer.text(), "look at @\"my notes.md\" !");
    play(&mut model, 3000, "?");
    assert_eq!(model.composer.text(), "look at @\"my notes.md\" !?", "the cursor is where it was");
    assert!(draw(&mut model, 3000).contains("look at @\"my notes.md\" !?"));
}

#[test]
fn several_dropped_files_become_mentions_and_reuse_a_typed_at_sign() {
    let mut model = model(80, 24);
    play(&mut model, 1000, "@");
    paste(&mut model, "/w/a.rs /w/b.png", 2000);
    dropped(&mut model, "/w/a.rs /w/b.png", vec![file("a.rs", false, false), file("/w/b.png", true, true)], 2500);
    assert_eq!(model.composer.text(), "@a.rs @/w/b.png ");
    assert!(said(&model).contains("/w/b.png is outside the workspace"), "{}", said(&model));
}

#[test]
fn text_that_only_looks_like_a_path_stays_text() {
    let mut model = model(80, 24);
    assert_eq!(paste(&mut model, "/nothing/here", 1000).len(), 1);
    dropped(&mut model, "/nothing/here", Vec::new(), 1500);
    assert_eq!(model.composer.text(), "/nothing/here");
    assert_eq!(paste(&mut model, " and src/main.rs", 2000), [""; 0]);
    play(&mut model, 3000, "<ctrl+u>! cat ");
    assert_eq!(paste(&mut model, "/etc/hosts", 4000), [""; 0], "to a command it is an argument");
    assert_eq!(model.composer.text(), "! cat /etc/hosts");
    let gone = paste(&mut model, "\n/etc/hosts", 5000);
    assert_eq!(gone, [""; 0]);
}

#[test]
fn a_draft_edited_before_the_lookup_finished_is_left_unchanged() {
    let mut model = model(80, 24);
    paste(&mut model, "/w/a.rs", 1000);
    play(&mut model, 1100, "<backspace>");
    dropped(&mut model, "/w/a.rs", vec![file("a.rs", false, false)], 1500);
    assert_eq!(model.composer.text(), "/w/a.r");
}

#[test]
fn a_clipboard_image_is_attached_to_the_draft() {
    for script in ["see <ctrl+v>", "see "] {
        let mut model = model(80, 24);
        let mut asked = play(&mut model, 1000, script);
        asked.retain(|sent| sent.starts_with("lookup"));
        // Some terminals send an empty paste if the clipboard contains no text.
        asked.extend(if asked.is_empty() { paste(&mut model, "", 2000) } else { Vec::new() });
        assert_eq!(asked, ["lookup(clipboard)"]);
        told(&mut model, HostResponse::Clipboard(image()), 2500);
        assert_eq!(model.composer.text(), "see @artifact:0123456789abcdef01234567 ");
        assert!(said(&model).contains("640x480 png") && said(&model).contains("wl-paste"), "{}", said(&model));
    }
}

#[test]
fn clipboard_text_is_pasted_and_an_empty_clipboard_is_reported() {
    let mut model = model(80, 24);
    told(&mut model, HostResponse::Clipboard(ClipboardData::Text { text: "two\nlines".to_owned() }), 1000);
    assert_eq!(model.composer.text(), "two\nlines");
    told(&mut model, HostResponse::Clipboard(ClipboardData::Nothing { why: "install xclip".to_owned() }), 2000);
    assert_eq!(said(&model), "install xclip");
    let files = ClipboardData::Text { text: "file:///w/a.rs".to_owned() };
    let sent = told(&mut model, HostResponse::Clipboard(files), 3000);
    assert!(sent.iter().any(|one| one.contains("/w/a.rs")), "files of a file manager are looked for: {sent:?}");
}

#[test]
fn pasting_an_image_does_not_take_focus_from_an_approval() {
    let mut model = asked(vec![command_approval("a1")]);
    assert!(model.dialogs.is_open());
    told(&mut model, HostResponse::Clipboard(image()), 61_000);
    assert!(model.dialogs.is_open());
    assert!(model.composer.text().contains("@artifact:"));
}

#[test]
fn a_warning_is_shown_before_images_are_sent_to_a_model_without_image_support() {
    let mut model = model(80, 24);
    let facts = ModelFacts { images: false, ..listed_models()[0].facts.clone() };
    model.info.facts = Some(facts);
    told(&mut model, HostResponse::Clipboard(image()), 1000);
    assert!(said(&model).contains("does not accept images"), "{}", said(&model));
    assert_eq!(play(&mut model, 2000, "<enter>"), [""; 0]);
    assert!(said(&model).contains("enter to send anyway"), "{}", said(&model));
    assert_eq!(play(&mut model, 3000, "<enter>"), ["prompt \"@artifact:0123456789abcdef01234567 \""]);
    assert_eq!(play(&mut model, 4000, "see @shot.png <enter>"), [""; 0], "by its name too");
}

#[test]
fn symbol_mentions_are_inserted_as_line_ranges_of_their_declaration() {
    let mut model = model(80, 24);
    let sent = update(&mut model, keys("@#").remove(0), 1000);
    assert!(!sent.iter().any(|effect| matches!(effect, UiEffect::Ask(Query::LookUp(HostRequest::Symbols { .. })))));
    let effects: Vec<UiEffect> = keys("#gr").into_iter().flat_map(|msg| update(&mut model, msg, 1100)).collect();
    assert!(
        effects
            .iter()
            .any(|effect| matches!(effect, UiEffect::Ask(Query::LookUp(HostRequest::Symbols { words })) if words == "#gr"))
    );
    let symbol = |name: &str, first, last| FoundSymbol {
        name: name.to_owned(),
        kind: "fn".to_owned(),
        path: "src/größe.rs".to_owned(),
        first,
        last,
        tokens: 120,
    };
    told(&mut model, HostResponse::Symbols { words: "#g".to_owned(), symbols: vec![symbol("late", 1, 1)] }, 1500);
    assert!(!model.menu.is_open());
    let symbols = vec![symbol("greet", 10, 20), symbol("grow", 30, 30)];
    told(&mut model, HostResponse::Symbols { words: "#gr".to_owned(), symbols }, 1600);
    let screen = draw(&mut model, 1600);
    assert!(screen.contains("fn greet") && screen.contains("src/größe.rs:10") && screen.contains("~120 tokens"), "{screen}");
    play(&mut model, 2500, "<enter>");
    assert_eq!(model.composer.text(), "@src/größe.rs:10-20 ");
    play(&mut model, 3000, "@src/größe.rs#<backspace>");
    assert_eq!(model.composer.text(), "@src/größe.rs:10-20 @src/größe.rs");
}
