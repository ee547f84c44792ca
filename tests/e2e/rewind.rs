//! `aye rewind`: back to the state before a prompt and forward again, without a model, without git, and without changes
//! to the files of git.

use crate::support::{Answer, Gate, Project, Server, texts};
use serde_json::json;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

fn scripted() -> Server {
    Server::new([
        Answer::call("call_1", "WriteFile", json!({"path": "written.txt", "content": "by a tool\n"})),
        Answer::call(
            "call_2",
            "RunCommand",
            json!({"command": "echo by a command >> run.txt; mkdir -p made; echo new > made/new.txt"}),
        ),
        Answer::text("The first is done."),
        Answer::call("call_3", "WriteFile", json!({"path": "written.txt", "content": "once more\n"})),
        Answer::text("The second is done."),
        Answer::text("I see."),
    ])
}

fn project(server: &Server) -> Project {
    Project::with(server).allowing_everything().file("written.txt", "old\n").file("run.txt", "first\n")
}

fn both(project: &Project) {
    project.aye(&["exec", "do the first"]).exits(0);
    project.aye(&["exec", "-c", "do the second"]).exits(0);
}

#[test]
fn files_and_conversation_are_rewound_and_redone_prompt_by_prompt() {
    let server = scripted();
    let project = project(&server);
    both(&project);
    let plan = project.aye(&["rewind", "--plan", "--json"]).exits(0).json();
    assert_eq!((plan["point"]["number"].as_u64(), plan["point"]["prompt"].as_str()), (Some(2), Some("do the second")), "{plan}");
    assert_eq!(project.read("written.txt"), "once more\n", "a plan does nothing");
    project.aye(&["rewind"]).exits(2).says(&["nothing was rewound", "--yes"]);
    project.aye(&["rewind", "--yes"]).exits(0);
    assert_eq!(project.read("written.txt"), "by a tool\n");
    let done = project.aye(&["rewind", "--yes", "--json"]).exits(0).json();
    assert_eq!(done["prompt"], "do the first", "{done}");
    assert_eq!((project.read("written.txt"), project.read("run.txt")), ("old\n".to_owned(), "first\n".to_owned()));
    assert!(!project.exists("made"), "a directory that the session made and that is empty goes too");
    for wanted in ["by a tool\n", "once more\n"] {
        project.aye(&["rewind", "--redo", "--yes"]).exits(0);
        assert_eq!(project.read("written.txt"), wanted);
    }
    assert_eq!(project.read("made/new.txt"), "new\n");
    project.aye(&["rewind", "--redo", "--yes"]).exits(1).says(&["nothing to redo"]);
    project.aye(&["rewind", "--to", "2", "--yes"]).exits(0);
    project.aye(&["exec", "-c", "and now?"]).exits(0);
    let messages = server.request(5).messages();
    assert!(messages.contains("do the first") && !messages.contains("do the second"), "{messages}");
    project.aye(&["rewind", "--to", "7", "--yes"]).exits(2).says(&["unknown prompt `7`"]);
}

#[test]
fn a_files_only_rewind_informs_the_model_and_keeps_the_conversation() {
    let server = scripted();
    let project = project(&server);
    both(&project);
    project.aye(&["rewind", "--files", "--to", "1", "--yes"]).exits(0);
    assert_eq!(project.read("written.txt"), "old\n");
    project.aye(&["exec", "-c", "and now?"]).exits(0);
    let messages = server.request(5).messages();
    assert!(messages.contains("do the second") && messages.contains("The user restored 3 files"), "{messages}");
}

#[test]
fn files_edited_by_the_user_are_kept_unless_overwrite_is_given() {
    let server = scripted();
    let project = project(&server);
    both(&project);
    fs::write(project.path("written.txt"), "mine\n").unwrap();
    let done = project.aye(&["rewind", "--to", "1", "--yes", "--json"]).exits(0).json();
    assert_eq!(done["kept"][0]["path"], "written.txt", "{done}");
    assert_eq!((project.read("written.txt"), project.read("run.txt")), ("mine\n".to_owned(), "first\n".to_owned()));
    project.aye(&["rewind", "--redo", "--yes"]).exits(0);
    project.aye(&["rewind", "--to", "1", "--overwrite", "--yes"]).exits(0);
    assert_eq!(project.read("written.txt"), "old\n");
    project.aye(&["rewind", "--redo", "--yes"]).exits(0);
    assert_eq!(project.read("written.txt"), "mine\n");
}

fn bytes_below(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(directory).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(bytes_below(&path));
        } else {
            found.insert(path.display().to_string(), fs::read(&path).unwrap());
        }
    }
    found
}

#[test]
fn a_rewind_leaves_the_git_directory_unchanged_byte_for_byte() {
    let git = |project: &Project, arguments: &[&str]| {
        let mut command = std::process::Command::new("git");
        command.args(["-c", "user.name=a", "-c", "user.email=a@b.c"]).args(arguments).current_dir(project.path("."));
        command.env("GIT_CONFIG_GLOBAL", "/dev/null").output().is_ok_and(|output| output.status.success())
    };
    let server = scripted();
    let project = project(&server);
    if !git(&project, &["init", "-q"]) {
        println!("skipped: there is no git here");
        return;
    }
    assert!(git(&project, &["add", "-A"]) && git(&project, &["commit", "-qm", "first"]));
    fs::write(project.path("run.txt"), "stashed\n").unwrap();
    assert!(git(&project, &["stash", "-q"]));
    fs::write(project.path("run.txt"), "staged\n").unwrap();
    assert!(git(&project, &["add", "run.txt"]));
    let before = bytes_below(&project.path(".git"));
    both(&project);
    project.aye(&["rewind", "--to", "1", "--yes"]).exits(0);
    assert_eq!((project.read("written.txt"), project.read("run.txt")), ("old\n".to_owned(), "staged\n".to_owned()));
    assert!(bytes_below(&project.path(".git")) == before, "something in .git is not what it was");
}

#[test]
fn a_session_open_in_another_process_cannot_be_rewound() {
    let gate = Gate::default();
    let server = Server::new([
        Answer::call("call_1", "WriteFile", json!({"path": "written.txt", "content": "by a tool\n"})),
        Answer::text("The first is done."),
        Answer::text("Half of it").and_wait(&gate),
    ]);
    let project = project(&server);
    project.aye(&["exec", "do the first"]).exits(0);
    let holder = project.start(&["exec", "-c", "do the second"]);
    server.request(2);
    for form in [&["rewind", "--plan"][..], &["rewind", "--to", "1", "--yes"], &["rewind", "--redo", "--yes"]] {
        let refused = project.aye(form).exits(2);
        assert!(!refused.stderr.contains("--take-over"), "rewind has no such flag: {}", refused.stderr);
        refused.says(&[texts::BY_PROCESS]);
    }
    assert_eq!(project.read("written.txt"), "by a tool\n");
    gate.open();
    holder.finish().exits(0);
    project.aye(&["rewind", "--to", "1", "--yes"]).exits(0);
    assert_eq!(project.read("written.txt"), "old\n");
}
