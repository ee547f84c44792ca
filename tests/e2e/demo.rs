//! `aye demo`: the whole workflow without a key and without a network.

use crate::support::{Project, Terminal};
use std::fs;

/// Start of the last message in the recording.
const LAST_WORDS: &str = "For the real thing";

/// Approves everything until the last message. Returns the number of approvals.
#[track_caller]
fn play(terminal: &mut Terminal) -> usize {
    for approvals in 0..10 {
        let screen = terminal.wait_that("the demo asks or ends", |screen| Terminal::asks(screen) || screen.contains(LAST_WORDS));
        if !Terminal::asks(&screen) {
            return approvals;
        }
        terminal.review("");
        terminal.decide('y');
    }
    panic!("it asks without end\n{}", terminal.screen());
}

#[test]
fn the_demo_completes_if_approved() {
    let project = Project::empty();
    let mut terminal = project.open_sized(&["demo"], 120, 40);
    assert_eq!(play(&mut terminal), 2, "an edit and a command are asked for");
    assert!(terminal.screen().contains("All five checks pass"), "{}", terminal.screen());
    assert!(terminal.quit().success());
    terminal.assert_restored();
    let left = fs::read_dir(project.path("")).unwrap().count();
    assert_eq!(left, 0, "the directory it was started in stays as it was");
}

#[test]
fn the_demo_with_yes_needs_no_approval() {
    let project = Project::empty();
    let mut terminal = project.open_sized(&["demo", "--yes"], 120, 40);
    assert_eq!(play(&mut terminal), 0);
    assert!(terminal.quit().success());
}

#[test]
fn the_demo_asks_for_approval_whatever_mode_the_settings_name() {
    let project = Project::empty().config("[approval]\nmode = \"auto\"\n");
    let mut terminal = project.open_sized(&["demo"], 120, 40);
    assert_eq!(play(&mut terminal), 2, "an edit and a command are asked for");
    assert!(terminal.quit().success());
}

#[test]
fn the_demo_is_not_counted_as_usage() {
    let project = Project::empty();
    project.aye(&["demo", "--yes"]).exits(0);
    assert!(project.aye(&["usage"]).exits(0).stdout.contains("no usage in this period"));
}

#[test]
fn the_demo_continues_without_the_edit_if_denied() {
    let project = Project::empty();
    let mut terminal = project.open_sized(&["demo"], 120, 40);
    for _ in 0..2 {
        terminal.review("");
        terminal.decide('n');
    }
    terminal.wait_for("and I continue without the edit.");
    terminal.wait_for("Start aye demo again to see what happens if you approve.");
}

#[test]
fn grants_are_not_saved_in_the_demo() {
    let project = Project::empty();
    let mut terminal = project.open_sized(&["demo"], 120, 40);
    terminal.review("");
    terminal.send("a");
    terminal.wait_for("not in the demo");
    terminal.kill();
}
