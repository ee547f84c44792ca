//! Any words as a command, in two ways of quoting that bash reads as the same words: the same verdict for both.

#![no_main]

mod verdict;

use libfuzzer_sys::fuzz_target;
use verdict::verdict;

/// Programs whose options decide whether a line only reads.
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
    // No word of a command has a NUL byte. A backslash before a line break in double quotes is not read exactly, and asks.
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
