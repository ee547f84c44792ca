//! `aye acp` with files that are open in an editor: unsaved text is read and never overwritten, and the editor receives
//! all writes. If the editor does not respond, the files on disk are used.

use crate::support::{Answer, Editor, Project, Server, texts};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;

const MODEL: [&str; 2] = ["-m", "anthropic/scripted"];
const DISK: &str = "one\ntwo\nthree\n";
const UNSAVED: &str = "the editor has unsaved changes in `a.txt`";

const ALSO_DELETES: &str = r#"
schema_version = 1
bundle_version = "test"

[capabilities."File.Read"]
allowed_paths = ["${workspace}"]

[capabilities."File.Write"]
allowed_paths = ["${workspace}"]
requires_approval = false

[capabilities."File.Delete"]
allowed_paths = ["${workspace}"]
requires_approval = false
"#;

/// Contents of an editor's buffers. Like a real editor, it reads other files from disk and saves the text that it
/// receives.
#[derive(Clone, Default)]
struct Open(Rc<RefCell<HashMap<PathBuf, String>>>);

impl Open {
    fn types(&self, path: PathBuf, text: &str) {
        self.0.borrow_mut().insert(path, text.to_owned());
    }

    fn has(&self, path: &Path) -> Option<String> {
        self.0.borrow().get(path).cloned()
    }

    fn saves(&self, path: &Path) {
        fs::write(path, self.has(path).unwrap()).unwrap();
    }

    fn says(&self, message: &Value) -> Value {
        let path = PathBuf::from(message["params"]["path"].as_str().unwrap());
        if message["method"] == "fs/read_text_file" {
            let text = self.has(&path).or_else(|| fs::read_to_string(&path).ok());
            return text.map_or_else(
                || json!({"error": {"code": -32002, "message": "there is no such file"}}),
                |text| json!({"result": {"content": text}}),
            );
        }
        let text = message["params"]["content"].as_str().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), text, "the disk has it before the editor is told");
        self.types(path.clone(), text);
        self.saves(&path);
        json!({"result": {}})
    }
}

fn can() -> Value {
    json!({"fs": {"readTextFile": true, "writeTextFile": true}})
}

fn project(server: &Server) -> Project {
    Project::with(server).allowing_everything().file("a.txt", DISK)
}

/// Starts an editor with these buffers, and a session. Returns the editor and the session ID.
fn editor_with(project: &Project, open: &Open) -> (Editor, String) {
    let mut editor = Editor::start_with(project, &MODEL, &can());
    let own = open.clone();
    editor.says_of_files(move |message| Some(own.says(message)));
    let session = editor.new_session(&project.path(""));
    (editor, session)
}

fn read(id: &str) -> Answer {
    Answer::call(id, "ReadFile", json!({"path": "a.txt"}))
}

fn edit(id: &str, old: &str, new: &str) -> Answer {
    Answer::call(id, "EditFile", json!({"path": "a.txt", "edits": [{"oldText": old, "newText": new}]}))
}

fn written(editor: &Editor) -> Vec<&Value> {
    editor.of_files.iter().filter(|asked| asked["method"] == "fs/write_text_file").map(|asked| &asked["params"]).collect()
}

#[test]
fn the_model_reads_unsaved_editor_content_with_a_notice() {
    let inspect = json!({"path": "a.txt", "query": "typed"});
    let server = Server::new([read("1").and_call("2", "TextInspect", inspect), Answer::text("I see.")]);
    let project = project(&server);
    let open = Open::default();
    open.types(project.path("a.txt"), "one\ntyped\nthree\n");
    let (mut editor, session) = editor_with(&project, &open);
    assert_eq!(editor.prompt(&session, "read it"), "end_turn");
    for (_, result) in server.request(1).tool_results() {
        assert!(result.contains("typed") && result.contains(texts::UNSAVED_CHANGES), "{result}");
        assert!(!result.contains("two"), "{result}");
    }
    assert_eq!(project.read("a.txt"), DISK);
}

#[test]
fn line_endings_and_a_bom_do_not_count_as_unsaved_changes() {
    let server = Server::new([read("1"), edit("2", "two", "TWO"), Answer::text("Done.")]);
    let project = project(&server).file("a.txt", "\u{FEFF}one\r\ntwo\r\nthree\r\n");
    let open = Open::default();
    open.types(project.path("a.txt"), "one\ntwo\nthree");
    let (mut editor, session) = editor_with(&project, &open);
    assert_eq!(editor.prompt(&session, "edit it"), "end_turn");
    assert!(!server.request(1).tool_results()[0].1.contains(texts::UNSAVED_CHANGES));
    editor.wait_for(|editor| !written(editor).is_empty());
    assert_eq!(project.read("a.txt"), "\u{FEFF}one\r\nTWO\r\nthree\r\n");
}

#[test]
fn tools_do_not_overwrite_unsaved_files_and_can_change_them_once_saved() {
    let patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n-two\n+2\n*** End Patch\n";
    let all = edit("1", "two", "TWO")
        .and_call("2", "WriteFile", json!({"path": "a.txt", "content": "new\n"}))
        .and_call("3", "AppendFile", json!({"path": "a.txt", "content": "four\n"}))
        .and_call("4", "ApplyPatch", json!({"patch": patch}))
        .and_call("5", "TextPatch", json!({"path": "a.txt", "operations": [{"operation": "delete", "startLine": 1}]}))
        .and_call("6", "Move", json!({"source": "a.txt", "destination": "b.txt"}))
        .and_call("7", "Delete", json!({"path": "a.txt"}))
        .and_call("8", "EditFile", json!({"path": "a.txt", "edits": [{"oldText": "typed", "newText": "TYPED"}]}));
    let server = Server::new([all, Answer::text("I ask."), edit("9", "typed", "TYPED"), Answer::text("Done.")]);
    let project = project(&server).policy(ALSO_DELETES);
    let open = Open::default();
    let path = project.path("a.txt");
    open.types(path.clone(), "one\ntyped\nthree\n");
    let (mut editor, session) = editor_with(&project, &open);
    editor.answers_with("allow_once");
    assert_eq!(editor.prompt(&session, "change it"), "end_turn");
    let results = server.request(1).tool_results();
    assert_eq!(results.len(), 8);
    for (id, result) in results {
        assert!(result.contains(UNSAVED) && result.contains("save or discard"), "{id}: {result}");
    }
    assert_eq!((project.read("a.txt").as_str(), project.exists("b.txt")), (DISK, false));
    assert_eq!(open.has(&path).unwrap(), "one\ntyped\nthree\n");
    assert!(written(&editor).is_empty() && editor.questions.is_empty());
    open.saves(&path);
    assert_eq!(editor.prompt(&session, "now"), "end_turn");
    assert_eq!(project.read("a.txt"), "one\nTYPED\nthree\n", "{:?}", server.request(3).tool_results());
}

#[test]
fn text_typed_during_an_approval_is_not_overwritten() {
    let server = Server::new([edit("1", "two", "TWO"), Answer::text("I ask.")]);
    let project = Project::with(&server).file("a.txt", DISK);
    let open = Open::default();
    let path = project.path("a.txt");
    open.types(path.clone(), DISK);
    let (mut editor, session) = editor_with(&project, &open);
    let prompt = editor.ask_prompt(&session, "edit it");
    editor.wait_for(|editor| !editor.questions.is_empty());
    open.types(path, "one\ntwo\ntyped\n");
    editor.decide(0, json!({"outcome": "selected", "optionId": "allow"}));
    assert_eq!(editor.answer(prompt).unwrap()["stopReason"], "end_turn");
    assert!(server.request(1).tool_results()[0].1.contains(UNSAVED));
    assert_eq!((project.read("a.txt").as_str(), written(&editor).len()), (DISK, 0));
}

#[test]
fn written_and_undone_changes_are_sent_to_the_editor() {
    let twice = edit("1", "two", "TWO").and_call(
        "2",
        "EditFile",
        json!({"path": "a.txt", "edits": [{"oldText": "three", "newText": "THREE"}]}),
    );
    let server = Server::new([twice, edit("3", "one", "ONE"), Answer::text("Done.")]);
    let project = project(&server);
    let open = Open::default();
    let path = project.path("a.txt");
    open.types(path.clone(), DISK);
    let (mut editor, session) = editor_with(&project, &open);
    editor.answers_with("allow_once");
    assert_eq!(editor.prompt(&session, "edit it"), "end_turn");
    let done = "ONE\nTWO\nTHREE\n";
    assert_eq!(project.read("a.txt"), done);
    let followed = open.clone();
    editor.wait_for(|_| followed.has(&path).as_deref() == Some(done));
    assert_eq!(written(&editor).last().unwrap()["sessionId"], json!(session));
    assert_eq!(editor.prompt(&session, "/undo"), "end_turn");
    assert_eq!(project.read("a.txt"), DISK, "{}", editor.text(None));
    editor.wait_for(|_| followed.has(&path).as_deref() == Some(DISK));
}

#[test]
fn invalid_editor_responses_fall_back_to_the_disk() {
    let server = Server::new([]);
    let project = project(&server);
    let huge = "x".repeat(5 << 20);
    for says in [
        json!({"error": {"code": -32603, "message": "no \u{1b}[2Jbuffers today"}}),
        json!({"result": {"content": 7}}),
        json!({"result": null}),
        json!({"result": {"content": "a\u{0}b"}}),
        json!({"result": {"content": huge}}),
    ] {
        fs::write(project.path("a.txt"), DISK).unwrap();
        let before = server.requests().len();
        for answer in [read("1"), edit("2", "two", "TWO"), Answer::text("Done.")] {
            server.push(answer);
        }
        let mut editor = Editor::start_with(&project, &MODEL, &can());
        let answer = says.clone();
        editor.says_of_files(move |_| Some(answer.clone()));
        let session = editor.new_session(&project.path(""));
        assert_eq!(editor.prompt(&session, "edit it"), "end_turn");
        let shown = &server.request(before + 1).tool_results()[0].1;
        assert!(shown.contains("two") && !shown.contains(texts::UNSAVED_CHANGES), "{shown}");
        assert_eq!(project.read("a.txt"), "one\nTWO\nthree\n");
        assert!(!editor.of_files.is_empty() && written(&editor).is_empty());
    }
}

#[test]
fn a_hanging_editor_is_queried_once_per_prompt_and_the_disk_is_used() {
    let script = || [read("1"), edit("2", "two", "TWO"), Answer::text("Done.")];
    let server = Server::new(script());
    let project = project(&server);
    let mut editor = Editor::start_with(&project, &MODEL, &can());
    editor.says_of_files(|_| None);
    let session = editor.new_session(&project.path(""));
    assert_eq!(editor.prompt(&session, "edit it"), "end_turn");
    assert_eq!((project.read("a.txt").as_str(), editor.of_files.len()), ("one\nTWO\nthree\n", 1));
    fs::write(project.path("a.txt"), DISK).unwrap();
    for answer in script() {
        server.push(answer);
    }
    assert_eq!(editor.prompt(&session, "again"), "end_turn");
    assert_eq!((project.read("a.txt").as_str(), editor.of_files.len()), ("one\nTWO\nthree\n", 2));
}

#[test]
fn cancelling_a_prompt_ends_the_wait_for_the_editor() {
    let server = Server::new([read("1")]);
    let project = project(&server);
    let mut editor = Editor::start_with(&project, &MODEL, &can());
    editor.says_of_files(|_| None);
    let session = editor.new_session(&project.path(""));
    let prompt = editor.ask_prompt(&session, "read it");
    editor.wait_for(|editor| !editor.of_files.is_empty());
    editor.notify("session/cancel", json!({"sessionId": session}));
    assert_eq!(editor.answer(prompt).unwrap()["stopReason"], "cancelled");
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn an_editor_that_cannot_read_files_gets_no_file_requests() {
    let server = Server::new([read("1"), edit("2", "two", "TWO"), Answer::text("Done.")]);
    let project = project(&server);
    // Any file request to the editor fails the test.
    let mut editor = Editor::start_with(&project, &MODEL, &json!({"fs": {"writeTextFile": true}}));
    let session = editor.new_session(&project.path(""));
    assert_eq!(editor.prompt(&session, "edit it"), "end_turn");
    assert_eq!(project.read("a.txt"), "one\nTWO\nthree\n");
}

#[test]
fn the_editor_is_not_queried_for_denied_files_images_or_outside_files() {
    let policy = "schema_version = 1\nbundle_version = \"test\"\n\n[capabilities.\"File.Read\"]\nblocked_paths = [\"**/secret.txt\"]\n\n\
                  [capabilities.\"File.Write\"]\nblocked_paths = [\"**/secret.txt\", \"**/locked.txt\"]\nrequires_approval = false\n";
    let elsewhere = Project::empty().file("other.txt", "elsewhere\n");
    let change = |path: &str| json!({"path": path, "edits": [{"oldText": "x", "newText": "y"}]});
    let calls = Answer::call("1", "ReadFile", json!({"path": "secret.txt"}))
        .and_call("2", "EditFile", change("secret.txt"))
        .and_call("3", "EditFile", change("locked.txt"))
        .and_call("4", "ReadFile", json!({"path": "a.bin"}))
        .and_call("5", "ReadFile", json!({"path": elsewhere.path("other.txt")}))
        .and_call("6", "ReadFile", json!({"path": "a.txt"}));
    let server = Server::new([calls, Answer::text("I see.")]);
    let project = Project::with(&server).policy(policy).file("a.txt", DISK).file("secret.txt", "x\n").file("locked.txt", "x\n");
    let project = project.bytes("a.bin", b"\x7fELF\0\x01\x02");
    let open = Open::default();
    for name in ["secret.txt", "locked.txt", "a.bin"] {
        open.types(project.path(name), "typed\n");
    }
    open.types(elsewhere.path("other.txt"), "typed\n");
    let (mut editor, session) = editor_with(&project, &open);
    editor.answers_with("allow_once");
    assert_eq!(editor.prompt(&session, "look"), "end_turn");
    let asked: Vec<_> = editor.of_files.iter().map(|asked| asked["params"]["path"].clone()).collect();
    assert_eq!(asked, [json!(project.path("a.txt"))]);
    let results = server.request(1).tool_results();
    assert!(results.iter().all(|(_, result)| !result.contains("typed") && !result.contains("unsaved")), "{results:?}");
}
