//! Local model servers, detected without configuration.

use crate::support::{Answer, Project, Server};

fn project(servers: &[&Server]) -> Project {
    let ports: Vec<String> = servers.iter().map(|server| server.port().to_string()).collect();
    Project::empty().config(&format!("[llm]\nlocal_ports = [{}]\n", ports.join(", ")))
}

#[test]
fn without_a_key_the_only_local_server_is_used_and_reported() {
    let server = Server::new([Answer::text("Hello there.")]);
    server.set_models(&["embed-1", "qwen3:8b"]);
    let output = project(&[&server]).aye(&["exec", "say hello"]).exits(0);
    assert_eq!(output.stdout.trim_end(), "Hello there.");
    for words in ["using local/qwen3:8b on", "a context window of 8192 tokens"] {
        assert!(output.stderr.contains(words), "{words}: {}", output.stderr);
    }
    assert_eq!(server.request(0).path, "/v1/chat/completions");
    assert_eq!(server.request(0).body["model"], "qwen3:8b");
}

#[test]
fn with_several_local_servers_the_user_must_choose() {
    let (one, two) = (Server::new([]), Server::new([Answer::text("I am two.")]));
    one.set_models(&["a"]);
    two.set_models(&["b:latest"]);
    let project = project(&[&one, &two]);
    let output = project.aye(&["exec", "hello"]).exits(5);
    assert!(output.stderr.contains("for example `-m local/a`"), "{}", output.stderr);
    let output = project.aye(&["exec", "-m", "local/b", "hello"]).exits(0);
    assert_eq!(output.stdout.trim_end(), "I am two.");
    assert_eq!(two.request(0).body["model"], "b:latest");
}

#[test]
fn a_configured_key_or_model_takes_precedence_over_local_servers() {
    let (found, asked) = (Server::new([]), Server::new([Answer::text("Hello.")]));
    found.set_models(&["a"]);
    let project = project(&[&found]).env("OPENAI_API_KEY", "sk-scripted").env("OPENAI_BASE_URL", &format!("{}/v1", asked.url()));
    let output = project.aye(&["exec", "hello"]).exits(0);
    assert!(!output.stderr.contains("local/") && found.requests().is_empty(), "{}", output.stderr);
    let set = self::project(&[&found]).aye(&["exec", "--set", "model.default=anthropic/x", "hello"]).exits(5);
    assert!(set.stderr.contains("ANTHROPIC_API_KEY") && found.requests().is_empty(), "{}", set.stderr);
}

#[test]
fn the_screen_uses_the_local_server_too() {
    let server = Server::new([Answer::text("Hello from here.")]);
    server.set_models(&["qwen3:8b"]);
    let project = project(&[&server]);
    let mut terminal = project.open(&[]);
    terminal.wait_for("local/qwen3:8b");
    terminal.prompt("say hello");
    terminal.wait_for("Hello from here.");
    assert_eq!(server.request(0).body["model"], "qwen3:8b");
}
