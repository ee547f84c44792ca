//! What a model is told of the place before and while it works.

use crate::support::{Answer, Project, Server};
use serde_json::json;

const COMMIT: &str = "1a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d";

fn reads(path: &str, id: &str) -> Answer {
    Answer::call(id, "ReadFile", json!({"path": path}))
}

fn project(server: &Server) -> Project {
    Project::with(server)
        .file("AGENTS.md", "Be brief.\n")
        .file("src/AGENTS.md", "Tabs here.\n")
        .file("src/deep/CLAUDE.md", "And no comments.\n")
        .file("src/deep/a.rs", "fn a() {}\n")
        .file("src/b.rs", "fn b() {}\n")
}

#[test]
fn instructions_of_a_part_of_the_project_come_with_the_first_result_from_there() {
    let server = Server::new([reads("src/deep/a.rs", "c1"), reads("src/b.rs", "c2"), Answer::text("Read.")]);
    project(&server).aye(&["exec", "--trust", "look"]).exits(0);
    let request = server.request(1);
    assert!(request.body["system"].to_string().contains("Be brief."));
    let (_, first) = &request.tool_results()[0];
    assert!(first.contains("fn a() {}") && first.contains("Tabs here.") && first.contains("And no comments."), "{first}");
    assert!(first.find("Tabs here.") < first.find("And no comments."), "the outer ones first: {first}");
    let (_, second) = &server.request(2).tool_results()[1];
    assert!(second.contains("fn b() {}") && !second.contains("Tabs here."), "{second}");
}

#[test]
fn a_project_that_is_not_trusted_instructs_nobody() {
    let server = Server::new([reads("src/deep/a.rs", "c1"), Answer::text("Read.")]);
    project(&server).aye(&["exec", "look"]).exits(0);
    let request = server.request(1);
    assert!(!request.body["system"].to_string().contains("Be brief."));
    assert!(!request.tool_results()[0].1.contains("Tabs here."));
}

#[test]
fn the_model_knows_the_commit_and_what_is_under_way() {
    let server = Server::new([Answer::text("Hello.")]);
    let project = Project::with(&server)
        .file(".git/HEAD", "ref: refs/heads/main\n")
        .file(".git/refs/heads/main", COMMIT)
        .file(".git/MERGE_HEAD", COMMIT);
    project.aye(&["exec", "say hello"]).exits(0);
    let system = server.request(0).body["system"].to_string();
    assert!(system.contains("- Git: main at 1a2b3c4d5, a merge is under way"), "{system}");
}
