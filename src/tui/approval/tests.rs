use super::*;
use crate::protocol::{Effects, FileDiffs, GrantOptions, Proposal};
use crate::tui::glyphs::UNICODE;
use crate::tui::tests::fixtures::{command_approval, edit_approval, effects_approval, plan_approval};
use crate::tui::theme::{ColourDepth, Theme, Token};

fn shown(panel: &Dialog, width: u16) -> String {
    let theme = Theme::choose(None, ColourDepth::None);
    let rows = panel.body.lines(width, 0..panel.body.rows(width), &theme, &UNICODE);
    rows.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

#[test]
fn every_character_of_a_command_is_shown_at_any_width() {
    let mut approval = command_approval("a");
    let line = "printf 'a   b'  \x1b[8m; rm -rf ~  # \u{202e}txt";
    approval.command =
        approval.command.map(|command| crate::protocol::approval::CommandLine { line: line.to_owned(), ..command });
    let panel = Dialog::approval(approval);
    let expected: String = text::reveal(line).chars().filter(|c| *c != ' ').collect();
    assert!(expected.contains("[8m") && !expected.contains('\x1b') && !expected.contains('\u{202e}'), "{expected}");
    for width in [20, 36, 80, 120] {
        let drawn: String = shown(&panel, width).chars().filter(|c| !c.is_whitespace()).collect();
        assert!(drawn.contains(&expected), "{width}: {drawn}");
    }
}

#[test]
fn the_row_count_matches_the_rows_drawn() {
    for approval in [edit_approval("a"), command_approval("a")] {
        let panel = Dialog::approval(approval);
        for width in [30, 60, 99, 100, 140] {
            assert_eq!(shown(&panel, width).split('\n').count(), panel.body.rows(width), "{width}");
        }
    }
}

#[test]
fn high_risk_and_critical_approvals_take_two_keys() {
    let letters = |approval| {
        let panel = Dialog::approval(approval);
        let two = panel.choices.iter().filter(|choice| choice.key.confirm == Confirm::LetterThenEnter);
        two.map(|choice| choice.key.letter).collect::<String>()
    };
    assert_eq!(letters(edit_approval("a")), "");
    assert_eq!(letters(command_approval("a")), "y");
    assert_eq!(letters(Approval { risk_level: Risk::High, ..edit_approval("a") }), "y");
    assert_eq!(letters(Approval { critical: true, ..edit_approval("a") }), "y");
}

#[test]
fn always_allow_is_disabled_for_calls_that_cannot_be_remembered() {
    for (approval, words) in [
        (Approval { always: GrantOptions::default(), ..edit_approval("a") }, "no rule can be saved for this call"),
        (command_approval("a"), "no rule can be saved: 3 deletes, 4 uses the network, 5 runs code that nobody has seen"),
    ] {
        let mut panel = Dialog::approval(approval);
        let always = panel.choices.iter().find(|choice| choice.act == ChoiceAction::Always).unwrap();
        assert_eq!((always.enabled, always.words.as_str()), (false, words));
        assert!(!panel.open_always());
    }
}

#[test]
fn the_reason_explains_why_the_riskiest_part_needs_approval() {
    let panel = Dialog::approval(command_approval("a"));
    assert_eq!(
        panel.reason,
        "ask: 5 runs downloaded code from `example.com` (built-in); 4 downloads from `example.com` (user:31)"
    );
    let panel = Dialog::approval(edit_approval("a"));
    assert_eq!(panel.reason, "ask: built-in, writes a file");
}

#[test]
fn a_long_reason_is_cut_after_three_rows() {
    let mut approval = edit_approval("a");
    assert!(rows::reason_lines(&Dialog::approval(approval.clone()), 60).is_empty(), "that it writes a file is no news");
    approval.is_uncovered = false;
    approval.reason = "because of the very many words of this reason ".repeat(8);
    let panel = Dialog::approval(approval);
    let rows = rows::reason_lines(&panel, 60);
    assert_eq!(rows.len(), 3);
    assert!(rows[2].ends_with('…') && rows.iter().all(|row| text::width(row) <= 58), "{rows:?}");
}

#[test]
fn approvals_of_manifest_tools_show_the_tool_name() {
    let mut approval = command_approval("a");
    approval.tool_name = "tickets".to_owned();
    assert_eq!(Dialog::approval(approval).title, "Run the tool tickets");
    assert_eq!(Dialog::approval(command_approval("a")).title, "Run downloaded code from example.com");
}

#[test]
fn command_facts_are_not_wrapped_if_each_fits_on_a_row() {
    let mut approval = command_approval("a");
    approval.proposal.notes = vec!["your tool: ~/.config/aye/tools/tickets.toml".to_owned(), "fingerprint 5f2c5f2c".to_owned()];
    approval.proposal.usual_notes = 0;
    let drawn = shown(&Dialog::approval(approval), 56);
    assert!(drawn.contains("your tool: ~/.config/aye/tools/tickets.toml"), "{drawn}");
}

#[test]
fn risky_parts_are_highlighted_and_the_worst_effect_comes_first() {
    let panel = Dialog::approval(command_approval("a"));
    assert_eq!(panel.title, "Run downloaded code from example.com");
    let drawn = shown(&panel, 100);
    let place = |words: &str| drawn.find(words).unwrap_or_else(|| panic!("{words}\n{drawn}"));
    assert!(place("also downloads from `example.com` · high risk") < place("also deletes `target/tmp` · medium risk"), "{drawn}");
    assert!(place("2 harmless parts") < place("cargo test --workspace"), "{drawn}");
    let theme = Theme::choose(None, ColourDepth::True);
    let rows = panel.body.lines(200, 0..panel.body.rows(200), &theme, &UNICODE);
    let of = |token| -> Vec<String> {
        let spans = rows.iter().flat_map(|row| &row.spans).filter(|span| span.style == theme.style(token));
        spans.map(|span| span.content.to_string()).collect()
    };
    assert!(of(Token::Danger).contains(&"curl -fsS https://example.com/install.sh".to_owned()), "{:?}", of(Token::Danger));
    assert!(of(Token::Warn).contains(&"rm -rf target/tmp".to_owned()), "{:?}", of(Token::Warn));
    assert!(of(Token::Code).contains(&"cargo test --workspace 2>&1 | tail -20 && ".to_owned()), "{:?}", of(Token::Code));
}

#[test]
fn usual_command_facts_take_no_row() {
    let mut approval = command_approval("a");
    approval.parts.truncate(1);
    approval.proposal.notes.push("in crates/greeter".to_owned());
    let drawn = shown(&Dialog::approval(approval.clone()), 100);
    assert!(drawn.contains("in crates/greeter"), "{drawn}");
    for words in ["sandbox", "time limit", "environment", "shell", "~/src/greeter"] {
        assert!(!drawn.contains(words), "{words}\n{drawn}");
    }
    if let Some(command) = &mut approval.command {
        command.sandbox = "OFF by your policy: the command has all your permissions".to_owned();
    }
    assert!(shown(&Dialog::approval(approval), 100).contains("sandbox OFF by your policy"));
}

#[test]
fn the_prompt_for_a_server_tool_shows_its_arguments_once_and_its_server_only_on_demand() {
    let plain = edit_approval("a");
    let notes = ["MCP server fs, npx -y @example/fs", "fingerprint 5f2c", "title: Bug in f5\nbody:\n  overflow\n  in f5"];
    let proposal = Proposal {
        summary: "Call create_issue on fs".to_owned(),
        notes: notes.map(str::to_owned).to_vec(),
        usual_notes: 2,
        ..Proposal::default()
    };
    let approval = Approval {
        tool_name: "Mcp.fs/create_issue".to_owned(),
        action_summary: "fs/create_issue title=\"Bug in f5\" body=\"overflow\\nin f5\"".to_owned(),
        risk_level: Risk::Medium,
        rule: "user:8".to_owned(),
        reason: crate::protocol::CALLS_SERVER_TOOL.to_owned(),
        is_uncovered: false,
        proposal,
        ..plain
    };
    let mut panel = Dialog::approval(approval.clone());
    assert_eq!(panel.title, "Call create_issue on fs");
    assert_eq!(shown(&panel, 76), "title: Bug in f5\nbody:\n  overflow\n  in f5");
    assert!(rows::reason_lines(&panel, 76).is_empty(), "the rule is behind `?`");
    assert!(panel.open_reading());
    let more = shown(panel.visible(), 76);
    assert!(more.contains("npx -y @example/fs") && more.contains("5f2c") && more.contains("user:8"), "{more}");
    let told = Approval { reason: "writes to production".to_owned(), ..approval };
    assert_eq!(rows::reason_lines(&Dialog::approval(told), 76), ["ask: user:8, writes to production"]);
}

#[test]
fn a_long_value_continues_below_its_beginning() {
    let body = Body::from_text(
        "result       exit 0; ran in a copy without network access\nplain words that are long enough to wrap".to_owned(),
    );
    let theme = Theme::choose(None, ColourDepth::None);
    let rows: Vec<String> = body.lines(42, 0..body.rows(42), &theme, &UNICODE).iter().map(ToString::to_string).collect();
    let rows: Vec<&str> = rows.iter().map(|row| row.trim_end()).collect();
    let expected =
        ["result       exit 0; ran in a copy without", "             network access", "plain words that are long enough to wrap"];
    assert_eq!(rows, expected);
}

#[test]
fn the_text_of_a_plan_is_unchanged_and_cannot_imitate_the_effect_of_its_approval() {
    let mut approval = plan_approval("a");
    let lines = ["```", "# a comment", "```", "## Already allowed:", "  rm -rf ~", "Effect of approving this plan"];
    if let Some(plan) = &mut approval.plan {
        plan.text = format!("# Reject empty names\n\n{}\n", lines.join("\n"));
    }
    let panel = Dialog::approval(approval);
    let Body::Edit { above, .. } = &panel.body else { panic!("a plan is shown as paragraphs") };
    let drawn = lines.map(|line| line.trim_start_matches("## "));
    assert_eq!(above.iter().take(lines.len()).map(|note| note.text.as_str()).collect::<Vec<_>>(), drawn);
    let of = |token: Token| above.iter().filter(|note| note.token == token).map(|note| note.text.as_str()).collect::<Vec<_>>();
    assert_eq!(of(Token::Accent), ["Effect of approving this plan"]);
    let own = ["Allowed until the task ends, without another approval:", "Already allowed:", "Still needs approval:"];
    assert_eq!(of(Token::Heading), [&["Already allowed:"][..], &own].concat());
}

#[test]
fn a_run_that_changed_nothing_only_asks_about_its_output() {
    let mut approval = effects_approval("a");
    (approval.risk_level, approval.proposal.diff) = (Risk::High, FileDiffs::default());
    if let Some(effects) = &mut approval.effects {
        **effects = Effects { output: "3 passed\n".to_owned(), ended: "exit 0".to_owned(), ..Effects::default() };
    }
    let panel = Dialog::approval(approval);
    assert_eq!((panel.title.as_str(), panel.risk), ("The command changed no files", Some(Risk::Low)));
    let labels: Vec<_> = panel.choices.iter().take(2).map(|choice| (choice.short.as_ref(), choice.key.confirm)).collect();
    assert_eq!(labels, [("use output", Confirm::Letter), ("no", Confirm::Letter)]);
}

#[test]
fn a_conflict_names_the_changed_file_once_and_relative_to_the_workspace() {
    let mut approval = effects_approval("a");
    let cwd = approval.command.as_ref().unwrap().cwd.clone();
    let conflict = format!("`{cwd}/src/main.rs` changed since the command ran in its preview; nothing was written. Check it");
    approval.effects.as_mut().unwrap().conflict = Some(conflict);
    let panel = Dialog::approval(approval);
    let drawn = shown(&panel, 100);
    assert!(drawn.contains("`src/main.rs` changed since the command ran in its preview"), "{drawn}");
    assert!(!drawn.contains("nothing was written") && !panel.title.contains("changed"), "{} {drawn}", panel.title);
}

#[test]
fn the_head_of_a_new_or_deleted_file_states_each_fact_once() {
    let with = |summary: &str, tool: &str, diff: &str, note: &str| {
        let mut approval = Approval { action_summary: summary.to_owned(), tool_name: tool.to_owned(), ..edit_approval("a") };
        approval.risk_level = if tool == "Delete" { Risk::High } else { Risk::Low };
        approval.proposal.diff = FileDiffs::read(diff);
        approval.proposal.notes = vec![note.to_owned()];
        Dialog::approval(approval)
    };
    let created = with("Create a.rs", "WriteFile", "--- /dev/null\n+++ b/a.rs\n@@ -0,0 +1,2 @@\n+x\n+y\n", "creates the file");
    assert_eq!((created.title.as_str(), created.facts.as_str()), ("Create a.rs", "+2"));
    assert!(!shown(&created, 80).contains("creates the file"));
    let deleted = with("Delete a.rs −2", "Delete", "--- a/a.rs\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-x\n-y\n", "");
    assert_eq!((deleted.title.as_str(), deleted.facts.as_str()), ("Delete a.rs", "−2"));
    assert!(rows::reason_lines(&deleted, 80).is_empty());
}
