//! Tests of "always allow": rules written by the user, and the commands that a rule would have allowed.

use super::*;
use crate::tui::tests::fixtures::always;

fn rule(words: &[&str], exact: bool) -> GrantRule {
    let words = words.iter().map(|word| (*word).to_owned()).collect();
    GrantRule::Command(CommandRule { words, exact, ..CommandRule::default() })
}

fn offer(words: &[&str], exact: bool) -> GrantOption {
    always(vec![rule(words, exact)]).offers.remove(0)
}

/// Returns a screen with the rule dialog for a command whose rule can be widened, and the commands that were sent.
fn choosing() -> (UiModel, Vec<String>) {
    let mut kept = always(vec![rule(&["cargo", "clippy", "--all"], true)]);
    kept.offers.push(offer(&["cargo", "clippy"], false));
    let mut approval = Approval { always: kept, risk_level: Risk::Medium, critical: false, ..command_approval("a") };
    approval.parts.clear();
    let mut model = asked(vec![approval]);
    let sent = play(&mut model, 6000, "a");
    draw(&mut model, 7000);
    (model, sent)
}

fn told(model: &mut UiModel, told: RuleInfo, at: u64) {
    tell(model, EventKind::RuleTold { approval_id: ApprovalId::new("a"), told }, at);
    draw(model, at);
}

#[test]
fn the_wider_rule_lists_the_commands_that_would_have_been_allowed() {
    let (mut model, sent) = choosing();
    assert_eq!(sent, ["askrule { approval_id: approvalid(\"a\"), asked: reach { offer: 1 } }"]);
    let before: Vec<char> = model.dialogs.open().unwrap().choices.iter().map(|choice| choice.key.letter).collect();
    let lines = vec!["cargo clippy --fix".to_owned(), "cargo clippy\u{202e} -q".to_owned()];
    told(&mut model, RuleInfo::Reaches { offer: 1, of: 200, lines }, 7100);
    let after: Vec<char> = model.dialogs.open().unwrap().choices.iter().map(|choice| choice.key.letter).collect();
    assert_eq!(before, after, "no key becomes another choice");
    let screen = draw(&mut model, 7700);
    assert!(screen.contains("exactly `cargo clippy --all`") && screen.contains("l  reach"), "{screen}");
    play(&mut model, 8000, "l");
    wait(&mut model, 8350);
    let screen = draw(&mut model, 9000);
    assert!(screen.contains("$ cargo clippy --fix") && !screen.contains('\u{202e}'), "{screen}");
}

#[test]
fn a_rule_written_by_the_user_is_checked_by_the_policy_before_saving() {
    let (mut model, _) = choosing();
    play(&mut model, 8000, "e");
    wait(&mut model, 8350);
    let screen = draw(&mut model, 8400);
    assert!(screen.contains("rule: command = [\"cargo\", \"clippy\", \"--all\"], exact = true"), "{screen}");
    play(&mut model, 9000, "<ctrl+u>");
    let typed = "command = [\"cargo\"]<enter>";
    let sent = play(&mut model, 10_000, typed);
    assert_eq!(sent, ["askrule { approval_id: approvalid(\"a\"), asked: written { rule: \"command = [\\\"cargo\\\"]\" } }"]);
    told(&mut model, RuleInfo::Refused { message: "`command = [\"cargo\"]` reaches further".to_owned() }, 13_000);
    let screen = draw(&mut model, 13_100);
    assert!(
        screen.contains("not accepted: `command = [\"cargo\"]` reaches further") && screen.contains("rule: command"),
        "{screen}"
    );
    let written = GrantOption { written: true, ..offer(&["cargo", "clippy", "-q"], false) };
    told(&mut model, RuleInfo::Offered { offer: written, at: 2 }, 14_000);
    let screen = draw(&mut model, 14_600);
    assert!(screen.contains("every command that begins with `cargo clippy -q`") && !screen.contains("  rule: "), "{screen}");
    play(&mut model, 15_000, "2");
    wait(&mut model, 15_350);
    let sent = play(&mut model, 15_500, "<enter>");
    assert_eq!(sent, ["a ApprovedAlways { remember: GrantChoice { scope: Project, offer: 2, until: None } }"]);
}

#[test]
fn the_files_of_a_rule_are_shown_with_the_changes_to_them() {
    let (mut model, _) = choosing();
    let screen = draw(&mut model, 7700);
    assert!(screen.contains("in this project") && !screen.contains("policy.toml"), "{screen}");
    assert!(!screen.contains("then enter"), "the head says that enter saves\n{screen}");
    play(&mut model, 8000, "d");
    wait(&mut model, 8350);
    let screen = draw(&mut model, 9000);
    assert!(screen.contains("greeter-3f9a1b2c3d4e5f60/policy.toml:14"), "{screen}");
}

#[test]
fn escape_leaves_the_rule_field_without_a_request() {
    let (mut model, _) = choosing();
    play(&mut model, 8000, "e");
    wait(&mut model, 8350);
    assert_eq!(play(&mut model, 8500, "x<esc>"), Vec::<String>::new());
    assert!(draw(&mut model, 9300).contains("until you quit"));
}

#[test]
fn only_a_notice_about_a_rule_offers_to_remove_the_rule() {
    let shown = |kind| {
        let mut model = model(100, 24);
        tell(&mut model, EventKind::Notice { message: "always allowed in this project: ls".to_owned(), kind }, 100);
        draw(&mut model, 200)
    };
    assert!(shown(Some(NoticeKind::RuleSaved)).contains("/policy undo removes it"));
    assert!(shown(Some(NoticeKind::RuleUntilQuit)).contains("/policy undo removes it"));
    assert!(!shown(None).contains("/policy undo"), "the words alone do not say what the notice is about");
}
