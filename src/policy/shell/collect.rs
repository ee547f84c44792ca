//! Which commands of a line give values to its variables, its aliases and its positional parameters.

use super::scan::{Assignment, Scan, assigned};
use super::values::{Arg, Values};
use super::word::{Reader, Word};

/// Learns from a whole text before any of its commands is judged, in whatever order they run.
pub fn collect(values: &mut Values, scan: &Scan) {
    for assignment in scan.commands.iter().flat_map(|command| &command.assignments).chain(&scan.loops) {
        values.assign(assignment);
    }
    values.functions.extend(scan.functions.iter().cloned());
    for command in &scan.commands {
        let Some((name, rest)) = command.words.split_first() else { continue };
        let Some(name) = name.literal() else { continue };
        match super::base(&name) {
            "export" | "declare" | "typeset" | "local" | "readonly" | "env" => {
                for word in rest {
                    declared(values, word);
                }
            }
            "alias" => aliased(values, rest),
            "set" => {
                let from = rest.iter().position(|word| word.raw == "--").map_or(0, |at| at + 1);
                position(values, &rest[from..]);
            }
            "read" | "mapfile" | "readarray" => {
                let texts = command.redirects.iter().filter(|redirect| redirect.operator == "<<<");
                let fed: Vec<Word> = texts.map(|redirect| redirect.target.clone()).collect();
                for word in rest.iter().filter(|word| !word.raw.starts_with('-')) {
                    for value in &fed {
                        values.assign(&Assignment { name: word.raw.clone(), values: vec![value.clone()] });
                    }
                }
            }
            "printf" if rest.first().is_some_and(|word| word.raw == "-v") && rest.len() > 2 => {
                for args in values.readings(&rest[2..]) {
                    if let Some(text) = super::values::printed("printf", &args) {
                        values.assign_text(&rest[1].raw, &text);
                    }
                }
            }
            called if values.functions.iter().any(|function| function == called) => position(values, rest),
            _ => {}
        }
    }
}

fn declared(values: &mut Values, word: &Word) {
    if let Some(name) = assigned(&word.raw) {
        let from = word.raw.find('=').map_or(0, |at| at + 1);
        let value = Reader::new(&word.raw[from..]).word();
        values.assign(&Assignment { name, values: vec![value] });
    }
}

fn aliased(values: &mut Values, words: &[Word]) {
    let args: Vec<Vec<Arg>> = values.readings(words);
    for arg in args.into_iter().flatten() {
        if let Some((name, text)) = arg.text.split_once('=') {
            let meanings = values.aliases.entry(name.to_owned()).or_default();
            if !meanings.iter().any(|known| known == text) {
                meanings.push(text.to_owned());
            }
        }
    }
}

fn position(values: &mut Values, words: &[Word]) {
    for args in values.readings(words) {
        values.position(&args);
    }
}
