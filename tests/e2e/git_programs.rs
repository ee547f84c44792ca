//! Read-only commands: they write nothing, git starts no program that a repository configures, and no program of the
//! workspace is used.

use crate::support::{Answer, Project, Server, texts};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Output of each program of the hostile repository.
const RAN: &str = "a-program-of-the-repository-ran";
/// Name of the file that each of these programs creates.
const MARK: &str = "ran";

fn call(project: &Project, arguments: &Value, flags: &[&str]) -> Value {
    let arguments = arguments.to_string();
    let mut words = vec!["tool", "call", "RunCommand", "--args", &arguments, "--json"];
    words.extend(flags);
    project.aye(&words).json()
}

/// Returns `done` or the error code.
fn outcome(told: &Value) -> &str {
    told["error"]["code"].as_str().unwrap_or("done")
}

fn has_git() -> bool {
    let found = Command::new("git").arg("--version").output().is_ok();
    if !found {
        println!("skipped: there is no git");
    }
    found
}

/// Returns whether commands run in a sandbox on this system.
fn is_held(project: &Project) -> bool {
    let tier = project.aye(&["doctor", "--json"]).json()["tier"].clone();
    let held = tier == "preview" || tier == "guarded";
    if !held {
        println!("skipped: nothing holds a command here");
    }
    held
}

/// Runs git like a user, without the configuration of this machine.
fn git(project: &Project, directory: &Path, words: &[&str]) -> String {
    let mut command = Command::new("git");
    command.args(words).current_dir(directory).env_clear().env("PATH", std::env::var("PATH").unwrap());
    command.env("HOME", project.directory("home")).env("GIT_CONFIG_NOSYSTEM", "1");
    for who in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{who}_NAME"), "a").env(format!("GIT_{who}_EMAIL"), "a@example.org");
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "git {words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn executable(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Returns a script that records its run and then continues with `then`.
fn program(project: &Project, then: &str) -> String {
    format!("touch '{}'; echo {RAN} >&2; {then}", project.path(MARK).display())
}

/// Creates a repository with two commits in a directory of the project.
fn repository(project: &Project, below: &str) -> PathBuf {
    let directory = project.path(below);
    fs::create_dir_all(&directory).unwrap();
    git(project, &directory, &["init", "-q", "-b", "main"]);
    fs::write(directory.join("b.txt"), "b\n").unwrap();
    for text in ["one\n", "two\n"] {
        fs::write(directory.join("a.txt"), text).unwrap();
        git(project, &directory, &["add", "a.txt", "b.txt"]);
        git(project, &directory, &["commit", "-q", "-m", "x"]);
    }
    directory
}

/// Sets a value in a configuration file of the repository.
fn set(project: &Project, directory: &Path, file: &str, name: &str, value: &str) {
    git(project, directory, &["config", "--file", file, name, value]);
}

/// Configuration, attributes, and a command line for which git would start a program.
type Hostile = (Vec<(&'static str, String)>, &'static str, &'static str);

/// Returns one entry per program that git could start for a read-only command.
fn hostile(project: &Project) -> Vec<Hostile> {
    let gpg = project.directory("gpg");
    executable(&gpg, &format!("#!/bin/sh\n{}\n", program(project, "exit 1")));
    let hooks = project.path("hooks");
    executable(&hooks.join("post-index-change"), &format!("#!/bin/sh\n{}\n", program(project, "true")));
    let say = |then: &str| program(project, then);
    vec![
        (vec![("core.fsmonitor", say("printf '0\\0/\\0'"))], "", "git status --short"),
        (vec![("filter.x.Y:z.clean", say("cat"))], "* filter=x.Y:z", "git status --short"),
        (vec![("filter.x.clean", say("cat"))], "* filter=x", "git diff"),
        (vec![("filter.x.process", say("false")), ("filter.x.required", "true".to_owned())], "* filter=x", "git diff"),
        (vec![("diff.x.textconv", say("cat")), ("diff.x.binary", "true".to_owned())], "* diff=x", "git log -p"),
        (vec![("diff.x.command", say("true"))], "* diff=x", "git diff"),
        (vec![("diff.external", say("true"))], "", "git diff HEAD"),
        (
            vec![("log.showSignature", "true".to_owned()), ("gpg.program", gpg.display().to_string())],
            "",
            "git log --format=fuller",
        ),
        (vec![("core.hooksPath", hooks.display().to_string())], "", "git status"),
        (vec![("merge.x.driver", say("false"))], "* merge=x", "git show --remerge-diff"),
    ]
}

/// Adds a signed commit and a merge, for signature checks and merge drivers.
fn sign_and_merge(project: &Project, directory: &Path) {
    for branch in ["other", "main"] {
        git(project, directory, &["checkout", "-q", "-B", branch, if branch == "main" { "main" } else { "main~1" }]);
        fs::write(directory.join("a.txt"), format!("{branch}\n")).unwrap();
        git(project, directory, &["commit", "-q", "-a", "-m", branch]);
    }
    let tree = git(project, directory, &["rev-parse", "HEAD^{tree}"]);
    let [ours, theirs] = ["main", "other"].map(|name| git(project, directory, &["rev-parse", name]));
    let text = format!(
        "tree {}\nparent {}\nparent {}\nauthor a <a@example.org> 1 +0000\ncommitter a <a@example.org> 1 +0000\ngpgsig -----BEGIN PGP \
         SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----\n\nx\n",
        tree.trim(),
        ours.trim(),
        theirs.trim()
    );
    fs::write(project.directory("commit"), text).unwrap();
    let file = project.directory("commit").display().to_string();
    let commit = git(project, directory, &["hash-object", "-t", "commit", "-w", &file]);
    git(project, directory, &["update-ref", "refs/heads/main", commit.trim()]);
    // The size is unchanged, so git has to run a filter to detect the difference.
    fs::write(directory.join("a.txt"), "mian\n").unwrap();
}

#[test]
fn read_only_git_commands_start_no_program_configured_by_the_repository() {
    let project = Project::outside_tmp();
    if !has_git() || !is_held(&project) {
        return;
    }
    let off = "schema_version = 1\n[capabilities.\"Shell.Exec\"]\nrequires_approval = true\nsandbox = \"off\"\n\
               [[capabilities.\"Shell.Exec\".rules]]\ncommand = [\"git\"]\ndecision = \"allow\"\n";
    for (policy, trust) in [("", false), ("", true), (off, false)] {
        let project = Project::outside_tmp().file("AGENTS.md", "x\n");
        let project = if policy.is_empty() { project } else { project.policy(policy) };
        let directory = repository(&project, "");
        sign_and_merge(&project, &directory);
        let config = fs::read(directory.join(".git/config")).unwrap();
        for (number, (settings, attributes, line)) in hostile(&project).into_iter().enumerate() {
            fs::write(directory.join(".git/config"), &config).unwrap();
            // The content is the same but the time differs, which git would write to its index.
            fs::write(directory.join("b.txt"), "b\n").unwrap();
            fs::write(directory.join(".gitattributes"), format!("{attributes}\n")).unwrap();
            // Included and conditional configuration files apply too.
            let file = [".git/config", ".git/more", ".git/config.worktree"][number % 3];
            for (name, value) in &settings {
                set(&project, &directory, file, name, value);
            }
            match file {
                ".git/more" => set(&project, &directory, ".git/config", "includeIf.gitdir:**.path", "more"),
                ".git/config.worktree" => set(&project, &directory, ".git/config", "extensions.worktreeConfig", "true"),
                _ => {}
            }
            let flags: &[&str] = if trust { &["--trust"] } else { &[] };
            let told = call(&project, &json!({"command": line}), flags);
            let text = told.to_string();
            assert_eq!(outcome(&told), "done", "{settings:?} {line}: {text}");
            let told = text.contains("Exit code: 0") || text.contains(texts::READ_ONLY_VIEW);
            assert!(told, "{settings:?} {line}: {text}");
            assert!(!text.contains(RAN) && !project.exists(MARK), "{settings:?} {line}: {text}");
            // Plain git starts the program, which proves that the test can detect a start.
            let mut plain = Command::new("sh");
            let plain = plain.args(["-c", &format!("GIT_CONFIG_NOSYSTEM=1 {line}")]).current_dir(&directory).output().unwrap();
            assert!(project.exists(MARK), "{settings:?} {line}: {}", String::from_utf8_lossy(&plain.stderr));
            fs::remove_file(project.path(MARK)).unwrap();
        }
    }
}

#[test]
fn a_bare_repository_hidden_in_the_working_directory_is_not_used() {
    let project = Project::outside_tmp().file("AGENTS.md", "x\n");
    if !has_git() || !is_held(&project) {
        return;
    }
    let directory = repository(&project, "");
    git(&project, &directory, &["clone", "-q", "--bare", ".", "docs"]);
    let bare = project.path("docs");
    for (name, value) in [("core.bare", "false"), ("core.worktree", ".."), ("core.fsmonitor", &*program(&project, "false"))] {
        set(&project, &bare, "config", name, value);
    }
    for line in ["git status", "git log -1", "git diff"] {
        let told = call(&project, &json!({"command": line, "cwd": "docs"}), &[]).to_string();
        assert!(!told.contains(RAN), "{line}: {told}");
        // Outside a repository, `git diff` compares files.
        assert!(told.contains("bare repository") || line == "git diff", "{line}: {told}");
    }
    assert!(!project.exists(MARK));
}

#[test]
fn nested_repositories_start_no_program() {
    let project = Project::outside_tmp().file("AGENTS.md", "x\n");
    if !has_git() || !is_held(&project) {
        return;
    }
    let outer = repository(&project, "");
    for place in ["target/dep", "vendor/lib"] {
        let inner = repository(&project, place);
        git(&project, &outer, &["add", "-f", place]);
        fs::write(inner.join(".gitattributes"), "* filter=inner\n").unwrap();
        set(&project, &inner, ".git/config", "filter.inner.clean", &program(&project, "cat"));
        fs::write(inner.join("a.txt"), "tow\n").unwrap();
    }
    let told = call(&project, &json!({"command": "git status --short"}), &[]);
    let text = told.to_string();
    assert_eq!(outcome(&told), "done", "{text}");
    assert!(!text.contains(RAN), "{text}");
    Command::new("git").args(["status", "--short"]).current_dir(&outer).output().unwrap();
    assert!(project.exists(MARK), "git itself starts the filter");
}

#[test]
fn git_commands_need_approval_if_repository_programs_cannot_be_disabled() {
    let large = format!("{}[filter \"x\"]\n\tclean = x\n", "# x\n".repeat(400_000));
    let project = Project::outside_tmp().file("AGENTS.md", "x\n");
    if !has_git() || !is_held(&project) {
        return;
    }
    let directory = repository(&project, "");
    set(&project, &directory, ".git/config", "include.path", "more");
    fs::write(directory.join(".git/more"), large).unwrap();
    let line = json!({"command": "git status --short"});
    let told = call(&project, &line, &[]);
    assert_eq!(outcome(&told), "NO_APPROVER", "{told}");
    assert!(told.to_string().contains("too large"), "{told}");
    // The command only reads, but `--trust` alone does not allow it without approval.
    assert_eq!(outcome(&call(&project, &line, &["--trust"])), "NO_APPROVER");
    // A named pipe in place of a configuration file does not block the check.
    fs::remove_file(directory.join(".git/more")).unwrap();
    nix::unistd::mkfifo(&directory.join(".git/more"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    assert_eq!(outcome(&call(&project, &line, &[])), "NO_APPROVER");
    // The pipe does not affect a command line without git.
    assert_eq!(outcome(&call(&project, &json!({"command": "ls"}), &[])), "done");
}

#[test]
fn commands_allowed_as_read_only_cannot_write() {
    let project = Project::outside_tmp().file("kept", "x\n");
    if !is_held(&project) {
        return;
    }
    let bin = project.directory("bin");
    // The command line contains `ls`, but another program runs, as after an error of the parser.
    executable(&bin.join("ls"), "#!/bin/sh\nrm -f kept\necho x > made\n");
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let project = project.env("PATH", &path);
    let told = call(&project, &json!({"command": "ls"}), &[]);
    assert!(project.exists("kept") && !project.exists("made"), "{told}");
    let text = told["outputText"].as_str().unwrap();
    assert!(text.contains("Read-only file system") && text.contains(texts::READ_ONLY_VIEW), "{text}");
    // The same in `aye exec`, where nobody can approve.
    let server = Server::new([Answer::call("call_1", "RunCommand", json!({"command": "ls"})), Answer::text("Done.")]);
    let project = Project::with(&server).env("PATH", &path).file("kept", "x\n");
    project.aye(&["exec", "hi", "--json"]).exits(0);
    assert!(project.exists("kept") && !project.exists("made"));
}

#[test]
fn allow_rules_never_run_programs_from_the_workspace() {
    let policy = "schema_version = 1\n[capabilities.\"Shell.Exec\"]\nrequires_approval = true\n\
        [[capabilities.\"Shell.Exec\".rules]]\ncommand = [[\"ls\", \"cat\", \"mytool\", \"env\"]]\nargs = \"any\"\ndecision = \"allow\"\n";
    let project = Project::outside_tmp().policy(policy).file("a", "x\n");
    if !is_held(&project) {
        return;
    }
    let bin = project.path("node_modules/.bin");
    for name in ["ls", "mytool"] {
        executable(&bin.join(name), &format!("#!/bin/sh\necho {RAN}\n"));
    }
    executable(&project.path("ls"), &format!("#!/bin/sh\necho {RAN}\n"));
    symlink(&bin, project.directory("link")).unwrap();
    fs::create_dir(project.directory("mine")).unwrap();
    symlink(bin.join("mytool"), project.directory("mine").join("mytool")).unwrap();
    let usual = std::env::var("PATH").unwrap();
    let (inside, link, mine) = (bin.display(), project.directory("link"), project.directory("mine"));
    let befores =
        [format!("{inside}"), ".".to_owned(), String::new(), "node_modules/.bin".to_owned(), link.display().to_string()];
    let mut project = project;
    for before in &befores {
        project = project.env("PATH", &format!("{before}:{usual}"));
        let told = call(&project, &json!({"command": "ls"}), &[]);
        let text = told.to_string();
        assert_eq!(outcome(&told), "done", "{before}: {text}");
        assert!(text.contains("Exit code: 0") && !text.contains(RAN), "{before}: {text}");
    }
    for before in [format!("{inside}"), mine.display().to_string()] {
        project = project.env("PATH", &format!("{before}:{usual}"));
        let told = call(&project, &json!({"command": "mytool"}), &[]);
        assert_eq!(outcome(&told), "NO_APPROVER", "{before}: {told}");
        assert!(told.to_string().contains("program in the workspace"), "{told}");
        let told = call(&project, &json!({"command": "mytool"}), &["--yes"]).to_string();
        assert!(told.contains(RAN), "with an approval it runs: {told}");
    }
    // Programs that such a command line starts inherit its `PATH`.
    let project = project.env("PATH", &format!("{inside}:{usual}"));
    let told = call(&project, &json!({"command": "env ls a"}), &[]).to_string();
    assert!(!told.contains(RAN), "{told}");
}

#[test]
fn commands_get_the_identity_from_the_git_configuration_but_no_program_settings() {
    let project = Project::outside_tmp().file("a.orig", "x\n").file("b", "x\n");
    if !has_git() || !is_held(&project) {
        return;
    }
    let home = project.directory("home");
    let text = "[user]\n\tname = Ada \\\"A\\\" Example\n[include]\n\tpath = mine\n[alias]\n\tst = !evil\n[core]\n\tpager = evil\n\
                \thooksPath = /evil\n\tfsmonitor = evil\n\texcludesFile = ~/ignored\n\tautocrlf = input\n[credential]\n\thelper = evil\n\
                [init]\n\tdefaultBranch = trunk\n[gpg]\n\tprogram = evil\n[filter \"lfs\"]\n\tclean = evil\n[safe]\n\tdirectory = /x\n\
                [includeIf \"gitdir:/nowhere/\"]\n\tpath = other\n";
    fs::write(home.join(".gitconfig"), text).unwrap();
    fs::write(home.join("mine"), "[user]\n\temail = ada@example.org\n[commit]\n\tgpgSign = true\n").unwrap();
    fs::write(home.join("other"), "[user]\n\temail = wrong@example.org\n").unwrap();
    fs::write(home.join("ignored"), "*.orig\n").unwrap();
    let yes = |line: &str| {
        let told = call(&project, &json!({"command": line}), &["--yes"]);
        told["outputText"].as_str().unwrap_or_default().to_owned()
    };
    let told = yes("git config --list --show-scope");
    for wanted in [
        "user.name=Ada \"A\" Example",
        "user.email=ada@example.org",
        "core.autocrlf=input",
        "init.defaultbranch=trunk",
        "safe.directory=/x",
        "core.excludesfile=",
    ] {
        assert!(told.contains(&format!("global\t{wanted}")), "{wanted}: {told}");
    }
    for unwanted in ["evil", "alias.", "include.", "gpgsign", "wrong@", "system\t"] {
        assert!(!told.contains(unwanted), "{unwanted}: {told}");
    }
    let told =
        yes("git init -q && git add -A && git commit -q -m first && git log --format='%an <%ae>' --name-only && git branch");
    assert!(told.contains("Ada \"A\" Example <ada@example.org>") && told.contains("* trunk"), "{told}");
    assert!(told.contains("\nb\n") && !told.contains("a.orig"), "{told}");
}

#[test]
fn other_processes_cannot_read_the_memory_of_aye() {
    use std::os::unix::fs::MetadataExt;
    if nix::unistd::geteuid().is_root() {
        return println!("skipped: root reads all memory");
    }
    let server = Server::new([Answer::text("Done.").then_stalled()]);
    let project = Project::with(&server);
    let mut running = project.command(&["exec", "hi"]).spawn().unwrap();
    while server.requests().is_empty() && running.try_wait().unwrap().is_none() {
        std::thread::yield_now();
    }
    let owner = fs::metadata(format!("/proc/{}/mem", running.id())).map(|data| data.uid());
    running.kill().unwrap();
    running.wait().unwrap();
    assert_eq!(owner.ok(), Some(0), "its files in `/proc` are those of root");
}
