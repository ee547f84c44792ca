//! Tests which commands may run outside the sandbox, and when.

use super::*;
use crate::protocol::APPROVED_UNSANDBOXED;

const ASKS: &str = "requires_approval = true\n";

fn asked(enforcer: &Enforcer, line: &str) -> Result<Question, String> {
    enforcer.ask_unsandboxed("RunCommand", &exec(line), now())
}

fn layered(layers: &[(Scope, &str)]) -> Enforcer {
    let layer = |(scope, table): &(Scope, &str)| {
        Layer::new(*scope, parsed(&format!("schema_version = 1\n[capabilities.\"Shell.Exec\"]\n{table}")))
    };
    Enforcer::new(layers.iter().map(layer).collect(), context())
}

#[test]
fn runs_outside_the_sandbox_are_high_risk_and_need_approval_each_time() {
    let allows = format!("{ASKS}[[capabilities.\"Shell.Exec\".rules]]\ncommand = [\"make\"]\ndecision = \"allow\"\n");
    for (enforcer, line) in [(shell(ASKS), "git config user.name x"), (shell(&allows), "make"), (shell(ASKS), "git push")] {
        let question = asked(&enforcer, line).unwrap_or_else(|why| panic!("{line}: {why}"));
        assert_eq!(question.risk, Risk::High, "{line}");
        assert!(question.reason.contains("aye's own directories are not protected"), "{}", question.reason);
        assert!(question.layer().is_none(), "it never runs first");
        let permit = question.approve();
        assert!(permit.is_unsandboxed() && permit.unasked_conditions().is_none());
        assert_eq!(permit.rule(), APPROVED_UNSANDBOXED);
    }
    let Verdict::Ask(question) = shell(ASKS).judge(&exec("make"), now()) else { panic!("it asks") };
    assert!(!question.approve().is_unsandboxed(), "an ordinary approval does not allow a run outside the sandbox");
}

#[test]
fn unsandboxed_runs_cannot_bypass_plan_or_auto_mode_denials_or_managed_layers() {
    let why = |enforcer: &Enforcer, line: &str| asked(enforcer, line).err().unwrap_or_else(|| panic!("{line} may run"));
    for (mode, name) in [(Mode::Plan, "plan"), (Mode::Auto, "auto")] {
        let mut enforcer = shell(ASKS);
        enforcer.set_mode(mode);
        assert!(why(&enforcer, "make").contains(&format!("mode `{name}`")));
    }
    let mut edits = shell(ASKS);
    edits.set_mode(Mode::AutoEdit);
    assert!(asked(&edits, "make").is_ok());
    assert!(why(&shell(&format!("{ASKS}blocked_commands = [\"sudo\"]\n")), "sudo ls").contains("blocked"));
    assert!(why(&shell(&format!("{ASKS}unsandboxed = \"deny\"\n")), "make").contains("unsandboxed"));
    assert!(asked(&shell(&format!("{ASKS}unsandboxed = \"ask\"\n")), "make").is_ok());
    assert!(why(&shell(&format!("{ASKS}sandbox = \"off\"\n")), "make").contains("already"));
    for (scope, table) in [
        (Scope::Managed, ASKS),
        (Scope::Managed, "requires_approval = false\nunsandboxed = \"deny\"\n"),
        (Scope::Project, "requires_approval = true\nunsandboxed = \"deny\"\n"),
        (
            Scope::Managed,
            "requires_approval = false\n[[capabilities.\"Shell.Exec\".rules]]\ncommand = [\"make\"]\ndecision = \"ask\"\n",
        ),
    ] {
        let enforcer = layered(&[(scope, table), (Scope::User, ASKS)]);
        assert!(asked(&enforcer, "cd sub && make").is_err(), "{scope:?} {table}");
    }
    let silent = layered(&[(Scope::Managed, "requires_approval = false\n"), (Scope::User, ASKS)]);
    assert!(asked(&silent, "make").is_ok(), "the managed layer does not ask about it");
    let loose = layered(&[
        (Scope::User, "requires_approval = true\nunsandboxed = \"deny\"\n"),
        (Scope::Project, "unsandboxed = \"ask\"\n"),
    ]);
    assert!(asked(&loose, "make").is_err(), "a project cannot allow it");
    let absent = Enforcer::new(
        vec![Layer::new(Scope::User, parsed(&format!("schema_version = 1\n[capabilities.\"Shell.Exec\"]\n{ASKS}")))],
        Context { sandbox: Sandbox::Absent, ..context() },
    );
    assert!(asked(&absent, "make").is_err());
    let write = [Action::Write { target: target("a") }];
    assert!(shell(ASKS).ask_unsandboxed("WriteFile", &write, now()).is_err());
}
