//! Commands that assign variables, aliases and positional parameters within a line.

use super::MAX_PRINTED;
use super::arg::Arg;
use super::expand::LineAssignments;
use super::lexer::{Assignment, Scan, ScannedCommand, WordReader};
use super::names::assigned_name;
use super::word::{Parameter, Word, WordPart};

/// Maximum number of fields in a text that `read` may assign.
const MAX_FIELDS: usize = 16;

/// Collects all assignments in a text, regardless of the order in which they run, before any of its commands is judged.
pub(crate) fn collect(values: &mut LineAssignments, scan: &Scan) {
    for assignment in scan.commands.iter().flat_map(|command| &command.assignments).chain(&scan.loops) {
        values.assign(assignment);
    }
    for one in scan.loops.iter().filter(|one| one.values.iter().any(|word| word.raw.contains('{'))) {
        for args in values.readings(&one.values) {
            for arg in &args {
                values.assign_text(&one.name, &arg.text);
            }
        }
    }
    if scan.raws.iter().any(|raw| raw.contains("$_") || raw.contains("${_")) {
        let last = |command: &ScannedCommand| {
            command.words.last().filter(|word| !word.raw.contains("$_") && !word.raw.contains("${_")).cloned()
        };
        for word in scan.commands.iter().take(MAX_PRINTED).filter_map(last) {
            values.assign(&Assignment { name: "_".to_owned(), values: vec![word], appends: false });
        }
    }
    values.functions.extend(scan.functions.iter().cloned());
    let mut fed = None;
    for command in &scan.commands {
        let Some((name, rest)) = command.words.split_first() else { continue };
        let Some(name) = name.literal() else { continue };
        match super::base(&name) {
            "export" | "declare" | "typeset" | "local" | "readonly" | "env" => {
                declare(values, rest);
            }
            "shift" => values.shifts = true,
            "alias" => define_aliases(values, rest),
            "set" => {
                let from = rest.iter().position(|word| word.raw == "--" || word.raw == "-").map_or(0, |at| at + 1);
                position(values, &rest[from..]);
            }
            "read" | "mapfile" | "readarray" => {
                let fed = fed.get_or_insert_with(|| readable(values, scan)).clone();
                for word in rest.iter().filter(|word| !word.raw.starts_with('-')) {
                    for value in &fed {
                        read_into(values, word, value);
                    }
                }
            }
            "printf" if rest.first().is_some_and(|word| word.raw == "-v") && rest.len() > 2 => {
                for args in values.readings(&rest[2..]) {
                    for (text, name) in super::expand::printed_text("printf", &args).iter().zip(rest[1].literal()) {
                        values.assign_text(name.split('[').next().unwrap_or_default(), text);
                    }
                }
            }
            "getopts" => {
                for text in rest.iter().skip(2).filter_map(Word::literal) {
                    values.assign_text("OPTARG", &text);
                    values.assign_text("OPTARG", text.get(2..).unwrap_or_default());
                }
            }
            called if values.functions.contains(called) => position(values, rest),
            _ => {}
        }
    }
}

/// Assigns the variables of a `read` command. Each variable may receive the whole text or any one of its fields.
fn read_into(values: &mut LineAssignments, variable: &Word, text: &Word) {
    values.assign(&Assignment { name: variable.raw.clone(), values: vec![text.clone()], appends: false });
    // Which field a variable gets is unknown, so each field is possible.
    let text = text.literal().unwrap_or_default();
    let fields: Vec<&str> = text.split([' ', '\t', ':', ',', ';', '|']).filter(|field| !field.is_empty()).collect();
    for field in fields.iter().take(MAX_FIELDS).filter(|_| fields.len() > 1) {
        values.assign_text(&variable.raw, field);
    }
}

/// Assigns the variables of `declare` and similar commands, taking into account options that change the values.
fn declare(values: &mut LineAssignments, words: &[Word]) {
    let flag = |letter| words.iter().any(|word| word.raw.starts_with('-') && word.raw.contains(letter));
    let case = if flag('l') {
        ",,"
    } else if flag('u') {
        "^^"
    } else {
        ""
    };
    let named = flag('n');
    for word in words {
        declare_word(values, word, named, case);
    }
}

fn declare_word(values: &mut LineAssignments, word: &Word, named: bool, case: &str) {
    if let Some(name) = assigned_name(&word.raw) {
        let from = word.raw.find('=').map_or(0, |at| at + 1);
        let value = WordReader::new(&word.raw[from..]).word();
        if named {
            // The variable is another name for `other`.
            let parameter = match (value.literal(), value.pieces.as_slice()) {
                (Some(other), _) => Some(Parameter { name: other, ..Parameter::default() }),
                (None, [WordPart::Parameter { parameter, .. }]) => Some(Parameter { indirect: true, ..parameter.clone() }),
                (None, _) => None,
            };
            let pieces = vec![parameter.map_or(WordPart::Opaque, |parameter| WordPart::Parameter { parameter, quoted: true })];
            values.assign(&Assignment {
                name: name.clone(),
                values: vec![Word { raw: word.raw.clone(), pieces }],
                appends: false,
            });
        }
        if let ([WordPart::Parameter { parameter, quoted }], false) = (value.pieces.as_slice(), case.is_empty()) {
            let parameter = Parameter { operator: case.to_owned(), ..parameter.clone() };
            let pieces = vec![WordPart::Parameter { parameter, quoted: *quoted }];
            values.assign(&Assignment {
                name: name.clone(),
                values: vec![Word { raw: word.raw.clone(), pieces }],
                appends: false,
            });
        } else if let (Some(text), false) = (value.literal(), case.is_empty()) {
            values.assign_text(&name, &super::pattern::apply(&text, case, ""));
        }
        values.assign(&Assignment { name, values: vec![value], appends: false });
    }
}

/// Returns the strings that a `read` command could receive, which are here-strings, here-documents and printed text.
fn readable(values: &mut LineAssignments, scan: &Scan) -> Vec<Word> {
    let strings = scan.commands.iter().flat_map(|command| &command.redirects).filter(|redirect| redirect.operator == "<<<");
    let mut texts: Vec<Word> = strings.map(|redirect| redirect.target.clone()).collect();
    let mut printing: Vec<ScannedCommand> = scan.commands.clone();
    printing.extend(
        scan.substitutions.iter().filter(|inner| inner.len() < 4096).flat_map(|inner| super::lexer::scan(inner).commands),
    );
    for command in printing.iter().take(MAX_PRINTED) {
        let Some((name, rest)) = command.words.split_first() else { continue };
        let Some(name) = name.literal().filter(|name| matches!(name.as_str(), "echo" | "printf")) else { continue };
        for args in values.readings(rest) {
            texts.extend(super::expand::printed_text(&name, &args).iter().map(|text| literal(text)));
        }
    }
    texts.extend(scan.documents.iter().take(MAX_PRINTED).flat_map(|text| text.lines().take(MAX_PRINTED)).map(literal));
    texts
}

fn literal(text: &str) -> Word {
    Word { raw: text.to_owned(), pieces: vec![WordPart::Text { text: text.to_owned(), quoted: true }] }
}

fn define_aliases(values: &mut LineAssignments, words: &[Word]) {
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

fn position(values: &mut LineAssignments, words: &[Word]) {
    for args in values.readings(words) {
        values.position(&args);
    }
}
