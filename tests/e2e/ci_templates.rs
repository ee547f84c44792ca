//! Templates in `docs/ci/`: their scripts run with the built binary, and their output.

use crate::support::{Answer, Output, Project, Server};
use serde_json::json;
use std::path::{Path, PathBuf};

const KEY: &str = "sk-ant-scripted";

fn template(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/ci").join(name)
}

/// Runs a script of the templates in a project.
fn run(project: &Project, script: &str) -> Output {
    project.run_program("bash", &[&template(script).display().to_string()])
}

fn in_ci(server: &Server) -> Project {
    let project = Project::outside_tmp_with(server).allowing_everything().env("AYE_CI_PROGRAM", env!("CARGO_BIN_EXE_aye"));
    let summary = project.path("summary.md").display().to_string();
    let output = project.path("output.txt").display().to_string();
    project.env("GITHUB_ACTIONS", "true").env("GITHUB_STEP_SUMMARY", &summary).env("GITHUB_OUTPUT", &output)
}

#[test]
fn a_pull_request_task_creates_a_patch_file_and_its_title_is_only_data() {
    let title = "Fix it\"; touch pwned; $(touch pwned) `touch pwned`\n::add-mask::x";
    let response = "::warning::not a command\n![x](https://tracker.example/x.png)\r# Heading\nDone.";
    let write = Answer::call("c1", "WriteFile", json!({"path": "new.txt", "content": "new\n"}));
    let server = Server::new([write, Answer::text(response)]);
    let project = in_ci(&server).env("AYE_CI_PROMPT", "--help /fix: do what the title says").env("AYE_CI_DATA", title);
    let output = run(&project, "aye-task.sh").exits(0);
    let messages = server.request(0).messages();
    assert!(messages.contains("--help /fix") && messages.contains("touch pwned"), "{messages}");
    assert!(!project.exists("pwned") && !project.exists("new.txt"));
    assert!(project.read("aye-out/changes.patch").contains("+++ b/new.txt"));
    assert_eq!((project.read("aye-out/response.md").trim_end(), project.read("aye-out/exit-code").as_str()), (response, "0\n"));
    assert_eq!(project.read("output.txt"), "exit-code=0\npatch=aye-out/changes.patch\n");
    let summary = project.read("summary.md");
    assert!(
        summary.contains("    ![x](https://tracker.example/x.png)\n    # Heading\n") && summary.contains("    new.txt b/new.txt"),
        "{summary}"
    );
    // The runner must not execute commands in the model's text, and the key must not leak.
    let stopped = output.stdout.find("::stop-commands::");
    assert_eq!(stopped, Some(0), "{}", output.stdout);
    for place in
        [&output.stdout, &output.stderr, &summary, &project.read("aye-out/log.txt"), &project.read("aye-out/changes.patch")]
    {
        assert!(!place.contains(KEY), "{place}");
    }
}

#[test]
fn calls_that_need_approval_are_denied_and_set_the_exit_code() {
    let write = Answer::call("c1", "WriteFile", json!({"path": "new.txt", "content": "new\n"}));
    let server = Server::new([write, Answer::text("Denied.")]);
    let project = in_ci(&server).policy("schema_version = 1\n").env("AYE_CI_PROMPT", "write");
    run(&project, "aye-task.sh").exits(3);
    assert_eq!(project.read("output.txt"), "exit-code=3\npatch=aye-out/changes.patch\n");
    assert!(!project.exists("new.txt"));
}

#[test]
fn the_second_job_applies_the_patch_file_under_its_own_policy() {
    let write = Answer::call("c1", "WriteFile", json!({"path": "new.txt", "content": "new\n"}));
    let server = Server::new([write, Answer::text("Done.")]);
    let project = in_ci(&server).env("AYE_CI_PROMPT", "write").env("AYE_CI_PATCH", "aye-out/changes.patch");
    run(&project, "aye-task.sh").exits(0);
    let strict = "schema_version = 1\n[capabilities.\"File.Write\"]\nrequires_approval = true\n";
    let project = project.file("strict.toml", strict).env("AYE_CI_POLICY", "strict.toml");
    run(&project, "aye-apply.sh").exits(3);
    assert!(!project.exists("new.txt"));
    let project = project.env("AYE_CI_APPROVE", "yes");
    run(&project, "aye-apply.sh").exits(0);
    assert_eq!(project.read("new.txt"), "new\n");
}

#[test]
fn a_missing_prompt_or_patch_file_is_an_error() {
    let server = Server::new([]);
    let project = in_ci(&server);
    assert!(run(&project, "aye-task.sh").stderr.contains("AYE_CI_PROMPT"));
    assert!(run(&project, "aye-apply.sh").stderr.contains("AYE_CI_PATCH"));
}

#[test]
fn templates_never_insert_untrusted_text_into_shell_lines() {
    for (name, script) in [("action.yml", "aye-task.sh"), ("gitlab.yml", "aye-task.sh"), ("gitlab.yml", "aye-apply.sh")] {
        let text = std::fs::read_to_string(template(name)).unwrap();
        assert!(text.contains(script), "{name} does not run {script}");
        let lines = text.lines().map(str::trim).filter(|line| !line.starts_with('#'));
        let shell: Vec<&str> = lines.filter(|line| line.contains("bash ") || line.starts_with("run:")).collect();
        assert!(!shell.is_empty() && shell.iter().all(|line| !line.contains("${{")), "{name}: {shell:?}");
        // The author of a merge request can change the scripts in the checkout.
        let is_trusted = |line: &&str| line.contains("\"$trusted/") || line.contains("\"$GITHUB_ACTION_PATH/");
        assert!(shell.iter().all(is_trusted), "{name}: {shell:?}");
    }
}
