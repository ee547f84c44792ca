//! Typical working days of an agent in small projects: the calls that need approval, and results that must equal those
//! without a sandbox.
#![cfg(target_os = "linux")]

use crate::support::{Answer, Project, Rpc, Server};
use regex::Regex;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Maximum number of approvals in a day, by default and in `auto` mode.
const MAX_ASKED: usize = 12;
const MAX_ASKED_IN_AUTO: usize = 3;

/// Subject of an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asks {
    Nothing,
    /// Change by a file tool.
    Edit,
    /// Effects outside build output.
    Effects,
    /// Command before it runs, because it changes the repository or has a high risk.
    Before,
    /// Access to the network.
    Access,
}

enum Work {
    Line(String),
    Tool(String, Value),
}

struct Call {
    asks: Asks,
    /// Whether the call needs approval in `auto` mode too.
    always: bool,
    work: Work,
}

/// Project with the calls of a day.
struct Day {
    programs: Vec<String>,
    files: Vec<(String, String)>,
    calls: Vec<Call>,
}

impl Day {
    fn read(text: &str) -> Self {
        let mut day = Self { programs: Vec::new(), files: Vec::new(), calls: Vec::new() };
        let mut section = String::new();
        for line in text.lines() {
            if let Some(name) = line.strip_prefix("=== ") {
                name.clone_into(&mut section);
                if section != "calls" {
                    day.files.push((section.clone(), String::new()));
                }
            } else if section == "calls" {
                day.calls.extend(Call::read(line));
            } else if let Some(programs) = line.strip_prefix("programs ") {
                day.programs = programs.split(' ').map(str::to_owned).collect();
            } else if let Some((_, content)) = day.files.last_mut() {
                content.push_str(line);
                content.push('\n');
            }
        }
        day
    }

    /// Creates the project as a repository with one commit. `PATH` begins with the directories of the real programs.
    fn project(&self, project: Project) -> Project {
        let project = self.files.iter().fold(project, |project, (path, text)| project.file(path, text));
        let config = "[user]\nname = A\nemail = a@example.com\n[init]\ndefaultBranch = main\n";
        std::fs::write(project.directory("home").join(".gitconfig"), config).unwrap();
        let project = project.env("PATH", &search_path()).env("PYTHONDONTWRITEBYTECODE", "1");
        assert_eq!(plain(&project, "git init -q && git add -A && git commit -qm 'Begin'").0, 0);
        project
    }
}

impl Call {
    /// Parses a line such as `before* $ git push` or `edit WriteFile {…}`: the subject of the approval, with a star if
    /// `auto` mode also requires the approval, and the call.
    fn read(line: &str) -> Option<Self> {
        let (asks, rest) = line.trim().split_once(' ').filter(|(first, _)| *first != "#")?;
        let (rest, always) = (rest.trim_start(), asks.ends_with('*'));
        let asks = match asks.trim_end_matches('*') {
            "-" => Asks::Nothing,
            "edit" => Asks::Edit,
            "effects" => Asks::Effects,
            "before" => Asks::Before,
            "access" => Asks::Access,
            other => panic!("`{other}` in {line}"),
        };
        let (first, rest) = rest.split_once(' ').unwrap();
        let work = match first {
            // `⏎` represents a line break in a command.
            "$" => Work::Line(rest.replace('⏎', "\n")),
            tool => Work::Tool(tool.to_owned(), serde_json::from_str(rest).unwrap_or_else(|error| panic!("{error}: {line}"))),
        };
        Some(Self { asks, always, work })
    }

    fn asks_in(&self, mode: &str) -> Asks {
        if mode == "auto" && !self.always { Asks::Nothing } else { self.asks }
    }

    fn name(&self) -> String {
        match &self.work {
            Work::Line(line) => format!("$ {line}"),
            Work::Tool(name, arguments) => format!("{name} {arguments}"),
        }
    }

    fn answer(&self, at: usize) -> Answer {
        let id = format!("call_{at}");
        match &self.work {
            Work::Line(line) => Answer::call(&id, "RunCommand", json!({"command": line})),
            Work::Tool(name, arguments) => Answer::call(&id, name, arguments.clone()),
        }
    }
}

/// Returns `PATH` with the directories of real programs before those of version managers, which read their settings
/// from the home directory.
fn search_path() -> String {
    let place = |program: &str, words: &[&str]| {
        let output = Command::new(program).args(words).stderr(Stdio::null()).output().ok()?;
        let printed = String::from_utf8(output.stdout).ok()?;
        let path = PathBuf::from(printed.trim());
        (path.is_absolute()).then_some(path)
    };
    let rust = place("rustc", &["--print", "sysroot"]).map(|root| root.join("bin"));
    let python = place("python3", &["-c", "import sys; print(sys.prefix + '/bin')"]);
    let first: Vec<String> = [rust, python].into_iter().flatten().map(|path| path.display().to_string()).collect();
    format!("{}:{}", first.join(":"), std::env::var("PATH").unwrap())
}

/// Runs a line in the project without aye. Returns the exit code, stdout and stderr.
fn plain(project: &Project, line: &str) -> (i32, String, String) {
    let mut bash = Command::new("bash");
    bash.args(["-c", line]).current_dir(project.path("")).env_clear().stdin(Stdio::null());
    bash.envs(project.environment().into_iter().filter(|(name, _)| !name.starts_with("AYE") && !name.starts_with("ANTHROPIC")));
    let output = bash.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
    (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}

/// Makes the change of a file tool without aye.
fn change(project: &Project, tool: &str, arguments: &Value) {
    let path = || project.path(arguments["path"].as_str().unwrap());
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    match tool {
        "WriteFile" => {
            std::fs::create_dir_all(path().parent().unwrap()).unwrap();
            std::fs::write(path(), text(&arguments["content"])).unwrap();
        }
        "EditFile" => {
            let mut content = std::fs::read_to_string(path()).unwrap();
            for edit in arguments["edits"].as_array().unwrap() {
                let old = text(&edit["oldText"]);
                assert_eq!(content.matches(&old).count(), 1, "{arguments}");
                content = content.replace(&old, &text(&edit["newText"]));
            }
            std::fs::write(path(), content).unwrap();
        }
        _ => {}
    }
}

/// Replaces the parts that differ between runs: paths, times, commits and durations.
fn comparable(text: &str, project: &Project) -> String {
    let mut text = text.to_owned();
    for directory in [project.path(""), project.directory("home"), project.directory("config")] {
        let path = directory.display().to_string();
        text = text.replace(path.trim_end_matches('/'), &format!("<{}>", directory.file_name().unwrap().display()));
    }
    for (pattern, with) in [
        (r"\b\d+(\.\d+)? ?m?s\b|\b\d+m\d+\.\d+s\b", "<duration>"),
        (r"\b\d\d:\d\d(:\d\d)?( [-+]\d{4})?\b", "<time>"),
        (r"\b[0-9a-f]{7,40}\b", "<hash>"),
        (r"[0-9a-f]{16}\b", "<hash>"),
        (r"(?m)^total \d+$", "total"),
        // The parent directory of the workspace has fewer entries in the sandbox.
        (r"(?m)^d.* \.\.$", "<above>"),
        (r"duration_ms [\d.]+", "<duration>"),
    ] {
        text = Regex::new(pattern).unwrap().replace_all(&text, with).into_owned();
    }
    text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n").trim_end().to_owned()
}

/// Returns the state of the workspace: content and mode of files that git does not ignore, names of ignored entries,
/// and the commits, branches and tags as the entry `.git`.
fn tree(project: &Project) -> BTreeMap<PathBuf, String> {
    let mut tree = BTreeMap::new();
    let root = project.path("");
    let (_, ignored, _) = plain(project, "git status --ignored --porcelain | sed -n 's/^!! //p'");
    let ignored: Vec<PathBuf> = ignored.lines().map(|line| root.join(line.trim_end_matches('/'))).collect();
    let mut open = vec![root.clone()];
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(directory).unwrap().flatten() {
            let (path, data) = (entry.path(), entry.path().symlink_metadata().unwrap());
            let name = path.strip_prefix(&root).unwrap().to_owned();
            if name.ends_with("__pycache__") {
                // The cache of Python is not compared.
            } else if ignored.contains(&path) {
                tree.insert(name, "ignored".to_owned());
            } else if data.is_dir() && name != Path::new(".git") {
                tree.insert(name, "directory".to_owned());
                open.push(path);
            } else if data.is_file() {
                let mode = std::os::unix::fs::PermissionsExt::mode(&data.permissions());
                tree.insert(name, format!("{mode:o} {}", String::from_utf8_lossy(&std::fs::read(&path).unwrap())));
            } else if data.is_symlink() {
                tree.insert(name, format!("-> {}", std::fs::read_link(&path).unwrap().display()));
            }
        }
    }
    let (_, commits, _) = plain(project, "git log --format='%s %T'; git status --short; git branch; git stash list; git tag");
    tree.insert(PathBuf::from(".git"), commits);
    tree
}

/// End of a call in aye: its approvals and its result.
struct Ended {
    asked: Vec<Value>,
    completed: Value,
}

fn kind(approval: &Value) -> Asks {
    if approval["effects"].is_object() {
        Asks::Effects
    } else if approval["opens"].as_array().is_some_and(|opens| !opens.is_empty()) {
        Asks::Access
    } else if approval["command"].is_object() {
        Asks::Before
    } else {
        Asks::Edit
    }
}

/// Runs the calls of a day in `aye serve` and approves everything. Returns the project and the end of each call.
fn run(day: &Day, mode: &str) -> (Project, Vec<Ended>) {
    let answers = day.calls.iter().enumerate().map(|(at, call)| call.answer(at));
    let server = Server::new(answers.chain([Answer::text("Finished the work.")]));
    let project = day.project(Project::outside_tmp_with(&server).approving_effects());
    let mut client = Rpc::start(&project, &["--trust", "--mode", mode]);
    client.create(&project);
    client.call("StartTask", json!({"prompt": "do the work of today"}));
    let (mut ended, mut asked) = (Vec::new(), Vec::new());
    loop {
        let message = client.next().unwrap_or_else(|| panic!("the task does not complete"));
        let (event, payload) = (&message["params"]["eventType"], &message["params"]["payload"]);
        match event.as_str() {
            Some("approval_requested") => {
                asked.push(payload.clone());
                client.ask("ApproveAction", json!({"approvalId": payload["approvalId"], "decision": "approved"}));
            }
            Some("tool_completed") => {
                ended.push(Ended { asked: std::mem::take(&mut asked), completed: payload.clone() });
            }
            Some("task_completed") => break,
            Some("task_failed" | "task_paused") => panic!("{message}"),
            _ => {}
        }
    }
    assert_eq!(client.leave(), 0);
    (project, ended)
}

/// Compares a result with that of a plain run. Returns the difference, or `None` if the results match or the call uses
/// the network.
fn difference(call: &Call, ended: &Ended, project: &Project, expected: Option<&(i32, String, String)>) -> Option<String> {
    if ended.completed["status"] != "succeeded" {
        return Some(ended.completed.to_string());
    }
    let (code, stdout, stderr) = expected.filter(|_| call.asks != Asks::Access)?;
    let wanted = comparable(&format!("Exit code: {code}\n--- stdout ---\n{stdout}\n--- stderr ---\n{stderr}"), project);
    // The result of a command in a layer ends with a line about its changes.
    let is_told = |line: &&str| !line.is_empty() && *line != "[no file changed]" && !line.starts_with("[files: ");
    let lines = |text: &str| text.lines().filter(is_told).map(str::to_owned).collect::<Vec<_>>();
    let told = comparable(ended.completed["outputText"].as_str().unwrap(), project);
    (lines(&told) != lines(&wanted)).then(|| format!("told:\n{told}\nplain:\n{wanted}"))
}

fn spend(name: &str, text: &str) {
    let day = Day::read(text);
    if let Some(missing) = day.programs.iter().find(|program| plain_program(program).is_none()) {
        eprintln!("skipped: no {missing}");
        return;
    }
    let tier = Project::empty().aye(&["doctor", "--json"]).json()["tier"].clone();
    if tier != "preview" {
        eprintln!("skipped: the sandbox is {tier}");
        return;
    }
    assert_eq!(day.calls.len(), 54, "the calls of a day");
    let bare = day.project(Project::outside_tmp());
    let mut wrong = Vec::new();
    let mut expected = Vec::new();
    for call in &day.calls {
        expected.push(match &call.work {
            Work::Line(line) => {
                let (code, stdout, stderr) = plain(&bare, line);
                Some((code, comparable(&stdout, &bare), comparable(&stderr, &bare)))
            }
            Work::Tool(tool, arguments) => {
                change(&bare, tool, arguments);
                None
            }
        });
    }
    for (mode, most) in [("ask", MAX_ASKED), ("auto", MAX_ASKED_IN_AUTO)] {
        let (project, ended) = run(&day, mode);
        assert_eq!(ended.len(), day.calls.len(), "{name}: {mode}");
        let mut count = 0;
        for ((call, ended), expected) in day.calls.iter().zip(&ended).zip(&expected) {
            let asked: Vec<Asks> = ended.asked.iter().map(kind).collect();
            count += asked.len();
            let wanted = call.asks_in(mode);
            if asked.first().copied().unwrap_or(Asks::Nothing) != wanted || asked.len() > 1 {
                let why: Vec<&Value> = ended.asked.iter().map(|approval| &approval["reason"]).collect();
                wrong.push(format!("{mode}: {}\n  asked about {asked:?}, not {wanted:?}: {why:?}", call.name()));
            }
            if let Some(difference) = difference(call, ended, &project, expected.as_ref()) {
                wrong.push(format!("{mode}: {}\n{difference}", call.name()));
            }
        }
        eprintln!("{name}: {count} of {} calls asked in the mode {mode}", ended.len());
        if count > most {
            wrong.push(format!("{mode}: {count} approvals, more than {most}"));
        }
        let (found, plain) = (tree(&project), tree(&bare));
        for path in found.keys().chain(plain.keys()) {
            if found.get(path) != plain.get(path) {
                wrong.push(format!("{mode}: `{}` is {:?}, not {:?}", path.display(), found.get(path), plain.get(path)));
            }
        }
    }
    assert!(wrong.is_empty(), "{name}:\n{}", wrong.join("\n\n"));
}

/// Finds a program; `python3:MODULE` stands for a Python module.
fn plain_program(name: &str) -> Option<()> {
    let line = match name.split_once(':') {
        Some((python, module)) => format!("{python} -c 'import {module}'"),
        None => format!("command -v {name}"),
    };
    let mut bash = Command::new("bash");
    let status = bash.args(["-c", &line]).env("PATH", search_path()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.ok()?.success().then_some(())
}

#[test]
fn a_day_in_a_rust_project_needs_approval_only_for_real_decisions() {
    spend("rust", include_str!("../cases/days/rust.txt"));
}

#[test]
fn a_day_in_a_python_project_needs_approval_only_for_real_decisions() {
    spend("python", include_str!("../cases/days/python.txt"));
}

#[test]
fn a_day_in_a_node_project_needs_approval_only_for_real_decisions() {
    spend("node", include_str!("../cases/days/node.txt"));
}
