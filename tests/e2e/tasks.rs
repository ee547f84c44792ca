//! `aye task` and `aye tasks`: several tasks in parallel, each in its own copy of the workspace.

use crate::support::trace::{Fault, Point, trace};
use crate::support::{Answer, Gate, Project, Server, TIMEOUT, texts, wait_until};
use serde_json::{Value, json};
use std::process::Stdio;

/// Returns a policy with these lines for writes. Commands run without approval.
fn policy(lines: &str) -> String {
    let shell = "[capabilities.\"Shell.Exec\"]\nrequires_approval = false\n";
    format!(
        "schema_version = 1\n[capabilities.\"File.Read\"]\n[capabilities.\"File.Write\"]\n{lines}\n[capabilities.\"File.Delete\"]\n{lines}\n{shell}"
    )
}

const OPEN: &str = "requires_approval = false";
const ASKING: &str = "requires_approval = true";

fn write(id: &str, path: &str, content: &str) -> Answer {
    Answer::call(id, "WriteFile", json!({"path": path, "content": content}))
}

fn edit(id: &str, path: &str, old: &str, new: &str) -> Answer {
    Answer::call(id, "EditFile", json!({"path": path, "edits": [{"oldText": old, "newText": new}]}))
}

fn project(server: &Server) -> Project {
    Project::outside_tmp_with(server).policy(&policy(OPEN)).file("a.txt", "alpha\n").file("b.txt", "beta\n")
}

/// Returns the tasks of a project, latest first.
fn tasks(project: &Project) -> Vec<Value> {
    project.aye(&["tasks", "--json"]).exits(0).json().as_array().unwrap().clone()
}

/// Returns the only task of a project.
fn task(project: &Project) -> Value {
    let mut all = tasks(project);
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

fn id(task: &Value) -> String {
    task["id"].as_str().unwrap()[..8].to_owned()
}

/// Starts a task and waits for its end. Returns its short ID.
fn run(project: &Project, prompt: &str) -> String {
    project.aye(&["task", "start", prompt]).exits(0);
    id(&tasks(project)[0])
}

/// Starts a task in the background. Returns its ID.
fn detach(project: &Project, prompt: &str) -> String {
    project.aye(&["task", "start", "--detach", prompt]).exits(0).stdout.trim().to_owned()
}

fn wait_for_state(project: &Project, id: &str, state: &str) -> Value {
    let find = || tasks(project).into_iter().find(|task| task["id"].as_str().unwrap().starts_with(id));
    let reached = wait_until(TIMEOUT, || find().is_some_and(|task| task["state"] == state));
    let task = find().unwrap_or_default();
    assert!(reached, "{state} is expected: {task}");
    task
}

/// Kills the process of a task with `kill -9`, and waits until the task is listed as interrupted.
fn kill(project: &Project, id: &str) {
    let task = wait_for_state(project, id, "running");
    let pid = task["pid"].as_u64().unwrap().to_string();
    assert!(std::process::Command::new("kill").args(["-9", &pid]).status().unwrap().success());
    wait_for_state(project, id, "interrupted");
}

/// Runs the command that the output of `aye task keep` names to undo it.
pub(crate) fn undo(project: &Project, output: &str) {
    let session = output.split("aye rewind ").nth(1).and_then(|rest| rest.split('`').next()).unwrap_or_default();
    assert_eq!(session.len(), 8, "{output}");
    project.aye(&["rewind", session, "--yes"]).exits(0);
}

#[test]
fn a_task_changes_its_copy_and_keeping_it_changes_the_workspace() {
    let calls = edit("c1", "a.txt", "alpha", "omega").and_call("c2", "WriteFile", json!({"path": "new.txt", "content": "new\n"}));
    let command = Answer::call("c3", "RunCommand", json!({"command": "cat a.txt new.txt && rm b.txt"}));
    let server = Server::new([calls, command, Answer::text("Done.")]);
    let project = project(&server);
    let output = project.aye(&["task", "start", "change things"]).exits(0).says(&["is done", "aye task diff"]);
    assert_eq!(output.stdout.trim(), "Done.");
    let seen = server.request(2).tool_results();
    assert!(seen.iter().any(|(_, text)| text.contains("omega\nnew")), "the command saw the edits: {seen:?}");
    assert_eq!((project.read("a.txt").as_str(), project.read("b.txt").as_str()), ("alpha\n", "beta\n"));
    assert!(!project.exists("new.txt"));
    let listed = task(&project);
    assert_eq!(
        (&listed["state"], &listed["changedFiles"], &listed["prompt"]),
        (&json!("done"), &json!(3), &json!("change things"))
    );
    let id = id(&listed);
    let diff = project.aye(&["task", "diff", &id]).exits(0).stdout;
    assert!(diff.contains("-alpha\n+omega\n") && diff.contains("deleted file mode") && diff.contains("+new\n"), "{diff}");
    // The session of a task is not listed for the workspace.
    assert_eq!(project.aye(&["sessions", "list", "--json"]).exits(0).json(), json!([]));
    project.aye(&["task", "drop", &id]).exits(2).says(&["not applied", "--force"]);
    let kept = project.aye(&["task", "keep", &id]).exits(0);
    assert_eq!((project.read("a.txt").as_str(), project.read("new.txt").as_str()), ("omega\n", "new\n"));
    assert!(!project.exists("b.txt"));
    assert_eq!(task(&project)["changedFiles"], 0);
    project.aye(&["task", "keep", &id]).exits(0);
    // Applied changes are undone like those of a session, which is not the latest one.
    project.aye(&["rewind", "--yes"]).exits(2).says(&["no session in"]);
    undo(&project, &kept.stderr);
    assert_eq!((project.read("a.txt").as_str(), project.read("b.txt").as_str()), ("alpha\n", "beta\n"));
    project.aye(&["task", "drop", "--force", &id]).exits(0);
    assert_eq!(tasks(&project), Vec::<Value>::new());
    let left = std::fs::read_dir(project.directory("data").join("tasks")).unwrap().count();
    assert_eq!(left, 0);
}

#[test]
fn two_tasks_that_change_the_same_file_conflict_and_the_second_is_not_applied() {
    let server = Server::new([
        edit("c1", "a.txt", "alpha", "one").and_call("c2", "WriteFile", json!({"path": "one.txt", "content": "1\n"})),
        Answer::text("Done."),
        edit("c3", "a.txt", "alpha", "two").and_call("c4", "WriteFile", json!({"path": "two.txt", "content": "2\n"})),
        Answer::text("Done."),
    ]);
    let project = project(&server);
    let first = run(&project, "first");
    let second = run(&project, "second");
    // Both tasks saw the current file, so there is no conflict yet.
    assert!(tasks(&project).iter().all(|task| task["conflicts"] == 0));
    project.aye(&["task", "keep", &first]).exits(0);
    assert_eq!(tasks(&project)[0]["conflicts"], 1);
    let diff = project.aye(&["task", "diff", &second]).exits(0).stdout;
    assert!(diff.contains("conflict: a.txt was also changed in the workspace") && diff.contains("two.txt"), "{diff}");
    let said = ["`a.txt` was also changed in the workspace", "the task's version is", "1 file was not applied"];
    let kept = project.aye(&["task", "keep", &second]).exits(1).says(&said);
    // The other file is applied. The conflicting file stays in the task.
    assert_eq!((project.read("a.txt").as_str(), project.read("two.txt").as_str()), ("one\n", "2\n"));
    let version = kept.stderr.split('`').find(|part| part.ends_with("upper/a.txt")).unwrap().to_owned();
    assert_eq!(std::fs::read_to_string(version).unwrap(), "two\n");
    project.aye(&["task", "keep", &second, "a.txt"]).exits(1);
    assert_eq!(project.read("a.txt"), "one\n");
    // The original content is never a conflict, regardless of its modification time.
    std::fs::write(project.path("a.txt"), "alpha\n").unwrap();
    project.aye(&["task", "keep", &second]).exits(0);
    assert_eq!(project.read("a.txt"), "two\n");
}

#[test]
fn a_file_that_changed_before_the_task_saw_it_is_not_a_conflict() {
    let gate = Gate::default();
    let server = Server::new([
        Answer::call("c1", "ReadFile", json!({"path": "b.txt"})).and_wait(&gate),
        edit("c2", "a.txt", "alpha", "omega"),
        Answer::text("Done."),
    ]);
    let project = project(&server);
    let id = detach(&project, "edit");
    server.request(0);
    // The file is changed in place, so the layer shows the new content.
    std::fs::write(project.path("a.txt"), "first\nalpha\n").unwrap();
    gate.open();
    assert_eq!(wait_for_state(&project, &id, "done")["conflicts"], 0);
    project.aye(&["task", "keep", &id]).exits(0);
    assert_eq!(project.read("a.txt"), "first\nomega\n");
}

#[test]
fn a_task_waits_for_an_approval_and_opening_it_shows_the_prompt_again() {
    let server = Server::new([write("c1", "new.txt", "new\n"), Answer::text("All done here.")]);
    let project = project(&server).policy(&policy(ASKING));
    let output = project.aye(&["task", "start", "write"]).exits(3);
    output.says(&["waiting for your approval", "aye task open"]);
    let listed = task(&project);
    assert_eq!(listed["state"], "needs_you", "{listed}");
    let list = project.aye(&["tasks"]).exits(0).stdout;
    assert!(list.contains("needs you") && list.contains("new.txt"), "{list}");
    let id = id(&listed);
    let mut terminal = project.open(&["task", "open", &id]);
    terminal.review("new.txt");
    terminal.decide('y');
    terminal.wait_for("All done here.");
    assert!(terminal.quit().success());
    assert!(!project.exists("new.txt"));
    assert_eq!((&task(&project)["state"], &task(&project)["changedFiles"]), (&json!("done"), &json!(1)));
    project.aye(&["task", "keep", &id]).exits(3).says(&["approval required", "--yes"]);
    project.aye(&["task", "keep", "--yes", &id]).exits(0);
    assert_eq!(project.read("new.txt"), "new\n");
}

#[test]
fn a_killed_task_is_interrupted_and_resumes_with_its_layer() {
    let gate = Gate::default();
    let server = Server::new([
        edit("c1", "a.txt", "alpha", "omega"),
        Answer::text("I wait").and_wait(&gate),
        Answer::call("c2", "RunCommand", json!({"command": "cat a.txt"})),
        Answer::text("Done."),
    ]);
    let project = project(&server);
    let id = detach(&project, "edit");
    server.request(1);
    kill(&project, &id);
    gate.open();
    assert_eq!(project.read("a.txt"), "alpha\n");
    let diff = project.aye(&["task", "diff", &id]).exits(0).stdout;
    assert!(diff.contains("+omega"), "{diff}");
    project.aye(&["task", "resume", &id]).exits(0).says(&["is done"]);
    let seen = server.request(3).tool_results();
    assert!(seen.iter().any(|(_, text)| text.contains("omega")), "{seen:?}");
    project.aye(&["task", "keep", &id]).exits(0);
    assert_eq!(project.read("a.txt"), "omega\n");
    project.aye(&["task", "resume", &id]).exits(2).says(&["has already ended"]);
}

#[test]
fn a_task_killed_during_a_command_never_changes_the_workspace() {
    let server = Server::new([
        Answer::call("c1", "RunCommand", json!({"command": "echo changed > a.txt; touch started; sleep 60"})),
        Answer::text("Done."),
    ]);
    let project = project(&server);
    let id = detach(&project, "run");
    let started = || {
        let diff = project.aye(&["task", "diff", &id]).exits(0).stdout;
        diff.contains("started")
    };
    assert!(wait_until(TIMEOUT, started));
    kill(&project, &id);
    project.aye(&["sessions", "list"]).exits(0);
    assert_eq!((project.read("a.txt").as_str(), project.exists("started")), ("alpha\n", false));
    // The outcome of the command is unknown, so the user decides.
    let resumed = project.aye(&["task", "resume", &id]);
    assert!([0, 3].contains(&resumed.code), "{}", resumed.stderr);
    project.aye(&["task", "drop", "--force", &id]).exits(0);
    assert_eq!(project.read("a.txt"), "alpha\n");
}

#[test]
fn a_running_task_is_stopped_and_resumed() {
    let gate = Gate::default();
    let server = Server::new([write("c1", "new.txt", "new\n"), Answer::text("I wait").and_wait(&gate), Answer::text("Done.")]);
    let project = project(&server);
    let id = detach(&project, "write");
    server.request(1);
    wait_for_state(&project, &id, "running");
    project.aye(&["task", "keep", &id]).exits(2).says(&["is running in process", "aye task stop"]);
    project.aye(&["task", "drop", "--force", &id]).exits(2).says(&["is running"]);
    project.aye(&["task", "stop", &id]).exits(0);
    gate.open();
    assert_eq!(task(&project)["state"], "stopped");
    project.aye(&["task", "stop", &id]).exits(2).says(&["is not running"]);
    project.aye(&["task", "resume", "--detach", &id]).exits(0);
    wait_for_state(&project, &id, "done");
    project.aye(&["task", "keep", &id]).exits(0);
    assert_eq!(project.read("new.txt"), "new\n");
}

#[test]
fn an_attached_task_ends_with_the_process_that_started_it() {
    let gate = Gate::default();
    let server = Server::new([write("c1", "new.txt", "new\n"), Answer::text("I wait").and_wait(&gate)]);
    let project = project(&server);
    let mut command = project.command(&["task", "start", "--until-stdin-closes", "write"]);
    let mut running = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    server.request(1);
    let id = id(&task(&project));
    wait_for_state(&project, &id, "running");
    drop(running.stdin.take());
    wait_for_state(&project, &id, "interrupted");
    running.wait().unwrap();
    gate.open();
}

#[test]
fn hunks_are_chosen_one_at_a_time_and_the_rest_stays_in_the_task() {
    let text = (1..=30).fold(String::new(), |text, number| format!("{text}line {number}\n"));
    let changed = text.replace("line 2\n", "LINE 2\n").replace("line 28\n", "LINE 28\n");
    let server = Server::new([
        write("c1", "long.txt", &changed).and_call("c2", "WriteFile", json!({"path": "new.txt", "content": "new\n"})),
        Answer::text("Done."),
    ]);
    let project = project(&server).file("long.txt", &text);
    let id = run(&project, "write");
    let output = project.aye_with_input(&["task", "keep", "-p", &id], "n\ny\nn\n").exits(0);
    assert!(output.stdout.contains("Apply this hunk") && output.stdout.contains("+LINE 2\n"), "{}", output.stdout);
    assert_eq!(project.read("long.txt"), text.replace("line 28\n", "LINE 28\n"));
    assert!(!project.exists("new.txt"));
    let rest = task(&project);
    assert_eq!((&rest["changedFiles"], &rest["conflicts"]), (&json!(2), &json!(0)), "{rest}");
    project.aye(&["task", "keep", &id, "long.txt"]).exits(0);
    assert_eq!((project.read("long.txt"), project.exists("new.txt")), (changed, false));
    project.aye(&["task", "keep", &id, "other.txt"]).exits(2).says(&["`other.txt` is not among the task's changes"]);
}

/// Returns a project with a completed task that changes two hunks of `long.txt`, creates a file and deletes one, and
/// the ID of the task. `text` is the old text of `long.txt`.
fn with_hunks(server: &Server, text: &str) -> (Project, String) {
    let project = project(server).file("long.txt", text).file("gone.txt", "gone\n");
    let id = run(&project, "write");
    (project, id)
}

fn texts() -> (String, String) {
    let text = (1..=30).fold(String::new(), |text, number| format!("{text}line {number}\n"));
    let changed = text.replace("line 2\n", "LINE 2\n").replace("line 28\n", "LINE 28\n");
    (text, changed)
}

fn changes_with_hunks(changed: &str) -> [Answer; 2] {
    let calls = write("c1", "long.txt", changed).and_call("c2", "Delete", json!({"path": "gone.txt"}));
    [calls.and_call("c3", "WriteFile", json!({"path": "new.txt", "content": "new\n"})), Answer::text("Done.")]
}

#[test]
fn hunks_and_files_are_left_out_in_the_approval_prompt() {
    let (text, changed) = texts();
    let server = Server::new(changes_with_hunks(&changed));
    let (project, id) = with_hunks(&server, &text);
    // The policy allows the changes, and the user still chooses among them.
    let mut terminal = project.open(&["task", "keep", "-p", &id]);
    let screen = terminal.review("Apply a patch to 3 files");
    assert!(screen.contains("gone.txt") && screen.contains("long.txt"), "{screen}");
    // The first hunk is the deleted file, which is excluded. The next hunk is the first one of the text.
    terminal.send(" ");
    terminal.wait_for("apply hunks 2, 3, 4 of 4");
    terminal.send("]");
    terminal.wait_for("hunk 2");
    terminal.send(" ");
    terminal.wait_for("apply hunks 3, 4 of 4");
    terminal.decide('y');
    assert!(terminal.finish().success());
    assert_eq!(project.read("long.txt"), text.replace("line 28\n", "LINE 28\n"));
    assert_eq!((project.read("new.txt").as_str(), project.exists("gone.txt")), ("new\n", true));
    // Excluded changes stay in the task and are not a conflict.
    let rest = task(&project);
    assert_eq!((&rest["changedFiles"], &rest["conflicts"]), (&json!(2), &json!(0)), "{rest}");
    let mut terminal = project.open(&["task", "keep", "--pick", &id]);
    terminal.review("Apply a patch to 2 files");
    terminal.decide('n');
    terminal.finish();
    assert_eq!(project.read("long.txt"), text.replace("line 28\n", "LINE 28\n"));
    let mut terminal = project.open(&["task", "keep", "--pick", &id]);
    terminal.review("Apply a patch to 2 files");
    terminal.decide('y');
    assert!(terminal.finish().success());
    assert_eq!((project.read("long.txt"), project.exists("gone.txt")), (changed, false));
    undo(&project, &terminal.screen());
    assert!(project.exists("gone.txt"));
}

#[test]
fn the_review_has_the_tabs_and_file_keys_of_the_effects_of_a_command() {
    let (text, changed) = texts();
    let server = Server::new(changes_with_hunks(&changed));
    let (project, id) = with_hunks(&server, &text);
    let mut terminal = project.open_sized(&["task", "keep", "-p", &id], 120, 40);
    let screen = terminal.review("Apply a patch to 3 files");
    assert!(screen.contains("☑ gone.txt") && screen.contains("☑ long.txt") && screen.contains("☑ new.txt"), "{screen}");
    assert!(screen.contains("{ } file") && screen.contains("f toggle file"), "{screen}");
    terminal.send("}");
    terminal.wait_for("long.txt ☑ hunk 2");
    terminal.send("f");
    let screen = terminal.wait_for("apply hunks 1, 4 of 4");
    assert!(screen.contains("☐ long.txt"), "{screen}");
    terminal.send("{");
    terminal.wait_until_gone("long.txt ☐ hunk 2");
    terminal.send("f");
    terminal.wait_for("apply hunk 4 of 4");
    terminal.send("f");
    terminal.wait_for("apply hunks 1, 4 of 4");
    terminal.decide('y');
    assert!(terminal.finish().success());
    assert_eq!((project.read("long.txt"), project.exists("gone.txt"), project.read("new.txt").as_str()), (text, false, "new\n"));
}

#[test]
fn an_edited_hunk_is_a_conflict_later_and_is_not_overwritten() {
    let (text, changed) = texts();
    let server = Server::new(changes_with_hunks(&changed));
    let (project, id) = with_hunks(&server, &text);
    let mut terminal = project.open(&["task", "keep", "-p", &id]);
    terminal.review("Apply a patch to 3 files");
    terminal.send("]");
    terminal.review("hunk 2");
    terminal.send("e");
    terminal.wait_for("the text that will be written if you approve");
    terminal.type_text("my ", 5);
    terminal.wait_for("my LINE 2");
    terminal.send("\x13");
    terminal.wait_for("with your edits");
    terminal.review("Apply a patch to 3 files");
    terminal.decide('y');
    assert!(terminal.finish().success());
    let edited = changed.replace("LINE 2\n", "my LINE 2\n");
    assert_eq!((project.read("long.txt"), project.exists("gone.txt")), (edited.clone(), false));
    let rest = task(&project);
    assert_eq!((&rest["changedFiles"], &rest["conflicts"]), (&json!(1), &json!(1)), "{rest}");
    let again = project.aye(&["task", "keep", &id]);
    assert!(again.code != 0 && again.stderr.contains("`long.txt` was also changed in the workspace"), "{}", again.stderr);
    assert_eq!(project.read("long.txt"), edited);
}

#[test]
fn a_review_that_is_closed_applies_nothing() {
    let (text, changed) = texts();
    let server = Server::new(changes_with_hunks(&changed));
    let (project, id) = with_hunks(&server, &text);
    let mut terminal = project.open(&["task", "keep", "-p", &id]);
    terminal.review("Apply a patch to 3 files");
    terminal.send("\x1b");
    terminal.wait_for(crate::support::texts::TAB_TO_REVIEW);
    assert!(!terminal.quit().success());
    assert_eq!((project.read("long.txt"), project.exists("new.txt"), project.exists("gone.txt")), (text, false, true));
    assert_eq!(task(&project)["changedFiles"], 3);
    // Without `-p`, the prompt appears only if the policy requires approval.
    let project = project.policy(&policy(ASKING));
    let mut terminal = project.open(&["task", "keep", &id, "--except", "long.txt"]);
    terminal.review("Apply a patch to 2 files");
    terminal.decide('y');
    assert!(terminal.finish().success());
    assert_eq!((project.read("new.txt").as_str(), project.exists("gone.txt")), ("new\n", false));
}

#[test]
fn the_review_names_conflicts_and_the_result_of_the_check() {
    let server = Server::new([
        edit("c1", "a.txt", "alpha", "omega").and_call("c2", "WriteFile", json!({"path": "new.txt", "content": "new\n"})),
        Answer::text("Done."),
    ]);
    let project = project(&server);
    project.aye(&["task", "start", "--check", "exit 3", "edit"]).exits(0);
    let id = id(&task(&project));
    std::fs::write(project.path("a.txt"), "other\n").unwrap();
    let mut terminal = project.open(&["task", "keep", "-p", &id]);
    let screen = terminal.review("Apply a patch to 1 file");
    assert!(screen.contains("check failed (exit 3)") && screen.contains("conflict: `a.txt`"), "{screen}");
    terminal.decide('y');
    // The conflict is reported, and the conflicting file is unchanged.
    assert!(!terminal.finish().success());
    assert_eq!((project.read("a.txt").as_str(), project.read("new.txt").as_str()), ("other\n", "new\n"));
}

#[test]
fn files_are_chosen_or_excluded_by_their_names() {
    let (text, changed) = texts();
    let server = Server::new(changes_with_hunks(&changed));
    let (project, id) = with_hunks(&server, &text);
    project.aye(&["task", "keep", &id, "--except", "other.txt"]).exits(2).says(&["`other.txt` is not among"]);
    project.aye(&["task", "keep", &id, "--except", "long.txt", "--except", "gone.txt"]).exits(0);
    assert_eq!((project.read("long.txt"), project.exists("gone.txt")), (text, true));
    assert_eq!(project.read("new.txt"), "new\n");
    let nothing = project.aye(&["task", "keep", &id, "--except", "long.txt", "long.txt"]).exits(0);
    assert!(nothing.stdout.contains("no changes to apply"), "{}", nothing.stdout);
    project.aye(&["task", "keep", &id]).exits(0);
    assert_eq!((project.read("long.txt"), project.exists("gone.txt")), (changed, false));
}

#[test]
fn git_is_read_only_in_a_layer() {
    let server = Server::new([
        Answer::call("c1", "RunCommand", json!({"command": "git add a.txt && git commit -qm x"})),
        Answer::text("Done."),
    ]);
    let project = project(&server);
    run(&project, "commit");
    let seen = server.request(1).tool_results();
    assert!(seen.iter().any(|(_, text)| text.contains("`.git` is read-only")), "{seen:?}");
}

#[test]
fn the_check_runs_in_the_copy_and_its_result_is_listed() {
    for (command, result, code) in [("grep -q omega a.txt", "passed", 0), ("exit 3", "failed (exit 3)", 3)] {
        let server = Server::new([edit("c1", "a.txt", "alpha", "omega"), Answer::text("Done.")]);
        let project = project(&server);
        project.aye(&["task", "start", "--check", command, "edit"]).exits(0).says(&[&format!("check {result}")]);
        let listed = task(&project);
        assert_eq!((&listed["state"], &listed["check"]["exitCode"]), (&json!("done"), &json!(code)), "{listed}");
        let diff = project.aye(&["task", "diff", &id(&listed)]).exits(0).stdout;
        assert!(diff.contains(&format!("check {result}: {command}")), "{diff}");
        assert_eq!(project.read("a.txt"), "alpha\n");
        let mut terminal = project.open(&["task", "open", &id(&listed)]);
        let screen = terminal.wait_for("check of the task");
        assert!(!screen.contains("hidden from the model"), "the user did not type it:\n{screen}");
        assert!(terminal.quit().success());
    }
}

#[test]
fn a_task_in_a_trusted_project_uses_its_files_and_does_not_ask_for_trust_again() {
    let server = Server::new([Answer::text("One."), Answer::text("Two."), Answer::text("Three.")]);
    let project = project(&server).file("AGENTS.md", "Be brief.\n");
    let mut terminal = project.open_sized(&[], 100, 30);
    terminal.wait_for(texts::OPEN_READ_ONLY);
    terminal.decide('y');
    terminal.prompt("first");
    terminal.wait_for("One.");
    assert!(terminal.quit().success());
    let id = run(&project, "second");
    assert!(server.request(1).body.to_string().contains("Be brief."), "the instructions apply in the copy");
    let mut terminal = project.open_sized(&["task", "open", &id], 100, 30);
    let screen = terminal.wait_for("Two.");
    assert!(!screen.contains(texts::OPEN_READ_ONLY), "{screen}");
    terminal.prompt("third");
    terminal.wait_for("Three.");
    assert!(terminal.quit().success());
}

#[test]
fn a_task_names_its_copy_and_counts_denied_actions() {
    let server = Server::new([write("c1", "new.txt", "new\n"), Answer::text("Not written.")]);
    let reads_only = "schema_version = 1\n[capabilities.\"File.Read\"]\n";
    let project = project(&server).policy(reads_only);
    let output = project.aye(&["task", "start", "write"]);
    assert!(output.stderr.contains("working in a copy of /"), "{}", output.stderr);
    assert!(output.stderr.contains("is done, 1 denied"), "{}", output.stderr);
    let list = project.aye(&["tasks"]).exits(0).stdout;
    assert!(list.contains("done, 1 denied"), "{list}");
    assert_eq!(task(&project)["denied"], 1);
}

#[test]
fn a_task_that_cannot_start_leaves_nothing_behind() {
    let server = Server::new([]);
    let project = project(&server);
    project.aye(&["task", "start", "-m", "nowhere/x", "--detach", "write"]).exits(1).says(&["did not start", "nowhere"]);
    project.aye(&["task", "start", "-m", "nowhere/x", "write"]).exits(2).says(&["nowhere"]);
    assert_eq!(tasks(&project), Vec::<Value>::new());
    for (arguments, message) in [
        (vec!["task", "start", "  "], "the prompt is empty"),
        (vec!["task", "start", "--add-dir", "/usr", "x"], "--add-dir"),
        (vec!["task", "diff", "123"], "6 hex digits"),
        (vec!["task", "keep", "abcdef"], "no task has an ID"),
        (vec!["task", "open", "abcdef"], "no task has an ID"),
    ] {
        project.aye(&arguments).exits(2).says(&[message]);
    }
}

#[test]
fn nested_aye_processes_cannot_start_or_apply_tasks() {
    let server = Server::new([]);
    let project = project(&server).env("AYE", "1");
    for arguments in [vec!["task", "start", "x"], vec!["task", "keep", "abcdef"], vec!["task", "drop", "abcdef"]] {
        project.aye(&arguments).exits(2).says(&["cannot extend its own permissions"]);
    }
    project.aye(&["tasks"]).exits(0);
}

/// Runs a task that changes a file, creates one and deletes one, in a new project. Returns the project and the ID of
/// the task.
fn done(server: &Server) -> (Project, String) {
    let project = project(server).file("gone.txt", "gone\n");
    let id = run(&project, "edit");
    (project, id)
}

fn three_changes() -> [Answer; 2] {
    let calls = edit("c1", "a.txt", "alpha", "omega").and_call("c2", "WriteFile", json!({"path": "new.txt", "content": "new\n"}));
    [calls.and_call("c3", "Delete", json!({"path": "gone.txt"})), Answer::text("Done.")]
}

/// Paths with their contents before and after the changes; `None` for a missing file.
const STATES: [(&str, Option<&str>, Option<&str>); 3] =
    [("a.txt", Some("alpha\n"), Some("omega\n")), ("new.txt", None, Some("new\n")), ("gone.txt", Some("gone\n"), None)];

fn content(project: &Project, path: &str) -> Option<String> {
    std::fs::read_to_string(project.path(path)).ok()
}

#[test]
fn keeping_changes_killed_at_any_effect_leaves_whole_files_and_a_rerun_completes() {
    let server = Server::new(three_changes());
    let (project, id) = done(&server);
    let keep = |point| trace(project.command(&["task", "keep", &id]), &[project.path("")], point);
    let Ok(traced) = keep(None) else { return };
    assert_eq!(traced.code, 0, "{}", traced.stderr);
    let all = traced.effects.len();
    assert!(all >= STATES.len(), "{:?}", traced.effects);
    for effect in 1..=all {
        for fault in [Fault::KilledBefore, Fault::KilledAfter] {
            // The old content is not a conflict, regardless of who wrote it.
            for (path, old, _) in STATES {
                match old {
                    Some(text) => std::fs::write(project.path(path), text).unwrap(),
                    None => drop(std::fs::remove_file(project.path(path))),
                }
            }
            let killed = keep(Some(Point { effect, fault })).unwrap();
            for (path, old, new) in STATES {
                let now = content(&project, path);
                let is_whole = now.as_deref() == old || now.as_deref() == new;
                assert!(is_whole, "{path} after {:?} of effect {effect}: {now:?}", killed.hit);
            }
            project.aye(&["task", "keep", &id]).exits(0);
            for (path, _, new) in STATES {
                assert_eq!(content(&project, path).as_deref(), new, "{path} after {:?}", killed.hit);
            }
        }
    }
    assert_eq!(task(&project)["changedFiles"], 0);
}

/// Number of points at which a start is killed.
const KILLED_STARTS: usize = 6;

#[test]
fn a_task_killed_during_its_start_leaves_the_workspace_unchanged_and_can_resume() {
    let start = |project: &Project, point| {
        let roots = [project.directory("data").join("tasks"), project.path("")];
        std::fs::create_dir_all(&roots[0]).unwrap();
        trace(project.command(&["task", "start", "edit"]), &roots, point)
    };
    let server = Server::new(three_changes());
    let Ok(traced) = start(&project(&server).file("gone.txt", "gone\n"), None) else { return };
    assert_eq!(traced.code, 0, "{}", traced.stderr);
    let all = traced.effects.len();
    for number in 0..KILLED_STARTS {
        let effect = 1 + number * all / KILLED_STARTS;
        let server = Server::with_responder(|request| {
            let calls = request.tool_results().len();
            let [first, last] = three_changes();
            if calls == 0 { first } else { last }
        });
        let project = project(&server).file("gone.txt", "gone\n");
        let killed = start(&project, Some(Point { effect, fault: Fault::KilledBefore })).unwrap();
        for (path, old, _) in STATES {
            assert_eq!(content(&project, path).as_deref(), old, "{path} after {:?}", killed.hit);
        }
        // A task exists only once its description is complete.
        for task in tasks(&project) {
            let id = id(&task);
            if task["state"] != "done" {
                let resumed = project.aye(&["task", "resume", &id]);
                assert!([0, 3].contains(&resumed.code), "after {:?}: {}", killed.hit, resumed.stderr);
            }
            if project.aye(&["tasks", "--json"]).exits(0).json()[0]["state"] == "done" {
                project.aye(&["task", "keep", &id]).exits(0);
                for (path, _, new) in STATES {
                    assert_eq!(content(&project, path).as_deref(), new, "{path} after {:?}", killed.hit);
                }
            }
            project.aye(&["task", "drop", "--force", &id]).exits(0);
        }
    }
}

/// Runs git in a directory of the project. Returns its output.
fn git(project: &Project, directory: &str, words: &[&str]) -> String {
    let mut git = std::process::Command::new("git");
    git.args(["-c", "user.name=Tester", "-c", "user.email=tester@example.com"]).args(words);
    let output = git.current_dir(project.path(directory)).env("GIT_CONFIG_GLOBAL", "/dev/null").output().unwrap();
    assert!(output.status.success(), "git {words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_worktree_task_commits_on_its_branch_and_is_compared_with_its_first_commit() {
    let commit = "git add -A && git -c user.name=T -c user.email=t@example.com commit -qm 'by the task'";
    let server = Server::new([
        edit("c1", "a.txt", "alpha", "omega"),
        Answer::call("c2", "RunCommand", json!({"command": commit})),
        write("c3", "new.txt", "new\n").and_call("c4", "WriteFile", json!({"path": "b.txt", "content": "mine\n"})),
        Answer::text("Done."),
    ]);
    let project = project(&server);
    git(&project, "", &["init", "-q", "-b", "main"]);
    git(&project, "", &["add", "-A"]);
    git(&project, "", &["commit", "-q", "-m", "one"]);
    project.aye(&["task", "start", "-w", "commit it"]).exits(0);
    let listed = task(&project);
    let branch = listed["branch"].as_str().unwrap().to_owned();
    assert!(branch.starts_with("aye/task-") && listed["changedFiles"] == 3, "{listed}");
    assert_eq!(git(&project, "", &["log", "--format=%s", &branch]), "by the task\none\n");
    assert_eq!((project.read("a.txt").as_str(), project.exists("new.txt")), ("alpha\n", false));
    let id = id(&listed);
    // The workspace has changed this file since then, which is a conflict.
    std::fs::write(project.path("b.txt"), "yours\n").unwrap();
    let diff = project.aye(&["task", "diff", &id]).exits(0).stdout;
    assert!(diff.contains("-alpha\n+omega\n") && diff.contains("conflict: b.txt"), "{diff}");
    project.aye(&["task", "keep", &id]).exits(1).says(&["`b.txt` was also changed"]);
    assert_eq!((project.read("a.txt").as_str(), project.read("new.txt").as_str()), ("omega\n", "new\n"));
    assert_eq!((project.read("b.txt").as_str(), &task(&project)["changedFiles"]), ("yours\n", &json!(1)));
    project.aye(&["task", "drop", "--force", &id]).exits(0).says(&["remains"]);
    assert_eq!(git(&project, "", &["worktree", "list"]).lines().count(), 1);
    assert_eq!(git(&project, "", &["log", "--format=%s", &branch]), "by the task\none\n");
}

#[test]
fn a_worktree_needs_a_repository_with_a_commit() {
    let server = Server::new([]);
    let project = project(&server);
    let start = || project.aye(&["task", "start", "-w", "x"]).exits(2);
    start().says(&["cannot create a git worktree"]);
    git(&project, "", &["init", "-q"]);
    start().says(&["has no commit yet"]);
    assert_eq!(tasks(&project), Vec::<Value>::new());
}

#[test]
fn a_task_waits_for_an_answer_and_opening_it_shows_the_question_again() {
    let questions = json!([{"question": "Which one?", "options": [{"label": "First one"}, {"label": "Second one"}]}]);
    let server = Server::new([Answer::call("c1", "AskUser", json!({"questions": questions})), Answer::text("All done here.")]);
    let project = project(&server);
    project.aye(&["task", "start", "ask"]).exits(3).says(&["aye task open"]);
    let listed = task(&project);
    assert_eq!(listed["state"], "needs_you", "{listed}");
    let mut terminal = project.open(&["task", "open", &id(&listed)]);
    terminal.wait_for("Second one");
    terminal.decide('1');
    terminal.wait_for("All done here.");
    terminal.quit();
}

#[test]
fn only_regular_files_that_are_not_ignored_and_not_huge_are_kept() {
    let line = "echo new > new.txt; ln -s a.txt link; ln -sf b.txt old-link; echo x > build.log; head -c 11000000 /dev/zero > big.bin; \
                mkfifo pipe; chmod +x b.txt";
    let server = Server::new([Answer::call("c1", "RunCommand", json!({"command": line})), Answer::text("Done.")]);
    let project = project(&server).file(".gitignore", "*.log\n");
    std::os::unix::fs::symlink("a.txt", project.path("old-link")).unwrap();
    let id = run(&project, "make things");
    let diff = project.aye(&["task", "diff", &id, "--json"]).exits(0).json();
    let left_out: Vec<&str> = diff["leftOut"].as_array().unwrap().iter().map(|row| row["path"].as_str().unwrap()).collect();
    for path in ["link", "old-link", "build.log", "big.bin", "pipe"] {
        assert!(left_out.contains(&path), "{path}: {left_out:?}");
    }
    project.aye(&["task", "keep", &id]).exits(0);
    assert_eq!(project.read("new.txt"), "new\n");
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(project.path("b.txt")).unwrap().permissions());
    assert_eq!(mode & 0o111, 0o111, "the mode is kept");
    for path in ["link", "build.log", "big.bin", "pipe"] {
        assert!(project.path(path).symlink_metadata().is_err(), "{path}");
    }
    assert_eq!(std::fs::read_link(project.path("old-link")).unwrap().to_str(), Some("a.txt"));
}

/// Runs aye through another program. Returns the exit code and the output, or `None`, with a message, if that program
/// is not installed.
fn aye_under(project: &Project, before: &[&str], arguments: &[&str]) -> Option<(i32, String)> {
    let plain = project.command(arguments);
    let mut command = std::process::Command::new(before[0]);
    command.args(&before[1..]).arg(plain.get_program()).args(plain.get_args());
    command.current_dir(project.path("")).env_clear().envs(project.environment()).stdin(Stdio::null());
    let Ok(output) = command.output() else {
        println!("skipped: there is no {}", before[0]);
        return None;
    };
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    Some((output.status.code().unwrap_or(-1), said))
}

#[test]
fn tasks_also_run_for_an_unprivileged_user() {
    let is_root = std::os::unix::fs::MetadataExt::uid(&std::fs::metadata("/proc/self").unwrap()) == 0;
    if !is_root {
        return println!("skipped: all other tests run as a user who is not root");
    }
    let server = Server::new([write("c1", "new.txt", "new\n"), Answer::text("Done.")]);
    // The project must not be in the build directory, which only its owner can access.
    let project = Project::with(&server).policy(&policy(OPEN)).file("a.txt", "alpha\n");
    let whole = project.path("").parent().unwrap().to_owned();
    let owned = std::process::Command::new("chown").args(["-R", "65534:65534"]).arg(&whole).status();
    if !owned.is_ok_and(|status| status.success()) {
        return println!("skipped: the files cannot be given to another user");
    }
    let nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
    let Some((code, said)) = aye_under(&project, &nobody, &["task", "start", "make a file"]) else { return };
    if said.contains("cannot cover the workspace") || said.contains("Permission denied") && code == 126 {
        return println!("skipped: {said}");
    }
    assert_eq!(code, 0, "{said}");
    assert!(!project.exists("new.txt"));
    let (_, listed) = aye_under(&project, &nobody, &["tasks", "--json"]).unwrap();
    let listed: Value = serde_json::from_str(&listed).unwrap();
    assert_eq!((&listed[0]["state"], &listed[0]["changedFiles"]), (&json!("done"), &json!(1)));
    let (code, said) = aye_under(&project, &nobody, &["task", "keep", &id(&listed[0])]).unwrap();
    assert_eq!((code, project.read("new.txt").as_str()), (0, "new\n"), "{said}");
    let owner = std::os::unix::fs::MetadataExt::uid(&std::fs::metadata(project.path("new.txt")).unwrap());
    assert_eq!(owner, 65534);
}

#[test]
fn a_task_that_cannot_have_a_layer_names_the_alternative_and_a_worktree_needs_none() {
    let server = Server::new([write("c1", "new.txt", "new\n"), Answer::text("Done.")]);
    let project = project(&server);
    for words in [&["init", "-q", "-b", "main"][..], &["add", "-A"], &["commit", "-q", "-m", "one"]] {
        git(&project, "", words);
    }
    // A user without a name in the namespace may not create another namespace.
    let bare = ["unshare", "--user"];
    let Some((code, said)) = aye_under(&project, &bare, &["task", "start", "make a file"]) else { return };
    if said.contains("unshare failed") {
        return println!("skipped: {said}");
    }
    assert_ne!(code, 0, "{said}");
    for words in ["cannot cover the workspace with a copy-on-write layer", "aye doctor", "--worktree"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    assert!(server.requests().is_empty() && !project.exists("new.txt"));
    let (code, said) = aye_under(&project, &bare, &["task", "start", "--trust", "--worktree", "make a file"]).unwrap();
    assert_eq!(code, 0, "{said}");
    assert!(!project.exists("new.txt"));
    let made = tasks(&project).into_iter().find(|task| task["state"] == "done").unwrap();
    project.aye(&["task", "keep", &id(&made)]).exits(0);
    assert_eq!(project.read("new.txt"), "new\n");
}
