//! Tests that a blocked program is denied in every disguise that a real shell resolves, and that no disguise loosens a
//! verdict.

use super::*;
use proptest::prelude::*;

/// Spellings of `sudo`, each with the text that must precede it.
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
    ("set - x sudo; ", "$2"),
    ("v=(x sudo); ", "${v[@]:1}"),
    ("v=Sudo; ", "${v@L}"),
    ("v=SUDO; declare -l w=$v; ", "$w"),
    ("declare -A m=([k]=sudo); ", "${m[k]}"),
    ("printf -v 'v[0]' sudo; ", "$v"),
    ("IFS=: read a v <<< x:sudo; ", "$v"),
    ("getopts x: v -x sudo; ", "$OPTARG"),
    ("source /dev/stdin <<< v=sudo; ", "$v"),
    (": sudo; ", "$_"),
    ("", "$(cat <<< sudo)"),
    ("", "$(true; echo sudo)"),
    ("", "$( (echo sudo) )"),
    ("", "/usr/bin/s?do"),
    ("", "/usr/bin/su[d]o"),
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
    "choom -n 0 -- ",
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
    ("eval -- ", ""),
    ("tee s <<< ", " >/dev/null; bash s"),
    ("declare -a z=(", "); eval \"${z[@]}\""),
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

#[test]
fn known_disguises_of_blocked_programs_are_detected() {
    let enforcer = enforcer(parsed(&cases("reading.toml")));
    for line in [
        "echo ${z:-$(( v=$(echo sudo); A=1 time {fd}</dev/null $v id )\n)}",
        "let 'a[$(su\"do\" id)]'",
        "while :; do $v; eval v=sudo; done",
    ] {
        assert_eq!(verdict(&enforcer, line), VerdictKind::Deny, "{line}");
    }
}

#[test]
fn many_unknown_values_do_not_cause_a_denial() {
    let enforcer = enforcer(parsed(&cases("reading.toml")));
    let names: Vec<char> = ('a'..='p').collect();
    let words = names.iter().map(|name| format!(" -e {name}=\"${name}\"")).collect::<Vec<_>>().concat();
    let text = names.iter().map(|name| format!("{name} ${name}, ")).collect::<Vec<_>>().concat();
    let loops = "for i in a b c d e f g h; do for j in 1 2 3 4 5 6 7 8 9; do for k in x y z u v w r s t; do cp $i $j $k; done; done; done";
    for line in [format!("docker run{words} image"), format!("echo \"{text}\""), loops.to_owned()] {
        assert_eq!(verdict(&enforcer, &line), VerdictKind::Ask, "{line}");
    }
    // The first values of each variable are still combined, and each value is seen once.
    assert_eq!(verdict(&enforcer, &format!("env su{}do id", "${none}".repeat(16))), VerdictKind::Deny);
    assert_eq!(verdict(&enforcer, &loops.replace("cp $i", "v=sudo; env $v $i")), VerdictKind::Deny);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn blocked_programs_are_found_in_every_disguise(line in disguised()) {
        let enforcer = enforcer(parsed(&cases("reading.toml")));
        prop_assert_eq!(verdict(&enforcer, &line), VerdictKind::Deny, "{}", line);
    }

    #[test]
    fn verdicts_are_deterministic(line in prop_oneof![disguised(), any::<String>()]) {
        let enforcer = enforcer(parsed(&cases("reading.toml")));
        let told = || serde_json::to_string(&enforcer.explain(&exec(&line), now())).expect("JSON");
        prop_assert_eq!(told(), told());
    }
}
