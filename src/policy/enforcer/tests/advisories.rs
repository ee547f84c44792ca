//! Tests published attacks, and everyday command lines that must not be blocked.

use super::*;
use std::collections::BTreeMap;

/// Command lines that use one attack mechanism, by expected verdict.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Mechanism {
    /// Advisories that describe the mechanism.
    from: String,
    #[serde(default)]
    deny: Vec<String>,
    #[serde(default)]
    ask: Vec<String>,
    /// Lines that must not be allowed. Both ask and deny verdicts are correct.
    #[serde(default)]
    held: Vec<String>,
    /// Harmless lines that look similar.
    #[serde(default)]
    allow: Vec<String>,
}

fn mechanisms() -> BTreeMap<String, Mechanism> {
    toml::from_str(&cases("advisories.toml")).unwrap_or_else(|error| panic!("{error}"))
}

fn wrong<'a>(lines: &'a [String], right: &[VerdictKind], enforcer: &Enforcer) -> Vec<(VerdictKind, &'a str, String)> {
    let told = lines.iter().map(|line| (line, enforcer.explain(&exec(line), now())));
    let missed = told.filter(|(_, told)| !right.contains(&told.verdict));
    missed.map(|(line, told)| (told.verdict, line.as_str(), told.reason)).collect()
}

fn holds(name: &str) {
    let all = mechanisms();
    let mechanism = all.get(name).unwrap_or_else(|| panic!("no table `{name}`"));
    let enforcer = enforcer(parsed(&cases("reading.toml")));
    assert!(!mechanism.from.is_empty());
    let sets: [(&[String], &[VerdictKind]); 4] = [
        (&mechanism.deny, &[VerdictKind::Deny]),
        (&mechanism.ask, &[VerdictKind::Ask]),
        (&mechanism.held, &[VerdictKind::Ask, VerdictKind::Deny]),
        (&mechanism.allow, &[VerdictKind::Allow]),
    ];
    for (lines, right) in sets {
        let wrong = wrong(lines, right, &enforcer);
        assert!(wrong.is_empty(), "{} should be {right:?}: {wrong:#?}", mechanism.from);
    }
}

macro_rules! mechanisms {
    ($($name:ident),* $(,)?) => {
        $(
            #[test]
            fn $name() {
                holds(stringify!($name));
            }
        )*

        #[test]
        fn every_advisory_table_has_a_test() {
            let tested = [$(stringify!($name)),*];
            let tables = mechanisms();
            let untested: Vec<_> = tables.keys().filter(|name| !tested.contains(&name.as_str())).collect();
            assert!(untested.is_empty(), "{untested:?}");
        }
    };
}

mechanisms! {
    text_injected_into_an_allowed_command_is_evaluated,
    commands_that_leak_data_through_dns_or_pings_need_approval,
    ripgrep_options_that_run_a_helper_need_approval,
    sed_scripts_that_write_or_run_need_approval,
    field_separators_and_bundled_flags_do_not_hide_effects,
    manual_and_history_options_that_run_or_write_need_approval,
    overwriting_redirections_of_other_shells_need_approval,
    find_actions_that_run_or_delete_are_detected,
    a_directory_change_does_not_hide_a_later_write_or_command,
    every_command_of_a_line_is_evaluated,
    commands_beyond_any_number_of_parts_are_evaluated,
    escaped_and_quoted_flags_are_detected,
    files_that_open_a_socket_need_approval,
    a_wrapper_does_not_hide_a_blocked_program,
    assignments_that_change_the_executed_program_are_never_allowed,
    code_in_shell_conditions_is_never_allowed,
    commands_hidden_by_line_continuations_or_invisible_characters_are_never_allowed,
    paths_in_home_directories_are_detected_in_every_spelling,
    options_of_file_that_read_or_write_other_files_need_approval,
    expansions_that_run_or_hide_commands_are_never_allowed,
    arithmetic_that_could_run_commands_is_never_allowed,
    git_options_that_run_or_write_need_approval,
    obfuscated_program_names_are_never_allowed,
    redefined_and_shadowed_program_names_are_never_allowed,
    code_in_positional_parameters_is_never_allowed,
    abbreviated_long_options_are_detected,
    shells_with_startup_files_or_scripts_are_never_allowed,
    commands_in_process_substitutions_are_evaluated,
    redirections_to_files_are_detected_in_every_form,
    commands_in_here_documents_are_detected,
    commands_after_a_background_operator_are_evaluated,
    outside_files_in_option_values_need_approval,
    globs_that_could_expand_to_options_need_approval,
    brace_expansions_into_options_or_programs_are_detected,
    data_that_a_shell_runs_is_never_allowed,
    encoded_commands_need_approval,
    blocked_programs_in_changed_case_or_globs_are_never_allowed,
}

#[test]
fn everyday_commands_get_the_expected_verdicts() {
    let lines: BTreeMap<String, Vec<String>> = toml::from_str(&cases("everyday.toml")).unwrap_or_else(|error| panic!("{error}"));
    let enforcer = enforcer(parsed(&cases("reading.toml")));
    for (right, name) in [(VerdictKind::Allow, "allow"), (VerdictKind::Ask, "ask"), (VerdictKind::Deny, "deny")] {
        assert!(lines[name].len() > 10);
        let wrong = wrong(&lines[name], &[right], &enforcer);
        assert!(wrong.is_empty(), "{name}: {wrong:#?}");
    }
}
