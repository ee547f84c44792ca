//! Tests of commands that continue while the agent works: typing, reading, moving to the background, and ending.

use super::*;
use crate::protocol::{Place, RunningState, Target};
use crate::tools::background::{BackgroundCommand, BackgroundKind, Commands, MAX_SESSIONS, NewCommand, new_output};
use std::time::Duration;

/// A workspace in which commands continue to run between calls.
struct Live {
    bench: Bench,
    router: Router,
    commands: Commands,
}

impl Live {
    fn new() -> Self {
        let bench = Bench::new();
        Self { router: bench.router(), commands: bench.settings.session.commands.clone(), bench }
    }

    async fn plan(&self, tool: &str, arguments: Value) -> Result<Plan, ToolError> {
        self.router.plan(call(tool, arguments)).await
    }

    async fn run(&self, plan: Plan) -> ToolResult {
        self.run_with(plan, context()).await
    }

    async fn run_with(&self, plan: Plan, context: RunContext) -> ToolResult {
        let permit = Permit::for_test(plan.actions.clone());
        self.router.run(plan, permit, context).await
    }

    async fn output(&self, tool: &str, arguments: Value) -> String {
        let plan = self.plan(tool, arguments).await.unwrap();
        let result = self.run(plan).await;
        assert_eq!(result.status, ToolStatus::Succeeded, "{result:?}");
        result.output_text
    }

    async fn error(&self, tool: &str, arguments: Value) -> (ErrorCode, String) {
        let error = match self.plan(tool, arguments).await {
            Err(error) => error,
            Ok(plan) => self.run(plan).await.error.unwrap(),
        };
        (error.code, error.message)
    }

    /// Reads output until the text appears.
    async fn read_until(&self, id: &str, wanted: &str) -> String {
        let mut all = String::new();
        for _ in 0..40 {
            all += &self.output("CliRead", json!({"id": id, "waitSeconds": 5})).await;
            if all.contains(wanted) {
                return all;
            }
        }
        panic!("`{wanted}` never appeared: {all}");
    }

    async fn type_until(&self, id: &str, text: &str, wanted: &str) -> String {
        let first = self.output("CliWrite", json!({"id": id, "text": text})).await;
        if first.contains(wanted) { first } else { first + &self.read_until(id, wanted).await }
    }

    /// Returns the action with which the policy would check the input.
    async fn judged(&self, arguments: Value) -> Option<(String, PathBuf)> {
        match self.plan("CliWrite", arguments).await.unwrap().actions.pop() {
            None => None,
            Some(Action::Exec { command, cwd }) => Some((command, cwd.real)),
            Some(other) => panic!("{other:?}"),
        }
    }

    /// Waits until the shell is in the foreground again.
    async fn prompt(&self, id: &str) {
        let entry = self.commands.find(id).unwrap();
        for _ in 0..200 {
            if entry.keys().unwrap().front().unwrap().is_leader {
                return;
            }
            entry.wait_until_quiet(u64::MAX - 1, Duration::from_millis(50)).await;
        }
        panic!("the shell never returned to the foreground");
    }
}

#[tokio::test]
async fn a_shell_keeps_its_state_between_lines() {
    let live = Live::new();
    fs::create_dir(live.bench.path("sub")).unwrap();
    let started = live.output("CliSession", json!({})).await;
    assert!(started.contains("s1 is running: bash") && started.contains("CliWrite s1"), "{started}");
    live.type_until("s1", "cd sub; x=41", "x=41").await;
    let answer = live.type_until("s1", "echo $((x+1)) in $PWD", "42 in").await;
    assert!(answer.contains(&format!("42 in {}", live.bench.path("sub").display())), "{answer}");
    // Output is returned once.
    assert!(live.output("CliRead", json!({"id": "s1"})).await.contains("[no new output"));
    let ended = live.type_until("s1", "exit 3", "has ended (exit 3)").await;
    assert!(ended.contains("exit 3"), "{ended}");
    let (_, message) = live.error("CliWrite", json!({"id": "s1", "text": "ls"})).await;
    assert!(message.contains("s1 has ended (exit 3)"), "{message}");
}

#[tokio::test]
async fn prompts_can_be_answered_and_passwords_are_not_shown() {
    let live = Live::new();
    let line = "read -rsp 'Password: ' word; echo; echo \"${#word} letters\"; read -rp 'Sure? ' yes; echo \"said $yes\"";
    let started = live.output("CliSession", json!({"command": line})).await;
    assert!(started.contains("Password:"), "{started}");
    let answer = live.type_until("s1", "hunter2-hunter2", "Sure?").await;
    assert!(answer.contains("15 letters") && !answer.contains("hunter2"), "{answer}");
    let answer = live.type_until("s1", "yes", "has ended").await;
    assert!(answer.contains("said yes") && answer.contains("(exit 0)"), "{answer}");
}

#[tokio::test]
async fn input_is_judged_strictly_on_terminals_with_unusual_edit_characters() {
    let live = Live::new();
    live.output("CliSession", json!({})).await;
    let line = json!({"id": "s1", "text": "echo 'a@rm -rf x #'"});
    assert_eq!(live.judged(line.clone()).await.unwrap().0, "echo 'a@rm -rf x #'");
    let tests = live.bench.path("tests.sh");
    fs::write(&tests, "#!/bin/sh\necho 'one passes'\n").unwrap();
    fs::set_permissions(&tests, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    live.type_until("s1", "./tests.sh", "one passes").await;
    live.prompt("s1").await;
    assert_eq!(live.judged(line.clone()).await.unwrap().0, "echo 'a@rm -rf x #'");
    // To the shell, it would be `rm -rf x` from now on.
    fs::write(&tests, "#!/bin/sh\nstty kill @\necho 'two pass'\n").unwrap();
    live.type_until("s1", "./tests.sh", "two pass").await;
    live.prompt("s1").await;
    assert!(live.judged(line).await.unwrap().0.starts_with("bash <<"), "the input is judged by its strictest reading");
}

#[tokio::test]
async fn a_python_session_responds() {
    if std::process::Command::new("python3").arg("--version").output().is_err() {
        println!("skipped: python3 is not installed");
        return;
    }
    let live = Live::new();
    let started = live.output("CliSession", json!({"command": "python3 -q"})).await;
    if !started.contains(">>>") {
        live.read_until("s1", ">>>").await;
    }
    let answer = live.type_until("s1", "print(6*7)", "\n42").await;
    assert!(answer.contains(">>>"), "{answer}");
    let ended = live.type_until("s1", "exit()", "has ended").await;
    assert!(ended.contains("exit 0"), "{ended}");
}

#[tokio::test]
async fn full_screen_programs_are_read_as_drawn_and_notified_of_a_resize() {
    let live = Live::new();
    let line = "printf '\\033[?1049h\\033[2J\\033[5;3Hin the middle\\033[1;1Htop'; read -rsn1 key; \
                trap 'stty size' WINCH; printf '\\033[?1049lpressed %s\\r\\n' \"$key\"; while ! read -rt 0.1 end; do :; done";
    let drawn = live.output("CliSession", json!({"command": line, "rows": 10, "columns": 40})).await;
    assert!(drawn.contains("--- screen ---\ntop\n\n\n\n  in the middle"), "{drawn}");
    live.output("CliWrite", json!({"id": "s1", "text": "q", "enter": false})).await;
    let screen = live.output("CliRead", json!({"id": "s1", "screen": true})).await;
    assert!(screen.contains("pressed q"), "{screen}");
    live.output("CliRead", json!({"id": "s1", "rows": 20, "columns": 100})).await;
    for _ in 0..40 {
        if live.output("CliRead", json!({"id": "s1", "screen": true, "waitSeconds": 1})).await.contains("20 100") {
            break;
        }
    }
    let screen = live.output("CliRead", json!({"id": "s1", "screen": true})).await;
    assert!(screen.contains("20 100"), "{screen}");
}

#[tokio::test]
async fn a_program_in_a_shell_can_be_interrupted() {
    let live = Live::new();
    live.output("CliSession", json!({})).await;
    live.output("CliWrite", json!({"id": "s1", "text": "sleep 1000"})).await;
    let plan = live.plan("CliWrite", json!({"id": "s1", "keys": ["ctrl-c"]})).await.unwrap();
    assert!(plan.actions.is_empty(), "an interrupt needs no approval");
    live.run(plan).await;
    live.prompt("s1").await;
    let answer = live.type_until("s1", "echo status $?", "status 130").await;
    assert!(answer.contains("status 130"), "{answer}");
}

#[tokio::test]
async fn input_for_an_idle_shell_is_evaluated_as_a_command_in_its_directory() {
    let live = Live::new();
    fs::create_dir(live.bench.path("sub")).unwrap();
    live.output("CliSession", json!({})).await;
    live.prompt("s1").await;
    let workspace = live.bench.settings.workspace.clone();
    let line = |text: &str| json!({"id": "s1", "text": text});
    assert_eq!(live.judged(line("ls -l")).await, Some(("ls -l".to_owned(), workspace)));
    assert_eq!(live.judged(line("ls\n")).await.unwrap().0, "ls");
    assert_eq!(live.judged(json!({"id": "s1", "keys": ["enter"]})).await, None);
    live.output("CliWrite", line("cd sub")).await;
    live.prompt("s1").await;
    assert_eq!(live.judged(line("ls")).await, Some(("ls".to_owned(), live.bench.path("sub"))));
    // Anything judged as other than exactly that line is never allowed by a rule, because rules do not apply to input.
    for odd in ["ls\nls", "ls !x"] {
        let (command, _) = live.judged(line(odd)).await.unwrap();
        assert!(command.starts_with("bash <<'STDIN'\n") && command.contains(odd), "{command}");
    }
    for arguments in [
        json!({"id": "s1", "text": "su", "enter": false}),
        json!({"id": "s1", "text": "sux", "keys": ["backspace"]}),
        json!({"id": "s1", "keys": ["up"]}),
        json!({"id": "s1", "text": "l\ts"}),
        json!({"id": "s1", "text": "ls", "keys": ["ctrl-d"]}),
    ] {
        let (code, message) = live.error("CliWrite", arguments.clone()).await;
        assert!(code == ErrorCode::InvalidRequest && message.contains("complete lines"), "{arguments}: {message}");
    }
}

#[tokio::test]
async fn input_for_a_shell_whose_state_changed_is_evaluated_as_stdin() {
    let live = Live::new();
    live.output("CliSession", json!({})).await;
    live.prompt("s1").await;
    live.output("CliWrite", json!({"id": "s1", "text": "alias ls='echo gotcha'"})).await;
    live.prompt("s1").await;
    let (command, _) = live.judged(json!({"id": "s1", "text": "ls"})).await.unwrap();
    assert_eq!(command, "bash <<'STDIN'\nls\nSTDIN");
    // Behind another program on the terminal, a line is input of that program, and may still reach the shell.
    live.output("CliSession", json!({})).await;
    live.prompt("s2").await;
    live.output("CliWrite", json!({"id": "s2", "text": "cat"})).await;
    let (command, _) = live.judged(json!({"id": "s2", "text": "ls"})).await.unwrap();
    assert_eq!(command, "bash <<'STDIN'\nls\nSTDIN");
}

#[tokio::test]
async fn only_one_of_two_concurrently_approved_lines_is_typed() {
    let live = Live::new();
    live.output("CliSession", json!({})).await;
    live.prompt("s1").await;
    let first = live.plan("CliWrite", json!({"id": "s1", "text": "echo first"})).await.unwrap();
    let second = live.plan("CliWrite", json!({"id": "s1", "text": "echo second"})).await.unwrap();
    assert_eq!(live.run(first).await.status, ToolStatus::Succeeded);
    let error = live.run(second).await.error.unwrap();
    assert!(error.code == ErrorCode::Conflict && error.message.contains("nothing was typed"), "{error}");
}

#[tokio::test]
async fn input_for_a_program_is_evaluated_as_part_of_its_command() {
    let live = Live::new();
    live.output("CliSession", json!({"command": "cat -u"})).await;
    let (command, _) = live.judged(json!({"id": "s1", "text": "hello"})).await.unwrap();
    assert_eq!(command, "cat -u <<'STDIN'\nhello\nSTDIN");
    // Text typed without Enter is part of the next line.
    live.output("CliWrite", json!({"id": "s1", "text": "rm ", "enter": false})).await;
    let (command, _) = live.judged(json!({"id": "s1", "text": "-rf", "keys": ["tab"]})).await.unwrap();
    assert!(command.contains("rm -rf<tab>"), "{command}");
    // A shell behind another program also accepts only whole lines.
    live.output("CliSession", json!({"command": "env A=b bash"})).await;
    let (command, _) = live.judged(json!({"id": "s2", "text": "id"})).await.unwrap();
    assert_eq!(command, "env A=b bash <<'STDIN'\nid\nSTDIN");
    let (_, message) = live.error("CliWrite", json!({"id": "s2", "text": "su", "enter": false})).await;
    assert!(message.contains("complete lines"), "{message}");
}

#[tokio::test]
async fn a_sixth_session_is_rejected_until_another_ends() {
    let live = Live::new();
    for _ in 0..MAX_SESSIONS {
        live.output("CliSession", json!({"command": "echo ready; cat"})).await;
    }
    let (code, message) = live.error("CliSession", json!({"command": "cat"})).await;
    assert!(code == ErrorCode::InvalidRequest && message.contains("s1, s2, s3, s4, s5"), "{message}");
    let stopped = live.output("CliStop", json!({"id": "s2"})).await;
    assert!(stopped.contains("s2 has ended (stopped)"), "{stopped}");
    assert!(live.output("CliSession", json!({"command": "echo ready; cat"})).await.contains("s6 is running"));
    let (_, message) = live.error("CliRead", json!({"id": "s99"})).await;
    assert!(message.contains("`s99`; known IDs: s1, s2, s3"), "{message}");
}

#[tokio::test]
async fn ended_sessions_are_readable_until_evicted_by_newer_ones() {
    let live = Live::new();
    for number in 1..=7 {
        let told = live.output("CliSession", json!({"command": format!("echo {number}")})).await;
        assert!(told.contains("has ended (exit 0)"), "{told}");
    }
    assert!(live.commands.find("s1").is_err());
    assert!(live.output("CliRead", json!({"id": "s7", "screen": true})).await.contains('7'));
}

#[tokio::test]
async fn large_session_output_is_limited_and_its_end_is_kept() {
    let live = Live::new();
    let line = "echo begun; while [ ! -e go ]; do sleep 0.02; done; yes 0123456789 | head -c 2000000; echo the end";
    assert!(live.output("CliSession", json!({"command": line})).await.contains("begun"));
    live.bench.write("go", "");
    // A reader that reads in time would lose nothing.
    live.commands.find("s1").unwrap().over().await;
    let all = live.output("CliRead", json!({"id": "s1"})).await;
    assert!(all.contains("has ended") && all.trim_end().ends_with("the end"), "{}", all.len());
    assert!(all.contains("were lost: too much output at once"), "{}", all.len());
    assert!(all.len() < 1_000_000, "{}", all.len());
}

#[test]
fn the_end_of_a_session_is_reported_after_all_its_output() {
    let bench = Bench::new();
    for _ in 0..2000 {
        let entry = BackgroundCommand::new(NewCommand {
            line: "make".to_owned(),
            cwd: Target { given: ".".to_owned(), real: bench.root.clone(), place: Place::Directory },
            call: None,
            kind: BackgroundKind::Background,
            writes: bench.settings.command.sandbox.writes_in_workspace(),
            redactor: Arc::clone(&bench.settings.redactor),
        });
        let printing = std::thread::spawn({
            let entry = Arc::clone(&entry);
            move || {
                entry.push(b"the end\n");
                entry.end("exit 0".to_owned());
            }
        });
        let mut all = String::new();
        while !all.contains("has ended") {
            all += &new_output(&entry, bench.settings.max_output_bytes).text;
        }
        printing.join().unwrap();
        assert!(all.contains("the end"), "{all}");
    }
}

#[tokio::test]
async fn background_commands_can_be_read_and_stopped() {
    let live = Live::new();
    let mut list = live.commands.watch();
    let line = "echo begun; while [ ! -e go ]; do sleep 0.02; done; echo done";
    let told = live.output("RunCommand", json!({"command": line, "background": true})).await;
    assert!(told.contains("background as s1") && told.contains("begun"), "{told}");
    list.wait_for(|list| list.iter().any(|one| one.last_line == "begun")).await.unwrap();
    live.bench.write("go", "");
    let all = live.read_until("s1", "has ended (exit 0)").await;
    assert!(all.contains("\ndone") && !all.contains("\nbegun"), "{all}");
    let ended = RunningState::Ended { how: "exit 0".into() };
    list.wait_for(|list| list.iter().any(|one| one.id == "s1" && one.state == ended && one.last_line == "done")).await.unwrap();
    let (_, message) = live.error("CliWrite", json!({"id": "s1", "text": "x"})).await;
    assert!(message.contains("has no terminal"), "{message}");
    let (_, message) = live.error("RunCommand", json!({"command": "ls", "background": true, "timeout": 5})).await;
    assert!(message.contains("no time limit"), "{message}");
}

#[tokio::test]
async fn a_running_command_moves_to_the_background_without_loss() {
    let live = Live::new();
    let line = "for n in $(seq 1 200); do echo line $n; done; while [ ! -e go ]; do sleep 0.02; done; echo last";
    let plan = live.plan("RunCommand", json!({"command": line, "timeout": 2})).await.unwrap();
    let (output, mut pieces) = mpsc::channel(16);
    let context = RunContext { output, ..context() };
    let background = context.background.clone();
    let seen = async {
        let mut text = String::new();
        while let Some(piece) = pieces.recv().await {
            text += &piece;
            if text.contains("line 200") {
                background.cancel();
            }
        }
    };
    // The live output ends with the result; otherwise its viewer would wait for the command.
    let (result, ()) = tokio::join!(live.run_with(plan, context), seen);
    assert_eq!(result.status, ToolStatus::Succeeded);
    let text = result.output_text;
    assert!(text.contains("background as s1") && text.contains("line 1\n") && text.contains("line 200"), "{text}");
    assert_eq!(live.commands.watch().borrow()[0].tool_call_id, Some(CallId::new("c")));
    // The time limit of the command is removed.
    let entry = live.commands.find("s1").unwrap();
    entry.wait_until_quiet(u64::MAX - 1, Duration::from_millis(2500)).await;
    assert_eq!(entry.end_reason(), None);
    live.bench.write("go", "");
    let rest = live.read_until("s1", "has ended (exit 0)").await;
    assert!(rest.contains("last") && !rest.contains("line 200"), "{rest}");
}

#[tokio::test]
async fn ending_sessions_kills_everything_they_started() {
    let live = Live::new();
    live.output("CliSession", json!({"command": "echo $$ > one; sleep 1000 & setsid sleep 1000 & trap '' TERM HUP; cat"})).await;
    live.output("RunCommand", json!({"command": "sleep 1000", "background": true})).await;
    live.commands.end_all().await;
    for id in ["s1", "s2"] {
        assert_eq!(live.commands.find(id).unwrap().end_reason(), Some("stopped"), "{id}");
    }
}

#[tokio::test]
async fn routers_of_the_same_session_share_its_commands() {
    let live = Live::new();
    live.output("CliSession", json!({"command": "cat"})).await;
    let other = live.bench.router();
    let plan = other.plan(call("CliRead", json!({"id": "S1"}))).await.unwrap();
    assert_eq!(plan.summary, "Read s1");
    other.stop_command("s1");
    live.commands.find("s1").unwrap().over().await;
}

#[tokio::test]
async fn unavailable_shells_are_errors() {
    let live = Live::new();
    for (shell, part) in [("pwsh", "Windows shell"), ("cmd", "Windows shell"), ("fish", "`auto`, `bash` or `sh`")] {
        let (code, message) = live.error("CliSession", json!({"shell": shell})).await;
        assert!(code == ErrorCode::InvalidRequest && message.contains(part), "{message}");
    }
    let plan = live.plan("CliSession", json!({"shell": "sh", "command": "echo it's"})).await.unwrap();
    assert!(matches!(&plan.actions[..], [Action::Exec { command, .. }] if command == r"sh -c 'echo it'\''s'"), "{plan:?}");
    assert!(live.output("CliSession", json!({"shell": "sh"})).await.contains("is running: sh"));
}

#[tokio::test]
async fn the_platform_and_environment_are_reported_without_secrets() {
    let live = Live::new();
    let platform = live.output("CliGetPlatform", json!({})).await;
    assert!(platform.contains("system: linux") && platform.contains("sandbox: none"), "{platform}");
    let environment = live.output("CliEnv", json!({})).await;
    assert!(environment.contains("PATH=/") && environment.contains("AYE=1"), "{environment}");
    for absent in ["TOKEN", "SECRET", "API_KEY"] {
        assert!(!environment.contains(absent), "{environment}");
    }
    for tool in ["CliGetPlatform", "CliEnv"] {
        assert!(live.plan(tool, json!({})).await.unwrap().actions.is_empty());
    }
}

#[tokio::test]
async fn sessions_with_wider_write_access_than_the_policy_accept_no_input() {
    let live = Live::new();
    live.output("CliSession", json!({"command": "echo ready; cat"})).await;
    let own = &live.bench.settings;
    let workspace = own.workspace.clone();
    let mut part = own.command.sandbox.clone();
    part.paths.writes = false;
    part.paths.writable = vec![workspace.join("sub")];
    part.paths.roots = vec![workspace];
    for sandbox in [own.command.sandbox.clone().read_only(), part] {
        let command = CommandSettings { sandbox, ..own.command.clone() };
        let router = Router::new(Toolset::new(ToolSettings { command, ..own.clone() }, ToolSources::default()));
        let plan = router.plan(call("CliWrite", json!({"id": "s1", "text": "x"}))).await.unwrap();
        let permit = Permit::for_test(plan.actions.clone());
        let error = router.run(plan, permit, context()).await.error.unwrap();
        assert!(error.code == ErrorCode::PolicyDenied && error.message.contains("nothing was typed"), "{error}");
    }
}
