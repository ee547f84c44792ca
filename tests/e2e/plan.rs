//! Steps, questions and plans: questions and proposals of the model, and the permissions of an approved plan.

use crate::support::{Answer, Gate, Project, Server, TIMEOUT, Terminal, texts, wait_until};
use serde_json::{Value, json};

fn steps(id: &str, steps: &[(&str, &str)]) -> Answer {
    let steps: Vec<Value> = steps.iter().map(|(text, status)| json!({"text": text, "status": status})).collect();
    Answer::call(id, "UpdateSteps", json!({"steps": steps}))
}

fn question(id: &str) -> Answer {
    let options = json!([
        {"label": "SQLite", "description": "one file, no server"},
        {"label": "Postgres", "preview": "DATABASE_URL=postgres://…"},
    ]);
    Answer::call(id, "AskUser", json!({"questions": [{"question": "Which database?", "options": options}]}))
}

fn write(id: &str, path: &str) -> Answer {
    Answer::call(id, "WriteFile", json!({"path": path, "content": "written\n"}))
}

fn plan(id: &str, files: &[&str]) -> Answer {
    let arguments = json!({"plan": "# Add a greeting\n\nWrite it, then check it.", "files": files, "commands": ["touch made"]});
    Answer::call(id, "ProposePlan", arguments)
}

/// Waits until the model's question accepts keys.
fn asked(terminal: &mut Terminal) -> String {
    let opens = |screen: &str| screen.contains("1  SQLite");
    let screen = terminal.wait_that("the model asks", |screen| opens(screen) || screen.contains(texts::TAB_TO_REVIEW));
    if !opens(&screen) {
        terminal.send("\t");
    }
    let screen = terminal.wait_that("the question takes keys", |screen| opens(screen) && !screen.contains('◔'));
    Terminal::react();
    screen
}

/// Waits until the plan can be approved.
fn review(terminal: &mut Terminal) -> String {
    terminal.review("Add a greeting")
}

#[test]
fn steps_are_shown_live_and_again_after_a_kill_and_a_resume() {
    let gate = Gate::default();
    let first = steps("c1", &[("Read the code", "done"), ("Write the parser", "in_progress"), ("Run the tests", "pending")]);
    let server = Server::new([first, Answer::text("Working").and_wait(&gate), Answer::text("Finished the work.")]);
    let project = Project::with(&server);
    let mut terminal = project.open(&[]);
    terminal.prompt("do it");
    terminal.wait_for("1 of 3 steps done: Write the parser");
    // The row of the steps also names the command, so the test waits for the menu.
    terminal.type_text("/steps", 5);
    terminal.wait_for("show the steps that the model planned");
    terminal.enter();
    let screen = terminal.wait_for("Run the tests");
    assert!(screen.contains("in progress") && screen.contains("pending"), "{screen}");
    // The next request follows the record of the steps.
    assert!(wait_until(TIMEOUT, || server.requests().len() == 2));
    terminal.kill();
    gate.open();
    let mut terminal = project.open(&["--resume"]);
    terminal.wait_for("1 of 3 steps done: Write the parser");
}

#[test]
fn exec_reports_steps_as_an_event_and_the_next_task_starts_without_steps() {
    let done = steps("c1", &[("Read", "done"), ("Write", "pending")]);
    let server = Server::new([done, Answer::text("Done."), Answer::text("Again.")]);
    let project = Project::with(&server);
    let told = project.aye(&["exec", "--json", "do it"]).exits(0);
    let events: Vec<Value> = told.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let changed: Vec<&Value> = events.iter().filter(|event| event["eventType"] == "planned_steps_changed").collect();
    assert_eq!(changed.len(), 1, "{}", told.stdout);
    assert_eq!(changed[0]["payload"]["steps"][1], json!({"text": "Write", "status": "pending"}));
    let told = project.aye(&["exec", "-c", "again"]).exits(0);
    assert!(!told.stderr.contains("steps done"), "a new task begins without steps: {}", told.stderr);
}

#[test]
fn a_question_is_answered_with_a_digit_or_with_other_text() {
    let server = Server::new([question("c1"), question("c2"), Answer::text("Finished the work.")]);
    let project = Project::with(&server);
    let mut terminal = project.open(&[]);
    terminal.prompt("set it up");
    let screen = asked(&mut terminal);
    assert!(screen.contains("Which database?") && screen.contains("one file, no server"), "{screen}");
    terminal.decide('2');
    let request = server.request(1);
    assert_eq!(request.tool_results()[0].1, "Which database?\nAnswer: Postgres");
    asked(&mut terminal);
    terminal.send("t");
    terminal.wait_for("enter sends your answer");
    Terminal::react();
    terminal.type_text("DuckDB", 5);
    terminal.wait_for("DuckDB");
    terminal.enter();
    terminal.wait_for("Finished the work.");
    assert!(server.request(2).tool_results().last().unwrap().1.ends_with("Answer: DuckDB"));
}

#[test]
fn escape_declines_a_question_and_the_model_is_informed() {
    let server = Server::new([question("c1"), Answer::text("Finished the work.")]);
    let project = Project::with(&server);
    let mut terminal = project.open(&[]);
    terminal.prompt("set it up");
    asked(&mut terminal);
    Terminal::react();
    terminal.send("\x1b");
    terminal.wait_for("Finished the work.");
    assert!(server.request(1).tool_results()[0].1.contains("the user declined to answer"));
}

#[test]
fn an_open_question_is_asked_again_after_a_kill_and_a_resume() {
    let server = Server::new([question("c1"), Answer::text("Finished the work.")]);
    let project = Project::with(&server);
    let mut terminal = project.open(&[]);
    terminal.prompt("set it up");
    asked(&mut terminal);
    terminal.kill();
    let mut terminal = project.open(&["--resume"]);
    asked(&mut terminal);
    terminal.decide('2');
    terminal.wait_for("Finished the work.");
    let results = server.request(1).tool_results();
    assert!(results.len() == 1 && results[0].1.contains("Answer: Postgres"), "{results:?}");
}

#[test]
fn without_a_user_a_question_is_not_a_denial_and_the_task_continues() {
    let server = Server::new([question("c1"), Answer::text("I chose SQLite.")]);
    let project = Project::with(&server);
    let told = project.aye(&["exec", "set it up"]).exits(0);
    assert!(told.stdout.contains("I chose SQLite."), "{}", told.stdout);
    assert!(server.request(1).tool_results()[0].1.contains("no user can answer here"));
}

#[test]
fn an_approved_plan_allows_its_files_and_nothing_else() {
    let server = Server::new([
        plan("c1", &["greeting.txt", "/", ".git/hooks/pre-commit", "src/*"]),
        write("c2", "greeting.txt").and_call("c3", "RunCommand", json!({"command": "touch made"})),
        write("c4", "other.txt"),
        Answer::text("Finished the work."),
        write("c5", "greeting.txt"),
        Answer::text("Again."),
    ]);
    let project = Project::with(&server);
    let mut terminal = project.open_sized(&["--mode", "plan"], 110, 50);
    terminal.prompt("add a greeting");
    let screen = review(&mut terminal);
    for line in ["Allowed until the task ends", "write greeting.txt", "run touch made", "Still needs approval"] {
        assert!(screen.contains(line), "{line}\n{screen}");
    }
    assert!(screen.contains("write /: ") && screen.contains("the entry is a pattern"), "{screen}");
    assert!(!project.exists("greeting.txt") && !project.exists("made"));
    assert!(screen.contains("commands cannot run in a copy"), "the user has not been asked to trust the project\n{screen}");
    terminal.decide('y');
    terminal.review("touch made");
    assert!(wait_until(TIMEOUT, || project.exists("greeting.txt")), "the plan allows the file");
    assert!(!project.exists("made"), "the plan does not allow the command");
    terminal.decide('n');
    let screen = terminal.review("other.txt");
    assert!(screen.contains("not in the plan"), "{screen}");
    assert!(!project.exists("other.txt"));
    terminal.decide('n');
    terminal.wait_for("Finished the work.");
    assert!(server.request(1).tool_results()[0].1.contains("The user approved the plan"));
    terminal.prompt("once more");
    let screen = terminal.review("greeting.txt");
    assert!(!screen.contains("not in the plan"), "nothing is left of the plan\n{screen}");
}

#[test]
fn a_comment_is_sent_to_the_model_and_the_next_plan_needs_approval() {
    let server =
        Server::new([plan("c1", &["a.txt"]), plan("c2", &["b.txt"]), write("c3", "a.txt"), Answer::text("Finished the work.")]);
    let project = Project::with(&server);
    let mut terminal = project.open_sized(&["--mode", "plan"], 110, 50);
    terminal.prompt("plan it");
    review(&mut terminal);
    Terminal::react();
    terminal.send("c");
    terminal.wait_for("deny because");
    terminal.type_text("use b", 5);
    terminal.wait_for("use b");
    terminal.enter();
    terminal.wait_for("write b.txt");
    let told = server.request(1).tool_results()[0].1.clone();
    assert!(told.contains("use b") && told.contains("propose it again"), "{told}");
    review(&mut terminal);
    terminal.decide('y');
    let screen = terminal.review("a.txt");
    assert!(screen.contains("not in the plan"), "the first plan was never approved\n{screen}");
    assert!(!project.exists("a.txt"));
}

#[test]
fn a_new_proposal_revokes_the_permissions_of_the_first_plan() {
    let both = write("c3", "a.txt");
    let server = Server::new([plan("c1", &["a.txt"]), plan("c2", &["a.txt", "b.txt"]), both, Answer::text("Finished the work.")]);
    let project = Project::with(&server);
    let mut terminal = project.open_sized(&["--mode", "plan"], 110, 50);
    terminal.prompt("plan it");
    review(&mut terminal);
    terminal.decide('y');
    terminal.wait_for("write b.txt");
    review(&mut terminal);
    terminal.decide('n');
    let screen = terminal.review("a.txt");
    assert!(!project.exists("a.txt"), "{screen}");
}

#[test]
fn an_approved_plan_survives_a_kill_until_its_task_ends() {
    let server = Server::new([
        plan("c1", &["a.txt", "b.txt"]),
        write("c2", "other.txt"),
        write("c3", "b.txt"),
        Answer::text("Finished the work."),
    ]);
    let project = Project::with(&server);
    let mut terminal = project.open_sized(&["--mode", "plan"], 110, 50);
    terminal.prompt("plan it");
    review(&mut terminal);
    terminal.decide('y');
    terminal.review("other.txt");
    terminal.kill();
    let mut terminal = project.open_sized(&["--resume"], 110, 50);
    let screen = terminal.review("other.txt");
    assert!(screen.contains("not in the plan"), "{screen}");
    terminal.decide('n');
    terminal.wait_for("Finished the work.");
    assert!(project.exists("b.txt") && !project.exists("other.txt"), "b.txt needed no approval");
}

#[test]
fn a_clean_context_contains_only_the_prompt_and_the_plan() {
    let read = Answer::text("Looking around.").and_call("c1", "ReadFile", json!({"path": "a.txt"}));
    let server = Server::new([read, plan("c2", &["b.txt"]), write("c3", "b.txt"), Answer::text("Finished the work.")]);
    let project = Project::with(&server).file("a.txt", "the old content\n");
    let mut terminal = project.open_sized(&["--mode", "plan"], 110, 50);
    terminal.prompt("plan it");
    review(&mut terminal);
    terminal.decide('f');
    terminal.wait_for("Finished the work.");
    assert!(project.exists("b.txt"));
    assert!(server.request(1).messages().contains("the old content"));
    let messages = server.request(2).messages();
    assert!(!messages.contains("the old content") && messages.contains("Add a greeting"), "{messages}");
    assert!(messages.contains("plan it") && messages.contains("The user approved the plan"), "{messages}");
}

#[test]
fn plan_with_a_goal_switches_to_plan_mode_and_sends_the_goal() {
    let server = Server::new([Answer::text("Hello."), write("c1", "a.txt"), Answer::text("Finished the work.")]);
    let project = Project::with(&server);
    let mut terminal = project.open(&[]);
    terminal.prompt("hi");
    terminal.wait_for("Hello.");
    terminal.prompt("/plan add a file");
    terminal.wait_for("Finished the work.");
    assert!(!project.exists("a.txt"));
    assert!(server.request(1).messages().contains("add a file") && server.request(1).messages().contains("ProposePlan"));
    assert!(server.request(2).tool_results()[0].1.contains("plan mode"));
}

#[test]
fn plan_mode_writes_nothing_before_a_plan_is_approved() {
    let server = Server::new([
        write("c1", "a.txt").and_call("c2", "RunCommand", json!({"command": "touch made"})),
        plan("c3", &["a.txt"]),
        Answer::text("Here is the plan."),
    ]);
    let project = Project::with(&server);
    project.aye(&["exec", "--mode", "plan", "add it"]);
    assert!(!project.exists("a.txt") && !project.exists("made"));
    let results = server.request(1).tool_results();
    assert!(results.iter().all(|(_, text)| text.contains("ProposePlan")), "{results:?}");
    assert!(server.request(2).tool_results().last().unwrap().1.contains("no user can approve"));
}

#[test]
fn a_plan_edited_in_the_prompt_needs_approval_again_with_its_new_effect() {
    let server = Server::new([plan("c1", &["a.txt"]), write("c2", "b.txt"), Answer::text("Finished the work.")]);
    let project = Project::with(&server);
    let mut terminal = project.open_sized(&["--mode", "plan"], 110, 45);
    terminal.prompt("greet");
    let screen = review(&mut terminal);
    assert!(screen.contains("write a.txt") && !screen.contains("b.txt"), "{screen}");
    terminal.send("e");
    let screen = terminal.wait_for("the plan; aye shows what the edited plan allows");
    assert!(screen.contains("a.txt"), "the field has the whole document: {screen}");
    Terminal::react();
    // Escape leaves the editor without a save, so nothing changes.
    terminal.send("\u{1b}");
    let screen = review(&mut terminal);
    assert!(screen.contains("write a.txt"), "{screen}");
    terminal.send("e");
    terminal.wait_for("the plan; aye shows what the edited plan allows");
    Terminal::react();
    terminal.send("Mine. ");
    terminal.wait_for("Mine.");
    terminal.send("\u{13}");
    let screen =
        terminal.wait_that("the edited plan asks again", |screen| screen.contains("Mine.") && screen.contains("clean context"));
    assert!(server.requests().len() == 1, "an edited plan is not approved: {screen}");
    terminal.review("Mine.");
    terminal.decide('y');
    // The plan does not include the write of the other file.
    let screen = terminal.review("b.txt");
    assert!(screen.contains("not in the plan"), "{screen}");
    let told = server.request(1).tool_results()[0].1.clone();
    assert!(told.contains("Mine. # Add a greeting"), "the model gets the edited plan: {told}");
    terminal.kill();
}
