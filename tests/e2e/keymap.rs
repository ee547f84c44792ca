//! Custom key bindings: they work on the screen, and errors in their file are reported.

use crate::support::{Answer, Project, Server, texts};
use std::fs;

fn with_keys(server: &Server, keys: &str) -> Project {
    let project = Project::with(server);
    fs::write(project.directory("config").join("keymap.toml"), keys).unwrap();
    project
}

#[test]
fn a_custom_key_sends_and_enter_inserts_a_newline() {
    let server = Server::new([Answer::text("Both lines came.")]);
    let project = with_keys(&server, "[composer]\nsend = \"ctrl+e\"\nnew-line = [\"enter\", \"ctrl+j\"]\nline-end = []\n");
    let mut terminal = project.open_sized(&["--trust"], 100, 30);
    terminal.wait_for("ctrl+e send");
    terminal.type_text("one", 5);
    terminal.enter();
    terminal.type_text("two", 5);
    terminal.wait_that("two lines", |screen| screen.contains("one") && screen.contains("two"));
    terminal.send("\x05");
    terminal.wait_for("Both lines came.");
    assert!(server.request(0).messages().contains("one\\ntwo"), "{}", server.request(0).messages());
    assert!(terminal.quit().success());
    terminal.assert_restored();
}

#[test]
fn an_invalid_key_file_is_reported_on_screen_and_by_doctor_and_the_rest_applies() {
    let server = Server::new([]);
    let keys =
        "[composer]\npalete = \"ctrl+e\"\nbrowse = ctrl+x\n[question]\nnext = \"y\"\n[composr]\n[list]\ndown = \"ctrl+y\"\n";
    let project = with_keys(&server, &format!("{keys}[composer.x]\n"));
    let mut terminal = project.open_sized(&["--trust"], 120, 36);
    let screen = terminal.wait_for("no action `palete`; did you mean `palette`?");
    for words in
        ["keymap.toml", "line 3:", "line 5: `y` types text", "line 6: unknown section `[composr]`; did you mean `composer`?"]
    {
        assert!(screen.contains(words), "{words}\n{screen}");
    }
    terminal.type_text("/keys erase", 5);
    terminal.enter();
    terminal.wait_for("filter: erase");
    terminal.send("\x15");
    terminal.type_text("next row", 5);
    terminal.wait_that("the key that holds", |screen| screen.contains("ctrl+y") && screen.contains("next row"));
    terminal.send("\x1b");
    terminal.wait_for(texts::ENTER_SEND);
    assert!(terminal.quit().success());
    let found = project.aye(&["doctor", "--json"]).json();
    let check = found["checks"].as_array().unwrap().iter().find(|check| check["name"] == "keys").unwrap();
    assert_eq!(check["state"], "missing");
    assert!(check["says"].as_str().unwrap().contains("palete"), "{check}");
    assert!(project.aye(&["config", "path"]).exits(0).stdout.contains("keymap.toml"));
}

#[test]
fn changes_to_the_keymap_file_apply_immediately() {
    let server = Server::new([Answer::text("It was sent.")]);
    let project = Project::with(&server);
    let file = project.directory("config").join("keymap.toml");
    let mut terminal = project.open_sized(&["--trust"], 120, 30);
    terminal.wait_for(texts::ENTER_SEND);
    fs::write(&file, "[composer]\nsend = \"ctrl+e\"\nline-end = []\nnew-line = \"enter\"\n").unwrap();
    terminal.wait_for("ctrl+e send");
    terminal.type_text("hello", 5);
    terminal.send("\x05");
    terminal.wait_for("It was sent.");
    fs::write(&file, "[composer]\nsnd = \"ctrl+e\"\n").unwrap();
    terminal.wait_for("no action `snd`");
    terminal.wait_for(texts::ENTER_SEND);
    fs::remove_file(&file).unwrap();
    terminal.wait_for("the built-in keys apply");
    assert!(terminal.quit().success());
}
