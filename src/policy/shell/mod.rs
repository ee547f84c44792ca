//! Analyses a command line statically, without running anything. Finds every simple command, including commands hidden
//! behind wrappers, quotes and variables.

mod arg;
mod assignments;
mod braces;
pub(crate) mod builtins;
mod confusables;
mod entered;
mod escapes;
mod expand;
mod fields;
mod grammar;
mod lexer;
mod names;
pub(crate) mod option_verdict;
pub(crate) mod options;
pub(crate) mod pattern;
mod resolve;
mod run_files;
mod runners;
mod session_lines;
mod word;
mod wrappers;

pub(crate) use arg::Arg;
pub(crate) use confusables::is_deceptive_name;
pub(crate) use entered::EnteredLine;
pub use entered::entered;
pub(crate) use resolve::parses_its_text;
pub(crate) use run_files::files_run_by;
pub use run_files::run_files;
#[cfg(test)]
pub(crate) use runners::lines as runner_lines;
pub(crate) use runners::runs_operands;
pub use session_lines::{keeps_meaning, runs_input};
pub(crate) use wrappers::inner_starts;

use crate::policy::guard;
use assignments::collect;
use expand::LineAssignments;
use lexer::{Scan, ScannedCommand, scan};
use std::collections::HashSet;

/// Length, in bytes, at which a line is rejected, because the kernel does not accept a longer argument.
const MAX_BYTES: usize = 128 * 1024;
/// Maximum length, in bytes, of a line that can be shown in full.
const SHOWN_BYTES: usize = 8 * 1024;
const DEPTH: usize = 24;
/// Number of commands in a line above which repeated plain commands are judged only once.
const REPEATED: usize = 256;
/// Length, in bytes, up to which a line is always checked by the grammar.
const RECOVERED: usize = 512;
/// Maximum number of printed strings that are combined with commands that take words from standard input.
const MAX_PRINTED: usize = 32;
/// Maximum number of analysed commands, which limits the work for nested strings.
const MAX_COMMANDS: usize = 200_000;
const MAX_NESTED_BYTES: usize = 384 * 1024;

const TOO_LONG: &str = "the line is too long to show in full";
pub(crate) const SUBSTITUTION: &str = "the result of a substitution is known only at run time";
const EXPANSION: &str = "the result of an expansion is known only at run time";
const ASSIGNMENT: &str = "a variable assignment can change what a program does";
const HERE_STRING: &str = "allow rules do not cover here-strings";
const ALIAS: &str = "the line redefines the program name";
pub(crate) const COMPUTED: &str = "the program name is known only at run time";
pub(crate) const LONGER_THAN_A_LINE: &str = "the command line exceeds the limit of 128 KiB; move it into a script";
pub(crate) const HOPELESS: &str = "the line is too complex to analyse; split it into simpler commands";

/// A parsed command line.
#[derive(Debug, Default)]
pub(crate) struct ParsedLine {
    pub parts: Vec<SimpleCommand>,
    /// Reasons why allow rules permit no part of the line.
    pub floors: Vec<&'static str>,
    /// Whether the line is too complex to be judged at all.
    pub hopeless: bool,
    /// Whether the line repeatedly starts copies of itself, like a fork bomb.
    pub multiplies: bool,
    /// Whether the line is longer than any system accepts.
    pub too_long: bool,
    /// Whether parsing failed because of an internal error.
    pub failed: bool,
}

/// A simple command, including all commands that it would start.
#[derive(Debug, Clone, Default)]
pub(crate) struct SimpleCommand {
    pub text: String,
    pub invocations: Vec<Invocation>,
    /// Reasons why allow rules do not permit the command.
    pub floors: Vec<&'static str>,
    pub redirects: Vec<FileRedirect>,
    /// Whether the command runs unknown code.
    pub unknown_code: bool,
    /// Whether the command executes its input.
    pub reads_code: bool,
    pub piped: bool,
    /// Text of the command whose output this command reads, if there is exactly one.
    pub input_from: Option<String>,
    /// Whether some combinations of word values were not analysed.
    pub narrowed: bool,
    /// Whether the first word is computed or differs between combinations.
    pub renames: bool,
    /// Names of the variables set for the command, whose values are in `assigned`.
    pub variables: Vec<String>,
    pub assigned: Vec<Arg>,
    /// Here-strings passed to the command, and here-documents in the surrounding text.
    pub input: Vec<Arg>,
    /// Hosts in the line's URLs, if the command runs code that the line downloads.
    pub downloaded: Option<Vec<String>>,
}

/// A program and its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Invocation {
    pub argv: Vec<Arg>,
    /// Whether another program in the line starts this one.
    pub wrapped: bool,
}

impl Invocation {
    /// Returns the program name without its directory.
    pub(crate) fn base(&self) -> &str {
        base(&self.argv[0].text)
    }
}

/// Returns whether a builtin changes the working directory.
pub(crate) fn changes_directory(name: &str) -> bool {
    matches!(name, "cd" | "pushd" | "popd" | "chdir")
}

pub(crate) fn base(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

/// A file that the shell opens for a command.
#[derive(Debug, Clone)]
pub(crate) struct FileRedirect {
    pub reads_only: bool,
    /// File name, or `None` if it can be determined only at run time.
    pub target: Option<Arg>,
}

/// Parses a command line. Parsing never fails: if part of the line cannot be determined, `floors` explains why allow
/// rules do not permit it.
pub(crate) fn read(line: &str) -> ParsedLine {
    if line.len() >= MAX_BYTES {
        return ParsedLine { too_long: true, ..ParsedLine::default() };
    }
    guard::catch_panic(|| parse_uncached(line)).unwrap_or_else(|| ParsedLine {
        hopeless: true,
        failed: true,
        ..ParsedLine::default()
    })
}

fn parse_uncached(line: &str) -> ParsedLine {
    #[cfg(test)]
    tests::fault(line);
    let (whole, values) = parse_pass(line, LineAssignments::default());
    // Code in a command's arguments can set a variable that an earlier command uses.
    match values {
        Some(values) if line.len() <= SHOWN_BYTES => parse_pass(line, values.next_pass()).0,
        _ => whole,
    }
}

/// Returns the prefixes of a command line that can run on their own, shortest first, each with its number of simple
/// commands.
pub fn first_commands(line: &str) -> Vec<(&str, usize)> {
    if line.len() > SHOWN_BYTES {
        return Vec::new();
    }
    let ends = guard::catch_panic(|| grammar::sequence_ends(line)).unwrap_or_default();
    let all = if ends.is_empty() { Vec::new() } else { read(line).parts };
    let first = |end: usize| {
        let parts = read(&line[..end]).parts;
        let same = parts.len() < all.len() && parts.iter().zip(&all).all(|(part, of_all)| part.text == of_all.text);
        same.then_some((&line[..end], parts.len()))
    };
    ends.into_iter().filter_map(first).collect()
}

/// Makes one pass over a line using the variables known so far. If the pass finds more variables after it has already
/// used some, it also returns them.
fn parse_pass(line: &str, values: LineAssignments) -> (ParsedLine, Option<LineAssignments>) {
    let mut engine = Analyzer { values, ..Analyzer::default() };
    let mut whole = ParsedLine { floors: confusables::oddities(line), ..ParsedLine::default() };
    if line.len() > SHOWN_BYTES {
        whole.floors.push(TOO_LONG);
    }
    let scan = scan(line);
    whole.floors.extend_from_slice(&scan.oddities);
    if !scan.substitutions.is_empty() {
        whole.floors.push(SUBSTITUTION);
    }
    // Only an allow verdict needs the grammar. For a long line, recovering from a parse error is not worth the time.
    let wanted = line.len() <= RECOVERED || (line.len() <= SHOWN_BYTES && whole.floors.is_empty() && is_plain(&scan));
    if wanted && let Some(floor) = grammar::disagreement(line, &scan) {
        whole.floors.push(floor);
        whole.parts.extend(engine.analyze_unseen(line, &scan));
    }
    whole.multiplies = is_fork_bomb(line, &scan.functions);
    let mut parts = engine.analyze_scan(scan, 0);
    if let Some(joined) = join_lines(line) {
        let scan = lexer::scan(&joined);
        scan.oddities
            .iter()
            .filter(|odd| !whole.floors.contains(odd))
            .copied()
            .collect::<Vec<_>>()
            .into_iter()
            .for_each(|odd| whole.floors.push(odd));
        if !scan.substitutions.is_empty() {
            whole.floors.push(SUBSTITUTION);
        }
        whole.parts.extend(engine.analyze_scan(scan, 0));
    }
    add_unknown(&mut parts, std::mem::take(&mut whole.parts));
    whole.parts = parts;
    engine.analyze_input(&mut whole.parts);
    whole.hopeless = engine.hopeless || engine.values.overflow;
    let late = engine.values.learnt > engine.learnt_first;
    (whole, late.then_some(engine.values))
}

/// Returns the number of words that name the program and its subcommand, which must not be lists in braces.
fn name_count(argv: &[Arg]) -> usize {
    let is_reader = argv.first().is_some_and(|program| program.text != "git")
        && matches!(options::check_options(argv), option_verdict::OptionVerdict::Reads { .. });
    if is_reader { 1 } else { 2 }
}

/// Returns whether the scan found no construct that prevents allow rules from matching.
fn is_plain(scan: &Scan) -> bool {
    scan.commands.iter().all(|command| {
        command.oddities.is_empty() && command.assignments.is_empty() && command.words.iter().all(|word| word.literal().is_some())
    })
}

/// Returns whether a line is a fork bomb: `:(){ :|:& };:`.
fn is_fork_bomb(line: &str, functions: &[String]) -> bool {
    if functions.is_empty() {
        return false;
    }
    let dense: String = line.chars().take(SHOWN_BYTES).filter(|letter| !letter.is_whitespace()).collect();
    functions.iter().take(REPEATED).any(|function| {
        !function.is_empty()
            && (dense.contains(&format!("{function}|{function}&")) || dense.contains(&format!("{function}&{function}")))
    })
}

/// Joins lines that end with a backslash, which a shell does before it recognizes `$(` or an operator. Returns `None`
/// if there are no such lines.
fn join_lines(text: &str) -> Option<String> {
    text.contains("\\\n").then(|| text.replace("\\\n", ""))
}

/// Adds the parts of another reading that start programs not found so far.
fn add_unknown(parts: &mut Vec<SimpleCommand>, others: Vec<SimpleCommand>) {
    if others.is_empty() {
        return;
    }
    let known: HashSet<Vec<Arg>> =
        parts.iter().flat_map(|part| &part.invocations).map(|invocation| invocation.argv.clone()).collect();
    parts.extend(others.into_iter().filter(|other| !other.invocations.iter().all(|one| known.contains(&one.argv))));
}

/// State of the analysis of one line.
#[derive(Debug, Default)]
struct Analyzer {
    values: LineAssignments,
    /// Strings that commands in the line would print or receive as input.
    printed: Vec<(String, usize)>,
    /// Whether a shell in the line executes its input.
    takes_input: bool,
    /// Files that commands in the line write.
    written: Vec<String>,
    run_files: Vec<String>,
    /// Commands to which `xargs` appends words from standard input.
    appended: Vec<(Vec<Arg>, usize)>,
    hopeless: bool,
    seen: usize,
    nested_bytes: usize,
    /// Number of assignments found when the line itself was scanned.
    learnt_first: usize,
    /// Aliases that are currently being expanded, which must not expand to themselves.
    open_aliases: Vec<String>,
}

impl Analyzer {
    fn text(&mut self, text: &str, depth: usize) -> Vec<SimpleCommand> {
        self.nested_bytes += text.len();
        if depth > DEPTH || self.nested_bytes > MAX_NESTED_BYTES {
            self.hopeless = true;
            return Vec::new();
        }
        let mut parts = self.analyze_scan(scan(text), depth);
        if let Some(joined) = join_lines(text) {
            let others = self.analyze_scan(scan(&joined), depth);
            add_unknown(&mut parts, others);
        }
        parts
    }

    fn analyze_scan(&mut self, scan: Scan, depth: usize) -> Vec<SimpleCommand> {
        self.hopeless |= scan.exhausted;
        collect(&mut self.values, &scan);
        if depth == 0 {
            self.learnt_first = self.values.learnt;
        }
        let mut parts = Vec::new();
        let mut plain = HashSet::new();
        for command in &scan.commands {
            if scan.commands.len() > REPEATED && plain.contains(&(command.text.as_str(), command.piped)) {
                continue;
            }
            self.seen += 1;
            if self.seen > MAX_COMMANDS {
                self.hopeless = true;
                return parts;
            }
            let mut simple = self.command(command, depth);
            if command.oddities.contains(&lexer::DOCUMENT) {
                simple.input.extend(scan.documents.iter().map(Arg::plain));
            }
            simple.input_from = command.input_from.map(|at| scan.commands[at].text.clone());
            if simple.floors.is_empty() && simple.invocations.len() == 1 && simple.redirects.is_empty() {
                plain.insert((command.text.as_str(), command.piped));
            }
            parts.push(simple);
        }
        self.printed.extend(scan.documents.into_iter().map(|text| (text, depth + 1)));
        for inner in &scan.substitutions {
            parts.extend(self.text(inner, depth + 1));
        }
        parts
    }

    fn command(&mut self, command: &ScannedCommand, depth: usize) -> SimpleCommand {
        let mut simple = SimpleCommand {
            text: command.text.clone(),
            floors: command.oddities.clone(),
            piped: command.piped,
            ..SimpleCommand::default()
        };
        if !command.assignments.is_empty() {
            simple.floors.push(ASSIGNMENT);
            simple.variables = command.assignments.iter().map(|assignment| assignment.name.clone()).collect();
            let values = command.assignments.iter().flat_map(|assignment| self.values.readings(&assignment.values));
            simple.assigned = values.flatten().collect();
            self.run_by_variables(command, &mut simple, depth);
        }
        for redirect in &command.redirects {
            self.redirect(&redirect.operator, &redirect.target, &mut simple, depth);
        }
        self.values.narrowed = false;
        let readings = self.values.readings(&command.words);
        simple.narrowed = self.values.narrowed;
        simple.renames = command.words.first().is_some_and(|word| word.literal().is_none() || word.raw.contains('{'));
        let literal = command.words.iter().all(|word| word.literal().is_some());
        let operands = command.words.iter().skip(readings.first().map_or(1, |argv| name_count(argv)));
        let lists = operands.filter_map(|word| braces::plain_list_len(&word.raw));
        let count = command.words.len() + lists.map(|len| len - 1).sum::<usize>();
        if !literal || readings.len() != 1 || readings[0].len() != count {
            simple.floors.push(EXPANSION);
        }
        for argv in readings {
            self.resolve_command(argv, &mut simple, depth, false);
        }
        simple
    }

    fn redirect(&mut self, operator: &str, target: &word::Word, simple: &mut SimpleCommand, depth: usize) {
        let mut fields: Vec<Arg> = self.values.readings(std::slice::from_ref(target)).into_iter().flatten().collect();
        let target = if fields.len() == 1 && target.literal().is_some() { fields.pop() } else { None };
        if operator == "<<<" {
            simple.floors.push(HERE_STRING);
            simple.input.extend(target.into_iter().chain(fields));
            self.printed.extend(simple.input.iter().map(|arg| (arg.text.clone(), depth + 1)));
            return;
        }
        let text = target.as_ref().map_or("", |arg| arg.text.as_str());
        let descriptor =
            matches!(operator, ">&" | "<&") && (text == "-" || (!text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())));
        if !(descriptor || text == "/dev/null") {
            if operator != "<" && !text.is_empty() {
                self.written.push(text.trim_start_matches("./").to_owned());
            }
            // Opening one of these files connects to the network. An unknown name may be one of them.
            let connects = text.is_empty() || text.starts_with("/dev/tcp/") || text.starts_with("/dev/udp/");
            simple.redirects.push(FileRedirect { reads_only: operator == "<" && !connects, target });
        }
    }

    /// Analyses the commands that the grammar finds but the scanner does not.
    fn analyze_unseen(&mut self, line: &str, scanned: &Scan) -> Vec<SimpleCommand> {
        let mut parts = Vec::new();
        for text in grammar::commands(line) {
            if !scanned.commands.iter().any(|command| command.text == text) {
                parts.extend(self.text(&text, 1));
            }
        }
        parts
    }

    /// Adds the commands in strings that a shell may execute, regardless of which command prints the strings.
    fn analyze_input(&mut self, parts: &mut Vec<SimpleCommand>) {
        for text in std::mem::take(&mut self.values.prompts) {
            for inner in resolve::find_substitutions(&text) {
                parts.extend(self.text(&inner, 1));
            }
        }
        self.append(parts);
        let written = self.written.iter().collect::<HashSet<_>>();
        if !self.takes_input && !self.run_files.iter().any(|file| written.contains(file)) {
            return;
        }
        let mut done = 0;
        while done < self.printed.len() {
            let (text, depth) = self.printed[done].clone();
            done += 1;
            parts.extend(self.text(&text, depth));
        }
    }

    /// Adds the commands that `xargs` would run with words that the line prints.
    fn append(&mut self, parts: &mut Vec<SimpleCommand>) {
        let texts: Vec<String> = self.printed.iter().take(MAX_PRINTED).map(|(text, _)| text.clone()).collect();
        let commands = std::mem::take(&mut self.appended);
        for (argv, depth) in commands.iter().take(MAX_PRINTED) {
            for text in texts.iter().filter(|text| text.len() <= SHOWN_BYTES) {
                let mut whole: Vec<Arg> = argv.iter().map(|arg| Arg::plain(arg.text.replace("{}", text))).collect();
                if whole.iter().zip(argv).all(|(one, other)| one.text == other.text) {
                    whole.extend(text.split_ascii_whitespace().map(Arg::plain));
                }
                let mut simple = SimpleCommand {
                    text: whole.iter().map(|arg| arg.text.as_str()).collect::<Vec<_>>().join(" "),
                    ..SimpleCommand::default()
                };
                self.resolve_command(whole, &mut simple, depth + 1, true);
                parts.push(simple);
            }
        }
    }
}

#[cfg(test)]
pub(crate) use tests::FAULTY;

#[cfg(test)]
mod tests;
