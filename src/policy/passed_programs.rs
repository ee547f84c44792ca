//! Finds blocked programs in the arguments, input or variables of a command that does not start them according to the
//! tables.

use super::git::without_messages;
use super::shell::option_verdict::OptionVerdict;
use super::shell::options::check_options;
use super::shell::{Arg, Invocation, SimpleCommand, base, inner_starts, parses_its_text};

/// Maximum number of words per command that are checked for blocked programs.
const MAX_WORDS: usize = 512;

/// Programs whose arguments are file names, or text that is only printed or compared.
const NAMES_AND_TEXT: &[&str] = &[
    "basename", "cd", "chmod", "chown", "cmp", "comm", "cp", "cut", "date", "df", "diff", "dirname", "du", "echo", "file", "jq",
    "ln", "mkdir", "mv", "popd", "printf", "pushd", "readlink", "realpath", "rm", "rmdir", "seq", "sleep", "stat", "test",
    "touch", "tr", "tree", "type", "uniq", "whereis", "which", "[", "[[",
];

/// Programs that store, send or print their input without running any of it.
const STORES_INPUT: &[&str] =
    &["git", "gh", "glab", "tee", "patch", "base64", "pbcopy", "xclip", "xsel", "wl-copy", "mail", "sponge", "less", "more"];

/// Returns why a command could start a program that `is_blocked` recognizes. `is_blocked` receives the words from the
/// name of a possible program onwards.
pub(super) fn blocked_program_reason(part: &SimpleCommand, is_blocked: impl Fn(&[Arg]) -> bool) -> Option<String> {
    let found = |words: Vec<Arg>| (0..words.len()).find(|at| is_blocked(&words[*at..])).map(|at| words[at].text.clone());
    for invocation in &part.invocations {
        if let Some(word) = found(candidate_programs(invocation)) {
            return Some(format!("`{}` could start `{word}`, which this policy blocks", invocation.base()));
        }
    }
    if let Some(reader) = part.invocations.iter().find(|invocation| may_run_input(invocation))
        && let Some(word) = found(program_words(&part.input))
    {
        return Some(format!("`{}` could start `{word}` from its input, which this policy blocks", reader.base()));
    }
    let word = part.invocations.first().and_then(|_| found(program_words(&part.assigned)))?;
    Some(format!("sets a variable to `{word}`, which this policy blocks"))
}

/// Returns whether a program may start other programs named in its arguments. Returns `false` for shells, because the
/// command line passed to them is parsed instead.
fn may_run_arguments(invocation: &Invocation) -> bool {
    let name = invocation.base();
    let prints = NAMES_AND_TEXT.contains(&name) || parses_its_text(name);
    !prints && !matches!(check_options(&invocation.argv), OptionVerdict::Reads { .. })
}

/// Returns whether a program may start other programs named in its input.
fn may_run_input(invocation: &Invocation) -> bool {
    may_run_arguments(invocation) && !STORES_INPUT.contains(&invocation.base())
}

/// Returns the words in the arguments that may be program names. Programs found by the runner tables or by the parser
/// are judged separately.
fn candidate_programs(invocation: &Invocation) -> Vec<Arg> {
    let (name, argv) = (invocation.base(), &invocation.argv);
    if !may_run_arguments(invocation) {
        return Vec::new();
    }
    if name == "git" {
        return program_words(&texts_of_git(without_messages(argv).as_deref().unwrap_or(argv)));
    }
    // Most tmux commands start no program, so all arguments are checked.
    let start = inner_starts(name, argv).last().copied().filter(|_| name != "tmux");
    let own = start.unwrap_or(argv.len());
    program_words(&argv[1..own])
}

/// Returns the git arguments in which a program name may be relevant: option values, settings and free text. Names of
/// branches, files and remotes are excluded, because they are arbitrary.
fn texts_of_git(argv: &[Arg]) -> Vec<Arg> {
    let is_text = |text: &str| text.contains(|letter: char| letter.is_whitespace() || matches!(letter, '=' | '!'));
    let after_option = |at: usize| argv[at - 1].text.starts_with('-');
    let texts = (1..argv.len()).filter(|at| is_text(&argv[*at].text) || after_option(*at)).map(|at| argv[at].clone());
    // `git grep -nOPAGER`: a value that is attached to its option.
    let pagers = argv.iter().filter(|arg| arg.text.starts_with('-') && !arg.text.starts_with("--"));
    texts.chain(pagers.filter_map(|arg| arg.text.split_once('O').map(|(_, pager)| Arg::plain(pager)))).collect()
}

/// Splits arguments such as `--run=sudo`, `EXEC:sudo` and `system("sudo id")` into words that may be program names.
fn program_words(args: &[Arg]) -> Vec<Arg> {
    let in_name = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.' | '/');
    let words = args.iter().flat_map(|arg| arg.text.split(move |letter| !in_name(letter)));
    words.filter(|word| !base(word).is_empty()).take(MAX_WORDS).map(Arg::plain).collect()
}
