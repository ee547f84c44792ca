//! Tests that no text makes the evaluation panic, and that a panic results in a denial without side effects.

use super::*;
use crate::policy::guard::FAILED;
use crate::policy::shell::FAULTY;
use proptest::prelude::*;

#[test]
fn a_panic_is_a_denial_and_later_commands_are_evaluated_normally() {
    let enforcer = enforcer(parsed(&cases("reading.toml")));
    let told = enforcer.explain(&exec(FAULTY), now());
    assert_eq!((told.verdict, told.risk, told.reason.as_str()), (VerdictKind::Deny, Risk::High, FAILED));
    let always = enforcer.always(&exec(FAULTY), now());
    assert!(always.offers.is_empty() && !always.never.is_empty(), "{always:?}");
    assert_eq!(verdict(&enforcer, "ls -la"), VerdictKind::Allow);
    assert_eq!(verdict(&enforcer, "sudo id"), VerdictKind::Deny);
    assert!(crate::policy::run_files(FAULTY).is_empty() && crate::policy::runs_input(FAULTY));
}

#[test]
fn panics_during_evaluation_are_contained() {
    let mut enforcer = built_in();
    enforcer.grants.clear();
    let judged = crate::policy::guard::catch_panic(|| -> VerdictKind { std::panic::panic_any("broken") });
    assert_eq!(judged, None);
    assert_eq!(verdict(&enforcer, "ls"), VerdictKind::Allow);
}

/// Generates lines with here-documents and quotes around characters of every UTF-8 length.
fn here_documents() -> impl Strategy<Value = String> {
    let pieces = vec![
        "cat",
        "<<",
        "<<-",
        "EOF",
        "\n",
        "\nEOF\n",
        "'EOF'",
        "\"é\"",
        "é",
        "日本",
        "\u{1f600}",
        "\u{e9}F",
        "$(",
        ")",
        "`",
        "$x",
        "${",
        "}",
        "\\",
        "|",
        ";",
        "&&",
        " ",
        "\t",
        "'",
        "\"",
        "$'",
        "{a,é}",
        "{é..z}",
        "\u{301}",
        "\u{202e}",
        "\u{ffff}",
        "E",
        "OF",
        "<<É\n",
        "É\n",
        "<<E\\\nOF",
        "sudo",
        "[",
        "]",
    ];
    prop::collection::vec(prop_oneof![prop::sample::select(pieces).prop_map(str::to_owned), "\\PC{0,3}"], 0..24)
        .prop_map(|pieces| format!("cat <<{}", pieces.concat()))
}

#[test]
fn multibyte_characters_in_here_documents_are_parsed() {
    let enforcer = enforcer(parsed(&cases("reading.toml")));
    let letters = ["é", "É", "日", "日本", "\u{1f600}", "e\u{301}"];
    for (one, other) in letters.iter().flat_map(|one| letters.iter().map(move |other| (one, other))) {
        for line in [
            format!("cat <<{one}\n{other}\n{one}\n"),
            format!("cat <<EOF\n{one}{other}\nEOF\n"),
            format!("cat <<EOF\n{one}\nEOF{other}\n"),
            format!("cat <<EOF{one}\n{other}\nEOF{one}"),
            format!("cat <<'{one}' | grep {other}\n{other}\n{one}"),
            format!("cat <<EOF\n${{x:-{one}}}$({other}\n{one}"),
            format!("cat <<-EOF\n\t{one}$x{other}\n\tEOF\ncat <<{other}"),
            format!("cat <<EOF {one}<<{other}\n$({one}\n"),
        ] {
            let told = enforcer.explain(&exec(&line), now());
            assert_ne!(told.reason, FAILED, "{line:?}");
            assert_ne!(told.verdict, VerdictKind::Allow, "{line:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 1024, ..ProptestConfig::default() })]

    #[test]
    fn here_documents_never_cause_a_panic(line in prop_oneof![here_documents(), "\\PC{0,40}(\n\\PC{0,10}){0,3}"]) {
        let told = enforcer(parsed(&cases("reading.toml"))).explain(&exec(&line), now());
        prop_assert_ne!(told.reason, FAILED);
        for kept in crate::policy::run_files(&line) {
            prop_assert!(!kept.is_empty());
        }
        crate::policy::keeps_meaning(&line);
        crate::policy::first_commands(&line);
    }
}
