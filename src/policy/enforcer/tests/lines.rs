//! Compares verdicts on command lines with the expected ones. The lines are hand-written, taken from the corpus, or
//! generated.

use super::*;
use proptest::prelude::*;

#[derive(serde::Deserialize)]
struct Case {
    #[serde(default)]
    id: String,
    command: String,
    #[serde(default)]
    class: String,
    verdict: VerdictKind,
    #[serde(default)]
    also_ok: Vec<VerdictKind>,
}

/// Differences between the verdicts on a set of lines and the expected ones.
#[derive(Default)]
struct Tally {
    right: usize,
    allowed_wrongly: Vec<String>,
    deny_asked: Vec<String>,
    over_asked: Vec<String>,
    over_blocked: Vec<String>,
}

fn tally(enforcer: &Enforcer, lines: &str) -> Tally {
    let mut tally = Tally::default();
    for line in lines.lines().filter(|line| !line.trim().is_empty()) {
        let case: Case = serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"));
        let told = enforcer.explain(&exec(&case.command), now());
        let shown = format!("{} {} {:?}: {} ({})", case.id, case.class, case.command, told.verdict.as_str(), told.reason);
        match (case.verdict, told.verdict) {
            (expected, found) if expected == found || case.also_ok.contains(&found) => tally.right += 1,
            (_, VerdictKind::Allow) => tally.allowed_wrongly.push(shown),
            (VerdictKind::Deny, _) => tally.deny_asked.push(shown),
            (VerdictKind::Allow, _) => tally.over_asked.push(shown),
            (VerdictKind::Ask, _) => tally.over_blocked.push(shown),
        }
    }
    println!(
        "right {}, allowed wrongly {}, deny only asked {}, over-asked {}, over-blocked {}",
        tally.right,
        tally.allowed_wrongly.len(),
        tally.deny_asked.len(),
        tally.over_asked.len(),
        tally.over_blocked.len()
    );
    tally
}

fn reference() -> Enforcer {
    enforcer(parsed(&cases("reading.toml")))
}

#[test]
fn commands_get_the_recorded_verdicts() {
    let tally = tally(&reference(), &cases("lines.jsonl"));
    let wrong: Vec<&String> =
        [&tally.allowed_wrongly, &tally.deny_asked, &tally.over_asked, &tally.over_blocked].into_iter().flatten().collect();
    assert!(wrong.is_empty() && tally.right > 300, "{wrong:#?}");
}

#[test]
#[cfg_attr(not(aye_shared), ignore = "needs the shared test material: set AYE_SHARED")]
fn the_command_corpus_has_no_security_failure() {
    let lines = std::fs::read_to_string(shared!("corpora/commands.jsonl")).unwrap();
    let policy = std::fs::read_to_string(shared!("corpora/reference.toml")).unwrap();
    let tally = tally(&enforcer(parsed(&policy)), &lines);
    assert!(
        tally.allowed_wrongly.is_empty() && tally.deny_asked.is_empty(),
        "{:#?}{:#?}",
        tally.allowed_wrongly,
        tally.deny_asked
    );
    assert!(tally.over_asked.len() + tally.over_blocked.len() <= 2, "{:#?}{:#?}", tally.over_asked, tally.over_blocked);
}

fn lines() -> impl Strategy<Value = String> {
    let words = vec![
        "ls",
        "sudo",
        "cat",
        "x",
        "-n",
        "$x",
        "$(",
        ")",
        "`",
        "'",
        "\"",
        "\\",
        "\n",
        ";",
        "|",
        "&&",
        "&",
        "(",
        "{",
        "}",
        "<<EOF",
        "EOF",
        ">",
        "<",
        "if",
        "then",
        "fi",
        "for",
        "in",
        "do",
        "done",
        "case",
        "esac",
        "[[",
        "]]",
        "((",
        "))",
        "${",
        "${x[",
        "${!x",
        "${x/",
        "${x:1:",
        "@P}",
        "[",
        "]",
        "$[",
        "$((",
        "git -",
        "grep -e",
        "set --",
        "printf -v x",
        "read x <<<",
        "x=",
        "a=(",
        "env",
        "xargs",
        "sh -c",
        "eval",
        "find . -exec",
        "*",
        "{a,b}",
        "é",
        "\u{200b}",
        "function f",
        "$'\\x",
        "alias l=",
        "l",
        "trap",
        "git log",
        "coproc",
        "time",
        "!",
        "~",
        "#",
    ];
    prop::collection::vec((prop::sample::select(words), prop::sample::select(vec!["", " "])), 0..24)
        .prop_map(|pieces| pieces.into_iter().flat_map(|(word, gap)| [word, gap]).collect())
}

#[test]
fn unclosed_subscripts_do_not_hide_commands() {
    for line in ["${x[\u{200b}", "[ \nalias l=${x[é", "echo ${a[", "echo \"${x[$(sudo id)é"] {
        assert_ne!(verdict(&reference(), line), VerdictKind::Allow, "{line}");
    }
}

#[test]
fn characters_of_every_unicode_plane_are_parsed() {
    for letter in ["\u{80}", "\u{e9}", "\u{ffff}", "\u{1f574}", "\u{10ffff}"] {
        for line in [
            format!("echo {{{letter}..1}}"),
            format!("echo {{1{letter}}}"),
            format!("{{{letter}"),
            format!("cat <<{letter}\n{letter}"),
        ] {
            assert_ne!(verdict(&reference(), &line), VerdictKind::Allow, "{line}");
        }
    }
    // An unclosed construct in one line does not affect the next call.
    for line in ["cat <<END\nx", "cat <<A <<B"] {
        verdict(&reference(), line);
        assert_eq!(verdict(&reference(), "ls -la src"), VerdictKind::Allow);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_commands_do_not_panic(line in prop_oneof![lines(), any::<String>()]) {
        let told = reference().explain(&exec(&line), now());
        prop_assert_ne!(told.reason, crate::policy::guard::FAILED);
    }

    #[test]
    fn additional_text_never_loosens_a_verdict(first in lines(), second in lines()) {
        // A line without commands needs approval on its own, but does not affect the verdict on another line.
        prop_assume!(!crate::policy::shell::read(&first).parts.is_empty());
        let enforcer = reference();
        let both = verdict(&enforcer, &format!("{first}\n{second}"));
        // A line that does not parse on its own may swallow the next line. In that case, both together do not parse
        // either.
        prop_assert!(both >= verdict(&enforcer, &first).min(VerdictKind::Ask));
    }
}

#[test]
fn a_wrapper_never_loosens_a_verdict() {
    let enforcer = reference();
    let wrappers = [
        "env ",
        "nohup ",
        "timeout 5 ",
        "nice -n 5 ",
        "xargs ",
        "command ",
        "exec ",
        "time ",
        "setsid ",
        "stdbuf -oL ",
        "sh -c '",
        "eval '",
    ];
    for line in ["ls", "ls -la src", "git push", "rm -rf x", "sudo id", "dd if=a", "cat ~/x", "env sudo id", "sh -c \"reboot\""] {
        for wrapper in wrappers {
            let closed = if wrapper.ends_with('\'') { "'" } else { "" };
            let wrapped = format!("{wrapper}{line}{closed}");
            assert!(verdict(&enforcer, &wrapped) >= verdict(&enforcer, line), "`{wrapped}` is milder than `{line}`");
        }
    }
}

#[test]
fn evaluation_of_pathological_commands_is_bounded() {
    let enforcer = reference();
    let doubling: Vec<String> = (0..40).map(|n| format!("v{n}=\"$v{}$v{}\"; ", n + 1, n + 1)).collect();
    let doubling = doubling.concat() + "v40=sudo; $v0";
    for line in [
        doubling,
        "(".repeat(60_000),
        "$(".repeat(30_000),
        "`".repeat(60_000),
        "${x:-".repeat(20_000),
        format!("echo {}", "{a,b}".repeat(200)),
        "alias a='a a a'; a; ".repeat(50),
        "x='echo $x | sh'; echo \"$x\" | sh".to_owned(),
        format!("sudo {}", "x ".repeat(90_000)),
        format!("git {}", "-a ".repeat(40_000)),
        format!("env {}", "-a ".repeat(40_000)),
        format!("find . {}", "-exec ".repeat(15_000)),
        "x=1 ".repeat(30_000),
        "ls; ".repeat(30_000),
        "f() { f; }; ".repeat(8_000),
    ] {
        assert_ne!(verdict(&enforcer, &line), VerdictKind::Allow);
    }
}

#[test]
fn in_shells_other_than_bash_allow_rules_need_approval_and_denials_remain() {
    let table = "requires_approval = false\nblocked_commands = [\"sudo\"]\n[[capabilities.\"Shell.Exec\".rules]]\ncommand = [\"ls\"]\ndecision = \"allow\"\n";
    for (line, in_bash, in_zsh) in [
        ("ls src", VerdictKind::Allow, VerdictKind::Ask),
        ("make", VerdictKind::Allow, VerdictKind::Ask),
        ("sudo ls", VerdictKind::Deny, VerdictKind::Deny),
    ] {
        assert_eq!((verdict(&shell(table), line), verdict(&shell(table).with_shell("zsh"), line)), (in_bash, in_zsh), "{line}");
    }
    let told = shell(table).with_shell("zsh").explain(&exec("ls"), now());
    assert_eq!(told.reason, "rules are written for bash, but `zsh` runs the command");
    assert_eq!(told.remember, None, "no rule without effect is offered");
}
