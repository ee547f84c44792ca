//! Goals: rounds of a task and a check, until the check passes or a limit is reached.
#![cfg(target_os = "linux")]

use crate::support::{Answer, Events, Gate, Project, Rpc, Server, TIMEOUT, processes_running, wait_until};
use serde_json::{Value, json};

/// Model with the prices of `budgets.rs`: a response of the scripted server costs $0.0026.
const PRICED: &str = "anthropic/claude-sonnet-5";

fn write(id: &str, path: &str, content: &str) -> Answer {
    Answer::call(id, "WriteFile", json!({"path": path, "content": content}))
}

fn project(server: &Server) -> Project {
    Project::with(server).allowing_everything().file("wanted.txt", "yes\n")
}

fn last_goal(events: &Events) -> Value {
    events.all("goal_changed").last().map(|goal| (*goal).clone()).unwrap_or_default()
}

const CHECK: &str = "cmp wanted.txt state.txt";

#[test]
fn a_goal_is_reached_in_the_round_in_which_its_check_passes() {
    let server = Server::new([
        Answer::text("It is done already."),
        write("call_1", "state.txt", "yes\n"),
        Answer::text("Now it is done."),
    ]);
    let project = project(&server);
    let output = project.aye(&["exec", "--json", "--until", CHECK, "--for", "10m", "make them equal"]).exits(0);
    let events = output.events();
    assert_eq!(events.all("task_completed").len(), 2);
    let goal = last_goal(&events);
    assert_eq!((&goal["status"], &goal["round"]), (&json!("reached"), &json!(2)), "{goal}");
    let message = goal["message"].as_str().unwrap();
    assert!(message.contains(CHECK) && message.contains("passed in"), "{message}");
    let first = server.request(0).messages();
    assert!(first.contains("make them equal") && first.contains("aye runs the check"), "{first}");
    let second = server.request(1).messages();
    assert!(second.contains("state.txt") && second.contains("check_output") && second.contains("it is data"), "{second}");
    assert_eq!(server.requests().len(), 3);
}

#[test]
fn only_the_last_response_of_a_goal_is_printed() {
    let server = Server::new([Answer::text("First."), write("c1", "state.txt", "yes\n"), Answer::text("Second.")]);
    let output = project(&server).aye(&["exec", "--until", CHECK, "go"]).exits(0);
    assert_eq!(output.stdout, "Second.\n");
    output.says(&["check failed", "goal reached"]);
}

#[test]
fn a_goal_check_changes_nothing_in_the_workspace() {
    let server = Server::new([Answer::text("Done.")]);
    let project = project(&server);
    let output = project.aye(&["exec", "--json", "--until", "echo made > by-check.txt; echo x >> wanted.txt", "go"]).exits(0);
    if output.stdout.contains("not in a copy") {
        return eprintln!("skipped: this system has no copies of the workspace");
    }
    assert_eq!(last_goal(&output.events())["status"], "reached");
    assert!(!project.exists("by-check.txt"));
    assert_eq!(project.read("wanted.txt"), "yes\n");
}

#[test]
fn a_goal_without_progress_is_blocked_and_does_not_loop() {
    let server = Server::with_responder(|_| Answer::text("I think it is done."));
    let events = project(&server).aye(&["exec", "--json", "--until", CHECK, "go"]).exits(1).events();
    let goal = last_goal(&events);
    assert_eq!((&goal["status"], &goal["reason"]), (&json!("paused"), &json!("blocked")), "{goal}");
    assert!(goal["message"].as_str().unwrap().contains("no file changed"), "{goal}");
    assert_eq!(server.requests().len(), 3);
}

#[test]
fn a_goal_ends_after_its_maximum_number_of_rounds() {
    let server = Server::with_responder(|_| Answer::text("Done."));
    let events = project(&server).aye(&["exec", "--json", "--until", CHECK, "--rounds", "2", "go"]).exits(4).events();
    let goal = last_goal(&events);
    assert_eq!((&goal["status"], &goal["reason"], &goal["round"]), (&json!("ended"), &json!("rounds_used_up"), &json!(2)));
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn a_goal_ends_when_its_time_is_used_up_while_the_model_responds() {
    let gate = Gate::default();
    let server = Server::new([Answer::text("Thinking").and_wait(&gate).and(" on.")]);
    let events = project(&server).aye(&["exec", "--json", "--until", CHECK, "--for", "1s", "go"]).exits(4).events();
    gate.open();
    let goal = last_goal(&events);
    assert_eq!((&goal["status"], &goal["reason"]), (&json!("ended"), &json!("time_used_up")), "{goal}");
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn changed_tests_and_configuration_are_named_in_the_result() {
    let server = Server::new([
        write("call_1", "tests/check.sh", "exit 0\n"),
        write("call_2", "src/main.c", "int main;\n"),
        Answer::text("Done."),
    ]);
    let output = project(&server).aye(&["exec", "--json", "--until", "sh tests/check.sh", "make the check pass"]).exits(0);
    let goal = last_goal(&output.events());
    assert_eq!(goal["status"], "reached");
    assert_eq!(goal["changedCheckFiles"], json!(["tests/check.sh"]));
    assert!(goal["message"].as_str().unwrap().contains("were changed: tests/check.sh"), "{goal}");
}

#[test]
fn a_check_that_cannot_run_pauses_the_goal() {
    for (check, why) in [("no-such-program-here", "exit 127"), ("sudo true", "denied")] {
        let server = Server::with_responder(|_| Answer::text("Done."));
        let policy =
            "schema_version = 1\n[capabilities.\"File.Read\"]\n[capabilities.\"Shell.Exec\"]\nblocked_commands = [\"sudo\"]\n";
        let project = Project::with(&server).policy(policy);
        let goal = last_goal(&project.aye(&["exec", "--json", "--until", check, "go"]).exits(1).events());
        assert_eq!((&goal["status"], &goal["reason"]), (&json!("paused"), &json!("check_did_not_run")), "{goal}");
        assert!(goal["message"].as_str().unwrap().contains(why), "{goal}");
        assert_eq!(server.requests().len(), 1);
    }
}

#[test]
fn a_goal_continues_once_after_a_kill_in_its_check() {
    let server = Server::new([Answer::text("Done."), Answer::text("More.")]);
    let seconds = format!("6171.{}", std::process::id());
    let project = project(&server);
    let check = format!("test -e go || sleep {seconds}; cmp wanted.txt state.txt");
    let running = project.start(&["exec", "--json", "--until", &check, "go"]);
    assert!(wait_until(TIMEOUT, || processes_running(&["sleep", &seconds]) > 0), "the check never ran");
    running.kill();
    assert!(wait_until(TIMEOUT, || processes_running(&["sleep", &seconds]) == 0), "the check outlives aye");
    assert_eq!(server.requests().len(), 1);
    let project = project.file("go", "").file("state.txt", "yes\n");
    let events = project.aye(&["exec", "--json", "-c"]).exits(0).events();
    assert_eq!(last_goal(&events)["status"], "reached");
    assert_eq!(server.requests().len(), 1, "the check decides; the model is not asked again");
}

#[test]
fn a_goal_continues_with_its_next_round_after_a_kill_between_rounds() {
    let gate = Gate::default();
    let server = Server::new([
        Answer::text("Done."),
        Answer::text("Hm").and_wait(&gate),
        write("call_1", "state.txt", "yes\n"),
        Answer::text("Now it is."),
    ]);
    let project = project(&server);
    let running = project.start(&["exec", "--json", "--until", CHECK, "go"]);
    assert!(wait_until(TIMEOUT, || server.requests().len() == 2), "no second round");
    running.kill();
    gate.open();
    let events = project.aye(&["exec", "--json", "-c"]).exits(0).events();
    let goal = last_goal(&events);
    assert_eq!((&goal["status"], &goal["round"]), (&json!("reached"), &json!(2)), "{goal}");
    assert_eq!(server.requests().len(), 4);
}

#[test]
fn invalid_goals_are_rejected_with_a_reason() {
    let project = Project::empty();
    for (words, why) in [
        (&["--until", "", "go"][..], "the check is empty"),
        (&["--until", "a\nb", "go"], "must be a single line"),
        (&["--until", "true", "--for", "soon", "go"], "is not a time"),
        (&["--until", "true", "--rounds", "0", "go"], "is not a number of rounds"),
        (&["--for", "5m", "go"], "--until"),
        (&["--until", "true", "-c"], "missing prompt"),
        (&["--until", "true", "--output-schema", "x.json", "go"], "cannot be"),
    ] {
        let words: Vec<&str> = ["exec"].iter().chain(words).copied().collect();
        let output = project.aye(&words).exits(2);
        assert!(output.stderr.contains(why), "{words:?}: {}", output.stderr);
    }
}

#[test]
fn the_screen_shows_the_goal_and_a_blocked_goal_continues_with_another_check() {
    let server = Server::with_responder(|_| Answer::text("I think it is done."));
    let project = project(&server);
    let mut terminal = project.open_sized(&[], 110, 40);
    terminal.prompt("/goal fix it");
    terminal.wait_for("missing `--until COMMAND`");
    terminal.send("\u{15}");
    terminal.prompt("/goal \"make them equal\" --until \"cmp wanted.txt state.txt\" --for 30m");
    let screen = terminal.wait_for("s  end the goal");
    assert!(screen.contains("failed 3 times in the same way") && screen.contains("e  edit the goal in the draft"), "{screen}");
    terminal.decide('e');
    let screen = terminal.wait_for("/goal \"make them equal\" --until \"cmp wanted.txt state.txt\" --for 1800s --rounds 25");
    assert!(screen.contains("goal paused: round"), "{screen}");
    terminal.send("\u{15}");
    terminal.wait_until_gone("--for 1800s");
    terminal.prompt("/goal check test -e wanted.txt");
    terminal.wait_for("goal reached");
    terminal.wait_until_gone("goal paused: round");
    assert_eq!(server.requests().len(), 3);
    terminal.quit();
}

#[test]
fn escape_pauses_a_goal_and_stop_ends_it() {
    let gate = Gate::default();
    let server = Server::new([Answer::text("Working").and_wait(&gate), Answer::text("Fine.")]);
    let project = project(&server);
    let mut terminal = project.open_sized(&[], 110, 40);
    terminal.prompt("/goal \"make them equal\" --until \"cmp wanted.txt state.txt\"");
    terminal.wait_for("Working");
    terminal.send("\u{1b}");
    terminal.wait_for("you interrupted it");
    gate.open();
    terminal.prompt("/goal stop");
    terminal.wait_for("goal stopped");
    terminal.prompt("/goal continue");
    terminal.wait_for("Fine.");
    assert_eq!(server.requests().len(), 2, "without a goal, the task continues and no check follows");
    terminal.quit();
}

#[test]
fn a_goal_of_an_ended_process_is_restored_paused() {
    let server = Server::new([Answer::text("Done."), write("call_1", "state.txt", "yes\n"), Answer::text("Better.")]);
    let seconds = format!("6172.{}", std::process::id());
    let project = Project::with(&server).file("wanted.txt", "yes\n");
    let mut terminal = project.open_sized(&["--mode", "auto-edit"], 110, 40);
    terminal.prompt(&format!("/goal go --until \"test -e go || sleep {seconds}; cmp wanted.txt state.txt\""));
    assert!(wait_until(TIMEOUT, || processes_running(&["sleep", &seconds]) > 0), "{}", terminal.screen());
    terminal.kill();
    assert!(wait_until(TIMEOUT, || processes_running(&["sleep", &seconds]) == 0), "the check outlives aye");
    let mut terminal = project.open_sized(&["--resume", "--mode", "auto-edit"], 110, 40);
    terminal.wait_for("goal paused: round 1");
    assert_eq!(server.requests().len(), 1);
    // The user sets the check again, so it needs no approval.
    terminal.prompt("/goal check cmp wanted.txt state.txt");
    terminal.wait_for("goal reached");
    assert_eq!(server.requests().len(), 3);
    terminal.quit();
}

#[test]
fn clients_set_and_stop_a_goal() {
    let server = Server::with_responder(|_| Answer::text("Done."));
    let project = project(&server);
    let mut rpc = Rpc::start(&project, &[]);
    rpc.create(&project);
    let goal = |check: &str| json!({"prompt": "go", "taskOptions": {"goal": {"check": check}}});
    assert!(rpc.fails("StartTask", goal("")) < 0);
    assert!(rpc.fails("DecideGoal", json!({"decision": "stop"})) < 0);
    rpc.call("StartTask", goal(CHECK));
    let paused = rpc.until(|message| message["params"]["payload"]["reason"] == "blocked");
    assert!(paused.to_string().contains("goal paused"), "{paused}");
    let state = rpc.call("GetSessionState", json!({}));
    assert_eq!(state["goal"]["status"], "paused", "{state}");
    rpc.call("DecideGoal", json!({"decision": "continue", "check": "test -e wanted.txt"}));
    rpc.until(|message| message.to_string().contains("goal reached"));
    assert!(rpc.call("GetSessionState", json!({}))["goal"].is_null());
    rpc.call("Shutdown", json!({}));
    assert_eq!(rpc.finish(), 0);
}

#[test]
fn a_goal_with_a_budget_ends_before_it_is_exceeded() {
    let server = Server::with_responder(|_| Answer::text("Done."));
    let project = project(&server);
    let mut terminal = project.open_sized(&["-m", PRICED], 110, 40);
    terminal.prompt("/goal go --until \"cmp wanted.txt state.txt\" --budget 0.004usd");
    terminal.wait_for("goal not reached: the budget of $0.00 is used up");
    assert!(server.requests().len() <= 2, "{} requests", server.requests().len());
    terminal.decide('s');
    terminal.quit();
}
