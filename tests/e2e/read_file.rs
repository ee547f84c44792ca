//! ReadFile: each kind of file, and images up to the request to the model.

use crate::support::{Answer, Output, Project, Server};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

/// Image of one grey pixel, in Base64.
const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNoAAAAggCBd81ytgAAAABJRU5ErkJggg==";

fn read(project: &Project, arguments: Value) -> Output {
    let mut words = vec!["tool", "call", "ReadFile", "--json", "--args"];
    let arguments = arguments.to_string();
    words.push(&arguments);
    project.aye(&words)
}

fn pixel() -> Vec<u8> {
    BASE64_STANDARD.decode(PIXEL).unwrap()
}

#[test]
fn each_file_type_is_read_in_its_own_format() {
    let notebook = json!({"cells": [{"cell_type": "markdown", "source": ["# Title"]}], "metadata": {}}).to_string();
    let project = Project::empty()
        .file("n.ipynb", &notebook)
        .bytes("picture", &pixel())
        .bytes("latin", b"caf\xE9\n")
        .bytes("wide", b"\xFF\xFEo\0n\0e\0\n\0t\0w\0o\0")
        .bytes("zip", b"PK\x03\x04\0\0")
        .file("long", &"x".repeat(2 << 20));
    let text = |arguments: Value| read(&project, arguments).exits(0).json()["outputText"].as_str().unwrap().to_owned();
    assert!(text(json!({"path": "n.ipynb"})).ends_with("[cell 1: markdown]\n# Title\n"));
    assert_eq!(text(json!({"path": "n.ipynb", "raw": true})), notebook);
    assert_eq!(text(json!({"path": "latin"})), "café\n");
    assert_eq!(text(json!({"path": "wide", "offset": 2})), "two");
    assert!(text(json!({"path": "zip"})).starts_with("Binary file, 6 bytes\n[zip, "));
    assert!(text(json!({"path": "long"})).ends_with("continue with `offset` 1 and `column` 1048577]"));
    assert_eq!(text(json!({"path": "long", "column": 2_097_150})), "xxx");
    let image = read(&project, json!({"path": "picture"})).exits(0).json();
    assert_eq!(image["outputText"], format!("Image, 1x1 png, {} bytes", pixel().len()));
    assert_eq!((&image["images"][0]["uri"], &image["images"][0]["mediaType"]), (&image["artifactUris"][0], &json!("image/png")));
}

fn reads_a_picture() -> [Answer; 2] {
    [Answer::call("c1", "ReadFile", json!({"path": "picture"})), Answer::text("Grey.")]
}

#[test]
fn images_are_sent_to_models_that_support_them() {
    let server = Server::new(reads_a_picture());
    let project = Project::with(&server).bytes("picture", &pixel());
    project.aye(&["exec", "-m", "anthropic/claude-sonnet-5", "look"]).exits(0);
    let messages = server.request(1).body["messages"].clone();
    let block = &messages[2]["content"][0];
    assert_eq!(block["type"], "tool_result", "{messages}");
    assert_eq!(block["content"][0]["text"], format!("Image, 1x1 png, {} bytes", pixel().len()));
    assert_eq!(block["content"][1]["source"], json!({"type": "base64", "media_type": "image/png", "data": PIXEL}));
}

#[test]
fn over_chat_completions_images_follow_the_results() {
    let server = Server::new(reads_a_picture());
    let project = Project::with_chat(&server).bytes("picture", &pixel());
    project.aye(&["exec", "-m", "openai-chat/gpt-5.5", "look"]).exits(0);
    let messages = server.request(1).body["messages"].clone();
    let last = messages.as_array().unwrap().last().unwrap();
    assert_eq!(last["role"], "user", "{messages}");
    assert_eq!(last["content"][1]["image_url"]["url"], format!("data:image/png;base64,{PIXEL}"));
}

#[test]
fn models_without_image_support_get_a_note_instead_of_the_image() {
    let server = Server::new(reads_a_picture());
    let project = Project::with_chat(&server).bytes("picture", &pixel());
    project.aye(&["exec", "-m", "openai-chat/words-only", "look"]).exits(0);
    let request = server.request(1);
    assert!(request.tool_results()[0].1.ends_with("[not shown: this model does not support images]"), "{}", request.messages());
    assert!(!request.messages().contains(PIXEL));
}

#[test]
fn images_are_sent_again_in_a_continued_session() {
    let server = Server::new(reads_a_picture());
    let project = Project::with(&server).bytes("picture", &pixel());
    project.aye(&["exec", "look"]).exits(0);
    std::fs::remove_file(project.path("picture")).unwrap();
    server.push(Answer::text("Still grey."));
    project.aye(&["exec", "-c", "look again"]).exits(0);
    assert!(server.request(2).messages().contains(PIXEL));
    std::fs::remove_dir_all(project.directory("data/artifacts")).unwrap();
    server.push(Answer::text("Gone."));
    project.aye(&["exec", "-c", "and now"]).exits(0);
    let messages = server.request(3).messages();
    assert!(!messages.contains(PIXEL) && messages.contains("no longer shown"), "{messages}");
}
