//! `kill -9` at random requests of a session with three agents and of two tasks in copies: no work is lost, and no
//! effect is repeated.
#![cfg(target_os = "linux")]

use crate::agents::{start, starts, title};
use crate::support::story::{Tally, seed};
use crate::support::{Answer, Project, Request, Running, Server, TIMEOUT, wait_until};
use serde_json::{Value, json};

/// Number of rounds in the long run, which is an ignored test. `AYE_CRASH_KILLS` sets another number.
const MANY_ROUNDS: usize = 30;
/// Maximum number of kills of one process in a round.
const KILLS: usize = 4;
/// Number of lines that each agent and each task appends to its own file.
const LINES: usize = 4;
/// Upper bound, exclusive, for the number of requests between two kills.
const REQUESTS: u64 = 8;
const AGENTS: [&str; 3] = ["one", "two", "three"];
const TASKS: [&str; 2] = ["alpha", "beta"];
const POLICY: &str = "schema_version = 1\n[capabilities.\"File.Read\"]\nallowed_paths = [\"${workspace}\"]\n\
                      [capabilities.\"File.Write\"]\nallowed_paths = [\"${workspace}\"]\n";
const HELPER: &str = "---\nname: helper\ndescription: Appends lines.\n---\nAppend the lines.\n";

/// Returns the name of the task that sends a request, or `None` for another sender.
fn task(request: &Request) -> Option<&'static str> {
    let first = request.body["messages"][0]["content"].to_string();
    TASKS.into_iter().find(|name| first.contains(&format!("task {name}")))
}

/// Responds with the next line that the results do not report as appended, or with a message if all lines are there.
fn append(request: &Request, name: &str) -> Answer {
    let results = request.tool_results();
    let is_done = |text: &str| text.contains("Appended") || text.contains(": done;");
    let done = results.iter().filter(|(_, text)| is_done(text)).count();
    if done == LINES {
        return Answer::text(&format!("Result of {name}."));
    }
    let content = json!({"path": format!("{name}.txt"), "content": format!("{name} {done}\n")});
    Answer::call(&format!("{name}{}", results.len()), "AppendFile", content)
}

fn respond(request: &Request) -> Answer {
    match (title(request), task(request)) {
        (Some(name), _) => append(request, &name),
        (None, Some(name)) => append(request, name),
        (None, None) if request.tool_results().is_empty() => {
            let calls: Vec<_> = AGENTS.iter().map(|name| start(name, "helper", name)).collect();
            starts(&calls)
        }
        (None, None) => Answer::text("All is done."),
    }
}

/// Process of a round: the session or a task.
#[derive(Clone, Copy)]
enum Part {
    Session,
    Task(&'static str),
}

impl Part {
    const ALL: [Self; 3] = [Self::Session, Self::Task(TASKS[0]), Self::Task(TASKS[1])];

    /// Starts or restarts the process. Returns `None` if its work is complete.
    fn begin(self, project: &Project) -> Option<Running> {
        match self {
            Self::Session => {
                let sessions = project.aye(&["sessions", "list", "--json"]).exits(0).json();
                let is_new = sessions.as_array().is_none_or(Vec::is_empty);
                let arguments: &[&str] = if is_new { &["exec", "--trust", "go"] } else { &["exec", "--trust", "-c"] };
                Some(project.start(arguments))
            }
            Self::Task(name) => match find(project, name) {
                None => Some(project.start(&["--trust", "task", "start", &format!("task {name}")])),
                Some(task) if task["state"] == "done" => None,
                Some(task) => Some(project.start(&["task", "resume", task["id"].as_str().unwrap()])),
            },
        }
    }
}

/// Returns the task whose prompt ends with this name.
fn find(project: &Project, name: &str) -> Option<Value> {
    let all = project.aye(&["tasks", "--json"]).exits(0).json();
    let is_it = |task: &&Value| task["prompt"].as_str().is_some_and(|prompt| prompt.ends_with(name));
    all.as_array()?.iter().find(is_it).cloned()
}

/// Runs one round. Returns the number of kills and a description of the first problem.
fn round(random: &mut Tally) -> (usize, Result<(), String>) {
    let server = Server::with_responder(respond);
    let project = Project::outside_tmp_with(&server).policy(POLICY).file(".aye/agents/helper.md", HELPER);
    let mut kills = 0;
    let mut running: Vec<(Part, Option<Running>, usize)> =
        Part::ALL.into_iter().map(|part| (part, part.begin(&project), 0)).collect();
    while running.iter().any(|(_, process, count)| process.is_some() && *count < KILLS) {
        let at = random.below(running.len() as u64);
        let (part, process, count) = &mut running[at];
        let Some(mut alive) = process.take_if(|_| *count < KILLS) else { continue };
        // Kills the process at a random request of any process, or after its own end.
        let last = server.requests().len() + random.below(REQUESTS);
        wait_until(TIMEOUT, || alive.has_ended() || server.requests().len() >= last);
        alive.kill();
        (kills, *count) = (kills + 1, *count + 1);
        *process = part.begin(&project);
    }
    for (_, process, _) in running {
        drop(process.map(Running::finish));
    }
    (kills, check(&project, &server))
}

/// Checks the files, the results and the journals after all processes have ended.
fn check(project: &Project, server: &Server) -> Result<(), String> {
    let lines = |name: &str| (0..LINES).fold(String::new(), |text, line| format!("{text}{name} {line}\n"));
    let is = |path: &str, expected: &str| {
        let found = std::fs::read_to_string(project.path(path)).unwrap_or_default();
        if found == expected { Ok(()) } else { Err(format!("{path}: {found:?} instead of {expected:?}")) }
    };
    // A session that was killed after its last record prints its result again.
    let told = project.aye(&["exec", "--trust", "-c"]);
    if !told.stdout.contains("All is done.") {
        return Err(format!("the session did not end: {} {}", told.stdout, told.stderr));
    }
    for name in AGENTS {
        is(&format!("{name}.txt"), &lines(name))?;
    }
    let of_session = |request: &Request| title(request).is_none() && task(request).is_none();
    let last = server.requests().into_iter().rfind(of_session).ok_or("no request of the session")?;
    let results: Vec<String> = last.tool_results().into_iter().map(|(_, text)| text).collect();
    if results != AGENTS.map(|name| format!("Result of {name}.")) {
        return Err(format!("results of the agents: {results:?}"));
    }
    let archived = project.aye(&["sessions", "list", "--archived", "--json"]).exits(0).json();
    let agents = archived.as_array().map_or(0, |all| all.iter().filter(|session| session["ofAgent"] == true).count());
    if agents != AGENTS.len() {
        return Err(format!("{agents} sessions of agents"));
    }
    for name in TASKS {
        let path = format!("{name}.txt");
        is(&path, "").map_err(|why| format!("the workspace changed before the task was applied: {why}"))?;
        let task = find(project, name).ok_or(format!("the task {name} is lost"))?;
        if task["state"] != "done" {
            return Err(format!("the task {name} is not done: {task}"));
        }
        let kept = project.aye(&["task", "keep", "--yes", task["id"].as_str().unwrap_or_default()]);
        if kept.code != 0 {
            return Err(format!("cannot apply the task {name}: {}", kept.stderr));
        }
        is(&path, &lines(name))?;
    }
    let tasks = project.aye(&["tasks", "--json"]).exits(0).json();
    let count = tasks.as_array().map_or(0, Vec::len);
    if count == TASKS.len() { Ok(()) } else { Err(format!("{count} tasks")) }
}

fn rounds(name: &str, short: usize) {
    println!("seed {}, at most {} s for each process", seed(), TIMEOUT.as_secs());
    // A round counts as one fault, regardless of its number of kills.
    let (mut tally, mut kills, mut done) = (Tally::new(name, short, 10), 0, 0);
    while !tally.is_done() {
        let (count, outcome) = round(&mut tally);
        (kills, done) = (kills + count, done + 1);
        println!("{name}: round {done}, {kills} kills so far");
        tally.count(1, outcome.map_err(|why| format!("round {done}, {count} kills: {why}")));
    }
    tally.finish();
}

#[test]
fn killed_agents_and_tasks_lose_nothing_and_repeat_nothing() {
    rounds("three agents and two tasks", 1);
}

#[test]
#[ignore = "takes half an hour; run it with `cargo test --test e2e -- --ignored --nocapture many_rounds_of_killed_agents`"]
fn many_rounds_of_killed_agents_and_tasks_lose_nothing() {
    rounds("many rounds of three agents and two tasks", MANY_ROUNDS);
}
