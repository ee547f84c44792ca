//! Fuzz target for quoting: two ways of quoting that bash reads as the same words give the same verdict.

#![no_main]

mod verdict;

use libfuzzer_sys::fuzz_target;
use verdict::verdict;

/// Programs whose options decide whether a command line only reads.
const PROGRAMS: &[&str] =
    &["ls", "cat", "find", "grep", "rg", "git", "sort", "sed", "head", "tail", "fd", "wc", "env", "tree", "diff"];

fn single(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

fn double(word: &str) -> String {
    let mut quoted = String::from('"');
    for letter in word.chars() {
        if matches!(letter, '\\' | '"' | '$' | '`') {
            quoted.push('\\');
        }
        quoted.push(letter);
    }
    quoted + "\""
}

fuzz_target!(|given: (u8, Vec<&str>)| {
    let (program, words) = given;
    // Words of a command contain no NUL byte. The policy does not parse a backslash before a line break in double
    // quotes exactly, and requires approval instead.
    if words.len() > 6 || words.iter().any(|word| word.contains('\0') || word.contains("\\\n")) {
        return;
    }
    let program = PROGRAMS[usize::from(program) % PROGRAMS.len()];
    let line = |quote: fn(&str) -> String| {
        words.iter().fold(program.to_owned(), |line, word| format!("{line} {}", quote(word)))
    };
    let (single, double) = (line(single), line(double));
    assert_eq!(verdict(&single), verdict(&double), "{single}\n{double}");
});
