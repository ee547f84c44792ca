//! Commit messages: a short subject with its area, and a body.

use std::process::Command;

/// Last commit before this rule was introduced.
const BASE: &str = "41618d1d80a1d0e8d4a08c22e85cf2c88c6b4530";
const MAX_SUBJECT: usize = 72;

/// Returns the violation in a message, or `None` if there is none.
fn fault(message: &str) -> Option<&'static str> {
    let (subject, body) = message.split_once('\n').unwrap_or((message, ""));
    let Some((areas, summary)) = subject.split_once(": ") else { return Some("the subject has no area") };
    let is_area = |area: &str| !area.is_empty() && area.chars().all(|one| one.is_ascii_alphanumeric() || "_-./".contains(one));
    if !areas.split(", ").all(is_area) {
        Some("the subject begins with something else than an area")
    } else if subject.chars().count() > MAX_SUBJECT {
        Some("the subject is too long")
    } else if subject.ends_with('.') {
        Some("the subject ends with a period")
    } else if summary.starts_with(char::is_uppercase) {
        Some("the summary begins with a capital letter")
    } else if body.trim().is_empty() {
        Some("there is no body")
    } else {
        None
    }
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).current_dir(env!("CARGO_MANIFEST_DIR")).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn commit_messages_have_an_area_a_summary_and_a_body() {
    let Some(log) = git(&["log", "--no-merges", "--format=%h %B%x00", &format!("{BASE}..HEAD")]) else {
        println!("skipped: this copy has no history since {BASE}");
        return;
    };
    let commits = log.split('\0').map(str::trim).filter(|commit| !commit.is_empty());
    let faults: Vec<_> = commits
        .filter_map(|commit| {
            let (hash, message) = commit.split_once(' ')?;
            fault(message).map(|fault| format!("{hash}: {fault}: {}", message.lines().next().unwrap_or_default()))
        })
        .collect();
    assert!(faults.is_empty(), "messages of commits:\n{}\n", faults.join("\n"));
}

#[test]
fn commit_messages_are_checked_for_subject_and_body() {
    assert_eq!(fault("sys: close the pipe\n\nThe child waited for its end."), None);
    assert_eq!(fault("sys, store: close the pipe\n\nWhy."), None);
    assert_eq!(fault("Close the pipe\n\nWhy."), Some("the subject has no area"));
    assert_eq!(fault("the pipe of a child: close\n\nWhy."), Some("the subject begins with something else than an area"));
    assert_eq!(fault("sys: Close the pipe\n\nWhy."), Some("the summary begins with a capital letter"));
    assert_eq!(fault("sys: close the pipe.\n\nWhy."), Some("the subject ends with a period"));
    assert_eq!(fault("sys: close the pipe"), Some("there is no body"));
    assert_eq!(fault(&format!("sys: {}\n\nWhy.", "a".repeat(70))), Some("the subject is too long"));
}
