use super::*;
use crate::protocol::CommandEnd;
use crate::tools::settings::CommitTarget;

#[test]
fn a_command_result_has_exit_code_and_both_outputs() {
    let bench = Bench::new();
    fs::create_dir(bench.path("sub")).unwrap();
    let output = bench.output("RunCommand", json!({"command": "pwd; cat; echo oops >&2; exit 4", "cwd": "sub", "stdin": "in\n"}));
    let directory = bench.path("sub");
    assert_eq!(output, format!("Exit code: 4\n--- stdout ---\n{}\nin\n--- stderr ---\noops", directory.display()));
    assert_eq!(bench.output("RunCommand", json!({"command": "true"})), "Exit code: 0\n--- stdout ---\n--- stderr ---");
    let output = bench.output("RunCommand", json!({"command": "kill -9 $$"}));
    assert!(output.starts_with("Exit code: 137 (killed by signal 9, SIGKILL)"), "{output}");
}

#[test]
fn a_command_result_states_how_the_command_ended() {
    let bench = Bench::new();
    let ended = |command: &str| bench.call("RunCommand", json!({"command": command})).ended;
    assert_eq!(ended("echo 'Exit code: 0'; exit 4"), Some(CommandEnd::Exited { code: 4 }));
    assert_eq!(ended("kill -9 $$"), Some(CommandEnd::Signalled { signal: 9, name: "SIGKILL".to_owned() }));
    assert_eq!(bench.call("ListDirectory", json!({"path": "."})).ended, None);
}

#[test]
fn a_command_is_proposed_with_its_timeout() {
    let bench = Bench::new();
    let plan = bench.plan("RunCommand", json!({"command": "cargo test", "timeout": 60})).unwrap();
    assert_eq!((plan.summary.as_str(), plan.timeout_seconds, plan.changes), ("$ cargo test", 60, true));
    assert!(
        matches!(&plan.actions[..], [Action::Exec { command, cwd }] if command == "cargo test" && cwd.real == bench.settings.workspace)
    );
    assert_eq!(plan.proposal.unwrap().summary, "Run: cargo test");
}

#[test]
fn a_timed_out_command_reports_its_output() {
    let bench = Bench::new();
    let result = bench.call("RunCommand", json!({"command": "echo begun; sleep 60", "timeout": 1}));
    assert_eq!(result.ended, Some(CommandEnd::TimedOut { seconds: 1 }));
    assert_eq!(result.error.unwrap().code, ErrorCode::ToolExecutionTimeout);
    assert!(result.output_text.contains("begun"));
}

#[test]
fn stdout_and_stderr_share_one_limit() {
    let bench = Bench::new();
    let long = |count: usize, to: &str| format!("head -c {count} /dev/zero | tr '\\0' x {to};");
    for (stdout, stderr) in [(300_000, 0), (0, 300_000), (300_000, 300_000), (300_000, 10)] {
        let output = bench.output("RunCommand", json!({"command": long(stdout, "") + &long(stderr, ">&2")}));
        assert!(output.len() < 100 * 1024 + 300, "{} of {stdout} and {stderr}", output.len());
        assert!(output.len() > 90 * 1024, "{} of {stdout} and {stderr}", output.len());
        assert!(output.contains("[... truncated "));
    }
}

#[test]
fn provider_keys_are_removed_from_the_environment() {
    let mut settings = Bench::new().settings;
    settings.command.environment = EnvironmentSelection::Inherit;
    settings.command.secret_names = vec!["PATH".into()];
    let bench = Bench { settings: ToolSettings { workspace: "/".into(), ..settings }, ..Bench::new() };
    let output = bench.output("RunCommand", json!({"command": "/usr/bin/env; echo AYE=$AYE"}));
    assert!(!output.contains("\nPATH=") && output.contains("AYE=1"), "{output}");
}

#[test]
fn ghsa_8g75_a_script_changed_after_approval_does_not_run() {
    let bench = Bench::new();
    let restore = || {
        bench.write("x.sh", "echo shown > ran\n");
        bench.write("sub/x.sh", "echo shown > ran\n");
        std::os::unix::fs::symlink("x.sh", bench.path("link")).unwrap();
    };
    restore();
    let ours = |real: &str| fs::read(bench.path(real)).is_ok();
    for (command, cwd) in [
        ("sh x.sh", "."),
        ("bash ./x.sh arg", "."),
        ("env bash -x x.sh", "."),
        (". ./x.sh", "."),
        ("bash -c 'sh x.sh'", "."),
        ("sh link", "."),
        ("sh ../x.sh", "sub"),
        ("sh x.sh", "sub"),
        ("true && sh sub/x.sh", "."),
    ] {
        let call = json!({"command": command, "cwd": cwd});
        let changes: [(&str, &dyn Fn()); 3] = [
            ("its text", &|| ["x.sh", "sub/x.sh"].iter().for_each(|name| bench.write(name, "echo other > ran\n"))),
            ("it is gone", &|| ["x.sh", "sub/x.sh"].iter().for_each(|name| fs::remove_file(bench.path(name)).unwrap())),
            ("another file took its place", &|| {
                bench.write("other.x.sh", "echo other > ran\n");
                bench.write("other.subx.sh", "echo other > ran\n");
                fs::rename(bench.path("other.x.sh"), bench.path("x.sh")).unwrap();
                fs::rename(bench.path("other.subx.sh"), bench.path("sub/x.sh")).unwrap();
            }),
        ];
        for (how, change) in changes {
            let plan = bench.plan("RunCommand", call.clone()).unwrap();
            change();
            let error = bench.run(plan).error.unwrap_or_else(|| panic!("{command}: {how}: it ran"));
            assert_eq!(error.code, ErrorCode::Conflict, "{command}: {how}: {}", error.message);
            assert!(!ours("ran") && !ours("sub/ran"), "{command}: {how}");
            fs::remove_file(bench.path("link")).unwrap();
            restore();
        }
    }
    // A symlink changed to another file with the same content.
    let plan = bench.plan("RunCommand", json!({"command": "sh link"})).unwrap();
    fs::remove_file(bench.path("link")).unwrap();
    std::os::unix::fs::symlink("sub/x.sh", bench.path("link")).unwrap();
    assert_eq!(bench.run(plan).error.unwrap().code, ErrorCode::Conflict);
    // A script that did not exist, and a program too large to read.
    let plan = bench.plan("RunCommand", json!({"command": "sh new.sh"})).unwrap();
    bench.write("new.sh", "echo other > ran\n");
    assert_eq!(bench.run(plan).error.unwrap().code, ErrorCode::Conflict);
    bench.write("large.sh", "#".repeat(9 << 20));
    let plan = bench.plan("RunCommand", json!({"command": "sh large.sh"})).unwrap();
    bench.write("large.sh", "#".repeat((9 << 20) - 20) + "\necho other > ran\n");
    assert_eq!(bench.run(plan).error.unwrap().code, ErrorCode::Conflict);
    assert!(!ours("ran"));
}

#[test]
fn a_command_runs_even_if_unrelated_files_changed() {
    let bench = Bench::new();
    bench.write("x.sh", "cat data\n");
    bench.write("data", "old\n");
    for command in ["sh x.sh", "cat x.sh data", "echo 'cat data' > x.sh; sh x.sh"] {
        let plan = bench.plan("RunCommand", json!({"command": command})).unwrap();
        bench.write("data", "new\n");
        bench.write("beside", "");
        let result = bench.run(plan);
        assert!(result.output_text.contains("new"), "{command}: {result:?}");
        bench.write("data", "old\n");
    }
    assert_eq!(bench.plan("RunCommand", json!({"command": "sh x.sh; ls; /bin/true"})).unwrap().runs, [bench.path("x.sh")]);
}

#[test]
fn ghsa_mwcg_a_working_directory_replaced_after_approval_prevents_the_run() {
    let bench = Bench::new();
    let call = || bench.plan("RunCommand", json!({"command": "touch ran", "cwd": "sub"})).unwrap();
    fs::create_dir_all(bench.root.join("outside")).unwrap();
    fs::create_dir(bench.path("sub")).unwrap();
    let plan = call();
    fs::rename(bench.path("sub"), bench.path("was")).unwrap();
    std::os::unix::fs::symlink("../outside", bench.path("sub")).unwrap();
    assert_eq!(bench.run(plan).error.unwrap().code, ErrorCode::Conflict);
    fs::remove_file(bench.path("sub")).unwrap();
    fs::create_dir(bench.path("sub")).unwrap();
    let plan = call();
    fs::remove_dir(bench.path("sub")).unwrap();
    fs::rename(bench.path("was"), bench.path("sub")).unwrap();
    assert_eq!(bench.run(plan).error.unwrap().code, ErrorCode::Conflict);
    assert!(!bench.root.join("outside/ran").exists() && !bench.path("sub/ran").exists());
}

#[test]
fn approvals_of_deletions_state_the_amount_to_be_deleted() {
    let bench = Bench::new();
    bench.write("target/tmp/a", "x".repeat(1500));
    bench.write("target/tmp/deep/b", "x".repeat(500));
    bench.write("-odd", "1");
    std::os::unix::fs::symlink(bench.path("target"), bench.path("link")).unwrap();
    let cases = [
        ("cargo test && rm -rf target/tmp", Some("deletes target/tmp: 2 files, 2.0 KB")),
        (
            "rm -rf ./target/tmp/../tmp/deep target/tmp/a",
            Some("deletes ./target/tmp/../tmp/deep: 1 file, 500 bytes, target/tmp/a: 1 file, 1.5 KB"),
        ),
        ("sudo rm -r -- -odd", Some("deletes -odd: 1 file, 1 byte")),
        ("rm -rf target/nothing", None),
        ("rm -rf /etc", None),
        ("rm -rf ../home", None),
        ("cd target && rm -rf tmp", None),
        ("rm -rf target/tmp/*", None),
        ("rm -rf $SOMEWHERE", None),
        ("echo rm -rf target", None),
    ];
    let notes = |line: &str| bench.plan("RunCommand", json!({"command": line})).unwrap().proposal.unwrap().notes;
    for (line, note) in cases {
        let said = notes(line).into_iter().find(|note| note.starts_with("deletes"));
        assert_eq!(said.as_deref(), note, "{line}");
    }
    // Once the effects are known, all other notes remain.
    let mut proposal = bench.plan("RunCommand", json!({"command": "rm -rf target/tmp"})).unwrap().proposal.unwrap();
    assert_eq!(proposal.estimate.as_deref(), Some("deletes target/tmp: 2 files, 2.0 KB"));
    proposal.notes.push("deletes nothing else".to_owned());
    let left = proposal.notes_without_estimate();
    assert_eq!(left.len() + 1, proposal.notes.len());
    assert!(left.contains(&"deletes nothing else".to_owned()) && !left.contains(proposal.estimate.as_ref().unwrap()));
    assert_eq!(notes("true")[0], "shell bash -c");
    let said = notes("git p\u{443}sh").join("\n");
    assert!(said.contains("⚠ `p\u{443}sh` mixes Latin and Cyrillic characters"), "{said}");
    let linked = notes("rm link").join("\n");
    assert!(linked.contains("deletes link: 1 file"), "the target of a symlink is unchanged: {linked}");
}

#[test]
fn a_commit_is_summarized_with_its_branch_files_and_message() {
    let mut bench = Bench::new();
    bench.settings.command.commit_target =
        Some(|_, all| CommitTarget { branch: Some("main".to_owned()), files: Some(if all { 3 } else { 1 }) });
    let summary = |line: &str| bench.plan("RunCommand", json!({"command": line})).unwrap().proposal.unwrap().summary;
    assert_eq!(summary("git commit -am 'Add x'"), "Commit 3 files to main: \"Add x\"");
    assert_eq!(summary("git commit -m 'Add x\n\nBecause of y.'"), "Commit 1 file to main: \"Add x…\"");
    assert_eq!(summary("git add -A && git commit -m x"), "Commit to main: \"x\"");
    assert_eq!(summary("git commit --amend -m x"), "Run: git commit --amend -m x");
    assert_eq!(summary("git status"), "Run: git status");
}
