//! Detects code in the arguments or input of a program that could start another program whose name is known only at run
//! time, such as `awk 'BEGIN { system(x) }'` or `make --eval 'x:;${Z:-dd}'`.

use super::shell::{Arg, base};

/// Reason for a verdict on code that is known only at run time.
pub(super) const CONCEALS_TEXT: &str = "runs code that is known only at run time, and this policy blocks programs";

/// Text that occurs in code that starts another program, or that calls functions by a computed name.
const STARTS: &[&str] = &[
    "system",
    "exec",
    "eval",
    "spawn",
    "subprocess",
    "child_process",
    "popen",
    "Popen",
    "fork",
    "getattr",
    "__import__",
    "__builtins__",
    "__dict__",
    "__getattribute__",
    "__subclasses__",
    "import_module",
    "importlib",
    "import(",
    "ctypes",
    "runpy",
    "pty.",
    "vars(",
    "globals(",
    "binding",
    "constructor",
    "Function(",
    "Process",
    "proc_open",
    "passthru",
    "Deno.",
    "Bun.",
];
/// Interpreters in which text in backticks is a command line.
const BACKTICKS_RUN: &[&str] = &["perl", "ruby", "irb", "php", "julia"];
/// Further text that starts programs in Perl, Ruby or PHP.
const PERL_STARTS: &[&str] = &["qx", "%x", "open3", "&$", "&{", "->(", "send", "|-", "-|", "Kernel", "method(", "require"];
const INTERPRETERS: &[&str] = &[
    "python",
    "pypy",
    "node",
    "nodejs",
    "deno",
    "bun",
    "tsx",
    "ts-node",
    "perl",
    "ruby",
    "irb",
    "php",
    "lua",
    "luajit",
    "tclsh",
    "Rscript",
    "julia",
    "osascript",
    "ghci",
];
/// Programs whose arguments and input contain `$` as part of their own language, and that start no programs.
const OTHER_DOLLARS: &[&str] = &["jq", "yq", "ag", "ack", "psql", "mongosh", "mongo", "curl", "wget", "rg", "grep"];

/// Returns whether the arguments of a program could start a program whose name is known only at run time.
pub(super) fn computes_in_arguments(argv: &[Arg]) -> bool {
    let name = base(&argv[0].text);
    match language(name) {
        Language::Sed => runs_sed(&sed_scripts(&argv[1..]).0),
        Language::Awk => awk_texts(&argv[1..]).any(runs_awk),
        language => argv[1..].iter().any(|arg| computes(name, language, &arg.text)),
    }
}

/// Returns whether the program in the arguments of sed, awk or an interpreter could run text from its input.
pub(super) fn runs_text(argv: &[Arg]) -> bool {
    matches!(language(base(&argv[0].text)), Language::Sed | Language::Awk | Language::Interpreter) && computes_in_arguments(argv)
}

/// Returns whether code in the input of a program could start a program whose name is known only at run time.
pub(super) fn computes_in_input(argv: &[Arg], input: &[Arg]) -> bool {
    let name = base(&argv[0].text);
    match language(name) {
        Language::Sed => sed_scripts(&argv[1..]).1 && input.iter().any(|text| runs_sed(&text.text)),
        Language::Awk => input.iter().any(|text| reads_script(&argv[1..]) && runs_awk(&text.text)),
        language => input.iter().any(|text| computes(name, language, &text.text)),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Language {
    Sed,
    Awk,
    Interpreter,
    /// A program that may pass its arguments or input to a shell.
    Shell,
    /// A program that starts no programs named in its text.
    Other,
}

fn language(name: &str) -> Language {
    let is_version = |rest: &str| rest.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    match name {
        "sed" | "gsed" => Language::Sed,
        "awk" | "gawk" | "mawk" | "nawk" => Language::Awk,
        _ if OTHER_DOLLARS.contains(&name) => Language::Other,
        _ if INTERPRETERS.iter().any(|one| name.strip_prefix(one).is_some_and(is_version)) => Language::Interpreter,
        _ => Language::Shell,
    }
}

fn computes(name: &str, language: Language, text: &str) -> bool {
    match language {
        Language::Sed => runs_sed(text),
        Language::Awk => runs_awk(text),
        Language::Interpreter => {
            let runs_backticks = BACKTICKS_RUN.iter().any(|one| name.starts_with(one));
            STARTS.iter().any(|start| text.contains(start))
                || runs_backticks && (text.contains('`') || PERL_STARTS.iter().any(|start| text.contains(start)))
                || requires_computed_name(text)
        }
        Language::Shell => has_shell_expansion(text),
        Language::Other => false,
    }
}

/// Returns whether the text contains a backtick, or a `$` that a shell would expand. A `$` before a quote or a slash
/// usually ends a regular expression.
fn has_shell_expansion(text: &str) -> bool {
    let expands = |next: char| next.is_alphanumeric() || "_{([*@#?!-$".contains(next);
    text.contains('`') || text.split('$').skip(1).any(|rest| rest.chars().next().is_some_and(expands))
}

/// Returns whether JavaScript code loads a module whose name is not a plain string.
fn requires_computed_name(text: &str) -> bool {
    text.split("require(").skip(1).any(|rest| {
        let quote = rest.chars().next().filter(|first| matches!(first, '"' | '\''));
        let name = quote.and_then(|quote| rest[1..].split_once(quote));
        !name.is_some_and(|(name, after)| after.starts_with(')') && !name.contains('\\'))
    })
}

/// Returns whether the program text is read from standard input (`-f -`).
fn reads_script(words: &[Arg]) -> bool {
    words.iter().any(|word| matches!(word.text.as_str(), "-f-" | "-" | "/dev/stdin" | "-f/dev/stdin" | "--file=-"))
}

/// Returns the arguments of awk that may be its program: all except field separators and values of variables.
fn awk_texts(words: &[Arg]) -> impl Iterator<Item = &str> {
    let is_value = |at: usize| at > 0 && matches!(words[at - 1].text.as_str(), "-F" | "-v" | "--field-separator" | "--assign");
    let is_attached = |text: &str| text.starts_with("-F") || text.starts_with("-v") || text.starts_with("--field-separator=");
    (0..words.len()).filter(move |at| !is_value(*at) && !is_attached(&words[*at].text)).map(|at| words[at].text.as_str())
}

/// Returns whether an awk program may start other programs: with `system`, a pipe, or a function called by its name.
fn runs_awk(text: &str) -> bool {
    if text.contains("system") {
        return true;
    }
    let letters: Vec<char> = text.chars().collect();
    // The last letter that is not white space, which determines whether `/` starts a regular expression.
    let (mut at, mut before) = (0, '\n');
    while let Some(&letter) = letters.get(at) {
        match letter {
            '"' => at = end_of_quoted(&letters, at, '"'),
            '/' if "\n(,{};!~&|".contains(before) => at = end_of_quoted(&letters, at, '/'),
            '|' if letters.get(at + 1) == Some(&'|') => at += 1,
            '|' | '@' => return true,
            _ => {}
        }
        if !letter.is_whitespace() || letter == '\n' {
            before = letter;
        }
        at += 1;
    }
    false
}

/// Returns the position of the closing delimiter of the text that starts at `at`, or of the end of the text.
fn end_of_quoted(letters: &[char], at: usize, close: char) -> usize {
    let mut at = at + 1;
    while let Some(&letter) = letters.get(at) {
        if letter == close {
            break;
        }
        at += if letter == '\\' { 2 } else { 1 };
    }
    at
}

/// Returns the script in the arguments of sed, and whether sed also reads a script from its input.
fn sed_scripts(words: &[Arg]) -> (String, bool) {
    let (mut scripts, mut operand, mut from_input, mut has_file) = (Vec::new(), None, false, false);
    let mut all = words.iter().map(|word| word.text.as_str());
    let is_input = |file: &str| matches!(file, "-" | "/dev/stdin") || file.starts_with("/proc/") || file.starts_with("/dev/fd");
    while let Some(word) = all.next() {
        if word == "--" {
            operand = operand.or_else(|| all.next());
            break;
        }
        if let Some(script) = word.strip_prefix("--expression=") {
            scripts.push(script);
        } else if "--expression".starts_with(word) && word.len() > 3 {
            scripts.extend(all.next());
        } else if let Some(file) = word.strip_prefix("--file=") {
            (has_file, from_input) = (true, from_input || is_input(file));
        } else if "--file".starts_with(word) && word.len() > 3 {
            (has_file, from_input) = (true, from_input || all.next().is_some_and(is_input));
        } else if word.starts_with("--") {
        } else if let Some(letters) = word.strip_prefix('-').filter(|letters| !letters.is_empty()) {
            // These options use the rest of the word, or the next word, as their value.
            let Some(option) = letters.find(['e', 'f', 'i', 'l']) else { continue };
            let rest = &letters[option + 1..];
            match &letters[option..=option] {
                "e" => scripts.extend(if rest.is_empty() { all.next() } else { Some(rest) }),
                "f" => {
                    let file = if rest.is_empty() { all.next() } else { Some(rest) };
                    (has_file, from_input) = (true, from_input || file.is_some_and(is_input));
                }
                "l" if rest.is_empty() => {
                    all.next();
                }
                _ => {}
            }
        } else {
            operand = operand.or(Some(word));
        }
    }
    if scripts.is_empty() && !has_file {
        scripts.extend(operand);
    }
    (scripts.join("\n"), from_input)
}

/// Returns whether a sed script may run commands: with the command `e` or the flag `e` of `s`. Returns `true` for text
/// that cannot be parsed.
fn runs_sed(script: &str) -> bool {
    let letters: Vec<char> = script.chars().collect();
    let mut at = 0;
    loop {
        while letters.get(at).is_some_and(|letter| letter.is_whitespace() || *letter == ';') {
            at += 1;
        }
        at = end_of_addresses(&letters, at);
        let Some(&command) = letters.get(at) else { return false };
        let line_end = letters[at..].iter().position(|letter| *letter == '\n').map_or(letters.len(), |end| at + end);
        at = match command {
            's' => match end_of_substitution(&letters, at + 1) {
                Some(end) => end,
                None => return true,
            },
            'y' => match letters.get(at + 1) {
                Some(&close) => end_of_quoted(&letters, end_of_quoted(&letters, at + 1, close), close) + 1,
                None => return true,
            },
            // Text continues on the next line after a backslash.
            'a' | 'i' | 'c' => end_of_text(&letters, at),
            'r' | 'R' | 'w' | 'W' | '#' | 'v' => line_end,
            ':' | 'b' | 't' | 'T' => {
                letters[at..].iter().position(|letter| matches!(letter, ';' | '\n' | '}')).map_or(letters.len(), |end| at + end)
            }
            '{' | '}' | '=' | 'd' | 'D' | 'g' | 'G' | 'h' | 'H' | 'n' | 'N' | 'p' | 'P' | 'x' | 'z' | 'F' => at + 1,
            'q' | 'Q' | 'l' | 'L' => skip(&letters, at + 1, |letter| letter.is_ascii_digit() || letter == ' '),
            _ => return true,
        };
    }
}

fn skip(letters: &[char], at: usize, wanted: impl Fn(char) -> bool) -> usize {
    letters.get(at..).and_then(|rest| rest.iter().position(|letter| !wanted(*letter))).map_or(letters.len(), |end| at + end)
}

/// Returns the position after the addresses of a sed command and the `!` that negates them.
fn end_of_addresses(letters: &[char], at: usize) -> usize {
    let mut at = at;
    loop {
        at = match letters.get(at) {
            Some('/') => skip(letters, end_of_quoted(letters, at, '/') + 1, |letter| matches!(letter, 'I' | 'M')),
            Some('\\') => match letters.get(at + 1) {
                Some(&close) => skip(letters, end_of_quoted(letters, at + 1, close) + 1, |letter| matches!(letter, 'I' | 'M')),
                None => return letters.len(),
            },
            Some(letter) if letter.is_ascii_digit() || matches!(letter, '$' | ',' | '~' | '+' | '!' | ' ' | '\t') => at + 1,
            _ => return at,
        };
    }
}

/// Returns the position after the flags of `s`, or `None` if a flag may run the result as a command.
fn end_of_substitution(letters: &[char], at: usize) -> Option<usize> {
    let close = *letters.get(at).filter(|close| !matches!(close, '\\' | '\n'))?;
    let middle = end_of_quoted(letters, at, close);
    let end = end_of_quoted(letters, middle, close);
    letters.get(end)?;
    let flags = skip(letters, end + 1, |letter| letter.is_ascii_digit() || matches!(letter, 'g' | 'p' | 'i' | 'I' | 'm' | 'M'));
    match letters.get(flags) {
        None | Some(';' | '}' | '\n' | '#' | ' ' | '\t') => Some(flags),
        Some('w') => Some(skip(letters, flags, |letter| letter != '\n')),
        Some(_) => None,
    }
}

/// Returns the end of the text that `a`, `i` or `c` inserts.
fn end_of_text(letters: &[char], at: usize) -> usize {
    let mut at = at;
    while let Some(&letter) = letters.get(at) {
        if letter == '\n' {
            break;
        }
        at += if letter == '\\' { 2 } else { 1 };
    }
    at.min(letters.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &[&str]) -> Vec<Arg> {
        line.iter().map(|word| Arg::plain(*word)).collect()
    }

    #[test]
    fn sed_scripts_that_run_commands_are_told_from_those_that_only_edit() {
        for script in
            ["s/x/id/e", "s/x/y/ge", "1e id", "e", "s,a,b,;s|x|d$*d|e", "/a/,/b/{s/x/y/e\n}", "1!e", "s/a/b", "s/\\//id/e", "$e"]
        {
            assert!(computes_in_arguments(&words(&["sed", "-n", script, "f"])), "{script}");
            assert!(computes_in_arguments(&words(&["sed", &format!("-ne{script}"), "f"])), "{script}");
        }
        for script in [
            "s/$/x/",
            "s/e$//;$d",
            "$!N",
            "/^$/d",
            "1,20p",
            "s/the/else/gI; s,a$,b$HOME,2p",
            ":a;N;$!ba;s/\\n/ /g",
            "/x/{n;d}",
            "$a\\\nelse",
            "1~2d",
            "\\,e$,d",
            "y/abc/def/",
            "s/a/b/w out.txt",
            "10q",
            "# e",
            "/a/I,+2!d",
        ] {
            assert!(!computes_in_arguments(&words(&["sed", "-i", "-E", script, "src/e.rs"])), "{script}");
        }
        assert!(!computes_in_arguments(&words(&["sed", "-i.bak", "-e", "s/a/b/", "-e", "$d", "e", "s/x/y/e"])));
    }

    #[test]
    fn awk_programs_that_start_programs_are_told_from_those_that_only_print() {
        for program in [
            "BEGIN{system(x)}",
            "{print | \"sort\"}",
            "{\"d\" \"d\" | getline}",
            "{@f($0)}",
            "{ print $1 |& c }",
            "{ x = a / b | c }",
        ] {
            assert!(computes_in_arguments(&words(&["awk", program])), "{program}");
        }
        for program in ["{print $1}", "/a|b/ {print $NF}", "$1 ~ /x|y/ || $2 > 3", "{print \"a|b@c\"}", "NR==1{print $0 / 2}"] {
            assert!(!computes_in_arguments(&words(&["awk", "-F|", "-v", "x=1", program])), "{program}");
        }
    }

    #[test]
    fn code_that_starts_programs_or_that_a_shell_expands_is_computed() {
        for line in [
            &["python3", "-c", "import os; os.system('d' + 'd')"][..],
            &["node", "-e", "require('child_' + 'process')"],
            &["perl", "-e", "`d\\d x`"],
            &["ruby", "-e", "%x(a)"],
            &["make", "--eval=x:;${Z:-dd}"],
            &["vi", "-c", ":!s$*udo"],
            &["tar", "--checkpoint-action=exec=`x`"],
        ] {
            assert!(computes_in_arguments(&words(line)), "{line:?}");
        }
        for line in [
            &["python3", "-c", "import re; print(re.sub(r'x$', '', 'ax'))"][..],
            &["node", "-e", "const fs = require('fs'); console.log(`${fs.x}`)"],
            &["perl", "-pe", "s/$x/y$/"],
            &["vi", "-c", ":%s/x$/y/"],
            &["jq", ".[$x]"],
            &["cargo", "test", "x"],
        ] {
            assert!(!computes_in_arguments(&words(line)), "{line:?}");
        }
    }
}
