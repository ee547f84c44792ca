//! Starts that repair a store, killed at each of their effects: an old store, a damaged store, a partly applied
//! preview.
#![cfg(target_os = "linux")]

use crate::preview::ALWAYS;
use crate::support::story::Tally;
use crate::support::trace::{Fault, Point, Traced, trace};
use crate::support::{Answer, Project, Server};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

fn started(project: &Project, arguments: &[&str], point: Option<Point>) -> Result<Traced, String> {
    let mut command = project.command(arguments);
    command.env("AYE_LOG", "off");
    trace(command, &[project.directory("data"), project.path("")], point)
}

/// Kills a start at each of its effects, with fresh directories each time, and checks the next start. `begins` returns
/// the index of the first effect to consider.
fn killed_while_mending(
    name: &str,
    (short, percent): (usize, usize),
    arguments: &[&str],
    world: impl Fn() -> Project,
    begins: impl Fn(&[String]) -> usize,
    check: impl Fn(&Project) -> Result<(), String>,
) {
    let calm = world();
    let traced = match started(&calm, arguments, None) {
        Ok(traced) => traced,
        Err(why) => return println!("skipped: {why}"),
    };
    assert_eq!(traced.code, 0, "{}", traced.stderr);
    check(&calm).unwrap();
    let (first, last) = (begins(&traced.effects), traced.effects.len());
    let mut tally = Tally::new(name, short, percent);
    let all = 2 * (last - first);
    let stories = tally.wanted.min(all);
    for story in 0..stories {
        let at = story * all / stories + if stories < all { tally.below((all / stories) as u64) } else { 0 };
        let fault = if at % 2 == 0 { Fault::KilledBefore } else { Fault::KilledAfter };
        let point = Point { effect: first + at / 2 + 1, fault };
        let project = world();
        let killed = started(&project, arguments, Some(point)).unwrap();
        let outcome = check(&project);
        tally.count(1, outcome.map_err(|why| format!("{point:?} at {:?}: {why}", killed.hit)));
    }
    tally.finish();
}

/// Schema of the store in version 1.
const FIRST_VERSION: &str = "
    CREATE TABLE sessions (
        key INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, workspace_id TEXT NOT NULL, workspace TEXT NOT NULL, title TEXT,
        created INTEGER NOT NULL, updated INTEGER NOT NULL, status TEXT NOT NULL, model TEXT NOT NULL, draft TEXT NOT NULL DEFAULT '',
        owner TEXT
    );
    CREATE INDEX sessions_by_workspace ON sessions (workspace_id, updated);
    CREATE TABLE records (
        key INTEGER PRIMARY KEY, session INTEGER NOT NULL REFERENCES sessions (key) ON DELETE CASCADE, seq INTEGER NOT NULL,
        json TEXT NOT NULL, time INTEGER NOT NULL, UNIQUE (session, seq)
    );
    PRAGMA application_id = 0x61796501;
    PRAGMA user_version = 1;
";

fn message(number: usize, role: &str, text: &str) -> Value {
    json!({"messageId": format!("msg_{number:05}"), "role": role, "content": [{"type": "text", "text": text}], "tokenCount": 5,
        "taskId": "task_001", "stepId": "step_0001", "timestamp": "2026-11-01T10:00:00Z"})
}

fn records() -> [Value; 5] {
    [
        json!({"record": "task_started", "prompt": message(1, "user", "an old question"), "maxSteps": 100}),
        json!({"record": "step_started", "taskId": "task_001", "stepId": "step_0001", "stepCount": 1}),
        json!({"record": "answer", "message": message(2, "assistant", "an old answer"), "usage": {"inputTokens": 5,
            "cacheReadTokens": 0, "cacheWriteTokens": 0, "outputTokens": 5, "reasoningTokens": 0}, "stopReason": "end_turn",
            "latencyMs": 39, "model": "x"}),
        json!({"record": "step_completed", "taskId": "task_001", "stepId": "step_0001", "stepCount": 1,
            "message": message(2, "assistant", "an old answer")}),
        json!({"record": "task_ended", "taskId": "task_001", "stepCount": 1, "end": {"end": "completed"}}),
    ]
}

/// Creates a version 1 store with this number of sessions.
fn old_store(project: &Project, sessions: i64) -> PathBuf {
    let path = project.directory("data").join("aye.db");
    let store = rusqlite::Connection::open(&path).unwrap();
    store.execute_batch("PRAGMA journal_mode = wal").unwrap();
    store.execute_batch(FIRST_VERSION).unwrap();
    let workspace = project.path("").canonicalize().unwrap().display().to_string();
    for key in 1..=sessions {
        store
            .execute(
                "INSERT INTO sessions (key, id, workspace_id, workspace, title, created, updated, status, model)
                 VALUES (?1, ?2, 'ws_old', ?3, 'an old question', 1, ?1, 'idle', 'anthropic/claude-sonnet-5')",
                rusqlite::params![key, format!("{key:032x}"), workspace],
            )
            .unwrap();
        for (seq, record) in records().iter().enumerate() {
            store
                .execute(
                    "INSERT INTO records (session, seq, json, time) VALUES (?1, ?2, ?3, 1)",
                    rusqlite::params![key, seq as i64 + 1, record.to_string()],
                )
                .unwrap();
        }
    }
    store.close().unwrap();
    path
}

/// Returns the IDs of all sessions.
fn sessions(project: &Project) -> Result<Vec<String>, String> {
    let listed = project.aye(&["sessions", "list", "--all", "--json"]);
    if listed.code != 0 {
        return Err(listed.stderr);
    }
    let mut ids: Vec<_> = listed
        .json()
        .as_array()
        .into_iter()
        .flatten()
        .map(|session| session["sessionId"].as_str().unwrap_or_default().to_owned())
        .collect();
    ids.sort();
    Ok(ids)
}

#[test]
fn a_version_1_store_survives_a_killed_migration() {
    const SESSIONS: i64 = 3;
    let world = || {
        let project = Project::empty();
        old_store(&project, SESSIONS);
        project
    };
    killed_while_mending(
        "migration",
        (4, 3),
        &["sessions", "list", "--all", "--json"],
        world,
        |_| 0,
        |project| {
            let found = sessions(project)?;
            let shown = project.aye(&["sessions", "show", &format!("{:032x}", 1)]);
            let whole = shown.code == 0 && shown.stdout.contains("an old question") && shown.stdout.contains("an old answer");
            if found.len() == SESSIONS as usize && whole {
                Ok(())
            } else {
                Err(format!("{found:?}\n{}\n{}", shown.stdout, shown.stderr))
            }
        },
    );
}

/// Collects the contents of all files below a directory.
fn contents(directory: &Path, found: &mut Vec<Vec<u8>>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.path().is_dir() {
            contents(&entry.path(), found);
        } else {
            found.extend(fs::read(entry.path()));
        }
    }
}

#[test]
fn a_damaged_store_is_set_aside_unchanged_even_if_the_recovery_is_killed() {
    let first = Project::empty();
    let path = old_store(&first, 40);
    let mut damaged = fs::read(&path).unwrap();
    let middle = damaged.len() / 2 / 4096 * 4096;
    damaged[middle..middle + 8192].fill(0x5a);
    let world = || {
        let project = Project::empty();
        fs::write(project.directory("data").join("aye.db"), &damaged).unwrap();
        project
    };
    let calm = world();
    let saved = sessions(&calm).unwrap();
    killed_while_mending(
        "damaged store",
        (4, 3),
        &["sessions", "list", "--all", "--json"],
        world,
        |_| 0,
        |project| {
            let found = sessions(project)?;
            let mut left = Vec::new();
            contents(&project.directory("data"), &mut left);
            if !left.contains(&damaged) {
                return Err("the damaged store is not there any more as it was".to_owned());
            }
            if found == saved { Ok(()) } else { Err(format!("{} sessions were saved and not {}", found.len(), saved.len())) }
        },
    );
}

/// The record of the changes to apply is written, but its sync fails.
#[test]
fn an_approved_preview_is_applied_completely_if_its_journal_cannot_be_synced() {
    let world = || Project::empty().policy(ALWAYS);
    let arguments = json!({"command": "for n in 1 2 3; do echo new > made$n; done"}).to_string();
    let words = ["--trust", "tool", "call", "RunCommand", "--args", &arguments, "--json", "--yes"];
    let calm = match started(&world(), &words, None) {
        Ok(calm) => calm,
        Err(why) => return println!("skipped: {why}"),
    };
    let Some(written) = calm.effects.iter().position(|effect| effect.ends_with("/commit.json")) else {
        return println!("skipped: this system makes no previews");
    };
    let project = world();
    // The effect after the write syncs the directory of the preview. An earlier effect may be a sync of the same kind.
    let point = Point { effect: written + 2, fault: Fault::Fails(libc::EIO) };
    let traced = started(&project, &words, Some(point)).unwrap();
    assert!(traced.hit.as_ref().is_some_and(|hit| hit.starts_with("fsync previews/")), "{:?}", traced.hit);
    project.aye(&["tool", "call", "ListDirectory", "--args", r#"{"path": "."}"#]).exits(0);
    for number in 1..=3 {
        assert_eq!(project.read(&format!("made{number}")), "new\n", "{}", traced.stdout);
    }
}

#[test]
fn an_interrupted_preview_commit_is_applied_completely_or_not_at_all() {
    const LINE: &str =
        "for n in 1 2 3 4 5 6; do echo new > made$n; echo more >> changed$n; rm gone$n; done; mv old moved; chmod 755 mode";
    let world = || {
        let mut project = Project::empty().policy(ALWAYS).file("old", "old\n").file("mode", "true\n");
        for number in 1..=6 {
            project = project.file(&format!("changed{number}"), "one\n").file(&format!("gone{number}"), "gone\n");
        }
        project
    };
    let arguments = json!({"command": LINE}).to_string();
    let foretold =
        world().aye(&["--trust", "tool", "call", "RunCommand", "--args", &arguments, "--json", "--plan"]).exits(0).json();
    if foretold.get("effects").is_none() {
        return println!("skipped: {}", foretold["notes"]);
    }
    let kept = |project: &Project| {
        let each = (1..=6).map(|number| {
            [
                project.exists(&format!("made{number}")),
                project.read(&format!("changed{number}")) == "one\nmore\n",
                !project.exists(&format!("gone{number}")),
            ]
        });
        each.flatten().chain([project.exists("moved") && !project.exists("old")]).collect::<Vec<bool>>()
    };
    killed_while_mending(
        "keeping a preview",
        (4, 5),
        &["--trust", "tool", "call", "RunCommand", "--args", &arguments, "--json", "--yes"],
        world,
        // Points before the first repair step are like those of any other start.
        |effects| effects.iter().position(|effect| effect.contains("commit.json")).unwrap_or(0),
        |project| {
            project.aye(&["tool", "call", "ReadFile", "--args", r#"{"path": "changed1"}"#]).exits(0);
            let kept = kept(project);
            let all = kept.iter().all(|&one| one);
            if !all && kept.iter().any(|&one| one) {
                return Err(format!("kept in part: {kept:?}"));
            }
            let names = fs::read_dir(project.path("")).into_iter().flatten().flatten().map(|entry| entry.file_name());
            let strange: Vec<_> = names.filter(|name| name.to_string_lossy().starts_with('.')).collect();
            if strange.is_empty() { Ok(()) } else { Err(format!("left behind: {strange:?}")) }
        },
    );
}

#[test]
fn an_old_session_continues_after_its_store_is_migrated() {
    let server = Server::new([Answer::text("A new answer.")]);
    let project = Project::with(&server);
    old_store(&project, 1);
    project.aye(&["exec", &format!("--resume={:032x}", 1), "a new question"]).exits(0);
    let told = server.request(0).messages();
    assert!(["an old question", "an old answer", "a new question"].iter().all(|words| told.contains(words)), "{told}");
}
