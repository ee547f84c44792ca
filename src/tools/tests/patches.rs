//! ApplyPatch on files: the cases that are handed out, and what they do not have.

use super::*;
use serde::Deserialize;
use std::collections::BTreeMap;

type Files = BTreeMap<String, Vec<u8>>;

fn fixtures() -> Option<PathBuf> {
    let shared =
        std::env::var("AYE_SHARED").map_or_else(|_| Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared"), PathBuf::from);
    let fixtures = shared.join("fixtures/apply_patch");
    if fixtures.is_dir() {
        return Some(fixtures);
    }
    eprintln!("skipped: there is no {}; set AYE_SHARED to have the cases run", fixtures.display());
    None
}

/// All files below a directory.
fn files(root: &Path) -> Files {
    fn below(directory: &Path, root: &Path, found: &mut Files) {
        let Ok(entries) = fs::read_dir(directory) else { return };
        for entry in entries {
            let path = entry.unwrap().path();
            if path.symlink_metadata().unwrap().is_dir() {
                below(&path, root, found);
            } else {
                let name = path.strip_prefix(root).unwrap().display().to_string();
                found.insert(name, fs::read(&path).unwrap_or_default());
            }
        }
    }
    let mut found = Files::new();
    below(root, root, &mut found);
    found
}

fn workspace(bench: &Bench) -> Files {
    files(&bench.settings.workspace)
}

fn filled(files: &Files) -> Bench {
    let bench = Bench::new();
    files.iter().for_each(|(name, content)| bench.write(name, content));
    bench
}

fn patch(body: &str) -> Value {
    json!({"patch": format!("*** Begin Patch\n{body}*** End Patch\n")})
}

#[derive(Deserialize)]
struct Case {
    id: String,
    kind: String,
    before: BTreeMap<String, String>,
    patch: String,
    intended_after: BTreeMap<String, String>,
    reference: Reference,
}

#[derive(Deserialize)]
struct Reference {
    state: String,
}

#[test]
fn every_case_comes_to_what_was_intended_or_changes_nothing() {
    let Some(fixtures) = fixtures() else { return };
    let bytes =
        |files: &BTreeMap<String, String>| files.iter().map(|(name, text)| (name.clone(), text.clone().into_bytes())).collect();
    let mut table: BTreeMap<String, BTreeMap<&str, usize>> = BTreeMap::new();
    let mut wrong = Vec::new();
    for line in fs::read_to_string(fixtures.join("cases.jsonl")).unwrap().lines() {
        let case: Case = serde_json::from_str(line).unwrap();
        let (before, intended): (Files, Files) = (bytes(&case.before), bytes(&case.intended_after));
        let bench = filled(&before);
        let result = bench.call("apply_patch", json!({"input": case.patch}));
        let after = workspace(&bench);
        let error = result.error.map(|error| error.message);
        let outcome = match error {
            None if after == intended => "intended",
            Some(_) if after == before && case.reference.state != "intended" => "refused",
            _ => "wrong",
        };
        if outcome == "wrong" {
            wrong.push(format!("{} ({}): {error:?}", case.id, case.kind));
        }
        *table.entry(case.kind).or_default().entry(outcome).or_default() += 1;
    }
    println!("{table:#?}");
    assert!(wrong.is_empty(), "{wrong:#?}\n{table:#?}");
    let intended: usize = table.values().filter_map(|outcomes| outcomes.get("intended")).sum();
    assert!(intended >= 231, "{intended} cases come to what was intended\n{table:#?}");
}

#[test]
fn every_scenario_ends_as_expected() {
    let Some(fixtures) = fixtures() else { return };
    let scenarios = fixtures.join("scenarios");
    for line in fs::read_to_string(scenarios.join("index.jsonl")).unwrap().lines() {
        let scenario: Value = serde_json::from_str(line).unwrap();
        let directory = scenarios.join(scenario["name"].as_str().unwrap());
        let before = files(&directory.join("input"));
        let bench = filled(&before);
        let result = bench.call("ApplyPatch", json!({"patch": fs::read_to_string(directory.join("patch.txt")).unwrap()}));
        assert_eq!(result.error.is_none(), scenario["succeeds"], "{scenario}: {result:?}");
        // Whole or not at all, whatever another tool left there.
        let expected = if result.error.is_none() { files(&directory.join("expected")) } else { before };
        assert_eq!(workspace(&bench), expected, "{scenario}");
    }
}
