mod cleared;
mod rewind;

use super::*;
use crate::policy::Permit;
use crate::ports::ToolRouter;
use crate::protocol::{ChangeStatus, ChangedBy, ChangedFile, FileDiff, SessionId, ToolResult, ToolStatus};
use crate::store::Snapshots;
use crate::tools::shell::checkpoint;
use crate::tools::tests::{Bench, call, context};
use crate::tools::{Router, ToolSources, Toolset};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use tempfile::TempDir;
use tokio::runtime::Runtime;

use ChangedBy::{Command, Outside, Tool};

/// A session with its own workspace and a real store.
struct Session {
    bench: Bench,
    data: TempDir,
    runtime: Runtime,
    changes: ChangeLog,
    router: Router,
}

impl Session {
    fn new(files: &[(&str, &str)]) -> Self {
        let bench = Bench::new();
        for (name, content) in files {
            bench.write(name, content);
        }
        let data = tempfile::tempdir().unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        Self::over(bench, data, runtime, false)
    }

    fn over(mut bench: Bench, data: TempDir, runtime: Runtime, resumed: bool) -> Self {
        let snapshots = Arc::new(Snapshots::new(data.path()));
        let changes = ChangeLog::new(snapshots.clone(), snapshots.clone(), SessionId::new("s"), resumed);
        bench.settings.session.checkpoints = Some(snapshots);
        bench.settings.session.changes = Some(changes.clone());
        let router = bench.router();
        let session = Self { bench, data, runtime, changes, router };
        session.begins("1");
        session
    }

    /// Simulates that the process was killed and the session was resumed.
    fn resumed(self) -> Self {
        let Self { bench, data, runtime, .. } = self;
        Self::over(bench, data, runtime, true)
    }

    /// Returns the tools of another session that uses the same workspace and data directory.
    fn of_another_session(&self, id: &str) -> Router {
        let snapshots = Arc::new(Snapshots::new(self.data.path()));
        let changes = ChangeLog::new(snapshots.clone(), snapshots.clone(), SessionId::new(id), false);
        let mut settings = self.bench.settings.clone();
        settings.session.checkpoints = Some(snapshots);
        settings.session.changes = Some(changes);
        Router::new(Toolset::new(settings, ToolSources::default()))
    }

    fn begins(&self, task: &str) {
        self.runtime.block_on(async {
            self.router.task_started(&TaskId::new(task));
            external::begin(&mut *self.changes.external().lock().await, &Arc::new(self.bench.settings.clone())).await;
        });
    }

    fn call(&self, tool: &str, arguments: Value) -> ToolStatus {
        self.runtime.block_on(async {
            let Ok(plan) = self.router.plan(call(tool, arguments)).await else { return ToolStatus::Failed };
            let permit = Permit::for_test(plan.actions.clone());
            self.router.run(plan, permit, context()).await.status
        })
    }

    #[track_caller]
    fn does(&self, tool: &str, arguments: Value) {
        assert_eq!(self.call(tool, arguments), ToolStatus::Succeeded, "{tool}");
    }

    fn list(&self) -> ChangedFiles {
        self.runtime.block_on(self.router.changed_files(None))
    }

    fn list_of(&self, task: &str) -> ChangedFiles {
        self.runtime.block_on(self.router.changed_files(Some(TaskId::new(task))))
    }

    fn remove(&self, name: &str) {
        fs::remove_file(self.bench.path(name)).unwrap();
    }
}

fn short(changed: &ChangedFiles) -> Vec<(&str, char, Vec<ChangedBy>)> {
    changed.files.iter().map(|file| (file.path.as_str(), file.status.status_char(), file.by.clone())).collect()
}

fn file<'a>(changed: &'a ChangedFiles, path: &str) -> &'a ChangedFile {
    changed.files.iter().find(|file| file.path == path).unwrap_or_else(|| panic!("no {path} in {changed:?}"))
}

#[test]
fn changes_by_tools_commands_and_others_are_listed_with_diffs() {
    let session = Session::new(&[("a", "one\ntwo\n"), ("b", "b\n"), ("c", "c\n"), ("d", "d\n"), (".gitignore", "*.log\n")]);
    session.does("EditFile", json!({"path": "a", "edits": [{"oldText": "two", "newText": "2"}]}));
    session.does("WriteFile", json!({"path": "new/x.log", "content": "new\n"}));
    session.does("Delete", json!({"path": "b"}));
    session.does("RunCommand", json!({"command": "echo more >> c; echo e > e; echo no > no.log"}));
    session.bench.write("d", "D\n");
    session.bench.write("deep/er/f", "f\n");
    session.bench.write("other.log", "ignored\n");
    let changed = session.list();
    let expected = [
        ("a", 'M', vec![Tool]),
        ("b", 'D', vec![Tool]),
        ("c", 'M', vec![Command]),
        ("d", 'M', vec![Outside]),
        ("deep/er/f", 'A', vec![Outside]),
        ("e", 'A', vec![Command]),
        ("new/x.log", 'A', vec![Tool]),
    ];
    assert_eq!(short(&changed), expected, "{changed:?}");
    assert_eq!(changed.notes, [""; 0]);
    assert!(file(&changed, "a").diff.to_string().contains("-two\n+2\n"), "{changed:?}");
    assert!(file(&changed, "b").diff.to_string().contains("+++ /dev/null\n"), "{changed:?}");
    assert!(
        file(&changed, "d").diff.to_string().contains("-d\n+D\n"),
        "the snapshot of the command has the earlier content: {changed:?}"
    );
    assert_eq!((changed.added, changed.removed), (6, 3));
    assert_eq!(changed.summary().unwrap(), "7 files (+6 −3)");
}

#[test]
fn without_a_snapshot_outside_changes_have_no_earlier_content_except_new_files() {
    let session = Session::new(&[("a", "one\n"), ("gone", "x\n")]);
    session.bench.write("a", "two two\n");
    session.bench.write("new", "new\n");
    session.remove("gone");
    let changed = session.list();
    assert_eq!(short(&changed), [("a", 'M', vec![Outside]), ("gone", 'D', vec![Outside]), ("new", 'A', vec![Outside])]);
    assert_eq!(file(&changed, "a").note.as_deref(), Some("earlier content was not saved"));
    assert!(file(&changed, "new").diff.to_string().contains("+new\n"));
}

#[test]
fn reverted_changes_and_failed_calls_are_not_listed() {
    let session = Session::new(&[("a", "one\n"), ("b", "b\n")]);
    session.does("WriteFile", json!({"path": "a", "content": "two\n"}));
    session.does("WriteFile", json!({"path": "new", "content": "new\n"}));
    assert_eq!(session.list().files.len(), 2);
    session.does("RunCommand", json!({"command": "echo one > a"}));
    session.does("Delete", json!({"path": "new"}));
    assert_eq!(session.call("WriteFile", json!({"path": "no/x", "content": "", "createDirectories": false})), ToolStatus::Failed);
    let changed = session.list();
    assert_eq!(short(&changed), [], "{changed:?}");
    assert_eq!(changed.summary(), None);
    session.bench.write("a", "three\n");
    let changed = session.list();
    assert_eq!(short(&changed), [("a", 'M', vec![Tool, Command, Outside])]);
    assert!(file(&changed, "a").diff.to_string().contains("-one\n+three\n"), "against the session's start: {changed:?}");
}

#[test]
fn a_moved_tree_is_listed_as_deletions_and_additions() {
    let session = Session::new(&[("old/a", "a\n"), ("old/deep/b", "b\n"), (".gitignore", "target\n")]);
    session.does("Move", json!({"source": "old", "destination": "new"}));
    session.bench.write("new/target/built", "x");
    let changed = session.list();
    let expected = [("new/a", 'A'), ("new/deep/b", 'A'), ("old/a", 'D'), ("old/deep/b", 'D')];
    assert_eq!(short(&changed), expected.map(|(path, letter)| (path, letter, vec![Tool])), "{changed:?}");
    session.does("Delete", json!({"path": "new", "recursive": true}));
    let changed = session.list();
    let expected = [("new/target/built", 'D'), ("old/a", 'D'), ("old/deep/b", 'D')];
    assert_eq!(short(&changed), expected.map(|(path, letter)| (path, letter, vec![Tool])), "{changed:?}");
}

#[test]
fn mode_link_binary_and_large_file_changes_are_reported() {
    let session = Session::new(&[("script", "true\n"), ("file", "text\n"), ("binary", "a\0b"), ("large", "x\n")]);
    symlink("file", session.bench.path("link")).unwrap();
    let line = "chmod 755 script; rm file; ln -s script file; printf 'c\\0d' > binary; head -c 2000000 /dev/zero > large; \
                ln -sfn script link";
    session.does("RunCommand", json!({"command": line}));
    let changed = session.list();
    let status = |path| file(&changed, path).status;
    assert_eq!(status("script"), ChangeStatus::ModeChanged);
    assert!(file(&changed, "script").diff.to_string().contains("old mode 100644\nnew mode 100755\n"));
    assert_eq!(status("file"), ChangeStatus::TypeChanged);
    assert_eq!(file(&changed, "binary").note.as_deref(), Some("not text: 3 bytes before, 3 now"));
    assert_eq!(file(&changed, "large").note.as_deref(), Some("large file: 2000000 bytes, no diff"));
    let link = file(&changed, "link");
    assert!(link.status == ChangeStatus::Added && link.diff.to_string().contains("+script"), "{link:?}");
    assert_eq!(fs::metadata(session.bench.path("script")).unwrap().permissions().mode() & 0o777, 0o755);
}

#[test]
fn secrets_are_redacted_on_both_sides_of_a_diff() {
    let secret = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";
    let session = Session::new(&[("config", &format!("token = \"{secret}\"\n"))]);
    session.does("RunCommand", json!({"command": "echo port = 1 >> config"}));
    let changed = session.list();
    let diff = file(&changed, "config").diff.to_string();
    assert!(diff.contains("+port = 1") && !diff.contains(secret), "{diff}");
}

#[test]
fn the_change_list_survives_a_kill_including_unfinished_changes() {
    let session = Session::new(&[("a", "one\n"), ("b", "b\n"), ("c", "c\n"), ("d", "d\n")]);
    session.does("WriteFile", json!({"path": "a", "content": "two\n"}));
    // Killed in the middle: saved and written, but not recorded.
    session.runtime.block_on(session.changes.keep(vec![session.bench.path("b"), session.bench.path("tree")]));
    session.bench.write("b", "B\n");
    session.bench.write("tree/inner", "inner\n");
    let settings = Arc::new(session.bench.settings.clone());
    let before = session.runtime.block_on(checkpoint::snapshot_before(&settings, &CancellationToken::new())).unwrap();
    session.bench.write("c", "C\n");
    std::mem::forget(before);
    let session = session.resumed();
    session.bench.write("d", "D\n");
    let changed = session.list();
    let expected = [("a", vec![Tool]), ("b", vec![Tool]), ("c", vec![Command]), ("d", vec![Command]), ("tree/inner", vec![Tool])];
    let found: Vec<_> = changed.files.iter().map(|file| (file.path.as_str(), file.by.clone())).collect();
    assert_eq!(found, expected, "{changed:?}");
    assert!(
        file(&changed, "b").diff.to_string().contains("-b\n+B\n") && file(&changed, "c").diff.to_string().contains("-c\n+C\n"),
        "{changed:?}"
    );
    let again = session.resumed().list();
    assert_eq!(again.files, changed.files);
}

#[test]
fn changes_made_while_aye_is_not_running_are_found_by_the_first_snapshot() {
    let session = Session::new(&[("a", "one\n"), ("b", "b\n")]);
    session.does("RunCommand", json!({"command": "echo B > b"}));
    let Session { bench, data, runtime, .. } = session;
    bench.write("a", "two\n");
    let changed = Session::over(bench, data, runtime, true).list();
    assert_eq!(short(&changed), [("a", 'M', vec![Outside]), ("b", 'M', vec![Command])]);
    assert!(file(&changed, "a").diff.to_string().contains("-one\n+two\n"));
}

#[test]
fn changes_can_be_listed_since_the_start_of_a_task() {
    let session = Session::new(&[("a", "one\n"), ("b", "b\n")]);
    session.does("WriteFile", json!({"path": "a", "content": "two\n"}));
    session.begins("2");
    session.does("WriteFile", json!({"path": "a", "content": "three\n"}));
    session.does("WriteFile", json!({"path": "b", "content": "B\n"}));
    session.begins("3");
    let diff = |changed: &ChangedFiles, path: &str| file(changed, path).diff.to_string();
    let all = session.list();
    assert!(diff(&all, "a").contains("-one\n+three\n") && all.files.len() == 2);
    let second = session.list_of("2");
    assert!(diff(&second, "a").contains("-two\n+three\n") && second.files.len() == 2, "{second:?}");
    assert_eq!(second.since_task, Some(TaskId::new("2")));
    assert_eq!(session.list_of("3").files, []);
    assert_eq!(short(&session.list_of("1")), [("a", 'M', vec![Tool])]);
}

#[test]
fn files_that_the_policy_does_not_allow_reading_have_no_diff() {
    let mut session = Session::new(&[("a", "one\n")]);
    session.does("WriteFile", json!({"path": "a", "content": "two\n"}));
    session.bench.settings.paths.may_read = Arc::new(|path: &Path| !path.ends_with("a"));
    session.router = session.bench.router();
    let changed = session.list();
    assert_eq!(file(&changed, "a").note.as_deref(), Some("the policy does not allow reading the file"));
    assert!(file(&changed, "a").diff.is_empty());
}

/// Run with `cargo test --release --lib the_cost_of_listing_changes_is_measured -- --ignored --nocapture`.
#[test]
#[ignore = "a measurement"]
fn the_cost_of_listing_changes_is_measured() {
    let session = Session::new(&[("a", "one\n")]);
    for directory in 0..1000 {
        for file in 0..100 {
            session.bench.write(&format!("d{directory}/f{file}"), "text\n");
        }
    }
    let timed = |what: &str, work: &dyn Fn()| {
        let begun = std::time::Instant::now();
        work();
        println!("{what}: {:?}", begun.elapsed());
    };
    // A second session on the same workspace; the first started before the files existed.
    let Session { bench, data, runtime, .. } = session;
    let begun = std::time::Instant::now();
    let session = Session::over(bench, data, runtime, false);
    println!("remembering and watching 100,000 files in 1,000 directories: {:?}", begun.elapsed());
    let place = || vec![session.bench.path("a")];
    for _ in 0..3 {
        let settings = Arc::new(session.bench.settings.clone());
        timed("noting others", &|| session.runtime.block_on(SessionChanges::new(&settings).unwrap().note_others()));
        timed("keeping before an edit", &|| drop(session.runtime.block_on(session.changes.keep(place()))));
        fs::write(session.bench.path("a"), "two\n").unwrap();
        timed("keeping and settling after it", &|| {
            session.runtime.block_on(async { session.changes.record_saved(session.changes.keep(place()).await).await });
        });
    }
    timed("a list of one change", &|| drop(session.list()));
    timed("the first command", &|| session.does("RunCommand", json!({"command": "echo x > d7/f7"})));
    timed("another command", &|| session.does("RunCommand", json!({"command": "echo y > d7/f8"})));
    timed("a list with open commands", &|| assert_eq!(session.list().files.len(), 3));
    timed("the same again", &|| assert_eq!(session.list().files.len(), 3));
}

#[derive(Debug, Clone)]
enum Step {
    Write(usize, u8),
    Edit(usize, u8),
    Delete(usize),
    Move(usize, usize),
    Command(usize, u8),
    CommandDeletes(usize),
    Outside(usize, u8),
    OutsideDeletes(usize),
    List,
    Killed,
    NextTask,
}

const NAMES: [&str; 6] = ["a", "b", "dir/a", "dir/b", "dir/deep/c", "d"];

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let name = 0..NAMES.len();
    let step = prop_oneof![
        3 => (name.clone(), 0..4_u8).prop_map(|(name, text)| Step::Write(name, text)),
        2 => (name.clone(), 0..4_u8).prop_map(|(name, text)| Step::Edit(name, text)),
        2 => name.clone().prop_map(Step::Delete),
        2 => (name.clone(), name.clone()).prop_map(|(from, to)| Step::Move(from, to)),
        2 => (name.clone(), 0..4_u8).prop_map(|(name, text)| Step::Command(name, text)),
        1 => name.clone().prop_map(Step::CommandDeletes),
        2 => (name.clone(), 0..4_u8).prop_map(|(name, text)| Step::Outside(name, text)),
        1 => name.prop_map(Step::OutsideDeletes),
        1 => Just(Step::List),
        1 => Just(Step::Killed),
        1 => Just(Step::NextTask),
    ];
    proptest::collection::vec(step, 1..14)
}

fn tree(session: &Session) -> BTreeMap<&'static str, String> {
    NAMES.iter().filter_map(|name| Some((*name, fs::read_to_string(session.bench.path(name)).ok()?))).collect()
}

fn text(number: u8) -> String {
    format!("first\ntext {number}\nlast\n")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn the_change_list_equals_a_comparison_of_the_trees(steps in steps()) {
        let mut session = Session::new(&[("a", &text(0)), ("dir/a", &text(1)), ("dir/deep/c", &text(2))]);
        let start = tree(&session);
        // The first snapshot: later changes by others have an earlier content.
        session.does("RunCommand", json!({"command": "touch a"}));
        let mut tasks = 1;
        for step in steps {
            match step {
                Step::Write(name, number) => drop(session.call("WriteFile", json!({"path": NAMES[name], "content": text(number)}))),
                Step::Edit(name, number) => {
                    let edit = json!([{"oldText": "first", "newText": format!("first {number}")}]);
                    session.call("EditFile", json!({"path": NAMES[name], "edits": edit}));
                }
                Step::Delete(name) => drop(session.call("Delete", json!({"path": NAMES[name]}))),
                Step::Move(from, to) => drop(session.call("Move", json!({"source": NAMES[from], "destination": NAMES[to]}))),
                Step::Command(name, number) => {
                    let line = format!("mkdir -p dir/deep; printf 'first\\ntext {number}\\nlast\\n' > {}", NAMES[name]);
                    session.call("RunCommand", json!({"command": line}));
                }
                Step::CommandDeletes(name) => drop(session.call("RunCommand", json!({"command": format!("rm -f {}", NAMES[name])}))),
                Step::Outside(name, number) => session.bench.write(NAMES[name], text(number)),
                Step::OutsideDeletes(name) => drop(fs::remove_file(session.bench.path(NAMES[name]))),
                Step::List => drop(session.list()),
                Step::Killed => session = session.resumed(),
                Step::NextTask => {
                    tasks += 1;
                    session.begins(&tasks.to_string());
                }
            }
        }
        let end = tree(&session);
        let changed = session.list();
        let mut expected: Vec<_> = NAMES.iter().filter(|name| start.get(*name) != end.get(*name)).map(|name| {
            let letter = match (start.get(name), end.get(name)) {
                (None, _) => 'A',
                (_, None) => 'D',
                _ => 'M',
            };
            ((*name).to_owned(), letter)
        }).collect();
        expected.sort();
        let found: Vec<_> = changed.files.iter().map(|file| (file.path.clone(), file.status.status_char())).collect();
        prop_assert_eq!(&found, &expected, "{:?}", changed);
        for file in &changed.files {
            let (old, new) = (start.get(file.path.as_str()), end.get(file.path.as_str()));
            let side = |text: Option<&String>, side: &str| text.map_or("/dev/null".to_owned(), |_| format!("{side}/{}", file.path));
            let (old_text, new_text) = (old.cloned().unwrap_or_default(), new.cloned().unwrap_or_default());
            let hunks = crate::tools::diff::compare(&old_text, &new_text).hunks;
            let diff = FileDiff::new(&side(old, "a"), &side(new, "b"), hunks).to_string();
            prop_assert!(file.diff.to_string().ends_with(&diff), "{:?}: {}", file, diff);
        }
    }
}

/// Returns the names of the files whose changes the result attributes to the command.
fn credited(session: &Session, result: &ToolResult) -> Vec<String> {
    let root = session.bench.path("");
    let name = |path: &std::path::PathBuf| path.strip_prefix(&root).unwrap_or(path).display().to_string();
    result.changed.as_ref().map(|changed| changed.paths.iter().map(name).collect()).unwrap_or_default()
}

#[test]
fn concurrent_tool_writes_are_not_attributed_to_a_command() {
    let session =
        Session::new(&[("edited", "one\n"), ("both", "one\n"), ("moved", "m\n"), ("gone", "g\n"), ("tree/leaf", "l\n")]);
    let line = "echo mine > own; touch begun; while [ ! -e go ]; do sleep 0.01; done; rm begun go; echo more >> both";
    let result = session.runtime.block_on(async {
        let plan = session.router.plan(call("RunCommand", json!({"command": line}))).await.unwrap();
        let permit = Permit::for_test(plan.actions.clone());
        let command = session.router.run(plan, permit, context());
        let beside = async {
            while !session.bench.path("begun").exists() {
                tokio::time::sleep(std::time::Duration::from_millis(2)).await;
            }
            for (tool, arguments) in [
                ("EditFile", json!({"path": "edited", "edits": [{"oldText": "one", "newText": "1"}]})),
                ("EditFile", json!({"path": "both", "edits": [{"oldText": "one", "newText": "1"}]})),
                ("WriteFile", json!({"path": "new/file", "content": "new\n"})),
                ("Move", json!({"source": "moved", "destination": "there"})),
                ("Copy", json!({"source": "tree", "destination": "copied"})),
                ("Delete", json!({"path": "gone"})),
            ] {
                let plan = session.router.plan(call(tool, arguments)).await.unwrap();
                let permit = Permit::for_test(plan.actions.clone());
                assert_eq!(session.router.run(plan, permit, context()).await.status, ToolStatus::Succeeded, "{tool}");
            }
            crate::tools::change_log::tool_writes::tests::next_tick(session.data.path());
            session.bench.write("go", "");
        };
        tokio::join!(command, beside).0
    });
    assert_eq!(credited(&session, &result), ["both", "own"], "{result:?}");
    let listed = session.list();
    let names: Vec<_> = listed.files.iter().map(|file| file.path.as_str()).collect();
    for name in ["both", "copied/leaf", "edited", "gone", "new/file", "own", "there"] {
        assert!(names.contains(&name), "the list of the session is complete: {names:?}");
    }
}

#[test]
fn file_tools_of_another_session_are_not_attributed_to_a_command() {
    let session = Session::new(&[("edited", "one\n"), ("both", "one\n"), ("gone", "g\n"), ("restored", "old\n")]);
    let other = session.of_another_session("other");
    let edit = |path: &str| ("EditFile", json!({"path": path, "edits": [{"oldText": "one", "newText": "1"}]}));
    let line = "echo mine > own; echo new > restored; touch begun; while [ ! -e go ]; do sleep 0.01; done; rm begun go; \
                echo more >> both";
    let result = session.runtime.block_on(async {
        // Before the command starts: an equal state that the command restores is its own work.
        run(&other, "WriteFile", json!({"path": "restored", "content": "new\n"})).await;
        session.bench.write("restored", "old\n");
        let beside = async {
            until_there(&session, "begun").await;
            for (tool, arguments) in [
                edit("edited"),
                edit("both"),
                ("WriteFile", json!({"path": "new/file", "content": "new\n"})),
                ("Delete", json!({"path": "gone"})),
            ] {
                run(&other, tool, arguments).await;
            }
            session.bench.write("go", "");
        };
        tokio::join!(command(&session, line), beside).0
    });
    assert_eq!(credited(&session, &result), ["both", "own", "restored"], "{result:?}");
    let listed = session.list();
    let of = |path: &str| file(&listed, path).by.clone();
    assert_eq!(of("own"), [Command], "{listed:?}");
    assert!(of("restored").contains(&Command), "{listed:?}");
    for path in ["edited", "gone", "new/file"] {
        assert!(!of(path).contains(&Command), "{path}: {listed:?}");
    }
}

async fn run(router: &Router, tool: &str, arguments: Value) {
    let plan = router.plan(call(tool, arguments)).await.unwrap();
    let permit = Permit::for_test(plan.actions.clone());
    assert_eq!(router.run(plan, permit, context()).await.status, ToolStatus::Succeeded, "{tool}");
}

/// Runs a line through a call that has been approved.
async fn command(session: &Session, line: &str) -> ToolResult {
    let plan = session.router.plan(call("RunCommand", json!({"command": line}))).await.unwrap();
    let permit = Permit::for_test(plan.actions.clone());
    session.router.run(plan, permit, context()).await
}

async fn until_there(session: &Session, name: &str) {
    while !session.bench.path(name).exists() {
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
}

fn is_shared(result: &ToolResult) -> bool {
    let changed = result.changed.as_ref().expect("the command changed something");
    let said = changed.notes.iter().any(|note| note.starts_with("another command ran at the same time"));
    assert_eq!(said, !changed.summary.starts_with("changed "), "{changed:?}");
    said
}

#[test]
fn changes_during_concurrent_commands_are_not_attributed_to_a_single_command() {
    let session = Session::new(&[("a", "one\n"), ("b", "one\n"), ("c", "one\n")]);
    let line = |own: &str, waits: &str| {
        format!("echo x > begun-{own}; while [ ! -e {waits} ]; do sleep 0.01; done; echo more >> {own}; echo x > done-{own}")
    };
    let [first, second, alone] = session.runtime.block_on(async {
        // The second starts after the first and ends before it.
        let (first, second) = (line("a", "done-b"), line("b", "begun-b"));
        let second = async {
            until_there(&session, "begun-a").await;
            command(&session, &second).await
        };
        let (first, second) = tokio::join!(command(&session, &first), second);
        [first, second, command(&session, "echo more >> c").await]
    });
    assert!(is_shared(&first) && is_shared(&second), "{first:?} {second:?}");
    assert!(!is_shared(&alone), "{alone:?}");
    assert_eq!(credited(&session, &alone), ["c"]);
}

#[test]
fn each_change_is_attributed_to_the_command_or_tool_that_made_it() {
    let session =
        Session::new(&[("edited", "one\n"), ("both", "one\n"), ("moved", "m\n"), ("gone", "g\n"), ("tree/leaf", "l\n")]);
    let line = "echo mine > own; while [ ! -e go ]; do sleep 0.01; done; rm go; echo more >> both; echo x > last";
    let beside = session.runtime.block_on(async {
        let plan = session.router.plan(call("RunCommand", json!({"command": line, "background": true}))).await.unwrap();
        let permit = Permit::for_test(plan.actions.clone());
        assert_eq!(session.router.run(plan, permit, context()).await.status, ToolStatus::Succeeded);
        until_there(&session, "own").await;
        for (tool, arguments) in [
            ("EditFile", json!({"path": "edited", "edits": [{"oldText": "one", "newText": "1"}]})),
            ("EditFile", json!({"path": "both", "edits": [{"oldText": "one", "newText": "1"}]})),
            ("WriteFile", json!({"path": "new/file", "content": "new\n"})),
            ("Move", json!({"source": "moved", "destination": "there"})),
            ("Copy", json!({"source": "tree", "destination": "copied"})),
            ("Delete", json!({"path": "gone"})),
        ] {
            let plan = session.router.plan(call(tool, arguments)).await.unwrap();
            let permit = Permit::for_test(plan.actions.clone());
            assert_eq!(session.router.run(plan, permit, context()).await.status, ToolStatus::Succeeded, "{tool}");
        }
        let beside = command(&session, "echo x > other").await;
        session.bench.write("go", "");
        session.bench.settings.session.commands.find("s1").unwrap().over().await;
        beside
    });
    assert!(is_shared(&beside), "{beside:?}");
    let changed = session.list();
    let by: BTreeMap<&str, Vec<ChangedBy>> = changed.files.iter().map(|file| (file.path.as_str(), file.by.clone())).collect();
    for name in ["copied/leaf", "edited", "gone", "moved", "new/file", "there"] {
        assert_eq!(by[name], [Tool], "{name}: {changed:?}");
    }
    for name in ["own", "other", "last"] {
        assert_eq!(by[name], [Command], "{name}: {changed:?}");
    }
    assert_eq!(by["both"], [Tool, Command], "{changed:?}");
}
