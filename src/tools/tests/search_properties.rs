//! Tests of `Grep`, `Glob` and `ListDirectory` on random trees, compared with a simple implementation.

use super::*;
use proptest::prelude::*;

/// Only a few names, so that ignore rules, patterns and entries often coincide.
const NAMES: &[&str] = &["a", "b", "a.rs", "b.rs", ".dot", ".dot.rs", "c.txt", "left"];

#[derive(Debug, Clone)]
struct Tree {
    /// Files as (path, content).
    files: Vec<(Vec<&'static str>, Vec<u8>)>,
    /// Ignore rules as (directory, name ignored in it).
    ignored: Vec<(Vec<&'static str>, &'static str)>,
}

fn name() -> impl Strategy<Value = &'static str> {
    prop::sample::select(NAMES)
}

fn line() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        8 => "[abc ]{0,8}".prop_map(String::into_bytes),
        1 => Just("äbc É".as_bytes().to_vec()),
        1 => Just(b"a\xFF\xFEb".to_vec()),
        1 => Just([b"bc".to_vec(), vec![b'a'; 1100]].concat()),
    ]
}

fn content() -> impl Strategy<Value = Vec<u8>> {
    let lines = prop::collection::vec((line(), prop::sample::select(vec![&b"\n"[..], b"\n", b"\r\n"])), 0..8);
    (lines, any::<bool>(), 0..12_u8).prop_map(|(lines, ends, binary)| {
        let mut bytes: Vec<u8> = lines.into_iter().flat_map(|(line, end)| [line, end.to_vec()].concat()).collect();
        if !ends {
            bytes.extend(b"abc");
        }
        if binary == 0 {
            bytes.push(0);
        }
        bytes
    })
}

fn tree() -> impl Strategy<Value = Tree> {
    let path = || prop::collection::vec(name(), 1..4);
    let files = prop::collection::vec((path(), content()), 1..12);
    let ignored = prop::collection::vec((prop::collection::vec(name(), 0..2), name()), 0..3);
    (files, ignored).prop_map(|(files, ignored)| Tree { files, ignored })
}

impl Tree {
    fn build(&self) -> Bench {
        let bench = Bench::new();
        for (path, content) in &self.files {
            let path = bench.path(&path.join("/"));
            // Entries that do not fit the tree so far are skipped.
            if fs::create_dir_all(path.parent().unwrap()).is_ok() && !path.exists() {
                let _ = fs::write(path, content);
            }
        }
        for (directory, name) in &self.ignored {
            let list = bench.path(&directory.join("/")).join(".gitignore");
            let before = fs::read_to_string(&list).unwrap_or_default();
            let _ = fs::write(list, format!("{before}{name}\n"));
        }
        bench
    }
}

/// Lists everything in the workspace that is not ignored, as (path, whether it is a directory).
fn everything(bench: &Bench) -> Vec<(String, bool)> {
    fn walk(directory: &Path, below: &str, mut ignored: Vec<String>, found: &mut Vec<(String, bool)>) {
        ignored.extend(fs::read_to_string(directory.join(".gitignore")).unwrap_or_default().lines().map(str::to_owned));
        for entry in fs::read_dir(directory).unwrap().flatten() {
            let name = entry.file_name().into_string().unwrap();
            if ignored.contains(&name) {
                continue;
            }
            let path = format!("{below}{name}");
            let is_directory = entry.path().is_dir();
            found.push((path.clone(), is_directory));
            if is_directory {
                walk(&entry.path(), &format!("{path}/"), ignored.clone(), found);
            }
        }
    }
    let mut found = Vec::new();
    walk(&bench.settings.workspace, "", Vec::new(), &mut found);
    found.sort_by(|left, right| left.0.split('/').cmp(right.0.split('/')));
    found
}

fn is_hidden(path: &str) -> bool {
    path.split('/').any(|name| name.starts_with('.'))
}

/// Returns whether a path matches a glob without braces.
fn matches(glob: &[&str], path: &[&str]) -> bool {
    match (glob.split_first(), path.split_first()) {
        (None, None) => true,
        (Some((&"**", [])), None) => false,
        (Some((&"**", [])), Some(_)) => true,
        (Some((&"**", rest)), _) => (0..=path.len()).any(|skipped| matches(rest, &path[skipped..])),
        (Some((first, rest)), Some((name, names))) => matches_name(first, name) && matches(rest, names),
        _ => false,
    }
}

fn matches_name(glob: &str, name: &str) -> bool {
    match glob.split_once('*') {
        None => glob == name,
        Some((start, end)) => name.len() >= start.len() + end.len() && name.starts_with(start) && name.ends_with(end),
    }
}

const GLOBS: &[&[&str]] = &[
    &["*"],
    &["**/*.rs"],
    &["**/b"],
    &["**/a/**"],
    &["*/a.rs"],
    &["**/.*"],
    &["b*/*"],
    &["**"],
    // A literal name is the start of the search, ignored or not; here are only patterns that start with a wildcard.
    &["?/**/*.rs", "a/**/*.rs", "b/**/*.rs"],
    // Patterns with braces, and all their alternatives.
    &["{a,b}/*.rs", "a/*.rs", "b/*.rs"],
    &["**/{a,b}.rs", "**/a.rs", "**/b.rs"],
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn grep_agrees_with_a_plain_search(
        tree in tree(),
        pattern in prop::sample::select(vec!["a", "b+c", "^a", "c$", "(?i)B", ".", "ä", "abc|ca", "^$", "\\ba"]),
        hidden in any::<bool>(),
    ) {
        let bench = tree.build();
        let expression = regex::bytes::Regex::new(pattern).unwrap();
        let (mut lines, mut counts, mut without) = (Vec::new(), Vec::new(), Vec::new());
        for (path, is_directory) in everything(&bench) {
            if is_directory || (!hidden && is_hidden(&path)) {
                continue;
            }
            let bytes = bench.read(&path);
            if bytes.contains(&0) {
                continue;
            }
            // Text that is not UTF-8 is Latin-1, as in ReadFile.
            let bytes = match String::from_utf8(bytes) {
                Ok(text) => text.into_bytes(),
                Err(error) => encoding_rs::WINDOWS_1252.decode(error.as_bytes()).0.into_owned().into_bytes(),
            };
            let mut count = 0;
            for (number, line) in (1..).zip(bytes.split_inclusive(|byte| *byte == b'\n')) {
                let line = line.strip_suffix(b"\n").unwrap_or(line);
                let line = line.strip_suffix(b"\r").unwrap_or(line);
                if expression.is_match(line) {
                    count += 1;
                    let text = String::from_utf8_lossy(line);
                    let cut = if line.len() > 1024 { format!("{} [... line of {} bytes]", &text[..1024], line.len()) } else { text.into_owned() };
                    lines.push(format!("{path}:{number}:{cut}"));
                }
            }
            if count > 0 { counts.push(format!("{path}:{count}")) } else { without.push(path) }
        }
        let files: Vec<_> = counts.iter().map(|line| line.rsplit_once(':').unwrap().0.to_owned()).collect();
        for (output, expected) in [("content", lines), ("count", counts), ("files", files), ("filesWithoutMatch", without)] {
            let found = bench.output("Grep", json!({"pattern": pattern, "output": output, "hidden": hidden}));
            let expected = if expected.is_empty() { None } else { Some(expected.join("\n")) };
            prop_assert!(expected.as_deref().map_or(found.contains(" line "), |expected| expected == found), "{output} {pattern}: {found}\nbut {expected:?}");
        }
    }

    #[test]
    fn glob_agrees_with_plain_matching(tree in tree(), glob in prop::sample::select(GLOBS), directories in any::<bool>()) {
        let bench = tree.build();
        let (glob, forms) = (glob[0], if glob.len() > 1 { &glob[1..] } else { glob });
        let names = |text: &'static str| text.split('/').collect::<Vec<_>>();
        let expected: Vec<String> = everything(&bench)
            .into_iter()
            .filter(|(path, is_directory)| (directories || !is_directory) && forms.iter().any(|form| matches(&names(form), &path.split('/').collect::<Vec<_>>())))
            .map(|(path, is_directory)| if is_directory { path + "/" } else { path })
            .collect();
        let found = bench.output("Glob", json!({"pattern": glob, "directories": directories}));
        let nothing = found.starts_with("no file matches");
        prop_assert!(if expected.is_empty() { nothing } else { found == expected.join("\n") }, "{glob}: {found}\nbut {expected:?}");
    }

    #[test]
    fn listings_agree_with_a_plain_walk(tree in tree(), hidden in any::<bool>(), depth in 2..5_usize) {
        let bench = tree.build();
        let expected: Vec<String> = everything(&bench)
            .into_iter()
            .filter(|(path, _)| (hidden || !is_hidden(path)) && path.split('/').count() <= depth)
            .map(|(path, is_directory)| if is_directory { path + "/" } else { path })
            .collect();
        let found = bench.output("ListDirectory", json!({"depth": depth, "hidden": hidden}));
        prop_assert!(if expected.is_empty() { found.starts_with('(') } else { found == expected.join("\n") }, "{found}\nbut {expected:?}");
    }
}
