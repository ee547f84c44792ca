//! Files mentioned in a prompt with `@`.

use crate::support::{Answer, Project, Server};
use base64::Engine;

/// Grey image of one pixel, in Base64.
const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg==";

fn answers() -> [Answer; 1] {
    [Answer::text("Seen.")]
}

#[test]
fn mentioned_files_are_sent_with_the_prompt_which_is_shown_as_typed() {
    let server = Server::new(answers());
    let project = Project::with(&server).file("src/a.rs", "one\ntwo\nthree\nfour\n").file("my notes.md", "# Notes\n");
    let prompt = "compare @src/a.rs#L2-3, @\"my notes.md\" and me@example.org";
    let output = project.aye(&["exec", "--json", prompt]).exits(0);
    let messages = server.request(0).body["messages"].clone();
    let content = messages[0]["content"].as_array().unwrap();
    assert_eq!(content[0]["text"], prompt);
    assert!(content[1]["text"].as_str().unwrap().contains("[Content of `@src/a.rs`]"), "{messages}");
    let lines = content[1]["text"].as_str().unwrap();
    assert!(lines.contains("two") && lines.contains("three") && !lines.contains("one") && !lines.contains("four"), "{lines}");
    assert!(content[2]["text"].as_str().unwrap().contains("# Notes"), "{messages}");
    assert_eq!(content.len(), 3);
    assert_eq!(output.events().only("task_started")["prompt"], prompt);
}

#[test]
fn mentioned_images_are_sent_to_the_model() {
    let server = Server::new(answers());
    let picture = base64::prelude::BASE64_STANDARD.decode(PIXEL).unwrap();
    let project = Project::with(&server).bytes("shot.png", &picture);
    project.aye(&["exec", "-m", "anthropic/claude-sonnet-5", "what is on @shot.png?"]).exits(0);
    let messages = server.request(0).body["messages"].clone();
    assert_eq!(messages[0]["content"][2]["source"]["data"], PIXEL, "{messages}");
}

#[test]
fn mentioned_files_that_need_approval_are_not_sent() {
    let server = Server::new(answers());
    let policy = "schema_version = 1\n[capabilities.\"File.Read\"]\nallowed_paths = [\"${workspace}\"]\nblocked_paths = [\"**/private/**\"]\n";
    let project = Project::with(&server).file("private/plan.md", "of nobody else\n").policy(policy);
    let outside = project.directory("home").join("letter.txt");
    std::fs::write(&outside, "dear diary").unwrap();
    let prompt = format!("look at @private/plan.md, @{} and @src/gone.rs", outside.display());
    let output = project.aye(&["exec", "--json", &prompt]).exits(0);
    let sent = server.request(0).messages();
    assert!(!sent.contains("of nobody else") && !sent.contains("dear diary"), "{sent}");
    let notices: Vec<_> = output.events().all("notice").iter().map(|notice| notice["message"].to_string()).collect();
    assert_eq!(notices.iter().filter(|notice| notice.contains("was not attached")).count(), 3, "{notices:?}");
}
