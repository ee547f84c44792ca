//! Module graph of the crate: the paths that each file uses, resolved through re-exports, and cycles among siblings.

use crate::exceptions::{Exception, check};
use crate::source::{Role, Source, sources};
use std::collections::{BTreeMap, BTreeSet};

/// Siblings that are part of a cycle.
const IN_A_CYCLE: &[Exception] = &[];

type Path = Vec<String>;

/// Paths in the code of a module, relative to the root of the crate.
#[derive(Debug, Default)]
struct Module {
    uses: Vec<Path>,
    /// Exported names with the paths to which they refer.
    exports: BTreeMap<String, Path>,
}

/// All modules outside tests, by path.
pub struct Graph {
    modules: BTreeMap<Path, Module>,
}

/// Returns the module path of a file.
pub fn module_path(source: &Source) -> Path {
    let below = source.path.trim_start_matches("src/").trim_end_matches(".rs");
    let mut parts: Path = below.split('/').map(str::to_owned).collect();
    if parts.last().is_some_and(|last| ["mod", "lib", "main"].contains(&last.as_str())) {
        parts.pop();
    }
    parts
}

fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

/// Splits code into words, `::` and single characters, without whitespace.
pub fn tokens(code: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let mut rest = code.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = if is_word(first) {
            rest.find(|letter| !is_word(letter)).unwrap_or(rest.len())
        } else if rest.starts_with("::") {
            2
        } else {
            first.len_utf8()
        };
        out.push(&rest[..length]);
        rest = rest[length..].trim_start();
    }
    out
}

/// Collects the paths of a use tree with the names that they introduce, and moves `at` to the end of the tree.
fn tree(tokens: &[&str], at: &mut usize, prefix: &[String], into: &mut Vec<(Path, String)>) {
    let mut path = prefix.to_vec();
    while let Some(&token) = tokens.get(*at) {
        match token {
            "::" => *at += 1,
            "{" => {
                *at += 1;
                while tokens.get(*at).is_some_and(|&token| token != "}") {
                    if tokens[*at] == "," {
                        *at += 1;
                    } else {
                        tree(tokens, at, &path, into);
                    }
                }
                *at += 1;
                return;
            }
            "as" => {
                let name = tokens.get(*at + 1).copied().unwrap_or_default().to_owned();
                *at += 2;
                into.push((path, name));
                return;
            }
            word if word.starts_with(is_word) => {
                if word != "self" || path.is_empty() {
                    path.push(word.to_owned());
                }
                *at += 1;
            }
            "*" => *at += 1,
            _ => break,
        }
    }
    let name = path.last().cloned().unwrap_or_default();
    into.push((path, name));
}

/// Returns the path from the root of the crate, or `None` for a name of another crate or of the file itself.
fn absolute(path: &[String], module: &[String], is_module: &dyn Fn(&[String]) -> bool) -> Option<Path> {
    let first = path.first()?;
    match first.as_str() {
        "crate" => Some(path[1..].to_vec()),
        "self" => Some([module, &path[1..]].concat()),
        "super" => {
            let up = path.iter().take_while(|part| *part == "super").count();
            let base = module.get(..module.len().checked_sub(up)?)?;
            Some([base, &path[up..]].concat())
        }
        _ => {
            let child = [module, &path[..1]].concat();
            is_module(&child).then(|| [module, path].concat())
        }
    }
}

impl Graph {
    pub fn new(sources: &[Source]) -> Self {
        let product: Vec<_> =
            sources.iter().filter(|source| source.role == Role::Product && source.path.starts_with("src/")).collect();
        let known: BTreeSet<Path> = product.iter().map(|source| module_path(source)).collect();
        let is_module = |path: &[String]| known.contains(path);
        let modules = product.iter().map(|source| {
            let path = module_path(source);
            let module = read_module(&source.code(), &path, &is_module);
            (path, module)
        });
        Self { modules: modules.collect() }
    }

    /// Follows re-exports. Returns the module to which a path leads, and the rest of the path.
    pub fn resolve(&self, path: &[String]) -> (Path, Path) {
        let mut path = path.to_vec();
        for _ in 0..8 {
            let length = (0..=path.len()).rev().find(|&length| self.modules.contains_key(&path[..length])).unwrap_or(0);
            let (module, rest) = path.split_at(length);
            let export = rest.first().and_then(|name| self.modules.get(module)?.exports.get(name));
            match export {
                Some(target) if !path.starts_with(target) => path = [target.as_slice(), &rest[1..]].concat(),
                _ => return (module.to_vec(), rest.to_vec()),
            }
        }
        (path, Vec::new())
    }

    /// Returns the path of an imported name.
    pub fn import(&self, module: &[String], name: &str) -> Option<Path> {
        self.modules.get(module)?.uses.iter().find(|path| path.last().is_some_and(|last| last == name)).cloned()
    }

    /// Returns the dependencies among the children of each module.
    fn siblings(&self) -> BTreeMap<Path, BTreeSet<(String, String)>> {
        let mut edges: BTreeMap<Path, BTreeSet<(String, String)>> = BTreeMap::new();
        for (from, module) in &self.modules {
            for path in &module.uses {
                let (to, _) = self.resolve(path);
                let common = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
                if let (Some(a), Some(b), true) = (from.get(common), to.get(common), common > 0) {
                    edges.entry(from[..common].to_vec()).or_default().insert((a.clone(), b.clone()));
                }
            }
        }
        edges
    }
}

fn read_module(code: &str, path: &Path, is_module: &dyn Fn(&[String]) -> bool) -> Module {
    let tokens = tokens(code);
    let mut module = Module::default();
    let mut at = 0;
    while at < tokens.len() {
        if tokens[at] == "use" {
            let public = at > 0 && (tokens[at - 1] == "pub" || tokens[at - 1] == ")");
            at += 1;
            let mut found = Vec::new();
            tree(&tokens, &mut at, &[], &mut found);
            for (used, name) in found {
                if let Some(used) = absolute(&used, path, is_module) {
                    if public {
                        module.exports.insert(name, used.clone());
                    }
                    module.uses.push(used);
                }
            }
        } else if tokens[at].starts_with(is_word) && tokens.get(at + 1) == Some(&"::") && (at == 0 || tokens[at - 1] != "::") {
            let mut used = vec![tokens[at].to_owned()];
            while tokens.get(at + 1) == Some(&"::") && tokens.get(at + 2).is_some_and(|token| token.starts_with(is_word)) {
                used.push(tokens[at + 2].to_owned());
                at += 2;
            }
            module.uses.extend(absolute(&used, path, is_module));
            at += 1;
        } else {
            at += 1;
        }
    }
    module
}

/// Returns the names that are part of a cycle.
fn in_a_cycle(edges: &BTreeSet<(String, String)>) -> BTreeSet<String> {
    let reached_from = |start: &String| {
        let mut reached = BTreeSet::new();
        let mut next = vec![start];
        while let Some(from) = next.pop() {
            for (_, to) in edges.iter().filter(|(name, _)| name == from) {
                if reached.insert(to) {
                    next.push(to);
                }
            }
        }
        reached
    };
    edges.iter().map(|(from, _)| from).filter(|from| reached_from(from).contains(from)).cloned().collect()
}

#[test]
fn no_module_is_in_a_cycle_with_its_siblings() {
    let graph = Graph::new(&sources("src"));
    let mut found = Vec::new();
    for (parent, edges) in graph.siblings() {
        for name in in_a_cycle(&edges) {
            let uses: Vec<_> = edges.iter().filter(|(from, _)| *from == name).map(|(_, to)| to.as_str()).collect();
            found.push((parent[0].clone(), format!("{}::{name} is in a cycle; it uses {}", parent.join("::"), uses.join(", "))));
        }
    }
    check("siblings in a cycle", IN_A_CYCLE, &found);
}

#[test]
fn cycles_are_found_through_reexports_and_in_every_form_of_use() {
    let file = |path: &str, text: &str| Source { path: format!("src/{path}"), text: text.to_owned(), role: Role::Product };
    let files = [
        file("x/mod.rs", "mod a; mod b; mod c; pub use b::{Deep, deeper as Other};"),
        file("x/a.rs", "use super::{Deep as D, c::C};"),
        file("x/b.rs", "fn f() -> u8 { crate::x::c::g(1) }"),
        file("x/c.rs", "use super::Other;"),
    ];
    let siblings = Graph::new(&files).siblings();
    let edges = &siblings[&vec!["x".to_owned()]];
    let edge = |a: &str, b: &str| (a.to_owned(), b.to_owned());
    assert_eq!(*edges, BTreeSet::from([edge("a", "b"), edge("a", "c"), edge("b", "c"), edge("c", "b")]));
    assert_eq!(in_a_cycle(edges), BTreeSet::from(["b".to_owned(), "c".to_owned()]));
}
