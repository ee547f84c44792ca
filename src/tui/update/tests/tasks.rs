//! Tests of tasks in copies of the workspace: `/task`, the list, and notes about tasks that have stopped running.

use super::*;
use crate::tui::layers::TaskList;
use crate::tui::tests::fixtures::listed_tasks;

fn told(model: &mut UiModel, tasks: Vec<ListedTask>, at: u64) {
    let told = HostResponse::Tasks { tasks };
    let _ = update(model, Msg::Event(Box::new(event(EventKind::LookedUp(told)))), at);
}

fn with_tasks() -> UiModel {
    let mut model = model(120, 30);
    told(&mut model, listed_tasks(), 100);
    model
}

fn id(digit: char) -> String {
    digit.to_string().repeat(32)
}

#[test]
fn a_prompt_starts_a_task_and_without_one_the_usage_is_shown() {
    let mut model = model(120, 30);
    assert_eq!(play(&mut model, 1000, "/task fix it<enter>"), ["lookup(starttask { prompt: \"fix it\" })"]);
    assert_eq!(play(&mut model, 5000, "/task <enter>"), [""; 0]);
    assert!(draw(&mut model, 6000).contains("/task PROMPT"));
}

#[test]
fn the_list_shows_states_and_details_and_its_keys_act_on_the_highlighted_task() {
    let mut model = with_tasks();
    assert_eq!(play(&mut model, 1000, "/tasks<enter>"), ["lookup(tasks)"]);
    let screen = draw(&mut model, 2000);
    for part in ["11111111", "running", "needs you", "done", "interrupted", "fix the failing test", "$0.25"] {
        assert!(screen.contains(part), "{part}: {screen}");
    }
    assert!(!screen.contains('\u{1b}'), "{screen}");
    assert_eq!(play(&mut model, 3000, "<ctrl+a>"), [""; 0]);
    assert!(draw(&mut model, 3050).contains("task 11111111 is running"));
    assert_eq!(play(&mut model, 3100, "<ctrl+x>"), [format!("lookup(stoptask {{ id: \"{}\" }})", id('1'))]);
    let open = [format!("task {} open", id('2')), "lookup(tasks)".to_owned()];
    assert_eq!(play(&mut model, 4000, "<down><enter>"), open);
    assert!(draw(&mut model, 4500).contains("waiting for your approval: $ make deploy"));
    let keep = [format!("task {} keep", id('3')), "lookup(tasks)".to_owned()];
    assert_eq!(play(&mut model, 5000, "<down><ctrl+a>"), keep);
    assert!(play(&mut model, 5500, "<ctrl+t>")[0].ends_with(" diff"));
    let screen = draw(&mut model, 5600);
    assert!(screen.contains("check passed: cargo test") && screen.contains("1 file also changed"), "{screen}");
    assert_eq!(play(&mut model, 6000, "<down><ctrl+r>"), [format!("lookup(resumetask {{ id: \"{}\" }})", id('4'))]);
    assert_eq!(play(&mut model, 6500, "<ctrl+t>"), [""; 0]);
    assert!(draw(&mut model, 6600).contains("has no changes"));
    play(&mut model, 7000, "<esc>");
    assert!(!model.layers.is_open::<TaskList>());
}

#[test]
fn a_task_that_stops_working_is_reported_once() {
    let mut model = with_tasks();
    assert!(!draw(&mut model, 200).contains("see /tasks"), "the first report is no news");
    let mut tasks = listed_tasks();
    tasks[0].state = ListedTaskState::NeedsYou;
    told(&mut model, tasks.clone(), 300);
    told(&mut model, tasks, 400);
    let screen = draw(&mut model, 500);
    assert_eq!(screen.matches("task 11111111 needs you (fix the failing test); see /tasks").count(), 1, "{screen}");
}

#[test]
fn an_empty_task_list_closes_and_says_how_to_start_a_task() {
    let mut model = model(100, 30);
    play(&mut model, 1000, "/tasks<enter>");
    assert!(draw(&mut model, 2000).contains("loading"));
    let told = HostResponse::Tasks { tasks: Vec::new() };
    update(&mut model, Msg::Event(Box::new(event(EventKind::LookedUp(told)))), 2100);
    assert!(!model.layers.is_open::<TaskList>());
    assert!(draw(&mut model, 2200).contains("no tasks yet; /task PROMPT starts one"));
}
