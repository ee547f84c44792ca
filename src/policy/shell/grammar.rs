//! The line as a real grammar reads it; an allow needs this reading and the scanner's to agree.

use super::lexer::{Scan, UNPARSABLE};
use std::borrow::Cow;
use std::cell::RefCell;
use std::ops::{ControlFlow, Range};
use tree_sitter::{Node, ParseOptions, ParseState, Parser, Tree};

const TWO_READINGS: &str = "the line can be parsed in more than one way";
const NOT_PLAIN: &str = "the line uses a construct that allow rules do not cover";

/// How often the parser may report on a line before it is given up; it reports after a fixed amount of work.
const TIMEOUT: usize = 64;
/// Up to here it looks for what can be read behind an error, which costs the square of the length.
const RECOVERED: usize = 512;

thread_local! {
    /// Made at the first line that is judged on a thread.
    static PARSER: RefCell<Option<Parser>> = const { RefCell::new(None) };
}

fn parse(line: &str) -> Option<Tree> {
    PARSER.with_borrow_mut(|slot| {
        // Put back at the end only: a parser that was in use when something panicked is not used again.
        let mut parser = slot.take();
        if parser.is_none() {
            let mut made = Parser::new();
            made.set_language(&tree_sitter_bash::LANGUAGE.into()).ok()?;
            parser = Some(made);
        }
        let text = harmless(line);
        let bytes = text.as_bytes();
        let mut reports = 0;
        let mut given_up = |state: &ParseState| {
            reports += 1;
            let lost = state.has_error() && bytes.len() > RECOVERED;
            if lost || reports > TIMEOUT + bytes.len() / 8 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let options = ParseOptions::new().progress_callback(&mut given_up);
        let tree = parser.as_mut()?.parse_with_options(&mut |at, _| bytes.get(at..).unwrap_or_default(), None, Some(options));
        // Its memory of here-documents outlives the text they stood in.
        if tree.is_some() && !line.contains("<<") {
            *slot = parser;
        }
        tree
    })
}

/// The line with all its bytes in their places, and a letter for each that is not plain text. The grammar's own scanner looks
/// letters up in a table that ends early, and takes for blanks what a shell does not.
fn harmless(line: &str) -> Cow<'_, str> {
    let plain = |byte: u8| matches!(byte, b' '..=b'~' | b'\t' | b'\n');
    if line.bytes().all(plain) {
        return Cow::Borrowed(line);
    }
    line.bytes().map(|byte| if plain(byte) { char::from(byte) } else { 'x' }).collect::<String>().into()
}

/// Why the grammar does not confirm what the scanner found, if it does not.
pub fn disagreement(line: &str, scan: &Scan) -> Option<&'static str> {
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
            // The grammar reads bytes: a node may begin or end inside a character.
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
        // The brackets and operators of a condition are words like others.
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
    let same = commands == scan.commands.len() && words == scan.raws;
    (!same).then_some(TWO_READINGS)
}

/// The texts of all simple commands the grammar finds, also in a text with errors.
pub fn commands(line: &str) -> Vec<String> {
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

/// Where each command that stands alone at the top of a line ends, but for the last: before a `;`, a line break or an `&&`. None
/// where the line is anything but a list of these.
pub fn sequence_ends(line: &str) -> Vec<usize> {
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
                // It nests to the left.
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

/// The text in a range of bytes, made longer at both ends where it would cut a character.
fn whole_characters(line: &str, range: Range<usize>) -> &str {
    let start = (0..=range.start.min(line.len())).rev().find(|at| line.is_char_boundary(*at)).unwrap_or(0);
    let end = (range.end.min(line.len())..=line.len()).find(|at| line.is_char_boundary(*at)).unwrap_or(line.len());
    &line[start..end.max(start)]
}

/// Whether it is `[ … ]` or stands in one.
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

/// Depth first without recursion: a line can nest deeper than a stack.
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
