use super::*;
use crate::tui::layers::CommandPalette;

#[test]
fn the_palette_runs_a_command_by_a_few_letters_and_keeps_the_draft() {
    let mut model = model(80, 24);
    assert_eq!(play(&mut model, 1000, "half a draft<ctrl+p>"), [""; 0]);
    let screen = draw(&mut model, 3000);
    assert!(screen.contains("Commands") && screen.contains("/help") && screen.contains("? f1"), "{screen}");
    let sent = play(&mut model, 4000, "dff<enter>");
    assert!(sent.iter().any(|one| one.starts_with("listchanges")), "{sent:?}");
    assert!(!model.layers.is_open::<CommandPalette>());
    assert_eq!(model.composer.text(), "half a draft");
}

#[test]
fn recent_commands_come_first_and_commands_with_arguments_go_to_the_draft() {
    let mut model = model(80, 24);
    play(&mut model, 1000, "/stats<enter>/effort high<enter><ctrl+p>");
    let order: Vec<String> =
        draw(&mut model, 5000).lines().filter_map(|row| row.trim().strip_prefix("❯ ").map(str::to_owned)).collect();
    assert!(order[0].starts_with("/effort"), "{order:?}");
    play(&mut model, 6000, "<enter>");
    assert_eq!(model.composer.text(), "/effort ");
    play(&mut model, 7000, "<ctrl+c>x<ctrl+p>effort<enter>");
    assert_eq!(model.composer.text(), "x");
    assert!(model.toast.as_ref().unwrap().0.contains("needs an argument"));
}

#[test]
fn escape_closes_the_palette_without_running_a_command() {
    let mut model = model(80, 24);
    assert_eq!(play(&mut model, 1000, "x<ctrl+p>quit<esc>"), [""; 0]);
    assert_eq!((!model.layers.is_open::<CommandPalette>(), model.composer.text()), (true, "x".to_owned()));
}
