use super::*;
use crate::policy::Bundle;
use crate::protocol::{Place, Target};
use std::path::PathBuf;

fn shared() -> PathBuf {
    let default = concat!(env!("CARGO_MANIFEST_DIR"), "/../shared");
    PathBuf::from(std::env::var("AYE_SHARED").unwrap_or_else(|_| default.to_owned()))
}

fn context() -> Context {
    Context {
        roots: vec![PathBuf::from("/home/user/project")],
        home: PathBuf::from("/home/user"),
        mode: Mode::Ask,
        sandbox: Sandbox::Present,
        own: vec![PathBuf::from("/home/user/.config/aye"), PathBuf::from("/home/user/.local/share/aye")],
    }
}

fn enforcer(bundle: Bundle) -> Enforcer {
    Enforcer::new(vec![Layer { scope: Scope::User, bundle }], context())
}

fn exec(command: &str) -> Vec<Action> {
    let cwd = Target { given: ".".into(), real: PathBuf::from("/home/user/project"), place: Place::Directory };
    vec![Action::Exec { command: command.to_owned(), cwd }]
}

fn now() -> Timestamp {
    "2026-11-21T00:00:00Z".parse().expect("a time")
}

#[derive(serde::Deserialize)]
struct Case {
    id: String,
    command: String,
    class: String,
    verdict: VerdictKind,
    #[serde(default)]
    also_ok: Vec<VerdictKind>,
}

#[test]
fn the_command_corpus_comes_out_safe() {
    let corpora = shared().join("corpora");
    let Ok(lines) = std::fs::read_to_string(corpora.join("commands.jsonl")) else {
        eprintln!("skipped: no commands.jsonl under {}", corpora.display());
        return;
    };
    let text = std::fs::read_to_string(corpora.join("reference.toml")).expect("the reference policy");
    let enforcer = enforcer(Bundle::parse(&text, "reference.toml").expect("parses"));
    let (mut unsafe_lines, mut weaker, mut over_asked, mut over_blocked, mut right) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new(), 0);
    for line in lines.lines() {
        let case: Case = serde_json::from_str(line).expect("a case");
        let told = enforcer.explain(&exec(&case.command), now());
        if told.verdict == case.verdict || case.also_ok.contains(&told.verdict) {
            right += 1;
            continue;
        }
        let shown = format!("{} {}: {:?} -> {} ({})", case.id, case.class, case.command, told.verdict.as_str(), told.reason);
        match (case.verdict, told.verdict) {
            (_, VerdictKind::Allow) => unsafe_lines.push(shown),
            (VerdictKind::Deny, _) => weaker.push(shown),
            (VerdictKind::Allow, _) => over_asked.push(shown),
            (VerdictKind::Ask, _) => over_blocked.push(shown),
        }
    }
    println!(
        "right {right}, allowed wrongly {}, deny asked {}, over-asked {}, over-blocked {}",
        unsafe_lines.len(),
        weaker.len(),
        over_asked.len(),
        over_blocked.len()
    );
    for line in unsafe_lines.iter().chain(&weaker).chain(&over_asked).chain(&over_blocked) {
        println!("  {line}");
    }
    assert!(unsafe_lines.is_empty() && weaker.is_empty(), "{unsafe_lines:#?}{weaker:#?}");
    assert!(over_asked.len() <= 1 && over_blocked.is_empty(), "{over_asked:#?}{over_blocked:#?}");
}
