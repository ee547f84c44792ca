//! Tests of proposals for instruction files: the list with its diffs, its keys, and the notice after a task.

use super::*;
use crate::tui::layers::MemoryList;
use crate::tui::tests::fixtures::memory_proposals;

fn told(model: &mut UiModel, proposals: Vec<crate::protocol::MemoryProposal>, at: u64) {
    let told = HostResponse::Memory { proposals, notice: None, failed: None };
    let _ = update(model, Msg::Event(Box::new(event(EventKind::LookedUp(told)))), at);
}

fn with_memory(width: u16) -> UiModel {
    let mut model = model(width, 30);
    model.options.memory = true;
    model
}

#[test]
fn the_list_shows_diffs_and_its_keys_apply_the_visible_diff() {
    let mut model = with_memory(140);
    assert_eq!(play(&mut model, 1000, "/memory<enter>"), ["lookup(memory(list))"]);
    told(&mut model, memory_proposals(), 2000);
    let screen = draw(&mut model, 2100);
    for part in ["aaaa1111", "AGENTS.md", "Use nextest", "+- Use nextest", "found in your prompts", "please use nextest"] {
        assert!(screen.contains(part), "{part}: {screen}");
    }
    assert!(!screen.contains('\u{1b}') && !screen.contains("new proposal"), "{screen}");
    let apply = "lookup(memory(apply { id: \"aaaa1111\", digest: \"d1\" }))";
    assert_eq!(play(&mut model, 2900, "<ctrl+a>"), [""; 0], "the whole change was not opened yet");
    assert!(draw(&mut model, 2950).contains("enter shows the change"));
    assert_eq!(play(&mut model, 3000, "<enter><ctrl+a>"), [apply]);
    let edit = "lookup(memory(edit { id: \"aaaa1111\", text: none, target: some(personal) }))";
    assert_eq!(play(&mut model, 3500, "<ctrl+t>"), [edit]);
    assert_eq!(play(&mut model, 3600, "<ctrl+e>"), ["edit memory.md \"Use nextest\\n\""]);
    assert_eq!(play(&mut model, 4000, "<enter>"), [""; 0]);
    assert!(draw(&mut model, 4100).contains("@@ -1 +1,2 @@"));
    play(&mut model, 4200, "<esc>");
    assert!(model.layers.is_open::<MemoryList>(), "only the reader was closed");
    play(&mut model, 4900, "<down>");
    assert_eq!(play(&mut model, 4950, "<ctrl+a>"), [""; 0], "the screen does not show this highlight yet");
    draw(&mut model, 4960);
    assert_eq!(play(&mut model, 5000, "<enter><ctrl+a>"), [""; 0], "it cannot be applied");
    assert!(draw(&mut model, 5100).contains("is a symlink"));
    assert_eq!(play(&mut model, 6000, "<ctrl+x>"), ["lookup(memory(drop { id: \"bbbb2222\" }))"]);
    play(&mut model, 7000, "<esc>");
    assert!(!model.layers.is_open::<MemoryList>());
}

#[test]
fn a_new_proposal_is_announced_once_after_a_task() {
    let mut model = with_memory(100);
    told(&mut model, memory_proposals(), 1000);
    assert!(draw(&mut model, 1100).contains("2 new proposals for your instructions; /memory shows them"));
    let mut quiet = with_memory(100);
    play(&mut quiet, 1000, "/memory<enter>");
    told(&mut quiet, memory_proposals(), 2000);
    play(&mut quiet, 3000, "<esc>");
    told(&mut quiet, memory_proposals(), 4000);
    assert!(!draw(&mut quiet, 4100).contains("new proposal"));
}

#[test]
fn commands_name_a_proposal_by_the_first_digits_of_its_id() {
    let mut model = with_memory(100);
    told(&mut model, memory_proposals(), 1000);
    assert_eq!(play(&mut model, 2000, "/memory drop bbbb<enter>"), ["lookup(memory(drop { id: \"bbbb2222\" }))"]);
    let edit = "lookup(memory(edit { id: \"aaaa1111\", text: some(\"use it always\"), target: none }))";
    assert_eq!(play(&mut model, 3000, "/memory edit aaaa use it always<enter>"), [edit]);
    assert_eq!(play(&mut model, 4000, "/memory apply cccc<enter>"), [""; 0]);
    assert!(draw(&mut model, 4100).contains("no proposal `cccc`"));
    let mut off = super::model(100, 30);
    assert_eq!(play(&mut off, 1000, "/memory<enter>"), [""; 0]);
    assert!(draw(&mut off, 1100).contains("collects no proposals"));
}

#[test]
fn an_empty_list_of_proposals_closes_and_says_how_to_add_one() {
    let mut model = with_memory(100);
    play(&mut model, 1000, "/memory<enter>");
    told(&mut model, Vec::new(), 2000);
    assert!(model.layers.top().is_none());
    assert!(draw(&mut model, 2100).contains("no proposals; /memory add TEXT adds one"));
}
