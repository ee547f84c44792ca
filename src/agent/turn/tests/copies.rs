//! Tests that a command that mode `auto` allows in a copy of the workspace does not run in the workspace without approval
//! because its copy failed or was discarded.

use super::*;

const AUTO: [&str; 2] = ["policy [capabilities.\"Shell.Exec\"]; requires_approval = true; approve = \"effects\"", "mode auto"];

/// Plays a command that runs in a copy in mode `auto`, and then these inputs. Returns what the last input caused.
fn play(approver: &str, inputs: &[&str]) -> String {
    let mut sim = sim_of(&format!("# {approver} laxest=auto"));
    let started = ["prompt build it", "answer tool_use | #c1 RunCommand {}", "planned 0=exec ^ make"];
    let mut done = String::new();
    for line in AUTO.iter().chain(&started).chain(inputs) {
        let effects = sim.play(line);
        done = sim.perform(effects);
        if *line == "crash" {
            sim.machine.cx.options.laxest = Mode::Auto;
        }
    }
    done
}

#[test]
fn a_command_whose_copy_cannot_be_created_is_denied_if_nobody_can_approve_it() {
    let done = play("approver=nobody", &["previewed 0 failed the disk is full", "planned 0=exec ^ make"]);
    assert!(done.contains("NO_APPROVER") && done.contains("the disk is full"), "{done}");
    assert!(!done.contains("run 0") && !done.contains("preview 0"), "{done}");
}

#[test]
fn after_a_crash_a_command_whose_copy_was_discarded_still_needs_approval() {
    for (approver, expected) in [("approver=nobody", "NO_APPROVER"), ("approver=user", "emit approval_requested")] {
        let mut inputs = vec!["previewed 0 failed the disk is full", "crash"];
        inputs.extend(AUTO);
        inputs.push("planned 0=exec ^ make");
        let done = play(approver, &inputs);
        assert!(done.contains(expected), "{approver}: {done}");
        assert!(!done.contains("run 0") && !done.contains("preview 0"), "{approver}: {done}");
    }
}
