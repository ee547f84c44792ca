//! Files of the story: the contents that each file may have at any moment and must have at the end.

use crate::support::Project;
use std::collections::BTreeMap;
use std::path::Path;

/// Files at the start, besides `other.txt`.
pub(super) const FIRST: &[(&str, &str)] = &[
    ("gone.txt", "gone\n"),
    ("moved.txt", "moved\n"),
    ("spare.txt", "spare\n"),
    ("useless.txt", "useless\n"),
    ("ledger/start", "start\n"),
];

/// IDs of the command calls in the story.
const COMMANDS: [&str; 6] = ["1.a", "2.a", "4.a", "4.b", "6.a", "8.a"];

pub(super) const PATCH: &str = "*** Begin Patch
*** Update File: notes.txt
@@
-note 1 of 1
+note 1 of 2
*** Update File: other.txt
@@
-line 7
+patched 7
*** Add File: added.txt
+added
*** Delete File: gone.txt
*** End Patch
";

/// Returns a version of `notes.txt`, which is larger than a disk page.
pub(super) fn notes(version: usize) -> String {
    let version_of_rest = if version == 2 { 1 } else { version };
    let rest = (2..1_500).map(|line| format!("note {line} of {version_of_rest}\n"));
    std::iter::once(format!("note 1 of {version}\n")).chain(rest).collect()
}

pub(super) fn other(patched: bool, edited: bool) -> String {
    let line = |number| match number {
        2 if edited => "edited 2\n".to_owned(),
        7 if patched => "patched 7\n".to_owned(),
        _ => format!("line {number}\n"),
    };
    (1..2_000).map(line).collect()
}

/// Returns all contents that a file may have, or `None` for a file that must not exist.
fn allowed(path: &str) -> Option<Vec<String>> {
    let one = |content: &str| Some(vec![content.to_owned()]);
    match path {
        "notes.txt" => Some((1..=3).map(notes).collect()),
        "other.txt" => Some([(false, false), (false, true), (true, false), (true, true)].map(|(a, b)| other(a, b)).to_vec()),
        "added.txt" => one("added\n"),
        "deep/new/dir.txt" => one("deep\n"),
        "made.txt" => one("made\n"),
        "target.txt" | "copy.txt" => one("moved\n"),
        _ => match path.strip_prefix("ledger/") {
            Some("start") => one("start\n"),
            Some(id) => one(&format!("{id}\n")),
            None => FIRST.iter().find(|(name, _)| *name == path).and_then(|(_, content)| one(content)),
        },
    }
}

/// Returns the contents of all files of the project by path, and the paths of the temporary files of unfinished writes.
fn all(project: &Project) -> (BTreeMap<String, String>, Vec<String>) {
    let (root, mut found, mut beside) = (project.path(""), BTreeMap::new(), Vec::new());
    let mut open = vec![root.clone()];
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
            let path = entry.path();
            let name = path.strip_prefix(&root).unwrap_or(&path).display().to_string();
            if entry.file_name().to_string_lossy().starts_with(".aye-") {
                beside.push(name);
            } else if path.is_dir() {
                open.push(path);
            } else {
                // The file may disappear at this moment, because a command that is being killed may still write.
                found.insert(
                    name,
                    std::fs::read(&path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default(),
                );
            }
        }
    }
    (found, beside)
}

/// Checks that each file has one of its allowed contents. A file that only commands write may also be empty.
pub(super) fn are_whole(project: &Project) -> Result<(), String> {
    for (path, content) in all(project).0 {
        let made_by_command = path.starts_with("ledger/") || path == "made.txt";
        let Some(allowed) = allowed(&path) else { return Err(format!("`{path}` belongs to nobody")) };
        if !(allowed.contains(&content) || made_by_command && content.is_empty()) {
            return Err(format!("`{path}` is half-written, or written twice: {} bytes {:?}", content.len(), head(&content)));
        }
    }
    Ok(())
}

fn head(content: &str) -> String {
    content.chars().take(200).collect()
}

fn is_unknown(text: &str) -> bool {
    text.contains("OUTCOME_UNKNOWN")
}

/// Checks that the outcome of each command is known.
pub(super) fn commands_are_known(told: &BTreeMap<String, String>) -> Result<(), String> {
    let unknown = COMMANDS.iter().filter_map(|id| told.get(*id).map(|text| (id, text))).find(|(_, text)| is_unknown(text));
    unknown.map_or(Ok(()), |(id, text)| Err(format!("the outcome of {id} is unknown: {text}")))
}

/// Checks that the results sent to the model match the actual effects. `deletes` states whether a command deletes a
/// file.
pub(super) fn agree_with(project: &Project, told: &BTreeMap<String, String>, deletes: bool) -> Result<(), String> {
    let (files, _) = all(project);
    for id in COMMANDS {
        let text = told.get(id).ok_or(format!("the model was never told of {id}"))?;
        let times = files.get(&format!("ledger/{id}")).map_or(0, |ledger| ledger.lines().count());
        let right = if is_unknown(text) || text.contains("CANCELLED: the command was stopped with all its processes") {
            times <= 1
        } else if text.contains("Exit code: 0") && text.contains(&format!("said {id}")) {
            times == 1
        } else {
            times == 0
        };
        if !right {
            return Err(format!("{id} was done {times} times, and the model was told: {text}"));
        }
    }
    for (id, path, content) in [
        ("1.d", "deep/new/dir.txt", Some("deep\n".to_owned())),
        ("3.p", "added.txt", Some("added\n".to_owned())),
        ("3.p", "gone.txt", None),
        ("4.w", "notes.txt", Some(notes(3))),
        ("5.m", "moved.txt", None),
        ("5.m", "target.txt", Some("moved\n".to_owned())),
        ("6.a", "made.txt", Some("made\n".to_owned())),
        ("6.a", "spare.txt", (!deletes).then(|| "spare\n".to_owned())),
        ("7.c", "copy.txt", Some("moved\n".to_owned())),
        ("7.x", "useless.txt", None),
    ] {
        let text = told.get(id).ok_or(format!("the model was never told of {id}"))?;
        if !failed(text) && files.get(path) != content.as_ref() {
            let found = files.get(path).map(|found| head(found));
            return Err(format!("`{path}` is {found:?} after {id}, and the model was told: {text}"));
        }
    }
    Ok(())
}

/// Returns whether a result reports an error or an unknown outcome.
fn failed(text: &str) -> bool {
    is_unknown(text)
        || ["CANCELLED", "CONFLICT", "NOT_FOUND", "INVALID", "FAILED", "ERROR"].iter().any(|code| text.contains(code))
}

/// Checks that every leftover file was reported and that the data directory contains only known entries.
pub(super) fn are_all_known(project: &Project, told: &BTreeMap<String, String>, log: &str) -> Result<(), String> {
    let (_, beside) = all(project);
    let bare = |name: &str| name.rsplit('/').next().unwrap_or(name).to_owned();
    let is_named = |name: &String| told.values().any(|text| text.contains("`.aye-") || text.contains(&bare(name)));
    // Files that a failing disk could not remove may remain.
    let named = beside.iter().all(|name| is_named(name) || log.contains(&format!("unlink {name}")));
    if !beside.is_empty() && !named {
        return Err(format!("left behind, and nobody is told: {beside:?}"));
    }
    let known = [
        "aye.db",
        "aye.db-wal",
        "aye.db-shm",
        "aye.lock",
        "snapshots",
        "artifacts",
        "logs",
        "previews",
        "caches",
        "pruned",
        "git",
    ];
    let data = std::fs::read_dir(project.directory("data")).into_iter().flatten().flatten();
    let strange: Vec<_> = data
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| !known.contains(&name.as_str()))
        .collect();
    if !strange.is_empty() {
        return Err(format!("left in the data directory: {strange:?}"));
    }
    match previews(project) {
        0 => Ok(()),
        some => Err(format!("left of previews: {some}")),
    }
}

/// Returns the number of layers that still exist, without layers that were killed during setup. Those are removed only
/// after a minute, because they could belong to a process.
pub(super) fn previews(project: &Project) -> usize {
    let views = std::fs::read_dir(project.directory("data").join("previews")).into_iter().flatten().flatten();
    views.filter(|view| view.path().join("call.json").exists()).count()
}

/// Returns whether a process runs in the project or has its path in its command line or environment.
pub(super) fn is_used(project: &Project) -> bool {
    let root = project.path("");
    let root = root.parent().unwrap_or(&root);
    let uses = |process: &Path| {
        let reads = |name: &str| std::fs::read(process.join(name)).unwrap_or_default();
        let works_there = std::fs::read_link(process.join("cwd")).is_ok_and(|cwd| cwd.starts_with(root));
        let needle = root.as_os_str().as_encoded_bytes();
        let knows = |bytes: &[u8]| bytes.windows(needle.len()).any(|part| part == needle);
        works_there || knows(&reads("cmdline")) || knows(&reads("environ"))
    };
    std::fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(char::is_numeric))
        .any(|entry| uses(&entry.path()))
}
