use super::*;

#[test]
fn history_returns_the_newest_prompt_first_and_ends_with_the_draft() {
    let directory = tempfile::tempdir().unwrap();
    let file = Some(directory.path().join("new/history.jsonl"));
    let mut first = History::new(file.clone());
    for prompt in ["one", "two\nlines", "two\nlines", "three"] {
        first.add(prompt).unwrap();
    }
    let mut history = History::new(file);
    assert_eq!(history.previous("draft"), Some("three".to_owned()));
    assert_eq!(history.previous("three"), Some("two\nlines".to_owned()));
    assert_eq!(history.previous("two\nlines"), Some("one".to_owned()));
    assert_eq!(history.previous("one"), None);
    assert_eq!(history.following(), Some("two\nlines".to_owned()));
    assert_eq!(history.following(), Some("three".to_owned()));
    assert_eq!(history.following(), Some("draft".to_owned()));
    assert_eq!(history.following(), None);
}

#[test]
fn a_damaged_line_is_skipped() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("history.jsonl");
    std::fs::write(&file, b"\"one\"\n\"cut off\nnonsense \xff\n\"two\"\n").unwrap();
    let mut history = History::new(Some(file));
    assert_eq!(history.previous(""), Some("two".to_owned()));
    assert_eq!(history.previous(""), Some("one".to_owned()));
}

#[test]
fn a_long_history_file_is_truncated_when_read() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("history.jsonl");
    let lines: Vec<_> = (0..3000).map(|n| format!("\"prompt {n}\"")).collect();
    std::fs::write(&file, lines.join("\n") + "\n").unwrap();
    let mut history = History::new(Some(file.clone()));
    assert_eq!(history.previous(""), Some("prompt 2999".to_owned()));
    assert_eq!(std::fs::read_to_string(&file).unwrap().lines().count(), ENTRIES);
    #[cfg(unix)]
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&file).unwrap().permissions()) & 0o777, 0o600);
}

#[cfg(unix)]
#[test]
fn the_history_file_is_readable_only_by_its_owner() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("history.jsonl");
    History::new(Some(file.clone())).add("secret").unwrap();
    assert_eq!(std::fs::metadata(file).unwrap().permissions().mode() & 0o077, 0);
}

#[test]
fn without_a_file_history_lasts_for_the_process() {
    let mut history = History::new(None);
    history.add("one").unwrap();
    assert_eq!(history.previous(""), Some("one".to_owned()));
}
