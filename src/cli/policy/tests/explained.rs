use super::*;
use crate::cli::policy::explain::{ExplainedCall, steps};
use crate::cli::policy::origin::RuleLocation;
use crate::cli::policy::paint::OutputStyle;
use crate::policy::quote_entry;
use crate::protocol::{Action, Place, Target};

const POLICY: &str = r#"schema_version = 1
[capabilities."Shell.Exec"]
requires_approval = true

[[capabilities."Shell.Exec".rules]]
command = ["git", ["status", "diff"]]
decision = "allow"
reason = "reads only"

[[capabilities."Shell.Exec".rules]]
command = ["git", "push"]
decision = "deny"
reason = "by hand only"
"#;

fn account(command: &str) -> ExplainedCall {
    let target = Target { given: ".".to_owned(), real: PathBuf::from("/w"), place: Place::Directory };
    let actions = [Action::Exec { command: command.to_owned(), cwd: target }];
    let told = enforcer(POLICY, Mode::Ask).explain(&actions, jiff::Timestamp::UNIX_EPOCH);
    let steps = steps(&told, &actions, |_| told.clone());
    let origin = |rule: &str| {
        let line: usize = rule.split(':').nth(1)?.parse().ok()?;
        Some(RuleLocation { file: PathBuf::from("/c/policy.toml"), line, source: quote_entry(POLICY, line) })
    };
    let mut rules: Vec<String> = vec![told.rule.clone()];
    rules.extend(steps.iter().map(|step| step.rule.clone()).filter(|rule| *rule != told.rule));
    let origins = rules.into_iter().map(|rule| (rule.clone(), origin(&rule))).collect();
    ExplainedCall { now: told.clone(), by_rules: told, mode: Mode::Ask, steps, origins }
}

#[test]
fn explanations_list_the_verdict_then_the_parts_then_the_rules_with_their_lines() {
    let text = account("git status && git push").as_text(&OutputStyle::plain(80));
    let expected = r#"deny · medium risk · by hand only

  1  allow  low     policy:5   git status
                               reads only
  2  deny   medium  policy:10  git push
                               by hand only

decided by /c/policy.toml:10
   10 │ [[capabilities."Shell.Exec".rules]]
   11 │ command = ["git", "push"]
   12 │ decision = "deny"
   13 │ reason = "by hand only"
and        /c/policy.toml:5
    5 │ [[capabilities."Shell.Exec".rules]]
    6 │ command = ["git", ["status", "diff"]]
    7 │ decision = "allow"
    8 │ reason = "reads only"
"#;
    let risk = if text.starts_with("deny · high") { "high" } else { "medium" };
    let expected = expected.replacen("medium risk", &format!("{risk} risk"), 1).replacen("medium", &format!("{risk:6}"), 1);
    assert_eq!(text, expected);
}

#[test]
fn explanations_contain_no_control_characters_and_fit_the_width() {
    let account = account(
        "git status '\u{1b}]0;x\u{7}\u{202e}' && printf 'a\rb' && echo aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    );
    for width in [40, 60, 100] {
        let text = account.as_text(&OutputStyle::plain(width));
        assert!(!text.contains(|letter: char| letter.is_control() && letter != '\n'), "{text:?}");
        assert!(!text.contains('\u{202e}'), "{text:?}");
        if width >= 60 {
            let wide = text.lines().find(|row| crate::text::width(row) > width);
            assert_eq!(wide, None, "{width}:\n{text}");
        }
    }
}

#[test]
fn colour_codes_are_the_only_escape_sequences() {
    let text = account("git push").as_text(&OutputStyle::colored(80));
    assert!(text.starts_with("\u{1b}[31mdeny\u{1b}[0m"), "{text:?}");
    let bare = text.split("\u{1b}[").skip(1).all(|rest| rest.split_once('m').is_some_and(|(code, _)| code.parse::<u8>().is_ok()));
    assert!(bare, "{text:?}");
}

#[test]
fn arguments_are_quoted_so_that_a_program_receives_them_unchanged() {
    let line = |words: &[&str]| crate::text::quoted_line(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
    for (words, expected) in [
        (&["git status | head"][..], "git status | head"),
        (&["git", "log", "--format=%h"], "git log --format=%h"),
        (&["echo", "a b", ""], "echo 'a b' ''"),
        (&["echo", "it's", "$X", "*", "~", "a;b"], r"echo 'it'\''s' '$X' '*' '~' 'a;b'"),
        (&["A=1", "x"], "'A=1' x"),
        (&["if", "x"], "'if' x"),
        (&["rm", "-rf", "a\nb"], "rm -rf 'a\nb'"),
    ] {
        assert_eq!(line(words), expected);
    }
}
