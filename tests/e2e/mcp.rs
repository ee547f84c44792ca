//! MCP servers on the command line: list, add, remove, and sign-in.

use crate::support::{Project, Server, texts};
use base64::Engine as _;
use serde_json::json;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;
use std::sync::{Arc, Mutex};

const TOKEN: &str = "at-Zq4vT9xWm2LbR8sYd3NfHc6";
const RENEWAL: &str = "rt-9kLmP2xQv7TbW4sYd3NfHc6";

fn config(project: &Project) -> String {
    fs::read_to_string(project.directory("config").join("config.toml")).unwrap_or_default()
}

/// Creates a project without a keyring.
fn project() -> Project {
    Project::empty().env("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nonexistent/bus")
}

#[test]
fn servers_are_added_listed_and_removed_without_other_changes() {
    let project = project().config("# mine\n[ui]\nplain = true # yes\n");
    let before = config(&project);
    project.aye(&["mcp", "add", "files", "--env", "ROOT=${HOME}", "--", "npx", "-y", "server-files", "--root", "/x"]).exits(0);
    project
        .aye(&[
            "mcp",
            "add",
            "docs",
            "https://example.org/mcp?v=1",
            "--header",
            "X-Team: a b",
            "--bearer-token-env",
            "DOCS_TOKEN",
        ])
        .exits(0);
    let now = config(&project);
    assert!(now.starts_with(before.trim_end()), "{now}");
    assert!(
        now.contains("[mcp.servers.files]\ncommand = \"npx\"\nargs = [\"-y\", \"server-files\", \"--root\", \"/x\"]\n"),
        "{now}"
    );
    assert!(
        now.contains("url = \"https://example.org/mcp?v=1\"\nheaders = { X-Team = \"a b\" }\nbearer_token_env = \"DOCS_TOKEN\""),
        "{now}"
    );
    project.aye(&["mcp", "add", "docs", "https://example.org/"]).exits(2).says(&["has a server `docs`", "aye mcp remove docs"]);
    let list = project.aye(&["mcp", "list"]).exits(0).stdout;
    for words in [
        "npx -y server-files --root /x",
        "https://example.org/mcp\n",
        "config.toml line 6",
        "DOCS_TOKEN",
        "lists none of its tools yet",
    ] {
        assert!(list.contains(words), "{words}: {list}");
    }
    let project =
        project.policy("schema_version = 1\n[capabilities.\"Mcp.Invoke\"]\nallowed_tools = [\"docs/*\", \"other/x\"]\n");
    let rows = project.env("DOCS_TOKEN", "t-1").aye(&["mcp", "list", "--json"]).exits(0);
    assert!(!rows.stdout.contains("t-1"), "{}", rows.stdout);
    let rows = rows.json();
    let docs = rows.as_array().unwrap().iter().find(|row| row["name"] == "docs").unwrap();
    assert_eq!(
        (docs["allowedTools"][0].as_str(), docs["off"].as_str(), docs["ofProject"].as_bool()),
        (Some("docs/*"), None, Some(false))
    );
}

#[test]
fn removing_a_server_restores_the_previous_file() {
    let project = project().config("# mine\n[mcp]\ndefer_over = 5\n");
    let before = config(&project);
    project.aye(&["mcp", "add", "x", "http://127.0.0.1:1/mcp", "--type", "sse"]).exits(0);
    project.aye(&["mcp", "remove", "x"]).exits(0);
    assert_eq!(config(&project).trim_end(), before.trim_end());
    project.aye(&["mcp", "remove", "x"]).exits(2).says(&["no server `x`", "aye mcp list"]);
    assert!(project.aye(&["mcp", "list"]).exits(0).stdout.contains("aye mcp add"));
}

#[test]
fn invalid_servers_are_rejected_and_the_file_is_unchanged() {
    let project = project();
    for (arguments, said) in [
        (["mcp", "add", "a/b", "https://h/mcp"].as_slice(), "invalid server name"),
        (&["mcp", "add", "a", "http://example.org/mcp"], "unencrypted"),
        (&["mcp", "add", "a", "https://u:hush@h/mcp"], "contains a password"),
        (&["mcp", "add", "a"], "required"),
        (&["mcp", "add", "a", "https://h", "--", "x"], "cannot be used with"),
        (&["mcp", "add", "a", "https://h", "--header", "hush"], "must be NAME: VALUE"),
        (&["mcp", "login", "a"], "unknown MCP server `a`"),
    ] {
        let output = project.aye(arguments).exits(2);
        assert!(output.stderr.contains(said) && !output.stderr.contains("hush"), "{arguments:?}: {}", output.stderr);
    }
    assert_eq!(config(&project), "");
    let inside = project.env("AYE", "1");
    for arguments in [
        ["mcp", "add", "a", "https://h/mcp"].as_slice(),
        &["mcp", "remove", "a"],
        &["mcp", "login", "a"],
        &["mcp", "logout", "a"],
    ] {
        inside.aye(arguments).exits(2).says(&["AYE=1"]);
    }
}

#[test]
fn cve_2025_59536_project_servers_run_only_after_approval_of_their_exact_content() {
    let file =
        "{\"mcpServers\": {\"own\": {\"command\": \"evil\"}, \"theirs\": {\"command\": \"node\", \"args\": [\"./serve.js\"]}}}";
    let server = Server::new([]);
    let project = Project::with(&server).env("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nonexistent/bus");
    let project = project.file(".mcp.json", file).file("serve.js", "1").config("[mcp.servers.own]\ncommand = 'mine'\n");
    let list = |flags: &[&str]| project.aye(&[&["mcp", "list", "--json"], flags].concat()).exits(0);
    let untrusted = list(&[]);
    assert_eq!(untrusted.json().as_array().unwrap().len(), 1);
    assert!(untrusted.stderr.contains("not trusted") && untrusted.stderr.contains(".mcp.json"), "{}", untrusted.stderr);
    // `--trust` is not a review: the servers are listed and stay off.
    let flagged = list(&["--trust"]);
    let rows = flagged.json();
    assert_eq!((rows[0]["reachedBy"].as_str(), rows[1]["name"].as_str()), (Some("mine"), Some("theirs")));
    assert!(rows[1]["off"].as_str().unwrap().contains(texts::NOT_APPROVED), "{rows}");
    assert!(flagged.stderr.contains("the project also has a server `own`; the one"), "{}", flagged.stderr);
    let mut terminal = project.open_sized(&[], 100, 30);
    terminal.review(texts::TRUST_THE_PROJECT);
    terminal.decide('y');
    terminal.wait_for(texts::PROJECT_TRUSTED);
    assert!(terminal.quit().success());
    let trusted = list(&[]).json();
    assert_eq!((trusted[1]["off"].as_str(), trusted[1]["ofProject"].as_bool()), (None, Some(true)), "{trusted}");
    // A server whose program changed counts as another server, even if `.mcp.json` is unchanged.
    fs::write(project.path("serve.js"), "2").unwrap();
    assert_eq!(list(&[]).json().as_array().unwrap().len(), 1);
    assert!(list(&["--trust"]).json()[1]["off"].as_str().unwrap().contains(texts::NOT_APPROVED));
}

/// MCP server combined with its authorization server. It records its requests.
struct Provider {
    port: u16,
    asked: Arc<Mutex<Vec<(String, String)>>>,
}

impl Provider {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (noted, challenge) = (Arc::clone(&asked), Arc::new(Mutex::new(String::new())));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (target, body, signed) = read_request(&stream);
                noted.lock().unwrap().push((target.clone(), body.clone()));
                let answer = if signed && target == "/mcp" { offered(&body) } else { answer(port, &target, &body, &challenge) };
                let _ = (&stream).write_all(answer.as_bytes());
            }
        });
        Self { port, asked }
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}/mcp", self.port)
    }

    fn bodies(&self, path: &str) -> Vec<String> {
        self.asked.lock().unwrap().iter().filter(|(target, _)| target.starts_with(path)).map(|(_, body)| body.clone()).collect()
    }
}

/// Reads a request. Returns its path, its body, and whether it has the access token.
fn read_request(stream: &TcpStream) -> (String, String, bool) {
    let mut reader = BufReader::new(stream);
    let (mut first, mut length, mut signed) = (String::new(), 0, false);
    let _ = reader.read_line(&mut first);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) <= 2 {
            break;
        }
        let (name, value) = line.split_once(':').unwrap_or_default();
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.trim().parse().unwrap_or(0),
            "authorization" => signed = value.trim() == format!("Bearer {TOKEN}"),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    let _ = reader.read_exact(&mut body);
    (first.split(' ').nth(1).unwrap_or_default().to_owned(), String::from_utf8_lossy(&body).into_owned(), signed)
}

/// Returns the response of the MCP server to a request of a signed-in client.
fn offered(body: &str) -> String {
    let asked: serde_json::Value = serde_json::from_str(body).unwrap_or_default();
    let result = match asked["method"].as_str() {
        Some("initialize") => json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "docs", "version": "1"},
        }),
        Some("tools/list") => json!({"tools": [
            {"name": "search", "description": "Searches.", "inputSchema": {"type": "object", "properties": {}}},
        ]}),
        Some(method) if method.starts_with("notifications/") => {
            return "HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".to_owned();
        }
        Some(_) => {
            let text =
                json!({"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -32601, "message": "no such method"}}).to_string();
            return json_answer(&text);
        }
        None => return "HTTP/1.1 405 Method Not Allowed\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".to_owned(),
    };
    json_answer(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": result}).to_string())
}

fn json_answer(text: &str) -> String {
    let length = text.len();
    format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{text}")
}

fn pairs(query: &str) -> HashMap<String, String> {
    url::form_urlencoded::parse(query.as_bytes()).into_owned().collect()
}

fn answer(port: u16, target: &str, body: &str, challenge: &Mutex<String>) -> String {
    let base = format!("http://127.0.0.1:{port}");
    let reply = |status: &str, headers: &str, text: &str| {
        let length = text.len();
        format!(
            "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n{headers}\r\n{text}"
        )
    };
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    match path {
        "/mcp" => {
            let header = format!(
                "WWW-Authenticate: Bearer resource_metadata=\"{base}/.well-known/oauth-protected-resource/mcp\", scope=\"tools:read\"\r\n"
            );
            reply("401 Unauthorized", &header, "{}")
        }
        "/.well-known/oauth-protected-resource/mcp" => {
            reply("200 OK", "", &format!("{{\"resource\": \"{base}/mcp\", \"authorization_servers\": [\"{base}\"]}}"))
        }
        "/.well-known/oauth-authorization-server" => reply(
            "200 OK",
            "",
            &format!(
                "{{\"issuer\": \"{base}\", \"authorization_endpoint\": \"{base}/authorize\", \"token_endpoint\": \"{base}/token\",
                \"registration_endpoint\": \"{base}/register\", \"code_challenge_methods_supported\": [\"S256\"],
                \"authorization_response_iss_parameter_supported\": true, \"response_types_supported\": [\"code\"]}}"
            ),
        ),
        "/register" => reply("201 Created", "", "{\"client_id\": \"c-1\", \"redirect_uris\": []}"),
        "/authorize" => {
            let asked = pairs(query);
            challenge.lock().unwrap().clone_from(&asked["code_challenge"]);
            let back = format!("{}?code=code-1&state={}&iss={base}", asked["redirect_uri"], asked["state"]);
            reply("302 Found", &format!("Location: {back}\r\n"), "")
        }
        "/token" => {
            let asked = pairs(body);
            let verified =
                base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(Sha256::digest(asked["code_verifier"].as_bytes()));
            if verified == *challenge.lock().unwrap() && asked["code"] == "code-1" && asked["resource"] == format!("{base}/mcp") {
                let text = format!(
                    "{{\"access_token\": \"{TOKEN}\", \"refresh_token\": \"{RENEWAL}\", \"token_type\": \"Bearer\", \"expires_in\": 3600}}"
                );
                reply("200 OK", "", &text)
            } else {
                reply("400 Bad Request", "", "{\"error\": \"invalid_grant\"}")
            }
        }
        _ => reply("404 Not Found", "", "{}"),
    }
}

/// Requests a page like a browser. Returns the head of the response and its body.
fn visit(url: &str) -> String {
    let (host, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    stream.write_all(format!("GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn approving_in_the_browser_signs_in_and_the_tokens_are_never_shown() {
    let provider = Provider::new();
    let project = project();
    project.aye(&["mcp", "add", "docs", &provider.url()]).exits(0);
    project.aye(&["mcp", "test", "docs"]).exits(5).says(&["aye mcp login docs"]);
    let mut command = project.command(&["mcp", "login", "docs", "--no-browser"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).stdin(Stdio::null()).spawn().unwrap();
    let mut told = BufReader::new(child.stdout.take().unwrap());
    let mut text = String::new();
    let address = loop {
        let mut line = String::new();
        if told.read_line(&mut line).unwrap() == 0 {
            let mut errors = String::new();
            child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
            panic!("no address: {text}{errors}");
        }
        text.push_str(&line);
        if let Some(address) = Some(line.trim()).filter(|line| line.starts_with("http://")) {
            break address.to_owned();
        }
    };
    assert!(text.contains("Sign in to `docs` at 127.0.0.1"), "{text}");
    let asked = pairs(address.split_once('?').unwrap().1);
    assert_eq!((asked["scope"].as_str(), asked["code_challenge_method"].as_str()), ("tools:read", "S256"));
    assert_eq!((asked["client_id"].as_str(), asked["resource"].as_str()), ("c-1", provider.url().as_str()));
    let sent_back = visit(&address);
    let back = sent_back.lines().find_map(|line| line.strip_prefix("Location: ")).unwrap().trim().to_owned();
    assert!(visit(&back.replace("state=", "state=x")).starts_with("HTTP/1.1 404"), "another state is no answer");
    let page = visit(&back);
    assert!(page.starts_with("HTTP/1.1 200") && page.contains("close this page"), "{page}");
    told.read_to_string(&mut text).unwrap();
    let mut errors = String::new();
    child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    assert!(child.wait().unwrap().success(), "{text}{errors}");
    assert!(text.contains("signed in to `docs` for tools:read"), "{text}");
    assert!(!text.contains(TOKEN) && !text.contains(RENEWAL) && !errors.contains(TOKEN));
    assert!(provider.bodies("/register")[0].contains("\"application_type\":\"native\""));
    let file = project.directory("config").join("credentials.toml");
    assert!(fs::read_to_string(&file).unwrap().contains(TOKEN));
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let tested = project.aye(&["mcp", "test", "docs"]).exits(0).stdout;
    assert!(tested.contains("docs 1, MCP revision 2025-06-18"), "{tested}");
    for words in ["offers 1 tool\n", "search  denied", "next: run `aye mcp allow docs`", "fingerprint = \""] {
        assert!(tested.contains(words), "{words}: {tested}");
    }
    let status = project.aye(&["auth", "status"]).exits(0).stdout;
    assert!(!status.contains("mcp:") && !status.contains(TOKEN), "{status}");
    let input = format!("{{\"id\": 1, \"text\": \"it is {TOKEN} and {RENEWAL}\"}}\n");
    let redacted = project.aye_with_input(&["policy", "redact", "--jsonl"], &input).exits(0).stdout;
    assert!(!redacted.contains(TOKEN) && !redacted.contains(RENEWAL), "{redacted}");
    assert!(project.aye(&["mcp", "logout", "docs"]).exits(0).stdout.contains("deleted"));
    assert!(!file.exists());
    assert!(project.aye(&["mcp", "logout", "docs"]).exits(0).stdout.contains("no tokens"));
}

#[test]
fn a_declined_sign_in_is_reported() {
    let provider = Provider::new();
    let project = project().config(&format!("[mcp.servers.docs]\nurl = '{}'\n", provider.url()));
    let mut child = project
        .command(&["mcp", "login", "docs", "--no-browser"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let mut told = BufReader::new(child.stdout.take().unwrap()).lines();
    let address = told.find_map(|line| line.ok().filter(|line| line.trim().starts_with("http://"))).unwrap();
    let asked = pairs(address.trim().split_once('?').unwrap().1);
    visit(&format!(
        "{}?error=access_denied&error_description=not%20today%1b%5b2J&state={}",
        asked["redirect_uri"], asked["state"]
    ));
    let mut errors = String::new();
    child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(5));
    assert!(errors.contains("declined in the browser: not today") && !errors.contains('\u{1b}'), "{errors}");
}

#[test]
fn mcp_allow_grants_the_tools_of_a_server_and_the_built_in_policy_stays_in_force() {
    let project = Project::empty().config("[mcp.servers.docs]\nurl = 'https://docs.invalid/mcp'\n");
    let file = project.directory("config").join("policy.toml");
    let verdict = |call: &str| project.aye_with_input(&["policy", "check", "--jsonl"], &format!("{call}\n")).exits(0).stdout;
    let search = r#"{"tool": "docs/search", "arguments": {}}"#;
    assert!(verdict(search).contains("\"verdict\":\"deny\""), "{}", verdict(search));

    let created = project.aye(&["mcp", "allow", "docs"]).exits(0).stdout;
    assert!(created.starts_with("created ") && created.contains("extends the built-in policy"), "{created}");
    let policy = fs::read_to_string(&file).unwrap();
    assert!(policy.contains("extends = \"built-in\"") && policy.contains("allowed_tools = [\"docs/*\"]"), "{policy}");
    assert!(verdict(search).contains("\"verdict\":\"ask\""), "{}", verdict(search));
    let read = r#"{"tool": "ReadFile", "arguments": {"path": "a"}}"#;
    assert!(verdict(read).contains("\"verdict\":\"allow\""), "{}", verdict(read));
    assert!(project.aye(&["mcp", "list"]).exits(0).stdout.contains("the policy lists docs/*"));
    project.aye(&["policy", "validate"]).exits(0);

    let again = project.aye(&["mcp", "allow", "docs"]).exits(0).stdout;
    assert!(again.contains("already allows the tools of `docs`"), "{again}");
    assert_eq!(fs::read_to_string(&file).unwrap(), policy);
}

#[test]
fn a_server_that_cannot_be_allowed_leaves_the_policy_unchanged() {
    let project = Project::empty().config("[mcp.servers.docs]\nurl = 'https://docs.invalid/mcp'\n");
    let file = project.directory("config").join("policy.toml");
    project.aye(&["mcp", "allow", "other"]).exits(2).says(&["unknown MCP server `other`", "aye mcp list"]);
    assert!(!file.exists());
    let broken = "schema_version = 1\ncapabilities = 1\n";
    fs::write(&file, broken).unwrap();
    project.aye(&["mcp", "allow", "docs"]).exits(2).says(&["policy.toml", "`capabilities` must be a table"]);
    assert_eq!(fs::read_to_string(&file).unwrap(), broken);
    let inside = project.env("AYE", "1");
    inside.aye(&["mcp", "allow", "docs"]).exits(2).says(&["AYE=1"]);
}
