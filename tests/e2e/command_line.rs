//! The command line: piped input, words that look like commands, help, and the log.

use crate::support::{Answer, Project, Server, texts};
use serde_json::json;
use std::fs::File;
use std::process::{Output, Stdio};

fn hello() -> Answer {
    Answer::text("Hello ").and("there.")
}

/// Returns the user's text in the first request.
fn prompt(server: &Server) -> String {
    let content = &server.request(0).body["messages"][0]["content"];
    content.as_str().or_else(|| content[0]["text"].as_str()).unwrap().to_owned()
}

fn run_with(project: &Project, arguments: &[&str], input: Stdio) -> Output {
    project.command(arguments).stdin(input).output().unwrap()
}

#[test]
fn piped_input_is_attached_to_the_prompt() {
    for arguments in [&["exec", "explain"][..], &["-p", "explain"], &["exec", "--json", "explain"]] {
        let server = Server::new([hello()]);
        let output = Project::with(&server).aye_with_input(arguments, "line 1\nerror: broken\n").exits(0);
        assert_eq!(prompt(&server), "explain\n\n<stdin>\nline 1\nerror: broken\n</stdin>", "{arguments:?}");
        assert!(output.stderr.contains("attached standard input (21 bytes)"), "{}", output.stderr);
    }
}

#[test]
fn a_file_on_stdin_is_attached_and_its_mentions_attach_no_other_file() {
    let server = Server::new([hello()]);
    let project = Project::with(&server).file("log.txt", "see @secret.txt\n").file("secret.txt", "alpha beta\n");
    let output = run_with(&project, &["exec", "explain"], File::open(project.path("log.txt")).unwrap().into());
    assert!(output.status.success(), "{output:?}");
    assert_eq!(prompt(&server), "explain\n\n<stdin>\nsee @secret.txt\n</stdin>");
    assert!(!server.request(0).messages().contains("alpha beta"));
}

#[test]
fn empty_input_leaves_the_prompt_unchanged() {
    for input in [Some(""), Some("\n"), None] {
        let server = Server::new([hello()]);
        let project = Project::with(&server);
        match input {
            Some(input) => drop(project.aye_with_input(&["exec", "explain"], input).exits(0)),
            None => drop(project.aye(&["exec", "explain"]).exits(0)),
        }
        assert_eq!(prompt(&server), "explain", "{input:?}");
    }
    let server = Server::new([hello()]);
    let project = Project::with(&server);
    let line = format!("exec '{}' exec explain <&-", env!("CARGO_BIN_EXE_aye"));
    let mut shell = std::process::Command::new("bash");
    shell.args(["-c", &line]).current_dir(project.path("")).env_clear().envs(project.environment());
    assert!(shell.output().unwrap().status.success());
    assert_eq!(prompt(&server), "explain");
}

#[test]
fn input_without_a_prompt_becomes_the_prompt() {
    for arguments in [&["exec"][..], &["-p"], &["exec", "-"]] {
        let server = Server::new([hello()]);
        Project::with(&server).aye_with_input(arguments, "say hello\n  twice\n").exits(0);
        assert_eq!(prompt(&server).trim_end(), "say hello\n  twice", "{arguments:?}");
    }
    for arguments in [&["exec"][..], &["-p"]] {
        let output = Project::empty().aye(arguments).exits(2);
        assert!(output.stderr.contains("missing prompt") && output.stderr.contains("hint:"), "{}", output.stderr);
    }
}

#[test]
fn piped_input_is_added_to_a_continued_session() {
    let server = Server::new([hello(), hello(), hello()]);
    let project = Project::with(&server);
    project.aye(&["exec", "remember blue"]).exits(0);
    project.aye_with_input(&["exec", "-c", "and this?"], "green\n").exits(0);
    assert!(
        server.request(1).messages().contains("and this?\\n\\n<stdin>\\ngreen\\n</stdin>"),
        "{}",
        server.request(1).messages()
    );
    project.aye_with_input(&["exec", "-c"], "and now\n").exits(0);
    assert!(server.request(2).messages().contains("and now"));
}

#[test]
fn an_idle_pipe_is_reported_and_does_not_stop_the_run() {
    let server = Server::new([hello()]);
    let project = Project::with(&server);
    let mut command = project.command(&["exec", "explain"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // Keeps stdin open until the run has ended.
    let idle = child.stdin.take();
    let output = child.wait_with_output().unwrap();
    drop(idle);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{stderr}");
    assert!(stderr.contains("reading standard input") && stderr.contains("`--no-stdin`"), "{stderr}");
    assert_eq!(prompt(&server), "explain");
}

#[test]
fn long_input_is_truncated_with_a_note_and_available_in_full_to_the_model() {
    let secret = "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";
    let lines = (0..60_000).map(|line| format!("line {line} of the log\n")).collect::<Vec<_>>().concat();
    let (first, second) = lines.split_at(lines.len() / 2);
    let input = format!("{first}\ntoken {secret}\nthe middle\n{second}");
    let server = Server::new([hello()]);
    let project = Project::with(&server);
    let output = project.aye_with_input(&["exec", "explain"], &input).exits(0);
    assert!(output.stderr.contains("too long for the prompt") && output.stderr.contains("artifact:"), "{}", output.stderr);
    let prompt = prompt(&server);
    assert!(prompt.starts_with("explain\n\n<stdin>\nline 0 of") && prompt.ends_with("line 59999 of the log\n</stdin>"));
    assert!(prompt.len() < 300_000 && !prompt.contains("the middle"), "{}", prompt.len());
    let uri = prompt.split("All of it is in ").nth(1).unwrap().split(';').next().unwrap().to_owned();
    let arguments = json!({"path": uri, "pattern": "the middle|^token"}).to_string();
    let found = project.aye(&["tool", "call", "Grep", "--args", &arguments, "--json"]).exits(0).stdout;
    assert!(found.contains("the middle") && found.contains("token") && !found.contains(secret), "{found}");
}

#[test]
fn oversized_input_is_rejected_and_no_stdin_ignores_the_input() {
    let input = "x".repeat((10 << 20) + 1);
    let server = Server::new([hello()]);
    let project = Project::with(&server);
    for arguments in [&["exec", "explain"][..], &["exec", "-"]] {
        project.aye_with_input(arguments, &input).exits(2).says(&["larger than 10.0 MB", "hint: pass `--no-stdin`"]);
    }
    assert!(server.requests().is_empty());
    let output = project.aye_with_input(&["exec", "--no-stdin", "explain"], "not for the model").exits(0);
    assert_eq!(prompt(&server), "explain", "{}", output.stderr);
}

#[test]
fn options_of_other_agents_work_if_equivalent_and_are_explained_otherwise() {
    let server = Server::new([hello()]);
    let project = Project::with(&server);
    let directory = project.path("").display().to_string();
    let line = ["-p", "--permission-mode", "plan", "--max-turns=3", "--cd", &directory, "hello"];
    project.aye(&line).exits(0);
    assert_eq!(prompt(&server), "hello");
    for (arguments, hint) in [
        (&["--yolo", "hi"][..], texts::NO_BYPASS),
        (&["-p", "--dangerously-skip-permissions", "hi"], texts::NO_BYPASS),
        (&["exec", "--sandbox", "danger-full-access", "hi"], "the policy sets the sandbox"),
        (&["--permission-mode", "bypassPermissions"], "`--mode plan`"),
    ] {
        project.aye(arguments).exits(2).says(&["hint: ", hint]);
    }
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn secrets_in_piped_input_are_redacted() {
    let secret = "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";
    let server = Server::new([hello()]);
    Project::with(&server).aye_with_input(&["exec", "explain"], &format!("token {secret}\n")).exits(0);
    assert!(!prompt(&server).contains(secret), "{}", prompt(&server));
}

#[test]
fn non_utf8_input_is_decoded_and_binary_input_is_rejected() {
    let input = |bytes: &[u8]| {
        let project = Project::empty().bytes("input", bytes);
        (File::open(project.path("input")).unwrap(), project)
    };
    let server = Server::new([hello()]);
    let project = Project::with(&server);
    let output = run_with(&project, &["exec", "explain"], input(b"gr\xFC\xDFe\n").0.into());
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("not UTF-8"));
    assert_eq!(prompt(&server), "explain\n\n<stdin>\ngrüße\n</stdin>");
    for arguments in [&["exec", "explain"][..], &["exec", "-"]] {
        let server = Server::new([]);
        let output = run_with(&Project::with(&server), arguments, input(b"\x7fELF\x02\x01\x01\0\0\0\0").0.into());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("binary data"), "{output:?}");
        assert!(server.requests().is_empty());
    }
}

#[test]
fn command_words_are_not_sent_to_a_model() {
    let server = Server::new([hello()]);
    let project = Project::with(&server);
    for (arguments, hint) in [
        (&["login"][..], "aye auth login"),
        (&["-p", "init"], "/init"),
        (&["exec", "update"], "run `aye update`"),
        (&["exec", "doctor"], "aye doctor"),
        (&["modles"], "aye models"),
    ] {
        let output = project.aye(arguments).exits(2);
        assert!(output.stderr.contains(hint) && output.stderr.contains("-- "), "{arguments:?}: {}", output.stderr);
    }
    assert!(server.requests().is_empty());
    project.aye(&["exec", "--", "login"]).exits(0);
    assert_eq!(prompt(&server), "login");
}

#[test]
fn help_is_a_command() {
    let project = Project::empty();
    let all = project.aye(&["help"]).exits(0).stdout;
    assert_eq!(all, project.aye(&["--help"]).exits(0).stdout);
    let of_exec = project.aye(&["help", "exec"]).exits(0).stdout;
    assert_eq!(of_exec, project.aye(&["exec", "--help"]).exits(0).stdout);
    let wrong = project.aye(&["help", "frobnicate"]).exits(2).stderr;
    assert!(wrong.contains("unrecognized subcommand"), "{wrong}");
}

#[test]
fn verbose_logging_writes_nothing_to_the_terminal() {
    let server = Server::new([hello()]);
    let output = Project::with(&server).aye(&["-vvv", "exec", "say hello"]).exits(0);
    for word in ["warning", "static", "directive"] {
        assert!(!output.stderr.contains(word), "{}", output.stderr);
    }
}
