//! Agents that start agents: a limited depth, permissions that only shrink, one list of approvals, and the tree after a
//! crash.

use crate::agents::{start, starts, title};
use crate::support::{Answer, Project, Request, Rpc, Server, wait_until};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const OPEN: &str = "schema_version = 1\n[capabilities.\"File.Read\"]\nallowed_paths = [\"${workspace}\"]\n\
                    [capabilities.\"File.Write\"]\nallowed_paths = [\"${workspace}\"]\nrequires_approval = false\n\
                    [capabilities.\"Shell.Exec\"]\nrequires_approval = false\n";

/// Returns the definition file of an agent with these tools. An empty `tools` allows all tools.
fn agent(name: &str, tools: &str) -> String {
    let tools = if tools.is_empty() { String::new() } else { format!("tools: {tools}\n") };
    format!("---\nname: {name}\ndescription: Works on a part.\n{tools}---\nWork.\n")
}

fn project(server: &Server, depth: u32) -> Project {
    let project = Project::with(server).policy(OPEN).config(&format!("[agents]\ndepth = {depth}\n"));
    ["ping", "pong"]
        .into_iter()
        .fold(project, |project, name| project.file(&format!(".claude/agents/{name}.md"), &agent(name, "")))
}

/// Returns the last request of the agent with this title, or of the session if `of` is `None`.
fn last_of(server: &Server, of: Option<&str>) -> Option<Request> {
    server.requests().into_iter().rfind(|request| title(request).as_deref() == of)
}

fn results(server: &Server, of: Option<&str>) -> Vec<String> {
    let last = last_of(server, of);
    last.map(|request| request.tool_results().into_iter().map(|(_, text)| text).collect()).unwrap_or_default()
}

/// Responds as a model in which each agent starts another one without end, alternating between `ping` and `pong`.
fn endless(request: &Request) -> Answer {
    let level: usize = title(request).map_or(0, |title| title.rsplit(' ').next().unwrap().parse().unwrap());
    if !request.tool_results().is_empty() {
        return Answer::text(if level == 0 { "All done." } else { "Result." });
    }
    let name = if level.is_multiple_of(2) { "ping" } else { "pong" };
    starts(&[start(&format!("c{level}"), name, &format!("level {}", level + 1))])
}

#[test]
fn agents_that_start_each_other_end_at_the_last_level() {
    for depth in [1, 2, 3] {
        let server = Server::with_responder(endless);
        let project = project(&server, depth);
        let told = project.aye(&["exec", "--trust", "--json", "go"]).exits(0);
        let events = told.events();
        let started: Vec<&Value> = events.all("agent").into_iter().filter(|event| event["change"] == "started").collect();
        assert_eq!(started.len(), depth as usize, "{}", told.stdout);
        assert!(started[0]["parentSessionId"].is_null());
        for pair in started.windows(2) {
            assert_eq!(pair[1]["parentSessionId"], pair[0]["agentSessionId"], "{}", told.stdout);
        }
        let names = |of: &str| last_of(&server, Some(of)).unwrap().body["tools"].to_string();
        for level in 1..=depth {
            let offers = names(&format!("level {level}")).contains("\"name\":\"Agent\"");
            assert_eq!(offers, level < depth, "depth {depth}, level {level}");
        }
        assert_eq!(results(&server, None), ["Result."]);
        let refused = results(&server, Some(&format!("level {depth}")));
        assert!(refused.len() == 1 && !refused[0].contains("Result."), "{refused:?}");
        let archived = project.aye(&["sessions", "list", "--archived", "--json"]).exits(0).json();
        assert_eq!(archived.as_array().unwrap().len(), depth as usize);
        // Deleting the session deletes the whole tree of agents.
        let id = project.aye(&["sessions", "list", "--json"]).exits(0).json()[0]["sessionId"].as_str().unwrap().to_owned();
        project.aye(&["sessions", "delete", &id]).exits(0);
        let archived = project.aye(&["sessions", "list", "--archived", "--json"]).exits(0).json();
        assert_eq!(archived, json!([]));
    }
    let server = Server::new([]);
    let project = project(&server, 1);
    project.aye(&["--set", "agents.depth=4", "exec", "go"]).exits(2).says(&["agents.depth"]);
}

#[test]
fn an_agent_below_an_agent_has_at_most_the_permissions_of_both() {
    let tries = || {
        Answer::call("w1", "WriteFile", json!({"path": "new.txt", "content": "x"}))
            .and_call("w2", "RunCommand", json!({"command": "touch other.txt"}))
            .and_call("w3", "EditFile", json!({"path": "one.txt", "edits": [{"oldText": "1\n", "newText": "2\n"}]}))
    };
    for (name, tools, is_limited) in [
        ("worker", "", false),
        ("reader", "Read, Task", true),
        ("logger", "Read, Bash(git log:*), Task", true),
        ("planner", "Read, Write(doc/**), Task", true),
    ] {
        let server = Server::with_responder(move |request| match (title(request).as_deref(), request.tool_results().len()) {
            (None, 0) => starts(&[start("c1", name, "outer")]),
            (Some("outer"), 0) => starts(&[start("c2", "ping", "inner")]),
            (Some("inner"), 0) => Answer::call("r1", "ReadFile", json!({"path": "one.txt"})),
            (Some("inner"), 1) => tries(),
            (Some(title), _) => Answer::text(&format!("Result of {title}.")),
            (None, _) => Answer::text("All done."),
        });
        let project = project(&server, 2).file("one.txt", "1\n");
        let project = project.file(&format!(".claude/agents/{name}.md"), &agent(name, tools));
        project.aye(&["exec", "--trust", "go"]);
        let results = results(&server, Some("inner"));
        assert_eq!(results.len(), 4, "{name}: the inner agent made its calls: {results:?}");
        assert!(results[0].contains('1') && !results[0].contains("rule: "), "{name}: it may read: {results:?}");
        if is_limited {
            assert!(results[1..].iter().all(|text| text.contains("rule: ")), "{name}: {results:?}");
            let exists = ["new.txt", "other.txt"].map(|path| project.exists(path));
            assert_eq!((exists, project.read("one.txt").as_str()), ([false; 2], "1\n"), "{name}: {results:?}");
        } else {
            // If the outer agent has no limits, the same calls change the files.
            assert!(project.exists("new.txt"), "{results:?}");
            assert_eq!((project.read("new.txt").as_str(), project.read("one.txt").as_str()), ("x", "2\n"), "{results:?}");
        }
    }
}

/// Responds as a model in which the inner agent reads without end.
fn endless_inner(request: &Request) -> Answer {
    match (title(request).as_deref(), request.tool_results().len()) {
        (None, 0) => starts(&[start("c1", "ping", "outer")]),
        (Some("outer"), 0) => starts(&[start("c2", "pong", "inner")]),
        (Some("inner"), done) => Answer::call(&format!("r{done}"), "ReadFile", json!({"path": "long.txt", "offset": done + 1})),
        (Some(title), _) => Answer::text(&format!("Result of {title}.")),
        (None, _) => Answer::text("All done."),
    }
}

#[test]
fn budgets_and_steps_of_an_agent_below_an_agent_are_shares_of_its_share() {
    // Each request uses 1,220 tokens. After the first request, 80,000 tokens remain, and the outer agent gets half of
    // them. After its own first request, the inner agent gets half of the rest.
    let budget = "[agents]\ndepth = 2\nbudget_percent = 50\n[budget]\nsession_tokens = 81220\n";
    let steps = "[agents]\ndepth = 2\nbudget_percent = 50\nmax_steps = 3\n";
    for (config, why, requests) in [(budget, "budget of 19,390 tokens", 2..18), (steps, "3 steps", 3..4)] {
        let server = Server::with_responder(endless_inner);
        let project = project(&server, 2).config(config).file("long.txt", &"line\n".repeat(90));
        let told = project.aye(&["exec", "--trust", "--json", "go"]).exits(0);
        let inner = server.requests().iter().filter(|request| title(request).as_deref() == Some("inner")).count();
        let failed = results(&server, Some("outer"));
        assert!(failed.len() == 1 && failed[0].contains(why), "{inner} requests: {failed:?}");
        assert!(requests.contains(&inner), "{inner} requests, {why}");
        // The outer agent and the session continue.
        assert_eq!(results(&server, None), ["Result of outer."]);
        let events = told.events();
        let ends = events.all("agent").into_iter().filter(|event| event["change"] == "ended");
        assert_eq!(ends.map(|event| event["state"].as_str().unwrap()).collect::<Vec<_>>(), ["failed", "completed"]);
        // Every request of an agent counts toward the limits of the session.
        let spent = events.all("agent").into_iter().filter(|event| event["change"] == "spent").count();
        assert_eq!(spent, inner + 2, "{}", told.stdout);
    }
}

#[test]
fn a_client_approves_and_stops_agents_on_every_level() {
    let server = Server::with_responder(|request| match (title(request).as_deref(), request.tool_results().len()) {
        (None, 0) => starts(&[start("c1", "ping", "outer")]),
        (Some("outer"), 0) => starts(&[start("c2", "pong", "inner")]),
        (Some("inner"), 0) => Answer::call("w1", "WriteFile", json!({"path": "first.txt", "content": "new\n"})),
        (Some("inner"), 1) => Answer::call("w2", "WriteFile", json!({"path": "second.txt", "content": "new\n"})),
        (Some(title), _) => Answer::text(&format!("Result of {title}.")),
        (None, _) => Answer::text("All done."),
    });
    let asking = OPEN.replace("requires_approval = false", "requires_approval = true");
    let project = project(&server, 2).policy(&asking);
    let mut client = Rpc::start(&project, &["--trust"]);
    client.create(&project);
    client.call("StartTask", json!({"prompt": "go"}));
    let approval = client.event("approval_requested");
    assert_eq!(approval["agent"]["name"], "pong", "{approval}");
    client.call("ApproveAction", json!({"approvalId": approval["approvalId"], "decision": "approved"}));
    let approval = client.event("approval_requested");
    assert_eq!(project.read("first.txt"), "new\n");
    // Stopping an agent also stops the agents that it started, and withdraws their approvals.
    let archived = project.aye(&["sessions", "list", "--archived", "--json"]).exits(0).json();
    let inner = &approval["agent"]["agentSessionId"];
    let sessions = archived.as_array().unwrap();
    let outer = sessions.iter().find(|session| session["sessionId"] != *inner).unwrap()["sessionId"].clone();
    assert_eq!(client.call("StopAgent", json!({"agentSessionId": outer}))["status"], "stopping");
    assert_eq!(client.event("task_completed")["text"], "All done.");
    let state = client.call("GetSessionState", json!({}));
    assert_eq!(state["pendingApprovals"], json!([]), "{state}");
    assert!(!project.exists("second.txt"));
    assert_eq!(client.fails("StopAgent", json!({"agentSessionId": inner})), -32602, "it has ended too");
}

#[test]
fn a_kill_at_any_request_resumes_the_tree_of_agents() {
    const ALL: usize = 7;
    for kill_at in 1..=ALL {
        let count = Arc::new(AtomicUsize::new(0));
        let gate = Arc::new(AtomicUsize::new(0));
        let (seen, open) = (Arc::clone(&count), Arc::clone(&gate));
        let server = Server::with_responder(move |request| {
            let number = seen.fetch_add(1, Ordering::SeqCst) + 1;
            if number >= kill_at && open.load(Ordering::SeqCst) == 0 {
                // Withholds the response until the test has killed the process.
                wait_until(Duration::from_secs(60), || open.load(Ordering::SeqCst) > 0);
            }
            match (title(request).as_deref(), request.tool_results().len()) {
                (None, 0) => starts(&[start("c1", "ping", "outer")]),
                (Some("outer"), 0) => starts(&[start("c2", "pong", "inner")]),
                (Some("inner"), 0) => Answer::call("a1", "AppendFile", json!({"path": "lines.txt", "content": "once\n"})),
                (Some("outer"), 1) => Answer::call("a2", "AppendFile", json!({"path": "lines.txt", "content": "last\n"})),
                (Some(title), _) => Answer::text(&format!("Result of {title}.")),
                (None, _) => Answer::text("All done."),
            }
        });
        let project = project(&server, 2).file("lines.txt", "");
        let running = project.start(&["exec", "--trust", "go"]);
        assert!(wait_until(Duration::from_secs(60), || count.load(Ordering::SeqCst) >= kill_at), "request {kill_at} never came");
        running.kill();
        gate.store(1, Ordering::SeqCst);
        let told = project.aye(&["exec", "--trust", "-c"]).exits(0);
        assert!(told.stdout.contains("All done."), "kill at {kill_at}: {} {}", told.stdout, told.stderr);
        assert_eq!(project.read("lines.txt"), "once\nlast\n", "kill at {kill_at}");
        assert_eq!(results(&server, None), ["Result of outer."], "kill at {kill_at}");
        assert_eq!(results(&server, Some("outer"))[0], "Result of inner.", "kill at {kill_at}");
        let archived = project.aye(&["sessions", "list", "--archived", "--json"]).exits(0).json();
        assert_eq!(archived.as_array().unwrap().len(), 2, "kill at {kill_at}: each call has one session");
    }
}
