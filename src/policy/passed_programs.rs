//! Finds blocked programs in the arguments, input or variables of a command that does not start them according to the
//! tables.

use super::computed_code::{CONCEALS_TEXT, computes_in_arguments, computes_in_input};
use super::git::without_messages;
use super::shell::option_verdict::OptionVerdict;
use super::shell::options::check_options;
use super::shell::{
    Arg, Invocation, ParsedLine, SUBSTITUTION, SimpleCommand, base, inner_starts, parses_its_text, runs_operands,
};

/// Maximum number of words per command that are checked for blocked programs.
const MAX_WORDS: usize = 2048;

/// Programs whose arguments are file names, or text that is only printed or compared.
const NAMES_AND_TEXT: &[&str] = &[
    "basename", "cd", "chmod", "chown", "cmp", "comm", "cp", "cut", "date", "df", "diff", "dirname", "du", "echo", "file", "jq",
    "ln", "mkdir", "mv", "popd", "printf", "pushd", "readlink", "realpath", "rm", "rmdir", "seq", "sleep", "stat", "test",
    "touch", "tr", "tree", "type", "uniq", "whereis", "which", "[", "[[",
];

/// Programs that give a file another name, under which it can run.
const RENAMING: &[&str] = &["cp", "gcp", "ln", "gln", "mv", "gmv", "install", "ginstall", "link"];
/// Programs that print the path of a program.
const LOCATING: &[&str] = &["which", "whereis", "type", "command"];

/// Programs that store, send or print their input without running any of it.
const STORES_INPUT: &[&str] =
    &["git", "gh", "glab", "tee", "patch", "base64", "pbcopy", "xclip", "xsel", "wl-copy", "mail", "sponge", "less", "more"];

/// Returns why a command could start a program that `is_blocked` recognizes. `is_blocked` receives the words from the
/// name of a possible program onwards.
pub(super) fn blocked_program_reason(
    line: &ParsedLine,
    part: &SimpleCommand,
    is_blocked: impl Fn(&[Arg]) -> bool,
) -> Option<String> {
    let found = |words: Vec<Arg>| (0..words.len()).find(|at| is_blocked(&words[*at..])).map(|at| words[at].text.clone());
    for invocation in &part.invocations {
        if let Some(word) = found(candidate_programs(invocation)) {
            return Some(format!("`{}` could start `{word}`, which this policy blocks", invocation.base()));
        }
        if may_run_arguments(invocation) && computes_in_arguments(&own_words(invocation)) {
            return Some(CONCEALS_TEXT.to_owned());
        }
    }
    if let Some(word) = copied_programs(line, part).find(|word| is_blocked(std::slice::from_ref(word))) {
        return Some(format!("could run `{}`, which this policy blocks, under another name", word.text));
    }
    let mut readers = part.invocations.iter().filter(|invocation| may_run_input(invocation));
    if let Some(reader) = readers.clone().next()
        && let Some(word) = found(program_words(&part.input))
    {
        return Some(format!("`{}` could start `{word}` from its input, which this policy blocks", reader.base()));
    }
    if readers.any(|reader| computes_in_input(&reader.argv, &part.input)) {
        return Some(CONCEALS_TEXT.to_owned());
    }
    let word = part.invocations.first().and_then(|_| found(program_words(&part.assigned)))?;
    Some(format!("sets a variable to `{word}`, which this policy blocks"))
}

/// Returns the operands and redirects that name files which the command could store under another name, without their
/// directories.
fn copied_programs(line: &ParsedLine, part: &SimpleCommand) -> impl Iterator<Item = Arg> {
    let substitutes = line.floors.contains(&SUBSTITUTION);
    let passes_on = line.parts.len() > 1 || part.redirects.iter().any(|redirect| !redirect.reads_only);
    let operands = part.invocations.iter().flat_map(move |invocation| {
        let name = invocation.base();
        let any = RENAMING.contains(&name) || substitutes && LOCATING.contains(&name);
        let is_named = move |arg: &&Arg| any || passes_on && arg.text.starts_with('/');
        invocation.argv[1..].iter().filter(is_named)
    });
    let inputs = part.redirects.iter().filter(|redirect| redirect.reads_only).filter_map(|redirect| redirect.target.as_ref());
    operands.chain(inputs).map(|arg| Arg { text: base(&arg.text).to_owned(), ..arg.clone() }).filter(|arg| !arg.text.is_empty())
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
    if !may_run_arguments(invocation) {
        return Vec::new();
    }
    program_words(&own_words(invocation)[1..])
}

/// Returns the name and those arguments of a program that do not belong to a program found by the runner tables. All
/// arguments are returned if that program is uncertain.
fn own_words(invocation: &Invocation) -> Vec<Arg> {
    let (name, argv) = (invocation.base(), &invocation.argv);
    if name == "git" {
        let words = texts_of_git(without_messages(argv).as_deref().unwrap_or(argv));
        return std::iter::once(argv[0].clone()).chain(words).collect();
    }
    // Most tmux commands start no program, and debuggers have commands of their own that do.
    let is_searched = matches!(name, "tmux" | "gdb" | "lldb");
    let is_text = |start: &usize| argv[*start].text.contains(char::is_whitespace) && !runs_operands(name);
    let start = inner_starts(name, argv).last().copied().filter(|start| !is_searched && !is_text(start));
    argv[..start.unwrap_or(argv.len())].to_vec()
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
/// Words with quotes or backslashes are also split after these are removed, as a shell or an interpreter would do.
fn program_words(args: &[Arg]) -> Vec<Arg> {
    let in_name = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.' | '/');
    let quotes = ['\'', '"', '\\'];
    let plain = args.iter().map(|arg| arg.text.clone());
    let unquoted = args.iter().filter(|arg| arg.text.contains(quotes)).map(|arg| arg.text.replace(quotes, ""));
    let split = |text: String| text.split(|letter| !in_name(letter)).map(Arg::plain).collect::<Vec<_>>();
    plain.chain(unquoted).flat_map(split).filter(|word| !base(&word.text).is_empty()).take(MAX_WORDS).collect()
}
