//! Tests that longer or more complex text does not loosen a denial: computed names, brace expansions, and programs
//! started by other programs.

use super::*;

fn reference() -> Enforcer {
    enforcer(parsed(&cases("reading.toml")))
}

#[track_caller]
fn all(enforcer: &Enforcer, wanted: VerdictKind, lines: &[&str]) {
    for line in lines {
        let told = enforcer.explain(&exec(line), now());
        assert_eq!(told.verdict, wanted, "{line}: {}", told.reason);
    }
}

const CONCEALED: &[&str] = &[
    "$x id",
    "\"$x\" id",
    "v=$(cat f); $v id",
    "v=odus; $(rev <<< $v) id",
    "v=abcsudo; n=3; ${v:n} id",
    "env $x id",
    "timeout 5 $x id",
    "find . -exec {} \\;",
    "find . -exec env {} \\;",
    "ls | xargs -I% % id",
    "ls | xargs -I{} sh -c {}",
    "ls | xargs env",
    "ls | xargs sh -c",
    "eval \"$x\"",
    "bash -c \"$x\"",
    "cat f | base64 -d | sh",
    "while read -r x; do $x; done < f",
    "/usr/bin/s*o id",
    "for f in /usr/bin/sud[o]; do \"$f\" id; done",
    "set -- /usr/bin/sud[o]; \"$1\" id",
    "x=(/usr/bin/sud*); \"${x[0]}\" id",
    "for f in ./*; do \"$f\"; done",
];

#[test]
fn computed_program_names_need_approval_in_every_mode_if_programs_are_blocked() {
    let open = "requires_approval = false\nblocked_commands = [\"sudoedit\"]";
    let denying =
        "requires_approval = false\n[[capabilities.\"Shell.Exec\".rules]]\ncommand = [\"sudoedit\"]\ndecision = \"deny\"";
    for table in [open, denying] {
        for mode in [Mode::Ask, Mode::AutoEdit, Mode::Auto] {
            let mut enforcer = shell(table);
            enforcer.set_mode(mode);
            all(&enforcer, VerdictKind::Ask, CONCEALED);
            all(&enforcer, VerdictKind::Allow, &["make", "cargo test", "for i in a b; do cp $i x; done"]);
            for line in CONCEALED {
                assert!(enforcer.always(&exec(line), now()).offers.is_empty(), "{line}");
            }
        }
    }
    // Without blocked programs, nothing can be concealed.
    all(&shell("requires_approval = false"), VerdictKind::Allow, &["$x id", "env $x id"]);
}

/// Lines that pass the name of a blocked program to an unknown program, or to a program that interprets code.
const PASSED: &[&str] = &[
    "frobnicate sudo id",
    "frobnicate --with=sudo",
    "frobnicate -- /usr/bin/sudo id",
    "frobnicate 'a; sudo id'",
    "frobnicate EXEC:sudo",
    "./frobnicate sudo",
    "python3 -c 'import os; os.system(\"sudo id\")'",
    "awk 'BEGIN{system(\"sudo id\")}'",
    "vim -c '!sudo id'",
    "node -e 'require(\"child_process\").execSync(\"sudo id\")'",
    "tar cf x --checkpoint-action=exec='sudo id' a",
    "gdb -ex 'run sudo' x",
    "git -c core.editor='sudo id' commit",
    "git -c gpg.program=sudo commit -S",
    "git difftool -x sudo",
    "go run sudo",
    "make SHELL='sudo sh'",
    "CC=sudo make",
    "env CC=sudo make",
    "export CC=sudo; make",
    "bash -c 'CC=sudo make'",
    "tmux send-keys 'sudo id' Enter",
    "rg --pre sudo x",
    "enable -f ./sudo sudo",
    "python3 <<< 'import os; os.system(\"sudo id\")'",
    "perl <<< 'system(\"sudo id\")'",
    "python3 <<'END'\nimport os; os.system('sudo id')\nEND",
    "make -f - <<< 'all: ; sudo id'",
    "git grep -Osudo x",
    "git grep -nOsudo x",
];

#[test]
fn blocked_programs_in_arguments_of_other_programs_need_approval_in_every_mode() {
    for mode in [Mode::Ask, Mode::AutoEdit, Mode::Auto] {
        let mut enforcer = shell("requires_approval = false\nblocked_commands = [\"sudo\"]");
        enforcer.set_mode(mode);
        all(&enforcer, VerdictKind::Ask, PASSED);
        let data = [
            "grep -rn sudo docs",
            "echo run sudo",
            "mkdir sudo",
            "cp sudo.md x",
            "cat docs/sudo",
            "xargs grep sudo",
            "timeout 5 grep sudo x",
            "git commit -m 'use sudo'",
            "git checkout sudo",
            "git log --grep sudo",
            "cargo test pseudo",
            "python3 sudo.py",
            "[ -f sudo ]",
            "cat <<< 'run sudo'",
            "tee notes.md <<< 'run sudo'",
            "git commit -F - <<'END'\nuse sudo\nEND",
            "grep -c sudo <<< 'use sudo'",
        ];
        all(&enforcer, VerdictKind::Allow, &data);
    }
    let told = shell("requires_approval = false\nblocked_commands = [\"sudo\"]").explain(&exec("frobnicate sudo"), now());
    assert_eq!(told.reason, "`frobnicate` could start `sudo`, which this policy blocks");
}

#[test]
fn programs_hidden_by_quotes_expansions_or_copies_need_approval_before_they_run() {
    for mode in [Mode::Ask, Mode::Auto] {
        let mut enforcer = enforcer(parsed(&cases("reading.toml")));
        enforcer.set_mode(mode);
        for line in [
            r"sed 's/x/sud$*o id/e' f",
            r"sed -n '1e s\udo id' f",
            "gdb -ex 'shell sudo id' -batch",
            r"gdb -ex 'shell s\udo id' -batch",
            r#"awk 'BEGIN{system("su\do id")}'"#,
            "awk 'BEGIN{x = \"su\" \"do\"; system(x)}'",
            r"perl -e '`su\do id`'",
            "make -f - <<< 'x:;su\"\"do id'",
            "make --eval 'x:;${Z:-sudo}'",
            "cp /usr/bin/sudo z; ./z id",
            "ln -s /usr/bin/sudo z; ./z id",
            "mv /usr/bin/sudo z",
            "install -m 755 /usr/bin/sudo z",
            "cat /usr/bin/sudo > z; chmod +x z; ./z",
            "cat /usr/bin/sudo | tee z",
            "cat < /usr/bin/sudo > z",
            "cp $(which sudo) z",
            "vi -c ':!s$*udo'",
            "sqlite3 x '.shell ${Z-sudo}'",
            "tar --checkpoint-action=exec='${Z:-sudo}' -cf o f",
            "apt-get -o APT::Update::Pre-Invoke::='su\"\"do id' update",
            "python3 -c 'import os; os.system(\"${Z:-sudo}\")'",
            "git -c core.pager='s\"\"udo x' log",
        ] {
            let told = enforcer.explain(&exec(line), now());
            assert_eq!((told.verdict, told.approve), (VerdictKind::Ask, Some(ApproveWhen::Before)), "{mode:?} {line}");
        }
        assert_eq!(verdict(&enforcer, "script -qc'sudo id' /dev/null"), VerdictKind::Deny);
    }
    let mut enforcer = enforcer(parsed(&cases("reading.toml")));
    enforcer.set_mode(Mode::Auto);
    let harmless = [
        "awk '{print $1}' f | sort | uniq -c",
        "sed -i 's/$/x/; $d' f",
        "perl -pe 's/a$/b/' f",
        "python3 - <<'END'\nimport re\nprint(re.sub(r'x$', '', 'x'))\nEND",
        "timeout 5 awk '/a|b/ {print $2}' f",
        "cp a b",
        "cat f | tee out",
        "cargo test 'x$'",
        "git commit -m 'cost $5 and `x`'",
    ];
    all(&enforcer, VerdictKind::Allow, &harmless);
}

#[test]
fn too_many_possible_values_do_not_hide_a_program_name() {
    let mut enforcer = reference();
    enforcer.set_mode(Mode::Auto);
    let values = |name: &str, last: &str| {
        (0..40).map(|n| format!("{name}=x{n}; ")).collect::<Vec<_>>().concat() + &format!("{name}={last}; ")
    };
    let line = format!(
        "{}{}{}$b$a id",
        values("a", "do"),
        values("b", "su"),
        (0..9).map(|n| format!("a=y{n}; ")).collect::<Vec<_>>().concat()
    );
    assert_ne!(verdict(&enforcer, &line), VerdictKind::Allow, "{line}");
}

#[test]
fn blocked_programs_are_found_behind_every_runner() {
    let enforcer = reference();
    let lines: Vec<String> = crate::policy::shell::runner_lines("sudo id");
    assert!(lines.len() > 150, "{}", lines.len());
    for line in lines {
        let told = enforcer.explain(&exec(&line), now());
        assert_eq!(told.verdict, VerdictKind::Deny, "{line}: {}", told.reason);
    }
    let more = [
        "uv --directory x run --with y -- sudo id",
        "uv run --with x sudo id",
        "pnpm --filter x exec sudo id",
        "mise exec node@20 -- sudo id",
        "nix develop .#x --command sudo id",
        "nix shell nixpkgs#hello -c sudo id",
        "gdb -ex run --args sudo id",
        "bwrap --ro-bind / / --dev /dev sudo id",
        "systemd-run --user --scope -p MemoryMax=1G sudo id",
        "ip -n x netns exec a sudo",
        "ls | xargs -I% sudo %",
        "script -qc 'sudo id'",
        "expect -c 'spawn sudo id'",
        "cargo watch -s 'sudo id'",
        "v=sudo; uv run $v id",
    ];
    all(&enforcer, VerdictKind::Deny, &more);
    // The same words as plain data.
    let data = [
        "uv pip install sudo",
        "npm run sudo",
        "ip netns add sudo",
        "bundle install sudo",
        "git commit -m 'uv run sudo'",
        "docker run x sudo id",
    ];
    all(&enforcer, VerdictKind::Ask, &data);
}

#[test]
fn blocked_programs_are_found_behind_expansions() {
    let lines = [
        "v=sudox; ${v%x} id",
        "v=sudo.x.y; ${v%%.*} id",
        "v=x/y/sudo; ${v##*/} id",
        "v=sudo:x; ${v%:*} id",
        "v=su-do; ${v/-/} id",
        "v=sXdo; ${v/X/u} id",
        "v=Xudo; ${v/#X/s} id",
        "v=sudX; ${v/%X/o} id",
        "v='s*udo'; ${v/\\*/} id",
        "v=sudo123; ${v%%[0-9]*} id",
        "v=123sudo; ${v##*[0-9]} id",
        "v='s u d o'; ${v// /} id",
        "v=abcsudo; ${v: -4} id",
        "v=Sudo; ${v,} id",
        "printf -v v '%b' 's\\x75do'; $v id",
        "printf -v v '\\x73udo'; $v id",
        "w=v; v=sudo; declare -n r=$w; $r id",
        "a=(x y sudo); ${a[-1]} id",
        "for x in a sudo; do \"$x\" id; done",
        "read -r a b <<< 'sudo id'; $a $b",
        "$'\\x{73}udo' id",
        "{''sudo,id}",
    ];
    all(&reference(), VerdictKind::Deny, &lines);
}

#[test]
fn options_built_by_braces_and_quotes_are_checked() {
    let lines = [
        "find . ''{},-delete}",
        "find . {a},-delete}",
        "find . \"\"{-delete,x}",
        "find . $'\\x{2d}delete'",
        "find . $'-delete\\c@'",
        "find . {-delete,}",
        "rg x $'\\x{2d}-pre=./a'",
        "rg x ''{},--pre=./a}",
        "git diff $'\\x{2d}-output=a'",
        "git log {--output=a},x}",
        "cat ''{},/etc/passwd}",
        "cat $'\\x{2f}etc/passwd'",
        "cat {..,/etc/passwd}",
        "cat a=~/x",
        "ls $'/\\u0065tc'",
    ];
    all(&reference(), VerdictKind::Ask, &lines);
    all(
        &reference(),
        VerdictKind::Allow,
        &["cat ''a", "grep $'\\t' a", "cat $'a\\x2db'", "find . -name '*.{a,b}'", "rg -g '*.{ts,tsx}' x", "cat ~''/a"],
    );
}

#[test]
fn shell_conditions_are_reads_and_not_critical() {
    let enforcer = built_in();
    for (line, wanted, risk) in [
        ("[ -f x ]", VerdictKind::Allow, Risk::Low),
        ("[ -f x ] && cat x", VerdictKind::Allow, Risk::Low),
        ("[ ! -d a ] || ls a", VerdictKind::Allow, Risk::Low),
        ("[ a = b ]; ls", VerdictKind::Allow, Risk::Low),
        ("test -f src/main.rs", VerdictKind::Allow, Risk::Low),
        ("test -f x && ls", VerdictKind::Allow, Risk::Low),
        ("[[ -f x ]]", VerdictKind::Ask, Risk::Low),
        ("[[ -f x && -n y ]] && ls", VerdictKind::Ask, Risk::Low),
        ("test -f /etc/passwd", VerdictKind::Ask, Risk::Medium),
        ("[ -f ~/.netrc ]", VerdictKind::Ask, Risk::Medium),
        ("[ -v 'a[$(id)]' ]", VerdictKind::Ask, Risk::Low),
        ("[ -f * ]", VerdictKind::Ask, Risk::Low),
        ("true", VerdictKind::Ask, Risk::Low),
        ("echo hi", VerdictKind::Ask, Risk::Low),
        ("printf '%s\\n' a", VerdictKind::Ask, Risk::Low),
        ("printf -v x a", VerdictKind::Ask, Risk::Low),
        ("cd src", VerdictKind::Ask, Risk::Low),
        ("cd /etc", VerdictKind::Ask, Risk::Medium),
        ("LD_PRELOAD=./x.so ls", VerdictKind::Ask, Risk::Medium),
        ("PATH=./bin ls", VerdictKind::Ask, Risk::Medium),
        ("GIT_EXTERNAL_DIFF=./x git diff", VerdictKind::Ask, Risk::Medium),
        ("X=1 LD_AUDIT=./x ls", VerdictKind::Ask, Risk::Medium),
        ("env LD_PRELOAD=./x.so ls", VerdictKind::Ask, Risk::Medium),
        ("export LD_PRELOAD=./x.so; ls", VerdictKind::Ask, Risk::Medium),
        ("bash -c 'LD_PRELOAD=./x.so ls'", VerdictKind::Ask, Risk::Medium),
        ("LANG=C ls", VerdictKind::Ask, Risk::Low),
    ] {
        let told = enforcer.explain(&exec(line), now());
        assert_eq!((told.verdict, told.risk, told.critical), (wanted, risk, false), "{line}: {}", told.reason);
    }
}
