//! Tools of the first request, and tools that a model loads later.

use crate::support::{Answer, Project, Request, Server};
use serde_json::{Value, json};

/// Maximum size of the first request of a session in an empty project, in bytes.
const FIRST_BYTES: usize = 9 << 10;
const MODEL: [&str; 2] = ["-m", "anthropic/scripted"];
const FIRST: [&str; 9] =
    ["ReadFile", "ListDirectory", "Glob", "Grep", "WriteFile", "EditFile", "ApplyPatch", "RunCommand", "FindTools"];

fn names(request: &Request) -> Vec<String> {
    let tools = request.body["tools"].as_array().unwrap();
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

fn bytes(part: &Value) -> usize {
    part.to_string().len()
}

fn find(id: &str, query: &str) -> Answer {
    Answer::call(id, "FindTools", json!({"query": query}))
}

#[test]
fn the_first_request_in_an_empty_project_is_short() {
    let server = Server::new([Answer::text("Hello.")]);
    Project::with(&server).aye(&["exec", "hi"]).exits(0);
    let request = server.request(0);
    let whole: usize = request.header("content-length").unwrap().parse().unwrap();
    let tools = request.body["tools"].as_array().unwrap();
    for tool in tools {
        println!("{:5} {}", bytes(tool), tool["name"]);
    }
    let (all, system) = (bytes(&request.body["tools"]), bytes(&request.body["system"]));
    println!("{all:5} tools\n{system:5} system\n{whole:5} the whole body");
    assert_eq!(names(&request), FIRST);
    assert!(whole <= FIRST_BYTES, "{whole} bytes");
}

#[test]
fn tools_are_loaded_by_name_or_topic_and_stay_loaded_after_a_resume() {
    let stat = Answer::call("c2", "Stat", json!({"path": "a.txt"}));
    let answers = [find("c1", "Stat"), stat, find("c3", "fetch a web page"), Answer::text("Done."), Answer::text("Again.")];
    let server = Server::new(answers);
    let project = Project::with(&server).file("a.txt", "alpha\n");
    project.aye(&[&["exec"][..], &MODEL, &["look"]].concat()).exits(0);
    let with = |more: &[&str]| FIRST.iter().chain(more).map(|name| (*name).to_owned()).collect::<Vec<_>>();
    assert_eq!(names(&server.request(0)), FIRST);
    let (_, found) = server.request(1).tool_results().remove(0);
    assert!(found.starts_with("Stat: ") && found.contains("call them by these names"), "{found}");
    assert_eq!(names(&server.request(1)), with(&["Stat"]), "offered from the next request on");
    let (first, second) = (server.request(0).body["tools"].clone(), server.request(1).body["tools"].clone());
    assert_eq!(first.as_array().unwrap()[..], second.as_array().unwrap()[..FIRST.len()], "the list before it stays the same");
    assert_eq!(server.request(2).body["tools"], second, "nothing was loaded, and nothing changes");
    assert!(server.request(2).tool_results().last().unwrap().1.contains("6 bytes"));
    assert_eq!(names(&server.request(3)), with(&["Stat", "HttpRequest"]));
    project.aye(&[&["exec", "-c"][..], &MODEL, &["again"]].concat()).exits(0);
    assert_eq!(server.request(4).body["tools"], server.request(3).body["tools"], "as the journal says");
}

#[test]
fn a_tool_that_is_not_loaded_can_be_called_under_the_same_policy() {
    let copy = Answer::call("c1", "Copy", json!({"source": "a.txt", "destination": "b.txt"}));
    let wrong = copy.and_call("c2", "HashFile", json!({"where": "a.txt"}));
    let server = Server::new([wrong, Answer::text("Done.")]);
    let policy = "schema_version = 1\n[capabilities.\"File.Read\"]\n[capabilities.\"File.Write\"]\nrequires_approval = false\n";
    let project = Project::with(&server).file("a.txt", "alpha\n").policy(policy);
    project.aye(&[&["exec"][..], &MODEL, &["copy it"]].concat()).exits(0);
    assert_eq!(project.read("b.txt"), "alpha\n");
    let results = server.request(1).tool_results();
    assert!(results[1].1.contains("hint: load HashFile with FindTools"), "{results:?}");
    assert_eq!(server.request(0).body["tools"], server.request(1).body["tools"]);
    // The same call under a policy that denies writes.
    let server = Server::new([
        Answer::call("c1", "Copy", json!({"source": "a.txt", "destination": "b.txt"})),
        find("c2", "Copy, HashFile"),
        Answer::text("Done."),
    ]);
    let project = Project::with(&server).file("a.txt", "alpha\n").policy("schema_version = 1\n[capabilities.\"File.Read\"]\n");
    project.aye(&[&["exec"][..], &MODEL, &["copy it"]].concat());
    assert!(server.request(1).tool_results()[0].1.starts_with("POLICY_DENIED"), "{:?}", server.request(1).tool_results());
    assert!(!project.exists("b.txt"));
    assert!(
        names(&server.request(2)).contains(&"HashFile".to_owned()) && !names(&server.request(2)).contains(&"Copy".to_owned())
    );
}

#[test]
fn all_tools_can_be_offered_from_the_start_by_a_setting() {
    let server = Server::new([Answer::text("Hello."), Answer::text("Hello.")]);
    let project = Project::with(&server);
    project.aye(&[&["exec", "--set", "tools.on_demand=false"][..], &MODEL, &["hi"]].concat()).exits(0);
    let all = names(&server.request(0));
    assert!(all.len() == 33 && !all.contains(&"FindTools".to_owned()), "{all:?}");
    // With a list of enabled tools, the tool that loads other tools is also offered.
    let project = Project::with(&server).config("[tools]\nenabled = [\"ReadFile\", \"HttpRequest\"]\n");
    project.aye(&[&["exec"][..], &MODEL, &["hi"]].concat()).exits(0);
    assert_eq!(names(&server.request(1)), ["ReadFile", "FindTools"]);
    let description = server.request(1).body["tools"][1]["description"].as_str().unwrap().to_owned();
    assert!(description.contains("HttpRequest") && !description.contains("Copy"), "{description}");
}
