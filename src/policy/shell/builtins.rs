//! Shell builtins that only read or print, and the arguments with which they have no other effects.

use super::arg::Arg;
use super::option_verdict::OptionVerdict;

/// Returns the verdict on a builtin and its arguments, or `None` for any other program.
pub(crate) fn builtin_verdict(argv: &[Arg]) -> Option<OptionVerdict<'_>> {
    let (name, args) = argv.split_first()?;
    Some(match name.text.as_str() {
        "true" | "false" | ":" => prints(args),
        "echo" => prints(args),
        "printf" => formats(args),
        "test" => condition(args),
        "[" => verdict_before(args, "]"),
        "[[" => verdict_before(args, "]]"),
        _ => return None,
    })
}

/// Returns the verdict on a builtin that prints its arguments. Arguments that are globs are treated as paths, because
/// they print the names of matching files.
fn prints(args: &[Arg]) -> OptionVerdict<'_> {
    OptionVerdict::Reads { paths: args.iter().filter(|arg| arg.glob).map(|arg| arg.text.as_str()).collect() }
}

/// Returns the verdict on `printf`, which assigns its output to a variable if `-v` is given.
fn formats(args: &[Arg]) -> OptionVerdict<'_> {
    match args.first() {
        Some(first) if first.text != "--" && (first.text.starts_with('-') || first.glob) => {
            OptionVerdict::MayDoMore { word: &first.text }
        }
        Some(_) | None => prints(args),
    }
}

fn verdict_before<'a>(args: &'a [Arg], close: &str) -> OptionVerdict<'a> {
    match args.split_last() {
        Some((last, inner)) if last.text == close => condition(inner),
        Some((last, _)) => OptionVerdict::MayDoMore { word: &last.text },
        None => OptionVerdict::Reads { paths: Vec::new() },
    }
}

/// Returns the verdict on the words of a condition. Every word after an operator is treated as a file. Subscripts (`-v
/// 'a[…]'`) are not accepted because they are evaluated, nor are globs because they could expand to operators.
fn condition(args: &[Arg]) -> OptionVerdict<'_> {
    if let Some(odd) = args.iter().find(|arg| arg.glob || arg.text.contains('[')) {
        return OptionVerdict::MayDoMore { word: &odd.text };
    }
    let operator = |at: usize| args.get(at).is_some_and(|arg| arg.text.len() > 1 && arg.text.starts_with('-'));
    let compares = |at: usize| args.get(at).is_some_and(|arg| matches!(arg.text.as_str(), "-nt" | "-ot" | "-ef"));
    let names = |at: &usize| compares(at + 1) || *at > 0 && operator(at - 1) && !operator(*at);
    OptionVerdict::Reads { paths: (0..args.len()).filter(names).map(|at| args[at].text.as_str()).collect() }
}

/// Returns the directory that `cd` changes to, or `None` if its arguments do not specify one.
pub(crate) fn destination(argv: &[Arg]) -> Option<&Arg> {
    let (name, args) = argv.split_first()?;
    let from = args.iter().take_while(|arg| matches!(arg.text.as_str(), "-L" | "-P" | "-e" | "--")).count();
    match &args[from..] {
        [only] if name.text == "cd" && !only.glob && only.is_known() && !only.text.starts_with('-') => Some(only),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(line: &str) -> Option<Vec<String>> {
        let argv: Vec<Arg> = line.split(' ').map(|word| Arg { glob: word.contains('*'), ..Arg::plain(word) }).collect();
        match builtin_verdict(&argv) {
            Some(OptionVerdict::Reads { paths }) => Some(paths.into_iter().map(str::to_owned).collect()),
            Some(OptionVerdict::MayDoMore { .. } | OptionVerdict::NoTable) | None => None,
        }
    }

    #[test]
    fn conditions_and_printing_builtins_only_read_the_files_that_they_name() {
        for (line, named) in [
            ("[ -f x ]", &["x"][..]),
            ("test -f /etc/passwd", &["/etc/passwd"]),
            ("test a -nt ../b", &["a", "../b"]),
            ("[ ! -d a -o -e b ]", &["a", "b"]),
            ("[ a = /etc ]", &[]),
            ("[[ -n x && -f y ]]", &["x", "y"]),
            ("echo hi -n", &[]),
            ("echo /etc/*", &["/etc/*"]),
            ("printf %s x", &[]),
            ("printf -- -v", &[]),
            (": x", &[]),
            ("true", &[]),
        ] {
            assert_eq!(
                paths(line).as_deref(),
                Some(&named.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()[..]),
                "{line}"
            );
        }
        for line in
            ["[ -f x", "test -v a[0]", "[ -f * ]", "printf -v x y", "printf -vx y", "printf *", "[[ a[0] -eq 1 ]]", "rm x"]
        {
            assert_eq!(paths(line), None, "{line}");
        }
    }
}
