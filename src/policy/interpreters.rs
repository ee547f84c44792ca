//! Interpreters and task runners, which run code from a project or from the command line. A saved rule allows them only
//! in a copy of the workspace, and never if the command line itself contains the code.

use super::shell::{Arg, SimpleCommand};

/// An interpreter. Its first argument that is not an option is the program to run.
struct Interpreter {
    /// Program names, which may be followed by a version (`python3.12`).
    names: &'static [&'static str],
    /// Options that may precede the program and neither contain nor load code.
    plain: &'static [&'static str],
    /// Options that may precede the program and take a value as the next word.
    valued: &'static [&'static str],
    /// Option whose value is the name of the module to run.
    module: &'static str,
    /// Options with which no program argument is needed.
    complete: &'static [&'static str],
}

const INTERPRETERS: &[Interpreter] = &[
    Interpreter {
        names: &["python", "pypy"],
        plain: &["-u", "-B", "-O", "-OO", "-I", "-s", "-S", "-E", "-q", "-v", "-b", "-bb", "-P"],
        valued: &["-X", "-W"],
        module: "-m",
        complete: &[],
    },
    Interpreter {
        names: &["node", "nodejs", "tsx", "ts-node"],
        plain: &["--test", "--no-warnings", "--enable-source-maps", "--trace-warnings", "--experimental-strip-types"],
        valued: &[],
        module: "",
        complete: &["--test"],
    },
    Interpreter { names: &["ruby"], plain: &["-w", "-W", "-W0", "-W1", "-W2"], valued: &[], module: "", complete: &[] },
    Interpreter { names: &["perl"], plain: &["-w", "-W", "-T"], valued: &[], module: "", complete: &[] },
    Interpreter { names: &["php", "lua", "luajit", "tclsh"], plain: &[], valued: &[], module: "", complete: &[] },
    Interpreter { names: &["Rscript", "julia"], plain: &["--vanilla"], valued: &[], module: "", complete: &[] },
];
/// Programs that run the tasks defined by a project.
const RUNNERS: &[&str] =
    &["make", "gmake", "just", "task", "npm", "pnpm", "yarn", "bun", "deno", "gradle", "mvn", "rake", "tox", "nox", "composer"];
/// Task runners that are stored in the project.
const WRAPPERS: &[&str] = &["./gradlew", "./mvnw"];
/// Python modules that run code from the command line or the terminal.
const CODE_MODULES: &[&str] =
    &["timeit", "code", "pdb", "trace", "profile", "cProfile", "runpy", "idlelib", "IPython", "ptpython", "debugpy", "asyncio"];
/// Words, alone or as `WORD=…`, that make a task runner read its tasks from the command line or standard input.
const CODE_WORDS: &[&str] = &[
    "-",
    "-c",
    "-e",
    "-E",
    "-p",
    "--eval",
    "--print",
    "--command",
    "--call",
    "--script-shell",
    "--shell",
    "--shell-arg",
    "--init-script",
    "-I",
    "--node-options",
    "eval",
    "repl",
    "/dev/stdin",
    "-f-",
    "--file=-",
    "--makefile=-",
];
/// Subcommands of task runners that precede the name of a task.
const RUNNING_TASKS: &[&str] = &["run", "run-script", "task", "exec", "x", "dlx"];
/// Options of task runners that affect only verbosity, parallelism or error handling.
const QUIET: &[&str] = &["-j", "-k", "-s", "-q", "-v", "--silent", "--quiet", "--verbose", "--keep-going"];

/// Type of program that runs other code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunnerKind {
    Interpreter,
    TaskRunner,
}

/// Returns the type of a program, based on its name. Returns `None` if the program does not run other code.
pub(crate) fn kind(name: &str) -> Option<RunnerKind> {
    if interpreter(name).is_some() {
        return Some(RunnerKind::Interpreter);
    }
    (RUNNERS.contains(&name) || WRAPPERS.contains(&name)).then_some(RunnerKind::TaskRunner)
}

fn interpreter(name: &str) -> Option<&'static Interpreter> {
    let version = |rest: &str| rest.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    INTERPRETERS.iter().find(|one| one.names.iter().any(|start| name.strip_prefix(start).is_some_and(version)))
}

/// Returns whether a rule may allow this command in a copy of the workspace. This is the case for an interpreter or a
/// task runner that is given the program or task to run.
pub(crate) fn is_kept_in_a_copy(part: &SimpleCommand) -> bool {
    let [invocation] = part.invocations.as_slice() else { return false };
    let is_plain = part.floors.is_empty() && part.redirects.is_empty() && !part.reads_code && !part.unknown_code;
    is_plain && kind(&invocation.argv[0].text).is_some() && program_word_count(&invocation.argv).is_ok()
}

/// Returns the number of words that identify the code to run. For a task runner, these are all words; for an
/// interpreter, they end with its script or module.
///
/// # Errors
/// If the command line or standard input contains the code, no rule can allow the command. Returns the reason as a verb
/// with its object.
pub(crate) fn program_word_count(argv: &[Arg]) -> Result<usize, String> {
    let by_line = |word: &str| format!("runs code from the command line (`{word}`)");
    let words = &argv[1..];
    if let Some(word) = words.iter().find(|word| !word.is_known()) {
        return Err(by_line(&word.text.replace('\0', "…")));
    }
    let Some(interpreter) = interpreter(&argv[0].text) else {
        let code = |word: &&Arg| CODE_WORDS.iter().any(|code| word.text == *code || word.text.starts_with(&format!("{code}=")));
        return words.iter().find(code).map_or(Ok(argv.len()), |word| Err(by_line(&word.text)));
    };
    let mut at = 0;
    while let Some(word) = words.get(at) {
        let text = word.text.as_str();
        at += 1;
        if !interpreter.module.is_empty() && text == interpreter.module {
            let module = words.get(at).map_or("", |module| module.text.as_str());
            let runs_words = CODE_MODULES.contains(&module.split('.').next().unwrap_or_default());
            return if module.is_empty() || module.starts_with('-') || runs_words { Err(by_line(text)) } else { Ok(at + 2) };
        }
        if interpreter.valued.contains(&text) {
            at += 1;
        } else if !text.starts_with('-') && !text.is_empty() {
            return if text.starts_with("/dev/") || text.starts_with("/proc/") { Err(by_line(text)) } else { Ok(at + 1) };
        } else if !interpreter.plain.contains(&text) {
            return Err(by_line(text));
        }
    }
    if words.iter().any(|word| interpreter.complete.contains(&word.text.as_str())) {
        return Ok(argv.len());
    }
    Err("runs code from its input".to_owned())
}

/// Returns whether a command that begins with these words can run arbitrary code. This is the case for an interpreter
/// without a program and for a task runner without a task.
pub(crate) fn can_run_any_code(words: &[String]) -> bool {
    let Some((name, rest)) = words.split_first() else { return true };
    match kind(name) {
        None => false,
        Some(RunnerKind::Interpreter) => {
            let argv: Vec<Arg> = words.iter().map(String::as_str).map(Arg::plain).collect();
            program_word_count(&argv).is_err()
        }
        Some(RunnerKind::TaskRunner) => {
            let task = rest.iter().find(|word| !RUNNING_TASKS.contains(&word.as_str()));
            task.is_none_or(|task| task.starts_with('-') || task.contains('='))
        }
    }
}

/// Returns a word after the first `count` words that could make a task runner run other code. Always returns `None` for
/// interpreters, because they pass all further words to their program.
pub(crate) fn adds_task(argv: &[Arg], count: usize) -> Option<&str> {
    if kind(&argv[0].text) != Some(RunnerKind::TaskRunner) {
        return None;
    }
    let is_quiet = |text: &str| QUIET.contains(&text) || text.strip_prefix("-j").is_some_and(|rest| rest.parse::<u8>().is_ok());
    argv.iter().skip(count.max(1)).map(|word| word.text.as_str()).find(|text| {
        let is_number = text.parse::<u8>().is_ok();
        (text.starts_with('-') || text.contains('=')) && !is_quiet(text) && !is_number
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(line: &str) -> Result<usize, String> {
        program_word_count(&line.split(' ').map(Arg::plain).collect::<Vec<_>>())
    }

    #[test]
    fn commands_name_their_script_or_contain_inline_code() {
        for (line, count) in [
            ("python x.py", 2),
            ("python3.12 -u -W error x.py -c y", 5),
            ("python -m pytest", 3),
            ("python -m pytest -c x.ini -", 3),
            ("node x.js -e 1", 2),
            ("node --test", 2),
            ("make test", 2),
            ("npm run build", 3),
            ("./gradlew test", 2),
        ] {
            assert_eq!(program(line), Ok(count), "{line}");
        }
        for line in [
            "python",
            "python -",
            "python -c x",
            "python -uc x",
            "python -m",
            "python -m timeit x",
            "python -m IPython.terminal x",
            "python /dev/stdin",
            "python --unknown x.py",
            "python -X",
            "node",
            "node -e x",
            "node -p x",
            "node --import data:text/javascript,x x.js",
            "node -r ./x y.js",
            "perl -pe s/a/b/ x",
            "ruby -e x",
            "php -r x",
            "make --eval=x",
            "make -f- x",
            "make SHELL=x -E y",
            "npm -c x",
            "just --command x",
            "deno eval x",
        ] {
            assert!(program(line).is_err(), "{line}");
        }
        let argv = |line: &str| line.split(' ').map(Arg::plain).collect::<Vec<_>>();
        assert_eq!(adds_task(&argv("make test -j 4 -k"), 2), None);
        assert_eq!(adds_task(&argv("make test X=y"), 2), Some("X=y"));
        assert_eq!(adds_task(&argv("make test -C sub"), 2), Some("-C"));
        assert_eq!(adds_task(&argv("python x.py --y=z"), 2), None);
    }

    #[test]
    fn rule_words_without_a_script_or_task_can_run_anything() {
        let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        for line in
            ["python", "python3 -c", "node -e", "python -m", "npm", "npm run", "make", "make -C", "make X=y", "yarn dlx", "just"]
        {
            assert!(can_run_any_code(&words(line)), "{line}");
        }
        for line in ["python x.py", "python -m pytest", "node x.js", "npm test", "npm run build", "make test", "cargo", "ls"] {
            assert!(!can_run_any_code(&words(line)), "{line}");
        }
    }

    #[test]
    fn only_programs_that_run_other_code_have_a_kind() {
        for (name, expected) in [
            ("python", Some(RunnerKind::Interpreter)),
            ("python3.12", Some(RunnerKind::Interpreter)),
            ("pythonx", None),
            ("node", Some(RunnerKind::Interpreter)),
            ("make", Some(RunnerKind::TaskRunner)),
            ("./gradlew", Some(RunnerKind::TaskRunner)),
            ("gradlew", None),
            ("bash", None),
            ("cargo", None),
            ("./x.sh", None),
        ] {
            assert_eq!(kind(name), expected, "{name}");
        }
    }
}
