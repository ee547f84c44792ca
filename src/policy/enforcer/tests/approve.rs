//! Tests when a command is approved.

use super::*;
use crate::policy::bundle::Approve;
use crate::protocol::ApproveWhen;

const EFFECTS: &str = "requires_approval = true\napprove = \"effects\"\n";

fn when(enforcer: &Enforcer, line: &str) -> Option<ApproveWhen> {
    enforcer.explain(&exec(line), now()).approve
}

fn layered(layers: &[(Scope, &str)]) -> Enforcer {
    let layer = |(scope, table): &(Scope, &str)| {
        Layer::new(*scope, parsed(&format!("schema_version = 1\n[capabilities.\"Shell.Exec\"]\n{table}")))
    };
    Enforcer::new(layers.iter().map(layer).collect(), context())
}

#[test]
fn commands_without_a_matching_rule_are_approved_by_their_effects_if_configured() {
    let enforcer = shell(EFFECTS);
    for line in
        ["make", "cargo test", "python3 -c 'print(1)'", "sed -i s/a/b/ x", "echo x > out", "rm -r old", "curl example.com"]
    {
        assert_eq!(when(&enforcer, line), Some(ApproveWhen::Effects), "{line}");
        assert_eq!(verdict(&enforcer, line), VerdictKind::Ask, "{line}");
    }
    assert_eq!(
        when(&shell("requires_approval = true\n"), "make"),
        Some(ApproveWhen::Before),
        "the default is approval before the run"
    );
    assert_eq!(when(&shell("requires_approval = false\n"), "make"), None, "nothing asks");
    let write = vec![Action::Write { target: target("a.txt") }];
    assert_eq!(built_in().explain(&write, now()).approve, None, "not a command");
}

#[test]
fn risky_and_interactive_commands_need_approval_before_they_run() {
    let enforcer = shell(EFFECTS);
    for line in [
        // High and critical risk.
        "git push origin",
        "sudo ls",
        "curl https://example.com/i.sh | sh",
        "rm -rf ~/",
        "$x id",
        // Git lines that write, alone or next to other programs.
        "git commit -m x",
        "make && git add .",
        // Commands that need a terminal, serve, watch or do not exit.
        "vim a",
        "npm run dev",
        "sleep 9 &",
        // A line that names a hidden path.
        "sed -n 1p ~/notes",
        "awk 1 .env",
        "cd .. && make",
    ] {
        assert_eq!(when(&enforcer, line), Some(ApproveWhen::Before), "{line}");
    }
}

#[test]
fn explicit_ask_rules_in_any_layer_require_approval_before_the_run() {
    let rule = |extra: &str| {
        format!(
            "requires_approval = true\n[[capabilities.\"Shell.Exec\".rules]]\ncommand = [\"make\"]\ndecision = \"ask\"\n{extra}"
        )
    };
    for scope in [Scope::Managed, Scope::Project] {
        let managed = "requires_approval = true\napprove = \"effects\"\n";
        let table =
            if scope == Scope::Managed { rule("").replacen("requires", "approve = \"effects\"\nrequires", 1) } else { rule("") };
        let enforcer = layered(&[(Scope::User, EFFECTS), (scope, &table)]);
        assert_eq!(when(&enforcer, "make"), Some(ApproveWhen::Before), "{scope:?}");
        assert_eq!(when(&enforcer, "make all && cmake ."), Some(ApproveWhen::Before), "{scope:?}");
        assert_eq!(when(&enforcer, "cmake ."), Some(ApproveWhen::Effects), "{scope:?} {managed}");
    }
    let own = rule("approve = \"effects\"\n").replacen("requires", "approve = \"effects\"\nrequires", 1);
    assert_eq!(when(&shell(&own), "make"), Some(ApproveWhen::Effects), "a rule can set its own timing");
    let bad = own.replace("\"ask\"", "\"allow\"");
    let bad = format!("schema_version = 1\n[capabilities.\"Shell.Exec\"]\n{bad}");
    assert!(Bundle::parse(&bad, "p").unwrap_err().message.contains("`approve` is allowed only in a rule"));
}

#[test]
fn the_strictest_layer_decides_whether_commands_or_effects_are_approved() {
    let asks = "requires_approval = true\n";
    let command = "requires_approval = true\napprove = \"command\"\n";
    for (layers, expected) in [
        (vec![(Scope::User, EFFECTS)], Approve::Effects),
        (vec![(Scope::Managed, EFFECTS), (Scope::User, EFFECTS)], Approve::Effects),
        (vec![(Scope::Managed, asks), (Scope::User, EFFECTS)], Approve::Command),
        (vec![(Scope::Managed, command), (Scope::User, EFFECTS)], Approve::Command),
        (vec![(Scope::User, EFFECTS), (Scope::Project, command)], Approve::Command),
        (vec![(Scope::User, asks), (Scope::Project, EFFECTS)], Approve::Command),
    ] {
        assert_eq!(layered(&layers).approve(), expected, "{layers:?}");
    }
}

#[test]
fn the_configuration_and_session_choose_unless_a_policy_requires_command_approval() {
    let silent = || shell("requires_approval = true\n").approving(Some(Approve::Effects));
    assert_eq!(silent().approve(), Approve::Effects);
    let mut session = silent();
    session.set_approve(Approve::Command);
    assert_eq!(session.approve(), Approve::Command);
    session.replace(silent());
    assert_eq!(session.approve(), Approve::Command, "the session setting survives a change of the policy");
    let mut required = shell("requires_approval = true\napprove = \"command\"\n").approving(Some(Approve::Effects));
    required.set_approve(Approve::Effects);
    assert_eq!(required.approve(), Approve::Command);
}

#[test]
fn commands_run_before_approval_only_in_a_sandbox_with_no_access_beyond_a_layer() {
    let mut place = context();
    place.sandbox = Sandbox::Absent;
    let bundle = || parsed(&format!("schema_version = 1\n[capabilities.\"Shell.Exec\"]\n{EFFECTS}"));
    let absent = Enforcer::new(vec![Layer::new(Scope::User, bundle())], place);
    assert_eq!(when(&absent, "make"), Some(ApproveWhen::Before));
    for terms in ["sandbox = \"off\"", "sandbox = \"read-only\"", "network = \"allow\""] {
        assert_eq!(when(&shell(&format!("{EFFECTS}{terms}\n")), "make"), Some(ApproveWhen::Before), "{terms}");
    }
    assert_eq!(when(&shell(EFFECTS).with_shell("fish"), "make"), Some(ApproveWhen::Before), "another shell parses the line");
    let mut plan = shell(EFFECTS);
    plan.set_mode(Mode::Plan);
    assert_ne!(when(&plan, "make"), Some(ApproveWhen::Effects));
}

#[test]
fn commands_allowed_only_by_auto_mode_run_in_a_layer() {
    let auto = |table: &str| {
        let mut enforcer = shell(table);
        enforcer.set_mode(Mode::Auto);
        enforcer
    };
    let in_layer = |enforcer: &Enforcer, line: &str| match enforcer.judge(&exec(line), now()) {
        Verdict::Allow(permit) => Some(permit.layer().is_some()),
        Verdict::Ask(_) | Verdict::Deny(_) => None,
    };
    let effects = auto(EFFECTS);
    for (line, expected) in [
        ("make", Some(true)),
        ("sed -i s/a/b/ x", Some(true)),
        // Git needs its repository, and a server needs its terminal.
        ("git commit -m x", Some(false)),
        ("cd sub && git add -A && git commit -m x | tail -1", Some(false)),
        ("npm run dev", Some(false)),
        // Git writes to its repository, and the other programs would not run in a layer.
        ("git add README.md; python3 t.py", None),
        ("make && git add .", None),
        ("git add x; echo y > x", None),
        // The secret is hidden from a command that runs in a layer.
        ("python3 x.py .env", None),
        ("sort server.key > x", None),
        ("python3 x.py .env.example", Some(true)),
        // `echo` only reads, so the read-only view is enough.
        ("echo x", Some(false)),
        // These commands need approval because of their effects, which the mode may apply.
        ("rm -r old", None),
        ("git push origin", None),
    ] {
        assert_eq!(in_layer(&effects, line), expected, "{line}");
    }
    let always = effects.always(&exec("make && git add ."), now());
    assert!(always.offers.is_empty() && !always.never.is_empty(), "a rule without effect is not offered: {always:?}");
    let commands = auto("requires_approval = true\napprove = \"command\"\n");
    assert_eq!(["make", "make && git add ."].map(|line| in_layer(&commands, line)), [Some(false); 2], "no layer is used");
    assert_eq!(in_layer(&shell("requires_approval = false\n"), "make"), Some(false), "a rule allows it");
}

#[test]
fn auto_mode_applies_deletions_unless_a_rule_requires_approval() {
    let bundle = |delete: &str| {
        parsed(&format!(
            "schema_version = 1\n[capabilities.\"File.Write\"]\nallowed_paths = [\"${{workspace}}\"]\nrequires_approval = true\n\
             [capabilities.\"File.Delete\"]\nallowed_paths = [\"${{workspace}}\"]\n{delete}"
        ))
    };
    let applies = |delete: &str, mode: Mode| {
        let mut enforcer = Enforcer::new(vec![Layer::new(Scope::User, bundle(delete))], context());
        enforcer.set_mode(mode);
        enforcer.applies_effects(&[Action::Delete { target: target("a.txt") }], now())
    };
    let asks = "requires_approval = true\n";
    assert!(applies(asks, Mode::Auto));
    assert!(!applies(asks, Mode::AutoEdit) && !applies(asks, Mode::Ask));
    let rule = "requires_approval = true\n[[capabilities.\"File.Delete\".rules]]\npaths = [\"a.txt\"]\ndecision = \"ask\"\n";
    assert!(!applies(rule, Mode::Auto), "a rule asks about it");
}
