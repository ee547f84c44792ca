//! Finds the simple commands in shell text. Only this lexer interprets operators, reserved words and here-documents.

mod reader;
mod redirects;

pub(crate) use reader::WordReader;

use super::names::{assigned_name, evaluates};
use super::word::Word;
use reader::could_be_commands;

/// A simple command, as written in the line.
#[derive(Debug, Clone, Default)]
pub(crate) struct ScannedCommand {
    pub text: String,
    pub words: Vec<Word>,
    pub assignments: Vec<Assignment>,
    pub redirects: Vec<Redirect>,
    /// Constructs in this command that allow rules do not permit.
    pub oddities: Vec<&'static str>,
    /// Whether the command reads the output of the previous command.
    pub piped: bool,
    /// Index of the command whose output this command reads, if there is exactly one.
    pub input_from: Option<usize>,
}

#[derive(Debug, Clone)]
pub(crate) struct Assignment {
    pub name: String,
    /// A single word for a plain value, or several words for an array.
    pub values: Vec<Word>,
    /// Whether the assignment uses `+=`.
    pub appends: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Redirect {
    pub operator: String,
    pub target: Word,
}

/// Result of scanning a text.
#[derive(Debug, Default)]
pub(crate) struct Scan {
    pub commands: Vec<ScannedCommand>,
    /// Constructs between commands that allow rules do not permit.
    pub oddities: Vec<&'static str>,
    /// Bodies of here-documents.
    pub documents: Vec<String>,
    pub functions: Vec<String>,
    /// Variables that loops set.
    pub loops: Vec<Assignment>,
    /// Content of the substitutions, which must be scanned in the same way.
    pub substitutions: Vec<String>,
    /// Whether scanning was aborted, in which case nothing about the text is certain.
    pub exhausted: bool,
    /// Words in order of appearance, for comparison with the grammar.
    pub raws: Vec<String>,
}

pub(crate) const UNPARSABLE: &str = "the line cannot be parsed, so aye cannot tell which programs run";
const CONTROL_FLOW: &str = "allow rules do not cover conditions, loops, groups and functions";
const BACKGROUND: &str = "`&` leaves a command running in the background";
const PIPE_BOTH: &str = "allow rules do not cover `|&`";
pub(super) const DOCUMENT: &str = "allow rules do not cover here-documents";
const DESCRIPTOR: &str = "allow rules do not cover redirects that set a variable";
const ARRAY: &str = "allow rules do not cover arrays";
const ARITHMETIC: &str = "an arithmetic command can run code stored in its variables";

struct Scanner<'t> {
    reader: WordReader<'t>,
    scan: Scan,
    current: ScannedCommand,
    start: usize,
    pending: Vec<(String, bool, bool)>,
    case_depth: usize,
    pattern_next: bool,
    piped: bool,
    input_from: Option<usize>,
    /// Number of parentheses that are currently open.
    open: usize,
    /// Position of the parenthesis that closes the text.
    closed: Option<usize>,
    inside: bool,
}

/// Scans text. Scanning never fails: text that cannot be parsed is reported in `oddities`, and the commands in it are
/// found nonetheless.
pub(crate) fn scan(text: &str) -> Scan {
    let mut scanner = Scanner::new(WordReader::new(text));
    while !scanner.reader.is_at_end() {
        scanner.step();
    }
    scanner.end();
    if scanner.reader.unterminated || !scanner.pending.is_empty() {
        scanner.report_oddity(UNPARSABLE);
    }
    scanner.scan.exhausted |= scanner.reader.has_given_up();
    scanner.scan.substitutions.append(&mut scanner.reader.substitutions);
    scanner.scan
}

/// Scans the content of a substitution up to its closing parenthesis. Returns the position of that parenthesis and the
/// amount of work done.
pub(crate) fn closing(reader: WordReader<'_>) -> (Option<usize>, usize) {
    let mut scanner = Scanner { inside: true, ..Scanner::new(reader) };
    while !scanner.reader.is_at_end() && scanner.closed.is_none() {
        scanner.step();
    }
    (scanner.closed, scanner.reader.work())
}

impl<'t> Scanner<'t> {
    fn new(reader: WordReader<'t>) -> Self {
        Self {
            reader,
            scan: Scan::default(),
            current: ScannedCommand::default(),
            start: 0,
            pending: Vec::new(),
            case_depth: 0,
            pattern_next: false,
            piped: false,
            input_from: None,
            open: 0,
            closed: None,
            inside: false,
        }
    }

    fn report_oddity(&mut self, oddity: &'static str) {
        if !self.scan.oddities.contains(&oddity) {
            self.scan.oddities.push(oddity);
        }
    }

    fn step(&mut self) {
        if self.pattern_next {
            self.case_pattern();
            return;
        }
        match self.reader.byte(0) {
            b' ' | b'\t' => self.reader.at += 1,
            b'\\' if self.reader.byte(1) == b'\n' => self.reader.at += 2,
            b'\n' => {
                self.end();
                self.reader.at += 1;
                self.here_documents();
            }
            b'#' => self.skip_to_newline(),
            b';' => self.semicolon(),
            b'&' => self.ampersand(),
            b'|' => self.bar(),
            b'(' => self.open(),
            b')' => {
                self.end();
                if self.inside && self.open == 0 {
                    self.closed = Some(self.reader.at);
                }
                self.open = self.open.saturating_sub(1);
                self.reader.at += 1;
            }
            b'<' | b'>' if self.reader.byte(1) != b'(' => self.redirect(),
            _ => self.word(),
        }
    }

    fn skip_to_newline(&mut self) {
        while !self.reader.is_at_end() && self.reader.byte(0) != b'\n' {
            self.reader.at += 1;
        }
    }

    fn end(&mut self) {
        let mut command = std::mem::take(&mut self.current);
        if command.words.is_empty() && command.assignments.is_empty() && command.redirects.is_empty() {
            return;
        }
        self.reader.text[self.start..self.reader.at].trim().clone_into(&mut command.text);
        command.piped = std::mem::take(&mut self.piped);
        command.input_from = self.input_from.take();
        self.scan.commands.push(command);
    }

    fn semicolon(&mut self) {
        self.end();
        self.reader.at += 1;
        if matches!(self.reader.byte(0), b';' | b'&') {
            while matches!(self.reader.byte(0), b';' | b'&') {
                self.reader.at += 1;
            }
            self.pattern_next = self.case_depth > 0;
            if self.case_depth == 0 {
                self.report_oddity(UNPARSABLE);
            }
        }
    }

    fn ampersand(&mut self) {
        if self.reader.byte(1) == b'>' {
            self.redirect();
            return;
        }
        self.end();
        if self.reader.byte(1) == b'&' {
            self.reader.at += 2;
        } else {
            self.report_oddity(BACKGROUND);
            self.reader.at += 1;
        }
    }

    fn bar(&mut self) {
        let before = self.scan.commands.len();
        self.end();
        self.reader.at += 1;
        match self.reader.byte(0) {
            b'|' => {
                self.reader.at += 1;
                return;
            }
            b'&' => {
                self.report_oddity(PIPE_BOTH);
                self.reader.at += 1;
            }
            _ => {}
        }
        self.piped = true;
        // If a group or a loop ends here, any command in it may have printed the output.
        self.input_from = (self.scan.commands.len() > before).then_some(before);
    }

    fn open(&mut self) {
        self.report_oddity(CONTROL_FLOW);
        if self.current.words.is_empty() {
            if let Some(end) = self.reader.arithmetic_end(self.reader.at) {
                self.arithmetic(end);
                return;
            }
        } else if self.current.words.len() == 1 {
            let name = self.current.words[0].raw.clone();
            self.scan.functions.push(name);
            self.current = ScannedCommand::default();
        } else {
            self.report_oddity(UNPARSABLE);
            self.end();
        }
        self.open += 1;
        self.reader.at += 1;
    }

    fn arithmetic(&mut self, end: usize) {
        self.report_oddity(ARITHMETIC);
        let mut inner = WordReader::new(&self.reader.text[self.reader.at + 2..end - 2]);
        inner.double_quotes(&mut Word::default(), 0);
        self.scan.exhausted |= inner.has_given_up();
        self.scan.substitutions.append(&mut inner.substitutions);
        if could_be_commands(inner.text) {
            self.scan.substitutions.push(inner.text.to_owned());
        }
        self.reader.at = end;
    }

    fn blanks(&mut self) {
        while matches!(self.reader.byte(0), b' ' | b'\t') || self.reader.starts_with("\\\n") {
            self.reader.at += 1 + usize::from(self.reader.byte(0) == b'\\');
        }
    }

    fn case_pattern(&mut self) {
        while matches!(self.reader.byte(0), b' ' | b'\t' | b'\n' | b'(' | b'|') && !self.reader.is_at_end() {
            self.reader.at += 1;
        }
        if self.reader.is_at_end() {
            return;
        }
        if self.reader.byte(0) == b')' {
            self.reader.at += 1;
            self.pattern_next = false;
            return;
        }
        let before = self.reader.at;
        let word = self.reader.word();
        if word.raw == "esac" {
            self.case_depth = self.case_depth.saturating_sub(1);
            self.pattern_next = false;
        }
        if self.reader.at == before {
            self.reader.at += 1;
        }
    }

    fn word(&mut self) {
        let first = self.current.words.is_empty();
        if first && self.current.assignments.is_empty() && self.current.redirects.is_empty() {
            self.start = self.reader.at;
        }
        let word = self.reader.word();
        if word.raw.is_empty() {
            // This byte starts no token. Skip it, so that the loop ends.
            self.report_oddity(UNPARSABLE);
            self.reader.at += 1;
            return;
        }
        if first && self.current.assignments.is_empty() && self.reserved_word(&word.raw) {
            self.report_oddity(CONTROL_FLOW);
            return;
        }
        if first && let Some(name) = assigned_name(&word.raw) {
            self.assignment(name, word);
            return;
        }
        self.scan.raws.push(word.raw.clone());
        if !first
            && self.reader.byte(0) == b'('
            && self.declares()
            && let Some(name) = assigned_name(&word.raw)
        {
            self.report_oddity(ARRAY);
            self.reader.at += 1;
            let values = self.array();
            self.scan.loops.push(Assignment { name, values, appends: false });
        }
        self.current.words.push(word);
    }

    /// Returns whether the command may declare an array, as in `declare -a x=(…)`.
    fn declares(&self) -> bool {
        let name = self.current.words.first().map_or("", |word| word.raw.as_str());
        matches!(name, "declare" | "typeset" | "local" | "export" | "readonly" | "builtin" | "command")
    }

    fn assignment(&mut self, name: String, word: Word) {
        let array = word.raw.ends_with('=') && self.reader.byte(0) == b'(';
        let values = if array {
            self.reader.at += 1;
            self.array()
        } else {
            let length = word.raw.find('=').map_or(0, |at| at + 1);
            let mut value = WordReader::new(&word.raw[length..]);
            vec![value.word()]
        };
        let appends = word.raw.split('=').next().is_some_and(|left| left.ends_with('+'));
        self.current.assignments.push(Assignment { name, values, appends });
    }

    fn array(&mut self) -> Vec<Word> {
        let mut values = Vec::new();
        while !self.reader.is_at_end() && self.reader.byte(0) != b')' {
            let before = self.reader.at;
            let word = self.reader.word();
            if self.reader.at == before {
                self.reader.at += 1;
            } else {
                values.push(element(word));
            }
        }
        self.reader.at = (self.reader.at + 1).min(self.reader.text.len());
        values
    }

    fn reserved_word(&mut self, raw: &str) -> bool {
        match raw {
            "if" | "then" | "elif" | "else" | "fi" | "while" | "until" | "do" | "done" | "!" | "{" | "}" => {}
            "time" => return self.time_keyword(),
            "coproc" => self.coprocess(),
            "esac" => self.case_depth = self.case_depth.saturating_sub(1),
            "for" | "select" => self.for_words(),
            "case" => {
                self.blanks();
                self.reader.word();
                self.blanks();
                if self.reader.starts_with("in") {
                    self.reader.at += 2;
                }
                self.case_depth += 1;
                self.pattern_next = true;
            }
            "function" => {
                self.blanks();
                let name = self.reader.word().raw;
                self.scan.functions.push(name);
                self.blanks();
                if self.reader.starts_with("()") {
                    self.reader.at += 2;
                }
            }
            "[[" => self.double_brackets(raw),
            _ => return false,
        }
        true
    }

    /// Handles `time`, which is a shell keyword unless the next word shows that the program is meant.
    fn time_keyword(&mut self) -> bool {
        self.blanks();
        if self.reader.starts_with("-p ") {
            self.reader.at += 2;
        }
        self.reader.byte(0) != b'-'
    }

    /// Handles `coproc NAME { …; }`, in which the name is not a command.
    fn coprocess(&mut self) {
        self.blanks();
        let before = self.reader.at;
        self.reader.word();
        self.blanks();
        if !matches!(self.reader.byte(0), b'{' | b'(') {
            self.reader.at = before;
        }
    }

    fn for_words(&mut self) {
        self.blanks();
        if self.reader.byte(0) == b'(' {
            return;
        }
        let name = self.reader.word().raw;
        self.blanks();
        let mut values = Vec::new();
        if self.reader.starts_with("in") {
            self.reader.at += 2;
            self.blanks();
            while !self.reader.is_at_end() && !matches!(self.reader.byte(0), b';' | b'\n' | b'&' | b'|' | b')' | b'(') {
                let before = self.reader.at;
                let word = self.reader.word();
                if self.reader.at == before {
                    self.reader.at += 1;
                } else {
                    values.push(word);
                }
                self.blanks();
            }
        }
        for value in values {
            self.scan.loops.push(Assignment { name: name.clone(), values: vec![value], appends: false });
        }
    }

    /// Parses a condition as a command that only reads. Operators between words are omitted.
    fn double_brackets(&mut self, raw: &str) {
        self.current.words.push(WordReader::new(raw).word());
        while !self.reader.is_at_end() {
            let before = self.reader.at;
            let word = self.reader.word();
            if self.reader.at == before {
                self.reader.at += 1;
                continue;
            }
            let closes = word.raw == "]]";
            if let Some(text) = word.literal().filter(|text| evaluates(text)) {
                self.reader.inside(&text);
            }
            if !closes {
                self.scan.raws.push(word.raw.clone());
            }
            self.current.words.push(word);
            if closes {
                return;
            }
        }
    }
}

/// Returns the value of an array element written as `[key]=value`.
fn element(word: Word) -> Word {
    match word.raw.strip_prefix('[').and_then(|rest| rest.split_once("]=")) {
        Some((_, value)) => WordReader::new(value).word(),
        None => word,
    }
}
