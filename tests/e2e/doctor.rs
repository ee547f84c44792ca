//! `aye doctor`: checks, problems, and keys, which are never printed.

use crate::support::Project;

const KEY: &str = "sk-ant-api03-notakeyofanybody";

fn check(found: &serde_json::Value, name: &str) -> (String, String) {
    let checks = found["checks"].as_array().unwrap();
    let check = checks.iter().find(|check| check["name"] == name).unwrap_or_else(|| panic!("no `{name}` in {found}"));
    (check["state"].as_str().unwrap().to_owned(), check["says"].as_str().unwrap().to_owned())
}

#[test]
fn keys_are_listed_by_variable_name_and_never_shown() {
    let project = Project::empty().env("ANTHROPIC_API_KEY", KEY);
    let output = project.aye(&["doctor"]);
    let words = ["ANTHROPIC_API_KEY", "sandbox", "policy", "terminal"];
    assert!(words.iter().all(|word| output.stdout.contains(word)), "{}", output.stdout);
    assert!(!output.stdout.contains(KEY) && !output.stderr.contains(KEY));
    let found = project.aye(&["doctor", "--json"]);
    assert!(!found.stdout.contains(KEY));
    assert_eq!(check(&found.json(), "model").0, "good");
}

#[test]
fn problems_are_reported_and_the_other_checks_still_run() {
    let project = Project::empty().policy("this is no policy").config("[model]\ndefault = 7\n");
    let found = project.aye(&["doctor", "--json"]).exits(1).json();
    assert_eq!(found["ok"], false);
    let (state, says) = check(&found, "configuration");
    assert!(state == "missing" && says.contains("config.toml"), "{says}");
    assert_eq!(check(&found, "data directory").0, "good");
    let project = Project::empty().policy("this is no policy");
    let (state, says) = check(&project.aye(&["doctor", "--json"]).exits(1).json(), "policy");
    assert!(state == "missing" && says.contains("policy.toml"), "{says}");
}

#[test]
fn the_sandbox_tier_is_one_of_four() {
    let found = Project::empty().aye(&["doctor", "--json"]).json();
    let tier = found["tier"].as_str().unwrap();
    assert!(["bare", "landlock_only", "guarded", "preview"].contains(&tier), "{tier}");
    assert_eq!(check(&found, "sandbox").0 == "good", tier == "preview");
}
