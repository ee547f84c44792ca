//! Back-end tools: the policy evaluates each call, and a call is sent once and never repeated silently.

use crate::support::{Answer, Editor, Project, Server, TIMEOUT, wait_until};
use serde_json::json;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// Service that records its requests and gives the same answer to each of them.
struct Service {
    address: SocketAddr,
    /// Request line, authorization header and body of each request.
    requests: Arc<Mutex<Vec<(String, String, String)>>>,
}

/// Status and body of an answer; `None` closes the connection without an answer.
type Reply = Option<(u16, &'static str)>;

impl Service {
    fn start(reply: Reply) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let service = Self { address: listener.local_addr().unwrap(), requests: Arc::default() };
        let requests = service.requests.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let request = read(&stream);
                requests.lock().unwrap().push(request);
                if let Some((status, body)) = reply {
                    let head =
                        format!("HTTP/1.1 {status} Scripted\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
                    let _ = (&stream).write_all(format!("{head}{body}").as_bytes());
                }
            }
        });
        service
    }

    fn requests(&self) -> Vec<(String, String, String)> {
        self.requests.lock().unwrap().clone()
    }
}

fn read(stream: &TcpStream) -> (String, String, String) {
    let mut reader = BufReader::new(stream);
    let (mut first, mut authorization, mut length) = (String::new(), String::new(), 0);
    reader.read_line(&mut first).unwrap();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        match name.to_ascii_lowercase().as_str() {
            "authorization" => value.clone_into(&mut authorization),
            "content-length" => length = value.parse().unwrap(),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    (first.trim_end().to_owned(), authorization, String::from_utf8(body).unwrap())
}

const POLICY: &str = "schema_version = 1\n[capabilities.\"File.Read\"]\n[capabilities.\"BackendTool.Invoke\"]\n";

fn project(server: &Server, service: &Service, policy: &str) -> Project {
    let manifest = format!(
        "url = \"http://{}/v1\"\nauth = \"env:TOOLS_TOKEN\"\n\
         [[tools]]\nname = \"find_customer\"\ndescription = \"Finds a customer.\"\n\
         [tools.input_schema]\ntype = \"object\"\nrequired = [\"id\"]\nproperties = {{ id = {{ type = \"integer\" }} }}\n\
         [[tools]]\nname = \"delete_customer\"\ndescription = \"Deletes a customer.\"\n[tools.input_schema]\ntype = \"object\"\n",
        service.address
    );
    let project = Project::with(server)
        .env("TOOLS_TOKEN", "token-of-the-service")
        .config("[services.backend_tools]\nmanifest = \"backend-tools.toml\"\n")
        .policy(&format!("{POLICY}{policy}"));
    std::fs::write(project.directory("config").join("backend-tools.toml"), manifest).unwrap();
    project
}

fn call(tool: &str) -> Server {
    Server::new([
        Answer::text("").and_call("call_1", &format!("backend-tools__{tool}"), json!({"id": 7})),
        Answer::text("Done."),
        Answer::text("Done."),
    ])
}

#[test]
fn an_allowed_tool_is_called_once_with_its_arguments_and_the_token() {
    let service = Service::start(Some((200, "{\"status\": \"succeeded\", \"outputText\": \"customer seven\"}")));
    let server = call("find_customer");
    let project = project(&server, &service, "allowedToolNames = [\"find_*\"]\n");
    project.aye(&["exec", "find it"]).exits(0);
    let requests = service.requests();
    let [(line, token, body)] = requests.as_slice() else { panic!("{requests:?}") };
    assert_eq!((line.as_str(), token.as_str()), ("POST /v1/tools/find_customer/invoke HTTP/1.1", "Bearer token-of-the-service"));
    let body: serde_json::Value = serde_json::from_str(body).unwrap();
    assert_eq!(body, json!({"toolName": "find_customer", "arguments": {"id": 7}}));
    assert!(server.request(1).messages().contains("customer seven"), "{}", server.request(1).messages());
    let names = server.request(0).body["tools"].to_string();
    assert!(names.contains("find_customer") && !names.contains("delete_customer"), "{names}");
    let plan = project.aye(&["tool", "call", "backend-tools__find_customer", "--args", "{\"id\": 7}", "--plan"]).exits(0).stdout;
    assert!(plan.contains("/v1/tools/find_customer/invoke") && plan.contains("id: 7"), "{plan}");
    assert_eq!(service.requests().len(), 1, "a plan sends nothing");
}

#[test]
fn a_tool_that_the_policy_does_not_list_or_that_needs_approval_is_not_called() {
    let service = Service::start(Some((200, "{}")));
    let server = call("delete_customer");
    project(&server, &service, "allowed_tool_names = [\"find_customer\"]\n").aye(&["exec", "delete it"]);
    assert!(server.request(1).messages().contains("POLICY_DENIED"), "{}", server.request(1).messages());
    let server = call("find_customer");
    project(&server, &service, "allowed_tool_names = [\"*\"]\nrequires_approval = true\n").aye(&["exec", "find it"]);
    let server = call("find_customer");
    project(&server, &service, "").aye(&["exec", "find it"]);
    assert_eq!(service.requests().len(), 0, "{:?}", service.requests());
}

#[test]
fn always_saves_a_rule_for_exactly_this_tool() {
    let service = Service::start(Some((200, "{\"status\": \"succeeded\", \"outputText\": \"customer seven\"}")));
    let server = Server::with_responder(|request| match request.tool_results().len() {
        0 => Answer::call("call_1", "backend-tools__find_customer", json!({"id": 7})),
        1 => Answer::call("call_2", "backend-tools__find_customer", json!({"id": 8})),
        2 => Answer::call("call_3", "backend-tools__delete_customer", json!({"id": 7})),
        _ => Answer::text("Done."),
    });
    let project = project(&server, &service, "allowed_tool_names = [\"*\"]\nrequires_approval = true\n");
    let mut editor = Editor::start(&project, &["-m", "anthropic/scripted"]);
    let session = editor.new_session(&project.path(""));
    editor.answers_with("allow_always");
    assert_eq!(editor.prompt(&session, "find it"), "end_turn");
    let options = |number: usize| editor.questions[number]["params"]["options"].as_array().unwrap().clone();
    let always = |number: usize| options(number).into_iter().find(|option| option["kind"] == "allow_always").unwrap();
    // The rule from the first approval covers the second call of the same tool but no other tool.
    assert_eq!(editor.questions.len(), 2, "{:?}", editor.questions);
    assert!(always(0)["name"].as_str().unwrap().contains("find_customer"), "{:?}", options(0));
    assert!(always(1)["name"].as_str().unwrap().contains("delete_customer"), "{:?}", options(1));
    assert_eq!(service.requests().len(), 3, "{:?}", service.requests());
}

#[test]
fn a_call_without_an_answer_has_an_unknown_outcome_and_is_not_repeated() {
    for (reply, expected) in [
        (None, "OUTCOME_UNKNOWN"),
        (Some((502, "bad gateway")), "OUTCOME_UNKNOWN"),
        (Some((200, "<html>")), "OUTCOME_UNKNOWN"),
        (Some((503, "no worker")), "OUTCOME_UNKNOWN"),
        (Some((507, "full")), "OUTCOME_UNKNOWN"),
        (Some((408, "slow")), "OUTCOME_UNKNOWN"),
        (Some((429, "busy")), "TOOL_EXECUTION_FAILED"),
        (Some((501, "unknown")), "TOOL_EXECUTION_FAILED"),
        (Some((403, "no")), "TOOL_EXECUTION_FAILED"),
    ] {
        let service = Service::start(reply);
        let server = call("find_customer");
        project(&server, &service, "allowed_tool_names = [\"*\"]\n").aye(&["exec", "find it"]);
        let messages = server.request(1).messages();
        assert!(messages.contains(expected), "{reply:?}: {messages}");
        assert!(!messages.contains("token-of-the-service"), "{messages}");
        assert_eq!(service.requests().len(), 1, "{reply:?}");
    }
}

#[test]
fn a_crash_during_a_call_leaves_an_unknown_outcome_that_is_not_repeated() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let service = Service { address: listener.local_addr().unwrap(), requests: Arc::default() };
    let requests = service.requests.clone();
    thread::spawn(move || {
        let mut open = Vec::new();
        for stream in listener.incoming().flatten() {
            requests.lock().unwrap().push(read(&stream));
            open.push(stream);
        }
    });
    let server = call("find_customer");
    let project = project(&server, &service, "allowed_tool_names = [\"*\"]\n");
    let running = project.start(&["exec", "find it"]);
    assert!(wait_until(TIMEOUT, || service.requests().len() == 1));
    running.kill();
    project.aye(&["exec", "-c"]);
    assert_eq!(service.requests().len(), 1);
    let last = (1..=2).find_map(|number| server.requests().get(number).map(|request| request.messages()));
    assert!(last.is_none_or(|messages| messages.contains("OUTCOME_UNKNOWN")), "the model is told that it may have run");
}
