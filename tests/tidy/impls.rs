//! Inherent impls of a type, which may be in at most three files.

use crate::exceptions::{Exception, check};
use crate::modules::{Graph, module_path, tokens};
use crate::source::{Role, sources};
use std::collections::{BTreeMap, BTreeSet};

const MAX_FILES: usize = 3;

/// Types whose impls are in more files.
const SPREAD: &[Exception] = &[];

/// Returns the types that have an inherent impl in this code.
fn implemented<'a>(tokens: &[&'a str]) -> Vec<&'a str> {
    let starts =
        tokens.iter().enumerate().filter(|(at, token)| **token == "impl" && (*at == 0 || is_item_start(tokens[*at - 1])));
    starts.filter_map(|(at, _)| subject(&tokens[at + 1..])).collect()
}

fn is_item_start(before: &str) -> bool {
    [";", "}", "]", "{", "unsafe"].contains(&before)
}

/// Returns the name of the type after `impl`, or `None` for a trait impl.
fn subject<'a>(tokens: &[&'a str]) -> Option<&'a str> {
    let (mut depth, mut name) = (0_i32, None);
    for (at, token) in tokens.iter().enumerate() {
        match *token {
            "<" => depth += 1,
            ">" if at > 0 && tokens[at - 1] != "-" => depth -= 1,
            "for" if depth == 0 => return None,
            "{" | "where" if depth == 0 => return name,
            word if depth == 0 && word.starts_with(char::is_alphabetic) => name = Some(word),
            _ => {}
        }
    }
    None
}

#[test]
fn types_have_inherent_impls_in_at_most_three_files() {
    let sources = sources("src");
    let graph = Graph::new(&sources);
    let mut files: BTreeMap<Vec<String>, BTreeSet<&str>> = BTreeMap::new();
    for source in sources.iter().filter(|source| source.role == Role::Product) {
        let code = source.code();
        let tokens = tokens(&code);
        let here = module_path(source);
        for name in implemented(&tokens) {
            let declares = |pair: &[&str]| ["struct", "enum", "union"].contains(&pair[0]) && pair[1] == name;
            let is_here = tokens.windows(2).any(declares);
            let import = graph.import(&here, name).filter(|_| !is_here);
            let place = import.map_or_else(|| here.clone(), |path| graph.resolve(&path).0);
            let path = [place.as_slice(), &[name.to_owned()]].concat();
            files.entry(path).or_default().insert(&source.path);
        }
    }
    let spread = files.iter().filter(|(_, files)| files.len() > MAX_FILES);
    let found: Vec<_> = spread
        .map(|(path, files)| (path[0].clone(), format!("{} has inherent impls in {} files", path.join("::"), files.len())))
        .collect();
    check("types with inherent impls in more than three files", SPREAD, &found);
}

#[test]
fn inherent_impls_are_distinguished_from_trait_impls() {
    let code = "impl A { fn f() -> impl Fn() {} } impl<T: Into<B>> C<T> where T: D {} impl E for F {} impl<'a> g::H<'a> {}";
    assert_eq!(implemented(&tokens(code)), ["A", "C", "H"]);
}
