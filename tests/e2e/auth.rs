//! API keys saved by `aye auth`: their storage, use in requests, and protection against disclosure.

use crate::support::{Answer, Project, Server, texts};
use serde_json::json;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

const KEY: &str = "k7-Zq4vT9xWm2LbR8sYd3NfHc6";
const MODEL: &str = "anthropic/scripted";

/// Disables the keyring.
fn without_keyring(project: Project) -> Project {
    let project = project.env("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nonexistent/bus");
    if cfg!(target_os = "linux") { project } else { project.config("[auth]\nkeyring = false\n") }
}

fn project(server: &Server) -> Project {
    without_keyring(Project::empty().env("ANTHROPIC_BASE_URL", &server.url()))
}

fn file(project: &Project) -> PathBuf {
    project.directory("config").join("credentials.toml")
}

fn log_in(project: &Project) {
    let output = project.aye_with_input(&["auth", "login", "anthropic", "--key-stdin"], &format!("{KEY}\n")).exits(0);
    let place = file(project);
    assert!(
        output.stdout.contains("saved the key for anthropic in ") && output.stdout.contains(&place.display().to_string()),
        "{}",
        output.stdout
    );
    assert!(!output.stdout.contains(KEY) && !output.stderr.contains(KEY));
    assert_eq!(fs::metadata(&place).unwrap().permissions().mode() & 0o777, 0o600);
}

/// Returns the contents of all files below a directory as one text.
fn everything(directory: &Path) -> String {
    let entries = fs::read_dir(directory).unwrap().flatten().map(|entry| entry.path());
    let text = |path: PathBuf| {
        if path.is_dir() { everything(&path) } else { String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned() }
    };
    entries.map(text).collect()
}

#[test]
fn a_saved_key_is_used_never_disclosed_and_can_be_removed() {
    let server = Server::new([
        Answer::call("call_1", "RunCommand", json!({"command": "cat ../config/credentials.toml; env"})),
        Answer::text("Done."),
        Answer::error(401, "authentication_error", &format!("there is no key {KEY}")),
    ]);
    let project = project(&server).allowing_everything();
    log_in(&project);
    let said = project.aye(&["exec", "-m", MODEL, "--json", "-v", "look around"]).exits(3);
    assert_eq!(server.request(0).header("x-api-key"), Some(KEY));
    let results = server.request(1).tool_results();
    assert!(!results[0].1.contains(KEY), "{results:?}");
    let refused = project.aye(&["exec", "-m", MODEL, &format!("my key is {KEY}")]).exits(5);
    let bodies: String = server.requests().iter().map(|request| request.body.to_string()).collect();
    let data = everything(&project.directory("data"));
    for text in [&said.stdout, &said.stderr, &refused.stdout, &refused.stderr, &bodies, &data] {
        assert!(!text.contains(KEY), "{text}");
    }
    project.aye(&["auth", "logout", "anthropic"]).exits(0);
    assert!(!file(&project).exists());
    let without = without_keyring(Project::empty()).aye(&["exec", "-m", MODEL, "hello"]).exits(5);
    assert!(without.stderr.contains("aye auth login anthropic"), "{}", without.stderr);
}

#[test]
fn tools_cannot_read_the_credentials_file() {
    let server = Server::new([Answer::text("never asked for")]);
    let project = project(&server);
    log_in(&project);
    let arguments = json!({"path": file(&project)}).to_string();
    let output = project.aye(&["tool", "call", "ReadFile", "--yes", "--json", "--args", &arguments]);
    assert_ne!(output.code, 0);
    assert!(!output.stdout.contains(KEY) && !output.stderr.contains(KEY), "{}", output.stdout);
}

#[test]
fn environment_keys_override_saved_keys_and_status_shows_the_source() {
    let server = Server::new([Answer::text("Hello.")]);
    let project = project(&server);
    log_in(&project);
    let table = project.aye(&["auth", "status"]).exits(0).stdout;
    assert!(table.contains("anthropic") && table.contains("in the file") && table.contains("(…fHc6)"), "{table}");
    assert!(table.contains("or set OPENAI_API_KEY") && !table.contains(KEY), "{table}");
    let project = project.env("ANTHROPIC_API_KEY", "sk-ant-of-the-environment-1234");
    project.aye(&["exec", "-m", MODEL, "hello"]).exits(0);
    assert_eq!(server.request(0).header("x-api-key"), Some("sk-ant-of-the-environment-1234"));
    let status = project.aye(&["auth", "status", "--json"]).exits(0).json();
    let row = status.as_array().unwrap().iter().find(|row| row["provider"] == "anthropic").unwrap();
    assert_eq!(row, &json!({"provider": "anthropic", "source": "environment", "place": "ANTHROPIC_API_KEY", "endsWith": "1234"}));
}

#[test]
fn status_contacts_the_provider_only_with_check() {
    let server = Server::new([]).with_model_list(&json!({"data": [{"id": "claude-x", "type": "model"}], "has_more": false}));
    let project = project(&server);
    log_in(&project);
    project.aye(&["auth", "status"]).exits(0);
    assert_eq!(server.lists().len(), 0);
    let table = project.aye(&["auth", "status", "--check"]).exits(0).stdout;
    assert!(table.contains("accepted"), "{table}");
    assert_eq!(server.lists()[0].header("x-api-key"), Some(KEY));
}

#[test]
fn nested_aye_processes_cannot_change_keys() {
    let server = Server::new([]);
    let project = project(&server);
    log_in(&project);
    let project = project.env("AYE", "1");
    for arguments in [["auth", "login", "anthropic", "--key-stdin"].as_slice(), &["auth", "logout", "--all"]] {
        project.aye_with_input(arguments, "other-key-1234").exits(2).says(&["AYE=1"]);
    }
    assert!(fs::read_to_string(file(&project)).unwrap().contains(KEY));
    project.aye(&["auth", "status"]).exits(0);
}

#[test]
fn a_credentials_file_readable_by_others_is_rejected_with_a_fix() {
    let server = Server::new([Answer::text("Hello.")]);
    let project = project(&server);
    log_in(&project);
    fs::set_permissions(file(&project), PermissionsExt::from_mode(0o644)).unwrap();
    for arguments in [["exec", "-m", MODEL, "hello"].as_slice(), &["auth", "status"], &["auth", "logout", "anthropic"]] {
        let output = project.aye(arguments).exits(2).says(&["chmod 600", "credentials.toml"]);
        assert!(!output.stderr.contains(KEY));
    }
    let project = project.env("ANTHROPIC_API_KEY", "sk-ant-scripted");
    project.aye(&["exec", "-m", MODEL, "hello"]).exits(0);
}

#[test]
fn credentials_files_are_not_created_in_a_repository() {
    let server = Server::new([]);
    let project = project(&server).file(".git/HEAD", "ref: refs/heads/main\n");
    let inside = project.path("settings");
    let project = project.env("AYE_CONFIG_DIR", &inside.display().to_string());
    project.aye_with_input(&["auth", "login", "anthropic", "--key-stdin"], KEY).exits(2).says(&["AYE_CONFIG_DIR", "project"]);
    assert!(!inside.join("credentials.toml").exists());
}

#[test]
fn invalid_keys_are_not_saved() {
    let server = Server::new([]);
    let project = project(&server);
    for (input, says) in
        [("", "no key was given"), ("two words", "one line"), ("two\nlines", "one line"), ("k\u{1b}[31m", "one line")]
    {
        project.aye_with_input(&["auth", "login", "anthropic", "--key-stdin"], input).exits(2).says(&[says]);
    }
    let output = project.aye(&["auth", "login", KEY]).exits(2);
    assert!(output.stderr.contains(texts::LOOKS_LIKE_A_KEY) && !output.stderr.contains(KEY), "{}", output.stderr);
    let output = project.aye(&["auth", "login", "sk-ant-4711"]).exits(2).says(&[texts::LOOKS_LIKE_A_KEY]);
    assert!(!output.stderr.contains("4711"));
    project.aye(&["auth", "login", "antropic", "--key-stdin"]).exits(2).says(&["did you mean `anthropic`?"]);
    project.aye(&["auth", "login", "--key-stdin"]).exits(2).says(&["missing provider"]);
    assert!(!file(&project).exists());
}

#[test]
fn typed_keys_are_not_shown() {
    let server = Server::new([]);
    let project = project(&server);
    let mut terminal = project.open_program(env!("CARGO_BIN_EXE_aye"), &["auth", "login", "anthropic"]);
    terminal.wait_for("(hidden)");
    terminal.send(&format!("{KEY}\r"));
    terminal.wait_for("saved the key for anthropic in ");
    assert!(!terminal.screen().contains(KEY), "{}", terminal.screen());
    assert!(fs::read_to_string(file(&project)).unwrap().contains(KEY));
    let mut terminal = project.open_program(env!("CARGO_BIN_EXE_aye"), &["auth", "login", "openai"]);
    terminal.wait_for("(hidden)");
    terminal.send("half a key\u{3}");
    terminal.wait_for("nothing was saved");
    assert_eq!(terminal.finish().exit_code(), 2);
}
