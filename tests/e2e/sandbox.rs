//! Sandbox of commands: readable files, writable files, and access for git and package managers.

use crate::support::Project;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;

/// Policy that allows every command line, so that only the sandbox restricts commands.
const ALLOWED: &str = "schema_version = 1\n[capabilities.\"File.Read\"]\nallowed_paths = [\"${workspace}\"]\nblocked_paths = [\"**/.env\", \"secrets\"]\n\
    [capabilities.\"File.Write\"]\nallowed_paths = [\"${workspace}\"]\nblocked_paths = [\"fixed\"]\n\
    [capabilities.\"Shell.Exec\"]\nrequires_approval = false\n";

fn call(project: &Project, line: &str, flags: &[&str]) -> Value {
    let arguments = json!({"command": line}).to_string();
    let mut words = vec!["tool", "call", "RunCommand", "--args", &arguments, "--json"];
    words.extend(flags);
    project.aye(&words).json()
}

fn run(project: &Project, line: &str) -> Value {
    call(project, line, &[])
}

/// Returns the complete output of the line.
#[track_caller]
fn output(project: &Project, line: &str) -> String {
    let result = run(project, line);
    assert_eq!(result["status"], "succeeded", "{line}: {result}");
    result["outputText"].as_str().unwrap().to_owned()
}

#[track_caller]
fn fails(project: &Project, line: &str) {
    let output = output(project, line);
    assert!(!output.starts_with("Exit code: 0\n"), "{line}: {output}");
}

#[track_caller]
fn works(project: &Project, line: &str) -> String {
    let output = output(project, line);
    assert!(output.starts_with("Exit code: 0\n"), "{line}: {output}");
    output
}

/// Creates a project with this policy. Returns `None` if this system has no sandbox.
fn held(policy: &str) -> Option<Project> {
    let project = Project::outside_tmp().policy(policy);
    let result = run(&project, "true");
    if result["error"]["code"] == "NO_APPROVER" {
        println!("skipped: nothing holds a command here: {}", result["error"]["message"]);
        return None;
    }
    Some(project)
}

/// Returns whether a program is installed.
fn has(program: &str) -> bool {
    let found =
        std::env::var("PATH").unwrap_or_default().split(':').any(|place| fs::metadata(format!("{place}/{program}")).is_ok());
    if !found {
        println!("skipped: there is no {program}");
    }
    found
}

#[test]
fn allowed_commands_run_sandboxed_without_access_to_credentials_and_aye_data() {
    let Some(project) = held(ALLOWED) else { return };
    let ssh = project.directory("home").join(".ssh");
    fs::create_dir(&ssh).unwrap();
    fs::write(ssh.join("id_rsa"), "k3y").unwrap();
    fs::write(project.directory("home").join(".netrc"), "passw0rd").unwrap();
    let project = project.file("secrets/a", "s3cret").file("deep/er/.env", "s3cret");
    let all = "cat ~/.ssh/id_rsa ~/.netrc secrets/a deep/er/.env; ls -A ~/.ssh secrets; cat \"$(dirname ~)\"/config/policy.toml; \
               find \"$(dirname ~)\"/data -type f";
    // A command line that names such paths needs approval, but the sandbox does not depend on the approval.
    let seen = call(&project, all, &["--yes"])["outputText"].as_str().unwrap().to_owned();
    for secret in ["k3y", "passw0rd", "s3cret", "id_rsa\n", "schema_version", "aye.db"] {
        let printed = seen.split("--- stderr ---").next().unwrap();
        assert!(!printed.contains(secret), "{secret} in {seen}");
    }
    assert_eq!(project.read("secrets/a"), "s3cret");
}

#[test]
fn commands_can_write_only_in_the_workspace() {
    let Some(project) = held(ALLOWED) else { return };
    let project = project.file("fixed", "as it was");
    works(&project, "echo x > inside && mkdir -p a/b && touch a/b/c && echo x > /tmp/its-own && test -w \"$TMPDIR\"");
    assert!(project.exists("inside") && project.exists("a/b/c"));
    assert!(!std::path::Path::new("/tmp/its-own").exists());
    // If the project is in `/tmp`, the command's own `/tmp` hides the siblings of the project, so these lines may
    // succeed there.
    for line in ["echo x > ../outside", "echo x > ~/.bashrc"] {
        call(&project, line, &["--yes"]);
    }
    for line in ["touch /etc/x", "echo x > fixed", "rm fixed", "mv fixed other"] {
        let told = call(&project, line, &["--yes"]);
        assert!(!told["outputText"].as_str().unwrap().starts_with("Exit code: 0\n"), "{line}: {told}");
    }
    assert!(!project.directory("outside").exists() && !project.directory("home").join(".bashrc").exists());
    assert_eq!(project.read("fixed"), "as it was");
}

#[test]
fn files_that_run_code_later_can_be_neither_changed_nor_created() {
    let Some(project) = held(ALLOWED) else { return };
    let project =
        project.file(".git/hooks/x.sample", "").file(".git/HEAD", "ref: refs/heads/main\n").file("sub/.vscode/a.json", "{}");
    for line in [
        "echo x > .git/hooks/pre-commit",
        "echo x >> .git/config",
        "mv .git .g",
        "rm -rf .git",
        "mkdir .vscode && echo x > .vscode/tasks.json",
        "echo x > .envrc",
        "echo x > .mcp.json",
        "echo x > sub/.vscode/a.json",
        "echo x > sub/.vscode/tasks.json",
    ] {
        fails(&project, line);
    }
    for path in [".git/hooks/pre-commit", ".git/config", ".vscode/tasks.json", "sub/.vscode/tasks.json"] {
        assert!(!project.exists(path), "{path}");
    }
    for path in [".envrc", ".vscode", ".mcp.json", ".claude"] {
        assert!(fs::symlink_metadata(project.path(path)).is_err(), "`{path}` is left on the disk");
    }
    assert_eq!(project.read("sub/.vscode/a.json"), "{}");
}

/// Files that run code when their folder is opened, each with a script that creates the file.
const RUN_WHEN_OPENED: [(&str, &str); 10] = [
    ("sub/.vscode", "mkdir -p sub/.vscode && cp x sub/.vscode/tasks.json"),
    ("sub/deep/.git", "mkdir -p sub/deep/.git/hooks && cp x sub/deep/.git/config"),
    (".zed", "mkdir .zed && cp x .zed/tasks.json"),
    (".husky", "mkdir .husky && cp x .husky/pre-commit"),
    ("lefthook.yml", "cp x lefthook.yml"),
    ("w.code-workspace", "cp x w.code-workspace"),
    ("sub/.envrc", "cp x sub/.envrc"),
    ("mise.toml", "cp x mise.toml"),
    (".npmrc", "cp x .npmrc"),
    (".pnpmrc", "ln -s x .pnpmrc"),
];

#[test]
fn files_that_run_code_later_are_renamed_after_an_unapproved_command() {
    let Some(project) = held(ALLOWED) else { return };
    let project = project.file("x", "{}").file("sub/.zed/a.json", "{}").file(".gitignore", ".husky\n.envrc\n");
    for (place, script) in RUN_WHEN_OPENED {
        fs::write(project.path("make.sh"), script).unwrap();
        let told = works(&project, "sh make.sh");
        let name = place.rsplit('/').next().unwrap();
        assert!(told.contains(&format!("{place}` (now `_blocked_{name}_`) renamed")), "{place}: {told}");
        assert!(fs::symlink_metadata(project.path(place)).is_err(), "{place}");
        let blocked = project.path(place).with_file_name(format!("_blocked_{name}_"));
        assert!(fs::symlink_metadata(&blocked).is_ok(), "{place}: nothing is lost");
    }
    assert!(fs::symlink_metadata(project.path("x")).unwrap().is_file(), "what a link leads to keeps its name");
    fs::write(project.path("make.sh"), "cp x mise.toml").unwrap();
    let told = works(&project, "sh make.sh");
    assert!(told.contains("(now `_blocked_mise.toml_2_`)"), "{told}");
    // Builds regularly create this file, so it is only reported.
    fs::write(project.path("make.sh"), "mkdir -p .venv/bin && cp x .venv/bin/python && echo y > plain").unwrap();
    let told = works(&project, "sh make.sh");
    assert!(told.contains("/.venv/bin` appeared") && !told.contains("renamed"), "{told}");
    assert!(project.exists(".venv/bin/python") && project.exists("sub/.zed/a.json"));
    let told = works(&project, "echo z > plain");
    assert!(!told.contains("appeared") && !told.contains("renamed"), "{told}");
}

#[test]
fn files_that_run_code_later_are_reported_and_kept_after_an_approved_command() {
    let Some(project) = held(ALLOWED) else { return };
    let project = project.policy(&ALLOWED.replace("requires_approval = false", "requires_approval = true")).file("x", "{}");
    for (place, script) in RUN_WHEN_OPENED {
        fs::create_dir_all(project.path("sub")).unwrap();
        fs::write(project.path("make.sh"), script).unwrap();
        let told = call(&project, "sh make.sh", &["--yes"])["outputText"].as_str().unwrap().to_owned();
        assert!(told.starts_with("Exit code: 0\n") && !told.contains("renamed"), "{place}: {told}");
        assert!(fs::symlink_metadata(project.path(place)).is_ok(), "{place}");
        if matches!(place, "sub/deep/.git" | "sub/.vscode" | ".zed") {
            assert!(told.contains(&format!("{place}` appeared")), "{place}: {told}");
        }
    }
}

#[test]
fn approved_git_commands_write_the_repository_but_no_hooks_or_settings() {
    if !has("git") {
        return;
    }
    let Some(project) = held(ALLOWED) else { return };
    let who = "-c user.name=a -c user.email=a@example.com";
    let project = project.file("a", "1\n");
    works(&project, "git init -q -b main . && git add -A");
    works(&project, &format!("git {who} commit -q -m first && git log --oneline | grep first"));
    assert!(project.exists(".git/refs/heads/main"));
    works(&project, &format!("echo 2 > a && git checkout -q -b next && git {who} commit -q -a -m second && git stash list"));
    for line in [
        "git add -A; echo x > .git/hooks/pre-commit",
        "git add -A; echo x >> .git/config",
        "git add -A; mv .git .g",
        "git add -A; mv .git/hooks .git/h",
        "git add -A; echo x > .git/info/attributes",
        "git add -A; echo x > .git/config.worktree",
    ] {
        fails(&project, line);
    }
    // A path that cannot be protected before it exists is removed after the command.
    let told = output(&project, "git add -A; echo ../evil > .git/commondir");
    assert!(told.contains("commondir") || !told.starts_with("Exit code: 0"), "{told}");
    for path in [".git/hooks/pre-commit", ".git/commondir", ".git/config.worktree"] {
        assert!(!project.exists(path), "{path}");
    }
    // A command line without git cannot write to `.git`.
    fails(&project, "echo x > .git/refs/heads/other");
    works(&project, "git status --short && git log --oneline");
}

#[test]
fn commits_work_in_a_linked_worktree() {
    if !has("git") {
        return;
    }
    let Some(project) = held(ALLOWED) else { return };
    let main = project.directory("main");
    let git = |arguments: &[&str]| {
        let mut command = std::process::Command::new("git");
        command.arg("-C").arg(&main).args(["-c", "user.name=a", "-c", "user.email=a@example.com"]).args(arguments);
        assert!(command.env("GIT_CONFIG_GLOBAL", "/dev/null").output().unwrap().status.success(), "{arguments:?}");
    };
    fs::create_dir(&main).unwrap();
    git(&["init", "-q", "-b", "main"]);
    git(&["commit", "-q", "--allow-empty", "-m", "first"]);
    fs::remove_dir(project.path("")).unwrap();
    git(&["worktree", "add", "-q", "-b", "next", project.directory("work").to_str().unwrap()]);
    let line =
        "echo x > a && git add a && git -c user.name=a -c user.email=a@example.com commit -q -m second && git log --oneline";
    let told =
        project.aye(&["--trust", "tool", "call", "RunCommand", "--args", &json!({"command": line}).to_string(), "--json"]).json();
    assert!(told["outputText"].as_str().unwrap().starts_with("Exit code: 0"), "{told}");
    let hook = format!("git add -A; echo x > {}/.git/hooks/pre-commit", main.display());
    call(&project, &hook, &["--trust", "--yes"]);
    assert!(!main.join(".git/hooks/pre-commit").exists());
}

#[test]
fn commands_in_a_read_only_sandbox_cannot_write() {
    let policy = format!("{ALLOWED}sandbox = \"read-only\"\n");
    let Some(project) = held(&policy) else { return };
    fails(&project, "echo x > inside");
    assert!(!project.exists("inside"));
}

#[test]
fn file_write_restrictions_also_apply_to_commands() {
    let policy = "schema_version = 1\n[capabilities.\"File.Write\"]\nallowed_paths = [\"src\"]\n\
        [capabilities.\"Shell.Exec\"]\nrequires_approval = false\n";
    let Some(project) = held(policy) else { return };
    let project = project.file("src/a", "").file("b", "");
    works(&project, "echo x > src/made");
    fails(&project, "echo x > b");
}

#[test]
fn package_managers_write_to_a_persistent_private_cache() {
    let Some(project) = held(ALLOWED) else { return };
    let cache = project.directory("home").join(".npm");
    fs::create_dir(&cache).unwrap();
    fs::write(cache.join("fetched"), "before").unwrap();
    works(&project, "cat ~/.npm/fetched && echo after > ~/.npm/fetched && mkdir ~/.npm/_logs && echo x > ~/.npm/_logs/1");
    // The line writes a file, because a read-only line would see the cache without the additions of commands.
    let told = works(&project, "cat ~/.npm/fetched ~/.npm/_logs/1 > seen && cat seen");
    assert!(told.contains("after"), "{told}");
    assert_eq!(fs::read_to_string(cache.join("fetched")).unwrap(), "before");
    assert!(!cache.join("_logs").exists());
}

#[test]
fn an_inherited_cache_is_the_users_own_cache() {
    let Some(project) = held(&format!("{ALLOWED}cache = \"inherit\"\n")) else { return };
    let cache = project.directory("home").join(".npm");
    fs::create_dir(&cache).unwrap();
    works(&project, "echo x > ~/.npm/fetched");
    assert!(cache.join("fetched").exists());
}

#[test]
fn cargo_builds_offline_with_a_private_cache() {
    if !has("cargo") {
        return;
    }
    let Some(project) = held(ALLOWED) else { return };
    let home = project.directory("home").join(".cargo");
    fs::create_dir_all(home.join("registry")).unwrap();
    fs::write(home.join(".package-cache"), "").unwrap();
    let toolchains = std::env::var("RUSTUP_HOME").ok().or_else(|| Some(format!("{}/.rustup", std::env::var("HOME").ok()?)));
    let project = project
        .env("RUSTUP_HOME", &toolchains.unwrap_or_default())
        .file("Cargo.toml", "[package]\nname = \"x\"\nversion = \"0.1.0\"\nedition = \"2021\"\n")
        .file("src/main.rs", "fn main() {}\n");
    works(&project, "cargo build --offline 2>&1");
    assert!(project.exists("target/debug/x"));
    let mode = fs::metadata(project.path("target/debug/x")).unwrap().permissions().mode();
    assert!(mode & 0o111 != 0, "{mode:o}");
}

#[test]
fn go_gets_buildvcs_false_if_a_repository_must_not_be_created() {
    let Some(project) = held(ALLOWED) else { return };
    let flags = |project: &Project| output(project, "printenv GOFLAGS || echo none");
    assert!(flags(&project).contains("\n-buildvcs=false\n"), "{}", flags(&project));
    let settings = project.directory("home").join(".config/go");
    fs::create_dir_all(&settings).unwrap();
    fs::write(settings.join("env"), "GOPROXY=off\nGOFLAGS=-mod=mod -trimpath\n").unwrap();
    assert!(flags(&project).contains("\n-mod=mod -trimpath -buildvcs=false\n"), "{}", flags(&project));
    fs::write(settings.join("env"), "GOFLAGS=-buildvcs=true\n").unwrap();
    assert!(flags(&project).contains("\nnone\n"), "your own flag counts");
    fs::remove_file(settings.join("env")).unwrap();
    fs::create_dir(project.path(".git")).unwrap();
    assert!(flags(&project).contains("\nnone\n"), "a repository that is there has a revision");
}
