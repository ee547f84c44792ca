use super::*;

fn programs(line: &str) -> Vec<String> {
    read(line).parts.iter().flat_map(|part| &part.invocations).map(|invocation| invocation.base().to_owned()).collect()
}

#[track_caller]
fn runs(line: &str, program: &str) {
    let found = programs(line);
    assert!(found.iter().any(|name| name == program), "`{line}` runs {found:?}, not `{program}`");
}

#[test]
fn a_name_is_found_behind_quotes_variables_and_expansions() {
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
