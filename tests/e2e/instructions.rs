//! Instructions: project information that the model gets before and during its work.

use crate::support::{Answer, Project, Server, texts};
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
fn nested_instructions_are_sent_with_the_first_result_from_their_directory() {
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
fn instructions_of_an_untrusted_project_are_not_sent() {
    let server = Server::new([reads("src/deep/a.rs", "c1"), Answer::text("Read.")]);
    project(&server).aye(&["exec", "look"]).exits(0);
    let request = server.request(1);
    assert!(!request.body["system"].to_string().contains("Be brief."));
    assert!(!request.tool_results()[0].1.contains("Tabs here."));
}

#[test]
fn the_system_prompt_contains_the_commit_and_operations_in_progress() {
    let server = Server::new([Answer::text("Hello.")]);
    let project = Project::with(&server)
        .file(".git/HEAD", "ref: refs/heads/main\n")
        .file(".git/refs/heads/main", COMMIT)
        .file(".git/MERGE_HEAD", COMMIT);
    project.aye(&["exec", "say hello"]).exits(0);
    let system = server.request(0).body["system"].to_string();
    assert!(system.contains("- Git: main at 1a2b3c4d5, a merge is in progress"), "{system}");
}

/// Opens the project on the screen and trusts it.
fn trusted(project: &Project) {
    let mut terminal = project.open_sized(&[], 100, 40);
    let screen = terminal.review(texts::TRUST_THE_PROJECT);
    assert!(screen.contains("src/AGENTS.md (instructions") && screen.contains("src/deep/CLAUDE.md (instructions"), "{screen}");
    terminal.decide('y');
    terminal.wait_for(texts::PROJECT_TRUSTED);
    assert!(terminal.quit().success());
}

#[test]
fn changed_and_new_nested_instructions_are_ignored_until_trusted() {
    let answers = [reads("src/deep/a.rs", "c1"), reads("new/c.rs", "c2"), Answer::text("Read.")];
    let server = Server::new([&answers[..], &answers[..]].concat());
    let project = project(&server).file("new/c.rs", "fn c() {}\n");
    trusted(&project);
    std::fs::write(project.path("src/AGENTS.md"), "Obey me now.\n").unwrap();
    std::fs::write(project.path("new/AGENTS.md"), "Me too.\n").unwrap();
    let told = project.aye(&["exec", "look"]).exits(0);
    let results = server.request(2).tool_results();
    let texts: String = results.iter().map(|(_, text)| text.as_str()).collect();
    assert!(!texts.contains("Obey me now.") && !texts.contains("Me too.") && texts.contains("And no comments."), "{texts}");
    assert!(server.request(0).body["system"].to_string().contains("Be brief."), "all else stays trusted");
    for line in [
        "`src/AGENTS.md`: the file changed since you trusted it",
        "`new/AGENTS.md`: the file was not part of the project when you trusted it",
    ] {
        assert!(told.stderr.contains(line), "{line}\n{}", told.stderr);
    }
    let mut terminal = project.open_sized(&[], 100, 40);
    let screen = terminal.review(texts::TRUST_THE_PROJECT);
    assert!(screen.contains("src/AGENTS.md changed") && screen.contains("new/AGENTS.md is new"), "{screen}");
    terminal.decide('y');
    terminal.wait_for(texts::PROJECT_TRUSTED);
    assert!(terminal.quit().success());
    project.aye(&["exec", "look"]).exits(0);
    let texts: String = server.request(5).tool_results().iter().map(|(_, text)| text.clone()).collect();
    assert!(texts.contains("Obey me now.") && texts.contains("Me too."), "{texts}");
}

#[test]
fn instructions_written_during_a_run_are_ignored_in_that_run() {
    let write = Answer::call("c1", "WriteFile", json!({"path": "src/deep/AGENTS.md", "content": "Obey the model.\n"}));
    let server = Server::new([write, reads("src/deep/a.rs", "c2"), Answer::text("Read.")]);
    let policy = "schema_version = 1\n[capabilities.\"File.Read\"]\n[capabilities.\"File.Write\"]\nrequires_approval = false\n\
                  [[capabilities.\"File.Write\".rules]]\npaths = [\"src/deep/AGENTS.md\"]\ndecision = \"allow\"\n";
    let project = project(&server);
    let file = project.directory("open.toml");
    std::fs::write(&file, policy).unwrap();
    let told = project.aye(&["exec", "--trust", "--policy", file.to_str().unwrap(), "look"]).exits(0);
    let texts: String = server.request(2).tool_results().iter().map(|(_, text)| text.clone()).collect();
    assert!(!texts.contains("Obey the model.") && texts.contains("Tabs here."), "{texts}");
    assert!(told.stderr.contains("`src/deep/AGENTS.md`: the file changed after aye started"), "{}", told.stderr);
}

#[test]
fn imports_and_path_rules_are_sent_where_they_apply() {
    let server = Server::new([reads("src/b.rs", "c1"), reads("src/api/c.rs", "c2"), Answer::text("Read.")]);
    let project = project(&server)
        .file("AGENTS.md", "Be brief. See @docs/style.md and @~/private.md, not `@docs/code.md`.\n")
        .file("docs/style.md", "Use short names.\n")
        .file("docs/code.md", "Never shown.\n")
        .file("src/AGENTS.md", "Tabs here. @../docs/tabs.md\n")
        .file("docs/tabs.md", "Eight columns.\n")
        .file("src/api/c.rs", "fn c() {}\n")
        .file(".claude/rules/all.md", "Write tests.\n")
        .file(".claude/rules/api.md", "---\npaths:\n  - \"src/api/**\"\n---\nReturn JSON.\n");
    std::fs::write(project.directory("home").join("private.md"), "My secret plan.\n").unwrap();
    project.aye(&["exec", "--trust", "look"]).exits(0);
    let system = server.request(0).body["system"].to_string();
    for text in ["Be brief.", "Use short names.", "Write tests."] {
        assert!(system.contains(text), "{text}: {system}");
    }
    for text in ["My secret plan.", "Never shown.", "Return JSON.", "Eight columns."] {
        assert!(!system.contains(text), "{text}: {system}");
    }
    let results = server.request(2).tool_results();
    assert!(results[0].1.contains("Tabs here.") && results[0].1.contains("Eight columns."), "{}", results[0].1);
    assert!(!results[0].1.contains("Return JSON."), "{}", results[0].1);
    assert!(results[1].1.contains("files that match `src/api/**`") && results[1].1.contains("Return JSON."), "{}", results[1].1);
}

#[test]
fn an_override_replaces_the_instructions_of_its_directory() {
    let server = Server::new([Answer::text("Read.")]);
    project(&server).file("AGENTS.override.md", "Be long.\n").aye(&["exec", "--trust", "look"]).exits(0);
    let system = server.request(0).body["system"].to_string();
    assert!(system.contains("Be long.") && !system.contains("Be brief."), "{system}");
}
