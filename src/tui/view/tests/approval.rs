use super::*;
use crate::tui::approval::ChoiceAction;

#[test]
fn command_details_abbreviate_the_home_directory() {
    let mut model = model(120, 36);
    let mut approval = command_approval("a");
    if let Some(command) = &mut approval.command {
        command.cwd = "/home/me/src/greeter".to_owned();
    }
    tell(&mut model, EventKind::ApprovalRequested(approval), 9500);
    assert!(model.dialogs.open_mut().unwrap().open_reading());
    let drawn = picture(&mut model, 20_000);
    assert!(drawn.contains("directory    ~/src/greeter"), "{drawn}");
}

#[test]
fn the_approval_of_an_edit_matches_its_snapshots() {
    check("edit", |model| {
        cards(model);
        tell(model, requested("call-a", "EditFile", "Edit src/main.rs"), 9000);
        tell(model, EventKind::ApprovalRequested(edit_approval("a")), 9500);
    });
}

#[test]
fn an_approval_with_selectable_hunks_matches_its_snapshots() {
    check("hunks", |model| {
        cards(model);
        tell(model, requested("call-a", "EditFile", "Edit src/main.rs"), 9000);
        tell(model, EventKind::ApprovalRequested(hunks_approval("a")), 9500);
        let panel = model.dialogs.open_mut().unwrap();
        panel.mark_hunk(HunkMark::Next).unwrap();
        panel.mark_hunk(HunkMark::Turn).unwrap();
    });
}

#[test]
fn an_approval_with_some_effects_excluded_matches_its_snapshots() {
    check("effects-selected", |model| {
        cards(model);
        tell(model, EventKind::ApprovalRequested(effects_approval("a")), 9500);
        let panel = model.dialogs.open_mut().unwrap();
        for _ in 0..2 {
            panel.mark_hunk(HunkMark::Turn).unwrap();
            panel.mark_hunk(HunkMark::Next).unwrap();
        }
    });
}

#[test]
fn effects_that_conflict_with_current_files_match_their_snapshots() {
    check("effects-conflict", |model| {
        cards(model);
        let approval = effects_approval("a");
        let conflict = Some("`src/main.rs` changed since the command ran in its preview; nothing was written".to_owned());
        let effects = Some(Box::new(Effects { conflict, ..Effects::default() }));
        let proposal = Proposal::default();
        tell(model, EventKind::ApprovalRequested(Approval { proposal, effects, ..approval }), 9500);
    });
}

#[test]
fn an_approval_with_a_hunk_being_edited_matches_its_snapshots() {
    check("hunk-edited", |model| {
        cards(model);
        tell(model, requested("call-a", "EditFile", "Edit src/main.rs"), 9000);
        tell(model, EventKind::ApprovalRequested(hunks_approval("a")), 9500);
        let panel = model.dialogs.open_mut().unwrap();
        panel.mark_hunk(HunkMark::Next).unwrap();
        let lines = crate::tui::composer::Lines::new(panel.hunks().unwrap().text().unwrap().trim_end());
        panel.set_amend_field(Some(AmendField { lines, what: AmendTarget::Hunk }));
    });
}

#[test]
fn the_approval_of_a_command_whose_first_parts_can_run_alone_matches_its_snapshots() {
    check("parts", |model| {
        cards(model);
        let line = "cargo test --workspace 2>&1 | tail -20 && rm -rf target/tmp".to_owned();
        let amendable =
            Amendable { command: Some(line.clone()), first: Some(FirstParts { count: 2, line }), ..Amendable::default() };
        tell(model, EventKind::ApprovalRequested(Approval { amendable, ..command_approval("a") }), 9500);
    });
}

#[test]
fn the_approval_of_an_outdated_change_matches_its_snapshots() {
    check("outdated", |model| {
        cards(model);
        let approval = hunks_approval("a");
        let (approval_id, tool_call_id) = (approval.approval_id.clone(), approval.tool_call_id.clone());
        tell(model, EventKind::ApprovalRequested(approval), 9500);
        tell(model, EventKind::ApprovalOutdated { approval_id, tool_call_id, outdated: true }, 9500);
        model.dialogs.flush_guard(9500);
    });
}

#[test]
fn the_approval_of_a_renewed_change_matches_its_snapshots() {
    check("renewed", |model| {
        cards(model);
        let amendable = Amendable { renewed: true, ..hunks_approval("a").amendable };
        tell(model, EventKind::ApprovalRequested(Approval { amendable, ..hunks_approval("a") }), 9500);
    });
}

#[test]
fn the_approval_of_a_renewed_change_with_its_updated_diff_shown_matches_its_snapshots() {
    check("renewed-shown", |model| {
        cards(model);
        let amendable = Amendable { renewed: true, ..hunks_approval("a").amendable };
        tell(model, EventKind::ApprovalRequested(Approval { amendable, ..hunks_approval("a") }), 9500);
        model.dialogs.show_new(None);
    });
}

#[test]
fn the_approval_of_a_plan_matches_its_snapshots() {
    check("plan", |model| {
        cards(model);
        tell(model, requested("call-a", "ProposePlan", "Plan: Reject empty names"), 9000);
        tell(model, EventKind::ApprovalRequested(plan_approval("a")), 9500);
    });
}

#[test]
fn an_approval_with_a_countdown_matches_its_snapshots() {
    check("countdown", |model| {
        cards(model);
        tell(model, EventKind::ApprovalRequested(Approval { timeout_ms: Some(42_000), ..edit_approval("a") }), 9500);
    });
}

#[test]
fn the_choice_of_a_rule_to_save_matches_its_snapshots() {
    check("always", |model| {
        cards(model);
        let rule = |words: &[&str], exact| {
            let words = words.iter().map(|word| (*word).to_owned()).collect();
            GrantRule::Command(CommandRule { words, exact, ..CommandRule::default() })
        };
        let mut wide = always(vec![rule(&["cargo", "clippy"], false)]);
        let mut kept = always(vec![rule(&["cargo", "clippy", "--all-targets"], true)]);
        kept.offers.append(&mut wide.offers);
        kept.offers[0].places[1].note = Some("creates the file".to_owned());
        kept.offers[0].asks_still = vec![GrantScope::Everywhere];
        let mut approval = Approval { always: kept, risk_level: Risk::Medium, critical: false, ..command_approval("a") };
        approval.parts.clear();
        approval.command.as_mut().unwrap().line = "cargo clippy --all-targets".to_owned();
        tell(model, EventKind::ApprovalRequested(approval), 9500);
        assert!(model.dialogs.open_always(None));
    });
}

#[test]
fn the_explanation_of_the_matching_rules_matches_its_snapshots() {
    check("explain", |model| {
        cards(model);
        tell(model, EventKind::ApprovalRequested(command_approval("a")), 9500);
        model.dialogs.open_pager(None);
    });
}

#[test]
fn project_files_can_be_read_before_trust_is_granted() {
    for (width, height) in SIZES {
        let mut model = UiModel::new(options(), None, Size::new(width, height));
        let (trust, _answered) = trust(&["AGENTS.md (instructions for the model, 19 bytes)"]);
        feed(&mut model, Msg::Start(Box::new(Start { trust: Some(trust), ..start() })), 0);
        model.dialogs.focus(0, None);
        picture(&mut model, 20_000);
        assert!(picture(&mut model, 20_000).contains("https://example.com/acme/greeter.git"));
        model.dialogs.open_pager(None);
        let drawn = picture(&mut model, 20_000);
        assert!(drawn.contains("Use tabs.") && drawn.contains("back"), "{drawn}");
        assert!(model.dialogs.close_always(None));
        assert!(picture(&mut model, 20_000).contains("read-only"));
    }
}

#[test]
fn all_choices_are_visible_at_every_size() {
    for (width, height) in SIZES {
        let mut model = model(width, height);
        tell(&mut model, EventKind::ApprovalRequested(edit_approval("a")), 9500);
        for _ in 0..2 {
            let panel = model.dialogs.current().unwrap().visible();
            // `N` is shown only where it takes no row of its own.
            let shown = panel.choices[..panel.shown_choices()].iter().map(|choice| choice.key.letter);
            let letters: Vec<char> = shown.filter(|letter| *letter != 'N').collect();
            picture(&mut model, 20_000);
            let drawn = picture(&mut model, 20_000);
            let words: Vec<&str> = drawn.split_whitespace().collect();
            for letter in letters {
                assert!(words.contains(&letter.to_string().as_str()), "{letter}\n{drawn}");
            }
            model.dialogs.open_always(None);
        }
    }
}

#[test]
fn the_approval_of_a_command_matches_its_snapshots() {
    check("command", |model| {
        cards(model);
        tell(model, requested("call-a", "RunCommand", "$ cargo test …"), 9000);
        tell(model, EventKind::ApprovalRequested(command_approval("a")), 9500);
        tell(model, EventKind::ApprovalRequested(edit_approval("b")), 9600);
    });
}

#[test]
fn the_approval_of_command_effects_matches_its_snapshots() {
    check("effects", |model| {
        cards(model);
        tell(model, requested("call-a", "RunCommand", "$ cargo test …"), 9000);
        tell(model, EventKind::ApprovalRequested(effects_approval("a")), 9500);
    });
}

#[test]
fn the_approval_to_rerun_a_command_with_more_access_matches_its_snapshots() {
    check("opened", |model| {
        cards(model);
        let opens = vec![SandboxAccess::Host { host: "index.example.com".to_owned(), port: 443 }];
        let mut approval =
            Approval { opens, opens_in_copy: true, risk_level: Risk::Medium, critical: false, ..command_approval("a") };
        approval.parts.clear();
        approval.command.as_mut().unwrap().line = "cargo build".to_owned();
        tell(model, EventKind::ApprovalRequested(approval), 9500);
    });
}

#[test]
fn preview_is_offered_only_for_commands_that_support_it() {
    for (offer, words) in [
        (PreviewOffer::Possible, "p  preview"),
        (PreviewOffer::Impossible { reason: "it writes to `.git`".to_owned() }, "n  no   ?  more"),
    ] {
        let mut model = model(120, 36);
        tell(&mut model, EventKind::ApprovalRequested(Approval { preview: offer, ..command_approval("a") }), 9500);
        picture(&mut model, 20_000);
        let drawn = picture(&mut model, 20_000);
        assert!(drawn.contains(words), "{drawn}");
    }
}

#[test]
fn an_approval_that_arrived_during_typing_matches_its_snapshots() {
    check("unfocused", |model| {
        cards(model);
        feed(model, Msg::Input(UiInput::Paste("also fix the".to_owned())), 9400);
        tell(model, EventKind::ApprovalRequested(edit_approval("b")), 9600);
    });
}

#[test]
fn long_paths_are_shown_in_full_in_the_approval_and_the_rule() {
    let path = format!("{}/main_of_it.rs", ["crates", "a_long_name_of_a_crate", "src", "deep", "deeper", "deepest"].join("/"));
    for (width, height) in [(80, 24), (60, 30), (50, 40)] {
        let mut model = model(width, height);
        let mut approval = edit_approval("a");
        approval.action_summary = format!("Edit {path}");
        approval.proposal.diff = FileDiffs::read("--- a/f\n+++ b/f\n@@ -1,1 +1,1 @@\n-a\n+b\n");
        approval.always = always(vec![GrantRule::Write { paths: vec![path.clone()] }]);
        tell(&mut model, EventKind::ApprovalRequested(approval), 10_000);
        picture(&mut model, 10_000);
        let drawn = picture(&mut model, 20_000);
        let flat: String = drawn.split_whitespace().collect();
        assert!(flat.contains(&path), "{drawn}");
        assert!(model.dialogs.open_always(None));
        picture(&mut model, 20_000);
        let drawn = picture(&mut model, 20_000);
        let flat: String = drawn.split_whitespace().collect();
        assert!(flat.contains(&format!("changesto`{path}`")) && flat.contains("inthisproject"), "{drawn}");
    }
}

#[test]
fn a_title_that_needs_several_rows_is_shown_once() {
    for (width, height) in [(40, 12), (60, 20)] {
        for risk_level in [Risk::Low, Risk::High] {
            let mut model = model(width, height);
            let action_summary = "Edit crates/network/connections/src/accepted_connection.rs".to_owned();
            tell(&mut model, EventKind::ApprovalRequested(Approval { action_summary, risk_level, ..edit_approval("a") }), 10_000);
            picture(&mut model, 10_000);
            let drawn = picture(&mut model, 20_000);
            let flat: String = drawn.split_whitespace().collect::<String>().replace("high", "").replace("risk", "");
            assert_eq!(flat.matches("Editcrates/network/connections/src/accepted_connection.rs").count(), 1, "{drawn}");
            assert_eq!(drawn.matches("Edit crates").count(), 1, "{drawn}");
        }
    }
}

#[test]
fn an_abbreviated_choice_shows_its_full_text_before_confirmation() {
    let mut model = model(60, 16);
    feed(&mut model, Msg::Event(Box::new(event(EventKind::ApprovalRequested(edit_approval("a"))))), 1000);
    for at in [1000, 5000, 6000, 7000] {
        picture(&mut model, at);
        model.dialogs.take_fence(at);
        feed(&mut model, Msg::Input(UiInput::Key(KeyCode::PageDown.into())), at);
    }
    picture(&mut model, 9000);
    assert!(picture(&mut model, 9000).contains("a  always"));
    for at in [9100, 9200, 9300] {
        feed(&mut model, Msg::Input(UiInput::Key(KeyCode::Down.into())), at);
    }
    assert!(picture(&mut model, 9400).contains("a  always allow this…"));
    feed(&mut model, Msg::Input(UiInput::Key(KeyCode::Char('a').into())), 10_000);
    let drawn = picture(&mut model, 10_400);
    assert!(drawn.contains("Always allow this") && drawn.contains("changes to `src/main.rs`"), "{drawn}");
}

/// Returns the diff of a file in which every line changes.
fn rewritten(path: &str, lines: usize) -> String {
    let rows = |sign: &str, word: &str| (1..=lines).map(|at| format!("{sign}content {word} {at}\n")).collect::<Vec<_>>().concat();
    format!("--- a/{path}\n+++ b/{path}\n@@ -1,{lines} +1,{lines} @@\n{}{}", rows("-", "old"), rows("+", "new"))
}

fn created(path: &str, lines: usize) -> String {
    let rows = (1..=lines).map(|at| format!("+content {at}\n")).collect::<Vec<_>>().concat();
    format!("--- /dev/null\n+++ b/{path}\n@@ -0,0 +1,{lines} @@\n{rows}")
}

/// Returns an approval for the effects of a command on the given files.
fn effects_on(paths: &[&str]) -> Approval {
    let text = |path: &&str| FileEffect {
        path: (*path).to_owned(),
        kind: EffectKind::Changed { bytes_before: 900, bytes_after: 900, binary: false },
        notes: Vec::new(),
    };
    let effects = Effects {
        ended: "exit 0".to_owned(),
        output: "checked\ndone\n".to_owned(),
        files: paths.iter().map(text).collect(),
        digest: "d1".to_owned(),
        ..Effects::default()
    };
    let part =
        |(at, path): (usize, &&str)| EffectPart { path: (*path).to_owned(), hunk: None, name: None, first: at, end: at + 1 };
    let amendable = Amendable { effects: paths.iter().enumerate().map(part).collect(), ..Amendable::default() };
    let diff: String = paths.iter().map(|path| rewritten(path, 20)).collect();
    let proposal = Proposal { diff: FileDiffs::read(&diff), ..Proposal::default() };
    Approval { amendable, effects: Some(Box::new(effects)), proposal, ..command_approval("a") }
}

#[test]
fn at_least_fifteen_rows_of_the_content_are_visible_at_80x24() {
    let edit = |diff: &str| Approval {
        proposal: Proposal { diff: FileDiffs::read(diff), ..edit_approval("a").proposal },
        ..edit_approval("a")
    };
    let script = (1..=40).map(|at| format!("content {at}\n")).collect::<Vec<_>>().concat();
    let mut command = Approval { risk_level: Risk::Low, critical: false, ..command_approval("a") };
    command.parts.clear();
    command.command.as_mut().unwrap().line = format!("python3 - <<'END'\n{script}END");
    for (name, approval) in [
        ("edit", edit(&rewritten("src/main.rs", 20))),
        ("created file", edit(&created("src/new.rs", 40))),
        ("command", command),
        ("effects on one file", effects_on(&["src/main.rs"])),
        ("effects on three files", effects_on(&["src/main.rs", "src/lib.rs", "Cargo.toml"])),
        ("effects of all kinds", all_kinds()),
    ] {
        let mut model = model(80, 24);
        cards(&mut model);
        tell(&mut model, EventKind::ApprovalRequested(approval), 9500);
        picture(&mut model, 20_000);
        let drawn = picture(&mut model, 20_000);
        let rows = drawn.lines().filter(|row| row.contains("content ")).count();
        let least = if name == "effects of all kinds" { 12 } else { 15 };
        assert!(rows >= least, "{name}: {rows} rows\n{drawn}");
    }
}

/// Returns the prompt about effects of all kinds, with a long diff.
fn all_kinds() -> Approval {
    let diff = FileDiffs::read(&rewritten("src/main.rs", 20));
    let mut approval = effects_approval("a");
    for part in &mut approval.amendable.effects {
        (part.first, part.end) = (part.first.min(1), 1);
    }
    Approval { proposal: Proposal { diff, ..Proposal::default() }, ..approval }
}

#[test]
fn effects_of_all_kinds_are_applied_only_after_the_list_below_the_diff_was_shown() {
    for (width, height) in SIZES {
        let mut model = model(width, height);
        tell(&mut model, EventKind::ApprovalRequested(all_kinds()), 9500);
        let mut seen = String::new();
        for _ in 0..30 {
            picture(&mut model, 20_000);
            seen.push_str(&picture(&mut model, 20_000));
            let panel = model.dialogs.open_mut().unwrap();
            if panel.unseen_for(ChoiceAction::Approve) == 0 {
                break;
            }
            panel.show_unseen();
        }
        assert_eq!(model.dialogs.open().unwrap().unseen_for(ChoiceAction::Approve), 0);
        for row in ["deleted  old.rs", "renamed  src/a.rs", "link     latest", "mode     run.sh", "deleted  docs/"] {
            assert!(seen.contains(row), "{width}x{height} {row}\n{seen}");
        }
    }
}

#[test]
fn the_list_below_a_diff_shows_the_selected_path() {
    let mut model = model(80, 24);
    tell(&mut model, EventKind::ApprovalRequested(all_kinds()), 9500);
    picture(&mut model, 20_000);
    let panel = model.dialogs.open_mut().unwrap();
    for _ in 0..2 {
        panel.mark_hunk(HunkMark::NextFile).unwrap();
    }
    panel.mark_hunk(HunkMark::Turn).unwrap();
    let drawn = picture(&mut model, 20_000);
    assert!(drawn.contains("▸☐ old.rs") && drawn.contains("discard  old.rs"), "{drawn}");
    assert!(model.dialogs.open().unwrap().unseen_for(ChoiceAction::Approve) > 0, "skipped rows do not count as shown");
}

#[test]
fn files_of_effects_are_tabs_and_can_be_left_out_one_by_one() {
    let mut model = model(80, 24);
    tell(&mut model, EventKind::ApprovalRequested(effects_on(&["src/main.rs", "src/lib.rs", "Cargo.toml"])), 9500);
    picture(&mut model, 20_000);
    let drawn = picture(&mut model, 20_000);
    assert!(drawn.contains("The command would change 3 files"), "{drawn}");
    assert!(drawn.contains("▸☑ src/main.rs   ☑ src/lib.rs   ☑ Cargo.toml"), "{drawn}");
    let panel = model.dialogs.open_mut().unwrap();
    panel.mark_hunk(HunkMark::NextFile).unwrap();
    panel.mark_hunk(HunkMark::TurnFile).unwrap();
    let drawn = picture(&mut model, 20_000);
    assert!(drawn.contains(" ☑ src/main.rs  ▸☐ src/lib.rs   ☑ Cargo.toml"), "{drawn}");
    assert!(drawn.contains("▸☐ 1 −content old 1"), "the mark is next to the first line of the file\n{drawn}");
    // Scrolling selects a visible file.
    model.dialogs.open_mut().unwrap().scroll_by(isize::MAX);
    let drawn = picture(&mut model, 20_000);
    assert!(drawn.contains("▸☑ Cargo.toml") && drawn.contains("output: 2 lines, the last: done · ? show all"), "{drawn}");
}

#[test]
fn hunks_of_effects_are_selected_within_their_file() {
    let hunk = |at: usize| format!("@@ -{at},1 +{at},1 @@\n-old\n+new\n");
    let diff = format!("--- a/a\n+++ b/a\n{}{}--- a/b\n+++ b/b\n{}", hunk(1), hunk(9), hunk(1));
    let mut approval = effects_on(&["a", "b"]);
    approval.proposal.diff = FileDiffs::read(&diff);
    let part = |path: &str, hunk, first| EffectPart { path: path.to_owned(), hunk, name: None, first, end: first + 1 };
    approval.amendable.effects = vec![part("a", Some(0), 0), part("a", Some(1), 1), part("b", None, 2)];
    let mut model = model(80, 24);
    tell(&mut model, EventKind::ApprovalRequested(approval), 9500);
    picture(&mut model, 20_000);
    let mut marked = |mark| {
        model.dialogs.open_mut().unwrap().mark_hunk(mark).unwrap();
        picture(&mut model, 20_000)
    };
    assert!(marked(HunkMark::Next).contains("▸☑ a ☑ hunk 2   ☑ b"));
    assert!(marked(HunkMark::Turn).contains("▸☑ a ☐ hunk 2   ☑ b"));
    assert!(marked(HunkMark::NextFile).contains(" ☑ a 1 of 2  ▸☑ b"));
    assert!(marked(HunkMark::FileBefore).contains("▸☑ a ☑ hunk 1   ☑ b"));
    assert!(marked(HunkMark::TurnFile).contains("▸☐ a ☐ hunk 1   ☑ b"));
    assert!(marked(HunkMark::TurnFile).contains("▸☑ a ☑ hunk 1   ☑ b"));
}
