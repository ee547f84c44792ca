//! Commands in `README.md` and `docs`, executed as documented.
//!
//! Every line of a `sh` block that starts aye runs in a prepared project and must end with exit code 0. Lines that open
//! the screen, ask a question, or need the network are listed below with their expected outcome. The other programs in
//! these lines are stand-ins.

use crate::support::{Answer, Output, Project, Server, Terminal};
use serde_json::json;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;

/// Expected outcome of a line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Expectation {
    /// The screen opens with the composer or with a list.
    Opens,
    /// The given question appears, and the given answer ends the command with exit code 0.
    Asks(&'static str, &'static str),
    /// The command ends with this exit code and prints this text.
    Fails(i32, &'static str),
}

use Expectation::{Asks, Fails, Opens};

/// Lines that do not simply end with exit code 0.
const EXPECTATIONS: &[(&str, Expectation)] = &[
    ("aye", Opens),
    ("aye -c", Opens),
    ("aye --resume", Opens),
    ("aye resume", Opens),
    ("aye resume ID", Opens),
    ("aye -m openai/gpt-5.5 \"fix the tests\"", Opens),
    ("aye --max-budget-usd 5", Opens),
    ("aye -m openai-chat/your-model", Opens),
    ("aye -m deepseek/deepseek-chat", Opens),
    ("aye --effort xhigh", Opens),
    ("aye demo", Opens),
    ("aye rewind", Asks("Rewind", "y\r")),
    ("aye rewind --files", Asks("Rewind", "y\r")),
    ("aye rewind --conversation", Asks("Rewind", "y\r")),
    ("aye rewind --redo", Asks("Redo", "y\r")),
    ("aye auth login anthropic", Asks("API key", "sk-ant-typed\r")),
    // A test build has no release server.
    ("aye update --check", Fails(2, "this build has no release server")),
    // This host does not exist.
    ("aye mcp test docs", Fails(1, "docs")),
    // The previous line removed the server.
    ("aye mcp login docs", Fails(2, "unknown MCP server `docs`")),
    ("aye plugin add ./team-tools", Asks("Add this plugin?", "y\r")),
    ("aye hooks pin", Fails(1, "there are no hooks")),
    ("aye task open TASK", Opens),
    // The task of the examples has already ended.
    ("aye task resume --detach TASK", Fails(1, "has already ended")),
    ("aye task stop TASK", Fails(2, "is not running")),
    ("aye sync", Fails(2, "no service is configured")),
    ("aye sync", Fails(2, "no service is configured")),
    ("aye policy grants revoke mine-here:4", Fails(2, "this project has no saved rule `mine-here:4`")),
];

/// Replaces the placeholders in a documented line.
fn placeholders(line: &str, session: &str, task: &str, server: &Server) -> String {
    let line = line.replace("http://127.0.0.1:8080", &server.url());
    let word = |word| match word {
        "ID" => session,
        "TASK" => task,
        "NAME" => "docs",
        other => other,
    };
    line.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

/// Line of a `sh` block without its comment, with its own line number and that of the block.
struct Line {
    number: usize,
    block: usize,
    text: String,
}

fn documented(text: &str) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut block = None;
    for (index, line) in text.lines().enumerate() {
        if line.starts_with("```") {
            block = (line == "```sh").then_some(index + 1);
        } else if let Some(block) = block {
            let text = line.split("  #").next().unwrap_or_default().trim();
            lines.push(Line { number: index + 1, block, text: text.to_owned() });
        }
    }
    lines
}

/// Line that starts aye, with the earlier lines of its block that apply to it.
struct Script {
    line: Line,
    setup: String,
}

/// Returns the scripts of a document. `cd` and `export` lines accumulate within a block.
fn scripts(text: &str) -> Vec<Script> {
    let mut scripts = Vec::new();
    let (mut setup, mut block) = (String::new(), 0);
    for line in documented(text) {
        if std::mem::replace(&mut block, line.block) != line.block {
            setup.clear();
        }
        if ["cd ", "export "].iter().any(|word| line.text.starts_with(word)) {
            setup.push_str(&line.text);
            setup.push('\n');
        } else if starts_aye(&line.text) {
            scripts.push(Script { line, setup: setup.clone() });
        }
    }
    scripts
}

fn starts_aye(line: &str) -> bool {
    line.split(' ').any(|word| word == "aye")
}

const STAND_INS: &[(&str, &str)] = &[
    ("cargo", "echo 'error: it does not compile'"),
    ("claude", "while [ \"$1\" != -- ]; do shift; done; shift; exec \"$@\" </dev/null"),
    ("man", "exec cat >/dev/null"),
    ("pass", "echo sk-of-the-password-store"),
];

/// Creates a project that fits the examples: a session with five prompts that changed a file, a custom tool, and a
/// subdirectory.
fn prepare(server: &Server) -> (Project, String) {
    let project = Project::outside_tmp_with(server).env("OPENAI_API_KEY", "sk-scripted").env("DEEPSEEK_API_KEY", "sk-scripted");
    let project = project.env("OPENAI_BASE_URL", &format!("{}/v1", server.url())).env("TEAM", "ours").env("DOCS_TOKEN", "hush");
    let project = project.file("src/main.rs", "fn main() {}\n").file("your-project/README.md", "# Yours\n");
    let project = project.file("schema.json", r#"{"type": "array"}"#);
    let project = project.file("edit.json", r#"{"path": "src/main.rs", "edits": [{"old_text": "{}", "new_text": "{ }"}]}"#);
    let document = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/PLUGINS.md")).unwrap();
    let project = project.file("team-tools/plugin.json", &block(&document, "json")).file("team-tools/commands/ask.md", "Ask.");
    let bin = project.directory("home").join("bin");
    fs::create_dir(&bin).unwrap();
    symlink(env!("CARGO_BIN_EXE_aye"), bin.join("aye")).unwrap();
    for (name, script) in STAND_INS {
        executable(&bin.join(name), &format!("#!/bin/sh\n{script}\n"));
    }
    let commands = project.directory("config").join("commands");
    fs::create_dir_all(&commands).unwrap();
    fs::write(commands.join("fix.md"), "Fix issue $1.").unwrap();
    let tools = project.directory("config").join("tools");
    fs::create_dir_all(&tools).unwrap();
    let document = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/CUSTOM_TOOLS.md")).unwrap();
    fs::write(tools.join("tickets.toml"), block(&document, "toml")).unwrap();
    executable(&tools.join("tickets.py"), &block(&document, "python"));
    let skill = project.directory("home").join(".agents/skills/pdf");
    fs::create_dir_all(&skill).unwrap();
    let document = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/SKILLS.md")).unwrap();
    fs::write(skill.join("SKILL.md"), block(&document, "markdown")).unwrap();
    for directory in [".local/share/bash-completion/completions", ".config/aye", ".local/share/aye"] {
        fs::create_dir_all(project.directory("home").join(directory)).unwrap();
    }
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    let project = project.env("PATH", &path);
    project.aye(&["-C", "your-project", "exec", "--trust", "hello"]).exits(0);
    project.aye(&["exec", "--trust", "--mode", "auto-edit", "change it"]).exits(0);
    for _ in 0..4 {
        project.aye(&["exec", "-c", "--mode", "auto-edit", "change it"]).exits(0);
    }
    let sessions = project.aye(&["sessions", "list", "--json"]).exits(0).json();
    let session = sessions[0]["sessionId"].as_str().unwrap_or_else(|| panic!("no ID in {sessions}")).to_owned();
    (project, session)
}

/// Runs a task to its end. Returns its ID.
fn start_task(project: &Project) -> String {
    project.aye(&["task", "start", "--mode", "auto-edit", "change it"]).exits(0);
    let tasks = project.aye(&["tasks", "--json"]).exits(0).json();
    tasks[0]["id"].as_str().unwrap_or_else(|| panic!("no ID in {tasks}")).to_owned()
}

/// Makes the project a git repository with two commits.
fn commit(project: &Project) {
    for line in ["init -q -b main", "add -A", "commit -q -m one", "commit -q --allow-empty -m two"] {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=Tester", "-c", "user.email=tester@example.com"]).args(line.split(' '));
        assert!(git.current_dir(project.path("")).status().unwrap().success(), "git {line}");
    }
}

fn executable(path: &std::path::Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
}

/// Returns the first code block in this language.
fn block(document: &str, language: &str) -> String {
    let start = format!("```{language}\n");
    let (_, rest) = document.split_once(&start).unwrap_or_else(|| panic!("no block of {language}"));
    rest.split("```").next().unwrap_or_default().to_owned()
}

/// Returns a model that writes a file when a change is requested.
fn model() -> Server {
    Server::with_responder(|request| {
        let system = request.body["system"].to_string();
        if system.contains("Response format") {
            return Answer::text(if system.contains("findings") { r#"{"findings": [], "summary": "Fine."}"# } else { "[]" });
        }
        let prompts = request.messages().matches("change it").count();
        let calls = request.tool_results().len();
        if calls < prompts {
            Answer::call(
                &format!("call_{calls}"),
                "WriteFile",
                json!({"path": "notes.txt", "content": format!("note {calls}\n")}),
            )
        } else {
            Answer::text("Done.")
        }
    })
}

/// Runs a line with the lines that prepare it. Returns a description of the failure as the error.
#[track_caller]
fn run(project: &Project, script: &str, expectation: Option<Expectation>) -> Result<(), String> {
    let Some(expectation) = expectation else {
        return ended(project.run_program("sh", &["-c", script]), 0, "");
    };
    if let Fails(code, text) = expectation {
        return ended(project.run_program("sh", &["-c", script]), code, text);
    }
    let mut terminal = project.open_program("sh", &["-c", script]);
    match expectation {
        Opens => {
            terminal.wait_for("❯");
            terminal.quit();
        }
        Asks(question, answer) => {
            terminal.wait_for(question);
            Terminal::react();
            terminal.send(answer);
            let status = terminal.finish();
            if !status.success() {
                return Err(format!("{status:?}\n{}", terminal.screen()));
            }
        }
        Fails(..) => {}
    }
    Ok(())
}

fn ended(output: Output, code: i32, text: &str) -> Result<(), String> {
    let is_as_expected = output.code == code && format!("{}{}", output.stdout, output.stderr).contains(text);
    if is_as_expected { Ok(()) } else { Err(format!("exit code {}\n{}\n{}", output.code, output.stdout, output.stderr)) }
}

#[track_caller]
fn check(document: &str) {
    let text = fs::read_to_string(format!("{}/{document}", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let server = model();
    let (project, session) = prepare(&server);
    if text.contains("\naye review") || text.contains("\naye task") {
        commit(&project);
    }
    let task = if text.contains("TASK") { start_task(&project) } else { String::new() };
    let scripts = scripts(&text);
    assert!(!scripts.is_empty(), "{document} has no command");
    let mut faults = Vec::new();
    for Script { line: Line { number, text, .. }, setup } in scripts {
        let script = placeholders(&format!("{setup}{text}"), &session, &task, &server);
        let expectation = EXPECTATIONS.iter().find(|(known, _)| *known == text).map(|(_, expectation)| *expectation);
        if let Err(fault) = run(&project, &script, expectation) {
            faults.push(format!("{document}:{number}: {text}: {fault}"));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n\n"));
}

macro_rules! documents {
    ($($test:ident: $document:literal),* $(,)?) => {
        const DOCUMENTS: &[&str] = &[$($document),*];
        $(#[test] fn $test() { check($document); })*
    };
}

documents! {
    commands_in_the_readme_run: "README.md",
    commands_about_budgets_run: "docs/BUDGETS.md",
    commands_about_slash_commands_run: "docs/COMMANDS.md",
    commands_about_custom_tools_run: "docs/CUSTOM_TOOLS.md",
    commands_about_durability_run: "docs/DURABILITY.md",
    commands_to_get_started_run: "docs/GETTING_STARTED.md",
    commands_about_goals_run: "docs/GOALS.md",
    commands_about_hooks_run: "docs/HOOKS.md",
    commands_about_imports_run: "docs/IMPORT.md",
    commands_to_install_and_update_run: "docs/INSTALL.md",
    commands_about_mcp_run: "docs/MCP.md",
    commands_about_memory_run: "docs/MEMORY.md",
    commands_about_models_run: "docs/MODELS.md",
    commands_about_plugins_run: "docs/PLUGINS.md",
    commands_about_policies_run: "docs/POLICY.md",
    commands_about_the_sandbox_run: "docs/SANDBOX.md",
    commands_in_scripts_run: "docs/SCRIPTS.md",
    commands_about_services_run: "docs/SERVICES.md",
    commands_about_skills_run: "docs/SKILLS.md",
    commands_about_agents_run: "docs/SUBAGENTS.md",
    commands_about_tasks_run: "docs/TASKS.md",
    commands_about_tools_run: "docs/TOOLS.md",
    commands_in_the_tour_run: "docs/TOUR.md",
}

#[test]
fn directories_and_variables_apply_until_the_end_of_their_block() {
    let text = "```sh\ncd a\nexport X=1  # first\naye one\ncd b\naye two\n```\n\n```toml\ncd c\n```\n\n```sh\naye three\n```\n";
    let found: Vec<_> = scripts(text).into_iter().map(|script| format!("{}{}", script.setup, script.line.text)).collect();
    assert_eq!(found, ["cd a\nexport X=1\naye one", "cd a\nexport X=1\ncd b\naye two", "aye three"]);
}

#[test]
fn every_document_with_commands_is_covered_and_no_expectation_is_stale() {
    let root = env!("CARGO_MANIFEST_DIR");
    let docs = fs::read_dir(format!("{root}/docs")).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let names = docs
        .filter(|name| std::path::Path::new(name).extension().is_some_and(|end| end == "md"))
        .map(|name| format!("docs/{name}"))
        .chain(["README.md".to_owned()]);
    let mut seen = BTreeSet::new();
    for name in names {
        let lines = documented(&fs::read_to_string(format!("{root}/{name}")).unwrap());
        let commands: Vec<_> = lines.into_iter().map(|line| line.text).filter(|line| starts_aye(line)).collect();
        assert_eq!(!commands.is_empty(), DOCUMENTS.contains(&name.as_str()), "{name}");
        seen.extend(commands);
    }
    let stale: Vec<_> = EXPECTATIONS.iter().map(|(line, _)| *line).filter(|line| !seen.contains(*line)).collect();
    assert!(stale.is_empty(), "in no document: {stale:?}");
}
