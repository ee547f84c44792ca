//! `aye demo`: the whole main job without a key and without a network.

use crate::support::Project;

#[test]
fn the_demo_runs_to_its_end_when_it_is_approved() {
    let project = Project::empty();
    let mut terminal = project.open_sized(&["demo"], 120, 36);
    terminal.wait_that("the composer is there", |screen| screen.contains('❯'));
    let mut approvals = 0;
    loop {
        let screen = terminal.wait_that("the demo asks or ends", |screen| waits(screen) || ended(screen));
        if ended(&screen) {
            break;
        }
        terminal.review("");
        terminal.decide("y");
        approvals += 1;
        assert!(approvals < 20, "it asks without end\n{screen}");
    }
    assert!(approvals >= 2, "an edit and a command are asked for, there were {approvals}");
    assert!(terminal.quit().success());
    terminal.assert_restored();
    assert!(std::fs::read_dir(project.path("")).unwrap().next().is_none(), "the directory it was started in stays as it was");
}

fn waits(screen: &str) -> bool {
    screen.lines().any(|line| line.trim_start().starts_with("y  ")) || screen.contains("tab to review")
}

fn ended(screen: &str) -> bool {
    screen.contains("That was the demo") && !waits(screen)
}
