//! Gemini API, from the prompt to the second request.

use crate::support::{Answer, Project, Server};
use serde_json::json;

fn project(server: &Server) -> Project {
    let config = format!("[providers.gemini]\nbase_url = \"{}\"\n", server.url());
    Project::empty().env("GEMINI_API_KEY", "AIza-scripted").config(&config)
}

#[test]
fn calls_results_and_completion_work_over_gemini() {
    let read = Answer::empty().and("I look. ").and_call("k1", "ReadFile", json!({"path": "a.txt"}));
    let server = Server::new([read, Answer::text("It says hello.")]);
    let project = project(&server).file("a.txt", "hello from the file\n");
    let output = project.aye(&["exec", "--json", "-m", "gemini/gemini-3-scripted", "what is in a.txt"]).exits(0);
    let events = output.events();
    assert_eq!(events.only("task_completed")["text"], "It says hello.");
    assert_eq!(events.all("llm_request_completed").len(), 2);
    let (first, second) = (server.request(0), server.request(1));
    assert_eq!(first.path, "/v1beta/models/gemini-3-scripted:streamGenerateContent");
    assert_eq!(first.header("x-goog-api-key"), Some("AIza-scripted"));
    assert!(first.body["systemInstruction"]["parts"][0]["text"].is_string());
    assert!(first.body["tools"][0]["functionDeclarations"].as_array().is_some_and(|tools| tools.len() == 9));
    let results = second.tool_results();
    assert!(results.len() == 1 && results[0].0 == "k1" && results[0].1.contains("hello from the file"), "{results:?}");
    let call = &second.body["contents"][1]["parts"][1];
    assert_eq!((&call["functionCall"]["name"], &call["thoughtSignature"]), (&json!("ReadFile"), &json!("signed k1")));
}

#[test]
fn gemini_is_the_default_if_only_its_key_is_set_and_its_errors_are_printed() {
    let server = Server::new([Answer::error(404, "NOT_FOUND", "models/gemini-2.5-pro is not found for API version v1beta")]);
    let output = project(&server).aye(&["exec", "hello"]);
    assert!(output.stderr.contains("is not found for API version"), "{}", output.stderr);
    assert!(server.request(0).path.starts_with("/v1beta/models/gemini-"));
}
