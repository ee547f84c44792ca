//! Agents: discovered after trust, started in parallel, and never with more permissions than their session.

use crate::support::{Answer, Events, Gate, Project, Request, Server, wait_until};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Policy that allows all calls of these tests, so that only the limits of an agent can deny a call.
const OPEN: &str = "schema_version = 1\n[capabilities.\"File.Read\"]\nallowed_paths = [\"${workspace}\"]\n\
                    [capabilities.\"File.Write\"]\nallowed_paths = [\"${workspace}\"]\n\
                    [capabilities.\"Shell.Exec\"]\nrequires_approval = false\n";
const HELPER: &str = "---\nname: helper\ndescription: Helps with files.\nmaxTurns: 3\n---\nBe brief.\n";

/// Returns the title of the agent that sends a request, or `None` for the user's session.
pub(crate) fn title(request: &Request) -> Option<String> {
    let first = request.body["messages"][0]["content"].to_string();
    let at = first.find("Agent ").filter(|at| *at < 60 && first.contains("You work on this task for another session"))?;
    let line = &first[at..first.find("\\n").unwrap_or(first.len())];
    line.split_once(": ").map(|(_, title)| title.to_owned())
}

pub(crate) fn start(id: &str, agent: &str, title: &str) -> (String, Value) {
    (id.to_owned(), json!({"agent": agent, "description": title, "prompt": format!("Do {title}.")}))
}

pub(crate) fn starts(calls: &[(String, Value)]) -> Answer {
    let ((id, first), rest) = calls.split_first().unwrap();
    rest.iter()
        .fold(Answer::call(id, "Agent", first.clone()), |answer, (id, arguments)| answer.and_call(id, "Agent", arguments.clone()))
}

/// Responds to a session with three agents. Each agent reads a file before it answers.
fn three(request: &Request) -> Answer {
    let results = request.tool_results().len();
    match (title(request), results) {
        (None, 0) => starts(&[start("c1", "explore", "one"), start("c2", "explore", "two"), start("c3", "explore", "three")]),
        (None, _) => Answer::text("All done."),
        (Some(title), 0) => Answer::call("r1", "ReadFile", json!({"path": format!("{title}.txt")})),
        (Some(title), _) => Answer::text(&format!("Result of {title}.")),
    }
}

fn with_files(server: &Server) -> Project {
    Project::with(server).file("one.txt", "1\n").file("two.txt", "2\n").file("three.txt", "3\n")
}

/// Returns the agent events with this `change`.
fn changes<'e>(events: &'e Events, change: &str) -> Vec<&'e Value> {
    events.all("agent").into_iter().filter(|event| event["change"] == change).collect()
}

fn of_agents(server: &Server) -> Vec<Request> {
    server.requests().into_iter().filter(|request| title(request).is_some()).collect()
}

#[test]
fn agents_run_in_parallel_with_separate_contexts_and_one_result_each() {
    let gate = Gate::default();
    let held = gate.clone();
    let server = Server::with_responder(move |request| match (title(request), request.tool_results().len()) {
        (Some(title), 0) => {
            let path = json!({"path": format!("{title}.txt")});
            Answer::empty().and_wait(&held).and_call("r1", "ReadFile", path)
        }
        _ => three(request),
    });
    let project = with_files(&server);
    let running = project.start(&["exec", "--json", "a private remark"]);
    assert!(wait_until(Duration::from_secs(60), || of_agents(&server).len() == 3), "the agents do not work at the same time");
    gate.open();
    let told = running.finish().exits(0);
    let events = told.events();
    assert_eq!((changes(&events, "started").len(), changes(&events, "ended").len()), (3, 3));
    assert!(changes(&events, "ended").iter().all(|event| event["state"] == "completed"), "{}", told.stdout);
    let requested = events.all("tool_requested");
    assert!(
        requested[0]["summary"]
            .as_str()
            .unwrap()
            .contains("Agent explore: one (reads only; at most 50 steps and 25 % of each budget)")
    );
    let last = server.requests().into_iter().rfind(|request| title(request).is_none()).unwrap();
    let results: Vec<String> = last.tool_results().into_iter().map(|(_, text)| text).collect();
    assert_eq!(results, ["Result of one.", "Result of two.", "Result of three."]);
    for request in of_agents(&server) {
        assert!(!request.body.to_string().contains("a private remark"), "an agent sees only its task");
        let names = request.body["tools"].to_string();
        for tool in ["WriteFile", "EditFile", "ApplyPatch", "Agent"] {
            assert!(!names.contains(&format!("\"name\":\"{tool}\"")), "{tool}: {names}");
        }
    }
    let listed = project.aye(&["sessions", "list"]).exits(0);
    assert_eq!(listed.stdout.lines().count(), 1, "{}", listed.stdout);
    let archived = project.aye(&["sessions", "list", "--archived", "--json"]).exits(0).json();
    let agents = archived.as_array().unwrap();
    assert!(agents.len() == 3 && agents.iter().all(|session| session["ofAgent"] == true), "{archived}");
    let id = agents[0]["sessionId"].as_str().unwrap().to_owned();
    project.aye(&["exec", &format!("--resume={id}"), "more"]).exits(2).says(&["it belongs to an agent", "aye sessions show"]);
    let shown = project.aye(&["sessions", "show", &id]).exits(0);
    assert!(shown.stdout.contains("You work on this task for another session"), "{}", shown.stdout);
}

#[test]
fn an_agent_uses_the_price_that_its_session_assumes() {
    let server = Server::with_responder(|request| match (title(request), request.tool_results().len()) {
        (None, 0) if request.messages().contains("delegate") => starts(&[start("c1", "explore", "one")]),
        (None, _) => Answer::text("All done."),
        (Some(title), _) => Answer::text(&format!("Result of {title}.")),
    });
    let project = with_files(&server).config("[budget]\nsession_cost_usd = 5\n");
    project.aye(&["exec", "-m", "anthropic/scripted", "--assume-price", "3,15", "hello"]).exits(0);
    // The session has stored the price, so the option is no longer needed.
    let told = project.aye(&["exec", "--json", "-c", "delegate this"]).exits(0);
    let events = told.events();
    assert!(changes(&events, "ended").iter().all(|event| event["state"] == "completed"), "{}", told.stdout);
    assert_eq!(of_agents(&server).len(), 1, "{}", told.stdout);
}

#[test]
fn a_read_only_agent_cannot_change_anything() {
    let tries = || {
        [
            ("WriteFile", json!({"path": "new.txt", "content": "x"})),
            ("EditFile", json!({"path": "one.txt", "old_text": "1", "new_text": "2"})),
            ("AppendFile", json!({"path": "one.txt", "content": "2"})),
            ("Delete", json!({"path": "one.txt"})),
            ("Move", json!({"source": "one.txt", "destination": "new.txt"})),
            ("CreateDirectory", json!({"path": "new.txt"})),
            ("RunCommand", json!({"command": "touch new.txt"})),
            ("RunCommand", json!({"command": "echo 2 > one.txt"})),
            ("Bash", json!({"command": "rm one.txt"})),
            ("CliSession", json!({"command": "bash"})),
            ("ApplyPatch", json!({"patch": "*** Begin Patch\n*** Add File: new.txt\n+x\n*** End Patch"})),
            ("Agent", json!({"agent": "explore", "prompt": "go deeper"})),
            ("Task", json!({"agent": "explore", "prompt": "go deeper"})),
        ]
    };
    let server = Server::with_responder(move |request| {
        let results = request.tool_results().len();
        match (title(request), results) {
            (None, 0) => starts(&[start("c1", "writer", "everything")]),
            (None, _) => Answer::text("Done."),
            (Some(_), 0) => tries().into_iter().enumerate().fold(Answer::empty(), |answer, (number, (tool, arguments))| {
                answer.and_call(&format!("t{number}"), tool, arguments)
            }),
            (Some(_), _) => Answer::text("I tried."),
        }
    });
    let writer =
        "---\nname: writer\ndescription: Writes.\ntools: Read, Write, Edit, Bash, Task\npermissionMode: plan\n---\nWrite.\n";
    let project = with_files(&server).policy(OPEN).file(".claude/agents/writer.md", writer);
    project.aye(&["exec", "--trust", "--mode", "auto", "go"]).exits(0);
    let last = of_agents(&server).pop().unwrap();
    let results = last.tool_results();
    assert_eq!(results.len(), tries().len());
    println!("{results:#?}");
    assert_eq!(project.read("one.txt"), "1\n");
    assert!(!project.exists("new.txt"));
    let asked = of_agents(&server).iter().filter(|request| request.messages().contains("go deeper")).count();
    assert_eq!(asked, 1, "no agent of an agent was started");
}

#[test]
fn project_agents_are_ignored_before_trust() {
    let respond = |request: &Request| match (title(request), request.tool_results().len()) {
        (None, 0) => starts(&[start("c1", "helper", "one")]),
        (None, _) => Answer::text("Done."),
        (Some(_), _) => Answer::text("Helped."),
    };
    let server = Server::with_responder(respond);
    let project = with_files(&server).file(".claude/agents/helper.md", HELPER);
    let told = project.aye(&["exec", "go"]).exits(0);
    assert!(told.stderr.contains("not trusted; ignored: .claude/agents/helper.md"), "{}", told.stderr);
    assert!(server.request(1).tool_results()[0].1.contains("unknown agent `helper`"), "{:?}", server.request(1).tool_results());
    assert!(of_agents(&server).is_empty());
    project.aye(&["exec", "--trust", "go"]).exits(0);
    let request = of_agents(&server).pop().unwrap();
    assert!(request.messages().contains("Be brief."), "{}", request.messages());
    let offered = server.request(2).body["tools"].to_string();
    assert!(offered.contains("- helper: Helps with files."), "{offered}");
}

#[test]
fn steps_per_agent_and_agents_per_response_are_limited() {
    let server = Server::with_responder(|request| match (title(request), request.tool_results().len()) {
        (None, 0) => {
            let calls: Vec<_> = (0..20).map(|number| start(&format!("c{number}"), "helper", &format!("part {number}"))).collect();
            starts(&calls)
        }
        (None, _) => Answer::text("Done."),
        (Some(_), calls) => {
            Answer::text("Looking.").and_call(&format!("r{calls}"), "Glob", json!({"pattern": format!("*{calls}")}))
        }
    });
    let project = with_files(&server).file(".aye/agents/helper.md", HELPER);
    let told = project.aye(&["exec", "--trust", "--json", "go"]).exits(0);
    let last = server.requests().into_iter().rfind(|request| title(request).is_none()).unwrap();
    let results: Vec<String> = last.tool_results().into_iter().map(|(_, text)| text).collect();
    let refused = results.iter().filter(|text| text.contains("one response can start at most 16 agents")).count();
    assert_eq!((results.len(), refused), (20, 4), "{results:?}");
    // The calls run at the same time, so any four of them may be rejected.
    assert_eq!(results.iter().filter(|text| text.contains("Looking.")).count(), 16, "{results:?}");
    assert_eq!(of_agents(&server).len(), 16 * 3);
    assert!(changes(&told.events(), "ended").iter().all(|event| event["state"] == "failed"));
}

#[test]
fn agent_limits_come_from_the_settings_and_a_policy_can_only_lower_them() {
    let server = Server::with_responder(three);
    let limits = "[agents]\nsteps = 9\nbudget_percent = 10\nper_response = 2\n";
    let policy = format!("{OPEN}[agents]\nmax_steps = 7\nbudget_percent = 40\nper_response = 90\n");
    let project = with_files(&server).config(limits).policy(&policy);
    let told = project.aye(&["exec", "--json", "go"]).exits(0);
    let requested = told.events();
    let summary = requested.all("tool_requested")[0]["summary"].as_str().unwrap().to_owned();
    assert!(summary.contains("at most 7 steps and 10 % of each budget"), "{summary}");
    let last = server.requests().into_iter().rfind(|request| title(request).is_none()).unwrap();
    let results: Vec<String> = last.tool_results().into_iter().map(|(_, text)| text).collect();
    let refused = results.iter().filter(|text| text.contains("one response can start at most 2 agents")).count();
    assert_eq!(refused, 1, "{results:?}");
    // A project can only lower the limits.
    let raised = project.file(".aye/config.toml", "[agents]\nper_response = 16\nmax_steps = 5\n");
    let told = raised.aye(&["exec", "--trust", "--json", "go"]).exits(0);
    let requested = told.events();
    let summary = requested.all("tool_requested")[0]["summary"].as_str().unwrap().to_owned();
    assert!(summary.contains("at most 5 steps and 10 % of each budget"), "{summary}");
    raised.aye(&["--set", "agents.at_once=0", "exec", "go"]).exits(2).says(&["agents.at_once"]);
}

#[test]
fn a_depth_of_zero_allows_no_agents() {
    let server = Server::with_responder(three);
    let policy = format!("{OPEN}[agents]\ndepth = 0\n");
    let project = with_files(&server).policy(&policy);
    project.aye(&["exec", "go"]);
    assert!(of_agents(&server).is_empty());
    let last = server.requests().pop().unwrap();
    assert!(last.tool_results().iter().all(|(_, text)| !text.contains("Result of")), "{}", last.body);
}

#[test]
fn a_kill_at_any_request_loses_no_agent_and_repeats_no_result() {
    for kill_at in 1..8 {
        let count = Arc::new(AtomicUsize::new(0));
        let gate = Arc::new(AtomicUsize::new(0));
        let (seen, open) = (Arc::clone(&count), Arc::clone(&gate));
        let server = Server::with_responder(move |request| {
            let number = seen.fetch_add(1, Ordering::SeqCst) + 1;
            if number >= kill_at && open.load(Ordering::SeqCst) == 0 {
                // Withholds the response until the test has killed the process.
                wait_until(Duration::from_secs(60), || open.load(Ordering::SeqCst) > 0);
            }
            three(request)
        });
        let project = with_files(&server);
        let running = project.start(&["exec", "--json", "go"]);
        assert!(wait_until(Duration::from_secs(60), || count.load(Ordering::SeqCst) >= kill_at), "request {kill_at} never came");
        running.kill();
        gate.store(1, Ordering::SeqCst);
        let told = project.aye(&["exec", "-c"]).exits(0);
        assert!(told.stdout.contains("All done."), "kill at {kill_at}: {} {}", told.stdout, told.stderr);
        let last = server.requests().into_iter().rfind(|request| title(request).is_none()).unwrap();
        let results: Vec<String> = last.tool_results().into_iter().map(|(_, text)| text).collect();
        assert_eq!(results, ["Result of one.", "Result of two.", "Result of three."], "kill at {kill_at}");
        let archived = project.aye(&["sessions", "list", "--archived", "--json"]).exits(0).json();
        assert_eq!(archived.as_array().unwrap().len(), 3, "kill at {kill_at}: each call has one session");
    }
}

#[test]
fn agents_can_be_listed_opened_and_stopped_on_the_screen() {
    let gate = Gate::default();
    let held = gate.clone();
    let server = Server::with_responder(move |request| match (title(request), request.tool_results().len()) {
        (None, 0) => starts(&[start("c1", "explore", "find the parser")]),
        (None, _) => Answer::text("That is all."),
        (Some(_), 0) => Answer::call("r1", "Glob", json!({"pattern": "*.txt"})),
        (Some(_), _) => Answer::text("Still looking").and_wait(&held),
    });
    let project = with_files(&server);
    let mut terminal = project.open(&[]);
    terminal.prompt("look around");
    terminal.wait_for("Glob *.txt");
    terminal.prompt("/agents");
    let screen = terminal.wait_for("working, 1 call");
    assert!(screen.contains("find the parser"), "{screen}");
    terminal.send("\x1b");
    terminal.wait_for("ctrl+o fold");
    terminal.prompt("/agents 1");
    terminal.wait_for("Do find the parser.");
    terminal.send("\x1b");
    terminal.wait_for("ctrl+o fold");
    terminal.prompt("/agents stop 1");
    terminal.wait_for("That is all.");
    gate.open();
    let (_, result) = server.requests().into_iter().rfind(|request| title(request).is_none()).unwrap().tool_results().remove(0);
    assert!(result.contains("the agent was stopped by the user"), "{result}");
}

#[test]
fn agents_are_listed_shown_and_checked() {
    let project = Project::empty()
        .file(".claude/agents/helper.md", HELPER)
        .file(".claude/agents/bad.md", "---\nname: a/b\n---\nx")
        .file(".codex/agents/scout.toml", "name = \"scout\"\ndescription = \"Scouts.\"\ndeveloper_instructions = \"Look.\"\n");
    let listed = project.aye(&["agents", "list", "--trust"]).exits(0);
    for part in ["explore", "review", "helper   Helps with files.", ".claude/agents/helper.md", "scout"] {
        assert!(listed.stdout.contains(part), "{part}: {}", listed.stdout);
    }
    assert!(listed.stderr.contains("ignored an agent: .claude/agents/bad.md:2: the name `a/b`"), "{}", listed.stderr);
    let untrusted = project.aye(&["agents", "list"]).exits(0);
    assert!(!untrusted.stdout.contains("helper"), "{}", untrusted.stdout);
    project.aye(&["agents", "show", "scout", "--trust"]).exits(0);
    project.aye(&["agents", "show", "helpr", "--trust"]).exits(2).says(&["unknown agent `helpr`", "did you mean `helper`?"]);
    let checked = project.aye(&["agents", "check"]).exits(1);
    assert!(checked.stdout.contains("error: .claude/agents/bad.md:2: the name `a/b`"), "{}", checked.stdout);
    project.aye(&["agents", "check", ".claude/agents/helper.md"]).exits(0);
    let json = project.aye(&["agents", "list", "--json", "--trust"]).exits(0).json();
    assert_eq!(json["agents"].as_array().unwrap().len(), 4);
}
