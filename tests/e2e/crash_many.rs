//! Many processes at the same time: one owner per session, and one store for all of them.
#![cfg(target_os = "linux")]

use crate::support::story::wanted;
use crate::support::{Answer, Gate, Project, Server, TIMEOUT, wait_until};
use serde_json::json;
use std::process::{Command, Output, Stdio};
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

/// Starts all commands at the same moment. Returns the output and the duration of each.
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
            // The owner keeps the session open until all other processes have ended.
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

/// Starts all commands at the same moment. Calls `ended` with the number of finished processes whenever a process ends.
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
