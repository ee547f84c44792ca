//! Plugin parts that run programs: hooks, MCP servers and skill scripts, which are sandboxed and must be unchanged
//! since installation.

use crate::remote_tools::SERVER as SERVER_PROGRAM;
use crate::support::{Answer, Project, Server};
use serde_json::json;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Policy that allows all calls of these tests, so that only a hook can deny a call or require its approval.
const OPEN: &str = "schema_version = 1\n[capabilities.\"File.Read\"]\nallowed_paths = [\"${workspace}\"]\n\
                    [capabilities.\"File.Write\"]\nallowed_paths = [\"${workspace}\"]\n\
                    [capabilities.\"Shell.Exec\"]\nrequires_approval = false\nsandbox = \"workspace-write\"\n\
                    [capabilities.\"Mcp.Invoke\"]\nallowed_tools = [\"guard:docs/*\"]\nrequires_approval = false\n";

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text).unwrap();
    if text.starts_with("#!") {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
}

/// Adds a plugin with these files. Returns its installation folder.
fn add(project: &Project, files: &[(&str, &str)]) -> PathBuf {
    let root = project.directory("home").join("guard");
    write(&root, ".claude-plugin/plugin.json", r#"{"name": "guard"}"#);
    for (path, text) in files {
        write(&root, path, text);
    }
    project.aye(&["plugin", "add", root.to_str().unwrap(), "--yes"]).exits(0);
    let mut folders = fs::read_dir(project.directory("data").join("plugins")).unwrap();
    folders.next().unwrap().unwrap().path()
}

fn hooks(event: &str, matcher: &str, command: &str) -> String {
    json!({"hooks": {event: [{"matcher": matcher, "hooks": [{"type": "command", "command": command, "timeout": 20}]}]}})
        .to_string()
}

fn last_result(server: &Server, request: usize) -> String {
    server.request(request).tool_results().pop().unwrap().1
}

fn two_writes() -> Server {
    let write = |id: &str| Answer::call(id, "WriteFile", json!({"path": "a.txt", "content": "new\n"}));
    Server::new([write("c1"), Answer::text("Done.")])
}

#[test]
fn plugin_hooks_can_deny_calls_and_read_their_own_files() {
    let server = two_writes();
    let project = Project::outside_tmp_with(&server).policy(OPEN);
    let script = "#!/bin/sh\ncat \"$CLAUDE_PLUGIN_ROOT/reason\" >&2\necho x >\"$CLAUDE_PLUGIN_ROOT/reason\"\nexit 2\n";
    let hooks = hooks("PreToolUse", "Write", "\"${CLAUDE_PLUGIN_ROOT}\"/deny.sh");
    let folder = add(&project, &[("hooks/hooks.json", &hooks), ("deny.sh", script), ("reason", "frozen by the team\n")]);
    let list = project.aye(&["hooks", "list"]).exits(0);
    assert!(list.stdout.contains("plugin:guard/hooks/hooks.json PreToolUse 1 [Write]"), "{}", list.stdout);
    let shown = project.aye(&["plugin", "show", "guard"]).exits(0);
    let line = "Hooks:\n  PreToolUse [Write]: runs `\"${CLAUDE_PLUGIN_ROOT}\"/deny.sh`\n";
    assert!(shown.stdout.contains(line), "{}", shown.stdout);
    project.aye(&["exec", "hi"]).exits(3);
    let result = last_result(&server, 1);
    assert!(result.contains("frozen by the team"), "{result}");
    assert!(!project.exists("a.txt"));
    assert_eq!(fs::read_to_string(folder.join("reason")).unwrap(), "frozen by the team\n", "the sandbox is read-only");
}

#[test]
fn calls_matched_by_hooks_of_a_changed_plugin_need_approval() {
    for (change, why) in [
        ("allow.sh", "the plugin guard changed since you added it: `allow.sh`"),
        ("new.sh", "`new.sh` is new"),
        ("hooks/hooks.json", "the file changed since you added the plugin"),
    ] {
        let server = two_writes();
        let project = Project::outside_tmp_with(&server).policy(OPEN);
        let hooks = hooks("PreToolUse", "Write", "\"$CLAUDE_PLUGIN_ROOT\"/allow.sh");
        let folder = add(&project, &[("hooks/hooks.json", &hooks), ("allow.sh", "#!/bin/sh\nexit 0\n")]);
        project.aye(&["exec", "hi"]).exits(0);
        assert!(project.exists("a.txt"));
        fs::remove_file(project.path("a.txt")).unwrap();
        fs::write(folder.join(change), "#!/bin/sh\nexit 0\n# changed\n").unwrap();
        let server = two_writes();
        let project = project.connected_to(&server);
        project.aye(&["exec", "hi"]).exits(3);
        let result = last_result(&server, 1);
        assert!(result.contains(why), "{change}: {result}");
        assert!(!project.exists("a.txt"));
        let list = project.aye(&["hooks", "list"]).exits(0);
        assert!(list.stdout.contains("does not run"), "{}", list.stdout);
        project.aye(&["plugin", "disable", "guard"]).exits(0);
        assert!(project.aye(&["hooks", "list"]).exits(0).stdout.contains("no hooks"));
    }
}

#[test]
fn hooks_and_servers_are_read_from_the_paths_in_the_manifest() {
    let project = Project::empty();
    let manifest = json!({
        "name": "guard",
        "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "inline-hook"}]}]},
        "mcpServers": "./config/servers.json",
    });
    let file = hooks("PreToolUse", "Bash", "usual-hook");
    let servers = json!({"docs": {"command": "docs-server", "args": ["--all"], "env": {"TOKEN": "${DOCS_TOKEN}"}}});
    let root = project.directory("home").join("guard");
    let files = [
        (".claude-plugin/plugin.json", manifest.to_string()),
        ("hooks/hooks.json", file),
        ("config/servers.json", servers.to_string()),
        (".mcp.json", json!({"mcpServers": {"web": {"type": "http", "url": "https://example.org/mcp"}}}).to_string()),
    ];
    for (path, text) in files {
        write(&root, path, &text);
    }
    let plan = project.aye(&["plugin", "add", root.to_str().unwrap()]).exits(2).stdout;
    for part in [
        "  PreToolUse [Bash]: runs `usual-hook`\n",
        "  Stop [*]: runs `inline-hook`\n",
        "  guard:docs: runs `docs-server --all`, env: TOKEN=`${DOCS_TOKEN}`; passes your environment variables: DOCS_TOKEN\n",
        "  guard:web: connects to https://example.org/mcp\n",
        "The hooks run in the sandbox",
        "aye mcp allow PLUGIN:SERVER",
    ] {
        assert!(plan.contains(part), "{part}:\n{plan}");
    }
}

#[test]
fn the_plan_describes_the_effective_server_entry_and_reports_duplicates() {
    let project = Project::empty();
    let root = project.directory("home").join("guard");
    let servers = |command: &str| json!({"mcpServers": {"docs": {"command": command}}}).to_string();
    write(&root, "plugin.json", &json!({"name": "guard", "mcpServers": "./more.json"}).to_string());
    write(&root, ".mcp.json", &json!({"mcpServers": {"docs": {"command": "unused", "url": "https://example.org"}}}).to_string());
    write(&root, "more.json", &servers("second"));
    let plan = project.aye(&["plugin", "check", root.to_str().unwrap()]).exits(1).stdout;
    assert!(plan.contains("  guard:docs: runs `second`"), "the first entry is not valid:\n{plan}");
    write(&root, ".mcp.json", &servers("first"));
    let plan = project.aye(&["plugin", "check", root.to_str().unwrap()]).exits(1).stdout;
    assert!(plan.contains("  guard:docs: runs `first`") && !plan.contains("runs `second`"), "{plan}");
    let why = "`plugin:guard/more.json`: ignored the MCP server `docs`: `plugin:guard/.mcp.json` has a server with the same name";
    assert!(plan.contains(why), "{plan}");
}

#[test]
fn a_plugin_server_runs_only_if_listed_by_the_policy_and_unchanged() {
    let server = Server::new([
        Answer::call("c1", "Mcp.guard:docs/echo", json!({"text": "hello"})),
        Answer::text("Done."),
        Answer::call("c2", "Mcp.guard:docs/echo", json!({"text": "hello"})),
        Answer::text("Again."),
    ]);
    let project = Project::outside_tmp_with(&server);
    let entry = json!({"mcpServers": {"docs": {"command": "${CLAUDE_PLUGIN_ROOT}/server.sh", "cwd": "${CLAUDE_PLUGIN_ROOT}"}}});
    let program = SERVER_PROGRAM;
    let folder = add(&project, &[(".mcp.json", &entry.to_string()), ("server.sh", program), ("describes", "Says it again.")]);
    let list = project.aye(&["mcp", "list"]).exits(0);
    assert!(list.stdout.contains("guard:docs") && list.stdout.contains("lists none of its tools yet"), "{}", list.stdout);
    project.aye(&["mcp", "allow", "guard:docs"]).exits(0);
    let test = project.aye(&["mcp", "test", "guard:docs"]).exits(0);
    assert!(test.stdout.contains("echo"), "{}", test.stdout);
    let project = project.policy(OPEN);
    project.aye(&["exec", "hi"]).exits(0);
    let result = last_result(&server, 1);
    assert!(result.contains("said: hello"), "{result}");
    fs::write(folder.join("server.sh"), format!("{program}# changed\n")).unwrap();
    let test = project.aye(&["mcp", "test", "guard:docs"]).exits(1);
    assert!(format!("{}{}", test.stdout, test.stderr).contains("changed since you added it"), "{}{}", test.stdout, test.stderr);
    project.aye(&["exec", "hi"]).exits(0);
    let result = last_result(&server, 3);
    assert!(result.contains("the plugin guard changed since you added it") && !result.contains("said: hello"), "{result}");
}

#[test]
fn a_plugin_server_starts_in_its_folder_and_runs_no_untrusted_project_files() {
    let server = Server::new([]);
    let project = Project::outside_tmp_with(&server);
    let entry = |arguments: &[&str]| {
        json!({"mcpServers": {"docs": {"command": "${CLAUDE_PLUGIN_ROOT}/server.sh", "args": arguments}}}).to_string()
    };
    add(&project, &[(".mcp.json", &entry(&[])), ("server.sh", SERVER_PROGRAM), ("describes", "Says it again.")]);
    project.aye(&["mcp", "allow", "guard:docs"]).exits(0);
    project.aye(&["mcp", "test", "guard:docs"]).exits(0);
    fs::write(project.path("evil.js"), "evil()\n").unwrap();
    let evil = project.path("evil.js").canonicalize().unwrap();
    add(&project, &[(".mcp.json", &entry(&[evil.to_str().unwrap()])), ("server.sh", SERVER_PROGRAM), ("describes", "x")]);
    let test = project.aye(&["mcp", "test", "guard:docs"]).exits(1);
    let told = format!("{}{}", test.stdout, test.stderr);
    assert!(told.contains("runs `evil.js` from the project"), "{told}");
}

#[test]
fn plugin_skill_scripts_run_sandboxed_and_need_approval_once_changed() {
    let server = Server::with_responder(|request| {
        let results = request.tool_results();
        let Some((_, loaded)) = results.first() else {
            return Answer::call("c1", "Skill", json!({"name": "pdf"}));
        };
        let line = loaded.lines().find(|line| line.contains("scripts/run.sh (")).unwrap();
        let script = line.split(" (").next().unwrap().to_owned();
        match results.len() {
            1 => Answer::call("c2", "RunCommand", json!({"command": format!("{script} && touch {script}.new")})),
            _ => Answer::text("Done."),
        }
    });
    let project = Project::outside_tmp_with(&server).policy(OPEN);
    let skill = "---\nname: pdf\ndescription: Reads PDF files.\n---\nRun scripts/run.sh.\n";
    let script = "#!/bin/sh\n. \"$(dirname \"$0\")\"/part.sh\n";
    let files = [
        ("skills/pdf/SKILL.md", skill),
        ("skills/pdf/scripts/run.sh", script),
        ("skills/pdf/scripts/part.sh", "#!/bin/sh\necho extracted-17\n"),
        ("secret.txt", "not of the skill\n"),
    ];
    let folder = add(&project, &files);
    project.aye(&["exec", "hi"]);
    let result = last_result(&server, 2);
    assert!(result.contains("extracted-17") && result.contains("Read-only file system"), "{result}");
    assert!(!folder.join("skills/pdf/scripts/run.sh.new").exists());
    // Only the files of the skill are visible, not the other files of the plugin.
    let script = folder.join("skills/pdf/scripts/run.sh");
    let other = Server::new([
        Answer::call("c1", "RunCommand", json!({"command": format!("ls -a {}", folder.join("skills/pdf/../..").display())})),
        Answer::call("c2", "RunCommand", json!({"command": script.display().to_string()})),
        Answer::text("Done."),
    ]);
    let project = project.connected_to(&other);
    fs::write(&script, "#!/bin/sh\necho changed-18\n").unwrap();
    project.aye(&["exec", "hi"]).exits(3);
    assert!(!last_result(&other, 1).contains("secret.txt"), "{}", last_result(&other, 1));
    let result = last_result(&other, 2);
    assert!(!result.contains("changed-18") && result.contains("changed since"), "{result}");
}
