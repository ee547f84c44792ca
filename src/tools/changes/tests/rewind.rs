//! Tests of rewinding to the state before any step, and of undoing a rewind.

use super::*;
use crate::ports::{Attribution, FileRewind, FileRewindPlan, FileRewindResult, RewindStart};
use crate::protocol::RewindChange;
use std::path::PathBuf;
use tokio_util::sync::CancellationToken;

impl Session {
    fn step(&self, step: u64) {
        self.router.step_started(step);
    }

    fn plan(&self, since: RewindStart) -> FileRewindPlan {
        self.runtime.block_on(self.router.plan_rewind(since)).unwrap()
    }

    fn rewind(&self, number: u32, since: RewindStart, step: u64) -> FileRewindResult {
        self.rewind_over(number, since, step, Vec::new())
    }

    fn rewind_over(&self, number: u32, since: RewindStart, step: u64, overwrite: Vec<PathBuf>) -> FileRewindResult {
        self.runtime.block_on(self.router.rewind(FileRewind { number, since, step, overwrite })).unwrap()
    }

    /// Makes changes as if a command had made them, without running a command.
    fn command(&self, act: impl FnOnce()) {
        let settings = Arc::new(self.bench.settings.clone());
        self.runtime.block_on(async {
            let before = checkpoint::snapshot_before(&settings, &CancellationToken::new()).await.unwrap().unwrap();
            act();
            before.into_differences(&settings).await;
        });
    }
}

/// Lists every entry in the workspace with its kind, content and permissions.
fn everything(session: &Session) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![session.bench.root.clone()];
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(&session.bench.root).unwrap().display().to_string();
            let metadata = path.symlink_metadata().unwrap();
            let what = if metadata.is_symlink() {
                format!("→ {}", fs::read_link(&path).unwrap().display())
            } else if metadata.is_dir() {
                waiting.push(path);
                "/".to_owned()
            } else {
                format!("{:o} {}", metadata.permissions().mode() & 0o7777, fs::read_to_string(&path).unwrap())
            };
            found.insert(name, what);
        }
    }
    found
}

fn short_plan(plan: &FileRewindPlan) -> Vec<(String, RewindChange, bool)> {
    plan.files.iter().map(|file| (file.path.display().to_string(), file.change, file.conflict.is_some())).collect()
}

#[test]
fn files_links_modes_and_directories_are_rewound_and_redone() {
    let session = Session::new(&[("a", "one\n"), ("b", "b\n"), ("old/c", "c\n")]);
    symlink("a", session.bench.path("link")).unwrap();
    let start = everything(&session);
    session.step(1);
    session.does("WriteFile", json!({"path": "a", "content": "two\n"}));
    session.does("WriteFile", json!({"path": "new/deep/x", "content": "x\n"}));
    session.does("CreateDirectory", json!({"path": "empty/inner"}));
    let middle = everything(&session);
    session.step(2);
    session.does("Delete", json!({"path": "old", "recursive": true}));
    session.does(
        "RunCommand",
        json!({"command": "chmod 700 b; ln -sfn b link; echo three > a; rm -rf new; mkdir made; echo e > made/e"}),
    );
    let end = everything(&session);
    let plan = session.plan(RewindStart::Step(1));
    let expected = [
        ("a", RewindChange::Restored),
        ("b", RewindChange::Restored),
        ("link", RewindChange::Restored),
        ("made/e", RewindChange::Deleted),
        ("old/c", RewindChange::BroughtBack),
    ];
    assert_eq!(short_plan(&plan), expected.map(|(path, change)| (path.to_owned(), change, false)), "{plan:?}");
    assert!(
        plan.diff.to_string().contains("-three\n+one\n") && plan.diff.to_string().contains("new mode 100644"),
        "{}",
        plan.diff
    );
    assert_eq!(everything(&session), end, "a plan changes nothing");
    let done = session.rewind(1, RewindStart::Step(1), 2);
    assert_eq!((done.restored, done.kept), (5, Vec::new()));
    assert_eq!(everything(&session), start);
    // Each rewind can be undone, and so can the undo.
    session.rewind(2, RewindStart::Rewind(1), 2);
    assert_eq!(everything(&session), end);
    session.rewind(3, RewindStart::Step(2), 2);
    assert_eq!(everything(&session), middle);
    session.rewind(4, RewindStart::Rewind(3), 2);
    assert_eq!(everything(&session), end);
    session.rewind(5, RewindStart::Step(1), 2);
    assert_eq!(everything(&session), start);
}

#[test]
fn manual_changes_are_kept_unless_the_user_chooses_to_overwrite_them() {
    let session = Session::new(&[("a", "one\n"), ("b", "one\n"), ("c", "one\n")]);
    session.step(1);
    session.does("WriteFile", json!({"path": "a", "content": "two\n"}));
    session.does("WriteFile", json!({"path": "b", "content": "two\n"}));
    session.does("WriteFile", json!({"path": "c", "content": "two\n"}));
    session.bench.write("b", "by hand\n");
    session.step(2);
    session.does("WriteFile", json!({"path": "c", "content": "three\n"}));
    session.bench.write("c", "by hand, later\n");
    session.command(|| fs::write(session.bench.path("c"), "by a command\n").unwrap());
    let done = session.rewind(1, RewindStart::Step(1), 2);
    let kept: Vec<_> = done.kept.iter().map(|file| (file.path.to_str().unwrap(), file.conflict.as_deref().unwrap())).collect();
    let in_between = "the file was edited outside aye between two changes of this session, and rewinding would lose that edit";
    assert_eq!(kept, [("b", "the file was edited outside aye since then"), ("c", in_between)]);
    assert_eq!(tree(&session)["a"], "one\n");
    assert_eq!(
        (tree(&session)["b"].as_str(), fs::read_to_string(session.bench.path("c")).unwrap()),
        ("by hand\n", "by a command\n".to_owned())
    );
    let done = session.rewind_over(2, RewindStart::Step(1), 2, vec!["b".into()]);
    assert_eq!((done.restored, done.kept.len()), (1, 1));
    assert_eq!(tree(&session)["b"], "one\n");
    session.rewind(3, RewindStart::Rewind(2), 2);
    assert_eq!(tree(&session)["b"], "by hand\n", "the overwritten content was saved");
}

#[test]
fn a_link_in_place_of_a_directory_is_not_followed() {
    let session = Session::new(&[("d/a", "one\n")]);
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("a"), "two\n").unwrap();
    session.step(1);
    session.does("WriteFile", json!({"path": "d/a", "content": "two\n"}));
    fs::rename(session.bench.path("d"), session.bench.path("e")).unwrap();
    symlink(outside.path(), session.bench.path("d")).unwrap();
    let done = session.rewind_over(1, RewindStart::Step(1), 1, vec!["d/a".into()]);
    assert_eq!(done.restored, 0, "{done:?}");
    assert_eq!(fs::read_to_string(outside.path().join("a")).unwrap(), "two\n");
}

#[test]
fn a_rewind_interrupted_by_a_crash_is_finished() {
    let session = Session::new(&[("a", "one\n"), ("b", "one\n")]);
    let start = everything(&session);
    session.step(1);
    for path in ["a", "b", "new"] {
        session.does("WriteFile", json!({"path": path, "content": "two\n"}));
    }
    let end = everything(&session);
    // The current content is saved, the first file is restored, and then the process dies.
    let owner = Attribution { session: SessionId::new("s"), task: Some(FileRewind::task_id(1)), step: 1 };
    let paths = ["a", "b", "new"].map(|name| session.bench.path(name)).to_vec();
    session.runtime.block_on(session.changes.baselines().keep(owner, paths)).unwrap();
    session.bench.write("a", "one\n");
    let session = session.resumed();
    let done = session.rewind(1, RewindStart::Step(1), 1);
    assert_eq!((done.restored, done.kept), (3, Vec::new()));
    assert_eq!(everything(&session), start);
    session.rewind(2, RewindStart::Rewind(1), 1);
    assert_eq!(everything(&session), end);
}

#[test]
fn a_rewind_does_not_touch_git_files() {
    let session = Session::new(&[(".git/config", "mine\n"), ("a", "one\n")]);
    session.step(1);
    session.command(|| {
        session.bench.write("a", "two\n");
        session.bench.write(".git/config", "theirs\n");
    });
    session.rewind(1, RewindStart::Step(1), 1);
    assert_eq!(tree(&session)["a"], "one\n");
    assert_eq!(fs::read_to_string(session.bench.path(".git/config")).unwrap(), "theirs\n");
}

#[test]
fn rewind_points_list_the_files_and_lines_of_each_task() {
    let session = Session::new(&[("a", "one\n")]);
    session.step(1);
    session.does("WriteFile", json!({"path": "a", "content": "two\n"}));
    session.step(2);
    session.does("WriteFile", json!({"path": "a", "content": "two\nthree\n"}));
    session.begins("2");
    session.step(3);
    session.does("RunCommand", json!({"command": "echo b > b; echo c > c"}));
    let counts: Vec<_> = session.runtime.block_on(session.router.task_changes());
    let counts: Vec<_> = counts.iter().map(|one| (one.task_id.as_str(), one.files, one.added, one.removed)).collect();
    assert_eq!(counts, [("1", 1, 2, 1), ("2", 2, 2, 0)]);
}

#[derive(Debug, Clone)]
enum Act {
    Write(usize, u8),
    Append(usize),
    Move(usize, usize),
    Copy(usize, usize),
    Delete(usize),
    MakeDirectory(usize),
    Command(usize, u8, Deed),
    ByHand(usize, u8),
    RemovedByHand(usize),
    Killed,
}

#[derive(Debug, Clone, Copy)]
enum Deed {
    Write,
    Remove,
    Mode,
    Link,
    /// A symlink to another path, which replaces the existing entry.
    LinkToPlace,
    MakeDirectory,
    RemoveTree,
}

const PLACES: [&str; 8] = ["a", "b", "dir/a", "dir/b", "dir/deep/c", "d", "dir", "e/f"];

fn acts(by_hand: u32) -> impl Strategy<Value = Vec<Act>> {
    let place = 0..PLACES.len();
    let deed = prop_oneof![
        3 => Just(Deed::Write),
        2 => Just(Deed::Remove),
        1 => Just(Deed::Mode),
        1 => Just(Deed::Link),
        1 => Just(Deed::LinkToPlace),
        1 => Just(Deed::MakeDirectory),
        1 => Just(Deed::RemoveTree),
    ];
    let act = prop_oneof![
        4 => (place.clone(), 0..5_u8).prop_map(|(place, text)| Act::Write(place, text)),
        2 => place.clone().prop_map(Act::Append),
        2 => (place.clone(), place.clone()).prop_map(|(from, to)| Act::Move(from, to)),
        1 => (place.clone(), place.clone()).prop_map(|(from, to)| Act::Copy(from, to)),
        2 => place.clone().prop_map(Act::Delete),
        1 => place.clone().prop_map(Act::MakeDirectory),
        5 => (place.clone(), 0..5_u8, deed).prop_map(|(place, text, deed)| Act::Command(place, text, deed)),
        by_hand => (place.clone(), 0..5_u8).prop_map(|(place, text)| Act::ByHand(place, text)),
        by_hand => place.prop_map(Act::RemovedByHand),
        1 => Just(Act::Killed),
    ];
    proptest::collection::vec(act, 1..10)
}

fn act(session: &Session, act: &Act) {
    let path = |place: usize| session.bench.path(PLACES[place]);
    match *act {
        Act::Write(place, number) => drop(session.call("WriteFile", json!({"path": PLACES[place], "content": text(number)}))),
        Act::Append(place) => drop(session.call("AppendFile", json!({"path": PLACES[place], "content": "more\n"}))),
        Act::Move(from, to) => drop(session.call("Move", json!({"source": PLACES[from], "destination": PLACES[to]}))),
        Act::Copy(from, to) => drop(session.call("Copy", json!({"source": PLACES[from], "destination": PLACES[to]}))),
        Act::Delete(place) => drop(session.call("Delete", json!({"path": PLACES[place], "recursive": true}))),
        Act::MakeDirectory(place) => drop(session.call("CreateDirectory", json!({"path": PLACES[place]}))),
        Act::Command(place, number, deed) => session.command(|| {
            let path = path(place);
            let _ = match deed {
                Deed::Write => {
                    let _ = fs::create_dir_all(path.parent().unwrap());
                    fs::write(&path, text(number))
                }
                Deed::Remove => fs::remove_file(&path),
                Deed::Mode if path.is_file() && !path.is_symlink() => {
                    fs::set_permissions(&path, PermissionsExt::from_mode(0o600 | u32::from(number) << 3))
                }
                Deed::Mode => Ok(()),
                Deed::Link => {
                    let _ = fs::remove_file(&path);
                    symlink(format!("to-{number}"), &path)
                }
                Deed::LinkToPlace => {
                    let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path));
                    symlink(session.bench.path(PLACES[usize::from(number) + 1]), &path)
                }
                Deed::MakeDirectory => fs::create_dir_all(&path),
                Deed::RemoveTree => fs::remove_dir_all(&path),
            };
        }),
        Act::ByHand(place, number) => {
            let path = path(place);
            if !path.is_dir() && path.parent().is_some_and(Path::is_dir) && !path.is_symlink() {
                fs::write(&path, format!("by hand {number}\n")).unwrap();
            }
        }
        Act::RemovedByHand(place) => drop(fs::remove_file(path(place))),
        Act::Killed => {}
    }
}

fn cases() -> u32 {
    std::env::var("AYE_REWIND_CASES").ok().and_then(|count| count.parse().ok()).unwrap_or(60)
}

fn start() -> Session {
    let session = Session::new(&[("a", &text(0)), ("dir/a", &text(1)), ("dir/deep/c", &text(2))]);
    fs::set_permissions(session.bench.path("a"), PermissionsExt::from_mode(0o755)).unwrap();
    session
}

/// Performs each act in a step of its own. Returns the tree before each step, followed by the final tree.
fn played(mut session: Session, acts: &[Act]) -> (Session, Vec<BTreeMap<String, String>>) {
    let mut trees = Vec::new();
    for (step, one) in acts.iter().enumerate() {
        trees.push(everything(&session));
        session.step(step as u64 + 1);
        if matches!(one, Act::Killed) {
            session = session.resumed();
        }
        act(&session, one);
    }
    trees.push(everything(&session));
    (session, trees)
}

/// Rewinds to the state before each step and then undoes the rewind. None of the acts may be a manual edit.
#[track_caller]
fn goes_back_and_forth(acts: &[Act]) {
    let last = acts.len();
    for step in 0..last {
        let (session, trees) = played(start(), acts);
        let done = session.rewind(1, RewindStart::Step(step as u64 + 1), last as u64);
        assert_eq!(done.kept, Vec::new(), "{acts:?}");
        assert_eq!(everything(&session), trees[step], "before step {} of {acts:?}", step + 1);
        session.rewind(2, RewindStart::Rewind(1), last as u64);
        assert_eq!(everything(&session), trees[last], "the end of {acts:?}");
    }
}

#[test]
fn files_are_restored_in_a_directory_that_became_a_link() {
    // The link leads nowhere, to a copy of the directory, and to the moved directory itself.
    let moved = [Act::Write(0, 0), Act::Write(0, 0), Act::Move(6, 5), Act::Command(6, 0, Deed::Link)];
    goes_back_and_forth(&moved);
    goes_back_and_forth(&[&moved[..], &[Act::Copy(5, 6)]].concat());
    goes_back_and_forth(&[Act::Move(6, 5), Act::Command(6, 4, Deed::LinkToPlace), Act::Append(2)]);
}

#[test]
fn replacing_a_directory_with_a_link_is_undone() {
    for place in 0..PLACES.len() {
        for number in 0..5 {
            goes_back_and_forth(&[Act::Copy(6, 5), Act::Command(place, number, Deed::LinkToPlace)]);
        }
    }
}

#[test]
fn a_file_recreated_by_a_command_after_a_manual_removal_is_removed() {
    // Listing a directory that is there already records its files; the command writes the same text as before.
    for first in [Act::MakeDirectory(6), Act::Write(2, 1)] {
        let acts = [first, Act::RemovedByHand(2), Act::Command(2, 1, Deed::Write)];
        let (session, trees) = played(start(), &acts);
        let done = session.rewind(1, RewindStart::Step(3), 3);
        assert_eq!((done.restored, done.kept), (1, Vec::new()), "{acts:?}");
        assert_eq!(everything(&session), trees[2], "{acts:?}");
        session.rewind(2, RewindStart::Rewind(1), 3);
        assert_eq!(everything(&session), trees[3], "{acts:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_rewind_restores_the_tree_of_any_step_and_a_redo_the_last_one(
        acts in acts(0),
        first in any::<prop::sample::Index>(),
        second in any::<prop::sample::Index>(),
    ) {
        let (session, trees) = played(start(), &acts);
        let last = acts.len() as u64;
        let mut number = 0;
        for point in [first, second] {
            let step = point.index(acts.len());
            number += 1;
            let done = session.rewind(number, RewindStart::Step(step as u64 + 1), last);
            prop_assert_eq!(&done.kept, &Vec::new());
            prop_assert_eq!(everything(&session), trees[step].clone(), "back before step {}", step + 1);
            number += 1;
            session.rewind(number, RewindStart::Rewind(number - 1), last);
            prop_assert_eq!(everything(&session), trees[acts.len()].clone(), "forth again");
        }
    }

    #[test]
    fn manual_changes_are_kept_and_all_other_changes_are_rewound(
        acts in acts(3),
        point in any::<prop::sample::Index>(),
    ) {
        let (session, trees) = played(start(), &acts);
        let (end, point) = (trees[acts.len()].clone(), point.index(acts.len()));
        let done = session.rewind(1, RewindStart::Step(point as u64 + 1), acts.len() as u64);
        let after = everything(&session);
        let below = |path: &Path| session.bench.path("").join(path).strip_prefix(&session.bench.root).unwrap().display().to_string();
        let kept: Vec<String> = done.kept.iter().map(|file| below(&file.path)).collect();
        let mut names: Vec<_> = trees.iter().flat_map(BTreeMap::keys).collect();
        names.sort();
        names.dedup();
        let by_hand: Vec<String> = acts.iter().filter_map(|one| match one {
            Act::ByHand(place, _) | Act::RemovedByHand(place) => Some(below(Path::new(PLACES[*place]))),
            _ => None,
        }).collect();
        let is_directory = |name: &String| trees.iter().any(|tree| tree.get(name).is_some_and(|what| what == "/"));
        for name in names.into_iter().filter(|name| !is_directory(name)) {
            // The steps that have changed the file since then, and whether by hand.
            let changes: Vec<(usize, bool)> = (point..acts.len())
                .filter(|step| trees[*step].get(name) != trees[step + 1].get(name))
                .map(|step| (step, matches!(acts[step], Act::ByHand(..) | Act::RemovedByHand(_))))
                .collect();
            let ours = changes.iter().find(|(_, by_hand)| !by_hand).map(|(step, _)| *step);
            let later = ours.is_some_and(|ours| changes.iter().any(|(step, by_hand)| *by_hand && *step > ours));
            let then = ours.and_then(|step| trees[step].get(name)).cloned();
            if kept.contains(name) {
                prop_assert_eq!(after.get(name), end.get(name), "{} stays", name);
                // A file placed where a directory was blocks everything that was in it.
                let above = by_hand.iter().any(|other| name.starts_with(&format!("{other}/")));
                prop_assert!(later || above, "{} was kept, although nothing else changed it: {:?}", name, done);
            } else if later {
                prop_assert!(after.get(name) == end.get(name), "the edit of {} was lost", name);
            } else if ours.is_some() {
                prop_assert_eq!(after.get(name), then.as_ref(), "{} is restored", name);
            } else {
                prop_assert_eq!(after.get(name), end.get(name), "{} was not changed by the session", name);
            }
        }
        session.rewind(2, RewindStart::Rewind(1), acts.len() as u64);
        prop_assert_eq!(everything(&session), end);
    }
}
