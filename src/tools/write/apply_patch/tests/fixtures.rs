//! The cases that are handed out, through the parser and the matching alone.

use super::{What, apply, parse};
use crate::tools::write::replacement::{replace_all, with_lf};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

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

fn cases() -> Vec<Case> {
    let shared =
        std::env::var("AYE_SHARED").map_or_else(|_| Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared"), PathBuf::from);
    let Ok(text) = std::fs::read_to_string(shared.join("fixtures/apply_patch/cases.jsonl")) else {
        eprintln!("skipped: no fixtures in `AYE_SHARED` or `../shared`");
        return Vec::new();
    };
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn patched(before: &BTreeMap<String, String>, patch: &str) -> Result<BTreeMap<String, String>, String> {
    let mut tree = before.clone();
    for section in parse(patch).map_err(|error| error.to_string())? {
        match section.what {
            What::Add { content } => {
                let content = tree.get(&section.path).map_or(content.clone(), |old| replace_all(old, &content));
                tree.insert(section.path, content);
            }
            What::Delete => {
                tree.remove(&section.path).ok_or_else(|| format!("no {}", section.path))?;
            }
            What::Update { move_to, hunks } => {
                let text = tree.remove(&section.path).ok_or_else(|| format!("no {}", section.path))?;
                let after = apply(&text, &hunks, &[]).map_err(|misfit| format!("{}: {misfit:?}", section.path))?;
                tree.insert(move_to.unwrap_or(section.path), after.text);
            }
        }
    }
    Ok(tree)
}

#[test]
fn every_case_comes_to_what_was_intended_or_to_an_error() {
    let mut table: BTreeMap<(String, String), BTreeMap<&str, usize>> = BTreeMap::new();
    let mut wrong = Vec::new();
    for case in cases() {
        let outcome = match patched(&case.before, &case.patch) {
            Ok(tree) if tree == case.intended_after => "intended",
            Ok(tree) => {
                let files: Vec<_> = tree.iter().filter(|(path, text)| case.intended_after.get(*path) != Some(text)).collect();
                wrong.push(format!("{} {}: {files:?}", case.id, case.kind));
                "wrong"
            }
            Err(error) => {
                if case.reference.state == "intended" {
                    wrong.push(format!("{} {}: {error}", case.id, case.kind));
                } else {
                    println!("refused: {} {}: {error}", case.id, case.kind);
                }
                "refused"
            }
        };
        *table.entry((case.kind, format!("reference {}", case.reference.state))).or_default().entry(outcome).or_default() += 1;
    }
    println!("{table:#?}");
    assert!(wrong.is_empty(), "{wrong:#?}\n{table:#?}");
    let _ = with_lf;
}
