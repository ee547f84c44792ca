//! `aye demo`: the whole workflow without a key and without a network.

use crate::support::{Project, Terminal};
use std::fs;

/// Start of the last message of the recording.
const LAST_WORDS: &str = "For the real thing";

/// Approves everything until the last message, and returns the number of approvals.
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
fn the_demo_runs_to_its_end_when_it_is_approved() {
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
fn with_yes_the_demo_asks_nothing() {
    let project = Project::empty();
    let mut terminal = project.open_sized(&["demo", "--yes"], 120, 40);
    assert_eq!(play(&mut terminal), 0);
    assert!(terminal.quit().success());
}

#[test]
fn a_no_leads_the_demo_another_way() {
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
fn nothing_that_a_recording_asks_for_is_kept() {
    let project = Project::empty();
    let mut terminal = project.open_sized(&["demo"], 120, 40);
    terminal.review("");
    terminal.send("a");
    terminal.wait_for("not in the demo");
    terminal.kill();
}
