//! Tests nested enforcers: an agent may do only what its parent session may do.

use super::*;
use crate::policy::{ToolLimit, ToolNames};
use proptest::prelude::*;

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

/// Policies, ordered from strict to lax.
const POLICIES: [&str; 5] = [
    "",
    "[capabilities.\"File.Read\"]\nallowed_paths = [\"${workspace}\"]\n",
    "[capabilities.\"File.Read\"]\nallowed_paths = [\"${workspace}/src\"]\nblocked_paths = [\"${workspace}/src/secret\"]\n\
     [capabilities.\"Shell.Exec\"]\nrequires_approval = true\n",
    "[capabilities.\"File.Read\"]\nallowed_paths = [\"${workspace}\"]\n[capabilities.\"File.Write\"]\n\
     allowed_paths = [\"${workspace}\"]\nrequires_approval = true\n[capabilities.\"Shell.Exec\"]\nrequires_approval = true\n",
    "[capabilities.\"File.Read\"]\nallowed_paths = [\"${workspace}\"]\n[capabilities.\"File.Write\"]\n\
     allowed_paths = [\"${workspace}\"]\n[capabilities.\"File.Delete\"]\nallowed_paths = [\"${workspace}\"]\n\
     [capabilities.\"Shell.Exec\"]\nrequires_approval = false\n",
];
const MODES: [Mode; 4] = [Mode::Plan, Mode::Ask, Mode::AutoEdit, Mode::Auto];

fn under(policy: usize, mode: usize) -> Enforcer {
    let mut enforcer = enforcer(parsed(&format!("schema_version = 1\n{}", POLICIES[policy])));
    enforcer.set_mode(MODES[mode]);
    enforcer
}

fn actions() -> Vec<Action> {
    let files = ["src/a.rs", "src/secret/key", "b.txt", "/etc/passwd"];
    let of_file = |path: &str| {
        let target = target(path);
        [Action::Read { target: target.clone() }, Action::Write { target: target.clone() }, Action::Delete { target }]
    };
    let command = |line: &&str| Action::Exec { command: (*line).to_owned(), cwd: target(ROOT) };
    let lines = ["ls", "cat src/a.rs", "rm -rf src", "cargo test", "curl https://example.org", "git log"];
    files.into_iter().flat_map(of_file).chain(lines.iter().map(command)).collect()
}

fn rank(verdict: &Verdict) -> u8 {
    match verdict {
        Verdict::Allow(_) => 0,
        Verdict::Ask(_) => 1,
        Verdict::Deny(_) => 2,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn a_nested_enforcer_allows_an_action_only_if_both_enforcers_allow_it(
        (own_policy, own_mode) in (0..POLICIES.len(), 0..MODES.len()),
        (outer_policy, outer_mode) in (0..POLICIES.len(), 0..MODES.len()),
        chosen in proptest::collection::vec(0..18_usize, 1..4),
    ) {
        let all = actions();
        let actions: Vec<Action> = chosen.into_iter().map(|index| all[index].clone()).collect();
        let (own, outer) = (under(own_policy, own_mode), under(outer_policy, outer_mode));
        let within = own.clone().within(outer.clone());
        let verdicts = [&own, &outer, &within].map(|enforcer| enforcer.judge(&actions, NOW));
        let [own_rank, outer_rank, rank] = [0, 1, 2].map(|index| rank(&verdicts[index]));
        prop_assert_eq!(rank, own_rank.max(outer_rank), "{:?}", actions);
        if let [Verdict::Allow(one), Verdict::Allow(other), Verdict::Allow(both)] = &verdicts {
            prop_assert_eq!(both.reads_only(), one.reads_only() || other.reads_only() || both.unasked_conditions().is_some_and(|relies| relies.as_reading));
            prop_assert!(both.layer().is_some() || (one.layer().is_none() && other.layer().is_none()));
        }
        for action in &actions {
            let denied = own.denies_file(action, NOW) || outer.denies_file(action, NOW);
            if matches!(action, Action::Read { .. } | Action::Write { .. } | Action::Delete { .. }) {
                prop_assert_eq!(within.denies_file(action, NOW), denied, "{:?}", action);
            }
        }
    }
}

#[test]
fn tools_and_capabilities_missing_from_either_policy_are_not_offered() {
    let limit = |names: &[&str]| ToolLimit {
        rule: "test".to_owned(),
        names: ToolNames::Allowed(names.iter().map(|name| (*name).to_owned()).collect()),
    };
    let own = under(4, 3).with_limits(vec![limit(&["ReadFile", "Grep"])]);
    let outer = under(1, 3).with_limits(vec![limit(&["ReadFile", "RunCommand"])]);
    let within = own.within(outer);
    let offered = ["ReadFile", "Grep", "RunCommand"].map(|name| within.offers(name).is_ok());
    assert_eq!(offered, [true, false, false]);
    assert!(within.grants("File.Read") && !within.grants("Shell.Exec"));
}

#[test]
fn replacing_a_policy_also_replaces_its_outer_policy() {
    let write = [Action::Write { target: target("src/a.rs") }];
    let mut within = under(4, 3).within(under(4, 3));
    assert!(matches!(within.judge(&write, NOW), Verdict::Allow(_)));
    within.replace(under(4, 3).within(under(1, 3)));
    assert!(!matches!(within.judge(&write, NOW), Verdict::Allow(_)));
    within.replace(under(4, 3).within(under(4, 0)));
    assert!(matches!(within.judge(&write, NOW), Verdict::Deny(_)), "the outer mode is plan mode");
}

#[test]
fn the_plan_of_the_parent_session_does_not_apply_to_its_agents() {
    let test = [Action::Exec { command: "cargo test".to_owned(), cwd: target(ROOT) }];
    let mut outer = under(3, 1);
    outer.set_mandate(&test, NOW);
    assert!(matches!(outer.judge(&test, NOW), Verdict::Allow(_)));
    for own in [under(3, 3), under(4, 1)] {
        assert!(matches!(own.judge(&test, NOW), Verdict::Allow(_)));
        assert!(matches!(own.within(outer.clone()).judge(&test, NOW), Verdict::Ask(_)));
    }
}
