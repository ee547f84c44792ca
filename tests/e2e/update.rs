//! `aye update`: the newest version, the installation method of this copy, and its update commands.

use crate::support::{Output, Project};
use serde_json::{Value, json};
use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Server that sends the same response to every request.
struct ReleaseServer {
    port: u16,
    requests: Arc<AtomicUsize>,
}

impl ReleaseServer {
    /// Starts a server. `head` contains the status and the headers, such as `200 OK`.
    fn new(head: &str, body: &str) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::new(AtomicUsize::new(0));
        let (count, response) = (Arc::clone(&requests), format!("HTTP/1.1 {head}\r\nconnection: close\r\n\r\n{body}"));
        thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                count.fetch_add(1, Ordering::SeqCst);
                if stream.read(&mut [0; 4096]).is_ok_and(|count| count > 0) {
                    let _ = stream.write_all(response.as_bytes());
                }
            }
        });
        Self { port, requests }
    }

    fn with_index(index: &Value) -> Self {
        Self::new("200 OK\r\ncontent-type: application/json", &index.to_string())
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}/aye/latest.json", self.port)
    }

    /// Creates a project whose user settings name this server.
    fn project(&self) -> Project {
        Project::empty().config(&format!("[update]\nurl = '{}'\n", self.url()))
    }

    fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }
}

fn index(version: &str) -> Value {
    json!({"format": 1, "version": version, "date": "2026-11-20", "notes": "https://dl.example/notes/9",
        "files": [{"name": "aye-installer.sh", "sha256": "ab".repeat(32)}]})
}

#[test]
fn a_newer_version_has_its_own_exit_code() {
    let project = ReleaseServer::with_index(&index("99.0.0-rc.1")).project();
    let output = project.aye(&["update", "--check"]).exits(100);
    let installed = concat!("installed     ", env!("CARGO_PKG_VERSION"), " (");
    for words in
        [installed, "newest        99.0.0-rc.1 (2026-11-20)", "https://dl.example/notes/9", "A newer version is available"]
    {
        assert!(output.stdout.contains(words), "{words}: {}", output.stdout);
    }
    // The test binary has no installation marker.
    assert!(output.stdout.contains("installation  unknown, at /") && output.stdout.contains("the way you installed it"));
    let found = project.aye(&["update", "--check", "--json"]).exits(100).json();
    assert_eq!((&found["status"], &found["installed"]), (&json!("update_available"), &json!(env!("CARGO_PKG_VERSION"))));
    assert_eq!(found["newest"], json!({"version": "99.0.0-rc.1", "date": "2026-11-20", "notes": "https://dl.example/notes/9"}));
    assert_eq!((&found["installation"]["method"], &found["commands"]), (&json!("unknown"), &json!([])));
}

#[test]
fn the_same_version_is_up_to_date_and_an_older_one_is_an_error() {
    let project = ReleaseServer::with_index(&index(env!("CARGO_PKG_VERSION"))).project();
    let output = project.aye(&["update", "--check"]).exits(0);
    assert!(output.stdout.contains("aye is up to date") && output.stderr.is_empty(), "{}{}", output.stdout, output.stderr);
    assert_eq!(project.aye(&["update", "--check", "--json"]).exits(0).json()["status"], "up_to_date");
    let project = ReleaseServer::with_index(&index("0.0.1")).project();
    let output = project.aye(&["update", "--check"]).exits(1).says(&["this build is newer than the newest release"]);
    assert!(output.stdout.contains("newest        0.0.1 (") && !output.stdout.contains("up to date"), "{}", output.stdout);
    let output = project.aye(&["update", "--check", "--json"]).exits(1);
    assert_eq!(output.json()["status"], "build_is_newer");
}

#[test]
fn an_invalid_index_is_an_error_that_names_the_server() {
    let large = format!("{{\"format\": 1, \"more\": \"{}\"}}", "x".repeat(300 << 10));
    for (head, body, why) in [
        ("404 Not Found", "", "404 Not Found"),
        (
            "302 Found\r\nlocation: https://elsewhere.example/",
            "",
            "a redirect to `https://elsewhere.example/`, which is not followed",
        ),
        ("200 OK", "<html>sign in</html>", "is not a release index"),
        ("200 OK", "", "is not a release index"),
        ("200 OK", "{\"format\": 2}", "is not a release index"),
        ("200 OK\r\ncontent-length: 999", "{\"format\": 1,", "lost the connection"),
        ("200 OK", &large, "the file is larger than 256.0 KB"),
    ] {
        let server = ReleaseServer::new(head, body);
        let output = server.project().aye(&["update", "--check"]).exits(1);
        let output = output.says(&["cannot check for a newer version", why, &server.url(), "hint: "]);
        assert_eq!(output.stdout, "", "{head}");
    }
    // Nothing listens on this port.
    let project = Project::empty().config("[update]\nurl = 'http://127.0.0.1:9/latest.json'\n");
    project.aye(&["update", "--check"]).exits(1).says(&["cannot reach `127.0.0.1:9`", "try again later"]);
    let mut wrong = index("99.0.0");
    wrong["format"] = json!(7);
    ReleaseServer::with_index(&wrong).project().aye(&["update", "--check"]).exits(1).says(&["the index has format 7"]);
}

#[test]
fn only_user_settings_choose_the_release_server() {
    let server = ReleaseServer::with_index(&index("99.0.0"));
    let config = format!("[update]\nurl = '{}'\n", server.url());
    let project = Project::empty().file(".aye/config.toml", &config);
    let output = project.aye(&["update", "--check", "--trust"]).exits(2);
    drop(output.says(&["this build has no release server", "hint: set `[update] url` in config.toml"]));
    assert_eq!(server.requests(), 0);
    for (url, why) in [
        ("http://dl.example/latest.json", "is not encrypted"),
        ("https://me:secret@dl.example/latest.json", "contains a password"),
        ("latest.json", "invalid URL"),
    ] {
        let set = format!("update.url={url}");
        let output = project.aye(&["update", "--check", "--set", &set]).exits(2).says(&["`update.url`", why]);
        assert!(!output.stderr.contains("secret"), "{}", output.stderr);
    }
    let set = format!("update.url={}", server.url());
    project.aye(&["update", "--check", "--set", &set]).exits(100);
}

#[test]
fn releases_dated_in_the_future_are_compared_with_a_warning_about_the_clock() {
    let mut index = index("99.0.0");
    index["date"] = json!("2999-01-01");
    let output = ReleaseServer::with_index(&index).project().aye(&["update", "--check"]).exits(100);
    drop(output.says(&["the release is dated 2999-01-01, but today is", "check this machine's clock"]));
}

/// Installs the program under a path in the home directory and runs `aye update` from there.
fn run_installed(project: &Project, path: &str, arguments: &[&str]) -> Output {
    let home = project.directory("home");
    let program = home.join(path);
    fs::create_dir_all(program.parent().unwrap()).unwrap();
    let built = Path::new(env!("CARGO_BIN_EXE_aye"));
    if !program.exists() {
        fs::hard_link(built, &program).or_else(|_| fs::copy(built, &program).map(drop)).unwrap();
    }
    project.run_program(program.to_str().unwrap(), arguments)
}

#[test]
fn without_check_only_the_update_commands_are_printed() {
    let server = ReleaseServer::with_index(&index("99.0.0"));
    let project = server.project();
    let home = project.directory("home").canonicalize().unwrap();
    fs::create_dir_all(home.join(".cargo")).unwrap();
    let record = json!({"installs": {"aye 0.1.0 (git+https://git.example/aye#0123)": {"bins": ["aye"], "profile": "release"}}});
    fs::write(home.join(".cargo/.crates2.json"), record.to_string()).unwrap();
    fs::create_dir(home.join("bin")).unwrap();
    fs::write(home.join("bin/.aye-installed"), "0.1.0\n").unwrap();
    let npm = format!("npm install --global --prefix {} aye-agent@latest", home.display());
    for (path, method, command) in [
        (".cargo/bin/aye", "cargo", "cargo install --git https://git.example/aye --locked"),
        ("lib/node_modules/aye-agent/node_modules/aye-agent-linux-x64/bin/aye", "npm", npm.as_str()),
        ("brew/Cellar/aye/0.1.0/bin/aye", "homebrew", "brew upgrade aye"),
        ("bin/aye", "installer", "Run `aye update --check` to find the newest version"),
    ] {
        let output = run_installed(&project, path, &["update"]).exits(0);
        assert!(output.stdout.contains(command) && !output.stdout.contains("newest  "), "{path}: {}", output.stdout);
        let found = run_installed(&project, path, &["update", "--json"]).exits(0).json();
        assert_eq!(found["installation"], json!({"method": method, "program": home.join(path)}));
        assert!(found.get("status").is_none() && found.get("newest").is_none(), "{found}");
    }
    assert_eq!(server.requests(), 0);
    let output = run_installed(&project, "bin/aye", &["update", "--check"]).exits(100);
    let steps = [
        format!("curl -fLO http://127.0.0.1:{}/aye/aye-installer.sh", server.port),
        format!("echo '{}  aye-installer.sh' | sha256sum --check", "ab".repeat(32)),
        format!("sh aye-installer.sh --dir {}", home.join("bin").display()),
    ];
    assert!(steps.iter().all(|step| output.stdout.contains(&format!("  {step}\n"))), "{}", output.stdout);
    assert_eq!(server.requests(), 1);
}
