//! Tests of `Delete`, `Move`, `Copy` and `CreateDirectory`: proposals, effects and refusals.

use super::*;
use std::os::unix::fs::symlink;

/// Creates a tree that contains a symlink leading outside, next to files that must not change.
fn bench() -> Bench {
    let bench = Bench::new();
    bench.write("d/a.txt", "one\ntwo\n");
    bench.write("d/sub/b.txt", "b");
    fs::create_dir(bench.root.join("outside")).unwrap();
    fs::write(bench.root.join("outside/secret"), "secret").unwrap();
    symlink(bench.root.join("outside"), bench.path("d/out")).unwrap();
    bench
}

fn exists(bench: &Bench, name: &str) -> bool {
    bench.path(name).symlink_metadata().is_ok()
}

#[test]
fn deletions_are_shown_before_they_happen() {
    let bench = bench();
    let shown = |arguments| bench.plan("Delete", arguments).unwrap().proposal.unwrap();
    let file = shown(json!({"path": "d/a.txt"}));
    assert_eq!(file.summary, "Delete d/a.txt −2");
    assert!(
        file.diff.to_string().contains("--- a/d/a.txt\n+++ /dev/null\n") && file.diff.to_string().contains("-one\n-two\n"),
        "{}",
        file.diff
    );
    let tree = shown(json!({"path": "d", "recursive": true}));
    assert_eq!(tree.summary, "Delete d/ with 2 files, 1 directory, 1 symlink, 9 bytes");
    assert_eq!(tree.notes, ["contains: d/a.txt, d/out, d/sub/, d/sub/b.txt"]);
    let link = shown(json!({"path": "d/out"}));
    assert!(
        link.notes[0].starts_with("a symlink to `") && link.notes[0].ends_with("outside`, which is not deleted"),
        "{:?}",
        link.notes
    );
    assert!(exists(&bench, "d/a.txt"));
}

#[test]
fn deletions_remove_links_but_not_their_targets() {
    let bench = bench();
    let (code, message) = bench.error("Delete", json!({"path": "d"}));
    assert_eq!(code, ErrorCode::InvalidRequest);
    assert!(message.contains("set `recursive`"), "{message}");
    bench.output("rm", json!({"file_path": "d/out"}));
    assert!(!exists(&bench, "d/out") && bench.root.join("outside/secret").exists());
    bench.output("Delete", json!({"path": "d/", "recursive": true}));
    assert!(!exists(&bench, "d"));
    assert_eq!(bench.error("Delete", json!({"path": "d"})).0, ErrorCode::FileNotFound);
}

#[test]
fn a_trailing_slash_after_a_link_refers_to_the_target() {
    let bench = bench();
    symlink("d", bench.path("link")).unwrap();
    let real = |path: &str| match &bench.plan("Delete", json!({"path": path, "recursive": true})).unwrap().actions[0] {
        Action::Delete { target } => target.real.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!((real("link"), real("link/"), real("d/out")), (bench.path("link"), bench.path("d"), bench.path("d/out")));
    assert_eq!(real("d/out/"), bench.root.join("outside"));
}

#[test]
fn moves_are_shown_as_renames_and_replace_nothing() {
    let bench = bench();
    let plan = bench.plan("mv", json!({"old_path": "d/a.txt", "new_path": "new/deep/a.txt"})).unwrap();
    let proposal = plan.proposal.clone().unwrap();
    assert_eq!(proposal.summary, "Move d/a.txt to new/deep/a.txt (8 bytes)");
    assert!(proposal.diff.to_string().contains("rename from d/a.txt\nrename to new/deep/a.txt\n"));
    assert_eq!(proposal.paths, [bench.path("d/a.txt"), bench.path("new/deep/a.txt")]);
    let kinds: Vec<_> = plan.actions.iter().map(Action::capability).collect();
    assert_eq!(kinds, ["File.Write", "File.Write", "File.Delete"]);
    assert_eq!(bench.run(plan).status, ToolStatus::Succeeded);
    assert_eq!(bench.read("new/deep/a.txt"), b"one\ntwo\n");
    for (destination, part) in
        [("d", "use `d/a.txt`"), ("d/sub/b.txt", "is not replaced"), ("new/deep/a.txt/x", "is not a directory")]
    {
        let (code, message) = bench.error("Move", json!({"source": "new/deep/a.txt", "destination": destination}));
        assert_eq!(code, ErrorCode::InvalidRequest, "{message}");
        assert!(message.contains(part), "{message}");
    }
    let (_, message) = bench.error("Move", json!({"source": "d", "destination": "d/sub/d"}));
    assert!(message.contains("is inside"), "{message}");
}

#[test]
fn copies_are_complete_and_keep_links() {
    let bench = bench();
    bench.output("cp", json!({"src": "d", "dest": "copy"}));
    assert_eq!(bench.read("copy/a.txt"), b"one\ntwo\n");
    assert!(bench.path("copy/out").symlink_metadata().unwrap().is_symlink());
    bench.output("Copy", json!({"source": "d/a.txt", "destination": "b.txt"}));
    assert_eq!(bench.read("b.txt"), b"one\ntwo\n");
    // Copying a symlink reads its target, so the target is judged.
    let plan = bench.plan("Copy", json!({"source": "d/out", "destination": "c"})).unwrap();
    assert!(plan.actions.iter().any(|action| matches!(action, Action::Read { target } if target.real.ends_with("outside"))));
}

#[test]
fn trees_changed_since_the_proposal_are_not_touched() {
    let calls = [
        ("Delete", json!({"path": "d", "recursive": true})),
        ("Move", json!({"source": "d", "destination": "e"})),
        ("Copy", json!({"source": "d", "destination": "e"})),
    ];
    for (tool, arguments) in calls {
        let bench = bench();
        let plan = bench.plan(tool, arguments).unwrap();
        bench.write("d/sub/new.txt", "mine");
        assert_eq!(bench.run(plan).error.unwrap().code, ErrorCode::Conflict, "{tool}");
        assert!(exists(&bench, "d/sub/new.txt") && !exists(&bench, "e"));
    }
}

#[test]
fn one_denied_path_prevents_changes_to_the_whole_tree() {
    let mut bench = bench();
    bench.write("d/sub/.git/config", "");
    let open = |path: &Path| !path.components().any(|name| name.as_os_str() == ".git");
    bench.settings.paths.may_write = Arc::new(open);
    bench.settings.paths.may_delete = Arc::new(open);
    let calls = [
        ("Delete", json!({"path": "d", "recursive": true})),
        ("Move", json!({"source": "d", "destination": "e"})),
        ("Copy", json!({"source": "d", "destination": "e"})),
    ];
    for (tool, arguments) in calls {
        let plan = bench.plan(tool, arguments).unwrap();
        let told = format!("{:?}", plan.actions);
        assert!(told.contains("sub/.git"), "the policy is not told of it: {told}");
        assert!(plan.proposal.is_none());
        // Even with a permit it does nothing, because its work was never planned.
        assert_eq!(bench.run(plan).error.unwrap().code, ErrorCode::Conflict);
        assert!(exists(&bench, "d/sub/.git/config") && !exists(&bench, "e"));
    }
}

#[test]
fn bare_repositories_keep_their_configuration() {
    let bench = bench();
    bench.write("bare/HEAD", "ref: refs/heads/main");
    bench.write("bare/objects/x", "");
    bench.write("bare/refs/x", "");
    bench.write("bare/config", "");
    bench.write("half/objects/x", "");
    bench.write("half/refs/x", "");
    let calls = [
        ("Delete", json!({"path": "bare/config"})),
        ("Move", json!({"source": "d/a.txt", "destination": "bare/hooks/post-commit"})),
        ("Copy", json!({"source": "d/a.txt", "destination": "bare/info/attributes"})),
        ("CreateDirectory", json!({"path": "bare/hooks"})),
        ("Move", json!({"source": "d/a.txt", "destination": "half/HEAD"})),
    ];
    for (tool, arguments) in calls {
        let (code, message) = bench.error(tool, arguments);
        assert_eq!(code, ErrorCode::PolicyDenied, "{message}");
    }
}

#[test]
fn a_directory_is_created_with_its_parents() {
    let bench = bench();
    assert_eq!(bench.output("mkdir", json!({"dir": "x/y/z/"})), "Created the directory x/y/z");
    assert_eq!(bench.output("CreateDirectory", json!({"path": "x/y"})), "The directory x/y already exists");
    assert!(bench.path("x/y/z").is_dir());
    assert_eq!(bench.error("CreateDirectory", json!({"path": "d/a.txt"})).0, ErrorCode::InvalidRequest);
}

#[test]
fn paths_can_be_required_to_be_absolute_and_without_links() {
    let mut bench = bench();
    symlink("d", bench.path("link")).unwrap();
    bench.settings.paths.relative_paths = false;
    let (code, message) = bench.error("ReadFile", json!({"path": "d/a.txt"}));
    assert_eq!(code, ErrorCode::InvalidRequest);
    assert!(message.contains("`tools.absolute_paths_only`"), "{message}");
    let absolute = bench.path("d/a.txt").display().to_string();
    assert_eq!(bench.output("ReadFile", json!({"path": absolute})), "one\ntwo\n");
    assert!(bench.output("ListDirectory", json!({})).contains("d/"));
    bench.settings.paths.relative_paths = true;
    bench.settings.paths.follow_links = false;
    let (code, message) = bench.error("ReadFile", json!({"path": "link/a.txt"}));
    assert_eq!(code, ErrorCode::PermissionDenied);
    assert!(message.contains("`tools.follow_symlinks`"), "{message}");
    assert_eq!(bench.output("ReadFile", json!({"path": "d/a.txt"})), "one\ntwo\n");
    // A deleted symlink is not followed.
    bench.output("Delete", json!({"path": "link"}));
}

#[test]
fn line_breaks_in_names_cannot_forge_proposals() {
    let bench = bench();
    let name = "x\n@@ -1,1 +1,1 @@\n-a\n+b";
    bench.write(name, "text\n");
    let calls = [
        ("Delete", json!({"path": name})),
        ("Move", json!({"source": name, "destination": "y\n+++ b/z"})),
        ("Copy", json!({"source": name, "destination": "y\nz"})),
        ("WriteFile", json!({"path": name, "content": "new\n"})),
        ("CreateDirectory", json!({"path": "y\nz"})),
    ];
    for (tool, arguments) in calls {
        let proposal = bench.plan(tool, arguments).unwrap().proposal.unwrap();
        let lines = proposal.diff.to_string().lines().filter(|line| line.starts_with("@@") || line.starts_with("+++")).count();
        assert!(!proposal.summary.contains('\n') && lines <= 2, "{tool}: {proposal:?}");
        assert!(!proposal.diff.to_string().contains("\n-a\n"), "{tool}: {}", proposal.diff);
    }
}

#[test]
fn a_move_cannot_make_an_unreadable_file_readable() {
    let mut bench = Bench::new();
    bench.write(".env", "S=1");
    bench.write("tree/shut/f", "S=1");
    let shut = [bench.path(".env"), bench.path("tree/shut")];
    bench.settings.paths.may_read = Arc::new(move |path| !shut.iter().any(|shut| path.starts_with(shut)));
    for source in [".env", "tree"] {
        let plan = bench.plan("Move", json!({"source": source, "destination": "other"})).unwrap();
        let read = |action: &Action| matches!(action, Action::Read { target } if !target.real.ends_with("tree"));
        assert!(plan.actions.iter().any(read), "{:?}", plan.actions);
        bench.run(plan);
        assert!(bench.path(source).exists() && !bench.path("other").exists());
    }
}

#[test]
fn files_in_a_tree_that_run_when_opened_are_separate_actions() {
    let bench = bench();
    for file in ["template/.husky/pre-commit", "plain/config.toml", "template/src/a.rs"] {
        bench.write(file, "x");
    }
    let written = |tool: &str, arguments| -> Vec<std::path::PathBuf> {
        let plan = bench.plan(tool, arguments).unwrap();
        let paths = plan.actions.iter().filter_map(|action| match action {
            crate::protocol::Action::Write { target } | crate::protocol::Action::Delete { target } => Some(target.real.clone()),
            _ => None,
        });
        paths.collect()
    };
    let copied = written("Copy", json!({"source": "template", "destination": "new"}));
    assert!(copied.contains(&bench.path("new/.husky/pre-commit")), "{copied:?}");
    let moved = written("Move", json!({"source": "plain", "destination": ".cargo"}));
    assert!(moved.contains(&bench.path(".cargo/config.toml")), "{moved:?}");
    let away = written("Move", json!({"source": "template", "destination": "new"}));
    assert!(away.contains(&bench.path("template/.husky/pre-commit")), "{away:?}");
    let gone = written("Delete", json!({"path": "template", "recursive": true}));
    assert!(gone.contains(&bench.path("template/.husky/pre-commit")), "{gone:?}");
}

#[test]
fn files_that_run_code_are_marked_in_the_proposal() {
    let bench = bench();
    let marks = |path: &str| {
        let plan = bench.plan("WriteFile", json!({"path": path, "content": "x\n"})).unwrap();
        let proposal = plan.proposal.unwrap();
        let notes = proposal.notes.iter().filter(|note| note.contains("can run code")).count();
        (proposal.runs_code.iter().map(|marked| (marked.path.clone(), marked.when)).collect::<Vec<_>>(), notes)
    };
    use crate::protocol::RunsWhen::{Built, Opened};
    assert_eq!(marks("Makefile"), (vec![("Makefile".to_owned(), Built)], 1));
    assert_eq!(marks("lefthook.yml"), (vec![("lefthook.yml".to_owned(), Opened)], 1));
    assert_eq!(marks("plain.txt"), (Vec::new(), 0));
}
