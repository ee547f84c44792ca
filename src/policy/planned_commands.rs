//! Commands that an approved plan can cover: those that only read, and programs whose options and arguments are known.
//! Any other command needs its own approval.

use super::command::is_expanded;
use super::interpreters;
use super::shell::option_verdict::OptionVerdict;
use super::shell::options::check_options;
use super::shell::{Arg, base};

/// A program that a plan can cover.
struct PlannedProgram {
    name: &'static str,
    /// Subcommands, one of which must be the first argument. Empty if the program has none.
    subcommands: &'static [&'static str],
    /// Options that change neither what the program runs nor where it writes. Those that take a value end with `=`.
    options: &'static [&'static str],
    operands: OperandKind,
    /// Options after `--`, which apply to the tests.
    test_options: &'static [&'static str],
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum OperandKind {
    /// No operands.
    Nothing,
    /// Files that the program may write.
    Files,
    /// Names of tests or of Go packages in the current directory.
    Names,
}

const fn planned(
    name: &'static str,
    subcommands: &'static [&'static str],
    options: &'static [&'static str],
    operands: OperandKind,
) -> PlannedProgram {
    PlannedProgram { name, subcommands, options, operands, test_options: &[] }
}

const CARGO: &[&str] = &[
    "-v",
    "-vv",
    "-q",
    "-r",
    "-p=",
    "-j=",
    "--verbose",
    "--quiet",
    "--release",
    "--all",
    "--workspace",
    "--exclude=",
    "--package=",
    "--lib",
    "--bin=",
    "--bins",
    "--test=",
    "--tests",
    "--example=",
    "--examples",
    "--bench=",
    "--benches",
    "--doc",
    "--all-targets",
    "--features=",
    "--all-features",
    "--no-default-features",
    "--no-deps",
    "--no-run",
    "--no-fail-fast",
    "--keep-going",
    "--jobs=",
    "--locked",
    "--offline",
    "--frozen",
    "--check",
];
const CARGO_TEST: &[&str] =
    &["--nocapture", "--exact", "--ignored", "--include-ignored", "--show-output", "--test-threads=", "--skip="];
const GO: &[&str] = &["-v", "-race", "-short", "-cover", "-failfast", "-count=", "-run=", "-timeout="];
const PYTEST: &[&str] = &[
    "-q",
    "-v",
    "-vv",
    "-x",
    "-s",
    "-l",
    "-k=",
    "-m=",
    "--quiet",
    "--verbose",
    "--exitfirst",
    "--maxfail=",
    "--tb=",
    "--lf",
    "--ff",
];

const PROGRAMS: &[PlannedProgram] = &[
    PlannedProgram { test_options: CARGO_TEST, ..planned("cargo", &["test", "bench"], CARGO, OperandKind::Names) },
    planned("cargo", &["build", "check", "clippy", "doc", "fmt"], CARGO, OperandKind::Nothing),
    planned("go", &["build", "test", "vet"], GO, OperandKind::Names),
    planned("pytest", &[], PYTEST, OperandKind::Files),
    planned("rustfmt", &[], &["-q", "-v", "--check", "--edition="], OperandKind::Files),
    planned("gofmt", &[], &["-w", "-l", "-d", "-s"], OperandKind::Files),
    planned("ruff", &["check", "format"], &["-q", "-v", "--fix", "--check", "--diff"], OperandKind::Files),
    planned("black", &[], &["-q", "-v", "--check", "--diff"], OperandKind::Files),
    planned("mypy", &[], &["--strict"], OperandKind::Files),
    planned("tsc", &[], &["--noEmit", "--pretty"], OperandKind::Nothing),
    planned("touch", &[], &[], OperandKind::Files),
    planned("mkdir", &[], &["-p", "-v"], OperandKind::Files),
    planned("cp", &[], &["-n", "-v"], OperandKind::Files),
];

/// Interpreters and task runners that `interpreters::kind` does not know, because no rule can allow them. The list only
/// affects the reason that is shown: a plan covers no program that is missing from `PROGRAMS`.
const RUN_OTHER_CODE: &[&str] = &[
    "ant",
    "awk",
    "bash",
    "bazel",
    "bb",
    "buck",
    "clojure",
    "cmake",
    "crystal",
    "dart",
    "dash",
    "doit",
    "dotnet",
    "elixir",
    "erl",
    "escript",
    "expect",
    "fish",
    "ghc",
    "ghci",
    "groovy",
    "grunt",
    "guile",
    "gulp",
    "invoke",
    "ipython",
    "irb",
    "java",
    "jshell",
    "kotlin",
    "ksh",
    "lein",
    "m4",
    "micropython",
    "mise",
    "nim",
    "ninja",
    "nix",
    "nix-shell",
    "npx",
    "nx",
    "octave",
    "pipx",
    "pwsh",
    "R",
    "racket",
    "runghc",
    "runhaskell",
    "sbt",
    "scala",
    "scons",
    "sed",
    "sh",
    "sqlite3",
    "swift",
    "turbo",
    "uvx",
    "wish",
    "xargs",
    "zsh",
];

/// A command that a plan can cover, with the files named in its arguments.
pub(crate) enum PlannedCommand<'a> {
    /// The command only reads. These arguments are paths.
    Reads(Vec<&'a str>),
    /// The command may write. These arguments are files.
    Writes(Vec<&'a str>),
}

/// Returns what a command does if a plan can cover it.
///
/// # Errors
/// Returns the reason if no plan can cover the command.
pub(crate) fn planned_command(argv: &[Arg]) -> Result<PlannedCommand<'_>, String> {
    let name = argv[0].text.as_str();
    if let Some(word) = argv.iter().find(|word| is_expanded(word)) {
        let word = word.text.replace('\0', "…");
        return Err(format!("the shell replaces `{word}` with other text; name each file"));
    }
    if runs_other_code(name) {
        let name = base(name);
        return Err(format!("`{name}` is an interpreter or task runner, so it runs code that the plan does not show"));
    }
    if name.contains('/') {
        return Err(format!("`{name}` is a file, and the plan does not show the code in it"));
    }
    if let OptionVerdict::Reads { paths } = check_options(argv) {
        return Ok(PlannedCommand::Reads(paths));
    }
    let first = argv.get(1).map_or("", |word| word.text.as_str());
    let is_named = |program: &&PlannedProgram| {
        program.name == name && (program.subcommands.is_empty() || program.subcommands.contains(&first))
    };
    let Some(program) = PROGRAMS.iter().find(is_named) else {
        return Err(format!("a plan cannot cover `{name}` with these arguments, because aye does not know what they do"));
    };
    let words = &argv[1 + usize::from(!program.subcommands.is_empty())..];
    program.files(words).map(PlannedCommand::Writes).map_err(|word| format!("`{word}` can change what `{name}` does"))
}

impl PlannedProgram {
    /// Returns the arguments that are files. If an argument is not known, returns it as an error.
    fn files<'a>(&self, words: &'a [Arg]) -> Result<Vec<&'a str>, &'a str> {
        let mut files = Vec::new();
        let mut options = self.options;
        let mut words = words.iter().map(|word| word.text.as_str());
        while let Some(word) = words.next() {
            if word == "--" && !self.test_options.is_empty() {
                options = self.test_options;
            } else if let Some(takes_value) = option_kind(options, word) {
                let is_value = |value: &str| !value.is_empty() && !value.starts_with('-');
                if takes_value && !words.next().is_some_and(is_value) {
                    return Err(word);
                }
            } else if word.starts_with('-') {
                return Err(word);
            } else {
                match self.operands {
                    OperandKind::Files if is_file(word) => files.push(word),
                    OperandKind::Names if is_name(word) => {}
                    OperandKind::Nothing | OperandKind::Files | OperandKind::Names => return Err(word),
                }
            }
        }
        Ok(files)
    }
}

/// Returns whether an option takes the next word as its value. Returns `None` if the option is not in the list.
fn option_kind(options: &[&str], word: &str) -> Option<bool> {
    options.iter().find_map(|option| match option.strip_suffix('=') {
        None => (*option == word).then_some(false),
        Some(name) if name == word => Some(true),
        Some(name) => word.strip_prefix(name)?.strip_prefix('=').filter(|value| !value.is_empty()).map(|_| false),
    })
}

/// Returns whether a word names a single file or directory, and not the current directory or one above it.
fn is_file(word: &str) -> bool {
    let parts = || word.split('/');
    !word.is_empty() && !word.ends_with('/') && parts().any(|part| !matches!(part, "" | ".")) && parts().all(|part| part != "..")
}

/// Returns whether a word is the name of a test, as in `parser::tests`, or of Go packages, as in `./...`.
fn is_name(word: &str) -> bool {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "_-:./".contains(letter);
    !word.starts_with('/') && word.chars().all(is_plain) && is_file(word)
}

fn runs_other_code(name: &str) -> bool {
    let base = base(name);
    interpreters::kind(name).is_some() || interpreters::kind(base).is_some() || RUN_OTHER_CODE.contains(&base)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(line: &str) -> Result<(bool, Vec<String>), String> {
        let argv: Vec<Arg> = line.split(' ').map(Arg::plain).collect();
        let owned = |words: Vec<&str>| words.into_iter().map(str::to_owned).collect();
        planned_command(&argv).map(|command| match command {
            PlannedCommand::Reads(paths) => (true, owned(paths)),
            PlannedCommand::Writes(files) => (false, owned(files)),
        })
    }

    #[test]
    fn only_known_arguments_of_known_programs_are_covered() {
        for (line, files) in [
            ("cargo test", &[][..]),
            ("cargo test --package core parser::tests -- --nocapture --test-threads 1", &[]),
            ("cargo clippy --all-targets --features=a,b", &[]),
            ("cargo fmt --check", &[]),
            ("go test -run=Parse ./...", &[]),
            ("pytest -q tests/test_a.py", &["tests/test_a.py"]),
            ("gofmt -w main.go", &["main.go"]),
            ("touch a b", &["a", "b"]),
            ("cp a.txt docs/b.txt", &["a.txt", "docs/b.txt"]),
        ] {
            assert_eq!(told(line), Ok((false, files.iter().map(|file| (*file).to_owned()).collect())), "{line}");
        }
        assert_eq!(told("cat a.txt"), Ok((true, vec!["a.txt".to_owned()])));
        for line in [
            "cargo",
            "cargo run",
            "cargo install x",
            "cargo +nightly test",
            "cargo build --config build.rustc-wrapper=./x",
            "cargo clippy -- -Clinker=./x",
            "cargo test --manifest-path /tmp/x/Cargo.toml",
            "cargo test -p",
            "cargo test -- --logfile=keep.txt",
            "go test -exec ./x",
            "go generate",
            "go build .",
            "go build ../x",
            "gofmt -w .",
            "gofmt -w src/",
            "ruff check --config x.toml a.py",
            "pytest -p plugin",
            "touch -r a b",
            "cp -r a b",
            "cp a ../b",
            "cp a /",
            "/usr/bin/touch a",
            "mv a b",
            "unknown",
        ] {
            assert!(told(line).is_err(), "{line}");
        }
    }

    #[test]
    fn words_that_the_shell_expands_are_not_covered() {
        let word = |glob, tilde| Arg { glob, tilde, ..Arg::plain("q*") };
        for (glob, tilde, covered) in [(false, false, true), (true, false, false), (false, true, false)] {
            let argv = [Arg::plain("touch"), word(glob, tilde)];
            assert_eq!(planned_command(&argv).is_ok(), covered, "{glob} {tilde}");
        }
    }
}
