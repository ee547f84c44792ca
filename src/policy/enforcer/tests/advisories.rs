//! Tests of published attacks, and of everyday lines that must not be blocked.

use super::*;
use std::collections::BTreeMap;

/// Lines of one mechanism with their expected verdicts.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Mechanism {
    /// Advisories that describe the mechanism.
    from: String,
    #[serde(default)]
    deny: Vec<String>,
    #[serde(default)]
    ask: Vec<String>,
    /// Lines that must not be allowed; asking and denying are both correct.
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
    text_injected_into_an_allowed_command,
    names_and_pings_carry_data_out,
    ripgrep_runs_a_helper,
    sed_writes_and_runs,
    field_separators_and_bundled_flags,
    manuals_and_histories_run_programs,
    clobber_of_another_shell,
    find_runs_and_deletes,
    directory_change_before_a_write,
    only_the_first_command_was_judged,
    parts_beyond_a_cap,
    a_flag_behind_a_backslash,
    sockets_as_files,
    wrappers_hide_a_blocked_program,
    assignments_change_what_runs,
    patterns_that_run_code,
    parts_hidden_from_the_reader,
    home_in_other_spellings,
    identification_by_another_file,
    words_expand_into_commands,
    arithmetic_runs_what_it_reads,
    options_of_git_that_run_or_write,
    programs_the_text_names_otherwise,
    a_shadowed_name,
    payload_in_positional_parameters,
    long_options_cut_short,
    init_files_of_a_shell,
    a_chain_of_process_substitutions,
    redirections_in_all_forms,
    here_documents_that_run,
    backgrounds_and_substitutions,
    option_values_that_are_files,
    file_names_read_as_options,
    braces_make_options,
    text_that_only_looks_like_data,
    commands_hidden_in_an_encoded_option,
    a_blocked_program_in_other_letters,
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
