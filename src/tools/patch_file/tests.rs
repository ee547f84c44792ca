use super::header::{FileEntry, FileState, PatchHeader, PolicyStamp};
use super::{PatchFile, body};
use proptest::prelude::*;
use serde_json::{Value, json};

type Content<'a> = Option<(&'a [u8], bool)>;

fn entry(path: &str, old: Content<'_>, new: Content<'_>) -> FileEntry {
    let state = |content: Content<'_>| content.map(|(bytes, executable)| FileState::new(bytes, executable));
    FileEntry { path: path.to_owned(), base: state(old), result: state(new) }
}

/// Returns the text of a patch file that contains these changes.
fn written(files: &[(&str, Content<'_>, Content<'_>)]) -> String {
    let policy = PolicyStamp { hash: "0".to_owned(), name: "built-in".to_owned(), mode: "ask".to_owned() };
    let entries: Vec<FileEntry> = files.iter().map(|(path, old, new)| entry(path, *old, *new)).collect();
    let sections: String = entries
        .iter()
        .zip(files)
        .map(|(entry, (_, old, new))| {
            let bytes = |content: &Content<'_>| content.map_or(Vec::new(), |(bytes, _)| bytes.to_vec());
            body::section(entry, &bytes(old), &bytes(new)).unwrap()
        })
        .collect();
    let header = PatchHeader::new("0.1.0", policy, entries, Vec::new(), Vec::new());
    format!("aye patch 1\n{}\n\n{sections}", serde_json::to_string_pretty(&header).unwrap())
}

const FILES: [(&str, Content<'static>, Content<'static>); 9] = [
    ("a.txt", Some((b"one\ntwo\nthree\n", false)), Some((b"one\n2\nthree\nfour", false))),
    (
        "binary",
        Some((b"\0\x01", false)),
        Some((b"\0\xff\xfe and more than four bytes of it, up to a second row of base 85", false)),
    ),
    ("crlf", Some((b"a\r\nb\r\n", false)), Some((b"a\r\n\r\nc\r\n", false))),
    ("deleted", Some((b"x\n", true)), None),
    ("empty", None, Some((b"", false))),
    ("made binary", Some((b"text\n", false)), Some((b"\xff", false))),
    ("mode", Some((b"#!/bin/sh\n", false)), Some((b"#!/bin/sh\n", true))),
    ("new/deep.sh", None, Some((b"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n", true))),
    ("text again", Some((b"\0", false)), None),
];

#[test]
fn every_kind_of_change_round_trips_through_a_patch_file() {
    let text = written(&FILES);
    let patch = PatchFile::parse(text.as_bytes()).unwrap_or_else(|why| panic!("{why}\n{text}"));
    assert_eq!(patch.header().files.len(), FILES.len());
    for (part, (path, old, new)) in patch.parts().zip(FILES) {
        let base = old.map_or(&b""[..], |(bytes, _)| bytes);
        assert_eq!(part.apply(base).unwrap(), new.map_or(&b""[..], |(bytes, _)| bytes), "{path}");
    }
}

#[cfg(unix)]
#[test]
fn the_patch_can_be_applied_by_git() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    let place = |path: &str| directory.path().join(path);
    for (path, old, _) in FILES {
        let Some((bytes, executable)) = old else { continue };
        std::fs::write(place(path), bytes).unwrap();
        std::fs::set_permissions(place(path), PermissionsExt::from_mode(if executable { 0o755 } else { 0o644 })).unwrap();
    }
    std::fs::write(place("p.patch"), written(&FILES)).unwrap();
    let ran = std::process::Command::new("git").args(["apply", "p.patch"]).current_dir(directory.path()).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    for (path, _, new) in FILES {
        let now = std::fs::read(place(path)).ok();
        assert_eq!(now.as_deref(), new.map(|(bytes, _)| bytes), "{path}");
    }
}

/// Returns the text of a patch file with its header changed by `change`.
fn with_header(text: &str, change: impl Fn(&mut Value)) -> String {
    let (head, body) = text.split_once("\n\n").unwrap();
    let mut header: Value = serde_json::from_str(head.strip_prefix("aye patch 1\n").unwrap()).unwrap();
    change(&mut header);
    format!("aye patch 1\n{header}\n\n{body}")
}

#[test]
fn malformed_patch_files_are_rejected() {
    let text = written(&FILES[..1]);
    let path = |path: &'static str| move |header: &mut Value| header["files"][0]["path"] = json!(path);
    let cases: Vec<(String, &str)> = vec![
        (String::new(), "first line"),
        (text.replace("aye patch 1", "aye patch 2"), "version 2"),
        (text.replacen('{', "[", 1), "header is invalid"),
        (with_header(&text, |header| header["version"] = json!(2)), "version 2"),
        (with_header(&text, |header| header["grant"] = json!("all")), "unknown field"),
        (with_header(&text, |header| header["files"] = json!([])), "lists 0 files"),
        (with_header(&text, path("/etc/passwd")), "not a path inside"),
        (with_header(&text, path("../a.txt")), "not a path inside"),
        (with_header(&text, path("a/../../a.txt")), "not a path inside"),
        (with_header(&text, path(".git/hooks/pre-commit")), "inside `.git`"),
        (with_header(&text, path("sub/.GIT/config")), "inside `.git`"),
        (with_header(&text, path("a\u{1b}[31m.txt")), "is a path that a patch cannot contain"),
        (with_header(&text, path("other.txt")), "instead of this file"),
        (with_header(&text, |header| header["files"][0]["result"]["mode"] = json!("120000")), "regular files"),
        (with_header(&text, |header| header["files"][0]["result"]["mode"] = json!("100755")), "does not match the header"),
        (with_header(&text, |header| header["files"][0]["base"]["sha256"] = json!("x")), "SHA-256"),
        (with_header(&text, |header| header["files"][0]["result"] = header["files"][0]["base"].clone()), "state are the same"),
        (format!("{text}and more\n"), "incomplete"),
        (text.replace("+four\n\\ No newline at end of file\n", ""), "incomplete"),
        (text.replace("--- a/a.txt", "deleted file mode 100644\n--- a/a.txt"), "does not match the header"),
    ];
    for (text, said) in cases {
        let why = PatchFile::parse(text.as_bytes()).err().unwrap_or_else(|| panic!("accepted, not `{said}`:\n{text}"));
        assert!(why.contains(said), "`{said}` is not in: {why}\n{text}");
    }
}

#[test]
fn hunks_that_do_not_produce_the_expected_content_are_rejected() {
    let text = written(&FILES[..1]);
    let other = PatchFile::parse(text.replace("+2\n", "+3\n").as_bytes()).unwrap();
    let why = other.parts().next().unwrap().apply(b"one\ntwo\nthree\n").unwrap_err();
    assert!(why.contains("does not produce the content"), "{why}");
    let patch = PatchFile::parse(text.as_bytes()).unwrap();
    let why = patch.parts().next().unwrap().apply(b"one\nTWO\nthree\n").unwrap_err();
    assert!(why.contains("does not match the file at line"), "{why}");
}

proptest! {
    #[test]
    fn arbitrary_contents_round_trip(old in "([ab+@\\\\ -]{0,3}\r?\n){0,12}[ab]{0,2}", new in prop::collection::vec(any::<u8>(), 0..200), lines in "([ab+@\\\\ -]{0,3}\r?\n){0,12}[ab]{0,2}") {
        for new in [new.as_slice(), lines.as_bytes()] {
            if new == old.as_bytes() {
                continue;
            }
            let text = written(&[("f", Some((old.as_bytes(), false)), Some((new, false)))]);
            let patch = PatchFile::parse(text.as_bytes()).unwrap();
            prop_assert_eq!(patch.parts().next().unwrap().apply(old.as_bytes()).unwrap(), new);
        }
    }

    #[test]
    fn the_parser_never_panics(rest in "(aye patch 1|\\{\\}|\"files\": \\[\\]|diff --git a/x b/x|GIT binary patch|literal 9|zcm|@@ -1 \\+1 @@|\n){0,20}") {
        let _ = PatchFile::parse(rest.as_bytes());
        let _ = PatchFile::parse(format!("aye patch 1\n{rest}").as_bytes());
    }
}
