//! Parses command lines with a complete grammar. A line can be allowed only if this parse agrees with the result of the
//! scanner.

use super::lexer::{Scan, UNPARSABLE};
use std::borrow::Cow;
use std::cell::RefCell;
use std::ops::{ControlFlow, Range};
use tree_sitter::{Node, ParseOptions, ParseState, Parser, Tree};

const TWO_READINGS: &str = "the line can be parsed in more than one way";
const NOT_PLAIN: &str = "the line uses a construct that allow rules do not cover";

/// Number of progress reports after which parsing of a short line is aborted. The parser sends a report after a fixed
/// amount of work.
const TIMEOUT: usize = 64;
/// Maximum length, in bytes, of a line for which the parser recovers from errors. Error recovery takes quadratic time.
const RECOVERED: usize = 512;

thread_local! {
    /// Parser of the current thread, created when the thread parses its first line.
    static PARSER: RefCell<Option<Parser>> = const { RefCell::new(None) };
}

fn parse(line: &str) -> Option<Tree> {
    PARSER.with_borrow_mut(|slot| {
        // The parser is put back only at the end, so a parser that was in use during a panic is not used again.
        let mut parser = slot.take();
        if parser.is_none() {
            let mut made = Parser::new();
            made.set_language(&tree_sitter_bash::LANGUAGE.into()).ok()?;
            parser = Some(made);
        }
        let text = mask_text(line);
        let bytes = text.as_bytes();
        let mut reports = 0;
        let mut given_up = |state: &ParseState| {
            reports += 1;
            let lost = state.has_error() && bytes.len() > RECOVERED;
            if lost || reports > TIMEOUT + bytes.len() / 8 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let options = ParseOptions::new().progress_callback(&mut given_up);
        let tree = parser.as_mut()?.parse_with_options(&mut |at, _| bytes.get(at..).unwrap_or_default(), None, Some(options));
        // A parser that has seen a here-document is dropped, because its state would affect later lines.
        if tree.is_some() && !line.contains("<<") {
            *slot = parser;
        }
        tree
    })
}

/// Replaces each byte that is not plain text with a letter. This is necessary because the grammar's own scanner uses a
/// character table that is too short, and its set of spaces differs from that of a shell.
fn mask_text(line: &str) -> Cow<'_, str> {
    let plain = |byte: u8| matches!(byte, b' '..=b'~' | b'\t' | b'\n');
    if line.bytes().all(plain) {
        return Cow::Borrowed(line);
    }
    line.bytes().map(|byte| if plain(byte) { char::from(byte) } else { 'x' }).collect::<String>().into()
}

/// Returns why the grammar does not confirm the scanner's result, or `None` if it does.
pub(crate) fn disagreement(line: &str, scan: &Scan) -> Option<&'static str> {
    let Some(tree) = parse(line) else { return Some(UNPARSABLE) };
    if tree.root_node().has_error() {
        return Some(UNPARSABLE);
    }
    let mut words = Vec::new();
    let mut commands = 0_usize;
    let mut plain = true;
    let mut cut = false;
    visit(&tree, |node| match node.kind() {
        "program" | "list" | "pipeline" | "redirected_statement" | "file_redirect" | "command_name" | "comment" => true,
        "command" => {
            commands += 1;
            true
        }
        "word" | "raw_string" | "string" | "concatenation" | "number" | "ansi_c_string" => {
            // The grammar works on bytes: a node may begin or end inside a character.
            match line.get(node.byte_range()) {
                Some(word) => words.push(word),
                None => cut = true,
            }
            plain &= node.kind() != "string" && node.kind() != "concatenation" || !has_expansion(node);
            false
        }
        "test_command" if node.child(0).is_some_and(|open| open.kind() == "[") => {
            commands += 1;
            true
        }
        "unary_expression" | "binary_expression" | "parenthesized_expression" if conditional(node) => true,
        "test_operator" => {
            words.extend(line.get(node.byte_range()));
            false
        }
        "file_descriptor" => false,
        // In a condition, brackets and operators are ordinary words.
        _ if !node.is_named() && node.parent().is_some_and(conditional) => {
            words.extend(line.get(node.byte_range()));
            false
        }
        _ if !node.is_named() => false,
        _ => {
            plain = false;
            false
        }
    });
    if cut {
        return Some(UNPARSABLE);
    }
    if !plain {
        return Some(NOT_PLAIN);
    }
    let same = commands == scan.commands.len() && are_same_words(&words, &scan.raws);
    (!same).then_some(TWO_READINGS)
}

/// Returns whether the grammar and the scanner found the same words. The grammar skips a `-` that precedes the
/// descriptor of a redirect, as in `cat - 2>/dev/null`.
fn are_same_words(of_grammar: &[&str], of_scanner: &[String]) -> bool {
    let mut rest = of_grammar.iter().peekable();
    of_scanner.iter().all(|word| rest.next_if(|found| **found == word).is_some() || word == "-") && rest.next().is_none()
}

/// Returns the text of every simple command that the grammar finds, even if the line contains errors.
pub(crate) fn commands(line: &str) -> Vec<String> {
    let mut found = Vec::new();
    if let Some(tree) = parse(line) {
        visit(&tree, |node| {
            if matches!(node.kind(), "command" | "declaration_command") {
                found.push(whole_characters(line, node.byte_range()).to_owned());
            }
            true
        });
    }
    found
}

/// Returns the positions at which a top-level command of a line ends, before a `;`, newline or `&&`. The end of the
/// last command is not included. Returns an empty list if the line is not such a sequence.
pub(crate) fn sequence_ends(line: &str) -> Vec<usize> {
    let Some(tree) = parse(line).filter(|tree| !tree.root_node().has_error() && !line.contains("<<")) else { return Vec::new() };
    let root = tree.root_node();
    let mut ends = Vec::new();
    let mut cursor = root.walk();
    for child in root.children(&mut cursor) {
        match child.kind() {
            ";" | "\n" | "comment" => {}
            "list" => {
                let mut and = Vec::new();
                let mut list = child;
                // Lists are nested to the left.
                while list.kind() == "list" && list.child_count() == 3 {
                    let (Some(left), Some(operator)) = (list.child(0), list.child(1)) else { return Vec::new() };
                    if operator.kind() != "&&" {
                        return Vec::new();
                    }
                    and.push(left.end_byte());
                    list = left;
                }
                ends.extend(and.into_iter().rev());
                ends.push(child.end_byte());
            }
            _ if child.is_named() => ends.push(child.end_byte()),
            _ => return Vec::new(),
        }
    }
    ends.pop();
    if ends.iter().all(|end| line.is_char_boundary(*end)) { ends } else { Vec::new() }
}

/// Splits a line of commands and pipelines joined only by `&&` into the first command and the rest. Returns `None` for
/// any other line.
pub(crate) fn first_and_rest(line: &str) -> Option<(&str, &str)> {
    let tree = parse(line).filter(|tree| !tree.root_node().has_error() && !line.contains("<<"))?;
    let root = tree.root_node();
    let mut list = root.child(0).filter(|list| root.child_count() == 1 && list.kind() == "list")?;
    loop {
        let (left, operator, right) = (list.child(0)?, list.child(1)?, list.child(2)?);
        let is_simple = |node: Node<'_>| matches!(node.kind(), "command" | "pipeline" | "test_command");
        if list.child_count() != 3 || operator.kind() != "&&" || !is_simple(right) {
            return None;
        }
        if left.kind() == "command" {
            return Some((line.get(left.byte_range())?, line.get(right.start_byte()..root.child(0)?.end_byte())?));
        }
        list = Some(left).filter(|left| left.kind() == "list")?;
    }
}

/// Returns the text in a byte range, extended at both ends to include whole characters.
fn whole_characters(line: &str, range: Range<usize>) -> &str {
    let start = (0..=range.start.min(line.len())).rev().find(|at| line.is_char_boundary(*at)).unwrap_or(0);
    let end = (range.end.min(line.len())..=line.len()).find(|at| line.is_char_boundary(*at)).unwrap_or(line.len());
    &line[start..end.max(start)]
}

/// Returns whether a node is `[ … ]` or inside one.
fn conditional(node: Node<'_>) -> bool {
    let mut node = node;
    while matches!(node.kind(), "unary_expression" | "binary_expression" | "parenthesized_expression") {
        let Some(parent) = node.parent() else { return false };
        node = parent;
    }
    node.kind() == "test_command" && node.child(0).is_some_and(|open| open.kind() == "[")
}

fn has_expansion(node: Node<'_>) -> bool {
    let mut cursor = node.walk();
    node.named_children(&mut cursor).any(|child| {
        !matches!(child.kind(), "string_content" | "word" | "raw_string" | "number" | "ansi_c_string")
            && (child.kind() != "string" || has_expansion(child))
    })
}

/// Visits nodes depth first. Does not recurse, because a deeply nested line would overflow the stack.
fn visit<'t>(tree: &'t Tree, mut enter: impl FnMut(Node<'t>) -> bool) {
    let mut cursor = tree.walk();
    loop {
        if enter(cursor.node()) && cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return;
            }
        }
    }
}
