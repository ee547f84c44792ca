//! A blocked program in any disguise that a real shell sees through is denied, and every disguise keeps a verdict's strictness.

use super::*;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

/// Ways to write `sudo`, with what has to stand before.
const NAMES: &[(&str, &str)] = &[
    ("", "sudo"),
    ("", "s\\udo"),
    ("", "'su'do"),
    ("", "\"sudo\""),
    ("", "$'\\x73udo'"),
    ("", "su\\\ndo"),
    ("", "{sudo,-n}"),
    ("", "su${nope}do"),
    ("", "s$(true)udo"),
    ("", "$nope sudo"),
    ("", "${v:-sudo}"),
    ("", "${v:=sudo}"),
    ("v=sudo; ", "$v"),
    ("v=su w=do; ", "$v$w"),
    ("v=(x sudo); ", "${v[1]}"),
    ("w=sudo; v=w; ", "${!v}"),
    ("v=s; v+=udo; ", "$v"),
    ("v=SUDO; ", "${v,,}"),
    ("v=xsudo; ", "${v#x}"),
    ("read v <<< sudo; ", "$v"),
    ("printf -v v %s sudo; ", "$v"),
    ("v=$(echo sudo); ", "$v"),
    ("declare -n v=w; w=sudo; ", "$v"),
    ("set -- sudo; ", "\"$@\""),
];

const WRAPPERS: &[&str] = &[
    "",
    "env ",
    "env A=1 ",
    "env -u X ",
    "nice -n 5 ",
    "timeout -k 1 2 ",
    "nohup ",
    "stdbuf -oL ",
    "setsid -w ",
    "command -p ",
    "exec ",
    "time ",
    ">/dev/null ",
    "2>&1 ",
    "{fd}</dev/null ",
    "xargs ",
    "flock lk ",
    "ionice -c3 ",
    "eval ",
];

const PLACES: &[(&str, &str)] = &[
    ("ls; ", ""),
    ("true && ", ""),
    ("ls | ", ""),
    ("ls &\n", ""),
    ("( ", " )"),
    ("{ ", "\n}"),
    ("if true; then ", "\nfi"),
    ("for i in 1; do ", "\ndone"),
    ("case x in (y) ;; *) ", "\n;; esac"),
    ("f() { ", "\n}; f"),
    ("ls $(", "\n)"),
    ("echo \"$(", "\n)\""),
    ("cat <(", "\n)"),
    ("ls > >(", "\n)"),
    ("echo ${z:-$(", "\n)}"),
    ("cat <<E\n$(", "\n)\nE"),
    ("bash <<'E'\n", "\nE"),
    ("[[ -n $(", "\n) ]]"),
];

const TEXTS: &[(&str, &str)] = &[
    ("sh -c ", ""),
    ("bash -ec ", ""),
    ("eval ", ""),
    ("trap ", " EXIT"),
    ("bash <<< ", ""),
    ("echo ", " | bash"),
    ("find . -exec sh -c ", " \\;"),
    ("source <(echo ", ")"),
    ("env bash -c ", ""),
    ("z=", "; eval \"$z\""),
    ("bash -c 'eval \"$1\"' x ", ""),
];

fn disguised() -> impl Strategy<Value = String> {
    let wrappers = prop::collection::vec(prop::sample::select(WRAPPERS), 0..3);
    let plain = (prop::sample::select(NAMES), wrappers)
        .prop_map(|((before, name), wrappers)| format!("{before}{}{name} id", wrappers.concat()));
    plain.prop_recursive(3, 8, 1, |inner| {
        prop_oneof![
            (prop::sample::select(PLACES), inner.clone()).prop_map(|((start, end), inner)| format!("{start}{inner}{end}")),
            (prop::sample::select(TEXTS), inner)
                .prop_map(|((start, end), inner)| format!("{start}'{}'{end}", inner.replace('\'', "'\\''"))),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 512, rng_seed: RngSeed::Fixed(7), ..ProptestConfig::default() })]

    #[test]
    fn a_blocked_program_is_found_in_every_disguise(line in disguised()) {
        let enforcer = enforcer(parsed(&cases("reading.toml")));
        prop_assert_eq!(verdict(&enforcer, &line), VerdictKind::Deny, "{}", line);
    }

    #[test]
    fn a_line_has_one_verdict(line in prop_oneof![disguised(), any::<String>()]) {
        let enforcer = enforcer(parsed(&cases("reading.toml")));
        let told = || serde_json::to_string(&enforcer.explain(&exec(&line), now())).expect("JSON");
        prop_assert_eq!(told(), told());
    }
}
