//! Tests of effects of which the user applies only some.

use super::unasked::{kept, project, ran};
use super::*;
use crate::protocol::DiscardedEffect;
use std::collections::BTreeMap;

const LINE: &str = "echo new > made.txt; echo more >> changed.txt; rm gone.txt; mv old.txt moved.txt; chmod 755 mode.txt; \
                    ln -s changed.txt link; mkdir -p deep/er; echo x > deep/er/file; echo y > deep/other; rm -r tree; mkdir empty; \
                    mv from to; echo file > replaced; echo said";
/// Effects of the line as they are listed, each with the paths that belong to it.
const EFFECTS: &[(&str, &[&str])] = &[
    ("made.txt", &["made.txt"]),
    ("changed.txt", &["changed.txt"]),
    ("gone.txt", &["gone.txt"]),
    ("moved.txt", &["old.txt", "moved.txt"]),
    ("mode.txt", &["mode.txt"]),
    ("link", &["link"]),
    ("deep/er/file", &["deep/er/file"]),
    ("deep/other", &["deep/other"]),
    ("tree", &["tree"]),
    ("empty", &["empty"]),
    ("to/", &["from", "to"]),
    ("replaced", &["replaced"]),
];

type Files = BTreeMap<PathBuf, (u32, Vec<u8>)>;

fn files(bench: &Bench) -> Files {
    let workspace = &bench.settings.workspace;
    let relative =
        |(path, mode, content): (PathBuf, u32, Vec<u8>)| (path.strip_prefix(workspace).unwrap().to_owned(), (mode, content));
    tree(workspace).into_iter().map(relative).collect()
}

fn filled(bench: &Bench) {
    fill(bench);
    for path in ["tree/a", "tree/below/b", "from/c", "from/d"] {
        bench.write(path, format!("the file {path}\n"));
    }
    bench.write("replaced", "old\n");
}

fn without(paths: &[&str]) -> Vec<DiscardedEffect> {
    paths.iter().map(|path| DiscardedEffect { path: (*path).to_owned(), hunks: Vec::new() }).collect()
}

/// Runs the line in a preview and applies its effects, except for these.
fn applied(bench: &Bench, discarded: &[&str]) -> ToolResult {
    let mut plan = previewed(bench, LINE).unwrap();
    plan.amends.discarded = without(discarded);
    bench.run(plan)
}

/// Returns the tree that results from applying the listed effects that are not discarded.
fn expected(before: &Files, after: &Files, discarded: &[&str]) -> Files {
    let effect = |path: &Path| EFFECTS.iter().find(|(_, paths)| paths.iter().any(|covered| path.starts_with(covered)));
    let is_kept = |path: &Path| effect(path).is_some_and(|(name, _)| !discarded.contains(name));
    let mut expected = Files::new();
    for path in before.keys().chain(after.keys()) {
        let has_kept_below = || after.keys().any(|below| below != path && below.starts_with(path) && is_kept(below));
        let state = match effect(path) {
            Some(_) if is_kept(path) => after.get(path),
            Some(_) => before.get(path),
            // Directories that no row lists exist if something in them does.
            None => before.get(path).or_else(|| after.get(path).filter(|_| has_kept_below())),
        };
        expected.extend(state.map(|state| (path.clone(), state.clone())));
    }
    expected
}

#[test]
fn the_final_tree_contains_exactly_the_selected_effects() {
    let Some(bench) = bench() else { return };
    filled(&bench);
    let before = files(&bench);
    let plan = previewed(&bench, LINE).unwrap();
    let mut listed: Vec<&str> = effects(&plan).listed_paths().collect();
    listed.sort_unstable();
    let mut names: Vec<&str> = EFFECTS.iter().map(|(name, _)| *name).collect();
    names.sort_unstable();
    assert_eq!(listed, names);
    drop(plan);
    assert!(applied(&bench, &[]).error.is_none());
    let after = files(&bench);
    let count = names.len();
    let single = (0..count).flat_map(|at| [1 << at, !(1_usize << at)]);
    // Further selections, the same ones in every run.
    let mixed = (1_usize..9).map(|seed| seed.wrapping_mul(2_654_435_761) >> 7);
    for mask in single.chain(mixed) {
        let discarded: Vec<&str> = (0..count).filter(|at| mask & (1 << at) != 0).map(|at| EFFECTS[at].0).collect();
        if discarded.len() == count {
            continue;
        }
        let bench = super::bench().unwrap();
        filled(&bench);
        let result = applied(&bench, &discarded);
        assert!(result.error.is_none(), "{discarded:?}: {result:?}");
        assert_eq!(files(&bench), expected(&before, &after, &discarded), "without {discarded:?}");
        let (applied, others) = result.output_text.split_once("; discarded, so unchanged: ").unwrap_or_default();
        for (name, _) in EFFECTS.iter().filter(|_| !discarded.is_empty()) {
            let told = if discarded.contains(name) { others } else { applied };
            assert!(told.contains(&format!("`{name}`")), "{name}: {}", result.output_text);
        }
        assert!(!result.output_text.contains("build output"), "{}", result.output_text);
        assert_eq!(left(&bench), 0);
    }
}

#[test]
fn discarded_hunks_keep_their_old_lines() {
    let Some(bench) = bench() else { return };
    let lines = |changed: &[usize]| -> String {
        (1..=40).map(|n| if changed.contains(&n) { format!("new {n}\r\n") } else { format!("line {n}\r\n") }).collect()
    };
    bench.write("text.txt", lines(&[]));
    let line = "sed -i 's/^line \\(3\\|20\\|38\\)\\r/new \\1\\r/' text.txt; chmod 444 text.txt; echo x > other.txt";
    let mut plan = previewed(&bench, line).unwrap();
    let parts = &plan.amends.offer.effects;
    let hunks: Vec<_> =
        parts.iter().filter(|part| part.path == "text.txt").map(|part| (part.hunk, part.first, part.end)).collect();
    assert_eq!(hunks, [(Some(0), 0, 1), (Some(1), 1, 2), (Some(2), 2, 3)]);
    plan.amends.discarded = vec![DiscardedEffect { path: "text.txt".to_owned(), hunks: vec![0, 2] }];
    let result = bench.run(plan);
    assert_eq!(bench.read("text.txt"), lines(&[20]).into_bytes(), "{result:?}");
    assert_eq!(fs::metadata(bench.path("text.txt")).unwrap().permissions().mode() & 0o777, 0o444);
    assert_eq!(bench.read("other.txt"), b"x\n");
    assert!(result.output_text.contains("discarded, so unchanged: `text.txt` (hunk 1, 3 of 3)"), "{}", result.output_text);
    let changed = result.changed.unwrap();
    assert_eq!((changed.diff.hunks().count(), changed.paths.len()), (2, 2), "{:?}", changed.diff);
}

#[test]
fn build_output_is_discarded_if_any_file_is_discarded() {
    let Some(bench) = project("target/\n") else { return };
    bench.write("target/old.o", "old\n");
    let line = "echo a > a.c; echo b > b.c; cat a.c b.c > target/new.o; echo changed > target/old.o";
    let mut plan = ran(&bench, line);
    assert!(!effects(&plan).counted.is_empty());
    plan.amends.discarded = without(&["b.c"]);
    let result = kept(&bench, plan);
    assert!(result.output_text.contains("build output was discarded too"), "{}", result.output_text);
    assert_eq!((bench.read("a.c"), bench.read("target/old.o")), (b"a\n".to_vec(), b"old\n".to_vec()));
    assert!(!bench.path("b.c").exists() && !bench.path("target/new.o").exists());
}

#[test]
fn a_changed_file_is_not_a_conflict_if_its_effect_is_discarded() {
    let Some(bench) = bench() else { return };
    filled(&bench);
    let mut plan = previewed(&bench, LINE).unwrap();
    bench.write("changed.txt", "by the user\n");
    plan.amends.discarded = without(&["changed.txt"]);
    assert!(bench.run(plan).error.is_none());
    assert_eq!(bench.read("changed.txt"), b"by the user\n");
    assert_eq!(bench.read("made.txt"), b"new\n");
}
