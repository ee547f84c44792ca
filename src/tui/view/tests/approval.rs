use super::*;

#[test]
fn the_details_of_a_command_have_its_directory_as_people_write_it() {
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
fn an_edit_to_approve() {
    check("edit", |model| {
        cards(model);
        tell(model, requested("call-a", "EditFile", "Edit src/main.rs"), 9000);
        tell(model, EventKind::ApprovalRequested(edit_approval("a")), 9500);
    });
}

#[test]
fn hunks_to_approve() {
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
fn effects_of_which_some_are_left_out() {
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
fn effects_that_conflict_with_the_files() {
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
fn a_hunk_that_is_edited() {
    check("hunk-edited", |model| {
        cards(model);
        tell(model, requested("call-a", "EditFile", "Edit src/main.rs"), 9000);
        tell(model, EventKind::ApprovalRequested(hunks_approval("a")), 9500);
        let panel = model.dialogs.open_mut().unwrap();
        panel.mark_hunk(HunkMark::Next).unwrap();
        let lines = crate::tui::composer::Lines::new(panel.hunks.as_ref().unwrap().text().unwrap().trim_end());
        panel.writing = Some(AmendField { lines, what: AmendTarget::Hunk });
    });
}

#[test]
fn a_command_of_which_a_part_can_run() {
    check("parts", |model| {
        cards(model);
        let line = "cargo test --workspace 2>&1 | tail -20 && rm -rf target/tmp".to_owned();
        let amendable =
            Amendable { command: Some(line.clone()), first: Some(FirstParts { count: 2, line }), ..Amendable::default() };
        tell(model, EventKind::ApprovalRequested(Approval { amendable, ..command_approval("a") }), 9500);
    });
}

#[test]
fn a_change_whose_file_is_another_one_by_now() {
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
fn a_change_that_was_made_anew() {
    check("renewed", |model| {
        cards(model);
        let amendable = Amendable { renewed: true, ..hunks_approval("a").amendable };
        tell(model, EventKind::ApprovalRequested(Approval { amendable, ..hunks_approval("a") }), 9500);
    });
}

#[test]
fn a_change_that_was_made_anew_and_is_looked_at() {
    check("renewed-shown", |model| {
        cards(model);
        let amendable = Amendable { renewed: true, ..hunks_approval("a").amendable };
        tell(model, EventKind::ApprovalRequested(Approval { amendable, ..hunks_approval("a") }), 9500);
        model.dialogs.show_new(None);
    });
}

#[test]
fn a_question_whose_time_ends() {
    check("countdown", |model| {
        cards(model);
        tell(model, EventKind::ApprovalRequested(Approval { timeout_ms: Some(42_000), ..edit_approval("a") }), 9500);
    });
}

#[test]
fn a_rule_to_choose() {
    check("always", |model| {
        cards(model);
        let rule = |words: &[&str], exact| {
            let words = words.iter().map(|word| (*word).to_owned()).collect();
            GrantRule::Command(CommandRule { words, exact, ..CommandRule::default() })
        };
        let mut wide = always(vec![rule(&["cargo", "clippy"], false)]);
        let mut kept = always(vec![rule(&["cargo", "clippy", "--all-targets"], true)]);
        kept.offers.append(&mut wide.offers);
        kept.offers[0].places[1].note = Some("a new file: a copy of the built-in policy and this rule".to_owned());
        kept.offers[0].asks_still = vec![GrantScope::Everywhere];
        let mut approval = Approval { always: kept, risk_level: Risk::Medium, critical: false, ..command_approval("a") };
        approval.parts.clear();
        approval.command.as_mut().unwrap().line = "cargo clippy --all-targets".to_owned();
        tell(model, EventKind::ApprovalRequested(approval), 9500);
        assert!(model.dialogs.open_always(None));
    });
}

#[test]
fn which_rules_have_a_say() {
    check("explain", |model| {
        cards(model);
        tell(model, EventKind::ApprovalRequested(command_approval("a")), 9500);
        model.dialogs.open_pager(None);
    });
}

#[test]
fn what_a_project_brings_can_be_read_before_the_answer() {
    for (width, height) in SIZES {
        let mut model = Model::new(options(), None, Size::new(width, height));
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
fn no_choice_is_cut_at_the_edge() {
    for (width, height) in SIZES {
        let mut model = model(width, height);
        tell(&mut model, EventKind::ApprovalRequested(edit_approval("a")), 9500);
        for _ in 0..2 {
            let panel = model.dialogs.current().unwrap().shown();
            let letters: Vec<char> = panel.choices[..panel.shown_choices()].iter().map(|choice| choice.key.letter).collect();
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
fn a_command_to_approve() {
    check("command", |model| {
        cards(model);
        tell(model, requested("call-a", "RunCommand", "$ cargo test …"), 9000);
        tell(model, EventKind::ApprovalRequested(command_approval("a")), 9500);
        tell(model, EventKind::ApprovalRequested(edit_approval("b")), 9600);
    });
}

#[test]
fn what_a_command_did_in_its_copy() {
    check("effects", |model| {
        cards(model);
        tell(model, requested("call-a", "RunCommand", "$ cargo test …"), 9000);
        tell(model, EventKind::ApprovalRequested(effects_approval("a")), 9500);
    });
}

#[test]
fn a_command_that_may_run_again_with_more_open() {
    check("opened", |model| {
        cards(model);
        let opens = vec![Outside::Host { host: "index.example.com".to_owned(), port: 443 }];
        let mut approval =
            Approval { opens, opens_in_copy: true, risk_level: Risk::Medium, critical: false, ..command_approval("a") };
        approval.parts.clear();
        approval.command.as_mut().unwrap().line = "cargo build".to_owned();
        tell(model, EventKind::ApprovalRequested(approval), 9500);
    });
}

#[test]
fn a_command_whose_effects_can_be_shown_and_one_whose_cannot() {
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
fn an_approval_that_opened_while_typing() {
    check("unfocused", |model| {
        cards(model);
        feed(model, Msg::Input(Input::Paste("also fix the".to_owned())), 9400);
        tell(model, EventKind::ApprovalRequested(edit_approval("b")), 9600);
    });
}

#[test]
fn a_long_path_is_shown_whole_and_what_is_granted_is_said_to_its_end() {
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
fn a_choice_in_few_words_says_all_before_it_is_confirmed() {
    let mut model = model(60, 16);
    feed(&mut model, Msg::Event(Box::new(event(EventKind::ApprovalRequested(edit_approval("a"))))), 1000);
    for at in [1000, 5000, 6000, 7000] {
        picture(&mut model, at);
        model.dialogs.take_fence(at);
        feed(&mut model, Msg::Input(Input::Key(KeyCode::PageDown.into())), at);
    }
    picture(&mut model, 9000);
    assert!(picture(&mut model, 9000).contains("a  always"));
    feed(&mut model, Msg::Input(Input::Key(KeyCode::Char('a').into())), 10_000);
    assert!(picture(&mut model, 10_100).contains("a  always allow this…"));
    feed(&mut model, Msg::Time, 10_400);
    let drawn = picture(&mut model, 10_400);
    assert!(drawn.contains("Always allow this") && drawn.contains("changes to `${workspace}/src/main.rs`"), "{drawn}");
}
