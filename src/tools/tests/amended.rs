//! Tests of changes that the user has edited: any selection of hunks and edited lines, with all other bytes unchanged.

use super::*;
use crate::protocol::{Amendment, HunkChoice};
use proptest::prelude::*;

impl Bench {
    fn amended(&self, plan: Plan, amendment: Amendment) -> Result<Plan, ToolError> {
        block_on(self.router().amend(plan, amendment))
    }

    #[track_caller]
    fn with_hunks(&self, plan: Plan, hunks: Vec<HunkChoice>) -> String {
        let (actions, places) = (plan.actions.clone(), plan.places.clone());
        let plan = self.amended(plan, Amendment::Hunks { hunks }).unwrap();
        assert_eq!(plan.actions, actions);
        for now in &plan.places {
            assert!(places.iter().any(|before| (&now.path, &now.before) == (&before.path, &before.before)), "{now:?}");
        }
        let told = plan.amends.told.clone().unwrap();
        let result = self.run(plan);
        assert_eq!(result.status, ToolStatus::Succeeded, "{result:?}");
        told
    }
}

/// Applies the chosen hunks of a diff to a text, using nothing but the diff.
fn patched(old: &str, diff: &str, choices: &[HunkChoice]) -> String {
    let old: Vec<&str> = old.split_inclusive('\n').collect();
    let mut rows = diff.lines().skip_while(|row| !row.starts_with("@@")).peekable();
    let (mut text, mut at, mut choices) = (String::new(), 0, choices.iter());
    while let Some(head) = rows.next() {
        let range = head.split(' ').nth(1).unwrap()[1..].to_owned();
        let (start, count) = range.split_once(',').map_or((range.as_str(), 1), |(start, count)| (start, count.parse().unwrap()));
        let start: usize = start.parse().unwrap();
        let start = if count == 0 { start } else { start - 1 };
        text.extend(old[at..start].iter().copied());
        at = start + count;
        let mut body: Vec<(char, String)> = Vec::new();
        while let Some(row) = rows.next_if(|row| !row.starts_with("@@")) {
            match row.chars().next() {
                Some('\\') => drop(body.last_mut().unwrap().1.pop()),
                sign => body.push((sign.unwrap_or(' '), format!("{}\n", row.get(1..).unwrap_or_default()))),
            }
        }
        let first = body.iter().position(|(sign, _)| *sign != ' ').unwrap();
        let last = body.iter().rposition(|(sign, _)| *sign != ' ').unwrap();
        let side = |range: &[(char, String)], without: char| {
            range.iter().filter(|(sign, _)| *sign != without).map(|(_, line)| line.as_str()).collect::<String>()
        };
        text += &side(&body[..first], '+');
        text += &match choices.next().unwrap() {
            HunkChoice::Taken => side(&body[first..=last], '-'),
            HunkChoice::Left => side(&body[first..=last], '+'),
            HunkChoice::Edited { text } => text.clone(),
        };
        text += &side(&body[last + 1..], '+');
    }
    text.extend(old[at..].iter().copied());
    text
}

/// Generates a text, a change to it, and choices that the user might make.
fn cases() -> impl Strategy<Value = (String, String, Vec<u8>)> {
    let line = prop::sample::select(vec!["fn a() {", "    let x = 1;", "}", "", "é ü", "same", "\tend", "z"]);
    let lines = prop::collection::vec(line, 0..60);
    let edits = prop::collection::vec(
        (0..60_usize, 0..3_usize, prop::sample::select(vec!["", "new\n", "one\ntwo\n", "    let x = 2;\n"])),
        1..8,
    );
    (lines, edits, any::<bool>(), any::<bool>(), prop::collection::vec(0..3_u8, 24)).prop_map(
        |(lines, edits, ended, stays, choices)| {
            let text = |mut text: String, ended: bool| {
                if !ended && text.ends_with('\n') {
                    text.pop();
                }
                text
            };
            let old: Vec<String> = lines.iter().map(|line| format!("{line}\n")).collect();
            let mut new = old.clone();
            for (at, count, put) in edits {
                let at = at.min(new.len());
                let end = (at + count).min(new.len());
                new.splice(at..end, Some(put.to_owned()).filter(|put| !put.is_empty()));
            }
            (text(old.concat(), ended), text(new.concat(), ended == stays), choices)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn applying_selected_hunks_equals_patching_with_them((old, new, choices) in cases(), crlf in any::<bool>(), bom in any::<bool>()) {
        let bench = Bench::new();
        let kept = |text: &str| {
            let text = if crlf { text.replace('\n', "\r\n") } else { text.to_owned() };
            if bom && !old.is_empty() { format!("\u{FEFF}{text}") } else { text }
        };
        let crlf_is_known = !crlf || old.contains('\n');
        prop_assume!(old != new && crlf_is_known);
        bench.write("f", kept(&old));
        bench.output("ReadFile", json!({"path": "f"}));
        let plan = bench.plan("WriteFile", json!({"path": "f", "content": new})).unwrap();
        let diff = plan.proposal.clone().unwrap().diff.to_string();
        let count = plan.amends.offer.hunks.len();
        prop_assert_eq!(count, diff.lines().filter(|row| row.starts_with("@@")).count());
        let last_ends = |at: usize| at + 1 < count || (old.ends_with('\n') && new.ends_with('\n'));
        let mut hunks: Vec<HunkChoice> = (0..count).map(|at| match choices[at % choices.len()] {
            0 => HunkChoice::Left,
            2 if last_ends(at) => HunkChoice::Edited { text: "by hand\n\tand more\n".to_owned() },
            _ => HunkChoice::Taken,
        }).collect();
        if hunks.iter().all(|choice| *choice == HunkChoice::Left) {
            hunks[0] = HunkChoice::Taken;
        }
        let wanted = patched(&old, &diff, &hunks);
        bench.with_hunks(plan, hunks);
        prop_assert_eq!(String::from_utf8(bench.read("f")).unwrap(), kept(&wanted));
    }
}

const OLD: &str = "fn greet() {\n    one();\n}\n\n\n\n\n\n\nfn main() {\n    two();\n}\n";

fn both() -> Value {
    json!({"path": "f.rs", "edits": [{"oldText": "one()", "newText": "ONE()"}, {"oldText": "two()", "newText": "TWO()"}]})
}

#[test]
fn the_result_lists_applied_discarded_and_edited_hunks() {
    let bench = Bench::new();
    bench.write("f.rs", OLD);
    let plan = bench.plan("EditFile", both()).unwrap();
    let names: Vec<_> = plan.amends.offer.hunks.iter().map(|hunk| hunk.name.as_deref()).collect();
    assert_eq!(names, [Some("greet()"), Some("main()")]);
    let edited = HunkChoice::Edited { text: "    three();\n".to_owned() };
    let told = bench.with_hunks(plan, vec![HunkChoice::Left, edited]);
    assert_eq!(bench.read("f.rs"), OLD.replace("two()", "three()").as_bytes());
    assert!(told.contains("hunk 1 of 2 (greet(), your line 2): not applied; those lines are unchanged"), "{told}");
    assert!(told.contains("hunk 2 of 2 (main(), your line 11): edited; replaced by\n    three();"), "{told}");
}

#[test]
fn empty_and_invalid_hunk_selections_are_rejected() {
    let bench = Bench::new();
    bench.write("f.rs", OLD);
    for hunks in [vec![HunkChoice::Left, HunkChoice::Left], vec![HunkChoice::Taken]] {
        let plan = bench.plan("EditFile", both()).unwrap();
        assert_eq!(bench.amended(plan, Amendment::Hunks { hunks }).unwrap_err().code, ErrorCode::InvalidRequest);
    }
    let plan = bench.plan("EditFile", both()).unwrap();
    assert!(bench.amended(plan, Amendment::Command { line: "true".to_owned() }).is_err());
}

#[test]
fn a_changed_file_is_a_conflict_for_amended_changes_too() {
    let bench = Bench::new();
    bench.write("f.rs", OLD);
    let plan = bench.plan("EditFile", both()).unwrap();
    bench.write("f.rs", "by someone else\n");
    let plan = bench.amended(plan, Amendment::Hunks { hunks: vec![HunkChoice::Taken, HunkChoice::Left] }).unwrap();
    let result = bench.run(plan);
    assert_eq!(result.error.unwrap().code, ErrorCode::Conflict);
    assert_eq!(bench.read("f.rs"), b"by someone else\n");
}

#[test]
fn secrets_stay_redacted_in_amendments_and_intact_in_the_file() {
    let bench = Bench::new();
    let key = "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEAxyz0123456789abcdefABCDEF\nabcdefghijklmnop0123456789\n-----END RSA PRIVATE KEY-----\n";
    let token = "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";
    let old = format!("first = 1\ntoken = \"{token}\"\na\nb\nc\nd\ne\nf\ng\n{key}h\ni\nj\nk\nl\nm\nn\nlast = 1\n");
    bench.write("f", &old);
    let shown = bench.output("ReadFile", json!({"path": "f"}));
    assert!(!shown.contains(token) && !shown.contains("MIIEpAIBAAKCAQEA"), "{shown}");
    let marker = shown.lines().find_map(|line| line.strip_prefix("token = ")).unwrap().trim_matches('"').to_owned();
    let edits = json!([{"oldText": "first = 1", "newText": "first = 2"}, {"oldText": "last = 1", "newText": "last = 2"}]);
    let plan = bench.plan("EditFile", json!({"path": "f", "edits": edits})).unwrap();
    assert_eq!(plan.amends.offer.hunks.len(), 2, "{:?}", plan.amends.offer);
    assert!(!plan.amends.texts[0].contains(token));
    let edited = HunkChoice::Edited { text: format!("first = \"{marker}\"\n") };
    let told = bench.with_hunks(plan, vec![edited, HunkChoice::Left]);
    assert!(!told.contains(token), "{told}");
    assert_eq!(String::from_utf8(bench.read("f")).unwrap(), old.replace("first = 1", &format!("first = \"{token}\"")));
}

#[test]
fn text_edited_as_a_whole_keeps_the_format_of_the_file() {
    let bench = Bench::new();
    bench.write("f.rs", format!("\u{FEFF}{}", OLD.replace('\n', "\r\n")));
    let plan = bench.plan("EditFile", both()).unwrap();
    let text = plan.amends.texts[0].replace("fn main", "pub fn main");
    let plan = bench.amended(plan, Amendment::File { file: 0, text }).unwrap();
    assert!(plan.proposal.as_ref().unwrap().diff.to_string().contains("+pub fn main() {"), "{:?}", plan.proposal);
    let told = plan.amends.told.clone().unwrap();
    assert!(told.contains("edited `f.rs` before") && told.contains("+pub fn main() {") && !told.contains("+    ONE"), "{told}");
    bench.run(plan);
    let wanted = OLD.replace("one()", "ONE()").replace("two()", "TWO()").replace("fn main", "pub fn main").replace('\n', "\r\n");
    assert_eq!(String::from_utf8(bench.read("f.rs")).unwrap(), format!("\u{FEFF}{wanted}"));
}

#[test]
fn a_patch_offers_the_hunks_of_each_file() {
    let bench = Bench::new();
    bench.write("f.rs", OLD);
    bench.write("gone", "away\n");
    let patch = "*** Begin Patch\n*** Add File: new\n+made\n*** Update File: f.rs\n-    one();\n+    ONE();\n@@ fn main() {\n-    two();\n+    TWO();\n*** Delete File: gone\n*** End Patch\n";
    let plan = || bench.plan("ApplyPatch", json!({"patch": patch})).unwrap();
    let offer = plan().amends.offer;
    assert_eq!(offer.files, ["new", "f.rs"]);
    let fixed: Vec<bool> = offer.hunks.iter().map(|hunk| hunk.fixed.is_some()).collect();
    assert_eq!(fixed, [false, false, false, true]);
    let choices = |letters: &str| -> Vec<HunkChoice> {
        letters.chars().map(|letter| if letter == 'T' { HunkChoice::Taken } else { HunkChoice::Left }).collect()
    };
    let refused = bench.amended(plan(), Amendment::Hunks { hunks: choices("TTTL") }).unwrap_err();
    assert!(refused.message.contains("a file can only be deleted as a whole"), "{refused}");
    let told = bench.with_hunks(plan(), choices("LLTT"));
    assert!(told.contains("hunk 1 of 3 (`new`, your line 1): not applied"), "{told}");
    assert!(!bench.path("new").exists() && !bench.path("gone").exists());
    assert_eq!(bench.read("f.rs"), OLD.replace("two()", "TWO()").as_bytes());
}

#[test]
fn a_command_can_be_edited_or_reduced_to_its_first_part() {
    let bench = Bench::new();
    let plan = |command: &str| bench.plan("RunCommand", json!({"command": command})).unwrap();
    assert_eq!(plan("echo a && echo b").amends.offer.command.as_deref(), Some("echo a && echo b"));
    let edited = bench.amended(plan("echo a"), Amendment::Command { line: "echo other".to_owned() }).unwrap();
    assert!(matches!(&edited.actions[0], Action::Exec { command, .. } if command == "echo other"));
    let told = edited.amends.told.clone().unwrap();
    assert!(told.contains("edited this command") && told.contains("echo other"), "{told}");
    assert!(edited.amends.offer.edited && bench.run(edited).output_text.contains("other"));
    let twice = bench.amended(plan("echo a"), Amendment::Command { line: "echo never".to_owned() }).unwrap();
    let twice = bench.amended(twice, Amendment::Command { line: "echo last\necho ']'".to_owned() }).unwrap();
    let told = twice.amends.told.unwrap();
    assert!(told.ends_with(r#"before it ran: "echo last\necho ']'"]"#) && !told.contains("never"), "{told}");
    let first = bench.amended(plan("echo a && echo b"), Amendment::First { line: "echo a".to_owned() }).unwrap();
    assert!(matches!(&first.actions[0], Action::Exec { command, .. } if command == "echo a"));
    assert!(bench.amended(plan("echo a"), Amendment::First { line: "rm -rf x".to_owned() }).is_err());
}

#[test]
fn the_approval_of_a_command_that_changes_git_settings_says_that_it_fails_in_the_sandbox() {
    let mut bench = Bench::new();
    let plan = |bench: &Bench, line: &str| bench.plan("RunCommand", json!({"command": line})).unwrap();
    let warns = |plan: &Plan| {
        let notes = plan.proposal.as_ref().map(|proposal| proposal.notes.as_slice()).unwrap_or_default();
        notes.iter().any(|note| note.contains("it will fail"))
    };
    assert!(!warns(&plan(&bench, "git remote add x y")), "without a sandbox, it can succeed");
    bench.settings.command.sandbox.tier = crate::protocol::SandboxTier::Preview;
    let held = plan(&bench, "git remote add x y");
    assert!(warns(&held) && held.amends.offer.unsandboxed && !warns(&plan(&bench, "git remote -v")));
    assert!(!warns(&bench.amended(held, Amendment::Unsandboxed).unwrap()));
}

#[test]
fn a_command_runs_outside_the_sandbox_only_with_a_separate_approval() {
    let mut bench = Bench::new();
    let plan = |bench: &Bench| bench.plan("RunCommand", json!({"command": "echo out > made"})).unwrap();
    assert!(!plan(&bench).amends.offer.unsandboxed, "without a sandbox, no run leaves it");
    bench.settings.command.sandbox.tier = crate::protocol::SandboxTier::Preview;
    let held = plan(&bench);
    assert!(held.amends.offer.unsandboxed);
    let outside = bench.amended(held, Amendment::Unsandboxed).unwrap();
    let sandbox = outside.sandbox.clone().unwrap_or_default();
    assert!(sandbox.starts_with("NONE") && sandbox.contains("aye's own directories"), "{sandbox}");
    let offer = &outside.amends.offer;
    assert!(!offer.unsandboxed && offer.command.is_none(), "what was shown is what runs: {offer:?}");
    assert!(matches!(outside.layer, crate::ports::LayerRun::None) && outside.summary.ends_with("outside the sandbox"));
    assert!(outside.proposal.as_ref().is_some_and(|proposal| proposal.unsandboxed));
    let result = bench.run(outside);
    let error = result.error.unwrap_or_else(|| panic!("it ran: {}", result.output_text));
    assert_eq!(error.code, crate::protocol::ErrorCode::PolicyDenied);
    assert!(!bench.path("made").exists());
    let background = bench.plan("RunCommand", json!({"command": "sleep 9", "background": true})).unwrap();
    assert!(!background.amends.offer.unsandboxed);
    assert!(background.proposal.as_ref().is_some_and(|proposal| proposal.background && !proposal.unsandboxed));
    let later = bench.plan("RunCommand", json!({"command": "sleep 9"})).unwrap();
    let later = bench.amended(later, Amendment::Background).unwrap();
    assert!(later.proposal.is_some_and(|proposal| proposal.background));
    let shown = bench.plan("RunCommand", json!({"command": "echo a, allowing b"})).unwrap();
    assert!(!shown.proposal.as_ref().is_some_and(|proposal| proposal.background || proposal.unsandboxed));
    let outside = bench.amended(shown, Amendment::Unsandboxed).unwrap();
    assert_eq!(outside.summary, "$ echo a, allowing b, outside the sandbox", "the whole command is shown");
    bench.write("f.rs", OLD);
    let edit = bench.plan("WriteFile", json!({"path": "g", "content": "x"})).unwrap();
    assert!(bench.amended(edit, Amendment::Unsandboxed).is_err());
}
