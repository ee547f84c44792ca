//! Previews: commands whose effects are shown before they are applied.
#![cfg(target_os = "linux")]

use crate::support::{Output, Project, TIMEOUT, wait_until};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;

/// Policy that previews all commands.
pub const ALWAYS: &str = r#"
schema_version = 1
bundle_version = "test"

[capabilities."File.Read"]

[capabilities."File.Write"]
allowed_paths = ["${workspace}"]

[capabilities."File.Delete"]
allowed_paths = ["${workspace}"]

[capabilities."Shell.Exec"]
requires_approval = true
preview = "always"
blocked_commands = ["sudo"]
"#;

fn run(project: &Project, line: &str, flags: &[&str]) -> Output {
    let arguments = json!({"command": line}).to_string();
    let mut words = vec!["--trust", "tool", "call", "RunCommand", "--args", &arguments, "--json"];
    words.extend(flags);
    project.aye(&words)
}

/// Returns the plan of the command with its effects; `None`, with a message, if this system does not support previews.
fn foretold(project: &Project, line: &str) -> Option<Value> {
    let foretold = run(project, line, &["--plan"]).exits(0).json();
    if foretold.get("effects").is_none() {
        eprintln!("skipped: {}", foretold["notes"]);
        return None;
    }
    Some(foretold)
}

/// Returns whether no files of previews remain.
fn tidy(project: &Project) -> bool {
    let previews = project.directory("data").join("previews");
    fs::read_dir(previews).map_or(true, |left| left.count() == 0)
}

fn paths(foretold: &Value) -> Vec<String> {
    let paths = foretold["paths"].as_array().unwrap();
    let name = |path: &Value| path.as_str().unwrap().rsplit('/').next().unwrap().to_owned();
    let mut names: Vec<String> = paths.iter().map(name).collect();
    names.sort();
    names
}

const ALL: &str = "echo new > made.txt; echo more >> changed.txt; rm gone.txt; mv old.txt moved.txt; chmod 755 mode.sh; \
                   ln -s changed.txt link; head -c 64 /dev/zero > binary; echo said; exit 3";

fn project() -> Project {
    Project::empty()
        .policy(ALWAYS)
        .file("changed.txt", "one\n")
        .file("gone.txt", "gone\n")
        .file("old.txt", "a text that is moved as it is, and is long enough to be known again\n")
        .file("mode.sh", "true\n")
}

#[test]
fn planning_a_command_shows_its_effects_and_changes_nothing() {
    let project = project();
    let Some(foretold) = foretold(&project, ALL) else { return };
    assert_eq!(foretold["effects"]["ended"], "exit 3");
    assert!(foretold["effects"]["output"].as_str().unwrap().contains("said"));
    assert_eq!(paths(&foretold), ["binary", "changed.txt", "gone.txt", "link", "made.txt", "mode.sh", "moved.txt", "old.txt"]);
    let diff = foretold["diff"].as_str().unwrap();
    assert!(diff.contains("+more") && diff.contains("+new") && diff.contains("-gone"), "{diff}");
    assert!(foretold["summary"].is_string() && foretold["bytes"].is_number());
    assert_eq!(project.read("changed.txt"), "one\n");
    assert!(project.exists("gone.txt") && !project.exists("made.txt") && !project.exists("link") && tidy(&project));
    let nothing = self::foretold(&project, "cat changed.txt").unwrap();
    assert_eq!((&nothing["paths"], &nothing["diff"]), (&json!([]), &json!("")));
}

#[test]
fn approving_applies_the_effects_of_the_preview() {
    let project = project();
    if foretold(&project, "true").is_none() {
        return;
    }
    let result = run(&project, ALL, &["--yes"]).exits(0).json();
    let text = result["outputText"].as_str().unwrap();
    assert!(text.starts_with("Exit code: 3\n--- stdout ---\nsaid\n--- stderr ---\n["), "{text}");
    assert_eq!((project.read("made.txt"), project.read("changed.txt")), ("new\n".to_owned(), "one\nmore\n".to_owned()));
    assert!(!project.exists("gone.txt") && !project.exists("old.txt") && project.read("moved.txt").starts_with("a text"));
    assert_eq!(fs::metadata(project.path("mode.sh")).unwrap().permissions().mode() & 0o777, 0o755);
    assert_eq!(fs::read_link(project.path("link")).unwrap().to_str(), Some("changed.txt"));
    assert_eq!(fs::read(project.path("binary")).unwrap(), [0; 64]);
    assert!(tidy(&project));
}

#[test]
fn without_approval_a_command_does_not_run() {
    let project = project();
    let result = run(&project, "touch made", &[]).exits(1).json();
    assert_eq!(result["error"]["code"], "NO_APPROVER");
    assert!(!project.exists("made"));
}

#[test]
fn changes_to_protected_paths_are_discarded_and_reported() {
    let project =
        project().file(".git/config", "[core]\n").file(".git/HEAD", "ref: refs/heads/main\n").file(".git/objects/x", "");
    let line = "echo ok > fine; printf '[alias]\\nx = !sh\\n' >> .git/config; mkdir -p .git/hooks; echo x > .git/hooks/pre-commit; \
                mkdir .vscode; echo {} > .vscode/tasks.json";
    let Some(foretold) = foretold(&project, line) else { return };
    let refused = foretold["effects"]["refused"].to_string();
    assert!(refused.contains(".git") && refused.contains(".vscode"), "{foretold}");
    assert_eq!(paths(&foretold), ["fine"]);
    let result = run(&project, line, &["--yes"]).exits(0).json();
    assert!(result["outputText"].as_str().unwrap().contains(".git"), "{result}");
    assert_eq!((project.read(".git/config"), project.read("fine")), ("[core]\n".to_owned(), "ok\n".to_owned()));
    assert!(!project.exists(".git/hooks/pre-commit") && !project.exists(".vscode/tasks.json"));
}

#[test]
fn ignored_files_are_listed_by_directory_and_kept() {
    let project = project().file(".gitignore", "target/\n");
    let line = "mkdir -p target/debug; for n in 1 2 3; do echo $n > target/debug/$n; done; echo x > seen";
    let Some(foretold) = foretold(&project, line) else { return };
    let group = &foretold["effects"]["groups"][0];
    assert_eq!((&group["folder"], &group["ignored"]), (&json!("target/"), &json!(true)), "{foretold}");
    assert_eq!(group["files"], json!(["debug/1", "debug/2", "debug/3"]));
    assert!(!foretold["diff"].as_str().unwrap().contains("target/"));
    run(&project, line, &["--yes"]).exits(0);
    assert_eq!(project.read("target/debug/3"), "3\n");
}

#[test]
fn commands_that_cannot_be_previewed_are_planned_with_a_reason() {
    let project = project();
    for (line, why) in [("git commit -m x", "git"), ("sleep 99 &", "background"), ("npm run dev", "background")] {
        let foretold = run(&project, line, &["--plan"]).exits(0).json();
        assert!(foretold["notes"].to_string().contains(why), "{foretold}");
        assert_eq!((&foretold["paths"], &foretold["diff"]), (&json!([]), &json!("")));
    }
    let denied = run(&project, "sudo true", &["--plan"]).exits(1).json();
    assert_eq!(denied["error"]["code"], "POLICY_DENIED");
}

#[test]
fn previews_cannot_access_files_outside_the_workspace() {
    let project = project();
    let home = project.directory("home");
    let line = format!(
        "echo x > {0}/escaped; cat {1}/config/policy.toml; ls {1}/data",
        home.display(),
        home.parent().unwrap().display()
    );
    let Some(foretold) = foretold(&project, &line) else { return };
    assert!(!home.join("escaped").exists());
    assert!(!foretold["effects"]["output"].as_str().unwrap().contains("schema_version"), "{foretold}");
}

#[test]
fn hosts_requested_in_a_preview_are_reported_even_if_the_command_succeeds() {
    // If the policy has HTTP rules, the host is reported and can be allowed.
    let project = project().policy(&format!("{ALWAYS}\n[capabilities.\"Network.Http\"]\n"));
    let ask = "proxy=${HTTPS_PROXY#http://}; proxy=${proxy%/}; exec 3<>/dev/tcp/${proxy%:*}/${proxy##*:}; \
               printf 'CONNECT example.com:443 HTTP/1.1\\r\\nHost: example.com:443\\r\\n\\r\\n' >&3; head -n 1 <&3";
    let Some(foretold) = foretold(&project, ask) else { return };
    assert_eq!(foretold["effects"]["ended"], "exit 0");
    assert_eq!(foretold["effects"]["denied"][0]["host"], "example.com", "{foretold}");
}

#[test]
fn an_interrupted_commit_is_completed_at_the_next_start() {
    finished_after_a_crash(ALWAYS);
}

#[test]
fn an_interrupted_commit_is_completed_even_if_the_sandbox_is_now_off() {
    finished_after_a_crash(&ALWAYS.replace("preview = \"always\"", "sandbox = \"off\""));
}

/// Kills aye during a commit, and checks that the next start completes the commit under another policy.
fn finished_after_a_crash(policy: &str) {
    let project = project();
    if foretold(&project, "true").is_none() {
        return;
    }
    const FILES: usize = 1500;
    let line = format!("for n in $(seq {FILES}); do echo new > f$n; done");
    let arguments = json!({"command": line}).to_string();
    let running = project.start(&["--trust", "tool", "call", "RunCommand", "--args", &arguments, "--json", "--yes"]);
    let previews = project.directory("data").join("previews");
    let begun = || {
        let entries = fs::read_dir(&previews).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).any(|path| path.join("commit.json").exists())
    };
    assert!(wait_until(TIMEOUT, begun), "the commit begins");
    running.kill();
    fs::write(project.directory("config").join("policy.toml"), policy).unwrap();
    let done = || (1..=FILES).filter(|number| project.exists(&format!("f{number}"))).count();
    eprintln!("{} of {FILES} were kept when it was killed", done());
    project.aye(&["tool", "call", "ReadFile", "--args", r#"{"path": "changed.txt"}"#]).exits(0);
    assert_eq!(done(), FILES);
    assert!(tidy(&project));
}

#[test]
fn huge_output_is_truncated_to_the_limit() {
    let project = project();
    let line = "head -c 300000000 /dev/zero | tr '\\0' 'x'";
    let Some(foretold) = foretold(&project, line) else { return };
    let output = foretold["effects"]["output"].as_str().unwrap();
    assert!(output.len() < 110 * 1024 && output.contains("truncated"), "{}", output.len());
}
