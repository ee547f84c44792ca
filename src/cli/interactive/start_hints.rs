//! Hints shown at startup: the last session in this directory, and a suggested task.

use crate::host::context::AppContext;
use crate::host::policy_layers::Policy;
use crate::store::{SessionSummary, Store};
use crate::sys::ignore_files::{Lists, guard};
use crate::workspace::git::Repository;
use ignore::WalkBuilder;
use std::io::Read;
use std::path::Path;
use std::time::{Duration, Instant};

/// Maximum number of files searched for a task to suggest.
const FILES: usize = 400;
/// Maximum number of bytes read from each file.
const BYTES: u64 = 64 << 10;
/// Maximum duration of the search.
const TIME: Duration = Duration::from_millis(120);
/// Maximum length of a session title in characters.
const TITLE_CHARS: usize = 48;
/// Words that mark unfinished code.
const UNDONE: [&str; 2] = ["TODO", "FIXME"];

/// Returns a hint about the last session, and a suggested task. Both are read from the disk while aye starts.
pub(crate) async fn hints(store: &Store, app: &AppContext) -> (Option<String>, Option<String>) {
    let (store, here, workspace) = (store.clone(), app.clone(), app.workspace.clone());
    // A home directory or the root directory contains no single project to search.
    let is_project = workspace != app.home && workspace.parent().is_some();
    let last = tokio::task::spawn_blocking(move || last_session(&store, &here, jiff::Timestamp::now()));
    let task = tokio::task::spawn_blocking(move || is_project.then(|| find_unfinished_task(&workspace)).flatten());
    (last.await.ok().flatten(), task.await.ok().flatten())
}

/// Returns a line about the last session: `Last session: "Validate the name" · 2 h ago; run …`; `None`
/// if there is none.
fn last_session(store: &Store, app: &AppContext, now: jiff::Timestamp) -> Option<String> {
    let last = store.latest(&app.workspace_id()).ok().flatten()?;
    let changes = || Repository::find(&app.workspace)?.changes(&app.workspace)?.describe();
    format_hint(&last, changes, now)
}

fn format_hint(last: &SessionSummary, changes: impl FnOnce() -> Option<String>, now: jiff::Timestamp) -> Option<String> {
    let title = last.title.as_deref()?;
    let short: String = title.chars().take(TITLE_CHARS).collect();
    let cut = if short.len() < title.len() { "…" } else { "" };
    let open = crate::host::stored_sessions::open(last).map(|open| format!(" · {open}")).unwrap_or_default();
    let changes = changes().map(|changes| format!(" · {changes} in the repository")).unwrap_or_default();
    let id: String = last.session_id.as_str().chars().take(8).collect();
    Some(format!(
        "Last session: \"{short}{cut}\" · {}{open}; run `aye --resume={id}` to continue{changes}",
        format_age(last.updated, now)
    ))
}

/// Describes when the first policy layer expires, as in `expires in 6 d`.
pub(crate) fn expiry_hint(policy: &Policy, now: jiff::Timestamp) -> Option<String> {
    let end = policy.layers.iter().filter_map(|layer| layer.bundle.expires_at).min()?;
    Some(match end.as_second().saturating_sub(now.as_second()) {
        ..=0 => "expired".to_owned(),
        seconds @ 1..3600 => format!("expires in {} min", (seconds / 60).max(1)),
        seconds @ 3600..86_400 => format!("expires in {} h", seconds / 3600),
        seconds => format!("expires in {} d", seconds / 86_400),
    })
}

/// Formats an age, as in `2 h ago`.
fn format_age(then: jiff::Timestamp, now: jiff::Timestamp) -> String {
    let seconds = now.as_second().saturating_sub(then.as_second()).max(0);
    match seconds {
        0..60 => "just now".to_owned(),
        60..3600 => format!("{} min ago", seconds / 60),
        3600..86_400 => format!("{} h ago", seconds / 3600),
        _ => format!("{} d ago", seconds / 86_400),
    }
}

/// Suggests a task based on the first comment that marks unfinished code. The suggestion includes the location of the
/// comment but not its text, which the user may not have written.
fn find_unfinished_task(workspace: &Path) -> Option<String> {
    let began = Instant::now();
    let mut walk = WalkBuilder::new(workspace);
    guard(walk.max_depth(Some(6)), workspace, Lists::Gits, |_| true);
    let files = walk.build().filter_map(Result::ok);
    let files = files.filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()));
    for entry in files.take(FILES).take_while(|_| began.elapsed() < TIME) {
        if let Some(line) = undone_line(entry.path()) {
            let path = entry.path().strip_prefix(workspace).unwrap_or(entry.path()).display();
            return Some(format!("look into the {} in {path}:{}", line.0, line.1));
        }
    }
    None
}

/// Returns the first marker of unfinished code in a file's comments, and its line number.
fn undone_line(path: &Path) -> Option<(&'static str, usize)> {
    let mut bytes = Vec::new();
    crate::sys::path::open_file(&path.canonicalize().ok()?).ok()?.take(BYTES).read_to_end(&mut bytes).ok()?;
    let text = std::str::from_utf8(&bytes).ok()?;
    text.lines().enumerate().find_map(|(at, line)| {
        let comment = ["//", "#", "--", "/*", "<!--", ";"].iter().filter_map(|sign| line.find(sign)).min()?;
        let word = UNDONE.into_iter().find(|word| {
            let rest = line[comment..].find(word).map(|start| &line[comment + start + word.len()..]);
            rest.is_some_and(|rest| rest.starts_with([':', ' ', '(']) || rest.is_empty())
        })?;
        Some((word, at + 1))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{Bundle, Layer, Scope};

    #[test]
    fn todo_comments_are_suggested_as_tasks_and_todo_in_prose_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
        write("a.txt", "TODO lists are nice\nTODOS // TODOS\n");
        assert_eq!(find_unfinished_task(directory.path()), None);
        write("b.rs", "fn main() {}\n// TODO: say hello\n");
        assert_eq!(find_unfinished_task(directory.path()), Some("look into the TODO in b.rs:2".to_owned()));
    }

    #[test]
    fn the_earliest_policy_expiry_is_shown() {
        let now = jiff::Timestamp::from_second(1_800_000_000).unwrap();
        let policy = |ends: &[i64]| {
            let layers = ends.iter().map(|after| {
                let end = jiff::Timestamp::from_second(now.as_second() + after).unwrap();
                let text = format!("schema_version = 1\nbundle_version = \"test\"\nexpires_at = {end}\n");
                Layer::new(Scope::User, Bundle::parse(&text, "test").unwrap())
            });
            Policy::from_layers(layers.collect(), "user".to_owned())
        };
        for (after, words) in [
            (&[600][..], "expires in 10 min"),
            (&[7300, 900_000], "expires in 2 h"),
            (&[600_000], "expires in 6 d"),
            (&[-1], "expired"),
        ] {
            assert_eq!(expiry_hint(&policy(after), now).as_deref(), Some(words));
        }
        assert_eq!(expiry_hint(&policy(&[]), now), None);
    }

    #[test]
    fn elapsed_time_is_shown_in_a_single_unit() {
        let at = |seconds| jiff::Timestamp::from_second(seconds).unwrap();
        for (seconds, words) in [(5, "just now"), (125, "2 min ago"), (7300, "2 h ago"), (200_000, "2 d ago"), (-9, "just now")] {
            assert_eq!(format_age(at(1_000_000), at(1_000_000 + seconds)), words);
        }
    }
}
