//! Maximum length of functions outside tests.

use crate::source::products;

const MAX_LINES: usize = 70;

/// Function in a file.
#[derive(Debug, PartialEq, Eq)]
struct Function<'a> {
    name: &'a str,
    /// Line of `fn`, from 1.
    line: usize,
    /// Number of lines from `fn` to the closing brace.
    lines: usize,
}

/// Returns the functions that have a body. Nested functions are also listed separately.
fn functions(code: &str) -> Vec<Function<'_>> {
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    let one = |(at, word): (usize, &str)| {
        let rest = &code[at + word.len()..];
        let name = &rest[..rest.find(|letter| !is_word(letter)).unwrap_or(rest.len())];
        if name.is_empty() || code[..at].chars().next_back().is_some_and(is_word) {
            return None;
        }
        let length = word.len() + body_end(rest)?;
        let line = code[..at].matches('\n').count() + 1;
        Some(Function { name, line, lines: code[at..at + length].matches('\n').count() + 1 })
    };
    code.match_indices("fn ").filter_map(one).collect()
}

/// Returns the end of the body that follows a signature, or `None` if there is no body.
fn body_end(signature: &str) -> Option<usize> {
    let (mut nested, mut depth) = (0_usize, 0_usize);
    for (at, letter) in signature.char_indices() {
        match letter {
            '(' | '[' if depth == 0 => nested += 1,
            ')' | ']' if depth == 0 => nested = nested.saturating_sub(1),
            ';' if depth == 0 && nested == 0 => return None,
            '{' => depth += 1,
            '}' if depth <= 1 => return Some(at + 1),
            '}' => depth -= 1,
            _ => {}
        }
    }
    None
}

#[test]
fn functions_do_not_exceed_the_maximum_length() {
    let mut long = Vec::new();
    for source in &products() {
        let code = source.code();
        let too_long = functions(&code).into_iter().filter(|function| function.lines > MAX_LINES);
        long.extend(too_long.map(|Function { name, line, lines }| (lines, format!("{}:{line} `{name}`", source.path))));
    }
    long.sort();
    let list: Vec<String> = long.iter().map(|(lines, place)| format!("{place}: {lines} lines, at most {MAX_LINES}")).collect();
    assert!(list.is_empty(), "functions are too long:\n{}\n", list.join("\n"));
}

#[test]
fn functions_are_measured_from_the_name_to_the_end_of_the_body() {
    let code = "trait A {\n  fn without(&self) -> [u8; 2];\n}\nconst fn outer(\n  a: [u8; 3],\n) -> u8 {\n  fn inner() {}\n  if a { b }\n}\nlet f: fn (u8);";
    let function = |name, line, lines| Function { name, line, lines };
    assert_eq!(functions(code), [function("outer", 4, 6), function("inner", 7, 1)]);
}
