//! Expands words using the assignments in the line itself. Values from outside the line are unknown.

use super::arg::{Arg, UNKNOWN, join};
use super::braces::braces;
use super::escapes::{Style, decode};
use super::fields::{FieldSplitter, assigns_tilde, has_tilde};
use super::lexer::{Assignment, Scan, ScannedCommand, scan};
use super::pattern;
use super::word::{Parameter, Word, WordPart};
use std::collections::{HashMap, HashSet};

/// Maximum number of readings of a command.
const MAX: usize = 512;
/// Maximum number of readings of a command up to which the values of several words are combined.
const MAX_READINGS: usize = 64;
/// Maximum number of words in all readings of one word in the line.
const MAX_ARGS: usize = 100_000;
/// Maximum number of values of a variable that a `+=` extends.
const MAX_APPENDED: usize = 8;
/// Maximum number of commands analysed to determine the output of a substitution.
const MAX_PRINTING: usize = 8;
const DEPTH: usize = 12;
/// Maximum number of steps when expanding variables that refer to other variables.
const STEPS: usize = 20_000;
const MAX_BYTES: usize = 256 * 1024;

/// All assignments in the line, regardless of the order in which they run.
#[derive(Debug, Default)]
pub(crate) struct LineAssignments {
    variables: HashMap<String, Vec<Vec<Word>>>,
    positional: Vec<Vec<Arg>>,
    pub aliases: HashMap<String, Vec<String>>,
    pub functions: HashSet<String>,
    /// Strings that `${x@P}` would expand again.
    pub prompts: Vec<String>,
    /// Whether `shift` moves the positional parameters.
    pub shifts: bool,
    /// Whether a command has more readings than the limit.
    pub overflow: bool,
    /// Whether any combination of values has been skipped since the last reset.
    pub narrowed: bool,
    /// Number of assignments found so far.
    pub learnt: usize,
    /// Variables that are currently being expanded, which must not refer to themselves.
    open: Vec<String>,
    /// Field separators set by the line.
    separators: String,
    /// Whether the line sets `IFS`, in which case `"${x[*]}"` is not joined with spaces.
    joins_otherwise: bool,
    steps: usize,
}

impl LineAssignments {
    pub(crate) fn assign(&mut self, assignment: &Assignment) {
        if assignment.name == "IFS" {
            self.joins_otherwise = true;
            self.separators.extend(assignment.values.iter().filter_map(Word::literal));
        }
        let values = self.variables.entry(assignment.name.clone()).or_default();
        if assignment.appends {
            let longer: Vec<Vec<Word>> =
                values.iter().take(MAX_APPENDED).map(|before| append_values(before, &assignment.values)).collect();
            values.extend(longer.into_iter().filter(|longer| longer.iter().map(|word| word.pieces.len()).sum::<usize>() < MAX));
        }
        if values.len() >= MAX {
            self.overflow = true;
        } else if !values.contains(&assignment.values) {
            values.push(assignment.values.clone());
            self.learnt += 1;
        }
    }

    pub(crate) fn assign_text(&mut self, name: &str, text: &str) {
        let pieces = vec![WordPart::Text { text: text.to_owned(), quoted: true }];
        let word = Word { raw: text.to_owned(), pieces };
        self.assign(&Assignment { name: name.to_owned(), values: vec![word], appends: false });
    }

    /// Prepares for another pass over the same line, keeping the assignments found so far.
    pub(crate) fn next_pass(self) -> Self {
        Self { steps: 0, prompts: Vec::new(), ..self }
    }

    pub(crate) fn position(&mut self, args: &[Arg]) {
        if !args.is_empty() && !self.positional.iter().any(|known| known == args) && self.positional.len() < MAX {
            self.positional.push(args.to_vec());
            self.learnt += 1;
        }
    }

    /// Returns the possible readings of a command's words.
    pub(crate) fn readings(&mut self, words: &[Word]) -> Vec<Vec<Arg>> {
        let mut readings: Vec<Vec<Arg>> = vec![Vec::new()];
        for word in words {
            let fields = match constant(word) {
                Some(arg) => {
                    for reading in &mut readings {
                        reading.push(arg.clone());
                    }
                    continue;
                }
                None => self.expand(word, 0),
            };
            if let [only] = fields.as_slice() {
                for reading in &mut readings {
                    reading.extend(only.iter().cloned());
                }
                continue;
            }
            self.narrowed |= readings.len() * fields.len() > MAX_READINGS;
            readings = pairs(readings.len(), fields.len(), MAX_READINGS)
                .map(|(reading, field)| readings[reading].iter().chain(&fields[field]).cloned().collect())
                .collect();
        }
        readings
    }

    /// Returns every list of fields to which a word can expand.
    fn expand(&mut self, word: &Word, depth: usize) -> Vec<Vec<Arg>> {
        let Some(words) = braces(word) else {
            self.overflow = true;
            return vec![vec![Arg::plain(UNKNOWN.to_string())]];
        };
        let mut lists: Vec<Vec<Arg>> = vec![Vec::new()];
        for word in &words {
            let fields = self.expand_one(word, depth);
            if let [only] = fields.as_slice() {
                for list in &mut lists {
                    list.extend(only.iter().cloned());
                }
                continue;
            }
            let most = MAX_READINGS.min(MAX_ARGS / words.len()).max(1);
            self.narrowed |= lists.len() * fields.len() > most;
            lists = pairs(lists.len(), fields.len(), most)
                .map(|(list, field)| lists[list].iter().chain(&fields[field]).cloned().collect())
                .collect();
            if lists.len() * words.len() > MAX_ARGS {
                self.overflow = true;
                return vec![vec![Arg::plain(UNKNOWN.to_string())]];
            }
        }
        lists
    }

    fn expand_one(&mut self, word: &Word, depth: usize) -> Vec<Vec<Arg>> {
        self.steps += 1;
        if self.steps > STEPS {
            self.overflow = true;
            return vec![vec![Arg::plain(UNKNOWN.to_string())]];
        }
        let mut states = vec![FieldSplitter::default()];
        let glued = word.pieces.len() > 1;
        let tilde = has_tilde(word);
        for piece in &word.pieces {
            let (options, quoted) = match piece {
                WordPart::Text { text, quoted } => {
                    for state in &mut states {
                        state.push_literal(text, *quoted, tilde);
                    }
                    continue;
                }
                WordPart::Parameter { parameter, quoted } => (self.parameter(parameter, glued, depth), *quoted),
                WordPart::Substitution { inner, quoted } => (self.substitution(inner, glued, depth), *quoted),
                WordPart::Opaque => (vec![vec![UNKNOWN.to_string()]], true),
            };
            if let [only] = options.as_slice()
                && (quoted || self.separators.is_empty())
            {
                for state in &mut states {
                    state.push_value(only, quoted);
                }
                let bytes: usize = states.iter().filter_map(|state| state.current.as_ref()).map(|arg| arg.text.len()).sum();
                if bytes > MAX_BYTES {
                    self.overflow = true;
                    return vec![vec![Arg::plain(UNKNOWN.to_string())]];
                }
                continue;
            }
            let mut next = Vec::new();
            self.narrowed |= states.len() * options.len() > MAX;
            for (state, option) in pairs(states.len(), options.len(), MAX) {
                let (mut state, option) = (states[state].clone(), &options[option]);
                if quoted || self.separators.is_empty() {
                    state.push_value(option, quoted);
                } else {
                    let split: Vec<String> =
                        option.iter().map(|text| text.replace(|c| self.separators.contains(c), " ")).collect();
                    state.push_value(&split, false);
                }
                next.push(state);
            }
            let bytes: usize = next.iter().filter_map(|state| state.current.as_ref()).map(|arg| arg.text.len()).sum();
            if bytes > MAX_BYTES {
                self.overflow = true;
                return vec![vec![Arg::plain(UNKNOWN.to_string())]];
            }
            states = next;
        }
        if assigns_tilde(word) {
            for state in &mut states {
                state.push_literal(&UNKNOWN.to_string(), true, false);
            }
        }
        states.into_iter().map(FieldSplitter::finish).collect()
    }

    /// Returns the possible values of a parameter, each of which is a list of elements. Only arrays and `$@` can have
    /// more than one element.
    fn parameter(&mut self, parameter: &Parameter, glued: bool, depth: usize) -> Vec<Vec<String>> {
        let unknown =
            || if glued { vec![vec![String::new()], vec![UNKNOWN.to_string()]] } else { vec![vec![UNKNOWN.to_string()]] };
        if depth >= DEPTH {
            self.overflow = true;
            return unknown();
        }
        let mut values = self.stored_value(&parameter.name, parameter.all, depth);
        if parameter.indirect {
            let names: Vec<String> = values.iter().flatten().cloned().collect();
            values = names.iter().flat_map(|name| self.stored_value(name, parameter.all, depth + 1)).collect();
        }
        if let (":=" | "=", Some(word)) = (parameter.operator.as_str(), &parameter.operand) {
            self.assign(&Assignment { name: parameter.name.clone(), values: vec![Word::clone(word)], appends: false });
        }
        let prompt = parameter.operator == "@" && parameter.operand.as_ref().is_some_and(|word| word.raw == "P");
        if prompt {
            let texts = values.iter().flatten().filter(|text| text.contains(['$', '`'])).cloned();
            self.prompts.extend(texts.take(MAX));
        }
        let operand: Vec<String> = match &parameter.operand {
            Some(word) if parameter.operator.starts_with(['#', '%', '/']) => {
                let word = escaped(word);
                self.expand(&word, depth + 1).into_iter().map(|list| join(&list)).collect()
            }
            Some(word) => self.expand(word, depth + 1).into_iter().map(|list| join(&list)).collect(),
            None => vec![String::new()],
        };
        let mut results: Vec<Vec<String>> = Vec::new();
        for value in values.iter().filter(|_| !matches!(parameter.operator.as_str(), "+" | ":+")) {
            for operand in &operand {
                if parameter.all && parameter.operator == ":" {
                    results.push(slice_elements(value, operand, parameter.name == "@" || parameter.name == "*"));
                    continue;
                }
                results.push(value.iter().map(|text| pattern::apply(text, &parameter.operator, operand)).collect());
            }
        }
        if matches!(parameter.operator.as_str(), ":-" | "-" | ":=" | "=" | "+" | ":+") {
            results.extend(operand.into_iter().map(|text| vec![text]));
        }
        if parameter.star && self.joins_otherwise {
            results.push(vec![UNKNOWN.to_string()]);
        }
        if results.is_empty() {
            return if parameter.name == "IFS" { vec![vec![" ".to_owned()]] } else { unknown() };
        }
        results
    }

    fn stored_value(&mut self, name: &str, all: bool, depth: usize) -> Vec<Vec<String>> {
        if self.shifts && (matches!(name, "@" | "*") || name.parse::<usize>().is_ok_and(|number| number > 0)) {
            let texts = self.positional.iter().map(|args| args.iter().map(|arg| arg.text.clone()).collect::<Vec<_>>());
            let every = matches!(name, "@" | "*");
            let later = texts.flat_map(|texts| {
                (0..texts.len().min(MAX))
                    .map(move |from| if every { texts[from..].to_vec() } else { vec![texts[from].clone()] })
                    .collect::<Vec<_>>()
            });
            return later.take(MAX).collect();
        }
        if name == "@" || name == "*" {
            return self.positional.iter().map(|args| args.iter().map(|arg| arg.text.clone()).collect()).collect();
        }
        if let Some(number) = name.parse::<usize>().ok().filter(|number| *number > 0) {
            let nth = |args: &Vec<Arg>| args.get(number.checked_sub(1)?).map(|arg| vec![arg.text.clone()]);
            return self.positional.iter().filter_map(nth).collect();
        }
        if self.open.iter().any(|open| open == name) {
            return Vec::new();
        }
        let Some(assigned) = self.variables.get(name).cloned() else { return Vec::new() };
        self.open.push(name.to_owned());
        let stored = self.expand_assigned(&assigned, all, depth);
        self.open.pop();
        stored
    }

    fn expand_assigned(&mut self, assigned: &[Vec<Word>], all: bool, depth: usize) -> Vec<Vec<String>> {
        let mut stored = Vec::new();
        for words in assigned {
            if words.len() == 1 || all {
                let mut lists = vec![Vec::new()];
                for word in words {
                    let fields = self.expand(word, depth + 1);
                    if let [only] = fields.as_slice() {
                        for list in &mut lists {
                            list.push(join(only));
                        }
                        continue;
                    }
                    lists = lists
                        .iter()
                        .flat_map(|list: &Vec<String>| {
                            fields.iter().map(move |field| {
                                let mut longer = list.clone();
                                longer.push(join(field));
                                longer
                            })
                        })
                        .take(MAX)
                        .collect();
                }
                stored.extend(lists);
            } else {
                // The result is one of these elements. Which one is unknown, so each is possible.
                for word in words {
                    stored.extend(self.expand(word, depth + 1).iter().map(|field| vec![join(field)]));
                }
            }
        }
        self.overflow |= stored.len() > MAX;
        stored.truncate(MAX);
        stored
    }

    /// Returns the possible outputs of a substitution such as `$(echo …)`. Output that cannot be determined is unknown.
    fn substitution(&mut self, inner: &str, glued: bool, depth: usize) -> Vec<Vec<String>> {
        let mut unknown = vec![vec![UNKNOWN.to_string()]];
        if glued {
            // The output may be empty, like the value of a variable.
            unknown.insert(0, vec![String::new()]);
        }
        if depth >= DEPTH || inner.len() > 4096 {
            return unknown;
        }
        let scan = scan(inner);
        let mut texts: Vec<Vec<String>> = Vec::new();
        for command in scan.commands.iter().take(MAX_PRINTING) {
            let printed = self.prints(command, &scan, depth);
            texts.extend(printed.into_iter().filter(|printed| !texts.contains(printed)).collect::<Vec<_>>());
        }
        if scan.commands.len() == 1 && !texts.is_empty() { texts } else { texts.into_iter().chain(unknown).take(MAX).collect() }
    }

    /// Returns the possible outputs of a single command in a substitution. Output that cannot be determined is unknown.
    fn prints(&mut self, command: &ScannedCommand, scan: &Scan, depth: usize) -> Vec<Vec<String>> {
        let cat = |word: &Word| word.raw == "cat" || word.raw == "/bin/cat";
        let passes_on = command.words.iter().all(cat) && !command.redirects.is_empty() | !scan.documents.is_empty();
        if passes_on {
            let mut texts: Vec<Vec<String>> =
                scan.documents.iter().take(1).map(|text| vec![text.trim_end().to_owned()]).collect();
            for redirect in command.redirects.iter().filter(|redirect| redirect.operator == "<<<") {
                texts.extend(self.expand(&redirect.target, depth + 1).iter().map(|args| vec![join(args)]));
            }
            return texts;
        }
        command
            .words
            .split_first()
            .map(|(name, rest)| {
                let lists = rest.iter().map(|word| self.expand(word, depth + 1)).fold(vec![Vec::new()], |lists, fields| {
                    let longer = |list: &Vec<Arg>| {
                        let list = list.clone();
                        fields
                            .iter()
                            .map(move |field| list.iter().chain(field).cloned().collect::<Vec<Arg>>())
                            .collect::<Vec<_>>()
                    };
                    lists.iter().flat_map(longer).take(MAX).collect()
                });
                let name = name.literal().unwrap_or_default();
                lists.iter().flat_map(|args| printed_text(&name, args)).map(|text| vec![text]).collect()
            })
            .unwrap_or_default()
    }
}

/// Combines two lists and returns pairs of indexes. If there are too many pairs, returns only a selection in which
/// every index occurs.
fn pairs(left: usize, right: usize, most: usize) -> impl Iterator<Item = (usize, usize)> {
    let all = left * right <= most;
    let count = if all { left * right } else { left.max(right).min(most.max(MAX)) };
    (0..count).map(move |at| if all { (at / right, at % right) } else { (at % left, at % right) })
}

/// Returns the output of `echo` or `printf` without trailing newlines. For `echo`, returns the output both with and
/// without decoded escapes, because shells and options differ.
pub(crate) fn printed_text(name: &str, args: &[Arg]) -> Vec<String> {
    let mut texts = match name {
        "echo" => {
            let from = args.iter().take_while(|arg| matches!(arg.text.as_str(), "-n" | "-e" | "-E" | "-ne" | "-en")).count();
            let plain = join(&args[from..]);
            vec![decode(&plain, Style::Echo), plain]
        }
        "printf" => {
            let args = if args.first().is_some_and(|arg| arg.text == "--") { &args[1..] } else { args };
            let Some((format, rest)) = args.split_first() else { return Vec::new() };
            vec![pattern::format(&decode(&format.text, Style::Format), rest)]
        }
        _ => return Vec::new(),
    };
    for text in &mut texts {
        text.truncate(text.trim_end_matches('\n').len());
    }
    texts.dedup();
    texts
}

/// Returns the elements selected by `${x[@]:1}`. An unknown number does not exclude any elements.
fn slice_elements(elements: &[String], operand: &str, positional: bool) -> Vec<String> {
    let (from, count) = operand.split_once(':').unwrap_or((operand, ""));
    let from = from.trim().parse::<usize>().unwrap_or(0).saturating_sub(usize::from(positional));
    let count = count.trim().parse().unwrap_or(elements.len());
    elements.iter().skip(from).take(count).cloned().collect()
}

/// Converts a word to a pattern in which quoted text matches literally.
fn escaped(word: &Word) -> Word {
    let mut word = word.clone();
    for piece in &mut word.pieces {
        if let WordPart::Text { text, quoted: true } = piece
            && text.contains(['*', '?', '[', '\\', '/'])
        {
            *text = text
                .chars()
                .flat_map(|letter| matches!(letter, '*' | '?' | '[' | '\\' | '/').then_some('\\').into_iter().chain([letter]))
                .collect();
        }
    }
    word
}

/// Returns the value of a word that contains no expansions. This is the fast path for most words.
fn constant(word: &Word) -> Option<Arg> {
    if word.raw.contains('{') || assigns_tilde(word) {
        return None;
    }
    let mut field = FieldSplitter::default();
    let tilde = has_tilde(word);
    for piece in &word.pieces {
        let WordPart::Text { text, quoted } = piece else { return None };
        field.push_literal(text, *quoted, tilde);
    }
    field.finish().pop()
}

/// Returns the possible values of a variable after `x+=…`.
fn append_values(before: &[Word], more: &[Word]) -> Vec<Word> {
    match (before, more) {
        ([one], [other]) => {
            let pieces = one.pieces.iter().chain(&other.pieces).cloned().collect();
            vec![Word { raw: String::new(), pieces }]
        }
        _ => before.iter().chain(more).cloned().collect(),
    }
}
