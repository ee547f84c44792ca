//! Tests with random trees that contain symlinks and with random arguments: no access leads outside, and only expected
//! errors occur.

use super::*;
use proptest::prelude::*;
use std::os::unix::fs::symlink;

#[derive(Debug, Clone)]
enum Step {
    Directory(String),
    File(String),
    Link(String, String),
}

/// Generates one of only a few names, so that paths, symlinks and arguments often coincide.
fn name() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["a", "b", "c", "..", ".", "ws", "out"])
}

fn relative() -> impl Strategy<Value = String> {
    prop::collection::vec(name(), 1..5).prop_map(|names| names.join("/"))
}

/// Generates plausible and hostile arguments. `ROOT` is replaced later.
fn argument() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => relative(),
        2 => relative().prop_map(|path| format!("{path}/")),
        2 => relative().prop_map(|path| format!("ROOT/{path}")),
        1 => relative().prop_map(|path| format!("~/{path}")),
        1 => ".{0,12}",
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        relative().prop_map(Step::Directory),
        relative().prop_map(Step::File),
        (relative(), argument()).prop_map(|(at, to)| Step::Link(at, to)),
    ]
}

fn everything(directory: &Path) -> Vec<(PathBuf, Option<Vec<u8>>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let (path, kind) = (entry.path(), entry.file_type().unwrap());
        if kind.is_dir() {
            found.extend(everything(&path));
        }
        found.push((path.clone(), if kind.is_file() { fs::read(&path).ok() } else { None }));
    }
    found.sort();
    found
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn tools_touch_only_the_workspace_wherever_links_point(
        steps in prop::collection::vec(step(), 0..10),
        arguments in prop::collection::vec((argument(), argument()), 1..6),
    ) {
        let bench = Bench::new();
        let (root, workspace) = (&bench.root, &bench.settings.workspace);
        let put = |text: &str| text.replace("ROOT", &root.display().to_string());
        fs::create_dir_all(root.join("out/c")).unwrap();
        fs::write(root.join("out/a"), "kept").unwrap();
        fs::write(root.join("out/c/b"), "kept").unwrap();
        for step in &steps {
            // Entries that do not fit the tree so far are skipped; names that go up are not entries.
            let at = |path: &str| workspace.join(path.split('/').filter(|name| *name != "..").collect::<PathBuf>());
            let _ = match step {
                Step::Directory(path) => fs::create_dir_all(at(path)),
                Step::File(path) if at(path).parent().is_some_and(|parent| parent.canonicalize().is_ok_and(|real| real.starts_with(workspace))) && !at(path).exists() =>
                    at(path).symlink_metadata().map_or_else(|_| fs::write(at(path), "text\n"), |_| Ok(())),
                Step::File(_) => Ok(()),
                Step::Link(path, target) => symlink(put(target), at(path)),
            };
        }
        // Directories just created through symlinks are part of what must not change.
        let outside = |root: &Path| everything(root).into_iter().filter(|(path, _)| !path.starts_with(workspace)).collect::<Vec<_>>();
        let before = outside(root);
        for (one, other) in &arguments {
            let (one, other) = (put(one), put(other));
            let calls = [
                ("ReadFile", json!({"path": one})),
                ("ListDirectory", json!({"path": one, "recursive": true})),
                ("Glob", json!({"pattern": one})),
                ("Grep", json!({"pattern": ".", "path": one})),
                ("WriteFile", json!({"path": one, "content": "new"})),
                ("EditFile", json!({"path": one, "edits": [{"oldText": "n", "newText": "m"}]})),
                ("CreateDirectory", json!({"path": other})),
                ("Copy", json!({"source": one, "destination": other})),
                ("Move", json!({"source": other, "destination": one})),
                ("Stat", json!({"path": one})),
                ("HashFile", json!({"path": one})),
                ("DiskUsage", json!({"path": one, "depth": 9})),
                ("TextInspect", json!({"path": one, "query": "k"})),
                ("TextPatch", json!({"path": one, "operation": "insertBefore", "startLine": 1, "content": "top"})),
                ("DeleteFile", json!({"path": other})),
                ("Delete", json!({"path": one, "recursive": true})),
            ];
            for (tool, arguments) in calls {
                let Ok(plan) = bench.plan(tool, arguments.clone()) else { continue };
                let target = |action: &Action| match action {
                    Action::Read { target } | Action::Write { target } | Action::Delete { target } => target.clone(),
                    action => panic!("{action:?}"),
                };
                let targets: Vec<_> = plan.actions.iter().map(target).collect();
                for target in &targets {
                    // The judged path is the one that the kernel would use; for a symlink itself, its directory.
                    let parent = target.real.parent().unwrap_or(Path::new("/"));
                    prop_assert!(parent.canonicalize().is_ok_and(|real| real == parent) || parent.symlink_metadata().is_err(), "{tool} {arguments}: {target:?}");
                }
                let deletes_a_root = targets.iter().any(|target| workspace.starts_with(&target.real)) && !matches!(tool, "ReadFile" | "Stat" | "HashFile" | "DiskUsage" | "TextInspect" | "ListDirectory" | "Glob" | "Grep");
                if deletes_a_root || !targets.iter().all(|target| target.real.starts_with(workspace)) {
                    continue;
                }
                let result = bench.run(plan);
                prop_assert!(!result.text_for_model().contains("kept"), "{tool} {arguments}: {result:?}");
                prop_assert_eq!(outside(root), before.clone(), "{} {}: {:?}", tool, arguments, result);
                let left = everything(workspace).into_iter().any(|(path, _)| path.display().to_string().contains("/.aye-"));
                prop_assert!(!left, "{tool} {arguments} left a piece of its work");
            }
        }
    }

    #[test]
    fn path_resolution_never_panics(text in ".*") {
        let workspace = Path::new("/nowhere/ws");
        for found in [crate::sys::path::resolve(&text, workspace, None), crate::sys::path::resolve_entry(&text, workspace, None)].into_iter().flatten() {
            prop_assert!(found.real.is_absolute());
        }
    }
}
