//! Guarantees for opening a session: one table of guarantees, checked for every front end.

use super::remote_tools::{FAREWELL, SERVER};
use crate::support::{Answer, Editor, Gate, Project, Request, Rpc, Server, TIMEOUT, texts, wait_until};
use serde_json::{Value, json};
use std::fs;
use std::process::Stdio;

/// API key in the environment, which must not be sent in a prompt.
const SECRET: &str = "sk-ant-scripted";
const PROMPT: &str = "go on";
const LAST_WORDS: &str = "All of it is finished.";

/// Policy that disables a tool that does not exist, on line 3, and allows the tool of the MCP server.
const POLICY: &str = r#"schema_version = 1
[tools]
disabled = ["Nonesuch"]
[capabilities."File.Read"]
[capabilities."File.Write"]
[capabilities."Mcp.Invoke"]
allowed_tools = ["docs/echo"]
"#;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FrontEnd {
    Screen,
    Lines,
    Exec,
    Serve,
    Editor,
    Rewind,
}

const ALL: [FrontEnd; 6] =
    [FrontEnd::Screen, FrontEnd::Lines, FrontEnd::Exec, FrontEnd::Serve, FrontEnd::Editor, FrontEnd::Rewind];

impl FrontEnd {
    /// Returns whether the front end runs tasks and therefore needs a model and MCP servers.
    fn runs_tasks(self) -> bool {
        self != Self::Rewind
    }

    /// Resumes the session, runs a task if possible, and exits. Returns all messages to the user.
    fn resume(self, project: &Project, id: &str) -> String {
        let resume = format!("--resume={id}");
        let prompt = format!("{PROMPT} with {SECRET}");
        match self {
            Self::Screen => {
                let mut terminal = project.open_sized(&[&resume], 150, 60);
                if project.exists("AGENTS.md") {
                    terminal.wait_for(texts::OPEN_READ_ONLY);
                    terminal.decide('n');
                }
                terminal.prompt(&prompt);
                let screen = terminal.wait_for(LAST_WORDS);
                assert!(terminal.quit().success());
                screen
            }
            Self::Lines => {
                let answer = if project.exists("AGENTS.md") { "read-only\n" } else { "" };
                let output = project.aye_with_input(&["--plain", &resume], &format!("{answer}{prompt}\n")).exits(0);
                output.stdout + &output.stderr
            }
            Self::Exec => {
                let output = project.aye(&["exec", &resume, &prompt]).exits(0);
                output.stdout + &output.stderr
            }
            Self::Serve => {
                let mut client = Rpc::start(project, &[]);
                client.call("ResumeSession", json!({"sessionId": id}));
                client.call("StartTask", json!({"prompt": prompt}));
                client.event("task_completed");
                client.call("Shutdown", json!({}));
                while client.next().is_some() {}
                assert_eq!(client.code(), 0);
                json!(client.seen).to_string()
            }
            Self::Editor => {
                let mut editor = Editor::start(project, &[]);
                let loaded = editor.call("session/load", load(project, id));
                loaded.unwrap_or_else(|error| panic!("the session was not loaded: {error}"));
                editor.prompt(id, &prompt);
                let updates = json!(editor.updates).to_string();
                let (code, stderr) = editor.leave();
                assert_eq!(code, 0, "{stderr}");
                updates + &stderr
            }
            Self::Rewind => {
                let output = project.aye(&["rewind", id, "--to", "1", "--yes"]).exits(0);
                output.stdout + &output.stderr
            }
        }
    }

    /// Tries to resume a session that cannot be opened. Returns all messages to the user.
    fn is_refused(self, project: &Project, id: &str) -> String {
        let resume = format!("--resume={id}");
        let output = match self {
            Self::Screen => {
                let mut terminal = project.open_sized(&[&resume], 150, 60);
                let screen =
                    terminal.wait_that("it refuses", |screen| screen.contains("process ") || screen.contains("policy.toml"));
                terminal.kill();
                return screen;
            }
            // An unanswered question ends with the input.
            Self::Lines => project.aye_with_input(&["--plain", &resume], ""),
            Self::Exec => project.aye(&["exec", &resume, PROMPT]),
            Self::Rewind => project.aye(&["rewind", id, "--to", "1", "--yes"]),
            Self::Serve => {
                let request = json!({"jsonrpc": "2.0", "id": 1, "method": "ResumeSession", "params": {"sessionId": id}});
                project.aye_with_input(&["serve", "--stdio"], &format!("{request}\n"))
            }
            Self::Editor => {
                // With an invalid policy, `aye acp` exits before the first request.
                let output = project.aye_with_input(&["acp"], "");
                if output.code == 0 {
                    let loaded = Editor::start(project, &[]).call("session/load", load(project, id));
                    return loaded.unwrap_err().to_string();
                }
                output
            }
        };
        output.stdout + &output.stderr
    }
}

/// Returns the parameters with which an editor loads a session.
fn load(project: &Project, id: &str) -> Value {
    json!({"sessionId": id, "cwd": project.path("").canonicalize().unwrap(), "mcpServers": []})
}

/// Returns the ID of the only session.
fn session_id(project: &Project) -> String {
    let flags: &[&str] = &["sessions", "list", "--json"];
    let listed = [&[], &["--archived"][..]].map(|more| project.aye(&[flags, more].concat()).exits(0).json());
    listed.iter().find_map(|list| list[0]["sessionId"].as_str()).unwrap().to_owned()
}

/// Session after a resume.
struct Resumed {
    project: Project,
    id: String,
    told: String,
    /// First request after the resume.
    request: Option<Request>,
}

/// Guarantee for resumed sessions: its name, whether it concerns only front ends that run tasks, and its check.
type Promise = (&'static str, bool, fn(&Resumed) -> bool);

/// Guarantees for every session that is resumed and continued.
const PROMISES: &[Promise] = &[
    ("an archived session is unarchived", false, |resumed| {
        resumed.project.aye(&["sessions", "list", "--json", "--archived"]).exits(0).json() == json!([])
    }),
    ("the user is told that it was archived", false, |resumed| resumed.told.contains(texts::NOW_UNARCHIVED)),
    ("a name in the policy that no tool has is reported", false, |resumed| resumed.told.contains("Nonesuch")),
    ("a change of its files since it ended is reported", true, |resumed| resumed.told.contains("written.txt changed")),
    ("secrets in a prompt are not sent", true, |resumed| {
        resumed
            .request
            .as_ref()
            .is_some_and(|request| !request.messages().contains(SECRET) && request.messages().contains(PROMPT))
    }),
    ("the tools of MCP servers are offered", true, |resumed| {
        resumed.request.as_ref().is_some_and(|request| request.body["tools"].to_string().contains("docs__echo"))
    }),
    ("MCP servers have the time to end", true, |resumed| resumed.project.exists("ended")),
    ("a file is saved before it is changed, and can be restored", true, |resumed| {
        let plan = resumed.project.aye(&["rewind", &resumed.id, "--to", "2", "--plan"]).exits(0).stdout;
        plan.contains("second.txt")
    }),
    ("the session is free afterwards", false, |resumed| {
        !resumed.project.aye(&["rewind", &resumed.id, "--plan"]).stderr.contains(texts::BY_PROCESS)
    }),
];

fn write(path: &str) -> Answer {
    Answer::call(&format!("call_{path}"), "WriteFile", json!({"path": path, "content": "by a tool\n"}))
}

/// Resumes an archived session. If the front end runs tasks, the user has also changed a file that the session had
/// written.
fn resumed(front_end: FrontEnd) -> Resumed {
    let call = Answer::call("call_2", "docs__echo", json!({"text": "hi"}));
    let first = [write("written.txt"), Answer::text("The first is done.")];
    let second = [call, write("second.txt"), Answer::text(LAST_WORDS)];
    let server = Server::new(first.into_iter().chain(second));
    let project = Project::with(&server)
        .file("server.sh", &format!("{SERVER}{FAREWELL}"))
        .file("describes", "Says it again.")
        .file("written.txt", "old\n")
        .config("[mcp.servers.docs]\ncommand = \"sh\"\nargs = [\"server.sh\"]\n")
        .policy(POLICY);
    project.aye(&["exec", "do the first"]).exits(0);
    let id = session_id(&project);
    project.aye(&["sessions", "archive", &id]).exits(0);
    fs::remove_file(project.path("ended")).ok();
    if front_end.runs_tasks() {
        fs::write(project.path("written.txt"), "by the user\n").unwrap();
    }
    let told = front_end.resume(&project, &id);
    let request = server.requests().get(2).cloned();
    Resumed { project, id, told, request }
}

#[test]
fn every_front_end_keeps_the_guarantees_for_resumed_sessions() {
    let mut broken = Vec::new();
    for front_end in ALL {
        let resumed = resumed(front_end);
        let promises = PROMISES.iter().filter(|(_, only_tasks, _)| !only_tasks || front_end.runs_tasks());
        let failed = promises.filter(|(_, _, holds)| !holds(&resumed)).map(|(name, ..)| format!("{front_end:?}: {name}"));
        let failed: Vec<_> = failed.collect();
        if !failed.is_empty() {
            broken.push(format!("{}\n{}", failed.join("\n"), resumed.told));
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n\n"));
}

/// Returns a model that writes a file in its second task.
fn writing() -> Server {
    let write = Answer::call("call_1", "WriteFile", json!({"path": "made.txt", "content": "new\n"}));
    Server::new([Answer::text("The first is done."), write, Answer::text(LAST_WORDS)])
}

#[test]
fn the_configured_mode_applies_in_every_front_end_that_runs_tasks() {
    for front_end in ALL.into_iter().filter(|front_end| front_end.runs_tasks()) {
        let server = writing();
        let project = Project::with(&server).config("[approval]\nmode = \"auto-edit\"\n");
        project.aye(&["exec", "do the first"]).exits(0);
        let told = front_end.resume(&project, &session_id(&project));
        assert!(project.exists("made.txt"), "{front_end:?}: {told}");
    }
}

#[test]
fn only_user_settings_can_start_a_session_in_a_laxer_mode() {
    let lax = "[approval]\nmode = \"auto-edit\"\n";
    let denied = |project: Project, arguments: &[&str]| {
        project.aye(&["exec", "do the first"]).exits(0);
        project.aye(&[&["exec"][..], arguments, &["do it"]].concat()).exits(3);
        assert!(!project.exists("made.txt"));
    };
    let server = writing();
    denied(Project::with(&server).config(lax), &["--mode", "ask"]);
    // A command that aye runs could pass this option.
    let server = writing();
    denied(Project::with(&server).config(lax).env("AYE", "1"), &["--set", "approval.mode=auto"]);
    let server = writing();
    denied(Project::with(&server).file(".aye/config.toml", lax), &["--trust"]);
    // The verdicts of the policy commands do not depend on the mode.
    let project = Project::empty().config(lax);
    let call = json!({"tool": "WriteFile", "arguments": {"path": "a", "content": ""}}).to_string();
    assert!(project.aye_with_input(&["policy", "check", "--jsonl"], &call).stdout.contains("\"verdict\":\"ask\""));
    let explained = project.aye(&["policy", "explain", "--json", "--", "make"]).exits(0).json();
    assert_eq!(explained["mode"], "ask");
    assert!(project.aye(&["doctor"]).stdout.contains("mode auto-edit; commands"));
    assert!(project.aye(&["config", "show"]).exits(0).stdout.contains("approval.mode = \"auto-edit\"  # "));
    let project = Project::empty().config("[approval]\nmode = \"yolo\"\n");
    project.aye(&["config", "show"]).exits(2).says(&["\"plan\", \"ask\", \"auto-edit\", \"auto\""]);
}

#[test]
fn every_front_end_reports_ignored_project_files_and_does_not_send_them() {
    for front_end in ALL {
        let server = Server::new([Answer::text("The first is done."), Answer::text(LAST_WORDS)]);
        let project = Project::with(&server);
        project.aye(&["exec", "do the first"]).exits(0);
        let id = session_id(&project);
        let project = project.file("AGENTS.md", "Always answer in verse.\n");
        let told = front_end.resume(&project, &id);
        // The screen lists the files in its question, which the message does not include.
        assert!(told.contains("AGENTS.md") || front_end == FrontEnd::Screen, "{front_end:?}: {told}");
        let sent = server.requests().into_iter().skip(1).map(|request| request.body.to_string());
        assert!(sent.into_iter().all(|request| !request.contains("in verse")), "{front_end:?}");
    }
}

#[test]
fn every_front_end_rejects_a_session_open_in_another_process_and_names_it() {
    let gate = Gate::default();
    let server = Server::new([Answer::text("The first is done."), Answer::text("Half of it").and_wait(&gate)]);
    let project = Project::with(&server);
    project.aye(&["exec", "do the first"]).exits(0);
    let id = session_id(&project);
    let mut command = project.command(&["exec", "-c", "do the second"]);
    let mut holder = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    assert!(wait_until(TIMEOUT, || server.requests().len() == 2), "the second task did not start");
    for front_end in ALL {
        let told = front_end.is_refused(&project, &id);
        assert!(told.contains(&format!("process {}", holder.id())), "{front_end:?}: {told}");
    }
    assert_eq!(server.requests().len(), 2, "nothing was sent for a session that another process owns");
    gate.open();
    assert!(holder.wait().unwrap().success());
}

#[test]
fn every_front_end_reports_an_invalid_policy_before_opening_a_session() {
    let server = Server::new([Answer::text("The first is done.")]);
    let project = Project::with(&server);
    project.aye(&["exec", "do the first"]).exits(0);
    let id = session_id(&project);
    project.aye(&["sessions", "archive", &id]).exits(0);
    let project = project.policy("schema_version = 1\n[capabilitys]\n");
    for front_end in ALL {
        let told = front_end.is_refused(&project, &id);
        assert!(told.contains("policy.toml") && told.contains("capabilitys"), "{front_end:?}: {told}");
    }
    let archived = project.aye(&["sessions", "list", "--json", "--archived"]).exits(0).json();
    assert_eq!(archived[0]["sessionId"], *id, "the session was opened");
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn every_front_end_reports_a_damaged_store() {
    for front_end in ALL {
        let server = Server::new([Answer::text("The first is done."), Answer::text(LAST_WORDS)]);
        let project = Project::with(&server);
        project.aye(&["exec", "do the first"]).exits(0);
        let id = session_id(&project);
        let path = project.directory("data").join("aye.db");
        let mut content = fs::read(&path).unwrap();
        content[..100].fill(b'x');
        fs::write(&path, &content).unwrap();
        let told = front_end.resume(&project, &id);
        assert!(told.contains("damaged"), "{front_end:?}: {told}");
    }
}

#[test]
fn no_front_end_reruns_a_call_interrupted_by_a_crash() {
    for front_end in ALL {
        let line = json!({"command": "echo ran >> runs; sleep 6161.9"});
        let server = Server::new([Answer::call("call_1", "RunCommand", line), Answer::text(LAST_WORDS)]);
        let project = Project::with(&server).allowing_everything();
        let running = project.start(&["exec", "--trust", "run it"]);
        assert!(wait_until(TIMEOUT, || project.exists("runs") && project.read("runs") == "ran\n"), "it never began");
        running.kill();
        let id = session_id(&project);
        // A screen and a client wait for a decision about the call. The other front ends exit or continue the task.
        let told = match front_end {
            FrontEnd::Screen => {
                let mut terminal = project.open_sized(&[&format!("--resume={id}")], 150, 60);
                let screen = terminal.wait_for("sleep 6161.9");
                terminal.kill();
                screen
            }
            FrontEnd::Serve => {
                let mut client = Rpc::start(&project, &[]);
                let opened = client.call("ResumeSession", json!({"sessionId": id}));
                client.call("Shutdown", json!({}));
                client.finish();
                opened.to_string()
            }
            FrontEnd::Lines => front_end.is_refused(&project, &id),
            // Only prints the plan, because a rewind would delete the file.
            FrontEnd::Rewind => project.aye(&["rewind", &id, "--plan"]).stderr,
            FrontEnd::Exec | FrontEnd::Editor => front_end.resume(&project, &id),
        };
        assert_eq!(project.read("runs"), "ran\n", "{front_end:?}: {told}");
    }
}
