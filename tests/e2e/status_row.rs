//! Status row: workspace information and user-configured items.

use crate::support::{Answer, Project, Server};
use serde_json::json;
use std::process::Command;

fn git(project: &Project, arguments: &[&str]) -> bool {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=A", "-c", "user.email=a@b"]).args(arguments).current_dir(project.path(""));
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
    command.output().is_ok_and(|output| output.status.success())
}

const COMMAND: &str = r#"[status]
items = ["branch", "command", "weather", "directory"]
command = "printf '\\033[31m%s files\\033[0m, aye %s\\nmore\\n' $(ls | wc -l) \"$AYE\""
"#;

#[test]
fn the_status_row_counts_changed_files_and_refreshes_its_command_after_writes() {
    let write = json!({"path": "new.txt", "content": "one\n"});
    let server = Server::new([Answer::call("call_1", "WriteFile", write), Answer::text("Finished the work.")]);
    let project = Project::with(&server).file("a.txt", "1\n").allowing_everything().config(COMMAND);
    if !(git(&project, &["init", "-q", "-b", "main"])
        && git(&project, &["add", "."])
        && git(&project, &["commit", "-q", "-m", "one"]))
    {
        println!("skipped: there is no git");
        return;
    }
    let mut terminal = project.open_sized(&["--trust"], 140, 30);
    terminal.wait_for("unknown item `weather`");
    terminal.wait_for("main │ 1 files, aye 1 │");
    terminal.prompt("make it");
    terminal.wait_for("Finished the work.");
    terminal.wait_for("main ±1 │ 2 files, aye 1 │");
    assert!(!terminal.screen().contains("more"));
    assert!(terminal.quit().success());
}

#[test]
fn a_project_cannot_set_the_status_command() {
    let server = Server::new([Answer::text("Finished the work.")]);
    let command = "[status]\ncommand = \"touch ran; echo here I am\"\n";
    let project = Project::with(&server).file(".aye/config.toml", command).file("AGENTS.md", "x\n");
    let mut terminal = project.open_sized(&["--trust"], 140, 30);
    terminal.prompt("do it");
    terminal.wait_for("Finished the work.");
    assert!(!terminal.screen().contains("here I am"));
    assert!(terminal.quit().success());
    assert!(!project.exists("ran"));
}
