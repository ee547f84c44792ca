//! Errors with an external cause: keys, providers, streams, calls, files, policies, the data directory.

use crate::support::{Answer, Project, Server, texts};
use serde_json::json;
use std::fs::{self, File};

fn refusal() -> Answer {
    Answer::error(401, "authentication_error", "invalid x-api-key")
}

fn trouble() -> Answer {
    Answer::error(500, "api_error", "the provider has a bad day")
}

/// Returns a project without an API key and without a local model server.
fn without_models() -> Project {
    Project::empty().config("[llm]\nlocal_ports = []\n")
}

#[test]
fn exec_without_a_key_prints_a_hint() {
    without_models().aye(&["exec", "hello"]).exits(5).says(&["ANTHROPIC_API_KEY", "aye demo"]);
}

#[test]
fn the_screen_reports_a_missing_key_and_keeps_the_draft() {
    let project = without_models();
    let mut terminal = project.open(&[]);
    terminal.prompt("fix the parser");
    let screen = terminal.wait_that("the lack of a key is said", |screen| {
        let screen = screen.to_lowercase();
        screen.contains("no key") || screen.contains("no api key")
    });
    assert!(screen.contains("ctrl+l"), "{screen}");
    assert!(screen.contains("fix the parser"), "the draft is lost\n{screen}");
}

#[test]
fn a_key_can_be_added_without_a_restart_and_is_stored_nowhere_else() {
    const KEY: &str = "sk-ant-typed-4711-hush";
    let project = Project::empty().config("[auth]\nkeyring = false\n[llm]\nlocal_ports = []\n");
    let mut terminal = project.open(&["-v", "-m", "anthropic/claude-sonnet-5"]);
    terminal.prompt("fix the parser");
    terminal.wait_for(texts::ENTER_ADD_KEY);
    // The key is for the requested model and stays hidden while it is typed.
    terminal.enter();
    terminal.wait_for("key of anthropic:");
    terminal.type_text(KEY, 5);
    terminal.wait_for("***");
    terminal.enter();
    let screen = terminal.wait_for("saved the key for anthropic in");
    assert!(!screen.contains("hush") && screen.contains("fix the parser"), "{screen}");
    terminal.wait_for("model anthropic/claude-sonnet-5");
    let status = project.aye(&["auth", "status", "--json"]).exits(0).stdout;
    assert!(status.contains(r#""source":"file""#) && status.contains("hush") && !status.contains(KEY), "{status}");
    drop(terminal);
    for file in ["data", "work"].map(|directory| project.directory(directory)) {
        for file in files_below(&file) {
            let bytes = fs::read(&file).unwrap();
            assert!(!bytes.windows(KEY.len()).any(|part| part == KEY.as_bytes()), "{} has the key", file.display());
        }
    }
}

fn files_below(directory: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() {
            files.extend(files_below(&entry));
        } else if entry.is_file() {
            files.push(entry);
        }
    }
    files
}

#[test]
fn keys_saved_by_other_processes_and_keyless_models_work_without_a_restart() {
    let server = Server::new([Answer::text("Here I am.")]);
    let own = format!(
        "[auth]\nkeyring = false\n[llm]\nlocal_ports = []\n[providers.mine]\napi = 'anthropic'\nbase_url = '{}'\n",
        server.url()
    );
    let project = Project::empty().config(&own);
    let mut terminal = project.open(&[]);
    terminal.prompt("hello");
    terminal.wait_for(texts::ENTER_ADD_KEY);
    project.aye_with_input(&["auth", "login", "anthropic", "--key-stdin"], "sk-ant-elsewhere-4711").exits(0);
    terminal.enter();
    terminal.wait_for("filter:");
    terminal.type_text("claude-haiku-4-5", 5);
    terminal.wait_that("it can be chosen", |screen| screen.contains("❯ claude-haiku-4-5") && !screen.contains("add its API key"));
    terminal.enter();
    let screen = terminal.wait_for("model anthropic/claude-haiku-4-5");
    assert!(screen.contains("hello"), "the draft is lost\n{screen}");
    terminal.send("\x15");
    terminal.wait_until_gone("❯ hello");
    terminal.prompt("/model claude-sonnet-5");
    terminal.wait_for("model anthropic/claude-sonnet-5");
    terminal.prompt("/model claude-haiku-4-6");
    terminal.wait_for("did you mean `anthropic/claude-haiku-4-5`?");
    terminal.prompt("/model mine/scripted");
    terminal.wait_for("model mine/scripted");
    terminal.prompt("hello again");
    terminal.wait_for("Here I am.");
}

#[test]
fn a_rejected_key_is_sent_once_and_exits_with_5() {
    let server = Server::new([refusal(), Answer::text("never asked for")]);
    let events = Project::with(&server).with_quick_retries().aye(&["exec", "--json", "hello"]).exits(5).events();
    assert_eq!(server.requests().len(), 1);
    let failure = events.all("task_failed").into_iter().chain(events.all("session_paused")).next().unwrap().to_string();
    assert!(failure.contains("invalid x-api-key") && failure.contains("authentication"), "{failure}");
}

#[test]
fn an_invalid_request_is_sent_once_and_exits_with_1() {
    let server = Server::new([Answer::error(400, "invalid_request_error", "max_tokens: too large")]);
    let output = Project::with(&server).with_quick_retries().aye(&["exec", "hello"]).exits(1);
    assert!(output.stderr.contains("max_tokens: too large"), "{}", output.stderr);
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn provider_errors_are_retried_and_then_pause_the_session() {
    let server = Server::new((0..4).map(|_| trouble()));
    let project = Project::with(&server).with_quick_retries();
    let events = project.aye(&["exec", "--json", "hello"]).exits(1).events();
    assert_eq!(events.all("llm_retry").len(), 3);
    assert_eq!(server.requests().len(), 4);
    assert!(events.only("session_paused").to_string().contains("the provider has a bad day"));
    server.push(Answer::text("Back again."));
    let output = project.aye(&["exec", "-c"]).exits(0);
    assert_eq!(output.stdout.trim_end(), "Back again.");
    assert!(server.request(4).messages().contains("hello"), "the task goes on where it stopped");
}

/// Checks a failure that a retry resolves: the retry gives one response, and the second request contains nothing of the
/// first attempt.
#[track_caller]
fn check_retried(first: Answer) {
    let server = Server::new([first, Answer::text("The whole answer.")]);
    let project = Project::with(&server).with_quick_retries();
    let events = project.aye(&["exec", "--json", "hello"]).exits(0).events();
    assert_eq!(events.all("llm_retry").len(), 1, "{:?}", events.names());
    assert_eq!(events.only("task_completed")["text"], "The whole answer.");
    assert_eq!(events.all("tool_requested").len(), 0);
    assert_eq!(server.request(0).messages(), server.request(1).messages(), "the same request, nothing of the cut answer in it");
}

#[test]
fn a_temporary_provider_error_costs_one_retry() {
    check_retried(trouble());
}

#[test]
fn a_rate_limited_request_waits_for_the_requested_delay() {
    check_retried(Answer::error(429, "rate_limit_error", "slow down").with_header("retry-after", "0"));
}

#[test]
fn requests_to_an_overloaded_provider_are_retried() {
    check_retried(Answer::error(529, "overloaded_error", "Overloaded"));
}

#[test]
fn a_dropped_connection_discards_the_partial_response() {
    check_retried(Answer::text("Half an ans").then_dropped());
}

#[test]
fn a_stream_that_ends_early_discards_the_partial_response() {
    check_retried(Answer::text("Half an ans").then_short());
}

#[test]
fn calls_in_a_partial_response_never_run() {
    check_retried(Answer::call("call_1", "ReadFile", json!({"path": "a.txt"})).then_dropped());
}

#[test]
fn a_stalled_stream_is_closed_and_the_request_retried() {
    check_retried(Answer::text("Half an ans").then_stalled());
}

#[test]
fn garbage_in_the_stream_causes_a_retry() {
    check_retried(Answer::text("Half").and_garbage("data: {\"type\": \"content_block_delta\", \"index\": 0, \u{7}\n\n"));
}

#[test]
fn an_html_response_causes_a_retry() {
    check_retried(Answer::html());
}

#[test]
fn an_unreachable_server_is_a_network_failure() {
    let address = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap()
    };
    let project = Project::empty()
        .with_quick_retries()
        .env("ANTHROPIC_API_KEY", "sk-ant-scripted")
        .env("ANTHROPIC_BASE_URL", &format!("http://{address}"));
    let output = project.aye(&["exec", "hello"]).exits(1);
    assert!(output.stderr.contains(&address.to_string()), "{}", output.stderr);
}

/// Checks a call that cannot succeed: the model receives this error code for the call and continues.
#[track_caller]
fn check_failing_call(project: Project, server: &Server, code: &str) {
    let events = project.aye(&["exec", "--json", "do it"]).exits(0).events();
    let completed = events.only("tool_completed");
    assert_eq!((&completed["status"], &completed["error"]["code"]), (&json!("failed"), &json!(code)), "{completed}");
    assert_eq!(completed["toolCallId"], events.only("tool_requested")["toolCallId"]);
    let results = server.request(1).tool_results();
    assert_eq!(results.len(), 1);
    assert_eq!(results[0].0, "call_1");
    assert!(results[0].1.contains(code), "{results:?}");
}

#[test]
fn arguments_that_are_not_json_fail_the_call() {
    for arguments in ["{\"path\": \"a.txt\"", "[1, 2]", "path=a.txt"] {
        let server = Server::new([Answer::empty().and_raw_call("call_1", "ReadFile", arguments), Answer::text("Sorry.")]);
        check_failing_call(Project::with(&server).file("a.txt", "alpha\n"), &server, "INVALID_REQUEST");
    }
}

#[test]
fn arguments_of_the_wrong_shape_fail_the_call() {
    let server = Server::new([Answer::call("call_1", "ReadFile", json!({"path": 7})), Answer::text("Sorry.")]);
    check_failing_call(Project::with(&server), &server, "INVALID_REQUEST");
}

#[test]
fn an_unknown_tool_fails_the_call() {
    let server = Server::new([Answer::call("call_1", "LaunchRocket", json!({"to": "the moon"})), Answer::text("Sorry.")]);
    check_failing_call(Project::with(&server), &server, "TOOL_NOT_FOUND");
}

#[test]
fn a_missing_file_fails_the_call() {
    let server = Server::new([Answer::call("call_1", "ReadFile", json!({"path": "none.txt"})), Answer::text("Sorry.")]);
    check_failing_call(Project::with(&server), &server, "FILE_NOT_FOUND");
}

#[test]
fn a_two_gigabyte_file_is_rejected_without_reading() {
    let server = Server::new([Answer::call("call_1", "ReadFile", json!({"path": "huge.bin"})), Answer::text("Sorry.")]);
    let project = Project::with(&server).file("huge.bin", "");
    File::options().write(true).open(project.path("huge.bin")).unwrap().set_len(2 << 30).unwrap();
    check_failing_call(project, &server, "FILE_TOO_LARGE");
}

#[test]
fn a_binary_file_is_reported_as_binary_and_not_sent() {
    let server = Server::new([Answer::call("call_1", "ReadFile", json!({"path": "a.bin"})), Answer::text("I see.")]);
    let project = Project::with(&server).bytes("a.bin", b"\x7fELF\0\x01\x02\xff\xfe\0\0payload");
    project.aye(&["exec", "read it"]).exits(0);
    let (_, text) = &server.request(1).tool_results()[0];
    assert!(text.to_lowercase().contains("binary") && !text.contains("payload"), "{text}");
}

#[test]
fn a_policy_typo_is_reported_with_file_line_and_correct_key() {
    let server = Server::new([]);
    let policy = "schema_version = 1\nbundle_version = \"1\"\n\n[capabilities.\"File.Write\"]\nrequires_aproval = true\n";
    let project = Project::with(&server).policy(policy);
    project.aye(&["exec", "hello"]).exits(2).points_at("policy.toml", 5).says(&["requires_aproval", "requires_approval"]);
    assert_eq!(server.requests().len(), 0, "nothing is sent under a policy that cannot be read");
}

#[test]
fn an_invalid_policy_value_is_reported_with_the_expected_values() {
    let policy = "schema_version = 1\nbundle_version = \"1\"\n[[capabilities.\"Shell.Exec\".rules]]\ncommand = [\"ls\"]\ndecision = \"permit\"\n";
    let project = Project::empty().file("bundle.toml", policy);
    project.aye(&["exec", "--policy", "bundle.toml", "hello"]).exits(2).points_at("bundle.toml", 5).says(&["permit", "allow"]);
}

#[test]
fn a_missing_policy_file_is_an_error_without_a_fallback() {
    Project::empty().aye(&["exec", "--policy", "nowhere.toml", "hello"]).exits(2).says(&["nowhere.toml"]);
}

#[test]
fn a_configuration_typo_is_reported_with_file_and_line() {
    let project = Project::empty().config("[llm]\nidle_timeout_secnds = 1\n");
    project.aye(&["exec", "hello"]).exits(2).points_at("config.toml", 2).says(&["idle_timeout_seconds"]);
}

#[test]
fn invalid_flags_are_usage_errors() {
    let server = Server::new([]);
    for arguments in [
        ["exec", "--no-such-flag"].as_slice(),
        &["exec", "--mode", "yolo", "hello"],
        &["exec", "--max-steps", "0", "hello"],
        &["exec", "-C", "no/such/directory", "hello"],
        &["exec", "--resume=ffffffffffff", "hello"],
    ] {
        let output = Project::with(&server).aye(arguments);
        assert_eq!(output.code, 2, "{arguments:?}: {}", output.stderr);
        assert!(!output.stderr.trim().is_empty(), "{arguments:?}");
    }
}

#[test]
fn an_unusable_data_directory_is_reported_by_name() {
    let server = Server::new([Answer::text("never asked for")]);
    let project = Project::with(&server);
    let place = project.directory("data");
    fs::remove_dir(&place).unwrap();
    fs::write(&place, "a file stands here").unwrap();
    let output = project.aye(&["exec", "hello"]);
    assert!(matches!(output.code, 1 | 2), "{}: {}", output.code, output.stderr);
    assert!(output.stderr.contains(&place.display().to_string()), "{}", output.stderr);
    assert_eq!(server.requests().len(), 0, "nothing runs that could not be saved");
    assert_eq!(fs::read_to_string(&place).unwrap(), "a file stands here");
}

#[test]
fn a_damaged_store_is_set_aside_unchanged() {
    let server = Server::new([Answer::text("Hello.")]);
    let project = Project::with(&server);
    let garbage = b"this is no database, whatever its name says".repeat(300);
    fs::write(project.directory("data").join("aye.db"), &garbage).unwrap();
    let output = project.aye(&["exec", "hello"]);
    assert!(matches!(output.code, 0 | 1), "{}: {}", output.code, output.stderr);
    assert!(output.stderr.contains("damaged"), "{}", output.stderr);
    let kept = fs::read_dir(project.directory("data"))
        .unwrap()
        .flatten()
        .any(|entry| fs::read(entry.path()).is_ok_and(|bytes| bytes == garbage));
    assert!(kept, "the damaged store is gone");
}

#[test]
fn a_store_of_a_newer_version_is_rejected_in_exec_and_on_the_screen() {
    let server = Server::new([Answer::text("Hello.")]);
    let project = Project::with(&server);
    project.aye(&["exec", "hello"]).exits(0);
    let path = project.directory("data").join("aye.db");
    rusqlite::Connection::open(&path).unwrap().pragma_update(None, "user_version", 99).unwrap();
    let before = fs::read(&path).unwrap();
    let output = project.aye(&["exec", "hello"]);
    assert_ne!(output.code, 0);
    assert!(output.stderr.contains(texts::NEWER_AYE) && output.stderr.contains("AYE_DATA_DIR"), "{}", output.stderr);
    let mut terminal = project.open(&[]);
    terminal.wait_for(texts::NEWER_AYE);
    assert!(fs::read(&path).unwrap() == before, "it is left as it is");
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn clients_are_notified_of_a_damaged_store_and_the_recovered_sessions() {
    let server = Server::new([Answer::text("Hello.")]);
    let project = Project::with(&server);
    project.aye(&["exec", "a question to keep"]).exits(0);
    let path = project.directory("data").join("aye.db");
    let mut content = fs::read(&path).unwrap();
    content[..100].fill(b'x');
    fs::write(&path, &content).unwrap();
    let mut client = crate::support::Rpc::start(&project, &[]);
    client.create(&project);
    let notice = client.event("notice");
    let message = notice["message"].as_str().unwrap();
    assert!(message.contains("damaged") && message.contains("1 of 1 sessions recovered; "), "{message}");
}

#[test]
fn readable_sessions_of_a_damaged_store_are_recovered() {
    let server = Server::new([Answer::text("Hello."), Answer::text("Again.")]);
    let project = Project::with(&server);
    project.aye(&["exec", "a question to keep"]).exits(0);
    let path = project.directory("data").join("aye.db");
    let mut content = fs::read(&path).unwrap();
    content[..100].fill(b'x');
    fs::write(&path, &content).unwrap();
    let output = project.aye(&["exec", "-c", "and more"]).exits(0);
    assert!(output.stderr.contains("damaged") && output.stderr.contains("1 of 1 sessions recovered"), "{}", output.stderr);
    assert!(server.request(1).messages().contains("a question to keep"), "{}", server.request(1).messages());
}
