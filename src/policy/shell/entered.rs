//! Command lines that start by changing to another directory (`cd DIR && …`).

use super::builtins::destination;
use super::{Arg, grammar, guard, read};

/// A command line of the form `cd DIR && …`, which changes directory and runs the remaining commands there if that
/// succeeds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnteredLine<'t> {
    /// Target directory, as spelled in the line.
    pub directory: Arg,
    /// Command that changes directory.
    pub first: &'t str,
    /// Commands that run in the target directory.
    pub rest: &'t str,
}

impl EnteredLine<'_> {
    /// Returns the target directory as a path in which a quoted `~` is an ordinary character.
    pub fn path(&self) -> String {
        let name = &self.directory.text;
        if name.starts_with('~') { format!("./{name}") } else { name.clone() }
    }
}

/// Parses a command line of the form `cd DIR && …`. Returns `None` for any other line, or if the directory or the order
/// of the commands is uncertain.
pub fn entered(line: &str) -> Option<EnteredLine<'_>> {
    if !line.trim_start().starts_with("cd") {
        return None;
    }
    let (first, rest) = guard::catch_panic(|| grammar::first_and_rest(line)).flatten()?;
    // Text in `$"…"` depends on the locale, so `$` is not accepted.
    if first.contains(['$', '`']) {
        return None;
    }
    let (whole, change, after) = (read(line), read(first), read(rest));
    let [part] = change.parts.as_slice() else { return None };
    let [invocation] = part.invocations.as_slice() else { return None };
    let is_plain = part.floors.is_empty() && part.redirects.is_empty() && change.floors.is_empty() && whole.floors.is_empty();
    let directory = destination(&invocation.argv).filter(|to| is_plain && !to.text.is_empty() && !to.tilde)?;
    // The rest must have the same commands on its own as in the line.
    let (_, others) = whole.parts.split_first()?;
    let same = others.len() == after.parts.len()
        && others.iter().zip(&after.parts).all(|(one, other)| one.text == other.text && one.invocations == other.invocations);
    let moves = after.parts.iter().flat_map(|part| &part.invocations).any(|one| super::changes_directory(one.base()));
    (same && !moves && !invocation.argv[0].quoted).then(|| EnteredLine { directory: directory.clone(), first, rest })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(line: &str) -> Option<(String, String)> {
        entered(line).map(|entered| (entered.directory.text, entered.rest.to_owned()))
    }

    #[test]
    fn only_a_plain_cd_before_an_and_list_changes_the_directory() {
        for (line, directory, rest) in [
            ("cd sub && cargo test", "sub", "cargo test"),
            ("cd 'my dir' && a && b | c", "my dir", "a && b | c"),
            ("cd \"a b\"/c&&make", "a b/c", "make"),
            ("cd a\\ b && make", "a b", "make"),
            ("cd ./x && git commit -m 'a; b || c && cd /'", "./x", "git commit -m 'a; b || c && cd /'"),
            ("cd .. && ls", "..", "ls"),
        ] {
            assert_eq!(parts(line), Some((directory.to_owned(), rest.to_owned())), "{line}");
        }
        for line in [
            "cd sub",
            "cd sub; make",
            "cd sub || make",
            "cd sub && make || x",
            "cd sub && make; x",
            "cd sub && make &",
            "cd sub & make && x",
            "cd sub\nmake && x",
            "cd sub | make && x",
            "cd sub && cd x && make",
            "cd sub && (cd x; make)",
            "cd sub && pushd x",
            "cd $X && make",
            "cd ~ && make",
            "cd - && make",
            "cd -- -x && make",
            "cd && make",
            "cd '' && make",
            "cd s* && make",
            "cd {a,b} && make",
            "cd a b && make",
            "cd sub > x && make",
            "X=1 cd sub && make",
            "CDPATH=/ && cd sub && make",
            "cd sub && make <<E\nx\nE",
            "cd $(x) && make",
            "'cd' sub && make",
            "cdx sub && make",
            "! cd sub && make",
            "(cd sub && make)",
            "cd sub && f() { x; }",
            "cd sub && { make; }",
            "cd sub && if a; then b; fi",
            "cd 'sub && make",
            "cd sub && alias cd=x && cd y",
        ] {
            assert_eq!(parts(line), None, "{line}");
        }
    }
}
