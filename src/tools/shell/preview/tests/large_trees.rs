//! Tests of effects on many files, in several sessions, and on a disk that is full.

use super::*;
use std::collections::BTreeSet;

/// Changes of every kind to a tree of 60 directories that contain 50 files each.
const LINE: &str = "rm -r d1 d2/below; rm d3/*; for file in d4/f*; do echo more > $file; done; mv d5 moved; chmod 700 d6/f1; \
                    ln -s d7 link; rm -r d8; echo file > d8; rm -r d9; mkdir d9; echo x > d9/only; mv d10/f1 d11/g1; rm -r d12/below/*; \
                    mkdir -p new/below empty; cd new/below; seq 1000 | split -l 1 -a 3 - f";

fn fill_tree(bench: &Bench) {
    for directory in 0..60 {
        for file in 0..50 {
            let below = if file < 25 { "" } else { "below/" };
            bench.write(&format!("d{directory}/{below}f{file}"), format!("{directory} {file}\n"));
        }
    }
}

/// Returns all paths in the workspace. Those of directories end with a slash.
fn paths(bench: &Bench) -> BTreeSet<String> {
    let name = |(path, _, _): (PathBuf, u32, Vec<u8>)| {
        let slash = if path.symlink_metadata().unwrap().is_dir() { "/" } else { "" };
        format!("{}{slash}", path.strip_prefix(&bench.settings.workspace).unwrap().display())
    };
    tree(&bench.settings.workspace).into_iter().map(name).collect()
}

/// Adds a path along with its parents.
fn add(paths: &mut BTreeSet<String>, path: &str) {
    let parents = path.trim_end_matches('/').match_indices('/').map(|(at, _)| path[..=at].to_owned());
    paths.extend(parents.chain([path.to_owned()]));
}

/// Removes a path along with everything below it. Returns the paths that were removed.
fn remove(paths: &mut BTreeSet<String>, path: &str) -> Vec<String> {
    let inside = format!("{}/", path.trim_end_matches('/'));
    let removed: Vec<String> = paths.iter().filter(|one| *one == path || one.starts_with(&inside)).cloned().collect();
    assert!(!removed.is_empty(), "{path} did not exist");
    paths.retain(|one| !removed.contains(one));
    removed
}

/// Applies listed effects to a set of paths.
fn apply_listed(paths: &mut BTreeSet<String>, effects: &Effects) {
    for file in &effects.files {
        match &file.kind {
            EffectKind::Changed { .. } | EffectKind::ModeChanged { .. } => assert!(paths.contains(&file.path), "{}", file.path),
            EffectKind::Deleted { .. } => assert_eq!(remove(paths, &file.path).len(), 1, "{}", file.path),
            EffectKind::DirectoryDeleted { files } => {
                let removed = remove(paths, &file.path);
                assert_eq!(removed.iter().filter(|path| !path.ends_with('/')).count() as u64, *files, "{}", file.path);
            }
            EffectKind::DirectoryCreated => add(paths, &format!("{}/", file.path)),
            EffectKind::Created { .. } | EffectKind::Linked { .. } => {
                if file.notes.iter().any(|note| note.starts_with("replaces a directory")) {
                    remove(paths, &file.path);
                }
                add(paths, &file.path);
            }
            EffectKind::Renamed { from, .. } => {
                let moved = remove(paths, from);
                for path in moved {
                    add(paths, &path.replacen(from, &file.path, 1));
                }
            }
        }
    }
    for group in &effects.groups {
        group.files.iter().for_each(|file| add(paths, &format!("{}{file}", group.folder)));
    }
}

#[test]
fn the_final_tree_of_a_large_change_equals_the_list() {
    let Some(bench) = bench() else { return };
    fill_tree(&bench);
    let before = paths(&bench);
    let plan = previewed(&bench, LINE).unwrap();
    assert_eq!(paths(&bench), before, "nothing happened yet");
    let shown = effects(&plan).clone();
    assert_eq!((shown.more_files, shown.refused.len(), shown.ended.as_str()), (0, 0, "exit 0"));
    let mut expected = before;
    apply_listed(&mut expected, &shown);
    let created: usize = shown.groups.iter().map(|group| group.files.len()).sum();
    assert_eq!(created, 1_000);
    let result = bench.run(plan);
    assert_eq!(result.status, ToolStatus::Succeeded, "{result:?}");
    assert_eq!(paths(&bench), expected);
    assert_eq!(
        (bench.read("d4/f7"), bench.read("d8"), bench.read("d11/g1")),
        (b"more\n".into(), b"file\n".into(), b"10 1\n".into())
    );
    assert_eq!((bench.read("moved/below/f40"), bench.read("new/below/faab")), (b"5 40\n".into(), b"2\n".into()));
    assert_eq!(left(&bench), 0);
}

#[test]
fn many_moved_files_of_one_size_keep_their_names() {
    let Some(bench) = bench() else { return };
    for number in 0..3_000 {
        bench.write(&format!("old/{number}"), format!("{number:04}"));
    }
    let plan = previewed(&bench, "mkdir new; mv old/* new; rmdir old").unwrap();
    let listed: Vec<_> = effects(&plan).files.iter().map(|file| (file.path.as_str(), &file.kind)).collect();
    assert_eq!(listed, [("new/", &EffectKind::Renamed { from: "old/".to_owned(), changed: false })]);
    assert_eq!(bench.run(plan).status, ToolStatus::Succeeded);
    assert!(!bench.path("old").exists() && bench.read("new/2999") == b"2999");
}

#[test]
fn sessions_in_one_workspace_do_not_overwrite_each_other() {
    let Some(mut bench) = bench() else { return };
    fill(&bench);
    let mut preview = |session: &str, line: &str| {
        bench.settings.session.id = Some(SessionId::new(session));
        previewed(&bench, line).unwrap()
    };
    let many = "mkdir 500; cd 500; seq 500 | split -l 1 - f";
    let first = preview("one", &format!("echo first > changed.txt; rm gone.txt; {many}"));
    let other = preview("two", "echo two > changed.txt; echo two > two.txt");
    let beside = preview("two", "echo two > beside.txt; ls; rm old.txt");
    assert!(effects(&beside).output.contains("changed.txt") && !effects(&beside).output.contains("500"), "{beside:?}");
    assert_eq!(left(&bench), 3);
    assert_eq!(bench.run(first).status, ToolStatus::Succeeded);
    let error = bench.run(other).error.unwrap();
    assert!(error.code == ErrorCode::Conflict && error.message.contains("changed.txt"), "{error}");
    assert_eq!(bench.run(beside).status, ToolStatus::Succeeded);
    assert_eq!((bench.read("changed.txt"), bench.read("beside.txt")), (b"first\n".into(), b"two\n".into()));
    assert_eq!(["two.txt", "gone.txt", "old.txt"].map(|name| bench.path(name).exists()), [false; 3]);
    assert_eq!((fs::read_dir(bench.path("500")).unwrap().count(), left(&bench)), (500, 0));
}

/// Environment variable through which the test below passes the path of the small disk to its child process.
const SMALL_LAYER: &str = "AYE_TEST_SMALL_LAYER";

/// Must run with a small disk for the layers.
#[test]
#[ignore = "a part of another test"]
fn runs_commands_with_a_small_disk_for_layers() {
    let Some(base) = std::env::var_os(SMALL_LAYER).map(PathBuf::from) else { return };
    let mut bench = Bench::new();
    bench.settings.command.sandbox = sandbox(bench.settings.workspace.clone(), base.clone());
    bench.write("kept.txt", "kept\n");
    let plan = previewed(&bench, "echo more > kept.txt; head -c 64M /dev/zero > large; echo \"status $?\"").unwrap();
    let shown = effects(&plan);
    let is_clear = shown.ended == "killed because the disk was nearly full" || shown.output.contains("No space left on device");
    assert!(is_clear, "{shown:?}");
    drop(plan);
    assert_eq!((bench.read("kept.txt"), fs::read_dir(&bench.settings.workspace).unwrap().count()), (b"kept\n".into(), 1));
    assert_eq!(fs::read_dir(previews(&base)).unwrap().count(), 0);
    // Nothing can be written to the full disk any more.
    let filler = base.join("filler");
    let mut file = fs::File::create(&filler).unwrap();
    while std::io::Write::write_all(&mut file, &[1; 4096]).is_ok() {}
    // An open file keeps its space.
    drop(file);
    let error = match previewed(&bench, "echo x > made.txt") {
        Err(error) => error.to_string(),
        Ok(plan) => effects(&plan).ended.clone(),
    };
    assert!(error.contains("No space left on device") || error.contains("the disk was nearly full"), "{error}");
    fs::remove_file(filler).unwrap();
    let plan = previewed(&bench, "echo x > made.txt").unwrap();
    assert_eq!(bench.run(plan).status, ToolStatus::Succeeded);
    assert_eq!(bench.read("made.txt"), b"x\n");
    println!("the small disk was full");
}

#[test]
fn a_full_disk_for_layers_is_reported_and_the_workspace_stays_as_it_was() {
    // If previews work here, they must also work with the small disk.
    if bench().is_none() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let disk = directory.path().canonicalize().unwrap();
    let test = "tools::shell::preview::tests::large_trees::runs_commands_with_a_small_disk_for_layers";
    let script =
        "mount -t tmpfs -o size=16m tmpfs \"$1\" && AYE_TEST_SMALL_LAYER=$1 exec \"$2\" --exact --ignored --nocapture \"$3\"";
    let own = std::env::current_exe().unwrap();
    let ran = Command::new("unshare").args(["-Urm", "bash", "-c", script, "bash"]).arg(&disk).arg(own).arg(test).output();
    let Some(ran) = ran.ok().filter(|ran| !ran.stderr.starts_with(b"mount") && !ran.stderr.starts_with(b"unshare")) else {
        return eprintln!("skipped: no small disk can be mounted here");
    };
    let printed = String::from_utf8_lossy(&ran.stdout);
    assert!(
        ran.status.success() && printed.contains("the small disk was full"),
        "{printed}\n{}",
        String::from_utf8_lossy(&ran.stderr)
    );
}
