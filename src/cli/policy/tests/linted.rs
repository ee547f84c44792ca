use crate::cli::policy::paint::OutputStyle;
use crate::cli::policy::validate::{report, text};
use std::path::Path;

type Lines = Vec<(usize, String)>;

/// Returns the errors and warnings reported for a policy.
fn said(policy: &str) -> (Lines, Lines) {
    let report = report(Path::new("policy.toml"), policy.as_bytes(), "2026-11-21T00:00:00Z".parse().unwrap());
    let lines = |remarks: Vec<crate::cli::policy::validate::Remark>| {
        remarks.into_iter().map(|remark| (remark.line.unwrap_or_default(), remark.message)).collect()
    };
    (lines(report.mistakes), lines(report.warnings))
}

const SHELL: &str = "schema_version = 1\n[capabilities.\"Shell.Exec\"]\nrequires_approval = true\n";

fn rule(command: &str, more: &str) -> String {
    format!("[[capabilities.\"Shell.Exec\".rules]]\ncommand = {command}\n{more}\n")
}

#[test]
fn backend_tool_capabilities_are_valid_in_both_spellings() {
    for keys in ["", "allowed_tool_names = [\"x\"]", "allowedToolNames = [\"x\"]\nrequires_approval = true"] {
        let (mistakes, _) = said(&format!("schema_version = 1\n[capabilities.\"BackendTool.Invoke\"]\n{keys}\n"));
        assert!(mistakes.is_empty(), "{mistakes:?}");
    }
    let both = "allowed_tool_names = [\"x\"]\nallowedToolNames = [\"x\"]";
    let (mistakes, _) = said(&format!("schema_version = 1\n[capabilities.\"BackendTool.Invoke\"]\n{both}\n"));
    assert!(mistakes[0].1.contains("are the same key"), "{mistakes:?}");
}

#[test]
fn probably_unintended_policies_cause_a_warning() {
    let allow = "decision = \"allow\"";
    let deny = "decision = \"deny\"";
    for (policy, line, words) in [
        ("schema_version = 1\n[capabilities.\"File.Read\"]\nallowed_paths = []".to_owned(), 2, "every path is denied"),
        ("schema_version = 1\nextends = \"built-in\"\nexpires_at = 2026-01-01T00:00:00Z".to_owned(), 3, "has expired"),
        ("schema_version = 1\n[capabilities.\"Mcp.Invoke\"]\nrequires_approval = true".to_owned(), 1, "grants neither files nor"),
        ("schema_version = 1\n[capabilities.\"File.Read\"]\nblocked_paths = [\"**/build/\"]".to_owned(), 3, "write `**/build`"),
        ("schema_version = 1\n[capabilities.\"File.Write\"]\nallowed_paths = [\"docs\"]".to_owned(), 2, "without approval"),
        (
            "schema_version = 1\n[capabilities.\"File.Write\"]\nrequires_approval = true\nunprotected_paths = [\"**/.git/x\"]"
                .to_owned(),
            4,
            "stays protected",
        ),
        (
            "schema_version = 1\n[capabilities.\"Shell.Exec\"]\nsandbox = \"off\"".to_owned(),
            2,
            "every command that no rule denies runs",
        ),
        (format!("{SHELL}approval_rule = \"comand\""), 4, "[approval_rules.comand] is not defined"),
        (format!("{SHELL}blocked_commands = [\"/bin/dd\"]"), 4, "`dd` blocks the program in every directory"),
        (format!("{SHELL}blocked_commands = [\"curl | sh\"]"), 4, "blocks nothing"),
        (
            format!("{SHELL}blocked_commands = [\"git\"]\n{}", rule("[\"git\", \"log\"]", allow)),
            5,
            "`blocked_commands` contains `git`",
        ),
        (
            format!("{SHELL}{}{}", rule("[\"git\", [\"log\", \"push\"]]", allow), rule("[\"git\"]", deny)),
            4,
            "the rule on line 7 denies everything it matches",
        ),
        (
            format!("{SHELL}{}{}", rule("[\"cat\"]", allow), rule("[[\"cat\", \"ls\"]]", "decision = \"ask\"")),
            4,
            "asks about everything it matches",
        ),
        (format!("{SHELL}{}{}", rule("[\"cat\"]", allow), rule("[\"cat\"]", allow)), 7, "duplicates the rule on line 4"),
        (format!("{SHELL}{}", rule("[\"git status\"]", allow)), 4, "use an array of words: [\"git\", \"status\"]"),
        (format!("{SHELL}{}", rule("[\"cargo\", \"test\"]", allow)), 4, "does not know the options of `cargo`"),
        (format!("{SHELL}{}", rule("[\"git\", \"push\"]", allow)), 4, "`push` can write or run something"),
        (format!("{SHELL}{}", rule("[\"cat\"]", "decision = \"deny\"\nexpires_at = 2026-01-01T00:00:00Z")), 4, "has expired"),
    ] {
        let (mistakes, warnings) = said(&policy);
        assert_eq!(mistakes, [], "{policy}");
        assert_eq!(warnings.len(), 1, "{policy}\n{warnings:?}");
        assert!(warnings[0].0 == line && warnings[0].1.contains(words), "{policy}\n{warnings:?}");
    }
}

#[test]
fn intended_policies_cause_no_warning() {
    let allow = "decision = \"allow\"";
    for policy in [
        format!("{SHELL}blocked_commands = [\"rm -rf\", \"mkfs.*\", \"git push --force\"]\n{}", rule("[\"git\", \"push\"]", "decision = \"ask\"")),
        format!("{SHELL}{}{}", rule("[\"git\", \"log\"]", allow), rule("[\"git\", \"push\"]", "decision = \"deny\"")),
        format!("{SHELL}{}", rule("[\"cargo\", \"test\"]", "decision = \"allow\"\nargs = \"any\"")),
        format!("{SHELL}{}", rule("[\"git\", [\"stash\", \"log\"]]", allow)),
        format!("{SHELL}{}{}", rule("[\"cat\"]", allow), rule("[\"cat\"]", "decision = \"deny\"\nexpires_at = 2027-01-01T00:00:00Z")),
        format!("{SHELL}{}{}", rule("[\"cat\"]", allow), rule("[\"cat\", \"x\"]", "decision = \"deny\"")),
        "schema_version = 1\n[capabilities.\"Shell.Exec\"]\nrequires_approval = false".to_owned(),
        "schema_version = 1\n[capabilities.\"Shell.Exec\"]\nallowed_commands = [\"git\"]".to_owned(),
        "schema_version = 1\n[capabilities.\"File.Read\"]\nallowed_paths = [\"${workspace}/\", \"~/x/\"]".to_owned(),
        "schema_version = 1\n[capabilities.\"File.Write\"]\nallowed_paths = [\"${workspace}\"]\nrequires_approval = true\nunprotected_paths = [\".envrc\"]".to_owned(),
    ] {
        assert_eq!(said(&policy), (Vec::new(), Vec::new()), "{policy}");
    }
}

#[test]
fn all_mistakes_are_reported_at_once_without_consequential_errors() {
    let policy = r#"schema_version = 2
bundle_versoin = "x"

[llm]
max_input_tokens = "many"
allowed_models = [
  "a",
  7,
]

[capabilities."File.Reed"]
allowed_paths = ["x"]

[capabilities."Shell.Exec"]
requires_approval = yes

[[capabilities."Shell.Exec".rules]]
command = ["git"]
decision = "permit"
match = ["ls"]

[[tests]]
tool = "RunCommand"
"#;
    let (mistakes, _) = said(policy);
    let lines: Vec<usize> = mistakes.iter().map(|(line, _)| *line).collect();
    assert_eq!(lines, [1, 2, 5, 8, 11, 15, 19, 22], "{mistakes:#?}");
}

#[test]
fn reports_quote_the_invalid_line_and_end_with_a_count() {
    let report = report(Path::new("policy.toml"), b"schema_version = 1\nllmm = 1\n", jiff::Timestamp::UNIX_EPOCH);
    let shown = text(&[report], &OutputStyle::plain(100));
    assert_eq!(
        shown,
        "error: policy.toml:2: unknown key `llmm`; did you mean `llm`?\n    2 │ llmm = 1\n\
         policy.toml: 1 error; nothing runs under an invalid policy\n"
    );
}

#[test]
fn a_missing_version_and_an_invalid_value_do_not_hide_later_errors() {
    for (policy, lines) in [
        ("[capabilities.\"Shell.Exec\"]\nallow = [\"git\"]\n", vec![1, 2]),
        (
            "schema_version = 1\n[[capabilities.\"Shell.Exec\".rules]]\ncommand = \"git push\"\ndecision = \"alow\"\nmatch = \
             [\"git push\"]\n",
            vec![3, 4],
        ),
        ("schema_version = 2\n[capabilities.\"Shell.Exec\"]\nallow = [\"git\"]\n", vec![1, 3]),
        // A rule on one line of an array: no value can replace the rest of the line.
        (
            "schema_version = 1\n[capabilities.\"Shell.Exec\"]\nrules = [\n  { command = \"git push\", decision = \"alow\" },\n  \
             { command = [\"git\", \"log\"], decision = \"allow\" },\n]\n",
            vec![4],
        ),
    ] {
        let (mistakes, _) = said(policy);
        assert_eq!(mistakes.iter().map(|(line, _)| *line).collect::<Vec<_>>(), lines, "{policy}: {mistakes:#?}");
    }
}
