//! Many processes at once: one session has one owner, and one store serves all.
#![cfg(target_os = "linux")]

use crate::agents::{start, starts, title};
use crate::support::story::wanted;
use crate::support::{Answer, Gate, Project, Request, Server, TIMEOUT, wait_until};
use serde_json::json;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

/// Number of simultaneous processes.
const CROWD: usize = 12;

fn command(project: &Project, arguments: &[&str]) -> Command {
    let mut command = project.command(arguments);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Starts all at the same moment, and returns the output and the duration of each.
fn at_once(commands: Vec<Command>) -> Vec<(Output, Duration)> {
    let ready = Arc::new(Barrier::new(commands.len()));
    let threads: Vec<_> = commands
        .into_iter()
        .map(|mut command| {
            let ready = Arc::clone(&ready);
            thread::spawn(move || {
                ready.wait();
                let began = Instant::now();
                let output = command.output().unwrap();
                (output, began.elapsed())
            })
        })
        .collect();
    threads.into_iter().map(|thread| thread.join().unwrap()).collect()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn exactly_one_of_many_processes_that_resume_a_session_owns_it() {
    let rounds = wanted(2 * CROWD, 10).div_ceil(CROWD);
    let mut slowest = Duration::ZERO;
    for round in 0..rounds {
        let (begun, gate) = (Gate::default(), Gate::default());
        let server = Server::new([
            Answer::text("Half").and_wait(&begun),
            Answer::text("The whole").and_wait(&gate),
            Answer::text("never asked for"),
        ]);
        let project = Project::with(&server);
        let killed = project.start(&["exec", "a long task"]);
        server.request(0);
        killed.kill();
        begun.open();
        let crowd: Vec<_> = (0..CROWD).map(|_| command(&project, &["exec", "-c"])).collect();
        let opener = {
            let gate = gate.clone();
            // The owner keeps the session until all others have their answer.
            move |count: usize| {
                if count == CROWD - 1 {
                    gate.open();
                }
            }
        };
        let answers = refused_until(crowd, opener);
        let (owners, others): (Vec<_>, Vec<_>) = answers.iter().partition(|(output, _)| output.status.success());
        let all: Vec<_> = answers.iter().map(|(output, _)| (output.status.code(), said(output))).collect();
        assert_eq!(owners.len(), 1, "round {round}: {all:#?}");
        for (output, took) in others {
            let words = said(output);
            assert!(words.contains("process") || words.contains("held") || words.contains("open in"), "round {round}: {words}");
            assert!(!words.contains("database is locked"), "{words}");
            slowest = slowest.max(*took);
        }
        assert_eq!(server.requests().len(), 2, "round {round}: two of them asked the model");
    }
    println!(
        "one session: {rounds} times {CROWD} starts at once, one owner each; the slowest refusal took {} ms",
        slowest.as_millis()
    );
}

/// Starts all at once; `ended` gets the number of finished processes whenever one ends.
fn refused_until(commands: Vec<Command>, ended: impl Fn(usize) + Send + Sync + 'static) -> Vec<(Output, Duration)> {
    let (ready, count) = (Arc::new(Barrier::new(commands.len())), Arc::new(std::sync::atomic::AtomicUsize::new(0)));
    let ended = Arc::new(ended);
    let threads: Vec<_> = commands
        .into_iter()
        .map(|mut command| {
            let (ready, count, ended) = (Arc::clone(&ready), Arc::clone(&count), Arc::clone(&ended));
            thread::spawn(move || {
                ready.wait();
                let began = Instant::now();
                let output = command.output().unwrap();
                let took = began.elapsed();
                ended(count.fetch_add(1, std::sync::atomic::Ordering::SeqCst) + 1);
                (output, took)
            })
        })
        .collect();
    threads.into_iter().map(|thread| thread.join().unwrap()).collect()
}

#[test]
fn many_sessions_share_one_store() {
    const STEPS: usize = 3;
    let rounds = wanted(CROWD, 5).div_ceil(CROWD);
    let mut slowest = Duration::ZERO;
    for _ in 0..rounds {
        let server = Server::with_responder(|request| {
            let done = request.tool_results().len();
            if done == STEPS {
                return Answer::text("All is done.");
            }
            let name = request.body["messages"][0].to_string();
            let number: String =
                name.chars().skip_while(|letter| *letter != '#').skip(1).take_while(char::is_ascii_digit).collect();
            let content = json!({"path": format!("own{number}.txt"), "content": format!("{done}\n")});
            Answer::call(&format!("{number}.{done}"), "WriteFile", content)
        });
        let project = Project::with(&server).allowing_everything();
        let prompts: Vec<_> = (0..CROWD).map(|number| format!("session #{number} of many")).collect();
        let crowd = prompts.iter().map(|prompt| command(&project, &["exec", "--trust", prompt])).collect();
        for (output, took) in at_once(crowd) {
            let words = said(&output);
            assert!(output.status.success(), "{:?}: {words}", output.status);
            assert!(!words.contains("database is locked"), "{words}");
            slowest = slowest.max(took);
        }
        for number in 0..CROWD {
            assert_eq!(project.read(&format!("own{number}.txt")), format!("{}\n", STEPS - 1));
        }
        let listed = project.aye(&["sessions", "list", "--json"]).exits(0).json();
        assert_eq!(listed.as_array().map(Vec::len), Some(CROWD));
    }
    println!("one store: {rounds} times {CROWD} sessions at once, the slowest took {} ms", slowest.as_millis());
}

#[test]
fn a_session_is_available_immediately_after_its_owner_is_killed() {
    let gate = Gate::default();
    let server = Server::new([Answer::text("Half").and_wait(&gate), Answer::text("The whole.")]);
    let project = Project::with(&server);
    let killed = project.start(&["exec", "a long task"]);
    server.request(0);
    killed.kill();
    gate.open();
    assert_eq!(project.aye(&["exec", "-c"]).exits(0).stdout.trim_end(), "The whole.");
    assert!(wait_until(TIMEOUT, || server.requests().len() == 2));
}

/// Number of rounds of the loop of kills.
const KILLS: usize = 30;

/// Answers for a session with three agents, and for two tasks that each write and edit a file.
fn agents_and_tasks(request: &Request) -> Answer {
    let (results, prompt) = (request.tool_results().len(), request.body["messages"][0].to_string());
    let number = if prompt.contains("task #1") { Some(1) } else { prompt.contains("task #2").then_some(2) };
    match (title(request), number, results) {
        (Some(title), _, 0) => Answer::call("r1", "ReadFile", json!({"path": format!("{title}.txt")})),
        (Some(title), _, _) => Answer::text(&format!("Result of {title}.")),
        (None, Some(number), 0) => {
            Answer::call("w1", "WriteFile", json!({"path": format!("made{number}.txt"), "content": "first\n"}))
        }
        (None, Some(number), 1) => {
            let edits = json!([{"oldText": "first", "newText": "second"}]);
            Answer::call("w2", "EditFile", json!({"path": format!("made{number}.txt"), "edits": edits}))
        }
        (None, Some(_), _) => Answer::text("Task done."),
        (None, None, 0) => {
            starts(&[start("c1", "explore", "one"), start("c2", "explore", "two"), start("c3", "explore", "three")])
        }
        (None, None, _) => Answer::text("All done."),
    }
}

fn is_of_task(request: &Request) -> bool {
    request.body["messages"][0].to_string().contains("task #")
}

#[test]
#[ignore = "takes minutes"]
fn kills_with_three_agents_and_two_tasks_at_once_lose_nothing_and_repeat_nothing() {
    let mut slowest = Duration::ZERO;
    for round in 0..KILLS {
        let kill_at = 1 + round % 13;
        let (count, open) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (seen, opened) = (Arc::clone(&count), Arc::clone(&open));
        let server = Server::with_responder(move |request| {
            let number = seen.fetch_add(1, Ordering::SeqCst) + 1;
            if number >= kill_at && opened.load(Ordering::SeqCst) == 0 {
                // Nothing follows before the kill.
                wait_until(TIMEOUT, || opened.load(Ordering::SeqCst) > 0);
            }
            agents_and_tasks(request)
        });
        let project = Project::outside_tmp_with(&server).allowing_everything();
        let project = project.file("one.txt", "1\n").file("two.txt", "2\n").file("three.txt", "3\n");
        let tasks = || project.aye(&["tasks", "--json"]).exits(0).json().as_array().unwrap().clone();
        for prompt in ["task #1", "task #2"] {
            project.aye(&["task", "start", "--detach", prompt]).exits(0);
        }
        let running = project.start(&["exec", "--json", "go"]);
        // The session exists from its first request on.
        let is_of_session =
            |request: &Request| request.body["messages"][0].to_string().contains("go") && title(request).is_none();
        let has_begun = || server.requests().iter().any(|request| is_of_session(request) && !is_of_task(request));
        let is_reached = || count.load(Ordering::SeqCst) >= kill_at && has_begun();
        assert!(wait_until(TIMEOUT, is_reached), "round {round}: request {kill_at} never came");
        let pids: Vec<String> = tasks().iter().filter_map(|task| task["pid"].as_u64()).map(|pid| pid.to_string()).collect();
        if !pids.is_empty() {
            // A task may end at this moment.
            let _ = Command::new("kill").arg("-9").args(&pids).status().unwrap();
        }
        running.kill();
        open.store(1, Ordering::SeqCst);
        let began = Instant::now();
        let told = project.aye(&["exec", "-c"]).exits(0);
        assert!(told.stdout.contains("All done."), "round {round}: {} {}", told.stdout, told.stderr);
        let last =
            server.requests().into_iter().rfind(|request| request.body["messages"].to_string().contains("Result of")).unwrap();
        let results: Vec<String> = last.tool_results().into_iter().map(|(_, text)| text).collect();
        assert_eq!(results, ["Result of one.", "Result of two.", "Result of three."], "round {round}");
        assert!(!project.exists("made1.txt") && !project.exists("made2.txt"), "round {round}: a task changed the workspace");
        let ended = || tasks().iter().all(|task| ["interrupted", "done"].contains(&task["state"].as_str().unwrap()));
        assert!(wait_until(TIMEOUT, ended), "round {round}: {:?}", tasks());
        for task in tasks() {
            let id = &task["id"].as_str().unwrap()[..8];
            if task["state"] != "done" {
                project.aye(&["task", "resume", id]).exits(0);
            }
            project.aye(&["task", "keep", id]).exits(0);
        }
        assert!(tasks().iter().all(|task| task["state"] == "done"), "round {round}: {:?}", tasks());
        for path in ["made1.txt", "made2.txt"] {
            assert_eq!(project.read(path), "second\n", "round {round}");
        }
        let archived = project.aye(&["sessions", "list", "--archived", "--json"]).exits(0).json();
        let agents = archived.as_array().unwrap().iter().filter(|session| session.to_string().contains("explore")).count();
        assert!(agents <= 3, "round {round}: each call has one session: {archived}");
        slowest = slowest.max(began.elapsed());
    }
    println!(
        "{KILLS} rounds: a session with three agents and two tasks killed at once; the slowest recovery took {} ms",
        slowest.as_millis()
    );
}
