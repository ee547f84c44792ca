use super::*;
use crate::tui::layers::ModelPicker;
use crate::tui::model::{Editable, EditorText};
use crate::tui::tests::fixtures::own_command;

fn told(model: &mut UiModel, told: HostResponse, at: u64) -> Vec<String> {
    let effects = update(model, Msg::Event(Box::new(event(EventKind::LookedUp(told)))), at);
    effects.iter().filter_map(words).collect()
}

fn files(model: &mut UiModel, words: &str, paths: &[&str], at: u64) {
    let files = paths.iter().map(|path| FoundFile { path: (*path).to_owned(), tokens: Some(1200) }).collect();
    told(model, HostResponse::Files { words: words.to_owned(), files }, at);
    draw(model, at);
}

/// Presses all keys of a script before the next frame is drawn.
fn burst(model: &mut UiModel, at: u64, script: &str) -> Vec<String> {
    keys(script).into_iter().flat_map(|msg| update(model, msg, at)).filter_map(|effect| words(&effect)).collect()
}

#[test]
fn a_whole_command_typed_in_one_burst_runs() {
    let mut model = model(80, 24);
    assert_eq!(burst(&mut model, 1000, "/model<enter>"), ["listmodels { ask: false }", "listmodels { ask: true }"]);
    assert!(model.layers.is_open::<ModelPicker>());
}

#[test]
fn a_partial_command_typed_in_one_burst_does_not_run_and_stays_in_the_draft() {
    let mut model = model(80, 24);
    // The menu for the first letter may already have been drawn.
    update(&mut model, keys("/").remove(0), 1000);
    draw(&mut model, 1000);
    assert_eq!(burst(&mut model, 1002, "qui<enter>"), [""; 0]);
    assert_eq!(model.composer.text(), "/qui");
    draw(&mut model, 1010);
    assert_eq!(play(&mut model, 1500, "<enter>"), ["quit", "exit Quit"]);
}

#[test]
fn an_exact_command_takes_precedence_over_the_highlight_unless_arrows_were_used() {
    let mut first = model(80, 24);
    play(&mut first, 1000, "/mode");
    assert!(draw(&mut first, 1900).contains("/model"));
    play(&mut first, 2000, "<enter>");
    assert!(!first.layers.is_open::<ModelPicker>() && first.toast.as_ref().unwrap().0.contains("mode: ask"));
    let mut second = model(80, 24);
    play(&mut second, 1000, "/mode<down><enter>");
    assert!(second.layers.is_open::<ModelPicker>());
}

#[test]
fn commands_match_by_subsequence_and_commands_with_arguments_are_only_inserted() {
    let mut model = model(80, 24);
    assert_eq!(play(&mut model, 1000, "/rnm<enter>"), [""; 0]);
    assert_eq!(model.composer.text(), "/rename ");
    let mut other = crate::tui::tests::fixtures::model(80, 24);
    play(&mut other, 1000, "/artf<tab>");
    assert_eq!(other.composer.text(), "/artifacts");
}

#[test]
fn escape_closes_the_menu_and_keeps_the_draft() {
    let mut model = model(80, 24);
    tell(&mut model, started("x"), 500);
    assert_eq!(play(&mut model, 1000, "/mo<esc>d"), [""; 0], "the task is not stopped");
    assert_eq!(model.composer.text(), "/mod");
    assert!(!model.menu.is_open());
    assert_eq!(play(&mut model, 3000, "<esc>"), ["cancel"]);
    play(&mut model, 9000, "<ctrl+u>/");
    assert!(model.menu.is_open(), "another word has its menu");
}

#[test]
fn files_match_by_letters_of_their_path_and_are_inserted_as_mentions() {
    let mut model = model(80, 24);
    play(&mut model, 1000, "look at @gr");
    files(&mut model, "g", &["too/late.rs"], 2000);
    assert!(!model.menu.is_open(), "those are for other letters");
    files(&mut model, "gr", &["docs/größe.md", "my notes/green.md", "gr/"], 2100);
    let screen = draw(&mut model, 2100);
    assert!(screen.contains("docs/größe.md") && screen.contains("~1.2k tokens") && screen.contains("folder"), "{screen}");
    play(&mut model, 3000, "<enter>");
    assert_eq!(model.composer.text(), "look at @docs/größe.md ");
    play(&mut model, 4000, "and @no");
    files(&mut model, "no", &["my notes/green.md"], 5000);
    play(&mut model, 5100, "<tab>");
    assert_eq!(model.composer.text(), "look at @docs/größe.md and @\"my notes/green.md\" ");
}

#[test]
fn completing_a_folder_continues_with_its_contents() {
    let mut model = model(80, 24);
    play(&mut model, 1000, "@s");
    files(&mut model, "s", &["src/"], 1500);
    play(&mut model, 2000, "<tab>");
    assert_eq!(model.composer.text(), "@src/");
    files(&mut model, "src/", &["src/", "src/main.rs"], 2500);
    play(&mut model, 3000, "<down><tab>");
    assert_eq!(model.composer.text(), "@src/main.rs ");
    play(&mut model, 4000, "<ctrl+u>@m");
    files(&mut model, "m", &["my notes/"], 4500);
    play(&mut model, 5000, "<tab>x");
    assert_eq!(model.composer.text(), "@\"my notes/x\"");
    files(&mut model, "my notes/x", &["my notes/x.md"], 5500);
    play(&mut model, 6000, "<tab>");
    assert_eq!(model.composer.text(), "@\"my notes/x.md\" ");
}

#[test]
fn enter_completes_a_file_only_if_drawn_as_highlighted() {
    let mut model = model(80, 24);
    play(&mut model, 1000, "see @mai");
    let told =
        HostResponse::Files { words: "mai".to_owned(), files: vec![FoundFile { path: "src/main.rs".to_owned(), tokens: None }] };
    update(&mut model, Msg::Event(Box::new(event(EventKind::LookedUp(told)))), 2000);
    assert_eq!(burst(&mut model, 2001, "<enter>"), ["prompt \"see @mai\""]);
    play(&mut model, 3000, "see @src/main.rs");
    files(&mut model, "src/main.rs", &["src/main.rs"], 5000);
    assert_eq!(play(&mut model, 6000, "<enter>"), ["prompt \"see @src/main.rs\""], "a whole path has nothing to become");
    play(&mut model, 7000, "see @src/main.rs:10-20");
    assert_eq!(play(&mut model, 9500, "<enter>"), ["prompt \"see @src/main.rs:10-20\""]);
}

#[test]
fn an_earlier_prompt_from_the_history_opens_no_menu() {
    let mut model = model(80, 24);
    play(&mut model, 1000, "one<enter>/help<enter><esc>");
    play(&mut model, 3000, "<up>");
    assert_eq!(model.composer.text(), "/help");
    assert!(!model.menu.is_open());
    play(&mut model, 4000, "<up>");
    assert_eq!(model.composer.text(), "one");
}

#[test]
fn a_custom_command_is_sent_as_its_prompt() {
    let mut model = model(80, 24);
    let commands = vec![
        own_command("fix", "---\ndescription: Fix\u{1b}[2J an issue\nargument-hint: <number>\n---\nFix issue $1 of $ARGUMENTS"),
        own_command("git:commit", "Commit it"),
        own_command("model", "mine"),
    ];
    told(&mut model, HostResponse::Commands { commands, notices: vec!["`x.md` is odd".to_owned()] }, 1000);
    let screen = draw(&mut model, 1000);
    assert!(screen.contains("`x.md` is odd") && screen.contains("`/model` is a built-in command"), "{screen}");
    play(&mut model, 2000, "/fi<down>");
    let screen = draw(&mut model, 2500);
    assert!(screen.contains("<number> Fix") && !screen.contains('\u{1b}'), "{screen}");
    play(&mut model, 3000, "<enter>");
    assert_eq!(model.composer.text(), "/fix ");
    assert_eq!(play(&mut model, 4000, "<enter>"), [""; 0]);
    assert!(draw(&mut model, 4100).contains("missing argument"));
    assert_eq!(play(&mut model, 5000, "12 parser<enter>"), ["prompt \"Fix issue 12 of 12 parser\""]);
    assert_eq!(play(&mut model, 8000, "/git:commit<enter>"), ["prompt \"Commit it\""]);
    play(&mut model, 11_000, "/model<enter>");
    assert!(model.layers.is_open::<ModelPicker>(), "a name of aye wins");
}

#[test]
fn the_init_command_is_a_built_in_prompt() {
    let mut model = model(80, 24);
    let sent = play(&mut model, 9000, "/init<enter>");
    assert!(sent[0].contains("AGENTS.md"), "{sent:?}");
}

#[test]
fn command_aliases_run_the_same_command() {
    for (typed, sent) in [("/clear", "exit Open(New)"), ("/plan", "setmode { mode: plan }"), ("/approvals", ""), ("/keys", "")] {
        let mut model = model(80, 24);
        let said = play(&mut model, 1000, &format!("{typed}<enter>"));
        assert!(sent.is_empty() || said.last().is_some_and(|last| last == sent), "{typed}: {said:?}");
        assert!(!draw(&mut model, 3000).contains("unknown command"), "{typed}");
    }
}

#[test]
fn the_draft_can_be_edited_in_the_external_editor() {
    let mut model = model(80, 24);
    assert_eq!(play(&mut model, 1000, "fix it<ctrl+g>"), ["edit draft.md \"fix it\""]);
    update(&mut model, edited(Ok("fix it\nall\u{1b}[2J\n".to_owned())), 3000);
    assert_eq!(model.composer.text(), "fix it\nall");
    update(&mut model, edited(Err("`vi` ended: the draft is as it was".to_owned())), 4000);
    assert_eq!(model.composer.text(), "fix it\nall");
    assert!(draw(&mut model, 4100).contains("as it was"));
}

fn edited(outcome: Result<String, String>) -> Msg {
    let edit = EditorText { what: Editable::Draft, name: "draft.md".to_owned(), text: String::new() };
    Msg::Edited(Box::new(edit), outcome)
}

#[test]
fn token_estimates_of_mentioned_files_are_shown_below_the_draft() {
    let mut model = model(80, 24);
    play(&mut model, 1000, "read @mai");
    files(&mut model, "mai", &["src/main.rs"], 1900);
    play(&mut model, 2000, "<tab>");
    assert_eq!(model.composer.text(), "read @src/main.rs ");
    assert!(draw(&mut model, 2100).contains(" @src/main.rs ~1.2k tokens "));
    // A complete name is recognized too.
    play(&mut model, 3000, "and @Cargo.toml");
    files(&mut model, "Cargo.toml", &["Cargo.toml"], 3900);
    assert!(draw(&mut model, 4000).contains(" @src/main.rs ~1.2k, @Cargo.toml ~1.2k tokens "));
    play(&mut model, 5000, "<ctrl+u>");
    assert!(!draw(&mut model, 5100).contains("tokens ─"));
}

#[test]
fn a_custom_command_entered_during_startup_is_sent_after_startup() {
    let mut model = model(80, 24);
    model.info.model_access = None;
    let fix = CustomCommand::parse("fix".to_owned(), "fix.md".to_owned(), "Fix issue $1.").0;
    crate::tui::update::user_commands::set_commands(&mut model, vec![fix], Vec::new());
    play(&mut model, 1000, "/fix 12<enter>");
    assert_eq!(model.startup.waiting_prompt.as_deref(), Some("Fix issue 12."));
    assert!(model.composer.is_empty() && draw(&mut model, 1100).contains("starting: this is sent"));
}

#[test]
fn tab_pressed_before_the_file_search_finished_takes_the_first_match() {
    let mut model = model(80, 24);
    burst(&mut model, 1000, "see @mai<tab>");
    assert_eq!(model.composer.text(), "see @mai");
    files(&mut model, "ma", &["Makefile"], 1100);
    assert_eq!(model.composer.text(), "see @mai", "what was found for fewer letters is not meant");
    files(&mut model, "mai", &["src/main.rs", "maintainers"], 1200);
    assert_eq!(model.composer.text(), "see @src/main.rs ");
    assert!(!model.menu.is_open(), "the next Enter sends the prompt");
    // A user who continues typing has not chosen a row.
    burst(&mut model, 2000, "and @li<tab>b");
    files(&mut model, "li", &["LICENSE"], 2100);
    files(&mut model, "lib", &["src/lib.rs"], 2200);
    assert_eq!(model.composer.text(), "see @src/main.rs and @lib");
    // The same applies after the menu was closed. Without results, nothing changes.
    burst(&mut model, 3000, "x<tab>");
    files(&mut model, "libx", &[], 3100);
    assert_eq!(model.composer.text(), "see @src/main.rs and @libx");
}

#[test]
fn recently_used_commands_come_first_in_the_menu() {
    let mut model = model(80, 24);
    play(&mut model, 1000, "/stats<enter>/compact<enter>");
    play(&mut model, 5000, "/");
    let screen = draw(&mut model, 6000);
    let order = ["/compact ", "/stats", "/help"].map(|name| screen.find(name));
    assert!(order.iter().all(Option::is_some) && order.is_sorted(), "{screen}");
    assert!(screen.contains("❯ /compact"), "{screen}");
}

#[test]
fn an_unknown_mode_is_reported_with_the_modes() {
    let mut model = model(80, 24);
    assert_eq!(play(&mut model, 1000, "/mode yolo<enter>"), [""; 0]);
    let screen = draw(&mut model, 3000);
    assert!(screen.contains("`yolo` is not a mode: must be plan, ask, auto-edit or auto"), "{screen}");
}

#[test]
fn the_quit_key_at_the_end_of_a_draft_says_how_to_clear_the_draft() {
    let mut model = model(80, 24);
    assert_eq!(play(&mut model, 1000, "ab<ctrl+d>"), [""; 0]);
    assert!(draw(&mut model, 1500).contains("the draft is not empty: press ctrl+c to clear it, then ctrl+d to quit"));
    assert_eq!(play(&mut model, 2000, "<ctrl+c><ctrl+d>").last().map(String::as_str), Some("exit Quit"));
}
