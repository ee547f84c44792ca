//! Static analysis of a shell line: every simple command, seen through wrappers, quotes and variables. Nothing runs.

mod assignments;
mod braces;
pub mod builtins;
mod confusables;
mod escapes;
mod expand;
mod fields;
mod grammar;
mod interactive;
mod lexer;
mod names;
pub mod options;
pub mod pattern;
mod resolve;
mod run_files;
mod runners;
mod word;
mod wrappers;

pub use confusables::hides;
pub use expand::Arg;
pub use interactive::{keeps_meaning, runs_input};
pub use run_files::run_files;
#[cfg(test)]
pub use runners::lines as runner_lines;

use crate::policy::guard;
use assignments::collect;
use expand::Values;
use lexer::{Command, Scan, scan};
use std::collections::HashSet;

/// More than the kernel takes as one argument, so it could not run anyway.
const MAX_BYTES: usize = 128 * 1024;
/// What a person can still be shown whole.
const SHOWN_BYTES: usize = 8 * 1024;
const DEPTH: usize = 24;
/// Lines of more commands than this have each plain one judged once.
const REPEATED: usize = 256;
/// Up to here the grammar is asked about any line.
const RECOVERED: usize = 512;
/// Texts that are held against commands taking words from their input.
const MAX_PRINTED: usize = 32;
/// Bounds the work on lines that nest texts in texts.
const MAX_COMMANDS: usize = 200_000;
const MAX_NESTED_BYTES: usize = 384 * 1024;

const TOO_LONG: &str = "the line is too long to show in full";
const SUBSTITUTION: &str = "the result of a substitution is known only at run time";
const EXPANSION: &str = "the result of an expansion is known only at run time";
const ASSIGNMENT: &str = "an assignment can change what a program does";
const HERE_STRING: &str = "allow rules do not cover here-strings";
const ALIAS: &str = "the line redefines the program's name";
pub const COMPUTED: &str = "the program's name is known only at run time";
pub const LONGER_THAN_A_LINE: &str = "the line exceeds the limit for a command line (128 KiB); put it into a file";
pub const HOPELESS: &str = "the line is too complex to analyse; split it into simpler commands";

/// A whole line, taken apart.
#[derive(Debug, Default)]
pub struct Line {
    pub parts: Vec<Simple>,
    /// Why no allow rule reaches any part of it.
    pub floors: Vec<&'static str>,
    /// It cannot be judged at all.
    pub hopeless: bool,
    /// Starts itself over and over.
    pub multiplies: bool,
    /// No system takes it.
    pub too_long: bool,
    /// Reading it failed by an error of ours.
    pub failed: bool,
}

/// One simple command with all that it would start.
#[derive(Debug, Default)]
pub struct Simple {
    pub text: String,
    pub invocations: Vec<Invocation>,
    /// Why no allow rule reaches it.
    pub floors: Vec<&'static str>,
    pub redirects: Vec<Redirected>,
    /// Runs text that nobody has seen.
    pub unknown_code: bool,
    /// Runs what it is given on its input.
    pub reads_code: bool,
    pub piped: bool,
    /// The text of the one command whose output it reads.
    pub input_from: Option<String>,
    /// Its words have more combinations of values than were looked at.
    pub narrowed: bool,
    /// Its first word is not the same in all of them, or computed.
    pub renames: bool,
    /// The variables that it is given.
    pub variables: Vec<String>,
}

/// A program with its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invocation {
    pub argv: Vec<Arg>,
    /// Started by another program of the line.
    pub wrapped: bool,
}

impl Invocation {
    /// The program's name without its directory.
    pub fn base(&self) -> &str {
        base(&self.argv[0].text)
    }
}

pub fn base(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

/// A file the shell opens for a command.
#[derive(Debug, Clone)]
pub struct Redirected {
    pub reads_only: bool,
    /// `None` where the name is known only at run time.
    pub target: Option<Arg>,
}

/// Takes a line apart. Never fails: what cannot be known is a floor.
pub fn read(line: &str) -> Line {
    if line.len() >= MAX_BYTES {
        return Line { too_long: true, ..Line::default() };
    }
    guard::contained(|| looked_at(line)).unwrap_or_else(|| Line { hopeless: true, failed: true, ..Line::default() })
}

fn looked_at(line: &str) -> Line {
    #[cfg(test)]
    tests::fault(line);
    let (whole, values) = look(line, Values::default());
    // A text that some command runs can give a variable the value that a command before it uses.
    match values {
        Some(values) if line.len() <= SHOWN_BYTES => look(line, values.again()).0,
        _ => whole,
    }
}

/// The beginnings of a line that can run without what follows, and how many of its simple commands each has; the shortest first.
pub fn first_commands(line: &str) -> Vec<(&str, usize)> {
    if line.len() > SHOWN_BYTES {
        return Vec::new();
    }
    let ends = guard::contained(|| grammar::sequence_ends(line)).unwrap_or_default();
    let all = if ends.is_empty() { Vec::new() } else { read(line).parts };
    let first = |end: usize| {
        let parts = read(&line[..end]).parts;
        let same = parts.len() < all.len() && parts.iter().zip(&all).all(|(part, of_all)| part.text == of_all.text);
        same.then_some((&line[..end], parts.len()))
    };
    ends.into_iter().filter_map(first).collect()
}

/// One look at a line by what is known of its variables, and all that is if more was learnt too late.
fn look(line: &str, values: Values) -> (Line, Option<Values>) {
    let mut engine = Engine { values, ..Engine::default() };
    let mut whole = Line { floors: confusables::oddities(line), ..Line::default() };
    if line.len() > SHOWN_BYTES {
        whole.floors.push(TOO_LONG);
    }
    let scan = scan(line);
    whole.floors.extend_from_slice(&scan.oddities);
    if !scan.substitutions.is_empty() {
        whole.floors.push(SUBSTITUTION);
    }
    // Only an allow needs the grammar, and what a long text has behind an error is not worth its time.
    let wanted = line.len() <= RECOVERED || (line.len() <= SHOWN_BYTES && whole.floors.is_empty() && plain(&scan));
    if wanted && let Some(floor) = grammar::disagreement(line, &scan) {
        whole.floors.push(floor);
        whole.parts.extend(engine.unseen(line, &scan));
    }
    whole.multiplies = multiplies(line, &scan.functions);
    let mut parts = engine.scanned(scan, 0);
    if let Some(joined) = joined(line) {
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
        whole.parts.extend(engine.scanned(scan, 0));
    }
    add_unknown(&mut parts, std::mem::take(&mut whole.parts));
    whole.parts = parts;
    engine.fed(&mut whole.parts);
    whole.hopeless = engine.hopeless || engine.values.overflow;
    let late = engine.values.learnt > engine.learnt_first;
    (whole, late.then_some(engine.values))
}

/// No command of it has anything that keeps it from an allow.
fn plain(scan: &Scan) -> bool {
    scan.commands.iter().all(|command| {
        command.oddities.is_empty() && command.assignments.is_empty() && command.words.iter().all(|word| word.literal().is_some())
    })
}

/// `:(){ :|:& };:`
fn multiplies(line: &str, functions: &[String]) -> bool {
    if functions.is_empty() {
        return false;
    }
    let dense: String = line.chars().take(SHOWN_BYTES).filter(|letter| !letter.is_whitespace()).collect();
    functions.iter().take(REPEATED).any(|function| {
        !function.is_empty()
            && (dense.contains(&format!("{function}|{function}&")) || dense.contains(&format!("{function}&{function}")))
    })
}

/// The text with its lines joined where a backslash ends one, which a shell does before it sees `$(` or an operator.
fn joined(text: &str) -> Option<String> {
    text.contains("\\\n").then(|| text.replace("\\\n", ""))
}

/// Adds the parts of another reading, as far as they start anything new.
fn add_unknown(parts: &mut Vec<Simple>, others: Vec<Simple>) {
    if others.is_empty() {
        return;
    }
    let known: HashSet<Vec<Arg>> =
        parts.iter().flat_map(|part| &part.invocations).map(|invocation| invocation.argv.clone()).collect();
    parts.extend(others.into_iter().filter(|other| !other.invocations.iter().all(|one| known.contains(&one.argv))));
}

/// What is learnt on the way through one line.
#[derive(Debug, Default)]
struct Engine {
    values: Values,
    /// Texts that commands of the line would print or be fed.
    printed: Vec<(String, usize)>,
    /// Some shell of the line runs its input.
    takes_input: bool,
    /// Files that commands of the line write, and those that it runs.
    written: Vec<String>,
    run_files: Vec<String>,
    /// Commands to which `xargs` adds words from its input.
    appended: Vec<(Vec<Arg>, usize)>,
    hopeless: bool,
    seen: usize,
    nested_bytes: usize,
    /// What was learnt from the line itself.
    learnt_first: usize,
    /// Aliases being put in, which do not mean themselves.
    open_aliases: Vec<String>,
}

impl Engine {
    fn text(&mut self, text: &str, depth: usize) -> Vec<Simple> {
        self.nested_bytes += text.len();
        if depth > DEPTH || self.nested_bytes > MAX_NESTED_BYTES {
            self.hopeless = true;
            return Vec::new();
        }
        let mut parts = self.scanned(scan(text), depth);
        if let Some(joined) = joined(text) {
            let others = self.scanned(scan(&joined), depth);
            add_unknown(&mut parts, others);
        }
        parts
    }

    fn scanned(&mut self, scan: Scan, depth: usize) -> Vec<Simple> {
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

    fn command(&mut self, command: &Command, depth: usize) -> Simple {
        let mut simple =
            Simple { text: command.text.clone(), floors: command.oddities.clone(), piped: command.piped, ..Simple::default() };
        if !command.assignments.is_empty() {
            simple.floors.push(ASSIGNMENT);
            simple.variables = command.assignments.iter().map(|assignment| assignment.name.clone()).collect();
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
        if !literal || readings.len() != 1 || readings[0].len() != command.words.len() {
            simple.floors.push(EXPANSION);
        }
        for argv in readings {
            self.see(argv, &mut simple, depth, false);
        }
        simple
    }

    fn redirect(&mut self, operator: &str, target: &word::Word, simple: &mut Simple, depth: usize) {
        let mut fields: Vec<Arg> = self.values.readings(std::slice::from_ref(target)).into_iter().flatten().collect();
        let target = if fields.len() == 1 && target.literal().is_some() { fields.pop() } else { None };
        if operator == "<<<" {
            simple.floors.push(HERE_STRING);
            self.printed.extend(target.into_iter().chain(fields).map(|arg| (arg.text, depth + 1)));
            return;
        }
        let text = target.as_ref().map_or("", |arg| arg.text.as_str());
        let descriptor =
            matches!(operator, ">&" | "<&") && (text == "-" || (!text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())));
        if !(descriptor || text == "/dev/null") {
            if operator != "<" && !text.is_empty() {
                self.written.push(text.trim_start_matches("./").to_owned());
            }
            // Opening these connects, and what cannot be told may be one of them.
            let connects = text.is_empty() || text.starts_with("/dev/tcp/") || text.starts_with("/dev/udp/");
            simple.redirects.push(Redirected { reads_only: operator == "<" && !connects, target });
        }
    }

    /// Commands that the grammar sees and the scanner does not.
    fn unseen(&mut self, line: &str, scanned: &Scan) -> Vec<Simple> {
        let mut parts = Vec::new();
        for text in grammar::commands(line) {
            if !scanned.commands.iter().any(|command| command.text == text) {
                parts.extend(self.text(&text, 1));
            }
        }
        parts
    }

    /// Texts that end in a shell's input, whoever prints them.
    fn fed(&mut self, parts: &mut Vec<Simple>) {
        for text in std::mem::take(&mut self.values.prompts) {
            for inner in resolve::substitutions_in(&text) {
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

    /// What `xargs` would run with the words that the line prints.
    fn append(&mut self, parts: &mut Vec<Simple>) {
        let texts: Vec<String> = self.printed.iter().take(MAX_PRINTED).map(|(text, _)| text.clone()).collect();
        let commands = std::mem::take(&mut self.appended);
        for (argv, depth) in commands.iter().take(MAX_PRINTED) {
            for text in texts.iter().filter(|text| text.len() <= SHOWN_BYTES) {
                let mut whole: Vec<Arg> = argv.iter().map(|arg| Arg::plain(arg.text.replace("{}", text))).collect();
                if whole.iter().zip(argv).all(|(one, other)| one.text == other.text) {
                    whole.extend(text.split_ascii_whitespace().map(Arg::plain));
                }
                let mut simple =
                    Simple { text: whole.iter().map(|arg| arg.text.as_str()).collect::<Vec<_>>().join(" "), ..Simple::default() };
                self.see(whole, &mut simple, depth + 1, true);
                parts.push(simple);
            }
        }
    }
}

#[cfg(test)]
pub use tests::FAULTY;

#[cfg(test)]
mod tests;
