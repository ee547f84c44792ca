//! Language servers: diagnostics of a proposed change in the approval prompt, in events and in results. The server is a
//! short shell script; tests repeat their proposal until it has started.

use crate::support::{Answer, Editor, Project, Rpc, Server, Terminal};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Server that reports an error for each line with BAD. The first argument selects its behaviour.
const SERVER: &str = r#"
export LC_ALL=C
mode=$1
[ "$mode" = exits ] && { echo "cannot start today" >&2; exit 1; }
touch made 2>/dev/null && writes=yes || writes=no
(exec 3<>"/dev/tcp/127.0.0.1/$2") 2>/dev/null && connects=yes || connects=no
say() { printf 'Content-Length: %d\r\n\r\n%s' "${#1}" "$1"; }
text=
while IFS= read -r header; do
  length=${header#*: }
  length=${length%$'\r'}
  IFS= read -r empty
  IFS= read -r -N "$length" body
  id=$(printf '%s' "$body" | sed -n 's/^[^{]*{"jsonrpc":"2.0","id":\([0-9]*\),.*/\1/p')
  case $body in
    *'"method":"initialize"'*)
      say "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"capabilities\":{\"diagnosticProvider\":{}}}}" ;;
    *'"method":"textDocument/didOpen"'* | *'"method":"textDocument/didChange"'*)
      text=$(printf '%s' "${body##*\"text\":\"}" | sed 's/\\n/\n/g') ;;
    *'"method":"textDocument/diagnostic"'*)
      [ "$mode" = hangs ] && continue
      items=
      for number in $(printf '%s' "$text" | grep -n BAD | cut -d: -f1); do
        said="bad at \\u001b[2J$number, writes: $writes, connects: $connects"
        items="$items,{\"range\":{\"start\":{\"line\":$((number - 1)),\"character\":0}},\"severity\":1,\"message\":\"$said\"}"
      done
      say "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"kind\":\"full\",\"items\":[${items#,}]}}" ;;
    *'"method":"shutdown"'*) say "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":null}" ;;
    *'"method":"exit"'*) exit 0 ;;
  esac
done
"#;

const ASKING: &str =
    "schema_version = 1\n[capabilities.\"File.Read\"]\n[capabilities.\"File.Write\"]\nrequires_approval = true\n";
const OPEN: &str = "schema_version = 1\n[capabilities.\"File.Read\"]\nallowed_paths = [\"${workspace}\"]\n\
                    [capabilities.\"File.Write\"]\nallowed_paths = [\"${workspace}\"]\nrequires_approval = false\n";

/// Maximum number of proposals to make until the server has started.
const MAX_PROPOSALS: usize = 60;

/// Returns a model that proposes two invalid lines until a result contains `enough`.
fn proposing(enough: &'static str) -> Server {
    let count = AtomicUsize::new(0);
    Server::with_responder(move |request| {
        let number = count.fetch_add(1, Ordering::SeqCst);
        if number == MAX_PROPOSALS || request.messages().contains(enough) {
            return Answer::text("All done.");
        }
        let content = format!("fine = 1\nBAD {number}\nBAD as well\n");
        Answer::call(&format!("c{number}"), "WriteFile", json!({"path": format!("app{number}.py"), "content": content}))
    })
}

/// Returns a project whose language server has this behaviour.
fn with_language_server(server: &Server, behaviour: &str) -> Project {
    let project = Project::with(server);
    let script = project.directory("home").join("server.sh");
    std::fs::write(&script, SERVER).unwrap();
    let command = json!(["bash", script, behaviour, server.port().to_string()]);
    project.config(&format!("[lsp.python]\ncommand = {command}\n"))
}

const REPORTED: &str = "writes: no, connects: no";

fn results(server: &Server) -> String {
    server.requests().last().unwrap().messages()
}

#[test]
fn prompts_show_errors_before_a_write_and_a_denial_returns_them_to_the_model() {
    let server = proposing("Errors reported by the language server for this change");
    let project = with_language_server(&server, "good").policy(ASKING);
    let mut terminal = project.open(&[]);
    terminal.prompt("write it");
    for number in 0..MAX_PROPOSALS {
        let screen = terminal.review(&format!("app{number}.py"));
        assert!(!project.exists(&format!("app{number}.py")));
        if screen.contains("0 → 2 errors") {
            let row = format!("0 → 2 errors, app{number}.py:2: bad at 2");
            assert!(screen.contains(&row), "{row}\n{screen}");
            assert!(screen.contains(&format!("app{number}.py:3: bad at 3")), "{screen}");
            terminal.decide('n');
            break;
        }
        terminal.decide('n');
    }
    terminal.wait_for("All done.");
    assert!(results(&server).contains("0 → 2 errors, app"), "{}", results(&server));
    terminal.prompt("/lsp");
    let screen = terminal.wait_for("rust-analyzer");
    let row = screen.lines().find(|row| row.contains("python")).unwrap_or_default();
    assert!(row.contains("ready"), "{screen}");
    close_list(&mut terminal);
    assert!(terminal.quit().success());
}

/// Closes the list of language servers.
fn close_list(terminal: &mut Terminal) {
    terminal.send("\x1b");
    terminal.wait_until_gone("Language servers");
}

#[test]
fn results_contain_new_errors_after_a_write_and_the_server_is_sandboxed() {
    let server = proposing("Errors reported by the language server after this change");
    let project = with_language_server(&server, "good").policy(OPEN);
    project.aye(&["exec", "--trust", "go"]).exits(0);
    let told = results(&server);
    assert!(told.contains(REPORTED) && told.contains("0 → 2 errors, app"), "{told}");
    assert!(!told.contains('\u{1b}') && !told.contains("\\u001b"), "{told}");
    assert!(!project.exists("made"));
}

#[test]
fn events_contain_the_diagnostics_of_a_proposal_and_the_verdict_is_the_same() {
    let server = proposing("Errors reported by the language server for this change");
    let project = with_language_server(&server, "good").policy(ASKING);
    let output = project.aye(&["exec", "--json", "--trust", "go"]).exits(3);
    let events = output.events();
    let reported = |event: &&Value| event.pointer("/proposal/diagnostics").is_some_and(Value::is_array);
    let asked = events.all("approval_requested").into_iter().rfind(reported).unwrap();
    let file = &asked["proposal"]["diagnostics"][0];
    assert_eq!((&file["errorsBefore"], &file["errorsAfter"], &file["newErrors"][1]["line"]), (&json!(0), &json!(2), &json!(3)));
    assert_eq!(file["server"], "pyright-langserver");
    assert!(!output.stdout.contains("u001b[2J"));
}

#[test]
fn without_trust_or_if_disabled_no_language_server_exists() {
    let server = Server::new([]);
    let project = with_language_server(&server, "good");
    let off = "Language servers are off here";
    let mut terminal = project.open_sized(&[], 100, 30);
    terminal.prompt("/lsp");
    terminal.wait_for(off);
    assert!(terminal.quit().success());
    // A project can disable language servers.
    let project = project.file(".aye/config.toml", "[lsp]\nenabled = false\n");
    let mut terminal = project.open(&[]);
    terminal.prompt("/lsp");
    terminal.wait_for(off);
    assert!(terminal.quit().success());
    // A project cannot choose the program of a language server.
    let project = project.file(".aye/config.toml", "[lsp.go]\ncommand = [\"./evil\"]\n[lsp.rust]\nenabled = false\n");
    let shown = project.aye(&["config", "show"]).exits(0).stdout;
    assert!(!shown.contains("evil"), "{shown}");
    let mut terminal = project.open(&[]);
    terminal.prompt("/lsp");
    let screen = terminal.wait_for("gopls");
    assert!(screen.contains("python") && !screen.contains("rust"), "{screen}");
    close_list(&mut terminal);
    assert!(terminal.quit().success());
}

#[test]
fn prompts_appear_without_a_server_that_hangs_or_exits_or_is_missing() {
    for (behaviour, state) in [("hangs", ""), ("exits", "cannot start today"), ("missing", "is not a program")] {
        let call = |number: usize| {
            let arguments = json!({"path": format!("app{number}.py"), "content": "BAD\n"});
            Answer::call(&format!("c{number}"), "WriteFile", arguments)
        };
        let server = Server::new([call(0), call(1), Answer::text("All done.")]);
        let mut project = with_language_server(&server, behaviour).policy(ASKING);
        if behaviour == "missing" {
            project = project.config("[lsp.python]\ncommand = [\"/nowhere/server\"]\n");
        }
        let mut terminal = project.open(&[]);
        terminal.prompt("write it");
        for number in 0..2 {
            let screen = terminal.review(&format!("app{number}.py"));
            assert!(!screen.contains('→'), "{behaviour}\n{screen}");
            terminal.decide('y');
        }
        terminal.wait_for("All done.");
        assert_eq!(project.read("app1.py"), "BAD\n");
        assert!(!results(&server).contains("language server"), "{}", results(&server));
        terminal.prompt("/lsp");
        terminal.wait_for("rust-analyzer");
        terminal.send("python");
        // The details column wraps the state of the server.
        let details = |screen: &str| {
            let rows = screen.lines().map(|row| row.rsplit('│').next().unwrap_or_default().trim());
            rows.collect::<Vec<_>>().join(" ")
        };
        terminal.wait_that("the state of the server", |screen| screen.contains("❯ python") && details(screen).contains(state));
        close_list(&mut terminal);
        assert!(terminal.quit().success());
    }
}

/// Policy for file tools and for commands in layers.
const LAYERED: &str = "schema_version = 1\n[capabilities.\"File.Read\"]\nallowed_paths = [\"${workspace}\"]\n\
                       [capabilities.\"File.Write\"]\nallowed_paths = [\"${workspace}\"]\nrequires_approval = true\n\
                       [capabilities.\"File.Delete\"]\nrequires_approval = true\n\
                       [capabilities.\"Shell.Exec\"]\nsandbox = \"workspace-write\"\nrequires_approval = true\n";

#[test]
fn moves_copies_appended_text_and_deletions_are_checked() {
    for (name, arguments, row) in [
        ("Move", json!({"source": "bad.py", "destination": "moved.py"}), "0 → 1 error, moved.py:2: bad at 2"),
        ("Copy", json!({"source": "bad.py", "destination": "copied.py"}), "0 → 1 error, copied.py:2: bad at 2"),
        ("AppendFile", json!({"path": "bad.py", "content": "BAD\n"}), "1 → 2 errors, bad.py:3: bad at 3"),
        ("Delete", json!({"path": "bad.py"}), "1 → 0 errors in bad.py"),
    ] {
        let count = AtomicUsize::new(0);
        let call = arguments.clone();
        let server = Server::with_responder(move |request| {
            let number = count.fetch_add(1, Ordering::SeqCst);
            if number == MAX_PROPOSALS
                || request.messages().contains("Errors reported by the language server for this change")
                || request.messages().contains("→ 0 errors")
            {
                return Answer::text("All done.");
            }
            Answer::call(&format!("c{number}"), name, call.clone())
        });
        let project = with_language_server(&server, "good").policy(LAYERED).file("bad.py", "fine = 1\nBAD\n");
        let mut terminal = project.open(&[]);
        terminal.prompt("do it");
        for number in 0..MAX_PROPOSALS {
            assert!(number + 1 < MAX_PROPOSALS, "{name}: the server never started");
            let screen = terminal.review("bad.py");
            terminal.decide('n');
            // A server under load reports in time for only some of the files.
            if screen.contains(row) {
                break;
            }
        }
        assert_eq!(project.read("bad.py"), "fine = 1\nBAD\n");
        terminal.kill();
    }
}

#[test]
fn the_effects_of_a_command_are_checked_before_they_are_applied() {
    let count = AtomicUsize::new(0);
    let server = Server::with_responder(move |_| {
        let number = count.fetch_add(1, Ordering::SeqCst);
        if number == MAX_PROPOSALS {
            return Answer::text("All done.");
        }
        let command = format!("printf 'fine = 1\\nBAD\\n' > made{number}.py");
        Answer::call(&format!("c{number}"), "RunCommand", json!({"command": command}))
    });
    let project = with_language_server(&server, "good").policy(LAYERED).approving_effects();
    let mut terminal = project.open_sized(&["--trust"], 110, 40);
    terminal.prompt("do it");
    for number in 0..MAX_PROPOSALS {
        assert!(number + 1 < MAX_PROPOSALS, "the server never started");
        let name = format!("made{number}.py");
        let screen = terminal.review(&name);
        assert!(!project.exists(&name));
        terminal.decide('n');
        if screen.contains('→') {
            assert!(screen.contains(&format!("0 → 1 error, {name}:2: bad at 2")), "{screen}");
            break;
        }
    }
    terminal.kill();
}

#[test]
fn clients_of_serve_get_the_diagnostics_of_a_proposal() {
    let server = proposing("Errors reported by the language server for this change");
    let project = with_language_server(&server, "good").policy(ASKING);
    let mut client = Rpc::start(&project, &["--trust"]);
    client.create(&project);
    client.call("StartTask", json!({"prompt": "write it"}));
    for number in 0..MAX_PROPOSALS {
        assert!(number + 1 < MAX_PROPOSALS, "the server never started");
        let approval = client.event("approval_requested");
        let reported = approval.pointer("/proposal/diagnostics/0").cloned();
        client.call("ApproveAction", json!({"approvalId": approval["approvalId"], "decision": "denied"}));
        if let Some(file) = reported {
            assert_eq!((&file["errorsBefore"], &file["errorsAfter"]), (&json!(0), &json!(2)), "{file}");
            assert_eq!(file["newErrors"][0]["line"], 2, "{file}");
            break;
        }
    }
    client.event("task_completed");
    assert!(results(&server).contains("0 → 2 errors, app"), "{}", results(&server));
    assert_eq!(client.leave(), 0);
}

#[test]
fn an_editor_lists_the_servers_and_its_model_gets_new_errors() {
    let server = proposing("Errors reported by the language server after this change");
    let project = with_language_server(&server, "good").policy(OPEN);
    let mut editor = Editor::start(&project, &["--trust", "-m", "anthropic/scripted"]);
    let session = editor.new_session(&project.path(""));
    assert_eq!(editor.prompt(&session, "go"), "end_turn");
    let told = results(&server);
    assert!(told.contains(REPORTED) && told.contains("0 → 2 errors, app"), "{told}");
    assert_eq!(editor.prompt(&session, "/lsp"), "end_turn");
    let text = editor.text(None);
    assert!(text.contains("pyright-langserver") && text.contains("ready"), "{text}");
    editor.leave();
}

#[test]
fn doctor_lists_the_servers_that_are_found_and_starts_none() {
    let server = Server::new([]);
    let project = with_language_server(&server, "good");
    let doctor = project.aye(&["doctor", "--json"]).json();
    let checks = doctor["checks"].as_array().unwrap();
    let check = checks.iter().find(|check| check["name"] == "language servers").unwrap();
    let says = check["says"].as_str().unwrap();
    assert!(says.contains("python (") && says.contains("/bash)"), "{says}");
    assert!(check["state"] == "note", "{check}");
    assert!(!project.exists("made"));
    let project = project.config("[lsp]\nenabled = false\n");
    let doctor = project.aye(&["doctor", "--json"]).json();
    assert!(!doctor.to_string().contains("language servers"), "{doctor}");
}
