use super::*;

fn with_vim() -> UiModel {
    let mut model = model(80, 24);
    model.composer.turn_vim();
    model
}

#[test]
fn the_draft_is_edited_with_vim_keys_and_sent_with_enter() {
    let mut model = with_vim();
    assert_eq!(play(&mut model, 1000, "fix teh bug<esc>"), [""; 0]);
    assert!(draw(&mut model, 2000).contains("NORMAL"));
    play(&mut model, 3000, "bbcwthe<esc>");
    assert_eq!(model.composer.text(), "fix the bug");
    let said = play(&mut model, 4000, "<enter>");
    assert!(said.iter().any(|words| words.contains("fix the bug")), "{said:?}");
    play(&mut model, 6000, "a word");
    assert_eq!(model.composer.text(), "a word", "the next draft is typed");
}

#[test]
fn escape_leaves_insert_mode_first_and_then_stops_the_task() {
    let mut model = with_vim();
    tell(&mut model, started("a task"), 100);
    assert_eq!(play(&mut model, 1000, "next<esc>"), [""; 0]);
    assert_eq!(play(&mut model, 2000, "<esc>"), ["cancel"]);
    let mut model = with_vim();
    tell(&mut model, started("a task"), 100);
    assert_eq!(play(&mut model, 1000, "<esc>"), ["cancel"], "there is nothing to give commands to");
}

#[test]
fn moving_past_either_end_of_the_draft_browses_the_prompt_history() {
    let mut model = with_vim();
    play(&mut model, 1000, "one<enter>");
    play(&mut model, 3000, "two<esc>k");
    assert_eq!(model.composer.text(), "one");
    play(&mut model, 5000, "j");
    assert_eq!(model.composer.text(), "two");
}
