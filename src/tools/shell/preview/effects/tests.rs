mod many;

use super::*;
use crate::sys::overlay;
use crate::sys::overlay::LayeredDirectory;
use crate::tools::tests::settings;
use std::fs;
use std::process::Command;
use std::sync::Arc;
use tempfile::TempDir;

/// A workspace, along with the effects of a line that ran in a preview.
struct Tried {
    _directory: TempDir,
    settings: ToolSettings,
    changes: Vec<Changes>,
}

/// Runs a line in a preview. Returns `None` if previews are not supported.
fn tried(line: &str) -> Option<Tried> {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().canonicalize().unwrap();
    let (ws, upper, work) = (root.join("ws"), root.join("upper"), root.join("work"));
    for path in [&ws.join("src"), &ws.join("target/old"), &upper, &work] {
        fs::create_dir_all(path).unwrap();
    }
    let files = [
        ("a.txt", "one\ntwo\nthree\n"),
        ("src/b.rs", "fn b() {}\n"),
        ("src/c.rs", "fn c() {}\n"),
        (".gitignore", "target/\n*.log\n!keep/\n"),
        ("target/old/x", "x"),
        ("bin", "\0\u{1}\0"),
    ];
    for (name, text) in files {
        fs::write(ws.join(name), text).unwrap();
    }
    let began = overlay::mark(&root).unwrap();
    let options = format!("userxattr,lowerdir={0},upperdir={1},workdir={2}", ws.display(), upper.display(), work.display());
    let script = format!("mount -t overlay overlay -o {options} {0} && cd {0} && ( {line} )", ws.display());
    if !Command::new("unshare").args(["-Urm", "bash", "-c", &script]).output().is_ok_and(|ran| ran.status.success()) {
        eprintln!("skipped: no overlay can be mounted here");
        return None;
    }
    let layered = LayeredDirectory { directory: ws.clone(), upper, work };
    let changes = vec![overlay::changes(&layered, began).unwrap()];
    Some(Tried { _directory: directory, settings: settings(ws, root.join("home")), changes })
}

fn told(shown: &ShownEffects) -> Vec<String> {
    shown.files.iter().map(|file| format!("{} {}", file.path, kind(&file.kind))).collect()
}

fn kind(kind: &EffectKind) -> String {
    match kind {
        EffectKind::Created { bytes, binary } => format!("created {bytes} {binary}"),
        EffectKind::Changed { bytes_before, bytes_after, binary } => format!("changed {bytes_before} {bytes_after} {binary}"),
        EffectKind::Deleted { bytes, binary } => format!("deleted {bytes} {binary}"),
        EffectKind::Renamed { from, changed } => format!("moved from {from} {changed}"),
        EffectKind::ModeChanged { from, to } => format!("mode {from:o} {to:o}"),
        EffectKind::DirectoryCreated => "directory".to_owned(),
        EffectKind::DirectoryDeleted { files } => format!("directory deleted {files}"),
        EffectKind::Linked { to } => format!("link {to}"),
    }
}

#[test]
fn effects_are_listed_and_shown_as_a_git_diff() {
    let line = "echo four >> a.txt; rm bin; printf 'x\\0' > new.bin; ln -s a.txt l; mkdir -p deep/er; echo n > deep/n; chmod 755 src/b.rs; \
                mv src/c.rs src/d.rs; touch -d 2001-01-01 .gitignore";
    let Some(mut tried) = tried(line) else { return };
    let shown = collect_effects(&mut tried.changes, &tried.settings);
    assert_eq!(
        told(&shown),
        [
            ".gitignore mode 644 644",
            "a.txt changed 14 19 false",
            "bin deleted 3 true",
            "l link a.txt",
            "src/b.rs mode 644 755",
            "src/d.rs moved from src/c.rs false",
            "deep/er directory",
            "deep/n created 2 false",
            "new.bin created 2 true",
        ]
    );
    assert_eq!(
        shown.diff.to_string(),
        "diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,4 @@\n one\n two\n three\n+four\n\
         diff --git a/bin b/bin\ndeleted file mode 100644\nBinary files a/bin and b/bin differ\n\
         diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+a.txt\n\\ No newline at end of file\n\
         diff --git a/src/b.rs b/src/b.rs\nold mode 100644\nnew mode 100755\n\
         diff --git a/src/c.rs b/src/d.rs\nsimilarity index 100%\nrename from src/c.rs\nrename to src/d.rs\n\
         diff --git a/deep/n b/deep/n\nnew file mode 100644\n--- /dev/null\n+++ b/deep/n\n@@ -0,0 +1 @@\n+n\n\
         diff --git a/new.bin b/new.bin\nnew file mode 100644\nBinary files a/new.bin and b/new.bin differ\n"
    );
    assert_eq!(shown.files[0].notes, ["only the modification time changes"]);
    assert_eq!(shown.bytes, 19 + 2 + 2);
    let ws = &tried.settings.workspace;
    for path in ["src/c.rs", "src/d.rs", "bin", "deep", "deep/er", "l"] {
        assert!(shown.paths.contains(&ws.join(path)), "{path}: {:?}", shown.paths);
    }
    assert_eq!(describe_applied(&tried.changes), "[files: 3 created, 1 changed, 1 deleted, 1 moved, 1 with a changed mode]");
}

#[test]
fn ignored_files_are_listed_by_the_previous_ignore_rules() {
    let line = "echo y > target/old/x; mkdir target/new; for n in 1 2 3 4 5 6; do echo z > target/new/z$n; done; rm -r target/old; echo '*' > .gitignore; echo l > a.log; \
                mkdir src/m; echo m > src/m/m";
    let Some(mut tried) = tried(line) else { return };
    let shown = collect_effects(&mut tried.changes, &tried.settings);
    assert_eq!(
        told(&shown),
        [".gitignore changed 21 2 false", "target/old directory deleted 1", "a.log created 2 false", "src/m/m created 2 false",]
    );
    let group = CreatedFiles {
        folder: "target/".to_owned(),
        files: (1..=6).map(|n| format!("new/z{n}")).collect(),
        bytes: 12,
        ignored: true,
    };
    assert_eq!(shown.groups, [group]);
    assert!(!shown.diff.to_string().contains("b/target/new"), "{}", shown.diff);
}

#[test]
fn every_applied_change_is_listed_with_existing_files_first() {
    let line = "for n in $(seq 700); do mkdir -p many/$((n % 7)); echo $n > many/$((n % 7))/$n; done; echo x > a.txt; rm src/b.rs; \
                chmod 755 src/c.rs; ln -s /etc many/link; echo x > many/.npmrc; echo x > many/0/Makefile; printf x > many/run; chmod 755 many/run";
    let Some(mut tried) = tried(line) else { return };
    let shown = collect_effects(&mut tried.changes, &tried.settings);
    assert_eq!(shown.more_files, 0);
    let first: Vec<&str> = shown.files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(first, ["a.txt", "many/link", "src/b.rs", "src/c.rs", "many/.npmrc", "many/0/Makefile"]);
    let [group] = &shown.groups[..] else { panic!("{:?}", shown.groups) };
    assert_eq!((group.folder.as_str(), group.files.len(), group.ignored), ("many/", 701, false));
    assert!(shown.files[4].notes[0].contains("when the folder is opened"), "{:?}", shown.files[4].notes);
    assert_eq!(shown.runs_code.len(), 2);
    let listed: BTreeSet<PathBuf> = shown
        .files
        .iter()
        .map(|file| PathBuf::from(&file.path))
        .chain(group.files.iter().map(|file| Path::new("many").join(file)))
        .collect();
    for change in tried.changes[0].entries() {
        let is_directory = change.after.is_some_and(|node| node.kind == NodeKind::Directory);
        assert!(is_directory || listed.contains(&change.path), "{} is kept and not listed", change.path.display());
    }
}

#[test]
fn effects_beyond_the_list_limit_are_reported_as_unlisted() {
    let Some(mut tried) = tried("ln -s $(seq -f x/%g 5010) .") else { return };
    let shown = collect_effects(&mut tried.changes, &tried.settings);
    assert_eq!((shown.files.len() as u64, shown.more_files), (5_000, 10));
    let effects = crate::protocol::Effects { files: shown.files, more_files: shown.more_files, ..Default::default() };
    assert!(effects.unlisted_reason().unwrap().contains("10 more changed paths"));
}

#[test]
fn directories_are_listed_once() {
    let Some(mut moved) = tried("mv src lib") else { return };
    let seen = collect_effects(&mut moved.changes, &moved.settings);
    assert_eq!(told(&seen), ["lib/ moved from src/ false"]);
    let Some(mut deleted) = tried("rm -r src; rm a.txt; mkdir a.txt") else { return };
    let seen = collect_effects(&mut deleted.changes, &deleted.settings);
    assert_eq!(told(&seen), ["a.txt directory", "src directory deleted 2"]);
    assert_eq!(seen.files[0].notes, ["replaces a file of 14 bytes"]);
}

#[test]
fn effects_denied_by_the_policy_are_reported_and_removed() {
    let Some(mut tried) =
        tried("echo x > .env; mv a.txt moved; mkdir -p .git/hooks; echo x > .git/hooks/h; mkfifo p; rm src/b.rs")
    else {
        return;
    };
    tried.settings.paths.may_write =
        Arc::new(|path| !path.components().any(|name| name.as_os_str() == ".git") && !path.ends_with("moved"));
    tried.settings.paths.may_delete = Arc::new(|path| !path.ends_with("src/b.rs"));
    let seen = collect_effects(&mut tried.changes, &tried.settings);
    assert_eq!(told(&seen), [".env created 2 false"]);
    let refused: Vec<_> = seen.refused.iter().map(|refused| refused.path.as_str()).collect();
    for path in [".git", ".git/hooks/h", "a.txt", "moved", "p", "src/b.rs"] {
        assert!(refused.contains(&path), "{path}: {refused:?}");
    }
    assert!(describe_applied(&tried.changes).contains("not applied"));
}

#[test]
fn a_directory_turned_into_a_git_repository_is_not_applied_as_one() {
    let line = "mkdir -p r/objects r/refs r/hooks; echo ref > r/HEAD; echo '[core]' > r/config; echo x > r/readme";
    let Some(mut tried) = tried(line) else { return };
    let seen = collect_effects(&mut tried.changes, &tried.settings);
    assert_eq!(told(&seen), ["r/readme created 2 false"]);
    assert!(seen.refused.iter().any(|refused| refused.path == "r/config"));
}
