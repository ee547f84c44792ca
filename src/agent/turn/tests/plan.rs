//! Tests commands of an approved plan: they run in a layer, and effects that the plan does not name need approval.

use super::*;

const COPY: &str = "cp a.rs b.rs";

/// Outcome of a call: the approval that it required, if any, and what the turn machine did.
struct Outcome {
    reason: Option<String>,
    done: String,
}

/// Plays a call under a plan that covers `COPY`, given how the call is planned and, if it runs in a layer, its effects.
fn played(inputs: &[&str]) -> Outcome {
    let mut sim = Sim::new(Approver::User, 50);
    let begun = sim.machine.begin_session();
    sim.perform(begun);
    for line in ["prompt copy it", "answer tool_use | #c1 RunCommand {}"] {
        let effects = sim.play(line);
        sim.perform(effects);
    }
    let cwd = Target { given: String::new(), real: PathBuf::from("/w"), place: Place::File { bytes: 10 } };
    let now = sim.now;
    sim.machine.cx.policy.set_mandate(&[Action::Exec { command: COPY.to_owned(), cwd }], now);
    assert!(sim.machine.cx.policy.has_mandate());
    let (mut reason, mut done) = (None, String::new());
    for line in inputs {
        let effects = sim.play(line);
        reason = reason.or_else(|| {
            effects.iter().find_map(|effect| match effect {
                Effect::Emit { kind: EventKind::ApprovalRequested(approval), .. } => Some(approval.reason.clone()),
                _ => None,
            })
        });
        done.push_str(&sim.perform(effects));
    }
    Outcome { reason, done }
}

#[test]
fn effects_that_the_plan_names_are_applied_without_approval() {
    for mark in ["%b.rs", "%:target", "%"] {
        let ran = format!("previewed 0 exec {mark} {COPY}");
        let outcome = played(&[&format!("planned 0=exec ^ {COPY}"), &ran]);
        assert_eq!(outcome.reason, None, "{mark}: {}", outcome.done);
        assert!(outcome.done.contains("preview 0\n") && outcome.done.contains("run 0 by plan"), "{mark}: {}", outcome.done);
    }
}

#[test]
fn other_effects_of_a_planned_command_need_approval() {
    for (mark, reason) in [
        ("%-a.rs", "not in the plan: deletes `a.rs`"),
        ("%b.rs,c.rs", "not in the plan: writes `c.rs`"),
        ("%b.rs,.envrc", "not in the plan: writes `.envrc`"),
    ] {
        let ran = format!("previewed 0 exec {mark} {COPY}");
        let outcome = played(&[&format!("planned 0=exec ^ {COPY}"), &ran]);
        assert!(outcome.reason.as_ref().is_some_and(|told| told.starts_with(reason)), "{:?}", outcome.reason);
        assert!(!outcome.done.contains("run 0"), "{}", outcome.done);
    }
}

#[test]
fn a_planned_command_that_cannot_run_in_a_layer_needs_approval() {
    for (mark, reason) in [("^no_copies_here", "because no copies here"), ("", "cannot run in one")] {
        let outcome = played(&[&format!("planned 0=exec {mark} {COPY}").replace("  ", " ")]);
        assert!(outcome.reason.as_ref().is_some_and(|told| told.contains(reason)), "{:?}: {}", outcome.reason, outcome.done);
        assert!(!outcome.done.contains("run 0"), "{}", outcome.done);
    }
}
