use super::*;

mod bash;

/// A line that makes the parser panic, which simulates an unknown bug.
pub(crate) const FAULTY: &str = "aye-test-faulty-line";

pub(crate) fn fault(line: &str) {
    assert!(line != FAULTY, "the line asks for a panic");
}

fn programs(line: &str) -> Vec<String> {
    read(line).parts.iter().flat_map(|part| &part.invocations).map(|invocation| invocation.base().to_owned()).collect()
}

#[track_caller]
fn runs(line: &str, program: &str) {
    let found = programs(line);
    assert!(found.iter().any(|name| name == program), "`{line}` runs {found:?}, not `{program}`");
}

#[test]
fn program_names_are_found_behind_quotes_variables_and_expansions() {
    for line in [
        "s\\udo id",
        "'su'do id",
        "$'\\x73udo' id",
        "sudo${IFS}id",
        "{sudo,id}",
        "su\\\ndo id",
        "a=(sudo id); \"${a[@]}\"",
        "su$@do id",
        "n=sudo; m=n; ${!m} x",
        "echo ${Y:=`sudo id`}",
        "cat <<EOF\n`sudo id`\nEOF",
        "set -- sudo id; \"$@\"",
        "x=SUDO; ${x,,} id",
        "x=xsudo; ${x#x} id",
        "read x <<< sudo; $x id",
        "printf -v x %s sudo; $x",
        "$(echo sudo) id",
        "for x in sudo; do $x id; done",
        "x=s; y=udo; $x$y",
        "sh -c '\"$@\"' _ sudo id",
        "a=sud; a+=o; sudo",
        "${x:-sudo} id",
    ] {
        runs(line, "sudo");
    }
}

#[test]
fn script_files_are_found_behind_options_and_wrappers() {
    for (line, files) in [
        ("./x.sh", &["./x.sh"][..]),
        ("bin/tool --flag a.txt", &["bin/tool"]),
        ("bash x.sh arg", &["x.sh"]),
        ("bash -x -o pipefail x.sh", &["x.sh"]),
        ("sh -- x.sh", &["x.sh"]),
        ("bash --rcfile rc x.sh", &["x.sh"]),
        ("env A=1 timeout 5 bash ./x.sh", &["./x.sh"]),
        ("bash -c './x.sh && python3 y.py'", &["./x.sh", "y.py"]),
        ("python3.12 -u -W ignore tools/gen.py data.csv", &["tools/gen.py"]),
        ("python -m pytest tests", &[]),
        ("python -Ic 'print(1)' x", &[]),
        ("node -r ./hook.js app.js", &["app.js"]),
        ("node --eval 1 app.js", &[]),
        ("deno run main.ts", &["main.ts"]),
        ("perl -w x.pl", &["x.pl"]),
        ("perl -ne print x", &[]),
        (". ./env.sh; source 'b c.sh'", &["./env.sh", "b c.sh"]),
        ("bash '~/x.sh'", &["./~/x.sh"]),
        ("bash ~/x.sh", &["~/x.sh"]),
        ("bash \"$X\"; ./*.sh; bash", &[]),
        ("sh <<E\n./x.sh\nE", &["./x.sh"]),
        ("cargo test; cat x.sh; ls ./x.sh", &[]),
    ] {
        assert_eq!(run_files(line), files, "{line}");
    }
    assert_eq!(run_files(&(0..100).map(|n| format!("./{n}")).collect::<Vec<_>>().join(";")).len(), 16);
}

#[test]
fn first_commands_are_the_prefixes_that_can_run_alone() {
    let firsts = |line| first_commands(line).into_iter().map(|(text, count)| format!("{count} {text}")).collect::<Vec<_>>();
    assert_eq!(
        firsts("cargo test 2>&1 | tail -20 && rm -rf target && curl -fsS https://e.com | sh"),
        ["2 cargo test 2>&1 | tail -20", "3 cargo test 2>&1 | tail -20 && rm -rf target"]
    );
    assert_eq!(firsts("a; b && c; d"), ["1 a", "2 a; b", "3 a; b && c"]);
    for line in [
        "a || b",
        "a && b || c",
        "a",
        "a & b",
        "for x in 1 2; do a; done",
        "a && (b; c)",
        "if a; then b; fi",
        "cat <<E && b\nx\nE",
        "a && b 'c",
    ] {
        let none = firsts(line);
        assert!(none.iter().all(|first| first == "1 a" && line == "a && (b; c)"), "{line}: {none:?}");
    }
}

#[test]
fn the_input_of_a_pipeline_part_is_known_if_it_is_a_single_command() {
    for (line, inputs) in [
        ("a 2>&1 | b && c; d | e", &[None, Some("a 2>&1"), None, None, Some("d")][..]),
        ("a | b | c", &[None, Some("a"), Some("b")]),
        ("a |& b", &[None, Some("a")]),
        ("a || b", &[None, None]),
        ("(a; b) | c", &[None, None, None]),
        ("a | (b; c)", &[None, Some("a"), None]),
        ("a $(x | y) | b", &[None, Some("a $(x | y)"), None, Some("x")]),
    ] {
        let parts = read(line).parts;
        let read: Vec<_> = parts.iter().map(|part| part.input_from.as_deref()).collect();
        assert_eq!(read, inputs, "{line}");
    }
}
