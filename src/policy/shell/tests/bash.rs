//! Compares the words that aye parses from a line with those that bash passes to a program.

use super::super::arg::UNKNOWN;
use super::super::{Arg, ParsedLine, read};
use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

const HOME: &str = "/home/user";
/// Number of words expanded by one bash process.
const BATCH: usize = 2_000;
/// Names of files that globs in the words can match.
const FILES: &[&str] = &["a", "b", "x", "-delete", "-a", "a,b", "1", "2", "ax", "bx", "a]"];

/// A word as expanded by bash, without and with file name expansion.
#[derive(Debug, PartialEq, Eq)]
struct Expanded {
    plain: Vec<String>,
    globbed: Vec<String>,
}

/// Deterministic pseudo-random number generator.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % sides
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.roll(from.len())]
    }
}

const LETTERS: &[&str] = &[
    "a",
    "b",
    "x",
    "-",
    "-delete",
    "--output=",
    "/",
    "..",
    "/etc",
    "1",
    "3",
    "01",
    ".",
    "=",
    ":",
    "é",
    "#",
    "%",
    "+",
    "^",
    "!",
    "@",
];
const BRACES: &[&str] = &["{", "}", ",", "{}", "{,", ",}", "..", "{a,", "},", "{-delete,", ",-delete}"];
const SEQUENCES: &[&str] = &[
    "{1..3}",
    "{3..1}",
    "{a..c}",
    "{a..c..2}",
    "{c..a}",
    "{01..10}",
    "{-1..1}",
    "{1..10..3}",
    "{1..3..0}",
    "{1..3..-1}",
    "{a..3}",
    "{1..}",
    "{..3}",
    "{a..b..c}",
    "{1...3}",
    "{+1..2}",
    "{-01..2}",
    "{1..2}{a,b}",
    "{X..c..9}",
    "{1..3..}",
    "{00..1}",
    "{9223372036854775807..1}",
    "{99999999999999999999..1}",
    "{1..x{a,b}}",
    "{{a,b}..c}",
    "{\"a,b\"..c}",
    "{'1'..3}",
];
const QUOTED: &[&str] = &[
    "''",
    "\"\"",
    "'a'",
    "\"b\"",
    "'{'",
    "\"}\"",
    "','",
    "' '",
    "\" \"",
    "\\ ",
    "\\{",
    "\\}",
    "\\,",
    "\\\\",
    "\\-",
    "'~'",
    "\"~\"",
    "\\~",
    "'*'",
    "\\*",
    "\"\\\"\"",
    "\"\\a\"",
    "\"\\\\\"",
    "'\\'",
    "'a,b'",
    "\"a,b\"",
    "'..'",
    "\\\n",
    "\"\\\n\"",
    "'\n'",
    "'-delete'",
    "\"-\"",
];
const ANSI: &[&str] = &[
    "$'a'",
    "$''",
    "$'\\x2d'",
    "$'\\x{2d}'",
    "$'\\x{2d'",
    "$'\\x{}'",
    "$'\\x'",
    "$'\\xg'",
    "$'\\x2'",
    "$'\\x123'",
    "$'\\u002d'",
    "$'\\u2d'",
    "$'\\u'",
    "$'\\u00e9'",
    "$'\\U0000002d'",
    "$'\\U2d'",
    "$'\\Ug'",
    "$'\\055'",
    "$'\\55'",
    "$'\\5'",
    "$'\\0'",
    "$'a\\0b'",
    "$'a\\x00b'",
    "$'\\u0000b'",
    "$'\\ca'",
    "$'\\c'",
    "$'\\c\\\\'",
    "$'\\c\\\\b'",
    "$'\\c?'",
    "$'a\\c@b'",
    "$'\\'",
    "$'\\\\'",
    "$'\\\"'",
    "$'\\?'",
    "$'\\z'",
    "$'\\-'",
    "$'\\e'",
    "$'{'",
    "$'}'",
    "$','",
    "$'\\x7b'",
    "$'\\x2c'",
    "$'\\x27'",
    "$'\\n'",
    "$'\\é'",
    "$'\\xc3\\xa9'",
    "$'\\xff'",
    "$'-delete'",
    "$\"a\"",
    "$\"-\"",
    "$\"\"",
    "$\"{\"",
    "\"$'a'\"",
    "$$'a'",
    "$",
    "\\$'a'",
    "$'\\400'",
    "$'\\777'",
    "$'\\x{12d}'",
    "$'~'",
    "$'a\\\nb'",
];
const GLOBS: &[&str] = &["*", "?", "[a]", "[", "]", "[a", "[!a]", "-*", "a*", "[]", "[-]delete"];
const TILDES: &[&str] = &[
    "~", "~/", "~/a", "~+", "~-", "~user", "~''", "a=~", "a=~/x", "a:~", "a=b:~", "~\"\"/a", "{~,a}", "~{a,b}", "a={~,b}",
    "~/{a,b}",
];
const TURNS: &[&[&str]] = &[LETTERS, BRACES, BRACES, SEQUENCES, QUOTED, QUOTED, ANSI, ANSI, GLOBS, TILDES];

/// Generates a word of up to eight pieces, some of which contain words themselves.
fn word(dice: &mut Dice, depth: usize) -> String {
    let mut word = String::new();
    for _ in 0..=dice.roll(7 - depth) {
        if depth < 3 && dice.roll(5) == 0 {
            let count = dice.roll(3);
            let _ = write!(word, "{{{}", self::word(dice, depth + 1));
            for _ in 0..count {
                let _ = write!(word, ",{}", self::word(dice, depth + 1));
            }
            if dice.roll(12) > 0 {
                word.push('}');
            }
            continue;
        }
        let turn = TURNS[dice.roll(TURNS.len())];
        word.push_str(dice.pick(turn));
    }
    if depth == 0 && word.matches("..").count() > 2 {
        // Several sequences would multiply the number of words.
        return self::word(dice, depth);
    }
    if depth == 0 && begins_comment(&word) {
        word.insert(0, 'a');
    }
    word.truncate((0..=word.len().min(160)).rev().find(|at| word.is_char_boundary(*at)).unwrap_or(0));
    word
}

/// Returns whether bash treats the whole word as a comment. Line continuations before the `#` make no difference.
fn begins_comment(word: &str) -> bool {
    word.trim_start_matches("\\\n").starts_with('#')
}

#[test]
fn generated_words_are_not_comments() {
    let mut dice = Dice(1);
    let words: Vec<String> = (0..20_000).map(|_| word(&mut dice, 0)).collect();
    assert!(!words.iter().any(|word| begins_comment(word)) && words.iter().any(|word| word.contains('#')));
    assert!(["#", "#a", "\\\n#{a", "\\\n\\\n#"].into_iter().all(begins_comment));
    assert!(!["a#", "'#'", "\\#", ""].into_iter().any(begins_comment));
}

/// Expands each word with bash in a directory that contains some files. Returns `None` for each word that bash cannot
/// parse.
fn bash(words: &[String], directory: &Path) -> Vec<Option<Expanded>> {
    let script = r#"
        words() { printf '%s\0' "$@"; }
        # After a comment or a line break a word goes on with another command.
        command_not_found_handle() { :; }
        while IFS= read -r -d '' line; do
            printf 'NEXT WORD\0'; set -f; eval "words begin $line" 2>/dev/null || printf 'NOT READ\0'
            printf 'WITH FILES\0'; set +f; eval "words begin $line" 2>/dev/null || printf 'NOT READ\0'
            printf 'WORD ENDS\0'
        done
    "#;
    let mut child = Command::new("bash")
        .args(["--norc", "--noprofile", "-c", script])
        .env_clear()
        .env("HOME", HOME)
        .env("PATH", "/usr/bin:/bin")
        .env("LC_ALL", "C.UTF-8")
        .current_dir(directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("bash starts");
    let mut input = child.stdin.take().expect("a pipe");
    let text: Vec<u8> = words.iter().flat_map(|word| word.bytes().chain([0])).collect();
    let writer = std::thread::spawn(move || input.write_all(&text));
    let mut output = Vec::new();
    child.stdout.take().expect("a pipe").read_to_end(&mut output).expect("bash output is readable");
    writer.join().expect("no panic").expect("bash accepts all input");
    child.wait().expect("bash ends");
    let mut found = Vec::new();
    let (mut plain, mut globbed, mut second, mut broken) = (Vec::new(), Vec::new(), false, false);
    for text in output.split(|byte| *byte == 0) {
        match text {
            b"NEXT WORD" => (plain, globbed, second, broken) = (Vec::new(), Vec::new(), false, false),
            b"WITH FILES" => second = true,
            b"WORD ENDS" => {
                let whole =
                    |list: &mut Vec<String>| list.first().is_some_and(|first| first == "begin").then(|| list.split_off(1));
                let both = whole(&mut plain).zip(whole(&mut globbed));
                found.push(both.filter(|_| !broken).map(|(plain, globbed)| Expanded { plain, globbed }));
            }
            b"NOT READ" => broken = true,
            text => if second { &mut globbed } else { &mut plain }.push(String::from_utf8_lossy(text).into_owned()),
        }
    }
    assert_eq!(found.len(), words.len(), "bash returned a result for every word");
    found
}

/// Returns the text that a program would receive for an argument.
fn given(arg: &Arg) -> String {
    if arg.tilde && (arg.text == "~" || arg.text.starts_with("~/")) { arg.text.replacen('~', HOME, 1) } else { arg.text.clone() }
}

/// Returns whether all words in the reading of `words WORD` are known. The error describes how the reading differs from
/// bash. A line that needs approval for another reason may be read differently.
fn difference(line: &ParsedLine, expanded: Option<&Expanded>) -> Result<bool, String> {
    let floors: Vec<&str> = line.floors.iter().chain(line.parts.iter().flat_map(|part| &part.floors)).copied().collect();
    let readings: Vec<&[Arg]> = line
        .parts
        .iter()
        .flat_map(|part| &part.invocations)
        .filter(|one| one.base() == "words")
        .map(|one| &one.argv[1..])
        .collect();
    let open = |arg: &Arg| !arg.is_known() || arg.tilde && !(arg.text == "~" || arg.text.starts_with("~/"));
    if line.hopeless || readings.is_empty() || readings.iter().any(|args| args.iter().any(open)) {
        return Ok(false);
    }
    let Some(expanded) = expanded else {
        return if floors.is_empty() { Err("bash cannot read it".to_owned()) } else { Ok(false) };
    };
    let same = |args: &&[Arg]| args.iter().map(given).eq(expanded.plain.iter().cloned());
    let Some(reading) = readings.iter().find(|args| same(args)) else {
        return if floors.is_empty() { Err(format!("read as {readings:?}")) } else { Ok(false) };
    };
    if !reading.iter().any(|arg| arg.glob) && expanded.globbed != expanded.plain {
        return Err(format!("a glob is missed in {reading:?}"));
    }
    Ok(true)
}

struct Figures {
    words: usize,
    known: usize,
    readable: usize,
    wrong: Vec<String>,
}

fn compare(count: usize, seed: u64) -> Option<Figures> {
    if Command::new("bash").args(["-c", "[[ ${BASH_VERSINFO[0]} -ge 5 ]]"]).status().ok().is_none_or(|status| !status.success()) {
        eprintln!("skipped: no bash of version 5 to compare with");
        return None;
    }
    let directory = tempfile::TempDir::new().expect("a directory");
    for name in FILES {
        std::fs::write(directory.path().join(name), "").expect("a file");
    }
    let mut dice = Dice(seed);
    let mut figures = Figures { words: 0, known: 0, readable: 0, wrong: Vec::new() };
    while figures.words < count {
        let words: Vec<String> = (0..BATCH.min(count - figures.words)).map(|_| word(&mut dice, 0)).collect();
        for (word, expanded) in words.iter().zip(bash(&words, directory.path())) {
            figures.readable += usize::from(expanded.is_some());
            match difference(&read(&format!("words {word}")), expanded.as_ref()) {
                Ok(known) => figures.known += usize::from(known),
                Err(why) => figures.wrong.push(format!("{word:?}: {why}; bash: {expanded:?}")),
            }
        }
        figures.words += words.len();
    }
    let Figures { words, known, readable, wrong } = &figures;
    println!("{words} words, {readable} that bash reads, {known} known before they run, {} read otherwise", wrong.len());
    Some(figures)
}

#[track_caller]
fn alike(count: usize, seed: u64) {
    let Some(figures) = compare(count, seed) else { return };
    assert!(
        figures.wrong.is_empty(),
        "{} of {}: {:#?}",
        figures.wrong.len(),
        figures.words,
        &figures.wrong[..figures.wrong.len().min(40)]
    );
    assert!(figures.known * 2 > figures.readable, "{} of {} words are known", figures.known, figures.readable);
}

#[test]
fn words_are_expanded_as_in_bash() {
    alike(1_000, 0x2545_F491_4F6C_DD1D);
}

/// Compares the expansion of a million words with bash. `AYE_WORDS` sets the number of words, and `AYE_WORDS_SEED` sets
/// the seed.
#[test]
#[ignore = "expands a million words with bash, which takes minutes"]
fn a_million_words_are_expanded_as_in_bash() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seed = number("AYE_WORDS_SEED").unwrap_or(0).wrapping_add(0x9E37_79B9_7F4A_7C15);
    alike(number("AYE_WORDS").map_or(1_000_000, |count| count as usize), seed);
}

#[test]
fn formerly_misread_words_are_expanded_as_in_bash() {
    let unknown = UNKNOWN.to_string();
    for (word, wanted) in [
        ("''{},-delete}", &["}", "-delete"][..]),
        ("{a},-delete}", &["a}", "-delete"]),
        ("{{-delete,x}..y}", &["-delete..y", "x..y"]),
        ("{\"a,b\"..c}", &["a,b..c"]),
        ("{-delete,}", &["-delete"]),
        ("$'\\x{2d}delete'", &["-delete"]),
        ("$'\\-delete'", &["\\-delete"]),
        ("$'-delete\\c@x'", &["-delete"]),
        ("$'\\c'x", &["\\cx"]),
        ("$'a\\0b'c", &["ac"]),
        ("{$,x}'\\x2d'", &["$\\x2d", "x\\x2d"]),
        ("~''/a", &["~/a"]),
        ("$'\\u00e9'", &[&unknown]),
    ] {
        let line = read(&format!("words {word}"));
        let args: Vec<&str> = line.parts[0].invocations[0].argv[1..].iter().map(|arg| arg.text.as_str()).collect();
        assert_eq!(args, wanted, "{word}");
    }
}
