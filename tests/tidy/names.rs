//! Names of files, types and functions, and the first words of file headers.

use crate::exceptions::{Exception, check};
use crate::modules::tokens;
use crate::source::{Source, products};

/// File names that do not describe the content of the file.
const STEMS: &[&str] = &[
    "aside",
    "asked",
    "backstage",
    "bench",
    "beside",
    "desk",
    "elsewhere",
    "farewell",
    "found",
    "ground",
    "hand",
    "heard",
    "held",
    "here",
    "kept",
    "known",
    "late",
    "look",
    "look_up",
    "meant",
    "misnamed",
    "opened",
    "ours",
    "outside",
    "own",
    "paper",
    "past",
    "pen",
    "place",
    "reading",
    "room",
    "said",
    "shown",
    "since",
    "standing",
    "taken",
    "talk",
    "told",
    "trouble",
    "unset",
    "why",
    "wire",
    "wires",
    "wanted",
];
const BANNED_STEMS: &[Exception] = &[];

/// Type names that are not technical nouns but participles, adverbs, pronouns or metaphors.
const TYPES: &[&str] = &[
    "Ahead",
    "Allowed",
    "Asked",
    "Backstage",
    "Before",
    "Begun",
    "Bell",
    "Beside",
    "Brought",
    "Desk",
    "Did",
    "Drawn",
    "Foretold",
    "Found",
    "Given",
    "Gone",
    "Got",
    "Greeting",
    "Ground",
    "Heard",
    "Held",
    "Here",
    "Hidden",
    "Kept",
    "Known",
    "Laid",
    "Late",
    "Left",
    "Look",
    "Looked",
    "Looks",
    "Made",
    "Meant",
    "Most",
    "Nobody",
    "Not",
    "Noted",
    "Nowhere",
    "Odd",
    "Off",
    "Opened",
    "Ours",
    "Paper",
    "Passed",
    "Past",
    "Piece",
    "Pieces",
    "Promise",
    "Said",
    "Seat",
    "Shown",
    "Shut",
    "Since",
    "Speaker",
    "Standing",
    "Stated",
    "Stood",
    "Sureness",
    "Taken",
    "Talk",
    "Then",
    "Told",
    "Tried",
    "Trouble",
    "Understands",
    "Undone",
    "Unkept",
    "Unset",
    "Unshowable",
    "Waits",
    "Wanted",
    "Was",
    "Way",
    "What",
    "When",
    "Where",
    "Which",
    "Why",
    "Wires",
    "Wish",
    "Wishes",
    "Words",
    "Written",
];
const BANNED_TYPES: &[Exception] = &[];

/// First words of headers that describe a file with a clause instead of a noun.
const CLAUSES: &[&str] =
    &["How", "What", "Whatever", "When", "Where", "Whether", "Which", "Who", "Whoever", "Whose", "Why", "On what", "In what"];
const CLAUSE_HEADERS: &[Exception] = &[];

pub fn module(source: &Source) -> String {
    source.module().unwrap_or_default().to_owned()
}

#[test]
fn file_names_are_nouns() {
    let stem =
        |source: &Source| source.path.trim_end_matches("/mod.rs").trim_end_matches(".rs").rsplit('/').next().map(str::to_owned);
    let banned = |source: &&Source| stem(source).is_some_and(|stem| STEMS.contains(&stem.as_str()));
    let found: Vec<_> = products().iter().filter(banned).map(|source| (module(source), source.path.clone())).collect();
    check("file names that are no noun of the field", BANNED_STEMS, &found);
}

/// Function names that describe neither the action nor the result.
const FUNCTIONS: &[&str] = &["look", "look_up", "of", "said", "say", "stands", "stood", "tell", "told", "words"];
const BANNED_FUNCTIONS: &[Exception] = &[];

#[test]
fn function_names_describe_an_action_or_a_result() {
    let mut found = Vec::new();
    for source in products() {
        let code = source.code();
        let names = functions(&code).into_iter().filter(|name| FUNCTIONS.contains(name));
        found.extend(names.map(|name| (module(&source), format!("{}: `{name}`", source.path))));
    }
    check("function names that say neither what is done nor what is returned", BANNED_FUNCTIONS, &found);
}

/// Returns the names of the functions that code declares.
fn functions(code: &str) -> Vec<&str> {
    tokens(code).windows(2).filter(|pair| pair[0] == "fn").map(|pair| pair[1]).collect()
}

/// Returns the names of the types that code declares.
fn declared(code: &str) -> Vec<&str> {
    let tokens = tokens(code);
    let declares = |pair: &&[&str]| ["struct", "enum", "union", "trait"].contains(&pair[0]);
    tokens.windows(2).filter(declares).map(|pair| pair[1]).collect()
}

#[test]
fn type_names_are_nouns() {
    let mut found = Vec::new();
    for source in products() {
        let code = source.code();
        let names = declared(&code).into_iter().filter(|name| TYPES.contains(name));
        found.extend(names.map(|name| (module(&source), format!("{}: `{name}`", source.path))));
    }
    check("type names that are no noun of the field", BANNED_TYPES, &found);
}

fn begins_with_a_clause(text: &str) -> bool {
    let header = text.strip_prefix("//! ").unwrap_or_default();
    CLAUSES.iter().any(|word| header.strip_prefix(word).is_some_and(|rest| rest.starts_with([' ', '\'', ':'])))
}

#[test]
fn module_headers_begin_with_a_noun() {
    let clause = |source: &&Source| begins_with_a_clause(&source.text);
    let first = |source: &Source| format!("{}: {}", source.path, source.text.lines().next().unwrap_or_default());
    let found: Vec<_> = products().iter().filter(clause).map(|source| (module(source), first(source))).collect();
    check("headers that begin with a clause in place of a noun", CLAUSE_HEADERS, &found);
}

#[test]
fn clauses_and_declarations_are_recognized() {
    assert!(begins_with_a_clause("//! What a file is.\n"));
    assert!(begins_with_a_clause("//! On what terms a command runs.\n"));
    assert!(!begins_with_a_clause("//! Whole trees: counted.\n"));
    assert!(!begins_with_a_clause("//! Howling wolves.\n"));
    assert_eq!(functions("fn look() { fn inner() {} } trait C { fn of(fn_like: u8); }"), ["look", "inner", "of"]);
    assert_eq!(declared("pub struct A<T>(T); pub(crate) enum B {} trait C {} fn structure() {}"), ["A", "B", "C"]);
}
