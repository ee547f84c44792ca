//! OpenPath: after approval, a file is passed to the desktop as a single path, outside the sandbox.

use crate::support::{Output, Project};
use serde_json::json;
use std::fs;
use std::os::unix::fs::PermissionsExt;

/// Sets up a desktop whose openers record their arguments, each between `<` and `>`.
fn desktop(project: Project, programs: &[(&str, i32)]) -> Project {
    let bin = project.directory("home").join("bin");
    fs::create_dir(&bin).unwrap();
    for (name, code) in programs {
        let record = project.directory("home").join("record").display().to_string();
        let script = format!(
            "#!/bin/sh\n{{ printf '{name}'; for word; do printf '<%s>' \"$word\"; done; printf '\\n'; }} >> '{record}'\nenv > '{record}.env'\nexit {code}\n"
        );
        fs::write(bin.join(name), script).unwrap();
        fs::set_permissions(bin.join(name), PermissionsExt::from_mode(0o755)).unwrap();
    }
    let path = format!("{}:/usr/bin:/bin", bin.display());
    project.env("PATH", &path).env("DISPLAY", ":7")
}

fn call(project: &Project, tool: &str, path: &str, flags: &[&str]) -> Output {
    let arguments = json!({"path": path}).to_string();
    let mut words = vec!["tool", "call", tool, "--args", &arguments, "--json"];
    words.extend(flags);
    project.aye(&words)
}

fn recorded(project: &Project) -> String {
    fs::read_to_string(project.directory("home").join("record")).unwrap_or_default()
}

#[test]
fn a_file_is_opened_after_approval_and_its_name_is_passed_as_one_argument() {
    let project = desktop(Project::empty(), &[("xdg-open", 0)]).env("SECRET_TOKEN", "hush-hush");
    let names = ["report.pdf", "-rf.txt", "a b;$(touch x).txt", "two\nlines.txt", "'q\".txt"];
    let root = project.path("").canonicalize().unwrap();
    for name in names {
        fs::write(project.path(name), "x").unwrap();
        let denied = call(&project, "OpenPath", name, &[]).exits(1).json();
        assert_eq!(denied["error"]["code"], "NO_APPROVER", "{denied}");
        // Opening a file needs approval in every mode.
        let denied = call(&project, "OpenPath", name, &["--mode", "auto"]).exits(1).json();
        assert_eq!(denied["error"]["code"], "NO_APPROVER", "{denied}");
        assert_eq!(recorded(&project), "");
        call(&project, "OpenPath", name, &["--yes"]).exits(0);
        assert_eq!(recorded(&project), format!("xdg-open<{}>\n", root.join(name).display()));
        fs::remove_file(project.directory("home").join("record")).unwrap();
    }
    let seen = fs::read_to_string(project.directory("home").join("record.env")).unwrap();
    assert!(seen.contains("DISPLAY=:7") && !seen.contains("hush-hush"), "{seen}");
    assert!(!project.exists("x"));
}

#[test]
fn missing_unreadable_and_remote_paths_are_not_opened() {
    let project = desktop(Project::empty(), &[("xdg-open", 0)]).file("a.txt", "x");
    for (path, code) in [
        ("https://example.com/x", "INVALID_REQUEST"),
        ("nothing.txt", "FILE_NOT_FOUND"),
        ("/dev/null", "POLICY_DENIED"),
        ("~/.ssh/id_rsa", "POLICY_DENIED"),
        ("/etc/passwd", "POLICY_DENIED"),
    ] {
        let told = call(&project, "OpenPath", path, &["--yes"]).exits(1).json();
        assert_eq!(told["error"]["code"], code, "{path}: {told}");
    }
    let planning = call(&project, "OpenPath", "a.txt", &["--mode", "plan", "--yes"]).exits(1).json();
    assert_eq!(planning["error"]["code"], "POLICY_DENIED");
    assert_eq!(recorded(&project), "");
}

#[test]
fn a_missing_display_or_a_missing_or_failing_opener_is_an_error_with_a_hint() {
    let project = desktop(Project::empty(), &[("xdg-open", 3)]).file("a.txt", "x");
    let told = call(&project, "OpenPath", "a.txt", &["--yes"]).exits(1).json();
    let message = told["error"]["message"].as_str().unwrap();
    assert!(message.contains("exit code 3") && message.contains("tell the user the path"), "{message}");
    let project = project.env("DISPLAY", "");
    let told = call(&project, "OpenPath", "a.txt", &["--yes"]).exits(1).json();
    assert!(told["error"]["message"].as_str().unwrap().contains("no display"), "{told}");
    // A project cannot choose the opener.
    let project = desktop(Project::empty(), &[]).file("a.txt", "x").file("bin/xdg-open", "#!/bin/sh\ntouch opened\n");
    fs::set_permissions(project.path("bin/xdg-open"), PermissionsExt::from_mode(0o755)).unwrap();
    let own = project.path("bin").canonicalize().unwrap().display().to_string();
    let project = project.env("PATH", &format!("{own}:bin:/no/such"));
    let told = call(&project, "OpenPath", "a.txt", &["--yes"]).exits(1).json();
    assert!(told["error"]["message"].as_str().unwrap().contains("xdg-utils"), "{told}");
    assert!(!project.exists("opened"));
}

#[test]
fn a_file_is_revealed_in_the_file_manager_or_its_directory_is_opened() {
    let project = desktop(Project::empty(), &[("xdg-open", 0), ("gdbus", 0)]).file("sub/a b.txt", "x");
    let root = project.path("").canonicalize().unwrap();
    call(&project, "RevealInOs", "sub/a b.txt", &["--yes"]).exits(0);
    assert_eq!(recorded(&project), format!("xdg-open<{}>\n", root.join("sub").display()));
    let project = project.env("DBUS_SESSION_BUS_ADDRESS", "unix:path=/no/such");
    call(&project, "reveal_in_os", "sub/a b.txt", &["--yes"]).exits(0);
    let told = recorded(&project);
    assert!(told.contains(&format!("<['file://{}/sub/a%20b.txt']><''>", root.display())), "{told}");
}

#[test]
fn the_policy_commands_evaluate_opening_files() {
    let project = Project::empty();
    let judged = |tool: &str, path: &str| {
        let line = json!({"tool": tool, "arguments": {"path": path}}).to_string() + "\n";
        project.aye_with_input(&["policy", "check", "--jsonl"], &line).exits(0).json()
    };
    for (path, verdict, risk) in [
        ("a.pdf", "ask", "medium"),
        ("evil.desktop", "ask", "high"),
        ("x.sh", "ask", "high"),
        ("program", "ask", "high"),
        ("page.html", "ask", "high"),
        ("~/.ssh/id_rsa", "deny", "high"),
    ] {
        let told = judged("OpenPath", path);
        assert_eq!((told["verdict"].as_str(), told["risk"].as_str()), (Some(verdict), Some(risk)), "{path}: {told}");
    }
    assert_eq!(judged("RevealInOs", "x.sh")["risk"], "medium");
    let told = project.aye(&["policy", "explain", "--tool", "OpenPath", "--args", "{\"path\": \"a.pdf\"}"]).exits(0).stdout;
    assert!(told.contains("open a.pdf"), "{told}");
}
