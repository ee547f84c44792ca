//! Compares the layers in `docs/ARCHITECTURE.md` with the dependencies in `src`.

use crate::source::{Source, lines_with, products, read, sources};
use std::collections::{BTreeMap, BTreeSet};

/// Modules that a module may use.
#[derive(Debug, PartialEq, Eq)]
enum Allowed {
    Everything,
    Only(BTreeSet<String>),
}

/// Returns the layers in the order of the document.
fn layers() -> Vec<(String, Allowed)> {
    let page = read("docs/ARCHITECTURE.md");
    let block = page.split("```layers\n").nth(1).and_then(|rest| rest.split("```").next());
    let Some(block) = block else { panic!("docs/ARCHITECTURE.md has no ```layers block") };
    block.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')).map(parse).collect()
}

fn parse(line: &str) -> (String, Allowed) {
    let Some((name, uses)) = line.split_once(':') else { panic!("a line of the layers block is `name: names`, not `{line}`") };
    let allowed = if uses.trim_start().starts_with("(everything") {
        Allowed::Everything
    } else {
        Allowed::Only(uses.split_whitespace().map(str::to_owned).collect())
    };
    (name.to_owned(), allowed)
}

/// Returns the modules of the crate that a file uses, each with the line of its first use.
fn uses(source: &Source, modules: &BTreeSet<String>) -> BTreeMap<String, usize> {
    let code = source.code();
    let mut found = BTreeMap::new();
    let root = "super::".repeat(source.depth());
    for start in ["crate::", root.as_str()] {
        for (at, _) in code.match_indices(start) {
            let before = code[..at].chars().next_back();
            if before.is_some_and(|letter| letter.is_alphanumeric() || letter == '_' || letter == '$' || letter == ':') {
                continue;
            }
            let line = code[..at].matches('\n').count() + 1;
            for name in heads(&code[at + start.len()..]) {
                if modules.contains(name) && source.module() != Some(name) {
                    found.entry(name.to_owned()).or_insert(line);
                }
            }
        }
    }
    found
}

/// Returns the first names of a path after `crate::`: `a` for `a::b`, and `a` and `d` for `{a::{b, c}, d}`.
fn heads(text: &str) -> Vec<&str> {
    let name = |text| -> &str {
        let text: &str = str::trim_start(text);
        let end = text.find(|letter: char| !letter.is_alphanumeric() && letter != '_').unwrap_or(text.len());
        &text[..end]
    };
    let Some(group) = text.strip_prefix('{') else { return vec![name(text)] };
    let mut depth = 0_i32;
    let mut names = vec![name(group)];
    for (at, letter) in group.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => names.push(name(&group[at + 1..])),
            _ => {}
        }
    }
    names
}

#[test]
fn module_names_are_parsed_from_every_form_of_use() {
    assert_eq!(heads("a::b::C;"), ["a"]);
    assert_eq!(heads("{a::{b, c}, d, e::F};"), ["a", "d", "e"]);
    assert_eq!(heads("{\n    a,\n    b::*,\n};"), ["a", "b", ""]);
}

#[test]
fn the_layers_block_lists_every_module_without_cycles() {
    let layers = layers();
    let listed: BTreeSet<_> = layers.iter().map(|(name, _)| name.clone()).collect();
    let real: BTreeSet<_> = sources("src").iter().filter_map(|source| source.module().map(str::to_owned)).collect();
    assert_eq!(listed, real, "the layers block of docs/ARCHITECTURE.md against the folders of src");
    let mut above = BTreeSet::new();
    for (name, allowed) in &layers {
        if let Allowed::Only(uses) = allowed {
            let unknown: Vec<_> = uses.difference(&above).collect();
            assert!(unknown.is_empty(), "`{name}` uses {unknown:?}, which must stand above it");
        }
        above.insert(name.clone());
    }
}

#[test]
fn modules_use_exactly_the_modules_listed_for_them() {
    let layers: BTreeMap<_, _> = layers().into_iter().collect();
    let modules: BTreeSet<_> = layers.keys().cloned().collect();
    let mut used: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut wrong = Vec::new();
    for source in &products() {
        let Some(module) = source.module() else { continue };
        for (name, line) in uses(source, &modules) {
            match &layers[module] {
                Allowed::Only(listed) if !listed.contains(&name) => {
                    wrong.push(format!("{}:{line}: `{module}` must not use `{name}`", source.path));
                }
                Allowed::Only(_) | Allowed::Everything => {
                    used.entry(module.to_owned()).or_default().insert(name);
                }
            }
        }
    }
    let none = BTreeSet::new();
    for (module, allowed) in &layers {
        if let (Allowed::Only(listed), true) = (allowed, has_code(module)) {
            for name in listed.difference(used.get(module).unwrap_or(&none)) {
                wrong.push(format!("docs/ARCHITECTURE.md: `{module}` does not use `{name}`: take it out of its line"));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

/// Returns whether a module contains code besides comments.
fn has_code(module: &str) -> bool {
    sources("src").iter().any(|source| source.module() == Some(module) && !source.code().trim().is_empty())
}

#[test]
fn every_module_has_a_row_in_the_table() {
    let page = read("docs/ARCHITECTURE.md");
    for (name, _) in layers() {
        assert!(!lines_with(&page, &format!("| `{name}` |")).is_empty(), "docs/ARCHITECTURE.md says nowhere what `{name}` knows");
    }
}
