//! Plugins: added from a folder after a plan, pinned by hash, used alongside the user's files, and removed without a
//! trace.

use crate::support::{Answer, Project, Server, Terminal};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// Policy that allows the tool of the plugin.
const TOOL_ALLOWED: &str = "schema_version = 1\n[capabilities.\"File.Read\"]\n[capabilities.\"Shell.Exec\"]\nsandbox = \"workspace-write\"\n\
                            [[capabilities.\"Tool.Custom\".rules]]\ntools = [\"tickets\"]\ndecision = \"allow\"\n";

/// Function that modifies the folder of a plugin.
type Change = dyn Fn(&Path);

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn skill(name: &str, body: &str) -> String {
    format!("---\nname: {name}\ndescription: Does {name} things.\n---\n{body}\n")
}

/// Writes a plugin with a skill, an agent, a slash command and a tool.
fn plugin(project: &Project) -> PathBuf {
    let root = project.directory("home").join("team-tools");
    write(
        &root,
        ".claude-plugin/plugin.json",
        r#"{"name": "team-tools", "version": "1.0.0", "description": "Tools of the team."}"#,
    );
    write(&root, "skills/pdf/SKILL.md", &skill("pdf", "Read references/forms.md for $ARGUMENTS."));
    write(&root, "skills/pdf/references/forms.md", "FORMS\n");
    write(&root, "agents/reader.md", "---\nname: reader\ndescription: Reads things.\n---\nRead.\n");
    write(&root, "commands/fix.md", "---\ndescription: Fixes an issue.\n---\nFix issue $1.\n");
    write(
        &root,
        "tools/tickets.toml",
        "name = \"tickets\"\ndescription = \"Lists tickets.\"\ncommand = [\"./tickets.sh\"]\neffects = \"reads\"\n",
    );
    write(&root, "tools/tickets.sh", "#!/bin/sh\necho ticket-17\n");
    fs::set_permissions(root.join("tools/tickets.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    root
}

fn add(project: &Project) -> PathBuf {
    let root = plugin(project);
    project.aye(&["plugin", "add", root.to_str().unwrap(), "--yes"]).exits(0);
    root
}

/// Returns the folder of the only installed plugin.
fn installed(project: &Project) -> PathBuf {
    let mut folders = fs::read_dir(project.directory("data").join("plugins")).unwrap().map(|entry| entry.unwrap().path());
    let folder = folders.next().unwrap();
    assert_eq!(folders.next(), None);
    folder
}

/// Returns the plugin directories below the config and data directories that exist.
fn traces(project: &Project) -> Vec<PathBuf> {
    ["config/plugins", "data/plugins"].into_iter().map(|path| project.directory(path)).filter(|path| path.exists()).collect()
}

fn listed(project: &Project) -> Value {
    project.aye(&["plugin", "list", "--json"]).exits(0).json()["plugins"].clone()
}

#[test]
fn a_plugin_is_planned_added_listed_and_removed_without_a_trace() {
    let project = Project::empty();
    let root = plugin(&project);
    write(&root, "hooks/hooks.json", r#"{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "./notify.sh"}]}]}}"#);
    write(&root, ".mcp.json", r#"{"mcpServers": {"docs": {"command": "docs-server"}}}"#);
    let refused = project.aye(&["plugin", "add", root.to_str().unwrap()]).exits(2).says(&["without a terminal", "--yes"]);
    assert!(refused.stdout.contains("Slash commands:\n  /fix: Fixes an issue."), "{}", refused.stdout);
    assert_eq!(traces(&project), Vec::<PathBuf>::new());
    let added = project.aye(&["plugin", "add", root.to_str().unwrap(), "--yes"]).exits(0);
    for part in [
        "version      1.0.0",
        "files        9 files, ",
        "Skills:\n  pdf: Does pdf things.",
        "Agents:\n  reader: Reads things.",
        "Tools:\n  tickets: runs `./tickets.sh`: Lists tickets.",
        "Hooks:\n  Stop [*]: runs `./notify.sh`",
        "MCP servers:\n  team-tools:docs: runs `docs-server`",
        "undo: aye plugin remove team-tools",
    ] {
        assert!(added.stdout.contains(part), "{part}:\n{}", added.stdout);
    }
    let list = listed(&project);
    assert_eq!((&list[0]["name"], &list[0]["change"], &list[0]["enabled"]), (&json!("team-tools"), &Value::Null, &json!(true)));
    let shown = project.aye(&["plugin", "show", "team-tools"]).exits(0);
    assert!(shown.stdout.contains("pdf: Does pdf things."), "{}", shown.stdout);
    project.aye(&["plugin", "show", "team-tool"]).exits(2).says(&["unknown plugin `team-tool`", "did you mean `team-tools`?"]);
    project.aye(&["plugin", "remove", "team-tools"]).exits(0);
    assert_eq!(traces(&project), Vec::<PathBuf>::new());
    assert!(root.join("plugin.json").exists() || root.join(".claude-plugin").exists(), "the source is unchanged");
    project.aye(&["plugin", "remove", "team-tools"]).exits(2).says(&["unknown plugin"]);
    // A plugin name is not a path.
    fs::write(project.directory("config").join("other.toml"), "").unwrap();
    for name in ["../other", "/etc/passwd", "", "a\u{1b}[31m"] {
        let told = project.aye(&["plugin", "remove", "--", name]).exits(2).says(&["unknown plugin"]);
        assert!(!told.stderr.contains('\u{1b}'), "{:?}", told.stderr);
    }
    assert!(project.directory("config").join("other.toml").exists());
}

#[test]
fn the_plan_is_approved_in_the_terminal() {
    let project = Project::empty();
    let root = plugin(&project);
    for (answer, is_added) in [("n\r", false), ("y\r", true)] {
        let mut terminal = project.open(&["plugin", "add", root.to_str().unwrap()]);
        terminal.wait_for("Add this plugin?");
        Terminal::react();
        terminal.send(answer);
        assert_eq!(terminal.finish().success(), is_added, "{}", terminal.screen());
        assert_eq!(!traces(&project).is_empty(), is_added);
    }
}

#[test]
fn plugin_parts_are_used_alongside_user_files() {
    let server = Server::new([
        Answer::call("c1", "Skill", json!({"name": "pdf"})),
        Answer::call("c2", "tickets", json!({})),
        Answer::text("Done."),
    ]);
    let project = Project::outside_tmp_with(&server).policy(TOOL_ALLOWED);
    add(&project);
    let agents = project.aye(&["agents", "list", "--json"]).exits(0).json();
    let reader = agents["agents"].as_array().unwrap().iter().find(|agent| agent["name"] == "reader").unwrap().clone();
    assert_eq!((&reader["origin"], &reader["file"]), (&json!("plugin"), &json!("plugin:team-tools/agents/reader.md")));
    project.aye(&["exec", "/fix 12"]).exits(0);
    let first = server.request(0).body.to_string();
    assert!(first.contains("Fix issue 12.") && first.contains("- pdf: Does pdf things."), "{first}");
    let loaded = server.request(1).tool_results().pop().unwrap().1;
    assert!(loaded.starts_with("[Skill pdf, from plugin:team-tools/skills/pdf/SKILL.md]\n"), "{loaded}");
    assert!(loaded.contains("references/forms.md (6 bytes)"), "{loaded}");
    let result = server.request(2).tool_results().pop().unwrap().1;
    assert!(result.contains("ticket-17"), "{result}");
}

#[test]
fn disabled_and_removed_plugins_add_nothing_to_requests() {
    let bodies: Vec<Value> = [None, Some("disable"), Some("remove")]
        .into_iter()
        .map(|change| {
            let server = Server::new([Answer::text("Done.")]);
            let project = Project::with(&server);
            if let Some(change) = change {
                add(&project);
                project.aye(&["plugin", change, "team-tools"]).exits(0);
            }
            project.aye(&["exec", "hi"]).exits(0);
            server.request(0).body["tools"].clone()
        })
        .collect();
    assert_eq!(bodies[0], bodies[1]);
    assert_eq!(bodies[0], bodies[2]);
    let project = Project::empty();
    add(&project);
    project.aye(&["plugin", "disable", "team-tools"]).exits(0);
    assert_eq!(listed(&project)[0]["enabled"], json!(false));
    project.aye(&["skills", "show", "pdf"]).exits(2);
    project.aye(&["plugin", "enable", "team-tools"]).exits(0);
    project.aye(&["skills", "show", "pdf"]).exits(0);
}

#[test]
fn changed_plugin_files_are_not_used_and_are_reported_in_the_list() {
    let server = Server::new([Answer::text("Done.")]);
    let project = Project::with(&server);
    add(&project);
    let folder = installed(&project);
    for path in ["skills/pdf/SKILL.md", "agents/reader.md", "commands/fix.md", "tools/tickets.toml"] {
        let text = fs::read_to_string(folder.join(path)).unwrap();
        fs::write(folder.join(path), format!("{text}\n# more\n")).unwrap();
    }
    let told = project.aye(&["exec", "hi"]).exits(0);
    let tools = server.request(0).body["tools"].to_string();
    assert!(!tools.contains("tickets") && !tools.contains("pdf"), "{tools}");
    assert!(told.stderr.contains("the file changed since you added the plugin"), "{}", told.stderr);
    project.aye(&["exec", "/fix 12"]).exits(2).says(&["unknown command `/fix`"]);
    let agents = project.aye(&["agents", "list"]).exits(0);
    assert!(!agents.stdout.contains("reader"), "{}", agents.stdout);
    assert!(agents.stderr.contains("plugin:team-tools/agents/reader.md: the file changed"), "{}", agents.stderr);
    let list = project.aye(&["plugin", "list"]).exits(0);
    assert!(list.stdout.contains("changed since it was added: `agents/reader.md`"), "{}", list.stdout);
    // The source folder is unchanged, so an update repairs the installed plugin.
    project.aye(&["plugin", "update", "team-tools", "--yes"]).exits(0);
    assert_eq!(listed(&project)[0]["change"], Value::Null);
    project.aye(&["skills", "show", "pdf"]).exits(0);
}

#[test]
fn a_skill_with_a_changed_or_new_file_cannot_be_loaded() {
    for change in ["skills/pdf/references/forms.md", "skills/pdf/new.sh"] {
        let server = Server::new([Answer::call("c1", "Skill", json!({"name": "pdf"})), Answer::text("Done.")]);
        let project = Project::with(&server);
        add(&project);
        fs::write(installed(&project).join(change), "other\n").unwrap();
        project.aye(&["exec", "hi"]).exits(0);
        let result = server.request(1).tool_results().pop().unwrap().1;
        assert!(result.contains("is not used") && result.contains("since the user added the plugin"), "{change}: {result}");
    }
}

#[test]
fn a_changed_tool_program_needs_approval_under_every_policy() {
    let server = Server::new([Answer::call("c1", "tickets", json!({})), Answer::text("Done.")]);
    let project = Project::outside_tmp_with(&server).policy(TOOL_ALLOWED);
    add(&project);
    fs::write(installed(&project).join("tools/tickets.sh"), "#!/bin/sh\necho changed-18\n").unwrap();
    project.aye(&["exec", "hi"]).exits(3);
    let result = server.request(1).tool_results().pop().unwrap().1;
    assert!(!result.contains("changed-18"), "{result}");
}

#[test]
fn parts_with_conflicting_names_are_qualified_by_plugin() {
    let server = Server::new([Answer::text("One."), Answer::text("Two.")]);
    let project = Project::with(&server);
    let root = plugin(&project);
    write(&root, "agents/explore.md", "---\nname: explore\ndescription: Not the built-in one.\n---\nRead.\n");
    write(&root, "commands/model.md", "Not the built-in one.\n");
    project.aye(&["plugin", "add", root.to_str().unwrap(), "--yes"]).exits(0);
    write(&project.directory("config"), "skills/pdf/SKILL.md", &skill("pdf", "Mine."));
    write(&project.directory("config"), "commands/fix.md", "Mine.\n");
    assert!(project.aye(&["skills", "show", "pdf"]).exits(0).stdout.contains("Mine."));
    assert!(project.aye(&["skills", "show", "team-tools:pdf"]).exits(0).stdout.contains("Read references"));
    let explore = project.aye(&["agents", "show", "explore"]).exits(0).stdout;
    assert!(!explore.contains("Not the built-in one."), "{explore}");
    let other = project.aye(&["agents", "show", "team-tools:explore"]).exits(0).stdout;
    assert!(other.contains("Not the built-in one."), "{other}");
    project.aye(&["exec", "/team-tools:fix 12"]).exits(0);
    assert!(server.request(0).body.to_string().contains("Fix issue 12."));
    project.aye(&["exec", "/fix 12"]).exits(0);
    assert!(server.request(1).body.to_string().contains("Mine."));
}

#[test]
fn adding_a_plugin_again_shows_the_difference() {
    let project = Project::empty();
    let root = add(&project);
    let path = root.to_str().unwrap();
    assert!(project.aye(&["plugin", "add", path]).exits(0).stdout.contains("already installed with the same files"));
    write(&root, "commands/fix.md", "---\ndescription: Fixes an issue.\n---\nFix issue $1, with a test.\n");
    write(&root, "commands/more.md", "More.\n");
    fs::remove_file(root.join("agents/reader.md")).unwrap();
    let before = installed(&project);
    let plan = project.aye(&["plugin", "update", "team-tools"]).exits(2).says(&["nothing was changed"]);
    for part in [
        "Differences from the installed version 1.0.0:",
        "\nremove agents/reader.md\n",
        "\nchange commands/fix.md\n",
        "\n-Fix issue $1.\n+Fix issue $1, with a test.\n",
        "\nadd commands/more.md\n",
    ] {
        assert!(plan.stdout.contains(part), "{part}:\n{}", plan.stdout);
    }
    assert_eq!(installed(&project), before);
    project.aye(&["plugin", "disable", "team-tools"]).exits(0);
    project.aye(&["plugin", "update", "team-tools", "--yes"]).exits(0);
    assert_ne!(installed(&project), before);
    assert_eq!(listed(&project)[0]["enabled"], json!(false), "an update does not enable a plugin");
    write(&root, ".claude-plugin/plugin.json", r#"{"name": "other"}"#);
    project.aye(&["plugin", "update", "team-tools", "--yes"]).exits(1).says(&["is now the plugin `other`"]);
    fs::remove_dir_all(&root).unwrap();
    project.aye(&["plugin", "update", "team-tools", "--yes"]).exits(2).says(&["cannot add a plugin from"]);
    assert_eq!(listed(&project)[0]["change"], Value::Null);
}

#[test]
fn a_killed_installation_leaves_no_files_behind() {
    let project = Project::empty();
    let root = plugin(&project);
    let mut terminal = project.open(&["plugin", "add", root.to_str().unwrap()]);
    terminal.wait_for("Add this plugin?");
    project.aye(&["plugin", "add", root.to_str().unwrap(), "--yes"]).exits(1).says(&["another aye process is changing plugins"]);
    terminal.kill();
    assert_eq!(listed(&project), json!([]));
    assert!(installed(&project).file_name().unwrap().to_string_lossy().starts_with(".staging-"));
    project.aye(&["plugin", "add", root.to_str().unwrap(), "--yes"]).exits(0);
    assert!(installed(&project).file_name().unwrap().to_string_lossy().starts_with("team-tools-"));
}

#[test]
fn folders_without_a_plugin_are_rejected_with_a_reason() {
    let prepare: &[(&Change, &str)] = &[
        (&|root| fs::remove_dir_all(root.join(".claude-plugin")).unwrap(), "no plugin manifest"),
        (&|root| write(root, ".claude-plugin/plugin.json", "{"), "is not a valid manifest"),
        (&|root| write(root, ".claude-plugin/plugin.json", r#"{"name": "../../x"}"#), "may contain only lower-case letters"),
        (&|root| write(root, ".claude-plugin/plugin.json", &" ".repeat(100 << 10)), "is not a valid manifest"),
        (&|root| symlink("/etc", root.join("skills/etc")).unwrap(), "`skills/etc` is a symlink"),
        (&|root| symlink("..", root.join("skills/loop")).unwrap(), "`skills/loop` is a symlink"),
        (&|root| write(root, "skills/PDF/x", "x"), "differs from another file only in case"),
        (&|root| write(root, "a\u{1b}[31mb", "x"), "the name is not plain text"),
        (&|root| (0..10_000).for_each(|number| write(root, &format!("many/{number}"), "")), "the plugin has more than"),
        (
            &|root| {
                for name in ["skills", "agents", "commands", "tools"] {
                    fs::remove_dir_all(root.join(name)).unwrap();
                }
            },
            "contains nothing that aye can use",
        ),
    ];
    for (change, why) in prepare {
        let project = Project::empty();
        let root = plugin(&project);
        change(&root);
        let told = project.aye(&["plugin", "add", root.to_str().unwrap(), "--yes"]).exits(1).says(&[why]);
        assert!(!told.stderr.contains('\u{1b}'), "{why}: {:?}", told.stderr);
        assert_eq!(traces(&project), Vec::<PathBuf>::new(), "{why}");
    }
    let project = Project::empty().file("a-file", "x");
    for (source, why) in [
        ("missing", "cannot add a plugin from `missing`"),
        ("a-file", "not a `.tar.gz`, `.tar` or `.zip` archive"),
        ("", "no plugin manifest"),
    ] {
        let told = project.aye(&["plugin", "add", "--yes", "--", source]);
        assert!(told.code != 0 && told.stderr.contains(why), "{source}: {}", told.stderr);
    }
    assert_eq!(traces(&project), Vec::<PathBuf>::new());
}

#[test]
fn invalid_parts_are_reported_and_not_used() {
    let project = Project::empty();
    let root = plugin(&project);
    write(&root, "skills/broken/SKILL.md", "---\nname: other\ndescription: x\n---\nx");
    write(&root, "agents/broken.md", "no front matter");
    write(&root, "tools/broken.toml", "name = ");
    let checked = project.aye(&["plugin", "check", root.to_str().unwrap()]).exits(1);
    for part in ["skills/broken/SKILL.md:2: `name` is `other`", "agents/broken.md", "tools/broken.toml"] {
        assert!(checked.stdout.contains(part), "{part}:\n{}", checked.stdout);
    }
    assert_eq!(traces(&project), Vec::<PathBuf>::new());
    project.aye(&["plugin", "add", root.to_str().unwrap(), "--yes"]).exits(0);
    let skills = project.aye(&["skills", "list"]).exits(0);
    assert!(skills.stdout.contains("pdf") && !skills.stdout.contains("other"), "{}", skills.stdout);
    fs::remove_dir_all(root.join("skills/broken")).unwrap();
    fs::remove_file(root.join("agents/broken.md")).unwrap();
    fs::remove_file(root.join("tools/broken.toml")).unwrap();
    project.aye(&["plugin", "check", root.to_str().unwrap()]).exits(0);
}

#[test]
fn nested_aye_processes_cannot_change_plugins() {
    let project = Project::empty();
    let root = plugin(&project).display().to_string();
    let project = project.env("AYE", "1");
    for line in [&["add", &root, "--yes"][..], &["remove", "x"], &["enable", "x"], &["disable", "x"], &["update", "x"]] {
        let words: Vec<&str> = ["plugin"].into_iter().chain(line.iter().copied()).collect();
        project.aye(&words).exits(2).says(&["`aye plugin` was refused"]);
    }
    project.aye(&["plugin", "list"]).exits(0);
}
