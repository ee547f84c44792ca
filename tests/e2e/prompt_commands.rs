//! Slash commands in a prompt on the command line.

use crate::support::{Answer, Project, Server};

fn server() -> Server {
    Server::with_responder(|_| Answer::text("Done."))
}

/// Creates a project whose user has a command `/fix`.
fn with_command(server: &Server) -> Project {
    let project = Project::with(server);
    let commands = project.directory("config").join("commands");
    std::fs::create_dir(&commands).unwrap();
    std::fs::write(commands.join("fix.md"), "---\nargument-hint: <number>\nmodel: x\n---\nFix issue $1 in @notes.txt.").unwrap();
    project.file("notes.txt", "12: it leaks\n")
}

/// Returns the user's text in the last request.
fn prompt(server: &Server) -> String {
    let messages = server.requests().last().unwrap().body["messages"].clone();
    let last = messages.as_array().unwrap().last().unwrap().clone();
    last["content"].to_string()
}

#[test]
fn user_commands_are_expanded_in_every_kind_of_run() {
    let server = server();
    let project = with_command(&server);
    for arguments in [&["exec", "/fix 12"][..], &["-p", "/fix 12"], &["exec", "-c", "/fix 12"]] {
        project.aye(arguments).exits(0).says(&["`model` in the front matter has no effect"]);
        let prompt = prompt(&server);
        assert!(prompt.contains("Fix issue 12 in @notes.txt.") && prompt.contains("12: it leaks"), "{arguments:?}: {prompt}");
    }
    let mut terminal = project.open(&["/fix 13"]);
    terminal.wait_for("Done.");
    assert!(prompt(&server).contains("Fix issue 13"), "{}", prompt(&server));
    terminal.quit();
}

#[test]
fn project_commands_require_trust() {
    let server = server();
    let project = Project::with(&server).file(".aye/commands/lint.md", "Lint $ARGUMENTS");
    project.aye(&["exec", "/lint all"]).exits(2).says(&["unknown command `/lint`", "which is not trusted", "--trust"]);
    assert!(server.requests().is_empty());
    project.aye(&["exec", "--trust", "/lint all"]).exits(0);
    assert!(prompt(&server).contains("Lint all"));
}

#[test]
fn unknown_commands_are_errors_and_paths_are_sent() {
    let server = server();
    let project = with_command(&server);
    for (arguments, parts) in [
        (&["exec", "/fxi 12"][..], &["error: unknown command `/fxi`", "hint: did you mean `/fix`?", "hint: put `--` before"][..]),
        (&["-p", "/frobnicate"], &["unknown command `/frobnicate`"]),
        (&["exec", "/fix"], &["missing argument of `/fix`", "usage: /fix <number>"]),
        (&["exec", "/compact"], &["`/compact` is a command of the full-screen UI"]),
        (&["exec", "/model x"], &["hint: pass `-m PROVIDER/NAME`"]),
    ] {
        project.aye(arguments).exits(2).says(parts);
    }
    assert!(server.requests().is_empty());
    for arguments in [&["exec", "/etc/hosts: what is it?"][..], &["exec", "/tmp"], &["exec", "--", "/fxi 12"]] {
        project.aye(arguments).exits(0);
        assert!(prompt(&server).contains(arguments.last().unwrap()), "{arguments:?}: {}", prompt(&server));
    }
    project.aye_with_input(&["exec", "-"], "/fxi 12").exits(0);
    assert!(prompt(&server).contains("/fxi 12"), "standard input is sent as it is");
}

#[test]
fn an_unknown_slash_command_is_an_error_and_a_screen_command_becomes_the_draft() {
    let server = server();
    let project = with_command(&server);
    let mut terminal = project.open(&["/fxi 12"]);
    terminal.wait_for("did you mean `/fix`?");
    assert!(!terminal.finish().success());
    let mut terminal = project.open(&["/compact"]);
    terminal.wait_for("/compact");
    terminal.wait_for("enter run");
    assert!(server.requests().is_empty());
    terminal.kill();
}
