//! Finds files that a command line runs, both programs given by path and files run by an interpreter.

use super::arg::Arg;
use super::resolve::SHELLS;
use super::{Invocation, read};

/// Maximum number of files returned for a line.
const MAX: usize = 16;

/// Options of an interpreter, which determine the argument that is the file to run.
struct InterpreterOptions {
    /// Program names and their prefixes: `python` also matches `python3.12`.
    names: &'static [&'static str],
    /// Short options that are not followed by a file to run.
    code: &'static str,
    /// Options that take the next word as their value.
    valued: &'static [&'static str],
    /// Words that may precede the file.
    verbs: &'static [&'static str],
}

const SHELL: InterpreterOptions =
    InterpreterOptions { names: &[], code: "cs", valued: &["-o", "+o", "-O", "+O", "--rcfile", "--init-file"], verbs: &[] };
const INTERPRETERS: &[InterpreterOptions] = &[
    InterpreterOptions { names: &["python", "pypy"], code: "cm", valued: &["-W", "-X", "--check-hash-based-pycs"], verbs: &[] },
    InterpreterOptions {
        names: &["node"],
        code: "ep",
        valued: &["-r", "--require", "--import", "--loader", "--experimental-loader", "-C", "--conditions", "--env-file"],
        verbs: &[],
    },
    InterpreterOptions {
        names: &["deno", "bun", "tsx", "ts-node"],
        code: "ep",
        valued: &["-c", "--config"],
        verbs: &["run", "test"],
    },
    InterpreterOptions { names: &["perl"], code: "eE", valued: &["-I"], verbs: &[] },
    InterpreterOptions { names: &["ruby"], code: "e", valued: &["-I", "-r", "-C"], verbs: &[] },
    InterpreterOptions { names: &["php"], code: "rRB", valued: &["-d", "-c", "-z"], verbs: &[] },
    InterpreterOptions { names: &["lua"], code: "e", valued: &["-l"], verbs: &[] },
    InterpreterOptions { names: &["Rscript", "julia", "tclsh", "osascript"], code: "eE", valued: &[], verbs: &[] },
];

/// Returns the files that a command line runs, as spelled in the line. Files that can be determined only at run time
/// are omitted. Does not access the disk.
pub fn run_files(line: &str) -> Vec<String> {
    let mut files: Vec<String> = Vec::new();
    for invocation in read(line).parts.iter().flat_map(|part| &part.invocations) {
        for file in files_run_by(invocation).filter(|file| file.is_known() && !file.glob) {
            // A quoted `~` is an ordinary character.
            let dot = if file.tilde || !file.text.starts_with('~') { "" } else { "./" };
            let name = format!("{dot}{}", file.text);
            if files.len() < MAX && !name.is_empty() && !files.contains(&name) {
                files.push(name);
            }
        }
    }
    files
}

/// Returns the words of a command that name a file which it runs.
pub(crate) fn files_run_by(invocation: &Invocation) -> impl Iterator<Item = &Arg> {
    let program = invocation.argv.first().filter(|program| program.text.contains('/'));
    program.into_iter().chain(script(invocation))
}

fn script(invocation: &Invocation) -> Option<&Arg> {
    let name = invocation.base();
    if matches!(name, "." | "source") {
        return invocation.argv.get(1);
    }
    let interpreter = if SHELLS.contains(&name) {
        &SHELL
    } else {
        INTERPRETERS.iter().find(|one| one.names.iter().any(|start| name.starts_with(start)))?
    };
    let mut words = invocation.argv.iter().skip(1);
    while let Some(word) = words.next() {
        let text = word.text.as_str();
        if text == "--" {
            return words.next();
        }
        if text.len() < 2 || !text.starts_with(['-', '+']) {
            if interpreter.verbs.contains(&text) {
                continue;
            }
            return (text != "-").then_some(word);
        }
        let long = text.starts_with("--");
        if matches!(text, "--eval" | "--print") || (!long && text.contains(|letter| interpreter.code.contains(letter))) {
            return None;
        }
        if interpreter.valued.contains(&text) {
            words.next();
        }
    }
    None
}
