//! Determines the programs that a command starts, including through wrappers, nested shells, `find -exec`, aliases and
//! quoted strings.

use super::arg::{Arg, UNKNOWN, join};
use super::expand::printed_text;
use super::lexer::{ScannedCommand, WordReader};
use super::names::evaluates;
use super::runners::{TEXT_OPERANDS, TEXT_OPTIONS};
use super::word::Word;
use super::wrappers::{inner_starts, wraps};
use super::{ALIAS, Analyzer, COMPUTED, DEPTH, Invocation, SimpleCommand, base};

const UNKNOWN_TEXT: &str = "runs code that is known only at run time";
const RUNS_FILE: &str = "runs the commands in a file";
const RUNS_INPUT: &str = "runs commands from its input";
const WRAPPED: &str = "runs another program";

pub(super) const SHELLS: &[&str] = &[
    "sh", "bash", "dash", "zsh", "ksh", "ksh93", "mksh", "ash", "rbash", "fish", "csh", "tcsh", "yash", "elvish", "nu", "osh",
    "pwsh", "xonsh",
];
/// Programs whose arguments the parser interprets as commands or strings, so their meaning need not be guessed.
const PARSED: &[&str] = &["eval", "trap", ".", "source", "find", "fd", "fdfind", "su", "at", "batch"];
/// Variables whose values are run by some program.
const RUN_VARIABLES: &[&str] = &[
    "PS0",
    "PS1",
    "PS2",
    "PS4",
    "PROMPT_COMMAND",
    "BASH_ENV",
    "ENV",
    "PAGER",
    "MANPAGER",
    "EDITOR",
    "VISUAL",
    "LESSOPEN",
    "LESSCLOSE",
    "BROWSER",
    "SHELL",
    "FCEDIT",
    "RSYNC_RSH",
    "CARGO_BUILD_RUSTC_WRAPPER",
    "RUSTC_WRAPPER",
    "BASH_ALIASES",
    "BASH_CMDS",
];
/// `tmux` commands that start a program.
const PANES: &[&str] = &[
    "new",
    "new-session",
    "neww",
    "new-window",
    "split-window",
    "splitw",
    "respawn-pane",
    "respawnp",
    "respawn-window",
    "respawnw",
    "run",
    "run-shell",
    "if",
    "if-shell",
    "popup",
    "display-popup",
    "pipe-pane",
    "pipep",
];

/// Returns whether the commands in a program's arguments are found by parsing the arguments.
pub(crate) fn parses_its_text(name: &str) -> bool {
    SHELLS.contains(&name) || PARSED.contains(&name)
}

/// Returns whether the text would be a pattern if it were not quoted. Quoted words are checked too, because a variable
/// may contain the result of an expansion: `for f in /bin/l[s]; do "$f"; done` runs `ls`.
fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?']) || text.find('[').is_some_and(|at| text[at..].contains(']'))
}

impl Analyzer {
    /// Records the program in `argv` and all programs that it would start.
    pub(super) fn resolve_command(&mut self, argv: Vec<Arg>, simple: &mut SimpleCommand, depth: usize, wrapped: bool) {
        let Some(first) = argv.first() else { return };
        if depth > DEPTH {
            self.hopeless = true;
            return;
        }
        // `find -exec {} \;` runs a file that it finds, and `xargs -I{} {}` runs text from its input.
        if !first.is_known() || first.glob || is_pattern(&first.text) || first.tilde || wrapped && first.text.contains("{}") {
            block_allow(simple, COMPUTED);
        }
        let name = base(&first.text).to_owned();
        if !wrapped
            && !self.open_aliases.contains(&name)
            && let Some(meanings) = self.values.aliases.get(&name).cloned()
        {
            block_allow(simple, ALIAS);
            self.open_aliases.push(name.clone());
            for meaning in meanings.into_iter().filter(|meaning| *meaning != name) {
                let line = format!("{meaning} {}", quote(&argv[1..]));
                self.resolve_nested(&line, simple, depth);
            }
            self.open_aliases.pop();
        }
        if self.values.functions.contains(&name) {
            block_allow(simple, ALIAS);
        }
        if first.text.starts_with(UNKNOWN) && first.text.len() == UNKNOWN.len_utf8() && !first.quoted && argv.len() > 1 {
            // The word may expand to nothing.
            self.resolve_command(argv[1..].to_vec(), simple, depth + 1, wrapped);
        }
        if first.text.contains('/') {
            self.run_files.push(first.text.trim_start_matches("./").to_owned());
        }
        self.resolve_wrapper(&name, &argv, simple, depth);
        simple.invocations.push(Invocation { argv, wrapped });
    }

    fn resolve_wrapper(&mut self, name: &str, argv: &[Arg], simple: &mut SimpleCommand, depth: usize) {
        match name {
            _ if SHELLS.contains(&name) => self.shell(argv, simple, depth),
            "eval" => self.resolve_eval(&argv[1..], simple, depth),
            "trap" => {
                let action = argv[1..].iter().find(|arg| !matches!(arg.text.as_str(), "--" | "-" | "-l" | "-p")).cloned();
                self.resolve_eval(action.as_slice(), simple, depth);
            }
            "." | "source" => {
                block_allow(simple, RUNS_FILE);
                self.takes_input = true;
                simple.unknown_code |= argv.get(1).is_none_or(|arg| !arg.is_known());
            }
            "find" | "fd" | "fdfind" => self.find(argv, simple, depth),
            "su" | "runuser" | "script" | "sg" | "expect" => {
                self.text_option(argv, &["-c", "--command", "--session-command"], simple, depth);
                if name == "runuser" {
                    self.resolve_wrapped(name, argv, simple, depth);
                } else if name == "sg" && argv.len() > 2 {
                    self.resolve_eval(&argv[2..], simple, depth);
                }
            }
            "at" | "batch" => {
                simple.reads_code = true;
                self.takes_input = true;
                block_allow(simple, RUNS_INPUT);
            }
            "tmux" => {
                if let Some(at) = argv.iter().position(|arg| PANES.contains(&arg.text.as_str())) {
                    self.resolve_wrapped(name, &argv[at..], simple, depth);
                }
            }
            "hash" => {
                if let Some(at) = argv.iter().position(|arg| arg.text == "-p") {
                    self.resolve_command(argv.get(at + 1..=at + 1).unwrap_or_default().to_vec(), simple, depth + 1, true);
                }
            }
            "bind" => {
                for arg in &argv[1..] {
                    if let Some((_, text)) = arg.text.split_once(':') {
                        self.resolve_eval(&[Arg::plain(text)], simple, depth);
                    }
                }
            }
            "mapfile" | "readarray" | "complete" => self.text_option(argv, &["-C"], simple, depth),
            "git" => self.git(argv, simple, depth),
            "tee" => {
                let files = argv[1..].iter().filter(|arg| !arg.text.starts_with('-'));
                self.written.extend(files.map(|arg| arg.text.trim_start_matches("./").to_owned()));
            }
            "echo" | "printf" => self.printed.extend(printed_text(name, &argv[1..]).into_iter().map(|text| (text, depth + 1))),
            "test" | "[" | "let" | "unset" | "read" | "declare" | "typeset" | "local" | "export" | "readonly" | "wait"
            | "getopts" => {
                self.subscripts(&argv[1..], simple, depth);
            }
            "command" if lookup(argv) => {}
            _ => self.resolve_wrapped(name, argv, simple, depth),
        }
        if name == "printf" {
            self.subscripts(&argv[1..], simple, depth);
        }
    }

    fn resolve_wrapped(&mut self, name: &str, argv: &[Arg], simple: &mut SimpleCommand, depth: usize) {
        for (_, options) in TEXT_OPTIONS.iter().filter(|(program, _)| *program == name) {
            self.text_option(argv, options, simple, depth);
        }
        let starts = inner_starts(name, argv);
        if !starts.is_empty() {
            block_allow(simple, WRAPPED);
        }
        let adds = matches!(name, "xargs" | "gxargs" | "parallel" | "sem");
        let placed = if adds { placeholder(argv) } else { None };
        let starts_last = starts.last().copied();
        for start in starts {
            let mut inner = argv[start..].to_vec();
            if let Some(placed) = &placed {
                for arg in &mut inner {
                    arg.text = arg.text.replace(placed.as_str(), "{}");
                }
            }
            let program = super::base(&inner[0].text);
            if adds && (wraps(program) || SHELLS.contains(&program)) {
                // The program that this command starts is named in its input.
                inner.push(Arg::plain(UNKNOWN.to_string()));
            }
            self.resolve_command(inner, simple, depth + 1, true);
            if TEXT_OPERANDS.contains(&name) {
                self.resolve_eval(&argv[start..], simple, depth);
                if argv.len() - start > 1 {
                    self.resolve_eval(&argv[start..=start], simple, depth);
                }
            }
        }
        match name {
            "env" => self.split_string(argv, simple, depth),
            "xargs" | "parallel" => {
                if let Some(start) = starts_last {
                    let mut inner = argv[start..].to_vec();
                    if let Some(placed) = &placed {
                        for arg in &mut inner {
                            arg.text = arg.text.replace(placed.as_str(), "{}");
                        }
                    }
                    self.appended.push((inner, depth));
                }
            }
            "flock" => self.text_option(argv, &["-c", "--command"], simple, depth),
            "sudo" if argv[1..].iter().any(|arg| matches!(arg.text.as_str(), "-s" | "-i")) => simple.reads_code = true,
            _ => {}
        }
    }

    /// Handles `env -S 'sudo id'`, whose option value is a command.
    fn split_string(&mut self, argv: &[Arg], simple: &mut SimpleCommand, depth: usize) {
        for (index, arg) in argv.iter().enumerate().skip(1) {
            let short = arg.text.starts_with('-') && !arg.text.starts_with("--");
            let glued = if let Some(value) = arg.text.strip_prefix("--split-string") {
                Some(value.trim_start_matches('='))
            } else if short && let Some(at) = arg.text.find('S') {
                Some(&arg.text[at + 1..])
            } else {
                None
            };
            let Some(glued) = glued else {
                continue;
            };
            let (text, rest) = if glued.is_empty() {
                (argv.get(index + 1).map_or("", |next| next.text.as_str()), index + 2)
            } else {
                (glued, index + 1)
            };
            let rest = argv.get(rest..).unwrap_or_default();
            let line = format!("env {text} {}", quote(rest));
            self.resolve_nested(&line, simple, depth);
            return;
        }
    }

    fn shell(&mut self, argv: &[Arg], simple: &mut SimpleCommand, depth: usize) {
        let (mut at, mut text_next, mut from_input) = (1, false, false);
        while let Some(arg) = argv.get(at) {
            let text = arg.text.as_str();
            if text == "--" || text == "-" {
                at += 1;
                break;
            }
            if let Some(long) = text.strip_prefix("--") {
                at += 1 + usize::from(matches!(long, "rcfile" | "init-file" | "command"));
                text_next |= long == "command";
                at -= usize::from(long == "command");
            } else if text.len() > 1 && (text.starts_with('-') || text.starts_with('+')) {
                text_next |= text.starts_with('-') && text.contains('c');
                from_input |= text.starts_with('-') && text.contains('s');
                at += 1 + usize::from(text.ends_with(['o', 'O']));
            } else {
                break;
            }
        }
        let Some(operand) = argv.get(at).cloned() else {
            simple.reads_code = true;
            self.takes_input = true;
            block_allow(simple, RUNS_INPUT);
            return;
        };
        self.run_files.push(operand.text.trim_start_matches("./").to_owned());
        if from_input {
            self.values.position(argv.get(at..).unwrap_or_default());
        }
        if text_next {
            self.values.position(argv.get(at + 2..).unwrap_or_default());
            if let Some(zero) = argv.get(at + 1) {
                self.values.assign_text("0", &zero.text);
            }
            self.resolve_eval(&[operand], simple, depth);
        } else {
            block_allow(simple, if from_input { RUNS_INPUT } else { RUNS_FILE });
            let input =
                from_input || operand.text.starts_with("/dev/") || operand.text.starts_with("/proc/") || !operand.is_known();
            simple.reads_code |= input;
            simple.unknown_code |= !operand.is_known();
            self.takes_input |= input;
        }
    }

    /// Handles arguments that a shell joins and runs as code.
    fn resolve_eval(&mut self, args: &[Arg], simple: &mut SimpleCommand, depth: usize) {
        block_allow(simple, WRAPPED);
        let args = if args.first().is_some_and(|arg| arg.text == "--") { &args[1..] } else { args };
        let text = join(args);
        if args.iter().any(|arg| !arg.is_known()) || text.trim() == "{}" {
            block_allow(simple, UNKNOWN_TEXT);
            simple.unknown_code = true;
            self.takes_input = true;
        }
        self.resolve_nested(&text, simple, depth);
    }

    /// Judges code as part of the command that would run it.
    pub(super) fn resolve_nested(&mut self, text: &str, simple: &mut SimpleCommand, depth: usize) {
        for inner in self.text(text, depth + 1) {
            simple.invocations.extend(inner.invocations.into_iter().map(|invocation| Invocation { wrapped: true, ..invocation }));
            inner.floors.iter().for_each(|reason| block_allow(simple, reason));
            simple.redirects.extend(inner.redirects);
            simple.unknown_code |= inner.unknown_code;
            simple.reads_code |= inner.reads_code;
            simple.narrowed |= inner.narrowed;
            simple.renames |= inner.renames;
            simple.variables.extend(inner.variables);
            simple.assigned.extend(inner.assigned);
            simple.input.extend(inner.input);
        }
        block_allow(simple, WRAPPED);
    }

    fn find(&mut self, argv: &[Arg], simple: &mut SimpleCommand, depth: usize) {
        let mut at = 1;
        while at < argv.len() {
            let runs = matches!(
                argv[at].text.as_str(),
                "-exec" | "-execdir" | "-ok" | "-okdir" | "-x" | "-X" | "--exec" | "--exec-batch"
            );
            at += 1;
            if !runs {
                continue;
            }
            let end =
                argv[at..].iter().position(|arg| matches!(arg.text.as_str(), ";" | "+")).map_or(argv.len(), |offset| at + offset);
            block_allow(simple, WRAPPED);
            self.resolve_command(argv[at..end].to_vec(), simple, depth + 1, true);
            at = end;
        }
    }

    /// Handles programs with an option whose value is shell code.
    fn text_option(&mut self, argv: &[Arg], names: &[&str], simple: &mut SimpleCommand, depth: usize) {
        for (index, arg) in argv.iter().enumerate().skip(1) {
            let letters = arg.text.strip_prefix('-').filter(|rest| names.contains(&"-c") && !rest.starts_with('-'));
            let cluster = letters.is_some_and(|letters| letters.ends_with('c'));
            // `script -qc'id'`: the rest of the word is the code.
            if let Some((before, value)) = letters.and_then(|letters| letters.split_once('c'))
                && !value.is_empty()
                && before.chars().all(char::is_alphabetic)
            {
                self.resolve_eval(&[Arg::plain(value)], simple, depth);
            }
            if names.contains(&arg.text.as_str()) || cluster {
                self.resolve_eval(argv.get(index + 1..=index + 1).unwrap_or_default(), simple, depth);
            } else if let Some((name, value)) = arg.text.split_once('=')
                && names.contains(&name)
            {
                self.resolve_eval(&[Arg::plain(value)], simple, depth);
            } else if let Some(value) = names.iter().filter(|name| name.len() == 2).find_map(|name| arg.text.strip_prefix(name)) {
                self.resolve_eval(&[Arg::plain(value)], simple, depth);
            }
        }
    }

    /// Handles `git bisect run …`, `git rebase --exec …`, `git submodule foreach …` and aliases defined with `-c`.
    fn git(&mut self, argv: &[Arg], simple: &mut SimpleCommand, depth: usize) {
        let words: Vec<&str> = argv.iter().map(|arg| arg.text.as_str()).collect();
        for (index, word) in words.iter().enumerate() {
            match *word {
                "run" if words[..index].contains(&"bisect") => {
                    block_allow(simple, WRAPPED);
                    self.resolve_command(argv[index + 1..].to_vec(), simple, depth + 1, true);
                }
                "foreach" if words[..index].contains(&"submodule") => {
                    let from = (index + 1..argv.len()).find(|at| !words[*at].starts_with('-')).unwrap_or(argv.len());
                    self.resolve_eval(&argv[from..], simple, depth);
                }
                "-x" | "--exec" if words[..index].contains(&"rebase") => {
                    self.resolve_eval(argv.get(index + 1..=index + 1).unwrap_or_default(), simple, depth);
                }
                _ => {
                    if let Some((_, text)) = word.split_once("=!") {
                        self.resolve_eval(&[Arg::plain(text)], simple, depth);
                    }
                }
            }
        }
    }

    /// Handles builtins that evaluate subscripts in their arguments, such as `test -v 'a[$(…)]'`.
    fn subscripts(&mut self, args: &[Arg], simple: &mut SimpleCommand, depth: usize) {
        for arg in args.iter().filter(|arg| evaluates(&arg.text)) {
            for inner in find_substitutions(&arg.text) {
                self.resolve_nested(&inner, simple, depth);
            }
        }
    }

    /// Handles assignments whose values would be run by some program.
    pub(super) fn run_by_variables(&mut self, command: &ScannedCommand, simple: &mut SimpleCommand, depth: usize) {
        for assignment in &command.assignments {
            let name = assignment.name.as_str();
            let texts: Vec<Arg> = assignment.values.iter().filter_map(Word::literal).map(Arg::plain).collect();
            self.subscripts(&texts, simple, depth);
            self.takes_input |= matches!(name, "BASH_ENV" | "ENV");
            if !(RUN_VARIABLES.contains(&name) || name.starts_with("GIT_")) {
                continue;
            }
            for argv in self.values.readings(&assignment.values) {
                self.resolve_nested(&join(&argv), simple, depth);
            }
        }
    }
}

/// Returns the substitutions in text that is expanded as if it were in double quotes.
pub(super) fn find_substitutions(text: &str) -> Vec<String> {
    let mut reader = WordReader::new(text);
    reader.inside(text);
    reader.substitutions
}

fn block_allow(simple: &mut SimpleCommand, reason: &'static str) {
    if !simple.floors.contains(&reason) {
        simple.floors.push(reason);
    }
}

/// Returns the placeholder that `xargs` replaces with words from standard input, as in `-I %`, `-i` and `--replace=%`.
fn placeholder(argv: &[Arg]) -> Option<String> {
    argv.iter().enumerate().skip(1).find_map(|(at, arg)| {
        let text = arg.text.as_str();
        let given = match text.strip_prefix("--replace") {
            Some(rest) => rest.strip_prefix('=').unwrap_or("{}"),
            None if text == "-I" => argv.get(at + 1).map_or("", |next| next.text.as_str()),
            None if text == "-i" => "{}",
            None => text.strip_prefix("-I").or_else(|| text.strip_prefix("-i"))?,
        };
        (!given.is_empty() && given != "{}").then(|| given.to_owned())
    })
}

/// Returns whether a `command` builtin only looks up a name without running a program, as in `command -v name`.
fn lookup(argv: &[Arg]) -> bool {
    argv.get(1).is_some_and(|arg| arg.text.starts_with('-') && arg.text.contains(['v', 'V']))
}

/// Quotes the arguments so that a shell parses them as the same words.
fn quote(args: &[Arg]) -> String {
    args.iter().map(|arg| format!("'{}'", arg.text.replace('\'', "'\\''"))).collect::<Vec<_>>().join(" ")
}
